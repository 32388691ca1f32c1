"""Short links.

A view has one link. A link never leads to another server, is deleted with its share, and does not
bypass the visibility of the share.
"""

import re
import threading

import pytest

from conftest import until_refused
from people import Tenant
from test_http_raw import folded
from test_shares import wait_for
from test_uploads import expected_bytes, stored_bytes

STATE = "sv=1&v=both&st=cpu&x=focus%3Amain%7Ehide%3Aa%7Cb&z=0123456789abcdef"


def share(api, **query):
    response = api.post("/api/v1/shares", folded(20), query=query)
    assert response.status == 201, response
    return response.json()


def link(api, path):
    return api.post("/api/v1/links", json={"path": path})


def test_a_view_has_one_link_that_redirects_to_it(server, admin, anonymous):
    path = f"/p/{share(admin)['id']}?{STATE}"
    response = link(anonymous, path)
    assert response.status == 201, response
    made = response.json()
    assert re.fullmatch("[0-9A-Za-z]{22}", made["id"])
    assert made["url"] == f"{server.url}/s/{made['id']}"
    assert response.headers["location"] == f"/s/{made['id']}"
    assert link(admin, path).json() == made and link(anonymous, path).json() == made
    assert link(anonymous, path + "&q=1").json()["id"] != made["id"]
    for method in ("GET", "HEAD"):
        followed = anonymous.request(method, f"/s/{made['id']}")
        assert followed.status == 302 and followed.headers["location"] == path
        assert followed.headers["cache-control"] == "no-cache"
        assert followed.headers["referrer-policy"] == "no-referrer"
        assert followed.headers["x-robots-tag"] == "noindex"
        assert followed.body == b""


def test_a_link_to_a_public_share_allows_indexing(admin, anonymous):
    made = link(anonymous, f"/p/{share(admin, visibility='public')['id']}").json()
    assert "x-robots-tag" not in anonymous.get(f"/s/{made['id']}").headers


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "p/{0}",
        "/p/",
        "/p/{0}/",
        "/p/{0}/raw",
        "/p/{0}.svg",
        "/p/{0}#x",
        "/p/{0}?a#b",
        "//p/{0}",
        "/p/{0}x",
        "/p/0",
        "/p/{0}..{0}",
        "/d/{0}",
        "/d/{0}..",
        "/d/{0}.{0}",
        "/d/{0}..{0}/x",
        "/d/{0}..{0}..{0}",
        "https://example.com/p/{0}",
        "//example.com/p/{0}",
        "/\\example.com",
        "/p/{0}?a=//example.com",
        "/p/{0}\\..",
        "/p/{0}?a b",
        "/p/{0}?a\nb",
        "/p/{0}?a\r\nLocation: x",
        "/p/{0}?%0d%0a",
        "/p/{0}?%00",
        "/p/{0}?%7f",
        "/p/{0}?%",
        "/p/{0}?%4",
        "/p/{0}?%zz",
        "/p/{0}?\u00e9",
        "/p/{0}?<b>",
        '/p/{0}?"',
        "/p/{0}?\\",
        "/embed/{0}",
        "/settings",
        "/api/v1/session",
        "/s/0123456789",
        "javascript:alert(1)",
        "/p/../{0}",
        "/P/{0}",
        "/p/{0}?\u0000",
        "/p/{0}?\u0085",
    ],
)
def test_a_link_to_anything_but_a_view_of_this_server_is_refused(server, admin, anonymous, path):
    target = path.replace("{0}", share(admin)["id"])
    response = link(anonymous, target)
    assert response.status == 400, response
    assert response.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"[]",
        b"{",
        b'{"path":1}',
        b'{"path":null}',
        b'{"path":""}',
        b'{"path":"/p/%s","x":1}' % (b"0" * 22),
        b"\xff",
    ],
)
def test_an_invalid_body_is_refused(anonymous, body):
    assert anonymous.post("/api/v1/links", body).status == 400


