"""Symbol tables of public debuginfod servers have a limit of bytes, and nothing is fetched or built
while the disk is full."""

import os
import shutil
import subprocess
import time
import types

import pytest

from debuginfod_stub import Stub
from test_debuginfo_upstreams import (
    build_id_of,
    build_program,
    need,
    need_of,
    tables_of,
    wait_for,
)
from test_shares import share
from test_symbol_names import BASE, C_SOURCE, Program

ANONYMOUS = types.SimpleNamespace(id=1)
SWEEP_LOCK = 0x50465357
KIB = 1024
# Longer than the pauses of the threads that fetch (1 s) and build (2 s).
POLL_SECONDS = 3


@pytest.fixture
def stub():
    with Stub() as made:
        yield made


@pytest.fixture
def start(start_server, stub):
    def start(*flags, wait=True):
        return start_server(
            f"--debuginfod-urls={stub.url('content')}",
            "--debuginfod-allow-host=127.0.0.1",
            "--jobs-interval=1s",
            *flags,
            wait=wait,
        )

    return start


def add_table(server, bytes_, days):
    """Adds the row of a public table that was last used some days ago; returns its build id."""
    build_id = os.urandom(20).hex()
    server.rows(
        "INSERT INTO symbol_table_public (build_id, object_key, bytes, sha256, quality,"
        " quality_rank, builder_version, broken_units, functions, source, last_used_at)"
        " VALUES (%s, 'symbols/' || %s, %s, sha256('x'), 2, 2, 1, 0, 1, 'upstream',"
        " now() - %s * interval '1 day') RETURNING 1",
        (build_id, build_id, bytes_, days),
    )
    return build_id


def table_ids(server):
    return {row[0] for row in server.rows("SELECT build_id FROM symbol_table_public")}


def test_public_tables_above_their_limit_are_deleted_by_their_last_use(start, stub, tmp_path):
    server = start("--debuginfod-cache-bytes=1MiB")
    program = build_program(tmp_path)
    stub.content = program.read_bytes()
    days = {1: 223, 3: 400, 2: 400}
    ids = {day: add_table(server, kib * KIB, day) for day, kib in days.items()}
    need(server, ANONYMOUS, build_id_of(program))
    wait_for(lambda: tables_of(server, build_id_of(program)) == ["public"])
    assert table_ids(server) == {ids[1], ids[2], ids[3], build_id_of(program)}
    ids[4] = add_table(server, 1, 4)
    again = tmp_path / "again"
    again.mkdir()
    later = build_program(again)
    server.rows(
        "UPDATE symbol_table_public SET bytes = bytes + %s WHERE build_id = %s RETURNING 1",
        (KIB, ids[1]),
    )
    stub.content = later.read_bytes()
    need(server, ANONYMOUS, build_id_of(later))
    wait_for(lambda: tables_of(server, build_id_of(later)) == ["public"])
    # Tables are deleted until a sixteenth of the limit is free.
    assert table_ids(server) == {ids[1], ids[2], build_id_of(program), build_id_of(later)}


def test_a_report_that_uses_a_public_table_keeps_it(start, stub, tmp_path):
    server = start()
    program = Program(tmp_path, os.urandom(20).hex(), C_SOURCE)
    stub.content = program.elf.read_bytes()
    need(server, ANONYMOUS, program.build_id)
    wait_for(lambda: need_of(server, ANONYMOUS, program.build_id) is None)
    age = "UPDATE symbol_table_public SET last_used_at = now() - interval '9 days' RETURNING {}"
    generation = "SELECT generation FROM symbol_generation_public"
    (before,) = server.rows(generation)
    assert server.rows(age.format("build_id")) == [(program.build_id,)]
    client = server.anonymous()
    link = share(client, program.profile())["id"]
    program.check(client.get(f"/p/{link}.pb.gz").body, BASE)
    used = "SELECT last_used_at > now() - interval '1 hour' FROM symbol_table_public"
    wait_for(lambda: server.rows(used) == [(True,)])
    assert server.rows(generation) == [before], "a use is no change of the tables"


