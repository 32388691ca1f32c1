"""Pytest plugin: CPU seconds of each test, including those of the programs that it started.

Appends a line "SECONDS<tab>NODE ID" per test to the file named by PERFOLIO_TEST_COSTS. CPU time
hardly depends on the load of the host, unlike the wall time of --durations. The setup of a shared
fixture is charged to the first test that uses it. tests/run.py shows the most expensive tests.
"""

import os
import resource

import pytest

TICKS = os.sysconf("SC_CLK_TCK")


def children(pid):
    """Process ids of the living children of all threads of pid."""
    found = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as text:
                found += text.read().split()
    except OSError:
        pass
    return found


def cpu_seconds():
    """CPU seconds so far of this process and all its descendants, both ended and alive."""
    total = sum(
        used.ru_utime + used.ru_stime
        for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )
    todo = children(os.getpid())
    while todo:
        pid = todo.pop()
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as text:
                # utime and stime, then cutime and cstime of the children that it has waited for.
                total += sum(map(int, text.read().rpartition(")")[2].split()[11:15])) / TICKS
        except OSError:
            continue
        todo += children(pid)
    return total


class Costs:
    def __init__(self, path):
        self.path = path
        self.last = cpu_seconds()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item):
        yield
        now = cpu_seconds()
        # The time of a process that nobody waits for is lost when it ends, so the difference can be
        # negative.
        with open(self.path, "a", encoding="utf-8") as out:
            out.write(f"{max(0.0, now - self.last):.3f}\t{item.nodeid}\n")
        self.last = now


def register(config):
    path = os.environ.get("PERFOLIO_TEST_COSTS")
    if path:
        config.pluginmanager.register(Costs(path), "perfolio-costs")
