"""Comments on a share: permissions, validation, limits, and deletion with the share."""

import threading

import pytest

from conftest import until_refused
from people import PASSWORD, Browser, Tenant, unique
from test_http_raw import folded
from test_quotas import waiting_sessions
from test_shares import problem, wait_for
from test_uploads import expected_bytes, stored_bytes

HASH = "0123456789abcdef"


@pytest.fixture(scope="module")
def team(server):
    return Tenant(server)


def share(api, **query):
    response = api.post("/api/v1/shares", folded(20), query=query)
    assert response.status == 201, response
    return response.json()


def path_of(made, n=None):
    return f"/api/v1/shares/{made['id']}/comments" + (f"/{n}" if n else "")


def post_comment(client, made, text="x", **fields):
    return client.post(path_of(made), json={"text": text, **fields})


def actions(server, tenant):
    with server.cursor() as cursor:
        cursor.execute(
            "SELECT action, target FROM audit_log WHERE tenant_id = %s AND action LIKE "
            "'comment.%%' "
            "ORDER BY id",
            [tenant.id],
        )
        return cursor.fetchall()


def test_owners_find_comments_of_other_teams_in_their_audit_log(server):
    team = Tenant(server)
    owner = team.user("owner")
    made = share(team.api("share"))
    assert post_comment(Tenant(server).user("member"), made, "from elsewhere").status == 201
    rows = owner.get("/api/v1/audit").json()["entries"]
    found = [row for row in rows if row["action"] == "comment.create"]
    assert [(row["target"], row["actor"]) for row in found] == [(f"{made['id']}/1", "")]
    assert owner.delete(path_of(made, 1)).status == 204


def test_a_comment_is_created_listed_edited_and_deleted(server, anonymous):
    team = Tenant(server)
    made = share(team.api("share"))
    member, other = team.user("member"), team.user("member")
    text = 'Why is **this** so wide?\n\n<script>"&'
    response = post_comment(
        member, made, text, pin_hash=HASH, pin_function="main.work", view="sv=2&x=focus%3Amain"
    )
    assert response.status == 201, response
    assert response.headers["location"] == path_of(made, 1)
    comment = response.json()
    assert comment["n"] == 1 and comment["text"] == text and comment["edited_at"] is None
    assert (
        comment["pin"] == {"hash": HASH, "function": "main.work"}
        and comment["view"] == "sv=2&x=focus%3Amain"
    )
    assert comment["mine"] is True and comment["can_delete"] is True
    email = member.user["email"]
    assert comment["author"] == email.split("@")[0]

    listed = anonymous.get(path_of(made))
    assert listed.headers["cache-control"] == "no-store"
    assert anonymous.get(f"/api/v1/shares/{made['id']}").json()["reader_comments"] == 1
    assert email not in listed.text
    seen = listed.json()["comments"][0]
    assert seen == {**comment, "mine": False, "can_delete": False}

    assert other.patch(path_of(made, 1), json={"text": "no"}).status == 403
    assert other.delete(path_of(made, 1)).status == 403
    edited = member.patch(path_of(made, 1), json={"text": "solved"}).json()
    assert edited["edited_at"] and edited == {
        **comment,
        "text": "solved",
        "edited_at": edited["edited_at"],
    }
    assert member.delete(path_of(made, 1)).status == 204
    assert anonymous.get(path_of(made)).json() == {"comments": [], "next_cursor": None}
    for after_deletion in (
        member.delete(path_of(made, 1)),
        member.patch(path_of(made, 1), json={"text": "x"}),
    ):
        assert after_deletion.status == 404
    assert post_comment(member, made).json()["n"] == 2, "a number is never reused"
    assert actions(server, team) == [
        (f"comment.{action}", f"{made['id']}/{n}")
        for action, n in (("create", 1), ("edit", 1), ("delete", 1), ("create", 2))
    ]


def test_members_of_other_teams_comment_on_shares_they_can_see(server, team, anonymous):
    made = share(team.api("share"))
    hidden = share(team.api("share"), visibility="team")
    stranger = Tenant(server).user("member")
    assert post_comment(stranger, made).status == 201
    assert (
        post_comment(stranger, hidden).status == 404 and stranger.get(path_of(hidden)).status == 404
    )
    assert post_comment(team.user("viewer"), made).status == 403
    assert post_comment(team.api("share", "admin"), made).status == 403
    assert post_comment(anonymous, made).status == 401
    assert anonymous.get(path_of(hidden)).status == 401
    owner = team.user("owner")
    assert owner.get(path_of(made)).json()["comments"][0]["can_delete"] is True
    assert owner.patch(path_of(made, 1), json={"text": "no"}).status == 403
    assert owner.delete(path_of(made, 1)).status == 204


def test_an_owner_of_another_team_cannot_delete_a_comment(server, team):
    made = share(team.api("share"))
    assert post_comment(team.user("member"), made).status == 201
    assert Tenant(server).user("owner").delete(path_of(made, 1)).status == 403


