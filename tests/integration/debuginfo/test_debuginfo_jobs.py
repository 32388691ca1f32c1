"""Jobs that build symbol tables: a builder that crashes, hangs or exceeds its lease, a killed
server, and several teams.

The server runs from a separate folder in which a script of the test replaces perfolio-symbolize.
The script can call the real one.
"""

import os
import pathlib
import shutil
import time

import pytest

import stored
from conftest import BUILD, PERFOLIOD, make_folder
from debuginfod_stub import Stub
from people import Tenant
from test_debuginfo import compile_with_id, path, stored_bytes, wait_built
from test_debuginfo_upstreams import need, need_of, tables_of
from test_shares import wait_for

pytestmark = pytest.mark.long

CRASH = "kill -SEGV $$"
# Creates "running", runs the real builder once "go" exists, and ends with the server.
WAIT = """touch {folder}/running
while [ ! -e {folder}/go ]; do [ -d /proc/$PPID ] || exit 1; sleep 0.05; done
exec {folder}/real "$@"
"""


class Programs:
    """A folder with perfoliod and a builder script that the test writes."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        os.chmod(folder, 0o777)
        self.perfoliod = self.folder / "perfoliod"
        shutil.copy(PERFOLIOD, self.perfoliod)
        shutil.copy(BUILD / "perfolio-symbolize", self.folder / "real")

    def script(self, text):
        builder = self.folder / "perfolio-symbolize"
        builder.write_text("#!/bin/sh\n" + text.format(folder=self.folder) + "\n")
        builder.chmod(0o755)

    def wait_running(self):
        deadline = time.monotonic() + 60
        while not (self.folder / "running").exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        (self.folder / "running").unlink()


@pytest.fixture
def programs():
    folder = make_folder()
    yield Programs(folder)
    shutil.rmtree(folder, ignore_errors=True)


def send(client, folder, build_id):
    binary = compile_with_id(folder, build_id, f"program-{build_id}").read_bytes()
    assert client.post(path(build_id, "debuginfo"), body=binary).status == 202
    return binary


def execute(server, statement):
    with server.cursor("perfolio_jobs") as cursor:
        cursor.execute(statement)
        assert cursor.rowcount == 1
        cursor.connection.commit()


def test_a_crash_of_the_builder_is_the_reason_of_the_failure(start_server, programs, tmp_path):
    programs.script(CRASH)
    server = start_server(program=programs.perfoliod)
    tenant = Tenant(server)
    client = tenant.api("debuginfo")
    send(client, tmp_path, "aa20")
    status = wait_built(client, "aa20", "failed")
    assert "the builder of symbol tables crashed on this file" in status["reason"]
    assert stored_bytes(server, tenant) == 0
    programs.script(WAIT)
    (programs.folder / "go").touch()
    send(client, tmp_path, "aa21")
    assert wait_built(client, "aa21")["state"] == "ready"


def test_a_builder_that_hangs_does_not_delay_the_stop_of_the_server(
    start_server, programs, tmp_path
):
    programs.script(WAIT)
    server = start_server(program=programs.perfoliod)
    client = Tenant(server).api("debuginfo")
    send(client, tmp_path, "aa22")
    programs.wait_running()
    status = client.get(path("aa22")).json()
    assert status["state"] == "pending" and status["files"][0]["state"] == "waiting"
    server.stop(seconds=30)
    (programs.folder / "go").touch()
    server.start()
    client.close()
    assert wait_built(client, "aa22")["state"] == "ready"


def test_the_job_of_a_killed_server_is_taken_over_by_the_next(start_server, programs, tmp_path):
    programs.script(WAIT)
    server = start_server(program=programs.perfoliod)
    client = Tenant(server).api("debuginfo")
    send(client, tmp_path, "aa23")
    programs.wait_running()
    server.kill_all()
    (programs.folder / "go").touch()
    server.start()
    client.close()
    # The lease would otherwise expire after a minute.
    execute(server, "UPDATE symbol_job SET leased_until = now()")
    assert wait_built(client, "aa23")["state"] == "ready"


def test_a_builder_that_lost_its_lease_stores_nothing(start_server, programs, tmp_path):
    programs.script(WAIT)
    server = start_server(program=programs.perfoliod)
    client = Tenant(server).api("debuginfo")
    send(client, tmp_path, "aa24")
    programs.wait_running()
    # Simulates another server that has leased the job.
    execute(
        server, "UPDATE symbol_job SET fence = fence + 1, leased_until = now() + interval '1 hour'"
    )
    (programs.folder / "go").touch()
    send(client, tmp_path, "aa25")
    wait_built(client, "aa25")  # the build of aa24 has ended by then
    status = client.get(path("aa24")).json()
    assert status["table"] is None and status["files"][0]["state"] == "waiting"
    execute(server, "UPDATE symbol_job SET leased_until = now()")
    assert wait_built(client, "aa24")["state"] == "ready"


def test_a_fetch_that_waits_for_another_builder_keeps_its_lease(start_server, programs, tmp_path):
    programs.script(WAIT)
    first, second = os.urandom(20).hex(), os.urandom(20).hex()
    with Stub() as stub:
        stub.content = compile_with_id(tmp_path, first).read_bytes()
        server = start_server(
            "--max-builder-memory=1TiB",  # so that only one builder runs at a time
            f"--debuginfod-urls={stub.url('content')}",
            "--debuginfod-allow-host=127.0.0.1",
            program=programs.perfoliod,
        )
        tenant = Tenant(server)
        need(server, tenant, first)
        programs.wait_running()
        need(server, tenant, second)
        lease = "SELECT 1 FROM symbol_job WHERE leased_until {} AND build_id = '" + second + "'"
        # Before a builder starts, the lease becomes longer than that of a transfer.
        wait_for(lambda: server.rows(lease.format("> now() + interval '100 s'")))
        execute(
            server,
            "UPDATE symbol_job SET leased_until = now() + interval '1 day'"
            f" WHERE build_id = '{second}'",
        )
        wait_for(lambda: server.rows(lease.format("< now() + interval '1 hour'")))
        assert tables_of(server, first) == []
        (programs.folder / "go").touch()
        wait_for(lambda: tables_of(server, first) == ["public"])
        # The file that the second fetch got has the build id of the first one.
        wait_for(lambda: "unusable" in need_of(server, tenant, second)[0])


def test_builds_alternate_between_teams(start_server, programs, tmp_path):
    """The single file of a team waits for at most one of another team's many files."""
    programs.script(WAIT)
    server = start_server(program=programs.perfoliod)
    many, one = Tenant(server), Tenant(server)
    for number in range(4):
        send(many.api("debuginfo"), tmp_path, f"aa3{number}")
    programs.wait_running()
    send(one.api("debuginfo"), tmp_path, "aa38")
    (programs.folder / "go").touch()
    wait_built(one.api("debuginfo"), "aa38")
    for number in range(4):
        wait_built(many.api("debuginfo"), f"aa3{number}")
    with server.cursor("perfolio_jobs") as cursor:
        cursor.execute("SELECT tenant_id FROM symbol_table ORDER BY created_at")
        assert [row[0] for row in cursor.fetchall()].index(one.id) <= 1


