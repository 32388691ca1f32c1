"""What failed, of all kinds of logs, in few lines: whoever reads only the end of a long output finds each failing test
there, and why it failed. A failure is (name of the test, lines of its reason)."""
import re
import xml.etree.ElementTree

LIST_LINES = 56
REASON_LINES = 8
LINE_LENGTH = 240

NOT_OK = re.compile(r"^\s*not ok (?!(?:\d+ )?# SKIP)(?:\d+ )?(?:- )?(?P<name>.+)")
NEXT = re.compile(r"^\s*(?:(?:not )?ok\b|# Subtest: |# tests \d+$|\d+\.\.\d+$|\d+ passed, )")
# What node --test tells of every test beside its error.
NOISE = re.compile(r"^\s*(?:---|\.\.\.|\|-|(?:duration_ms|location|failureType|code|name): .*)?$")
CRASH = re.compile(r"ERROR: |runtime error: |SUMMARY: |Assertion|terminated|error: ")


def of_not_ok(log):
    """Of lines "not ok …" and what stands below each."""
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
    """Of a program that tells its tests as TAP, or that ended before it could."""
    found = [(f"{name}: {test}", reason) for test, reason in of_not_ok(log)]
    return found or [(f"{name}: exit {status}", telling_lines(log))]


def of_junit(path):
    """Of the XML that pytest writes; nothing where it could not write it."""
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


def telling_lines(log):
    """Of a log whose form is not known: lines that tell of errors, else the last ones."""
    lines = [line for line in log.splitlines() if line.strip()]
    errors = [line for line in lines if CRASH.search(line)]
    return (errors or lines[-REASON_LINES:])[:REASON_LINES]


def listed(failures):
    """Each failure's name and the begin of its reason, in at most LIST_LINES lines; the more failures, the less of each."""
    shown = failures[: LIST_LINES - 1]
    each = max(1, (LIST_LINES - 1) // max(1, len(shown)))
    lines = []
    for name, reason in shown:
        lines.append(f"FAILED {name}")
        lines += [f"    {line.strip()}" for line in reason if line.strip()][: each - 1]
    if len(failures) > len(shown):
        lines.append(f"and {len(failures) - len(shown)} more: see build/test-logs")
    return [line[:LINE_LENGTH] for line in lines]
