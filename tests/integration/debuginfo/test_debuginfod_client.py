"""The client of debuginfod servers: it reports a reason for each hostile response, and fetches
files from the real server."""

import json
import os
import pathlib
import shutil
import subprocess
import time
import urllib.request

import pytest

import debuginfod_stub
from conftest import free_port
from debuginfod_stub import ELF, Stub

pytestmark = pytest.mark.long

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = ROOT / "build" / os.environ.get("BUILD", "release")
FETCH = BUILD / "tests" / "programs" / "fetch_debuginfo"
ID = "00112233445566778899aabbccddeeff00112233"
MAX_BYTES = 1 << 20


@pytest.fixture(scope="module", autouse=True)
def program():
    """Builds the test program that calls the client; make does not build it otherwise."""
    subprocess.run(
        ["make", "-s", f"BUILD={BUILD.name}", str(FETCH.relative_to(ROOT))], cwd=ROOT, check=True
    )


@pytest.fixture(scope="module")
def bomb():
    return debuginfod_stub.bomb()


@pytest.fixture
def stub():
    with Stub() as stub:
        yield stub


def fetch(
    folder,
    *urls,
    kind="debuginfo",
    build_id=ID,
    max_bytes=MAX_BYTES,
    at_once=1,
    rounds=1,
    allow=("127.0.0.1",),
    environment=None,
):
    """Returns the result of each fetch in the order in which the fetches ended."""
    allowed = [word for host in allow for word in ("--allow", host)]
    done = subprocess.run(
        [FETCH, folder, kind, build_id, str(max_bytes), str(at_once), *allowed, *urls],
        input="\n" * (rounds - 1),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={**os.environ, **(environment or {})},
    )
    responses = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(responses) == at_once * rounds
    assert not list(pathlib.Path(folder).iterdir()), "a temporary file has a name"
    return responses


def outcome(tmp_path, *urls, **options):
    folder = tmp_path / "fetched"
    folder.mkdir(exist_ok=True)
    (response,) = fetch(folder, *urls, **options)
    return response["outcome"], response["reason"]


def test_a_file_is_fetched_also_compressed_and_after_redirects(tmp_path, stub):
    folder = tmp_path / "fetched"
    folder.mkdir()
    for behaviour in ("good", "compressed", "one_redirect", "two_redirects", "three_redirects"):
        (response,) = fetch(folder, stub.url(behaviour))
        assert response["outcome"] == "found", (behaviour, response)
        assert (response["bytes"], response["sum"]) == (len(ELF), sum(ELF))
    first, fields = stub.seen[0]
    assert first == f"/good/buildid/{ID}/debuginfo"
    assert fields["user-agent"] == "perfolio/test" and "authorization" not in fields
    assert all("cookie" not in fields for _, fields in stub.seen)
    (response,) = fetch(folder, stub.url("good") + "/", kind="executable")
    assert response["outcome"] == "found" and stub.paths()[-1] == f"/good/buildid/{ID}/executable"
    (response,) = fetch(folder, stub.url("good"), kind=".symtab")
    assert (
        response["outcome"] == "found" and stub.paths()[-1] == f"/good/buildid/{ID}/section/.symtab"
    )


HOSTILE = [
    ("missing", "absent", "the debuginfod server does not have the file"),
    ("bomb", "refused", "larger than 1048576 bytes"),
    ("lying_bomb", "refused", "more than the 1000 bytes that it announced"),
    ("compressed_30_times", "unreachable", "encoding"),
    ("drip", "unreachable", "sends less than 1000 bytes in 1 s"),
    ("drip_header", "unreachable", "does not respond within 2 s"),
    ("silent", "unreachable", "does not respond within 2 s"),
    ("endless_header", "refused", "a header of more than"),
    ("one_endless_line", "unreachable", "cannot talk to"),
    ("endless_interim", "unreachable", "Too large response headers"),
    ("endless_body", "refused", "larger than 1048576 bytes"),
    ("endless_error", "absent", ""),
    ("announces_much", "refused", "at most 1048576 bytes are fetched"),
    ("announces_little", "refused", "more than the 100 bytes that it announced"),
    ("announces_more", "unreachable", "sent 10244 of 10245 bytes"),
    ("truncated", "unreachable", "cannot talk to"),
    ("broken_chunks", "unreachable", "cannot talk to"),
    ("not_elf", "refused", "not an ELF file"),
    ("not_http", "refused", "HTTP/0.9"),
    ("failing", "unreachable", "responds with status 503"),
    ("closed", "refused", "requires other credentials"),
    ("redirect_loop", "refused", "redirects more than 3 times"),
    ("four_redirects", "refused", "redirects more than 3 times"),
]


@pytest.mark.parametrize("behaviour, expected, reason", HOSTILE, ids=[row[0] for row in HOSTILE])
def test_each_hostile_response_is_reported_with_a_reason(
    tmp_path, stub, bomb, behaviour, expected, reason
):
    stub.bomb = bomb
    result, message = outcome(tmp_path, stub.url(behaviour))
    assert result == expected and reason in message, (result, message)


