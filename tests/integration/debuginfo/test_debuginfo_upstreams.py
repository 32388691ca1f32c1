"""Teams choose their debuginfod servers; profiles get names when a server has the debug file, even
if the file appears later."""

import contextlib
import json
import os
import pathlib
import shutil
import socket
import socketserver
import subprocess
import sys
import threading
import time

import pytest

from conftest import ROOT, free_port
from debuginfod_stub import Stub
from people import Tenant
from test_debuginfod_client import build_id_of, is_scanned
from test_shares import share
from test_symbol_names import BASE, C_SOURCE, Program

sys.path.insert(0, str(ROOT / "tests" / "oracle"))

from pprof_maker import Maker  # noqa: E402

pytestmark = pytest.mark.long

UPSTREAMS = "/api/v1/debuginfo/upstreams"
SECRET = "Authorization: Bearer kept-for-this-host"
SOURCE = r"""
volatile int sink;
static inline __attribute__((always_inline)) int leaf(int x) { sink = x; return x ^ sink; }
__attribute__((noinline)) int entry_of_upstream(int x) { return leaf(x) + leaf(x + 1); }
int main(int argc, char **argv) { (void)argv; return entry_of_upstream(argc) & 1; }
"""


def wait_for(condition, seconds=120):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError("the condition was not met in time")


@pytest.fixture
def stub():
    with Stub() as made:
        yield made


@pytest.fixture
def server(start_server):
    """A server that may use upstreams on this host; its default upstream is unreachable."""
    return start_server(
        "--debuginfod-urls=http://127.0.0.1:1/", "--debuginfod-allow-host=127.0.0.1"
    )


def need(server, tenant, build_id):
    """Records a needed build id, as a query of a profile does."""
    with server.cursor() as cursor:
        cursor.execute(
            "INSERT INTO symbol_need (tenant_id, build_id, file, next_try_at) "
            "VALUES (%s, %s, 'program', now())",
            [tenant.id, build_id],
        )


def need_of(server, tenant, build_id):
    with server.cursor() as cursor:
        cursor.execute(
            "SELECT reason, try_count, extract(epoch FROM next_try_at - now())::float FROM "
            "symbol_need WHERE tenant_id = %s AND build_id = %s",
            [tenant.id, build_id],
        )
        return cursor.fetchone()


def make_due(server, build_id):
    """Makes the next attempt for a build id due now."""
    with server.cursor() as cursor:
        cursor.execute("UPDATE symbol_need SET next_try_at = now() WHERE build_id = %s", [build_id])
        assert cursor.rowcount == 1


def tables_of(server, build_id):
    """Returns the owners of the symbol tables of a build id: tenant ids, and "public"."""
    with server.cursor() as cursor:
        cursor.execute(
            "SELECT tenant_id::text FROM symbol_table WHERE build_id = %s AND source = 'upstream' "
            "UNION ALL SELECT 'public' FROM symbol_table_public WHERE build_id = %s",
            [build_id, build_id],
        )
        return [row[0] for row in cursor.fetchall()]


def build_program(folder):
    (folder / "main.c").write_text(
        SOURCE + f"/* {os.urandom(8).hex()} */\n" f'char mark[] = "{os.urandom(8).hex()}";\n'
    )
    program = folder / "program"
    subprocess.run(
        ["gcc", "-O2", "-g", "-Wl,--build-id", "main.c", "-o", "program"], cwd=folder, check=True
    )
    return program


