"""Responses that do not come from S3, such as the sign-in page of a proxy, and failures of S3.

The bucket is that of s3_stub.py; make test-s3 uses real S3 servers.
"""

import contextlib
import os
import re
import subprocess
import threading
import time

import pytest

import sample_profiles as samples
from conftest import rest_long
from people import Tenant
from s3_stub import BucketServer, Handler, serve
from s3_stub import server as server  # the fixture
from test_database_hang import PendingRequest, assert_refused
from test_debuginfo import wait_built
from test_integrity import metric
from test_shares import share, wait_for
from test_symbol_names import C_SOURCE, Program, needs_compiler, responds, send_table
from test_uploads import large_pprof

pytestmark = pytest.mark.long

MIB = 1 << 20
PAGE = b"<html><body>Sign in to the network</body></html>"


class Spoiled(Handler):
    """Responds as Handler does, unless server.spoil(handler) responds itself and returns True."""

    def take(self):
        body, key, query = super().take()
        self.server.requests.append((self.command, key))
        return body, key, query

    def respond(self, status, body=b"", **fields):
        if not self.server.spoil(self):
            super().respond(status, body, **fields)

    def do_POST(self):
        """Handles multipart uploads, which the base class does not support."""
        body, key, query = self.take()
        if "uploads" in query:
            self.server.parts = {}
            return self.respond(
                200,
                b"<InitiateMultipartUploadResult><UploadId>u</UploadId>"
                b"</InitiateMultipartUploadResult>",
            )
        if "uploadId" in query:
            self.server.objects[key] = b"".join(
                part for _, part in sorted(self.server.parts.items())
            )
            return self.respond(
                200, b"<CompleteMultipartUploadResult></CompleteMultipartUploadResult>"
            )
        return self.fail(501, "NotImplemented")

    def do_PUT(self):
        number = re.search(r"partNumber=(\d+)", self.path)
        if not number:
            return super().do_PUT()
        self.server.parts[int(number[1])] = self.take()[0]
        return self.respond(200, ETag='"part"')


class SpoiledServer(BucketServer):
    prefix = "spoiled"

    def __init__(self):
        self.requests = []
        self.stops_trickling = threading.Event()
        self.spoil = lambda handler: False
        super().__init__(handler=Spoiled)

    def recover(self):
        super().recover()
        self.spoil = lambda handler: False
        self.stops_trickling.set()

    @contextlib.contextmanager
    def spoiled(self, spoil):
        self.spoil = spoil
        try:
            yield
        finally:
            self.spoil = lambda handler: False


@pytest.fixture
def bucket():
    yield from serve(SpoiledServer())


def page_for(*methods, status=200, key="", query=None):
    """Returns a function that responds with a page to the selected requests for objects."""

    def spoil(handler):
        path, _, parameters = handler.path.partition("?")
        name = path.partition("/bucket/")[2]
        if (
            handler.command not in methods
            or not name
            or key not in name
            or (query is not None and query not in parameters)
        ):
            return False
        handler.send_response(status)
        handler.send_header("Content-Type", "text/html")
        handler.send_header("Content-Length", str(len(PAGE)))
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(PAGE)
        return True

    return spoil


def assert_unavailable(response):
    assert response.status == 503 and int(response.headers["retry-after"]) > 0, response
    return response


def test_an_object_is_stored_only_if_s3_confirms_it(server, bucket):
    api = server.api()
    assert api.post("/api/v1/shares", samples.FOLDED).status == 201
    upload = api.post("/api/v1/uploads", json={"size": 100}).json()["id"]
    with bucket.spoiled(page_for("PUT")):
        assert_unavailable(api.post("/api/v1/shares", samples.FOLDED))
        assert_unavailable(api.post("/ingest", samples.FOLDED, query={"name": "app"}))
        assert_unavailable(api.put(f"/api/v1/uploads/{upload}/parts/0", b"x" * 100))
        assert api.get(f"/api/v1/uploads/{upload}").json()["parts_received"] == []
    assert "has no ETag" in server.log()
    assert api.post("/ingest", samples.FOLDED, query={"name": "app"}).status == 200


