"""perfolio record without privileges: users sample their own programs, and errors name the missing
capabilities."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from conftest import CLIENT_BUILD

NOBODY = 65534
# Runs until its parent ends, which does not stop it: the kernel then kills it.
DEEP = r"""
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#define NOINLINE __attribute__((noinline))
NOINLINE long leaf(long n)
{
    volatile long sum = 0;
    for (long i = 0; i < 100000; i++)
        sum += i * n;
    return sum;
}
NOINLINE long down(long depth, char *data)
{
    char own[48];
    memset(own, (int)depth, sizeof(own));
    long sum = depth > 1 ? down(depth - 1, own) : leaf(depth);
    return sum + own[7] + (data ? data[3] : 0);
}
int main(int argc, char **argv)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (long sum = 0;; sum += down(atol(argv[1]), NULL))
        if (argc < 2)
            return (int)sum;
}
"""
SOURCE = r"""
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline))
NOINLINE long inner(long count)
{
    volatile long sum = 0;
    for (long i = 0; i < count; i++)
        sum += i;
    return sum;
}
NOINLINE long outer(long rounds)
{
    long sum = 0;
    for (long i = 0; i < rounds; i++)
        sum += inner(1000000);
    return sum;
}
NOINLINE void *in_thread(void *rounds) { return (void *)outer((long)rounds); }
NOINLINE long in_child(long rounds) { return outer(rounds) + 1; }
int main(int argc, char **argv)
{
    const long rounds = atol(argv[1]);
    pthread_t thread;
    pthread_create(&thread, NULL, in_thread, (void *)rounds);
    if (fork() == 0)
        _exit((int)(in_child(rounds) & 1));
    outer(rounds);
    pthread_join(thread, NULL);
    return wait(NULL) < 0 || argc < 0;
}
"""


def paranoid():
    path = Path("/proc/sys/kernel/perf_event_paranoid")
    return int(path.read_text()) if path.exists() else 4


pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        os.geteuid() != 0 or not shutil.which("setpriv") or paranoid() > 2,
        reason="needs root to become nobody, and perf events for users",
    ),
]


@pytest.fixture(scope="module")
def folder():
    """A folder that the user nobody can read and write, with the programs in it."""
    path = Path(tempfile.mkdtemp(prefix="perfolio-nobody-"))
    for name in ("perfolio", "perfolio-symbolize"):
        shutil.copy(CLIENT_BUILD / name, path / name)
    (path / "work.c").write_text(SOURCE)
    for name, option in (
        ("own-work", "-fno-omit-frame-pointer"),
        ("own-bare", "-fomit-frame-pointer"),
    ):
        subprocess.run(
            [
                "gcc",
                "-g",
                "-O1",
                "-pthread",
                option,
                "-fno-optimize-sibling-calls",
                "-Wl,--build-id",
                path / "work.c",
                "-o",
                path / name,
            ],
            check=True,
        )
    os.chown(path, NOBODY, NOBODY)
    yield path
    shutil.rmtree(path)


def as_nobody(folder, *command, **options):
    return subprocess.Popen(
        [
            "setpriv",
            f"--reuid={NOBODY}",
            f"--regid={NOBODY}",
            "--clear-groups",
            "--inh-caps=-all",
            "--bounding-set=-all",
            *map(str, command),
        ],
        cwd=folder,
        text=True,
        env={"HOME": str(folder), "PATH": os.environ["PATH"]},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )


def record(folder, *arguments):
    """Returns the status, standard error, and the CPU time of perfolio and its children in
    nanoseconds."""
    process = as_nobody(folder, folder / "perfolio", "record", *arguments)
    log = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, log, int(used.ru_utime * 1e9)


def functions(folder):
    done = subprocess.run(
        [str(folder / "perfolio"), "top", "--json", str(folder / "profile.pb.gz")],
        check=True,
        env={"HOME": str(folder)},
        capture_output=True,
        text=True,
    )
    response = json.loads(done.stdout)
    assert (response["sample_type"], response["unit"]) == ("cpu", "nanoseconds")
    return response["total"], {row["name"]: row["cum"] for row in response["functions"]}


@pytest.mark.parametrize("program", ["own-work", "own-bare"])  # with frame pointers and without
def test_a_command_is_sampled_with_its_threads_and_children(folder, program):
    status, log, used = record(folder, "-F", "499", "--", folder / program, 300)
    assert status == 0, log
    assert "without rights: frames of the kernel" in log and "setcap cap_bpf," in log
    assert "which lets every user of this machine sample the programs of all users" in log
    total, rows = functions(folder)
    # used includes the CPU time of perfolio itself for symbolization.
    assert 0.5 * used < total < 1.15 * used
    assert rows["inner"] > 0.95 * total and rows["outer"] > 0.95 * total
    for name in ("main", "in_thread", "in_child"):
        assert 0.2 * total < rows[name] < 0.9 * total, name
    # The stacks of the child also begin at _start; the others are those of the thread.
    assert rows["_start"] + rows.get("clone3", rows.get("__clone", 0)) > 0.95 * total


@pytest.mark.parametrize("program, is_complete", [("own-work", True), ("own-bare", False)])
def test_frame_pointers_option_does_not_unwind_stack_copies(folder, program, is_complete):
    status, log, _ = record(folder, "--frame-pointers", "-F", "499", "--", folder / program, 300)
    assert status == 0, log
    total, rows = functions(folder)
    assert rows["inner"] > 0.95 * total
    assert rows.get("outer", 0) > 0.9 * total if is_complete else rows.get("main", 0) < 0.2 * total


def test_a_stack_longer_than_its_copy_is_reported(folder):
    (folder / "deep.c").write_text(DEEP)
    subprocess.run(
        [
            "gcc",
            "-g",
            "-O2",
            "-fomit-frame-pointer",
            "-fno-optimize-sibling-calls",
            folder / "deep.c",
            "-o",
            folder / "own-deep",
        ],
        check=True,
    )
    status, log, _ = record(folder, "-F", "99", "-d", "3", "--", folder / "own-deep", 60)
    assert status == 0 and "stacks that end" not in log, log
    total, rows = functions(folder)
    assert rows["_start"] > 0.95 * total
    status, log, _ = record(folder, "-F", "99", "-d", "3", "--", folder / "own-deep", 480)
    assert status == 0 and re.search(r"end before their root: \d+ stack-read", log), log
    total, rows = functions(folder)
    assert rows["down"] > 0.9 * total


def test_a_running_process_is_sampled_with_its_threads_and_children(folder):
    process = as_nobody(folder, folder / "own-work", 1000000)
    try:
        tasks = Path(f"/proc/{process.pid}/task")
        while (
            len(list(tasks.iterdir())) < 2
            or not (tasks / f"{process.pid}/children").read_text().strip()
        ):
            time.sleep(0.01)
        status, log, _ = record(folder, "-p", process.pid, "-d", "3", "-F", "499")
    finally:
        for child in (tasks / f"{process.pid}/children").read_text().split():
            os.kill(int(child), 9)
        process.kill()
        process.wait()
    assert status == 0, log
    total, rows = functions(folder)
    for name in ("main", "in_thread", "in_child"):
        assert rows[name] > 0.1 * total, name


@pytest.mark.parametrize(
    "arguments",
    [
        ["-a", "-d", "1"],
        ["--off-cpu", "--", "true"],
        ["--wall", "--", "true"],
        ["--event=page-faults", "--", "true"],
    ],
)
def test_options_that_need_privileges_name_the_capabilities(folder, arguments):
    status, log, _ = record(folder, *arguments)
    assert status not in (0, 2)
    assert "run as root, or grant CAP_BPF, CAP_PERFMON" in log
    assert "your own programs can be recorded: -p PID" in log


def test_another_users_process_is_refused(folder):
    status, log, _ = record(folder, "-p", 1, "-d", "1")
    assert status not in (0, 2)
    assert re.search(r"without CAP_PERFMON only your own programs .* can be sampled", log), log


@pytest.mark.parametrize(
    "mode, words",
    [
        (0o4755, "setuid or setgid"),
        (0o711, "executed but not read"),
        (0o755, "used no CPU time"),
    ],
)
def test_the_reason_for_a_program_without_samples_is_reported(folder, mode, words):
    path = folder / "own-other"
    shutil.copy("/bin/true" if mode == 0o755 else folder / "own-work", path)
    os.chown(path, 0, 0)
    path.chmod(mode)
    status, log, _ = record(folder, "-F", "99", "--", path, 100)
    assert status == 5 and "no sample was taken: " in log and words in log, log
