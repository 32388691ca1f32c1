"""perfolio record of Ruby programs.

Stacks contain methods and blocks of the script, with file and line, among the native frames.
"""

import os
import pathlib
import subprocess
import sys

import pytest

from conftest import ROOT, let_it_run
from test_record import REFUSAL, record  # noqa: F401 (a fixture)
from test_record_python import of_script, stacks

sys.path.insert(0, str(ROOT / "tests" / "oracle"))

RUBY = "/usr/bin/ruby"
KNOWN = ("3.1",)
VERSION = (
    subprocess.run(
        [RUBY, "-e", "print RUBY_VERSION[/^\\d+\\.\\d+/]"], capture_output=True, text=True
    ).stdout
    if os.access(RUBY, os.X_OK)
    else None
)

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(REFUSAL is not None, reason=f"the kernel refuses: {REFUSAL}"),
    pytest.mark.skipif(
        VERSION not in KNOWN, reason=f"/usr/bin/ruby is not there, or not of {KNOWN}: {VERSION}"
    ),
]


def record_script(record, tmp_path, text, seconds=3, options=()):  # noqa: F811
    """Records a script after it has run for a while, so that the result depends on the unwinder and
    not on how soon perfolio record detects a new program."""
    (tmp_path / "script.rb").write_text(text)
    process = subprocess.Popen([RUBY, "script.rb"], cwd=tmp_path)
    try:
        let_it_run(process, 0.5)
        done = record(*options, "-p", process.pid, "-d", seconds, "-F", "499")
    finally:
        process.kill()
        process.wait()
    assert done.returncode == 0, done.stderr
    found = stacks(tmp_path / "profile.pb.gz")
    return found, sum(count for _, count in found)


def script_of(frames):
    return of_script(frames, "script.rb")


LOAD = """\
def leaf(n)
  total = 0
  i = 0
  while i < n
    total += i * i
    i += 1
  end
  total
end

def middle(n)
  leaf(n) + 1
end

class Work
  def outer(n)
    middle(n) + 2
  end
end

def main
  while true
    [1, 2].each { |x| Work.new.outer(2000 + x) }
    [3, 5, 2].sort_by { |x| leaf(300 * x) }
  end
end

main
"""


def count_stacks(found, total):
    """Numbers of samples: (those whose stack is the chain of the script or its beginning, those in
    leaf, those with native frames left of a call, all)."""
    by_each = [("<main>", 28), ("main", 23), ("block in main", 23), ("outer", 17), ("middle", 12)]
    by_sort = [("<main>", 28), ("main", 24), ("block in main", 24)]
    whole, of_leaf, left = 0, 0, 0
    for frames, count in found:
        script = script_of(frames)
        # Before the call of leaf and after its return, the stack is a prefix of the chain.
        chain = by_sort if script[1:2] == [("main", 24)] else by_each
        calls = min(len(script), len(chain)) - 1
        is_beginning = script[:2] in ([("<main>", 28), ("main", line)] for line in (22, 23, 24))
        whole += count if is_beginning and script[:calls] == chain[:calls] else 0
        is_leaf = script[:-1] == chain and script[-1] in (("leaf", line) for line in (4, 5, 6))
        of_leaf += count if is_leaf else 0
        # Native frames of a call may remain before it has pushed its frames and after it has
        # removed them.
        left += count if any(frame and frame[0] == "rb_vm_exec" for frame in frames[:-1]) else 0
    return whole, of_leaf, left, total


@pytest.mark.parametrize("options", [(), ("--bounded-loops",)])
def test_methods_of_a_script_replace_the_frames_of_the_interpreter(
    record, tmp_path, options
):  # noqa: F811
    # On a busy host more of the 70 samples are in the callers of leaf: record again.
    for _ in range(3):
        whole, of_leaf, left, total = count_stacks(
            *record_script(record, tmp_path, LOAD, options=options)
        )
        assert total > 10 and whole >= 0.99 * total, (whole, total)
        assert left <= 0.01 * total, (left, total)
        if of_leaf > 0.9 * total:
            break
    assert of_leaf > 0.9 * total, (of_leaf, total)


def test_c_functions_stay_between_the_methods_that_call_them(record, tmp_path):  # noqa: F811
    found, total = record_script(record, tmp_path, LOAD)
    good, of_each = 0, 0
    for frames, count in found:
        names = [frame and frame[0] for frame in frames]
        if "outer" not in names:
            continue
        of_each += count
        block = names.index("block in main")
        between = names[names.index("main") + 1 : block]
        good += count if "rb_ary_each" in between and names[block + 1] == "outer" else 0
    assert of_each > 10 and good >= 0.99 * of_each, (good, of_each, total)


