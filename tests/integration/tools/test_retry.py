"""tests/retry.py runs a failed test once more, alone. A test that passes then is recorded as flaky,
and only too many flaky tests fail the run."""
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests"))
import retry  # noqa: E402

FAILS_ONCE = """
import pathlib
import pytest
MARK = pathlib.Path(__file__).with_suffix(".mark")
@pytest.mark.parametrize("name", ["a b", "[c]"])
def test_fails_once(name):
    was_run = MARK.exists()
    MARK.touch()
    assert was_run
def test_fails():
    assert False
"""


@pytest.fixture
def tree(tmp_path):
    """A source tree with one module of integration tests, one unit test and two fuzzers."""
    (tmp_path / "tests" / "integration").mkdir(parents=True)
    (tmp_path / "tests" / "integration" / "test_made.py").write_text(FAILS_ONCE)
    return tmp_path


def program(path, script):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + script)
    path.chmod(0o755)
    return path


@pytest.mark.long
def test_an_integration_test_that_passes_alone_is_flaky(tree):
    again = retry.Again(tree)
    (tree / "tests" / "integration" / "test_made.mark").touch()
    found = [
        ("integration", f"tests.integration.test_made::{name}", ["assert False"])
        for name in ("test_fails_once[a b]", "test_fails_once[[c]]", "test_fails", "test_unknown")
    ]
    shown = []
    flaky = retry.retried(found, again, shown.append)
    assert flaky == found[:2], shown
    assert "passed" in shown[0] and "failed again" in shown[2] and "failed again" in shown[3]


def test_a_unit_test_runs_alone_and_a_sanitizer_report_is_final(tree):
    folder = tree / "build" / "release" / "tests" / "unit" / "store"
    program(folder / "test_good", "echo ok 1 - works\n")
    program(folder / "test_bad", "echo not ok 1 - works\nexit 1\n")
    program(folder / "test_report", "echo '==7==ERROR: AddressSanitizer: heap-use-after-free'\n")
    again = retry.Again(tree)
    assert again.passes("unit", "test_good: works", []) is True
    assert again.passes("unit", "test_bad: works", []) is False
    assert again.passes("unit", "test_report: exit 1", []) is False
    assert again.passes("unit", "test_absent: works", []) is None
    assert again.passes("unit", "test_good: works", ["a.c:7:3: runtime error: shift"]) is None


def test_a_crash_that_a_fuzzer_found_is_final_and_a_slow_input_is_not(tree):
    for name, artifact in (
        ("fuzz_slow", "timeout-1"),
        ("fuzz_crash", "crash-1"),
        ("fuzz_leak", "leak-1"),
    ):
        program(tree / "build" / "fuzz" / "tests" / "fuzz" / name, "exit 0\n")
        folder = tree / "build" / "fuzz" / "findings" / name
        folder.mkdir(parents=True)
        (folder / artifact).write_bytes(b"x")
    again = retry.Again(tree)
    assert again.passes("search", "fuzz_slow: see log", []) is True
    assert again.passes("search", "fuzz_crash: see log", []) is None
    assert again.passes("search", "fuzz_leak: see log", []) is None


@pytest.mark.parametrize("step", ["build", "unknown", "crash"])
def test_failures_of_a_build_and_of_the_crash_step_are_final(tree, step):
    assert retry.Again(tree).passes(step, "the whole step", []) is None


def test_the_steps_of_test_long_retry_with_their_own_settings(tree):
    folder = tree / "build" / "fuzz" / "tests" / "unit" / "store"
    program(folder / "test_all_inputs", "test $TEST_FULL = 1\n")
    (tree / "tests" / "integration" / "test_sanitized.py").write_text(
        "import os\n"
        "def test_build():\n"
        f"    assert os.environ['CLIENT_BUILD'] == {retry.SANITIZED_CLIENTS!r}\n"
    )
    again = retry.Again(tree)
    assert again.passes("sanitizers", "test_all_inputs: works", []) is True
    test = "tests.integration.test_sanitized::test_build"
    assert again.passes("clients", test, []) is True
    assert again.passes("agents", test, []) is False
    log = tree / "build" / "test-logs" / "sanitizers-test_all_inputs.log"
    log.parent.mkdir(parents=True)
    log.write_text("a.c:7:3: runtime error: shift exponent 64 is too large\n")
    assert again.passes("sanitizers", "test_all_inputs: works", []) is None


