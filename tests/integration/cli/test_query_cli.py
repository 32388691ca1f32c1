"""`perfolio query` and queries in `perfolio diff`, end to end.

Values are compared with a plain recomputation (tests/oracle/store_oracle.py). Syntax errors are
reported with their position.
"""

import datetime
import json
import re
import sys
import time

import pytest

from conftest import ROOT
from people import Tenant
from test_cli import cli  # noqa: F401
from test_store import BEGIN, CPU, CPU_NAMES, HEAP_NAMES, HOUR, make_profile
from test_store_shares import FIRST, SECOND_HOUR, Filled, compared, cums, folded

sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import pprof_reader  # noqa: E402

NAME = CPU_NAMES[1]
SECONDS = BEGIN // 10**9
WINDOW = ("--start", FIRST[0], "--end", FIRST[1])


@pytest.fixture(scope="module")
def filled(server):
    return Filled(server)


@pytest.fixture
def run_cli(cli, filled):  # noqa: F811
    token = filled.tenant.make_token("read", "share")["token"]

    def call(*arguments, **options):
        return cli(*arguments, token=token, **options)

    call.home = cli.home
    return call


def ok(result):
    assert result.returncode == 0, result.log
    return result.out


def test_query_prints_the_recomputed_values_as_table_and_json(run_cli, filled):
    wanted = cums(filled.merge(NAME, *FIRST, "p0"))
    response = json.loads(ok(run_cli("query", NAME + '{pod="p0"}', *WINDOW, "--json")))
    assert {row["name"]: row["cum"] for row in response["functions"]} == wanted
    table = ok(run_cli("query", f'{NAME}{{pod="p0"}}@{FIRST[0]}..{FIRST[1]}'))
    assert table.startswith("cpu: ") and all(name in table for name in wanted)
    assert ok(run_cli("query", NAME + '{pod="p0"}', *WINDOW)) == table
    hour = ok(run_cli("query", f'{NAME}{{pod="p0"}}@{SECONDS}'))  # the hour that begins at SECONDS
    assert hour == table
    focused = json.loads(
        ok(run_cli("query", NAME, *WINDOW, "--json", "--ignore", "^idle$", "--limit", 1))
    )
    assert len(focused["functions"]) == 1 and focused["functions"][0]["name"] == "work"


def test_query_writes_each_kind_of_report(run_cli, filled, tmp_path):
    wanted = filled.merge(NAME, *FIRST)
    lines = ok(run_cli("query", NAME, *WINDOW, "--report", "folded")).splitlines()
    assert {
        tuple(line.rpartition(" ")[0].split(";")): int(line.rpartition(" ")[2]) for line in lines
    } == wanted
    file = tmp_path / "out.pb.gz"
    ok(run_cli("query", NAME, *WINDOW, "--report", "pprof", "-o", file))
    top = pprof_reader.load(file).top(0)
    assert {name: cum for name, (flat, cum) in top.items()} == cums(wanted)
    again = run_cli("query", NAME, *WINDOW, "--report", "pprof", "-o", file)
    assert again.returncode != 0 and "out.pb.gz" in again.log
    ok(run_cli("query", NAME, *WINDOW, "--report", "pprof", "-f", "-o", file))
    assert json.loads(ok(run_cli("query", NAME, *WINDOW, "--report", "flame")))["root"][
        "value"
    ] == sum(wanted.values())
    assert ok(run_cli("query", NAME, *WINDOW, "--report", "svg", "--focus", "work")).startswith(
        "<svg"
    )


