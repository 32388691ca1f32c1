"""Random pprof profiles in every report: top, flame, folded, labels, diff and merge with random
filters and groupings.

The profiles have recursion, inlined calls, frames without names, negative values and several sample
types. The tests compare each report with plain arithmetic over lists of frames, which follows
lib/profile/report/view.h and filter.h. They need no server."""

import collections
import functools
import random
import re
import sys

import pytest

from conftest import ROOT, rest_long

sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import pprof_maker  # noqa: E402

TYPES = [("samples", "count"), ("cpu", "nanoseconds"), ("samples", "count")]
NAMES = [
    "main",
    "work",
    "a b",
    "f(int, char (*)(int))",
    "",
    "läuft",
    "x/y.(*T).m",
    "work;1",
    "g 7",
    "\x9b2J\x7f\x01é\u202e",
]
FILES = ["", "/src/main.go", "/src/b.py", "c d.c"]
BINARIES = ["/usr/bin/app", "/lib/libc (x86).so", "[kernel.kallsyms]", ""]
PATTERNS = ["main", "^work$", "^$", "[.]go", "libc", "(?i)LÄUFT|app", "a b", "T|g", "nothing here"]
LABEL_RULES = [
    "thread=io",
    "thread=gc",
    "thread!=main",
    "thread=",
    "thread!=",
    "size=64",
    "size=-1 bytes",
    "size=0..100",
    "size!=..63 bytes",
    "size=1024.. bytes",
    "size=64 ms",
    "at=-1..7",
    "at=1..400 ms",
    "at!=9",
    "at=..250 ",
    r"a\=b\!=x=1",
    r"a\=b\!!=64",
    "thread=nobody",
]
MAPPING_START, MAPPING_OFFSET = 0x400000, 0x1000  # the values of pprof_maker
GROUPS = ["function", "file", "line", "address", "binary", "thread", "label:size"]

Line = collections.namedtuple("Line", "name system file start line")
Location = collections.namedtuple("Location", "lines binary address")
Sample = collections.namedtuple("Sample", "stack values labels")  # stack: locations, leaf first


@functools.cache
def random_profile(seed):
    rng = random.Random(seed)
    functions = [
        (name, rng.choice((name, "_Z" + name, "")), rng.choice(FILES), number)
        for name in NAMES
        for number in (0, 3)
    ]
    locations = [
        Location(
            [
                Line(*rng.choice(functions), rng.randrange(3))
                for _ in range(rng.choice((0, 1, 1, 1, 2, 4)))
            ],
            rng.choice(BINARIES),
            rng.choice((0, 0x1000 + i)),
        )
        for i in range(40)
    ]
    some = rng.sample(locations, 6)
    samples = []
    for i in range(rng.choice((1, 60, 200))):
        stack = [
            rng.choice(rng.choice((some, locations)))
            for _ in range(rng.choice((0, 1, 2, 5, 9, 25)))
        ]
        labels = [("thread", rng.choice(("io", "main")))] * rng.choice((0, 1, 1, 2))
        labels += [("size", rng.choice((-1, 64)), "bytes")] * rng.choice((0, 0, 1))
        if seed % 3 == 0:  # several values, numbers with and without units, keys that need escapes
            labels += [("thread", rng.choice(("io", "gc")))]
            labels += [("at", rng.randrange(-3, 500), rng.choice(("", "ms")))]
            labels += [("a=b!", rng.choice(("x=1", "64")))] * rng.choice((0, 1))
        if seed % 3 == 1:
            labels += [("size", 1 << rng.randrange(40), "bytes")]
        samples.append(Sample(stack, [rng.choice((0, 1, 7, -3, 10**12)) for _ in TYPES], labels))
    return samples


