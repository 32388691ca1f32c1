"""perfolio-symbolize: tables of real files, compared with other tools address by address."""

import os
import pathlib
import random
import re
import shutil
import subprocess
import sys

import pytest

from conftest import rest_long
from symbol_files import (
    PRINT,
    ROOT,
    SYMBOLIZE,
    build_printer,
    compile_c,
    differences,
    look_up,
    places,
    refuse,
    run,
    sections_of,
    symbolize,
    write_source,
)

sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import go_table_maker  # noqa: E402

pytestmark = pytest.mark.skipif(not shutil.which("llvm-symbolizer"), reason="no llvm-symbolizer")


@pytest.fixture(scope="module", autouse=True)
def printer():
    build_printer()


@pytest.fixture
def source(tmp_path):
    return write_source(tmp_path)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("version", [2, 3, 4, 5])
def test_tables_of_every_dwarf_version_agree_with_llvm(source, compiler, version):
    binary = compile_c(source, f"-gdwarf-{version}", compiler=compiler)
    table, stderr = symbolize(binary)
    assert stderr == ""
    wrong, count = differences(binary, table)
    assert wrong == [] and count > 20
    deepest = max(look_up(table, places(table)), key=len)
    assert [frame[0] for frame in deepest] == ["leaf", "middle", "entry"]


@pytest.mark.long
def test_the_table_of_libc_agrees_with_llvm_at_every_address():
    debug = libc_debug_file()
    table = pathlib.Path("/tmp") / f"perfolio-libc-{os.getpid()}.symbols"
    try:
        assert run(SYMBOLIZE, "-q", "-o", table, debug).returncode == 0
        wrong, count = differences(debug, table)
        # llvm finds no address range for a unit with some lines of assembly.
        assert [entry for entry in wrong if entry[2][0][1] != "??:0"] == []
        assert count > 250_000 and len(wrong) < 50
    finally:
        table.unlink(missing_ok=True)


def test_a_file_that_is_no_elf_file_is_refused(tmp_path):
    text = tmp_path / "text"
    text.write_text("#!/bin/sh\n" * 100)
    assert "no ELF file" in refuse(text)
    empty = tmp_path / "empty"
    empty.write_bytes(b"")
    assert "empty" in refuse(empty)


def test_the_table_of_a_stripped_file_names_only_its_exports(source):
    binary = compile_c(source, "-shared", "-fPIC")
    subprocess.run(["strip", str(binary)], check=True)
    table, _ = symbolize(binary)
    names = {frame[0] for frames in look_up(table, places(table)) for frame in frames}
    assert {"entry", "main"} <= names and "outlined" not in names


def test_the_memory_limit_is_reported_as_the_reason(source):
    binary = compile_c(source)
    assert "more than the limit of 1 MiB of memory" in refuse(binary, "--max-memory", "1")


def libc_debug_file():
    build_id = re.search(
        r"Build ID: (\w+)", run("readelf", "-n", "/lib/x86_64-linux-gnu/libc.so.6").stdout
    )
    debug = build_id and pathlib.Path(
        "/usr/lib/debug/.build-id", build_id[1][:2], build_id[1][2:] + ".debug"
    )
    return debug if debug and debug.exists() else pytest.skip("no libc6-dbg")


def test_the_memory_limit_is_reported_with_the_step_that_reached_it(tmp_path):
    debug = tmp_path / "libc"
    debug.write_bytes(libc_debug_file().read_bytes())
    stderr = refuse(debug, "--max-memory", "32")
    assert "more than the limit of 32 MiB of memory while reading its DWARF" in stderr


# ---- Go ----

GO = shutil.which("go") or (
    "/usr/local/go/bin/go" if os.path.exists("/usr/local/go/bin/go") else None
)
SHARED = (
    pathlib.Path(os.environ.get("PERFOLIO_SHARED", ROOT.parent / "shared")) / "data" / "symbolize"
)
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
    """Compares table with `go tool addr2line`, which prints the outermost function and the
    innermost file and line; returns the number of compared addresses."""
    addresses = places(table)
    lines = run(
        GO, "tool", "addr2line", file, input="".join(f"{a}\n" for a in addresses)
    ).stdout.split("\n")
    assert len(lines) > 2 * len(addresses), "go tool addr2line gave up"
    compared = 0
    for address, frames, name, place in zip(
        addresses, look_up(table, addresses), lines[0::2], lines[1::2]
    ):
        if name == "?":
            continue
        _, _, path, line = frames[0]
        compared += 1
        assert (frames[-1][0], path if line != "0" else "", line) == (
            name,
            *(place.rsplit(":", 1) if ":-" not in place else ("", "0")),
        ), address
    return compared


