"""Reports of shares: numbers, all formats, and one decode for many viewers."""

import collections
import gzip
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import threading

import pytest
import yaml

import sample_profiles as samples
from conftest import ROOT
from test_shares import problem, share

sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import pprof_maker  # noqa: E402
import pprof_reader  # noqa: E402


def flat_and_cum(response):
    return {row["name"]: (row["flat"], row["cum"]) for row in response.json()["functions"]}


def tree_of(node):
    return {
        node["name"]: (
            node["value"],
            node["self"],
            [tree_of(child) for child in node.get("children", [])],
        )
    }


def read_flame(body):
    """Parses the binary format: the fields of its header, and its sections by number."""
    assert body[:8] == b"PFFLAME2"
    flags, nodes, frames, strings = struct.unpack_from("<4I", body, 8)
    total, base_total = struct.unpack_from("<2d", body, 24)
    (section_count,) = struct.unpack_from("<I", body, 40)
    sections = {}
    for i in range(section_count):
        number, _, offset, length = struct.unpack_from("<IIQQ", body, 64 + 24 * i)
        assert offset % 8 == 0 and offset + length <= len(body)
        sections[number] = body[offset : offset + length]
    return {
        "flags": flags,
        "nodes": nodes,
        "frames": frames,
        "strings": strings,
        "total": total,
        "base_total": base_total,
        "sections": sections,
        "metadata": json.loads(sections[12]),
    }


def numbers_of(flame, section):
    """A number for each node, in 16 or 32 bits."""
    data = flame["sections"][section]
    assert len(data) in (2 * flame["nodes"], 4 * flame["nodes"])
    return struct.unpack(
        f"<{flame['nodes']}{'H' if len(data) == 2 * flame['nodes'] else 'I'}", data
    )


def self_values_of(flame, gaps=3, values=4):
    """The self value of each node."""
    own, node = [0] * flame["nodes"], 0
    for gap, (value,) in zip(
        struct.iter_unpack("<I", flame["sections"][gaps]),
        struct.iter_unpack("<d", flame["sections"][values]),
        strict=True,
    ):
        node += gap[0]
        assert own[node] == 0 and value != 0
        own[node] = value
    return own


def names_of(flame):
    offsets = struct.unpack(f"<{flame['strings'] + 1}I", flame["sections"][10])
    text = flame["sections"][11]
    strings = [text[a:b].decode() for a, b in zip(offsets, offsets[1:])]
    frame_name = struct.unpack(f"<{flame['frames']}I", flame["sections"][5])
    return [strings[frame_name[frame]] for frame in numbers_of(flame, 1)]


def labelled_profile():
    """Forty functions under one root, run by three threads and by samples without a thread."""
    maker = pprof_maker.Maker([("cpu", "nanoseconds")])
    locations = [maker.location([(maker.function(f"f{i}", "a.c"), 1)]) for i in range(40)]
    for i in range(40):
        maker.sample(
            [locations[i], locations[0]],
            [1000 + i],
            [("thread", f"worker-{i % 4}")] if i % 4 else [],
        )
    return maker.bytes()


