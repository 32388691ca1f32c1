/*
 * call_graph: computes a graph of functions and their calls from a tree, small enough to be drawn,
 * like pprof.
 *
 * Numbers do not depend on the functions that are left out: the values of a function are those of
 * the table, and an edge counts each stack with the call once. An edge may skip functions that are
 * left out; `direct` is the part without such functions. A call of a function by itself is not an
 * edge. Names are not needed, so this runs in graph_worker.ts, which has only the tree. It takes
 * three passes and no object per node: 0.3 s of CPU for a million nodes, cold, on a busy machine
 * with two cores.
 */
import { sizeOf, type Pair } from "./call_pair.ts";
import { sumUp, type Columns } from "../tree/flame.ts";

/** Maps each frame to its function; functions of `isOther` are never drawn. */
export interface FrameGroups {
  groupOf: Uint32Array;
  isOther: Uint8Array;
}

export interface CallNode {
  group: number;
  /** The function's first node in the tree. */
  node: number;
  flat: Pair;
  cum: Pair;
}

export interface CallEdge {
  /** Indexes of nodes. */
  from: number;
  to: number;
  sum: Pair;
  direct: Pair;
  /** A part of it is direct, even if that part sums to 0. */
  isDirect: boolean;
}

export interface CallGraph {
  /** Largest first. */
  nodes: CallNode[];
  edges: CallEdge[];
  functionCount: number;
  /** The number of edges between the nodes, including those too small to be drawn. */
  edgeCount: number;
  /** The self values of the nodes as a share of those of all functions. */
  share: number;
  /**
   * If there is space for more functions: the functions that are left out have less than this
   * value; otherwise 0.
   */
  least: number;
}

/** Edges below this share of the total are left out, as in pprof. */
const minEdgeShare = 0.001;
const edgesPerNode = 3;
/**
 * Functions below this share of the largest one, divided by the number of functions wanted, are
 * left out. As in pprof, that is 1 in 200 for 60 functions. They would fill the picture without
 * adding information.
 */
const minShare = 0.3;

interface GroupSums {
  flat: Float64Array;
  cum: Float64Array;
  baseFlat: Float64Array;
  baseCum: Float64Array;
  /** A node of each function, 0 for none. */
  node: Uint32Array;
}

interface SummedTree extends Columns {
  nodeSum: Float64Array;
  nodeBase: Float64Array | null;
  depth: Uint32Array;
  rowCount: number;
}

function sumTree(tree: Columns): SummedTree {
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

function sumGroups(tree: SummedTree, groupOf: Uint32Array, groupCount: number): GroupSums {
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

/**
 * Chooses half of the functions by self value (in a diff, by its change) and half by total, except
 * those that are too small. Among equal functions, callers come first.
 */
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

/** The edges between chosen functions, each counted once on a path. */
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
  tree: SummedTree,
  groupOf: Uint32Array,
  place: Uint32Array,
  count: number,
): CallEdge[] {
  const { frame, depth, nodeSum, nodeBase, rowCount } = tree;
  const whole = new EdgeSums(count * count);
  const direct = new EdgeSums(count * count);
  // the last chosen function down to each depth
  const near = new Uint32Array(rowCount).fill(nothing);
  const isFar = new Uint8Array(rowCount); // other functions are between it and that depth
  // the edge that the node at a depth added
  const entered = new Uint32Array(rowCount).fill(nothing);
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

/**
 * The heaviest edges and the heaviest caller of each function; edges that skip functions are
 * removed if a path through drawn functions exists.
 */
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
  const tree = sumTree(columns);
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
