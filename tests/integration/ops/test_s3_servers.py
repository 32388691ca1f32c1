"""perfoliod with its profiles in an S3 bucket.

The tests check errors at start, that database and bucket belong together, and backups; two servers
with one database and one bucket that are killed alternately; and a bucket that fails, is slow or
whose server is killed. In all cases each acknowledged batch counts once, and after background
maintenance a row names each object.

The tests need PERFOLIO_TEST_S3_ENDPOINT and the related variables (make test-s3).
PERFOLIO_CRASH_ROUNDS=100 makes long runs.
"""

import contextlib
import itertools
import os
import pathlib
import random
import subprocess
import sys
import time

import psycopg2
import pytest

import stored
from conftest import DISK, PERFOLIOD, ROOT, Server, make_folder
from people import Browser, Tenant
from test_crash import kill
from test_server import external_database, wait_for  # noqa: F401
from test_store_crash import HOUR, Hurry, check
from test_store_crash import Sender as SenderToOne

sys.path.insert(0, str(ROOT / "tests" / "s3"))
from fault_proxy import FaultProxy  # noqa: E402

pytestmark = pytest.mark.skipif(not stored.is_in_bucket(), reason="needs a bucket: make test-s3")
ROUNDS = int(os.environ.get("PERFOLIO_CRASH_ROUNDS", "6"))
NUMBERS = itertools.count()
FOLDED = b"main;work 7\n"


def new_prefix():
    return f"servers-{os.getpid()}/{next(NUMBERS)}"


def bucket(prefix, **changes):
    changed = {stored.PREFIX + name.upper(): value for name, value in changes.items()}
    return stored.Bucket(prefix, {**os.environ, **changed})


@pytest.fixture
def folder():
    folder = make_folder(DISK)
    yield folder
    subprocess.run(["rm", "-rf", folder], check=True)


@pytest.fixture
def start(folder):
    """start(name, objects, *flags) -> Server, stopped at the end."""
    servers = {}

    def start(name, objects, *flags, wait=True):
        servers[name] = Server(folder / name, flags, objects=objects)
        return servers[name].start() if wait else servers[name].launch()

    yield start
    for server in servers.values():
        server.stop()


def refused(server):
    assert server.process.wait(60) != 0
    log = server.log()
    assert server.environment["AWS_SECRET_ACCESS_KEY"] not in log
    return log


# ---- starting ----


@pytest.mark.parametrize(
    "change, message",
    [
        ({"bucket": "no-such-bucket"}, "there is no such bucket; create it or correct its name"),
        ({"secret_key": "wrong"}, "check the secret key"),
        ({"access_key": "wrong"}, "does not know the access key"),
        ({"endpoint": "http://127.0.0.1:1"}, "127.0.0.1"),
    ],
)
def test_an_unusable_bucket_is_reported_at_start(start, change, message):
    assert message in refused(start("data", bucket(new_prefix(), **change), wait=False))


def test_a_wrong_clock_is_reported_at_start(start):
    with proxy_to_bucket() as proxy:
        proxy.plan(later_fault="skew")
        server = start("data", bucket(new_prefix(), endpoint=proxy.endpoint), wait=False)
        assert "set this machine's clock (NTP)" in refused(server)


def run(*arguments, environment=None):
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PERFOLIO_", "AWS_"))
    }
    return subprocess.run(
        [PERFOLIOD, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**clean, **(environment or {})},
    )


def test_inconsistent_s3_settings_are_refused(folder):
    data = folder / "data"
    result = run("serve", "--data-dir", data, "--s3-prefix", "x")
    assert result.returncode == 2 and "s3-prefix is set, but not s3-bucket" in result.stderr
    result = run("serve", "--data-dir", data, "--s3-bucket", "some")
    assert result.returncode == 2 and "--s3-credentials-file" in result.stderr
    keys = folder / "keys"
    result = run("serve", "--data-dir", data, "--s3-bucket", "some", "--s3-credentials-file", keys)
    assert result.returncode == 2 and str(keys) in result.stderr
    keys.write_text("[default]\naws_access_key_id = a\n")
    result = run("serve", "--data-dir", data, "--s3-bucket", "some", "--s3-credentials-file", keys)
    assert result.returncode == 2 and "aws_secret_access_key" in result.stderr
    assert not data.exists()


