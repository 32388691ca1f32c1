#!/usr/bin/env python3
"""Runs one test: make one-test T=...

  T=tests/integration/FOLDER/test_x.py[::test_y]
  T=tests/unit/FOLDER/test_x[.c][::function]     function may contain the wildcards * and ?
  T=web/test/FOLDER/x.test.ts[::WORDS]           tests of a module of the pages
  T=WORDS                                        browser tests whose names contain these words

A T that selects no test is an error: the message lists the names that are most like it.
"""
import difflib
import fnmatch
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = os.environ.get("BUILD", "release")
MOST_SIMILAR = 5
FUNCTION = re.compile(r"^static void (\w+)\(void \*\*\w+\)", re.M)
WORD = re.compile(r"[^\W_]{3,}")
PYTHON_TEST = re.compile(r"^\s*(?:async )?def (test_\w+)", re.M)
WEB_TEST = re.compile(r"""^test\(\s*(["`])(.+?)\1""", re.M | re.S)
BROWSER_TEST = re.compile(r"""\.test\(\s*(["`])(.+?)\1""", re.S)


def similar(wanted, names):
    """The names most like wanted: by the number of similar words, then as a whole text."""
    text = wanted.strip("*?").lower()
    words = {name: set(WORD.findall(name.lower())) for name in names}
    known = set().union(*words.values()) if words else set()
    close = [set(difflib.get_close_matches(word, known, 3, 0.8)) for word in WORD.findall(text)]

    def likeness(name):
        ratio = difflib.SequenceMatcher(None, text, name.lower()).ratio()
        found = sum(bool(each & words[name]) for each in close)
        return found + ratio + len(names) * (text in name.lower())

    return sorted(filter(lambda name: likeness(name) > 0.5, names), key=likeness, reverse=True)[
        :MOST_SIMILAR
    ]


def no_test(what, wanted, names):
    """Ends the program: nothing is selected."""
    lines = [f"one-test: no {what} matches {wanted!r}."]
    found = similar(wanted, names)
    if found:
        lines += ["Similar names:", *(f"  {name}" for name in found)]
    elif names:
        lines.append(f"There are {len(names)}, for example {names[0]}.")
    sys.exit("\n".join(lines))


def files_below(folder, pattern, root=ROOT):
    return sorted(str(path.relative_to(root)) for path in (root / folder).glob(pattern))


def integration_command(wanted, root=ROOT):
    path, _, name = wanted.partition("::")
    if not (root / path).is_file():
        no_test(
            "integration test file", path, files_below("tests/integration", "**/test_*.py", root)
        )
    names = PYTHON_TEST.findall((root / path).read_text())
    if name and name.partition("[")[0].rpartition("::")[2] not in names:
        no_test(f"test in {path}", name, names)
    return [sys.executable, "-m", "pytest", "-q", wanted]


def unit_command(wanted, root=ROOT):
    """(program, pattern of functions or "")"""
    path, _, name = wanted.partition("::")
    source = root / f"{path.removesuffix('.c')}.c"
    if not source.is_file():
        no_test("unit test file", path, files_below("tests/unit", "**/test_*.c", root))
    functions = FUNCTION.findall(source.read_text())
    if name and not fnmatch.filter(functions, name):
        no_test(f"function in {path}", name, functions)
    return f"build/{BUILD}/{path.removesuffix('.c')}", name


def web_command(wanted, root=ROOT):
    """The command, which starts in the folder of the tests that web/build.mjs has built."""
    path, _, words = wanted.partition("::")
    files = files_below("web/test", "**/*.test.ts", root)
    if path not in files:
        no_test("test file of the pages", path, files)
    names = [name for _, name in WEB_TEST.findall((root / path).read_text())]
    if words and not any(words in name for name in names):
        no_test(f"test in {path}", words, names)
    pattern = [f"--test-name-pattern={re.escape(words)}"] if words else []
    program = pathlib.Path(path).relative_to("web/test").with_suffix(".mjs")
    return ["node", *pattern, "--test", str(program)]


def run_web(wanted):
    command = web_command(wanted)
    subprocess.run(["node", "build.mjs", "--tests"], cwd=ROOT / "web", check=True)
    return subprocess.run(command, cwd=ROOT / "build" / "web-tests", check=False).returncode


def browser_names(root=ROOT):
    sources = sorted((root / "tests" / "browser").glob("*.mjs"))
    return [name for path in sources for _, name in BROWSER_TEST.findall(path.read_text())]


def run_browser(words):
    """Shows the output as it comes; some names are computed, so only the run knows them all."""
    command = ["npm", "--prefix", "web", "run", "--silent", "test:browser", "--", words]
    last = ""
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            print(line, end="", flush=True)
            last = line
    if last.startswith("0 passed, 0 failed") and "skipped" not in last:
        no_test("browser test", words, browser_names())
    return process.returncode


def main():
    wanted = " ".join(sys.argv[1:])
    if not wanted.strip():
        sys.exit(__doc__)
    if wanted.startswith("tests/integration/"):
        command = integration_command(wanted)
        subprocess.run(["make", "-s", f"BUILD={BUILD}", "test-programs"], cwd=ROOT, check=True)
        sys.exit(subprocess.run(command, cwd=ROOT, check=False).returncode)
    if wanted.startswith("tests/unit/"):
        program, pattern = unit_command(wanted)
        subprocess.run(["make", "-s", f"BUILD={BUILD}", program], cwd=ROOT, check=True)
        if pattern:
            os.environ["TEST_FILTER"] = pattern
        sys.exit(subprocess.run([program], cwd=ROOT, check=False).returncode)
    if wanted.startswith("web/"):
        sys.exit(run_web(wanted))
    if wanted.startswith("tests/"):
        no_test("folder of one-test", wanted, ["tests/unit/", "tests/integration/"])
    sys.exit(run_browser(wanted))


if __name__ == "__main__":
    main()
