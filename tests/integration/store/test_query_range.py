"""Values of /api/v1/query_range do not depend on the window and the step.

A steady load is a flat line, gaps stay gaps, and totals equal the sums of the profiles.
store/values/spread.h describes how values are spread over time."""

import gzip
import random
import re
import sys

import pytest

from conftest import ROOT, rest_long
from people import Tenant
from test_ingest_wire import FORM, form
from test_store import CPU, CPU_NAMES, HOUR, NAMES, compact, folded, make_profile

sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import otlp_maker  # noqa: E402
import pprof_maker  # noqa: E402

SECOND, MINUTE, DAY = 10**9, 60 * 10**9, 24 * HOUR
BEGIN = 1_790_000_000 * 10**9 // DAY * DAY
OTLP_CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta"
PERIOD = ("cpu", "nanoseconds")


def push(client, profiles, service="api", **labels):
    """Sends profiles, a list of (time, duration, value), of one series."""
    attributes = {"service.name": service, **labels}
    made = [
        otlp_maker.Profile(PERIOD, time_ns, {("main",): value}, 1, PERIOD, duration_ns)
        for time_ns, duration_ns, value in profiles
    ]
    for first in range(0, len(made), 500):
        response = client.post(
            "/v1development/profiles",
            body=otlp_maker.Request([(attributes, made[first : first + 500])]).protobuf(),
            headers={"Content-Type": "application/x-protobuf"},
        )
        assert response.status == 200, response


def steady(begin, end, duration, cores, late=0):
    """Returns successive profiles, each late nanoseconds after the end of the previous one."""
    return [(at, duration, round(cores * duration)) for at in range(begin, end, duration + late)]


def query_range(client, start, end, query=OTLP_CPU, **more):
    response = client.get(
        "/api/v1/query_range",
        query={"query": query, "start": start, "end": end, "rate": "auto", **more},
    )
    assert response.status == 200, response
    return response.json()


def one_series(response):
    (series,) = response["series"]
    return series


def values(response):
    return [value for _, value in one_series(response)["points"]]


def near(value, wanted, part=0.01):
    return abs(value - wanted) <= part * abs(wanted)


def test_a_steady_load_has_the_same_rate_for_all_windows_and_steps(shared_server):
    """A day of profiles of ten seconds, 5 ms apart, is queried before and after compaction."""
    server = shared_server("--jobs-interval", "1s")
    client = Tenant(server).api("ingest", "read")
    push(client, steady(BEGIN - HOUR, BEGIN + DAY, 10 * SECOND, 1.95, late=5 * 10**6))

    def check():
        end = BEGIN + DAY - 3 * SECOND
        for length in (15 * MINUTE, HOUR, 6 * HOUR, DAY):
            for step in (None, "1s", "7s", "15s", "61s", "1h", "5h"):
                if step == "1s" and length > HOUR or step == "7s" and length > 6 * HOUR:
                    continue
                response = query_range(
                    client, end - length, end, **({"step": step} if step else {})
                )
                assert all(near(value, 1.95) for value in values(response)), (length, step)
                series = one_series(response)
                assert near(series["average"], 1.95, 0.001) and "notes" not in response
                assert near(series["covered_ms"], length / 10**6, 0.001)
                assert near(series["total"], 1.95 * length, 0.001)
                assert len(series["points"]) >= length // (response["step_ms"] * 10**6)
        # Steps of an hour or more read one value per hour if the block reports no gaps in it.
        response = query_range(client, BEGIN - 30 * DAY, BEGIN + 2 * DAY)
        assert response["step_ms"] >= HOUR // 10**6
        assert all(near(value, 1.95) for value in values(response))
        assert near(one_series(response)["total"], 1.95 * 25 * HOUR, 0.001)

    check()
    compact(server)
    check()


def test_gaps_are_kept_in_steps_of_hours_and_days(shared_server):
    """A job runs for 25 minutes of each hour, for a day. Long steps read one value per hour."""
    server = shared_server("--jobs-interval", "1s")
    client = Tenant(server).api("ingest", "read")
    for hour in range(24):
        begin = BEGIN + hour * HOUR
        push(client, steady(begin, begin + 25 * MINUTE, 10 * SECOND, 2))

    def check():
        for step in ("1m", "1h", "1d", "7d"):
            series = one_series(query_range(client, BEGIN, BEGIN + 7 * DAY, step=step))
            assert near(series["average"], 2, 0.001) and near(
                series["covered_ms"], 24 * 25 * 60_000, 0.001
            ), (step, series)
            assert all(near(value, 2, 0.001) for _, value in series["points"]), step

    check()
    compact(server)
    check()


