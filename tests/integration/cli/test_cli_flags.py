"""Runs every documented option of every command at least once against the real server.

With CLIENT_BUILD=asan the programs are built with AddressSanitizer and
UndefinedBehaviorSanitizer, and their reports fail the test."""

import json
import os
import re
import subprocess

import pytest

import sample_profiles
from conftest import PERFOLIO
from test_docs import options_of, pprof_maker, profiled_program, stored  # noqa: F401  (fixtures)
from test_record import REFUSAL, SOURCE

SANITIZER = re.compile(r"AddressSanitizer|LeakSanitizer|runtime error:|UndefinedBehavior")
FILTERS = [
    "--focus",
    ".",
    "--ignore",
    "^no such$",
    "--hide",
    "^no such$",
    "--show",
    ".",
    "--limit",
    "5",
    "--json",
]
SHARED = [
    "--title",
    "Title",
    "--description",
    "*text*",
    "--expires",
    "1d",
    "--label",
    "job=ci",
    "--name",
    "n.folded",
    "--json",
    "--quiet",
]
QUERY = 'process_cpu:cpu:nanoseconds{service_name="api"}'

# (accepted exit statuses, arguments); the fixture places fills in {…}.
RUNS = [
    ([0], "push", "--merge", *SHARED, "--visibility", "team", "{a}", "{b}"),
    ([0], "push", "--no-check", "--markdown", "--open", "{a}"),
    ([0], "push", "--seconds", "1", "{url}/debug/pprof/profile"),
    ([0], "push", "--password-file", "{secret}", "{a}"),
    ([0], "push", "--series", "service_name=flags", "--format", "profile", "{a}"),
    (
        [0],
        "diff",
        "--local",
        "--normalized",
        *FILTERS,
        "--label",
        "thread.name=worker",
        "--group-by",
        "function",
        "--sample-type",
        "cpu",
        "--quiet",
        "{c}",
        "{d}",
    ),
    (
        [0],
        "diff",
        "--normalised",
        "--expires",
        "1d",
        "--visibility",
        "team",
        "--markdown",
        "--open",
        "{a}",
        "{b}",
    ),
    ([0], "diff", "--password-file", "{secret}", "{protected}", "{a}"),
    (
        [0],
        "top",
        *FILTERS,
        "--label",
        "thread.name=worker",
        "--group-by",
        "file",
        "--sample-type",
        "cpu",
        "{c}",
    ),
    ([0], "top", "--password-file", "{secret}", "{protected}"),
    (
        [0],
        "query",
        "--start",
        "yesterday",
        "--end",
        "now",
        *FILTERS,
        "--label",
        "pod=a",
        "--group-by",
        "thread.name",
        "--sample-type",
        "cpu",
        QUERY,
    ),
    (
        [0],
        "query",
        "--report",
        "folded",
        "--output",
        "{folder}/q.folded",
        "--force",
        "--start",
        "yesterday",
        QUERY,
    ),
    (
        [0],
        "query",
        "--share",
        "--keep-label",
        "*",
        "--title",
        "Title",
        "--expires",
        "1d",
        "--visibility",
        "team",
        "--json",
        "--start",
        "yesterday",
        QUERY,
    ),
    ([2], "query", "--password-file", "{secret}", QUERY),
    (
        [0],
        "export",
        "--parquet",
        "--start",
        "yesterday",
        "--end",
        "now",
        "--label",
        "thread.name=worker",
        "--output",
        "{folder}/q.parquet",
        "--force",
        QUERY,
    ),
    ([0], "usage", "--start", "now-2d", "--end", "today", "--json"),
    ([0], "get", "--format", "folded", "--output", "{folder}/got", "--force", "--quiet", "{link}"),
    (
        [0],
        "get",
        "--password-file",
        "{secret}",
        "--output",
        "{folder}/got",
        "--force",
        "{protected}",
    ),
    ([0], "delete", "--token", "{delete_token}", "--quiet", "{deleted}"),
    ([0], "list", "--limit", "3", "--json"),
    ([0], "list", "--local"),
    ([0], "open", "{link}"),
    ([0], "merge", "--output", "{folder}/merged.pb.gz", "--force", "{a}", "{b}"),
    ([0], "merge", *SHARED, "--visibility", "team", "{a}", "{b}"),
    ([0], "merge", "--markdown", "--password-file", "{secret}", "{a}", "{b}"),
    (
        [0],
        "debuginfo",
        "build",
        "--output",
        "{folder}/spin.symbols",
        "--force",
        "--quiet",
        "{program}",
    ),
    ([0], "debuginfo", "show", "--names", "full", "{folder}/spin.symbols", "0x1140"),
    (
        [5],
        "debuginfo",
        "build",
        "--output",
        "{folder}/no.symbols",
        "--alternate-file",
        "/no/such",
        "{program}",
    ),
    ([0], "debuginfo", "upload", "--raw", "{program}"),
    ([0], "debuginfo", "upload", "--executable", "{program}"),
    ([0], "debuginfo", "check", "--json", "{program}"),
    # The operator of the test server has turned upstreams off.
    ([1], "debuginfo", "upstreams", "https://debuginfod.example.com/", "--header-file", "{secret}"),
    ([0], "debuginfo", "upstreams"),
    ([0], "login", "--ca-file", "{ca}", "--token-file", "{token}"),
    ([0], "login", "--ca-file", "{ca}", "--anonymous"),
    ([0], "logout"),
    ([0], "completion", "bash"),
    ([0], "version"),
    ([0], "help"),
    ([0], "admin", "tenant", "list", "--json"),
    (
        [0],
        "admin",
        "token",
        "create",
        "flags",
        "--scopes",
        "read",
        "--expires",
        "1d",
        "--tenant",
        "{tenant}",
    ),
    (
        [0],
        "admin",
        "user",
        "add",
        "flags@example.org",
        "--tenant",
        "{tenant}",
        "--role",
        "viewer",
        "--name",
        "Flags",
    ),
    ([0], "admin", "share", "takedown", "{taken}", "--reason", "test"),
    (
        [0],
        "admin",
        "profiles",
        "delete",
        '{{service_name="flags"}}',
        "--start",
        "2020-01-01",
        "--end",
        "now",
        "--yes",
    ),
    (
        [0],
        "admin",
        "retention",
        "set",
        '{{env="flags"}}',
        "--keep",
        "3d",
        "--totals",
        "1y",
        "--position",
        "1",
    ),
]
RECORDINGS = [
    (
        [0],
        "record",
        "--pid",
        "{pid}",
        "--duration",
        "1",
        "--frequency",
        "199",
        "--output",
        "{folder}/1.pb.gz",
        "--frame-pointers",
        "--bounded-loops",
        "--force",
        "--quiet",
        "--progress",
    ),
    ([0], "record", "--all", "--duration", "1", "--no-names", "--output", "{folder}/2.pb.gz"),
    (
        [0],
        "record",
        "--event",
        "cpu-clock",
        "--top",
        "--output",
        "{folder}/3.pb.gz",
        "--duration",
        "2",
        "--pid",
        "{pid}",
    ),
    (
        [0],
        "record",
        "--off-cpu",
        "--min-off-cpu",
        "1",
        "--duration",
        "1",
        "--output",
        "{folder}/4.pb.gz",
        "--pid",
        "{pid}",
    ),
    ([0], "record", "--wall", "--duration", "1", "--output", "{folder}/5.pb.gz", "--pid", "{pid}"),
    (
        [0],
        "record",
        "--share",
        "--title",
        "Title",
        "--description",
        "text",
        "--expires",
        "1d",
        "--visibility",
        "team",
        "--json",
        "--open",
        "--duration",
        "1",
        "--pid",
        "{pid}",
    ),
]


