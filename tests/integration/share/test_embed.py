"""Embedding in pages of other sites, oEmbed and badges: they work only for shares that everybody
with the link may see."""

import html
import re
import struct
import urllib.parse
import urllib.robotparser
import xml.etree.ElementTree as ElementTree

import pytest

from sample_profiles import pprof
from test_pages import meta

SVG = "{http://www.w3.org/2000/svg}"
STATE = "sv=2&st=samples&x=focus%3Awork"


def share(api, body="main;work 12\nmain;idle 5\n", headers=None, **query):
    response = api.post("/api/v1/shares", body, query=query, headers=headers)
    assert response.status == 201, response
    return response.json()["id"]


@pytest.fixture(scope="module")
def made(server):
    return share(server.api(), title='a <b>"title"</b> & more')


def oembed(api, url, **query):
    return api.get("/oembed", query={"url": url, **query})


def frame_ancestors(response):
    return re.search(r"frame-ancestors ([^;]*)", response.headers["content-security-policy"])[1]


def test_only_the_embed_page_may_be_framed(anonymous, made):
    framed, page = anonymous.get(f"/embed/{made}?{STATE}"), anonymous.get(f"/p/{made}?{STATE}")
    assert framed.status == 200 and '<div id="app">' in framed.text
    assert frame_ancestors(framed) == "*" and frame_ancestors(page) == "'none'"
    assert (
        framed.headers["content-security-policy"].replace("*", "'none'")
        == page.headers["content-security-policy"]
    )
    assert meta(framed, "robots") == "noindex" and "x-frame-options" not in framed.headers
    for path in ("/", "/login", "/settings", f"/p/{made}/delete", "/embed", f"/embed/{made}/x"):
        assert (
            frame_ancestors(anonymous.get(path, headers={"Accept": "text/html"})) == "'none'"
        ), path


def test_robots_may_fetch_previews_of_unlisted_shares(server, admin, anonymous, made):
    robots = urllib.robotparser.RobotFileParser()
    robots.parse(anonymous.get("/robots.txt").text.splitlines())
    pair = f"/d/{made}..{made}"
    page = anonymous.get(pair)
    picture = urllib.parse.urlsplit(meta(page, "og:image")).path
    for path in pair, picture, f"/p/{made}", f"/p/{made}/og.png":
        assert robots.can_fetch("a bot", server.url + path), path
        assert anonymous.get(path).headers["x-robots-tag"] == "noindex", path  # it is unlisted
    for path in "/api/v1/shares", f"/embed/{made}":
        assert not robots.can_fetch("a bot", server.url + path), path


def test_a_comparison_has_an_embed_page_and_a_preview_of_its_view(server, admin, anonymous, made):
    other = share(admin, body="main;work 30\nmain;idle 5\n", title="after")
    pair, state = f"{made}..{other}", "sv=2&norm=1&q=work"
    page = anonymous.get(f"/d/{pair}?{state}&v=table")
    assert meta(page, "og:url") == f"{server.url}/d/{pair}?{state}&v=table"
    picture = meta(page, "og:image")
    assert picture.startswith(f"{server.url}/d/{pair}/og.png?") and "v=" not in picture
    found = oembed(anonymous, f"{server.url}/embed/{pair}?{state}").json()
    assert found["title"] == 'a <b>"title"</b> & more → after'
    assert f'src="{server.url}/embed/{pair}?{html.escape(state)}"' in found["html"]
    assert found["thumbnail_url"] == f"{server.url}/d/{pair}/og.png?{state}"
    assert oembed(anonymous, f"{server.url}/d/{pair}?{state}").json() == found
    assert frame_ancestors(anonymous.get(f"/embed/{pair}?{state}")) == "*"
    pictures = {
        path: anonymous.get(path)
        for path in (
            f"/d/{pair}/og.png",
            f"/d/{pair}.png?q=work",
            f"/d/{pair}.png?norm=1",
            f"/d/{made}..{made}.png",
        )
    }
    assert all(response.body[:4] == b"\x89PNG" for response in pictures.values())
    assert len({response.body for response in pictures.values()}) == 4
    drawn = ElementTree.fromstring(anonymous.get(f"/d/{pair}.svg").text)
    titles = [title.text for title in drawn.iter(SVG + "title")]
    assert "work (12, 70.59 % → 30, 85.71 %)" in titles and titles[0].startswith(
        "all (17, 100.00 % → 35"
    )
    tree = anonymous.get(f"/d/{pair}.json?mode=normalised&focus=work")
    body = tree.json()
    assert (
        body["normalised"]
        and body["root"]
        == anonymous.get(
            f"/api/v1/diff?a={made}&b={other}&mode=normalised&focus=work",
            headers={"Accept": "application/json"},
        ).json()["root"]
    )
    assert anonymous.get(f"/d/{pair}.json?mode=odd").status == 400
    assert anonymous.get(f"/d/{pair}.json?norm=1&focus=work").json()["root"] == body["root"]
    assert (
        anonymous.get(f"/d/{pair}.json", headers={"Origin": "https://elsewhere"}).headers[
            "access-control-allow-origin"
        ]
        == "*"
    )
    team = share(admin, visibility="team")
    for hidden in (f"{made}..{team}", f"{team}..{made}"):
        assert anonymous.get(f"/d/{hidden}.svg").status == 401
        assert meta(anonymous.get(f"/d/{hidden}"), "og:image") is None
        assert anonymous.get(f"/embed/{hidden}").status == 403
        assert oembed(anonymous, f"{server.url}/d/{hidden}").status == 401
        response = admin.get(f"/d/{hidden}.svg")
        assert response.status == 200 and response.headers["cache-control"].startswith("private")
        assert response.headers["x-robots-tag"] == "noindex"


