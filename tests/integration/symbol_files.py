"""Files with debug information, their symbol tables, and the frames that other tools report."""

import fcntl
import functools
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / os.environ.get("BUILD", "release")
SYMBOLIZE = BUILD / "perfolio-symbolize"
PRINT = BUILD / "tests" / "programs" / "print_symbols"

C_SOURCE = r"""
#include "inlined.h"
volatile int sink;
static __attribute__((noinline)) int outlined(int x) { sink = x; return x * 3; }
static inline __attribute__((always_inline)) int middle(int x)
{
    for (int i = 0; i < 4; i++)
        sink += leaf(x + i);
    return sink;
}
__attribute__((noinline)) int entry(int x)
{
    int y = middle(x);
    if (y > 10)
        y += leaf(y);
    return y + outlined(y);
}
int main(int argc, char **argv) { (void)argv; return entry(argc) & 1; }
"""
HEADER = r"""
extern volatile int sink;
static inline __attribute__((always_inline)) int leaf(int x)
{
    sink = x;
    return x ^ sink;
}
"""


@functools.cache
def build_printer():
    """Builds the test program that prints tables. A lock lets only one process build it, because
    it must not run while it is linked."""
    with open(BUILD / "print_symbols.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run(
            ["make", "-s", f"BUILD={BUILD.name}", str(PRINT.relative_to(ROOT))],
            cwd=ROOT,
            check=True,
        )


def write_source(folder):
    (folder / "main.c").write_text(C_SOURCE)
    (folder / "inlined.h").write_text(HEADER)
    return folder


def run(*arguments, **options):
    return subprocess.run(
        [str(argument) for argument in arguments],
        capture_output=True,
        text=True,
        errors="surrogateescape",
        check=False,
        **options,
    )


def compile_c(folder, *flags, compiler="gcc"):
    binary = folder / "program"
    done = run(compiler, "-O2", "-g", *flags, "main.c", "-o", binary, cwd=folder)
    assert done.returncode == 0, done.stderr
    return binary


def symbolize(file, *options):
    """Builds the table of file; returns (table, standard error)."""
    table = file.parent / (file.name + ".symbols")
    done = run(SYMBOLIZE, *options, "-q", "-o", table, file)
    assert done.returncode == 0, done.stderr
    return table, done.stderr


def refuse(file, *options):
    table = file.parent / (file.name + ".symbols")
    done = run(SYMBOLIZE, *options, "-o", table, file)
    assert done.returncode == 1
    assert not table.exists() and not list(file.parent.glob("*.part-*"))
    return done.stderr


def places(table):
    """Returns every address at which the frames change, and the address before it."""
    return run(PRINT, table, "starts").stdout.split()


def look_up(table, addresses):
    """Returns the frames (name, linkage name, file, line) of each address, leaf first."""
    done = run(PRINT, table, input="".join(f"{address}\n" for address in addresses))
    assert done.returncode == 0, done.stderr
    return [
        [tuple(line.split("\t")) for line in block.split("\n")[1:] if line]
        for block in done.stdout.split("\n\n")[:-1]
    ]


def llvm(file, addresses):
    """Returns the frames (linkage name, file:line) of each address by llvm-symbolizer."""
    done = run(
        "llvm-symbolizer",
        f"--obj={file}",
        "--inlines",
        "--no-demangle",
        input="".join(f"{address}\n" for address in addresses),
    )
    responses = []
    for block in done.stdout.split("\n\n")[: len(addresses)]:
        lines = block.strip("\n").split("\n")
        responses.append(
            [(name, place.rsplit(":", 1)[0]) for name, place in zip(lines[0::2], lines[1::2])]
        )
    return responses


def names_and_places(frames):
    return [
        (linkage, f"{file}:{line}" if file else f"??:{line}") for _, linkage, file, line in frames
    ]


def differences(file, table, expected=None):
    """Returns the addresses whose frames differ between table and llvm-symbolizer, and the number
    of addresses. The name of the outermost function is not compared: llvm-symbolizer takes it
    from the symbol table, perfolio from DWARF."""
    addresses = places(table)
    assert addresses
    wrong = []
    for address, frames, other in zip(
        addresses, look_up(table, addresses), llvm(expected or file, addresses)
    ):
        own = names_and_places(frames)
        if (
            own
            and not own[0][1].startswith("??")
            and (
                [place for _, place in own] != [place for _, place in other]
                or [name for name, _ in own[:-1]] != [name for name, _ in other[:-1]]
            )
        ):
            wrong.append((address, own, other))
    return wrong, len(addresses)


def sections_of(file):
    return run("readelf", "-SW", file).stdout