def test_keys_are_read_from_a_file_and_appear_nowhere_else(start, folder):
    objects = bucket(new_prefix())
    keys = folder / "keys"
    keys.write_text(
        f"[default]\naws_access_key_id = {objects.access_key}\n"
        f"aws_secret_access_key = {objects.secret_key}\n"
    )
    keys.chmod(0o600)
    server = start("data", objects, "--s3-credentials-file", keys, wait=False)
    server.stop()
    del server.environment["AWS_SECRET_ACCESS_KEY"], server.environment["AWS_ACCESS_KEY_ID"]
    server.start()
    share = server.api().post("/api/v1/shares", FOLDED).json()["id"]
    assert objects.read(f"share/{share}") == FOLDED
    secret = objects.secret_key.encode()
    for pid in [server.process.pid, *server.descendants()]:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            assert secret not in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    environment = pathlib.Path(f"/proc/{server.postgres_pid()}/environ").read_bytes()
    assert secret not in environment and secret.decode() not in server.log()
    assert server.api().get("/metrics").status == 200


# ---- pairs and backups ----


def test_a_database_belongs_to_one_bucket_and_prefix(start, folder):
    first, second = bucket(new_prefix()), bucket(new_prefix())
    server = start("data", first)
    server.api().post("/api/v1/profiles", FOLDED, query={"label": "pod=a"})
    assert first.has("database-id") and server.stop() == 0
    other = start("other", second)
    assert other.stop() == 0
    server.arguments[server.arguments.index(first.prefix)] = second.prefix
    assert "belongs to another bucket" in refused(server.launch())
    server.arguments = []
    assert "--s3-bucket" in refused(server.launch())
    # A database with profiles in its own folder does not accept a bucket, either.
    plain = start("plain", stored.Folder(folder / "plain" / "objects"))
    plain.api().post("/api/v1/profiles", FOLDED, query={"label": "pod=a"})
    assert plain.stop() == 0
    third = bucket(new_prefix())
    plain.arguments, plain.environment = third.flags(), third.environment()
    assert "belongs to another bucket or data folder" in refused(plain.launch())
    assert third.keys() == set()


def fill(server):
    """Stores shares and profiles; returns the ids of the shares."""
    api = server.api()
    shares = [
        api.post("/api/v1/shares", f"main;share{i} {i + 1}\n".encode()).json()["id"]
        for i in range(3)
    ]
    for i in range(4):
        response = api.post(
            "/api/v1/profiles",
            f"main;batch{i} 1\n".encode(),
            query={"label": f"pod=p{i % 2}", "time": 10**18 + i},
        )
        assert response.status == 200, response
    return shares


def responses(server, shares):
    api = server.api()
    found = [api.get(f"/api/v1/shares/{share}/raw").body for share in shares]
    query = {"query": "samples:count", "start": 10**18, "end": 10**18 + 9, "report": "folded"}
    return found + [sorted(api.get("/api/v1/query", query=query).text.splitlines())]


def test_a_backup_is_restored_from_bucket_to_folder_and_back(start, folder):
    objects, again = bucket(new_prefix()), bucket(new_prefix())
    server = start("data", objects)
    shares = fill(server)
    expected = responses(server, shares)
    assert len(expected[-1]) == 4
    keys = objects.environment()
    result = run(
        "backup",
        *objects.flags(),
        "--data-dir",
        server.data_dir,
        folder / "backup",
        environment=keys,
    )
    assert result.returncode == 0, result
    names = {
        str(path.relative_to(folder / "backup/objects"))
        for path in (folder / "backup/objects").rglob("*")
        if path.is_file()
    }
    assert names == objects.keys() - {"database-id"} and len(names) > 3
    # The backup is restored to a folder, and a backup of that to another bucket.
    assert run("restore", "--data-dir", folder / "plain", folder / "backup").returncode == 0
    plain = start("plain", stored.Folder(folder / "plain" / "objects"))
    assert responses(plain, shares) == expected
    result = run("backup", "--data-dir", plain.data_dir, folder / "second")
    assert result.returncode == 0, result
    result = run(
        "restore",
        *again.flags(),
        "--data-dir",
        folder / "again",
        folder / "second",
        environment=keys,
    )
    assert result.returncode == 0, result
    assert responses(start("again", again), shares) == expected
    # A restore does not overwrite existing objects.
    result = run(
        "restore",
        *objects.flags(),
        "--data-dir",
        folder / "over",
        folder / "backup",
        environment=keys,
    )
    assert result.returncode == 1 and "contains profiles already" in result.stderr
    assert not (folder / "over").exists() and responses(server, shares) == expected
    # An incomplete backup is refused.
    objects.request("DELETE", f"share/{shares[1]}")
    result = run(
        "backup",
        *objects.flags(),
        "--data-dir",
        server.data_dir,
        folder / "third",
        environment=keys,
    )
    assert result.returncode == 1 and f"share/{shares[1]}" in result.stderr, result
    assert not (folder / "third").exists()