def test_a_page_is_neither_read_as_an_object_nor_counted_as_damage(server, bucket):
    api = server.api()
    share = api.post("/api/v1/shares", samples.FOLDED).json()["id"]
    body = large_pprof(5 * MIB)
    upload = api.post("/api/v1/uploads", json={"size": len(body)}).json()["id"]
    for number in range(2):
        assert (
            api.put(
                f"/api/v1/uploads/{upload}/parts/{number}",
                body[number * 4 * MIB : (number + 1) * 4 * MIB],
            ).status
            == 204
        )
    with bucket.spoiled(page_for("GET", key="spoiled/share/")):
        assert_unavailable(api.get(f"/api/v1/shares/{share}/raw"))
    with bucket.spoiled(page_for("GET", key="spoiled/part/")):
        assert_unavailable(api.post(f"/api/v1/uploads/{upload}/complete"))
    assert metric(api, "perfolio_objects_damaged_total", kind="share") == 0
    assert api.get(f"/api/v1/shares/{share}/raw").body == samples.FOLDED
    assert api.get(f"/api/v1/uploads/{upload}").json()["parts_received"] == [
        0,
        1,
    ], "the page must not cause the deletion of a part"
    assert api.post(f"/api/v1/uploads/{upload}/complete").status == 201


@pytest.mark.long
@pytest.mark.parametrize(
    "body",
    rest_long(
        [
            PAGE,
            b"<Error><Code>InternalError</Code></Error>",
            b"<Error><CompleteMultipartUploadResult/></Error>",
            b"<CompleteMultipartUploadResult>",
            b"",
        ],
        2,
    ),
)
def test_parts_are_joined_only_if_s3_confirms_it(server, bucket, body):
    api = server.api()
    data = large_pprof(12 * MIB)
    upload = api.post("/api/v1/uploads", json={"size": len(data)}).json()["id"]
    for number in range(3):
        assert (
            api.put(
                f"/api/v1/uploads/{upload}/parts/{number}",
                data[number * 4 * MIB : (number + 1) * 4 * MIB],
            ).status
            == 204
        )

    def spoil(handler):
        if handler.command != "POST" or "uploadId" not in handler.path:
            return False
        handler.send_response(200)
        handler.send_header("ETag", '"x"')
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)
        return True

    with bucket.spoiled(spoil):
        assert_unavailable(api.post(f"/api/v1/uploads/{upload}/complete"))
    assert api.post(f"/api/v1/uploads/{upload}/complete").status == 201


def test_an_object_is_deleted_only_if_s3_confirms_it(server, bucket):
    api = server.api()
    share = api.post("/api/v1/shares", samples.FOLDED).json()["id"]
    with bucket.spoiled(page_for("DELETE")):
        assert api.delete(f"/api/v1/shares/{share}").status == 204
        wait_for(lambda: ("DELETE", f"spoiled/share/{share}") in bucket.requests)
        wait_for(lambda: "to a deletion is not of an S3 server" in server.log())
    wait_for(lambda: f"spoiled/share/{share}" not in bucket.objects, 120)


def trickle(part, *methods):
    """Returns a function that sends one byte per second, from the first byte of the header or of
    the body."""

    def spoil(handler):
        if handler.command not in methods:
            return False
        body = b"x" * 5000
        head = b'HTTP/1.1 200 OK\r\nETag: "x"\r\nContent-Length: 5000\r\n\r\n'
        data = head + body if part == "header" else body
        if part == "body":
            handler.wfile.write(head)
        for at in range(len(data)):
            if handler.server.stops_trickling.wait(1):
                handler.close_connection = True
                return True
            handler.wfile.write(data[at : at + 1])
        return True

    return spoil


