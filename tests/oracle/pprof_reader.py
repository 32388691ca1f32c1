"""An independent reader of pprof files: slow, plain Python, written only from profile.proto and the
documentation of github.com/google/pprof. Tests compare Perfolio's numbers with it.

    profile = pprof_reader.load("cpu.pb.gz")
    rows = profile.top(0)                      # {name: (flat, cum)}
    rows = pprof_reader.diff_top(a, b, 0, normalised=True)
"""

import gzip
import math
import re


class Malformed(Exception):
    pass


def fields_of(data):
    """Yields (number, value) for each field of a message; value is an int or bytes."""
    at = 0

    def varint():
        nonlocal at
        number = shift = 0
        while True:
            if at >= len(data) or shift >= 70:
                raise Malformed("varint")
            byte = data[at]
            at += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number & (1 << 64) - 1

    while at < len(data):
        tag = varint()
        kind = tag & 7
        if kind == 0:
            yield tag >> 3, varint()
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            if at + size > len(data):
                raise Malformed("fixed")
            yield tag >> 3, int.from_bytes(data[at : at + size], "little")
            at += size
        elif kind == 2:
            size = varint()
            if at + size > len(data):
                raise Malformed("length")
            yield tag >> 3, bytes(data[at : at + size])
            at += size
        else:
            raise Malformed(f"wire type {kind}")


def numbers_of(value):
    """The numbers of one occurrence of a repeated field, packed or not."""
    if isinstance(value, int):
        return [value]
    found, number, shift = [], 0, 0
    for byte in value:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            found.append(number & (1 << 64) - 1)
            number = shift = 0
    if shift:
        raise Malformed("packed")
    return found


def signed(number):
    return number - (1 << 64) if number >> 63 else number


def message(data, names, repeated=()):
    """A dict of a message's fields with the given names; strings stay indexes."""
    made = {name: [] if name in repeated else 0 for name in names.values()}
    for number, value in fields_of(data):
        name = names.get(number)
        if name is None:
            continue
        if name in repeated:
            made[name].append(value)
        else:
            made[name] = value
    return made


PROFILE = {
    1: "sample_type",
    2: "sample",
    3: "mapping",
    4: "location",
    5: "function",
    6: "string_table",
    7: "drop_frames",
    8: "keep_frames",
    9: "time_nanos",
    10: "duration_nanos",
    11: "period_type",
    12: "period",
    13: "comment",
    14: "default_sample_type",
    15: "doc_url",
}
MAPPING = {
    1: "id",
    2: "memory_start",
    3: "memory_limit",
    4: "file_offset",
    5: "filename",
    6: "build_id",
    7: "has_functions",
    8: "has_filenames",
    9: "has_line_numbers",
    10: "has_inline_frames",
}
LOCATION = {1: "id", 2: "mapping_id", 3: "address", 4: "line", 5: "is_folded"}
LINE = {1: "function_id", 2: "line", 3: "column"}
FUNCTION = {1: "id", 2: "name", 3: "system_name", 4: "filename", 5: "start_line"}
LABEL = {1: "key", 2: "str", 3: "num", 4: "num_unit"}


class Sample:
    def __init__(self, stack, values, labels):
        self.stack = stack  # location ids, leaf first
        self.values = values
        self.labels = labels  # (key, text) or (key, number, unit)


