"""Pictures show the view that a page's address describes, and report the rules that they omit.

The tests compute the expected values from the lines of the profile, never from the server."""

import html
import random
import re
import urllib.parse

import pytest

from test_pages import meta

STACKS = {
    ("main", "serve", "parse", "alloc"): 10,
    ("main", "serve", "parse"): 5,
    ("main", "serve", "render", "alloc"): 30,
    ("main", "idle"): 40,
    ("gc", "alloc"): 15,
}
TOTAL = sum(STACKS.values())
BASES = (0x811C9DC5, 0x9747B28C)
MASK = 0xFFFFFFFF


def name_hash(name, base):
    for byte in name.encode():
        base = (base ^ byte) * 0x01000193 & MASK
    return base


def mix(parent, name):
    value = parent ^ (((name << 5 | name >> 27) & MASK) + 0x9E3779B9 & MASK)
    value = (value ^ value >> 16) * 0x85EBCA6B & MASK
    value = (value ^ value >> 13) * 0xC2B2AE35 & MASK
    return value ^ value >> 16


def path_hash(*names):
    """The path hash of web/src/model/tree/path.ts."""
    halves = [0, 0]
    for name in names:
        halves = [mix(half, name_hash(name, base)) for half, base in zip(halves, BASES)]
    return "".join(f"{half:08x}" for half in halves)


def tree(stacks):
    """{path: cum}"""
    nodes = {}
    for stack, value in stacks.items():
        for depth in range(1, len(stack) + 1):
            nodes[stack[:depth]] = nodes.get(stack[:depth], 0) + value
    return nodes


def titles(nodes):
    """The sorted tooltips of all boxes."""
    return sorted(
        f"{path[-1]} ({value}, {100 * value / TOTAL:.2f} %)" for path, value in nodes.items()
    )


@pytest.fixture(scope="module")
def share_id(server):
    body = "".join(f"{';'.join(stack)} {value}\n" for stack, value in STACKS.items())
    response = server.anonymous().post("/api/v1/shares", body, query={"title": "pictures"})
    assert response.status == 201, response
    return response.json()["id"]


def svg(api, share_id, **query):
    """The tooltips of the boxes, the heading and the line at the foot of the share's picture."""
    response = api.get(f"/p/{share_id}.svg", query=query)
    assert response.status == 200, response
    found = [html.unescape(title) for title in re.findall("<title>([^<]*)</title>", response.text)]
    boxes = sorted(title for title in found if not title.startswith("all ("))
    texts = [html.unescape(text) for text in re.findall("<text[^>]*>([^<]*)</text>", response.text)]
    return boxes, texts[1], texts[-1]


def test_the_path_hash_equals_that_of_the_page():
    """Links contain such hashes; web/test/model/tree/flame.test.ts checks the same value."""
    assert path_hash("a", "b", "a") == "58cdc962eccc1057"


def test_a_picture_without_parameters_shows_all_frames(anonymous, share_id):
    boxes, _, foot = svg(anonymous, share_id)
    assert boxes == titles(tree(STACKS))
    assert "not applied" not in foot


@pytest.mark.parametrize(
    "path",
    [
        ("main",),
        ("main", "serve", "parse"),
        ("gc",),
        ("gc", "alloc"),
        ("main", "serve", "render", "alloc"),
    ],
)
def test_a_zoom_shows_the_ancestors_and_the_subtree(anonymous, share_id, path):
    boxes, heading, foot = svg(anonymous, share_id, sv=2, z=path_hash(*path))
    nodes = tree(STACKS)
    wanted = {p: v for p, v in nodes.items() if p == path[: len(p)] or p[: len(path)] == path}
    assert boxes == titles(wanted)
    value = nodes[path]
    assert f"zoomed into {path[-1]}: {value} ({100 * value / TOTAL:.1f} %)" in heading
    assert foot.startswith(f"{len(wanted)} frames, ")


def test_a_zoomed_box_is_as_wide_as_the_picture(anonymous, share_id):
    text = anonymous.get(
        f"/p/{share_id}.svg", query={"z": path_hash("main", "serve", "parse")}
    ).text
    widths = dict(re.findall(r"<title>(\w+) [^<]*</title><rect[^>]* width=\"([\d.]+)\"", text))
    assert widths["all"] == widths["main"] == widths["serve"] == widths["parse"]
    assert float(widths["alloc"]) == pytest.approx(float(widths["parse"]) * 10 / 15, abs=1)


def kept(rule):
    return {stack: value for stack, value in STACKS.items() if rule(stack)}


