"""Random pprof profiles, with recursion, inlined calls, frames without names, negative values and
several sample types, through every report: top, flame, folded, diff and merge under random filters
and groupings. What comes out is compared with plain arithmetic over lists of frames, written from
lib/profile/view.h and filter.h. Needs no server."""

import collections
import functools
import random
import re
import sys

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import pprof_maker  # noqa: E402

TYPES = [("samples", "count"), ("cpu", "nanoseconds"), ("samples", "count")]
NAMES = ["main", "work", "a b", "f(int, char (*)(int))", "", "läuft", "x/y.(*T).m", "work;1", "g 7"]
FILES = ["", "/src/main.go", "/src/b.py", "c d.c"]
BINARIES = ["/usr/bin/app", "/lib/libc (x86).so", "[kernel.kallsyms]", ""]
PATTERNS = ["main", "^work$", "^$", "[.]go", "libc", "(?i)LÄUFT|app", "a b", "T|g", "nothing here"]
GROUPS = ["function", "file", "line", "address", "binary", "thread", "label:size"]

Line = collections.namedtuple("Line", "name system file start line")
Location = collections.namedtuple("Location", "lines binary address")
Sample = collections.namedtuple("Sample", "stack values labels")   # stack: locations, leaf first


@functools.cache
def random_profile(seed):
    chance = random.Random(seed)
    functions = [(name, chance.choice((name, "_Z" + name, "")), chance.choice(FILES), number)
                 for name in NAMES for number in (0, 3)]
    locations = [
        Location([Line(*chance.choice(functions), chance.randrange(3))
                  for _ in range(chance.choice((0, 1, 1, 1, 2, 4)))],
                 chance.choice(BINARIES), chance.choice((0, 0x1000 + i)))
        for i in range(40)]
    some = chance.sample(locations, 6)
    samples = []
    for i in range(chance.choice((1, 60, 200))):
        stack = [chance.choice(chance.choice((some, locations)))
                 for _ in range(chance.choice((0, 1, 2, 5, 9, 25)))]
        labels = [("thread", chance.choice(("io", "main")))] * chance.choice((0, 1, 1, 2))
        labels += [("size", chance.choice((-1, 64)), "bytes")] * chance.choice((0, 0, 1))
        samples.append(Sample(stack, [chance.choice((0, 1, 7, -3, 10**12)) for _ in TYPES], labels))
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
        stack = [locations[tuple(place.lines), place.binary, place.address]
                 for place in sample.stack]
        maker.sample(stack, sample.values, sample.labels)
    return maker.bytes()


# ---- the same by plain arithmetic ----

def matches(pattern, line):
    return bool(re.search(pattern, line.name) or re.search(pattern, line.file))


def location_matches(pattern, location):
    return any(matches(pattern, line) for line in location.lines) or bool(
        re.search(pattern, location.binary))


def visible_lines(location, rules):
    """What hide and show leave: lines, or [None] of a location that never had any, or nothing."""
    lines = list(location.lines) or [None]
    for action, pattern in rules:
        if action not in ("hide", "show"):
            continue
        is_all = bool(re.search(pattern, location.binary))
        lines = [line for line in lines
                 if (action == "hide") != (line is not None and (is_all or matches(pattern, line))
                                           or line is None and action == "hide" and is_all)]
    return lines


def binary_name(path):
    return "[" + (path.rstrip("/").rpartition("/")[2] or path) + "]" if path else "<unknown>"


def frame_of(line, location, group):
    """(identity, name)"""
    name = binary_name(location.binary)
    if group == "binary":
        return location.binary, name.strip("[]") if location.binary != "[kernel.kallsyms]" else \
            location.binary
    if line is not None:
        name = line.name or line.system or name
    file = line.file if line is not None else ""
    if group == "file":
        name = file or binary_name(location.binary)
    if group in ("line", "address"):
        number = line.line if line is not None else 0
        address = location.address if group == "address" else 0
        identity = (name, file, number, address, location.binary if address else "")
        return identity, f"0x{address:x} {name}" if address else name
    return name, name


def label_frame(sample, group):
    key = group.removeprefix("label:")
    values = [f"{label[1]} {label[2]}" if len(label) > 2 else label[1]
              for label in sample.labels if label[0] == key]
    text = ",".join(values) or f"(no {key})"
    return ("label", text), text


def stacks_of(samples, index, rules, group="function", scale=1):
    """(the total, [(frames from the root, value)])"""
    found, total = [], 0
    for sample in samples:
        value = sample.values[index]
        if scale != 1:
            value = rounded(value * scale)
        total += value
        if not value:
            continue
        if any(action == "ignore" and any(location_matches(pattern, p) for p in sample.stack)
               for action, pattern in rules):
            continue
        if not all(any(location_matches(pattern, p) for p in sample.stack)
                   for action, pattern in rules if action == "focus"):
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
        if rules and not is_seen:
            continue
        if group in ("thread", "label:size"):
            frames.insert(0, label_frame(sample, group))
        found.append((frames, value))
    return total, found


def rounded(number):
    whole = int(abs(number) + 0.5)
    return whole if number >= 0 else -whole


def top_of(stacks):
    flat, cum = collections.Counter(), collections.Counter()
    for frames, value in stacks:
        if frames:
            flat[frames[-1]] += value
        for frame in set(frames):
            cum[frame] += value
    return {frame: (flat[frame], cum[frame]) for frame in cum}


