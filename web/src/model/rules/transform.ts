/*
 * transform: applies the rules of chain.ts to a tree, and computes the trees of callers and callees
 * of one function.
 *
 * Everything works on columns in loops without recursion, so the cost does not depend on the depth
 * (callers cost places times depth), and on the whole tree, not on the drawn boxes. In the result,
 * siblings with the same frame are one node, widest first. The numbers equal those of the server's
 * filters: tests/browser/filter.mjs compares them.
 */
import type { Rule } from "./chain.ts";
import {
  FrameFlag,
  hasNegative,
  sumUp,
  type Columns,
  type Derived,
  type FrameTable,
  type Numbers,
} from "../tree/flame.ts";
import { presetFrames } from "./presets.ts";
import { boundedTest, compileRule } from "../search/search.ts";
import { arrange, Builder, Siblings, Stack } from "../tree/tree_builder.ts";

const none = 0xffffffff;

/** An input tree; cum and end save work if they are known. */
type Tree = Columns & Partial<Pick<Derived, "cum" | "end">>;

const numbersLike = (numbers: Numbers, count: number): Numbers =>
  numbers instanceof Uint16Array ? new Uint16Array(count) : new Uint32Array(count);

/** One past the last node of each subtree. */
function endsOf(parentDelta: Uint32Array): Uint32Array {
  const end = new Uint32Array(parentDelta.length);
  for (let i = end.length - 1; i > 0; i--) {
    if (end[i] === 0) end[i] = i + 1;
    const parent = i - parentDelta[i];
    if (end[parent] < end[i]) end[parent] = end[i];
  }
  end[0] = end.length;
  return end;
}

/** focus (wanted 1) and ignore (wanted 0): whole stacks stay or go. */
function keepStacks(tree: Tree, matches: Uint8Array, wanted: 0 | 1): Columns {
  const { frame, parentDelta, self, baseSelf } = tree;
  const count = frame.length;
  const end = tree.end ?? endsOf(parentDelta);
  const hasMatch = new Uint8Array(count); // the node or an ancestor matches
  const width = new Float64Array(count); // widths of what stays; nodes without any are dropped
  for (let i = 1; i < count; i++) {
    hasMatch[i] = hasMatch[i - parentDelta[i]] | matches[frame[i]];
    if (hasMatch[i] === wanted)
      width[i] = Math.max(Math.abs(self[i]), baseSelf ? Math.abs(baseSelf[i]) : 0);
  }
  let kept = 1;
  for (let i = count - 1; i > 0; i--) {
    if (width[i] > 0) kept++;
    width[i - parentDelta[i]] += width[i];
  }
  const made: Columns = {
    frame: numbersLike(frame, kept),
    parentDelta: new Uint32Array(kept),
    self: new Float64Array(kept),
    baseSelf: baseSelf && new Float64Array(kept),
  };
  const children = new Siblings(width);
  const nodes = new Stack();
  const parents = new Stack();
  nodes.push(0);
  parents.push(0);
  for (let at = 0; nodes.size > 0; at++) {
    const node = nodes.pop();
    made.frame[at] = frame[node];
    made.parentDelta[at] = at - parents.pop();
    if (node > 0 && hasMatch[node] === wanted) {
      made.self[at] = self[node];
      if (made.baseSelf) made.baseSelf[at] = baseSelf![node];
    }
    children.count = 0;
    for (let child = node + 1; child < end[node]; child = end[child])
      if (width[child] > 0) children.add(child);
    if (children.count > 1) children.sort();
    for (let slot = children.count - 1; slot >= 0; slot--) {
      nodes.push(children.node[slot]);
      parents.push(at);
    }
  }
  return made;
}

/** Views of arrays that are slightly too long, copies of those that are much too long. */
function cutTo(count: number, columns: Columns): Columns {
  const isNear = columns.frame.length - count <= columns.frame.length / 8;
  const cut = <T extends Numbers | Float64Array>(array: T): T =>
    (isNear ? array.subarray(0, count) : array.slice(0, count)) as T;
  const { frame, parentDelta, self, baseSelf } = columns;
  return {
    frame: cut(frame),
    parentDelta: cut(parentDelta),
    self: cut(self),
    baseSelf: baseSelf && cut(baseSelf),
  };
}

