"""Limits of a team on continuous profiles: each refusal names the limit, its value and where it is
set, in the error format of the protocol. Other teams and data within the limits are not
affected."""

import concurrent.futures
import gzip
import re

import pytest

from people import Tenant
from test_background_locks import Held, waiting
from test_http_raw import Wire, get, metric, wait_until
from test_ingest_wire import JSON, OTLP, PROTO, PUSH, otlp_maker, push_protobuf
from test_store import BEGIN, CPU, folded, make_profile, rows_of

STACKS = {("main", "work"): [1, 10], ("main",): [2, 20]}
WIRES = ["api", "push", "ingest", "otlp"]
END = BEGIN + 3600 * 10**9
TIME_END = (
    (2**63 - 1) // (86400 * 10**9) * 86400 * 10**9
)  # 2262-04-11, the day in which 64 bits end
CPU_TYPE = "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta"


def make_same(time_ns, stacks):
    """Like make_profile, but with identical bytes each time: gzip would store the current time."""
    return gzip.compress(
        gzip.decompress(make_profile(CPU, time_ns, stacks, ("cpu", "nanoseconds"), 10**10)),
        mtime=0,
    )


def send(client, wire, labels, at=0, stacks=STACKS):
    """Sends one profile of the service "app" with 4 samples (2 over OTLP)."""
    profile = make_same(BEGIN + at, stacks)
    if wire == "api":
        return client.post(
            "/api/v1/profiles",
            profile,
            query=[
                ("label", f"{name}={value}")
                for name, value in {"service_name": "app", **labels}.items()
            ],
        )
    if wire == "push":
        return client.post(
            PUSH,
            push_protobuf([({"service_name": "app", **labels}, [profile])]),
            headers={"Content-Type": PROTO},
        )
    if wire == "ingest":
        given = ",".join(f"{name}={value}" for name, value in labels.items())
        return client.post("/ingest", profile, query={"name": f"app{{{given}}}", "format": "pprof"})
    profiles = [
        otlp_maker.Profile(
            ("cpu", "nanoseconds"),
            BEGIN + at,
            {stack: values[1] for stack, values in stacks.items()},
            1,
            ("cpu", "nanoseconds"),
        )
    ]
    return client.post(
        OTLP,
        otlp_maker.Request([({"service.name": "app", **labels}, profiles)]).json(),
        headers={"Content-Type": JSON},
    )


def refusal(response, wire, status, code):
    """Returns the message of a refusal and checks the error format of the protocol."""
    assert response.status == status, response
    document = response.json()
    if wire == "api":
        assert response.headers["content-type"] == "application/problem+json"
        assert document["status"] == status
        return document["detail"]
    assert response.headers["content-type"] == "application/json"
    assert document["code"] == code, document
    return document["message"]


def is_taken(response):
    return response.status == 200 and "partialSuccess" not in response.text


@pytest.mark.long
def test_times_after_2262_are_refused_and_earlier_ones_survive_compaction(start_server):
    server = start_server("--jobs-interval", "1s", "--tenant-future", "100000d")
    client = Tenant(server).api("ingest", "read")
    for wire in WIRES:
        response = send(client, wire, {"pod": wire}, TIME_END - BEGIN)
        if wire == "otlp":
            assert (
                response.status == 200
                and "after 2262-04-10" in response.json()["partialSuccess"]["errorMessage"]
            )
        else:
            assert "after 2262-04-10" in refusal(
                response, wire, 422 if wire == "ingest" else 400, "invalid_argument"
            )
        assert is_taken(send(client, wire, {"pod": wire}, TIME_END - 1 - BEGIN))

    def is_merged():
        with server.cursor() as cursor:
            cursor.execute("UPDATE segment SET created_at = created_at - interval '1 hour'")
        return not rows_of(server, "SELECT 1 FROM segment_tenant WHERE NOT is_swapped")

    assert wait_until(is_merged) and rows_of(server, "SELECT level FROM block") == {1}
    for wire in WIRES:
        _, rows = folded(client, f'process_cpu:cpu{{pod="{wire}"}}', TIME_END - 1, TIME_END)
        assert rows == {stack: values[1] for stack, values in STACKS.items()}, wire


