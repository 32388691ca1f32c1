"""Which perf events the agent and perfolio record open, and on which processors.

A preloaded library simulates the host (tests/preload/simulated_host.c).
"""

import os
import subprocess

import pytest

from conftest import BUILD, CLIENT_BUILD, PERFOLIO, make
from test_agent_faults import start_agent  # noqa: F401
from test_record import REFUSAL, pprof_reader

SIMULATED_HOST = BUILD / "tests" / "preload" / "simulated_host.so"
CYCLES = (0, 0)  # type and config of perf_event_open(2)
TIMER = (1, 0)
WORK = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"

pytestmark = [
    pytest.mark.skipif(REFUSAL is not None, reason=f"the kernel refuses: {REFUSAL}"),
    pytest.mark.skipif(
        CLIENT_BUILD != BUILD or BUILD.name not in ("release", "debug", "coverage"),
        reason="a library cannot be preloaded into a program with sanitizers",
    ),
]


class Host:
    def __init__(self, folder):
        folder.mkdir()
        self.folder = folder
        self.environment = {"LD_PRELOAD": str(SIMULATED_HOST), "SIMULATED_HOST": str(folder)}

    def write(self, name, text):
        """The library never sees a part of the text."""
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
def host(tmp_path):
    make(SIMULATED_HOST)
    return Host(tmp_path / "host")


@pytest.mark.parametrize(
    "options, event, sample_type, source",
    [
        ([], TIMER, ("cpu", "nanoseconds"), "by the kernel's clock"),
        (["--event=cpu-clock"], TIMER, ("cpu", "nanoseconds"), "by the kernel's clock"),
        (["--event=cycles"], CYCLES, ("cycles", "count"), "by the processor's cycle counter"),
    ],
    ids=["cpu", "cpu-clock", "cycles"],
)
def test_time_is_sampled_by_the_timer_where_the_processor_counts_cycles(
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
