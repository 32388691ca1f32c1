#!/usr/bin/env python3
"""Writes the seeds of the fuzzers, tests/fuzz/corpus/<fuzzer>/seed-*: small inputs that cover every
part of a format. The output is deterministic; run it after a change and commit the difference.
Other scripts and compilers made some seeds, so it deletes none: delete an obsolete seed by hand."""
import base64
import gzip
import json
import pathlib
import struct
import sys
import zlib

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus"
# The seeds of fuzz_symbolize, except its Go program, were built from a few lines with gcc 12,
# clang 14 and binutils 2.40; this script does not build them.
sys.path.insert(0, str(CORPUS.parents[1] / "oracle"))
import go_table_maker  # noqa: E402


# --- pprof -----------------------------------------------------------------------------------
def varint(number):
    number &= (1 << 64) - 1
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + bytes(value)


def message(*fields):
    return b"".join(field(number, value) for number, value in fields)


def packed(*numbers):
    return b"".join(varint(number) for number in numbers)


STRINGS = [
    "",
    "samples",
    "count",
    "cpu",
    "nanoseconds",
    "main",
    "main.c",
    "inner",
    "/bin/app",
    "0123abcd",
    "thread",
    "worker",
    "bytes",
    "a comment",
    "^runtime",
    "[kernel.kallsyms]",
    "leaf \u00e9",
    "https://example.org/doc",
]


def pprof(is_packed=True):
    text = {word: index for index, word in enumerate(STRINGS)}
    out = message(
        (1, message((1, text["samples"]), (2, text["count"]))),
        (1, message((1, text["cpu"]), (2, text["nanoseconds"]))),
    )
    label = message((1, text["thread"]), (2, text["worker"]))
    number = message((1, text["bytes"]), (3, 4096), (4, text["bytes"]))
    if is_packed:
        out += message(
            (2, message((1, packed(3, 2, 1)), (2, packed(1, 10)), (3, label), (3, number))),
            (2, message((1, packed(2, 1)), (2, packed(4, 40)))),
        )
    else:
        out += message(
            (2, message((1, 3), (1, 2), (1, 1), (2, 1), (2, 10))), (2, message((2, 3), (2, -30)))
        )
    out += message(
        (
            3,
            message(
                (1, 1),
                (2, 0x400000),
                (3, 0x500000),
                (5, text["/bin/app"]),
                (6, text["0123abcd"]),
                (7, 1),
                (8, 1),
                (9, 1),
                (10, 1),
            ),
        ),
        (3, message((1, 9), (2, 1 << 63), (3, (1 << 64) - 1), (5, text["[kernel.kallsyms]"]))),
        (4, message((1, 1), (2, 1), (3, 0x400010), (4, message((1, 1), (2, 12))))),
        (
            4,
            message(
                (1, 2),
                (2, 1),
                (3, 0x400020),
                (4, message((1, 2), (2, 3), (3, 7))),
                (4, message((1, 1), (2, 13))),
            ),
        ),
        (4, message((1, 3), (2, 9), (3, (1 << 63) + 5), (5, 1))),
        (5, message((1, 1), (2, text["main"]), (3, text["main"]), (4, text["main.c"]), (5, 10))),
        (5, message((1, 2), (2, text["leaf \u00e9"]), (4, text["main.c"]))),
    )
    for word in STRINGS:
        out += field(6, word.encode())
    return out + message(
        (7, text["^runtime"]),
        (8, text["main"]),
        (9, 1700000000000000000),
        (10, 10**10),
        (11, message((1, text["cpu"]), (2, text["nanoseconds"]))),
        (12, 10**7),
        (13, packed(text["a comment"])),
        (14, text["samples"]),
        (15, text["https://example.org/doc"]),
    )


# --- text ------------------------------------------------------------------------------------
FOLDED = {
    "plain": "main;run;leaf 12\nmain;run 3\nmain;run;run;run 1\n",
    "annotated": "app;sys_read_[k];copy_[k] 4\napp;run;small_[i] 2\nJava;Foo.bar_[j];x_[i] 1\n",
    "odd": "# a comment\n// another\n\na;b 1.25\r\nno value\na;;c 2.5e-3\n;x -7\n a b c\t9",
    "many": "".join(f"root;worker{i % 7};step{i % 3};f{i} {i}\n" for i in range(60)),
    "ends": "x 9223372036854775806\ny -9223372036054775808\nz;y -9222376033854775808\nz 5\n",
    "edge": "x 9223372036854775807\nx 9223372036854775807\ny -9223372036854775808\n{main};f 1\n",
}

