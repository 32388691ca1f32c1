"""perfoliod backup and restore.

A backup of a running server is complete; a damaged backup is refused.
"""

import hashlib
import os
import shutil
import subprocess
import threading

import pytest

import stored
from conftest import PERFOLIOD, Server, rest_long
from people import Tenant
from test_debuginfo import compile_with_id, wait_built


def folded(number):
    """A small profile, different for each number."""
    return "".join(f"main;step{number};work{i} {i + 1}\n" for i in range(50))


def run(*arguments, check=True):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PERFOLIO_")}
    return subprocess.run(
        [PERFOLIOD, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
        check=check,
    )


def push(api, text):
    response = api.post("/api/v1/shares", text, query={"title": "for the backup"})
    assert response.status == 201, response
    return response.json()["id"]


@pytest.fixture
def folder(start_server):
    """A server and the parent of its data folder. The fixture start_server removes the parent, so
    that tests may put files beside the data folder."""
    server = start_server()
    return server, server.data_dir.parent


def test_a_backup_of_a_busy_server_restores_all_data_acknowledged_before_it(folder):
    server, beside = folder
    api = server.api()
    before = {push(api, text := folded(i)): text for i in range(20)}
    path = f"/p/{next(iter(before))}?q=x"
    link = api.post("/api/v1/links", json={"path": path}).json()["id"]
    owner = Tenant(server).user("owner")
    commented = f"/api/v1/shares/{next(iter(before))}/comments"
    assert owner.post(commented, json={"text": "kept", "view": "q=x"}).status == 201
    deleted = push(api, folded(100))
    assert api.delete(f"/api/v1/shares/{deleted}").status == 204
    program = compile_with_id(beside, "aa5b").read_bytes()
    assert api.post("/api/v1/debuginfo/aa5b/executable", body=program).status == 202
    table = wait_built(api, "aa5b")["table"]

    # Another client pushes and deletes shares during the backup.
    stop = threading.Event()

    def work():
        other = server.api()
        number = 1000
        while not stop.is_set():
            share = push(other, folded(number))
            assert other.delete(f"/api/v1/shares/{share}").status == 204
            number += 1

    worker = threading.Thread(target=work)
    worker.start()
    try:
        run("backup", "--data-dir", server.data_dir, beside / "backup")
    finally:
        stop.set()
        worker.join()
    token = server.token
    assert (beside / "backup").stat().st_mode & 0o077 == 0
    assert server.stop() == 0

    run("restore", "--data-dir", beside / "again", beside / "backup")
    again = Server(beside / "again").start()
    try:
        restored = again.api(token)  # tokens come back with the database
        for share, text in before.items():
            response = restored.get(f"/api/v1/shares/{share}/raw")
            assert response.status == 200 and response.body == text.encode(), response
            assert restored.get(f"/api/v1/shares/{share}").json()["title"] == "for the backup"
        assert restored.get(f"/api/v1/shares/{deleted}").status == 410
        assert restored.get(f"/s/{link}").headers["location"] == path
        assert restored.post("/api/v1/links", json={"path": path}).json()["id"] == link
        assert [(c["text"], c["view"]) for c in restored.get(commented).json()["comments"]] == [
            ("kept", "q=x")
        ]
        assert restored.get("/api/v1/debuginfo/aa5b").json()["table"] == table
        assert restored.get("/buildid/aa5b/executable").body == program
        assert push(restored, folded(7))
        # Clients that trust the CA of the original server trust the restored one.
        assert (again.data_dir / "tls/ca.crt").read_bytes() == (
            server.data_dir / "tls/ca.crt"
        ).read_bytes()
    finally:
        assert again.stop() == 0, again.log()[-3000:]


def test_a_backup_of_a_stopped_server_contains_its_objects(folder):
    server, beside = folder
    share = push(server.api(), folded(1))
    assert server.stop() == 0
    run("backup", "--data-dir", server.data_dir, beside / "backup")
    names = [
        line.split(" ", 2)[2]
        for line in (beside / "backup/manifest.txt").read_text().splitlines()[:-1]
    ]
    assert "database.dump" in names and any(share in name for name in names)
    for line in (beside / "backup/manifest.txt").read_text().splitlines()[:-1]:
        digest, size, name = line.split(" ", 2)
        data = (beside / "backup" / name).read_bytes()
        assert (len(data), hashlib.sha256(data).hexdigest()) == (int(size), digest)
    server.start()
    assert server.api().get(f"/api/v1/shares/{share}").status == 200


def spoil_object(backup):
    path = next(path for path in (backup / "objects").rglob("*") if path.is_file())
    data = bytearray(path.read_bytes())
    data[0] ^= 1
    path.write_bytes(data)


def spoil_manifest(backup):
    path = backup / "manifest.txt"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[1:]))


