"""Idle time counts as time with data: a profile without samples, or with only zero values, counts
as 0 for its duration, for every protocol, before and after compaction and a restart."""

import gzip
import sys

import pytest

from conftest import ROOT, rest_long
from people import Tenant
from test_ingest_wire import PUSH, push_protobuf
from test_query_range import BEGIN, MINUTE, OTLP_CPU, PERIOD, SECOND, query_range, near, one_series
from test_store import CPU, compact, folded, make_profile

sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import otlp_maker  # noqa: E402
import pprof_maker  # noqa: E402

pytestmark = pytest.mark.long

WINDOW = 10 * SECOND
COUNT = 120
BUSY = {i for i in range(COUNT) if i % 10 == 3}
END = BEGIN + COUNT * WINDOW
PPROF_CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"


def windows():
    """(begin, ns of CPU time): one second in every tenth window, 0 in the others."""
    return [(BEGIN + i * WINDOW, SECOND if i in BUSY else 0) for i in range(COUNT)]


def push_pprof(client, form="empty"):
    for begin, value in windows():
        stacks = (
            {("main",): [1, value]} if value else {("main",): [0, 0]} if form == "zeros" else {}
        )
        body = make_profile(CPU, begin, stacks, PERIOD, WINDOW)
        response = client.post("/api/v1/profiles", body=body, query=[("label", "service_name=api")])
        assert response.status == 200 and response.json()["samples"] == (
            2 if value else 0
        ), response


def push_zeros(client):
    push_pprof(client, "zeros")


def push_folded(client):
    for begin, value in windows():
        query = {"name": "api.cpu", "from": begin, "until": begin + WINDOW, "sampleRate": 100}
        response = client.post("/ingest", query=query, body=b"main 100\n" if value else b"")
        assert response.status == 200, response


def push_pyroscope(client):
    for begin, value in windows():
        body = make_profile(CPU, begin, {("main",): [1, value]} if value else {}, PERIOD, WINDOW)
        response = client.post(
            PUSH,
            body=push_protobuf([({"service_name": "api"}, [body])]),
            headers={"Content-Type": "application/proto"},
        )
        assert response.status == 200, response


def push_otlp(client):
    profiles = [
        otlp_maker.Profile(PERIOD, begin, {("main",): value} if value else {}, 1, PERIOD, WINDOW)
        for begin, value in windows()
    ]
    response = client.post(
        "/v1development/profiles",
        body=otlp_maker.Request([({"service.name": "api"}, profiles)]).protobuf(),
        headers={"Content-Type": "application/x-protobuf"},
    )
    assert response.status == 200 and b"reject" not in response.body, response


def check_again_merged_and_restarted(server, check):
    check()
    compact(server)
    check()
    server.restart()
    check()


@pytest.mark.parametrize(
    "push", rest_long([push_pprof, push_otlp, push_zeros, push_folded, push_pyroscope], 2)
)
def test_idle_time_counts_in_averages(shared_server, push):
    server = shared_server("--jobs-interval", "1s")
    client = Tenant(server).api("ingest", "read")
    push(client)
    query = OTLP_CPU if push is push_otlp else PPROF_CPU

    def check():
        for step in (None, "1s", "10s", "1m", "1h"):
            response = query_range(
                client,
                BEGIN - MINUTE,
                END + MINUTE,
                query=query,
                **({"step": step} if step else {}),
            )
            series = one_series(response)
            assert series["total"] == len(BUSY) * SECOND, step
            assert series["covered_ms"] == COUNT * 10_000 and near(series["average"], 0.01, 1e-6), (
                step,
                series,
            )
            assert "notes" not in response
        points = dict(
            map(
                tuple,
                one_series(query_range(client, BEGIN, END, query=query, step="10s"))["points"],
            )
        )
        assert {(ms * 10**6 - BEGIN) // WINDOW: value for ms, value in points.items()} == {
            i: 0.1 if i in BUSY else 0 for i in range(COUNT)
        }
        # A window in which nothing ran has points at 0.
        series = one_series(
            query_range(client, BEGIN + 40 * SECOND, BEGIN + 2 * MINUTE, query=query, step="10s")
        )
        assert {value for _, value in series["points"]} == {0} and len(series["points"]) == 8
        assert series["covered_ms"] == 80_000 and series["average"] == 0 and series["total"] == 0
        # Idle time adds no frame.
        assert folded(client, query, BEGIN, END)[1] == {("main",): len(BUSY) * SECOND}
        assert folded(client, query, BEGIN + 40 * SECOND, BEGIN + 2 * MINUTE)[1] == {}
        rows = client.get(
            "/api/v1/export",
            query={"query": query, "start": BEGIN + 40 * SECOND, "end": BEGIN + 2 * MINUTE},
        )
        assert rows.status == 200 and rows.body[:4] == b"PAR1", rows

    check_again_merged_and_restarted(server, check)


