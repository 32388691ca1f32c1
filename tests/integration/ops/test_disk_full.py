"""A full disk and a read-only disk. The tests mount a small file system and therefore need root."""

import base64
import contextlib
import os
import pathlib
import subprocess
import time

import psycopg2
import pytest

import sample_profiles as samples
from conftest import Server, copy_template, make_folder
from people import Tenant
from test_ingest_wire import OTLP, PUSH, X_PROTO
from test_shares import share as new_share
from test_shares import wait_for
from test_store import BEGIN, CPU_NAMES, HOUR
from test_symbol_names import BASE, C_SOURCE, Program, needs_compiler, open_tables, send_table

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system"),
]

MIB = 1 << 20
DISK_MIB = 480


def mount(*arguments):
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip("cannot mount here: " + done.stderr)


@pytest.fixture
def disk():
    """The mount point of a file system of 480 MiB."""
    folder = make_folder()
    mount("-t", "tmpfs", "-o", f"size={DISK_MIB}m,mode=755", "tmpfs", str(folder))
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)
    folder.rmdir()


@pytest.fixture
def server(disk):
    """A server with a cluster of its own, since the segments of the template's log are small."""
    instance = Server(disk / "data").start()
    yield instance
    assert instance.stop() == 0, instance.log()[-4000:]


def free_mib(folder):
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize // MIB


def fill(folder, left_mib):
    """Creates a file of another program that leaves left_mib free, not a byte if 0."""
    path = folder / "filler"
    with open(path, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, (free_mib(folder) - max(left_mib, 1)) * MIB)
    with open(path, "ab", buffering=0) as file, contextlib.suppress(OSError):
        while left_mib == 0:
            file.write(b"x" * 4096)
    return path


def is_ready(server):
    return server.anonymous().get("/readyz").status == 200


def storing_requests(server, upload):
    """Returns one request for each route that stores data of the request."""
    api = server.api()
    part, body = {"size": 5 << 20}, samples.FOLDED
    json = {"Content-Type": "application/json"}
    return {
        "profiles": lambda: api.post("/api/v1/profiles", body),
        "ingest": lambda: api.post("/ingest", body, query={"name": "app"}),
        "push": lambda: api.post(PUSH, b'{"series":[]}', headers=json),
        "otlp": lambda: api.post(OTLP, b"", headers={"Content-Type": X_PROTO}),
        "share": lambda: api.post("/api/v1/shares", body),
        "query share": lambda: api.post("/api/v1/shares", query={"query": "process_cpu:cpu"}),
        "upload": lambda: api.post("/api/v1/uploads", json=part),
        "part": lambda: api.put(f"/api/v1/uploads/{upload}/parts/0", b"x" * (4 << 20)),
        "complete": lambda: api.post(f"/api/v1/uploads/{upload}/complete"),
        "table": lambda: api.post("/api/v1/debuginfo/abcdef0123456789/table", body),
        "debug file": lambda: api.post("/api/v1/debuginfo/abcdef0123456789/debuginfo", body),
        "executable": lambda: api.post("/api/v1/debuginfo/abcdef0123456789/executable", body),
    }


def assert_refuses(server, upload, words):
    for name, send in storing_requests(server, upload).items():
        response = send()
        assert response.status == 503 and int(response.headers["retry-after"]) > 0, (name, response)
        assert words in response.text, (name, response)
    ready = server.anonymous().get("/readyz")
    assert ready.status == 503 and words in ready.json()["detail"], ready


def test_a_full_disk_refuses_uploads_and_allows_deletions(server, disk):
    api = server.api()
    share = api.post("/api/v1/shares", samples.FOLDED).json()["id"]
    upload = api.post("/api/v1/uploads", json={"size": 5 << 20}).json()["id"]
    assert api.post("/ingest", samples.FOLDED, query={"name": "app"}).status == 200
    assert is_ready(server)
    filler = fill(disk, 40)
    wait_for(lambda: not is_ready(server))
    assert_refuses(server, upload, "disk is full")
    # The only segment is old enough to be merged, but merges that free no space wait.
    with server.cursor() as cursor:
        cursor.execute("UPDATE segment SET created_at = created_at - interval '1 hour'")
    merged = "SELECT count(*) FROM segment WHERE swapped_at IS NOT NULL"
    time.sleep(3)
    assert server.rows(merged) == [(0,)]
    # A deletion of profiles takes space before it frees any.
    deletions = [
        api.request("DELETE", "/api/v1/profiles", query={"query": f'{{pod="{i}"}}'})
        for i in range(22)
    ]
    assert [response.status for response in deletions] == [202] * 20 + [503] * 2
    assert "disk is full" in deletions[-1].text and int(deletions[-1].headers["retry-after"]) > 0
    wait_for(lambda: server.rows(merged) == [(1,)])
    assert api.get(f"/api/v1/shares/{share}").status == 200
    assert api.get("/api/v1/query", query={"query": "process_cpu:cpu"}).status == 200
    kept = pathlib.Path(server.data_dir, "objects", "share", share)
    assert kept.exists()
    assert api.delete(f"/api/v1/shares/{share}").status == 204
    assert api.delete(f"/api/v1/uploads/{upload}").status == 204
    wait_for(lambda: not kept.exists())
    assert not is_ready(server)
    filler.unlink()
    wait_for(lambda: is_ready(server))
    assert api.post("/ingest", samples.FOLDED, query={"name": "app"}).status == 200
    assert api.post("/api/v1/shares", samples.FOLDED).status == 201


