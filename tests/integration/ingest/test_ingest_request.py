"""Ingest limits: for every protocol, the server cuts long names and refuses decompression bombs and
profiles from the far future, and it reports them at their source (service or agent)."""

import gzip
import time

import pytest

import sample_profiles
from people import Tenant
from test_cli import cli  # noqa: F401
from test_http_raw import metric
from test_ingest_wire import JSON, OTLP, PROTO, PUSH, otlp_maker, push_protobuf
from test_limits import END, WIRES
from test_store import BEGIN

from pprof_maker import Maker  # test_ingest_wire adds its folder to sys.path

STRING_BYTES = 16 << 10
SECOND = 10**9


def is_taken(response):
    return response.status == 200 and b"dropped" not in response.body


def make_pprof(names, time_ns=BEGIN, file="", label=""):
    """A pprof profile with one sample of value 10 for each name."""
    maker = Maker([("cpu", "nanoseconds")])
    mapping = maker.mapping(file or "/bin/app")
    for name in names:
        location = maker.location([(maker.function(name, file, system_name=""), 1)], mapping)
        maker.sample([location], [10], [("note", label)] if label else [])
    maker.scalars(time=time_ns, duration=SECOND, period=1, period_type=("cpu", "nanoseconds"))
    return maker.bytes()


def post(client, wire, raw, pack=lambda raw: raw, service="app"):
    """Sends a profile over one protocol, compressed by pack; raw is pprof, for OTLP a request."""
    if wire == "api":
        return client.post(
            "/api/v1/profiles", pack(raw), query={"label": f"service_name={service}"}
        )
    if wire == "push":
        return client.post(
            PUSH,
            push_protobuf([({"service_name": service}, [pack(raw)])]),
            headers={"Content-Type": PROTO},
        )
    if wire == "ingest":
        return client.post("/ingest", pack(raw), query={"name": service, "format": "pprof"})
    packed = pack(raw)
    encoding = (
        "gzip" if packed[:2] == b"\x1f\x8b" else "zstd" if packed[:2] == b"\x28\xb5" else "identity"
    )
    return client.post(
        OTLP,
        packed,
        headers={"Content-Type": "application/x-protobuf", "Content-Encoding": encoding},
    )


def make_raw(wire, names, **fields):
    if wire != "otlp":
        return make_pprof(names, **fields)
    profile = otlp_maker.Profile(
        ("cpu", "nanoseconds"), fields.get("time_ns", BEGIN), {(name,): 10 for name in names}
    )
    return otlp_maker.Request([({"service.name": "app"}, [profile])]).protobuf()


def top_names(client, query='{service_name="app"}'):
    response = client.get(
        "/api/v1/query",
        query={
            "query": "process_cpu:cpu" + query,
            "start": str(BEGIN),
            "end": str(END),
            "report": "top",
            "limit": 0,
        },
    )
    assert response.status == 200, response
    return {row["name"]: row["flat"] for row in response.json()["functions"]}


def only_source(client):
    sources = client.get("/api/v1/sources").json()["sources"]
    assert len(sources) == 1, sources
    return sources[0]


@pytest.mark.parametrize("wire", WIRES)
def test_long_names_are_cut_remain_distinct_and_are_counted(server, wire):
    client = Tenant(server).api("ingest", "read")
    before = metric(server, "perfolio_ingest_cut_strings_total") or 0
    names = ["f" * 10**6 + end for end in ("a", "b")] + ["日" * STRING_BYTES, "short"]
    assert is_taken(post(client, wire, make_raw(wire, names)))
    seen = top_names(client)
    assert len(seen) == len(names) and seen.pop("short") == 10
    assert set(seen.values()) == {10}
    for name in seen:
        assert STRING_BYTES - 4 < len(name.encode()) <= STRING_BYTES
        assert name[-33] == "#" and name[0] in "f日" and int(name[-32:], 16) >= 0
    assert only_source(client)["cut_strings"] == 3
    assert only_source(client)["last_error"] is None
    assert client.get("/api/v1/usage").json()["total"]["cut_strings"] == 3
    assert metric(server, "perfolio_ingest_cut_strings_total") >= before + 3


def test_the_command_prints_the_number_of_cut_names(server, cli):  # noqa: F811
    tenant = Tenant(server)
    token = tenant.make_token("ingest", "read")["token"]
    for names, count in ((["short"], 0), (["f" * 10**6 + end for end in "ab"], 2)):
        assert is_taken(post(tenant.api("ingest"), "api", make_raw("api", names)))
        printed = cli("usage", token=token)
        assert (
            printed.returncode == 0 and printed.out.splitlines()[-1] == f"names cut:  {count}"
        ), printed


