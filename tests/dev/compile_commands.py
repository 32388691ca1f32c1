"""Writes compile_commands.json, which clangd and other tools read, from the output of `make -n`.

    make -nB V=1 ... | compile_commands.py >compile_commands.json
"""
import json
import os
import re
import shlex
import sys

COMPILE = re.compile(r" -c (\S+\.c) -o \S+$")


def main():
    entries = []
    for line in sys.stdin:
        match = COMPILE.search(line.rstrip())
        if match:
            words = shlex.split(line)
            if words[0].endswith("ccache"):
                words.pop(0)
            entries.append({"directory": os.getcwd(), "file": match[1], "arguments": words})
    json.dump(entries, sys.stdout, indent=1)
    print()


main()