PERF = {
    "plain": "app 1/2 [003] 12.000001:  1001001 cpu-clock: \n"
    "\t  6f1 beta+0x12 (/apps/app)\n\t  789 main (/apps/app)\n\n"
    "app 1/2 [000] 12.010001:  1001001 cpu-clock: \n"
    "\tffffffffad14d115 [unknown] ([kernel.kallsyms])\n\t  789 main (/apps/app)\n\n",
    "header": "# ========\n# hostname : box\n# cmdline : perf record -g ./app\n# ========\n#\n"
    "Web Content  77 1.5: cycles:ppp: \n\t 7f00 std::map<int, (x)>::at(int) const+0xf "
    "(/lib/x y.so (deleted))\n\n",
    "events": "a 1 1.000: 5 cycles: \n\t1 f (a)\n\nb 2 1.001: 6 cache-misses:u: \n\t2 g (b)\n\n"
    "c 3 [001] 1.002: sched:sched_switch: prev_comm=c prev_pid=3 ==> next_comm=d\n"
    "\t3 h (c)\n",
    "inline": "a 1 1.0: cycles: \n\t10 in1 (inlined)\n\t10 in2 (inlined)\n\t10 out (/bin/a)\n"
    "  src/out.c:12\n\t20 main (/bin/a)\n\n",
    "one-line": "            perf  1234 [000]   123.456789:     250000 cycles:  ffffffff81063956 "
    "native_write_msr+0x6 ([kernel.kallsyms])\n",
    "no-time": "comm 12 [001] 33 cycles: \n\tabc f (d)\n\ncomm 12\n\tabc f (d)\n\n",
}


def cpuprofile_node(number, name, **more):
    return {
        "id": number,
        "callFrame": {
            "functionName": name,
            "scriptId": "1",
            "url": "a.js",
            "lineNumber": number,
            "columnNumber": 2,
        },
        **more,
    }


CPUPROFILE = {
    "children": {
        "nodes": [
            cpuprofile_node(1, "(root)", children=[2, 3]),
            cpuprofile_node(2, "", hitCount=1, children=[4]),
            cpuprofile_node(3, "(idle)"),
            cpuprofile_node(4, "leaf"),
        ],
        "startTime": 1000,
        "endTime": 5000,
        "samples": [2, 4, 4, 3],
        "timeDeltas": [100, 250, -10, 400],
    },
    "parents": {
        "nodes": [
            cpuprofile_node(1, "(root)"),
            cpuprofile_node(2, "a", parent=1),
            cpuprofile_node(3, "b", parent=2),
        ],
        "startTime": 0,
        "endTime": 10,
        "samples": [3, 2],
        "timestamps": [1, 4],
    },
    "hits": {
        "nodes": [cpuprofile_node(1, "a", hitCount=3), cpuprofile_node(2, "b", hitCount=4)],
        "startTime": 0,
        "endTime": 700,
    },
    "old": {
        "head": {
            "functionName": "(root)",
            "url": "",
            "lineNumber": 0,
            "id": 1,
            "hitCount": 0,
            "children": [
                {
                    "functionName": "f",
                    "url": "x.js",
                    "lineNumber": 3,
                    "id": 2,
                    "hitCount": 2,
                    "children": [],
                }
            ],
        },
        "startTime": 1.5,
        "endTime": 2.5,
        "samples": [2, 2],
        "timestamps": [1500000, 1600000],
    },
    "loop": {
        "nodes": [cpuprofile_node(1, "a", children=[2]), cpuprofile_node(2, "b", children=[1])],
        "startTime": 0,
        "endTime": 1,
    },
}

FRAMES = [{"name": "main", "file": "a.py", "line": 3, "col": 1}, {"name": "run"}, {"name": "leaf"}]


def speedscope(*profiles, **more):
    return {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "shared": {"frames": FRAMES},
        "profiles": list(profiles),
        **more,
    }


