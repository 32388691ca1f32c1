"""The list of sources: the services and agents that send a team's profiles.

A source is a service with a token, an agent and an address. The list reports its sums and its last
error. It survives restarts, has a limited size, and is visible to the team alone.
"""

import collections
import datetime
import threading

import pytest

from people import Tenant, come_from
from test_background_locks import Held, waiting
from test_http_raw import wait_until
from test_ingest_wire import JSON, OTLP, PROTO, PUSH, X_PROTO, otlp_maker, push_protobuf
from test_limits import STACKS, WIRES, is_taken, make_same, send
from test_store import BEGIN

PROTOCOLS = {
    "api": "perfolio",
    "push": "pyroscope-push",
    "ingest": "pyroscope-ingest",
    "otlp": "otlp",
}


def sources(client):
    response = client.get("/api/v1/sources")
    assert response.status == 200, response
    return response.json()["sources"]


@pytest.mark.parametrize("wire", WIRES)
def test_the_list_of_sources_reports_the_sums_of_each_source(server, wire):
    tenant = Tenant(server)
    token = tenant.make_token("ingest", "read")
    client = server.api(token["token"])
    assert sources(client) == []
    before = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=1)
    for at in range(3):
        assert is_taken(send(client, wire, {"pod": str(at)}, at))
    (source,) = sources(client)
    kinds = 1 if wire == "otlp" else 2
    expected = {
        "service": "app",
        "token_id": token["id"],
        "token_name": token["name"],
        "user": None,
        "protocol": PROTOCOLS[wire],
        "address": "127.0.0.1",
        "batches": 3,
        "profiles": 3 * kinds,
        "samples": 6 * kinds,
        "cut_strings": 0,
        "errors": 0,
        "last_error": None,
        "last_error_at": None,
    }
    assert {name: source[name] for name in expected} == expected
    first, last = (
        datetime.datetime.fromisoformat(source[name].replace("Z", "+00:00"))
        for name in ("first_seen_at", "last_seen_at")
    )
    assert before <= first <= last <= datetime.datetime.now(datetime.timezone.utc)
    assert sources(Tenant(server).api("read")) == [], "another team can read the list"


def test_sources_differ_by_service_agent_token_and_address(server):
    tenant = Tenant(server)
    client, other = tenant.api("ingest", "read"), tenant.api("ingest")
    profile = make_same(BEGIN, STACKS)
    series = [({"service_name": name}, [profile]) for name in ("shop", "cart", "cart")]
    for agent in ("agent/1.2.3 (x)", "agent/1.2.4", "curl"):
        assert is_taken(
            client.post(
                PUSH, push_protobuf(series), headers={"Content-Type": PROTO, "User-Agent": agent}
            )
        )
    assert is_taken(
        other.post(
            PUSH, push_protobuf(series[:1]), headers={"Content-Type": PROTO, "User-Agent": "curl"}
        )
    )
    come_from(other, "127.0.0.9")
    assert is_taken(
        other.post(
            PUSH, push_protobuf(series[:1]), headers={"Content-Type": PROTO, "User-Agent": "curl"}
        )
    )
    seen = sorted(
        (one["service"], one["agent"], one["version"], one["address"], one["profiles"])
        for one in sources(client)
    )
    here = [
        (service, agent, version, "127.0.0.1", count)
        for service, count in (("cart", 4), ("shop", 2))
        for agent, version in (
            ("agent/1.2.3 (x)", "1.2.3"),
            ("agent/1.2.4", "1.2.4"),
            ("curl", None),
        )
    ]
    assert seen == sorted(
        here + [("shop", "curl", None, "127.0.0.1", 2), ("shop", "curl", None, "127.0.0.9", 2)]
    )


def test_the_last_error_is_attributed_to_its_source(server):
    tenant = Tenant(server, label_value_bytes=10)
    client = tenant.api("ingest", "read")
    assert is_taken(send(client, "push", {}))
    response = client.post(PUSH, b"rubbish", headers={"Content-Type": PROTO})
    assert response.status == 400
    (source,) = sources(client)  # the refused request named no service
    assert source["service"] == "app" and source["errors"] == 1 and source["batches"] == 1
    assert source["last_error"] == response.json()["message"] and source["last_error_at"]
    response = send(client, "push", {"pod": "x" * 11})
    assert response.status == 400
    (source,) = sources(client)
    assert source["errors"] == 2 and "label_value_bytes is 10" in source["last_error"]
    assert is_taken(send(client, "push", {}, 1))
    (source,) = sources(client)
    assert (
        source["batches"] == 2 and "label_value_bytes is 10" in source["last_error"]
    ), "a success clears the error"
    # An OTLP request is accepted in part, and the rest is reported.
    assert send(client, "otlp", {"pod": "x" * 11}).status == 200
    otlp = next(one for one in sources(client) if one["protocol"] == "otlp")
    assert otlp["service"] == "app" and (otlp["batches"], otlp["profiles"], otlp["errors"]) == (
        1,
        0,
        1,
    )
    assert "label_value_bytes is 10" in otlp["last_error"]


