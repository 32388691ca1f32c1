"""Checks that objects which are freed at the end of their scope (X_auto) are initialised before any
statement that can leave the scope.

The cleanup of an object runs on every path that leaves its scope, so one that is left before it
has a value frees what was on the stack. A declaration passes when it has an initialiser, or when
the first statement that names the object is an unconditional call of X_init(&object, ...) and no
return, goto, break, continue or end of a block stands between the two.

    python3 tests/lint/scoped.py [FILE ...]      without files: all C sources of the product
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Tests may leave the initialisation to a helper: a failed assertion does not run cleanups.
PATTERNS = [
    f"{folder}/*.{kind}"
    for folder in ("lib", "store", "api", "cli", "agent", "debuginfod", "bpf")
    for kind in "ch"
]
NOISE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
DECLARATION = re.compile(r"\b(\w+_auto(?:_t)?)\b\s*([^;]*);")
NESTED = re.compile(r"\([^(){}]*\)|\{[^(){}]*\}")
INITIALISER = re.compile(r"\{[^(){};]*\}")
WAY_OUT = re.compile(r"\b(?:return|goto|break|continue)\b|\}")


def blank(match):
    """Replaces a comment or literal by spaces, so that positions and lines do not change."""
    return re.sub(r"[^\n]", " ", match.group())


def declarators(text):
    """The parts of "a = f(b, c), *d"."""
    while NESTED.search(text):
        text = NESTED.sub("", text)
    return text.split(",")


def is_initialised_next(text, name):
    """Whether text, which follows a declaration of name, initialises it before any way out."""
    use = re.search(rf"\b{name}\b", text)
    if not use:
        return False
    before = text[: use.start()]
    call = re.search(r"([;{}]?)\s*\w+_init\(&$", before)
    if not call or not (call.group(1) or not before[: call.start()].strip()):
        return False
    return not WAY_OUT.search(before)


def complaints_of(text):
    """Yields (line, type, name) of each declaration that is not initialised in time."""
    text = INITIALISER.sub(blank, NOISE.sub(blank, text))
    for match in DECLARATION.finditer(text):
        line_start = text.rfind("\n", 0, match.start()) + 1
        if text[line_start : line_start + 1] == "#":
            continue  # the definition of the type
        for declarator in declarators(match.group(2)):
            if "=" in declarator:
                continue
            name = declarator.strip().lstrip("*")
            if name and not is_initialised_next(text[match.end() :], name):
                yield text.count("\n", 0, match.start()) + 1, match.group(1), name


def sources():
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *PATTERNS]
    names = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return [ROOT / name for name in names if (ROOT / name).is_file()]


def main(arguments):
    is_broken = False
    for file in [pathlib.Path(name) for name in arguments] or sources():
        for line, kind, name in complaints_of(file.read_text()):
            is_broken = True
            shown = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file
            print(
                f"{shown}:{line}: {kind} {name} may be cleaned up before it is initialised: "
                "give it an initialiser, such as = {0}"
            )
    return is_broken


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
