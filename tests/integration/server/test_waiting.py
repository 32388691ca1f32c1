"""Waiting requests: reports over the concurrency limit, disconnected clients, a stop of the server,
and requests that must not wait for others."""

import contextlib
import os
import shutil
import signal
import subprocess
import threading
import time

import pytest

import sample_profiles as samples
from conftest import make_folder
from test_background_locks import Held, query_row
from test_http_raw import Wire, get, metric, post, wait_until
from test_shares import new_tenant

MANY = 5


# Delays openat() of an object while the file FOLDER/stalled exists. Only os_open_file passes both
# flags.
STALLING_OPENAT = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>
int openat(int folder, const char *path, int flags, ...)
{
    int (*real)(int, const char *, int, mode_t) =
        (int (*)(int, const char *, int, mode_t))dlsym(RTLD_NEXT, "openat");
    mode_t mode = 0;
    if (flags & O_CREAT) {
        __builtin_va_list arguments;
        __builtin_va_start(arguments, flags);
        mode = __builtin_va_arg(arguments, mode_t);
        __builtin_va_end(arguments);
    }
    while (flags & O_NONBLOCK && flags & O_NOFOLLOW && access(FOLDER "/stalled", F_OK) == 0)
        usleep(5000);
    return real(folder, path, flags, mode);
}
"""


@pytest.fixture
def stall(start_server):
    """stall(*flags) returns a Stalled: a server on which the first report of a share waits for the
    profile and so occupies the concurrency limit."""
    folder = make_folder()  # readable by the user of the server
    source, library, flag = folder / "stall.c", folder / "stall.so", folder / "stalled"
    source.write_text(STALLING_OPENAT)
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-O1", f'-DFOLDER="{folder}"', source, "-o", library, "-ldl"],
        check=True,
    )

    def make(*flags):
        environment = {"LD_PRELOAD": str(library), "ASAN_OPTIONS": "verify_asan_link_order=0"}
        return Stalled(start_server(*flags, environment=environment), flag)

    yield make
    shutil.rmtree(folder, ignore_errors=True)


class Stalled:
    def __init__(self, server, flag):
        self.server, self.flag = server, flag
        self.id = server.api().post("/api/v1/shares", samples.FOLDED).json()["id"]
        server.restart()
        flag.touch()
        self.first = self.request_report()
        assert wait_until(lambda: metric(server, "perfolio_reports_running") == 1)

    def request_report(self, number=0):
        return Wire(self.server).send(get(f"/api/v1/shares/{self.id}/top?limit={number + 1}"))

    def release(self):
        self.flag.unlink()


def waiting(server):
    return metric(server, "perfolio_reports_waiting")


def queue_reports(stalled, count=MANY):
    """Sends count report requests, which wait because of the concurrency limit."""
    wires = [stalled.request_report(number + 1) for number in range(count)]
    assert wait_until(lambda: waiting(stalled.server) == count)
    return wires


@pytest.mark.long
def test_waiting_reports_of_disconnected_clients_are_dropped(stall):
    stalled = stall("--worker-threads", "4")
    server = stalled.server
    wires = queue_reports(stalled)
    for wire in wires[1:]:
        wire.socket.close()
    assert wait_until(lambda: waiting(server) == 1)
    assert metric(server, 'perfolio_http_connections_cut_total{reason="gone"}') == MANY - 1
    assert metric(server, "perfolio_http_workers_busy") == 1  # the stalled report
    assert wait_until(lambda: metric(server, "perfolio_http_requests_in_flight") == 3)
    stalled.release()
    status, headers, _ = wires[0].response()
    assert status == 200 and headers["x-robots-tag"] == "noindex", headers
    assert waiting(server) == 0


def test_an_address_with_many_shares_leaves_slots_to_others(stall):
    """Six shares of one address wait for their profiles. A quarter of the workers waits; reports
    of a team are computed meanwhile."""
    stalled = stall("--worker-threads", "8")
    server, team = stalled.server, stalled.server.api()
    stalled.release()
    stalled.first.response()
    shares = [
        team.post("/api/v1/shares", samples.FOLDED + b"other%d 1\n" % number).json()["id"]
        for number in range(6)
    ]
    server.restart()
    own = f"/api/v1/shares/{stalled.id}/top"
    assert team.get(own).status == 200  # its profile is in memory from here on
    stalled.flag.touch()
    wires = [
        Wire(server).send(get(f"/api/v1/shares/{share}/top?limit={limit}"))
        for limit in (1, 2)
        for share in shares
    ]
    assert wait_until(lambda: waiting(server) == len(wires) - 2)
    assert metric(server, "perfolio_reports_running") == 2
    for limit in range(1, 5):
        assert team.get(own, query={"limit": limit}).status == 200
    stalled.release()
    assert [wire.response()[0] for wire in wires] == [200] * len(wires)


def test_a_request_replaces_one_of_the_client_with_the_most(stall):
    """Four of the eight places may wait for one share, and an address has taken them all."""
    stalled = stall("--worker-threads", "4", "--worker-queue", "8")
    server, wires = stalled.server, queue_reports(stalled, 4)
    status, _, body = stalled.request_report(9).response()
    assert (status, b"too many slow reports" in body) == (503, True), body
    authorization = f"Authorization: Bearer {server.api().token}\r\n"
    team = Wire(server).send(get(f"/api/v1/shares/{stalled.id}/top?limit=9", authorization))
    status, headers, body = wires[3].response()
    assert (status, b"your address or team" in body) == (503, True), body
    assert headers["retry-after"] == "5"
    assert waiting(server) == 4
    stalled.release()
    for wire in (*wires[:3], team):
        assert wire.response()[0] == 200


def test_a_report_waits_no_longer_than_report_wait(stall):
    stalled = stall("--worker-threads", "4", "--report-wait", "1s")
    server = stalled.server
    (wire,) = queue_reports(stalled, 1)
    status, headers, body = wire.response()
    assert status == 503 and int(headers["retry-after"]) > 0, body
    assert waiting(server) == 0 and metric(server, "perfolio_http_workers_busy") == 1
    stalled.release()
    assert wire.send(get(f"/api/v1/shares/{stalled.id}/top")).response()[0] == 200


def test_waiting_reports_get_503_when_the_server_stops(stall):
    stalled = stall("--worker-threads", "4")
    server = stalled.server
    wires = queue_reports(stalled)
    server.process.send_signal(signal.SIGTERM)
    for wire in wires:
        status, headers, body = wire.response()
        assert status == 503 and int(headers["retry-after"]) > 0 and b"stopping" in body, body
        assert wire.is_closed()
    assert server.process.poll() is None  # the stalled report has no response yet
    stalled.release()
    assert stalled.first.response() is not None
    assert server.process.wait(60) == 0


def test_a_forced_stop_closes_waiting_reports(stall):
    stalled = stall("--worker-threads", "4", "--shutdown-timeout", "0s")
    server = stalled.server
    wires = queue_reports(stalled)
    server.process.send_signal(signal.SIGTERM)
    assert all(wire.response() is None or wire.is_closed() for wire in wires)
    stalled.release()
    assert server.process.wait(60) == 0
    assert "requests_cut_off=some" in server.log()


@contextlib.contextmanager
def all_workers_busy(server, count):
    """Occupies count workers with requests that wait for the table of shares, of two teams, since a
    team may have half of the workers. (Uploads would wait for a slot without a worker.)"""
    listed = []
    tokens = [server.token, new_tenant(server.api(), f"busy {time.monotonic_ns()}")[1]]

    def list_shares(token):
        listed.append(server.api().get("/api/v1/shares", token=token).status)

    threads = [
        threading.Thread(target=list_shares, args=(tokens[number % 2],)) for number in range(count)
    ]
    with Held(server, "LOCK TABLE share IN ACCESS EXCLUSIVE MODE"):
        for thread in threads:
            thread.start()
        assert wait_until(lambda: metric(server, "perfolio_http_workers_busy") == count)
        assert wait_until(lambda: count_waiting_sessions(server) == count)
        yield
    for thread in threads:
        thread.join()
    assert listed == [200] * count


def count_waiting_sessions(server):
    return query_row(
        server,
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        " AND usename = 'perfolio_server'",
    )[0]


def test_a_queued_request_of_a_disconnected_client_is_dropped(shared_server):
    server = shared_server("--worker-threads", "4")
    gone = 'perfolio_http_connections_cut_total{reason="gone"}'
    count_shares = "SELECT count(*) FROM share"
    gone_before, shares_before = metric(server, gone), query_row(server, count_shares)[0]
    with all_workers_busy(server, 4):
        wire = Wire(server).send(post(len(samples.FOLDED)) + samples.FOLDED)
        assert wait_until(lambda: metric(server, "perfolio_http_queue_depth") == 1)
        wire.socket.close()
        assert wait_until(lambda: metric(server, gone) == gone_before + 1)
    assert wait_until(lambda: metric(server, "perfolio_http_queue_depth") == 0)
    assert query_row(server, count_shares)[0] == shares_before


def test_a_busy_server_is_ready(start_server):
    """Also if no database connection is free, and for longer than /readyz caches its result."""
    server = start_server("--worker-threads", "4", "--database-connections", "4")
    with all_workers_busy(server, 4):
        until = time.monotonic() + 1.2
        while time.monotonic() < until:
            with Wire(server) as wire:
                assert wire.send(get("/readyz")).response()[0] == 200


def test_ingest_requests_do_not_wait_for_workers(shared_server):
    """Ingest requests of all protocols run in separate threads."""
    server = shared_server("--worker-threads", "4")
    headers = {"Content-Type": "application/json"}
    with all_workers_busy(server, 4):
        for path, body in (
            ("/v1development/profiles", b"{}"),
            ("/push.v1.PusherService/Push", b"{}"),
            ("/ingest?name=app", samples.FOLDED),
            ("/api/v1/profiles", samples.FOLDED),
        ):
            response = server.api().post(path, body, headers=headers if body == b"{}" else {})
            assert response.status == 200, (path, response)


def test_queries_use_at_most_half_of_the_workers(shared_server):
    """Further queries wait without a worker and run later."""
    server = shared_server("--worker-threads", "4")
    assert server.api().post("/ingest", samples.FOLDED, query={"name": "app"}).status == 200
    responses = []
    threads = [
        threading.Thread(
            target=lambda: responses.append(
                server.api().get("/api/v1/query", query={"query": "process_cpu:cpu"}).status
            )
        )
        for _ in range(5)
    ]
    with Held(server, "LOCK TABLE block IN ACCESS EXCLUSIVE MODE"):
        for thread in threads:
            thread.start()
        assert wait_until(lambda: waiting(server) == 3)
        assert metric(server, "perfolio_http_workers_busy") == 2
        assert server.api().get("/api/v1/shares").status == 200
    for thread in threads:
        thread.join()
    assert responses == [200] * 5


@pytest.mark.parametrize("path", ["labels", "label/service_name/values", "series", "profile_types"])
def test_lists_do_not_wait_for_the_teams_queries(shared_server, path):
    server = shared_server("--worker-threads", "8")
    assert server.api().post("/ingest", samples.FOLDED, query={"name": "app"}).status == 200
    responses = []

    def fetch(name):
        query = {"query": "process_cpu:cpu"} if name == "query" else {}
        responses.append(server.api().get("/api/v1/" + name, query=query).status)

    threads = [threading.Thread(target=fetch, args=("query",)) for _ in range(9)]
    listing = threading.Thread(target=fetch, args=(path,))
    with Held(server, "LOCK TABLE block IN ACCESS EXCLUSIVE MODE"):
        for thread in threads:
            thread.start()
        # Queries occupy half of the workers, or as many as there are processors, and no other
        # worker is still queueing one.
        limit = min(4, os.cpu_count())
        assert wait_until(
            lambda: (metric(server, "perfolio_http_workers_busy"), waiting(server))
            == (limit, 9 - limit)
        )
        listing.start()  # gets a worker at once and is not queued
        assert wait_until(lambda: metric(server, "perfolio_http_workers_busy") == limit + 1)
        assert waiting(server) == 9 - limit
    for thread in [*threads, listing]:
        thread.join()
    assert responses == [200] * 10


def test_shares_of_queries_are_subject_to_the_query_limit(shared_server):
    """They do not wait: a request over the limit gets 503 with Retry-After."""
    server = shared_server("--worker-threads", "4")
    assert server.api().post("/ingest", samples.FOLDED, query={"name": "app"}).status == 200
    responses = []

    def share_query():
        responses.append(server.api().post("/api/v1/shares", query={"query": "process_cpu:cpu"}))

    threads = [threading.Thread(target=share_query) for _ in range(5)]
    with Held(server, "LOCK TABLE block IN ACCESS EXCLUSIVE MODE"):
        for thread in threads:
            thread.start()
        assert wait_until(lambda: len(responses) == 3)
        assert metric(server, "perfolio_http_workers_busy") == 2
        assert server.api().get("/api/v1/shares").status == 200
    for thread in threads:
        thread.join()
    assert sorted(response.status for response in responses) == [201] * 2 + [503] * 3
    assert all(
        int(response.headers["retry-after"]) > 0 for response in responses if response.status == 503
    )
    share_query()
    assert responses[-1].status == 201


@pytest.mark.long
def test_requests_do_not_read_the_cookie_key(start_server):
    """It is read at the start: a request that has one of its client's connections cannot wait for a
    second one."""
    server = start_server("--worker-threads", "4", "--database-connections", "2")
    with Held(server, "LOCK TABLE server_secret IN ACCESS EXCLUSIVE MODE"):
        for i in range(3):
            headers = {"Idempotency-Key": f"key{i}"}
            response = server.api().post("/api/v1/shares", samples.FOLDED, headers=headers)
            assert response.status == 201, response
