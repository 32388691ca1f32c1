"""Sessions, users, invitations, tokens, tenants, quotas and the audit log."""

import concurrent.futures
import re
import time

import pytest

from conftest import REAL_SCRYPT, Api
from people import PASSWORD, Browser, Tenant, come_from, unique

PROFILE = b"main;work 10\nmain;idle 5\n"


@pytest.fixture
def tenant(server):
    return Tenant(server)


@pytest.fixture
def owner(tenant):
    return tenant.user("owner")


def problem(response, status, name):
    assert response.status == status, response
    assert response.headers["content-type"] == "application/problem+json"
    document = response.json()
    assert document["type"] == "/problems/" + name
    return document["detail"]


# ---- signing in ----


def test_signing_in_starts_a_session_and_signing_out_ends_it(server, tenant):
    account = tenant.add_user("member")
    browser = Browser(server)
    response = browser.sign_in(email=account["email"].upper(), password=PASSWORD)
    assert response.status == 200
    me = response.json()
    assert me["kind"] == "user" and me["role"] == "member"
    assert me["user"]["email"] == account["email"]
    assert me["tenant"] == {"id": tenant.id, "name": tenant.name}
    assert set(me["scopes"]) == {"ingest", "read", "share", "debuginfo"}
    cookie = response.headers["set-cookie"]
    assert re.match(r"__Host-perfolio_session=[0-9A-Za-z]{43}; ", cookie)
    for attribute in ("Path=/", "Secure", "HttpOnly", "SameSite=Lax"):
        assert attribute in cookie.split("; ")
    assert "domain" not in cookie.lower()
    assert response.headers["cache-control"] == "no-store"

    again = browser.get("/api/v1/session").json()
    assert again == me

    stolen = dict(browser.cookies)
    assert browser.delete("/api/v1/session").status == 204
    assert list(browser.cookies) == ["__Host-perfolio_device"], "this cookie grants no access"
    assert Api(server, cookies=stolen).get("/api/v1/session").json()["kind"] == "anonymous"


def test_an_ended_session_loses_its_cookie_and_cannot_share_anonymously(server, owner):
    stale = Browser(server, cookies=owner.cookies)
    assert owner.delete("/api/v1/session").status == 204
    problem(stale.post("/api/v1/shares", body=PROFILE), 401, "unauthenticated")
    assert stale.get("/api/v1/session").json()["kind"] == "anonymous"
    assert "__Host-perfolio_session" not in stale.cookies


def test_a_client_without_credentials_is_anonymous(server, anonymous):
    me = anonymous.get("/api/v1/session").json()
    assert me["kind"] == "anonymous" and me["tenant"] is None and me["scopes"] == []
    assert me["csrf_token"] is None and me["anonymous_sharing"] is True
    assert me["limits"]["max_upload_bytes"] > 0
    assert anonymous.delete("/api/v1/session").status == 204


@pytest.mark.long
def test_a_wrong_password_and_an_unknown_account_are_indistinguishable(start_server):
    server = start_server(environment=REAL_SCRYPT)
    account = Tenant(server).add_user("member")
    responses, seconds = [], []
    for email in (account["email"], "nobody@example.com"):
        started = server.cpu_seconds()
        for _ in range(3):  # the kernel counts CPU time in hundredths of a second
            response = Browser(server).sign_in(email=email, password="wrong password")
            responses.append(problem(response, 401, "unauthenticated"))
        seconds.append(server.cpu_seconds() - started)
    assert all(response == responses[0] for response in responses)
    assert min(seconds) > 0.25 * max(seconds), seconds


def test_sign_in_attempts_are_limited_for_known_and_unknown_accounts(start_server):
    server = start_server()
    account = Tenant(server).add_user("member")
    for email in (account["email"], "unknown@example.com"):

        def attempt(_, email=email):
            return Browser(server).sign_in(email=email, password="wrong password")

        assert [attempt(i).status for i in range(5)] == [401] * 5
        # In parallel, since an attempt on a busy host takes longer than the first back-offs.
        with concurrent.futures.ThreadPoolExecutor(3) as threads:
            responses = list(threads.map(attempt, range(3)))
        refused = [response for response in responses if response.status == 429]
        assert refused and all(int(response.headers["retry-after"]) >= 1 for response in refused)
    # The right password is refused during the back-off and accepted after it.
    response = Browser(server).sign_in(email=account["email"], password=PASSWORD)
    for _ in range(20):
        if response.status != 429:
            break
        time.sleep(int(response.headers["retry-after"]))
        response = Browser(server).sign_in(email=account["email"], password=PASSWORD)
    assert response.status == 200


def test_all_spellings_of_an_email_share_the_limit_of_attempts(start_server):
    """PostgreSQL treats the Kelvin sign as a capital k, so both name the same account."""
    server = start_server()

    def attempt(name):
        return Browser(server).sign_in(email=name + "elvin@example.com", password="wrong").status

    statuses = [attempt(name) for name in ("k", "K", "\u212a") * 2]
    # In parallel, since an attempt on a busy host takes longer than the first back-offs.
    with concurrent.futures.ThreadPoolExecutor(3) as threads:
        statuses += threads.map(attempt, ("k", "K", "\u212a"))
    assert 429 in statuses, statuses


