"""`perfolio` under faults of the network and the server: retries, resumed uploads, exit codes,
secrets.

The tests run it against small fake servers, which fail on purpose and record their requests.
"""

import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import stat
import subprocess
import termios
import threading
import time

import pytest

from conftest import PERFOLIO, free_port

pytestmark = pytest.mark.long

PART = 4 << 20
TOKEN = "pf_" + "x" * 43
FOLDED = b"main;work;hot 90\nmain;work;cold 9\nmain;idle 1\n"


class FakeServer(http.server.ThreadingHTTPServer):
    """Stores shares and uploads in memory; `failures` makes the next requests fail."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, port=None):
        super().__init__(("127.0.0.1", port or free_port()), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.requests = []  # (method, path)
        self.fields = []  # header fields of each request
        self.documents = {}  # path -> what each GET of it returns
        self.failures = []  # (status, header fields) for the next requests
        self.cut_after_request = 0  # connections to close without a response, after reading all
        self.lose_responses_of = []  # patterns: such requests are executed but get no response
        self.conflicts = []  # detail and fields of responses to /complete
        self.shares = {}  # id -> body
        self.keys = {}  # Idempotency-Key -> id
        self.uploads = {}  # id -> {"size", "parts"}
        self.thread = threading.Thread(target=self.serve_forever, daemon=True)
        self.thread.start()

    def count(self, method, pattern):
        return sum(1 for m, path in self.requests if m == method and re.search(pattern, path))

    def close(self):
        self.shutdown()
        self.server_close()
        self.thread.join()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def handle(self):
        try:
            super().handle()
        except ConnectionError:
            pass

    def reply(self, status, document=None, fields=(), content_type="application/json"):
        body = b"" if document is None else json.dumps(document).encode()
        lost = self.server.lose_responses_of
        if lost and re.search(lost[0], self.path):
            lost.pop(0)
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def problem(self, status, name, detail, fields=()):
        self.reply(
            status,
            {
                "type": f"/problems/{name}",
                "title": name,
                "status": status,
                "detail": detail,
                "request_id": "r1",
            },
            fields,
            "application/problem+json",
        )

    def share(self, body, identity=None):
        identity = identity or "A" * 18 + f"{len(self.server.shares):04d}"
        self.server.shares[identity] = body
        url = f"{self.server.url}/p/{identity}"
        self.reply(
            201,
            {
                "id": identity,
                "url": url,
                "raw_url": url + "/raw",
                "delete_token": "d" * 43,
                "delete_url": f"{url}/delete#{'d' * 43}",
                "expires_at": None,
                "markdown": f"[profile]({url})",
            },
        )

    def do_any(self):
        server = self.server
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        if len(body) < length:  # truncated: a real server would not accept it either
            self.close_connection = True
            return
        server.requests.append((self.command, self.path))
        server.fields.append({k.lower(): v for k, v in self.headers.items()})
        if server.cut_after_request:
            server.cut_after_request -= 1
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        if server.failures:
            status, fields = server.failures.pop(0)
            self.problem(
                status, "busy" if status in (502, 503, 504) else "other", "not now", fields
            )
            return
        path = self.path.partition("?")[0]
        part = re.fullmatch(r"/api/v1/uploads/(\w+)/parts/(\d+)", path)
        upload = re.fullmatch(r"/api/v1/uploads/(\w+)(/complete)?", path)
        if self.command == "GET" and path in server.documents:
            self.reply(200, server.documents[path])
        elif (self.command, path) == ("POST", "/api/v1/shares"):
            key = self.headers["Idempotency-Key"]
            known = server.keys.setdefault(key, "A" * 18 + f"{len(server.shares):04d}")
            self.share(body, known)
        elif (self.command, path) == ("POST", "/api/v1/uploads"):
            size = json.loads(body)["size"]
            identity = "U" * 21 + str(len(server.uploads))
            server.uploads[identity] = {"size": size, "parts": {}}
            self.reply(
                201,
                {
                    "id": identity,
                    "part_bytes": PART,
                    "part_count": -(-size // PART),
                    "upload_token": "u" * 43,
                },
            )
        elif part and self.command == "PUT":
            server.uploads[part[1]]["parts"][int(part[2])] = body
            self.reply(204)
        elif upload and upload[1] not in server.uploads:
            self.problem(404, "not-found", "no such upload")
        elif upload and self.command == "GET":
            size = server.uploads[upload[1]]["size"]
            known = server.uploads[upload[1]]
            self.reply(
                200,
                {
                    "id": upload[1],
                    "part_bytes": PART,
                    "part_count": -(-size // PART),
                    "share_id": known.get("share_id"),
                    "parts_received": [] if "share_id" in known else sorted(known["parts"]),
                },
            )
        elif upload and upload[2] and server.conflicts:
            detail, fields = server.conflicts.pop(0)
            self.problem(409, "conflict", detail, fields)
        elif upload and upload[2]:
            known = server.uploads[upload[1]]
            known.setdefault("share_id", "A" * 18 + f"{len(server.shares):04d}")
            self.share(
                b"".join(known["parts"][i] for i in sorted(known["parts"])), known["share_id"]
            )
        elif self.command == "DELETE" and "/api/v1/shares/" in path:
            is_right = self.headers.get("X-Perfolio-Delete-Token") == "d" * 43
            if is_right:
                self.reply(204)
            else:
                self.problem(403, "forbidden", "wrong token")
        elif path == "/api/v1/session":
            is_known = self.headers.get("Authorization") == f"Bearer {TOKEN}"
            if self.headers.get("Authorization") and not is_known:
                self.problem(401, "unauthenticated", "this token is not known")
            else:
                self.reply(
                    200,
                    {
                        "kind": "token" if is_known else "anonymous",
                        "tenant": {"id": 2, "name": "default"},
                        "anonymous_sharing": True,
                    },
                )
        elif path == "/debug/pprof/profile":
            self.reply(200, None)
        elif path == "/stacks.folded":
            self.send_response(200)
            self.send_header("Content-Length", str(len(FOLDED)))
            self.end_headers()
            self.wfile.write(FOLDED)
        else:
            self.problem(404, "not-found", "no such share")

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_any


class CuttingProxy:
    """Forwards to a port; cuts each connection after its limit of bytes from the client."""

    def __init__(self, target_port, limits):
        self.limits = list(limits)  # bytes per connection; None: no limit
        self.listener = socket.create_server(("127.0.0.1", free_port()))
        self.port = self.listener.getsockname()[1]
        self.target_port = target_port
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            limit = self.limits.pop(0) if self.limits else None
            threading.Thread(target=self.serve, args=(client, limit), daemon=True).start()

    def serve(self, client, limit):
        target = socket.create_connection(("127.0.0.1", self.target_port))
        threading.Thread(target=self.copy, args=(target, client, None), daemon=True).start()
        self.copy(client, target, limit)

    @staticmethod
    def copy(source, sink, limit):
        passed = 0
        try:
            while limit is None or passed < limit:
                piece = source.recv(65536 if limit is None else min(65536, limit - passed))
                if not piece:
                    break
                sink.sendall(piece)
                passed += len(piece)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()

    def close(self):
        self.listener.close()


@pytest.fixture
def fake():
    server = FakeServer()
    yield server
    server.close()


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def run(home, fake):
    """run("push", file, url=…, token=…, environment={}, input=…) -> CompletedProcess of texts"""

    def call(*arguments, url=None, token=None, environment=None, input=None, timeout=60):
        variables = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "PERFOLIO_URL": fake.url if url is None else url,
        }
        if token:
            variables["PERFOLIO_TOKEN"] = token
        variables.update(environment or {})
        variables = {name: value for name, value in variables.items() if value != ""}
        result = subprocess.run(
            [str(PERFOLIO), *map(str, arguments)],
            input=input or b"",
            capture_output=True,
            env=variables,
            timeout=timeout,
            start_new_session=True,
        )  # no terminal for prompts
        result.out, result.log = result.stdout.decode(), result.stderr.decode()
        return result

    return call


@pytest.fixture
def stacks(tmp_path):
    file = tmp_path / "stacks.folded"
    file.write_bytes(FOLDED)
    return file


def make_large(path, size=10 * 1000 * 1000):
    """Writes a valid folded profile of about `size` bytes; all stacks differ."""
    line = "main;work;function_{:09d};and_a_rather_long_name_of_a_leaf_that_fills_the_file {}\n"
    count = size // len(line.format(0, 1))
    path.write_text("".join(line.format(i, i % 97 + 1) for i in range(count)))
    return path


# ---- output and requests ----


def test_push_prints_one_url_per_line_and_nothing_else(run, stacks, tmp_path):
    other = tmp_path / "other.folded"
    other.write_bytes(b"a;b 1\n")
    result = run("push", stacks, other)
    assert result.returncode == 0, result.log
    lines = result.out.splitlines()
    assert len(lines) == 2 and all(re.fullmatch(r"http://\S+/p/\w{22}", line) for line in lines)
    assert "perfolio delete http" in result.log and "expires" in result.log
    assert "\033" not in result.out + result.log and "\r" not in result.log


def test_quiet_prints_only_the_link(run, stacks):
    result = run("push", "-q", stacks)
    assert result.returncode == 0 and result.log == "" and result.out.count("\n") == 1


def test_push_prints_json_and_markdown(run, stacks):
    response = json.loads(run("push", "--json", stacks).out)
    assert response["url"].endswith(response["id"]) and response["delete_token"]
    assert run("push", "--markdown", stacks).out.startswith("[profile](http")


def test_a_list_whose_pages_repeat_ends(run, fake):
    fake.documents["/api/v1/debuginfo"] = {"binaries": [], "next": "abcd"}
    result = run("debuginfo", "list")
    assert result.returncode == 3 and "repeats a page" in result.log, result.log
    assert fake.count("GET", "debuginfo") == 2


def test_an_export_is_a_parquet_file(run, fake, tmp_path):
    """A proxy may respond with its own page and status 200."""
    fake.documents["/api/v1/export"] = {"welcome": "please sign in"}
    result = run("export", "-o", tmp_path / "out.parquet", "cpu")
    assert result.returncode == 3 and "not a Parquet file" in result.log, result.log
    assert list(tmp_path.glob("out*")) == []


def test_options_are_sent_as_query_parameters_and_the_password_is_not(run, fake, stacks, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("open sesame\nsecond line\n")
    result = run(
        "push",
        stacks,
        "--title",
        "a & b",
        "--description",
        "*d*",
        "--expires",
        "30d",
        "--label",
        "job=ci",
        "--label",
        "branch=x y",
        "--name",
        "n.folded",
        "--password-file",
        secret,
    )
    assert result.returncode == 0, result.log
    query = fake.requests[-1][1].partition("?")[2].split("&")
    assert query == [
        "title=a%20%26%20b",
        "description=%2Ad%2A",
        "expires=30d",
        "visibility=password",
        "filename=n.folded",
        "label=job%3Dci",
        "label=branch%3Dx%20y",
    ]
    assert fake.fields[-1]["x-perfolio-password"] == "open sesame"
    assert "sesame" not in fake.requests[-1][1] + result.log


def test_standard_input_and_urls_are_pushed(run, fake, stacks):
    assert run("push", "-", input=FOLDED).returncode == 0
    result = run("push", fake.url + "/stacks.folded")
    assert result.returncode == 0, result.log
    assert list(fake.shares.values()) == [FOLDED, FOLDED]


def test_seconds_are_passed_on_to_a_pprof_url(run, fake):
    result = run("push", "--seconds", "7", fake.url + "/debug/pprof/profile?x=1")
    assert ("GET", "/debug/pprof/profile?x=1&seconds=7") in fake.requests
    assert result.returncode == 7 and "is empty" in result.log


def test_seconds_replace_those_of_the_url(run, fake):
    run("push", "--seconds=7", fake.url + "/debug/pprof/profile?seconds=90&x=1#top")
    assert fake.requests == [("GET", "/debug/pprof/profile?seconds=7&x=1")]
    for wrong in ("0", "5x", "", "-1", "100000000000000000000"):
        assert run("push", f"--seconds={wrong}", fake.url).returncode == 2, wrong
    assert len(fake.requests) == 1


def test_credentials_of_a_url_are_sent_only_to_its_server(run, fake):
    host = fake.url.partition("://")[2]
    result = run("push", f"http://me:hush@{host}/stacks.folded?key")
    assert result.returncode == 0 and "hush" not in result.log, result.log
    assert fake.fields[0]["authorization"].startswith("Basic ")
    assert fake.requests[1][1].endswith("?filename=stacks.folded")
    for path in ("", "/", "/nothing", "/p@th"):
        result = run("push", "--seconds=1", f"http://me:hush@{host}{path}")
        assert result.returncode == 5 and "hush" not in result.log and f"//{host}" in result.log
    assert run("push", "--no-check", f"http://me:hush@{host}/debug/pprof/profile").returncode == 7
    assert "hush" not in str(fake.requests)


def test_a_file_with_an_unusual_name_is_pushed(run, fake, tmp_path):
    for number, name in enumerate([b"a\x1b[31mb", b"caf\xe9", b"x" * 255, "größe".encode()]):
        with open(os.path.join(os.fsencode(tmp_path), name), "wb") as file:
            file.write(FOLDED)
        result = run("push", os.fsdecode(os.path.join(os.fsencode(tmp_path), name)))
        assert result.returncode == 0 and "\x1b" not in result.log, result.log
        sent = fake.requests[number][1].partition("filename=")[2]
        assert sent == ["a%3F%5B31mb", "caf%3F", "x" * 255, "gr%C3%B6%C3%9Fe"][number]


def test_unreadable_secrets_are_reported(run, fake, stacks, tmp_path):
    long = tmp_path / "long"
    long.write_bytes(b"s" * 5000)
    result = run("push", "--password-file", long, stacks)
    assert result.returncode == 7 and "too long" in result.log
    result = run("push", "--password-file", tmp_path, stacks)
    assert result.returncode == 1 and "Is a directory" in result.log
    assert fake.requests == []


def test_a_failing_file_does_not_stop_the_others(run, stacks, tmp_path):
    result = run("push", tmp_path / "missing", stacks)
    assert result.returncode == 5 and result.out.count("\n") == 1 and "missing" in result.log


def test_delete_and_get_continue_after_a_failed_item(run, fake, stacks, tmp_path):
    urls = run("push", stacks, stacks).out.split()
    stranger = f"{fake.url}/p/{'B' * 22}"
    result = run("delete", urls[0], stranger, "no link", urls[1])
    assert result.returncode == 4 and "not all items were deleted" in result.log, result.log
    assert fake.count("DELETE", "shares") == 2 and stranger in result.log
    assert run("delete", "no link", stranger).returncode == 2
    result = run("get", stranger, urls[1], environment={"PERFOLIO_RETRIES": "0"})
    assert result.returncode == 5 and "not all items were downloaded" in result.log
    assert fake.count("GET", urls[1][-22:]) == 1 and stranger in result.log


def test_standard_input_may_be_named_only_once(run, fake, stacks):
    for arguments in (
        ["push", "-", "-"],
        ["push", "-", stacks, "-"],
        ["merge", "-", "-"],
        ["diff", "-", "-"],
        ["diff", "--local", "-", "-"],
        ["diff", "--local", "-", stacks, "--password-file", "-"],
        ["top", "-", "--password-file", "-"],
        ["push", "--merge", "-", "--password-file=-"],
    ):
        result = run(*arguments, input=b"secret\n" + FOLDED)
        assert result.returncode == 2 and "standard input" in result.log, arguments
        assert result.out == ""
    assert fake.requests == []


# ---- exit codes ----


def test_exit_codes_identify_the_kind_of_failure(run, fake, stacks, tmp_path):
    bad = tmp_path / "bad.pb.gz"
    bad.write_bytes(b"\x1f\x8b\x08\x00rubbish")
    empty = tmp_path / "empty"
    empty.touch()
    once = {"PERFOLIO_RETRIES": "0"}
    assert run("push").returncode == 2
    assert run("nonsense").returncode == 2
    assert run("push", "--visibility", "everyone", stacks).returncode == 2
    assert run("push", "--password-file", "-", "-").returncode == 2
    assert run("push", "--visibility", "password", stacks).returncode == 2
    assert run("push", stacks, url="").returncode == 2
    assert run("push", stacks, url="ftp://host").returncode == 2
    assert (
        run("push", stacks, url=f"http://127.0.0.1:{free_port()}", environment=once).returncode == 3
    )
    assert run("get", "A" * 22).returncode == 5
    assert run("get", "no link").returncode == 2
    assert run("push", tmp_path / "missing").returncode == 5
    assert run("push", bad).returncode == 7
    assert run("push", empty).returncode == 7
    assert run("push", tmp_path).returncode == 7
    assert fake.count("POST", "shares") == 0
    for status, expected in [
        (401, 4),
        (403, 4),
        (404, 5),
        (410, 5),
        (413, 6),
        (400, 7),
        (409, 1),
        (500, 1),
        (503, 3),
        (429, 6),
    ]:
        fake.failures = [(status, ())]
        assert run("push", stacks, environment=once).returncode == expected, status


def test_no_check_sends_files_that_are_not_profiles(run, fake, tmp_path):
    rubbish = tmp_path / "rubbish"
    rubbish.write_bytes(b"\x00\x01\x02")
    refused = run("push", rubbish)
    assert refused.returncode == 7 and "--no-check" in refused.log and not fake.shares
    assert run("push", "--no-check", rubbish).returncode == 0
    assert list(fake.shares.values()) == [b"\x00\x01\x02"]


def test_a_full_disk_on_standard_output_is_an_error(run, home, fake, stacks):
    with open("/dev/full", "wb") as full:
        result = subprocess.run(
            [str(PERFOLIO), "push", str(stacks)],
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=60,
            env={"HOME": str(home), "PERFOLIO_URL": fake.url},
        )
    assert result.returncode == 1 and b"standard output" in result.stderr


def without_reader(home, fake, folder, *arguments):
    """Runs a command with standard output connected to a pipe whose reading end is closed."""
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "wb") as closed:
        return subprocess.run(
            [str(PERFOLIO), *map(str, arguments)],
            stdout=closed,
            timeout=60,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            cwd=folder,
            env={"HOME": str(home), "PATH": os.environ["PATH"], "PERFOLIO_URL": fake.url},
        )


def test_a_command_ends_by_sigpipe_without_a_message_if_its_output_is_closed(
    run, home, fake, stacks, tmp_path, monkeypatch
):
    link = run("push", stacks).out.strip()
    monkeypatch.setattr(
        Handler, "do_GET", lambda self: self.reply(200, {"filename": "downloaded.folded"})
    )
    copy = tmp_path / "copy.folded"
    copy.write_bytes(stacks.read_bytes())
    for arguments in (
        ["top", stacks],
        ["top", "--json", stacks],
        ["diff", "--local", stacks, copy],
        ["get", link, "-o", "-"],
        ["get", link],
        ["merge", "-q", stacks, stacks, "-o", "-"],
        ["list", "--local"],
        ["version"],
        ["help"],
        ["completion", "bash"],
        ["admin", "--help"],
        ["top", "--help"],
        ["diff", "--usage"],
    ):
        ended = without_reader(home, fake, tmp_path, *arguments)
        assert (ended.returncode, ended.stderr.decode()) == (-signal.SIGPIPE, ""), arguments


def test_a_push_with_closed_output_completes_and_stores_its_tokens(run, home, fake, stacks):
    ended = without_reader(home, fake, home, "push", "-q", stacks, stacks)
    assert (ended.returncode, ended.stderr.decode()) == (-signal.SIGPIPE, "")
    assert len(fake.shares) == 2
    listed = run("list", "--local").out
    assert all(identity in listed for identity in fake.shares)


def test_a_long_output_that_is_cut_ends_without_a_message(home, tmp_path):
    file = tmp_path / "many.folded"
    file.write_text(
        "".join(f"main;a_function_with_a_long_name_{i} {i + 1}\n" for i in range(20000))
    )
    ended = subprocess.run(
        [
            "bash",
            "-c",
            '"$0" top --limit 0 "$1" | head -n 1; ' 'echo "${PIPESTATUS[0]}"',
            str(PERFOLIO),
            str(file),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        env={"HOME": str(home), "PATH": os.environ["PATH"]},
    )
    assert ended.stderr == "" and ended.stdout.splitlines()[-1] == "141"


@pytest.mark.parametrize("url", ["ftp://x/y", "file:///etc/hostname", "s3+x://bucket/key"])
def test_urls_of_unsupported_schemes_are_refused(run, fake, stacks, url):
    for command in (["push"], ["top"], ["merge", stacks], ["diff", stacks]):
        result = run(*command, url)
        assert result.returncode == 7, result.log
        assert url in result.log and "http and https only" in result.log
        assert "No such file" not in result.log and not fake.shares


@pytest.mark.parametrize(
    "kind, body, message",
    [
        (
            "text/html; charset=utf-8",
            "<!doctype html>\n<title>Not here</title>",
            "it has no profile at this path",
        ),
        ("", "<html>Not here</html>", "it has no profile at this path"),
        ("Text/Plain", "profiling is in use already\nmore\n", "profiling is in use already"),
        ("text/plain", "", "it has no profile at this path"),
        ("application/problem+json", '{"title":"Gone","detail":"It expired."}', "It expired."),
        ("application/problem+json", "[", "it has no profile at this path"),
    ],
)
def test_a_url_without_a_profile_is_reported_in_one_line(
    run, fake, monkeypatch, kind, body, message
):
    def refuse(self):
        self.send_response(404)
        if kind:
            self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    monkeypatch.setattr(Handler, "do_GET", refuse)
    result = run("push", f"{fake.url}/nope")
    assert result.returncode == 5
    assert result.log == f"perfolio push: error: {fake.url}/nope returned status 404: {message}\n"


# ---- retries ----


def test_push_waits_for_retry_after_before_it_retries(run, fake, stacks):
    fake.failures = [(503, [("Retry-After", "1")]), (429, [("Retry-After", "1")])]
    begin = time.monotonic()
    result = run("push", stacks)
    assert result.returncode == 0, result.log
    assert time.monotonic() - begin >= 2
    assert len(fake.shares) == 1 and fake.count("POST", "shares") == 3
    assert result.out.count("\n") == 1 and "trying again" in result.log


def test_push_gives_up_if_retry_after_is_too_long(run, fake, stacks):
    fake.failures = [(503, [("Retry-After", "3600")])]
    result = run("push", stacks)
    assert result.returncode == 3 and fake.count("POST", "shares") == 1
    assert "3600 s" in result.log


def test_a_push_with_a_lost_response_is_repeated_with_its_key(run, fake, stacks):
    fake.lose_responses_of = ["filename=stacks", "filename=second"]
    second = stacks.with_name("second")
    second.write_bytes(FOLDED)
    result = run("push", stacks, second)
    assert result.returncode == 0 and result.out.count("\n") == 2, result.log
    assert fake.count("POST", "shares") >= 4 and len(fake.shares) == 2
    keys = [fields["idempotency-key"] for fields in fake.fields]
    assert len(set(keys)) == 2 and all(re.fullmatch(r"[0-9A-Za-z]{22}", key) for key in keys)
    fake.failures = [(502, ())]
    assert run("push", stacks).returncode == 0
    assert len(fake.shares) == 3


def test_a_post_without_a_key_is_not_repeated_after_a_lost_response(run, fake):
    fake.cut_after_request = 1
    result = run("admin", "tenant", "create", "acme", token=TOKEN)
    assert result.returncode == 3 and fake.count("POST", "tenants") == 1
    assert "outcome is not known" in result.log
    assert "idempotency-key" not in fake.fields[-1]


def test_reads_are_repeated_after_a_broken_connection(run, fake):
    fake.cut_after_request = 1
    result = run("login", fake.url, "--anonymous")
    assert result.returncode == 0, result.log
    assert fake.count("GET", "session") == 2
    fake.cut_after_request = 2
    assert run("login", fake.url, "--anonymous").returncode == 3
    fake.cut_after_request = 2
    result = run("login", fake.url, "--anonymous", environment={"PERFOLIO_RETRIES": "2"})
    assert result.returncode == 0, result.log
    fake.failures = [(503, [("Retry-After", "1")])] * 2  # the server sends the delay
    assert run("login", fake.url, "--anonymous").returncode == 0


def test_a_refused_connection_fails_at_once(run, stacks):
    url = f"http://127.0.0.1:{free_port()}"
    link = f"{url}/p/{'A' * 22}"
    for arguments in (
        ["list"],
        ["get", link],
        ["top", link],
        ["delete", link],
        ["merge", "-o", "-", link],
        ["diff", link, link[:-1] + "B"],
        ["login", "--anonymous"],
        ["admin", "audit"],
        ["push", stacks],
        ["push", "--series", "a=b", stacks],
    ):
        result = run(*arguments, url=url, token=TOKEN)
        assert result.returncode == 3 and "trying again" not in result.log, result.log
        assert (
            f"{url}:" in result.log and "the address in PERFOLIO_URL is correct" in result.log
        ), result.log
    assert "the address in the link is correct" in run("top", link).log
    retried = run("top", link, environment={"PERFOLIO_RETRIES": "1"})
    assert retried.returncode == 3 and retried.log.count("trying again") == 1


def test_an_upload_waits_until_the_server_is_back(home, stacks):
    port = free_port()
    process = start(home, f"http://127.0.0.1:{port}", "push", stacks, PERFOLIO_RETRIES="5")
    failures = 0
    while failures < 2:
        line = process.stderr.readline()
        assert line, "it gave up"
        failures += b"trying again" in line
    server = FakeServer(port)
    _, log = process.communicate(timeout=60)
    server.close()
    assert process.returncode == 0, log
    assert len(server.shares) == 1


def test_a_redirected_push_is_not_retried(run, fake, stacks):
    fake.failures = [(301, [("Location", "https://elsewhere.example/")])]
    result = run("push", stacks)
    assert result.returncode == 3 and "trying again" not in result.log, result.log
    assert len(fake.requests) == 1


# ---- uploads in parts ----


def test_large_files_are_uploaded_in_parts_and_stored_unchanged(run, fake, tmp_path):
    large = make_large(tmp_path / "large.folded")
    result = run("push", large)
    assert result.returncode == 0, result.log
    assert list(fake.shares.values()) == [large.read_bytes()]
    assert fake.count("PUT", "parts") == 3 and fake.count("POST", "complete") == 1
    tokens = [
        f.get("x-perfolio-upload-token")
        for f, (m, _) in zip(fake.fields, fake.requests)
        if m == "PUT"
    ]
    assert tokens == ["u" * 43] * 3


def test_parts_survive_broken_connections_in_one_run(run, fake, tmp_path):
    large = make_large(tmp_path / "large.folded")
    proxy = CuttingProxy(fake.server_address[1], [6 << 20, 1 << 20, None])
    result = run("push", large, url=f"http://127.0.0.1:{proxy.port}")
    proxy.close()
    assert result.returncode == 0, result.log
    assert list(fake.shares.values()) == [large.read_bytes()]
    assert "trying again" in result.log


def test_an_interrupted_upload_resumes_at_the_first_missing_part(run, fake, home, tmp_path):
    large = make_large(tmp_path / "large.folded")
    proxy = CuttingProxy(fake.server_address[1], [5 << 20])
    proxied = f"http://127.0.0.1:{proxy.port}"
    broken = run("push", large, url=proxied, environment={"PERFOLIO_RETRIES": "0"})
    assert broken.returncode == 3 and broken.out == "" and "again to continue" in broken.log
    state = list((home / ".local/state/perfolio/uploads").iterdir())
    assert len(state) == 1 and stat.S_IMODE(state[0].stat().st_mode) == 0o600
    assert len(fake.uploads["U" * 21 + "0"]["parts"]) == 1

    renamed = large.rename(tmp_path / "renamed.folded")
    before = len(fake.requests)
    result = run("push", renamed, url=proxied)
    proxy.close()
    assert result.returncode == 0, result.log
    assert "resuming an interrupted upload" in result.log
    assert len(fake.uploads) == 1
    puts = [path for method, path in fake.requests[before:] if method == "PUT"]
    assert [path[-1] for path in puts] == ["1", "2"]
    assert list(fake.shares.values()) == [renamed.read_bytes()]
    assert not list((home / ".local/state/perfolio/uploads").iterdir())


def test_an_upload_unknown_to_the_server_starts_again(run, fake, tmp_path):
    large = make_large(tmp_path / "large.folded")
    proxy = CuttingProxy(fake.server_address[1], [5 << 20])
    proxied = f"http://127.0.0.1:{proxy.port}"
    run("push", large, url=proxied, environment={"PERFOLIO_RETRIES": "0"})
    fake.uploads.clear()
    result = run("push", large, url=proxied)
    proxy.close()
    assert result.returncode == 0, result.log
    assert list(fake.shares.values()) == [large.read_bytes()]


def test_a_lost_response_to_complete_does_not_create_two_shares(run, fake, tmp_path):
    large = make_large(tmp_path / "large.folded")
    fake.lose_responses_of = ["/complete", "/complete"]
    assert run("push", large).returncode == 0
    assert len(fake.shares) == 1 and fake.count("POST", "complete") == 3


def test_complete_is_retried_during_another_completion_only(run, fake, tmp_path):
    large = make_large(tmp_path / "large.folded")
    fake.conflicts = [("another completes it", [("Retry-After", "1")])]
    assert run("push", large).returncode == 0
    assert len(fake.shares) == 1 and fake.count("POST", "complete") == 2
    larger = make_large(tmp_path / "larger.folded")
    fake.conflicts = [("1 of 3 parts are missing: 1", [])] * 2
    result = run("push", larger)
    assert result.returncode != 0 and "1 of 3 parts are missing" in result.log, result.log
    assert fake.count("POST", "complete") == 3 and "again to continue" in result.log


def test_a_push_after_a_lost_response_finds_the_share(run, fake, tmp_path):
    large = make_large(tmp_path / "large.folded")
    fake.lose_responses_of = ["/complete", "/complete"]  # libcurl repeats once by itself
    assert run("push", large, environment={"PERFOLIO_RETRIES": "0"}).returncode == 3
    puts = fake.count("PUT", "parts")
    result = run("push", large)
    assert result.returncode == 0, result.log
    assert len(fake.shares) == 1 and fake.count("PUT", "parts") == puts
    assert list(fake.shares)[0] in result.out


# ---- interrupts ----


def start(home, url, *arguments, **environment):
    def restore_signals():  # ignored in a shell's background jobs, or under nohup
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)

    return subprocess.Popen(
        [str(PERFOLIO), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=restore_signals,
        env={"HOME": str(home), "PERFOLIO_URL": url, **environment},
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_download_leaves_nothing_behind(home, fake, monkeypatch, tmp_path, number):
    done = threading.Event()

    def trickle(self):
        self.send_response(200)
        self.send_header("Content-Length", "100000")
        self.end_headers()
        self.wfile.write(b"x" * 50000)
        done.wait(120)

    monkeypatch.setattr(Handler, "do_GET", trickle)
    folder = tmp_path / "folder"
    folder.mkdir()
    process = start(home, fake.url, "get", "A" * 22, "-o", folder / "file")
    while not any(file.stat().st_size for file in folder.iterdir()):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(number)
    assert process.wait(120) == -number
    done.set()
    assert list(folder.iterdir()) == []


def test_an_interrupted_upload_prints_how_to_resume_it(run, home, fake, monkeypatch, tmp_path):
    large = make_large(tmp_path / "large.folded")
    reached, done = threading.Event(), threading.Event()

    def hang(self):
        if self.path.endswith("/parts/1") and not reached.is_set():
            reached.set()
            done.wait(120)
            self.close_connection = True
        else:
            self.do_any()

    monkeypatch.setattr(Handler, "do_PUT", hang)
    process = start(home, fake.url, "push", large)
    assert reached.wait(120)
    process.send_signal(signal.SIGINT)
    out, log = process.communicate(timeout=120)
    done.set()
    assert process.returncode == -signal.SIGINT and out == b""
    assert f"push {large} again to continue\n" in log.decode()
    result = run("push", large)
    assert result.returncode == 0 and "resuming an interrupted upload" in result.log
    assert list(fake.shares.values()) == [large.read_bytes()]


def test_an_ignored_signal_stays_ignored(home, fake, monkeypatch, stacks):
    reached, done = threading.Event(), threading.Event()

    def wait(self):
        reached.set()
        done.wait(120)
        self.do_any()

    monkeypatch.setattr(Handler, "do_POST", wait)
    process = subprocess.Popen(
        [str(PERFOLIO), "push", "-q", str(stacks)],
        stdout=subprocess.PIPE,
        env={"HOME": str(home), "PERFOLIO_URL": fake.url},
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    assert reached.wait(120)
    process.send_signal(signal.SIGHUP)
    done.set()
    assert process.communicate(timeout=120)[0].count(b"\n") == 1 and process.returncode == 0


def test_a_broken_download_keeps_the_earlier_content_of_standard_output(
    home, fake, monkeypatch, tmp_path
):
    def cut(self):
        self.server.requests.append(("GET", self.path))
        self.send_response(200)
        self.send_header("Content-Length", "100")
        self.end_headers()
        self.wfile.write(b"half")
        self.close_connection = True

    monkeypatch.setattr(Handler, "do_GET", cut)
    target = tmp_path / "all"
    target.write_bytes(b"what was there before\n")
    with open(target, "ab") as out:
        result = subprocess.run(
            [str(PERFOLIO), "get", "-o", "-", "A" * 22],
            stdout=out,
            stderr=subprocess.PIPE,
            timeout=60,
            env={"HOME": str(home), "PERFOLIO_URL": fake.url},
        )
    assert result.returncode == 3 and b"standard output already contains a part" in result.stderr
    assert target.read_bytes() == b"what was there before\nhalf" and len(fake.requests) == 1


def test_a_file_truncated_while_it_is_read_is_an_error(home, tmp_path):
    file = make_large(tmp_path / "shrinking.folded", 20 * 1000 * 1000)
    content = file.read_bytes()
    seen = set()
    for _ in range(40):
        file.write_bytes(content)
        process = subprocess.Popen(
            [str(PERFOLIO), "top", str(file)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={"HOME": str(home)},
        )
        maps = pathlib.Path("/proc", str(process.pid), "maps")
        while process.poll() is None and file.name not in maps.read_text():
            pass
        os.truncate(file, 4096)
        log = process.communicate(timeout=60)[1]
        seen.add(process.returncode)
        assert process.returncode in (0, 1), log  # 0: the program had read all
        assert process.returncode == 0 or b"became shorter" in log, log
        if 1 in seen:
            break
    assert 1 in seen


def test_closed_standard_files_are_errors_and_never_reused(home, fake, stacks, run):
    environment = {"HOME": str(home), "PERFOLIO_URL": fake.url}

    def shell(command):
        return subprocess.run(
            ["sh", "-c", command, str(PERFOLIO), str(stacks)],
            timeout=60,
            capture_output=True,
            env=environment,
        )

    result = shell('"$0" push "$1" >&-')
    assert result.returncode == 1 and b"standard output" in result.stderr
    assert shell('"$0" merge -o - "$1" >&-').returncode == 1
    assert shell('"$0" push - <&-').returncode == 1
    result = shell('"$0" push "$1" 2>&-')
    assert result.returncode == 0 and result.stdout.count(b"\n") == 1
    assert stacks.read_bytes() == FOLDED


# ---- secrets ----


def test_delete_uses_the_token_stored_by_push(run, fake, home, stacks):
    url = run("push", stacks).out.strip()
    kept = list((home / ".local/state/perfolio/shares").iterdir())
    assert len(kept) == 1 and stat.S_IMODE(kept[0].stat().st_mode) == 0o600
    assert stat.S_IMODE(kept[0].parent.stat().st_mode) == 0o700
    result = run("delete", url)
    assert result.returncode == 0, result.log
    assert result.out == "" and not list(kept[0].parent.iterdir())
    again = run("delete", url)
    assert again.returncode == 4 and "--token" in again.log
    assert run("delete", url, "--token", "e" * 43).returncode == 4
    assert run("delete", f"{url}/delete#{'d' * 43}").returncode == 0


def test_stored_delete_tokens_are_sent_only_to_their_server(run, fake, stacks):
    url = run("push", stacks).out.strip()
    stranger = FakeServer()
    elsewhere = url.replace(fake.url, stranger.url)
    assert run("delete", elsewhere).returncode == 4
    assert stranger.requests == []
    stranger.close()


def test_the_account_token_is_sent_only_to_its_server(run, fake):
    stranger = FakeServer()
    result = run("top", f"{stranger.url}/p/{'A' * 22}", token=TOKEN)
    assert result.returncode == 5
    assert all("authorization" not in fields for fields in stranger.fields)
    run("top", f"{fake.url}/p/{'A' * 22}", token=TOKEN)
    assert fake.fields[-1]["authorization"] == f"Bearer {TOKEN}"
    stranger.close()


def test_tokens_are_never_sent_without_tls(run, stacks):
    result = run("push", stacks, url="http://perfolio.example", token=TOKEN)
    assert result.returncode == 2 and "https" in result.log


def test_login_checks_the_token_and_stores_it_privately(run, fake, home, stacks):
    config = home / ".config/perfolio/config.ini"
    wrong = run("login", fake.url, url="", input=b"pf_wrong\n")
    assert wrong.returncode == 4 and not config.exists()
    right = run("login", fake.url + "/", url="", input=TOKEN.encode() + b"\n")
    assert right.returncode == 0, right.log
    assert right.out == "" and TOKEN not in right.log and "default" in right.log
    assert stat.S_IMODE(config.stat().st_mode) == 0o600
    assert run("push", stacks, url="").returncode == 0
    assert fake.fields[-1]["authorization"] == f"Bearer {TOKEN}"
    config.chmod(0o644)
    assert "chmod 600" in run("push", stacks, url="").log
    other = FakeServer()
    assert run("push", stacks, url=other.url).returncode == 0
    assert all("authorization" not in fields for fields in other.fields)
    other.close()
    assert run("logout", url="").returncode == 0
    assert TOKEN not in config.read_text()
    assert run("push", stacks, url="").returncode == 2


def test_a_token_on_the_command_line_is_refused(run, fake):
    result = run("login", fake.url, TOKEN, url="")
    assert result.returncode == 2 and fake.requests == []


def test_an_invalid_settings_file_is_reported_with_its_line(run, home, stacks):
    config = home / ".config/perfolio/config.ini"
    config.parent.mkdir(parents=True)
    config.write_text("[server]\nthis is no setting\n")
    result = run("push", stacks, url="")
    assert result.returncode == 2 and "config.ini, line 2" in result.log


def test_control_characters_of_an_error_response_are_not_printed(run, fake, stacks):
    fake.failures = [(400, [])]
    Handler_problem = Handler.problem
    try:
        Handler.problem = lambda self, status, name, detail, fields=(): Handler_problem(
            self, status, "invalid", "\x1b]0;owned\x07\x1b[2J", fields
        )
        result = run("push", stacks)
    finally:
        Handler.problem = Handler_problem
    assert result.returncode == 7 and "\x1b" not in result.log and "\x07" not in result.log


def hostile(document):
    """Adds control characters to all texts of a response, and to one name."""
    if isinstance(document, dict):
        changed = {name: hostile(value) for name, value in document.items()}
        return {**changed, "\x1b[2Jname": "x"} if "quotas" in document else changed
    if isinstance(document, list):
        return [hostile(item) for item in document]
    return "\x1b[31m\x9b2J\n\u202e" + document if isinstance(document, str) else document


def test_control_characters_of_responses_are_not_printed(run, fake, monkeypatch, tmp_path):
    share = {
        "id": "A" * 22,
        "url": fake.url + "/p/" + "A" * 22,
        "title": "t",
        "filename": "f",
        "visibility": "public",
        "created_at": "2026-01-01T00:00:00Z",
        "expires_at": "x",
        "markdown": "m",
        "delete_token": "t",
    }
    responses = {
        "list": {"shares": [share]},
        "admin tenant list": {
            "tenants": [
                {"id": 1, "name": "n", "created_at": "c", "usage": {}, "quotas": {"a": "b"}}
            ]
        },
        "admin tenant show 1": {"id": 1, "name": "n", "quotas": {"a": "b"}},
        "admin login-link": {"url": "u"},
        "list --json": {"shares": [share]},
        "top "
        + share["url"]: {
            "sample_type": "s",
            "unit": "u",
            "total": 1,
            "function_count": 1,
            "functions": [{"name": "n", "file": "f", "flat": 1, "cum": 1}],
        },
    }
    for command, response in responses.items():
        monkeypatch.setattr(Handler, "do_any", lambda self: self.reply(200, hostile(response)))
        for name in ("GET", "POST"):
            monkeypatch.setattr(Handler, f"do_{name}", Handler.do_any)
        result = run(*command.split(), token=TOKEN)
        assert result.returncode == 0 and result.out, result.log
        assert not re.search(
            "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", result.out + result.log
        ), command


def test_impossible_numbers_in_a_response_are_clamped(run, fake, monkeypatch):
    response = {
        "sample_type": "s",
        "unit": "",
        "total": 1e300,
        "function_count": -5,
        "functions": [{"name": "n", "file": "f", "flat": -1e300, "cum": 2.5}],
    }
    monkeypatch.setattr(Handler, "do_GET", lambda self: self.reply(200, response))
    result = run("top", "--json", "A" * 22)
    numbers = json.loads(result.out)
    assert numbers["total"] == 2**63 - 1 and numbers["function_count"] == 1
    assert (numbers["functions"][0]["flat"], numbers["functions"][0]["cum"]) == (-(2**63), 2)
    assert run("top", "A" * 22).returncode == 0


def test_a_share_without_a_usable_link_is_an_error(run, fake, stacks, monkeypatch):
    real = Handler.reply
    for change in (
        {"url": "\x1b[2J"},
        {"url": "file:///etc/passwd"},
        {"url": "https://x/\npwned"},
        {"id": "../../x"},
        {"id": ""},
        {"url": None},
    ):
        monkeypatch.setattr(
            Handler,
            "reply",
            lambda self, status, document=None, *rest: real(
                self, status, {**(document or {}), **change}, *rest
            ),
        )
        result = run("push", stacks)
        assert result.returncode == 3 and result.out == "", change
    monkeypatch.setattr(
        Handler,
        "reply",
        lambda self, status, document=None, *rest: real(
            self, status, {**document, "markdown": "[\x1b[2J](x)"}, *rest
        ),
    )
    assert run("push", "--markdown", stacks).out == "[?[2J](x)\n"


# ---- terminals ----


@pytest.mark.long
def test_progress_bar_and_colours_appear_only_on_terminals(home, fake, tmp_path):
    import pty

    large = make_large(tmp_path / "large.folded", 20 * 1000 * 1000)

    def on_terminal(file=large, **variables):
        main, side = pty.openpty()
        environment = {"HOME": str(home), "PERFOLIO_URL": fake.url, "TERM": "xterm", **variables}
        process = subprocess.Popen(
            [str(PERFOLIO), "push", str(file)],
            stdin=side,
            stdout=side,
            stderr=side,
            env=environment,
        )
        os.close(side)
        seen = b""
        while True:
            try:
                piece = os.read(main, 65536)
            except OSError:
                break
            if not piece:
                break
            seen += piece
        os.close(main)
        assert process.wait(60) == 0
        return seen

    assert b"\x1b[41m" not in on_terminal(large.rename(tmp_path / "\x1b[41mlarge"))
    large = (tmp_path / "\x1b[41mlarge").rename(large)
    coloured = on_terminal()
    assert b"\r\x1b[K" in coloured and b"%" in coloured and b"\x1b[34m" in coloured
    assert b"\x1b[34m" not in on_terminal(NO_COLOR="1")


def test_login_prompts_for_the_token_without_echo(home, fake):
    import pty

    def log_in(typed):
        pid, terminal = pty.fork()
        if pid == 0:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # ignored in a shell's background jobs
            os.execve(str(PERFOLIO), ["perfolio", "login", fake.url], {"HOME": str(home)})
        seen = b""
        while b"Token for" not in seen:
            seen += os.read(terminal, 4096)
        while termios.tcgetattr(terminal)[3] & termios.ECHO:
            time.sleep(0.01)
        os.write(terminal, typed)
        while True:
            try:
                piece = os.read(terminal, 4096)
            except OSError:
                break
            if not piece:
                break
            seen += piece
        status = os.waitpid(pid, 0)[1]
        os.close(terminal)
        return status, seen

    status, seen = log_in(TOKEN.encode() + b"\n")
    assert os.waitstatus_to_exitcode(status) == 0 and TOKEN.encode() not in seen, seen
    assert TOKEN in (home / ".config/perfolio/config.ini").read_text()
    status, _ = log_in(b"\x03")
    assert os.waitstatus_to_exitcode(status) == -2


def test_backup_and_restore_run_perfoliod(run, tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir()
    shutil.copy(PERFOLIO, folder / "perfolio")
    environment = {"HOME": "/nonexistent", "PATH": "/nonexistent"}
    missing = subprocess.run(
        [folder / "perfolio", "admin", "backup"], capture_output=True, env=environment
    )
    assert missing.returncode == 5 and b"perfoliod" in missing.stderr
    server = folder / "perfoliod"
    server.write_text('#!/bin/sh\necho "$0 $*"\nexit 42\n')
    server.chmod(0o755)
    result = subprocess.run(
        [folder / "perfolio", "admin", "restore", "--data-dir", "d", "f f"],
        capture_output=True,
        env=environment,
    )
    assert result.returncode == 42
    assert result.stdout.decode() == f"{server} restore --data-dir d f f\n"


@pytest.mark.long
def test_every_admin_command_prints_its_help(run, fake):
    lines = run("admin", "help").out.splitlines()
    assert len(lines) > 40
    for usage, summary in zip(lines[::2], (line.strip() for line in lines[1::2])):
        words = [word for word in usage.split() if re.fullmatch("[a-z][a-z-]+", word)]
        for arguments in (words + ["--help"], words + ["-?"], ["help"] + words):
            result = run("admin", *arguments)
            assert result.returncode == 0 and result.log == "", arguments
            first, second, *rest = result.out.splitlines()
            assert first == f"Usage: perfolio admin {usage.strip()}"
            assert second == f"{summary[0].upper()}{summary[1:]}."
        for option in re.findall(r"--([a-z]+)", usage):
            assert f"--{option}" in "".join(rest), usage
        assert ("--role" in result.out) == ("--role" in usage)
    verbs = run("admin", "token", "--help").out
    assert "token create NAME" in verbs and "tenant" not in re.sub(
        "--tenant|your tenant", "", verbs
    )
    everything = run("admin", "--help")
    assert everything.returncode == 0 and "--scopes" in everything.out
    for unknown in (["nonsense"], ["token", "nonsense"]):
        result = run("admin", *unknown, "--help")
        assert result.returncode == 2 and result.out == "", unknown
    assert fake.requests == []


def test_completion_files_equal_the_output_of_the_program():
    folder = pathlib.Path(__file__).resolve().parents[3] / "deploy" / "completion"
    for shell, name in [("bash", "perfolio.bash"), ("zsh", "_perfolio"), ("fish", "perfolio.fish")]:
        printed = subprocess.run(
            [str(PERFOLIO), "completion", shell],
            capture_output=True,
            check=True,
            env={"HOME": "/nonexistent"},
        ).stdout
        assert printed == (folder / name).read_bytes(), f"run: perfolio completion {shell}"


# ---- advice ----


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["psuh"], 'unknown command "psuh"; did you mean push?'),
        (["frobnicate"], 'unknown command "frobnicate"; run perfolio help for a list'),
        (
            ["push", "--visiblity=team", "x"],
            "unrecognized option '--visiblity'; did you mean --visibility?",
        ),
        (
            ["query", "cpu", "--strat", "yesterday"],
            "unrecognized option '--strat'; did you mean --start?",
        ),
        (["query", "cpu", "--focsu=a"], "unrecognized option '--focsu'; did you mean --focus?"),
        (["record", "--visiblity=team", "--", "true"], "did you mean --visibility?"),
        (["push", "--frobnicate", "x"], "unrecognized option '--frobnicate'"),
        (["admin", "tokn", "list"], 'has no command "tokn"; did you mean token?'),
        (["admin", "token", "creat"], 'has no command "token creat"; did you mean create?'),
        (["admin", "token"], "admin token needs a command; perfolio admin help token lists them"),
        (["admin", "tenant", "list", "--jsno"], "did you mean --json?"),
        (["debuginfo", "uplaod", "x"], "did you mean upload?"),
    ],
)
def test_misspelt_commands_and_options_are_reported_with_a_suggestion(run, arguments, message):
    result = run(*arguments)
    assert result.returncode == 2 and message in result.log, result.log


def test_arguments_that_look_like_misspelt_options_are_accepted(run, fake, stacks):
    assert run("push", "--title", "--visiblity", stacks).returncode == 0
    recorded = run("record", "-d", "1", "--", "true", "--visiblity")
    assert "did you mean" not in recorded.log


def test_the_agent_prints_its_version_and_reports_misspelt_options(tmp_path):
    def agent(*arguments):
        return subprocess.run(
            [str(PERFOLIO.with_name("perfolio-agent")), *arguments],
            capture_output=True,
            text=True,
            env={"HOME": str(tmp_path)},
            timeout=60,
        )

    for option in ("--version", "-V"):
        assert re.fullmatch(r"perfolio-agent \d+\.\d+\.\d+(-dev)?\n", agent(option).stdout)
    misspelt = agent("--sever=https://localhost")
    assert misspelt.returncode == 2 and "did you mean --server?" in misspelt.stderr


def test_server_texts_that_advice_rewrites_still_exist():
    root = pathlib.Path(__file__).resolve().parents[3]
    table = (root / "cli/advice.c").read_text().partition("} words[] = {")[2].partition("\n};")[0]
    entries = re.findall(r'\{((?:"(?:\\.|[^"\\])*"\s*)+),', table)
    # The search joins adjacent string literals of the sources first.
    sources = "".join(
        re.sub(r'"\s*\n\s*"', "", path.read_text()) for path in (root / "api").rglob("*.c")
    )
    texts = ["".join(re.findall(r'"((?:\\.|[^"\\])*)"', entry)) for entry in entries]
    assert len(texts) > 8 and [text for text in texts if text not in sources] == []
