"""Metadata of the store: profile types, series and labels of a window, values over time, and lists
of profiles.

The results equal a plain recomputation (tests/oracle/store_oracle.py) before and after compaction,
and never include data of another team."""

import collections
import gzip
import random
import re

import pytest

from people import Tenant
from test_ingest_wire import JSON, OTLP, PROTO, PUSH, push_protobuf
from test_store import (
    BEGIN,
    CPU,
    CPU_NAMES,
    HOUR,
    MATCHERS,
    NAMES,
    Source,
    compact,
    is_unknown,
    make_profile,
    make_sources,
    random_selector,
    send,
)

import otlp_maker
import store_oracle

MINUTE = 60 * 10**9
TYPE_PARTS = ("name", "sample_type", "sample_unit", "period_type", "period_unit")
MATCHES = [
    ([], lambda name, labels: True),
    (['{service_name="s1"}'], lambda name, labels: labels["service_name"] == "s1"),
    ([NAMES[1]], lambda name, labels: name == NAMES[1]),
    (
        ["memory", '{pod=~"p[12]"}'],
        lambda name, labels: name.startswith("memory:") or labels["pod"] in ("p1", "p2"),
    ),
    (
        ['cpu:nanoseconds{zone=""}', 'inuse_space:bytes{zone="a"}'],
        lambda name, labels: (name == NAMES[1] and "zone" not in labels)
        or (name == NAMES[3] and labels.get("zone") == "a"),
    ),
]


def get(client, path, window, **more):
    response = client.get(
        path,
        query=[("start", window[0]), ("end", window[1])]
        + [
            (key.replace("match", "match[]"), value)
            for key, values in more.items()
            for value in (values if isinstance(values, list) else [values])
        ],
    )
    assert response.status == 200, response
    return response.json()


def pages(client, path, window, limit, **more):
    """Returns all rows of a list, fetched in pages of limit rows."""
    rows, after = [], {}
    while True:
        page = get(client, path, window, limit=limit, **after, **more)
        assert len(page["data"]) == limit or page["next"] is None
        rows += page["data"]
        if page["next"] is None:
            return rows
        after = {"after": page["next"]}


def some_window(rng):
    start = BEGIN - HOUR // 2 + rng.randrange(3 * HOUR)
    return start, start + rng.choice([1, MINUTE, 10 * MINUTE, HOUR, 9 * HOUR])


def check_lists(client, oracle, rng):
    window = some_window(rng)
    match, matches = rng.choice(MATCHES)
    if rng.random() < 0.5:
        match, matches = random_selector(rng)
    wanted = oracle.series(matches, *window)
    limit = rng.choice([1, 3, 1000])
    types = pages(client, "/api/v1/profile_types", window, limit, match=match)
    assert [one["type"] for one in types] == sorted({name for name, _ in wanted})
    for one in types:
        name = one["type"].removesuffix(":delta")
        assert name == ":".join(one[part] for part in TYPE_PARTS)
        assert one["delta"] == one["type"].endswith(":delta")
        assert one["rule"] == store_oracle.rule_of(one["type"])
    series = pages(client, "/api/v1/series", window, limit, match=match)
    assert [one["__profile_type__"] for one in series] == sorted(name for name, _ in wanted)
    assert {(one.pop("__profile_type__"), tuple(sorted(one.items()))) for one in series} == wanted
    labels = pages(client, "/api/v1/labels", window, limit, match=match)
    assert labels == sorted({label for _, pairs in wanted for label, _ in pairs})
    for label in ("pod", "zone"):
        values = pages(client, f"/api/v1/label/{label}/values", window, limit, match=match)
        assert values == sorted(
            {value for _, pairs in wanted for name, value in pairs if name == label}
        )


FILTERS = [
    ({}, None),
    ({"focus": "f1"}, lambda stack: any("f1" in name for name in stack)),
    ({"ignore": r"^f2\d$"}, lambda stack: not any(re.match(r"f2\d$", name) for name in stack)),
    (
        {"focus": ["f1", "f3.*c$"], "ignore": "f7"},
        lambda stack: any("f1" in name for name in stack)
        and any("f3" in name for name in stack)
        and not any("f7" in name for name in stack),
    ),
    ({"focus": "nothing at all"}, lambda stack: False),
]


