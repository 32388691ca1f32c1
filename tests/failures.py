"""Finds the failed tests in logs of all kinds and summarizes them, so that the end of a long
output shows each failed test with its reason. A failure is (name of the test, lines of its
reason)."""
import re
import xml.etree.ElementTree

LIST_LINES = 56
REASON_LINES = 8
LINE_LENGTH = 240

NOT_OK = re.compile(r"^\s*not ok (?!(?:\d+ )?# SKIP)(?:\d+ )?(?:- )?(?P<name>.+)")
NEXT = re.compile(r"^\s*(?:(?:not )?ok\b|# Subtest: |# tests \d+$|\d+\.\.\d+$|\d+ passed, )")
# Lines that node --test prints for every test, besides the error.
NOISE = re.compile(r"^\s*(?:---|\.\.\.|\|-|(?:duration_ms|location|failureType|code|name): .*)?$")
CRASH = re.compile(r"ERROR: |runtime error: |SUMMARY: |Assertion|terminated|error: ")


def of_not_ok(log):
    """Failures in TAP output: lines "not ok …" with the lines below each."""
    lines, found = log.splitlines(), []
    for at, line in enumerate(lines):
        match = NOT_OK.match(line)
        if not match:
            continue
        reason = []
        for below in lines[at + 1 :]:
            if NEXT.match(below) or len(reason) == REASON_LINES:
                break
            if not NOISE.match(below):
                reason.append(below)
        found.append((match["name"], reason))
    return found


def of_program(name, status, log):
    """Failures of a program that prints TAP, or that ended before it printed any."""
    found = [(f"{name}: {test}", reason) for test, reason in of_not_ok(log)]
    return found or [(f"{name}: exit {status}", reason_lines(log))]


def of_junit(path):
    """Failures in the XML file of pytest; none if pytest did not write it."""
    try:
        cases = xml.etree.ElementTree.parse(path).iter("testcase")
    except (OSError, xml.etree.ElementTree.ParseError):
        return []
    found = []
    for case in cases:
        for kind in ("failure", "error"):
            for failure in case.findall(kind):
                name = f"{case.get('classname')}::{case.get('name')}"
                place = (failure.text or "").rstrip().rpartition("\n")[2]
                found.append(
                    (name, [*failure.get("message", "").splitlines()[: REASON_LINES - 1], place])
                )
    return found


def reason_lines(log):
    """The reason of a failure in a log of unknown form: lines with errors, or else the last
    lines."""
    lines = [line for line in log.splitlines() if line.strip()]
    errors = [line for line in lines if CRASH.search(line)]
    return (errors or lines[-REASON_LINES:])[:REASON_LINES]


def listed(failures):
    """The name and the first lines of the reason of each failure, in at most LIST_LINES lines."""
    shown = failures[: LIST_LINES - 1]
    each = max(1, (LIST_LINES - 1) // max(1, len(shown)))
    lines = []
    for name, reason in shown:
        lines.append(f"FAILED {name}")
        lines += [f"    {line.strip()}" for line in reason if line.strip()][: each - 1]
    if len(failures) > len(shown):
        lines.append(f"and {len(failures) - len(shown)} more: see build/test-logs")
    return [line[:LINE_LENGTH] for line in lines]
