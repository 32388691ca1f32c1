"""Formats of debug information: each gives the complete symbol table, or a partial one and the
reason."""

import re
import shutil
import struct

import pytest

from symbol_files import (
    build_printer,
    compile_c,
    look_up,
    places,
    refuse,
    run,
    sections_of,
    symbolize,
    write_source,
)

pytestmark = pytest.mark.long

OTHER = r"""
#include "inlined.h"
__attribute__((noinline)) int other(int x) { return leaf(x) * 7; }
"""
THIRD = r"""
extern volatile int sink;
static inline __attribute__((always_inline)) int twice(int x) { sink = x; return x * 2; }
__attribute__((noinline)) int third(int x) { return twice(x) + twice(x + 1); }
"""
UNITS = ["main", "other", "third"]


@pytest.fixture(scope="module", autouse=True)
def printer():
    build_printer()


def write_units(folder):
    write_source(folder)
    (folder / "other.c").write_text(OTHER)
    (folder / "third.c").write_text(THIRD)
    return folder


def tool(*arguments, cwd):
    """Runs a tool; skips the test if the tool of this host cannot create the file."""
    if not shutil.which(str(arguments[0])):
        pytest.skip(f"no {arguments[0]}")
    done = run(*arguments, cwd=cwd)
    if done.returncode:
        pytest.skip(f"this {arguments[0]} cannot do that: {done.stderr.strip()[-100:]}")


def whole(folder, *flags, compiler="gcc", name="whole"):
    """Compiles and links the program of three units in one step."""
    tool(compiler, "-O2", "-g", *flags, *(f"{unit}.c" for unit in UNITS), "-o", name, cwd=folder)
    return folder / name


def split(folder, compiler, version):
    """Compiles the program with .dwo files."""
    flags = ["-O2", "-g", f"-gdwarf-{version}", "-gsplit-dwarf"]
    for unit in UNITS:
        tool(compiler, *flags, "-c", f"{unit}.c", cwd=folder)
    tool(compiler, *(f"{unit}.o" for unit in UNITS), "-o", "split", cwd=folder)
    return folder / "split"


# ---- makers of the files: each returns (file, options) ----


def plain(folder, version="5", compiler="gcc"):
    return whole(folder, f"-gdwarf-{version}", compiler=compiler), []


def debug_only(folder):
    file = whole(folder)
    tool("objcopy", "--only-keep-debug", file, "only.debug", cwd=folder)
    return folder / "only.debug", []


def packed(folder, kind):
    file = whole(folder)
    tool("objcopy", f"--compress-debug-sections={kind}", file, "packed", cwd=folder)
    return folder / "packed", []


def packed_by(folder, method):
    """Compressed sections whose headers name another method."""
    file, _ = packed(folder, "zlib")
    data = bytearray(file.read_bytes())
    for offset in re.findall(r"\.debug_\w+ +PROGBITS +\w+ (\w+) \w+ \w+ +C", sections_of(file)):
        struct.pack_into("<I", data, int(offset, 16), method)
    file.write_bytes(data)
    return file, []


def with_dwo(folder, compiler, version):
    file = split(folder, compiler, version)
    return file, [word for unit in UNITS for word in ("--dwo", folder / f"{unit}.dwo")]


def without_dwo(folder, compiler, version):
    return split(folder, compiler, version), []


def with_dwp(folder, packer, compiler, version):
    file = split(folder, compiler, version)
    names = [f"{unit}.dwo" for unit in reversed(UNITS)]
    if packer == "dwp" and version == 5:
        pytest.skip("the dwp of binutils 2.40 writes no index of version 5")
    tool(packer, *names, "-o", "split.dwp", cwd=folder)
    return file, ["--dwo", folder / "split.dwp"]


def broken_dwp(folder, compiler):
    file, options = with_dwp(folder, "llvm-dwp", compiler, 5)
    package = options[1]
    data = bytearray(package.read_bytes())
    offset = re.search(r"\.debug_cu_index +PROGBITS +\w+ (\w+)", sections_of(package))[1]
    struct.pack_into("<H", data, int(offset, 16), 77)
    package.write_bytes(data)
    return file, options


def with_dwz(folder, is_given):
    file = whole(folder, "-gdwarf-4")
    for name in ("two", "three"):
        shutil.copy(file, folder / name)
    tool("dwz", "-m", "shared.debug", "two", "three", cwd=folder)
    if ".gnu_debugaltlink" not in sections_of(folder / "two"):
        pytest.skip("dwz found nothing to share")
    return folder / "two", ["--alternate", folder / "shared.debug"] if is_given else []