@pytest.mark.parametrize(
    "path, query",
    [
        ("/api/v1/profiles", lambda name: {"label": f"service.name={name}"}),
        ("/ingest", lambda name: {"name": name, "format": "pprof"}),
        ("/ingest", lambda name: {"name": f"{name}.cpu"}),
        ("/ingest", lambda name: {"name": f"x{{service_name={name}}}"}),
    ],
)
def test_a_refusal_is_attributed_to_the_service_in_the_url(server, path, query):
    client = Tenant(server).api("ingest", "read")
    for name in ("shop", "cart"):
        assert is_taken(
            client.post(
                path,
                make_same(BEGIN, STACKS),
                query={**query(name), **({"format": "pprof"} if path == "/ingest" else {})},
            )
        )
    before = {one["service"] for one in sources(client)}
    for name in ("shop", "new"):
        assert client.post(path, b"\0rubbish", query=query(name)).status in (400, 415, 422)
    seen = {one["service"]: one["errors"] for one in sources(client)}
    assert set(seen) - before <= {"shop", "new"} and seen["new"] == seen["shop"] == 1, seen
    assert sum(seen.values()) == 2


def test_an_ambiguous_refusal_is_attributed_to_no_service(server):
    client = Tenant(server).api("ingest", "read")
    profile = make_same(BEGIN, STACKS)
    assert is_taken(
        client.post(
            PUSH,
            push_protobuf([({"service_name": name}, [profile]) for name in ("shop", "cart")]),
            headers={"Content-Type": PROTO},
        )
    )
    for _ in range(2):
        assert client.post(PUSH, b"rubbish", headers={"Content-Type": PROTO}).status == 400
    assert {one["service"]: one["errors"] for one in sources(client)} == {
        "shop": 0,
        "cart": 0,
        "": 2,
    }


def test_a_dropped_profile_is_attributed_to_its_own_service(server):
    client = Tenant(server).api("ingest", "read")

    def resource(name, time_ns):
        return {"service.name": name}, [
            otlp_maker.Profile(
                ("cpu", "nanoseconds"), time_ns, {("main",): 10}, 1, ("cpu", "nanoseconds")
            )
        ]

    for resources in (
        [resource("good", BEGIN), resource("bad", 2**63 + 5)],
        [resource("worse", 2**63 + 6)],
    ):
        response = client.post(
            OTLP, otlp_maker.Request(resources).protobuf(), headers={"Content-Type": X_PROTO}
        )
        assert response.status == 200, response
    seen = {
        one["service"]: (one["profiles"], one["errors"], one["last_error"])
        for one in sources(client)
    }
    reason = "its time is past the year 2262"
    assert seen == {
        "good": (1, 0, None),
        "bad": (0, 1, f"profile 1 (resource 1): {reason}"),
        "worse": (0, 1, f"profile 0 (resource 0): {reason}"),
    }


def test_a_token_without_the_scope_is_listed_with_its_error(server):
    tenant = Tenant(server)
    assert send(tenant.api("read"), "api", {}).status == 403
    (source,) = sources(tenant.api("read"))
    assert source["service"] == "" and source["errors"] == 1 and '"ingest"' in source["last_error"]


def test_control_characters_and_long_names_are_replaced_and_truncated(server):
    client = Tenant(server).api("ingest", "read")
    request = otlp_maker.Request(
        [
            (
                {"service.name": "a\x01b\u20ac" + "x" * 300},
                [
                    otlp_maker.Profile(
                        ("cpu", "nanoseconds"), BEGIN, {("main",): 10}, 1, ("cpu", "nanoseconds")
                    )
                ],
            )
        ]
    )
    for agent in ("\xe9\xff", "x" * 2000, "/", "a/", ""):
        assert (
            client.post(
                OTLP, request.json(), headers={"Content-Type": JSON, "User-Agent": agent}
            ).status
            == 200
        )
    seen = sources(client)
    assert len(seen) == 5 and {one["service"] for one in seen} == {"a?b\u20ac" + "x" * 194}
    assert sorted(one["agent"] for one in seen) == ["", "/", "??", "a/", "x" * 300]