SAMPLED = {
    "type": "sampled",
    "name": "one",
    "unit": "seconds",
    "startValue": 0,
    "endValue": 3,
    "samples": [[0, 1], [0, 1, 2], []],
    "weights": [1, 2, 0.5],
}
EVENTED = {
    "type": "evented",
    "name": "two",
    "unit": "milliseconds",
    "startValue": 0,
    "endValue": 9,
    "events": [
        {"type": "O", "frame": 0, "at": 0},
        {"type": "O", "frame": 2, "at": 1.5},
        {"type": "C", "frame": 2, "at": 4},
        {"type": "C", "frame": 0, "at": 9},
    ],
}
SPEEDSCOPE = {
    "sampled": speedscope(SAMPLED),
    "evented": speedscope(EVENTED, version="0.0.1"),
    "both": speedscope(SAMPLED, EVENTED, activeProfileIndex=1, exporter="x"),
    "open": speedscope({**EVENTED, "unit": "none", "events": EVENTED["events"][:2]}),
    "bytes": speedscope({**SAMPLED, "unit": "bytes", "weights": [1, 2, 3]}),
}


# --- OTLP ------------------------------------------------------------------------------------
def fixed64(number, value):
    return varint(number << 3 | 1) + struct.pack("<Q", value)


def otlp_key_value(key, value):
    return message((1, key.encode()), (2, message((1, value.encode()))))


def otlp_attribute(key, value, unit=0):
    any_value = message((3, value)) if isinstance(value, int) else message((1, value.encode()))
    return message((1, key), (2, any_value), (3, unit))


def otlp_dictionary():
    words = [
        "",
        "samples",
        "count",
        "cpu",
        "nanoseconds",
        "main",
        "main.c",
        "/bin/app",
        "process.executable.build_id.gnu",
        "thread.name",
        "a.b",
        "service.name",
        "bytes",
    ]
    text = {word: index for index, word in enumerate(words)}
    return message(
        (1, b""),
        (1, message((1, 4096), (2, 8192), (4, text["/bin/app"]), (5, packed(1)))),
        (2, b""),
        (2, message((1, 1), (2, 4100), (3, message((1, 1), (2, 12))))),
        (2, message((2, 77))),
        (3, b""),
        (3, message((1, text["main"]), (2, text["main"]), (3, text["main.c"]), (4, 1))),
        (4, b""),
        (4, message((1, bytes(range(16))), (2, bytes(range(8))))),
        *((5, word.encode()) for word in words),
        (6, b""),
        (6, otlp_attribute(text["process.executable.build_id.gnu"], "abc")),
        (6, otlp_attribute(text["thread.name"], "worker")),
        (6, otlp_attribute(text["a.b"], 5, text["bytes"])),
        (6, otlp_attribute(text["service.name"], "own")),
        (7, b""),
        (7, message((1, packed(1, 2)))),
        (7, message((1, packed(2)))),
    )


def otlp(attributes, link, values, **more):
    """A request whose samples have their fields under these numbers."""
    times = struct.pack("<3Q", 5, 3, 4)
    samples = [
        message((1, 1), (attributes, packed(2, 3)), (link, 1), (values, packed(2, 3))),
        message((1, 2), (attributes, packed(4))) + field(values, packed(7)),
        message((1, 2), (5, times)),
        message((1, 0), (values, packed(-1))),
    ]
    profile = (
        message((1, message((1, 1), (2, 2))), *((2, sample) for sample in samples))
        + fixed64(3, 1700000000000000000)
        + message(
            (4, 1000),
            (5, message((1, 3), (2, 4))),
            (6, 10),
            (8 if "oldest" in more else 7, bytes(16)),
        )
    )
    resource = message(
        (1, otlp_key_value("service.name", "shop")),
        (1, otlp_key_value("a-b", "x")),
        (1, message((2, message((8, 5))), (3, 10))),
    )
    scope = message((1, b"scope"), (3, otlp_key_value("a_b", "y")))
    return message(
        (1, message((1, resource), (2, message((1, scope), (2, profile))))), (2, otlp_dictionary())
    )


