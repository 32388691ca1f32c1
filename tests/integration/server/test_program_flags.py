"""Flags of perfoliod and perfolio-symbolize that no other test uses.

It also checks that each flag of a program is used in a test; test_cli_flags.py does the same for
the commands of perfolio.
"""

import contextlib
import http.client
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import pytest

import sample_profiles as samples
from conftest import AGENT, PERFOLIOD, ROOT
from debuginfod_stub import Stub
from people import PASSWORD, Browser, Tenant
from symbol_files import (
    PRINT,
    SYMBOLIZE,
    build_printer,
    compile_c,
    look_up,
    places,
    run,
    symbolize,
    write_source,
)
from test_debuginfo_upstreams import need, need_of, wait_for
from test_http_raw import Wire, metric
from test_limits import send
from test_shares import problem
from test_store import BEGIN
from test_store_repair import pause_merging

sys.path.insert(0, str(ROOT / "tests" / "oracle"))
from pprof_maker import Maker  # noqa: E402

pytestmark = pytest.mark.long

MIB = 1 << 20


# ---- every flag has a test ----


def flags_of(program):
    text = subprocess.run([program, "--help"], check=True, capture_output=True, text=True).stdout
    return set(re.findall(r"^ +(?:-., )?--([a-z][a-z0-9-]+)", text, re.M)) - {
        "help",
        "usage",
        "version",
    }


@pytest.mark.parametrize("program", [AGENT, PERFOLIOD, SYMBOLIZE], ids=lambda path: path.name)
def test_each_flag_is_used_in_a_test(program):
    short = {
        "-a": "alternate",
        "-d": "dwo",
        "-m": "max-memory",
        "-o": "output",
        "-p": "packed",
        "-q": "quiet",
    }
    text = "".join(
        path.read_text() for path in sorted((ROOT / "tests" / "integration").rglob("*.py"))
    )
    used = set(re.findall(r"[\"'`]--([a-z][a-z0-9-]+)", text)) | {
        f"tenant-{flag}" for flag in LIMITS
    }
    if program == SYMBOLIZE:
        used |= {name for flag, name in short.items() if f'"{flag}"' in text}
    assert flags_of(program) - used == set()


# ---- perfoliod: shares ----


def folded(count):
    return "".join(f"main;f{i} 1\n" for i in range(count)).encode()