@pytest.mark.long
@pytest.mark.parametrize("part", ["header", "body"])
@pytest.mark.parametrize(
    "methods", [["PUT"], ["GET", "PUT", "POST", "HEAD", "DELETE"]], ids=["PUT", "all"]
)
def test_a_trickling_s3_response_does_not_block_requests(server, bucket, part, methods):
    api = server.api()
    share = api.post("/api/v1/shares", samples.FOLDED).json()["id"]
    upload = api.post("/api/v1/uploads", json={"size": 100}).json()["id"]
    kinds = [
        ("POST", "/ingest", {"body": samples.FOLDED, "query": {"name": "app"}}),
        ("POST", "/api/v1/shares", {"body": samples.FOLDED}),
        ("PUT", f"/api/v1/uploads/{upload}/parts/0", {"body": b"x" * 100}),
    ]
    if "GET" in methods:
        kinds.append(("GET", f"/p/{share}/raw", {}))
    with bucket.spoiled(trickle(part, *methods)):
        requests = [
            PendingRequest(path, server.api(), method, path, **options)
            for method, path, options in kinds
        ]
        for request in requests:
            request.join()
    for request in requests:
        assert_refused(request)
    bucket.stops_trickling.set()
    wait_for(lambda: api.post("/ingest", samples.FOLDED, query={"name": "app"}).status == 200, 60)
    assert api.get(f"/p/{share}/raw").body == samples.FOLDED


def fail_with(status, code, *methods):
    """Returns a function that responds with an XML error of S3, or with a page if code is empty."""

    def spoil(handler):
        if handler.command not in methods:
            return False
        body = (
            (
                f"<Error><Code>{code}</Code><Message>no {code} for spoiled/share in "
                f"bucket</Message>"
                f"<BucketName>bucket</BucketName></Error>"
            ).encode()
            if code
            else PAGE
        )
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(body)
        return True

    return spoil


def is_ready(server):
    return server.anonymous().get("/readyz").status == 200


ALL = ["GET", "PUT", "POST", "DELETE", "HEAD"]


@pytest.mark.long
@pytest.mark.parametrize(
    "status, code, methods",
    rest_long(
        [
            (500, "InternalError", ALL),
            (403, "AccessDenied", ALL),
            (403, "InvalidAccessKeyId", ALL),
            (403, "", ALL),
            (404, "NoSuchBucket", ALL),
            (404, "NoSuchKey", ALL),
            (404, "", ALL),
            (403, "AccessDenied", ["PUT", "POST"]),
            (404, "NoSuchKey", ["PUT", "POST"]),
        ],
        3,
    ),
)
def test_a_server_without_its_bucket_is_not_ready_and_hides_the_details(
    server, bucket, status, code, methods
):
    anonymous = server.anonymous()
    wait_for(lambda: is_ready(server))
    share = anonymous.post(
        "/api/v1/shares", samples.FOLDED, query={"visibility": "unlisted"}
    ).json()["id"]
    secrets = [
        f"127.0.0.1:{bucket.server_port}",
        str(bucket.server_port),
        "spoiled",
        "bucket",
        "share/",
    ]
    with bucket.spoiled(fail_with(status, code, *methods)):
        requests = [
            PendingRequest(
                "share", server.anonymous(), "POST", "/api/v1/shares", body=samples.FOLDED
            ),
            PendingRequest(
                "ingest",
                server.api(),
                "POST",
                "/ingest",
                body=samples.FOLDED,
                query={"name": "app"},
            ),
        ]
        if "GET" in methods:
            requests.append(
                PendingRequest("raw", server.anonymous(), "GET", f"/api/v1/shares/{share}/raw")
            )
        for request in requests:
            request.join()
            is_unavailable = (
                request.kind == "raw" and code == "NoSuchKey"
            )  # the object may still exist: the client may retry
            assert request.response.status in (
                (503,) if is_unavailable else (500, 503)
            ), request.response
            for secret in secrets:
                assert secret not in request.response.text.replace(f"/api/v1/shares/{share}", ""), (
                    secret,
                    request.response.text,
                )
            if status == 403:
                assert (
                    "the object store refused the credentials" in request.response.text
                ), request.response.text
        wait_for(lambda: not is_ready(server), 60)
        ready = anonymous.get("/readyz")
        assert ready.status == 503 and "the object store" in ready.json()["detail"], ready
        assert not any(secret in ready.text for secret in secrets), ready.text
        if status == 403:
            assert "refused the credentials" in ready.text
    assert (
        f"bucket of 127.0.0.1:{bucket.server_port}" in server.log()
    ), "the log must contain the details"
    wait_for(lambda: is_ready(server))
    assert anonymous.get(f"/api/v1/shares/{share}/raw").body == samples.FOLDED


