"""Locks of background jobs: conflicts with the deletion of a tenant, and the lock of a backup."""

import re
import subprocess
import threading

import pytest

import sample_profiles as samples
from conftest import PERFOLIOD
from test_shares import new_tenant, query_one, wait_for
from test_uploads import PART, begin

SWEEP_LOCK = 0x50465357  # api/core/server.h


class Held:
    """A transaction of the database owner that holds the locks that sql acquires."""

    def __init__(self, server, sql, *values):
        self.connection = server.database("perfolio_cluster")
        self.connection.autocommit = False
        self.connection.cursor().execute(sql, values)

    def __enter__(self):
        return self

    def release(self):
        self.connection.close()

    def commit(self):
        self.connection.commit()
        self.connection.close()

    def __exit__(self, *_):
        self.release()


def query_row(server, sql, *values):
    """Returns one row. The query runs as the database owner, who sees all sessions in
    pg_stat_activity."""
    connection = server.database("perfolio_cluster")
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql, values)
            return cursor.fetchone()
    finally:
        connection.close()


def waiting(server, statement, user="%"):
    """Returns the process ID of a session whose statement waits for a lock, or None."""
    row = query_row(
        server,
        "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        " AND query LIKE %s AND usename LIKE %s",
        statement,
        user,
    )
    return row and row[0]


class Rounds:
    """Counts rounds of background jobs: perfolio_jobs_lag_seconds decreases after each round."""

    def __init__(self, server):
        self.api, self.count, self.lag = server.api(), 0, self.read(server.api())

    @staticmethod
    def read(api):
        return float(
            re.search(r"^perfolio_jobs_lag_seconds (\S+)$", api.get("/metrics").text, re.M)[1]
        )

    def have_been(self, count):
        lag = self.read(self.api)
        self.count += lag < self.lag
        self.lag = lag
        return self.count >= count


def test_a_tenant_is_deleted_while_its_uploads_expire(shared_server):
    """Both lock the usage row and the uploads of the tenant, in a different order."""
    server = shared_server("--jobs-interval", "1s")
    admin = server.api()
    tenant, token = new_tenant(admin, "short-lived")
    upload = begin(admin.with_token(token), PART)
    responses = []
    with Held(server, "SELECT 1 FROM tenant_usage WHERE tenant_id = %s FOR UPDATE", tenant) as held:
        deleting = threading.Thread(
            target=lambda: responses.append(server.api().delete(f"/api/v1/admin/tenants/{tenant}"))
        )
        deleting.start()
        wait_for(lambda: waiting(server, "%tenant%"))
        query_one(
            server,
            "UPDATE upload SET expires_at = now() - interval '1 hour' WHERE id = %s" " RETURNING 1",
            upload["id"],
        )
        # Two rounds skip the locked row. A round that waits for it is a bug.
        rounds = Rounds(server)
        wait_for(lambda: rounds.have_been(2) or waiting(server, "%", "perfolio_jobs"))
        held.release()
    deleting.join(60)
    assert responses[0].status == 204, (responses, server.log()[-2000:])
    assert query_one(server, "SELECT count(*) FROM upload WHERE id = %s", upload["id"])[0] == 0
    assert "background work failed" not in server.log(), server.log()[-2000:]


def test_the_sweep_holds_its_own_lock(shared_server):
    """If another session held the lock, that session could end while the sweep deletes objects."""
    server = shared_server("--jobs-interval", "1s")
    with Held(server, "LOCK TABLE upload IN ACCESS EXCLUSIVE MODE"):
        wait_for(lambda: waiting(server, "%upload%"))
        holder = query_row(
            server,
            "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted"
            " AND objid = %s::bigint",
            SWEEP_LOCK,
        )
        assert holder[0] == waiting(server, "%upload%")


