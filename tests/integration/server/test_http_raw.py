"""Malformed and hostile HTTP: syntax, limits, timeouts, resets and shutdown, over TLS.

Ordinary HTTP clients cannot send such requests, so the tests write bytes to the socket and parse
the responses themselves.
"""
import contextlib
import gzip
import hashlib
import itertools
import os
import re
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import tempfile
import threading
import time
import warnings

import pytest

import people
from conftest import ROOT, make_folder

LARGEST_BODY = 8 << 20


class Wire:
    """One TLS connection."""

    def __init__(self, server, protocols=None, timeout=60, source=None):
        context = server.trust()
        if protocols:
            context = ssl.create_default_context(cafile=str(server.ca_file))
            context.set_alpn_protocols(protocols)
        raw = socket.create_connection(
            ("localhost", server.port),
            timeout=timeout,
            source_address=(source, 0) if source else None,
        )
        self.socket = context.wrap_socket(raw, server_hostname="localhost")
        self.rest = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)
        return self

    def receive(self):
        """Returns some bytes, or b"" once the server has closed or reset the connection."""
        try:
            return self.socket.recv(65536)
        except (ssl.SSLEOFError, ConnectionError):
            return b""

    def response(self):
        """Returns (status, headers, body) of the next response, or None if there is none."""
        data = self.rest
        while b"\r\n\r\n" not in data:
            more = self.receive()
            if not more:
                return None
            data += more
        head, _, body = data.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            before = headers.get(name.strip().lower(), "")
            headers[name.strip().lower()] = before + ", " * bool(before) + value.strip()
        size = int(headers.get("content-length", 0))
        while len(body) < size:
            more = self.receive()
            if not more:
                break
            body += more
        self.rest = body[size:]
        return int(lines[0].split()[1]), headers, body[:size]

    def is_closed(self, seconds=60):
        self.socket.settimeout(seconds)
        try:
            return self.receive() == b""
        except TimeoutError:
            return False


def get(path="/healthz", more=""):
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{more}\r\n".encode()


def post(size, path="/api/v1/shares", more=""):
    return (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {size}\r\n{more}\r\n"
    ).encode()


def metric(server, name):
    text = server.api().get("/metrics").text
    found = re.search("^" + re.escape(name) + r" (\S+)$", text, re.M)
    return float(found.group(1)) if found else 0.0


def wait_until(condition, seconds=120):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False


def has_begun(server):
    """Returns whether the server has received part of an incomplete request."""
    return metric(server, "perfolio_http_buffered_bytes") > 0


def folded(size):
    """Returns a profile of about size bytes that compresses badly."""
    lines, total = [], 0
    while total < size:
        line = f"main;work_{os.urandom(40).hex()};leaf 1\n"
        lines.append(line)
        total += len(line)
    return "".join(lines).encode()


SMUGGLED = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
MALFORMED_REQUESTS = {
    "two lengths": b"POST /api/v1/shares HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n"
    b"Content-Length: 43\r\n\r\nx" + SMUGGLED,
    "equal lengths twice": b"POST /api/v1/shares HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n"
    b"Content-Length: 1\r\n\r\nx",
    "length and chunked": b"POST /api/v1/shares HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "chunked in 1.0": b"POST /api/v1/shares HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"0\r\n\r\n",
    "unknown coding": b"POST /api/v1/shares HTTP/1.1\r\nHost: a\r\n"
    b"Transfer-Encoding: gzip, chunked\r\n\r\n",
    "chunked twice": b"POST /api/v1/shares HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "no host": b"GET /healthz HTTP/1.1\r\n\r\n",
    "two hosts": b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "bare line feeds": b"GET /healthz HTTP/1.1\nHost: a\n\n",
    "one bare line feed": b"GET /healthz HTTP/1.1\r\nHost: a\nX: y\r\n\r\n",
    "continued line": b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: y\r\n z\r\n\r\n",
    "version 1.2": b"GET /healthz HTTP/1.2\r\nHost: a\r\n\r\n",
    "blank before colon": b"GET /healthz HTTP/1.1\r\nHost: a\r\nX : y\r\n\r\n",
    "NUL in a value": b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: \x00\r\n\r\n",
    "101 fields": b"GET /healthz HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 101 + b"\r\n",
    "negative length": b"POST /api/v1/shares HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
    "signed length": b"POST /api/v1/shares HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\nx",
    "list of lengths": b"POST /api/v1/shares HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\nx",
    "bad chunk size": b"POST /api/v1/shares HTTP/1.1\r\nHost: a\r\n"
    b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    "HTTP/2 without asking": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "not HTTP": b"\x00\x01\x02\x03\r\n\r\n",
}


@pytest.mark.parametrize("name", MALFORMED_REQUESTS)
def test_a_malformed_request_gets_400_and_closes_the_connection(server, name):
    with Wire(server) as wire:
        response = wire.send(MALFORMED_REQUESTS[name]).response()
        assert response is not None and response[0] == 400, response
        assert (
            wire.is_closed()
        ), "the connection must be closed: the next bytes may be a smuggled request"
        assert wire.rest == b""


