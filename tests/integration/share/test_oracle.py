"""Reports and diffs compared with independent implementations, for every profile and sample type.

The references are a separate reader of pprof (tests/oracle/pprof_reader.py) and, if Go is
installed, `go tool pprof`. The profiles are those of ../shared/data (PERFOLIO_SHARED), if that
folder exists, and generated ones: unusual profiles (tests/oracle/pprof_maker.py), the profile of
the benchmark, and CPU, heap and other profiles of a Go program (tests/oracle/go-load).

Both go tool pprof and perfoliod apply drop_frames when they load a file. go tool pprof prints one
row per binary for addresses without a name, and perfoliod prints one row per name. The comparison
with it therefore omits names that it prints twice, which the reader still checks, and values that
a double cannot hold.
"""

import collections
import functools
import gzip
import itertools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import pytest

from conftest import ROOT, Server, copy_template, make_folder

sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import pprof_maker  # noqa: E402
import pprof_reader  # noqa: E402
import sample_profiles  # noqa: E402

SHARED = pathlib.Path(os.environ.get("PERFOLIO_SHARED", ROOT.parent / "shared"))
HAS_GO = shutil.which("go") is not None


def go_profiles():
    """Profiles that Go's runtime records of a short program."""
    if not HAS_GO:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            ["go", "run", ".", folder],
            cwd=ROOT / "tests" / "oracle" / "go-load",
            capture_output=True,
        )
        assert done.returncode == 0, done.stderr.decode()
        return {
            "go-" + path.name: path.read_bytes() for path in sorted(pathlib.Path(folder).iterdir())
        }


MADE = {**pprof_maker.all_profiles(), "bench": sample_profiles.pprof(300), **go_profiles()}


def shared_profiles():
    found = itertools.chain(
        (SHARED / "data" / "pprof").glob("*.gz"),
        (SHARED / "data" / "pprof" / "series").glob("*.gz"),
        (SHARED / "data" / "symbolize").glob("*pprof"),
        (SHARED / "data" / "symbolize").glob("*.pb.gz"),
    )
    return {str(path.relative_to(SHARED)): path for path in sorted(found)}


NAMES = sorted(shared_profiles()) + sorted(MADE)
SERIES = [name for name in NAMES if "/series/" in name]
LARGE_BYTES = 50_000


def long_if_large(names):
    """Values for pytest.mark.parametrize: make test-long compares the large profiles."""
    return [
        pytest.param(name, marks=pytest.mark.long)
        if name not in MADE and shared_profiles()[name].stat().st_size > LARGE_BYTES
        else name
        for name in names
    ]


DIFFS = [(a, b) for a, b in zip(SERIES, SERIES[1:])] + [
    ("heap", "delta"),
    ("cpu", "sparse-ids"),
    ("dropping", "cpu"),
    ("unpacked", "fields"),
    ("cpu", "no-samples"),
]


def read_bytes(name):
    return MADE[name] if name in MADE else shared_profiles()[name].read_bytes()


@functools.cache
def read_profile(name):
    return pprof_reader.Profile(read_bytes(name))


class Uploaded:
    """The profiles on a separate server, each uploaded once."""

    def __init__(self, server):
        self.api = server.api()
        self.ids = {}

    def id_of(self, name):
        if name not in self.ids:
            response = self.api.post("/api/v1/shares", read_bytes(name))
            assert response.status == 201, response
            self.ids[name] = response.json()["id"]
        return self.ids[name]

    def json(self, path, **query):
        response = self.api.get(path, query=query)
        assert response.status == 200, response
        return response.json()

    def top(self, name, **query):
        return self.json(f"/api/v1/shares/{self.id_of(name)}/top", limit=0, **query)


@pytest.fixture(scope="module")
def uploaded(cluster_template):
    folder = make_folder()
    copy_template(cluster_template, folder / "data")
    server = Server(folder / "data", ["--tenant-uploads-per-minute", "1000000"]).start()
    profiles = Uploaded(server)
    yield profiles
    profiles.api.close()
    server.stop()
    shutil.rmtree(folder, ignore_errors=True)


def rows_of(response, *fields):
    rows = {}
    for row in response["functions"]:
        assert row["name"] not in rows, f"{row['name']} twice"
        rows[row["name"]] = tuple(row[field] for field in fields)
    return rows


def shown(rows):
    """The rows with their names as in JSON, where bytes that are not UTF-8 become U+FFFD."""
    return {
        name.encode("utf-8", "surrogateescape").decode("utf-8", "replace"): row
        for name, row in rows.items()
    }


