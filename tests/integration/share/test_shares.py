"""Shares: creation, visibility, passwords, idempotency keys, editing, expiry, deletion and reports.
A download always equals the uploaded bytes."""

import gzip
import threading
import time

import pytest

import sample_profiles as samples
import stored
from conftest import until_refused
from people import Tenant


def share(client, body=samples.FOLDED, headers=None, **query):
    response = client.post("/api/v1/shares", body, query=query, headers=headers)
    assert response.status == 201, response
    return response.json()


def problem(response, status, *words):
    """The response is a problem document of that status whose detail has the words."""
    assert response.status == status, response
    assert response.headers["content-type"].startswith("application/problem+json")
    document = response.json()
    assert document["status"] == status and document["request_id"]
    for word in words:
        assert word in document["detail"], document
    return document


def wait_for(condition, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition was not met in time"
        time.sleep(0.1)


def query_one(server, sql, *values):
    found = server.rows(sql, values)
    return found[0] if found else None


def has_object(server, share_id):
    return server.objects.has(f"share/{share_id}")


def new_tenant(admin, name):
    """Creates a tenant; returns its id and a token with the scopes read, share and admin."""
    tenant = admin.post("/api/v1/admin/tenants", json={"name": name})
    assert tenant.status == 201, tenant
    token = admin.post(
        f"/api/v1/admin/tenants/{tenant.json()['id']}/tokens",
        json={"name": "test", "scopes": ["read", "share", "admin"]},
    )
    assert token.status == 201, token
    return tenant.json()["id"], token.json()["token"]


# ---- creation ----


@pytest.mark.parametrize(
    "name,body,form,types", samples.every_format(), ids=[row[0] for row in samples.every_format()]
)
def test_every_format_is_recognized_and_downloaded_unchanged(admin, name, body, form, types):
    made = share(admin, body, title=name)
    shown = admin.get(f"/api/v1/shares/{made['id']}").json()
    assert shown["format"] == form
    assert shown["raw_bytes"] == len(body)
    assert shown["sample_count"] > 0
    if types:
        assert shown["sample_types"] == types
    for path in (f"/api/v1/shares/{made['id']}/raw", f"/p/{made['id']}/raw"):
        raw = admin.get(path)
        assert raw.status == 200 and raw.body == body
        assert raw.headers["x-content-type-options"] == "nosniff"
        assert raw.headers["content-disposition"].startswith("attachment; filename=")


def test_the_response_to_a_new_share_has_its_links(server, admin):
    response = admin.post(
        "/api/v1/shares",
        samples.pprof_gzip(),
        query={
            "title": "A [busy] day",
            "description": "**much** to do",
            "visibility": "public",
            "expires": "2d",
            "label": ["commit=abc", "branch=main"],
            "filename": "dir/cpu.pb.gz",
        },
    )
    assert response.status == 201, response
    made = response.json()
    assert len(made["id"]) == 22 and made["id"].isalnum()
    assert made["url"].endswith("/p/" + made["id"])
    assert made["raw_url"] == made["url"] + "/raw"
    assert made["delete_url"] == made["url"] + "/delete#" + made["delete_token"]
    assert len(made["delete_token"]) == 43
    assert made["markdown"].endswith(f"]({made['url']})")
    assert "\\[busy\\]" in made["markdown"] and "og.png" in made["markdown"]
    assert response.headers["location"] == made["url"]
    shown = admin.get(f"/api/v1/shares/{made['id']}").json()
    assert shown["title"] == "A [busy] day" and shown["description"] == "**much** to do"
    assert shown["visibility"] == "public" and shown["filename"] == "cpu.pb.gz"
    assert shown["labels"] == {"commit": "abc", "branch": "main"}
    assert shown["expires_at"] == made["expires_at"] and made["expires_at"].endswith("Z")
    assert shown["build_ids"] == ["0123456789abcdef0123456789abcdef01234567"]
    assert shown["duration_ns"] == 30_000_000_000
    assert shown["default_sample_type"] == "cpu"
    assert shown["can_edit"] is True and shown["mine"] is True
    assert has_object(server, made["id"])


def test_a_tenants_share_does_not_expire_by_default(admin):
    assert share(admin)["expires_at"] is None
    assert share(admin, expires="never")["expires_at"] is None


@pytest.mark.parametrize(
    "query,words",
    [
        ({"visibility": "secret"}, "visibility"),
        ({"expires": "1m"}, "expires"),
        ({"expires": "0h"}, "expires"),
        ({"expires": "99999999999999999999d"}, "expires"),
        ({"expires": "40000d"}, "expires"),
        ({"title": "x" * 201}, "title"),
        ({"title": "two\nlines"}, "title"),
        ({"label": "novalue"}, "label"),
        ({"label": ["a=1", "a=2"]}, "label"),
        ({"label": [f"k{i}=v" for i in range(33)]}, "label"),
        ({"titel": "typing error"}, "titel"),
        ({"visibility": "password"}, "X-Perfolio-Password"),
    ],
)
def test_invalid_settings_are_reported(admin, query, words):
    problem(admin.post("/api/v1/shares", samples.FOLDED, query=query), 400, words)


def test_a_password_for_a_share_of_another_visibility_is_refused(admin):
    response = admin.post(
        "/api/v1/shares", samples.FOLDED, headers={"X-Perfolio-Password": "open sesame"}
    )
    problem(response, 400, "X-Perfolio-Password")


def test_an_invalid_profile_is_refused_and_not_stored(server, admin):
    def objects_without_store():
        """Excludes blocks and segments, which the store changes while it merges profiles of other
        tests."""
        return {key for key in server.objects.keys() if not key.startswith(("block/", "segment/"))}

    before = objects_without_store()
    assert admin.post("/api/v1/shares", b"").status == 400
    response = admin.post("/api/v1/shares", b"\x00\x01\x02 no profile at all \xff")
    assert response.status in (400, 415, 422), response
    cut = samples.pprof_gzip()[:-20]
    assert admin.post("/api/v1/shares", cut).status == 400
    assert objects_without_store() <= before


def test_bombs_are_refused(start_server):
    server = start_server("--max-profile-bytes", "32MiB")
    admin = server.api()
    for bomb in (gzip.compress(bytes(400 << 20), 1), samples.zstd_zeros(1 << 32)):
        assert len(bomb) < 8 << 20
        response = admin.post("/api/v1/shares", bomb)
        assert response.status in (400, 413), response
    folded_bomb = gzip.compress(b"a;b 1\n" * (20 << 20), 1)
    problem(admin.post("/api/v1/shares", folded_bomb), 413)
    assert server.cpu_seconds() < 10, "too much CPU time"
    peak = int(
        next(
            line for line in open(f"/proc/{server.child_pid()}/status") if "VmHWM" in line
        ).split()[1]
    )
    assert peak < 400 * 1024, "too much resident memory"


# ---- visibility ----


def test_an_unlisted_share_is_visible_to_everyone_with_the_link(admin, anonymous):
    made = share(admin)
    assert anonymous.get(f"/api/v1/shares/{made['id']}").json()["can_edit"] is False
    assert anonymous.get(f"/p/{made['id']}/raw").body == samples.FOLDED
    assert anonymous.get(f"/p/{made['id']}/raw").headers["x-robots-tag"] == "noindex"
    assert anonymous.get(f"/p/{made['id']}.svg").headers["x-robots-tag"] == "noindex"
    public = share(admin, visibility="public")
    assert "x-robots-tag" not in anonymous.get(f"/p/{public['id']}/raw").headers
    page = anonymous.get(f"/p/{made['id']}")
    assert page.status == 200
    assert "noindex" in page.headers.get("x-robots-tag", "") + page.text


def test_a_team_share_is_visible_to_its_team_only(admin, anonymous):
    _, stranger_token = new_tenant(admin, "strangers")
    made = share(admin, visibility="team")
    paths = [f"/api/v1/shares/{made['id']}{tail}" for tail in ("", "/raw", "/flame", "/top")]
    paths += [f"/p/{made['id']}{tail}" for tail in (".pb.gz", ".folded", ".svg", "/og.png")]
    for path in paths:
        assert admin.get(path).status == 200, path
        assert anonymous.get(path).status == 401, path
        assert anonymous.get(path, token=stranger_token).status == 404, path
    assert anonymous.get("/api/v1/diff", query={"a": made["id"], "b": made["id"]}).status == 401
    assert admin.get(f"/p/{made['id']}/raw").headers["cache-control"].startswith("private")


def test_a_password_opens_a_share_by_header_and_by_cookie(server, admin, anonymous):
    password = "open sesame \u2603"
    header = {"X-Perfolio-Password": password.encode().decode("latin-1")}
    made = share(admin, visibility="password", headers=header)
    path = f"/api/v1/shares/{made['id']}"
    problem(anonymous.get(path), 401, "password")
    problem(anonymous.get(path + "/flame"), 401, "password")
    problem(anonymous.get(path, headers={"X-Perfolio-Password": "open sesam"}), 401, "wrong")
    assert anonymous.get(path, headers=header).status == 200
    assert anonymous.get(path).status == 401, "the header must open only one request"
    problem(anonymous.post(path + "/unlock", json={"password": "wrong one"}), 401)
    opened = anonymous.post(path + "/unlock", json={"password": password})
    assert opened.status == 204
    cookie = opened.headers["set-cookie"]
    for attribute in ("HttpOnly", "Secure", "SameSite", "Max-Age"):
        assert attribute in cookie
    assert password not in cookie
    assert anonymous.get(path).status == 200
    assert anonymous.get(path + "/raw").body == samples.FOLDED
    name = next(iter(anonymous.cookies))
    other = share(admin, visibility="password", headers=header)
    stolen = server.anonymous()
    stolen.cookies = {name.replace(made["id"], other["id"]): anonymous.cookies[name]}
    assert stolen.get(f"/api/v1/shares/{other['id']}").status == 401
    tampered = server.anonymous()
    tampered.cookies = {name: "9" + anonymous.cookies[name]}
    assert tampered.get(path).status == 401
    changed = admin.patch(path, json={"password": "another one", "visibility": "password"})
    assert changed.status == 200
    assert (
        anonymous.get(path).status == 401
    ), "a new password must invalidate cookies of the old one"


def test_the_password_form_opens_a_share_and_redirects_to_it(server, admin):
    made = share(admin, visibility="password", headers={"X-Perfolio-Password": "a+b c&d%"})
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    browser = server.anonymous()
    response = browser.post(
        f"/api/v1/shares/{made['id']}/unlock", "password=a%2Bb+c%26d%25", headers=form
    )
    assert response.status == 303 and response.headers["location"] == f"/p/{made['id']}"
    assert browser.get(f"/api/v1/shares/{made['id']}").status == 200


def test_a_token_with_scope_share_reads_only_its_own_and_open_shares(server):
    tenant = Tenant(server)
    pusher, other, reader = tenant.api("share"), tenant.api("share"), tenant.api("share", "read")
    own = share(pusher, visibility="team")["id"]
    team = share(other, visibility="team")["id"]
    closed = share(other, visibility="password", headers={"X-Perfolio-Password": "open sesame"})[
        "id"
    ]
    unlisted = share(other)["id"]
    for path in (
        "/api/v1/shares/{}",
        "/api/v1/shares/{}/raw",
        "/api/v1/shares/{}/flame",
        "/p/{}.svg",
    ):
        assert pusher.get(path.format(own)).status == 200, path
        assert pusher.get(path.format(unlisted)).status == 200, path
        assert pusher.get(path.format(team)).status == 404, path
        assert pusher.get(path.format(closed)).status == 401, path
        assert reader.get(path.format(team)).status == 200, path
    # The token may not change or delete shares of another token.
    for made in (team, closed, unlisted):
        assert pusher.patch(f"/api/v1/shares/{made}", json={"visibility": "public"}).status == 403
        assert pusher.delete(f"/api/v1/shares/{made}").status == 403
    assert pusher.patch(f"/api/v1/shares/{own}", json={"title": "mine"}).status == 200
    assert pusher.delete(f"/api/v1/shares/{own}").status == 204
    assert reader.delete(f"/api/v1/shares/{team}").status == 204


def test_password_guesses_are_rate_limited(start_server):
    server = start_server()
    admin, anonymous = server.api(), server.anonymous()
    made = share(admin, visibility="password", headers={"X-Perfolio-Password": "open sesame"})
    path = f"/api/v1/shares/{made['id']}"

    def guess():
        return until_refused(
            lambda i: anonymous.get(path, headers={"X-Perfolio-Password": f"guess {i}"}), 100
        )

    responses = guess()
    assert {response.status for response in responses[:-1]} == {401} and int(
        responses[-1].headers["retry-after"]
    ) >= 1
    # The first delays are short and may end before the next request, so the test tries five times.
    assert any(
        guess()
        and anonymous.get(path, headers={"X-Perfolio-Password": "open sesame"}).status == 429
        for _ in range(5)
    ), "during the delay the right password must be refused as well"
    assert admin.get(path).status == 200, "the team must not need the password"


def test_passwords_and_tokens_are_not_stored_or_logged_in_plain_text(server, admin):
    made = share(admin, visibility="password", headers={"X-Perfolio-Password": "hunter2hunter2"})
    row = query_one(server, "SELECT s::text FROM share s WHERE id = %s", made["id"])[0]
    for secret in ("hunter2hunter2", made["delete_token"]):
        assert secret not in row and secret not in server.log()


# ---- idempotency keys ----


def test_a_key_belongs_to_the_token(server):
    """The response contains the delete token, which other tokens of the team must not get."""
    team = Tenant(server)
    made = [
        client.post("/api/v1/shares", samples.FOLDED, headers=key("same")).json()
        for client in (team.api("share"), team.api("share"))
    ]
    assert made[0]["id"] != made[1]["id"] and made[0]["delete_token"] != made[1]["delete_token"]


def key(text):
    return {"Idempotency-Key": text}


def test_a_repeated_request_with_the_same_key_creates_one_share(server, admin):
    before = len(admin.get("/api/v1/shares", query={"q": "oncemade"}).json()["shares"])
    first = share(admin, headers=key("once-1"), title="oncemade")
    repeated = share(admin, headers=key("once-1"), title="oncemade")
    assert repeated == first
    shares = admin.get("/api/v1/shares", query={"q": "oncemade"}).json()["shares"]
    assert len(shares) == before + 1
    assert share(admin, headers=key("once-2"), title="oncemade")["id"] != first["id"]
    problem(
        admin.post(
            "/api/v1/shares", samples.FOLDED, query={"title": "other"}, headers=key("once-1")
        ),
        409,
        "Idempotency-Key",
    )
    problem(
        admin.post(
            "/api/v1/shares",
            samples.FOLDED + b"more 1\n",
            query={"title": "oncemade"},
            headers=key("once-1"),
        ),
        409,
        "Idempotency-Key",
    )
    assert (
        server.anonymous()
        .delete(
            f"/api/v1/shares/{first['id']}",
            headers={"X-Perfolio-Delete-Token": repeated["delete_token"]},
        )
        .status
        == 204
    )
    assert (
        admin.post(
            "/api/v1/shares", samples.FOLDED, query={"title": "oncemade"}, headers=key("once-1")
        ).status
        == 410
    )


def test_idempotency_keys_are_separate_for_each_tenant(admin, anonymous):
    _, token = new_tenant(admin, "keys")
    made = {
        share(client, headers=key("shared-key"))["id"]
        for client in (admin, anonymous, anonymous.with_token(token))
    }
    assert len(made) == 3
    repeated = {
        share(client, headers=key("shared-key"))["id"]
        for client in (admin, anonymous, anonymous.with_token(token))
    }
    assert repeated == made


@pytest.mark.parametrize("text", ["x" * 65, "with blank", "caf\xe9"])
def test_an_invalid_idempotency_key_is_refused(admin, text):
    problem(admin.post("/api/v1/shares", samples.FOLDED, headers=key(text)), 400, "Idempotency-Key")


def test_a_failed_request_does_not_use_up_its_key(admin):
    assert admin.post("/api/v1/shares", b"\x00\x01\x02", headers=key("free")).status == 415
    assert share(admin, headers=key("free"))


def test_concurrent_requests_with_one_key_create_one_share(server, admin):
    tenant_id, token = new_tenant(admin, "at once")
    responses = []

    def post(body):
        client = server.api().with_token(token)
        responses.append(client.post("/api/v1/shares", body, headers=key("at-once")))
        client.close()

    other = samples.FOLDED + b"more 1\n"
    threads = [
        threading.Thread(target=post, args=(body,)) for body in [samples.FOLDED] * 8 + [other] * 2
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    made = [response for response in responses if response.status == 201]
    assert len(made) in (2, 8), responses
    assert len({response.body for response in made}) == 1
    assert all(
        "Idempotency-Key" in problem(response, 409)["detail"]
        for response in responses
        if response.status != 201
    )
    assert (
        query_one(
            server, "SELECT count(*), min(raw_bytes) FROM share WHERE tenant_id = %s", tenant_id
        )[0]
        == 1
    )
    used, raw, texts = query_one(
        server,
        "SELECT (SELECT sum(bytes_stored)::bigint FROM tenant_usage u WHERE u.tenant_id ="
        " s.tenant_id), raw_bytes, row_bytes FROM share s WHERE tenant_id = %s",
        tenant_id,
    )
    assert raw in (len(samples.FOLDED), len(other)) and used == raw + texts


def test_a_repeated_merge_with_the_same_key_creates_one_share(admin):
    ids = [share(admin)["id"] for _ in range(2)]
    responses = [
        admin.post("/api/v1/merge", json={"shares": ids}, headers=key("merge")) for _ in range(2)
    ]
    assert [response.status for response in responses] == [201, 201]
    assert responses[0].body == responses[1].body
    problem(
        admin.post("/api/v1/merge", json={"shares": ids[:1]}, headers=key("merge")),
        409,
        "Idempotency-Key",
    )


def test_idempotency_keys_are_deleted_after_a_day(shared_server):
    server = shared_server("--jobs-interval", "1s")
    client = Tenant(server).api("share")
    first = share(client, headers=key("yesterday"))
    query_one(server, "UPDATE idempotency SET created_at = now() - interval '25 hours'")
    wait_for(lambda: query_one(server, "SELECT count(*) FROM idempotency")[0] == 0)
    assert share(client, headers=key("yesterday"))["id"] != first["id"]


# ---- anonymous sharing ----


def test_views_extend_the_life_of_anonymous_shares(start_server):
    server = start_server("--jobs-interval", "1s", "--anonymous-expiry", "10d")
    anonymous = server.anonymous()
    made = share(anonymous)
    assert made["expires_at"] is not None
    query_one(
        server, "UPDATE share SET expires_at = now() + interval '1 hour' WHERE id = %s", made["id"]
    )
    assert anonymous.get(f"/api/v1/shares/{made['id']}/flame").status == 200
    wait_for(
        lambda: query_one(
            server,
            "SELECT expires_at > now() + interval '9 days', views" " FROM share WHERE id = %s",
            made["id"],
        )
        == (True, 1),
        20,
    )
    problem(
        anonymous.post("/api/v1/shares", samples.FOLDED, query={"expires": "never"}), 400, "expires"
    )
    problem(
        anonymous.post("/api/v1/shares", samples.FOLDED, query={"expires": "11d"}), 400, "expires"
    )
    problem(
        anonymous.post("/api/v1/shares", samples.FOLDED, query={"visibility": "team"}),
        401,
        "visibility",
    )
    assert share(anonymous, expires="1h")["expires_at"]


def test_anonymous_sharing_is_limited_per_address(start_server):
    server = start_server("--anonymous-uploads-per-minute", "3")
    anonymous = server.anonymous()
    responses = until_refused(lambda _: anonymous.post("/api/v1/shares", samples.FOLDED), 100)
    assert len(responses) > 3 and {response.status for response in responses[:-1]} == {201}
    assert int(responses[-1].headers["retry-after"]) >= 1
    assert server.api().post("/api/v1/shares", samples.FOLDED).status == 201


def test_anonymous_sharing_can_be_turned_off(start_server):
    server = start_server("--anonymous-sharing", "no")
    anonymous = server.anonymous()
    for path, body in (
        ("/api/v1/shares", samples.FOLDED),
        ("/api/v1/uploads", b'{"size":10}'),
        ("/api/v1/merge", b'{"shares":[]}'),
    ):
        problem(anonymous.post(path, body), 401)
    made = share(server.api())
    assert anonymous.get(f"/api/v1/shares/{made['id']}").status == 200


# ---- editing, listing, deleting ----


def test_title_description_expiry_and_visibility_can_be_edited(admin, anonymous):
    made = share(admin, title="before")
    path = f"/api/v1/shares/{made['id']}"
    changed = admin.patch(
        path,
        json={"title": "after", "description": "# why", "expires": "1h", "visibility": "public"},
    ).json()
    assert (changed["title"], changed["description"]) == ("after", "# why")
    assert changed["expires_at"] and changed["visibility"] == "public"
    assert admin.patch(path, json={"expires": "never"}).json()["expires_at"] is None
    assert admin.patch(path, json={"title": "only"}).json()["description"] == "# why"
    for body, word in (
        ({"title": "x" * 201}, "title"),
        ({"expires": "soon"}, "expires"),
        ({"visibility": "password"}, "password"),
        ({"colour": "red"}, "colour"),
        ({"visibility": "password", "password": "short"}, "password"),
        ({"password": "long enough"}, "password"),
    ):
        problem(admin.patch(path, json=body), 400, word)
    problem(anonymous.patch(path, json={"title": "mine"}), 401)
    token = {"X-Perfolio-Delete-Token": made["delete_token"]}
    assert anonymous.patch(path, json={"title": "by token"}, headers=token).status == 200
    assert admin.get(path).json()["title"] == "by token"


def test_a_team_lists_its_own_shares_newest_first_in_pages(admin, anonymous):
    _, token = new_tenant(admin, "listers")
    team = anonymous.with_token(token)
    ids = [share(team, title=f"run {i} 100%_done", label=f"n={i}")["id"] for i in range(5)]
    share(admin, title="run of somebody else")
    seen, cursor = [], None
    while True:
        query = {"limit": 2, **({"cursor": cursor} if cursor else {})}
        page = team.get("/api/v1/shares", query=query).json()
        assert len(page["shares"]) <= 2
        seen += [row["id"] for row in page["shares"]]
        cursor = page["next_cursor"]
        if not cursor:
            break
    assert seen == ids[::-1]
    found = team.get("/api/v1/shares", query={"q": "RUN 3"}).json()["shares"]
    assert [row["id"] for row in found] == [ids[3]]
    assert found[0]["sample_types"] and found[0]["labels"] == {"n": "3"}
    assert len(team.get("/api/v1/shares", query={"q": "100%_d"}).json()["shares"]) == 5
    assert team.get("/api/v1/shares", query={"q": "100_"}).json()["shares"] == []
    assert len(team.get("/api/v1/shares", query={"q": '"n": "4"'}).json()["shares"]) <= 1
    problem(team.get("/api/v1/shares", query={"cursor": "nonsense"}), 400, "cursor")
    problem(team.get("/api/v1/shares", query={"limit": "0"}), 400, "limit")
    problem(anonymous.get("/api/v1/shares"), 401)


def test_a_deleted_share_returns_410_at_once_and_its_object_is_removed(server, admin, anonymous):
    made = share(admin, samples.pprof_gzip())
    path = f"/api/v1/shares/{made['id']}"
    assert anonymous.get(path + "/flame").status == 200
    used = admin.get("/api/v1/tenant").json()
    problem(anonymous.delete(path), 401)
    for client in (anonymous, admin):  # a wrong delete token is refused despite an account
        problem(client.delete(path, headers={"X-Perfolio-Delete-Token": "x" * 43}), 403)
    token = {"X-Perfolio-Delete-Token": made["delete_token"]}
    assert anonymous.delete(path, headers=token).status == 204
    for tail in ("", "/raw", "/flame", "/top"):
        problem(anonymous.get(path + tail), 410, "deleted")
    for tail in ("/raw", ".pb.gz", "/og.png"):
        assert anonymous.get(f"/p/{made['id']}{tail}").status == 410
    assert anonymous.get(f"/p/{made['id']}").status == 410
    problem(anonymous.delete(path, headers=token), 410)
    wait_for(lambda: not has_object(server, made["id"]))
    wait_for(
        lambda: query_one(server, "SELECT state FROM share WHERE id = %s", made["id"]) == ("gone",)
    )
    problem(anonymous.get(path), 410, "deleted")
    assert admin.get("/api/v1/tenant").json() != used, "the bytes must be subtracted from the usage"


def test_an_expired_share_returns_410_and_its_object_is_removed(shared_server):
    server = shared_server("--jobs-interval", "1s")
    client = Tenant(server).api("share", "read")
    made = share(client, expires="1h")
    query_one(
        server,
        "UPDATE share SET expires_at = now() - interval '1 second' WHERE id = %s",
        made["id"],
    )
    problem(client.get(f"/api/v1/shares/{made['id']}"), 410, "expired")
    assert client.get("/api/v1/shares").json()["shares"] == []
    wait_for(lambda: not has_object(server, made["id"]))
    problem(client.get(f"/api/v1/shares/{made['id']}/raw"), 410, "expired")
    row = query_one(
        server,
        "SELECT state, raw_bytes + row_bytes, object_key FROM share WHERE id = %s",
        made["id"],
    )
    wait_for(
        lambda: query_one(
            server,
            "SELECT state, raw_bytes + row_bytes, object_key FROM share WHERE id = %s",
            made["id"],
        )
        == ("gone", 0, ""),
        20,
    )
    assert row


@pytest.mark.skipif(stored.is_in_bucket(), reason="objects of a bucket cannot be made old")
def test_an_object_without_a_row_is_collected(start_server):
    import os

    server = start_server(wait=False)
    server.wait_ready()
    kept = share(server.api())
    assert server.stop() == 0
    folder = server.data_dir / "objects" / "share"
    old, young = folder / ("o" * 22), folder / ("y" * 22)
    owner = (folder / kept["id"]).stat()
    for path in (old, young):
        path.write_bytes(b"left behind")
        os.chown(path, owner.st_uid, owner.st_gid)
    for path in (old, folder / kept["id"]):
        os.utime(path, (time.time() - 7200,) * 2)
    server.start()
    wait_for(lambda: not old.exists())
    assert young.exists(), "a recent object may belong to an unfinished upload"
    assert server.api().get(f"/p/{kept['id']}/raw").body == samples.FOLDED


def test_deleting_a_tenant_removes_its_objects(server, admin, anonymous):
    tenant_id, token = new_tenant(admin, "short-lived")
    made = share(anonymous.with_token(token))
    assert admin.delete(f"/api/v1/admin/tenants/{tenant_id}").status == 204
    wait_for(lambda: not has_object(server, made["id"]))
    assert anonymous.get(f"/api/v1/shares/{made['id']}").status in (404, 410)


def test_quotas_limit_stored_bytes_and_upload_size(admin, anonymous):
    tenant_id, token = new_tenant(admin, "small")
    team = anonymous.with_token(token)
    body = samples.pprof()
    first = share(team, body)
    used = team.get("/api/v1/tenant").json()["usage"]["bytes_stored"]
    patch = admin.patch(f"/api/v1/admin/tenants/{tenant_id}", json={"max_bytes_stored": used + 10})
    assert patch.status == 200, patch
    problem(team.post("/api/v1/shares", body), 429)
    assert team.delete(f"/api/v1/shares/{first['id']}").status == 204
    wait_for(lambda: team.post("/api/v1/shares", body).status == 201)
    assert (
        admin.patch(f"/api/v1/admin/tenants/{tenant_id}", json={"max_upload_bytes": 1024}).status
        == 200
    )
    problem(team.post("/api/v1/shares", body), 413)


# ---- reports and takedown ----


def test_open_reports_of_a_share_are_limited_and_closed_ones_forgotten(shared_server):
    server = shared_server("--jobs-interval", "1s")
    admin, anonymous = server.api(), server.anonymous()
    made = share(Tenant(server).api("share"))["id"]
    server.rows(
        "INSERT INTO abuse_report (tenant_id, share_id, reason, address)"
        " SELECT tenant_id, id, 'spam', '127.0.0.9' FROM share, generate_series(1, 20)"
        " WHERE id = %s RETURNING id",
        [made],
    )
    path = f"/api/v1/shares/{made}/reports"
    problem(anonymous.post(path, json={"reason": "more spam"}), 429, "operator will look")
    first = admin.get("/api/v1/admin/reports").json()["reports"][0]["id"]
    assert admin.post(f"/api/v1/admin/reports/{first}/close").status == 204
    assert anonymous.post(path, json={"reason": "more spam"}).status == 201
    server.rows("UPDATE abuse_report SET closed_at = now() - interval '31 days' RETURNING id")
    wait_for(lambda: server.rows("SELECT id FROM abuse_report") == [])


def test_a_team_keeps_ten_thousand_tombstones(shared_server):
    server = shared_server("--jobs-interval", "1s")
    tenant, anonymous = Tenant(server), server.anonymous()
    client = tenant.api("share")
    old, new = share(client)["id"], share(client)["id"]
    assert client.delete(f"/api/v1/shares/{old}").status == 204
    wait_for(lambda: query_one(server, "SELECT state FROM share WHERE id = %s", old) == ("gone",))
    problem(anonymous.get(f"/api/v1/shares/{old}"), 410)
    server.rows(
        "INSERT INTO share (id, tenant_id, state, gone_reason, visibility, delete_token_hash,"
        " gone_at, object_key, raw_bytes, raw_sha256, format)"
        " SELECT lpad(n::text, 22, '0'), tenant_id, state, gone_reason, visibility,"
        " delete_token_hash, now(), '', 0, raw_sha256, format"
        " FROM share, generate_series(1, 9999) AS n WHERE id = %s RETURNING id",
        [old],
    )
    assert client.delete(f"/api/v1/shares/{new}").status == 204
    count = f"SELECT count(*) FROM share WHERE tenant_id = {tenant.id}"
    wait_for(lambda: server.rows(count) == [(10000,)])
    problem(anonymous.get(f"/api/v1/shares/{old}"), 404)
    problem(anonymous.get(f"/api/v1/shares/{new}"), 410)


def test_a_reported_share_is_taken_down(server, admin, anonymous):
    _, token = new_tenant(admin, "reported")
    made = share(anonymous.with_token(token), title="something bad")
    path = f"/api/v1/shares/{made['id']}/reports"
    problem(anonymous.post(path, json={}), 400, "reason")
    problem(anonymous.post(path, json={"reason": "x" * 2001}), 400, "reason")
    report = anonymous.post(path, json={"reason": "it has our secrets \u2603"})
    assert report.status == 201
    problem(anonymous.get("/api/v1/admin/reports"), 401)
    problem(anonymous.get("/api/v1/admin/reports", token=token), 403)
    reports = admin.get("/api/v1/admin/reports").json()["reports"]
    matching = [row for row in reports if row["id"] == report.json()["id"]]
    assert (
        matching[0]["share_id"] == made["id"]
        and matching[0]["reason"] == "it has our secrets \u2603"
    )
    down = f"/api/v1/admin/shares/{made['id']}/takedown"
    problem(anonymous.post(down, json={"reason": "no"}, token=token), 403)
    assert admin.post(down, json={"reason": "secrets \u2603"}).status == 204
    problem(anonymous.get(f"/api/v1/shares/{made['id']}"), 410, "taken down")
    reports = admin.get("/api/v1/admin/reports").json()["reports"]
    assert report.json()["id"] not in [row["id"] for row in reports]
    audit = anonymous.get("/api/v1/audit", token=token).text
    assert "share.takedown" in audit and made["id"] in audit
    wait_for(lambda: not has_object(server, made["id"]))


# ---- HTTP ----


def test_a_download_has_an_etag_and_is_readable_by_other_origins(admin, anonymous):
    made = share(admin, filename='we"ird\u2603 name.txt')
    raw = anonymous.get(f"/p/{made['id']}/raw", headers={"Origin": "https://example.com"})
    assert raw.headers["access-control-allow-origin"] == "*"
    assert 'filename="we_ird' in raw.headers["content-disposition"]
    assert "filename*=UTF-8''we%22ird%E2%98%83%20name.txt" in raw.headers["content-disposition"]
    again = anonymous.get(f"/p/{made['id']}/raw", headers={"If-None-Match": raw.headers["etag"]})
    assert again.status == 304 and again.body == b""


FILE_TAILS = ("/raw", ".pb.gz", ".folded", ".json", ".svg", ".png")


def test_only_files_of_open_shares_are_readable_by_other_origins(admin, anonymous):
    """Viewers of other origins fetch files without credentials. A file that needs credentials is
    not readable by other origins."""
    other_origin = {"Origin": "https://www.speedscope.app"}
    field = "access-control-allow-origin"
    paths = [f"/p/{{}}{tail}" for tail in FILE_TAILS] + ["/api/v1/shares/{}/raw"]
    for visibility in ("public", "unlisted"):
        made = share(admin, visibility=visibility)
        for path in paths:
            for method in ("GET", "HEAD"):
                response = anonymous.request(method, path.format(made["id"]), headers=other_origin)
                assert response.status == 200 and response.headers[field] == "*", (method, path)
                assert "access-control-allow-credentials" not in response.headers
        etag = anonymous.get(f"/p/{made['id']}/raw").headers["etag"]
        again = anonymous.get(
            f"/p/{made['id']}/raw", headers={**other_origin, "If-None-Match": etag}
        )
        assert again.status == 304 and again.headers[field] == "*"
    password = {"X-Perfolio-Password": "s3cret-word"}
    guarded = [
        (share(admin, visibility="team"), admin, {}),
        (share(admin, headers=password, visibility="password"), anonymous, password),
    ]
    for made, reader, secret in guarded:
        for path in paths:
            path = path.format(made["id"])
            refused = anonymous.get(path, headers=other_origin)
            assert refused.status == 401 and field not in refused.headers, path
            shown = reader.get(path, headers={**other_origin, **secret})
            assert shown.status == 200 and field not in shown.headers, path
        before = anonymous.request("OPTIONS", f"/p/{made['id']}/raw", headers=other_origin)
        assert (
            before.status == 204
            and before.headers["access-control-allow-methods"] == "GET, HEAD, OPTIONS"
        )
        assert "access-control-allow-credentials" not in before.headers


def test_invalid_ids_are_not_found(start_server):
    anonymous = start_server().anonymous()
    for share_id in ("x", "A" * 22, "A" * 23, "%2e" * 22, "A" * 21 + "_", "e29883"):
        for tail in ("", "/raw", "/flame"):
            assert anonymous.get(f"/api/v1/shares/{share_id}{tail}").status == 404


def test_head_returns_the_headers_of_get(admin):
    made = share(admin)
    for path in (
        f"/p/{made['id']}/raw",
        f"/api/v1/shares/{made['id']}/top",
        f"/p/{made['id']}/og.png",
    ):
        got, head = admin.get(path), admin.request("HEAD", path)
        assert head.status == 200 and head.body == b""
        for name in ("content-type", "content-length", "etag", "cache-control"):
            assert head.headers[name] == got.headers[name], name


def test_an_opened_share_stays_open_after_a_restart(start_server):
    server = start_server()
    made = share(
        server.api(), visibility="password", headers={"X-Perfolio-Password": "open sesame"}
    )
    browser = server.anonymous()
    path = f"/api/v1/shares/{made['id']}"
    assert browser.post(path + "/unlock", json={"password": "open sesame"}).status == 204
    browser.close()
    assert server.stop() == 0
    server.start()
    assert browser.get(path).status == 200
    browser.close()
