"""The rate of changes by a team, a client or an address, and the length of the audit log."""

import time

import sample_profiles as samples
from conftest import Api
from people import PASSWORD, Tenant, come_from, unique
from test_background_locks import query_row
from test_http_raw import wait_until
from test_shares import new_tenant

BURST = 10  # of one change a minute
HALF = BURST // 2  # of one token or user
SECURITY_BURST, SECURITY_MINUTE = 30, 10
MAX_ROWS = 1000


def change_until_refused(change, burst, per_minute=1):
    """Repeats the change until its rate is used up; returns the text of the refusal."""
    begun = time.monotonic()
    for number in range(10 * BURST + burst):
        response = change(number)
        if response.status != 200:
            break
    minutes = (time.monotonic() - begun) / 60
    assert burst <= number <= burst + per_minute * minutes + 1
    assert response.status == 429 and int(response.headers["retry-after"]) > 0, response
    return response.json()["detail"]


def edit_until_refused(client, share, burst=BURST, headers=None):
    def edit(number):
        title = {"title": f"title {number}"}
        return client.patch(f"/api/v1/shares/{share}", json=title, headers=headers)

    return change_until_refused(edit, burst)


def audit_rows(server, share):
    return query_row(
        server,
        "SELECT count(*) FROM audit_log WHERE action = 'share.edit' AND target = %s",
        share,
    )[0]


def test_changes_of_an_address_without_credentials_have_a_rate(start_server):
    server = start_server("--anonymous-changes-per-minute", "1")
    client = server.anonymous()
    made = client.post("/api/v1/shares", samples.FOLDED).json()
    headers = {"X-Perfolio-Delete-Token": made["delete_token"]}
    wrong = {"X-Perfolio-Delete-Token": "x" * 43}
    for _ in range(2 * BURST):
        response = client.patch(f"/api/v1/shares/{made['id']}", json={"title": "x"}, headers=wrong)
        assert response.status == 403, response
    detail = edit_until_refused(client, made["id"], headers=headers)
    assert "Too many changes from your address" in detail
    assert client.post("/api/v1/shares", samples.FOLDED).status == 201
    come_from(client, "127.0.0.3")
    response = client.patch(f"/api/v1/shares/{made['id']}", json={"title": "x"}, headers=headers)
    assert response.status == 200, response
    come_from(client, "127.0.0.1")
    assert client.delete(f"/api/v1/shares/{made['id']}", headers=headers).status == 204


def test_changes_of_a_team_have_a_rate(shared_server):
    server = shared_server("--tenant-changes-per-minute", "1")
    admin = server.api()
    tenant = Tenant(server)
    client = tenant.api("read", "share")
    other = Api(server, new_tenant(admin, "few changes")[1])
    share = client.post("/api/v1/shares", samples.FOLDED).json()["id"]
    for token in (client, tenant.api("read", "share")):
        assert "Your own changes per minute" in edit_until_refused(token, share, HALF)
    owner = tenant.user("owner")
    assert "Your team's changes per minute" in edit_until_refused(owner, share, 0)
    assert client.post("/api/v1/shares", samples.FOLDED).status == 201
    assert client.get(f"/api/v1/shares/{share}").status == 200
    share = other.post("/api/v1/shares", samples.FOLDED).json()["id"]
    assert other.patch(f"/api/v1/shares/{share}", json={"title": "x"}).status == 200
    for number in range(2 * BURST):
        assert admin.post("/api/v1/admin/tenants", json={"name": f"t{number}"}).status == 201


def test_refused_changes_of_a_token_or_viewer_do_not_count(shared_server):
    server = shared_server("--tenant-changes-per-minute", "1")
    tenant = Tenant(server)
    client = tenant.api("read", "share")
    share = client.post("/api/v1/shares", samples.FOLDED).json()["id"]
    for stranger in (tenant.api("ingest"), tenant.user("viewer")):
        for path, expected in ((share, 403), ("A" * len(share), 404)):
            for _ in range(2 * BURST):
                response = stranger.patch(f"/api/v1/shares/{path}", json={"title": "x"})
                assert response.status == expected, response
    assert "Your own changes per minute" in edit_until_refused(client, share, HALF)


