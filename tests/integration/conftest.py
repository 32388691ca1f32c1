"""Fixtures for tests against a real perfoliod with its own real PostgreSQL.

    def test_something(server):            one server for the whole session, default settings
        response = server.api().get("/api/v1/session")
    def test_other(shared_server):         one for the tests of a file that name the same flags
        server = shared_server("--jobs-interval", "1s")
    def test_third(start_server):          one of its own, stopped at the end of the test
        server = start_server("--anonymous-sharing", "no")
    def test_more(admin, anonymous):       admin: Api with the token of D/admin.token

The servers of a session and of a file are shared: a test that changes settings, fills quotas,
kills processes or counts all objects uses start_server. The first start creates a cluster; later
starts copy it, which takes a quarter of a second. Data folders are in memory (see home_of_folders);
a module that needs a disk overrides data_home. With PERFOLIO_TEST_S3_ENDPOINT and the related
variables, profiles are stored in a bucket (stored.py; make test-s3 sets them). BUILD chooses
build/<BUILD>/perfoliod. Started as root, the servers drop their privileges as in production.
"""

import fcntl
import functools
import http.client
import json as json_module
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

import pytest

import costs
import stored

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Test files use functions and fixtures of each other, also of those in other folders. Names of test
# files are unique.
sys.path += sorted(map(str, pathlib.Path(__file__).parent.glob("*/")))
BUILD = ROOT / "build" / os.environ.get("BUILD", "release")
PERFOLIOD = BUILD / "perfoliod"
# With sanitizers, the command line tool and the agent may come from another build than the server.
CLIENT_BUILD = ROOT / "build" / os.environ.get("CLIENT_BUILD", BUILD.name)
PERFOLIO = CLIENT_BUILD / "perfolio"
AGENT = CLIENT_BUILD / "perfolio-agent"
# Makes password hashes cheap in servers without sanitizers (tests/preload/cheap_scrypt.c). A test
# that needs the real cost starts its server with environment=REAL_SCRYPT.
CHEAP_SCRYPT = BUILD / "tests" / "preload" / "cheap_scrypt.so"
HAS_CHEAP_SCRYPT = BUILD.name in ("release", "debug", "coverage")
PRELOAD = {}
REAL_SCRYPT = {"LD_PRELOAD": ""}
START_SECONDS = 120 if os.environ.get("BUILD", "release") in ("release", "debug") else 180


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "long: run by make test-long instead of make test (CONTRIBUTING.md)"
    )
    config.addinivalue_line("markers", "crash: run by the step crash of make test-long")
    costs.register(config)


def rest_long(values, count=1):
    """For pytest.mark.parametrize: the first values run in make test, the others, marked long, in
    make test-long."""
    params = [
        value
        if isinstance(value, type(pytest.param()))
        else pytest.param(*(value if isinstance(value, tuple) else (value,)))
        for value in values
    ]
    return params[:count] + [
        pytest.param(*param.values, id=param.id, marks=[*param.marks, pytest.mark.long])
        for param in params[count:]
    ]


class Response:
    """One HTTP response: status, headers (lower-case names), body."""

    def __init__(self, status, fields, body):
        self.status = status
        self.fields = fields
        self.headers = {}
        for name, value in fields:
            self.headers.setdefault(name.lower(), value)
        self.body = body
        assert b"SQLSTATE" not in body, body  # PostgreSQL's messages belong in the log only

    @property
    def text(self):
        return self.body.decode("utf-8")

    def json(self):
        return json_module.loads(self.body)

    def __repr__(self):
        return f"<{self.status} {self.headers.get('content-type')} {self.body[:500]!r}>"