@pytest.mark.long
def test_parallel_sign_ins_stay_within_memory_and_succeed(start_server):
    server = start_server(environment=REAL_SCRYPT)
    tenant = Tenant(server)
    accounts = [tenant.add_user("viewer") for _ in range(2)]

    def attempt(i):
        response = Browser(server).sign_in(email=accounts[i % 2]["email"], password=PASSWORD)
        return response.status, response.headers.get("retry-after")

    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        outcomes = list(pool.map(attempt, range(12)))
    assert {status for status, _ in outcomes} <= {200, 429, 503}, outcomes
    assert sum(status == 200 for status, _ in outcomes) >= 2
    assert all(retry for status, retry in outcomes if status != 200)


def test_a_one_time_code_signs_in_once(server, tenant):
    response = tenant.operator.post(
        f"/api/v1/admin/tenants/{tenant.id}/users",
        json={"email": unique("new") + "@example.com", "role": "owner"},
    )
    assert response.status == 201
    url = response.json()["login_url"]
    assert url.startswith(server.url + "/login#code=")
    code = url.partition("#code=")[2]
    browser = Browser(server)
    me = browser.sign_in(code=code)
    assert me.status == 200 and me.json()["user"]["has_password"] is False
    problem(Browser(server).sign_in(code=code), 401, "unauthenticated")
    problem(Browser(server).sign_in(code="x"), 401, "unauthenticated")
    # A user without a password may set one without the old one; a later change requires it.
    assert browser.post("/api/v1/password", json={"new": PASSWORD}).status == 204
    problem(browser.post("/api/v1/password", json={"new": "another password"}), 403, "forbidden")


def test_the_operator_creates_login_codes_for_users(server, admin, tenant):
    account = tenant.add_user("viewer")
    response = admin.post("/api/v1/admin/login-codes", json={"email": account["email"]})
    assert response.status == 201
    code = response.json()["url"].partition("#code=")[2]
    assert Browser(server).sign_in(code=code).json()["user"]["id"] == account["id"]
    response = admin.post("/api/v1/admin/login-codes")
    assert response.status == 201 and response.json()["email"] == "admin@localhost"
    code = response.json()["url"].partition("#code=")[2]
    me = Browser(server).sign_in(code=code).json()
    assert me["tenant"]["id"] == 2 and "operator" in me["scopes"]
    problem(
        admin.post("/api/v1/admin/login-codes", json={"email": "no@example.com"}), 404, "not-found"
    )


def test_changing_the_password_ends_other_sessions(server, tenant):
    account = tenant.add_user("member")
    here, there = Browser(server), Browser(server)
    for browser in (here, there):
        assert browser.sign_in(email=account["email"], password=PASSWORD).status == 200
    problem(
        here.post("/api/v1/password", json={"old": "wrong", "new": "a new password"}),
        403,
        "forbidden",
    )
    problem(here.post("/api/v1/password", json={"old": PASSWORD, "new": "short"}), 400, "invalid")
    assert (
        here.post("/api/v1/password", json={"old": PASSWORD, "new": "a new password"}).status == 204
    )
    assert here.get("/api/v1/session").json()["kind"] == "user"
    assert there.get("/api/v1/session").json()["kind"] == "anonymous"
    problem(
        Browser(server).sign_in(email=account["email"], password=PASSWORD), 401, "unauthenticated"
    )
    assert Browser(server).sign_in(email=account["email"], password="a new password").status == 200


def test_idle_and_expired_sessions_end(server, owner):
    with server.cursor() as cursor:
        cursor.execute(
            "UPDATE session SET last_used_at = now() - interval '8 days' " "WHERE user_id = %s",
            [owner.user["id"]],
        )
    assert owner.get("/api/v1/session").json()["kind"] == "anonymous"
    other = Tenant(server).user("owner")
    with server.cursor() as cursor:
        cursor.execute(
            "UPDATE session SET expires_at = now() - interval '1 second' " "WHERE user_id = %s",
            [other.user["id"]],
        )
    assert other.get("/api/v1/session").json()["kind"] == "anonymous"


def test_secrets_are_stored_as_hashes_only(server, owner):
    token = owner.post("/api/v1/tokens", json={"name": "x", "scopes": ["read"]}).json()["token"]
    secrets = [token, owner.cookies["__Host-perfolio_session"], PASSWORD]
    with server.cursor() as cursor:
        cursor.execute(
            "SELECT table_name FROM information_schema.tables " "WHERE table_schema = 'public'"
        )
        for (table,) in cursor.fetchall():
            cursor.execute(f"SELECT coalesce(string_agg(t::text, ' '), '') FROM \"{table}\" t")
            text = cursor.fetchone()[0]
            for secret in secrets:
                assert secret not in text, table
    for secret in secrets:
        assert secret not in server.log()


# ---- forgery ----


