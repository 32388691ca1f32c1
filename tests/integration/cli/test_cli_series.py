"""`perfolio push --series`, which stores profiles and OpenTelemetry batches as continuous profiles.
"""

import gzip
import http.server
import json
import sys
import threading

import pytest

import sample_profiles
from conftest import ROOT
from people import Tenant
from test_cli import cli as cli  # the fixture
from test_store import BEGIN, CPU, CPU_NAMES, folded, make_profile

sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import otlp_maker  # noqa: E402

END = BEGIN + 10**9
ONE = [
    (
        {"service.name": "shop"},
        [
            otlp_maker.Profile(
                ("samples", "count"), BEGIN, {("main", "work"): 3}, 10, ("cpu", "nanoseconds")
            )
        ],
    )
]


@pytest.fixture
def tenant(server):
    return Tenant(server)


@pytest.fixture
def push(cli, tenant):
    token = tenant.make_token("ingest")["token"]
    return lambda *arguments, **options: cli("push", *arguments, **{"token": token, **options})


@pytest.fixture
def go_program():
    """The URL of a server with the endpoints of a Go program. Both profiles of locks have the same
    types."""
    types = [("contentions", "count"), ("delay", "nanoseconds")]

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            values = [1, 50] if "mutex" in self.path else [2, 700]
            body = make_profile(types, BEGIN, {("main",): values}, types[0])
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/debug/pprof/"
        server.shutdown()
        thread.join()


def test_the_two_lock_profiles_of_go_have_different_types(push, tenant, go_program):
    urls = [go_program + "mutex", go_program + "block?debug=0"]
    done = push("--series", "service_name=shop", *urls)
    assert done.returncode == 0, done
    window = {"start": BEGIN - 10**9, "end": END}
    types = tenant.api("read").get("/api/v1/profile_types", query=window).json()["data"]
    assert [one["type"].split(":")[:2] for one in types] == [
        ["block", "contentions"],
        ["block", "delay"],
        ["mutex", "contentions"],
        ["mutex", "delay"],
    ]


def test_pushed_profiles_get_the_labels(push, tenant, tmp_path):
    for i, name in enumerate(("a.pb.gz", "b.pb.gz")):
        (tmp_path / name).write_bytes(
            make_profile(CPU, BEGIN + i, {("main",): [1, 10]}, ("cpu", "nanoseconds"), 10**10)
        )
    labels = ("--series", "service_name=shop", "--series=k8s.pod=a=b")
    lines = [f"{tmp_path / 'a.pb.gz'}: 2 values added", f"{tmp_path / 'b.pb.gz'}: 2 values added"]
    done = push(*labels, tmp_path / "a.pb.gz", tmp_path / "b.pb.gz")
    assert done.returncode == 0 and done.out.splitlines() == lines, done
    assert all("older than 24 hours" in line for line in done.log.splitlines()), done
    done = push(*labels, tmp_path / "a.pb.gz")
    assert "known already" in done.out and done.log == "", done
    done = push(*labels, "--quiet", tmp_path / "a.pb.gz")
    assert done.out == "" and done.log == "", done
    done = push(*labels, "--json", tmp_path / "a.pb.gz")
    assert json.loads(done.out)["duplicate"] is True, done
    client = tenant.api("read")
    _, rows = folded(client, CPU_NAMES[0] + '{service_name="shop",k8s_pod="a=b"}', BEGIN, END)
    assert rows == {("main",): 2}


def test_files_with_any_number_of_decimals_form_one_series(push, tenant, tmp_path):
    """This includes a file whose decimals are all 0. Whole numbers without a decimal point have
    another profile type."""
    files = []
    for i, text in enumerate(
        ("main;work 12.0\n", "main;work 2.5\nmain;rest 3\n", "main;work 1.125\n", "main;work 7\n")
    ):
        files.append(tmp_path / f"{i}.folded")
        files[-1].write_text(text)
    done = push("--series", "service_name=decimals", *files)
    assert done.returncode == 0, done
    client = tenant.api("read")
    types = [row["type"] for row in client.get("/api/v1/profile_types").json()["data"]]
    assert types == [
        "process_cpu:samples:count/1000000:::delta",
        "process_cpu:samples:count:::delta",
    ], types
    for type_name, rows in zip(types, (["main;rest 3", "main;work 15.625"], ["main;work 7"])):
        response = client.get("/api/v1/query", query={"query": type_name, "report": "folded"})
        assert sorted(response.text.splitlines()) == rows, response
    window = {f"{side}_query": type_name for side, type_name in zip("ab", types)}
    numbers = client.get("/api/v1/diff/top", query=window).json()
    assert (numbers["total_a"], numbers["total_b"]) == (18_625_000, 7_000_000), numbers
    large = tmp_path / "large.folded"
    large.write_text("main;work 0.125\nmain;rest 9223372036855\n")
    done = push("--series", "service_name=decimals", large)
    assert done.returncode == 7 and "write its values as whole numbers" in done.log, done


