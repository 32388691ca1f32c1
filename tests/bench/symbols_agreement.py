#!/usr/bin/env python3
"""Compares a symbol table with llvm-symbolizer at the addresses where the result changes.

  tests/bench/symbols_agreement.py FILE TABLE [STEP]    every STEPth address (1)

Lines of all frames and names of all frames but the outermost must be equal (for the outermost,
llvm returns the symbol's name). If they differ, several functions or line tables must contain the
address, according to llvm-dwarfdump. Such ties are counted; other differences are printed.
"""

import bisect
import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "integration"))
from symbol_files import llvm, look_up, names_and_places, places  # noqa: E402

CHUNK = 200_000  # addresses per run: the results are kept in memory


def is_equal(own, other):
    return [place for _, place in own] == [place for _, place in other] and [
        name for name, _ in own[:-1]
    ] == [name for name, _ in other[:-1]]


def compare(file, table, step):
    """Returns (number of addresses compared, number without a unit for llvm, {address: (our result,
    llvm's)})."""
    addresses = places(table)[::step]
    compared, unknown, wrong = 0, 0, {}
    for first in range(0, len(addresses), CHUNK):
        chunk = addresses[first : first + CHUNK]
        for address, frames, other in zip(chunk, look_up(table, chunk), llvm(file, chunk)):
            own = names_and_places(frames)
            if not own or own[0][1].startswith("??"):
                continue  # named by a symbol only: no DWARF
            compared += 1
            if other[0][1] == "??:0":
                unknown += 1
            elif not is_equal(own, other):
                wrong[int(address, 16)] = (own, other)
    return compared, unknown, wrong


class Cover:
    """Sorted ranges; count() returns how many of them contain an address."""

    def __init__(self, ranges):
        self.ranges = sorted(ranges)
        self.longest = max((end - begin for begin, end in self.ranges), default=0)

    def count(self, address):
        found = set()
        at = bisect.bisect_right(self.ranges, (address, 1 << 65))
        while at and self.ranges[at - 1][0] + self.longest > address:
            at -= 1
            if self.ranges[at][1] > address:
                found.add(at)
        return len(found)


def lines_of(*command):
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace"
    )
    yield from process.stdout
    process.wait()


def line_sequences(file):
    """Yields [begin, end) of each sequence in each line table."""
    first = None
    for line in lines_of("llvm-dwarfdump", "--debug-line", file):
        if not line.startswith("0x"):
            continue
        address = int(line.split()[0], 16)
        first = address if first is None else first
        if "end_sequence" in line:
            if first < address:
                yield first, address
            first = None


def function_ranges(file):
    """Yields [begin, end) of each function that is not inlined, and of each part of a divided
    function."""
    is_function, low = False, None
    for line in lines_of("llvm-dwarfdump", "--debug-info", file):
        if "DW_TAG_" in line:
            is_function, low = "DW_TAG_subprogram" in line, None
        elif is_function and "DW_AT_low_pc" in line:
            low = int(re.search(r"\((0x\w+)\)", line)[1], 16)
        elif is_function and low is not None and "DW_AT_high_pc" in line:
            yield low, int(re.search(r"\((0x\w+)\)", line)[1], 16)
        elif is_function and (piece := re.search(r"\[(0x\w+), (0x\w+)\)", line)):
            yield int(piece[1], 16), int(piece[2], 16)


def not_ambiguous(file, wrong):
    """Returns the addresses that at most one function and one line table contain."""
    left = dict(wrong)
    for source in (line_sequences, function_ranges):
        if left:
            cover = Cover(source(file))
            left = {address: both for address, both in left.items() if cover.count(address) < 2}
    return left


def agreement(file, table, step=1):
    """Returns (compared, without a unit for llvm, ties, {address: both results} without ties)."""
    compared, unknown, wrong = compare(file, table, step)
    left = not_ambiguous(file, wrong)
    return compared, unknown, len(wrong) - len(left), left


def main():
    file, table = sys.argv[1], sys.argv[2]
    compared, unknown, ties, left = agreement(
        file, table, int(sys.argv[3]) if len(sys.argv) > 3 else 1
    )
    print(
        f"{compared} compared, {unknown} without a unit for llvm, {ties} ties, {len(left)} differ"
    )
    kinds = collections.Counter(str(both) for both in left.values())
    for both, count in kinds.most_common(10):
        print(count, both)
    for address in list(left)[:10]:
        print(hex(address), *left[address], sep="\n    ")
    return 1 if left or ties > compared / 1000 else 0


if __name__ == "__main__":
    sys.exit(main())
