"""perfolio-agent against a real server.

The agent samples real processes and sends their profiles; queries select them by their labels.
"""

import contextlib
import http.server
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest

from conftest import AGENT, PERFOLIO
from people import Tenant
from test_record import CLOCK, REFUSAL, SOURCE
from test_store import folded

CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
HOUR = 3600 * 10**9
STARTED = 'msg="sampling"'

pytestmark = pytest.mark.skipif(REFUSAL is not None, reason=f"the kernel refuses: {REFUSAL}")


class Agent:
    def __init__(self, folder, server, token, *arguments):
        self.spool = folder / "spool"
        self.log_path = folder / "agent.log"
        token_file = folder / "token"
        token_file.write_text(token + "\n")
        self.command = [
            str(AGENT),
            f"--server={server.url}",
            f"--token-file={token_file}",
            f"--ca-file={server.ca_file}",
            f"--spool-dir={self.spool}",
            "--interval=1",
            "--frequency=199",
            *arguments,
        ]
        self.process = None

    def start(self):
        self.log_begin = len(self.log()) if self.log_path.exists() else 0
        with open(self.log_path, "a") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log)
        self.wait_for(STARTED)
        return self

    def log(self):
        return self.log_path.read_text()

    def wait_for(self, text, seconds=120):
        deadline = time.monotonic() + seconds
        begin = self.log_begin if text == STARTED else 0
        while text not in self.log()[begin:]:
            assert self.process.poll() is None and time.monotonic() < deadline, self.log()
            time.sleep(0.05)

    def stop(self, number=signal.SIGTERM):
        if self.process and self.process.poll() is None:
            self.process.send_signal(number)
            assert self.process.wait(60) in (0, -number), self.log()

    def waiting(self):
        return sorted(self.spool.glob("*.otlp.zst"))


@pytest.fixture
def tenant(server):
    return Tenant(server)


@pytest.fixture
def start_agent(server, tenant, tmp_path):
    agents = []

    def start(*arguments, at=server, scopes=("ingest",)):
        agent = Agent(tmp_path, at, tenant.make_token(*scopes)["token"], *arguments)
        agents.append(agent)
        return agent.start()

    yield start
    for agent in agents:
        agent.stop(signal.SIGKILL)


# Unique to this process: an agent samples the whole host, where other tests may run the same
# program. At most 15 characters, because the kernel truncates longer names.
NAME = f"spin-{os.getpid()}"


@pytest.fixture
def program(tmp_path):
    (tmp_path / "spin.c").write_text(SOURCE)
    path = tmp_path / NAME
    subprocess.run(
        [
            "gcc",
            "-g",
            "-O1",
            "-fno-omit-frame-pointer",
            "-fno-optimize-sibling-calls",
            "-Wl,--build-id",
            tmp_path / "spin.c",
            "-o",
            path,
        ],
        check=True,
    )
    return path


def spin(program, seconds):
    """Runs program for this many seconds; returns the CPU time that it used, in nanoseconds."""
    process = subprocess.Popen([program, "100000000"])
    time.sleep(seconds)
    process.kill()
    _, _, used = os.wait4(process.pid, 0)
    process.returncode = -signal.SIGKILL
    return int((used.ru_utime + used.ru_stime) * 1e9)


@contextlib.contextmanager
def spinning(*command, env=None):
    process = subprocess.Popen(command if len(command) > 1 else [*command, "100000000"], env=env)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def is_about(total, spun):
    """A sample counts 5 ms, and some are taken while the program starts and ends."""
    return 0.8 * spun - 0.05e9 < total < 1.2 * spun + 0.05e9


def now():
    return time.time_ns()


@pytest.mark.long
def test_labels_select_a_process_and_an_uploaded_table_names_its_functions(
    start_agent, server, tenant, program, tmp_path
):
    begin = now()
    agent = start_agent("--label=env=test")
    spun = spin(program, 2.5)
    agent.stop()
    assert not agent.waiting(), agent.log()
    client = server.api(tenant.make_token("read")["token"])
    selector = CPU + f'{{process_executable_name="{NAME}",env="test"}}'
    subprocess.run(
        [PERFOLIO, "debuginfo", "upload", program],
        check=True,
        timeout=60,
        env={
            "HOME": str(tmp_path),
            "PERFOLIO_URL": server.url,
            "PERFOLIO_CA_FILE": str(server.ca_file),
            "PERFOLIO_TOKEN": tenant.make_token("debuginfo", "read")["token"],
        },
    )
    response, rows = folded(client, selector, begin, now() + HOUR)
    total = sum(rows.values())
    assert is_about(total, spun)
    by_thread = client.get(
        "/api/v1/query",
        query={
            "query": selector,
            "start": begin,
            "end": now() + HOUR,
            "report": "folded",
            "group_by": "thread.name",
        },
    )
    assert by_thread.status == 200, by_thread
    # A sample within execve has the previous name of the thread.
    named = sum(
        int(line.rpartition(" ")[2])
        for line in by_thread.text.splitlines()
        if line.startswith(f"{NAME[:15]};")
    )
    assert named > 0.9 * total, by_thread.text
    for thread, exists in ((NAME[:15], True), ("none", False)):
        of_thread = client.get(
            "/api/v1/query",
            query={
                "query": selector.removesuffix("}") + f',thread.name="{thread}"}}',
                "start": begin,
                "end": now() + HOUR,
                "report": "folded",
            },
        )
        assert of_thread.status == 200 and bool(of_thread.text) == exists, of_thread
    whole = sum(
        value
        for stack, value in rows.items()
        if ("main" in stack and stack[-3:] == ("outer", "middle", "inner"))
    )
    assert whole > 0.9 * total, rows
    series = client.get(
        "/api/v1/series", query={"start": begin, "end": now() + HOUR, "match[]": selector}
    ).json()
    assert NAME in str(series) and "host_name" in str(series)