def test_sample_types_with_only_zero_values_count_as_idle(shared_server):
    """The same profiles have other types with values."""
    server = shared_server("--jobs-interval", "1s")
    client = Tenant(server).api("ingest", "read")
    types = [("cpu", "nanoseconds"), ("lock_wait", "nanoseconds"), ("never", "count")]
    for i in range(20):
        body = make_profile(
            types,
            BEGIN + i * WINDOW,
            {("main",): [SECOND, SECOND if i == 5 else 0, 0]},
            PERIOD,
            WINDOW,
        )
        assert client.post("/api/v1/profiles", body=body).status == 200

    def check():
        for name, average in (("cpu", 0.1), ("lock_wait", 0.005), ("never", 0)):
            series = one_series(
                query_range(client, BEGIN, BEGIN + 20 * WINDOW, query="process_cpu:" + name)
            )
            assert series["covered_ms"] == 200_000 and near(series["average"], average), (
                name,
                series,
            )
            assert all(value is not None for _, value in series["points"])

    check_again_merged_and_restarted(server, check)


def test_groups_by_a_sample_label_are_zero_while_their_series_is_idle(shared_server):
    """While one or all threads are idle, their groups are 0 and no extra group appears."""
    server = shared_server("--jobs-interval", "1s")
    client = Tenant(server).api("ingest", "read")
    for i in range(20):
        maker = pprof_maker.Maker(CPU)
        frame = maker.location([(maker.function("main", "main.c"), 7)])
        for thread in ("a", "b"):
            if i % 10 == 3 and (thread == "a" or i == 13):
                maker.sample([frame], [1, SECOND], [("thread", thread)])
        maker.scalars(time=BEGIN + i * WINDOW, duration=WINDOW, period=1, period_type=PERIOD)
        response = client.post(
            "/api/v1/profiles",
            body=gzip.compress(maker.bytes()),
            query=[("label", "service_name=api")],
        )
        assert response.status == 200, response

    def check():
        for step in ("1s", "10s", "1m"):
            response = query_range(
                client, BEGIN, BEGIN + 20 * WINDOW, query=PPROF_CPU, group_by="thread", step=step
            )
            groups = {series["labels"]["thread"]: series for series in response["series"]}
            assert {name: series["total"] for name, series in groups.items()} == {
                "a": 2 * SECOND,
                "b": SECOND,
            }
            assert {series["covered_ms"] for series in groups.values()} == {200_000}
            assert near(groups["a"]["average"], 0.01) and near(groups["b"]["average"], 0.005)
            assert {len(series["points"]) for series in groups.values()} == {
                len(
                    one_series(
                        query_range(client, BEGIN, BEGIN + 20 * WINDOW, query=PPROF_CPU, step=step)
                    )["points"]
                )
            }
        only = one_series(
            query_range(
                client, BEGIN, BEGIN + 20 * WINDOW, query=PPROF_CPU, label="thread=b", step="10s"
            )
        )
        assert only["covered_ms"] == 200_000 and near(only["average"], 0.005)
        # A window without samples has no thread names, so it has one series at 0.
        idle = BEGIN + 40 * SECOND, BEGIN + 2 * MINUTE
        series = one_series(
            query_range(client, *idle, query=PPROF_CPU, group_by="thread", step="10s")
        )
        assert (
            series["labels"] == {"thread": ""}
            and series["covered_ms"] == 80_000
            and series["total"] == 0
        )
        series = one_series(
            query_range(client, *idle, query=PPROF_CPU, group_by="service_name", step="10s")
        )
        assert series["labels"] == {"service_name": "api"} and series["covered_ms"] == 80_000
        assert (
            query_range(client, *idle, query=PPROF_CPU, label="thread=b", step="10s")["series"]
            == []
        )

    check_again_merged_and_restarted(server, check)


def test_an_empty_body_without_a_time_range_adds_no_data(server):
    client = Tenant(server).api("ingest", "read")
    for query in (
        {},
        {"from": BEGIN, "until": BEGIN},
        {"from": BEGIN, "until": END, "format": "pprof"},
    ):
        response = client.post("/ingest", query={"name": "api.cpu", **query}, body=b"")
        assert response.status == 200, response
    assert query_range(client, BEGIN - MINUTE, "now", query=PPROF_CPU)["series"] == []


def test_limits_apply_to_profiles_without_samples(start_server):
    """Each empty profile counts as one sample, and its series as an active series."""
    server = start_server(
        "--tenant-active-series=3", "--tenant-samples-burst=8", "--tenant-samples-per-second=1"
    )
    client = Tenant(server).api("ingest", "read")

    def push(service, count):
        profiles = [
            otlp_maker.Profile(PERIOD, BEGIN + i * WINDOW, {}, 1, PERIOD, WINDOW)
            for i in range(count)
        ]
        return client.post(
            "/v1development/profiles",
            headers={"Content-Type": "application/x-protobuf"},
            body=otlp_maker.Request([({"service.name": service}, profiles)]).protobuf(),
        )

    assert push("a", 1).status == push("b", 1).status == push("c", 1).status == 200
    assert b"active_series" in push("d", 1).body
    assert push("a", 9).status == 413
    assert push("a", 8).status == 429
