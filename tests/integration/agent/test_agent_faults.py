"""perfolio-agent under faults: it counts every loss, its memory stays bounded, and it recovers when
the cause is gone."""

import os
import pathlib
import re
import resource
import signal
import subprocess
import time
import urllib.request

import pytest

from conftest import free_port
from test_agent import AGENT, STARTED
from test_agent_truth import PROGRAMS, run
from test_record import REFUSAL

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(REFUSAL is not None, reason=f"the kernel refuses: {REFUSAL}"),
]


def fields_of(message):
    """Yields the number and the value (bytes or integer) of each field of a protobuf message."""
    at = 0

    def varint():
        nonlocal at
        number = shift = 0
        while True:
            at, byte = at + 1, message[at]
            number, shift = number | (byte & 127) << shift, shift + 7
            if byte < 128:
                return number

    while at < len(message):
        tag = varint()
        size = {0: 0, 1: 8, 2: None, 5: 4}[tag & 7]
        value = varint() if tag & 7 == 0 else None
        size = varint() if size is None else size
        yield tag >> 3, message[at : at + size] if value is None else value
        at += size


def strings_of_batch(path):
    batch = subprocess.run(["zstd", "-dc", path], capture_output=True, check=True).stdout
    dictionary = next(value for number, value in fields_of(batch) if number == 2)
    return [value for number, value in fields_of(dictionary) if number == 5]


class Agent:
    """A running agent that writes its batches to a folder and serves its metrics."""

    def __init__(self, folder, *arguments, environment=None, hang_up=signal.SIG_DFL):
        self.batches_path, self.log_path, self.port = (
            folder / "batches",
            folder / "agent.log",
            free_port(),
        )
        self.batches_path.mkdir(exist_ok=True)
        self.command = [
            str(AGENT),
            f"--offline-dir={self.batches_path}",
            "--interval=1",
            f"--metrics=127.0.0.1:{self.port}",
            *arguments,
        ]
        self.environment = {**os.environ, **(environment or {})}
        self.hang_up = hang_up
        self.start()

    def start(self):
        with open(self.log_path, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                self.command,
                stdout=log,
                stderr=log,
                env=self.environment,
                preexec_fn=lambda: signal.signal(signal.SIGHUP, self.hang_up),
            )
        self.wait(lambda: STARTED in self.log_path.read_text())

    def wait(self, condition, seconds=120):
        deadline = time.monotonic() + seconds
        while not condition():
            assert (
                self.process.poll() is None and time.monotonic() < deadline
            ), self.log_path.read_text()
            time.sleep(0.1)

    def metrics(self):
        with urllib.request.urlopen(
            f"http://127.0.0.1:{self.port}/metrics", timeout=30
        ) as response:
            return response.read().decode()

    def counts(self):
        return {
            name: int(value)
            for name, value in re.findall(r"^perfolio_agent_(\w+) (\d+)$", self.metrics(), re.M)
        }

    def stop_count(self, reason):
        return int(
            re.search(
                rf'^perfolio_agent_stacks_total{{stop="{reason}"}} (\d+)$', self.metrics(), re.M
            )[1]
        )

    def processor_seconds(self):
        fields = (
            pathlib.Path(f"/proc/{self.process.pid}/stat")
            .read_text(encoding="utf-8")
            .rsplit(")", 1)[1]
            .split()
        )
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def wait_for(self, name, number, seconds=120):
        self.wait(lambda: self.counts().get(name, 0) >= number, seconds)

    def batches(self):
        return {path.name for path in self.batches_path.glob("*.otlp.zst")}

    def wait_for_batches(self, number):
        """Waits for `number` batches more than exist now, and returns their names."""
        before = self.batches()
        self.wait(lambda: len(self.batches() - before) >= number)
        return self.batches() - before

    def strings(self):
        """The strings of all batches, as bytes."""
        return [
            text for name in self.batches() for text in strings_of_batch(self.batches_path / name)
        ]

    def peak_mib(self):
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as status:
            return int(re.search(r"VmHWM:\s+(\d+)", status.read())[1]) / 1024


