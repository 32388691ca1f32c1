#!/bin/sh
# Prints offsets in Ruby's structures, from its header, for agent/interpreter/ruby_layout.c:
#   sh tests/oracle/ruby/offsets.sh HEADER ...      such as
#   /usr/include/x86_64-linux-gnu/ruby-3.1.0/rb_mjit_min_header-3.1.7.h (2.6 to 3.2 install one)
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for header in "$@"; do
    gcc -w -O2 -include "$header" -Wl,--unresolved-symbols=ignore-all -o "$folder/offsets" \
        "$(dirname "$0")/offsets.c"
    "$folder/offsets"
done
