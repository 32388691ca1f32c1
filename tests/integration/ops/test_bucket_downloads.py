"""Downloads of objects in a bucket: pieces are read as the client takes them, so that a download
holds no worker, and no copy of the object is on the disk.
"""

import os
import socket
import threading

import pytest

import people
import sample_profiles as samples
from s3_stub import BucketServer, Handler, serve
from s3_stub import server as server  # the fixture
from test_shares import wait_for

CHUNK = 256 << 10  # HTTP_CHUNK_BYTES
LARGE = b"".join(b"main;f%d;g%d 1\n" % (i % 5000, i) for i in range(80_000))


class CountingHandler(Handler):
    """Counts the bytes of objects that leave the bucket, and does not respond for some of them."""

    def do_GET(self):
        if any(key in self.path for key in self.server.hung):
            self.server.waiting.append(self.path)
            self.server.hung_respond.wait()
        super().do_GET()

    def respond(self, status, body=b"", **fields):
        if self.command == "GET" and status in (200, 206):
            self.server.sent.append(len(body))
        super().respond(status, body, **fields)


@pytest.fixture
def bucket():
    bucket = BucketServer(handler=CountingHandler)
    bucket.sent = []
    bucket.hung = set()  # keys
    bucket.waiting = []  # requests for them
    bucket.hung_respond = threading.Event()
    yield from serve(bucket)


def copies(server):
    """Open files of the server in its folder of copies."""
    found = []
    folder = f"/proc/{server.child_pid()}/fd"
    for name in os.listdir(folder):
        try:
            target = os.readlink(f"{folder}/{name}")
        except OSError:
            continue
        if "perfolio-object-" in target:
            found.append(target)
    return found


def test_a_download_reads_pieces_of_the_object(server, bucket):
    api = server.api()
    assert len(LARGE) > 4 * CHUNK
    share = api.post("/api/v1/shares", LARGE).json()["id"]
    bucket.sent.clear()
    response = api.get(f"/p/{share}/raw")
    assert response.status == 200 and response.body == LARGE
    assert len(LARGE) <= sum(bucket.sent) <= len(LARGE) + 4
    assert max(bucket.sent) <= CHUNK


def test_a_head_request_reads_four_bytes(server, bucket):
    api = server.api()
    share = api.post("/api/v1/shares", LARGE).json()["id"]
    bucket.sent.clear()
    response = api.request("HEAD", f"/p/{share}/raw")
    assert response.status == 200 and int(response.headers["content-length"]) == len(LARGE)
    assert sum(bucket.sent) == 4


@pytest.mark.long
def test_readers_that_stop_hold_no_copies_and_no_workers(server, bucket):
    api = server.api()
    share = api.post("/api/v1/shares", LARGE).json()["id"]
    small = api.post("/api/v1/shares", samples.FOLDED).json()["id"]
    bucket.sent.clear()
    readers = []
    for _ in range(40):
        raw = socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.bind(("127.0.0.5", 0))
        raw.connect(("127.0.0.1", server.port))
        wire = server.trust().wrap_socket(raw, server_hostname="localhost")
        wire.sendall(f"GET /p/{share}/raw HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        readers.append(wire)
    wait_for(lambda: sum(bucket.sent) >= 40 * CHUNK)
    assert copies(server) == []
    assert api.get(f"/p/{small}/raw").body == samples.FOLDED
    for wire in readers:
        wire.close()


@pytest.mark.long
def test_a_slow_bucket_is_read_by_others_too(server, bucket):
    """Downloads of one address wait for the bucket, or are refused if many of them wait; a request
    that does not need it is served."""
    api = server.api()
    share = api.post("/api/v1/shares", LARGE).json()["id"]
    should_stop = threading.Event()
    statuses = []

    def download():
        client = server.anonymous()
        people.come_from(client, "127.0.0.5")
        while not should_stop.is_set():
            statuses.append(client.request("HEAD", f"/p/{share}/raw").status)
        client.close()

    bucket.delay = 0.02
    threads = [threading.Thread(target=download) for _ in range(30)]
    for thread in threads:
        thread.start()
    try:
        wait_for(lambda: len(statuses) > 60)
        for _ in range(20):
            assert api.get("/api/v1/shares").status == 200
    finally:
        should_stop.set()
        bucket.delay = 0
        for thread in threads:
            thread.join()
    assert 200 in statuses and set(statuses) <= {200, 429, 503}, set(statuses)


@pytest.mark.long
def test_objects_that_hang_delay_only_downloads(server, bucket):
    """Sixty clients download three shares whose objects the bucket does not send. Pages, lists and
    reports of another share respond before the first of the downloads has failed.
    """
    api = server.api()
    bodies = [LARGE + b"hang%d 1\n" % i for i in range(3)]
    shares = [api.post("/api/v1/shares", body).json()["id"] for body in bodies]
    small = api.post("/api/v1/shares", samples.FOLDED).json()["id"]
    bucket.hung = {key for key, body in bucket.objects.items() if body in bodies}
    assert len(bucket.hung) == 3
    statuses = []

    def download(number):
        client = server.anonymous()
        people.come_from(client, f"127.0.0.{5 + number % 6}")
        statuses.append(client.get(f"/p/{shares[number // 20]}/raw").status)
        client.close()

    threads = [threading.Thread(target=download, args=(number,)) for number in range(60)]
    for thread in threads:
        thread.start()
    try:
        wait_for(lambda: len(bucket.waiting) >= 12)  # a quarter of 16 threads for each of 3 shares
        for _ in range(10):
            assert api.get("/api/v1/shares").status == 200
            assert api.get(f"/p/{small}").status == 200
            assert api.get(f"/api/v1/shares/{small}/top").status == 200
        assert all(status == 503 for status in statuses), statuses  # refused, not failed
        assert len(statuses) < 60 - 12
    finally:
        bucket.hung_respond.set()
        for thread in threads:
            thread.join()
    assert set(statuses) <= {200, 429, 503}, set(statuses)


def test_a_lost_and_a_truncated_object_are_reported(server, bucket):
    api = server.api()
    share = api.post("/api/v1/shares", LARGE).json()["id"]
    key = next(key for key, body in bucket.objects.items() if body == LARGE)
    bucket.objects[key] = LARGE[: 2 * CHUNK]
    with pytest.raises(Exception):  # the body is shorter than announced
        api.get(f"/p/{share}/raw")
    api.close()
    bucket.objects[key] = LARGE[:2]
    assert api.get(f"/p/{share}/raw").status == 500
    del bucket.objects[key]
    lost = api.get(f"/p/{share}/raw")
    assert lost.status == 500 and lost.json()["type"].endswith("/lost"), lost
    assert api.request("HEAD", f"/p/{share}/raw").status == 500