OTLP_JSON = {
    "resourceProfiles": [
        {
            "resource": {
                "attributes": [
                    {"key": "service.name", "value": {"stringValue": "shop"}},
                    {"key": "a.b", "value": {"doubleValue": 0.1}},
                    {"keyStrindex": 5, "value": {"boolValue": True}},
                    {"key": "l", "value": {"arrayValue": {"values": []}}},
                ]
            },
            "scopeProfiles": [
                {
                    "profiles": [
                        {
                            "sampleType": {"typeStrindex": 1, "unitStrindex": 2},
                            "samples": [
                                {
                                    "stackIndex": 1,
                                    "attributeIndices": [1],
                                    "linkIndex": 1,
                                    "values": ["2"],
                                    "timestampsUnixNano": ["9", 8],
                                }
                            ],
                            "timeUnixNano": "50",
                            "durationNano": "10",
                            "period": "10",
                            "periodType": {"typeStrindex": 3, "unitStrindex": 4},
                        }
                    ]
                }
            ],
        }
    ],
    "dictionary": {
        "stringTable": ["", "samples", "count", "cpu", "nanoseconds", "main"],
        "mappingTable": [{}],
        "functionTable": [{}, {"nameStrindex": 5}],
        "locationTable": [{}, {"address": "77", "lines": [{"functionIndex": 1}]}],
        "linkTable": [{}, {"traceId": "00" * 16, "spanId": "ab" * 8}],
        "attributeTable": [{}, {"keyStrindex": 5, "value": {"intValue": "-3"}}],
        "stackTable": [{}, {"locationIndices": [1]}],
    },
}


# --- compression -----------------------------------------------------------------------------
def zstd_raw(data, is_last=True):
    """A frame of one raw block, since Python 3.11 has no zstd writer (RFC 8878)."""
    block = struct.pack("<I", len(data) << 3 | int(is_last))[:3] + data
    return (
        b"\x28\xb5\x2f\xfd" + b"\x60" + struct.pack("<H", max(len(data), 256) - 256) + block
        if len(data) >= 256
        else b"\x28\xb5\x2f\xfd\x20" + bytes([len(data)]) + block
    )


def zstd_run(byte, count):
    """A frame of one run-length block: a small decompression bomb."""
    return (
        b"\x28\xb5\x2f\xfd\xa0"
        + struct.pack("<I", count)
        + struct.pack("<I", count << 3 | 2 | 1)[:3]
        + byte
    )


def gzip_bytes(data):
    return gzip.compress(data, 6, mtime=0)


def stored_gzip(data):
    body = zlib.compressobj(0, zlib.DEFLATED, -15)
    raw = body.compress(data) + body.flush()
    return (
        b"\x1f\x8b\x08\x18"
        + bytes(4)
        + b"\0\3name\0comment\0"
        + raw
        + struct.pack("<II", zlib.crc32(data), len(data))
    )


REQUESTS = {
    "share": "POST\n/api/v1/shares\ntitle=A+b%20c&label=k%3Dv&label=x=y&expires=7d\n"
    "content-type: application/octet-stream\nx-perfolio-password: secret\n",
    "page": "GET\n/p/0123456789abcdefghijAB.pb.gz\nsample_type=cpu&focus=%5Emain\n"
    "cookie: a=b; __Host-perfolio_session=abcdef; c=d\naccept-encoding: gzip;q=0, zstd\n"
    'if-none-match: W/"abc", "x"\n',
    "diff": "GET\n/d/0123456789abcdefghijAB..0123456789abcdefghijAC\n\n",
    "odd": "DELETE\n/api//v1/%2e%2e/x\n&&=&%&%zz&limit=-5&limit=99999999999999999999&=\n"
    ": \ncookie: =;;=\n",
    "team": "POST\n/api/v1/shares\nvisibility=team&expires=never&filename=a%2Fb.pb.gz\n",
    "password": "POST\n/api/v1/shares\nvisibility=password&expires=3h\n"
    "x-perfolio-password: long enough\n",
    "json": "POST\n/api/v1/tokens\n\ncontent-type: application/json\n\n"
    '{"name":"ci","scopes":["read","share"],"role":null,"expires":7}',
    "part": "PUT\n/api/v1/uploads/0123456789abcdefghijAB/parts/7\nlimit=12\n",
}

REGEX = [
    "^runtime\\.(gc|malloc).*$\nruntime.mallocgc",
    "(?i)[a-z_]+\\d{2,5}?\\b\nFoo_123 bar",
    "(a+)+$\naaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!",
    "(?=x)\nx",
    "[^\\s\\w]|\\x41\n A",
    "\n",
    "(?:a|b)*c\nababac",
    "\\1\na",
]

VIEWS = [
    "cycles\nfunction\nmain\n\n\n\n0",
    "misses\nline\n\nlibc\n\n\n100",
    "0\naddress\n\n\nouter\n\n",
    "\nbinary\napp\n\n\nouter|main\n",
    "\nlabel:comm\n\n\n\n\n",
    "cycles\nfile\n(\n\n\n\n",
    "1\npid\n.\nx\n^h\n.*\n9",
    "0\n\n\n\n\n\n\ncomm=app\npid!=2..7\npid",
    "0\n\n\n\n\n\n\ncomm=\n\\tid\\!=3 \nno",
]