def test_unsafe_requests_of_a_session_need_its_csrf_token(server, tenant, owner):
    body = {"name": "x", "scopes": ["read"]}
    for token in (None, "", "0" * 64, tenant.user("owner").csrf_token):
        bare = Api(server, cookies=owner.cookies)
        headers = {} if token is None else {"X-CSRF-Token": token}
        problem(bare.post("/api/v1/tokens", json=body, headers=headers), 403, "forbidden")
    assert owner.post("/api/v1/tokens", json=body).status == 201


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_requests_from_other_sites_are_refused(server, owner, headers):
    problem(
        owner.post("/api/v1/tokens", json={"name": "x", "scopes": ["read"]}, headers=headers),
        403,
        "forbidden",
    )
    problem(
        Browser(server).post("/api/v1/session", json={"code": "x"}, headers=headers),
        403,
        "forbidden",
    )


def test_requests_from_the_servers_own_pages_are_accepted(server, owner):
    headers = {"Origin": server.url, "Sec-Fetch-Site": "same-origin"}
    assert (
        owner.post("/api/v1/tokens", json={"name": "x", "scopes": ["read"]}, headers=headers).status
        == 201
    )


# ---- tokens ----


def test_tokens_are_created_used_listed_and_revoked(server, tenant, owner):
    response = owner.post(
        "/api/v1/tokens", json={"name": "ci", "scopes": ["share", "read"], "expires": "90d"}
    )
    assert response.status == 201
    token = response.json()
    assert re.fullmatch(r"pf_[0-9A-Za-z]{43}", token["token"])
    assert response.headers["location"] == f"/api/v1/tokens/{token['id']}"
    client = Api(server, token["token"])
    me = client.get("/api/v1/session").json()
    assert me["kind"] == "token" and me["token"]["name"] == "ci"
    assert me["tenant"]["id"] == tenant.id and set(me["scopes"]) == {"read", "share"}

    listed = {row["id"]: row for row in owner.get("/api/v1/tokens").json()["tokens"]}
    row = listed[token["id"]]
    assert "token" not in row and row["created_by"] == owner.user["email"]
    assert row["last_used_at"] is not None and row["expires_at"] == token["expires_at"]

    assert owner.delete(f"/api/v1/tokens/{token['id']}").status == 204
    problem(client.get("/api/v1/session"), 401, "unauthenticated")
    problem(owner.delete(f"/api/v1/tokens/{token['id']}"), 404, "not-found")


def test_the_last_use_of_a_token_is_written_at_most_once_a_minute(server, tenant):
    token = tenant.make_token("read")
    client = Api(server, token["token"])

    def last_used():
        with server.cursor() as cursor:
            cursor.execute("SELECT last_used_at FROM token WHERE id = %s", [token["id"]])
            return cursor.fetchone()[0]

    assert last_used() is None
    client.get("/api/v1/session")
    first = last_used()
    assert first is not None
    time.sleep(5.5)  # past the look-up cache
    client.get("/api/v1/session")
    assert last_used() == first


def test_a_token_past_its_expiry_is_refused(server, tenant):
    token = tenant.make_token("read", expires="1h")
    with server.cursor() as cursor:
        cursor.execute(
            "UPDATE token SET expires_at = now() - interval '1 s' WHERE id = %s", [token["id"]]
        )
    problem(Api(server, token["token"]).get("/api/v1/session"), 401, "unauthenticated")


@pytest.mark.parametrize(
    "authorization",
    [
        "Bearer",
        "Bearer x",
        "Basic YTpi",
        "Bearer pf_" + "a" * 43,
        "Bearer pf_" + "a" * 42 + "-",
        "Bearer " + "p" * 5000,
    ],
)
def test_invalid_credentials_are_refused_where_none_are_required(anonymous, authorization):
    response = anonymous.get("/api/v1/session", headers={"Authorization": authorization})
    problem(response, 401, "unauthenticated")


@pytest.mark.parametrize(
    "body",
    [
        {"name": "x"},
        {"name": "x", "scopes": []},
        {"scopes": ["read"]},
        {"name": "", "scopes": ["read"]},
        {"name": "x", "scopes": ["all"]},
        {"name": "x", "scopes": "read"},
        {"name": "x", "scopes": [1]},
        {"name": "x" * 101, "scopes": ["read"]},
        {"name": "x", "scopes": ["read"], "expires": "soon"},
        {"name": "x", "scopes": ["read"], "expires": "0d"},
        {"name": "x", "scopes": ["read"], "extra": 1},
        {"name": "x", "scopes": ["read"], "expires": "99999999999999w"},
        {"name": "a\0b", "scopes": ["read"]},
    ],
)
def test_an_invalid_request_for_a_token_is_refused(owner, body):
    problem(owner.post("/api/v1/tokens", json=body), 400, "invalid")


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b"null", b"\xff", b'{"name":"a","name":"b"}', b"[" * 5000]
)
def test_a_body_that_is_no_json_object_is_refused(owner, body):
    problem(owner.post("/api/v1/tokens", body=body), 400, "invalid")


