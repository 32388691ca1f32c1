"""The commands of README.md, run as they stand there (make run and make test are tests/fresh.sh's);
and the manual pages, against what the commands say of themselves."""

import http.server
import os
import re
import subprocess
import threading

import pytest

import sample_profiles
from conftest import BUILD, PERFOLIO, ROOT


def commands():
    """Each line of the README's shell blocks that calls perfolio or curl, without its remark."""
    blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)
    lines = [re.sub(r"\s+# .*$", "", line) for block in blocks for line in block.splitlines()]
    return [line for line in lines if re.match(r"(perfolio|curl) ", line)]


# What commands about continuous profiles print, by a part of them.
INSTEAD_OF_A_LINK = {"--series": "values added", "/api/v1/profiles": '"samples":',
                     "perfolio query": "cpu: "}


class ProfileHandler(http.server.BaseHTTPRequestHandler):
    """A program that offers its profile, as Go's net/http/pprof does."""

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
    """What the queries of README and manual find: profiles that began a moment ago."""
    for service in ("api", "checkout"):
        sent = server.api(token=server.token).post("/api/v1/profiles", sample_profiles.pprof(), query={
            "name": "process_cpu", "label": f"service_name={service}", "time": "now-1min"})
        assert sent.status == 200, sent.body


def test_the_readme_has_commands():
    assert len(commands()) >= 6


@pytest.mark.parametrize("command", commands())
def test_a_command_of_the_readme(command, server, recent, profiled_program, tmp_path):
    for name in re.findall(r"[\w-]+\.pb\.gz", command):
        (tmp_path / name).write_bytes(sample_profiles.pprof())
    line = (command.replace("http://localhost:6060", profiled_program)
            .replace("https://localhost:7443", server.url)
            .replace("perfolio-data/tls/ca.crt", str(server.ca_file)))
    environment = {**os.environ, "PATH": f"{BUILD}:{os.environ['PATH']}", "HOME": str(tmp_path),
                   "XDG_STATE_HOME": str(tmp_path / "state"), "PERFOLIO_URL": server.url,
                   "PERFOLIO_CA_FILE": str(server.ca_file), "PERFOLIO_TOKEN": server.token,
                   "GITHUB_STEP_SUMMARY": str(tmp_path / "summary")}
    done = subprocess.run(["bash", "-euc", line], cwd=tmp_path, env=environment, timeout=60,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    summary = tmp_path / "summary"
    said = done.stdout + (summary.read_text() if summary.exists() else "")
    wanted = next((words for part, words in INSTEAD_OF_A_LINK.items() if part in command),
                  f"{server.url}/")
    assert wanted in said, said


# ---- manual pages ----

MANUAL = ROOT / "deploy/man"
# What perfolio.1 explains whole: they take nothing that a page of their own could tell.
WITHOUT_PAGE = {"version", "help"}
# Programs of their own, whose pages are beside those of perfolio's commands.
PROGRAMS = {"symbolize"}


def said(*arguments):
    return subprocess.run([str(PERFOLIO), *arguments], env={"HOME": "/nonexistent"}, timeout=60,
                          check=True, capture_output=True, text=True).stdout


def commands_of_the_program():
    return re.findall(r"^  ([a-z]+) +\S", said("help").partition("PERFOLIO_URL")[0], re.M)


def options_of(command):
    """Long and short options of --help, without dashes; a line may name two of one meaning."""
    heads = re.findall(r"^ +(-\S.*?)(?:   .*)?$", said(command, "--help"), re.M)
    return {match for head in heads for match in re.findall(r"(?:^|[ ,])--?([\w?][\w-]*)", head)}


def documented_options(page):
    """The options that head an entry of a list; in perfolio-admin(1) any that is named."""
    lines = re.findall(r"^\.It (.*)", page, re.M)
    return {option for line in lines for option in re.findall(r"\bFl (?:Fl )?(?:\\&)?([\w?][\w-]*)", line)
            if option != "Fl"}


def test_each_command_has_a_page_and_no_page_is_of_none():
    names = commands_of_the_program()
    assert {"push", "open", "logout", "completion", *WITHOUT_PAGE} <= set(names)
    pages = {path.stem.partition("-")[2] for path in MANUAL.glob("perfolio-*.1")}
    assert pages - PROGRAMS == set(names) - WITHOUT_PAGE
    general, _, also = (MANUAL / "perfolio.1").read_text().partition(".Sh SEE ALSO")
    for name in names:
        assert re.search(rf"^\.It Cm {name}\b", general, re.M), name
        if name not in WITHOUT_PAGE:
            assert f".Xr perfolio-{name} 1" in general and f".Xr perfolio-{name} 1" in also, name


@pytest.mark.parametrize("command", sorted({path.stem.partition("-")[2]
                                            for path in MANUAL.glob("perfolio-*.1")} - PROGRAMS))
def test_a_page_has_the_options_of_its_command_and_no_others(command):
    page = (MANUAL / f"perfolio-{command}.1").read_text()
    options = options_of(command)
    assert "help" in options
    if command == "admin":  # its options stand in the calls that take them
        options -= {"?"}
        documented = set(re.findall(r"Fl Fl ([\w-]+)", page))
    else:
        documented = documented_options(page)
    assert documented == options
