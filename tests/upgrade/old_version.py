"""Builds the servers of released versions from git, for tests of upgrades."""

import filecmp
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIST = ROOT / "tests" / "upgrade" / "versions.txt"
CACHE = ROOT / "build" / "upgrade"


class Missing(Exception):
    """The local git history does not contain the commit."""


def listed():
    """[(version, commit)] of versions.txt and of PERFOLIO_UPGRADE_FROM, which has commits in any
    form."""
    versions = []
    for line in LIST.read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        found = re.fullmatch(r"(\d+\.\d+\.\d+) ([0-9a-f]{40})", line)
        assert found, f"{LIST.name}: {line!r} is not of the form VERSION COMMIT"
        versions.append(found.groups())
    extra = os.environ.get("PERFOLIO_UPGRADE_FROM", "").split()
    return versions + [("unreleased", commit) for commit in extra]


def has_history():
    """False in a source archive, which has no commits at all."""
    done = subprocess.run(
        ["git", "rev-parse", "--is-inside-work-tree"], cwd=ROOT, capture_output=True, check=False
    )
    return done.returncode == 0 and (ROOT / ".git").exists()


def full_id(commit):
    done = subprocess.run(
        ["git", "rev-parse", "--verify", "--quiet", commit + "^{commit}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise Missing(
            f"commit {commit} of a released version is not in this clone, which is probably"
            f" shallow: run git fetch --unshallow --tags, or git fetch origin {commit}"
        )
    return done.stdout.strip()


def text_of(commit, path):
    """Returns the text of a file in the commit."""
    return subprocess.run(
        ["git", "show", f"{full_id(commit)}:{path}"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def files_of(commit, folder):
    """Returns the paths of the files in a folder of the commit."""
    return subprocess.run(
        ["git", "ls-tree", "-r", "--name-only", commit, folder],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()


def unpack(commit, folder):
    folder.mkdir(parents=True, exist_ok=True)
    archive = subprocess.Popen(["git", "archive", commit], cwd=ROOT, stdout=subprocess.PIPE)
    subprocess.run(["tar", "-x", "-C", folder], stdin=archive.stdout, check=True)
    archive.stdout.close()
    assert archive.wait() == 0


def borrow_packages(folder):
    """Uses the npm packages of this tree where they are the same; returns options of make that keep
    it from installing them again."""
    modules = ROOT / "web" / "node_modules"
    is_same = (modules / ".done").exists() and filecmp.cmp(
        ROOT / "web" / "package-lock.json", folder / "web" / "package-lock.json", shallow=False
    )
    if not is_same:
        return []
    link = folder / "web" / "node_modules"
    if not link.is_symlink():
        link.symlink_to(modules)
    return ["-o", "web/node_modules/.done"]


def build(commit):
    """Builds the perfoliod and perfolio-symbolize of the commit; returns the path of perfoliod."""
    commit = full_id(commit)
    folder = CACHE / commit
    programs = [f"build/release/{name}" for name in ("perfoliod", "perfolio-symbolize")]
    done = folder / ".built"
    if not done.exists():
        unpack(commit, folder)
        environment = {
            key: value
            for key, value in os.environ.items()
            if key not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "BUILD")
        }
        # With these settings ccache reuses objects that were built in another folder.
        environment.update(CCACHE_BASEDIR=str(folder), CCACHE_NOHASHDIR="1")
        made = subprocess.run(
            ["make", *borrow_packages(folder), *programs],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        assert made.returncode == 0, f"building {commit}:\n{made.stdout[-4000:]}"
        done.touch()
    return folder / programs[0]