def without(names):
    left = {}
    for stack, value in STACKS.items():
        rest = tuple(name for name in stack if name not in names)
        if rest:
            left[rest] = left.get(rest, 0) + value
    return left


@pytest.mark.parametrize(
    "chain,wanted",
    [
        ("focus:parse", kept(lambda s: "parse" in s)),
        ("focus:parse~focus:alloc", kept(lambda s: "parse" in s and "alloc" in s)),
        ("ignore:^(idle|gc)$", kept(lambda s: "idle" not in s and "gc" not in s)),
        ("hide:serve", without({"serve"})),
        ("hide:serve~hide:parse", without({"serve", "parse"})),
        ("show:alloc|gc", {("alloc",): 40, ("gc", "alloc"): 15}),
        ("focus:parse~ignore:alloc", {("main", "serve", "parse"): 5}),
        ("!focus:parse", STACKS),
        ("~~", STACKS),
        ("x", STACKS),
        ("focus:", STACKS),
        ("No:a", STACKS),
        (":", STACKS),
        ("only:", STACKS),
    ],
)
def test_a_picture_applies_the_rules(anonymous, share_id, chain, wanted):
    boxes, _, foot = svg(anonymous, share_id, sv=2, x=chain)
    assert boxes == titles(tree(wanted))
    assert "not applied" not in foot


@pytest.mark.parametrize(
    "chain,count,wanted",
    [
        ("later:x", 1, STACKS),
        ("label:a=b", 1, STACKS),
        ("focus:(?=x)", 1, STACKS),
        ("focus:[", 1, STACKS),
        ("only:none~focus:gc~merge:(", 2, kept(lambda s: "gc" in s)),
        ("hide:serve~later:a~focus:serve", 1, {}),
    ],
)
def test_a_picture_reports_rules_that_it_does_not_apply(anonymous, share_id, chain, count, wanted):
    boxes, _, foot = svg(anonymous, share_id, sv=2, x=chain)
    assert boxes == titles(tree(wanted))
    assert foot.startswith(f"{count} rule{'s' if count > 1 else ''} not applied; ")


CALLS = {
    ("main", "walk", "walk", "read", "walk", "runtime.mallocgc"): 7,
    ("main", "walk", "read"): 20,
    ("main",): 3,
    ("main", "a", "b", "a", "c", "b"): 11,
    ("a", "main", "a", "b"): 5,
    ("runtime.mstart", "runtime.mallocgc"): 13,
    ("main", "walk", "b", "read", "b"): 17,
    ("runtime.main", "main", "c"): 24,
}
GO = r"^(runtime|sync|syscall)\."


def after(stacks, chain):
    """Applies the rules to the stacks one after the other, in the simplest way."""
    for action, text in chain:
        found = lambda name: re.search(GO if action == "only" else text, name) is not None
        left = {}
        for stack, value in stacks.items():
            at = next((i for i, name in enumerate(stack) if found(name)), None)
            if action in ("focus", "ignore"):
                rest = stack if (at is not None) == (action == "focus") else ()
            elif action == "merge":
                rest = stack if at is None else stack[: at + 1]
            elif action == "recursion":
                rest = ()
                for name in stack:
                    rest = (
                        rest[: rest.index(name) + 1]
                        if found(name) and name in rest
                        else rest + (name,)
                    )
            else:
                rest = tuple(name for name in stack if found(name) == (action == "show"))
            if rest:
                left[rest] = left.get(rest, 0) + value
        stacks = left
    return stacks


@pytest.fixture(scope="module")
def recursive(server):
    body = "".join(f"{';'.join(stack)} {value}\n" for stack, value in CALLS.items())
    response = server.anonymous().post("/api/v1/shares", body)
    assert response.status == 201, response
    return response.json()["id"]


def random_chain(rng):
    texts = ["walk", "^a$", "b|c", "read", "runtime", "main", "^(walk|b)$", "malloc"]
    actions = ["focus", "ignore", "hide", "show", "merge", "recursion", "only"]
    chain = []
    for _ in range(rng.randrange(1, 6)):
        action = rng.choice(actions)
        text = (
            "go"
            if action == "only"
            else rng.choice(texts + ([""] if action == "recursion" else []))
        )
        chain.append((action, text))
    return chain


def json_nodes(response):
    """{path: value} of a JSON tree."""
    nodes, todo = {}, [((), response.json()["root"])]
    while todo:
        path, node = todo.pop()
        for child in node.get("children", []):
            nodes[path + (child["name"],)] = child["value"]
            todo.append((path + (child["name"],), child))
    return nodes


