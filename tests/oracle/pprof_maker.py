"""Builds unusual but valid pprof files, with features that the format allows and few writers use.

    for name, data in pprof_maker.all_profiles(): ...      # raw bytes, deterministic
"""

import random


def varint(number):
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def block(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


class Maker:
    """The tables of a profile; id_of(index) determines ids."""

    def __init__(self, types, id_of=lambda index: index + 1, is_packed=True, has_unknown=False):
        self.strings = {"": 0}
        self.id_of, self.is_packed, self.has_unknown = id_of, is_packed, has_unknown
        self.functions, self.mappings, self.locations, self.samples = [], [], [], []
        self.types = [(self.string(a), self.string(b)) for a, b in types]
        self.tail = b""

    def string(self, text):
        return self.strings.setdefault(text, len(self.strings))

    def function(self, name, filename="", system_name=None, start_line=0):
        system_name = name if system_name is None else system_name
        self.functions.append(
            number(1, self.id_of(len(self.functions)))
            + number(2, self.string(name))
            + number(3, self.string(system_name))
            + number(4, self.string(filename))
            + number(5, start_line)
        )
        return self.id_of(len(self.functions) - 1)

    def mapping(self, filename, start=0x400000, limit=0x500000, build_id="", flags=1):
        self.mappings.append(
            number(1, self.id_of(len(self.mappings)))
            + number(2, start)
            + number(3, limit)
            + number(4, 0x1000)
            + number(5, self.string(filename))
            + number(6, self.string(build_id))
            + b"".join(number(7 + i, flags >> i & 1) for i in range(4))
        )
        return self.id_of(len(self.mappings) - 1)

    def location(self, lines=(), mapping=0, address=0, is_folded=0):
        data = number(1, self.id_of(len(self.locations))) + number(2, mapping) + number(3, address)
        for line in lines:
            function, at, column = (tuple(line) + (0, 0))[:3]
            data += block(4, number(1, function) + number(2, at) + number(3, column))
        self.locations.append(data + number(5, is_folded))
        return self.id_of(len(self.locations) - 1)

    def numbers(self, field, values):
        if self.is_packed:
            return block(field, b"".join(map(varint, values))) if values else b""
        return b"".join(number(field, value) for value in values)

    def sample(self, stack, values, labels=()):
        data = self.numbers(1, stack) + self.numbers(2, values)
        for label in labels:
            key, value = label[:2]
            if isinstance(value, str):
                data += block(3, number(1, self.string(key)) + number(2, self.string(value)))
            else:
                unit = label[2] if len(label) > 2 else ""
                data += block(
                    3, number(1, self.string(key)) + number(3, value) + number(4, self.string(unit))
                )
        self.samples.append(data)

    def bytes(self):
        parts = [block(1, number(1, a) + number(2, b)) for a, b in self.types]
        parts += [block(2, data) for data in self.samples]
        parts += [block(3, data) for data in self.mappings]
        parts += [block(4, data) for data in self.locations]
        parts += [block(5, data) for data in self.functions]
        tail = self.tail
        parts += [block(6, text.encode("utf-8", "surrogateescape")) for text in self.strings]
        if self.has_unknown:
            parts.insert(
                1,
                block(99, b"later")
                + number(100, 7)
                + varint(101 << 3 | 1)
                + b"12345678"
                + varint(102 << 3 | 5)
                + b"1234",
            )
        return b"".join(parts) + tail

    def scalars(
        self,
        drop="",
        keep="",
        comments=(),
        default="",
        doc="",
        time=0,
        duration=0,
        period=0,
        period_type=None,
    ):
        for field, text in ((7, drop), (8, keep), (14, default), (15, doc)):
            self.tail += number(field, self.string(text)) if text else b""
        for field, value in ((9, time), (10, duration), (12, period)):
            self.tail += number(field, value) if value else b""
        if period_type:
            self.tail += block(
                11, number(1, self.string(period_type[0])) + number(2, self.string(period_type[1]))
            )
        if comments:
            self.tail += self.numbers(13, [self.string(text) for text in comments])


def tangle(maker, rng, sample_count=120, low=1, high=10**6):
    """Random stacks with inlined calls, recursion, labels and, if low is negative, negative
    values."""
    mappings = [
        maker.mapping("/usr/bin/app", build_id="abc1"),
        maker.mapping("/lib/libc.so.6", 0x7F0000000000, 0x7F0000100000, flags=0),
    ]
    functions = [
        maker.function(f"pkg.Function{i}", f"/src/f{i % 7}.go", start_line=i) for i in range(30)
    ]
    locations = []
    for i in range(60):
        lines = [
            (rng.choice(functions), rng.randrange(500), rng.randrange(80))
            for _ in range(rng.choice((0, 1, 1, 1, 2, 3)))
        ]
        locations.append(
            maker.location(lines, rng.choice(mappings + [0]), 0x400000 + i * 16, i % 9 == 0)
        )
    for i in range(sample_count):
        stack = [rng.choice(locations) for _ in range(rng.choice((0, 1, 3, 8, 20)))]
        labels = [("thread", rng.choice(("main", "io")))] if i % 3 == 0 else []
        labels += [("bytes", rng.choice((0, 64, -1, 4096)), "bytes")] if i % 4 == 0 else []
        labels += [("thread", "second")] if i % 12 == 0 else []
        maker.sample(stack, [rng.randint(low, high) for _ in maker.types], labels)
    return maker


CPU = [("samples", "count"), ("cpu", "nanoseconds")]
HEAP = [
    ("alloc_objects", "count"),
    ("alloc_space", "bytes"),
    ("inuse_objects", "count"),
    ("inuse_space", "bytes"),
]


def dropping():
    """drop_frames and keep_frames: at the leaf, in the middle, at the root, inlined, kept."""
    maker = Maker(CPU)
    names = [
        "main",
        "work",
        "runtime.gopark",
        "runtime.mcall",
        "runtime.keep",
        "leaf",
        "operator()(int)",
        ".dotted",
    ]
    f = {name: maker.function(name, name + ".c") for name in names}
    loc = {name: maker.location([(f[name], 1)], 0, 0x1000 + i) for i, name in enumerate(names)}
    inlined = maker.location([(f["leaf"], 1), (f["runtime.gopark"], 2), (f["work"], 3)], 0, 0x2000)
    top = maker.location([(f["leaf"], 1), (f["work"], 3), (f["runtime.mcall"], 2)], 0, 0x2010)
    stacks = [
        ["leaf", "runtime.gopark", "work", "main"],
        ["leaf", "runtime.mcall"],
        ["runtime.gopark", "main"],
        ["leaf", "runtime.keep", "main"],
        ["work", "runtime.gopark", "leaf", "runtime.mcall", "main"],
        ["leaf", "operator()(int)", "main"],
        ["work", ".dotted", "main"],
        ["main"],
    ]
    for i, stack in enumerate(stacks):
        maker.sample([loc[name] for name in stack], [1 << i, 1000 << i])
    maker.sample([inlined, loc["main"]], [1 << 20, 7])
    maker.sample([top, loc["main"]], [1 << 21, 9])
    maker.sample([inlined], [1 << 22, 11])
    maker.scalars(drop=r"runtime\..*|operator\(\)|dotted", keep=r"runtime\.keep")
    return maker


def nameless():
    """Binaries with the same file name, empty and repeated names, locations without lines."""
    maker = Maker([("objects", "count"), ("cpu", "nanoseconds")])
    binaries = [
        maker.mapping("/a/app"),
        maker.mapping("/b/app", 0x600000, 0x700000),
        maker.mapping("", 0x800000, 0x900000),
    ]
    twice = [
        maker.function("twice", "one.c"),
        maker.function("twice", "two.c"),
        maker.function("", "", "_system_only"),
        maker.function("", "", ""),
    ]
    bare = [maker.location((), binary, 0x400000 + i) for i, binary in enumerate(binaries + [0])]
    named = [
        maker.location([(function, 1)], binaries[0], 0x5000 + i) for i, function in enumerate(twice)
    ]
    rng = random.Random(5)
    for i in range(40):
        maker.sample([rng.choice(bare + named) for _ in range(rng.randrange(6))], [i, i * 10])
    return maker


def bytes_as_names():
    """Names that are invalid UTF-8, very long, or full of the separators of other formats."""
    maker = Maker(CPU)
    names = [
        "caf\udce9",
        "x" * 5000,
        "a;b c\td",
        "<script>alert(1)</script>",
        '"quoted\\"',
        "main (inline)",
    ]
    locations = [maker.location([(maker.function(name, "f.c"), 3)]) for name in names]
    for i, location in enumerate(locations):
        maker.sample([location, locations[0]], [i + 1, (i + 1) * 100])
    return maker


def fields():
    """A profile with every field set."""
    maker = tangle(Maker(CPU), random.Random(3), 30)
    maker.scalars(
        comments=["one", "two"],
        default="samples",
        doc="https://example.com/doc",
        time=1700000000123456789,
        duration=30 * 10**9,
        period=10**7,
        period_type=("cpu", "nanoseconds"),
    )
    return maker


def sparse_id(index):
    return (index * 0x9E3779B97F4A7C15 + 0xDEADBEEF) & (1 << 64) - 1 | 1


def all_profiles():
    makers = {
        "cpu": tangle(Maker(CPU), random.Random(1)),
        "heap": tangle(Maker(HEAP), random.Random(2), 300),
        "delta": tangle(Maker(HEAP), random.Random(4), 200, low=-(10**6)),
        "large-values": tangle(Maker(CPU), random.Random(6), 50, 2**55, 2**56),
        "sparse-ids": tangle(Maker(CPU, sparse_id), random.Random(7)),
        "ids-backwards": tangle(Maker(CPU, lambda index: 100000 - index), random.Random(8)),
        "unpacked": tangle(Maker(CPU, is_packed=False, has_unknown=True), random.Random(9)),
        "repeated-types": tangle(
            Maker([("", ""), ("cpu", "ms"), ("", ""), ("cpu", "")]), random.Random(10)
        ),
        "no-samples": Maker(CPU),
        "dropping": dropping(),
        "nameless": nameless(),
        "bytes-as-names": bytes_as_names(),
        "fields": fields(),
    }
    return {name: maker.bytes() for name, maker in makers.items()}
