"""Names of addresses: a short upload and a small symbol table may mean many frames, because an
address has one for each inlined call. The limits of memory and time include them."""

import gzip
import pathlib
import random
import re
import subprocess
import sys
import time

import pytest

from conftest import ROOT
from test_shares import problem, share

sys.path.insert(0, str(ROOT / "tests" / "oracle"))
from pprof_maker import block, number, varint  # noqa: E402

DEPTH = 254
FIRST = 0x1100  # inside of main
WINDOW = {"start": "now-1d", "end": "now+1d"}


def make_binary(folder):
    """An ELF file whose main() consists of DEPTH inlined calls around 200,000 addresses. Returns
    (file, build id)."""
    inline = "static inline __attribute__((always_inline)) void "
    lines = [inline + 'f0(void) { __asm__ volatile(".rept 200000\\n nop\\n .endr\\n"); }']
    lines += [f"{inline}f{i}(void) {{\n f{i - 1}(); }}" for i in range(1, DEPTH)]
    lines += [f"int main(void) {{\n f{DEPTH - 1}(); return 0; }}"]
    source, binary = folder / "deep.c", folder / "deep"
    source.write_text("\n".join(lines))
    subprocess.run(["gcc", "-O2", "-g", "-Wl,--build-id", "-o", binary, source], check=True)
    notes = subprocess.run(["readelf", "-n", binary], capture_output=True, text=True, check=True)
    return binary, re.search(r"Build ID: (\w+)", notes.stdout)[1]


def profile_of(build_ids, stacks):
    """stacks: lists of addresses, the leaf first; addresses of binary i are i * 0x1000000 + …"""
    strings = ["", "samples", "count", "/bin/deep", *build_ids]
    out = bytearray(block(1, number(1, 1) + number(2, 2)))
    size = 0x1000000
    for i in range(len(build_ids)):
        out += block(
            3,
            number(1, i + 1)
            + number(2, i * size)
            + number(3, (i + 1) * size)
            + number(5, 3)
            + number(6, 4 + i),
        )
    addresses = sorted({address for stack in stacks for address in stack})
    ids = {address: i + 1 for i, address in enumerate(addresses)}
    for address, i in ids.items():
        out += block(4, number(1, i) + number(2, address // size + 1) + number(3, address))
    for stack in stacks:
        out += block(2, block(1, b"".join(varint(ids[one]) for one in stack)) + block(2, varint(1)))
    for text in strings:
        out += block(6, text.encode())
    return gzip.compress(bytes(out))


def peak_mib(server):
    status = pathlib.Path("/proc", str(server.child_pid()), "status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024


def wait_for_table(api, build_id):
    deadline = time.monotonic() + 60
    while not api.get(f"/api/v1/debuginfo/{build_id}").json()["table"]:
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture(scope="module")
def binary(tmp_path_factory):
    return make_binary(tmp_path_factory.mktemp("deep"))


@pytest.fixture
def deep(start_server, binary):
    """(server, build id) of a server that has the symbol table."""
    server = start_server("--max-heavy-memory=128MiB", "--max-query-memory=128MiB")
    path, build_id = binary
    api = server.api()
    response = api.post(f"/api/v1/debuginfo/{build_id}/debuginfo", path.read_bytes())
    assert response.status == 202, response
    wait_for_table(api, build_id)
    return server, build_id


def ingest(api, data, service):
    response = api.post("/api/v1/profiles", data, query={"label": f"service_name={service}"})
    assert response.status == 200, response


@pytest.mark.long
def test_names_are_within_the_memory_of_reports_and_queries(deep):
    server, build_id = deep
    api = server.api()
    few = profile_of([build_id], [[FIRST + i] for i in range(100)])
    top = api.get(f"/api/v1/shares/{share(api, few)['id']}/top", query={"limit": "0"}).json()
    assert {row["name"] for row in top["functions"]} == {"main", *(f"f{i}" for i in range(DEPTH))}
    assert top["functions"][0]["flat"] == 100
    ingest(api, few, "few")
    query = {**WINDOW, "report": "top", "query": '{service_name="few"}'}
    assert len(api.get("/api/v1/query", query=query).json()["functions"]) > 10
    # Frames of 80,000 addresses need 650 MB for their lines alone.
    many = profile_of([build_id], [[FIRST + i] for i in range(80000)])
    identity = share(api, many)["id"]
    problem(api.get(f"/api/v1/shares/{identity}/top"), 413, "128 MiB for large profiles")
    problem(
        api.get("/api/v1/diff/top", query={"a": identity, "b": identity}),
        413,
        "128 MiB for large profiles",
    )
    ingest(api, many, "many")
    for path, more in (
        ("/api/v1/query", {"report": "top"}),
        ("/api/v1/export", {}),
        ("/api/v1/query_range", {"focus": "f1", "step": "1h"}),
    ):
        response = api.get(path, query={**WINDOW, "query": '{service_name="many"}', **more})
        problem(response, 422, "128 MiB, --max-query-memory")
    assert peak_mib(server) < 700
    assert api.get("/metrics").text.count("perfolio_heavy_memory_bytes 0") == 1


@pytest.mark.long
def test_an_export_of_deep_stacks_stops_at_its_limit_of_cpu_time(deep):
    """A row has 25,400 frames; all rows need about 100 CPU seconds."""
    server, build_id = deep
    server.arguments = [*server.arguments, "--tenant-query-cpu-time=1s"]
    server.restart()
    api, choose = server.api(), random.Random(1)
    stacks = [[FIRST + choose.randrange(500) for _ in range(100)] for _ in range(4000)]
    ingest(api, profile_of([build_id], stacks), "rows")
    before = server.cpu_seconds()
    response = api.get("/api/v1/export", query={**WINDOW, "query": '{service_name="rows"}'})
    problem(response, 422, "CPU time")
    assert server.cpu_seconds() - before < 10