def test_ten_thousand_files_of_one_team_do_not_delay_another_team(start_server, programs, tmp_path):
    programs.script(WAIT)
    server = start_server(program=programs.perfoliod)
    many, one = Tenant(server), Tenant(server)
    send(many.api("debuginfo"), tmp_path, "aa60")
    programs.wait_running()
    with server.cursor() as cursor:
        cursor.execute(
            "INSERT INTO symbol_job (tenant_id, kind, key, build_id, debug_file_id) SELECT "
            "tenant_id, kind,"
            " key || '/' || n, build_id, debug_file_id FROM symbol_job, generate_series(1, 10000) "
            "AS n"
        )
        assert cursor.rowcount == 10000
        cursor.connection.commit()
    send(one.api("debuginfo"), tmp_path, "aa61")
    (programs.folder / "go").touch()
    wait_built(one.api("debuginfo"), "aa61")
    with server.cursor() as cursor:
        cursor.execute(
            "SELECT (SELECT created_at FROM symbol_table WHERE build_id = 'aa61'), count(*) FROM "
            "symbol_job"
            " WHERE tenant_id = %s AND try_count = 0",
            [many.id],
        )
        built_at, left = cursor.fetchone()
    # One job of the large team was already running, and at most one more ran before the other
    # team's job. More may have run before this query.
    assert built_at and left > 9900


