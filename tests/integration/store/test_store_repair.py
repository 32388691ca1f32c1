"""Repair of blocks that could not be merged: the server retries them and merges those that are
readable again. The others do not block the data of other teams, and a deletion that waits for them
completes in the end."""

import threading

import pytest

import stored
from people import Tenant
from test_store import (
    BEGIN,
    CPU_NAMES,
    HOUR,
    compact,
    folded,
    objects_of,
    otlp_maker,
    rows_of,
    until,
)
from test_store_check import verify
from test_store_deletion import delete, age_objects, is_done, push, strings_of
from test_store_retention import MINUTE, begin_of_day, is_reduced, keep

pytestmark = pytest.mark.skipif(stored.is_in_bucket(), reason="files are changed and removed")


def execute(server, sql):
    with server.cursor() as cursor:
        cursor.execute(sql)


def pause_merging(server):
    execute(
        server,
        "ALTER TABLE segment_tenant ALTER leased_until SET DEFAULT now() + interval '1 hour'",
    )


def resume_merging(server):
    execute(
        server,
        "ALTER TABLE segment_tenant ALTER leased_until DROP DEFAULT;"
        "UPDATE segment_tenant SET leased_until = NULL",
    )


def retry(server, days=0):
    """Makes all marked blocks due now, and moves the time of their marks `days` days back."""
    for table in ("segment_tenant", "block"):
        execute(
            server,
            f"UPDATE {table} SET retry_at = now(), broken_since = broken_since -"
            f" interval '{days} days' WHERE is_broken",
        )
    return age_objects(server)


def marks(server):
    return rows_of(
        server,
        "SELECT broken_why FROM segment_tenant WHERE is_broken AND NOT is_swapped UNION ALL"
        " SELECT broken_why FROM block WHERE is_broken AND swapped_at IS NULL",
    )


