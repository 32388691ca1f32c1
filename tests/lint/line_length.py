"""Checks that no line of the given files has more than 100 characters; black does not break strings
and comments.

    python3 tests/lint/line_length.py FILE...
"""
import pathlib
import sys

MAX_CHARACTERS = 100


def main(names):
    is_wrong = False
    for name in names:
        for number, line in enumerate(pathlib.Path(name).read_text().splitlines(), 1):
            if len(line) > MAX_CHARACTERS:
                print(f"{name}:{number}: {len(line)} characters, at most {MAX_CHARACTERS}")
                is_wrong = True
    return is_wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