function countFrames(frame: Numbers, matches: Uint8Array, wanted: 0 | 1): number {
  let count = 0;
  for (let i = 1; i < frame.length; i++) if (matches[frame[i]] === wanted) count++;
  return count;
}

/**
 * hide (hidden 1) and show (hidden 0): removes frames; their values go to their callers.
 *
 * A node of the new tree represents a chain of nodes of the old one: one or several of its frame,
 * and the hidden nodes directly below them. Its children are the children of all of these, grouped
 * by frame. If values are never negative and have one side, the widths are known at once, and the
 * new tree is written in its final order.
 */
function dropFrames(tree: Tree, matches: Uint8Array, hidden: 0 | 1): Columns {
  const { frame, parentDelta, self, baseSelf } = tree;
  const isPlain = !baseSelf && !hasNegative(self);
  const cum = tree.cum ?? sumUp(self, parentDelta);
  const end = tree.end ?? endsOf(parentDelta);
  const capacity = frame.length - countFrames(frame, matches, hidden);
  const made: Columns = {
    frame: numbersLike(frame, capacity),
    parentDelta: new Uint32Array(capacity),
    self: new Float64Array(capacity),
    baseSelf: baseSelf && new Float64Array(capacity),
  };
  const next = new Uint32Array(frame.length); // the next node of the chain; 0 ends it
  const children = new Siblings(cum);
  const slotOf = new Uint32Array(matches.length); // the slot of a frame among the current children,
  const slotFor = new Uint32Array(matches.length).fill(none); // valid if set for the current node
  const firsts = new Stack();
  const parents = new Stack();
  firsts.push(0);
  parents.push(0);
  let at = 0;
  for (; firsts.size > 0; at++) {
    const first = firsts.pop();
    let own = 0;
    let base = 0;
    children.count = 0;
    for (let node = first; ; node = next[node]) {
      own += self[node];
      if (baseSelf) base += baseSelf[node];
      for (let child = node + 1; child < end[node]; child = end[child]) {
        const of = frame[child];
        if (matches[of] === hidden) {
          next[child] = next[node];
          next[node] = child;
        } else if (slotFor[of] === at) {
          const slot = slotOf[of];
          next[children.last[slot]] = child;
          children.join(slot, child);
        } else {
          slotFor[of] = at;
          slotOf[of] = children.add(child);
        }
      }
      if (next[node] === 0) break;
    }
    made.frame[at] = frame[first];
    made.parentDelta[at] = at - parents.pop();
    // A stack that lost all its frames is dropped, as in pprof.
    if (at > 0) {
      made.self[at] = own;
      if (made.baseSelf) made.baseSelf[at] = base;
    }
    if (isPlain && children.count > 1) children.sort();
    for (let slot = children.count - 1; slot >= 0; slot--) {
      firsts.push(children.node[slot]);
      parents.push(at);
    }
  }
  const whole = cutTo(at, made);
  return isPlain ? whole : arrange(whole);
}

function mergeCallees(tree: Columns, matches: Uint8Array): Columns {
  const { frame, parentDelta, self, baseSelf } = tree;
  const builder = new Builder(frame.length, frame[0], baseSelf !== null);
  const place = new Uint32Array(frame.length);
  const isMerged = new Uint8Array(frame.length); // all callees of the node belong to its new node
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
 * Depths and ancestors of nodes that are added one by one. Besides its parent, a node stores one
 * ancestor further up, chosen so that any ancestor is found in a number of steps logarithmic in the
 * depth.
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
  /** Whether `above` is node itself or one of its ancestors. */
  has(node: number, above: number): boolean {
    const { depth, parent, jump } = this;
    while (depth[node] > depth[above])
      node = depth[jump[node]] < depth[above] ? parent[node] : jump[node];
    return node === above;
  }
}