def names_of_spinning(client, begin, name, seconds=120):
    """Waits until the rows of the program contain names of functions, and returns them."""
    selector = CPU + '{process_executable_name="' + name + '"}'
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        _, rows = folded(client, selector, begin, now() + HOUR)
        if any("inner" in stack for stack in rows):
            return rows
        time.sleep(0.5)
    return rows


def build_id_of(program):
    notes = subprocess.run(
        ["readelf", "-n", program], check=True, capture_output=True, text=True
    ).stdout
    return re.search(r"Build ID: ([0-9a-f]+)", notes)[1]


@pytest.mark.long
def test_the_agent_sends_symbols_of_sampled_programs_once(
    start_agent, server, tenant, program, tmp_path
):
    begin = now()
    build_id = build_id_of(program)
    agent = start_agent(scopes=("ingest", "debuginfo"))
    with spinning(program):
        agent.wait_for(f"build_id={build_id} kind=table", 120)
        time.sleep(1)
    agent.stop()
    client = server.api(tenant.make_token("read", "debuginfo")["token"])
    rows = names_of_spinning(client, begin, program.name)
    total = sum(rows.values())
    whole = sum(
        value
        for stack, value in rows.items()
        if "main" in stack and stack[-3:] == ("outer", "middle", "inner")
    )
    assert whole > 0.9 * total, rows
    status = client.get(f"/api/v1/debuginfo/{build_id}").json()
    # The agent sends symbols and no code: a table, and neither the binary nor a debug file.
    assert (
        status["state"] == "ready"
        and status["table"]["file"] == program.name
        and not status["files"]
    )
    assert "lines" in status["table"]["quality"]
    # A second agent without state of the first one queries the server and sends nothing.
    agent.command += [f"--metrics=unix:{tmp_path}/metrics.sock"]
    agent.start()
    deadline = time.monotonic() + 120
    text = ""
    with spinning(program):
        while not re.search(r"symbols_known_total [1-9]", text):
            assert time.monotonic() < deadline, text
            text = send_request(str(tmp_path / "metrics.sock"), b"GET /metrics HTTP/1.1\r\n\r\n")[1]
            time.sleep(0.2)
    agent.stop()
    assert agent.log().count(f"build_id={build_id} kind=table") == 1


@pytest.mark.long
def test_symbols_are_not_sent_if_they_are_off_or_the_token_lacks_the_scope(
    start_agent, server, tenant, program
):
    build_id = build_id_of(program)
    client = server.api(tenant.make_token("read", "debuginfo")["token"])
    agent = start_agent("--symbols=off", scopes=("ingest", "debuginfo"))
    spin(program, 1.5)
    agent.stop()
    assert client.get(f"/api/v1/debuginfo/{build_id}").json()["state"] == "missing"
    agent = start_agent()  # its token lacks the scope
    with spinning(program):
        agent.wait_for("needs the scope debuginfo", 120)
    agent.stop()
    assert not agent.waiting(), agent.log()
    assert client.get(f"/api/v1/debuginfo/{build_id}").json()["state"] == "missing"


def rights_of_threads(process):
    """{(effective capabilities, no_new_privs)} of all threads of the process."""
    found = set()
    for status in Path(f"/proc/{process.pid}/task").glob("*/status"):
        text = status.read_text()
        found.add(
            (
                int(re.search(r"CapEff:\s+(\w+)", text)[1], 16),
                re.search(r"NoNewPrivs:\s+(\d)", text)[1],
            )
        )
    return found


@pytest.mark.long
@pytest.mark.parametrize(
    "form",
    [
        pytest.param((), id="loop"),
        pytest.param(("--bounded-loops",), id="bounded", marks=pytest.mark.long),
    ],
)
def test_kernel_aggregation_loses_no_samples(start_agent, server, tenant, program, tmp_path, form):
    """The sampling spans several windows, which end between samples of the same stack. The agent
    samples all processes of the host."""
    begin = now()
    agent = start_agent("--aggregate=kernel", f"--metrics=unix:{tmp_path}/metrics.sock", *form)
    spun = spin(program, 5.5)
    text = send_request(str(tmp_path / "metrics.sock"), b"GET /metrics HTTP/1.1\r\n\r\n")[1]
    agent.stop()
    samples, tallied = (
        int(re.search(rf"^perfolio_agent_{name}_total (\d+)$", text, re.M)[1])
        for name in ("samples", "tallied_samples")
    )
    assert samples > tallied > 50, text
    client = server.api(tenant.make_token("read")["token"])
    _, rows = folded(client, CPU + f'{{process_executable_name="{NAME}"}}', begin, now() + HOUR)
    assert is_about(sum(rows.values()), spun)
    assert sum(value for stack, value in rows.items() if len(stack) >= 4) > 0.9 * sum(
        rows.values()
    ), rows
    _, rows = folded(client, CPU, begin, now() + HOUR)
    taken = int(re.findall(r"samples=(\d+) lost_samples=0", agent.log())[-1])
    period = 10**9 // 199
    assert 0.99 * taken * period < sum(rows.values()) <= taken * period, (
        taken,
        sum(rows.values()) / period,
    )


