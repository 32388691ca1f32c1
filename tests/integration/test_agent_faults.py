"""What goes wrong around perfolio-agent is counted, costs bounded memory, and is over when its cause is."""

import os
import pathlib
import re
import signal
import subprocess
import time
import urllib.request

import pytest

from conftest import free_port
from test_agent import AGENT, STARTED
from test_agent_truth import PROGRAMS, run
from test_record import REFUSAL

pytestmark = pytest.mark.skipif(REFUSAL is not None, reason=f"the kernel refuses: {REFUSAL}")


class Agent:
    """Keeps its batches, and says what it counts."""

    def __init__(self, folder, *arguments, environment=None):
        self.batches_path, self.log_path, self.port = folder / "batches", folder / "agent.log", free_port()
        self.batches_path.mkdir(exist_ok=True)
        self.command = [str(AGENT), f"--offline-dir={self.batches_path}", "--interval=1",
                        f"--metrics=127.0.0.1:{self.port}", *arguments]
        self.environment = {**os.environ, **(environment or {})}
        self.start()

    def start(self):
        with open(self.log_path, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, env=self.environment)
        self.wait(lambda: STARTED in self.log_path.read_text())

    def wait(self, is_so, seconds=120):
        deadline = time.monotonic() + seconds
        while not is_so():
            assert self.process.poll() is None and time.monotonic() < deadline, self.log_path.read_text()
            time.sleep(0.1)

    def counts(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=30) as answer:
            text = answer.read().decode()
        return {name: int(value) for name, value in re.findall(r"^perfolio_agent_(\w+) (\d+)$", text, re.M)}

    def wait_for(self, name, number, seconds=120):
        self.wait(lambda: self.counts().get(name, 0) >= number, seconds)

    def batches(self):
        return {path.name for path in self.batches_path.glob("*.otlp.zst")}

    def wait_for_batches(self, number):
        """So many more than there are."""
        before = self.batches()
        self.wait(lambda: len(self.batches() - before) >= number)

    def peak_mib(self):
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as status:
            return int(re.search(r"VmHWM:\s+(\d+)", status.read())[1]) / 1024


@pytest.fixture
def start_agent(tmp_path):
    agents = []

    def start(*arguments, **options):
        agents.append(Agent(tmp_path, *arguments, **options))
        return agents[-1]

    yield start
    for agent in agents:
        agent.process.kill()
        agent.process.wait()


@pytest.fixture(scope="module")
def truth(tmp_path_factory):
    path = tmp_path_factory.mktemp("faults") / "truth"
    run("gcc", "-O2", "-g", "-fomit-frame-pointer", "-Wl,--build-id", PROGRAMS / "truth.c", "-pthread", "-o", path,
        cwd=path.parent)
    return path


@pytest.fixture
def busy(truth):
    """A program with stacks of 500 frames for each processor."""
    programs = [subprocess.Popen([truth, "deep", "495"]) for _ in range(os.cpu_count())]
    yield programs
    for program in programs:
        program.kill()
        program.wait()


@pytest.mark.usefixtures("busy")
def test_what_a_full_ring_loses_is_counted_and_the_next_samples_come(start_agent):
    agent = start_agent("--frequency=997")
    agent.wait_for("samples_total", 500)
    agent.process.send_signal(signal.SIGSTOP)
    time.sleep(4)
    agent.process.send_signal(signal.SIGCONT)
    agent.wait_for("lost_samples_total", 100)
    counts = agent.counts()
    agent.wait_for("samples_total", counts["samples_total"] + 1000)
    agent.wait_for_batches(2)
    assert agent.peak_mib() < 128


MANY = """
import ctypes, mmap, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
file = os.open(sys.argv[1], os.O_RDONLY)
made = [libc.mmap(None, 4096, mmap.PROT_READ | mmap.PROT_EXEC, mmap.MAP_PRIVATE, file, 0) for _ in range(50000)]
print(len(set(made)), flush=True)
while True:
    sum(range(1000))
"""