def test_the_owner_chooses_upstreams_and_headers_are_never_shown(server):
    tenant = Tenant(server)
    owner = tenant.user("owner")
    public = {
        "mode": "public",
        "is_available": True,
        "upstreams": [],
        "public": ["http://127.0.0.1:1/"],
    }
    assert owner.get(UPSTREAMS).json() == public
    wanted = [
        {"url": "https://debuginfod.example.com/", "auth": SECRET},
        {"url": "http://127.0.0.1:8002"},
    ]
    response = owner.put(UPSTREAMS, json={"mode": "custom", "upstreams": wanted})
    assert response.status == 200, response
    assert response.json() == {
        **public,
        "mode": "custom",
        "upstreams": [
            {"url": "https://debuginfod.example.com/", "has_auth": True},
            {"url": "http://127.0.0.1:8002", "has_auth": False},
        ],
    }
    assert owner.get(UPSTREAMS).json() == response.json() and "kept-for" not in response.text
    # An upstream repeated without auth keeps its header; null removes it; omitted ones are removed.
    response = owner.put(
        UPSTREAMS,
        json={
            "mode": "custom",
            "upstreams": [
                {"url": "http://127.0.0.1:8002"},
                {"url": "https://debuginfod.example.com/"},
            ],
        },
    )
    assert [row["has_auth"] for row in response.json()["upstreams"]] == [False, True]
    with server.cursor() as cursor:
        cursor.execute(
            "SELECT auth FROM debuginfo_upstream WHERE tenant_id = %s AND position = 1", [tenant.id]
        )
        assert cursor.fetchone() == (SECRET,)
    response = owner.put(
        UPSTREAMS,
        json={
            "mode": "custom",
            "upstreams": [{"url": "https://debuginfod.example.com/", "auth": None}],
        },
    )
    assert response.json()["upstreams"] == [
        {"url": "https://debuginfod.example.com/", "has_auth": False}
    ]
    assert owner.put(UPSTREAMS, json={"mode": "off"}).json() == {**public, "mode": "off"}
    lines = [
        line["target"]
        for line in owner.get("/api/v1/audit").json()["entries"]
        if line["action"] == "debuginfo.upstreams"
    ]
    assert lines[0] == "off" and "(new header)" in lines[-1] and "kept-for" not in json.dumps(lines)
    assert Tenant(server).user("owner").get(UPSTREAMS).json() == public
    assert "kept-for" not in server.log() + server.database_log()


def test_an_invitation_reports_whether_public_upstreams_get_build_ids(server):
    tenant = Tenant(server)
    owner = tenant.user("owner")
    url = owner.post(
        "/api/v1/invitations", json={"email": "new@example.com", "role": "member"}
    ).json()["url"]
    for mode, is_public in (("public", True), ("off", False)):
        assert owner.put(UPSTREAMS, json={"mode": mode}).status == 200
        invitation = server.anonymous().post(
            "/api/v1/invitations/look", json={"token": url.partition("#")[2]}
        )
        assert invitation.json()["queries_public_debuginfod"] is is_public, invitation


def test_a_team_cannot_suspend_a_host_for_other_teams(start_server, stub, tmp_path):
    """A team lists a path of the public server at which every request fails: the host is suspended
    for this team only."""
    server = start_server(
        f"--debuginfod-urls={stub.url('content')}", "--debuginfod-allow-host=127.0.0.1"
    )
    program = build_program(tmp_path)
    stub.content = program.read_bytes()
    hostile, honest = Tenant(server), Tenant(server)
    policy = {"mode": "custom", "upstreams": [{"url": stub.url("failing")}]}
    assert hostile.user("owner").put(UPSTREAMS, json=policy).status == 200
    unknown = [os.urandom(20).hex() for _ in range(8)]
    for build_id in unknown:
        need(server, hostile, build_id)
    wait_for(
        lambda: any(
            "not tried again" in (need_of(server, hostile, one)[0] or "") for one in unknown
        )
    )
    need(server, honest, build_id_of(program))

    def has_ended():
        need = need_of(server, honest, build_id_of(program))
        return need is None or need[0]  # the need is deleted when there is a table

    wait_for(has_ended)
    assert tables_of(server, build_id_of(program)) == ["public"]


def mapped_profile(build_ids):
    """A profile with a sample in each of these binaries, without function names."""
    maker = Maker([("cpu", "nanoseconds")])
    for build_id in build_ids:
        mapping = maker.mapping("/bin/unknown", 0x400000, 0x500000, build_id, flags=0)
        maker.sample([maker.location([], mapping, 0x401137)], [10])
    return maker.bytes()


