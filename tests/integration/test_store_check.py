"""perfoliod store verify and stats: each byte that changes, each object that is missing or too much
is named, beside a server that runs and one that does not; what is whole is called so."""

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


def test_what_is_broken_missing_or_too_much_is_named(start_server):
    server = start_server("--jobs-interval", "1s")
    tenant, other = Tenant(server), Tenant(server)
    for i in range(3):
        push(tenant.api("ingest"), "pod=a", BEGIN + i * 25 * HOUR)
    compact(server)
    push(other.api("ingest"), "pod=b", BEGIN)
    with server.cursor() as cursor:  # nobody merges it meanwhile
        cursor.execute("UPDATE segment_tenant SET leased_until = now() + interval '1 hour'")
    whole = verify(server)
    assert (whole["objects"], whole["blocks"], whole["problems"]) == (4, 4, [])
    assert whole["bytes"] == sum(len(server.objects.read(key)) for key in objects_of(server))
    stats = json.loads(run("store", "stats", "--json", "--data-dir", server.data_dir).stdout)[
        "levels"
    ]
    by_level = {(one["tenant_id"], one["level"]): one for one in stats}
    assert set(by_level) == {(tenant.id, 4), (other.id, 0)}
    of_days = by_level[tenant.id, 4]
    assert (of_days["blocks"], of_days["rows"], of_days["oldest_ns"], of_days["newest_ns"]) == (
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


def test_verify_reports_a_row_with_another_end_than_its_profiles(start_server):
    server = start_server("--jobs-interval", "1s")
    tenant = Tenant(server)
    push(tenant.api("ingest"), "pod=a", BEGIN)
    compact(server)
    push(tenant.api("ingest"), "pod=b", BEGIN)
    with server.cursor() as cursor:  # nobody merges it meanwhile
        cursor.execute("UPDATE segment_tenant SET leased_until = now() + interval '1 hour'")
    assert verify(server)["problems"] == []
    with server.cursor() as cursor:
        cursor.execute("UPDATE segment_tenant SET reach_ns = reach_ns - 1")
        cursor.execute("UPDATE block SET reach_ns = reach_ns + 1")
    problems = verify(server)["problems"]
    assert [one["problem"] for one in problems] == ["differs", "differs"], problems


def test_verify_lists_what_no_row_refers_to(start_server, tmp_path):
    """As unknown and not as damage: an interrupted operation leaves such objects, and they miss
    nowhere."""
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
    # From here on nothing is swept for an hour, unless the server is started again.
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
    of_foo = listed["foo/bar"]
    assert of_foo["bytes"] == 5 and of_foo["modified_at"].startswith("2023-11-14T22:13:20"), of_foo
    assert abs(time.time() - 1_700_000_000 - of_foo["age_s"]) < 600
    text = run("store", "verify", "--data-dir", server.data_dir).stdout
    assert ": everything is intact\n15 unknown: no row refers to them" in text, text
    assert re.search(
        r"^unknown  foo/bar: no row refers to it; 5 bytes, written \d+ d ago$", text, re.M
    ), text
    server.stop()
    assert set(unknown()) == expected
    # Names that no object can have stop no sweep: the others go after an hour.
    server.start()
    until(
        lambda: not paths["share/" + "A" * 22].exists() and not paths["symbols/x"].exists(),
        "nothing is swept",
        60,
    )
    assert paths["share/no key"].exists() and paths["foo/bar"].exists()


@pytest.mark.parametrize("swept", ["NULL", "ended_at + interval '1 hour'"])
def test_what_a_writer_of_long_ago_left_behind_is_collected(start_server, swept):
    """As long as its objects were not looked at a day after its end: what was put last may have
    come late."""
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
        "the writer is not looked at",
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
    until(lambda: not left.exists(), "the orphan is still there")
    until(
        lambda: rows_of(
            server,
            "SELECT ended_at + interval '1 day' < swept_at FROM store_writer"
            f" WHERE id = {writer}",
        )
        == {True},
        "it will be looked at for ever",
    )
    assert kept in objects_of(server) or rows_of(
        server, "SELECT id FROM block"
    ), "what rows know stays"


@pytest.mark.parametrize(
    "arguments, wanted",
    [
        (["store"], "needs verify|stats"),
        (["store", "mend"], "verify or stats"),
    ],
)
def test_wrong_words_are_named(arguments, wanted):
    result = subprocess.run([PERFOLIOD, *arguments], capture_output=True, text=True)
    assert result.returncode == 2 and wanted in result.stderr, result


def test_a_server_that_merges_meanwhile_has_no_problems(start_server):
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