def sum_of_steps(response):
    steps = collections.Counter()
    for one in response["series"]:
        for ms, value in one["points"]:
            steps[ms] += value
    return dict(steps)


def check_largest(whole, few, alone):
    """Checks that few has the largest series of whole and one series with the sum of the others.

    The values of few and of whole add up to those of alone, the series without groups: in whole,
    the largest value of a step compensates the rounding of the others.
    """
    assert few["group_count"] == whole["group_count"]
    *chosen, other = few["series"]
    assert other["labels"] == {} and other["other_count"] == len(whole["series"]) - len(chosen) > 0
    most = 0 if whole["rule"] == "mean" else len(whole["series"])
    same = {
        tuple(one["labels"].values()): dict(map(tuple, one["points"])) for one in whole["series"]
    }
    for one in chosen:
        points = same[tuple(one["labels"].values())]
        assert (
            all(abs(points.pop(ms) - value) <= most for ms, value in one["points"]) and not points
        )
    if whole["rule"] == "mean":  # averages over different covered times cannot be added up
        return
    assert sum_of_steps(few) == sum_of_steps(whole) == sum_of_steps(alone)
    assert (
        sum(one["total"] for one in few["series"])
        == sum(one["total"] for one in whole["series"])
        == alone["series"][0]["total"]
    )
    sums = {tuple(one["labels"].values()): abs(one["total"]) for one in whole["series"]}
    least = min(sums[tuple(one["labels"].values())] for one in chosen)
    assert sum(value > least + most for value in sums.values()) < len(chosen)


