"""perfolio record --event: counts and sample types of events other than CPU time.

It also checks the fallback if the kernel refuses one form of the BPF program.
"""

import json
import os
import re
import subprocess
import sys

import pytest

from conftest import PERFOLIO, ROOT, rest_long
from test_record import REFUSAL

sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import pprof_reader  # noqa: E402

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(REFUSAL is not None, reason=f"the kernel refuses: {REFUSAL}"),
]

PAGES, ROUNDS, SLEEPS = 5000, 100, 400
SOURCE = r"""
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#define NOINLINE __attribute__((noinline))
NOINLINE void touch_pages(volatile char *page, long count)
{
    for (long i = 0; i < count; i++)
        page[i * 4096] = 1;
}
NOINLINE void doze(void)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    nanosleep(&pause, NULL);
}
int main(int argc, char **argv)
{
    const long pages = atol(argv[1]), rounds = atol(argv[2]), sleeps = atol(argv[3]);
    for (long i = 0; i < rounds; i++) {
        char *memory = mmap(NULL, pages * 4096, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        madvise(memory, pages * 4096, MADV_NOHUGEPAGE);
        touch_pages(memory, pages);
        munmap(memory, pages * 4096);
    }
    for (long i = 0; i < sleeps; i++)
        doze();
    return argc < 0;
}
"""
# Refuses programs that call bpf_loop, like a verifier for which they are too complex. The small
# programs with which libbpf probes for a helper are still accepted.
REFUSING_KERNEL = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdarg.h>
#include <sys/syscall.h>
static int calls_loop(const union bpf_attr *attributes)
{
    const struct bpf_insn *code = (const struct bpf_insn *)attributes->insns;
    for (unsigned i = 0; attributes->insn_cnt > 50 && i < attributes->insn_cnt; i++)
        if (code[i].code == (BPF_JMP | BPF_CALL) && code[i].src_reg == 0 &&
            code[i].imm == BPF_FUNC_loop)
            return 1;
    return 0;
}
long syscall(long number, ...)
{
    long given[6];
    va_list arguments;
    va_start(arguments, number);
    for (int i = 0; i < 6; i++)
        given[i] = va_arg(arguments, long);
    va_end(arguments);
    if (number == SYS_bpf && given[0] == BPF_PROG_LOAD &&
        calls_loop((const union bpf_attr *)given[1])) {
        errno = E2BIG;
        return -1;
    }
    long (*next)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    return next(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}
"""


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    folder = tmp_path_factory.mktemp("events")
    (folder / "work.c").write_text(SOURCE)
    subprocess.run(["gcc", "-g", "-O1", folder / "work.c", "-o", folder / "event-work"], check=True)
    return [folder / "event-work", PAGES, ROUNDS, SLEEPS]


def record(folder, *arguments, environment=None):
    return subprocess.run(
        [str(PERFOLIO), "record", *map(str, arguments)],
        cwd=folder,
        timeout=120,
        env={"HOME": str(folder), "PATH": os.environ["PATH"], **(environment or {})},
        capture_output=True,
        text=True,
    )


def types(file):
    return pprof_reader.load(file).sample_types


def top(folder, sample_type):
    done = subprocess.run(
        [
            str(PERFOLIO),
            "top",
            "--json",
            "--sample-type",
            sample_type,
            "--limit",
            "0",
            str(folder / "profile.pb.gz"),
        ],
        env={"HOME": str(folder)},
        check=True,
        capture_output=True,
        text=True,
    )
    response = json.loads(done.stdout)
    return response, {row["name"]: row for row in response["functions"]}


@pytest.mark.parametrize("options", rest_long([[], ["-F", "997"], ["--bounded-loops"]]))
def test_page_faults_are_attributed_to_the_function_that_causes_them(work, tmp_path, options):
    done = record(tmp_path, "--event", "page-faults", *options, "--", *work)
    assert done.returncode == 0, done.stderr
    assert "by the kernel's counter of page faults" in done.stderr
    assert types(tmp_path / "profile.pb.gz") == [("samples", "count"), ("page_faults", "count")]
    response, rows = top(tmp_path, "page_faults")
    assert response["unit"] == "count"
    # Each page faults once per round; faults after the last sample of a processor are missing.
    assert 0.9 * PAGES * ROUNDS < rows["touch_pages"]["cum"] < 1.02 * PAGES * ROUNDS
    samples, _ = top(tmp_path, "samples")
    assert samples["total"] < 0.2 * PAGES * ROUNDS


def test_context_switches_are_attributed_to_the_function_that_waits(work, tmp_path):
    done = record(tmp_path, "--event", "context-switches", "-F", "997", "--", *work)
    assert done.returncode == 0, done.stderr
    assert types(tmp_path / "profile.pb.gz") == [
        ("samples", "count"),
        ("context_switches", "count"),
    ]
    _, rows = top(tmp_path, "context_switches")
    assert 0.9 * SLEEPS < rows["doze"]["cum"] < 1.2 * SLEEPS


@pytest.mark.parametrize("event", ["cycles", "instructions", "cache-misses"])
def test_a_hardware_counter_is_used_or_refused_with_its_reason(work, tmp_path, event):
    done = record(tmp_path, "--event", event, "--", *work)
    if done.returncode == 0:
        assert types(tmp_path / "profile.pb.gz")[1] == (event.replace("-", "_"), "count")
    else:
        assert re.search(rf"cannot count {event}: .*no such counter", done.stderr), done.stderr
        assert not (tmp_path / "profile.pb.gz").exists()


def test_the_event_cpu_clock_records_nanoseconds(work, tmp_path):
    done = record(tmp_path, "--event", "cpu-clock", "--", *work)
    assert done.returncode == 0, done.stderr
    assert types(tmp_path / "profile.pb.gz") == [("samples", "count"), ("cpu", "nanoseconds")]


def test_an_unknown_event_is_refused(tmp_path):
    done = record(tmp_path, "--event", "branches", "--", "true")
    assert done.returncode == 2 and "--event is cpu, cpu-clock, cycles," in done.stderr


def test_a_program_with_bounded_loops_is_loaded_if_bpf_loop_is_refused(work, tmp_path):
    (tmp_path / "refusing.c").write_text(REFUSING_KERNEL)
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-O1", tmp_path / "refusing.c", "-o", tmp_path / "refusing.so"],
        check=True,
    )
    environment = {"LD_PRELOAD": str(tmp_path / "refusing.so")}
    done = record(tmp_path, "--event", "page-faults", "--", *work, environment=environment)
    assert done.returncode == 0, done.stderr
    assert "refuses the program with bpf_loop (Argument list too long)" in done.stderr
    _, rows = top(tmp_path, "page_faults")
    assert 0.9 * PAGES * ROUNDS < rows["touch_pages"]["cum"]
    # Stacks lack main until the unwind tables of the program are loaded.
    assert rows["main"]["cum"] > 0.5 * PAGES * ROUNDS
    done = subprocess.run(
        [PERFOLIO.parent / "perfolio-agent", "doctor"],
        env=environment,
        timeout=60,
        capture_output=True,
        text=True,
    )
    assert "note    this kernel's verifier refuses the program with bpf_loop" in done.stdout