function collapseRecursion(tree: Columns, matches: Uint8Array): Columns {
  const { frame, parentDelta, self, baseSelf } = tree;
  const builder = new Builder(frame.length, frame[0], baseSelf !== null);
  const place = new Uint32Array(frame.length);
  const ancestors = new Ancestors(frame.length + 1);
  // The last node of a frame on the path. A path contains a frame only once, so the last one is
  // sufficient.
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
    if (outer > 0 && ancestors.has(parent, outer)) builder.share((place[i] = outer));
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

/**
 * 1 for each frame whose name, file or binary matches the rule. Throws an Error whose message can
 * be shown.
 */
export function matchRule(frames: FrameTable, rule: Rule): Uint8Array {
  const matches = new Uint8Array(frames.count);
  if (rule.text === "") return matches.fill(1);
  const preset = rule.action === "only" ? presetFrames[rule.text] : undefined;
  const patterns = preset ? preset.hides.map(compileRule) : [compileRule(rule.text)];
  const tests = patterns.map(boundedTest);
  const known = new Uint8Array(frames.stringCount); // 1: does not match, 2: matches
  const testOnce = (id: number) => {
    if (known[id] === 0) {
      const text = frames.string(id);
      known[id] = text !== "" && tests.some((test) => test(text)) ? 2 : 1;
    }
    return known[id] === 2;
  };
  const { nameId, fileId, mappingId } = frames;
  for (let i = 0; i < frames.count; i++) {
    const flags = frames.flags(i);
    if (flags & FrameFlag.Other) continue;
    if (flags & FrameFlag.Label) {
      // A label value is not a function. As on the server, it always stays and never decides
      // whether a stack matches.
      matches[i] = Number(rule.action === "show");
      continue;
    }
    const isKernel = preset?.hidesKernel && (flags & FrameFlag.Kernel) !== 0;
    if (
      isKernel ||
      testOnce(nameId[i]) ||
      (fileId && testOnce(fileId[i])) ||
      (mappingId && testOnce(mappingId[i]))
    )
      matches[i] = 1;
  }
  return matches;
}

export function applyRule(tree: Tree, frames: FrameTable, rule: Rule): Columns {
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

/** Nodes with one of the frames and without such an ancestor, so that recursion counts once. */
function outermost(
  tree: Columns,
  matches: Uint8Array,
): { nodes: Uint32Array; isInside: Uint8Array } {
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

/** The callees of a function, from all its places, below one child of the root. */
export function calleesOf(tree: Columns, frames: FrameTable, name: string): Columns {
  const { frame, parentDelta, self, baseSelf } = tree;
  const { matches, frameOf } = framesNamed(frames, name);
  const { isInside } = outermost(tree, matches);
  const builder = new Builder(frame.length + 1, frame[0], baseSelf !== null);
  const place = new Uint32Array(frame.length);
  for (let i = 1; i < frame.length; i++) {
    if (!isInside[i]) continue;
    const parent = i - parentDelta[i];
    place[i] = isInside[parent]
      ? builder.child(place[parent], frame[i])
      : builder.child(0, frameOf);
    builder.add(place[i], self[i], baseSelf ? baseSelf[i] : 0);
  }
  return builder.finish();
}

/**
 * The callers of a function below one child of the root: its callers as children, their callers
 * below them.
 */
export function callersOf(tree: Columns, frames: FrameTable, name: string): Columns {
  const { frame, parentDelta, self, baseSelf } = tree;
  const { matches, frameOf } = framesNamed(frames, name);
  const { nodes } = outermost(tree, matches);
  const cum = sumUp(self, parentDelta);
  const baseCum = baseSelf && sumUp(baseSelf, parentDelta);
  const builder = new Builder(nodes.length, frame[0], baseSelf !== null);
  for (const node of nodes) {
    let place = builder.child(0, frameOf);
    for (let at = node - parentDelta[node]; at > 0; at -= parentDelta[at])
      place = builder.child(place, frame[at]);
    builder.add(place, cum[node], baseCum ? baseCum[node] : 0);
  }
  return builder.finish();
}

/**
 * All frames of that name (several by line or address), and the frame that represents them. If
 * there are none, as with another sample type or grouping, the trees consist of a root.
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
