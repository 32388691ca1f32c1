"""Shares of query results: they equal a plain recomputation
(tests/oracle/store_oracle.py), state their origin, and follow the rules of all shares."""

import gzip
import sys
import time

import pytest

from conftest import ROOT
from people import Tenant
from test_store import BEGIN, CPU, CPU_NAMES, HEAP, HEAP_NAMES, HOUR, make_profile

sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import store_oracle  # noqa: E402

SECOND = 10**9
WINDOW = {"start": BEGIN, "end": BEGIN + HOUR}


def fill(client, oracle, pod, time_ns, stacks, is_heap=False):
    """Sends a profile and adds it to the oracle; stacks: {names from the root: both values}"""
    types, names = (HEAP, HEAP_NAMES) if is_heap else (CPU, CPU_NAMES)
    period = ("space", "bytes") if is_heap else ("cpu", "nanoseconds")
    body = make_profile(types, time_ns, stacks, period, 0 if is_heap else 10**10)
    assert client.post("/api/v1/profiles", body=body, query={"label": f"pod={pod}"}).status == 200
    for i, name in enumerate(names):
        oracle.add(
            {"pod": pod}, name, time_ns, {stack: values[i] for stack, values in stacks.items()}
        )


class Filled:
    """A team with two pods that have three profiles each, one per hour."""

    def __init__(self, server):
        self.tenant, self.oracle = Tenant(server), store_oracle.Oracle()
        self.client = self.tenant.api("ingest", "read", "share")
        for i in range(6):
            stacks = {
                ("main", "work"): [3 + i, 30 + i],
                ("main", f"f{i}"): [1, 10],
                ("idle",): [2, i],
            }
            fill(self.client, self.oracle, f"p{i % 2}", BEGIN + i * HOUR // 2, stacks)
            heap = {("main", "alloc"): [100 + 7 * i, 50 + i], ("main", f"h{i % 3}"): [10, 3]}
            fill(self.client, self.oracle, f"p{i % 2}", BEGIN + i * HOUR // 2 + SECOND, heap, True)

    def merge(self, name, start, end, pod=None):
        return self.oracle.merge(name, lambda labels: pod in (None, labels["pod"]), start, end)


@pytest.fixture(scope="module")
def filled(server):
    return Filled(server)


def share_query(client, **options):
    headers = options.pop("headers", {})
    body = options.pop("body", None)
    return client.post("/api/v1/shares", query=options, headers=headers, body=body)


def folded(client, share):
    text = client.get(f"/p/{share}.folded").text
    return {
        tuple(stack.split(";")): int(value)
        for stack, _, value in (line.rpartition(" ") for line in text.splitlines())
    }


@pytest.mark.parametrize("name", CPU_NAMES + HEAP_NAMES)
def test_a_shared_query_has_the_values_of_its_window(filled, name):
    for start, end in (
        (BEGIN, BEGIN + HOUR),
        (BEGIN + HOUR, BEGIN + 9 * HOUR),
        (BEGIN, BEGIN + 4 * HOUR),
    ):
        response = share_query(filled.client, query=name + '{pod=~"p."}', start=start, end=end)
        wanted = filled.merge(name, start, end)
        assert response.status == (201 if wanted else 400), response
        if not wanted:  # counters: one snapshot per series gives no delta
            assert (store_oracle.rule_of(name), end) == ("difference", BEGIN + HOUR)
            continue
        assert response.headers["perfolio-rule"] == store_oracle.rule_of(name)
        assert folded(filled.client, response.json()["id"]) == wanted


def test_a_shared_query_states_its_origin(filled):
    selector = CPU_NAMES[1] + '{pod="p1"}'
    made = share_query(
        filled.client, query=selector, visibility="team", label="why=test", expires="2d", **WINDOW
    ).json()
    assert set(made) == {
        "id",
        "url",
        "raw_url",
        "delete_token",
        "delete_url",
        "expires_at",
        "markdown",
    }
    share = filled.client.get(f"/api/v1/shares/{made['id']}").json()
    window = [
        time.strftime("%-d %b %Y, %H:%M", time.gmtime(ns // 10**9))
        for ns in (BEGIN, BEGIN + HOUR)
    ]
    assert share["title"].startswith(f"CPU time, pod=p1, {window[0]}–") and share["title"].endswith(
        " UTC"
    ), share["title"]
    assert share["title"].removesuffix(" UTC").endswith(window[1][-5:])
    later = share_query(filled.client, query=selector, start=BEGIN, end=BEGIN + 2 * HOUR).json()
    assert (
        filled.client.get(f"/api/v1/shares/{later['id']}").json()["title"] != share["title"]
    ), "titles of different windows must differ"
    assert (share["visibility"], share["labels"]) == ("team", {"why": "test"})
    assert (share["filename"], share["format"]) == ("query.pb.gz", "pprof")
    raw = filled.client.get(f"/api/v1/shares/{made['id']}/raw").body
    text = gzip.decompress(raw).decode(errors="replace")
    for part in (
        f"query: {selector}",
        f"({BEGIN} <= time_nanos < {BEGIN + HOUR})",
        f"profile type: {CPU_NAMES[1]}",
        "rule: sum",
    ):
        assert part in text, part
    titled = share_query(
        filled.client, query=selector, title="mine", filename="a.pb.gz", **WINDOW
    ).json()
    share = filled.client.get(f"/api/v1/shares/{titled['id']}").json()
    assert (share["title"], share["filename"]) == ("mine", "a.pb.gz")


def test_a_repeated_request_shares_the_query_once(filled):
    options = {"query": CPU_NAMES[0], "headers": {"Idempotency-Key": "share-once"}}
    made = [share_query(filled.client, **options, **WINDOW).json() for _ in range(2)]
    assert made[0] == made[1]
    other = share_query(filled.client, query=CPU_NAMES[1], headers=options["headers"], **WINDOW)
    assert other.status == 409, other


def test_the_upload_quota_applies_to_shared_queries(server):
    tenant = Tenant(server, uploads_per_minute=2)
    client = tenant.api("ingest", "read", "share")
    fill(client, store_oracle.Oracle(), "a", BEGIN, {("main",): [1, 10]})
    statuses = [share_query(client, query=CPU_NAMES[0], **WINDOW).status for _ in range(3)]
    assert statuses == [201, 201, 429]


@pytest.mark.parametrize(
    "options, status, wanted",
    [
        ({"query": CPU_NAMES[0] + '{pod="none"}'}, 400, "finds no sample from 20"),
        ({"query": CPU_NAMES[0], "start": "now-1h", "end": "now"}, 400, "finds no sample"),
        ({"query": ""}, 400, "query is missing"),
        ({"query": "cpu{"}, 400, "this { is not closed at character 4"),
        ({"query": "process_cpu"}, 400, "2 profile types match"),
        ({"query": CPU_NAMES[0], "start": "then"}, 400, "start"),
        ({"query": CPU_NAMES[0], "report": "top"}, 400, "report"),
        ({"query": CPU_NAMES[0], "visibility": "secret"}, 400, "visibility"),
        ({"query": CPU_NAMES[0], "body": b"main 1\n"}, 400, "leave out the body"),
    ],
)
def test_invalid_requests_to_share_a_query_are_refused(filled, options, status, wanted):
    response = share_query(filled.client, **{**WINDOW, **options})
    assert response.status == status and wanted in response.json()["detail"], response


def test_sharing_a_query_requires_both_scopes(filled, server):
    for scopes in (["read"], ["share"], ["ingest", "share"]):
        response = share_query(filled.tenant.api(*scopes), query=CPU_NAMES[0], **WINDOW)
        assert response.status == 403 and "scope" in response.json()["detail"], (scopes, response)
    response = share_query(server.anonymous(), query=CPU_NAMES[0], **WINDOW)
    assert response.status == 401, response


# ---- differences ----


def diff_top(client, **options):
    response = client.get("/api/v1/diff/top", query={"limit": 0, **options})
    assert response.status == 200, response
    return {row["name"]: (row["cum_a"], row["cum_b"]) for row in response.json()["functions"]}


def cums(rows):
    total = {}
    for stack, value in rows.items():
        for name in set(stack):
            total[name] = total.get(name, 0) + value
    return total


def compared(a, b):
    a, b = cums(a), cums(b)
    return {name: (a.get(name, 0), b.get(name, 0)) for name in a.keys() | b.keys()}


FIRST = (BEGIN, BEGIN + HOUR)
SECOND_HOUR = (BEGIN + HOUR, BEGIN + 2 * HOUR)


def side(name, query, window=None):
    options = {f"{name}_query": query}
    if window:
        options[f"{name}_start"], options[f"{name}_end"] = window
    return options


@pytest.mark.parametrize("name", [CPU_NAMES[1], HEAP_NAMES[1]])
def test_two_windows_are_compared(filled, name):
    wanted = compared(filled.merge(name, *FIRST), filled.merge(name, *SECOND_HOUR))
    sides = {**side("a", name, FIRST), **side("b", name, SECOND_HOUR)}
    assert diff_top(filled.client, **sides) == wanted
    assert diff_top(filled.client, **sides, ignore="^idle$") == {
        key: value for key, value in wanted.items() if key != "idle"
    }


def test_a_side_without_a_window_uses_that_of_the_other(filled):
    name, window = CPU_NAMES[0], (BEGIN, BEGIN + 3 * HOUR)
    pods = [f'{name}{{pod="p{i}"}}' for i in range(2)]
    wanted = compared(filled.merge(name, *window, "p0"), filled.merge(name, *window, "p1"))
    for windows in ((window, None), (None, window), (window, window)):
        sides = {**side("a", pods[0], windows[0]), **side("b", pods[1], windows[1])}
        assert diff_top(filled.client, **sides) == wanted


def test_a_query_is_compared_with_a_share(filled):
    name = CPU_NAMES[1]
    share = share_query(filled.client, query=name, start=FIRST[0], end=FIRST[1]).json()["id"]
    first, second = filled.merge(name, *FIRST), filled.merge(name, *SECOND_HOUR)
    assert diff_top(filled.client, a=share, **side("b", name, SECOND_HOUR)) == compared(
        first, second
    )
    assert diff_top(filled.client, b=share, **side("a", name, SECOND_HOUR)) == compared(
        second, first
    )
    sides = {"a": share, **side("b", name, SECOND_HOUR)}
    flame = filled.client.get("/api/v1/diff", query=sides)
    assert flame.status == 200 and flame.body.startswith(b"PFFLAME")
    assert flame.headers["cache-control"] == "private, no-cache"
    labels = filled.client.get("/api/v1/diff/labels", query=sides)
    assert labels.status == 200, labels


@pytest.mark.parametrize(
    "options, wanted",
    [
        ({}, "a is missing: the id of a share, or a query in a_query"),
        (side("a", CPU_NAMES[0], FIRST), "b is missing"),
        ({"a": "x" * 22, **side("a", CPU_NAMES[0])}, "a and a_query"),
        ({"a": "x" * 22, "a_start": 1, **side("b", CPU_NAMES[0])}, "a_start is only for a_query"),
        (
            {**side("a", CPU_NAMES[0], FIRST), **side("b", "cpu{")},
            "b: query: this { is not closed at character 4",
        ),
        (
            {**side("a", CPU_NAMES[0], FIRST), **side("b", CPU_NAMES[0], (5, 4))},
            "b_start must be before b_end",
        ),
        (
            {**side("a", CPU_NAMES[0], FIRST), **side("b", CPU_NAMES[0] + '{pod="none"}')},
            "b: the query finds no profile",
        ),
        ({**side("a", CPU_NAMES[0], FIRST), **side("b", CPU_NAMES[1])}, "sample type"),
        ({**side("a", ""), **side("b", CPU_NAMES[1])}, "a_query is missing"),
    ],
)
def test_invalid_comparisons_are_reported(filled, options, wanted):
    response = filled.client.get("/api/v1/diff/top", query=options)
    assert response.status == 400 and wanted in response.json()["detail"], response
