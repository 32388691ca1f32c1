#!/usr/bin/env python3
"""make bench-store: the store of continuous profiles, end to end (a real server over TLS, a real
PostgreSQL), compared to DuckDB from npm with the same samples. Both must return equal results.

  tests/bench/store.py [PART …]   parts: ingest tail scan other fresh memory export waiting
  BENCH_MINUTES=120               data set A: 200 targets for this time (tests/bench/fleet.h)
  BENCH_MINUTES_C=60              data set C: 2 % of the samples have stacks that occur only once
  BENCH_HOURS=24                  data set B: as A, for queries over a day; 0: these queries use A
  BENCH_ROUNDS=100                queries per result
  BENCH_PPROF_MINUTES=10          time that is sent as gzip pprof, one profile per request
  BENCH_PACED_MINUTES=10          duration of 200 targets that send in real time

A short run: BENCH_MINUTES=10 BENCH_MINUTES_C=5 BENCH_HOURS=0 BENCH_ROUNDS=20 BENCH_PPROF_MINUTES=2
  BENCH_PACED_MINUTES=1

The server caches no results, since DuckDB does not either; only the last rows of each data set
repeat the queries with a cache. CPU time is that of the server's process and of all processes of
PostgreSQL, without the generator. A result that misses its goal (a goal of the project) is marked,
and the run passes; a result that differs from DuckDB's ends the run.
"""

import collections
import csv
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "tests" / "integration")]

import conftest  # noqa: E402
from people import Tenant  # noqa: E402
from run import BENCH, ROWS, WORK, Running, row, run_c_bench, status_kib  # noqa: E402
from test_store import CPU, make_profile  # noqa: E402

DUCKDB = ROOT / "tests" / "duckdb"
MINUTES = int(os.environ.get("BENCH_MINUTES", "120"))
MINUTES_C = int(os.environ.get("BENCH_MINUTES_C", "60"))
HOURS = int(os.environ.get("BENCH_HOURS", "24"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "100"))
PPROF_MINUTES = int(os.environ.get("BENCH_PPROF_MINUTES", "10"))
PACED_MINUTES = int(os.environ.get("BENCH_PACED_MINUTES", "10"))
DAY_S = 86400
BEGIN_S = 20_600 * DAY_S  # start of a day (UTC), so that a day of data is one block
NS = 10**9
FLAGS = [
    "--jobs-interval",
    "1s",
    "--tenant-samples-per-second",
    "1000000000",
    "--tenant-samples-burst",
    "1000000000",
    "--tenant-query-cpu-time",
    "600s",
    "--tenant-query-time",
    "600s",
    "--tenant-query-memory",
    "4GiB",
]
TYPE, SMALL = "cpu:nanoseconds", "samples:count"


# ---- the server ----


def start(*flags):
    return Running(flags=[*FLAGS, *flags])


NO_QUERY_CACHE = (
    "--query-cache-bytes",
    "0",
)  # computes every query again, as DuckDB does