def test_stacks_of_threads_and_fibers_contain_their_own_methods(record, tmp_path):  # noqa: F811
    found, total = record_script(
        record,
        tmp_path,
        """\
def first
  (1..1000).sum { |i| i * i } while true
end

def second
  (1..1000).sum { |i| i + i } while true
end

def third
  generator = Enumerator.new { |out| out << (1..1000).sum { |i| i - 1 } while true }
  generator.next while true
end

Thread.new { first }
Thread.new { second }
third
""",
    )
    seen = {name: 0 for name in ("first", "second", "block in third")}
    for frames, count in found:
        names = [name for name, _ in script_of(frames)]
        own = [name for name in names if name in seen]
        assert len(own) <= 1, frames
        if own:
            seen[own[0]] += count
            assert "<main>" not in names, frames  # threads and fibers have stacks of their own
    assert all(count > 0.2 * total for count in seen.values()), (seen, total)


@pytest.mark.parametrize("depth", [100, 450])
def test_deep_recursion_is_recorded_with_all_frames(record, tmp_path, depth):  # noqa: F811
    found, total = record_script(
        record,
        tmp_path,
        f"""\
def leaf
  i = 0
  i += 1 while i < 1000000
end

def down(n)
  n > 1 ? down(n - 1) : leaf
end

down({depth}) while true
""",
    )
    expected = ["<main>"] + ["down"] * depth + ["leaf"]
    good = sum(
        count for frames, count in found if [name for name, _ in script_of(frames)] == expected
    )
    assert total > 10 and good >= 0.95 * total, (good, total)


def test_a_long_method_has_correct_lines_and_a_name_beyond_ascii(record, tmp_path):  # noqa: F811
    """The method has more words of instructions than the first block of its line index covers."""
    assignments = "\n".join(f"  a = {i} + n" for i in range(400))
    found, total = record_script(
        record,
        tmp_path,
        f"""\
def größe(n)
{assignments}
  i = 0
  while i < 100000
    i += 1
  end
end

größe(1) while true
""",
    )
    lines = {}
    for frames, count in found:
        script = script_of(frames)
        if [name for name, _ in script] == ["<main>", "größe"]:
            lines[script[1][1]] = lines.get(script[1][1], 0) + count
    assert sum(lines.get(line, 0) for line in (403, 404)) >= 0.9 * total, (lines, total)


@pytest.mark.long
def test_forked_children_have_method_names_immediately(record, tmp_path):  # noqa: F811
    found, total = record_script(
        record,
        tmp_path,
        """\
def work
  i = 0
  i += 1 while i < 500000
end

def main
  while true
    Process.wait(fork { work })
  end
end

main
""",
    )
    of_work = 0
    for frames, count in found:
        names = [name for name, _ in script_of(frames)]
        of_work += count if names == ["<main>", "main", "block in main", "work"] else 0
    assert total > 10 and of_work > 0.3 * total, (of_work, total, found[:3])


def test_an_unknown_version_of_ruby_is_reported_as_refused(record, tmp_path):  # noqa: F811
    """The script runs with a copy of Debian's library that contains another version number."""
    maps = subprocess.run(
        [RUBY, "-e", "print File.read('/proc/self/maps')"], capture_output=True, text=True
    ).stdout
    library = next(line.split()[-1] for line in maps.splitlines() if "libruby" in line)
    symbols = subprocess.run(
        ["readelf", "--dyn-syms", "-W", library], capture_output=True, text=True
    ).stdout
    address = int(
        next(line for line in symbols.splitlines() if "ruby_api_version" in line).split()[1], 16
    )
    other = bytearray(pathlib.Path(library).read_bytes())
    # The offset of the symbol in the file equals its address.
    assert int.from_bytes(other[address : address + 4], "little") == 3
    file = tmp_path / ".".join(library.split("/")[-1].split(".")[:-1])
    file.write_bytes(other)
    (tmp_path / "script.rb").write_text("i = 0\ni += 1 while true\n")
    process = subprocess.Popen(
        [RUBY, "script.rb"], cwd=tmp_path, env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    )
    try:
        let_it_run(process, 0.5)
        with file.open("r+b") as stream:  # after the start, because Ruby itself checks the version
            stream.seek(address)
            stream.write(b"\x09")
        done = record("-p", process.pid, "-d", 2, "-F", "99")
    finally:
        process.kill()
        process.wait()
    assert "1 ruby refused: version" in done.stderr, done.stderr
