"""A selector compares labels of samples if no series has the label, like Pyroscope's selectors."""

import json

import pytest

from people import Tenant
from test_cli import cli  # noqa: F401
from test_limits import END
from test_store import BEGIN, compact

from pprof_maker import Maker  # test_limits adds its folder to sys.path

CPU = "process_cpu:cpu"
SPAN = "00000000000000aa"


def make_labelled(samples):
    """A pprof profile of samples given as (name of the function, value, labels)."""
    maker = Maker([("cpu", "nanoseconds")])
    for name, value, labels in samples:
        maker.sample([maker.location([(maker.function(name), 1)])], [value], labels)
    maker.scalars(time=BEGIN, duration=10**9, period=1, period_type=("cpu", "nanoseconds"))
    return maker.bytes()


APP = [
    ("a", 10, [("endpoint", "/a"), ("thread.name", "worker-1")]),
    ("b", 20, [("endpoint", "/b"), ("bytes", 4096, "bytes")]),
    ("ab", 30, [("endpoint", "/a"), ("endpoint", "/b")]),
    ("none", 40, []),
    ("span", 50, [("span_id", SPAN)]),
]
OTHER = [("other", 1, [("thread.name", "worker-2")])]


@pytest.fixture
def client(server):
    tenant = Tenant(server)
    client = tenant.api("admin", "ingest", "read", "share")
    client.tenant = tenant
    for name, samples in (("app", APP), ("other", OTHER)):
        assert (
            client.post(
                "/api/v1/profiles", make_labelled(samples), query={"label": f"service_name={name}"}
            ).status
            == 200
        )
    return client


def window(**more):
    return {"start": str(BEGIN), "end": str(END), **more}


def functions(client, selector, **more):
    response = client.get("/api/v1/query", query=window(query=CPU + selector, report="top", **more))
    assert response.status == 200, response
    return {row["name"] for row in response.json()["functions"]}


CASES = [
    ('{service_name="app",endpoint="/a"}', {"a", "ab"}),
    ('{service_name="app",endpoint!="/a"}', {"b", "none", "span"}),
    ('{service_name="app",endpoint=~"/[ac]"}', {"a", "ab"}),
    ('{service_name="app",endpoint=~"/.*"}', {"a", "ab", "b"}),
    ('{service_name="app",endpoint!~"/.*"}', {"none", "span"}),
    ('{service_name="app",endpoint!=""}', {"a", "ab", "b"}),
    ('{service_name="app",endpoint=""}', {"none", "span"}),
    ('{service_name="app",endpoint="/a",thread_name="worker-1"}', {"a"}),
    ('{thread.name=~"worker-.*"}', {"a", "other"}),
    ('{thread.name="worker-2"}', {"other"}),
    ('{thread.name!="worker-2"}', {"a", "b", "ab", "none", "span"}),
    ('{bytes="4096"}', {"b"}),
    ('{bytes="4096 bytes"}', {"b"}),
    ('{span_id="00000000000000aa"}', {"span"}),
    ('{service_name="app",endpoint="/c"}', set()),
    ('{service_name="app",absent!="x"}', {"a", "b", "ab", "none", "span"}),
    ('{service_name="none",endpoint="/a"}', set()),
]


@pytest.mark.parametrize("selector, wanted", CASES)
def test_selectors_compare_labels_of_samples(client, selector, wanted):
    assert functions(client, selector) == wanted
    assert functions(client, selector) == wanted, "the second response comes from the cache"
    over_time = client.get(
        "/api/v1/query_range", query=window(query=CPU + selector, rate="false")
    ).json()
    values = {name: value for name, value, _ in APP + OTHER}
    assert sum(one["total"] for one in over_time["series"]) == sum(values[name] for name in wanted)


def test_a_series_with_the_label_does_not_hide_samples_of_other_series(server):
    """One service has the label on its samples, others have it on their series."""
    client = Tenant(server).api("ingest", "read")
    for name, samples, labels in (
        ("app", APP, []),
        ("own", [("own a", 100, [])], ["endpoint=/a"]),
        ("moved", [("own b", 200, [])], ["endpoint=/b"]),
        ("none", OTHER, []),
    ):
        query = [("label", f"service_name={name}"), *(("label", label) for label in labels)]
        assert client.post("/api/v1/profiles", make_labelled(samples), query=query).status == 200
    everything = {name for name, _, _ in [*APP, *OTHER]} | {"own a", "own b"}
    for selector, wanted in (
        ('{endpoint="/a"}', {"a", "ab", "own a"}),
        ('{endpoint="/b"}', {"b", "ab", "own b"}),
        ('{endpoint=~"/.*"}', {"a", "b", "ab", "own a", "own b"}),
        ('{endpoint!="/a"}', everything - {"a", "ab", "own a"}),
        ('{endpoint!~"/.*"}', {"none", "span", "other"}),
        ('{service_name="own",endpoint="/a"}', {"own a"}),
    ):
        assert functions(client, selector) == wanted, selector
        listed = client.get("/api/v1/series", query=window(**{"match[]": CPU + selector})).json()
        names = {
            name
            for name, samples in (("app", APP), ("none", OTHER))
            if wanted & {one[0] for one in samples}
        }
        names |= {
            name for name, function in (("own", "own a"), ("moved", "own b")) if function in wanted
        }
        assert {one["service_name"] for one in listed["data"]} == names, selector


