"""What is deleted is read by nobody from then on, and is gone from every object soon; nothing else
of the blocks that had it changes: answers equal a recomputation without it
(tests/oracle/store_oracle.py), before and after merging."""

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
    check,
    compact,
    folded,
    make_profile,
    make_sources,
    objects_of,
    rows_of,
    send,
    some_match,
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


@functools.cache  # so that the same is the same, byte by byte
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


@pytest.mark.skipif(stored.is_in_bucket(), reason="a folder is made read-only")
def test_what_cannot_be_deleted_holds_up_nothing_else_and_is_not_said_to_be_gone(start_server):
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
            "the segment was not tried",
        )
        assert not rows_of(server, "SELECT id FROM segment"), "only the trash knows it"
        share = client.post("/api/v1/shares", body=b"main;work 3\n").json()["id"]
        (raw,) = rows_of(server, f"SELECT object_key FROM share WHERE id = '{share}'")
        assert raw in server.objects.keys("share/")
        assert client.delete(f"/api/v1/shares/{share}").status == 204
        until(
            lambda: raw not in server.objects.keys("share/"),
            "what came later waits for what cannot go",
        )
        time.sleep(5)  # the catalogue is tidied every two seconds
        assert segment in objects_of(server) and is_done(client, deletion) is None
        assert rows_of(server, trash) == {segment} and "emptying the trash" in server.log()
    finally:
        folder.chmod(0o755)
    with server.cursor() as cursor:
        cursor.execute("UPDATE object_trash SET tried_at = tried_at - interval '1 hour'")
    until(lambda: is_done(client, deletion), "the deletion is never done")
    assert segment not in objects_of(server) and not rows_of(server, trash)


@pytest.mark.parametrize("seed", rest_long(range(3)))
def test_results_equal_a_recomputation_without_what_is_deleted(shared_server, seed):
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
            selector, matches = some_match(rng)
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
        check(client, oracle, rng, 40)
    compact(server)
    check(client, oracle, rng, 150)
    server.stop()
    server.start()
    check(client, oracle, rng, 40)


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
def test_a_type_in_the_braces_is_compared_as_a_whole(shared_server, selector, left):
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


def test_a_label_that_nobody_can_have_deletes_nothing(server):
    client = Tenant(server).api("admin")
    response = client.request(
        "DELETE", "/api/v1/profiles", query={"query": '{pod!="a",__name__!="cpu"}'}
    )
    assert (
        response.status == 400 and "at character 11, here: __name__" in response.json()["detail"]
    ), response
    response = client.get("/api/v1/deletions")
    assert response.json()["deletions"] == []


def test_it_is_hidden_at_once_and_then_gone_from_the_objects(start_server):
    server = start_server("--jobs-interval", "1s")
    tenant = Tenant(server)
    client, other = tenant.api("ingest", "read", "admin"), Tenant(server).api("ingest", "read")
    for who in (client, other):
        for i in range(4):
            push(who, "pod=a", BEGIN + i)
            push(who, "pod=b", BEGIN + i)
    before = objects_of(server)
    made = delete(client, '{pod="a"}', BEGIN + 1, BEGIN + 3)
    assert made["start_ns"] == BEGIN + 1 and made["end_ns"] == BEGIN + 3 and made["done_at"] is None
    assert folded(client, CPU_NAMES[0] + '{pod="a"}', BEGIN, BEGIN + 9)[1] == {("main", "work"): 2}
    # Only what was there before is meant; what was known stays known.
    assert push(client, "pod=a", BEGIN + 1)["duplicate"]
    assert not push(client, "pod=a", BEGIN + 2, 100)["duplicate"]
    assert folded(client, CPU_NAMES[0] + '{pod="a"}', BEGIN, BEGIN + 9)[1] == {
        ("main", "work"): 102
    }
    until(lambda: is_aged(server) and is_done(client, made), "a deletion is not done")
    until(
        lambda: is_aged(server) and not before & objects_of(server),
        "objects with deleted profiles are left",
    )
    assert folded(client, CPU_NAMES[0], BEGIN, BEGIN + 9)[1] == {("main", "work"): 106}
    assert folded(other, CPU_NAMES[0], BEGIN, BEGIN + 9)[1] == {("main", "work"): 8}
    audit = client.get("/api/v1/audit").json()["entries"][0]
    assert audit["action"] == "profiles.delete" and 'pod="a"' in audit["target"]