def encode(samples):
    maker = pprof_maker.Maker(TYPES)
    functions, mappings, locations = {}, {}, {}
    for sample in samples:
        for location in sample.stack:
            for line in location.lines:
                key = line[:4]
                if key not in functions:
                    functions[key] = maker.function(line.name, line.file, line.system, line.start)
            if location.binary not in mappings:
                mappings[location.binary] = maker.mapping(location.binary)
            key = (tuple(location.lines), location.binary, location.address)
            if key not in locations:
                lines = [(functions[line[:4]], line.line) for line in location.lines]
                locations[key] = maker.location(lines, mappings[location.binary], location.address)
        stack = [
            locations[tuple(place.lines), place.binary, place.address] for place in sample.stack
        ]
        maker.sample(stack, sample.values, sample.labels)
    return maker.bytes()


# ---- expected reports by plain arithmetic ----


def matches(pattern, line):
    return bool(re.search(pattern, line.name) or re.search(pattern, line.file))


def location_matches(pattern, location):
    return any(matches(pattern, line) for line in location.lines) or bool(
        re.search(pattern, location.binary)
    )


def visible_lines(location, rules):
    """Lines left by hide and show: a list, [None] for a location that never had lines, or []."""
    lines = list(location.lines) or [None]
    for action, pattern in rules:
        if action not in ("hide", "show"):
            continue
        is_all = bool(re.search(pattern, location.binary))
        lines = [
            line
            for line in lines
            if (action == "hide")
            != (
                line is not None
                and (is_all or matches(pattern, line))
                or line is None
                and action == "hide"
                and is_all
            )
        ]
    return lines


def binary_name(path):
    return "[" + (path.rstrip("/").rpartition("/")[2] or path) + "]" if path else "<unknown>"


def raw_name(location):
    if not location.address:
        return binary_name(location.binary)
    if not location.binary:
        return f"{location.address:#x}"
    offset = location.address - MAPPING_START + MAPPING_OFFSET
    return f"{binary_name(location.binary)[1:-1]}+{offset % 2**64:#x}"


def frame_of(line, location, group):
    """(identity, name)"""
    name = raw_name(location)
    if group == "binary":
        return (
            location.binary,
            binary_name(location.binary).strip("[]")
            if location.binary != "[kernel.kallsyms]"
            else location.binary,
        )
    if line is not None:
        name = line.name or line.system or name
    file = line.file if line is not None else ""
    if group == "file":
        name = file or binary_name(location.binary)
    if group in ("line", "address"):
        number = line.line if line is not None else 0
        address = location.address if group == "address" else 0
        identity = (name, file, number, address, location.binary if address else "")
        return identity, f"0x{address:x} {name}" if address and name != f"0x{address:x}" else name
    return name, name


def label_frame(sample, group):
    key = group.removeprefix("label:")
    values = [
        f"{label[1]} {label[2]}" if len(label) > 2 else label[1]
        for label in sample.labels
        if label[0] == key
    ]
    text = ",".join(values) or f"(no {key})"
    return ("label", text), text


def meets(sample, rule):
    """One label rule: its key, whether it excludes, and whether the sample matches"""
    key, excludes, value = re.fullmatch(r"((?:\\.|[^=\\!]|!(?!=))+)(!?)=(.*)", rule).groups()
    key = re.sub(r"\\(.)", r"\1", key)
    labels = [label for label in sample.labels if label[0] == key]
    if not value:
        return key, bool(excludes), not labels
    number = re.fullmatch(r"(?:(-?\d+)|(-?\d*)\.\.(-?\d*))(?: (.*))?", value)

    def is_met(label):
        if len(label) == 2:
            return label[1] == value
        if not number or number[4] is not None and label[2] != number[4]:
            return False
        if number[1]:
            return label[1] == int(number[1])
        return int(number[2] or -1e19) <= label[1] <= int(number[3] or 1e19)

    return key, bool(excludes), any(map(is_met, labels))


def labels_pass(sample, rules):
    wanted = collections.defaultdict(list)
    for action, rule in rules:
        if action != "label":
            continue
        key, excludes, is_met = meets(sample, rule)
        if excludes and is_met:
            return False
        if not excludes:
            wanted[key].append(is_met)
    return all(map(any, wanted.values()))


