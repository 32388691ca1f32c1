#!/usr/bin/env python3
"""Runs the tests of the project. The last line of the output is "N passed, N failed"; the lines
before it list the failures of all steps, each with the first lines of its reason. Each failed test
is run once more at the end, alone (retry.py).

  tests/run.py [STEP …]     these steps; by default those of `make test`:
                            check unit seeds web integration browser
  tests/run.py long         the steps of `make test-long`:
                            agents pages sanitizers crash bucket clients search format

Steps run in lanes, which run at the same time (LANES). Integration and browser tests spend much
time waiting; the other steps compute with a lower priority and so use the time that the first two
leave. At the end the run shows the time of each lane, how long the processors were idle, and the
twenty most expensive tests. Logs are in build/test-logs/<step>.log; the log of a failed step is
printed.

Integration tests that are marked "long" (pytest.mark.long) run in the step agents, those marked
"crash" in the step crash; the step integration shows how many it left out.
"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import time

import failures
import retry

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOGS = ROOT / "build" / "test-logs"
FLAKY_FILE = ROOT / "tests" / "flaky.txt"
BUILD = os.environ.get("BUILD", "release")
# Parts of `make check` that another step of `make test` includes: warnings are errors in every
# build, and the web tests begin with the TypeScript compiler. If that step is not chosen, check
# runs the part itself. clang's warnings are errors in the build of the step sanitizers.
CHECKS = ("format-recent", "layers", "scoped", "commits", "shell", "openapi", "man", "version")
CHECKED_BY = {"gcc": "build", "types": "web"}
# Python keeps compiled files there, even where the environment says that it shall write none:
# pytest needs more time to compile the assertions of a file than to run many of its tests.
BYTECODE = {
    "PYTHONPYCACHEPREFIX": str(ROOT / "build" / "bytecode"),
    "PYTHONDONTWRITEBYTECODE": "",
}
PYTEST_LINE = re.compile(r"^(?:=+ )?((?:\d+ \w+(?:, )?)+) in [\d.]+s", re.M)


class Result:
    """left: number of tests that the step leaves to `make test-long`. failures: as in
    failures.py."""

    def __init__(self, passed, failed, skipped=0, failures=(), left=0):
        self.passed, self.failed, self.skipped, self.left = passed, failed, skipped, left
        self.failures = list(failures)


# (seconds, "CPU" or "wall", test). All threads append to it, which is safe for a list.
TIMES = []
MOST_EXPENSIVE = 20
LANE_TIMES = []  # (seconds, monotonic time of the end, steps), in order of the ends


class Costs(threading.local):
    """CPU seconds of the step that this thread runs, and the command prefix that sets its
    priority."""

    seconds = 0.0
    priority = ()


COSTS = Costs()
CHOSEN = {"build"}  # and the steps of this run


def execute(name, command, environment, priority):
    """Runs command; writes its output to build/test-logs/<name>.log. Returns (exit status, output,
    CPU seconds)."""
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"{name}.log"
    # If make started this script, its flags and job server must not reach the makes started here.
    inherited = {
        key: value
        for key, value in os.environ.items()
        if key not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")
    }
    with open(log, "w") as out:
        process = subprocess.Popen(
            [*priority, *command],
            cwd=ROOT,
            stdout=out,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env={**inherited, **environment},
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, log.read_text(errors="replace"), used.ru_utime + used.ru_stime


def run(name, command, environment=None):
    """Runs command for the current step; returns (exit status, output)."""
    status, output, seconds = execute(name, command, environment or {}, COSTS.priority)
    COSTS.seconds += seconds
    return status, output


def one(name, command):
    """Runs a step that counts as one test."""
    status, output = run(name, command)
    return Result(int(status == 0), int(status != 0), failures=failures.of_not_ok(output))


def count_tap(output):
    """Returns (passed, failed, skipped); cmocka prints a skipped test as "not ok N # SKIP"."""
    passed = len(re.findall(r"^ok \d+", output, re.M))
    failed = len(re.findall(r"^not ok \d+\b(?! # SKIP)", output, re.M))
    return passed, failed, len(re.findall(r"^not ok \d+ # SKIP", output, re.M))


def run_unit(name, build, settings=None):
    status, output = run(f"{name}-build", ["make", f"BUILD={build}", "unit-programs", "objects"])
    if status != 0:
        (LOGS / f"{name}.log").write_text(output)
        return Result(0, 1, failures=[(f"{name}: the build", failures.reason_lines(output))])
    # All are links to one program, which runs the tests of the file with the link's name.
    programs = [
        ROOT / "build" / build / source.relative_to(ROOT).with_suffix("")
        for source in sorted((ROOT / "tests" / "unit").glob("**/test_*.c"))
    ]
    total, logs = Result(0, 0), []
    environment = {
        "CMOCKA_MESSAGE_OUTPUT": "TAP",
        "ASAN_OPTIONS": "detect_leaks=1",
        **(settings or {}),
    }
    priority = COSTS.priority
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = list(
            pool.map(
                lambda program: execute(
                    f"{name}-{program.name}", [str(program)], environment, priority
                ),
                programs,
            )
        )
    for program, (status, output, seconds) in zip(programs, runs):
        COSTS.seconds += seconds
        TIMES.append((seconds, "CPU", f"{name}: {program.name}"))
        passed, failed, skipped = count_tap(output)
        if status != 0 and failed == 0:
            failed = 1
        if failed:
            total.failures += failures.of_program(program.name, status, output)
        total.passed += passed
        total.failed += failed
        total.skipped += skipped
        logs.append(f"### {program.relative_to(ROOT)}: exit {status}\n{output}")
    (LOGS / f"{name}.log").write_text("\n".join(logs))
    if not programs:
        total.failed += 1
    return total


def step_check():
    others = [name for name, step in CHECKED_BY.items() if step not in CHOSEN]
    return one("check", ["sh", "tests/lint/check.sh", *CHECKS, *others])


def step_format():
    """The format of all files; step_check checks those that changed recently."""
    return one("format", ["sh", "tests/lint/check.sh", "format"])


def step_unit():
    return run_unit("unit", BUILD)


def step_sanitizers():
    """The unit tests with AddressSanitizer and UndefinedBehaviorSanitizer and all random inputs, in
    the build of the fuzzers."""
    return run_unit("sanitizers", "fuzz", retry.ALL_INPUTS)


def step_web():
    status, output = run("web", ["npm", "--prefix", "web", "run", "--silent", "test"])
    return from_node(status, output)


def from_node(status, output):
    passed = sum(int(n) for n in re.findall(r"^(?:# |ℹ )pass (\d+)", output, re.M))
    failed = sum(int(n) for n in re.findall(r"^(?:# |ℹ )fail (\d+)", output, re.M))
    skipped, left = 0, 0
    for numbers in re.findall(
        r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?(?:, (\d+) left)?", output, re.M
    ):
        ok, bad, not_run, later = (int(number or 0) for number in numbers)
        passed, failed, skipped, left = passed + ok, failed + bad, skipped + not_run, left + later
    if (status != 0 or passed == 0) and failed == 0:
        failed = 1
    return Result(passed, failed, skipped, failures.of_not_ok(output), left)


def run_pytest(name, arguments, environment=None, command=(sys.executable, "-m", "pytest")):
    report, costs = LOGS / f"{name}.xml", LOGS / f"{name}.costs"
    for path in (report, costs):
        path.unlink(missing_ok=True)
    status, output = run(
        name,
        [*command, "-q", "-rfEs", f"--junitxml={report}", *arguments],
        {"PERFOLIO_TEST_COSTS": str(costs), **BYTECODE, **(environment or {})},
    )
    for line in costs.read_text().splitlines() if costs.exists() else ():
        seconds, _, test = line.partition("\t")
        TIMES.append((float(seconds), "CPU", f"{name}: {test.removeprefix('tests/integration/')}"))
    numbers = {"passed": 0, "failed": 0, "error": 0, "errors": 0, "skipped": 0, "deselected": 0}
    lines = PYTEST_LINE.findall(output)
    if lines:
        for count, word in re.findall(r"(\d+) (\w+)", lines[-1]):
            if word in numbers:
                numbers[word] += int(count)
    failed = numbers["failed"] + numbers["error"] + numbers["errors"]
    if (status != 0 or numbers["passed"] == 0) and failed == 0:
        failed = 1
    return Result(
        numbers["passed"],
        failed,
        numbers["skipped"],
        failures.of_junit(report),
        numbers["deselected"],
    )


def run_integration(name, mark, processes):
    """The integration tests that the expression of marks selects, in several processes."""
    processes = os.environ.get("PYTEST_PROCESSES", processes)
    command = (sys.executable, "tests/pytest_batches.py", f"--processes={processes}")
    return run_pytest(name, ["-m", mark, "tests/integration"], command=command)


def step_integration():
    return run_integration("integration", "not long and not crash", 6)


def step_agents():
    """Fewer processes, because many of these tests compute: recordings, agents, other builds."""
    return without_left(run_integration("agents", "long", 4))


def step_crash():
    """kill -9 in many rounds."""
    rounds = os.environ.get("PERFOLIO_CRASH_ROUNDS", "60")
    return run_pytest("crash", retry.CRASH_TESTS, {"PERFOLIO_CRASH_ROUNDS": rounds})


def step_bucket():
    """Servers whose objects are in a bucket of a real S3 server: its errors, backup and restore.
    `make test-s3` runs all tests of buckets."""
    folder = "tests/integration/ops/test_s3_servers.py"
    wanted = "backup or bucket_and_prefix or unusable_bucket or keys_are_read"
    result = run_pytest(
        "bucket", ["-k", wanted, folder], {"PYTHON": sys.executable}, ("sh", "tests/s3/run.sh")
    )
    return without_left(result)


def without_left(result):
    """The tests that are not marked long ran in step_integration."""
    result.left = 0
    return result


def step_clients():
    """Command line and agent with both sanitizers, server without them."""
    programs = [f"build/fuzz/{name}" for name in ("perfolio", "perfolio-agent")]
    status, output = run("clients-build", ["make", "BUILD=fuzz", *programs])
    if status != 0:
        (LOGS / "clients.log").write_text(output)
        return Result(0, 1, failures=[("clients: the build", failures.reason_lines(output))])
    folder = ROOT / "build" / retry.SANITIZED_CLIENTS
    folder.mkdir(exist_ok=True)
    # perfolio-symbolize limits its address space too tightly for the shadow memory of a sanitizer.
    for program in (*programs, f"build/{BUILD}/perfolio-symbolize"):
        shutil.copy(ROOT / program, folder)
    return run_pytest("clients", retry.CLIENT_TESTS, {"CLIENT_BUILD": retry.SANITIZED_CLIENTS})


def run_browser(name, mode):
    status, output = run(
        name, ["npm", "--prefix", "web", "run", "--silent", "test:browser", "--", mode]
    )
    TIMES.extend(
        (int(ms) / 1000, "wall", f"{name}: {test}")
        for test, ms in re.findall(r"^ok - (.+) \((\d+) ms\)$", output, re.M)
    )
    return from_node(status, output)


def step_browser():
    return run_browser("browser", "--short")


def step_pages():
    """The browser tests of tests/browser/long_tests.mjs."""
    return run_browser("pages", "--long")


def run_fuzzers(name, command):
    status, output = run(name, command)
    passed = len(re.findall(r"^ok fuzz_", output, re.M))
    failed = len(re.findall(r"^not ok fuzz_", output, re.M))
    if (status != 0 or passed == 0) and failed == 0:
        failed = 1
    return Result(passed, failed, failures=failures.of_not_ok(output))


def step_seeds():
    """The seeds of all fuzzers, in the release build (tests/fuzz/seeds.c)."""
    status, output = run("seeds-build", ["make", f"BUILD={BUILD}", "seeds-program"])
    if status != 0:
        (LOGS / "seeds.log").write_text(output)
        return Result(0, 1, failures=[("seeds: the build", failures.reason_lines(output))])
    return run_fuzzers("seeds", [f"build/{BUILD}/tests/fuzz/seeds"])


def step_search():
    """Runs the seeds of each fuzzer and searches for new inputs."""
    return run_fuzzers(
        "search", ["make", "fuzz", f"FUZZ_SECONDS={os.environ.get('FUZZ_SECONDS', '10')}"]
    )


SHORT = {
    "check": step_check,
    "unit": step_unit,
    "seeds": step_seeds,
    "web": step_web,
    "integration": step_integration,
    "browser": step_browser,
}
LONG = {
    "agents": step_agents,
    "pages": step_pages,
    "sanitizers": step_sanitizers,
    "crash": step_crash,
    "bucket": step_bucket,
    "clients": step_clients,
    "search": step_search,
    "format": step_format,
}
STEPS = {**SHORT, **LONG}
# Lanes run at the same time, the steps of a lane one after another. Those of the last one share a
# build.
LANES = (
    ("integration",),
    ("browser",),
    ("check", "unit", "seeds", "web"),
    ("agents", "crash", "bucket"),
    ("pages",),
    ("sanitizers", "clients", "search", "format"),
)
WAITING = {"integration", "browser", "agents", "pages", "crash", "bucket"}


def failures_first(log):
    """The lines of a log that explain a failure: each failure with the 14 lines after it, then the
    last 120 lines."""
    end = max(0, len(log) - 120)
    wanted = set(range(end, len(log)))
    for at, line in enumerate(log[:end]):
        if re.match(r"\s*(not ok|FAILED|ERROR)\b", line) and "# SKIP" not in line:
            wanted.update(range(at, min(at + 15, end)))
    return [log[at] for at in sorted(wanted)]


def run_step(name):
    """Runs a step and prints its result, with its failures."""
    start, COSTS.seconds = time.monotonic(), 0
    result = STEPS[name]()
    left = f", {result.left} left for make test-long" if result.left else ""
    lines = [
        f"{name}: {result.passed} passed, {result.failed} failed, {result.skipped} skipped{left} "
        f"({time.monotonic() - start:.0f} s, {COSTS.seconds:.0f} CPU s)"
    ]
    if result.failed:
        log = (LOGS / f"{name}.log").read_text(errors="replace")
        lines += [f"    {line}" for line in failures_first(log.splitlines())]
        result.failures = [
            (name, test, reason)
            for test, reason in result.failures or [("the whole step", failures.reason_lines(log))]
        ]
    print("\n".join(lines), flush=True)
    return result


def run_lane(names):
    start = time.monotonic()
    COSTS.priority = () if set(names) & WAITING else ("nice", "-n", "10")
    results = [run_step(name) for name in names]
    if names:
        LANE_TIMES.append((time.monotonic() - start, time.monotonic(), " ".join(names)))
    return results


def idle_seconds():
    """Time that all processors together were idle since boot, or None if the kernel does not show
    it."""
    try:
        fields = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()
    except OSError:
        return None
    return (int(fields[4]) + int(fields[5])) / os.sysconf("SC_CLK_TCK")


def show_lanes(start, idle):
    """Prints the time of each lane, and how long processors were idle since start.

    start: monotonic time of the run's start; idle: idle_seconds at that time."""
    end = time.monotonic()
    for seconds, ended, names in LANE_TIMES:
        print(f"lane {names}: {seconds:.0f} s, ended {end - ended:.0f} s before the last one")
    line = f"all: {end - start:.0f} s"
    if idle is not None:
        spent = os.cpu_count() * (end - start)
        unused = idle_seconds() - idle
        line += f"; {os.cpu_count()} processors were idle for {unused:.0f} of {spent:.0f} s"
    print(line)


