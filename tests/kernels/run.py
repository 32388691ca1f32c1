#!/usr/bin/env python3
"""Runs `perfolio record` and `perfolio-agent` on Debian's kernels, in QEMU without KVM, and checks
the stacks of programs without frame pointers.

  tests/kernels/run.py FOLDER NAME...      kernels from tests/kernels/fetch.sh: 5.10 6.1-arm64 …

A virtual machine that hangs or returns unexpected output is started again, at most twice, and each
failure is reported. The exit status is 1 if a kernel failed three times."""

import base64
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / "oracle"), str(pathlib.Path(__file__).parent)]
import initramfs  # noqa: E402
import pprof_reader  # noqa: E402

ATTEMPTS = 3
TIMEOUT_S = 600
SAMPLES_MIN = 50

# Name, options of record, arguments of truth; the expected stack from the root to the leaf, for the
# samples that contain the leaf.
CASES = [
    ("deep25", "", "deep 25", ["_start", "main", *["descend"] * 25, "spin"]),
    ("deep95", "", "deep 95", ["_start", "main", *["descend"] * 95, "spin"]),
    ("deep500", "", "deep 500", ["_start", "main", *["descend"] * 500, "spin"]),
    ("bounded", "--bounded-loops", "deep 95", ["_start", "main", *["descend"] * 95, "spin"]),
    ("large", "", "large", ["_start", "main", "on_large_frame", "spin"]),
    ("signal", "", "signal", ["_start", "main", "interrupted", "on_signal", "spin"]),
    ("kernel", "", "kernel", ["_start", "main", "on_kernel"]),
    ("offcpu", "--off-cpu", "waiting", ["_start", "main", "on_waiting"]),
    ("boundedoffcpu", "--off-cpu --bounded-loops", "waiting", ["_start", "main", "on_waiting"]),
    ("faults", "--event=page-faults", "faulting", ["_start", "main", "on_faulting", "touch"]),
]
# Recorded stacks for arm64 that both the agent's unwinder and libdwfl unwind in user space; make
# test does this for the running kernel (test_agent_unwind.py). Return addresses are not signed,
# because libdwfl 0.188 cannot remove the signature. It also stops at the signal frame of arm64,
# which the case signal covers.
REPLAYS = [
    ("spin,descend,main,_start", "deep 25"),
    ("spin,descend,main,_start", "deep 500"),
    ("on_large_frame,main,_start", "large"),
    ("on_alloca,on_aligned,main,_start", "aligned"),
    ("compare,on_callback,main,_start", "callback"),
]
# Fraction of the samples that must reach the root, and of those with the leaf that must match.
WHOLE = 0.99
LEAVES = 0.5  # fraction that must contain the leaf: other samples are between two calls of it
# Lines that the kernel's log must not contain.
COMPLAINTS = re.compile(r"WARNING:|BUG:|Oops|lockup|rcu.*stall|general protection|use-after-free")

# An emulated timer may be late, and Linux would assume that it is broken (no_timer_check).
QEMU = {
    "amd64": [
        "qemu-system-x86_64",
        "-cpu",
        "Nehalem",
        "-append",
        "console=ttyS0 quiet loglevel=1 panic=-1 mitigations=off no_timer_check",
    ],
    # Linux 5.10 does not boot with lpa2 of QEMU's "max". The cheaper of the two algorithms for
    # signed pointers suffices for a test.
    "arm64": [
        "qemu-system-aarch64",
        "-M",
        "virt",
        "-cpu",
        "max,pauth-impdef=on,lpa2=off,sve=off",
        "-append",
        "console=ttyAMA0 quiet loglevel=1 panic=-1 mitigations=off",
    ],
}