@pytest.fixture
def start_agent(tmp_path):
    agents = []

    def start(*arguments, folder=tmp_path, **options):
        folder.mkdir(exist_ok=True)
        agents.append(Agent(folder, *arguments, **options))
        return agents[-1]

    yield start
    for agent in agents:
        agent.process.kill()
        agent.process.wait()


@pytest.fixture(scope="module")
def truth(tmp_path_factory):
    path = tmp_path_factory.mktemp("faults") / "truth"
    run(
        "gcc",
        "-O2",
        "-g",
        "-fomit-frame-pointer",
        "-Wl,--build-id",
        PROGRAMS / "truth.c",
        "-pthread",
        "-o",
        path,
        cwd=path.parent,
    )
    return path


@pytest.fixture
def busy(truth):
    """Runs one program per processor, each with stacks of 500 frames."""
    programs = [subprocess.Popen([truth, "deep", "495"]) for _ in range(os.cpu_count())]
    yield programs
    for program in programs:
        program.kill()
        program.wait()


@pytest.mark.usefixtures("busy")
def test_samples_lost_to_a_full_ring_are_counted_and_sampling_continues(start_agent):
    agent = start_agent("--frequency=997")
    agent.wait_for("samples_total", 500)
    agent.process.send_signal(signal.SIGSTOP)
    time.sleep(4)
    agent.process.send_signal(signal.SIGCONT)
    agent.wait_for("lost_samples_total", 100)
    counts = agent.counts()
    agent.wait_for("samples_total", counts["samples_total"] + 1000)
    agent.wait_for_batches(2)
    assert agent.peak_mib() < 128


MANY = """
import ctypes, mmap, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
file = os.open(sys.argv[1], os.O_RDONLY)
protection = mmap.PROT_READ | mmap.PROT_EXEC
made = [libc.mmap(None, 4096, protection, mmap.MAP_PRIVATE, file, 0) for _ in range(50000)]
print(len(set(made)), flush=True)
while True:
    sum(range(1000))
"""


@pytest.mark.parametrize("is_first", [False, True])
def test_a_hundred_thousand_mappings_do_not_stop_sampling_of_other_programs(
    start_agent, truth, is_first
):
    agent = None if is_first else start_agent("--frequency=99")
    programs = [
        subprocess.Popen(["python3", "-c", MANY, truth], stdout=subprocess.PIPE) for _ in range(2)
    ]
    try:
        assert [program.stdout.readline() for program in programs] == [b"50000\n"] * 2
        agent = agent or start_agent("--frequency=99")
        agent.wait_for("mappings", 100000)
        agent.wait_for("samples_total", agent.counts()["samples_total"] + 200)
        assert agent.peak_mib() < 128
    finally:
        for program in programs:
            program.kill()
            program.wait()
    agent.wait(lambda: agent.counts()["mappings"] < 50000)


STRANGE = """
.globl strange
.type strange, @function
strange:
.cfi_startproc
.set at, BASE
.rept COUNT
nop
.cfi_def_cfa_offset at
.set at, at + 8
.endr
ret
.cfi_endproc
.size strange, . - strange
"""
LOAD = """
import ctypes, sys, time
loaded = [ctypes.CDLL(path) for path in sys.argv[1:]]
print(len(loaded), flush=True)
time.sleep(600)
"""
# No other program has frames of this size, so its unwind rules are not shared.
LARGE_FRAME = r"""
static volatile unsigned long sum;
__attribute__((noinline)) void leaf(const volatile char *bytes)
{
    for (int i = 0; i < 100000; i++)
        sum += (unsigned long)bytes[i & 0xff];
}
__attribute__((noinline)) void large(void)
{
    volatile char bytes[77776];
    bytes[0] = 1;
    leaf(bytes);
    sum += (unsigned long)bytes[9];
}
int main(void)
{
    for (;;)
        large();
}
"""