def drop_object(backup):
    next(path for path in (backup / "objects").rglob("*") if path.is_file()).unlink()


def add_object(backup):
    (backup / "objects" / "stranger").write_text("not in the manifest")


def drop_end(backup):
    path = backup / "manifest.txt"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))


@pytest.mark.parametrize("spoil", [spoil_object, spoil_manifest, drop_object, add_object, drop_end])
def test_restore_refuses_a_damaged_backup_and_creates_nothing(folder, spoil):
    server, beside = folder
    push(server.api(), folded(1))
    run("backup", "--data-dir", server.data_dir, beside / "backup")
    spoil(beside / "backup")
    result = run("restore", "--data-dir", beside / "again", beside / "backup", check=False)
    assert result.returncode == 1 and result.stderr.strip(), result
    assert not (beside / "again").exists() and not (beside / "again.partial").exists()


def test_backup_and_restore_do_not_change_a_folder_that_is_not_empty(folder):
    server, beside = folder
    run("backup", "--data-dir", server.data_dir, beside / "backup")
    result = run("restore", "--data-dir", server.data_dir, beside / "backup", check=False)
    assert result.returncode == 1 and "absent or empty" in result.stderr
    assert server.api().get("/api/v1/shares").status == 200
    result = run("backup", "--data-dir", server.data_dir, beside / "backup", check=False)
    assert result.returncode == 1 and "new folder" in result.stderr
    result = run("backup", "--data-dir", beside / "nothing", beside / "other", check=False)
    assert result.returncode == 1 and not (beside / "other").exists()
    assert not (beside / "nothing").exists()


def test_perfolio_admin_backup_runs_perfoliod_backup(folder):
    server, beside = folder
    result = server.cli("admin", "backup", "--data-dir", server.data_dir, beside / "backup")
    assert result.returncode == 0, result
    assert (beside / "backup/manifest.txt").exists()
    shutil.rmtree(beside / "backup")


@pytest.mark.long
def test_a_backup_of_an_old_version_is_restored_without_comparing_rows(folder):
    """The rows can be read only after the first start has migrated the database."""
    server, beside = folder
    share = push(server.api(), folded(1))
    (server.data_dir / "objects/share" / share).write_bytes(b"damaged")
    with server.cursor() as cursor:
        cursor.execute(
            "DELETE FROM schema_migration"
            " WHERE version = (SELECT max(version) FROM schema_migration)"
        )
    server.stop()
    run("backup", "--allow-damaged", "--data-dir", server.data_dir, beside / "backup")
    restored = run("restore", "--data-dir", beside / "again", beside / "backup")
    assert "store verify after the first start" in restored.stderr, restored


@pytest.mark.long
@pytest.mark.skipif(stored.is_in_bucket(), reason="files are replaced")
@pytest.mark.parametrize(
    "make",
    rest_long([os.mkfifo, os.mkdir, lambda path: path.symlink_to("/etc/passwd")]),
    ids=["fifo", "folder", "link"],
)
def test_an_object_that_is_no_regular_file_is_damaged_and_may_be_omitted(folder, make):
    server, beside = folder
    shares = {push(server.api(), folded(i)): folded(i) for i in range(2)}
    lost, kept = shares
    path = server.data_dir / "objects/share" / lost
    path.unlink()
    make(path)
    (server.data_dir / "objects/stray").symlink_to("/etc/passwd")  # no row names it
    for arguments in (
        ["backup", "--data-dir", server.data_dir, beside / "backup"],
        ["backup", "--verify-only", "--data-dir", server.data_dir],
    ):
        refused = run(*arguments, check=False)
        assert (
            refused.returncode == 1
            and f"the first: share/{lost}. Restore them, delete" in refused.stderr
        ), refused
        line = next(line for line in refused.stderr.splitlines() if line.startswith("broken "))
        assert f"share/{lost}" in line and "not a regular file" in line, refused
    assert not (beside / "backup").exists()
    incomplete = run("backup", "--allow-damaged", "--data-dir", server.data_dir, beside / "backup")
    assert (
        f"share/{lost}" in incomplete.stderr and "not a regular file" in incomplete.stderr
    ), incomplete
    run("restore", "--allow-damaged", "--data-dir", beside / "again", beside / "backup")
    token = server.token
    server.stop()
    again = Server(beside / "again").start()
    try:
        assert again.api(token).get(f"/api/v1/shares/{kept}/raw").body.decode() == shares[kept]
        assert again.api(token).get(f"/api/v1/shares/{lost}/raw").status == 500
    finally:
        again.stop()


