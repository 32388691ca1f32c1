"""The list of a team's shares: the cost of a search, and the size of a page."""

import os
import pathlib
import threading

import pytest

import sample_profiles as samples
from conftest import Api
from test_background_locks import Held, query_row
from test_http_raw import metric, wait_until
from test_shares import new_tenant

TICKS = os.sysconf("SC_CLK_TCK")


@pytest.fixture
def team(server, request):
    tenant, token = new_tenant(server.api(), request.node.name)
    yield tenant, Api(server, token)
    with server.database("perfolio_cluster") as connection:
        connection.cursor().execute("DELETE FROM share WHERE tenant_id = %s", (tenant,))


def insert_shares(server, tenant, count, description):
    with server.database("perfolio_cluster") as connection:
        connection.cursor().execute(
            "INSERT INTO share (id, tenant_id, description, visibility, delete_token_hash,"
            " object_key, raw_bytes, raw_sha256, format, created_at)"
            " SELECT left(md5(%s || '.' || n), 22), %s, %s, 'unlisted', sha256(''),"
            " 'share/' || n, 3, sha256(''), 'folded', now() - n * interval '1 s'"
            " FROM generate_series(1, %s) AS n",
            (str(tenant), tenant, description, count),
        )


def database_cpu_seconds(server):
    """CPU time of all sessions of requests."""
    total = 0
    for (pid,) in server.rows(
        "SELECT pid FROM pg_stat_activity WHERE usename = 'perfolio_server'",
        role="perfolio_cluster",
    ):
        stat = pathlib.Path("/proc", str(pid), "stat").read_text()
        total += sum(map(int, stat.rpartition(")")[2].split()[11:13]))
    return total / TICKS


def search_cost(server, api, words):
    assert api.get("/api/v1/shares", query={"q": "title"}).status == 200  # opens a session
    before = database_cpu_seconds(server)
    response = api.get("/api/v1/shares", query={"q": words})
    assert response.status == 200 and response.json()["shares"] == [], response
    return database_cpu_seconds(server) - before


@pytest.mark.parametrize("words", ["a" * 198 + "b", "b" + "a" * 198, "a" * 99 + "b" + "a" * 99])
def test_a_search_costs_no_more_for_words_that_nearly_match(start_server, words):
    """A comparison that starts again at each place of the text takes 30 times as long."""
    server = start_server("--database-connections", "1")
    tenant, token = new_tenant(server.api(), "searchers")
    insert_shares(server, tenant, 100, "a" * 20000)
    api = Api(server, token)
    usual = search_cost(server, api, "another word")
    assert search_cost(server, api, words) <= 8 * usual + 0.1


def test_a_search_is_ended_and_takes_a_slot(start_server):
    """The searches wait for a lock, as long as they are allowed to run. A quarter of the workers
    runs searches of a team."""
    server = start_server("--worker-threads", "8")
    _, token = new_tenant(server.api(), "searchers")
    api = Api(server, token)
    assert api.get("/api/v1/shares", query={"q": "words"}).status == 200
    responses = []

    def search():
        responses.append(Api(server, token).get("/api/v1/shares", query={"q": "words"}))

    threads = [threading.Thread(target=search) for _ in range(4)]
    with Held(server, "LOCK TABLE share IN ACCESS EXCLUSIVE MODE"):
        for thread in threads:
            thread.start()
        assert wait_until(lambda: metric(server, "perfolio_reports_waiting") > 0, 20)
        assert metric(server, "perfolio_reports_running") <= 2
        for thread in threads:
            thread.join(120)
    assert [response.status for response in responses] == [503] * 4, responses
    for response in responses:
        assert "the search took longer than 2 s" in response.json()["detail"]
        assert response.headers["retry-after"]
    assert api.get("/api/v1/shares", query={"q": "words"}).status == 200
    assert "the search took" in server.log()


def test_a_page_ends_when_its_texts_are_large(server, team):
    tenant, api = team
    insert_shares(server, tenant, 250, "\U0001f525" * 20000)  # 80 kB, 20 MB together
    counts, seen, cursor = [], [], ""
    while cursor is not None:
        query = {"limit": 200, **({"cursor": cursor} if cursor else {})}
        response = api.get("/api/v1/shares", query=query)
        assert len(response.body) < 9 << 20
        page = response.json()
        counts.append(len(page["shares"]))
        seen += [row["created_at"] for row in page["shares"]]
        cursor = page["next_cursor"]
    assert counts == [105, 105, 40]  # the 105th reaches 8 MiB
    assert seen == sorted(set(seen), reverse=True)


def test_a_page_does_not_parse_summaries(server, team):
    """Members of a list are in a column of their own."""
    tenant, api = team
    share = api.post("/api/v1/shares", samples.FOLDED).json()["id"]
    members = ("sample_types", "default_sample_type", "sample_count", "time_ns", "duration_ns")
    shown = api.get(f"/api/v1/shares/{share}").json()
    with server.database("perfolio_cluster") as connection:
        connection.cursor().execute("UPDATE share SET summary = '{}' WHERE id = %s", (share,))
    (listed,) = api.get("/api/v1/shares").json()["shares"]
    assert shown["sample_types"] and shown["sample_count"]
    assert {name: listed[name] for name in members} == {name: shown[name] for name in members}
    assert query_row(server, "SELECT list_summary::text FROM share WHERE id = %s", share)
