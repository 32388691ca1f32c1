"""Orphans: objects of the store that no row names, after puts that failed. An outage of the bucket
ends few writers, and the search of ended writers disturbs neither merges nor a stop."""

import re
import time

import pytest

import sample_profiles as samples
from s3_stub import BucketServer, Handler, serve
from s3_stub import server as server  # the fixture
from test_shares import wait_for

HOUR = 3600
DAY = 24 * HOUR


class OutageHandler(Handler):
    """Refuses puts of segments while bucket.refuses, after it has stored the object. Lists the
    writers in bucket.endless without end, one object for each page."""

    def do_PUT(self):
        if not self.server.refuses or "/segment/" not in self.path:
            return super().do_PUT()
        body, key, _ = self.take()
        self.server.objects[key] = body
        return self.fail(403, "AccessDenied")

    def list(self, query):
        prefix = query.get("prefix", [""])[0]
        found = re.fullmatch(r".*segment/(\d+)/", prefix)
        writer = int(found[1]) if found else 0
        self.server.searched.append(writer)
        if writer not in self.server.endless:
            return super().list(query)
        time.sleep(0.02)
        page = len(self.server.searched)
        return self.respond(
            200,
            "<ListBucketResult><IsTruncated>true</IsTruncated>"
            f"<NextContinuationToken>{page}</NextContinuationToken><Contents>"
            f"<Key>{prefix}{page}</Key><LastModified>2020-01-01T00:00:00.000Z</LastModified>"
            "<Size>1</Size></Contents></ListBucketResult>".encode(),
            Content_Type="application/xml",
        )


@pytest.fixture
def bucket():
    bucket = BucketServer(handler=OutageHandler)
    bucket.refuses, bucket.endless, bucket.searched = False, set(), []
    yield from serve(bucket)


def push(server, name="app"):
    return server.api().post("/ingest", samples.FOLDED, query={"name": name}).status


def rows(server, sql, values=None):
    return [row[0] for row in server.rows(sql, values, role="perfolio_cluster")]


def writers(server):
    return rows(server, "SELECT id FROM store_writer ORDER BY id")


def add_ended(server, *ages):
    """Adds writers, each of which ended and was searched so many seconds ago, in one transaction;
    returns their ids."""
    values = ", ".join(
        "('old', now() - %s * interval '1 s', now() - %s * interval '1 s')" for _ in ages
    )
    return rows(
        server,
        f"INSERT INTO store_writer (name, ended_at, swept_at) VALUES {values} RETURNING id",
        [seconds for age in ages for seconds in age],
    )


def is_searched(server, writer):
    return rows(server, "SELECT swept_at IS NOT NULL FROM store_writer WHERE id = %s", [writer])[0]


def refuse(server, bucket, count):
    """Sends batches that the bucket refuses; returns the keys that it has stored all the same."""
    before = set(bucket.objects)
    bucket.refuses = True
    for i in range(count):
        assert push(server, f"refused{i}") == 503
    bucket.refuses = False
    return set(bucket.objects) - before


def test_an_outage_of_the_bucket_ends_no_writer_per_flush(server, bucket):
    assert push(server) == 200
    before = writers(server)
    assert len(refuse(server, bucket, 10)) >= 10
    assert writers(server) == before


@pytest.mark.long
def test_objects_of_failed_puts_are_deleted_after_an_outage(server, bucket):
    assert push(server) == 200
    before = writers(server)
    left = refuse(server, bucket, 3)
    wait_for(lambda: push(server) == 200)
    wait_for(lambda: not left & set(bucket.objects), 120)
    ended = rows(server, "SELECT id FROM store_writer WHERE ended_at IS NOT NULL")
    assert ended == before[-1:], "one outage ends one writer"
    assert push(server) == 200
    named = rows(server, "SELECT object_key FROM segment UNION ALL SELECT object_key FROM block")
    assert {f"{bucket.prefix}/{key}" for key in named} <= set(bucket.objects)


def test_a_writer_is_searched_less_often_the_longer_ago_it_ended(server, bucket):
    """A writer that ended 4 h ago and was searched 1 h ago is due again in 2 h."""
    not_due, past, *due = add_ended(
        server,
        (4 * HOUR, HOUR),
        (3 * DAY, HOUR),  # a day or more after its end
        (4 * HOUR, 3 * HOUR),
        (3 * DAY, 2 * DAY + HOUR),
        (HOUR, None),
    )
    wait_for(lambda: set(due) <= set(bucket.searched), 120)
    wait_for(lambda: all(is_searched(server, writer) for writer in due))
    assert not {not_due, past} & set(bucket.searched)


def test_a_long_search_delays_neither_merges_nor_a_stop(server, bucket):
    (old,) = add_ended(server, (HOUR, None))
    bucket.endless = {old}
    wait_for(lambda: bucket.searched.count(old) > 1, 120)
    assert push(server) == 200
    make_due = "UPDATE segment SET created_at = created_at - interval '1 hour' RETURNING 1"
    rows(server, make_due)
    wait_for(lambda: rows(server, "SELECT count(*) FROM block") == [1], 120)
    assert not is_searched(server, old)
    assert server.stop() == 0
    server.start()