def name_of(run):
    return " ".join(argument for argument in run[1:] if not argument.startswith("{"))[:60]


@pytest.fixture(scope="module")
def call(server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("flags")
    environment = {
        "HOME": str(folder),
        "PATH": os.environ["PATH"],
        "PERFOLIO_URL": server.url,
        "BROWSER": "true",
        "PERFOLIO_TOKEN": server.token,
        "PERFOLIO_CA_FILE": str(server.ca_file),
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }

    def run(*arguments):
        # login and logout run without these variables: login reads the files named in arguments.
        run_environment = {
            key: value
            for key, value in environment.items()
            if arguments[0] not in ("login", "logout")
            or key not in ("PERFOLIO_TOKEN", "PERFOLIO_CA_FILE")
        }
        done = subprocess.run(
            [str(PERFOLIO), *arguments],
            cwd=folder,
            env=run_environment,
            capture_output=True,
            text=True,
            timeout=300,
            stdin=subprocess.DEVNULL,
        )
        assert not SANITIZER.search(done.stderr), done.stderr
        return done

    run.folder = folder
    return run


@pytest.fixture(scope="module")
def places(call, server, stored, profiled_program):  # noqa: F811
    """Values for the placeholders in RUNS: files, shares and the process ID of a busy program."""
    folder = call.folder
    files = {name: folder / name for name in ("a.folded", "b.folded", "secret", "token", "spin")}
    files["a.folded"].write_bytes(sample_profiles.FOLDED)
    files["b.folded"].write_bytes(sample_profiles.FOLDED_SLOWER)
    files["secret"].write_text("X-Key: correct horse battery staple\n")
    files["token"].write_text(server.token + "\n")
    for name, value in (("c.pb", 7), ("d.pb", 9)):
        maker = pprof_maker.Maker([("cpu", "nanoseconds")])
        maker.sample(
            [maker.location([(maker.function("work", "work.c"), 7)])],
            [value],
            [("thread.name", "worker")],
        )
        maker.scalars(period=1, period_type=("cpu", "nanoseconds"))
        (folder / name).write_bytes(maker.bytes())
    tenants = json.loads(call("admin", "tenant", "list", "--json").stdout)["tenants"]
    (folder / "spin.c").write_text(SOURCE)
    subprocess.run(
        ["gcc", "-g", "-O1", "-fno-omit-frame-pointer", "-Wl,--build-id", "spin.c", "-o", "spin"],
        check=True,
        cwd=folder,
        timeout=60,
    )
    shares = [json.loads(call("push", "--json", str(files["a.folded"])).stdout) for _ in range(3)]
    protected = json.loads(
        call(
            "push", "--json", "--password-file", str(files["secret"]), str(files["a.folded"])
        ).stdout
    )
    busy = subprocess.Popen(["bash", "-c", "while :; do :; done"], stdout=subprocess.DEVNULL)
    yield {
        "a": files["a.folded"],
        "b": files["b.folded"],
        "c": folder / "c.pb",
        "d": folder / "d.pb",
        "tenant": max(tenant["id"] for tenant in tenants),
        "secret": files["secret"],
        "token": files["token"],
        "program": files["spin"],
        "folder": folder,
        "ca": server.ca_file,
        "url": profiled_program,
        "pid": busy.pid,
        "link": shares[0]["url"],
        "deleted": shares[1]["url"],
        "delete_token": shares[1]["delete_token"],
        "taken": shares[2]["url"],
        "protected": protected["url"],
    }
    busy.kill()
    busy.wait()


def check(call, places, run):
    statuses, *arguments = run
    # QUERY contains braces that are no placeholders.
    filled = [
        argument if argument == QUERY else argument.format(**places) for argument in arguments
    ]
    done = call(*filled)
    assert done.returncode in statuses, (filled, done.stderr)


@pytest.mark.parametrize("run", RUNS, ids=name_of)
def test_commands_accept_their_options(call, places, run):
    check(call, places, run)


@pytest.mark.long
@pytest.mark.skipif(REFUSAL is not None, reason=f"the kernel refuses: {REFUSAL}")
@pytest.mark.parametrize("run", RECORDINGS, ids=name_of)
def test_recordings_accept_their_options(call, places, run):
    check(call, places, run)


COMMANDS = sorted({run[1] for run in RUNS + RECORDINGS})


@pytest.mark.parametrize("command", COMMANDS)
def test_each_option_of_a_command_occurs_in_a_run(call, command):
    for option in ("--help", "--usage"):
        assert call(command, option).returncode == 0
    run = {
        argument.partition("=")[0][2:]
        for one in RUNS + RECORDINGS
        if one[1] == command
        for argument in one[2:]
        if argument.startswith("--")
    }
    options = {option for option in options_of(command) if len(option) > 1} - {"help", "usage"}
    assert options - run == set(), f"no run of test_cli_flags.py has these options of {command}"


def test_all_commands_occur_in_runs(call):
    listed = re.findall(r"^  ([a-z]+) +\S", call("help").stdout.partition("PERFOLIO_URL")[0], re.M)
    assert sorted(listed) == COMMANDS
