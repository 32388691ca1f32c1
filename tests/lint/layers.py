"""Checks which folders a folder may use, and which files may include the headers of a library.

    python3 tests/lint/layers.py [BUILD]     BUILD: a folder of object files (build/release)

FOLDERS has a row for each folder of C code, from the lowest layer to the highest: the folders that
it may use besides itself, all of which are listed before it. A file uses another folder by
including a header of it, and, where object files exist, by a symbol that an object file of it
defines. The second check finds a function that is declared in one folder and defined in another.

TYPES lists the headers of a folder that its subfolders may include too, although they are listed
before it: such a header declares types and no functions.
CYCLES lists the pairs of folders that may break the order. It is empty; an entry that nothing needs
is an error.

INSIDE lists, for a folder, the groups of modules that may use each other in a cycle. A module is a
file of C code without its suffix; it uses another of its folder by a symbol that the other's object
file defines. A cycle that is no part of such a group is an error. So are a group without a cycle
and the name of a module that does not exist.

A mutable variable with static storage may be in the files of the section "Mutable globals" of
ARCHITECTURE.md only. The sections .data and .bss of the object files contain these variables.

The README.md of each folder of PAGES has a sentence "May include: …", which names the folders of
its row.

WRAPPERS names, for the headers of each library, the only files that may include them. Everything
else calls these files, so that a library can be replaced in one place.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

FOLDERS = {
    "bpf": "",
    "lib/base": "",
    "lib/input": "lib/base",
    "lib/regex": "lib/base",
    "lib/io": "lib/base",
    "lib/symbols": "lib/base",
    "lib/profile": "lib/base lib/regex",
    "lib/profile/batch": "lib/base lib/profile",
    "lib/profile/pprof": "lib/base lib/profile",
    "lib/profile/formats": "lib/base lib/profile lib/profile/pprof",
    "lib/profile/otlp": "lib/base lib/profile lib/profile/batch lib/profile/formats",
    "lib/profile/pyroscope": "lib/base lib/input lib/profile lib/profile/batch lib/profile/formats",
    "lib/profile/report": "lib/base lib/regex lib/profile",
    "lib/profile/picture": "lib/base lib/profile lib/profile/report",
    "store/block": "lib/base lib/regex lib/profile lib/profile/batch lib/profile/report",
    "store/catalogue": "lib/base lib/io store/block",
    "store/values": "lib/base store/block",
    "store/query": "lib/base lib/io lib/profile lib/profile/report store/block store/catalogue "
    "store/values",
    "store/maintain": "lib/base lib/io store/block store/catalogue store/query",
    "store": "lib/base lib/profile lib/profile/batch store/block store/catalogue store/query "
    "store/maintain",
    "api/core": "lib/base lib/input lib/io lib/profile lib/profile/batch lib/profile/formats",
    "api/http": "lib/base lib/io api/core",
    "api/identity": "lib/base lib/io api/core api/http",
    "api/ops": "lib/base lib/io api/core api/http",
    "api/upload": "lib/base lib/input lib/io api/core api/http api/identity",
    "api/debuginfo": "lib/base lib/input lib/io lib/symbols api/core api/http api/identity "
    "api/upload",
    "api/report": "lib/base lib/regex lib/profile lib/profile/pprof lib/profile/report "
    "lib/profile/picture lib/symbols api/core api/http api/debuginfo",
    "api/share": "lib/base lib/input lib/io lib/profile lib/profile/formats lib/profile/pprof "
    "lib/profile/report lib/profile/picture lib/symbols api/core api/http api/identity api/upload "
    "api/debuginfo api/report",
    "api/ingest": "lib/base lib/input lib/io lib/profile lib/profile/batch lib/profile/formats "
    "lib/profile/otlp lib/profile/pyroscope api/core api/http api/identity api/report",
    "api/query": "lib/base lib/input lib/io lib/profile lib/profile/pprof lib/profile/report "
    "api/core api/http api/identity api/report api/share",
    "api/server": "lib/base lib/io lib/profile/otlp lib/profile/pyroscope api/core api/http "
    "api/identity api/ops api/upload api/debuginfo api/report api/share api/ingest api/query",
    "api/supervisor": "lib/base lib/io api/core api/http api/identity api/ops api/server",
    "debuginfod": "lib/base lib/symbols",
    "agent/process": "bpf lib/base",
    "agent/upload": "lib/base lib/input lib/io lib/symbols lib/profile/formats lib/profile/otlp "
    "agent/process",
    "agent/symbols": "lib/base agent/process",
    "agent/labels": "lib/base lib/regex lib/io lib/profile/batch lib/profile/formats "
    "agent/process agent/upload",
    "agent/interpreter": "bpf lib/base agent/process",
    "agent/kernel": "bpf lib/base agent/process",
    "agent/unwind": "bpf lib/base agent/process agent/interpreter agent/kernel",
    "agent/profile": "bpf lib/base lib/profile lib/profile/batch lib/profile/otlp agent/process "
    "agent/symbols agent/labels agent/interpreter agent/kernel",
    "agent": "bpf lib/base lib/input lib/profile lib/profile/batch agent/process agent/symbols "
    "agent/labels agent/interpreter agent/kernel agent/unwind agent/profile agent/upload",
    "agent/ops": "lib/base agent/process agent/symbols agent/interpreter agent/kernel "
    "agent/unwind agent/upload agent",
    "cli": "lib/base lib/input lib/io lib/symbols lib/profile lib/profile/formats "
    "lib/profile/report",
    "cli/admin": "lib/base lib/input cli",
    "cli/commands": "lib/base lib/input lib/io lib/symbols lib/profile lib/profile/batch "
    "lib/profile/formats lib/profile/otlp lib/profile/pprof lib/profile/report cli",
    "cli/record": "lib/base lib/input lib/symbols lib/profile lib/profile/pprof "
    "lib/profile/report cli cli/commands",
}

# Other top folders may include only this header of a folder.
PUBLIC_HEADERS = {"store": "store/store.h", "agent": "agent/agent.h"}
MAY_USE_PUBLIC = {"api": "store", "cli": "agent"}

TYPES = {"store/types.h"}

CYCLES = set()

INSIDE = {}

# Files above all folders of their program: main.c, files that only main.c uses, lists of all
# commands.
PROGRAMS = (
    "api/main.c",
    "cli/main.c",
    "cli/command_list.c",
    "debuginfod/main.c",
    "agent/main.c",
    "agent/settings.c",
    "agent/settings.h",
    "agent/completion.c",
    "agent/completion.h",
)

WRAPPERS = {
    "h2o": r"api/server/http_internal\.h",
    "libpq": r"lib/io/pg_internal\.h",
    "postgresql/": r"lib/io/pg_internal\.h",
    "curl/": r"lib/io/http_(client|url)\.c",
    "expat": r"lib/io/s3_xml\.c",
    "jansson": r"lib/profile/formats/json_tree\.h|api/[\w/]+\.c|cli/[\w/]+\.[ch]",
    "openssl/": r"lib/base/digest\.c|api/http/tls_files\.c|api/server/http_tls\.c",
    "zstd": r"lib/base/compress\.c",
    "libdeflate": r"lib/base/compress\.c",
    "pcre2": r"lib/regex/regex\.c",
    "ft2build": r"lib/profile/picture/picture\.c",
    "freetype/": r"lib/profile/picture/picture\.c",
    "png": r"lib/profile/picture/picture\.c",
    "ini.h": r"api/core/settings\.c|lib/input/config\.c",
    "argp.h": r"lib/input/options\.c|debuginfod/main\.c",
    "gelf": r"debuginfod/elf_reader\.c",
    "libelf": r"debuginfod/elf_reader\.c",
    "libiberty/": r"debuginfod/demangle\.c",
    "seccomp": r"debuginfod/sandbox\.c",
    "linux/landlock": r"debuginfod/sandbox\.c",
    "bpf/libbpf": r"agent/kernel/kernel_(features|program\w*)\.c",
    "bpf/bpf.h": r"agent/kernel/kernel_(features|program\w*)\.c",
    "bpf/bpf_": r"bpf/\w+\.bpf\.[ch]",
    "lzma": r"debuginfod/mini_debuginfo\.c",
    "xxhash": r"debuginfod/elf_id\.c|lib/base/map\.c|lib/profile/[\w/]+\.c"
    r"|lib/symbols/symbol_table_write\.c|store/block/stack_hashes\.c",
}

# A function that a header declares, or defines, at the start of a line.
FUNCTION = re.compile(r"^(?!typedef\b)\w[\w \t*]*\([^;]*\)[^;]*[;{]", re.M)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.M)
# Folders whose page states what it may include, and that sentence.
PAGES = ("bpf", "debuginfod", "lib")
MAY_INCLUDE = re.compile(r"^May include: (.*?)\.(?:\s|\Z)", re.M | re.S)
# A row of the table of mutable globals; the sections of variables that are writable at run time.
GLOBALS_ROW = re.compile(r"^\| `([\w/]+\.c)`", re.M)
WRITABLE = re.compile(r"\.t?(data|bss)(\.rel(\.local)?)?")
# A change of a tenant's rows first locks the row of the tenant, which tenant_begin does.
BEGINS = re.compile(r"\bpg_begin\((?!.*(?:PG_NO_TENANT|TENANT_DEFAULT))")


def folder_of(path):
    """The row of FOLDERS for a file, or None for PROGRAMS, which may use all folders of their
    program."""
    return (
        None
        if path in PROGRAMS or path.removesuffix(".o") + ".c" in PROGRAMS
        else str(pathlib.PurePath(path).parent)
    )


def may_use(user, used):
    return user == used or used in FOLDERS[user].split()


def page_problem(folder, page):
    """The problem with the folders that a page names; None if they are right."""
    sentence = MAY_INCLUDE.search(page)
    if not sentence:
        return 'has no sentence "May include: …"'
    named = {name for name in re.findall(r"`([\w/]+)`", sentence[1]) if name in FOLDERS}
    wrong = named.symmetric_difference(FOLDERS[folder].split())
    return f"differs from FOLDERS in {', '.join(sorted(wrong))}" if wrong else None


def cycles_of(uses):
    """The groups of keys of `uses`, a set of keys for each key, that use each other in a cycle
    (Tarjan's strongly connected components of more than one key), each as a sorted list."""
    order, lowest, stack, groups = {}, {}, [], []

    def visit(key):
        order[key] = lowest[key] = len(order)
        stack.append(key)
        for used in sorted(uses.get(key, ())):
            if used not in order:
                visit(used)
            if used in stack:
                lowest[key] = min(lowest[key], lowest[used])
        if lowest[key] == order[key]:
            start = stack.index(key)
            groups.append(sorted(stack[start:]))
            del stack[start:]

    for key in sorted(uses):
        if key not in order:
            visit(key)
    return sorted(group for group in groups if len(group) > 1)


def uses_inside(objects, defined, undefined):
    """For each folder: for each of its modules, the set of modules of the folder that it uses.
    defined: the object file of each symbol; undefined: the symbols that an object file lacks."""
    inside = {}
    for path in map(pathlib.PurePath, objects):
        used = (defined.get(symbol) for symbol in undefined.get(str(path), ()))
        others = {pathlib.PurePath(other) for other in used if other}
        inside.setdefault(str(path.parent), {})[path.stem] = {
            other.stem for other in others if other.parent == path.parent
        }
    return inside


def mutable_globals(listed):
    """The variables that are writable at run time, each with its object file.
    listed: the output of `nm -A --format=sysv`."""
    found = []
    for line in listed.splitlines():
        fields = [field.strip() for field in line.split("|")]
        if len(fields) == 7 and fields[3] in ("OBJECT", "TLS") and WRITABLE.fullmatch(fields[6]):
            path, _, name = fields[0].partition(":")
            found.append((path, name))
    return found


class Checker:
    def __init__(self):
        self.errors = []
        self.needed = set()  # entries of CYCLES

    def report(self, text):
        self.errors.append(text)

    def check_use(self, user, used, place, what):
        """user and used are folders of FOLDERS; place and what are for the message."""
        if used not in FOLDERS:
            self.report(f"{place}: {used} has no row in FOLDERS")
        elif not may_use(user, used):
            if (user, used) in CYCLES:
                self.needed.add((user, used))
            else:
                self.report(f"{place}: {user} may not use {used} ({what})")

    def check_include(self, path, line, name):
        place = f"{path}:{line}"
        top, used_top = path.split("/")[0], name.split("/")[0]
        if not (ROOT / name).is_file():
            self.report(f'{place}: "{name}" is not named from the root of the source tree')
        elif used_top == "tests":
            self.report(f'{place}: "{name}" belongs to the tests')
        elif used_top in PUBLIC_HEADERS and used_top != top:
            if MAY_USE_PUBLIC.get(top) != used_top or name != PUBLIC_HEADERS[used_top]:
                self.report(f'{place}: "{name}" is private to {used_top}/')
        elif name not in TYPES or top != used_top:
            user = folder_of(path)
            if user is None:
                if used_top not in (top, "lib"):
                    self.report(f"{place}: {top}/ may not use {used_top}/")
            elif folder_of(name) is None:
                self.report(f'{place}: "{name}" belongs to the program, which is above all folders')
            else:
                self.check_use(user, folder_of(name), place, f'"{name}"')

    def check_library(self, path, line, name):
        for prefix, files in WRAPPERS.items():
            if name.startswith(prefix) and not re.fullmatch(files, path):
                self.report(f"{path}:{line}: <{name}> may be included by {files} only")

    def check_file(self, path):
        text = (ROOT / path).read_text()
        for match in INCLUDE.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            if match[1] == '"':
                self.check_include(path, line, match[2])
            else:
                self.check_library(path, line, match[2])
        if path in TYPES and (match := FUNCTION.search(text)):
            line = text.count("\n", 0, match.start()) + 1
            self.report(f"{path}:{line}: a header of types declares no functions")
        if path.startswith("api/") and path != "api/identity/tenant.c":
            for number, content in enumerate(text.splitlines(), 1):
                if BEGINS.search(content):
                    self.report(
                        f"{path}:{number}: pg_begin for one tenant: call tenant_begin "
                        "(api/identity/tenant.h)"
                    )

    def check_inside(self, folder, uses, allowed):
        """uses: for each module of the folder, those that it uses. allowed: a row of INSIDE."""
        groups = [set(group.split()) for group in allowed]
        cycles = cycles_of(uses)
        for cycle in cycles:
            if not any(set(cycle) <= group for group in groups):
                self.report(f"{folder}: {', '.join(cycle)} use each other in a cycle")
        for group in groups:
            is_known = group <= uses.keys()  # all object files are up to date
            if is_known and not any(group & set(cycle) for cycle in cycles):
                self.report(
                    f"INSIDE: {', '.join(sorted(group))} of {folder} are no cycle any more; "
                    "remove the entry"
                )

    def check_globals(self, variables, objects):
        """variables: pairs of an object file and a name; objects: all object files."""
        document = (ROOT / "ARCHITECTURE.md").read_text()
        section = document.partition("\n## Mutable globals\n")[2].partition("\n## ")[0]
        allowed = set(GLOBALS_ROW.findall(section))
        unused = allowed & {path.removesuffix(".o") + ".c" for path in objects}
        for path, name in variables:
            source = path.removesuffix(".o") + ".c"
            unused.discard(source)
            if source not in allowed:
                self.report(f"{source}: {name} is a mutable global and not in ARCHITECTURE.md")
        for source in sorted(unused):
            self.report(f"ARCHITECTURE.md: {source} has no mutable globals any more")

    def check_symbols(self, build):
        """Whether the objects of each folder use only symbols of folders that FOLDERS allows."""
        defined, undefined, objects = {}, {}, []
        for object_file in sorted(build.glob("**/*.o")):
            path = str(object_file.relative_to(build))
            if path.split("/")[0] not in ("lib", "store", "api", "agent", "cli", "debuginfod"):
                continue
            source = (ROOT / path).with_suffix(".c")
            if source.is_file() and source.stat().st_mtime <= object_file.stat().st_mtime:
                objects.append(path)  # other objects are older than their source or have none
        if not objects:
            return
        listed = subprocess.run(
            ["nm", "-gA", *objects], cwd=build, capture_output=True, text=True, check=True
        ).stdout
        for line in listed.splitlines():
            path, _, symbol = line.partition(":")
            fields = symbol.split()
            if fields[-2] == "U":
                undefined.setdefault(path, []).append(fields[-1])
            else:
                defined.setdefault(fields[-1], path)
        for path, symbols in undefined.items():
            for symbol in symbols:
                other = defined.get(symbol)
                user, used = folder_of(path), folder_of(other) if other else None
                # Any folder behind a public header may define what it declares.
                if other and user and MAY_USE_PUBLIC.get(user.split("/")[0]) != other.split("/")[0]:
                    if used is None:
                        self.report(
                            f"{path}: {symbol} is defined in {other}, which is above all folders"
                        )
                    else:
                        self.check_use(user, used, path, f"{symbol} of {other}")
        listed = subprocess.run(
            ["nm", "-A", "--format=sysv", *objects],
            cwd=build,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        self.check_globals(mutable_globals(listed), objects)
        for folder, uses in uses_inside(objects, defined, undefined).items():
            self.check_inside(folder, uses, INSIDE.get(folder, []))


def main():
    build = ROOT / (sys.argv[1] if len(sys.argv) > 1 else "build/release")
    listed = subprocess.run(
        [
            "git",
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            *(
                f"{top}/*.[ch]"
                for top in ("lib", "store", "api", "cli", "debuginfod", "agent", "bpf")
            ),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    checker = Checker()
    for path in listed:
        if (ROOT / path).is_file():
            checker.check_file(path)
    if build.is_dir():
        checker.check_symbols(build)
    for folder in FOLDERS:
        if folder.split("/")[0] in PAGES:
            problem = page_problem(folder, (ROOT / folder / "README.md").read_text())
            if problem:
                checker.report(f"{folder}/README.md {problem}")
    for folder, groups in INSIDE.items():
        for module in " ".join(groups).split():
            if not (ROOT / folder / f"{module}.c").is_file():
                checker.report(f"INSIDE: {folder}/{module}.c does not exist")
    for user, used in CYCLES - checker.needed:
        checker.report(f"CYCLES: {user} does not use {used} any more; remove the entry")
    print("\n".join(checker.errors))
    sys.exit(bool(checker.errors))


if __name__ == "__main__":
    main()