@pytest.fixture
def load_strange_files(tmp_path):
    """Starts a process that maps file_count files, each with rule_count unwind rules that no other
    file has."""
    processes = []

    def load(file_count, rule_count):
        paths = [tmp_path / f"strange{i}.so" for i in range(file_count)]
        for i, path in enumerate(paths):
            path.with_suffix(".s").write_text(
                STRANGE.replace("BASE", str(1000000 * (i + 1))).replace("COUNT", str(rule_count))
            )
            run(
                "gcc",
                "-shared",
                "-nostdlib",
                "-Wl,--build-id",
                path.with_suffix(".s"),
                "-o",
                path,
                cwd=tmp_path,
            )
        processes.append(subprocess.Popen(["python3", "-c", LOAD, *paths], stdout=subprocess.PIPE))
        assert processes[-1].stdout.readline() == b"%d\n" % file_count
        return processes[-1]

    yield load
    end(*processes)


def files_of_code(process):
    with open(f"/proc/{process.pid}/maps", encoding="ascii") as maps:
        return {
            fields[5]
            for fields in map(str.split, maps)
            if "x" in fields[1] and fields[5:] and fields[5][0] == "/"
        }


@pytest.fixture
def large_frame(tmp_path):
    """Starts a program compiled from LARGE_FRAME."""
    processes = []
    (tmp_path / "large.c").write_text(LARGE_FRAME)
    run(
        "gcc",
        "-O2",
        "-fomit-frame-pointer",
        "-Wl,--build-id",
        "large.c",
        "-o",
        "large",
        cwd=tmp_path,
    )
    yield lambda: processes.append(subprocess.Popen([tmp_path / "large"]))
    end(*processes)


def end(*processes):
    for process in processes:
        process.kill()
        process.wait()


@pytest.mark.parametrize("file_count, rule_count, refused_count", [(5, 16000, 5), (70, 2040, 65)])
def test_files_with_many_unique_rules_do_not_cost_a_later_program_its_stacks(
    start_agent, load_strange_files, large_frame, file_count, rule_count, refused_count
):
    agent = start_agent("--frequency=99")
    files = files_of_code(load_strange_files(file_count, rule_count))
    agent.wait_for("refused_total", refused_count)
    large_frame()
    agent.wait_for("samples_total", agent.counts()["samples_total"] + 300)
    assert agent.stop_count("rules-full") == 0
    # The agent logs one of the refused files and counts each once, however often it tries. When it
    # finds all files at once, the process's own libraries may be those that do not fit.
    assert len(files) > file_count and refused_count <= agent.counts()["refused_total"] <= len(
        files
    )
    assert (
        len(re.findall(r"for lack of space or time.*/strange\d+.so", agent.log_path.read_text()))
        == 1
    )


def test_a_program_gets_its_stacks_when_the_process_with_all_rules_exits(
    start_agent, load_strange_files, large_frame
):
    agent = start_agent("--frequency=99")
    strange = load_strange_files(60, 2000)
    agent.wait_for("refused_total", 40)
    large_frame()
    # The other process's quota may leave enough rules, and other programs of this host may exit.
    agent.wait_for("samples_total", agent.counts()["samples_total"] + 200)
    end(strange)

    def is_whole():
        stop_count, samples = agent.stop_count("rules-full"), agent.counts()["samples_total"]
        agent.wait_for("samples_total", samples + 200)
        return agent.stop_count("rules-full") == stop_count

    # The program keeps running, and the agent adds the missing rules to its table.
    agent.wait(is_whole, 60)


MANY_FILES = """
import mmap, os, pathlib, sys, time
folder, count, build_id = pathlib.Path(sys.argv[1]), int(sys.argv[2]), bytes.fromhex(sys.argv[3])
content = (folder / "one.so").read_bytes()
at, maps = content.index(build_id), []
for i in range(count):
    path = folder / f"many{i}.so"
    path.write_bytes(content[:at] + i.to_bytes(8, "little") + content[at + 8:])
    with open(path, "rb") as file:
        protection = mmap.PROT_READ | mmap.PROT_EXEC
        maps.append(mmap.mmap(file.fileno(), 4096, mmap.MAP_PRIVATE, protection))
print(len(maps), flush=True)
time.sleep(600)
"""


