#!/usr/bin/env python3
"""make bench-symbols: symbol tables of real files compared to other tools: llvm-gsymutil (build
time, sizes), llvm-symbolizer and, if cargo reaches its registry, gimli's addr2line (look-ups).

  tests/bench/symbols.py [FILE …]   files with debug information; by default those of Debian: libc
                                    and, downloaded by apt-get if necessary, libjvm (240 MB),
                                    vmlinux (280 MB) and Rust's standard library (34 MB)

The results at all addresses where the result changes (vmlinux: every 20th) are compared with
llvm-symbolizer (symbols_agreement.py). AGREEMENT_STEP=N compares every Nth address, 0 none.

CPU time is that of a process and its children; memory is peak resident memory. A result that misses
its goal (a goal of the project) is marked, and the run passes.
"""

import csv
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

from symbols_agreement import agreement

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build" / os.environ.get("BUILD", "release")
BENCH = BUILD / "tests/bench/bench_symbols"
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
    """Returns (CPU seconds, peak MiB, seconds); ends the run if the command fails."""
    done = subprocess.run(
        [str(word) for word in (BENCH, "--run", *command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=False,
        **options,
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: failed")
    return tuple(float(figure) for figure in done.stdout.split(","))


def output(command, **options):
    return subprocess.run(
        [str(word) for word in command], stdout=subprocess.PIPE, text=True, check=True, **options
    ).stdout


# ---- files ----


def separate_file(binary):
    """Path of the debug information of a binary in Debian's layout, or None."""
    notes = output(["readelf", "-nW", binary], stderr=subprocess.DEVNULL)
    found = re.search(r"Build ID: (\w\w)(\w+)", notes)
    path = DEBUG / ".build-id" / found.group(1) / f"{found.group(2)}.debug" if found else None
    return path if path and path.exists() else None


def downloaded(package, pattern="*.debug"):
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
    return max(folder.rglob(pattern), key=lambda path: path.stat().st_size)


def kernel():
    """Returns the installed vmlinux, or that of the newest package, or None."""
    installed = sorted((DEBUG / "boot").glob("vmlinux-*"))
    depends = subprocess.run(
        ["apt-cache", "depends", "linux-image-cloud-amd64-dbg"],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    ).stdout
    package = re.search(r"Depends: (\S+)", depends)
    if installed or not package:
        return installed[-1] if installed else print("(no linux-image-…-dbg package is known)")
    return downloaded(package[1], "vmlinux-*")


def rust():
    """Links the objects of Debian's Rust library, which have debug information (the programs do
    not), into one shared library; undefined symbols stay undefined."""
    archive, library = downloaded("libstd-rust-dev", "libstd-*.rlib"), WORK / "libstd-rust.so"
    if not archive or library.exists():
        return archive and library
    objects = WORK / "libstd-rust"
    objects.mkdir(exist_ok=True)
    subprocess.run(["ar", "x", archive], cwd=objects, check=True)
    subprocess.run(
        [
            "gcc",
            "-shared",
            "-nostdlib",
            "-Wl,--unresolved-symbols=ignore-all",
            "-Wl,-z,notext",
            *sorted(objects.glob("*.o")),
            "-o",
            library,
        ],
        check=True,
    )
    return library


def default_files():
    libc = next(pathlib.Path("/usr/lib").glob("*-linux-gnu/libc.so.6"), None)
    files = [
        ("libc", libc and separate_file(libc)),
        ("libstd", rust()),
        ("libjvm", downloaded("openjdk-17-dbg")),
        ("vmlinux", kernel()),
    ]
    return [(name, path) for name, path in files if path]


# ---- one file ----


def zstd_bytes(path):
    return len(
        subprocess.run(["zstd", "-3", "-q", "-c", path], stdout=subprocess.PIPE, check=True).stdout
    )


def gsymutil():
    """Returns the path of llvm-gsymutil. Debian's name of this program contains the version."""
    found = shutil.which("llvm-gsymutil") or max(
        pathlib.Path("/usr/bin").glob("llvm-gsymutil*"), default=None
    )
    return found or sys.exit("llvm-gsymutil is missing: install the package llvm")


def bench_first_names(name, file):
    """Measures the best of three runs, which other load of the host disturbs least."""
    runs = [
        measured(
            [
                BUILD / "perfolio-symbolize",
                "-q",
                "--symbols-only",
                "-o",
                WORK / "first.symbols",
                file,
            ]
        )
        for _ in range(3)
    ]
    row(f"{name}: first names, whole process", min(cpu_s for cpu_s, _, _ in runs) * 1000, "CPU ms")
    wall_ms = min(wall_s for _, _, wall_s in runs) * 1000
    row(f"{name}: first names", wall_ms, "ms", "at most 50", wall_ms <= 50)


def bench_agreement(name, file, table):
    step = int(os.environ.get("AGREEMENT_STEP", "20" if name == "vmlinux" else "1"))
    if not step:
        return
    compared, unknown, ties, left = agreement(file, table, step)
    row(f"{name}: addresses compared to llvm-symbolizer", compared, "")
    row(f"{name}: addresses without a unit for llvm", unknown, "")
    row(f"{name}: ties of overlapping code", ties, "", "at most 0.1 %", ties <= compared / 1000)
    row(f"{name}: differences", len(left), "", "none", not left)


def bench_build(name, file, is_cxx):
    table, gsym, flat = WORK / f"{name}.symbols", WORK / f"{name}.gsym", WORK / f"{name}.flat"
    cpu_s, peak_mib, _ = measured([BUILD / "perfolio-symbolize", "-q", "-o", table, file])
    # gsymutil is slow with compressed sections, so its results do not include decompression.
    subprocess.run(["objcopy", "--decompress-debug-sections", file, flat], check=True)
    gsym_s, gsym_mib, _ = measured(
        [gsymutil(), "--num-threads=1", "--quiet", f"--convert={flat}", f"--out-file={gsym}"]
    )
    row(f"{name}: build", cpu_s, "CPU s", f"at most {gsym_s:.2f} (gsymutil)", cpu_s <= gsym_s)
    row(
        f"{name}: peak memory of the build",
        peak_mib,
        "MiB",
        f"at most {gsym_mib / 3:.0f} (gsymutil / 3)",
        peak_mib <= gsym_mib / 3,
    )
    share = 0.5 if is_cxx else 1
    packed = WORK / f"{name}.packed"
    pack_s, _, _ = measured([BUILD / "perfolio-symbolize", "-q", "--packed", "-o", packed, file])
    row(
        f"{name}: build and pack",
        pack_s,
        "CPU s",
        f"at most {gsym_s:.2f} (gsymutil)",
        pack_s <= gsym_s,
    )
    for label, ours, theirs in (
        ("size", table.stat().st_size, gsym.stat().st_size),
        ("size at rest", packed.stat().st_size, zstd_bytes(gsym)),
    ):
        row(
            f"{name}: {label}",
            ours / 1e6,
            "MB",
            f"at most {theirs * share / 1e6:.2f} (GSYM * {share})",
            ours <= theirs * share,
        )
    return table, flat


def bench_llvm(name, flat, addresses):
    """Runs the program from its start to the last line of output."""
    some = WORK / "addresses-0x"
    texts = [f"0x{line}\n" for line in addresses.read_text().split()[:20000]]
    some.write_text("".join(texts))
    with some.open("rb") as lines:
        cpu_s, peak_mib, _ = measured(
            ["llvm-symbolizer", "--inlines", f"--obj={flat}"], stdin=lines
        )
    row(f"{name}: llvm-symbolizer, {len(texts)} addresses", cpu_s, "CPU s")
    row(f"{name}: llvm-symbolizer, peak memory", peak_mib, "MiB")


def gimli():
    """Path of the program, or None."""
    if not shutil.which("cargo"):
        return print("(no cargo: gimli's addr2line is not measured)")
    built = subprocess.run(
        ["cargo", "build", "-q", "--release", "--target-dir", WORK / "addr2line"],
        cwd=HERE / "addr2line",
    )
    if built.returncode != 0:
        return print("(cargo cannot build gimli's addr2line: it is not measured)")
    return WORK / "addr2line" / "release" / "bench-addr2line"


def bench_lookups(name, table, flat, program, is_large):
    addresses = WORK / "addresses"
    addresses.write_text(output([BENCH, "--addresses", 200000, table]))
    rows = list(csv.reader(output([BENCH, table]).splitlines()))
    for label, figure, unit, goal, met in rows:
        label = label.removeprefix(f"symbols, {table}: ")
        if label not in ("size", "size of a record"):
            row(f"{name}: {label}", float(figure), unit, goal, met == "yes" if goal else None)
    bench_llvm(name, flat, addresses)
    if not program:
        return
    ours = output([BENCH, "--resolve", addresses, table])
    theirs = output([program, flat, addresses])
    ours, theirs = ([float(figure) for figure in text.split(",")] for text in (ours, theirs))
    # gimli's addr2line does not sort the addresses, so it is also measured with random ones.
    for order, own, other in zip(
        ("random", "random, one by one", "sorted"), ours, (theirs[0], *theirs)
    ):
        if order != "random, one by one":
            row(f"{name}: gimli's addr2line, warm, {order}", other, "M/s")
        goal = ("at least 10", own >= 10 * other) if is_large else ()
        row(f"{name}: times as fast, {order}", own / other, "x", *goal)


def bench_file(name, file, program):
    row(f"{name}: debug information", file.stat().st_size / 1e6, "MB")
    is_large = file.stat().st_size >= LARGE_BYTES
    bench_first_names(name, file)
    table, flat = bench_build(name, file, is_cxx=is_large)
    bench_agreement(name, flat, table)
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