def rows_without_identity(*tops):
    """Names may repeat (lines, addresses): a sorted list of rows that are not all 0."""
    empty = (0, 0)
    rows = [(frame[1],) + tuple(n for top in tops for n in top.get(frame, empty))
            for frame in set().union(*tops)]
    return sorted(row for row in rows if any(row[1:]))


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
    """A tree as nested lists without identities, in an order of its own."""
    return (name, node.value(), node.self,
            sorted(shape_of(child, frame[1]) for frame, child in node.children.items()))


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


def random_rules(chance):
    return [(chance.choice(("focus", "ignore", "hide", "show")), chance.choice(PATTERNS))
            for _ in range(chance.choice((0, 0, 1, 1, 2, 4)))]


def options_of(index, rules, group):
    return [f"sample_type={index}" if index else "sample_type=samples", f"group_by={group}"] + [
        f"{action}={pattern}" for action, pattern in rules]


def random_view(seed, group):
    """None where the profile has no such label: that is an error by itself."""
    chance = random.Random(f"{seed} {group}")
    index, rules = chance.randrange(len(TYPES)), random_rules(chance)
    key = group.removeprefix("label:")
    if group in ("thread", "label:size") and not any(
            label[0] == key for sample in random_profile(seed) for label in sample.labels):
        return None
    return index, rules


CASES = [(seed, group) for seed in range(12) for group in GROUPS if random_view(seed, group)]


@pytest.mark.parametrize("seed, group", CASES)
def test_top(print_report, path_of, seed, group):
    index, rules = random_view(seed, group)
    total, stacks = stacks_of(random_profile(seed), index, rules, group)
    answer = print_report("top", path_of(seed), *options_of(index, rules, group))
    assert answer["total"] == total
    assert answer["kept"] == sum(value for _, value in stacks)
    rows = [(row["name"], row["flat"], row["cum"]) for row in answer["functions"]]
    assert sorted(rows) == rows_without_identity(top_of(stacks)), rules
    sizes = [(abs(flat), abs(cum)) for _, flat, cum in rows]
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize("seed, group", CASES)
def test_flame(print_report, path_of, seed, group):
    index, rules = random_view(seed, group)
    _, stacks = stacks_of(random_profile(seed), index, rules, group)
    answer = print_report("flame", path_of(seed), *options_of(index, rules, group))
    tree = tree_of(stacks)
    assert answer["node_count"] == tree.count() and answer["cut"] is None
    assert shape_of_json(answer["root"]) == shape_of(tree)


def check_cut(node, full, shown):
    """Every node that is left is right, and what is not adds up in "other"."""
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


@pytest.mark.parametrize("seed", range(12))
def test_a_cut_flame_adds_up(print_report, path_of, seed):
    _, stacks = stacks_of(random_profile(seed), 1, [])
    answer = print_report("flame", path_of(seed), "sample_type=1", "max_nodes=120")
    tree, shown = tree_of(stacks), []
    check_cut(answer["root"], tree, shown)
    hidden = tree.count() - 1 - len(shown)
    assert answer["node_count"] <= 120
    assert (answer["cut"] or {"nodes": 0})["nodes"] == hidden


@pytest.mark.parametrize("seed, group", CASES)
def test_folded(print_report, path_of, seed, group):
    index, rules = random_view(seed, group)
    _, stacks = stacks_of(random_profile(seed), index, rules, group)
    lines = collections.Counter()
    for frames, value in stacks:
        if frames:
            lines[";".join(frame[1].replace(";", ":") for frame in frames)] += value
    wanted = {f"{stack} {value}" for stack, value in lines.items() if value}
    text = print_report("folded", path_of(seed), *options_of(index, rules, group))
    assert sorted(text.decode().splitlines()) == sorted(wanted)


@pytest.mark.parametrize("mode", ["absolute", "normalised"])
@pytest.mark.parametrize("seed, group", [case for case in CASES if case[1] in GROUPS[:5]][::2])
def test_diff(print_report, path_of, seed, group, mode):
    index, rules = random_view(seed, group)
    a, b = random_profile(seed), random_profile(seed + 100)
    total_a, stacks_a = stacks_of(a, index, rules, group)
    total_b, _ = stacks_of(b, index, rules, group)
    scale = 1 if mode == "absolute" else total_a / total_b if total_b else 0.0
    total_b, stacks_b = stacks_of(b, index, rules, group, scale)
    answer = print_report("diff", path_of(seed), path_of(seed + 100), f"mode={mode}",
                          *options_of(index, rules, group))
    assert (answer["total_a"], answer["total"]) == (total_a, total_b)
    rows = [(row["name"], row["flat_a"], row["cum_a"], row["flat"], row["cum"])
            for row in answer["functions"]]
    assert sorted(rows) == rows_without_identity(top_of(stacks_a), top_of(stacks_b))


@pytest.mark.parametrize("seed, group", CASES)
def test_merge(print_report, path_of, seed, group):
    index, rules = random_view(seed, group)
    both = random_profile(seed) + random_profile(seed + 100)
    total, stacks = stacks_of(both, index, rules, group)
    answer = print_report("merge", path_of(seed), path_of(seed + 100),
                          *options_of(index, rules, group))
    assert answer["total"] == total
    rows = [(row["name"], row["flat"], row["cum"]) for row in answer["functions"]]
    assert sorted(rows) == rows_without_identity(top_of(stacks)), rules
