#!/usr/bin/env python3
"""make bench-symbols: symbol tables of real files beside what other tools make of them: llvm-gsymutil
(build, sizes), llvm-symbolizer and, where cargo reaches its registry, gimli's addr2line (look-ups).

  tests/bench/symbols.py [FILE …]   files with debug information; without one: libc's and libjvm's of
                                    the distribution, the latter downloaded by apt-get if need be
                                    (240 MB), and vmlinux's where its package is installed

Processor time is that of a process and all it started; memory is the peak that was resident. Goals are
those of the project; a figure that misses its goal is marked, and nothing fails because of it.
"""

import csv
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build" / os.environ.get("BUILD", "release")
WORK = ROOT / "build" / "bench"
DEBUG = pathlib.Path("/usr/lib/debug")
LARGE_BYTES = 100 << 20
ROWS = []


def row(name, figure, unit, goal=None, is_met=None):
    ROWS.append((name, figure, unit, goal, is_met))
    mark = "" if is_met is None else "met" if is_met else "MISSED"
    text = f"{figure:,.3f}" if isinstance(figure, float) else f"{figure:,}"
    print(f"{name:<58} {text:>14} {unit:<8} {goal or '':<28} {mark}", flush=True)


def measured(command, **options):
    """(CPU seconds, peak MiB); ends the run when the command fails."""
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, **options)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: status {process.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def output(command, **options):
    return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True,
                          check=True, **options).stdout


# ---- files ----

def separate_file(binary):
    """Where the distribution has the debug information of a binary, or None."""
    notes = output(["readelf", "-nW", binary], stderr=subprocess.DEVNULL)
    found = re.search(r"Build ID: (\w\w)(\w+)", notes)
    path = DEBUG / ".build-id" / found.group(1) / f"{found.group(2)}.debug" if found else None
    return path if path and path.exists() else None


def downloaded(package):
    """The largest debug file of a package, unpacked below build/bench/, or None."""
    folder = WORK / package
    if not folder.exists():
        part = WORK / f"{package}.part"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        if subprocess.run(["apt-get", "download", "-q", package], cwd=part).returncode != 0:
            return print(f"({package} cannot be downloaded)")
        for archive in part.glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", archive, part], check=True)
            archive.unlink()
        part.rename(folder)
    return max(folder.rglob("*.debug"), key=lambda path: path.stat().st_size)


def default_files():
    libc = next(pathlib.Path("/usr/lib").glob("*-linux-gnu/libc.so.6"), None)
    kernels = sorted((DEBUG / "boot").glob("vmlinux-*"))
    files = [("libc", libc and separate_file(libc)), ("libjvm", downloaded("openjdk-17-dbg")),
             *(("vmlinux", kernel) for kernel in kernels[-1:])]
    if not kernels:
        print("(no vmlinux: install a linux-image-…-dbg package)")
    return [(name, path) for name, path in files if path]


# ---- one file ----

def zstd_bytes(path):
    return len(subprocess.run(["zstd", "-3", "-q", "-c", path], stdout=subprocess.PIPE,
                              check=True).stdout)


def gsymutil():
    """Debian has it with the version in its name alone."""
    found = shutil.which("llvm-gsymutil") or max(pathlib.Path("/usr/bin").glob("llvm-gsymutil*"),
                                                 default=None)
    return found or sys.exit("llvm-gsymutil is missing: install the package llvm")


