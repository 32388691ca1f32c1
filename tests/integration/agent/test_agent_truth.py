"""Tests the stacks that `perfolio record` samples of programs with known call chains.

The kernel unwinds the stacks. At least 99 % of the samples must reach the root and contain the
expected functions in call order."""

import os
import pathlib
import re
import shutil
import subprocess
import time

import pytest

from conftest import PERFOLIO, ROOT as REPOSITORY, let_it_run, rest_long
from test_record import REFUSAL, stacks

GO_CACHE = str(REPOSITORY / "build" / "go-cache")  # so that the standard library is compiled once
PROGRAMS = pathlib.Path(__file__).resolve().parents[2] / "agent"
ROOT = {
    "_start",
    "clone",
    "clone3",
    "__clone",
    "__clone3",
    "start_thread",
    "runtime.goexit.abi0",
    "runtime.goexit",
    "runtime.mstart.abi0",
    "runtime.mstart",
    "runtime.rt0_go.abi0",
    "runtime.rt0_go",
    "runtime.asmcgocall.abi0",
    "runtime.systemstack.abi0",
    "runtime.mcall",
    "runtime.mcall.abi0",
    "runtime.morestack.abi0",
}

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(REFUSAL is not None, reason=f"the kernel refuses: {REFUSAL}"),
]


def needs(program):
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"there is no {program}")


def run(*command, cwd, **environment):
    """Runs a compiler or a tool that must succeed."""
    subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=300,
        env={**os.environ, **environment},
    )


class Recording:
    def __init__(self, file, log):
        self.rows = stacks(file)
        self.log = log
        self.total = sum(count for _, count in self.rows)
        summary = re.search(r"^stacks that end before their root: (.*)$", log, re.M)
        self.incomplete = (
            sum(int(number) for number in re.findall(r"(\d+) [a-z-]+", summary[1]))
            if summary
            else 0
        )

    def fraction(self, is_whole, leaf):
        """Returns the fraction of the samples containing leaf for which is_whole is true."""
        with_leaf = [(names, count) for names, count in self.rows if leaf in names]
        total = sum(count for _, count in with_leaf)
        assert total > 100, (total, self.rows[:5], self.log)
        return sum(count for names, count in with_leaf if is_whole(names)) / total


def in_order(names, wanted):
    rest = iter(names)
    return all(name in rest for name in wanted)


def record(command, folder, seconds=3, frequency=999, pause=1.0, environment=None, options=()):
    """Starts command and attaches to it after pause seconds, when its mappings are known. The
    tests check unwinding, not how soon a new mapping is found."""
    process = subprocess.Popen(
        [str(word) for word in command],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        env={**os.environ, **(environment or {})},
        start_new_session=True,
    )
    try:
        time.sleep(pause)
        assert process.poll() is None
        done = subprocess.run(
            [
                PERFOLIO,
                "record",
                "-p",
                str(process.pid),
                "-d",
                str(seconds),
                "-F",
                str(frequency),
                *options,
            ],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=180,
            env={"HOME": str(folder), "PATH": os.environ["PATH"]},
        )
    finally:
        os.killpg(process.pid, 9)
        process.wait()
    assert done.returncode == 0, done.stderr
    return Recording(folder / "profile.pb.gz", done.stderr)


def check(recording, leaf, wanted, roots=ROOT):
    assert recording.incomplete <= 0.01 * recording.total, recording.log

    def is_whole(names):
        return bool(set(names[:3]) & roots) and in_order(names, wanted)

    fraction = recording.fraction(is_whole, leaf)
    assert fraction >= 0.99, (
        fraction,
        [row for row in recording.rows if leaf in row[0] and not is_whole(row[0])][:5],
    )


@pytest.fixture(scope="module")
def truth(tmp_path_factory):
    folder = tmp_path_factory.mktemp("truth")
    run(
        "gcc",
        "-O2",
        "-g",
        "-fomit-frame-pointer",
        "-Wl,--build-id",
        PROGRAMS / "truth.c",
        "-pthread",
        "-o",
        folder / "truth",
        cwd=folder,
    )
    run(
        "gcc",
        "-O2",
        "-g",
        "-fomit-frame-pointer",
        "-static",
        "-Wl,--build-id",
        PROGRAMS / "truth.c",
        "-pthread",
        "-o",
        folder / "truth-static",
        cwd=folder,
    )
    return folder


@pytest.mark.parametrize(
    "arguments, wanted",
    rest_long(
        [
            ("deep 500", ["_start", "main", "descend", "spin"]),
            ("signal", ["_start", "main", "interrupted", "on_signal", "spin"]),
            ("thread", ["on_thread", "descend", "spin"]),
            ("aligned", ["_start", "main", "on_aligned", "on_alloca", "spin"]),
            ("large", ["_start", "main", "on_large_frame", "spin"]),
            ("vfork", ["_start", "main", "on_vfork", "spin"]),
            ("callback", ["_start", "main", "on_callback", "compare", "spin"]),
        ],
        3,
    ),
)
def test_c_code_without_frame_pointers_is_unwound(truth, tmp_path, arguments, wanted):
    check(record([truth / "truth", *arguments.split()], tmp_path), "spin", wanted)


