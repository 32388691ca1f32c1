"""Small profiles in every format; the code under test generates none of them."""

import gzip
import json
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))
import profiles  # noqa: E402

FOLDED = b"main;parse;read 30\nmain;parse 10\nmain;draw 60\n"
FOLDED_SLOWER = b"main;parse;read 90\nmain;parse 10\nmain;draw 60\nmain;wait 40\n"

PERF_SCRIPT = b"""app  1234 10.000001:   10101010 cpu-clock:
\t          401136 leaf+0x6 (/usr/bin/app)
\t          401150 middle+0x10 (/usr/bin/app)
\t          401170 main+0x10 (/usr/bin/app)

app  1234 10.010001:   10101010 cpu-clock:
\t          401150 middle+0x10 (/usr/bin/app)
\t          401170 main+0x10 (/usr/bin/app)

"""

CPUPROFILE = json.dumps(
    {
        "nodes": [
            {
                "id": 1,
                "callFrame": {
                    "functionName": "(root)",
                    "scriptId": "0",
                    "url": "",
                    "lineNumber": -1,
                    "columnNumber": -1,
                },
                "children": [2],
            },
            {
                "id": 2,
                "callFrame": {
                    "functionName": "render",
                    "scriptId": "7",
                    "url": "app.js",
                    "lineNumber": 10,
                    "columnNumber": 4,
                },
                "children": [3],
            },
            {
                "id": 3,
                "callFrame": {
                    "functionName": "layout",
                    "scriptId": "7",
                    "url": "app.js",
                    "lineNumber": 20,
                    "columnNumber": 4,
                },
            },
        ],
        "startTime": 1000,
        "endTime": 4000,
        "samples": [2, 3, 3],
        "timeDeltas": [1000, 1000, 1000],
    }
).encode()

SPEEDSCOPE = json.dumps(
    {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "shared": {"frames": [{"name": "outer"}, {"name": "inner"}]},
        "profiles": [
            {
                "type": "sampled",
                "name": "one",
                "unit": "milliseconds",
                "startValue": 0,
                "endValue": 30,
                "samples": [[0, 1], [0]],
                "weights": [20, 10],
            }
        ],
    }
).encode()


def pprof(sample_count=50, seed=1):
    """Raw pprof."""
    return profiles.make_pprof(sample_count, function_count=200, seed=seed)


def pprof_gzip(sample_count=50, seed=1):
    return gzip.compress(pprof(sample_count, seed), mtime=0)


def zstd(data):
    """Compresses with the zstd program; without it, writes one raw block per 128 KiB (RFC 8878)."""
    program = shutil.which("zstd")
    if program:
        return subprocess.run(
            [program, "-q", "-c"], input=data, capture_output=True, check=True
        ).stdout
    out = bytearray(b"\x28\xb5\x2f\xfd\xa0" + len(data).to_bytes(4, "little"))
    chunks = [data[i : i + 131072] for i in range(0, len(data), 131072)] or [b""]
    for number, chunk in enumerate(chunks):
        is_last = number == len(chunks) - 1
        out += (len(chunk) << 3 | is_last).to_bytes(3, "little") + chunk
    return bytes(out)


def zstd_zeros(size):
    """A frame of size zero bytes as run-length blocks: a bomb of 4 bytes per 128 KiB."""
    out = bytearray(b"\x28\xb5\x2f\xfd\xe0" + size.to_bytes(8, "little"))
    left = size
    while left:
        run = min(left, 131072)
        left -= run
        out += (run << 3 | 1 << 1 | (left == 0)).to_bytes(3, "little") + b"\0"
    return bytes(out)


def every_format():
    """Tuples of name, bytes, the format that the server must detect, and the sample types."""
    cpu = [{"type": "samples", "unit": "count"}, {"type": "cpu", "unit": "nanoseconds"}]
    return [
        ("pprof raw", pprof(), "pprof", cpu),
        ("pprof gzip", pprof_gzip(), "pprof", cpu),
        ("pprof zstd", zstd(pprof()), "pprof", cpu),
        ("folded", FOLDED, "folded", None),
        ("folded gzip", gzip.compress(FOLDED, mtime=0), "folded", None),
        ("perf script", PERF_SCRIPT, "perf-script", None),
        ("cpuprofile", CPUPROFILE, "cpuprofile", None),
        ("speedscope", SPEEDSCOPE, "speedscope", None),
    ]
