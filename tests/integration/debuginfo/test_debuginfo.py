"""Debug information that teams upload: symbol tables, debug files and their jobs, and debuggers
that fetch the files."""

import contextlib
import hashlib
import http.server
import json
import os
import pathlib
import random
import re
import shutil
import string
import struct
import subprocess
import threading
import time

import pytest

import stored as storage
from conftest import BUILD, ROOT, Api
from people import Tenant
from test_database_outage import terminate
from test_quotas import reply_behind_the_quota_lock

SYMBOLIZE = BUILD / "perfolio-symbolize"
SOURCE = """
volatile int sink;
static inline __attribute__((always_inline)) int inner(int x) { sink += x; return sink; }
__attribute__((noinline)) int outer(int x) { return inner(x) * 3; }
int main(int argc, char **argv) { (void)argv; return outer(argc) & 1; }
"""
PART = 4 << 20


def run(*arguments):
    done = subprocess.run(
        [str(argument) for argument in arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def compile_with_id(folder, build_id, name="program", *flags):
    """An ELF file with that build id and debug information."""
    source = folder / f"{name}.c"
    source.write_text(SOURCE)
    binary = folder / name
    run("gcc", "-O2", "-g", *flags, f"-Wl,--build-id=0x{build_id}", source, "-o", binary)
    return binary


def table_of(binary):
    table = binary.parent / (binary.name + ".symbols")
    run(SYMBOLIZE, "-q", "-o", table, binary)
    return table.read_bytes()


def packed_of(binary):
    """The packed symbol table of binary, the form in which tables are sent and stored."""
    table = binary.parent / (binary.name + ".packed")
    run(SYMBOLIZE, "-q", "--packed", "-o", table, binary)
    return table.read_bytes()


def crc32c(content):
    """CRC-32C of content; the table of the 256 bytes is computed bit by bit."""
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    crc = 0xFFFFFFFF
    for byte in content:
        crc = table[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def swollen(packed, mib):
    """A packed table whose header claims that the last column expands to this many MiB more; see
    lib/symbols/symbol_pack_format.h."""
    head, columns = 256, 15
    filler = bytes((mib << 20) // 64)  # the packed bytes limit the size to which a column expands
    content = bytearray(packed + filler)
    last = head + 16 * (columns - 1)
    packed_bytes, flat_bytes = struct.unpack_from("<QQ", content, last)
    struct.pack_into("<QQ", content, last, packed_bytes + len(filler), flat_bytes + (mib << 20))
    struct.pack_into("<IQ", content, 12, 0, len(content))
    struct.pack_into("<I", content, 12, crc32c(content))
    return bytes(content)


def stripped(binary):
    """A copy of binary with only the symbols that the dynamic linker needs."""
    target = binary.parent / (binary.name + ".stripped")
    run("strip", "-o", target, binary)
    return target


@pytest.fixture
def tenant(server):
    return Tenant(server)


def path(build_id, what=""):
    return f"/api/v1/debuginfo/{build_id}" + (f"/{what}" if what else "")


def wait_built(client, build_id, state="built"):
    """Waits until no file of the build id is in the state "waiting"; returns its status."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        status = client.get(path(build_id)).json()
        if status["files"] and all(file["state"] != "waiting" for file in status["files"]):
            assert {file["state"] for file in status["files"]} == {state}, status
            return status
        time.sleep(0.05)
    raise AssertionError(status)


def in_parts(client, data, name="program"):
    begun = client.post("/api/v1/debuginfo/uploads", json={"size": len(data), "filename": name})
    assert begun.status == 201, begun
    upload = begun.json()
    assert begun.headers["location"] == f"/api/v1/debuginfo/uploads/{upload['id']}"
    for part in range(upload["part_count"]):
        piece = data[part * PART : (part + 1) * PART]
        assert (
            client.put(f"/api/v1/debuginfo/uploads/{upload['id']}/parts/{part}", body=piece).status
            == 204
        )
    return upload["id"]


def stored_bytes(server, tenant):
    with server.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(sum(bytes_stored), 0) FROM tenant_usage WHERE tenant_id = %s",
            [tenant.id],
        )
        return cursor.fetchone()[0]


def test_an_uploaded_table_is_stored_and_listed(server, tenant, tmp_path):
    client = tenant.api("debuginfo")
    binary = compile_with_id(tmp_path, "aa01")
    table, packed = table_of(binary), packed_of(binary)
    response = client.post(path("AA01", "table"), body=table, query={"file": "/usr/bin/program"})
    assert response.status == 201, response.text
    assert response.json()["is_stored"] and {"dwarf", "lines", "inlines"} <= set(
        response.json()["quality"]
    )
    listed = client.get("/api/v1/debuginfo").json()["binaries"]
    assert [
        (
            each["build_id"],
            each["table"]["source"],
            each["table"]["file"],
            each["table"]["bytes"],
            each["files"],
        )
        for each in listed
    ] == [("aa01", "table", "/usr/bin/program", len(packed), 0)]
    status = client.get(path("aa01")).json()
    assert (
        status["state"] == "ready"
        and status["table"]["functions"] == response.json()["functions"] > 0
    )
    assert response.json()["bytes"] == stored_bytes(server, tenant) == len(packed) < len(table)
    again = client.post(path("aa01", "table"), body=packed)
    assert again.status == 200 and not again.json()["is_stored"]
    assert stored_bytes(server, tenant) == len(packed)


def test_a_table_above_the_memory_limit_is_refused_before_it_is_expanded(start_server, tmp_path):
    server = start_server("--max-heavy-memory", "64MiB")
    client = server.api(Tenant(server).make_token("debuginfo", "read")["token"])
    packed = packed_of(compile_with_id(tmp_path, "aa03"))
    # The server refuses the large table before expanding it; otherwise it would report damage. A
    # small table does not need a heavy-memory slot.
    refused = client.post(path("aa03", "table"), body=swollen(packed, 30))
    assert refused.status == 413, refused
    detail = refused.json()["detail"]
    assert "--max-heavy-memory" in detail and "symbol table" in detail
    assert client.post(path("aa03", "table"), body=swollen(packed, 2)).status == 400
    assert client.post(path("aa03", "table"), body=packed).status == 201


def library_of_many_names(folder, build_id):
    """A library whose table takes 9 MiB, because its names are random and hardly compress."""
    letters, chosen = string.ascii_letters + string.digits, random.Random(1)
    names = ("".join(chosen.choices(letters, k=250)) for _ in range(50000))
    source = folder / "names.s"
    source.write_text(
        "".join(f".globl f{name}\n.type f{name}, @function\nf{name}: nop\n" for name in names)
    )
    library = folder / "names.so"
    run("gcc", "-shared", "-nostdlib", f"-Wl,--build-id=0x{build_id}", source, "-o", library)
    return library


@pytest.mark.long
@pytest.mark.parametrize("memory, form", [("64MiB", b"PFSYMTB1"), ("256MiB", b"PFSYMPK1")])
def test_a_table_is_stored_unpacked_if_packing_exceeds_the_memory_limit(
    start_server, tmp_path, memory, form
):
    server = start_server("--max-heavy-memory", memory)
    first, other = Tenant(server), Tenant(server)
    library = library_of_many_names(tmp_path, "aa0e")
    table = table_of(library)
    assert len(table) > 8 << 20

    def stored_magic(team):
        with server.cursor() as cursor:
            cursor.execute("SELECT object_key FROM symbol_table WHERE tenant_id = %s", [team.id])
            return server.objects.read(cursor.fetchone()[0])[:8]

    upload = in_parts(first.api("debuginfo"), table)
    assert (
        first.api("debuginfo").post(path("aa0e", "table"), query={"upload": upload}).status == 201
    )
    assert stored_magic(first) == form
    # The same holds for a table that the server builds.
    client = other.api("debuginfo")
    upload = in_parts(client, library.read_bytes())
    assert client.post(path("aa0e", "debuginfo"), query={"upload": upload}).status == 202
    assert wait_built(client, "aa0e")["table"]["functions"] == 50000
    assert stored_magic(other) == form


def test_a_large_file_has_symbol_names_before_its_dwarf_is_read(start_server, tmp_path):
    server = start_server()
    client = Tenant(server).api("debuginfo")
    padding = tmp_path / "padding"
    padding.write_bytes(os.urandom(3 << 20))
    for build_id in ("aa05", "aa06"):
        binary = compile_with_id(tmp_path, build_id, f"large-{build_id}")
        run("objcopy", "--add-section", f".padding={padding}", binary)
        if build_id == "aa06":  # gets debug information of an unknown version
            data = bytearray(binary.read_bytes())
            for name in ("info", "line"):
                offset = int(
                    re.search(
                        rf"\.debug_{name} +PROGBITS +\w+ (\w+)", run("readelf", "-SW", binary)
                    )[1],
                    16,
                )
                data[offset + 4 : offset + 6] = b"\x63\x00"
            binary.write_bytes(data)
        upload = in_parts(client, binary.read_bytes(), binary.name)
        response = client.post(
            path(build_id, "debuginfo"), query={"upload": upload, "file": binary.name}
        )
        assert response.status == 202, response.text
        status = wait_built(client, build_id)
        assert ("dwarf" in status["table"]["quality"]) == (build_id == "aa05")
        assert "symtab" in status["table"]["quality"]
    assert "perfolio_symbol_first_names_total 2" in server.api().get("/metrics").text


def test_a_damaged_table_or_one_of_another_binary_is_refused(server, tenant, tmp_path):
    client = tenant.api("debuginfo")
    binary = compile_with_id(tmp_path, "aa02")
    for table in (packed_of(binary), table_of(binary)):
        damaged = bytearray(table)
        damaged[len(table) // 2] ^= 0xFF
        for body in (b"\x7fELF", bytes(damaged), table[:-1], table + b"x"):
            response = client.post(path("aa02", "table"), body=body)
            assert (
                response.status == 400 and "not a valid symbol table" in response.json()["detail"]
            ), response.text
    other = client.post(path("aa03", "table"), body=table)
    assert other.status == 400 and "its build id is aa02" in other.json()["detail"]
    assert client.get("/api/v1/debuginfo").json()["binaries"] == []
    assert stored_bytes(server, tenant) == 0


@pytest.mark.parametrize("build_id", ["x", "abc", "00" * 129, "aa%2F"])
def test_an_invalid_build_id_is_refused(tenant, build_id):
    assert tenant.api("debuginfo").get(path(build_id)).status == 400


def test_the_server_builds_a_table_from_a_debug_file(server, tenant, tmp_path):
    client = tenant.api("debuginfo")
    binary = compile_with_id(tmp_path, "aa04")
    data = binary.read_bytes()
    sent = client.post(path("aa04", "debuginfo"), body=data, query={"file": "program"})
    assert sent.status == 202, sent.text
    assert sent.json()["sha256"] == hashlib.sha256(data).hexdigest()
    status = wait_built(client, "aa04")
    assert status["state"] == "ready" and status["table"]["source"] == "file"
    assert "inlines" in status["table"]["quality"] and status["table"]["file"] == "program"
    # perfolio-symbolize is also the server's builder, so both tables have the same size.
    assert status["table"]["bytes"] == len(packed_of(binary))
    assert stored_bytes(server, tenant) == len(data) + status["table"]["bytes"]
    again = client.post(path("aa04", "debuginfo"), body=data)
    assert again.status == 200 and again.json()["state"] == "built"
    assert stored_bytes(server, tenant) == len(data) + status["table"]["bytes"]


def test_uploads_in_parts_create_a_file_or_a_table(server, tenant, tmp_path):
    client = tenant.api("debuginfo")
    binary = compile_with_id(tmp_path, "aa05")
    padding = tmp_path / "padding"
    padding.write_bytes(os.urandom(PART + 17))
    run("objcopy", "--add-section", f".padding={padding}", binary)
    data = binary.read_bytes()
    upload = in_parts(client, data)
    early = client.post("/api/v1/debuginfo/uploads", json={"size": len(data)}).json()["id"]
    missing = client.post(path("aa05", "executable"), query={"upload": early})
    assert missing.status == 409 and "missing" in missing.json()["detail"]
    assert client.delete(f"/api/v1/debuginfo/uploads/{early}").status == 204
    sent = client.post(path("aa05", "executable"), query={"upload": upload})
    assert sent.status == 202, sent.text
    status = wait_built(client, "aa05")
    assert status["files"][0]["file"] == "program" and status["files"][0]["bytes"] == len(data)
    assert client.post(path("aa05", "executable"), query={"upload": upload}).status == 404
    stored = len(data) + status["table"]["bytes"]
    for build_id, form in (("aa06", table_of), ("aa07", packed_of)):
        other = compile_with_id(tmp_path, build_id, "other")
        sent = client.post(path(build_id, "table"), query={"upload": in_parts(client, form(other))})
        assert sent.status == 201, sent.text
        stored += len(packed_of(other))
    assert stored_bytes(server, tenant) == stored
    if not storage.is_in_bucket():
        kept = {file.stat().st_size for file in (server.data_dir / "objects/symbols").iterdir()}
        assert len(table_of(other)) not in kept and len(packed_of(other)) in kept


def test_a_table_is_replaced_only_by_a_better_one(server, tenant, tmp_path):
    client = tenant.api("debuginfo")
    binary = compile_with_id(tmp_path, "aa07", "program", "-rdynamic")
    worse, better = table_of(stripped(binary)), table_of(binary)
    assert client.post(path("aa07", "table"), body=worse).json()["quality"] == ["dynsym"]
    assert client.post(path("aa07", "table"), body=better).json()["is_stored"]
    late = client.post(path("aa07", "table"), body=worse)
    assert late.status == 200 and not late.json()["is_stored"]
    assert "dwarf" in client.get(path("aa07")).json()["table"]["quality"]
    client.post(path("aa07", "executable"), body=stripped(binary).read_bytes())
    assert "dwarf" in wait_built(client, "aa07")["table"]["quality"]
    assert stored_bytes(server, tenant) == len(packed_of(binary)) + stripped(binary).stat().st_size


def test_a_table_without_dwarf_leaves_the_symbol_need_open(server, tenant, tmp_path):
    client = tenant.api("debuginfo")
    binary = compile_with_id(tmp_path, "aa0f", "program", "-rdynamic")

    def needs():
        with server.cursor("perfolio_jobs") as cursor:
            cursor.execute("SELECT build_id FROM symbol_need WHERE tenant_id = %s", [tenant.id])
            return [row[0] for row in cursor.fetchall()]

    with server.cursor("perfolio_jobs") as cursor:
        cursor.execute(
            "INSERT INTO symbol_need (tenant_id, build_id) VALUES (%s, 'aa0f')", [tenant.id]
        )
        cursor.connection.commit()
    assert client.post(path("aa0f", "table"), body=table_of(stripped(binary))).status == 201
    assert needs() == ["aa0f"]
    assert client.post(path("aa0f", "table"), body=table_of(binary)).status == 201
    assert needs() == []


@pytest.mark.skipif(not shutil.which("dwz"), reason="no dwz")
@pytest.mark.parametrize("what", ["table", "debuginfo"])
def test_a_binary_without_its_dwz_file_is_reported_as_partial(server, tenant, tmp_path, what):
    client = tenant.api("debuginfo")
    whole = compile_with_id(tmp_path, "aa10")
    binary = tmp_path / "shared"
    for name in ("shared", "twin"):
        shutil.copy(whole, tmp_path / name)
    subprocess.run(["dwz", "-m", "shared.debug", "shared", "twin"], cwd=tmp_path, check=True)
    with server.cursor("perfolio_jobs") as cursor:
        cursor.execute(
            "INSERT INTO symbol_need (tenant_id, build_id) VALUES (%s, 'aa10')", [tenant.id]
        )
        cursor.connection.commit()

    def needs():
        with server.cursor("perfolio_jobs") as cursor:
            cursor.execute("SELECT count(*) FROM symbol_need WHERE tenant_id = %s", [tenant.id])
            return cursor.fetchone()[0]

    body = table_of(binary) if what == "table" else binary.read_bytes()
    assert client.post(path("aa10", what), body=body).status in (201, 202)
    status = wait_built(client, "aa10") if what == "debuginfo" else client.get(path("aa10")).json()
    assert status["state"] == "missing" and "partial" in status["table"]["quality"], status
    assert (
        "names are in a shared file of dwz that was not given" in status["reason"] and needs() == 1
    )
    # The complete table replaces the partial one, which does not replace it in turn.
    for table in (table_of(whole), table_of(binary)):
        assert client.post(path("aa10", "table"), body=table).status in (200, 201)
        status = client.get(path("aa10")).json()
        assert status["state"] == "ready" and "partial" not in status["table"]["quality"], status
        assert status["reason"] == "" and needs() == 0


def test_an_unusable_file_is_remembered_with_the_reason(server, tenant, tmp_path):
    client = tenant.api("debuginfo")
    other = compile_with_id(tmp_path, "aa08").read_bytes()
    for build_id, body, reason in (
        ("bb01", b"no ELF file at all", "ELF"),
        ("bb02", other, "build id is aa08"),
    ):
        assert client.post(path(build_id, "debuginfo"), body=body).status == 202
        status = wait_built(client, build_id, "failed")
        assert status["state"] == "missing" and reason in status["reason"], status
        again = client.post(path(build_id, "debuginfo"), body=body)
        assert (
            again.status == 400
            and "tried before" in again.json()["detail"]
            and reason in again.text
        )
        assert client.get(f"/buildid/{build_id}/debuginfo").status == 404
    assert stored_bytes(server, tenant) == 0


def test_two_teams_have_separate_tables_of_one_build_id(server, tmp_path):
    teams = [Tenant(server), Tenant(server)]
    clients = [team.api("debuginfo") for team in teams]
    binary = compile_with_id(tmp_path, "aa09", "program", "-rdynamic")
    tables = [table_of(binary), table_of(stripped(binary))]
    for client, table in zip(clients, tables):
        assert client.post(path("aa09", "table"), body=table).status == 201
    sizes = [len(packed_of(binary)), len(packed_of(stripped(binary)))]
    assert [client.get(path("aa09")).json()["table"]["bytes"] for client in clients] == sizes
    assert clients[0].delete(path("aa09")).status == 204
    assert clients[0].get(path("aa09")).json()["table"] is None
    assert clients[1].get(path("aa09")).json()["table"]["bytes"] == sizes[1]


def test_files_of_other_teams_are_indistinguishable_from_missing_ones(server, tmp_path):
    owner, other = Tenant(server).api("debuginfo"), Tenant(server).api("debuginfo")
    binary = compile_with_id(tmp_path, "aa0a").read_bytes()
    assert owner.post(path("aa0a", "debuginfo"), body=binary).status == 202
    wait_built(owner, "aa0a")

    def seen(build_id):
        responses = [
            other.get(path(build_id)),
            other.delete(path(build_id)),
            other.get(f"/buildid/{build_id}/debuginfo"),
            other.get(f"/buildid/{build_id}/executable"),
            other.post(path(build_id, "table"), body=b"x"),
        ]
        return [
            (
                response.status,
                re.sub(r'"(request_id|instance)":"[^"]*"', "", response.text).replace(
                    build_id, "ID"
                ),
            )
            for response in responses
        ]

    assert seen("aa0a") == seen("aa0b")
    # 200 would reveal that the server knows the file.
    assert other.post(path("aa0a", "debuginfo"), body=binary).status == 202


def test_debuginfod_clients_fetch_uploaded_files(server, tenant, tmp_path):
    client = tenant.api("debuginfo")
    binary = compile_with_id(tmp_path, "aa0c" * 10)
    build_id = "aa0c" * 10
    debug = tmp_path / "program.debug"
    run("objcopy", "--only-keep-debug", binary, debug)
    assert client.post(path(build_id, "executable"), body=binary.read_bytes()).status == 202
    assert client.post(path(build_id, "debuginfo"), body=debug.read_bytes()).status == 202
    wait_built(client, build_id)
    response = client.get(f"/buildid/{build_id}/debuginfo")
    assert response.status == 200 and response.body == debug.read_bytes()
    assert response.headers["x-debuginfod-size"] == str(debug.stat().st_size)
    if not shutil.which("debuginfod-find"):
        pytest.skip("no debuginfod-find")
    headers = tmp_path / "headers"
    headers.write_text(f"Authorization: Bearer {client.token}\n")
    with http_proxy(server) as url:
        find_both(url, headers, build_id, {"executable": binary, "debuginfo": debug}, tmp_path)


def test_an_executable_with_debug_information_is_served_as_a_debug_file(tenant, tmp_path):
    client, build_id = tenant.api("debuginfo"), "aa0d" * 10
    binary = compile_with_id(tmp_path, build_id)
    stripped, debug = tmp_path / "stripped", tmp_path / "program.debug"
    run("strip", "--strip-debug", "-o", stripped, binary)
    run("objcopy", "--only-keep-debug", binary, debug)

    def send(kind, file):
        assert client.post(path(build_id, kind), body=file.read_bytes()).status == 202
        wait_built(client, build_id)

    send("executable", stripped)
    assert client.get(f"/buildid/{build_id}/debuginfo").status == 404
    send("executable", binary)
    response = client.get(f"/buildid/{build_id}/debuginfo")
    assert response.status == 200 and response.body == binary.read_bytes()
    etag = response.headers["etag"]
    assert etag == f'"{hashlib.sha256(response.body).hexdigest()}"'
    assert (
        client.get(f"/buildid/{build_id}/debuginfo", headers={"if-none-match": etag}).status == 304
    )
    head = client.request("HEAD", f"/buildid/{build_id}/debuginfo")
    assert head.status == 200 and head.headers["etag"] == etag and head.body == b""
    assert head.headers["x-debuginfod-size"] == str(binary.stat().st_size)
    send("debuginfo", debug)  # the server prefers a debug file to an executable
    response = client.get(f"/buildid/{build_id}/debuginfo")
    assert response.body == debug.read_bytes() and response.headers["etag"] != etag


def test_range_requests_return_a_part_of_the_file(tenant, tmp_path):
    client, build_id = tenant.api("debuginfo"), "aa1d" * 10
    data = compile_with_id(tmp_path, build_id).read_bytes()
    size = len(data)
    assert client.post(path(build_id, "executable"), body=data).status == 202
    wait_built(client, build_id)
    for kind in ("debuginfo", "executable"):
        url = f"/buildid/{build_id}/{kind}"
        whole = client.get(url)
        etag = whole.headers["etag"]
        assert whole.status == 200 and whole.headers["accept-ranges"] == "bytes"
        for field, first, end in (
            ("bytes=0-99", 0, 100),
            (f"bytes={size - 7}-", size - 7, size),
            ("bytes=-9", size - 9, size),
            ("bytes=5-999999999", 5, size),
            ("bytes=0-0", 0, 1),
        ):
            part = client.get(url, headers={"range": field})
            assert part.status == 206 and part.body == data[first:end], field
            assert part.headers["content-range"] == f"bytes {first}-{end - 1}/{size}"
            assert part.headers["content-length"] == str(end - first)
            assert part.headers["etag"] == etag and part.headers["x-debuginfod-size"] == str(size)
        same = client.get(url, headers={"range": "bytes=1-2", "if-range": etag})
        assert same.status == 206 and same.body == data[1:3]
        for others in (
            {"if-range": '"another"'},
            {"if-range": "W/" + etag},
            {"range": "bytes=0-1,3-4"},
            {"range": "lines=1-2"},
        ):
            complete = client.get(url, headers={"range": "bytes=1-2"} | others)
            assert complete.status == 200 and complete.body == data, others
        late = client.get(url, headers={"range": f"bytes={size}-"})
        assert late.status == 416 and late.headers["content-range"] == f"bytes */{size}"
        assert late.json()["status"] == 416 and str(size) in late.json()["detail"]
        head = client.request("HEAD", url, headers={"range": "bytes=0-9"})
        assert (
            head.status == 200 and head.headers["content-length"] == str(size) and head.body == b""
        )
        known = client.get(url, headers={"range": "bytes=0-9", "if-none-match": etag})
        assert known.status == 304


@pytest.mark.skipif(not shutil.which("gdb"), reason="no gdb")
def test_gdb_reads_lines_from_an_uploaded_file(server, tenant, tmp_path):
    client, build_id = tenant.api("debuginfo"), os.urandom(20).hex()
    binary = compile_with_id(tmp_path, build_id)
    assert client.post(path(build_id, "executable"), body=binary.read_bytes()).status == 202
    wait_built(client, build_id)
    stripped = tmp_path / "stripped"
    run("strip", "-o", stripped, binary)
    headers = tmp_path / "headers"
    headers.write_text(f"Authorization: Bearer {client.token}\n")
    with http_proxy(server) as url:
        environment = {
            "DEBUGINFOD_URLS": url,
            "DEBUGINFOD_HEADERS_FILE": str(headers),
            "HOME": str(tmp_path),
            "DEBUGINFOD_CACHE_PATH": str(tmp_path / "cache"),
            "PATH": os.environ["PATH"],
        }
        done = subprocess.run(
            [
                "gdb",
                "-nx",
                "-batch",
                "-ex",
                "set debuginfod enabled on",
                "-ex",
                f"file {stripped}",
                "-ex",
                "info line main",
            ],
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert re.search(r'Line \d+ of ".*program[.]c"', done.stdout), done.stdout + done.stderr


class Forward(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        response = Api(self.server.target).get(
            self.path, headers={"Authorization": self.headers["Authorization"]}
        )
        self.send_response(response.status)
        for name in ("content-length", "x-debuginfod-size"):
            if name in response.headers:
                self.send_header(name, response.headers[name])
        self.end_headers()
        self.wfile.write(response.body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def http_proxy(server):
    """The URL of an HTTP proxy of the server, because libdebuginfod has no option for another
    certificate authority."""
    proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Forward)
    proxy.target = server
    thread = threading.Thread(target=proxy.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{proxy.server_port}/"
    finally:
        proxy.shutdown()
        thread.join()
        proxy.server_close()


def find_both(url, headers, build_id, files, folder):
    environment = {
        "DEBUGINFOD_URLS": url,
        "DEBUGINFOD_HEADERS_FILE": str(headers),
        "DEBUGINFOD_VERBOSE": "1",
        "DEBUGINFOD_CACHE_PATH": str(folder / "cache"),
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
    }
    for kind, file in files.items():
        done = subprocess.run(
            ["debuginfod-find", kind, build_id],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        with open(done.stdout.strip(), "rb") as found:
            assert found.read() == file.read_bytes()


def test_deletion_frees_the_quota_and_the_objects(server, tenant, tmp_path):
    client = tenant.api("debuginfo")
    assert (
        client.post(
            path("aa0d", "debuginfo"), body=compile_with_id(tmp_path, "aa0d").read_bytes()
        ).status
        == 202
    )
    wait_built(client, "aa0d")
    with server.cursor() as cursor:
        cursor.execute(
            "SELECT object_key FROM symbol_table WHERE tenant_id = %s UNION ALL "
            "SELECT object_key FROM debug_file WHERE tenant_id = %s",
            [tenant.id, tenant.id],
        )
        keys = [row[0] for row in cursor.fetchall()]
    assert len(keys) == 2
    assert client.delete(path("aa0d")).status == 204
    assert client.delete(path("aa0d")).status == 404
    assert stored_bytes(server, tenant) == 0
    with server.cursor() as cursor:
        for key in keys:
            cursor.execute("SELECT count(*) FROM object_trash WHERE object_key = %s", [key])
            assert cursor.fetchone()[0] == 1 or not (server.data_dir / "objects" / key).exists()


def test_a_table_above_the_storage_quota_is_refused(server, tmp_path):
    tenant = Tenant(server, max_bytes_stored=1000)
    client = tenant.api("debuginfo")
    table = table_of(compile_with_id(tmp_path, "aa0e"))
    assert len(table) > 1000
    response = client.post(path("aa0e", "table"), body=table)
    assert response.status in (413, 429), response.text
    assert stored_bytes(server, tenant) == 0


def test_replaced_tables_count_for_the_quota_until_they_are_deleted(server, tenant, tmp_path):
    client = tenant.api("debuginfo")
    tables = [
        packed_of(compile_with_id(tmp_path, "aa5f", name, flag))
        for name, flag in (("one", "-fomit-frame-pointer"), ("two", "-fno-omit-frame-pointer"))
    ]
    backup = server.database("perfolio_jobs")
    backup.cursor().execute("SELECT pg_advisory_lock(%s)", (0x50465357,))
    try:
        assert client.post(path("aa5f", "table"), body=tables[0]).status == 201
        limit = {"max_bytes_stored": int(stored_bytes(server, tenant) * 5 // 2)}
        quotas = server.api().patch(f"/api/v1/admin/tenants/{tenant.id}", json=limit)
        assert quotas.status == 200, quotas
        statuses = [
            client.post(path("aa5f", "table"), body=tables[number % 2]).status
            for number in (1, 2, 4)
        ]
        assert statuses == [201, 429, 429]
    finally:
        backup.close()


def test_a_replaced_table_waits_for_the_quota_without_locking_a_row(server, tmp_path):
    tenant = Tenant(server, max_bytes_stored=10 << 20)
    client = tenant.api("debuginfo")
    tables = [
        packed_of(compile_with_id(tmp_path, "aa60", name, flag))
        for name, flag in (("one", "-fomit-frame-pointer"), ("two", "-fno-omit-frame-pointer"))
    ]
    assert client.post(path("aa60", "table"), body=tables[0]).status == 201
    again = reply_behind_the_quota_lock(
        server, tenant, lambda: client.post(path("aa60", "table"), body=tables[1])
    )
    assert again.status == 201, again
    assert stored_bytes(server, tenant) == len(tables[1])


@pytest.fixture
def backup_lock(server):
    """Holds the lock that a backup holds while it copies the objects."""
    connection = server.database("perfolio_jobs")
    connection.cursor().execute("SELECT pg_advisory_lock(%s)", (0x50465357,))
    yield
    connection.close()


def trash_bytes(server, tenant):
    return server.rows(
        "SELECT coalesce(sum(bytes), 0)::bigint FROM object_trash WHERE tenant = %s", (tenant.id,)
    )[0][0]


@pytest.mark.parametrize("form", [table_of, packed_of])
def test_a_table_in_parts_needs_no_more_quota_than_its_announcement(
    server, tmp_path, backup_lock, form
):
    binary = compile_with_id(tmp_path, "aa61")
    data, stored = form(binary), len(packed_of(binary))
    tenant = Tenant(server, max_bytes_stored=len(data))
    client = tenant.api("debuginfo")
    upload = in_parts(client, data)
    response = client.post(path("aa61", "table"), query={"upload": upload})
    assert response.status == 201, response
    assert stored_bytes(server, tenant) == stored
    # The trash holds the parts, which are larger than a packed table.
    assert trash_bytes(server, tenant) == len(data) - stored


def test_a_table_in_parts_that_is_not_needed_counts_until_its_parts_are_deleted(
    server, tenant, tmp_path, backup_lock
):
    client = tenant.api("debuginfo")
    packed = packed_of(compile_with_id(tmp_path, "aa62"))
    for number in range(3):
        upload = in_parts(client, packed)
        response = client.post(path("aa62", "table"), query={"upload": upload})
        assert response.status == (200 if number else 201), response
        assert stored_bytes(server, tenant) == len(packed)
        assert trash_bytes(server, tenant) == number * len(packed)


def test_a_file_in_parts_counts_once(server, tenant, tmp_path, backup_lock):
    client = tenant.api("debuginfo")
    data = compile_with_id(tmp_path, "aa63").read_bytes()
    response = client.post(path("aa63", "debuginfo"), query={"upload": in_parts(client, data)})
    assert response.status == 202, response
    assert trash_bytes(server, tenant) == 0
    again = client.post(path("aa63", "debuginfo"), query={"upload": in_parts(client, data)})
    assert again.status == 200, again
    assert trash_bytes(server, tenant) == len(data)
    wait_built(client, "aa63")
    table = len(packed_of(tmp_path / "program"))
    assert stored_bytes(server, tenant) == len(data) + table


def test_a_table_in_parts_waits_for_the_quota_without_locking_a_row(server, tmp_path):
    tenant = Tenant(server, max_bytes_stored=10 << 20)
    client = tenant.api("debuginfo")
    packed = packed_of(compile_with_id(tmp_path, "aa64"))
    upload = in_parts(client, packed)
    done = reply_behind_the_quota_lock(
        server, tenant, lambda: client.post(path("aa64", "table"), query={"upload": upload})
    )
    assert done.status == 201, done
    assert stored_bytes(server, tenant) == len(packed)


@pytest.fixture
def perfolio(server, tenant, tmp_path):
    token = tenant.make_token("debuginfo")["token"]

    def call(*arguments, status=0):
        done = server.cli(
            "debuginfo",
            *arguments,
            environment={
                "PERFOLIO_TOKEN": token,
                "HOME": str(tmp_path),
                "XDG_STATE_HOME": str(tmp_path / "state"),
            },
        )
        assert done.returncode == status, done.stderr.decode()
        return done.stdout.decode()

    return call


def test_upload_sends_tables_and_skips_those_that_the_server_has(tenant, perfolio, tmp_path):
    client = tenant.api("debuginfo")
    binary = compile_with_id(tmp_path, "aa10", "program", "-rdynamic")
    sent = json.loads(perfolio("upload", "--json", stripped(binary)))
    assert (sent["build_id"], sent["outcome"], sent["quality"]) == ("aa10", "uploaded", ["dynsym"])
    assert perfolio("upload", binary).strip().endswith("aa10  uploaded")
    assert client.get(path("aa10")).json()["table"]["file"] == "program"
    for again in (binary, stripped(binary)):
        assert "has it" in perfolio("upload", again)
    assert "has it" in perfolio("upload", "--force", stripped(binary))
    checked = perfolio("check", "aa10")
    assert "ready" in checked and "inlines" in checked
    assert json.loads(perfolio("check", "--json", "aaff"))["state"] == "missing"
    assert "DWARF" in perfolio("check", binary)
    perfolio("upload", tmp_path / "nothing", binary, status=5)


def test_upload_sends_files_whole_and_in_parts(tenant, perfolio, tmp_path):
    client = tenant.api("debuginfo")
    small = compile_with_id(tmp_path, "aa11", "small")
    large = compile_with_id(tmp_path, "aa12", "large")
    padding = tmp_path / "padding"
    padding.write_bytes(os.urandom(PART + 17))
    run("objcopy", "--add-section", f".padding={padding}", large)
    perfolio("upload", "--raw", small, large)
    perfolio("upload", "--executable", small)
    for build_id, binary in (("aa11", small), ("aa12", large)):
        wait_built(client, build_id)
        assert client.get(f"/buildid/{build_id}/debuginfo").body == binary.read_bytes()
    assert client.get("/buildid/aa11/executable").body == small.read_bytes()
    assert "has it" in perfolio("upload", "--raw", large)
    assert "has it" in perfolio("upload", large)


def test_a_stripped_executable_is_kept_for_debuggers(server, tenant, perfolio, tmp_path):
    client = tenant.api("debuginfo")
    kinds = {}
    for build_id in ("aa13" * 10, "aa14" * 10):
        kinds[build_id] = stripped(compile_with_id(tmp_path, build_id))
        content = kinds[build_id].read_bytes()
        if build_id.startswith("aa13"):
            assert "sent for debuggers, without names" in perfolio(
                "upload", "--executable", kinds[build_id]
            )
            assert "has it" in perfolio("upload", "--executable", kinds[build_id])
        else:
            assert client.post(path(build_id, "executable"), body=content).status == 202
        status = wait_built(client, build_id)
        assert (status["state"], status["table"]) == ("missing", None)
        assert status["files"][0]["reason"] == "the file names no function: it is stripped"
        assert client.get(f"/buildid/{build_id}/executable").body == content
        assert client.get(f"/buildid/{build_id}/debuginfo").status == 404
        assert client.post(path(build_id, "executable"), body=content).status == 200
    assert stored_bytes(server, tenant) == 2 * len(content)
    # The executable of another binary, and a debug file without names, are not stored.
    for build_id, kind in (("aa15" * 10, "executable"), ("aa14" * 10, "debuginfo")):
        assert client.post(path(build_id, kind), body=content).status == 202
        while [
            file
            for file in client.get(path(build_id)).json()["files"]
            if file["state"] == "waiting"
        ]:
            time.sleep(0.05)
        assert client.get(path(build_id)).json()["files"][-1]["state"] == "failed"
    assert client.get(f"/buildid/{'aa15' * 10}/executable").status == 404
    assert stored_bytes(server, tenant) == 2 * len(content)
    perfolio("upload", "--raw", kinds["aa13" * 10], status=5)


def test_a_changed_file_of_equal_size_is_uploaded(tenant, perfolio, tmp_path):
    client = tenant.api("debuginfo")
    binary = compile_with_id(tmp_path, "aa18")
    good = binary.read_bytes()
    changed = good.replace(b"GCC: (", b"GCC: [")  # in .comment, which no table contains
    assert good != changed
    binary.write_bytes(changed)
    perfolio("upload", "--raw", binary)
    wait_built(client, "aa18")
    binary.write_bytes(good)
    assert "sent" in perfolio("upload", "--raw", binary)
    assert len(wait_built(client, "aa18")["files"]) == 2
    assert client.get("/buildid/aa18/debuginfo").body == good
    assert "has it" in perfolio("upload", "--raw", binary)


def test_check_prints_the_reason_of_a_failure(tenant, perfolio, tmp_path):
    client = tenant.api("debuginfo")
    assert client.post(path("aa16", "debuginfo"), body=b"no ELF file at all").status == 202
    reason = wait_built(client, "aa16", "failed")["files"][0]["reason"]
    assert reason and f"bytes, failed: {reason}\n" in perfolio("check", "aa16")
    split = compile_with_id(tmp_path, "aa17", "split", "-gsplit-dwarf")
    assert client.post(path("aa17", "debuginfo"), body=split.read_bytes()).status == 202
    problem = wait_built(client, "aa17")["table"]["problem"]
    assert "split file" in problem and re.search(
        rf"  table .*: .*partial.*: {re.escape(problem)}\n", perfolio("check", "aa17")
    )


def test_check_lists_the_binaries_of_a_profile(perfolio, tenant):
    """The profile is of a Go program, whose build id is text. An upload of its debug file makes the
    binary ready."""
    data = (
        pathlib.Path(os.environ.get("PERFOLIO_SHARED", ROOT.parent / "shared")) / "data/symbolize"
    )
    if not data.is_dir():
        pytest.skip("no such profiles here")
    profile = data / "stripped-cpu.stripped.pprof"
    lines = [json.loads(line) for line in perfolio("check", "--json", profile).splitlines()]
    files = {line["build_id"]: data / line["build_id"] / "debuginfo" for line in lines}
    files = {build_id: file for build_id, file in files.items() if file.exists()}
    assert len(files) == 1 and {line["state"] for line in lines} == {"missing"}
    for build_id, file in files.items():
        perfolio("upload", "--raw", file)
        assert "go" in wait_built(tenant.api("debuginfo"), build_id)["table"]["quality"]
        assert "ready" in perfolio("check", profile)


def generations_read(server):
    """How often the server has read the generation of symbol tables from the database."""
    with server.database("perfolio_cluster") as connection, connection.cursor() as cursor:
        terminate(cursor)  # a session reports its statistics when it ends
        cursor.execute(
            "SELECT seq_scan + coalesce(idx_scan, 0) FROM pg_stat_all_tables"
            " WHERE relname = 'symbol_generation_public'"
        )
        return cursor.fetchone()[0]


def test_status_requests_read_the_table_generation_once_each(start_server):
    server = start_server()
    client = server.api(Tenant(server).make_token("read", "debuginfo")["token"])
    count = 200
    before = generations_read(server)
    for number in range(count):
        assert client.get(path(f"{number:040x}")).json()["state"] == "missing"
    # Each response reads the generation once.
    assert count <= generations_read(server) - before < 1.5 * count


def test_the_command_line_lists_and_deletes_uploaded_files(server, tenant, perfolio, tmp_path):
    """The list includes a file without a table and spans more than one page."""
    assert perfolio("list") == ""
    binary = compile_with_id(tmp_path, "aa20")
    perfolio("upload", "--raw", binary)
    broken = tmp_path / "broken"
    client = tenant.api("debuginfo")
    table = table_of(compile_with_id(tmp_path, "aa21"))
    assert (
        client.post(path("aa21", "table"), body=table, query={"file": "/usr/bin/one"}).status == 201
    )
    broken.write_bytes(compile_with_id(tmp_path, "aa22").read_bytes()[:3000])
    assert (
        client.post(
            path("aa22", "debuginfo"), body=broken.read_bytes(), query={"file": "broken"}
        ).status
        == 202
    )
    wait_built(client, "aa22", "failed")
    wait_built(client, "aa20")
    listed = [json.loads(line) for line in perfolio("list", "--json").splitlines()]
    assert [(one["build_id"], one["table"] is not None, one["files"]) for one in listed] == [
        ("aa20", True, 1),
        ("aa21", True, 0),
        ("aa22", False, 1),
    ]
    # The server keeps no bytes of a file that failed.
    assert [one["file_bytes"] for one in listed] == [binary.stat().st_size, 0, 0]
    paged = client.get("/api/v1/debuginfo", query={"limit": 2}).json()
    assert [one["build_id"] for one in paged["binaries"]] == ["aa20", "aa21"] and paged[
        "next"
    ] == "aa21"
    last = client.get("/api/v1/debuginfo", query={"limit": 2, "after": "aa21"}).json()
    assert [one["build_id"] for one in last["binaries"]] == ["aa22"] and last["next"] is None
    lines = perfolio("list").splitlines()
    assert lines[2] == "aa22  no table  files: 1, 0 bytes" and lines[1].startswith(
        "aa21  /usr/bin/one  table: "
    )
    assert perfolio("delete", "aa20", "aa22") == "deleted aa20\ndeleted aa22\n"
    assert [line[:4] for line in perfolio("list").splitlines()] == ["aa21"]
    perfolio("delete", "aa20", status=5)
    perfolio("delete", "../shares", status=2)


@pytest.mark.long
def test_a_file_that_expands_beyond_the_memory_of_a_builder_is_refused(start_server, tmp_path):
    """A compressed section of 400 MB of zeros in a file of some 400 KB."""
    server = start_server("--max-builder-memory=128MiB")
    client = Tenant(server).api("debuginfo")
    plain, zeros, file = (tmp_path / name for name in ("plain.so", "zeros", "file.so"))
    (tmp_path / "f.c").write_text("int f(void) { return 1; }")
    run("gcc", "-shared", "-nostdlib", "-Wl,--build-id=0xaa77", "-o", plain, tmp_path / "f.c")
    with zeros.open("wb") as empty:
        empty.truncate(400 << 20)
    run("objcopy", "--add-section", f".debug_str={zeros}", plain, file)
    run("objcopy", "--compress-debug-sections=zlib", file)
    assert file.stat().st_size < 1 << 20
    response = client.post(path("aa77", "debuginfo"), file.read_bytes())
    assert response.status == 202, response
    reason = wait_built(client, "aa77", "failed")["files"][0]["reason"]
    assert "memory" in reason, reason