def test_code_of_a_library_that_is_loaded_repeatedly_is_unwound(truth, tmp_path):
    recording = record([truth / "truth", "library"], tmp_path)
    check(recording, "on_library", ["_start", "main", "on_library"])


PLUGIN = """
static volatile unsigned sum;
__attribute__((noinline, noclone)) void NAME(void);
void NAME(void)
{
    for (unsigned i = 0; i < 20000; i++)
        sum = sum * 3 + i;
    __asm__ volatile("" ::: "memory");
}
void work(void);
void work(void) { NAME(); __asm__ volatile("" ::: "memory"); }
"""


@pytest.mark.long
@pytest.mark.parametrize("build_id", ["none", "sha1"])
def test_libraries_mapped_at_the_same_address_are_distinguished(truth, tmp_path, build_id):
    for name in ["first", "second"]:
        (tmp_path / f"{name}.c").write_text(PLUGIN.replace("NAME", f"{name}_plugin"))
        run(
            "gcc",
            "-O2",
            "-g",
            "-fPIC",
            "-shared",
            f"-Wl,--build-id={build_id}",
            f"{name}.c",
            "-o",
            f"{name}.so",
            cwd=tmp_path,
        )
    recording = record([truth / "truth", "plugins"], tmp_path)
    counts = {
        name: sum(count for names, count in recording.rows if f"{name}_plugin" in names)
        for name in ["first", "second"]
    }
    assert min(counts.values()) >= 0.35 * recording.total, (counts, recording.rows[:5])
    for name in counts:
        check(
            recording, f"{name}_plugin", ["_start", "main", "on_plugin", "work", f"{name}_plugin"]
        )


def test_forked_children_without_exec_are_unwound(truth, tmp_path):
    check(
        record([truth / "truth", "fork"], tmp_path),
        "on_library",
        ["_start", "main", "on_fork", "on_library"],
    )


@pytest.mark.long
@pytest.mark.parametrize("pause", [1.0, 3.0])
def test_threads_that_outlive_the_main_thread_are_unwound(truth, tmp_path, pause):
    """The main thread exits after two seconds, before or during the recording. The other thread
    works from the sixth second on."""
    recording = record([truth / "truth", "survivor"], tmp_path, seconds=8, pause=pause)
    check(recording, "spin", ["on_survivor", "on_thread", "descend", "spin"])


@pytest.mark.long
@pytest.mark.parametrize("options", [(), ("--bounded-loops",)], ids=["loop", "bounded"])
@pytest.mark.parametrize("per_second, milliseconds", [(2, 600), (200, 3)])
@pytest.mark.parametrize("program", ["truth", "truth-static"])
def test_stacks_are_complete_from_the_start_of_a_program(
    truth, tmp_path, program, per_second, milliseconds, options
):
    """Samples taken before the mappings of a program are known include a copy of its stack. The
    kernel reports the mappings of a static program before its exec event: they must be kept."""
    recording = record(
        [truth / program, "exec", per_second, milliseconds],
        tmp_path,
        seconds=5,
        frequency=199,
        options=options,
    )
    assert recording.incomplete <= 0.01 * recording.total, recording.log
    assert (
        recording.fraction(lambda names: "_start" in names[:3] and "main" in names, "spin") >= 0.99
    ), recording.log


RUST = """
#[inline(never)]
fn inner(n: u64) -> u64 { (0..n).fold(1, |a, i| std::hint::black_box(a ^ i.wrapping_mul(a))) }
#[inline(never)]
fn middle(n: u64) -> u64 { std::hint::black_box(inner(n)) + 1 }
#[inline(never)]
fn outer(f: &dyn Fn(u64) -> u64) -> u64 { std::hint::black_box(f(100000)) + 1 }
fn main() { loop { std::hint::black_box(outer(&|n| std::hint::black_box(middle(n)) + 2)); } }
"""


def plain(recording):
    """Removes the crate and the hash from the names of Rust functions."""
    recording.rows = [
        ([re.sub(r"::h[0-9a-f]{16}$", "", name).split("::")[-1] for name in names], count)
        for names, count in recording.rows
    ]
    return recording


@pytest.mark.long
@needs("rustc")
def test_rust_code_is_unwound(tmp_path):
    (tmp_path / "work.rs").write_text(RUST)
    run("rustc", "-O", "-g", "-C", "force-frame-pointers=no", "work.rs", "-o", "work", cwd=tmp_path)
    check(
        plain(record([tmp_path / "work"], tmp_path)),
        "inner",
        ["_start", "outer", "middle", "inner"],
    )


GO = """package main

//go:noinline
func inner(n int) int {
	sum := 0
	for i := 0; i < n; i++ {
		sum ^= i * sum + i
	}
	return sum
}

//go:noinline
func outer(n int) int { return inner(n) + 1 }

func work() {
	for {
		outer(1000000)
	}
}

func main() {
	go work()
	work()
}
"""