def stripped_of_dwz(folder, has_exports):
    """A file without DWARF that still has the name of its shared file."""
    (folder / "link").write_bytes(b"shared.debug\0" + bytes(range(20)))
    file = only_exports(folder)[0] if has_exports else nothing(folder)[0]
    tool("objcopy", "--add-section=.gnu_debugaltlink=link", file, "named", cwd=folder)
    return folder / "named", []


def only_lines(folder):
    file = whole(folder)
    remove = [
        f"--remove-section=.debug_{name}"
        for name in ("info", "abbrev", "aranges", "str", "rnglists", "loclists")
    ]
    tool("objcopy", *remove, file, "lines", cwd=folder)
    return folder / "lines", []


def only_symbols(folder):
    file = whole(folder)
    tool("strip", "--strip-debug", file, "-o", "symbols", cwd=folder)
    return folder / "symbols", []


def only_exports(folder):
    file = whole(folder, "-shared", "-fPIC")
    tool("strip", file, "-o", "exports", cwd=folder)
    return folder / "exports", []


def nothing(folder):
    file = whole(folder)
    tool("strip", file, "-o", "nothing", cwd=folder)
    return folder / "nothing", []


def mini(folder, is_damaged=False):
    file = whole(folder)
    tool("objcopy", "-S", "--keep-symbol=outlined", "--keep-symbol=third", file, "mini", cwd=folder)
    tool("xz", "-f", "mini", cwd=folder)
    if is_damaged:
        data = (folder / "mini.xz").read_bytes()
        (folder / "mini.xz").write_bytes(data[:100] + bytes(50) + data[150:])
    stripped, _ = only_exports(folder) if is_damaged else nothing(folder)
    tool("objcopy", "--add-section=.gnu_debugdata=mini.xz", stripped, "with-mini", cwd=folder)
    return folder / "with-mini", []


def unit_object(folder, target):
    tool(
        "clang",
        f"--target={target}",
        "-ffreestanding",
        "-O2",
        "-g",
        "-c",
        "main.c",
        "-o",
        "object.o",
        cwd=folder,
    )
    return folder / "object.o", []


def damaged(folder, is_named=True):
    """A file whose unit and line table have version 99."""
    file = compile_c(folder)
    if not is_named:
        keep = [
            f"--keep-section=.debug_{name}"
            for name in ("info", "line", "abbrev", "str", "line_str")
        ]
        tool("objcopy", "-S", *keep, file, cwd=folder)
    data = bytearray(file.read_bytes())
    for name in ("info", "line"):
        offset = int(re.search(rf"\.debug_{name} +PROGBITS +\w+ (\w+)", sections_of(file))[1], 16)
        struct.pack_into("<H", data, offset + 4, 99)
    file.write_bytes(data)
    return file, []


