"""Generates deterministic CPU profiles in pprof's format that resemble real ones, without C code.

A call tree grows from a fixed seed: a few hot paths, a long tail, recursion, inlined lines, two
sample types. The number of samples determines the size.
"""

import gzip
import random


def varint(number):
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def integer(field, number):
    return varint(field << 3) + varint(number)


def block(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


def packed(field, numbers):
    return block(field, b"".join(map(varint, numbers)))


class Strings:
    def __init__(self):
        self.index = {"": 0}

    def __getitem__(self, text):
        return self.index.setdefault(text, len(self.index))


def make_pprof(sample_count, function_count=2000, seed=1, max_depth=60):
    """Returns uncompressed pprof bytes."""
    rng = random.Random(seed)
    strings = Strings()
    out = [
        block(1, integer(1, strings["samples"]) + integer(2, strings["count"])),
        block(1, integer(1, strings["cpu"]) + integer(2, strings["nanoseconds"])),
    ]
    names = [
        f"example.com/service/pkg{i % 97}.(*Type{i % 31}).Method{i}" for i in range(function_count)
    ]
    callees = [
        [rng.randrange(function_count) for _ in range(rng.randint(1, 6))]
        for _ in range(function_count)
    ]
    for _ in range(sample_count):
        stack = [rng.randrange(8)]
        for _ in range(min(max_depth - 1, int(rng.paretovariate(0.6)) + 8)):
            choices = callees[stack[-1]]
            stack.append(choices[min(int(rng.expovariate(1.2)), len(choices) - 1)])
        count = int(rng.paretovariate(1.1))
        out.append(
            block(
                2,
                packed(1, [f + 1 for f in reversed(stack)])
                + packed(2, [count, count * 10_000_000 + rng.randrange(10_000_000)]),
            )
        )
    out.append(
        block(
            3,
            integer(1, 1)
            + integer(2, 0x400000)
            + integer(3, 0x8000000)
            + integer(5, strings["/usr/bin/service"])
            + integer(6, strings["0123456789abcdef0123456789abcdef01234567"]),
        )
    )
    for i in range(function_count):
        out.append(
            block(
                4,
                integer(1, i + 1)
                + integer(2, 1)
                + integer(3, 0x400000 + i * 64)
                + block(4, integer(1, i + 1) + integer(2, 10 + i % 900)),
            )
        )
        out.append(
            block(
                5,
                integer(1, i + 1)
                + integer(2, strings[names[i]])
                + integer(3, strings[names[i]])
                + integer(4, strings[f"/src/service/pkg{i % 97}/file{i % 211}.go"]),
            )
        )
    out.append(block(11, integer(1, strings["cpu"]) + integer(2, strings["nanoseconds"])))
    out.append(
        integer(12, 10_000_000) + integer(9, 1767323045_000000000) + integer(10, 30_000_000_000)
    )
    out.extend(block(6, text.encode()) for text in strings.index)
    return b"".join(out)


def make_gzip(compressed_bytes, seed=1):
    """Returns a gzip pprof whose size is within a tenth of compressed_bytes."""
    samples = max(10, compressed_bytes // 40)
    for _ in range(6):
        data = gzip.compress(make_pprof(samples, seed=seed), 6, mtime=0)
        if abs(len(data) - compressed_bytes) * 10 <= compressed_bytes:
            break
        samples = max(1, int(samples * compressed_bytes / len(data)))
    return data
