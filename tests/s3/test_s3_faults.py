"""The S3 object store with a real radosgw, directly and through a proxy that corrupts requests:
acknowledged data is stored, data that is read is complete, and failures are reported. Run by make
test-s3."""

import os
import pathlib
import signal
import subprocess
import uuid

import pytest

from fault_proxy import FaultProxy

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / os.environ.get("BUILD", "release") / "tests"
PREFIX = "PERFOLIO_TEST_S3_"
TRANSIENT = [
    "500",
    "502",
    "503",
    "503-later",
    "429",
    "timeout-400",
    "reset",
    "reset-after",
    "hang",
    "404-page",
]
BODY = ["cut", "cut-chunks", "cut-unknown", "stall"]


class Failed(Exception):
    """An "error CODE MESSAGE" of object_tool."""

    @property
    def code(self):
        return str(self).split(" ")[0]


class Tool:
    def __init__(self, settings, **changes):
        environment = {**os.environ, **settings, PREFIX + "RETRY_S": "20"}
        environment.update({PREFIX + name.upper(): value for name, value in changes.items()})
        self.secret = environment[PREFIX + "SECRET_KEY"]
        self.process = subprocess.Popen(
            [BUILD / "s3" / "object_tool"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        try:
            self.read()
        except Failed:
            self.close()
            raise

    def read(self):
        line = self.process.stdout.readline()
        assert self.secret not in line
        word, _, rest = line.strip().partition(" ")
        if word != "ok":
            raise Failed(rest)
        return int(rest)

    def send(self, *words):
        self.process.stdin.write(" ".join(str(word) for word in words) + "\n")
        self.process.stdin.flush()

    def run(self, *words):
        self.send(*words)
        return self.read()

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture(scope="session")
def radosgw(tmp_path_factory):
    """The radosgw that run.sh started, or a new one."""
    given = os.environ.get(PREFIX + "DIR")
    folder = pathlib.Path(given) if given else tmp_path_factory.mktemp("radosgw")
    script = ["sh", str(ROOT / "tests" / "s3" / "radosgw.sh")]
    try:
        if not given:
            subprocess.run([*script, "start", str(folder)], check=True)
        lines = (folder / "environment").read_text().splitlines()
        settings = dict(line.split("=", 1) for line in lines)
        settings["act"] = lambda action: subprocess.run([*script, action, str(folder)], check=True)
        yield settings
    finally:
        if not given:
            subprocess.run([*script, "stop", str(folder)], check=True)


@pytest.fixture
def settings(radosgw):
    own = {name: value for name, value in radosgw.items() if name.startswith(PREFIX)}
    return {**own, PREFIX + "PREFIX": f"faults/{uuid.uuid4().hex}"}


@pytest.fixture
def proxy(settings):
    host, port = settings[PREFIX + "ENDPOINT"].split("/")[-1].split(":")
    proxy = FaultProxy((host, int(port)))
    settings[PREFIX + "ENDPOINT"] = proxy.endpoint
    yield proxy
    proxy.stop()


@pytest.fixture
def tool(settings, proxy):
    tool = Tool(settings)
    yield tool
    proxy.plan()
    tool.close()


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small"
    path.write_bytes(os.urandom(100_000))
    return path


@pytest.fixture
def large(tmp_path):
    path = tmp_path / "large"
    path.write_bytes(os.urandom((17 << 20) + 4321))
    return path


@pytest.mark.parametrize("style", ["path", "host"])
def test_s3_passes_the_unit_tests_of_the_object_store(radosgw, style):
    endpoint = radosgw[PREFIX + "ENDPOINT"]
    changes = {
        PREFIX + "STYLE": style,
        PREFIX + "ENDPOINT": endpoint.replace("127.0.0.1", "localhost")
        if style == "host"
        else endpoint,
    }
    settings = {name: value for name, value in radosgw.items() if name.startswith(PREFIX)}
    result = subprocess.run(
        [BUILD / "unit" / "lib" / "io" / "test_object_store"],
        text=True,
        env={**os.environ, **settings, **changes},
        capture_output=True,
    )
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("fault", TRANSIENT + ["damage"])
def test_a_put_is_complete_after_transient_faults(tool, proxy, small, tmp_path, fault):
    proxy.plan(fault, fault, matching="PUT")
    tool.run("put", "a/b", small)
    assert len(proxy.seen) == 3
    tool.run("get", "a/b", tmp_path / "got")
    assert (tmp_path / "got").read_bytes() == small.read_bytes()


@pytest.mark.parametrize("fault", TRANSIENT + BODY)
@pytest.mark.parametrize("command", ["get", "fd", "range"])
def test_a_read_is_complete_after_transient_faults(tool, proxy, small, tmp_path, fault, command):
    tool.run("put", "a/b", small)
    faults = (
        [fault] if fault == "stall" else [fault, fault]
    )  # libcurl detects a stall only after some seconds
    proxy.plan(*faults, matching="GET")
    span = (5, 50_000) if command == "range" else ()
    tool.run(command, "a/b", *span, tmp_path / "got")
    expected = small.read_bytes()[5:50_005] if span else small.read_bytes()
    assert (tmp_path / "got").read_bytes() == expected
    assert len(proxy.seen) == len(faults) + 1


@pytest.mark.parametrize("fault", ["other-range", "whole"])
def test_a_wrong_range_is_refused(settings, proxy, small, tmp_path, fault):
    tool = Tool(settings, retry_s="1")
    tool.run("put", "a/b", small)
    proxy.plan(later_fault=fault, matching="GET")
    with pytest.raises(Failed) as failed:
        tool.run("range", "a/b", 5, 500, tmp_path / "got")
    assert failed.value.code in ("busy", "damaged")
    assert not (tmp_path / "got").exists()
    tool.close()


@pytest.mark.parametrize("fault", TRANSIENT + BODY)
def test_listing_and_deleting_succeed_after_a_transient_fault(tool, proxy, small, fault):
    for i in range(4):
        tool.run("put", f"a/{i}", small)
    proxy.plan(fault, matching="GET")
    assert tool.run("count", "a/") == 4
    proxy.plan(fault, matching="POST")
    tool.run("delete", "a/0", "a/1", "a/9")
    if fault not in BODY:  # the response to a single deletion has no body
        proxy.plan(fault, matching="DELETE")
    tool.run("delete", "a/2")
    proxy.plan()
    assert tool.run("count") == 1


def test_objects_are_deleted_one_by_one_without_multi_object_delete(tool, proxy, small):
    for i in range(3):
        tool.run("put", f"a/{i}", small)
    proxy.plan("501", matching="POST")
    tool.run("delete", "a/0", "a/1", "a/2")
    assert sum(request.startswith("DELETE") for request in proxy.seen) == 3
    assert tool.run("count") == 0


@pytest.mark.parametrize("fault", ["500", "503", "hang", "reset", "cut", "cut-unknown", "404-page"])
def test_a_persistent_fault_is_an_error_and_writes_no_file(settings, proxy, small, tmp_path, fault):
    tool = Tool(settings, retry_s="1")
    tool.run("put", "a/b", small)
    proxy.plan(later_fault=fault, matching="GET")
    for words in (("get", "a/b"), ("fd", "a/b"), ("range", "a/b", 1, 5000)):
        with pytest.raises(Failed, match="after . tries") as failed:
            tool.run(*words, tmp_path / "got")
        assert failed.value.code == "busy"
        assert not (tmp_path / "got").exists()
    if not fault.startswith("cut"):
        proxy.plan(later_fault=fault, matching="PUT")
        with pytest.raises(Failed, match="after . tries") as failed:
            tool.run("put", "a/c", small)
        assert failed.value.code == "busy"
    proxy.plan()
    tool.run("get", "a/b", tmp_path / "got")
    assert (tmp_path / "got").read_bytes() == small.read_bytes()
    tool.close()


@pytest.mark.parametrize("fault", ["500", "reset", "reset-after", "hang", "cut"])
def test_every_request_of_an_upload_in_parts_may_fail_once(tool, proxy, large, tmp_path, fault):
    for number, wanted in enumerate(
        ["?uploads=", "partNumber=1&", "partNumber=3&", "POST /perfolio-test/faults"]
    ):
        proxy.plan(fault, matching=wanted)
        tool.run("write", f"large/{number}", large)
        tool.run("get", f"large/{number}", tmp_path / "got")
        assert (tmp_path / "got").read_bytes() == large.read_bytes()


@pytest.mark.parametrize("fault", ["reset-after", "200-error", "cut"])
def test_an_upload_whose_last_response_fails_is_complete(tool, proxy, large, tmp_path, fault):
    proxy.plan(None, fault, matching="POST")
    tool.run("write", "large", large)
    assert sum(request.startswith("POST") and "uploadId" in request for request in proxy.seen) >= 2
    tool.run("get", "large", tmp_path / "got")
    assert (tmp_path / "got").read_bytes() == large.read_bytes()


def test_an_upload_that_cannot_continue_is_aborted(settings, proxy, large, tmp_path):
    tool = Tool(settings, retry_s="1")
    proxy.plan(later_fault="500", matching="partNumber=2&")
    with pytest.raises(Failed, match="InternalError") as failed:
        tool.run("write", "large", large)
    assert failed.value.code == "busy"
    assert any(request.startswith("DELETE") and "uploadId" in request for request in proxy.seen)
    with pytest.raises(Failed) as failed:
        tool.run("get", "large", tmp_path / "got")
    assert failed.value.code == "not-found"
    tool.close()


def test_old_uploads_of_a_killed_writer_are_swept(settings, proxy, large):
    dying = Tool(settings)
    proxy.plan(later_fault="hang", matching="partNumber=2&")
    dying.send("write", "large", large)
    proxy.wait_for("partNumber=2&")
    dying.process.send_signal(signal.SIGKILL)
    dying.process.wait()
    proxy.plan()
    young = Tool(settings)
    young.run("sweep")
    assert not proxy.has_seen("uploadId=")
    young.close()
    old = Tool(settings, upload_max_age_s="1")
    for _ in range(2000):
        old.run("sweep")
        if proxy.has_seen("uploadId="):
            break
    proxy.plan()
    old.run("sweep")
    assert not proxy.has_seen("uploadId=")
    old.close()


def test_one_connection_serves_many_requests(tool, proxy, small, tmp_path):
    for i in range(20):
        tool.run("put", f"a/{i}", small)
        tool.run("get", f"a/{i}", tmp_path / "got")
    assert proxy.connections == 1


@pytest.mark.parametrize(
    "fault, text",
    [
        ("skew", "clocks differ too much.*2030.*NTP"),
        ("region", "set the region to eu-test-7"),
        ("redirect", "set the region to eu-test-8"),
        ("denied", "may not list.*s3:ListBucket"),
        ("token", "session token has expired"),
        ("500", "after . tries.*InternalError"),
    ],
)
def test_a_failure_to_open_the_store_suggests_what_to_do(settings, proxy, fault, text):
    proxy.plan(later_fault=fault)
    with pytest.raises(Failed, match=text):
        Tool(settings)


@pytest.mark.parametrize(
    "name, value, text",
    [
        ("secret_key", "wrong", "check the secret key"),
        ("access_key", "nobody", "does not know the access key"),
        ("bucket", "no-such-bucket", "no such bucket"),
        ("endpoint", "http://127.0.0.1:1", "cannot talk to http://127.0.0.1:1"),
        ("endpoint", "127.0.0.1", "has to be https://host"),
        ("endpoint", "http://u:p@127.0.0.1/x", "has to be https://host"),
        ("bucket", "a/b", "3 to 63 letters"),
        ("prefix", "../x", "names of A-Za-z0-9"),
        ("region", "a b", "such as us-east-1"),
        ("secret_key", "a\tb", "spaces or controls"),
        ("ca_file", "/no/such/file", "CA file /no/such/file"),
    ],
)
def test_an_invalid_setting_is_reported(settings, name, value, text):
    with pytest.raises(Failed, match=text):
        Tool(settings, **{name: value})


def test_the_tls_certificate_is_verified_with_the_ca_file(settings, tmp_path):
    pem = tmp_path / "server.pem"
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=test",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            "-keyout",
            pem,
            "-out",
            tmp_path / "ca.pem",
        ],
        check=True,
        capture_output=True,
    )
    pem.write_bytes(pem.read_bytes() + (tmp_path / "ca.pem").read_bytes())
    host, port = settings[PREFIX + "ENDPOINT"].split("/")[-1].split(":")
    proxy = FaultProxy((host, int(port)), certificate=pem)
    try:
        with pytest.raises(Failed, match="is not trusted") as failed:
            Tool(settings, endpoint=proxy.endpoint)
        assert failed.value.code == "unauthenticated"
        with pytest.raises(Failed):
            Tool(settings, endpoint=proxy.endpoint.replace("https", "http"))
        Tool(settings, endpoint=proxy.endpoint, ca_file=str(tmp_path / "ca.pem")).close()
    finally:
        proxy.stop()


def test_acknowledged_objects_are_complete_after_kills_of_the_server(
    radosgw, settings, tmp_path, large
):
    tool = Tool(settings, retry_s="60")
    content, acknowledged = {}, []
    for i in range(40):
        path = tmp_path / f"in-{i}"
        path.write_bytes(large.read_bytes() if i % 10 == 9 else os.urandom(65_536))
        content[f"kill/{i}"] = path
    for i, (key, path) in enumerate(content.items()):
        tool.send("write", key, path)
        if i in (10, 29):  # perhaps while a request is in flight; 29 has three parts
            radosgw["act"]("kill")
            radosgw["act"]("resume")
        tool.read()
        acknowledged.append(key)
    radosgw["act"]("kill")
    radosgw["act"]("resume")
    assert len(acknowledged) == 40
    for key in acknowledged:
        tool.run("get", key, tmp_path / "got")
        assert (tmp_path / "got").read_bytes() == content[key].read_bytes()
    assert tool.run("count", "kill/") == 40
    tool.close()
