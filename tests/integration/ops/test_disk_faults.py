"""Disk faults: each file system call of shares, uploads, debug files and ingest fails once, with
EIO and with ENOSPC.

The server is the real one with faults on demand (tests/programs/faulty_perfoliod.c). A background
thread may get the planned fault instead: then the request succeeds and the next call is tried.
"""

import errno
import os
import pwd
import socket
import subprocess
import time

import pytest

import sample_profiles as samples
from conftest import BUILD, ROOT
from people import Tenant
from test_debuginfo import compile_with_id, packed_of
from test_shares import query_one, wait_for

pytestmark = pytest.mark.long

# enum os_call of lib/base/os.h
CALLS = {
    "open": 0,
    "mkdir": 1,
    "write": 2,
    "read": 3,
    "sync": 4,
    "rename": 5,
    "unlink": 6,
    "close": 7,
}
PART = 4 << 20
NTH_MAX = 60


@pytest.fixture(scope="module")
def program():
    path = BUILD / "tests" / "programs" / "faulty_perfoliod"
    subprocess.run(
        ["make", "-s", f"BUILD={BUILD.name}", str(path.relative_to(ROOT))], cwd=ROOT, check=True
    )
    return path


class Faults:
    def __init__(self, server):
        self.address = f"\0perfolio-faults-{server.child_pid()}"

    def send_command(self, line):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(self.address)
            client.sendall(line.encode())
            return int(client.makefile().readline())

    def plan(self, call, nth, error):
        self.send_command(f"plan {CALLS[call]} {nth} {error}")

    def count(self, call):
        return self.send_command(f"count {CALLS[call]}")

    def reset(self):
        self.send_command("reset")


class Sharing:
    """A share in one request."""

    def __init__(self, server, folder):
        self.server, self.api, self.number = server, server.api(), 0

    def prepare(self):
        self.number += 1
        self.body = f"main;share{self.number} 1\n".encode()

    def send(self):
        return self.api.post("/api/v1/shares", self.body)

    def check(self, response):
        """Checks that the acknowledged share is stored."""
        assert self.api.get(f"/p/{response.json()['id']}/raw").body == self.body


class Part(Sharing):
    """A part of an upload; the check completes the upload and reads the share."""

    def prepare(self):
        super().prepare()
        begun = self.api.post("/api/v1/uploads", json={"size": len(self.body)})
        assert begun.status == 201, begun
        self.upload = begun.json()["id"]

    def send(self):
        return self.api.put(f"/api/v1/uploads/{self.upload}/parts/0", self.body)

    def check(self, response):
        done = self.api.post(f"/api/v1/uploads/{self.upload}/complete")
        assert done.status == 201, done
        super().check(done)