def test_a_table_by_a_label_starts_with_one_row_per_value(admin, tmp_path):
    sums = collections.Counter()
    for i in range(40):
        sums[f"worker-{i % 4}" if i % 4 else "(no thread)"] += 1000 + i
    made = share(admin, labelled_profile())
    response = admin.get(f"/api/v1/shares/{made['id']}/top", query={"group_by": "thread"}).json()
    assert [(row["name"], row["flat"], row["cum"]) for row in response["functions"][:4]] == [
        (name, 0, value) for name, value in sums.most_common()
    ]
    assert response["total"] == sum(sums.values())
    file = tmp_path / "labelled.pb"
    file.write_bytes(labelled_profile())
    table = subprocess.run(
        [
            ROOT / "build" / os.environ.get("BUILD", "release") / "perfolio",
            "top",
            file,
            "--group-by",
            "thread",
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert table[1].endswith("cum%  thread, function"), table
    assert [line.split("  ")[-1] for line in table[2:6]] == [name for name, _ in sums.most_common()]


@pytest.fixture(scope="module")
def made(server):
    client = server.api()
    a, b = share(client, samples.FOLDED, title="a"), share(client, samples.FOLDED_SLOWER)
    yield {"a": a["id"], "b": b["id"]}
    client.close()


def test_top_counts_flat_and_cum(admin, made):
    response = admin.get(f"/api/v1/shares/{made['a']}/top")
    assert flat_and_cum(response) == {
        "main": (0, 100),
        "parse": (10, 40),
        "read": (30, 30),
        "draw": (60, 60),
    }
    body = response.json()
    assert body["total"] == 100 and body["truncated"] is False and body["function_count"] == 4
    assert [row["name"] for row in body["functions"]][:2] == ["draw", "read"]


def test_top_reports_omitted_functions(admin, made):
    body = admin.get(f"/api/v1/shares/{made['a']}/top", query={"limit": 1}).json()
    assert len(body["functions"]) == 1 and body["truncated"] is True
    assert body["function_count"] == 4
    body = admin.get(f"/api/v1/shares/{made['a']}/top", query={"limit": 0}).json()
    assert len(body["functions"]) == 4 and body["truncated"] is False


def test_filters_have_the_meaning_of_pprof(admin, made):
    top = f"/api/v1/shares/{made['a']}/top"
    assert flat_and_cum(admin.get(top, query={"focus": "parse"})) == {
        "main": (0, 40),
        "parse": (10, 40),
        "read": (30, 30),
    }
    assert flat_and_cum(admin.get(top, query={"ignore": "parse"})) == {
        "main": (0, 60),
        "draw": (60, 60),
    }
    assert flat_and_cum(admin.get(top, query={"hide": "parse"})) == {
        "main": (10, 100),
        "read": (30, 30),
        "draw": (60, 60),
    }
    assert flat_and_cum(admin.get(top, query={"show": "^(main|draw)$"})) == {
        "main": (40, 100),
        "draw": (60, 60),
    }
    assert flat_and_cum(admin.get(top, query=[("focus", "main"), ("focus", "read")])) == {
        "main": (0, 30),
        "parse": (0, 30),
        "read": (30, 30),
    }


def test_callers_report_lists_callers_and_callees(admin, made):
    body = admin.get(f"/api/v1/shares/{made['a']}/callers", query={"fn": "parse"}).json()
    assert (body["function"], body["flat"], body["cum"], body["total"]) == ("parse", 10, 40, 100)
    assert [(row["name"], row["value"]) for row in body["callers"]] == [("main", 40)]
    assert [(row["name"], row["value"]) for row in body["callees"]] == [("read", 30)]


def test_the_flame_graph_is_equal_in_json_and_binary(admin, made):
    path = f"/api/v1/shares/{made['a']}/flame"
    tree = admin.get(path, headers={"Accept": "application/json"}).json()
    assert tree["total"] == 100
    assert tree_of(tree["root"]) == {
        "root": (
            100,
            0,
            [
                {
                    "main": (
                        100,
                        0,
                        [{"draw": (60, 60, [])}, {"parse": (40, 10, [{"read": (30, 30, [])}])}],
                    )
                }
            ],
        )
    }
    response = admin.get(path)
    assert response.headers["content-type"] == "application/vnd.perfolio.flame"
    flame = read_flame(response.body)
    assert flame["total"] == 100 and flame["flags"] == 0 and flame["nodes"] == 5
    assert names_of(flame) == ["root", "main", "draw", "parse", "read"]
    assert numbers_of(flame, 2) == (0, 1, 2, 2, 3)
    assert self_values_of(flame) == [0, 0, 60, 10, 30]
    assert flame["metadata"]["cut"] is None
    assert admin.get(f"/p/{made['a']}.json").json()["root"] == tree["root"]


def test_a_cut_flame_graph_is_marked_as_cut(admin):
    lines = "".join(f"main;f{i};g{i} {i + 1}\n" for i in range(500)).encode()
    made = share(admin, lines)
    flame = read_flame(admin.get(f"/api/v1/shares/{made['id']}/flame", query={"limit": 100}).body)
    assert flame["flags"] & 2 and flame["nodes"] <= 110
    assert flame["metadata"]["cut"]["nodes"] > 800
    assert sum(self_values_of(flame)) == 500 * 501 // 2
    whole = read_flame(admin.get(f"/api/v1/shares/{made['id']}/flame").body)
    assert not whole["flags"] & 2 and whole["nodes"] == 1002


def path_hash(*names):
    """The path hash that the page computes, written from its documentation."""

    def mix(parent, name):
        value = parent ^ (((name << 5 | name >> 27) + 0x9E3779B9) & 0xFFFFFFFF)
        value = (value ^ value >> 16) * 0x85EBCA6B & 0xFFFFFFFF
        value = (value ^ value >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
        return value ^ value >> 16

    halves = [0, 0]
    for name in names:
        for half, base in enumerate((0x811C9DC5, 0x9747B28C)):
            hashed = base
            for byte in name.encode():
                hashed = (hashed ^ byte) * 0x01000193 & 0xFFFFFFFF
            halves[half] = mix(halves[half], hashed)
    return f"{halves[0]:08x}{halves[1]:08x}"


def test_root_shows_the_omitted_subtree_of_a_node(admin):
    lines = "".join(
        f"main;{'heavy' if i % 2 else 'light'};f{i} {i + 1000 if i % 2 else 1}\n"
        for i in range(400)
    ).encode()
    made = share(admin, lines)
    path = f"/api/v1/shares/{made['id']}/flame"
    as_json = {"Accept": "application/json"}
    whole = tree_of(admin.get(path, headers=as_json).json()["root"])
    light = whole["root"][2][0]["main"][2][1]["light"]
    cut = tree_of(admin.get(path, query={"limit": 300}, headers=as_json).json()["root"])
    assert cut["root"][2][0]["main"][2][1] == {"light": (200, 0, [{"other": (200, 200, [])}])}
    query = {"limit": 300, "root": path_hash("main", "light")}
    opened = tree_of(admin.get(path, query=query, headers=as_json).json()["root"])
    main = opened["root"][2][0]["main"]
    assert main[:2] == whole["root"][2][0]["main"][:2]
    assert main[2][0] == {"other": (240000, 240000, [])}
    assert main[2][1] == {"light": light}
    for root in ("", "main", "0" * 15, "g" * 16, path_hash("main", "nobody")):
        response = admin.get(path, query={"root": root})
        assert response.status == 400 and "root" in response.json()["detail"], root


def test_a_flame_graph_is_compressed_if_the_client_accepts_it(admin):
    made = share(admin, samples.pprof_gzip(400))
    path = f"/api/v1/shares/{made['id']}/flame"
    plain = admin.get(path)
    assert "content-encoding" not in plain.headers
    packed = admin.get(path, headers={"Accept-Encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    packed = admin.get(path, headers={"Accept-Encoding": "gzip, zstd;q=0.9"})
    assert packed.headers["content-encoding"] in ("zstd", "gzip")
    if packed.headers["content-encoding"] == "zstd" and shutil.which("zstd"):
        unpacked = subprocess.run(
            ["zstd", "-q", "-dc"], input=packed.body, capture_output=True, check=True
        ).stdout
        assert unpacked == plain.body
    assert "accept-encoding" in " ".join(
        value.lower() for name, value in packed.fields if name.lower() == "vary"
    )


def test_a_diff_is_b_minus_a(admin, made):
    pair = {"a": made["a"], "b": made["b"]}
    body = admin.get("/api/v1/diff/top", query=pair).json()
    assert (body["total_a"], body["total_b"], body["mode"]) == (100, 200, "absolute")
    rows = {row["name"]: row for row in body["functions"]}
    assert rows["read"]["flat_delta"] == 60 and rows["wait"]["flat_delta"] == 40
    assert rows["draw"]["flat_delta"] == 0 and rows["main"]["cum_delta"] == 100
    body = admin.get("/api/v1/diff/top", query={**pair, "mode": "normalised"}).json()
    rows = {row["name"]: row for row in body["functions"]}
    assert (body["total_a"], body["total_b"], body["mode"]) == (100, 100, "normalised")
    assert rows["draw"]["flat_delta"] == -30 and rows["read"]["flat_delta"] == 15
    flame = read_flame(admin.get("/api/v1/diff", query=pair).body)
    assert flame["flags"] & 1 and (flame["base_total"], flame["total"]) == (100, 200)
    tree = admin.get("/api/v1/diff", query=pair, headers={"Accept": "application/json"}).json()
    assert tree["root"]["value"] == 200


def test_profiles_with_different_decimals_are_compared_and_merged(admin):
    ids = [
        share(admin, text)["id"]
        for text in (b"main;a 12\n", b"main;a 2.5\nmain;b 1.0\n", b"main;a 1.125\n")
    ]
    body = admin.get("/api/v1/diff/top", query={"a": ids[1], "b": ids[2]}).json()
    assert (body["total_a"], body["total_b"], body["unit"]) == (3500, 1125, "count/1000")
    body = admin.get("/api/v1/diff/top", query={"a": ids[2], "b": ids[0]}).json()
    assert (body["total_a"], body["total_b"], body["unit"]) == (1125, 12000, "count/1000")
    flame = read_flame(admin.get("/api/v1/diff", query={"a": ids[0], "b": ids[1]}).body)
    assert (flame["base_total"], flame["total"], flame["metadata"]["unit"]) == (120, 35, "count/10")
    merged = admin.post("/api/v1/merge", json={"shares": ids})
    assert merged.status == 201, merged
    folded = admin.get(f"/p/{merged.json()['id']}.folded")
    assert sorted(folded.body.splitlines()) == [b"main;a 15.625", b"main;b 1"]


def test_profiles_are_merged_into_a_new_share(admin, made):
    response = admin.post("/api/v1/merge?title=sum", json={"shares": [made["a"], made["b"]]})
    assert response.status == 201, response
    merged = response.json()["id"]
    shown = admin.get(f"/api/v1/shares/{merged}").json()
    assert shown["title"] == "sum" and shown["format"] == "pprof"
    assert flat_and_cum(admin.get(f"/api/v1/shares/{merged}/top")) == {
        "main": (0, 300),
        "parse": (20, 140),
        "read": (120, 120),
        "draw": (120, 120),
        "wait": (40, 40),
    }
    problem(admin.post("/api/v1/merge", json={"shares": []}), 400, "shares")
    problem(admin.post("/api/v1/merge", json={"shares": [made["a"]] * 65}), 400, "shares")
    problem(admin.post("/api/v1/merge", json={"shares": [made["a"], "x"]}), 404)
    cpu = share(admin, samples.pprof_gzip())["id"]
    problem(admin.post("/api/v1/merge", json={"shares": [made["a"], cpu]}), 400, "2")


def test_a_share_is_exported_in_every_format(admin, made):
    base = f"/p/{made['a']}"
    folded = admin.get(base + ".folded")
    assert sorted(folded.body.splitlines()) == sorted(samples.FOLDED.splitlines())
    assert folded.headers["content-type"].startswith("text/plain")
    packed = admin.get(base + ".pb.gz")
    assert f"{made['a']}.pb.gz" in packed.headers["content-disposition"]
    again = share(admin, packed.body)
    assert flat_and_cum(admin.get(f"/api/v1/shares/{again['id']}/top")) == flat_and_cum(
        admin.get(f"/api/v1/shares/{made['a']}/top")
    )
    svg = admin.get(base + ".svg")
    assert svg.headers["content-type"].startswith("image/svg+xml")
    assert b"<svg" in svg.body and b"parse" in svg.body and b"<script" not in svg.body
    assert "default-src 'none'" in svg.headers["content-security-policy"]
    for name in ("run-7.folded", "run-8.folded"):  # equal bytes, so only the name differs
        named = admin.post("/api/v1/shares", b"a;b 1", query={"filename": name}).json()
        assert (
            name.encode() in admin.get(f"/p/{named['id']}.svg").body
        ), "without a title the picture shows the file name"
    for tail in (".png", "/og.png"):
        png = admin.get(base + tail)
        assert png.headers["content-type"] == "image/png"
        assert png.body[:8] == b"\x89PNG\r\n\x1a\n"
        assert struct.unpack(">2I", png.body[16:24]) == (1200, 630)


def test_a_sample_type_is_selected_by_name_or_index(admin):
    made = share(admin, samples.pprof_gzip())["id"]
    top = f"/api/v1/shares/{made}/top"
    assert admin.get(top).json()["sample_type"] == "cpu"
    by_name = admin.get(top, query={"sample_type": "samples"}).json()
    by_index = admin.get(top, query={"sample_type": "0"}).json()
    assert by_name == by_index and by_name["unit"] == "count"
    totals = admin.get(f"/api/v1/shares/{made}").json()["totals"]
    assert by_name["total"] == totals[0]
    problem(admin.get(top, query={"sample_type": "wall"}), 400, "wall")
    problem(admin.get(top, query={"sample_type": "2"}), 400)


def test_reports_of_values_that_overflow_are_refused_and_files_are_kept(admin):
    raw = f"a;b {2**62}\na;c {2**62}\n".encode()
    made = share(admin, raw)["id"]
    base = f"/api/v1/shares/{made}"
    assert admin.get(base).json()["totals"] == [None]
    for report in ("top", "flame", "callers", "labels"):
        query = {"fn": "a"} if report == "callers" else {}
        problem(admin.get(f"{base}/{report}", query=query), 413, "samples")
    problem(admin.get("/api/v1/diff/top", query={"a": made, "b": made}), 413, "samples")
    assert admin.get(f"/p/{made}/raw").body == raw
    assert ">total too large<" in admin.get(f"/p/{made}/badge.svg").body.decode()
    again = share(admin, admin.get(f"/p/{made}.pb.gz").body)["id"]
    assert admin.get(f"/api/v1/shares/{again}").json()["totals"] == [None]


@pytest.mark.parametrize(
    "values,total",
    [
        ((2**62, 2**62 - 2), 2**63 - 2),
        ((2**62, 2**62 - 1), None),
        ((2**63 - 1,), None),
        ((2**62, -(2**62) + 2), 2),
        ((2**62, -(2**62)), None),
        ((2**62, -(2**62) + 1), None),
    ],
)
def test_badge_summary_and_reports_agree_on_overflow(admin, values, total):
    made = share(admin, "".join(f"a;f{i} {value}\n" for i, value in enumerate(values)).encode())[
        "id"
    ]
    assert admin.get(f"/api/v1/shares/{made}").json()["totals"] == [total]
    top = admin.get(f"/api/v1/shares/{made}/top")
    assert (top.status, top.json().get("total")) == (413 if total is None else 200, total)
    badge = admin.get(f"/p/{made}/badge.svg").body.decode()
    assert (">total too large<" in badge) == (total is None)


@pytest.mark.parametrize(
    "query,word",
    [
        ({"focus": "("}, "focus"),
        ({"hide": "(?=x)"}, "hide"),
        ({"show": r"(a)\1"}, "show"),
        ({"ignore": "a" * 8200}, "ignore"),
        ({"limit": "-1"}, "limit"),
        ({"limit": "many"}, "limit"),
        ({"group_by": "no-such-label"}, "no-such-label"),
        ({"sampletype": "cpu"}, "sampletype"),
        ({"focus": [f"f{i}" for i in range(33)]}, "focus"),
        ({"label": "thread"}, "thread"),
        ({"label": "thread=io"}, "which has no labels"),
        ({"label": ["a=b"] * 33}, "label"),
    ],
)
def test_an_invalid_parameter_is_reported_by_name(admin, made, query, word):
    problem(admin.get(f"/api/v1/shares/{made['a']}/top", query=query), 400, word)


@pytest.mark.parametrize(
    "query,name",
    [
        ("limit=1&limit=2", "limit"),
        ("sample_type=cpu&sample_type=samples", "sample_type"),
        ("group_by=file&limit=1&group_by=file", "group_by"),
        ("focus=%zz", "focus"),
        ("focus=%", "focus"),
        ("focus=a&focus=b%4", "focus"),
        ("label=a%3db&label=%3", "label"),
        ("limit=%310%", "limit"),
    ],
)
def test_a_repeated_or_malformed_parameter_is_reported_by_name(admin, made, query, name):
    problem(admin.get(f"/api/v1/shares/{made['a']}/top?{query}"), 400, f"parameter {name} ")


def test_diff_modes_equal_those_of_the_openapi_document(admin, made):
    pair = {"a": made["a"], "b": made["b"]}
    document = yaml.load(admin.get("/api/openapi.yaml").body, Loader=yaml.CSafeLoader)
    paths = document["paths"]
    modes = {
        path: parameter["schema"]["enum"]
        for path, item in paths.items()
        for parameter in item.get("get", {}).get("parameters", [])
        if parameter.get("name") == "mode"
    }
    assert set(modes) == {
        "/api/v1/diff",
        "/api/v1/diff/top",
        "/api/v1/diff/labels",
        "/d/{a}..{b}.json",
        "/d/{a}..{b}.png",
        "/d/{a}..{b}.svg",
    }
    for path, documented in modes.items():
        sides = pair if "{a}" not in path else {}
        refused = admin.get(path.format(**pair), query={**sides, "mode": "relative"})
        assert refused.status == 400
        named = refused.json()["detail"].partition("mode must be ")[2]
        assert set(re.findall(r"\b(?!or\b)\w+", named)) == set(documented), named
        assert set(documented) == {"absolute", "normalised", "normalized"}
    bodies = {
        mode: admin.get("/api/v1/diff/top", query={**pair, "mode": mode}).json()
        for mode in modes["/api/v1/diff/top"]
    }
    assert bodies["normalized"] == bodies["normalised"] != bodies["absolute"]


def test_sides_of_a_diff_and_options_may_be_given_only_once(admin, made):
    a, b = made["a"], made["b"]
    for query, name in (
        (f"a={a}&b={b}&a={a}", "a"),
        (f"a={a}&b={b}&b={b}", "b"),
        (f"a={a}&b={b}&mode=absolute&mode=normalised", "mode"),
    ):
        for path in ("/api/v1/diff", "/api/v1/diff/top"):
            problem(admin.get(f"{path}?{query}"), 400, f"parameter {name} ")
    problem(admin.post("/api/v1/shares?title=a&title=b", samples.FOLDED), 400, "parameter title ")
    problem(admin.post("/api/v1/shares?title=%C3%", samples.FOLDED), 400, "parameter title ")
    labels = admin.post("/api/v1/shares?label=a%3D1&label=b%3D2", samples.FOLDED)
    shown = admin.get(f"/api/v1/shares/{labels.json()['id']}").json()
    assert shown["labels"] == {"a": "1", "b": "2"}
    assert admin.get(f"/api/v1/shares/{a}/top?focus=parse&focus=main&hide=x&hide=y").status == 200


def test_pages_open_with_any_parameters(admin, made):
    odd = "limit=1&limit=2&st=samples&st=cpu&what=%zz&focus=%&x=%"
    for page in (f"/p/{made['a']}", f"/d/{made['a']}..{made['b']}"):
        assert admin.get(f"{page}?{odd}").status == 200
    # Pictures ignore invalid values of page parameters.
    assert admin.get(f"/p/{made['a']}/og.png?sv=1&{odd}").status == 200


@pytest.fixture(scope="module")
def labelled(server):
    """A share of a real profile with text and number labels, and the decoded profile."""
    shared = pathlib.Path(os.environ.get("PERFOLIO_SHARED", ROOT.parent / "shared"))
    path = shared / "data/pprof/profile-with-labels.pb.gz"
    if not path.exists():
        pytest.skip("needs ../shared/data")
    client = server.api()
    yield share(client, path.read_bytes())["id"], pprof_reader.load(path)
    client.close()


def test_labels_of_a_real_profile_equal_those_of_the_reader(admin, labelled):
    identity, profile = labelled
    path = f"/api/v1/shares/{identity}/labels"
    for index in range(len(profile.sample_types)):
        response = admin.get(path, query={"sample_type": index, "limit": 0}).json()
        samples_of, totals = collections.Counter(), collections.Counter()
        for sample in profile.samples:
            for label in set(sample.labels) if sample.values[index] else ():
                samples_of[label] += 1
                totals[label] += sample.values[index]
        shown = {
            (label["key"], value["value"])
            + ((value["unit"],) if "unit" in value else ()): (value["total"], value["samples"])
            for label in response["labels"]
            for value in label["values"]
        }
        assert shown == {label: (totals[label], samples_of[label]) for label in samples_of}
        assert response["total"] == profile.total(index)
    first = admin.get(path, query={"limit": 1}).json()["labels"]
    for label in first:
        assert len(label["values"]) == 1
        cut = label["other"]
        assert (cut["value_count"] if cut else 0) == label["value_count"] - 1
        one = admin.get(path, query={"key": label["key"], "limit": 0}).json()
        assert [one_label["key"] for one_label in one["labels"]] == [label["key"]]
        assert len(one["labels"][0]["values"]) == label["value_count"]
    problem(admin.get(path, query={"key": "fred"}), 400, "key: 'fred'")
    problem(admin.get(path, query={"group_by": "file"}), 400, "group_by")


def test_label_rules_apply_to_every_report(admin, labelled):
    identity, profile = labelled
    label = admin.get(f"/api/v1/shares/{identity}/labels").json()["labels"][0]
    value = label["values"][0]
    rule = {"label": value["filter"]}
    one = f"/api/v1/shares/{identity}"
    wanted = [
        sample
        for sample in profile.samples
        if any(entry[:2] == (label["key"], value["value"]) for entry in sample.labels)
    ]
    index = (
        len(profile.sample_types) - 1
        if not profile.default_sample_type
        else [name for name, _ in profile.sample_types].index(profile.default_sample_type)
    )
    kept = sum(sample.values[index] for sample in wanted)
    assert 0 < kept == value["total"] < profile.total(index)
    assert admin.get(one + "/top", query=rule).json()["kept"] == kept
    tree = admin.get(f"/p/{identity}.json", query=rule).json()
    assert tree["root"]["value"] == kept and tree["total"] == profile.total(index)
    flame = read_flame(admin.get(one + "/flame", query=rule).body)
    assert sum(self_values_of(flame)) == kept
    folded = admin.get(f"/p/{identity}.folded", query=rule).body.splitlines()
    assert sum(int(line.rpartition(b" ")[2]) for line in folded) == kept
    assert b"<svg" in admin.get(f"/p/{identity}.svg", query=rule).body
    page = admin.get(f"/p/{identity}.svg", query={"sv": "2", "lb": [value["filter"], "malformed"]})
    assert (
        page.body
        == admin.get(f"/p/{identity}.svg", query=rule).body
        != admin.get(f"/p/{identity}.svg").body
    )
    leaf = admin.get(one + "/top", query=rule).json()["functions"][0]
    callers = admin.get(one + "/callers", query={**rule, "fn": leaf["name"]}).json()
    assert (callers["flat"], callers["cum"]) == (leaf["flat"], leaf["cum"])
    pair = {"a": identity, "b": identity, **rule}
    assert admin.get("/api/v1/diff/labels", query=pair).json()["kept_a"] == kept
    assert (
        admin.get("/api/v1/diff", query=pair, headers={"Accept": "application/json"}).json()[
            "root"
        ]["value"]
        == kept
    )


def test_invalid_requests_are_reported_with_the_reason(admin, made):
    one = f"/api/v1/shares/{made['a']}"
    problem(admin.get(one + "/callers"), 400, "fn")
    problem(admin.get(one + "/callers", query={"fn": "nobody"}), 404, "nobody")
    problem(admin.get(one + "/flame", query={"limit": 1000001}), 400, "limit")
    problem(admin.get("/api/v1/diff", query={"a": made["a"]}), 400, "b is missing")
    problem(admin.get("/api/v1/diff", query={"a": made["a"], "b": "x"}), 404, "b")
    problem(admin.get("/api/v1/diff", query={**made, "mode": "sideways"}), 400, "mode")
    cpu = share(admin, samples.pprof_gzip())["id"]
    for path in "/api/v1/diff", "/api/v1/diff/top":
        problem(
            admin.get(path, query={"a": made["a"], "b": cpu, "sample_type": "cpu"}),
            400,
            "cannot be compared by cpu",
        )


def test_a_response_cached_by_the_client_is_not_sent_again(admin, made):
    path = f"/api/v1/shares/{made['a']}/flame"
    first = admin.get(path)
    assert first.headers["cache-control"] == "public, no-cache"
    tag = {"If-None-Match": first.headers["etag"]}
    assert admin.get(path, headers=tag).status == 304
    assert admin.get(path, query={"focus": "read"}, headers=tag).status == 200
    assert admin.get(f"/api/v1/shares/{made['b']}/flame", headers=tag).status == 200


def decodes(server):
    metrics = server.api().get("/metrics").text
    lines = [
        line for line in metrics.splitlines() if line.startswith("perfolio_profile_decodes_total ")
    ]
    return int(float(lines[0].split()[1])) if lines else 0


def test_many_viewers_of_one_cold_profile_cost_one_decode(start_server):
    server = start_server()
    made = share(server.api(), samples.pprof_gzip(3000))
    # The user who makes a share views it next, so the server caches its decoded form.
    assert server.api().get(f"/api/v1/shares/{made['id']}/flame").status == 200
    assert decodes(server) == 0
    server.restart()
    statuses = []

    def view(group):
        client = server.anonymous()
        statuses.append(
            client.get(f"/api/v1/shares/{made['id']}/flame", query={"group_by": group}).status
        )
        client.close()

    groups = ("function", "file", "line", "address", "binary") * 6
    threads = [threading.Thread(target=view, args=(group,)) for group in groups]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [200] * len(groups)
    assert decodes(server) == 1


def test_views_from_one_address_count_once(start_server):
    from test_shares import wait_for

    server = start_server("--jobs-interval", "1s")
    admin, anonymous = server.api(), server.anonymous()
    made = share(admin)
    for _ in range(5):
        assert anonymous.get(f"/api/v1/shares/{made['id']}/flame").status == 200
    wait_for(lambda: admin.get(f"/api/v1/shares/{made['id']}").json()["views"] == 1)