MALFORMED_PATHS = [
    "/healthz%00",
    "/healthz%0a",
    "/p%2Fabc",
    "/p/%zz",
    "/p/%",
    "/p/%ff",
    "*",
    "healthz",
]


@pytest.mark.parametrize("path", MALFORMED_PATHS)
def test_a_malformed_path_is_reported_as_such(server, path):
    with Wire(server) as wire:
        status, headers, body = wire.send(get(path)).response()
        assert status == 400
        assert headers["content-type"] == "application/problem+json"
        assert b"path" in body


@pytest.mark.parametrize("path", ["/..", "/p/../healthz", "//healthz", "/healthz/", "/./healthz"])
def test_paths_are_not_normalized(server, path):
    with Wire(server) as wire:
        assert wire.send(get(path)).response()[0] == 404


def test_healthz_accepts_a_malformed_query_string(server):
    with Wire(server) as wire:
        assert wire.send(get("/healthz?a=%00%2f%zz&&=&b")).response()[0] == 200


def test_valid_requests_in_rare_forms_are_served(server):
    forms = [
        b"\r\n" + get(),
        b"GET /healthz HTTP/1.0\r\n\r\n",
        b"GET https://localhost/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"gEt /healthz HTTP/1.1\r\nhOST:localhost\r\n\r\n".replace(b"gEt", b"GET"),
    ]
    for form in forms:
        with Wire(server) as wire:
            assert wire.send(form).response()[0] == 200, form


def test_pipelined_requests_get_their_responses_in_order(server):
    with Wire(server) as wire:
        wire.send(get("/healthz") + get("/nothing") + get("/readyz") + get("/robots.txt"))
        assert [wire.response()[0] for _ in range(4)] == [200, 404, 200, 200]


def test_a_client_that_pipelines_without_end_is_disconnected(server):
    """Requests in memory were handled for minutes after the client had closed its connection."""
    count = 30_000
    with Wire(server) as wire:
        with contextlib.suppress(OSError):  # the server may close before all is sent
            wire.send(get("/robots.txt") * count)
        responses = []
        while (response := wire.response()) is not None:
            responses.append(response)
        assert 1 <= len(responses) < count
        assert responses[-1][1].get("connection") == "close"
        assert wire.is_closed()


def test_head_options_and_unsupported_methods_get_their_statuses(server):
    with Wire(server) as wire:
        status, headers, _ = wire.send(b"BREW / HTTP/1.1\r\nHost: a\r\n\r\n").response()
        assert status == 501
        status, headers, _ = wire.send(get().replace(b"GET", b"DELETE")).response()
        assert status == 405 and headers["allow"] == "GET, HEAD"
        wire.send(get("/robots.txt").replace(b"GET", b"HEAD") + get())
        head = b""
        while b"\r\n\r\n" not in head:
            head += wire.receive()
        head, _, rest = head.partition(b"\r\n\r\n")
        assert b"200 OK" in head and int(re.search(rb"(?i)content-length: (\d+)", head)[1]) > 10
        wire.rest = rest
        assert wire.response()[0] == 200, "a HEAD response must have no body"
        status, headers, _ = wire.send(
            get("/api/openapi.yaml").replace(b"GET", b"OPTIONS")
        ).response()
        assert status == 204
        assert headers["access-control-allow-origin"] == "*"
        assert headers["access-control-allow-methods"] == "GET, HEAD, OPTIONS"
        status, headers, _ = wire.send(get("/login").replace(b"GET", b"OPTIONS")).response()
        assert status == 204 and "access-control-allow-origin" not in headers


def test_every_response_has_the_security_headers(server):
    for path, is_html in (
        ("/", True),
        ("/nothing", False),
        ("/healthz", False),
        ("/robots.txt", False),
    ):
        with Wire(server) as wire:
            _, headers, _ = wire.send(get(path)).response()
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert ("script-src 'self'" in headers["content-security-policy"]) == is_html
        assert headers["server"] == "perfolio", "the version must not be disclosed"
        assert re.fullmatch("[0-9a-f]{16}", headers["x-request-id"])
        assert "strict-transport-security" not in headers, "localhost must not be pinned"


def test_request_ids_are_unique_and_included_in_problems(server):
    ids = set()
    for _ in range(50):
        with Wire(server) as wire:
            _, headers, body = wire.send(get("/nothing")).response()
        assert f'"request_id":"{headers["x-request-id"]}"'.encode() in body
        ids.add(headers["x-request-id"])
    assert len(ids) == 50
    log = server.log()
    assert all(f'msg="request refused" request_id={id} ' in log for id in ids)


def test_a_body_over_the_limit_gets_413_before_it_is_read(server):
    with Wire(server) as wire:
        status, headers, body = wire.send(post(LARGEST_BODY * 20)).response()
        assert status == 413
        assert headers["content-type"] == "application/problem+json"
        assert b"parts" in body, "the detail must suggest an upload in parts"
        assert b'"instance":"/api/v1/shares"' in body
        assert f'request_id={headers["x-request-id"]} method=POST' in server.log()
    with Wire(server) as wire:
        status, _, _ = wire.send(
            post(LARGEST_BODY * 20, more="Expect: 100-continue\r\n")
        ).response()
        assert status == 413


