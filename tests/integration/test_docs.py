"""The commands of README.md, run as they stand there (make run and make test are tests/fresh.sh's)."""

import http.server
import os
import re
import subprocess
import threading

import pytest

import sample_profiles
from conftest import BUILD, ROOT


def commands():
    """Each line of the README's shell blocks that calls perfolio or curl, without its remark."""
    blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)
    lines = [re.sub(r"\s+# .*$", "", line) for block in blocks for line in block.splitlines()]
    return [line for line in lines if re.match(r"(perfolio|curl) ", line)]


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


def test_the_readme_has_commands():
    assert len(commands()) >= 6


@pytest.mark.parametrize("command", commands())
def test_a_command_of_the_readme(command, server, profiled_program, tmp_path):
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
    assert f"{server.url}/" in said, said
