"""perfolio-symbolize: tables of real files say what other tools say of every address."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / os.environ.get("BUILD", "release")
SYMBOLIZE = BUILD / "perfolio-symbolize"
PRINT = BUILD / "tests" / "oracle" / "print_symbols"

pytestmark = pytest.mark.skipif(not shutil.which("llvm-symbolizer"), reason="no llvm-symbolizer")

C_SOURCE = r"""
#include "inlined.h"
volatile int sink;
static int outlined(int x) { sink = x; return x * 3; }
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


@pytest.fixture(scope="module", autouse=True)
def printer():
    """Built here: no part of the product."""
    subprocess.run(["make", "-s", f"BUILD={BUILD.name}", str(PRINT.relative_to(ROOT))],
                   cwd=ROOT, check=True)


@pytest.fixture
def source(tmp_path):
    (tmp_path / "main.c").write_text(C_SOURCE)
    (tmp_path / "inlined.h").write_text(HEADER)
    return tmp_path


def run(*arguments, **options):
    return subprocess.run([str(argument) for argument in arguments], capture_output=True, text=True,
                          errors="surrogateescape", check=False, **options)


def compile_c(folder, *flags, compiler="gcc"):
    binary = folder / "program"
    done = run(compiler, "-O2", "-g", *flags, "main.c", "-o", binary, cwd=folder)
    assert done.returncode == 0, done.stderr
    return binary


def symbolize(file, *options):
    """(table, what was said on standard error)"""
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
    """Every address where the answer changes, and the byte before it."""
    return run(PRINT, table, "starts").stdout.split()


def look_up(table, addresses):
    """Frames (name, linkage name, file, line) of each address, leaf first."""
    done = run(PRINT, table, input="".join(f"{address}\n" for address in addresses))
    assert done.returncode == 0, done.stderr
    return [[tuple(line.split("\t")) for line in block.split("\n")[1:] if line]
            for block in done.stdout.split("\n\n")[:-1]]


def llvm(file, addresses):
    """Frames (linkage name, file:line) of each address by llvm-symbolizer."""
    done = run("llvm-symbolizer", f"--obj={file}", "--inlines", "--no-demangle",
               input="".join(f"{address}\n" for address in addresses))
    answers = []
    for block in done.stdout.split("\n\n")[:len(addresses)]:
        lines = block.strip("\n").split("\n")
        answers.append([(name, place.rsplit(":", 1)[0])
                        for name, place in zip(lines[0::2], lines[1::2])])
    return answers


def names_and_places(frames):
    return [(linkage, f"{file}:{line}" if file else f"??:{line}")
            for _, linkage, file, line in frames]


def differences(file, table, expected=None):
    """Addresses of which the two do not say the same, but for the name of the outermost function:
    there llvm has the symbol, the table what DWARF says."""
    addresses = places(table)
    assert addresses
    wrong = []
    for address, frames, other in zip(addresses, look_up(table, addresses),
                                      llvm(expected or file, addresses)):
        mine = names_and_places(frames)
        if mine and not mine[0][1].startswith("??") and (
                [place for _, place in mine] != [place for _, place in other] or
                [name for name, _ in mine[:-1]] != [name for name, _ in other[:-1]]):
            wrong.append((address, mine, other))
    return wrong, len(addresses)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("version", [2, 3, 4, 5])
def test_every_version_of_dwarf_says_what_llvm_says(source, compiler, version):
    binary = compile_c(source, f"-gdwarf-{version}", compiler=compiler)
    table, said = symbolize(binary)
    assert said == ""
    wrong, count = differences(binary, table)
    assert wrong == [] and count > 20
    deepest = max(look_up(table, places(table)), key=len)
    assert [frame[0] for frame in deepest] == ["leaf", "middle", "entry"]


@pytest.mark.parametrize("kind", ["zlib", "zlib-gnu", "zstd"])
def test_compressed_sections_are_read(source, kind):
    binary = compile_c(source)
    plain, _ = symbolize(binary)
    packed = source / "packed"
    done = run("objcopy", f"--compress-debug-sections={kind}", binary, packed)
    if done.returncode:
        pytest.skip("this objcopy cannot do that")
    assert re.search(rb"\.zdebug_", packed.read_bytes()) or kind != "zlib-gnu"
    table, said = symbolize(packed)
    assert said == ""
    addresses = places(plain)
    assert look_up(table, addresses) == look_up(plain, addresses)


def test_a_separate_debug_file_says_what_its_binary_did(source):
    binary = compile_c(source)
    whole, _ = symbolize(binary)
    debug = source / "only.debug"
    assert run("objcopy", "--only-keep-debug", binary, debug).returncode == 0
    table, _ = symbolize(debug)
    addresses = places(whole)
    assert look_up(table, addresses) == look_up(whole, addresses)