def test_verify_backup_and_scrub_find_damaged_objects_of_a_bucket(start, folder):
    objects = bucket(new_prefix())
    server = start("data", objects)
    shares = fill(server)
    api, keys = server.api(), objects.environment()
    flags = [*objects.flags(), "--data-dir", server.data_dir]
    damaged, lost = f"share/{shares[0]}", f"share/{shares[1]}"
    segment = next(iter(objects.keys("segment/") | objects.keys("block/")))
    for key in (damaged, segment):
        data = objects.read(key)
        objects.write(key, data[:-1] + bytes([data[-1] ^ 1]))
    objects.request("DELETE", lost)
    assert api.get(f"/p/{shares[0]}/raw").json()["type"] == "/problems/damaged"
    assert api.get(f"/p/{shares[1]}/raw").json()["type"] == "/problems/lost"
    for command in (
        ["store", "verify", *flags],
        ["backup", "--verify-only", *flags],
        ["backup", *flags, folder / "backup"],
    ):
        result = run(*command, environment=keys)
        output = result.stdout + result.stderr
        assert result.returncode == 1 and all(
            key in output for key in (damaged, lost, segment)
        ), result
    assert api.post("/api/v1/admin/scrub/start").status == 200
    deadline = time.monotonic() + 60
    while not (state := api.get("/api/v1/admin/scrub").json())["last_pass"]:
        assert time.monotonic() < deadline, state
        time.sleep(0.1)
    assert {one["object"]: one["problem"] for one in state["problems"]} == {
        damaged: "broken",
        lost: "missing",
        segment: "broken",
    }


# ---- load ----


class Database:
    """An external database with connections as its superuser, for Hurry."""

    def __init__(self, url):
        self.url = url.replace("app@", "root_role@")

    def database(self):
        connection = psycopg2.connect(self.url)
        connection.autocommit = True
        return connection

    @contextlib.contextmanager
    def cursor(self):
        with contextlib.closing(self.database()) as connection, connection.cursor() as cursor:
            yield cursor

    def rows(self, sql):
        with self.cursor() as cursor:
            cursor.execute(sql)
            return {row[0] for row in cursor.fetchall()} if cursor.description else None


class Sender(SenderToOne):
    """Sends a batch until it is acknowledged, to another server at each attempt."""

    def __init__(self, servers, token, numbers, begin):
        super().__init__(None, token, numbers, begin)
        self.servers = itertools.cycle(servers)
        self.refusals = 0
        self.is_ending = False

    def send(self, api):
        if self.is_ending and self.waiting is None:
            self.should_stop.set()
        else:
            self.send_one(api)

    def send_one(self, api):
        super().send(api)
        if self.waiting is not None:
            self.refusals += 1
            raise ConnectionError("try the next server")

    def run(self):
        self.server = self
        super().run()

    def api(self, token):
        return next(self.servers).api(token)

    def finish(self):
        """Waits until the current batch is acknowledged, and ends the thread."""
        self.is_ending = True
        self.join(60)
        assert not self.is_alive(), ("no longer accepted", self.waiting, self.problems[-1:])
        assert not self.problems, self.problems[:3]