def test_a_new_token_cannot_exceed_the_scopes_of_its_creator(server, tenant, owner):
    viewer, member = tenant.user("viewer"), tenant.user("member")
    for client, scope in (
        (viewer, "share"),
        (member, "admin"),
        (owner, "operator"),
        (tenant.api("admin", "read"), "share"),
    ):
        problem(
            client.post("/api/v1/tokens", json={"name": "x", "scopes": ["read", scope]}),
            403,
            "forbidden",
        )
    operator = server.api()
    problem(
        operator.post("/api/v1/tokens", json={"name": "x", "scopes": ["operator"]}),
        403,
        "forbidden",
    )
    problem(
        operator.post(
            f"/api/v1/admin/tenants/{tenant.id}/tokens", json={"name": "x", "scopes": ["operator"]}
        ),
        403,
        "forbidden",
    )
    assert viewer.post("/api/v1/tokens", json={"name": "x", "scopes": ["read"]}).status == 201


def test_a_token_loses_the_scopes_that_its_creator_loses(server, tenant, owner):
    member = tenant.user("member")
    token = member.post("/api/v1/tokens", json={"name": "x", "scopes": ["read", "share"]}).json()
    client = Api(server, token["token"])
    assert set(client.get("/api/v1/session").json()["scopes"]) == {"read", "share"}
    path = f"/api/v1/users/{member.user['id']}"
    assert owner.patch(path, json={"role": "viewer"}).json()["role"] == "viewer"
    assert client.get("/api/v1/session").json()["scopes"] == ["read"]
    assert owner.delete(path).status == 204
    problem(client.get("/api/v1/session"), 401, "unauthenticated")
    assert member.get("/api/v1/session").json()["kind"] == "anonymous"


def test_members_see_and_revoke_their_own_tokens_only(tenant, owner):
    member, other = tenant.user("member"), tenant.user("member")
    mine = member.post("/api/v1/tokens", json={"name": "mine", "scopes": ["read"]}).json()["id"]
    theirs = other.post("/api/v1/tokens", json={"name": "theirs", "scopes": ["read"]}).json()["id"]
    ids = [row["id"] for row in member.get("/api/v1/tokens").json()["tokens"]]
    assert ids == [mine]
    problem(member.delete(f"/api/v1/tokens/{theirs}"), 404, "not-found")
    assert member.delete(f"/api/v1/tokens/{mine}").status == 204
    ids = [row["id"] for row in owner.get("/api/v1/tokens").json()["tokens"]]
    assert theirs in ids
    assert owner.delete(f"/api/v1/tokens/{theirs}").status == 204


def test_a_token_may_revoke_itself(server, tenant):
    token = tenant.make_token("read")
    client = Api(server, token["token"])
    problem(client.get("/api/v1/tokens"), 403, "forbidden")
    problem(client.post("/api/v1/tokens", json={"name": "x", "scopes": ["read"]}), 403, "forbidden")
    assert client.delete(f"/api/v1/tokens/{token['id']}").status == 204
    problem(client.get("/api/v1/session"), 401, "unauthenticated")


# ---- users and invitations ----


def test_an_invitation_can_be_accepted_once(server, tenant, owner):
    email = unique("invited") + "@example.com"
    response = owner.post("/api/v1/invitations", json={"email": email, "role": "member"})
    assert response.status == 201
    url = response.json()["url"]
    assert url.startswith(server.url + "/invite#")
    token = url.partition("#")[2]
    listed = owner.get("/api/v1/invitations").json()["invitations"]
    assert [row["email"] for row in listed] == [email] and "url" not in listed[0]

    browser = Browser(server)
    for _ in range(2):  # reading an invitation does not use it up
        looked = browser.post("/api/v1/invitations/look", json={"token": token})
        assert looked.status == 200 and looked.json() == {
            "email": email,
            "role": "member",
            "queries_public_debuginfod": False,
        }
    body = {"token": token, "password": "a fine password", "name": "Ada"}
    problem(
        browser.post("/api/v1/invitations/accept", json={**body, "password": "short"}),
        400,
        "invalid",
    )
    response = browser.post("/api/v1/invitations/accept", json=body)
    assert response.status == 201
    me = response.json()
    assert me["user"]["email"] == email and me["user"]["name"] == "Ada" and me["role"] == "member"
    assert browser.get("/api/v1/session").json()["tenant"]["id"] == tenant.id
    problem(Browser(server).post("/api/v1/invitations/accept", json=body), 404, "not-found")
    assert owner.get("/api/v1/invitations").json()["invitations"] == []
    assert Browser(server).sign_in(email=email, password="a fine password").status == 200


def test_withdrawn_and_expired_invitations_are_refused(server, owner):
    def invite():
        response = owner.post(
            "/api/v1/invitations", json={"email": unique("late") + "@example.com", "role": "viewer"}
        )
        return response.json()["id"], response.json()["url"].partition("#")[2]

    first, first_token = invite()
    assert owner.delete(f"/api/v1/invitations/{first}").status == 204
    problem(owner.delete(f"/api/v1/invitations/{first}"), 404, "not-found")
    second, second_token = invite()
    with server.cursor() as cursor:
        cursor.execute("UPDATE invitation SET expires_at = now() WHERE id = %s", [second])
    for token in (first_token, second_token, "x"):
        problem(
            Browser(server).post("/api/v1/invitations/look", json={"token": token}),
            404,
            "not-found",
        )
        problem(
            Browser(server).post(
                "/api/v1/invitations/accept", json={"token": token, "password": PASSWORD}
            ),
            404,
            "not-found",
        )