def test_deleting_a_team_deletes_its_files_and_jobs(start_server, programs, tmp_path):
    programs.script(WAIT)
    server = start_server(program=programs.perfoliod)
    tenant = Tenant(server)
    client = tenant.api("debuginfo")
    send(client, tmp_path, "aa26")
    programs.wait_running()
    assert server.api().delete(f"/api/v1/admin/tenants/{tenant.id}").status in (200, 202, 204)
    (programs.folder / "go").touch()
    other = Tenant(server).api("debuginfo")
    send(other, tmp_path, "aa27")
    wait_built(other, "aa27")
    with server.cursor("perfolio_jobs") as cursor:
        for table in (
            "symbol_table",
            "debug_file",
            "symbol_job",
            "symbol_need",
            "symbol_generation",
        ):
            cursor.execute(f"SELECT count(*) FROM {table} WHERE tenant_id = %s", [tenant.id])
            assert cursor.fetchone()[0] == 0, table


def test_a_team_keeps_a_thousand_failed_files(start_server, programs, tmp_path):
    programs.script(CRASH)
    server = start_server(program=programs.perfoliod)
    client = Tenant(server).api("debuginfo")
    send(client, tmp_path, "aa43")
    wait_built(client, "aa43", "failed")
    with server.cursor("perfolio_jobs") as cursor:
        cursor.execute(
            "INSERT INTO debug_file (tenant_id, build_id, kind, object_key, bytes, sha256, state)"
            " SELECT tenant_id, 'aa44', kind, '', 0, sha256(n::text::bytea), state"
            " FROM debug_file, generate_series(1, 1200) n"
        )
        cursor.connection.commit()
    assert len(client.get(path("aa44")).json()["files"]) == 100
    send(client, tmp_path, "aa45")
    wait_built(client, "aa45", "failed")
    listed = {b["build_id"]: b["files"] for b in client.get("/api/v1/debuginfo").json()["binaries"]}
    assert listed == {"aa44": 999, "aa45": 1}


def test_old_needs_and_failures_are_deleted(start_server, programs, tmp_path):
    programs.script(CRASH)
    server = start_server(program=programs.perfoliod)
    client = Tenant(server).api("debuginfo")
    for build_id in ("aa40", "aa41"):
        send(client, tmp_path, build_id)
        wait_built(client, build_id, "failed")
    execute(
        server,
        "UPDATE debug_file SET created_at = now() - interval '31 days' WHERE build_id = 'aa40'",
    )
    with server.cursor("perfolio_jobs") as cursor:
        cursor.execute(
            "INSERT INTO symbol_need (tenant_id, build_id, last_at) SELECT tenant_id, n.id, n.at "
            "FROM "
            "debug_file, (VALUES ('aa40', now() - interval '31 days'), ('aa42', now())) AS n (id, "
            "at) "
            "WHERE build_id = 'aa41'"
        )
        cursor.connection.commit()
    server.restart()
    client.close()
    deadline = time.monotonic() + 60
    while client.get(path("aa40")).json()["files"]:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert client.get(path("aa41")).json()["files"]
    with server.cursor("perfolio_jobs") as cursor:
        cursor.execute("SELECT build_id FROM symbol_need")
        assert cursor.fetchall() == [("aa42",)]


@pytest.mark.long
@pytest.mark.skipif(stored.is_in_bucket(), reason="objects of a bucket cannot be made old")
def test_only_objects_without_a_row_are_collected(start_server, tmp_path):
    server = start_server()
    client = Tenant(server).api("debuginfo")
    data = send(client, tmp_path, "aa50")
    wait_built(client, "aa50")
    metrics = server.api().get("/metrics").text
    assert 'perfolio_symbol_builds_total{outcome="built"} 1' in metrics
    assert server.stop() == 0
    old = []
    for kind in ("symbols", "debuginfo"):
        folder = server.data_dir / "objects" / kind
        owned = next(folder.iterdir())
        old.append(folder / ("o" * 22))
        old[-1].write_bytes(b"left behind")
        os.chown(old[-1], owned.stat().st_uid, owned.stat().st_gid)
        for each in (old[-1], owned):
            os.utime(each, (time.time() - 7200,) * 2)
    server.start()
    client.close()
    deadline = time.monotonic() + 60
    while any(each.exists() for each in old):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert client.get("/buildid/aa50/debuginfo").body == data
    assert len(list((server.data_dir / "objects/symbols").iterdir())) == 1
