"""Large hostile profiles, in which all stacks differ: the memory of the server stays within its
limit."""

import concurrent.futures
import os
import pathlib
import re
import time

import pytest

import sample_profiles as samples
from test_shares import problem
from test_uploads import begin, put

pytestmark = pytest.mark.long

MIB = 1 << 20
FUNCTIONS = 100
# The process's memory besides heavy work: its base, both caches, and light work of each thread.
BESIDES_MIB = 40 + 64 + 64 + 2 * 40


def random_pprof(megabytes, depth=60):
    """Raw pprof with random stacks of 100 functions, so that no two samples are alike."""
    profiles = samples.profiles
    names = ["", "hits", "count", *(f"function{i}" for i in range(FUNCTIONS))]
    parts = [profiles.block(1, profiles.integer(1, 1) + profiles.integer(2, 2))]
    head = b"\x0a" + profiles.varint(depth)
    tail = b"\x12\x01\x01"
    one = profiles.varint(2 << 3 | 2) + profiles.varint(len(head) + depth + len(tail)) + head
    count = megabytes * MIB // (len(one) + depth + len(tail))
    ids = bytes(i % FUNCTIONS + 1 for i in range(256))
    stacks = os.urandom(count * depth).translate(ids)
    parts.append(b"".join(one + stacks[i * depth : (i + 1) * depth] + tail for i in range(count)))
    for i in range(FUNCTIONS):
        parts.append(
            profiles.block(
                4, profiles.integer(1, i + 1) + profiles.block(4, profiles.integer(1, i + 1))
            )
        )
        parts.append(profiles.block(5, profiles.integer(1, i + 1) + profiles.integer(2, i + 3)))
    parts.extend(profiles.block(6, name.encode()) for name in names)
    return b"".join(parts)


def push(api, data):
    """Uploads data in parts, as clients do with large profiles."""
    upload = begin(api, len(data))
    for number in range(upload["part_count"]):
        assert put(api, upload, number, data).status == 204
    return api.post(f"/api/v1/uploads/{upload['id']}/complete")


def share(api, data):
    response = push(api, data)
    assert response.status == 201, response
    return response.json()


def peak_mib(server):
    status = pathlib.Path("/proc", str(server.child_pid()), "status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024


def test_concurrent_reports_of_a_heavy_profile_stay_within_the_budget(start_server):
    heavy_mib = 448
    server = start_server(
        "--max-heavy-memory",
        f"{heavy_mib}MiB",
        "--profile-cache-bytes",
        "64MiB",
        "--worker-threads",
        "8",
        "--loop-threads",
        "2",
    )
    api = server.api()
    data = random_pprof(20)
    made = [share(api, data) for _ in range(2)]
    cost = api.get(f"/api/v1/shares/{made[0]['id']}").json()["cost"]
    assert cost["samples"] * 60 == cost["stack_frames"]
    assert cost["decoded_bytes"] > len(data)

    def fetch(number):
        ids = made[number % 2]["id"], made[1 - number % 2]["id"]
        paths = [
            f"/api/v1/shares/{ids[0]}/flame?limit={10000 + number}",
            f"/api/v1/shares/{ids[0]}/top?focus=function{number}",
            f"/p/{ids[0]}.svg?ignore=function{number}",
        ]
        response = server.api(None).get(paths[number % 3], headers={"Accept-Encoding": "zstd"})
        return response.status, response.headers.get("retry-after")

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        responses = list(pool.map(fetch, range(16)))
    assert {status for status, _ in responses} <= {200, 503}
    assert sum(status == 200 for status, _ in responses) >= 4
    assert all(retry for status, retry in responses if status == 503)
    assert api.get("/healthz").status == 200
    assert peak_mib(server) < heavy_mib + BESIDES_MIB, peak_mib(server)


def test_a_profile_above_the_memory_limit_is_refused_with_the_setting(start_server):
    server = start_server("--max-heavy-memory", "96MiB")
    api = server.api()
    made = share(api, random_pprof(12))
    for path in ("flame", "top"):
        refused = problem(api.get(f"/api/v1/shares/{made['id']}/{path}"), 413)
        assert "--max-heavy-memory" in refused["detail"]
    assert problem(api.get(f"/p/{made['id']}.png"), 413)
    merged = api.post("/api/v1/merge", json={"shares": [made["id"], made["id"]]})
    assert "--max-heavy-memory" in problem(merged, 413)["detail"]
    assert api.get(f"/p/{made['id']}/raw").status == 200
    assert problem(push(api, random_pprof(40)), 413)


def test_a_report_that_exceeds_its_cpu_time_is_refused(start_server):
    server = start_server("--report-cpu-time", "1s", "--max-heavy-memory", "4GiB")
    api = server.api()
    made = share(api, random_pprof(48))
    refused = problem(api.get(f"/api/v1/shares/{made['id']}/flame"), 413)
    assert "focus" in refused["detail"]
    assert (
        api.get(
            f"/api/v1/shares/{made['id']}/flame",
            query={"focus": "^function1$", "ignore": "function[2-9]"},
        ).status
        == 200
    )


def test_slow_reports_of_one_share_leave_workers_for_others(start_server):
    """All slow reports are computed, one after the other."""
    workers = 4
    server = start_server(
        "--worker-threads", str(workers), "--max-heavy-memory", "4GiB", "--report-wait", "600s"
    )
    api = server.api()
    slow, quick = share(api, random_pprof(16)), api.post("/api/v1/shares", samples.FOLDED).json()
    many = 12
    finished = []

    def fetch(number):
        response = server.api().get(f"/api/v1/shares/{slow['id']}/top?focus=function{number}")
        finished.append(number)
        return response.status

    with concurrent.futures.ThreadPoolExecutor(many) as pool:
        futures = [pool.submit(fetch, number) for number in range(many)]
        while not finished:
            time.sleep(0.01)
        waited_for = []
        for path in ("", "/flame", "/top"):
            before = len(finished)
            assert api.get(f"/api/v1/shares/{quick['id']}{path}").status == 200
            waited_for.append(len(finished) - before)
        assert {future.result() for future in futures} == {200}
    # In one common queue, a quick request would have waited for nearly all slow ones.
    assert max(waited_for) < many - workers, waited_for
