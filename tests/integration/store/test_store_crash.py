"""kill -9 of each process while profiles are received, compacted, repaired, deleted, expired and
reduced to totals.

Each acknowledged batch is counted once, however often it was sent. A batch that was not
acknowledged is counted at most once. Profiles of an acknowledged deletion never return. At the end
the catalogue contains every stored object.

PERFOLIO_CRASH_ROUNDS=1000 for the long run (`make test-crash`).
"""

import http.client
import itertools
import os
import random
import ssl
import threading
import time

import pytest

from conftest import DISK
from people import Tenant
from stored import is_in_bucket
from test_crash import strike
from test_store import objects_of, rows_of, until
from test_store_check import verify

pytestmark = pytest.mark.crash

ROUNDS = int(os.environ.get("PERFOLIO_CRASH_ROUNDS", "6"))
SEED = int(os.environ.get("PERFOLIO_CRASH_SEED", "1"))
HOUR = 3600 * 10**9
# Less than the interval at which a server searches for objects of dead servers.
SETTLE_SECONDS = 120


@pytest.fixture
def data_home():
    """A folder on a real disk, because the test kills processes while they write."""
    return DISK


class Sender(threading.Thread):
    """Sends batches and repeats each one with its id until it is acknowledged."""

    pods = 3

    def __init__(self, server, token, numbers, begin):
        super().__init__(daemon=True)
        self.server, self.token, self.numbers, self.begin = server, token, numbers, begin
        self.acknowledged, self.sent, self.problems = set(), set(), []
        self.waiting = None  # the number that was sent and not acknowledged
        self.should_stop = threading.Event()

    def run(self):
        while not self.should_stop.is_set():
            api = None
            try:
                api = self.server.api(self.token)
                api.timeout = 20
                while not self.should_stop.is_set():
                    self.send(api)
            except (OSError, http.client.HTTPException, ssl.SSLError):
                time.sleep(0.02)  # the server was just killed
            finally:
                if api:
                    api.close()

    def time_of(self, number):
        return self.begin + number * 10**6

    def send(self, api):
        number = next(self.numbers) if self.waiting is None else self.waiting
        self.waiting = number
        self.sent.add(number)
        time_ns = self.time_of(number)
        response = api.post(
            "/api/v1/profiles",
            f"main;batch{number} 1\n".encode(),
            query={"label": f"pod=p{number % self.pods}", "time": time_ns},
            headers={"Perfolio-Batch-Id": f"batch {number}"},
        )
        if response.status == 200:
            self.acknowledged.add(number)
            self.waiting = None
        elif response.status not in (500, 503):
            self.problems.append(response)


class ExpiringSender(Sender):
    """Sends to a team that keeps profiles for a few seconds."""

    def time_of(self, number):
        return time.time_ns()

    def send(self, api):
        super().send(api)
        if self.problems and self.problems[-1].status == 400:  # the batch is too old by now
            self.problems.pop()
            self.waiting = None


class RetentionSender(Sender):
    """Sends to a team that adds a retention rule in each round; by that rule the profiles of one
    more pod have already expired."""

    pods = 50
    rule_settings = {"keep": "1d"}

    def __init__(self, server, tenant, numbers, begin):
        super().__init__(server, tenant.make_token("ingest")["token"], numbers, begin)
        self.tenant = tenant
        self.reader, self.rule_count = tenant.make_token("read", "admin")["token"], 0

    def add_rule(self):
        if self.rule_count == self.pods - 1:
            return
        while True:
            try:
                api = self.server.api(self.reader)
                response = api.post(
                    "/api/v1/retention",
                    json={"query": f'{{pod="p{self.rule_count}"}}', **self.rule_settings},
                )
                if response.status == 200:
                    break
                assert response.status in (500, 503), response
            except (OSError, http.client.HTTPException, ssl.SSLError):
                time.sleep(0.02)
        self.rule_count += 1

    def is_expired(self, number):
        return number % self.pods < self.rule_count

    def check(self):
        acknowledged = {number for number in set(self.acknowledged) if not self.is_expired(number)}
        found = counted(self.server.api(self.reader), self.begin)
        assert acknowledged <= set(found), ("lost", sorted(acknowledged - set(found))[:10])
        assert not any(self.is_expired(number) for number in found), "expired batches are read"
        assert set(found) <= self.sent and set(found.values()) <= {1}