def test_a_process_with_9000_files_does_not_cost_a_later_program_its_stacks(
    start_agent, large_frame, tmp_path
):
    build_id = "5" * 40
    (tmp_path / "one.c").write_text("int one(void) { return 1; }\n")
    run(
        "gcc",
        "-shared",
        "-nostdlib",
        "-Wl,-z,noseparate-code",
        f"-Wl,--build-id=0x{build_id}",
        "one.c",
        "-o",
        "one.so",
        cwd=tmp_path,
    )
    agent = start_agent("--frequency=99")
    many = subprocess.Popen(
        ["python3", "-c", MANY_FILES, tmp_path, "9000", build_id], stdout=subprocess.PIPE
    )
    try:
        assert many.stdout.readline() == b"9000\n"
        agent.wait_for("mappings", 9000)
        agent.wait_for("refused_total", 6000)
        time.sleep(3)
        refused = agent.counts()["refused_total"]
        large_frame()
        agent.wait_for("samples_total", agent.counts()["samples_total"] + 500)
        # No file is counted twice: each has one mapping and would have had one table.
        assert agent.counts()["refused_total"] - refused < 10
        assert refused < 2 * 9000
        last = agent.wait_for_batches(2)
    finally:
        end(many)
    assert any(
        b"/large"
        in subprocess.run(
            ["zstd", "-dc", agent.batches_path / name], capture_output=True, check=True
        ).stdout
        for name in last
    )
    agent.process.terminate()
    agent.process.wait(60)
    assert not re.findall(r".*stacks that end.*/large.*", agent.log_path.read_text())


LONG_TABLE = """
.globl long
.type long, @function
long:
.cfi_startproc
.rept 150000
nop
.cfi_def_cfa_offset 16
nop
.cfi_def_cfa_offset 24
.endr
ret
.cfi_endproc
.size long, . - long
"""


def kernel_table_mib(agent):
    def is_shard(entry):
        try:
            return f"value_size:\t{4 << 20}\n" in entry.read_text()
        except FileNotFoundError:  # closed meanwhile
            return False

    return 4 * sum(map(is_shard, pathlib.Path("/proc", str(agent.process.pid), "fdinfo").iterdir()))


def test_kernel_memory_of_unwind_tables_stays_in_the_limit_and_is_freed(start_agent, tmp_path):
    build_id = "5" * 40
    (tmp_path / "one.s").write_text(LONG_TABLE)
    run(
        "gcc",
        "-shared",
        "-nostdlib",
        "-Wl,-z,noseparate-code",
        f"-Wl,--build-id=0x{build_id}",
        "one.s",
        "-o",
        "one.so",
        cwd=tmp_path,
    )
    settings = "--frequency=99", "--memory-limit=96"
    agent = start_agent(*settings)
    before = kernel_table_mib(agent)
    # 900 KB each: 72 MB, more than the limit leaves beside the tables of the other processes.
    many = subprocess.Popen(
        ["python3", "-c", MANY_FILES, tmp_path, "80", build_id], stdout=subprocess.PIPE
    )
    try:
        assert many.stdout.readline() == b"80\n"
        agent.wait_for("refused_total", 10)
        time.sleep(3)
        counts = agent.counts()
        assert kernel_table_mib(agent) + counts["resident_memory_bytes"] / (1 << 20) < 96
        assert kernel_table_mib(agent) > before
        assert counts["short_of_memory_seconds_total"] == 0
        assert "for lack of space or time" in agent.log_path.read_text()
    finally:
        end(many)
    # Other programs of this host may need more than before, as long as they run; an agent started
    # now shows how much.
    other = start_agent(*settings, folder=tmp_path / "other")
    agent.wait(lambda: kernel_table_mib(agent) <= max(before, kernel_table_mib(other)) + 4, 300)


