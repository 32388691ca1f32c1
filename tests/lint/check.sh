#!/bin/sh
# make check: lint only, no tests. Runs every check, shows what failed, fails if one did.
#   sh tests/lint/check.sh [CHECK ...]      only these: format gcc clang layers scoped commits shell
#                                           openapi types man version, and format-recent
set -eu
cd "$(dirname "$0")/../.."
# Flags of a make above, such as w for "Entering directory", are not for the ones below.
unset MAKEFLAGS MFLAGS MAKELEVEL
export LC_ALL=C.UTF-8
python=${PYTHON:-/usr/bin/python3}
jobs=$(nproc)
output=$(mktemp)
trap 'rm -f "$output"' EXIT
failed=0

# Files that exist, known to git or new.
list() {
    git ls-files --cached --others --exclude-standard -- "$@" |
        while IFS= read -r file; do if [ -f "$file" ]; then echo "$file"; fi; done
}

# The files that changed in the last ten commits or since then; all files if there are fewer
# commits.
# shellcheck disable=SC2317  # called by its name in $1 of check_format
list_recent() {
    since=$(git rev-parse --quiet --verify HEAD~10 || git hash-object -t tree /dev/null)
    git diff --name-only --diff-filter=d "$since" -- "$@"
    git ls-files --others --exclude-standard -- "$@"
}

# $1: list or list_recent. Prettier's configuration and ignored files are in web/; black's line
# length is in pyproject.toml.
check_format() {
    "$1" '*.c' '*.h' | xargs -r -P "$jobs" -n 40 clang-format --dry-run -Werror &&
        "$1" '*.py' | xargs -r black --quiet --check &&
        make -s web/node_modules/.done &&
        "$1" '*.ts' '*.tsx' '*.mjs' 'web/*.css' | xargs -r \
        web/node_modules/.bin/prettier --config web/.prettierrc.json --log-level warn --check &&
        list '*.py' '*.ts' '*.tsx' '*.mjs' 'web/*.css' '*.sh' .ci/run '*.sql' '*.yaml' Makefile |
        xargs "$python" tests/lint/line_length.py
}

# The flags of the release build. Warnings that need the optimiser come with the build itself.
# Tests are compiled without -Wsign-conversion: with it clang, unlike gcc, warns about an int loop
# variable that is passed as an enum.
compile() {
    flags=$(make -s --no-print-directory flags CC="$1" BUILD=release)
    bpf_flags=$(make -s --no-print-directory bpf-flags CC="$1" BUILD=release)
    # shellcheck disable=SC2086  # the flags are split on purpose
    list 'lib/*.c' 'store/*.c' 'api/*.c' 'cli/*.c' 'debuginfod/*.c' 'agent/*.c' |
        xargs -P "$jobs" -n 8 "$1" $flags -fsyntax-only &&
        list 'tests/unit/*.c' |
        xargs -P "$jobs" -n 8 "$1" $flags -Wno-sign-conversion -fsyntax-only &&
        list 'bpf/*.bpf.c' | xargs -P "$jobs" -n 1 "$1" $bpf_flags -fsyntax-only
}

check_shell() {
    list '*.sh' .ci/run | xargs shellcheck
}

check_openapi() {
    if [ -x build/release/perfoliod ]; then
        "$python" tests/lint/openapi.py build/release/perfoliod
    else
        "$python" tests/lint/openapi.py
    fi
}

check_types() {
    make -s web/node_modules/.done && (cd web && npm run --silent typecheck)
}

check_man() {
    list 'deploy/man/*.[0-9]' | xargs mandoc -T lint -W warning
}

check() {
    case $1 in
    format) check_format list ;;
    format-recent) check_format list_recent ;;
    gcc) compile gcc ;;
    clang) compile clang ;;
    layers) "$python" tests/lint/layers.py ;;
    scoped) "$python" tests/lint/scoped.py ;;
    commits) "$python" tests/lint/commits.py ;;
    shell) check_shell ;;
    openapi) check_openapi ;;
    types) check_types ;;
    man) check_man ;;
    version) "$python" tests/lint/version.py ;;
    *)
        echo "there is no check of that name"
        return 1
        ;;
    esac
}

run() {
    start=$(date +%s)
    if check "$1" >"$output" 2>&1; then
        echo "ok $1 ($(($(date +%s) - start)) s)"
    else
        failed=1
        echo "not ok $1"
        head -n 200 "$output"
    fi
}

if [ $# -eq 0 ]; then
    set -- format gcc clang layers scoped commits shell openapi types man version
fi
for name in "$@"; do
    run "$name"
done
exit "$failed"
