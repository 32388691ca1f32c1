"""Names from agents may hold escape sequences, newlines and marks that reverse text: terminals and
logs show none of these; files and JSON contain the exact bytes."""

import json
import os
import pty
import subprocess

from conftest import ROOT
from people import Tenant
from test_ingest_request import make_pprof
from test_limits import END
from test_store import BEGIN

EVIL = "\x1b]0;x\x07|\u202e|\n|\u009b2J|\u2066"
SHOWN = "?]0;x?|?|?|?2J|?"
FORBIDDEN = [*"\x1b\x07\u202e\u009b\u2066"]
PERFOLIO = ROOT / "build" / "release" / "perfolio"


def fill(server):
    """Creates a team with a profile whose service, label and function names contain EVIL."""
    tenant = Tenant(server)
    client = tenant.api("ingest", "read")
    response = client.post(
        "/api/v1/profiles",
        make_pprof(["f" + EVIL], file="/" + EVIL),
        query=[("label", f"service_name=s{EVIL}"), ("label", f"pod=p{EVIL}")],
    )
    assert response.status == 200, response
    return tenant, client


def run(server, tenant, home, *arguments, on_terminal=False):
    environment = {
        "HOME": str(home),
        "PATH": os.environ["PATH"],
        "TERM": "dumb",
        "LC_ALL": "C.UTF-8",
        "PERFOLIO_URL": server.url,
        "PERFOLIO_TOKEN": tenant.make_token("read")["token"],
        "PERFOLIO_CA_FILE": str(server.ca_file),
    }
    command = [str(PERFOLIO), *arguments]
    if not on_terminal:
        done = subprocess.run(command, env=environment, capture_output=True, timeout=60)
        return done.returncode, (done.stdout + done.stderr).decode()
    main, side = pty.openpty()
    process = subprocess.Popen(command, stdin=side, stdout=side, stderr=side, env=environment)
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
    return process.wait(60), seen.decode()


def assert_plain(text):
    assert not [letter for letter in FORBIDDEN if letter in text], repr(text)


WINDOW = ["--start", str(BEGIN), "--end", str(END)]


def test_tables_and_reports_on_terminals_show_plain_names(server, tmp_path):
    tenant, _ = fill(server)
    for on_terminal in (False, True):
        code, text = run(
            server, tenant, tmp_path, "query", "process_cpu:cpu", *WINDOW, on_terminal=on_terminal
        )
        assert code == 0 and f"f{SHOWN}" in text, text
        assert_plain(text)
        code, text = run(server, tenant, tmp_path, "usage", on_terminal=on_terminal)
        assert code == 0, text
        assert_plain(text)
    code, text = run(
        server,
        tenant,
        tmp_path,
        "query",
        "process_cpu:cpu",
        "--report",
        "folded",
        *WINDOW,
        on_terminal=True,
    )
    # In folded stacks the server replaces control characters by blanks and ";" by ":".
    assert code == 0 and "f ]0:x |?| | 2J|? 10" in text, text
    assert_plain(text.replace("\r\x1b[K", ""))  # erases the progress bar
    code, text = run(
        server,
        tenant,
        tmp_path,
        "query",
        f'process_cpu:cpu{{nope="{EVIL}"',
        *WINDOW,
        on_terminal=True,
    )
    assert code != 0, text
    assert_plain(text.replace("\r\x1b[K", ""))


def test_files_and_json_contain_the_exact_names(server, tmp_path):
    tenant, client = fill(server)
    code, text = run(server, tenant, tmp_path, "query", "process_cpu:cpu", "--json", *WINDOW)
    assert code == 0 and json.loads(text)["functions"][0]["name"] == "f" + EVIL
    series = client.get("/api/v1/series", query={"start": str(BEGIN), "end": str(END)}).json()[
        "data"
    ]
    assert series[0]["service_name"] == "s" + EVIL and series[0]["pod"] == "p" + EVIL
    target = tmp_path / "stacks"
    assert (
        run(
            server,
            tenant,
            tmp_path,
            "query",
            "process_cpu:cpu",
            "--report",
            "pprof",
            "-o",
            str(target),
            *WINDOW,
        )[0]
        == 0
    )
    code, text = run(server, tenant, tmp_path, "top", str(target))
    assert code == 0 and f"f{SHOWN}" in text
    assert_plain(text)


def test_the_log_of_the_server_shows_plain_names(start_server):
    server = start_server("--log-level", "debug", "--access-log", "-")
    tenant, client = fill(server)
    # The refusal contains the name of the label.
    refused = client.post(
        "/api/v1/profiles",
        make_pprof(["f"]),
        query=[("label", f"{EVIL}=x"), ("label", f"{EVIL}=y")],
        headers={"User-Agent": "agent\x1b]0;x"},
    )
    assert refused.status == 400, refused
    server.stop()
    log = server.log()
    assert 'msg="stopped' in log
    assert_plain(log)
    assert not [line for line in log.splitlines() if line.startswith("|")], log