@pytest.mark.parametrize(
    "file",
    rest_long(
        [
            pytest.param(file, id=file.parent.name[:8])
            for file in sorted(go_files(), key=lambda file: file.stat().st_size)
        ]
    ),
)
def test_tables_of_real_go_files_agree_with_go(file, tmp_path):
    copy = tmp_path / "file"
    copy.write_bytes(file.read_bytes())
    table, _ = symbolize(copy)
    names = {frames[-1][0] for frames in look_up(table, places(table))[:50_000] if frames}
    assert {"runtime.mallocgc", "runtime.schedule"} <= names
    sections = run("readelf", "-SW", file).stdout
    if GO and re.search(r"\.gopclntab +PROGBITS", sections):
        assert compare_with_go(file, table) > 50_000


@pytest.mark.long
@pytest.mark.skipif(not GO, reason="no Go")
@pytest.mark.parametrize(
    "flags", [[], ["-buildmode=pie"], ["-ldflags=-s -w"], ["-buildmode=pie", "-ldflags=-s -w"]]
)
def test_tables_of_go_programs_agree_with_go(tmp_path, flags):
    (tmp_path / "main.go").write_text(GO_SOURCE)
    (tmp_path / "go.mod").write_text("module example.org/sample\n\ngo 1.18\n")
    binary = tmp_path / "program"
    done = run(
        GO,
        "build",
        *flags,
        "-o",
        binary,
        ".",
        cwd=tmp_path,
        env={**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod", "CGO_ENABLED": "0"},
    )
    assert done.returncode == 0, done.stderr
    table, stderr = symbolize(binary)
    assert stderr == ""
    assert compare_with_go(binary, table) > 10_000
    chains = {tuple(frame[0] for frame in frames) for frames in look_up(table, places(table))}
    assert ("main.mul", "main.box.area", "main.main") in chains
    if not flags:
        wrong = [
            entry
            for entry in differences(binary, table)[0]
            if "<autogenerated>" not in str(entry) and entry[2][0][0] != "??"
        ]
        assert wrong == []


# ---- other kinds of files and languages ----


def test_the_table_of_a_relocatable_file_agrees_with_elfutils(source):
    """Kernel modules are such files, with code in several sections that all start at address 0."""
    done = run(
        "gcc", "-O2", "-g", "-ffunction-sections", "-c", "main.c", "-o", "main.o", cwd=source
    )
    assert done.returncode == 0, done.stderr
    table, stderr = symbolize(source / "main.o")
    assert stderr == ""
    addresses = places(table)
    frames = look_up(table, addresses)
    assert {"entry", "main", "outlined"} >= {chain[-1][0] for chain in frames if chain}
    out = run("eu-addr2line", "-i", "-e", source / "main.o", *addresses).stdout.strip().split("\n")
    mine = [f"{file}:{line}" for chain in frames for _, _, file, line in chain]
    assert [line.rsplit(":", 1)[0] for line in out if line != "??:0"] == mine
    assert any(len(chain) == 3 for chain in frames)


def kernel_modules():
    """Kernel modules with DWARF, from a linux-image-…-dbg package. The tests do not install it,
    because it has 280 MB."""
    root = pathlib.Path(os.environ.get("PERFOLIO_KERNEL_DEBUG", "/usr/lib/debug"))
    found = sorted(root.glob("lib/modules/*/kernel/**/*.ko*"), key=lambda path: path.stat().st_size)
    return [path for path in found if path.suffix in (".ko", ".debug")]


def frames_of_addr2line(module, address):
    """The frames according to addr2line, which decides where elfutils differs. One such address is
    known: a function that is always inlined, twice at the same place. -j: the address is relative
    to the section."""
    next_address = 0
    for name, size, flags, alignment in re.findall(
        r"\] (\S+) +\w+ +[0-9a-f]{16} [0-9a-f]+ ([0-9a-f]+) \w+ +([A-Zop]*) +\d+ +\d+ +(\d+)",
        sections_of(module),
    ):
        if "A" not in flags:
            continue
        begin = -(-next_address // max(int(alignment), 1)) * max(int(alignment), 1)
        next_address = begin + int(size, 16)
        if begin <= address < next_address:
            out = run("addr2line", "-i", "-j", name, "-e", module, hex(address - begin)).stdout
            return [line.split(" (")[0] for line in out.split("\n") if line]
    return []


@pytest.mark.skipif(
    not kernel_modules(),
    reason="no linux-image-…-dbg package: set PERFOLIO_KERNEL_DEBUG to the usr/lib/debug of "
    "an unpacked one",
)
def test_the_table_of_a_kernel_module_agrees_with_elfutils(tmp_path):
    """The code of a module is in several sections; readers that agree on its addresses place the
    sections in the same way."""
    modules = kernel_modules()
    for module in {modules[0], modules[len(modules) // 2]}:
        copy = tmp_path / module.name
        shutil.copy(module, copy)
        table, stderr = symbolize(copy)
        assert stderr == ""
        addresses = places(table)
        addresses = addresses[:: len(addresses) // 2000 + 1]
        out = run(
            "eu-addr2line", "-i", "-A", "-a", "-e", copy, input="\n".join(addresses) + "\n"
        ).stdout
        blocks = [block.split("\n")[1:] for block in ("\n" + out).split("\n0x")[1:]]
        assert len(blocks) == len(addresses)
        compared = voted = 0
        for address, chain, block in zip(addresses, look_up(table, addresses), blocks):
            lines = [line.split(" (")[0].rsplit(":", 1)[0] for line in block if line]
            if lines == ["??"] or not chain or chain[0][3] == "0" or not chain[0][0]:
                continue  # only a symbol is known, or it is padding behind a function
            mine = [f"{file}:{line}" for _, _, file, line in chain]
            assert lines == mine or frames_of_addr2line(copy, int(address, 16)) == mine, (
                address,
                lines,
            )
            compared += 1
            voted += lines != mine
        assert compared > 50 and voted <= compared / 100


def test_a_file_with_line_tables_only_gets_lines_and_symbols(source):
    binary = compile_c(source)
    whole, _ = symbolize(binary)
    lines = source / "lines"
    remove = [
        f"--remove-section=.debug_{name}"
        for name in ("info", "abbrev", "aranges", "str", "rnglists", "loclists")
    ]
    assert run("objcopy", *remove, binary, lines).returncode == 0
    table, stderr = symbolize(lines)
    assert stderr == ""
    addresses = places(whole)
    for chain, alone in zip(look_up(whole, addresses), look_up(table, addresses)):
        if chain and chain[0][3] != "0":
            assert len(alone) == 1
            assert (alone[0][0], os.path.basename(alone[0][2]), alone[0][3]) == (
                chain[-1][0],
                os.path.basename(chain[0][2]),
                chain[0][3],
            )


def test_a_broken_dwarf_unit_does_not_affect_the_others(source):
    (source / "other.c").write_text("int other(int x) { return x * 7; }\n")
    binary = source / "program"
    done = run("gcc", "-O2", "-g", "main.c", "other.c", "-o", binary, cwd=source)
    assert done.returncode == 0, done.stderr
    data = bytearray(binary.read_bytes())
    offset = int(re.search(r"\.debug_info +PROGBITS +\w+ (\w+)", sections_of(binary))[1], 16)
    data[offset + 8 : offset + 12] = b"\xff\xff\xff\x7f"  # the abbreviations of the first unit
    binary.write_bytes(data)
    table, stderr = symbolize(binary)
    assert "1 of 2 units of its DWARF is broken" in stderr
    chains = look_up(table, places(table))
    assert any(chain and chain[0][0] == "other" and chain[0][3] == "1" for chain in chains)


CPP_SOURCE = r"""
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>
namespace shop {
template <typename T> struct Cart {
    std::vector<T> items;
    explicit Cart(T first) { items.push_back(first); }
    T sum() const { T total{}; for (const T &item : items) total += item; return total; }
};
}
int main(int argc, char **argv)
{
    shop::Cart<double> cart(argc);
    std::map<std::string, int> counts;
    for (int i = 0; i < argc; i++)
        counts[argv[i]]++;
    std::vector<int> order{3, 1, 2, argc};
    std::sort(order.begin(), order.end(), [](int a, int b) { return a > b; });
    std::printf("%f %zu %d\n", cart.sum(), counts.size(), order[0]);
}
"""


@pytest.mark.long
@pytest.mark.parametrize("compiler", rest_long(["g++", "clang++"]))
def test_cpp_names_are_demangled_and_agree_with_llvm(tmp_path, compiler):
    (tmp_path / "main.cpp").write_text(CPP_SOURCE)
    binary = tmp_path / "program"
    done = run(compiler, "-O2", "-g", "main.cpp", "-o", binary, cwd=tmp_path)
    if done.returncode:
        pytest.skip("no " + compiler)
    table, stderr = symbolize(binary)
    assert stderr == ""
    wrong, count = differences(binary, table)
    assert wrong == [] and count > 500
    frames = {frame for chain in look_up(table, places(table)) for frame in chain}
    mangled = sorted({frame[1] for frame in frames if frame[1].startswith("_Z")})
    full = run("c++filt", input="\n".join(mangled) + "\n").stdout.strip("\n").split("\n")
    expected = dict(zip(mangled, full))
    for name, linkage, _, _ in frames:
        if linkage.startswith("_Z"):
            assert re.sub(r" \[clone [^]]*\]", "", expected[linkage]) == name


@pytest.mark.skipif(not shutil.which("rustc"), reason="no rustc")
@pytest.mark.parametrize("mangling", rest_long(["v0", "legacy"]))
def test_rust_names_are_demangled_and_agree_with_llvm(tmp_path, mangling):
    (tmp_path / "main.rs").write_text(
        r"""
fn square(x: u64) -> u64 { x.wrapping_mul(x) }
fn main() {
    let numbers: Vec<u64> = std::env::args().map(|a| a.len() as u64).collect();
    let total: u64 = numbers.iter().map(|&n| square(n)).sum();
    println!("{total}");
}
"""
    )
    binary = tmp_path / "program"
    done = run(
        "rustc",
        "-g",
        "-O",
        "-C",
        f"symbol-mangling-version={mangling}",
        "main.rs",
        "-o",
        binary,
        cwd=tmp_path,
    )
    if done.returncode:
        pytest.skip("this rustc cannot do that")
    table, _ = symbolize(binary)
    wrong, count = differences(binary, table)
    assert count > 1000 and len(wrong) <= count / 1000
    names = {frame[0] for chain in look_up(table, places(table)) for frame in chain}
    assert "main::main" in {re.sub(r"\[\w+\]", "", name) for name in names}


@pytest.mark.long
@pytest.mark.parametrize("version", sorted(go_table_maker.MAGICS))
def test_every_layout_of_the_go_table_is_read(tmp_path, version):
    binary = tmp_path / "program"
    binary.write_bytes(go_table_maker.elf(go_table_maker.table(version)))
    table, stderr = symbolize(binary)
    assert stderr == ""
    rows = go_table_maker.expected()
    chains = look_up(table, [hex(row[0]) for row in rows])
    assert [[(name, file, int(line)) for name, _, file, line in chain] for chain in chains] == [
        [row[1:]] for row in rows
    ]
    if GO:
        assert compare_with_go(binary, table) > 10


# ---- hostile files ----


def mutate(data, generator, sections):
    """A copy of data with a few changed bytes: anywhere, in the headers, or in one section."""
    data = bytearray(data)
    begin, size = generator.choice([(0, len(data)), (0, 64), (len(data) - 4096, 4096), *sections])
    for _ in range(generator.choice([1, 3, 30, 300])):
        at = min(max(begin + generator.randrange(max(size, 1)), 0), len(data) - 1)
        data[at] = generator.choice([0, 1, 0x7F, 0x80, 0xFF, generator.randrange(256)])
    if generator.random() < 0.1:
        del data[generator.randrange(len(data)) :]
    return data


MUTATIONS = int(os.environ.get("PERFOLIO_MUTATIONS", "2000")) // 5  # for each kind of file
FEW = MUTATIONS // 5


@pytest.mark.long
@pytest.mark.parametrize("kind", ["plain", "zlib", "zstd", "object", "go"])
@pytest.mark.parametrize("first, end", rest_long([(0, FEW), (FEW, MUTATIONS)]), ids=["few", "many"])
def test_a_mutated_file_results_in_a_table_or_an_error(source, kind, first, end):
    if kind == "go":
        binary = source / "program"
        binary.write_bytes(go_table_maker.elf(go_table_maker.table("1.20")))
    elif kind == "object":
        binary = source / "main.o"
        assert run("gcc", "-O2", "-g", "-c", "main.c", "-o", binary, cwd=source).returncode == 0
    else:
        binary = compile_c(source)
        if (
            kind != "plain"
            and run("objcopy", f"--compress-debug-sections={kind}", binary).returncode
        ):
            pytest.skip("this objcopy cannot do that")
    data = binary.read_bytes()
    sections = [
        (int(offset, 16), int(size, 16))
        for offset, size in re.findall(
            r"\](?: \.\S+)? +\w+ +[0-9a-f]{16} ([0-9a-f]+) ([0-9a-f]+)", sections_of(binary)
        )
    ]
    assert len(sections) >= 3
    generator = random.Random(kind)
    for _ in range(first):
        mutate(data, generator, sections)
    outcomes = set()
    for _ in range(first, end):
        binary.write_bytes(mutate(data, generator, sections))
        table = source / "mutated.symbols"
        done = run(SYMBOLIZE, "-q", "-m", "512", "-c", "20", "-o", table, binary, timeout=300)
        outcomes.add(done.returncode)
        kept = source / "kept"
        kept.write_bytes(binary.read_bytes())
        assert done.returncode in (0, 1), done
        assert "the builder" not in done.stderr, (done.stderr, kept)
        if done.returncode == 0:
            assert run(PRINT, table, input="0x1000\n").returncode == 0
        else:
            assert done.stderr and not table.exists()
        table.unlink(missing_ok=True)
    assert 0 in outcomes
