/*
 * foreign_text: text files of other tools that cannot be read as profiles, by the rules of the
 * server (lib/profile/formats/foreign_text.c), so that both refuse the same files.
 * tests/data/foreign tests both.
 */
const headCharacters = 16 << 10;
const headLines = 40;

/** The first lines that are not empty, trimmed. */
type Head = readonly string[];

const hasLine = (head: Head, ...starts: string[]) =>
  head.some((line) => starts.some((start) => line.startsWith(start)));
const startsWith = (head: Head, ...starts: string[]) => hasLine(head.slice(0, 1), ...starts);
const isCachegrind = (head: Head) =>
  startsWith(head, "# callgrind format") ||
  (hasLine(head, "events:") && hasLine(head, "creator:", "version:", "fl=", "fn="));
const isTraceHead = (line: string) =>
  line.startsWith("--- ") && line.includes("%, ") && /(?: samples| sample)$/.test(line);

/** "@[" or "@name[", one frame per line, and "]: 12". */
function isBpftrace(head: Head): boolean {
  const open = head.findIndex((line) => line.startsWith("@") && line.endsWith("["));
  return open >= 0 && head.slice(open + 1).some((line) => line.includes("]: "));
}

/** The first match counts. */
const tools: [is: (head: Head) => boolean, advice: string][] = [
  [
    (head) => isCachegrind(head) && hasLine(head, "creator: xdebug"),
    "This is a cachegrind profile of Xdebug, which has no stacks; profile PHP with Excimer " +
      "(formatCollapsed) or phpspy, which give folded stacks.",
  ],
  [
    isCachegrind,
    "This is a callgrind profile, which has no stacks; record the program with “perfolio " +
      "record” or “perf record -g”.",
  ],
  [
    (head) =>
      (startsWith(head, "heap profile:") && head[0].includes("@ heap/")) ||
      startsWith(
        head,
        "goroutine profile: total",
        "threadcreate profile: total",
        "--- contention:",
        "--- mutex:",
      ) ||
      (startsWith(head, "goroutine ") && head[0].endsWith("]:")),
    "This is a profile of Go as text for people; request it without debug=1.",
  ],
  [
    (head) => startsWith(head, "heap profile:"),
    "This is a heap profile of tcmalloc as text; convert it with “pprof -proto PROGRAM FILE” " +
      "(github.com/google/pprof).",
  ],
  [
    (head) => startsWith(head, "heap_v2/"),
    "This is a heap profile of jemalloc; convert it to folded stacks with “jeprof --collapsed " +
      "PROGRAM FILE”.",
  ],
  [
    (head) =>
      startsWith(head, "v ") &&
      (hasLine(head.slice(1, 2), "x ")
        ? hasLine(head, "X ", "I ")
        : hasLine(head.slice(1, 2), "X ") && hasLine(head, "I ")),
    "This is a recording of heaptrack; convert it to folded stacks with “heaptrack_print " +
      "--print-flamegraph OUTPUT FILE”.",
  ],
  [
    (head) =>
      head.some(isTraceHead) ||
      hasLine(head, "--- Execution profile ---") ||
      head.some((line) => line.includes("percent  samples  top")),
    "This is a report of async-profiler as text; record with “asprof -o collapsed” for folded " +
      "stacks.",
  ],
  [
    (head) => hasLine(head, "# Overhead", "Overhead  "),
    "This is a report of “perf report”; the output of “perf script” is what to share.",
  ],
  [
    (head) => head.some((line) => line.includes("flat%   sum%")),
    "This is a report of pprof as text; the profile it was made from is what to share.",
  ],
  [
    (head) =>
      startsWith(head, "desc:") && hasLine(head, "time_unit:") && hasLine(head, "snapshot="),
    "This is a heap profile of valgrind’s massif, which exports no stacks; record with " +
      "“heaptrack” and convert it with “heaptrack_print --print-flamegraph OUTPUT FILE”.",
  ],
  [
    (head) => startsWith(head, "v8-version,"),
    "This is a log of “node --prof”; record with “node --cpu-prof”.",
  ],
  [
    (head) => startsWith(head, "rbspy") && head[0].length === "rbspy02".length,
    "This is a raw recording of rbspy; convert it with “rbspy report --format collapsed " +
      "--input FILE --output OUTPUT”.",
  ],
  [
    (head) => startsWith(head, "Process ") && hasLine(head, "Python v") && hasLine(head, "Thread "),
    "This is one dump of py-spy; record with “py-spy record --format raw”.",
  ],
  [
    (head) => startsWith(head, "file-format: Blackfire"),
    "This is a profile of Blackfire, which has no stacks; profile PHP with Excimer " +
      "(formatCollapsed) or phpspy, which give folded stacks.",
  ],
  [
    isBpftrace,
    "This is the output of bpftrace; convert it to folded stacks with " +
      "“stackcollapse-bpftrace.pl” (github.com/brendangregg/FlameGraph).",
  ],
  [
    (head) => startsWith(head, "Analysis of sampling "),
    "This is a report of “sample” of macOS; convert it to folded stacks with " +
      "“stackcollapse-sample.awk” (github.com/brendangregg/FlameGraph).",
  ],
  [
    (head) => head.length > 0 && head[0].endsWith("\tSymbol Name"),
    "This is a deep copy out of Instruments; convert it to folded stacks with " +
      "“stackcollapse-instruments.pl” (github.com/brendangregg/FlameGraph).",
  ],
  [
    (head) => head.some((line) => line.includes("Time and Allocation Profiling Report")),
    "This is a profile of GHC; convert it to folded stacks with “ghc-prof-flamegraph”.",
  ],
  [
    (head) => hasLine(head, "Full thread dump "),
    "This is a thread dump of Java; convert dumps to folded stacks with " +
      "“stackcollapse-jstack.pl” (github.com/brendangregg/FlameGraph).",
  ],
  [
    (head) => startsWith(head, "Flat profile:"),
    "This is a report of gprof, which has no stacks; record the program with “perfolio record” " +
      "or “perf record -g”.",
  ],
];

/** The tool that wrote the text and how to get a profile from it; "" if no tool is recognized. */
export function foreignText(text: string): string {
  const head = text
    .slice(0, headCharacters)
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean)
    .slice(0, headLines);
  return tools.find(([is]) => is(head))?.[1] ?? "";
}