def test_a_profile_across_two_steps_is_divided_between_them(shared_server):
    """Profiles of five minutes start at 02:30, 07:30, and so on. The last one of each hour has 80
    times the value of the others."""
    server = shared_server("--jobs-interval", "1s")
    client = Tenant(server).api("ingest", "read")
    first = BEGIN - HOUR + 2 * MINUTE + 30 * SECOND
    push(
        client,
        [
            (first + i * 5 * MINUTE, 5 * MINUTE, 300 * SECOND * (80 if i % 12 == 11 else 1) // 10)
            for i in range(36)
        ],
    )

    def check():
        for step in ("150s", "5m", "30m", "1h"):
            response = query_range(client, BEGIN, BEGIN + HOUR, step=step)
            assert near(one_series(response)["total"], (8 * 300 + 0.1 * 3300) * SECOND, 1e-6), (
                step,
                response,
            )
        response = query_range(client, BEGIN, BEGIN + 2 * HOUR, step="1h")
        assert all(near(value, 2730 / 3600, 1e-6) for value in values(response)), response

    check()
    compact(server)
    check()


def test_long_profiles_are_found_next_to_short_ones_of_another_series(shared_server):
    server = shared_server("--jobs-interval", "1s")
    client = Tenant(server).api("ingest", "read")
    push(client, steady(BEGIN, BEGIN + HOUR, 10 * SECOND, 1), pod="web")
    push(client, [(BEGIN + 10 * MINUTE, 45 * MINUTE, 90 * MINUTE)], pod="job")

    def check():
        for begin in (10, 15, 35, 50):
            start = BEGIN + begin * MINUTE
            response = query_range(client, start, start + 5 * MINUTE)
            assert near(one_series(response)["average"], 3, 1e-6), (begin, response)
            pods = {
                one["labels"]["pod"]
                for one in query_range(client, start, start + 5 * MINUTE, group_by="pod")["series"]
            }
            assert pods == {"web", "job"}
        parts = [
            one_series(query_range(client, BEGIN + i * 5 * MINUTE, BEGIN + (i + 1) * 5 * MINUTE))[
                "total"
            ]
            for i in range(12)
        ]
        assert near(sum(parts), one_series(query_range(client, BEGIN, BEGIN + HOUR))["total"], 1e-6)

    check()
    compact(server)
    check()


def test_the_rate_of_several_series_is_the_sum_of_their_rates(server):
    """The end of one series does not change the rates of the others. Time without any series is
    not covered."""
    client = Tenant(server).api("ingest", "read")
    push(client, steady(BEGIN, BEGIN + 30 * MINUTE, 10 * SECOND, 2), pod="a")
    push(client, steady(BEGIN + 3 * SECOND, BEGIN + 10 * MINUTE, 60 * SECOND, 1), pod="b")
    push(client, steady(BEGIN + 50 * MINUTE, BEGIN + HOUR, 15 * SECOND, 4), pod="c")
    window = BEGIN - HOUR, BEGIN + 2 * HOUR
    for step in (None, "10s", "1m", "20m", "3h"):
        more = {"step": step} if step else {}
        for pod, cores in (("a", 2), ("b", 1), ("c", 4)):
            response = query_range(client, *window, query=f'{OTLP_CPU}{{pod="{pod}"}}', **more)
            assert (
                all(near(value, cores) for value in values(response))
                and one_series(response)["average"] == cores
            )
        response = query_range(client, *window, **more)
        assert near(one_series(response)["average"], (2 * 30 + 1 * 10 + 4 * 10) / (30 + 10))
        assert one_series(response)["covered_ms"] == 40 * 60_000
    points = dict(map(tuple, one_series(query_range(client, *window, step="1m"))["points"]))
    at = {(ms * 10**6 - BEGIN) // MINUTE: value for ms, value in points.items()}
    assert set(at) == set(range(30)) | set(range(50, 60))
    assert near(at[5], 3) and near(at[20], 2) and near(at[55], 4)


def test_profiles_longer_than_the_window_count_proportionally(server):
    client = Tenant(server).api("ingest", "read")
    push(client, [(BEGIN, 50 * MINUTE, 100 * MINUTE)])
    for start, length in (
        (BEGIN + 20 * MINUTE, 5 * MINUTE),
        (BEGIN + 40 * MINUTE, MINUTE),
        (BEGIN - MINUTE, HOUR),
    ):
        response = query_range(client, start, start + length)
        assert (
            all(near(value, 2) for value in values(response))
            and one_series(response)["average"] == 2
        )
        assert one_series(response)["total"] == 2 * min(length, 50 * MINUTE)
    assert query_range(client, BEGIN + 50 * MINUTE, BEGIN + HOUR)["series"] == []
    # Also next to short profiles, for which alone the query would not search so far back.
    push(client, [(BEGIN + i * 10 * MINUTE, 10 * MINUTE, 10 * MINUTE) for i in range(10)], pod="b")
    response = query_range(client, BEGIN + 77 * MINUTE, BEGIN + 78 * MINUTE)
    assert all(near(value, 1) for value in values(response)), response


def test_profiles_of_hours_are_found_next_to_short_ones_of_their_series(shared_server):
    """Profiles of ten seconds with one core, and two profiles of three hours with two cores,
    queried before and after compaction."""
    server = shared_server("--jobs-interval", "1s")
    client = Tenant(server).api("ingest", "read")
    begins = BEGIN + 10 * MINUTE, BEGIN + 5 * HOUR
    for begin in begins:
        push(client, [(begin, 3 * HOUR, 6 * HOUR)])
    push(client, steady(BEGIN, BEGIN + 9 * HOUR, 10 * SECOND, 1))

    def check():
        for begin in begins:
            for at in (
                1 * HOUR,
                2 * HOUR,
                3 * HOUR - 5 * MINUTE,
            ):  # after the start of the long profile
                response = query_range(client, begin + at, begin + at + 5 * MINUTE, step="1m")
                assert (
                    values(response) == 5 * [3] and one_series(response)["total"] == 15 * MINUTE
                ), (
                    at,
                    response,
                )
            response = query_range(
                client, begin + 3 * HOUR, begin + 3 * HOUR + 5 * MINUTE, step="1m"
            )
            assert values(response) == 5 * [1], response
        parts = [
            one_series(query_range(client, BEGIN + i * 30 * MINUTE, BEGIN + (i + 1) * 30 * MINUTE))[
                "total"
            ]
            for i in range(18)
        ]
        assert (
            sum(parts)
            == one_series(query_range(client, BEGIN, BEGIN + 9 * HOUR))["total"]
            == 21 * HOUR
        )

    check()
    compact(server)
    check()


@pytest.mark.parametrize(
    "step, wanted_ms", [(None, 60_000), ("7s", 63_000), ("1m", 60_000), ("10m", 600_000)]
)
def test_the_step_is_at_least_the_interval_of_profiles_without_duration(server, step, wanted_ms):
    client = Tenant(server).api("ingest", "read")
    push(client, [(BEGIN + i * MINUTE, 0, 90 * SECOND) for i in range(60) if not 20 <= i < 40])
    response = query_range(client, BEGIN, BEGIN + HOUR, **({"step": step} if step else {}))
    assert response["step_ms"] == wanted_ms
    (note,) = response["notes"]
    assert note.startswith("40 profiles have no duration") and "usual interval of 60 s" in note
    assert ("step was raised" in note) == (wanted_ms != 600_000 and step != "1m")
    assert all(near(value, 1.5) for value in values(response)), response
    assert one_series(response)["total"] == 40 * 90 * SECOND and near(
        one_series(response)["average"], 1.5
    )
    alone = query_range(client, BEGIN + 19 * MINUTE, BEGIN + 20 * MINUTE, rate="false")
    assert sum(values(alone)) == one_series(alone)["total"] == 90 * SECOND
    assert "no duration" in alone["notes"][0] and "raised from 1 s to 60 s" in alone["notes"][0]
    # A window between two profiles has a part of one. A window in the gap has nothing.
    part = query_range(client, BEGIN + 5 * MINUTE + 10 * SECOND, BEGIN + 5 * MINUTE + 40 * SECOND)
    assert one_series(part)["total"] == 45 * SECOND and one_series(part)["average"] == 1.5
    assert query_range(client, BEGIN + 30 * MINUTE, BEGIN + 31 * MINUTE)["series"] == []


@pytest.mark.parametrize("alternates", [False, True])
def test_a_change_of_the_interval_without_durations_keeps_the_average(server, alternates):
    """Half a core in profiles every 10 s and every 60 s: in sequence, or alternating as from two
    sources."""
    client = Tenant(server).api("ingest", "read")
    distances = [10, 60] * 40 if alternates else [10] * 120 + [60] * 30 + [10] * 60
    at, sent = BEGIN, []
    for distance in distances:
        sent.append((at, 0, distance * SECOND // 2))
        at += distance * SECOND
    push(client, sent)
    for start, end in (
        (BEGIN, BEGIN + 40 * MINUTE),
        (BEGIN + 10 * MINUTE, BEGIN + 30 * MINUTE),
        (BEGIN + 17 * MINUTE, BEGIN + 25 * MINUTE),
    ):
        for step in (None, "2m", "1h"):
            series = one_series(query_range(client, start, end, **({"step": step} if step else {})))
            assert near(series["average"], 0.5) and all(
                near(value, 0.5) for _, value in series["points"]
            ), (start, step, series)


def test_focused_stacks_are_0_where_their_series_has_other_data(server):
    client = Tenant(server).api("ingest", "read")
    profiles = [
        otlp_maker.Profile(
            PERIOD,
            BEGIN + i * 10 * SECOND,
            {("main",): 10 * SECOND, **({("main", "gc"): 10 * SECOND} if i == 3 else {})},
            1,
            PERIOD,
            10 * SECOND,
        )
        for i in range(12)
        if i != 7
    ]
    response = client.post(
        "/v1development/profiles",
        headers={"Content-Type": "application/x-protobuf"},
        body=otlp_maker.Request([({"service.name": "api"}, profiles)]).protobuf(),
    )
    assert response.status == 200, response
    wanted = {i: 1.0 if i == 3 else 0.0 for i in range(12) if i != 7}
    response = query_range(client, BEGIN, BEGIN + 2 * MINUTE, focus="gc", step="10s")
    assert {
        (ms * 10**6 - BEGIN) // 10**10: value for ms, value in one_series(response)["points"]
    } == wanted
    assert near(one_series(response)["average"], 1 / 11)


def test_counter_deltas_are_spread_between_snapshots(server):
    """All steps between two snapshots have the same rate. After a restart of the process, the
    delta covers only the usual interval."""
    client = Tenant(server).api("ingest", "read")
    at = [0, 60, 120, 180, 900, 960]
    for second, value in zip(at, (100, 700, 1300, 1900, 600, 1200)):
        body = make_profile(
            [("alloc_space", "bytes")],
            BEGIN + second * SECOND,
            {("main",): [value]},
            ("space", "bytes"),
        )
        assert client.post("/api/v1/profiles", body=body).status == 200
    for step in ("5s", "20s", "17m"):
        response = query_range(
            client, BEGIN, BEGIN + 1000 * SECOND, query="memory:alloc_space", step=step
        )
        assert all(near(value, 10) for value in values(response)), (step, response)
        series = one_series(response)
        assert (
            series["total"] == 3000
            and series["covered_ms"] == 300_000
            and near(series["average"], 10)
        )
    response = query_range(
        client, BEGIN, BEGIN + 1000 * SECOND, query="memory:alloc_space", step="20s"
    )
    steps = {(ms - BEGIN // 10**6) // 20_000 for ms, _ in one_series(response)["points"]}
    assert steps == set(range(9)) | set(range(42, 48))


def push_snapshots(client, kind, series, service="api"):
    """Sends series, {pod: [(time, value)]}: counters as pprof, gauges as OTLP."""
    if kind == "counter":
        for pod, snapshots in series.items():
            for at, value in snapshots:
                body = make_profile(
                    [("alloc_space", "bytes")], at, {("main",): [value]}, ("space", "bytes")
                )
                query = {"label": [f"service_name={service}", f"pod={pod}"]}
                response = client.post("/api/v1/profiles", query=query, body=body)
                assert response.status == 200, response
        return
    resources = [
        (
            {"service.name": service, "pod": pod},
            [
                otlp_maker.Profile(("inuse_space", "bytes"), at, {("main",): value})
                for at, value in snapshots
            ],
        )
        for pod, snapshots in series.items()
    ]
    response = client.post(
        "/v1development/profiles",
        body=otlp_maker.Request(resources).protobuf(),
        headers={"Content-Type": "application/x-protobuf"},
    )
    assert response.status == 200, response


def test_a_window_of_a_counter_has_a_proportional_part_of_each_delta(shared_server):
    """Windows of any length, also shorter than the interval of the snapshots, add up to the whole
    period. The process restarts in the period, and the snapshots are stored in two hours."""
    server = shared_server("--jobs-interval", "1s")
    client = Tenant(server).api("ingest", "read")
    begin = BEGIN + 17 * SECOND
    first = [(begin + i * MINUTE, 1000 + 6000 * i) for i in range(45)]
    restarted = [(begin + 45 * MINUTE + i * MINUTE, 6000 * (i + 1)) for i in range(60)]
    push_snapshots(client, "counter", {"a": first + restarted})
    memory = "memory:alloc_space:bytes:space:bytes"

    def total(start, end):
        response = query_range(client, start, end, query=memory)
        assert all(near(value, 100) for value in values(response)), response
        series = one_series(response)
        assert near(series["average"], 100) and series["covered_ms"] == (end - start) / 10**6
        return series["total"]

    def merged(start, end):
        _, rows = folded(client, memory, start, end)
        assert rows.keys() <= {("main",)}
        return sum(rows.values())

    def check():
        ends = [BEGIN + 60 * SECOND + i * i * 7 * SECOND for i in range(22)]
        assert [
            abs(merged(*pair) - 100 * (pair[1] - pair[0]) // SECOND) <= 1
            for pair in zip(ends, ends[1:])
        ] == [True] * 21
        assert sum(merged(*pair) for pair in zip(ends, ends[1:])) == merged(ends[0], ends[-1])
        assert total(BEGIN + 100 * SECOND, BEGIN + 400 * SECOND) == 30_000
        for start, length, window in (
            (BEGIN + MINUTE, HOUR, 5 * MINUTE),
            (BEGIN + 30 * MINUTE, HOUR, MINUTE * 13 // 2),
            (BEGIN + 30 * MINUTE, 20 * MINUTE, MINUTE),
            (BEGIN + 44 * MINUTE, 4 * MINUTE, 30 * SECOND),
            (BEGIN + 44 * MINUTE, 90 * SECOND, 7 * SECOND),
        ):
            ends = list(range(start, start + length, window)) + [start + length]
            parts = sum(total(*pair) for pair in zip(ends, ends[1:]))
            assert abs(parts - 100 * length // SECOND) <= len(ends), (window, parts)
            assert abs(total(start, start + length) - 100 * length // SECOND) <= 1

    check()
    compact(server)
    check()


@pytest.mark.parametrize("step_s", [20, 61, 600])
def test_a_clock_that_is_set_back_does_not_look_like_restarts(shared_server, step_s):
    """The snapshots before and after the step are mixed. The process has allocated a GB before,
    which a restart would add. The increase across the step is unknown; windows add up."""
    client = Tenant(shared_server()).api("ingest", "read")
    begin, interval, count = BEGIN + 20 * MINUTE, 15 * SECOND, 160
    moved = [0 if i < count // 2 else step_s * SECOND for i in range(count)]
    snapshots = [(begin + i * interval - moved[i] + i, 10**9 + 15_000 * i) for i in range(count)]
    push_snapshots(client, "counter", {"a": snapshots})
    memory, start, end = "memory:alloc_space:bytes:space:bytes", BEGIN, BEGIN + 70 * MINUTE
    response = query_range(client, start, end, query=memory)
    assert one_series(response)["total"] == 15_000 * (count - 2)
    assert not response.get("notes"), response
    assert max(values(response)) < 2100  # two of 1,000 a second where the time occurs twice
    _, rows = folded(client, memory, start, end)
    assert rows == {("main",): 15_000 * (count - 2)}
    for window in (7 * MINUTE, 97 * SECOND, 25 * SECOND):
        ends = list(range(start, end, window)) + [end]
        parts = [folded(client, memory, *pair)[1] for pair in zip(ends, ends[1:])]
        total = sum(part.get(("main",), 0) for part in parts)
        assert abs(total - 15_000 * (count - 2)) <= len(ends), (window, total)


def test_a_single_snapshot_of_a_large_counter_is_exact_or_refused(server):
    """The sum of all snapshots of the granule exceeds 2^63, but the server adds only those of one
    time."""
    client = Tenant(server).api("ingest", "read")
    types = [("delay", "nanoseconds")]

    def send(second, value):
        body = make_profile(types, BEGIN + second * SECOND, {("main",): [value]}, ("", ""))
        assert client.post("/api/v1/profiles", body).status == 200

    def top(profile):
        return client.get(f"/api/v1/profiles/{profile['id']}", query={"report": "top"})

    for second in range(5):
        send(second, 2**62 + second)
    profiles = client.get(
        "/api/v1/profiles", query={"query": "delay", "start": BEGIN, "end": BEGIN + MINUTE}
    ).json()["data"]
    assert {top(profile).json()["total"] for profile in profiles} == {
        2**62 + second for second in range(5)
    }
    send(4, 2**62 - 6)
    assert sorted(top(profile).json()["total"] for profile in profiles)[-1] == 2**63 - 2
    send(4, 9)
    refused = [top(profile) for profile in profiles if top(profile).status != 200]
    assert [response.status for response in refused] == [413]
    assert "the values add up to more than 2^63" in refused[0].text


def test_counters_of_programs_that_run_for_weeks_can_be_queried(server):
    """The delay of fifty goroutines that have waited for ten days is 4e16 ns; all snapshots of an
    hour together exceed 2^63. Only the increases are added."""
    client = Tenant(server).api("ingest", "read")
    types, waited, gained = [("delay", "nanoseconds")], 50 * 10 * 86400 * 10**9, 50 * 15 * 10**9
    for pod in range(2):
        for i in range(240):
            body = make_profile(
                types, BEGIN + i * 15 * SECOND, {("main",): [waited + i * gained]}, ("", "")
            )
            response = client.post("/api/v1/profiles", body, query={"label": f"pod={pod}"})
            assert response.status == 200, response
    for minutes in (1, 30, 59):
        window = {"start": BEGIN, "end": BEGIN + minutes * MINUTE}
        total = 2 * minutes * 4 * gained
        response = query_range(client, **window, query="delay", step=f"{minutes}m")
        assert one_series(response)["total"] == total
        assert folded(client, "delay", window["start"], window["end"])[1] == {("main",): total}
    for i, value in ((250, 2**61), (251, 0), (252, 2**61), (253, 0), (254, 2**62 - 1)):
        body = make_profile(types, BEGIN + i * 15 * SECOND, {("main",): [value]}, ("", ""))
        assert client.post("/api/v1/profiles", body, query={"label": "pod=0"}).status == 200
    window = {"query": "delay", "start": BEGIN, "end": BEGIN + HOUR + 10 * MINUTE}
    for path in ("query", "query_range"):
        response = client.get(f"/api/v1/{path}", query=window)
        assert response.status == 413 and "the increases add up to" in response.text, response


@pytest.mark.long
def test_counters_of_programs_that_run_for_weeks_can_be_merged(start_server):
    """All snapshots of an hour add up to more than a granule may have, so the day keeps several
    blocks."""
    server = start_server("--jobs-interval", "1s")
    client = Tenant(server).api("ingest", "read")
    types, waited, gained = [("delay", "nanoseconds")], 50 * 10 * 86400 * 10**9, 50 * 15 * 10**9
    for i in range(480):
        body = make_profile(
            types, BEGIN + i * 15 * SECOND, {("main",): [waited + i * gained]}, ("", "")
        )
        assert client.post("/api/v1/profiles", body).status == 200

    def check():
        for minutes in (1, 30, 59, 119):
            window = {"start": BEGIN, "end": BEGIN + minutes * MINUTE}
            total = minutes * 4 * gained
            response = query_range(client, **window, query="delay", step=f"{minutes}m")
            assert one_series(response)["total"] == total
            assert folded(client, "delay", *window.values())[1] == {("main",): total}

    check()
    compact(server)
    check()
    ((count,),) = server.rows("SELECT count(*) FROM block")
    assert count > 1


@pytest.mark.parametrize("interval", [10 * MINUTE, 50 * MINUTE, 2 * HOUR, 5 * HOUR])
def test_infrequent_counters_have_values_in_short_windows(server, interval):
    client = Tenant(server).api("ingest", "read")
    push_snapshots(
        client,
        "counter",
        {"a": [(BEGIN + i * interval, 100 * i * interval // SECOND) for i in range(16)]},
    )
    for start, length in ((11, 1), (99, 2), (25, 10), (61, 35), (49, 100)):
        response = query_range(
            client,
            BEGIN + start * MINUTE,
            BEGIN + (start + length) * MINUTE,
            query="memory:alloc_space",
        )
        series = one_series(response)
        left_ms = (15 * interval - start * MINUTE) // 10**6
        assert near(series["average"], 100) and all(
            near(value, 100) for _, value in series["points"]
        ), (start, series)
        assert series["covered_ms"] == min(left_ms, length * 60_000)


@pytest.mark.parametrize("has_other", [False, True])
def test_a_counter_grows_while_its_snapshots_pause(shared_server, has_other):
    """The process runs on while no snapshot arrives for three hours. The hours add up to the day,
    and a window within the pause has a value, without a warning, also beside another process."""
    server = shared_server()
    client = Tenant(server).api("ingest", "read")
    minutes = [minute for minute in range(0, 12 * 60, 10) if not 5 * 60 < minute < 8 * 60]
    snapshots = [(BEGIN + at * MINUTE, 6000 * (at + 1)) for at in minutes]
    processes = {"a": snapshots}
    if has_other:
        processes["b"] = [(BEGIN + at * MINUTE, 6000 * (at + 1)) for at in range(0, 12 * 60, 10)]
    push_snapshots(client, "counter", processes)
    query = {"query": 'memory:alloc_space:bytes{service_name="api"}', "rate": "auto"}

    def total(begin, end):
        """In minutes; each counter grows by 100 a second."""
        window = {"start": BEGIN + begin * MINUTE, "end": BEGIN + end * MINUTE}
        response = client.get("/api/v1/query_range", query={**query, **window})
        assert response.status == 200 and "perfolio-warning" not in response.headers, response
        series = one_series(response.json())
        assert near(series["average"], 100 * len(processes)), (begin, end, series)
        merged = folded(client, query["query"], window["start"], window["end"])[1]
        assert abs(sum(merged.values()) - series["total"]) <= 1
        return series["total"] / len(processes)

    assert total(0, 660) == 660 * 6000
    assert sum(total(60 * hour, 60 * hour + 60) for hour in range(11)) == 660 * 6000
    for begin, end in ((360, 420), (390, 400), (480, 540), (240, 420), (420, 600)):
        assert total(begin, end) == (end - begin) * 6000


def test_gauges_and_deltas_of_hours_have_the_same_values_in_every_window(shared_server):
    server = shared_server()
    client = Tenant(server).api("ingest", "read")
    times = [BEGIN + 3 * HOUR * i for i in range(8)]
    push_snapshots(client, "gauge", {"a": [(at, 500) for at in times]})
    for at in times:
        body = make_profile(
            [("cpu", "nanoseconds")], at, {("main",): [3 * 10**9]}, ("cpu", "nanoseconds")
        )
        query = {"label": ["service_name=api", "pod=a"]}
        assert client.post("/api/v1/profiles", query=query, body=body).status == 200
    for begin, end in ((0, 20), (0, 1), (1, 2), (3, 4), (4, 6), (5, 19)):
        window = (BEGIN + begin * HOUR, BEGIN + end * HOUR)
        gauge = one_series(query_range(client, *window, query="inuse_space"))
        assert gauge["average"] == 500 and gauge["covered_ms"] == (end - begin) * 3_600_000
        delta = one_series(query_range(client, *window, query="cpu:nanoseconds"))
        assert near(delta["total"], (end - begin) * 10**9), (begin, end, delta)
        assert near(delta["average"], 1 / 3600)


def test_a_gauge_keeps_its_value_until_the_next_snapshot(shared_server):
    """Each pod sends a snapshot every minute, at a different second. Steps of any length include
    the values of all pods."""
    server = shared_server("--jobs-interval", "1s")
    client = Tenant(server).api("ingest", "read")
    push_snapshots(
        client,
        "gauge",
        {
            f"p{pod}": [(BEGIN + i * MINUTE + pod * 17 * SECOND, 1000) for i in range(180)]
            for pod in range(4)
        },
    )

    def check():
        for length in (30 * SECOND, 15 * MINUTE, HOUR, 150 * MINUTE):
            for step in (None, "7s", "2m", "1h"):
                response = query_range(
                    client,
                    BEGIN + 10 * MINUTE,
                    BEGIN + 10 * MINUTE + length,
                    query="inuse_space",
                    **({"step": step} if step else {}),
                )
                assert (
                    set(values(response)) == {4000} and one_series(response)["average"] == 4000
                ), response
                assert (
                    one_series(response)["covered_ms"] == length / 10**6
                    and "notes" not in response
                )
            assert folded(client, "inuse_space", BEGIN + 10 * MINUTE, BEGIN + 10 * MINUTE + length)[
                1
            ] == {("main",): 4000}
        response = query_range(
            client, BEGIN + 10 * MINUTE, BEGIN + HOUR, query="inuse_space", group_by="pod"
        )
        assert all(value == 1000 for series in response["series"] for _, value in series["points"])

    check()
    compact(server)
    check()


def test_averages_of_small_gauges_are_not_rounded(shared_server):
    """27 of 2 snapshots: 13.5, in the points as in the average; groups below 0.5 are not 0."""
    client = Tenant(shared_server("--jobs-interval", "1s")).api("ingest", "read")
    push_snapshots(client, "gauge", {"a": [(BEGIN + i * MINUTE, 13 + i % 2) for i in range(20)]})
    window = {"start": BEGIN, "end": BEGIN + 20 * MINUTE, "query": "inuse_space"}
    for step in ("2m", "20m"):
        series = one_series(query_range(client, **window, step=step))
        assert {value for _, value in series["points"]} == {13.5} and series["average"] == 13.5
    pods = [(BEGIN + i * MINUTE, 1 if i % 5 < 2 else 0) for i in range(20)]
    push_snapshots(client, "gauge", {"b": pods}, "rare")
    series = one_series(
        query_range(client, **{**window, "query": 'inuse_space{pod="b"}'}, step="5m")
    )
    assert {value for _, value in series["points"]} == {0.4} and series["average"] == 0.4


def send_ingest(client, at, value, **more):
    """Sends a value of the application "queue" by /ingest."""
    query = {"from": at // SECOND, "until": at // SECOND + 60, "name": "queue", **more.pop("query")}
    response = client.post("/ingest", query=query, **more)
    assert response.status == 200, response


def send_declared_stacks(client, at, value):
    send_ingest(
        client,
        at,
        value,
        body=f"main {value}\n".encode(),
        query={"units": "samples", "aggregationType": "average"},
    )


def send_pprof(client, at, value, config):
    profile = make_profile([("depth", "count")], at, {("main",): [value]}, ("", ""))
    send_ingest(
        client,
        at,
        value,
        body=form(profile=profile, sample_type_config=config),
        headers=FORM,
        query={"format": "pprof"},
    )


def send_declared_pprof(client, at, value):
    config = b'{"depth": {"units": "objects", "aggregation": "average"}}'
    send_pprof(client, at, value, config)


@pytest.mark.parametrize(
    "send, name",
    [
        (send_declared_stacks, "process_cpu:cpu:nanoseconds:cpu:nanoseconds:gauge"),
        (send_declared_pprof, "depth:depth:count:::gauge"),
    ],
)
def test_a_gauge_that_only_its_sender_declares_is_averaged(shared_server, send, name):
    """Its names do not show the kind, so the kind is stored with the series, also by compaction,
    and is part of the type's name: other senders may send counters or deltas of the same names."""
    server = shared_server("--jobs-interval", "1s")
    client = Tenant(server).api("ingest", "read")
    for i in range(20):
        send(client, BEGIN + i * MINUTE, 1000 + 100 * (i % 2))
    unit = 10**9 // 100 if name.startswith("process_cpu") else 1

    def check():
        window = {"start": BEGIN, "end": BEGIN + HOUR}
        (stored,) = client.get("/api/v1/profile_types", query=window).json()["data"]
        assert (stored["type"], stored["rule"], stored["delta"]) == (name, "mean", False)
        for query in (name, name.removesuffix(":gauge")):
            series = one_series(
                query_range(client, BEGIN, BEGIN + 20 * MINUTE, query=query, step="20m")
            )
            assert series["average"] == 1050 * unit and "total" not in series
            _, rows = folded(client, query, BEGIN, BEGIN + 20 * MINUTE)
            assert rows == {("main",): 1050 * unit}

    check()
    compact(server)
    check()


@pytest.mark.parametrize("count", [1, 2])
def test_gauges_of_two_processes_in_one_series_have_a_warning(server, count):
    """Each of them sends a snapshot a minute, with the same labels: they replace each other."""
    client = Tenant(server).api("ingest", "read")
    for i in range(20):
        for process in range(count):
            send_declared_pprof(client, BEGIN + i * MINUTE + process * 20 * SECOND, 10 + process)
    window = {"start": BEGIN, "end": BEGIN + 20 * MINUTE}
    for path, options in (("query_range", {"step": "1m"}), ("query", {"report": "top"})):
        response = client.get(f"/api/v1/{path}", query={**window, "query": "depth", **options})
        assert response.status == 200, response
        warning = response.headers.get("perfolio-warning", "")
        assert ("several processes in turn" in warning) == (count == 2), (path, warning)


def test_a_counter_continues_when_the_file_of_its_program_is_replaced(server):
    """Go reads the build id of its program from the file, so it changes while the process runs."""
    client = Tenant(server).api("ingest", "read")
    for i in range(4):
        maker = pprof_maker.Maker([("alloc_space", "bytes")])
        mapping = maker.mapping("/usr/bin/app", build_id="abcd" if i < 2 else "")
        location = maker.location([(maker.function("main", "main.go"), 7)], mapping, 0x400010)
        maker.sample([location], [10**9 + i])
        maker.scalars(time=BEGIN + i * MINUTE)
        response = client.post(
            "/api/v1/profiles", maker.bytes(), query={"label": "service_name=replaced"}
        )
        assert response.status == 200, response
    window = {"start": BEGIN, "end": BEGIN + 4 * MINUTE}
    query = 'alloc_space{service_name="replaced"}'
    assert one_series(query_range(client, **window, query=query, step="1m"))["total"] == 3
    merged = client.get("/api/v1/query", query={**window, "query": query, "report": "top"})
    assert merged.json()["total"] == 3, merged


def test_deltas_whose_time_is_the_end_of_the_window_are_in_the_window(server):
    """As Pyroscope's SDK for Node and Go's memory profiles send them."""
    client = Tenant(server).api("ingest", "read")
    config = b'{"busy": {"units": "nanoseconds"}}'
    for minute, cores in ((0, 1), (1, 0), (2, 1)):
        begin = BEGIN + minute * MINUTE
        profile = make_profile(
            [("busy", "nanoseconds")], begin + MINUTE + 7, {("main",): [cores * MINUTE]}, ("", "")
        )
        send_ingest(
            client,
            begin,
            cores,
            body=form(profile=profile, sample_type_config=config),
            headers=FORM,
            query={"format": "pprof"},
        )
    series = one_series(query_range(client, BEGIN, BEGIN + 3 * MINUTE, query="busy", step="1m"))
    assert [round(value, 3) for _, value in series["points"]] == [1, 0, 1], series


def test_go_profiles_of_some_seconds_are_deltas_that_end_at_their_time(server):
    """As /debug/pprof/heap?seconds=60 returns them; its memory in use is a change, no amount."""
    client = Tenant(server).api("ingest", "read")
    maker = pprof_maker.Maker(
        [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_space", "bytes")]
    )
    maker.sample([maker.location([(maker.function("main"), 7)])], [1, 600, -40])
    maker.scalars(
        time=BEGIN + MINUTE, duration=MINUTE, period=524288, period_type=("space", "bytes")
    )
    response = client.post(
        "/api/v1/profiles", maker.bytes(), query={"label": "service_name=seconds"}
    )
    assert response.status == 200, response
    assert "?seconds=N" in response.headers["perfolio-warning"]
    window = {"start": BEGIN, "end": BEGIN + 2 * MINUTE}
    query = 'alloc_space{service_name="seconds"}'
    series = one_series(query_range(client, **window, query=query, step="1m"))
    assert [(at, value) for at, value in series["points"]] == [(BEGIN // 10**6, 10)], series
    types = client.get("/api/v1/profile_types", query=window).json()["data"]
    assert not [one["type"] for one in types if "inuse" in one["type"]]


def test_a_step_of_centuries_does_not_overflow(server):
    """Two profiles without a duration are 291 years apart, so the step is raised to more."""
    client = Tenant(server).api("ingest", "read")
    first, last = "1715-01-01T00:00:00Z", "2007-01-06T00:00:00Z"
    for at in (first, last):
        body = make_profile([("cpu", "nanoseconds")], 0, {("main",): [7]}, ("", ""))
        response = client.post("/api/v1/profiles", body=body, query={"time": at})
        assert response.status == 200, response
    response = query_range(
        client, first, "2007-01-07T00:00:00Z", query="cpu", step=str(106_500 * 86400)
    )
    assert response["step_ms"] > 106_500 * 86_400_000
    assert all("-" not in note for note in response["notes"])
    assert one_series(response)["total"] == 7  # the second one covers the next 291 years


def test_types_of_equal_names_and_different_kinds_are_queried_apart(shared_server):
    """The whole name of each is in the list of types. Five parts are the whole name of a counter,
    and name the type of another kind only where there is no counter."""
    client = Tenant(shared_server("--jobs-interval", "1s")).api("ingest", "read", "share")
    counter = b'{"depth": {"cumulative": true}}'
    gauge = b'{"depth": {"aggregation": "average"}}'
    window = {"start": BEGIN, "end": BEGIN + 10 * MINUTE, "step": "10m"}
    for config in (gauge, counter):
        for i in range(11):
            send_pprof(client, BEGIN + i * MINUTE, 100 + 10 * i, config)
        if config == gauge:
            assert (
                one_series(query_range(client, **window, query="depth:depth:count::"))["average"]
                == 145
            )
    types = client.get("/api/v1/profile_types", query={"start": BEGIN, "end": BEGIN + HOUR}).json()
    names = [one["type"] for one in types["data"]]
    assert names == ["depth:depth:count::", "depth:depth:count:::gauge"]
    assert one_series(query_range(client, **window, query=names[0]))["total"] == 100
    assert one_series(query_range(client, **window, query=names[1]))["average"] == 145
    _, rows = folded(client, names[0], window["start"], window["end"])
    assert rows == {("main",): 100}
    del window["step"]
    response = client.get("/api/v1/query", query={"query": "depth:depth", **window})
    assert response.status == 400 and "2 profile types match" in response.json()["detail"]
    send_pprof(client, BEGIN + 20 * MINUTE, 100, gauge)
    window = {"start": BEGIN, "end": BEGIN + HOUR, "query": names[0]}
    for path in ("query", "query_range"):
        response = client.get(f"/api/v1/{path}", query=window)
        assert "profiles=11," in response.headers["perfolio-statistics"], (path, response)
    response = client.get("/api/v1/query", query={**window, "report": "pprof"})
    share = client.post("/api/v1/shares", body=response.body).json()["id"]
    assert client.get(f"/api/v1/shares/{share}").json()["duration_ns"] == 10 * MINUTE


def test_otlp_counters_without_a_duration_are_not_added_up(shared_server):
    """OTLP since 1.9 states no temporality. As for pprof, allocations of a profile without a
    duration are those since the program's start."""
    client = Tenant(shared_server("--jobs-interval", "1s")).api("ingest", "read")
    profiles = [
        otlp_maker.Profile(("alloc_space", "bytes"), BEGIN + i * MINUTE, {("main",): 1000 + 60 * i})
        for i in range(11)
    ]
    response = client.post(
        "/v1development/profiles",
        body=otlp_maker.Request([({"service.name": "api"}, profiles)]).protobuf(),
        headers={"Content-Type": "application/x-protobuf"},
    )
    assert response.status == 200, response
    response = query_range(client, BEGIN, BEGIN + 10 * MINUTE, query="alloc_space", step="1m")
    assert response["rule"] == "difference" and one_series(response)["total"] == 600


def post_profile(client, service, time_ns, types, samples, duration=0):
    """Sends a profile with samples, [(values, labels)], of one stack."""
    maker = pprof_maker.Maker(types)
    main = maker.location([(maker.function("main", "main.c"), 7)])
    for values, labels in samples:
        maker.sample([main], values, labels)
    maker.scalars(time=time_ns, duration=duration, period=1, period_type=types[-1])
    response = client.post(
        "/api/v1/profiles",
        body=gzip.compress(maker.bytes(), 1),
        query={"label": f"service_name={service}"},
    )
    assert response.status == 200, response


def test_an_empty_snapshot_sets_all_groups_of_its_series_to_0(shared_server):
    """It is a snapshot time at which each group of its series is 0, before and after compaction."""
    server = shared_server("--jobs-interval", "1s")
    client = Tenant(server).api("ingest", "read")
    types, labels = [("inuse_space", "bytes")], [("thread", "t1")]
    for minute in range(30):
        post_profile(
            client,
            "labelled",
            BEGIN + minute * MINUTE,
            types,
            [([100], labels)] if minute != 10 else [],
        )
    for minute in range(20, 30):
        post_profile(client, "plain", BEGIN + minute * MINUTE, types, [([100], [])])
    post_profile(client, "empty", BEGIN, types, [])
    post_profile(client, "empty", BEGIN + MINUTE, types, [])

    def check():
        window = {"start": BEGIN, "end": BEGIN + HOUR, "step": "1h"}
        for more in (
            {"query": 'inuse_space{service_name!="empty"}', "label": "thread="},
            {"query": 'inuse_space{service_name!="empty",thread=""}'},
        ):
            series = one_series(query_range(client, **window, **more))
            assert series["average"] == 100 and series["covered_ms"] == 600_000, (more, series)
        series = one_series(
            query_range(
                client, **window, query='inuse_space{service_name="labelled"}', group_by="thread"
            )
        )
        assert series["labels"] == {"thread": "t1"} and near(
            series["average"], 100 * 29 / 30, 0.0001
        )
        series = one_series(
            query_range(
                client, **window, query='inuse_space{service_name="empty"}', group_by="thread"
            )
        )
        assert series["average"] == 0 and series["covered_ms"] == 120_000

    check()
    compact(server)
    check()


def test_rates_of_series_that_are_profiled_in_turn_have_a_note(shared_server):
    """Each pod uses one core all the time, and is profiled for a part of it."""

    def send(service, covered):
        """covered: per pod the duration, the interval and the offset, in seconds."""
        client = Tenant(shared_server()).api("ingest", "read")
        for pod, (duration, interval, offset) in enumerate(covered):
            begins = range(offset, HOUR // SECOND - duration + 1, interval)
            profiles = [
                steady(BEGIN + at * SECOND, BEGIN + (at + duration) * SECOND, duration * SECOND, 1)
                for at in begins
            ]
            push(client, [one for some in profiles for one in some], service, pod=f"p{pod}")
        response = query_range(client, BEGIN, BEGIN + HOUR, step="1h")
        by_pod = query_range(client, BEGIN, BEGIN + HOUR, step="1h", group_by="pod")
        assert all(near(one["average"], 1) for one in by_pod["series"])
        assert not by_pod.get("notes"), by_pod
        return one_series(response)["average"], response.get("notes", [""])[0]

    average, note = send("turns", [(10, 60, 6 * pod) for pod in range(9)])
    assert average < 3 and "too low" in note and "label that differs" in note
    percent = int(re.search(r"about (\d+) % too low", note)[1])
    assert near(average / (1 - percent / 100), 9, 0.05)
    average, note = send("almost", [(14, 15, 4 * pod) for pod in range(4)])
    assert "too low" in note and near(average, 3.73, 0.02)
    average, note = send("once", [(30, 3600, 30 * pod) for pod in range(10)])
    assert near(average, 1) and "10 series have a single profile" in note
    for covered in (
        [(30, 3600, 60)] * 10,
        [(10, 60, 20)] * 9,  # all at once
        [(10, 10, 0)] * 3,
        [(10, 60, 20)],
    ):
        average, note = send("right", covered)
        assert near(average, len(covered)) and not note


def test_mixed_durations_in_a_series_give_equal_values_in_all_windows(
    shared_server,
):
    """A profile with a duration does not end the period of a preceding one without a duration."""
    server = shared_server("--jobs-interval", "1s")
    client = Tenant(server).api("ingest", "read")
    without = [-60, -50, -40, -30, 5, 65, 75, 135, 145, 205]
    times = [(at, 0) for at in without] + [
        (at, 5) for at in range(-25, 150, 5) if at not in without
    ]
    for at, duration in times:
        post_profile(
            client,
            "mixed",
            BEGIN + at * SECOND,
            [("cpu", "nanoseconds")],
            [([0 if duration else 100], [])],
            duration * SECOND,
        )

    def read(start, end):
        response = query_range(
            client,
            BEGIN + start * SECOND,
            BEGIN + end * SECOND,
            query="process_cpu:cpu",
            step="20s",
            rate="false",
        )
        return dict(map(tuple, one_series(response)["points"]))

    narrow = read(0, 200)
    assert len(narrow) == 10

    def check():
        assert read(0, 200) == narrow
        wide = read(-600, 800)
        assert {at: wide[at] for at in narrow} == narrow

    check()
    compact(server)
    check()


def test_a_series_without_durations_is_found_in_short_windows(shared_server):
    """One series has profiles of ten seconds. The other has a profile without a duration every
    five minutes, and none begins in the short window."""
    server = shared_server("--jobs-interval", "1s")
    client = Tenant(server).api("ingest", "read")
    push(client, steady(BEGIN, BEGIN + HOUR, 10 * SECOND, 1), service="sdk")
    push(
        client,
        [(at, 0, 600 * SECOND) for at in range(BEGIN, BEGIN + HOUR, 5 * MINUTE)],
        service="cron",
    )

    def check():
        for start, end in ((1790, 1870), (1810, 1870), (0, 3300), (2110, 2399)):
            window = BEGIN + start * SECOND, BEGIN + end * SECOND
            by_service = query_range(client, *window, group_by="service_name")["series"]
            averages = {
                series["labels"]["service_name"]: series["average"] for series in by_service
            }
            assert near(averages["cron"], 2) and near(averages["sdk"], 1), (start, end, averages)
            assert near(one_series(query_range(client, *window))["average"], 3), (start, end)

    check()
    compact(server)
    check()


def test_integer_values_of_groups_add_up_in_short_steps(server):
    """A hundred pods whose values round up in the same step, and two pods that alternate as the
    largest."""
    client = Tenant(server).api("ingest", "read")
    for pod in range(100):
        push(
            client,
            [(BEGIN + i * MINUTE, MINUTE, 1) for i in range(60)],
            service="even",
            pod=f"p{pod:02}",
        )
    for pod in range(2):
        push(
            client,
            [(BEGIN + i * MINUTE, MINUTE, 3 if i % 2 == pod else 2) for i in range(60)],
            service="turns",
            pod=f"p{pod}",
        )

    def read(service, step, **more):
        return query_range(
            client,
            BEGIN,
            BEGIN + HOUR,
            query=f'{OTLP_CPU}{{service_name="{service}"}}',
            step=step,
            rate="false",
            **more,
        )

    for step in ("1s", "5s", "7s", "60s", "1h"):
        for service, wanted in (("even", 60), ("turns", 150)):
            response = read(service, step, group_by="pod")
            assert {series["total"] for series in response["series"]} == {wanted}, (step, service)
            assert (
                min(value for series in response["series"] for _, value in series["points"]) >= 0
            ), (step, service)
            sums = {}
            for series in response["series"]:
                for at, value in series["points"]:
                    sums[at] = sums.get(at, 0) + value
            assert sums == dict(map(tuple, one_series(read(service, step))["points"])), (
                step,
                service,
            )
        (rest,) = [
            series
            for series in read("even", step, group_by="pod", limit=40)["series"]
            if "other_count" in series
        ]
        assert rest["total"] == 3600 and min(value for _, value in rest["points"]) >= 0, step


def test_the_others_have_the_averages_of_their_own_series(shared_server):
    """One pod runs the whole hour, two jobs run for three minutes each. The sum of the jobs is the
    same as "other" beside the pod and selected alone."""
    client = Tenant(shared_server()).api("ingest", "read")
    for pod, begin, length in (("big", 0, 60), ("job0", 20, 3), ("job1", 40, 3)):
        begin, end = BEGIN + begin * MINUTE, BEGIN + (begin + length) * MINUTE
        push(client, steady(begin, end, 10 * SECOND, 1 if pod == "big" else 0.8), pod=pod)
        push_snapshots(client, "gauge", {pod: [(at, 10**9) for at in range(begin, end, MINUTE)]})
    for query in (OTLP_CPU, "inuse_space"):
        for step in ("10s", "5m", "1h"):
            window = {"start": BEGIN, "end": BEGIN + HOUR, "step": step}
            beside = query_range(client, query=query, group_by="pod", limit=1, **window)
            assert beside["series"][0]["labels"] == {"pod": "big"}
            other = beside["series"][1]
            alone = one_series(query_range(client, query=query + '{pod!="big"}', **window))
            assert other.pop("other_count") == 2
            assert other == alone, (query, step)
            assert near(other["average"], 0.8 if query == OTLP_CPU else 10**9)


def test_a_gap_of_an_infrequent_gauge_stays_a_gap_in_short_windows(server):
    """A heap profile about every ten minutes, and then none for an hour."""
    client = Tenant(server).api("ingest", "read")
    push_snapshots(
        client,
        "gauge",
        {
            "job": [
                (BEGIN + at * SECOND, 1000)
                for at in (-3137, -2504, -1904, -1227, -627, 2973, 3501, 4101, 4701, 5394)
            ]
        },
    )
    wide = one_series(
        query_range(
            client, BEGIN - 20 * MINUTE, BEGIN + 20 * MINUTE, query="inuse_space", step="10s"
        )
    )
    assert max(at for at, _ in wide["points"]) < BEGIN // 10**6
    assert (
        query_range(client, BEGIN, BEGIN + 61 * SECOND, query="inuse_space", step="10s")["series"]
        == []
    )


def test_an_infrequent_gauge_keeps_its_value_next_to_frequent_ones(shared_server):
    """Three pods have a snapshot every minute. A job has one every hour, valid until the next."""
    server = shared_server("--jobs-interval", "1s")
    client = Tenant(server).api("ingest", "read")
    series = {
        f"p{pod}": [(BEGIN + i * MINUTE + pod * 17 * SECOND, 1000) for i in range(420)]
        for pod in range(3)
    }
    series["job"] = [
        (BEGIN + hour * HOUR + 20 * MINUTE + hour % 2 * 10 * SECOND, 500) for hour in range(7)
    ]
    push_snapshots(client, "gauge", series)

    def check():
        for begin, length in (
            (BEGIN + HOUR, 5 * HOUR),
            (BEGIN + HOUR, 3 * HOUR),
            (BEGIN + 2 * HOUR, 15 * MINUTE),
        ):
            for step in (None, "2m", "1h"):
                response = query_range(
                    client,
                    begin,
                    begin + length,
                    query="inuse_space",
                    **({"step": step} if step else {}),
                )
                assert (
                    set(values(response)) == {3500} and one_series(response)["average"] == 3500
                ), response

    check()
    compact(server)
    check()


def test_deleted_snapshots_do_not_extend_into_a_window(server):
    """The result is the same before and after a merge removes the deleted profiles."""
    client = Tenant(server).api("ingest", "read", "admin")
    push_snapshots(client, "gauge", {"a": [(BEGIN + i * 15 * SECOND, 1000) for i in range(41)]})
    ends = {"start": BEGIN + 300 * SECOND, "end": BEGIN + 520 * SECOND}
    response = client.delete("/api/v1/profiles", query={"query": '{service_name="api"}', **ends})
    assert response.status in (200, 202), response
    for start in (310, 320, 345):
        response = query_range(
            client, BEGIN + start * SECOND, BEGIN + 500 * SECOND, query="inuse_space"
        )
        assert response["series"] == [], response
    series = one_series(
        query_range(client, BEGIN + 270 * SECOND, BEGIN + HOUR, query="inuse_space")
    )
    assert series["average"] == 1000 and series["covered_ms"] == (300 - 270 + 615 - 525) * 1000


def test_gauges_of_successive_pods_are_not_added_up(shared_server):
    """A new pod replaces the previous one every half hour for a day, except for one hour without a
    pod. Every step and window has the value of one pod."""
    server = shared_server("--jobs-interval", "1s")
    client = Tenant(server).api("ingest", "read")
    pods = {
        f"p{i}": [(BEGIN + i * 30 * MINUTE + j * MINUTE, 1000 + 10 * (i % 2)) for j in range(30)]
        for i in range(48)
        if i not in (20, 21)
    }
    push_snapshots(client, "gauge", pods)

    def check():
        for start, length in (
            (BEGIN, DAY),
            (BEGIN + 2 * HOUR, 3 * HOUR),
            (BEGIN + 25 * MINUTE, 10 * MINUTE),
            (BEGIN + 9 * HOUR, 3 * HOUR),
        ):
            averages = set()
            for step in (None, "1m", "10m", "1h", "3h", "1d"):
                if step == "1m" and length == DAY:
                    continue
                response = query_range(
                    client,
                    start,
                    start + length,
                    query="inuse_space",
                    **({"step": step} if step else {}),
                )
                assert all(1000 <= value <= 1010 for value in values(response)), (
                    start,
                    step,
                    response,
                )
                averages.add(one_series(response)["average"])
            assert len(averages) == 1, (start, averages)
            _, rows = folded(client, "inuse_space", start, start + length)
            assert near(rows["main",], *averages, 0.001), (start, rows, averages)
        series = one_series(query_range(client, BEGIN, BEGIN + DAY, query="inuse_space", step="1d"))
        assert series["covered_ms"] == 23 * 3_600_000 and near(series["average"], 1005, 0.0001)
        assert series["partial"] == [[BEGIN // 10**6, 23 * 3_600_000]]

    check()
    compact(server)
    check()


def test_an_infrequent_series_does_not_set_the_step_of_the_others(server):
    """The other series have a profile every minute, without and with a duration."""
    client = Tenant(server).api("ingest", "read")
    push(client, [(BEGIN + hour * HOUR, 0, HOUR) for hour in range(4)], pod="rare")
    for pod in "abc":
        push(client, [(BEGIN + i * MINUTE, 0, 90 * SECOND) for i in range(240)], pod=pod)
        push(client, steady(BEGIN, BEGIN + 4 * HOUR, MINUTE, 2), service="web", pod=pod)
    push(client, [(BEGIN + hour * HOUR, 0, HOUR) for hour in range(4)], service="web", pod="rare")
    for service, step, wanted_ms, cores in (
        ("api", None, 60_000, 5.5),
        ("api", "7s", 63_000, 5.5),
        ("web", "20s", 20_000, 7),
    ):
        response = query_range(
            client,
            BEGIN,
            BEGIN + 4 * HOUR,
            query=f'{OTLP_CPU}{{service_name="{service}"}}',
            **({"step": step} if step else {}),
        )
        assert response["step_ms"] == wanted_ms and all(
            near(value, cores) for value in values(response)
        ), response
        (note,) = response["notes"]
        assert (
            "1 series has a longer interval than the step, up to 3600 s" in note
            and "series, up to 3600 s" in note
        )
        assert ("raised" in note) == (step == "7s")


def test_statistics_count_groups_that_are_read_twice_once(shared_server):
    """With 10,000 steps the values of about 50 groups fit in memory, so the query reads the
    largest of 150 groups again. The blocks are merged first, because a merge changes the number
    of bytes read."""
    server = shared_server("--jobs-interval", "1s")
    client = Tenant(server).api("ingest", "read")
    for pod in range(150):
        push(
            client,
            [(BEGIN + i * MINUTE, MINUTE, (pod + 1) * MINUTE) for i in range(10)],
            pod=f"p{pod:03}",
        )
    compact(server)
    window = BEGIN, BEGIN + 10_000 * SECOND
    for focus in ({}, {"focus": "main"}):
        all_groups = query_range(client, *window, step="1s", group_by="pod", limit=200, **focus)
        largest = query_range(client, *window, step="1s", group_by="pod", limit=1, **focus)
        assert largest["group_count"] == 150 and largest["series"][0]["labels"] == {"pod": "p149"}
        for name in ("profiles", "rows", "granules", "bytes"):
            assert largest["statistics"][name] == all_groups["statistics"][name], name


@pytest.mark.parametrize("endpoint", ["pprof", "otlp"])
def test_a_profile_without_a_time_ends_at_its_arrival(server, endpoint):
    client = Tenant(server).api("ingest", "read")
    if endpoint == "otlp":
        push(client, [(0, 10 * SECOND, 25 * SECOND)])
    else:
        body = make_profile(CPU, 0, {("main",): [1, 25 * SECOND]}, PERIOD, 10 * SECOND)
        assert client.post("/api/v1/profiles", body=body).status == 200
    response = query_range(client, "now-1m", "now", query="process_cpu:cpu:nanoseconds", step="1s")
    series = one_series(response)
    assert (
        series["total"] == 25 * SECOND
        and near(series["average"], 2.5)
        and series["covered_ms"] == 10_000
    )


@pytest.mark.parametrize("seed", rest_long(range(6)))
def test_the_sum_over_all_steps_equals_the_total(shared_server, seed):
    """Random intervals, durations, offsets, gaps and steps, before and after compaction."""
    rng = random.Random(seed)
    server = shared_server("--jobs-interval", "1s")
    client = Tenant(server).api("ingest", "read")
    sent, load = [], {}
    for pod in "abcd":
        load[pod] = rng.randrange(1, 4000) / 1000
        at = BEGIN + rng.randrange(HOUR)
        duration = rng.choice([1, 10, 10, 15, 60, 300]) * SECOND + rng.choice(
            [0, rng.randrange(SECOND)]
        )
        profiles = []
        while at < BEGIN + 5 * HOUR and len(profiles) < 400:
            profiles.append((at, duration, round(load[pod] * duration)))
            at += duration + rng.choice([0, 0, rng.randrange(duration // 300)])
            if rng.random() < 0.02:
                at += rng.randrange(20 * duration)
            if rng.random() < 0.02:
                duration = rng.choice([5, 10, 30]) * SECOND
        push(client, profiles, pod=pod)
        sent += profiles
    total = sum(value for _, _, value in sent)

    def check():
        _, rows = folded(client, OTLP_CPU, BEGIN - HOUR, BEGIN + 20 * HOUR)
        assert sum(rows.values()) == total
        averages = []
        for _ in range(12):
            step = rng.choice([rng.randrange(7000, 7_000_000) / 1000, 10, 60, 3600, 7200])
            start = BEGIN - rng.randrange(1, HOUR)
            response = query_range(
                client, start, BEGIN + 20 * HOUR, step=f"{max(step, 7):.3f}", rate="false"
            )
            assert sum(values(response)) == one_series(response)["total"] == total, step
            response = query_range(
                client, start, BEGIN + 20 * HOUR, step=f"{max(step, 7):.3f}", group_by="pod"
            )
            for series in response["series"]:
                cores = load[series["labels"]["pod"]]
                assert all(near(value, cores) for _, value in series["points"]), (
                    step,
                    series["labels"],
                )
                assert near(series["average"], cores)
            averages.append(
                one_series(
                    query_range(client, start, BEGIN + 20 * HOUR, step=f"{max(step, 7):.3f}")
                )["average"]
            )
        assert near(min(averages), max(averages), 0.005)

    check()
    compact(server)
    check()