def test_a_client_that_keeps_sending_still_receives_the_413(server):
    for more, head in (
        ("", post(LARGEST_BODY + 4096)),
        (
            "chunked",
            b"POST /api/v1/shares HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
        ),
    ):
        with Wire(server) as wire:
            wire.send(head)
            piece = b"x" * 65536
            if more:
                piece = b"10000\r\n" + piece + b"\r\n"
            for _ in range(LARGEST_BODY // 65536 + 8):
                wire.send(piece)
            response = wire.response()
            assert response is not None and response[0] == 413, response


def test_each_route_enforces_its_own_body_limit(server):
    with Wire(server) as wire:
        status, _, body = wire.send(
            get().replace(b"\r\n\r\n", b"\r\nContent-Length: 3\r\n\r\nabc")
        ).response()
        assert status == 413 and b"takes no body" in body
        status, _, body = wire.send(post(2 << 20, "/api/v1/session") + b" " * (2 << 20)).response()
        assert status == 413 and b"at most" in body


def test_requests_of_closed_connections_are_released(server):
    for _ in range(20):
        Wire(server).send(get("/metrics")).socket.close()
        Wire(server).send(post(100000) + b"x" * 50000).socket.close()
    assert wait_until(lambda: metric(server, "perfolio_http_requests_in_flight") <= 1)


def test_plain_text_on_the_tls_port_is_dropped(server):
    with socket.create_connection(("localhost", server.port), timeout=60) as raw:
        raw.sendall(get())
        try:
            assert b"200 OK" not in raw.recv(1000)
        except ConnectionError:
            pass
    with Wire(server) as wire:
        assert wire.send(get()).response()[0] == 200


@pytest.mark.parametrize(
    "version,works",
    [
        (ssl.TLSVersion.TLSv1_1, False),
        (ssl.TLSVersion.TLSv1_2, True),
        (ssl.TLSVersion.TLSv1_3, True),
    ],
)
def test_tls_1_2_and_1_3_are_accepted_and_1_1_is_refused(server, version, works):
    context = ssl.create_default_context(cafile=str(server.ca_file))
    context.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = version
        context.maximum_version = version
    raw = socket.create_connection(("localhost", server.port), timeout=60)
    if not works:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            context.wrap_socket(raw, server_hostname="localhost")
        return
    with context.wrap_socket(raw, server_hostname="localhost") as tls:
        tls.sendall(get())
        assert b"200 OK" in tls.recv(4096)


def test_http2_is_off_by_default(server):
    with Wire(server, ["h2", "http/1.1"]) as wire:
        assert wire.socket.selected_alpn_protocol() == "http/1.1"
        assert (
            wire.send(
                get(
                    more="Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
                    "HTTP2-Settings: AAMAAABkAAQAAP__\r\n"
                )
            ).response()[0]
            == 200
        )


@pytest.fixture(scope="module")
def short_timeouts(cluster_template, tmp_path_factory):
    """A server with short timeouts and a low connection limit."""
    import conftest

    folder = conftest.make_folder()
    conftest.copy_template(cluster_template, folder / "data")
    instance = conftest.Server(
        folder / "data",
        [
            "--request-timeout",
            "2s",
            "--idle-timeout",
            "3s",
            "--max-connections",
            "40",
            "--anonymous-uploads-per-minute",
            "1000",
            "--shutdown-timeout",
            "8s",
        ],
    )
    instance.start()
    yield instance
    assert instance.stop() == 0
    conftest.shutil.rmtree(folder, ignore_errors=True)


def test_a_slow_upload_is_not_cut_while_bytes_arrive(short_timeouts):
    profile = folded(6000)
    with Wire(short_timeouts) as wire:
        wire.send(post(len(profile), more="Authorization: Bearer " + short_timeouts.token + "\r\n"))
        start = time.monotonic()
        for at in range(0, len(profile), 100):
            wire.send(profile[at : at + 100])
            time.sleep(0.1)
        status, _, body = wire.response()
        assert (
            time.monotonic() - start > 5
        ), "the upload must take longer than every timeout of this server"
        assert status == 201, body


def test_a_trickled_request_is_cut(short_timeouts):
    before = metric(short_timeouts, 'perfolio_http_connections_cut_total{reason="slow"}')
    for begin, drop in ((b"GET /", b"a"), (post(100000), b"x")):
        with Wire(short_timeouts) as wire:
            wire.send(begin)
            start = time.monotonic()
            with pytest.raises((ssl.SSLError, ConnectionError)):
                while time.monotonic() - start < 60:
                    wire.send(drop)
                    time.sleep(0.1)
            assert 1.5 < time.monotonic() - start < 60
    assert (
        metric(short_timeouts, 'perfolio_http_connections_cut_total{reason="slow"}') >= before + 2
    )


def test_idle_connections_are_closed(short_timeouts):
    with Wire(short_timeouts) as fresh, Wire(short_timeouts) as kept:
        assert kept.send(get()).response()[0] == 200
        start = time.monotonic()
        assert fresh.is_closed() and kept.is_closed()
        assert 2 < time.monotonic() - start < 60


def test_idle_connections_over_the_cap_are_closed_for_new_ones(short_timeouts):
    limit, wires = 16, []
    for _ in range(60):
        try:
            wires.append(Wire(short_timeouts))
        except (ssl.SSLError, ConnectionError):
            pass
    assert can_connect(short_timeouts)
    assert wait_until(lambda: metric(short_timeouts, "perfolio_http_connections") <= limit)
    assert (
        metric(short_timeouts, 'perfolio_http_connections_cut_total{reason="address"}')
        >= 60 - limit
    )
    for wire in wires:
        wire.socket.close()


def can_connect(server):
    try:
        with Wire(server) as wire:
            return wire.send(get()).response()[0] == 200
    except OSError:
        return False


def resident_mb(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20


@pytest.mark.long
def test_buffered_bytes_are_bounded_and_every_upload_gets_a_response(start_server):
    """40 concurrent uploads of 7 MiB with a cap of 32 MiB: some wait, each gets a response."""
    server = start_server("--max-buffered-bytes", "32MiB", "--anonymous-uploads-per-minute", "1000")
    count, body = 40, b"!" * (7 << 20)  # not a profile: refused once it has arrived
    statuses, lock = [], threading.Lock()

    def upload():
        status = None
        try:
            with Wire(server, timeout=100) as wire:
                wire.send(post(len(body)))
                for at in range(0, len(body), 1 << 18):
                    wire.send(body[at : at + (1 << 18)])
                status = wire.response()[0]
        finally:
            with lock:
                statuses.append(status)

    pid = server.child_pid()
    before = resident_mb(pid)
    threads = [threading.Thread(target=upload) for _ in range(count)]
    for thread in threads:
        thread.start()
    peak = before
    while any(thread.is_alive() for thread in threads):
        peak = max(peak, resident_mb(pid))
        time.sleep(0.02)
    assert len(statuses) == count
    assert all(status in (400, 415, 422, 429, 503) for status in statuses), statuses
    if os.environ.get("BUILD", "release") in ("release", "debug"):  # sanitizers keep freed memory
        assert peak - before < 200, "of 280 MiB, only 32 MiB and the memory of workers may remain"
    assert can_connect(server)


def test_stalled_uploads_do_not_block_others_forever(start_server):
    server = start_server("--max-buffered-bytes", "32MiB", "--request-timeout", "2s")
    stalled = []
    for _ in range(8):
        wire = Wire(server)
        wire.send(post(8 << 20) + b"x" * (5 << 20))
        stalled.append(wire)
        if metric(server, "perfolio_http_buffered_bytes") > (24 << 20):
            break
    # The response arrives while the stalled uploads are still connected: their timeout is 2 s.
    with Wire(server, timeout=120) as wire:
        wire.send(post(7 << 20))
        for _ in range(7 << 4):
            wire.send(b"!" * (1 << 16))
        assert wire.response() is not None
    for wire in stalled:
        wire.socket.close()


class Crowd:
    """Large uploads of one address. They send first_bytes fast and then continue at a rate just
    high enough not to be cut."""

    def __init__(self, server, source, count=40, first_bytes=1200000):
        self.wires = [Wire(server, source=source).send(post(8 << 20)) for _ in range(count)]
        self.left = {wire: first_bytes for wire in self.wires}
        self.has_ended = threading.Event()
        self.thread = threading.Thread(target=self.send)

    def __enter__(self):
        for wire in self.wires:
            wire.socket.setblocking(False)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop()
        for wire in self.wires:
            wire.socket.close()

    def stop(self):
        self.has_ended.set()
        self.thread.join()

    def send(self):
        while not self.has_ended.wait(0.1):
            for wire in self.wires:
                try:
                    self.left[wire] -= wire.socket.send(
                        b"!" * (4096 if self.left[wire] < 0 else 1 << 16)
                    )
                except (ssl.SSLWantWriteError, ssl.SSLWantReadError, ssl.SSLError, OSError):
                    pass


def test_uploads_of_one_address_leave_buffers_to_another(start_server):
    server = start_server("--max-buffered-bytes", "32MiB")
    with Crowd(server, "127.0.6.1"):
        assert wait_until(lambda: metric(server, "perfolio_http_buffered_bytes") > 24 << 20, 60)
        for size in (1 << 20, 7 << 20):
            with Wire(server, source="127.0.6.2") as wire:
                wire.send(post(size) + b"!" * size)
                status, _, body = wire.response()
                assert status in (400, 415, 422), (status, body)


@pytest.mark.long
def test_an_upload_that_waits_too_long_for_buffers_gets_503(start_server):
    server = start_server("--max-buffered-bytes", "32MiB", "--request-timeout", "2s")
    refusals = 'perfolio_http_connections_cut_total{reason="buffers"}'
    with Crowd(server, "127.0.6.1") as crowd:
        assert wait_until(lambda: metric(server, refusals) > 0)
        crowd.stop()
        assert wait_until(lambda: metric(server, "perfolio_http_connections") == 1)
        responses = []
        for wire in crowd.wires:
            wire.socket.settimeout(60)
            responses.append(wire.response())
        refused = [response for response in responses if response]
        assert len(refused) == metric(server, refusals)
        for status, headers, body in refused:
            assert status == 503 and headers["connection"] == "close", body
            assert int(headers["retry-after"]) >= 1
            assert headers["content-type"] == "application/problem+json"
            assert headers["x-content-type-options"] == "nosniff"
            assert (
                b'"instance":"/api/v1/shares"' in body and headers["x-request-id"].encode() in body
            )
            assert f'request_id={headers["x-request-id"]} method=POST' in server.log()


def large_folded(count):
    """Returns distinct stacks, so that the flame graph has more than 3 * count nodes."""
    return gzip.compress(
        "".join(
            f"function_{i % 97};function_with_a_long_name_{i};leaf_{i};line_{i} 1\n"
            for i in range(count)
        ).encode(),
        1,
    )


def slow_reader(server, path):
    """Requests path and reads only the first bytes; returns (wire, status, bytes)."""
    wire = Wire(server)
    wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    wire.send(
        f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n\r\n".encode()
    )
    head = wire.socket.recv(4096)
    return wire, int(head.split(b" ")[1]), head


@pytest.mark.long
def test_memory_of_unread_responses_is_bounded(start_server):
    """Each slow reader sends a different query for one large share, so that no result is shared."""
    server = start_server("--max-buffered-bytes", "16MiB")
    made = server.api().post("/api/v1/shares", large_folded(80000))
    assert made.status == 201, made
    path = f"/api/v1/shares/{made.json()['id']}/flame?limit="
    size = len(server.api().get(path + "0", headers={"Accept": "application/json"}).body)
    assert (
        8 << 20 < size < 16 << 20
    ), "the response must exceed the socket buffers and fit the limit"
    readers = []
    while len(readers) < 12 and not any(status == 503 for _, status, _ in readers):
        readers.append(slow_reader(server, path + str(900000 - len(readers))))
    refused = [head for _, status, head in readers if status == 503]
    assert all(status in (200, 503) for _, status, _ in readers)
    assert refused and all(b"retry-after:" in head.lower() for head in refused)
    assert metric(server, "perfolio_http_response_bytes") <= 16 << 20
    # Connections that read nothing are cut, and a client that reads is served again.
    assert wait_until(lambda: metric(server, "perfolio_http_response_bytes") <= 1 << 20, 20)
    response = server.api().get(path + "1000000", headers={"Accept": "application/json"})
    assert response.status == 200 and len(response.body) == size
    for wire, _, _ in readers:
        wire.socket.close()
    assert wait_until(lambda: metric(server, "perfolio_http_response_bytes") == 0)


@pytest.mark.long
def test_one_address_holds_a_part_of_the_memory_of_unread_responses(start_server):
    """An eighth, unless it is one response; other clients are served meanwhile."""
    server = start_server("--max-buffered-bytes", "64MiB")
    made = server.api().post("/api/v1/shares", large_folded(80000))
    path = f"/api/v1/shares/{made.json()['id']}/flame?limit="
    json = {"Accept": "application/json"}
    size = len(server.api().get(path + "0", headers=json).body)
    assert 8 << 20 < size < 16 << 20
    reader, status, _ = slow_reader(server, path + "900000")
    assert status == 200
    response = server.anonymous().get(path + "900001", headers=json)
    assert response.status == 503 and "this address" in response.json()["detail"], response
    other = server.anonymous()
    people.come_from(other, "127.0.0.9")
    assert len(other.get(path + "900002", headers=json).body) == size
    assert len(server.api().get(path + "900003", headers=json).body) == size
    reader.socket.close()


class SlowReader(threading.Thread):
    """Requests a large response and reads 14 KB/s of it, which is more than the least rate, again
    and again, each time another response. Numbers are appended to path."""

    def __init__(self, server, source, path, numbers):
        super().__init__(daemon=True)
        self.server, self.source, self.path, self.numbers = server, source, path, numbers
        self.is_stopped = False
        self.start()

    def run(self):
        for number in self.numbers:
            if self.is_stopped:
                return
            with self.connect() as connection:
                connection.sendall(get(f"{self.path}{number}", "Accept: application/json\r\n"))
                while not self.is_stopped and self.read_some(connection):
                    time.sleep(1)

    def connect(self):
        """With a buffer that is small from the start, so that the kernel does not read more."""
        raw = socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.settimeout(60)
        raw.bind((self.source, 0))
        raw.connect(("127.0.0.1", self.server.port))
        return self.server.trust().wrap_socket(raw, server_hostname="localhost")

    def read_some(self, connection):
        """False: the response has ended, or it is an error."""
        wanted = 14_000
        try:
            while wanted > 0:
                data = connection.recv(min(4096, wanted))
                if not data or data.startswith(b"HTTP/1.1 503"):
                    return False
                wanted -= len(data)
        except OSError:
            return False
        return True


@pytest.mark.long
def test_slow_readers_leave_memory_of_responses_to_others(start_server):
    """Sixteen addresses would hold all that clients without credentials may hold for minutes."""
    server = start_server("--max-buffered-bytes", "64MiB")
    paths = []
    for count in (80_000, 20_000):
        made = server.api().post("/api/v1/shares", large_folded(count))
        paths.append(f"/api/v1/shares/{made.json()['id']}/flame?limit=")
    json = {"Accept": "application/json"}
    size = len(server.api().get(paths[0] + "0", headers=json).body)
    assert size > 8 << 20, "a response must exceed the buffers of the sockets"
    readers = [
        SlowReader(server, f"127.0.3.{n + 1}", paths[0], itertools.count(900_000 + 1000 * n))
        for n in range(16)
    ]
    viewer = server.anonymous()
    people.come_from(viewer, "127.0.0.9")
    cut = 'perfolio_http_connections_cut_total{reason="unread"}'
    assert wait_until(lambda: metric(server, cut) > 0, 60)
    numbers = itertools.count(1)

    def is_served():
        return viewer.get(paths[1] + str(next(numbers)), headers=json).status == 200

    assert wait_until(is_served, 60)
    assert [is_served() for _ in range(10)] == [True] * 10
    for reader in readers:
        reader.is_stopped = True
    for reader in readers:
        reader.join()


@pytest.mark.long
def test_a_cached_result_is_counted_once_for_all_its_readers(start_server):
    server = start_server("--max-buffered-bytes", "128MiB")
    made = server.api().post("/api/v1/shares", large_folded(80000))
    path = f"/api/v1/shares/{made.json()['id']}/flame?limit=0"
    size = len(server.api().get(path, headers={"Accept": "application/json"}).body)
    assert 8 << 20 < size < 16 << 20
    readers = [slow_reader(server, path) for _ in range(10)]
    assert [status for _, status, _ in readers] == [200] * 10
    held = metric(server, "perfolio_http_response_bytes")
    assert size < held < size + 10 * (1 << 20), "one result and one piece in flight per reader"
    for wire, _, _ in readers:
        wire.socket.close()
    assert wait_until(lambda: metric(server, "perfolio_http_response_bytes") == 0)


def frame(kind, flags, stream, payload):
    return (
        struct.pack(">I", len(payload))[1:]
        + bytes([kind, flags])
        + struct.pack(">I", stream)
        + payload
    )


HTTP2_START = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"")
# :method GET, :scheme https, :path /readyz, :authority localhost
HTTP2_READYZ = b"\x82\x87" + b"\x04\x07/readyz" + b"\x41\x09localhost"


def test_rapid_reset_ends_the_connection_and_not_the_server(start_server):
    server = start_server("--http2", "yes")
    with Wire(server, ["h2"]) as wire:
        assert wire.socket.selected_alpn_protocol() == "h2"
        # A large kernel buffer would accept requests that the server has not read yet.
        wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)
        wire.send(HTTP2_START)
        sent = 0
        with pytest.raises((ssl.SSLError, ConnectionError)):
            for number in range(20000):
                stream = 2 * number + 1
                wire.send(
                    frame(1, 5, stream, HTTP2_READYZ) + frame(3, 0, stream, struct.pack(">I", 8))
                )
                sent += 1
        assert sent < 5000, sent
    assert metric(server, 'perfolio_http_connections_cut_total{reason="cancels"}') == 1
    assert wait_until(lambda: metric(server, "perfolio_http_queue_depth") == 0)
    done = metric(server, 'perfolio_http_requests_total{method="GET",route="/readyz",status="200"}')
    assert done < sent / 2, "reset requests must be dropped before they run"
    with Wire(server, ["h2"]) as wire:
        wire.send(HTTP2_START + frame(1, 5, 1, HTTP2_READYZ))
        data = b""
        while b"ready\n" not in data:
            more = wire.receive()
            assert more
            data += more


