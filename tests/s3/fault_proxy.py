"""An HTTP proxy in front of an S3 server that lets selected requests fail.

A fault is None, "reset" or "hang" (no response), a name in CANNED (a response in place of the
server's), or one of those in Handler.forward, which damage the request or the server's response:

    damage        the last byte of the request's body is changed
    reset-after   the server handles the request, then the connection is reset
    cut           half of the body, then the end of the connection; cut-chunks: a chunked body;
                  cut-unknown: a body without a length
    stall         half of the body, then nothing
    other-range   a Content-Range that was not requested
    whole         status 200 with what the server sent, as if it ignored the range
"""

import http.client
import socket
import socketserver
import ssl
import struct
import threading

ERROR = '<?xml version="1.0"?><Error><Code>{}</Code><Message>by the test</Message>{}</Error>'
CANNED = {  # name: (status, code, rest of the body, header fields)
    "500": (500, "InternalError", "", {}),
    "502": (502, "", "", {}),
    "503": (503, "SlowDown", "", {}),
    "503-later": (503, "SlowDown", "", {"Retry-After": "1"}),
    "429": (429, "", "", {}),
    "timeout-400": (400, "RequestTimeout", "", {}),
    "404-page": (404, "", "", {}),
    "skew": (403, "RequestTimeTooSkewed", "", {"Date": "Tue, 01 Jan 2030 00:00:00 GMT"}),
    "region": (400, "AuthorizationHeaderMalformed", "<Region>eu-test-7</Region>", {}),
    "redirect": (301, "PermanentRedirect", "", {"x-amz-bucket-region": "eu-test-8"}),
    "denied": (403, "AccessDenied", "", {}),
    "token": (400, "ExpiredToken", "", {}),
    "200-error": (200, "InternalError", "", {}),
    "501": (501, "NotImplemented", "", {}),
}


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        self.server.connections += 1
        try:
            while self.one_request():
                pass
        except (OSError, http.client.HTTPException):
            pass

    def one_request(self):
        line = self.rfile.readline(65536).decode("latin-1")
        if not line:
            return False
        method, target, _ = line.split()
        fields = http.client.parse_headers(self.rfile)
        body = self.rfile.read(int(fields.get("Content-Length", 0)))
        fault = self.server.next_fault(method, target)
        if fault == "reset":
            return self.reset()
        if fault == "hang":
            self.connection.settimeout(30)
            self.rfile.read(1)  # waits until the client closes the connection
            return False
        if fault in CANNED:
            status, code, more, extra = CANNED[fault]
            text = ERROR.format(code, more).encode() if code else b"<html>a proxy</html>"
            self.response(status, {"Content-Type": "application/xml", **extra}, text)
            return True
        return self.forward(method, target, fields, body, fault)

    def forward(self, method, target, fields, body, fault):
        backend = http.client.HTTPConnection(*self.server.backend, timeout=60)
        backend.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
        for name, value in fields.items():
            backend.putheader(name, value)
        if fault == "damage":
            body = body[:-1] + bytes([body[-1] ^ 1])
        backend.endheaders(body)
        reply = backend.getresponse()
        data = reply.read()
        headers = {
            name: value
            for name, value in reply.getheaders()
            if name.lower() not in ("content-length", "transfer-encoding", "connection")
        }
        length = reply.getheader("Content-Length") if method == "HEAD" else len(data)
        backend.close()
        if fault == "reset-after":
            return self.reset()
        if fault == "cut":
            self.head(reply.status, {**headers, "Content-Length": length})
            self.wfile.write(data[: len(data) // 2])
            return False
        if fault == "cut-chunks":
            self.head(reply.status, {**headers, "Transfer-Encoding": "chunked"})
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data) // 2 + 1, data[: len(data) // 2 + 1]))
            return False
        if fault == "cut-unknown":  # no length: the end of the connection ends the body
            self.head(reply.status, {**headers, "Connection": "close"})
            self.wfile.write(data[: len(data) // 2])
            return False
        if fault == "stall":
            self.head(reply.status, {**headers, "Content-Length": length})
            self.wfile.write(data[: len(data) // 2])
            self.wfile.flush()
            self.connection.settimeout(30)
            self.rfile.read(1)
            return False
        if fault == "other-range" and "Content-Range" in headers:
            headers["Content-Range"] = "bytes 0-0/1"
        if fault == "whole":  # as if the server ignored the range
            headers.pop("Content-Range", None)
            self.response(200, headers, data)
            return True
        self.head(reply.status, {**headers, "Content-Length": length})
        self.wfile.write(data)
        return True

    def head(self, status, headers):
        lines = [f"HTTP/1.1 {status} {http.client.responses.get(status, 'x')}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self.wfile.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))

    def response(self, status, headers, data):
        self.head(status, {**headers, "Content-Length": len(data)})
        self.wfile.write(data)

    def reset(self):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        return False


class FaultProxy(socketserver.ThreadingTCPServer):
    """plan() sets faults; seen records requests as "METHOD target"."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, backend, certificate=None):
        super().__init__(("127.0.0.1", 0), Handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.socket = context.wrap_socket(
                self.socket, server_side=True, do_handshake_on_connect=False
            )
        self.backend = backend
        self.connections = 0
        self.seen = []
        self.lock = threading.Condition()
        self.faults, self.later_fault, self.matching = [], None, ""
        self.port = self.server_address[1]
        self.endpoint = f"http{'s' if certificate else ''}://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.serve_forever, args=(0.05,))
        self.thread.start()

    def plan(self, *faults, later_fault=None, matching=""):
        """Each of the next len(faults) requests whose "METHOD target" contains matching gets one of
        the faults, in this order; all later ones get later_fault."""
        with self.lock:
            self.faults, self.later_fault, self.matching = list(faults), later_fault, matching
            self.seen = []

    def next_fault(self, method, target):
        with self.lock:
            request = f"{method} {target}"
            self.seen.append(request)
            self.lock.notify_all()
            if self.matching not in request:
                return None
            return self.faults.pop(0) if self.faults else self.later_fault

    def has_seen(self, text):
        return any(text in request for request in self.seen)

    def wait_for(self, text):
        """Waits for a request that contains text."""
        with self.lock:
            assert self.lock.wait_for(lambda: self.has_seen(text), 60)

    def handle_error(self, request, client_address):
        pass

    def stop(self):
        self.shutdown()
        self.thread.join()
        self.server_close()
