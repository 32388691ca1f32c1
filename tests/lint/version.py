"""Compares the version that other files state with the file VERSION, and that of built programs.

tests/lint/version.py          reports differences
tests/lint/version.py --write  writes the version of VERSION into the other files

A version is MAJOR.MINOR.PATCH, with -dev until it is released. CHANGELOG.md has a section for it:
"Unreleased" while it has -dev, else one with its date."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ("perfoliod", "perfolio", "perfolio-agent", "perfolio-symbolize")
# Path (a glob) and an expression of which the second group is the version.
PLACES = (
    ("lib/base/version.h", r'(#define PERFOLIO_VERSION ")([^"]*)(")'),
    ("web/package.json", r'(^  "version": ")([^"]*)(")'),
    ("web/package-lock.json", r'(\A\{\n  "name": "perfolio-web",\n  "version": ")([^"]*)(")'),
    (
        "web/package-lock.json",
        r'("": \{\n      "name": "perfolio-web",\n      "version": ")([^"]*)(")',
    ),
    ("api/openapi.yaml", r'(^  version: ")([^"]*)(")'),
    ("deploy/man/*.[0-9]", r"(^\.Os Perfolio )(\S+)()$"),
)


def places():
    """(path, its text, the match of the version or None)"""
    for pattern, expression in PLACES:
        for path in sorted(ROOT.glob(pattern)):
            text = path.read_text()
            yield path, text, re.search(expression, text, re.M)


def check_files(version):
    for path, _, found in places():
        if not found:
            yield f"{path.relative_to(ROOT)}: it states no version"
        elif found[2] != version:
            yield f"{path.relative_to(ROOT)}: version {found[2]}, but VERSION has {version}"


def check_changelog(version):
    release, _, is_dev = version.partition("-")
    state = "Unreleased" if is_dev else r"\d{4}-\d\d-\d\d"
    if not re.search(
        rf"^## \[{re.escape(release)}\] - {state}$", (ROOT / "CHANGELOG.md").read_text(), re.M
    ):
        date = "Unreleased" if is_dev else "DATE"
        yield f"CHANGELOG.md: there is no section ## [{release}] - {date}"


def check_programs(version):
    for name in PROGRAMS:
        program = ROOT / "build" / "release" / name
        if not program.exists():
            continue
        text = subprocess.run(
            [program, "--version"], capture_output=True, text=True, check=False
        ).stdout
        if text != f"{name} {version}\n":
            yield f"{name} --version prints {text!r}, expected {name} {version}"


def write(version):
    for pattern, expression in PLACES:
        for path in ROOT.glob(pattern):
            path.write_text(
                re.sub(expression, rf"\g<1>{version}\g<3>", path.read_text(), count=1, flags=re.M)
            )


def main():
    version = (ROOT / "VERSION").read_text().strip()
    if not re.fullmatch(r"\d+\.\d+\.\d+(-dev)?", version):
        sys.exit(f"VERSION: {version!r} is not of the form 1.2.3 or 1.2.3-dev")
    if sys.argv[1:] == ["--write"]:
        write(version)
    problems = [*check_files(version), *check_changelog(version), *check_programs(version)]
    print(*problems, sep="\n", end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
