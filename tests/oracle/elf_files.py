#!/usr/bin/env python3
"""Prints the path of every ELF file below the given folders, one per line, each file once.

  elf_files.py [FOLDER ...]     default: / without /proc, /sys, /dev, /run, /tmp and home folders
"""
import os
import sys

SKIPPED = ("/proc", "/sys", "/dev", "/run", "/tmp", "/home", "/var/tmp")


def is_elf(path):
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:
        return False


def files_below(folder):
    for directory, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if os.path.join(directory, name) not in SKIPPED]
        for name in names:
            path = os.path.join(directory, name)
            if os.path.isfile(path) and not os.path.islink(path):
                yield path


def main():
    seen = set()
    for folder in sys.argv[1:] or ["/"]:
        for path in files_below(folder):
            identity = os.stat(path)[1:3]
            if identity not in seen and is_elf(path):
                seen.add(identity)
                print(path)


main()
