"""Regular expressions in selectors: no label value makes them fail, and none delays the work of
other teams."""
import gzip

import pytest

from people import Tenant
from test_bounded_memory import OTLP, TYPE, block, number, otlp_dictionary, varint
from test_store import BEGIN, CPU_NAMES, HOUR, rows_of, until
from test_store_deletion import ALL, delete, age_objects, push
from test_store_repair import execute, pause_merging, resume_merging, push_together

HOSTILE = "a" * 60 + "!"
EXPONENTIAL = '{pod=~"(a|a)+"}'


def fetch(api, selector=""):
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
    age_objects(server)
    return all(
        one["done_at"] for api in apis for one in api.get("/api/v1/deletions").json()["deletions"]
    )


def test_a_deletion_by_an_exponential_expression_completes(start_server):
    server = start_server("--jobs-interval", "1s")
    api, other = (Tenant(server).api("ingest", "read", "admin") for _ in range(2))
    pause_merging(server)
    push_together(server, [(api, HOSTILE), (other, "secret")])
    push(api, "pod=aaa", BEGIN + 1)
    writers = rows_of(server, "SELECT count(*) FROM store_writer")
    assert api.request("DELETE", "/api/v1/profiles", query={"query": EXPONENTIAL}).status == 202
    delete(other, ALL)
    assert fetch(api).status == 200
    assert fetch(api, EXPONENTIAL).status in (200, 404)
    resume_merging(server)
    until(lambda: is_all_deleted(server, api, other), "both deletions")
    assert rows_of(server, "SELECT count(*) FROM store_writer") == writers
    pods = api.get("/api/v1/series", query={"start": BEGIN, "end": BEGIN + HOUR}).text
    assert HOSTILE in pods and '"aaa"' not in pods


def has_block(server, tenant):
    return rows_of(server, f"SELECT 1 FROM block WHERE tenant_id = {tenant.id}")


def test_a_label_value_does_not_make_a_rule_fail(shared_server):
    server = shared_server("--jobs-interval", "1s")
    tenant = Tenant(server)
    api, ingest = tenant.api("ingest", "read", "admin"), tenant.api("ingest")
    rule = {"query": '{pod=~".*foo.*bar.*"}', "keep": "30d"}
    assert api.post("/api/v1/retention", json=rule).status in (200, 201)
    push(ingest, "pod=" + "foo" * 680 + "r", BEGIN)
    push(ingest, "pod=x", BEGIN + 1)
    assert fetch(api).status == 200
    until(lambda: age_objects(server) and has_block(server, tenant), "a merge")
    assert fetch(api).status == 200


NAMES = "|".join(f"svc{i:04}" for i in range(160))
LONG_NAMES = "|".join(f"{i:060}" for i in range(115))


@pytest.mark.parametrize(
    "expression",
    [
        "(.{1,50}){1,50}",
        "(?:" + ".*" * 3900 + ")*[yz]",
        ".?" * 4000,
        "(a+){70}",
        "a?" * 64 + f"({LONG_NAMES})",
        f".*-({NAMES})",
    ],
    ids=["counts", "stars", "optional", "groups", "many starts", "any start"],
)
def test_an_expression_with_too_many_repetitions_is_refused(shared_server, expression):
    """A match of "(?:.*.*…)*[yz]" with one label value of 2 KB took 20 s of CPU time of the
    only thread that merges."""
    api = Tenant(shared_server()).api("ingest", "read", "admin")
    query = f'{{pod=~"{expression}"}}'
    response = api.request("DELETE", "/api/v1/profiles", query={"query": query})
    assert response.status == 400 and "is too expensive" in response.text
    response = api.post("/api/v1/retention", json={"query": query, "keep": "30d"})
    assert response.status == 400 and "is too expensive" in response.text
    # A query checks the time for each value (test_bounded_store.py).
    response = api.get("/api/v1/query", query={"query": query})
    assert response.status == 200, response


@pytest.mark.parametrize(
    "expression",
    [
        NAMES,
        "web-.*|api-.*|cron-worker-.*|database-.*|frontend-.*|backend-.*|checkout-.*",
        "kube-.*|istio-.*|monitoring|cert-manager|ingress-nginx|external-dns|argocd|flux-system",
        ".*ünïcödé.*",
        "[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}",
    ],
    ids=["names", "prefixes", "both", "letters", "identifier"],
)
def test_ordinary_expressions_are_accepted_for_retention(shared_server, expression):
    api = Tenant(shared_server()).api("admin")
    rule = {"query": f'{{pod=~"{expression}"}}', "keep": "30d"}
    assert api.post("/api/v1/retention", json=rule).status in (200, 201)


def test_a_rule_of_an_older_version_is_applied_whatever_it_costs(shared_server):
    """Rules that are too expensive today were stored before the limit. No query and no merge of
    the team may fail because of one."""
    server = shared_server("--jobs-interval", "1s")
    tenant = Tenant(server)
    api, ingest = tenant.api("ingest", "read"), tenant.api("ingest")
    server.rows(
        "INSERT INTO retention_rule (tenant_id, position, selector, keep_s)"
        f" VALUES ({tenant.id}, 1, '{{pod=~\".*-({NAMES})\"}}', 86400)"
    )
    push(ingest, "pod=" + "svc-" * 512, BEGIN)  # as long as the value of a label may be
    push(ingest, "pod=web-svc0007", BEGIN + 1)
    until(lambda: age_objects(server) and has_block(server, tenant), "a merge")
    response = fetch(api)
    assert response.status == 200, response
    assert "web-svc0007" not in str(
        api.get("/api/v1/label/pod/values", query={"start": BEGIN, "end": BEGIN + 2}).json()
    )