def test_files_binaries_and_labels_are_cut_by_the_limit_of_the_team(server):
    tenant = Tenant(server, string_bytes=300)
    client = tenant.api("ingest", "read")
    assert is_taken(
        post(client, "api", make_pprof(["f" * 299, "g"], file="/" + "d" * 1000, label="l" * 1000))
    )
    exported = client.get(
        "/api/v1/query",
        query={"query": "process_cpu:cpu", "start": str(BEGIN), "end": str(END), "report": "pprof"},
    )
    assert exported.status == 200, exported
    data = exported.body
    raw = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    assert (
        b"f" * 299 in raw and b"d" * 300 not in raw and b"l" * 300 not in raw and b"d" * 250 in raw
    )
    assert only_source(client)["cut_strings"] == 2


@pytest.mark.long
def test_names_of_100_mb_do_not_break_queries_of_the_window(server):
    """21 requests of 102 KB each expand to one name of 100 MB."""
    client = Tenant(server, profile_bytes=1 << 30).api("ingest", "read")
    body = gzip.compress(make_pprof(["x" * 10**8]), 9, mtime=0)
    for _ in range(21):
        response = client.post("/api/v1/profiles", body)
        assert response.status == 413, response
        assert (
            "max-expansion-ratio" in response.json()["detail"]
            and "200 times" in response.json()["detail"]
        )
    # These bodies expand as far as the ratio allows.
    body = sample_profiles.zstd(
        make_pprof([f"x{number}" + "x" * (400 << 10) for number in range(19)])
    )
    for number in range(21):
        assert (
            client.post("/api/v1/profiles", body, headers={"Perfolio-Batch-Id": str(number)}).status
            == 200
        )
    names = top_names(client, "")
    assert len(names) == 19 and set(names.values()) == {210}
    for report in ("flame", "pprof", "folded"):
        response = client.get(
            "/api/v1/query",
            query={
                "query": "process_cpu:cpu",
                "start": str(BEGIN),
                "end": str(END),
                "report": report,
            },
        )
        assert response.status == 200 and len(response.body) < 10 * 10**6, (
            report,
            response.status,
        )


@pytest.mark.long
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("packing", ["gzip", "zstd"])
def test_the_refusal_of_a_bomb_names_the_limit(server, wire, packing):
    client = Tenant(server).api("ingest", "read")
    pack = {"gzip": lambda raw: gzip.compress(raw, 9, mtime=0), "zstd": sample_profiles.zstd}[
        packing
    ]
    response = post(client, wire, make_raw(wire, ["x" * (40 << 20)]), pack)
    assert response.status == (400 if wire == "push" else 413), response
    text = response.body.decode(errors="replace")
    assert (
        "max-expansion-ratio" in text and "200 times" in text and "profile_bytes" not in text
    ), text
    assert "max-expansion-ratio" in only_source(client)["last_error"]
    assert is_taken(
        post(client, wire, make_raw(wire, ["x" * (7 << 20)]), pack)
    ), "the ratio does not apply to small profiles"
    assert is_taken(
        post(client, wire, make_raw(wire, ["x" * (7 << 20)]))
    ), "the ratio does not apply to uncompressed profiles"


def test_expansion_ratios_are_configurable(start_server):
    server = start_server("--max-expansion-ratio", "100000", "--max-share-expansion-ratio", "100")
    client = Tenant(server).api("ingest", "read", "share")
    packed = gzip.compress(make_pprof(["x" * (40 << 20)]), 9, mtime=0)
    assert client.post("/api/v1/profiles", packed).status == 200
    assert len(top_names(client, "")) == 1
    refused = client.post("/api/v1/shares", packed)
    assert (
        refused.status == 413 and "max-share-expansion-ratio" in refused.json()["detail"]
    ), refused
    assert "100 times" in refused.json()["detail"]


def test_a_share_stores_the_original_bytes_and_shows_cut_names(server):
    client = Tenant(server).api("share", "read")
    raw = make_pprof(["f" * 10**6 + "a", "f" * 10**6 + "b", "short"])
    packed = gzip.compress(raw, mtime=0)
    share = client.post("/api/v1/shares", packed)
    assert share.status == 201, share
    path = f"/api/v1/shares/{share.json()['id']}"
    assert client.get(path + "/raw").body in (packed, raw)
    names = [
        row["name"] for row in client.get(path + "/top", query={"limit": 0}).json()["functions"]
    ]
    assert len(set(names)) == 3 and max(map(len, names)) == STRING_BYTES
    bomb = client.post("/api/v1/shares", sample_profiles.zstd_zeros(400 << 20))
    assert bomb.status == 413 and "max-share-expansion-ratio" in bomb.json()["detail"], bomb


