"""kill -9 between upload and response: what was acknowledged is there afterwards, whole.

PERFOLIO_CRASH_ROUNDS=100 for the long run; each round kills one of the three kinds of process, or
all at once, while four clients upload.
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

ROUNDS = int(os.environ.get("PERFOLIO_CRASH_ROUNDS", "6"))
SEED = int(os.environ.get("PERFOLIO_CRASH_SEED", "1"))


@pytest.fixture
def data_home():
    """A real disk: what is killed here is in the middle of writing to it."""
    return DISK


def content(number):
    """Profiles of very different sizes, each of its own."""
    lines = 3000 if number % 7 == 0 else 40
    return "".join(f"main;round{number};work{i} {i + 1}\n" for i in range(lines)).encode()


class Uploader(threading.Thread):
    """Uploads until told to stop; remembers what was sent and what was acknowledged."""

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
                time.sleep(0.02)  # it has just been killed
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
    """Its fields of proc(5) from the state on; None when there is none."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return None


def started_at(pid):
    """What tells a process from a later one with its number; None when there is none."""
    fields = state_of(pid)
    return fields and fields[19]


def stands_still(pid):
    """Stops it. False: it has ended by itself, which is no crash for those beside it."""
    try:
        os.kill(pid, signal.SIGSTOP)
        while (fields := state_of(pid)) and fields[0] not in "TZX":
            time.sleep(0.001)
    except ProcessLookupError:
        return False
    return fields is not None and fields[0] == "T"


def kill_database(server, find_victims):
    """Returns when its other processes have noticed too: until then they answer as before."""
    postmaster = server.postgres_pid()
    others = server.descendants(postmaster)
    started = {pid: started_at(pid) for pid in others}
    for pid in find_victims(postmaster, others):
        kill(pid)
    deadline = time.monotonic() + 60
    while any(began and started_at(pid) == began for pid, began in started.items()):
        assert time.monotonic() < deadline, "processes of a killed database stay"
        time.sleep(0.002)


def strike(server, victim):
    """Kills, and starts again what does not start by itself."""
    if victim == "server":
        kill(server.child_pid() or server.process.pid)
    elif victim == "database":
        kill_database(server, lambda postmaster, others: [postmaster])
    elif victim == "backend":
        kill_database(
            server, lambda postmaster, others: [next(filter(stands_still, reversed(others)))]
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
    """The server has said that it is ready: no 503 is excused any more."""
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
    everything, sent = {}, set()
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
        everything.update(fresh)

    assert server.stop() == 0, server.log()[-3000:]
    server.start()
    check(server, everything)
    # What was never acknowledged may be there, but then it is whole too.
    api = server.api()
    listed = all_shares(api)
    assert set(everything) <= set(listed)
    for share in set(listed) - set(everything):
        body = api.get(f"/api/v1/shares/{share}/raw").body
        number = int(body.split(b";")[1].removeprefix(b"round"))
        assert number in sent and body == content(number)


def test_what_a_killed_first_start_still_writes_does_not_stop_the_next(start_server):
    """The children of a killed initdb may write for a moment longer."""
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

    def go_on_writing():
        for number in itertools.count():
            if is_over.is_set():
                return
            with contextlib.suppress(OSError):
                folder.mkdir(exist_ok=True)
                (folder / f"late{number % 500}").write_bytes(b"x")

    writer = threading.Thread(target=go_on_writing)
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


def test_a_kill_while_the_first_start_makes_the_cluster_does_no_harm(start_server):
    server = start_server(is_fresh=True, wait=False)
    for delay in (0.05, 0.2, 0.4, 0.8):
        time.sleep(delay)
        server.process.kill()
        server.process.wait(60)
        server.launch()
    server.wait_ready()
    assert server.api().post("/api/v1/shares", content(1)).status == 201