@pytest.mark.long
def test_many_unknown_binaries_do_not_delay_the_latest(start_server, stub, tmp_path):
    """A share without an account names thousands of binaries that no server has. A later share gets
    its names before these look-ups have ended."""
    server = start_server(
        f"--debuginfod-urls={stub.url('by_id')}", "--debuginfod-allow-host=127.0.0.1"
    )
    program = build_program(tmp_path)
    stub.files[build_id_of(program)] = program.read_bytes()
    client = server.anonymous()
    share_of_many = client.post(
        "/api/v1/shares", mapped_profile(os.urandom(20).hex() for _ in range(12_000))
    ).json()["id"]
    client.get(f"/api/v1/shares/{share_of_many}/top")
    # The upload and the first view note 128 needs each, fewer if hashes collide; those of the view
    # are written at once. Needs that are written together with that of the later share may come
    # before it.
    wait_for(lambda: server.rows("SELECT count(*) FROM symbol_need")[0][0] > 200)
    waiting = "SELECT count(*) FROM symbol_need WHERE try_count = 0"
    later = client.post("/api/v1/shares", mapped_profile([build_id_of(program)])).json()["id"]
    client.get(f"/api/v1/shares/{later}/top")
    wait_for(lambda: tables_of(server, build_id_of(program)) == ["public"])
    assert server.rows(waiting)[0][0] > 0, "the other look-ups have not ended"


def test_the_oldest_needs_of_a_team_are_dropped(start_server, stub):
    server = start_server(
        f"--debuginfod-urls={stub.url('absent')}", "--debuginfod-allow-host=127.0.0.1"
    )
    server.rows(
        "INSERT INTO symbol_need (tenant_id, build_id, file, last_at, next_try_at) SELECT 1,"
        " lpad(to_hex(n), 40, '0'), 'old', now() - n * interval '1 s', now() + interval '1 day'"
        " FROM generate_series(1, 10000) n RETURNING 1"
    )
    client = server.anonymous()
    new = [os.urandom(20).hex() for _ in range(3)]
    share_of_new = client.post("/api/v1/shares", mapped_profile(new)).json()["id"]
    client.get(f"/api/v1/shares/{share_of_new}/top")
    wait_for(lambda: server.rows("SELECT count(*) FROM symbol_need WHERE file <> 'old'")[0][0] == 3)
    kept = "SELECT max(build_id), count(*) FROM symbol_need WHERE file = 'old'"
    wait_for(lambda: server.rows(kept) != [(f"{10000:040x}", 10000)])
    assert server.rows(kept) == [(f"{9997:040x}", 9997)]


@pytest.mark.parametrize(
    "options, word",
    [
        ({"mode": "some"}, "mode"),
        ({"mode": "custom"}, "needs at least one"),
        ({"mode": "off", "upstreams": [{"url": "https://a.example/"}]}, "only for the mode"),
        ({"mode": "custom", "upstreams": [{"url": "http://a.example/"}]}, "https"),
        ({"mode": "custom", "upstreams": [{"url": "https://10.1.2.3/"}]}, "public Internet"),
        ({"mode": "custom", "upstreams": [{"url": "https://[::1]/"}]}, "public Internet"),
        ({"mode": "custom", "upstreams": [{"url": "https://localhost/"}]}, "public Internet"),
        ({"mode": "custom", "upstreams": [{"url": "file:///etc/passwd"}]}, "file"),
        ({"mode": "custom", "upstreams": [{"url": "https://u:p@a.example/"}]}, "password"),
        ({"mode": "custom", "upstreams": [{"url": "https://a.example/?x=1"}]}, "query"),
        ({"mode": "custom", "upstreams": [{"url": "https://a.example/"}] * 2}, "twice"),
        (
            {"mode": "custom", "upstreams": [{"url": f"https://{i}.example/"} for i in range(17)]},
            "16",
        ),
        (
            {"mode": "custom", "upstreams": [{"url": "https://a.example/", "auth": "no header"}]},
            "has the form",
        ),
        (
            {
                "mode": "custom",
                "upstreams": [{"url": "https://a.example/", "auth": "A: b\r\nHost: c"}],
            },
            "line breaks",
        ),
        (
            {"mode": "custom", "upstreams": [{"url": "https://a.example/", "auth": "Host: c"}]},
            "HTTP itself",
        ),
        ({"mode": "custom", "upstreams": [{"url": "https://a.example/", "more": 1}]}, "more"),
        ({"mode": "custom", "upstreams": ["https://a.example/"]}, "objects"),
    ],
)
def test_invalid_upstreams_are_refused(admin_owner, options, word):
    response = admin_owner.put(UPSTREAMS, json=options)
    assert response.status == 400 and word in response.json()["detail"], response


@pytest.fixture(scope="module")
def admin_owner(cluster_template, session_folder, tmp_path_factory):
    from conftest import Server, copy_template

    folder = session_folder / "upstreams"
    copy_template(cluster_template, folder)
    instance = Server(folder, ["--debuginfod-urls=https://debuginfod.example.com/"]).start()
    yield Tenant(instance).user("owner")
    instance.stop()


