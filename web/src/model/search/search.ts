/*
 * search: the frames that match a regular expression, their number and their sum.
 *
 * The expression is the subset that the server accepts (regex.ts). It is case-sensitive if it
 * contains an upper-case letter. The whole search has a deadline.
 */
import type { Rule } from "../rules/chain.ts";
import { FrameFlag, type Flame, type FrameTable } from "../tree/flame.ts";
import { exactPattern, plainName } from "./escape_regex.ts";
import { Pattern } from "./regex.ts";

export interface SearchResult {
  /** 1 for every frame whose name matches. */
  frameMatches: Uint8Array;
  /** The number of matching functions in the tree. */
  functionCount: number;
  nodeCount: number;
  /** The sum of the outermost matches, so that recursion counts once. */
  value: number;
  baseValue: number;
  rows: RowMarks;
}

const blockBits = 4;
const blockSize = 1 << blockBits;

/**
 * Marks the positions of rowNodes that match, to find out "does this run contain a match?" for a
 * million nodes quickly.
 */
export class RowMarks {
  readonly count: number;
  private readonly isMatch: Uint8Array;
  /** The number of matches in all blocks before each block. */
  private readonly before: Uint32Array;

  constructor({ nodeCount, frame, depth, rowOffset }: Flame, frameMatches: Uint8Array) {
    const isMatch = new Uint8Array(nodeCount);
    const before = new Uint32Array((nodeCount >> blockBits) + 2);
    // All rows are filled in parallel in tree order: looking up the frame of each position in the
    // tree is far slower.
    const place = rowOffset.slice();
    for (let i = 0; i < nodeCount; i++) {
      const at = place[depth[i]]++;
      if (frameMatches[frame[i]] === 0) continue;
      isMatch[at] = 1;
      before[(at >> blockBits) + 1]++;
    }
    for (let block = 1; block < before.length; block++) before[block] += before[block - 1];
    this.isMatch = isMatch;
    this.before = before;
    this.count = before[before.length - 1];
  }

  /** Whether a position from first to last, both included, matches. */
  any(first: number, last: number): boolean {
    const firstBlock = (first + blockSize - 1) >> blockBits;
    const pastBlock = (last + 1) >> blockBits;
    if (firstBlock >= pastBlock) return this.anyOf(first, last + 1);
    if (this.before[pastBlock] > this.before[firstBlock]) return true;
    return (
      this.anyOf(first, firstBlock << blockBits) || this.anyOf(pastBlock << blockBits, last + 1)
    );
  }
  private anyOf(from: number, to: number): boolean {
    for (let at = from; at < to; at++) if (this.isMatch[at] !== 0) return true;
    return false;
  }
}

const maxSteps = 1e9; // about a second or two for one name, in the worst case
const deadlineMs = 2000;
const stepsPerLook = 1e5;

/** The items whose name matches; all items if the test would take too long. */
export function filterByName<Item extends { name: string }>(
  items: readonly Item[],
  pattern: Pattern,
): readonly Item[] {
  const test = boundedTest(pattern);
  try {
    return items.filter((item) => test(item.name));
  } catch {
    return items;
  }
}

/**
 * A test whether a name matches, with or without its address. It throws if the test would take too
 * long.
 */
export function boundedTest(pattern: Pattern): (name: string) => boolean {
  const end = performance.now() + deadlineMs;
  let unseen = 0; // steps since the last look at the clock, which costs more than most names
  return (name) => {
    const steps = pattern.stepsFor(name.length);
    unseen += steps;
    let isLate = steps > maxSteps;
    if (unseen > stepsPerLook) {
      unseen = 0;
      isLate ||= performance.now() > end;
    }
    if (isLate)
      throw new Error(
        "This expression takes too long on the names of this profile: use fewer repetitions.",
      );
    const plain = plainName(name);
    return pattern.test(name) || (plain !== name && pattern.test(plain));
  };
}

/** A typed text is case-insensitive as long as it is all lower case. */
export function compileSearch(text: string): Pattern {
  return new Pattern(text, !/\p{Lu}/u.test(text.replace(/\\./g, "")) && !isExact(text));
}

/** Like the server's filters: case-sensitive unless it starts with "(?i)". */
export const compileRule = (text: string): Pattern => new Pattern(text, false);

/** False for a text that is not an expression or takes too long. */
function isTrueOf(expression: string, use: (test: (name: string) => boolean) => boolean): boolean {
  try {
    return use(boundedTest(compileRule(expression)));
  } catch {
    return false;
  }
}