@pytest.mark.long
def test_readyz_rarely_queries_the_bucket_and_does_not_wait_for_it(server, bucket):
    wait_for(lambda: is_ready(server))

    def count_checks():
        return sum(1 for _, key in bucket.requests if "database-id" in key)

    before, begin = count_checks(), time.monotonic()
    for _ in range(50):
        assert is_ready(server)
    sent = count_checks() - before
    assert sent <= 2 + (time.monotonic() - begin) / 3, bucket.requests  # OBJECT_READINESS_S
    stop = threading.Event()

    def wait(handler):
        if "database-id" in handler.path:
            stop.wait()
        return False

    with bucket.spoiled(wait):
        try:
            wait_for(lambda: not is_ready(server), 60)
            assert not is_ready(server)
        finally:
            stop.set()
    wait_for(lambda: is_ready(server))


def endless(length, *methods):
    """Returns a function that sends an endless body: with a Content-Length of 1 PiB, or chunked
    without an end."""

    def spoil(handler):
        if handler.command not in methods:
            return False
        handler.send_response(200)
        handler.send_header("ETag", '"x"')
        handler.send_header(
            *(("Content-Length", str(length)) if length else ("Transfer-Encoding", "chunked"))
        )
        handler.end_headers()
        piece = b"\0" * 65536
        handler.close_connection = True
        with contextlib.suppress(OSError):
            while not handler.server.stops_trickling.is_set():
                handler.wfile.write(piece if length else b"10000\r\n" + piece + b"\r\n")
        return True

    return spoil


@pytest.mark.parametrize("length", [1 << 50, None], ids=["length", "chunked"])
def test_an_endless_response_of_s3_is_not_reported_as_a_client_error(server, bucket, length):
    api = server.api()
    share = api.post("/api/v1/shares", samples.FOLDED).json()["id"]
    upload = api.post("/api/v1/uploads", json={"size": 100}).json()["id"]
    large = large_pprof(12 * MIB)
    joined = api.post("/api/v1/uploads", json={"size": len(large)}).json()["id"]
    for number in range(3):
        assert (
            api.put(
                f"/api/v1/uploads/{joined}/parts/{number}",
                large[number * 4 * MIB : (number + 1) * 4 * MIB],
            ).status
            == 204
        )
    kinds = [
        ("POST", "/ingest", {"body": samples.FOLDED, "query": {"name": "app"}}),
        ("POST", "/api/v1/shares", {"body": samples.FOLDED}),
        ("PUT", f"/api/v1/uploads/{upload}/parts/0", {"body": b"x" * 100}),
        ("POST", f"/api/v1/uploads/{joined}/complete", {}),
        ("GET", f"/p/{share}/raw", {}),
    ]
    with bucket.spoiled(endless(length, "PUT", "POST", "GET")):
        requests = [
            PendingRequest(path, server.api(), method, path, **options)
            for method, path, options in kinds
        ]
        for request in requests:
            request.join()
    for request in requests:
        assert_refused(request)
    wait_for(lambda: api.post("/ingest", samples.FOLDED, query={"name": "app"}).status == 200, 60)
    assert api.get(f"/p/{share}/raw").body == samples.FOLDED
    assert metric(api, "perfolio_objects_damaged_total", kind="share") == 0
    assert api.post(f"/api/v1/uploads/{joined}/complete").status == 201


def test_joined_parts_that_s3_loses_are_not_reported_as_a_client_error(server, bucket):
    api = server.api()
    data = large_pprof(5 * MIB)
    upload = api.post("/api/v1/uploads", json={"size": len(data)}).json()["id"]
    for number in range(2):
        assert (
            api.put(
                f"/api/v1/uploads/{upload}/parts/{number}",
                data[number * 4 * MIB : (number + 1) * 4 * MIB],
            ).status
            == 204
        )

    def lose(handler):
        return (
            handler.command == "GET"
            and "spoiled/share/" in handler.path
            and fail_with(404, "NoSuchKey", "GET")(handler)
        )

    with bucket.spoiled(lose):
        assert_unavailable(api.post(f"/api/v1/uploads/{upload}/complete"))
    assert api.post(f"/api/v1/uploads/{upload}/complete").status == 201


