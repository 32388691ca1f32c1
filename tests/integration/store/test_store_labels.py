"""Labels of samples (threads, numbers, spans, traces) in queries of the store.

Queries filter and group by these labels. Results equal a plain recomputation
(tests/oracle/store_oracle.py), before and after compaction, and those of shares of the same
profile.
"""

import gzip
import json
import random
import re

import pytest

from conftest import rest_long
from people import Tenant
from test_ingest_wire import JSON, OTLP, PROTO, PUSH, push_protobuf
from test_store import (
    BEGIN,
    CPU,
    CPU_NAMES,
    HEAP,
    HEAP_NAMES,
    HOUR,
    NAMES,
    Source,
    compact,
    in_parts,
    is_unknown,
    make_sources,
    parameters,
)

import otlp_maker
import pprof_maker
import store_oracle

MINUTE = 60 * 10**9
SPANS = [f"{i:016x}" for i in (1, 2**60 + 5, 77)]
TRACES = [f"{i:032x}" for i in (3, 2**120 + 9)]


def make_labelled(types, time_ns, samples, period_type, duration=0):
    """samples: [(stack, labels as pprof_maker.Maker.sample takes them, values)]"""
    maker = pprof_maker.Maker(types)
    locations = {}
    for stack, labels, values in samples:
        for name in stack:
            if name not in locations:
                locations[name] = maker.location([(maker.function(name, name + ".c"), 7)])
        maker.sample([locations[name] for name in reversed(stack)], values, labels)
    maker.scalars(time=time_ns, duration=duration, period=1, period_type=period_type)
    return gzip.compress(maker.bytes(), 1)


def text_of(label):
    """(name, value as text) of a label; a number has its unit after a blank."""
    value = label[1] if isinstance(label[1], str) else f"{label[1]} {label[2]}".strip()
    return label[0], value


def some_labels(rng, is_heap):
    """Random labels as the profilers of Go and OpenTelemetry attach them. The label zone has the
    name of a label of series."""
    labels = []
    if is_heap:
        return [("bytes", rng.choice([16, 4096]), "bytes")] if rng.random() < 0.7 else []
    if rng.random() < 0.6:
        labels.append(("thread", rng.choice(["main", "worker", "a,b"])))
    if rng.random() < 0.2:
        labels.append(("zone", "own"))
    if rng.random() < 0.3:
        labels.append(("cpu.logical_number", rng.randrange(3), ""))
    if rng.random() < 0.3:
        labels += [("span_id", rng.choice(SPANS)), ("trace_id", rng.choice(TRACES))]
    return labels


def send(client, oracle, source, time_ns):
    rng, is_heap = source.rng, source.rng.random() < 0.5
    samples = []
    if is_heap:
        if rng.random() < 0.2:
            source.allocated = {}
        for _ in range(rng.randrange(1, 9)):
            key = source.stack(), tuple(some_labels(rng, True))
            source.allocated[key] = source.allocated.get(key, 0) + rng.randint(1, 10**7)
        for (stack, labels), value in source.allocated.items():
            samples.append((stack, list(labels), [value, rng.randrange(value + 1)]))
    else:
        has_labels = rng.random() < 0.8  # some profiles, and so some granules, have none
        is_idle = rng.random() < 0.15
        for _ in range(0 if is_idle else rng.randrange(1, 15)):
            count = rng.randint(1, 9)
            labels = some_labels(rng, False) if has_labels else []
            samples.append((source.stack(), labels, [count, count * 10_000_000]))
    for part in in_parts(rng, samples):
        send_part(client, oracle, source, time_ns, part, is_heap)


def send_part(client, oracle, source, time_ns, samples, is_heap):
    types, names = (HEAP, HEAP_NAMES) if is_heap else (CPU, CPU_NAMES)
    body = make_labelled(
        types,
        time_ns,
        samples,
        ("space", "bytes") if is_heap else ("cpu", "nanoseconds"),
        0 if is_heap else 10**10,
    )
    response = client.post("/api/v1/profiles", body=body, query=parameters(source.labels))
    assert response.status == 200, response
    if response.json()["duplicate"]:  # both parts are equal
        return
    for i, name in enumerate(names):
        rows = {}
        for stack, labels, values in samples:
            key = stack, tuple(map(text_of, labels))
            rows[key] = rows.get(key, 0) + values[i]
        rows = {key: value for key, value in rows.items() if value}
        oracle.add(source.labels, name, time_ns, rows)


