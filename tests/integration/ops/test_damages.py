"""Damaged objects: verify reports each one, backup refuses, and undamaged data is still served.

There are 72 cases: four damages (flip, zero, truncate, delete) of three objects of each of six
kinds.
"""

import json
import re
import shutil

import pytest

import stored
from conftest import Server, rest_long
from people import Tenant
from test_backup import run
from test_debuginfo import compile_with_id, wait_built
from test_integrity import flip, folded, push as share
from test_store import BEGIN, HOUR, compact, rows_of
from test_store_deletion import push

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(stored.is_in_bucket(), reason="files are changed and removed"),
]

KINDS = ["share", "part", "debug_file", "symbol_table", "segment", "block"]
DAMAGES = ["flip", "zero", "truncate", "delete"]


def zero(data):
    """Overwrites up to 16 bytes with zeros, from the first nonzero byte behind the middle."""
    at = next(i for i in range(len(data) // 2, len(data)) if data[i])
    return data[:at] + bytes(min(16, len(data) - at)) + data[at + 16 :]


def damage(server, how, key):
    path = server.data_dir / "objects" / key
    if how == "delete":
        path.unlink()
    else:
        data = path.read_bytes()
        server.objects.write(
            key, {"flip": flip, "zero": zero, "truncate": lambda data: data[:-1]}[how](data)
        )


class Content:
    """Objects of one team, some of each kind, and checks of their responses."""

    def __init__(self, server, tenant, folder, count, name):
        self.server, self.tenant = server, tenant
        self.client = tenant.api("share", "debuginfo", "ingest", "read")
        self.shares = {}
        for i in range(count):
            body = folded(500 + i, f"{name}{i}")
            self.shares[share(self.client, body)] = body
        self.parts = {}
        for i in range(count):
            body = folded(700 + i, f"{name}{i}")
            upload = self.client.post("/api/v1/uploads", json={"size": len(body)}).json()["id"]
            assert self.client.put(f"/api/v1/uploads/{upload}/parts/0", body).status == 204
            self.parts[upload] = body
        self.programs = {}
        for i in range(count):
            build_id = f"{name}{i:02x}" * 4
            program = compile_with_id(folder, build_id, f"program{name}{i}").read_bytes()
            assert (
                self.client.post(f"/api/v1/debuginfo/{build_id}/executable", body=program).status
                == 202
            )
            self.programs[build_id] = program
        for build_id in self.programs:
            wait_built(self.client, build_id)

    def rows(self, sql):
        return sorted(rows_of(self.server, sql.format(tenant=self.tenant.id)))

    def keys(self):
        """The keys of the team's objects, by kind."""
        return {
            "share": self.rows("SELECT object_key FROM share WHERE tenant_id = {tenant}"),
            "part": self.rows("SELECT object_key FROM upload_part WHERE tenant_id = {tenant}"),
            "debug_file": self.rows("SELECT object_key FROM debug_file WHERE tenant_id = {tenant}"),
            "symbol_table": self.rows(
                "SELECT object_key FROM symbol_table WHERE tenant_id = {tenant}"
            ),
            "segment": self.rows(
                "SELECT object_key FROM segment JOIN segment_tenant ON segment_id = id"
                " WHERE tenant_id = {tenant}"
            ),
            "block": self.rows("SELECT object_key FROM block WHERE tenant_id = {tenant}"),
        }

    def rows_served(self):
        response = self.client.get(
            "/api/v1/query_range",
            query={
                "query": "process_cpu:samples:count:cpu:nanoseconds:delta{}",
                "start": BEGIN - HOUR,
                "end": BEGIN + 1000 * HOUR,
                "step": "24h",
            },
        )
        assert response.status == 200, response
        assert response.json()["series"]
        return response.json()["series"]

    def check_is_served(self):
        for one, body in self.shares.items():
            assert self.client.get(f"/api/v1/shares/{one}/raw").body == body
            assert self.client.get(f"/api/v1/shares/{one}/flame").status == 200
        for build_id, program in self.programs.items():
            assert self.client.get(f"/buildid/{build_id}/executable").body == program

    def complete_uploads(self):
        for upload, body in self.parts.items():
            made = self.client.post(f"/api/v1/uploads/{upload}/complete").json()["id"]
            assert self.client.get(f"/api/v1/shares/{made}/raw").body == body


@pytest.fixture
def damaged(start_server, tmp_path):
    """damaged(each) -> a server, the content to damage, the content to leave intact, the rows of
    the latter, and the planned damages {key: (kind, damage)}, each for `each` objects of each kind.
    """

    def make(each):
        count = len(DAMAGES) * each
        server = start_server("--jobs-interval", "1s")
        victim, whole = Tenant(server), Tenant(server)
        content = Content(server, victim, tmp_path, count, "a")
        intact = Content(server, whole, tmp_path, 1, "b")
        for i in range(count):
            push(content.client, "pod=a", BEGIN + i * 25 * HOUR)
        push(intact.client, "pod=b", BEGIN)
        compact(server)
        with server.cursor() as cursor:  # so that the server does not merge these blocks
            cursor.execute("UPDATE block SET leased_until = now() + interval '1 hour'")
        for i in range(count):
            push(content.client, "pod=a", BEGIN + i * 25 * HOUR + 1)
            with server.cursor() as cursor:
                cursor.execute("UPDATE segment_tenant SET leased_until = now() + interval '1 hour'")
        push(intact.client, "pod=b", BEGIN + 1)
        with server.cursor() as cursor:
            cursor.execute("UPDATE segment_tenant SET leased_until = now() + interval '1 hour'")
        damages = {}
        for kind, keys in content.keys().items():
            assert len(keys) == count, (kind, keys)
            for i, key in enumerate(keys):
                damages[key] = (kind, DAMAGES[i % len(DAMAGES)])
        assert len(damages) == len(KINDS) * count
        expected = intact.rows_served()
        run("backup", "--data-dir", server.data_dir, server.data_dir.parent / "whole")
        assert run("store", "verify", "--data-dir", server.data_dir).returncode == 0
        return server, content, intact, expected, damages

    return make


@pytest.mark.parametrize("each", rest_long([1, 3]))
def test_verify_reports_each_damaged_object_and_backup_refuses(damaged, each):
    server, content, intact, expected, damages = damaged(each)
    for key, (_, how) in damages.items():
        damage(server, how, key)

    response = json.loads(
        run("store", "verify", "--json", "--data-dir", server.data_dir, check=False).stdout
    )
    found = {one["object"]: (one["kind"], one["problem"]) for one in response["problems"]}
    assert found == {
        key: (kind, "missing" if how == "delete" else "broken")
        for key, (kind, how) in damages.items()
    }
    assert all(one["tenant_id"] == content.tenant.id for one in response["problems"])

    target = server.data_dir.parent / "refused"
    for arguments in (
        ["backup", "--data-dir", server.data_dir, target],
        ["backup", "--verify-only", "--data-dir", server.data_dir],
    ):
        refused = run(*arguments, check=False)
        assert refused.returncode == 1 and f"{len(damages)} object(s)" in refused.stderr, refused
        named = {
            line.split()[1]
            for line in refused.stderr.splitlines()
            if re.match(r"(broken|missing) ", line)
        }
        assert named == set(damages)
    assert not target.exists() and not target.with_name("refused.partial").exists()

    server.restart()
    with server.cursor() as cursor:
        cursor.execute("UPDATE segment_tenant SET leased_until = now() + interval '1 hour'")
    for one in content.shares:
        raw = content.client.get(f"/api/v1/shares/{one}/raw")
        assert raw.status == 500 and raw.json()["type"] in (
            "/problems/damaged",
            "/problems/lost",
        ), raw
    for build_id in content.programs:
        assert content.client.get(f"/buildid/{build_id}/executable").status == 500
    intact.check_is_served()
    intact.complete_uploads()
    assert intact.rows_served() == expected

    # --allow-damaged creates a backup, which is restored only with the same option.
    run("backup", "--allow-damaged", "--data-dir", server.data_dir, target)
    restored = server.data_dir.parent / "restored"
    refused = run("restore", "--data-dir", restored, target, check=False)
    assert refused.returncode == 1 and f"{len(damages)} object(s)" in refused.stderr, refused
    assert not restored.exists()
    run("restore", "--allow-damaged", "--data-dir", restored, target)
    for upload in content.parts:
        assert content.client.post(f"/api/v1/uploads/{upload}/complete").status == 409
        assert content.client.get(f"/api/v1/uploads/{upload}").json()["parts_received"] == []
    token = server.token
    server.stop()
    again = Server(restored).start()
    try:
        one, body = next(iter(intact.shares.items()))
        assert again.api(token).get(f"/p/{one}/raw").body == body
    finally:
        again.stop()


def test_backup_refuses_each_single_damage_and_names_the_object(damaged):
    server, _, _, _, damages = damaged(1)
    tried = set()
    for key, (kind, how) in damages.items():
        tried.add((kind, how))
        path = server.data_dir / "objects" / key
        whole = path.read_bytes()
        damage(server, how, key)
        target = server.data_dir.parent / "refused"
        refused = run("backup", "--data-dir", server.data_dir, target, check=False)
        assert (
            refused.returncode == 1
            and f"1 object(s) that the database names are missing or damaged; the"
            f" first: {key}" in refused.stderr
        ), (kind, how, refused)
        assert not target.exists()
        path.write_bytes(whole)
        shutil.chown(path, path.parent.stat().st_uid, path.parent.stat().st_gid)
    assert len(tried) == len(KINDS) * len(DAMAGES)
    run("backup", "--verify-only", "--data-dir", server.data_dir)
    run("backup", "--data-dir", server.data_dir, server.data_dir.parent / "whole again")
    verified = run("backup", "--verify-only", server.data_dir.parent / "whole again")
    assert "files are unchanged" in verified.stdout
    path = next(path for path in (server.data_dir.parent / "whole again/objects/share").iterdir())
    path.write_bytes(flip(path.read_bytes()))
    refused = run("backup", "--verify-only", server.data_dir.parent / "whole again", check=False)
    assert refused.returncode == 1 and path.name in refused.stderr, refused