TWINS = r"""
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    struct timespec begin, now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    do { /* seldom in the kernel and the vDSO, whose place differs */
        for (volatile int i = 0; i < 10000000; i++) {}
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    } while (now.tv_sec - begin.tv_sec < 2 || now.tv_nsec < begin.tv_nsec);
    return argc > 1 ? execv(argv[1], argv + 1) : 0;
}
"""


@pytest.mark.long
@pytest.mark.parametrize(
    "form",
    [
        pytest.param((), id="tables"),
        pytest.param(("--frame-pointers",), id="pointers", marks=pytest.mark.long),
        pytest.param(
            ("--frame-pointers", "--bounded-loops"), id="bounded-pointers", marks=pytest.mark.long
        ),
    ],
)
def test_kernel_aggregation_attributes_samples_to_the_running_program(
    start_agent, server, tenant, tmp_path, form
):
    """Two programs of the same name run one after the other in one process and one window, with the
    same code at the same addresses."""
    twins = [tmp_path / folder / NAME for folder in "ab"]
    (tmp_path / "twins.c").write_text(TWINS)
    for twin in twins:
        twin.parent.mkdir()
        subprocess.run(
            [
                "gcc",
                "-O1",
                "-static",
                "-no-pie",
                "-Wl,--build-id=sha1",
                f"-Wl,--defsym=which_{twin.parent.name}=1",
                tmp_path / "twins.c",
                "-o",
                twin,
            ],
            check=True,
        )
    begin = now()
    agent = start_agent("--aggregate=kernel", "--interval=30", *form)
    subprocess.run([twins[0], twins[1]], check=True)
    agent.stop()
    client = server.api(tenant.make_token("read")["token"])
    found = [
        sum(
            folded(client, CPU + f'{{process_executable_path="{twin}"}}', begin, now() + HOUR)[
                1
            ].values()
        )
        for twin in twins
    ]
    assert all(is_about(value, 2e9) for value in found), found


@pytest.mark.long
def test_the_agent_names_functions_of_the_vdso(start_agent, server, tenant, tmp_path):
    (tmp_path / "clock.c").write_text(CLOCK)
    subprocess.run(["gcc", "-O1", tmp_path / "clock.c", "-o", tmp_path / NAME], check=True)
    begin = now()
    agent = start_agent("--symbols=off")
    subprocess.run([tmp_path / NAME], check=True)
    agent.stop()
    client = server.api(tenant.make_token("read")["token"])
    _, rows = folded(client, CPU + f'{{process_executable_name="{NAME}"}}', begin, now() + HOUR)
    named = sum(
        value
        for stack, value in rows.items()
        if any(re.fullmatch("__(vdso|kernel)_clock_gettime", name) for name in stack)
    )
    assert named > 0.5 * sum(rows.values()) > 0, rows


def test_the_agent_drops_capabilities_after_sampling_has_started(start_agent, tmp_path):
    agent = start_agent(f"--metrics=unix:{tmp_path}/metrics.sock")
    reading, sampling = 1 << 2, 1 << 2 | 1 << 19 | 1 << 34 | 1 << 39 | 1 << 40
    deadline = time.monotonic() + 60
    while len(rights := rights_of_threads(agent.process)) != 3 and time.monotonic() < deadline:
        time.sleep(0.05)  # new threads have not dropped theirs yet
    assert len(rights) == 3 and all(has_no_new == "1" for _, has_no_new in rights), rights
    # The capabilities of the engine, of the threads that send, and of the metrics thread (none).
    assert {effective & ~sampling for effective, _ in rights} == {0}
    assert sorted(effective & ~sampling | effective & reading for effective, _ in rights) == [
        0,
        reading,
        reading,
    ]
    assert 0 in {effective for effective, _ in rights} and reading in {
        effective for effective, _ in rights
    }


@pytest.mark.long
def test_the_agent_keeps_sampling_above_the_memory_limit_without_growing(
    start_agent, server, tenant, program, tmp_path
):
    begin = now()
    agent = start_agent("--memory-limit=8", f"--metrics=unix:{tmp_path}/metrics.sock")
    deadline = time.monotonic() + 60
    values = {}
    with spinning(program):
        while not values.get("short_of_memory_seconds_total") or not values.get("refused_total"):
            assert time.monotonic() < deadline, values
            text = send_request(str(tmp_path / "metrics.sock"), b"GET /metrics HTTP/1.1\r\n\r\n")[1]
            values = {
                name: int(value)
                for name, value in re.findall(r"^perfolio_agent_(\S+) (\d+)$", text, re.M)
            }
            time.sleep(0.2)
    client = server.api(tenant.make_token("read")["token"])
    with spinning(shutil.copy(program, tmp_path / "late-spin")) as process:
        let_it_run(process)
    agent.stop()
    assert "late-spin" in series_of(client, begin, '{process_executable_name="late-spin"}')