@pytest.mark.long
@pytest.mark.skipif(stored.is_in_bucket(), reason="files are replaced")
def test_the_rest_of_a_backup_with_damaged_objects_is_restored(folder):
    server, beside = folder
    shares = {push(server.api(), folded(i)): folded(i) for i in range(3)}
    lost, damaged, kept = shares
    run("backup", "--data-dir", server.data_dir, beside / "backup")
    token = server.token
    server.stop()
    (beside / "backup/objects/share" / lost).unlink()
    (beside / "backup/objects/share" / damaged).write_bytes(b"damaged")
    refused = run("restore", "--data-dir", beside / "again", beside / "backup", check=False)
    assert refused.returncode == 1 and "--allow-damaged" in refused.stderr, refused
    assert not (beside / "again").exists()
    arguments = ["--allow-damaged", "--data-dir", beside / "again", beside / "backup"]
    restored = run("restore", *arguments)
    assert f"warning: the backup lacks objects/share/{lost}" in restored.stderr, restored
    assert f"warning: objects/share/{damaged} has changed" in restored.stderr, restored
    assert "2 object(s) that the database names are missing or damaged" in restored.stderr, restored
    again = Server(beside / "again").start()
    try:
        assert again.api(token).get(f"/api/v1/shares/{kept}/raw").body.decode() == shares[kept]
        for share in (lost, damaged):
            assert again.api(token).get(f"/api/v1/shares/{share}/raw").status == 500
    finally:
        again.stop()
    # A damaged database cannot be restored in part.
    with (beside / "backup/database.dump").open("ab") as dump:
        dump.write(b"x")
    shutil.rmtree(beside / "again")
    whole = run("restore", *arguments, check=False)
    assert whole.returncode == 1 and "database.dump has changed" in whole.stderr, whole


@pytest.mark.skipif(stored.is_in_bucket(), reason="files are replaced")
def test_verify_reports_a_symbolic_link_in_a_backup(folder):
    server, beside = folder
    share = push(server.api(), folded(1))
    run("backup", "--data-dir", server.data_dir, beside / "backup")
    path = beside / "backup/objects/share" / share
    path.rename(beside / "moved")
    path.symlink_to(beside / "moved")
    refused = run("backup", "--verify-only", beside / "backup", check=False)
    assert (
        refused.returncode == 1 and f"objects/share/{share} is not a regular file" in refused.stderr
    ), refused


@pytest.mark.long
@pytest.mark.skipif(
    os.geteuid() != 0 or stored.is_in_bucket(), reason="needs root and objects in a folder"
)
@pytest.mark.parametrize("where", ["object", "folder"])
def test_root_reports_an_object_that_the_server_cannot_read(folder, where):
    server, beside = folder
    share = push(server.api(), folded(1))
    path = server.data_dir / "objects/share" / share
    denied = path if where == "object" else path.parent
    whole = denied.stat()
    os.chown(denied, 0, 0)
    denied.chmod(0)
    server.restart()
    assert server.api().get(f"/api/v1/shares/{share}/raw").status == 500
    for arguments in (["store", "verify"], ["backup", "--verify-only"]):
        found = run(*arguments, "--data-dir", server.data_dir, check=False)
        line = next(
            (
                line
                for line in (found.stdout + found.stderr).splitlines()
                if line.startswith("unreadable ")
            ),
            "",
        )
        assert (
            found.returncode == 1 and f"share/{share}" in line and "Permission denied" in line
        ), found
    # A backup as root contains the object.
    copied = run("backup", "--data-dir", server.data_dir, beside / "backup")
    assert f"contains object share/{share}, but the server's user" in copied.stderr, copied
    assert (beside / "backup/objects/share" / share).read_text() == folded(1)
    os.chown(denied, whole.st_uid, whole.st_gid)
    denied.chmod(whole.st_mode & 0o777)
    assert ": everything is intact" in run("store", "verify", "--data-dir", server.data_dir).stdout


@pytest.mark.long
def test_restore_compares_a_backup_without_objects(folder):
    server, beside = folder
    server.stop()
    run("backup", "--data-dir", server.data_dir, beside / "backup")
    restored = run("restore", "--data-dir", beside / "again", beside / "backup")
    assert "0 objects, 0 bytes compared" in restored.stdout, restored
