"""Deletion of profiles.

Queries no longer read deleted profiles, and the server soon removes them from all objects. The rest
of these blocks does not change: results equal a recomputation without the deleted profiles
(tests/oracle/store_oracle.py), before and after merges.
"""

import contextlib
import ctypes
import functools
import random
import struct
import threading
import time

import pytest

import stored
from conftest import rest_long
from people import Tenant
from test_store import (
    BEGIN,
    CPU,
    CPU_NAMES,
    HOUR,
    NAMES,
    check_queries,
    compact,
    folded,
    make_profile,
    make_sources,
    objects_of,
    random_selector,
    rows_of,
    send,
    store_oracle,
    until,
)


ALL = '{__profile_type__=~".*"}'


def delete(client, selector, start=None, end=None):
    query = {
        "query": selector,
        **{name: value for name, value in (("start", start), ("end", end)) if value is not None},
    }
    response = client.request("DELETE", "/api/v1/profiles", query=query)
    assert response.status == 202, response
    return response.json()


@functools.cache  # so that equal arguments give the same bytes
def cpu_profile(time_ns, value, stack):
    return make_profile(
        CPU, time_ns, {stack: [value, 10 * value]}, ("cpu", "nanoseconds"), 10**10
    )


def push(client, label, time_ns, value=1, stack=("main", "work")):
    body = cpu_profile(time_ns, value, stack)
    response = client.post("/api/v1/profiles", body=body, query={"label": label})
    assert response.status == 200, response
    return response.json()


def is_done(client, which):
    found = {one["id"]: one for one in client.get("/api/v1/deletions").json()["deletions"]}
    return found[which["id"]]["done_at"]


@pytest.mark.long
@pytest.mark.skipif(stored.is_in_bucket(), reason="a folder is made read-only")
def test_a_failed_deletion_of_an_object_neither_blocks_others_nor_is_done(start_server):
    server = start_server("--jobs-interval", "1s")
    client = Tenant(server).api("ingest", "read", "admin", "share")
    trash = "SELECT object_key FROM object_trash"

    def make_old():
        with server.cursor() as cursor:
            for table in ("segment", "block"):
                cursor.execute(
                    f"UPDATE {table} SET created_at = created_at - interval '1 hour',"
                    " swapped_at = swapped_at - interval '1 hour'"
                )
        return True

    push(client, "service_name=secret", BEGIN, stack=("main", "vault-7"))
    (segment,) = objects_of(server)
    folder = (server.data_dir / "objects" / segment).parent
    deletion = delete(client, '{service_name="secret"}')
    folder.chmod(0o555)
    try:
        until(
            lambda: make_old()
            and rows_of(server, trash + " WHERE tried_at IS NOT NULL") == {segment},
            "the deletion of the segment was not tried",
        )
        assert not rows_of(server, "SELECT id FROM segment"), "only object_trash should list it"
        share = client.post("/api/v1/shares", body=b"main;work 3\n").json()["id"]
        (raw,) = rows_of(server, f"SELECT object_key FROM share WHERE id = '{share}'")
        assert raw in server.objects.keys("share/")
        assert client.delete(f"/api/v1/shares/{share}").status == 204
        until(
            lambda: raw not in server.objects.keys("share/"),
            "a failed deletion blocks a later one",
        )
        time.sleep(5)  # background maintenance runs every two seconds
        assert segment in objects_of(server) and is_done(client, deletion) is None
        assert rows_of(server, trash) == {segment} and "emptying the trash" in server.log()
    finally:
        folder.chmod(0o755)
    with server.cursor() as cursor:
        cursor.execute("UPDATE object_trash SET tried_at = tried_at - interval '1 hour'")
    until(lambda: is_done(client, deletion), "the deletion is never done")
    assert segment not in objects_of(server) and not rows_of(server, trash)