def test_a_picture_highlights_the_same_frames_as_the_page(anonymous, made):
    def fills(query):
        root = ElementTree.fromstring(anonymous.get(f"/p/{made}.svg?sv=2&{query}").text)
        words = " ".join(text.text or "" for text in root.iter(SVG + "text"))
        return {
            group.find(SVG + "title").text.split()[0]: group.find(SVG + "rect").get("fill")
            for group in root.iter(SVG + "g")
            if group.find(SVG + "title") is not None
        }, words

    plain, _ = fills("")
    searched, words = fills("q=WORK|nothing")
    assert (
        searched["main"] == searched["idle"] == searched["work"] != plain["work"]
    ), "an upper-case search is case-sensitive"
    searched, words = fills("q=wo.k")
    assert (
        searched["work"] == plain["work"] and searched["main"] == searched["idle"] != plain["main"]
    )
    assert "search wo.k: 70.6 %" in words
    assert (
        fills("m=idle")[0]["idle"] == plain["idle"] and fills("m=idle")[0]["work"] != plain["work"]
    )
    assert fills("q=(")[0] == plain, "an invalid expression highlights nothing"


def test_a_picture_is_coloured_by_self_value_like_the_page(admin, anonymous):
    """The colour steps begin at 0 %, above 0 %, and at 0.1, 0.3, 1, 3 and 10 %: the self value of
    all frames with the name, as a share of all samples."""
    holds = {
        "none": 0,
        "tiny": 7,
        "little": 20,
        "some": 50,
        "more": 200,
        "much": 500,
        "most": 4000,
        "spread": 1,
    }
    lines = [f"none;{name} {value}" for name, value in holds.items() if value] + [
        f"none;most;at{i};spread 1000" for i in range(2)
    ]
    rest = 10000 - sum(int(line.rsplit(" ")[-1]) for line in lines)
    made = share(admin, body="\n".join([*lines, f"other;gone {rest}"]) + "\n")

    def fills(query):
        root = ElementTree.fromstring(anonymous.get(f"/p/{made}.svg?sv=2&{query}").text)
        return {
            group.find(SVG + "title").text.split()[0]: group.find(SVG + "rect").get("fill")
            for group in root.iter(SVG + "g")
            if group.find(SVG + "title") is not None
        }

    by_value = fills("c=value")
    steps = ["none", "little", "some", "more", "much", "most"]
    assert len({by_value[name] for name in steps}) == len(steps)
    assert (
        by_value["spread"] == by_value["most"] == by_value["gone"]
    ), "the step depends on the sum of all frames with the name"
    assert by_value["at0"] == by_value["none"] and "tiny" not in by_value
    filtered = fills("c=value&x=ignore:gone")
    assert (
        filtered["much"] == by_value["much"] and filtered["tiny"] not in by_value.values()
    ), "percentages relate to the unfiltered total"
    assert fills("c=runtime") == fills("") != by_value
    pictures = [
        anonymous.get(f"/p/{made}.png?sv=2&c={colour}").body for colour in ("value", "package")
    ]
    assert pictures[0] != pictures[1]
    assert "c=value" in meta(anonymous.get(f"/p/{made}?sv=2&c=value"), "og:image")


