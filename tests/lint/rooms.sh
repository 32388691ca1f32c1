#!/bin/sh
# Rooms and doors: who may include whose headers (ARCHITECTURE.md), and which few files may include
# each third-party library. Prints every include that breaks a rule and then fails. And who may begin
# a transaction of a tenant.
set -eu
cd "$(dirname "$0")/../.."

git ls-files --cached --others --exclude-standard 'lib/*.[ch]' 'store/*.[ch]' 'api/*.[ch]' 'cli/*.[ch]' \
    'debuginfod/*.[ch]' 'agent/*.[ch]' 'bpf/*.[ch]' |
    while IFS= read -r file; do if [ -f "$file" ]; then echo "$file"; fi; done |
    xargs grep -HnE '^[[:space:]]*#[[:space:]]*include' |
    awk -F: '
    # Room of a path: the shelf for lib, the first folder for the others.
    function room_of(path,    parts, count) {
        count = split(path, parts, "/")
        if (count < 2) return ""
        return parts[1] == "lib" && count > 2 ? "lib/" parts[2] : parts[1]
    }
    function may_use(user, used) {
        if (user == used) return 1
        return index(" " rooms[user] " ", " " used " ") > 0
    }
    function report(text) { print file ":" line ": " text; broken = 1 }
    BEGIN {
        rooms["lib/base"] = ""
        rooms["lib/profile"] = "lib/base"
        rooms["lib/io"] = "lib/base"
        rooms["lib/symbols"] = "lib/base"
        rooms["store"] = "lib/base lib/profile lib/io"
        rooms["api"] = "lib/base lib/profile lib/io lib/symbols store"
        rooms["debuginfod"] = "lib/base lib/symbols"
        rooms["bpf"] = ""
        rooms["agent"] = "lib/base lib/profile lib/io lib/symbols bpf"
        rooms["cli"] = "lib/base lib/profile lib/io lib/symbols agent"

        # Begin of the header name, then the files (as a pattern) that are its door.
        door["h2o"] = "^api/http(_[a-z]+)?\\.[ch]$"
        door["libpq"] = "^lib/io/pg\\.c$"
        door["postgresql/"] = "^lib/io/pg\\.c$"
        door["curl/"] = "^lib/io/http_(client|url)\\.c$"
        door["jansson"] = "^(lib/profile/formats/json_tree\\.h|api/[a-z_]+\\.c|cli/[a-z_]+\\.[ch])$"
        door["openssl/"] = "^(lib/base/digest\\.c|api/http(_[a-z]+)?\\.[ch]|api/tls_files\\.c)$"
        door["zstd"] = "^lib/base/compress\\.c$"
        door["libdeflate"] = "^lib/base/compress\\.c$"
        door["zlib"] = "^lib/base/compress\\.c$"
        door["pcre2"] = "^lib/base/regex\\.c$"
        door["ft2build"] = "^lib/profile/picture/picture\\.c$"
        door["freetype/"] = "^lib/profile/picture/picture\\.c$"
        door["png"] = "^lib/profile/picture/picture\\.c$"
        door["ini.h"] = "^(api/settings\\.c|lib/base/config\\.c)$"
        door["gelf"] = "^debuginfod/elf_reader\\.c$"
        door["libelf"] = "^debuginfod/elf_reader\\.c$"
        door["libiberty/"] = "^debuginfod/demangle\\.c$"
        door["seccomp"] = "^debuginfod/sandbox\\.c$"
        door["linux/landlock"] = "^debuginfod/sandbox\\.c$"
        door["bpf/libbpf"] = "^agent/kernel_(features|program)\\.c$"
        door["bpf/bpf.h"] = "^agent/kernel_(features|program)\\.c$"
        door["bpf/bpf_"] = "^bpf/[a-z_]+\\.bpf\\.[ch]$"
        door["lzma"] = "^debuginfod/mini_debuginfo\\.c$"
        door["xxhash"] = "^(debuginfod/elf_id|lib/(base/map|profile/[a-z_]+|symbols/symbol_table_write)|store/stack_hashes)\\.c$"
    }
    {
        file = $1; line = $2
        user = room_of(file)
        included = $0
        sub(/^[^#]*#[ \t]*include[ \t]*/, "", included)
        is_ours = substr(included, 1, 1) == "\""
        name = substr(included, 2)
        sub(/[">].*$/, "", name)
        if (is_ours) {
            used = room_of(name)
            if (used == "")
                report("\"" name "\" is not named from the root of the source tree")
            else if (used == "tests")
                report("\"" name "\" belongs to the tests")
            else if (user == "api" && used == "store" && name != "store/store.h")
                report("\"" name "\" is private to its room: store/store.h is the door")
            else if (user == "cli" && used == "agent" && name != "agent/agent.h")
                report("\"" name "\" is private to its room: agent/agent.h is the door")
            else if (!may_use(user, used))
                report(user " may not use " used " (\"" name "\")")
            next
        }
        for (begin in door) {
            if (index(name, begin) == 1 && file !~ door[begin])
                report("<" name "> is not for this file; its door is " door[begin])
        }
    }
    END { exit broken }'

# What belongs to a tenant is changed with the tenant's row locked first, and tenant_begin does that.
stray=$(grep -n 'pg_begin(' api/*.c | grep -v '^api/tenant\.c:\|PG_NO_TENANT\|TENANT_DEFAULT' || true)
if [ -n "$stray" ]; then
    echo "$stray"
    echo "pg_begin for one tenant: call tenant_begin (api/identity/tenant.h says why)"
    exit 1
fi