# --- Pyroscope: both APIs --------------------------------------------------------------------
def form(*parts, boundary="b"):
    """(name, bytes) alternating, as multipart/form-data."""
    out = b""
    for name, data in parts:
        out += (
            (
                f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"; filename="f"\r\n'
                "Content-Type: application/octet-stream\r\n\r\n"
            ).encode()
            + data
            + b"\r\n"
        )
    return out + f"--{boundary}--\r\n".encode()


def push(*series):
    """(labels, profiles) alternating, as push.v1.PushRequest."""
    out = b""
    for labels, profiles in series:
        fields = [
            (1, message((1, name.encode()), (2, value.encode()))) for name, value in labels.items()
        ]
        fields += [(2, message((1, data), (2, b"id"))) for data in profiles]
        out += field(1, message(*fields))
    return out


def pyroscope():
    plain, packed_bytes = pprof(), gzip_bytes(pprof())
    labels = {"__name__": "process_cpu", "service_name": "app", "__delta__": "false", "a.b": "c"}
    encoded = {
        "series": [
            {
                "labels": [{"name": "service_name", "value": "app"}],
                "samples": [{"rawProfile": base64.b64encode(plain).decode(), "ID": "1"}],
            }
        ]
    }
    config = {
        "cpu": {
            "units": "samples",
            "display-name": "cpu",
            "aggregation": "average",
            "cumulative": True,
            "sampled": True,
        }
    }
    parts = form(("profile", packed_bytes), ("sample_type_config", json.dumps(config).encode()))
    query = b"name=app.cpu%7Bk%3Dv,l=w}&from=now-1h30m&until=1767323045678&sampleRate=50\n"
    return {
        "push": b"p" + push((labels, [plain])),
        "push-two": b"p" + push((labels, [packed_bytes, b"a;b 1"]), ({"x": "y"}, [plain])),
        "push-json": b"j" + json.dumps(encoded).encode(),
        "form": query + b"multipart/form-data; boundary=b\n" + parts,
        "form-old": query + b"multipart/form-data; boundary=b\n" + form(("prev_profile", b"x")),
        "folded": query + b"text/plain\nmain;a 3\nmain;b 1.5\n",
        "lines": b"name=app.alloc_space&format=lines&from=2026-01-02T03:04:05Z\n\na;b\na;c\n",
        "raw": b"name=app&format=pprof&spyName=x&aggregationType=average&units=bytes\n\n" + plain,
        "trie": b"name=app&format=trie\n\nx",
    }


FORMS = {
    "plain": ("multipart/form-data; boundary=b", form(("a", b"one"), ("c", b"two\r\n--bb\r\n"))),
    "quoted": ('Multipart/Form-Data; boundary="b:\\\\"; x=y', form(("q", b"x"), boundary="b:\\\\")),
    "empty": (
        "multipart/form-data; boundary=b",
        b"before\r\n--b \r\n" b"content-disposition: form-data; name=a\r\n\r\n--b--after",
    ),
    "cut": ("multipart/form-data; boundary=b", form(("a", b"one"))[:-6]),
    "encoded": (
        "multipart/form-data; boundary=b",
        b"--b\r\nContent-Transfer-Encoding: base64\r\n"
        b'Content-Disposition: form-data; name="a"\r\n\r\nYQ==\r\n--b--',
    ),
}


def write(fuzzer, name, data):
    folder = CORPUS / fuzzer
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"seed-{name}").write_bytes(data if isinstance(data, bytes) else data.encode())


S3_NAMESPACE = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
S3_XML = {
    "listing": '<?xml version="1.0" encoding="UTF-8"?>\n'
    f"<ListBucketResult {S3_NAMESPACE}><IsTruncated>true"
    "</IsTruncated><Contents><Key>a/b</Key><LastModified>2026-01-02T03:04:05.678Z"
    "</LastModified><Size>12</Size></Contents><Contents><Key>c&amp;&#x41;</Key></Contents>"
    "<NextContinuationToken>t</NextContinuationToken><Prefix/></ListBucketResult>",
    "error": "<Error><Code>NoSuchKey</Code><Message>it's &lt;gone&gt;</Message><!-- x --></Error>",
    "upload": f"<InitiateMultipartUploadResult {S3_NAMESPACE}><UploadId>2~x</UploadId>"
    "</InitiateMultipartUploadResult>",
    "no-name": "<:/>",
    "doctype": '<!DOCTYPE a [<!ENTITY b "cc">]><a>&b;</a>',
    "deep": "<a>" * 17 + "</a>" * 17,
    "cut": "<a><b>text</b",
}