def has(name, *values):
    """A condition on rows: the label has one of the values or, without values, any value."""

    def keeps(labels, own):
        found = [labels[name]] if name in labels else [value for key, value in own if key == name]
        return bool(set(values) & set(found)) if values else bool(found)

    return keeps


def both(one, other):
    return lambda labels, own: one(labels, own) and other(labels, own)


def lacks(keeps):
    return lambda labels, own: not keeps(labels, own)


# Parameters of queries that filter rows, and the condition on (labels of the series, labels of the
# sample) that they mean; None: no condition.
RULES = [
    ({}, None),
    ({"label": "thread=main"}, has("thread", "main")),
    ({"label": ["thread=main", "thread=a,b"]}, has("thread", "main", "a,b")),
    ({"label": "thread!=main"}, lacks(has("thread", "main"))),
    ({"label": "thread="}, lacks(has("thread"))),
    ({"label": "zone=own"}, has("zone", "own")),
    ({"label": ["zone=a", "thread=worker"]}, both(has("zone", "a"), has("thread", "worker"))),
    ({"label": "bytes=1024..8192 bytes"}, has("bytes", "4096 bytes")),
    ({"label": "cpu.logical_number=1.."}, has("cpu.logical_number", "1", "2")),
    ({"span_selector": SPANS[1]}, has("span_id", SPANS[1])),
    ({"span_selector": [SPANS[0], SPANS[2].upper()]}, has("span_id", SPANS[0], SPANS[2])),
    ({"trace_id_selector": TRACES[1], "label": "span_id!="}, has("trace_id", TRACES[1])),
    ({"label": "absent=1"}, lambda labels, own: False),
]
GROUPS = [
    "thread",
    "zone",
    "span_id",
    "trace_id",
    "bytes",
    "cpu.logical_number",
    "pod",
    "service_name",
]


# Conditions of selectors on labels of series and on labels that only samples have.
CONDITIONS = [
    [],
    [("service_name", "=", "s1")],
    [("service_name", "!=", "s1"), ("pod", "=~", "p[0-4]")],
    [("zone", "=", "")],
    [("zone", "!~", "a|b"), ("pod", "!=", "p0")],
    [("pod", "=~", "p\\d"), ("zone", "=~", "a|c")],
    [("thread", "=", "main")],
    [("thread", "!=", "main"), ("service_name", "=", "s1")],
    [("thread", "=", "")],
    [("thread", "!=", "")],
    [("thread", "=~", "w.*|a,b")],
    [("thread", "!~", "main|worker")],
    [("zone", "=", "own")],
    [("pod", "=~", "p[1-6]"), ("thread", "=", "main")],
    [("cpu_logical_number", "=", "1")],
    [("cpu.logical_number", "=~", "[12]")],
    [("bytes", "=", "4096 bytes")],
    [("bytes", "!=", "16")],
    [("span_id", "=", SPANS[1])],
    [("trace_id", "!=", TRACES[0])],
    [("absent", "=", "1")],
    [("pod", "=", "none")],
]


def compared(values, comparison, value):
    """Whether one of the values matches or, for a negative comparison, none does."""
    is_match = any(
        re.fullmatch(value, one) if "~" in comparison else one == value for one in values
    )
    return is_match == (comparison in ("=", "=~"))


def values_of_own(own, name):
    """The values of a sample's label; a number matches with and without its unit."""
    found = [value for key, value in own if key.replace(".", "_") == name]
    return {
        *found,
        *(value.split(" ")[0] for value in found if name in ("bytes", "cpu_logical_number")),
    } or [""]


def some_selector(rng, keeps):
    """(selector, condition on the labels of series, condition on the labels of their samples, the
    same combined with keeps)."""
    conditions = [
        (label.replace(".", "_"), comparison, value)
        for label, comparison, value in rng.choice(CONDITIONS)
    ]

    def matches(labels):
        return all(
            compared([labels[label]], *rest) for label, *rest in conditions if label in labels
        )

    def finds(labels, own):
        return all(
            compared(values_of_own(own, label), *rest)
            for label, *rest in conditions
            if label not in labels
        )

    text = ",".join(f"{label}{comparison}`{value}`" for label, comparison, value in conditions)
    return "{" + text + "}" if text else "", matches, finds, both(keeps, finds) if keeps else finds