def test_a_large_file_is_compressed(push, tenant, tmp_path):
    """The server accepts 8 MiB."""
    large = tmp_path / "large.folded"
    large.write_text("".join(f"main;{'handler' * 40};work_{i:05} 2\n" for i in range(30_000)))
    assert large.stat().st_size > 8 << 20
    done = push("--series", "service_name=large", large)
    assert done.returncode == 0 and done.out == f"{large}: 30,000 values added\n", done
    query = {"query": 'samples{service_name="large"}', "report": "folded"}
    rows = tenant.api("read").get("/api/v1/query", query=query).text.splitlines()
    assert len(rows) == 30_000 and all(row.endswith(" 2") for row in rows), rows[:3]


@pytest.mark.parametrize("how", ["1.9", "1.10", "json", "gzip", "zstd"])
@pytest.mark.parametrize("options", [("--format=otlp",), ("--series", "service_name=other")])
def test_push_detects_opentelemetry_batches_by_content(push, tenant, tmp_path, how, options):
    request = otlp_maker.Request(ONE)
    data = {
        "json": request.json,
        "gzip": lambda: gzip.compress(request.json()),
        "zstd": lambda: sample_profiles.zstd(request.protobuf()),
    }.get(how, lambda: request.protobuf(how))()
    file = tmp_path / "batch"
    file.write_bytes(data)
    for _ in range(2):
        done = push(*options, file)
        assert done.returncode == 0 and done.out == f"{file}: 1 profile sent\n", done
        assert ("labels of its own" in done.log) == (options[0] == "--series")
    client = tenant.api("read")
    _, rows = folded(client, "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta", BEGIN, END)
    assert rows == {("main", "work"): 30}


def test_rejected_profiles_are_reported(push, tmp_path):
    request = json.loads(otlp_maker.Request(ONE).json())
    profiles = request["resourceProfiles"][0]["scopeProfiles"][0]["profiles"]
    profiles.append({**profiles[0], "samples": [{"stackIndex": 999, "values": ["1"]}]})
    file = tmp_path / "batch.json"
    file.write_text(json.dumps(request))
    done = push("--format=otlp", "--json", file)
    assert done.returncode == 0 and "left out" in done.log and "stack" in done.log, done
    result = json.loads(done.out)
    assert result["profiles"] == 1 and result["rejected"] == 1 and result["message"]


@pytest.mark.parametrize(
    "options, data, status, words",
    [
        (("--series", "a"), b"main 1\n", 2, "NAME=VALUE"),
        (("--series", "=a"), b"main 1\n", 2, "NAME=VALUE"),
        (("--format", "pprof"), b"main 1\n", 2, "otlp or profile"),
        (("--series", "a=b", "--title", "x"), b"main 1\n", 2, "--title applies to shares"),
        (("--format", "otlp", "--open"), b"main 1\n", 2, "--open applies to shares"),
        (("--series", "a=b", "--series", "a=c"), b"main 1\n", 7, "'a' is given twice"),
        (("--series", "a=b"), b"\x01\x02", 7, ""),
        (("--format", "otlp"), b"main 1\n", 7, "OTLP"),
        (("--format", "profile"), otlp_maker.Request(ONE).json(), 7, ""),
        (
            ("--series", "a=b"),
            b"\x1f\x8b\x08" + bytes(9 << 20),
            None,
            "limit for a series is 8 MiB",
        ),
    ],
    ids=[
        "no value",
        "no name",
        "format",
        "title",
        "open",
        "twice",
        "rubbish",
        "no OTLP",
        "OTLP",
        "large",
    ],
)
def test_invalid_arguments_and_data_are_reported(push, tmp_path, options, data, status, words):
    file = tmp_path / "file"
    file.write_bytes(data)
    done = push(*options, file)
    assert done.returncode == status or (status is None and done.returncode), done
    assert words in done.log and "perfolio push:" in done.log and done.out == "", done


def test_push_prints_the_reason_of_a_refused_otlp_request(push, tenant, tmp_path):
    for name, data in (
        ("proto", otlp_maker.Request(ONE).protobuf()),
        ("json", otlp_maker.Request(ONE).json()),
    ):
        (tmp_path / name).write_bytes(data)
        done = push("--format=otlp", tmp_path / name, token=tenant.make_token("read")["token"])
        assert done.returncode and 'lacks the scope "ingest"' in done.log, done
