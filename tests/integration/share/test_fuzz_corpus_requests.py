"""The inputs of the fuzzers sent to a running server: it stays up and returns 2xx or 4xx only.

Profiles are sent to POST /api/v1/shares, and every report of an accepted one is requested. Other
corpora become queries, JSON bodies and raw request lines.
"""

import os
import re
import socket
import ssl

import pytest

from conftest import ROOT

CORPUS = ROOT / "tests" / "fuzz" / "corpus"
PROFILE_FUZZERS = [
    "fuzz_pprof",
    "fuzz_folded",
    "fuzz_perf_script",
    "fuzz_cpuprofile",
    "fuzz_speedscope",
    "fuzz_compress",
    "fuzz_format",
]
ALLOWED = set(range(200, 300)) | set(range(400, 500))
# Statuses of requests that match no route: redirects, an unknown method or version (RFC 9110,
# 15.6.2 and 15.6.6).
ALLOWED_RAW = ALLOWED | {301, 302, 303, 304, 308, 501, 505}


def inputs(fuzzer):
    found = sorted((CORPUS / fuzzer).iterdir())
    assert found
    return [(path.name, path.read_bytes()) for path in found]


@pytest.fixture
def tenant(server):
    """A client of a tenant without a practical limit of uploads per minute."""
    operator = server.api()
    made = operator.post(
        "/api/v1/admin/tenants",
        json={"name": "fuzz", "uploads_per_minute": 100000, "max_bytes_stored": 1 << 30},
    )
    assert made.status == 201, made
    number = made.json()["id"]
    token = operator.post(
        f"/api/v1/admin/tenants/{number}/tokens",
        json={"name": "fuzz", "scopes": ["read", "share", "ingest"]},
    )
    assert token.status == 201, token
    before = server.child_pid()
    client = server.api(token.json()["token"])
    yield client
    client.close()
    assert server.anonymous().get("/readyz").status == 200
    assert server.child_pid() == before, "the server was started again"
    assert operator.delete(f"/api/v1/admin/tenants/{number}").status == 204
    operator.close()


def check(response, input_name):
    assert response.status in ALLOWED, f"{input_name}: {response}"
    if response.status >= 400:
        assert response.headers["content-type"].startswith("application/problem+json"), input_name
        assert response.json()["detail"], input_name
    return response


def read_everything(client, share_id, body, input_name):
    assert client.get(f"/p/{share_id}/raw").body == body, input_name
    assert client.get(f"/p/{share_id}.pb.gz").status == 200, input_name
    refused = None  # sums that exceed int64 are refused by every report
    for path in (
        f"/api/v1/shares/{share_id}/flame",
        f"/api/v1/shares/{share_id}/top?limit=0",
        f"/p/{share_id}.folded",
        f"/p/{share_id}.json",
        f"/p/{share_id}.svg",
        f"/p/{share_id}.png",
    ):
        response = client.get(path)
        is_refused = response.status == 413 and b"come to 2^63 - 1 or more" in response.body
        assert response.status == 200 or is_refused, f"{input_name}: {path}: {response}"
        assert refused in (None, is_refused), f"{input_name}: {path}"
        refused = is_refused


@pytest.mark.parametrize("fuzzer", PROFILE_FUZZERS)
def test_inputs_for_profile_parsers_are_accepted_or_refused(tenant, fuzzer):
    accepted = 0
    for name, body in inputs(fuzzer):
        response = check(tenant.post("/api/v1/shares", body), f"{fuzzer}/{name}")
        assert response.status != 429, response
        if response.status == 201:
            accepted += 1
            read_everything(tenant, response.json()["id"], body, f"{fuzzer}/{name}")
    assert accepted or fuzzer == "fuzz_compress"


def test_inputs_for_report_parameters_are_accepted_or_refused(tenant):
    body = (CORPUS / "fuzz_perf_script" / "seed-events").read_bytes()
    share_id = tenant.post("/api/v1/shares", body).json()["id"]
    names = ("sample_type", "group_by", "focus", "ignore", "hide", "show", "limit")
    for name, data in inputs("fuzz_flame_options"):
        lines = data.decode("latin-1").split("\n")
        query = {key: value for key, value in zip(names, lines) if value}
        for report in ("flame", "top"):
            fields = {
                key: value for key, value in query.items() if report == "top" or key != "limit"
            }
            check(tenant.get(f"/api/v1/shares/{share_id}/{report}", query=fields), name)
    for name, data in inputs("fuzz_regex"):
        pattern = data.split(b"\n")[0].decode("latin-1")
        check(tenant.get(f"/api/v1/shares/{share_id}/top", query={"focus": pattern}), name)