def test_a_slow_input_is_retried_with_the_program_of_its_fuzzer(tree):
    folder = tree / "build" / "fuzz" / "tests" / "fuzz"
    program(folder / "fuzz_slow", "grep -q x $1\n")
    program(folder / "fuzz_slower", "exit 1\n")
    for name in ("fuzz_slow", "fuzz_slower"):
        found = tree / "build" / "fuzz" / "findings" / name
        found.mkdir(parents=True)
        (found / "slow-unit-1").write_bytes(b"x")
    again = retry.Again(tree)
    assert again.passes("search", "fuzz_slow: see log", []) is True
    assert again.passes("search", "fuzz_slower: see log", []) is False


@pytest.mark.parametrize(
    "step, output, passes",
    [
        ("web", "ok 1 - a zoom\nnot ok 2 - a pan\n", True),
        ("web", "ok 2 - a pan\nnot ok 1 - a zoom\n", False),
        ("browser", "ok - a zoom (7 ms)\n1 passed, 0 failed\n", True),
        ("browser", "ok - a zoom (7 ms)\nnot ok - a zoom twice\n", False),
        ("browser", "0 passed, 0 failed\n", False),
    ],
)
def test_a_web_test_passes_if_its_own_output_line_is_ok(tree, monkeypatch, step, output, passes):
    program(tree / "bin" / "npm", f"cat <<'END'\n{output}END\nexit 1\n")
    monkeypatch.setenv("PATH", f"{tree / 'bin'}:{os.environ['PATH']}")
    assert retry.Again(tree).passes(step, "a zoom", []) is passes


def test_a_lint_check_is_retried_alone(tree):
    program(tree / "tests" / "lint" / "check.sh", "test $1 = layers\n")
    assert retry.Again(tree).passes("check", "layers", []) is True
    assert retry.Again(tree).passes("check", "format", []) is False


def test_too_many_flaky_tests_fail_the_run():
    flaky = [("unit", f"test_{i}", []) for i in range(retry.MOST_FLAKY)]
    assert retry.objections(flaky, [], ["c1"]) == []
    assert (
        "4 tests are flaky" in retry.objections([*flaky, ("unit", "test_more", [])], [], ["c1"])[0]
    )


def test_a_test_that_is_flaky_in_two_runs_of_ten_commits_fails_the_second(tmp_path):
    path = tmp_path / "flaky.txt"
    flaky = [("browser", "explore: a graph is shown", ["timeout"])]
    assert retry.read_records(path) == []
    retry.record(path, ["c5", "c4"], flaky)
    records = retry.read_records(path)
    assert records == [("c5", "browser: explore: a graph is shown")]
    assert len(retry.objections(flaky, records, ["c7", "c6", "c5"])) == 1
    assert len(retry.objections(flaky, records, None)) == 1, "without git every record counts"
    assert (
        retry.objections(flaky, records, ["c17", "c16"]) == []
    ), "the record is older than ten commits"
    assert retry.objections([("browser", "another", [])], records, ["c5"]) == []
    retry.record(path, ["c6"], flaky)
    assert path.read_text().startswith("# ") and len(retry.read_records(path)) == 2


def test_recent_commits_are_read_from_git(tmp_path):
    assert retry.recent_commits(tmp_path) is None
    identity = {
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b",
    }
    for command in (
        ["init", "-q"],
        *[["commit", "-q", "--allow-empty", "-m", str(i)] for i in range(12)],
    ):
        subprocess.run(["git", *command], cwd=tmp_path, check=True, env={**os.environ, **identity})
    assert len(retry.recent_commits(tmp_path)) == retry.RECENT_COMMITS


def test_flaky_txt_of_the_source_tree_is_readable():
    lines = [
        line
        for line in (ROOT / "tests" / "flaky.txt").read_text().splitlines()
        if not line.startswith("#")
    ]
    assert len(retry.read_records(ROOT / "tests" / "flaky.txt")) == len(lines)
