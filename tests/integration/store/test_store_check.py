"""perfoliod store verify and stats: they report each changed byte, each missing object and each
object without a row, while the server runs or is stopped; an intact store has no problems."""

import json
import os
import re
import subprocess
import time

import pytest

import sample_profiles as samples
import stored
from conftest import PERFOLIOD
from people import Tenant
from test_backup import run
from test_debuginfo import compile_with_id, wait_built
from test_store import BEGIN, HOUR, compact, objects_of, rows_of, until
from test_store_deletion import push

pytestmark = pytest.mark.skipif(stored.is_in_bucket(), reason="files are changed and removed")


def verify(server):
    result = run("store", "verify", "--json", "--data-dir", server.data_dir, check=False)
    response = json.loads(result.stdout)
    assert result.returncode == (1 if response["problems"] else 0), result
    return response


def found(server):
    return {(one["problem"], one["object"]) for one in verify(server)["problems"]}


@pytest.mark.long
def test_verify_reports_broken_missing_and_unknown_objects(start_server):
    server = start_server("--jobs-interval", "1s")
    tenant, other = Tenant(server), Tenant(server)
    for i in range(3):
        push(tenant.api("ingest"), "pod=a", BEGIN + i * 25 * HOUR)
    compact(server)
    push(other.api("ingest"), "pod=b", BEGIN)
    with server.cursor() as cursor:  # prevents a merge
        cursor.execute("UPDATE segment_tenant SET leased_until = now() + interval '1 hour'")
    whole = verify(server)
    assert (whole["objects"], whole["blocks"], whole["problems"]) == (4, 4, [])
    assert whole["bytes"] == sum(len(server.objects.read(key)) for key in objects_of(server))
    stats = json.loads(run("store", "stats", "--json", "--data-dir", server.data_dir).stdout)[
        "levels"
    ]
    by_level = {(one["tenant_id"], one["level"]): one for one in stats}
    assert set(by_level) == {(tenant.id, 4), (other.id, 0)}
    day_level = by_level[tenant.id, 4]
    assert (
        day_level["blocks"],
        day_level["rows"],
        day_level["oldest_ns"],
        day_level["newest_ns"],
    ) == (
        3,
        6,
        BEGIN,
        BEGIN + 50 * HOUR,
    )
    assert "LEVEL" in run("store", "stats", "--data-dir", server.data_dir).stdout
    server.stop()

    assert found(server) == set()
    (segment,) = server.objects.keys("segment/")
    blocks = sorted(server.objects.keys("block/"))
    for key in (segment, blocks[0]):
        data = server.objects.read(key)
        for at in range(0, len(data), max(1, len(data) // 6)):
            server.objects.write(key, data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
            assert found(server) == {("broken", key)}, at
        server.objects.write(key, data[:-1])
        assert found(server) == {("broken", key)}
        server.objects.write(key, data)
    (server.data_dir / "objects" / blocks[1]).unlink()
    writer = blocks[0].split("/")[1]
    (server.data_dir / "objects" / f"block/{writer}/of-nobody").write_bytes(b"x")
    server.start()
    with server.cursor() as cursor:
        cursor.execute(
            "UPDATE block SET row_count = row_count + 1 WHERE object_key = %s", [blocks[2]]
        )
    server.stop()
    assert found(server) == {("missing", blocks[1]), ("differs", blocks[2])}
    text = run("store", "verify", "--data-dir", server.data_dir, check=False)
    assert text.returncode == 1 and f"missing  {blocks[1]} (tenant {tenant.id})" in text.stdout
    assert "1 missing, 1 differs\n1 unknown: " in text.stdout
    assert (
        f"unknown  block/{writer}/of-nobody: no row refers to it; 1 bytes, written " in text.stdout
    )


def test_verify_reports_a_row_whose_end_differs_from_its_profiles(start_server):
    server = start_server("--jobs-interval", "1s")
    tenant = Tenant(server)
    push(tenant.api("ingest"), "pod=a", BEGIN)
    compact(server)
    push(tenant.api("ingest"), "pod=b", BEGIN)
    with server.cursor() as cursor:  # prevents a merge
        cursor.execute("UPDATE segment_tenant SET leased_until = now() + interval '1 hour'")
    assert verify(server)["problems"] == []
    with server.cursor() as cursor:
        cursor.execute("UPDATE segment_tenant SET reach_ns = reach_ns - 1")
        cursor.execute("UPDATE block SET reach_ns = reach_ns + 1")
    problems = verify(server)["problems"]
    assert [one["problem"] for one in problems] == ["differs", "differs"], problems


@pytest.mark.parametrize("kind", ["segment", "block"])
def test_another_block_of_the_same_team_and_time_is_damage(start_server, kind):
    """As after a misdirected write, or a file that was restored under a wrong name."""
    server = start_server("--jobs-interval", "1s")
    client = Tenant(server).api("ingest", "read")
    window = {"query": "cpu", "report": "folded", "start": BEGIN, "end": BEGIN + 49 * HOUR}
    if kind == "segment":
        with server.cursor() as cursor:  # leases them at once, which prevents a merge
            cursor.execute(
                "CREATE FUNCTION lease() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
                " NEW.leased_until = now() + interval '1 hour'; RETURN NEW; END $$;"
                "CREATE TRIGGER lease BEFORE INSERT ON segment_tenant FOR EACH ROW"
                " EXECUTE FUNCTION lease()"
            )
        push(client, "pod=a", BEGIN, 5)
        push(client, "pod=b", BEGIN, 3)
    else:
        push(client, "pod=a", BEGIN, 5)
        push(client, "pod=b", BEGIN + 48 * HOUR, 3)
        compact(server)
    (first,), (second,) = server.rows(f"SELECT object_key FROM {kind} ORDER BY id")
    server.stop()
    server.objects.write(second, server.objects.read(first))
    assert found(server) == {("broken", second)}
    server.start()
    response = client.get("/api/v1/query", query=window)
    assert response.text == "main;work 50\n" and "perfolio-warning" in response.headers, response


def test_verify_lists_objects_without_a_row(start_server, tmp_path):
    """verify lists them as unknown and not as damage, because an interrupted operation leaves such
    objects, and no data is missing."""
    server = start_server("--jobs-interval", "1s")
    tenant = Tenant(server)
    client = tenant.api("ingest", "read", "share", "debuginfo")
    push(client, "pod=a", BEGIN)
    assert client.post("/api/v1/shares", samples.FOLDED).status == 201
    upload = client.post("/api/v1/uploads", json={"size": 9}).json()["id"]
    assert client.put(f"/api/v1/uploads/{upload}/parts/0", b"main;a 1\n").status == 204
    program = compile_with_id(tmp_path, "ab01ef").read_bytes()
    assert client.post("/api/v1/debuginfo/ab01ef/executable", body=program).status == 202
    wait_built(client, "ab01ef")
    deleted = client.post("/api/v1/shares", samples.FOLDED + b"b 1\n").json()["id"]
    assert client.delete(f"/api/v1/shares/{deleted}").status == 204
    # The next sweep is in an hour or after a restart.
    until(lambda: not server.objects.has(f"share/{deleted}"), "the jobs do not run")

    def unknown():
        done = run("store", "verify", "--json", "--data-dir", server.data_dir)
        response = json.loads(done.stdout)
        assert response["problems"] == [] and done.returncode == 0
        return {one["object"]: one for one in response["unknown"]}

    assert unknown() == {}
    root = server.data_dir / "objects"
    (writer,) = (root / "segment").iterdir()
    names = [
        "share/" + "A" * 22,
        "part/" + "A" * 22 + ".0." + "B" * 22,
        "symbols/x",
        "debuginfo/x",
        f"block/{writer.name}/x",
        f"segment/{writer.name}/x",
        "foo/bar",
        "foo/bar/baz",
        "stray",
        "share/no key",
        "share/.hidden",
        'share/a"b,{c}',
    ]
    paths = {name: root / name.replace("foo/bar/baz", "foo2/bar/baz") for name in names}
    for path in paths.values():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"12345")
        os.utime(path, (1_700_000_000, 1_700_000_000))
    os.mkfifo(root / "share/fifo")
    (root / "share/link").symlink_to("/etc/passwd")
    (root / "a/b/c/d").mkdir(parents=True)
    (root / ".tmp/unfinished").write_bytes(b"x")
    listed = unknown()
    expected = {str(path.relative_to(root)) for path in paths.values()} | {
        "share/fifo|",
        "share/link@",
        "a/b/c/",
    }
    assert set(listed) == expected
    foo_entry = listed["foo/bar"]
    assert foo_entry["bytes"] == 5 and foo_entry["modified_at"].startswith(
        "2023-11-14T22:13:20"
    ), foo_entry
    assert abs(time.time() - 1_700_000_000 - foo_entry["age_s"]) < 600
    text = run("store", "verify", "--data-dir", server.data_dir).stdout
    assert ": everything is intact\n15 unknown: no row refers to them" in text, text
    assert re.search(
        r"^unknown  foo/bar: no row refers to it; 5 bytes, written \d+ d ago$", text, re.M
    ), text
    server.stop()
    assert set(unknown()) == expected
    # Invalid object names do not stop the sweep, which deletes the other old objects.
    server.start()
    until(
        lambda: not paths["share/" + "A" * 22].exists() and not paths["symbols/x"].exists(),
        "nothing is swept",
        60,
    )
    assert paths["share/no key"].exists() and paths["foo/bar"].exists()


@pytest.mark.long
@pytest.mark.parametrize("swept", ["NULL", "ended_at + interval '1 hour'"])
def test_orphans_of_an_old_writer_are_deleted(start_server, swept):
    """The server searches the objects of an ended writer for orphans again unless the last search
    (swept_at) was more than a day after its end, because its last object may be stored late."""
    server = start_server("--jobs-interval", "1s")
    client = Tenant(server).api("ingest", "read")
    push(client, "pod=a", BEGIN)
    (kept,) = objects_of(server)
    writer = kept.split("/")[1]
    server.stop()
    server.start()
    left = server.data_dir / "objects" / "segment" / writer / "of-nobody"
    until(
        lambda: rows_of(
            server, f"SELECT swept_at IS NOT NULL FROM store_writer WHERE id = {writer}"
        )
        == {True},
        "the writer is not swept",
    )
    server.stop()
    left.write_bytes(b"x")
    server.start()
    with server.cursor() as cursor:
        cursor.execute(
            f"UPDATE store_writer SET ended_at = now() - interval '3 days' WHERE id = {writer}"
        )
        cursor.execute(f"UPDATE store_writer SET swept_at = {swept} WHERE id = {writer}")
    server.stop()
    server.start()
    until(lambda: not left.exists(), "the orphan is not deleted")
    until(
        lambda: rows_of(
            server,
            "SELECT ended_at + interval '1 day' < swept_at FROM store_writer"
            f" WHERE id = {writer}",
        )
        == {True},
        "the writer is swept again and again",
    )
    assert kept in objects_of(server) or rows_of(
        server, "SELECT id FROM block"
    ), "objects with a row must stay"


@pytest.mark.parametrize(
    "arguments, wanted",
    [
        (["store"], "needs verify|stats"),
        (["store", "repair"], "verify or stats"),
    ],
)
def test_invalid_arguments_are_reported(arguments, wanted):
    result = subprocess.run([PERFOLIOD, *arguments], capture_output=True, text=True)
    assert result.returncode == 2 and wanted in result.stderr, result


def test_verify_finds_no_problems_during_compaction(start_server):
    server = start_server("--jobs-interval", "1s")
    client = Tenant(server).api("ingest")
    for i in range(40):
        push(client, f"pod=p{i}", BEGIN + i)
        with server.cursor() as cursor:
            for table in ("segment", "block"):
                cursor.execute(
                    f"UPDATE {table} SET swapped_at = swapped_at - interval '1 hour',"
                    " created_at = created_at - interval '1 hour'"
                )
        if i % 8 == 0:
            assert found(server) == set()
    assert rows_of(server, "SELECT 1 FROM block UNION SELECT 1 FROM segment")
