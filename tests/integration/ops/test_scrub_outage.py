"""The scrub while the bucket refuses reads: an outage is not damage of each object, and an object
that can be read again is not listed any longer."""

import threading

import pytest

import sample_profiles as samples
from s3_stub import BucketServer, Handler, serve
from s3_stub import server as server  # the fixture
from test_scrub import act, run_pass, state
from test_shares import wait_for

SHARES, STORE = ("/share/",), ("/segment/", "/block/")


class RefusingHandler(Handler):
    """Refuses reads of the keys in bucket.refused. From the first read of a kind in bucket.outage
    on, it refuses all reads. Reads of a kind in bucket.held wait for bucket.is_free."""

    def do_GET(self):
        bucket = self.server

        def is_of(kinds):
            return any(kind in self.path for kind in kinds)

        if is_of(bucket.held):
            bucket.is_free.wait()
        bucket.is_out |= is_of(bucket.outage)
        is_read = not self.path.partition("?")[0].endswith("/bucket")
        if is_of(bucket.refused) or (is_read and bucket.is_out):
            self.take()
            return self.fail(403, "AccessDenied")
        return super().do_GET()


@pytest.fixture
def bucket():
    bucket = BucketServer(handler=RefusingHandler)
    bucket.refused, bucket.outage, bucket.held = (), (), ()
    bucket.is_out, bucket.is_free = False, threading.Event()
    yield from serve(bucket)


def fill(server):
    """Stores three shares and a segment; returns the keys of the shares."""
    api = server.api()
    ids = [
        api.post("/api/v1/shares", samples.FOLDED + b"x;y %d\n" % i).json()["id"] for i in range(3)
    ]
    assert api.post("/ingest", samples.FOLDED, query={"name": "app"}).status == 200
    return [f"share/{id}" for id in sorted(ids)]


def problems(server):
    return {row[0] for row in server.rows("SELECT object_key FROM object_problem")}


def failures(server):
    lines = server.log().splitlines()
    return [line for line in lines if "background work failed" in line and "job=scrub" in line]


@pytest.mark.parametrize("kinds", [SHARES, STORE], ids=["shares", "store"])
def test_an_outage_of_permissions_is_not_damage_of_each_object(server, bucket, kinds):
    api = server.api()
    fill(server)
    bucket.outage = kinds
    act(api, "start")
    wait_for(lambda: failures(server) or state(api)["last_pass"])
    assert problems(server) == set() and state(api)["last_pass"] is None
    bucket.outage, bucket.is_out = (), False
    wait_for(lambda: state(api)["last_pass"], 120)
    assert state(api)["last_pass"]["problems"] == 0 and state(api)["last_pass"]["objects"] == 4


@pytest.mark.long
def test_one_object_without_permission_is_damage_until_it_can_be_read(server, bucket):
    api = server.api()
    first, *_ = fill(server)
    bucket.refused = (first,)
    after = run_pass(api)
    assert [(one["object"], one["problem"]) for one in after["problems"]] == [(first, "unreadable")]
    bucket.refused, bucket.held = (), STORE
    act(api, "start")
    wait_for(lambda: problems(server) == set())
    assert state(api)["last_pass"] == after["last_pass"], "the pass must not have ended"
    bucket.is_free.set()
    wait_for(lambda: state(api)["last_pass"] != after["last_pass"])
    assert state(api)["last_pass"]["problems"] == 0
