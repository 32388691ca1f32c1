#!/usr/bin/env python3
"""Runs the benchmarks and prints a table; build/bench/results.csv keeps the same rows.

  tests/bench/run.py [PART …]     parts: decode flame formats symbols start upload slow-disk memory
                                  load; agents
  BENCH_SECONDS=60                duration of each round of "load"

The part "agents" (agents.py) takes ten minutes and runs only when it is named.

A result that misses its goal (a goal of the project) is marked, and the run passes: hosts differ
and are noisy. For the same reason results are ratios within one run where that is possible.
"""

import concurrent.futures
import csv
import os
import pathlib
import shlex
import shutil
import statistics
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "tests" / "integration")]

import agents  # noqa: E402
import conftest  # noqa: E402  (the server the tests use)
import profiles  # noqa: E402

BENCH = conftest.BUILD / "tests" / "bench"
WORK = ROOT / "build" / "bench"
SECONDS = float(os.environ.get("BENCH_SECONDS", "60"))
RAISED = [
    "--max-connections-per-address",
    "2048",  # all clients of a benchmark share an address
    "--tenant-uploads-per-minute",
    "1000000",
    "--anonymous-uploads-per-minute",
    "1000000",
    "--log-level",
    "warn",
]
ROWS = []


def row(name, figure, unit, goal=None, is_met=None):
    ROWS.append((name, figure, unit, goal, is_met))
    mark = "" if is_met is None else "met" if is_met else "MISSED"
    text = f"{figure:,.2f}" if isinstance(figure, float) else str(figure)
    print(f"{name:<58} {text:>14} {unit:<8} {goal or '':<24} {mark}", flush=True)


def profile_file(name, compressed_bytes):
    """A generated profile, written once."""
    path = WORK / f"{name}.pb.gz"
    if not path.exists():
        path.write_bytes(profiles.make_gzip(compressed_bytes))
    return path


# A separate program, so that strace slows it in the same way as a server.
SYNC_PROBE = """
import os, statistics, sys, time
times = []
with open(sys.argv[1], "wb", buffering=0) as file:
    for _ in range(300):
        file.write(b"x" * 4096)
        start = time.perf_counter()
        os.fdatasync(file.fileno())
        times.append((time.perf_counter() - start) * 1e3)
os.unlink(sys.argv[1])
print(statistics.median(times))
"""


def fdatasync_p50_ms(folder, prefix=()):
    """Returns the median time of a small durable write on the disk of the data folder."""
    probe = [*prefix, sys.executable, "-c", SYNC_PROBE, pathlib.Path(folder) / "fdatasync-probe"]
    return float(subprocess.run(probe, stdout=subprocess.PIPE, check=True, text=True).stdout)


class Running:
    """A server with a new data folder and raised quotas; for a with statement."""

    def __init__(self, program=None, flags=()):
        self.program, self.flags = program, flags

    def __enter__(self):
        self.folder = conftest.make_folder(conftest.DISK)
        self.server = conftest.Server(
            self.folder / "data", [*RAISED, *self.flags], program=self.program
        )
        self.server.start()
        quotas = {
            "max_bytes_stored": 1 << 42,
            "uploads_per_minute": 1000000,
            "max_upload_bytes": 1 << 32,
        }
        response = self.server.api().patch("/api/v1/admin/tenants/2", json=quotas)
        assert response.status == 200, response
        return self.server

    def __exit__(self, *_):
        self.server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def status_kib(pid, key):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1])
    return 0


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def load(server, clients, files, seconds=None, count=None, ids=None):
    """Runs bench_load and returns its results."""
    command = [
        BENCH / "bench_load",
        "--url",
        server.url,
        "--ca",
        server.ca_file,
        "--token-file",
        server.data_dir / "admin.token",
        "--clients",
        clients,
    ]
    command += ["--seconds", seconds if seconds else 600]
    command += ["--count", count] if count else []
    command += ["--ids", ids] if ids else []
    done = subprocess.run(
        [str(part) for part in [*command, *files]], stdout=subprocess.PIPE, text=True
    )
    lines = list(csv.DictReader(done.stdout.splitlines()))
    assert lines, "bench_load printed nothing"
    return {key: float(value) for key, value in lines[0].items()}


def run_c_bench(name, arguments=()):
    """C benchmarks print CSV rows: name,figure,unit,goal,met (goal and met may be empty)."""
    done = subprocess.run(
        [str(BENCH / name), *map(str, arguments)], stdout=subprocess.PIPE, text=True, check=True
    )
    for name_, figure, unit, goal, is_met in csv.reader(done.stdout.splitlines()):
        row(name_, float(figure), unit, goal, {"yes": True, "no": False}.get(is_met))