def test_a_failed_merge_does_not_delay_other_teams(start_server):
    """No merge can parse the rule, which simulates one stored before rules were checked."""
    server = start_server("--jobs-interval", "1s")
    api, other = (Tenant(server).api("ingest", "read", "admin") for _ in range(2))
    assert api.post("/api/v1/retention", json={"query": ALL, "keep": "30d"}).status in (200, 201)
    execute(server, "UPDATE retention_rule SET selector = '{'")
    pause_merging(server)
    push_together(server, [(api, "bad"), (other, "secret")])
    writers = rows_of(server, "SELECT count(*) FROM store_writer")
    delete(api, '{pod=~"bad.*"}')
    delete(other, ALL)
    resume_merging(server)
    until(
        lambda: age_objects(server)
        and rows_of(
            server, "SELECT 1 FROM segment_tenant WHERE retry_count > 0 AND leased_until > now()"
        ),
        "a failed merge that is postponed",
    )
    push(other, "pod=later", BEGIN + 2)
    until(
        lambda: age_objects(server) and rows_of(server, "SELECT 1 FROM block"),
        "a merge of the other team's data",
    )
    assert rows_of(server, "SELECT count(*) FROM store_writer") == writers
    execute(server, f"UPDATE retention_rule SET selector = '{ALL}'")
    execute(server, "UPDATE segment_tenant SET leased_until = NULL")
    until(lambda: is_all_deleted(server, api, other), "both deletions, after the rule is repaired")


def push_series(api, values):
    """Sends a profile of one sample for each value of the label pod, in one request."""
    profile = TYPE + block(2, number(1, 0) + block(4, varint(1)))
    resources = b"".join(
        block(
            1,
            block(1, block(1, number(3, 3) + block(2, number(8, 4 + i))))
            + block(2, block(2, profile)),
        )
        for i in range(len(values))
    )
    body = gzip.compress(otlp_dictionary([b"pod", *values], []) + resources)
    headers = {"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip"}
    response = api.post(OTLP, body, headers=headers)
    assert response.status == 200 and b"rejected" not in response.body, response


@pytest.mark.long
@pytest.mark.parametrize("kind", ["deletions", "rules"])
def test_costly_expressions_of_a_team_do_not_stop_the_merges_of_others(start_server, kind):
    """Each comparison takes more than a millisecond: 2,000 values of 2 KB and 30 expressions take
    100 s. With 100,000 values and 100 expressions they took hours."""
    server = start_server("--jobs-interval", "1s")
    api, other = (Tenant(server).api("ingest", "read", "admin") for _ in range(2))
    pause_merging(server)
    push_series(api, [b"a" * 2036 + b"b%09d" % i for i in range(2000)])
    expressions = [f'{{pod=~"({"a?" * 20})*b{i}"}}' for i in range(30)]
    for expression in expressions:
        if kind == "deletions":
            delete(api, expression)
        else:
            rule = {"query": expression, "keep": f"{1 + len(expression)}d"}
            assert api.post("/api/v1/retention", json=rule).status in (200, 201)
    if kind == "rules":  # a merge compares series with rules once something is old enough
        execute(server, "UPDATE retention_rule SET keep_s = 1")
    resume_merging(server)
    until(
        lambda: age_objects(server) and "takes too long: simpler" in server.log(),
        "a merge that ends",
    )
    push(other, "pod=secret", BEGIN)
    delete(other, ALL)
    until(lambda: is_all_deleted(server, other), "the deletion of the other team")
    deferred = "SELECT 1 FROM {} WHERE retry_count > 0"
    # Rules may fail at the merge after the first one.
    assert any(rows_of(server, deferred.format(table)) for table in ("segment_tenant", "block"))


@pytest.mark.long
def test_costly_deletions_of_a_team_do_not_keep_the_profiles_of_others(start_server):
    """A segment has the profiles of several teams and is deleted after the merges of all."""
    server = start_server("--jobs-interval", "1s")
    teams = [Tenant(server) for _ in range(2)]
    api, other = (team.api("ingest", "read", "admin") for team in teams)
    pause_merging(server)
    push_together(server, [(api, "aaab"), (other, "secret")])
    shared = rows_of(server, "SELECT id FROM segment")
    push_series(api, [b"a" * 2036 + b"b%09d" % i for i in range(2000)])
    for i in range(30):
        delete(api, f'{{pod=~"({"a?" * 20})*b{i}"}}')
    delete(other, ALL)
    resume_merging(server)
    until(
        lambda: age_objects(server) and is_all_deleted(server, other), "the other team's deletion"
    )
    assert not shared & rows_of(server, "SELECT id FROM segment")
    assert "takes too long: simpler" in server.log()
    # The costly deletions wait for the team's own blocks.
    assert not is_all_deleted(server, api)
    assert rows_of(server, f"SELECT 1 FROM block WHERE tenant_id = {teams[0].id}")


def test_the_expressions_of_a_stored_selector_are_counted_together(shared_server):
    api = Tenant(shared_server()).api("read", "admin")
    one = ",".join(f'pod{i}!~"(?:a?b?c?d?e?f?g?h?)*x"' for i in range(4))
    accepted, refused = f"{{{one}}}", f'{{{one},{one.replace("pod", "job")},x="y"}}'
    assert api.request("DELETE", "/api/v1/profiles", query={"query": accepted}).status == 202
    response = api.request("DELETE", "/api/v1/profiles", query={"query": refused})
    assert response.status == 400 and "is too expensive" in response.text