def some_window(rng):
    start = BEGIN - HOUR // 2 + rng.randrange(3 * HOUR)
    return start, start + rng.choice([MINUTE, 10 * MINUTE, HOUR, 9 * HOUR])


def fetch(client, path, window, **more):
    return client.get(
        path,
        query=[("start", window[0]), ("end", window[1])]
        + [
            (key, value)
            for key, values in more.items()
            for value in (values if isinstance(values, list) else [values])
        ],
    )


def check_merge(client, oracle, rng):
    """Compares a random query for a merged profile with the oracle."""
    name, window = rng.choice(NAMES), some_window(rng)
    rules, keeps = rng.choice(RULES)
    selector, matches, finds, keeps = some_selector(rng, keeps)
    group_by = rng.choice([None, *GROUPS])
    more = {"group_by": rng.choice([group_by, "label:" + group_by])} if group_by else {}
    response = fetch(
        client, "/api/v1/query", window, query=name + selector, report="folded", **rules, **more
    )
    if is_unknown(response, oracle, name, window):
        return
    expected = oracle.merge(name, matches, *window, group_by, keeps)
    if response.status == 400:  # no row has the label
        assert f"group_by: '{group_by}' is no label" in response.json()["detail"]
        assert all(stack[0] == f"(no {group_by})" for stack in expected)
        return
    assert response.status == 200, response
    rows = [line.rpartition(" ")[::2] for line in response.text.splitlines()]
    assert {tuple(stack.split(";")): int(value) for stack, value in rows} == expected, (
        name,
        selector,
        window,
        rules,
        group_by,
    )
    if rules and store_oracle.rule_of(name) != "mean":
        top = fetch(
            client, "/api/v1/query", window, query=name + selector, report="top", **rules
        ).json()
        merged = oracle.merge(name, matches, *window, None, finds)
        total = sum(merged.values())
        # For counters, the sum of filtered rows is scaled to the window once and not per stack.
        tolerance = len(merged) + 1 if store_oracle.rule_of(name) == "difference" else 0
        assert top["kept"] == sum(expected.values())
        # A label that no series has and no block lists for its samples selects no series.
        assert abs(top["total"] - total) <= tolerance or (not expected and top["total"] == 0)


