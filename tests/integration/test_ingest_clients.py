"""Real agents of other profilers send to a real server, and a query finds what their programs did.
They are fetched by `make interop`; without them these tests are skipped."""

import os
import subprocess

import pytest

from conftest import ROOT
from people import Tenant

CLIENTS = ROOT / "tests" / "clients"

pytestmark = pytest.mark.skipif(not (CLIENTS / "node_modules" / "@pyroscope" / "nodejs").is_dir(),
                                reason="make interop fetches the agents")


def functions(client, query):
    answer = client.get("/api/v1/query", query={"query": query, "report": "top", "limit": 0})
    assert answer.status == 200, answer
    return {row["name"]: row for row in answer.json()["functions"]}


@pytest.mark.parametrize("credentials", ["bearer", "basic"])
def test_pyroscopes_agent_for_node(server, credentials):
    tenant = Tenant(server)
    token = tenant.make_token("ingest")["token"]
    done = subprocess.run(
        ["node", "profiled.mjs", server.url, token, "checkout", credentials], cwd=CLIENTS, timeout=60,
        env={**os.environ, "NODE_EXTRA_CA_CERTS": str(server.ca_file), "DEBUG": "pyroscope*"},
        capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == "2000\n", done.stderr
    assert "rejected" not in done.stderr and "Error" not in done.stderr, done.stderr
    client = tenant.api("read")
    labels = '{service_name="checkout",region="eu",process_runtime_name="nodejs"}'
    cpu = functions(client, "process_cpu:cpu:nanoseconds:wall:nanoseconds" + labels)
    burnt = [row["cum"] for name, row in cpu.items() if "burnTime" in name]
    # At least a tenth of the time that it took for sure, as other tests take processors, too.
    assert burnt and sum(burnt) > 30 * 10**6, cpu
    heap = functions(client, "memory:inuse_space:bytes:inuse_space:bytes" + labels)
    assert any("keepMemory" in name for name in heap), heap
