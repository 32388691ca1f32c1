"""Usage of a team: what it has sent, counted by day.

The counts are exact for each protocol, for batches that are sent twice, and across restarts.
"""

import concurrent.futures
import datetime
import json
import time

import pytest

from people import Tenant
from test_http_raw import wait_until
from test_ingest_wire import PROTO, PUSH, push_protobuf
from test_limits import STACKS, WIRES, is_taken, make_same, send
from test_store import BEGIN

DAY = 86400 * 10**9


def today():
    return datetime.datetime.now(datetime.timezone.utc).date()


def total(client, **query):
    usage = client.get("/api/v1/usage", query=query)
    assert usage.status == 200, usage
    usage = usage.json()
    for name, value in usage["total"].items():
        assert value == sum(day[name] for day in usage["days"]), name
    return {**usage["total"], "series": sum(day["series"] for day in usage["days"])}


@pytest.mark.long
@pytest.mark.parametrize("wire", WIRES)
def test_all_protocols_count_and_repeated_batches_do_not(server, wire):
    tenant = Tenant(server)
    client = tenant.api("ingest", "read")
    assert total(client) == {
        "batches": 0,
        "profiles": 0,
        "samples": 0,
        "bytes": 0,
        "cut_strings": 0,
        "series": 0,
    }
    kinds = 1 if wire == "otlp" else 2  # sample types
    for second in (1, 2, 3):
        for _ in range(2):  # the second batch is a duplicate
            for pod in "ab":
                assert is_taken(send(client, wire, {"pod": pod}, second * 10**9))
    seen = total(client)
    assert seen.pop("bytes") > 0
    assert seen == {
        "batches": 6,
        "profiles": 6 * kinds,
        "samples": 12 * kinds,
        "cut_strings": 0,
        "series": 2 * kinds,
    }
    assert total(Tenant(server).api("read"))["batches"] == 0, "usage is counted per team"


def test_refused_profiles_do_not_count(server):
    client = Tenant(server, active_series=2).api("ingest", "read")
    assert is_taken(send(client, "api", {"pod": "a"}))
    for wire in WIRES:
        send(client, wire, {"pod": "b"})
    assert total(client)["series"] == 2 and total(client)["profiles"] == 2


def test_a_series_refused_as_too_old_counts_when_it_is_accepted(server):
    client = Tenant(server, profile_retention_s=86400).api("ingest", "read")
    old = send(client, "api", {"pod": "a"}, -30 * DAY)
    assert old.status == 400 and "profile_retention_s" in old.json()["detail"]
    assert total(client)["series"] == 0
    assert is_taken(send(client, "api", {"pod": "a"}, time.time_ns() - BEGIN))
    assert total(client)["series"] == 2


def test_bytes_equal_the_sum_of_the_receipts(server):
    client = Tenant(server).api("ingest", "read")
    receipts = [send(client, "api", {"pod": str(i)}, i).json() for i in range(4)]
    seen = client.get("/api/v1/usage").json()
    assert seen["total"]["bytes"] == sum(receipt["bytes"] for receipt in receipts)
    assert seen["bytes_stored"] > 0
    assert seen["days"][-1]["day"] in (str(today()), str(today() - datetime.timedelta(days=1)))


@pytest.mark.long
def test_concurrent_requests_and_a_restart_keep_usage_exact(start_server):
    server = start_server()
    tenants = [Tenant(server) for _ in range(3)]
    clients = [tenant.api("ingest", "read") for tenant in tenants]

    def push(number):
        client = clients[number % 3].with_token(clients[number % 3].token)
        profile = make_same(BEGIN + 1 + number // 6, STACKS)
        series = [
            ({"service_name": "app", "pod": f"{number % 12}-{i}"}, [profile]) for i in range(5)
        ]
        response = client.post(PUSH, push_protobuf(series), headers={"Content-Type": PROTO})
        client.close()
        return response.status

    def run(numbers):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            assert set(pool.map(push, numbers)) == {200}

    # Each request is sent twice, in parallel with others. A team has 4 x 5 pods with 2 types each.
    run([number for number in range(60) for _ in range(2)])
    expected = {"batches": 100, "profiles": 200, "samples": 400, "cut_strings": 0, "series": 40}
    for client in clients:
        seen = total(client)
        seen.pop("bytes")
        assert seen == expected
    server.stop()
    server.start()
    run(range(60))
    run([60])
    for number, client in enumerate(clients):
        seen = total(client)
        seen.pop("bytes")
        assert seen == (
            expected if number else {**expected, "batches": 105, "profiles": 210, "samples": 420}
        )


def test_usage_of_a_window_lists_its_days(server):
    tenant = Tenant(server)
    client = tenant.api("read")
    days = [today() - datetime.timedelta(days=back) for back in (100, 40, 3)]
    with server.cursor() as cursor:
        for i, day in enumerate(days):
            for slot in range(2):
                cursor.execute(
                    "INSERT INTO ingest_usage VALUES (%s, %s, %s, 1, 2, 3, 4, 5, 0)",
                    (tenant.id, day, slot),
                )
    get = lambda **query: [
        row["day"] for row in client.get("/api/v1/usage", query=query).json()["days"]
    ]
    assert get() == [str(days[2])]
    assert get(start="now-365d") == [str(day) for day in days]
    assert get(start="now-365d", end="now-40d") == [str(day) for day in days[:2]]
    # times of a day are ignored
    assert get(start=f"{days[1]}T23:59:59Z", end=f"{days[1]}T00:00:00Z") == [str(days[1])]
    for query, word in (
        ({"start": "x"}, "start"),
        ({"start": "now", "end": "now-2d"}, "start"),
        ({"start": "now-4y"}, "days"),
        ({"colour": "red"}, "colour"),
    ):
        response = client.get("/api/v1/usage", query=query)
        assert response.status == 400 and word in response.json()["detail"], response
    done = server.cli("usage", "--start", "now-365d", environment={"PERFOLIO_TOKEN": client.token})
    lines = done.stdout.decode().splitlines()
    assert done.returncode == 0 and len(lines) == 7, done
    assert lines[1].split() == [str(days[0]), "4", "6", "8", "B", "10"], lines
    assert lines[4].split() == ["total", "12", "18", "24", "B"], lines
    done = server.cli("usage", "--json", environment={"PERFOLIO_TOKEN": client.token})
    assert json.loads(done.stdout)["total"]["profiles"] == 4, done


def test_past_days_keep_only_their_sums(start_server):
    server = start_server()
    tenant = Tenant(server)
    client = tenant.api("ingest", "read")
    assert is_taken(send(client, "api", {}))
    with server.cursor() as cursor:
        cursor.execute("UPDATE ingest_series SET day = day - 3")
        cursor.execute("UPDATE ingest_usage SET day = day - 3")

        def is_gone():
            cursor.execute("SELECT count(*) FROM ingest_series")
            return cursor.fetchone()[0] == 0

        assert wait_until(is_gone)
    assert is_taken(send(client, "api", {}, 1))
    assert total(client)["profiles"] == 4
