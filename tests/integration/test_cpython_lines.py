"""Lines of every place in functions of CPython's library: ours equal those that each CPython says
itself."""

import subprocess

import pytest

from conftest import BUILD
from test_record_python import ALL, KNOWN

ORACLE = BUILD / "tests" / "oracle" / "cpython_lines"
pytestmark = pytest.mark.skipif(
    not ORACLE.exists(), reason="make oracle-programs builds what is compared"
)

# Runs in each version: "FORM FIRST TABLE PLACE…", and on the next line what it says of them.
SCRIPT = r"""
import argparse, asyncio.base_events, ast, dataclasses, difflib, dis, doctest, inspect
import json.decoder, sys, turtle, types, typing
def codes(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes(constant)
def lines_of(code, places):
    if hasattr(code, "co_lines"):
        ranges = list(code.co_lines())
        return [next((line or 0 for start, end, line in ranges if start <= place < end), 0)
                for place in places]
    starts = list(dis.findlinestarts(code))
    return [max(((start, line) for start, line in starts if start <= place),
                default=(0, code.co_firstlineno))[1]
            for place in places]
form = 0 if sys.version_info < (3, 10) else 1 if sys.version_info < (3, 11) else 2
for module in [argparse, asyncio.base_events, ast, dataclasses, difflib, doctest, inspect,
               json.decoder, typing]:
    source = open(module.__file__, encoding="utf-8").read()
    for code in codes(compile(source, module.__file__, "exec")):
        table = code.co_lnotab if form == 0 else code.co_linetable
        places = range(0, len(code.co_code), 2)
        print(form, code.co_firstlineno, "-" + table.hex(), *places)
        print(*lines_of(code, places))
"""


@pytest.mark.parametrize("version", KNOWN)
def test_lines_are_those_that_cpython_says(version):
    said = subprocess.run(
        [ALL[version], "-c", SCRIPT.replace("turtle, ", "")],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    asked, wanted = said[0::2], said[1::2]
    got = subprocess.run(
        [ORACLE], input="\n".join(asked) + "\n", check=True, capture_output=True, text=True
    ).stdout.splitlines()
    assert len(asked) > 500 and len(got) == len(wanted)
    different = [
        (question[:200], one.split(), other.split())
        for question, one, other in zip(asked, got, wanted)
        if one.split() != other.split()
    ]
    assert not different, (len(different), different[0])