def test_other_requests_accept_selectors_of_sample_labels(client):
    selector, by_label = CPU + '{service_name="app",endpoint="/a"}', {
        "query": CPU + '{service_name="app"}',
        "label": "endpoint=/a",
    }
    one, other = (
        client.get("/api/v1/query", query=window(report="folded", **query))
        for query in ({"query": selector}, by_label)
    )
    assert one.status == 200 and one.text == other.text
    for report in ("json", "flame", "callgraph", "svg"):
        assert (
            client.get("/api/v1/query", query=window(report=report, query=selector)).status == 200
        ), report
    # A selector defines the total; the parameter label shows a part of it.
    for query, total in (({"query": selector}, 40), (by_label, 150)):
        table = client.get("/api/v1/query", query=window(report="top", **query)).json()
        assert (table["total"], table["kept"]) == (total, 40), query
    grouped = client.get(
        "/api/v1/query", query=window(query=selector, report="folded", group_by="endpoint")
    )
    assert (
        grouped.text
        == client.get(
            "/api/v1/query", query=window(report="folded", group_by="endpoint", **by_label)
        ).text
    )
    table = client.get("/api/v1/export", query=window(query=selector))
    assert table.status == 200 and len(table.body) > 500
    share = client.post("/api/v1/shares", query=window(query=selector))
    assert share.status == 201, share
    top = client.get(f"/api/v1/shares/{share.json()['id']}/top", query={}).json()
    assert {row["name"] for row in top["functions"]} == {"a", "ab"}
    diff = client.get(
        "/api/v1/diff/top",
        query={
            "a_query": selector,
            "b_query": CPU + '{service_name="app",endpoint="/b"}',
            **{f"{side}_{name}": value for side in "ab" for name, value in window().items()},
        },
    )
    assert diff.status == 200 and (diff.json()["total_a"], diff.json()["total_b"]) == (40, 50), diff
    assert {row["name"]: (row["flat_a"], row["flat_b"]) for row in diff.json()["functions"]} == {
        "a": (10, 0),
        "b": (0, 20),
        "ab": (30, 30),
    }


def test_commands_accept_selectors_of_sample_labels(cli, client, tmp_path):  # noqa: F811
    token = client.tenant.make_token("read", "share")["token"]

    def run(*arguments):
        done = cli(*arguments, token=token)
        assert done.returncode == 0, done.log
        return done.out

    times = f"@{BEGIN // 10**9}..{END // 10**9}"
    one, other = (f'{CPU}{{service_name="app",endpoint="/{name}"}}' for name in "ab")
    found = json.loads(run("query", one + times, "--json"))
    assert {row["name"]: row["cum"] for row in found["functions"]} == {"a": 10, "ab": 30}
    changed = json.loads(run("diff", "--local", "--json", one + times, other + times))
    assert {row["name"]: (row["flat_a"], row["flat_b"]) for row in changed["functions"]} == {
        "a": (10, 0),
        "b": (0, 20),
        "ab": (30, 30),
    }, changed
    table = tmp_path / "samples.parquet"
    run("export", "--parquet", one + times, "-o", table)
    assert table.stat().st_size > 500
    share = run("query", one + times, "--share").strip()
    assert {row["name"] for row in json.loads(run("top", "--json", share))["functions"]} == {
        "a",
        "ab",
    }


def test_lists_contain_series_with_matching_samples(client):
    def series(*matches):
        response = client.get(
            "/api/v1/series",
            query=[("start", BEGIN), ("end", END), *(("match[]", one) for one in matches)],
        )
        assert response.status == 200, response
        return [one["service_name"] for one in response.json()["data"]]

    assert series('{thread.name="worker-1"}') == ["app"]
    assert series('{thread.name=~"worker.*"}') == ["app", "other"]
    assert series('{thread.name="worker-3"}') == [] and series('{absent="x"}') == []
    assert series('{thread.name="worker-2"}', '{endpoint="/b"}') == ["app", "other"]
    values = client.get(
        "/api/v1/label/service_name/values", query=window(**{"match[]": '{endpoint="/a"}'})
    )
    assert values.json()["data"] == ["app"]
    types = client.get("/api/v1/profile_types", query=window(**{"match[]": '{endpoint="/z"}'}))
    assert types.json()["data"] == []
    listed = client.get("/api/v1/profiles", query=window(query='{thread.name="worker-2"}'))
    assert listed.status == 200 and [
        one["labels"]["service_name"] for one in listed.json()["data"]
    ] == ["other"]