class TotalsSender(RetentionSender):
    """Sends to a team that adds a rule in each round, by which one more pod keeps only hourly
    totals."""

    rule_settings = {"keep": "1d", "totals": "300d"}

    def check(self):
        acknowledged = set(self.acknowledged)
        api = self.server.api(self.reader)
        found = counted(api, self.begin)
        assert acknowledged <= set(found), ("lost", sorted(acknowledged - set(found))[:10])
        assert set(found) <= self.sent and set(found.values()) <= {1}
        single = api.get(
            "/api/v1/profiles",
            query={
                "query": "samples:count",
                "start": self.begin,
                "end": self.begin + 24 * HOUR,
                "limit": 10000,
            },
        ).json()["data"]
        pods = {int(one["labels"]["pod"][1:]) for one in single}
        assert not any(
            pod < self.rule_count for pod in pods
        ), "single profiles of totals are listed"
        reduced = {number for number in acknowledged if self.is_expired(number)}
        assert len(single) >= min(len(acknowledged - reduced), 10000)


class Deleter:
    """Deletes one of three pods repeatedly and retries each deletion until it is acknowledged."""

    def __init__(self, server, tenant, numbers, begin):
        self.server, self.token, self.begin = (
            server,
            tenant.make_token("read", "admin")["token"],
            begin,
        )
        token = tenant.make_token("ingest")["token"]
        self.senders = [Sender(server, token, numbers, begin) for _ in range(2)]
        self.problems = []
        # The deleted numbers, and the largest number sent before the last deletion ended.
        self.deleted, self.last_before = set(), -1

    def union_of_senders(self, name):
        return set().union(*(set(getattr(sender, name)) for sender in self.senders))

    def delete(self):
        targets = {number for number in self.union_of_senders("acknowledged") if number % 3 == 1}
        while True:
            try:
                api = self.server.api(self.token)
                api.timeout = 20
                response = api.request("DELETE", "/api/v1/profiles", query={"query": '{pod="p1"}'})
                api.close()
                if response.status == 202:
                    break
                # 429: killed merges can leave a hundred deletions unfinished.
                if response.status not in (429, 500, 503):
                    self.problems.append(response)
                    return
                time.sleep(1 if response.status == 429 else 0)
            except (OSError, http.client.HTTPException, ssl.SSLError):
                time.sleep(0.02)
        self.last_before = max(self.union_of_senders("sent"), default=-1)
        self.deleted |= targets

    def check(self):
        assert not self.problems, self.problems
        acknowledged = self.union_of_senders("acknowledged")
        found = counted(self.server.api(self.token), self.begin)
        wanted = {number for number in acknowledged if number % 3 != 1 or number > self.last_before}
        assert wanted <= set(found), ("lost", sorted(wanted - set(found))[:10])
        assert set(found) <= self.union_of_senders("sent")
        assert not self.deleted & set(found), ("returned", sorted(self.deleted & set(found))[:10])
        assert set(found.values()) <= {1}


class Hurry(threading.Thread):
    """Ages all rows so that objects become due for merging and deletion at once."""

    STATEMENTS = [
        "UPDATE segment SET created_at = created_at - interval '1 hour' WHERE swapped_at IS NULL",
        "UPDATE block SET created_at = created_at - interval '1 hour' WHERE swapped_at IS NULL",
        "UPDATE segment SET swapped_at = swapped_at - interval '1 hour'",
        "UPDATE block SET swapped_at = swapped_at - interval '1 hour'",
        "UPDATE block SET leased_until = now() - interval '1 second' WHERE leased_by IN "
        "(SELECT id FROM store_writer WHERE seen_at < now() - interval '5 s')",
        "UPDATE segment_tenant SET leased_until = now() - interval '1 second' WHERE leased_by IN "
        "(SELECT id FROM store_writer WHERE seen_at < now() - interval '5 s')",
        # Marks some parts as broken, as if they were too large, and lets others be repaired. Each
        # repair costs as much as a merge of many parts, so only few are marked: a deletion that
        # needs them would otherwise never end.
        "UPDATE segment_tenant SET broken_why = 'unreadable', retry_at = now() WHERE is_broken "
        "AND random() < 0.1",
        "UPDATE segment_tenant SET is_broken = true, broken_why = 'too large', broken_since = "
        "now(),"
        " retry_at = now() WHERE NOT is_swapped AND NOT is_broken AND retry_count = 0 AND "
        "random() < 0.02",
        "UPDATE segment_tenant SET retry_count = 1 WHERE NOT is_broken AND random() < 0.2",
    ]

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.should_stop = server, threading.Event()

    def run(self):
        import psycopg2

        while not self.should_stop.is_set():
            try:
                with self.server.cursor() as cursor:
                    for statement in self.STATEMENTS:
                        cursor.execute(statement)
            except (psycopg2.Error, OSError, ValueError, IndexError):
                pass  # the database is down
            time.sleep(0.1)


def counted(api, begin):
    response = api.get(
        "/api/v1/query",
        query={
            "query": "samples:count",
            "start": begin,
            "end": begin + 24 * HOUR,
            "report": "folded",
        },
    )
    assert response.status == 200, response
    assert "perfolio-warning" not in response.headers, response.headers
    found = {}
    for line in response.text.splitlines():
        stack, _, value = line.rpartition(" ")
        found[int(stack.partition("batch")[2])] = int(value)
    return found