def is_aged(server):
    """What was swapped and what waits to be merged is older by an hour."""
    with server.cursor() as cursor:
        for table in ("segment", "block"):
            cursor.execute(
                f"UPDATE {table} SET swapped_at = swapped_at - interval '1 hour',"
                " created_at = created_at - interval '1 hour'"
            )
    return True


def test_all_of_a_block_and_all_of_a_team(start_server):
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
        lambda: is_aged(server) and is_done(client, made) and len(objects_of(server)) == 1,
        "a block of nothing but deleted profiles is left",
    )
    push(other.api("ingest"), "pod=c", BEGIN)
    push(client, "pod=d", BEGIN)
    assert server.api().request("DELETE", f"/api/v1/admin/tenants/{tenant.id}").status == 204
    until(
        lambda: is_aged(server)
        and objects_of(server) == rows_of(server, "SELECT object_key FROM block"),
        "objects of a deleted team are left",
    )
    assert rows_of(server, "SELECT tenant_id FROM block") == {other.id}


@pytest.mark.parametrize(
    "query, wanted",
    [
        ({}, "query is missing"),
        ({"query": "{pod=}"}, "query:"),
        ({"query": "{}"}, "query:"),
        ({"query": "cpu", "start": "5", "end": "5"}, "start must be before end"),
        ({"query": "cpu", "from": "5"}, "from"),
    ],
)
def test_what_is_wrong_is_said(server, query, wanted):
    response = Tenant(server).api("admin").request("DELETE", "/api/v1/profiles", query=query)
    assert response.status == 400 and wanted in response.json()["detail"], response


def test_deletions_without_end_are_refused(server):
    """Each takes the lease of what is merged, so that nothing would ever be."""
    tenant, other = Tenant(server), Tenant(server)
    client = tenant.api("ingest", "admin")
    push(client, "pod=a", BEGIN)
    with server.cursor() as cursor:  # so that none of them is done
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


def test_a_deletion_that_is_locked_out_is_done_all_the_same(start_server):
    """By work that locks the same rows in another order: the database ends one of both."""
    server = start_server("--jobs-interval", "3600s")
    client = Tenant(server).api("ingest", "read", "admin")
    for second in range(2):
        push(client, "pod=a", BEGIN + second * 10**9)
    first, last = sorted(rows_of(server, "SELECT segment_id FROM segment_tenant"))
    lock = "SELECT FROM segment_tenant WHERE segment_id = %s FOR UPDATE"
    responses = []
    deletion = threading.Thread(target=lambda: responses.append(delete(client, ALL)))
    with contextlib.closing(server.database("perfolio_cluster")) as other, other.cursor() as cursor:
        cursor.execute("SET deadlock_timeout = '1min'")  # it is the deletion that finds out
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


def test_only_administrators_delete_and_only_their_teams_profiles(server):
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


def test_a_deletion_while_many_push_and_merge(start_server):
    """Each batch before the deletion is gone, each after it is there, whatever is merged
    meanwhile."""
    server = start_server("--jobs-interval", "1s")
    client = Tenant(server).api("ingest", "read", "admin")
    deadline, number, kept = time.monotonic() + 6, 0, []
    while time.monotonic() < deadline:
        for _ in range(20):
            push(client, f"pod=p{number % 2}", BEGIN + number, stack=("main", f"f{number}"))
            kept.append(number)
            number += 1
        is_aged(server)
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
    """Of a block's bytes (store/block/block_format.h): what its names are made of."""
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


def test_a_name_of_a_day_is_in_no_block_of_another(start_server):
    """What is merged at once becomes a block for each day, with the names of that day alone."""
    days = 30
    server = start_server("--jobs-interval", "1s")
    client = Tenant(server).api("ingest", "read", "admin")
    with server.cursor() as cursor:  # so that none is merged before all are there
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
        lambda: is_aged(server) and is_done(client, made) and len(objects_of(server)) == days - 1,
        "a deletion is not done",
    )
    assert not any(b"Secret" in strings_of(server.objects.read(key)) for key in objects_of(server))
