"""Independent readers of the text and JSON formats: slow, plain Python, written only from the
documentation of the formats. Each returns {sample type: [(stack from the root, value)]}; tests
compare Perfolio's numbers with top() of that.
"""

import json
import re


def top(stacks):
    """{name: (flat, cum)}: flat of the leaf; cum once per sample even if the name occurs
    repeatedly."""
    rows = {}
    for stack, value in stacks:
        if value == 0:
            continue
        for name in set(stack):
            flat, cum = rows.get(name, (0, 0))
            rows[name] = (flat + (value if stack[-1] == name else 0), cum + value)
    return {name: row for name, row in rows.items() if row != (0, 0)}


def text_of(data):
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16")
    return data.decode("utf-8-sig", "surrogateescape")


def folded(data):
    stacks = []
    for line in text_of(data).split("\n"):
        found = re.fullmatch(r"\s*(\S.*?)[ \t]+(-?\d+)\s*", line)
        if found and not line.lstrip().startswith(("# ", "//")):
            stacks.append(([name or "<unknown>" for name in found[1].split(";")], int(found[2])))
    return {"samples": stacks}


FRAME = re.compile(r"\s+([0-9a-f]+)(?: (.*?)(?:\+0x[0-9a-f]+)?)? \((.*)\)\s*")
EVENT = re.compile(r"\S.*?\s+[\d/]+\s+(?:\[\d+\]\s+)?\d+\.\d+:\s+(?:(\d+)\s+)?(\S+):\s*")


def perf_script(data):
    """The default output of perf with -g; unit tests cover other fields."""
    found, current = {}, None
    for line in text_of(data).split("\n"):
        if line.startswith("#"):
            continue
        event = EVENT.fullmatch(line) if not line.startswith("\t") else None
        frame = FRAME.fullmatch(line)
        if event:
            current = []
            found.setdefault(event[2], []).append((current, int(event[1] or 1)))
        elif frame:
            name = frame[2]
            if name == "[unknown]":
                file = frame[3].split("/")[-1]
                address = f"0x{int(frame[1], 16):x}"
                name = address if file == "[unknown]" else f"{file}+{address}"
            current.insert(0, name)
    return found


def cpuprofile(data):
    profile = json.loads(text_of(data))
    nodes = {node["id"]: node for node in profile["nodes"]}
    parents = {child: node["id"] for node in nodes.values() for child in node.get("children", [])}

    def stack_of(number):
        stack = []
        while number is not None:
            name = nodes[number]["callFrame"]["functionName"]
            if name != "(root)" or number in parents:
                stack.insert(0, name or "(anonymous)")
            number = parents.get(number)
        return stack

    times, now = [], 0
    for delta in profile["timeDeltas"]:
        now += delta
        times.append(max([now] + times[-1:]))
    end = max(times[-1], profile["endTime"] - profile["startTime"])
    ends = times[1:] + [end]
    samples = profile["samples"]
    return {
        "samples": [(stack_of(number), 1) for number in samples],
        "time": [(stack_of(number), ends[i] - times[i]) for i, number in enumerate(samples)],
    }


def speedscope(data):
    """Profiles with whole numbers, so that no rounding is involved. Times become nanoseconds."""
    factors = {"microseconds": 1_000, "milliseconds": 1_000_000, "seconds": 1_000_000_000}
    document = json.loads(text_of(data))
    names = [frame["name"] for frame in document["shared"]["frames"]]
    found = {}
    for profile in document["profiles"]:
        kind = {"none": "samples", "bytes": "space"}.get(profile["unit"], "time")
        factor = factors.get(profile["unit"], 1)
        stacks = found.setdefault(kind, [])
        if profile["type"] == "sampled":
            for sample, weight in zip(profile["samples"], profile["weights"]):
                stacks.append(([names[frame] for frame in sample], weight * factor))
            continue
        stack, last = [], 0
        for event in profile["events"]:
            if stack:
                stacks.append(([names[frame] for frame in stack], (event["at"] - last) * factor))
            last = event["at"]
            if event["type"] == "O":
                stack.append(event["frame"])
            else:
                assert stack.pop() == event["frame"]
    return found