def test_the_path_of_a_link_is_limited_to_16_kib(admin, anonymous):
    path = f"/p/{share(admin)['id']}?q="
    longest = path + "x" * (16384 - len(path))
    made = link(anonymous, longest)
    assert made.status == 201, made
    assert anonymous.get(f"/s/{made.json()['id']}").headers["location"] == longest
    assert link(anonymous, longest + "x").status == 400
    assert anonymous.post("/api/v1/links", b" " * 200000).status == 413


def test_shares_that_the_client_cannot_read_cannot_be_linked(admin, anonymous):
    assert link(anonymous, "/p/" + "0" * 22).status == 404
    team, open_one = share(admin, visibility="team")["id"], share(admin)["id"]
    for path in (f"/p/{team}", f"/d/{team}..{open_one}", f"/d/{open_one}..{team}"):
        assert link(anonymous, path).status == 401
        assert link(admin, path).status == 201


def test_a_link_to_a_protected_share_grants_no_access(server, admin, anonymous):
    response = admin.post(
        "/api/v1/shares",
        folded(20),
        query={"visibility": "password"},
        headers={"X-Perfolio-Password": "sesame open"},
    )
    path = f"/p/{response.json()['id']}?q=x"
    assert link(anonymous, path).status == 401
    opened = anonymous.request(
        "POST", "/api/v1/links", json={"path": path}, headers={"X-Perfolio-Password": "sesame open"}
    )
    assert opened.status == 201
    followed = server.anonymous().get("/s/" + opened.json()["id"])
    assert followed.status == 302 and "set-cookie" not in followed.headers
    assert server.anonymous().get(path.split("?")[0] + "/raw").status == 401


@pytest.mark.parametrize("which", [0, 1])
def test_the_link_of_a_diff_is_not_found_without_either_share(server, admin, anonymous, which):
    ids = [share(admin)["id"] for _ in range(2)]
    made = link(anonymous, f"/d/{ids[0]}..{ids[1]}").json()["id"]
    assert anonymous.get(f"/s/{made}").status == 302
    assert admin.delete(f"/api/v1/shares/{ids[which]}").status == 204
    assert anonymous.get(f"/s/{made}").status == 404
    assert link(anonymous, f"/d/{ids[0]}..{ids[1]}").status == 410


def test_links_of_deleted_bases_are_charged_until_the_share_is_deleted(server):
    team, other = Tenant(server), Tenant(server).api("share")
    client = team.api("share")
    made, base = share(client)["id"], share(other)["id"]
    for number in range(3):
        assert link(other, f"/d/{base}..{made}?q={number}" + "x" * 5000).status == 201
    charged = stored_bytes(server, team.id)
    assert charged == expected_bytes(server, team.id) > 15000
    assert other.delete(f"/api/v1/shares/{base}").status == 204
    # The row of the base is deleted in the background, which must not delete links either.
    with server.cursor() as cursor:
        cursor.execute("DELETE FROM share WHERE id = %s", [base])
        cursor.connection.commit()
    assert stored_bytes(server, team.id) == expected_bytes(server, team.id) == charged
    assert client.delete(f"/api/v1/shares/{made}").status == 204
    assert server.rows("SELECT FROM short_link WHERE share_id = %s", [made]) == []
    wait_for(lambda: stored_bytes(server, team.id) == 0)


def test_a_link_to_an_expired_share_is_not_found(server, admin, anonymous):
    made = share(admin, expires="1h")["id"]
    short = link(anonymous, f"/p/{made}").json()["id"]
    with server.cursor() as cursor:
        cursor.execute("UPDATE share SET expires_at = now() - interval '1 s' WHERE id = %s", [made])
    assert anonymous.get(f"/s/{short}").status == 404


def test_deleting_a_tenant_deletes_its_links(server, anonymous):
    tenant = Tenant(server)
    made = link(anonymous, f"/p/{share(tenant.api('share'))['id']}").json()["id"]
    assert tenant.operator.delete(f"/api/v1/admin/tenants/{tenant.id}").status == 204
    assert anonymous.get(f"/s/{made}").status == 404