@pytest.mark.long
@needs("go")
@pytest.mark.parametrize(
    "flags",
    [(), ("-ldflags=-s -w",), ("-buildmode=pie",)],
    ids=["as-built", "stripped", "placed-when-it-starts"],
)
def test_go_code_is_unwound(tmp_path, flags):
    """Go keeps frame pointers except in leaf functions. Go's own function table finds the caller
    of a leaf."""
    (tmp_path / "work.go").write_text(GO)
    run(
        "go",
        "build",
        *flags,
        "-o",
        "work",
        "work.go",
        cwd=tmp_path,
        GOCACHE=GO_CACHE,
        GOFLAGS="-mod=mod",
    )
    check(
        record([tmp_path / "work"], tmp_path),
        "main.inner",
        ["main.work", "main.outer", "main.inner"],
    )


CGO = """package main

/*
__attribute__((noinline)) long c_inner(long n) {
    volatile long sum = 0;
    for (long i = 0; i < n; i++) sum += i;
    return sum;
}
__attribute__((noinline)) long c_outer(long n) { return c_inner(n) + 1; }
*/
import "C"

//go:noinline
func outer(n int) int { return int(C.c_outer(C.long(n))) + 1 }

func main() {
	for {
		outer(1000000)
	}
}
"""


@pytest.mark.long
@needs("go")
@needs("gcc")
def test_calls_from_go_to_c_are_unwound(tmp_path):
    (tmp_path / "work.go").write_text(CGO)
    run(
        "go",
        "build",
        "-o",
        "work",
        "work.go",
        cwd=tmp_path,
        GOCACHE=GO_CACHE,
        GOFLAGS="-mod=mod",
        CGO_CFLAGS="-O2 -g -fomit-frame-pointer",
    )
    check(record([tmp_path / "work"], tmp_path), "c_inner", ["main.outer", "c_outer", "c_inner"])


FIB = "function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) } for (;;) fib(25)"


@pytest.mark.long
@needs("node")
def test_node_code_without_a_perf_map_has_a_placeholder_name(tmp_path):
    recording = record(["node", "-e", FIB], tmp_path)
    check(recording, "[code without a name]", ["_start", "node::Start", "[code without a name]"])


@pytest.mark.long
@needs("node")
def test_node_code_gets_names_from_a_perf_map(tmp_path):
    recording = record(["node", "--perf-basic-prof", "-e", FIB], tmp_path)
    recording.rows = [
        (["fib" if re.search(r"\bfib\b", name) else name for name in names], count)
        for names, count in recording.rows
    ]
    check(recording, "fib", ["_start", "node::Start", "fib"])


JAVA = """
public class Work {
    static long inner(long n) {
        long sum = 1;
        for (long i = 0; i < n; i++) sum ^= i * sum + i;
        return sum;
    }
    static long outer(long n) { return inner(n) + 1; }
    public static void main(String[] words) { long sum = 0; for (;;) sum += outer(200000); }
}
"""


def write_perf_map(pid, folder):
    """Writes the map until it contains both methods, which happens once they are compiled."""
    deadline = time.monotonic() + 180
    while True:
        run("jcmd", pid, "Compiler.perfmap", cwd=folder)
        text = pathlib.Path(f"/tmp/perf-{pid}.map").read_text()
        if all(re.search(rf"Work(\.|::){name}\b", text) for name in ("inner", "outer")):
            return
        assert time.monotonic() < deadline, text[-2000:]
        time.sleep(0.2)


@pytest.mark.long
@needs("javac")
@needs("jcmd")
def test_java_code_with_frame_pointers_gets_names_from_a_perf_map(tmp_path):
    (tmp_path / "Work.java").write_text(JAVA)
    run("javac", "Work.java", cwd=tmp_path)
    # Only the first compiler tier: the second one could compile code after the map was written,
    # and that code would have no name.
    command = [
        "java",
        "-XX:+PreserveFramePointer",
        "-XX:TieredStopAtLevel=1",
        "-XX:CompileCommand=dontinline,Work.*",
        "-XX:+UseSerialGC",
        "Work",
    ]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL)
    try:
        let_it_run(process, 2)
        write_perf_map(process.pid, tmp_path)
        done = subprocess.run(
            [PERFOLIO, "record", "-p", str(process.pid), "-d", "3", "-F", "999"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=180,
            env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
        )
    finally:
        process.kill()
        process.wait()
        pathlib.Path(f"/tmp/perf-{process.pid}.map").unlink(missing_ok=True)
    assert done.returncode == 0, done.stderr
    recording = Recording(tmp_path / "profile.pb.gz", done.stderr)
    recording.rows = [
        ([re.sub(r".*Work(\.|::)(\w+).*", r"\2", name) for name in names], count)
        for names, count in recording.rows
    ]
    check(recording, "inner", ["outer", "inner"])