def check_over_time(client, oracle, rng):
    """Compares a random query for values over time with the oracle."""
    name, window = rng.choice(NAMES), some_window(rng)
    rules, keeps = rng.choice(RULES)
    selector, matches, _, keeps = some_selector(rng, keeps)
    group_by = rng.choice(
        [[], ["thread"], ["zone", "thread"], ["bytes"], ["span_id", "pod"], ["absent"]]
    )
    focus = rng.choice([None, "f1"])
    step = max(rng.choice([MINUTE, 20 * MINUTE, HOUR]), (window[1] - window[0]) // 100)
    more = {"focus": focus} if focus else {}
    response = fetch(
        client,
        "/api/v1/query_range",
        window,
        query=name + selector,
        group_by=group_by,
        step=f"{step // 10**9}s",
        limit=1000,
        **rules,
        **more,
    )
    step = step // 10**9 * 10**9
    expected = oracle.over_time(
        name,
        matches,
        *window,
        step,
        group_by,
        (lambda stack: any("f1" in name for name in stack)) if focus else None,
        keeps,
    )
    if not expected and is_unknown(response, oracle, name, window):
        return
    assert response.status == 200, response
    found = {
        tuple(one["labels"][label] for label in group_by): dict(map(tuple, one["points"]))
        for one in response.json()["series"]
    }
    expected = {
        key: {(window[0] + number * step) // 10**6: value for number, value in points.items()}
        for key, points in expected.items()
    }
    assert store_oracle.are_equal(found, expected), (
        name,
        selector,
        window,
        step,
        rules,
        group_by,
        focus,
    )


def check_all(client, oracle, rng):
    for _ in range(150):
        check_merge(client, oracle, rng)
        check_over_time(client, oracle, rng)


@pytest.mark.long
@pytest.mark.parametrize("seed", rest_long([11, 12]))
def test_results_equal_a_plain_recomputation(shared_server, seed):
    server = shared_server("--jobs-interval", "1s")
    rng = random.Random(seed)
    client, oracle = Tenant(server).api("ingest", "read"), store_oracle.Oracle()
    sources = make_sources(rng)
    for _ in range(120):
        send(client, oracle, rng.choice(sources), BEGIN + rng.randrange(6 * HOUR))
    check_all(client, oracle, rng)
    compact(server)
    check_all(client, oracle, rng)


def test_samples_are_attributed_to_the_times_of_their_timestamps(shared_server):
    server = shared_server("--jobs-interval", "1s")
    rng = random.Random(13)
    client, oracle, timestamps = Tenant(server).api("ingest", "read"), store_oracle.Oracle(), {}
    name = "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta"
    for _ in range(20):
        time_ns = BEGIN + rng.randrange(HOUR)
        stacks = {("main", f"f{i}"): rng.randint(1, 1000) for i in range(rng.randint(1, 6))}
        timestamps[time_ns] = {
            stack: [time_ns + rng.randrange(10 * 10**9) for _ in range(rng.randint(1, 5))]
            for stack in stacks
            if rng.random() < 0.7
        }
        profile = otlp_maker.Profile(
            ("cpu", "nanoseconds"),
            time_ns,
            stacks,
            1,
            ("cpu", "nanoseconds"),
            10**10,
            timestamps[time_ns],
        )
        body = otlp_maker.Request([({"service.name": "shop"}, [profile])]).protobuf()
        response = client.post(
            "/v1development/profiles", body=body, headers={"Content-Type": "application/x-protobuf"}
        )
        assert response.status == 200, response
        oracle.add({"service_name": "shop"}, name, time_ns, stacks)

    def check():
        for _ in range(30):
            window = BEGIN + rng.randrange(HOUR), BEGIN + 2 * HOUR
            if rng.random() < 0.5:  # the window of one profile, in steps of a second
                time_ns = rng.choice(sorted(timestamps))
                window = time_ns, time_ns + 10 * 10**9
            step = 10**9 if window[1] - window[0] < HOUR else MINUTE
            response = fetch(
                client,
                "/api/v1/query_range",
                window,
                query=name,
                step=f"{step // 10**9}s",
                by_timestamps="true",
            ).json()
            found = [dict(map(tuple, one["points"])) for one in response["series"]] or [{}]
            expected = oracle.by_timestamps(name, lambda labels: True, *window, step, timestamps)
            assert found[0] == {
                (window[0] + number * step) // 10**6: value for number, value in expected.items()
            }

    check()
    compact(server)
    check()


def one_profile(server):
    """(client, id of a share, window and query that select the same profile in the store)."""
    client = Tenant(server).api("ingest", "read", "share")
    samples = [
        (("main", "work"), [("thread", "a"), ("bytes", 16, "bytes")], [1, 10]),
        (("main", "work"), [("thread", "b"), ("thread", "c")], [2, 20]),
        (("main",), [("span_id", SPANS[0]), ("trace_id", TRACES[0])], [4, 40]),
        (("main",), [], [8, 80]),
    ]
    body = make_labelled(CPU, BEGIN, samples, ("cpu", "nanoseconds"), 10**10)
    assert client.post("/api/v1/profiles", body=body, query={"label": "pod=p"}).status == 200
    later = make_labelled(
        CPU,
        BEGIN + 1,
        [(stack, labels, [2 * value for value in values]) for stack, labels, values in samples],
        ("cpu", "nanoseconds"),
        10**10,
    )
    assert client.post("/api/v1/profiles", body=later, query={"label": "pod=q"}).status == 200
    share = client.post("/api/v1/shares", body=body).json()["id"]
    return client, share, {"query": CPU_NAMES[1], "start": BEGIN, "end": BEGIN + 1}


@pytest.mark.parametrize(
    "more",
    [
        {"group_by": "thread"},
        {"group_by": "bytes"},
        {"group_by": "label:span_id"},
        {"label": "thread=c"},
        {"label": "bytes=..20"},
        {"group_by": "thread", "label": "span_id="},
        {"label": "span_id!="},
    ],
)
def test_queries_by_labels_agree_with_shares(server, more):
    client, share, window = one_profile(server)
    top = client.get("/api/v1/query", query={**window, "report": "top", **more}).json()
    expected = client.get(
        f"/api/v1/shares/{share}/top", query={"sample_type": "cpu", **more}
    ).json()
    assert top["functions"] == expected["functions"] and expected["functions"]
    assert (top["total"], top["kept"]) == (expected["total"], expected["kept"])
    # A diff of the share and the query of the same profile has no differences.
    sides = {"a": share, "b_query": window["query"], "b_start": BEGIN, "b_end": BEGIN + 1}
    response = client.get("/api/v1/diff/top", query={**sides, "sample_type": "cpu", **more})
    assert response.status == 200, response
    found = response.json()
    assert found["total_a"] == found["total_b"] == 150
    assert {one["name"] for one in found["functions"]} == {
        one["name"] for one in expected["functions"]
    }
    assert all(
        one["cum_a"] == one["cum_b"] and one["flat_delta"] == 0 for one in found["functions"]
    )
    # A diff of two queries is normalised by their totals, as a diff of shares is.
    other = {"b_query": window["query"], "b_start": BEGIN, "b_end": BEGIN + 2}
    both = {"a_query": window["query"], "a_start": BEGIN, "a_end": BEGIN + 1, **other, **more}
    for mode in ("absolute", "normalised"):
        found = client.get("/api/v1/diff/top", query={**both, "mode": mode}).json()
        times = 1 if mode == "normalised" else 3
        assert (found["total_a"], found["total_b"]) == (150, 150 * times)
        assert {one["name"]: one["cum_a"] for one in found["functions"]} == {
            one["name"]: one["cum"] for one in expected["functions"]
        }
        assert all(one["cum_b"] == times * one["cum_a"] for one in found["functions"])


def label_totals(response):
    """The totals of the values of each label of samples. Numbers of samples are omitted, because a
    query counts the stacks that differ in the requested labels."""
    return {
        one["key"]: (
            one["total"],
            one["without"]["total"],
            [(value["value"], value["total"], value["filter"]) for value in one["values"]],
        )
        for one in response.json()["labels"]
        if one["key"] != "pod"
    }


def test_label_counts_of_queries_agree_with_those_of_shares(server):
    client, share, window = one_profile(server)
    sides = {f"{side}_{name}": value for side in "ab" for name, value in window.items()}
    for more in (
        {},
        {"key": "thread"},
        {"key": "span_id"},
        {"label": "thread=a"},
        {"focus": "work", "key": "bytes"},
    ):
        expected = label_totals(
            client.get(f"/api/v1/shares/{share}/labels", query={"sample_type": "cpu", **more})
        )
        expected = {
            key: one for key, one in expected.items() if more.get("key") or not key.endswith("_id")
        }
        response = client.get("/api/v1/query", query={**window, "report": "labels", **more})
        assert response.status == 200 and label_totals(response) == expected and expected, response
        found = client.get("/api/v1/diff/labels", query={**sides, **more}).json()["labels"]
        assert {one["key"]: one["total_a"] for one in found if one["key"] != "pod"} == {
            key: total for key, (total, *_) in expected.items()
        }
        assert all(one["total_a"] == one["total_b"] for one in found)
    pods = client.get(
        "/api/v1/query", query={**window, "end": BEGIN + 2, "report": "labels", "key": "pod"}
    ).json()
    assert [(one["value"], one["total"]) for one in pods["labels"][0]["values"]] == [
        ("q", 300),
        ("p", 150),
    ]
    response = client.get("/api/v1/query", query={**window, "report": "labels", "key": "thred"})
    assert (
        response.status == 400
        and "key: 'thred' is no label of what the query finds" in response.json()["detail"]
    )


def test_a_share_of_a_query_keeps_the_requested_labels(server):
    client, share, window = one_profile(server)

    def kept(*names):
        made = client.post(
            "/api/v1/shares", query=[*window.items(), *(("keep_label", name) for name in names)]
        )
        assert made.status == 201, made
        return made.json()["id"]

    def keys(one):
        return {
            label["key"] for label in client.get(f"/api/v1/shares/{one}/labels").json()["labels"]
        }

    assert keys(kept()) == set()
    assert keys(kept("thread", "span_id")) == {"thread", "span_id"}
    assert keys(kept("*")) == {"thread", "bytes", "pod"}
    assert keys(kept("*", "trace_id")) == {"thread", "bytes", "pod", "trace_id"}
    rules = {"sample_type": "cpu", "label": "thread=c"}
    expected = client.get(f"/api/v1/shares/{share}/top", query=rules).json()
    assert (
        client.get(f"/api/v1/shares/{kept('thread')}/top", query=rules).json()["functions"]
        == expected["functions"]
    )
    for name, words in (
        ("thred", "keep_label: 'thred' is no label"),
        ("", "keep_label must be a label's name"),
    ):
        response = client.post("/api/v1/shares", query=[*window.items(), ("keep_label", name)])
        assert response.status == 400 and words in response.json()["detail"]


def test_two_queries_are_compared_by_labels(server):
    client, _, window = one_profile(server)
    sides = {f"{side}_{name}": value for side in "ab" for name, value in window.items()}
    for more in (
        {"group_by": "thread"},
        {"group_by": "pod"},
        {"label": "thread=a"},
        {"label": "absent=1"},
    ):
        response = client.get("/api/v1/diff/top", query={**sides, **more})
        assert response.status == 200, response
    response = client.get("/api/v1/diff/top", query={**sides, "group_by": "thred"})
    assert (
        response.status == 400 and "cannot group by 'thred'" in response.json()["detail"]
    ), response


def test_a_pprof_report_contains_the_requested_labels(server):
    client, _, window = one_profile(server)
    response = client.get(
        "/api/v1/query", query={**window, "report": "pprof", "group_by": "thread"}
    )
    share = client.post("/api/v1/shares", body=response.body).json()["id"]
    labels = client.get(f"/api/v1/shares/{share}/labels").json()
    assert [one["key"] for one in labels["labels"]] == ["thread"]
    response = client.get("/api/v1/query", query={**window, "report": "pprof", "group_by": "line"})
    assert (
        response.status == 400 and "group_by of pprof must be a label" in response.json()["detail"]
    )


@pytest.mark.parametrize(
    "more, expected",
    [
        (
            {"group_by": "thred"},
            "group_by: 'thred' is no label of what the query finds, which has ",
        ),
        ({"label": "thread"}, "label: 'thread' is not written key=value"),
        ({"span_selector": "12"}, "span_selector must be an id of 16 hexadecimal digits"),
        (
            {"trace_id_selector": SPANS[0]},
            "trace_id_selector must be an id of 32 hexadecimal digits",
        ),
        ({"label": [f"a=b{i}" for i in range(40)]}, "more than 32"),
    ],
)
def test_an_invalid_label_parameter_is_named(server, more, expected):
    client, _, window = one_profile(server)
    response = fetch(client, "/api/v1/query", (BEGIN, BEGIN + 1), query=window["query"], **more)
    assert response.status == 400 and expected in response.json()["detail"], response


@pytest.mark.parametrize("name", ["by_timestamps", "moments"])  # the old name is accepted
def test_by_timestamps_is_refused_for_types_that_are_no_deltas(server, name):
    client, _, window = one_profile(server)
    heap = make_labelled(HEAP, BEGIN, [(("main",), [], [1, 10])], ("space", "bytes"))
    assert client.post("/api/v1/profiles", body=heap).status == 200
    for query in HEAP_NAMES:
        response = client.get("/api/v1/query_range", query={**window, "query": query, name: "true"})
        assert response.status == 400 and "is not a delta" in response.json()["detail"], response


def test_labels_without_samples_in_the_window_give_an_empty_report(server):
    client, _, window = one_profile(server)
    response = client.get(
        "/api/v1/query",
        query={**window, "group_by": "thread", "label": "thread=x", "report": "top"},
    )
    assert response.status == 200 and response.json()["functions"] == []


# ---- labels of samples that make series ----

SPLIT = [
    (("main", "a"), {"endpoint": "/x", "thread": "t1"}, 3),
    (("main", "b"), {"endpoint": "/y"}, 5),
    (("main", "a"), {"endpoint": 7}, 11),
    (("main",), {}, 13),
]
SPLIT_SERIES = {"/x": 3, "/y": 5, "": 24}
SPLIT_TOTALS = {"/x": 3, "/y": 5, "7": 11, "": 13}  # numeric labels make no series


def pprof_with_labels():
    samples = [
        (
            stack,
            [
                (name, value) if isinstance(value, str) else (name, value, "")
                for name, value in labels.items()
            ],
            [value],
        )
        for stack, labels, value in SPLIT
    ]
    return make_labelled([("samples", "count")], BEGIN, samples, ("samples", "count"))


def otlp_with_labels():
    profile = otlp_maker.Profile(
        ("samples", "count"), BEGIN, {("main", "a"): 1, ("main", "b"): 1, ("main",): 1}
    )
    document = json.loads(otlp_maker.Request([({"service.name": "app"}, [profile])]).json())
    table = document["dictionary"]
    stacks = {
        stack: index for index, stack in enumerate([(), ("main", "a"), ("main", "b"), ("main",)])
    }
    samples = []
    for stack, labels, value in SPLIT:
        indices = []
        for name, label_value in labels.items():
            table["stringTable"].append({"endpoint": "end.point"}.get(name, name))
            table["attributeTable"].append(
                {
                    "keyStrindex": len(table["stringTable"]) - 1,
                    "value": {"stringValue": label_value}
                    if isinstance(label_value, str)
                    else {"intValue": str(label_value)},
                }
            )
            indices.append(len(table["attributeTable"]) - 1)
        samples.append(
            {"stackIndex": stacks[stack], "attributeIndices": indices, "values": [str(value)]}
        )
    document["resourceProfiles"][0]["scopeProfiles"][0]["profiles"][0]["samples"] = samples
    return json.dumps(document).encode()


def send_labelled(client, wire):
    if wire == "api":
        return client.post(
            "/api/v1/profiles", pprof_with_labels(), query={"label": "service_name=app"}
        )
    if wire == "ingest":
        return client.post("/ingest", pprof_with_labels(), query={"name": "app", "format": "pprof"})
    if wire == "push":
        body = push_protobuf([({"service_name": "app"}, [pprof_with_labels()])])
        return client.post(PUSH, body, headers={"Content-Type": PROTO})
    return client.post(OTLP, otlp_with_labels(), headers={"Content-Type": JSON})


@pytest.mark.parametrize("wire", ["api", "ingest", "push", "otlp"])
def test_chosen_labels_of_samples_make_series(server, wire):
    tenant = Tenant(server)
    owner, client = tenant.user("owner"), tenant.api("ingest", "read")
    name = "end_point" if wire == "otlp" else "endpoint"
    assert owner.get("/api/v1/tenant").json()["sample_labels"] == ""
    changed = owner.patch("/api/v1/tenant", json={"sample_labels": "end.point, endpoint, other"})
    assert changed.json()["sample_labels"] == "end_point,endpoint,other", changed
    assert send_labelled(client, wire).status == 200
    window = {"start": BEGIN, "end": BEGIN + HOUR}
    series = client.get("/api/v1/series", query=window).json()["data"]
    assert sorted(one.get(name, "") for one in series) == sorted(SPLIT_SERIES)
    assert not any("thread" in one for one in series)
    for value, total in SPLIT_TOTALS.items():
        response = client.get(
            "/api/v1/query",
            query={**window, "query": f'{{service_name="app",{name}="{value}"}}', "report": "top"},
        )
        assert response.json()["total"] == total, response.json()
    response = client.get(
        "/api/v1/query",
        query={**window, "query": '{service_name="app"}', "report": "folded", "label": "thread=t1"},
    )
    assert response.text == "main;a 3\n", "the label thread should stay with its sample"


def test_the_server_setting_chooses_labels_unless_the_team_does(start_server):
    server = start_server("--tenant-sample-labels", "endpoint")
    tenant = Tenant(server)
    owner, client = tenant.user("owner"), tenant.api("ingest", "read")
    window = {"start": BEGIN, "end": BEGIN + HOUR}
    assert owner.get("/api/v1/tenant").json()["sample_labels"] == "endpoint"
    token = owner.post("/api/v1/tokens", json={"name": "a", "scopes": ["admin", "read"]}).json()[
        "token"
    ]
    for argument, kept in (
        ("sample_labels=", ""),
        ("sample_labels=null", "endpoint"),
        ("sample_labels=", ""),
    ):
        done = server.cli("admin", "team", "set", argument, environment={"PERFOLIO_TOKEN": token})
        assert (
            done.returncode == 0 and owner.get("/api/v1/tenant").json()["sample_labels"] == kept
        ), done
    assert send_labelled(client, "api").status == 200
    assert len(client.get("/api/v1/series", query=window).json()["data"]) == 1
    for wrong, word in (
        ("thread.name", "thread.name"),
        ("a,span_id", "span_id"),
        (",".join(f"n{i}" for i in range(17)), "16"),
        (7, "sample_labels"),
    ):
        response = owner.patch("/api/v1/tenant", json={"sample_labels": wrong})
        assert response.status in (400, 413) and word in response.json()["detail"], response
    assert client.patch("/api/v1/tenant", json={"sample_labels": ""}).status == 403
    assert tenant.user("viewer").patch("/api/v1/tenant", json={"sample_labels": ""}).status == 403


def test_an_operator_chooses_labels_for_one_tenant(start_server):
    server = start_server("--tenant-sample-labels", "region")
    operator = server.api()
    made = operator.post(
        "/api/v1/admin/tenants", json={"name": "chosen", "sample_labels": "end.point,pod"}
    )
    assert made.status == 201 and made.json()["sample_labels"] == "end_point,pod", made
    tenant = Tenant(server)
    owner, path = tenant.user("owner"), f"/api/v1/admin/tenants/{tenant.id}"
    assert operator.get(path).json()["sample_labels"] is None
    for argument, own, counts in (
        ("sample_labels=end.point", "end_point", "end_point"),
        ("sample_labels=", "", ""),
        ("sample_labels=null", None, "region"),
        ("sample_labels=endpoint", "endpoint", "endpoint"),
    ):
        done = server.cli("admin", "tenant", "set", str(tenant.id), argument)
        assert done.returncode == 0, done
        assert operator.get(path).json()["sample_labels"] == own
        assert owner.get("/api/v1/tenant").json()["sample_labels"] == counts
    assert operator.patch(path, json={"active_series": 100}).json()["sample_labels"] == "endpoint"
    response = operator.patch(path, json={"sample_labels": "thread.name"})
    assert (
        response.status == 400
        and "sample_labels: 'thread.name' cannot make series" in response.json()["detail"]
    ), response
    client = tenant.api("ingest", "read")
    assert send_labelled(client, "api").status == 200
    series = client.get("/api/v1/series", query={"start": BEGIN, "end": BEGIN + HOUR}).json()[
        "data"
    ]
    assert sorted(one.get("endpoint", "") for one in series) == sorted(SPLIT_SERIES)


@pytest.mark.long
def test_memory_does_not_grow_with_values_times_steps(server):
    """A cell per value and step would take 3.8 GB. The largest values come last."""
    count, window = 100_000, {"start": BEGIN, "end": BEGIN + 10 * HOUR}
    client = Tenant(server, query_memory_bytes=128 << 20).api("ingest", "read")
    samples = [(("main",), [("request", f"r{n:06}", "")], [1, n + 1]) for n in range(count)]
    for at in range(2):
        body = make_labelled(
            CPU,
            BEGIN + at * HOUR,
            samples[at * count // 2 : (at + 1) * count // 2],
            ("cpu", "nanoseconds"),
            10**10,
        )
        assert (
            client.post("/api/v1/profiles", body=body, query={"label": "service_name=app"}).status
            == 200
        )
    response = client.get(
        "/api/v1/query_range",
        query={"query": CPU_NAMES[1], **window, "step": "1m", "group_by": "request", "limit": 3},
    )
    assert response.status == 200, response
    *largest, other = response.json()["series"]
    assert [
        (one["labels"]["request"], sum(value for _, value in one["points"])) for one in largest
    ] == [(f"r{n:06}", n + 1) for n in range(count - 3, count)]
    assert other["other_count"] == count - 3
    total = count * (count + 1) // 2
    assert sum(value for one in response.json()["series"] for _, value in one["points"]) == total


def test_series_of_sample_labels_count_as_active_series(server):
    tenant = Tenant(server, active_series=2)
    assert (
        tenant.user("owner").patch("/api/v1/tenant", json={"sample_labels": "endpoint"}).status
        == 200
    )
    response = send_labelled(tenant.api("ingest", "read"), "api")
    assert response.status == 429 and "active_series is 2" in response.json()["detail"], response