def invited(client, email, role="member"):
    """The secret of a new invitation's link."""
    response = client.post("/api/v1/invitations", json={"email": email, "role": role})
    assert response.status == 201, response
    return response.json()["url"].partition("#")[2]


def test_an_invitation_of_a_member_is_refused(tenant, owner):
    member = tenant.add_user("viewer")
    for email in (member["email"], member["email"].upper()):
        detail = problem(
            owner.post("/api/v1/invitations", json={"email": email, "role": "member"}),
            409,
            "conflict",
        )
        assert email in detail and "viewer" in detail
    assert owner.get("/api/v1/invitations").json()["invitations"] == []
    assert owner.delete(f"/api/v1/users/{member['id']}").status == 204
    invited(owner, member["email"])


def test_a_second_invitation_withdraws_the_first(server, tenant, owner):
    email = unique("twice") + "@example.com"
    first, second = invited(owner, email), invited(owner, email.upper(), "viewer")
    listed = owner.get("/api/v1/invitations").json()["invitations"]
    assert [(row["email"], row["role"]) for row in listed] == [(email.upper(), "viewer")]
    for path, more in (("look", {}), ("accept", {"password": PASSWORD})):
        detail = problem(
            Browser(server).post(f"/api/v1/invitations/{path}", json={"token": first, **more}),
            404,
            "not-found",
        )
        assert "withdrawn" in detail
    # An invitation of another team to the same person stays valid, and so do those to others.
    other = Tenant(server)
    others_link = invited(other.api("admin", "read"), email, "viewer")
    somebody = invited(owner, unique("somebody") + "@example.com")
    third = invited(owner, email)
    for token, status in ((others_link, 200), (somebody, 200), (second, 404), (third, 200)):
        looked = Browser(server).post("/api/v1/invitations/look", json={"token": token})
        assert looked.status == status, looked
    actions = [
        row["action"]
        for row in owner.get("/api/v1/audit").json()["entries"]
        if row["target"].lower() == email
    ]
    assert actions == ["invitation.create", "invitation.delete"] * 2 + ["invitation.create"]


def test_concurrent_invitations_of_one_person_leave_one(tenant):
    clients = [tenant.api("admin", "read") for _ in range(4)]
    email = unique("race") + "@example.com"
    with concurrent.futures.ThreadPoolExecutor(len(clients)) as pool:
        list(pool.map(lambda client: invited(client, email, "viewer"), clients))
    listed = clients[0].get("/api/v1/invitations").json()["invitations"]
    assert [row["email"] for row in listed] == [email]


def test_an_email_address_has_at_most_one_account(server, tenant, owner):
    email = Tenant(server).add_user("viewer")["email"]  # a user of another team
    url = owner.post("/api/v1/invitations", json={"email": email, "role": "member"}).json()["url"]
    response = Browser(server).post(
        "/api/v1/invitations/accept", json={"token": url.partition("#")[2], "password": PASSWORD}
    )
    problem(response, 409, "conflict")
    response = tenant.operator.post(
        f"/api/v1/admin/tenants/{tenant.id}/users", json={"email": email.upper(), "role": "viewer"}
    )
    problem(response, 409, "conflict")


@pytest.mark.parametrize(
    "email", ["", "x", "@x", "x@", "a b@c", "a@b@c", "a@b\n", "x" * 250 + "@b.com", "<a@b>"]
)
def test_an_invalid_email_address_is_refused(owner, email):
    problem(
        owner.post("/api/v1/invitations", json={"email": email, "role": "member"}), 400, "invalid"
    )


def test_the_last_owner_cannot_be_removed_or_demoted(tenant, owner):
    path = f"/api/v1/users/{owner.user['id']}"
    problem(owner.patch(path, json={"role": "member"}), 409, "conflict")
    problem(owner.delete(path), 409, "conflict")
    second = tenant.user("owner")
    assert owner.patch(path, json={"role": "member"}).status == 200
    problem(second.delete(f"/api/v1/users/{second.user['id']}"), 409, "conflict")


def test_two_owners_cannot_be_demoted_concurrently(tenant):
    for _ in range(5):
        owners = [tenant.user("owner") for _ in range(2)]
        everybody = owners[0].get("/api/v1/users").json()["users"]
        for user in everybody:
            if user["id"] not in [owner.user["id"] for owner in owners]:
                assert owners[0].delete(f"/api/v1/users/{user['id']}").status == 204
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            responses = list(
                pool.map(
                    lambda owner: owner.patch(
                        f"/api/v1/users/{owner.user['id']}", json={"role": "viewer"}
                    ).status,
                    owners,
                )
            )
        assert sorted(responses) in ([200, 409], [200, 403]), responses


def test_an_admin_token_cannot_grant_a_role_beyond_its_scopes(tenant):
    client = tenant.api("admin", "read")
    problem(
        client.post("/api/v1/invitations", json={"email": "a@b.example", "role": "member"}),
        403,
        "forbidden",
    )
    assert (
        client.post("/api/v1/invitations", json={"email": "a@b.example", "role": "viewer"}).status
        == 201
    )
    viewer = tenant.add_user("viewer")
    problem(client.patch(f"/api/v1/users/{viewer['id']}", json={"role": "owner"}), 403, "forbidden")


