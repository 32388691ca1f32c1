"""The agents of one tenant do not take all ingest threads from other tenants."""

import gzip
import threading

import pytest

import people

CONNECTIONS = 24


def costly_profile():
    """69 KB of gzip that expand to several megabytes of folded stacks."""
    lines = (f"main;f{i % 500};g{i % 9000};{'h' * 80} 1" for i in range(60_000))
    return gzip.compress("\n".join(lines).encode(), 9)


@pytest.mark.long
def test_requests_of_one_tenant_leave_threads_for_others(start_server):
    """The server responds to tenant B while many earlier requests of tenant A still wait."""
    server = start_server("--ingest-threads", "8")
    body = costly_profile()
    a = people.Tenant(server)
    b = people.Tenant(server).api("ingest")
    finished = []
    should_stop = threading.Event()

    def send(client):
        while not should_stop.is_set():
            query = {"label": "service_name=a"}
            response = client.post("/api/v1/profiles", query=query, body=body)
            finished.append(response.status)

    clients = [a.api("ingest") for _ in range(CONNECTIONS)]
    threads = [threading.Thread(target=send, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    try:
        while len(finished) < CONNECTIONS:
            assert all(thread.is_alive() for thread in threads)
        between = []
        for _ in range(5):
            before = len(finished)
            query = {"label": "service_name=b"}
            response = b.post("/api/v1/profiles", query=query, body=b"main;work 1\n")
            assert response.status == 200, response
            between.append(len(finished) - before)
    finally:
        should_stop.set()
        for thread in threads:
            thread.join()
    assert sorted(between)[2] < CONNECTIONS // 4, between
    assert set(finished) <= {200, 413, 429, 503}, set(finished)
