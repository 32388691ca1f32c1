"""Options of perfolio-agent that no other test uses work as its help describes.

test_program_flags.py checks that each option has a test."""

import http.server
import json
import re
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time

import pytest

from conftest import AGENT
from debuginfod_stub import Stub
from people import Tenant
from test_agent import (
    CPU,
    HOUR,
    Agent,
    Pods,
    REFUSAL,
    send_request,
    build_id_of,
    cgroup,
    let_it_run,
    now,
    program,  # noqa: F401
    spin,
    spinning,
    start_agent,
    tenant,
)
from test_debuginfo_upstreams import need, tables_of
from test_debuginfo_upstreams import wait_for as wait_until_there

SANITIZER = re.compile(r"AddressSanitizer|LeakSanitizer|runtime error:|UndefinedBehavior")

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(REFUSAL is not None, reason=f"the kernel refuses: {REFUSAL}"),
]


@pytest.fixture(autouse=True)
def no_sanitizer_report(tmp_path):
    """The step clients builds the agent with AddressSanitizer and UndefinedBehaviorSanitizer."""
    yield
    log = tmp_path / "agent.log"
    assert not log.exists() or not SANITIZER.search(log.read_text()), log.read_text()


def wait_for(condition, agent, seconds=600):
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert agent.process.poll() is None and time.monotonic() < deadline, agent.log()
        time.sleep(0.1)
    return found


# ---- connections ----


class Tunnel:
    """An HTTP proxy that connects to the target of each CONNECT request; requests records them."""

    def __init__(self):
        self.requests, self.listener = [], socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.forward, args=(client,), daemon=True).start()

    def forward(self, client):
        with client:
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += client.recv(1) or b"\r\n\r\n"
            verb, target, _ = head.split(b"\r\n")[0].decode().split()
            self.requests.append((verb, target))
            host, _, port = target.rpartition(":")
            with socket.create_connection((host, int(port))) as server:
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                back = threading.Thread(target=self.copy, args=(server, client), daemon=True)
                back.start()
                self.copy(client, server)
                back.join(60)

    @staticmethod
    def copy(source, target):
        try:
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def has_series(client, begin, match, metric=CPU):
    response = client.get(
        "/api/v1/series", query={"start": begin, "end": now() + HOUR, "match[]": metric + match}
    )
    assert response.status == 200, response
    return bool(response.json()["data"])


def test_the_agent_sends_through_the_proxy(start_agent, server, tenant, program):  # noqa: F811
    tunnel, begin = Tunnel(), now()
    agent = start_agent(f"--proxy=http://127.0.0.1:{tunnel.port}", "--symbols=off")
    spin(program, 1.5)
    agent.stop()
    tunnel.listener.close()
    assert set(tunnel.requests) == {("CONNECT", f"localhost:{server.port}")}, agent.log()
    assert has_series(
        server.api(tenant.make_token("read")["token"]),
        begin,
        f'{{process_executable_name="{program.name}"}}',
    )


def test_pods_ca_file_verifies_the_certificate_of_the_kubelet(start_agent, tmp_path):  # noqa: F811
    cert, key = tmp_path / "kubelet.crt", tmp_path / "kubelet.key"
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost",
            "-keyout",
            key,
            "-out",
            cert,
        ],
        check=True,
        capture_output=True,
    )
    kubelet = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pods)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    kubelet.socket = context.wrap_socket(kubelet.socket, server_side=True)
    kubelet.handle_error = lambda *_: None  # an agent that does not trust it closes the connection
    threading.Thread(target=kubelet.serve_forever, daemon=True).start()
    (tmp_path / "pods-token").write_text("pods-token\n")
    flags = (
        f"--pods=https://localhost:{kubelet.server_port}/pods",
        f"--pods-token-file={tmp_path}/pods-token",
        "--symbols=off",
    )
    try:
        Pods.request_count = 0
        agent = start_agent(
            *flags, f"--pods-ca-file={tmp_path}/token"
        )  # a file without the kubelet's certificate
        wait_for(lambda: re.search(r"pods.*(certificate|trust|CA|PEM)", agent.log(), re.I), agent)
        agent.stop()
        assert Pods.request_count == 0
        agent = start_agent(*flags, f"--pods-ca-file={cert}")
        wait_for(lambda: Pods.request_count, agent)
        agent.stop()
    finally:
        kubelet.shutdown()


# ---- off-CPU time ----

NAPS = "import time\nwhile True: time.sleep(0.01)\n"


@pytest.fixture
def napping(tmp_path):
    """A process with a unique executable name that sleeps for 10 ms at a time."""
    python = shutil.copy(sys.executable, tmp_path / f"naps-{time.monotonic_ns() % 10**6}")
    with spinning(python, "-c", NAPS) as process:
        yield python.name, process


def off_cpu_ns(client, begin, name):
    """Returns the off-CPU time of the process in nanoseconds, 0 if it has no series. A process
    that did not wait while it was sampled has no off-CPU series, although the type exists."""
    response = client.get(
        "/api/v1/query",
        query={
            "query": f'off_cpu{{process_executable_name="{name}"}}',
            "report": "top",
            "start": begin,
            "end": now() + HOUR,
        },
    )
    assert response.status in (200, 404), response
    return response.json()["total"] if response.status == 200 else 0