def push_together(server, clients):
    """Pushes from all clients at once until one segment holds all; returns the pods' suffix."""
    for number in range(50):
        threads = [
            threading.Thread(target=push, args=(client, f"pod={pod}{number}", BEGIN))
            for client, pod in clients
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        parts = rows_of(
            server, "SELECT sum(cardinality(lengths)) FROM segment_tenant GROUP BY segment_id"
        )
        if len(clients) in parts:
            execute(
                server,
                "CREATE TEMP TABLE one AS SELECT segment_id AS id FROM segment_tenant GROUP BY"
                f" segment_id HAVING sum(cardinality(lengths)) = {len(clients)};"
                "DELETE FROM segment WHERE id NOT IN (SELECT id FROM one)",
            )
            return number
    raise AssertionError("no segment holds the profiles of all clients")


def place_of(server, key, pod):
    """Returns the first byte and the length of the block of a pod."""
    for first, lengths in places_of(server, key):
        for length in lengths:
            if pod.encode() in strings_of(server.objects.read(key)[first : first + length]):
                return first, length
            first += length
    raise AssertionError(pod)


def places_of(server, key):
    with server.cursor() as cursor:
        cursor.execute(
            "SELECT first_byte, lengths FROM segment_tenant t JOIN segment s ON s.id = segment_id"
            " WHERE object_key = %s",
            [key],
        )
        return cursor.fetchall()


def values(client):
    response, rows = folded(client, CPU_NAMES[0], BEGIN, BEGIN + 9)
    return sum(rows.values()), "perfolio-warning" in response.headers


@pytest.mark.long
def test_a_broken_block_does_not_keep_bytes_of_other_teams(start_server):
    server = start_server("--jobs-interval", "1s")
    tenant = Tenant(server)
    client, other = tenant.api("ingest", "read", "admin"), Tenant(server).api("ingest", "read")
    pause_merging(server)
    number = push_together(
        server, [(client, "Good"), (tenant.api("ingest"), "Bad"), (other, "Other")]
    )
    (segment,) = rows_of(server, "SELECT object_key FROM segment")
    first, length = place_of(server, segment, f"Bad{number}")
    server.stop()
    data = bytearray(server.objects.read(segment))
    data[first + 70] ^= 1  # in the times of CPU_NAMES[1]; the rest stays readable
    server.objects.write(segment, bytes(data))
    server.start()
    resume_merging(server)
    until(lambda: age_objects(server) and marks(server) == {"unreadable"}, "it is not marked")
    until(lambda: retry(server) and segment not in objects_of(server), "the segment is not deleted")
    (rest,) = server.objects.keys("segment/")
    assert server.objects.read(rest) == bytes(data[first : first + length])
    assert values(other) == (1, False) and values(client) == (2, False)
    assert marks(server) == {"unreadable"}
    gone = delete(client, '{pod=~"Good.*"}')
    made = delete(client, CPU_NAMES[0] + '{pod=~"Bad.*"}')
    until(
        lambda: retry(server) and len(server.objects.keys("block/")) == 1,
        "the intact block is not deleted",
    )
    assert is_done(client, made) is None and rest in objects_of(server)
    assert (
        client.get(
            "/api/v1/query", query={"query": CPU_NAMES[0], "start": BEGIN, "end": BEGIN + 9}
        ).status
        == 404
    )
    until(
        lambda: retry(server, days=8)
        and is_done(client, made)
        and is_done(client, gone)
        and rest not in objects_of(server),
        "a deletion waits for ever for the broken block",
    )
    assert values(client) == (0, False) and values(other) == (1, False)
    assert any(
        "job=deletion" in line and f"1 samples of tenant {tenant.id}" in line and rest in line
        for line in server.log().splitlines()
    )
    assert verify(server)["problems"] == []


@pytest.mark.long
@pytest.mark.parametrize("is_verified", [False, True])
def test_a_missing_object_is_merged_when_it_is_back(start_server, is_verified):
    """The server finds the object at its next retry, or at once if store verify runs."""
    server = start_server("--jobs-interval", "1s")
    client = Tenant(server).api("ingest", "read", "admin")
    pause_merging(server)
    push(client, "pod=a", BEGIN)
    push(client, "pod=b", BEGIN + 1)
    server.stop()
    path = server.objects.path / server.objects.oldest("segment/")
    path.rename(server.data_dir / "away")
    server.start()
    resume_merging(server)
    until(lambda: age_objects(server) and marks(server) == {"missing"}, "it is not marked")
    until(
        lambda: retry(server)
        and rows_of(
            server, "SELECT retry_count FROM segment_tenant WHERE is_broken" " AND retry_count > 2"
        ),
        "the server does not retry it",
    )
    # No retry may be due, because it could find the object before store verify runs.
    until(
        lambda: not rows_of(
            server, "SELECT 1 FROM segment_tenant WHERE is_broken AND retry_at <= now()"
        ),
        "a retry is still due",
    )
    assert values(client) == (1, True)
    made = delete(client, '{pod="b"}')
    (server.data_dir / "away").rename(path)
    assert values(client) == (1, False)
    if is_verified:
        assert verify(server)["unmarked"] == 1 and verify(server)["unmarked"] == 0
    else:
        until(
            lambda: retry(server) and not marks(server), "the server does not find the object again"
        )
    compact(server)
    assert len(objects_of(server)) == 1 and values(client) == (1, False)
    until(lambda: is_done(client, made), "the bytes are deleted, but the deletion is not done")


@pytest.mark.long
def test_a_deletion_gives_up_a_lost_block(start_server):
    """The lost block holds one day and is not part of a segment, so no other data is lost."""
    server = start_server("--jobs-interval", "1s")
    client = Tenant(server).api("ingest", "read", "admin")
    for day in range(2):
        push(client, "pod=a", BEGIN + day * 24 * HOUR)
    compact(server)
    server.stop()
    (lost,) = rows_of(
        server_started(server), "SELECT object_key FROM block ORDER BY begin_ns LIMIT 1"
    )
    (server.objects.path / lost).unlink()
    made = delete(client, '{pod="a"}', end=BEGIN + HOUR)
    until(lambda: retry(server) and marks(server) == {"missing"}, "it is not marked")
    assert is_done(client, made) is None
    until(lambda: retry(server, days=8) and is_done(client, made), "a deletion waits for ever")
    assert len(objects_of(server)) == 1 and verify(server)["problems"] == []


def server_started(server):
    server.start()
    return server


@pytest.mark.long
def test_a_deletion_works_on_a_segment_too_large_to_merge(start_server):
    server = start_server("--jobs-interval", "1s", "--max-request-days", "5000")
    client, other = Tenant(server).api("ingest", "read", "admin"), Tenant(server).api(
        "ingest", "read"
    )
    days = [
        otlp_maker.Profile(
            ("samples", "count"), BEGIN - i * 24 * HOUR, {("main",): 3}, 10, ("cpu", "nanoseconds")
        )
        for i in range(4100)
    ]
    request = otlp_maker.Request(
        [({"service.name": "kept"}, days), ({"service.name": "Secret"}, days[:5])]
    ).json()
    pause_merging(server)
    for api in (client, other):
        response = api.post(
            "/v1development/profiles", body=request, headers={"Content-Type": "application/json"}
        )
        assert response.status == 200, response
    before = objects_of(server)
    resume_merging(server)
    until(lambda: age_objects(server) and marks(server) == {"too large"}, "it is not marked")
    made = delete(client, '{service_name="Secret"}')
    until(lambda: retry(server) and is_done(client, made), "the large segment is not rewritten")
    until(
        lambda: age_objects(server) and len(before & objects_of(server)) == 1,
        "the old objects are not deleted",
    )
    assert marks(server) == {"too large"}
    for api, count in ((client, 4100), (other, 4105)):
        response, rows = folded(api, '{service_name=~".+"}', BEGIN - 4100 * 24 * HOUR, BEGIN + 1)
        assert rows == {("main",): 30 * count} and "perfolio-warning" not in response.headers
    (new,) = objects_of(server) - before
    assert b"Secret" not in strings_of(server.objects.read(new))
    assert verify(server)["problems"] == []


@pytest.mark.long
@pytest.mark.parametrize("is_missing", [False, True])
def test_a_broken_block_is_reduced_to_totals_after_its_repair(start_server, is_missing):
    server = start_server("--jobs-interval", "1s")
    client = Tenant(server).api("ingest", "read", "admin")
    begin = begin_of_day(9)
    window = {"query": CPU_NAMES[0], "start": begin, "end": begin + HOUR}
    for i in range(5):
        push(client, "pod=a", begin + i * MINUTE)
    compact(server)
    (key,) = rows_of(server, "SELECT object_key FROM block WHERE swapped_at IS NULL")
    whole = server.objects.read(key)
    server.stop()
    if is_missing:
        (server.objects.path / key).rename(server.data_dir / "away")
    else:
        server.objects.write(key, whole[:70] + bytes([whole[70] ^ 1]) + whole[71:])
    server.start()
    keep(client, '{pod="a"}', "3d", totals="300d")
    until(
        lambda: age_objects(server)
        and marks(server) == {"missing" if is_missing else "unreadable"},
        "it is not marked",
    )
    until(
        lambda: retry(server)
        and rows_of(server, "SELECT retry_count FROM block WHERE is_broken" " AND retry_count > 1"),
        "it is not looked at again",
    )
    # No client sees single profiles, though the object has them, and the server gives up nothing.
    assert client.get("/api/v1/profiles", query=window).json()["data"] == []
    response = client.get("/api/v1/query", query={**window, "report": "folded"})
    assert (response.text, "perfolio-warning" in response.headers) == (
        ("", True) if is_missing else ("main;work 5\n", False)
    ), response
    until(
        lambda: retry(server, days=8)
        and rows_of(server, "SELECT retry_count FROM block WHERE is_broken" " AND retry_count > 2"),
        "it is not looked at again",
    )
    assert marks(server)
    if is_missing:
        (server.data_dir / "away").rename(server.objects.path / key)
    else:
        server.objects.write(key, whole)
    until(lambda: retry(server) and not marks(server) and is_reduced(server), "it is not reduced")
    assert folded(client, CPU_NAMES[0], begin, begin + HOUR)[1] == {("main", "work"): 5}
    assert client.get("/api/v1/profiles", query=window).json()["data"] == []
    until(
        lambda: age_objects(server) and key not in objects_of(server),
        "the object with single profiles is not deleted",
    )
    assert rows_of(server, "SELECT row_count FROM block WHERE swapped_at IS NULL") == {2}
    assert verify(server)["problems"] == []


def take_rights(path):
    path.chmod(0)
    return lambda: path.chmod(0o600)


def point_at_itself(path):
    """Makes the file unreadable even for root."""
    kept = path.parent.parent.parent.parent / "kept"
    path.rename(kept)
    path.symlink_to(path.name)

    def undo():
        path.unlink()
        kept.rename(path)

    return undo


@pytest.mark.parametrize("make_unreadable", [take_rights, point_at_itself])
def test_an_unreadable_object_does_not_block_others(start_server, make_unreadable):
    server = start_server("--jobs-interval", "1s")
    client = Tenant(server).api("ingest", "read", "admin")
    pause_merging(server)
    for i in range(3):
        push(client, f"pod=p{i}", BEGIN + i)
    server.stop()
    key = server.objects.oldest("segment/")
    undo = make_unreadable(server.objects.path / key)
    server.start()
    response, rows = folded(client, CPU_NAMES[0], BEGIN, BEGIN + 3)
    assert rows == {("main", "work"): 2} and key in response.headers["perfolio-warning"]
    response, rows = folded(client, CPU_NAMES[0], BEGIN, BEGIN + 1)
    assert rows == {} and key in response.headers["perfolio-warning"]
    resume_merging(server)
    until(
        lambda: age_objects(server)
        and marks(server) == {"unreadable"}
        and rows_of(server, "SELECT 1 FROM block WHERE swapped_at IS NULL"),
        "the others are not merged",
    )
    assert rows_of(server, "SELECT count(*) FROM segment_tenant WHERE NOT is_swapped") == {1}
    problem = (
        "broken" if make_unreadable is point_at_itself else "unreadable"
    )  # a link is never an object
    assert [(one["problem"], one["object"]) for one in verify(server)["problems"]] == [
        (problem, key)
    ]
    undo()
    assert verify(server)["problems"] == [] and marks(server) == set()
    until(
        lambda: age_objects(server)
        and not rows_of(server, "SELECT 1 FROM segment_tenant WHERE NOT is_swapped"),
        "the readable object is not merged",
    )
    response, rows = folded(client, CPU_NAMES[0], BEGIN, BEGIN + 3)
    assert rows == {("main", "work"): 3} and "perfolio-warning" not in response.headers


@pytest.mark.long
def test_an_unreadable_folder_is_an_error_and_marks_no_block(start_server):
    server = start_server("--jobs-interval", "1s")
    client = Tenant(server).api("ingest", "read")
    pause_merging(server)
    for i in range(3):
        push(client, f"pod=p{i}", BEGIN + i)
    server.stop()
    server.start()
    server.objects.path.chmod(0)
    window = {"query": CPU_NAMES[0], "start": BEGIN, "end": BEGIN + 3}
    for path in ("query", "query_range", "profiles"):
        response = client.get(f"/api/v1/{path}", query=window)
        assert response.status == 500, response
    resume_merging(server)
    until(
        lambda: age_objects(server) and "compaction" in server.log(),
        "the server does not try to merge",
    )
    assert marks(server) == set()
    server.objects.path.chmod(0o700)
    until(
        lambda: age_objects(server)
        and not rows_of(server, "SELECT 1 FROM segment_tenant WHERE NOT is_swapped"),
        "the readable segments are not merged",
    )
    assert folded(client, CPU_NAMES[0], BEGIN, BEGIN + 3)[1] == {("main", "work"): 3}