@pytest.mark.parametrize("wire", WIRES)
def test_samples_per_second_are_limited_with_a_burst(server, wire):
    tenant, other = Tenant(server, samples_per_second=1, samples_burst=9), Tenant(server)
    client = tenant.api("ingest", "read")
    responses = []
    while len(responses) < 100 and all(map(is_taken, responses)):
        responses.append(send(client, wire, {}, len(responses)))
    each = 2 if wire == "otlp" else 4
    # Each second that passes during the requests allows one more sample.
    assert 9 // each <= sum(map(is_taken, responses)) < 100, responses
    refused = next(response for response in responses if response.status != 200)
    text = refusal(refused, wire, 429, 8 if wire == "otlp" else "resource_exhausted")
    assert "samples_per_second is 1, set for this team" in text
    assert 1 <= int(refused.headers["retry-after"]) <= 4
    assert is_taken(send(other.api("ingest"), wire, {})), "each team has its own limit"
    _, rows = folded(client, CPU_TYPE + '{service_name="app"}', BEGIN, END)
    assert rows == {
        stack: values[1] * sum(map(is_taken, responses)) for stack, values in STACKS.items()
    }


@pytest.mark.parametrize("wire", WIRES)
def test_a_profile_with_more_samples_than_the_burst_is_too_large(server, wire):
    client = Tenant(server, samples_burst=1).api("ingest")
    text = refusal(
        send(client, wire, {}),
        wire,
        400 if wire == "push" else 413,
        {"otlp": 8, "push": "invalid_argument", "ingest": "invalid_argument"}.get(wire),
    )
    assert "samples_burst is 1, set for this team" in text


@pytest.mark.parametrize("wire", WIRES)
def test_active_series_are_limited(server, wire):
    each = 1 if wire == "otlp" else 2  # one of each type
    tenant = Tenant(server, active_series=2 * each)
    client = tenant.api("ingest", "read")
    for at in range(2):
        for pod in "ab":
            assert is_taken(send(client, wire, {"pod": pod}, at)), "known series stay accepted"
    response = send(client, wire, {"pod": "c"})
    wanted = f"active_series is {2 * each}, set for this team"
    if wire == "otlp":
        partial = response.json()["partialSuccess"]
        assert response.status == 200 and partial["rejectedProfiles"] == "1"
        assert wanted in partial["errorMessage"]
    else:
        assert wanted in refusal(response, wire, 429, "resource_exhausted")
        assert int(response.headers["retry-after"]) > 0
    assert is_taken(send(client, wire, {"pod": "a"}, 2))
    for pod, count in (("a", 3), ("b", 2), ("c", 0)):
        _, rows = folded(client, f'{CPU_TYPE}{{pod="{pod}"}}', BEGIN, END)
        assert rows.get(("main",), 0) == 20 * count, pod
    response = server.api().patch(f"/api/v1/admin/tenants/{tenant.id}", json={"active_series": 100})
    assert response.status == 200
    # OTLP clients must not repeat rejected profiles, so this is a new profile.
    assert is_taken(send(client, wire, {"pod": "c"}, 5)), "a new limit applies immediately"


def test_series_of_an_otlp_request_within_the_limits_are_stored(server):
    client = Tenant(server, active_series=2, label_value_bytes=20).api("ingest", "read")
    make = lambda: [
        otlp_maker.Profile(
            ("cpu", "nanoseconds"), BEGIN, {("main",): 10, ("x", "y"): 3}, 1, ("cpu", "nanoseconds")
        )
    ]
    request = otlp_maker.Request(
        [
            ({"service.name": "app", "pod": pod}, make())
            for pod in ("a", "much too long for the limit", "b", "c", "d")
        ]
    )
    response = client.post(OTLP, request.json(), headers={"Content-Type": JSON})
    partial = response.json()["partialSuccess"]
    assert partial["rejectedProfiles"] == "3", partial
    assert "active_series is 2" in partial["errorMessage"]
    seen = [
        pod
        for pod in "abcd"
        if folded(client, f'{CPU_TYPE}{{pod="{pod}"}}', BEGIN, END)[1]
        == {("main",): 10, ("x", "y"): 3}
    ]
    assert seen == ["a", "b"]


