"""Which perf events the agent and perfolio record open, and on which processors.

A preloaded library simulates the host (tests/preload/simulated_host.c).
"""

import collections
import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from conftest import BUILD, CLIENT_BUILD, PERFOLIO, make
from test_agent_faults import start_agent  # noqa: F401
from test_record import REFUSAL, pprof_reader
from test_record_unprivileged import paranoid

SIMULATED_HOST = BUILD / "tests" / "preload" / "simulated_host.so"
HOTPLUG = Path("/sys/devices/system/cpu/cpu1/online")
CYCLES = (0, 0)  # type and config of perf_event_open(2)
TIMER = (1, 0)
WORK = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(REFUSAL is not None, reason=f"the kernel refuses: {REFUSAL}"),
    pytest.mark.skipif(
        CLIENT_BUILD != BUILD or BUILD.name not in ("release", "debug", "coverage"),
        reason="a library cannot be preloaded into a program with sanitizers",
    ),
]


needs_two_processors = pytest.mark.skipif(os.cpu_count() < 2, reason="there is one processor")


class Host:
    def __init__(self, folder):
        self.folder = folder
        self.environment = {"LD_PRELOAD": str(SIMULATED_HOST), "SIMULATED_HOST": str(folder)}

    def write(self, name, text):
        """Writes a file of the simulated host in one step: the library never reads a part of it."""
        (self.folder / "new").write_text(f"{text}\n")
        os.replace(self.folder / "new", self.folder / name)

    def samplers(self):
        """[((type, config), CPU)] of the events that were opened to sample."""
        lines = [line.split() for line in (self.folder / "events").read_text().splitlines()]
        return [
            ((int(kind), int(config)), int(cpu))
            for kind, config, is_sampler, cpu in lines
            if is_sampler == "1"
        ]


@pytest.fixture
def host():
    """A simulated host in a folder that may be given to the user nobody, unlike one of pytest."""
    make(SIMULATED_HOST)
    with tempfile.TemporaryDirectory(prefix="perfolio-host-") as folder:
        yield Host(Path(folder))