def has_unique_name(profile, index):
    """Whether no other sample type has the name of this one."""
    kinds = [kind for kind, _ in profile.sample_types]
    return kinds[index] != "" and kinds.count(kinds[index]) == 1


@pytest.mark.parametrize("name", long_if_large(NAMES))
def test_top_equals_the_independent_reader(uploaded, name):
    profile = read_profile(name)
    facts = uploaded.json(f"/api/v1/shares/{uploaded.id_of(name)}")
    assert [(t["type"], t["unit"]) for t in facts["sample_types"]] == profile.sample_types
    for index, (kind, unit) in enumerate(profile.sample_types):
        expected = shown(profile.top(index))
        for sample_type in [index] + [kind] * has_unique_name(profile, index):
            response = uploaded.top(name, sample_type=sample_type)
            assert (response["sample_type"], response["unit"]) == (kind, unit)
            assert response["total"] == profile.total(index)
            assert rows_of(response, "flat", "cum") == expected


NODE = re.compile(r'  N(\d+) \[.*label="((?:[^"\\]|\\.)*)" comment="flat=(-?\d+) cum=(-?\d+)"\]')
EDGE = re.compile(r'  N(\d+) -> N(\d+) \[.*? comment="sum=(-?\d+) direct=(-?\d+)"\]')


def read_dot(body):
    """({name of a node: (flat, cum)}, {(caller, callee): (sum, direct)})."""
    lines = body.decode("utf-8", "surrogateescape").splitlines()
    assert lines[0] == "digraph profile {" and lines[-1] == "}"
    nodes = [found for found in map(NODE.match, lines) if found]
    assert [int(found[1]) for found in nodes] == list(range(len(nodes)))
    names = [re.sub(r"\\(.)", r"\1", found[2].partition(r"\n")[0]) for found in nodes]
    edges = [found for found in map(EDGE.match, lines) if found]
    assert len(lines) == 2 + 2 + 1 + len(nodes) + len(edges)
    return (
        dict(zip(names, ((int(found[3]), int(found[4])) for found in nodes))),
        {
            (names[int(found[1])], names[int(found[2])]): (int(found[3]), int(found[4]))
            for found in edges
        },
    )


def in_dot(name):
    """The name as a node shows it: in one line, and truncated if it is very long."""
    begin = name.encode("utf-8", "surrogateescape")
    if len(begin) > 400:
        name = begin[:400].decode("utf-8", "ignore") + "\u2026"
    return re.sub(r"[\x00-\x1f\x7f]", " ", name)


def edges_between(profile, index, drawn):
    """{(caller, callee): (sum of all stacks, sum of the stacks in which the caller calls the callee
    directly)}; each stack counts once."""
    sums = {}
    for sample, stack in zip(profile.samples, profile.pruned_stacks()):
        seen, direct, caller, is_indirect = set(), set(), None, False
        for name in reversed(stack):
            name = in_dot(name)
            if name not in drawn:
                is_indirect = True
                continue
            if caller not in (None, name):
                seen.add((caller, name))
                if not is_indirect:
                    direct.add((caller, name))
            caller, is_indirect = name, False
        for edge in seen if sample.values[index] else ():
            both = sums.setdefault(edge, [0, 0])
            both[0] += sample.values[index]
            both[1] += sample.values[index] if edge in direct else 0
    return {edge: tuple(both) for edge, both in sums.items()}


def large_enough(functions, column, limit):
    """The functions with a nonzero value of at least 0.3 / limit of the largest one."""
    held = {name: abs(sums[column]) for name, sums in functions.items()}
    largest = max(held.values(), default=0)
    return {
        name for name, value in held.items() if value * limit >= largest * 0.3 and (value or column)
    }


@pytest.mark.parametrize("limit", [4, 40])
@pytest.mark.parametrize("name", long_if_large(sorted(set(MADE) | set(NAMES[:3]))))
def test_the_call_graph_equals_the_independent_reader(uploaded, name, limit):
    profile = read_profile(name)
    for index in range(len(profile.sample_types)):
        response = uploaded.api.get(
            f"/p/{uploaded.id_of(name)}.dot", query={"sample_type": index, "limit": limit}
        )
        assert response.status == 200, response
        nodes, edges = read_dot(response.body)
        functions = {in_dot(key): sums for key, sums in profile.top(index).items()}
        by_flat, by_cum = (large_enough(functions, column, limit) for column in (0, 1))
        assert nodes.keys() <= by_flat | by_cum and len(nodes) <= limit
        assert len(nodes) == limit or nodes.keys() >= by_cum
        assert len(by_flat) > limit // 2 or nodes.keys() >= by_flat
        assert nodes == {key: functions[key] for key in nodes}
        largest = max((abs(cum) for _, cum in functions.values()), default=0)
        assert not nodes or largest in [abs(cum) for _, cum in nodes.values()]
        expected = edges_between(profile, index, nodes)
        assert edges == {edge: expected[edge] for edge in edges}
        # A node whose caller is drawn has at least one incoming edge.
        assert {callee for _, callee in edges} == {callee for _, callee in expected}