def test_totals_of_listed_profiles_do_not_depend_on_the_uploads(shared_server):
    """A total is the sum of the samples that the selector selects."""
    client = Tenant(shared_server()).api("ingest", "read")
    for name, uploads in (("whole", [APP]), ("split", [[sample] for sample in APP])):
        for samples in uploads:
            query = {"label": f"service_name={name}"}
            response = client.post("/api/v1/profiles", make_labelled(samples), query=query)
            assert response.status == 200, response
    for condition, total in (
        ('{endpoint="/a"}', 40),
        ('{endpoint!="/a"}', 110),
        ('{endpoint=""}', 90),
        ("", 150),
    ):
        listed = client.get("/api/v1/profiles", query=window(query=CPU + condition)).json()
        assert [(one["labels"]["service_name"], one["total"]) for one in listed["data"]] in (
            [("whole", total), ("split", total)],
            [("split", total), ("whole", total)],
        ), condition


def test_an_unknown_label_is_reported(client):
    def warning(selector, path="/api/v1/query"):
        return client.get(path, query=window(query=CPU + selector)).headers.get("perfolio-warning")

    for path in ("/api/v1/query", "/api/v1/query_range"):
        assert (
            warning('{service_name="app",endpiont="/a"}', path)
            == "no series and no sample of this window has the label endpiont"
        )
        assert (
            warning('{service_name="app",endpoint="/c"}', path) is None
        ), "samples have the label, with other values"
        assert warning('{service_name="none",endpoint="/a"}', path) is None
        assert (
            warning('{service_name="none"}', path) is None
            and warning('{endpoint!="/a"}', path) is None
        )


def test_a_filter_with_an_unknown_label_is_reported(client):
    """Also from the cache. Names may be written as the sender or as series write them."""

    def filtered(label, path="/api/v1/query", **more):
        response = client.get(path, query=window(query=CPU, label=label, **more))
        assert response.status == 200, response
        return response

    for path, more in (("/api/v1/query", {"report": "folded"}), ("/api/v1/query_range", {})):
        for label in ("endpiont=/a", "endpiont!=/a", "endpiont="):
            for _ in range(2):
                assert (
                    filtered(label, path, **more).headers["perfolio-warning"]
                    == "label: 'endpiont' is no label of what the query finds"
                )
        for label in ("endpoint=/nothing", "endpoint=/a", "thread_name!=worker-2"):
            assert "perfolio-warning" not in filtered(label, path, **more).headers
    by_sender, by_series = (
        {
            line.rpartition(" ")[0]
            for line in filtered(f"{name}=worker-2", report="folded").text.splitlines()
        }
        for name in ("thread.name", "thread_name")
    )
    assert by_sender == by_series == {"other"}
    left = filtered("thread.name=", report="folded", group_by="label:thread.name")
    assert "(no thread.name)" in left.text, left
    grouped = filtered("endpoint!=", "/api/v1/query_range", group_by="thread_name").json()
    assert {one["labels"]["thread_name"] for one in grouped["series"]} >= {"worker-1"}


def make_idle(time_ns, is_idle):
    maker = Maker([("cpu", "nanoseconds"), ("inuse_space", "bytes"), ("alloc_space", "bytes")])
    if not is_idle:
        maker.sample([maker.location([(maker.function("main"), 1)])], [7, 7, 7], [("thread", "t")])
    maker.scalars(time=time_ns, duration=10**9, period=1, period_type=("cpu", "nanoseconds"))
    return maker.bytes()


def test_a_filter_finds_the_labels_of_idle_series(shared_server):
    """A profile without samples has the labels of its series. The same holds after compaction has
    put it into one granule with a profile that has samples and is outside the window."""
    server = shared_server("--jobs-interval", "1s")
    client = Tenant(server).api("ingest", "read")
    for i in range(4):
        for name in ("idle", "later"):
            response = client.post(
                "/api/v1/profiles",
                make_idle(BEGIN + i * 10**10, name == "idle" or i > 0),
                query=[("label", f"service_name={name}"), ("label", "pod=a")],
            )
            assert response.status == 200, response

    def warning(path, query, label):
        wanted = window(query=query, label=label) | {"start": str(BEGIN + 10**10)}
        response = client.get("/api/v1/" + path, query=wanted)
        assert response.status == 200, response
        return response.headers.get("perfolio-warning")

    def check():
        for kind in (CPU, "inuse_space", "alloc_space"):
            for selector in ("idle", "later", 'idle",thread!="x'):
                query = f'{kind}{{service_name="{selector}"}}'
                for path in ("query", "query_range"):
                    for label in ("pod=a", "pod!=b", "service.name=none"):
                        assert warning(path, query, label) is None, (path, query, label)
                    assert (
                        warning(path, query, "pot=a")
                        == "label: 'pot' is no label of what the query finds"
                    ), (path, query)

    check()
    compact(server)
    check()


