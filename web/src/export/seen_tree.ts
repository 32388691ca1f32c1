/*
 * seen_tree: what is seen of a tree, and nothing else: after the rules, below the frame zoomed to, with
 * only the frames that stand in it, so that no export holds a name that was filtered away.
 */
import { parentOf, sumUp, type Flame, type FlameMetadata } from "../model/flame.ts";

export interface SeenFrame {
  name: string;
  file: string;
  line: number;
  mapping: string;
  address: bigint;
  /** FrameFlag of model/flame.ts. */
  flags: number;
}

export interface SeenTree {
  metadata: FlameMetadata;
  isCut: boolean;
  isNormalised: boolean;
  /** Of the whole profile; base is side a of a comparison. */
  total: number;
  baseTotal: number;
  /** Number 0 is the root's. */
  frames: SeenFrame[];
  /** Nodes in preorder; the root's parent is itself. */
  frame: Uint32Array;
  parent: Uint32Array;
  self: Float64Array;
  cum: Float64Array;
  baseSelf: Float64Array | null;
  baseCum: Float64Array | null;
}

/** The nodes that stay: the way to the frame zoomed to, and all below it. */
function seenNodes(flame: Flame, zoom: number): Uint32Array {
  const above: number[] = [];
  for (let at = zoom; at > 0;) above.push((at = parentOf(flame, at)));
  above.reverse();
  return Uint32Array.from({ length: above.length + flame.end[zoom] - zoom }, (_, i) =>
    i < above.length ? above[i] : zoom + i - above.length,
  );
}

class Frames {
  readonly list: SeenFrame[] = [];
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

export function seenTree(flame: Flame, zoom: number): SeenTree {
  const nodes = seenNodes(flame, zoom);
  const placeOf = new Map<number, number>(); // only of the nodes above zoom; below it places run on
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

/** Nodes that hold a value themselves, each the leaf of one stack; the root is no stack. */
export function forEachStack(tree: SeenTree, use: (node: number) => void): void {
  for (let i = 1; i < tree.frame.length; i++)
    if (tree.self[i] !== 0 || (tree.baseSelf && tree.baseSelf[i] !== 0)) use(i);
}