def test_query_groups_and_filters_by_labels(run_cli, filled, tmp_path):
    pods = {pod: filled.merge(NAME, *FIRST, pod) for pod in ("p0", "p1")}
    lines = ok(
        run_cli(
            "query", NAME + '{pod=~"p[01]"}', *WINDOW, "--report", "folded", "--group-by", "pod"
        )
    ).splitlines()
    assert {
        tuple(line.rpartition(" ")[0].split(";")): int(line.rpartition(" ")[2]) for line in lines
    } == {(pod, *stack): value for pod, stacks in pods.items() for stack, value in stacks.items()}
    response = json.loads(ok(run_cli("query", NAME, *WINDOW, "--json", "--label", "pod=p0")))
    assert {row["name"]: row["cum"] for row in response["functions"]} == cums(pods["p0"])
    file = tmp_path / "labelled.pb.gz"
    ok(
        run_cli(
            "query",
            NAME,
            *WINDOW,
            "--report",
            "pprof",
            "--label",
            "pod=p0",
            "--group-by",
            "pod",
            "-o",
            file,
        )
    )
    top = pprof_reader.load(file).top(0)
    assert {name: cum for name, (flat, cum) in top.items()} == cums(pods["p0"])
    wrong = run_cli("query", NAME, *WINDOW, "--group-by", "pot")
    assert (
        wrong.returncode != 0
        and "'pot' is no label of what the query finds, which has 'pod'" in wrong.log
    )
    unknown = run_cli("query", "process_cpu:wall", *WINDOW)
    assert unknown.returncode != 0 and NAME in unknown.log


def test_query_share_creates_a_share_that_can_be_deleted(run_cli, filled, server):
    result = run_cli(
        "query", NAME, *WINDOW, "--share", "--title", "first hour", "--visibility", "team"
    )
    url = ok(result).strip()
    share = re.fullmatch(r"https://localhost:\d+/p/([0-9A-Za-z]{22})", url).group(1)
    assert folded(filled.client, share) == filled.merge(NAME, *FIRST)
    facts = filled.client.get(f"/api/v1/shares/{share}").json()
    assert (facts["title"], facts["visibility"]) == ("first hour", "team")
    ok(run_cli("delete", url))
    assert filled.client.get(f"/api/v1/shares/{share}").status == 410
    default = run_cli("query", NAME, *WINDOW, "--share")
    assert "visible  to your team" in default.log
    shared = filled.client.get(f"/api/v1/shares/{ok(default).strip()[-22:]}").json()
    assert shared["visibility"] == "team"
    assert server.api("").get(f"/api/v1/shares/{shared['id']}").status in (401, 403, 404)
    made = json.loads(
        ok(
            run_cli(
                "query",
                NAME,
                *WINDOW,
                "--share",
                "--json",
                "--keep-label",
                "pod",
                "--visibility",
                "unlisted",
            )
        )
    )
    assert filled.client.get(f"/api/v1/shares/{made['id']}").json()["visibility"] == "unlisted"
    assert made["id"] in made["url"]
    labels = filled.client.get(f"/api/v1/shares/{made['id']}/labels").json()["labels"]
    assert [one["key"] for one in labels] == ["pod"]
    assert "--keep-label need --share" in run_cli("query", NAME, "--keep-label", "pod").log


def diff_rows(text):
    return {row["name"]: (row["cum_a"], row["cum_b"]) for row in json.loads(text)["functions"]}


def test_local_diff_compares_windows(run_cli, filled, tmp_path):
    first, second = filled.merge(NAME, *FIRST), filled.merge(NAME, *SECOND_HOUR)
    a, b = f"{NAME}@{FIRST[0]}..{FIRST[1]}", f'{NAME}{{pod=~"p."}}@{SECONDS + 3600}'
    local = ("diff", "--local", "--json", "--limit", 0)
    assert diff_rows(ok(run_cli(*local, a, b))) == compared(first, second)
    file = tmp_path / "first.pb.gz"
    ok(run_cli("query", a, "--report", "pprof", "-o", file))
    assert diff_rows(ok(run_cli(*local, b, file))) == compared(second, first)
    pods = [filled.merge(NAME, *FIRST, pod) for pod in ("p0", "p1")]
    window = f"@{FIRST[0]}..{FIRST[1]}"
    assert diff_rows(
        ok(run_cli(*local, f'{NAME}{{pod="p0"}}{window}', f'{NAME}{{pod="p1"}}{window}'))
    ) == compared(*pods)


WINDOW_LINE = (
    r"{}: (\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d) to ((?:\d{{4}}-\d\d-\d\d )?\d\d:\d\d:\d\d) UTC  (.*)"
)


