#!/usr/bin/env python3
"""make bench-agent: the cost of perfolio-agent on its host, compared to `perf record` in one run.

  tests/bench/agent.py [PART …]   unwind, busy, aggregate, depth, start, tables; by default all

BENCH_SECONDS (20) is the duration of each measurement, BENCH_PROCESSES (150) the number of
processes on the host. The cost of a sample is the CPU time that the kernel counts for BPF programs
(kernel.bpf_stats_enabled, which is restored afterwards); the counting itself takes about 20 ns of
each run. The cost of unwinding N frames is the cost of a stack of N frames minus that of a stack of
one frame, divided by N - 1 and multiplied by N. A core is busy if it is not idle, whichever process
uses it. Memory is resident memory, including the mapped tables of the kernel program, which also
count as BPF memory. The cost of perf in the kernel is not part of the CPU time of its process and
is not measured.

"depth" samples the same processes at the same time with `perfolio record` and `perf record
--call-graph dwarf`: number of frames of the program per stack, number of stacks that reach the
entry of the program, and bytes per sample that the kernel transfers. In this part the results of
perf are the goals. Neither counts inlined frames.

Needs root. A result that misses its goal (a goal of the project) is marked, and the run passes.
"""

import contextlib
import csv
import os
import pathlib
import re
import signal
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "oracle"))
import pprof_reader  # noqa: E402

ROOT = HERE.parents[1]
BUILD = ROOT / "build" / os.environ.get("BUILD", "release")
WORK = ROOT / "build" / "bench"
SECONDS = float(os.environ.get("BENCH_SECONDS", "20"))
PROCESSES = int(os.environ.get("BENCH_PROCESSES", "150"))
STATS = pathlib.Path("/proc/sys/kernel/bpf_stats_enabled")
CORES = os.cpu_count()
BPF_PROG_TYPE_PERF_EVENT = 7  # of linux/bpf.h, as /proc/PID/fdinfo shows it
SHARD_BYTES = 4 << 20  # UNWIND_SHARD_BYTES of bpf/unwind_format.h
OUTER_FRAMES = 5  # _start, two frames of libc, main and spin
STARTS = 5
RECORD_HEAD_BYTES = 8 + 80  # header in the ring buffer, and SAMPLE_EVENT_HEAD_BYTES of bpf/shared.h
WARM_SECONDS = 12  # until the first window is sent and the kernel's symbols are read
ROWS = []


def row(name, figure, unit, goal=None, at_least=False):
    is_met = None if goal is None else figure >= goal if at_least else figure <= goal
    ROWS.append((name, figure, unit, goal, is_met))
    mark = (
        ""
        if is_met is None
        else "met"
        if is_met
        else f"MISSED, {figure / goal if goal else figure:.2f} times"
    )
    text = "" if goal is None else f"{'at least' if at_least else 'at most'} {goal:g}"
    print(f"{name:<62} {figure:>12,.3f} {unit:<10} {text:<16} {mark}", flush=True)


# ---- the load ----


@contextlib.contextmanager
def running(*commands):
    children = [
        subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        for command in commands
    ]
    try:
        yield children
    finally:
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def compiled(folder, compiler, source, *options):
    path = folder / source.stem
    subprocess.run(
        [
            compiler,
            "-O2",
            "-g",
            "-fomit-frame-pointer",
            "-Wl,--build-id",
            source,
            *options,
            "-o",
            path,
        ],
        check=True,
    )
    return path


def known_program(folder):
    return compiled(folder, "gcc", HERE.parent / "agent" / "truth.c", "-pthread")


ONE_FRAME = """__asm__(".globl _start\\n_start:\\n.cfi_startproc\\n.cfi_undefined rip\\n"
        "0: jmp 0b\\n.cfi_endproc");
"""


def program_of_one_frame(folder):
    source = folder / "one.c"
    source.write_text(ONE_FRAME)
    return compiled(folder, "gcc", source, "-nostdlib", "-static")


