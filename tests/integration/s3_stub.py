"""A small S3 server for tests: one bucket in memory that can hang, be slow or be unreachable. It
does not verify signatures.

A test file imports the fixture server and defines a fixture bucket: yield from
serve(BucketServer()).
"""

import contextlib
import http.server
import re
import socket
import threading
import time
import urllib.parse
from xml.sax.saxutils import escape

import pytest

import stored
from conftest import Server, copy_template, make_folder


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
        self.respond(
            status, f"<Error><Code>{code}</Code></Error>".encode(), Content_Type="application/xml"
        )

    def take(self):
        """Returns the body, the key and the query; waits while the server is set to hang."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.responds.wait()
        time.sleep(self.server.delay)
        path, _, query = self.path.partition("?")
        return (
            body,
            path.partition("/bucket")[2].lstrip("/"),
            urllib.parse.parse_qs(query, keep_blank_values=True),
        )

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
        return self.respond(
            206,
            body[first : last + 1],
            ETag='"x"',
            Content_Range=f"bytes {first}-{last}/{len(body)}",
        )

    do_HEAD = do_GET

    def list(self, query):
        prefix = query.get("prefix", [""])[0]
        if "uploads" in query:
            return self.respond(
                200,
                b"<ListMultipartUploadsResult><IsTruncated>false</IsTruncated>"
                b"</ListMultipartUploadsResult>",
            )
        found = "".join(
            f"<Contents><Key>{escape(key)}</Key>"
            "<LastModified>2020-01-01T00:00:00.000Z</LastModified>"
            f"<Size>{len(body)}</Size></Contents>"
            for key, body in sorted(self.server.objects.items())
            if key.startswith(prefix)
        )
        return self.respond(
            200,
            f"<ListBucketResult><IsTruncated>false</IsTruncated>{found}"
            "</ListBucketResult>".encode(),
            Content_Type="application/xml",
        )


class BucketServer(http.server.ThreadingHTTPServer):
    prefix = "hang"  # prefix of all object keys
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
        """Ignores clients that closed their connection, because the tests make clients give up."""

    def recover(self):
        self.responds.set()

    @contextlib.contextmanager
    def hanging(self):
        self.responds.clear()
        try:
            yield
        finally:
            self.responds.set()


def serve(bucket):
    yield bucket
    bucket.recover()
    bucket.shutdown()
    bucket.server_close()


@pytest.fixture
def server(bucket, cluster_template):
    """A Perfolio server that stores its objects in the bucket."""
    folder = make_folder()
    copy_template(cluster_template, folder / "data")
    environment = {
        "PERFOLIO_TEST_S3_" + name: value
        for name, value in {
            "BUCKET": "bucket",
            "REGION": "us-east-1",
            "ENDPOINT": f"http://127.0.0.1:{bucket.server_port}",
            "ACCESS_KEY": "key",
            "SECRET_KEY": "secret",
        }.items()
    }
    instance = Server(folder / "data", objects=stored.Bucket(bucket.prefix, environment)).start()
    yield instance
    bucket.recover()
    assert instance.stop() == 0, instance.log()[-4000:]
