#!/bin/sh
# Runs every fuzzer for SECONDS of CPU time each, first its seeds and then new inputs:
#   tests/fuzz/run.sh SECONDS [FUZZER ...]
# Prints a line for each fuzzer, "ok" or "not ok". Findings and logs are in build/fuzz/findings.
# Fuzzers use a copy of the seeds; FUZZ_KEEP=1 merges inputs that reached new code into
# tests/fuzz/corpus.
# One input may take 10 s of CPU time. libFuzzer measures wall time, which depends on the load of
# the system, so an input that took longer runs again, alone, with a limit of CPU time.
# FUZZ_JOBS fuzzers run at a time (default: one per processor).
set -u
cd "$(dirname "$0")/../.." || exit 1
seconds=${1:-60}
[ $# -gt 0 ] && shift
bin=build/fuzz/tests/fuzz
out=build/fuzz/findings

# CPU time of all children so far, in whole seconds. `times` does not work in a pipe.
cpu_seconds() {
    times >"$1"
    awk 'NR == 2 { split($1, user, /[ms]/); split($2, kernel, /[ms]/)
                   print int(60 * (user[1] + kernel[1]) + user[2] + kernel[2]) }' "$1"
}

run_one() {
    name=$1
    program=$bin/$name
    work=build/fuzz/corpus/$name
    rm -rf "$work" "${out:?}/$name"
    mkdir -p "$work" "$out/$name"
    [ -d "tests/fuzz/corpus/$name" ] && cp "tests/fuzz/corpus/$name"/* "$work/"
    dictionary=
    [ -f "tests/fuzz/$name.dict" ] && dictionary=-dict=tests/fuzz/$name.dict
    log=$out/$name/log
    used=0 runs=0
    while [ "$runs" -eq 0 ] || [ "$used" -lt "$seconds" ]; do
        # shellcheck disable=SC2086
        if ! "$program" -max_total_time=$((seconds - used)) -rss_limit_mb=1024 -timeout=60 \
            -max_len=65536 -print_final_stats=1 -artifact_prefix="$out/$name/" $dictionary \
            "$work" >"$log" 2>&1; then
            echo "not ok $name: see $log"
            grep -v "REDUCE\|NEW  \|pulse" "$log" | tail -n 30 | cut -c1-300 | sed 's/^/    /'
            return 1
        fi
        runs=$((runs + $(sed -n 's/^stat::number_of_executed_units: *//p' "$log")))
        cpu_seconds "$out/$name/times" >"$out/$name/used"
        used=$(cat "$out/$name/used")
    done
    for input in "$out/$name"/slow-unit-*; do
        [ -f "$input" ] || continue
        if ! prlimit --cpu=10 "$program" "$input" >>"$log" 2>&1; then
            echo "not ok $name: more than 10 s of CPU time for $input"
            return 1
        fi
    done
    echo "ok $name: $used CPU s, $runs runs, $(find "$work" -type f | wc -l) inputs"
    if [ -n "${FUZZ_KEEP:-}" ]; then
        "$bin/$name" -merge=1 "tests/fuzz/corpus/$name" "$work" >>"$log" 2>&1
    fi
    return 0
}

if [ "${1:-}" = --one ]; then
    run_one "$2"
    exit
fi
if [ $# -eq 0 ]; then
    for source in tests/fuzz/fuzz_*.c; do
        source=${source##*/}
        set -- "$@" "${source%.c}"
    done
fi
printf '%s\n' "$@" | xargs -P "${FUZZ_JOBS:-$(nproc)}" -n 1 sh tests/fuzz/run.sh "$seconds" --one