@pytest.mark.long
@pytest.mark.parametrize("seed", rest_long(range(3)))
def test_results_equal_a_recomputation_without_deleted_profiles(shared_server, seed):
    rng = random.Random(seed)
    server = shared_server("--jobs-interval", "1s")
    client = Tenant(server).api("ingest", "read", "admin")
    oracle = store_oracle.Oracle()
    sources = make_sources(rng)
    time_ns = BEGIN
    for number in range(6):
        for _ in range(40):
            time_ns += rng.randrange(1, 4 * 60 * 10**9)
            send(client, oracle, rng.choice(sources), time_ns)
        if number == 2:
            compact(server)
        for _ in range(2):
            selector, matches = random_selector(rng)
            name = rng.choice(["", *NAMES])
            start = BEGIN + rng.randrange(time_ns - BEGIN)
            end = start + rng.choice([1, 10 * 60 * 10**9, HOUR, 3 * HOUR])
            delete(client, name + selector, start, end)
            oracle.delete(
                lambda type_name, labels, name=name, matches=matches: name in ("", type_name)
                and matches(type_name, labels),
                start,
                end,
            )
        check_queries(client, oracle, rng, 40)
    compact(server)
    check_queries(client, oracle, rng, 150)
    server.stop()
    server.start()
    check_queries(client, oracle, rng, 40)


@pytest.mark.parametrize(
    "selector, left",
    [
        ('{__profile_type__!~"memory.*",service_name="del"}', "memory"),
        ('{__profile_type__!="memory:inuse_space:bytes:space:bytes",service_name="del"}', "memory"),
        ('{__profile_type__=~"memory:.*",service_name="del"}', "process_cpu"),
        (
            'memory:inuse_space{__profile_type__="memory:inuse_space:bytes:space:bytes"}',
            "process_cpu",
        ),
    ],
)
def test_a_type_condition_is_compared_with_the_whole_type(shared_server, selector, left):
    server = shared_server("--jobs-interval", "1s")
    client = Tenant(server).api("ingest", "read", "admin")
    heap = make_profile([("inuse_space", "bytes")], BEGIN, {("main",): [3]}, ("space", "bytes"))
    cpu = make_profile(
        [("cpu", "nanoseconds")], BEGIN, {("main",): [3]}, ("cpu", "nanoseconds"), 10**10
    )
    for body in (heap, cpu):
        assert (
            client.post("/api/v1/profiles", body=body, query={"label": "service_name=del"}).status
            == 200
        )
    window = {"start": BEGIN, "end": BEGIN + 1}

    def check_left():
        listed = client.get(
            "/api/v1/profiles", query={"query": '{service_name="del"}', **window}
        ).json()["data"]
        assert [one["labels"]["__profile_type__"].split(":")[0] for one in listed] == [left]

    delete(client, selector, **window)
    check_left()
    compact(server)
    check_left()


def test_a_deletion_with_an_invalid_label_is_refused(server):
    client = Tenant(server).api("admin")
    response = client.request(
        "DELETE", "/api/v1/profiles", query={"query": '{pod!="a",__name__!="cpu"}'}
    )
    assert (
        response.status == 400 and "at character 11, here: __name__" in response.json()["detail"]
    ), response
    response = client.get("/api/v1/deletions")
    assert response.json()["deletions"] == []


def test_deleted_profiles_are_hidden_at_once_and_later_removed(start_server):
    server = start_server("--jobs-interval", "1s")
    tenant = Tenant(server)
    client, other = tenant.api("ingest", "read", "admin"), Tenant(server).api("ingest", "read")
    for team in (client, other):
        for i in range(4):
            push(team, "pod=a", BEGIN + i)
            push(team, "pod=b", BEGIN + i)
    before = objects_of(server)
    made = delete(client, '{pod="a"}', BEGIN + 1, BEGIN + 3)
    assert made["start_ns"] == BEGIN + 1 and made["end_ns"] == BEGIN + 3 and made["done_at"] is None
    assert folded(client, CPU_NAMES[0] + '{pod="a"}', BEGIN, BEGIN + 9)[1] == {("main", "work"): 2}
    # A deletion affects only earlier profiles, and batch ids remain known.
    assert push(client, "pod=a", BEGIN + 1)["duplicate"]
    assert not push(client, "pod=a", BEGIN + 2, 100)["duplicate"]
    assert folded(client, CPU_NAMES[0] + '{pod="a"}', BEGIN, BEGIN + 9)[1] == {
        ("main", "work"): 102
    }
    until(lambda: age_objects(server) and is_done(client, made), "a deletion is not done")
    until(
        lambda: age_objects(server) and not before & objects_of(server),
        "objects with deleted profiles are left",
    )
    assert folded(client, CPU_NAMES[0], BEGIN, BEGIN + 9)[1] == {("main", "work"): 106}
    assert folded(other, CPU_NAMES[0], BEGIN, BEGIN + 9)[1] == {("main", "work"): 8}
    audit = client.get("/api/v1/audit").json()["entries"][0]
    assert audit["action"] == "profiles.delete" and 'pod="a"' in audit["target"]


