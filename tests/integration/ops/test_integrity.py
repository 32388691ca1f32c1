"""Integrity of stored objects: the server serves an object exactly as it was uploaded or not at
all. It distinguishes damaged, lost and deleted objects, counts them and logs them."""

import functools
import hashlib
import http.client
import json
import os
import re
import socket
import stat
import subprocess

import pytest

import sample_profiles as samples
import stored
from conftest import rest_long
from people import Tenant
from test_backup import run
from test_server import external_database  # noqa: F401
from test_debuginfo import compile_with_id, path, wait_built
from test_store import BEGIN, HOUR, compact, until
from test_store_deletion import push as push_profile
from test_symbol_names import C_SOURCE, Program, needs_compiler, send_table

pytestmark = pytest.mark.skipif(stored.is_in_bucket(), reason="files are changed and removed")

# HTTP_CHUNK_BYTES: the server verifies a response of one chunk before it sends the status.
CHUNK = 256 << 10
PART = 4 << 20


def flip(data, at=None):
    at = len(data) // 2 if at is None else at
    return data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]


def zero(data):
    middle = len(data) // 2
    return data[:middle] + bytes(min(64, len(data) - middle)) + data[middle + 64 :]


DAMAGES = {
    "flip": flip,
    "zero": zero,
    "truncate": lambda data: data[:-1],
    "lengthen": lambda data: data + b"x",
    "empty": lambda data: b"",
}


def metric(api, name, **labels):
    selector = ",".join(f'{key}="{value}"' for key, value in labels.items())
    found = re.search(
        rf"^{name}{{{selector}}} (\S+)$" if labels else rf"^{name} (\S+)$",
        api.get("/metrics").text,
        re.M,
    )
    return float(found[1]) if found else 0


@functools.cache  # the tests need megabytes of digests
def digest(number):
    return hashlib.sha256(str(number).encode()).hexdigest()


def folded(size, seed=0):
    lines, total = [], 0
    while total < size:
        lines.append(f"main;function_{seed}_{len(lines)};{digest(len(lines))} 1\n")
        total += len(lines[-1])
    return "".join(lines).encode()


def push(api, body, **query):
    response = api.post("/api/v1/shares", body, query=query)
    assert response.status == 201, response
    return response.json()["id"]


def refuses(api, where, kind):
    response = api.get(where)
    assert response.status == 500 and response.json()["type"] == f"/problems/{kind}", response
    assert "etag" not in response.headers and "operator" in response.json()["detail"], response
    return response


@pytest.mark.parametrize("damage", rest_long(list(DAMAGES), 2))
def test_a_damaged_share_returns_an_error_without_its_bytes(start_server, damage):
    server = start_server()
    api = server.api()
    share, whole = push(api, samples.FOLDED), push(api, folded(1000))
    key = f"share/{share}"
    before = metric(api, "perfolio_objects_damaged_total", kind="share")
    server.objects.write(key, DAMAGES[damage](server.objects.read(key)))
    response = refuses(api, f"/api/v1/shares/{share}/raw", "damaged")
    refuses(api, f"/p/{share}/raw", "damaged")
    assert metric(api, "perfolio_objects_damaged_total", kind="share") == before + 2
    (line,) = [
        line
        for line in server.log().splitlines()
        if response.json()["request_id"] in line and "code=damaged" in line
    ]
    assert "level=error" in line.lower() and key in line, line
    assert api.get(f"/api/v1/shares/{whole}/raw").status == 200
    assert api.get(f"/api/v1/shares/{share}").status == 200, "the metadata should still be served"
    server.restart()
    api = server.api()
    for view in ("flame", "top"):
        refuses(api, f"/api/v1/shares/{share}/{view}", "damaged")
    assert api.get(f"/p/{share}.svg").status == 500
    assert api.get(f"/api/v1/shares/{whole}/flame").status == 200


def make_socket(path):
    """Binds a socket at path. It uses a descriptor of the folder, because the path is longer than
    the address of a socket may be."""
    folder = os.open(path.parent, os.O_PATH)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"/proc/self/fd/{folder}/{path.name}")
    os.close(folder)


OTHER_FILES = {
    "fifo": os.mkfifo,
    "socket": make_socket,
    "folder": os.mkdir,
    "link": lambda path: path.symlink_to("/etc/passwd"),
    "device": lambda path: os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 5)),
}