def test_the_delete_token_deletes_comments_of_an_anonymous_share(server, team, anonymous):
    made = share(anonymous)
    assert post_comment(team.user("member"), made).status == 201
    assert anonymous.delete(path_of(made, 1)).status == 401
    wrong = {"X-Perfolio-Delete-Token": "0" * 43}
    assert anonymous.delete(path_of(made, 1), headers=wrong).status == 403
    right = {"X-Perfolio-Delete-Token": made["delete_token"]}
    assert anonymous.delete(path_of(made, 1), headers=right).status == 204


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"text": ""},
        {"text": " \n "},
        {"text": None},
        {"text": 1},
        {"text": "x" * 8193},
        {"text": "é" * 4097},
        {"text": "a\u0000b"},
        {"text": "a\u0007b"},
        {"text": "x", "y": 1},
        {"text": "x", "pin_hash": HASH},
        {"text": "x", "pin_function": "f"},
        {"text": "x", "pin_hash": HASH.upper(), "pin_function": "f"},
        {"text": "x", "pin_hash": HASH[1:], "pin_function": "f"},
        {"text": "x", "pin_hash": "g" * 16, "pin_function": "f"},
        {"text": "x", "pin_hash": HASH, "pin_function": "f" * 4097},
        {"text": "x", "pin_hash": HASH, "pin_function": "a\nb"},
        {"text": "x", "view": "q=" + "x" * 4095},
        {"text": "x", "view": "a b"},
        {"text": "x", "view": "q=\u00e9"},
        {"text": "x", "view": "%0a"},
        {"text": "x", "view": "a#b"},
        {"text": "x", "view": "//example.com"},
    ],
)
def test_an_invalid_comment_is_refused(server, team, body):
    made = share(team.api("share"))
    member = team.user("member")
    response = member.post(path_of(made), json=body)
    assert response.status == 400, response
    assert post_comment(member, made).status == 201
    if "pin_hash" not in body and "view" not in body:
        assert member.patch(path_of(made, 1), json=body).status == 400
    assert member.patch(path_of(made, 1), json={"text": "x", "view": "q=x"}).status == 400


def test_fields_at_their_size_limits_are_accepted(team):
    made = share(team.api("share"))
    response = post_comment(
        team.user("member"),
        made,
        "é" * 4096,
        pin_hash=HASH,
        pin_function="f" * 4096,
        view="q=" + "x" * 4094,
    )
    assert response.status == 201, response


@pytest.mark.parametrize("n", ["0", "-1", "x", "1.5", "99999999999999999999", "7"])
def test_an_invalid_comment_number_is_not_found(team, n):
    made = share(team.api("share"))
    member = team.user("member")
    assert member.delete(path_of(made, n)).status == 404
    assert member.patch(path_of(made, n), json={"text": "x"}).status == 404


def test_a_session_needs_its_csrf_token_and_the_origin_of_the_server(team):
    made = share(team.api("share"))
    member = team.user("member")
    assert post_comment(member, made).status == 201
    token, member.csrf_token = member.csrf_token, None
    assert (
        post_comment(member, made).status == 403 and member.delete(path_of(made, 1)).status == 403
    )
    member.csrf_token = token
    crossed = member.post(
        path_of(made), json={"text": "x"}, headers={"Origin": "https://example.com"}
    )
    assert crossed.status == 403


def test_a_comment_keeps_the_name_of_a_deleted_author(server, team, anonymous):
    made = share(team.api("share"))
    account = team.add_user("member", name="Ada Lovelace")
    browser = Browser(server)
    assert browser.sign_in(email=account["email"], password=PASSWORD).status == 200
    assert post_comment(browser, made).json()["author"] == "Ada Lovelace"
    assert (
        team.operator.delete(f"/api/v1/admin/tenants/{team.id}/users/{account['id']}").status == 204
    )
    assert [c["author"] for c in anonymous.get(path_of(made)).json()["comments"]] == [
        "Ada Lovelace"
    ]


def test_pages_of_comments_contain_every_comment_once(server, team, anonymous):
    made = share(team.api("share"))
    with server.cursor() as cursor:
        cursor.execute(
            "INSERT INTO share_comment (share_id, n, tenant_id, user_id, author, text) "
            "SELECT %s, n * 2, %s, 1, 'a', 'comment ' || n FROM generate_series(1, 250) n",
            [made["id"], team.id],
        )
    texts, cursor = [], "0"
    while cursor is not None:
        response = anonymous.get(path_of(made), query={"cursor": cursor}).json()
        texts += [comment["text"] for comment in response["comments"]]
        cursor = response["next_cursor"]
    assert texts == [f"comment {n}" for n in range(1, 251)]
    assert len(anonymous.get(path_of(made), query={"limit": 3}).json()["comments"]) == 3
    for query in ({"limit": 0}, {"limit": 101}, {"cursor": "x"}, {"cursor": -1}, {"x": 1}):
        assert anonymous.get(path_of(made), query=query).status == 400