def test_a_use_that_could_not_be_written_is_written_later(start, stub, tmp_path):
    server = start()
    program = Program(tmp_path, os.urandom(20).hex(), C_SOURCE)
    stub.content = program.elf.read_bytes()
    need(server, ANONYMOUS, program.build_id)
    wait_for(lambda: need_of(server, ANONYMOUS, program.build_id) is None)
    server.rows("UPDATE symbol_table_public SET last_used_at = now() - interval '9 days'")
    connection = server.database("perfolio_cluster")
    cursor = connection.cursor()
    cursor.execute(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
        " $$BEGIN RAISE EXCEPTION 'no use is written now'; END$$"
    )
    cursor.execute(
        "CREATE TRIGGER refuse BEFORE UPDATE OF last_used_at ON symbol_table_public"
        " EXECUTE FUNCTION refuse()"
    )
    client = server.anonymous()
    link = share(client, program.profile())["id"]
    program.check(client.get(f"/p/{link}.pb.gz").body, BASE)
    wait_for(lambda: "no use is written now" in server.log())
    cursor.execute("DROP TRIGGER refuse ON symbol_table_public")
    connection.close()
    used = "SELECT last_used_at > now() - interval '1 hour' FROM symbol_table_public"
    wait_for(lambda: server.rows(used) == [(True,)])


def test_a_table_that_exceeds_the_limit_by_itself_is_refused(start, stub, tmp_path):
    server = start("--debuginfod-cache-bytes=1KiB")
    other = add_table(server, 100, 1)
    # Random names hardly compress.
    names = "".join(f"int f{os.urandom(30).hex()}(void) {{ return 1; }}\n" for _ in range(100))
    (tmp_path / "names.c").write_text(names)
    program = tmp_path / "names.so"
    subprocess.run(
        ["gcc", "-g", "-shared", "-Wl,--build-id", tmp_path / "names.c", "-o", program], check=True
    )
    stub.content = program.read_bytes()
    need(server, ANONYMOUS, build_id_of(program))
    wait_for(lambda: need_of(server, ANONYMOUS, build_id_of(program))[0])
    reason, _, retry_s = need_of(server, ANONYMOUS, build_id_of(program))
    assert "one may have 960 (15/16 of --debuginfod-cache-bytes)" in reason
    assert retry_s > 3600
    assert table_ids(server) == {other}


def test_a_smaller_limit_applies_from_the_next_start(start):
    server = start()
    ids = [add_table(server, 500 * KIB, days) for days in (1, 2, 3)]
    server.arguments.append("--debuginfod-cache-bytes=1100KiB")
    server.restart()
    wait_for(lambda: table_ids(server) == set(ids[:2]))


def test_deleted_tables_that_a_backup_keeps_end_the_fetching(start, stub, tmp_path):
    server = start("--debuginfod-cache-bytes=1MiB")
    program = build_program(tmp_path)
    stub.content = program.read_bytes()
    backup = server.database("perfolio_jobs")
    backup.cursor().execute("SELECT pg_advisory_lock(%s)", (SWEEP_LOCK,))
    for _ in range(3):
        add_table(server, 500 * KIB, 1)
    server.rows("DELETE FROM symbol_table_public RETURNING 1")
    need(server, ANONYMOUS, build_id_of(program))
    time.sleep(POLL_SECONDS)
    assert not stub.paths() and table_ids(server) == set()
    backup.close()
    wait_for(lambda: tables_of(server, build_id_of(program)) == ["public"])


def add_build(server):
    """Adds a job that builds a table of a debug file whose object does not exist."""
    server.rows(
        "WITH file AS (INSERT INTO debug_file"
        " (tenant_id, build_id, kind, object_key, bytes, sha256)"
        " VALUES (1, 'ab01', 'debuginfo', 'debuginfo/absent', 1, sha256('x')) RETURNING id)"
        " INSERT INTO symbol_job (tenant_id, kind, key, build_id, debug_file_id)"
        " SELECT 1, 'build', 'build of a test', 'ab01', id FROM file RETURNING 1"
    )


def reports_a_full_disk(server):
    try:
        return "disk is full" in server.anonymous().get("/readyz").text
    except OSError:
        return False  # it is starting


def test_nothing_is_fetched_or_built_while_the_disk_is_full(start, stub, tmp_path):
    if shutil.disk_usage(tmp_path).free >= 1 << 40:
        pytest.skip("the disk has more free space than min-free-bytes may be")
    server = start("--min-free-bytes=1TiB", wait=False)
    wait_for(lambda: reports_a_full_disk(server))
    program = build_program(tmp_path)
    stub.content = program.read_bytes()
    need(server, ANONYMOUS, build_id_of(program))
    add_build(server)
    time.sleep(POLL_SECONDS)
    tries = "SELECT max(try_count) FROM symbol_job"
    assert not stub.paths() and server.rows(tries) == [(0,)]
    server.arguments.remove("--min-free-bytes=1TiB")
    server.restart()
    wait_for(lambda: tables_of(server, build_id_of(program)) == ["public"])
    wait_for(lambda: server.rows(tries) != [(0,)])