/**
 * Whether a rule may match files or binaries that frames do not show, because a frame has several
 * of them.
 */
export const findSharedPlace = ({ frames }: Flame, rules: readonly Rule[]): boolean =>
  rules.some(({ text }) =>
    isTrueOf(text, (test) => frames.sharedPlaces?.some((id) => test(frames.string(id))) === true),
  );

/** Whether the text was made by exactPattern() and thus matches only one name. */
function isExact(text: string): boolean {
  const inner = /^\^(.*)\$$/s.exec(text)?.[1];
  return (
    inner !== undefined && exactPattern(inner.replace(/\\([\\^$.*+?()[\]{}|/])/g, "$1")) === text
  );
}

/** 1 for each frame whose name matches, except the root. */
function matchNames(frames: FrameTable, root: number, pattern: Pattern): Uint8Array {
  const test = boundedTest(pattern);
  const known = new Uint8Array(frames.stringCount); // 1: does not match, 2: matches
  const frameMatches = new Uint8Array(frames.count);
  for (let i = 0; i < frames.count; i++) {
    if (i === root) continue;
    const id = frames.nameId[i];
    known[id] ||= test(frames.string(id)) ? 2 : 1;
    frameMatches[i] = known[id] - 1;
  }
  return frameMatches;
}

/**
 * The number of different matching names (by line: frames) among the nodes of the tree. Frames
 * without nodes were removed by rules.
 */
function countMatches(
  { frames, frame, nodeCount, metadata }: Flame,
  frameMatches: Uint8Array,
): number {
  const isEachItsOwn = metadata.group_by === "line" || metadata.group_by === "address";
  const seen = new Uint8Array(isEachItsOwn ? frames.count : frames.stringCount);
  let count = 0;
  for (let i = 1; i < nodeCount; i++) {
    const at = frame[i];
    if (frameMatches[at] === 0) continue;
    const id = isEachItsOwn ? at : frames.nameId[at];
    if (seen[id] !== 0 || frames.flags(at) & (FrameFlag.Other | FrameFlag.Label)) continue;
    seen[id] = 1;
    count++;
  }
  return count;
}

export function search(flame: Flame, pattern: Pattern): SearchResult {
  const { frames, frame, nodeCount, end, cum, baseCum } = flame;
  const frameMatches = matchNames(frames, frame[0], pattern);
  let value = 0;
  let baseValue = 0;
  for (let i = 1; i < nodeCount;) {
    if (!frameMatches[frame[i]]) {
      i++;
      continue;
    }
    value += cum[i];
    if (baseCum) baseValue += baseCum[i];
    i = end[i];
  }
  const rows = new RowMarks(flame, frameMatches);
  return {
    frameMatches,
    functionCount: countMatches(flame, frameMatches),
    nodeCount: rows.count,
    value,
    baseValue,
    rows,
  };
}

/** Whether no frame of the tree has a name, file or binary that matches the expression. */
export const namesNothing = ({ frames, frame }: Flame, expression: string): boolean =>
  isTrueOf(expression, (test) => {
    const isThere = new Uint8Array(frames.count);
    for (const at of frame.subarray(1)) isThere[at] = 1;
    const isNamed = (at: number) =>
      [frames.name(at), frames.file(at), frames.mapping(at)].some(
        (text) => text !== "" && test(text),
      );
    return !isThere.some(
      (there, at) => there && !(frames.flags(at) & FrameFlag.Other) && isNamed(at),
    );
  });

/** The next (or previous) matching node in tree order, wrapping around; -1 if there is none. */
export function nextMatch(flame: Flame, result: SearchResult, node: number, step: 1 | -1): number {
  const count = flame.nodeCount;
  for (let i = 1; i <= count; i++) {
    const at = (((node + i * step) % count) + count) % count;
    if (result.frameMatches[flame.frame[at]]) return at;
  }
  return -1;
}

/** The marks of two searches combined; the sums are those of the first. */
export function bothMarks(
  flame: Flame,
  first: SearchResult | null,
  second: SearchResult | null,
): SearchResult | null {
  if (!first || !second) return first ?? second;
  const frameMatches = first.frameMatches.map(
    (isMatch, frame) => isMatch | second.frameMatches[frame],
  );
  return { ...first, frameMatches, rows: new RowMarks(flame, frameMatches) };
}
