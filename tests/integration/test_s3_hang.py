"""An S3 server that does not respond: connections are accepted, and no byte comes back.

The server is a small one of this test, which checks no signatures: make test-s3 uses real ones.
PERFOLIO_PRINT_SECONDS=1 prints how long each kind of request took.
"""

import contextlib
import http.server
import os
import re
import socket
import threading
import time
import urllib.parse
from xml.sax.saxutils import escape

import pytest

import sample_profiles as samples
import stored
from conftest import Server, copy_template, make_folder
from test_database_hang import Asking, assert_refused, print_seconds
from test_shares import wait_for


class Handler(http.server.BaseHTTPRequestHandler):
    """One bucket in memory, addressed by path."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def respond(self, status, body=b"", **fields):
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def fail(self, status, code):
        self.respond(status, f"<Error><Code>{code}</Code></Error>".encode(), Content_Type="application/xml")

    def take(self):
        """The body, the key and the query, once the server responds at all."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.responds.wait()
        time.sleep(self.server.delay)
        path, _, query = self.path.partition("?")
        return body, path.partition("/bucket")[2].lstrip("/"), urllib.parse.parse_qs(query, keep_blank_values=True)

    def do_PUT(self):
        body, key, _ = self.take()
        self.server.objects[key] = body
        self.respond(200, ETag='"x"')

    def do_POST(self):
        self.take()
        self.fail(501, "NotImplemented")

    def do_DELETE(self):
        _, key, _ = self.take()
        self.server.objects.pop(key, None)
        self.respond(204)

    def do_GET(self):
        _, key, query = self.take()
        if not key:
            return self.list(query)
        if key not in self.server.objects:
            return self.fail(404, "NoSuchKey")
        body = self.server.objects[key]
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if not wanted:
            return self.respond(200, body, ETag='"x"')
        first, last = int(wanted[1]), min(int(wanted[2]), len(body) - 1)
        return self.respond(206, body[first:last + 1], ETag='"x"', Content_Range=f"bytes {first}-{last}/{len(body)}")

    do_HEAD = do_GET

    def list(self, query):
        prefix = query.get("prefix", [""])[0]
        if "uploads" in query:
            return self.respond(200, b"<ListMultipartUploadsResult><IsTruncated>false</IsTruncated>"
                                     b"</ListMultipartUploadsResult>")
        found = "".join(f"<Contents><Key>{escape(key)}</Key><LastModified>2020-01-01T00:00:00.000Z</LastModified>"
                        f"<Size>{len(body)}</Size></Contents>"
                        for key, body in sorted(self.server.objects.items()) if key.startswith(prefix))
        return self.respond(200, f"<ListBucketResult><IsTruncated>false</IsTruncated>{found}"
                                 "</ListBucketResult>".encode(), Content_Type="application/xml")


class BucketServer(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port=0, objects=None, handler=Handler):
        super().__init__(("127.0.0.1", port), handler)
        self.objects = {} if objects is None else objects
        self.connections = []
        self.delay = 0
        self.responds = threading.Event()
        self.responds.set()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def get_request(self):
        connection, address = super().get_request()
        self.connections.append(connection)
        return connection, address

    def close_connections(self):
        for connection in self.connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request, client_address):
        """Clients that have given up are what this is about."""

    @contextlib.contextmanager
    def hanging(self):
        self.responds.clear()
        try:
            yield
        finally:
            self.responds.set()


@pytest.fixture
def bucket():
    server = BucketServer()
    yield server
    server.responds.set()
    server.shutdown()
    server.server_close()


@pytest.fixture
def server(bucket, cluster_template):
    folder = make_folder()
    copy_template(cluster_template, folder / "data")
    environment = {"PERFOLIO_TEST_S3_" + name: value for name, value in {
        "BUCKET": "bucket", "REGION": "us-east-1", "ENDPOINT": f"http://127.0.0.1:{bucket.server_port}",
        "ACCESS_KEY": "key", "SECRET_KEY": "secret"}.items()}
    instance = Server(folder / "data", objects=stored.Bucket("hang", environment)).start()
    yield instance
    bucket.responds.set()
    assert instance.stop() == 0, instance.log()[-4000:]


