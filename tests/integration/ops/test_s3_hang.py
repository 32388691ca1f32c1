"""An S3 server that does not respond: it accepts connections and sends no byte.

The server is the small one in s3_stub.py; make test-s3 uses real ones.
PERFOLIO_PRINT_SECONDS=1 prints how long each kind of request took.
"""

import os
import time

import pytest

import sample_profiles as samples
from s3_stub import BucketServer, Handler, serve
from s3_stub import server as server  # the fixture
from test_database_hang import PendingRequest, assert_refused, print_seconds
from test_shares import wait_for

pytestmark = pytest.mark.long


@pytest.fixture
def bucket():
    yield from serve(BucketServer())


def test_requests_get_503_while_the_bucket_hangs_and_work_afterwards(server, bucket):
    api = server.api()
    share = api.post("/api/v1/shares", samples.FOLDED).json()["id"]
    upload = api.post("/api/v1/uploads", json={"size": 100}).json()["id"]
    assert api.post("/ingest", samples.FOLDED, query={"name": "app"}).status == 200
    with bucket.hanging():
        kinds = [
            (
                "ingest /ingest",
                "POST",
                "/ingest",
                {"body": samples.FOLDED, "query": {"name": "app"}},
            ),
            ("share upload", "POST", "/api/v1/shares", {"body": samples.FOLDED}),
            ("upload part", "PUT", f"/api/v1/uploads/{upload}/parts/0", {"body": b"x" * 100}),
            ("raw share", "GET", f"/p/{share}/raw", {}),
        ]
        requests = [
            PendingRequest(name, server.api(), method, path, **options)
            for _ in range(8)
            for name, method, path, options in kinds
        ]
        for request in requests:
            request.join()
        print_seconds(requests)
        for request in requests:
            assert_refused(request)
        others = [
            PendingRequest(path, server.api(), "GET", path)
            for path in ("/healthz", "/login", "/api/v1/shares")
        ]
        for other in others:
            other.join()
            assert other.response and other.response.status == 200, (other.kind, other.response)
        ready = server.anonymous().get("/readyz")
        assert ready.status == 503 and "S3 server does not respond" in ready.json()["detail"], ready
    begun = time.monotonic()
    wait_for(lambda: server.anonymous().get("/readyz").status == 200, 60)
    if os.environ.get("PERFOLIO_PRINT_SECONDS"):
        print(f"ready again after {time.monotonic() - begun:.2f} s")
    assert api.post("/ingest", samples.FOLDED, query={"name": "app"}).status == 200
    assert api.get(f"/p/{share}/raw").body == samples.FOLDED


def test_the_server_stops_while_the_bucket_hangs(server, bucket):
    assert server.api().post("/api/v1/shares", samples.FOLDED).status == 201
    with bucket.hanging():
        request = PendingRequest(
            "share upload", server.api(), "POST", "/api/v1/shares", body=samples.FOLDED
        )
        assert server.stop(120) == 0
        request.join()
    assert "requests_cut_off=none" in server.log(), "it stopped before --shutdown-timeout"


def test_a_slow_bucket_is_not_a_bucket_hang(server, bucket):
    """Only one request is slow, as a large PUT may be; the bucket responds to the others."""
    original = Handler.do_PUT

    def slow(handler):
        time.sleep(4)
        original(handler)

    Handler.do_PUT = slow
    try:
        assert server.api().post("/api/v1/shares", samples.FOLDED).status == 201
    finally:
        Handler.do_PUT = original
    assert "does not respond" not in server.log()


def test_requests_fail_fast_after_a_long_outage_of_the_bucket(server, bucket):
    api = server.api()

    def seconds_until_refused():
        begun = time.monotonic()
        response = api.post("/api/v1/shares", samples.FOLDED)
        assert response.status == 503 and int(response.headers["retry-after"]) > 0, response
        return time.monotonic() - begun

    assert api.post("/api/v1/shares", samples.FOLDED).status == 201
    bucket.shutdown()
    bucket.server_close()
    bucket.close_connections()
    waited = seconds_until_refused()
    wait_for(lambda: seconds_until_refused() < waited / 4)
    again = BucketServer(bucket.server_port, bucket.objects)
    try:
        wait_for(lambda: api.post("/api/v1/shares", samples.FOLDED).status == 201)
    finally:
        assert server.stop() == 0
        again.shutdown()
        again.server_close()


def push(server):
    return server.api().post("/ingest", samples.FOLDED, query={"name": "app"})


def refused_after(server):
    """Seconds until a push gets status 503 while the bucket hangs."""
    request = PendingRequest(
        "ingest", server.api(), "POST", "/ingest", body=samples.FOLDED, query={"name": "app"}
    )
    request.join()
    assert request.response and request.response.status == 503, request.response
    return request.seconds


@pytest.mark.long
def test_the_hang_timeout_adapts_to_a_slow_bucket(server, bucket):
    assert push(server).status == 200
    for delay in (1.5, 3):
        bucket.delay = delay
        wait_for(lambda: push(server).status == 200, 60)
        pushes = [
            PendingRequest(
                str(number),
                server.api(),
                "POST",
                "/ingest",
                body=samples.FOLDED,
                query={"name": "app"},
            )
            for number in range(17)
        ]
        for one in pushes:
            one.join()
        assert [one.response and one.response.status for one in pushes] == [200] * 17, delay
        assert [push(server).status for _ in range(3)] == [200] * 3, delay
        wait_for(lambda: server.anonymous().get("/readyz").status == 200, 60)
    bucket.delay = 8  # the check takes 8 s; until then the response is the last result
    time.sleep(3.1)
    checks = [PendingRequest("readyz", server.anonymous(), "GET", "/readyz") for _ in range(4)]
    for one in checks:
        one.join()
    assert [one.response and one.response.status for one in checks] == [200] * 4, checks
    assert max(one.seconds for one in checks) < bucket.delay
    bucket.delay = 3
    with bucket.hanging():
        slow_seconds = refused_after(server)  # three times the measured latency of 3 s
        wait_for(lambda: server.anonymous().get("/readyz").status == 503, 60)
    bucket.delay = 0
    wait_for(lambda: push(server).status == 200, 60)
    for _ in range(30):
        assert push(server).status == 200
    with bucket.hanging():
        assert refused_after(server) < slow_seconds, "the server still uses the old latency"