def test_the_size_of_uploads_is_limited_by_kind_of_client(start_server):
    server = start_server(
        "--anonymous-max-upload-bytes",
        "4KiB",
        "--tenant-max-upload-bytes",
        "16KiB",
        "--max-profile-samples",
        "700",
    )
    tenant = Tenant(server)
    for client, most in ((server.anonymous(), 4096), (tenant.api("share"), 16384)):
        line = b"main;work 1\n"
        assert client.post("/api/v1/shares", body=line * (most // len(line))).status == 201
        problem(
            client.post("/api/v1/shares", body=line * (most // len(line) + 1)),
            413,
            f"largest allowed has {most}",
        )
    client = tenant.api("share")
    assert client.post("/api/v1/shares", body=folded(700)).status == 201
    refused = client.post("/api/v1/shares", body=folded(701))
    problem(refused, 413, "700")


@pytest.mark.skipif(
    shutil.disk_usage("/tmp").free > 1 << 40,
    reason="the disk has more free space than the flag can require",
)
def test_min_free_bytes_refuses_uploads_on_a_full_disk(start_server):
    server = start_server()
    kept = server.api().post("/api/v1/shares", body=samples.FOLDED).json()["id"]
    server.stop()
    server.arguments = [*server.arguments, "--min-free-bytes", "1TiB"]
    server.launch()

    def readiness_error():
        with contextlib.suppress(OSError, http.client.HTTPException):
            response = server.anonymous().get("/readyz")
            return response.status == 503 and response.json()["detail"]

    assert "disk is full" in wait_for(readiness_error, 60)
    client = server.api()
    assert "disk is full" in client.post("/api/v1/shares", body=samples.FOLDED).text
    assert (
        client.get(f"/api/v1/shares/{kept}").status == 200
        and client.delete(f"/api/v1/shares/{kept}").status == 204
    )


@pytest.mark.skipif(
    shutil.disk_usage("/tmp").free > 1 << 40,
    reason="the disk has more free space than the flag can require",
)
def test_below_the_reserve_only_requests_that_need_no_space_succeed(start_server):
    server = start_server()
    tenant = Tenant(server)
    owner, browser = tenant.user("owner"), Browser(server)

    def new_share(visibility):
        query = {"visibility": visibility}
        made = owner.post("/api/v1/shares", samples.FOLDED, query=query)
        return f"/api/v1/shares/{made.json()['id']}"

    def retain(query, keep, **more):
        return owner.post("/api/v1/retention", json={"query": query, "keep": keep, **more})

    public, unlisted, team = (new_share(one) for one in ("public", "unlisted", "team"))
    password = {"visibility": "password", "password": PASSWORD}
    locked = new_share("team")
    assert owner.patch(locked, json=password).status == 200
    invitation = {"email": "new@example.com", "role": "member"}
    link = owner.post("/api/v1/invitations", json=invitation).json()["url"]
    token = {"token": link.split("#")[1]}
    assert retain("cpu", "30d", totals="60d").status == 200
    server.stop()
    server.arguments = [*server.arguments, "--min-free-bytes", "1TiB"]
    server.launch()
    for client in (owner, browser, tenant.operator):
        client.close()

    def is_up():
        with contextlib.suppress(OSError, http.client.HTTPException):
            return browser.get("/healthz").status == 200
        browser.close()

    wait_for(is_up, 60)
    accept = {**token, "password": PASSWORD}
    for refused in (
        browser.post(f"{public}/reports", json={"reason": "abuse"}),
        browser.post("/api/v1/invitations/accept", json=accept),
        owner.post("/api/v1/invitations", json={**invitation, "email": "x@example.com"}),
        owner.patch(team, json={"title": "more rows"}),
        owner.patch(public, json={"visibility": "team", "title": "more rows"}),
        owner.patch(public, json={"visibility": "public"}),
        owner.patch(team, json={"visibility": "unlisted"}),
        owner.patch(team, json=password),
        owner.post("/api/v1/merge", json={"shares": [public.rsplit("/", 1)[1]]}),
        retain("cpu", "30d", totals="60d"),
        retain("cpu", "29d", totals="61d"),
        retain("cpu", "forever"),
    ):
        problem(refused, 503, "disk is full")
        assert int(refused.headers["retry-after"]) > 0
    for path, visibility in ((public, "unlisted"), (public, "team"), (unlisted, "team")):
        response = owner.patch(path, json={"visibility": visibility})
        assert response.status == 200 and response.json()["visibility"] == visibility
    assert retain("cpu", "29d", totals="60d").status == retain("memory", "1h").status == 200
    assert browser.post("/api/v1/invitations/look", json=token).status == 200
    assert browser.post(f"{locked}/unlock", json={"password": PASSWORD}).status == 204
    admin = f"/api/v1/admin/tenants/{tenant.id}"
    assert tenant.operator.patch(admin, json={"max_upload_bytes": 1 << 20}).status == 200
    assert owner.delete(team).status == 204


def test_sessions_and_invitations_expire_after_their_lifetime(start_server):
    server = start_server("--session-lifetime", "2h", "--invitation-lifetime", "3h")
    tenant = Tenant(server)
    owner = tenant.user("owner")
    made = owner.post("/api/v1/invitations", json={"email": "new@example.com", "role": "member"})
    assert made.status == 201, made
    with server.cursor() as cursor:
        cursor.execute("SELECT extract(epoch FROM max(expires_at) - now())::float FROM session")
        assert 7100 < cursor.fetchone()[0] <= 7200
        cursor.execute("SELECT extract(epoch FROM max(expires_at) - now())::float FROM invitation")
        assert 10700 < cursor.fetchone()[0] <= 10800
        cursor.execute("UPDATE session SET expires_at = now() - interval '1 second'")
    assert owner.get("/api/v1/session").json()["kind"] == "anonymous"
    assert Browser(server).get("/api/v1/session").json()["kind"] == "anonymous"


# ---- perfoliod: concurrency ----


def threads_of(server):
    """The number of threads of the server's process that has the most."""
    found = subprocess.run(
        ["ps", "-o", "nlwp=", "--ppid", str(server.process.pid), "-p", str(server.process.pid)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return max(map(int, found.split()))


@pytest.mark.long
def test_thread_flags_set_the_number_of_threads(start_server):
    few = ("--loop-threads", "1", "--worker-threads", "2", "--ingest-threads", "3")
    server = start_server(*few)
    # The server may start a further thread for a short time.
    least = min(threads_of(server) for _ in range(20))
    # --worker-threads counts twice: there are as many workers for jobs as for requests.
    for flag, count, each in (
        ("--loop-threads", 5, 1),
        ("--worker-threads", 6, 2),
        ("--ingest-threads", 7, 1),
    ):
        flags = list(few)
        at = flags.index(flag) + 1
        more, flags[at] = each * (count - int(flags[at])), str(count)
        server = start_server(*flags)
        wait_for(lambda: threads_of(server) == least + more)


def test_reserved_connections_sets_the_limit(start_server):
    server = start_server("--max-connections", "40", "--reserved-connections", "13")
    assert metric(server, 'perfolio_http_connections_limit{limit="reserved-connections"}') == 13


def test_worker_queue_limits_the_waiting_requests(start_server):
    """One worker waits for the database, and the queue has one place. Other requests are refused
    with Retry-After."""
    server = start_server("--worker-threads", "1", "--worker-queue", "1", "--loop-threads", "1")
    gate = server.database()
    gate.autocommit = False
    wires = []
    try:
        gate.cursor().execute("LOCK TABLE share IN ACCESS EXCLUSIVE MODE")
        request = (
            f"GET /api/v1/shares/0123456789abcdefghijkl HTTP/1.1\r\nHost: localhost\r\n"
            f"Authorization: Bearer {server.token}\r\n\r\n"
        ).encode()
        wires = [Wire(server).send(request) for _ in range(12)]
        wait_for(lambda: metric(server, "perfolio_http_requests_in_flight") >= 1)
    finally:
        gate.rollback()
        gate.close()
    responses = [wire.response() for wire in wires]
    refused = [headers for status, headers, _ in responses if status == 503]
    assert {status for status, _, _ in responses} == {404, 503} and len(refused) >= 9, responses
    assert all(int(headers["retry-after"]) > 0 for headers in refused)


@pytest.mark.long
def test_block_cache_bytes_limits_the_memory_of_open_blocks(start_server):
    profiles, functions = 24, 6000
    taken = []
    for flags in ((), ("--block-cache-bytes", "16MiB")):
        server = start_server("--query-cache-bytes", "0", *flags)
        pause_merging(server)  # the cache forgets segments that were merged
        client = Tenant(server).api("ingest", "read")
        for i in range(profiles):
            maker = Maker([("cpu", "nanoseconds")])
            for j in range(functions):
                maker.sample(
                    [maker.location([(maker.function(f"function_{i}_{j}" + "x" * 100), 1)])],
                    [1],
                    [],
                )
            maker.scalars(time=BEGIN + i, duration=1, period=1, period_type=("cpu", "nanoseconds"))
            assert (
                client.post("/api/v1/profiles", maker.bytes(), query={"label": f"pod={i}"}).status
                == 200
            )
        top = client.get(
            "/api/v1/query",
            query={
                "query": "process_cpu:cpu",
                "start": BEGIN,
                "end": BEGIN + 10**9,
                "report": "top",
            },
        )
        assert top.status == 200 and top.json()["total"] == profiles * functions, top
        taken.append(metric(server, 'perfolio_cache_bytes{cache="blocks"}'))
    assert taken[0] > 16 * MIB >= taken[1] > 0, taken


# ---- perfoliod: limits of new teams ----

LIMITS = {
    "samples-per-second": ("samples_per_second", "77", 77),
    "samples-burst": ("samples_burst", "88", 88),
    "active-series": ("active_series", "5", 5),
    "series-labels": ("series_labels", "6", 6),
    "label-name-bytes": ("label_name_bytes", "40", 40),
    "label-value-bytes": ("label_value_bytes", "50", 50),
    "profile-bytes": ("profile_bytes", "64KiB", 65536),
    "string-bytes": ("string_bytes", "300", 300),
    "future": ("future_s", "2h", 7200),
    "query-cpu-time": ("query_cpu_s", "3s", 3),
    "query-time": ("query_time_s", "4s", 4),
    "query-memory": ("query_memory_bytes", "5MiB", 5 * MIB),
    "query-read-bytes": ("query_read_bytes", "6MiB", 6 * MIB),
    "profile-retention": ("profile_retention_s", "7d", 7 * 86400),
    "rule-keep": ("rule_keep_s", "8d", 8 * 86400),
    "stored-profile-bytes": ("stored_profile_bytes", "12GiB", 12 << 30),
    "uploads-per-minute": ("uploads_per_minute", "9", 9),
    "max-bytes": ("max_bytes_stored", "10MiB", 10 * MIB),
    "max-upload-bytes": ("max_upload_bytes", "11MiB", 11 * MIB),
}


@pytest.fixture
def limited(start_server):
    return start_server(
        *(word for flag, (_, text, _) in LIMITS.items() for word in (f"--tenant-{flag}", text))
    )


def test_a_new_team_gets_the_limits_of_the_settings(limited):
    shown = Tenant(limited).api("read").get("/api/v1/tenant").json()["quotas"]
    assert {name: shown.get(name) for name, _, _ in LIMITS.values()} == {
        name: value for name, _, value in LIMITS.values()
    }


def test_limits_of_a_new_team_are_enforced(limited):
    client = Tenant(limited).api("ingest", "read", "admin")

    def push(**labels):
        return send(client, "api", labels, time.time_ns() - BEGIN - 10**10)

    assert push(pod="a").status == 200
    for labels, word in (
        ({f"l{i}": "x" for i in range(6)}, "series_labels"),
        ({"n" * 41: "x"}, "label_name_bytes"),
        ({"pod": "v" * 51}, "label_value_bytes"),
    ):
        refused = push(**labels)
        assert refused.status in (400, 413) and word in refused.json()["detail"], (word, refused)
    large = Maker([("cpu", "nanoseconds")])
    large.sample([large.location([(large.function("f" * 70000), 1)])], [1], [])
    refused = client.post("/api/v1/profiles", large.bytes(), query={"label": "pod=large"})
    assert refused.status == 413 and "profile_bytes" in refused.json()["detail"], refused
    series = [push(pod=str(i)) for i in range(4)]
    assert "active_series" in series[-1].json()["detail"], series[-1]


# ---- perfoliod: debuginfod servers ----


@pytest.fixture
def certificate():
    """A self-signed certificate for localhost with its key, in a file that the server's user can
    read."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        file, alone = pathlib.Path(folder) / "stub.pem", pathlib.Path(folder) / "stub.crt"
        subprocess.run(
            [
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-days",
                "2",
                "-subj",
                "/CN=localhost",
                "-addext",
                "subjectAltName=DNS:localhost",
                "-keyout",
                file,
                "-out",
                alone,
            ],
            check=True,
            capture_output=True,
        )
        file.write_text(file.read_text() + alone.read_text())
        file.chmod(0o644)
        yield file


def reason_of(server):
    tenant = Tenant(server)
    build_id = "cd" * 20
    need(server, tenant, build_id)
    return wait_for(lambda: (row := need_of(server, tenant, build_id)) and row[0] and row)[0]


def test_debuginfod_ca_file_verifies_the_certificate_of_the_server(start_server, certificate):
    with Stub(certificate=certificate) as stub:
        flags = (
            f"--debuginfod-urls={stub.url('missing', 'localhost')}",
            "--debuginfod-allow-host=localhost",
        )
        assert "is not trusted" in reason_of(start_server(*flags))
        assert stub.seen == []
        assert "does not have the file" in reason_of(
            start_server(*flags, f"--debuginfod-ca-file={certificate}")
        )
        assert stub.seen


def test_s3_ca_file_verifies_the_certificate_of_the_server(start_server, certificate):
    """The stub is no S3 server, so perfoliod cannot start. With the flag it trusts the certificate
    and sends a request."""
    with Stub(certificate=certificate) as stub:
        flags = (
            "--s3-bucket",
            "missing",
            "--s3-endpoint",
            f"https://localhost:{stub.port}",
            "--s3-path-style",
            "yes",
        )
        keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
        server = start_server(*flags, environment=keys, wait=False)
        wait_for(lambda: "is not trusted" in server.log())
        assert stub.seen == []
        start_server(*flags, "--s3-ca-file", str(certificate), environment=keys, wait=False)
        wait_for(lambda: stub.seen)


def test_debuginfod_max_bytes_limits_the_size_of_a_fetched_file(start_server):
    with Stub() as stub:
        flags = (f"--debuginfod-urls={stub.url('good')}", "--debuginfod-allow-host=127.0.0.1")
        assert "at most" in reason_of(start_server(*flags, "--debuginfod-max-bytes=4KiB"))


# ---- perfolio-symbolize ----


@pytest.fixture
def source(tmp_path):
    build_printer()
    return write_source(tmp_path)


def test_symbols_only_writes_a_table_without_lines(source):
    binary = compile_c(source)
    whole, _ = symbolize(binary)
    at = places(whole)
    lines = [frame[3] for frames in look_up(whole, at) for frame in frames]
    table, _ = symbolize(binary, "--symbols-only")
    found = [frame for frames in look_up(table, at) for frame in frames]
    assert any(int(line) for line in lines) and not any(int(frame[3]) for frame in found)
    assert {"entry", "outlined", "main"} <= {frame[0] for frame in found} and "leaf" not in {
        frame[0] for frame in found
    }
    packed = source / "packed"
    assert run(SYMBOLIZE, "--packed", "--quiet", "--output", packed, binary).returncode == 0
    assert (
        packed.stat().st_size < whole.stat().st_size
        and run(PRINT, packed, "starts").returncode != 0
    )


SLOW = """
    .text
    .globl main
    .type main, @function
main: ret
    .size main, .-main
    .section .debug_abbrev,"",@progbits
    .uleb128 1, 0x11
    .byte 1, 0, 0
    .uleb128 2, 0x2e
    .byte 0
    .uleb128 0x31, 0x11
    .byte 0, 0, 0
    .section .debug_info,"",@progbits
    .long end - begin
begin:
    .short 4
    .long 0
    .byte 8
    .uleb128 1
    .fill 20000000, 2, 2
    .byte 0
end:
    .section .note.GNU-stack,"",@progbits
"""


def limits_of_the_builder(process):
    """The limits of the child process that reads the file, from /proc, after it has set them; {} if
    it ended before."""
    while process.poll() is None:
        for child in (
            pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        ):
            with contextlib.suppress(OSError):
                text = pathlib.Path(f"/proc/{child}/limits").read_text()
                found = {
                    name: re.search(rf"^Max {name} +(\S+)", text, re.M)[1]
                    for name in ("cpu time", "address space")
                }
                if "unlimited" not in found.values():
                    return found
    return {}


@pytest.mark.long
def test_perfolio_symbolize_enforces_its_cpu_and_memory_limits(tmp_path):
    """The files are one with twenty million empty functions, and one with a section that is larger
    than the memory limit."""
    (tmp_path / "slow.s").write_text(SLOW)
    table = tmp_path / "table"
    subprocess.run(["gcc", "slow.s", "-o", "slow"], check=True, cwd=tmp_path)
    with subprocess.Popen(
        [
            SYMBOLIZE,
            "--max-cpu",
            "7",
            "--max-memory",
            "300",
            "--quiet",
            "--output",
            table,
            tmp_path / "slow",
        ]
    ) as process:
        assert limits_of_the_builder(process) == {"cpu time": "7", "address space": str(300 * MIB)}
        assert process.wait(60) == 0
    with open(tmp_path / "text", "wb") as file:
        file.truncate(96 << 20)
    subprocess.run(
        ["gcc", "-g", "-x", "c", "-", "-o", "small"],
        input=b"int main(void) { return 0; }",
        check=True,
        cwd=tmp_path,
    )
    subprocess.run(
        ["objcopy", "--update-section", ".debug_str=text", "small", "large"],
        check=True,
        cwd=tmp_path,
    )
    table.unlink()
    done = run(SYMBOLIZE, "--max-memory", "64", "--output", table, tmp_path / "large")
    assert (
        done.returncode == 1
        and "more than the limit of 64 MiB of memory" in done.stderr
        and not table.exists()
    ), done