@pytest.mark.parametrize("options", [[], ["--local"]])
def test_a_side_of_a_diff_without_a_window_means_the_last_hour(run_cli, filled, options):
    """An earlier version used the window of the other side and compared the query with itself. Both
    windows are printed."""
    result = run_cli("diff", *options, f"{NAME}@{FIRST[0]}..{FIRST[1]}", NAME + "{}")
    assert (
        result.returncode == 5 and f"no data in this window matches {NAME}{{}}" in result.log
    ), result.log
    before, after = (
        re.search(WINDOW_LINE.format(name), result.log) for name in ("before", "after")
    )
    at = [datetime.datetime.fromtimestamp(SECONDS + s, datetime.timezone.utc) for s in (0, 3600)]
    assert before[1] == at[0].strftime("%Y-%m-%d %H:%M:%S"), result.log
    assert before[2].endswith(at[1].strftime("%H:%M:%S")) and before[3] == NAME
    start = datetime.datetime.strptime(after[1] + "Z", "%Y-%m-%d %H:%M:%S%z").timestamp()
    assert 0 <= time.time() - start - 3600 < 600, result.log


@pytest.mark.parametrize("options", [[], ["--local"]])
@pytest.mark.parametrize(
    "windows",
    [
        ["@now-1h..now", ""],
        ["@now-25h..now-24h", "@now-25h..now-24h"],
        ["@now-1d..now", "@now-24h..now"],
        ["", ""],
    ],
)
def test_diff_refuses_two_sides_with_the_same_query(run_cli, options, windows):
    result = run_cli("diff", *options, *(NAME + "{}" + window for window in windows))
    assert (
        result.returncode == 2 and "both sides are the same query of the same window" in result.log
    )
    assert "before: " in result.log and "after: " in result.log


@pytest.mark.parametrize(
    "options, message",
    [
        (["--local"], "values are totals of each window"),
        (["--markdown"], "values are totals of each window"),
        (["--local", "--normalized"], "after is scaled to the total of before"),
    ],
)
def test_diff_warns_of_windows_of_different_lengths(run_cli, options, message):
    before, after = f"{NAME}@{SECONDS}..{SECONDS + 1800}", f"{NAME}@{SECONDS}..{SECONDS + 3600}"
    result = run_cli("diff", *options, before, after)
    assert (
        result.returncode == 0
        and "not equally long, 30.00 min before and 1.00 h after: " in result.log
    ), result.log
    assert message in result.log and ("warning: " in result.log) == ("--normalized" not in options)
    same = run_cli("diff", "--local", f"{NAME}@{SECONDS}", f"{NAME}@{SECONDS + 3600}")
    assert same.returncode == 0 and "equally long" not in same.log, same.log


def test_diff_prints_a_link_that_compares_windows(run_cli, filled):
    a, b = f"{NAME}@{FIRST[0]}..{FIRST[1]}", f'{NAME}{{pod=~"p."}}@{SECONDS + 3600}'
    url = ok(run_cli("diff", a, b)).strip()
    ids = re.fullmatch(
        r"https://localhost:\d+/d/([0-9A-Za-z]{22})\.\.([0-9A-Za-z]{22})", url
    ).groups()
    for share, window in zip(ids, (FIRST, SECOND_HOUR)):
        assert folded(filled.client, share) == filled.merge(NAME, *window)
    mixed = ok(run_cli("diff", ids[0], b)).strip()
    assert mixed.rpartition("/")[2].startswith(ids[0] + "..")