def age_objects(server):
    """Makes all objects an hour older, so that merges and the deletion of replaced ones are due;
    returns True, for use in conditions of until()."""
    with server.cursor() as cursor:
        for table in ("segment", "block"):
            cursor.execute(
                f"UPDATE {table} SET swapped_at = swapped_at - interval '1 hour',"
                " created_at = created_at - interval '1 hour'"
            )
    return True


@pytest.mark.long
def test_deletion_of_a_whole_block_or_team_deletes_its_objects(start_server):
    server = start_server("--jobs-interval", "1s")
    tenant, other = Tenant(server), Tenant(server)
    client = tenant.api("ingest", "read", "admin")
    push(client, "pod=a", BEGIN)
    push(client, "pod=b", BEGIN + 25 * HOUR)
    compact(server)
    assert len(objects_of(server)) == 2
    made = delete(client, ALL, end=BEGIN + HOUR)
    assert folded(client, CPU_NAMES[0], BEGIN, BEGIN + 99 * HOUR)[1] == {("main", "work"): 1}
    until(
        lambda: age_objects(server) and is_done(client, made) and len(objects_of(server)) == 1,
        "a block of nothing but deleted profiles is left",
    )
    push(other.api("ingest"), "pod=c", BEGIN)
    push(client, "pod=d", BEGIN)
    assert server.api().request("DELETE", f"/api/v1/admin/tenants/{tenant.id}").status == 204
    until(
        lambda: age_objects(server)
        and objects_of(server) == rows_of(server, "SELECT object_key FROM block"),
        "objects of a deleted team are left",
    )
    assert rows_of(server, "SELECT tenant_id FROM block") == {other.id}


@pytest.mark.parametrize(
    "query, expected",
    [
        ({}, "query is missing"),
        ({"query": "{pod=}"}, "query:"),
        ({"query": "{}"}, "query:"),
        ({"query": "cpu", "start": "5", "end": "5"}, "start must be before end"),
        ({"query": "cpu", "from": "5"}, "from"),
    ],
)
def test_an_invalid_deletion_request_is_refused(server, query, expected):
    response = Tenant(server).api("admin").request("DELETE", "/api/v1/profiles", query=query)
    assert response.status == 400 and expected in response.json()["detail"], response


def test_the_number_of_pending_deletions_is_limited(server):
    """Each deletion cancels the leases of running merges, so too many would prevent all merges."""
    tenant, other = Tenant(server), Tenant(server)
    client = tenant.api("ingest", "admin")
    push(client, "pod=a", BEGIN)
    with server.cursor() as cursor:  # so that no deletion is completed
        cursor.execute(
            "UPDATE segment_tenant SET is_broken = true WHERE tenant_id = %s", [tenant.id]
        )
    for _ in range(100):
        delete(client, '{pod="none"}')
    response = client.request("DELETE", "/api/v1/profiles", query={"query": ALL})
    assert response.status == 429 and "100 deletions" in response.json()["detail"], response
    assert int(response.headers["retry-after"]) > 0
    delete(other.api("admin"), ALL)
    with server.cursor() as cursor:
        cursor.execute(
            "UPDATE store_deletion SET requested_at = requested_at - interval '1 hour'"
            " WHERE id = (SELECT min(id) FROM store_deletion WHERE tenant_id = %s)",
            [tenant.id],
        )
    delete(client, ALL)


def test_a_deletion_that_deadlocks_is_retried(start_server):
    """Another transaction locks the same rows in another order, and the database aborts one of
    both."""
    server = start_server("--jobs-interval", "3600s")
    client = Tenant(server).api("ingest", "read", "admin")
    for second in range(2):
        push(client, "pod=a", BEGIN + second * 10**9)
    first, last = sorted(rows_of(server, "SELECT segment_id FROM segment_tenant"))
    lock = "SELECT FROM segment_tenant WHERE segment_id = %s FOR UPDATE"
    responses = []
    deletion = threading.Thread(target=lambda: responses.append(delete(client, ALL)))
    with contextlib.closing(server.database("perfolio_cluster")) as other, other.cursor() as cursor:
        cursor.execute("SET deadlock_timeout = '1min'")  # so that the deletion is aborted
        cursor.execute("BEGIN")
        cursor.execute(lock, [last])
        deletion.start()
        until(
            lambda: rows_of(server, "SELECT 1 FROM pg_locks WHERE NOT granted"),
            "the deletion does not wait",
        )
        cursor.execute(lock, [first])
        assert not responses
        cursor.execute("COMMIT")
    deletion.join()
    assert len(responses) == 1
    assert "deadlock detected" in server.database_log()
    assert rows_of(server, "SELECT count(*) FROM store_deletion") == {1}
    assert rows_of(server, "SELECT count(*) FROM segment_tenant WHERE deletions <> '{}'") == {2}