@pytest.mark.long
@pytest.mark.parametrize(
    "what",
    [
        name
        if name != "device"
        else pytest.param(
            name, marks=pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
        )
        for name in OTHER_FILES
    ],
)
def test_an_object_that_is_no_regular_file_is_reported_as_damaged(start_server, what):
    server = start_server("--jobs-interval", "1s")
    api, tenant = server.api(), Tenant(server)
    client = tenant.api("ingest", "read")
    share, whole = push(api, samples.FOLDED), push(api, folded(1000))
    push_profile(client, "pod=a", BEGIN)
    push_profile(client, "pod=a", BEGIN + 25 * HOUR)
    compact(server)
    with server.cursor() as cursor:
        cursor.execute("UPDATE block SET leased_until = now() + interval '1 hour'")
    block = min(server.objects.keys("block/"))
    for key in (f"share/{share}", block):
        path = server.data_dir / "objects" / key
        path.unlink()
        OTHER_FILES[what](path)
    server.restart()
    api = server.api()
    refuses(api, f"/api/v1/shares/{share}/raw", "damaged")
    refuses(api, f"/api/v1/shares/{share}/flame", "damaged")
    assert metric(api, "perfolio_objects_damaged_total", kind="share") == 2
    assert api.get(f"/api/v1/shares/{whole}/raw").status == 200
    client.close()
    response = client.get(
        "/api/v1/query",
        query={
            "query": "process_cpu:samples:count:cpu:nanoseconds:delta{}",
            "start": BEGIN,
            "end": BEGIN + 100 * HOUR,
        },
    )
    assert response.status == 200 and "perfolio-warning" in response.headers, response
    assert metric(api, "perfolio_store_damaged_reads_total", problem="damaged") >= 1
    printed = run("store", "verify", "--json", "--data-dir", server.data_dir, check=False).stdout
    assert {(one["object"], one["problem"]) for one in json.loads(printed)["problems"]} == {
        (f"share/{share}", "broken"),
        (block, "broken"),
    }