def test_a_team_has_at_most_a_thousand_sources(server):
    client = Tenant(server).api("ingest", "read")
    for i in range(40):
        profiles = [
            otlp_maker.Profile(
                ("cpu", "nanoseconds"), BEGIN, {("main",): 10}, 1, ("cpu", "nanoseconds")
            )
        ]
        request = otlp_maker.Request(
            [({"service.name": f"s{i:02}-{j:02}"}, profiles) for j in range(63)]
        )
        assert client.post(OTLP, request.json(), headers={"Content-Type": JSON}).status == 200
    seen = {one["service"] for one in sources(client)}
    assert len(seen) == 1000 and {f"s39-{j:02}" for j in range(63)} <= seen
    assert "(others)" not in seen
    request = otlp_maker.Request([({"service.name": f"t{j:02}"}, profiles) for j in range(70)])
    assert client.post(OTLP, request.json(), headers={"Content-Type": JSON}).status == 200
    new = {one["service"]: one["profiles"] for one in sources(client) if one["service"][0] in "t("}
    assert len(new) == 64 and new["(others)"] == 7


def send_services(client, names):
    """Sends a profile of each service, 63 per request, because one request adds no more sources."""
    for at in range(0, len(names), 63):
        profiles = [
            otlp_maker.Profile(
                ("cpu", "nanoseconds"), BEGIN, {("main",): 10}, 1, ("cpu", "nanoseconds")
            )
        ]
        request = otlp_maker.Request(
            [({"service.name": name}, profiles) for name in names[at : at + 63]]
        )
        assert client.post(OTLP, request.json(), headers={"Content-Type": JSON}).status == 200


@pytest.mark.long
def test_unwritten_sources_are_not_evicted(start_server):
    """A request for the list writes new sources first; the jobs of this server would write them
    after an hour."""
    server = start_server("--jobs-interval", "1h")
    client = Tenant(server).api("ingest", "read")
    names = [f"m{i:04}" for i in range(1500)]
    for _ in range(3):
        send_services(client, names)
    seen = {one["service"]: one["profiles"] for one in sources(client)}
    assert len(seen) == 1000 and set(seen.values()) == {3}, collections.Counter(seen.values())


def test_a_source_evicted_while_it_is_written_keeps_exact_counts(start_server):
    server = start_server()
    client = Tenant(server).api("ingest", "read")
    other = Tenant(server).api("ingest", "read")
    for _ in range(3):
        send_services(client, ["again"])
    reader = threading.Thread(target=sources, args=(server.api(client.token),))
    with Held(server, "LOCK TABLE source IN ACCESS EXCLUSIVE MODE"):
        reader.start()
        assert wait_until(lambda: waiting(server, "%INSERT INTO source%"))
        send_services(client, [f"s{i:04}" for i in range(1000)])
        send_services(client, ["again"])
    reader.join()
    again = next(one for one in sources(client) if one["service"] == "again")
    assert (again["batches"], again["profiles"]) == (4, 4)
    send_services(other, ["other"])
    assert [one["batches"] for one in sources(other)] == [
        1
    ], "sources of another team are not written"


@pytest.mark.long
def test_jobs_write_sources_which_survive_a_restart_and_expire(start_server):
    server = start_server("--jobs-interval", "1s")
    tenant = Tenant(server)
    client = tenant.api("ingest", "read")
    assert is_taken(send(client, "api", {}))

    def count():
        with server.cursor() as cursor:
            cursor.execute("SELECT coalesce(sum(batches), 0) FROM source")
            return cursor.fetchone()[0]

    assert wait_until(lambda: count() == 1)
    assert is_taken(send(client, "api", {}, 1))
    server.stop()
    server.start()
    client = server.api(client.token)
    (source,) = sources(client)
    assert source["batches"] == 2
    assert is_taken(send(client, "api", {}, 2))
    (source,) = sources(client)
    assert source["batches"] == 3 and source["profiles"] == 6
    with server.cursor() as cursor:
        cursor.execute("UPDATE source SET last_seen_at = now() - interval '31 days'")
    server.stop()
    server.start()
    assert wait_until(lambda: count() == 0)


def test_the_list_of_sources_reports_the_version_of_perfolio(server, tmp_path):
    tenant = Tenant(server)
    file = tmp_path / "old.folded"
    file.write_bytes(b"main;work 7\n")
    environment = {"PERFOLIO_TOKEN": tenant.make_token("ingest")["token"]}
    done = server.cli("push", str(file), "--series", "service_name=app", environment=environment)
    assert done.returncode == 0, done
    version = server.cli("version").stdout.decode().split()[1]
    assert f"perfolio-cli/{version}" in tenant.api("read").get("/api/v1/sources").text


def test_the_old_name_of_the_list_is_accepted(server):
    client = Tenant(server).api("ingest", "read")
    assert is_taken(send(client, "api", {"pod": "0"}, 0))
    assert client.get("/api/v1/senders").json() == {"senders": sources(client)}