class Api:
    """A small HTTPS client that keeps its connection; not for use from several threads."""

    def __init__(self, server, token=None, cookies=None, timeout=120):
        self.server = server
        self.token = token
        self.cookies = dict(cookies or {})
        self.timeout = timeout
        self.connection = None

    def with_token(self, token):
        return Api(self.server, token, timeout=self.timeout)

    def request(self, method, path, body=None, json=None, query=None, headers=None, token=None):
        """query: dict or list of pairs; json: sent as JSON; token overrides the client's own."""
        fields = {}
        if query:
            path += ("&" if "?" in path else "?") + urllib.parse.urlencode(query, doseq=True)
        if json is not None:
            body = json_module.dumps(json).encode()
            fields["Content-Type"] = "application/json"
        token = token if token is not None else self.token
        if token:
            fields["Authorization"] = "Bearer " + token
        if self.cookies:
            fields["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        fields.update(headers or {})
        if isinstance(body, str):
            body = body.encode()
        for is_retry in (False, True):
            if self.connection is None:
                self.connection = self.server.connect(self.timeout)
            try:
                self.connection.request(method, path, body=body, headers=fields)
                raw = self.connection.getresponse()
                response = Response(raw.status, raw.getheaders(), raw.read())
                break
            except (http.client.RemoteDisconnected, ConnectionError, ssl.SSLEOFError):
                # The server may have closed a kept connection meanwhile, but not a fresh one.
                was_kept = self.connection is not None and getattr(self.connection, "was_used", 0)
                self.close()
                if is_retry or not was_kept:
                    raise
        self.connection.was_used = True
        if response.headers.get("connection", "").lower() == "close":
            self.close()
        self.take_cookies(response)
        return response

    def take_cookies(self, response):
        for name, value in response.fields:
            if name.lower() == "set-cookie":
                pair, _, attributes = value.partition(";")
                key, _, text = pair.partition("=")
                if text and "max-age=0" not in attributes.lower():
                    self.cookies[key.strip()] = text.strip()
                else:
                    self.cookies.pop(key.strip(), None)

    def get(self, path, **options):
        return self.request("GET", path, **options)

    def post(self, path, body=None, **options):
        return self.request("POST", path, body=body, **options)

    def put(self, path, body=None, **options):
        return self.request("PUT", path, body=body, **options)

    def patch(self, path, body=None, **options):
        return self.request("PATCH", path, body=body, **options)

    def delete(self, path, **options):
        return self.request("DELETE", path, **options)

    def close(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None


class Server:
    """A perfoliod process tree and its data folder."""

    def __init__(self, data_dir, arguments=(), environment=None, program=None, objects=None):
        """objects: a stored.Bucket; by default the store that the environment names."""
        self.data_dir = pathlib.Path(data_dir)
        self.arguments = list(arguments)
        self.environment = dict(environment or {})
        self.objects = objects or self.default_objects()
        if isinstance(self.objects, stored.Bucket):
            self.arguments += self.objects.flags()
            self.environment.update(self.objects.environment())
        self.program = program or PERFOLIOD
        self.port = free_port()
        self.url = f"https://localhost:{self.port}"
        self.log_path = self.data_dir.parent / (self.data_dir.name + ".log")
        self.process = None
        self.sessions = {}  # connections that cursor() keeps, by thread and role
        self.tls_context, self.tls_version = None, None

    def default_objects(self):
        if stored.is_in_bucket():
            return stored.Bucket(f"{self.data_dir.parent.name}/{self.data_dir.name}")
        return stored.Folder(self.data_dir / "objects")

    @property
    def ca_file(self):
        return self.data_dir / "tls" / "ca.crt"

    @property
    def token(self):
        return (self.data_dir / "admin.token").read_text().strip()

    def log(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def database_log(self):
        return (self.data_dir / "postgres.log").read_text(errors="replace")

    def launch(self):
        """Starts the process and does not wait."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PERFOLIO_")}
        environment["PERFOLIO_DEBUGINFOD_URLS"] = "off"  # tests send no requests to the internet
        # All tests sign in from one address; test_passwords_per_address.py lowers the limit again.
        environment["PERFOLIO_PASSWORDS_PER_MINUTE"] = "1000000"
        environment.update(PRELOAD)
        environment.update(self.environment)
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [
                    self.program,
                    "serve",
                    "--data-dir",
                    self.data_dir,
                    "--listen",
                    f"localhost:{self.port}",
                    *self.arguments,
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
            )
        return self

    def start(self):
        self.launch()
        self.wait_ready()
        return self

    def wait_ready(self, seconds=START_SECONDS):
        deadline = time.monotonic() + seconds
        reason = None
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                pytest.fail(
                    f"perfoliod ended with {self.process.returncode}:\n{self.log()[-4000:]}"
                )
            try:
                if self.is_ready():
                    return
            except (OSError, http.client.HTTPException) as error:
                reason = error
            time.sleep(0.02)
        pytest.fail(f"perfoliod was not ready in {seconds} s ({reason}):\n{self.log()[-4000:]}")

    def is_ready(self):
        if not self.ca_file.exists():
            return False
        connection = self.connect(timeout=5)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        finally:
            connection.close()

    def stop(self, seconds=60):
        """SIGTERM; returns the exit status."""
        self.forget_sessions()
        if self.process is None:
            return 0
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill_all()
            pytest.fail(f"perfoliod did not stop in {seconds} s:\n{self.log()[-4000:]}")

    def restart(self):
        """Empties all caches; profiles of new shares, for example, are cached."""
        self.stop()
        return self.start()

    def kill_all(self):
        """Sends SIGKILL to the supervisor and all its descendants."""
        victims = [self.process.pid, *self.descendants()]
        for pid in victims:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait(60)

    def descendants(self, root=None):
        children = {}
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    stat = pathlib.Path("/proc", entry, "stat").read_text(errors="replace")
                except OSError:
                    continue
                parent = int(stat.rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry))
        found, todo = [], [root or self.process.pid]
        while todo:
            for pid in children.get(todo.pop(), []):
                found.append(pid)
                todo.append(pid)
        return found

    def child_pid(self):
        """The id of the process that serves requests."""
        for pid in self.descendants():
            try:
                arguments = pathlib.Path("/proc", str(pid), "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if len(arguments) > 1 and arguments[1] == b"serve-child":
                return pid
        return None

    def cpu_seconds(self):
        """CPU time of the process that serves requests, which other work on the host does not
        change."""
        stat = pathlib.Path("/proc", str(self.child_pid()), "stat").read_text()
        user, kernel = stat.rpartition(")")[2].split()[11:13]
        return (int(user) + int(kernel)) / os.sysconf("SC_CLK_TCK")

    def postgres_pid(self):
        return int((self.data_dir / "pg" / "postmaster.pid").read_text().split("\n")[0])

    def socket_dir(self):
        return (self.data_dir / "pg" / "postmaster.pid").read_text().split("\n")[4]

    def connect(self, timeout=120):
        """A new http.client connection that trusts only this server's CA."""
        return http.client.HTTPSConnection(
            "localhost", self.port, timeout=timeout, context=self.trust()
        )

    def trust(self):
        """A TLS context that trusts only this server's CA. It is kept, because reading a CA takes
        longer than a request."""
        version = self.ca_file.stat().st_mtime_ns
        if self.tls_version != version:
            self.tls_context = ssl.create_default_context(cafile=str(self.ca_file))
            self.tls_version = version
        return self.tls_context

    def api(self, token=None):
        """A client with the admin's token."""
        return Api(self, token or self.token)

    def anonymous(self):
        return Api(self)

    def database(self, role="perfolio_owner"):
        """A psycopg2 connection to the private cluster, autocommit, in the given role.

        The cluster and the server run as the current user, or the current user is root."""
        import psycopg2

        connection = psycopg2.connect(
            host=self.socket_dir(), dbname="perfolio", user="perfolio_cluster"
        )
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(f"SET SESSION AUTHORIZATION {role}")
        return connection

    def cursor(self, role="perfolio_owner"):
        """A cursor of a connection that is kept. A new connection costs the database more than most
        statements, and tests repeat a statement until it returns the expected rows. Each thread has
        its own connection; no caller may change its settings.
        """
        import psycopg2

        key = threading.get_ident(), role
        if key in self.sessions:
            try:  # the database may have restarted since the last statement
                with self.sessions[key].cursor() as probe:
                    probe.execute("SELECT 1")
            except psycopg2.Error:  # of several classes when the server closes the connection
                del self.sessions[key]
        if key not in self.sessions:
            self.sessions[key] = self.database(role)
        return self.sessions[key].cursor()

    def rows(self, sql, values=None, role="perfolio_owner"):
        """The rows that a statement returns; [] for a statement that returns none."""
        with self.cursor(role) as cursor:
            cursor.execute(sql, values)
            return cursor.fetchall() if cursor.description else []

    def forget_sessions(self):
        while self.sessions:  # a thread of the test may add one meanwhile
            self.sessions.popitem()[1].close()

    def cli(self, *arguments, input=None, environment=None, timeout=120, check=False):
        """Runs build/<BUILD>/perfolio against this server with the admin's token."""
        variables = {k: v for k, v in os.environ.items() if not k.startswith("PERFOLIO_")}
        variables.update(
            PERFOLIO_URL=self.url, PERFOLIO_TOKEN=self.token, PERFOLIO_CA_FILE=str(self.ca_file)
        )
        variables.update(environment or {})
        return subprocess.run(
            [str(PERFOLIO), *map(str, arguments)],
            input=input,
            capture_output=True,
            env=variables,
            timeout=timeout,
            check=check,
        )


def until_refused(send, most):
    """Calls send(number), at most `most` times, until the rate limit refuses a request; returns all
    responses. On a slow host the limit allows more requests."""
    responses = [send(0)]
    while responses[-1].status != 429 and len(responses) < most:
        responses.append(send(len(responses)))
    assert responses[-1].status == 429, [response.status for response in responses]
    return responses


def cpu_seconds(pid):
    """The CPU time that a process has used."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def let_it_run(process, seconds, pid=None):
    """Waits until process, or its descendant pid, has used this many seconds of CPU time more,
    which takes longer on a busy host."""
    end = cpu_seconds(pid or process.pid) + seconds
    deadline = time.monotonic() + 120
    while cpu_seconds(pid or process.pid) < end:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)


def free_port():
    """A port that is free on 127.0.0.1 and ::1. It is below the range of ephemeral ports, so that
    no client socket takes it before the server does."""
    for port in random.sample(range(10240, 32768), 200):
        try:
            for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
                with socket.socket(family) as probe:
                    probe.bind((host, port))
            return port
        except OSError:
            continue
    raise OSError("no free port between 10240 and 32767")


DISK = pathlib.Path("/tmp")


def home_of_folders():
    """/dev/shm if enough memory is free: ext4 takes seconds to create a cluster's 1,400 files where
    as many were removed minutes ago. PERFOLIO_TEST_HOME=/tmp selects the disk instead."""
    home = os.environ.get("PERFOLIO_TEST_HOME")
    if home:
        return pathlib.Path(home)
    memory = pathlib.Path("/dev/shm")
    if not memory.is_mount():
        return DISK
    status = os.statvfs(memory)
    has_space = status.f_bavail * status.f_frsize >= 4 << 30
    free = re.search(r"^MemAvailable:\s+(\d+) kB", pathlib.Path("/proc/meminfo").read_text(), re.M)
    has_space = has_space and int(free[1]) << 10 >= 6 << 30
    return memory if has_space and not status.f_flag & os.ST_NOEXEC else DISK


def make_folder(home=None):
    """A temporary folder that the users that the server drops to can read, unlike those of pytest.
    Its name contains the process id of its owner, which remove_abandoned reads."""
    folder = pathlib.Path(
        tempfile.mkdtemp(prefix=f"perfolio-test-{os.getpid()}-", dir=home or home_of_folders())
    )
    folder.chmod(0o755)
    return folder


def remove_abandoned():
    """Removes the folders of test runs that were killed; nothing else removes them."""
    for home in {DISK, home_of_folders()}:
        for folder in home.glob("perfolio-test-*-*"):
            owner = folder.name.split("-")[2]
            if owner.isdigit() and not os.path.exists(f"/proc/{owner}"):
                shutil.rmtree(folder, ignore_errors=True)


@functools.cache
def make(program):
    """Builds a program or library below BUILD unless it is up to date. Each process runs make once
    per file, because make takes a fifth of a second even if nothing has to be built."""
    subprocess.run(
        ["make", "-s", f"BUILD={BUILD.name}", str(program.relative_to(ROOT))],
        cwd=ROOT,
        check=True,
        stdout=subprocess.DEVNULL,
    )


@pytest.fixture(scope="session")
def session_folder():
    remove_abandoned()
    folder = make_folder()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def cluster_template(session_folder):
    """A data folder whose cluster was created, migrated and stopped cleanly. The processes of
    tests/pytest_batches.py share one template."""
    folder = pathlib.Path(os.environ.get("PERFOLIO_TEST_SESSION", session_folder))
    template = folder / "template"
    preloaded = folder / CHEAP_SCRYPT.name
    with open(folder / "template.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if HAS_CHEAP_SCRYPT:
            if not preloaded.exists():
                make(CHEAP_SCRYPT)
                # The users that servers drop to may not be able to read the source tree.
                shutil.copy(CHEAP_SCRYPT, preloaded)
            PRELOAD["LD_PRELOAD"] = str(preloaded)
        if not template.exists():
            make_template(folder / "making")
            (folder / "making").rename(template)
    return template


def make_template(data_dir):
    # Its objects are always in its folder: a database belongs to one bucket and prefix, and each
    # copy of the template gets another prefix.
    server = Server(data_dir, objects=stored.Folder(data_dir / "objects"))
    server.start()
    # Each copy costs as much CPU time as its files; no server uses these two databases.
    for statement in (
        "UPDATE pg_database SET datistemplate = false WHERE datname = 'template0'",
        "DROP DATABASE template0",
        "DROP DATABASE postgres",
    ):
        server.rows(statement, role="perfolio_cluster")
    assert server.stop() == 0, server.log()[-4000:]
    for name in ("admin.token", "objects", "tls", "run"):
        path = data_dir / name
        if path.is_dir():
            shutil.rmtree(path)
        elif path.exists():
            path.unlink()
    shorten_log(data_dir / "pg")


def shorten_log(cluster):
    """Replaces the first segment of the write-ahead log, 16 MiB, with one of 1 MiB."""
    version, owner = (cluster / "PG_VERSION").read_text().strip(), cluster.stat()
    is_root = os.geteuid() == 0
    subprocess.run(
        [f"/usr/lib/postgresql/{version}/bin/pg_resetwal", "--wal-segsize=1", str(cluster)],
        check=True,
        stdout=subprocess.DEVNULL,
        **({"user": owner.st_uid, "group": owner.st_gid, "extra_groups": []} if is_root else {}),
    )


def copy_template(template, target):
    subprocess.run(["cp", "-a", "--reflink=auto", str(template), str(target)], check=True)


@pytest.fixture(scope="session")
def server(cluster_template, session_folder):
    data_dir = session_folder / "shared"
    copy_template(cluster_template, data_dir)
    instance = Server(data_dir).start()
    yield instance
    assert instance.stop() == 0, instance.log()[-4000:]


@pytest.fixture
def data_home():
    """The folder in which start_server makes its data folders."""
    return home_of_folders()


@pytest.fixture
def start_server(cluster_template, data_home):
    """start_server(*flags, environment={}, is_fresh=False, wait=True) -> Server"""
    folder = make_folder(data_home)
    servers = []

    def start(*arguments, environment=None, is_fresh=False, wait=True, program=None):
        data_dir = folder / f"data{len(servers)}"
        if not is_fresh:
            copy_template(cluster_template, data_dir)
        instance = Server(data_dir, arguments, environment, program)
        servers.append(instance)
        return instance.start() if wait else instance.launch()

    yield start
    for instance in servers:
        instance.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def shared_server(cluster_template):
    """shared_server(*flags) -> Server: one server for all tests of the file that name the same
    flags, which saves most server starts. A test that uses it creates its own tenants and does not
    read data of other tests; it may restart the server.
    """
    folder = make_folder()
    servers = {}

    def share(*flags):
        if flags not in servers:
            data_dir = folder / f"shared{len(servers)}"
            copy_template(cluster_template, data_dir)
            servers[flags] = Server(data_dir, flags).start()
        return servers[flags]

    yield share
    for instance in servers.values():
        assert instance.stop() == 0, instance.log()[-4000:]
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def admin(server):
    """A client of the operator: tenant default with every scope."""
    client = server.api()
    yield client
    client.close()


@pytest.fixture
def anonymous(server):
    client = server.anonymous()
    yield client
    client.close()


@pytest.fixture(scope="session")
def print_report():
    """The output of tests/programs/print_report: bytes for "folded", otherwise parsed JSON."""
    program = BUILD / "tests" / "programs" / "print_report"
    make(program)

    def report(*arguments):
        done = subprocess.run([program, *arguments], check=True, stdout=subprocess.PIPE)
        return done.stdout if arguments[0] == "folded" else json_module.loads(done.stdout)

    return report