def test_files_show_the_stacks_that_a_random_chain_leaves(anonymous, recursive):
    rng = random.Random(7)
    for _ in range(150):
        chain = random_chain(rng)
        left = after(CALLS, chain)
        query = {"sv": 2, "x": "~".join(f"{action}:{text}" for action, text in chain)}
        response = anonymous.get(f"/p/{recursive}.json", query=query)
        assert json_nodes(response) == tree(left), query
        assert "perfolio-warning" not in response.headers
        folded = anonymous.get(f"/p/{recursive}.folded", query=query).text.split("\n")[:-1]
        assert sorted(folded) == sorted(
            f"{';'.join(stack)} {value}" for stack, value in left.items()
        ), query


def test_a_picture_of_a_chain_has_its_boxes_and_its_total(anonymous, share_id):
    boxes, heading, foot = svg(anonymous, share_id, sv=2, x="hide:serve~focus:^parse$~merge:parse")
    assert boxes == titles(tree({("main", "parse"): 15}))
    assert "shown: 15 (15.0 %)" in " ".join((heading, foot)) and "not applied" not in foot
    hidden, collapsed = (
        anonymous.get(f"/p/{share_id}.svg", query={"sv": 2, "x": x})
        for x in ("hide:serve", "hide:serve~recursion:")
    )
    assert hidden.headers["etag"] != collapsed.headers["etag"]


def test_a_comparison_applies_the_whole_chain(anonymous, share_id):
    other = anonymous.post("/api/v1/shares", "main;serve;parse 200\nmain;idle;parse 3\n").json()[
        "id"
    ]
    response = anonymous.get(
        f"/d/{share_id}..{other}.json", query={"sv": 2, "x": "hide:serve~focus:parse~merge:parse"}
    )
    assert json_nodes(response) == {
        ("main",): 203,
        ("main", "parse"): 200,
        ("main", "idle"): 3,
        ("main", "idle", "parse"): 3,
    }


def test_a_tilde_in_a_rule_is_doubled(anonymous):
    response = anonymous.post("/api/v1/shares", "main;~Thing 3\nmain;Thing 4\n")
    boxes, _, _ = svg(anonymous, response.json()["id"], sv=2, x="focus:^~~Thing~hide:main")
    assert boxes == ["~Thing (3, 42.86 %)"]


def test_rules_match_the_shown_frames(anonymous, share_id):
    """As on the page: with g=binary a rule is compared with binaries first, and with functions only
    if it matches no binary."""
    boxes, _, foot = svg(anonymous, share_id, sv=2, g="binary", x="focus:parse")
    assert boxes == ["<unknown> (15, 15.00 %)"] and "not applied" not in foot
    boxes, _, _ = svg(anonymous, share_id, sv=2, g="binary", x="focus:nobody")
    assert boxes == []
    whole, _, _ = svg(anonymous, share_id, sv=2, g="binary")
    boxes, _, foot = svg(anonymous, share_id, sv=2, g="binary", x="focus:unknown~hide:gc")
    assert boxes == whole and "not applied" not in foot


def test_a_zoom_into_a_missing_frame_shows_all_frames_and_a_note(anonymous, share_id):
    boxes, _, foot = svg(anonymous, share_id, sv=2, z="0123456789abcdef")
    assert boxes == titles(tree(STACKS))
    assert foot.startswith("the zoomed frame is not in this profile; ")
    _, _, foot = svg(anonymous, share_id, sv=2, z=path_hash("main"), x="focus:gc~later:x")
    assert foot.startswith("1 rule not applied; the zoomed frame is not in this profile; ")
    for malformed in ("", "xyz", "0" * 15, "0" * 17, "0" * 16):
        assert svg(anonymous, share_id, sv=2, z=malformed)[0] == titles(tree(STACKS))


def test_zoom_applies_after_the_rules(anonymous, share_id):
    boxes, _, _ = svg(anonymous, share_id, sv=2, z=path_hash("main", "parse"), x="hide:serve")
    assert boxes == titles({("main",): 85, ("main", "parse"): 15, ("main", "parse", "alloc"): 10})