SELECTORS = [
    "process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name=\"shop\",pod!='x'}",
    "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta",
    "memory:alloc_space{}",
    "alloc_space:bytes",
    '{pod=~"a+b",service_name!~`\\xff.*`}',
    '{__profile_type__="memory:alloc_space",}',
    '{service_name="\\x0a\\n\\t\\\\\\""}',
    '{pod=~"(?i)SHOP"}',
    '{pod=~"(a+)+$"}',
    "a:b:c:d:e:f:g{",
    '{a="b"',
    " { a.b = 'c' , } ",
    "{",
    'memory{__profile_type__!~"memory:.*",__profile_type__!="cpu",__name__=""}',
]


def main():
    plain = pprof()
    for fuzzer in ("fuzz_pprof", "fuzz_format"):
        write(fuzzer, "pprof", plain)
        write(fuzzer, "pprof-unpacked", pprof(False))
        write(fuzzer, "pprof-cut", plain[:-9])
    for group, seeds in (("folded", FOLDED), ("perf_script", PERF)):
        for name, text in seeds.items():
            write(f"fuzz_{group}", name, text)
            write("fuzz_format", f"{group}-{name}", text)
    for group, seeds in (("cpuprofile", CPUPROFILE), ("speedscope", SPEEDSCOPE)):
        for name, value in seeds.items():
            text = json.dumps(value, separators=(",", ":"))
            write(f"fuzz_{group}", name, text)
            write("fuzz_format", f"{group}-{name}", text)
    for name, data in {
        "newest": otlp(2, 3, 4),
        "old": otlp(3, 4, 2),
        "oldest": otlp(3, 4, 2, oldest=True),
        "cut": otlp(2, 3, 4)[:-4],
        "json": json.dumps(OTLP_JSON, separators=(",", ":")),
    }.items():
        write("fuzz_otlp", name, data)
    write("fuzz_format", "utf16", "a;b 1\r\n\U0001d11e;c 2".encode("utf-16"))
    write("fuzz_format", "gzip", gzip_bytes(plain))
    write("fuzz_format", "zstd", zstd_raw(FOLDED["plain"].encode()))
    compressed = {
        "gzip": gzip_bytes(plain),
        "gzip-stored": stored_gzip(b"stored"),
        "gzip-two": gzip_bytes(b"one ") + gzip_bytes(b"two"),
        "gzip-bomb": gzip_bytes(bytes(3 << 20)),
        "gzip-cut": gzip_bytes(plain)[:-5],
        "zstd": zstd_raw(b"some bytes"),
        "zstd-large": zstd_raw(plain),
        "zstd-two": zstd_raw(b"a") + b"\x50\x2a\x4d\x18\2\0\0\0zz" + zstd_raw(b"b"),
        "zstd-run": zstd_run(b"x", 1000),
        "zstd-bomb": zstd_run(b"x", 100000) * 20,
        "plain": b"not compressed",
    }
    for name, data in compressed.items():
        write("fuzz_compress", name, data)
    for version in go_table_maker.MAGICS:
        write("fuzz_go_table", version, go_table_maker.table(version))
        write("fuzz_eh_frame", f"go-{version}", b"\x08\0" + go_table_maker.table(version))
    write("fuzz_symbolize", "go", go_table_maker.elf(go_table_maker.table("1.20")))
    for name, text in S3_XML.items():
        write("fuzz_s3_xml", name, text)
    for name, data in pyroscope().items():
        write("fuzz_pyroscope", name, data)
    for name, (content_type, body) in FORMS.items():
        write("fuzz_multipart", name, content_type.encode() + b"\n" + body)
    for name, text in REQUESTS.items():
        write("fuzz_request", name, text)
    for fuzzer, texts in (
        ("fuzz_regex", REGEX),
        ("fuzz_flame_options", VIEWS),
        ("fuzz_selector", SELECTORS),
    ):
        for index, text in enumerate(texts):
            write(fuzzer, str(index), text)


if __name__ == "__main__":
    main()