# ---- times ----

DAY_NS = 86400 * SECOND


def ahead(days):
    return time.time_ns() + int(days * DAY_NS)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "days, skew", [(400.5, "400 days"), (219.5 * 365, "219 years"), (1.5, "35 hours")]
)
def test_profiles_from_the_future_are_refused_and_reported(server, wire, days, skew):
    client = Tenant(server).api("ingest", "read")
    response = post(client, wire, make_raw(wire, ["f"], time_ns=ahead(days)))
    # OpenTelemetry: a request with dropped profiles succeeds, and its response reports them.
    assert response.status == {"api": 400, "push": 400, "ingest": 422, "otlp": 200}[wire], response
    text = response.body.decode(errors="replace")
    assert f"the profile's time is {skew} ahead of this server's clock" in text, text
    assert (
        "future_s is 86400, by the setting tenant-future" in text
        and "check the clock of the agent" in text
    )
    source = only_source(client)
    assert source["service"] == "app"
    assert (
        f"{skew} ahead" in source["last_error"]
        and source["errors"] == 1
        and source["profiles"] == 0
    )
    assert client.get("/api/v1/usage").json()["total"]["profiles"] == 0
    found = client.get("/api/v1/series", query={"start": "now-1h", "end": "2262-01-01T00:00:00Z"})
    assert found.status == 200 and found.json()["data"] == [], found


@pytest.mark.parametrize("wire", WIRES)
def test_small_clock_skew_is_accepted_within_the_limit_of_the_team(server, wire):
    tenant = Tenant(server)
    client = tenant.api("ingest", "read")
    assert is_taken(post(client, wire, make_raw(wire, ["f"], time_ns=ahead(0.9))))
    strict = Tenant(server, future_s=60).api("ingest", "read")
    response = post(strict, wire, make_raw(wire, ["f"], time_ns=ahead(0.9)))
    assert (
        b"future_s is 60, set for this team" in response.body and b"21 hours ahead" in response.body
    ), response
    loose = Tenant(server, future_s=8640000000).api("ingest", "read")
    assert is_taken(post(loose, wire, make_raw(wire, ["f"], time_ns=ahead(219 * 365))))


def test_otlp_profiles_from_the_future_are_a_partial_success(server):
    """One of two services has a wrong clock; the server stores the profiles of the other."""
    client = Tenant(server).api("ingest", "read")
    profile = lambda time_ns: otlp_maker.Profile(("cpu", "nanoseconds"), time_ns, {("main",): 10})
    request = otlp_maker.Request(
        [
            ({"service.name": "right"}, [profile(BEGIN), profile(BEGIN + 1)]),
            (
                {"service.name": "skewed"},
                [profile(ahead(400.5)), profile(BEGIN + 2), profile(ahead(400.5))],
            ),
        ]
    )
    response = client.post(OTLP, request.json(), headers={"Content-Type": JSON})
    assert response.status == 200, response
    partial = response.json()["partialSuccess"]
    assert partial["rejectedProfiles"] in (2, "2")
    assert "2 profiles dropped: the profile's time is 400 days ahead" in partial["errorMessage"]
    series = '{service_name=~"right|skewed"}'
    assert top_names(client, series) == {"main": 30}
    sources = {row["service"]: row for row in client.get("/api/v1/sources").json()["sources"]}
    assert sources["right"]["last_error"] is None and sources["right"]["profiles"] == 2
    assert (
        "400 days ahead" in sources["skewed"]["last_error"] and sources["skewed"]["profiles"] == 1
    )


def test_profiles_of_one_request_may_begin_on_at_most_64_days(server):
    """Each day becomes an object, so a request of 20 KB could keep background work busy for
    minutes."""
    client = Tenant(server).api("ingest", "read")

    def send(days):
        profiles = [
            otlp_maker.Profile(
                ("cpu", "nanoseconds"),
                BEGIN + day * DAY_NS + again,
                {("main",): 1},
                1,
                ("cpu", "nanoseconds"),
                SECOND,
            )
            for day in range(days)
            for again in (0, SECOND)
        ]
        return client.post(
            "/v1development/profiles",
            body=otlp_maker.Request([({"service.name": "past"}, profiles)]).protobuf(),
            headers={"Content-Type": "application/x-protobuf"},
        )

    response = send(65)
    assert (
        response.status == 413
        and b"begin on more than 64 days, the limit of one request (max-request-days)"
        in response.body
    ), response
    response = send(64)
    assert response.status == 200 and b"dropped" not in response.body, response