class Completion(Part):
    """Completes an upload, which joins two parts into one object."""

    def prepare(self):
        Sharing.prepare(self)
        self.body = self.body * (PART // len(self.body) + 1)
        self.upload = self.api.post("/api/v1/uploads", json={"size": len(self.body)}).json()["id"]
        for part, at in enumerate(range(0, len(self.body), PART)):
            put = self.api.put(
                f"/api/v1/uploads/{self.upload}/parts/{part}", self.body[at : at + PART]
            )
            assert put.status == 204, put

    def send(self):
        return self.api.post(f"/api/v1/uploads/{self.upload}/complete")

    def check(self, response):
        Sharing.check(self, response)


class DebugFile(Sharing):
    """A debug file from which the server builds a symbol table."""

    def __init__(self, server, folder):
        super().__init__(server, folder)
        self.file = compile_with_id(folder, "ab01").read_bytes()

    def prepare(self):
        super().prepare()
        self.body = self.file + self.number.to_bytes(4, "little")

    def send(self):
        return self.api.post("/api/v1/debuginfo/ab01/debuginfo", self.body)

    def check(self, response):
        assert response.json()["bytes"] == len(self.body)


class Table(Sharing):
    """An uploaded symbol table; each replaces the one before."""

    def __init__(self, server, folder):
        super().__init__(server, folder)
        self.tables = {}
        for number in range(4):
            self.tables[number] = packed_of(
                compile_with_id(folder, f"cd{number:02}", f"table{number}")
            )

    def prepare(self):
        super().prepare()
        self.id = f"cd{self.number % len(self.tables):02}"
        self.body = self.tables[self.number % len(self.tables)]
        self.api.delete(f"/api/v1/debuginfo/{self.id}")

    def send(self):
        return self.api.post(f"/api/v1/debuginfo/{self.id}/table", self.body)

    def check(self, response):
        assert self.api.get(f"/api/v1/debuginfo/{self.id}").json()["table"]["functions"] > 0


class Ingest(Sharing):
    """A profile sent by an agent."""

    def send(self):
        return self.api.post("/ingest", self.body, query={"name": f"app{self.number}"})

    def check(self, response):
        query = {"query": f'{{service_name="app{self.number}"}}', "report": "top"}
        found = self.api.get("/api/v1/query", query=query)
        assert found.status == 200 and found.json()["total"] == 10**7, found  # at 100 Hz


KINDS = [Sharing, Part, Completion, DebugFile, Table, Ingest]


def known_keys(server):
    return set(
        query_one(
            server,
            """SELECT array_agg(key) FROM (
        SELECT object_key AS key FROM share UNION ALL SELECT object_key FROM upload_part
        UNION ALL SELECT object_key FROM debug_file UNION ALL SELECT object_key FROM symbol_table
        UNION ALL SELECT object_key FROM segment UNION ALL SELECT object_key FROM block) AS known
        WHERE key IS NOT NULL""",
        )[0]
        or []
    )


def stored_keys(server):
    objects = server.data_dir / "objects"
    return {
        str(path.relative_to(objects)): path
        for path in objects.rglob("*")
        if path.is_file() and path.name != ".held"
    }


def assert_failed(response, context):
    assert response.status in (500, 503), (context, response)
    assert response.status == 503 and int(response.headers["retry-after"]) > 0, (context, response)
    assert "errno" not in response.text and str(ROOT) not in response.text, (context, response)


def fail_each_call(kind, faults):
    """Fails each call of the request once; returns the number of failed requests."""

    def server_is_ready():
        return kind.api.get("/readyz").status == 200

    failed = 0
    for call in CALLS:
        for error in (errno.EIO, errno.ENOSPC):
            for nth in range(1, NTH_MAX):
                wait_for(server_is_ready)  # the disk check may have got the fault
                kind.prepare()
                faults.plan(call, nth, error)
                response = kind.send()
                count = faults.count(call)
                faults.reset()
                context = (type(kind).__name__, call, nth, errno.errorcode[error])
                if response.status >= 300:
                    failed += 1
                    assert_failed(response, context)
                    wait_for(server_is_ready)
                    response = kind.send()  # repeats the request without a fault
                assert response.status < 300, (context, response)
                kind.check(response)
                if count < nth:
                    break
            else:
                pytest.fail(f"{type(kind).__name__} makes more than {NTH_MAX} calls of {call}")
    return failed


@pytest.mark.parametrize("kind", KINDS, ids=[kind.__name__ for kind in KINDS])
def test_a_disk_fault_returns_503_and_leaves_no_object(start_server, program, tmp_path, kind):
    server = start_server("--jobs-interval", "1s", program=program)
    assert server.is_ready()
    failed = fail_each_call(kind(server, tmp_path), Faults(server))
    assert failed >= 8, failed  # at least open, write, sync and rename, with both errors
    assert server.stop() == 0
    for path in stored_keys(server).values():
        os.utime(path, (time.time() - 7200,) * 2)
    server.start()
    wait_for(lambda: not set(stored_keys(server)) - known_keys(server), 60)
    assert known_keys(server) <= set(stored_keys(server))
