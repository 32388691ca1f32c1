/*
 * colour: what a frame looks like. Colours are made in OKLCH, where equal steps look equal, and
 * turned into sRGB here, since older browsers do not know oklch() on a canvas.
 */
import { FrameFlag, type Flame } from "./flame.ts";

/** sRGB "#rrggbb" of lightness 0..1, chroma 0..0.4, hue in degrees, clipped to what a screen shows. */
export function oklch(lightness: number, chroma: number, hue: number): string {
  const a = chroma * Math.cos((hue * Math.PI) / 180);
  const b = chroma * Math.sin((hue * Math.PI) / 180);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const channel = (linear: number) => {
    const clipped = Math.min(1, Math.max(0, linear));
    const value = clipped <= 0.0031308 ? 12.92 * clipped : 1.055 * clipped ** (1 / 2.4) - 0.055;
    return Math.round(value * 255).toString(16).padStart(2, "0");
  };
  return (
    "#" +
    channel(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s) +
    channel(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s) +
    channel(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s)
  );
}

export interface Palette {
  isDark: boolean;
  /** Fill of hue h (0..hueCount-1) and shade s (0..shadeCount-1) is fills[h * shadeCount + s]. */
  fills: string[];
  text: string;
  background: string;
  dimmed: string;
  dimmedText: string;
  root: string;
  outline: string;
  /** Where a search matches, in the minimap. */
  mark: string;
  /** From "much less" through "the same" to "much more"; 2 * diffSteps + 1 entries. */
  diff: string[];
  hatch: string;
}

const shadeCount = 3;
export const diffSteps = 6;
// Warm hues stand closer together than cold ones: the eye tells them apart better, and it is a flame.
const hues = [36, 62, 84, 20, 106, 134, 50, 164, 72, 196, 228, 8, 258, 288, 322, 350];
const neutral = hues.length; // one more "hue" without chroma: kernel and unnamed code
export const hueCount = hues.length + 1;

export function makePalette(isDark: boolean): Palette {
  const fills: string[] = [];
  for (let h = 0; h < hueCount; h++)
    for (let s = 0; s < shadeCount; s++) {
      // The warm ones glow, the others stay behind them.
      const isWarm = hues[h] >= 20 && hues[h] <= 110;
      const chroma = h === neutral ? 0.012 : isWarm ? (isDark ? 0.092 : 0.098) : isDark ? 0.06 : 0.058;
      const lightness = (isDark ? 0.42 + 0.032 * s : 0.795 + 0.028 * s) + (isWarm && isDark ? 0.02 : 0);
      fills.push(oklch(lightness, chroma, h === neutral ? 260 : hues[h]));
    }
  const diff: string[] = [];
  for (let step = -diffSteps; step <= diffSteps; step++) {
    const strength = Math.abs(step) / diffSteps;
    // Blue and orange: told apart with every common kind of colour blindness.
    const hue = step < 0 ? 250 : 48;
    diff.push(isDark ? oklch(0.36 + 0.2 * strength, 0.006 + 0.124 * strength, hue) : oklch(0.925 - 0.2 * strength, 0.006 + 0.124 * strength, hue));
  }
  return {
    isDark,
    fills,
    diff,
    text: isDark ? "#f3efe9" : "#1f1a14",
    background: isDark ? "#15130f" : "#faf8f4",
    dimmed: isDark ? "#25221c" : "#efece6",
    dimmedText: isDark ? "#8b857b" : "#746e64",
    root: isDark ? "#322e27" : "#e4dfd6",
    outline: isDark ? "#fff6e8" : "#1f1a14",
    mark: isDark ? "#ff9c57" : "#b8420a",
    hatch: isDark ? "#8b857b" : "#746e64",
  };
}

function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return (hash ^ (hash >>> 13)) >>> 0;
}

const baseName = (path: string) => path.slice(path.lastIndexOf("/") + 1);

/** The package, namespace, crate or module that a function's name begins with; else its binary. */
export function packageOf(name: string, mapping: string, file: string): string {
  // V8's names in perf maps: "LazyCompile:*render /app/src/page.js:12".
  const script = /^\w+:[*~^+]?\S* (?:file:\/\/)?(\S+?)(?::\d+)*$/.exec(name);
  if (script) return script[1].replace(/[/:][^/:]*$/, "") || script[1];
  const plain = name.replace(/^(?:<|&|\*|dyn |impl )+/, "").replace(/[<({[].*$/s, "");
  if (plain.includes("::")) return plain.slice(0, plain.indexOf("::"));
  const slash = plain.lastIndexOf("/");
  const dot = plain.indexOf(".", slash + 1);
  if (slash >= 0 && dot > slash) return plain.slice(0, dot);
  if (dot > 0) {
    const parts = plain.split(".");
    return parts.length >= 4 ? parts.slice(0, 2).join(".") : parts[0];
  }
  if (mapping) return baseName(mapping);
  const folder = file.lastIndexOf("/");
  return folder > 0 ? file.slice(0, folder) : file;
}

/** How many frames, the heaviest first, have a say in which package gets which hue. */
const rankedFrames = 3000;

function heaviestFrames(flame: Flame): number[] {
  const weight = new Float64Array(flame.frames.count);
  for (let i = 1; i < flame.nodeCount; i++)
    weight[flame.frame[i]] += flame.width[i] / (flame.depth[i] + 1) + Math.abs(flame.self[i]);
  const order = Array.from(weight.keys()).filter((frame) => weight[frame] > 0);
  return order.sort((a, b) => weight[b] - weight[a]).slice(0, rankedFrames);
}

/**
 * What colour a frame has: the hue of its package, a shade of its name. A package has the hue that its
 * name hashes to, so that it looks the same everywhere, unless a heavier one has it already; then the
 * next free one. Names are looked at when a frame is first painted, not all at once.
 */
export class FrameColours {
  private readonly hues = new Map<string, number>([["", neutral], ["kernel", neutral]]);
  private readonly fills: Uint16Array;

  constructor(private readonly flame: Flame) {
    this.fills = new Uint16Array(flame.frames.count).fill(0xffff);
    const taken = new Set<number>();
    for (const frame of heaviestFrames(flame)) {
      const part = this.package(frame);
      if (this.hues.has(part)) continue;
      let hue = hashText(part) % hues.length;
      while (taken.has(hue) && taken.size < hues.length) hue = (hue + 3) % hues.length; // 3 and 16 share no factor
      taken.add(hue);
      this.hues.set(part, hue);
    }
  }

  package(frame: number): string {
    const { frames } = this.flame;
    if (frames.flags(frame) & FrameFlag.Kernel) return "kernel";
    return packageOf(frames.name(frame), frames.mapping(frame), frames.file(frame));
  }

  /** Index into palette.fills. */
  fill(frame: number): number {
    if (this.fills[frame] === 0xffff) {
      const part = this.package(frame);
      const hue = this.hues.get(part) ?? hashText(part) % hues.length;
      this.fills[frame] = hue * shadeCount + (hashText(this.flame.frames.name(frame)) % shadeCount);
    }
    return this.fills[frame];
  }
}

/** Index into palette.diff: how much a node changed, relative to its larger side. */
export function diffStep(before: number, after: number): number {
  const larger = Math.max(Math.abs(before), Math.abs(after));
  if (larger === 0) return diffSteps;
  const share = (after - before) / larger;
  // A square root spreads the small changes, which are the common ones.
  const strength = Math.sqrt(Math.abs(share));
  const step = Math.abs(share) < 0.005 ? 0 : Math.max(1, Math.round(strength * diffSteps));
  return diffSteps + Math.sign(share) * step;
}