def test_restricted_shares_cannot_be_embedded(admin, anonymous):
    team = share(admin, visibility="team", title="our secret")
    secret = share(
        admin,
        visibility="password",
        title="our secret",
        headers={"X-Perfolio-Password": "sesame open"},
    )
    for client in (anonymous, admin):
        for one in (team, secret):
            response = client.get(f"/embed/{one}")
            assert (
                response.status == 403
                and "secret" not in response.text
                and "<script" not in response.text
            )
            assert response.headers["content-type"] == "text/html; charset=utf-8"
            assert frame_ancestors(response) == "'none'"
    response = anonymous.get("/embed/" + "0" * 22)
    assert response.status == 404 and frame_ancestors(response) == "'none'"
    gone = share(admin)
    assert admin.delete(f"/api/v1/shares/{gone}").status == 204
    response = anonymous.get(f"/embed/{gone}")
    assert response.status == 410 and frame_ancestors(response) == "'none'"


def test_a_page_links_to_its_oembed_response(server, anonymous, made):
    page = anonymous.get(f"/p/{made}?{STATE}")
    link = re.search(
        r'<link rel="alternate" type="application/json\+oembed" href="([^"]*)">', page.text
    )
    address = html.unescape(link[1])
    assert address.startswith(f"{server.url}/oembed?")
    parameters = dict(urllib.parse.parse_qsl(address.partition("?")[2]))
    assert parameters == {"format": "json", "url": f"{server.url}/p/{made}?{STATE}"}
    response = anonymous.get(address.removeprefix(server.url))
    assert response.status == 200, response
    frame = ElementTree.fromstring(response.json()["html"].replace(" allowfullscreen", ""))
    assert frame.tag == "iframe" and frame.get("src") == f"{server.url}/embed/{made}?{STATE}"
    assert anonymous.get(frame.get("src").removeprefix(server.url)).status == 200


def test_the_oembed_response_meets_the_specification(server, anonymous, made):
    response = oembed(anonymous, f"{server.url}/p/{made}")
    found = response.json()
    assert response.headers["content-type"] == "application/json"
    assert response.headers["access-control-allow-origin"] == "*"
    assert (
        found["version"] == "1.0"
        and found["type"] == "rich"
        and found["provider_name"] == "Perfolio"
    )
    assert found["title"] == 'a <b>"title"</b> & more'
    assert "<b>" not in found["html"] and "script" not in found["html"]
    assert f'width="{found["width"]}" height="{found["height"]}"' in found["html"]
    assert found["thumbnail_url"] == f"{server.url}/p/{made}/og.png"
    assert anonymous.get(f"/p/{made}/og.png").status == 200


@pytest.mark.parametrize(
    "width,height,wanted",
    [
        (None, None, (960, 600)),
        (400, None, (400, 600)),
        (None, 200, (960, 200)),
        (5000, 5000, (960, 600)),
        (1, 1, (1, 1)),
        (1200, 629, (960, 600)),
    ],
)
def test_oembed_sizes_stay_within_the_requested_size(
    server, anonymous, made, width, height, wanted
):
    query = {name: value for name, value in (("maxwidth", width), ("maxheight", height)) if value}
    found = oembed(anonymous, f"{server.url}/p/{made}", dnt="1", **query).json()
    assert (found["width"], found["height"]) == wanted
    fits_thumbnail = (width or 1200) >= 1200 and (height or 630) >= 630
    assert ("thumbnail_url" in found) == fits_thumbnail
    for bad in ({"maxwidth": 0}, {"maxheight": -1}, {"maxwidth": "x"}):
        assert oembed(anonymous, f"{server.url}/p/{made}", **bad).status == 400


def test_oembed_accepts_short_links_embed_urls_and_fragments(server, anonymous, made):
    short = anonymous.post("/api/v1/links", json={"path": f"/p/{made}?{STATE}"}).json()["url"]
    wanted = oembed(anonymous, f"{server.url}/p/{made}?{STATE}").json()
    for url in (short, f"{server.url}/embed/{made}?{STATE}", f"{server.url}/p/{made}?{STATE}#x"):
        assert oembed(anonymous, url).json() == wanted


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com/p/{0}",
        "{1}.example.com/p/{0}",
        "{1}@example.com/p/{0}",
        "{1}/",
        "{1}",
        "{1}/p/",
        "{1}/p/{0}/raw",
        "{1}/d/{0}..",
        "{1}/d/{0}",
        "{1}/p/" + "0" * 22,
        "{1}/s/0123456789",
        "{1}/s/",
        "/p/{0}",
        "//localhost/p/{0}",
        "javascript:x",
        "{1}/p/{0}?a b",
        "{1}/p/{0}?%0d%0a",
        '{1}/p/{0}"onload=',
        "{1}/embed/../p/{0}",
        "{1}/settings",
        "{1}//p/{0}",
    ],
)
def test_oembed_returns_404_for_other_urls(server, anonymous, made, url):
    response = oembed(anonymous, url.replace("{0}", made).replace("{1}", server.url))
    assert response.status == 404, response


