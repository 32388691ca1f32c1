#!/usr/bin/env python3
"""Runs one test: make one-test T=...

  T=tests/integration/test_x.py[::test_y]
  T=tests/unit/FOLDER/test_x[.c][::function]     function is a pattern of cmocka: * and ?
  T=WORDS                                        browser tests whose names contain them
"""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = os.environ.get("BUILD", "release")


def main():
    wanted = sys.argv[1]
    path, _, name = wanted.partition("::")
    if not path:
        sys.exit(__doc__)
    if path.startswith("tests/integration/"):
        command = [sys.executable, "-m", "pytest", "-q", wanted]
    elif path.startswith("tests/unit/"):
        program = f"build/{BUILD}/{path.removesuffix('.c')}"
        subprocess.run(["make", f"BUILD={BUILD}", program], cwd=ROOT, check=True)
        command = [program]
        if name:
            os.environ["TEST_FILTER"] = name
    else:
        command = ["npm", "--prefix", "web", "run", "--silent", "test:browser", "--", wanted]
    sys.exit(subprocess.run(command, cwd=ROOT, check=False).returncode)


if __name__ == "__main__":
    main()