def test_an_invalid_path_in_the_database_is_not_followed(server, admin, anonymous):
    made = link(anonymous, f"/p/{share(admin)['id']}").json()["id"]
    with server.cursor() as cursor:
        cursor.execute(
            "UPDATE short_link SET path = '//example.com/0123456789012345' WHERE id = %s", [made]
        )
    assert anonymous.get(f"/s/{made}").status == 404


@pytest.mark.parametrize(
    "text", ["0" * 10, "0" * 9, "0" * 11, "%27%27%27%27", "-" * 10, "%00" * 10]
)
def test_an_unknown_link_is_not_found(anonymous, text):
    response = anonymous.get("/s/" + text)
    assert response.status in (400, 404), response
    if response.status == 404:
        page = anonymous.get("/s/" + text, headers={"Accept": "text/html"})
        assert page.status == 404 and '<div id="app">' in page.text


def test_creation_and_lookups_of_links_are_rate_limited(start_server):
    server = start_server()
    path = f"/p/{share(server.api())['id']}"
    maker = server.anonymous()
    responses = until_refused(lambda n: link(maker, f"{path}?q={n}"), 300)
    assert len(responses) > 30 and {response.status for response in responses[:-1]} == {201}
    assert int(responses[-1].headers["retry-after"]) >= 1
    assert link(maker, f"{path}?q=0").status == 201, "existing links should not count"
    responses = until_refused(lambda n: maker.get(f"/s/{n:022d}"), 2000)
    assert len(responses) > 150 and {response.status for response in responses[:-1]} == {404}


def test_anonymous_clients_cannot_use_up_the_links_of_a_share(server, admin, anonymous):
    made = share(admin)["id"]
    with server.cursor() as cursor:
        cursor.execute(
            "INSERT INTO short_link (id, tenant_id, share_id, path) SELECT "
            "'F' || lpad(n::text, 21, '0'), tenant_id, id, '/p/' || id || '?n=' || n "
            "FROM share, generate_series(1, 1000) AS n WHERE id = %s",
            [made],
        )
        response = link(anonymous, f"/p/{made}?q=x")
        assert response.status == 429 and "short links" in response.json()["detail"]
        assert link(admin, f"/p/{made}?q=x").status == 201
        cursor.execute("DELETE FROM short_link WHERE share_id = %s", [made])


def test_links_count_towards_the_quota_of_the_team(server):
    team = Tenant(server)
    client = team.api("share")
    made = share(client)
    before, path = stored_bytes(server, team.id), f"/p/{made['id']}?q=" + "x" * 5000
    for _ in range(2):  # the second request finds the link
        assert link(client, path).status == 201
        assert stored_bytes(server, team.id) == before + len(path)
    assert stored_bytes(server, team.id) == expected_bytes(server, team.id)
    team.limit(max_bytes_stored=before + 6000)
    wait_for(lambda: link(client, path + "y").status == 429)
    assert stored_bytes(server, team.id) == before + len(path)
    assert client.delete(f"/api/v1/shares/{made['id']}").status == 204
    wait_for(lambda: stored_bytes(server, team.id) == 0)


def test_concurrent_requests_for_the_same_link_create_one(server, admin):
    path = f"/p/{share(admin)['id']}?q=together"
    responses = []
    barrier = threading.Barrier(6)

    def request_link():
        client = server.api()
        client.get("/healthz")
        barrier.wait()
        responses.append(link(client, path))

    threads = [threading.Thread(target=request_link) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [response.status for response in responses] == [201] * 6
    assert len({response.json()["id"] for response in responses}) == 1


def test_links_of_a_comparison_and_its_reverse_do_not_wait_for_each_other(server, admin):
    """Two transactions that lock the same shares in different orders would deadlock."""
    ids = [share(admin)["id"] for _ in range(2)]
    statuses = []

    def make(number):
        first, second = ids if number % 2 else ids[::-1]
        client = admin.with_token(admin.token)
        for i in range(20):
            statuses.append(link(client, f"/d/{first}..{second}?q={number}-{i}").status)
        client.close()

    threads = [threading.Thread(target=make, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(statuses) <= {201, 429}, set(statuses)
    assert "deadlock detected" not in server.database_log()
