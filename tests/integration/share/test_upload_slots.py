"""The server decodes one upload at a time per address without credentials, and serves others."""

import gzip
import threading
import time

import pytest

import people
import sample_profiles

CONNECTIONS = 6


def costly_profile(functions):
    """Folded stacks that compress well and take long to decode."""
    lines = (f"main;f{i % 5000};g{i};{'h' * 60} 1" for i in range(functions))
    return gzip.compress("\n".join(lines).encode(), 6)


class Attack:
    """Uploads the same costly profile on several connections of one address."""

    def __init__(self, server, address, body):
        self.statuses = []
        self.should_stop = threading.Event()
        self.threads = []
        for _ in range(CONNECTIONS):
            client = server.anonymous()
            client.timeout = 120
            people.come_from(client, address)
            self.threads.append(threading.Thread(target=self.run, args=(client, body)))
        for thread in self.threads:
            thread.start()

    def run(self, client, body):
        while not self.should_stop.is_set():
            response = client.post("/api/v1/shares", body)
            self.statuses.append(response.status)

    def stop(self):
        self.should_stop.set()
        for thread in self.threads:
            thread.join()


def busy_workers(server):
    """The number of running reports, from /metrics."""
    for line in server.anonymous().get("/metrics").body.decode().splitlines():
        if line.startswith("perfolio_reports_running "):
            return int(float(line.split()[1]))
    raise AssertionError("no such metric")


@pytest.mark.long
def test_uploads_of_one_address_leave_workers_for_others(start_server):
    server = start_server("--anonymous-uploads-per-minute", "100000")
    small = server.anonymous().post("/api/v1/shares", sample_profiles.FOLDED).json()["id"]
    attack = Attack(server, "127.0.0.3", costly_profile(100_000))
    try:
        deadline = time.monotonic() + 60
        most = 0
        while most == 0 and time.monotonic() < deadline:
            most = busy_workers(server)
        assert most == 1
        for number in range(4):
            client = server.anonymous()
            people.come_from(client, f"127.0.1.{number}")
            response = client.get(
                f"/api/v1/shares/{small}/flame", headers={"Accept": "application/json"}
            )
            assert response.status == 200, response
            response = client.post("/api/v1/shares", sample_profiles.FOLDED)
            assert response.status == 201, response
            most = max(most, busy_workers(server))
        assert most == 1
    finally:
        attack.stop()
    assert set(attack.statuses) <= {201, 503}, set(attack.statuses)
    assert 201 in attack.statuses


def test_an_upload_that_waited_is_stored_once(start_server):
    """The server handles a postponed request again from the start, but charges it once."""
    server = start_server("--anonymous-uploads-per-minute", str(CONNECTIONS))
    body = costly_profile(20_000)
    results = []

    def upload():
        client = server.anonymous()
        client.timeout = 120
        results.append(client.post("/api/v1/shares", body))

    threads = [threading.Thread(target=upload) for _ in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [response.status for response in results] == [201] * CONNECTIONS
    assert len({response.json()["id"] for response in results}) == CONNECTIONS
    assert server.anonymous().post("/api/v1/shares", body).status == 429


def test_merges_of_one_address_leave_workers_for_others(start_server):
    """The server applies the rate limit before the work, and runs one merge per address."""
    server = start_server("--anonymous-uploads-per-minute", "4")
    client = server.anonymous()
    people.come_from(client, "127.0.0.3")
    share = client.post("/api/v1/shares", costly_profile(2_000)).json()["id"]
    body = {"shares": [share] * 32}
    statuses = [client.post("/api/v1/merge", json=body).status for _ in range(5)]
    assert statuses == [201, 201, 201, 429, 429]