def test_a_refused_push_does_not_use_up_active_series(server):
    client = Tenant(server, active_series=4).api("ingest")
    profile = make_same(BEGIN, STACKS)
    series = [({"service_name": "app", "pod": pod}, [profile]) for pod in "abc"]
    response = client.post(PUSH, push_protobuf(series), headers={"Content-Type": PROTO})
    assert "active_series is 4" in refusal(response, "push", 429, "resource_exhausted")
    for pod in "xy":
        assert is_taken(send(client, "push", {"pod": pod}))


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "limit, value, labels",
    [
        ("label_name_bytes", 16, {"x" * 17: "1"}),
        ("label_value_bytes", 16, {"pod": "x" * 17}),
        ("series_labels", 5, {f"l{i}": "1" for i in range(6)}),
    ],
)
def test_labels_are_limited(server, wire, limit, value, labels):
    client = Tenant(server, **{limit: value}).api("ingest", "read")
    response = send(client, wire, labels)
    wanted = f"{limit} is {value}, set for this team"
    if wire == "otlp":
        partial = response.json()["partialSuccess"]
        assert response.status == 200 and partial["rejectedProfiles"] == "1"
        assert wanted in partial["errorMessage"]
    else:
        assert wanted in refusal(
            response, wire, 422 if wire == "ingest" else 400, "invalid_argument"
        )
    assert is_taken(send(client, wire, {"pod": "x"}))


@pytest.mark.parametrize("wire", WIRES)
def test_the_size_of_a_profile_is_limited(server, wire):
    stacks = {("main", f"a rather long name of a function {i}"): [1, 10] for i in range(100)}
    client = Tenant(server, profile_bytes=2000).api("ingest")
    text = refusal(
        send(client, wire, {}, stacks=stacks),
        wire,
        400 if wire == "push" else 413,
        {"otlp": 8, "push": "invalid_argument", "ingest": "invalid_argument"}.get(wire),
    )
    assert "profile_bytes is 2000, set for this team" in text
    assert is_taken(send(client, wire, {}))


def test_settings_are_the_default_limits_and_are_named_in_refusals(start_server):
    server = start_server(
        "--tenant-samples-per-second",
        "1",
        "--tenant-samples-burst",
        "5",
        "--tenant-label-value-bytes",
        "8",
    )
    client = Tenant(server).api("ingest", "read")
    text = refusal(send(client, "api", {"pod": "x" * 9}), "api", 400, None)
    assert "label_value_bytes is 8, by the setting tenant-label-value-bytes" in text
    assert is_taken(send(client, "api", {}))
    responses = [send(client, "api", {}, at) for at in range(1, 4)]
    refused = next(response for response in responses if response.status != 200)
    assert "samples_per_second is 1, by the setting tenant-samples-per-second" in refusal(
        refused, "api", 429, None
    )
    quotas = client.get("/api/v1/tenant").json()["quotas"]
    assert (quotas["samples_per_second"], quotas["samples_burst"], quotas["active_series"]) == (
        1,
        5,
        100000,
    )