def bench_build(name, file, is_cxx):
    table, gsym, flat = WORK / f"{name}.symbols", WORK / f"{name}.gsym", WORK / f"{name}.flat"
    cpu_s, peak_mib = measured([BUILD / "perfolio-symbolize", "-q", "-o", table, file])
    # It reads compressed sections badly: what inflating costs is left out of its figures.
    subprocess.run(["objcopy", "--decompress-debug-sections", file, flat], check=True)
    gsym_s, gsym_mib = measured([gsymutil(), "--num-threads=1", "--quiet", f"--convert={flat}",
                                 f"--out-file={gsym}"])
    row(f"{name}: build", cpu_s, "CPU s", f"at most {gsym_s:.2f} (gsymutil)", cpu_s <= gsym_s)
    row(f"{name}: peak memory of the build", peak_mib, "MiB",
        f"at most {gsym_mib / 3:.0f} (gsymutil / 3)", peak_mib <= gsym_mib / 3)
    share = 0.5 if is_cxx else 1
    for what, size in (("size", lambda path: path.stat().st_size), ("size with zstd -3", zstd_bytes)):
        ours, theirs = size(table) / 1e6, size(gsym) / 1e6
        row(f"{name}: {what}", ours, "MB", f"at most {theirs * share:.2f} (GSYM * {share})",
            ours <= theirs * share)
    return table, flat


def bench_llvm(name, flat, addresses):
    """From its start, reading what it needs as it goes, to the last line of text."""
    some = WORK / "addresses-0x"
    texts = [f"0x{line}\n" for line in addresses.read_text().split()[:20000]]
    some.write_text("".join(texts))
    with some.open("rb") as lines:
        cpu_s, peak_mib = measured(["llvm-symbolizer", "--inlines", f"--obj={flat}"], stdin=lines)
    row(f"{name}: llvm-symbolizer, {len(texts)} addresses", cpu_s, "CPU s")
    row(f"{name}: llvm-symbolizer, peak memory", peak_mib, "MiB")


def gimli():
    """Path of the program, or None."""
    if not shutil.which("cargo"):
        return print("(no cargo: gimli's addr2line is not measured)")
    built = subprocess.run(["cargo", "build", "-q", "--release", "--target-dir", WORK / "addr2line"],
                           cwd=HERE / "addr2line")
    if built.returncode != 0:
        return print("(cargo cannot build gimli's addr2line: it is not measured)")
    return WORK / "addr2line" / "release" / "bench-addr2line"


def bench_lookups(name, table, flat, program, is_large):
    addresses = WORK / "addresses"
    addresses.write_text(output([BUILD / "tests/bench/bench_symbols", "--addresses", 200000, table]))
    rows = list(csv.reader(output([BUILD / "tests/bench/bench_symbols", table]).splitlines()))
    for what, figure, unit, goal, met in rows:
        what = what.removeprefix(f"symbols, {table}: ")
        if what not in ("size", "size of a record"):
            row(f"{name}: {what}", float(figure), unit, goal, met == "yes" if goal else None)
    bench_llvm(name, flat, addresses)
    if not program:
        return
    ours = output([BUILD / "tests/bench/bench_symbols", "--resolve", addresses, table])
    theirs = output([program, flat, addresses])
    ours, theirs = ([float(figure) for figure in text.split(",")] for text in (ours, theirs))
    for what, mine, other in zip(("random", "sorted"), ours, theirs):
        row(f"{name}: gimli's addr2line, warm, {what}", other, "M/s")
        goal = ("at least 10", mine >= 10 * other) if is_large else ()
        row(f"{name}: times as fast, {what}", mine / other, "x", *goal)


def bench_file(name, file, program):
    row(f"{name}: debug information", file.stat().st_size / 1e6, "MB")
    is_large = file.stat().st_size >= LARGE_BYTES
    table, flat = bench_build(name, file, is_large)
    bench_lookups(name, table, flat, program, is_large)
    flat.unlink()


def main():
    started = time.monotonic()
    WORK.mkdir(parents=True, exist_ok=True)
    program = gimli()
    given = [(pathlib.Path(path).stem[:12], pathlib.Path(path)) for path in sys.argv[1:]]
    for name, file in given or default_files():
        bench_file(name, file, program)
    with open(WORK / "symbols.csv", "w", newline="") as results:
        csv.writer(results).writerows([("name", "figure", "unit", "goal", "met"), *ROWS])
    missed = sum(met is False for *_, met in ROWS)
    print(f"{missed} goals missed; {time.monotonic() - started:.0f} s; {WORK / 'symbols.csv'}")


if __name__ == "__main__":
    main()
