"""Real agents of other profilers send to a real server, and queries return their profiles.

`make interop` fetches and builds the agents; without them these tests are skipped.
"""

import os
import subprocess

import pytest

from conftest import ROOT
from people import Tenant

CLIENTS = ROOT / "tests" / "clients"

BUILT = ROOT / "build" / "clients"


def need(path):
    if not path.exists():
        pytest.skip("make interop fetches the agents")
    return path


def run_profiled(server, command, name="checkout"):
    """(client of a new team, the finished process). Go and Rust read CAs from SSL_CERT_FILE."""
    tenant = Tenant(server)
    environment = {**os.environ, "SSL_CERT_FILE": str(server.ca_file)}
    done = subprocess.run(
        [*command, server.url, tenant.make_token("ingest")["token"], name],
        env=environment,
        timeout=60,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and "rror" not in done.stderr, done.stderr
    return tenant.api("read"), done


def functions(client, query):
    response = client.get("/api/v1/query", query={"query": query, "report": "top", "limit": 0})
    assert response.status == 200, response
    return {row["name"]: row for row in response.json()["functions"]}


@pytest.mark.parametrize("credentials", ["bearer", "basic"])
def test_the_server_accepts_profiles_of_the_pyroscope_agent_for_node(server, credentials):
    need(CLIENTS / "node_modules" / "@pyroscope" / "nodejs")
    tenant = Tenant(server)
    token = tenant.make_token("ingest")["token"]
    done = subprocess.run(
        ["node", "profiled.mjs", server.url, token, "checkout", credentials],
        cwd=CLIENTS,
        timeout=60,
        env={**os.environ, "NODE_EXTRA_CA_CERTS": str(server.ca_file), "DEBUG": "pyroscope*"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and done.stdout == "2000\n", done.stderr
    assert "rejected" not in done.stderr and "Error" not in done.stderr, done.stderr
    client = tenant.api("read")
    labels = '{service_name="checkout",region="eu",process_runtime_name="nodejs"}'
    cpu = functions(client, "process_cpu:cpu:nanoseconds:wall:nanoseconds" + labels)
    burnt = [row["cum"] for name, row in cpu.items() if "burnTime" in name]
    # At least a part of the time that it used; other tests use the processors, too.
    assert burnt and sum(burnt) > 5 * 10**6, cpu
    heap = functions(client, "memory:inuse_space:bytes:inuse_space:bytes" + labels)
    assert any("keepMemory" in name for name in heap), heap


def test_the_server_accepts_profiles_of_the_pyroscope_agent_for_go(server):
    client, _ = run_profiled(server, [need(BUILT / "profiled-go")])
    labels = '{service_name="checkout",region="eu",process_runtime_name="go",pyroscope_spy="gospy"}'
    cpu = functions(client, "process_cpu:cpu:nanoseconds:cpu:nanoseconds" + labels)
    assert cpu["main.burnTime"]["cum"] > 500 * 10**6, cpu  # of 1 s
    # 1,000 times 64 KiB were allocated; Go samples about every 512 KiB, so the sum is inexact.
    allocated = functions(client, "memory:alloc_space:bytes:space:bytes" + labels)[
        "main.keepMemory"
    ]
    assert 32 << 20 < allocated["flat"] < 128 << 20, allocated
    types = {row["type"]: row["rule"] for row in client.get("/api/v1/profile_types").json()["data"]}
    assert types["memory:inuse_space:bytes:space:bytes"] == "mean"
    assert types["memory:alloc_objects:count:space:bytes:delta"] == "sum"


def test_the_server_accepts_profiles_of_the_pyroscope_agent_for_python(server):
    program = need(BUILT / "python" / "bin" / "python")
    client, _ = run_profiled(server, [program, CLIENTS / "python" / "profiled.py"])
    labels = '{service_name="checkout",region="eu",process_runtime_name="cpython"}'
    cpu = functions(client, "process_cpu:cpu:nanoseconds:cpu:nanoseconds" + labels)
    burnt = [row["cum"] for name, row in cpu.items() if "burn_time" in name]
    assert burnt and sum(burnt) > 500 * 10**6, cpu
