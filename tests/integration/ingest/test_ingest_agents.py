"""Requests of agents that the tests cannot run: a query returns the profiles that were sent.

The agents are those of Pyroscope for Java, Ruby and .NET, Grafana Alloy (scrapes and eBPF profiles)
and the OpenTelemetry Collector. The headers were written by hand after the published sources and
schemas of the agents; tests/oracle makes the bodies. test_ingest_clients.py runs real agents."""

import base64
import gzip
import random
import sys

import pytest

import sample_profiles
from conftest import ROOT
from people import Tenant
from test_http_raw import Wire
from test_ingest_wire import END, MINUTE, form, push_protobuf
from test_store import BEGIN, folded, make_profile

sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import otlp_maker  # noqa: E402
import pprof_maker  # noqa: E402

CPU_TYPE = [("cpu", "nanoseconds")]
NS = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
STACKS = {
    ("main", "work"): 30 * 10**6,
    ("main", "work", "inner"): 20 * 10**6,
    ("main",): 10**6,
}
WANTED = {";".join(stack): value for stack, value in STACKS.items()}


def cpu_profile(stacks=STACKS):
    return make_profile(
        CPU_TYPE,
        BEGIN,
        {stack: [value] for stack, value in stacks.items()},
        ("cpu", "nanoseconds"),
        10 * 10**9,
    )


def exchange(server, target, headers, body):
    """Sends exactly these headers and this body on a new connection; returns the response."""
    lines = [
        f"POST {target} HTTP/1.1",
        f"Host: localhost:{server.port}",
        *headers,
        f"Content-Length: {len(body)}",
        "",
        "",
    ]
    with Wire(server) as wire:
        return wire.send("\r\n".join(lines).encode() + body).response()


def stored(client, selector):
    rows = folded(client, selector, BEGIN - MINUTE, END)[1]
    return {
        (";".join(stack) if isinstance(stack, tuple) else stack): value
        for stack, value in rows.items()
    }


def basic(token, user="12345"):
    return "Authorization: Basic " + base64.b64encode(f"{user}:{token}".encode()).decode()


def push_rust(token):
    """The request of pyroscope-rs, on which the agents for Ruby and Python are based."""
    series = [
        (
            {
                "__name__": "process_cpu",
                "service_name": "shop",
                "__session_id__": "1f",
                "region": "eu",
            },
            [gzip.decompress(cpu_profile())],
        )
    ]
    return (
        "/push.v1.PusherService/Push",
        [
            "content-type: application/proto",
            "content-encoding: gzip",
            "user-agent: pyroscope-rs/rbspy/2.0 reqwest",
            "accept: */*",
            basic(token).replace("Authorization", "authorization"),
        ],
        gzip.compress(push_protobuf(series)),
    )


def push_dotnet(token):
    """The request of the agent for .NET: uncompressed, below a path prefix."""
    series = [
        (
            {
                "__name__": "process_cpu",
                "service_name": "shop",
                "region": "eu",
                "__session_id__": "2",
            },
            [cpu_profile()],
        )
    ]
    return (
        "/pyroscope/push.v1.PusherService/Push",
        [
            "Content-Type: application/proto",
            f"Authorization: Bearer {token}",
            "X-Scope-OrgID: ",
            "Accept: */*",
        ],
        push_protobuf(series),
    )


def push_alloy(token):
    """The request of Alloy's pyroscope.write, which sends the profiles of pyroscope.scrape and
    pyroscope.ebpf through connect-go."""
    series = [
        (
            {
                "__name__": "process_cpu",
                "service_name": "shop",
                "region": "eu",
                "__delta__": "false",
                "instance": "10.0.0.1:80",
                "job": "default/shop",
            },
            [cpu_profile()],
        )
    ]
    return (
        "/push.v1.PusherService/Push",
        [
            "Content-Type: application/proto",
            "Connect-Protocol-Version: 1",
            "Connect-Timeout-Ms: 9999",
            "Content-Encoding: gzip",
            "Accept-Encoding: gzip",
            "User-Agent: Alloy/v1.12.0 (linux; docker)",
            "X-Alloy-Id: 7e8f3c1a-6b7d-4f43-a0de-2f8c9d1f6c11",
            basic(token),
        ],
        gzip.compress(push_protobuf(series, "0d6ee2d0-6d6c-4f83-9a43-5b6bd38e5a51")),
    )


def ingest_forwarded(token):
    """The request of the agent for Go, forwarded by Alloy's pyroscope.receive_http: times in
    nanoseconds, a form with a configuration."""
    config = (
        b'{"samples":{"units":"samples","sampled":true},"cpu":{"units":"samples","sampled":true}}'
    )
    return (
        f"/ingest?aggregationType=sum&from={BEGIN}&name=shop%7B__session_id__%3D3%2Cregion%3Deu%7D"
        f"&sampleRate=100&spyName=gospy&units=samples&until={BEGIN + 10 * 10**9}",
        [
            "Content-Type: multipart/form-data; boundary=b",
            "User-Agent: Go-http-client/1.1",
            "Accept-Encoding: gzip",
            f"Authorization: Bearer {token}",
        ],
        form(profile=cpu_profile(), sample_type_config=config),
    )


