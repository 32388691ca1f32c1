"""`perfolio` against a real server: every subcommand end to end."""

import json
import os
import pathlib
import re
import stat
import subprocess

import pytest

import sample_profiles as samples
from conftest import PERFOLIO
from test_cli_transport import CuttingProxy, make_large

ROOT = pathlib.Path(__file__).resolve().parents[3]
BEFORE = b"main;work;hot 60\nmain;work;cold 30\nmain;idle 10\n"
AFTER = b"main;work;hot 20\nmain;work;cold 45\nmain;fresh 15\n"


@pytest.fixture
def cli(server, tmp_path):
    """cli("push", file, token=…, url=…, input=…) -> CompletedProcess, with out and log as text"""
    home = tmp_path / "home"
    home.mkdir()

    def call(
        *arguments, token=server.token, url=server.url, input=b"", environment=None, folder=None
    ):
        variables = {
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "PERFOLIO_URL": url,
            "PERFOLIO_TOKEN": token,
            "PERFOLIO_CA_FILE": str(server.ca_file),
        }
        variables.update(environment or {})
        variables = {name: value for name, value in variables.items() if value}
        result = subprocess.run(
            [str(PERFOLIO), *map(str, arguments)],
            input=input,
            capture_output=True,
            env=variables,
            timeout=120,
            cwd=folder,
        )
        result.out, result.log = result.stdout.decode(errors="replace"), result.stderr.decode()
        return result

    call.home = home
    return call


@pytest.fixture
def on_terminal(cli, server):
    """on_terminal("get", …) -> its exit status, standard output, a terminal, and standard error"""
    import pty

    def call(*arguments):
        main, side = pty.openpty()
        process = subprocess.Popen(
            [str(PERFOLIO), *map(str, arguments)],
            stdin=side,
            stdout=side,
            stderr=subprocess.PIPE,
            env={
                "HOME": str(cli.home),
                "PERFOLIO_URL": server.url,
                "PERFOLIO_TOKEN": server.token,
                "PERFOLIO_CA_FILE": str(server.ca_file),
                "TERM": "dumb",
            },
        )
        os.close(side)
        seen = b""
        while True:
            try:
                piece = os.read(main, 65536)
            except OSError:
                break
            if not piece:
                break
            seen += piece
        os.close(main)
        return process.wait(60), seen.decode(), process.stderr.read().decode()

    return call


@pytest.fixture
def before(tmp_path):
    file = tmp_path / "before.folded"
    file.write_bytes(BEFORE)
    return file


@pytest.fixture
def after(tmp_path):
    file = tmp_path / "after.folded"
    file.write_bytes(AFTER)
    return file


def pushed(cli, *arguments, **options):
    result = cli("push", *arguments, **options)
    assert result.returncode == 0, result.log
    assert re.fullmatch(r"https://localhost:\d+/p/[0-9A-Za-z]{22}\n", result.out)
    return result.out.strip()


def test_push_then_get_returns_the_same_bytes(cli, before, tmp_path):
    link = pushed(cli, before)
    result = cli("get", link, "-o", "-")
    assert result.returncode == 0 and result.stdout == BEFORE and result.log == ""
    target = tmp_path / "copy"
    assert cli("get", link, "-o", target).returncode == 0
    assert target.read_bytes() == BEFORE
    assert cli("get", link, "-o", target).returncode == 1
    assert cli("get", "-f", link, "-o", target).returncode == 0


@pytest.mark.parametrize(
    "text, warning",
    [
        (BEFORE + b"no value here\n\nnor here\n", "2 lines were skipped: no stack with a value"),
        (
            b"app 1 1.0: 1 cycles:\n\t1000 f (/bin/app)\n\nodd\n\napp 1 2.0: 1 cycles:\n"
            b"\t1000 f (/bin/app)\n\n",
            "1 line was skipped: neither event nor frame",
        ),
    ],
)
def test_skipped_lines_are_reported(cli, before, tmp_path, text, warning):
    file = tmp_path / "odd.txt"
    file.write_bytes(text)
    copy = tmp_path / "copy" / "odd.txt"
    copy.parent.mkdir()
    copy.write_bytes(text)
    for arguments in (
        ["push", "-q"],
        ["top"],
        ["merge", "-q"],
        ["diff", "-q", copy],
        ["diff", "--local", copy],
    ):
        result = cli(*arguments, file)
        assert result.returncode == 0, result.log
        read = [copy, file] if copy in arguments else [file]
        assert result.log == "".join(
            f"perfolio {arguments[0]}: warning: {one}: {warning}\n" for one in read
        )
    assert cli("top", before).log == ""


def test_get_writes_the_file_under_its_original_name(cli, before, tmp_path):
    link = pushed(cli, before)
    folder = tmp_path / "downloads"
    folder.mkdir()
    result = cli("get", link, folder=folder)
    assert result.returncode == 0, result.log
    assert result.out == "before.folded\n"
    assert (folder / "before.folded").read_bytes() == BEFORE
    assert cli("get", link, folder=folder).returncode == 1
    assert [file.name for file in folder.iterdir()] == ["before.folded"]


@pytest.mark.parametrize("name", ["-", "-o", "/tmp/-"])
def test_get_uses_the_id_if_the_name_begins_with_a_hyphen(cli, server, tmp_path, name):
    """A file named "-" was written to standard output."""
    share = server.api().post("/api/v1/shares", BEFORE, query={"filename": name}).json()
    result = cli("get", share["url"], folder=tmp_path)
    assert (result.returncode, result.out) == (0, f"{share['id']}\n"), result.log
    assert (tmp_path / share["id"]).read_bytes() == BEFORE


