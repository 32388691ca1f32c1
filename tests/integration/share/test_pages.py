"""The HTML shell of each page: status, title, OpenGraph tags, directives for search engines."""
import html
import re

import pytest

from conftest import Api
from people import Tenant
from test_http_raw import folded


def share(api, **query):
    response = api.post("/api/v1/shares", folded(500), query=query)
    assert response.status == 201, response
    return response.json()


def meta(response, name):
    found = re.search(
        rf'<meta (?:property|name)="{re.escape(name)}" content="([^"]*)">', response.text
    )
    return html.unescape(found[1]) if found else None


@pytest.mark.parametrize(
    "path",
    ["/", "/login", "/invite", "/shares", "/explore", "/sources", "/settings", "/problems/gone"],
)
def test_everyone_may_load_these_pages(anonymous, path):
    response = anonymous.get(path)
    assert response.status == 200
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert "<!--perfolio:head-->" not in response.text
    assert response.text.count("<title>") == 1
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert "require-trusted-types-for 'script'" in policy and "frame-ancestors 'none'" in policy
    assert response.headers["cross-origin-opener-policy"] == "same-origin"


def test_assets_of_the_shell_are_immutable_and_compressed(anonymous):
    paths = re.findall(r'(?:src|href)="(/assets/[^"]+)"', anonymous.get("/").text)
    assert len(paths) >= 2
    for path in paths:
        plain = anonymous.get(path)
        assert plain.status == 200 and "immutable" in plain.headers["cache-control"]
        packed = anonymous.get(path, headers={"Accept-Encoding": "br, gzip"})
        if len(plain.body) > 2000:
            assert packed.headers["content-encoding"] == "br"
            assert len(packed.body) < len(plain.body)
    for path in ("/assets/none.js", "/assets/..", "/assets/index.html", "/favicon.ico"):
        assert anonymous.get(path).status == 404
    assert anonymous.get("/favicon.svg").headers["content-type"] == "image/svg+xml"


def test_licenses_of_bundled_packages_are_served(anonymous):
    page = anonymous.get("/").text
    path = re.search(r'<link rel="license" href="([^"]+)">', page)[1]
    response = anonymous.get(path)
    assert (
        response.status == 200 and response.headers["content-type"] == "text/plain; charset=utf-8"
    )
    frame = anonymous.get(re.search(r'(/assets/page_frame-[^"]+)', page)[1]).text
    for words in ("preact ", "@dagrejs/dagre ", "DejaVu Sans ", "Permission is hereby granted"):
        assert words in response.text and words in frame, words


def test_a_share_page_escapes_its_title(server, admin, anonymous):
    title = 'a "quoted" <b>title</b> & more \u05d0'
    made = share(
        admin, title=title, description="First line\n\n**second** line", visibility="public"
    )
    response = anonymous.get("/p/" + made["id"])
    assert response.status == 200
    assert "<b>title" not in response.text
    turned = anonymous.get("/p/" + share(admin, title="cpu\u202efdp.exe")["id"])
    assert "cpu\\u202Efdp.exe" in turned.text and "\u202e" not in turned.text
    assert meta(response, "og:title").startswith(title)
    assert meta(response, "og:description").endswith(" First line **second** line")
    assert meta(response, "og:url") == f"{server.url}/p/{made['id']}"
    assert meta(response, "og:image") == f"{server.url}/p/{made['id']}/og.png"
    assert meta(response, "robots") is None and "x-robots-tag" not in response.headers
    assert anonymous.get(f"/p/{made['id']}/og.png").headers["content-type"] == "image/png"


