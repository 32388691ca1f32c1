#!/usr/bin/env python3
"""Well-behaved clients while four attackers work, for a quarter of an hour: `make soak-hostile`.

    SOAK_SECONDS=900         duration of the attacks. The same clients first run alone, WARM_SECONDS
                             (300) without measuring and QUIET_SECONDS (180) with, so that the
                             readers' windows of five minutes are equally full in both measurements
    SOAK_RSS_MIB=1024        maximum memory of the server
    SOAK_ATTACKS=names,...   only these attacks, to find which of them slows other clients

Well-behaved clients: four agents of one team, each with a service that sends a profile every half
second, and four readers of the same team, which request the top table, the flame graph, values over
time and the list of series of the last minutes. Each has its own address (127.0.1.x). Attackers:

    names          an ingest token of the same team: names of 100 MB in small gzip bodies,
    thousands of
                   long names, profiles dated next year, decompression bombs
    connections    as many idle TLS connections as possible, from one address, then from twenty
    amplification  anonymous shares that render to very large pictures and folded files, eight
    requests
                   at a time
    lock-out       wrong passwords for a user of the team from 100 addresses, while the user signs
    in
                   with a browser that keeps the device cookie of its first sign-in

The run fails if the p99 of a kind of well-behaved request is more than twice that of the quiet
time (and above 20 ms), if an acknowledged profile is missing or counts twice, if a well-behaved
request is refused, if the user cannot sign in, if the server uses too much memory, or if the
refusal of an attack does not name its limit.
"""
import concurrent.futures
import gzip
import http.client
import json
import math
import multiprocessing
import os
import pathlib
import re
import shutil
import socket
import ssl
import sys
import time
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "integration"), str(HERE.parent / "bench")]

import conftest  # noqa: E402  (the server the tests use)
import people  # noqa: E402
from profiles import Strings, block, integer, packed  # noqa: E402

SECONDS = float(os.environ.get("SOAK_SECONDS", "900"))
QUIET_SECONDS = float(os.environ.get("QUIET_SECONDS", "180"))
WARM_SECONDS = float(os.environ.get("WARM_SECONDS", "300"))
RSS_MIB = int(os.environ.get("SOAK_RSS_MIB", "1024"))
CHOSEN = os.environ.get("SOAK_ATTACKS", "").split(",")
DEVICE_COOKIE = "__Host-perfolio_device"
FLOOR_MS = 20  # smaller times are noise
SAMPLE_NS = 10_000_000
CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"


def make_profile(time_ns, names, stacks=None, duration_ns=500_000_000):
    """gzip pprof of functions with these names; stacks: indexes of functions from the leaf, one CPU
    sample each."""
    strings = Strings()
    out = [block(1, integer(1, strings["cpu"]) + integer(2, strings["nanoseconds"]))]
    for stack in stacks or [range(len(names), 0, -1)]:
        out.append(block(2, packed(1, stack) + packed(2, [SAMPLE_NS])))
    for number, name in enumerate(names, 1):
        out.append(block(4, integer(1, number) + block(4, integer(1, number))))
        out.append(block(5, integer(1, number) + integer(2, strings[name])))
    out.append(block(11, integer(1, strings["cpu"]) + integer(2, strings["nanoseconds"])))
    out.append(integer(12, SAMPLE_NS) + integer(9, time_ns) + integer(10, duration_ns))
    out.extend(block(6, text.encode()) for text in strings.index)
    return gzip.compress(b"".join(out), 6, mtime=0)