# ---- versions ----


def test_if_match_refuses_a_change_based_on_a_stale_version(tenant, owner):
    member = tenant.add_user("member")
    person = f"/api/v1/users/{member['id']}"
    for path, change in [
        ("/api/v1/tenant", ("PATCH", "/api/v1/tenant", {"name": unique("first")})),
        ("/api/v1/tenant", ("PATCH", "/api/v1/tenant", {"sample_labels": "endpoint"})),
        ("/api/v1/users", ("PATCH", person, {"role": "viewer"})),
        (
            "/api/v1/invitations",
            ("POST", "/api/v1/invitations", {"email": "a@b.example", "role": "viewer"}),
        ),
    ]:
        seen = owner.get(path).headers["etag"]
        assert owner.get(path).headers["etag"] == seen
        method, where, body = change
        assert owner.request(method, where, json=body, headers={"If-Match": seen}).status in (
            200,
            201,
        )
        assert owner.get(path).headers["etag"] != seen, path
        detail = problem(
            owner.request(method, where, json=body, headers={"If-Match": seen}), 412, "stale"
        )
        assert "changed since you loaded" in detail and "repeat" in detail
        if where == person:
            problem(owner.delete(person, headers={"If-Match": seen}), 412, "stale")
            assert owner.delete(person).status == 204  # without If-Match no version is checked
    # Sign-ins and uploads do not change the version of the users.
    seen = owner.get("/api/v1/users").headers["etag"]
    tenant.user("owner")
    joined = owner.get("/api/v1/users").headers["etag"]
    assert joined != seen
    assert owner.post("/api/v1/shares", body=b"main 1\n").status == 201
    assert owner.get("/api/v1/users").headers["etag"] == joined


# ---- the tenant, quotas, audit ----


def test_the_tenant_reports_its_quotas_and_usage(tenant, owner):
    response = owner.get("/api/v1/tenant").json()
    assert response["id"] == tenant.id and response["usage"]["bytes_stored"] == 0
    assert response["quotas"]["max_upload_bytes"] > 0
    name = unique("renamed")
    assert owner.patch("/api/v1/tenant", json={"name": name}).json()["name"] == name
    problem(owner.patch("/api/v1/tenant", json={"name": "DEFAULT"}), 409, "conflict")
    problem(owner.patch("/api/v1/tenant", json={"max_bytes_stored": 1}), 400, "invalid")


def test_uploads_per_minute_are_limited(server):
    tenant = Tenant(server, uploads_per_minute=2)
    client = tenant.api("share", "read")
    assert [client.post("/api/v1/shares", body=PROFILE).status for _ in range(2)] == [201, 201]
    response = client.post("/api/v1/shares", body=PROFILE)
    problem(response, 429, "rate-limited")
    assert 1 <= int(response.headers["retry-after"]) <= 60
    assert Tenant(server).api("share").post("/api/v1/shares", body=PROFILE).status == 201


def test_the_size_of_an_upload_is_limited(server):
    client = Tenant(server, max_upload_bytes=len(PROFILE)).api("share")
    assert client.post("/api/v1/shares", body=PROFILE).status == 201
    problem(client.post("/api/v1/shares", body=PROFILE + b"x 1\n"), 413, "too-large")
    response = client.post("/api/v1/uploads", json={"size": 10 << 20, "filename": "x"})
    problem(response, 413, "too-large")


def test_stored_bytes_are_limited_and_deletion_frees_them(server):
    tenant = Tenant(server)
    client = tenant.api("share", "read")
    shares = [client.post("/api/v1/shares", body=PROFILE)]
    one = client.get("/api/v1/tenant").json()["usage"]["bytes_stored"]
    assert one > len(PROFILE), "the texts of the share count, too"
    tenant.limit(max_bytes_stored=2 * one)
    shares.append(client.post("/api/v1/shares", body=PROFILE))
    assert [response.status for response in shares] == [201, 201]
    assert client.get("/api/v1/tenant").json()["usage"]["bytes_stored"] == 2 * one
    response = client.post("/api/v1/shares", body=PROFILE)
    problem(response, 429, "quota")
    assert int(response.headers["retry-after"]) > 0
    assert client.delete(f"/api/v1/shares/{shares[0].json()['id']}").status == 204
    deadline = time.monotonic() + 60
    while client.get("/api/v1/tenant").json()["usage"]["bytes_stored"] > one:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert client.post("/api/v1/shares", body=PROFILE).status == 201