@needs_compiler
def test_names_return_when_the_disk_has_space_again(server, disk, tmp_path):
    """While the disk has no space to unpack a symbol table, responses lack its names and may not be
    cached. Later responses have them."""
    api = Tenant(server).api("ingest", "read", "share", "debuginfo")
    program = Program(tmp_path, "ae" * 20, C_SOURCE)
    send_table(api, program.build_id, program.table)
    top = f"/api/v1/shares/{new_share(api, program.profile())['id']}/top"
    assert api.post("/api/v1/profiles", program.profile()).status == 200
    window = {"query": CPU_NAMES[1] + "{}", "start": BEGIN, "end": BEGIN + HOUR}
    query = {**window, "report": "top"}
    diff = {f"b_{name}": value for name, value in window.items()}
    requests = (
        lambda **fields: api.get(top, **fields),
        lambda **fields: api.get("/api/v1/query", query=query, **fields),
        lambda **fields: api.get(
            "/api/v1/diff/top", query={**diff, "a": top.split("/")[4]}, **fields
        ),
    )
    filler = fill(disk, 40)
    wait_for(lambda: not is_ready(server))
    for send in requests * 2:
        response = send()
        names = [one["name"] for one in response.json()["functions"]]
        assert response.status == 200 and all(name.startswith("program+") for name in names)
        assert response.headers["cache-control"] == "no-store" and "etag" not in response.headers
        symbolization = response.json()["symbolization"]
        assert not symbolization["complete"], symbolization
        assert [one["build_id"] for one in symbolization["pending"]] == [program.build_id]
    focused = api.get("/api/v1/query", query={**query, "focus": "^inner$"})
    assert focused.json()["kept"] == 0 and not focused.json()["symbolization"]["complete"]
    status = api.get(top.replace("/top", "/symbolization")).json()
    assert not status["complete"] and len(status["pending"]) == 1
    filler.unlink()
    for send in requests:
        wait_for(lambda send=send: send().json()["symbolization"]["complete"])
        response = send()
        names = {one["name"] for one in response.json()["functions"]}
        assert {"inner", "middle", "main"} <= names, names
        assert response.headers["cache-control"] != "no-store"
    etag = api.get(top).headers["etag"]
    assert api.get(top, headers={"If-None-Match": etag}).status == 304
    focused = api.get("/api/v1/query", query={**query, "focus": "^inner$"})
    assert focused.json()["kept"] and focused.json()["symbolization"]["complete"]


@needs_compiler
def test_unpacked_tables_stay_when_others_are_refused(server, disk, tmp_path):
    api = Tenant(server).api("read", "share", "debuginfo")
    programs, links = [], []
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        programs.append(Program(folder, f"a{number}" * 20, C_SOURCE))
        send_table(api, programs[-1].build_id, programs[-1].table)
        links.append(new_share(api, programs[-1].profile())["id"])
    programs[0].check(api.get(f"/p/{links[0]}.pb.gz").body, BASE)
    assert open_tables(server) == 1
    filler = fill(disk, 40)
    wait_for(lambda: not is_ready(server))
    for number in range(4):
        response = api.get(f"/api/v1/shares/{links[1]}/top", query={"limit": 10 + number})
        assert not response.json()["symbolization"]["complete"], response
        # A response of its own for each request, so that the table is looked up.
        query = {"limit": 10 + number}
        response = api.get(f"/api/v1/shares/{links[0]}/top", query=query)
        assert response.json()["symbolization"]["complete"], response
        assert open_tables(server) == 1
    filler.unlink()


