/*
 * refusal: detects files that the server would refuse, with the server's explanation
 * (lib/profile/formats/format.c, foreign_file.c), so that the reader knows before sending one.
 */
import { formatList } from "../model/text/upload_formats.ts";
import { areStacks } from "./folded.ts";
import { foreignText } from "./foreign_text.ts";
import { isPprof } from "./pprof.ts";

const readable = `Supported formats: ${formatList}.`;
const svg = "This is an SVG picture; the folded stacks that it was made from are what to share.";
const program = "This is a program or library, not a profile.";
const xctrace =
  "This is XML of Instruments; “xctrace export --input TRACE --xpath " +
  "'/trace-toc/*/data/table[@schema=\"time-profile\"]'” exports the samples, which " +
  "“inferno-collapse-xctrace” converts to folded stacks.";
const otlp =
  "This is a batch of OpenTelemetry (OTLP); send it to /v1development/profiles, with “perfolio " +
  "push --format otlp FILE”.";
const perfScript = "the output of “perf script” is what to share.";
const pySpy = "record with “py-spy record --format raw” or “perfolio record”.";
const record = "record the program with “perfolio record” or “perf record -g”.";
const excimer = "profile PHP with Excimer (formatCollapsed) or phpspy, which give folded stacks.";

/** By the first bytes, as in lib/profile/formats/foreign_file.c. */
const foreignFormats: [RegExp, string][] = [
  [/^(PERFILE2|2ELIFREP)/, `This is perf.data; ${perfScript}`],
  [/^(\x7fELF|\xcf\xfa\xed\xfe)/, program],
  [/^PK\x03\x04/, "This is a zip archive; the profile in it is what to share."],
  [/^BZh91AY&SY/, "This file is compressed with bzip2; unpack it first."],
  [/^\xfd7zXZ\0/, "This file is compressed with xz; unpack it first."],
  [/^\x04\x22\x4d\x18/, "This file is compressed with lz4; unpack it first."],
  [
    /^FLR\0/,
    "This is a JFR recording; convert it to pprof with async-profiler’s “jfrconv -o pprof FILE " +
      "OUTPUT”.",
  ],
  [
    /^JAVA PROFILE 1\.0/,
    "This is a heap dump of Java (HPROF), not a profile; record allocations with “asprof -e " +
      "alloc -o collapsed”.",
  ],
  [
    /^Nettrace\x14/,
    "This is a .nettrace file of dotnet-trace; convert it with “dotnet-trace convert --format " +
      "Speedscope FILE”.",
  ],
  [
    /^\x14\0\0\0!FastSerialization\.1/,
    "This is a trace or heap dump of .NET; record with “dotnet-trace collect --format Speedscope”.",
  ],
  [/^memray\0/, `This is a recording of memray, which exports no stacks; ${pySpy}`],
  [/^MOJ[\0-\x08]./s, "This is a MOJO file of Austin; convert it with “mojo2austin FILE OUTPUT”."],
  [
    /^\x04\x08\{/,
    "This is a dump of Ruby, perhaps of stackprof; convert it to folded stacks with “stackprof " +
      "--stackcollapse FILE”.",
  ],
  [/^hdrbhetb/, "This is an event log of GHC; convert it with “hs-speedscope FILE”."],
  [/^\x17\x08\x44tracing/, `This is a trace of trace-cmd; ${record}`],
  [/^(DTiJ|JiTD)/, `This is a jitdump, which has names but no stacks; ${perfScript}`],
  [/^SQLite format 3\0/, "This is an SQLite database, not a profile."],
  [
    /^(\0{8}\x03\0{7}\0{8}.{3}[\0-\x05]\0{4}\0{8}|\0{4}\x03\0{3}\0{4}.{3}[\0-\x05]\0{4}|\0{15}\x03\0{8}\0{4}[\0-\x05].{3}\0{8}|\0{7}\x03\0{4}[\0-\x05].{3}\0{4})/s,
    "This is a CPU profile of gperftools; convert it with “pprof -proto PROGRAM FILE” " +
      "(github.com/google/pprof).",
  ],
  [
    /^go 1\.\d+ trace\0/,
    "This is an execution trace of Go; “go tool trace -pprof=sched FILE” (or net, sync, " +
      "syscall) makes a pprof profile of it.",
  ],
  [/^[{\xfb][)\xa9]\x03/, `This is a profile of Python’s cProfile, which has no stacks; ${pySpy}`],
  [/^\x89PNG/, "This is a picture."],
  [/^<!DOCTYPE svg/, svg],
  [/^<(!|html)/, "This is HTML, perhaps an error page that was saved."],
  [/^<\?xml.*<trace-(query-result|toc)/s, xctrace],
  [/^<\?xml.*<svg/s, svg],
  [/^<\?xml/, "This is XML."],
  [/^<svg/, svg],
  [
    /^\s*\[\s*\{/,
    "This JSON is a list, perhaps a Chrome trace; save the CPU profile alone, in Node with " +
      "“node --cpu-prof”, with py-spy by “--format speedscope”.",
  ],
];

/**
 * Messages whose first field is a message, such as Perfetto's packets; field 1 of pprof starts with
 * two numbers.
 */
const protobufs: [RegExp, string][] = [
  [/^\n(?:[\x80-\xff]*[\x01-\x7f])\n/, otlp],
  [
    /^\n(?:[\x80-\xff]*[\x01-\x7f])[\x182\x40P\x8a\xca]/,
    "This is a trace of Perfetto; “traceconv profile FILE” makes pprof profiles of its samples.",
  ],
];

/**
 * By the members of the top-level object; the first entry with all of its members present counts.
 */
const kinds: [members: string[], advice: string][] = [
  [["resourceProfiles"], otlp],
  [
    ["meta", "threads"],
    "This is a profile of the Firefox Profiler, as Firefox, samply and Vernier write it, which " +
      `has no export of stacks; ${record}`,
  ],
  [
    ["snapshot", "nodes", "edges"],
    "This is a heap snapshot of Chrome or Node, not a profile; record allocations with " +
      "@datadog/pprof.",
  ],
  [
    ["traceEvents"],
    "This is a Chrome trace; save the CPU profile alone, in Node with “node --cpu-prof”.",
  ],
  [
    ["head"],
    "This is a Chrome heap profile; in Node, @datadog/pprof records allocations as pprof.",
  ],
  [
    ["code", "functions", "ticks"],
    "This is a profile of “node --prof-process --preprocess”; record with “node --cpu-prof”.",
  ],
  [
    ["frames", "interval"],
    "This is a stackprof dump as JSON; record with “raw: true” and convert the dump to folded " +
      "stacks with “stackprof --stackcollapse FILE”.",
  ],
  [
    ["root_frame", "sample_count"],
    "This is JSON of pyinstrument; write the profile with “pyinstrument -r speedscope”.",
  ],
  [
    ["elapsed_time_sec", "files"],
    `This is a profile of Scalene, which exports no stacks; ${pySpy}`,
  ],
  [
    ["flamebearer"],
    "This is a flame graph of Pyroscope as JSON; download the profile from Pyroscope as pprof.",
  ],
  [["linux-perf-json-version"], `This is JSON of “perf data convert”; ${perfScript}`],
  [
    ["dhatFileVersion"],
    "This is a heap profile of valgrind’s DHAT, which exports no stacks; record with " +
      "“heaptrack” and convert it with “heaptrack_print --print-flamegraph OUTPUT FILE”.",
  ],
  [
    ["cost_centres", "rts_arguments"],
    "This is a profile of GHC as JSON; profile with “+RTS -p” and convert PROGRAM.prof to " +
      "folded stacks with “ghc-prof-flamegraph”.",
  ],
  [
    ["recording", "overview"],
    "This is a timeline of Safari; open it in www.speedscope.app and export it from there.",
  ],
  [
    ["name", "value", "children"],
    "This is the tree of a flame graph as JSON; the folded stacks that it was made from are " +
      "what to share.",
  ],
  [["main()"], `This is a profile of XHProf, which has no stacks; ${excimer}`],
];
/** PHP's "{main};run 1" and "[unknown];run 1" are stacks. */
export const looksLikeJson = (start: string): boolean => /^\s*(\{\s*["}]|\[\s*\{)/.test(start);

const [quote, backslash, colon] = [...'"\\:'].map((letter) => letter.charCodeAt(0));
const isOpening = (byte: number) => byte === 0x7b || byte === 0x5b;
const isClosing = (byte: number) => byte === 0x7d || byte === 0x5d;

/**
 * The member names of the outermost object, found without parsing, because the text may be long.
 */
function memberNames(bytes: Uint8Array): Set<string> {
  const names = new Set<string>();
  const decoder = new TextDecoder();
  for (let at = 0, depth = 0; at < bytes.length; at++) {
    if (isOpening(bytes[at])) depth++;
    else if (isClosing(bytes[at])) depth--;
    else if (bytes[at] === quote) {
      const from = ++at;
      for (; at < bytes.length && bytes[at] !== quote; at++) if (bytes[at] === backslash) at++;
      let behind = at + 1;
      while (bytes[behind] <= 0x20) behind++;
      if (depth === 1 && bytes[behind] === colon)
        names.add(decoder.decode(bytes.subarray(from, at)));
    }
  }
  return names;
}

/** Explains JSON that cannot be read; "" for .cpuprofile and speedscope. */
function foreignJson(bytes: Uint8Array): string {
  const names = memberNames(bytes);
  const has = (...all: string[]) => all.every((name) => names.has(name));
  const hasTimes = has("startTime") || has("endTime");
  const isCpuProfile = hasTimes
    ? has("nodes") || has("head")
    : has("nodes") && !has("head") && !has("snapshot");
  if (has("profiles", "shared") || isCpuProfile) return "";
  return kinds.find(([members]) => has(...members))?.[1] ?? "This JSON is not a supported profile.";
}

/** Compressed again, or UTF-16: the content is unknown here. */
const unknown = /^(\x1f\x8b|\x28\xb5\x2f\xfd|\xff\xfe|\xfe\xff)/;
/**
 * Matches every line that may be an event of perf script, "java 12 1.5: 3 cycles:", and some
 * others. Without -g perf prints blanks before a short command.
 */
const mayBeEvent = /^[ \t]*\S.*\s\d.*:/m;
const noText = /[\0-\x08\x0e-\x1a\x1c-\x1f]/;
const sniffed = 4096;

/** Explains a file of another tool that begins like pprof; "" for pprof. */
export const foreignProtobuf = (bytes: Uint8Array): string =>
  protobufs.find(([shape]) => shape.test(String.fromCharCode(...bytes.subarray(0, 16))))?.[1] ?? "";

/** Why the server refuses the file; "" if it may accept it. */
export function refusalOf(bytes: Uint8Array): string {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf)
    return refusalOf(bytes.subarray(3));
  const start = String.fromCharCode(...bytes.subarray(0, sniffed));
  if (unknown.test(start)) return "";
  const foreignFormat = foreignFormats.find(([shape]) => shape.test(start));
  if (foreignFormat) return `${foreignFormat[1]} ${readable}`;
  if (looksLikeJson(start)) {
    const kind = foreignJson(bytes);
    return kind && `${kind} ${readable}`;
  }
  if (noText.test(start) && (bytes[0] === 0x0a || isPprof(bytes))) {
    const protobuf = foreignProtobuf(bytes);
    return protobuf && `${protobuf} ${readable}`;
  }
  const text = new TextDecoder().decode(bytes);
  const foreign = foreignText(text);
  if (foreign) return `${foreign} ${readable}`;
  const isNothing =
    noText.test(start) && bytes.includes(0) ? true : !mayBeEvent.test(text) && !areStacks(text);
  return isNothing ? `This is not a supported profile. ${readable}` : "";
}