def part_decode():
    shared = pathlib.Path(os.environ.get("PERFOLIO_SHARED", ROOT.parent / "shared"))
    large = shared / "data" / "pprof" / "large-cpu.pb.gz"
    path = large if large.exists() else profile_file("1mb", 1_000_000)
    run_c_bench("bench_pprof", [path])
    go_decode(path)


def go_decode(path):
    """google/pprof's reader on the same file, if Go is installed."""
    if not shutil.which("go"):
        return print("(Go is not installed: google/pprof is not measured)")
    program = WORK / "go-pprof"
    built = subprocess.run(["go", "build", "-o", program, "."], cwd=HERE / "go-pprof")
    if built.returncode != 0:
        return print("(go-pprof could not be built: google/pprof is not measured)")
    done = subprocess.run([program, path], stdout=subprocess.PIPE, text=True, check=True)
    best, median = map(float, done.stdout.split(","))
    row("google/pprof profile.Parse, best", best, "MB/s")
    row("google/pprof profile.Parse, median", median, "MB/s")
    ours = next(r[1] for r in reversed(ROWS) if "warm memory, median" in r[0])
    row(
        "decode: times as fast as google/pprof",
        ours / median,
        "x",
        "at least 5",
        ours >= 5 * median,
    )


def part_flame():
    run_c_bench("bench_flame")


def part_formats():
    run_c_bench("bench_formats")


def part_symbols():
    run_c_bench("bench_symbols")


def part_start():
    """The README promises a start within two seconds with an existing data folder."""
    with Running() as server:
        seconds = []
        for _ in range(5):
            server.stop()
            begun = time.monotonic()
            server.start()
            seconds.append(time.monotonic() - begun)
    median = statistics.median(seconds)
    row("start on a data folder that exists, p50", median, "s", "<= 2", median <= 2)


def part_upload():
    with Running() as server:
        sync_ms = fdatasync_p50_ms(server.data_dir)
        row("fdatasync of 4 KiB, p50", sync_ms, "ms")
        for name, size, count in (("100kb", 100_000, 300), ("1mb", 1_000_000, 100)):
            figures = load(server, 1, [profile_file(name, size)], count=count)
            is_small = name == "100kb"
            row(
                f"upload to response, {name}, p50",
                figures["p50_ms"],
                "ms",
                f"<= {5 * sync_ms:.1f} (5 syncs)" if is_small else None,
                figures["p50_ms"] <= 5 * sync_ms if is_small else None,
            )
            row(f"upload to response, {name}, p99", figures["p99_ms"], "ms")
        times = sorted(upload_parts(server, profile_file("10mb", 10_000_000)) for _ in range(15))
        row("upload to response, 10mb in parts, p50", statistics.median(times) * 1e3, "ms")
        row("upload to response, 10mb in parts, worst of 15", times[-1] * 1e3, "ms")


# An ordinary cloud disk needs 2 ms per sync; the disk of this host may not wait for its medium.
SLOW_SYNCS = [
    "strace",
    "-D",
    "-f",
    "-q",
    "--seccomp-bpf",
    "-o",
    "/dev/null",
    "-e",
    "trace=fsync,fdatasync",
    "-e",
    "inject=fsync,fdatasync:delay_exit=2000",
]


def part_slow_disk():
    """An upload of 100 KB while every sync of the server and of PostgreSQL takes 2 ms longer."""
    if not shutil.which("strace"):
        return print("(strace is not installed: the slower disk is not measured)")
    wrapper = WORK / "perfoliod-on-a-slow-disk"
    quoted = " ".join(shlex.quote(str(word)) for word in [*SLOW_SYNCS, conftest.PERFOLIOD])
    wrapper.write_text(f'#!/bin/sh\nexec {quoted} "$@"\n')
    wrapper.chmod(0o755)
    with Running(wrapper) as server:
        sync_ms = fdatasync_p50_ms(server.data_dir, SLOW_SYNCS)
        row("slower disk: fdatasync of 4 KiB, p50", sync_ms, "ms")
        figures = load(server, 1, [profile_file("100kb", 100_000)], count=300)
        row(
            "slower disk: upload to response, 100kb, p50",
            figures["p50_ms"],
            "ms",
            f"<= {5 * sync_ms:.1f} (5 syncs)",
            figures["p50_ms"] <= 5 * sync_ms,
        )
        row("slower disk: upload to response, 100kb, p99", figures["p99_ms"], "ms")


