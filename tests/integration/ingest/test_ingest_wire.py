"""Profiles received by OTLP/HTTP and by Pyroscope's push and ingest endpoints.

For each content type, compression and layout, the result of a query equals a plain recomputation.
The tests also cover both forms of credentials, the error format of each protocol, and retries,
which are counted once."""

import base64
import gzip
import json
import random
import time
import sys

import pytest

import sample_profiles
from conftest import ROOT
from people import Tenant
from test_database_outage import Outage
from test_store import BEGIN, CPU, CPU_NAMES, HEAP, HEAP_NAMES, folded, make_profile

sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import otlp_maker  # noqa: E402
import store_oracle  # noqa: E402
from pprof_maker import block  # noqa: E402

OTLP = "/v1development/profiles"
PUSH = "/push.v1.PusherService/Push"
MINUTE = 60 * 10**9
END = BEGIN + 60 * MINUTE
S = BEGIN // 10**9
PROTO, X_PROTO, JSON = "application/proto", "application/x-protobuf", "application/json"
OTLP_CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta"
OFF_CPU = "off_cpu:off_cpu:nanoseconds:::delta"
ENCODINGS = {"identity": lambda data: data, "gzip": gzip.compress, "zstd": sample_profiles.zstd}


def check(client, oracle, names, labels):
    """Compares the stored profiles with these labels with the oracle, one type after another."""
    selector = "{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}"
    seen = 0
    for name in names:
        _, rows = folded(client, name + selector, BEGIN, END)
        wanted = oracle.merge(name, lambda own: labels.items() <= own.items(), BEGIN, END)
        assert rows == wanted, (name, selector)
        seen += len(rows)
    assert seen


def make_stacks(rng, count):
    return {
        ("main", *(f"f{rng.randrange(9)}" for _ in range(rng.randrange(4)))): rng.randint(
            1, 10**6
        )
        for _ in range(count)
    }


# ---- OpenTelemetry ----


def make_export(rng, oracle, way, time_ns, is_packed=True):
    """Returns a request with profiles of two services and adds them to the oracle."""
    resources = []
    for service in ("shop", "cart"):
        cpu, off_cpu = make_stacks(rng, 8), make_stacks(rng, 4)
        resources.append(
            (
                {"service.name": service, "k8s.pod-name": way},
                [
                    otlp_maker.Profile(
                        ("samples", "count"), time_ns, cpu, 50, ("cpu", "nanoseconds"), MINUTE
                    ),
                    otlp_maker.Profile(("off_cpu", "nanoseconds"), time_ns + 1, off_cpu),
                ],
            )
        )
        labels = {"service_name": service, "k8s_pod_name": way}
        oracle.add(labels, OTLP_CPU, time_ns, {stack: value * 50 for stack, value in cpu.items()})
        oracle.add(labels, OFF_CPU, time_ns + 1, off_cpu)
    return otlp_maker.Request(resources, is_packed)


def test_counts_beside_cpu_time_stay_counts(server):
    """The OpenTelemetry Collector makes two profiles of a CPU profile of Go. Each sample of the
    first counts 10 ms, which the second contains."""
    client = Tenant(server).api("ingest", "read")
    period = (10_000_000, ("cpu", "nanoseconds"), MINUTE)
    both = [
        otlp_maker.Profile(("samples", "count"), BEGIN, {("leaf", "main"): 35}, *period),
        otlp_maker.Profile(("cpu", "nanoseconds"), BEGIN, {("leaf", "main"): 350_000_000}, *period),
    ]
    later = [otlp_maker.Profile(("samples", "count"), END, {("main",): 7}, *period)]
    for name, resources in {
        "together": [both + later],
        "other order": [both[::-1] + later],
        "equal resources": [both[:1], later, both[1:]],
    }.items():
        request = otlp_maker.Request([({"service.name": name}, profiles) for profiles in resources])
        response = client.post(OTLP, request.protobuf("1.10"), headers={"Content-Type": X_PROTO})
        assert (response.status, response.body) == (200, b""), response
    for (query, start), rows in {
        (OTLP_CPU, BEGIN): {("leaf", "main"): 3 * 350_000_000},
        (OTLP_CPU, END): {("main",): 3 * 70_000_000},
        ("process_cpu:samples:count:cpu:nanoseconds", BEGIN): {("leaf", "main"): 105},
    }.items():
        assert folded(client, query, start, start + MINUTE)[1] == rows, query


@pytest.mark.parametrize("layout", ["1.9", "1.10"])
def test_otlp_repeated_fields_need_not_be_packed(server, layout):
    """async-profiler sends unpacked fields."""
    client, oracle = Tenant(server).api("ingest", "read"), store_oracle.Oracle()
    request = make_export(random.Random(1), oracle, layout, BEGIN, is_packed=False)
    response = client.post(OTLP, request.protobuf(layout), headers={"Content-Type": X_PROTO})
    assert (response.status, response.body) == (200, b""), response
    check(client, oracle, [OTLP_CPU, OFF_CPU], {"k8s_pod_name": layout})


def test_pprof_may_number_functions_and_locations_from_0(server):
    """The writer of .NET does that. Protobuf omits fields with the value 0."""
    client = Tenant(server).api("ingest", "read", "share")
    texts = ["", "samples", "count", "Main", "Work"]
    raw = (
        block(1, b"\x08\x01\x10\x02")
        + block(2, block(1, b"\x01\x00") + block(2, b"\x07"))
        + block(4, block(4, b""))
        + block(4, b"\x08\x01" + block(4, b"\x08\x01"))
        + block(5, b"\x10\x03")
        + block(5, b"\x08\x01\x10\x04")
        + b"".join(block(6, text.encode()) for text in texts)
    )
    assert (
        client.post("/api/v1/profiles", raw, query={"name": "dotnet", "time": str(BEGIN)}).status
        == 200
    )
    response = client.get(
        "/api/v1/query",
        query={"query": "dotnet:samples", "start": str(BEGIN), "end": str(END), "report": "folded"},
    )
    assert response.status == 200 and response.text == "Main;Work 7\n", response
    share = client.post("/api/v1/shares", raw)
    assert share.status == 201 and client.get(f"/p/{share.json()['id']}/raw").body == raw


WAYS = [(layout, encoding) for layout in ("1.9", "1.10", "json") for encoding in ENCODINGS]