def test_http2_windows_of_zero_do_not_hold_the_memory_of_responses(start_server):
    """Streams whose client opens no window are cut like a client that reads nothing."""
    server = start_server("--http2", "yes", "--max-buffered-bytes", "16MiB")
    lines = (f"main;f{i};{hashlib.sha256(b'%d' % i).hexdigest()} 1\n" for i in range(12000))
    share = server.api().post("/api/v1/shares", "".join(lines)).json()["id"]
    path = f"/p/{share}/raw".encode()
    fields = b"\x82\x87" + b"\x04" + bytes([len(path)]) + path + b"\x41\x09localhost"
    start = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, struct.pack(">HI", 4, 0))
    wires = [Wire(server, ["h2"], source=f"127.0.0.{11 + i}") for i in range(4)]
    for wire in wires:
        wire.send(start + b"".join(frame(1, 5, 2 * i + 1, fields) for i in range(32)))
    assert wait_until(lambda: metric(server, "perfolio_http_response_bytes") > 5 << 20)
    # Connections that read nothing are cut while more than a quarter is in use.
    assert wait_until(lambda: metric(server, "perfolio_http_response_bytes") <= 4 << 20, 60)
    assert server.api().get(f"/p/{share}/raw").status == 200
    assert metric(server, 'perfolio_http_connections_cut_total{reason="unread"}') >= 1
    for wire in wires:
        wire.socket.close()


