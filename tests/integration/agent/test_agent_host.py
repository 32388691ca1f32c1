"""A host that runs C, Go, Python and Node programs, profiled by the agent.

Labels select each program. Its functions have names, file and line in the server's responses, and
names in the flame graph. The server is stopped for the middle third of the time. The total of each
program must still equal the CPU time that it used within a fifth; a batch that was lost or counted
twice would change it by more. PERFOLIO_HOST_SECONDS=600 runs the long form.
"""

import gzip
import os
import shutil
import subprocess
import time

import pytest

from people import Tenant
from test_agent import CPU, HOUR, SOURCE, Agent, build_id_of, now, program  # noqa: F401
from test_agent_truth import GO_CACHE
from test_record import REFUSAL, pprof_reader
from test_store import folded

SECONDS = float(os.environ.get("PERFOLIO_HOST_SECONDS", "15"))

GO = """package main
//go:noinline
func spinInGo(n int) int { sum := 0; for i := 0; i < n; i++ { sum += i * i % 7 }; return sum }
func main() { for { spinInGo(1000000) } }
"""
PYTHON = """
def spin_in_python(n):
    return sum(i * i for i in range(n))
while True:
    spin_in_python(10000)
"""
NODE = (
    "function spinInNode(n) { let s = 0; for (let i = 0; i < n; i++) s += i % 7; return s } "
    "for (;;) spinInNode(1e6)"
)

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(REFUSAL is not None, reason=f"the kernel refuses: {REFUSAL}"),
    pytest.mark.skipif(
        not shutil.which("go") or not shutil.which("node"), reason="there is no Go or no Node"
    ),
]


@pytest.fixture
def loads(program, tmp_path):  # noqa: F811
    """{name: (command, function that its profile must contain, source file, lines of its samples)}.
    Names of code that Node generates have no lines."""
    (tmp_path / "spin.go").write_text(GO)
    subprocess.run(
        ["go", "build", "-o", tmp_path / "go-spin", tmp_path / "spin.go"],
        check=True,
        timeout=300,
        env={**os.environ, "GOFLAGS": "-mod=mod", "CGO_ENABLED": "0", "GOCACHE": GO_CACHE},
        cwd=tmp_path,
    )
    (tmp_path / "spin.py").write_text(PYTHON)
    first = SOURCE[: SOURCE.index("inner(")].count("\n") + 1
    inner_lines = range(
        first, first + SOURCE[SOURCE.index("inner(") :].split("\n}")[0].count("\n") + 2
    )
    return {
        "c": ([program, "100000000"], "inner", "spin.c", inner_lines),
        "go": ([tmp_path / "go-spin"], "main.spinInGo", "spin.go", [3]),
        "python": (["/usr/bin/python3", tmp_path / "spin.py"], "spin_in_python", "spin.py", [3]),
        # V8 would inline the function when it optimises the loop around it; a perf map does not
        # name inlined functions.
        "node": (
            ["node", "--perf-basic-prof", "--no-turbo-inlining", "-e", NODE],
            "spinInNode",
            None,
            [],
        ),
    }


def start_all(loads):
    return {
        name: subprocess.Popen(command, env={"LOAD": name, "PATH": os.environ["PATH"]})
        for name, (command, *_) in loads.items()
    }


def end_all(processes):
    """Kills the processes; returns the CPU time that each used, in nanoseconds."""
    used = {}
    for name, process in processes.items():
        process.kill()
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = -9
        used[name] = int((usage.ru_utime + usage.ru_stime) * 1e9)
    return used


def places(client, selector, begin, function):
    """{(file, line) of the function: samples}, from the server's response."""
    response = client.get(
        "/api/v1/query",
        query={"query": selector, "start": begin, "end": now() + HOUR, "report": "pprof"},
    )
    assert response.status == 200, response
    profile = pprof_reader.Profile(
        gzip.decompress(response.body) if response.body[:2] == b"\x1f\x8b" else response.body
    )
    found = {}
    for sample in profile.samples:
        for line in {
            (line["function_id"], line["line"])
            for location_id in sample.stack
            for line in profile.locations[location_id]["line"]
        }:
            found_function = profile.functions[line[0]]
            if function in found_function["name"]:
                place = os.path.basename(found_function["filename"]), line[1]
                found[place] = found.get(place, 0) + sample.values[0]
    return found


def wait_until_tables_sent(agent, build_ids, seconds=480):
    deadline = time.monotonic() + seconds
    while not all(f"build_id={build_id} kind=table" in agent.log() for build_id in build_ids):
        assert time.monotonic() < deadline, agent.log()
        time.sleep(0.2)


def wait_until_spooled(agent):
    """Waits until a batch is in the spool because the server is not reachable."""
    deadline = time.monotonic() + 180
    while not ("could not be sent; it is tried again" in agent.log() and agent.waiting()):
        assert time.monotonic() < deadline, agent.log()
        time.sleep(0.1)


def test_the_agent_profiles_a_busy_host_completely_despite_an_outage(start_server, tmp_path, loads):
    server = start_server()
    tenant = Tenant(server)
    agent = Agent(
        tmp_path, server, tenant.make_token("ingest", "debuginfo")["token"], "--environment=LOAD"
    )
    begin = now()
    agent.start()
    processes = start_all(loads)
    try:
        time.sleep(SECONDS / 3)
        server.stop()
        time.sleep(SECONDS / 3)
        wait_until_spooled(agent)
        server.start()
        time.sleep(SECONDS / 3)
        used = end_all(processes)
        time.sleep(2)  # the last window
        deadline = time.monotonic() + 180
        wait_until_tables_sent(
            agent, [build_id_of(loads["c"][0][0]), build_id_of(loads["go"][0][0])]
        )
        while agent.waiting():
            assert time.monotonic() < deadline, agent.log()
            time.sleep(0.2)
        agent.stop()
    finally:
        for process in processes.values():
            process.kill()
        agent.stop(9)
    client = server.api(tenant.make_token("read")["token"])
    assert not agent.waiting()
    for name, (_, function, file, lines) in loads.items():
        selector = CPU + f'{{process_environment_variable_LOAD="{name}"}}'
        deadline = time.monotonic() + 120
        rows = {}
        while not any(function in frame for stack in rows for frame in stack):
            assert time.monotonic() < deadline, (name, rows)
            _, rows = folded(client, selector, begin, now() + HOUR)
            time.sleep(0.5)
        total = sum(rows.values())
        named = sum(
            value for stack, value in rows.items() if any(function in frame for frame in stack)
        )
        assert 0.8 * used[name] - 0.1e9 < total < 1.2 * used[name] + 0.1e9, (name, total, used)
        assert named > 0.7 * total, (name, named, total)
        response = client.get(
            "/api/v1/query",
            query={"query": selector, "start": begin, "end": now() + HOUR, "report": "svg"},
        )
        assert response.status == 200 and function in response.text, (name, response)
        if file:
            found = places(client, selector, begin, function)
            known = sum(
                count for (path, line), count in found.items() if path == file and line in lines
            )
            assert known > 0.9 * sum(found.values()), (name, found)
