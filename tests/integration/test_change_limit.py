"""The rate of changes by a team or an address, and the length of the audit log."""

import time

import sample_profiles as samples
from conftest import Api
from people import come_from
from test_background_locks import ask
from test_http_raw import wait_until
from test_shares import new_tenant

BURST = 10  # of one change a minute
MAX_ROWS = 1000


def edit_until_refused(client, share, headers=None):
    """Edits the share until the rate is used up; returns how many edits passed and the refusal."""
    begun = time.monotonic()
    for number in range(BURST * 10):
        response = client.patch(
            f"/api/v1/shares/{share}", json={"title": f"title {number}"}, headers=headers
        )
        if response.status != 200:
            break
    minutes = (time.monotonic() - begun) / 60
    assert BURST <= number <= BURST + minutes + 1
    assert response.status == 429 and int(response.headers["retry-after"]) > 0, response
    return response.json()["detail"]


def audit_rows(server, share):
    return ask(
        server,
        "SELECT count(*) FROM audit_log WHERE action = 'share.edit' AND target = %s",
        share,
    )[0]


def test_changes_of_an_address_without_credentials_have_a_rate(start_server):
    server = start_server("--anonymous-changes-per-minute", "1")
    client = server.anonymous()
    made = client.post("/api/v1/shares", samples.FOLDED).json()
    headers = {"X-Perfolio-Delete-Token": made["delete_token"]}
    detail = edit_until_refused(client, made["id"], headers)
    assert "Too many changes from your address" in detail
    assert client.post("/api/v1/shares", samples.FOLDED).status == 201
    come_from(client, "127.0.0.3")
    response = client.patch(f"/api/v1/shares/{made['id']}", json={"title": "x"}, headers=headers)
    assert response.status == 200, response


def test_changes_of_a_team_have_a_rate(start_server):
    server = start_server("--tenant-changes-per-minute", "1")
    admin = server.api()
    client = Api(server, new_tenant(admin, "many changes")[1])
    other = Api(server, new_tenant(admin, "few changes")[1])
    share = client.post("/api/v1/shares", samples.FOLDED).json()["id"]
    assert "Your team's changes per minute" in edit_until_refused(client, share)
    assert client.post("/api/v1/shares", samples.FOLDED).status == 201
    assert client.get(f"/api/v1/shares/{share}").status == 200
    share = other.post("/api/v1/shares", samples.FOLDED).json()["id"]
    assert other.patch(f"/api/v1/shares/{share}", json={"title": "x"}).status == 200
    for number in range(2 * BURST):
        assert admin.post("/api/v1/admin/tenants", json={"name": f"t{number}"}).status == 201


def test_edits_of_a_share_are_recorded_once_an_hour(server):
    admin = server.api()
    client = Api(server, new_tenant(admin, "edits")[1])
    share, second = (client.post("/api/v1/shares", samples.FOLDED).json()["id"] for _ in range(2))
    for number in range(5):
        response = client.patch(f"/api/v1/shares/{share}", json={"title": f"title {number}"})
        assert response.status == 200, response
    assert client.patch(f"/api/v1/shares/{second}", json={"title": "x"}).status == 200
    assert (audit_rows(server, share), audit_rows(server, second)) == (1, 1)


def test_the_oldest_rows_of_a_long_audit_log_are_deleted(start_server):
    server = start_server("--audit-max-rows", str(MAX_ROWS), "--jobs-interval", "1s")
    long, short = (new_tenant(server.api(), name)[0] for name in ("long", "short"))
    with server.database() as connection:
        connection.cursor().execute("DELETE FROM audit_log")
        for tenant, count in ((long, MAX_ROWS + 500), (short, MAX_ROWS)):
            connection.cursor().execute(
                "INSERT INTO audit_log (tenant_id, actor_kind, action, target)"
                " SELECT %s, 'user', 'test', n FROM generate_series(1, %s) n",
                (tenant, count),
            )
    server.restart()
    rows = "SELECT count(*), min(target::integer) FROM audit_log WHERE tenant_id = %s"
    assert wait_until(lambda: ask(server, rows, long) == (MAX_ROWS, 501))
    assert ask(server, rows, short) == (MAX_ROWS, 1)
