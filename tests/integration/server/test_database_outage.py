"""While the database restarts, requests wait briefly and /readyz reports the outage at once."""

import threading
import time

import pytest

import sample_profiles as samples
from people import Tenant
from test_database_hang import postgres_pids, stopped
from test_shares import wait_for

pytestmark = pytest.mark.long

AUTH_CACHE_S = 5  # api/identity/auth.h
SESSIONS = "usename IN ('perfolio_server', 'perfolio_jobs') AND pid <> pg_backend_pid()"

# ALTER DATABASE cannot change this from a session in the same database.
SET_OPEN = "UPDATE pg_database SET datallowconn = %s WHERE datname = 'perfolio'"


def terminate(cursor):
    """Ends the server's sessions and returns their number."""
    cursor.execute(
        "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity" f" WHERE {SESSIONS}"
    )
    return cursor.fetchone()[0]


class Outage:
    """Ends all sessions of the server and makes the database refuse new connections."""

    def __init__(self, server):
        self.connection = server.database("perfolio_cluster")

    def __enter__(self):
        with self.connection.cursor() as cursor:
            cursor.execute(SET_OPEN, (False,))
            terminate(cursor)
        return self

    def end(self):
        with self.connection.cursor() as cursor:
            cursor.execute(SET_OPEN, (True,))

    def end_when_refused(self, server):
        """Ends the outage once the database has refused a connection after this call."""

        def refusals():
            return server.database_log().count("is not currently accepting connections")

        def wait_and_end():
            wait_for(lambda: refusals() > before)
            self.end()

        before = refusals()
        thread = threading.Thread(target=wait_and_end)
        thread.start()
        return thread

    def __exit__(self, *_):
        self.end()
        self.connection.close()


def test_readyz_discards_its_cached_result_after_a_failure(start_server):
    server = start_server()
    api = server.api()
    assert api.get("/readyz").status == 200
    with Outage(server):
        for _ in range(3):
            response = api.get("/readyz")
            assert response.status == 503 and int(response.headers["retry-after"]) > 0, response
    assert api.get("/readyz").status == 200
    assert api.get("/api/v1/shares").status == 200


def test_requests_wait_for_a_database_that_restarts(start_server):
    server = start_server()
    api = server.api()
    share = api.post("/api/v1/shares", samples.FOLDED).json()["id"]
    with Outage(server) as outage:
        ending = outage.end_when_refused(server)
        read = api.get(f"/api/v1/shares/{share}")
        ending.join()
    with Outage(server) as outage:
        ending = outage.end_when_refused(server)
        written = api.post("/api/v1/shares", samples.FOLDED)
        ending.join()
    assert read.status == 200 and written.status == 201, (read, written)


def test_during_a_long_outage_requests_get_503_without_waiting(start_server):
    server = start_server()
    api = server.api()

    def seconds_until_refused():
        begun = time.monotonic()
        response = api.get("/api/v1/shares")
        assert response.status == 503 and int(response.headers["retry-after"]) > 0, response
        return time.monotonic() - begun

    with Outage(server):
        waited = seconds_until_refused()
        # A request that waits takes at least this long, no matter how fast the host is.
        wait_for(lambda: seconds_until_refused() < waited / 4, 120)
    assert api.get("/api/v1/shares").status == 200


def test_a_read_is_retried_after_its_connection_breaks(start_server):
    server = start_server()
    api = server.api()
    share = api.post("/api/v1/shares", samples.FOLDED).json()["id"]
    responses = []
    lock, other = server.database("perfolio_cluster"), server.database("perfolio_cluster")
    lock.autocommit = False
    lock.cursor().execute("LOCK TABLE share IN ACCESS EXCLUSIVE MODE")
    reader = threading.Thread(
        target=lambda: responses.append(server.api().get(f"/api/v1/shares/{share}"))
    )
    reader.start()
    with other.cursor() as cursor:
        waiting, deadline = 0, time.monotonic() + 60
        while not waiting and time.monotonic() < deadline:
            time.sleep(0.02)
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity"
                " WHERE usename = 'perfolio_server' AND wait_event_type = 'Lock'"
            )
            waiting = cursor.fetchone()[0]
        assert waiting and terminate(cursor)
    lock.rollback()
    reader.join(60)
    assert responses[0].status == 200, (responses, server.log()[-2000:])
    lock.close()
    other.close()


