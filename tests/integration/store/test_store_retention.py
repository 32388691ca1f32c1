"""Retention rules: how long a team keeps which profiles.

Queries do not read a profile after the time that its rule sets, and the server removes it from the
objects. Results equal a recomputation without expired profiles (tests/oracle/store_oracle.py),
before and after merges.
"""

import random
import re
import time

import pytest

from conftest import rest_long
from people import Tenant
from test_cli import cli  # noqa: F401
from test_store import (
    CPU,
    CPU_NAMES,
    HEAP,
    HEAP_NAMES,
    HOUR,
    MATCHERS,
    NAMES,
    compact,
    folded,
    is_unknown,
    make_profile,
    make_sources,
    objects_of,
    pprof_maker,
    random_selector,
    rows_of,
    send,
    store_oracle,
    until,
)
from test_store_check import verify
from test_store_deletion import ALL, delete, age_objects, push

DAY = 24 * HOUR
MINUTE = 60 * 10**9


def keep(client, selector, duration, **more):
    response = client.post("/api/v1/retention", json={"query": selector, "keep": duration, **more})
    assert response.status == 200, response
    return response.json()


def age_of(time_ns):
    """The duration for a rule under which profiles that begin before time_ns are expired."""
    return f"{(time.time_ns() - time_ns) // 10**9}s"


def rules_of(client):
    return [
        (one["position"], one["query"], one["keep_s"])
        for one in client.get("/api/v1/retention").json()["rules"]
    ]