class ShareSender(Sender):
    """Sends shares in the same way, each with an Idempotency-Key."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.shares = {}  # number: ids in the responses

    def send_one(self, api):
        number = next(self.numbers) if self.waiting is None else self.waiting
        self.waiting = number
        response = api.post(
            "/api/v1/shares",
            f"main;share{number} 1\n".encode(),
            headers={"Idempotency-Key": f"share-{number}"},
        )
        if response.status == 201:
            self.shares.setdefault(number, set()).add(response.json()["id"])
            self.waiting = None
            return
        if response.status != 503:
            self.problems.append(response)
            self.should_stop.set()
        self.refusals += 1
        raise ConnectionError("try the next server")


@contextlib.contextmanager
def load(servers, database, sender_count=4):
    """Sends batches and shares to the servers: (token, senders, sender of shares, begin). It then
    checks that all acknowledged data is stored once and no unnamed object is left."""
    begin = (time.time_ns() // (24 * HOUR) - 2) * 24 * HOUR
    token = Tenant(servers[0], uploads_per_minute=10**6).make_token("ingest", "read", "share")[
        "token"
    ]
    senders = [
        Sender(servers[i % len(servers) :] + servers[: i % len(servers)], token, NUMBERS, begin)
        for i in range(sender_count)
    ]
    sharer = ShareSender(servers, token, NUMBERS, begin)
    hurry = Hurry(database)
    for thread in [*senders, sharer, hurry]:
        thread.start()
    try:
        yield token, senders, sharer, begin
        for sender in [*senders, sharer]:
            sender.finish()
        acknowledged = [sender.acknowledged for sender in senders]
        assert all(acknowledged) and sharer.shares
        for server in servers:
            check(server.api(token), senders, begin)
            for number, ids in sharer.shares.items():
                (share,) = ids
                response = server.api(token).get(f"/api/v1/shares/{share}/raw")
                assert response.body == f"main;share{number} 1\n".encode(), response
        check_no_unnamed_objects(servers, database)
        check(servers[0].api(token), senders, begin)
        print(
            f"{sum(map(len, acknowledged))} batches, {len(sharer.shares)} shares, "
            f"{sum(sender.refusals for sender in [*senders, sharer])} refusals"
        )
    finally:
        for thread in [*senders, sharer, hurry]:
            thread.should_stop.set()
            thread.join()


def check_no_unnamed_objects(servers, database):
    """Restarts the servers and waits until each object has a row and each row an object. Other
    servers end the writers that were killed, and delete their objects after the next start."""
    for server in servers:
        assert server.stop() == 0
    database.rows("UPDATE store_writer SET seen_at = now() - interval '1 hour'")
    for server in servers:
        server.start()
    deadline = time.monotonic() + 120
    while True:
        objects = servers[0].objects.keys("segment/") | servers[0].objects.keys("block/")
        rows = database.rows("SELECT object_key FROM block UNION SELECT object_key FROM segment")
        if objects == rows and not database.rows("SELECT 1 FROM segment"):
            return
        assert time.monotonic() < deadline, ("unnamed", objects - rows, "lost", rows - objects)
        time.sleep(0.2)


def test_two_servers_killed_in_turn_neither_lose_nor_repeat_batches(
    start, external_database
):  # noqa: F811
    prefix, database = new_prefix(), Database(external_database)
    servers = [
        start(
            name,
            bucket(prefix),
            "--database-url",
            external_database,
            "--jobs-interval",
            "1s",
            "--worker-threads",
            "16",
        )
        for name in ("one", "two")
    ]
    random.seed(1)
    with load(servers, database) as (token, senders, _, begin):
        for number in range(ROUNDS):
            time.sleep(random.uniform(0.3, 2))
            victim, other = servers[number % 2], servers[1 - number % 2]
            if number % 4 < 2:
                kill(victim.child_pid() or victim.process.pid)
            else:
                victim.kill_all()
                victim.launch()
            check(other.api(token), senders, begin)
            victim.wait_ready()
            check(victim.api(token), senders, begin)


def test_changes_on_one_server_are_visible_on_the_other(start, external_database):  # noqa: F811
    prefix = new_prefix()
    one, two = [
        start(name, bucket(prefix), "--database-url", external_database, "--jobs-interval", "1s")
        for name in ("one", "two")
    ]
    tenant = Tenant(one)
    token = tenant.make_token("share", "read", "ingest")
    mine, other = one.api(token["token"]), two.api(token["token"])
    share, again = [
        api.post("/api/v1/shares", FOLDED, headers={"Idempotency-Key": "k"}).json()["id"]
        for api in (mine, other)
    ]
    assert share == again
    assert mine.post("/api/v1/profiles", FOLDED, query={"label": "pod=a"}).status == 200
    query = {
        "query": "samples:count",
        "start": time.time_ns() - HOUR,
        "end": time.time_ns(),
        "report": "folded",
    }
    assert other.get("/api/v1/query", query=query).text == FOLDED.decode()
    # The second server caches the share from now on.
    assert two.anonymous().get(f"/api/v1/shares/{share}/flame").status == 200
    assert mine.delete(f"/api/v1/shares/{share}").status == 204
    for path in ("", "/raw", "/flame"):
        assert two.anonymous().get(f"/api/v1/shares/{share}{path}").status == 410
    browser = tenant.user("owner")
    elsewhere = Browser(two, cookies=browser.cookies)
    assert elsewhere.get("/api/v1/session").json()["kind"] == "user"
    assert browser.delete("/api/v1/session").status == 204
    assert elsewhere.get("/api/v1/session").json()["kind"] == "anonymous"
    assert one.api().delete(f"/api/v1/admin/tenants/{tenant.id}/tokens/{token['id']}").status == 204
    assert mine.get("/api/v1/session").status == 401
    deadline = time.monotonic() + 60  # it takes at most AUTH_CACHE_S on an idle host
    while other.get("/api/v1/session").status != 401:
        assert time.monotonic() < deadline
        time.sleep(0.1)


@contextlib.contextmanager
def proxy_to_bucket(kind=FaultProxy):
    host, port = os.environ[stored.PREFIX + "ENDPOINT"].rpartition("/")[2].split(":")
    proxy = kind((host, int(port)))
    try:
        yield proxy
    finally:
        proxy.plan()
        proxy.stop()


class UnreliableProxy(FaultProxy):
    """Injects faults into random requests, in addition to the planned faults."""

    share, kinds, counts = 0.0, (), None

    def next_fault(self, method, target):
        planned = super().next_fault(method, target)
        if planned or random.random() >= self.share:
            return planned
        return random.choice(self.kinds)


def watch_refusals(senders):
    """Makes the senders check that each response with status 503 has a Retry-After field."""
    for sender in senders:
        original_send = sender.send

        def send(api, original_send=original_send, sender=sender):
            request = api.request

            def checked(*arguments, **options):
                response = request(*arguments, **options)
                if response.status == 503 and int(response.headers.get("retry-after", 0)) < 1:
                    sender.problems.append(response)
                return response

            api.request = checked
            try:
                original_send(api)
            finally:
                api.request = request

        sender.send = send


def wait_for_progress(senders, count):
    """Waits until count more batches are acknowledged."""
    target = sum(len(sender.acknowledged) for sender in senders) + count
    deadline = time.monotonic() + 120
    while sum(len(sender.acknowledged) for sender in senders) < target:
        assert time.monotonic() < deadline, "the servers accept no more batches"
        time.sleep(0.02)


def wait_for_refusals(senders, count):
    target = sum(sender.refusals for sender in senders) + count
    deadline = time.monotonic() + 120
    while sum(sender.refusals for sender in senders) < target:
        assert time.monotonic() < deadline, "no batch is refused although none can be stored"
        time.sleep(0.02)


FAULTS = ("500", "502", "503", "timeout-400", "reset", "reset-after", "damage", "cut", "404-page")


def test_failing_and_stalled_s3_requests_lose_no_batches(start, external_database):  # noqa: F811
    database = Database(external_database)
    random.seed(2)
    with proxy_to_bucket(UnreliableProxy) as proxy:
        server = start(
            "one",
            bucket(new_prefix(), endpoint=proxy.endpoint),
            "--database-url",
            external_database,
            "--jobs-interval",
            "1s",
        )
        with load([server], database) as (token, senders, sharer, begin):
            watch_refusals([*senders, sharer])
            proxy.kinds, proxy.share = FAULTS, 0.3
            wait_for_progress(senders, 40)
            proxy.kinds, proxy.share = ("hang", "stall", "reset-after"), 0.1
            wait_for_progress(senders, 20)
            proxy.share = 0
            for lasting in ("503", "hang", "reset-after"):
                proxy.plan(later_fault=lasting)
                wait_for_refusals(senders, 5)
                # The server still responds to other requests: not all workers wait for the bucket.
                assert server.api(token).get("/api/v1/session").status == 200
                proxy.plan()
                wait_for_progress(senders, 10)
                check(server.api(token), senders, begin)
            wait_until_collectable(server.objects, database)


def wait_until_collectable(objects, database):
    """Waits until each unnamed object, of which there are some, belongs to an ended writer. Only
    such objects are collected while this server runs."""
    deadline = time.monotonic() + 30
    while True:
        left = objects.keys("segment/") - database.rows(
            "SELECT object_key FROM segment UNION ALL " "SELECT object_key FROM object_trash"
        )
        ended = database.rows("SELECT id FROM store_writer WHERE ended_at IS NOT NULL")
        open_ones = {key for key in left if int(key.split("/")[1]) not in ended}
        if left and not open_ones:
            return
        assert time.monotonic() < deadline, (len(left), open_ones)
        time.sleep(0.1)


def test_killing_the_s3_server_loses_no_batches(start, external_database):  # noqa: F811
    database = Database(external_database)
    script = ["sh", str(ROOT / "tests/s3/radosgw.sh")]
    folder = os.environ[stored.PREFIX + "DIR"]
    servers = [
        start(name, bucket(prefix), "--database-url", external_database, "--jobs-interval", "1s")
        for prefix in [new_prefix()]
        for name in ("one", "two")
    ]
    with load(servers, database) as (token, senders, sharer, begin):
        watch_refusals([*senders, sharer])
        for _ in range(max(2, ROUNDS // 3)):
            wait_for_progress(senders, 10)
            subprocess.run([*script, "kill", folder], check=True)
            try:
                wait_for_refusals(senders, 3)
            finally:
                subprocess.run([*script, "resume", folder], check=True)
            wait_for_progress(senders, 10)
            for server in servers:
                check(server.api(token), senders, begin)


class SlowProxy(FaultProxy):
    """Delays each read of a segment by two seconds."""

    def next_fault(self, method, target):
        if method == "GET" and "/segment/" in target:
            time.sleep(2)
        return super().next_fault(method, target)


def test_a_slow_merge_renews_its_lease(start, external_database):  # noqa: F811
    prefix, database = new_prefix(), Database(external_database)
    flags = ("--database-url", external_database)
    one = start("one", bucket(prefix), *flags)
    token = Tenant(one).make_token("ingest", "read")["token"]
    begin = (time.time_ns() // (24 * HOUR) - 2) * 24 * HOUR
    for number in range(10):
        response = one.api(token).post(
            "/api/v1/profiles",
            f"main;batch{number} 1\n".encode(),
            query={"label": "pod=a", "time": begin + number},
        )
        assert response.status == 200, response
    assert one.stop() == 0
    with proxy_to_bucket(SlowProxy) as proxy:
        two = start("two", bucket(prefix, endpoint=proxy.endpoint), *flags)
        leases, deadline = set(), time.monotonic() + 120
        while not database.rows("SELECT 1 FROM block"):
            leases |= database.rows(
                "SELECT leased_until FROM segment_tenant WHERE leased_until > now()"
            )
            assert time.monotonic() < deadline
            time.sleep(0.2)
        assert len(leases) > 1, "another server could have started the same merge"
        response = two.api(token).get(
            "/api/v1/query",
            query={"query": "samples:count", "start": begin, "end": begin + 10, "report": "folded"},
        )
        assert len(response.text.splitlines()) == 10
        assert two.stop() == 0


def test_a_query_that_waits_for_the_bucket_ends_at_its_time_limit(
    start, external_database
):  # noqa: F811
    """Or at once, while the server knows that the bucket does not respond."""
    prefix, flags = new_prefix(), ("--database-url", external_database)
    one = start("one", bucket(prefix), *flags)
    tenant = Tenant(one, query_time_s=2)
    token = tenant.make_token("ingest", "read")["token"]
    begin = (time.time_ns() // (24 * HOUR) - 2) * 24 * HOUR
    assert (
        one.api(token)
        .post("/api/v1/profiles", FOLDED, query={"label": "pod=a", "time": begin})
        .status
        == 200
    )
    query = {"query": "samples:count", "start": begin, "end": begin + 10, "report": "folded"}
    with proxy_to_bucket() as proxy:
        two = start("two", bucket(prefix, endpoint=proxy.endpoint), *flags)
        for fault in ("hang", "stall", "503"):
            proxy.plan(later_fault=fault, matching="GET")
            response = two.api(token).get("/api/v1/query", query=query)
            detail = response.json()["detail"]
            is_refused = response.status == 503 and int(response.headers["retry-after"]) > 0
            assert (
                response.status == 422
                and "query_time_s is 2" in detail
                or is_refused
                and "the object store does not respond" in detail
            ), response
        proxy.plan()
        wait_for(lambda: two.api(token).get("/api/v1/query", query=query).text == FOLDED.decode())
        assert two.stop() == 0
