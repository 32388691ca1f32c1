#!/bin/sh
# Prints offsets in CPython's structures, from its headers, for agent/interpreter/cpython_layout.c:
#   sh tests/oracle/cpython/offsets.sh INCLUDE_FOLDER ...      such as /usr/include/python3.11
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for include in "$@"; do
    gcc -w -I "$include" -I "$include/internal" -o "$folder/offsets" "$(dirname "$0")/offsets.c"
    "$folder/offsets"
done