@pytest.mark.long
def test_above_the_memory_limit_batches_are_at_least_a_second_apart(program, tmp_path):
    folder = tmp_path / "offline"
    agent = subprocess.Popen(
        [AGENT, f"--offline-dir={folder}", "--interval=60", "--frequency=199", "--memory-limit=8"],
        stderr=subprocess.PIPE,
        text=True,
    )
    begin = time.monotonic()
    try:
        with spinning(program):
            while len(list(folder.glob("*.otlp.zst"))) < 4:
                assert time.monotonic() < begin + 120
                time.sleep(0.05)
    finally:
        agent.terminate()
        _, log = agent.communicate(timeout=60)
    # At least a second passes between two batches; the agent writes the last one when it ends.
    assert len(list(folder.glob("*.otlp.zst"))) <= time.monotonic() - begin + 2, log
    assert "the memory limit is below" in log


def let_it_run(process, seconds=0.4):
    """Waits until process has used this many seconds of CPU time, which takes longer on a busy
    host."""
    deadline = time.monotonic() + 120
    while (
        sum(
            map(
                int, Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
            )
        )
        < 100 * seconds
    ):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.1)
    time.sleep(0.5)


def series_of(client, begin, match):
    return str(
        client.get(
            "/api/v1/series", query={"start": begin, "end": now() + HOUR, "match[]": CPU + match}
        ).json()
    )


RULES = r"""
relabel_configs:
- source_labels: [__meta_process_executable_name]
  regex: unwanted-.*
  action: drop
- source_labels: [__meta_env_var_STAGE, __meta_process_executable_compiler]
  separator: "@"
  regex: (\w+)@GCC.*
  target_label: stage
  replacement: $1-gcc
- action: labeldrop
  regex: process_executable_path|os_kernel_release
"""


@pytest.mark.long
def test_relabel_rules_set_labels_and_dropped_data_is_not_sent(
    start_agent, server, tenant, program, tmp_path
):
    rules = tmp_path / "relabel.yaml"
    rules.write_text(RULES)
    begin = now()
    agent = start_agent(f"--relabel-file={rules}", "--environment=STAGE", "--symbols=off")
    client = server.api(tenant.make_token("read")["token"])
    unwanted = shutil.copy(program, tmp_path / "unwanted-spin")
    with spinning(unwanted) as other, spinning(
        program, env={"STAGE": "canary", "SECRET": "hunter2"}
    ) as process:
        let_it_run(process)
        let_it_run(other)
    agent.stop()
    text = series_of(client, begin, f'{{process_executable_name="{NAME}"}}')
    names = client.get(
        "/api/v1/label/process_executable_name/values", query={"start": begin, "end": now() + HOUR}
    ).json()
    assert NAME in str(names) and "unwanted-spin" not in str(names)
    assert "canary-gcc" in text and "process_environment_variable_STAGE" in text, text
    assert "process_executable_compiler" in text and "GCC" in text and "host_cpu_model_name" in text
    for lost in ("hunter2", "process_executable_path", "os_kernel_release", "__meta"):
        assert lost not in text


