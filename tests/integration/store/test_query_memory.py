"""A source with oversized names does not make a team's other profiles unreadable: a query that
lacks the memory for them omits them, and reports their series and service."""

import gzip
import random
import re
import subprocess

import pytest

import stored
from conftest import rest_long
from people import Tenant
from test_store import (
    BEGIN,
    CPU,
    CPU_NAMES,
    HOUR,
    compact,
    make_profile,
    pprof_maker,
    rows_of,
    until,
)

WINDOW = {"query": CPU_NAMES[1], "start": BEGIN, "end": BEGIN + HOUR}
WARNING = r"left out: .* MiB for \d+ samples of process_cpu\{service_name=\"evil\"\}"
HONEST = {("main", f"work{i}"): [1, i + 1] for i in range(50)}


def send(client, service, at, stacks):
    body = make_profile(CPU, BEGIN + at * 10**9, stacks, ("cpu", "nanoseconds"), 10**10)
    response = client.post(
        "/api/v1/profiles", body=body, query={"label": f"service_name={service}"}
    )
    assert response.status == 200, response


def send_names(client, service, at, count=600, seed=None):
    """Sends one sample whose frames have names of nearly 16,000 bytes each."""
    seed = at if seed is None else seed
    rng = random.Random(seed)
    filler = "".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(16000 - 20))
    send(
        client,
        service,
        at,
        {tuple(f"name {seed:03} {i:06} {filler}" for i in range(count)): [1, 1]},
    )


def fetch(client, path, **more):
    response = client.get(path, query={**WINDOW, **more})
    assert response.status == 200, response
    return response


def check_honest(client, service=None, count=0):
    """Checks tables of the honest service, and values over time of both services."""
    response = fetch(client, "/api/v1/query", report="folded", label="service_name=honest")
    assert sorted(response.text.splitlines()) == sorted(
        f"{';'.join(stack)} {3 * values[1]}" for stack, values in HONEST.items()
    )
    response = fetch(client, "/api/v1/query_range", group_by="service_name")
    sums = {
        one["labels"]["service_name"]: sum(value for _, value in one["points"])
        for one in response.json()["series"]
    }
    assert sums["honest"] == 3 * sum(values[1] for values in HONEST.values())
    if service:
        assert sums[service] == count
    return response


def send_deep(client, service, at, stacks, depth=1000, lines=1000):
    """Sends stacks of one location with many inlined calls: a few KB that expand to stacks * depth
    * lines frames."""
    maker = pprof_maker.Maker(CPU)
    inlined = maker.location(
        [(maker.function(f"inlined {i}", "deep.c"), i + 1) for i in range(lines)]
    )
    for i in range(stacks):
        maker.sample(
            [maker.location([(maker.function(f"leaf {i}", "deep.c"), 1)])]
            + [inlined] * (depth - 1),
            [1, 1],
        )
    maker.scalars(
        time=BEGIN + at * 10**9, duration=10**10, period=1, period_type=("cpu", "nanoseconds")
    )
    response = client.post(
        "/api/v1/profiles",
        body=gzip.compress(maker.bytes()),
        query={"label": f"service_name={service}"},
    )
    assert response.status == 200, response


@pytest.mark.long
def test_stacks_of_a_million_frames_do_not_break_queries_of_the_window(start_server):
    server = start_server()
    client = Tenant(server).api("ingest", "read")
    for at in range(3):
        send(client, "honest", at, HONEST)
    send_deep(client, "evil", 10, 300)
    total = 3 * sum(values[1] for values in HONEST.values()) + 300
    table = fetch(client, "/api/v1/query", report="top", limit=0).json()
    assert table["total"] == total
    flat = {row["name"]: row["flat"] for row in table["functions"]}
    assert flat["work7"] == 3 * 8 and flat["leaf 299"] == 1
    folded = fetch(client, "/api/v1/query", report="folded").text.splitlines()
    assert "main;work7 24" in folded
    assert (
        sum(line.startswith("[frames above the last 1024 are cut];inlined") for line in folded)
        == 300
    )
    for report in ("flame", "labels"):
        fetch(client, "/api/v1/query", report=report)


@pytest.mark.long
def test_samples_with_oversized_names_are_omitted_and_reported(start_server):
    server = start_server("--jobs-interval", "1s")
    client = Tenant(server, query_memory_bytes=32 << 20).api("ingest", "read")
    for at in range(3):
        send(client, "honest", at, HONEST)
    for at in range(6):
        send_names(client, "evil", 10 + at)
    for is_compacted in (False, True):
        if is_compacted:
            compact(server)
        response = check_honest(client, "evil", 6)  # values over time need no names
        assert (
            response.json()["statistics"]["oversized"] == 0
            and "perfolio-warning" not in response.headers
        )
        for path, more in (
            ("query", {"report": "folded"}),
            ("export", {}),
            ("query_range", {"focus": "work"}),
        ):
            response = fetch(client, f"/api/v1/{path}", **more)
            assert re.search(WARNING, response.headers["perfolio-warning"]), response.headers[
                "perfolio-warning"
            ]
        assert response.json()["statistics"]["oversized"] >= 1
        assert sum(value for _, value in response.json()["series"][0]["points"]) == 3 * sum(
            range(1, 51)
        )
        evil = {**WINDOW, "query": CPU_NAMES[1] + '{service_name="evil"}', "report": "folded"}
        response = client.get("/api/v1/query", query=evil)
        assert response.status == 422 and re.search(
            r"all that this query finds is left out: .* the largest block takes .*evil",
            response.json()["detail"],
        ), response