def test_otlp_is_the_same_in_all_layouts_and_encodings(server):
    client, oracle = Tenant(server).api("ingest", "read"), store_oracle.Oracle()
    for layout, encoding in WAYS:
        way = f"{layout} {encoding}"
        for i in range(2):
            request = make_export(random.Random(i), oracle, way, BEGIN + i * MINUTE)
            data = request.json() if layout == "json" else request.protobuf(layout)
            content_type = JSON if layout == "json" else X_PROTO
            response = client.post(
                OTLP,
                ENCODINGS[encoding](data),
                headers={"Content-Type": content_type, "Content-Encoding": encoding},
            )
            assert (
                response.status == 200 and response.headers["content-type"] == content_type
            ), response
            assert response.body == (b"{}" if layout == "json" else b""), response
        check(client, oracle, [OTLP_CPU, OFF_CPU], {"k8s_pod_name": way})
    check(client, oracle, [OTLP_CPU, OFF_CPU], {"service_name": "cart"})


def test_rejected_otlp_profiles_are_reported_and_the_others_kept(server):
    client, oracle = Tenant(server).api("ingest", "read"), store_oracle.Oracle()
    request = make_export(random.Random(1), oracle, "x", BEGIN)
    wrong = json.loads(request.json())
    profiles = wrong["resourceProfiles"][0]["scopeProfiles"][0]["profiles"]
    profiles.append({**profiles[0], "samples": [{"stackIndex": 999, "values": ["1"]}]})
    response = client.post(OTLP, json=wrong)
    assert response.status == 200, response
    partial = response.json()["partialSuccess"]
    assert partial["rejectedProfiles"] == "1" and "stack" in partial["errorMessage"]
    check(client, oracle, [OTLP_CPU, OFF_CPU], {"k8s_pod_name": "x"})


def test_a_retried_otlp_request_is_counted_once(server):
    client, oracle = Tenant(server).api("ingest", "read"), store_oracle.Oracle()
    data = make_export(random.Random(1), oracle, "x", BEGIN).protobuf()
    for encoding in ("identity", "gzip", "identity"):
        response = client.post(
            OTLP,
            ENCODINGS[encoding](data),
            headers={"Content-Type": X_PROTO, "Content-Encoding": encoding},
        )
        assert response.status == 200, response
    check(client, oracle, [OTLP_CPU, OFF_CPU], {"k8s_pod_name": "x"})


