/*
 * regrouped: finds a node of a tree in another tree of the same samples, whose frames have other
 * names or another grouping.
 *
 * Both trees are descended at once. Frames are compared by properties that both trees have, the
 * most reliable first: the name, the file, the binary, the place, and last the words of the name
 * (for `shop::add` in `_ZN4shop3addIiEET_S1_`). The search ends when the nodes found sum to the
 * value of the node: both trees have the same samples, so no other node belongs to it then. One
 * node may correspond to several, and several to one.
 */
import { plainName } from "../search/escape_regex.ts";
import { FrameFlag, type Flame } from "./flame.ts";

export interface Regrouped {
  /** Largest first; never empty. */
  nodes: number[];
  /** False: nodes contains the nearest caller that was found, or the root. */
  isFound: boolean;
  /** The node was found, and the values of both trees' nodes are equal. */
  isSame: boolean;
  /** The number of nodes that were compared. */
  effort: number;
}

const isBinary = ({ metadata }: Flame) => metadata.group_by === "binary";

/**
 * Caches the result per frame: a node may have a hundred thousand children, each of which is
 * compared at every place.
 */
function once<T>(make: (frame: number) => T): (frame: number) => T {
  const made: T[] = [];
  return (frame) => (made[frame] ??= make(frame));
}

const plainNames = ({ frames }: Flame) => once((frame) => plainName(frames.name(frame)));

const lastWord = (name: string) =>
  /(\w+)(?:<.*>)?(?:\([^()]*\))?(?: const)?$/.exec(name)?.[1] ?? "";

/** Comparisons of two frames, the most reliable first. */
function comparisons(from: Flame, to: Flame): ((a: number, b: number) => boolean)[] {
  const [f, t] = [from.frames, to.frames];
  const isLabel = (a: number, b: number) => ((f.flags(a) ^ t.flags(b)) & FrameFlag.Label) === 0;
  const hasFile = (a: number, b: number) => f.file(a) !== "" && f.file(a) === t.file(b);
  const hasMapping = (a: number, b: number) => f.mapping(a) === t.mapping(b);
  if (isBinary(from) || isBinary(to)) return [hasMapping];
  if ([from, to].some(({ metadata }) => metadata.group_by === "file"))
    return [
      (a, b) => isLabel(a, b) && (hasFile(a, b) || f.name(a) === t.name(b)),
      (a, b) => f.file(a) === "" && t.file(b) === "" && hasMapping(a, b),
    ];
  const [nameFrom, nameTo] = [plainNames(from), plainNames(to)];
  const [wordFrom, wordTo] = [once((a) => lastWord(nameFrom(a))), once((b) => lastWord(nameTo(b)))];
  const has = (name: string, word: string) => word !== "" && name.includes(word);
  return [
    (a, b) => isLabel(a, b) && nameFrom(a) === nameTo(b),
    (a, b) => hasFile(a, b) && f.line(a) === t.line(b) && hasMapping(a, b),
    (a, b) => isLabel(a, b) && (has(nameTo(b), wordFrom(a)) || has(nameFrom(a), wordTo(b))),
  ];
}

function childrenOf({ end }: Flame, node: number): number[] {
  const children: number[] = [];
  for (let child = node + 1; child < end[node]; child = end[child]) children.push(child);
  return children;
}

/**
 * When grouped by binary, one frame represents all calls within a binary: the nodes at which the
 * binary is left.
 */
function withinBinary(flame: Flame, nodes: readonly number[]): number[] {
  const { frames, frame } = flame;
  const all = [...nodes];
  for (let i = 0; i < all.length; i++)
    if (all[i] > 0)
      for (const child of childrenOf(flame, all[i]))
        if (frames.mapping(frame[child]) === frames.mapping(frame[all[i]])) all.push(child);
  return all;
}

const sumOf = (values: Float64Array | null, nodes: readonly number[]) =>
  values ? nodes.reduce((sum, node) => sum + values[node], 0) : 0;
const isNear = (a: number, b: number) =>
  Math.abs(a - b) <= 1e-9 * Math.max(Math.abs(a), Math.abs(b));

