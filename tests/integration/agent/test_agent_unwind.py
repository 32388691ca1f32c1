"""The agent's unwind tables and its unwinder.

The rows of the tables equal those of elfutils for the same addresses, for a few dozen files of this
host. `make test-unwind` compares all files, `make test-unwind-arm64` those of arm64.
"""

import os
import pathlib
import subprocess

import pytest

pytestmark = pytest.mark.long

ROOT = pathlib.Path(__file__).resolve().parents[3]
FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/usr/bin", "/usr/lib/aarch64-linux-gnu")
MAX_BYTES = 4 << 20
FILE_COUNT = 48


BUILD = os.environ.get("BUILD", "release")


def build(name):
    """tests/NAME, a program of the tests."""
    program = ROOT / "build" / BUILD / "tests" / name
    subprocess.run(
        ["make", "-s", f"BUILD={BUILD}", str(program.relative_to(ROOT))],
        cwd=ROOT,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return program


@pytest.fixture(scope="module")
def unwind_rows():
    return build("programs/unwind_rows")


def some_files():
    """Libraries with unusual unwind information, and every nth of the other files."""
    special = [
        pathlib.Path(folder) / name
        for folder in FOLDERS
        for name in ("libc.so.6", "libcrypto.so.3", "libgcrypt.so.20", "python3.11")
    ]
    others = sorted(
        path
        for folder in FOLDERS
        for path in pathlib.Path(folder).glob("*")
        if path.is_file()
        and path.stat().st_size < MAX_BYTES
        and path.open("rb").read(4) == b"\x7fELF"
    )
    step = max(1, len(others) // FILE_COUNT)
    return [path for path in special if path.exists()] + others[::step]


def test_unwind_rows_equal_those_of_elfutils(unwind_rows):
    files = some_files()
    assert len(files) > 20
    run = subprocess.run([unwind_rows, *files], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-3000:]
    totals = run.stdout.splitlines()[-1]
    assert " 0 files differ" in totals
    assert int(totals.split(" functions")[0].split()[-1]) > 10000, totals


# ---- recorded stacks, unwound by the agent's unwinder and by libdwfl ----

SAMPLES = 100
SKIPPED = 77
PROGRAMS = ROOT / "tests" / "agent"


@pytest.fixture(scope="module")
def replay():
    return build("programs/unwind_replay")


@pytest.fixture(scope="module")
def truth(tmp_path_factory):
    """Programs with known stacks, compiled without frame pointers."""
    folder = tmp_path_factory.mktemp("truth")
    for compiler, source in (("gcc", "truth.c"), ("g++", "throwing.cc")):
        subprocess.run(
            [
                compiler,
                "-O2",
                "-g",
                "-fomit-frame-pointer",
                PROGRAMS / source,
                "-pthread",
                "-o",
                folder / pathlib.Path(source).stem,
            ],
            check=True,
        )
    return folder


def unwind_recorded(replay, expected, command, samples=SAMPLES):
    run = subprocess.run([replay, str(samples), expected, *command], capture_output=True, text=True)
    if run.returncode == SKIPPED:
        pytest.skip(run.stderr.strip())
    assert run.returncode == 0, run.stderr
    numbers = {
        name: int(number)
        for name, number in (word.split("=") for word in run.stdout.splitlines()[-1].split())
    }
    assert numbers["samples"] == samples, run.stdout
    return numbers, run.stdout


@pytest.mark.parametrize(
    "arguments, expected",
    [
        ("deep 5", "spin,descend,main,_start"),
        ("deep 25", "spin,descend,main,_start"),
        ("deep 95", "spin,descend,main,_start"),
        ("deep 500", "spin,descend,main,_start"),
        ("aligned", "on_alloca,on_aligned,main,_start"),
        ("large", "on_large_frame,main,_start"),
        ("signal", "spin,on_signal,__restore_rt,interrupted,main,_start"),
        ("vfork", "on_vfork,main,_start"),
        ("library", "on_library,main,_start"),
        ("callback", "compare,on_callback,main,_start"),
        ("thread", "spin,descend,on_thread"),
    ],
)
def test_recorded_stacks_reach_the_root_and_agree_with_libdwfl(replay, truth, arguments, expected):
    numbers, output = unwind_recorded(replay, expected, [truth / "truth", *arguments.split()])
    assert numbers["agree"] >= 0.99 * SAMPLES, output
    assert numbers["complete"] >= 0.99 * SAMPLES, output
    # Some samples are taken between two calls of the expected function.
    assert numbers["expected"] >= 0.9 * SAMPLES, output


def test_stacks_of_exceptions_reach_the_root(replay, truth):
    samples = 4000
    numbers, output = unwind_recorded(
        replay, "_Z7catcherv,main,_start", [truth / "throwing"], samples
    )
    # While libgcc replaces its return address by that of another frame, no table describes the
    # stack. libdwfl is also wrong where libgcc jumps to the handler, which does not follow a call.
    # How many samples these are depends on the processor, so libdwfl is the measure.
    assert numbers["agree"] >= 0.97 * samples, output
    assert numbers["complete"] >= 0.99 * numbers["dwfl_complete"], output
    assert numbers["dwfl_complete"] >= 0.98 * samples, output
    assert numbers["expected"] >= 0.96 * samples, output