def test_curl_uses_http2(start_server):
    server = start_server("--http2", "yes")
    output = subprocess.run(
        [
            "curl",
            "-sS",
            "--http2",
            "--cacert",
            str(server.ca_file),
            "-w",
            "%{http_version} %{http_code}",
            "-o",
            "/dev/null",
            server.url + "/",
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert output == "2 200"


def test_a_stop_waits_for_the_upload_in_flight(start_server):
    server = start_server("--shutdown-timeout", "300s")
    profile = folded(20000)
    wire = Wire(server)
    wire.send(
        post(len(profile), more="Authorization: Bearer " + server.token + "\r\n") + profile[:1000]
    )
    idle = Wire(server)
    assert wait_until(lambda: has_begun(server))
    server.process.send_signal(signal.SIGTERM)
    assert idle.is_closed(), "idle connections must be closed at once"
    assert wait_until(lambda: not can_connect(server))
    time.sleep(0.5)
    wire.send(profile[1000:])
    status, headers, body = wire.response()
    assert status == 201, body
    assert headers["connection"] == "close"
    assert wire.is_closed()
    assert server.process.wait(60) == 0


def test_a_stop_does_not_wait_forever_for_a_stalled_upload(start_server):
    server = start_server("--shutdown-timeout", "2s")
    wire = Wire(server)
    wire.send(post(1 << 20) + b"x" * 100)
    assert wait_until(lambda: has_begun(server))
    server.process.send_signal(signal.SIGTERM)
    assert (
        server.process.wait(120) == 0
    ), "the server must not wait for the rest of the stalled upload"
    assert wire.is_closed()


@pytest.fixture
def open_folder():
    """A folder in which the user of the server may create files. A folder of pytest does not suit,
    because another pytest that starts closes it to other users."""
    folder = make_folder()
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def test_sighup_reopens_the_access_log(start_server, open_folder):
    folder = open_folder
    log = folder / "access.log"
    server = start_server("--access-log", str(log))
    with Wire(server) as wire:
        _, headers, _ = wire.send(get("/nothing?x=1", more='User-Agent: "quote\r\n')).response()
        assert wait_until(lambda: headers["x-request-id"] in log.read_text())
        line = [line for line in log.read_text().split("\n") if headers["x-request-id"] in line][0]
        assert re.fullmatch(
            r"(127\.0\.0\.1|::1) - - \[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d \+0000\] "
            r'"GET /nothing\?x=1 HTTP/1\.1" 404 \d+ "-" "\\x22quote" \d+\.\d{6} [0-9a-f]{16}',
            line,
        ), line
        log.rename(folder / "access.log.1")
        server.process.send_signal(signal.SIGHUP)
        assert wait_until(log.exists)
        assert wait_until(lambda: "reloaded" in server.log())
        _, headers, _ = wire.send(get()).response()
        assert wait_until(lambda: headers["x-request-id"] in log.read_text())
        assert headers["x-request-id"] not in (folder / "access.log.1").read_text()


def test_a_request_of_maximum_escaped_length_is_logged(start_server):
    """The log writes each quote as four characters. A client must not be able to avoid the log."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        log = os.path.join(folder, "access.log")
        server = start_server("--access-log", log)
        quotes = '"' * 1500
        with Wire(server) as wire:
            wire.send(
                get("/nothing?" + quotes, more=f"User-Agent: {quotes}\r\nReferer: {quotes}\r\n")
            )
            request_id = wire.response()[1]["x-request-id"]
            wire.send(get())
            last_id = wire.response()[1]["x-request-id"]
        assert wait_until(lambda: last_id in open(log).read())
        (line,) = [line for line in open(log) if request_id in line]
        assert line.count("\\x22") == 1024 * 3 - len("/nothing?"), line


def test_the_client_address_is_the_last_one_in_x_forwarded_for(start_server):
    """A proxy appends its client's address or adds another field. Earlier entries come from the
    client and may be forged."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        log = os.path.join(folder, "access.log")
        server = start_server("--access-log", log, "--trust-forwarded-for", "yes")
        named = {
            "203.0.113.9": (
                "203.0.113.9",
                "192.0.2.1, 203.0.113.9",
                "203.0.113.9:4711",
                "192.0.2.1\r\nX-Forwarded-For: 203.0.113.9",
                "::ffff:203.0.113.9",
                "203.0.113.9%eth0",
            ),
            "2001:db8::9": ("2001:DB8:0::9", "[2001:db8::9]", "[2001:db8::9]:4711"),
            # Not an address: a client could otherwise avoid every limit with a new text each time.
            "127.0.0.1": ("unknown", "203.0.113.900", "2001:db8::9::1", "[", "_hidden:1", "a" * 99),
        }
        for client, forms in named.items():
            for forwarded in forms:
                with Wire(server) as wire:
                    wire.send(get(more=f"X-Forwarded-For: {forwarded}\r\n"))
                    request_id = wire.response()[1]["x-request-id"]
                assert wait_until(lambda: request_id in open(log).read())
                (line,) = [line for line in open(log) if request_id in line]
                assert line.startswith(f"{client} "), line


def make_certificate(folder, name):
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-keyout",
            str(folder / "key.pem"),
            "-out",
            str(folder / "cert.pem"),
            "-days",
            "2",
            "-subj",
            f"/CN={name}",
            "-addext",
            "subjectAltName=DNS:localhost",
        ],
        check=True,
        capture_output=True,
    )
    os.chmod(folder / "key.pem", 0o644)