def test_owners_can_revoke_everything_when_the_rate_of_the_team_is_used_up(shared_server):
    server = shared_server("--tenant-changes-per-minute", "1")
    tenant = Tenant(server)
    owner, member = tenant.user("owner"), tenant.user("member")
    share = owner.post("/api/v1/shares", samples.FOLDED).json()["id"]
    comments = f"/api/v1/shares/{share}/comments"
    invitation = owner.post(
        "/api/v1/invitations", json={"email": unique("i") + "@example.com", "role": "member"}
    )
    assert invitation.status == 201, invitation
    comment = member.post(comments, json={"text": "secret"})
    assert comment.status == 201, comment
    tokens = [tenant.make_token("read", "share") for _ in range(2)]
    for client in (*(Api(server, token["token"]) for token in tokens), owner):
        edit = {"json": {"title": "x"}}
        assert wait_until(lambda: client.patch(f"/api/v1/shares/{share}", **edit).status == 429)

    user = f"/api/v1/users/{member.user['id']}"
    assert owner.patch(user, json={"role": "viewer"}).status == 200
    for path in (
        *(f"/api/v1/tokens/{token['id']}" for token in tokens),
        f"/api/v1/invitations/{invitation.json()['id']}",
        f"{comments}/{comment.json()['n']}",
        f"/api/v1/shares/{share}",
        user,
    ):
        response = owner.delete(path)
        assert response.status == 204, response
    assert owner.post("/api/v1/password", json={"new": PASSWORD}).status == 204
    assert owner.delete("/api/v1/session").status == 204
    assert owner.get("/api/v1/users").status == 401


def test_a_user_who_changes_many_roles_delays_no_other_owner(shared_server):
    server = shared_server("--tenant-changes-per-minute", "1")
    tenant = Tenant(server)
    first, second = tenant.user("owner"), tenant.user("owner")
    user = f"/api/v1/users/{tenant.add_user('viewer')['id']}"

    def change(number):
        return first.patch(user, json={"role": ("viewer", "member")[number % 2]})

    detail = change_until_refused(change, SECURITY_BURST, SECURITY_MINUTE)
    assert "Your changes of roles and passwords per minute" in detail
    assert second.patch(user, json={"role": "viewer"}).status == 200
    assert first.delete(user).status == 204


def test_edits_of_texts_of_a_share_are_recorded_once_an_hour(server):
    admin = server.api()
    client = Api(server, new_tenant(admin, "edits")[1])
    share, second = (client.post("/api/v1/shares", samples.FOLDED).json()["id"] for _ in range(2))
    for number in range(5):
        response = client.patch(f"/api/v1/shares/{share}", json={"title": f"title {number}"})
        assert response.status == 200, response
    assert client.patch(f"/api/v1/shares/{second}", json={"title": "x"}).status == 200
    assert (audit_rows(server, share), audit_rows(server, second)) == (1, 1)


def test_each_change_of_the_access_to_a_share_is_recorded(server):
    client = server.anonymous()  # all clients without credentials are one author
    made = client.post("/api/v1/shares", samples.FOLDED).json()
    headers = {"X-Perfolio-Delete-Token": made["delete_token"]}
    edits = (
        {"title": "x"},
        {"visibility": "public"},
        {"visibility": "public", "title": "y"},  # changes only a text
        {"title": "z", "visibility": "password", "password": PASSWORD},
        {"visibility": "password", "password": PASSWORD + "!"},
        {"visibility": "unlisted"},
        {"expires": "1d"},
    )
    counts = []
    for edit in edits:
        response = client.patch(f"/api/v1/shares/{made['id']}", json=edit, headers=headers)
        assert response.status == 200, response
        counts.append(audit_rows(server, made["id"]))
    assert counts == [1, 2, 2, 3, 4, 5, 6]


def test_the_oldest_rows_of_a_long_audit_log_are_deleted(start_server):
    server = start_server("--audit-max-rows", str(MAX_ROWS), "--jobs-interval", "1s")
    long, short, quiet = (new_tenant(server.api(), name)[0] for name in ("long", "short", "quiet"))
    with server.database() as connection:
        connection.cursor().execute("DELETE FROM audit_log")
        for tenant, count, age in (
            (long, MAX_ROWS + 500, "0"),
            (short, MAX_ROWS, "0"),
            (quiet, MAX_ROWS + 300, "2 days"),  # audit-max-rows was larger
        ):
            connection.cursor().execute(
                "INSERT INTO audit_log (tenant_id, actor_kind, action, target, at)"
                " SELECT %s, 'user', 'test', n, now() - %s::interval"
                " FROM generate_series(1, %s) n",
                (tenant, age, count),
            )
    server.restart()
    rows = "SELECT count(*), min(target::integer) FROM audit_log WHERE tenant_id = %s"
    assert wait_until(lambda: query_row(server, rows, long) == (MAX_ROWS, 501))
    assert wait_until(lambda: query_row(server, rows, quiet) == (MAX_ROWS, 301))
    assert query_row(server, rows, short) == (MAX_ROWS, 1)
