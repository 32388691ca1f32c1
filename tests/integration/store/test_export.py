"""Parquet exports, read back by DuckDB: sums equal the results of queries, for any names, and
errors are responses, not truncated files.

`make interop` fetches DuckDB; without it these tests are skipped."""

import gzip
import hashlib
import json
import random
import subprocess
import sys

import pytest

from conftest import BUILD, ROOT
from people import Tenant
from test_cli import cli  # noqa: F401
from test_store import (
    BEGIN,
    CPU,
    CPU_NAMES,
    HEAP_NAMES,
    HOUR,
    MATCHERS,
    compact,
    folded,
    make_profile,
    make_sources,
    parameters,
    send,
)
from test_store_labels import SPANS, TRACES, make_labelled

sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import otlp_maker  # noqa: E402
import pprof_maker  # noqa: E402
import store_oracle  # noqa: E402

DUCKDB = ROOT / "tests" / "duckdb"
ALL = '{absent=""}'
WINDOW = {"start": BEGIN - 9 * HOUR, "end": BEGIN + 9 * HOUR}

pytestmark = pytest.mark.skipif(
    not (DUCKDB / "node_modules" / "@duckdb" / "node-api").is_dir(),
    reason="make interop fetches DuckDB",
)


class Table:
    """An exported file; FILE is its placeholder in SQL."""

    def __init__(self, path):
        self.path = path

    def query(self, *statements):
        """Returns the rows of each statement, with integers as strings."""
        done = subprocess.run(
            ["node", "query.mjs", *(s.replace("FILE", f"'{self.path}'") for s in statements)],
            cwd=DUCKDB,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        responses = [json.loads(line) for line in done.stdout.splitlines()]
        return responses[0] if len(responses) == 1 else responses


@pytest.fixture
def export(tmp_path):
    def call(client, **query):
        response = client.get("/api/v1/export", query={"format": "parquet", **WINDOW, **query})
        assert response.status == 200, response
        assert response.headers["content-type"] == "application/vnd.apache.parquet"
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.parquet"
        path.write_bytes(response.body)
        return Table(path)

    return call


@pytest.mark.long
def test_sums_equal_the_results_of_queries(start_server, export):
    server = start_server("--jobs-interval", "1s")
    rng, client = random.Random(7), Tenant(server).api("ingest", "read")
    oracle, sources = store_oracle.Oracle(), make_sources(random.Random(7))
    for _ in range(80):
        send(client, oracle, rng.choice(sources), BEGIN + rng.randrange(3 * HOUR))
    for is_compacted in (False, True):
        for selector, matches in MATCHERS:
            table = export(client, query=CPU_NAMES[1] + selector)
            stacks, labels, functions = table.query(
                "SELECT list_reverse(stack), sum(value)::BIGINT FROM FILE GROUP BY 1",
                "SELECT label_pod, sum(value)::BIGINT FROM FILE GROUP BY 1",
                "SELECT f, sum(value)::BIGINT FROM (SELECT unnest(list_distinct(stack)) f, value "
                "FROM FILE) GROUP BY 1",
            )
            wanted = oracle.merge(CPU_NAMES[1], matches, WINDOW["start"], WINDOW["end"])
            assert {tuple(stack): int(value) for stack, value in stacks} == wanted
            _, merged = folded(client, CPU_NAMES[1] + selector, WINDOW["start"], WINDOW["end"])
            assert merged == wanted
            for pod, value in labels:
                _, rows = folded(
                    client, CPU_NAMES[1] + f'{{pod="{pod}"}}', WINDOW["start"], WINDOW["end"]
                )
                assert int(value) == sum(rows.values()), pod
            top = client.get(
                "/api/v1/query",
                query={**WINDOW, "query": CPU_NAMES[1] + selector, "report": "top", "limit": 0},
            ).json()
            assert {name: int(value) for name, value in functions} == {
                row["name"]: row["cum"] for row in top["functions"]
            }
        if not is_compacted:
            compact(server)
    # All types and samples, also in a window that begins and ends within an hour.
    for start, end in ((WINDOW["start"], WINDOW["end"]), (BEGIN + HOUR // 3, BEGIN + HOUR)):
        table = export(client, query=ALL, start=start, end=end)
        rows = table.query(
            "SELECT profile_type, epoch_ns(time), label_service_name, label_pod, label_zone, "
            "list_reverse(stack), value FROM FILE"
        )
        found = sorted(
            (name, int(time), service, pod, zone or "", tuple(stack), int(value))
            for name, time, service, pod, zone, stack, value in rows
        )
        wanted = sorted(
            (
                name,
                time,
                labels["service_name"],
                labels["pod"],
                labels.get("zone", ""),
                stack,
                value,
            )
            for labels, name, time, stack, value in oracle_rows(oracle)
            if start <= time < end
        )
        assert found == wanted


def oracle_rows(oracle):
    for name, labels, time_ns, rows, _ in oracle.profiles:
        for stack, _, value in rows:
            yield labels, name, time_ns, stack, value


HOSTILE = [
    "",
    "\0",
    "a\0b",
    "\"';--",
    "%s%n",
    "x" * 70000,
    "🦆\u202e",
    "\x1b[31m",
    "[brackets]",
    "a\nb",
    "NULL",
]
BAD_BYTES = b"caf\xe9 \xff\xfe\xc0\x80 ok"


def test_hostile_names_are_exported_unchanged(server, export):
    client = Tenant(server).api("ingest", "read")
    body = make_profile(
        CPU,
        BEGIN,
        {("main", name): [i + 1, i + 1] for i, name in enumerate(HOSTILE[1:])},
        ("cpu", "nanoseconds"),
        10**10,
    )
    body = gzip.compress(gzip.decompress(body).replace(b"brackets", b"bra\xffkets"))
    labels = {
        "value": "1",
        "VALUE": "2",
        "Value": "3",
        "a_b": "4",
        "A_B": "5",
        "time": "6",
        "a_b_2": "7",
    }
    response = client.post("/api/v1/profiles", body=body, query=parameters(labels))
    assert response.status == 200, response
    table = export(client, query=CPU_NAMES[0])
    names, columns = table.query(
        "SELECT stack[1], value FROM FILE ORDER BY value",
        "SELECT column_name FROM (DESCRIBE SELECT * FROM FILE) WHERE column_name LIKE 'label%'",
    )
    for (found, _), name in zip(names, HOSTILE[1:], strict=True):
        if len(name) > 16 << 10:  # cut, with a hash of the whole at the end
            assert len(found) == 16 << 10 and found[:16000] == name[:16000]
        else:
            assert found == name.replace("[brackets]", "[bra\ufffdkets]")
    columns = [column for column, in columns]
    assert len({column.lower() for column in columns}) == len(labels)
    values = table.query("SELECT DISTINCT " + ",".join(columns) + " FROM FILE")[0]
    assert sorted(values) == sorted(labels.values())
    assert {"label_value", "label_time"} <= {column.lower() for column in columns}


def test_labels_links_timestamps_and_frames_are_exported(server, export):
    client = Tenant(server).api("ingest", "read")
    link = [("span_id", SPANS[1]), ("trace_id", TRACES[1])]
    samples = [
        (("main", "a"), [("thread", "m,'\""), ("bytes", 4096, "bytes")], [1, 10]),
        (("main", "b"), link, [2, 20]),
        (("main", "a"), [], [4, 40]),
    ]
    response = client.post(
        "/api/v1/profiles",
        query={"label": "pod=x"},
        body=make_labelled(CPU, BEGIN, samples, ("cpu", "nanoseconds"), 10**10),
    )
    assert response.status == 200, response
    table = export(client, query=CPU_NAMES[0])
    rows = table.query(
        "SELECT value, sample_labels, trace_id, span_id, duration_ns, period, sample_type, "
        "sample_unit, "
        "len(seen_at) FROM FILE ORDER BY value"
    )
    own = [{pair["key"]: pair["value"] for pair in row[1]} for row in rows]
    assert own[0] == {"thread": "m,'\"", "bytes": "4096 bytes"} and own[2] == {}
    ids = [
        dict(own[1], **{k: v for k, v in (("trace_id", rows[1][2]), ("span_id", rows[1][3])) if v})
    ]
    assert ids == [{"trace_id": TRACES[1], "span_id": SPANS[1]}]
    assert {tuple(row[4:]) for row in rows} == {(str(10**10), "1", "samples", "count", "0")}
    for rule, wanted in (("thread=m,'\"", "1"), ("bytes=4096 bytes", "1"), ("thread=", "6")):
        assert export(client, query=CPU_NAMES[0], label=rule).query(
            "SELECT sum(value)::BIGINT FROM FILE"
        ) == [[wanted]]

    timestamps = [BEGIN + 5, BEGIN + 7 * 10**9]
    request = otlp_maker.Request(
        [
            (
                {"service.name": "shop"},
                [
                    otlp_maker.Profile(
                        ("samples", "count"),
                        BEGIN,
                        {("main", "work"): 2},
                        duration=10**10,
                        timestamps={("main", "work"): timestamps},
                    )
                ],
            )
        ]
    )
    response = client.post(
        "/v1development/profiles",
        body=request.protobuf("1.10"),
        headers={"Content-Type": "application/x-protobuf"},
    )
    assert response.status == 200, response
    seen = export(client, query='{service_name="shop"}').query(
        "SELECT list_transform(seen_at, x -> epoch_ns(x)), value FROM FILE"
    )
    assert seen == [[[str(timestamp) for timestamp in timestamps], "2"]]

    maker = pprof_maker.Maker(CPU)
    binary = maker.mapping("/usr/lib/libc.so.6", build_id="00ff12")
    named = maker.location(
        [(maker.function("inner", "i.c"), 3), (maker.function("outer", "o.c"), 9)], binary, 0x400100
    )
    maker.sample(
        [maker.location([], binary, 0x400200), named, maker.location([], 0, 0xFFFFFFFFFFFFFF00)],
        [1, 1],
    )
    maker.scalars(time=BEGIN, duration=10**10, period=1, period_type=("cpu", "nanoseconds"))
    response = client.post(
        "/api/v1/profiles", query={"label": "pod=native"}, body=gzip.compress(maker.bytes())
    )
    assert response.status == 200, response
    ((stack, frames),) = export(client, query=CPU_NAMES[0] + '{pod="native"}').query(
        "SELECT stack, frames FROM FILE"
    )
    assert stack == ["libc.so.6+0x1200", "inner", "outer", "0xffffffffffffff00"]
    assert [(f["function"], f["file"], f["line"], f["build_id"], f["binary"]) for f in frames] == [
        ("", "", "0", "00ff12", "/usr/lib/libc.so.6"),
        ("inner", "i.c", "3", "00ff12", "/usr/lib/libc.so.6"),
        ("outer", "o.c", "9", "00ff12", "/usr/lib/libc.so.6"),
        ("", "", "0", "", ""),
    ]
    # The mapping begins at 0x400000 and maps the file from offset 0x1000 on.
    assert [int(f["address"]) for f in frames] == [0x1200, 0x1100, 0x1100, 0xFFFFFFFFFFFFFF00]


def test_empty_exports_and_errors_have_their_own_responses(server, export):
    tenant = Tenant(server)
    client = tenant.api("ingest", "read")
    assert export(client, query=ALL).query("SELECT count(*) FROM FILE") == [["0"]]
    body = make_profile(CPU, BEGIN, {("main", "work"): [1, 10]}, ("cpu", "nanoseconds"), 10**10)
    assert client.post("/api/v1/profiles", body=body, query={"label": "pod=a"}).status == 200
    rows = export(client, query=CPU_NAMES[0] + '{pod="b"}').query(
        "SELECT count(*), max(value) FROM FILE"
    )
    assert rows == [["0", None]]
    for query, status, text in (
        ({"query": HEAP_NAMES[0]}, 404, "there are: "),
        ({}, 400, "query is missing"),
        ({"query": ALL, "format": "csv"}, 400, "format must be parquet"),
        ({"query": "{pod=}"}, 400, "query"),
        ({"query": ALL, "report": "top"}, 400, "report"),
        ({"query": ALL, "label": "x"}, 400, "label"),
    ):
        response = client.get("/api/v1/export", query={**WINDOW, **query})
        assert response.status == status and text in response.json()["detail"], response
    head = client.request("HEAD", "/api/v1/export", query={"query": ALL, **WINDOW})
    assert head.status == 200 and not head.body


def test_large_names_are_exported_in_several_pages(server, export):
    """One row with 9 MB of names, and 20 MB of names too varied for a dictionary."""
    client = Tenant(server).api("ingest", "read")
    stacks = {tuple(f"long {i:04} " + "x" * 16000 for i in range(600)): [1, 1]}
    stacks |= {
        tuple(f"row {row} frame {i:03} " + "y" * 2000 for i in range(100)): [1, 1]
        for row in range(100)
    }
    for at, (stack, values) in enumerate(stacks.items()):
        body = make_profile(CPU, BEGIN + at, {stack: values}, ("cpu", "nanoseconds"), 10**10)
        assert client.post("/api/v1/profiles", body=body).status == 200
    table = export(client, query=CPU_NAMES[0])
    frames = sorted(frame for stack in stacks for frame in stack)
    found = table.query(
        "SELECT md5(string_agg(name, chr(10) ORDER BY name)), count(*) FROM ("
        "SELECT unnest(stack) AS name FROM FILE)",
        "SELECT md5(string_agg(name, chr(10) ORDER BY name)), count(*) FROM ("
        "SELECT unnest(frames).function AS name FROM FILE)",
    )
    wanted = hashlib.md5("\n".join(frames).encode()).hexdigest()
    assert found == [[[wanted, str(len(frames))]]] * 2


@pytest.mark.parametrize("limits", [(0, 0), (100, 0), (100, 1), (1, 1), (20, 0)])
def test_duckdb_reads_several_pages_and_rows_split_between_pages(tmp_path, limits):
    program = BUILD / "tests" / "programs" / "write_parquet"
    subprocess.run(
        ["make", "-s", f"BUILD={BUILD.name}", str(program.relative_to(ROOT))], cwd=ROOT, check=True
    )
    table, count = Table(tmp_path / "pages.parquet"), 5000
    subprocess.run([program, table.path, *map(str, limits), str(count)], check=True)
    rows = [
        [
            str(i),
            [f"text {i % 11}"] * (i % 7) + [f"long {k}" for k in range(100 if i % 13 == 0 else 0)],
            f"maybe {i % 5}" if i % 3 else None,
        ]
        for i in range(count)
    ]
    assert table.query("SELECT number, texts, maybe FROM FILE ORDER BY number") == rows


def test_statistics_contain_the_minimum_and_maximum_of_each_column(server, export):
    client = Tenant(server).api("ingest", "read")
    for i in range(3):
        body = make_profile(
            CPU,
            BEGIN + i * HOUR,
            {("main", f"f{i}"): [5 - i, 10]},
            ("cpu", "nanoseconds"),
            10**10,
        )
        assert (
            client.post("/api/v1/profiles", body=body, query={"label": f"pod=p{i}"}).status == 200
        )
    rows = dict(
        (name.strip('"'), rest)
        for name, *rest in export(client, query=CPU_NAMES[0]).query(
            "SELECT path_in_schema, stats_min_value, stats_max_value, stats_null_count, "
            "encodings, compression "
            "FROM parquet_metadata(FILE)"
        )
    )
    assert rows["label_pod"][:3] == ["p0", "p2", "0"] and rows["value"][:3] == ["3", "5", "0"]
    assert rows["span_id"][2] == "3" and {row[4] for row in rows.values()} == {"ZSTD"}
    assert rows["time"][0].startswith("2026-09-21") and rows["time"][0] < rows["time"][1]


def test_the_export_command_saves_a_parquet_file(server, cli, tmp_path):  # noqa: F811
    tenant = Tenant(server)
    for i in range(3):
        body = make_profile(
            CPU, BEGIN + i * HOUR, {("main", "work"): [1 + i, 10]}, ("cpu", "nanoseconds"), 10**10
        )
        response = tenant.api("ingest").post(
            "/api/v1/profiles", body=body, query={"label": f"pod=p{i}"}
        )
        assert response.status == 200, response
    token = tenant.make_token("read")["token"]
    first = BEGIN // 10**9
    table = Table(tmp_path / "cpu.parquet")
    done = cli(
        "export",
        "--parquet",
        CPU_NAMES[0],
        "--start",
        BEGIN,
        "--end",
        BEGIN + 2 * HOUR,
        "-o",
        table.path,
        token=token,
    )
    assert done.returncode == 0, done.log
    assert table.query("SELECT label_pod, value FROM FILE ORDER BY ALL") == [
        ["p0", "1"],
        ["p1", "2"],
    ]
    assert (
        cli("export", CPU_NAMES[0], "-o", table.path, token=token).returncode != 0
    )  # the file exists
    done = cli(
        "export",
        f'{{pod=~"p."}}@{first}..{first + 9 * 3600}',
        "--label",
        "pod=p2",
        "-f",
        "-o",
        table.path,
        token=token,
    )
    assert done.returncode == 0, done.log
    assert table.query("SELECT sample_type, value FROM FILE ORDER BY ALL") == [
        ["cpu", "10"],
        ["samples", "3"],
    ]
    done = cli("export", "{pod=}", "-o", tmp_path / "none", token=token)
    assert done.returncode != 0 and "^" in done.log and not (tmp_path / "none").exists()
    assert cli("export", CPU_NAMES[0], token=token).returncode == 2
