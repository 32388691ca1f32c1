/*
 * transform: what the rules of chain.ts make of a tree, and the two trees around one function.
 *
 * Everything works on columns, in loops without recursion, so that neither depth nor number of nodes
 * matters (callers cost places times depth), and on the tree as it was counted, never on what is
 * drawn. A new tree is built with parents
 * before children, brothers of one frame as one node, and then put in preorder, the widest first.
 * Numbers are those of the server's filters: tests/browser/filter.mjs compares them.
 */
import type { Rule } from "./chain.ts";
import { presetFrames } from "./presets.ts";
import { deriveWidth, FrameFlag, sumUp, type Columns, type FrameTable } from "./flame.ts";
import { boundedTest, compileRule } from "./search.ts";

const none = 0xffffffff;
/** Of a tree that is built; callers of callers can be as many as places times depth. */
const maxNodes = 1 << 24;

/** A tree under construction: node 0 is the root, a node's parent has a lower number. */
export class Builder {
  count = 1;
  private frame: Uint32Array;
  private parent: Uint32Array;
  private self: Float64Array;
  private base: Float64Array | null;
  /** Hash table of (parent, frame), open addressing, at most half full; 0 is an empty slot. */
  private slots: Uint32Array;

  /** Grows past expectedNodes when there are more. */
  constructor(expectedNodes: number, rootFrame: number, hasBase: boolean) {
    const size = 2 ** Math.ceil(Math.log2(Math.max(512, expectedNodes)));
    this.frame = new Uint32Array(size);
    this.parent = new Uint32Array(size);
    this.self = new Float64Array(size);
    this.base = hasBase ? new Float64Array(size) : null;
    this.slots = new Uint32Array(2 * size);
    this.frame[0] = rootFrame;
  }

  private grow(): void {
    const size = this.frame.length * 2;
    if (size > maxNodes) throw new Error("This view would have too many boxes: filter the profile first.");
    const wider = <T extends Uint32Array | Float64Array>(old: T, made: T): T => (made.set(old), made);
    this.frame = wider(this.frame, new Uint32Array(size));
    this.parent = wider(this.parent, new Uint32Array(size));
    this.self = wider(this.self, new Float64Array(size));
    this.base = this.base && wider(this.base, new Float64Array(size));
    this.slots = new Uint32Array(2 * size);
    for (let node = 1; node < this.count; node++) this.slots[this.slotOf(this.parent[node], this.frame[node])] = node;
  }