def test_comments_are_limited_per_share_and_per_user(server, team):
    made = share(team.api("share"))
    with server.cursor() as cursor:
        cursor.execute(
            "INSERT INTO share_comment (share_id, n, tenant_id, user_id, author, text) "
            "SELECT %s, n + 1000, %s, 1, 'a', 'x' FROM generate_series(1, 499) n",
            [made["id"], team.id],
        )
    member = team.user("member")
    assert post_comment(member, made).status == 201
    full = post_comment(member, made)
    assert full.status == 409 and "500" in full.json()["detail"]
    assert member.delete(path_of(made, 1)).status == 204
    assert post_comment(member, made).json()["n"] == 2, "a refused comment uses no number"
    other = share(team.api("share"))
    responses = until_refused(lambda _: post_comment(member, other), 400)
    assert {response.status for response in responses[:-1]} == {201}


def test_concurrent_comments_are_numbered_without_a_gap(server, team):
    made = share(team.api("share"))
    members = [team.user("member") for _ in range(6)]
    barrier = threading.Barrier(len(members))
    numbers = []

    def write(member):
        barrier.wait()
        numbers.append(post_comment(member, made).json()["n"])

    threads = [threading.Thread(target=write, args=[member]) for member in members]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers) == [1, 2, 3, 4, 5, 6]


def test_comments_are_deleted_with_the_share(server, team, anonymous):
    made = share(team.api("share"))
    assert post_comment(team.user("member"), made, unique("secret")).status == 201
    assert team.api("share", "read").delete(f"/api/v1/shares/{made['id']}").status == 204
    assert anonymous.get(path_of(made)).status == 410
    assert post_comment(team.user("member"), made).status == 410
    with server.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM share_comment WHERE share_id = %s", [made["id"]])
        assert cursor.fetchone() == (0,)


def test_comments_count_towards_the_quota_of_the_team_of_the_share(server):
    team = Tenant(server)
    client, member, guest = team.api("share"), team.user("member"), Tenant(server).user("member")
    made = share(client)
    before = stored_bytes(server, team.id)
    team.limit(max_bytes_stored=before + 20000)
    for writer in (member, guest):
        fields = {"pin_hash": HASH, "pin_function": "main.work", "view": "sv=2"}
        assert post_comment(writer, made, "é" * 4000, **fields).status == 201
    full = stored_bytes(server, team.id)
    assert before + 16000 < full == expected_bytes(server, team.id) < before + 17000
    problem(post_comment(member, made, "x" * 8000), 429, f"{full} of {before + 20000} bytes")
    detail = problem(post_comment(guest, made, "x" * 8000), 429, "of the share's team")["detail"]
    assert str(full) not in detail, "the team's size is shown to others"
    assert stored_bytes(server, team.id) == full == expected_bytes(server, team.id)
    assert member.patch(path_of(made, 1), json={"text": "short"}).status == 200
    assert stored_bytes(server, team.id) == expected_bytes(server, team.id) == full - 7995
    assert member.patch(path_of(made, 1), json={"text": "x" * 8005}).status == 200
    assert stored_bytes(server, team.id) == expected_bytes(server, team.id) == full + 5
    assert team.user("owner").delete(path_of(made, 2)).status == 204
    assert before < stored_bytes(server, team.id) == expected_bytes(server, team.id) < full - 7000
    assert client.delete(f"/api/v1/shares/{made['id']}").status == 204
    wait_for(lambda: stored_bytes(server, team.id) == 0)


def test_comments_on_anonymous_shares_count_in_the_bytes_of_a_day(start_server):
    server = start_server("--anonymous-max-daily-bytes", "20KiB")
    made = share(server.anonymous())
    member = Tenant(server).user("member")
    posted = [post_comment(member, made, "x" * 8000) for _ in range(3)]
    assert [response.status for response in posted] == [201, 201, 429]
    problem(posted[2], 429, "anonymous-max-daily-bytes")
    assert stored_bytes(server, 1) == expected_bytes(server, 1)


def test_a_change_of_a_comment_locks_its_share_first(server, team):
    """A deletion of the share locks the share and then the comments."""
    made = share(team.api("share"))
    member = team.user("member")
    assert post_comment(member, made).status == 201
    for change in (
        lambda: member.patch(path_of(made, 1), json={"text": "other"}),
        lambda: member.delete(path_of(made, 1)),
    ):
        responses = []
        changing = threading.Thread(target=lambda: responses.append(change()))
        holder = server.database()
        holder.autocommit = False
        cursor = holder.cursor()
        cursor.execute("SELECT 1 FROM share WHERE id = %s FOR UPDATE", [made["id"]])
        changing.start()
        wait_for(lambda: waiting_sessions(server) >= 1)
        cursor.execute("SELECT 1 FROM share_comment WHERE share_id = %s FOR UPDATE", [made["id"]])
        holder.rollback()
        holder.close()
        changing.join()
        assert responses[0].status in (200, 204), responses