def test_oembed_statuses_of_private_and_deleted_shares_and_of_formats(
    server, admin, anonymous, made
):
    team = share(admin, visibility="team")
    assert oembed(anonymous, f"{server.url}/p/{team}").status == 401
    assert oembed(admin, f"{server.url}/p/{team}").status == 401
    gone = share(admin)
    admin.delete(f"/api/v1/shares/{gone}")
    assert oembed(anonymous, f"{server.url}/p/{gone}").status == 404
    response = oembed(anonymous, f"{server.url}/p/{made}", format="xml")
    assert response.status == 501 and response.json()["status"] == 501
    assert oembed(anonymous, f"{server.url}/p/{made}", format="").status == 501
    assert anonymous.get("/oembed").status == 400


@pytest.mark.parametrize(
    "body,wanted",
    [
        ("main 1234567\n", "1.23 M samples"),
        ("main 17\n", "17 samples"),
    ],
)
def test_a_badge_shows_the_total_as_accessible_text(anonymous, body, wanted):
    response = anonymous.get(f"/p/{share(anonymous, body)}/badge.svg")
    assert response.status == 200 and response.headers["content-type"] == "image/svg+xml"
    root = ElementTree.fromstring(response.text)
    assert root.get("role") == "img" and root.get("aria-label") == f"profile: {wanted}"
    assert root.find(SVG + "title").text == f"profile: {wanted}"
    assert [text.text for text in root.iter(SVG + "text")] == ["profile", wanted]
    assert "script" not in response.text and "http" not in response.text.replace(
        "http://www.w3.org/2000/svg", ""
    )


def advance_widths(text, size):
    """The width of an ASCII text, computed from the tables of the font (cmap format 4, hmtx)."""
    with open("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf", "rb") as file:
        font = file.read()
    tables = {
        font[at : at + 4]: struct.unpack_from(">I", font, at + 8)[0]
        for at in range(12, 12 + 16 * struct.unpack_from(">H", font, 4)[0], 16)
    }
    units = struct.unpack_from(">H", font, tables[b"head"] + 18)[0]
    cmap = tables[b"cmap"]
    subtables = [
        struct.unpack_from(">HHI", font, cmap + 4 + 8 * i)
        for i in range(struct.unpack_from(">H", font, cmap + 2)[0])
    ]
    table = cmap + next(
        offset for platform, encoding, offset in subtables if (platform, encoding) == (3, 1)
    )
    count = struct.unpack_from(">H", font, table + 6)[0] // 2
    ends = struct.unpack_from(f">{count}H", font, table + 14)
    starts = struct.unpack_from(f">{count}H", font, table + 16 + 2 * count)
    deltas = struct.unpack_from(f">{count}h", font, table + 16 + 4 * count)
    ranges = struct.unpack_from(f">{count}H", font, table + 16 + 6 * count)
    width = 0
    for char in map(ord, text):
        segment = next(i for i in range(count) if char <= ends[i])
        glyph = char + deltas[segment]
        if ranges[segment]:
            place = (
                table
                + 16
                + 6 * count
                + 2 * segment
                + ranges[segment]
                + 2 * (char - starts[segment])
            )
            glyph = struct.unpack_from(">H", font, place)[0] + deltas[segment]
        width += struct.unpack_from(">H", font, tables[b"hmtx"] + 4 * (glyph & 0xFFFF))[0]
    return width * size / units


def test_texts_of_a_badge_have_the_width_of_the_font(anonymous):
    root = ElementTree.fromstring(anonymous.get(f"/p/{share(anonymous)}/badge.svg").text)
    texts = list(root.iter(SVG + "text"))
    ends = [float(text.get("x")) + float(text.get("textLength")) for text in texts]
    middle = float([rect for rect in root.iter(SVG + "rect") if rect.get("x")][0].get("x"))
    assert 4 < float(texts[0].get("x")) and ends[0] < middle - 4
    assert middle + 4 < float(texts[1].get("x")) and ends[1] < float(root.get("width")) - 4
    for text in texts:
        assert float(text.get("textLength")) == pytest.approx(
            advance_widths(text.text, 11), abs=0.1
        )