def test_limits_of_a_team_are_set_and_returned(server):
    tenant = Tenant(server, active_series=7)
    path = f"/api/v1/admin/tenants/{tenant.id}"
    operator = server.api()
    assert operator.get(path).json()["quotas"]["active_series"] == 7
    changed = operator.patch(path, json={"samples_burst": 5, "active_series": None}).json()
    assert changed["quotas"]["active_series"] is None and changed["quotas"]["samples_burst"] == 5
    done = server.cli(
        "admin", "tenant", "set", str(tenant.id), "query_cpu_s=3", "samples_burst=null"
    )
    assert done.returncode == 0, done
    quotas = operator.get(path).json()["quotas"]
    assert quotas["query_cpu_s"] == 3 and quotas["samples_burst"] is None
    for wrong in (
        {"active_series": -1},
        {"series_labels": 65},
        {"query_cpu_s": "x"},
        {"no_such": 1},
    ):
        response = operator.patch(path, json=wrong)
        assert response.status == 400 and next(iter(wrong)) in response.json()["detail"], response


# ---- queries ----

QUERIES = {
    "/api/v1/query": {"query": CPU_TYPE},
    "/api/v1/query_range": {"query": CPU_TYPE, "step": 60},
    "/api/v1/series": {},
    "/api/v1/labels": {},
    "/api/v1/profile_types": {},
    "/api/v1/profiles": {"query": CPU_TYPE},
}


def fetch(client, path, **more):
    return client.get(path, query={**QUERIES[path], "start": BEGIN, "end": END, **more})


@pytest.mark.parametrize("path", QUERIES)
@pytest.mark.parametrize("limit", ["query_cpu_s", "query_time_s"])
def test_the_time_of_a_query_is_limited(server, path, limit):
    client = Tenant(server, **{limit: 0}).api("ingest", "read")
    assert is_taken(send(client, "api", {}))
    document = refusal(fetch(client, path), "api", 422, None)
    assert f"{limit} is 0, set for this team" in document


@pytest.mark.parametrize("path", QUERIES)
def test_bytes_read_to_open_blocks_are_counted(server, path):
    tenant = Tenant(server)
    client = tenant.api("ingest", "read")
    assert is_taken(send(client, "api", {}))
    fields = fetch(client, path).headers.get("perfolio-statistics")
    assert fields is None or int(re.search(r"bytes=(\d+)", fields)[1]) > 500, fields
    server.api().patch(f"/api/v1/admin/tenants/{tenant.id}", json={"query_read_bytes": 500})
    client = tenant.api("read")
    assert "query_read_bytes is 500" in refusal(fetch(client, path), "api", 422, None)


def test_the_bytes_that_a_query_reads_are_limited(server):
    tenant = Tenant(server, query_read_bytes=1)
    client = tenant.api("ingest", "read")
    for at in range(3):
        assert is_taken(send(client, "api", {}, at * 60 * 10**9))
    # The window ends within the hour, so the query reads its rows.
    for path in ("/api/v1/query", "/api/v1/query_range"):
        response = fetch(client, path, end=BEGIN + 90 * 10**9, focus="work")
        assert "query_read_bytes is 1, set for this team" in refusal(response, "api", 422, None)
    response = client.get(
        "/api/v1/diff",
        query={
            "a_query": CPU_TYPE,
            "b_query": CPU_TYPE,
            "a_start": BEGIN,
            "a_end": BEGIN + 90 * 10**9,
        },
    )
    assert "query_read_bytes is 1" in refusal(response, "api", 422, None)
    response = client.with_token(tenant.make_token("read", "share")["token"]).post(
        "/api/v1/shares", query={"query": CPU_TYPE, "start": BEGIN, "end": BEGIN + 90 * 10**9}
    )
    assert "query_read_bytes is 1" in refusal(response, "api", 422, None)
    done = server.cli(
        "query",
        CPU_TYPE,
        "--start",
        str(BEGIN),
        "--end",
        str(BEGIN + 90 * 10**9),
        environment={"PERFOLIO_TOKEN": client.token},
    )
    assert done.returncode == 6 and b"query_read_bytes is 1" in done.stderr, done