/** In a tree that is divided by a label, its values are the frames below the root. */
const isDivided = (flame: Flame) =>
  childrenOf(flame, 0).some((child) => flame.frames.flags(flame.frame[child]) & FrameFlag.Label);

export function findRegrouped(
  from: Flame,
  node: number,
  to: Flame,
  tests = comparisons(from, to),
): Regrouped {
  const path: number[] = [];
  for (let at = node; at > 0; at -= from.parentDelta[at]) path.unshift(at);
  let now = [0];
  if (from.metadata.group_by !== to.metadata.group_by) {
    if (isDivided(from)) path.shift();
    if (isDivided(to)) now = childrenOf(to, 0);
  }
  const holds = (nodes: readonly number[], one: number) =>
    isNear(sumOf(to.cum, nodes), from.cum[one]) &&
    isNear(sumOf(to.baseCum, nodes), sumOf(from.baseCum, [one]));
  const isInBinary = (one: number, frame: number) =>
    one > 0 && to.frames.mapping(to.frame[one]) === from.frames.mapping(frame);
  let effort = 0;
  /** Chooses among the candidates: a match by a more reliable comparison comes first. */
  const choose = (candidates: readonly number[], step: number) => {
    let found: number[] = [];
    for (const isLike of tests) {
      if (holds(found, step)) break;
      effort += candidates.length;
      const has = new Set(found);
      const more = candidates.filter(
        (child) => !has.has(child) && isLike(from.frame[step], to.frame[child]),
      );
      // Both trees have the same samples, so matches that exceed the value belong to other nodes.
      if (found.length === 0 || sumOf(to.cum, [...found, ...more]) <= from.cum[step])
        found = [...found, ...more];
    }
    const alone = found.filter((one) => holds([one], step));
    return alone.length === 1 ? alone : found;
  };
  let isFound = false;
  /**
   * The nodes of the last step that was found. If a step of the path is not found, a rule may have
   * removed its frame, and then the callees belong to its caller.
   */
  let sure: number[] | null = null;
  for (const step of path) {
    if (isBinary(to) && now.every((one) => isInBinary(one, from.frame[step]))) continue;
    const next = choose(
      (isBinary(from) ? withinBinary(to, now) : now).flatMap((one) => childrenOf(to, one)),
      step,
    );
    isFound = next.length > 0;
    if (isFound) now = next;
    else sure ??= now;
  }
  const isSame = isFound && holds(now, node);
  if (sure && !isSame) [now, isFound] = [sure, false];
  const nodes =
    isFound || sure?.length === 1 ? [...now].sort((a, b) => to.width[b] - to.width[a]) : [0];
  return { nodes, isFound, isSame, effort };
}

/**
 * The maximum number of places of a function that are searched: more places add no information
 * about its new name. Fewer are searched if nodes have a hundred thousand children.
 */
const maxPlaces = 50;
const maxEffort = 5e5;

/** The names in the other tree of the function `name`, the largest first. */
export function renamed(from: Flame, name: string, to: Flame): string[] {
  const places: number[] = [];
  const { frames, frame, nodeCount, end } = from;
  const isNamed = Uint8Array.from({ length: frames.count }, (_, i) =>
    Number(frames.name(i) === name),
  );
  for (let i = 1; i < nodeCount;) {
    if (isNamed[frame[i]]) places.push(i);
    i = isNamed[frame[i]] ? end[i] : i + 1; // recursion counts once
  }
  places.sort((a, b) => from.width[b] - from.width[a]);
  const held = new Map<string, number>();
  const tests = comparisons(from, to);
  let left = maxEffort;
  for (const place of places.slice(0, maxPlaces)) {
    if (left <= 0) break;
    const { nodes, isFound, effort } = findRegrouped(from, place, to, tests);
    left -= effort;
    if (!isFound) continue;
    for (const node of nodes) {
      const there = to.frames.name(to.frame[node]);
      held.set(there, (held.get(there) ?? 0) + to.width[node]);
    }
  }
  return [...held.keys()].sort((a, b) => held.get(b)! - held.get(a)!);
}