def test_the_audit_log_records_actor_action_target_and_address(server, tenant, owner):
    token = owner.post("/api/v1/tokens", json={"name": "ci", "scopes": ["read", "share"]})
    share = Api(server, token.json()["token"]).post("/api/v1/shares", body=PROFILE).json()
    owner.delete(f"/api/v1/tokens/{token.json()['id']}")
    entries = owner.get("/api/v1/audit").json()["entries"]
    actions = [entry["action"] for entry in entries]
    assert actions[:3] == ["token.revoke", "share.create", "token.create"], actions
    assert "session.create" in actions and "user.create" in actions
    by_action = {entry["action"]: entry for entry in entries}
    created = by_action["token.create"]
    assert created["actor_kind"] == "user" and created["actor"] == owner.user["email"]
    assert created["address"] in ("127.0.0.1", "::1") and created["request_id"]
    assert created["request_id"] == token.headers["x-request-id"]
    assert by_action["share.create"]["actor_kind"] == "token"
    assert by_action["share.create"]["actor"] == "ci"
    assert share["id"] in by_action["share.create"]["target"]

    first = owner.get("/api/v1/audit", query={"limit": 2}).json()
    second = owner.get("/api/v1/audit", query={"limit": 2, "cursor": first["next_cursor"]}).json()
    assert [e["id"] for e in first["entries"] + second["entries"]] == [e["id"] for e in entries[:4]]
    problem(owner.get("/api/v1/audit", query={"limit": 0}), 400, "invalid")
    problem(owner.get("/api/v1/audit", query={"page": 2}), 400, "invalid")


def refusals(client):
    entries = client.get("/api/v1/audit", query={"limit": 100}).json()["entries"]
    return [entry for entry in entries if entry["action"].endswith(".refuse")]


def test_the_audit_log_records_refused_attempts_without_their_secrets(start_server):
    server = start_server()
    tenant = Tenant(server)
    owner = tenant.user("owner")
    stranger = Browser(server)
    email = owner.user["email"]
    assert stranger.sign_in(email=email.upper(), password="secret typed wrong").status == 401
    assert stranger.sign_in(email="my-own-password", password="secret typed wrong").status == 401
    assert stranger.sign_in(code="secret typed wrong").status == 401
    header = {"X-Perfolio-Password": "open sesame"}
    made = owner.post(
        "/api/v1/shares", body=PROFILE, query={"visibility": "password"}, headers=header
    ).json()
    path = f"/api/v1/shares/{made['id']}"
    assert stranger.get(path, headers={"X-Perfolio-Password": "secret typed"}).status == 401
    assert stranger.get(path).status == 401, "without a password this is no attempt"
    share, session = refusals(owner)
    assert (share["action"], share["target"]) == ("share.refuse", made["id"])
    assert (session["action"], session["target"]) == ("session.refuse", email)
    assert session["actor_kind"] == "anonymous" and session["address"] and session["request_id"]
    with server.database() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT tenant_id, target FROM audit_log WHERE action LIKE '%.refuse'")
        rows = cursor.fetchall()
        cursor.execute(
            "SELECT count(*) FROM audit_log WHERE audit_log::text LIKE '%typed%'"
            " OR audit_log::text LIKE '%my-own-password%'"
        )
        assert cursor.fetchone() == (0,)
    assert (1, "unknown account") in rows and (1, "one-time code") in rows and len(rows) == 4


def test_refused_attempts_cannot_fill_the_audit_log(start_server):
    """The guesses are longer than any password may be. The server refuses them without computing a
    hash, which would take a fifth of a second."""
    server = start_server()
    tenant = Tenant(server)
    owner = tenant.user("owner")
    made = [
        owner.post(
            "/api/v1/shares",
            body=PROFILE,
            query={"visibility": "password"},
            headers={"X-Perfolio-Password": "open sesame"},
        ).json()["id"]
        for _ in range(8)
    ]
    refused, begun = 0, time.monotonic()
    for number in range(96):
        guesser = server.anonymous()
        come_from(guesser, f"127.0.5.{number // 12 + 1}")
        response = guesser.get(
            f"/api/v1/shares/{made[number % 8]}", headers={"X-Perfolio-Password": f"{number:0300}"}
        )
        refused += response.status == 401
        guesser.close()
    minutes = (time.monotonic() - begun) / 60
    assert refused > 64
    assert 60 <= len(refusals(owner)) <= 60 + 2 * minutes + 1, "60 at once, two a minute"
    dropped = int(
        re.search(
            r"^perfolio_audit_dropped_total (\d+)$", owner.get("/metrics").text, re.MULTILINE
        )[1]
    )
    assert dropped == refused - len(refusals(owner))


# ---- the operator ----


def test_the_operator_lists_and_removes_users_and_tokens_of_any_tenant(server, tenant, owner):
    operator = server.api()
    path = f"/api/v1/admin/tenants/{tenant.id}"
    member = tenant.user("member")
    client = Api(
        server,
        owner.post("/api/v1/tokens", json={"name": "ci", "scopes": ["read"]}).json()["token"],
    )
    users = operator.get(path + "/users").json()["users"]
    assert [user["role"] for user in users] == ["owner", "member"]
    (token,) = operator.get(path + "/tokens").json()["tokens"]
    assert token["name"] == "ci" and token["created_by"] == owner.user["email"]
    assert "token" not in token

    assert client.get("/api/v1/shares").status == 200
    elsewhere = f"/api/v1/admin/tenants/{Tenant(server).id}"
    problem(operator.delete(f"{elsewhere}/tokens/{token['id']}"), 404, "not-found")
    problem(operator.delete(f"{elsewhere}/users/{users[1]['id']}"), 404, "not-found")
    assert operator.delete(f"{path}/tokens/{token['id']}").status == 204
    assert client.get("/api/v1/shares").status == 401, "at once"
    assert operator.delete(f"{path}/users/{users[1]['id']}").status == 204
    assert member.get("/api/v1/session").json()["kind"] == "anonymous"
    problem(operator.delete(f"{path}/users/{users[0]['id']}"), 409, "conflict")
    for missing in (
        "/api/v1/admin/tenants/999999999/users",
        "/api/v1/admin/tenants/999999999/tokens",
    ):
        problem(operator.get(missing), 404, "not-found")
    problem(operator.delete(f"{path}/users/nobody"), 404, "not-found")
    problem(operator.get(path + "/users", query={"page": 1}), 400, "invalid")
    entries = owner.get("/api/v1/audit").json()["entries"]
    assert [entry["action"] for entry in entries[:2]] == ["user.delete", "token.revoke"]
    assert entries[0]["actor_kind"] == "token", "the log of the tenant lists the operator's actions"