@pytest.mark.parametrize(
    "arguments, status, lines",
    [
        (["cpu{pod=x}"], 7, ["  cpu{pod=x}", "          ^", "expected a value in quotes"]),
        (['cpu{pod="x"'], 7, ['  cpu{pod="x"', "             ^", "expected , or } at its end"]),
        (
            ['cpu{pöd="ü", q}'],
            7,
            ['  cpu{pöd="ü", q}', "                ^", "expected =, !=, =~ or !~"],
        ),
        (["cpu", "--start", "now-2x"], 7, ["  now-2x", "       ^", "start: 'now-2x'"]),
        (["cpu{}@now-2x..now"], 7, ["  now-2x", "       ^", "the window @now-2x..now: start"]),
        (["cpu{}@now-1h..now-2h"], 7, ["start must be before end"]),
        (["cpu{}@now-1h", "--end", "now"], 2, ["leave out --start and --end"]),
        ([], 2, ["give a selector"]),
        (["cpu{pod=x,", "q=y}"], 2, ["in quotes"]),
        (["cpu", "--report", "poem"], 2, ["--report is top"]),
        (["cpu", "--share", "--focus", "x"], 2, ["--share, which stores the whole profile"]),
        (["cpu", "--title", "x"], 2, ["need --share"]),
        (["cpu", "-o", "x"], 2, ["-o needs"]),
        (["cpu", "--report", "pprof", "--focus", "x"], 2, ["only --label and --group-by LABEL"]),
        (["cpu", "--report", "svg", "--json"], 2, ["--json needs"]),
        (["process_cpu", *WINDOW], 7, ["2 profile types match"]),
        (["cpu{}@now", "--share"], 7, ["finds no sample"]),
    ],
)
def test_a_syntax_error_is_reported_with_its_position(run_cli, arguments, status, lines):
    result = run_cli("query", *arguments)
    assert result.out == "" and result.returncode == status, (result.returncode, result.log)
    for line in lines[:-1]:
        assert line in result.log.splitlines(), result.log
    assert lines[-1] in result.log


def test_diff_reports_an_invalid_side_before_it_shares_the_other(run_cli, filled):
    def shares():
        return len(filled.client.get("/api/v1/shares").json()["shares"])

    count, good = shares(), f"{NAME}@{FIRST[0]}..{FIRST[1]}"
    for options in ([], ["--local"]):
        wrong = run_cli("diff", *options, good, "cpu{pod=x}@now-1h")
        assert wrong.returncode == 7 and "  cpu{pod=x}\n          ^\n" in wrong.log, wrong.log
    for options in ([], ["--local"]):
        empty = run_cli("diff", *options, good, 'cpu{pod="nobody"}')
        assert empty.returncode == 5 and "no data in this window matches" in empty.log, empty.log
    types = run_cli("diff", good, f"{HEAP_NAMES[1]}@{FIRST[0]}..{FIRST[1]}")
    assert types.returncode == 7 and "sample type" in types.log, types.log
    assert shares() == count


def test_an_empty_result_is_reported(run_cli, cli):  # noqa: F811
    nothing = 'cpu{pod="nobody"}'
    result = run_cli("query", nothing)
    assert result.returncode == 5 and f"no data in this window matches {nothing}" in result.log
    assert "--start" not in result.log and result.out == ""
    listed = run_cli("query", nothing, "--json")
    assert listed.returncode == 5 and json.loads(listed.out)["functions"] == []
    assert cli("query", "cpu", token=None).returncode == 4


def test_a_window_without_samples_is_reported_as_idle(server, cli, tmp_path):  # noqa: F811
    """The message does not suggest another window."""
    tenant = Tenant(server)
    client, token = tenant.api("ingest"), tenant.make_token("read", "share")["token"]
    body = make_profile(CPU, time.time_ns() - 10**10, {}, ("cpu", "nanoseconds"), 10**10)
    assert (
        client.post("/api/v1/profiles", body=body, query=[("label", "service_name=api")]).status
        == 200
    )
    file = tmp_path / "idle.pb.gz"
    for more in ([], ["--start", "now-30m"], ["--report", "pprof", "-o", file]):
        result = cli("query", 'cpu{service_name="api"}', *more, token=token)
        assert result.returncode == 5, result.log
        assert "have no samples: the program was idle" in result.log
        assert "--start" not in result.log and not file.exists()
    other = cli("query", 'cpu{service_name="apl"}', token=token)
    assert other.returncode == 5 and "no data in this window matches" in other.log, other.log


def test_filters_that_leave_nothing_are_an_error(run_cli, filled):
    result = run_cli("query", NAME, *WINDOW, "--focus", "^no such function$")
    assert result.returncode == 5 and "no sample of this window matches the filters" in result.log


@pytest.mark.parametrize("report", ["folded", "pprof", "flame", "svg"])
def test_no_file_is_written_when_no_data_matches(run_cli, tmp_path, report):
    file = tmp_path / "empty"
    result = run_cli("query", 'cpu{pod="nobody"}', "--report", report, "-o", file)
    assert result.returncode == 5 and "no data in this window matches" in result.log
    exported = run_cli("export", 'cpu{pod="nobody"}', "--parquet", "-o", file)
    assert (
        exported.returncode == 5 and "no data in this window matches" in exported.log
    ), exported.log
    assert not file.exists()