class Profile:
    def __init__(self, data):
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        raw = message(
            data,
            PROFILE,
            {"sample_type", "sample", "mapping", "location", "function", "string_table", "comment"},
        )
        self.strings = raw["string_table"]
        text = self.text
        self.sample_types = []
        for entry in raw["sample_type"]:
            kind = message(entry, {1: "type", 2: "unit"})
            self.sample_types.append((text(kind["type"]), text(kind["unit"])))
        self.functions = {}
        for entry in raw["function"]:
            function = message(entry, FUNCTION)
            for name in ("name", "system_name", "filename"):
                function[name] = text(function[name])
            self.functions[function["id"]] = function
        self.mappings = {}
        for entry in raw["mapping"]:
            mapping = message(entry, MAPPING)
            mapping["filename"] = text(mapping["filename"])
            mapping["build_id"] = text(mapping["build_id"])
            self.mappings[mapping["id"]] = mapping
        self.locations = {}
        for entry in raw["location"]:
            location = message(entry, LOCATION, {"line"})
            location["line"] = [message(line, LINE) for line in location["line"]]
            self.locations[location["id"]] = location
        self.samples = [self.read_sample(entry) for entry in raw["sample"]]
        self.drop_frames = text(raw["drop_frames"])
        self.keep_frames = text(raw["keep_frames"])
        self.comments = [text(i) for entry in raw["comment"] for i in numbers_of(entry)]
        self.default_sample_type = text(raw["default_sample_type"])
        self.doc_url = text(raw["doc_url"])
        self.time_nanos = signed(raw["time_nanos"])
        self.duration_nanos = signed(raw["duration_nanos"])
        self.period = signed(raw["period"])
        kind = message(raw["period_type"] or b"", {1: "type", 2: "unit"})
        self.period_type = (text(kind["type"]), text(kind["unit"]))

    def text(self, index):
        return self.strings[signed(index)].decode("utf-8", "surrogateescape")

    def read_sample(self, data):
        raw = message(
            data, {1: "location_id", 2: "value", 3: "label"}, {"location_id", "value", "label"}
        )
        labels = []
        for entry in raw["label"]:
            label = message(entry, LABEL)
            key = self.text(label["key"])
            if label["str"]:
                labels.append((key, self.text(label["str"])))
            else:
                labels.append((key, signed(label["num"]), self.text(label["num_unit"])))
        return Sample(
            [i for entry in raw["location_id"] for i in numbers_of(entry)],
            [signed(i) for entry in raw["value"] for i in numbers_of(entry)],
            labels,
        )

    def facts(self):
        """The contents of a profile without its ids: equal before and after a round trip."""

        def frame(location_id):
            location = self.locations[location_id]
            mapping = self.mappings.get(location["mapping_id"])
            mapping = tuple(mapping[n] for n in list(MAPPING.values())[1:]) if mapping else None
            lines = tuple(
                tuple(self.functions[line["function_id"]][n] for n in list(FUNCTION.values())[1:])
                + (line["line"], line["column"])
                for line in location["line"]
            )
            return location["address"], bool(location["is_folded"]), mapping, lines

        frames = {i: frame(i) for i in self.locations}
        return {
            "types": self.sample_types,
            "period_type": self.period_type,
            "period": self.period,
            "time": self.time_nanos,
            "duration": self.duration_nanos,
            "comments": self.comments,
            "drop": self.drop_frames,
            "keep": self.keep_frames,
            "doc": self.doc_url,
            "default": self.default_sample_type,
            "frames": list(frames.values()),
            "functions": [
                tuple(f[n] for n in list(FUNCTION.values())[1:]) for f in self.functions.values()
            ],
            "mappings": [
                tuple(m[n] for n in list(MAPPING.values())[1:]) for m in self.mappings.values()
            ],
            "samples": [([frames[i] for i in s.stack], s.values, s.labels) for s in self.samples],
        }

    # ---- frames that `go tool pprof` removes when it loads a file ----

    def pruned_stacks(self):
        """For each sample the list of its function names, leaf first, after drop_frames and
        keep_frames."""
        lines = {i: list(location["line"]) for i, location in self.locations.items()}
        # Locations with a line that is dropped; those of them whose outermost line is dropped, so
        # that nothing of the location stays.
        has_dropped_line, is_all_dropped = set(), set()
        if self.drop_frames:
            drop = re.compile("^(?:" + self.drop_frames + ")$")
            keep = re.compile("^(?:" + self.keep_frames + ")$") if self.keep_frames else None
            for i in lines:
                for at in range(len(lines[i]) - 1, -1, -1):
                    name = self.functions[lines[i][at]["function_id"]]["name"]
                    if name and is_dropped(name, drop, keep):
                        has_dropped_line.add(i)
                        if at == len(lines[i]) - 1:
                            is_all_dropped.add(i)
                        else:
                            lines[i] = lines[i][at + 1 :]
                        break
        for sample in self.samples:
            stack, has_user = sample.stack, False
            for at in range(len(stack) - 1, -1, -1):
                if stack[at] not in has_dropped_line:
                    has_user = True
                elif has_user:
                    stack = stack[at + 1 :] if stack[at] in is_all_dropped else stack[at:]
                    break
            yield [frame for i in stack for frame in self.frames_of(i, lines[i])]

    def frames_of(self, location_id, lines):
        if lines:
            return [self.name_of(location_id, line) for line in lines]
        return [self.raw_name_of(location_id)]

    def name_of(self, location_id, line):
        function = self.functions[line["function_id"]]
        return function["name"] or function["system_name"] or self.raw_name_of(location_id)

    def raw_name_of(self, location_id):
        location = self.locations[location_id]
        mapping = self.mappings.get(location["mapping_id"])
        if not mapping or not mapping["filename"]:
            return f"{location['address']:#x}" if location["address"] else "<unknown>"
        base = mapping["filename"].rstrip("/").rpartition("/")[2]
        if not location["address"]:
            return f"[{base}]"
        offset = location["address"] - mapping["memory_start"] + mapping["file_offset"]
        return f"{base}+{offset % 2**64:#x}"

    def top(self, index, scale=1):
        """{name: (flat, cum)} of one sample type, without names whose values are both 0 before
        scaling."""
        flat, cum = {}, {}
        for sample, stack in zip(self.samples, self.pruned_stacks()):
            value = sample.values[index]
            if stack:
                flat[stack[0]] = flat.get(stack[0], 0) + value
            for name in set(stack):
                cum[name] = cum.get(name, 0) + value
        return {
            name: (scaled(flat.get(name, 0), scale), scaled(cum[name], scale))
            for name in cum
            if (flat.get(name, 0), cum[name]) != (0, 0)
        }

    def total(self, index):
        return sum(sample.values[index] for sample in self.samples)


def is_dropped(name, drop, keep):
    """Whether drop_frames removes a function of this name. pprof compares the name without its
    argument list and a leading dot."""
    name = name[1:] if name.startswith(".") else name
    found = [
        m for m in re.finditer(r"\(anonymous namespace\)|operator\(\)|\(", name) if m.group() == "("
    ]
    if found:
        name = name[: found[0].start()]
    return bool(drop.match(name)) and not (keep and keep.match(name))


def scaled(value, scale):
    """Rounded half away from zero, as Go's math.Round."""
    if scale == 1:
        return value
    number = value * scale
    return int(math.copysign(math.floor(abs(number) + 0.5), number))


def load(path):
    with open(path, "rb") as file:
        return Profile(file.read())


def diff_top(a, b, index, normalised=False):
    """{name: (flat_a, cum_a, flat_b, cum_b)}. normalised: the sums of b are scaled to the total of
    a, and are 0 if one total is not positive."""
    scale = 1
    if normalised:
        has_shares = a.total(index) > 0 and b.total(index) > 0
        scale = a.total(index) / b.total(index) if has_shares else 0.0
    rows_a, rows_b = a.top(index), b.top(index, scale)
    return {
        name: rows_a.get(name, (0, 0)) + rows_b.get(name, (0, 0)) for name in {*rows_a, *rows_b}
    }
