"""perfolio record: real programs are sampled in the kernel, and what comes out names what they did."""

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

from conftest import PERFOLIO, ROOT, let_it_run

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
    """Why this machine cannot sample, as perfolio says it; None: it can."""
    done = subprocess.run([PERFOLIO, "record", "-q", "--no-names", "-d", "0.05", "-o", "/dev/null", "-a"], timeout=60,
                          capture_output=True, text=True, env={"HOME": "/nonexistent"})
    return done.stderr.strip() if done.returncode in (1, 4) and "no sample" not in done.stderr else None


REFUSAL = refusal()
pytestmark = pytest.mark.skipif(REFUSAL is not None, reason=f"the kernel refuses: {REFUSAL}")


@pytest.fixture
def record(tmp_path):
    def call(*arguments, environment=None):
        return subprocess.run([str(PERFOLIO), "record", *map(str, arguments)], cwd=tmp_path, timeout=120,
                              env={"HOME": str(tmp_path), "PATH": os.environ["PATH"], **(environment or {})},
                              capture_output=True, text=True)

    return call


@pytest.fixture
def program(tmp_path):
    (tmp_path / "spin.c").write_text(SOURCE)
    path = tmp_path / "spin"
    subprocess.run(["gcc", "-g", "-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls",
                    "-Wl,--build-id", tmp_path / "spin.c", "-o", path], check=True)
    return path


def functions(tmp_path, file="profile.pb.gz"):
    """What each function has, as the command line's own reader says."""
    done = subprocess.run([str(PERFOLIO), "top", "--json", str(tmp_path / file)], check=True,
                          env={"HOME": str(tmp_path)}, capture_output=True, text=True)
    return {row["name"]: row for row in json.loads(done.stdout)["functions"]}


def test_a_command_is_recorded_from_its_root_to_its_leaf(record, program, tmp_path):
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
    """[(functions from the root, samples)], as the tests' own reader has them."""
    profile = pprof_reader.load(file)

    def names(location_id):
        lines = profile.locations[location_id]["line"]
        return [profile.functions[line["function_id"]]["name"] for line in reversed(lines)] or ["?"]

    return [([name for location_id in reversed(sample.stack) for name in names(location_id)],
             sample.values[0]) for sample in profile.samples]


@pytest.mark.parametrize("depth, options", [(5, []), (25, []), (95, []), (480, []),
                                            (5, ["--bounded-loops"]), (480, ["--bounded-loops"])])
def test_code_without_frame_pointers_is_walked_to_its_root(record, tmp_path, depth, options):
    (tmp_path / "deep.c").write_text(DEEP)
    subprocess.run(["gcc", "-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-Wl,--build-id",
                    tmp_path / "deep.c", "-o", tmp_path / "deep"], check=True)
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
        # On the way down there are fewer calls, but all of them have their root.
        whole += count if names[0] == "_start" and "main" in names and (
            calls == depth or "leaf" not in names) else 0
    assert total > 10 and deepest == depth
    assert whole >= 0.99 * total, (whole, total)


def share_with_root(file, roots):
    found = stacks(file)
    total = sum(count for _, count in found)
    return total, sum(count for names, count in found if set(names[:2]) & roots) / total


def record_while_it_runs(record, command, folder, seconds=2, frequency=499):
    """Not from the start: what is measured is the walk, not how soon a program's mappings are known."""
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


def test_cpp_with_exceptions_is_walked_to_its_root(record, tmp_path):
    (tmp_path / "work.cc").write_text(CPP)
    subprocess.run(["g++", "-O2", "-fomit-frame-pointer", tmp_path / "work.cc", "-o", tmp_path / "work"],
                   check=True)
    # Half a percent is lost: among many samples it cannot be one percent by chance.
    record_while_it_runs(record, [tmp_path / "work"], tmp_path, 4, 9973)
    found = stacks(tmp_path / "profile.pb.gz")
    total = sum(count for _, count in found)
    lost = [names for names, _ in found if "_start" not in names[:2]]
    # While libgcc puts another frame's return address in the place of its own, nobody can tell where
    # the caller's frame is: no unwinder walks over that.
    assert all("_Unwind_RaiseException" in names or "_Unwind_Resume" in names for names in lost), lost
    assert total > 1000 and len(lost) <= 0.01 * total
    assert any("thrower" in names and "_Unwind_RaiseException" in names for names, _ in found)


def test_python_is_walked_to_its_root(record, tmp_path):
    record_while_it_runs(record, ["/usr/bin/python3", "-c", "while True: sum(i * i for i in range(1000))"],
                         tmp_path)
    total, share = share_with_root(tmp_path / "profile.pb.gz", {"_start"})
    assert total > 10 and share >= 0.99


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node")
def test_node_is_walked_to_its_root_and_a_perf_map_names_its_functions(record, tmp_path):
    script = "function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) } for (;;) fib(25)"
    record_while_it_runs(record, ["node", "--perf-basic-prof", "-e", script], tmp_path)
    total, share = share_with_root(tmp_path / "profile.pb.gz",
                                   {"_start", "clone3", "__clone3", "start_thread", "__clone"})
    assert total > 10 and share >= 0.99
    assert any(re.search(r"\bfib\b", name) for names, _ in stacks(tmp_path / "profile.pb.gz")
               for name in names)


