/*
 * frame_colours: the colour of each frame, by the property that the reader chose.
 *
 *   package   the package, namespace, crate or module at the start of the function's name
 *   binary    the program or library that contains it
 *   runtime   the language or virtual machine that runs it (runtime.ts)
 *   value     the self share of the function, from pale to strong
 */
import { heatFillOf, hueCount, neutralHue, shadeCount } from "./colour.ts";
import { plainName } from "../search/escape_regex.ts";
import { FrameFlag, type Flame } from "../tree/flame.ts";
import { RuntimeNames, runtimeHues } from "./runtime.ts";

export const colourModes = ["package", "binary", "runtime", "value"] as const;
export type ColourMode = (typeof colourModes)[number];

function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return (hash ^ (hash >>> 13)) >>> 0;
}

/**
 * Names are external input, and some expressions below take time quadratic in the length of a name.
 */
const maxLookedAt = 600;

const baseName = (path: string) => path.slice(path.lastIndexOf("/") + 1);

/**
 * The package, namespace, crate or module at the start of a function's name; otherwise its binary.
 */
export function packageOf(wholeName: string, mapping: string, file: string): string {
  const isFile = wholeName === file;
  const name = isFile ? "" : plainName(wholeName.slice(0, maxLookedAt));
  // V8's names in perf maps: "LazyCompile:*render /app/src/page.js:12".
  const script =
    name.includes(" ") && /^\w+:(?!:)[*~^+]?\S* (?:file:\/\/)?(\S+?)(?::\d+)*$/.exec(name);
  if (script) return script[1].replace(/[/:][^/:]*$/, "") || script[1];
  // C++ writes the return type of a template function before its name, followed by a space, before
  // any "(".
  const paren = name.indexOf("(");
  const mayBegin =
    "<&*".includes(name[0]) || name.lastIndexOf(" ", paren < 0 ? undefined : paren) >= 0;
  const begin = !mayBegin
    ? name
    : name.replace(
        /^(?:<|&|\*|dyn |impl )+|^(?:(?:[^ <(]|<[^()<>]*>)+ )+(?<!operator )(?=\w+::)/,
        "",
      );
  const bracket = begin.search(/[<({[]/);
  const plain = bracket < 0 ? begin : begin.slice(0, bracket);
  if (plain.includes("::")) return plain.slice(0, plain.indexOf("::"));
  const slash = plain.lastIndexOf("/");
  const dot = plain.indexOf(".", slash + 1);
  if (slash >= 0 && dot > slash) return plain.slice(0, dot);
  if (dot > 0) {
    const parts = plain.split(".");
    return parts.length >= 4 ? parts.slice(0, 2).join(".") : parts[0];
  }
  if (mapping && !isFile) return baseName(mapping);
  const folder = file.lastIndexOf("/");
  return folder > 0 ? file.slice(0, folder) : file;
}

export type PartHue = readonly [part: string, hue: number];

/** The number of heaviest frames that determine the hues of packages. */
const rankedFrames = 3000;

function heaviestFrames(flame: Flame): number[] {
  const { frame, width, depth, self, nodeCount } = flame;
  const weight = new Float64Array(flame.frames.count);
  for (let i = 1; i < nodeCount; i++)
    weight[frame[i]] += width[i] / (depth[i] + 1) + Math.abs(self[i]);
  // sorting numbers is several times faster than sorting frames
  const sorted = weight.slice().sort();
  const least = sorted[Math.max(0, sorted.length - rankedFrames)];
  const order = Array.from(weight.keys()).filter(
    (frame) => weight[frame] > 0 && weight[frame] >= least,
  );
  return order.sort((a, b) => weight[b] - weight[a]).slice(0, rankedFrames);
}

/** The self share of each function, over all frames of its name; none if it is below zero. */
function ownShares(flame: Flame): Float64Array {
  const { frames } = flame;
  const byName = new Map<number, number>();
  for (let i = 1; i < flame.nodeCount; i++) {
    if (flame.self[i] === 0) continue;
    const name = frames.nameId[flame.frame[i]];
    byName.set(name, (byName.get(name) ?? 0) + flame.self[i]);
  }
  const total = flame.width[0] || 1;
  return Float64Array.from(frames.nameId, (name) => Math.max(0, byName.get(name) ?? 0) / total);
}

/** The flags that some frames have and others have not. */
function varyingFlags(flame: Flame): number {
  const { frames } = flame;
  let any = 0;
  let every = 0xff;
  for (let frame = 0; frame < frames.count; frame++) {
    const flags = frames.flags(frame);
    if (frame === flame.frame[0] || flags & FrameFlag.Other) continue;
    any |= flags;
    every &= flags;
  }
  return (
    any &
    ~every &
    (FrameFlag.Inlined | FrameFlag.Kernel | FrameFlag.Interpreted | FrameFlag.NotSymbolised)
  );
}

/**
 * Chooses the colour of a frame. A part (package, binary, runtime) has the hue of its name's hash,
 * so that it is the same everywhere; if a heavier part has this hue already, the next free one. The
 * shade depends on the function's name. Names are read when a frame is first painted.
 */
export class FrameColours {
  /** FrameFlag bits that boxes show by a sign, so that no information depends on colour alone. */
  readonly signs: number;
  private readonly hues = new Map<string, number>([
    ["", neutralHue],
    ["kernel", neutralHue],
  ]);
  private readonly fills: Uint16Array;
  private readonly parts: string[] = [];
  private readonly shares: Float64Array | null;
  private readonly runtimes: RuntimeNames | null;

  /** known: hues that parts already have in another view. */
  constructor(
    private readonly flame: Flame,
    readonly mode: ColourMode = "package",
    known: readonly PartHue[] = [],
  ) {
    this.signs = varyingFlags(flame);
    this.fills = new Uint16Array(flame.frames.count).fill(0xffff);
    this.shares = mode === "value" ? ownShares(flame) : null;
    const heaviest = mode === "value" ? [] : heaviestFrames(flame);
    this.runtimes = mode === "runtime" ? new RuntimeNames(flame.frames, heaviest) : null;
    if (this.runtimes)
      for (const [name, hue] of runtimeHues) this.hues.set(name, hue < 0 ? neutralHue : hue);
    else {
      for (const [part, hue] of known) this.hues.set(part, hue);
      this.takeHues(heaviest);
    }
  }

  private takeHues(heaviest: readonly number[]): void {
    const taken = new Set([...this.hues.values()].filter((hue) => hue !== neutralHue));
    for (const frame of heaviest) {
      const part = this.part(frame);
      if (this.hues.has(part)) continue;
      let hue = hashText(part) % hueCount;
      // 3 and hueCount (16) have no common factor, so every hue is tried
      while (taken.has(hue) && taken.size < hueCount) hue = (hue + 3) % hueCount;
      taken.add(hue);
      this.hues.set(part, hue);
    }
  }

  private hue(part: string): number {
    return this.hues.get(part) ?? hashText(part) % hueCount;
  }

  /** The hues of the parts of these frames, to reuse them in another view. */
  huesOf(frames: Iterable<number>): PartHue[] {
    const parts = new Set<string>();
    for (const frame of frames) parts.add(this.part(frame));
    return [...parts].map((part) => [part, this.hue(part)]);
  }

  /** The name of the part that determines the frame's colour; "" if there is none. */
  part(frame: number): string {
    return (this.parts[frame] ??= this.findPart(frame));
  }

  private findPart(frame: number): string {
    const { frames } = this.flame;
    if (this.runtimes) return this.runtimes.of(frame);
    if (frames.flags(frame) & FrameFlag.Kernel) return "kernel";
    if (this.mode === "binary") return baseName(frames.mapping(frame));
    return packageOf(frames.name(frame), frames.mapping(frame), frames.file(frame));
  }

  /** Index into palette.fills. */
  fill(frame: number): number {
    if (this.fills[frame] === 0xffff)
      this.fills[frame] = this.shares ? heatFillOf(this.shares[frame]) : this.partFill(frame);
    return this.fills[frame];
  }

  private partFill(frame: number): number {
    const part = this.part(frame);
    return this.hue(part) * shadeCount + (hashText(this.flame.frames.name(frame)) % shadeCount);
  }
}