def test_an_invalid_relabel_rule_is_reported_with_its_line(tmp_path):
    rules = tmp_path / "relabel.yaml"
    rules.write_text("relabel_configs:\n- action: explode\n")
    done = subprocess.run(
        [AGENT, f"--offline-dir={tmp_path / 'x'}", f"--relabel-file={rules}"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2 and f"{rules}: line 2: there is no such action" in done.stderr


# A path of the kubelet, and one of the API server.
PODS_PATHS = ["/pods", "/api/v1/pods?fieldSelector=spec.nodeName=node-7"]


class Pods(http.server.BaseHTTPRequestHandler):
    """Responds as a kubelet does; the test sets the id of the container."""

    container = ""
    request_count = 0

    def do_GET(self):
        Pods.request_count += 1
        is_right = self.path in PODS_PATHS and self.headers["Authorization"] == "Bearer pods-token"
        body = json.dumps(
            {
                "items": [
                    {
                        "metadata": {
                            "name": "web-1",
                            "namespace": "shop",
                            "labels": {"app.kubernetes.io/name": "web"},
                        },
                        "spec": {"nodeName": "node-7"},
                        "status": {
                            "containerStatuses": [
                                {
                                    "name": "c",
                                    "image": "i",
                                    "containerID": f"containerd://{Pods.container}",
                                }
                            ]
                        },
                    }
                ]
            }
        ).encode()
        self.send_response(200 if is_right else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def cgroup():
    """A cgroup such as a container runtime creates."""
    name = "cri-containerd-" + os.urandom(32).hex() + ".scope"
    roots = [
        Path(line.split()[4])
        for line in Path("/proc/self/mountinfo").read_text().splitlines()
        if " - cgroup2 " in line or " - cgroup " in line and "name=systemd" in line
    ]
    for root in roots:
        folder = root / "kubepods.slice" / name
        try:
            folder.mkdir(parents=True)
        except OSError:
            continue
        yield folder
        deadline = time.monotonic() + 60
        while folder.exists() and time.monotonic() < deadline:
            try:
                folder.rmdir()
            except OSError:
                time.sleep(0.1)
        with contextlib.suppress(OSError):
            folder.parent.rmdir()
        return
    pytest.skip("no cgroup can be made here")


@pytest.mark.long
@pytest.mark.parametrize("path", PODS_PATHS)
def test_the_agent_gets_the_labels_of_a_pod_from_the_kubelet(
    start_agent, server, tenant, program, tmp_path, cgroup, path
):
    Pods.container = cgroup.name[len("cri-containerd-") : -len(".scope")]
    kubelet = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pods)
    threading.Thread(target=kubelet.serve_forever, daemon=True).start()
    token = tmp_path / "pods-token"
    token.write_text("pods-token\n")
    begin = now()
    try:
        agent = start_agent(
            f"--pods=http://127.0.0.1:{kubelet.server_port}{path}",
            f"--pods-token-file={token}",
            "--symbols=off",
        )
        # A container runtime also creates the cgroup first and then starts the program in it.
        command = ["sh", "-c", f"echo $$ > {cgroup}/cgroup.procs; exec {program} 100000000"]
        client = server.api(tenant.make_token("read")["token"])
        with spinning(*command) as process:
            let_it_run(process)
        agent.stop()
        text = series_of(client, begin, '{k8s_pod_name="web-1"}')
    finally:
        kubelet.shutdown()
    assert Pods.request_count
    for label in (
        "'k8s_namespace_name': 'shop'",
        "'k8s_node_name': 'node-7'",
        "'service_name': 'web'",
        "'k8s_container_name': 'c'",
        f"'container_id': '{Pods.container}'",
        "'container_runtime': 'containerd'",
        "'systemd_slice': 'kubepods.slice'",
    ):
        assert label in text, text


def test_the_agent_samples_all_processes_of_the_host(start_agent, server, tenant, program):
    begin = now()
    agent = start_agent()
    spin(program, 1.5)
    agent.stop()
    client = server.api(tenant.make_token("read")["token"])
    values = client.get(
        "/api/v1/label/process_executable_name/values", query={"start": begin, "end": now() + HOUR}
    ).json()
    assert NAME in str(values)


NOW_AND_THEN = r"""
#include <stdio.h>
#include <time.h>

static double used(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* For each line it is given it takes 0.3 s of CPU time; between lines it sleeps. */
int main(void)
{
    while (getchar() == '\n') {
        const double until = used() + 0.3;
        while (used() < until)
            ;
        printf("done\n");
        fflush(stdout);
    }
}
"""


def covered(client, selector, begin, end, **more):
    response = client.get(
        "/api/v1/query_range",
        query={"query": CPU + selector, "start": begin, "end": end, "rate": "auto", **more},
    )
    assert response.status == 200, response
    return (
        response.json()["series"][0]
        if response.json()["series"]
        else {"covered_ms": 0, "points": []}
    )


@pytest.mark.long
def test_the_average_of_a_mostly_idle_process_includes_its_idle_time(
    start_agent, server, tenant, tmp_path
):
    """The average equals the CPU time that the kernel counted, divided by the lifetime of the
    process. Windows last about a second, and idle ones are reported together."""
    name = f"doze-{os.getpid()}"
    (tmp_path / "doze.c").write_text(NOW_AND_THEN)
    subprocess.run(["gcc", "-O1", tmp_path / "doze.c", "-o", tmp_path / name], check=True)
    selector = f'{{process_executable_name="{name}"}}'
    client = server.api(tenant.make_token("read")["token"])
    agent = start_agent()
    begin = now()
    with subprocess.Popen(
        [tmp_path / name], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            for burst in range(1, 4):
                process.stdin.write(b"\n")
                process.stdin.flush()
                assert process.stdout.readline() == b"done\n"
                deadline = time.monotonic() + 120
                while (
                    covered(client, selector, begin - HOUR, now() + HOUR)["covered_ms"]
                    < burst * 6000
                ):
                    assert time.monotonic() < deadline, agent.log()
                    time.sleep(0.2)
            agent.stop()
            end = now()
            ticks = sum(
                map(
                    int,
                    Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:13],
                )
            )
        finally:
            process.kill()
    series = covered(client, selector, begin - HOUR, end + HOUR)
    truth = ticks / os.sysconf("SC_CLK_TCK") * 1e9 / (end - begin)
    assert 0.7 * truth < series["average"] < 1.3 * truth, (truth, series)
    assert 0.85 * (end - begin) < series["covered_ms"] * 1e6 < 1.15 * (end - begin)
    # The line is at 0 between the bursts and has a gap where the agent did not run. Windows are
    # longer on a busy host, which leaves few zeros.
    points = covered(client, selector, begin + 2 * 10**9, end - 2 * 10**9, step="1s")["points"]
    assert len(points) >= (end - begin) // 10**9 - 6 and any(
        value == 0 for _, value in points
    ), points
    assert all(after - before == 1000 for (before, _), (after, _) in zip(points, points[1:]))
    assert covered(client, selector, end + 10**9, end + HOUR)["points"] == []


@pytest.mark.long
def test_an_outage_of_the_server_neither_loses_nor_repeats_samples(start_server, tmp_path, program):
    server = start_server()
    tenant = Tenant(server)
    agent = Agent(tmp_path, server, tenant.make_token("ingest")["token"])
    begin = now()
    agent.start()
    try:
        server.stop()
        spun = spin(program, 2.5)
        agent.wait_for("could not be sent; it is tried again")
        time.sleep(1.5)  # until the last window of the program is in the spool, too
        # The next agent also sends the batches of an agent that was killed.
        agent.stop(signal.SIGKILL)
        spooled = set(agent.waiting())
        assert spooled
        server.start()
        agent.start()
        deadline = time.monotonic() + 60
        while spooled & set(agent.waiting()):
            assert time.monotonic() < deadline, agent.log()
            time.sleep(0.1)
        agent.stop()
    finally:
        agent.stop(signal.SIGKILL)
    client = server.api(tenant.make_token("read")["token"])
    _, rows = folded(client, CPU + f'{{process_executable_name="{NAME}"}}', begin, now() + HOUR)
    assert is_about(sum(rows.values()), spun)


@contextlib.contextmanager
def responding(response):
    """A server without TLS; response(path) returns (status, content type or None, body)."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, content_type, body = response(self.path)
            self.send_response(status)
            if content_type:
                self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST

        def log_message(self, *arguments):
            pass

    stub = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=stub.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{stub.server_port}"
    finally:
        stub.shutdown()
        stub.server_close()


class Address:
    """The attributes of a server that Agent uses."""

    def __init__(self, url, ca_file="/etc/ssl/certs/ca-certificates.crt"):
        self.url, self.ca_file = url, ca_file


@pytest.mark.long
@pytest.mark.parametrize(
    "content_type, body",
    [
        ("text/html", b"<!DOCTYPE html>Log in"),
        (None, b"<html>Log in"),
        ("application/json", b"{}"),
        ("text/html", b""),
    ],
)
def test_a_login_page_in_place_of_the_server_acknowledges_no_batch(
    start_agent, tmp_path, content_type, body
):
    responses = {"is_portal": True}

    def response(path):
        is_batch = path == "/v1development/profiles" and not responses["is_portal"]
        return (200, "application/x-protobuf", b"") if is_batch else (200, content_type, body)

    with responding(response) as url:
        agent = start_agent("--symbols=off", at=Address(url))
        agent.wait_for("lead to a login page")
        spooled = set(agent.waiting())
        assert spooled and f'\\"{content_type or ""}\\"' in agent.log(), agent.log()
        responses["is_portal"] = False
        deadline = time.monotonic() + 60
        while spooled & set(agent.waiting()):
            assert time.monotonic() < deadline, agent.log()
            time.sleep(0.1)
        agent.stop()


@pytest.mark.long
@pytest.mark.parametrize(
    "content_type", ["text/plain; charset=utf-8", "Application/X-Protobuf", None]
)
def test_an_empty_response_of_any_type_acknowledges_the_batch(start_agent, content_type):
    requests = []

    def response(path):
        requests.append(path)
        return 200, content_type, b""

    with responding(response) as url:
        agent = start_agent("--symbols=off", at=Address(url))
        deadline = time.monotonic() + 60
        while len(requests) < 4:  # by then the agent has counted the response to the third
            assert time.monotonic() < deadline, agent.log()
            time.sleep(0.1)
        agent.stop()
        assert "the response is not OTLP" not in agent.log() and agent.waiting() == []
        assert 3 <= int(re.findall(r" sent=(\d+)", agent.log())[-1]) <= len(requests)


@pytest.mark.long
def test_an_untrusted_certificate_is_not_reported_as_a_token_error(
    server, tenant, tmp_path, program
):
    agent = Agent(tmp_path, Address(server.url), tenant.make_token("ingest", "debuginfo")["token"])
    try:
        agent.start()
        with spinning(program):
            agent.wait_for("is not trusted")
            time.sleep(1)
        assert "the token is not taken" not in agent.log()
    finally:
        agent.stop(signal.SIGKILL)


@pytest.mark.long
def test_perfolio_push_sends_offline_batches(server, tenant, tmp_path, program):
    folder = tmp_path / "offline"
    begin = now()
    agent = subprocess.Popen(
        [AGENT, f"--offline-dir={folder}", "--interval=1", "--frequency=199"],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        while STARTED not in (line := agent.stderr.readline()):
            assert line
        spun = spin(program, 1.5)
    finally:
        agent.terminate()
        _, log = agent.communicate(timeout=60)
    batches = sorted(folder.glob("*.otlp.zst"))
    assert batches, log
    client = server.api(tenant.make_token("read")["token"])
    environment = {
        "HOME": str(tmp_path),
        "PERFOLIO_URL": server.url,
        "PERFOLIO_CA_FILE": str(server.ca_file),
        "PERFOLIO_TOKEN": tenant.make_token("ingest")["token"],
    }
    done = subprocess.run(
        [PERFOLIO, "push", "--format", "otlp", *batches],
        env=environment,
        timeout=60,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    _, rows = folded(client, CPU + f'{{process_executable_name="{NAME}"}}', begin, now() + HOUR)
    assert is_about(sum(rows.values()), spun)


def test_a_second_agent_refuses_the_folder_of_a_running_one(start_agent, tmp_path):
    agent = start_agent()
    done = subprocess.run(agent.command, capture_output=True, text=True, timeout=60)
    assert (
        done.returncode == 1
        and f"another perfolio-agent keeps its batches in {agent.spool}" in done.stderr
    )
    agent.stop()


def test_an_agent_without_capabilities_creates_no_folder(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root to give up its rights")
    done = subprocess.run(
        [
            "setpriv",
            "--bounding-set=-all",
            "--inh-caps=-all",
            AGENT,
            f"--offline-dir={tmp_path / 'q'}",
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1 and "CAP_PERFMON" in done.stderr
    assert not (tmp_path / "q").exists()


def test_offline_mode_keeps_all_batches_without_an_explicit_limit(tmp_path):
    """The old batches exceed the default limit of the spool, 256 MB. They are sparse files, which
    take no space on the disk."""
    folder = tmp_path / "offline"
    folder.mkdir(mode=0o700)
    old = [folder / f"{number + 1:020d}-{'a' * 22}.otlp.zst" for number in range(2)]
    for path in old:
        with open(path, "wb") as file:
            file.truncate(200 << 20)
    agent = subprocess.Popen(
        [AGENT, f"--offline-dir={folder}", "--interval=1"], stderr=subprocess.PIPE, text=True
    )
    try:
        while STARTED not in (line := agent.stderr.readline()):
            assert line
    finally:
        agent.terminate()
        agent.communicate(timeout=60)
    assert all(path.exists() for path in old)


def test_a_full_spool_drops_the_oldest_batches(tmp_path, program):
    folder = tmp_path / "offline"
    folder.mkdir(mode=0o700)
    for number in range(3):
        (folder / f"{number + 1:020d}-{'a' * 22}.otlp.zst").write_bytes(b"x" * (400 << 10))
    (folder / "other").write_bytes(b"mine")
    agent = subprocess.Popen(
        [AGENT, f"--offline-dir={folder}", "--spool-max=1", "--interval=1"],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        spin(program, 2)
    finally:
        agent.terminate()
        _, log = agent.communicate(timeout=60)
    names = {path.name[:20] for path in folder.glob("*.otlp.zst")}
    assert f"{1:020d}" not in names and f"{3:020d}" in names and len(names) >= 2, log
    assert (folder / "other").exists()
    assert re.search(r"dropped=[1-9]", log)


def send_request(address, request, timeout=10):
    """The status and the body of the response from a port or a socket's path."""
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout)
        connection.connect(address)
        connection.sendall(request)
        response = b""
        while part := connection.recv(65536):
            response += part
    head, _, body = response.partition(b"\r\n\r\n")
    assert f"Content-Length: {len(body)}\r\n".encode() in head
    return int(head.split()[1]), body.decode()


