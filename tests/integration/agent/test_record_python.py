"""perfolio record of Python programs: functions of the script, with file and line, between native
frames."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from conftest import PERFOLIO, ROOT, let_it_run, rest_long
from test_record import REFUSAL, record  # noqa: F401 (a fixture)

sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import pprof_reader  # noqa: E402

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(REFUSAL is not None, reason=f"the kernel refuses: {REFUSAL}"),
]


def version_of(path):
    done = subprocess.run(
        [path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


def interpreters():
    """Returns {version: path}: the system's Python and other versions from pyenv and PATH."""
    found = {version_of("/usr/bin/python3"): "/usr/bin/python3"}
    installed = sorted(pathlib.Path.home().glob(".pyenv/versions/*/bin/python3"))
    for path in [
        *map(str, installed),
        *filter(None, (shutil.which(f"python3.{minor}") for minor in range(8, 15))),
    ]:
        found.setdefault(version_of(path), path)
    return {version: path for version, path in found.items() if version.startswith("3.")}


ALL = interpreters()
KNOWN = sorted(
    (version for version in ALL if 8 <= int(version[2:]) <= 14),
    key=lambda version: int(version[2:]),
)


def stacks(file):
    """Returns [(frames from the root, samples)]; a frame is (function, file name, line), or None
    if it has no name."""
    profile = pprof_reader.load(file)

    def frames(location_id):
        location = profile.locations[location_id]
        for line in reversed(location["line"]):
            function = profile.functions[line["function_id"]]
            yield function["name"], os.path.basename(function.get("filename") or ""), line.get(
                "line"
            )
        if not location["line"]:
            yield None

    return [
        (
            [frame for location_id in reversed(sample.stack) for frame in frames(location_id)],
            sample.values[0],
        )
        for sample in profile.samples
    ]


def of_script(frames, script="script.py"):
    return [(frame[0], frame[2]) for frame in frames if frame and frame[1] == script]


def has_call_left(frames):
    """Returns whether a frame of the interpreter loop is left above frames of the script. As the
    leaf it is allowed: it may be about to begin a Python frame."""
    calls = [
        i
        for i, frame in enumerate(frames)
        if frame and frame[0].startswith("_PyEval_EvalFrameDefault")
    ]
    return bool(calls) and bool(of_script(frames[calls[0] :]))


def record_script(
    record, tmp_path, text, python="/usr/bin/python3", seconds=3, options=()  # noqa: F811
):
    """Attaches to a running program: the tests check unwinding, not how soon a new program is
    found."""
    (tmp_path / "script.py").write_text(text)
    process = subprocess.Popen([python, "script.py"], cwd=tmp_path)
    try:
        let_it_run(process, 0.5)
        done = record(*options, "-p", process.pid, "-d", seconds, "-F", "499")
    finally:
        process.kill()
        process.wait()
    assert done.returncode == 0, done.stderr
    return stacks(tmp_path / "profile.pb.gz"), done.stderr


LOAD = """\
def leaf(n):
    total = 0
    for i in range(n):
        total += i * i
    return total

def middle(n):
    return leaf(n) + 1

class Work:
    def outer(self, n):
        return middle(n) + 2

def generate(n):
    for _ in range(n):
        yield Work().outer(2000)

def key(x):
    return leaf(x)

def main():
    while True:
        sum(generate(10))
        sorted([300, 200, 500], key=key)

main()
"""


# make test runs the newest and the oldest version, which differ most.
@pytest.mark.parametrize("version", rest_long([*KNOWN[-1:], *KNOWN[:-1]], 2))
def test_frames_of_a_script_replace_those_of_the_interpreter(
    record, tmp_path, version
):  # noqa: F811
    found, _ = record_script(record, tmp_path, LOAD, ALL[version])
    total = sum(count for _, count in found)
    outer = "Work.outer" if int(version[2:]) >= 11 else "outer"
    by_generator = [("<module>", 26), ("main", 23), ("generate", 16), (outer, 12), ("middle", 8)]
    by_key = [("<module>", 26), ("main", 24), ("key", 19)]
    whole, of_generator = 0, 0
    for frames, count in found:
        script = of_script(frames)
        # A sample taken before the call of the leaf or after its return has a prefix of the chain.
        is_prefix = script[:2] in ([("<module>", 26), ("main", line)] for line in (22, 23, 24))
        chain = by_key if script[1:2] == [("main", 24)] else by_generator
        calls = min(len(script), len(chain)) - 1
        whole += count if is_prefix and script[:calls] == chain[:calls] else 0
        of_generator += (
            count
            if script[:5] == by_generator and script[5:] in ([("leaf", 3)], [("leaf", 4)])
            else 0
        )
        assert not has_call_left(frames), "\n".join(map(str, frames))
    assert total > 10 and whole >= 0.99 * total, (whole, total)
    assert of_generator > 0.8 * total, (of_generator, total)


@pytest.mark.parametrize("options", rest_long([[], ["--bounded-loops"]]))
def test_c_functions_between_script_functions_are_kept(record, tmp_path, options):  # noqa: F811
    found, _ = record_script(
        record,
        tmp_path,
        options=options,
        text="""\
import functools

def add(a, b):
    total = a
    for i in range(2000):
        total += b
    return total

def main():
    while True:
        functools.reduce(add, [1, 2, 3, 4])

main()
""",
    )
    total = sum(count for _, count in found)
    good = 0
    for frames, count in found:
        places = [i for i, frame in enumerate(frames) if frame and frame[1] == "script.py"]
        names = [frames[i][0] for i in places]
        # C frames follow the frame of main; the last one is _PyFunction_Vectorcall or similar.
        if names == ["<module>", "main", "add"]:
            good += count if places[1] == places[0] + 1 and places[2] > places[1] + 1 else 0
    assert good > 0.9 * total, (good, total)