def test_the_description_has_the_total_and_the_top_function(admin, anonymous):
    """Self values: work 30 + 12, <idle> 20; main has none."""
    stacks = b"main;work 30\nmain;other;work 12\nmain;<idle> 20\n"
    made = admin.post("/api/v1/shares", stacks, query={"filename": "x.folded"}).json()
    assert admin.get("/api/v1/shares/" + made["id"]).json()["top_function"] == {
        "name": "work",
        "self": 42,
    }
    words = "62 samples in total. Top function: work, 67.7 %."
    assert meta(anonymous.get("/p/" + made["id"]), "og:description") == words
    for hidden in ({"visibility": "team"}, {"visibility": "password"}):
        headers = (
            {"X-Perfolio-Password": "open sesame"} if hidden["visibility"] == "password" else {}
        )
        kept = admin.post(
            "/api/v1/shares", stacks, query={"filename": "x.folded", **hidden}, headers=headers
        ).json()
        assert meta(anonymous.get("/p/" + kept["id"]), "og:description") is None
    named = admin.post(
        "/api/v1/shares", b'main;a"b><script>\xe2\x80\xaetxt 1\n', query={"filename": "x.folded"}
    ).json()
    page = anonymous.get("/p/" + named["id"])
    assert "<script>\u202e" not in page.text and "><script>\\u202E" not in page.text
    assert "\u202e" not in meta(page, "og:description")


def test_an_unlisted_share_has_noindex_for_search_engines(admin, anonymous):
    response = anonymous.get("/p/" + share(admin, title="quiet")["id"])
    assert meta(response, "robots") == "noindex"
    assert response.headers["x-robots-tag"] == "noindex"


def test_the_page_of_a_team_share_reveals_nothing_to_others(admin, anonymous):
    made = share(admin, title="our secret", description="very secret", visibility="team")
    response = anonymous.get("/p/" + made["id"])
    assert "secret" not in response.text
    assert meta(response, "og:image") is None


def test_missing_and_deleted_shares_return_a_page_with_their_status(admin, anonymous):
    missing = anonymous.get("/p/" + "0" * 22)
    assert missing.status == 404 and '<div id="app">' in missing.text
    made = share(admin, title="short-lived")
    assert admin.delete("/api/v1/shares/" + made["id"]).status == 204
    gone = anonymous.get("/p/" + made["id"])
    assert gone.status == 410 and '<div id="app">' in gone.text
    assert "short-lived" not in gone.text
    assert anonymous.get(f"/p/{made['id']}/delete").status == 410


BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


@pytest.mark.parametrize("path", ["/p/%ff", "/settings/%", "/p/a%2fb", "/%zz", "/p/%01"])
def test_a_browser_gets_a_page_for_a_malformed_address(anonymous, path):
    response = anonymous.get(path, headers=BROWSER)
    assert response.status == 400 and response.headers["content-type"] == "text/html; charset=utf-8"
    assert "<title>Bad address · Perfolio</title>" in response.text
    for headers in ({}, {"Accept": "application/json"}):
        plain = anonymous.get(path, headers=headers)
        assert plain.status == 400 and plain.headers["content-type"] == "application/problem+json"
    for api_path in ("/api/v1/shares/%ff", "/assets/%"):
        plain = anonymous.get(api_path, headers=BROWSER)
        assert plain.status == 400 and plain.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    "path",
    ["/nowhere", "/p", "/problems/none", "/d/abc", "/favicon.ico", "/p/" + "0" * 22 + "/raw"],
)
def test_a_browser_gets_a_page_for_an_unknown_path(anonymous, path):
    for method in ("GET", "HEAD"):
        response = anonymous.request(method, path, headers=BROWSER)
        assert response.status == 404
        assert response.headers["content-type"] == "text/html; charset=utf-8"
        assert "default-src 'none'" in response.headers["content-security-policy"]
        assert response.headers["x-robots-tag"] == "noindex"
        assert "accept" in response.headers["vary"].lower()
    assert '<div id="app">' in anonymous.get(path, headers=BROWSER).text
    for headers in ({}, {"Accept": "*/*"}, {"Accept": "application/json, text/html;q=0"}):
        response = anonymous.get(path, headers=headers)
        assert response.status == 404
        assert response.headers["content-type"] == "application/problem+json"


def test_api_errors_are_problem_documents_for_every_client(anonymous):
    for path in ("/api/v1/none", "/api/", "/api/v1/shares/" + "0" * 22, "/assets/none.js"):
        response = anonymous.get(path, headers=BROWSER)
        assert response.status == 404
        assert response.headers["content-type"] == "application/problem+json"
    posted = anonymous.post("/nowhere", b"", headers=BROWSER)
    assert posted.headers["content-type"] == "application/problem+json"