def test_only_administrators_delete_profiles_and_only_of_their_team(server):
    tenant, other = Tenant(server), Tenant(server)
    mine, theirs = tenant.api("ingest", "read"), other.api("ingest", "read", "admin")
    push(mine, "pod=a", BEGIN)
    response = mine.request("DELETE", "/api/v1/profiles", query={"query": ALL})
    assert response.status == 403, response
    delete(theirs, ALL)
    assert folded(mine, CPU_NAMES[0], BEGIN, BEGIN + 1)[1] == {("main", "work"): 1}
    assert tenant.api("admin").get("/api/v1/deletions").json() == {
        "deletions": [],
        "next_cursor": None,
    }


@pytest.mark.long
def test_deletions_are_exact_during_pushes_and_merges(start_server):
    """A deletion removes each batch before it and none after it, regardless of merges."""
    server = start_server("--jobs-interval", "1s")
    client = Tenant(server).api("ingest", "read", "admin")
    deadline, number, kept = time.monotonic() + 6, 0, []
    while time.monotonic() < deadline:
        for _ in range(20):
            push(client, f"pod=p{number % 2}", BEGIN + number, stack=("main", f"f{number}"))
            kept.append(number)
            number += 1
        age_objects(server)
        if random.random() < 0.3:
            delete(client, '{pod="p1"}')
            kept = [one for one in kept if one % 2 == 0]
        rows = folded(client, CPU_NAMES[0], BEGIN, BEGIN + number)[1]
        assert rows == {("main", f"f{one}"): 1 for one in kept}
    compact(server)
    assert folded(client, CPU_NAMES[0], BEGIN, BEGIN + number)[1] == {
        ("main", f"f{one}"): 1 for one in kept
    }


def strings_of(block):
    """The strings of a block, from its bytes (store/block/block_format.h)."""
    zstd = ctypes.CDLL("libzstd.so.1")
    offset, stored, flat = struct.unpack_from("<QQQ", block, len(block) - 320)
    if stored == flat:
        return block[offset : offset + stored]
    strings = ctypes.create_string_buffer(flat)
    zstd.ZSTD_decompress.restype = ctypes.c_size_t
    size = zstd.ZSTD_decompress(
        strings, ctypes.c_size_t(flat), block[offset : offset + stored], ctypes.c_size_t(stored)
    )
    assert size == flat
    return strings.raw


@pytest.mark.long
def test_a_block_contains_only_the_names_of_its_day(start_server):
    """A merge of several days writes one block per day, with only the names of that day."""
    days = 30
    server = start_server("--jobs-interval", "1s")
    client = Tenant(server).api("ingest", "read", "admin")
    with server.cursor() as cursor:  # so that no merge begins before all profiles are stored
        cursor.execute(
            "ALTER TABLE segment_tenant ALTER leased_until SET DEFAULT now() + interval '1 hour'"
        )
    for day in range(days):
        push(
            client,
            "pod=Secret" if day == 7 else f"pod={day}",
            BEGIN + day * 24 * HOUR,
            stack=("main", *(f"day-{day}-frame-{i}" for i in range(200))),
        )
    before = sum(len(server.objects.read(key)) for key in objects_of(server))
    with server.cursor() as cursor:
        cursor.execute(
            "ALTER TABLE segment_tenant ALTER leased_until DROP DEFAULT;"
            "UPDATE segment_tenant SET leased_until = NULL"
        )
    compact(server)
    strings = [strings_of(server.objects.read(key)) for key in objects_of(server)]
    assert len(strings) == days and sum(b"Secret" in one for one in strings) == 1
    assert sum(len(server.objects.read(key)) for key in objects_of(server)) < before
    made = delete(client, '{pod="Secret"}')
    until(
        lambda: age_objects(server)
        and is_done(client, made)
        and len(objects_of(server)) == days - 1,
        "a deletion is not done",
    )
    assert not any(b"Secret" in strings_of(server.objects.read(key)) for key in objects_of(server))