def otlp_body(layout="1.10"):
    profile = otlp_maker.Profile(
        ("samples", "count"),
        BEGIN,
        {stack: value // 10**6 for stack, value in STACKS.items()},
        10**6,
        ("cpu", "nanoseconds"),
        10 * 10**9,
    )
    return otlp_maker.Request([({"service.name": "shop", "region": "eu"}, [profile])]).protobuf(
        layout
    )


def otlp_collector(encoding, compress, layout):
    """The request of otlp_http in the OpenTelemetry Collector. The agent for Java sends the same
    with gzip in its OTLP mode."""

    def make(token):
        return (
            "/v1development/profiles",
            [
                "User-Agent: OpenTelemetry Collector/0.159.0 (linux/amd64)",
                f"Authorization: Bearer {token}",
                f"Content-Encoding: {encoding}",
                "Content-Type: application/x-protobuf",
                "Accept-Encoding: gzip",
            ],
            compress(otlp_body(layout)),
        )

    return make


AGENTS = {
    "ruby": push_rust,
    "dotnet": push_dotnet,
    "alloy": push_alloy,
    "go through alloy": ingest_forwarded,
    "collector gzip": otlp_collector("gzip", gzip.compress, "1.10"),
    "collector zstd": otlp_collector("zstd", sample_profiles.zstd, "1.10"),
    "java otlp": otlp_collector("gzip", gzip.compress, "1.9"),
}


@pytest.mark.parametrize("agent", AGENTS)
def test_queries_return_the_profiles_that_an_agent_sends(server, agent):
    tenant = Tenant(server)
    client = tenant.api("read")
    request = AGENTS[agent](tenant.make_token("ingest")["token"])
    for _ in range(2):  # agents retry a request that got no response
        status, headers, body = exchange(server, *request)
        assert status == 200, body
        assert headers["content-type"].startswith("application/"), headers
    assert stored(client, NS + '{service_name="shop",region="eu"}') == WANTED
    names = client.get(
        "/api/v1/labels", query={"start": BEGIN // 10**9 - 60, "end": END // 10**9}
    ).json()["data"]
    assert not [
        name for name in names if name.startswith("__") and name != "__profile_type__"
    ], names


def test_jfr_is_refused_with_an_error_in_the_format_of_pyroscope(server):
    """The agent for Java compresses the parts with gzip but sends no Content-Encoding."""
    token = Tenant(server).make_token("ingest")["token"]
    body = form(jfr=gzip.compress(b"FLR\0" + bytes(64)), labels=gzip.compress(b"\x0a\x00"))
    status, headers, response = exchange(
        server,
        f"/ingest?name=shop&from={BEGIN}&until={END}&spyName=javaspy&format=jfr",
        [
            "Content-Type: multipart/form-data; boundary=b",
            basic(token),
            "User-Agent: okhttp/4.12.0",
        ],
        body,
    )
    assert status == 422 and headers["content-type"] == "application/json", response
    assert b"jfr" in response and b'"code"' in response, response


def test_ebpf_profiles_without_names_keep_their_mappings(server):
    """Alloy's eBPF profiler sends several targets in one push, and addresses with build IDs of
    which only some have names."""
    tenant, rng = Tenant(server), random.Random(5)
    client = tenant.api("read")
    series, wanted = [], {}
    for target in ("shop", "cart"):
        maker = pprof_maker.Maker(CPU_TYPE)
        mapping = maker.mapping("/usr/bin/" + target, build_id="ab" * 20, flags=0)
        named = maker.location([(maker.function("main"),)], mapping, 0x400100)
        leaf = maker.location((), mapping, 0x401234)
        value = rng.randint(1, 10**9)
        maker.sample([leaf, named], [value])
        maker.scalars(
            time=BEGIN, duration=15 * 10**9, period=52631578, period_type=("cpu", "nanoseconds")
        )
        series.append(
            (
                {"__name__": "process_cpu", "service_name": target, "__container_id__": "c"},
                [gzip.compress(maker.bytes())],
            )
        )
        wanted[target] = value
    status, _, body = exchange(
        server,
        "/push.v1.PusherService/Push",
        [
            "Content-Type: application/proto",
            "Connect-Protocol-Version: 1",
            basic(tenant.make_token("ingest")["token"]),
        ],
        push_protobuf(series),
    )
    assert status == 200, body
    for target, value in wanted.items():
        ((stack, total),) = stored(client, f'{NS}{{service_name="{target}"}}').items()
        assert total == value and stack == f"main;{target}+0x2234", stack