def test_inputs_for_json_parsers_are_accepted_or_refused(tenant):
    for fuzzer in ("fuzz_cpuprofile", "fuzz_speedscope", "fuzz_folded"):
        for name, body in inputs(fuzzer):
            for path in (
                "/api/v1/uploads",
                "/api/v1/session",
                "/api/v1/tokens",
                "/api/v1/merge",
                "/api/v1/invitations/accept",
            ):
                response = tenant.post(path, body, headers={"Content-Type": "application/json"})
                check(response, f"{path} {fuzzer}/{name}")


def check_ingest(response, input_name):
    """Returns whether the input was accepted. An error must have the format of the protocol."""
    assert response.status in ALLOWED, f"{input_name}: {response}"
    if response.status < 400:
        return True
    if response.headers["content-type"] == "application/json":
        assert response.json()["message"], input_name
    else:
        assert (
            response.headers["content-type"] == "application/x-protobuf" and len(response.body) > 4
        ), input_name
    return False


def post_otlp(tenant, name, data):
    is_json = data[:1] == b"{"
    kind = "application/json" if is_json else "application/x-protobuf"
    return check_ingest(
        tenant.post("/v1development/profiles", data, headers={"Content-Type": kind}), name
    )


def post_pyroscope(tenant, name, data):
    kinds = {b"p": "application/proto", b"j": "application/json"}
    if data[:1] in kinds:
        return check_ingest(
            tenant.post(
                "/push.v1.PusherService/Push", data[1:], headers={"Content-Type": kinds[data[:1]]}
            ),
            name,
        )
    query, kind, body = (data.split(b"\n", 2) + [b"", b""])[:3]
    query = re.sub(rb"[^!-~]", b"%20", query).decode()
    headers = {"Content-Type": re.sub(rb"[^ -~]", b"?", kind).decode().strip()}
    return check_ingest(tenant.post("/ingest?" + query, body, headers=headers), name)


@pytest.mark.long
def test_inputs_for_ingest_protocols_are_accepted_or_refused(tenant):
    for fuzzer, post in (("fuzz_otlp", post_otlp), ("fuzz_pyroscope", post_pyroscope)):
        accepted = [post(tenant, f"{fuzzer}/{name}", data) for name, data in inputs(fuzzer)]
        assert any(accepted), fuzzer
    for name, data in inputs("fuzz_multipart"):
        post_pyroscope(tenant, name, b"name=app\n" + data)
    for fuzzer in PROFILE_FUZZERS:
        for name, data in inputs(fuzzer):
            check_ingest(tenant.post("/ingest", data, query={"name": "app"}), f"{fuzzer}/{name}")
            check(tenant.post("/api/v1/profiles", data, query={"label": "a=b"}), f"{fuzzer}/{name}")


def raw_requests():
    for name, data in inputs("fuzz_request"):
        lines = data.split(b"\n")
        method, path, query = (lines + [b"", b"", b""])[:3]
        target = path + (b"?" + query if query else b"")
        head = b" ".join((method, target, b"HTTP/1.1")) + b"\r\nhost: localhost\r\n"
        yield name, head + b"".join(
            line + b"\r\n" for line in lines[3:] if line
        ) + b"connection: close\r\ncontent-length: 0\r\n\r\n"
        yield name + " as it is", data + b"\r\n\r\n"


def send_raw(server, data):
    """Returns the first bytes of the response, or nothing if the server closed the connection."""
    with socket.create_connection(
        ("localhost", server.port), 20
    ) as plain, server.trust().wrap_socket(plain, server_hostname="localhost") as connection:
        try:
            connection.sendall(data)
            connection.settimeout(2)
            return connection.recv(65536)
        except TimeoutError:
            return b""  # an incomplete request: the server waits for the rest
        except OSError:
            return b""


def test_inputs_for_the_request_parser_are_accepted_or_refused(server, tenant):
    for name, data in raw_requests():
        response = send_raw(server, data)
        status = re.match(rb"HTTP/1\.[01] (\d{3})", response)
        assert not response or (
            status and int(status[1]) in ALLOWED_RAW
        ), f"{name}: {response[:200]}"
        check(tenant.get("/healthz"), os.fspath(name))
