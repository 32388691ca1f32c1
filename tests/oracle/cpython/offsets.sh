#!/bin/sh
# Says where things lie in CPython, by its own headers, for the tables of agent/interpreter/cpython_layout.c:
#   sh tests/oracle/cpython/offsets.sh INCLUDE_FOLDER ...      such as /usr/include/python3.11
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for include in "$@"; do
    gcc -w -I "$include" -I "$include/internal" -o "$folder/offsets" "$(dirname "$0")/offsets.c"
    "$folder/offsets"
done
