/*
 * peek: the callers and callees of one function with the value of each edge: the numbers of pprof's
 * -peek and of the server's /callers.
 *
 * An edge counts the stacks in which caller and callee are adjacent, each stack once. Calls of a
 * function by itself are not edges. So with recursion, the edges may sum to more than the function.
 * One pass over the tree: 10 to 20 ms for a million nodes.
 */
import { FrameFlag, type Flame } from "../tree/flame.ts";
import { groupFrames } from "./functions.ts";
import { changeOf } from "../text/units.ts";

export interface PeekRow {
  /** One of its frames. */
  frame: number;
  name: string;
  value: number;
  baseValue: number;
  /** Small functions that were merged when the tree was truncated. */
  isOther: boolean;
}

export interface Peek {
  frame: number;
  flat: number;
  baseFlat: number;
  cum: number;
  baseCum: number;
  /** The part without a caller, where stacks start. */
  start: { value: number; baseValue: number } | null;
  callers: PeekRow[];
  callees: PeekRow[];
}

/** Sums per group of frames, each counted once on a path. */
class Sums {
  readonly value: Float64Array;
  readonly base: Float64Array;
  private readonly isThere: Uint8Array;
  private readonly openCount: Uint32Array;

  constructor(groupCount: number) {
    this.value = new Float64Array(groupCount);
    this.base = new Float64Array(groupCount);
    this.isThere = new Uint8Array(groupCount);
    this.openCount = new Uint32Array(groupCount);
  }
  enter(group: number, value: number, base: number): void {
    if (this.openCount[group]++ > 0) return;
    this.isThere[group] = 1;
    this.value[group] += value;
    this.base[group] += base;
  }
  leave(group: number): void {
    this.openCount[group]--;
  }

  /**
   * Sorted by size, in a diff by change. Edges that sum to 0 are kept because they still show a
   * call.
   */
  rows(flame: Flame, first: readonly number[]): PeekRow[] {
    const rows: PeekRow[] = [];
    for (let group = 0; group < first.length; group++) {
      if (!this.isThere[group]) continue;
      const frame = first[group];
      const isOther = (flame.frames.flags(frame) & FrameFlag.Other) !== 0;
      rows.push({
        frame,
        name: flame.frames.name(frame),
        value: this.value[group],
        baseValue: this.base[group],
        isOther,
      });
    }
    const size = (row: PeekRow) => Math.abs(changeOf(row.baseValue, row.value));
    return rows.sort(
      (a, b) => size(b) - size(a) || (a.name < b.name ? -1 : a.name > b.name ? 1 : 0),
    );
  }
}

/** The sums that are already counted on the current path of a preorder traversal. */
class OpenSums {
  private readonly ends: number[] = [];
  private readonly sums: Sums[] = [];
  private readonly groups: number[] = [];

  constructor(private readonly flame: Flame) {}

  enter(node: number, sums: Sums, group: number): void {
    const { end, cum, baseCum } = this.flame;
    sums.enter(group, cum[node], baseCum ? baseCum[node] : 0);
    this.ends.push(end[node]);
    this.sums.push(sums);
    this.groups.push(group);
  }
  /** Closes the nodes that are not ancestors of `node`. */
  leaveFor(node: number): void {
    while (this.ends.length && node >= this.ends[this.ends.length - 1]) {
      this.ends.pop();
      this.sums.pop()!.leave(this.groups.pop()!);
    }
  }
}

/** null if no frame of the tree has that name. All frames of a name are one function. */
export function peek(flame: Flame, name: string): Peek | null {
  const { frames, frame, parentDelta, self, baseSelf, nodeCount } = flame;
  const { groupOf, first } = groupFrames(flame);
  const nameId = findName(flame, name);
  if (nameId < 0) return null;
  const isIt = Uint8Array.from(frames.nameId, (id) => (id === nameId ? 1 : 0));
  isIt[frame[0]] = 0; // the root represents the whole profile

  const it = new Sums(1);
  const start = new Sums(1);
  const callers = new Sums(first.length);
  const callees = new Sums(first.length);
  const open = new OpenSums(flame);
  let found = -1;
  let flat = 0;
  let baseFlat = 0;
  for (let i = 1; i < nodeCount; i++) {
    const parent = i - parentDelta[i];
    const here = isIt[frame[i]];
    const above = isIt[frame[parent]];
    if (!here && !above) continue;
    open.leaveFor(i);
    if (!here) {
      open.enter(i, callees, groupOf[frame[i]]);
      continue;
    }
    if (found < 0) found = frame[i];
    flat += self[i];
    if (baseSelf) baseFlat += baseSelf[i];
    open.enter(i, it, 0);
    if (parent === 0) open.enter(i, start, 0);
    else if (!above) open.enter(i, callers, groupOf[frame[parent]]);
  }
  if (found < 0) return null;
  const [begun] = start.rows(flame, [found]);
  return {
    frame: found,
    flat,
    baseFlat,
    cum: it.value[0],
    baseCum: it.base[0],
    start: begun ? { value: begun.value, baseValue: begun.baseValue } : null,
    callers: callers.rows(flame, first),
    callees: callees.rows(flame, first),
  };
}

function findName(flame: Flame, name: string): number {
  const { frames } = flame;
  for (let i = 0; i < frames.count; i++) if (frames.name(i) === name) return frames.nameId[i];
  return -1;
}
