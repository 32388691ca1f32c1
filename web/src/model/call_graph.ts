/*
 * call_graph: functions and who calls whom, from a tree, few enough to be drawn: what pprof draws.
 *
 * Numbers are whole whatever is left out: a function's are those of the table, an edge holds each stack
 * in which one calls the other, once. Where functions in between are left out, the edge goes over them:
 * `direct` is what goes without. A function's call of itself is no edge. Names are not looked at, so that
 * this can run where only the tree is (graph_worker.ts); three passes, no object per node: 0.3 s of
 * processor time for a million nodes, cold, on a busy machine of two cores.
 */
import { sizeOf, type Pair } from "./call_pair.ts";
import { sumUp, type Columns } from "./flame.ts";

/** Which function each frame is of; those of `isOther` are never drawn. */
export interface FrameGroups {
  groupOf: Uint32Array;
  isOther: Uint8Array;
}

export interface CallNode {
  group: number;
  /** The first node of the tree that is of it. */
  node: number;
  flat: Pair;
  cum: Pair;
}

export interface CallEdge {
  /** Positions in nodes. */
  from: number;
  to: number;
  sum: Pair;
  direct: Pair;
  /** Some of it is direct, even if it adds up to 0. */
  isDirect: boolean;
}

export interface CallGraph {
  /** The most first. */
  nodes: CallNode[];
  edges: CallEdge[];
  functionCount: number;
  /** Of the edges between the nodes, those that are too small to be drawn too. */
  edgeCount: number;
  /** What the nodes hold themselves, as a share of what all functions do. */
  share: number;
  /** What is left out holds less than this, where there would be room for more functions; else 0. */
  least: number;
}

/** Edges that hold less than this share of everything are left out, as in pprof. */
const minEdgeShare = 0.001;
const edgesPerNode = 3;
/**
 * Functions that hold less than this share, divided by how many are wanted, of what the largest holds: as in pprof, 1 in 200 where
 * 60 are. They would fill the picture and say nothing.
 */
const minShare = 0.3;

interface GroupSums {
  flat: Float64Array;
  cum: Float64Array;
  baseFlat: Float64Array;
  baseCum: Float64Array;
  /** A node of each, 0 for none. */
  node: Uint32Array;
}

interface Walked extends Columns {
  nodeSum: Float64Array;
  nodeBase: Float64Array | null;
  depth: Uint32Array;
  rowCount: number;
}

function walk(tree: Columns): Walked {
  const { parentDelta, self, baseSelf } = tree;
  const depth = new Uint32Array(self.length);
  let rowCount = 1;
  for (let i = 1; i < depth.length; i++) {
    depth[i] = depth[i - parentDelta[i]] + 1;
    if (depth[i] >= rowCount) rowCount = depth[i] + 1;
  }
  return {
    ...tree,
    depth,
    rowCount,
    nodeSum: sumUp(self, parentDelta),
    nodeBase: baseSelf && sumUp(baseSelf, parentDelta),
  };
}

function sumGroups(tree: Walked, groupOf: Uint32Array, groupCount: number): GroupSums {
  const { frame, self, baseSelf, depth, nodeSum, nodeBase } = tree;
  const make = () => new Float64Array(groupCount);
  const sums: GroupSums = {
    flat: make(),
    cum: make(),
    baseFlat: make(),
    baseCum: make(),
    node: new Uint32Array(groupCount),
  };
  const path = new Uint32Array(tree.rowCount); // the group at each depth of the current path
  const openCount = new Uint32Array(groupCount);
  let top = 0;
  for (let i = 1; i < frame.length; i++) {
    for (; top >= depth[i]; top--) openCount[path[top]]--;
    const group = groupOf[frame[i]];
    if (sums.node[group] === 0) sums.node[group] = i;
    sums.flat[group] += self[i];
    if (baseSelf) sums.baseFlat[group] += baseSelf[i];
    if (openCount[group]++ === 0) {
      sums.cum[group] += nodeSum[i];
      if (nodeBase) sums.baseCum[group] += nodeBase[i];
    }
    path[(top = depth[i])] = group;
  }
  return sums;
}

/** Half of them for what they hold themselves (how that changed, in a diff), half for what they hold in all, as far as that is not too little; of equal ones, callers. */
function choose(sums: GroupSums, groups: readonly number[], most: number): number[] {
  const flat = (group: number) => Math.abs(sums.flat[group] - sums.baseFlat[group]);
  const cum = (group: number) => sizeOf([sums.cum[group], sums.baseCum[group]]);
  const byFlat = groups
    .filter((group) => flat(group) > 0)
    .sort((a, b) => flat(b) - flat(a) || cum(b) - cum(a) || sums.node[a] - sums.node[b]);
  const byCum = groups
    .slice()
    .sort((a, b) => cum(b) - cum(a) || flat(b) - flat(a) || sums.node[a] - sums.node[b]);
  const isEnough = (held: (group: number) => number, all: readonly number[]) => (group: number) =>
    held(group) * most >= held(all[0]) * minShare;
  const chosen = new Set(byFlat.slice(0, most >> 1).filter(isEnough(flat, byFlat)));
  for (const group of byCum.filter(isEnough(cum, byCum))) if (chosen.size < most) chosen.add(group);
  return byCum.filter((group) => chosen.has(group));
}

/** Edges between chosen groups, each counted once on a path. */
class EdgeSums {
  readonly sum: Float64Array;
  readonly base: Float64Array;
  readonly isThere: Uint8Array;
  private readonly openCount: Uint32Array;