class Client:
    """One keep-alive connection from its own address, which counts its responses."""

    def __init__(self, target, address, token=None):
        self.target, self.address, self.token = target, address, token
        self.connection = self.device_cookie = None

    def request(self, method, path, body=None, headers=None, timeout=60):
        """Returns (status, headers, body), or (0, {}, reason) if the connection breaks."""
        fields = dict(headers or {})
        if self.token:
            fields["Authorization"] = f"Bearer {self.token}"
        if self.device_cookie:
            fields["Cookie"] = self.device_cookie
        try:
            if self.connection is None:
                context = ssl.create_default_context(cafile=self.target["ca"])
                self.connection = http.client.HTTPSConnection(
                    "localhost",
                    self.target["port"],
                    context=context,
                    timeout=timeout,
                    source_address=(self.address, 0),
                )
            self.connection.request(method, path, body=body, headers=fields)
            response = self.connection.getresponse()
            content = response.read()
            for cookie in response.headers.get_all("set-cookie", []):
                if cookie.startswith(DEVICE_COOKIE + "="):
                    self.device_cookie = cookie.partition(";")[0]
            if response.getheader("connection", "").lower() == "close":
                self.close()
            return response.status, dict(response.getheaders()), content
        except (OSError, http.client.HTTPException) as error:
            self.close()
            return 0, {}, str(error).encode()

    def close(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None


# ---- clients: each returns {"kind": [ms], "refused": [text], "sent": {service: count}} ----


def timed(figures, kind, client, method, path, body=None, accepted=(200,)):
    begun = time.monotonic()
    status, _, content = client.request(method, path, body)
    if status == 0:  # an idle connection may be closed: retry on a new one
        status, _, content = client.request(method, path, body)
    figures.setdefault(kind, []).append((time.monotonic() - begun) * 1000)
    if status not in accepted:
        figures.setdefault("refused", []).append(f"{kind}: {status} {content[:300]!r}")
    return status


def agent(target, number, seconds):
    figures, service = {}, f"honest-{number}"
    client = Client(target, f"127.0.1.{number + 1}", target["ingest"])
    path = "/api/v1/profiles?" + urllib.parse.urlencode({"label": f"service_name={service}"})
    end, sent = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        body = make_profile(time.time_ns(), ["main", "serve", f"handler_{sent % 50}"])
        if timed(figures, "ingest", client, "POST", path, body) == 200:
            sent += 1
        time.sleep(0.5)
    figures["sent"] = {service: sent}
    return figures


def reader(target, number, seconds):
    figures = {}
    client = Client(target, f"127.0.1.{number + 101}", target["read"])
    end, turn = time.monotonic() + seconds, number
    while time.monotonic() < end:
        service = f"honest-{turn % 4}"
        query = {"query": f'{CPU}{{service_name="{service}"}}', "start": "now-5m"}
        kind, path, more = (
            ("top", "/api/v1/query", {"report": "top"}),
            ("flame", "/api/v1/query", {"report": "flame"}),
            ("range", "/api/v1/query_range", {}),
            ("series", "/api/v1/series", None),
        )[turn // 4 % 4]
        text = urllib.parse.urlencode(
            {**query, **more}
            if more is not None
            else {"match[]": query["query"], "start": "now-5m"}
        )
        timed(figures, kind, client, "GET", f"{path}?{text}")
        turn += 1
        time.sleep(0.25)
    return figures


def person(target, number, seconds):
    """Signs in every ten seconds with the right password, from one address and in one browser."""
    del number
    figures, end = {}, time.monotonic() + seconds
    body = json.dumps({"email": target["email"], "password": people.PASSWORD})
    client = Client(target, "127.0.1.201")
    while time.monotonic() < end:
        begun = time.monotonic()
        status, _, content = client.request(
            "POST", "/api/v1/session", body, {"Content-Type": "application/json"}
        )
        figures.setdefault("sign-in", []).append((time.monotonic() - begun) * 1000)
        if status not in (200, 201):
            figures.setdefault("refused", []).append(f"sign-in: {status} {content[:300]!r}")
        client.close()
        time.sleep(10)
    return figures


# ---- attackers: each returns {"status": {status: count}, "texts": {text of a refusal: count}} ----


def count(figures, status, content):
    statuses, texts = figures.setdefault("status", {}), figures.setdefault("texts", {})
    statuses[status] = statuses.get(status, 0) + 1
    if status >= 400:
        try:
            problem = json.loads(content)
            text = problem.get("detail") or problem.get("message") or ""
        except (ValueError, AttributeError):
            text = content[:200].decode("utf-8", "replace")
        text = re.sub(r"\d{5,}", "N", text)
        texts[text] = texts.get(text, 0) + 1


def attack_names(target, seconds):
    figures = {}
    client = Client(target, "127.0.2.1", target["hostile"])
    year_ns = 400 * 86400 * 10**9
    long_name = make_profile(time.time_ns(), ["main", "A" * (100 << 20)])
    end, turn = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        now = time.time_ns()
        body = (
            lambda: long_name,
            lambda: make_profile(now, [f"{turn}_{i}_" + "B" * 60_000 for i in range(200)]),
            lambda: make_profile(now + year_ns, ["main", "later"]),
            lambda: gzip.compress(bytes(200 << 20), 6),
        )[turn % 4]()
        service = "honest-0" if turn % 8 < 4 else f"noise-{turn}"
        path = "/api/v1/profiles?" + urllib.parse.urlencode({"label": f"service_name={service}-x"})
        status, _, content = client.request("POST", path, body)
        count(figures, status, content)
        turn += 1
        time.sleep(0.2)
    return figures


def attack_connections(target, seconds):
    """Opens TLS connections and leaves them idle; opens those again that the server closes."""
    figures, end, held, most, turn = {}, time.monotonic() + seconds, [], 0, 0
    context = ssl.create_default_context(cafile=target["ca"])
    while time.monotonic() < end:
        address = "127.0.3.1" if turn % 2000 < 1000 else f"127.0.3.{turn % 20 + 2}"
        try:
            plain = socket.create_connection(
                ("localhost", target["port"]), timeout=10, source_address=(address, 0)
            )
            held.append(context.wrap_socket(plain, server_hostname="localhost"))
            count(figures, 101, b"")
        except OSError:
            count(figures, 0, b"")
            time.sleep(0.05)
        turn += 1
        most = max(most, len(held))
        if len(held) > 3000:
            held.pop(0).close()
        time.sleep(0.01)
    figures["most"] = most
    return figures


def amplifying_share():
    """A few KB of 250 deep stacks of long names, which need 250 MB as folded text."""
    names = [f"f{i}_" + "n" * 10_000 for i in range(100)] + [f"leaf{i}" for i in range(250)]
    stacks = [[101 + i, *range(100, 0, -1)] for i in range(250)]
    return make_profile(time.time_ns(), names, stacks)


def attack_amplification(target, seconds):
    figures, end = {}, time.monotonic() + seconds
    made = Client(target, "127.0.4.1").request("POST", "/api/v1/shares", amplifying_share())
    count(figures, made[0], made[2])
    try:
        share = json.loads(made[2])["id"]
    except (ValueError, KeyError):
        return figures
    received = [0]

    def render(number):
        client = Client(target, "127.0.4.1")
        while time.monotonic() < end:
            path = (
                f"/p/{share}.svg",
                f"/p/{share}.folded",
                f"/p/{share}.png",
                f"/api/v1/shares/{share}/top?focus=leaf{number}",
            )[number % 4]
            status, _, content = client.request("GET", path)
            count(figures, status, content)
            received[0] += len(content)
            time.sleep(0.05)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(render, range(8)))
    figures["received_mib"] = received[0] >> 20
    return figures


def attack_password(target, seconds):
    figures, end, turn = {}, time.monotonic() + seconds, 0
    while time.monotonic() < end:
        client = Client(target, f"127.0.5.{turn % 100 + 1}")
        body = json.dumps({"email": target["email"], "password": f"wrong password {turn}"})
        status, _, content = client.request(
            "POST", "/api/v1/session", body, {"Content-Type": "application/json"}
        )
        count(figures, status, content)
        client.close()
        turn += 1
        time.sleep(0.2)
    return figures


ATTACKS = {
    "names": attack_names,
    "connections": attack_connections,
    "amplification": attack_amplification,
    "lock-out": attack_password,
}


# ---- the run ----


def attack(name, target, seconds, results):
    """Real attackers use their own machines, so here they run only when neither the server nor a
    client needs a processor."""
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    results.put((name, ATTACKS[name](target, seconds)))


def run_client(job, target, seconds):
    return job[0](target, job[1], seconds)


def run_honest(target, seconds):
    """Results of all clients, joined."""
    jobs = [(agent, i) for i in range(4)] + [(reader, i) for i in range(4)] + [(person, 0)]
    joined = {}
    with concurrent.futures.ProcessPoolExecutor(
        len(jobs), multiprocessing.get_context("fork")
    ) as pool:
        for figures in pool.map(run_client, jobs, [target] * len(jobs), [seconds] * len(jobs)):
            for kind, values in figures.items():
                if kind == "sent":
                    for service, number in values.items():
                        joined.setdefault("sent", {}).setdefault(service, 0)
                        joined["sent"][service] += number
                else:
                    joined.setdefault(kind, []).extend(values)
    return joined


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)]


