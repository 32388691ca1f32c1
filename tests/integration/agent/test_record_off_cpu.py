"""Off-CPU profiles, which show where and how long threads wait: perfolio record --off-cpu and
--wall, perfolio-agent --off-cpu."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from conftest import PERFOLIO, ROOT, rest_long
from test_agent import HOUR, now, start_agent, tenant  # noqa: F401  (fixtures)
from test_record import REFUSAL
from test_store import folded

sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import pprof_reader  # noqa: E402

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(REFUSAL is not None, reason=f"the kernel refuses: {REFUSAL}"),
]

SECOND = 10**9
# The program measures how long it waits, because a thread waits longer on a busy host.
SOURCE = r"""
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline))
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}
/* How long this thread has run, or was ready to. */
NOINLINE long ready(void)
{
    struct timespec ran;
    long waited = 0;
    FILE *file = fopen("/proc/thread-self/schedstat", "r");
    if (!file || fscanf(file, "%*s %ld", &waited) != 1)
        abort();
    fclose(file);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ran);
    return ran.tv_sec * 1000000000L + ran.tv_nsec + waited;
}
NOINLINE long sleep_long(long ms)
{
    const long begin = now();
    usleep((unsigned)ms * 1000);
    return now() - begin;
}
NOINLINE long sleep_often(long count)
{
    const long begin = now();
    for (long i = 0; i < count; i++)
        usleep(500);
    return now() - begin;
}
NOINLINE long wait_for_lock(void)
{
    const long begin = now();
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    return now() - begin;
}
NOINLINE long burn(long ms)
{
    struct timespec used;
    const long begin = now();
    do
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    while (used.tv_sec * 1000 + used.tv_nsec / 1000000 < ms);
    return now() - begin;
}
/* The first stacks of a program are unwound without its tables. */
NOINLINE void settle(void)
{
    for (int i = 0; i < 20; i++)
        usleep(50000);
}
static void *run_second(void *result)
{
    *(long *)result = wait_for_lock();
    return NULL;
}
int main(int argc, char **argv)
{
    long often = 0, ready_often = 0, locked = 0;
    pthread_t second;
    settle();
    setvbuf(stdout, NULL, _IONBF, 0);
    pthread_mutex_lock(&lock);
    pthread_create(&second, NULL, run_second, &locked);
    const long slept = sleep_long(1000);
    const long before = ready();
    if (atol(argv[2]))
        often = sleep_often(atol(argv[2]));
    ready_often = ready() - before;
    pthread_mutex_unlock(&lock);
    pthread_join(second, NULL);
    const long burnt = burn(atol(argv[1]));
    printf("%ld %ld %ld %ld %ld\n", slept, often, locked, burnt, ready_often);
    if (argc > 3 && !prctl(PR_SET_PDEATHSIG, SIGKILL))
        sleep_long(1000000);
    return 0;
}
"""
NAME = f"off-cpu-{os.getpid()}"


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    folder = tmp_path_factory.mktemp("off_cpu")
    (folder / "work.c").write_text(SOURCE)
    subprocess.run(
        ["gcc", "-g", "-O1", "-pthread", "-Wl,--build-id", folder / "work.c", "-o", folder / NAME],
        check=True,
    )
    return folder / NAME


def record(folder, *arguments):
    """Returns the messages of record and the times that the program measured: slept, often, locked,
    burnt, and the part of "often" in which it ran or was ready to run (much of each short sleep on
    a busy host)."""
    done = subprocess.run(
        [str(PERFOLIO), "record", *map(str, arguments)],
        cwd=folder,
        timeout=120,
        env={"HOME": str(folder), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr, [int(word) for word in done.stdout.split()]


def is_running(parent, program):
    """Whether the process has a child that executes the program."""
    with open(f"/proc/{parent}/task/{parent}/children", encoding="ascii") as children:
        for child in children.read().split():
            try:
                if os.readlink(f"/proc/{child}/exe") == str(program):
                    return True
            except OSError:
                pass
    return False


def top(folder, *arguments):
    done = subprocess.run(
        [str(PERFOLIO), "top", "--json", "--limit", "0", *arguments, str(folder / "profile.pb.gz")],
        env={"HOME": str(folder)},
        check=True,
        capture_output=True,
        text=True,
    )
    response = json.loads(done.stdout)
    return response, {row["name"]: row for row in response["functions"]}


@pytest.mark.parametrize("options", rest_long([[], ["--bounded-loops"]]))
def test_off_cpu_intervals_are_recorded_with_their_function_and_duration(work, tmp_path, options):
    log, (slept, often, locked, _, ready) = record(
        tmp_path, "--off-cpu", "-F", 997, *options, "--", work, 100, 200
    )
    assert "off-CPU intervals" in log
    profile = pprof_reader.load(tmp_path / "profile.pb.gz")
    assert profile.sample_types == [
        ("samples", "count"),
        ("cpu", "nanoseconds"),
        ("waits", "count"),
        ("off_cpu", "nanoseconds"),
    ]
    response, rows = top(tmp_path)
    assert (response["sample_type"], response["unit"]) == ("off_cpu", "nanoseconds")
    for name, off_cpu_ns, least_ns in (
        ("sleep_long", slept, slept),
        ("sleep_often", often, often - ready),
        ("wait_for_lock", locked, locked),
    ):
        assert 0.9 * least_ns < rows[name]["cum"] <= off_cpu_ns, (name, off_cpu_ns, least_ns)
    # Functions of the BPF program must not appear in stacks.
    assert not [name for name in rows if name.startswith("bpf_")]
    _, counts = top(tmp_path, "--sample-type", "waits")
    # A sleep that ends before the thread has left its CPU is no off-CPU interval.
    assert 100 <= counts["sleep_often"]["cum"] < 400
    _, used = top(tmp_path, "--sample-type", "cpu")
    # At most one sampling tick may hit the start or end of a sleep.
    asleep = used.get("sleep_long", {"cum": 0})["cum"]
    assert used["burn"]["cum"] > 0.4 * 100e6 and asleep < 0.01 * slept


@pytest.mark.parametrize("options", rest_long([[], ["--bounded-loops"]]))
def test_an_interval_that_begins_before_the_maps_are_read_has_its_stack(work, tmp_path, options):
    recorder = subprocess.Popen(
        [
            PERFOLIO,
            "record",
            "--off-cpu",
            *options,
            "--",
            "sh",
            "-c",
            f"read line; exec {work} 100 0",
        ],
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    # Simulates a busy host on which record reads the program's mappings only during the long sleep.
    while not is_running(recorder.pid, os.path.realpath("/bin/sh")):
        assert recorder.poll() is None
        time.sleep(0.01)
    recorder.send_signal(signal.SIGSTOP)
    os.waitpid(recorder.pid, os.WUNTRACED)  # it first completes its current system call
    recorder.stdin.write("go on\n")
    recorder.stdin.flush()
    while not is_running(recorder.pid, work):
        time.sleep(0.01)
    time.sleep(2)
    recorder.send_signal(signal.SIGCONT)
    output, log = recorder.communicate(timeout=60)
    assert recorder.returncode == 0, log
    _, rows = top(tmp_path)
    slept = int(output.split()[0])
    assert (
        rows.get("sleep_long", {"cum": 0})["cum"] > 0.9 * slept and rows["main"]["cum"] > slept
    ), (log, output, rows)


def test_selected_intervals_are_scaled_to_all_intervals(work, tmp_path):
    _, (_, often, *_) = record(tmp_path, "--off-cpu=0.5", "--", work, 10, 1500)
    _, rows = top(tmp_path)
    _, counts = top(tmp_path, "--sample-type", "waits")
    assert 0.7 * often < rows["sleep_often"]["cum"] < 1.3 * often
    assert 750 < counts["sleep_often"]["cum"] < 2500 and counts["sleep_often"]["cum"] % 2 == 0


def test_intervals_shorter_than_min_off_cpu_are_omitted(work, tmp_path):
    log, _ = record(tmp_path, "--off-cpu", "--min-off-cpu", 900000, "--", work, 10, 20)
    _, rows = top(tmp_path)
    assert (
        rows.get("sleep_long", {"cum": 0})["cum"] >= 0.9 * SECOND and "sleep_often" not in rows
    ), (log, rows)


def test_no_off_cpu_interval_is_lost(work, tmp_path):
    """Checks several thousand intervals. A kernel that hides processes of its sandbox does not
    report the end of a few of them."""
    log, (_, often, _, _, ready) = record(tmp_path, "--off-cpu", "--", work, 10, 5000)
    _, rows = top(tmp_path)
    response, _ = top(tmp_path, "--sample-type", "waits")
    begun = int(re.search(r"^([\d,]+) off-CPU intervals$", log, re.M)[1].replace(",", ""))
    assert response["total"] == begun > 4000 and "lost" not in log, log
    assert 0.9 * (often - ready) < rows["sleep_often"]["cum"] <= often


def test_wall_time_equals_the_measured_time(work, tmp_path):
    _, (slept, often, locked, burnt, _) = record(
        tmp_path, "--wall", "-F", "997", "--", work, 300, 100
    )
    assert pprof_reader.load(tmp_path / "profile.pb.gz").sample_types == [
        ("samples", "count"),
        ("wall", "nanoseconds"),
    ]
    _, rows = top(tmp_path)
    for name, off_cpu_ns in (("sleep_long", slept), ("wait_for_lock", locked), ("burn", burnt)):
        assert 0.85 * off_cpu_ns < rows[name]["cum"] < 1.1 * off_cpu_ns, name


SCRIPT = """
import time
def nap(count):
    for _ in range(count):
        time.sleep(0.01)