@pytest.mark.parametrize("is_first", [False, True])
def test_a_hundred_thousand_mappings_leave_others_their_samples(start_agent, truth, is_first):
    agent = None if is_first else start_agent("--frequency=99")
    programs = [subprocess.Popen(["python3", "-c", MANY, truth], stdout=subprocess.PIPE) for _ in range(2)]
    try:
        assert [program.stdout.readline() for program in programs] == [b"50000\n"] * 2
        agent = agent or start_agent("--frequency=99")
        agent.wait_for("mappings", 100000)
        agent.wait_for("samples_total", agent.counts()["samples_total"] + 200)
        assert agent.peak_mib() < 128
    finally:
        for program in programs:
            program.kill()
            program.wait()
    agent.wait(lambda: agent.counts()["mappings"] < 50000)


def test_tables_of_the_kernel_program_are_no_memory_of_the_agent(start_agent):
    """They are written and read in pieces: touched whole they were more than half of what it has resident."""
    process = pathlib.Path("/proc", str(start_agent().process.pid))
    shards = sum(f"value_size:\t{4 << 20}\n" in entry.read_text() for entry in (process / "fdinfo").iterdir()
                 if "bpf-map" in os.readlink(process / "fd" / entry.name))
    maps = re.findall(r"^[0-9a-f]+-.* (\S+)\n(?:[A-Z].*\n)*?Rss: +(\d+) kB", (process / "smaps").read_text(), re.M)
    resident = [int(kb) << 10 for name, kb in maps if "bpf-map" in name]
    assert shards >= 1 and resident
    assert sum(resident) < 2 << 20, resident


@pytest.mark.usefixtures("busy")
def test_a_killed_agent_loses_what_it_had_in_hand_alone(start_agent):
    agent = start_agent()
    agent.wait_for_batches(2)
    agent.process.send_signal(signal.SIGKILL)
    agent.process.wait()
    kept = agent.batches()
    agent.start()
    agent.wait_for_batches(2)
    assert kept < agent.batches()
    for name in agent.batches():
        subprocess.run(["zstd", "-q", "-t", agent.batches_path / name], check=True)


STEPPING = """
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *now)
{
    const int status = (int)syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_REALTIME && access(getenv("AHEAD"), F_OK) == 0)
        now->tv_sec += 86400;
    return status;
}
"""


@pytest.mark.usefixtures("busy")
def test_a_wall_clock_that_steps_stops_nothing(start_agent, tmp_path):
    (tmp_path / "stepping.c").write_text(STEPPING)
    run("gcc", "-shared", "-fPIC", "stepping.c", "-o", "stepping.so", cwd=tmp_path)
    ahead = tmp_path / "ahead"
    agent = start_agent(environment={"LD_PRELOAD": str(tmp_path / "stepping.so"), "AHEAD": str(ahead)})
    agent.wait_for_batches(2)
    ahead.touch()
    agent.wait_for_batches(3)
    ahead.unlink()
    agent.wait_for_batches(3)
    counts = agent.counts()
    assert counts["lost_batches_total"] == counts["lost_samples_total"] == 0


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "batches"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], check=False).returncode:
        pytest.skip("nothing can be mounted here")
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.mark.usefixtures("busy")
def test_a_full_disk_loses_batches_that_are_counted_until_there_is_room(small_disk, start_agent):
    agent = start_agent()
    agent.wait_for_batches(1)
    with open(small_disk / "ballast", "wb", buffering=0) as ballast, pytest.raises(OSError):
        while True:
            ballast.write(bytes(4096))
    agent.wait_for("lost_batches_total", 2)
    (small_disk / "ballast").unlink()
    agent.wait_for_batches(2)
    for name in agent.batches():
        subprocess.run(["zstd", "-q", "-t", small_disk / name], check=True)
