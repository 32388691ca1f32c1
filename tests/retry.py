"""Runs each failed test once more, alone, after all steps, and records the tests that pass then.

A test that fails while other tests run and passes alone is flaky: it depends on time or on the
load of the system. The run lists it under FLAKY and does not fail because of it, so that it blocks
no change. It must be rewritten nevertheless: tests/flaky.txt records it, and a test that is flaky
in two runs within ten commits fails the second run, as do more than MOST_FLAKY flaky tests in one
run.

A failure is final, and the test is not retried, if a second run could only hide it: a failed
build, a report of a sanitizer, an input for which a fuzzer found a crash or a leak, lost data after
kill -9 (step crash).
"""
import os
import pathlib
import re
import subprocess
import sys
import time

import failures

# Folder below build/ with command line and agent with sanitizers, and the integration tests for
# them.
SANITIZED_CLIENTS = "sanitized-clients"
CLIENT_TESTS = [
    f"tests/integration/{name}"
    for name in (
        "cli/test_cli_flags.py",
        "agent/test_record_top.py",
        "agent/test_agent_flags.py",
        *(
            f"agent/test_agent.py::test_{name}"
            for name in (
                "labels_select_a_process_and_an_uploaded_table_names_its_functions",
                "the_agent_gets_the_labels_of_a_pod_from_the_kubelet",
                "above_the_memory_limit_batches_are_at_least_a_second_apart",
                "show_unwind_accepts_regular_files_only",
            )
        ),
    )
]
ALL_INPUTS = {"TEST_FULL": "1"}  # all random inputs (test_rounds in tests/unit/test.h)
CRASH_TESTS = [
    f"tests/integration/{name}.py" for name in ("ops/test_crash", "store/test_store_crash")
]
MOST_FLAKY = 3
RECENT_COMMITS = 10
# More than MOST_FLAKY failures fail the run in any case; further retries are only information.
MOST_RETRIED = 20
SECONDS_ALONE = 900
SANITIZER = re.compile(r"ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|: runtime error: ")
HEADER = """# Tests that failed while others ran and passed alone (tests/retry.py).
# Columns: commit, UTC time, "step: test". Rewrite a listed test so that it waits for a condition,
# and remove its lines in the same commit.
"""


