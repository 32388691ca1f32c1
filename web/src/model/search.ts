/*
 * search: which frames a regular expression names, how many, and what they hold.
 *
 * The expression is the subset that the server takes too: no look-around, no backreference. It is
 * case-sensitive as soon as it holds an upper-case letter.
 */
import type { Flame } from "./flame.ts";

export interface SearchResult {
  /** 1 for every frame whose name matches. */
  frameMatches: Uint8Array;
  functionCount: number;
  nodeCount: number;
  /** Sum over outermost matches only, so that recursion counts once. */
  value: number;
  baseValue: number;
  /** Matching nodes before each position of rowNodes, to ask "is any in this run?" at once. */
  rowPrefix: Uint32Array;
}

/** The expression as an escaped literal that matches exactly this name. */
export function exactly(name: string): string {
  return "^" + name.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&") + "$";
}

/** Throws an Error whose message can be shown. */
export function compileSearch(text: string): RegExp {
  let source = text;
  let flags = "";
  if (source.startsWith("(?i)")) {
    source = source.slice(4);
    flags = "i";
  }
  if (/\(\?<?[=!]/.test(source)) throw new Error("Look-around is not part of the search language.");
  if (/(^|[^\\])(\\\\)*\\([1-9]|k<)/.test(source)) throw new Error("Backreferences are not part of the search language.");
  if (!/\p{Lu}/u.test(source.replace(/\\./g, ""))) flags = "i";
  try {
    return new RegExp(source, flags);
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/^.*\/[a-z]*: /, "") : "";
    throw new Error(reason ? `${reason}.` : "Not a regular expression.");
  }
}

export function search(flame: Flame, pattern: RegExp): SearchResult {
  const { frames, frame, nodeCount, end, cum, baseCum, rowNodes } = flame;
  const nameMatches = new Map<number, boolean>();
  const frameMatches = new Uint8Array(frames.count);
  for (let i = 0; i < frames.count; i++) {
    const id = frames.nameId[i];
    let matches = nameMatches.get(id);
    if (matches === undefined) nameMatches.set(id, (matches = pattern.test(frames.string(id))));
    frameMatches[i] = matches ? 1 : 0;
  }
  frameMatches[flame.frame[0]] = 0; // the root stands for the whole profile, not for a function
  let value = 0;
  let baseValue = 0;
  for (let i = 1; i < nodeCount; ) {
    if (!frameMatches[frame[i]]) {
      i++;
      continue;
    }
    value += cum[i];
    if (baseCum) baseValue += baseCum[i];
    i = end[i];
  }
  const rowPrefix = new Uint32Array(nodeCount + 1);
  for (let i = 0; i < nodeCount; i++) rowPrefix[i + 1] = rowPrefix[i] + frameMatches[frame[rowNodes[i]]];
  const names = new Set<number>();
  for (let i = 0; i < frames.count; i++) if (frameMatches[i]) names.add(frames.nameId[i]);
  return { frameMatches, functionCount: names.size, nodeCount: rowPrefix[nodeCount], value, baseValue, rowPrefix };
}

/** The next matching node after (or before) one, in the order of the tree and around its end; -1 if none. */
export function nextMatch(flame: Flame, result: SearchResult, node: number, step: 1 | -1): number {
  const count = flame.nodeCount;
  for (let i = 1; i <= count; i++) {
    const at = (((node + i * step) % count) + count) % count;
    if (result.frameMatches[flame.frame[at]]) return at;
  }
  return -1;
}