def test_the_next_server_is_queried_after_a_failure(tmp_path, stub):
    wrong = (
        "missing",
        "announces_much",
        "not_elf",
        "failing",
        "redirect_loop",
        "later",
        "truncated",
    )
    for behaviour in wrong:
        assert outcome(tmp_path, stub.url(behaviour), stub.url("good")) == ("found", "")
    # The reported reason is that of the server that may still have the file.
    result, message = outcome(
        tmp_path, *(stub.url(behaviour) for behaviour in ("missing", "not_elf", "later"))
    )
    assert result == "unreachable" and "503" in message


def test_retry_after_is_respected(tmp_path, stub):
    folder = tmp_path / "fetched"
    folder.mkdir()
    (later,) = fetch(folder, stub.url("later"))
    assert (later["outcome"], later["retry_after_s"], later["later_s"]) == (
        "unreachable",
        7200,
        7200,
    )
    (too_many,) = fetch(folder, stub.url("too_many"))
    assert too_many["later_s"] == 120
    assert len(stub.paths()) == 2, "neither request is retried at once"
    (flaky,) = fetch(folder, stub.url("flaky"))
    assert flaky["outcome"] == "found" and len(stub.paths()) == 5


FORBIDDEN = [
    "http://127.0.0.1",
    "https://127.0.0.1",
    "http://example.invalid",
    "https://[::1]",
    "https://[::ffff:127.0.0.1]",
    "https://169.254.169.254",
    "https://10.0.0.1",
    "https://localhost",
    "https://LOCALHOST.",
    "https://2130706433",
    "https://0x7f.1",
    "https://0",
    "https://user:secret@127.0.0.1",
    "file:///etc/passwd",
    "ftp://127.0.0.1",
    "gopher://127.0.0.1",
    "https://[fe80::1]",
    "https://[fd00:ec2::254]",
    "//127.0.0.1",
    "",
]


@pytest.mark.parametrize("target", FORBIDDEN)
def test_forbidden_addresses_are_not_connected_to(tmp_path, stub, target):
    """Neither as the URL of the server nor as the target of a redirect from an allowed host."""
    result, message = outcome(tmp_path, target, allow=())
    assert result == "refused" and message, (result, message)
    stub.target = target
    result, message = outcome(tmp_path, stub.url("redirect"), allow=(f"127.0.0.1:{stub.port}",))
    if target == "":
        assert result == "refused", (result, message)
    else:
        assert result == "refused" and message, (result, message)
    assert len(stub.paths()) in (1, 4)


def test_a_name_of_a_forbidden_address_is_refused_after_its_lookup(tmp_path, stub):
    """The test uses a name, not an address literal: the host's own name resolves to an address of
    its network."""
    names = [
        line.split()[1]
        for line in pathlib.Path("/etc/hosts").read_text().splitlines()
        if len(line.split()) > 1 and not line.startswith("#") and line.split()[1] != "localhost"
    ]
    if not names:
        pytest.skip("/etc/hosts has no other name")
    for name in names:
        result, message = outcome(tmp_path, f"https://{name}:{stub.port}/good", allow=())
        assert result == "refused" and "may not be connected to" in message, (name, result, message)
    assert stub.paths() == []


def test_only_the_allowed_host_and_port_are_connected_to(tmp_path, stub):
    assert outcome(tmp_path, stub.url("good"), allow=(f"127.0.0.1:{stub.port}",))[0] == "found"
    assert outcome(tmp_path, stub.url("good"), allow=("127.0.0.1:1",))[0] == "refused"
    assert outcome(tmp_path, stub.url("good"), allow=("127.0.0.2", "127.0.0.1x"))[0] == "refused"


