"""Checks the messages of the commits after FIRST: a subject of at most 72 characters and a body.

Without git, or in a shallow clone that does not contain FIRST, nothing is checked."""
import subprocess
import sys

FIRST = "925fb3a"
SUBJECT_MAX = 72


def problems(log):
    """log: of `git log --format=%h%x00%s%x00%b%x00%x01`"""
    found = []
    for entry in log.split("\x01"):
        parts = entry.strip("\n").split("\0")
        if len(parts) < 3:
            continue
        commit, subject, body = parts[:3]
        if len(subject) > SUBJECT_MAX:
            found.append(
                f"{commit}: the subject has {len(subject)} characters, at most {SUBJECT_MAX} are "
                f"allowed: {subject}"
            )
        if not body.strip():
            found.append(f"{commit}: the message has no body with the reason: {subject}")
    return found


def main():
    known = subprocess.run(
        ["git", "cat-file", "-e", f"{FIRST}^{{commit}}"], stderr=subprocess.DEVNULL, check=False
    )
    if known.returncode != 0:
        print(f"not checked: there is no commit {FIRST} here")
        return 0
    log = subprocess.run(
        ["git", "log", "--no-merges", "--format=%h%x00%s%x00%b%x00%x01", f"{FIRST}..HEAD"],
        stdout=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        check=True,
    ).stdout
    found = problems(log)
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
