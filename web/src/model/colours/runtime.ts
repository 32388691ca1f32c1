/*
 * runtime: the runtime of a frame: the kernel, a virtual machine, or compiled code of a language.
 *
 * Detected by, in this order: the kernel flag, an interpreter's name as the binary, the extension
 * of the source file, the naming convention of a language, and the binary. C++ and Rust share some
 * conventions: an ambiguous name counts as the language of the unambiguous names in the same
 * binary. The rest is native code of an unknown language, mostly C.
 */
import { plainName } from "../search/escape_regex.ts";
import { FrameFlag, type FrameTable } from "../tree/flame.ts";

/**
 * Names are external input, and some expressions below take time quadratic in the length of a name.
 */
const maxLookedAt = 600;

/**
 * The hue of each runtime (an index into the palette's, or -1 for none), the same in every profile.
 */
export const runtimeHues = [
  ["kernel", -1],
  ["no symbols", -1],
  ["native", 10],
  ["C++", 12],
  ["Rust", 0],
  ["Go", 9],
  ["Python", 2],
  ["JavaScript", 4],
  ["Java", 11],
  ["Ruby", 15],
  ["PHP", 13],
  ["Perl", 14],
  ["Lua", 7],
  [".NET", 5],
  ["Erlang", 3],
] as const;
export type Runtime = (typeof runtimeHues)[number][0];

const endings: Record<string, Runtime> = {
  py: "Python",
  pyx: "Python",
  pyi: "Python",
  js: "JavaScript",
  mjs: "JavaScript",
  cjs: "JavaScript",
  jsx: "JavaScript",
  ts: "JavaScript",
  tsx: "JavaScript",
  rb: "Ruby",
  php: "PHP",
  pl: "Perl",
  pm: "Perl",
  lua: "Lua",
  go: "Go",
  rs: "Rust",
  java: "Java",
  kt: "Java",
  scala: "Java",
  clj: "Java",
  cc: "C++",
  cpp: "C++",
  cxx: "C++",
  hpp: "C++",
  hh: "C++",
  hxx: "C++",
  c: "native",
  cs: ".NET",
  fs: ".NET",
  ex: "Erlang",
  erl: "Erlang",
};

/** An ambiguous name; the binary decides. */
const either = "C++ or Rust";