  constructor(count: number) {
    this.sum = new Float64Array(count);
    this.base = new Float64Array(count);
    this.isThere = new Uint8Array(count);
    this.openCount = new Uint32Array(count);
  }
  enter(edge: number, value: number, base: number): void {
    if (this.openCount[edge]++ > 0) return;
    this.isThere[edge] = 1;
    this.sum[edge] += value;
    this.base[edge] += base;
  }
  leave(edge: number): void {
    this.openCount[edge]--;
  }
}

const nothing = 0xffffffff;

function sumEdges(
  tree: Walked,
  groupOf: Uint32Array,
  place: Uint32Array,
  count: number,
): CallEdge[] {
  const { frame, depth, nodeSum, nodeBase, rowCount } = tree;
  const whole = new EdgeSums(count * count);
  const direct = new EdgeSums(count * count);
  const near = new Uint32Array(rowCount).fill(nothing); // the last chosen one down to each depth
  const isFar = new Uint8Array(rowCount); // others stand between it and that depth
  const entered = new Uint32Array(rowCount).fill(nothing); // the edge that the node at a depth made
  const enteredDirect = new Uint32Array(rowCount).fill(nothing);
  let top = 0;
  for (let i = 1; i < frame.length; i++) {
    const row = depth[i];
    for (; top >= row; top--) {
      if (entered[top] !== nothing) whole.leave(entered[top]);
      if (enteredDirect[top] !== nothing) direct.leave(enteredDirect[top]);
    }
    top = row;
    entered[row] = enteredDirect[row] = nothing;
    const to = place[groupOf[frame[i]]];
    const from = near[row - 1];
    near[row] = to === nothing ? from : to;
    isFar[row] = to === nothing ? 1 : 0;
    if (to === nothing || from === nothing || from === to) continue;
    const edge = from * count + to;
    const base = nodeBase ? nodeBase[i] : 0;
    whole.enter((entered[row] = edge), nodeSum[i], base);
    if (!isFar[row - 1]) direct.enter((enteredDirect[row] = edge), nodeSum[i], base);
  }
  const edges: CallEdge[] = [];
  for (let edge = 0; edge < count * count; edge++) {
    if (!whole.isThere[edge]) continue;
    edges.push({
      from: Math.floor(edge / count),
      to: edge % count,
      sum: [whole.sum[edge], whole.base[edge]],
      direct: [direct.sum[edge], direct.base[edge]],
      isDirect: direct.isThere[edge] !== 0,
    });
  }
  return edges.sort((a, b) => sizeOf(b.sum) - sizeOf(a.sum) || a.from - b.from || a.to - b.to);
}

function isReached(from: number, to: number, callees: readonly Set<number>[]): boolean {
  const seen = new Set([from]);
  for (const node of seen) {
    if (node === to) return true;
    for (const next of callees[node]) seen.add(next);
  }
  return false;
}

/** The heaviest edges, and each function's heaviest caller; no way round where functions between are drawn. */
function prune(edges: readonly CallEdge[], nodeCount: number, total: number): CallEdge[] {
  const hasCaller = new Uint8Array(nodeCount);
  const kept = edges.filter((edge, i) => {
    const isFirst = !hasCaller[edge.to];
    hasCaller[edge.to] = 1;
    return isFirst || (i < edgesPerNode * nodeCount && sizeOf(edge.sum) >= minEdgeShare * total);
  });
  const callees = Array.from({ length: nodeCount }, () => new Set<number>());
  for (const { from, to } of kept) callees[from].add(to);
  for (let i = kept.length - 1; i >= 0; i--) {
    const { from, to, isDirect } = kept[i];
    if (isDirect) continue;
    callees[from].delete(to);
    if (isReached(from, to, callees)) kept.splice(i, 1);
    else callees[from].add(to);
  }
  return kept;
}

export function callGraph(
  columns: Columns,
  { groupOf, isOther }: FrameGroups,
  mostNodes: number,
): CallGraph {
  const tree = walk(columns);
  const groupCount = isOther.length;
  const sums = sumGroups(tree, groupOf, groupCount);
  const groups: number[] = [];
  for (let group = 0; group < groupCount; group++)
    if (sums.node[group] > 0 && !isOther[group]) groups.push(group);
  const chosen = choose(sums, groups, mostNodes);
  const place = new Uint32Array(groupCount).fill(nothing);
  chosen.forEach((group, i) => (place[group] = i));
  const edges = sumEdges(tree, groupOf, place, chosen.length);
  const own = (all: readonly number[]) =>
    all.reduce(
      (sum, group) => sum + Math.abs(sums.flat[group]) + Math.abs(sums.baseFlat[group]),
      0,
    );
  let everything = 0;
  for (let group = 0; group < groupCount; group++)
    everything += Math.abs(sums.flat[group]) + Math.abs(sums.baseFlat[group]);
  const total = Math.max(
    ...chosen.map((group) => sizeOf([sums.cum[group], sums.baseCum[group]])),
    0,
  );
  return {
    nodes: chosen.map((group) => ({
      group,
      node: sums.node[group],
      flat: [sums.flat[group], sums.baseFlat[group]],
      cum: [sums.cum[group], sums.baseCum[group]],
    })),
    edges: prune(edges, chosen.length, total),
    functionCount: groups.length,
    edgeCount: edges.length,
    share: everything === 0 ? 1 : own(chosen) / everything,
    least: chosen.length < mostNodes ? (minShare * total) / mostNodes : 0,
  };
}