def build_root(name, folder):
    """Builds the initial file system of the virtual machine; returns the path of its archive."""
    architecture = "arm64" if name.endswith("-arm64") else "amd64"
    is_arm = architecture == "arm64"
    system = ROOT / "build" / "arm64-root" if is_arm else pathlib.Path("/")
    triple = "aarch64-linux-gnu" if is_arm else "x86_64-linux-gnu"
    programs = ROOT / "build" / ("arm64" if is_arm else os.environ.get("BUILD", "release"))
    archive = initramfs.Archive()
    stripped = folder / "stripped" / architecture
    stripped.mkdir(parents=True, exist_ok=True)
    found = {"truth": build_truth(stripped / "truth", architecture, system, "standard")}
    names = ["perfolio", "perfolio-agent", "perfolio-symbolize"]
    if is_arm:
        found["plain"] = build_truth(stripped / "plain", architecture, system, "none")
        names.append("tests/programs/unwind_replay")
    for path in (programs / name for name in names):
        found[path.name] = stripped / path.name
        subprocess.run(["llvm-strip-14", "-g", path, "-o", found[path.name]], check=True)
    initramfs.with_libraries(
        archive, found, [system / "lib" / triple, system / "usr/lib" / triple], system
    )
    archive.add("bin/busybox", (folder / f"busybox-{architecture}").read_bytes())
    archive.add("init", (pathlib.Path(__file__).parent / "init.sh").read_bytes())
    archive.add(
        "cases",
        "".join(
            f"{case}|{options}|{arguments}\n" for case, options, arguments, _ in CASES
        ).encode(),
    )
    archive.add(
        "replays",
        "".join(
            f"{expected}|{arguments}\n" for expected, arguments in (REPLAYS if is_arm else [])
        ).encode(),
    )
    archive.write(folder / f"root-{architecture}.cpio")
    return folder / f"root-{architecture}.cpio"


def build_truth(path, architecture, system, protection):
    """Builds the programs with known stacks; "standard" signs return addresses on arm64."""
    command = ["gcc"]
    if architecture == "arm64":
        command = [
            "clang-14",
            "--target=aarch64-linux-gnu",
            f"--sysroot={system}",
            "-fuse-ld=lld-14",
            f"-mbranch-protection={protection}",
            "-march=armv8.3-a",
            "-fasynchronous-unwind-tables",
        ]
    subprocess.run(
        [
            *command,
            "-O2",
            "-g",
            "-fomit-frame-pointer",
            "-pthread",
            "-Wl,--build-id",
            ROOT / "tests/agent/truth.c",
            "-o",
            path,
        ],
        check=True,
    )
    return path


def boot(name, folder, root, log):
    """Starts the virtual machine and waits for its end; returns its output."""
    architecture = "arm64" if name.endswith("-arm64") else "amd64"
    command = [
        *QEMU[architecture],
        "-accel",
        "tcg,thread=multi",
        "-smp",
        "2",
        "-m",
        "1024",
        "-nodefaults",
        "-display",
        "none",
        "-no-reboot",
        "-nic",
        "none",
        "-serial",
        "stdio",
        "-kernel",
        folder / name / "vmlinuz",
        "-initrd",
        root,
    ]
    with open(log, "wb") as out:
        try:
            subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                timeout=TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            out.write(b"\n@timeout\n")
    return log.read_text(errors="replace").replace("\r", "")


def files_of(console):
    """{name: bytes} of the files in its output."""
    return {
        name: base64.b64decode(text)
        for name, text in re.findall(r"^@file (\S+)\n(.*?)^@end \1$", console, re.M | re.S)
    }


def stacks(profile):
    """[(functions from the root, samples)]"""

    def names(location_id):
        lines = profile.locations[location_id]["line"]
        return [profile.functions[line["function_id"]]["name"] for line in reversed(lines)] or ["?"]

    types = profile.sample_types
    counted = types.index(("waits", "count")) if ("waits", "count") in types else 0
    return [
        (
            [name for location_id in reversed(sample.stack) for name in names(location_id)],
            sample.values[counted],
        )
        for sample in profile.samples
        if sample.values[counted]
    ]


def is_as_expected(names, wanted):
    """Only frames of the C library may be between the expected ones, and no frame may occur
    twice."""
    return [name for name in names if name in wanted] == wanted


