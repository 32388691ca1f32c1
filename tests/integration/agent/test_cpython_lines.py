"""Line numbers of all instructions in modules of CPython's library: our decoder returns the same
lines as each CPython version itself."""

import subprocess

import pytest

from conftest import BUILD
from test_record_python import ALL, KNOWN

PROGRAM = BUILD / "tests" / "programs" / "cpython_lines"
pytestmark = pytest.mark.skipif(
    not PROGRAM.exists(), reason="build the programs first: make test-programs"
)

# Runs in each version. Prints "FORM FIRST TABLE PLACE…", then a line with the lines of the places.
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


@pytest.mark.long
@pytest.mark.parametrize("version", KNOWN)
def test_decoded_lines_equal_those_of_cpython(version):
    output = subprocess.run(
        [ALL[version], "-c", SCRIPT.replace("turtle, ", "")],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    queries, wanted = output[0::2], output[1::2]
    got = subprocess.run(
        [PROGRAM], input="\n".join(queries) + "\n", check=True, capture_output=True, text=True
    ).stdout.splitlines()
    assert len(queries) > 500 and len(got) == len(wanted)
    different = [
        (query[:200], one.split(), other.split())
        for query, one, other in zip(queries, got, wanted)
        if one.split() != other.split()
    ]
    assert not different, (len(different), different[0])