def test_deletions_succeed_after_another_program_fills_the_disk(server, disk):
    """The disk has no byte left. The server releases its reserve so that PostgreSQL can write."""
    api = server.api()
    made = [api.post("/api/v1/shares", samples.FOLDED).json()["id"] for _ in range(20)]
    filler = fill(disk, 0)
    wait_for(lambda: not is_ready(server))
    for share in made:
        wait_for(
            lambda share=share: api.delete(f"/api/v1/shares/{share}").status in (204, 404, 410),
            seconds=600,
        )
    folder = server.data_dir / "objects" / "share"
    wait_for(lambda: not any((folder / share).exists() for share in made))
    assert not is_ready(server)
    filler.unlink()
    wait_for(lambda: is_ready(server))
    assert api.post("/api/v1/shares", samples.FOLDED).status == 201


def test_uploads_do_not_use_the_reserve_of_the_disk(server, disk):
    """PostgreSQL is on the same disk and never runs out of space."""
    team = Tenant(server)
    team.limit(max_bytes_stored=1 << 40)  # more than the disk has
    api = team.api("share")
    made = []
    while True:
        body = b"main;" + os.urandom(3 << 20).hex().encode() + b" 1\n"
        response = api.post("/api/v1/shares", body)
        if response.status != 201:
            break
        made.append(response.json()["id"])
    assert response.status == 503 and int(response.headers["retry-after"]) > 0, response
    assert made and free_mib(disk) > 20, (len(made), free_mib(disk))
    for share in made:
        assert api.delete(f"/api/v1/shares/{share}").status == 204
    wait_for(lambda: is_ready(server))
    assert api.post("/api/v1/shares", samples.FOLDED).status == 201
    assert "PANIC" not in server.database_log()


def test_the_space_of_deleted_rows_returns_to_a_full_disk(server, disk):
    """PostgreSQL keeps the space of deleted rows in the files of their tables."""
    team = Tenant(server)
    team.limit(max_bytes_stored=1 << 40, uploads_per_minute=100_000)
    api = team.api("share")
    made = []
    while is_ready(server):
        for _ in range(4):
            made.append(api.post("/api/v1/shares", samples.FOLDED).json().get("id"))
        noise = base64.b64encode(os.urandom(600_000)).decode()
        server.rows(
            "UPDATE share SET summary = json_build_object('noise', %s), row_bytes = %s"
            " WHERE id = ANY (%s) RETURNING 1",
            [noise, len(noise), made[-4:]],
        )
        time.sleep(0.3)  # the server looks at the disk twice a second
    made = [share for share in made if share]
    digest = f"SELECT md5(summary::text) FROM share WHERE id = '{made[-1]}'"
    kept = server.rows(digest)
    assert len(made) > 100
    # VACUUM alone frees only the end of a file, where the newest share is.
    for share in made[:-1]:
        assert api.delete(f"/api/v1/shares/{share}").status == 204
    wait_for(lambda: is_ready(server), 400)

    def newest():
        try:
            return server.rows(digest)
        except psycopg2.Error:  # PostgreSQL ended the connection when the disk was full
            return None

    wait_for(newest, 400)
    assert newest() == kept
    wait_for(lambda: api.post("/api/v1/shares", samples.FOLDED).status == 201, 400)
    assert "returned the space of deleted shares to the full disk" in server.log()


def test_exports_that_are_read_slowly_leave_space_for_others(server, disk):
    """An export is kept until its client has read it."""
    api, other = Tenant(server).api("ingest", "read", "share"), Tenant(server).api("ingest", "read")
    body = b"".join(b"main;%s 1\n" % os.urandom(500).hex().encode() for _ in range(8000))
    for client in (api, other):
        assert client.post("/ingest", body, query={"name": "app"}).status == 200
    open_exports = []

    def begin_export(client):
        connection = server.connect()
        connection.request(
            "GET",
            "/api/v1/export?query=%7Bservice_name%3D%22app%22%7D",
            headers={"Authorization": "Bearer " + client.token},
        )
        response = connection.getresponse()
        assert response.status in (200, 503), response.read()
        if response.status == 200:
            open_exports.append((connection, response))
        else:
            assert int(response.headers["retry-after"]) > 0
            assert b"select fewer series" in response.read()
            connection.close()
        return response.status == 200

    before = free_mib(disk)
    while begin_export(api):
        assert len(open_exports) < 50
    assert 1 <= len(open_exports) and free_mib(disk) >= before - DISK_MIB / 16 - 1
    assert begin_export(other)
    assert is_ready(server)
    for connection, _ in open_exports:
        connection.close()
    wait_for(lambda: free_mib(disk) >= before - 8)
    wait_for(lambda: begin_export(api))
    sent = open_exports[-1][1].read()
    assert sent[:4] == sent[-4:] == b"PAR1"
    filler = fill(disk, 100)  # the reserve is 64 MiB
    assert not begin_export(api)
    assert api.post("/api/v1/shares", samples.FOLDED).status == 201
    filler.unlink()
    wait_for(lambda: begin_export(api))