def judge_case(case, files, folder):
    """Returns (problem or None, summary)."""
    name, _, _, wanted = case
    log = files.get(f"{name}.log", b"").decode(errors="replace").strip()
    if f"{name}.pb.gz" not in files:
        return f"{name}: no profile: {log}", ""
    if ("bounded loops" in log) != ("--bounded-loops" in case[1] or folder.name.startswith("5.10")):
        return f"{name}: the wrong form of the kernel program: {log}", ""
    found = stacks(pprof_reader.load(folder / f"{name}.pb.gz"))
    total = sum(count for _, count in found)
    whole = sum(count for names, count in found if names[0] == wanted[0])
    leaves = sum(count for names, count in found if wanted[-1] in names)
    expected = sum(count for names, count in found if is_as_expected(names, wanted))
    is_fine = (
        total >= SAMPLES_MIN
        and whole >= WHOLE * total
        and leaves >= LEAVES * total
        and expected >= WHOLE * leaves
    )
    numbers = f"{total} samples, {whole} to the root, {expected} of {leaves} as expected"
    return None if is_fine else f"{name}: {numbers}: {log}", f"{name} {numbers}"


def judge_replays(files, is_arm):
    """Problems in the results of both unwinders for the same stacks."""
    lines = files.get("replays", b"").decode(errors="replace").splitlines()
    lines = [line for line in lines if line.startswith("samples=")]
    if not is_arm:
        return []
    if b"paca" not in files.get("processor", b""):
        return ["the processor signs no addresses"]
    if len(lines) != len(REPLAYS):
        return [f"replays: {files.get('replays')}"]
    return [
        f"replay of {arguments}: {line}"
        for (_, arguments), line in zip(REPLAYS, lines)
        if min(map(int, re.findall(r"(?:samples|agree|complete)=(\d+)", line))) < 99
    ]


def judge(console, folder):
    """Returns ([problems], [summaries])."""
    files = files_of(console)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    if "@done" not in console:
        return ["the machine did not come to its end"], []
    is_arm = folder.name.endswith("-arm64")
    wrong, seen = (
        judge_replays(files, is_arm),
        [f"{len(REPLAYS)} replays as libdwfl"] if is_arm else [],
    )
    for case in CASES:
        problem, what = judge_case(case, files, folder)
        wrong += [problem] if problem else []
        seen += [what] if what else []
    doctor = files.get("doctor", b"").decode(errors="replace")
    if not re.search(r"^ok +sampling$", doctor, re.M):
        wrong.append(f"doctor: {doctor}")
    agent = files.get("agent.log", b"").decode(errors="replace")
    samples = re.search(r"samples=(\d+)", agent.split("so far")[-1])
    batches = re.search(r"^batches (\d+)$", agent, re.M)
    if (
        "status 0" not in agent
        or not samples
        or int(samples[1]) < SAMPLES_MIN
        or int(batches[1]) < 2
    ):
        wrong.append(f"agent: {agent}")
    else:
        seen.append(f"agent {samples[1]} samples in {batches[1]} batches")
    complaints = [
        line
        for line in files.get("dmesg", b"").decode(errors="replace").splitlines()
        if COMPLAINTS.search(line)
    ]
    return wrong + complaints[:5], seen


def test(name, folder):
    """Whether the kernel passed."""
    root = build_root(name, folder)
    release = (folder / name / "release").read_text().strip()
    for attempt in range(1, ATTEMPTS + 1):
        start = time.monotonic()
        log = folder / name / f"console-{attempt}.log"
        console = boot(name, folder, root, log)
        wrong, seen = judge(console, folder / name)
        took = f"({time.monotonic() - start:.0f} s)"
        if not wrong:
            print("\n    ".join([f"ok {name} {release} {took}", *seen]), flush=True)
            return True
        for text in wrong:
            print(f"attempt {attempt} of {name} {release} {took}: {text}", flush=True)
        print(f"    the whole console: {log.relative_to(ROOT)}", flush=True)
    print(f"not ok {name} {release}", flush=True)
    return False


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    return 0 if all([test(name, folder) for name in sys.argv[2:]]) else 1


if __name__ == "__main__":
    sys.exit(main())
