"""Checks that no line of the given files has more than 100 characters; black and Prettier do not
break strings and comments, and no formatter runs for the other languages.

    python3 tests/lint/line_length.py FILE...

Two kinds of lines cannot be broken and may be longer: a regular expression of JavaScript with
nothing else, apart from the name of a property in front of it, and a URL with nothing else, apart
from the mark of a comment or the option that it belongs to. Not checked are the completions in
deploy/completion: the programs print them, one line per option, and shells do not break a text.
"""

import pathlib
import re
import sys

MAX_CHARACTERS = 100
REGULAR_EXPRESSION = re.compile(r" *(\w+: )?/[^/*].*/[a-z]*[,;]")
URL = re.compile(r"\s*([-#;*/]+ )?\S*https?://\S+")


def main(names):
    is_wrong = False
    for name in names:
        has_expressions = name.endswith((".ts", ".tsx", ".mjs"))
        for number, line in enumerate(pathlib.Path(name).read_text().split("\n"), 1):
            if len(line) <= MAX_CHARACTERS or URL.fullmatch(line):
                continue
            if has_expressions and REGULAR_EXPRESSION.fullmatch(line):
                continue
            print(f"{name}:{number}: {len(line)} characters, at most {MAX_CHARACTERS}")
            is_wrong = True
    return is_wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