@pytest.mark.long
@pytest.mark.skipif(stored.is_in_bucket(), reason="files are copied")
@pytest.mark.parametrize("is_first", rest_long([False, True]), ids=["second", "first"])
def test_compaction_sets_only_the_oversized_block_aside(start_server, is_first):
    """One of the day's blocks is ordinary, the others have oversized names; no two of them can be
    merged."""
    server = start_server("--jobs-interval", "1s")
    tenant = Tenant(server)
    client = tenant.api("ingest", "read")

    def store_honest_block():
        for at in range(3):
            send(client, "honest", at, HONEST)
        compact(server)

    if is_first:
        store_honest_block()
    send_names(client, "evil", 10, count=1200)
    compact(server)
    if not is_first:
        store_honest_block()
    (honest,) = rows_of(server, "SELECT object_key FROM block WHERE row_count > 10")
    (evil,) = rows_of(server, "SELECT object_key FROM block WHERE row_count < 10")
    # Simulates blocks that arrived one after the other; the server merges eight blocks of a day.
    (columns,) = rows_of(
        server,
        "SELECT string_agg(column_name, ', ') FROM information_schema.columns"
        " WHERE table_name = 'block' AND column_name NOT IN ('id', 'object_key')",
    )
    objects = server.data_dir / "objects"
    with server.cursor() as cursor:
        cursor.execute("UPDATE block SET leased_until = now() + interval '1 hour'")
        for i in range(7):
            subprocess.run(["cp", "-a", objects / evil, objects / f"{evil}{i}"], check=True)
            cursor.execute(
                f"INSERT INTO block (object_key, {columns}) SELECT object_key || '{i}', {columns}"
                " FROM block WHERE object_key = %s",
                [evil],
            )
        cursor.execute(
            "UPDATE block SET leased_until = NULL, created_at = now()"
        )  # the server does not merge older ones
    until(
        lambda: rows_of(server, "SELECT 1 FROM block WHERE is_broken")
        and not rows_of(server, "SELECT 1 FROM block WHERE leased_until > now() AND NOT is_broken"),
        "nothing is set aside",
    )
    marked = rows_of(server, "SELECT object_key FROM block WHERE is_broken")
    assert marked and all(key.startswith(evil) for key in marked), (marked, honest)


@pytest.mark.long
def test_repeated_long_names_are_stored_once(start_server):
    """A faulty client repeats its names, so all its profiles fit once its blocks are merged."""
    server = start_server("--jobs-interval", "1s")
    client = Tenant(server, query_memory_bytes=64 << 20).api("ingest", "read")
    for at in range(3):
        send(client, "honest", at, HONEST)
    for at in range(12):
        send_names(client, "faulty", 10 + at, count=300, seed=1)
    compact(server)
    check_honest(client, "faulty", 12)
    response = fetch(client, "/api/v1/query", report="folded")
    assert "perfolio-warning" not in response.headers and len(response.text) > 300 * 15900
    assert rows_of(server, "SELECT count(*) FROM block") == {2}


def test_samples_that_fit_are_not_omitted(server):
    client = Tenant(server).api("ingest", "read")
    for at in range(3):
        send(client, "honest", at, HONEST)
    send_names(client, "long", 10)
    response = check_honest(client)
    assert "perfolio-warning" not in response.headers
    assert response.json()["statistics"]["oversized"] == 0


@pytest.mark.parametrize("path", ["/api/v1/query", "/api/v1/query_range"])
def test_a_query_that_needs_too_much_memory_names_the_series(server, path):
    client = Tenant(server, query_memory_bytes=1 << 20).api("ingest", "read")
    stacks = {
        tuple(f"f{(i * 7 + depth) % 997}" for depth in range(5)) + (f"leaf{i}",): [1, 10]
        for i in range(20000)
    }
    send(client, "large", 0, stacks)
    response = client.get(
        path, query={**WINDOW, "focus": "leaf"} if path.endswith("range") else WINDOW
    )
    assert response.status == 422, response
    detail = response.json()["detail"]
    assert 'service_name="large"' in detail and "MiB for 40000 samples of " in detail, detail
    assert "query_memory_bytes is 1048576, set for this team" in detail, detail
