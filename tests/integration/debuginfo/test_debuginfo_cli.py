"""perfolio debuginfo: symbol tables on the command line, without a server."""

import os
import re
import shutil
import subprocess

import pytest

from conftest import PERFOLIO

SOURCE = r"""
#include <stddef.h>
volatile int sink;
extern "C" inline __attribute__((always_inline)) long leaf(long x)
{
    sink = (int)x;
    return x * 3 + sink;
}
namespace deep {
__attribute__((noinline)) long entry(long x, const char *text)
{
    long y = leaf(x);
    if (text != NULL)
        y += leaf(y + 1);
    return y;
}
}
int main(int argc, char **argv) { return (int)deep::entry(argc, argv[0]) & 1; }
"""


def run(*arguments, **options):
    return subprocess.run(
        [str(argument) for argument in arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **options,
    )


@pytest.fixture
def perfolio(tmp_path):
    def call(*arguments, **options):
        return run(
            PERFOLIO,
            "debuginfo",
            *arguments,
            cwd=tmp_path,
            env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
            **options,
        )

    return call


@pytest.fixture
def program(tmp_path):
    (tmp_path / "main.cc").write_text(SOURCE)
    path = tmp_path / "program"
    done = run("g++", "-O2", "-g", "-Wl,--build-id", tmp_path / "main.cc", "-o", path)
    assert done.returncode == 0, done.stderr
    return path


def code_of(program, name):
    """All addresses of a function, from its symbol in the output of readelf."""
    symbols = run("readelf", "-sW", program).stdout
    found = re.search(rf"^ +\d+: ([0-9a-f]+) +(\d+) FUNC .* {name}$", symbols, re.M)
    begin = int(found.group(1), 16)
    return range(begin, begin + int(found.group(2)))


def without_inner_names(text):
    """Removes names of inlined frames, because binutils may print the symbol's name for the
    innermost frame instead of its own."""
    return re.sub(r"^(0x\w+): .*( at .*\n \(inlined by\))", r"\1:\2", text, flags=re.M)


@pytest.mark.long
def test_a_table_returns_the_frames_of_addr2line_for_every_address(perfolio, program, tmp_path):
    built = perfolio("build", program, "-o", "program.symbols")
    assert built.returncode == 0, built.stderr
    assert (tmp_path / "program.symbols").stat().st_size < program.stat().st_size
    addresses = "".join(
        f"{address:#x}\n"
        for name in ("main", "_ZN4deep5entryElPKc")
        for address in code_of(program, name)
    )
    reference = run("addr2line", "-Cafip", "-e", program, input=addresses)
    expected = re.sub(r" \(discriminator \d+\)", "", reference.stdout)
    expected = re.sub(r"^0x0*", "0x", expected, flags=re.M)
    for file in ("program.symbols", program):
        shown = perfolio("show", file, "-", input=addresses)
        assert shown.returncode == 0, shown.stderr
        assert without_inner_names(shown.stdout) == without_inner_names(expected)
        assert re.search(r": leaf at .*main.cc:\d+\n \(inlined by\) deep::entry", shown.stdout)


def test_show_prints_names_in_each_mode(perfolio, program):
    address = hex(code_of(program, "_ZN4deep5entryElPKc")[0])
    for mode, name in (
        ("full", "deep::entry(long, char const*)"),
        ("simple", "deep::entry"),
        ("none", "_ZN4deep5entryElPKc"),
    ):
        shown = perfolio("show", "--names", mode, program, address[2:])
        assert (
            shown.stdout.splitlines()[-1]
            .partition(" at ")[0]
            .removeprefix(f"{address}: ")
            .removeprefix(" (inlined by) ")
            == name
        )
    assert perfolio("show", program, "0xffffffff").stdout == "0xffffffff: ?? at ??:0\n"


def test_check_prints_the_debug_information_of_a_file(perfolio, program, tmp_path):
    build_id = re.search(r"Build ID: (\w+)", run("readelf", "-nW", program).stdout).group(1)
    shown = perfolio("check", program)
    assert shown.returncode == 0, shown.stderr
    assert build_id in shown.stdout and "DWARF, lines, inlined calls" in shown.stdout
    assert run("strip", "-g", program).returncode == 0
    shown = perfolio("check", program)
    assert ".symtab" in shown.stdout and "DWARF" not in shown.stdout
    (tmp_path / "text").write_text("no program")
    several = perfolio("check", program, tmp_path / "text", "absent")
    assert several.returncode == 7 and build_id in several.stdout
    assert "text: " in several.stderr and "absent: " in several.stderr


def test_check_prints_the_go_id_in_the_form_of_servers(perfolio, tmp_path):
    text = "-WEx-Hg8/abc_DEF"
    (tmp_path / "note.s").write_text(
        f'.section .note.go.buildid, "a", @note\n.long 4, {len(text)}, 4\n.asciz "Go", ""\n.ascii '
        f'"{text}"\n.balign 4\n'
    )
    (tmp_path / "main.c").write_text("int main(void) { return 0; }\n")
    done = run(
        "gcc",
        "-g",
        "-Wl,--build-id=none",
        tmp_path / "main.c",
        tmp_path / "note.s",
        "-o",
        tmp_path / "program",
    )
    assert done.returncode == 0, done.stderr
    shown = perfolio("check", tmp_path / "program")
    assert f"  id         {text.encode().hex()}\n  Go's id    {text}\n" in shown.stdout, shown


def test_a_broken_unit_is_reported_once(perfolio, program, tmp_path):
    (tmp_path / "other.c").write_text("int other(int x) { return x * 7; }\n")
    done = run(
        "g++",
        "-O2",
        "-g",
        "-Wl,--build-id",
        tmp_path / "main.cc",
        tmp_path / "other.c",
        "-o",
        program,
    )
    assert done.returncode == 0, done.stderr
    data = bytearray(program.read_bytes())
    offset = int(
        re.search(r"\.debug_info +PROGBITS +\w+ (\w+)", run("readelf", "-SW", program).stdout)[1],
        16,
    )
    data[offset + 8 : offset + 12] = b"\xff\xff\xff\x7f"  # the first unit's offset of abbreviations
    program.write_bytes(data)
    shown = perfolio("check", program)
    assert shown.returncode == 0 and "incomplete" in shown.stdout
    assert re.findall(r"\w+ (?:of \w+ )?units.*", shown.stderr) == [
        "1 of 2 units of its DWARF is broken"
    ]


def test_a_damaged_table_is_detected(perfolio, program, tmp_path):
    table = tmp_path / "program.symbols"
    assert perfolio("build", program, "-o", table).returncode == 0
    assert perfolio("check", "-q", table).stdout == ""
    again = perfolio("build", program, "-o", table)
    assert again.returncode == 1 and "--force" in again.stderr
    assert perfolio("build", "-f", program, "-o", table).returncode == 0
    content = bytearray(table.read_bytes())
    content[len(content) // 2] ^= 1
    table.write_bytes(content)
    shown = perfolio("check", table)
    assert shown.returncode == 1 and "damaged symbol table" in shown.stderr


@pytest.mark.parametrize(
    "arguments, status, words",
    [
        ([], 2, "give an action"),
        (["look", "x"], 2, "give an action"),
        (["check"], 2, "give a file"),
        (["build", "x"], 2, "-o"),
        (["build", "x", "y", "-o", "z"], 2, "one file"),
        (["show", "x"], 2, "addresses"),
        (["show", "--names", "all", "x", "1"], 2, "full, simple or none"),
        (["build", "absent", "-o", "z"], 5, "absent"),
    ],
)
def test_invalid_arguments_are_reported(perfolio, tmp_path, arguments, status, words):
    shown = perfolio(*arguments)
    assert shown.returncode == status and words in shown.stderr
    assert not (tmp_path / "z").exists()


FOLDER, NO_FILE = "is a directory: give the files in it", "is not a regular file"


@pytest.mark.parametrize(
    "verb, kind, words",
    [  # check accepts pipes and devices, because they may hold profiles
        ("check", "folder", FOLDER),
        ("build", "folder", FOLDER),
        ("show", "folder", FOLDER),
        ("build", "pipe", NO_FILE),
        ("show", "pipe", NO_FILE),
        ("build", "device", NO_FILE),
        ("show", "device", NO_FILE),
    ],
)
def test_special_files_are_refused_without_waiting(perfolio, tmp_path, verb, kind, words):
    path = tmp_path / "thing"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path = "/dev/zero"
    done = perfolio(verb, path, *{"build": ["-o", "table"], "show": ["0x10"]}.get(verb, []))
    assert done.returncode == 7 and words in done.stderr, done.stderr


def test_an_invalid_address_is_reported(perfolio, program):
    shown = perfolio("show", program, "main")
    assert shown.returncode == 2 and '"main" is not a hexadecimal address' in shown.stderr


@pytest.mark.skipif(not shutil.which("dwz"), reason="no dwz")
def test_the_shared_file_of_dwz_is_found_at_its_recorded_path(perfolio, tmp_path):
    folder = tmp_path / "debug"
    folder.mkdir()
    for name in ("one", "two"):
        (tmp_path / "main.cc").write_text(SOURCE)
        done = run(
            "g++",
            "-O2",
            "-g",
            "-gdwarf-4",
            f"-Wl,--build-id=0x{name.encode().hex()}",
            tmp_path / "main.cc",
            "-o",
            folder / name,
        )
        assert done.returncode == 0, done.stderr
    whole = perfolio(
        "show", folder / "one", hex(code_of(folder / "one", "_ZN4deep5entryElPKc")[0])
    ).stdout
    done = run("dwz", "-m", "shared.debug", "one", "two", cwd=folder)
    assert done.returncode == 0 and (folder / "shared.debug").exists(), done.stderr
    (tmp_path / "link").symlink_to(folder / "one")

    def show(*options):
        shown = perfolio(
            "show",
            tmp_path / "link",
            hex(code_of(folder / "one", "_ZN4deep5entryElPKc")[0]),
            *options,
        )
        assert shown.returncode == 0, shown.stderr
        return shown.stdout, shown.stderr

    assert "deep::entry" in whole and "leaf" in whole
    assert show() == (whole, "")
    # A different file must be rejected: its offsets would resolve to wrong names.
    names, warning = show("--alternate-file", folder / "two")
    assert names != whole and "is not that of .gnu_debugaltlink" in warning
    (folder / "shared.debug").rename(folder / "moved.debug")
    names, warning = show()
    assert names != whole and "shared file of dwz that was not given" in warning
    assert show("--alternate-file", folder / "moved.debug") == (whole, "")