def test_the_memory_of_a_query_is_limited(server):
    stacks = {
        tuple(f"f{(i * 7 + depth) % 997}" for depth in range(5)) + (f"leaf{i}",): [1, 10]
        for i in range(20000)
    }
    tenant = Tenant(server, query_memory_bytes=1 << 20)
    client = tenant.api("ingest", "read")
    assert is_taken(send(client, "api", {}, stacks=stacks))
    text = refusal(fetch(client, "/api/v1/query"), "api", 422, None)
    assert "query_memory_bytes is 1048576, set for this team" in text
    server.api().patch(f"/api/v1/admin/tenants/{tenant.id}", json={"query_memory_bytes": None})
    assert fetch(client, "/api/v1/query", report="folded").status == 200


@pytest.mark.parametrize("path", ["/api/v1/query", "/api/v1/query_range"])
def test_a_query_is_cancelled_when_its_client_disconnects(start_server, path):
    server = start_server()
    client = Tenant(server).api("ingest", "read")
    assert is_taken(send(client, "api", {}))
    target = f"{path}?query={CPU_TYPE}&start={BEGIN}&end={END}"
    with Held(server, "LOCK TABLE block IN ACCESS EXCLUSIVE MODE") as held:
        wire = Wire(server).send(
            get(
                target + ("&step=60" if path.endswith("range") else ""),
                f"Authorization: Bearer {client.token}\r\n",
            )
        )
        assert wait_until(lambda: waiting(server, "%object_key%", "perfolio_server"))
        assert metric(server, "perfolio_http_workers_busy") == 1
        wire.socket.close()
        assert wait_until(
            lambda: metric(server, 'perfolio_http_connections_cut_total{reason="gone"}') == 1
        )
        held.release()
    assert wait_until(lambda: metric(server, "perfolio_http_workers_busy") == 0)
    lines = [line for line in server.log().splitlines() if f"route={path} " in line]
    assert len(lines) == 1 and "code=cancelled" in lines[0], lines


@pytest.mark.long
def test_queries_share_the_memory_limit_of_the_server(start_server):
    """Each query fits alone, but not all together: they wait for each other and stay complete."""
    server = start_server("--max-query-memory", "448MiB")
    lines = b"".join(b"main;f%d;g%d;leaf%d 1\n" % (i % 997, i % 9973, i) for i in range(200000))
    clients = []
    for _ in range(2):
        clients.append(Tenant(server).api("ingest", "read"))
        assert (
            clients[-1]
            .post("/api/v1/profiles", lines, query={"label": "service_name=app", "time": BEGIN})
            .status
            == 200
        )
    query = {"query": "samples:count", "start": BEGIN, "end": END, "report": "top", "limit": 3}
    expected = clients[0].get("/api/v1/query", query=query)
    assert expected.status == 200 and expected.json()["total"] == 200000, expected
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        responses = list(
            pool.map(
                lambda i: server.api(clients[i % 2].token).get("/api/v1/query", query=query),
                range(6),
            )
        )
    for response in responses:
        assert (
            response.status == 200
            and response.json() == expected.json()
            or (response.status == 503 and int(response.headers["retry-after"]) > 0)
        ), response
    assert sum(response.status == 200 for response in responses) >= 2
    assert metric(server, "perfolio_query_memory_bytes") == 0
    assert metric(server, "perfolio_queries_waiting") == 0


@pytest.mark.long
def test_a_query_that_exceeds_the_memory_of_the_server_is_refused(start_server):
    server = start_server("--max-query-memory", "1MiB")
    client = Tenant(server).api("ingest", "read")
    lines = b"".join(b"main;f%d;g%d;leaf%d 1\n" % (i % 997, i % 9973, i) for i in range(200000))
    assert (
        client.post(
            "/api/v1/profiles", lines, query={"label": "service_name=app", "time": BEGIN}
        ).status
        == 200
    )
    response = client.get(
        "/api/v1/query", query={"query": "samples:count", "start": BEGIN, "end": END}
    )
    assert "--max-query-memory" in refusal(response, "api", 422, None)
    assert client.get("/api/v1/series", query={"start": BEGIN, "end": END}).status == 200