def test_each_thread_has_its_own_functions(record, tmp_path):  # noqa: F811
    found, _ = record_script(
        record,
        tmp_path,
        """\
import threading

def first():
    while True:
        sum(i for i in range(1000))

def second():
    while True:
        sum(i for i in range(1000))

def third():
    while True:
        max(i for i in range(1000))

threading.Thread(target=first).start()
threading.Thread(target=second).start()
third()
""",
    )
    total = sum(count for _, count in found)
    seen = {name: 0 for name in ("first", "second", "third")}
    lost = 0
    for frames, count in found:
        names = [name for name, _ in of_script(frames)]
        of_thread = [name for name in names if name in seen]
        assert len(of_thread) <= 1, frames
        if not of_thread:
            lost += count
            continue
        seen[of_thread[0]] += count
        beginning = [frame[0] for frame in frames if frame and frame[1] == "threading.py"]
        assert bool(beginning) == (of_thread != ["third"]), frames
        assert ("<module>" in names) == (of_thread == ["third"]), frames
    # A thread that waits for the interpreter lock has its functions, too.
    assert total > 10 and lost <= 0.01 * total, (lost, total)
    assert all(count > 0.1 * total for count in seen.values()), seen


@pytest.mark.parametrize("depth", rest_long([900, 100, 450]))
def test_deep_recursion_has_all_its_frames(record, tmp_path, depth):  # noqa: F811
    # The leaf runs much longer than the recursion, in which a sample has only some of the frames.
    found, _ = record_script(
        record,
        tmp_path,
        f"""\
def leaf():
    total = 0
    for i in range(1000000):
        total += i
    return total

def down(n):
    return down(n - 1) if n > 1 else leaf()

while True:
    down({depth})
""",
    )
    total = sum(count for _, count in found)
    expected = ["<module>"] + ["down"] * depth + ["leaf"]
    good = sum(
        count for frames, count in found if [name for name, _ in of_script(frames)] == expected
    )
    assert total > 10 and good >= 0.95 * total, (good, total)


def test_children_and_non_ascii_names_are_recorded(record, tmp_path):  # noqa: F811
    found, _ = record_script(
        record,
        tmp_path,
        """\
import os

def größe(n):
    return sum(i for i in range(n))

def 日本(n):
    return größe(n)

if os.fork() == 0:
    while os.getppid() > 1:
        日本(1000)
    os._exit(0)
while True:
    größe(1000)
""",
    )
    total = sum(count for _, count in found)
    names = [[name for name, _ in of_script(frames)][:3] for frames, _ in found]
    assert ["<module>", "日本", "größe"] in names and [
        "<module>",
        "größe",
        "größe.<locals>.<genexpr>",
    ] in names
    assert total > 10


def test_a_shared_recording_of_a_script_has_its_files(record, tmp_path, server):  # noqa: F811
    (tmp_path / "script.py").write_text(
        """\
def work(n):
    total = 0
    for i in range(n):
        total += i * i
    return total

for _ in range(300):
    work(20000)
"""
    )
    environment = {
        "PERFOLIO_URL": server.url,
        "PERFOLIO_TOKEN": server.token,
        "PERFOLIO_CA_FILE": str(server.ca_file),
    }
    done = record(
        "--share", "-F", "499", "--", "/usr/bin/python3", "script.py", environment=environment
    )
    assert done.returncode == 0, done.stderr
    link = done.stdout.strip()
    assert re.fullmatch(re.escape(server.url) + r"/p/[0-9A-Za-z]{22}", link)
    rows = {
        row["name"]: row
        for row in server.api(server.token)
        .get(f"/api/v1/shares/{link[-22:]}/top")
        .json()["functions"]
    }
    assert rows["work"]["file"].endswith("script.py")
    assert rows["work"]["cum"] > 0.8 * max(row["cum"] for row in rows.values())


@pytest.mark.skipif("3.7" not in ALL and "3.6" not in ALL, reason="there is no Python before 3.8")
def test_an_unsupported_python_version_is_reported(record, tmp_path):  # noqa: F811
    found, log = record_script(record, tmp_path, LOAD, ALL.get("3.7") or ALL["3.6"])
    assert "1 cpython refused: version" in log, log
    assert not any(of_script(frames) for frames, _ in found)


@pytest.mark.long
def test_short_lived_children_have_script_functions_from_their_start(
    record, tmp_path
):  # noqa: F811
    found, _ = record_script(
        record,
        tmp_path,
        """\
import os

def work():
    return sum(i * i for i in range(60000))

def main():
    while True:
        if os.fork() == 0:
            work()
            os._exit(0)
        os.wait()

main()
""",
    )
    total, of_work = 0, 0
    for frames, count in found:
        names = [name for name, _ in of_script(frames)]
        of_c = any(frame and frame[0].startswith("_PyEval_EvalFrameDefault") for frame in frames)
        total += count if names or of_c else 0
        of_work += count if names[:3] == ["<module>", "main", "work"] else 0
        assert not has_call_left(frames), "\n".join(map(str, frames))
    assert total > 10 and of_work > 0.3 * total, (of_work, total)