def upload_parts(server, path):
    data = path.read_bytes()
    api = server.api()
    api.get("/api/v1/session")
    start = time.perf_counter()
    begun = api.post("/api/v1/uploads", json={"size": len(data), "filename": path.name}).json()
    step = begun["part_bytes"]
    for n in range(begun["part_count"]):
        response = api.put(
            f"/api/v1/uploads/{begun['id']}/parts/{n}", data[n * step : (n + 1) * step]
        )
        assert response.status == 204, response
    response = api.post(f"/api/v1/uploads/{begun['id']}/complete")
    assert response.status == 201, response
    taken = time.perf_counter() - start
    api.close()
    return taken


def part_memory():
    with Running() as server:
        time.sleep(3)
        idle = status_kib(server.child_pid(), "VmRSS") / 1024
        row("server RSS idle", idle, "MiB", "<= 40", idle <= 40)
        load(server, 8, [profile_file("100kb", 100_000)], count=1000)
        time.sleep(2)
        row(
            "server RSS after 1,000 uploads of 100 KB",
            status_kib(server.child_pid(), "VmRSS") / 1024,
            "MiB",
        )
        row("server RSS peak", status_kib(server.child_pid(), "VmHWM") / 1024, "MiB")


def real_profiles():
    shared = pathlib.Path(os.environ.get("PERFOLIO_SHARED", ROOT.parent / "shared"))
    found = sorted((shared / "data" / "pprof").rglob("*.pb.gz"))
    return found or [profile_file("100kb", 100_000), profile_file("20kb", 20_000)]


def count_readable(server, ids):
    """Returns how many of the shares can be downloaded unchanged."""
    local = threading.local()

    def is_readable(share):
        if not hasattr(local, "api"):
            local.api = server.api()
        response = local.api.get(f"/api/v1/shares/{share}/raw")
        return response.status == 200 and len(response.body) > 0

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        return sum(pool.map(is_readable, ids))


def part_load():
    rates = {}
    for clients in (8, 200):
        ids_file = WORK / f"ids-{clients}"
        with Running() as server:
            figures = load(server, clients, real_profiles(), seconds=SECONDS, ids=ids_file)
            rates[clients] = figures["accepted_per_s"]
            peak = status_kib(server.child_pid(), "VmHWM") / 1024
            row(f"{clients} clients: accepted", figures["accepted_per_s"], "/s")
            row(f"{clients} clients: upload to response, p50", figures["p50_ms"], "ms")
            row(f"{clients} clients: upload to response, p99", figures["p99_ms"], "ms")
            row(
                f"{clients} clients: refused (429, 503 with Retry-After)",
                figures["limited"],
                "requests",
            )
            strange = figures["unexplained"] + figures["other_status"] + figures["transport_errors"]
            row(f"{clients} clients: any other failure", strange, "requests", "0", strange == 0)
            row(f"{clients} clients: server RSS peak", peak, "MiB", "<= 512", peak <= 512)
            ids = ids_file.read_text().split()
            lost = int(figures["accepted"]) - count_readable(server, ids)
            row(
                f"{clients} clients: acknowledged shares that cannot be read",
                lost,
                "shares",
                "0",
                lost == 0,
            )
    ratio = rates[200] / rates[8]
    row("accepted with 200 clients / with 8", ratio, "", ">= 0.70", ratio >= 0.7)


PARTS = {
    "decode": part_decode,
    "flame": part_flame,
    "formats": part_formats,
    "symbols": part_symbols,
    "start": part_start,
    "upload": part_upload,
    "slow-disk": part_slow_disk,
    "memory": part_memory,
    "load": part_load,
}
LONG_PARTS = {"agents": lambda: agents.part(sys.modules[__name__])}


def main():
    wanted = sys.argv[1:] or list(PARTS)
    parts = {**PARTS, **LONG_PARTS}
    for name in wanted:
        if name not in parts:
            sys.exit(f"unknown part {name}; there are {' '.join(parts)}")
    WORK.mkdir(parents=True, exist_ok=True)
    print(f"{'benchmark':<58} {'figure':>14} {'unit':<8} goal")
    for name in wanted:
        parts[name]()
    with open(WORK / "results.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["benchmark", "figure", "unit", "goal", "met"])
        writer.writerows(ROWS)


if __name__ == "__main__":
    main()
