import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { splitPair } from "../../src/local/folded.ts";
import { PairError, RefusedError } from "../../src/local/profile.ts";
import { MessageWriter } from "../../src/local/protobuf_writer.ts";
import { readProfile } from "../../src/local/read.ts";

test("text of mostly stacks is read as folded stacks, whatever its first line is", async () => {
  const profile = await readProfile(new Blob(["stacks of my program\nmain;run 3\nmain;rest 4\n"]));
  assert.deepEqual([...profile!.values], [3, 4]);
  assert.deepEqual(profile!.notes, ["1 line is not a stack with a value."]);
});

test("a mapping with the id 0 is refused, as by the server", async () => {
  const of = (id: number) => {
    const out = new MessageWriter();
    out.message(1, (type) => (type.number(1, 1), type.number(2, 1)));
    out.message(2, (sample) => (sample.packed(1, [1]), sample.packed(2, [7])));
    out.message(3, (mapping) => (mapping.number(1, id), mapping.number(5, 2)));
    out.message(4, (place) => (place.number(1, 1), place.number(2, id)));
    for (const text of ["", "cpu", "/bin/x"]) out.bytes(6, new TextEncoder().encode(text));
    return readProfile(new Blob([out.take()]));
  };
  assert.equal((await of(1))!.start.length, 2);
  await assert.rejects(of(0), /Mapping 1 has the id 0/);
});

test("lines of stacks may have any length", async () => {
  for (const size of [64 * 1024 - 8, 64 * 1024, 300_000]) {
    const profile = await readProfile(
      new Blob([`${"frame;".repeat(size / 6)}leaf 3\nmain;rest 4\n`]),
    );
    assert.deepEqual([...profile!.values], [3, 4], `${size}`);
  }
});

test("formats that only the server can read are left to the server", async () => {
  for (const text of [
    "java 12 1.5: 3 cycles: \n\t6f1 beta (/a)\n",
    '{"nodes":[]}',
    "\x28\xb5\x2f\xfd",
    "app 1/1 2.5: cycles:\n",
  ])
    assert.equal(
      await readProfile(new Blob([Uint8Array.from(text, (letter) => letter.charCodeAt(0))])),
      null,
      text,
    );
});

test("files that the server would refuse are refused", async () => {
  const refused = [
    "<!doctype html>\n",
    "<html>\n<body>1</body></html>\n",
    "PERFILE2\x01\0",
    "\x7fELF\x02",
    "PK\x03\x04",
    '[{"ph":"X"}]',
    "a;b\0c 5 5\n",
    "prose without numbers\n",
    "header\na;b 1\n",
    "total 2\ndrwx x\nfile 3\ndir\na b\nc\n",
    "\x01\x02garbage \xff\n",
    "\x12\x00",
  ];
  const bytesOf = (text: string) =>
    new Blob([Uint8Array.from(text, (letter) => letter.charCodeAt(0))]);
  for (const text of refused) await assert.rejects(readProfile(bytesOf(text)), RefusedError, text);
  const json = [
    '{"traceEvents":[{"nodes":1}]}',
    '{"head":{}}',
    '{"frames":{},"interval":1}',
    '{"a":"\\"nodes\\":","b":{"profiles":1,"shared":2}}',
    "{}",
  ];
  for (const text of json)
    await assert.rejects(readProfile(bytesOf(text)), /This .* Supported formats: pprof/, text);
  for (const text of [
    '\ufeff{"nodes":[]}',
    ' {\n"profiles" : [], "shared":{}}',
    '{"head":{},"endTime":3}',
  ])
    assert.equal(await readProfile(new Blob([text])), null, text);
  for (const text of ["{main};run 1\n", "[unknown];run 1\n"])
    assert.equal((await readProfile(bytesOf(text)))?.start.length, 2, text);
  for (const text of ["\xff\xfea\0", "\x0a\x04\x08\x01trunc"])
    assert.equal(await readProfile(bytesOf(text)), null, text);
});

