"""A debuginfod server that behaves as a hostile or broken one, selected by the first path segment.

URLs have the form http://127.0.0.1:PORT/<behaviour>/buildid/…; Stub.seen lists (path, headers) of
each request.
"""

import gzip
import io
import socketserver
import ssl
import threading
import time

ELF = b"\177ELF" + bytes(range(256)) * 40
DRIP_SECONDS = 0.2
BOMB_BYTES = 64 << 20


def head(status, *fields):
    lines = [f"HTTP/1.1 {status}", *fields, "Connection: close"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def bomb():
    """Returns a small gzip file that expands to BOMB_BYTES of zeros."""
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=9) as file:
        file.write(b"\177ELF")
        for _ in range(BOMB_BYTES >> 22):
            file.write(bytes(1 << 22))
    return packed.getvalue()


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        try:
            self.response()
        except (OSError, ssl.SSLError):
            pass  # the client closed the connection

    def response(self):
        line = self.rfile.readline().decode().split()
        fields = {}
        while field := self.rfile.readline().decode().strip():
            name, _, value = field.partition(":")
            fields[name.lower()] = value.strip()
        path = line[1]
        stub = self.server.stub
        with stub.lock:
            stub.seen.append((path, fields))
            attempt = sum(1 for seen, _ in stub.seen if seen == path)
        behaviour = path.split("/")[1]
        getattr(self, behaviour, self.missing)(attempt, path)

    def send(self, data):
        self.wfile.write(data)

    def missing(self, attempt, path):
        self.send(head("404 Not Found", "Content-Length: 9") + b"not found")

    def good(self, attempt, path):
        self.send(
            head("200 OK", f"Content-Length: {len(ELF)}", f"X-DEBUGINFOD-SIZE: {len(ELF)}") + ELF
        )

    def content(self, attempt, path):
        """Sends stub.content, a real program set by the test."""
        body = self.server.stub.content
        self.send(
            head("200 OK", f"Content-Length: {len(body)}", f"X-DEBUGINFOD-SIZE: {len(body)}") + body
        )

    def by_id(self, attempt, path):
        """Sends the debug file of stub.files with the build id of the path; needs a moment to find
        that it has none."""
        _, _, build_id, kind = path.strip("/").split("/")
        body = self.server.stub.files.get(build_id) if kind == "debuginfo" else None
        if body is None:
            time.sleep(0.05)
            return self.missing(attempt, path)
        return self.send(head("200 OK", f"Content-Length: {len(body)}") + body)

    def held(self, attempt, path):
        """Sends a part of stub.content, and the rest once the test sets stub.go."""
        body = self.server.stub.content
        self.send(head("200 OK", f"Content-Length: {len(body)}") + body[:1000])
        self.server.stub.go.wait(60)
        self.send(body[1000:])

    def slow_good(self, attempt, path):
        time.sleep(0.5)
        self.good(attempt, path)

    def compressed(self, attempt, path):
        packed = gzip.compress(ELF)
        self.send(
            head(
                "200 OK",
                "Content-Encoding: gzip",
                "Transfer-Encoding: chunked",
                f"X-DEBUGINFOD-SIZE: {len(ELF)}",
            )
            + b"%x\r\n%s\r\n0\r\n\r\n" % (len(packed), packed)
        )

    def bomb(self, attempt, path):
        self.send(head("200 OK", "Content-Encoding: gzip") + self.server.stub.bomb)

    def lying_bomb(self, attempt, path):
        self.send(
            head("200 OK", "Content-Encoding: gzip", "X-DEBUGINFOD-SIZE: 1000")
            + self.server.stub.bomb
        )

    def compressed_30_times(self, attempt, path):
        """Each layer of compression is announced in Content-Encoding."""
        packed = ELF
        for _ in range(30):
            packed = gzip.compress(packed)
        self.send(head("200 OK", "Content-Encoding: " + ", ".join(["gzip"] * 30)) + packed)

    def drip(self, attempt, path):
        self.send(head("200 OK", f"Content-Length: {len(ELF)}"))
        for byte in ELF:
            self.send(bytes([byte]))
            time.sleep(DRIP_SECONDS)

    def drip_header(self, attempt, path):
        for byte in head("200 OK", "X-A: " + "a" * 10000):
            self.send(bytes([byte]))
            time.sleep(DRIP_SECONDS)

    def silent(self, attempt, path):
        self.server.stub.over.wait(30)

    def endless_header(self, attempt, path):
        self.send(b"HTTP/1.1 200 OK\r\n")
        while True:
            self.send(b"X-More: " + b"m" * 1000 + b"\r\n")

    def one_endless_line(self, attempt, path):
        self.send(b"HTTP/1.1 200 OK\r\nX-More: ")
        while True:
            self.send(b"m" * 65536)

    def endless_interim(self, attempt, path):
        while True:
            self.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 100)

    def endless_body(self, attempt, path):
        self.send(head("200 OK") + b"\177ELF")
        while True:
            self.send(bytes(65536))

    def endless_error(self, attempt, path):
        self.send(head("404 Not Found"))
        while True:
            self.send(bytes(65536))

    def announces_much(self, attempt, path):
        self.send(head("200 OK", f"X-DEBUGINFOD-SIZE: {1 << 60}") + ELF)

    def announces_little(self, attempt, path):
        self.send(head("200 OK", "X-DEBUGINFOD-SIZE: 100") + ELF)

    def announces_more(self, attempt, path):
        self.send(head("200 OK", f"X-DEBUGINFOD-SIZE: {len(ELF) + 1}") + ELF)

    def truncated(self, attempt, path):
        self.send(head("200 OK", f"Content-Length: {len(ELF)}") + ELF[:-100])

    def broken_chunks(self, attempt, path):
        self.send(head("200 OK", "Transfer-Encoding: chunked") + b"fffffffffffffffff\r\n" + ELF)

    def not_elf(self, attempt, path):
        self.send(head("200 OK", "Content-Length: 6") + b"<html>")

    def not_http(self, attempt, path):
        self.send(b"\x00\x01\x02SSH-2.0-nothing\r\n\r\n")

    def failing(self, attempt, path):
        self.send(head("503 Service Unavailable", "Content-Length: 0"))

    def later(self, attempt, path):
        self.send(head("503 Service Unavailable", "Content-Length: 0", "Retry-After: 7200"))

    def too_many(self, attempt, path):
        self.send(head("429 Too Many Requests", "Content-Length: 0", "Retry-After: 120"))

    def flaky(self, attempt, path):
        if attempt < 3:
            self.failing(attempt, path)
        else:
            self.good(attempt, path)

    def closed(self, attempt, path):
        self.send(head("403 Forbidden", "Content-Length: 0", "Set-Cookie: a=b"))

    def redirect_to(self, target):
        self.send(
            head("302 Found", f"Location: {target}", "Set-Cookie: tracked=1", "Content-Length: 0")
        )

    def redirect_with_path(self, attempt, path):
        """To stub.target and the rest of the path."""
        self.redirect_to(self.server.stub.target + path[len("/redirect_with_path") :])

    def redirect(self, attempt, path):
        self.redirect_to(self.server.stub.target)

    def redirect_loop(self, attempt, path):
        self.redirect_to(path)

    def three_redirects(self, attempt, path):
        self.redirect_to("/two_redirects" + path[len("/three_redirects") :])

    def two_redirects(self, attempt, path):
        self.redirect_to("/one_redirect" + path[len("/two_redirects") :])

    def one_redirect(self, attempt, path):
        self.redirect_to("/good" + path[len("/one_redirect") :])

    def four_redirects(self, attempt, path):
        self.redirect_to("/three_redirects" + path[len("/four_redirects") :])


class Listener(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        pass  # tests expect clients to close or refuse the connection


class Stub:
    """with Stub() as stub: stub.url("good") is the URL of a server that behaves as Handler.good.

    target: of redirects. content, files {build id: bytes}, bomb: what the behaviours of these names
    send. go: lets "held" continue. over: set at the end, lets "silent" end."""

    def __init__(self, host="127.0.0.1", certificate=None):
        self.host, self.seen, self.target = host, [], ""
        self.lock, self.over, self.bomb = threading.Lock(), threading.Event(), b""
        self.go = threading.Event()
        self.content = b""
        self.files = {}  # by build id
        self.listener = Listener((host, 0), Handler)
        self.listener.stub = self
        self.port = self.listener.server_address[1]
        self.scheme = "http"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.listener.socket = context.wrap_socket(self.listener.socket, server_side=True)
            self.scheme = "https"
        self.thread = threading.Thread(
            target=self.listener.serve_forever, args=(0.05,), daemon=True
        )

    def url(self, behaviour, host=None):
        return f"{self.scheme}://{host or self.host}:{self.port}/{behaviour}"

    def paths(self):
        with self.lock:
            return [path for path, _ in self.seen]

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.go.set()
        self.listener.shutdown()
        self.listener.server_close()