def test_each_omission_is_reported_once(server):
    client = Tenant(server).api("ingest", "read")
    response = client.post(
        "/ingest", b"a;b 3\nbad\na;b 4\n", query={"name": "app", "from": BEGIN // 10**9}
    )
    assert (
        response.status == 200
        and response.headers["perfolio-warning"] == "1 line was skipped: no stack with a value"
    )
    assert (
        "perfolio-warning" not in client.post("/ingest", b"a;b 3\n", query={"name": "app"}).headers
    )
    body = make_profile(CPU, BEGIN, {("main",): [1, 2]}, ("cpu", "nanoseconds"), MINUTE)
    response = client.post(
        PUSH,
        push_protobuf(
            [
                (
                    {
                        "service_name": "app",
                        "__name__": "process_cpu",
                        name: "1",
                        name.replace(".", "_"): "2",
                    },
                    [body, body],
                )
                for name in ("a.b", "c.d")
            ]
        ),
        headers={"Content-Type": PROTO},
    )
    first, second = response.headers["perfolio-warning"].split("; ")
    assert "a_b" in first and "c_d" in second, response.headers


@pytest.mark.parametrize("timed, counted", [(1, 1), (0, 3)])
def test_one_timestamp_makes_retries_of_an_otlp_request_recognizable(server, timed, counted):
    """Without any timestamp, two different requests may have equal content."""
    client = Tenant(server).api("ingest", "read")
    request = json.loads(make_export(random.Random(1), store_oracle.Oracle(), "x", BEGIN).json())
    profiles = [
        profile
        for resource in request["resourceProfiles"]
        for scope in resource["scopeProfiles"]
        for profile in scope["profiles"]
    ]
    for profile in profiles[timed:]:
        del profile["timeUnixNano"]
    now = time.time_ns()
    for _ in range(3):
        assert client.post(OTLP, json=request).status == 200
    listed = client.get(
        "/api/v1/profiles",
        query={
            "query": '{__profile_type__=~".*",k8s_pod_name="x"}',
            "start": 0,
            "end": now + 60 * 10**9,
        },
    ).json()["data"]
    assert len(listed) == counted * len(profiles)


def loose(size):
    """Returns bytes that compress to about a twentieth of their size."""
    data = bytearray(size)
    data[::64] = random.Random(size).randbytes((size + 63) // 64)
    return bytes(data)


@pytest.mark.long
@pytest.mark.parametrize("mebibytes", [9, 40])
@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_compressed_body_may_expand_beyond_the_body_limit(server, mebibytes, encoding):
    client, oracle = Tenant(server).api("ingest", "read"), store_oracle.Oracle()
    # The decoder skips unknown fields.
    data = make_export(random.Random(1), oracle, "x", BEGIN).protobuf() + block(
        99, loose(mebibytes << 20)
    )
    response = client.post(
        OTLP,
        ENCODINGS[encoding](data),
        headers={"Content-Type": X_PROTO, "Content-Encoding": encoding},
    )
    assert response.status == 200, response
    check(client, oracle, [OTLP_CPU], {"k8s_pod_name": "x"})


# ---- Pyroscope ----


def push_protobuf(series, profile_id=None):
    """Encodes series, a list of (labels, profiles), as push.v1.PushRequest."""
    own_id = block(2, profile_id.encode()) if profile_id else b""
    out = b""
    for labels, profiles in series:
        pairs = b"".join(
            block(1, block(1, name.encode()) + block(2, value.encode()))
            for name, value in labels.items()
        )
        out += block(1, pairs + b"".join(block(2, block(1, data) + own_id) for data in profiles))
    return out


def push_json(series):
    return json.dumps(
        {
            "series": [
                {
                    "labels": [{"name": name, "value": value} for name, value in labels.items()],
                    "samples": [
                        {"rawProfile": base64.b64encode(data).decode()} for data in profiles
                    ],
                }
                for labels, profiles in series
            ]
        }
    ).encode()


def make_series(rng, oracle, way, time_ns):
    cpu, heap = make_stacks(rng, 8), make_stacks(rng, 5)
    for label, stacks, names in (("cpu", cpu, CPU_NAMES), ("heap", heap, HEAP_NAMES)):
        for i, name in enumerate(names):
            oracle.add(
                {"service_name": "app", "pod_name": way, "kind": label},
                name,
                time_ns,
                {stack: value * (i + 1) for stack, value in stacks.items()},
            )
    bodies = [
        make_profile(
            types,
            time_ns,
            {stack: [value, value * 2] for stack, value in stacks.items()},
            period,
            duration,
        )
        for types, stacks, period, duration in (
            (CPU, cpu, ("cpu", "nanoseconds"), MINUTE),
            (HEAP, heap, ("space", "bytes"), 0),
        )
    ]
    labels = {"service_name": "app", "pod.name": way, "__session_id__": "1"}
    # Some agents compress profiles and some do not.
    return [
        ({**labels, "kind": "cpu", "__name__": "process_cpu"}, [bodies[0]]),
        ({**labels, "kind": "heap", "__name__": "memory"}, [gzip.decompress(bodies[1])]),
    ]


@pytest.mark.parametrize("content_type, make", [(PROTO, push_protobuf), (JSON, push_json)])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_push_stores_all_series(server, content_type, make, encoding):
    client, oracle = Tenant(server).api("ingest", "read"), store_oracle.Oracle()
    for i in range(3):
        series = make_series(random.Random(i), oracle, "p", BEGIN + i * MINUTE)
        for _ in range(2):  # the second request is a duplicate
            response = client.post(
                PUSH,
                ENCODINGS[encoding](make(series)),
                headers={
                    "Content-Type": content_type,
                    "Content-Encoding": encoding,
                    "Connect-Protocol-Version": "1",
                },
            )
            assert (
                response.status == 200 and response.headers["content-type"] == content_type
            ), response
            assert response.body == (b"{}" if content_type == JSON else b"")
    check(client, oracle, CPU_NAMES, {"pod_name": "p", "kind": "cpu"})
    check(client, oracle, HEAP_NAMES, {"pod_name": "p", "kind": "heap"})


def test_repeated_series_in_a_push_are_counted_once(server):
    client, oracle = Tenant(server).api("ingest", "read"), store_oracle.Oracle()
    series = make_series(random.Random(1), oracle, "p", BEGIN)
    response = client.post(
        "/pyroscope" + PUSH, push_protobuf(series + series), headers={"Content-Type": PROTO}
    )
    assert response.status == 200, response
    check(client, oracle, CPU_NAMES, {"pod_name": "p", "kind": "cpu"})


def test_a_push_is_stored_completely_or_not_at_all(server):
    client, oracle = Tenant(server).api("ingest", "read"), store_oracle.Oracle()
    series = make_series(random.Random(1), oracle, "p", BEGIN)
    response = client.post(
        PUSH,
        push_protobuf([*series, ({"service_name": "x"}, [b"\x1f\x8brubbish"])]),
        headers={"Content-Type": PROTO},
    )
    assert response.status == 400 and response.json()["code"] == "invalid_argument", response
    assert "profile 3 of 3" in response.json()["message"]
    response = client.get(
        "/api/v1/query", query={"query": CPU_NAMES[0], "start": BEGIN, "end": END}
    )
    assert (
        response.status == 404 or response.headers["perfolio-statistics"].find("profiles=0") >= 0
    ), response
    assert client.post(PUSH, push_protobuf(series), headers={"Content-Type": PROTO}).status == 200
    check(client, oracle, CPU_NAMES, {"pod_name": "p"})


def form(**parts):
    out = b"".join(
        f'--b\r\nContent-Disposition: form-data; name="{name}"; filename="f"\r\n\r\n'.encode()
        + data
        + b"\r\n"
        for name, data in parts.items()
    )
    return out + b"--b--\r\n"


FORM = {"Content-Type": "multipart/form-data; boundary=b"}
STACKS = b"main;work 3\nmain 2\n"
LINES = b"main;work\nmain;work\nmain;work\nmain\nmain\n"
COUNTED = {("main", "work"): 3 * 10**7, ("main",): 2 * 10**7}


@pytest.mark.parametrize("path", ["/ingest", "/pyroscope/ingest"])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_ingest_accepts_folded_stacks_and_lines(server, path, encoding):
    client, oracle = Tenant(server).api("ingest", "read"), store_oracle.Oracle()
    bodies = {
        "folded": (STACKS, {}),
        "form": (form(profile=STACKS), FORM),
        "lines": (LINES, {}),
        "packed form": (form(profile=gzip.compress(STACKS)), FORM),
    }
    for pod, (body, headers) in bodies.items():
        query = {"name": f"app.cpu{{pod={pod}}}", "from": S + 1, "until": END // 10**9}
        if pod == "lines":
            query["format"] = "lines"
        for is_known in (False, True):
            response = client.post(
                path,
                ENCODINGS[encoding](body),
                query=query,
                headers={**headers, "Content-Encoding": encoding},
            )
            assert response.status == 200 and response.json()["duplicate"] is is_known, response
        labels = {"service_name": "app", "pod": pod, "pyroscope_spy": "unknown"}
        oracle.add(labels, OTLP_CPU, BEGIN + 10**9, COUNTED)
        check(client, oracle, [OTLP_CPU], {"pod": pod})


@pytest.mark.parametrize("body", [b"main;work 7\n", b""], ids=["stacks", "idle"])
@pytest.mark.parametrize(
    "first, second",
    [
        ({"name": "app.alloc_objects"}, {"name": "app.alloc_space"}),
        ({"name": "app.inuse_objects"}, {"name": "app.inuse_space"}),
        ({"name": "app.mutex_count"}, {"name": "app.mutex_duration"}),
        ({"name": "app.cpu"}, {"name": "app.wall"}),
        ({"name": "app.cpu", "sampleRate": 100}, {"name": "app.cpu", "sampleRate": 1000}),
        ({"name": "app.bytes"}, {"name": "app.bytes", "aggregationType": "average"}),
    ],
    ids=lambda query: "-".join(map(str, query.values())),
)
def test_equal_stacks_that_count_something_else_are_no_duplicates(
    shared_server, body, first, second
):
    """The address states what the stacks count, how often they were sampled, and whether they are
    a gauge."""
    client = Tenant(shared_server()).api("ingest", "read")
    window = {"from": S + 1, "until": S + 11}
    for query, is_known in ((first, False), (second, False), (first, True), (second, True)):
        response = client.post("/ingest", body, query={**window, **query})
        assert response.status == 200 and response.json()["duplicate"] is is_known, (
            query,
            response,
        )


def test_equal_profiles_with_another_configuration_are_no_duplicates(shared_server):
    client = Tenant(shared_server()).api("ingest", "read")
    profile = make_profile(CPU, BEGIN, {("main",): [1, 10]}, ("cpu", "nanoseconds"))
    query = {"name": "app", "from": S + 1, "until": S + 11}
    average = b'{"cpu": {"aggregation": "average"}}'
    for config, is_known in ((b"{}", False), (average, False), (b"{}", True), (average, True)):
        response = client.post(
            "/ingest",
            form(profile=profile, sample_type_config=config),
            query=query,
            headers=FORM,
        )
        assert response.status == 200 and response.json()["duplicate"] is is_known, response


def test_gauges_and_counters_of_processes_with_equal_labels_are_added(shared_server):
    """The SDKs distinguish the processes of a service by a session. Means and differences are those
    of one process; the values of deltas are added anyway and need no further series."""
    client = Tenant(shared_server()).api("ingest", "read")
    counter = b'{"allocated": {"cumulative": true}}'
    types = [("cpu", "nanoseconds"), ("inuse_space", "bytes"), ("allocated", "bytes")]
    for i in range(12):
        for session, used in (("a1", 200), ("b2", 300)):
            at = BEGIN + i * MINUTE
            values = [10**9, used, 1000 * used + 50 * i]
            profile = make_profile(types, at, {("main",): values}, types[0])
            response = client.post(
                "/ingest",
                form(profile=profile, sample_type_config=counter),
                query={
                    "name": f"shop{{__session_id__={session}}}",
                    "from": at // 10**9,
                    "until": at // 10**9 + 60,
                },
                headers=FORM,
            )
            assert response.status == 200, response
    window = {"start": BEGIN, "end": BEGIN + 10 * MINUTE}
    for name, expected in (("inuse_space", 500), ("allocated", 2 * 10 * 50), ("cpu", 20 * 10**9)):
        response = client.get("/api/v1/query_range", query={**window, "query": name, "step": "10m"})
        (series,) = response.json()["series"]
        assert series.get("average", series.get("total")) == expected, (name, series)
        assert "perfolio-warning" not in response.headers
    listed = client.get("/api/v1/series", query=window).json()["data"]
    assert sorted(
        (one["__profile_type__"].split(":")[1], one.get("session_id")) for one in listed
    ) == [
        ("allocated", "a1"),
        ("allocated", "b2"),
        ("cpu", None),
        ("inuse_space", "a1"),
        ("inuse_space", "b2"),
    ]


def test_a_session_without_space_in_the_limits_of_labels_is_left_out(server):
    """The sender did not write the label, so a profile that fits the team's limits is stored."""
    tenant = Tenant(server, series_labels=3, label_value_bytes=10)
    client = tenant.api("ingest", "read")
    left_out = "label 'session_id' is left out: the limits of labels have no space for it"
    for i, (extra, session, expected, warning) in enumerate(
        (
            ("", "a1", "a1", ""),
            (",x=1", "a1", None, left_out),
            ("", "a1" * 6, None, left_out),
            (",session_id=own", "a1" * 6, "own", ""),
        )
    ):
        response = client.post(
            "/ingest",
            form(
                profile=make_profile([("inuse_space", "bytes")], BEGIN, {("main",): [7]}, ("", ""))
            ),
            query={
                "name": f"shop{i}{{__session_id__={session}{extra}}}",
                "from": BEGIN // 10**9,
                "until": BEGIN // 10**9 + 60,
            },
            headers=FORM,
        )
        assert label_message("ingest", response) == warning, (i, response)
        response = client.get(
            "/api/v1/series",
            query={
                "start": BEGIN,
                "end": BEGIN + MINUTE,
                "match[]": f'{{service_name="shop{i}"}}',
            },
        )
        assert response.status == 200, response
        (series,) = response.json()["data"]
        assert series.get("session_id") == expected, (i, series)


@pytest.mark.parametrize("offset_s", [20, 30])
def test_counters_of_processes_that_cannot_be_distinguished_are_reported(shared_server, offset_s):
    """If the times of two processes alternate evenly, their snapshots look like those of one that
    restarts. Otherwise each continues its own."""
    client = Tenant(shared_server()).api("ingest", "read")
    for i in range(12):
        for offset, value in ((0, 1000), (offset_s * 10**9, 5000)):
            at = BEGIN + i * MINUTE + offset
            body = make_profile([("alloc_space", "bytes")], at, {("main",): [value + i]}, ("", ""))
            assert client.post("/api/v1/profiles", body).status == 200
    window = {"start": BEGIN, "end": BEGIN + 10 * MINUTE, "query": "alloc_space"}
    for path in ("/api/v1/query", "/api/v1/query_range"):
        warning = client.get(path, query=window).headers.get("perfolio-warning", "")
        is_reported = warning.startswith(
            "1 counter restarts in more than a quarter of the snapshots: "
        )
        assert is_reported == (offset_s == 30), (path, warning)
    if offset_s == 20:
        (series,) = client.get("/api/v1/query_range", query=window).json()["series"]
        assert series["total"] == 20


def test_equal_profiles_of_two_sessions_are_both_counted(server):
    """Replicas with equal labels may send equal idle or wall-clock profiles in the same second. A
    retry has the session ID of the first attempt."""
    client = Tenant(server).api("ingest", "read")
    for session, is_known in (("a", False), ("b", False), ("a", True)):
        response = client.post(
            "/ingest",
            b"main;idle 1000\n",
            query={
                "name": f"app.wall{{__session_id__={session}}}",
                "from": BEGIN // 10**9,
                "until": BEGIN // 10**9 + 10,
            },
        )
        assert response.status == 200 and response.json()["duplicate"] is is_known, (
            session,
            response,
        )
    total = client.get(
        "/api/v1/query", query={"query": "wall", "start": BEGIN, "end": BEGIN + 1, "report": "top"}
    ).json()["total"]
    assert total == 20 * 10**9


@pytest.mark.parametrize("is_form", [False, True])
def test_ingest_accepts_pprof(server, is_form):
    client, oracle = Tenant(server).api("ingest", "read"), store_oracle.Oracle()
    stacks = {("main", "work"): [1, 10], ("main",): [2, 20]}
    for i in range(3):
        profile = make_profile(CPU, BEGIN + i, stacks, ("cpu", "nanoseconds"), 10**10)
        query = {"name": "my.app{region=eu}", "spyName": "gospy", "format": "pprof"}
        response = client.post(
            "/ingest",
            form(profile=profile) if is_form else profile,
            query=query,
            headers=FORM if is_form else {},
        )
        assert response.status == 200 and response.json()["samples"] == 4, response
        labels = {"service_name": "my.app", "region": "eu", "pyroscope_spy": "gospy"}
        for j, name in enumerate(CPU_NAMES):
            oracle.add(
                labels, name, BEGIN + i, {stack: values[j] for stack, values in stacks.items()}
            )
    check(client, oracle, CPU_NAMES, {"pyroscope_spy": "gospy", "region": "eu"})


def test_a_form_with_an_empty_profile_is_accepted(server):
    response = (
        Tenant(server)
        .api("ingest")
        .post("/ingest", form(other=b"x", profile=b""), query={"name": "app"}, headers=FORM)
    )
    assert response.status == 200 and response.json()["samples"] == 0, response


TWICE = form(profile=STACKS).removesuffix(b"--b--\r\n") + form(profile=STACKS)


@pytest.mark.parametrize(
    "body, words", [(form(other=b"x"), "no part profile"), (TWICE, "part profile twice")]
)
def test_a_form_must_have_exactly_one_profile(server, body, words):
    client = Tenant(server).api("ingest", "read")
    response = client.post("/ingest", body, query={"name": "app"}, headers=FORM)
    assert response.status == 422 and words in response.json()["message"], response
    assert client.get("/api/v1/series").json()["data"] == []


@pytest.mark.parametrize("path", [PUSH, OTLP])
def test_an_empty_json_body_is_reported(server, path):
    response = Tenant(server).api("ingest").post(path, b"", headers={"Content-Type": JSON})
    assert response.status == 400 and "empty" in response.json()["message"], response


@pytest.mark.parametrize("wire", ["api", "push", "ingest"])
@pytest.mark.parametrize("time_ns", [-1, 1, 10**15])
def test_profiles_with_an_ignored_time_are_not_duplicates(server, wire, time_ns):
    client = Tenant(server).api("ingest", "read")
    profile = make_profile(CPU, time_ns, {("main",): [1, 10]}, ("cpu", "nanoseconds"), 10**10)
    for _ in range(2):
        if wire == "push":
            response = client.post(
                PUSH,
                push_protobuf([({"service_name": "app"}, [profile])]),
                headers={"Content-Type": PROTO},
            )
        elif wire == "ingest":
            response = client.post("/ingest", profile, query={"name": "app", "format": "pprof"})
        else:
            response = client.post("/api/v1/profiles", profile)
        assert response.status == 200, response
    assert folded(client, CPU_NAMES[0], "now-1h", "now+1h")[1] == {("main",): 2}


def test_label_names_are_normalized_equally_for_all_protocols(server):
    client = Tenant(server).api("ingest", "read")
    profile = make_profile(CPU, BEGIN, {("main",): [1, 10]}, ("cpu", "nanoseconds"), 10**10)
    # The first name in byte order counts: "k8s-pod".
    labels = {"k8s_pod": "c", "k8s.pod": "b", "k8s-pod": "a", "service_name": "app"}
    profiles = [
        otlp_maker.Profile(
            ("cpu", "nanoseconds"), BEGIN, {("main",): 10}, 1, ("cpu", "nanoseconds")
        )
    ]
    responses = [
        client.post(
            OTLP,
            otlp_maker.Request([({**labels, "via": "otlp"}, profiles)]).protobuf(),
            headers={"Content-Type": X_PROTO},
        ),
        client.post(
            PUSH,
            push_protobuf([({**labels, "via": "push"}, [profile])]),
            headers={"Content-Type": PROTO},
        ),
        client.post(
            "/ingest",
            profile,
            query={
                "name": "app{"
                + ",".join(f"{k}={v}" for k, v in {**labels, "via": "ingest"}.items())
                + "}"
            },
        ),
        client.post(
            "/api/v1/profiles",
            profile,
            query=[("label", f"{k}={v}") for k, v in {**labels, "via": "api"}.items()],
        ),
    ]
    assert [response.status for response in responses] == [200] * 4, responses
    for via in ("otlp", "push", "ingest", "api"):
        for name in ("k8s_pod", "k8s.pod"):
            _, rows = folded(client, f'{OTLP_CPU}{{{name}="a",via="{via}"}}', BEGIN, BEGIN + 1)
            assert rows == {("main",): 10}, (via, name)


def test_profiles_with_a_batch_id_are_counted_once(server):
    client = Tenant(server).api("ingest", "read")
    series = [
        ({"service_name": name}, [STACKS]) for name in ("a", "b")
    ]  # folded stacks have no time
    for _ in range(2):
        for header, times in (({}, 1), ({"Perfolio-Batch-Id": "x"}, 2)):
            for _ in range(times):
                response = client.post(
                    PUSH, push_protobuf(series), headers={"Content-Type": PROTO, **header}
                )
                assert response.status == 200, response
    response = client.get("/api/v1/query", query={"query": "samples:count", "report": "folded"})
    assert response.status == 200, response
    rows = dict(line.rsplit(" ", 1) for line in response.text.splitlines())
    assert rows == {
        "main;work": "18",
        "main": "12",
    }  # 2 series; 2 requests without an ID, 1 counted with an ID


def test_equal_profiles_of_several_processes_all_count(server):
    """SDKs without sessions align their windows to the clock and state times by the second, so the
    workers of a service with a sample or two each send equal requests."""
    client = Tenant(server).api("ingest", "read")
    start_s = S // 10 * 10
    body = make_profile(
        [("cpu", "nanoseconds")], start_s * 10**9, {("poll",): [10**7]}, ("", "")
    )
    times = {"from": start_s, "until": start_s + 10}

    def push(service, profile_id):
        request = push_protobuf([({"service_name": service}, [body])], profile_id)
        return client.post(PUSH, request, headers={"Content-Type": PROTO})

    for i in range(8):
        for response in (
            client.post("/ingest", b"poll 1\n", query={"name": "text", **times}),
            client.post("/ingest", body, query={"name": "pprof", **times, "format": "pprof"}),
            client.post("/ingest", b"poll 1\n", query={"name": "one{__session_id__=a}", **times}),
            push("without ids", None),
            push("own ids", str(i)),
            push("sent again", "the same"),
        ):
            assert response.status == 200, response
    for service, value in {
        "text": 8,
        "pprof": 8,
        "one": 1,
        "without ids": 8,
        "own ids": 8,
        "sent again": 1,
    }.items():
        query = f'process_cpu:cpu{{service_name="{service}"}}'
        rows = folded(client, query, start_s * 10**9, (start_s + 10) * 10**9)[1]
        assert rows == {("poll",): value * 10**7}, service


def test_a_profile_that_may_have_been_forgotten_has_a_warning(server):
    client = Tenant(server).api("ingest", "read")
    now_ns = time.time_ns()
    for hours, is_warned in ((30, True), (20, False)):
        time_ns = now_ns - hours * 3600 * 10**9
        body = make_profile([("cpu", "nanoseconds")], time_ns, {("main",): [5]}, ("", ""))
        export = otlp_maker.Request(
            [
                (
                    {"service.name": "a"},
                    [otlp_maker.Profile(("samples", "count"), time_ns, {("m",): 1})],
                )
            ]
        ).protobuf("1.10")
        for send in (
            lambda body=body: client.post("/api/v1/profiles", body),
            lambda export=export: client.post(OTLP, export, headers={"Content-Type": X_PROTO}),
        ):
            response = send()
            assert response.status == 200, response
            warning = response.headers.get("perfolio-warning", "")
            assert ("count twice" in warning) == is_warned, (hours, response)
        again = client.post("/api/v1/profiles", body)
        assert again.json()["duplicate"] and "perfolio-warning" not in again.headers, again


# ---- credentials ----

REQUESTS = {
    OTLP: ({}, {"Content-Type": JSON}, b"{}"),
    PUSH: ({}, {"Content-Type": JSON}, b"{}"),
    "/ingest": ({"name": "a"}, {}, STACKS),
    "/pyroscope/ingest": ({"name": "a"}, {}, STACKS),
    "/api/v1/profiles": ({}, {}, STACKS),
}


def basic(user, password):
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def post_to(server, path, **headers):
    query, fields, body = REQUESTS[path]
    return server.anonymous().post(path, body, query=query, headers={**fields, **headers})


def reason(response):
    problem = response.json()
    return problem.get("message") or problem["detail"]


@pytest.mark.parametrize("path", REQUESTS)
def test_bearer_and_basic_credentials_are_accepted(server, path):
    tenant = Tenant(server)
    token, reader = tenant.make_token("ingest")["token"], tenant.make_token("read")["token"]
    for headers in (
        {"Authorization": f"Bearer {token}"},
        {"Authorization": f"bearer  {token}"},
        basic("", token),
        basic("12345", token),
        basic("any one", token),
    ):
        assert post_to(server, path, **headers).status == 200, headers
    for headers in (
        {},
        basic(token, ""),
        basic("x", token[:-1]),
        {"Authorization": "Basic %%%"},
        {"Authorization": "Basic"},
        {"Authorization": f"Digest {token}"},
        {"Authorization": token},
        basic("x", "pf_" + "a" * 43),
    ):
        response = post_to(server, path, **headers)
        assert response.status == 401 and reason(response), (headers, response)
        assert response.headers["www-authenticate"].startswith("Bearer"), response
    for headers in ({"Authorization": f"Bearer {reader}"}, basic("x", reader)):
        response = post_to(server, path, **headers)
        assert response.status == 403 and '"ingest"' in reason(response), response


def test_basic_credentials_are_accepted_by_ingest_routes_only(server):
    token = Tenant(server).make_token("read")["token"]
    assert server.anonymous().get("/api/v1/shares", headers=basic("x", token)).status == 401


@pytest.mark.parametrize("path", REQUESTS)
def test_x_scope_orgid_must_name_the_tenant_of_the_token(server, path):
    tenant, other = Tenant(server), Tenant(server)
    credentials = basic("x", tenant.make_token("ingest")["token"])
    for name in (str(tenant.id), tenant.name, tenant.name.upper(), "", f" {tenant.id} "):
        assert post_to(server, path, **credentials, **{"X-Scope-OrgID": name}).status == 200, name
    for name in (str(other.id), other.name, "anonymous", f"{tenant.id}|{other.id}", "\xff"):
        response = post_to(server, path, **credentials, **{"X-Scope-OrgID": name})
        assert response.status == 403, (name, response)
        assert "X-Scope-OrgID" in reason(response) and tenant.name in reason(response)
        assert other.name not in reason(response) or other.name == name


def test_x_scope_orgid_must_name_the_tenant_of_the_token_in_queries(server):
    tenant, other = Tenant(server), Tenant(server)
    client = tenant.api("read")
    for path in ("/api/v1/profile_types", "/api/v1/labels", "/api/v1/usage"):
        assert client.get(path, headers={"X-Scope-OrgID": str(tenant.id)}).status == 200
        response = client.get(path, headers={"X-Scope-OrgID": str(other.id)})
        assert response.status == 403 and "X-Scope-OrgID" in response.json()["detail"], response


# ---- labels ----

TWO_NAMES = [("k8s.pod", "dot"), ("k8s_pod", "plain")]


def send_labels(client, way, pairs, number):
    """Sends one profile with these labels. Two different names may become equal when the server
    normalizes them."""
    time_ns = BEGIN + number
    if way == "otlp":
        request = otlp_maker.Request(
            [({}, [otlp_maker.Profile(("samples", "count"), time_ns, {("main",): 1})])]
        )
        export = json.loads(request.json())
        export["resourceProfiles"][0]["resource"] = {
            "attributes": [{"key": name, "value": {"stringValue": value}} for name, value in pairs]
        }
        return client.post(OTLP, json=export)
    if way == "push":
        labels = [{"name": name, "value": value} for name, value in pairs]
        profile = make_profile(CPU, time_ns, {("main",): [1, 10]}, ("cpu", "nanoseconds"), 10**10)
        return client.post(
            PUSH,
            json={
                "series": [
                    {
                        "labels": labels,
                        "samples": [{"rawProfile": base64.b64encode(profile).decode()}],
                    }
                ]
            },
        )
    if way == "ingest":
        name = "app.cpu{" + ",".join(f"{name}={value}" for name, value in pairs) + "}"
        return client.post(
            "/ingest", STACKS, query={"name": name, "from": time_ns, "until": time_ns}
        )
    return client.post(
        "/api/v1/profiles",
        STACKS,
        query=[("time", time_ns), *(("label", f"{name}={value}") for name, value in pairs)],
    )


def label_message(way, response):
    """Returns the omission or error that the response reports, or an empty string. The age of the
    profiles does not count."""
    if way == "otlp":
        assert response.status == 200, response
        return response.json().get("partialSuccess", {}).get("errorMessage", "")
    if response.status == 200:
        return (
            response.headers.get("perfolio-warning", "")
            .partition("these profiles are")[0]
            .rstrip("; ")
        )
    assert response.status == 400, response
    return reason(response)


@pytest.mark.parametrize("way", ["otlp", "push", "ingest", "profiles"])
def test_labels_with_one_normalized_name_are_handled_equally_everywhere(server, way):
    tenant = Tenant(server)
    client = tenant.api("ingest", "read", "admin")
    response = send_labels(client, way, TWO_NAMES, 1)
    message = label_message(way, response)
    assert message.startswith(
        "label 'k8s_pod' is left out: its name becomes that of 'k8s.pod', which counts"
    ), response
    window = {"start": BEGIN, "end": END}
    assert client.get("/api/v1/label/k8s_pod/values", query=window).json()["data"] == ["dot"]
    message = label_message(
        way, send_labels(client, way, [("k8s.pod", "same"), ("k8s_pod", "same")], 2)
    )
    assert message == "", "equal values must not be reported"
    message = label_message(way, send_labels(client, way, [("a.b", "1"), ("a.b", "2")], 3))
    assert "'a.b'" in message and "is given twice" in message
    names = client.get("/api/v1/labels", query=window).json()["data"]
    assert "a_b" not in names, "contradicting labels must not be stored"


def test_attribute_names_that_are_not_utf_8_are_reported(server):
    client = Tenant(server).api("ingest", "read")
    request = otlp_maker.Request(
        [
            ({"bad-name": "x"}, [otlp_maker.Profile(("samples", "count"), BEGIN, {("main",): 1})]),
            ({"good-name": "x"}, [otlp_maker.Profile(("samples", "count"), BEGIN, {("main",): 2})]),
        ]
    )
    data = request.protobuf()
    assert data.count(b"bad-name") == 1
    response = client.post(
        OTLP, data.replace(b"bad-name", b"bad\xffname"), headers={"Content-Type": X_PROTO}
    )
    assert (
        response.status == 200
        and b"no UTF-8" in response.body
        and b"profile 0 (resource 0)" in response.body
    ), response
    names = client.get("/api/v1/labels", query={"start": BEGIN, "end": END}).json()["data"]
    assert "good_name" in names and not [name for name in names if name.startswith("bad")], names


ODD = [
    # Parameters added to name=app.cpu, status, and words of the message or, for 200, (start of the
    # profile, total).
    ("from=%d" % S, 200, (S * 10**9, 10**7)),
    ("from=%d&until=%d" % (S * 1000, S * 1000 + 1), 200, (S * 10**9, 10**7)),
    ("from=%d" % (S * 10**6), 200, (S * 10**9, 10**7)),
    ("from=%d&until=%d" % (BEGIN, BEGIN), 200, (BEGIN, 10**7)),
    ("from=%d&from=soon" % S, 200, (S * 10**9, 10**7)),
    ("from=%d&until=" % S, 200, (S * 10**9, 10**7)),
    ("from=-1", 400, "from: '-1'"),
    ("from=-%d" % S, 400, "from: '-"),
    ("from=" + "9" * 20, 400, "out of range"),
    ("from=" + "9" * 19, 400, "out of range|2262"),
    ("from=%d&until=%d" % (S + 1, S), 400, "until: it is before from"),
    ("from=1e9", 400, "from: '1e9'"),
    ("from=%zz", 400, "%"),
    *(
        ("from=%d&sampleRate=%s" % (S, rate), 200, (S * 10**9, 10**7))
        for rate in ("", "-5", "x", "1e3", "9" * 30, "4294967296", "1000000001")
    ),
    ("from=%d&sampleRate=50&sampleRate=7" % S, 200, (S * 10**9, 2 * 10**7)),
    ("from=%d&sampleRate=1000000000" % S, 200, (S * 10**9, 1)),
    ("from=%d&units=&aggregationType=&format=&spyName=" % S, 200, (S * 10**9, 10**7)),
    *(
        ("from=%d&format=%s" % (S, name), 200, (S * 10**9, 10**7))
        for name in ("pprof", "folded", "groups", "collapsed")
    ),
    ("from=%d&aggregationType=sum" % S, 200, (S * 10**9, 10**7)),
    (
        "from=%d&format=zzz" % S,
        400,
        "format: 'zzz' is unknown: send one of "
        "pprof, folded, perf-script, cpuprofile, speedscope, groups",
    ),
    ("from=%d&format=PPROF" % S, 400, "format: 'PPROF' is unknown"),
    (
        "from=%d&aggregationType=most" % S,
        400,
        "aggregationType: 'most' is unknown: send one of sum, average",
    ),
    ("from=%d&format=%s" % (S, "y" * 3000), 400, "is unknown"),
    ("from=%d&format=jfr" % S, 422, "jfr"),
    ("from=%d&format=trie" % S, 422, "trie"),
    ("from=%d&spyName=%s" % (S, "x" * 5000), 413, "spyName"),
    ("from=%d&spyName=%%ff" % S, 400, "spyName"),
]


@pytest.mark.parametrize("odd", ODD, ids=[f"{i} {odd[0][:40]}" for i, odd in enumerate(ODD)])
def test_invalid_parameters_of_ingest_are_refused_or_get_their_default(server, odd):
    more, status, words = odd
    client = Tenant(server).api("ingest", "read")
    response = client.post("/ingest?name=app.cpu&" + more, b"main 1\n")
    assert response.status == status, response
    if status != 200:
        assert any(word in reason(response) for word in words.split("|")), response
        return
    listed = client.get(
        "/api/v1/profiles", query={"query": OTLP_CPU, "start": BEGIN, "end": END}
    ).json()["data"]
    assert [(int(one["time_ns"]), one["total"]) for one in listed] == [words]


@pytest.mark.parametrize(
    "name, words",
    [
        ("", "name"),
        ("%20", "name"),
        ("{a=b}", "name"),
        ("a{b}", "'b'"),
        ("a{b=c", "}"),
        ("a{=c}", "no name"),
        ("a{b=" + "x" * 5000 + "}", "'b'"),
        ("a{" + "x" * 2000 + "=1}", "name of label"),
        ("a{" + ",".join(f"l{i}=1" for i in range(300)) + "}", "labels"),
        ("a{%ff=1}", "UTF-8"),
        ("a{b=%ff}", "UTF-8"),
        ("%ff.cpu", "UTF-8"),
        ("a" * 5000 + ".cpu", "service_name"),
    ],
)
def test_invalid_names_of_ingest_are_refused(server, name, words):
    response = Tenant(server).api("ingest").post("/ingest?name=" + name, b"main 1\n")
    assert response.status in (400, 413) and words in reason(response), response


# ---- errors ----


def status_of(body):
    """Returns the code and message of a google.rpc.Status in protobuf."""
    assert body[0] == 8 and body[2] == 0x12, body
    size, at = body[3], 4
    if size > 127:
        size, at = (size & 127) | body[4] << 7, 5
    assert len(body) == at + size
    return body[1], body[at:].decode()


def error_of(path, response, is_protobuf=False):
    """Returns the code and message of an error in the format of the protocol."""
    if path == OTLP and is_protobuf:
        assert response.headers["content-type"] == X_PROTO, response
        return status_of(response.body)
    assert response.headers["content-type"] == JSON, response
    problem = response.json()
    assert set(problem) == {"code", "message"} and problem["message"], response
    return problem["code"], problem["message"]


LARGE = sample_profiles.zstd_zeros(65 << 20)
LOOSE = sample_profiles.zstd(loose(65 << 20))

ERRORS = [
    # case, path, query, headers, body, status, code, words
    ("cut", OTLP, {}, {"Content-Type": X_PROTO}, b"\x0a\xff", 400, 3, ""),
    ("no JSON", OTLP, {}, {"Content-Type": JSON}, b"{", 400, 3, ""),
    ("a list", OTLP, {}, {"Content-Type": JSON}, b"[]", 400, 3, ""),
    (
        "no gzip",
        OTLP,
        {},
        {"Content-Type": X_PROTO, "Content-Encoding": "gzip"},
        b"x",
        400,
        3,
        "Content-Encoding",
    ),
    (
        "brotli",
        OTLP,
        {},
        {"Content-Type": X_PROTO, "Content-Encoding": "br"},
        b"x",
        415,
        12,
        "gzip",
    ),
    ("text", OTLP, {}, {"Content-Type": "text/plain"}, b"x", 415, 12, "Content-Type"),
    ("no type", OTLP, {}, {}, b"x", 415, 12, "Content-Type"),
    (
        "a bomb",
        OTLP,
        {},
        {"Content-Type": X_PROTO, "Content-Encoding": "zstd"},
        LARGE,
        413,
        8,
        "max-expansion-ratio",
    ),
    (
        "far too much",
        OTLP,
        {},
        {"Content-Type": X_PROTO, "Content-Encoding": "zstd"},
        LOOSE,
        413,
        8,
        "67108864 bytes",
    ),
    ("9 MiB", OTLP, {}, {"Content-Type": X_PROTO}, bytes(9 << 20), 413, 8, "8388608 bytes"),
    ("9 MiB of JSON", OTLP, {}, {"Content-Type": JSON}, bytes(9 << 20), 413, 8, "8388608 bytes"),
    ("cut", PUSH, {}, {"Content-Type": PROTO}, b"\x0a\xff", 400, "invalid_argument", "PushRequest"),
    ("no JSON", PUSH, {}, {"Content-Type": JSON}, b"{", 400, "invalid_argument", ""),
    (
        "no profile",
        PUSH,
        {},
        {"Content-Type": PROTO},
        push_protobuf([({"a": "b"}, [b"\0\1"])]),
        400,
        "invalid_argument",
        "profile 1 of 1",
    ),
    (
        "label twice",
        PUSH,
        {},
        {"Content-Type": JSON},
        json.dumps(
            {
                "series": [
                    {
                        "labels": [{"name": "a", "value": "1"}, {"name": "a", "value": "2"}],
                        "samples": [{"rawProfile": base64.b64encode(STACKS).decode()}],
                    }
                ]
            }
        ).encode(),
        400,
        "invalid_argument",
        "'a' is given twice",
    ),
    (
        "gRPC",
        PUSH,
        {},
        {"Content-Type": "application/grpc"},
        b"x",
        415,
        "unimplemented",
        "Content-Type",
    ),
    (
        "brotli",
        PUSH,
        {},
        {"Content-Type": PROTO, "Content-Encoding": "br"},
        b"x",
        501,
        "unimplemented",
        "Content-Encoding",
    ),
    (
        "a bomb",
        PUSH,
        {},
        {"Content-Type": PROTO, "Content-Encoding": "zstd"},
        LARGE,
        400,
        "invalid_argument",
        "max-expansion-ratio",
    ),
    (
        "far too much",
        PUSH,
        {},
        {"Content-Type": PROTO, "Content-Encoding": "zstd"},
        LOOSE,
        400,
        "invalid_argument",
        "67108864 bytes",
    ),
    (
        "9 MiB",
        PUSH,
        {},
        {"Content-Type": PROTO},
        bytes(9 << 20),
        413,
        "invalid_argument",
        "8388608",
    ),
    ("no name", "/ingest", {}, {}, STACKS, 400, "invalid_argument", "name"),
    ("name", "/ingest", {"name": "a{b"}, {}, STACKS, 400, "invalid_argument", "name"),
    ("time", "/ingest", {"name": "a", "from": "soon"}, {}, STACKS, 400, "invalid_argument", "from"),
    ("rubbish", "/ingest", {"name": "a"}, {}, b"\0\1\2", 422, "invalid_argument", ""),
    (
        "no gzip",
        "/ingest",
        {"name": "a"},
        {"Content-Encoding": "gzip"},
        b"x",
        422,
        "invalid_argument",
        "",
    ),
    (
        "brotli",
        "/ingest",
        {"name": "a"},
        {"Content-Encoding": "br"},
        b"x",
        422,
        "invalid_argument",
        "gzip",
    ),
    ("trie", "/ingest", {"name": "a", "format": "trie"}, {}, b"x", 422, "invalid_argument", "trie"),
    (
        "a cut form",
        "/ingest",
        {"name": "a"},
        FORM,
        form(profile=STACKS)[:-4],
        422,
        "invalid_argument",
        "",
    ),
    (
        "a bomb",
        "/ingest",
        {"name": "a"},
        {"Content-Encoding": "zstd"},
        LARGE,
        413,
        "invalid_argument",
        "max-expansion-ratio",
    ),
    (
        "far too much",
        "/ingest",
        {"name": "a"},
        {"Content-Encoding": "zstd"},
        LOOSE,
        413,
        "invalid_argument",
        "67108864",
    ),
    (
        "9 MiB",
        "/pyroscope/ingest",
        {"name": "a"},
        {},
        bytes(9 << 20),
        413,
        "invalid_argument",
        "8388608",
    ),
]


@pytest.mark.parametrize(
    "case, path, query, headers, body, status, code, words",
    ERRORS,
    ids=[f"{row[1]} {row[0]}" for row in ERRORS],
)
def test_errors_have_the_format_of_the_protocol(
    server, case, path, query, headers, body, status, code, words
):
    response = Tenant(server).api("ingest").post(path, body, query=query, headers=headers)
    assert response.status == status, response
    actual, message = error_of(path, response, headers.get("Content-Type") == X_PROTO)
    assert actual == code and words in message, (actual, message)


@pytest.mark.parametrize("path", [OTLP, PUSH, "/ingest"])
def test_token_errors_have_the_format_of_the_protocol(server, path):
    response = post_to(server, path, **{"Content-Type": X_PROTO})
    code, message = error_of(path, response, is_protobuf=True)
    assert response.status == 401 and code == (16 if path == OTLP else "unauthenticated"), response
    reader = Tenant(server).make_token("read")["token"]
    response = post_to(server, path, **{"Content-Type": X_PROTO, **basic("", reader)})
    code, message = error_of(path, response, is_protobuf=True)
    assert response.status == 403 and code == (7 if path == OTLP else "permission_denied"), response
    assert '"ingest"' in message


@pytest.mark.long
def test_without_a_database_ingest_returns_retry_after(start_server):
    server = start_server()
    client = Tenant(server).api("ingest", "read")
    profile = make_profile(CPU, BEGIN, {("main",): [1, 10]}, ("cpu", "nanoseconds"), 10**10)
    export = otlp_maker.Request(
        [({}, [otlp_maker.Profile(("cpu", "nanoseconds"), BEGIN, {("m",): 1})])]
    )
    requests = [
        (OTLP, {}, {"Content-Type": X_PROTO}, export.protobuf(), 14),
        (
            PUSH,
            {},
            {"Content-Type": PROTO},
            push_protobuf([({"a": "b"}, [profile])]),
            "unavailable",
        ),
        ("/ingest", {"name": "app"}, {}, profile, "unavailable"),
    ]
    with Outage(server):
        for path, query, headers, body, code in requests:
            response = client.post(path, body, query=query, headers=headers)
            assert response.status == 503 and int(response.headers["retry-after"]) > 0, response
            assert error_of(path, response, path == OTLP)[0] == code
    for path, query, headers, body, _ in requests:
        assert client.post(path, body, query=query, headers=headers).status == 200