@pytest.mark.long
@pytest.mark.parametrize("is_port", [True, False], ids=["port", "socket"])
def test_the_agent_serves_metrics_and_health_to_its_host(start_agent, program, tmp_path, is_port):
    path = tmp_path / "metrics.sock"
    if not is_port:  # as a killed agent leaves it
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as old:
            old.bind(str(path))
    agent = start_agent("--metrics=127.0.0.1:0" if is_port else f"--metrics=unix:{path}")
    address = ("127.0.0.1", int(re.search(r"port=(\d+)", agent.log())[1])) if is_port else str(path)
    spin(program, 1)
    get = b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n"
    deadline = time.monotonic() + 120
    values = {}
    while not values.get('stacks_total{stop="root"}') or not values.get("sent_batches_total"):
        assert time.monotonic() < deadline, values
        status, text = send_request(address, get % b"/metrics")
        assert status == 200
        values = {
            name: int(value)
            for name, value in re.findall(r"^perfolio_agent_(\S+) (\d+)$", text, re.M)
        }
        time.sleep(0.2)
    assert values["processes"] > 1 and values["tables"] > 1 and values["lost_batches_total"] == 0
    assert values["samples_total"] >= values['stacks_total{stop="root"}']
    # Each metric is described once.
    names = re.findall(r"^# TYPE perfolio_agent_(\w+) (?:counter|gauge)$", text, re.M)
    assert len(names) == len(set(names)) and {name.partition("{")[0] for name in values} == set(
        names
    )
    assert send_request(address, get % b"/healthz") == (200, "ok\n")
    assert send_request(address, get % b"/other")[0] == 404
    assert send_request(address, b"POST /metrics HTTP/1.1\r\n\r\n")[0] == 405
    assert send_request(address, b"nonsense\r\n\r\n")[0] == 400
    # The agent closes a connection that sends nothing after a while, and serves other clients.
    with socket.socket(socket.AF_INET if is_port else socket.AF_UNIX, socket.SOCK_STREAM) as silent:
        silent.connect(address)
        assert send_request(address, get % b"/healthz", timeout=60)[0] == 200
    agent.stop()
    assert is_port or not path.exists()