@pytest.mark.parametrize(
    "options, event, sample_type, source",
    [
        ([], TIMER, ("cpu", "nanoseconds"), "by the kernel's clock"),
        (["--event=cpu-clock"], TIMER, ("cpu", "nanoseconds"), "by the kernel's clock"),
        (["--event=cycles"], CYCLES, ("cycles", "count"), "by the processor's cycle counter"),
    ],
    ids=["cpu", "cpu-clock", "cycles"],
)
def test_cpu_time_is_sampled_by_the_timer_and_cycles_only_on_request(
    host, tmp_path, options, event, sample_type, source
):
    done = subprocess.run(
        [PERFOLIO, "record", "--no-names", *options, "--", "sh", "-c", WORK],
        cwd=tmp_path,
        timeout=120,
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"], **host.environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert {kind for kind, _ in host.samplers()} == {event}
    assert pprof_reader.load(tmp_path / "profile.pb.gz").sample_types[1] == sample_type
    assert source in done.stderr


def test_the_agent_samples_by_the_timer_where_the_processor_counts_cycles(
    start_agent, host  # noqa: F811
):
    start_agent(environment=host.environment)
    assert {kind for kind, _ in host.samplers()} == {TIMER}


def sampled_cpus(host):
    """{CPU: how often a sampler was opened on it}"""
    return collections.Counter(cpu for _, cpu in host.samplers())


@contextlib.contextmanager
def busy_on(cpu, folder, *prefix):
    """Runs a program named busy-N on a CPU."""
    program = folder / f"busy-{cpu}"
    source = "int main(void) { for (volatile int i = 0;; i++) ; }"
    subprocess.run(["gcc", "-xc", "-", "-o", program], input=source, text=True, check=True)
    command = [*prefix, program]
    process = subprocess.Popen(command, preexec_fn=lambda: os.sched_setaffinity(0, [cpu]))
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def is_in_batches(agent, program):
    return any(program.encode() in text for text in agent.strings())


def processor_seconds(process):
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.long
@needs_two_processors
def test_a_processor_that_comes_online_is_sampled(start_agent, host, tmp_path):  # noqa: F811
    host.write("online", "0")
    agent = start_agent(environment=host.environment)
    assert sampled_cpus(host) == {0: 1}
    with busy_on(1, tmp_path):
        agent.wait_for_batches(2)
        assert not is_in_batches(agent, "busy-1")
        host.write("online", "0-1")
        agent.wait_for("restarted_cpus_total", 1)
        agent.wait(lambda: is_in_batches(agent, "busy-1"))
    assert sampled_cpus(host) == {0: 1, 1: 1}
    assert 'came online or returned are sampled again" count=1' in agent.log_path.read_text()
    assert agent.counts()["unsampled_cpus"] == 0


def find_opener(agent):
    """The process that keeps the right to open perf events, and its effective capabilities."""
    for status in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            fields = dict(re.findall(r"^(\w+):\s+(\S+)", status.read_text(), re.M))
            if fields["PPid"] == str(agent.process.pid) and fields["Name"] == "opener":
                return int(fields["Pid"]), int(fields["CapEff"], 16)
    raise AssertionError("there is no opener")


@pytest.mark.long
@needs_two_processors
@pytest.mark.skipif(paranoid() < 1, reason="everyone may open perf events")
def test_a_processor_that_cannot_be_sampled_is_counted_and_logged(start_agent, host):  # noqa: F811
    host.write("online", "0")
    agent = start_agent(environment=host.environment)
    opener, capabilities = find_opener(agent)
    assert capabilities == 1 << 38  # CAP_PERFMON
    os.kill(opener, signal.SIGKILL)
    host.write("online", "0-1")
    agent.wait_for("unsampled_cpus", 1)
    assert (
        "a processor that came online or returned cannot be sampled" in agent.log_path.read_text()
    )
    host.write("online", "0")
    agent.wait(lambda: agent.counts()["unsampled_cpus"] == 0)
    assert agent.counts()["restarted_cpus_total"] == 0


@pytest.mark.long
@needs_two_processors
def test_a_processor_that_was_offline_in_a_suspend_is_sampled_again(
    start_agent, host, tmp_path  # noqa: F811
):
    agent = start_agent(environment=host.environment)
    before = sampled_cpus(host)
    host.write("stopped", "1")
    agent.wait(lambda: not (host.folder / "stopped").exists())
    host.write("slept", "3600")
    agent.wait_for("restarted_cpus_total", 1)
    with busy_on(1, tmp_path):
        agent.wait(lambda: is_in_batches(agent, "busy-1"))
    assert sampled_cpus(host) == before + collections.Counter([1])
    assert agent.counts()["restarted_cpus_total"] == 1


@pytest.mark.long
@pytest.mark.skipif(
    "PERFOLIO_HOTPLUG" not in os.environ or not os.access(HOTPLUG, os.W_OK),
    reason="PERFOLIO_HOTPLUG=1 takes a processor of this machine offline for a moment",
)
def test_a_processor_that_was_really_offline_is_sampled_again(
    start_agent, host, tmp_path  # noqa: F811
):
    agent = start_agent(environment=host.environment)
    state = HOTPLUG.read_text()
    assert state.strip() == "1"
    try:
        HOTPLUG.write_text("0")
    finally:
        HOTPLUG.write_text(state)
    host.write("slept", "3600")
    agent.wait_for("restarted_cpus_total", 1)
    with busy_on(1, tmp_path):
        agent.wait(lambda: is_in_batches(agent, "busy-1"))


@pytest.mark.long
@needs_two_processors
@pytest.mark.parametrize("user", ["root", "nobody"])
def test_a_recording_contains_processors_that_came_online(host, user):
    """The process runs on the second processor only. Without privileges, it is sampled by events of
    its threads."""
    folder = host.folder
    programs = [shutil.copy(PERFOLIO.parent / "perfolio", folder)]
    library = shutil.copy(SIMULATED_HOST, folder)
    become = []
    if user == "nobody":
        if paranoid() > 2 or not shutil.which("setpriv"):
            pytest.skip("the kernel has no perf events for users, or there is no setpriv")
        become = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]
        become += ["--bounding-set=-all"]
        os.chown(folder, 65534, 65534)
    host.write("online", "0")
    with busy_on(1, folder, *become) as busy:
        command = [*become, *programs, "record", "--no-names", "-d", "1000", "-p", str(busy.pid)]
        recording = subprocess.Popen(
            command,
            cwd=folder,
            env={"HOME": str(folder), "PATH": os.environ["PATH"]}
            | {"LD_PRELOAD": library, "SIMULATED_HOST": str(folder)},
            stderr=subprocess.PIPE,
            text=True,
        )

        def wait(condition):
            deadline = time.monotonic() + 120
            while not condition():
                assert recording.poll() is None and time.monotonic() < deadline
                time.sleep(0.05)

        wait(lambda: (folder / "events").exists() and 0 in sampled_cpus(host))
        assert 1 not in sampled_cpus(host)
        host.write("online", "0-1")
        wait(lambda: 1 in sampled_cpus(host))
        used = processor_seconds(busy) + 0.5
        wait(lambda: processor_seconds(busy) > used)
        recording.send_signal(signal.SIGINT)
        _, log = recording.communicate(timeout=120)
    assert recording.returncode == 0, log
    assert "1 processor came online or returned during the recording" in log
    assert ("without rights" in log) == (user == "nobody")
    assert sum(sample.values[0] for sample in pprof_reader.load(folder / "profile.pb.gz").samples)