NAMED = r"""
#include <sys/prctl.h>
int main(int argc, char **argv)
{
    prctl(PR_SET_NAME, argc > 1 ? argv[1] : "none");
    for (;;)
        ;
}
"""


def test_strings_are_utf8_for_all_thread_names(start_agent, tmp_path):
    """Readers of protobuf reject a whole batch if one string is not valid UTF-8."""
    (tmp_path / "named.c").write_text(NAMED)
    run("gcc", "-O1", "named.c", "-o", "named", cwd=tmp_path)
    agent = start_agent()
    # The kernel cuts names after 15 bytes: here in the middle of a character.
    programs = [
        subprocess.Popen([tmp_path / "named", name])
        for name in (b"evil\xff\xfe", "vierzehn-zeichä".encode())
    ]
    try:
        agent.wait(lambda: {b"evil??", b"vierzehn-zeich"} <= set(agent.strings()), 30)
    finally:
        end(*programs)
    for text in agent.strings():
        text.decode()


# Generates the given number of functions at run time, with names of 600 bytes, and runs in stacks
# of 500 random ones of them. If a file is given, the stacks consist of addresses in the file.
MADE_UP = r"""
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    /* push rbp; mov rbp, rdi; mov ecx, 1 << 22; dec ecx; jnz; pop rbp; ret */
    static const unsigned char spin[] =
        "\x55\x48\x89\xfd\xb9\x00\x00\x40\x00\xff\xc9\x75\xfc\x5d\xc3";
    uint64_t frames[501][2] = {{0}}; /* where a walk looks for them: above the stack pointer */
    const int count = atoi(argv[argc - 1]);
    unsigned char *code = mmap(NULL, 16L * (count + 2), PROT_READ | PROT_WRITE | PROT_EXEC,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const unsigned char *places = argc < 3 ? code :
        mmap(NULL, 16L * (count + 2), PROT_READ | PROT_EXEC, MAP_PRIVATE, open(argv[1], O_RDONLY),
             0);
    char path[64];
    snprintf(path, sizeof(path), argc < 3 ? "/tmp/perf-%d.map" : "/dev/null", getpid());
    FILE *map = fopen(path, "w");
    for (int i = 0; i <= count; i++) {
        fprintf(map, "%lx 10 made_up_%d_%d_of_%d", (long)(code + 16 * i), getpid(), i, count);
        for (int j = 0; count > 1 && j < 57; j++)
            fprintf(map, "%08x__", (unsigned)rand());
        fprintf(map, "\n");
    }
    fclose(map);
    memcpy(code, spin, sizeof(spin));
    srand(getpid());
    for (;;) {
        for (int i = 0; i < 500; i++) {
            frames[i][0] = (uint64_t)frames[i + 1];
            frames[i][1] = (uint64_t)(places + 16 * (1 + rand() % count) + 8);
        }
        ((void (*)(void *))code)(frames);
    }
}
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="its code is made for this processor")
def test_generated_names_do_not_displace_others_or_add_batches(start_agent, tmp_path):
    (tmp_path / "made_up.c").write_text(MADE_UP)
    run("gcc", "-O1", "made_up.c", "-o", "made_up", cwd=tmp_path)
    began = time.time()
    agent = start_agent("--frequency=199", "--interval=600")
    programs = [subprocess.Popen([tmp_path / "made_up", "12000"]) for _ in range(3)]
    try:
        agent.wait_for("left_out_names_total", 2, 30)
        programs.append(subprocess.Popen([tmp_path / "made_up", "1"]))
        batches = sorted(agent.batches_path / name for name in agent.wait_for_batches(2))
    finally:
        end(*programs)
        for program in programs:
            pathlib.Path(f"/tmp/perf-{program.pid}.map").unlink(missing_ok=True)
    ends = [path.stat().st_mtime for path in batches]
    assert ends[0] - began > 5 and ends[1] - ends[0] > 9, (began, ends)
    for path in batches:
        strings = strings_of_batch(path)
        assert 4 << 20 < sum(map(len, strings)) < 6.5 * (1 << 20)
        assert max(map(len, strings)) == 512
        assert b"[name left out]" in strings
    assert b"made_up_%d_1_of_1" % programs[-1].pid in strings
    messages = re.findall(
        r"the names of a user.s processes, or of a process of root, exceed the quota.*",
        agent.log_path.read_text(),
    )
    assert len(messages) == 1 and "name=made_up" in messages[0].replace('"', ""), messages
    assert agent.peak_mib() < 128


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="its code is made for this processor")
def test_random_stacks_make_more_batches_and_lose_none(start_agent, tmp_path):
    """Random frames compress to at least 2 bytes each, so the agent splits them into several
    batches, here of 4 MiB."""
    (tmp_path / "made_up.c").write_text(MADE_UP)
    run("gcc", "-O1", "made_up.c", "-o", "made_up", cwd=tmp_path)
    with open(tmp_path / "file", "wb") as file:
        file.truncate(4 << 20)
    agent = start_agent("--frequency=999", "--interval=10", "--spool-max=4")
    programs = [
        subprocess.Popen([tmp_path / "made_up", tmp_path / "file", "130000"])
        for _ in range(2 * os.cpu_count())
    ]
    try:
        agent.wait(lambda: agent.counts()["kept_bytes_total"] > 12 << 20)
    finally:
        end(*programs)
    assert agent.counts()["lost_batches_total"] == 0, agent.log_path.read_text()


FLOOD = r"""
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
int main(int argc, char **argv)
{
    const int fd = open(argv[argc - 1], O_RDONLY);
    const time_t end = time(NULL) + 10;
    unsigned long count = 0;
    char *place = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (; time(NULL) < end; count++) {
        if (mmap(place, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED)
            return 1;
        munmap(place, 4096);
    }
    printf("%lu\n", count);
    return 0;
}
"""


def test_a_program_that_maps_a_file_in_a_loop_costs_little(start_agent, tmp_path):
    (tmp_path / "flood.c").write_text(FLOOD)
    (tmp_path / "noid.c").write_text("int one(void) { return 1; }\n")
    run("gcc", "-O2", "flood.c", "-o", "flood", cwd=tmp_path)
    run("gcc", "-shared", "-Wl,--build-id=none", "noid.c", "-o", "noid.so", cwd=tmp_path)
    agent = start_agent()
    # The agent samples all other programs of the host, too: its cost without the floods.
    first_seconds, begin = agent.processor_seconds(), time.monotonic()
    time.sleep(3)
    other_cores = (agent.processor_seconds() - first_seconds) / (time.monotonic() - begin)
    before_seconds, begin = agent.processor_seconds(), time.monotonic()
    before_floods = resource.getrusage(resource.RUSAGE_CHILDREN)
    floods = [
        subprocess.Popen([tmp_path / "flood", tmp_path / "noid.so"], stdout=subprocess.PIPE)
        for _ in range(3)
    ]
    counts = [int(flood.communicate()[0]) for flood in floods]
    spent_seconds = agent.processor_seconds() - before_seconds
    spent_seconds -= other_cores * (time.monotonic() - begin)
    after_floods = resource.getrusage(resource.RUSAGE_CHILDREN)
    floods_seconds = sum(
        getattr(after_floods, name) - getattr(before_floods, name)
        for name in ("ru_utime", "ru_stime")
    )
    # An agent that reads the file for every mapping needs 10 to 20 us each, as much as the program
    # that maps it. One that does not needs 7 % of the programs' time.
    assert spent_seconds < floods_seconds / 4, (spent_seconds, floods_seconds, counts)


def test_bpf_tables_are_not_resident_in_the_agent(start_agent):
    """The agent writes and reads the tables in pieces. When it touched them whole, they were more
    than half of its resident memory."""
    agent = start_agent()
    smaps = pathlib.Path("/proc", str(agent.process.pid), "smaps")

    def resident_bytes():
        maps = re.findall(
            r"^[0-9a-f]+-.* (\S+)\n(?:[A-Z].*\n)*?Rss: +(\d+) kB", smaps.read_text(), re.M
        )
        resident = [int(kb) << 10 for name, kb in maps if "bpf-map" in name]
        assert resident
        return sum(resident)

    agent.wait(lambda: kernel_table_mib(agent) >= 4)
    agent.wait(lambda: resident_bytes() < 2 << 20)  # not while it writes one


@pytest.mark.usefixtures("busy")
def test_a_killed_agent_loses_only_unwritten_samples(start_agent):
    agent = start_agent()
    agent.wait_for_batches(2)
    agent.process.send_signal(signal.SIGKILL)
    agent.process.wait()
    kept = agent.batches()
    agent.start()
    agent.wait_for_batches(2)
    assert kept < agent.batches()
    for name in agent.batches():
        subprocess.run(["zstd", "-q", "-t", agent.batches_path / name], check=True)


STEPPING = """
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *now)
{
    const int status = (int)syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_REALTIME && access(getenv("AHEAD"), F_OK) == 0)
        now->tv_sec += 86400;
    return status;
}
"""


def durations_of_batch(path):
    """The durations of all profiles of a batch, in seconds."""
    message = subprocess.run(["zstd", "-dc", path], capture_output=True, check=True).stdout

    def inner(messages, wanted):
        return [value for each in messages for number, value in fields_of(each) if number == wanted]

    profiles = inner(inner(inner([message], 1), 2), 2)  # of resources, of scopes
    return [duration / 1e9 for duration in inner(profiles, 4)]


@pytest.mark.usefixtures("busy")
def test_a_step_of_the_wall_clock_loses_nothing_and_makes_no_long_window(start_agent, tmp_path):
    (tmp_path / "stepping.c").write_text(STEPPING)
    run("gcc", "-shared", "-fPIC", "stepping.c", "-o", "stepping.so", cwd=tmp_path)
    ahead = tmp_path / "ahead"
    agent = start_agent(
        environment={"LD_PRELOAD": str(tmp_path / "stepping.so"), "AHEAD": str(ahead)}
    )
    agent.wait_for_batches(2)
    ahead.touch()
    agent.wait_for_batches(3)
    ahead.unlink()
    agent.wait_for_batches(3)
    counts = agent.counts()
    assert counts["lost_batches_total"] == counts["lost_samples_total"] == 0
    durations = [
        duration
        for name in agent.batches()
        for duration in durations_of_batch(agent.batches_path / name)
    ]
    assert durations and 1e-6 < min(durations) <= max(durations) < 3600, durations


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "batches"
    folder.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], check=False
    ).returncode:
        pytest.skip("nothing can be mounted here")
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.mark.usefixtures("busy")
def test_batches_lost_to_a_full_disk_are_counted_until_space_is_free(small_disk, start_agent):
    agent = start_agent()
    agent.wait_for_batches(1)
    with open(small_disk / "ballast", "wb", buffering=0) as ballast, pytest.raises(OSError):
        while True:
            ballast.write(bytes(4096))
    agent.wait_for("lost_batches_total", 2)
    assert agent.counts()["dropped_batches_total"] == 0  # each is counted once
    (small_disk / "ballast").unlink()
    agent.wait_for_batches(2)
    for name in agent.batches():
        subprocess.run(["zstd", "-q", "-t", small_disk / name], check=True)


@pytest.mark.usefixtures("busy")
def test_sighup_ends_the_agent_after_its_last_batch_unless_ignored(start_agent, tmp_path):
    path = tmp_path / "metrics.sock"
    agent = start_agent("--interval=600", f"--metrics=unix:{path}", hang_up=signal.SIG_DFL)
    time.sleep(1)
    agent.process.send_signal(signal.SIGHUP)
    assert agent.process.wait(60) == 0, agent.log_path.read_text()
    assert agent.batches() and not path.exists()
    agent = start_agent("--interval=600", hang_up=signal.SIG_IGN)
    agent.process.send_signal(signal.SIGHUP)
    agent.wait_for("samples_total", 10)
    assert agent.process.poll() is None