def resident_mib(pid, key="VmRSS"):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) >> 10
    return 0


def stored_total(target, service):
    """The sum of all samples of a service that the server stores now."""
    query = urllib.parse.urlencode(
        {
            "query": f'{CPU}{{service_name="{service}"}}',
            "start": "now-2h",
            "end": "now+1m",
            "report": "top",
            "limit": 0,
        }
    )
    status, _, content = Client(target, "127.0.1.250", target["read"]).request(
        "GET", f"/api/v1/query?{query}"
    )
    assert status == 200, content[:500]
    return json.loads(content)["total"]


NAMES_ITS_LIMIT = re.compile(
    r"limit|at most|at a time|more than|ahead|larger|longer|too many|wrong|Retry|again in|within|"
    r"not a supported profile",
    re.I,
)


def judge(target, warm, quiet, loud, attacks, peak_mib):
    faults = []
    print(
        f"{'requests':<15} {'quiet p50':>7} {'p99':>8} {'attacked p50':>13} {'p99':>8} {'ratio':>6}"
    )
    for kind in ("ingest", "top", "flame", "range", "series", "sign-in"):
        figures = [percentile(part[kind], share) for part in (quiet, loud) for share in (0.5, 0.99)]
        ratio = figures[3] / figures[1]
        print(
            f"{kind:<15} {figures[0]:>9.1f} {figures[1]:>8.1f} {figures[2]:>13.1f} "
            f"{figures[3]:>8.1f} {ratio:>6.2f}"
        )
        if ratio > 2 and figures[3] > FLOOR_MS:
            faults.append(f"p99 of {kind} is {ratio:.2f} times the quiet one")
    refused = [text for part in (warm, quiet, loud) for text in part.get("refused", [])]
    faults += [f"honest request refused: {text}" for text in refused[:5]]
    for service in quiet["sent"]:
        sent = sum(part["sent"][service] for part in (warm, quiet, loud)) * SAMPLE_NS
        stored = stored_total(target, service)
        print(
            f"{service}: {sent // SAMPLE_NS} profiles acknowledged, {stored / SAMPLE_NS:.0f} stored"
        )
        if stored != sent:
            faults.append(f"{service}: {sent} ns acknowledged, {stored} ns stored")
    print(f"server: {peak_mib} MiB resident at most")
    if peak_mib > RSS_MIB:
        faults.append(f"the server held {peak_mib} MiB, more than {RSS_MIB}")
    for name, figures in attacks.items():
        print(
            f"attack {name}: {figures.get('status')}",
            {k: v for k, v in figures.items() if k not in ("status", "texts")},
        )
        for text, times in sorted(figures.get("texts", {}).items(), key=lambda item: -item[1]):
            print(f"    {times} x {text}")
            if not NAMES_ITS_LIMIT.search(text):
                faults.append(f"{name}: a refusal does not name its limit: {text}")
    return faults


