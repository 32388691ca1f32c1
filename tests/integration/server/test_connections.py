"""Limits on connections: per address, in total, and the connections that are reserved.

The server closes idle connections to accept new ones.
"""

import concurrent.futures
import re
import resource
import socket
import ssl
import subprocess
import time

import pytest

from test_background_locks import Held
from test_http_raw import Wire, get, metric, wait_until

CUT = 'perfolio_http_connections_cut_total{reason="%s"}'


@pytest.fixture(autouse=True)
def many_descriptors():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def open_idle(server, source, count):
    """Opens count TLS connections that send nothing; returns those that the server accepts."""
    context = server.trust()
    sockets = []
    for _ in range(count):
        try:
            raw = socket.create_connection(("127.0.0.1", server.port), 60, (source, 0))
            sockets.append(context.wrap_socket(raw, server_hostname="localhost"))
        except (ssl.SSLError, ConnectionError):
            pass
    return sockets


def log_lines(server, limit):
    return re.findall(rf"a limit on connections is reached.*limit={limit} .*", server.log())


@pytest.mark.long
def test_an_address_with_2048_idle_connections_does_not_block_others(start_server):
    server = start_server()
    with Wire(server, source="127.0.0.2") as first:
        assert first.send(get()).response()[0] == 200
        idle = open_idle(server, "127.0.0.2", 2048)
        with Wire(server, source="127.0.0.3") as other:
            assert other.send(get()).response()[0] == 200
        assert metric(server, CUT % "address") >= 2048 - 204
        assert (
            metric(
                server, "perfolio_http_connections_limit" '{limit="max-connections-per-address"}'
            )
            == 204
        )
        # The server still serves the address: it closed the connections that were idle longest,
        # beginning with the first one.
        assert first.is_closed()
        with Wire(server, source="127.0.0.2") as fresh:
            assert fresh.send(get()).response()[0] == 200
    lines = log_lines(server, "max-connections-per-address")
    assert 1 <= len(lines) <= 3 and "value=204 address=127.0.0.2" in lines[0]
    for each in idle:
        each.close()


def test_the_setting_limits_the_connections_of_an_address(start_server):
    server = start_server("--max-connections-per-address", "3")
    with Wire(server, source="127.0.0.2") as a, Wire(server, source="127.0.0.2") as b, Wire(
        server, source="127.0.0.2"
    ) as c:
        for wire in (b, c, a):
            assert wire.send(get()).response()[0] == 200
        with Wire(server, source="127.0.0.2") as d:
            assert d.send(get()).response()[0] == 200
            assert b.is_closed(), "b was idle longest and should have been closed"
            assert a.send(get()).response()[0] == c.send(get()).response()[0] == 200


def test_anonymous_clients_of_an_address_close_no_authenticated_connection(start_server):
    server = start_server("--max-connections-per-address", "8")
    authorization = f"Authorization: Bearer {server.token}\r\n"
    body = b"main;work 1\n" * 20_000
    head = (
        f"POST /api/v1/shares HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
        f"{authorization}\r\n"
    ).encode()
    with Wire(server, source="127.0.0.2") as member, Wire(server, source="127.0.0.2") as upload:
        for wire in (member, upload):
            assert wire.send(get("/api/v1/session", authorization)).response()[0] == 200
        for at in range(0, len(head + body), 32 << 10):
            upload.send((head + body)[at : at + (32 << 10)])
            for each in open_idle(server, "127.0.0.2", 20):
                each.close()
        assert upload.response()[0] == 201
        assert member.send(get("/api/v1/session", authorization)).response()[0] == 200
    assert metric(server, CUT % "address") > 0


@pytest.mark.long
def test_the_server_evicts_idle_anonymous_connections_of_many_addresses(start_server):
    server = start_server("--max-connections", "60")
    with Wire(server, source="127.0.0.3") as member:
        authorization = f"Authorization: Bearer {server.token}\r\n"
        assert member.send(get("/api/v1/session", authorization)).response()[0] == 200
        idle = [
            each for number in range(1, 21) for each in open_idle(server, f"127.0.1.{number}", 10)
        ]
        for number in range(4, 10):
            with Wire(server, source=f"127.0.0.{number}") as other:
                assert other.send(get()).response()[0] == 200
        assert member.send(get("/api/v1/session", authorization)).response()[0] == 200
    assert metric(server, CUT % "evicted") >= 200 - 60
    lines = log_lines(server, "max-connections")
    assert 1 <= len(lines) <= 3 and "value=60" in lines[0]
    for each in idle:
        each.close()


LOCK_WAIT_S = 10  # after it the server answers requests that wait for a lock with 503


def requests_in_flight(monitor):
    """Including this one. monitor is an open connection that sent a token: a new one could evict
    a connection whose request has not arrived yet."""
    body = monitor.send(get("/metrics")).response()[2]
    return int(re.search(rb"^perfolio_http_requests_in_flight (\d+)", body, re.M)[1])