def judge_flaky(found):
    """Runs the failed tests alone. Returns (those that passed, why they fail the run
    nevertheless)."""
    flaky = retry.retried(found, retry.Again(ROOT, BUILD)) if found else []
    if not flaky:
        return [], []
    commits = retry.recent_commits(ROOT)
    objections = retry.objections(flaky, retry.read_records(FLAKY_FILE), commits)
    retry.record(FLAKY_FILE, commits, flaky)
    for step, test, reason in flaky:
        print(
            f"FLAKY {step}: {test}: failed when other tests ran too, passed alone",
            *(f"    {line}" for line in reason),
            sep="\n",
        )
    return flaky, objections


def show_times():
    """Prints the most expensive tests."""
    print(
        f"the {MOST_EXPENSIVE} slowest tests, in seconds "
        "(CPU: user and kernel time with all child processes):"
    )
    for seconds, kind, test in sorted(TIMES, reverse=True)[:MOST_EXPENSIVE]:
        print(f"  {seconds:7.1f} {kind:4} {test}")


def main():
    wanted = [
        step for word in sys.argv[1:] or SHORT for step in (LONG if word == "long" else [word])
    ]
    CHOSEN.update(wanted)
    start, idle = time.monotonic(), idle_seconds()
    unknown = [name for name in wanted if name not in STEPS]
    if unknown:
        sys.exit(f"unknown step {unknown[0]}; there are {' '.join(STEPS)} and long")
    # Several lanes use these programs, so they are built first.
    status, output = run(
        "build", ["make", f"BUILD={BUILD}", "all", "unit-programs", "test-programs"]
    )
    if status != 0:
        print(
            output,
            *failures.listed([("build", failures.reason_lines(output))]),
            "0 passed, 1 failed",
            sep="\n",
        )
        sys.exit(1)
    print(f"build: {time.monotonic() - start:.0f} s, {COSTS.seconds:.0f} CPU s", flush=True)
    lanes = [[name for name in lane if name in wanted] for lane in LANES]
    with concurrent.futures.ThreadPoolExecutor(len(lanes)) as pool:
        results = [result for lane in pool.map(run_lane, lanes) for result in lane]
    show_lanes(start, idle)
    show_times()
    passed, failed, skipped, left = (
        sum(getattr(result, key) for result in results)
        for key in ("passed", "failed", "skipped", "left")
    )
    found = [failure for result in results for failure in result.failures]
    flaky, objections = judge_flaky(found)
    final = [failure for failure in found if failure not in flaky]
    for line in failures.listed([(f"{step}: {test}", reason) for step, test, reason in final]):
        print(line)
    print(*objections, sep="\n", end="\n" if objections else "")
    # A step may count more failures than it lists, or fewer.
    failed = max(failed - len(flaky), len(final))
    print(
        f"{passed + len(flaky)} passed, {failed} failed"
        + (f", {skipped} skipped" if skipped else "")
        + (f", {left} left for make test-long" if left else "")
        + (f", {len(flaky)} flaky" if flaky else "")
    )
    sys.exit(1 if failed or objections else 0)


if __name__ == "__main__":
    main()