def test_a_backup_that_loses_its_lock_fails_and_leaves_no_files(shared_server):
    server = shared_server("--jobs-interval", "3600s")
    target = server.data_dir.parent / "backup"
    with Held(server, "LOCK TABLE share IN ACCESS EXCLUSIVE MODE"):
        backup = subprocess.Popen(
            [PERFOLIOD, "backup", "--data-dir", server.data_dir, target],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_for(lambda: waiting(server, "LOCK TABLE %share%"))
        assert query_row(
            server,
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks"
            " WHERE locktype = 'advisory' AND granted AND objid = %s::bigint",
            SWEEP_LOCK,
        ) == (True,)
    _, error = backup.communicate(timeout=60)
    assert backup.returncode != 0 and "run it again" in error, error
    assert not target.exists()


def delete_tenant_during(server, tenant, hold, request, waits_for):
    """Deletes the tenant while request waits for the locks of hold. Checks that the deletion
    succeeds and returns the status of request."""
    responses = {}

    def run(name, call):
        responses[name] = call()

    deletion = threading.Thread(
        target=run,
        args=("deletion", lambda: server.api().delete(f"/api/v1/admin/tenants/{tenant}")),
    )
    other = threading.Thread(target=run, args=("request", request))
    with hold as held:
        other.start()
        wait_for(lambda: waiting(server, waits_for))
        deletion.start()
        wait_for(lambda: waiting(server, "DELETE FROM tenant%"))
        held.release()
    for thread in (other, deletion):
        thread.join(60)
    statuses = {name: response.status for name, response in responses.items()}
    assert statuses["deletion"] == 204, (responses, server.log()[-2000:])
    return statuses["request"]


def test_requests_that_hold_locks_do_not_deadlock_with_a_tenant_deletion(shared_server):
    """Each request has locked a row when the deletion begins, and then locks the tenant's row."""
    server = shared_server("--jobs-interval", "3600s")
    admin = server.api()
    held_log = "LOCK TABLE audit_log IN ACCESS EXCLUSIVE MODE"

    def team(name):
        tenant, token = new_tenant(admin, name)
        client = admin.with_token(token)
        return tenant, client, client.post("/api/v1/shares", samples.FOLDED).json()["id"]

    tenant, client, share = team("deletes a share")
    assert (
        delete_tenant_during(
            server,
            tenant,
            Held(server, held_log),
            lambda: client.delete(f"/api/v1/shares/{share}"),
            "INSERT INTO audit_log%",
        )
        == 204
    )
    tenant, client, share = team("edits a share")
    assert delete_tenant_during(
        server,
        tenant,
        Held(server, held_log),
        lambda: client.patch(f"/api/v1/shares/{share}", json={"title": "new"}),
        "INSERT INTO audit_log%",
    ) in (200, 404)
    tenant, client, share = team("puts a part")
    upload = begin(client, PART)
    # Without foreign key checks, whose locks would block the start of the deletion.
    hold = Held(
        server,
        "SET session_replication_role = replica; INSERT INTO upload_part"
        " VALUES (%s, %s, 0, 1, 'part/x', sha256(''))",
        upload["id"],
        tenant,
    )
    assert (
        delete_tenant_during(
            server,
            tenant,
            hold,
            lambda: client.put(f"/api/v1/uploads/{upload['id']}/parts/0", bytes(PART)),
            "%INSERT INTO upload_part%",
        )
        == 204
    )
    assert "deadlock" not in server.log(), server.log()[-2000:]


def test_an_operator_revokes_a_token_while_its_tenant_is_deleted(shared_server):
    server = shared_server("--jobs-interval", "3600s")
    admin = server.api()
    tenant, token = new_tenant(admin, "revoked")
    number = query_one(server, "SELECT id FROM token WHERE tenant_id = %s", tenant)[0]
    hold = Held(server, "LOCK TABLE audit_log IN ACCESS EXCLUSIVE MODE")
    assert (
        delete_tenant_during(
            server,
            tenant,
            hold,
            lambda: server.api().delete(f"/api/v1/admin/tenants/{tenant}/tokens/{number}"),
            "INSERT INTO audit_log%",
        )
        == 204
    )


def test_view_counts_are_written_while_a_tenant_is_deleted(shared_server):
    """Both lock several shares, so each could hold a share that the other one waits for."""
    server = shared_server("--jobs-interval", "1s")
    admin = server.api()
    tenant, token = new_tenant(admin, "viewed")
    client = admin.with_token(token)
    shares = [client.post("/api/v1/shares", samples.FOLDED).json()["id"] for _ in range(2)]
    with Held(server, "SELECT 1 FROM share WHERE id = ANY (%s) FOR UPDATE", shares) as held:
        for share in shares:
            assert client.get(f"/api/v1/shares/{share}/top").status == 200
        wait_for(lambda: waiting(server, "%UPDATE share s SET views%"))
        responses = []
        deletion = threading.Thread(
            target=lambda: responses.append(server.api().delete(f"/api/v1/admin/tenants/{tenant}"))
        )
        deletion.start()
        wait_for(lambda: waiting(server, "DELETE FROM tenant%"))
        blockers = query_row(
            server,
            "SELECT count(*) FROM pg_stat_activity w, unnest(pg_blocking_pids("
            "w.pid)) b JOIN pg_stat_activity v ON v.pid = b WHERE w.query LIKE"
            " 'DELETE FROM tenant%%' AND v.query LIKE '%%UPDATE share s SET views%%'",
        )
        assert blockers[0] == 1  # the deletion waits at the tenant's row, before it locks a share
        held.release()
    deletion.join(60)
    assert responses[0].status == 204, (responses, server.log()[-2000:])
    assert "background work failed" not in server.log(), server.log()[-2000:]


@pytest.mark.long
def test_a_large_backlog_is_deleted_within_two_minutes(start_server):
    """One batch per round with a pause after each round would take longer than that."""
    server = start_server("--jobs-interval", "15s")
    kinds = {"expired": 2800, "deleted": 2800}
    with server.database("perfolio_cluster") as connection:
        cursor = connection.cursor()
        for kind, count in kinds.items():
            cursor.execute(
                "INSERT INTO share (id, tenant_id, state, visibility, delete_token_hash,"
                " expires_at, object_key, raw_bytes, row_bytes, raw_sha256, format)"
                " SELECT id, 2, state, 'unlisted', sha256(''), now(), 'share/' || id, 3, 4,"
                " sha256(''), 'folded' FROM (SELECT left(md5(%s || n), 22) AS id,"
                " CASE %s WHEN 'expired' THEN 'live' ELSE 'deleting' END AS state"
                " FROM generate_series(1, %s) AS n) AS made",
                (kind, kind, count),
            )
        cursor.execute(
            "INSERT INTO tenant_usage VALUES (2, 0, %s) ON CONFLICT (tenant_id, slot)"
            " DO UPDATE SET bytes_stored = tenant_usage.bytes_stored + %s",
            (7 * sum(kinds.values()),) * 2,
        )
        cursor.execute(
            "INSERT INTO object_trash (object_key)"
            " SELECT 'part/' || md5(n::text) FROM generate_series(1, 7000) AS n"
        )
    wait_for(
        lambda: query_row(
            server,
            "SELECT (SELECT count(*) FROM share WHERE state <> 'gone'),"
            " (SELECT count(*) FROM object_trash),"
            " (SELECT sum(bytes_stored)::bigint FROM tenant_usage"
            "  WHERE tenant_id = 2)",
        )
        == (0, 0, 0),
        120,
    )
