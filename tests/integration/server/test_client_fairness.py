"""Limits of one client in the workers' queue, and in the memory for requests that wait."""

import contextlib
import random

import sample_profiles as samples
from conftest import Api
from test_background_locks import Held
from test_http_raw import Wire, get, metric, open_folder, wait_until  # noqa: F401
from test_shares import new_tenant
from test_team_share import Requests, sessions_that_wait

BODY_BYTES = (8 << 20) - 4096
QUARTER_BYTES = 32 << 20  # of the memory for requests: CONCURRENCY_LIMIT_WAITING_BYTES
QUEUE = 64
MORE = 5


def post(token, path, body):
    return (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode() + body


@contextlib.contextmanager
def table_of_shares_locked(server):
    with contextlib.closing(server.database()) as gate:
        gate.autocommit = False
        gate.cursor().execute("LOCK TABLE share IN ACCESS EXCLUSIVE MODE")
        yield
        gate.rollback()


@contextlib.contextmanager
def occupied_workers(server):
    """The requests of a team occupy its half of two workers: one waits for a lock."""
    tenant, token = new_tenant(server.api(), "slow")
    share = Api(server, token).post("/api/v1/shares", samples.FOLDED).json()["id"]
    with Held(server, "SELECT 1 FROM tenant WHERE id = %s FOR UPDATE", tenant):
        requests = Requests(server, token, share, 1)
        assert wait_until(lambda: sessions_that_wait(server) == 1)
        yield token
    assert requests.join() == [200]


def test_bodies_of_requests_put_aside_have_a_limit(start_server):
    server = start_server("--worker-threads", "2", "--report-wait", "3600s")
    count, body = 8, random.Random(1).randbytes(BODY_BYTES)
    with occupied_workers(server) as token:
        wires = []
        for number in range(count):
            wires.append(Wire(server).send(post(token, "/api/v1/shares", body)))
            least = min(number + 1, QUARTER_BYTES // BODY_BYTES)
            assert wait_until(lambda: metric(server, "perfolio_requests_waiting") >= least)
        put_aside = QUARTER_BYTES // BODY_BYTES
        for wire in wires[put_aside:]:
            status, headers, _ = wire.response()
            assert status == 503 and int(headers["retry-after"]) > 0
        assert metric(server, "perfolio_requests_waiting") == put_aside
        held = metric(server, "perfolio_http_request_bytes")
        assert put_aside * BODY_BYTES < held <= QUARTER_BYTES + (1 << 20)
        assert server.anonymous().post("/api/v1/shares", samples.FOLDED).status == 201
    for wire in wires[:put_aside]:
        assert wire.response()[0] == 415
    assert wait_until(lambda: metric(server, "perfolio_http_request_bytes") == 0)


def test_a_client_waits_for_one_request_of_another_client(start_server, open_folder):
    """The only worker waits for a lock. One address has queued more requests than it may, and then
    another address sends one. Its request is handled as one of the first three: after the one that
    waits for the lock, and at most one more of the first address."""
    log = open_folder / "access.log"
    server = start_server(
        "--worker-threads", "1", "--worker-queue", str(QUEUE), "--access-log", str(log)
    )
    share = server.anonymous().post("/api/v1/shares", samples.FOLDED).json()["id"]
    many = [Wire(server, source="127.0.0.3") for _ in range(1 + QUEUE // 4 + MORE)]
    other = Wire(server, source="127.0.0.4")
    with table_of_shares_locked(server):
        many[0].send(get(f"/p/{share}"))
        assert wait_until(lambda: metric(server, "perfolio_http_workers_busy") == 1)
        for wire in many[1:]:
            wire.send(get(f"/p/{share}"))
        assert wait_until(lambda: metric(server, "perfolio_http_queue_depth") == QUEUE // 4)
        other.send(get(f"/p/{share}"))
        assert wait_until(lambda: metric(server, "perfolio_http_queue_depth") == QUEUE // 4 + 1)
    statuses = [wire.response()[0] for wire in (*many, other)]
    assert statuses.count(503) == MORE and statuses[-1] == 200, statuses
    pages = [line for line in log.read_text().splitlines() if f"/p/{share}" in line]
    handled = [line for line in pages if " 503 " not in line]
    assert any("127.0.0.4" in line for line in handled[:3]), handled
