"""perfolio record: samples real programs in the kernel and names the functions that they ran."""

import contextlib
import fcntl
import gzip
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import subprocess
import sys
import termios
import time

import pytest

from conftest import AGENT, PERFOLIO, ROOT, cpu_seconds, let_it_run, rest_long

sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import pprof_reader  # noqa: E402

SOURCE = r"""
#include <stdlib.h>
#include <unistd.h>
#include <sys/wait.h>
__attribute__((noinline)) long inner(long n)
{
    volatile long sum = 0;
    for (long i = 0; i < n; i++)
        sum += i * i;
    return sum;
}
__attribute__((noinline)) long middle(long n) { return inner(n) + 1; }
__attribute__((noinline)) long outer(long n) { return middle(n) + 2; }
int main(int argc, char **argv)
{
    long sum = 0;
    if (argc > 2 && fork() > 0)
        return wait(NULL) < 0;
    for (int i = 0; i < atoi(argv[1]); i++)
        sum += outer(1000000);
    return (int)(sum & 1);
}
"""


def refusal():
    """Returns perfolio's error if this host cannot sample, or None."""
    done = subprocess.run(
        [PERFOLIO, "record", "-q", "--no-names", "-d", "0.05", "-o", "/dev/null", "-a"],
        timeout=60,
        capture_output=True,
        text=True,
        env={"HOME": "/nonexistent"},
    )
    return (
        done.stderr.strip()
        if done.returncode in (1, 4) and "no sample" not in done.stderr
        else None
    )


REFUSAL = refusal()
pytestmark = pytest.mark.skipif(REFUSAL is not None, reason=f"the kernel refuses: {REFUSAL}")


@pytest.fixture
def record(tmp_path):
    def call(*arguments, environment=None):
        return subprocess.run(
            [str(PERFOLIO), "record", *map(str, arguments)],
            cwd=tmp_path,
            timeout=120,
            env={"HOME": str(tmp_path), "PATH": os.environ["PATH"], **(environment or {})},
            capture_output=True,
            text=True,
        )

    return call


@pytest.fixture
def program(tmp_path):
    (tmp_path / "spin.c").write_text(SOURCE)
    path = tmp_path / "spin"
    subprocess.run(
        [
            "gcc",
            "-g",
            "-O1",
            "-fno-omit-frame-pointer",
            "-fno-optimize-sibling-calls",
            "-Wl,--build-id",
            tmp_path / "spin.c",
            "-o",
            path,
        ],
        check=True,
    )
    return path