def check_over_time(client, oracle, rng):
    window = some_window(rng)
    name = rng.choice(NAMES)
    selector, matches = rng.choice(MATCHERS)
    more, keeps = rng.choice(FILTERS)
    group_by = rng.choice([[], ["service_name"], ["zone", "pod"], ["absent"]])
    step = max(
        rng.choice([MINUTE, 7 * MINUTE + 10**6, HOUR, 4 * HOUR]), (window[1] - window[0]) // 100
    )
    step = -(-step // 10**6) * 10**6
    wanted = oracle.over_time(name, matches, *window, step, group_by, keeps)
    if (
        oracle.lacks(name, *window) and not wanted
    ):  # neighbouring profiles may extend into the window
        response = client.get(
            "/api/v1/query_range", query={"query": name, "start": window[0], "end": window[1]}
        )
        if is_unknown(response, oracle, name, window):
            return
    response = get(
        client,
        "/api/v1/query_range",
        window,
        query=name + selector,
        group_by=group_by,
        step=f"{step // 10**6 / 1000:.3f}",
        **more,
    )
    assert response["step_ms"] == step // 10**6
    found = {
        tuple(one["labels"][label] for label in group_by): dict(map(tuple, one["points"]))
        for one in response["series"]
    }
    assert list(found) == sorted(found)
    points = {
        key: {(window[0] + number * step) // 10**6: value for number, value in points.items()}
        for key, points in wanted.items()
    }
    assert store_oracle.are_equal(found, points), (name, selector, window, step, more, group_by)
    assert response["group_count"] == len(wanted)
    if len(wanted) > 1:
        few = get(
            client,
            "/api/v1/query_range",
            window,
            query=name + selector,
            group_by=group_by,
            step=f"{step // 10**6 / 1000:.3f}",
            limit=rng.randrange(1, len(wanted)),
            **more,
        )
        alone = get(
            client,
            "/api/v1/query_range",
            window,
            query=name + selector,
            step=f"{step // 10**6 / 1000:.3f}",
            **more,
        )
        check_largest(response, few, alone)
    if wanted:
        assert (response["type"], response["rule"]) == (name, store_oracle.rule_of(name))
    if not more and store_oracle.rule_of(name) != "difference":
        assert response["statistics"]["rows"] == 0  # the query reads only the totals of profiles


def check_profiles(client, oracle, rng):
    window = some_window(rng)
    match, matches = rng.choice(MATCHES[1:3])
    wanted = oracle.listed(matches, *window)
    listed = pages(client, "/api/v1/profiles", window, rng.choice([1, 7, 1000]), query=match[0])
    found = {}
    for one in listed:
        labels = dict(one["labels"])
        name = labels.pop("__profile_type__")
        found[int(one["time_ns"]), name, tuple(sorted(labels.items()))] = one
    assert found.keys() == wanted.keys() and len(listed) == len(found)
    assert {key: one["total"] for key, one in found.items()} == {
        key: sum(stacks.values()) for key, stacks in wanted.items()
    }
    assert [one["id"] for one in listed] == sorted((one["id"] for one in listed), reverse=True)
    for key in rng.sample(sorted(found), min(2, len(found))):
        assert found[key]["duration_ns"] == (0 if key[1].startswith("memory:") else 10**10)
        response = client.get(f"/api/v1/profiles/{found[key]['id']}", query={"report": "folded"})
        assert response.status == 200, response
        rows = dict(line.rpartition(" ")[::2] for line in response.text.splitlines())
        assert rows == {";".join(stack): str(value) for stack, value in wanted[key].items()}


def check_all(client, oracle, rng):
    for _ in range(15):
        check_profiles(client, oracle, rng)
    for _ in range(20):
        check_lists(client, oracle, rng)
    for _ in range(100):
        check_over_time(client, oracle, rng)


@pytest.mark.long
def test_results_equal_a_plain_recomputation(shared_server):
    server = shared_server("--jobs-interval", "1s")
    rng = random.Random(7)
    tenant, other = Tenant(server), Tenant(server)
    client, oracle = tenant.api("ingest", "read"), store_oracle.Oracle()
    sources = make_sources(rng)
    other_source = Source(rng, {"service_name": "theirs", "pod": "p1", "secret": "yes"})
    for _ in range(100):
        send(client, oracle, rng.choice(sources), BEGIN + rng.randrange(3 * HOUR))
    for _ in range(10):
        send(
            other.api("ingest"),
            store_oracle.Oracle(),
            other_source,
            BEGIN + rng.randrange(3 * HOUR),
        )
    check_all(client, oracle, rng)
    compact(server)
    check_all(client, oracle, rng)
    window = (BEGIN - HOUR, BEGIN + 9 * HOUR)
    profile_id = get(client, "/api/v1/profiles", window, query="cpu:nanoseconds", limit=1)["data"][
        0
    ]["id"]
    assert other.api("read").get(f"/api/v1/profiles/{profile_id}").status == 404
    for invalid_id in ("x", profile_id[:-1], profile_id[:-1] + "g", "f" * 32, "0" * 32):
        assert client.get(f"/api/v1/profiles/{invalid_id}").status == 404
    assert get(client, "/api/v1/label/secret/values", window) == {"data": [], "next": None}
    assert get(other.api("read"), "/api/v1/label/secret/values", window)["data"] == ["yes"]


def test_a_label_value_may_have_any_character(server):
    client = Tenant(server).api("ingest", "read")
    body = make_profile(CPU, BEGIN, {("main",): [1, 10]}, ("cpu", "nanoseconds"), 10**10)
    values = sorted(['a"b', "a\\b", "a\nb", "a{b}", "ü,=", "a\0b"])
    for value in values:
        assert (
            client.post("/api/v1/profiles", body=body, query=[("label", "odd=" + value)]).status
            == 200
        )
    window = (BEGIN, BEGIN + 1)
    assert pages(client, "/api/v1/label/odd/values", window, 2) == values
    assert sorted(one["odd"] for one in pages(client, "/api/v1/series", window, 5)) == sorted(
        values * 2
    )
    for value in values:
        quoted = "".join(
            char if char.isalpha() else "".join(f"\\x{byte:02x}" for byte in char.encode())
            for char in value
        )
        response = client.get(
            "/api/v1/query",
            query={
                "query": f'{CPU_NAMES[0]}{{odd="{quoted}"}}',
                "start": BEGIN,
                "end": BEGIN + 1,
                "report": "folded",
                "group_by": "odd",
            },
        )
        assert response.status == 200 and response.text.endswith(";main 1\n"), response


def test_the_rate_of_cpu_time_is_in_cores(server):
    client = Tenant(server).api("ingest", "read")
    for i in range(3):
        body = make_profile(
            CPU, BEGIN + i * 10**9, {("main",): [1, 5 * 10**8]}, ("cpu", "nanoseconds"), 10**9
        )
        assert client.post("/api/v1/profiles", body=body).status == 200
    window = (BEGIN, BEGIN + 3 * 10**9)
    response = get(
        client, "/api/v1/query_range", window, query=CPU_NAMES[1], rate="true", step="2s"
    )
    assert response["unit"] == "cores" and response["step_ms"] == 2000
    # The last step ends with the window.
    assert [value for _, value in response["series"][0]["points"]] == [0.5, 0.5]
    response = get(client, "/api/v1/query_range", window, query=CPU_NAMES[0], rate="true")
    assert response["unit"] == "count/s" and len(response["series"][0]["points"]) == 3


@pytest.mark.parametrize(
    "options, step_count",
    [
        ({"start": "0", "end": "9223372036.8"}, None),
        ({"step": "9223372036s"}, 1),
        ({"start": "0", "end": "9223372036.8", "step": "9000000000s"}, 2),
    ],
)
def test_windows_and_steps_may_cover_the_whole_range_of_time(server, options, step_count):
    client = Tenant(server).api("ingest", "read")
    body = make_profile(CPU, BEGIN, {("main",): [1, 150]}, ("cpu", "nanoseconds"), 10**9)
    assert client.post("/api/v1/profiles", body=body).status == 200
    response = client.get(
        "/api/v1/query_range",
        query={"query": CPU_NAMES[1], "start": BEGIN - HOUR, "end": BEGIN + HOUR, **options},
    )
    assert response.status == 200, response
    assert sum(value for _, value in response.json()["series"][0]["points"]) == 150
    if step_count == 1:
        assert len(response.json()["series"][0]["points"]) == 1


@pytest.mark.parametrize(
    "path", ["/api/v1/query", "/api/v1/query_range", "/api/v1/series", "/api/v1/profiles"]
)
def test_a_window_of_more_than_64_bits_is_refused(server, path):
    response = (
        Tenant(server)
        .api("read")
        .get(
            path,
            query={
                **({} if path.endswith("series") else {"query": CPU_NAMES[1]}),
                "start": "1677-09-22T00:00:00Z",
                "end": "2262-04-11T00:00:00Z",
            },
        )
    )
    assert response.status == 400 and "more than 292 years" in response.json()["detail"], response


def test_step_ms_is_returned_exactly(server):
    client = Tenant(server).api("ingest", "read")
    for step, wanted in (("12345678901ms", "12345678901"), ("1.5ms", "1.500000")):
        response = client.get(
            "/api/v1/query_range",
            query={"query": CPU_NAMES[1], "start": BEGIN, "end": BEGIN + 10**9, "step": step},
        )
        assert response.status == 200 and f'"step_ms":{wanted},' in response.text, response


@pytest.mark.parametrize("report", ["top", "json"])
def test_an_empty_result_has_the_type_that_was_requested(server, report):
    client = Tenant(server).api("ingest", "read")
    body = make_profile(CPU, BEGIN, {("main",): [1, 150]}, ("cpu", "nanoseconds"), 10**9)
    assert client.post("/api/v1/profiles", body=body).status == 200
    for labels in ("", '{service_name="nobody"}'):
        response = client.get(
            "/api/v1/query",
            query={
                "query": CPU_NAMES[1] + labels,
                "report": report,
                "start": BEGIN,
                "end": BEGIN + HOUR,
            },
        )
        assert (
            response.status == 200
            and '"nanoseconds"' in response.text
            and '"count"' not in response.text
        ), response


@pytest.mark.parametrize(
    "name, wanted", [("x" * 513, "at most 512 are allowed"), ("a\nb", "a control character")]
)
def test_invalid_names_of_sample_types_are_refused(server, name, wanted):
    client = Tenant(server).api("ingest", "read")
    body = make_profile(
        [(name, "count"), ("cpu", "nanoseconds")],
        BEGIN,
        {("main",): [1, 1]},
        ("cpu", "nanoseconds"),
        1,
    )
    response = client.post("/api/v1/profiles", body=body)
    assert response.status == 400 and wanted in response.json()["detail"], response
    assert client.get("/api/v1/series").json()["data"] == []


def test_default_steps_begin_at_multiples_of_the_step(server):
    client = Tenant(server).api("ingest", "read")
    second, quarter = 10**9, 15 * 10**9
    first = BEGIN - BEGIN % quarter + quarter
    seen = {
        first + 3 * second: 30,
        first + 14 * second: 6,
        first + 20 * second: 45,
        first + HOUR - second: 90,
    }
    for time_ns, value in seen.items():
        for types, period in (
            (CPU, ("cpu", "nanoseconds")),
            ([("inuse_space", "bytes")] * 2, ("space", "bytes")),
        ):
            body = make_profile(types, time_ns, {("main",): [0, value * second]}, period, second)
            assert client.post("/api/v1/profiles", body=body).status == 200

    def points(start, end, **more):
        response = client.get(
            "/api/v1/query_range", query={"query": CPU_NAMES[1], "start": start, "end": end, **more}
        )
        assert response.status == 200 and response.json()["step_ms"] == 15_000, response
        return [
            ((ms * 10**6 - first) // quarter, value)
            for ms, value in response.json()["series"][0]["points"]
        ]

    end = first + HOUR - second // 2  # within the last profile
    assert points(first + second, end) == [(0, 36 * second), (1, 45 * second), (239, 45 * second)]
    assert points(first + 4 * second, end) == [
        (0, 6 * second),
        (1, 45 * second),
        (239, 45 * second),
    ]
    # Rates are computed over the covered time, which is one second per profile.
    assert points(first + 3 * second, end, rate="true") == [(0, 18), (1, 45), (239, 90)]
    assert points(first + 3 * second, end, rate="auto") == points(
        first + 3 * second, end, rate="true"
    )
    assert points(first, end, query="inuse_space", rate="auto") == points(
        first, end, query="inuse_space"
    )


@pytest.mark.parametrize(
    "options, status, wanted",
    [
        ({"step": "soon"}, 400, "step"),
        ({"step": "1us"}, 400, "at least a millisecond"),
        ({"step": "1ms"}, 413, "more than 11000"),
        ({"rate": "yes"}, 400, "rate must be true, false or auto"),
        ({"rate": "true", "query": "inuse_space"}, 400, "is a gauge"),
        ({"query": "process_cpu"}, 400, "2 profile types match"),
        ({"focus": "("}, 400, "focus"),
        ({"hide": "x"}, 400, "hide"),
        ({"other": "maybe"}, 400, "other must be true or false"),
        ({"limit": "1001"}, 400, "limit"),
    ],
)
def test_invalid_parameters_of_query_range_are_refused(server, options, status, wanted):
    client = Tenant(server).api("ingest", "read")
    for pod in "ab":
        for types, period in (
            (CPU, ("cpu", "nanoseconds")),
            ([("inuse_space", "bytes")] * 2, ("space", "bytes")),
        ):
            body = make_profile(types, BEGIN, {("main",): [1, 1]}, period)
            assert (
                client.post("/api/v1/profiles", body=body, query={"label": f"pod={pod}"}).status
                == 200
            )
    response = client.get(
        "/api/v1/query_range",
        query={"query": CPU_NAMES[1], "start": BEGIN, "end": BEGIN + HOUR, **options},
    )
    assert response.status == status and wanted in response.json()["detail"], response


def test_series_over_the_limit_are_added_up_as_one(server):
    client = Tenant(server).api("ingest", "read")
    for pod in range(137):
        body = make_profile(
            CPU, BEGIN + pod % 3 * MINUTE, {("main",): [1, pod + 1]}, ("cpu", "nanoseconds")
        )
        assert (
            client.post("/api/v1/profiles", body=body, query={"label": f"pod={pod:03}"}).status
            == 200
        )

    def query_range(**more):
        return get(
            client,
            "/api/v1/query_range",
            (BEGIN, BEGIN + HOUR),
            query=CPU_NAMES[1],
            step="1m",
            **{"group_by": "pod", **more},
        )

    response = query_range()
    assert response["group_count"] == 137 and len(response["series"]) == 101
    assert [one["labels"]["pod"] for one in response["series"][:100]] == [
        f"{pod:03}" for pod in range(37, 137)
    ]
    assert response["series"][100]["labels"] == {} and response["series"][100]["other_count"] == 37
    whole = query_range(limit=1000)
    assert whole["group_count"] == len(whole["series"]) == 137
    together = query_range(group_by=[])
    check_largest(whole, response, together)
    alone = query_range(limit=5, other="false")
    assert alone["group_count"] == 137 and alone["series"] == whole["series"][-5:]
    check_largest(whole, query_range(limit=1), together)


@pytest.mark.parametrize(
    "path",
    ["/api/v1/labels", "/api/v1/label/pod/values", "/api/v1/series", "/api/v1/profile_types"],
)
@pytest.mark.parametrize(
    "options, wanted",
    [
        ({"match[]": "cpu{"}, "this { is not closed"),
        ({"start": "now", "end": "now-1h"}, "start must be before end"),
        ({"limit": "0"}, "limit"),
        ({"query": "cpu"}, "query"),
    ],
)
def test_invalid_parameters_of_lists_are_reported(server, path, options, wanted):
    response = Tenant(server).api("read").get(path, query=options)
    assert response.status == 400 and wanted in response.json()["detail"], response


@pytest.mark.parametrize("wire", ["api", "ingest", "push", "otlp"])
def test_a_colon_in_a_sample_type_is_replaced(server, wire):
    """Events of perf have one: "cycles:u"."""
    client = Tenant(server).api("ingest", "read")
    stacks = {("main",): [7]}
    profile = make_profile([("cycles:u", "a:b")], BEGIN, stacks, ("x:y", "count"), 1)
    if wire == "api":
        response = client.post("/api/v1/profiles", profile)
    elif wire == "ingest":
        response = client.post("/ingest", profile, query={"name": "app", "format": "pprof"})
    elif wire == "push":
        response = client.post(
            PUSH,
            push_protobuf([({"service_name": "app"}, [profile])]),
            headers={"Content-Type": PROTO},
        )
    else:
        one = otlp_maker.Profile(("cycles:u", "a:b"), BEGIN, {("main",): 7}, 1, ("x:y", "count"))
        response = client.post(
            OTLP,
            otlp_maker.Request([({"service.name": "app"}, [one])]).json(),
            headers={"Content-Type": JSON},
        )
    assert response.status == 200, response
    window = {"start": BEGIN, "end": BEGIN + HOUR}
    found = client.get("/api/v1/profile_types", query=window).json()["data"]
    assert len(found) == 1 and ":" not in found[0]["name"], found
    parts = [
        found[0][part] for part in ("sample_type", "sample_unit", "period_type", "period_unit")
    ]
    assert parts == ["cycles_u", "a_b", "x_y", "count"]
    name = ":".join([found[0]["name"], *parts])
    response = client.get("/api/v1/query", query={**window, "query": name, "report": "folded"})
    assert response.text == "main 7\n", response


ODD = ("c{pu}", "n s\xff\xfe")


@pytest.mark.parametrize("wire", ["api", "name", "push", "otlp"])
def test_a_listed_type_with_special_characters_can_be_queried(server, wire):
    client = Tenant(server).api("ingest", "read")

    def spoil(body):  # creates invalid UTF-8, which Python does not encode
        return body.replace("\xff\xfe".encode(), b"\xff\xfe\xff\xfe")

    profile = spoil(gzip.decompress(make_profile([ODD], BEGIN, {("main",): [7]}, ODD, 1)))
    if wire == "otlp":
        one = otlp_maker.Profile(ODD, BEGIN, {("main",): 7}, 1, ODD)
        response = client.post(
            OTLP,
            spoil(otlp_maker.Request([({"service.name": "app"}, [one])]).protobuf("1.10")),
            headers={"Content-Type": "application/x-protobuf"},
        )
    elif wire == "push":
        response = client.post(
            PUSH,
            push_protobuf([({"service_name": "app", "__name__": " a{}"}, [profile])]),
            headers={"Content-Type": PROTO},
        )
    else:
        response = client.post(
            "/api/v1/profiles", profile, query={"name": " a{}"} if wire == "name" else {}
        )
    assert response.status == 200, response
    window = {"start": BEGIN, "end": BEGIN + HOUR}
    found = client.get("/api/v1/profile_types", query=window).json()["data"]
    assert len(found) == 1 and "\ufffd" not in str(found), found
    parts = ["c_pu_", "n_s____"] * 2
    first = {"api": "c_pu_", "otlp": "c_pu_"}.get(wire, "_a__")
    assert [
        found[0][part]
        for part in ("name", "sample_type", "sample_unit", "period_type", "period_unit")
    ] == [first, *parts]
    listed = client.get("/api/v1/label/__profile_type__/values", query=window).json()["data"]
    assert len(listed) == 1
    response = client.get("/api/v1/query", query={**window, "query": listed[0], "report": "folded"})
    assert response.text == "main 7\n", response