def test_an_unknown_service_is_reported_with_similar_names(server, cli):  # noqa: F811
    tenant = Tenant(server)
    token = tenant.make_token("ingest", "read")["token"]
    assert (
        "; no service has sent profiles in it"
        in cli("query", 'samples:count{service_name="api"}', token=token).log
    )
    for service in ("checkout", "cart", "payments"):
        assert (
            tenant.api("ingest")
            .post("/api/v1/profiles", b"main;work 7\n", query={"label": f"service_name={service}"})
            .status
            == 200
        )
    for typed, suggestion in (
        ("chekout", "; did you mean checkout?"),
        ("pay", "; did you mean payments?"),
        ("api", "; services with profiles in it: cart, checkout, payments"),
    ):
        result = cli("query", f'samples:count{{service_name="{typed}"}}', token=token)
        assert result.returncode == 5 and result.log.rstrip().endswith(suggestion), result.log
    assert (
        "did you mean"
        not in cli("query", 'samples:count{service_name=~"chekout"}', token=token).log
    )
    for quote in "\"'`":  # an existing service is not suggested, nor is a similar one
        result = cli(
            "query", f"samples:count{{service_name={quote}cart{quote},pod='x'}}", token=token
        )
        assert result.returncode == 5 and "did you mean" not in result.log, result.log
        assert "though the service cart has profiles in it: look at the profile type" in result.log
    assert (
        "did you mean"
        not in cli("query", 'samples:count{my_service_name="chekout"}', token=token).log
    )


def test_an_empty_result_names_the_time_of_the_newest_profile(server, cli):  # noqa: F811
    tenant = Tenant(server)
    token = tenant.make_token("ingest", "read")["token"]
    for time in ("2021-03-04T05:06:07.089Z", "2021-03-03T00:00:00Z"):
        assert (
            tenant.api("ingest")
            .post("/api/v1/profiles", b"main;work 7\n", query={"label": "pod=a", "time": time})
            .status
            == 200
        )
    hint = "begins at 2021-03-04T05:06:07.089Z: use --start 2021-03-04T05:06:07.089Z"
    result = cli("query", 'samples:count{pod="a"}', token=token)
    assert result.returncode == 5 and hint in result.log, result
    result = cli(
        "query", 'samples:count{pod="a"}', "--start", "2021-03-04T05:06:07.089Z", token=token
    )
    assert result.returncode == 0 and "work" in result.out and "--start" not in result.log, result
    result = cli("query", 'samples:count{pod="b"}', token=token)
    assert result.returncode == 5 and "--start" not in result.log, result


@pytest.mark.parametrize(
    "start", ["yesterday", "today", "2 days ago", "now-2d", "yesterday 00:00", "2026-01-01"]
)
def test_start_accepts_times_in_the_syntax_of_date(run_cli, filled, start):
    result = run_cli("query", 'cpu{pod="nobody"}', "--start", start)
    assert result.returncode == 5 and "no data in this window matches" in result.log, result.log
    assert run_cli("usage", "--start", start).returncode == 0


def test_query_warns_of_damaged_objects(start_server, cli):  # noqa: F811
    server = start_server("--jobs-interval", "1s")
    filled = Filled(server)
    server.stop()
    first = server.objects.oldest("segment/")
    data = bytearray(server.objects.read(first))
    data[len(data) // 2] ^= 1
    server.objects.write(first, bytes(data))
    server.start()
    token = filled.tenant.make_token("read")["token"]
    result = cli(
        "query",
        f"{NAME}@{BEGIN}..{BEGIN + 9 * HOUR}",
        "--json",
        "--limit",
        "0",
        token=token,
        url=server.url,
        environment={"PERFOLIO_CA_FILE": str(server.ca_file)},
    )
    rows = {row["name"]: row["cum"] for row in json.loads(ok(result))["functions"]}
    assert rows == cums(filled.merge(NAME, BEGIN + 1, BEGIN + 9 * HOUR))
    assert "broken and left out of the result; the first: segment/" in result.log