def requests_beside_busy_ones(server, monitor, busy):
    """The responses to a stranger, to health checks and to a member while all requests of busy wait
    for a lock, or None if the time was not enough for all of them."""
    request = get("/api/v1/shares/0123456789abcdefghijkl")
    authorization = f"Authorization: Bearer {server.token}\r\n"
    begin = time.monotonic()
    with Held(server, "LOCK TABLE share IN ACCESS EXCLUSIVE MODE"):
        for wire in busy:
            wire.send(request)
        assert wait_until(lambda: requests_in_flight(monitor) == len(busy) + 1)
        with Wire(server, source="127.0.0.3") as stranger:
            refused = stranger.send(request).response(), stranger.is_closed()
        probes = []
        for path in ("/healthz", "/readyz"):
            with Wire(server, source="127.0.0.3") as probe:
                probes.append(probe.send(get(path)).response()[0])
        with Wire(server, source="127.0.0.4") as member:
            for _ in range(3):
                response = member.send(get("/api/v1/session", authorization)).response()
                probes.append(response[0] if response else None)
    responses = [wire.response() for wire in busy]
    if time.monotonic() - begin > LOCK_WAIT_S - 2:
        return None
    return refused, probes, responses


def test_reserved_connections_serve_authenticated_clients_and_health_checks(start_server):
    server = start_server(
        "--max-connections",
        "40",
        "--max-connections-per-address",
        "36",
        "--worker-threads",
        "64",
        "--database-connections",
        "64",
    )
    request = get("/api/v1/shares/0123456789abcdefghijkl")
    found = None
    for _ in range(10):  # until the host had time for all requests while the lock was waited for
        monitor = Wire(server, source="127.0.0.5")
        session = get("/api/v1/session", f"Authorization: Bearer {server.token}\r\n")
        assert monitor.send(session).response()[0] == 200
        busy = [Wire(server, source="127.0.0.2") for _ in range(35)]
        found = requests_beside_busy_ones(server, monitor, busy)
        for wire in [monitor, *busy]:
            wire.socket.close()
        if found:
            break
    assert found, "the host is too slow for 40 requests in 8 s"
    (refusal, was_closed), probes, responses = found
    status, headers, body = refusal
    assert status == 503 and int(headers["retry-after"]) > 0 and b"max-connections" in body
    assert was_closed
    assert probes == [200] * 5
    assert [response and response[0] for response in responses] == [404] * 35
    assert log_lines(server, "reserved-connections")
    with Wire(server, source="127.0.0.3") as stranger:
        assert stranger.send(request).response()[0] == 404
        assert stranger.send(request).response()[0] == 404


def test_new_connections_do_not_close_an_upload_that_makes_progress(start_server):
    server = start_server("--max-connections", "40")
    body = b"main;work 1\n" * 400_000
    head = (
        f"POST /api/v1/shares HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
        f"Authorization: Bearer {server.token}\r\n\r\n"
    ).encode()
    stop = []

    def flood(number):
        while not stop:
            for each in open_idle(server, f"127.0.1.{number}", 10):
                each.close()

    with Wire(server, source="127.0.0.3") as upload, concurrent.futures.ThreadPoolExecutor(
        2
    ) as threads:
        upload.send(head + body[: 64 << 10])
        floods = [threads.submit(flood, number) for number in (1, 2)]
        try:
            for at in range(64 << 10, len(body), 64 << 10):
                upload.send(body[at : at + (64 << 10)])
                upload.socket.settimeout(60)
            assert upload.response()[0] == 201
        finally:
            stop.append(True)
        [each.result() for each in floods]


def test_addresses_with_many_connections_do_not_close_the_upload_of_another(start_server):
    """The upload sends nothing meanwhile, so it waits for longer than all other connections."""
    server = start_server("--max-connections", "100", "--idle-timeout", "300")
    body = b"main;work 1\n" * 10_000
    head = (
        f"POST /api/v1/shares HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
        f"Authorization: Bearer {server.token}\r\n\r\n"
    ).encode()
    with Wire(server, source="127.0.0.3") as upload:
        upload.send(head + body[:1000])
        idle = [
            each
            for _ in range(3)
            for number in range(1, 13)
            for each in open_idle(server, f"127.0.1.{number}", 10)
        ]
        with Wire(server, source="127.0.0.4") as other:
            assert other.send(get()).response()[0] == 200
        assert metric(server, CUT % "evicted") > 0
        assert upload.send(body[1000:]).response()[0] == 201
    for each in idle:
        each.close()


def test_a_client_beside_many_authenticated_ones_is_served_when_full(start_server):
    server = start_server("--max-connections", "100", "--idle-timeout", "300")
    session = get("/api/v1/session", f"Authorization: Bearer {server.token}\r\n")
    agents = [Wire(server, source="127.0.0.3") for _ in range(6)]
    for agent in agents:
        assert agent.send(session).response()[0] == 200
    idle = [each for number in range(1, 13) for each in open_idle(server, f"127.0.1.{number}", 10)]
    for _ in range(3):
        with Wire(server, source="127.0.0.3") as other:
            request = get("/api/v1/shares/0123456789abcdefghijkl")
            assert other.send(request).response()[0] == 404
    assert metric(server, CUT % "evicted") > 0
    for each in [*idle, *(agent.socket for agent in agents)]:
        each.close()