def test_get_converts_to_other_formats(cli, before):
    link = pushed(cli, before)
    folded = cli("get", link, "--format", "folded", "-o", "-").out
    assert sorted(folded.splitlines()) == sorted(BEFORE.decode().splitlines())
    assert json.loads(cli("get", link, "--format", "json", "-o", "-").out)["total"] == 100
    assert cli("get", link, "--format", "pb.gz", "-o", "-").stdout[:2] == b"\x1f\x8b"
    assert b"<svg" in cli("get", link, "--format", "svg", "-o", "-").stdout[:300]
    assert cli("get", link, "--format", "png", "-o", "-").stdout[:4] == b"\x89PNG"
    assert cli("get", link, "--format", "gif").returncode == 2


def test_names_cannot_send_control_characters_to_a_terminal(cli, on_terminal, tmp_path):
    hostile = "\x9b2J\x1b[2J\u202e\u200b\u2066\ufeff"
    (tmp_path / "hostile.folded").write_text(
        f"main;a{hostile}b;{hostile}\tc 5\r\nmain 3\n", newline=""
    )
    url = pushed(cli, tmp_path / "hostile.folded")
    for arguments in (
        ["--format", "folded", "-o", "-"],
        ["--format", "folded", "-o", "/dev/stdout"],
        ["--format", "json", "-o", "-"],
        ["--format", "svg", "-o", "-"],
        ["-o", "-"],
    ):
        status, seen, _ = on_terminal("get", url, *arguments)
        assert status == 0 and "main" in seen, (arguments, seen)
        assert not re.search("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202e\u200b\u2066\ufeff]", seen), (
            arguments,
            seen,
        )
    for arguments in (
        ["top", url],
        ["top", url, "--json"],
        ["top", tmp_path / "hostile.folded", "--json"],
        ["get", url, "-o", "-"],
    ):
        status, seen, _ = on_terminal(*arguments)
        assert (
            status == 0 and "main" in seen and not re.search("[\x1b\x80-\x9f\u202e\u200b]", seen)
        ), (arguments, seen)
    assert seen == "main;a?2J?[2J????b;?2J?[2J????\tc 5\r\nmain 3\r\n"
    # Other outputs keep all bytes, except those that the format cannot hold.
    assert cli("get", url, "-o", "-").stdout == (tmp_path / "hostile.folded").read_bytes()
    assert (
        cli("get", url, "--format", "folded", "-o", "-").stdout.decode()
        == "main 3\nmain;a 2J [2J\u202e\u200b\u2066\ufeffb; 2J [2J\u202e\u200b\u2066\ufeff c 5\n"
    )


def test_get_refuses_to_write_a_binary_format_to_a_terminal(cli, on_terminal, before):
    url = pushed(cli, before)
    status, seen, log = on_terminal("get", url, "--format", "pb.gz", "-o", "-")
    assert status == 7 and seen == "", (status, seen, log)
    assert "cannot be written to a terminal: give a file with -o" in log


def test_an_invalid_character_in_a_token_is_reported(cli, before, server, tmp_path):
    for token, words in (
        ("pf_a\x1b[0m", "control character (0x1b) as its byte 5"),
        ("pf_ä", "not ASCII (0xc3)"),
        ("pf_a b", "a blank"),
        ("pf_a\npf_b", "(0x0a)"),
    ):
        result = cli("push", before, token=token)
        assert (
            result.returncode == 2 and "PERFOLIO_TOKEN holds" in result.log and words in result.log
        ), result.log
        assert "pf_" not in result.log
    pushed(
        cli, before, token=server.token + "\n"
    )  # files and secrets of orchestrators end with a newline
    file = tmp_path / "token"
    file.write_bytes(b"pf_a\x00b\n")
    result = cli("login", server.url, "--token-file", file, token=None)
    assert (
        result.returncode == 7 and f"{file} holds a control character (0x00)" in result.log
    ), result.log
    result = cli("login", server.url, token=None, input=b"pf_\x01\n")
    assert (
        result.returncode == 7 and "standard input holds a control character (0x01)" in result.log
    ), result.log
    url = pushed(cli, before)
    file.write_bytes(b"two\x07words\n")
    result = cli("get", url, "--password-file", file)
    assert (
        result.returncode == 7 and f"{file} holds a control character (0x07)" in result.log
    ), result.log
    result = cli("delete", url, "--token", "a\x01b")
    assert (
        result.returncode == 7
        and "X-Perfolio-Delete-Token would hold a control character" in result.log
    ), result.log


def test_push_accepts_unusual_file_names(cli, admin, tmp_path):
    for name in (b"a\x1b[31mb", b"caf\xe9", b"x" * 255, b"bidi\xe2\x80\xae", b" "):
        path = os.path.join(os.fsencode(tmp_path), name)
        with open(path, "wb") as file:
            file.write(BEFORE)
        link = pushed(cli, os.fsdecode(path))
        shown = admin.get("/api/v1/shares/" + link[-22:]).json()["filename"]
        assert name == b" " or shown and shown.isprintable()


def test_push_sends_its_options_to_the_server(cli, before, admin):
    link = pushed(
        cli,
        before,
        "--title",
        "a title & more",
        "--description",
        "*x*",
        "--expires",
        "2d",
        "--label",
        "job=ci",
        "--visibility",
        "public",
        "--name",
        "n.folded",
    )
    share = admin.get("/api/v1/shares/" + link[-22:]).json()
    assert share["title"] == "a title & more" and share["description"] == "*x*"
    assert share["labels"] == {"job": "ci"} and share["visibility"] == "public"
    assert share["filename"] == "n.folded" and share["expires_at"]
    wrong = cli("push", before, "--expires", "tomorrow")
    assert wrong.returncode == 7 and "expires" in wrong.log and wrong.out == ""


