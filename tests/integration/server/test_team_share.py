"""The share of the server that one team may occupy: half of the workers and of the database
connections, whatever its requests do."""

import contextlib
import threading

import sample_profiles as samples
from conftest import Api
from test_background_locks import Held, query_row
from test_http_raw import metric, wait_until
from test_shares import new_tenant

MANY = 10


class Requests:
    """PATCH requests of a team, each on a thread of its own. They wait for the row of the team,
    which the test has locked."""

    def __init__(self, server, token, share, count=MANY):
        self.responses = []
        self.threads = [
            threading.Thread(target=self.send, args=(Api(server, token), share, number))
            for number in range(count)
        ]
        for thread in self.threads:
            thread.start()

    def send(self, api, share, number):
        self.responses.append(api.patch(f"/api/v1/shares/{share}", json={"title": f"t{number}"}))

    def join(self):
        for thread in self.threads:
            thread.join(120)
        return [response.status for response in self.responses]


def sessions_that_wait(server):
    return query_row(
        server,
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        " AND usename = 'perfolio_server'",
    )[0]


@contextlib.contextmanager
def occupied(server):
    """Ten requests of one team have arrived, and all that may run wait for a lock. Yields the
    requests and the client of another team."""
    tenant, token = new_tenant(server.api(), "slow")
    other = Api(server, new_tenant(server.api(), "other")[1])
    assert other.get("/api/v1/shares").status == 200
    share = Api(server, token).post("/api/v1/shares", samples.FOLDED).json()["id"]
    with Held(server, "SELECT 1 FROM tenant WHERE id = %s FOR UPDATE", tenant):
        requests = Requests(server, token, share)
        # One more is the request for the metrics.
        assert wait_until(lambda: metric(server, "perfolio_http_requests_in_flight") == MANY + 1)
        assert wait_until(
            lambda: metric(server, "perfolio_http_workers_busy")
            + metric(server, "perfolio_http_queue_depth")
            + metric(server, "perfolio_requests_waiting")
            == MANY
        )
        yield requests, other
    requests.join()


def test_a_team_occupies_half_of_the_workers(start_server):
    server = start_server("--worker-threads", "8", "--database-connections", "32")
    with occupied(server) as (requests, other):
        assert wait_until(lambda: sessions_that_wait(server) >= 4)
        response = other.get("/api/v1/shares")
        assert not requests.responses  # the lock has not been given up meanwhile
        assert response.status == 200, response
        assert sessions_that_wait(server) == 4
        assert metric(server, "perfolio_requests_waiting") == MANY - 4
    assert len(requests.responses) == MANY


def test_a_team_occupies_half_of_the_database_connections(start_server):
    server = start_server("--worker-threads", "32", "--database-connections", "4")
    with occupied(server) as (_, other):
        assert wait_until(lambda: sessions_that_wait(server) >= 2)
        response = other.get("/api/v1/shares")
        assert response.status == 200, response
        assert sessions_that_wait(server) == 2


def test_requests_put_aside_for_a_worker_are_dropped_with_their_clients(start_server):
    server = start_server("--worker-threads", "2", "--report-wait", "3600s")
    tenant, token = new_tenant(server.api(), "slow")
    share = Api(server, token).post("/api/v1/shares", samples.FOLDED).json()["id"]
    with Held(server, "SELECT 1 FROM tenant WHERE id = %s FOR UPDATE", tenant):
        requests = Requests(server, token, share, 1)
        assert wait_until(lambda: sessions_that_wait(server) == 1)
        waiting = Api(server, token)
        waiting.connection = server.connect(120)
        waiting.connection.request(
            "GET", "/api/v1/shares", headers={"Authorization": "Bearer " + token}
        )
        assert wait_until(lambda: metric(server, "perfolio_requests_waiting") == 1)
        waiting.connection.sock.close()
        waiting.close()
        assert wait_until(lambda: metric(server, "perfolio_requests_waiting") == 0)
    assert requests.join() == [200]