def test_a_diff_page_names_both_shares_and_has_the_worse_status(admin, anonymous):
    first, second = share(admin, title="before"), share(admin, title="after")
    response = anonymous.get(f"/d/{first['id']}..{second['id']}")
    assert response.status == 200
    assert meta(response, "og:title").startswith("before → after")
    facts = [meta(anonymous.get("/p/" + one["id"]), "og:description") for one in (first, second)]
    assert meta(response, "og:description") == f"Before: {facts[0]} After: {facts[1]}"
    hidden = share(admin, title="mine", visibility="team")
    assert meta(anonymous.get(f"/d/{first['id']}..{hidden['id']}"), "og:description") is None
    assert anonymous.get(f"/d/{first['id']}..{'0' * 22}").status == 404
    assert anonymous.get(f"/d/{first['id']}").status == 404


def test_a_link_with_a_trailing_slash_redirects_to_the_page(admin, anonymous):
    share = admin.post("/api/v1/shares", body=b"main 1\n").json()["id"]
    for path in (f"/p/{share}", f"/d/{share}..{share}"):
        moved = anonymous.get(path + "/", query={"v": "table"})
        assert moved.status == 308 and moved.headers["location"] == path + "?v=table"
    # An id with a line break must not add a field to the response's head.
    for path, status in (
        ("/p/a%0d%0aset-cookie:%20b/", 400),
        ("/p/a%20b/", 404),
        ("/p/a%3fb/", 404),
        ("/p//", 404),
    ):
        assert anonymous.get(path).status == status, path


def test_loading_the_delete_page_does_not_delete(admin, anonymous):
    made = share(admin)
    for method in ("GET", "HEAD"):
        assert anonymous.request(method, f"/p/{made['id']}/delete").status == 200
    assert anonymous.get(f"/p/{made['id']}/raw").status == 200


def guess(client, path="/p/" + "1" * 22):
    """Requests a share that does not exist until the server refuses with 429."""
    for _ in range(260):
        response = client.get(path)
        if response.status == 429:
            break
        assert response.status == 404
    assert response.status == 429
    return response


def test_guesses_at_links_are_limited(start_server):
    server = start_server()
    guesser = server.anonymous()
    response = guess(guesser)
    assert int(response.headers["retry-after"]) >= 1
    assert response.headers["content-type"] == "application/problem+json"
    assert guesser.get("/healthz").status == 200, "requests that are not guesses still work"


def test_signed_in_clients_are_not_locked_out_by_guesses(start_server):
    server = start_server()
    admin, guesser = server.api(), server.anonymous()
    known = [admin, Tenant(server).user("viewer")]
    path = f"/api/v1/shares/{share(admin)['id']}"
    guess(guesser)
    for client in known:
        guess(guesser)
        assert client.get(path).status == 200, "not refused because of others with the same address"
        for _ in range(230):
            assert client.get("/p/" + "1" * 22).status == 404, "not counted as a guess"
    # An invalid token or session does not bypass the limit. The first waits are short: retry.
    for stranger in (
        server.api("pf_" + "A" * 43),
        server.api("nonsense"),
        Api(server, cookies={"__Host-perfolio_session": "A" * 43}),
    ):
        assert any(guess(guesser) and stranger.get(path).status == 429 for _ in range(5))


def test_unknown_functions_of_a_share_are_not_guesses(start_server):
    server = start_server()
    made = share(server.api())
    anonymous = server.anonymous()
    for number in range(230):
        response = anonymous.get(
            f"/api/v1/shares/{made['id']}/callers", query={"fn": f"unknown{number}"}
        )
        assert response.status == 404, (number, response)
    for _ in range(230):
        response = anonymous.get("/api/v1/diff", query={"a": made["id"], "b": "0" * 22})
        if response.status == 429:
            break
        assert response.status == 404
    assert response.status == 429, "an existing share must not hide guesses at another"