def test_page_parameters_are_accepted_and_mistyped_ones_refused(anonymous, share_id):
    page = (
        "v=table&b=icicle&q=x&m=main&w=0.1-0.5&c=package&norm=1&p=filtered&s=-cum&g=function"
        "&st=samples"
    )
    # With sv, the address is that of a page: unknown parameters and values are ignored. Without it,
    # the request is one of the API: they are refused. A wrong st is refused even with sv.
    for ending in (".svg", ".png", "/og.png", ".json", ".folded", ".dot"):
        assert anonymous.get(f"/p/{share_id}{ending}?{page}&sv=2").status == 200
        assert anonymous.get(f"/p/{share_id}{ending}?{page}").status == 200
        assert anonymous.get(f"/p/{share_id}{ending}?sv=3&later=1").status == 200
        assert anonymous.get(f"/p/{share_id}{ending}?later=1").status == 400
        assert anonymous.get(f"/p/{share_id}{ending}?sv=2&st=none").status == 400
        assert anonymous.get(f"/p/{share_id}{ending}?sv=2&names=none").status == 200
        assert anonymous.get(f"/p/{share_id}{ending}?sv=3&names=later").status == 200
        assert anonymous.get(f"/p/{share_id}{ending}?names=later").status == 400


def test_every_file_of_a_share_shows_the_view_of_the_address(anonymous, share_id):
    query = {"sv": 2, "x": "focus:serve~hide:main", "z": path_hash("serve", "parse")}
    response = anonymous.get(f"/p/{share_id}.json", query=query)
    assert json_nodes(response) == {
        ("serve",): 45,
        ("serve", "parse"): 15,
        ("serve", "parse", "alloc"): 10,
    }
    assert "perfolio-warning" not in response.headers
    folded = anonymous.get(f"/p/{share_id}.folded", query=query)
    assert sorted(folded.text.split("\n")[:-1]) == [
        "serve;parse 5",
        "serve;parse;alloc 10",
        "serve;render;alloc 30",
    ]
    assert folded.headers["perfolio-warning"] == "z does not apply to this format"
    for ending in (".json", ".svg", ".png", ".folded", ".dot"):
        warned = anonymous.get(
            f"/p/{share_id}{ending}", query={"sv": 2, "x": "later:serve~only:none~hide:main"}
        )
        assert warned.headers["perfolio-warning"] == "2 rules of x not applied", ending


def test_files_of_a_comparison_accept_page_parameters(anonymous, share_id):
    other = anonymous.post("/api/v1/shares", "main;serve 200\n").json()["id"]
    for ending in (".json", ".svg", ".png"):
        for query, status in (
            ("sv=2&norm=1&st=samples&w=0.1-0.2&v=table", 200),
            ("mode=normalised", 200),
            ("mode=odd", 400),
            ("later=1", 400),
        ):
            assert anonymous.get(f"/d/{share_id}..{other}{ending}?{query}").status == status, (
                ending,
                query,
            )
    tree_of = lambda query: anonymous.get(f"/d/{share_id}..{other}.json?{query}").json()
    assert tree_of("sv=2&norm=1")["normalised"] and tree_of("mode=normalised")["normalised"]
    assert not tree_of("sv=2&norm=1&mode=absolute")["normalised"]
    assert tree_of("sv=2&norm=1")["total"] == TOTAL and tree_of("sv=2")["total"] == 200


def test_api_parameters_override_page_parameters(anonymous, share_id):
    boxes, _, _ = svg(
        anonymous, share_id, sv=2, x="focus:serve", hide="main", st="none", sample_type="samples"
    )
    left = {
        tuple(n for n in stack if n != "main"): v
        for stack, v in kept(lambda s: "serve" in s).items()
    }
    assert boxes == titles(tree(left))


def test_a_picture_applies_any_number_of_rules(anonymous, share_id):
    chain = "~".join(f"hide:none{n}" for n in range(40)) + "~hide:serve"
    boxes, _, foot = svg(anonymous, share_id, sv=2, x=chain)
    assert boxes == titles(tree(without({"serve"}))) and "not applied" not in foot


def test_the_preview_of_a_page_shows_the_view_of_its_address(server, anonymous, share_id):
    state = {
        "sv": "2",
        "v": "table",
        "st": "samples",
        "x": "focus:parse~hide:a&b",
        "z": path_hash("main"),
        "utm": "x",
    }
    response = anonymous.get(f"/p/{share_id}", query=state)
    image = meta(response, "og:image")
    start, _, query = image.partition("?")
    assert start == f"{server.url}/p/{share_id}/og.png"
    assert dict(urllib.parse.parse_qsl(query)) == {name: state[name] for name in ("st", "x", "z")}
    url, _, query = meta(response, "og:url").partition("?")
    assert url == f"{server.url}/p/{share_id}" and dict(urllib.parse.parse_qsl(query)) == state
    shown = anonymous.get(image.removeprefix(server.url))
    assert shown.status == 200 and shown.body[:8] == b"\x89PNG\r\n\x1a\n"
    assert shown.body != anonymous.get(f"/p/{share_id}/og.png").body
    assert shown.headers["etag"] != anonymous.get(f"/p/{share_id}/og.png").headers["etag"]