def common_name(server):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with socket.create_connection(("localhost", server.port), timeout=60) as raw:
        with context.wrap_socket(raw) as tls:
            der = tls.getpeercert(binary_form=True)
    text = subprocess.run(
        ["openssl", "x509", "-inform", "der", "-noout", "-subject"],
        input=der,
        capture_output=True,
        check=True,
    ).stdout.decode()
    return text.rpartition("=")[2].strip()


def test_sighup_loads_a_new_certificate_and_ignores_a_broken_one(start_server):
    import conftest

    folder = conftest.make_folder()
    try:
        make_certificate(folder, "first")
        server = start_server(
            "--tls-cert", str(folder / "cert.pem"), "--tls-key", str(folder / "key.pem"), wait=False
        )
        assert wait_until(lambda: accepts_tls(server), 60), server.log()[-2000:]
        assert common_name(server) == "first"
        make_certificate(folder, "second")
        server.process.send_signal(signal.SIGHUP)
        assert wait_until(lambda: common_name(server) == "second")
        whole = (folder / "cert.pem").read_text()
        broken_chain = whole + whole[:200] + "!" + whole[200:]
        for count, certificate in enumerate(("rubbish", broken_chain), 1):
            (folder / "cert.pem").write_text(certificate)
            server.process.send_signal(signal.SIGHUP)
            assert wait_until(lambda: server.log().count("reload failed") == count)
            assert common_name(server) == "second"
        # A refused certificate does not prevent a restart of the server.
        os.kill(server.child_pid(), signal.SIGKILL)
        assert wait_until(lambda: accepts_tls(server)) and common_name(server) == "second"
        # A key with a password is refused; the server does not prompt for the password.
        (folder / "cert.pem").write_text(whole)
        subprocess.run(
            [
                "openssl",
                "ec",
                "-aes256",
                "-passout",
                "pass:secret",
                "-in",
                str(folder / "key.pem"),
                "-out",
                str(folder / "locked.pem"),
            ],
            check=True,
            capture_output=True,
        )
        (folder / "locked.pem").rename(folder / "key.pem")
        server.process.send_signal(signal.SIGHUP)
        assert wait_until(lambda: "private key without a password" in server.log())
        assert common_name(server) == "second" and server.stop() == 0
    finally:
        conftest.shutil.rmtree(folder, ignore_errors=True)