def cut(folder):
    file = whole(folder)
    data = file.read_bytes()
    (folder / "cut").write_bytes(data[: len(data) // 2])
    return folder / "cut", []


def other_byte_order(folder):
    tool(
        "clang",
        "--target=powerpc64-linux-gnu",
        "-ffreestanding",
        "-g",
        "-c",
        "main.c",
        "-o",
        "big.o",
        cwd=folder,
    )
    return folder / "big.o", []


def no_elf(folder):
    (folder / "text").write_text("#!/bin/sh\n" * 100)
    return folder / "text", []


# ---- expected results ----


class Whole:
    """The table must equal that of the plain program at each of its addresses."""

    def check(self, made, folder):
        table, warning = symbolize(made[0], *made[1])
        assert warning == ""
        expected, _ = symbolize(folder / "whole")
        addresses = places(expected)
        assert len(addresses) > 60
        assert look_up(table, addresses) == look_up(expected, addresses)


class Partly:
    """The table must have these functions and this depth of inlined calls, with this warning."""

    def __init__(self, names, depth, reason=""):
        self.names, self.depth, self.reason = set(names), depth, reason

    def check(self, made, folder):
        table, warning = symbolize(made[0], *made[1])
        assert self.reason in warning and bool(warning) == bool(self.reason), warning
        chains = [chain for chain in look_up(table, places(table)) if chain]
        assert self.names <= {frame[0] for chain in chains for frame in chain}
        assert max(map(len, chains)) == self.depth


class Refused:
    def __init__(self, reason):
        self.reason = reason

    def check(self, made, folder):
        assert self.reason in refuse(made[0], *made[1])


FUNCTIONS = ["main", "entry", "outlined", "other", "third"]
EXPORTS = ["main", "entry", "other", "third"]
NO_DWO = "3 units are in split files that were not given, such as "
MATRIX = {
    **{
        f"DWARF {version}, {compiler}": (
            plain,
            [version, compiler],
            Partly([*FUNCTIONS, "leaf", "twice"], 3),
        )
        for version in "2345"
        for compiler in ("gcc", "clang")
    },
    "separate debug file": (debug_only, [], Whole()),
    "zlib": (packed, ["zlib"], Whole()),
    "zlib, old style": (packed, ["zlib-gnu"], Whole()),
    "zstd": (packed, ["zstd"], Whole()),
    "unknown compression": (
        packed_by,
        [9],
        Partly(FUNCTIONS, 1, "is compressed by method 9, which is unknown"),
    ),
    "damaged compression": (
        packed_by,
        [2],
        Partly(FUNCTIONS, 1, "claims more than its bytes can hold"),
    ),
    **{
        f".dwo, DWARF {version}, {compiler}": (
            with_dwo,
            [compiler, version],
            Partly([*FUNCTIONS, "leaf", "twice"], 3),
        )
        for version in (4, 5)
        for compiler in ("gcc", "clang")
    },
    **{
        f".dwo missing, DWARF {version}": (
            without_dwo,
            ["gcc", version],
            Partly(FUNCTIONS, 1, NO_DWO),
        )
        for version in (4, 5)
    },
    **{
        f".dwp of {packer}, DWARF {version}, {compiler}": (
            with_dwp,
            [packer, compiler, version],
            Partly([*FUNCTIONS, "leaf", "twice"], 3),
        )
        for packer in ("dwp", "llvm-dwp")
        for version in (4, 5)
        for compiler in ("gcc", "clang")
    },
    ".dwp with a damaged index": (
        broken_dwp,
        ["clang"],
        Partly(FUNCTIONS, 1, "the index of a package of split files (.debug_cu_index) is damaged"),
    ),
    "dwz": (with_dwz, [True], Whole()),
    "dwz, shared file missing": (
        with_dwz,
        [False],
        Partly(["main"], 1, "names are in a shared file of dwz that was not given"),
    ),
    "dwz, .dynsym alone": (stripped_of_dwz, [True], Partly(EXPORTS, 1)),
    "dwz, stripped": (
        stripped_of_dwz,
        [False],
        Refused("the file names no function: it is stripped"),
    ),
    "lines alone": (only_lines, [], Partly(FUNCTIONS, 1)),
    ".symtab": (only_symbols, [], Partly(FUNCTIONS, 1)),
    ".dynsym": (only_exports, [], Partly(EXPORTS, 1)),
    "stripped": (nothing, [], Refused("the file names no function: it is stripped")),
    "mini-debuginfo": (mini, [], Partly(["outlined", "third"], 1)),
    **{
        f"object of {target}": (
            unit_object,
            [f"{target}-linux-gnu"],
            Partly(["entry", "outlined", "leaf", "middle"], 3),
        )
        for target in ("x86_64", "i386", "aarch64", "arm", "riscv64")
    },
    "object of another machine": (
        unit_object,
        ["mips64el-linux-gnu"],
        Partly(["entry", "outlined"], 1, "are not known"),
    ),
    "DWARF of an unknown version": (
        damaged,
        [],
        Partly(["main", "entry", "outlined"], 1, "it has DWARF, but nothing could be read of it"),
    ),
    "nothing but such DWARF": (
        damaged,
        [False],
        Refused("it has DWARF, but nothing could be read of it"),
    ),
    "damaged mini-debuginfo": (mini, [True], Partly(EXPORTS, 1, "of .gnu_debugdata are damaged")),
    "cut short": (cut, [], Refused("outside of the file")),
    "big-endian": (other_byte_order, [], Refused("big-endian ELF files are not supported")),
    "no ELF file": (no_elf, [], Refused("no ELF file")),
}


@pytest.mark.long
@pytest.mark.parametrize("name", MATRIX)
def test_each_format_gives_its_table_or_the_reason(tmp_path, name):
    make, arguments, outcome = MATRIX[name]
    made = make(write_units(tmp_path), *arguments)
    if isinstance(outcome, Whole) and not (tmp_path / "whole").exists():
        whole(tmp_path)
    outcome.check(made, tmp_path)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("version", [4, 5])
def test_split_files_and_packages_give_the_table_of_one_file(tmp_path, compiler, version):
    """The linker places the units in the same order in both cases, so the addresses are equal."""
    write_units(tmp_path)
    expected, _ = symbolize(whole(tmp_path, f"-gdwarf-{version}", compiler=compiler))
    addresses = places(expected)
    file, options = with_dwo(tmp_path, compiler, version)
    split_table, _ = symbolize(file, *options)
    assert look_up(split_table, addresses) == look_up(expected, addresses)
    file, options = with_dwp(tmp_path, "llvm-dwp", compiler, version)
    packed_table, warning = symbolize(file, *options)
    assert warning == "" and look_up(packed_table, addresses) == look_up(expected, addresses)