class Again:
    """Runs a failed test of any step alone. root: the source tree; build: the build of the unit
    tests."""

    def __init__(self, root, build="release"):
        self.root = pathlib.Path(root)
        self.build = build

    def passes(self, step, test, reason):
        """Whether the test passes alone; None if its failure is final."""
        run = getattr(self, f"passes_{step}", None)
        if run is None or any(SANITIZER.search(line) for line in reason):
            return None
        return run(test)

    def execute(self, command, environment=None, cwd=None):
        """Returns (exit status, output); a command that takes more than SECONDS_ALONE has
        failed."""
        with subprocess.Popen(
            command,
            cwd=cwd or self.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
            env={**os.environ, **(environment or {})},
        ) as process:
            try:
                output, _ = process.communicate(timeout=SECONDS_ALONE)
            except subprocess.TimeoutExpired:
                process.kill()
                return -1, process.communicate()[0]
        return process.returncode, output

    def passes_check(self, test):
        return self.execute(["sh", "tests/lint/check.sh", test])[0] == 0

    def passes_format(self, test):
        return self.passes_check(test)

    def passes_program(self, test, build, environment=None):
        name = test.partition(":")[0]
        programs = [
            path for path in (self.root / "build" / build / "tests" / "unit").glob(f"**/{name}")
        ]
        if not programs:
            return None
        status, output = self.execute(
            [str(programs[0])],
            {
                "CMOCKA_MESSAGE_OUTPUT": "TAP",
                "ASAN_OPTIONS": "detect_leaks=1",
                **(environment or {}),
            },
        )
        return status == 0 and not SANITIZER.search(output)

    def passes_unit(self, test):
        return self.passes_program(test, self.build)

    def passes_sanitizers(self, test):
        log = self.root / "build" / "test-logs" / f"sanitizers-{test.partition(':')[0]}.log"
        if log.exists() and SANITIZER.search(log.read_text(errors="replace")):
            return None
        return self.passes_program(test, "fuzz", ALL_INPUTS)

    def passes_web(self, test):
        status, output = self.execute(["npm", "--prefix", "web", "run", "--silent", "test"])
        return status == 0 or (
            bool(output)
            and test not in [name for name, _ in failures.of_not_ok(output)]
            and f"ok {test}" in re.sub(r"\bok (\d+ )?- ", "ok ", output)
        )

    def passes_agents(self, test):
        return self.passes_integration(test)

    def passes_clients(self, test):
        return self.passes_integration(test, {"CLIENT_BUILD": SANITIZED_CLIENTS})

    def passes_integration(self, test, environment=None):
        """test: "tests.integration.folder.test_x::test_y[z]", or the module if it could not be
        imported."""
        module, _, name = test.partition("::")
        path = (module or name).replace(".", "/") + ".py"
        if not (self.root / path).exists():
            return None
        node = f"{path}::{name}" if module else path
        return (
            self.execute(
                [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", node], environment
            )[0]
            == 0
        )

    def passes_browser(self, test):
        _, output = self.execute(
            ["npm", "--prefix", "web", "run", "--silent", "test:browser", "--", test]
        )
        lines = output.splitlines()
        return any(line.startswith(f"ok - {test} (") for line in lines) and not any(
            line.startswith("not ok - ") for line in lines
        )

    def passes_pages(self, test):
        return self.passes_browser(test)

    def passes_search(self, test):
        """Inputs that took too much time or memory run again, alone; crashes and leaks are
        final."""
        name = test.partition(":")[0]
        found = [path for path in (self.root / "build" / "fuzz" / "findings" / name).glob("*-*")]
        if any(path.name.startswith(("crash-", "leak-")) for path in found):
            return None
        slow = [path for path in found if path.name.startswith(("timeout-", "oom-", "slow-unit-"))]
        program = self.root / "build" / "fuzz" / "tests" / "fuzz" / name
        if not slow or not program.exists():
            return None
        return all(
            self.execute(["prlimit", "--cpu=10", str(program), str(path)])[0] == 0 for path in slow
        )


def retried(found, again, show=print):
    """found: [(step, test, reason)] of all steps. Returns those that passed alone."""
    flaky = []
    for step, test, reason in found[:MOST_RETRIED]:
        begun = time.monotonic()
        passes = again.passes(step, test, reason)
        result = {
            True: "passed",
            False: "failed again",
            None: "not retried: this failure is final",
        }[passes]
        show(f"again, alone: {step}: {test}: {result} ({time.monotonic() - begun:.0f} s)")
        if passes:
            flaky.append((step, test, reason))
    return flaky


def recent_commits(root):
    """Ids of the last commits; None without git, and then every record counts."""
    done = subprocess.run(
        ["git", "rev-list", f"--max-count={RECENT_COMMITS}", "HEAD"],
        cwd=root,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    return done.stdout.split() if done.returncode == 0 else None


def read_records(path):
    """[(commit, "step: test")]"""
    if not path.exists():
        return []
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return [
        (parts[0], parts[2]) for parts in (line.split("\t") for line in lines) if len(parts) == 3
    ]


def record(path, commits, flaky):
    """Appends a line for each flaky test of this run."""
    commit = commits[0] if commits else "unknown"
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    text = path.read_text() if path.exists() else HEADER
    path.write_text(text + "".join(f"{commit}\t{now}\t{step}: {test}\n" for step, test, _ in flaky))


def objections(flaky, records, commits):
    """Why these flaky tests fail the run nevertheless. records: those of earlier runs."""
    reasons = []
    if len(flaky) > MOST_FLAKY:
        reasons.append(f"{len(flaky)} tests are flaky, more than {MOST_FLAKY}: rewrite them")
    earlier = {test for commit, test in records if commits is None or commit in commits}
    for step, test, _ in flaky:
        if f"{step}: {test}" in earlier:
            reasons.append(
                f"{step}: {test} is flaky for the second time within {RECENT_COMMITS} commits "
                "(tests/flaky.txt): rewrite it"
            )
    return reasons