def sleep_long():
    time.sleep(0.5)
nap(100)
sleep_long()
"""


@pytest.mark.parametrize("options", rest_long([[], ["--bounded-loops"]]))
def test_off_cpu_intervals_of_a_script_have_its_functions(tmp_path, options):
    (tmp_path / "script.py").write_text(SCRIPT)
    record(tmp_path, "--off-cpu", *options, "--", "/usr/bin/python3", "script.py")
    _, rows = top(tmp_path)
    # record does not know the script's functions during its first off-CPU intervals.
    assert rows["nap"]["cum"] > 0.5 * SECOND and rows["sleep_long"]["cum"] > 0.45 * SECOND, rows


def test_an_unfinished_wait_counts_until_the_end_of_the_recording(work, tmp_path):
    # The program ends only with record, so its last sleep is unfinished.
    done = subprocess.run(
        [str(PERFOLIO), "record", "--off-cpu", "-d", "8", "--", str(work), "1", "0", "forever"],
        cwd=tmp_path,
        env={"HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    slept = int(done.stdout.split()[0])
    _, rows = top(tmp_path)
    assert slept + 0.2 * SECOND < rows["sleep_long"]["cum"] < 8.2 * SECOND


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--off-cpu=0"], "from 0.0001 to 1"),
        (["--off-cpu=2"], "from 0.0001 to 1"),
        (["--min-off-cpu=5"], "needs --off-cpu or --wall"),
        (["--min-wait=5"], "--min-off-cpu needs --off-cpu or --wall"),  # the former name
        (["--wall", "--event=page-faults"], "--wall cannot be combined with"),
    ],
)
def test_invalid_options_are_reported(arguments, words, tmp_path):
    done = subprocess.run(
        [str(PERFOLIO), "record", *arguments, "--", "true"],
        cwd=tmp_path,
        timeout=60,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and words in done.stderr


def test_the_agent_sends_off_cpu_time_as_a_separate_profile_type(
    start_agent, server, tenant, work
):  # noqa: F811
    begin = now()
    agent = start_agent("--off-cpu=1")
    done = subprocess.run(
        [work, "200", "100"], capture_output=True, text=True, check=True, timeout=60
    )
    slept, _, locked, *_ = (int(word) for word in done.stdout.split())
    agent.stop()
    assert not agent.waiting(), agent.log()
    client = server.api(tenant.make_token("read")["token"])
    label = f'{{process_executable_name="{NAME}"}}'
    end = now() + HOUR
    _, waited = folded(client, f"off_cpu:off_cpu:nanoseconds::{label}", begin - HOUR, end)
    _, used = folded(
        client, f"process_cpu:cpu:nanoseconds:cpu:nanoseconds{label}", begin - HOUR, end
    )
    total = sum(waited.values())
    # After its sleep the main thread waits only briefly; the other thread waits for the lock.
    assert slept + locked < 1.1 * total and total > 0.9 * (slept + locked)
    assert 0.1 * SECOND < sum(used.values()) < 0.6 * SECOND


def test_off_cpu_intervals_outside_the_pid_namespace_are_not_lost_samples(tmp_path):
    """record runs in a PID namespace. Most waiting threads are outside of it; record does not
    report their off-CPU intervals as lost."""
    done = subprocess.run(
        [
            "unshare",
            "--pid",
            "--fork",
            "--mount-proc",
            PERFOLIO,
            "record",
            "--off-cpu=1",
            "--",
            "sleep",
            "0.5",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
    )
    assert done.returncode == 0 and "PID namespace" not in done.stderr, done.stderr