def stacks_of(samples, index, rules, group="function"):
    """(the total, [(frames from the root, value)])"""
    found, total = [], 0
    for sample in samples:
        value = sample.values[index]
        total += value
        if not value or not labels_pass(sample, rules):
            continue
        if any(
            action == "ignore" and any(location_matches(pattern, p) for p in sample.stack)
            for action, pattern in rules
        ):
            continue
        if not all(
            any(location_matches(pattern, p) for p in sample.stack)
            for action, pattern in rules
            if action == "focus"
        ):
            continue
        frames, is_seen = [], False
        for location in reversed(sample.stack):
            lines = visible_lines(location, rules)
            is_seen |= bool(lines)
            if group == "binary":
                lines = lines[:1]
            for line in reversed(lines):
                frame = frame_of(line, location, group)
                if group != "binary" or not frames or frames[-1] != frame:
                    frames.append(frame)
        if any(action != "label" for action, _ in rules) and not is_seen:
            continue
        if group in ("thread", "label:size"):
            frames.insert(0, label_frame(sample, group))
        found.append((frames, value) if group != "samples" else (sample, value))
    return total, found


def scaled(number, scale):
    """Half away from zero."""
    if scale == 1:
        return number
    whole = int(abs(number * scale) + 0.5)
    return whole if number * scale >= 0 else -whole


def top_of(stacks):
    flat, cum = collections.Counter(), collections.Counter()
    for frames, value in stacks:
        if frames:
            flat[frames[-1]] += value
        for frame in set(frames):
            cum[frame] += value
    return {frame: (flat[frame], cum[frame]) for frame in cum}


def rows_without_identity(*tops, scale=1):
    """A sorted list of the rows that are not all 0, because names may repeat (lines, addresses).
    Values of the last top are scaled."""
    empty = (0, 0)
    rows = [[top.get(frame, empty) for top in tops] + [frame[1]] for frame in set().union(*tops)]
    return sorted(
        (name, *(n for row in before for n in row), *(scaled(n, scale) for n in last))
        for *before, last, name in rows
        if any(map(any, [*before, last]))
    )


class Node:
    def __init__(self):
        self.self = 0
        self.children = {}

    def value(self):
        return self.self + sum(child.value() for child in self.children.values())

    def count(self):
        return 1 + sum(child.count() for child in self.children.values())


def tree_of(stacks):
    root = Node()
    for frames, value in stacks:
        node = root
        for frame in frames:
            node = node.children.setdefault(frame, Node())
        node.self += value
    return root


def shape_of(node, name="root"):
    """A tree as nested tuples without identities, sorted."""
    return (
        name,
        node.value(),
        node.self,
        sorted(shape_of(child, frame[1]) for frame, child in node.children.items()),
    )


def shape_of_json(node):
    children = node.get("children", [])
    values = [child["value"] for child in children]
    assert values == sorted(values, reverse=True)
    return (node["name"], node["value"], node["self"], sorted(map(shape_of_json, children)))


# ---- tests ----


@pytest.fixture(scope="session")
def path_of(tmp_path_factory):
    folder = tmp_path_factory.mktemp("random")

    def path(seed):
        file = folder / f"{seed}.pb"
        if not file.exists():
            file.write_bytes(encode(random_profile(seed)))
        return file

    return path


def random_rules(rng, seed):
    """Random rules; label rules only for labels of the profile, because others are an error."""
    keys = {label[0] for sample in random_profile(seed) for label in sample.labels}
    known = [rule for rule in LABEL_RULES if meets(Sample([], [], []), rule)[0] in keys] * (
        rng.random() < 0.6
    )
    return [
        (rng.choice(("focus", "ignore", "hide", "show")), rng.choice(PATTERNS))
        for _ in range(rng.choice((0, 0, 1, 1, 2, 4)))
    ] + [("label", rule) for rule in rng.sample(known, min(len(known), rng.choice((1, 1, 2, 4))))]


def options_of(index, rules, group):
    return [f"sample_type={index}" if index else "sample_type=samples", f"group_by={group}"] + [
        f"{action}={pattern}" for action, pattern in rules
    ]


