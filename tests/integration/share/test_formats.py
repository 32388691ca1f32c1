"""Text and JSON formats decode to the same numbers as in independent readers.

The tests need no server: tests/programs/print_report prints the reports of the library."""

import json
import pathlib
import random
import sys

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import format_readers  # noqa: E402

DATA = ROOT.parent / "shared" / "data" / "formats"
READERS = {
    "*.cpuprofile": format_readers.cpuprofile,
    "linux-perf-*": format_readers.perf_script,
    "speedscope-*": format_readers.speedscope,
    "stackcollapse-*": format_readers.folded,
}
FILES = [
    (path, reader) for pattern, reader in READERS.items() for path in sorted(DATA.glob(pattern))
]


def compare(print_report, path, reader):
    expected = reader(pathlib.Path(path).read_bytes())
    assert expected
    for sample_type, stacks in expected.items():
        response = print_report("top", path, f"sample_type={sample_type}")
        assert response["sample_type"] == sample_type
        assert response["total"] == sum(value for _, value in stacks)
        rows = {row["name"]: (row["flat"], row["cum"]) for row in response["functions"]}
        assert rows == format_readers.top(stacks)


@pytest.mark.skipif(not FILES, reason="../shared/data/formats does not exist")
@pytest.mark.parametrize("path,reader", FILES, ids=[path.name for path, _ in FILES])
def test_files_of_other_tools_decode_correctly(print_report, path, reader):
    compare(print_report, path, reader)


def random_stacks(seed):
    rng = random.Random(seed)
    names = [
        f"{word}{number}"
        for number in range(12)
        for word in ("main.f", "std::g<a, b>", "läuft ", "x/y.(*T).m", "_[k]")
    ]
    return [[rng.choice(names) for _ in range(rng.randint(1, 30))] for _ in range(800)]


@pytest.mark.parametrize("seed", range(4))
def test_random_folded_stacks_decode_correctly(print_report, tmp_path, seed):
    lines = [
        f"{';'.join(stack)} {seed * 1000003 + i}" for i, stack in enumerate(random_stacks(seed))
    ]
    path = tmp_path / "stacks.folded"
    path.write_bytes((["\n", "\r\n"][seed % 2].join(lines)).encode(["utf-8", "utf-16"][seed // 2]))
    compare(print_report, path, format_readers.folded)


def speedscope_file(stacks, is_evented):
    names = sorted({name for stack in stacks for name in stack})
    index = {name: number for number, name in enumerate(names)}
    samples = [[index[name] for name in stack] for stack in stacks]
    weights = list(range(len(stacks)))
    profile = {
        "type": "sampled",
        "name": "p",
        "unit": "microseconds",
        "samples": samples,
        "weights": weights,
    }
    if is_evented:
        events, now, open_frames = [], 0, []
        for sample, weight in zip(samples, weights):
            common = 0
            while (
                common < min(len(sample), len(open_frames))
                and sample[common] == open_frames[common]
            ):
                common += 1
            events += [
                {"type": "C", "frame": frame, "at": now} for frame in reversed(open_frames[common:])
            ]
            events += [{"type": "O", "frame": frame, "at": now} for frame in sample[common:]]
            open_frames = sample
            now += weight
        events += [{"type": "C", "frame": frame, "at": now} for frame in reversed(open_frames)]
        profile = {
            "type": "evented",
            "name": "p",
            "unit": "microseconds",
            "startValue": 0,
            "endValue": now,
            "events": events,
        }
    return json.dumps(
        {"profiles": [profile], "shared": {"frames": [{"name": name} for name in names]}}
    )


@pytest.mark.parametrize("is_evented", [False, True], ids=["sampled", "evented"])
def test_random_speedscope_profiles_decode_correctly(print_report, tmp_path, is_evented):
    path = tmp_path / "profile.speedscope.json"
    path.write_text(speedscope_file(random_stacks(9), is_evented))
    compare(print_report, path, format_readers.speedscope)


def test_a_random_cpuprofile_decodes_correctly(print_report, tmp_path):
    rng = random.Random(5)
    nodes = [{"id": 1, "callFrame": {"functionName": "(root)"}, "children": []}]
    for number in range(2, 400):
        nodes.append(
            {
                "id": number,
                "children": [],
                "callFrame": {
                    "functionName": rng.choice(["", "a", "b", "c", "d e"]),
                    "url": "x.js",
                    "lineNumber": number,
                    "columnNumber": 1,
                },
            }
        )
        rng.choice(nodes[:-1])["children"].append(number)
    rng.shuffle(nodes)
    samples = [rng.randint(1, 399) for _ in range(3000)]
    deltas = [rng.randint(-20, 300) for _ in samples]
    path = tmp_path / "x.cpuprofile"
    path.write_text(
        json.dumps(
            {
                "nodes": nodes,
                "samples": samples,
                "timeDeltas": deltas,
                "startTime": 7000,
                "endTime": 7000 + sum(deltas) + 450,
            }
        )
    )
    compare(print_report, path, format_readers.cpuprofile)
