/*
 * folded: reads lines of "root;...;leaf value" like the server (lib/profile/formats/folded.h): the
 * value follows the last blank, empty lines and comments are skipped, decimals are scaled to whole
 * numbers and the unit states the scale.
 */
import { formatCount } from "../model/text/units.ts";
import { FrameGrouper } from "./grouping.ts";
import {
  LocalError,
  noLabels,
  NumberList,
  PairError,
  RefusedError,
  type LocalProfile,
  type Stacks,
} from "./profile.ts";

const maxDecimals = 6;
/** The server refuses values of this size or more, except whole numbers that fit into 64 bits. */
const valueEnd = 9.2e18;
/** The server reads a number with a point or an exponent only if it is shorter than this. */
const numberBytes = 40;
function isNumber(text: string): boolean {
  const size = Math.abs(Number(text));
  if (/^-?\d+$/.test(text))
    return size < valueEnd || (size < 1e19 && BigInt.asIntN(64, BigInt(text)) === BigInt(text));
  return (
    size < valueEnd &&
    text.length < numberBytes &&
    /^[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?$/.test(text)
  );
}

interface Line {
  stack: string;
  value: string;
}

/** Removes ASCII white space only: the server takes any other white space as a part of a name. */
function trim(text: string): string {
  const isSpace = (code: number) => code === 32 || (code >= 9 && code <= 13);
  let [from, to] = [0, text.length];
  while (from < to && isSpace(text.charCodeAt(from))) from++;
  while (from < to && isSpace(text.charCodeAt(to - 1))) to--;
  return text.slice(from, to);
}

/** Splits a trimmed line at its last blank; null if it is not a stack with a value. */
function parseLine(line: string): Line | null {
  const at = Math.max(line.lastIndexOf(" "), line.lastIndexOf("\t")) + 1;
  const [stack, value] = [trim(line.slice(0, at)), line.slice(at)];
  return stack && isNumber(value) ? { stack, value } : null;
}

/**
 * Comments are "#", "# text", "// text", and "//text" without a value. A line with several frames
 * and a value is always a stack.
 */
function isComment(line: string, found: Line | null): boolean {
  if (line === "#") return true;
  if (!line.startsWith("# ") && !line.startsWith("//")) return false;
  return (
    !found || (!found.stack.includes(";") && (line.startsWith("# ") || line.startsWith("// ")))
  );
}

/**
 * The stack and the value of each line except empty lines and comments; null if the line is not a
 * stack.
 */
function* linesOf(text: string): Generator<Line | null> {
  for (const raw of text.split("\n")) {
    const line = trim(raw);
    const found = parseLine(line);
    if (line && !isComment(line, found)) yield found;
  }
}

/** The text without comments and malformed lines. */
export const stacksAlone = (text: string): string =>
  text
    .split("\n")
    .filter((line) => !line || linesOf(line).next().value)
    .join("\n");

/**
 * As on the server, malformed lines are skipped if they number at most a tenth of the stacks, or at
 * most this many and fewer than the stacks.
 */
const skippedFew = 3;
const areMostlyStacks = (stacks: number, skipped: number) =>
  stacks > 0 && (skipped * 10 <= stacks || (skipped <= skippedFew && skipped < stacks));

/** Whether nearly every line except comments is a stack with a value. */
export function areStacks(text: string): boolean {
  let stacks = 0;
  let skipped = 0;
  for (const found of linesOf(text)) {
    if (found) stacks++;
    else skipped++;
  }
  return areMostlyStacks(stacks, skipped);
}

interface Lines {
  stacks: string[];
  values: string[];
  /** The number of stacks with two values. */
  pairs: number;
  skipped: number;
}

function readLines(text: string): Lines {
  const lines: Lines = { stacks: [], values: [], pairs: 0, skipped: 0 };
  for (const found of linesOf(text)) {
    if (!found) {
      lines.skipped++;
      continue;
    }
    lines.stacks.push(found.stack);
    if (parseLine(found.stack)) lines.pairs++;
    lines.values.push(found.value);
  }
  return lines;
}

const mappingOf = (name: string) =>
  name.endsWith("_[k]") ? "[kernel.kallsyms]" : name.endsWith("_[j]") ? "[jit]" : "";

/**
 * Keeps frames without a name. An inlined frame ("_[i]") is at the address of its caller, so it has
 * the caller's binary.
 */
function readStacks(texts: readonly string[], grouper: FrameGrouper): Stacks {
  const isByBinary = grouper.group === "binary";
  const frameOf = new Map<string, number>();
  const start = new Uint32Array(texts.length + 1);
  const stack = new NumberList(new Uint32Array(1024));
  texts.forEach((names, i) => {
    let binary: string | null = null;
    let last = -1;
    for (const name of names.split(";")) {
      const isInlined = binary !== null && name.endsWith("_[i]");
      const mapping: string = isInlined ? binary! : (binary = mappingOf(name));
      const key = isInlined ? `${mapping};${name}` : name;
      let frame = frameOf.get(key);
      if (frame === undefined) {
        const func = isByBinary ? null : { name, file: "", startLine: 0 };
        frame = grouper.frame({
          func,
          line: 0,
          isInlined: isInlined && !isByBinary,
          mapping,
          address: 0n,
          offset: 0n,
        });
        frameOf.set(key, frame);
      }
      if (!isByBinary || frame !== last) stack.push(frame);
      last = frame;
    }
    start[i + 1] = stack.length;
  });
  return { frames: grouper.frames, start, stack: stack.toArray() };
}

/**
 * The power of ten that keeps up to six decimal places, or fewer if the largest value would not
 * fit.
 */
function scaleOf(values: readonly string[]): number {
  let decimals = 0;
  let largest = 0;
  for (const value of values) {
    const [, fraction = "", exponent = "0"] =
      /^[-+]?\d*\.?(\d*)(?:[eE]([-+]?\d+))?$/.exec(value) ?? [];
    decimals = Math.max(decimals, Math.min(maxDecimals, fraction.length - Number(exponent)));
    largest = Math.max(largest, Math.abs(Number(value)));
  }
  while (decimals > 0 && largest * 10 ** decimals >= valueEnd) decimals--;
  return 10 ** decimals;
}

/** Splits stacks with two values into two texts with one value: before and after. */
export function splitPair(text: string): [before: string, after: string] {
  const before: string[] = [];
  const after: string[] = [];
  for (const found of linesOf(text)) {
    const first = found && parseLine(found.stack);
    if (!first) continue;
    before.push(`${first.stack} ${first.value}\n`);
    after.push(`${first.stack} ${found.value}\n`);
  }
  return [before.join(""), after.join("")];
}

export function decodeFolded(text: string): LocalProfile {
  const lines = readLines(text);
  if (lines.stacks.length === 0)
    throw new LocalError("No line of the file is a stack followed by a value.");
  if (!areMostlyStacks(lines.stacks.length, lines.skipped))
    throw new RefusedError(
      `${formatCount(lines.skipped)} of ${formatCount(lines.skipped + lines.stacks.length)} ` +
        "lines are not stacks with a value: this is not a supported profile.",
    );
  // Stacks without callers may have names that end like this: "worker 1 200".
  if (lines.pairs === lines.stacks.length && lines.stacks.some((names) => names.includes(";")))
    throw new PairError(
      "Each stack has two values, as in a comparison. Upload the profiles before and after " +
        "separately and compare them.",
    );
  const scale = scaleOf(lines.values);
  return {
    ...readStacks(lines.stacks, new FrameGrouper("function")),
    regroup: (grouper) => readStacks(lines.stacks, grouper),
    sampleTypes: [{ type: "samples", unit: scale === 1 ? "count" : `count/${scale}` }],
    defaultType: 0,
    values: Float64Array.from(
      lines.values,
      (value) => Math.sign(Number(value)) * Math.round(Math.abs(Number(value)) * scale) || 0,
    ), // rounds halves away from zero, like the server
    labels: noLabels(lines.stacks.length),
    notes: lines.skipped
      ? [
          lines.skipped === 1
            ? "1 line is not a stack with a value."
            : `${formatCount(lines.skipped)} lines are not stacks with a value.`,
        ]
      : [],
  };
}