def accepts_tls(server):
    try:
        return bool(common_name(server))
    except (OSError, subprocess.CalledProcessError):
        return False


def test_metrics_are_well_formed(server):
    text = server.api().get("/metrics").text
    names = set()
    for line in text.strip().split("\n"):
        if line.startswith("# TYPE "):
            name = line.split()[2]
            assert name not in names, "each metric must have one TYPE line"
            names.add(name)
            continue
        assert line.startswith("# HELP ") or re.fullmatch(
            r'[a-z_]+(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? -?[\d.e+]+(Inf)?', line
        ), line
    assert {
        "perfolio_http_requests_total",
        "perfolio_http_request_duration_seconds",
        "perfolio_http_queue_depth",
        "perfolio_http_connections",
        "perfolio_http_buffered_bytes",
        "process_resident_memory_bytes",
        "process_cpu_seconds_total",
    } <= names
    assert server.anonymous().get("/metrics").status in (200, 401)


def test_large_responses_are_compressed_by_an_accepted_coding(server):
    api = server.api()
    plain = api.get("/licenses.txt")
    assert "content-encoding" not in plain.headers
    for coding in ("gzip", "zstd"):
        packed = api.get("/licenses.txt", headers={"Accept-Encoding": coding})
        assert packed.headers["content-encoding"] == coding
        assert "accept-encoding" in packed.headers["vary"].lower()
        assert len(packed.body) < len(plain.body) / 2
    refused = api.get("/licenses.txt", headers={"Accept-Encoding": "gzip;q=0, zstd;q=0.000"})
    assert refused.body == plain.body


def test_the_openapi_description_is_compressed_by_the_build_only(server):
    """To compress it takes milliseconds of a thread that serves connections."""
    api = server.api()
    plain = api.get("/api/openapi.yaml", headers={"Accept-Encoding": "zstd"})
    assert "content-encoding" not in plain.headers
    packed = api.get("/api/openapi.yaml", headers={"Accept-Encoding": "gzip, zstd"})
    assert packed.headers["content-encoding"] == "gzip"
    assert (
        gzip.decompress(packed.body) == plain.body == (ROOT / "api" / "openapi.yaml").read_bytes()
    )
