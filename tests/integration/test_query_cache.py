"""Answers to questions are kept for whoever asks the same again: they are the same as those that
are made anew, change with what is stored, at once, and are of one team alone."""

import re

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


def ask(client, begin_s=0, end_s=3600, **query):
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


def kept_bytes(server):
    metrics = server.api().get("/metrics").text
    return float(re.search(r'^perfolio_cache_bytes\{cache="queries"\} (\S+)', metrics, re.M)[1])


def test_an_equal_query_has_the_same_etag_until_something_comes_or_goes(start_server):
    server = start_server()
    client = Tenant(server).api("ingest", "read", "admin")
    push(client, "pod=a", 10, 5)
    assert ask(client) == ask(client) == "main;work 5\n"
    kept = kept_bytes(server)
    assert kept > 0
    assert ask(client, 5, 11) == "main;work 5\n"  # another window of the same profiles
    assert kept_bytes(server) == kept
    push(client, "pod=b", 20, 7)
    assert ask(client) == ask(client) == "main;work 12\n"
    assert ask(client, 5, 11) == "main;work 5\n"
    response = client.request("DELETE", "/api/v1/profiles", query={"query": '{pod="a"}'})
    assert response.status == 202, response
    assert ask(client) == ask(client) == "main;work 7\n"


def test_what_is_kept_is_of_one_team_one_report_and_one_choice_of_labels(server):
    mine, theirs = (Tenant(server).api("ingest", "read") for _ in range(2))
    push(mine, "pod=a", 10, 5)
    push(mine, "pod=b", 10, 7)
    push(theirs, "pod=a", 10, 11)
    for _ in range(2):
        assert ask(theirs) == "main;work 11\n"
        assert ask(mine) == "main;work 12\n"
        assert ask(mine, query=TYPE + '{pod="a"}') == "main;work 5\n"
        assert ask(mine, label="pod=b") == "main;work 7\n"
        assert ask(mine, label="pod!=b") == "main;work 5\n"
        assert ask(mine, ignore="work") == ""
        assert ask(mine, group_by="pod") == "a;main;work 5\nb;main;work 7\n"
        assert '"total":12' in ask(mine, report="top")
        assert client_error(mine, group_by="zone")


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


def test_none_is_kept_where_there_is_no_room(start_server):
    """Nothing is kept with 0 bytes, and responses are the same."""
    server = start_server("--query-cache-bytes", "0")
    client = Tenant(server).api("ingest", "read")
    push(client, "pod=a", 10, 5)
    assert ask(client) == ask(client) == "main;work 5\n"
    assert kept_bytes(server) == 0