def open_slow_reader(server, source, path):
    """A connection with a full window: it has asked for a page 400 times and reads nothing."""
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2304)
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1220)
    raw.settimeout(60)
    raw.bind((source, 0))
    raw.connect(("127.0.0.1", server.port))
    connection = server.trust().wrap_socket(raw, server_hostname="localhost")
    connection.sendall(get(path) * 400)
    return connection


def test_connections_that_do_not_read_their_responses_are_evicted(start_server):
    server = start_server("--max-connections", "60", "--idle-timeout", "300")
    monitor = Wire(server, source="127.0.0.5")
    page = monitor.send(get("/")).response()[2].decode()
    style = re.search(r"/assets/app-\w+\.css", page)[0]
    session = get("/api/v1/session", f"Authorization: Bearer {server.token}\r\n")
    assert monitor.send(session).response()[0] == 200
    slow = [
        open_slow_reader(server, f"127.0.1.{number}", style)
        for number in range(1, 11)
        for _ in range(5)
    ]
    assert wait_until(lambda: requests_in_flight(monitor) > len(slow))
    more = [open_slow_reader(server, "127.0.1.11", style) for _ in range(6)]

    def is_served():
        with Wire(server, source="127.0.0.4") as other:
            response = other.send(get("/api/v1/shares/0123456789abcdefghijkl")).response()
            return response is not None and response[0] == 404

    assert wait_until(lambda: all(is_served() for _ in range(5)))
    for each in [monitor.socket, *slow, *more]:
        each.close()


def test_a_handshake_costs_little(server):
    """Finite-field groups cost the server 170 ms for 1,281 bytes that cost the client nothing."""
    for groups, is_accepted in (("ffdhe8192", False), ("P-256", True), ("X25519", True)):
        command = ["openssl", "s_client", "-connect", f"localhost:{server.port}", "-groups", groups]
        done = subprocess.run(
            [*command, "-CAfile", str(server.ca_file), "-brief"],
            input="",
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert ("CONNECTION ESTABLISHED" in done.stderr) == is_accepted, (groups, done)


def fail_handshake(server, source):
    """Sends the first message of a handshake and ends the connection. Returns the response."""
    outgoing = ssl.MemoryBIO()
    tls = server.trust().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    try:
        with socket.create_connection(("127.0.0.1", server.port), 60, (source, 0)) as raw:
            raw.sendall(outgoing.read())
            return raw.recv(1)
    except ConnectionError:
        return b""


def test_an_address_that_fails_handshakes_without_end_is_refused(start_server):
    """2 per second: 128 connections at once, of which each that fails takes four. Connections
    with a token are given back."""
    server = start_server("--max-new-connections-per-address", "2")
    limit = 'perfolio_http_connections_limit{limit="max-new-connections-per-address"}'
    authorization = f"Authorization: Bearer {server.token}\r\n"
    for _ in range(300):
        with Wire(server, source="127.0.0.3") as member:
            assert member.send(get("/api/v1/session", authorization)).response()[0] == 200
    before = time.monotonic()
    refused = [not fail_handshake(server, "127.0.0.2") for _ in range(150)]
    passed_s = time.monotonic() - before
    assert not any(refused[:32])
    # The server may accept some more before it notices that the last ones have ended.
    assert sum(refused) >= 150 - 32 - 10 - passed_s
    assert metric(server, limit) == 2 and metric(server, CUT % "rate") == sum(refused)
    with Wire(server, source="127.0.0.3") as other:
        assert other.send(get()).response()[0] == 200
    (line,) = set(log_lines(server, "max-new-connections-per-address"))
    assert "value=2 address=127.0.0.2" in line


def test_a_client_that_changes_its_keys_without_end_is_disconnected(server):
    """s_client sends one key update for each line that begins with k."""
    command = ["openssl", "s_client", "-connect", f"localhost:{server.port}", "-tls1_3"]
    cut = CUT % "keys"
    before = metric(server, cut)
    with subprocess.Popen(
        [*command, "-CAfile", str(server.ca_file)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        bufsize=0,
    ) as client:
        for count in range(1000):
            try:
                client.stdin.write(b"k\n")
            except BrokenPipeError:
                break
            seen = b""
            while b"KEYUPDATE" not in seen and (more := client.stdout.read(4096)):
                seen += more
            if b"KEYUPDATE" not in seen:
                break
            assert count >= 16 or metric(server, cut) == before
        assert 16 <= count < 1000
        client.stdin.close()
        client.wait(60)
    assert metric(server, cut) == before + 1