def random_view(seed, group):
    """None if the profile lacks the label of the group, because the report would fail."""
    rng = random.Random(f"{seed} {group}")
    index, rules = rng.randrange(len(TYPES)), random_rules(rng, seed)
    key = group.removeprefix("label:")
    if group in ("thread", "label:size") and not any(
        label[0] == key for sample in random_profile(seed) for label in sample.labels
    ):
        return None
    return index, rules


CASES = [(seed, group) for seed in range(12) for group in GROUPS if random_view(seed, group)]
DIFF_CASES = [case for case in CASES if case[1] in GROUPS[:5]][::2]
# Three seeds have labels of each kind (random_profile).
SHORT_SEEDS = 3
SHORT = sum(seed < SHORT_SEEDS for seed, _ in CASES)


@pytest.mark.parametrize("seed, group", rest_long(CASES, SHORT))
def test_top_equals_plain_arithmetic(print_report, path_of, seed, group):
    index, rules = random_view(seed, group)
    total, stacks = stacks_of(random_profile(seed), index, rules, group)
    response = print_report("top", path_of(seed), *options_of(index, rules, group))
    assert response["total"] == total
    assert response["kept"] == sum(value for _, value in stacks)
    rows = [(row["name"], row["flat"], row["cum"]) for row in response["functions"]]
    assert sorted(rows) == rows_without_identity(top_of(stacks)), rules
    sizes = [(abs(flat), abs(cum)) for _, flat, cum in rows]
    is_label = group == "thread" or group.startswith("label:")
    values = (
        len(rows_without_identity(top_of([(frames[:1], value) for frames, value in stacks])))
        if is_label
        else 0
    )
    assert sizes[:values] == sorted(sizes[:values], reverse=True), "values of the label come first"
    assert sizes[values:] == sorted(sizes[values:], reverse=True)


@pytest.mark.parametrize("seed, group", rest_long(CASES, SHORT))
def test_flame_equals_plain_arithmetic(print_report, path_of, seed, group):
    index, rules = random_view(seed, group)
    _, stacks = stacks_of(random_profile(seed), index, rules, group)
    response = print_report("flame", path_of(seed), *options_of(index, rules, group))
    tree = tree_of(stacks)
    assert response["node_count"] == tree.count() and response["cut"] is None
    assert shape_of_json(response["root"]) == shape_of(tree)


def check_cut(node, full, shown):
    """Checks that every shown node is right and that "other" is the sum of the omitted ones."""
    names = collections.defaultdict(list)
    for frame, child in full.children.items():
        names[frame[1]].append(child)
    assert (node["value"], node["self"]) == (full.value(), full.self)
    left = [frame for frame in full.children]
    others = [child for child in node.get("children", []) if "other" in child.get("flags", [])]
    for child in node.get("children", []):
        if child in others:
            continue
        shown.append(child)
        assert names[child["name"]], child["name"]
        check_cut(child, names[child["name"]].pop(), shown)
        left.remove(next(f for f in left if f[1] == child["name"]))
    assert len(others) == bool(left)
    if others:
        assert others[0]["value"] == sum(full.children[frame].value() for frame in left)


@pytest.mark.parametrize("seed", rest_long(range(12), SHORT_SEEDS))
def test_a_cut_flame_keeps_its_sums(print_report, path_of, seed):
    _, stacks = stacks_of(random_profile(seed), 1, [])
    response = print_report("flame", path_of(seed), "sample_type=1", "max_nodes=120")
    tree, shown = tree_of(stacks), []
    check_cut(response["root"], tree, shown)
    hidden = tree.count() - 1 - len(shown)
    assert response["node_count"] <= 120
    assert (response["cut"] or {"nodes": 0})["nodes"] == hidden