JITDUMP_SCRIPT = """
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }
for (const end = Date.now() + 300; Date.now() < end;) fib(20);
// Node writes the file in pieces of 2 MB: what comes next pushes fib out.
for (let i = 0; i < 3000; i++) new Function("x", "return x + " + i + " + " + "x * 3 + ".repeat(20) + "1")(i);
require("fs").writeFileSync("ready", "");
for (;;) fib(25);
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node")
def test_a_jitdump_names_the_functions_of_node(record, tmp_path):
    (tmp_path / "work.js").write_text(JITDUMP_SCRIPT)
    process = subprocess.Popen(["node", "--perf-prof", "work.js"], cwd=tmp_path, stdout=subprocess.DEVNULL)
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
    named = sum(count for names, count in found
                if sum(bool(re.fullmatch(r"JS:\S*fib .*work\.js:2:\d+", name)) for name in names) > 5)
    assert total > 10 and named > 0.9 * total, (named, total)


@pytest.mark.parametrize("command", [["{}", "100"], ["sh", "-c", "{} 100; exit 0"]])
def test_the_command_is_the_first_mapping_as_pprof_expects_its_main_program(record, program, tmp_path, command):
    command = [word.format(program) for word in command]
    done = record("-F", "997", "--", *command)
    assert done.returncode == 0, done.stderr
    profile = pprof_reader.load(tmp_path / "profile.pb.gz")
    first = profile.mappings[min(profile.mappings)]
    assert first["filename"] == os.path.realpath(shutil.which(command[0]))
    # Others have kept theirs.
    kept = functions(tmp_path)
    assert kept["inner"]["flat"] > 0.9 * kept["main"]["cum"]
    files = {line["function_id"]: profile.mappings[location["mapping_id"]]["filename"]
             for location in profile.locations.values() for line in location["line"]
             if location["mapping_id"]}
    assert {file for function, file in files.items()
            if profile.functions[function]["name"] == "inner"} == {str(program)}


def test_children_belong_to_the_command(record, program, tmp_path):
    done = record("-F", "997", "-o", "child.pb.gz", "--", program, "200", "fork")
    assert done.returncode == 0, done.stderr
    rows = functions(tmp_path, "child.pb.gz")
    assert rows["inner"]["flat"] > 0


def test_samples_say_of_which_process_and_thread_they_are(record, program, tmp_path):
    done = record("-F", "997", "-o", "labels.pb.gz", "--", "sh", "-c", f"{program} 300; {program} 300; true")
    assert done.returncode == 0, done.stderr
    found = {}
    for sample in pprof_reader.load(tmp_path / "labels.pb.gz").samples:
        labels = {label[0]: label[1] for label in sample.labels}
        assert labels.keys() == {"process", "thread", "pid"}
        found.setdefault(labels["process"], set()).add(labels["pid"])
    assert len(found["spin"]) == 2


def test_without_the_builder_of_symbol_tables_that_is_said_once(program, tmp_path):
    alone = tmp_path / "bin" / "perfolio"
    alone.parent.mkdir()
    shutil.copy(PERFOLIO, alone)
    done = subprocess.run([alone, "record", "-F", "997", "--", program, "200"], cwd=tmp_path, timeout=120,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("perfolio-symbolize") == 1 and "no names here" in done.stderr


def test_a_running_process_is_recorded_by_its_number(record, program, tmp_path):
    process = subprocess.Popen([program, "1000000"])
    try:
        done = record("-p", process.pid, "-d", "0.5", "-F", "997")
    finally:
        process.kill()
        process.wait()
    assert done.returncode == 0, done.stderr
    rows = functions(tmp_path)
    assert rows["inner"]["flat"] > 0.9 * rows["main"]["cum"]


IN_MEMORY = """
import os, sys
fd = os.memfd_create("spin")
os.write(fd, open(sys.argv[1], "rb").read())
os.execve(fd, ["spin", "1000000"], {})
"""


@pytest.mark.parametrize("where", ["deleted", "replaced", "in memory", "in a container"])
def test_a_program_that_no_path_leads_to_has_names(record, program, tmp_path, where):
    copy = tmp_path / "copy"
    shutil.copy(program, copy)
    root = tmp_path / "root"
    root.mkdir()
    begin = {"in memory": [sys.executable, "-c", IN_MEMORY, copy],
             "in a container": ["unshare", "-m", "sh", "-c", f"mount -t tmpfs none {root} && cp {copy} {root}/spin && exec {root}/spin 1000000"]}
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


def catches(process, number):
    with open(f"/proc/{process.pid}/status", encoding="ascii", errors="replace") as status:
        return int(re.search(r"^SigCgt:\s+(\w+)", status.read(), re.M)[1], 16) >> (number - 1) & 1


def test_ctrl_c_ends_the_recording_and_not_the_profile(program, tmp_path):
    process = subprocess.Popen([program, "1000000"])
    recorder = subprocess.Popen([PERFOLIO, "record", "-p", str(process.pid), "-d", "60"], cwd=tmp_path,
                                env={"HOME": str(tmp_path)}, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 60
        while not catches(recorder, signal.SIGINT):
            assert recorder.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        let_it_run(process, 2)
        recorder.send_signal(signal.SIGINT)
        _, log = recorder.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert recorder.returncode == 0, log
    assert functions(tmp_path)["inner"]["flat"] > 0


def test_the_kernels_functions_have_names_and_no_addresses(record, tmp_path):
    done = record("-F", "997", "--", "dd", "if=/dev/urandom", "of=/dev/null", "bs=64k", "count=2000")
    assert done.returncode == 0, done.stderr
    rows = functions(tmp_path)
    names = [name for name in rows if "chacha" in name or "random" in name]
    assert names, sorted(rows)[:40]
    # An address of the kernel would tell where it lies.
    assert not re.search(rb"\xff\xff\xff\xff\x01", gzip.decompress((tmp_path / "profile.pb.gz").read_bytes()))


def test_a_shared_recording_is_a_link_with_names(record, program, server):
    environment = {"PERFOLIO_URL": server.url, "PERFOLIO_TOKEN": server.token,
                   "PERFOLIO_CA_FILE": str(server.ca_file)}
    done = record("--share", "--title", "spin", "-F", "499", "--", program, "300", environment=environment)
    assert done.returncode == 0, done.stderr
    link = done.stdout.strip()
    assert re.fullmatch(re.escape(server.url) + r"/p/[0-9A-Za-z]{22}", link)
    rows = server.api(server.token).get(f"/api/v1/shares/{link[-22:]}/top").json()
    names = [row["name"] for row in rows["functions"]]
    assert {"inner", "middle", "outer", "main"} <= set(names)


def test_what_could_not_be_shared_is_kept(record, program, server, tmp_path):
    environment = {"PERFOLIO_URL": server.url, "PERFOLIO_TOKEN": "pf_" + 43 * "0", "PERFOLIO_CA_FILE": str(server.ca_file)}
    done = record("--share", "-F", "499", "--", program, "300", environment=environment)
    assert done.returncode != 0
    kept = re.search(r"^kept as (profile-\d{8}-\d{6}\.pb\.gz): `perfolio push \1' shares it$", done.stderr, re.M)
    assert kept, done.stderr
    assert functions(tmp_path, kept[1])["inner"]["flat"] > 0
    done = record("--share", "-o", "mine.pb.gz", "-F", "499", "--", program, "300", environment=environment)
    assert done.returncode != 0 and "kept as" not in done.stderr
    assert functions(tmp_path, "mine.pb.gz")["inner"]["flat"] > 0


def test_a_share_without_a_title_is_called_after_what_was_recorded(record, program, server):
    environment = {"PERFOLIO_URL": server.url, "PERFOLIO_TOKEN": server.token, "PERFOLIO_CA_FILE": str(server.ca_file)}
    process = subprocess.Popen([program, "1000000"])
    try:
        for options, title in ((["-p", process.pid, "-d", "0.3"], "spin"), (["-a", "-d", "0.3"], "all processes"),
                               (["--", program, "200"], f"{program} 200")):
            done = record("--share", "--json", "--no-names", "-F", "499", *options, environment=environment)
            assert done.returncode == 0, done.stderr
            share = server.api(server.token).get(f"/api/v1/shares/{json.loads(done.stdout)['id']}").json()
            assert share["title"] == title
    finally:
        process.kill()
        process.wait()


def test_without_rights_it_says_what_to_grant(program, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root to give up its rights")
    tmp_path.chmod(0o755)
    done = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", "--bounding-set=-all",
                           "--inh-caps=-all", PERFOLIO, "record", "-d", "0.1", "-o", "-", "-a"],
                          capture_output=True, text=True, timeout=60, env={"HOME": "/nonexistent"})
    assert done.returncode == 4
    assert "CAP_BPF" in done.stderr and "CAP_PERFMON" in done.stderr


@pytest.mark.parametrize("arguments, words", [
    ([], "name what to record"),
    (["-a", "-p", "1"], "exclude each other"),
    (["-p", "x"], "takes the number of a process"),
    (["-a", "-d", "0"], "takes seconds"),
    (["-a", "-F", "100000"], "takes a number from 1"),
    (["-a", "--title", "x"], "add --share"),
])
def test_mistakes_are_explained(record, arguments, words):
    done = record(*arguments)
    assert done.returncode == 2
    assert words in done.stderr


def test_a_folder_that_is_not_there_is_told_before_the_command_runs(record, tmp_path):
    done = record("-o", tmp_path / "nowhere" / "x.pb.gz", "--", "touch", tmp_path / "ran")
    assert done.returncode != 0 and "nowhere" in done.stderr
    assert not (tmp_path / "ran").exists()


def test_a_command_that_cannot_be_run_and_a_process_that_is_not_there(record):
    done = record("--", "/nonexistent/bench")
    assert done.returncode == 5 and "/nonexistent/bench" in done.stderr
    done = record("-p", 2**22 - 1, "-d", "0.1")
    assert done.returncode == 5 and "no process" in done.stderr