@pytest.mark.parametrize("name", long_if_large(NAMES))
def test_normalised_pprof_contains_all_data_of_the_original(uploaded, name):
    response = uploaded.api.get(f"/p/{uploaded.id_of(name)}.pb.gz")
    assert response.status == 200, response
    expected = read_profile(name).facts()
    assert pprof_reader.Profile(response.body).facts() == expected
    raw = uploaded.api.get(f"/p/{uploaded.id_of(name)}/raw")
    assert raw.body == read_bytes(name)


@pytest.mark.parametrize("mode", ["absolute", "normalised"])
@pytest.mark.parametrize("a, b", DIFFS)
def test_diff_equals_the_difference_of_both_profiles(uploaded, a, b, mode):
    one, other = read_profile(a), read_profile(b)
    for index in range(len(other.sample_types)):
        expected = shown(pprof_reader.diff_top(one, other, index, mode == "normalised"))
        response = uploaded.json(
            "/api/v1/diff/top",
            a=uploaded.id_of(a),
            b=uploaded.id_of(b),
            mode=mode,
            sample_type=index,
            limit=0,
        )
        rows = rows_of(response, "flat_a", "cum_a", "flat_b", "cum_b", "flat_delta", "cum_delta")
        assert {name: row[:4] for name, row in rows.items()} == expected
        for row in rows.values():
            assert row[4:] == (row[2] - row[0], row[3] - row[1])


# ---- go tool pprof ----

needs_go = pytest.mark.skipif(not HAS_GO, reason="no Go here")
ROW = re.compile(r"^\s*(-?[\d.]+)\w*\s+\S+%\s+\S+%\s+(-?[\d.]+)\w*\s+\S+%  (.*)$")


@functools.cache
def build_pprof():
    """Runs go tool pprof once, because new versions of Go compile the tool on its first use. That
    takes minutes on a busy host and must not count against the timeout of the first comparison."""
    subprocess.run(["go", "tool", "pprof", "-h"], capture_output=True, timeout=900, check=False)


def go_top(path, index, unit, *options):
    """({name: (flat, cum)}, names printed more than once). The flat value of a repeated name is the
    sum of its rows, its cum value that of one row."""
    command = [
        "go",
        "tool",
        "pprof",
        "-top",
        "-symbolize=none",
        "-nodefraction=0",
        "-edgefraction=0",
        "-nodecount=1000000",
        f"-sample_index={index}",
        f"-unit={unit or 'count'}",
        *options,
        str(path),
    ]
    build_pprof()
    done = subprocess.run(command, capture_output=True, timeout=120)
    output = done.stdout.decode("utf-8", "surrogateescape")
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    lines = output.split("\n")
    header = next(i for i, line in enumerate(lines) if line.split()[:2] == ["flat", "flat%"])
    rows, repeated = {}, set()
    for line in lines[header + 1 :]:
        if not line.strip():
            continue
        match = ROW.match(line)
        assert match, line
        flat, cum, name = match.groups()
        name = re.sub(r" \((partial-)?inline\)$", "", name)
        repeated |= {name} & rows.keys()
        rows[name] = (rows.get(name, (0,))[0] + float(flat), float(cum))
    return rows, repeated


def write_file(folder, name):
    path = folder / (re.sub(r"\W", "_", name) + ".pb.gz")
    data = read_bytes(name)
    path.write_bytes(data if data[:2] == b"\x1f\x8b" else gzip.compress(data, mtime=0))
    return path


# Profiles that go tool pprof reads differently: values beyond 2^53, names that end with one of its
# suffixes, and sample types of the same name, which it merges.
NOT_FOR_GO = {"large-values", "bytes-as-names", "repeated-types"}
FOR_GO = [
    name for name in NAMES if name not in NOT_FOR_GO and (name not in SERIES or name == SERIES[-1])
]


def without(rows, names):
    return {name: row for name, row in rows.items() if name not in names}


