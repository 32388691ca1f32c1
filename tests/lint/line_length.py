"""Checks that no line of the given files has more than 100 characters; black and Prettier do not
break strings and comments.

    python3 tests/lint/line_length.py FILE...

Only a regular expression of JavaScript cannot be broken: its line may be longer if it contains
nothing else, apart from the name of a property in front of it.
"""

import pathlib
import re
import sys

MAX_CHARACTERS = 100
REGULAR_EXPRESSION = re.compile(r" *(\w+: )?/[^/*].*/[a-z]*[,;]")


def main(names):
    is_wrong = False
    for name in names:
        has_expressions = name.endswith((".ts", ".tsx", ".mjs"))
        for number, line in enumerate(pathlib.Path(name).read_text().split("\n"), 1):
            if len(line) <= MAX_CHARACTERS:
                continue
            if has_expressions and REGULAR_EXPRESSION.fullmatch(line):
                continue
            print(f"{name}:{number}: {len(line)} characters, at most {MAX_CHARACTERS}")
            is_wrong = True
    return is_wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
