"""The query cache: cached results equal recomputed ones, change at once with the stored profiles,
and are never shared between teams."""

import re

import pytest

from people import Tenant
from test_store import BEGIN, CPU, make_profile

SECOND = 10**9
TYPE = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"


def push(client, label, at_s, value):
    body = make_profile(
        CPU, BEGIN + at_s * SECOND, {("main", "work"): [1, value]}, ("cpu", "nanoseconds")
    )
    response = client.post("/api/v1/profiles", body=body, query={"label": label})
    assert response.status == 200, response


def run_query(client, begin_s=0, end_s=3600, **query):
    response = client.get(
        "/api/v1/query",
        query={
            "query": TYPE,
            "report": "folded",
            "start": BEGIN // SECOND + begin_s,
            "end": BEGIN // SECOND + end_s,
            **query,
        },
    )
    assert response.status == 200, response
    return response.text


def cached_bytes(server):
    metrics = server.api().get("/metrics").text
    return float(re.search(r'^perfolio_cache_bytes\{cache="queries"\} (\S+)', metrics, re.M)[1])


@pytest.mark.long
def test_a_cached_result_is_replaced_when_profiles_are_added_or_deleted(start_server):
    server = start_server()
    client = Tenant(server).api("ingest", "read", "admin")
    push(client, "pod=a", 10, 5)
    assert run_query(client) == run_query(client) == "main;work 5\n"
    cached = cached_bytes(server)
    assert cached > 0
    assert run_query(client, 5, 11) == "main;work 5\n"  # another window of the same profiles
    assert cached_bytes(server) == cached
    push(client, "pod=b", 20, 7)
    assert run_query(client) == run_query(client) == "main;work 12\n"
    assert run_query(client, 5, 11) == "main;work 5\n"
    response = client.request("DELETE", "/api/v1/profiles", query={"query": '{pod="a"}'})
    assert response.status == 202, response
    assert run_query(client) == run_query(client) == "main;work 7\n"


def test_cached_results_are_separate_by_team_report_and_labels(server):
    own, other = (Tenant(server).api("ingest", "read") for _ in range(2))
    push(own, "pod=a", 10, 5)
    push(own, "pod=b", 10, 7)
    push(other, "pod=a", 10, 11)
    for _ in range(2):
        assert run_query(other) == "main;work 11\n"
        assert run_query(own) == "main;work 12\n"
        assert run_query(own, query=TYPE + '{pod="a"}') == "main;work 5\n"
        assert run_query(own, label="pod=b") == "main;work 7\n"
        assert run_query(own, label="pod!=b") == "main;work 5\n"
        assert run_query(own, ignore="work") == ""
        assert run_query(own, group_by="pod") == "a;main;work 5\nb;main;work 7\n"
        assert '"total":12' in run_query(own, report="top")
        assert client_error(own, group_by="zone")


def client_error(client, **query):
    response = client.get(
        "/api/v1/query",
        query={
            "query": TYPE,
            "start": BEGIN // SECOND,
            "end": BEGIN // SECOND + 60,
            "report": "folded",
            **query,
        },
    )
    return response.status == 400


def test_a_cache_of_0_bytes_stores_nothing(start_server):
    """The results are the same without the cache."""
    server = start_server("--query-cache-bytes", "0")
    client = Tenant(server).api("ingest", "read")
    push(client, "pod=a", 10, 5)
    assert run_query(client) == run_query(client) == "main;work 5\n"
    assert cached_bytes(server) == 0
