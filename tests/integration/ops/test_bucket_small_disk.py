"""A server whose objects are in a bucket and whose disk is small: blocks are read from copies on
that disk.
"""

import os
import subprocess

import pytest

import stored
from conftest import Server
from people import Tenant
from s3_stub import serve
from test_disk_full import disk as disk  # the fixture
from test_disk_full import fill, free_mib
from test_s3_responses import SpoiledServer
from test_shares import wait_for
from test_symbol_names import C_SOURCE, Program, needs_compiler

pytestmark = pytest.mark.long

CPU = 'process_cpu:cpu{service_name="app"}'
RESERVE = 64  # MiB
SPACE = 24  # MiB, for two of the blocks


@pytest.fixture
def bucket():
    yield from serve(SpoiledServer())


@pytest.fixture
def server(disk, bucket):
    settings = {
        "BUCKET": "bucket",
        "REGION": "us-east-1",
        "ENDPOINT": f"http://127.0.0.1:{bucket.server_port}",
        "ACCESS_KEY": "key",
        "SECRET_KEY": "secret",
    }
    environment = {"PERFOLIO_TEST_S3_" + name: value for name, value in settings.items()}
    objects = stored.Bucket(bucket.prefix, environment)
    instance = Server(disk / "data", objects=objects).start()
    yield instance
    instance.stop()


def make_blocks(server, teams):
    """Sends profiles for a block of 11 MB of each team: copies of up to 4 MiB need less free space.
    Returns once they are merged.
    """
    for api in teams:
        for _ in range(3):
            body = b"".join(b"main;%s 1\n" % os.urandom(450).hex().encode() for _ in range(8000))
            assert api.post("/ingest", body, query={"name": "app"}).status == 200
    with server.cursor() as cursor:
        cursor.execute("UPDATE segment SET created_at = created_at - interval '1 hour'")
        cursor.connection.commit()
    blocks = "SELECT count(*) FROM block WHERE swapped_at IS NULL AND bytes > 8 << 20"
    wait_for(lambda: server.rows(blocks) == [(len(teams),)], 60)


def top(api):
    return api.get("/api/v1/query", query={"query": CPU, "report": "top", "limit": 10})


def test_copies_that_no_query_uses_give_way_to_others(server, disk):
    teams = [Tenant(server).api("ingest", "read") for _ in range(5)]
    make_blocks(server, teams)
    server.restart()
    fill(disk, 2 * RESERVE + SPACE)
    for api in teams * 2:
        api.close()
        response = top(api)
        assert response.status == 200, response.text
        assert len(response.json()["functions"]) > 1
    assert free_mib(disk) >= 2 * RESERVE - 1


def test_the_scrub_verifies_blocks_on_a_disk_without_space_for_queries(server, disk):
    team, admin = Tenant(server).api("ingest", "read"), server.api()
    make_blocks(server, [team])
    server.restart()
    fill(disk, 2 * RESERVE)
    team.close(), admin.close()
    assert top(team).status == 503
    assert admin.post("/api/v1/admin/scrub/start").status < 300
    wait_for(lambda: server.rows("SELECT last_ended_at IS NOT NULL FROM scrub") == [(True,)], 60)


@needs_compiler
def test_a_debug_file_waits_for_space(server, disk, tmp_path):
    api = Tenant(server).api("debuginfo")
    program = Program(tmp_path, "af" * 20, C_SOURCE)
    section = tmp_path / "section"
    section.write_bytes(os.urandom(7 << 20))
    subprocess.run(["objcopy", f"--add-section=.x={section}", program.elf], check=True)
    filler = fill(disk, 2 * RESERVE + 4)

    def states():
        return [file["state"] for file in api.get(path).json()["files"]]

    path = f"/api/v1/debuginfo/{program.build_id}"
    assert api.post(path + "/debuginfo", program.elf.read_bytes()).status == 202
    # More claims than a job has tries.
    due = "UPDATE symbol_job SET run_after = now() WHERE leased_until IS NULL RETURNING fence"
    wait_for(lambda: max((fence for (fence,) in server.rows(due)), default=0) > 8, 60)
    assert states() == ["waiting"]
    filler.unlink()
    wait_for(lambda: server.rows(due) == [] and states() == ["built"], 60)