def per_binary(rows, repeated):
    """({name: row}, {binary: flat}) from the rows of a report.

    Addresses without symbols have one row each in our reports and one row per binary,
    "[libc.so.6]" or "<unknown>", in pprof. Only the flat values of such a row are comparable,
    because a stack with two addresses of a binary counts once in its cum value.
    """
    whole, flats = {}, collections.Counter()
    for name, row in rows.items():
        raw = re.fullmatch(r"(?:(.+)\+)?0x[0-9a-f]+", name)
        if raw:
            flats[f"[{raw[1]}]" if raw[1] else "<unknown>"] += row[0]
        elif name not in repeated:
            whole[name] = row
    return whole, flats


def assert_like_go(rows, expected, repeated):
    whole, flats = per_binary(rows, repeated)
    assert flats == {name: expected[name][0] for name in flats}
    assert whole == without(without(expected, repeated), flats)


@pytest.mark.long
@needs_go
@pytest.mark.parametrize("name", long_if_large(FOR_GO))
def test_top_equals_go_tool_pprof(uploaded, tmp_path, name):
    path = write_file(tmp_path, name)
    profile = read_profile(name)
    for index, (_, unit) in enumerate(profile.sample_types):
        if not profile.samples:
            continue
        expected, repeated = go_top(path, index, unit)
        rows = rows_of(uploaded.top(name, sample_type=index), "flat", "cum")
        # For a function with only a system name pprof prints the binary, we print the name.
        if name == "nameless":
            rows["app+0x0"] = rows.pop("_system_only")
        assert_like_go(rows, expected, repeated)


FILTERS = [
    {"focus": "Function1"},
    {"ignore": "Function1[0-9]"},
    {"hide": "f3[.]go"},
    {"show": "Function2|Function5"},
    {"focus": "libc", "hide": "Function7"},
    {"focus": "Function", "ignore": "Function2", "hide": "Function1", "show": "Function|app"},
    {"hide": "app"},
    {"show": "libc"},
    {"focus": "(?i)fUNCTION9"},
    {"focus": "^$"},
]


@pytest.mark.long
@needs_go
@pytest.mark.parametrize("filters", FILTERS, ids=lambda filters: ",".join(filters))
@pytest.mark.parametrize("name", ["cpu", "delta", "fields"])
def test_filters_equal_go_tool_pprof(uploaded, tmp_path, name, filters):
    path = write_file(tmp_path, name)
    profile = read_profile(name)
    options = [f"-{key}={value}" for key, value in filters.items()]
    expected, repeated = go_top(path, 1, profile.sample_types[1][1], *options)
    rows = rows_of(uploaded.top(name, sample_type=1, **filters), "flat", "cum")
    assert_like_go(rows, expected, repeated)


# pprof requires equal period types, and applies the drop_frames of the base to both profiles.
GO_DIFFS = [("heap", "delta"), ("cpu", "sparse-ids")] + DIFFS[:2] * bool(SERIES)


@pytest.mark.long
@needs_go
@pytest.mark.parametrize("mode", ["absolute", "normalised"])
@pytest.mark.parametrize("a, b", GO_DIFFS)
def test_diff_equals_go_tool_pprof(uploaded, tmp_path, a, b, mode):
    base, path = write_file(tmp_path, a), write_file(tmp_path, b)
    profile = read_profile(b)
    options = [f"-diff_base={base}"] + ["-normalize"] * (mode == "normalised")
    for index, (_, unit) in enumerate(profile.sample_types):
        expected, repeated = go_top(path, index, unit, *options)
        response = uploaded.json(
            "/api/v1/diff/top",
            a=uploaded.id_of(a),
            b=uploaded.id_of(b),
            mode=mode,
            sample_type=index,
            limit=0,
        )
        rows = rows_of(response, "flat_delta", "cum_delta")
        rows = {name: row for name, row in rows.items() if row != (0, 0)}
        if mode == "absolute":
            assert_like_go(rows, expected, repeated)
            continue
        # pprof scales and rounds each sample, and perfoliod scales the sums so that totals agree.
        # Each sample with the function, and the sum, may therefore differ by half a unit.
        samples_with = collections.Counter(
            name for stack in profile.pruned_stacks() for name in set(stack)
        )
        ours, flats = per_binary(rows, repeated)
        theirs = without(without(expected, repeated), flats)
        for name in {*ours, *theirs}:
            for one, other in zip(ours.get(name, (0, 0)), theirs.get(name, (0, 0))):
                assert abs(one - other) <= (samples_with[name] + 1) / 2, name