def test_the_doctor_reports_available_and_missing_features():
    done = subprocess.run([AGENT, "doctor"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout
    assert re.search(r"^ok +sampling$", done.stdout, re.M)
    assert re.search(r"^(ok +bpf_loop$|note +bpf_loop .*bounded loops)", done.stdout, re.M)
    done = subprocess.run(
        [
            "setpriv",
            "--reuid=65534",
            "--clear-groups",
            "--bounding-set=-all",
            "--inh-caps=-all",
            AGENT,
            "doctor",
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert re.search(r"^missing +CAP_BPF.*grant", done.stdout, re.M)
    assert "cannot be determined without CAP_BPF" in done.stdout and "bpf_loop" not in done.stdout
    # Features of the kernel that could not be queried are not reported as missing.
    assert "Linux 5.12" not in done.stdout and "is not there" not in done.stdout
    assert done.stdout.count("not known, since perf_event_open is refused") == 2


def test_show_unwind_accepts_regular_files_only(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in [tmp_path / "pipe", tmp_path, "/dev/tty"]:
        done = subprocess.run(
            [AGENT, "show-unwind", path], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 1 and str(path) in done.stderr


@pytest.mark.parametrize(
    "arguments, words",
    [
        ([], "give a server"),
        (["--server=http://example.com"], "https://"),
        (["--server=http://localhost:x@127.0.0.9:1"], "https://"),
        (["--server=http://127.0.0.1.example.com"], "https://"),
        (["--server=https://user:secret@localhost:1"], "a user's name or password"),
        (["--server=https://"], "must have the form https://HOST:PORT"),
        (["--server=https://localhost:1/base?q=1"], "must not have a query"),
        (["--server=localhost:1"], "must have the form https://HOST:PORT"),
        (["--server=https://x", "--offline-dir=/nonexistent/folder"], "give one of them"),
        (["--server=https://x", "--min-off-cpu=100"], "add off-cpu"),
        (["--server=https://x", "--label=__team=x"], "begin with __"),
        (
            ["--server=https://x", "--host-root=/nonexistent"],
            "host-root /nonexistent: No such file",
        ),
        (["--server=https://x", "--host-root=/etc/passwd"], "is not a folder"),
        (["--server=https://x", "--frequency=0"], "a number from 1"),
        (
            ["--server=https://x", "--off-cpu=1.5"],
            "off-cpu must be 0 or a fraction from 0.0001 to 1",
        ),
        (["--server=https://x", "--min-wait=long"], "min-off-cpu must be a number"),
        (["--server=https://x", "--label=x"], "NAME=VALUE"),
        (["--server=https://x", "--metrics=0.0.0.0:9100"], "127.0.0.1:PORT"),
        (["--server=https://x", "--symbols=some"], "off, missing or all"),
        (["--server=https://x", "--symbols-files=some"], "yes or no"),
        (["--server=https://x", "--pods=ftp://x"], "pods: the server's address"),
        (["--server=https://x", "--pods=http://10.0.0.1/pods"], "https://"),
        (["--server=https://x", "--relabel-file=/nonexistent"], "/nonexistent"),
        (["--config=/nonexistent"], "/nonexistent"),
        (["other"], "no command"),
    ],
)
def test_an_invalid_option_is_explained(arguments, words, tmp_path):
    done = subprocess.run(
        [AGENT, f"--spool-dir={tmp_path}", *arguments], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert words in done.stderr and "secret" not in done.stderr


@pytest.mark.parametrize(
    "option", ["--server=https://x", "--token-file=x", "--ca-file=x", "--proxy=http://x"]
)
def test_offline_mode_refuses_options_for_sending(option, tmp_path):
    done = subprocess.run(
        [AGENT, f"--offline-dir={tmp_path}/x", option], capture_output=True, text=True, timeout=60
    )
    assert (
        done.returncode == 2
        and "have no effect with offline-dir, because nothing is sent" in done.stderr
    )
    assert not (tmp_path / "x").exists()


def test_offline_dir_on_the_command_line_overrides_the_server_of_the_file(tmp_path):
    config = tmp_path / "agent.ini"
    config.write_text(
        f"[agent]\nserver = https://localhost:1\ntoken-file = /nonexistent\nspool-dir = "
        f"{tmp_path}/spool\n"
    )
    agent = subprocess.Popen(
        [AGENT, f"--config={config}", f"--offline-dir={tmp_path}/x"],
        stderr=subprocess.PIPE,
        text=True,
    )
    line = agent.stderr.readline()
    agent.terminate()
    agent.communicate(timeout=60)
    assert STARTED in line and agent.returncode == 0, line
    assert (tmp_path / "x").exists() and not (tmp_path / "spool").exists()


@pytest.mark.parametrize(
    "text, words",
    [
        (
            "[agent]\nserver = https://localhost:1\nfrequncy = 99\n",
            'there is no setting "frequncy"',
        ),
        ("server = https://localhost:1\n", "settings belong to [agent]"),
        ("[server]\nserver = https://localhost:1\n", "settings belong to [agent]"),
        (
            "[agent]\nserver = https://localhost:1\nframe-pointers = maybe\n",
            "frame-pointers must be yes or no",
        ),
        ("[agent]\nframe-pointers = no\nforce = yes\n", "give a server"),
    ],
)
def test_an_error_in_the_settings_file_is_named(text, words, tmp_path):
    config = tmp_path / "agent.ini"
    config.write_text(text)
    done = subprocess.run(
        [AGENT, f"--config={config}", f"--spool-dir={tmp_path}"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2 and words in done.stderr


def test_the_command_line_overrides_the_settings_file(tmp_path):
    config = tmp_path / "agent.ini"
    config.write_text("[agent]\nserver = https://localhost:1\nfrequency = 0\n")
    done = subprocess.run(
        [AGENT, f"--config={config}", f"--spool-dir={tmp_path}"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2 and str(config) in done.stderr and "frequency" in done.stderr
