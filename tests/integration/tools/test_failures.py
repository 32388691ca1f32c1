"""The summary of `make test` (tests/failures.py), which names each failed test of every kind of
test, with the reason of the failure."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests"))
import failures  # noqa: E402  (beside run.py)

CMOCKA = """1..3
ok 1 - keeps_order
not ok 2 - refuses_a_bad_checksum
# 0x1 != 0x2
# tests/unit/store/block/test_block.c:7: error: Failure!
not ok 3 # SKIP needs_a_disk
# not ok - tests
"""
BROWSER = """ok - a rule is kept (812 ms)
not ok - settings: presses wait for their turn
    AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:
    + 'Move d down'
        at file:///settings.mjs:213:34
ok - another (3 ms)
1 passed, 1 failed
"""


def as_text(found):
    return "\n".join([name + "\n" + "\n".join(reason) for name, reason in found])


def test_the_summary_reads_the_tap_output_of_unit_tests():
    ((name, reason),) = failures.of_program("test_block", 1, CMOCKA)
    assert name == "test_block: refuses_a_bad_checksum"
    assert reason == ["# 0x1 != 0x2", "# tests/unit/store/block/test_block.c:7: error: Failure!"]


def test_the_summary_names_a_program_that_ended_without_a_failed_test():
    ((name, reason),) = failures.of_program(
        "test_block", -6, "1..2\nok 1 - a\n==1==ERROR: AddressSanitizer: heap-use\n"
    )
    assert name == "test_block: exit -6"
    assert reason == ["==1==ERROR: AddressSanitizer: heap-use"]


def test_the_summary_reads_the_output_of_browser_tests():
    ((name, reason),) = failures.of_not_ok(BROWSER)
    assert name == "settings: presses wait for their turn"
    assert len(reason) == 3 and "strictly equal" in reason[0]


def test_the_summary_reads_the_report_of_pytest(tmp_path):
    (tmp_path / "test_made.py").write_text(
        """
import pytest
@pytest.fixture
def broken():
    raise OSError("no server")
def test_wrong():
    assert 1 == 2, (
        "a reason that is longer than the eighty columns of which a short summary consists, "
        "to its very end")
def test_without(broken):
    pass
def test_right():
    pass
"""
    )
    report = tmp_path / "report.xml"
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", tmp_path],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        check=False,
    )
    wrong, without = failures.of_junit(report)
    assert wrong[0] == "test_made::test_wrong" and "to its very end" in wrong[1][0]
    assert without[0] == "test_made::test_without" and "no server" in as_text([without])
    assert failures.of_junit(tmp_path / "missing.xml") == []


def test_the_summary_reads_the_output_of_node(tmp_path):
    made = tmp_path / "made.test.mjs"
    made.write_text(
        """import test from "node:test"; import assert from "node:assert/strict";
test("good", () => {});
test("outer", (t) => t.test("inner", () => assert.equal(1, 2, "one is not two")));
"""
    )
    done = subprocess.run(
        ["node", "--test", "--test-reporter=tap", made],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    text = as_text(failures.of_not_ok(done.stdout))
    assert "inner" in text and "one is not two" in text and "good" not in text


def test_the_summary_names_all_failures_and_explains_them_if_they_are_few():
    reason = [f"line {i}" for i in range(20)]
    for count in (1, 7, 40, 55):
        lines = failures.listed([(f"test {i}", reason) for i in range(count)])
        assert len(lines) <= failures.LIST_LINES
        assert [line for line in lines if line.startswith("FAILED ")] == [
            f"FAILED test {i}" for i in range(count)
        ]
    assert "    line 3" in failures.listed([("alone", reason)])
    assert (
        failures.listed([(f"test {i}", reason) for i in range(90)])[-1]
        == "and 35 more: see build/test-logs"
    )
    assert failures.listed([]) == []