def functions(tmp_path, file="profile.pb.gz"):
    """Returns the values of each function as `perfolio top` reports them."""
    done = subprocess.run(
        [str(PERFOLIO), "top", "--json", str(tmp_path / file)],
        check=True,
        env={"HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    return {row["name"]: row for row in json.loads(done.stdout)["functions"]}


@pytest.mark.long
def test_stacks_of_a_command_are_complete(record, program, tmp_path):
    done = record("-F", "997", "--", program, "300")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^\d+ samples at 997 Hz", done.stderr, re.M)
    rows = functions(tmp_path)
    total = rows["main"]["cum"]
    assert total > 0
    for name in ("inner", "middle", "outer"):
        assert rows[name]["cum"] > 0.95 * total, name
    assert rows["inner"]["flat"] > 0.9 * total
    assert rows["inner"]["file"].endswith("spin.c")


DEEP = r"""
#include <stdlib.h>
#include <string.h>
__attribute__((noinline)) long leaf(long n)
{
    volatile long sum = 0;
    for (long i = 0; i < 100000; i++)
        sum += i * n;
    return sum;
}
__attribute__((noinline)) long down(long depth, char *data)
{
    char own[48];
    memset(own, (int)depth, sizeof(own));
    long sum = depth > 1 ? down(depth - 1, own) : leaf(depth);
    return sum + own[7] + (data ? data[3] : 0);
}
int main(int argc, char **argv)
{
    long sum = 0;
    for (;;)
        sum += down(atoi(argv[1]), NULL);
    return (int)sum;
}
"""


def stacks(file):
    """Returns [(functions from the root, samples)], decoded by the reader of the tests."""
    profile = pprof_reader.load(file)

    def names(location_id):
        lines = profile.locations[location_id]["line"]
        return [profile.functions[line["function_id"]]["name"] for line in reversed(lines)] or ["?"]

    return [
        (
            [name for location_id in reversed(sample.stack) for name in names(location_id)],
            sample.values[0],
        )
        for sample in profile.samples
    ]


@pytest.mark.long
@pytest.mark.parametrize(
    "depth, options",
    [(5, []), (25, []), (95, []), (480, []), (5, ["--bounded-loops"]), (480, ["--bounded-loops"])],
)
def test_code_without_frame_pointers_is_unwound_to_its_root(record, tmp_path, depth, options):
    (tmp_path / "deep.c").write_text(DEEP)
    subprocess.run(
        [
            "gcc",
            "-O2",
            "-fomit-frame-pointer",
            "-fno-optimize-sibling-calls",
            "-Wl,--build-id",
            tmp_path / "deep.c",
            "-o",
            tmp_path / "deep",
        ],
        check=True,
    )
    process = subprocess.Popen([tmp_path / "deep", str(depth)])
    try:
        done = record(*options, "-p", process.pid, "-d", "2", "-F", "499")
    finally:
        process.kill()
        process.wait()
    assert done.returncode == 0, done.stderr
    assert ("bounded loops" in done.stderr) == bool(options), done.stderr
    total, whole, deepest = 0, 0, 0
    for names, count in stacks(tmp_path / "profile.pb.gz"):
        total += count
        calls = names.count("down")
        deepest = max(deepest, calls)
        # A sample taken during the recursion has fewer calls, but it reaches the root.
        whole += (
            count
            if names[0] == "_start" and "main" in names and (calls == depth or "leaf" not in names)
            else 0
        )
    assert total > 10 and deepest == depth
    assert whole >= 0.99 * total, (whole, total)


@pytest.mark.long
@pytest.mark.parametrize(
    "flag, is_complete", [("-fno-omit-frame-pointer", True), ("-fomit-frame-pointer", False)]
)
def test_frame_pointers_option_shortens_stacks_of_code_without_them(
    record, tmp_path, flag, is_complete
):
    (tmp_path / "deep.c").write_text(DEEP)
    subprocess.run(
        [
            "gcc",
            "-O2",
            flag,
            "-fno-optimize-sibling-calls",
            "-Wl,--build-id",
            tmp_path / "deep.c",
            "-o",
            tmp_path / "deep",
        ],
        check=True,
    )
    process = subprocess.Popen([tmp_path / "deep", "5"])
    try:
        done = record("--frame-pointers", "-d", "1", "-F", "499", "-p", process.pid)
    finally:
        process.kill()
        process.wait()
    assert done.returncode == 0, done.stderr
    found = [
        (names, count) for names, count in stacks(tmp_path / "profile.pb.gz") if "leaf" in names
    ]
    whole = sum(count for names, count in found if "main" in names and names.count("down") == 5)
    total = sum(count for _, count in found)
    assert total > 10 and (whole > 0.95 * total if is_complete else whole == 0), (whole, total)


def fraction_with_root(file, roots):
    found = stacks(file)
    total = sum(count for _, count in found)
    return total, sum(count for names, count in found if set(names[:2]) & roots) / total


def record_running(record, command, folder, seconds=2, frequency=499):
    """Starts command and attaches to it once its mappings are known. The tests check unwinding,
    not how soon a new mapping is found."""
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    try:
        let_it_run(process, 0.5)
        done = record("-p", process.pid, "-d", seconds, "-F", frequency)
    finally:
        process.kill()
        process.wait()
    assert done.returncode == 0, done.stderr


CPP = r"""
#include <stdexcept>
#include <regex>
#include <string>
__attribute__((noinline)) void thrower(int n) { if (n % 2) throw std::runtime_error("odd"); }
__attribute__((noinline)) int matcher(const std::string &s)
{
    static const std::regex pattern("(a|b)*c+[x-z]{2,5}");
    return std::regex_search(s, pattern);
}
int main()
{
    for (volatile int i = 0;; i++) {
        try { thrower(i); matcher("abababababcccxyz"); } catch (const std::exception &) { }
    }
}
"""


@pytest.mark.long
def test_cpp_with_exceptions_is_unwound_to_its_root(record, tmp_path):
    (tmp_path / "work.cc").write_text(CPP)
    subprocess.run(
        ["g++", "-O2", "-fomit-frame-pointer", tmp_path / "work.cc", "-o", tmp_path / "work"],
        check=True,
    )
    # About 0.5 % of the samples are incomplete. Enough samples keep the fraction below 1 %.
    record_running(record, [tmp_path / "work"], tmp_path, 4, 9973)
    found = stacks(tmp_path / "profile.pb.gz")
    total = sum(count for _, count in found)
    lost = [names for names, _ in found if "_start" not in names[:2]]
    # While libgcc replaces its own return address by that of another frame, no unwinder can find
    # the caller's frame.
    assert all(
        "_Unwind_RaiseException" in names or "_Unwind_Resume" in names for names in lost
    ), lost
    assert total > 1000 and len(lost) <= 0.01 * total
    assert any("thrower" in names and "_Unwind_RaiseException" in names for names, _ in found)


@pytest.mark.long
def test_python_is_unwound_to_its_root(record, tmp_path):
    record_running(
        record, ["/usr/bin/python3", "-c", "while True: sum(i * i for i in range(1000))"], tmp_path
    )
    total, share = fraction_with_root(tmp_path / "profile.pb.gz", {"_start"})
    assert total > 10 and share >= 0.99


NEW_CODE = """
// In ms of CPU time: other processes do not change how often this is sampled.
const spent = () => process.cpuUsage().user / 1000;
for (let k = 1; spent() < 3000; k++) {
    const body = "for (let i = 0; i < n; i++) s += Math.sqrt(i * " + k + " % 7); return s";
    const compiled = new Function("n", "let s = 0; " + body);
    const change = spent() + 200;
    while (spent() < change) compiled(20000);
}
"""


@pytest.mark.long
@pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node")
@pytest.mark.parametrize("option", ["--perf-basic-prof", "--perf-prof"])
def test_newly_compiled_jit_code_has_names(record, tmp_path, option):
    (tmp_path / "new.js").write_text(NEW_CODE)
    done = record("--", "node", option, "new.js")
    assert done.returncode == 0, done.stderr
    found = stacks(tmp_path / "profile.pb.gz")
    assert (
        sum(count for names, count in found if any(name.startswith("JS:") for name in names)) > 50
    )
    nameless = sum(count for names, count in found if "[code without a name]" in names)
    assert nameless < 0.05 * sum(count for _, count in found), found


JAVA = """
public class Work {
    static long inner(long n) {
        long sum = 1;
        for (long i = 0; i < n; i++) sum ^= i * sum + i;
        return sum;
    }
    public static void main(String[] words) {
        long sum = 0;
        for (int i = 0; i < 5000; i++) sum += inner(200000);
        System.out.println(sum);
    }
}
"""


@pytest.mark.long
@pytest.mark.skipif(shutil.which("javac") is None, reason="there is no javac")
def test_a_perf_map_written_at_exit_is_read(record, tmp_path):
    (tmp_path / "Work.java").write_text(JAVA)
    subprocess.run(["javac", "Work.java"], cwd=tmp_path, check=True)
    done = record(
        "-F",
        "499",
        "--",
        "java",
        "-XX:+PreserveFramePointer",
        "-XX:+UnlockDiagnosticVMOptions",
        "-XX:+DumpPerfMapAtExit",
        "-XX:CompileCommand=dontinline,Work.inner",
        "Work",
    )
    assert done.returncode == 0, done.stderr
    found = stacks(tmp_path / "profile.pb.gz")
    assert sum(
        count for names, count in found if any("Work.inner" in name for name in names)
    ) > 0.5 * sum(count for _, count in found)


@pytest.mark.long
@pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node")
def test_node_is_unwound_to_its_root_and_named_by_a_perf_map(record, tmp_path):
    script = "function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) } for (;;) fib(25)"
    record_running(record, ["node", "--perf-basic-prof", "-e", script], tmp_path)
    total, share = fraction_with_root(
        tmp_path / "profile.pb.gz", {"_start", "clone3", "__clone3", "start_thread", "__clone"}
    )
    assert total > 10 and share >= 0.99
    assert any(
        re.search(r"\bfib\b", name)
        for names, _ in stacks(tmp_path / "profile.pb.gz")
        for name in names
    )


JITDUMP_SCRIPT = """
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }
for (const end = Date.now() + 300; Date.now() < end;) fib(20);
// Node writes the file in pieces of 2 MB: what comes next pushes fib out.
for (let i = 0; i < 3000; i++)
    new Function("x", "return x + " + i + " + " + "x * 3 + ".repeat(20) + "1")(i);
require("fs").writeFileSync("ready", "");
for (;;) fib(25);
"""


@pytest.mark.long
@pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node")
def test_functions_of_node_get_names_from_a_jitdump(record, tmp_path):
    (tmp_path / "work.js").write_text(JITDUMP_SCRIPT)
    process = subprocess.Popen(
        ["node", "--perf-prof", "work.js"], cwd=tmp_path, stdout=subprocess.DEVNULL
    )
    try:
        for _ in range(600):
            if (tmp_path / "ready").exists():
                break
            time.sleep(0.1)
        done = record("-p", process.pid, "-d", "2", "-F", "499")
    finally:
        process.kill()
        process.wait()
    assert done.returncode == 0, done.stderr
    found = stacks(tmp_path / "profile.pb.gz")
    total = sum(count for _, count in found)
    named = sum(
        count
        for names, count in found
        if sum(bool(re.fullmatch(r"JS:\S*fib .*work\.js:2:\d+", name)) for name in names) > 5
    )
    assert total > 10 and named > 0.9 * total, (named, total)


@pytest.mark.long
@pytest.mark.parametrize("command", [["{}", "100"], ["sh", "-c", "{} 100; exit 0"]])
def test_the_first_mapping_is_the_executable_of_the_command(record, program, tmp_path, command):
    command = [word.format(program) for word in command]
    # On a busy host more of the 50 samples are in the kernel: record again.
    for _ in range(3):
        done = record("-F", "997", "--", *command)
        assert done.returncode == 0, done.stderr
        rows = functions(tmp_path)
        if rows["inner"]["flat"] > 0.9 * rows["main"]["cum"]:
            break
    profile = pprof_reader.load(tmp_path / "profile.pb.gz")
    first = profile.mappings[min(profile.mappings)]
    assert first["filename"] == os.path.realpath(shutil.which(command[0]))
    # The functions of other binaries have kept their names and mappings.
    assert rows["inner"]["flat"] > 0.9 * rows["main"]["cum"]
    files = {
        line["function_id"]: profile.mappings[location["mapping_id"]]["filename"]
        for location in profile.locations.values()
        for line in location["line"]
        if location["mapping_id"]
    }
    assert {
        file for function, file in files.items() if profile.functions[function]["name"] == "inner"
    } == {str(program)}


@pytest.mark.long
def test_children_of_the_command_are_recorded(record, program, tmp_path):
    done = record("-F", "997", "-o", "child.pb.gz", "--", program, "200", "fork")
    assert done.returncode == 0, done.stderr
    rows = functions(tmp_path, "child.pb.gz")
    assert rows["inner"]["flat"] > 0


NAMED = r"""
#include <sys/prctl.h>
#include <time.h>
int main(void)
{
    prctl(PR_SET_NAME, "evil\xff\xfe");
    while (clock() < CLOCKS_PER_SEC / 2)
        ;
    return 0;
}
"""


@pytest.mark.long
def test_strings_are_utf_8_for_any_program_and_thread_name(tmp_path):
    """Readers of protobuf refuse a file with a string that is not UTF-8."""
    (tmp_path / "named.c").write_text(NAMED)
    program = os.fsencode(tmp_path) + b"/na\xffmed"
    subprocess.run(["gcc", "-O1", tmp_path / "named.c", "-o", program], check=True)
    subprocess.run(
        [str(PERFOLIO), "record", "-F", "499", "--", program], cwd=tmp_path, check=True, timeout=120
    )
    message = gzip.decompress((tmp_path / "profile.pb.gz").read_bytes())
    strings = [value for number, value in pprof_reader.fields_of(message) if number == 6]
    assert b"evil??" in strings and os.fsencode(tmp_path) + b"/na?med" in strings, strings
    for text in strings:
        text.decode()


@pytest.mark.long
def test_samples_have_labels_for_process_and_thread(record, program, tmp_path):
    done = record(
        "-F", "997", "-o", "labels.pb.gz", "--", "sh", "-c", f"{program} 300; {program} 300; true"
    )
    assert done.returncode == 0, done.stderr
    found = {}
    for sample in pprof_reader.load(tmp_path / "labels.pb.gz").samples:
        labels = {label[0]: label[1] for label in sample.labels}
        assert labels.keys() == {"process", "thread", "pid"}
        found.setdefault(labels["process"], set()).add(labels["pid"])
    assert len(found["spin"]) == 2


def test_a_missing_symbol_table_builder_is_reported_once(program, tmp_path):
    alone = tmp_path / "bin" / "perfolio"
    alone.parent.mkdir()
    shutil.copy(PERFOLIO, alone)
    done = subprocess.run(
        [alone, "record", "-F", "997", "--", program, "200"],
        cwd=tmp_path,
        timeout=120,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert (
        done.stderr.count("perfolio-symbolize") == 1
        and "native functions have no names" in done.stderr
    )


@pytest.mark.long
def test_a_running_process_is_recorded_by_its_pid(record, program, tmp_path):
    process = subprocess.Popen([program, "1000000"])
    try:
        done = record("-p", process.pid, "-d", "0.5", "-F", "997")
    finally:
        process.kill()
        process.wait()
    assert done.returncode == 0, done.stderr
    rows = functions(tmp_path)
    assert rows["inner"]["flat"] > 0.9 * rows["main"]["cum"]


@pytest.mark.long
@pytest.mark.parametrize("place", rest_long([".debug", "."]))
@pytest.mark.parametrize("is_same", [True, False])
def test_a_stripped_program_gets_names_from_its_debuglink_file(
    record, program, tmp_path, place, is_same
):
    debug = tmp_path / place / "spin.names"
    debug.parent.mkdir(exist_ok=True)
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", program], check=True)
    if not is_same:
        subprocess.run(
            ["gcc", "-g", "-O2", "-Wl,--build-id", tmp_path / "spin.c", "-o", debug], check=True
        )
    done = record("-F", "997", "--", program, "200")
    assert done.returncode == 0, done.stderr
    rows = functions(tmp_path)
    assert ("inner" in rows and rows["inner"]["file"].endswith("spin.c")) == is_same
    assert ("it is stripped" in done.stderr) != is_same, done.stderr


IN_MEMORY = """
import os, sys
fd = os.memfd_create("spin")
os.write(fd, open(sys.argv[1], "rb").read())
os.execve(fd, ["spin", "1000000"], {})
"""


@pytest.mark.long
@pytest.mark.parametrize(
    "where", rest_long(["deleted", "in a container", "replaced", "in memory"], 2)
)
def test_a_program_without_a_path_has_names(record, program, tmp_path, where):
    copy = tmp_path / "copy"
    shutil.copy(program, copy)
    root = tmp_path / "root"
    root.mkdir()
    begin = {
        "in memory": [sys.executable, "-c", IN_MEMORY, copy],
        "in a container": [
            "unshare",
            "-m",
            "sh",
            "-c",
            f"mount -t tmpfs none {root} && cp {copy} {root}/spin && exec {root}/spin 1000000",
        ],
    }
    process = subprocess.Popen(begin.get(where, [copy, "1000000"]))
    try:
        let_it_run(process, 0.5)
        if where in ("deleted", "replaced"):
            copy.unlink()
        if where == "replaced":
            shutil.copy("/bin/true", copy)
        done = record("-p", process.pid, "-d", "0.5", "-F", "997")
    finally:
        process.kill()
        process.wait()
    assert done.returncode == 0, done.stderr
    assert "stacks that end" not in done.stderr
    rows = functions(tmp_path)
    assert rows["inner"]["flat"] > 0.9 * rows["main"]["cum"] > 0


@pytest.mark.long
@pytest.mark.parametrize("change", ["rm copy", "cp /bin/true new; mv new copy"])
@pytest.mark.parametrize("rounds", rest_long([30, 300]))
def test_a_program_deleted_during_the_recording_has_names(
    record, program, tmp_path, change, rounds
):
    shutil.copy(program, tmp_path / "copy")
    done = record("-F", "997", "--", "sh", "-c", f"./copy {rounds}; {change}")
    assert done.returncode == 0, done.stderr
    rows = functions(tmp_path)
    assert rows["inner"]["flat"] > 0.8 * rows["main"]["cum"] > 0
    assert "copy: " not in done.stderr


@pytest.fixture
def without_id(tmp_path):
    """Two programs without a build ID: spin has the function inner, and other has the function
    never at the same address."""
    for name, source in (("spin", SOURCE), ("other", SOURCE.replace("inner", "never"))):
        (tmp_path / f"{name}.c").write_text(source)
        subprocess.run(
            [
                "gcc",
                "-g",
                "-O1",
                "-fno-omit-frame-pointer",
                "-fno-optimize-sibling-calls",
                "-Wl,--build-id=none",
                tmp_path / f"{name}.c",
                "-o",
                tmp_path / name,
            ],
            check=True,
        )
    return tmp_path


@pytest.mark.long
@pytest.mark.parametrize(
    "change, has_names",
    [
        ("true", True),
        ("rm copy", True),
        ("cp other new; mv new copy", True),
        ("rm copy; cp other copy", True),
        ("cat other > copy", False),
        ("cp other new; mv new copy; ./copy 300", False),
    ],
)
def test_without_a_build_id_names_come_from_the_executed_file_only(
    record, without_id, change, has_names
):
    shutil.copy(without_id / "spin", without_id / "copy")
    done = record("-F", "997", "--", "sh", "-c", f"./copy 300; {change}")
    assert done.returncode == 0, done.stderr
    rows = functions(without_id)
    assert "never" not in rows and ("inner" in rows) == has_names
    # No names are better than wrong ones, and the reason is reported.
    assert ("no names from" in done.stderr and "while it was recorded" in done.stderr) == (
        not has_names
    )


def signals_at_start():
    """For preexec_fn: SIGINT is ignored until the recording begins (wait_for_recording)."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def wait_for_recording(recorder):
    """Waits until a recorder that began with signals_at_start catches SIGINT. It does so when the
    preparations end, which take seconds on a busy host; a signal before that ends the process."""
    deadline = time.monotonic() + 60
    while True:
        with open(f"/proc/{recorder.pid}/status", encoding="ascii", errors="replace") as status:
            caught = int(re.search(r"^SigCgt:\s+(\w+)", status.read(), re.M)[1], 16)
        if caught >> (signal.SIGINT - 1) & 1:
            return
        assert recorder.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.long
def test_ctrl_c_ends_the_recording_and_writes_the_profile(program, tmp_path):
    process = subprocess.Popen([program, "1000000"])
    recorder = subprocess.Popen(
        [PERFOLIO, "record", "-p", str(process.pid), "-d", "60"],
        cwd=tmp_path,
        env={"HOME": str(tmp_path)},
        preexec_fn=signals_at_start,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_for_recording(recorder)
        let_it_run(process, 2)
        recorder.send_signal(signal.SIGINT)
        _, log = recorder.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert recorder.returncode == 0, log
    assert functions(tmp_path)["inner"]["flat"] > 0


def first_child(process):
    """Waits for the first child of the process and returns its pid."""
    deadline = time.monotonic() + 60
    while not (
        children := pathlib.Path(f"/proc/{process}/task/{process}/children").read_text().split()
    ):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return int(children[0])


@pytest.mark.parametrize("ending", rest_long([signal.SIGINT, signal.SIGTERM]))
def test_a_signal_received_twice_ends_only_the_recording(program, tmp_path, ending):
    """timeout forwards the signal to its child and then to the process group, which contains the
    builder of symbol tables."""
    outer = subprocess.Popen(
        ["timeout", "600", PERFOLIO, "record", "-F", "499", "--", program, "1000000"],
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
        stderr=subprocess.PIPE,
        text=True,
    )
    let_it_run(outer, 0.5, first_child(first_child(outer.pid)))
    outer.send_signal(ending)
    _, log = outer.communicate(timeout=60)
    assert outer.returncode == 0, log
    assert functions(tmp_path)["inner"]["flat"] > 0, log


@pytest.mark.long
def test_repeated_hangup_and_termination_signals_end_only_the_recording(program, tmp_path):
    recorder = subprocess.Popen(
        [PERFOLIO, "record", "-F", "499", "-d", "60", "-o", "profile.pb.gz", "-a"],
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
        preexec_fn=signals_at_start,
        stderr=subprocess.PIPE,
        text=True,
    )
    spinning = subprocess.Popen([program, "1000000"])
    try:
        wait_for_recording(recorder)
        let_it_run(spinning, 2)
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGHUP):
            recorder.send_signal(number)
        assert recorder.wait(60) == 0, recorder.stderr.read()
        assert functions(tmp_path)["inner"]["flat"] > 0
    finally:
        spinning.kill()
        spinning.wait()


@pytest.mark.long
@pytest.mark.parametrize("options", [[], ["--top"]])
def test_a_recording_is_written_after_its_terminal_closes(program, tmp_path, options):
    terminal, side = pty.openpty()
    recorder = subprocess.Popen(
        [
            PERFOLIO,
            "record",
            *options,
            "-o",
            "profile.pb.gz",
            "-F",
            "499",
            "-d",
            "60",
            "--",
            program,
            "60000",
        ],
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"], "TERM": "xterm"},
        stdin=side,
        stdout=side,
        stderr=side,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(side)
    os.set_blocking(terminal, False)
    recorded = []
    deadline = time.monotonic() + 120
    try:
        # The program starts when the recording begins.
        while not recorded or cpu_seconds(recorded[0]) < 2:
            assert time.monotonic() < deadline
            with contextlib.suppress(BlockingIOError):
                os.read(terminal, 65536)
            recorded = (
                recorded
                or pathlib.Path(f"/proc/{recorder.pid}/task/{recorder.pid}/children")
                .read_text()
                .split()
            )
            time.sleep(0.05)
        os.close(terminal)
        # --top writes to standard output, which has no reader any more.
        assert recorder.wait(60) == (-signal.SIGPIPE if options else 0)
    finally:
        for pid in recorded:  # it continues if the tests run with SIGHUP ignored
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
    assert functions(tmp_path)["inner"]["flat"] > 0


@pytest.mark.long
def test_an_ignored_hangup_does_not_end_the_recording(program, tmp_path):
    recorder = subprocess.Popen(
        ["nohup", PERFOLIO, "record", "-F", "499", "--", program, "1500"],
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
        # The first signal may arrive before nohup runs.
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    for _ in range(10):
        time.sleep(0.1)
        recorder.send_signal(signal.SIGHUP)
    assert recorder.wait(60) == 0
    assert functions(tmp_path)["inner"]["flat"] > 0


@pytest.mark.long
def test_kernel_functions_have_names_and_no_addresses(record, tmp_path):
    done = record(
        "-F", "997", "--", "dd", "if=/dev/urandom", "of=/dev/null", "bs=64k", "count=2000"
    )
    assert done.returncode == 0, done.stderr
    rows = functions(tmp_path)
    names = [name for name in rows if "chacha" in name or "random" in name]
    assert names, sorted(rows)[:40]
    # An address of the kernel would disclose its layout.
    assert not re.search(
        rb"\xff\xff\xff\xff\x01", gzip.decompress((tmp_path / "profile.pb.gz").read_bytes())
    )


CLOCK = r"""
#include <time.h>
int main(void)
{
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while (now.tv_sec - begin.tv_sec < 2);
    return 0;
}
"""


def test_vdso_functions_have_names(record, tmp_path):
    (tmp_path / "clock.c").write_text(CLOCK)
    subprocess.run(["gcc", "-O1", tmp_path / "clock.c", "-o", tmp_path / "clock"], check=True)
    done = record("-F", "499", "--", tmp_path / "clock")
    assert done.returncode == 0, done.stderr
    found = stacks(tmp_path / "profile.pb.gz")
    total = sum(count for _, count in found)
    named = sum(
        count
        for names, count in found
        if any(re.fullmatch("__(vdso|kernel)_clock_gettime", name) for name in names)
        and "main" in names
    )
    # If the vDSO cannot read the clock, it calls the kernel, and the sample still has its frame.
    assert total > 10 and named > 0.5 * total, found
    assert not any("[vdso]" in names for names, _ in found)


@pytest.mark.long
def test_a_shared_recording_has_names(record, program, server):
    environment = {
        "PERFOLIO_URL": server.url,
        "PERFOLIO_TOKEN": server.token,
        "PERFOLIO_CA_FILE": str(server.ca_file),
    }
    done = record(
        "--share", "--title", "spin", "-F", "499", "--", program, "300", environment=environment
    )
    assert done.returncode == 0, done.stderr
    link = done.stdout.strip()
    assert re.fullmatch(re.escape(server.url) + r"/p/[0-9A-Za-z]{22}", link)
    rows = server.api(server.token).get(f"/api/v1/shares/{link[-22:]}/top").json()
    names = [row["name"] for row in rows["functions"]]
    assert {"inner", "middle", "outer", "main"} <= set(names)


@pytest.mark.long
def test_a_recording_that_cannot_be_shared_is_saved_in_a_file(record, program, server, tmp_path):
    environment = {
        "PERFOLIO_URL": server.url,
        "PERFOLIO_TOKEN": "pf_" + 43 * "0",
        "PERFOLIO_CA_FILE": str(server.ca_file),
    }
    done = record("--share", "-F", "499", "--", program, "300", environment=environment)
    assert done.returncode != 0
    kept = re.search(
        r"^saved as (profile-\d{8}-\d{6}-\w{6}\.pb\.gz): `perfolio push \1' shares it$",
        done.stderr,
        re.M,
    )
    assert kept, done.stderr
    assert functions(tmp_path, kept[1])["inner"]["flat"] > 0
    done = record(
        "--share", "-o", "mine.pb.gz", "-F", "499", "--", program, "300", environment=environment
    )
    assert done.returncode != 0 and "saved as" not in done.stderr
    assert functions(tmp_path, "mine.pb.gz")["inner"]["flat"] > 0


@pytest.mark.long
def test_the_default_title_of_a_share_is_the_recorded_program(record, program, server):
    environment = {
        "PERFOLIO_URL": server.url,
        "PERFOLIO_TOKEN": server.token,
        "PERFOLIO_CA_FILE": str(server.ca_file),
    }
    process = subprocess.Popen([program, "1000000"])
    try:
        for options, title in (
            (["-p", process.pid, "-d", "0.3"], "spin"),
            (["-a", "-d", "0.3"], "all processes"),
            (["--", program, "200"], f"{program} 200"),
        ):
            done = record(
                "--share", "--json", "--no-names", "-F", "499", *options, environment=environment
            )
            assert done.returncode == 0, done.stderr
            share = (
                server.api(server.token)
                .get(f"/api/v1/shares/{json.loads(done.stdout)['id']}")
                .json()
            )
            assert share["title"] == title
    finally:
        process.kill()
        process.wait()


def test_without_privileges_the_error_lists_the_capabilities(program, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root to give up its rights")
    tmp_path.chmod(0o755)
    done = subprocess.run(
        [
            "setpriv",
            "--reuid=65534",
            "--clear-groups",
            "--bounding-set=-all",
            "--inh-caps=-all",
            PERFOLIO,
            "record",
            "-d",
            "0.1",
            "-o",
            "-",
            "-a",
        ],
        capture_output=True,
        text=True,
        timeout=60,
        env={"HOME": "/nonexistent"},
    )
    assert done.returncode == 4
    assert "CAP_BPF" in done.stderr and "CAP_PERFMON" in done.stderr


THREADS_AT_EXIT = """
#include <dirent.h>
#include <stdio.h>
__attribute__((destructor)) static void count(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int threads = -2; /* . and .. */
    while (readdir(tasks))
        threads++;
    printf("threads=%d\\n", threads);
    fflush(stdout);
}
"""


def test_no_thread_is_left_after_a_refusal(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root to give up its rights")
    (tmp_path / "threads.c").write_text(THREADS_AT_EXIT)
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "threads.c", "-o", "threads.so"], cwd=tmp_path, check=True
    )
    main, side = os.openpty()  # only a recording on a terminal starts the progress thread
    done = subprocess.run(
        [
            "setpriv",
            "--bounding-set=-all",
            "--inh-caps=-all",
            "env",
            f"LD_PRELOAD={tmp_path / 'threads.so'}",
            PERFOLIO,
            "record",
            "-a",
            "-o",
            tmp_path / "x.pb.gz",
        ],
        stdout=subprocess.PIPE,
        stderr=side,
        text=True,
        timeout=60,
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
    )
    message = os.read(main, 1 << 16)
    os.close(main)
    os.close(side)
    assert done.returncode == 4 and b"CAP_PERFMON" in message, message
    assert done.stdout == "threads=1\n"


@pytest.mark.parametrize(
    "arguments, words",
    [
        ([], "give what to record"),
        (["-a", "-p", "1"], "cannot be combined"),
        (["-p", "x"], "takes a process id"),
        (["-a", "-d", "0"], "takes seconds"),
        (["-a", "-F", "100000"], "takes a number from 1"),
        (["-a", "--title", "x"], "add --share"),
        (["-a", "-o", ""], "-o takes the name of a file"),
        (["--share", "--expires=xyz", "-a"], '--expires "xyz" is invalid: use never'),
        (["--share", "--expires=5m", "-a"], '--expires "5m" is invalid: use never'),
        (["--share", "--title", 201 * "x", "-a"], "--title has 201 characters, limit 200"),
        (["--share", "--description", "\x1b", "-a"], "--description contains control characters"),
    ],
)
def test_invalid_arguments_are_reported(record, arguments, words):
    done = record(*arguments)
    assert done.returncode == 2
    assert words in done.stderr


def test_a_missing_output_folder_is_reported_before_the_command_runs(record, tmp_path):
    done = record("-o", tmp_path / "nowhere" / "x.pb.gz", "--", "touch", tmp_path / "ran")
    assert done.returncode != 0 and "nowhere" in done.stderr
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("output", [".", "/proc/x.pb.gz"])
def test_an_unwritable_output_is_reported_before_the_command_runs(record, tmp_path, output):
    done = record("-o", output, "--", "touch", tmp_path / "ran")
    assert done.returncode == 1 and f"writing {output}: " in done.stderr
    assert not (tmp_path / "ran").exists()


def test_an_unwritable_folder_is_reported_before_the_command_runs(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root to be another user")
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    for options in ([], ["-o", "x.pb.gz"]):
        done = subprocess.run(
            [
                "setpriv",
                "--reuid=65534",
                "--clear-groups",
                PERFOLIO,
                "record",
                *options,
                "--",
                "echo",
                "ran",
            ],
            cwd=home,
            env={"HOME": "/nonexistent", "PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (
            done.returncode == 1
            and "give another file with -o" in done.stderr
            and "ran" not in done.stdout
        ), done.stderr


@pytest.mark.long
def test_a_recording_is_saved_elsewhere_if_its_file_cannot_be_written(
    record, program, server, tmp_path
):
    environment = {
        "PERFOLIO_URL": server.url,
        "PERFOLIO_TOKEN": server.token,
        "PERFOLIO_CA_FILE": str(server.ca_file),
    }
    done = record(
        "-o",
        "/dev/full",
        "--share",
        "--no-names",
        "-F",
        "499",
        "--",
        program,
        "300",
        environment=environment,
    )
    # The recording is shared nevertheless, and the status reports the failed write.
    assert done.returncode == 1 and "No space left" in done.stderr
    assert re.fullmatch(re.escape(server.url) + r"/p/[0-9A-Za-z]{22}", done.stdout.strip())
    kept = re.search(r"^saved as (profile-\S+\.pb\.gz): ", done.stderr, re.M)
    assert kept and pprof_reader.load(tmp_path / kept[1]).samples


@pytest.mark.long
@pytest.mark.parametrize("options", [[], ["-q"]])
def test_a_recording_saved_in_tmpdir_is_readable_by_its_user_only(program, tmp_path, options):
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    done = subprocess.run(
        [
            PERFOLIO,
            "record",
            *options,
            "--no-names",
            "-F",
            "499",
            "--",
            "sh",
            "-c",
            f"{program} 300; rm -r {here}",
        ],
        cwd=here,
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"], "TMPDIR": str(there)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    (kept,) = there.iterdir()
    assert done.returncode == 1 and f"saved as {kept}: " in done.stderr, done.stderr
    assert pprof_reader.load(kept).samples and kept.stat().st_mode & 0o777 == 0o600


@pytest.mark.long
def test_a_recording_saved_in_tmpdir_is_not_written_to_a_fifo(program, tmp_path):
    """Another user with write access to the folder knows the time, and with it the first part of
    the name."""
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    for second in range(60):
        os.mkfifo(
            there
            / time.strftime("profile-%Y%m%d-%H%M%S.pb.gz", time.localtime(time.time() + second))
        )
    done = subprocess.run(
        [
            PERFOLIO,
            "record",
            "--no-names",
            "-F",
            "499",
            "--",
            "sh",
            "-c",
            f"{program} 300; rm -r {here}",
        ],
        cwd=here,
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"], "TMPDIR": str(there)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    (kept,) = (file for file in there.iterdir() if file.is_file())
    assert f"saved as {kept}: " in done.stderr and kept.stat().st_mode & 0o777 == 0o600
    assert pprof_reader.load(kept).samples


@pytest.mark.long
@pytest.mark.parametrize("ending, status", [("exit 7", 7), ("kill -TERM $$", 143), ("exit 0", 0)])
def test_a_failing_command_is_recorded_and_its_status_returned(record, tmp_path, ending, status):
    busy = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done;"
    done = record("-F", "999", "-o", "out.pb.gz", "--", "sh", "-c", f"{busy} {ending}")
    assert done.returncode == status, done.stderr
    assert (tmp_path / "out.pb.gz").stat().st_size


def test_the_status_of_a_command_without_samples_is_returned(record):
    done = record("--", "sh", "-c", "exit 7")
    assert done.returncode == 7, done.stderr


def test_a_thread_id_is_reported_as_such(record):
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import threading, time\n"
            "threading.Thread(target=time.sleep, args=(600,), daemon=True).start(); print(1, "
            "flush=True); time.sleep(600)",
        ],
        stdout=subprocess.PIPE,
    )
    try:
        process.stdout.readline()
        (thread,) = {int(name) for name in os.listdir(f"/proc/{process.pid}/task")} - {process.pid}
        done = record("-p", thread, "-d", "0.1")
    finally:
        process.kill()
        process.wait()
    assert done.returncode == 5 and f"{thread} is a thread of process {process.pid}" in done.stderr


@pytest.mark.long
def test_a_recording_ends_with_its_command_despite_background_children(record, program, tmp_path):
    done = record(
        "-F",
        "997",
        "--",
        "sh",
        "-c",
        f"{program} 1000000 >/dev/null 2>&1 & echo $! > left; {program} 300",
    )
    left = int((tmp_path / "left").read_text())
    os.kill(left, signal.SIGKILL)
    assert done.returncode == 0, done.stderr
    assert functions(tmp_path)["inner"]["flat"] > 0


@pytest.mark.long
@pytest.mark.parametrize("options, is_reported", [([], True), (["-q"], False)])
def test_a_long_preparation_is_reported_on_a_terminal(program, tmp_path, options, is_reported):
    main, side = os.openpty()
    os.set_blocking(main, False)
    recorder = subprocess.Popen(
        [PERFOLIO, "record", *options, "-F", "997", "--", program, "200"],
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
        stderr=side,
    )
    output = b""

    def read_output():
        nonlocal output
        try:
            output += os.read(main, 1 << 16)
        except BlockingIOError:
            pass

    # The signals make the preparation long: the recorder runs a 40th of the time.
    begin = time.monotonic()
    while (
        recorder.poll() is None
        and b"preparing: " not in output
        and (is_reported or time.monotonic() - begin < 3)
    ):
        recorder.send_signal(signal.SIGSTOP)
        time.sleep(0.2)
        recorder.send_signal(signal.SIGCONT)
        time.sleep(0.005)
        read_output()
    assert recorder.wait(timeout=60) == 0, output
    read_output()
    os.close(main)
    os.close(side)
    assert (b"preparing: " in output and b"\nrecording\r\n" in output) == is_reported, output


def test_a_missing_command_and_a_missing_process_are_reported(record):
    done = record("--", "/nonexistent/bench")
    assert done.returncode == 5 and "/nonexistent/bench" in done.stderr
    done = record("-p", 2**22 - 1, "-d", "0.1")
    assert done.returncode == 5 and "process 4194303 does not exist" in done.stderr


def run_in_pid_namespace(tmp_path, *command):
    return subprocess.run(
        ["unshare", "--pid", "--fork", *map(str, command)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
    )


@pytest.mark.long
def test_the_proc_of_another_pid_namespace_is_refused(program, tmp_path):
    wanted = "/proc belongs to another PID namespace"
    done = run_in_pid_namespace(
        tmp_path, PERFOLIO, "record", "-F", "499", "--", "touch", tmp_path / "ran"
    )
    assert done.returncode == 1 and wanted in done.stderr and "--mount-proc" in done.stderr
    assert not (tmp_path / "ran").exists()
    done = run_in_pid_namespace(tmp_path, AGENT, "doctor")
    assert done.returncode == 1 and re.search(
        rf"^missing +/proc of this PID namespace: {wanted}", done.stdout, re.M
    )
    done = run_in_pid_namespace(tmp_path, AGENT, f"--offline-dir={tmp_path}/batches")
    assert done.returncode == 1 and wanted in done.stderr
    done = run_in_pid_namespace(
        tmp_path, "--mount-proc", PERFOLIO, "record", "-F", "499", "--", program, "300"
    )
    assert done.returncode == 0, done.stderr
    rows = functions(tmp_path)
    assert rows["inner"]["flat"] > 0.9 * rows["main"]["cum"]


MADE = r"""
#include <string.h>
#include <sys/mman.h>
int main(void)
{
    /* mov $1000000000, %ecx; 1: dec %ecx; jnz 1b; ret */
    static const unsigned char code[] = {0xb9, 0x00, 0xca, 0x9a, 0x3b,
                                         0xff, 0xc9, 0x75, 0xfc, 0xc3};
    void *made = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(made, code, sizeof(code));
    ((void (*)(void))made)();
    return 0;
}
"""


def nameless_percent(tmp_path):
    """Returns the percentage of samples whose leaf is code without a name."""
    found = stacks(tmp_path / "profile.pb.gz")
    nameless = sum(count for names, count in found if names[-1] == "[code without a name]")
    return round(100 * nameless / sum(count for _, count in found))


@pytest.mark.long
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="its code is made for this processor")
def test_the_percentage_of_unnamed_code_is_reported_per_program(record, tmp_path):
    (tmp_path / "made.c").write_text(MADE)
    subprocess.run(["gcc", "-O1", tmp_path / "made.c", "-o", tmp_path / "made"], check=True)
    done = record("-F", "499", "--", tmp_path / "made")
    assert done.returncode == 0, done.stderr
    (percent,) = re.findall(
        r"^(\d+) % of the samples are in code of made without a name: write a perf map, "
        r"/tmp/perf-PID.map, to name it",
        done.stderr,
        re.M,
    )
    assert int(percent) == nameless_percent(tmp_path) > 50
    done = record("-q", "-F", "499", "--", tmp_path / "made")
    assert done.returncode == 0 and "without a name" not in done.stderr


@pytest.mark.long
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="its code is made for this processor")
def test_a_perf_map_over_the_limit_is_reported_as_such(record, tmp_path):
    (tmp_path / "made.c").write_text(MADE)
    subprocess.run(["gcc", "-O1", tmp_path / "made.c", "-o", tmp_path / "made"], check=True)
    # exec keeps the pid of the shell for the program.
    names = (
        "awk 'BEGIN { for (i = 0; i < 12000; i++) { "
        'printf "%x 1 ", i + 4096; for (j = 0; j < 400; j++) printf "%010d", i; print "" } }\''
    )
    done = record(
        "-F",
        "499",
        "--",
        "sh",
        "-c",
        f"{names} > /tmp/perf-$$.map; echo $$; exec {tmp_path / 'made'}",
    )
    pathlib.Path(f"/tmp/perf-{int(done.stdout)}.map").unlink()
    assert done.returncode == 0, done.stderr
    assert (
        "1 process has more names of JIT-compiled code than the limit" in done.stderr
    ), done.stderr
    assert "without a name" not in done.stderr and "mapping" not in done.stderr
    found = stacks(tmp_path / "profile.pb.gz")
    assert any(names[-1] == "[name left out]" for names, _ in found)


@pytest.mark.long
@pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node")
@pytest.mark.parametrize("options", [[], ["--perf-basic-prof"]])
def test_unnamed_code_of_node_suggests_perf_basic_prof(record, tmp_path, options):
    script = "function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) } for (;;) fib(25)"
    process = subprocess.Popen(["node", *options, "-e", script])
    try:
        let_it_run(process, 1)
        done = record("-F", "199", "-d", "2", "-p", process.pid)
    finally:
        process.kill()
        process.wait()
    assert done.returncode == 0, done.stderr
    message = re.search(
        r"^(\d+) % of the samples are in code of node without a name: run node with "
        r"--perf-basic-prof to name it$",
        done.stderr,
        re.M,
    )
    percent = int(message[1]) if message else 0
    assert percent == nameless_percent(tmp_path) if percent else nameless_percent(tmp_path) <= 1
    assert percent < 20 if options else percent > 80, done.stderr


def test_an_ended_process_is_reported(record):
    process = subprocess.Popen(["true"])
    deadline = time.monotonic() + 60
    while "\nState:\tZ" not in pathlib.Path(f"/proc/{process.pid}/status").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    done = record("-p", process.pid, "-d", "0.1")
    process.wait()
    assert done.returncode == 5 and f"process {process.pid} has ended already" in done.stderr


# ---- symbolization ----

LIBRARY = """__attribute__((noinline)) int work{n}(int turns)
{{
    volatile int sum = 0;
    for (int i = 0; i < turns; i++)
        sum += i;
    return sum;
}}
"""
COUNTING_BUILDER = r"""#!/bin/bash
# Counts builders, and waits a while for another one to begin.
touch "{folder}/started.$$"
for _ in $(seq 600); do
    [ "$(ls "{folder}" | wc -l)" -gt 1 ] && touch "{folder}/../met" && break
    [ -e "{folder}/../met" ] && break
    sleep 0.1
done
exec "{builder}" "$@"
"""


@pytest.fixture
def program_with_libraries(tmp_path):
    """A program that spends its time in four of its own libraries, without debug information."""
    names = [f"part{n}" for n in range(4)]
    for n, name in enumerate(names):
        (tmp_path / f"{name}.c").write_text(LIBRARY.format(n=n))
        subprocess.run(
            [
                "gcc",
                "-O1",
                "-shared",
                "-fPIC",
                "-fno-omit-frame-pointer",
                "-Wl,--build-id",
                f"{name}.c",
                "-o",
                f"lib{name}.so",
            ],
            check=True,
            cwd=tmp_path,
        )
    calls = "".join(f"    work{n}(30000000);\n" for n in range(4))
    declarations = "".join(f"int work{n}(int);\n" for n in range(4))
    (tmp_path / "main.c").write_text(
        f"{declarations}int main(void)\n{{\n{calls}    return 0;\n}}\n"
    )
    subprocess.run(
        [
            "gcc",
            "-O1",
            "-fno-omit-frame-pointer",
            "-Wl,--build-id",
            "main.c",
            "-o",
            "parts",
            "-L.",
            *(f"-l{name}" for name in names),
            f"-Wl,-rpath,{tmp_path}",
        ],
        check=True,
        cwd=tmp_path,
    )
    return tmp_path / "parts"


@pytest.mark.long
def test_each_binary_is_symbolized_once_and_in_parallel(program_with_libraries, tmp_path):
    """An earlier version started the builder twice for each binary without DWARF, and in
    sequence."""
    started, programs = tmp_path / "started", tmp_path / "programs"
    started.mkdir()
    programs.mkdir()
    shutil.copy(PERFOLIO, programs / "perfolio")
    builder = programs / "perfolio-symbolize"
    builder.write_text(
        COUNTING_BUILDER.format(folder=started, builder=PERFOLIO.with_name("perfolio-symbolize"))
    )
    builder.chmod(0o755)
    done = subprocess.run(
        [programs / "perfolio", "record", "-F", "999", "--", program_with_libraries],
        cwd=tmp_path,
        timeout=300,
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert {f"work{n}" for n in range(4)} <= set(functions(tmp_path))
    table = subprocess.run(
        [
            PERFOLIO,
            "top",
            "--group-by",
            "binary",
            "--json",
            "--limit",
            "0",
            tmp_path / "profile.pb.gz",
        ],
        check=True,
        env={"HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    ).stdout
    binaries = {
        row["name"] for row in json.loads(table)["functions"] if not row["name"].startswith("[")
    }
    assert 4 <= len(list(started.iterdir())) <= len(binaries), binaries
    if os.cpu_count() > 1:
        assert (tmp_path / "met").exists()


@pytest.mark.long
def test_symbolization_is_reported_only_with_progress(record, program_with_libraries):
    line = r"^looking for names of functions in \d+ files$"
    assert re.search(
        line, record("--progress", "-F", "999", "--", program_with_libraries).stderr, re.M
    )
    assert not re.search(line, record("-F", "999", "--", program_with_libraries).stderr, re.M)