def test_json_contains_the_whole_result(cli, before):
    response = json.loads(cli("push", "--json", before).out)
    assert {"id", "url", "raw_url", "delete_token", "delete_url", "expires_at", "markdown"} <= set(
        response
    )
    markdown = cli("push", "--markdown", "--title", "a *b*", before).out
    head, _, table = markdown.partition("\n\n")
    page = r"https://localhost:\d+/p/\w{22}"
    assert re.fullmatch(
        rf"\[!\[a \\\*b\\\*, samples: 100, most in hot \(60\.0 %\)\]\({page}/og\.png\)\]\({page}\)",
        head,
    ), head
    assert table.splitlines()[:3] == [
        "| flat | % | cum | function |",
        "| ---: | ---: | ---: | :--- |",
        "| 60 | 60.0 | 60 | `hot` |",
    ], table


def test_a_title_does_not_end_the_link_of_markdown(cli, tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("main;work 5\n")
    title = "fix](https://evil.example/p.png) ok"
    head = cli("push", "--markdown", "--title", title, file).out.partition("\n")[0]
    assert head.startswith("[![fix\\](https://evil.example/p.png) ok, "), head
    assert head.count("og.png)](https://") == 1


def test_a_duration_of_a_rule_needs_a_unit(cli):
    refused = cli("admin", "retention", "set", '{pod="a"}', "--keep", "30")
    assert refused.returncode == 2 and "write 30d for days" in refused.log


def test_markdown_of_a_protected_share_has_a_table_and_no_image(cli, tmp_path):
    file, secret = tmp_path / "odd.folded", tmp_path / "secret"
    file.write_bytes("main;a|b`c`@team<b> 3\n".encode())
    secret.write_text("correct horse\n")
    for options in (["--visibility", "team"], ["--password-file", secret]):
        markdown = cli("push", "--markdown", *options, file).out
        assert markdown.startswith("[") and "og.png" not in markdown
        assert "most in a\\|b\\`c\\`&#64;team\\<b\\> (100.0 %)](https://" in markdown, markdown
        assert "| 3 | 100.0 | 3 | `a\\|b'c'@team<b>` |" in markdown


def test_push_prints_the_visibility_of_the_share(cli, before):
    assert "visible  to everyone who has the link" in cli("push", before).log
    assert "visible  to your team" in cli("push", "--visibility", "team", before).log
    assert "visible  to everyone, and listed" in cli("push", "--visibility", "public", before).log


def test_top_of_a_link_equals_top_of_the_file(cli, before):
    link = pushed(cli, before)
    local = json.loads(cli("top", "--json", before).out)
    remote = json.loads(cli("top", "--json", link).out)
    assert local == remote
    assert {f["name"]: (f["flat"], f["cum"]) for f in local["functions"]} == {
        "hot": (60, 60),
        "cold": (30, 30),
        "idle": (10, 10),
        "work": (0, 90),
        "main": (0, 100),
    }
    filtered = json.loads(cli("top", "--json", link, "--focus", "work", "--limit", "1").out)
    assert [f["name"] for f in filtered["functions"]] == ["hot"] and filtered["truncated"]
    table = cli("top", link).out.splitlines()
    assert re.search(r"\b60\s+60\.0%\s+60\.0%\s+60\s+60\.0%  hot$", table[2])
    assert cli("top", link, "--focus", "(").returncode == 7
    assert cli("top", link, "--sample-type", "nope").returncode == 7


def test_rows_grouped_by_line_show_their_lines(cli, tmp_path):
    profile = tmp_path / "lines.pb.gz"
    profile.write_bytes(samples.pprof_gzip())
    link = pushed(cli, profile)
    options = ("--group-by", "line", "--limit", "0")
    local, remote = (
        json.loads(cli("top", "--json", *options, source).out)["functions"]
        for source in (profile, link)
    )
    assert local == remote
    places = [(row["name"], row["file"], row.get("line")) for row in local]
    assert all(line for _, _, line in places)
    for source in (profile, link):
        table = cli("top", *options, source).out.splitlines()[2:]
        for (name, file, line), row in zip(places, table, strict=True):
            assert row.endswith(f"%  {name} {file.rpartition('/')[2]}:{line}")


def field(number, value):
    if isinstance(value, int):
        return bytes([number << 3, value])
    return bytes([number << 3 | 2, len(value)]) + value


def pprof_of_types(*types):
    """A profile of main with the values 3, 4, … for types given as (name, unit)."""
    strings = [b"", b"main"]
    raw = b""
    for pair in types:
        indices = []
        for text in pair:
            if text not in strings:
                strings.append(text)
            indices.append(strings.index(text))
        raw += field(1, field(1, indices[0]) + field(2, indices[1]))
    raw += field(2, field(1, 1) + b"".join(field(2, 3 + i) for i in range(len(types))))
    raw += field(4, field(1, 1) + field(4, field(1, 1))) + field(5, field(1, 1) + field(2, 1))
    return raw + b"".join(field(6, text) for text in strings)


def test_a_sample_type_without_a_name_is_identified_by_its_index(cli, before, admin, tmp_path):
    file = tmp_path / "unnamed.pb"
    file.write_bytes(pprof_of_types((b"", b"bytes"), (b"cpu", b"nanoseconds"), (b"", b"")))
    result = cli("push", file)
    assert "samples (type 0 (bytes), cpu, type 2)" in result.log, result.log
    link, responses = result.out.strip(), {}
    share = admin.get("/api/v1/shares/" + link[-22:]).json()
    assert [kind["type"] for kind in share["sample_types"]] == ["", "cpu", ""]
    for source in (file, link):
        assert cli("top", source).out.startswith("type 2: 5\n")
        assert cli("top", source, "--sample-type", "0").out.startswith("type 0 (bytes): 3 B\n")
        assert cli("top", source, "--sample-type", "cpu").out.startswith("cpu: 4 ns\n")
        numbers = json.loads(cli("top", "--json", "--sample-type", "0", source).out)
        assert (numbers["sample_type"], numbers["sample_type_index"]) == ("", 0)
        responses[source] = numbers
    assert responses[file] == responses[link]
    identity = link[-22:]
    for path in (
        f"/api/v1/shares/{identity}/top?sample_type=0",
        f"/p/{identity}.json?sample_type=0",
        f"/api/v1/shares/{identity}/callers?fn=main&sample_type=0",
        f"/api/v1/diff/top?a={identity}&b={identity}&sample_type=0",
    ):
        response = admin.get(path).json()
        assert (response["sample_type"], response["sample_type_index"]) == ("", 0), path
    refused = cli("diff", "--local", before, file)
    assert "the second type 0 (bytes), cpu/nanoseconds, type 2" in refused.log, refused.log
    unknown = cli("top", "--sample-type", "wall", file)
    assert "it has 0 without a name, 1 'cpu', 2 without a name" in unknown.log
    copy = tmp_path / "copy.pb"
    copy.write_bytes(file.read_bytes())
    same = cli("diff", "--local", "--sample-type", "0", file, copy).out
    assert same.startswith("type 0 (bytes): 3 B → 3 B")


def test_push_warns_if_values_are_too_large_to_be_added(cli, before, tmp_path):
    file = tmp_path / "large.folded"
    file.write_bytes(b"a;b %d\na;c %d\n" % (2**62, 2**62))
    for options in ([], ["--quiet"], ["--merge", before]):
        result = cli("push", *options, file)
        assert result.returncode == 0
        assert (
            len(
                re.findall(
                    "^perfolio.*warning: .*: the link will show no total and no report of "
                    "samples: the values are too large to be added.*$",
                    result.log,
                    re.M,
                )
            )
            == 1
        ), result.log
    assert "warning" not in cli("push", before).log


def test_diff_warns_if_the_sum_of_both_sides_overflows(cli, admin, tmp_path):
    """Each side alone can be summed: 2^63 - 1 is the smallest total that cannot."""
    near, near2, rest = (tmp_path / f"{name}.folded" for name in ("near", "near2", "rest"))
    near.write_bytes(b"main;a %d\nmain;b 1\n" % (2**63 - 3))
    near2.write_bytes(near.read_bytes() + b"main;c 0\n")
    for text, is_too_large in ((near.read_bytes(), True), (b"a 1\n", True), (b"a 0\nb 0\n", False)):
        near2.write_bytes(text)
        result = cli("diff", near, near2)
        assert result.returncode == 0, result.log
        warnings = re.findall(
            "^perfolio.*warning: the link will show no report of samples: the "
            "values of both sides together are too large to be added.*$",
            result.log,
            re.M,
        )
        assert len(warnings) == is_too_large, result.log
        a, b = re.search(r"(\w{22})\.\.(\w{22})$", result.out).groups()
        assert admin.get(f"/api/v1/diff/top?a={a}&b={b}").status == (413 if is_too_large else 200)
    rest.write_bytes(b"a %d\n" % (2**63 - 1))  # too large alone, reported once
    near3 = tmp_path / "near3.folded"
    near3.write_bytes(near2.read_bytes())
    result = cli("diff", near, rest)
    assert result.log.count("warning") == 1 and "rest.folded: the link" in result.log, result.log
    assert "both sides" not in cli("diff", "--sample-type", "samples", near2, near3).log


def test_diff_of_files_uploads_both_and_prints_one_link(cli, before, after, admin):
    result = cli("diff", before, after)
    assert result.returncode == 0, result.log
    found = re.fullmatch(r"https://localhost:\d+/d/(\w{22})\.\.(\w{22})\n", result.out)
    a, b = found.groups()
    assert admin.get(f"/api/v1/shares/{a}/raw").body == BEFORE
    assert admin.get(f"/api/v1/shares/{b}/raw").body == AFTER
    numbers = admin.get(f"/api/v1/diff/top?a={a}&b={b}&limit=0").json()
    assert {f["name"]: f["flat_delta"] for f in numbers["functions"]}["hot"] == -40
    assert admin.get(f"/d/{a}..{b}").status == 200


def test_diff_of_a_profile_with_itself_is_refused(cli, before):
    link = pushed(cli, before)
    for options in [], ["--local"]:
        for pair in ([before, before], [link, link], [link, link[-22:]]):
            refused = cli("diff", *options, *pair)
            assert (
                refused.returncode == 2 and f"both sides are {pair[0]}" in refused.log
            ), refused.log


def test_diff_of_links_uploads_nothing(cli, before, after, admin, tmp_path):
    a, b = pushed(cli, before), pushed(cli, after)
    result = cli("diff", a, b[-22:])
    assert result.returncode == 0, result.log
    assert result.out.endswith(f"/d/{a[-22:]}..{b[-22:]}\n")
    mixed = cli("diff", "--normalized", "--group-by", "a b", a, after)
    assert mixed.returncode == 0 and a[-22:] in mixed.out, mixed.log
    assert mixed.out.endswith("?g=a%20b&norm=1&sv=1\n")  # as web/src/view_state.ts reads it
    count = len(admin.get("/api/v1/shares?limit=100").json()["shares"])
    markdown = cli("diff", "--markdown", a, b)
    page = r"https://localhost:\d+/d/\w{22}\.\.\w{22}"
    head, _, table = markdown.out.partition("\n\n")
    assert re.fullmatch(
        rf"\[!\[samples: 100 → 80 \(-20\.0 %\), most in hot "
        rf"\(-40\)\]\({page}/og\.png\)\]\({page}\)",
        head,
    ), head
    assert table.splitlines()[:3] == [
        "| before | after | change | function |",
        "| ---: | ---: | ---: | :--- |",
        "| 60 | 20 | -40 | `hot` |",
    ], table
    assert len(table.splitlines()) <= 7
    assert "| 0 | 0 |" not in table, table
    assert cli("diff", "--markdown", "--local", a, b).returncode == 2
    missing = cli("diff", "A" * 22, after)
    assert missing.returncode == 5 and missing.out == ""
    assert len(admin.get("/api/v1/shares?limit=100").json()["shares"]) == count
    files = []
    for value in (1, 3):
        files.append(tmp_path / f"{value}.folded")
        files[-1].write_text(f"main;a;b;c;hot {value}\n")
    callers = cli("diff", "--markdown", *files)
    assert callers.out.partition("\n\n")[2].splitlines()[2:] == [
        "| 1 | 3 | +2 | `hot` |"
    ], callers.out


def test_diff_of_different_sample_types_is_refused_before_any_upload(cli, before, admin, tmp_path):
    timed, cpu = tmp_path / "timed.json", tmp_path / "cpu.pb.gz"
    timed.write_bytes(samples.SPEEDSCOPE)
    cpu.write_bytes(samples.pprof_gzip())
    a, b = pushed(cli, before), pushed(cli, timed)
    count = len(admin.get("/api/v1/shares?limit=100").json()["shares"])
    for pair in (before, timed), (a, timed), (before, b), (a, b):
        for options in [], ["--local"]:
            refused = cli("diff", *options, *pair)
            assert refused.returncode == 7 and refused.out == "", refused.log
            assert (
                "the first has samples/count, the second time/nanoseconds" in refused.log
            ), refused.log
    named = cli("diff", "--sample-type", "cpu", before, cpu)
    assert named.returncode == 7 and named.out == ""
    assert "cannot be compared by cpu" in named.log, named.log
    assert len(admin.get("/api/v1/shares?limit=100").json()["shares"]) == count
    assert cli("diff", "--sample-type", "samples", a, before).out.endswith("?st=samples&sv=1\n")


@pytest.fixture
def decimals(tmp_path):
    """Files of one tool with different numbers of decimals, so that their units differ."""
    files = []
    for i, text in enumerate(
        ("main;work 12\nmain;rest 3\n", "main;work 2.5\n", "main;work 1.125\nmain;rest 0.25\n")
    ):
        files.append(tmp_path / f"{i}.folded")
        files[-1].write_text(text)
    return files


def test_files_with_different_decimals_are_compared_and_merged(cli, decimals, admin, tmp_path):
    whole, one, three = decimals
    numbers = json.loads(cli("diff", "--local", "--json", one, three).out)
    assert (numbers["total_a"], numbers["total_b"], numbers["unit"]) == (2500, 1375, "count/1000")
    shown = cli("diff", "--local", whole, three).out
    assert "15 → 1.375 (-13.625" in shown, shown
    links = [pushed(cli, file) for file in decimals]
    for pair in ((links[0], three), (links[2], one)):
        compared = cli("diff", *pair)
        assert compared.returncode == 0 and "/d/" in compared.out, compared.log
    target = tmp_path / "sum.pb.gz"
    for sources in (decimals, links):
        assert cli("merge", "-f", "-o", target, *sources).returncode == 0
        numbers = json.loads(cli("top", "--json", target).out)
        assert (numbers["total"], numbers["unit"]) == (18875, "count/1000")
        assert {f["name"]: f["flat"] for f in numbers["functions"]} == {
            "work": 15625,
            "rest": 3250,
            "main": 0,
        }
    assert "18.875" in cli("top", target).out
    for file, link in zip(decimals, links):
        assert cli("get", link, "-o", "-").stdout == file.read_bytes()


def test_diff_local_prints_the_change_of_each_function(cli, before, after):
    numbers = json.loads(cli("diff", "--local", "--json", before, after).out)
    assert (numbers["total_a"], numbers["total_b"]) == (100, 80)
    rows = {f["name"]: f for f in numbers["functions"]}
    assert {name: (f["flat_delta"], f["cum_delta"]) for name, f in rows.items()} == {
        "hot": (-40, -40),
        "cold": (15, 15),
        "fresh": (15, 15),
        "idle": (-10, -10),
        "work": (0, -25),
        "main": (0, -20),
    }
    scaled = json.loads(cli("diff", "--local", "--json", "--normalized", before, after).out)
    assert scaled["mode"] == "normalised"
    assert {f["name"]: f["flat_b"] for f in scaled["functions"]}["hot"] == 25
    assert "hot" in cli("diff", "--local", before, after).out


def test_normalised_diff_counts_functions_that_round_to_0_and_omits_them(cli, tmp_path):
    one, many, two = (tmp_path / f"{name}.folded" for name in ("one", "many", "two"))
    one.write_bytes(b"main;q 1\n")
    many.write_bytes(b"".join(b"f%d 1\n" % i for i in range(2000)))
    for limit in ([], ["--limit", "0"], ["--limit", "1"]):
        table = cli("diff", "--local", "--normalised", *limit, one, many).out
        shown = re.findall(r"^ .*  (\w+)$", table, re.M)
        # If the limit does not omit them, only main and q have a value that is not 0.
        assert shown == (["function", "q"] if "1" in limit else ["function", "q", "main"]), table
        assert "2,000 more functions that round to 0\n" in table
        assert ("1 of 2,002 rows; --limit 0 shows all" in table) == ("1" in limit)
        assert "+0.0%" not in table.split("\n", 1)[1], table
    rows = json.loads(
        cli("diff", "--local", "--normalised", "--json", "--limit", "0", one, many).out
    )["functions"]
    assert len(rows) == 2002
    two.write_bytes(b"main;q 999\nrare 1\n")
    assert (
        "1 more function that rounds to 0\n" in cli("diff", "--local", "--normalised", one, two).out
    )
    absolute = cli("diff", "--local", "--limit", "0", one, many).out
    assert len(absolute.splitlines()) == 2004 and "round" not in absolute


def test_diff_local_of_links_equals_diff_local_of_files(cli, before, after):
    a, b = pushed(cli, before), pushed(cli, after)
    assert cli("diff", "--local", a, b).out == cli("diff", "--local", before, after).out


def test_merge_writes_a_file_or_a_share(cli, before, after, admin, tmp_path):
    target = tmp_path / "merged.pb.gz"
    count = len(admin.get("/api/v1/shares?limit=100").json()["shares"])
    written = cli("merge", before, after, "-o", target)
    assert written.returncode == 0 and written.out == ""
    assert len(admin.get("/api/v1/shares?limit=100").json()["shares"]) == count
    numbers = json.loads(cli("top", "--json", target).out)
    assert numbers["total"] == 180
    assert {f["name"]: f["flat"] for f in numbers["functions"]}["cold"] == 75
    result = cli("merge", before, after, "--title", "the sum")
    assert re.fullmatch(r"https://localhost:\d+/p/\w{22}\n", result.out), result.log
    for link in result.out.strip(), pushed(cli, "--merge", before, after):
        assert json.loads(cli("top", "--json", link).out) == numbers
    assert admin.get("/api/v1/shares/" + result.out.strip()[-22:]).json()["title"] == "the sum"
    links = pushed(cli, before), pushed(cli, after)[-22:]
    assert cli("merge", *links, "-f", "-o", target).returncode == 0
    assert json.loads(cli("top", "--json", target).out) == numbers
    of_links = cli("merge", *links).out.strip()
    assert json.loads(cli("top", "--json", of_links).out) == numbers
    assert cli("merge", "-f", before, after).returncode == 2
    assert cli("merge", "--push", before, after).returncode == 2
    assert cli("merge").returncode == 2


def test_list_finds_a_share_and_delete_removes_it(cli, before):
    link = pushed(cli, before, "--title", "needle in a haystack")
    rows = cli("list", "needle").out.splitlines()
    assert len(rows) == 1
    assert re.match(
        rf"\d{{4}}-\d\d-\d\d \d\d:\d\d  unlisted   never        {link}  needle", rows[0]
    )
    as_json = [json.loads(line) for line in cli("list", "--json", "needle").out.splitlines()]
    assert [share["url"] for share in as_json] == [link]
    assert link in cli("list", "--local").out
    assert cli("delete", link).returncode == 0
    assert cli("list", "needle").out == ""
    gone = cli("get", link, "-o", "-")
    assert gone.returncode == 5 and gone.out == ""


def test_anonymous_shares_are_deleted_with_the_stored_token(cli, before, server):
    link = pushed(cli, before, token="")
    assert link in cli("list", token="").out
    assert cli("delete", link, token="", environment={"HOME": "/nonexistent"}).returncode == 4
    wrong = cli("delete", link, "--token", "x" * 43, token="")
    assert wrong.returncode in (4, 5), wrong.log
    assert cli("delete", link, token="").returncode == 0
    assert server.anonymous().get("/api/v1/shares/" + link[-22:]).status == 410


def test_a_given_delete_token_overrides_the_stored_one(cli, before, admin):
    response = json.loads(cli("push", "--json", before).out)
    other = json.loads(cli("push", "--json", before).out)
    for wrong in (
        ["--token", "x" * 43, response["url"]],
        ["--token", other["delete_token"], response["url"]],
        [response["url"] + "/delete#" + "x" * 43],
    ):
        result = cli("delete", *wrong)
        assert result.returncode in (4, 5), result.log
        assert admin.get("/api/v1/shares/" + response["id"]).status == 200
    assert cli("delete", "--token", response["delete_token"], response["url"]).returncode == 0
    assert admin.get("/api/v1/shares/" + response["id"]).status == 410
    assert cli("delete", other["delete_url"]).returncode == 0


def test_a_share_with_a_password_requires_it(cli, before, tmp_path):
    secret, wrong = tmp_path / "secret", tmp_path / "wrong"
    secret.write_text("correct horse\n")
    wrong.write_text("battery staple\n")
    link, other = (pushed(cli, before, "--password-file", secret, token="") for _ in range(2))
    assert cli("top", link, token="").returncode == 4
    assert cli("top", link, "--password-file", wrong, token="").returncode == 4
    assert cli("top", link, "--password-file", secret, token="").returncode == 0
    assert (
        cli(
            "get", link, "--password-file", "-", "-o", "-", token="", input=b"correct horse\n"
        ).stdout
        == BEFORE
    )
    timed = tmp_path / "timed.json"
    timed.write_bytes(samples.SPEEDSCOPE)  # has a sample type that the share lacks
    for options in [], ["--local"]:
        assert (
            cli("diff", *options, link, timed, "--password-file", wrong, token="").returncode == 4
        )
        result = cli("diff", *options, link, timed, "--password-file", secret, token="")
        assert result.returncode == 7 and "cannot be compared" in result.log, result.log
        assert (
            cli("diff", *options, link, other, "--password-file", secret, token="").returncode == 0
        )


@pytest.mark.long
def test_a_large_profile_is_uploaded_in_parts_and_downloaded_unchanged(cli, tmp_path):
    large = make_large(tmp_path / "large.folded")
    link = pushed(cli, large)
    assert cli("get", link, "-o", tmp_path / "copy").returncode == 0
    assert (tmp_path / "copy").read_bytes() == large.read_bytes()


@pytest.mark.long
def test_an_interrupted_large_upload_is_resumed(cli, server, tmp_path):
    large = make_large(tmp_path / "large.folded", 14 * 1000 * 1000)
    proxy = CuttingProxy(server.port, [6 << 20])
    url = f"https://localhost:{proxy.port}"
    broken = cli("push", large, url=url, environment={"PERFOLIO_RETRIES": "0"})
    assert broken.returncode == 3 and broken.out == "", broken.log
    result = cli("push", large, url=url)
    proxy.close()
    assert result.returncode == 0, result.log
    assert "resuming an interrupted upload" in result.log
    assert cli("get", result.out.strip(), "-o", tmp_path / "copy").returncode == 0
    assert (tmp_path / "copy").read_bytes() == large.read_bytes()


def test_refusals_of_the_server_have_exit_codes(cli, tmp_path):
    rubbish = tmp_path / "rubbish"
    rubbish.write_bytes(b"\x00\x01\x02rubbish")
    assert cli("push", rubbish).returncode == 7
    refused = cli("push", "--no-check", rubbish)
    assert refused.returncode == 7 and refused.out == ""
    assert cli("push", "--no-check", rubbish, token="pf_" + "0" * 43).returncode == 4


def test_an_unknown_certificate_is_refused_with_a_hint(cli, before):
    result = cli("push", before, environment={"PERFOLIO_CA_FILE": ""})
    assert result.returncode == 4 and "PERFOLIO_CA_FILE" in result.log
    assert "trying again" not in result.log


def test_login_stores_a_valid_token_and_logout_removes_it(cli, server, before):
    config = cli.home / ".config/perfolio/config.ini"
    bare = {"PERFOLIO_URL": "", "PERFOLIO_CA_FILE": ""}
    wrong = cli(
        "login",
        server.url,
        "--ca-file",
        server.ca_file,
        token="",
        environment=bare,
        input=b"pf_" + b"0" * 43,
    )
    assert wrong.returncode == 4 and not config.exists()
    result = cli(
        "login",
        server.url,
        "--ca-file",
        server.ca_file,
        token="",
        environment=bare,
        input=server.token.encode(),
    )
    assert result.returncode == 0, result.log
    assert "tenant default" in result.log and server.token not in result.log
    assert stat.S_IMODE(config.stat().st_mode) == 0o600
    link = cli("push", before, token="", environment=bare)
    assert link.returncode == 0, link.log
    assert link.out.strip() in cli("list", token="", environment=bare).out
    assert cli("logout", token="", environment=bare).returncode == 0
    assert cli("push", before, token="", environment=bare).returncode == 2


def test_admin_lists_contain_all_pages(cli, admin):
    made = [admin.post("/api/v1/admin/tenants", json={"name": f"page {i}"}) for i in range(205)]
    assert all(response.status == 201 for response in made)
    listed = cli("admin", "tenant", "list")
    for number in range(205):
        assert re.search(rf"^\d+ +page {number} ", listed.out, re.MULTILINE), number
    assert "there are more" not in listed.log
    rows = json.loads(cli("admin", "tenant", "list", "--json").out)
    ids = [row["id"] for row in rows["tenants"]]
    assert len(ids) == len(set(ids)) >= 205 and rows["next_cursor"] is None
    entries = json.loads(cli("admin", "audit", "--json").out)["entries"]
    assert len({entry["id"] for entry in entries}) == len(entries) > 200
    for response in made:
        admin.delete(f"/api/v1/admin/tenants/{response.json()['id']}")


def test_admin_manages_tenants_users_and_tokens(cli, server, before):
    tenant = cli("admin", "tenant", "create", "cli team").out.strip()
    assert tenant.isdigit()
    assert re.search(rf"^{tenant} +cli team", cli("admin", "tenant", "list").out, re.MULTILINE)
    changed = cli("admin", "tenant", "set", tenant, "max_upload_bytes=1000", "name=renamed")
    assert changed.returncode == 0, changed.log
    assert "renamed" in cli("admin", "tenant", "show", tenant).out
    added = cli("admin", "user", "add", "cli@example.org", "--tenant", tenant, "--role", "owner")
    assert added.returncode == 0 and "/login#" in added.out, added.log
    token = cli(
        "admin",
        "token",
        "create",
        "ci",
        "--tenant",
        tenant,
        "--scopes",
        "share,read,admin",
        "--expires",
        "30d",
    ).out.strip()
    assert re.fullmatch(r"pf_\w{43}", token)
    users = json.loads(cli("admin", "user", "list", "--json", token=token).out)["users"]
    assert [user["email"] for user in users] == ["cli@example.org"]
    invited = cli("admin", "invite", "create", "new@example.org", "--role", "viewer", token=token)
    assert invited.returncode == 0 and "/invite#" in invited.out, invited.log
    for useless in (("invite", "create", "lost@example.org"), ("invite", "list"), ("audit",)):
        astray = cli("admin", *useless, "--tenant", tenant)
        assert astray.returncode == 2 and "does not take --tenant" in astray.log and not astray.out
    assert "lost@example.org" not in cli("admin", "invite", "list").out
    assert "new@example.org" in cli("admin", "invite", "list", token=token).out
    pushed(cli, before, token=token)
    assert "share.create" in cli("admin", "audit", token=token).out
    large = cli.home / "large.folded"
    large.write_text("".join(f"a;b{i} 1\n" for i in range(200)))
    assert cli("push", large, token=token).returncode == 6
    assert cli("admin", "tenant", "list", token=token).returncode == 4
    users = cli("admin", "user", "list", "--tenant", tenant).out
    number = re.search(r"^(\d+) +new-by-operator@example.org", users, re.MULTILINE)
    assert "cli@example.org" in users and not number
    cli("admin", "user", "add", "new-by-operator@example.org", "--tenant", tenant)
    users = cli("admin", "user", "list", "--tenant", tenant).out
    number = re.search(r"^(\d+) +new-by-operator@example.org", users, re.MULTILINE)[1]
    assert (
        cli("admin", "user", "remove", number).returncode != 0
    ), "the user is not in the operator's tenant"
    assert cli("admin", "user", "remove", number, "--tenant", tenant).returncode == 0
    spare = cli("admin", "token", "create", "spare", "--tenant", tenant).out.strip()
    tokens = cli("admin", "token", "list", "--tenant", tenant).out
    number = re.search(r"^(\d+) +spare", tokens, re.MULTILINE)[1]
    assert cli("admin", "token", "revoke", number, "--tenant", tenant).returncode == 0
    assert cli("admin", "token", "list", token=spare).returncode == 4
    link = cli("admin", "login-link").out
    assert link.startswith(server.url + "/login#code=")
    assert cli("admin", "tenant", "delete", tenant).returncode == 2
    assert cli("admin", "tenant", "delete", tenant, "--yes").returncode == 0
    assert cli("admin", "user", "list", token=token).returncode == 4
    assert cli("admin", "nonsense").returncode == 2
    assert cli("admin", "user", "role", "1").returncode == 2


def test_admin_takedown_removes_a_share(cli, before):
    link = pushed(cli, before)
    result = cli("admin", "share", "takedown", link, "--reason", "a test")
    assert result.returncode == 0, result.log
    assert cli("get", link, "-o", "-").returncode == 5


def test_open_starts_the_browser(cli, before, tmp_path):
    programs = tmp_path / "bin"
    programs.mkdir()
    browser = programs / "xdg-open"
    browser.write_text(f'#!/bin/sh\necho noise\necho "$1" > {tmp_path}/opened\n')
    browser.chmod(0o755)
    link = pushed(cli, before)
    result = cli("open", link[-22:], environment={"PATH": f"{programs}:/usr/bin:/bin"})
    assert result.returncode == 0 and result.out == "", result.log
    assert (tmp_path / "opened").read_text().strip() == link


def test_the_manual_documents_every_option_and_setting():
    pages = "".join(
        page.read_text().replace("\\-", "-") for page in (ROOT / "deploy" / "man").iterdir()
    )
    script = (ROOT / "deploy" / "completion" / "perfolio.bash").read_text()
    for option in set(re.findall(r" --([a-z][a-z-]+)", script)) - {"help", "normalised"}:
        assert f"Fl Fl {option}" in pages, option
    help_text = subprocess.run(
        [str(PERFOLIO.parent / "perfoliod"), "serve", "--help"],
        capture_output=True,
        text=True,
        timeout=30,
    ).stdout
    names = re.findall(r"^ *--([a-z][a-z0-9-]+)", help_text, re.MULTILINE)
    assert len(names) > 20
    for name in names:
        assert name == "help" or f"Fl Fl {name}" in pages, name


# ---- links to this server and to others ----


def test_a_link_may_use_another_name_of_this_host_than_the_account(cli, server, before, tmp_path):
    """Reading the team's share needs the token, so success proves that the token was sent."""
    link = pushed(cli, before, "--visibility", "team")
    assert link.startswith("https://localhost:")
    for host in ("127.0.0.1", "[::1]", "LOCALHOST"):
        other = link.replace("localhost", host)
        got = cli("get", other, "-o", "-")
        assert got.returncode == 0 and got.stdout == BEFORE, got.log
        assert cli("top", other).returncode == 0
    by_address = server.url.replace("localhost", "127.0.0.1")
    assert cli("get", link, "-o", "-", url=by_address).stdout == BEFORE
    assert cli("delete", link.replace("localhost", "127.0.0.1")).returncode == 0
    assert cli("get", link, "-o", "-").returncode == 5


def test_links_to_other_servers_use_the_ca_file_but_not_the_token(
    cli, server, before, start_server, tmp_path
):
    other = start_server()
    environment = {"PERFOLIO_CA_FILE": str(other.ca_file)}
    link = pushed(cli, before, url=other.url, token=other.token, environment=environment)
    team = pushed(
        cli,
        before,
        "--visibility",
        "team",
        url=other.url,
        token=other.token,
        environment=environment,
    )
    untrusted = cli("get", link, "-o", "-")
    assert (
        untrusted.returncode == 4 and "ca.crt does not contain the server's CA" in untrusted.log
    ), untrusted.log
    both = tmp_path / "both.crt"
    both.write_bytes(other.ca_file.read_bytes() + server.ca_file.read_bytes())
    environment = {"PERFOLIO_CA_FILE": str(both)}
    assert cli("get", link, "-o", "-", environment=environment).stdout == BEFORE
    assert cli("get", team, "-o", "-", environment=environment).returncode in (4, 5)