def test_a_label_of_a_series_overrides_that_of_its_samples(client):
    """If a series has the label, the selector ignores its samples; if a series matches, it also
    ignores the samples of other series."""
    body = make_labelled([("third", 7, [("endpoint", "/a")])])
    assert (
        client.post(
            "/api/v1/profiles",
            body,
            query=[("label", "service_name=third"), ("label", "endpoint=/z")],
        ).status
        == 200
    )
    assert functions(client, '{endpoint="/z"}') == {"third"}
    assert functions(client, '{endpoint="/a"}') == {"a", "ab"}
    assert functions(client, '{endpoint!="/a",service_name=~"app|third"}') == {
        "b",
        "none",
        "span",
        "third",
    }


@pytest.mark.long
def test_selectors_groups_and_filters_agree_on_labels_of_both_kinds(shared_server):
    """The label of a series overrides that of its samples, before and after a compaction."""
    server = shared_server("--jobs-interval", "1s")
    client = Tenant(server).api("ingest", "read")
    samples = [
        ("of x", 3, [("ep", "x")]),
        ("of y", 5, [("ep", "y"), ("thread.name", "t1")]),
        ("of none", 7, []),
    ]
    wanted = {"x": 15 + 3, "y": 5, "z": 15, "": 7}
    for i in range(12):
        for labels in (["ep=x", "thread_name=main"], ["ep=z"], []):
            query = [("label", f"pod={i}"), *(("label", label) for label in labels)]
            assert (
                client.post("/api/v1/profiles", make_labelled(samples), query=query).status == 200
            )

    def totals(selector, **more):
        response = client.get(
            "/api/v1/query_range", query=window(query=CPU + selector, rate="false", **more)
        )
        assert response.status == 200, response
        return {
            tuple(one["labels"].values()): one["total"] // 12
            for one in response.json()["series"]
            if one["total"]
        }

    def check():
        assert totals("", group_by="ep") == {(value,): total for value, total in wanted.items()}
        for value, total in wanted.items():
            assert totals(f'{{ep="{value}"}}') == {(): total}, value
            assert totals(f'{{ep="{value}"}}', group_by="ep") == {(value,): total}, value
            assert sum(totals("", label=f"ep={value}").values()) == total, value
            report = client.get(
                "/api/v1/query", query=window(query=f'{CPU}{{ep="{value}"}}', report="top")
            ).json()
            assert report["total"] == 12 * total, value
        assert totals('{ep!~"z"}', group_by="ep") == {
            (value,): wanted[value] for value in ("x", "y", "")
        }
        grouped = client.get(
            "/api/v1/query", query=window(query=CPU, report="top", group_by="label:ep")
        ).json()
        assert {
            row["name"]: row["cum"] // 12
            for row in grouped["functions"]
            if "of " not in row["name"]
        } == {value or "(no ep)": total for value, total in wanted.items()}
        for name in ("thread_name", "thread.name"):
            assert (
                totals("", group_by=name)["main",] == 15 == totals(f'{{{name}="main"}}')[()]
            ), name
        assert totals("", group_by="thread.name") == {("main",): 15, ("t1",): 10, ("",): 20}
        assert totals('{thread_name="t1"}') == {(): 10}

    check()
    compact(server)
    check()


def test_deletions_ignore_labels_of_samples(client):
    response = client.delete("/api/v1/profiles", query=window(query='{endpoint="/a"}'))
    assert response.status == 202, response
    assert functions(client, '{service_name="app"}') == {"a", "b", "ab", "none", "span"}


def test_merged_blocks_give_equal_results(shared_server):
    server = shared_server("--jobs-interval", "1s")
    client = Tenant(server).api("ingest", "read")
    for i in range(12):
        for name, samples in (("app", APP), ("other", OTHER)):
            body = make_labelled([(f"{function}{i}", *rest) for function, *rest in samples])
            assert (
                client.post(
                    "/api/v1/profiles", body, query={"label": f"service_name={name}"}
                ).status
                == 200
            )
    before = [functions(client, selector, limit=1000) for selector, _ in CASES]
    assert before[0] == {f"{name}{i}" for name in ("a", "ab") for i in range(12)}
    compact(server)
    assert [functions(client, selector, limit=1000) for selector, _ in CASES] == before