def test_a_bucket_that_hangs_is_answered_503_soon_and_used_again_without_a_restart(server, bucket):
    api = server.api()
    share = api.post("/api/v1/shares", samples.FOLDED).json()["id"]
    upload = api.post("/api/v1/uploads", json={"size": 100}).json()["id"]
    assert api.post("/ingest", samples.FOLDED, query={"name": "app"}).status == 200
    with bucket.hanging():
        kinds = [
            ("ingest /ingest", "POST", "/ingest", {"body": samples.FOLDED, "query": {"name": "app"}}),
            ("share upload", "POST", "/api/v1/shares", {"body": samples.FOLDED}),
            ("upload part", "PUT", f"/api/v1/uploads/{upload}/parts/0", {"body": b"x" * 100}),
            ("raw share", "GET", f"/p/{share}/raw", {}),
        ]
        requests = [Asking(name, server.api(), method, path, **options)
                    for _ in range(8) for name, method, path, options in kinds]
        for request in requests:
            request.join()
        print_seconds(requests)
        for request in requests:
            assert_refused(request)
        others = [Asking(path, server.api(), "GET", path) for path in ("/healthz", "/login", "/api/v1/shares")]
        for other in others:
            other.join()
            assert other.answer and other.answer.status == 200, (other.kind, other.answer)
        ready = server.anonymous().get("/readyz")
        assert ready.status == 503 and "S3 server does not respond" in ready.json()["detail"], ready
    begun = time.monotonic()
    wait_for(lambda: server.anonymous().get("/readyz").status == 200, 60)
    if os.environ.get("PERFOLIO_PRINT_SECONDS"):
        print(f"ready again after {time.monotonic() - begun:.2f} s")
    assert api.post("/ingest", samples.FOLDED, query={"name": "app"}).status == 200
    assert api.get(f"/p/{share}/raw").body == samples.FOLDED


def test_the_server_stops_while_the_bucket_hangs(server, bucket):
    assert server.api().post("/api/v1/shares", samples.FOLDED).status == 201
    with bucket.hanging():
        request = Asking("share upload", server.api(), "POST", "/api/v1/shares", body=samples.FOLDED)
        begun = time.monotonic()
        assert server.stop(120) == 0
        assert time.monotonic() - begun < 30
        request.join()


def test_a_slow_bucket_is_not_taken_for_one_that_hangs(server, bucket):
    """Only one request is slow, as a large put may be: others are responded to."""
    original = Handler.do_PUT

    def slow(handler):
        time.sleep(4)
        original(handler)

    Handler.do_PUT = slow
    try:
        assert server.api().post("/api/v1/shares", samples.FOLDED).status == 201
    finally:
        Handler.do_PUT = original
    assert "does not respond" not in server.log()


def test_a_bucket_that_is_long_away_is_not_waited_for_by_each_request(server, bucket):
    api = server.api()

    def seconds_until_refused():
        begun = time.monotonic()
        answer = api.post("/api/v1/shares", samples.FOLDED)
        assert answer.status == 503 and int(answer.headers["retry-after"]) > 0, answer
        return time.monotonic() - begun

    assert api.post("/api/v1/shares", samples.FOLDED).status == 201
    bucket.shutdown()
    bucket.server_close()
    bucket.close_connections()
    waited = seconds_until_refused()
    wait_for(lambda: seconds_until_refused() < waited / 4)
    again = BucketServer(bucket.server_port, bucket.objects)
    try:
        wait_for(lambda: api.post("/api/v1/shares", samples.FOLDED).status == 201)
    finally:
        assert server.stop() == 0
        again.shutdown()
        again.server_close()


def push(server):
    return server.api().post("/ingest", samples.FOLDED, query={"name": "app"})


def refused_after(server):
    """Seconds until a push is answered 503, as while the bucket hangs."""
    request = Asking("ingest", server.api(), "POST", "/ingest", body=samples.FOLDED, query={"name": "app"})
    request.join()
    assert request.answer and request.answer.status == 503, request.answer
    return request.seconds


def test_a_slow_server_is_waited_for_and_still_found_to_hang(server, bucket):
    assert push(server).status == 200
    for delay in (1.5, 3):
        bucket.delay = delay
        wait_for(lambda: push(server).status == 200, 60)
        pushes = [Asking(str(number), server.api(), "POST", "/ingest", body=samples.FOLDED, query={"name": "app"})
                  for number in range(17)]
        for one in pushes:
            one.join()
        assert [one.answer and one.answer.status for one in pushes] == [200] * 17, delay
        assert [push(server).status for _ in range(3)] == [200] * 3, delay
        wait_for(lambda: server.anonymous().get("/readyz").status == 200, 60)
    bucket.delay = 8  # the check takes that long; a response is the last result
    time.sleep(3.1)
    asked = [Asking("readyz", server.anonymous(), "GET", "/readyz") for _ in range(4)]
    for one in asked:
        one.join()
    assert [one.answer and one.answer.status for one in asked] == [200] * 4 and max(one.seconds for one in asked) < 6, asked
    bucket.delay = 3
    with bucket.hanging():
        # Three times the 3 s that were learnt, and the time until a probe is sent.
        assert refused_after(server) < 20
        wait_for(lambda: server.anonymous().get("/readyz").status == 503, 60)
    bucket.delay = 0
    wait_for(lambda: push(server).status == 200, 60)
    for _ in range(30):
        assert push(server).status == 200
    with bucket.hanging():
        assert refused_after(server) < 5, "the latency is forgotten"