def test_off_cpu_records_intervals_of_at_least_min_off_cpu(
    start_agent, server, tenant, napping
):  # noqa: F811
    name, _ = napping
    client = server.api(tenant.make_token("read")["token"])
    begin = now()
    agent = start_agent(
        "--off-cpu=1", "--min-off-cpu=50000000", "--symbols=off"
    )  # intervals of 50 s and more
    wait_for(lambda: has_series(client, begin, "{}"), agent)  # a window was sent
    agent.stop()
    assert off_cpu_ns(client, begin, name) == 0, agent.log()
    begin = now()
    agent = start_agent("--off-cpu=1", "--min-wait=100", "--symbols=off")
    wait_for(lambda: off_cpu_ns(client, begin, name) > 10**8, agent)
    agent.stop()


# ---- symbol tables ----


def test_symbols_all_sends_tables_that_other_sources_already_supplied(
    start_agent, start_server, program, tmp_path
):  # noqa: F811
    """The server has a public table from a debuginfod server; the team has no table of its own."""
    build_id = build_id_of(program)
    with Stub() as stub:
        stub.content = program.read_bytes()
        server = start_server(
            f"--debuginfod-urls={stub.url('content')}", "--debuginfod-allow-host=127.0.0.1"
        )
        team = Tenant(server)
        need(server, team, build_id)
        wait_until_there(lambda: tables_of(server, build_id) == ["public"])
        for policy in ("missing", "all"):
            (tmp_path / policy).mkdir()
            agent = Agent(
                tmp_path / policy,
                server,
                team.make_token("ingest", "debuginfo")["token"],
                f"--symbols={policy}",
                f"--metrics=unix:{tmp_path}/{policy}.sock",
            ).start()
            try:
                with spinning(program):
                    if policy == "all":
                        agent.wait_for(f"build_id={build_id} kind=table")
                    else:
                        wait_for(
                            lambda: re.search(
                                r"symbols_known_total [1-9]",
                                send_request(
                                    f"{tmp_path}/missing.sock", b"GET /metrics HTTP/1.1\r\n\r\n"
                                )[1],
                            ),
                            agent,
                        )
            finally:
                agent.stop()
            assert (f"build_id={build_id} kind=table" in agent.log()) == (
                policy == "all"
            ), agent.log()


@pytest.mark.long
def test_symbols_memory_limits_the_building_of_a_table(start_agent, program):  # noqa: F811
    """A program with 96 MiB of debug information exceeds the limit of 64 MiB."""
    with open(program.parent / "text", "wb") as file:
        file.truncate(96 << 20)
    subprocess.run(
        ["objcopy", "--update-section", f".debug_str={program.parent}/text", program], check=True
    )
    agent = start_agent("--symbols-memory=64", "--symbols=all", scopes=("ingest", "debuginfo"))
    with spinning(program):
        wait_for(
            lambda: re.search(
                rf"no symbol table for a binary.*build_id={build_id_of(program)}.*limit of 64 MiB",
                agent.log(),
            ),
            agent,
        )
    agent.stop()


# ---- sampling and processes ----


def test_frequency_sets_the_sampling_rate(start_agent, program):  # noqa: F811
    counts = []
    for frequency in (19, 997):
        agent = start_agent(f"--frequency={frequency}", "--symbols=off", "--interval=1")
        spin(program, 2)
        agent.stop()
        counts.append(int(re.findall(r" samples=(\d+)", agent.log())[-1]))
    assert counts[1] > 5 * counts[0] > 0, counts


def test_force_starts_the_agent(start_agent, program):  # noqa: F811
    agent = start_agent("--force", "--symbols=off")
    with spinning(program) as process:
        let_it_run(process)
    agent.stop()
    assert 'msg="sampling"' in agent.log()


def test_host_root_is_searched_for_containers(
    start_agent, server, tenant, program, tmp_path, cgroup
):  # noqa: F811
    """The folder given as the host's root contains a state file of containerd."""
    container = cgroup.name[len("cri-containerd-") : -len(".scope")]
    state = tmp_path / "root/run/containerd/io.containerd.runtime.v2.task/k8s.io" / container
    state.mkdir(parents=True)
    (state / "config.json").write_text(
        json.dumps(
            {
                "annotations": {
                    "io.kubernetes.cri.sandbox-name": "web-7",
                    "io.kubernetes.cri.sandbox-namespace": "shop",
                    "io.kubernetes.cri.container-name": "c",
                    "io.kubernetes.cri.container-type": "container",
                }
            }
        )
    )
    client, begin = server.api(tenant.make_token("read")["token"]), now()
    agent = start_agent(f"--host-root={tmp_path}/root", "--symbols=off")
    with spinning(
        "sh", "-c", f"echo $$ > {cgroup}/cgroup.procs; exec {program} 100000000"
    ) as process:
        let_it_run(process)
    agent.stop()
    assert has_series(
        client, begin, '{k8s_pod_name="web-7",k8s_namespace_name="shop"}'
    ), agent.log()


def test_show_unwind_prints_json(program):  # noqa: F811
    plain, as_json = (
        subprocess.run(
            [AGENT, "show-unwind", *flags, program], capture_output=True, text=True, timeout=60
        )
        for flags in ((), ("--json",))
    )
    assert plain.returncode == as_json.returncode == 0, as_json.stderr
    shown = json.loads(as_json.stdout)
    assert shown["path"] == str(program) and len(shown["rows"]) > 10
    assert f"{program}: " in plain.stdout and f"{len(shown['rows'])} rows" in plain.stdout