def test_the_operator_creates_changes_and_lists_tenants(server, admin):
    name = unique("tenant")
    response = admin.post("/api/v1/admin/tenants", json={"name": name, "max_bytes_stored": 1000})
    assert response.status == 201
    made = response.json()
    assert made["quotas"].pop("max_bytes_stored") == 1000
    assert "profile_retention_s" in made["quotas"] and set(made["quotas"].values()) == {None}
    path = f"/api/v1/admin/tenants/{made['id']}"
    assert response.headers["location"] == path
    problem(admin.post("/api/v1/admin/tenants", json={"name": name.upper()}), 409, "conflict")
    changed = admin.patch(path, json={"max_bytes_stored": None, "uploads_per_minute": 7}).json()
    assert changed["quotas"]["max_bytes_stored"] is None
    assert changed["quotas"]["uploads_per_minute"] == 7 and changed["name"] == name
    assert admin.get(path).json() == changed
    seen, cursor = [], None
    while True:
        page = admin.get(
            "/api/v1/admin/tenants", query={"limit": 3, **({"cursor": cursor} if cursor else {})}
        ).json()
        seen += [row["id"] for row in page["tenants"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == sorted(set(seen)) and {1, 2, made["id"]} <= set(seen)
    for bad in (
        {"max_bytes_stored": -1},
        {"name": ""},
        {"uploads_per_minute": 1.5},
        {"is_operator": True},
    ):
        problem(admin.patch(path, json=bad), 400, "invalid")
    for missing in ("/api/v1/admin/tenants/999999999", "/api/v1/admin/tenants/x"):
        problem(admin.get(missing), 404, "not-found")


def test_deleting_a_tenant_removes_all_its_data(server, admin):
    tenant = Tenant(server)
    owner = tenant.user("owner")
    client = tenant.api("share", "read")
    owner.post("/api/v1/invitations", json={"email": "x@y.example", "role": "viewer"})
    share = client.post("/api/v1/shares", body=PROFILE)
    assert share.status == 201
    objects = server.objects.keys()
    assert admin.delete(f"/api/v1/admin/tenants/{tenant.id}").status == 204
    problem(client.get("/api/v1/session"), 401, "unauthenticated")
    assert owner.get("/api/v1/session").json()["kind"] == "anonymous"
    problem(
        Browser(server).sign_in(email=owner.user["email"], password=PASSWORD),
        401,
        "unauthenticated",
    )
    assert Api(server).get(f"/api/v1/shares/{share.json()['id']}").status == 404  # no tombstone
    with server.cursor() as cursor:
        cursor.execute(
            "SELECT table_name FROM information_schema.columns "
            "WHERE table_schema = 'public' AND column_name = 'tenant_id'"
        )
        for (table,) in cursor.fetchall():
            cursor.execute(f'SELECT count(*) FROM "{table}" WHERE tenant_id = %s', [tenant.id])
            assert cursor.fetchone()[0] == 0, table
    deadline = time.monotonic() + 60
    while True:
        if objects - server.objects.keys():
            break
        assert time.monotonic() < deadline, "the share's bytes are still there"
        time.sleep(0.2)
    problem(admin.delete(f"/api/v1/admin/tenants/{tenant.id}"), 404, "not-found")
    for needed in (1, 2):
        problem(admin.delete(f"/api/v1/admin/tenants/{needed}"), 409, "conflict")


def sign_in_codes(server, count):
    """Waits until the server has printed count codes, shortly after it is ready; returns them."""
    deadline = time.monotonic() + 60
    while True:
        codes = re.findall(r"/login#code=([0-9A-Za-z]{43})", server.log())
        if len(codes) >= count:
            return codes
        assert time.monotonic() < deadline, server.log()
        time.sleep(0.05)


def test_a_restart_keeps_the_admin_token_and_prints_a_new_sign_in_link(start_server):
    server = start_server()
    token = server.token
    codes = sign_in_codes(server, 1)
    assert server.stop() == 0
    server.start()
    assert server.token == token
    assert server.api().get("/api/v1/session").json()["scopes"][-1] == "operator"
    new_codes = sign_in_codes(server, 2)
    assert new_codes[-1] != codes[-1]
    problem(Browser(server).sign_in(code=codes[-1]), 401, "unauthenticated")
    me = Browser(server).sign_in(code=new_codes[-1])
    assert me.status == 200 and me.json()["user"]["email"] == "admin@localhost"
