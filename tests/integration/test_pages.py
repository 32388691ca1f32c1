"""The HTML shell of each page: status, title, OpenGraph lines, what search engines are told."""
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
    ["/", "/login", "/invite", "/shares", "/explore", "/senders", "/settings", "/problems/gone"],
)
def test_pages_are_there_for_everyone(anonymous, path):
    response = anonymous.get(path)
    assert response.status == 200
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert "<!--perfolio:head-->" not in response.text
    assert response.text.count("<title>") == 1
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert "require-trusted-types-for 'script'" in policy and "frame-ancestors 'none'" in policy
    assert response.headers["cross-origin-opener-policy"] == "same-origin"


def test_assets_that_the_shell_names_are_immutable_and_compressed(anonymous):
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


def test_licenses_of_bundled_packages_go_with_the_scripts(anonymous):
    page = anonymous.get("/").text
    path = re.search(r'<link rel="license" href="([^"]+)">', page)[1]
    response = anonymous.get(path)
    assert (
        response.status == 200 and response.headers["content-type"] == "text/plain; charset=utf-8"
    )
    frame = anonymous.get(re.search(r'(/assets/page_frame-[^"]+)', page)[1]).text
    for words in ("preact ", "@dagrejs/dagre ", "DejaVu Sans ", "Permission is hereby granted"):
        assert words in response.text and words in frame, words


def test_a_share_page_tells_its_title_escaped(server, admin, anonymous):
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


def test_the_description_has_total_and_top_function_where_no_picture_can_load(admin, anonymous):
    """Self values: work 30 + 12, <idle> 20; "main" only calls."""
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


def test_an_unlisted_share_is_kept_from_search_engines(admin, anonymous):
    response = anonymous.get("/p/" + share(admin, title="quiet")["id"])
    assert meta(response, "robots") == "noindex"
    assert response.headers["x-robots-tag"] == "noindex"


def test_a_team_share_tells_strangers_nothing(admin, anonymous):
    made = share(admin, title="our secret", description="very secret", visibility="team")
    response = anonymous.get("/p/" + made["id"])
    assert "secret" not in response.text
    assert meta(response, "og:image") is None


def test_missing_and_deleted_shares_have_their_status_and_still_a_page(admin, anonymous):
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
def test_a_browser_sees_a_page_for_an_address_that_cannot_be_read(anonymous, path):
    response = anonymous.get(path, headers=BROWSER)
    assert response.status == 400 and response.headers["content-type"] == "text/html; charset=utf-8"
    assert "<title>Bad address · Perfolio</title>" in response.text
    for headers in ({}, {"Accept": "application/json"}):
        plain = anonymous.get(path, headers=headers)
        assert plain.status == 400 and plain.headers["content-type"] == "application/problem+json"
    for of_programs in ("/api/v1/shares/%ff", "/assets/%"):
        plain = anonymous.get(of_programs, headers=BROWSER)
        assert plain.status == 400 and plain.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    "path",
    ["/nowhere", "/p", "/problems/none", "/d/abc", "/favicon.ico", "/p/" + "0" * 22 + "/raw"],
)
def test_a_path_that_leads_nowhere_is_a_page_for_browsers(anonymous, path):
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


def test_errors_of_the_api_are_problems_for_every_client(anonymous):
    for path in ("/api/v1/none", "/api/", "/api/v1/shares/" + "0" * 22, "/assets/none.js"):
        response = anonymous.get(path, headers=BROWSER)
        assert response.status == 404
        assert response.headers["content-type"] == "application/problem+json"
    posted = anonymous.post("/nowhere", b"", headers=BROWSER)
    assert posted.headers["content-type"] == "application/problem+json"


def test_a_diff_page_names_both_and_has_the_worse_status(admin, anonymous):
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


def test_a_link_with_a_slash_at_its_end_leads_to_the_page(admin, anonymous):
    share = admin.post("/api/v1/shares", body=b"main 1\n").json()["id"]
    for path in (f"/p/{share}", f"/d/{share}..{share}"):
        moved = anonymous.get(path + "/", query={"v": "table"})
        assert moved.status == 308 and moved.headers["location"] == path + "?v=table"
    # What would be a line of its own in the response's head is no id.
    for path, status in (
        ("/p/a%0d%0aset-cookie:%20b/", 400),
        ("/p/a%20b/", 404),
        ("/p/a%3fb/", 404),
        ("/p//", 404),
    ):
        assert anonymous.get(path).status == status, path


def test_a_page_under_delete_asks_and_does_not_delete(admin, anonymous):
    made = share(admin)
    for method in ("GET", "HEAD"):
        assert anonymous.request(method, f"/p/{made['id']}/delete").status == 200
    assert anonymous.get(f"/p/{made['id']}/raw").status == 200


def guess(client, path="/p/" + "1" * 22):
    """Asks for what does not exist until that is refused."""
    for _ in range(260):
        response = client.get(path)
        if response.status == 429:
            break
        assert response.status == 404
    assert response.status == 429
    return response


def test_guessing_links_is_slowed_down(start_server):
    server = start_server()
    guesser = server.anonymous()
    response = guess(guesser)
    assert int(response.headers["retry-after"]) >= 1
    assert response.headers["content-type"] == "application/problem+json"
    assert guesser.get("/healthz").status == 200, "what is no guess still works"


def test_whoever_is_known_is_not_locked_out_by_guesses(start_server):
    server = start_server()
    admin, guesser = server.api(), server.anonymous()
    known = [admin, Tenant(server).user("viewer")]
    path = f"/api/v1/shares/{share(admin)['id']}"
    guess(guesser)
    for client in known:
        guess(guesser)
        assert client.get(path).status == 200, "neither refused for others behind the address"
        for _ in range(230):
            assert client.get("/p/" + "1" * 22).status == 404, "nor counted"
    # A token or session that is none helps nobody through. The first waits are short: some tries.
    for stranger in (
        server.api("pf_" + "A" * 43),
        server.api("nonsense"),
        Api(server, cookies={"__Host-perfolio_session": "A" * 43}),
    ):
        assert any(guess(guesser) and stranger.get(path).status == 429 for _ in range(5))


def test_what_a_share_lacks_is_no_guess(start_server):
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
    assert response.status == 429, "one share that exists hides no guesses at another"