  /** Where the node with that parent and frame is in the table, or the empty slot for it. */
  private slotOf(parent: number, frame: number): number {
    let hash = Math.imul(parent, 0x9e3779b1) ^ Math.imul(frame, 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
    const mask = this.slots.length - 1;
    let slot = (hash ^ (hash >>> 13)) & mask;
    for (; this.slots[slot] !== 0; slot = (slot + 1) & mask) {
      const node = this.slots[slot];
      if (this.parent[node] === parent && this.frame[node] === frame) break;
    }
    return slot;
  }

  /** The child of parent with that frame, made where there is none. */
  child(parent: number, frame: number): number {
    let slot = this.slotOf(parent, frame);
    if (this.slots[slot] !== 0) return this.slots[slot];
    if (this.count === this.frame.length) {
      this.grow();
      slot = this.slotOf(parent, frame);
    }
    this.parent[this.count] = parent;
    this.frame[this.count] = frame;
    return (this.slots[slot] = this.count++);
  }

  add(node: number, self: number, base: number): void {
    this.self[node] += self;
    if (this.base) this.base[node] += base;
  }

  finish(): Columns {
    const { count } = this;
    return arrange(this.parent.subarray(0, count), {
      frame: this.frame.subarray(0, count),
      self: this.self.subarray(0, count),
      baseSelf: this.base && this.base.subarray(0, count),
    });
  }
}

type Unordered = Omit<Columns, "parentDelta">;

/** Sorts list[from..to) by falling width; equal ones keep their order. */
function sortSiblings(list: Uint32Array, from: number, to: number, width: Float64Array): void {
  if (to - from > 24) {
    const sorted = Array.from(list.subarray(from, to)).sort((a, b) => width[b] - width[a]);
    list.set(sorted, from);
    return;
  }
  for (let i = from + 1; i < to; i++) {
    const node = list[i];
    let at = i;
    for (; at > from && width[list[at - 1]] < width[node]; at--) list[at] = list[at - 1];
    list[at] = node;
  }
}

/** Nodes whose parents stand before them, in preorder with the widest sibling first. */
function arrange(parent: Uint32Array, nodes: Unordered): Columns {
  const count = parent.length;
  const delta = new Uint32Array(count);
  for (let i = 1; i < count; i++) delta[i] = i - parent[i];
  const width = deriveWidth({ ...nodes, parentDelta: delta }, sumUp(nodes.self, delta));

  const first = new Uint32Array(count + 1); // children of i are children[first[i] .. first[i + 1])
  for (let i = 1; i < count; i++) first[parent[i] + 1]++;
  for (let i = 0; i < count; i++) first[i + 1] += first[i];
  const next = first.slice();
  const children = new Uint32Array(Math.max(0, count - 1));
  for (let i = 1; i < count; i++) children[next[parent[i]]++] = i;
  for (let i = 0; i < count; i++) if (first[i + 1] - first[i] > 1) sortSiblings(children, first[i], first[i + 1], width);

  const frame = new Uint32Array(count);
  const self = new Float64Array(count);
  const baseSelf = nodes.baseSelf && new Float64Array(count);
  const place = next; // of a node in the new order; its first use is over
  const stack = new Uint32Array(count);
  let top = 1; // the root is on it
  for (let at = 0; top > 0; at++) {
    const node = stack[--top];
    place[node] = at;
    frame[at] = nodes.frame[node];
    self[at] = nodes.self[node];
    if (baseSelf) baseSelf[at] = nodes.baseSelf![node];
    delta[at] = at === 0 ? 0 : at - place[parent[node]];
    for (let i = first[node + 1]; i > first[node]; i--) stack[top++] = children[i - 1];
  }
  return { frame, parentDelta: delta, self, baseSelf };
}

/** focus (wanted 1) and ignore (wanted 0): stacks stay whole or go. */
function keepStacks(tree: Columns, matches: Uint8Array, wanted: 0 | 1): Columns {
  const { frame, parentDelta, self, baseSelf } = tree;
  const count = frame.length;
  const hasMatch = new Uint8Array(count);
  const stays = new Uint8Array(count); // the node or one below it keeps a value
  for (let i = 1; i < count; i++) hasMatch[i] = hasMatch[i - parentDelta[i]] | matches[frame[i]];
  for (let i = count - 1; i > 0; i--) {
    if (hasMatch[i] === wanted && (self[i] !== 0 || (baseSelf && baseSelf[i] !== 0))) stays[i] = 1;
    stays[i - parentDelta[i]] |= stays[i];
  }
  let kept = 1;
  for (let i = 1; i < count; i++) kept += stays[i];
  const place = new Uint32Array(count);
  const parent = new Uint32Array(kept);
  const nodes = {
    frame: new Uint32Array(kept),
    self: new Float64Array(kept),
    baseSelf: baseSelf && new Float64Array(kept),
  };
  nodes.frame[0] = frame[0];
  let at = 1;
  for (let i = 1; i < count; i++) {
    if (!stays[i]) continue;
    place[i] = at;
    parent[at] = place[i - parentDelta[i]];
    nodes.frame[at] = frame[i];
    if (hasMatch[i] === wanted) {
      nodes.self[at] = self[i];
      if (nodes.baseSelf) nodes.baseSelf[at] = baseSelf![i];
    }
    at++;
  }
  return arrange(parent, nodes);
}

/** hide (hidden 1) and show (hidden 0): frames go, what they held is their caller's. */
function dropFrames(tree: Columns, matches: Uint8Array, hidden: 0 | 1): Columns {
  const { frame, parentDelta, self, baseSelf } = tree;
  const builder = new Builder(frame.length, frame[0], baseSelf !== null);
  const place = new Uint32Array(frame.length);
  for (let i = 1; i < frame.length; i++) {
    const parent = place[i - parentDelta[i]];
    place[i] = matches[frame[i]] === hidden ? parent : builder.child(parent, frame[i]);
    // A stack that lost all its frames is left out, as in pprof.
    if (place[i] > 0) builder.add(place[i], self[i], baseSelf ? baseSelf[i] : 0);
  }
  return builder.finish();
}

function mergeCallees(tree: Columns, matches: Uint8Array): Columns {
  const { frame, parentDelta, self, baseSelf } = tree;
  const builder = new Builder(frame.length, frame[0], baseSelf !== null);
  const place = new Uint32Array(frame.length);
  const isMerged = new Uint8Array(frame.length); // all that the node calls belongs to its place
  builder.add(0, self[0], baseSelf ? baseSelf[0] : 0);
  for (let i = 1; i < frame.length; i++) {
    const parent = i - parentDelta[i];
    isMerged[i] = isMerged[parent] | matches[frame[i]];
    place[i] = isMerged[parent] ? place[parent] : builder.child(place[parent], frame[i]);
    builder.add(place[i], self[i], baseSelf ? baseSelf[i] : 0);
  }
  return builder.finish();
}

/**
 * Depths and ancestors of nodes that are added one by one. Besides its parent a node knows one ancestor
 * farther up, chosen so that any ancestor is found in a number of steps like the logarithm of depth.
 */
class Ancestors {
  private readonly depth: Uint32Array;
  private readonly parent: Uint32Array;
  private readonly jump: Uint32Array;