def test_every_address_of_libc_is_what_llvm_says():
    build_id = re.search(r"Build ID: (\w+)", run("readelf", "-n", "/lib/x86_64-linux-gnu/libc.so.6")
                         .stdout)
    if not build_id:
        pytest.skip("no libc with a build id")
    debug = pathlib.Path("/usr/lib/debug/.build-id", build_id[1][:2], build_id[1][2:] + ".debug")
    if not debug.exists():
        pytest.skip("no libc6-dbg")
    table = pathlib.Path("/tmp") / f"perfolio-libc-{os.getpid()}.symbols"
    try:
        assert run(SYMBOLIZE, "-q", "-o", table, debug).returncode == 0
        wrong, count = differences(debug, table)
        # Some lines of assembly lie in a unit that llvm finds no range of.
        assert [entry for entry in wrong if entry[2][0][1] != "??:0"] == []
        assert count > 250_000 and len(wrong) < 50
    finally:
        table.unlink(missing_ok=True)


def test_what_is_no_elf_file_is_refused(tmp_path):
    text = tmp_path / "text"
    text.write_text("#!/bin/sh\n" * 100)
    assert "no ELF file" in refuse(text)
    empty = tmp_path / "empty"
    empty.write_bytes(b"")
    assert "empty" in refuse(empty)


def test_a_file_that_is_cut_short_is_refused(source):
    binary = compile_c(source)
    data = binary.read_bytes()
    binary.write_bytes(data[:len(data) // 2])
    assert "outside of the file" in refuse(binary)


def test_a_stripped_file_names_its_exports_and_nothing_else(source):
    binary = compile_c(source, "-shared", "-fPIC")
    subprocess.run(["strip", str(binary)], check=True)
    table, _ = symbolize(binary)
    names = {frame[0] for frames in look_up(table, places(table)) for frame in frames}
    assert {"entry", "main"} <= names and "outlined" not in names


def test_too_little_memory_is_a_reason_not_a_crash(source):
    binary = compile_c(source)
    assert "more than the limit of 1 MiB of memory" in refuse(binary, "--max-memory", "1")


# ---- Go ----

GO = shutil.which("go") or ("/usr/local/go/bin/go" if os.path.exists("/usr/local/go/bin/go") else None)
SHARED = pathlib.Path(os.environ.get("PERFOLIO_SHARED", ROOT.parent / "shared")) / "data" / "symbolize"
GO_SOURCE = r"""package main

import (
	"fmt"
	"os"
	"sort"
	"strings"
)

type box struct{ w, h float64 }

func (b box) area() float64    { return mul(b.w, b.h) }
func mul(a, b float64) float64 { return a * b }

func main() {
	words := strings.Fields("a b c " + strings.Repeat("x ", len(os.Args)))
	sort.Slice(words, func(i, j int) bool { return words[i] < words[j] })
	fmt.Println(words, box{float64(len(words)), 3}.area())
}
"""


def go_files():
    return sorted(SHARED.glob("*/debuginfo")) if SHARED.is_dir() else []


def compare_with_go(file, table):
    """`go tool addr2line` says the outermost function and the innermost place."""
    addresses = places(table)
    lines = run(GO, "tool", "addr2line", file, input="".join(f"{a}\n" for a in addresses)) \
        .stdout.split("\n")
    assert len(lines) > 2 * len(addresses), "go tool addr2line gave up"
    compared = 0
    for address, frames, name, place in zip(addresses, look_up(table, addresses), lines[0::2],
                                            lines[1::2]):
        if name == "?":
            continue
        _, _, path, line = frames[0]
        compared += 1
        assert (frames[-1][0], path if line != "0" else "", line) == \
            (name, *(place.rsplit(":", 1) if ":-" not in place else ("", "0"))), address
    return compared


@pytest.mark.parametrize("file", go_files(), ids=lambda file: file.parent.name[:8])
def test_real_go_files_are_read(file, tmp_path):
    copy = tmp_path / "file"
    copy.write_bytes(file.read_bytes())
    table, _ = symbolize(copy)
    names = {frames[-1][0] for frames in look_up(table, places(table))[:50_000] if frames}
    assert {"runtime.mallocgc", "runtime.schedule"} <= names
    sections = run("readelf", "-SW", file).stdout
    if GO and re.search(r"\.gopclntab +PROGBITS", sections):
        assert compare_with_go(file, table) > 50_000


@pytest.mark.skipif(not GO, reason="no Go")
@pytest.mark.parametrize("flags", [[], ["-buildmode=pie"], ["-ldflags=-s -w"],
                                   ["-buildmode=pie", "-ldflags=-s -w"]])
def test_go_programs_say_what_go_says(tmp_path, flags):
    (tmp_path / "main.go").write_text(GO_SOURCE)
    (tmp_path / "go.mod").write_text("module example.org/sample\n\ngo 1.18\n")
    binary = tmp_path / "program"
    done = run(GO, "build", *flags, "-o", binary, ".", cwd=tmp_path,
               env={**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod", "CGO_ENABLED": "0"})
    assert done.returncode == 0, done.stderr
    table, said = symbolize(binary)
    assert said == ""
    assert compare_with_go(binary, table) > 10_000
    chains = {tuple(frame[0] for frame in frames) for frames in look_up(table, places(table))}
    assert ("main.mul", "main.box.area", "main.main") in chains
    if not flags:
        wrong = [entry for entry in differences(binary, table)[0]
                 if "<autogenerated>" not in str(entry) and entry[2][0][0] != "??"]
        assert wrong == []