def test_the_response_of_a_large_damaged_share_is_aborted(start_server):
    server = start_server()
    api = server.api()
    body = folded(5 * CHUNK // 2)
    share = push(api, body)
    assert api.get(f"/api/v1/shares/{share}/raw").body == body
    for at in (0, CHUNK + 1, len(body) - 1):
        server.objects.write(f"share/{share}", flip(body, at))
        with pytest.raises(http.client.IncompleteRead) as cut:
            server.api().get(f"/api/v1/shares/{share}/raw")
        assert len(cut.value.partial) <= 2 * CHUNK < len(body), at
        loaded = server.cli("get", share, "-o", server.data_dir.parent / "copy")
        assert loaded.returncode != 0, loaded
    assert "a response was aborted" in server.log()
    assert metric(api, "perfolio_objects_damaged_total", kind="share") >= 6
    assert api.request("HEAD", f"/api/v1/shares/{share}/raw").status == 200
    server.objects.write(f"share/{share}", body[:-1])
    refuses(api, f"/api/v1/shares/{share}/raw", "damaged")
    server.objects.write(f"share/{share}", body)
    assert api.get(f"/api/v1/shares/{share}/raw").body == body


@pytest.mark.skipif(
    b"HTTP2" not in subprocess.run(["curl", "-V"], capture_output=True).stdout,
    reason="no curl with HTTP/2",
)
def test_the_http_2_stream_of_a_damaged_share_is_reset(start_server, tmp_path):
    server = start_server("--http2", "yes")
    body = folded(5 * CHUNK // 2)
    share = push(server.api(), body)
    server.objects.write(f"share/{share}", flip(body, len(body) - 1))
    loaded = subprocess.run(
        [
            "curl",
            "-sS",
            "--http2",
            "--cacert",
            server.ca_file,
            "-o",
            tmp_path / "copy",
            "-w",
            "%{http_version} %{size_download}",
            f"{server.url}/p/{share}/raw",
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    version, size = loaded.stdout.split()
    assert (version, int(size) < len(body), loaded.returncode != 0) == ("2", True, True), loaded


def test_a_lost_share_is_distinguished_from_a_deleted_one(start_server):
    server = start_server()
    api = server.api()
    lost, deleted = push(api, samples.FOLDED), push(api, folded(1000))
    (server.data_dir / "objects/share" / lost).unlink()
    assert api.delete(f"/api/v1/shares/{deleted}").status == 204
    gone = api.get(f"/api/v1/shares/{deleted}/raw")
    assert gone.status == 410 and gone.json()["type"] == "/problems/gone"
    response = refuses(api, f"/api/v1/shares/{lost}/raw", "lost")
    assert metric(api, "perfolio_objects_lost_total", kind="share") == 1
    assert metric(api, "perfolio_objects_damaged_total", kind="share") == 0
    (line,) = [
        line
        for line in server.log().splitlines()
        if response.json()["request_id"] in line and "code=lost" in line
    ]
    assert "level=error" in line.lower() and lost in line, line
    shown = server.cli("get", lost, "-o", "-")
    assert shown.returncode == 1
    assert re.search(rb"Send the request id to the operator.* \(request \w+\)", shown.stderr), shown
    server.restart()
    refuses(server.api(), f"/api/v1/shares/{lost}/flame", "lost")


def spoil(server, damage, key):
    path = server.data_dir / "objects" / key
    if damage == "delete":
        path.unlink()
    elif damage == "unreadable":
        path.chmod(0)
    else:
        server.objects.write(key, DAMAGES[damage](server.objects.read(key)))


@pytest.mark.long
@pytest.mark.parametrize(
    "damage, metric_name",
    rest_long(
        [
            ("flip", "damaged"),
            ("delete", "lost"),
            ("truncate", "damaged"),
            ("unreadable", "damaged"),
        ],
        2,
    ),
)
def test_a_damaged_part_is_dropped_and_can_be_sent_again(start_server, damage, metric_name):
    server = start_server("--jobs-interval", "1s")
    api = server.api()
    body = folded(2 * PART + 1000)
    upload = api.post("/api/v1/uploads", json={"size": len(body)}).json()["id"]
    where = f"/api/v1/uploads/{upload}"
    for number, begin in enumerate(range(0, len(body), PART)):
        assert api.put(f"{where}/parts/{number}", body[begin : begin + PART]).status == 204
    keys = [
        key
        for key in server.objects.keys("part/")
        if key.startswith((f"part/{upload}.0.", f"part/{upload}.2."))
    ]
    for key in keys:
        spoil(server, damage, key)
    response = api.post(f"{where}/complete")
    assert response.status == 409 and response.json()["type"] == "/problems/conflict", response
    assert "dropped: 2 of 3 parts are missing: 0, 2" in response.json()["detail"], response
    assert "retry-after" not in response.headers
    assert api.get(where).json()["parts_received"] == [1]
    assert metric(api, f"perfolio_objects_{metric_name}_total", kind="part") == 2
    for key in keys:
        assert [
            line
            for line in server.log().splitlines()
            if "part of an upload was dropped" in line and key in line
        ]
    assert api.get("/api/v1/admin/scrub").json()["problems"] == []
    for number in (0, 2):
        assert (
            api.put(f"{where}/parts/{number}", body[number * PART : (number + 1) * PART]).status
            == 204
        )
    response = api.post(f"{where}/complete")
    assert response.status == 201, response
    assert api.get(f"/api/v1/shares/{response.json()['id']}/raw").body == body
    until(lambda: not server.objects.keys("part/"), "the parts are not deleted")


@pytest.mark.long
def test_the_cli_sends_lost_and_damaged_parts_again(start_server, tmp_path):
    """The upload is interrupted after all parts were stored and before it was completed. Then one
    part is damaged and one is lost."""
    server = start_server()
    large = tmp_path / "large.folded"
    large.write_bytes(folded(2 * PART + 1000))
    home = {"HOME": str(tmp_path), "PERFOLIO_RETRIES": "0"}
    with server.cursor() as cursor:
        cursor.execute("ALTER TABLE share RENAME TO away")
        broken = server.cli("push", large, environment=home)
        assert broken.returncode != 0 and len(server.objects.keys("part/")) == 3, broken
        cursor.execute("ALTER TABLE away RENAME TO share")
    first, second, _ = sorted(server.objects.keys("part/"))
    spoil(server, "flip", first)
    spoil(server, "delete", second)
    pushed = server.cli("push", large, environment=home)
    assert pushed.returncode == 0 and b"lost 2 of 3 parts" in pushed.stderr, pushed
    assert (
        server.cli("get", pushed.stdout.decode().strip(), "-o", tmp_path / "copy").returncode == 0
    )
    assert (tmp_path / "copy").read_bytes() == large.read_bytes()


@pytest.mark.long
def test_the_cli_sends_damaged_parts_of_a_debug_file_again(start_server, tmp_path):
    server = start_server()
    api = server.api()
    program = compile_with_id(tmp_path, "ab01d0", "program", "-static")
    with program.open("ab") as file:  # padding behind the sections
        file.write(bytes(2 * PART))
    home = {"HOME": str(tmp_path), "PERFOLIO_RETRIES": "0"}
    with server.cursor() as cursor:
        cursor.execute("ALTER TABLE debug_file ADD CONSTRAINT none CHECK (false)")
        broken = server.cli("debuginfo", "upload", "--executable", program, environment=home)
        assert broken.returncode != 0 and server.objects.keys("part/"), broken
        cursor.execute("ALTER TABLE debug_file DROP CONSTRAINT none")
    spoil(server, "truncate", min(server.objects.keys("part/")))
    sent = server.cli("debuginfo", "upload", "--executable", program, environment=home)
    assert sent.returncode == 0, sent
    wait_built(api, "ab01d0")
    assert api.get("/buildid/ab01d0/executable").body == program.read_bytes()


def test_damaged_debug_files_are_served_neither_whole_nor_in_parts(start_server, tmp_path):
    server = start_server()
    api = Tenant(server).api("debuginfo")
    program = compile_with_id(tmp_path, "ab01cd", "program", "-static").read_bytes()
    assert len(program) > 2 * CHUNK
    assert api.post(path("ab01cd", "executable"), body=program).status == 202
    wait_built(api, "ab01cd")
    where = "/buildid/ab01cd/executable"
    assert api.get(where).body == program
    assert api.get(where, headers={"Range": "bytes=100-199"}).body == program[100:200]
    (key,) = server.objects.keys("debuginfo/")
    server.objects.write(key, flip(program))
    with pytest.raises(http.client.IncompleteRead):
        api.get(where)
    # The damage is outside of the requested range.
    part = api.get(where, headers={"Range": "bytes=100-199"})
    assert part.status == 500 and part.json()["type"] == "/problems/damaged", part
    server.objects.write(key, program)
    assert api.get(where, headers={"Range": "bytes=100-199"}).status == 206
    (server.data_dir / "objects" / key).unlink()
    for fields in ({}, {"Range": "bytes=100-199"}):
        response = api.get(where, headers=fields)
        assert response.status == 500 and response.json()["type"] == "/problems/lost", response
    admin = server.api()
    assert metric(admin, "perfolio_objects_damaged_total", kind="debug_file") == 2
    assert metric(admin, "perfolio_objects_lost_total", kind="debug_file") == 2


@pytest.mark.long
def test_unreadable_blocks_are_counted_per_query_and_logged_once(start_server):
    server = start_server("--jobs-interval", "1s")
    tenant = Tenant(server)
    client, api = tenant.api("ingest", "read"), server.api()
    for i in range(3):
        push_profile(client, "pod=a", BEGIN + i * 25 * HOUR)
    compact(server)
    with server.cursor() as cursor:
        cursor.execute("UPDATE block SET leased_until = now() + interval '1 hour'")
    server.restart()
    keys = sorted(server.objects.keys("block/"))
    footer = len(server.objects.read(keys[0])) - 100
    server.objects.write(keys[0], flip(server.objects.read(keys[0]), footer))
    (server.data_dir / "objects" / keys[1]).unlink()
    query = {
        "query": "process_cpu:samples:count:cpu:nanoseconds:delta{}",
        "start": BEGIN,
        "end": BEGIN + 100 * HOUR,
    }
    for i in range(4):  # another window each time, because results are cached
        response = client.get("/api/v1/query", query={**query, "end": query["end"] + i * HOUR})
        assert response.status == 200, response
    assert metric(api, "perfolio_store_damaged_reads_total", problem="damaged") >= 4
    assert metric(api, "perfolio_store_damaged_reads_total", problem="lost") >= 4
    assert metric(api, "perfolio_store_damaged_blocks") == 2
    for key, problem in ((keys[0], "damaged"), (keys[1], "lost")):
        (line,) = [
            line
            for line in server.log().splitlines()
            if "a query could not read a block" in line and key in line
        ]
        assert "level=error" in line and f"problem={problem}" in line, line


def test_a_debug_file_damaged_before_its_build_can_be_sent_again(start_server, tmp_path):
    server = start_server()
    tenant = Tenant(server)
    api = tenant.api("debuginfo")
    program = compile_with_id(tmp_path, "ab01ce").read_bytes()
    assert api.post(path("ab01ce", "executable"), body=program).status == 202
    wait_built(api, "ab01ce")
    (key,) = server.objects.keys("debuginfo/")
    server.objects.write(key, flip(program))
    with server.cursor() as cursor:  # as if the file had been damaged before the last attempt
        cursor.execute("UPDATE debug_file SET state = 'waiting'")
        cursor.execute(
            "INSERT INTO symbol_job (tenant_id, kind, key, build_id, debug_file_id, try_count)"
            " SELECT tenant_id, 'build', 'build/' || id, build_id, id, 4 FROM debug_file"
        )
    until(
        lambda: [file["state"] for file in api.get(path("ab01ce")).json()["files"]] == ["failed"],
        "the job does not end",
    )
    (file,) = api.get(path("ab01ce")).json()["files"]
    assert "damaged or lost: upload it again" in file["reason"], file
    assert metric(server.api(), "perfolio_objects_damaged_total", kind="debug_file") >= 1
    assert api.post(path("ab01ce", "executable"), body=program).status == 202
    wait_built(api, "ab01ce")
    assert api.get("/buildid/ab01ce/executable").body == program


@needs_compiler
@pytest.mark.parametrize("how", ["flip", "delete"])
def test_a_damaged_or_lost_symbol_table_is_counted_and_not_used(start_server, tmp_path, how):
    server = start_server()
    program = Program(tmp_path, "bb" * 20, C_SOURCE)
    client = Tenant(server).api("read", "share", "debuginfo")
    link = push(client, program.profile())
    send_table(client, program.build_id, program.table)
    (key,) = server.objects.keys("symbols/")
    if how == "flip":
        server.objects.write(key, flip(server.objects.read(key)))
    else:
        (server.data_dir / "objects" / key).unlink()
    server.restart()
    client.close()
    for _ in range(3):
        response = client.get(f"/api/v1/shares/{link}/top")
        assert response.status == 200 and b"not_symbolised" in response.body, response
    name = "damaged" if how == "flip" else "lost"
    assert metric(server.api(), f"perfolio_objects_{name}_total", kind="symbol_table") == 1
    status = client.get(f"/api/v1/shares/{link}/symbolization").json()
    assert (
        status["complete"] is False and "damaged on the server" in status["missing"][0]["reason"]
    ), status
    known = client.get(f"/api/v1/debuginfo/{program.build_id}").json()
    assert (known["state"], known["table"]["is_damaged"]) == ("missing", True), known
    send_table(client, program.build_id, program.table)
    until(
        lambda: b"not_symbolised" not in client.get(f"/api/v1/shares/{link}/top").body,
        "the table has no names",
    )
    assert (
        client.get(f"/api/v1/debuginfo/{program.build_id}").json()["table"]["is_damaged"] is False
    )
    assert (
        len(
            [
                line
                for line in server.log().splitlines()
                if f"a stored object is {name}" in line and key in line
            ]
        )
        == 1
    )


@pytest.mark.long
def test_a_new_upload_replaces_a_damaged_debug_file_or_table(start_server, tmp_path):
    server = start_server()
    tenant = Tenant(server)
    api, admin = tenant.api("debuginfo"), server.api()

    def used():
        return admin.get(f"/api/v1/admin/tenants/{tenant.id}").json()["usage"]["bytes_stored"]

    program = Program(tmp_path, "cc" * 20, C_SOURCE)
    binary = compile_with_id(tmp_path, "ab01cf").read_bytes()
    send_table(api, program.build_id, program.table)
    assert api.post(path("ab01cf", "executable"), body=binary).status == 202
    wait_built(api, "ab01cf")
    before, keys = used(), server.objects.keys("symbols/") | server.objects.keys("debuginfo/")
    assert (
        api.post(path("ab01cf", "executable"), body=binary).status == 200
    ), "the same file is known"
    run = admin.post("/api/v1/admin/scrub/start")
    assert run.status == 200
    for key in keys:
        server.objects.write(key, flip(server.objects.read(key)))
    assert api.get("/buildid/ab01cf/executable").status == 500
    (file,) = server.objects.keys("debuginfo/")
    until(
        lambda: {one["object"] for one in admin.get("/api/v1/admin/scrub").json()["problems"]}
        == keys,
        "the damage is not listed",
    )
    assert file.encode() in server.cli("admin", "scrub", "problems").stdout
    assert api.post(path("ab01cf", "executable"), body=binary).status == 202
    wait_built(api, "ab01cf")
    assert api.get("/buildid/ab01cf/executable").body == binary
    assert api.post(path(program.build_id, "table"), body=program.table).json()["is_stored"] is True
    assert used() == before
    until(
        lambda: not (server.objects.keys("symbols/") | server.objects.keys("debuginfo/")) & keys,
        "the damaged objects are not deleted",
    )


def test_the_cli_sends_a_debug_file_again_that_is_damaged_on_the_server(start_server, tmp_path):
    server = start_server()
    api, home = server.api(), {"HOME": str(tmp_path), "PERFOLIO_RETRIES": "0"}
    program = compile_with_id(tmp_path, "ab01d1")

    def upload():
        sent = server.cli("debuginfo", "upload", "--executable", program, environment=home)
        assert sent.returncode == 0, sent
        wait_built(api, "ab01d1")
        return sent.stdout

    upload()
    assert b"the server has it" in upload()
    (key,) = server.objects.keys("debuginfo/")
    server.objects.write(key, flip(server.objects.read(key)))
    assert api.get("/buildid/ab01d1/executable").status == 500
    until(
        lambda: api.get("/api/v1/debuginfo/ab01d1").json()["files"][0]["is_damaged"],
        "the damage is not stated",
    )
    assert (
        b"damaged on the server"
        in server.cli("debuginfo", "check", "ab01d1", environment=home).stdout
    )
    upload()
    assert api.get("/buildid/ab01d1/executable").body == program.read_bytes()


def test_damage_found_by_a_request_is_listed_immediately(start_server):
    server = start_server()
    api = server.api()
    damaged, lost = push(api, folded(1000, 1)), push(api, folded(1000, 2))
    server.objects.write(f"share/{damaged}", b"x")
    (server.data_dir / "objects/share" / lost).unlink()
    for share in (damaged, lost, damaged, lost):
        assert api.get(f"/p/{share}/raw").status == 500
    listed = {
        one["object"]: one["problem"] for one in api.get("/api/v1/admin/scrub").json()["problems"]
    }
    assert listed == {f"share/{damaged}": "broken", f"share/{lost}": "missing"}


def test_a_damaged_page_of_the_database_is_an_error(start_server):
    """PostgreSQL compares each page that it reads with its checksum. Without that, a flipped bit of
    the tenant's number would give the share to another team."""
    server = start_server()
    owner = Tenant(server).user("owner")
    secret = "the description of the damaged row"
    made = owner.post(
        "/api/v1/shares", b"main;work 1\n", query={"description": secret, "visibility": "team"}
    )
    assert made.status == 201, made
    with server.cursor() as cursor:
        cursor.execute("SHOW data_checksums")
        assert cursor.fetchone() == ("on",)
        cursor.execute("SELECT pg_relation_filepath('share')")
        (table,) = cursor.fetchone()
    server.stop()
    file = server.data_dir / "pg" / table
    data = file.read_bytes()
    file.write_bytes(flip(data, data.index(secret.encode())))
    server.start()
    response = owner.get(f"/api/v1/shares/{made.json()['id']}")
    assert response.status == 503 and secret[1:] not in response.text, response
    assert "invalid page" in server.log()
    assert "invalid page" in server.database_log()
    backup = server.data_dir.parent / "backup"
    done = run("backup", "--data-dir", server.data_dir, backup, check=False)
    assert done.returncode == 1 and "invalid page" in done.stderr, done


def test_a_database_without_page_checksums_is_reported(start_server, external_database):
    server = start_server("--database-url", external_database, is_fresh=True)
    assert "the database has no page checksums" in server.log()
