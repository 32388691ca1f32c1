"""Two servers with one database and one bucket share symbolization jobs.

Each job runs once, and both servers serve its result. The tests need PERFOLIO_TEST_S3_ENDPOINT and
the related variables (make test-s3).
"""

import os
import re
import shutil
import time

import psycopg2
import pytest

import stored
from conftest import DISK, Server, make_folder
from debuginfod_stub import Stub
from people import Tenant
from test_debuginfo import path, wait_built
from test_debuginfo_jobs import WAIT, Programs, send
from test_debuginfo_upstreams import UPSTREAMS, wait_for
from test_s3_servers import bucket, new_prefix
from test_server import external_database  # noqa: F401
from test_shares import share
from test_symbol_names import BASE, C_SOURCE, Program

pytestmark = pytest.mark.skipif(not stored.is_in_bucket(), reason="needs a bucket: make test-s3")
POLL_SECONDS = 6  # each server polls for jobs at least twice in this time


@pytest.fixture
def pair(external_database):  # noqa: F811
    """start(*flags) -> two servers, each with a builder of symbol tables that is a script of the
    test."""
    folder, servers = make_folder(DISK), []

    def start(*flags):
        prefix = new_prefix()
        for name in ("one", "two"):
            (folder / f"programs-{name}").mkdir()
            programs = Programs(folder / f"programs-{name}")
            programs.script('exec {folder}/real "$@"')
            servers.append(
                Server(
                    folder / name,
                    ["--database-url", external_database, *flags],
                    program=programs.perfoliod,
                    objects=bucket(prefix),
                ).start()
            )
            servers[-1].programs = programs
        return servers

    yield start
    for server in servers:
        server.stop()
    shutil.rmtree(folder, ignore_errors=True)


def execute(database, statement):
    connection = psycopg2.connect(database)
    with connection, connection.cursor() as cursor:
        cursor.execute("SET ROLE perfolio_jobs")
        cursor.execute(statement)
        assert cursor.rowcount == 1
    connection.close()


def counted(server, name):
    """{labels: value} of a metric."""
    text = server.api().get("/metrics").text
    return {
        labels: int(value) for labels, value in re.findall(rf"^{name}{{(.*)}} (\d+)$", text, re.M)
    }


def built(server):
    return counted(server, "perfolio_symbol_builds_total")


def test_one_server_queries_the_upstreams_for_both(pair, tmp_path):
    program = Program(tmp_path, os.urandom(20).hex(), C_SOURCE)
    with Stub() as stub:
        one, two = pair(
            "--debuginfod-urls=http://127.0.0.1:1/", "--debuginfod-allow-host=127.0.0.1"
        )
        tenant = Tenant(one)
        token = tenant.make_token("share", "read", "admin", "debuginfo")["token"]
        mine, other = one.api(token), two.api(token)
        stub.content = program.elf.read_bytes()
        assert (
            mine.put(
                UPSTREAMS, json={"mode": "custom", "upstreams": [{"url": stub.url("held")}]}
            ).status
            == 200
        )
        link = share(mine, program.profile())["id"]

        def states():
            return [
                client.get(f"/p/{link}.json").json()["symbolization"] for client in (mine, other)
            ]

        states()
        wait_for(stub.paths)
        end = time.monotonic() + POLL_SECONDS
        while time.monotonic() < end:
            assert [row["build_id"] for state in states() for row in state["pending"]] == [
                program.build_id
            ] * 2
            time.sleep(0.5)
        stub.go.set()
        wait_for(lambda: all(state["complete"] for state in states()))
        for client in (mine, other):
            program.check(client.get(f"/p/{link}.pb.gz").body, BASE)
        assert len(stub.paths()) == 1
        # The server that did not build the table serves it with empty caches.
        assert one.stop() == 0
        two.restart()
        other.close()
        program.check(other.get(f"/p/{link}.pb.gz").body, BASE)
        assert len(stub.paths()) == 1


def test_one_server_reads_an_uploaded_file_and_both_serve_its_table(pair, tmp_path):
    one, two = pair()
    two.stop()
    one.programs.script(WAIT)
    program = Program(tmp_path, "ab" * 20, C_SOURCE)
    token = Tenant(one).make_token("share", "read", "debuginfo")["token"]
    mine, other = one.api(token), two.api(token)
    link = share(mine, program.profile())["id"]
    data = program.elf.read_bytes()
    assert mine.post(path(program.build_id, "debuginfo"), body=data).status == 202
    one.programs.wait_running()
    two.start()
    # The lease of the first server keeps the second from that job; the second runs the next job.
    send(mine, tmp_path, "aa60")
    wait_built(other, "aa60")
    time.sleep(POLL_SECONDS)
    assert built(two) == {'outcome="built"': 1} and built(one) == {}
    assert other.get(path(program.build_id)).json()["state"] == "pending"
    (one.programs.folder / "go").touch()
    for client in (mine, other):
        wait_built(client, program.build_id)
        wait_for(
            lambda reader=client: reader.get(f"/p/{link}.json").json()["symbolization"]["complete"]
        )
        program.check(client.get(f"/p/{link}.pb.gz").body, BASE)
        assert client.get(f"/buildid/{program.build_id}/debuginfo").body == data
    assert built(one) == built(two) == {'outcome="built"': 1}


def test_the_other_server_continues_the_job_of_a_killed_one(
    pair, tmp_path, external_database
):  # noqa: F811
    one, two = pair()
    two.stop()
    one.programs.script(WAIT)
    token = Tenant(one).make_token("debuginfo")["token"]
    send(one.api(token), tmp_path, "aa61")
    one.programs.wait_running()
    two.start()
    one.kill_all()
    time.sleep(POLL_SECONDS)
    assert two.api(token).get(path("aa61")).json()["state"] == "pending" and built(two) == {}
    # The lease would expire in a minute.
    execute(external_database, "UPDATE symbol_job SET leased_until = now()")
    assert wait_built(two.api(token), "aa61")["state"] == "ready"
    assert built(two) == {'outcome="built"': 1}