  constructor(maxNodes: number) {
    this.depth = new Uint32Array(maxNodes);
    this.parent = new Uint32Array(maxNodes);
    this.jump = new Uint32Array(maxNodes);
  }
  add(node: number, parent: number): void {
    const { depth, jump } = this;
    const far = jump[parent];
    this.parent[node] = parent;
    depth[node] = depth[parent] + 1;
    jump[node] = depth[parent] - depth[far] === depth[far] - depth[jump[far]] ? jump[far] : parent;
  }
  /** Is above an ancestor of node, or node itself? */
  has(node: number, above: number): boolean {
    const { depth, parent, jump } = this;
    while (depth[node] > depth[above]) node = depth[jump[node]] < depth[above] ? parent[node] : jump[node];
    return node === above;
  }
}

function collapseRecursion(tree: Columns, matches: Uint8Array): Columns {
  const { frame, parentDelta, self, baseSelf } = tree;
  const builder = new Builder(frame.length, frame[0], baseSelf !== null);
  const place = new Uint32Array(frame.length);
  const ancestors = new Ancestors(frame.length + 1);
  // The last node of a frame on the path; a frame stands on a path once, so no other need be asked.
  const open = new Uint32Array(matches.length);
  const path: { node: number; frame: number; before: number }[] = [];
  builder.add(0, self[0], baseSelf ? baseSelf[0] : 0);
  for (let i = 1; i < frame.length; i++) {
    while (path.length && path[path.length - 1].node !== i - parentDelta[i]) {
      const left = path.pop()!;
      open[left.frame] = left.before;
    }
    const parent = place[i - parentDelta[i]];
    const outer = matches[frame[i]] ? open[frame[i]] : 0;
    if (outer > 0 && ancestors.has(parent, outer)) place[i] = outer;
    else {
      const count = builder.count;
      place[i] = builder.child(parent, frame[i]);
      if (builder.count > count) ancestors.add(place[i], parent);
    }
    path.push({ node: i, frame: frame[i], before: open[frame[i]] });
    open[frame[i]] = place[i];
    builder.add(place[i], self[i], baseSelf ? baseSelf[i] : 0);
  }
  return builder.finish();
}

/** 1 for each frame whose name, file or binary the rule names. Throws an Error that can be shown. */
export function matchRule(frames: FrameTable, rule: Rule): Uint8Array {
  const matches = new Uint8Array(frames.count);
  if (rule.text === "") return matches.fill(1);
  const preset = rule.action === "only" ? presetFrames[rule.text] : undefined;
  const patterns = preset ? preset.hides.map((source) => new RegExp(source)) : [compileRule(rule.text)];
  const tests = patterns.map(boundedTest);
  const known = new Map<string, boolean>([["", false]]);
  const testOnce = (text: string) => {
    let found = known.get(text);
    if (found === undefined) known.set(text, (found = tests.some((test) => test(text))));
    return found;
  };
  for (let i = 0; i < frames.count; i++) {
    if (frames.flags(i) & FrameFlag.Other) continue;
    const isKernel = preset?.hidesKernel && (frames.flags(i) & FrameFlag.Kernel) !== 0;
    if (isKernel || testOnce(frames.name(i)) || testOnce(frames.file(i)) || testOnce(frames.mapping(i))) matches[i] = 1;
  }
  return matches;
}

export function applyRule(tree: Columns, frames: FrameTable, rule: Rule): Columns {
  const matches = matchRule(frames, rule);
  switch (rule.action) {
    case "focus":
      return keepStacks(tree, matches, 1);
    case "ignore":
      return keepStacks(tree, matches, 0);
    case "hide":
    case "only":
      return dropFrames(tree, matches, 1);
    case "show":
      return dropFrames(tree, matches, 0);
    case "merge":
      return mergeCallees(tree, matches);
    case "recursion":
      return collapseRecursion(tree, matches);
  }
}

/* ---- around one function ---- */

/** Nodes with one of the frames and none of them above, so that recursion counts once. */
function outermost(tree: Columns, matches: Uint8Array): { nodes: Uint32Array; isInside: Uint8Array } {
  const { frame, parentDelta } = tree;
  const isInside = new Uint8Array(frame.length);
  const found: number[] = [];
  for (let i = 1; i < frame.length; i++) {
    const above = isInside[i - parentDelta[i]];
    isInside[i] = above | matches[frame[i]];
    if (isInside[i] && !above) found.push(i);
  }
  return { nodes: Uint32Array.from(found), isInside };
}

/** What a function calls, from all its places: one child of the root, its callees below it. */
export function calleesOf(tree: Columns, frames: FrameTable, name: string): Columns {
  const { frame, parentDelta, self, baseSelf } = tree;
  const { matches, frameOf } = framesNamed(frames, name);
  const { isInside } = outermost(tree, matches);
  const builder = new Builder(frame.length + 1, frame[0], baseSelf !== null);
  const place = new Uint32Array(frame.length);
  for (let i = 1; i < frame.length; i++) {
    if (!isInside[i]) continue;
    const parent = i - parentDelta[i];
    place[i] = isInside[parent] ? builder.child(place[parent], frame[i]) : builder.child(0, frameOf);
    builder.add(place[i], self[i], baseSelf ? baseSelf[i] : 0);
  }
  return builder.finish();
}

/** Who calls a function: one child of the root, its callers as its children, theirs below them. */
export function callersOf(tree: Columns, frames: FrameTable, name: string): Columns {
  const { frame, parentDelta, self, baseSelf } = tree;
  const { matches, frameOf } = framesNamed(frames, name);
  const { nodes } = outermost(tree, matches);
  const cum = sumUp(self, parentDelta);
  const baseCum = baseSelf && sumUp(baseSelf, parentDelta);
  const builder = new Builder(nodes.length, frame[0], baseSelf !== null);
  for (const node of nodes) {
    let place = builder.child(0, frameOf);
    for (let at = node - parentDelta[node]; at > 0; at -= parentDelta[at]) place = builder.child(place, frame[at]);
    builder.add(place, cum[node], baseCum ? baseCum[node] : 0);
  }
  return builder.finish();
}

/**
 * All frames of that name (there are several by line or address), and the one that stands for them. Where there is none,
 * as with another sample type or grouping, the trees around it are bare roots.
 */
function framesNamed(frames: FrameTable, name: string): { matches: Uint8Array; frameOf: number } {
  const matches = new Uint8Array(frames.count);
  let frameOf = none;
  for (let i = 0; i < frames.count; i++) {
    if (frames.name(i) !== name) continue;
    matches[i] = 1;
    if (frameOf === none) frameOf = i;
  }
  return { matches, frameOf };
}