def cpu_of(pids):
    """CPU seconds of these processes and of the children that they have waited for."""
    ticks = 0
    for pid in pids:
        try:
            stat = pathlib.Path("/proc", str(pid), "stat").read_text()
        except OSError:
            continue
        ticks += sum(map(int, stat.rpartition(")")[2].split()[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


class Cpu:
    """CPU time of the server and PostgreSQL from now on."""

    def __init__(self, server):
        self.server, self.before = server, self.now(server)

    @staticmethod
    def now(server):
        child = server.child_pid()
        return server.cpu_seconds(), cpu_of(pid for pid in server.descendants() if pid != child)

    def spent(self):
        return tuple(now - before for now, before in zip(self.now(self.server), self.before))


def sql(server, text):
    with server.database().cursor() as cursor:
        cursor.execute(text)
        return cursor.fetchall() if cursor.description else []


def settle(server, tenant):
    """Ages all rows until there is one block per day and the replaced blocks are deleted."""
    deadline = time.monotonic() + 3600
    while time.monotonic() < deadline:
        for table in ("segment", "block"):
            sql(
                server,
                f"UPDATE {table} SET created_at = created_at - interval '1 hour' "
                "WHERE swapped_at IS NULL",
            )
            sql(
                server,
                f"UPDATE {table} SET swapped_at = swapped_at - interval '1 hour' "
                "WHERE swapped_at IS NOT NULL",
            )
        levels = {
            level
            for level, in sql(
                server, f"SELECT DISTINCT level FROM block WHERE tenant_id = {tenant.id}"
            )
        }
        if levels == {4} and not sql(server, "SELECT 1 FROM segment LIMIT 1"):
            return
        time.sleep(1)
    sys.exit("the blocks were not merged within an hour")


class Data:
    """Sends the data of one team, and writes the same samples for DuckDB."""

    def __init__(self, server, name, kind, minutes, unique=0, keep=True, more=()):
        self.server, self.tenant, self.minutes = server, Tenant(server), minutes
        self.rows_file = WORK / f"{name}.rows.parquet" if keep else None
        self.stacks_file = WORK / f"{name}.stacks.txt" if keep else None
        self.start, self.end = BEGIN_S, BEGIN_S + minutes * 60
        token = self.tenant.make_token("ingest", "read")["token"]
        self.client = server.api(token)
        command = [
            BENCH / "bench_feed",
            "--url",
            server.url,
            "--ca",
            server.ca_file,
            "--token",
            token,
            "--kind",
            kind,
            "--minutes",
            minutes,
            "--begin-s",
            BEGIN_S,
            "--unique",
            unique,
            *more,
        ]
        if keep:
            command += ["--rows", self.rows_file, "--stacks", self.stacks_file]
        cpu = Cpu(server)
        done = subprocess.run(
            [str(part) for part in command], stdout=subprocess.PIPE, text=True, check=True
        )
        self.server_cpu_s, self.postgres_cpu_s = cpu.spent()
        self.sent = {
            key: float(value)
            for key, value in next(csv.DictReader(done.stdout.splitlines())).items()
        }
        self.rows = self.sent["rows"]

    def get(self, client=None, path="/api/v1/query", **query):
        query = {"query": TYPE, "start": self.start, "end": self.end, **query}
        response = (client or self.client).get(path, query=query)
        assert response.status == 200, response
        return response

    def folded(self, **query):
        rows = {}
        for line in self.get(report="folded", **query).text.splitlines():
            stack, _, value = line.rpartition(" ")
            rows[stack] = int(value)
        return rows


# ---- DuckDB ----


def duckdb(database, runs, *statements):
    done = subprocess.run(
        ["node", "time.mjs", str(database), str(runs), *statements],
        cwd=DUCKDB,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


class DuckDb:
    """DuckDB with the same samples, sorted by labels, stack and time, which is its best order."""

    def __init__(self, data, name):
        self.data, self.database = data, WORK / f"{name}.duckdb"
        self.database.unlink(missing_ok=True)
        self.parquet = WORK / f"{name}.sorted.parquet"
        duckdb(
            self.database,
            1,
            f"CREATE TABLE sample AS SELECT * FROM '{data.rows_file}' "
            "ORDER BY service, pod, stack, time_ns",
            f"COPY sample TO '{self.parquet}' (FORMAT parquet, COMPRESSION zstd)",
            "CREATE TABLE total AS SELECT service, pod, time_ns // 3600000000000 AS hour, stack, "
            "sum(value)::BIGINT AS value FROM sample GROUP BY ALL ORDER BY ALL",
            "CHECKPOINT",
        )
        self.texts = data.stacks_file.read_text().splitlines()

    def sums(self, where="true"):
        """Returns sums by the text of the stack, and wall and CPU time of the query."""
        out = WORK / "sums.csv"
        wanted = f"SELECT stack, sum(value)::BIGINT FROM sample WHERE {where} GROUP BY stack"
        duckdb(self.database, 1, f"COPY ({wanted}) TO '{out}' (FORMAT csv, HEADER false)")
        sums = collections.Counter()
        with open(out, newline="") as file:
            for stack, value in csv.reader(file):
                sums[self.texts[int(stack)]] += int(value)
        return sums

    def cost(self, table, where="true"):
        return duckdb(
            self.database,
            3,
            f"SELECT count(*), sum(v) FROM (SELECT stack, sum(value) v FROM {table} "
            f"WHERE {where} GROUP BY stack)",
        )[0]


# ---- results ----


def percentiles(times):
    times = sorted(times)
    return statistics.median(times) * 1e3, times[min(len(times) - 1, int(len(times) * 0.99))] * 1e3


def timed(call):
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def latency(name, call, goal_p50=None, goal_p99=None, rounds=None):
    call()
    p50, p99 = percentiles([timed(call) for _ in range(rounds or ROUNDS)])
    row(f"{name}, p50", p50, "ms", goal_p50 and f"<= {goal_p50}", goal_p50 and p50 <= goal_p50)
    row(f"{name}, p99", p99, "ms", goal_p99 and f"<= {goal_p99}", goal_p99 and p99 <= goal_p99)
    return p50


def ingest(name, data, goal):
    all_s = data.server_cpu_s + data.postgres_cpu_s
    row(f"{name}: samples", int(data.rows), "rows")
    row(f"{name}: bytes on the wire", data.sent["protobuf_bytes"] / data.rows, "B/row")
    row(
        f"{name}: samples whose stack is unique in the request",
        100 * data.sent["distinct"],
        "%",
    )
    row(f"{name}: rows/s/core of the server", data.rows / data.server_cpu_s / 1e6, "M rows/s")
    rate = data.rows / all_s / 1e6
    row(f"{name}: rows/s/core with PostgreSQL's", rate, "M rows/s", f">= {goal}", rate >= goal)
    row(f"{name}: rows/s by the clock", data.rows / data.sent["seconds"] / 1e6, "M rows/s")


def size(name, data, goal):
    settle(data.server, data.tenant)
    bytes_, rows, blocks = sql(
        data.server,
        "SELECT sum(bytes), sum(row_count), count(*) FROM block "
        f"WHERE tenant_id = {data.tenant.id} AND swapped_at IS NULL",
    )[0]
    assert int(rows) == int(data.rows), (rows, data.rows)
    row(
        f"{name}: bytes per sample, all-in, {blocks} block(s)",
        float(bytes_) / data.rows,
        "B/row",
        f"<= {goal}",
        float(bytes_) / data.rows <= goal,
    )


def reference_size(name, reference):
    row(
        f"{name}: DuckDB's Parquet, zstd, without stacks' frames",
        reference.parquet.stat().st_size / reference.data.rows,
        "B/row",
    )
    row(
        f"{name}: DuckDB's own file, with totals, without frames",
        reference.database.stat().st_size / reference.data.rows,
        "B/row",
    )


def check_equal(name, ours, theirs):
    ours, theirs = dict(ours), {key: value for key, value in theirs.items() if value}
    if ours != theirs:
        differing = [key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key)]
        sys.exit(
            f"{name}: {len(differing)} stacks of {len(theirs)} differ from DuckDB's, such as "
            f"{[(key[-80:], ours.get(key), theirs.get(key)) for key in differing[:3]]}"
        )
    print(
        f"{name}: {len(ours):,} stacks, {sum(ours.values()):,} in all: equal to DuckDB's",
        flush=True,
    )


def window_of(data):
    """Windows that begin and end in the middle of hours, or in the middle of the only hour."""
    span = data.end - data.start
    return data.start + span // 7 + 0.5, data.end - span // 9 + 0.25


def function_of(reference):
    """Returns a function that occurs in a few percent of the stacks."""
    names = collections.Counter(
        name for text in reference.texts[:2500] for name in set(text.split(";"))
    )
    return next(name for name, count in names.most_common() if count <= 250)


def compare(name, data, reference):
    low, high = window_of(data)
    inside = f"time_ns >= {int(low * NS)} AND time_ns < {int(high * NS)}"
    whole = reference.sums()
    check_equal(f"{name}, all", data.folded(), whole)
    check_equal(
        f"{name}, unaligned",
        data.folded(start=f"{low:.3f}", end=f"{high:.3f}"),
        reference.sums(inside),
    )
    check_equal(
        f"{name}, one service",
        data.folded(query=TYPE + '{service_name="service-7"}'),
        reference.sums("service = 7"),
    )
    function = function_of(reference)
    focused = data.folded(focus="^" + re.escape(function) + "$")
    check_equal(
        f"{name}, a function",
        {key: value for key, value in focused.items()},
        {key: value for key, value in whole.items() if function in key.split(";")},
    )


def part_ingest():
    with start(*NO_QUERY_CACHE) as server:
        data = Data(server, "a", "otlp", MINUTES)
        ingest("A, OTLP", data, 1.5)
        row(
            "A, OTLP: server RSS peak at full speed",
            status_kib(server.child_pid(), "VmHWM") / 1024,
            "MiB",
        )
        # One profile per request of 200 targets, with as many requests in flight as the server
        # takes.
        profiles = Data(
            server, "p", "pprof", PPROF_MINUTES, keep=False, more=["--connections", "32"]
        )
        ingest("A, pprof gzip", profiles, 0.6)
        size("A", data, 1.0)
        reference = DuckDb(data, "a")
        reference_size("A", reference)
        compare("A", data, reference)
        if not HOURS:
            measure_queries("A", server, data, reference)
        else:
            compare_cpu("A", data, reference)
    if HOURS:
        with start(*NO_QUERY_CACHE) as server:
            data = Data(server, "b", "otlp", 60 * HOURS)
            size("B", data, 1.0)
            reference = DuckDb(data, "b")
            compare("B", data, reference)
            measure_queries("B", server, data, reference)


def part_tail():
    with start() as server:
        data = Data(server, "c", "otlp", MINUTES_C, unique=20)
        ingest("C, OTLP", data, 1.5)
        size("C", data, 2.2)
        reference = DuckDb(data, "c")
        reference_size("C", reference)
        compare("C", data, reference)


# ---- queries ----


def statistics_of(response):
    return {
        key: int(value)
        for key, value in (
            part.split("=") for part in response.headers["perfolio-statistics"].split(", ")
        )
    }


def drop_page_cache(folder):
    os.sync()
    for path in folder.rglob("*"):
        if path.is_file():
            fd = os.open(path, os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)


def compare_cpu(name, data, reference):
    """CPU time of the sum over all stacks, in the server and in DuckDB."""
    low, high = window_of(data)
    inside = f"time_ns >= {int(low * NS)} AND time_ns < {int(high * NS)}"
    for case, query, table, where in (
        ("all by totals", {}, "total", "true"),
        ("unaligned by rows", {"start": f"{low:.3f}", "end": f"{high:.3f}"}, "sample", inside),
    ):
        data.get(report="top", limit=1, **query)
        cpu = Cpu(data.server)
        responses = [data.get(report="top", limit=1, **query) for _ in range(5)]
        ours = cpu.spent()[0] / len(responses)
        theirs = reference.cost(table, where)["cpu_ms"] / 1e3
        row(f"{name}, {case}: server's CPU time with response", ours * 1e3, "ms")
        row(f"{name}, {case}: DuckDB's CPU time, sums only", theirs * 1e3, "ms")
        rows = statistics_of(responses[0])["rows"]
        row(
            f"{name}, {case}: rows of the response per s and core",
            rows / max(ours, 1e-3) / 1e6,
            "M rows/s",
        )


def measure_queries(name, server, data, reference):
    low, high = window_of(data)
    compare_cpu(name, data, reference)
    latency(f"{name}, whole window x 200 targets, warm", lambda: data.get(), 80, 250)
    latency(
        f"{name}, unaligned",
        lambda: data.get(start=f"{low:.3f}", end=f"{high:.3f}"),
        rounds=max(5, ROUNDS // 5),
    )
    focus = "^" + re.escape(function_of(reference)) + "$"
    latency(f"{name}, a function", lambda: data.get(focus=focus))
    latency(f"{name}, one service", lambda: data.get(query=TYPE + '{service_name="service-7"}'))
    listed = data.get(path="/api/v1/profiles", query=TYPE + '{pod="pod-3"}', limit=1).json()[
        "data"
    ][0]
    assert listed["total"] > 0
    latency(
        f"{name}, single profile",
        lambda: data.client.get(f"/api/v1/profiles/{listed['id']}", query={"report": "flame"}),
    )
    times = []
    for _ in range(3):
        server.stop()
        drop_page_cache(server.data_dir / "objects")
        server.start()
        data.client.close()
        data.client.get("/api/v1/session")  # connects and loads the token before the measurement
        times.append(timed(lambda: data.get()))
    row(
        f"{name}, whole window, cold (server and page cache), worst of 3",
        max(times) * 1e3,
        "ms",
        "<= 200",
        max(times) <= 0.2,
    )
    server.stop()
    server.arguments += ["--query-cache-bytes", "32MiB"]  # the default
    server.start()
    data.client.close()
    latency(f"{name}, whole window x 200 targets, repeated (cached results)", lambda: data.get())


# ---- other measurements ----


def small_profile(time_s, value=1):
    return make_profile(
        CPU, int(time_s * NS), {("main", "work"): [value, value]}, ("cpu", "nanoseconds"), 10**10
    )


def post(client, time_s, pod):
    response = client.post(
        "/api/v1/profiles", body=small_profile(time_s), query={"label": f"pod={pod}"}
    )
    assert response.status == 200, response


def part_other():
    """The same window while there are 1, 10, 100 and 400 blocks of other days."""
    with start() as server:
        data, times, known = Data(server, "o", "otlp", 5, keep=False), {}, 0
        for count in (1, 10, 100, 400):
            for i in range(known, count):
                post(data.client, BEGIN_S - (i + 1) * DAY_S, "old")
            known = count
            settle(server, data.tenant)
            blocks = sql(
                server,
                f"SELECT count(*) FROM block WHERE tenant_id = {data.tenant.id} "
                "AND swapped_at IS NULL",
            )
            assert blocks[0][0] == count + 1, blocks
            cpu, rounds = Cpu(server), max(30, ROUNDS)
            latency(f"5 minutes beside {count} other blocks", lambda: data.get(), rounds=rounds)
            times[count] = cpu.spent()[0] / (
                rounds + 1
            )  # wall time would include other work on the host
            row(
                f"5 minutes beside {count} other blocks: server's CPU time",
                times[count] * 1e3,
                "ms",
            )
        ratio = times[400] / times[1]
        row(
            "the same window beside 400 blocks / beside 1, CPU time",
            ratio,
            "",
            "<= 1.2",
            ratio <= 1.2,
        )


def part_memory():
    """200 targets send in real time while a client queries everything."""
    with start() as server:
        data = Data(server, "m", "otlp", PACED_MINUTES, keep=False, more=["--paced"])
        for _ in range(ROUNDS):
            data.get()
        peak = status_kib(server.child_pid(), "VmHWM") / 1024
        row(
            f"server RSS peak, 200 targets for {PACED_MINUTES} minutes, then queries",
            peak,
            "MiB",
            "<= 300",
            peak <= 300,
        )
        spent = data.server_cpu_s + data.postgres_cpu_s
        row("CPU time for 200 targets", 100 * spent / (60 * PACED_MINUTES), "% of one")


def download(data, path):
    """Downloads the export into a file in chunks."""
    connection = data.server.connect(timeout=900)
    connection.request(
        "GET",
        f"/api/v1/export?query={TYPE}&start={data.start}&end={data.end}",
        headers={"Authorization": "Bearer " + data.client.token},
    )
    response = connection.getresponse()
    assert response.status == 200, response.read()
    with open(path, "wb") as file:
        shutil.copyfileobj(response, file, 1 << 20)
    connection.close()


def part_export():
    """Exports all samples of A as Parquet with their stacks; DuckDB reads the file."""
    with start() as server:
        data, path = Data(server, "e", "otlp", MINUTES), WORK / "export.parquet"
        settle(server, data.tenant)
        server.stop()
        server.start()
        data.client.close()
        data.get(report="top", limit=1)
        before = status_kib(server.child_pid(), "VmRSS") / 1024
        cpu = Cpu(server)
        download(data, path)
        spent = cpu.spent()[0]
        after = status_kib(server.child_pid(), "VmHWM") / 1024
        row(
            f"export: {int(data.rows):,} rows with their stacks",
            path.stat().st_size / data.rows,
            "B/row",
        )
        row("export: rows/s/core", data.rows / spent / 1e6, "M rows/s")
        row("export: growth of memory", after - before, "MiB")
        theirs, ours = duckdb(
            ":memory:",
            1,
            f"SELECT count(*), sum(value)::BIGINT FROM '{path}'",
            f"SELECT count(*), sum(value)::BIGINT FROM '{data.rows_file}'",
        )
        assert theirs["rows"] == ours["rows"], (theirs, ours)


def part_fresh():
    """Time from the first byte of a profile to the last byte of a result that includes it."""
    with start() as server:
        client = Tenant(server).api("ingest", "read")
        times = []

        def round_trip(i):
            post(client, BEGIN_S + i, f"p{i}")
            response = client.get(
                "/api/v1/query",
                query={
                    "query": SMALL + f'{{pod="p{i}"}}',
                    "start": BEGIN_S,
                    "end": BEGIN_S + DAY_S,
                    "report": "folded",
                },
            )
            assert response.status == 200 and response.text == "main;work 1\n", response

        for i in range(max(100, ROUNDS)):
            times.append(timed(lambda i=i: round_trip(i)))
        p50, p99 = percentiles(times)
        row("read after write, p50", p50, "ms")
        row("read after write, p99", p99, "ms", "<= 250", p99 <= 250)


def part_waiting():
    """Start of a server with 1,000 segments that were never merged."""
    with start("--jobs-interval", "1h") as server:
        client = Tenant(server).api("ingest", "read")
        for i in range(1000):
            post(client, BEGIN_S + i, f"p{i % 200}")
        segments = sql(server, "SELECT count(*) FROM segment")[0][0]
        server.stop()
        begin = time.perf_counter()
        server.start()
        ready = time.perf_counter() - begin
        client.close()
        response = client.get(
            "/api/v1/query",
            query={"query": SMALL, "start": BEGIN_S, "end": BEGIN_S + DAY_S, "report": "folded"},
        )
        taken = time.perf_counter() - begin
        assert response.text == "main;work 1000\n", response
        row(f"start with {segments} segments waiting, to ready (PostgreSQL too)", ready, "s")
        row(
            f"start with {segments} segments waiting, to the first response",
            taken,
            "s",
            "<= 3",
            taken <= 3,
        )


def part_scan():
    run_c_bench("bench_store", [min(60, max(10, MINUTES))])
    run_c_bench("bench_counters", [])


PARTS = {
    "ingest": part_ingest,
    "tail": part_tail,
    "scan": part_scan,
    "other": part_other,
    "fresh": part_fresh,
    "memory": part_memory,
    "export": part_export,
    "waiting": part_waiting,
}


def main():
    wanted = sys.argv[1:] or list(PARTS)
    for name in wanted:
        if name not in PARTS:
            sys.exit(f"unknown part {name}; there are {' '.join(PARTS)}")
    WORK.mkdir(parents=True, exist_ok=True)
    print(f"{'benchmark':<66} {'figure':>14} {'unit':<8} goal")
    for name in wanted:
        PARTS[name]()
    with open(WORK / "store.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["benchmark", "figure", "unit", "goal", "met"])
        writer.writerows(ROWS)
    missed = [entry[0] for entry in ROWS if entry[4] is False]
    print(
        f"{sum(entry[4] is True for entry in ROWS)} goals met, {len(missed)} missed",
        *missed,
        sep="\n  ",
    )


if __name__ == "__main__":
    main()
