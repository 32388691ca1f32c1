"""The budgets of the store bound the data that it reads and merges, even if that data arrived in
small requests."""

import gzip
import random
import sys
import time

import pytest

from conftest import ROOT
from people import Tenant
from test_bounded_memory import OTLP, TYPE, peak_mib, small_server  # noqa: F401
from test_shares import problem, share
from test_store import compact, rows_of, until

sys.path.insert(0, str(ROOT / "tests" / "oracle"))
from otlp_maker import Profile, Request  # noqa: E402
from pprof_maker import Maker, block, number, varint  # noqa: E402

SECOND = 10**9
BEGIN = (int(time.time()) // 86400 - 3) * 86400 * SECOND
WINDOW = {"start": str(BEGIN - SECOND), "end": str(BEGIN + 20000 * SECOND)}

pytestmark = pytest.mark.long


def ingest(server, profile, service):
    response = server.api().post(
        "/api/v1/profiles", gzip.compress(profile), query={"label": f"service_name={service}"}
    )
    assert response.status == 200, response


def send_otlp(server, request):
    response = server.api().post(
        OTLP,
        gzip.compress(request.protobuf()),
        headers={"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip"},
    )
    assert response.status == 200, response


def nameless(count):
    """A profile of that many addresses in one binary, in stacks of 10,000."""
    out = bytearray(TYPE)
    for first in range(0, count, 10000):
        stack = b"".join(varint(first + i + 1) for i in range(10000))
        out += block(2, block(1, stack) + block(2, varint(1)))
    out += block(3, number(1, 1) + number(2, 1 << 20) + number(3, 1 << 40) + number(5, 3))
    for i in range(count):
        out += block(4, number(1, i + 1) + number(2, 1) + number(3, (1 << 21) + 16 * i))
    for text in (b"", b"samples", b"count", b"/usr/bin/shop"):
        out += block(6, text)
    return bytes(out)


def test_frames_of_addresses_are_in_the_budget_of_reports(small_server):  # noqa: F811
    """Each of 700,000 addresses is a frame with two names: 400 MB for 10 MB."""
    identity = share(small_server.api(), gzip.compress(nameless(700000)))["id"]
    path = f"/api/v1/shares/{identity}/flame"
    for group in ("address", "function", "line"):
        problem(small_server.api().get(path, query={"group_by": group}), 413, "max-heavy-memory")
    assert small_server.api().get(path, query={"group_by": "binary"}).status == 200
    assert peak_mib(small_server) < 450


def test_frames_of_addresses_are_in_the_budget_of_queries(small_server):  # noqa: F811
    ingest(small_server, nameless(700000), "shop")
    query = {"query": '{service_name="shop"}', "start": "now-1h", "end": "now+1h"}
    top = {**query, "report": "top"}
    problem(small_server.api().get("/api/v1/query", query=top), 422, "max-query-memory")
    binaries = {**query, "report": "flame", "group_by": "binary"}
    assert small_server.api().get("/api/v1/query", query=binaries).status == 200
    assert peak_mib(small_server) < 600


def labelled(ids, start, duration=1000):
    """A delta with a sample for each id."""
    maker = Maker([("samples", "count")])
    stack = [maker.location([(maker.function("main"), 1)])]
    for identity in ids:
        maker.sample(stack, [1], [("id", str(identity))])
    maker.scalars(time=start, duration=duration)
    return maker.bytes()


def gaps(service, count, shift=0):
    """Deltas of a millisecond, one in two seconds."""
    return Request(
        [
            (
                {"service.name": service},
                [
                    Profile(
                        ("samples", "count"),
                        BEGIN + (2 * i + 2) * SECOND + shift,
                        {("main",): 1},
                        duration=1_000_000,
                    )
                    for i in range(count)
                ],
            )
        ]
    )


def range_of(server, service):
    query = {"query": f'samples{{service_name=~"{service}"}}', "step": "6h", "group_by": "id"}
    return server.api().get("/api/v1/query_range", query={**WINDOW, **query})


def test_groups_of_a_series_share_the_time_that_it_covers(small_server):  # noqa: F811
    """20,000 groups of a series with 4,000 gaps: a copy for each takes 1.3 GB."""
    ingest(small_server, labelled(range(20000), BEGIN), "shop")
    send_otlp(small_server, gaps("shop", 4000))
    assert range_of(small_server, "shop").status == 200
    assert peak_mib(small_server) < 450


def test_time_that_many_groups_cover_differently_is_in_the_budget(small_server):  # noqa: F811
    """Each of 4,000 groups has its own choice of 16 services with 1,000 gaps each: 500 MB."""
    rng = random.Random(1)
    choices = [rng.getrandbits(16) for _ in range(4000)]
    for service in range(16):
        ids = [i for i, choice in enumerate(choices) if choice >> service & 1]
        ingest(small_server, labelled(ids, BEGIN), f"shop{service}")
        send_otlp(small_server, gaps(f"shop{service}", 1000, service * 50_000_000))
    problem(range_of(small_server, "shop.*"), 422, "max-query-memory")
    assert peak_mib(small_server) < 600


def test_repeated_scans_of_a_query_keep_nothing(start_server):
    """Deltas without a duration, 40 minutes apart, are scanned several times for values over time,
    and the texts of their 400 series take 60 MB each time."""
    server = start_server("--max-query-memory=256MiB", "--tenant-query-memory=96MiB")
    value = "v" * 2000
    request = Request(
        [
            (
                {
                    "service.name": "shop",
                    "number": str(i),
                    **{f"label{j:02d}": f"{j:02d}{value}" for j in range(60)},
                },
                [
                    Profile(("samples", "count"), BEGIN + k * 2400 * SECOND, {("main",): 1})
                    for k in range(3)
                ],
            )
            for i in range(400)
        ]
    )
    send_otlp(server, request)
    query = {"query": 'samples{service_name="shop"}', "step": "1s"}
    window = {"start": str(BEGIN + SECOND), "end": str(BEGIN + 9000 * SECOND)}
    before = peak_mib(server)
    response = server.api().get("/api/v1/query_range", query={**window, **query})
    assert response.status == 200, response
    assert peak_mib(server) - before < 200


def test_expressions_over_labels_of_samples_end_at_the_limit(start_server):
    """1,900 values of 4,000 bytes for an expression that takes 0.2 s for each: 6 minutes."""
    server = start_server("--tenant-query-cpu-time=2s")
    maker = Maker([("samples", "count")])
    stack = [maker.location([(maker.function("main"), 1)])]
    for i in range(1900):
        maker.sample(stack, [1], [("k", "a" * 4000 + f"!b{i}")])
    ingest(server, maker.bytes(), "shop")
    costly = "a*" * 300 + "b"
    query = {"start": "now-1h", "end": "now+1h"}
    for path in ("query", "profiles", "query_range", "series"):
        before = server.cpu_seconds()
        name = "match[]" if path == "series" else "query"
        response = server.api().get(
            f"/api/v1/{path}", query={**query, name: f'{{service_name="shop",k=~"{costly}"}}'}
        )
        assert response.status in (400, 422) and b"CPU" in response.body, (path, response)
        assert server.cpu_seconds() - before < 8
    before = server.cpu_seconds()
    response = server.api().get(
        "/api/v1/query", query={**query, "query": '{service_name="shop",k=~"' + "a*" * 990 + 'b"}'}
    )
    problem(response, 400, "is too expensive to be compared with a value of")
    assert server.cpu_seconds() - before < 4


def long_names(count, first):
    """Functions whose names differ at the end only; every third one has a sample."""
    maker = Maker([("samples", "count")])
    for i in range(count):
        name = "n" * 15900 + f"{first + i:08d}"
        location = maker.location([(maker.function(name), 1)])
        if i % 3 == 0:
            maker.sample([location], [1])
    maker.scalars(time=BEGIN + first * SECOND // 10, duration=1000)
    return maker.bytes()


def test_a_merge_has_few_blocks_open_together(start_server):
    """A block of 480 names of 16 KB that share a beginning takes 7.5 MiB of memory, and 10 KB in
    the store: 50 of them take 370 MiB."""
    server = start_server("--jobs-interval", "1s", "--max-merge-memory=32MiB")
    for i in range(50):
        ingest(server, long_names(480, 480 * i), f"shop{i}")
    before = peak_mib(server)
    compact(server)
    assert peak_mib(server) - before < 250
    query = {"query": '{service_name=~"shop.*"}', **WINDOW, "report": "top", "limit": "1"}
    response = server.api().get("/api/v1/query", query=query)
    assert response.status == 200 and response.json()["total"] == 50 * 160, response


def test_blocks_that_do_not_fit_together_are_left_alone(start_server):
    """Each of a day's eight blocks takes more than a merge may have open. Retention applies to them
    nevertheless."""
    server = start_server("--jobs-interval", "1s", "--max-merge-memory=1MiB")
    for i in range(8):
        ingest(server, long_names(480, 480 * i), f"shop{i}")
    compact(server)
    blocks = "SELECT object_key FROM block WHERE NOT is_broken ORDER BY object_key"
    before = rows_of(server, blocks)
    assert len(before) == 8
    server.rows("UPDATE block SET created_at = now(), leased_until = NULL")
    until(
        lambda: rows_of(
            server, "SELECT 1 FROM block WHERE merge_after > now() + interval '50 min'"
        ),
        "the blocks are not released",
    )
    assert rows_of(server, blocks) == before
    rule = server.api().post(
        "/api/v1/retention", json={"query": '{service_name="shop3"}', "keep": "1d"}
    )
    assert rule.status == 200, rule
    until(
        lambda: len(rows_of(server, "SELECT id FROM block WHERE swapped_at IS NULL")) == 7,
        "the profiles do not expire",
    )


def test_stored_profiles_count_towards_a_limit(start_server):
    server = start_server("--tenant-stored-profile-bytes=64KiB")
    rng = random.Random(2)
    for i in range(200):
        maker = Maker([("samples", "count")])
        stack = [maker.location([(maker.function(rng.randbytes(4000).hex()), 1)])]
        maker.sample(stack, [1])
        response = server.api().post(
            "/api/v1/profiles", maker.bytes(), query={"label": "service_name=shop"}
        )
        if response.status != 200:
            break
        time.sleep(0.1)
    problem(response, 429, "stored_profile_bytes is 65536, by the setting tenant-stored-profile")
    assert int(response.headers["retry-after"]) > 0
    query = {"query": '{service_name="shop"}', "start": "now-1h", "end": "now+1h", "report": "top"}
    response = server.api().get("/api/v1/query", query=query)
    assert response.status == 200 and response.json()["total"] == i, response


def test_a_team_with_very_many_blocks_waits_for_merges(start_server):
    """Profiles of many days at once make a block for each day."""
    server = start_server()
    tenant, other = Tenant(server), Tenant(server)
    api, folded = tenant.api("ingest"), {"body": b"main;f 1", "query": {"name": "app"}}
    assert api.post("/ingest", **folded).status == 200
    # Leased for longer than the test, so that the blocks, which do not exist, are not merged.
    server.rows(
        "INSERT INTO block (tenant_id, writer_id, object_key, level, bytes, footer_crc,"
        " begin_ns, end_ns, reach_ns, row_count, profile_count, series_count, leased_until)"
        " SELECT %s, max(id), 'block/1/' || n, 1, 100, 1, 0, 0, 0, 1, 1, 1,"
        " now() + interval '1 day'"
        " FROM store_writer, generate_series(1, 20001) AS n GROUP BY n RETURNING id",
        [tenant.id],
    )
    until(lambda: api.post("/ingest", **folded).status == 429, "the blocks are not counted")
    refused = api.post("/ingest", **folded)
    assert "of few days at once" in refused.text and int(refused.headers["retry-after"]) > 0
    assert other.api("ingest").post("/ingest", **folded).status == 200
    server.rows("DELETE FROM block WHERE bytes = 100 RETURNING id")
    until(lambda: api.post("/ingest", **folded).status == 200, "the limit stays")


def test_replaced_blocks_count_towards_half_of_the_disk(start_server):
    """They stay for some minutes, so a team that sends much could fill the disk with them."""
    server = start_server()
    tenant = Tenant(server)
    api = tenant.api("ingest")
    folded = {"body": b"main;f 1", "query": {"name": "app"}}
    assert api.post("/ingest", **folded).status == 200
    server.rows(
        "INSERT INTO block (tenant_id, writer_id, object_key, level, bytes, footer_crc,"
        " begin_ns, end_ns, reach_ns, row_count, profile_count, series_count, swapped_at)"
        " SELECT %s, max(id), 'block/1/none', 1, 1::bigint << 50, 1, 0, 0, 0, 1, 1, 1, now()"
        " FROM store_writer RETURNING id",
        [tenant.id],
    )
    until(lambda: api.post("/ingest", **folded).status == 429, "the replaced block is not counted")
    assert "those that merges replaced" in api.post("/ingest", **folded).text
    server.rows("DELETE FROM block WHERE object_key = 'block/1/none' RETURNING id")
    until(lambda: api.post("/ingest", **folded).status == 200, "the limit stays")