def watch_memory(pid, until):
    peak = 0
    while not until.is_set():
        try:
            peak = max(peak, resident_mib(pid))
        except OSError:
            return 1 << 20  # the server is gone
        until.wait(0.2)
    return peak


def main():
    folder = conftest.make_folder()
    server = conftest.Server(folder / "data", ["--log-level", "warn"])
    server.start()
    try:
        tenant = people.Tenant(server)
        target = {
            "port": server.port,
            "ca": str(server.ca_file),
            "ingest": tenant.make_token("ingest")["token"],
            "read": tenant.make_token("read")["token"],
            "hostile": tenant.make_token("ingest")["token"],
            "email": tenant.add_user("member")["email"],
        }
        done = multiprocessing.Event()
        with concurrent.futures.ThreadPoolExecutor(1) as watcher:
            peak = watcher.submit(watch_memory, server.child_pid(), done)
            print(f"warm-up for {WARM_SECONDS:.0f} s", flush=True)
            warm = run_honest(target, WARM_SECONDS)
            print(f"quiet for {QUIET_SECONDS:.0f} s", flush=True)
            quiet = run_honest(target, QUIET_SECONDS)
            print(f"attacked for {SECONDS:.0f} s", flush=True)
            results = multiprocessing.Queue()
            attackers = [
                multiprocessing.Process(
                    target=attack, args=(name, target, SECONDS, results), daemon=True
                )
                for name in ATTACKS
                if name in CHOSEN or CHOSEN == [""]
            ]
            for process in attackers:
                process.start()
            loud = run_honest(target, SECONDS)
            attacks = dict(results.get(timeout=300) for _ in attackers)
            for process in attackers:
                process.join(60)
            done.set()
            faults = judge(target, warm, quiet, loud, attacks, peak.result())
        if server.process.poll() is not None:
            faults.append("the server ended")
    finally:
        status = server.stop()
        shutil.rmtree(folder, ignore_errors=True)
    if status:
        faults.append(f"the server stopped with {status}")
    print(*[f"FAULT {fault}" for fault in faults] or ["no fault"], sep="\n")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