def test_a_badge_is_revalidated_by_its_etag(anonymous):
    path = f"/p/{share(anonymous)}/badge.svg"
    response = anonymous.get(path)
    assert response.headers["cache-control"] == "public, no-cache"
    again = anonymous.get(path, headers={"If-None-Match": response.headers["etag"]})
    assert again.status == 304 and again.body == b""
    assert anonymous.get(path + "?typo=1").status == 400
    assert anonymous.get(path + "?st=wall").status == 400
    assert anonymous.get("/p/" + "0" * 22 + "/badge.svg").status == 404


def test_a_badge_accepts_the_parameters_of_its_page(anonymous):
    made = share(anonymous)
    path = f"/p/{made}/badge.svg"
    plain = anonymous.get(path)
    for query in (
        "v=table",
        "b=icicle",
        "z=0123456789abcdef",
        "m=main",
        "c=value",
        "w=0.2-0.5",
        "q=%28",
        "x=focus%3Amain",
        "g=line",
        "names=full",
        "v=table&w=0.2-0.5&sv=2",
        "of_a_later_version=1&sv=99",
    ):
        response = anonymous.get(f"{path}?{query}")
        assert (response.status, response.text) == (200, plain.text), query
        assert anonymous.get(f"/p/{made}.folded?{query}").status == 200, query
    for ending in (
        "badge.svg",
        "og.png",
    ):  # a profile without labels cannot be grouped by one: the server reports that and no total
        assert anonymous.get(f"/p/{made}/{ending}?lb=a%3Db").status == 400
    for query in ("typo=1", "st=wall", "st=wall&sv=2", "sample_type=0&sample_type=0"):
        assert anonymous.get(f"{path}?{query}").status == 400, query


@pytest.mark.parametrize(
    "query,wanted",
    [
        ({"x": "focus:parse"}, "15 samples (15.0 %)"),
        ({"x": "hide:serve~focus:parse~merge:parse"}, "15 samples (15.0 %)"),
        ({"x": "only:go"}, "85 samples (85.0 %)"),
        ({"x": "merge:serve"}, "100 samples"),
        ({"focus": "parse"}, None),
        ({"q": "alloc"}, "100 samples · search alloc: 55.0 %"),
        ({"q": "nothing"}, "100 samples · search nothing: 0 %"),
        (
            {"x": "hide:serve~focus:parse", "q": "ALLOC|alloc"},
            "15 samples (15.0 %) · search ALLOC|alloc: 10.0 %",
        ),
        ({"x": "!focus:parse"}, "100 samples"),
        ({"x": "later:parse"}, "100 samples"),
    ],
)
def test_a_badge_shows_the_total_of_its_view(anonymous, query, wanted):
    made = share(
        anonymous,
        "main;serve;parse;alloc 10\nmain;serve;parse 5\nmain;serve;render;alloc 30\nmain;idle 40\n"
        "runtime.gc;runtime.alloc 15\n",
    )
    response = anonymous.get(f"/p/{made}/badge.svg", query=query | ({"sv": 2} if wanted else {}))
    if wanted is None:  # a parameter of the API, not of a page
        assert response.status == 400
        return
    root = ElementTree.fromstring(response.text)
    assert (
        root.get("aria-label") == f"profile: {wanted}"
        and response.headers["content-type"] == "image/svg+xml"
    )
    assert [text.text for text in root.iter(SVG + "text")] == ["profile", wanted]
    again = anonymous.get(
        f"/p/{made}/badge.svg",
        query=query | {"sv": 2},
        headers={"If-None-Match": response.headers["etag"]},
    )
    assert again.status == 304


def test_a_badge_of_cpu_time_is_in_seconds(anonymous):
    made = share(anonymous, pprof())
    shown = anonymous.get(f"/api/v1/shares/{made}").json()
    chosen = shown["default_sample_type_index"]
    assert shown["sample_types"][chosen] == {"type": "cpu", "unit": "nanoseconds"}
    total = re.search('aria-label="profile: ([^"]*)"', anonymous.get(f"/p/{made}/badge.svg").text)[
        1
    ]
    number, unit, name = total.split(" ")
    scale = {"ms": 1e6, "s": 1e9, "min": 60e9}[unit]
    assert name == "CPU" and float(number) * scale == pytest.approx(
        shown["totals"][chosen], rel=0.005
    )
    counted = anonymous.get(f"/p/{made}/badge.svg?st=samples&sv=2")
    assert re.search(r'aria-label="profile: [\d,]+ samples"', counted.text), counted.text
    assert counted.text == anonymous.get(f"/p/{made}/badge.svg?sample_type=0").text
    assert counted.headers["etag"] != anonymous.get(f"/p/{made}/badge.svg").headers["etag"]