def test_a_team_may_store_a_quarter_of_the_disk_by_default(server, disk):
    quota = Tenant(server).api("read").get("/api/v1/tenant").json()["quotas"]
    assert quota["max_bytes_stored"] == DISK_MIB * MIB // 4


def test_the_team_with_most_batches_forgets_their_ids_first(server, disk):
    """The ids of a day may take a 32nd of the disk, here the least number, 100,000."""
    few, many = Tenant(server), Tenant(server)
    for team, count in ((few, 10), (many, 100_200)):
        server.rows(
            "INSERT INTO ingest_batch (tenant_id, batch_id, received_at)"
            " SELECT %s, sha256(n::text::bytea), now() - n * interval '0.5 s'"
            " FROM generate_series(1, %s) AS n RETURNING 1",
            [team.id, count],
        )
    server.rows("ANALYZE ingest_batch")
    counts = "SELECT count(*) FROM ingest_batch WHERE tenant_id = %s"
    wait_for(lambda: server.rows(counts, [many.id])[0][0] <= 100_000)
    assert server.rows(counts, [many.id])[0][0] > 99_000
    assert server.rows(counts, [few.id]) == [(10,)]
    oldest = "SELECT max(now() - received_at) < interval '50100 s' FROM ingest_batch"
    assert server.rows(oldest + " WHERE tenant_id = %s", [many.id]) == [(True,)]


def test_a_read_only_disk_refuses_uploads(disk, cluster_template):
    """Only the objects are on that disk, because PostgreSQL cannot run on a read-only disk."""
    copy_template(cluster_template, disk / "data")
    objects = disk / "data" / "objects"
    objects.mkdir(mode=0o755)
    # So small that the server reserves no space for deletions: an open reserve file would prevent
    # the remount.
    mount("-t", "tmpfs", "-o", "size=120m,mode=755", "tmpfs", str(objects))
    server = Server(disk / "data")
    try:
        server.start()
        api = server.api()
        share = api.post("/api/v1/shares", samples.FOLDED).json()["id"]
        upload = api.post("/api/v1/uploads", json={"size": 5 << 20}).json()["id"]
        mount("-o", "remount,ro", str(objects))
        wait_for(lambda: not is_ready(server))
        assert_refuses(server, upload, "cannot be written")
        assert api.get(f"/api/v1/shares/{share}").status == 200
        mount("-o", "remount,rw", str(objects))
        wait_for(lambda: is_ready(server))
        assert api.post("/api/v1/shares", samples.FOLDED).status == 201
        assert server.stop() == 0
    finally:
        server.stop()
        subprocess.run(["umount", "-l", str(objects)], check=True)


@pytest.mark.parametrize("is_killed", [False, True], ids=["stopped", "killed"])
def test_a_server_starts_on_a_completely_full_disk(server, disk, tmp_path, is_killed):
    api = server.api()
    made = [api.post("/api/v1/shares", samples.FOLDED).json()["id"] for _ in range(3)]
    upload = api.post("/api/v1/uploads", json={"size": 5 << 20}).json()["id"]
    assert api.post("/ingest", samples.FOLDED, query={"name": "app"}).status == 200
    if is_killed:
        server.kill_all()
    else:
        assert server.stop() == 0
    filler = fill(disk, 0)
    server.log_path = tmp_path / "log"
    server.launch()

    def is_alive():
        assert server.process.poll() is None, server.log()
        with contextlib.suppress(OSError):
            return server.anonymous().get("/healthz").status == 200

    wait_for(is_alive)
    api = server.api()
    assert_refuses(server, upload, "disk is full")
    assert api.get(f"/p/{made[0]}/raw").body == samples.FOLDED
    assert api.get(f"/api/v1/shares/{made[0]}/flame").status == 200
    assert api.get("/api/v1/query", query={"query": "process_cpu:cpu"}).status == 200
    for share in made:
        wait_for(
            lambda share=share: api.delete(f"/api/v1/shares/{share}").status in (204, 404, 410)
        )
    folder = server.data_dir / "objects" / "share"
    wait_for(lambda: not any((folder / share).exists() for share in made))
    filler.unlink()
    wait_for(lambda: is_ready(server))
    assert api.post("/api/v1/shares", samples.FOLDED).status == 201