def mixed_load(truth):
    """Commands, each for half of the cores: stacks of sixteen frames in hot code, a compressor that
    evicts the caches, and an interpreter."""
    script = (
        "import json\nd = {str(i): list(range(50)) for i in range(500)}\n"
        "while True: json.loads(json.dumps(d))"
    )
    kinds = [
        [truth, "deep", 16 - OUTER_FRAMES],
        ["sh", "-c", "exec xz -9 -c /dev/urandom"],
        ["python3", "-c", script],
    ]
    return [command for command in kinds for _ in range(max(1, CORES // 2))]


# ---- the agent ----


class Agent:
    def __init__(self, folder, hertz, *arguments):
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=folder))
        began = time.monotonic()
        self.process = subprocess.Popen(
            [
                BUILD / "perfolio-agent",
                f"--offline-dir={self.folder}",
                f"--frequency={hertz}",
                *arguments,
            ],
            stderr=subprocess.PIPE,
            text=True,
        )
        self.log = ""
        while 'msg="sampling"' not in self.log:
            line = self.process.stderr.readline()
            if not line:
                sys.exit(f"perfolio-agent did not start: {self.log}")
            self.log += line
        self.start_ms = (time.monotonic() - began) * 1e3
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """Stops the agent and returns its log."""
        if self.process.poll() is None:
            self.process.terminate()
            self.log += self.process.communicate(timeout=60)[1]
            self.written = sum(file.stat().st_size for file in self.folder.rglob("*.zst"))
            shutil.rmtree(self.folder)
        return self.log

    def descriptors(self):
        for entry in pathlib.Path(f"/proc/{self.pid}/fdinfo").iterdir():
            yield dict(
                line.split(":\t", 1) for line in entry.read_text().splitlines() if ":\t" in line
            )

    def kernel_time(self):
        """Returns (runs and ns of the sampler, ns of all programs)."""
        programs = {
            info["prog_id"]: info
            for info in self.descriptors()
            if "run_time_ns" in info and "prog_tag" in info
        }.values()
        sampler = [info for info in programs if int(info["prog_type"]) == BPF_PROG_TYPE_PERF_EVENT]
        return (
            sum(int(info["run_cnt"]) for info in sampler),
            sum(int(info["run_time_ns"]) for info in sampler),
            sum(int(info["run_time_ns"]) for info in programs),
        )

    def kernel_bytes(self):
        kept = {
            (("map_id" in info), info.get("map_id") or info.get("prog_id")): int(info["memlock"])
            for info in self.descriptors()
            if "memlock" in info
        }
        return sum(kept.values())

    def shards(self):
        return len(
            {
                info["map_id"]
                for info in self.descriptors()
                if info.get("value_size", "").strip() == str(SHARD_BYTES)
            }
        )

    def memory(self):
        text = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        return {
            name: int(re.search(rf"^{name}:\s+(\d+) kB", text, re.M)[1]) / 1024
            for name in ("VmHWM", "VmRSS", "RssAnon", "RssFile", "RssShmem")
        }


def processor_ns(pid):
    """CPU time of a process and its threads in nanoseconds."""
    return sum(
        int((task / "schedstat").read_text().split()[0])
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir()
    )


def busy_seconds():
    """The time of all processors since boot without idle time, waiting for disks and steal time."""
    values = [
        int(text) for text in pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:9]
    ]
    return (sum(values) - values[3] - values[4] - values[7]) / os.sysconf("SC_CLK_TCK")


def watch(agent, seconds=SECONDS):
    """Returns (samples, ns per sample, ns of all programs, ns of the agent, seconds of busy
    cores)."""
    before = (*agent.kernel_time(), processor_ns(agent.pid), busy_seconds())
    time.sleep(seconds)
    after = (*agent.kernel_time(), processor_ns(agent.pid), busy_seconds())
    runs, ns, all_ns, own_ns, busy = (late - early for late, early in zip(after, before))
    if not runs:
        sys.exit(
            "the kernel counts no runs of its programs: "
            "check that kernel.bpf_stats_enabled may be set"
        )
    return runs, ns / runs, all_ns, own_ns, busy