class RealDebuginfod:
    """The distribution's debuginfod, which scans for new files every second."""

    def __init__(self, folder):
        self.folder, self.files, self.packages = folder, folder / "files", folder / "packages"
        self.port = free_port()
        self.url, self.process = f"http://127.0.0.1:{self.port}", None
        self.files.mkdir()
        self.packages.mkdir()
        shutil.copy("/bin/true", self.files / "another")

    def start(self):
        self.process = subprocess.Popen(
            [
                "debuginfod",
                "-d",
                str(self.folder / "index.sqlite"),
                "-p",
                str(self.port),
                "-F",
                str(self.files),
                "-U",
                str(self.packages),
                "-t",
                "1",
                "-g",
                "0",
                "-c",
                "1",
                "--fdcache-mintmp=0",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "DEBUGINFOD_URLS": "", "TMPDIR": str(self.folder)},
        )
        wait_for(lambda: is_scanned(self.url))

    def kill(self):
        self.process.kill()
        self.process.wait()

    def add(self, file, place):
        """Adds the file by a rename, because debuginfod would not rescan a half-written file within
        the same second."""
        shutil.copy(file, self.folder / "copied")
        os.rename(self.folder / "copied", place)

    def has(self, build_id):
        return (
            subprocess.run(
                ["curl", "-sf", "-o", "/dev/null", f"{self.url}/buildid/{build_id}/debuginfo"],
                check=False,
            ).returncode
            == 0
        )


@pytest.fixture
def debuginfod(tmp_path):
    if not shutil.which("debuginfod"):
        pytest.skip("no debuginfod")
    real = RealDebuginfod(tmp_path)
    try:
        real.start()
        yield real
    finally:
        real.kill()


class SlowRelay(socketserver.ThreadingTCPServer):
    """Forwards to a port; limits the rate of responses until may_hurry is set."""

    daemon_threads = allow_reuse_address = True
    PIECE_BYTES, PIECE_SECONDS = 64 << 10, 0.05

    def __init__(self, port):
        self.port, self.passed_bytes, self.may_hurry = port, 0, threading.Event()
        super().__init__(("127.0.0.1", 0), SlowRelay.Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request, client_address):
        pass  # one end has closed the connection, which the test intends

    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            relay = self.server
            with socket.socket() as upstream:
                # A larger buffer would still hold the bytes of a killed server.
                upstream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, relay.PIECE_BYTES)
                upstream.connect(("127.0.0.1", relay.port))
                threading.Thread(target=self.pass_on, args=(upstream,), daemon=True).start()
                while piece := upstream.recv(relay.PIECE_BYTES):
                    self.request.sendall(piece)
                    relay.passed_bytes += len(piece)
                    relay.may_hurry.wait(relay.PIECE_SECONDS)

        def pass_on(self, upstream):
            with contextlib.suppress(OSError):
                while piece := self.request.recv(self.server.PIECE_BYTES):
                    upstream.sendall(piece)


@pytest.fixture
def relay(debuginfod):
    with SlowRelay(debuginfod.port) as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield made
        made.shutdown()


def test_an_old_share_gets_names_when_an_upstream_gets_the_file(server, tmp_path, debuginfod):
    """No server has the file, and the response of the page reports that. After the file appears, a
    retry adds the names."""
    program = Program(tmp_path, os.urandom(20).hex(), C_SOURCE)
    mine, theirs = Tenant(server), Tenant(server)
    client = mine.api("share", "read", "admin", "debuginfo")
    wanted = {"mode": "custom", "upstreams": [{"url": debuginfod.url}]}
    assert client.put(UPSTREAMS, json=wanted).status == 200
    link = share(client, program.profile())["id"]

    def status():
        return client.get(f"/p/{link}.json").json()["symbolization"]

    reason = "the debuginfod server does not have the file"
    wait_for(lambda: [row["reason"] for row in status()["missing"]] == [reason])
    _, tries, later_s = need_of(server, mine, program.build_id)
    assert tries == 1 and 500 < later_s < 601 and status()["missing"][0]["next_retry"]
    debuginfod.add(program.elf, debuginfod.files / "program")
    wait_for(lambda: debuginfod.has(program.build_id))
    response = client.post("/api/v1/debuginfo/retry", json={"build_id": program.build_id})
    assert (response.status, response.json()) == (202, {"count": 1})
    wait_for(lambda: status() == {"complete": True, "pending": [], "missing": []})
    program.check(client.get(f"/p/{link}.pb.gz").body, BASE)
    # The team's own upstream provides a table for this team only.
    assert tables_of(server, program.build_id) == [str(mine.id)]
    stranger = theirs.api("debuginfo")
    assert (
        stranger.post("/api/v1/debuginfo/retry", json={"build_id": program.build_id}).status == 404
    )


