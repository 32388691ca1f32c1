"""Regular expressions of selectors: no value of a label makes them fail, or keeps others
waiting."""
from people import Tenant
from test_store import BEGIN, CPU_NAMES, HOUR, rows_of, until
from test_store_deletion import ALL, delete, is_aged, push
from test_store_mending import execute, keep_from_merging, let_merge, push_together

HOSTILE = "a" * 60 + "!"
EXPONENTIAL = '{pod=~"(a|a)+"}'


def ask(api, selector=""):
    return api.get(
        "/api/v1/query",
        query={
            "query": CPU_NAMES[0] + selector,
            "start": BEGIN,
            "end": BEGIN + HOUR,
            "report": "json",
        },
    )


def is_all_deleted(server, *apis):
    is_aged(server)
    return all(
        one["done_at"] for api in apis for one in api.get("/api/v1/deletions").json()["deletions"]
    )


def test_a_deletion_by_an_exponential_expression_is_done(start_server):
    server = start_server("--jobs-interval", "1s")
    api, other = (Tenant(server).api("ingest", "read", "admin") for _ in range(2))
    keep_from_merging(server)
    push_together(server, [(api, HOSTILE), (other, "secret")])
    push(api, "pod=aaa", BEGIN + 1)
    writers = rows_of(server, "SELECT count(*) FROM store_writer")
    assert api.request("DELETE", "/api/v1/profiles", query={"query": EXPONENTIAL}).status == 202
    delete(other, ALL)
    assert ask(api).status == 200
    assert ask(api, EXPONENTIAL).status in (200, 404)
    let_merge(server)
    until(lambda: is_all_deleted(server, api, other), "both deletions")
    assert rows_of(server, "SELECT count(*) FROM store_writer") == writers
    pods = api.get("/api/v1/series", query={"start": BEGIN, "end": BEGIN + HOUR}).text
    assert HOSTILE in pods and '"aaa"' not in pods


def test_a_label_value_does_not_poison_a_plain_rule(start_server):
    server = start_server("--jobs-interval", "1s")
    tenant = Tenant(server)
    api, sender = tenant.api("ingest", "read", "admin"), tenant.api("ingest")
    rule = {"query": '{pod=~".*foo.*bar.*"}', "keep": "30d"}
    assert api.post("/api/v1/retention", json=rule).status in (200, 201)
    push(sender, "pod=" + "foo" * 680 + "r", BEGIN)
    push(sender, "pod=x", BEGIN + 1)
    assert ask(api).status == 200
    until(lambda: is_aged(server) and rows_of(server, "SELECT 1 FROM block"), "a merge")
    assert ask(api).status == 200


def test_what_counts_too_far_is_refused_at_the_door(start_server):
    api = Tenant(start_server()).api("ingest", "read", "admin")
    query = '{pod=~"(.{1,50}){1,50}"}'
    response = api.request("DELETE", "/api/v1/profiles", query={"query": query})
    assert response.status == 400 and "repeats too much" in response.text
    response = api.post("/api/v1/retention", json={"query": query, "keep": "30d"})
    assert response.status == 400 and "repeats too much" in response.text


def test_a_merge_that_fails_keeps_nobody_waiting(start_server):
    """A rule that no merge can read, as if written before there was a check."""
    server = start_server("--jobs-interval", "1s")
    api, other = (Tenant(server).api("ingest", "read", "admin") for _ in range(2))
    assert api.post("/api/v1/retention", json={"query": ALL, "keep": "30d"}).status in (200, 201)
    execute(server, "UPDATE retention_rule SET selector = '{'")
    keep_from_merging(server)
    push_together(server, [(api, "bad"), (other, "secret")])
    writers = rows_of(server, "SELECT count(*) FROM store_writer")
    delete(api, '{pod=~"bad.*"}')
    delete(other, ALL)
    let_merge(server)
    until(
        lambda: is_aged(server)
        and rows_of(
            server, "SELECT 1 FROM segment_tenant WHERE retry_count > 0 AND leased_until > now()"
        ),
        "a merge that is set aside",
    )
    push(other, "pod=later", BEGIN + 2)
    until(
        lambda: is_aged(server) and rows_of(server, "SELECT 1 FROM block"), "a merge of the other's"
    )
    assert rows_of(server, "SELECT count(*) FROM store_writer") == writers
    execute(server, f"UPDATE retention_rule SET selector = '{ALL}'")
    execute(server, "UPDATE segment_tenant SET leased_until = NULL")
    until(lambda: is_all_deleted(server, api, other), "both deletions, once the rule can be read")