def begin_of_day(days_ago):
    return (time.time_ns() // DAY - days_ago) * DAY


class Team:
    """A team with its rules, and an oracle with the profiles that they keep."""

    def __init__(self, server):
        self.client, self.oracle = (
            Tenant(server).api("ingest", "read", "admin"),
            store_oracle.Oracle(),
        )
        self.rules = []  # (selector, matches, cutoff_ns)

    def set(self, name, matcher, cutoff_ns, first=False):
        selector, matches = matcher
        self.set_match(
            name + selector,
            lambda kind, labels: name in ("", kind) and matches(labels),
            cutoff_ns,
            first,
        )

    def set_match(self, selector, matches, cutoff_ns, first=False):
        """matches(type, labels)."""
        keep(self.client, selector, age_of(cutoff_ns), **({"position": 1} if first else {}))
        known = [one[0] for one in self.rules]
        place = known.index(selector) if selector in known else len(known)
        del self.rules[place : place + 1]
        self.rules.insert(0 if first else place, (selector, matches, cutoff_ns))

    def expire(self):
        def is_past(one):
            kind, labels, time_ns, *_ = one
            cutoff_ns = next((rule[2] for rule in self.rules if rule[1](kind, labels)), 0)
            return time_ns < cutoff_ns

        self.oracle.profiles = [one for one in self.oracle.profiles if not is_past(one)]

    def check_unknown(self, response, name, start, end):
        assert is_unknown(response, self.oracle, name, (start, end))

    def check(self, rng, begin, rounds):
        for _ in range(rounds):
            name = rng.choice(NAMES)
            selector, matches = rng.choice(MATCHERS)
            start = begin - HOUR + rng.randrange(14 * HOUR)
            end = start + rng.choice([1, MINUTE, HOUR, 3 * HOUR, 20 * HOUR])
            response = self.client.get(
                "/api/v1/query",
                query={"query": name + selector, "start": start, "end": end, "report": "folded"},
            )
            if response.status == 404 or (
                self.oracle.lacks(name, start, end) and store_oracle.rule_of(name) == "sum"
            ):
                self.check_unknown(response, name, start, end)
                continue
            assert response.status == 200, response
            rows = {
                tuple(line.rpartition(" ")[0].split(";")): int(line.rpartition(" ")[2])
                for line in response.text.splitlines()
            }
            assert rows == self.oracle.merge(name, matches, start, end), (
                name,
                selector,
                start,
                end,
            )
        listed = self.client.get(
            "/api/v1/profiles",
            query={"query": ALL, "start": begin, "end": begin + DAY, "limit": 10000},
        ).json()["data"]
        assert len(listed) == len(self.oracle.listed(lambda *_: True, begin, begin + DAY))


@pytest.mark.long
@pytest.mark.parametrize("seed", rest_long(range(3)))
def test_results_equal_a_recomputation_without_expired_profiles(start_server, seed):
    rng = random.Random(seed)
    server = start_server("--jobs-interval", "1s")
    team = Team(server)
    sources = make_sources(rng)
    begin = begin_of_day(9)
    # Expired profiles must stay expired, because a merge may have removed them: each rule keeps
    # less than those before.
    cutoffs = iter(
        sorted(begin + rng.randrange(6 * 12) * 10 * MINUTE + 5 * MINUTE for _ in range(8))
    )
    for number in range(4):
        # Profiles begin in the first half of each ten minutes, and rules are due in the second.
        for _ in range(40):
            slot = begin + rng.randrange(6 * 12) * 10 * MINUTE
            send(team.client, team.oracle, rng.choice(sources), slot + rng.randrange(5 * MINUTE))
        if number % 2:
            compact(server)
        team.set(
            rng.choice(["", "", *NAMES]),
            rng.choice(MATCHERS[1:]),
            next(cutoffs),
            rng.random() < 0.5,
        )
        team.expire()
        team.set_match(*random_selector(rng, ("!=", "=~", "!~")), next(cutoffs), rng.random() < 0.5)
        team.expire()
        team.check(rng, begin, 60)
    compact(server)
    team.check(rng, begin, 60)
    # Some rules expire the whole day: the block is rewritten without the profiles they select.
    for matcher in rng.sample(MATCHERS[1:], 2):
        team.set("", matcher, begin + 2 * DAY, first=True)
    team.expire()
    team.check(rng, begin, 60)
    rows = sum(len(one[3]) for one in team.oracle.profiles)
    until(
        lambda: age_objects(server)
        and sum(
            rows_of(server, "SELECT sum(row_count)::bigint FROM block WHERE " "swapped_at IS NULL")
            - {None}
        )
        == rows,
        "a block has expired rows",
    )
    team.check(rng, begin, 60)
    server.stop()
    server.start()
    team.check(rng, begin, 30)


class Totals(Team):
    """A team whose rules keep totals longer than any profile. Rules are added in the order of their
    cutoffs, and an earlier rule takes precedence."""

    def set_totals(self, matcher, cutoff_ns):
        selector, matches = matcher
        keep(self.client, selector or ALL, age_of(cutoff_ns), totals="300d")
        self.rules.append((matches, cutoff_ns))

        def until_of(kind, labels):
            return (
                next((cutoff_ns for matches, cutoff_ns in self.rules if matches(labels)), 0)
                // HOUR
                * HOUR
            )

        self.oracle.totals_until = until_of

    def check_unknown(self, response, name, start, end):
        """Reduced hours have a type at any time between the first and the last profile, so a window
        in between can also give an empty result."""
        assert response.status in (200, 404), response
        assert (
            response.status == 404 or self.oracle.merge(name, lambda labels: True, start, end) == {}
        )

    def plot(self, rng, begin, rounds):
        for _ in range(rounds):
            name, (selector, matches) = rng.choice(NAMES), rng.choice(MATCHERS)
            start = begin + rng.randrange(-1, 7) * HOUR + rng.choice([0, 0, 1700 * 10**9])
            step = rng.choice([10 * MINUTE, HOUR, 90 * MINUTE, 3 * HOUR])
            end = start + rng.randrange(1, 5) * step
            response = self.client.get(
                "/api/v1/query_range",
                query={
                    "query": name + selector,
                    "start": start,
                    "end": end,
                    "step": f"{step // 10**9}s",
                    "group_by": "pod",
                },
            )
            expected = self.oracle.over_time(name, matches, start, end, step, ["pod"])
            if response.status == 404 or (self.oracle.lacks(name, start, end) and not expected):
                self.check_unknown(response, name, start, end)
                continue
            assert response.status == 200, response
            found = {
                (one["labels"]["pod"],): {
                    (when * 10**6 - start) // step: value for when, value in one["points"]
                }
                for one in response.json()["series"]
            }
            assert store_oracle.are_equal(found, expected), (
                name,
                selector,
                start,
                end,
                step,
                found,
                expected,
            )


@pytest.mark.long
@pytest.mark.parametrize("seed", rest_long(range(3)))
def test_hours_with_totals_only_are_returned_whole_or_omitted(start_server, seed):
    """Merges and plots of whole hours do not change. An hour that the window cuts is omitted, with
    a warning."""
    rng = random.Random(seed)
    server = start_server("--jobs-interval", "1s")
    team, sources = Totals(server), make_sources(rng)
    begin = begin_of_day(9)
    for number in range(3):
        for _ in range(70):
            slot = begin + rng.randrange(6 * 12) * 5 * MINUTE
            send(team.client, team.oracle, rng.choice(sources), slot + rng.randrange(5 * MINUTE))
        if number < 2:
            team.set_totals(MATCHERS[1 + number], begin + (3 + 2 * number) * HOUR + 30 * MINUTE)
        team.check(rng, begin, 50)
        team.plot(rng, begin, 30)
        if number:
            compact(server)
            team.check(rng, begin, 50)
            team.plot(rng, begin, 30)
    team.set_totals(("", lambda labels: True), begin + 2 * DAY)
    team.check(rng, begin, 60)
    until(lambda: is_reduced(server), "a block is not reduced")
    team.check(rng, begin, 100)
    team.plot(rng, begin, 60)
    assert verify(server)["problems"] == []


def is_reduced(server):
    """Whether the current rules have been applied to all blocks."""
    return not rows_of(
        server,
        "SELECT 1 FROM block WHERE swapped_at IS NULL AND retention_key <> "
        "retention_key(tenant_id, 0)",
    ) and not rows_of(server, "SELECT 1 FROM segment")


def count_rows(server):
    return int(min(rows_of(server, "SELECT sum(row_count) FROM block WHERE swapped_at IS NULL")))


def totals_and_cut(response):
    return [
        int(number)
        for number in re.search(
            r"totals=(\d+), cut=(\d+)", response.headers["perfolio-statistics"]
        ).groups()
    ]


def test_windows_of_hours_with_totals_only_add_up(shared_server):
    """The rule changes no result of counters and gauges, also not across the edges of hours. A
    delta that extends beyond its hour counts in the hour in which it begins."""
    server = shared_server("--jobs-interval", "1s")
    client = Tenant(server).api("ingest", "read", "admin")
    begin = begin_of_day(9)
    cpu, gained, used = "cpu", "alloc_space", "inuse_space"
    for i in range(13):
        at = begin + 5 * MINUTE + i * 30 * MINUTE
        values = [1000 * i, 1000 if i % 3 == 0 else 0]
        for types, row, duration in ((HEAP, values, 0), ([CPU[1]], [1000], 30 * MINUTE)):
            body = make_profile(types, at, {("main",): row}, types[-1], duration)
            response = client.post("/api/v1/profiles", body=body, query={"label": "pod=a"})
            assert response.status == 200, response

    def windows(hours):
        return [(begin + i * HOUR, begin + (i + hours) * HOUR) for i in range(0, 6, hours)]

    def merged(name, hours):
        return [folded(client, name, *window)[1].get(("main",), 0) for window in windows(hours)]

    def over_time(name, hours, step="1h"):
        series = [
            client.get(
                "/api/v1/query_range",
                query={"query": name, "start": start, "end": end, "step": step},
            ).json()["series"][0]
            for start, end in windows(hours)
        ]
        return [one.get("total", one.get("average")) for one in series]

    def results():
        return [
            find(name, hours)
            for name in (gained, used)
            for find in (merged, over_time)
            for hours in (1, 2, 6)
        ] + [over_time(name, 6, "10m") for name in (gained, used)]

    before = results()
    assert sum(merged(gained, 1)) == merged(gained, 6)[0]

    def check():
        assert results() == before
        for find in (merged, over_time):
            assert find(cpu, 1) == [2000] * 6 and find(cpu, 6) == [12000]

    keep(client, ALL, "1d", totals="300d")
    check()
    compact(server)
    until(lambda: is_reduced(server), "a block is not reduced")
    check()


@pytest.mark.parametrize(
    "interval_s, duration_s, offset_s, notes",
    [
        (86400, 600, 2 * 3600 + 58 * 60, 0),  # one profile a night, beyond its hour
        (900, 900, 880, 0),
        (60, 60, 44, 0),
        (660, 660, 600, 1),  # does not divide an hour
    ],
)
def test_rates_of_hours_with_totals_only_stay(server, interval_s, duration_s, offset_s, notes):
    """One busy core is one core before and after the rule. An earlier version returned five cores
    in the first case."""
    client = Tenant(server).api("ingest", "read", "admin")
    begin, step = begin_of_day(9), 10**9
    days = 3 if interval_s == 86400 else 1
    last = days * 86400 if days > 1 else 6 * 3600
    for at in range(offset_s, last, interval_s):
        body = make_profile(
            [CPU[1]],
            begin + at * step,
            {("main",): [duration_s * step]},
            ("cpu", "nanoseconds"),
            duration_s * step,
        )
        assert client.post("/api/v1/profiles", body=body, query={"label": "pod=a"}).status == 200

    def result():
        query = {"query": "cpu", "start": begin, "end": begin + days * DAY, "step": "1h"}
        return client.get("/api/v1/query_range", query={**query, "rate": "true"}).json()

    assert result()["series"][0]["average"] == pytest.approx(1)
    keep(client, ALL, "1d", totals="300d")
    totals = result()
    if notes:
        assert "may be too high" in totals["notes"][0], totals
    else:
        assert totals["series"][0]["average"] == pytest.approx(1) and "notes" not in totals
        values = [value for _, value in totals["series"][0]["points"] if value]
        assert values[1:-1] == pytest.approx([1] * len(values[1:-1])), values


@pytest.mark.parametrize(
    "interval_s, offset_s", [(3600, 3540), (1800, 1740), (600, 540), (660, 600)]
)
def test_rates_of_totals_without_durations_stay(server, interval_s, offset_s):
    """In an earlier version, the first hour of a window had 60 times the rate, and the first hour
    after those with totals only had no value."""
    client = Tenant(server).api("ingest", "read", "admin")
    begin = (time.time_ns() // HOUR - 8) * HOUR
    for at in range(offset_s, 7 * 3600, interval_s):
        query = [("label", "pod=a"), ("time", str(begin + at * 10**9))]
        body = f"main {interval_s // 2}".encode()
        assert client.post("/api/v1/profiles", body=body, query=query).status == 200

    def result(first, last):
        query = {"start": begin + first * HOUR, "end": begin + last * HOUR, "step": "1h"}
        return client.get(
            "/api/v1/query_range",
            query={**query, "query": "process_cpu:samples", "rate": "true"},
        ).json()

    keep(client, ALL, "3h30m", totals="300d")  # hours 0 to 3 have totals only
    for first, last in ((0, 4), (1, 4), (2, 4), (0, 6), (3, 6)):
        found = result(first, last)
        is_noted = "may be too high" in found["notes"][0]
        if is_noted:
            assert interval_s == 660, found  # it does not divide an hour
            continue
        assert found["series"][0]["average"] == pytest.approx(0.5), (first, last, found)
        for _, value in found["series"][0]["points"]:
            assert value == pytest.approx(0.5), (first, last, found)


@pytest.mark.long
def test_reduced_hours_keep_no_profiles_sample_labels_or_parts(start_server):
    server = start_server("--jobs-interval", "1s")
    tenant = Tenant(server)
    client = tenant.api("ingest", "read", "admin")
    begin = begin_of_day(9)
    for hour in range(4):
        for i in range(50):
            labels = [("thread", f"t{i}")]
            maker = pprof_maker.Maker(CPU)
            where = maker.location([(maker.function("main", "main.c"), 1)])
            maker.sample([where], [1, 10], labels)
            maker.scalars(
                time=begin + hour * HOUR + i * MINUTE,
                duration=10**9,
                period=1,
                period_type=("cpu", "nanoseconds"),
            )
            assert (
                client.post("/api/v1/profiles", body=maker.bytes(), query={"label": "pod=a"}).status
                == 200
            )
    compact(server)
    keep(client, '{pod="a"}', "3d", totals="300d")
    day = {"query": CPU_NAMES[0], "start": begin, "end": begin + DAY}

    def check():
        response, rows = folded(client, CPU_NAMES[0], begin, begin + DAY)
        assert rows == {("main",): 200} and "perfolio-warning" not in response.headers
        assert totals_and_cut(response)[0] >= 4 and totals_and_cut(response)[1] == 0
        for start, end, value, cut in (
            (30 * MINUTE, 3 * HOUR, 100, 1),
            (HOUR + 1, 2 * HOUR - 1, 0, 1),
            (HOUR, 3 * HOUR + MINUTE, 100, 1),
            (5 * MINUTE, 4 * HOUR - 1, 100, 2),
        ):
            for _ in range(2):  # the second time from the cache
                response, rows = folded(client, CPU_NAMES[0], begin + start, begin + end)
                assert sum(rows.values()) == value, (start, end)
                assert " left out: only totals" in response.headers["perfolio-warning"]
                assert totals_and_cut(response)[1] >= cut
        assert client.get("/api/v1/profiles", query=day).json()["data"] == []
        response = client.get(
            "/api/v1/query", query={**day, "label": "thread=t1", "report": "folded"}
        )
        assert (
            response.text == ""
            and "labels of samples are not" in response.headers["perfolio-warning"]
        )
        plot = client.get("/api/v1/query_range", query={**day, "step": "1h"}).json()
        assert [value for _, value in plot["series"][0]["points"]] == 4 * [50]
        for start, end in (
            (begin, begin + DAY),
            (begin - 7 * MINUTE - 1, begin + DAY + 3 * MINUTE),
        ):
            response = client.get("/api/v1/query_range", query={**day, "start": start, "end": end})
            assert (
                "perfolio-warning" not in response.headers
                and response.json()["step_ms"] == 3_600_000
            ), response
            assert response.json()["series"][0]["points"] == [
                [(begin + hour * HOUR) // 10**6, 50] for hour in range(4)
            ]
        plot = client.get("/api/v1/query_range", query={**day, "step": "10m"}).json()
        assert plot["series"] == [] and plot["statistics"]["cut"] >= 4
        plot = client.get(
            "/api/v1/query_range", query={**day, "step": "10m", "focus": "main"}
        ).json()
        assert plot["series"] == []

    check()
    until(lambda: is_reduced(server), "a block is not reduced")
    check()
    rows = count_rows(server)
    assert 8 <= rows < 40  # of two types, with 50 profiles in an hour
    # A deletion of a part of an hour removes all that the block has of the hour.
    delete(client, '{pod="a"}', begin + HOUR + MINUTE, begin + HOUR + 2 * MINUTE)
    left = folded(client, CPU_NAMES[0], begin, begin + DAY)[1]
    assert 150 <= left["main",] < 200
    until(lambda: count_rows(server) < rows, "a deleted hour is left")
    assert folded(client, CPU_NAMES[0], begin, begin + DAY)[1] == left
    keep(client, '{pod="a"}', "3d", totals="5d")
    assert folded(client, CPU_NAMES[0], begin, begin + DAY)[1] == {}
    until(lambda: age_objects(server) and not blocks_of(server, tenant), "expired totals are left")
    assert verify(server)["problems"] == []


def test_a_warning_reports_that_labels_of_samples_are_not_kept(shared_server):
    """The warning appears if a query uses a label that the series does not have, and only if labels
    were lost."""
    client = Tenant(shared_server("--jobs-interval", "1s")).api("ingest", "read", "admin", "share")
    begin = begin_of_day(9)
    for time_ns in (begin + 5 * MINUTE, time.time_ns() - 600 * 10**9):
        maker = pprof_maker.Maker(CPU)
        where = maker.location([(maker.function("main", "main.c"), 1)])
        maker.sample([where], [5, 50], [("region", "eu")])
        maker.sample([where], [7, 70], [("region", "us")])
        maker.scalars(time=time_ns, duration=10**9, period=1, period_type=("cpu", "nanoseconds"))
        assert (
            client.post("/api/v1/profiles", body=maker.bytes(), query={"label": "pod=a"}).status
            == 200
        )
    keep(client, '{pod="a"}', "1d", totals="300d")
    old = {"query": CPU_NAMES[0], "start": begin, "end": begin + HOUR}
    both = {**old, "end": time.time_ns()}
    message = "of 1 hour, counted by series and block, labels of samples are not kept any more"

    def warning(path="query", expected=message, **query):
        response = client.get("/api/v1/" + path, query=query)
        assert (response.status, response.headers.get("perfolio-warning")) == (
            200,
            expected,
        ), response
        return response

    folded_of = {"report": "folded"}
    assert warning(**both, **folded_of, group_by="label:region").text
    for more in ({**folded_of, "group_by": "label:region"}, {"report": "labels", "key": "region"}):
        response = client.get("/api/v1/query", query={**old, **more})
        assert response.status == 400 and message in response.json()["detail"], response
    response = client.post("/api/v1/shares", query={**old, "keep_label": "region"})
    assert response.status == 400 and message in response.json()["detail"], response
    warning(**old, **folded_of, label="region=eu")
    warning(**old, report="labels")
    plot = {"step": "1h", "path": "query_range"}
    response = warning(**old, **plot, group_by="region").json()
    assert [one["points"][0][1] for one in response["series"]] == [12]
    for more in ({"label": "pod=a"}, {"group_by": "label:pod"}, {}):
        warning(**old, **folded_of, **more, expected=None)
    warning(**old, **plot, group_by="pod", expected=None)
    # Conditions that samples without the label satisfy count all samples.
    for condition in ('region!="eu"', 'region!~"eu"', 'region=""'):
        selector = {**old, "query": f"{CPU_NAMES[0]}{{{condition}}}"}
        assert warning(**selector, **folded_of).text == "main 12\n"
        warning(**selector, **plot)
    warning(**{**old, "query": CPU_NAMES[0] + '{pod!="b"}'}, **folded_of, expected=None)
    # A query of a part of the hour finds nothing and reports the reason.
    part = {"query": CPU_NAMES[0], "start": begin + MINUTE, "end": begin + HOUR}
    cut = "1 hour, counted by series and block, is left out: only totals are kept there"
    sides = {side + name: value for side in ("a_", "b_") for name, value in part.items()}
    for response in (
        client.get("/api/v1/diff/top", query=sides),
        client.post("/api/v1/shares", query=part),
    ):
        assert response.status in (400, 422) and cut in response.json()["detail"], response


def test_a_selector_that_totals_cannot_match_is_reported(shared_server):
    """The block of totals has no labels of samples, so its series does not match."""
    server = shared_server("--jobs-interval", "1s")
    tenant = Tenant(server)
    client = tenant.api("ingest", "read", "admin")
    begin = begin_of_day(9)
    maker = pprof_maker.Maker(CPU)
    where = maker.location([(maker.function("main", "main.c"), 1)])
    maker.sample([where], [5, 50], [("region", "eu")])
    maker.scalars(time=begin, duration=10**9, period=1, period_type=("cpu", "nanoseconds"))
    posted = client.post("/api/v1/profiles", body=maker.bytes(), query={"label": "pod=a"})
    assert posted.status == 200
    window = {"start": begin, "end": begin + HOUR}
    message = "of 1 hour, counted by series and block, labels of samples are not kept any more"

    def warning(selector):
        query = {"query": CPU_NAMES[0] + selector, **window}
        response = client.get("/api/v1/query_range", query=query)
        return response.headers.get("perfolio-warning")

    assert warning('{region="eu"}') is None
    keep(client, '{pod="a"}', "1d", totals="300d")
    until(
        lambda: age_objects(server) and warning('{region="eu"}') == message, "the labels are lost"
    )
    assert warning('{pod="a",region="eu"}') == message
    assert warning('{pod="a"}') is None
    assert message not in (warning('{pod="b",region="eu"}') or "")


def merge_segments(server):
    """Waits until the segments are merged into a separate block of level 1."""

    def is_merged():
        with server.cursor() as cursor:
            cursor.execute(
                "UPDATE segment SET created_at = created_at - interval '1 hour' WHERE swapped_at "
                "IS NULL"
            )
        return not rows_of(server, "SELECT 1 FROM segment_tenant WHERE NOT is_swapped")

    until(is_merged, "segments are not merged")


def test_totals_of_snapshots_are_exact_where_blocks_interleave(start_server):
    """No single block has both the first and the last snapshot of the hour's increase, and late
    snapshots change the increase."""
    server = start_server("--jobs-interval", "1s")
    client = Tenant(server).api("ingest", "read", "admin")
    begin = begin_of_day(9)
    values = {}

    def send_at(minute, value):
        body = make_profile(
            HEAP, begin + minute * MINUTE, {("main",): [value, value]}, ("space", "bytes")
        )
        assert client.post("/api/v1/profiles", body=body, query={"label": "pod=a"}).status == 200
        values[minute] = value

    def check():
        minutes = sorted(values)
        line = [values[minute] for minute in minutes]
        holds = [b - a for a, b in zip(minutes, minutes[1:])]
        holds.append(holds[-1])
        gained = sum(b - a if b >= a else b for a, b in zip(line, line[1:]))
        assert folded(client, HEAP_NAMES[0], begin, begin + HOUR)[1] == {("main",): gained}
        assert folded(client, HEAP_NAMES[1], begin, begin + HOUR)[1] == {
            ("main",): sum(value * hold for value, hold in zip(line, holds)) // sum(holds)
        }

    for minutes in ({0: 100, 20: 200, 40: 300}, {10: 150, 30: 50}):
        for minute, value in minutes.items():
            send_at(minute, value)
        merge_segments(server)
        check()
    keep(client, ALL, "1d", totals="300d")
    check()
    until(
        lambda: not rows_of(
            server,
            "SELECT 1 FROM block WHERE swapped_at IS NULL AND retention_key <> "
            "retention_key(tenant_id, 0)",
        ),
        "hours are not reduced",
    )
    check()
    send_at(35, 10)
    check()
    compact(server)
    check()


def test_empty_snapshots_count_and_chosen_labels_change_no_value(start_server):
    """The values do not depend on the labels that make series, nor on whether a snapshot has rows.
    The test needs its own server, because compact waits for the blocks of all tenants."""
    server = start_server("--jobs-interval", "1s")
    begin = begin_of_day(9)
    snapshots = [
        {"a": (100, 300)},
        {"a": (100, 0), "b": (50, 0)},
        {"a": (140, 30), "b": (80, 0)},
        {"a": (0, 0)},
        {"b": (7, 30)},
    ]
    tenants = []
    for labels in ("", "region"):
        tenant = Tenant(server)
        client = tenant.api("ingest", "read", "admin")
        assert (
            tenant.user("owner").patch("/api/v1/tenant", json={"sample_labels": labels}).status
            == 200
        )
        for number, snapshot in enumerate(snapshots):
            maker = pprof_maker.Maker(HEAP)
            stack = [maker.location([(maker.function("main", "m.c"), 7)])]
            for region, values in snapshot.items():
                maker.sample(stack, list(values), labels=[("region", region)])
            maker.scalars(
                time=begin + number * MINUTE, duration=0, period=1, period_type=("space", "bytes")
            )
            response = client.post("/api/v1/profiles", body=maker.bytes(), query={"label": "pod=a"})
            assert response.status == 200, response
        tenants.append((tenant, client))

    def check():
        for _, client in tenants:
            for name, expected in ((HEAP_NAMES[0], 50 + 70 + 7), (HEAP_NAMES[1], 360 // 5)):
                response, rows = folded(client, name, begin, begin + HOUR)
                assert (
                    rows == {("main",): expected}
                    and "profiles=5" in response.headers["perfolio-statistics"]
                ), response
            response, rows = folded(client, HEAP_NAMES[1], begin + 3 * MINUTE, begin + 4 * MINUTE)
            assert (
                rows == {} and "profiles=1" in response.headers["perfolio-statistics"]
            ), "an empty snapshot"
            response = client.get(
                "/api/v1/profiles",
                query={"query": HEAP_NAMES[1], "start": begin, "end": begin + HOUR},
            )
            assert [one["total"] for one in response.json()["data"]][::-1] == [
                300,
                0,
                30,
                0,
                30,
            ], response.json()

    check()
    compact(server)
    check()
    assert verify(server)["problems"] == []


def test_labels_that_make_series_are_kept_in_totals(start_server):
    """Other labels are removed with the profiles."""
    server = start_server("--jobs-interval", "1s")
    tenant = Tenant(server)
    client = tenant.api("ingest", "read", "admin")
    assert (
        tenant.user("owner").patch("/api/v1/tenant", json={"sample_labels": "endpoint"}).status
        == 200
    )
    begin = begin_of_day(9)
    for i in range(6):
        maker = pprof_maker.Maker(CPU)
        where = maker.location([(maker.function("main", "main.c"), 1)])
        for number, endpoint in enumerate(["/a", "/b", "/c"]):
            maker.sample([where], [10**number, 1], [("endpoint", endpoint), ("thread", f"t{i}")])
        maker.sample([where], [1000, 1], [("thread", f"t{i}")])
        maker.scalars(
            time=begin + i * MINUTE, duration=10**9, period=1, period_type=("cpu", "nanoseconds")
        )
        assert (
            client.post("/api/v1/profiles", body=maker.bytes(), query={"label": "pod=a"}).status
            == 200
        )
    compact(server)
    window = {"start": begin, "end": begin + HOUR}
    keep(client, '{endpoint=~"/a|/b"}', "3d", totals="300d")

    def check():
        for endpoint, value in (("/a", 6), ("/b", 60), ("/c", 600), ("", 6000)):
            _, rows = folded(
                client, f'{CPU_NAMES[0]}{{endpoint="{endpoint}"}}', begin, begin + HOUR
            )
            assert rows == {("main",): value}
        plot = client.get(
            "/api/v1/query_range",
            query={"query": CPU_NAMES[0], **window, "step": "1h", "group_by": "endpoint"},
        ).json()
        assert {one["labels"]["endpoint"]: one["points"][0][1] for one in plot["series"]} == {
            "/a": 6,
            "/b": 60,
            "/c": 600,
            "": 6000,
        }
        response = client.get(
            "/api/v1/query",
            query={"query": CPU_NAMES[0], **window, "label": "thread=t1", "report": "folded"},
        )
        assert response.text == "main 1100\n" and "perfolio-warning" in response.headers
        listed = client.get("/api/v1/profiles", query={"query": CPU_NAMES[0], **window}).json()[
            "data"
        ]
        assert sorted(one["labels"].get("endpoint", "") for one in listed) == 6 * [""] + 6 * ["/c"]

    check()
    until(lambda: is_reduced(server), "a block is not reduced")
    # For each of the two types: two totals, and six profiles of the other two endpoints.
    assert count_rows(server) == 2 * (2 + 12)
    check()
    # A change of the chosen labels does not change the series of stored profiles.
    assert tenant.user("owner").patch("/api/v1/tenant", json={"sample_labels": ""}).status == 200
    check()


def blocks_of(server, tenant):
    return rows_of(
        server, f"SELECT object_key FROM block WHERE tenant_id = {tenant.id} AND swapped_at IS NULL"
    )


def test_a_mixed_block_is_rewritten_once_for_each_due_rule(start_server):
    server = start_server("--jobs-interval", "1s")
    tenant, other = Tenant(server), Tenant(server)
    client = tenant.api("ingest", "read", "admin")
    begin = begin_of_day(10)
    for env in ("dev", "test", "prod"):
        push(client, f"env={env}", begin)
        push(other.api("ingest"), f"env={env}", begin)
    compact(server)
    before = blocks_of(server, tenant)
    keep(client, '{env="prod"}', "20d")
    keep(client, '{env="none"}', "1d")
    until(
        lambda: not rows_of(
            server, f"SELECT 1 FROM block WHERE tenant_id = {tenant.id} AND" " retention_key = 0"
        ),
        "the rules are not applied to a block",
    )
    assert blocks_of(server, tenant) == before  # no rule is due
    keep(client, '{env="dev"}', "3d")
    keep(client, '{env=~"dev|test"}', "5d")
    assert folded(client, CPU_NAMES[0], begin, begin + 1)[1] == {("main", "work"): 1}
    until(lambda: blocks_of(server, tenant) != before, "a mixed block is not rewritten")
    after = blocks_of(server, tenant)
    assert rows_of(
        server, f"SELECT row_count, series_count FROM block WHERE object_key = '{min(after)}'"
    ) == {2}
    # The next check of the block is when the rule of the remaining profiles is due, in ten days.
    (due,) = rows_of(
        server, f"SELECT retention_due_ns FROM block WHERE object_key = '{min(after)}'"
    )
    assert due == begin + 20 * DAY
    keep(client, '{env="none"}', "2d")
    until(
        lambda: not rows_of(
            server,
            "SELECT 1 FROM block b WHERE swapped_at IS NULL AND retention_key <> "
            f"retention_key(b.tenant_id, 0) AND tenant_id = {tenant.id}",
        ),
        "new rules are not applied to a block",
    )
    assert blocks_of(server, tenant) == after
    (rule,) = [
        one for one in client.get("/api/v1/retention").json()["rules"] if "prod" in one["query"]
    ]
    assert keep(client, '{env="prod"}', "8d")["id"] == rule["id"]
    assert folded(client, CPU_NAMES[0], begin, begin + 1)[1] == {}
    until(
        lambda: age_objects(server)
        and not blocks_of(server, tenant)
        and len(objects_of(server)) == 1,
        "a block with only expired profiles is left",
    )
    assert folded(other.api("read"), CPU_NAMES[0], begin, begin + 1)[1] == {("main", "work"): 3}
    assert verify(server)["problems"] == []


@pytest.mark.long
def test_a_block_of_one_hour_is_reduced_once_the_hour_is_old_enough(start_server):
    """All profiles of the block are older than the rule keeps profiles, but the rest of their hour
    may not be. The hour is reduced as a whole, at the latest an hour after the last profile has
    expired."""
    server = start_server("--jobs-interval", "1s")
    tenant = Tenant(server)
    client = tenant.api("ingest", "read", "admin")
    begin = begin_of_day(10) + 14 * HOUR + 10 * 10**9
    end = begin + 20 * MINUTE
    for time_ns in (begin, end):
        push(client, "env=dev", time_ns)
    compact(server)
    before = blocks_of(server, tenant)
    block = f"FROM block WHERE tenant_id = {tenant.id} AND swapped_at IS NULL"
    keep_s = keep(client, '{env="dev"}', age_of(end + MINUTE), totals="300d")["keep_s"]
    until(
        lambda: not rows_of(server, f"SELECT 1 {block} AND retention_key = 0"),
        "the rule is not applied to a block",
    )
    assert blocks_of(server, tenant) == before
    due = end + keep_s * 10**9 + HOUR
    assert rows_of(server, f"SELECT retention_due_ns {block}") == {due}
    keep(client, '{env="dev"}', age_of(end + HOUR), totals="300d")
    until(lambda: blocks_of(server, tenant) != before, "the hour is not reduced")
    assert is_reduced(server)


def test_the_first_rule_that_selects_a_series_applies(server):
    tenant = Tenant(server, profile_retention_s=5 * 86400)
    client = tenant.api("ingest", "read", "admin")
    keep(client, '{env="dev"}', "3d")
    keep(client, '{service_name="checkout"}', "forever")
    keep(client, ALL, "20d")
    keep(client, '{env="dev",service_name="checkout"}', "90d", position=1)
    expected = [
        (1, '{env="dev",service_name="checkout"}', 90 * 86400),
        (2, '{env="dev"}', 3 * 86400),
        (3, '{service_name="checkout"}', 0),
        (4, ALL, 20 * 86400),
    ]
    assert rules_of(client) == expected
    assert client.get("/api/v1/retention").json()["default_keep_s"] == 5 * 86400
    now = time.time_ns()
    for days in (1, 4, 15, 50, 200):
        for env in ("dev", "prod"):
            for service in ("checkout", "cart"):
                body = f"main;{env}_{service}_{days} 1\n".encode()
                response = client.post(
                    "/api/v1/profiles",
                    body=body,
                    query=[
                        ("label", f"env={env}"),
                        ("label", f"service_name={service}"),
                        ("time", str(now - days * DAY)),
                    ],
                )
                assert response.status == 200, response  # a rule keeps some series forever

    def found():
        response = client.get(
            "/api/v1/query",
            query={
                "query": "samples:count",
                "start": now - 300 * DAY,
                "end": now,
                "report": "folded",
            },
        )
        return {
            tuple(line.rpartition(" ")[0].removeprefix("main;").split("_"))
            for line in response.text.splitlines()
        }

    kept = {
        ("dev", "checkout"): 90,
        ("dev", "cart"): 3,
        ("prod", "checkout"): 999,
        ("prod", "cart"): 20,
    }
    assert found() == {
        (*key, str(days))
        for key, most in kept.items()
        for days in (1, 4, 15, 50, 200)
        if days < most
    }
    rules = client.get("/api/v1/retention").json()["rules"]
    assert client.request("DELETE", f"/api/v1/retention/{rules[2]['id']}").status == 204
    assert rules_of(client) == [*expected[:2], (3, ALL, 20 * 86400)]
    assert ("prod", "checkout", "15") in found() and ("prod", "checkout", "50") not in found()
    audit = [
        one
        for one in client.get("/api/v1/audit").json()["entries"]
        if one["action"].startswith("retention.")
    ]
    assert [one["action"] for one in audit] == ["retention.remove"] + 4 * ["retention.set"]
    assert audit[-1]["target"] == '{env="dev"} 3d'


def test_a_profile_that_no_rule_can_keep_is_refused(server):
    tenant = Tenant(server, profile_retention_s=86400)
    client = tenant.api("ingest", "admin")
    old = {"query": [("label", "env=dev"), ("time", str(time.time_ns() - 2 * DAY))]}
    response = client.post("/api/v1/profiles", body=b"main 1\n", **old)
    assert response.status == 400 and "retention rules" in response.json()["detail"], response
    keep(client, '{env="none"}', "3d")
    assert client.post("/api/v1/profiles", body=b"main 1\n", **old).status == 200
    keep(client, '{env="none"}', "1h")
    assert client.post("/api/v1/profiles", body=b"main 2\n", **old).status == 400


def test_an_old_profile_that_a_rule_may_not_keep_has_a_warning(server):
    client = Tenant(server).api("ingest", "admin")
    keep(client, '{env="dev"}', "3d")
    keep(client, '{env="test"}', "1h", totals="30d")
    for days, is_warned in ((2, False), (4, True)):
        old = {"query": [("label", "env=dev"), ("time", str(time.time_ns() - days * DAY))]}
        response = client.post("/api/v1/profiles", body=b"main 1\n", **old)
        assert response.status == 200, response
        warning = response.headers.get("perfolio-warning", "")
        assert ("a rule of retention keeps profiles for 3 days only" in warning) == is_warned


def test_the_operator_limits_the_retention_of_an_owners_rules(start_server):
    server = start_server("--tenant-rule-keep", "30d")
    tenant = Tenant(server)
    owner, operator = tenant.api("admin"), server.api()
    path = f"/api/v1/admin/tenants/{tenant.id}"
    assert owner.get("/api/v1/tenant").json()["quotas"]["rule_keep_s"] == 30 * 86400

    def refuse(limit, where, what="keep", **more):
        response = owner.post("/api/v1/retention", json={"query": '{env="dev"}', **more})
        assert response.status == 400, response
        assert response.json()["detail"] == (
            f"{what} exceeds the limit of your team's rules: rule_keep_s is {limit}, {where}"
        ), response

    setting = "by the setting tenant-rule-keep"
    keep(owner, '{env="dev"}', "30d")
    keep(owner, '{env="test"}', "1d", totals="30d")
    refuse(30 * 86400, setting, keep="2592001s")
    refuse(30 * 86400, setting, keep="forever")
    refuse(30 * 86400, setting, "totals", keep="1d", totals="2592001s")
    assert operator.patch(path, json={"rule_keep_s": 3600}).status == 200
    refuse(3600, "set for this team", keep="3601s")
    keep(owner, '{env="test"}', "1h")
    # Existing rules stay and may be moved, and the limit does not apply to the operator's rules.
    assert keep(owner, '{env="dev"}', "30d", position=2)["position"] == 2
    expected = {"query": '{env="prod"}', "keep": "1y", "totals": "2y"}
    assert operator.post(path + "/retention", json=expected).status == 200
    assert owner.post("/api/v1/retention", json={**expected, "position": 1}).status == 200
    refuse(3600, "set for this team", **{**expected, "keep": "366d", "what": "totals"})
    assert rules_of(owner) == [
        (1, '{env="prod"}', 365 * 86400),
        (2, '{env="test"}', 3600),
        (3, '{env="dev"}', 30 * 86400),
    ]
    assert operator.patch(path, json={"rule_keep_s": 0}).status == 200
    keep(owner, '{env="dev"}', "forever")


@pytest.mark.parametrize(
    "body, expected",
    [
        ({"keep": "3d"}, "query"),
        ({"query": '{env="dev"}'}, "keep"),
        ({"query": '{env="dev"}', "keep": "soon"}, "keep"),
        ({"query": '{env="dev"}', "keep": "0"}, "keep"),
        ({"query": '{env="dev"}', "keep": "101y"}, "keep"),
        ({"query": '{env="dev"}', "keep": "3d", "totals": "3d"}, "totals"),
        ({"query": '{env="dev"}', "keep": "3d", "totals": "forever"}, "totals"),
        ({"query": '{env="dev"}', "keep": "forever", "totals": "1y"}, "totals"),
        ({"query": "{env=}", "keep": "3d"}, "query: expected a value in quotes"),
        ({"query": '{__types__=~"memory.*"}', "keep": "3d"}, "at character 2, here: __types__"),
        ({"query": '{env="dev"}', "keep": "3d", "position": 0}, "position"),
        ({"query": '{env="dev"}', "keep": "3d", "for": "x"}, "for"),
    ],
)
def test_an_invalid_rule_is_refused(server, body, expected):
    response = Tenant(server).api("admin").post("/api/v1/retention", json=body)
    assert response.status == 400 and expected in response.json()["detail"], response


def test_a_team_has_at_most_100_rules_and_reads_only_its_own(server):
    tenant, other = Tenant(server), Tenant(server)
    client = tenant.api("admin")
    for i in range(100):
        made = keep(client, f'{{pod="{i}"}}', "3d")
    response = client.post("/api/v1/retention", json={"query": "cpu", "keep": "3d"})
    assert (
        response.status == 400 and "at most 100 retention rules" in response.json()["detail"]
    ), response
    assert keep(client, '{pod="50"}', "forever", position=100)["position"] == 100
    assert rules_of(client)[-2:] == [(99, '{pod="99"}', 3 * 86400), (100, '{pod="50"}', 0)]
    assert rules_of(other.api("admin")) == []
    assert other.api("admin").request("DELETE", f"/api/v1/retention/{made['id']}").status == 404
    assert tenant.api("read", "ingest").get("/api/v1/retention").status == 403


@pytest.mark.parametrize(
    "first,again",
    [
        ('{env="dev",pod="a"}', '{ pod = "a" , env="dev" }'),
        ('{env="dev",pod="a"}', "{pod='a',env=`dev`,env='dev',}"),
        ('cpu:nanoseconds{env="dev"}', '{env="dev",__profile_type__="cpu:nanoseconds"}'),
        ('{env=~"a|b"}', '{env =~ "a|b"}'),
        ('{k8s_pod="a"}', '{k8s.pod="a"}'),
        ('{env="dev-1",pod!="a"}', '{env=~"dev-1",pod!~"a"}'),
        ('{env="\u00f6\\n"}', '{env="\\xc3\\xb6\\x0a"}'),
    ],
)
def test_an_equivalent_selector_has_the_same_rule(server, first, again):
    client = Tenant(server).api("admin")
    made = keep(client, first, "3d")
    response = client.post(
        "/api/v1/retention", json={"query": again, "keep": "5d", "replace": False}
    )
    assert response.status == 409, response
    assert f"Rule 1, {first}, already selects the same" in response.json()["detail"], response
    assert rules_of(client) == [(1, first, 3 * 86400)]
    assert keep(client, again, "9d") == {**made, "keep_s": 9 * 86400}
    assert rules_of(client) == [(1, first, 9 * 86400)]


@pytest.mark.parametrize(
    "first,other",
    [
        ('{env="dev"}', '{env!="dev"}'),
        ('{env="a|b"}', '{env=~"a|b"}'),
        ('{env="dev"}', '{env="dev",pod=""}'),
        ('{env="\\xff"}', '{env="\\xfe"}'),
        ('{env="dev"}', '{env="dev "}'),
        ("cpu", "cpu:nanoseconds"),
    ],
)
def test_different_selectors_have_separate_rules(server, first, other):
    client = Tenant(server).api("admin")
    keep(client, first, "3d")
    keep(client, other, "5d", replace=False)
    assert rules_of(client) == [(1, first, 3 * 86400), (2, other, 5 * 86400)]


def test_existing_rules_with_equivalent_selectors_are_distinguished(server):
    tenant = Tenant(server)
    client = tenant.api("admin")
    keep(client, '{a="1",b="2"}', "3d")
    keep(client, '{c="3"}', "3d")
    keep(client, "broken", "3d")
    rows_of(
        server,
        f"""UPDATE retention_rule SET selector = '{{b="2", a="1"}}' WHERE tenant_id = {tenant.id}
                    AND selector LIKE '%c=%' RETURNING 1""",
    )
    rows_of(
        server,
        f"""UPDATE retention_rule SET selector = '{{' WHERE tenant_id = {tenant.id}
                    AND selector = 'broken' RETURNING 1""",
    )
    keep(client, '{b="2", a="1"}', "5d")
    keep(client, '{ a="1", b="2" }', "7d")
    assert [keep_s for _, _, keep_s in rules_of(client)] == [7 * 86400, 5 * 86400, 3 * 86400]


def test_if_match_refuses_changes_of_rules_based_on_a_stale_version(server):
    tenant = Tenant(server)
    client, operator = tenant.api("admin"), server.api()
    paths = ["/api/v1/retention", f"/api/v1/admin/tenants/{tenant.id}/retention"]

    def version():
        tags = {api.get(path).headers["etag"] for api, path in zip((client, operator), paths)}
        assert len(tags) == 1
        return tags.pop()

    changes = [
        lambda: keep(client, "cpu", "3d"),
        lambda: keep(client, "heap", "3d"),
        lambda: keep(client, "heap", "4d"),
        lambda: keep(client, "heap", "4d", totals="1y"),
        lambda: keep(client, "heap", "4d", totals="1y", position=1),
    ]
    seen = [version()]
    for change in changes:
        change()
        seen.append(version())
    assert len(set(seen)) == len(seen)
    before = rules_of(client)
    rule = client.get("/api/v1/retention").json()["rules"][0]["id"]
    for stale in seen[:-1]:
        for api, path in zip((client, operator), paths):
            for response in (
                api.post(path, json={"query": "cpu", "keep": "9d"}, headers={"If-Match": stale}),
                api.request("DELETE", f"{path}/{rule}", headers={"If-Match": stale}),
            ):
                assert response.status == 412 and response.json()["type"].endswith(
                    "/stale"
                ), response
                assert "The list of rules has been changed" in response.json()["detail"]
    assert rules_of(client) == before and version() == seen[-1]
    response = client.post(
        "/api/v1/retention", json={"query": "cpu", "keep": "9d"}, headers={"If-Match": seen[-1]}
    )
    assert response.status == 200
    assert (
        client.request("DELETE", f"/api/v1/retention/{rule}", headers={"If-Match": "*"}).status
        == 204
    )


def test_the_command_line_sets_lists_and_removes_rules(cli, server):  # noqa: F811
    tenant = Tenant(server)
    tenant_option = ["--tenant", str(tenant.id)]
    made = cli(
        "admin", "retention", "set", '{env="dev"}', "--keep", "3d", *tenant_option
    ).out.strip()
    cli(
        "admin",
        "retention",
        "set",
        '{service_name="checkout"}',
        "--keep=90d",
        "--totals=1y",
        "--position=1",
        *tenant_option,
    )
    assert rules_of(tenant.api("admin")) == [
        (1, '{service_name="checkout"}', 90 * 86400),
        (2, '{env="dev"}', 3 * 86400),
    ]
    listed = cli("admin", "retention", "list", *tenant_option).out.splitlines()
    assert listed[1].split()[:4] == [
        "1",
        str(int(made) + 1),
        '{service_name="checkout"}',
        str(90 * 86400),
    ]
    assert listed[1].split()[4] == str(365 * 86400)
    cli("admin", "retention", "remove", made, *tenant_option)
    assert len(rules_of(tenant.api("admin"))) == 1
    audit = tenant.user("owner").get("/api/v1/audit").json()["entries"]
    assert ("retention.remove", '{env="dev"}') in {(one["action"], one["target"]) for one in audit}