def test_a_statement_that_raises_an_error_is_not_retried(start_server):
    """A sequence counts the attempts, because a rollback does not reset it."""
    server = start_server()
    api = server.api()
    share = api.post("/api/v1/shares", samples.FOLDED).json()["id"]
    connection = server.database("perfolio_cluster")
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_get_functiondef('share_find'::regproc)")
        before, _, _ = cursor.fetchone()[0].partition(" LANGUAGE ")
        cursor.execute("CREATE SEQUENCE attempt; GRANT ALL ON attempt TO PUBLIC")
        cursor.execute(
            f"{before} LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN"
            " PERFORM nextval('attempt'); RAISE 'broken' USING ERRCODE = 'XX000';"
            " END $$"
        )
        assert api.get(f"/api/v1/shares/{share}").status == 503
        cursor.execute("SELECT nextval('attempt')")
        assert cursor.fetchone()[0] == 2
    connection.close()


def read_metrics(server):
    response = server.api().get("/metrics")
    assert response.status == 200, response
    return response.text


def test_metrics_are_readable_by_token_during_a_database_outage(start_server):
    server = start_server("--public-metrics", "no")
    operator = server.api()
    assert "\nperfolio_database_up 1\n" in operator.get("/metrics").text
    tenant = Tenant(server)
    member = tenant.api("read")
    assert member.get("/metrics").status == 403
    unseen, revoked = tenant.make_token("read")["token"], tenant.make_token("read")
    assert operator.with_token(revoked["token"]).get("/metrics").status == 403
    assert (
        operator.delete(f"/api/v1/admin/tenants/{tenant.id}/tokens/{revoked['id']}").status == 204
    )
    time.sleep(AUTH_CACHE_S + 0.5)
    for begin in (lambda: Outage(server), lambda: stopped(postgres_pids(server))):
        with begin():
            wait_for(lambda: "\nperfolio_database_up 0\n" in read_metrics(server))
            assert member.get("/metrics").status == 403
            assert server.anonymous().get("/metrics").status == 401
            for token in (unseen, revoked["token"], "pf_" + "x" * 43):
                assert server.anonymous().with_token(token).get("/metrics").status == 503, token
            assert (
                operator.get("/api/v1/shares").status == 503
            ), "tokens for other routes are always looked up"
        wait_for(lambda: "\nperfolio_database_up 1\n" in read_metrics(server))


def test_public_metrics_accept_requests_with_any_token_or_none(start_server):
    server = start_server()
    with Outage(server):
        for client in (
            server.api(),
            server.anonymous(),
            server.anonymous().with_token("pf_" + "x" * 43),
        ):
            response = client.get("/metrics")
            assert (
                response.status == 200 and "\nperfolio_database_up 0\n" in response.text
            ), response


def test_sessions_of_a_read_only_database_are_replaced(start_server):
    """A managed PostgreSQL makes a full database read-only, and its sessions stay so."""
    server = start_server()
    api = server.api()
    connection = server.database("perfolio_cluster")

    def status():
        return api.post("/api/v1/shares", samples.FOLDED).status

    with connection.cursor() as cursor:
        cursor.execute("ALTER DATABASE perfolio SET default_transaction_read_only = on")
        terminate(cursor)
        wait_for(lambda: status() == 503)
        cursor.execute("SET transaction_read_only = off")
        cursor.execute("ALTER DATABASE perfolio RESET default_transaction_read_only")
    wait_for(lambda: [status() for _ in range(20)] == [201] * 20)