const namePatterns: readonly [RegExp, Runtime | typeof either][] = [
  [/_\[k\]$/, "kernel"],
  [/^py::|\.py(:\d+)?\)?$|^<frozen /, "Python"],
  [/^(LazyCompile|Function|Builtin|(Bytecode)?Handler|Script|Eval|RegExp|Stub|JS):/, "JavaScript"],
  [/^Interpreter:|\bnode:internal\b|^Builtins_|\.[cm]?[jt]sx?(:\d+)*\)?$/, "JavaScript"],
  [/::h[0-9a-f]{16}$|\{\{(closure|vtable\.shim)\}\}|\{closure#\d+\}|^<.* as .*>::/, "Rust"],
  [/^(core|alloc|tokio|hashbrown)::|^_R[A-Z]|^_ZN.*17h[0-9a-f]{16}E|^__rust_/, "Rust"],
  [/^std::(alloc|backtrace|collections|env|ffi|fs|io|net|os|panic|panicking|path)::/, "Rust"],
  [/^std::(process|rt|sync|sys|sys_common|thread|time)::/, "Rust"],
  [/^_Z|^(std|__gnu_cxx|__cxxabiv1|boost|absl)::|^operator (new|delete)|^__cxa_/, "C++"],
  [/^\(anonymous namespace\)|::~\w+\(|\) const$|::operator\b/, "C++"],
  [/^L?([\w$]+\/)+[A-Z][\w$]*[;:.]/, "Java"],
  [/^(javax?|jdk|sun|com|org|net|io|scala|kotlin|akka)(\.[a-z_][\w$]*)+\.[A-Z][\w$]*/, "Java"],
  [/^(runtime|main|sync|syscall|reflect|internal|fmt|net|os|io|time|strings)\.[\w(*]/, "Go"],
  [/^(bytes|sort|errors|context)\.[\w(*]|^[\w.-]+(\/[\w.~-]+)+\.[\w(*]/, "Go"],
  [/^\w+\.\(\*[\w[\],. /*]+\)\.|^type:\.|^go:/, "Go"],
  [/^[a-z]\w*(\.\w+)*\.[A-Z][\w$]*\.(<init>|<clinit>|[\w$]+)(\(|$)/, "Java"],
  [/^(block|rescue|ensure)( \(\d+ levels\))? in |^<(main|top \(required\)|class:|module:)/, "Ruby"],
  [/^[A-Z]\w*(::[A-Z]\w*)*[#.][a-z_]\w*[?!=]?$/, "Ruby"],
  [/^\[?(System|Microsoft)\.[\w.]+/, ".NET"],
  [/^\w+:\w+\/\d+$/, "Erlang"],
  [/::/, either],
];

const binaries: readonly [RegExp, Runtime][] = [
  [/^libjvm|^java$|^libj(ava|li)\b/, "Java"],
  [/^(lib)?python[\d.]*|\.cpython-/, "Python"],
  [/^(node|nodejs|deno|bun|chrome)$|^libnode|^perf-\d+\.map$/, "JavaScript"],
  [/^(lib)?ruby[\d.-]*/, "Ruby"],
  [/^php|^libphp/, "PHP"],
  [/^(lib)?perl/, "Perl"],
  [/^(lib)?lua/, "Lua"],
  [/^lib(coreclr|clrjit|mscor)|^dotnet$/, ".NET"],
  [/^beam\.smp$/, "Erlang"],
  [/^libstdc\+\+|^libc\+\+/, "C++"],
];

/**
 * The binary names that agents give to functions of scripts; they override any other indication.
 */
const interpreters: Record<string, Runtime> = { "[cpython]": "Python", "[ruby]": "Ruby" };

const firstOf = <Kind>(patterns: readonly [RegExp, Kind][], text: string): Kind | null =>
  patterns.find(([pattern]) => pattern.test(text))?.[1] ?? null;

/** The runtime indicated by a name and a file alone. */
function fromName(wholeName: string, file: string): Runtime | typeof either | null {
  // Only the start and the end of a name matter, so the middle of a long name is cut out.
  const half = maxLookedAt / 2;
  const called = plainName(wholeName);
  const name = called.length > maxLookedAt ? called.slice(0, half) + called.slice(-half) : called;
  const dot = file.lastIndexOf(".");
  const byFile =
    dot > file.lastIndexOf("/") ? endings[file.slice(dot + 1).toLowerCase()] : undefined;
  // Headers and C files may contain C++, so the name takes precedence.
  if (byFile && byFile !== "native") return byFile;
  return firstOf(namePatterns, name) ?? byFile ?? null;
}

export class RuntimeNames {
  /** Binaries with more unambiguous names of Rust than of C++. */
  private readonly rustBinaries = new Set<string>();

  /** learnFrom: the heaviest frames, so that not every name of a large profile is read. */
  constructor(
    private readonly frames: FrameTable,
    learnFrom: readonly number[],
  ) {
    const votes = new Map<string, number>();
    for (const frame of learnFrom) {
      const found = fromName(frames.name(frame), frames.file(frame));
      const vote = found === "Rust" ? 1 : found === "C++" ? -1 : 0;
      if (vote) votes.set(frames.mapping(frame), (votes.get(frames.mapping(frame)) ?? 0) + vote);
    }
    for (const [binary, vote] of votes) if (vote > 0) this.rustBinaries.add(binary);
  }

  of(frame: number): Runtime {
    const { frames } = this;
    const flags = frames.flags(frame);
    if (flags & FrameFlag.Kernel) return "kernel";
    const mapping = frames.mapping(frame);
    const byInterpreter = Object.hasOwn(interpreters, mapping) ? interpreters[mapping] : undefined;
    if (byInterpreter) return byInterpreter;
    const found = fromName(frames.name(frame), frames.file(frame));
    if (found === either) return this.rustBinaries.has(mapping) ? "Rust" : "C++";
    if (found) return found;
    const byBinary = firstOf(binaries, mapping.slice(mapping.lastIndexOf("/") + 1));
    if (byBinary) return byBinary;
    return flags & FrameFlag.NotSymbolised ? "no symbols" : "native";
  }
}
