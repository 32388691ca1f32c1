"""kill -9 between upload and response: acknowledged shares are complete afterwards.

Each round kills one process, or all of them, while four clients upload. PERFOLIO_CRASH_ROUNDS=100
selects the long run.
"""

import contextlib
import http.client
import itertools
import os
import random
import signal
import ssl
import threading
import time

import pytest

from conftest import DISK

pytestmark = pytest.mark.crash

ROUNDS = int(os.environ.get("PERFOLIO_CRASH_ROUNDS", "6"))
SEED = int(os.environ.get("PERFOLIO_CRASH_SEED", "1"))


@pytest.fixture
def data_home():
    """A folder on a real disk, because the tests kill processes while they write."""
    return DISK


def content(number):
    """Returns a profile unique to number, either small or large."""
    lines = 3000 if number % 7 == 0 else 40
    return "".join(f"main;round{number};work{i} {i + 1}\n" for i in range(lines)).encode()


class Uploader(threading.Thread):
    """Uploads until should_stop is set; records the numbers sent and the shares acknowledged."""

    def __init__(self, server, numbers):
        super().__init__(daemon=True)
        self.server, self.numbers = server, numbers
        self.sent, self.acknowledged, self.problems = set(), {}, []  # numbers; id to number
        self.should_stop = threading.Event()

    def run(self):
        while not self.should_stop.is_set():
            api = None
            try:
                api = self.server.api()
                api.timeout = 20
                while not self.should_stop.is_set():
                    self.upload(api)
            except (OSError, http.client.HTTPException, ssl.SSLError):
                time.sleep(0.02)  # the server was just killed
            finally:
                if api:
                    api.close()

    def upload(self, api):
        number = next(self.numbers)
        self.sent.add(number)
        response = api.post("/api/v1/shares", content(number))
        if response.status == 201:
            self.acknowledged[response.json()["id"]] = number
        elif response.status not in (500, 503):
            self.problems.append(response)


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def state_of(pid):
    """Returns the fields of /proc/PID/stat from the state on, or None if there is no process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return None


def start_time(pid):
    """Returns the start time, which distinguishes a process from a later one with the same pid, or
    None if there is no process."""
    fields = state_of(pid)
    return fields and fields[19]


def stop_process(pid):
    """Stops the process. Returns False if it exited first: PostgreSQL does not treat that as a
    crash."""
    try:
        os.kill(pid, signal.SIGSTOP)
        while (fields := state_of(pid)) and fields[0] not in "TZX":
            time.sleep(0.001)
    except ProcessLookupError:
        return False
    return fields is not None and fields[0] == "T"


def kill_database(server, find_victims):
    """Kills the victims and waits until all other PostgreSQL processes have ended, because they
    serve queries until they notice the crash."""
    postmaster = server.postgres_pid()
    others = server.descendants(postmaster)
    started = {pid: start_time(pid) for pid in others}
    for pid in find_victims(postmaster, others):
        kill(pid)
    deadline = time.monotonic() + 60
    while any(start and start_time(pid) == start for pid, start in started.items()):
        assert time.monotonic() < deadline, "processes of a killed database are still running"
        time.sleep(0.002)


def strike(server, victim):
    """Kills victim, and starts the supervisor again if it was killed."""
    if victim == "server":
        kill(server.child_pid() or server.process.pid)
    elif victim == "database":
        kill_database(server, lambda postmaster, others: [postmaster])
    elif victim == "backend":
        kill_database(
            server, lambda postmaster, others: [next(filter(stop_process, reversed(others)))]
        )
    elif victim == "supervisor":
        kill(server.process.pid)
    else:
        for pid in (server.process.pid, server.child_pid(), server.postgres_pid()):
            kill(pid or server.process.pid)
    if victim in ("supervisor", "all"):
        server.process.wait(60)
        server.launch()


def check(server, acknowledged):
    """Checks the acknowledged shares. The server is ready, so a status of 503 is an error."""
    api = server.api()
    for share, number in acknowledged.items():
        response = api.get(f"/api/v1/shares/{share}/raw")
        assert response.status == 200 and response.body == content(number), (
            share,
            number,
            response,
            server.log()[-3000:],
        )
    api.close()


def all_shares(api):
    cursor, found = None, []
    while True:
        query = {"limit": 100, **({"cursor": cursor} if cursor else {})}
        page = api.get("/api/v1/shares", query=query).json()
        found += [share["id"] for share in page["shares"]]
        cursor = page["next_cursor"]
        if not cursor:
            return found


def test_acknowledged_shares_survive_kill_9_of_every_process(start_server):
    server = start_server("--tenant-uploads-per-minute", "1000000")
    random.seed(SEED)
    numbers = itertools.count()  # next() of it is one step
    all_acknowledged, sent = {}, set()
    victims = ["server", "supervisor", "database", "all", "server", "backend"]
    for number in range(ROUNDS):
        uploaders = [Uploader(server, numbers) for _ in range(4)]
        for uploader in uploaders:
            uploader.start()
        time.sleep(random.uniform(0.05, 0.4))
        victim = victims[number % len(victims)]
        strike(server, victim)
        server.wait_ready()
        listed = server.api().get("/api/v1/shares")
        assert listed.status == 200, (victim, listed, server.log()[-3000:])
        deadline = time.monotonic() + 60
        while not any(uploader.acknowledged for uploader in uploaders):
            assert time.monotonic() < deadline, f"round {number}: nothing was acknowledged"
            time.sleep(0.01)
        for uploader in uploaders:
            uploader.should_stop.set()
        fresh = {}
        for uploader in uploaders:
            uploader.join(60)
            assert not uploader.is_alive()
            assert not uploader.problems, (victim, uploader.problems[:3])
            fresh.update(uploader.acknowledged)
            sent |= uploader.sent
        check(server, fresh)
        all_acknowledged.update(fresh)

    assert server.stop() == 0, server.log()[-3000:]
    server.start()
    check(server, all_acknowledged)
    # A share that was not acknowledged may exist, but then it is complete too.
    api = server.api()
    listed = all_shares(api)
    assert set(all_acknowledged) <= set(listed)
    for share in set(listed) - set(all_acknowledged):
        body = api.get(f"/api/v1/shares/{share}/raw").body
        number = int(body.split(b";")[1].removeprefix(b"round"))
        assert number in sent and body == content(number)


def test_the_next_start_survives_late_writes_of_a_killed_first_start(start_server):
    """The children of a killed initdb may still write for a short time."""
    server = start_server(is_fresh=True, wait=False)
    leftovers = lambda: list(server.data_dir.glob("pg.new-*"))
    deadline = time.monotonic() + 60
    while not leftovers():
        assert time.monotonic() < deadline
        time.sleep(0.005)
    server.process.kill()
    server.process.wait(60)
    folder = leftovers()[0]
    is_over = threading.Event()

    def keep_writing():
        for number in itertools.count():
            if is_over.is_set():
                return
            with contextlib.suppress(OSError):
                folder.mkdir(exist_ok=True)
                (folder / f"late{number % 500}").write_bytes(b"x")

    writer = threading.Thread(target=keep_writing)
    writer.start()
    try:
        server.launch()
        server.wait_ready()
    finally:
        is_over.set()
        writer.join()
    assert server.api().post("/api/v1/shares", content(1)).status == 201
    server.stop()
    server.start()
    assert leftovers() == []


def test_the_server_starts_after_kills_while_it_creates_the_cluster(start_server):
    server = start_server(is_fresh=True, wait=False)
    for delay in (0.05, 0.2, 0.4, 0.8):
        time.sleep(delay)
        server.process.kill()
        server.process.wait(60)
        server.launch()
    server.wait_ready()
    assert server.api().post("/api/v1/shares", content(1)).status == 201