@pytest.mark.parametrize("seed, group", rest_long(CASES, SHORT))
def test_folded_equals_plain_arithmetic(print_report, path_of, seed, group):
    index, rules = random_view(seed, group)
    _, stacks = stacks_of(random_profile(seed), index, rules, group)
    lines = collections.Counter()
    for frames, value in stacks:
        if frames:
            lines[
                ";".join(
                    re.sub(r"[\0-\x1f\x7f-\x9f]", " ", frame[1].replace(";", ":"))
                    for frame in frames
                )
            ] += value
    wanted = {f"{stack} {value}" for stack, value in lines.items() if value}
    text = print_report("folded", path_of(seed), *options_of(index, rules, group))
    assert sorted(text.decode().removesuffix("\n").split("\n")) == sorted(wanted or {""})


@pytest.mark.parametrize("mode", ["absolute", "normalised"])
@pytest.mark.parametrize("seed, group", rest_long(DIFF_CASES, SHORT // 3))
def test_diff_equals_plain_arithmetic(print_report, path_of, seed, group, mode):
    index, rules = random_view(seed, group)
    a, b = random_profile(seed), random_profile(seed + 100)
    total_a, stacks_a = stacks_of(a, index, rules, group)
    total_b, stacks_b = stacks_of(b, index, rules, group)
    scale = 1 if mode == "absolute" else total_a / total_b if total_a > 0 and total_b > 0 else 0.0
    response = print_report(
        "diff", path_of(seed), path_of(seed + 100), f"mode={mode}", *options_of(index, rules, group)
    )
    assert (response["total_a"], response["total"]) == (total_a, scaled(total_b, scale))
    rows = [
        (row["name"], row["flat_a"], row["cum_a"], row["flat"], row["cum"])
        for row in response["functions"]
    ]
    assert sorted(rows) == rows_without_identity(top_of(stacks_a), top_of(stacks_b), scale=scale)


@pytest.mark.parametrize("seed, group", rest_long(CASES, SHORT))
def test_merge_equals_plain_arithmetic(print_report, path_of, seed, group):
    index, rules = random_view(seed, group)
    both = random_profile(seed) + random_profile(seed + 100)
    total, stacks = stacks_of(both, index, rules, group)
    response = print_report(
        "merge", path_of(seed), path_of(seed + 100), *options_of(index, rules, group)
    )
    assert response["total"] == total
    rows = [(row["name"], row["flat"], row["cum"]) for row in response["functions"]]
    assert sorted(rows) == rows_without_identity(top_of(stacks)), rules


# ---- labels ----


def counted(pairs):
    """{name: (total, number of samples)} of pairs (name, index of the sample, value)"""
    seen = {(name, at): value for name, at, value in pairs}
    totals, samples = collections.Counter(), collections.Counter()
    for (name, _), value in seen.items():
        totals[name] += value
        samples[name] += 1
    return {name: (totals[name], samples[name]) for name in samples}


def labels_of(stacks):
    """Totals and sample counts of each label key and of each label value."""
    keys = counted(
        (label[0], at, value)
        for at, (sample, value) in enumerate(stacks)
        for label in sample.labels
    )
    values = counted(
        (label, at, value) for at, (sample, value) in enumerate(stacks) for label in sample.labels
    )
    return keys, values


def name_of(key, value):
    return (key, value["value"], value["unit"]) if "unit" in value else (key, value["value"])


@pytest.mark.parametrize("seed", rest_long(range(24), 2 * SHORT_SEEDS))
def test_labels_equal_plain_arithmetic(print_report, path_of, seed):
    index, rules = random_view(seed, "function")
    total, stacks = stacks_of(random_profile(seed), index, rules, "samples")
    keys, values = labels_of(stacks)
    options = [option for option in options_of(index, rules, "function")]
    response = print_report("labels", path_of(seed), *options)
    kept = sum(value for _, value in stacks)
    assert (response["total"], response["kept"], response["samples"]) == (total, kept, len(stacks))
    assert {
        label["key"]: (label["total"], label["samples_with"]) for label in response["labels"]
    } == keys
    assert response["label_count"] == len(keys) and response["truncated"] is False
    for label in response["labels"]:
        key, shown = label["key"], label["values"]
        own = {name: count for name, count in values.items() if name[0] == key}
        assert {name_of(key, value): (value["total"], value["samples"]) for value in shown} == own
        assert label["value_count"] == len(own) and label["other"] is None
        sizes = [abs(value["total"]) for value in shown]
        assert sizes == sorted(sizes, reverse=True)
        assert label["without"]["total"] == kept - label["total"]
        assert label["without"]["samples"] == len(stacks) - label["samples_with"]
        assert label["is_numeric"] == all(len(name) == 3 for name in own)
        units = {name[2] if len(name) == 3 else None for name in own}
        assert label.get("unit") == (units.pop() if len(units) == 1 else None)
        check_histogram(label)


def check_histogram(label):
    bars = label.get("histogram", [])
    assert bool(bars) == ("unit" in label and label["value_count"] > 16)
    for before, bar in zip(bars, bars[1:]):
        assert before["high"] + 1 == bar["low"]
    for bar in bars:
        inside = [value for value in label["values"] if bar["low"] <= value["value"] <= bar["high"]]
        assert bar["total"] == sum(value["total"] for value in inside)
        assert bar["samples"] == sum(value["samples"] for value in inside)
    assert sum(bar["samples"] for bar in bars) in (
        0,
        sum(value["samples"] for value in label["values"]),
    )


@pytest.mark.parametrize("seed", rest_long([0, 1, 3, 4], 2))
def test_each_offered_filter_keeps_the_samples_of_its_value(print_report, path_of, seed):
    response = print_report("labels", path_of(seed), "sample_type=1")
    for label in response["labels"]:
        for value in label["values"][:12] + [label["without"]]:
            kept = print_report(
                "labels", path_of(seed), "sample_type=1", f"label={value['filter']}"
            )
            assert (kept["kept"], kept["samples"]) == (value["total"], value["samples"]), value
        left_out = label["values"][0]["filter"].replace(
            "=" + str(label["values"][0]["value"]), "!=" + str(label["values"][0]["value"]), 1
        )
        kept = print_report("labels", path_of(seed), "sample_type=1", f"label={left_out}")
        assert kept["kept"] == response["kept"] - label["values"][0]["total"], left_out


@pytest.mark.parametrize("mode", ["absolute", "normalised"])
@pytest.mark.parametrize("seed", rest_long(range(6), 2))
def test_labels_of_a_diff_equal_plain_arithmetic(print_report, path_of, seed, mode):
    index, rules = random_view(seed, "function")
    a, b = random_profile(seed), random_profile(seed + 101)
    total_a, stacks_a = stacks_of(a, index, rules, "samples")
    total_b, stacks_b = stacks_of(b, index, rules, "samples")
    scale = 1 if mode == "absolute" else total_a / total_b if total_a > 0 and total_b > 0 else 0.0
    response = print_report(
        "diff-labels",
        path_of(seed),
        path_of(seed + 101),
        f"mode={mode}",
        *options_of(index, rules, "function"),
    )
    assert (response["total_a"], response["total_b"]) == (total_a, scaled(total_b, scale))
    (keys_a, values_a), both_b = labels_of(stacks_a), labels_of(stacks_b)
    keys_b, values_b = (
        {name: (scaled(value, scale), count) for name, (value, count) in found.items()}
        for found in both_b
    )
    none = (0, 0)
    assert {
        label["key"]: (
            label["total_a"],
            label["samples_with_a"],
            label["total_b"],
            label["samples_with_b"],
        )
        for label in response["labels"]
    } == {key: keys_a.get(key, none) + keys_b.get(key, none) for key in {*keys_a, *keys_b}}
    shown = {
        name_of(label["key"], value): (
            value["total_a"],
            value["samples_a"],
            value["total_b"],
            value["samples_b"],
        )
        for label in response["labels"]
        for value in label["values"]
    }
    assert shown == {
        name: values_a.get(name, none) + values_b.get(name, none) for name in {*values_a, *values_b}
    }
