"""The commands of README.md and of the manual pages, and the options that the pages document.

The commands run unchanged, apart from addresses. tests/fresh.sh runs make run and make test. The
documented options are compared with those in the output of --help.
"""

import http.server
import os
import re
import subprocess
import sys
import threading

import pytest

import sample_profiles
from conftest import BUILD, PERFOLIO, ROOT

sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import pprof_maker  # noqa: E402


def commands():
    """Each line of the README's shell blocks that calls perfolio or curl, without its comment."""
    blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)
    lines = [re.sub(r"\s+# .*$", "", line) for block in blocks for line in block.splitlines()]
    return [line for line in lines if re.match(r"(perfolio|curl) ", line)]


# Commands about continuous profiles print no link: {part of the command: part of its output}.
INSTEAD_OF_A_LINK = {
    "--series": "values added",
    "/api/v1/profiles": '"samples":',
    "perfolio query": "cpu: ",
}


class ProfileHandler(http.server.BaseHTTPRequestHandler):
    """A program that serves its profile, as Go's net/http/pprof does."""

    def do_GET(self):
        body = sample_profiles.pprof()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def profiled_program():
    program = http.server.ThreadingHTTPServer(("127.0.0.1", 0), ProfileHandler)
    threading.Thread(target=program.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{program.server_address[1]}"
    program.shutdown()


@pytest.fixture(scope="module")
def recent(server):
    """Stores recent profiles, which the queries of README and manual find."""
    for service in ("api", "checkout"):
        sent = server.api(token=server.token).post(
            "/api/v1/profiles",
            sample_profiles.pprof(),
            query={"name": "process_cpu", "label": f"service_name={service}", "time": "now-1min"},
        )
        assert sent.status == 200, sent.body


def test_the_readme_has_commands():
    assert len(commands()) >= 6


@pytest.mark.parametrize("command", commands())
def test_each_command_of_the_readme_succeeds(command, server, recent, profiled_program, tmp_path):
    for name in re.findall(r"[\w-]+\.pb\.gz", command):
        (tmp_path / name).write_bytes(sample_profiles.pprof())
    line = (
        command.replace("http://localhost:6060", profiled_program)
        .replace("https://localhost:7443", server.url)
        .replace("perfolio-data/tls/ca.crt", str(server.ca_file))
    )
    environment = {
        **os.environ,
        "PATH": f"{BUILD}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "PERFOLIO_URL": server.url,
        "PERFOLIO_CA_FILE": str(server.ca_file),
        "PERFOLIO_TOKEN": server.token,
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
    }
    done = subprocess.run(
        ["bash", "-euc", line],
        cwd=tmp_path,
        env=environment,
        timeout=60,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    summary = tmp_path / "summary"
    output = done.stdout + (summary.read_text() if summary.exists() else "")
    expected = next(
        (words for part, words in INSTEAD_OF_A_LINK.items() if part in command), f"{server.url}/"
    )
    assert expected in output, output


# ---- manual pages ----

# Examples that cannot run here: they need capabilities, other programs, or a certain process.
SKIPPED_EXAMPLES = ("perfolio record", "duckdb", "source <(perfolio completion")


def examples():
    """Each command in the EXAMPLES of the manual pages, in the syntax of the shell."""
    found = []
    for page in sorted((ROOT / "deploy/man").glob("perfolio*.1")):
        text = page.read_text().partition(".Sh EXAMPLES\n")[2].partition("\n.Sh ")[0]
        text = re.sub(r"\\e\n\s*", "", text)
        for line in text.splitlines():
            line = re.sub(r"^(\.Dl )?([$#] )?", "", line)
            if re.match(r"(perfolio|link=|source)", line):
                found.append(line)
    return found


def test_the_manual_has_examples():
    assert len(examples()) > 12


@pytest.fixture(scope="module")
def stored(server):
    """Stores profiles that the queries of the manual find."""
    maker = pprof_maker.Maker([("cpu", "nanoseconds")])
    work = maker.location([(maker.function("work", "work.c"), 7)])
    maker.sample([work], [7], [("thread.name", "worker"), ("trace_id", "0123456789abcdef" * 2)])
    maker.scalars(period=1, period_type=("cpu", "nanoseconds"))
    heap = pprof_maker.Maker([("inuse_space", "bytes")])
    heap.sample([heap.location([(heap.function("keep", "keep.c"), 7)])], [64])
    heap.scalars(period=1, period_type=("space", "bytes"))
    for name, labels, time, data in (
        ("process_cpu", ["service_name=api", "pod=a"], "now-1min", maker.bytes()),
        ("process_cpu", ["service_name=api", "pod=a"], "now-90min", maker.bytes()),
        ("process_cpu", ["service_name=api", "pod=a"], "now-23h", maker.bytes()),
        ("memory", ["service_name=api"], "now-1min", heap.bytes()),
    ):
        query = [("name", name), ("time", time), *(("label", label) for label in labels)]
        sent = server.api(server.token).post("/api/v1/profiles", data, query=query)
        assert sent.status == 200, sent


@pytest.mark.parametrize(
    "command", [line for line in examples() if not line.startswith(SKIPPED_EXAMPLES)]
)
def test_each_example_of_the_manual_succeeds(command, server, stored, profiled_program, tmp_path):
    environment = {
        **os.environ,
        "PATH": f"{BUILD}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "PERFOLIO_URL": server.url,
        "PERFOLIO_CA_FILE": str(server.ca_file),
        "PERFOLIO_TOKEN": server.token,
    }

    def run(line):
        return subprocess.run(
            ["bash", "-euc", line],
            cwd=tmp_path,
            env=environment,
            timeout=120,
            capture_output=True,
            text=True,
        )

    for index, name in enumerate(re.findall(r"[\w-]+\.pb\.gz", command)):
        if "-o " + name not in command:
            (tmp_path / name).write_bytes(sample_profiles.pprof(seed=index + 1))
    (tmp_path / ".config/fish/completions").mkdir(parents=True)
    (tmp_path / "server.c").write_text("int main(void) { return 0; }\n")
    subprocess.run(
        ["gcc", "-g", "-Wl,--build-id", "-o", "server", "server.c"],
        cwd=tmp_path,
        check=True,
        timeout=60,
    )
    if "debuginfo show" in command:
        assert run("perfolio debuginfo build -o server.symbols ./server").returncode == 0
    line = command.replace("http://localhost:6060", profiled_program)
    line = re.sub(r"/usr/lib/debug/\S+|\b2d6912fd3dd64542\b", "./server", line)
    if "https://profiles.example.org/p/" in line:
        (tmp_path / "cpu.pb.gz").write_bytes(sample_profiles.pprof())
        line = re.sub(
            r"https://profiles\.example\.org/p/\w+",
            run("perfolio push cpu.pb.gz").stdout.strip(),
            line,
        )
    done = run(line)
    assert done.returncode == 0, (line, done.stderr)


MANUAL = ROOT / "deploy/man"
# Commands without options, which perfolio.1 explains completely.
WITHOUT_PAGE = {"version", "help"}
# Separate programs, whose pages are beside those of perfolio's commands.
PROGRAMS = {"symbolize"}


def output_of(*arguments):
    return subprocess.run(
        [str(PERFOLIO), *arguments],
        env={"HOME": "/nonexistent"},
        timeout=60,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def commands_of_the_program():
    return re.findall(r"^  ([a-z]+) +\S", output_of("help").partition("PERFOLIO_URL")[0], re.M)


def options_of(command):
    """Long and short options of --help, without dashes; a line may name two forms of one option."""
    heads = re.findall(r"^ +(-\S.*?)(?:   .*)?$", output_of(command, "--help"), re.M)
    return {match for head in heads for match in re.findall(r"(?:^|[ ,])--?([\w?][\w-]*)", head)}


def documented_options(page):
    """The options at the head of list entries."""
    lines = re.findall(r"^\.It (.*)", page, re.M)
    return {
        option
        for line in lines
        for option in re.findall(r"\bFl (?:Fl )?(?:\\&)?([\w?][\w-]*)", line)
        if option != "Fl"
    }


def test_commands_and_manual_pages_correspond():
    names = commands_of_the_program()
    assert {"push", "open", "logout", "completion", *WITHOUT_PAGE} <= set(names)
    pages = {path.stem.partition("-")[2] for path in MANUAL.glob("perfolio-*.1")}
    assert pages - PROGRAMS == set(names) - WITHOUT_PAGE
    general, _, also = (MANUAL / "perfolio.1").read_text().partition(".Sh SEE ALSO")
    for name in names:
        assert re.search(rf"^\.It Cm {name}\b", general, re.M), name
        if name not in WITHOUT_PAGE:
            assert f".Xr perfolio-{name} 1" in general and f".Xr perfolio-{name} 1" in also, name


@pytest.mark.parametrize(
    "command",
    sorted({path.stem.partition("-")[2] for path in MANUAL.glob("perfolio-*.1")} - PROGRAMS),
)
def test_each_manual_page_lists_exactly_the_options_of_its_command(command):
    page = (MANUAL / f"perfolio-{command}.1").read_text()
    options = options_of(command)
    assert "help" in options
    if command == "admin":  # its page documents options in the descriptions of subcommands
        options -= {"?"}
        documented = set(re.findall(r"Fl Fl ([\w-]+)", page))
    else:
        documented = documented_options(page)
    assert documented == options