def test_no_object_is_counted_as_lost_while_the_bucket_is_missing(server, bucket):
    """S3 returns 404 for each object of a missing bucket. That does not mean that the objects are
    lost, and the scrub reads them later."""
    api, anonymous = server.api(), server.anonymous()
    wait_for(lambda: is_ready(server))
    share = anonymous.post(
        "/api/v1/shares", samples.FOLDED, query={"visibility": "unlisted"}
    ).json()["id"]
    assert api.post("/ingest", samples.FOLDED, query={"name": "app"}).status == 200
    with bucket.spoiled(fail_with(404, "NoSuchKey", *ALL)):
        response = anonymous.get(f"/api/v1/shares/{share}/raw")
        assert response.status == 503 and int(response.headers["retry-after"]) > 0, response
        assert api.post("/api/v1/admin/scrub/start").status == 200
        wait_for(
            lambda: any("job=scrub code=busy" in line for line in server.log().splitlines()), 60
        )
        state = api.get("/api/v1/admin/scrub").json()
        assert state["problems"] == [], state
        lost = [
            line
            for line in anonymous.get("/metrics").text.splitlines()
            if line.startswith("perfolio_objects_lost_total")
        ]
        assert all(line.endswith(" 0") for line in lost), lost
    wait_for(lambda: is_ready(server))
    assert anonymous.get(f"/api/v1/shares/{share}/raw").body == samples.FOLDED
    wait_for(lambda: api.get("/api/v1/admin/scrub").json()["last_pass"], 90)
    assert api.get("/api/v1/admin/scrub").json()["problems"] == []


@needs_compiler
def test_only_small_objects_are_copied_below_the_reserve_of_the_disk(server, bucket, tmp_path):
    api = Tenant(server).api("read", "share", "debuginfo")
    program = Program(tmp_path, "af" * 20, C_SOURCE)
    send_table(api, program.build_id, program.table)
    top = f"/api/v1/shares/{share(api, program.profile())['id']}/top"

    def count_copies():
        return sum(method == "GET" and "symbols/" in key for method, key in bucket.requests)

    # A part of a debug file is sent after the whole was read and compared, without a copy.
    file = f"/buildid/{program.build_id}/debuginfo"
    (tmp_path / "random").write_bytes(os.urandom(5 << 20))
    section = f"--add-section=.random={tmp_path / 'random'}"
    subprocess.run(["objcopy", section, program.elf], check=True)
    sent = api.post(f"/api/v1/debuginfo/{program.build_id}/debuginfo", program.elf.read_bytes())
    assert sent.status == 202, sent
    wait_built(api, program.build_id)
    large = b"".join(b"main;%s 1\n" % os.urandom(500).hex().encode() for _ in range(6000))
    large_top = f"/api/v1/shares/{share(api, large)['id']}/top"
    status = os.statvfs(server.data_dir)
    reserve = status.f_bavail * status.f_frsize * 3 // 2
    if reserve > 1 << 40:
        pytest.skip("--min-free-bytes is at most 1 TiB")
    server.arguments += ["--min-free-bytes", str(reserve)]
    server.stop()
    server.launch()  # it is not ready, since nothing can be stored
    api.close()
    wait_for(lambda: responds(api, "/healthz"))
    assert api.get(file, headers={"Range": "bytes=0-99"}).status == 206
    response = api.get(large_top)
    assert response.status == 503 and int(response.headers["retry-after"]) > 0, response
    before = count_copies()
    assert not api.get(top).json()["symbolization"]["complete"]
    assert count_copies() == before
    del server.arguments[-2:]
    server.restart()
    api.close()
    assert api.get(large_top).status == 200
    assert api.get(top).json()["symbolization"]["complete"]
    assert count_copies() == before + 1
    (key,) = (key for key in bucket.objects if "debuginfo/" in key)
    data = bucket.objects[key]
    for damaged in (data[:-1] + bytes([data[-1] ^ 1]), data + b"x", data[:-1]):
        bucket.objects[key] = damaged
        server.restart()  # it remembers what it verified
        api.close()
        response = api.get(file, headers={"Range": "bytes=0-99"})
        assert response.status == 500 and "damaged" in response.text, response