def package(program, folder):
    """Builds a debuginfo .deb like those of distributions: by build id, without the program."""
    root, build_id = folder / "program-dbgsym", program.build_id
    debug = root / "usr/lib/debug/.build-id" / build_id[:2] / f"{build_id[2:]}.debug"
    debug.parent.mkdir(parents=True)
    subprocess.run(["objcopy", "--only-keep-debug", program.elf, debug], check=True)
    (root / "DEBIAN").mkdir()
    (root / "DEBIAN/control").write_text(
        "Package: program-dbgsym\nVersion: 1\nArchitecture: all\n"
        "Maintainer: nobody <nobody@example.com>\nDescription: debuginfo\n"
    )
    subprocess.run(
        ["dpkg-deb", "--root-owner-group", "--build", root, folder / "program-dbgsym.deb"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return folder / "program-dbgsym.deb"


@pytest.mark.skipif(not shutil.which("dpkg-deb") or not shutil.which("bsdtar"), reason="no bsdtar")
def test_names_are_read_from_a_package_of_an_upstream(server, tmp_path, debuginfod):
    """The package appears after the profile, so the first request got a 404."""
    program = Program(tmp_path, os.urandom(20).hex(), C_SOURCE)
    client = Tenant(server).api("share", "read", "admin", "debuginfo")
    assert (
        client.put(
            UPSTREAMS, json={"mode": "custom", "upstreams": [{"url": debuginfod.url}]}
        ).status
        == 200
    )
    link = share(client, program.profile())["id"]

    def status():
        return client.get(f"/p/{link}.json").json()["symbolization"]

    wait_for(
        lambda: [row["reason"] for row in status()["missing"]]
        == ["the debuginfod server does not have the file"]
    )
    debuginfod.add(package(program, tmp_path), debuginfod.packages / "program.deb")
    wait_for(lambda: debuginfod.has(program.build_id))
    assert client.post("/api/v1/debuginfo/retry", json={"build_id": program.build_id}).status == 202
    wait_for(lambda: status() == {"complete": True, "pending": [], "missing": []})
    program.check(client.get(f"/p/{link}.pb.gz").body, BASE)


@pytest.mark.skipif(not shutil.which("dwz"), reason="no dwz")
def test_a_missing_shared_file_of_dwz_is_reported_and_fetched_later(server, tmp_path, debuginfod):
    """A table without it is reported as incomplete, requested again, and replaced by the complete
    one."""
    program = Program(tmp_path, os.urandom(20).hex(), C_SOURCE)
    shutil.copy(program.elf, tmp_path / "twin")
    subprocess.run(["dwz", "-m", "shared.debug", "program", "twin"], cwd=tmp_path, check=True)
    tenant = Tenant(server)
    client = tenant.api("share", "read", "admin", "debuginfo")
    assert (
        client.put(
            UPSTREAMS, json={"mode": "custom", "upstreams": [{"url": debuginfod.url}]}
        ).status
        == 200
    )
    debuginfod.add(program.elf, debuginfod.files / "program")
    wait_for(lambda: debuginfod.has(program.build_id))
    link = share(client, program.profile())["id"]

    def status():
        return client.get(f"/p/{link}.json").json()["symbolization"]

    (missing,) = wait_for(lambda: [row for row in status()["missing"] if "dwz" in row["reason"]])
    assert missing["reason"].startswith(
        "names are in a shared file of dwz that was not given"
    ), missing
    assert missing["reason"].endswith(
        "; the shared file: the debuginfod server does not have the file"
    ), missing
    reason, tries, later_s = need_of(server, tenant, program.build_id)
    assert (
        tries == 1 and 500 < later_s < 601 and missing["next_retry"] and reason in missing["reason"]
    )
    assert tables_of(server, program.build_id) == [str(tenant.id)] and not status()["complete"]
    debuginfod.add(tmp_path / "shared.debug", debuginfod.files / "shared.debug")
    wait_for(lambda: debuginfod.has(build_id_of(tmp_path / "shared.debug")))
    assert client.post("/api/v1/debuginfo/retry", json={"build_id": program.build_id}).status == 202
    wait_for(lambda: status() == {"complete": True, "pending": [], "missing": []})
    program.check(client.get(f"/p/{link}.pb.gz").body, BASE)
    assert need_of(server, tenant, program.build_id) is None


def test_a_shared_file_of_dwz_without_an_id_is_retried_after_a_day(server, tmp_path, stub):
    program, link = build_program(tmp_path), tmp_path / "link"
    link.write_bytes(b"shared.debug\0")
    subprocess.run(["objcopy", f"--add-section=.gnu_debugaltlink={link}", program], check=True)
    stub.content = program.read_bytes()
    tenant, build_id = Tenant(server), build_id_of(program)
    assert (
        tenant.user("owner")
        .put(UPSTREAMS, json={"mode": "custom", "upstreams": [{"url": stub.url("content")}]})
        .status
        == 200
    )
    need(server, tenant, build_id)
    reason, tries, later_s = wait_for(
        lambda: (row := need_of(server, tenant, build_id)) and row[0] and row
    )
    assert (
        reason == "the shared file: its build id is not sent to public servers"
        and tries == 1
        and 86000 < later_s < 86401
    )
    assert len(stub.paths()) == 1


def test_an_id_of_another_kind_is_never_requested(server, stub):
    tenant, build_id = Tenant(server), (b"WEx-Hg8" * 12).hex()
    assert (
        tenant.user("owner")
        .put(UPSTREAMS, json={"mode": "custom", "upstreams": [{"url": stub.url("missing")}]})
        .status
        == 200
    )
    need(server, tenant, build_id)
    reason, tries, later_s = wait_for(
        lambda: (row := need_of(server, tenant, build_id)) and row[0] and row
    )
    assert reason == "debuginfod servers know only GNU build ids, and this is another kind of id"
    assert (tries, later_s) == (1, None) and stub.paths() == []


@pytest.mark.long
def test_a_debuginfod_killed_during_a_transfer_is_reported_until_it_is_back(
    server, tmp_path, debuginfod, relay
):
    program = Program(tmp_path, os.urandom(20).hex(), C_SOURCE)
    padding = tmp_path / "padding"
    padding.write_bytes(os.urandom(24 << 20))  # more than socket buffers hold
    subprocess.run(["objcopy", "--add-section", f".padding={padding}", program.elf], check=True)
    debuginfod.add(program.elf, debuginfod.files / "program")
    wait_for(lambda: debuginfod.has(program.build_id))
    tenant = Tenant(server)
    client = tenant.api("share", "read", "admin")
    assert (
        client.put(UPSTREAMS, json={"mode": "custom", "upstreams": [{"url": relay.url}]}).status
        == 200
    )
    link = share(client, program.profile())["id"]

    def status():
        return client.get(f"/p/{link}.json").json()["symbolization"]

    status()
    wait_for(lambda: relay.passed_bytes > 1 << 20)
    debuginfod.kill()
    reason, tries, later_s = wait_for(
        lambda: (row := need_of(server, tenant, program.build_id)) and row[0] and row
    )
    assert "cannot talk to http://127.0.0.1" in reason and tries == 1 and 0 < later_s < 61, reason
    assert relay.passed_bytes < 24 << 20
    (missing,) = status()["missing"]
    assert missing["reason"] == reason and missing["next_retry"]
    assert tables_of(server, program.build_id) == [] and server.is_ready()
    debuginfod.start()
    relay.may_hurry.set()
    make_due(server, program.build_id)
    wait_for(lambda: status() == {"complete": True, "pending": [], "missing": []})
    program.check(client.get(f"/p/{link}.pb.gz").body, BASE)
    assert tables_of(server, program.build_id) == [str(tenant.id)]


def test_public_upstreams_get_one_request_for_all_teams(start_server, tmp_path, stub):
    program = build_program(tmp_path)
    build_id = build_id_of(program)
    stub.content = program.read_bytes()
    server = start_server(
        f"--debuginfod-urls={stub.url('content')}", "--debuginfod-allow-host=127.0.0.1"
    )
    teams = [Tenant(server) for _ in range(3)]
    quiet = teams[2]
    assert quiet.user("owner").put(UPSTREAMS, json={"mode": "off"}).status == 200
    with server.database() as connection, connection.cursor() as cursor:
        for team in teams:
            cursor.execute(
                "INSERT INTO symbol_need (tenant_id, build_id, file, next_try_at) "
                "VALUES (%s, %s, 'program', now())",
                [team.id, build_id],
            )
    assert wait_for(lambda: tables_of(server, build_id)) == ["public"]
    wait_for(
        lambda: need_of(server, teams[0], build_id) is None
        and need_of(server, teams[1], build_id) is None
    )
    assert len(stub.paths()) == 1
    metrics = server.api().get("/metrics").text
    assert 'perfolio_symbol_fetches_total{upstreams="public",outcome="found"} 1' in metrics
    assert f"perfolio_debuginfod_bytes_total {len(stub.content)}" in metrics
    reason, _, later_s = wait_for(
        lambda: (row := need_of(server, quiet, build_id)) and row[0] and row
    )
    assert "uses no debuginfod server" in reason and later_s is None


def test_hostile_upstreams_are_reported_and_do_not_stop_the_server(server, tmp_path, stub):
    program = build_program(tmp_path)
    stub.content = program.read_bytes()
    stub.target = "https://169.254.169.254/latest/meta-data"
    wrong_id = "ab" * 20
    for behaviour, word in (
        ("content", "unusable file"),
        ("not_elf", "not an ELF file"),
        ("announces_much", "at most"),
        ("redirect", "redirects to a forbidden address"),
        ("good", "unusable file"),
        ("announces_little", "that it announced"),
    ):
        tenant = Tenant(server)
        owner = tenant.user("owner")
        assert (
            owner.put(
                UPSTREAMS,
                json={
                    "mode": "custom",
                    "upstreams": [{"url": stub.url(behaviour), "auth": SECRET}],
                },
            ).status
            == 200
        )
        need(server, tenant, wrong_id)
        reason, tries, later_s = wait_for(
            lambda: (row := need_of(server, tenant, wrong_id)) and row[0] and row
        )
        assert word in reason and tries == 1 and 86000 < later_s < 86401, (behaviour, reason)
        assert tables_of(server, wrong_id) == []
    assert (
        'fetches_total{upstreams="custom",outcome="refused"} 6' in server.api().get("/metrics").text
    )
    assert all(fields["authorization"] == "Bearer kept-for-this-host" for _, fields in stub.seen)
    assert server.is_ready() and "kept-for" not in server.log()


def test_the_command_line_sets_upstreams_and_retries(server, tmp_path):
    tenant = Tenant(server)
    token = tenant.make_token("admin", "debuginfo")["token"]

    def cli(*arguments):
        done = server.cli("debuginfo", *arguments, environment={"PERFOLIO_TOKEN": token})
        done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
        return done

    assert cli("upstreams").stdout == "public\n  http://127.0.0.1:1/\n"
    header = tmp_path / "header"
    header.write_text(SECRET + "\n")
    shown = cli(
        "upstreams", "https://a.example/", "http://127.0.0.1:2", "--header-file", str(header)
    ).stdout
    assert (
        shown
        == "custom\n  https://a.example/  with a header\n  http://127.0.0.1:2  with a header\n"
    )
    # A new order keeps the headers.
    shown = cli("upstreams", "http://127.0.0.1:2", "https://a.example/", "--json").stdout
    assert [row["has_auth"] for row in json.loads(shown)["upstreams"]] == [True, True]
    wrong = cli("upstreams", "http://a.example/")
    assert wrong.returncode != 0 and "https" in wrong.stderr
    wrong = cli("upstreams", "off", "--header-file", str(header))
    assert wrong.returncode != 0 and "URLs" in wrong.stderr
    assert cli("upstreams", "off").stdout == "off\n"
    need(server, tenant, "cd" * 20)
    wait_for(lambda: need_of(server, tenant, "cd" * 20)[0])
    assert cli("retry").stdout == "requested again: 1\n"
    assert cli("retry", "cd" * 20).stdout == "cd" * 20 + " requested again: 1\n"
    assert cli("retry", "ef" * 20).returncode != 0


def test_the_operator_can_turn_off_all_upstreams(start_server):
    server = start_server("--debuginfod-urls=off")
    owner = Tenant(server).user("owner")
    assert owner.get(UPSTREAMS).json() == {
        "mode": "public",
        "is_available": False,
        "upstreams": [],
        "public": [],
    }
    response = owner.put(
        UPSTREAMS, json={"mode": "custom", "upstreams": [{"url": "https://a.example/"}]}
    )
    assert response.status == 409 and "operator" in response.json()["detail"]
    assert pathlib.Path(server.data_dir).is_dir()


def test_an_invalid_setting_is_reported_at_start(start_server):
    server = start_server("--debuginfod-urls=http://a.example/", wait=False)
    wait_for(lambda: "debuginfod-urls" in server.log() and "https" in server.log())


def test_slow_upstreams_of_two_teams_do_not_delay_other_teams(server, tmp_path, stub):
    program = build_program(tmp_path)
    stub.content = program.read_bytes()
    slow, quick = [Tenant(server) for _ in range(2)], Tenant(server)
    for tenant in (*slow, quick):
        url = stub.url("content" if tenant is quick else "silent")
        policy = {"mode": "custom", "upstreams": [{"url": url}]}
        assert tenant.user("owner").put(UPSTREAMS, json=policy).status == 200
    for i in range(8):
        need(server, slow[0], f"{i:02x}" * 20)
        need(server, slow[1], f"f{i:01x}" * 20)
    wait_for(lambda: len(stub.paths()) == 2)
    need(server, quick, build_id_of(program))
    assert wait_for(lambda: tables_of(server, build_id_of(program))) == [str(quick.id)]
    # It overtook the waiting requests: a team's own servers have one request in progress.
    assert need_of(server, slow[0], "07" * 20)[1] == 0
    assert need_of(server, slow[1], "f7" * 20)[1] == 0


def test_the_job_of_a_killed_server_is_run_after_a_restart(server, tmp_path, stub):
    program = build_program(tmp_path)
    build_id = build_id_of(program)
    stub.content = program.read_bytes()
    tenant = Tenant(server)
    assert (
        tenant.user("owner")
        .put(UPSTREAMS, json={"mode": "custom", "upstreams": [{"url": stub.url("held")}]})
        .status
        == 200
    )
    need(server, tenant, build_id)
    wait_for(stub.paths)
    server.kill_all()
    stub.go.set()
    server.start()
    # No other worker takes the job before its lease expires, so the test ends the lease.
    with server.database("perfolio_jobs") as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT leased_until > now() FROM symbol_job WHERE build_id = %s", [build_id]
        )
        assert cursor.fetchall() == [(True,)] and len(stub.paths()) == 1
        cursor.execute("UPDATE symbol_job SET leased_until = now()")
    assert wait_for(lambda: tables_of(server, build_id)) == [str(tenant.id)]
    wait_for(lambda: need_of(server, tenant, build_id) is None)
    assert len(stub.paths()) == 2
    with server.cursor("perfolio_jobs") as cursor:
        cursor.execute("SELECT count(*) FROM symbol_job")
        assert cursor.fetchone() == (0,)


@pytest.mark.long
def test_a_missing_file_is_not_requested_again_after_a_restart(server, stub):
    tenant, build_id = Tenant(server), "cd" * 20
    assert (
        tenant.user("owner")
        .put(UPSTREAMS, json={"mode": "custom", "upstreams": [{"url": stub.url("missing")}]})
        .status
        == 200
    )
    need(server, tenant, build_id)
    before = wait_for(lambda: (row := need_of(server, tenant, build_id)) and row[0] and row)
    request_count = len(stub.paths())
    server.stop()
    server.start()
    time.sleep(6)  # several polls for work
    reason, tries, later_s = need_of(server, tenant, build_id)
    assert (
        (reason, tries) == before[:2]
        and 0 < later_s < before[2]
        and len(stub.paths()) == request_count
    )
    # The server counts needs and jobs at start.
    metrics = server.api().get("/metrics").text
    for line in (
        'needs{state="due"} 0',
        'needs{state="later"} 1',
        'jobs{kind="fetch",state="running"} 0',
        'jobs{kind="build",state="waiting"} 0',
    ):
        assert f"perfolio_symbol_{line}\n" in metrics, line