def left_over(server):
    """Returns objects without a row or waiting to be merged or deleted, and rows without an
    object."""
    objects, rows = objects_of(server), rows_of(
        server, "SELECT object_key FROM block UNION SELECT object_key FROM segment"
    )
    return objects - rows | rows_of(server, "SELECT object_key FROM segment"), rows - objects


def check(api, senders, begin):
    # The senders are still running: batches acknowledged before the query must be in its result.
    acknowledged = set().union(*(set(sender.acknowledged) for sender in senders))
    found = counted(api, begin)
    sent = set().union(*(set(sender.sent) for sender in senders))
    assert acknowledged <= set(found), ("lost", sorted(acknowledged - set(found))[:10])
    assert set(found) <= sent
    repeated = {number: value for number, value in found.items() if value != 1}
    assert not repeated, ("counted more than once", repeated)


def test_acknowledged_batches_are_counted_once_after_kill_9(start_server):
    server = start_server("--jobs-interval", "1s")
    random.seed(SEED)
    begin = (time.time_ns() // (24 * HOUR) - 2) * 24 * HOUR  # a past day
    token = Tenant(server).make_token("ingest", "read")["token"]
    numbers = itertools.count()  # next() is atomic
    senders = [Sender(server, token, numbers, begin) for _ in range(3)]
    deleter = Deleter(server, Tenant(server), numbers, begin)
    brief = Tenant(server, profile_retention_s=3)
    expiring = ExpiringSender(server, brief.make_token("ingest")["token"], numbers, begin)
    with_retention = RetentionSender(server, Tenant(server), numbers, begin)
    with_totals = TotalsSender(server, Tenant(server), numbers, begin)
    all_senders = [*senders, *deleter.senders, expiring, with_retention, with_totals]
    hurry = Hurry(server)
    for thread in [*all_senders, hurry]:
        thread.start()
    victims = ["server", "database", "server", "supervisor", "all", "backend"]
    for number in range(ROUNDS):
        time.sleep(random.uniform(0.05, 1.2))
        victim = victims[number % len(victims)]
        deletion = threading.Thread(target=deleter.delete)
        deletion.start()
        with_retention.add_rule()
        with_totals.add_rule()
        time.sleep(random.choice([0, 0.005, 0.02, 0.3]))
        strike(server, victim)
        server.wait_ready()
        deletion.join()
        check(server.api(token), senders, begin)
        deleter.check()
        with_retention.check()
        with_totals.check()
    for sender in all_senders:
        sender.should_stop.set()
        sender.join()
        assert not sender.problems, sender.problems[:3]
    check(server.api(token), senders, begin)
    deleter.check()
    assert len(set().union(*(sender.acknowledged for sender in senders))) >= ROUNDS
    # Marks the killed servers as dead, so that the next start finds their unfinished objects.
    with server.cursor() as cursor:
        cursor.execute("UPDATE store_writer SET seen_at = now() - interval '1 hour'")
    server.stop()
    server.start()
    until(
        lambda: left_over(server) == (set(), set()),
        lambda: f"unknown and missing objects: {left_over(server)}",
        SETTLE_SECONDS,
    )
    until(
        lambda: not rows_of(
            server,
            f"SELECT 1 FROM block WHERE tenant_id = {brief.id} UNION "
            "SELECT 1 FROM block WHERE deletions <> '{}' UNION "
            "SELECT 1 FROM store_deletion WHERE done_at IS NULL",
        ),
        "expired or deleted profiles are left",
    )
    kept = {
        number for number in with_retention.acknowledged if not with_retention.is_expired(number)
    }
    until(
        lambda: rows_of(
            server,
            "SELECT sum(row_count)::bigint FROM block WHERE swapped_at IS NULL AND "
            f"tenant_id = {with_retention.tenant.id}",
        )
        == {len(kept)},
        "expired rows are left",
    )
    # The blocks contain only totals by now, so removing the rules must not change the results.
    until(
        lambda: not rows_of(
            server,
            "SELECT 1 FROM block WHERE swapped_at IS NULL AND retention_key <> "
            f"retention_key(tenant_id, 0) AND tenant_id = {with_totals.tenant.id}",
        ),
        "a block is not reduced",
    )
    with server.cursor() as cursor:
        cursor.execute(f"DELETE FROM retention_rule WHERE tenant_id = {with_totals.tenant.id}")
    with_totals.check()
    hurry.should_stop.set()
    hurry.join()
    check(server.api(token), senders, begin)
    deleter.check()
    with_retention.check()
    with_totals.check()
    assert is_in_bucket() or verify(server)["problems"] == []
    # The usage counted at ingest equals the stored batches.
    usage = server.api(token).get("/api/v1/usage").json()
    assert usage["total"]["batches"] == len(counted(server.api(token), begin)), usage
