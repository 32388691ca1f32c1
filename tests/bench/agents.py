"""The part "agents" of tests/bench/run.py: agents that send OTLP and users who query, one server.

  make bench-agents               10 minutes; BENCH_SECONDS=120 for less
  BENCH_AGENTS, BENCH_SAMPLES     500 agents, 320 samples in a batch of 10 s
  BENCH_QUERIES                   20 per second
  BENCH_FLAGS                     settings of the server, such as "--block-cache-bytes 512MiB"

Afterwards every acknowledged profile (a batch has four) is looked up by host, service and time, and
its total is compared. A stored profile that no agent sent is an error. A batch that was refused but
is stored nevertheless shows only in the row "ids of batches less batches acknowledged".
build/bench/agents-memory.csv contains memory over time.

The parameter `bench` of the functions is the module tests/bench/run.py: its row() adds a row to the
table of results, and Running starts a server.
"""

import collections
import csv
import os
import pathlib
import subprocess
import threading
import time

QUERY = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
SAMPLE_EVERY_S = 5


def descendants(server, pid):
    return [pid, *server.descendants(pid)]


def pss_kib(pids):
    """Memory of a group of processes, counting shared pages once."""
    total = 0
    for pid in pids:
        try:
            lines = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total


def cpu_with_children(pids):
    """CPU time of processes, including their children that ended."""
    ticks = 0
    for pid in pids:
        try:
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(int(field) for field in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


class Watch(threading.Thread):
    """Samples the memory of server and database every few seconds."""

    def __init__(self, bench, server, path):
        super().__init__(daemon=True)
        self.bench, self.server, self.path = bench, server, path
        self.child, self.postmaster = server.child_pid(), server.postgres_pid()
        self.database = server.database()
        self.is_over = threading.Event()
        self.rows = []

    def run(self):
        begin = time.monotonic()
        while not self.is_over.wait(SAMPLE_EVERY_S):
            postgres = descendants(self.server, self.postmaster)
            self.rows.append(
                (
                    round(time.monotonic() - begin),
                    self.bench.status_kib(self.child, "VmRSS") // 1024,
                    pss_kib(postgres) // 1024,
                    len(postgres) - 1,
                    len(os.listdir(f"/proc/{self.child}/fd")),
                    *self.catalogue(),
                )
            )
        with open(self.path, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(
                [
                    "s",
                    "server_rss_mib",
                    "postgres_pss_mib",
                    "postgres_processes",
                    "fds",
                    "batches_waiting",
                    "blocks",
                    "segments_swapped",
                ]
            )
            writer.writerows(self.rows)

    def catalogue(self):
        """Returns the numbers of batches waiting in segments, of blocks, and of segments kept for
        running queries."""
        with self.database.cursor() as cursor:
            cursor.execute(
                "SELECT (SELECT coalesce(sum(cardinality(lengths)), 0) FROM segment_tenant "
                "WHERE NOT is_swapped), (SELECT count(*) FROM block WHERE swapped_at IS NULL), "
                "(SELECT count(*) FROM segment WHERE swapped_at IS NOT NULL)"
            )
            return cursor.fetchone()

    def stop(self):
        self.is_over.set()
        self.join()


def generate(bench, server, seconds, log):
    """Runs bench_agents. Returns its latencies {kind: [count, p50, p99, max]} in ms, its counts
    {name: number} and its CPU time in seconds."""
    command = [
        bench.BENCH / "bench_agents",
        "--url",
        server.url,
        "--ca",
        server.ca_file,
        "--token-file",
        server.data_dir / "admin.token",
        "--log",
        log,
        "--seconds",
        seconds,
        "--agents",
        os.environ.get("BENCH_AGENTS", "500"),
        "--samples",
        os.environ.get("BENCH_SAMPLES", "320"),
        "--queries",
        os.environ.get("BENCH_QUERIES", "20"),
    ]
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, text=True)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, "bench_agents failed"
    latencies, numbers = {}, {}
    # Rows of five are kind,count,p50,p99,max, rows of two are name,number (bench_agents.c).
    for row in list(csv.reader(output.splitlines()))[1:]:
        if len(row) == 5:
            latencies[row[0]] = [float(field) for field in row[1:]]
        else:
            numbers[row[0]] = int(row[1])
    return latencies, numbers, usage.ru_utime + usage.ru_stime


def stored_profiles(api, begin_s):
    """Returns {(host, service, time_ns): [total]} of all stored profiles."""
    found, after = collections.defaultdict(list), None
    while True:
        query = {"query": QUERY, "start": begin_s, "end": "now+1h", "limit": 10000}
        response = api.get(
            "/api/v1/profiles", query={**query, **({"after": after} if after else {})}
        )
        assert response.status == 200, response
        for profile in response.json()["data"]:
            labels = profile["labels"]
            found[labels["host_name"], labels["service_name"], int(profile["time_ns"])].append(
                profile["total"]
            )
        after = response.json()["next"]
        if not after:
            return found


def compare(log, found):
    """Compares the log of bench_agents with `found`, from which it removes the profiles of the log.
    Returns the numbers of acknowledged profiles that are not stored, of profiles stored with
    another total or more than once, and of stored profiles that no agent sent."""
    lost = wrong = 0
    for host, service, time_ns, total, is_acknowledged in csv.reader(open(log)):
        totals = found.pop((host, service, int(time_ns)), [])
        lost += not totals and is_acknowledged == "1"
        wrong += bool(totals) and totals != [int(total)]
    return lost, wrong, len(found)


def count_rows(server):
    """Returns the numbers of batch ids, segments and blocks in the catalogue."""
    with server.database().cursor() as cursor:
        cursor.execute(
            "SELECT (SELECT count(*) FROM ingest_batch), (SELECT count(*) FROM segment), "
            "(SELECT count(*) FROM block)"
        )
        return cursor.fetchone()


def report_catalogue(bench, server):
    """Adds the rows about the catalogue. Returns the number of batch ids in it."""
    batches, segments, blocks = count_rows(server)
    bench.row("agents: ids of batches in the catalogue", batches, "")
    bench.row("agents: segments at the end", segments, "")
    bench.row("agents: blocks at the end", blocks, "")
    return batches


def stored_bytes(server):
    folder = server.data_dir / "objects"
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def report(bench, seconds, latencies, numbers):
    ack, query = latencies["ack"], latencies["query"]
    bench.row(
        "agents: batches acknowledged",
        numbers["acknowledged"],
        "",
        f"all of {numbers['batches']}",
        numbers["acknowledged"] == numbers["batches"],
    )
    bench.row("agents: samples", numbers["samples"] / seconds, "/s")
    bench.row("agents: bytes, compressed", numbers["bytes"] / seconds / 1e6, "MB/s")
    for name in (
        "refused with Retry-After",
        "sent again",
        "transport errors",
        "queries skipped (all connections busy)",
        "batches made late",
    ):
        bench.row(f"agents: {name}", numbers[name], "")
    failed = numbers["refused for good"] + numbers["queries that failed"]
    bench.row("agents: requests that failed", failed, "", "0", failed == 0)
    bench.row("agents: batch to response, p50", ack[1], "ms")
    bench.row("agents: batch to response, p99", ack[2], "ms", "<= 500", ack[2] <= 500)
    bench.row("agents: query, p50", query[1], "ms")
    bench.row("agents: query, p99", query[2], "ms", "<= 1000", query[2] <= 1000)
    for kind, (count, p50, p99, _) in latencies.items():
        if kind not in ("ack", "query"):
            bench.row(f"agents: {kind}, p50 of {count:.0f}", p50, "ms")
            bench.row(f"agents: {kind}, p99", p99, "ms")


def part(bench):
    seconds = float(os.environ.get("BENCH_SECONDS", "600"))
    log = bench.WORK / "agents.log"
    with bench.Running(flags=os.environ.get("BENCH_FLAGS", "").split()) as server:
        begin_s = int(time.time()) - 60
        postmaster = server.postgres_pid()
        watch = Watch(bench, server, bench.WORK / "agents-memory.csv")
        watch.start()
        cpu = server.cpu_seconds(), cpu_with_children(descendants(server, postmaster))
        latencies, numbers, own_cpu = generate(bench, server, seconds, log)
        cpu = (
            server.cpu_seconds() - cpu[0],
            cpu_with_children(descendants(server, postmaster)) - cpu[1],
        )
        watch.stop()
        report(bench, seconds, latencies, numbers)
        for name, used in (("server", cpu[0]), ("PostgreSQL", cpu[1]), ("generator", own_cpu)):
            bench.row(f"agents: processors used by {name}", used / seconds, "cores")
        peak = bench.status_kib(server.child_pid(), "VmHWM") / 1024
        bench.row("agents: server RSS peak", peak, "MiB", "<= 512", peak <= 512)
        pss = watch.rows[-1][2] if watch.rows else 0
        bench.row("agents: PostgreSQL PSS at the end", pss, "MiB")
        bench.row(
            "agents: bytes stored per sample, unmerged segments included",
            stored_bytes(server) / max(numbers["samples"], 1),
            "bytes",
        )
        batches = report_catalogue(bench, server)
        api = server.api()
        found = stored_profiles(api, begin_s)
        lost, wrong, foreign = compare(log, found)
        bench.row(
            "agents: ids of batches less batches acknowledged",
            batches - numbers["acknowledged"],
            "",
            "0",
            batches == numbers["acknowledged"],
        )
        bench.row("agents: acknowledged profiles lost", lost, "", "0", lost == 0)
        bench.row("agents: profiles changed or doubled", wrong, "", "0", wrong == 0)
        bench.row("agents: profiles that no agent sent", foreign, "", "0", foreign == 0)
        api.close()