# ---- results ----


def bench_unwinding(folder, truth):
    """Runs first. Its load has real-time priority, so that other processes get only the 5 % of the
    CPU that the kernel reserves for them."""
    taken = {}
    commands = {frames: [truth, "deep", frames - OUTER_FRAMES] for frames in (12, 25, 95)}
    for frames, command in {1: [program_of_one_frame(folder)], **commands}.items():
        with Agent(folder, 997) as agent, running(*[["chrt", "-f", "1", *command]] * CORES):
            time.sleep(2)
            _, ns, *_ = watch(agent)
        taken[frames] = ns / 1e3
        goal_us = {12: 0.9, 25: 1.5, 95: 3.8}.get(frames)
        row(f"a sample of {frames} frames, warm (997 Hz)", taken[frames], "us", goal_us)
        if goal_us:
            # A sample costs a constant plus the same for each frame: this is that of all frames.
            row(
                "  unwinding",
                (taken[frames] - taken[1]) * frames / (frames - 1),
                "us",
                goal_us,
            )


def bench_perf(folder, hertz, form):
    if not shutil.which("perf"):
        return print("(perf is not installed)")
    file = folder / "perf.data"
    with subprocess.Popen(
        ["perf", "record", "-B", "-N", "-a", "-F", str(hertz), "--call-graph", form, "-o", file],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as perf:
        first = busy_seconds()
        time.sleep(2)
        began = processor_ns(perf.pid), busy_seconds()
        time.sleep(SECONDS)
        ended = processor_ns(perf.pid), busy_seconds()
        memory = re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{perf.pid}/status").read_text())
        perf.send_signal(signal.SIGINT)
        perf.wait(120)
    busy = ended[1] - began[1]
    written = file.stat().st_size / (ended[1] - first)
    name = f"perf record --call-graph {form} at {hertz} Hz"
    row(f"{name}: its process, of a busy core", (ended[0] - began[0]) / busy / 1e7, "%")
    row(f"{name}: written", written / 1e3, "kB/s/core")
    row(f"{name}: its memory", int(memory[1]) / 1024, "MiB")
    file.unlink()


def bench_busy(folder, truth):
    loads = {
        "C++ regex": [[compiled(folder, "g++", HERE / "regex.cc")]] * CORES,
        "mixed load": mixed_load(truth),
    }
    for hertz, sample_us, busy_percent in ((19, 9, 0.05), (99, 4, 0.15)):
        for load, commands in loads.items():
            with running(*commands):
                began = busy_seconds()
                with Agent(folder, hertz) as agent:
                    time.sleep(WARM_SECONDS)
                    runs, ns, all_ns, own_ns, busy = watch(agent)
                    row(
                        f"a sample at {hertz} Hz, {load} ({runs} samples)",
                        ns / 1e3,
                        "us",
                        sample_us,
                    )
                    row(
                        f"agent and kernel program at {hertz} Hz, {load}, of a busy core",
                        (all_ns + own_ns) / busy / 1e7,
                        "%",
                        busy_percent,
                    )
                    row("  kernel program", all_ns / busy / 1e7, "%")
                    lost = int(re.findall(r"lost_samples=(\d+)", agent.stop())[-1])
                    row("  written", agent.written / (busy_seconds() - began) / 1e3, "kB/s/core")
                    if hertz == 99:
                        row(f"lost samples at 99 Hz, {load}", lost, "", 0)
                if load == "mixed load":
                    bench_perf(folder, hertz, "dwarf")
                    bench_perf(folder, hertz, "fp")


def bench_aggregate(folder, truth):
    """Compares aggregation in the agent and in the kernel, for repeating and for mostly new
    stacks."""
    loads = {
        "one hot stack": [[truth, "deep", 16 - OUTER_FRAMES]] * CORES,
        "mixed load": mixed_load(truth),
    }
    for load, commands in loads.items():
        for where in ("user", "kernel"):
            with running(*commands), Agent(folder, 99, f"--aggregate={where}") as agent:
                time.sleep(WARM_SECONDS)
                runs, ns, all_ns, own_ns, busy = watch(agent)
                name = f"{load} at 99 Hz, --aggregate={where}"
                row(f"{name}: kernel CPU time per sample ({runs} samples)", ns / 1e3, "us")
                row(f"{name}: agent CPU time per sample", own_ns / runs / 1e3, "us")
                row(
                    f"{name}: agent and kernel program, % of a busy core",
                    (all_ns + own_ns) / busy / 1e7,
                    "%",
                )
                row(f"{name}: BPF memory", agent.kernel_bytes() / (1 << 20), "MiB")


def entry_of(path):
    """Returns the address of the entry point of a 64-bit ELF file and its offset in the file."""
    data = pathlib.Path(path).read_bytes()
    entry, headers = struct.unpack_from("<QQ", data, 24)
    size, count = struct.unpack_from("<HH", data, 54)
    for i in range(count):
        kind, _, offset, address, _, bytes_in_file = struct.unpack_from(
            "<IIQQQQ", data, headers + i * size
        )
        if kind == 1 and address <= entry < address + bytes_in_file:
            return entry, entry - address + offset
    return entry, entry


def our_stacks(file):
    """Returns [(frames of the program and its scripts, (address, file) of the outermost frame,
    count)]."""
    profile = pprof_reader.load(file)
    found = []
    for sample in profile.samples:
        frames = []
        for location_id in sample.stack:
            location = profile.locations[location_id]
            mapping = profile.mappings.get(location["mapping_id"])
            path = mapping["filename"] if mapping else ""
            if path != "[kernel]":
                frames.append((location["address"], path))
        if frames:
            found.append((len(frames), frames[-1], sample.values[0]))
    return found


def stacks_of_perf(file):
    text = subprocess.run(
        ["perf", "script", "-i", file, "--no-inline", "-F", "ip,sym,dso"],
        check=True,
        timeout=300,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ).stdout
    found = []
    for block in text.split("\n\n"):
        frames = re.findall(r"^\s+([0-9a-f]+) .*\((.*)\)$", block, re.M)
        if frames:
            found.append((len(frames), (int(frames[-1][0], 16), frames[-1][1]), 1))
    return found


def judge(stacks, executable):
    """Returns (stacks, frames per stack, percentage of the stacks that reach the entry)."""
    entries = [range(entry, entry + 64) for entry in entry_of(executable)]
    total = sum(count for *_, count in stacks)
    if not total:
        return 0, 0.0, 0.0
    whole = sum(
        count
        for _, (address, path), count in stacks
        if os.path.realpath(path) == executable and any(address in entry for entry in entries)
    )
    return total, sum(depth * count for depth, _, count in stacks) / total, 100 * whole / total


def bench_depth(folder, truth):
    if not shutil.which("perf"):
        return print("(perf is not installed)")
    for name, command in zip(
        ("16 frames of C", "xz", "CPython"), mixed_load(truth)[:: max(1, CORES // 2)]
    ):
        ours, theirs = folder / "ours.pb.gz", folder / "perf.data"
        with running(command) as (process,):
            time.sleep(2)
            recording = [
                [
                    BUILD / "perfolio",
                    "record",
                    "-p",
                    process.pid,
                    "-F",
                    99,
                    "-d",
                    SECONDS,
                    "-o",
                    ours,
                ],
                [
                    "perf",
                    "record",
                    "-B",
                    "-N",
                    "-e",
                    "cpu-clock:u",
                    "-F",
                    99,
                    "--call-graph",
                    "dwarf",
                    "-p",
                    process.pid,
                    "-o",
                    theirs,
                    "--",
                    "sleep",
                    SECONDS,
                ],
            ]
            both = [
                subprocess.Popen(
                    [str(word) for word in words],
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
                for words in recording
            ]
            if any(each.wait(SECONDS + 120) for each in both):
                sys.exit(f"{name} could not be recorded")
            executable = os.path.realpath(f"/proc/{process.pid}/exe")
        our_count, our_depth, our_roots = judge(our_stacks(ours), executable)
        count, depth, roots = judge(stacks_of_perf(theirs), executable)
        if not our_count or not count:
            sys.exit(f"{name} was not sampled: {our_count} and {count} samples")
        row(
            f"{name}: frames of a stack ({our_count} and {count} samples)",
            our_depth,
            "",
            round(depth, 2),
            True,
        )
        row(
            f"{name}: stacks that reach the program's entry",
            our_roots,
            "%",
            round(roots, 2),
            True,
        )
        row(
            "  bytes transferred by the kernel, % of perf",
            100 * (RECORD_HEAD_BYTES + 8 * our_depth) / (theirs.stat().st_size / count),
            "%",
            5,
        )


def bench_start(folder, truth):
    idle = [
        ["sleep", "100000"],
        ["python3", "-c", "import json, ssl, time; time.sleep(100000)"],
        ["sleep", "100000"],
        ["perl", "-e", "sleep 100000"],
    ]
    wanted = max(
        0,
        PROCESSES
        - sum(
            name.isdecimal() and os.path.exists(f"/proc/{name}/exe") for name in os.listdir("/proc")
        ),
    )
    commands = [idle[i % 4] for i in range(wanted)]
    with running(*commands, [truth, "deep", 16 - OUTER_FRAMES]):
        time.sleep(3)
        times = []
        for _ in range(STARTS):
            with Agent(folder, 19) as agent:
                times.append(agent.start_ms)
        row(
            f"start to sampling, {PROCESSES} processes (median of {STARTS})",
            statistics.median(times),
            "ms",
            300,
        )
        row("  the slowest", max(times), "ms")
        with Agent(folder, 19) as agent:
            time.sleep(max(SECONDS, 15))
            memory = agent.memory()
            row("most memory since the start", memory["VmHWM"], "MiB", 32)
            row("memory, steady", memory["VmRSS"], "MiB", 16)
            row("  anonymous", memory["RssAnon"], "MiB")
            row("  files and mapped tables", memory["RssFile"] + memory["RssShmem"], "MiB")
            row("BPF memory", agent.kernel_bytes() / (1 << 20), "MiB", 10)
            row("  shards of tables", agent.shards() * SHARD_BYTES / (1 << 20), "MiB")


def bench_tables(_folder, _truth):
    subprocess.run(
        ["make", "-s", f"{BUILD.relative_to(ROOT)}/tests/bench/bench_unwind"], cwd=ROOT, check=True
    )
    text = subprocess.run(
        [BUILD / "tests" / "bench" / "bench_unwind"], stdout=subprocess.PIPE, text=True, check=True
    ).stdout
    for name, figure in re.findall(r"^(\S+) .*? ms +(\d+) MB/s", text, re.M):
        row(f"unwind table of {name}", float(figure), "MB/s", 250, at_least=True)


PARTS = {
    "unwind": bench_unwinding,
    "busy": bench_busy,
    "aggregate": bench_aggregate,
    "depth": bench_depth,
    "start": bench_start,
    "tables": bench_tables,
}


def main():
    WORK.mkdir(parents=True, exist_ok=True)
    before = STATS.read_text()
    load = [f"{value:.1f}" for value in os.getloadavg()]
    print(f"{CORES} processors, load {' '.join(load)}, {SECONDS:g} s each")
    try:
        STATS.write_text("1")
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            truth = known_program(folder)
            for name in sys.argv[1:] or PARTS:
                PARTS[name](folder, truth)
    finally:
        STATS.write_text(before)
    with open(WORK / "agent.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("name", "figure", "unit", "goal", "is_met"), *ROWS])
    missed = sum(is_met is False for *_, is_met in ROWS)
    print(
        f"{sum(is_met is True for *_, is_met in ROWS)} goals met, {missed} missed; "
        f"load {os.getloadavg()[0]:.1f}"
    )


main()