test("the refusal of another tool's file names the tool, as on the server", async () => {
  const folder = new URL("../../../tests/data/foreign/", import.meta.url);
  const names: Record<string, RegExp> = {
    "xdebug.cachegrind": /Xdebug.*Excimer/,
    "callgrind.out": /callgrind.*perfolio record/,
    "tcmalloc.heap": /tcmalloc.*pprof -proto/,
    "jemalloc.heap": /jemalloc.*jeprof --collapsed/,
    "go_heap_debug1.txt": /Go.*debug=1/,
    "heaptrack.txt": /heaptrack.*heaptrack_print/,
    "async_profiler_traces.txt": /async-profiler.*asprof -o collapsed/,
    "async_profiler_flat.txt": /async-profiler.*asprof -o collapsed/,
    "perf_report.txt": /perf report.*perf script/,
    "pprof_top.txt": /report of pprof/,
    "heaptrack_recorded.txt": /heaptrack.*heaptrack_print --print-flamegraph/,
    "massif.out": /massif.*heaptrack_print --print-flamegraph/,
    "node_prof.log": /node --prof.*node --cpu-prof/,
    "rbspy_raw.txt": /rbspy.*rbspy report --format collapsed/,
    "py_spy_dump.txt": /py-spy.*py-spy record --format raw/,
    "blackfire.txt": /Blackfire.*Excimer/,
    "bpftrace.txt": /bpftrace.*stackcollapse-bpftrace\.pl/,
    "macos_sample.txt": /macOS.*stackcollapse-sample\.awk/,
    "instruments_copy.txt": /Instruments.*stackcollapse-instruments\.pl/,
    "ghc.prof": /GHC.*ghc-prof-flamegraph/,
    "jstack.txt": /Java.*stackcollapse-jstack\.pl/,
    "otlp.json": /OpenTelemetry.*perfolio push --format otlp/,
    "otlp.bin": /OpenTelemetry.*\/v1development\/profiles/,
    "firefox.json": /Firefox Profiler.*perfolio record/,
    "gperftools.bin": /gperftools.*pprof -proto/,
    "gperftools32.bin": /gperftools.*pprof -proto/,
    "nettrace.bin": /dotnet-trace.*convert --format Speedscope/,
    "netperf.bin": /\.NET.*collect --format Speedscope/,
    "xctrace.xml": /Instruments.*inferno-collapse-xctrace/,
    "flame.svg": /SVG.*folded stacks/,
    "perf_data.bin": /perf\.data.*perf script/,
    "perf_data_big_endian.bin": /perf\.data.*perf script/,
    "jfr.bin": /JFR.*jfrconv -o pprof/,
    "hprof.bin": /HPROF.*asprof -e alloc -o collapsed/,
    "memray.bin": /memray.*py-spy record/,
    "austin.bin": /Austin.*mojo2austin/,
    "stackprof.bin": /stackprof.*stackprof --stackcollapse/,
    "stackprof.json": /stackprof.*stackprof --stackcollapse/,
    "ghc_eventlog.bin": /GHC.*hs-speedscope/,
    "go_trace.bin": /Go.*go tool trace -pprof/,
    "perfetto.bin": /Perfetto.*traceconv profile/,
    "cprofile.bin": /cProfile.*py-spy record/,
    "trace_cmd.bin": /trace-cmd.*perf record -g/,
    "jitdump.bin": /jitdump.*perf script/,
    "sqlite.bin": /SQLite.*/,
    "xz.bin": /xz.*unpack it/,
    "bzip2.bin": /bzip2.*unpack it/,
    "lz4.bin": /lz4.*unpack it/,
    "chrome_trace.json": /Chrome trace.*node --cpu-prof/,
    "chrome.heapprofile": /Chrome heap profile.*@datadog\/pprof/,
    "node.heapsnapshot": /heap snapshot.*@datadog\/pprof/,
    "node_prof.json": /node --prof-process.*node --cpu-prof/,
    "pyinstrument.json": /pyinstrument.*-r speedscope/,
    "scalene.json": /Scalene.*py-spy record/,
    "pyroscope.json": /Pyroscope.*as pprof/,
    "perf_data.json": /perf data convert.*perf script/,
    "dhat.json": /DHAT.*heaptrack_print/,
    "ghc.json": /GHC.*ghc-prof-flamegraph/,
    "safari.json": /Safari.*speedscope\.app/,
    "flame_tree.json": /flame graph.*folded stacks/,
    "xhprof.json": /XHProf.*Excimer/,
  };
  assert.deepEqual(
    readdirSync(folder)
      .filter((name) => name !== "README.md")
      .sort(),
    Object.keys(names).sort(),
  );
  for (const [name, words] of Object.entries(names)) {
    const bytes = readFileSync(new URL(name, folder));
    const shownAs = name.endsWith(".bin")
      ? [bytes]
      : [bytes, bytes.toString().replaceAll("\n", "\r\n")];
    for (const shown of shownAs)
      await assert.rejects(
        readProfile(new Blob([shown])),
        (error) => error instanceof RefusedError && words.test(error.message),
        name,
      );
  }
  const stacks = Array.from({ length: 2000 }, (_, i) => `main;frame${i} 1\n`).join("");
  const other = Array.from({ length: 2000 }, (_, i) => `other ${i} x\n`).join("");
  await assert.rejects(
    readProfile(new Blob([stacks.repeat(3), other])),
    RefusedError,
    "beyond the first lines",
  );
});

test("stacks with two values are a comparison, except if names end in a number", async () => {
  const read = (text: string) => readProfile(new Blob([text]));
  for (const text of ["a;b 1 2\nc 0 3\n", "a;b 0.1 0.25\na 1 1\n", "a;b 1 2"])
    await assert.rejects(read(text), PairError, text);
  assert.equal((await read("a;b 1"))?.start.length, 2);
  assert.deepEqual(splitPair("# d\na;b 1 2\nno value\nc  d 0\t3\n"), [
    "a;b 1\nc  d 0\n",
    "a;b 2\nc  d 3\n",
  ]);
  for (const text of ["a;b 1 2\nc 3\n", "x 2\na;worker 1 1\n", "worker 1 20\nworker 2 10\n"])
    assert.equal((await read(text))?.start.length, 3, text);
});

test("a comment before the stacks does not prevent a preview", async () => {
  for (const comment of ["# hi 3", "// of 9", "#"])
    assert.equal(
      (await readProfile(new Blob([`${comment}\n//x;y 2\n#tag;foo 1\n`])))?.start.length,
      3,
      comment,
    );
});

test("a note reports a sum that the server will not compute", async () => {
  const notesOf = async (text: string) => (await readProfile(new Blob([text])))?.notes.length;
  assert.equal(await notesOf("a;b 9223372036854775807\na;c 9223372036854775807\n"), 1);
  assert.equal(await notesOf("a;b 4611686018427387904\na;c -4611686018427387904\n"), 1);
  assert.equal(await notesOf("a;b 4611686018427387904\na;c 4\n"), 0);
});