def test_proxies_from_the_environment_are_ignored(tmp_path, stub):
    environment = {
        name: "http://127.0.0.1:1" for name in ("http_proxy", "https_proxy", "ALL_PROXY")
    }
    assert outcome(tmp_path, stub.url("good"), environment=environment)[0] == "found"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A self-signed certificate of 127.0.0.1 with its key."""
    folder = tmp_path_factory.mktemp("certificate")
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
            "/CN=127.0.0.1",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            "-keyout",
            folder / "key.pem",
            "-out",
            folder / "ca.pem",
        ],
        check=True,
        capture_output=True,
    )
    both = folder / "both.pem"
    both.write_text((folder / "ca.pem").read_text() + (folder / "key.pem").read_text())
    return folder


def test_https_verifies_the_certificate_and_refuses_redirects_to_http(tmp_path, stub, certificate):
    ca = ["--ca", str(certificate / "ca.pem")]
    with Stub(certificate=certificate / "both.pem") as safe:
        assert outcome(tmp_path, *ca, safe.url("good"))[0] == "found"
        result, message = outcome(tmp_path, safe.url("good"))
        assert result == "unreachable" and "not trusted" in message
        safe.target = stub.url("good")
        result, message = outcome(tmp_path, *ca, safe.url("redirect_with_path"))
        assert result == "refused" and "from https to http" in message
        assert stub.paths() == []
        stub.target = safe.url("good")
        assert outcome(tmp_path, *ca, stub.url("redirect_with_path"))[0] == "found"


def test_the_authorization_header_is_sent_to_its_own_host_only(tmp_path, stub):
    secret = "Authorization: Bearer not-for-others"
    with Stub() as other:
        stub.target = other.url("good")
        assert outcome(tmp_path, stub.url("redirect_with_path"), "--auth", secret)[0] == "found"
        assert stub.seen[0][1]["authorization"] == "Bearer not-for-others"
        assert "authorization" not in other.seen[0][1]
        assert outcome(tmp_path, stub.url("one_redirect"), "--auth", secret)[0] == "found"
        assert [fields["authorization"] for _, fields in stub.seen[1:]] == [
            "Bearer not-for-others"
        ] * 2
    result, message = outcome(tmp_path, stub.url("closed"), "--auth", secret)
    assert result == "refused" and "not-for-others" not in message


def test_concurrent_fetches_of_one_file_send_one_request(tmp_path, stub):
    folder = tmp_path / "fetched"
    folder.mkdir()
    responses = fetch(folder, stub.url("slow_good"), at_once=20)
    assert all(
        response["outcome"] == "found" and response["sum"] == sum(ELF) for response in responses
    )
    assert len(stub.paths()) == 1


def test_a_host_is_skipped_after_five_failures(tmp_path, stub):
    folder = tmp_path / "fetched"
    folder.mkdir()
    responses = fetch(folder, stub.url("failing"), rounds=4)
    assert len(stub.paths()) == 5, "five failed requests in a row, then no further one"
    assert "not tried again" in responses[-1]["reason"] and responses[-1]["later_s"] == 60


def test_invalid_build_ids_are_not_requested(tmp_path, stub):
    assert outcome(tmp_path, stub.url("good"), build_id="61" * 83)[0] == "absent"
    assert stub.paths() == []


# ---- the real server ----


def is_scanned(url):
    try:
        with urllib.request.urlopen(url + "/metrics", timeout=5) as response:
            metrics = response.read().decode()
    except OSError:
        return False
    return (
        'thread_work_pending{role="scan"} 0' in metrics
        and 'thread_busy{role="scan"} 0' in metrics
        and 'thread_work_total{role="scan"}' in metrics
    )


@pytest.fixture
def debuginfod(tmp_path):
    """The distribution's debuginfod: (its URL, the folder that it serves, its process)."""
    if not shutil.which("debuginfod"):
        pytest.skip("no debuginfod")
    folder, port = tmp_path / "files", free_port()
    folder.mkdir()
    shutil.copy(FETCH, folder / "first")
    process = subprocess.Popen(
        [
            "debuginfod",
            "-d",
            str(tmp_path / "index.sqlite"),
            "-p",
            str(port),
            "-F",
            str(folder),
            "-t",
            "0",
            "-g",
            "0",
            "-c",
            "1",
            "--fdcache-mintmp=0",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "DEBUGINFOD_URLS": "", "TMPDIR": str(tmp_path)},
    )
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 60
        while not is_scanned(url) and time.monotonic() < deadline:
            time.sleep(0.1)
        yield url, folder, process
    finally:
        process.kill()
        process.wait()


def build_id_of(file):
    notes = subprocess.run(
        ["readelf", "-n", file], capture_output=True, text=True, check=True
    ).stdout
    return notes.split("Build ID: ")[1].split()[0]


def test_files_are_fetched_from_the_distributions_debuginfod(tmp_path, debuginfod):
    url, folder, _ = debuginfod
    program, fetched = folder / "first", tmp_path / "fetched"
    fetched.mkdir()
    content = program.read_bytes()
    for kind in ("debuginfo", "executable"):
        (response,) = fetch(
            fetched, url, build_id=build_id_of(program), kind=kind, max_bytes=1 << 30
        )
        assert response["outcome"] == "found", response
        assert (response["bytes"], response["sum"]) == (len(content), sum(content))
    headers = subprocess.run(
        ["readelf", "-SW", program], capture_output=True, text=True, check=True
    ).stdout
    size = next(
        int(line.split("SYMTAB")[1].split()[2], 16)
        for line in headers.splitlines()
        if " .symtab " in line
    )
    (response,) = fetch(
        fetched, url, build_id=build_id_of(program), kind=".symtab", max_bytes=1 << 30
    )
    assert response["outcome"] == "found" and response["bytes"] == size
    assert fetch(fetched, url)[0]["outcome"] == "absent"
    assert (
        fetch(fetched, url, build_id=build_id_of(program), kind=".none")[0]["outcome"] == "absent"
    )
