/*
 * visible_tree: the visible part of a tree: after the rules and below the zoomed frame. It contains
 * only the frames of its nodes, so that no export contains a name that was filtered out.
 */
import { parentOf, sumUp, type Flame, type FlameMetadata } from "../model/tree/flame.ts";

export interface VisibleFrame {
  name: string;
  file: string;
  line: number;
  mapping: string;
  address: bigint;
  /** FrameFlag of model/tree/flame.ts. */
  flags: number;
}

export interface VisibleTree {
  metadata: FlameMetadata;
  isCut: boolean;
  isNormalised: boolean;
  /** Totals of the whole profile; base is side a of a comparison. */
  total: number;
  baseTotal: number;
  /** Frame 0 is the root's. */
  frames: VisibleFrame[];
  /** Nodes in preorder; the root is its own parent. */
  frame: Uint32Array;
  parent: Uint32Array;
  self: Float64Array;
  cum: Float64Array;
  baseSelf: Float64Array | null;
  baseCum: Float64Array | null;
}

/** The visible nodes: the path to the zoomed frame and everything below it. */
function visibleNodes(flame: Flame, zoom: number): Uint32Array {
  const above: number[] = [];
  for (let at = zoom; at > 0;) above.push((at = parentOf(flame, at)));
  above.reverse();
  return Uint32Array.from({ length: above.length + flame.end[zoom] - zoom }, (_, i) =>
    i < above.length ? above[i] : zoom + i - above.length,
  );
}

class Frames {
  readonly list: VisibleFrame[] = [];
  private readonly placeOf: Int32Array;
  constructor(private readonly flame: Flame) {
    this.placeOf = new Int32Array(flame.frames.count).fill(-1);
  }
  place(frame: number): number {
    if (this.placeOf[frame] < 0) {
      const { frames } = this.flame;
      const [name, file, mapping] = [frames.name(frame), frames.file(frame), frames.mapping(frame)];
      const made = {
        name,
        file,
        mapping,
        line: frames.line(frame),
        address: frames.address(frame),
        flags: frames.flags(frame),
      };
      this.placeOf[frame] = this.list.push(made) - 1;
    }
    return this.placeOf[frame];
  }
}

/** The nodes above the zoomed one have only its value, without that of their other callees. */
export function visibleTree(flame: Flame, zoom: number): VisibleTree {
  const nodes = visibleNodes(flame, zoom);
  // only the nodes above the zoomed one; below it the positions are consecutive
  const placeOf = new Map<number, number>();
  const firstBelow = nodes.length - (flame.end[zoom] - zoom);
  const frames = new Frames(flame);
  const count = nodes.length;
  const [frame, parent, delta] = [
    new Uint32Array(count),
    new Uint32Array(count),
    new Uint32Array(count),
  ];
  const self = new Float64Array(count);
  const baseSelf = flame.baseSelf && new Float64Array(count);
  nodes.forEach((node, i) => {
    frame[i] = frames.place(flame.frame[node]);
    const above = parentOf(flame, node);
    if (i > 0) parent[i] = above >= zoom ? above - zoom + firstBelow : placeOf.get(above)!;
    delta[i] = i - parent[i];
    if (i < firstBelow) placeOf.set(node, i);
    else {
      self[i] = flame.self[node];
      if (baseSelf) baseSelf[i] = flame.baseSelf![node];
    }
  });
  return {
    metadata: flame.metadata,
    isCut: flame.isCut,
    isNormalised: flame.metadata.normalised === true,
    total: flame.total,
    baseTotal: flame.baseTotal,
    frames: frames.list,
    frame,
    parent,
    self,
    baseSelf,
    cum: sumUp(self, delta),
    baseCum: baseSelf && sumUp(baseSelf, delta),
  };
}

/**
 * Calls `use` for the nodes with a self value, each the leaf of one stack; the root is not a stack.
 */
export function forEachStack(tree: VisibleTree, use: (node: number) => void): void {
  for (let i = 1; i < tree.frame.length; i++)
    if (tree.self[i] !== 0 || (tree.baseSelf && tree.baseSelf[i] !== 0)) use(i);
}