def test_a_hostile_address_is_escaped(anonymous, share_id):
    response = anonymous.get(
        f"/p/{share_id}?x=%22%3E%3Cscript%3Ealert(1)%3C/script%3E&st=%00%0d%0a&z=%27"
    )
    assert response.status == 200
    assert "<script>alert" not in response.text and "\r\n" not in meta(response, "og:image")
    assert anonymous.get(f"/p/{share_id}?x=" + "~" * 20000).status in (200, 400, 414)


def test_previews_of_restricted_shares_are_denied(admin, anonymous):
    team = admin.post("/api/v1/shares", "main 1\n", query={"visibility": "team"}).json()["id"]
    secret = admin.post(
        "/api/v1/shares",
        "main 1\n",
        query={"visibility": "password"},
        headers={"X-Perfolio-Password": "sesame open"},
    ).json()["id"]
    for share_id in (team, secret):
        for ending in (".svg", ".png", "/og.png", "/badge.svg"):
            assert anonymous.get(f"/p/{share_id}{ending}?").status == 401
            assert admin.get(f"/p/{share_id}{ending}").status == 200
            assert "private" in admin.get(f"/p/{share_id}{ending}").headers["cache-control"]
        page = anonymous.get(f"/p/{share_id}?sv=2&st=samples")
        assert "og.png" not in page.text and "oembed" not in page.text


def places(api, share_id, **query):
    """{name: (left, top, width)} of the boxes of an SVG."""
    text = api.get(f"/p/{share_id}.svg", query=query).text
    found = re.findall(
        r'<title>(\S+) [^<]*</title><rect x="([\d.]+)" y="(\d+)" width="([\d.]+)"', text
    )
    return {name: (float(left), int(top), float(width)) for name, left, top, width in found}


def test_a_picture_has_the_direction_and_the_window_of_the_view(anonymous):
    share_id = anonymous.post("/api/v1/shares", "main;first 70\nmain;second 30\n").json()["id"]
    hanging = places(anonymous, share_id)
    assert hanging["all"][1] < hanging["main"][1] < hanging["first"][1]
    for query in ({"v": "flame"}, {"v": "table", "b": "flame"}, {"v": "flame", "b": "icicle"}):
        standing = places(anonymous, share_id, sv=2, **query)
        assert standing["all"][1] > standing["main"][1] > standing["first"][1], query
        assert {name: place[::2] for name, place in standing.items()} == {
            name: place[::2] for name, place in hanging.items()
        }
    assert places(anonymous, share_id, sv=2, v="icicle", b="flame") == hanging
    left, _, width = hanging["all"]
    seen = places(anonymous, share_id, sv=2, w="0.7-1")
    assert (
        "first" not in seen
        and seen["second"][0] == left
        and seen["second"][2] == width == seen["main"][2]
    )
    seen = places(anonymous, share_id, sv=2, w="0.6-0.8")
    assert abs(seen["first"][2] - width / 2) < 1 and abs(seen["second"][0] - left - width / 2) < 1
    for broken in ("0.8-0.2", "0-2", "x-1", "0.1", "-", "0.1-0.2-0.3", "1e-3-1", "0.-1"):
        assert places(anonymous, share_id, sv=2, w=broken) == hanging, broken
    pictures = {
        anonymous.get(f"/p/{share_id}/og.png", query={"sv": "2", **query}).body
        for query in ({}, {"v": "flame"}, {"w": "0.6-0.8"}, {"v": "table"})
    }
    assert len(pictures) == 3  # v=table has the picture of the icicle
    image = meta(anonymous.get(f"/p/{share_id}?sv=2&v=flame&w=0.6-0.8"), "og:image")
    assert "v=flame" in image and "w=0.6-0.8" in image


def test_a_preview_without_a_title_has_the_file_name(server, anonymous):
    share_id = anonymous.post(
        "/api/v1/shares", "main 1\n", query={"filename": "cpu.folded"}
    ).json()["id"]
    assert meta(anonymous.get(f"/p/{share_id}"), "og:title").startswith("cpu.folded")
    assert (
        anonymous.get("/oembed", query={"url": f"{server.url}/p/{share_id}"}).json()["title"]
        == "cpu.folded"
    )
