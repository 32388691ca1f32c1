/*
 * tree_builder: builds a tree node by node and arranges it in the order of the binary form:
 * preorder, the widest sibling first. It works in loops without recursion on columns, for a million
 * nodes and any depth.
 */
import { hasNegative, ownWidth, sumUp, type Columns } from "./flame.ts";

/** The maximum size of a tree; callers of callers can number places times depth. */
const maxNodes = 1 << 24;

/** Children by (parent, frame): open addressing, at most half full; 0 is an empty slot. */
class ChildTable {
  private slots = new Uint32Array(1024);
  private count = 0;

  constructor(
    public parent: Uint32Array,
    public frame: Uint32Array,
  ) {}

  /** The slot of the child, or the empty slot where it belongs. */
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
  find(parent: number, frame: number): number {
    return this.slots[this.slotOf(parent, frame)];
  }
  add(node: number): void {
    if (2 * ++this.count > this.slots.length) {
      const old = this.slots;
      this.slots = new Uint32Array(2 * old.length);
      for (const other of old)
        if (other !== 0) this.slots[this.slotOf(this.parent[other], this.frame[other])] = other;
    }
    this.slots[this.slotOf(this.parent[node], this.frame[node])] = node;
  }
}

/**
 * A tree under construction. Node 0 is the root, and a parent has a lower number than its children.
 * Most nodes of the new tree represent one node of the old one; its children have different frames,
 * so they are added without a look-up. If a node represents several nodes of the old tree (it is
 * shared, as is the root), its children are looked up by frame. A node that child() returns a
 * second time is shared from then on.
 */
export class Builder {
  count = 1;
  private frame: Uint32Array;
  private parent: Uint32Array;
  private self: Float64Array;
  private base: Float64Array | null;
  private isShared: Uint8Array;
  /** Lists of children, the last one first; 0 ends them. */
  private lastChild: Uint32Array;
  private before: Uint32Array;
  private readonly table: ChildTable;

  /** Grows beyond expectedNodes if necessary. */
  constructor(expectedNodes: number, rootFrame: number, hasBase: boolean) {
    const size = Math.max(512, expectedNodes);
    this.frame = new Uint32Array(size);
    this.parent = new Uint32Array(size);
    this.self = new Float64Array(size);
    this.base = hasBase ? new Float64Array(size) : null;
    this.isShared = new Uint8Array(size);
    this.lastChild = new Uint32Array(size);
    this.before = new Uint32Array(size);
    this.frame[0] = rootFrame;
    this.table = new ChildTable(this.parent, this.frame);
    this.share(0); // callers may return to the root for every stack
  }

  private grow(): void {
    const size = this.frame.length * 2;
    if (size > maxNodes)
      throw new Error("This view would have too many boxes. Filter the profile first.");
    this.table.frame = this.frame = doubled(this.frame, new Uint32Array(size));
    this.table.parent = this.parent = doubled(this.parent, new Uint32Array(size));
    this.self = doubled(this.self, new Float64Array(size));
    this.base = this.base && doubled(this.base, new Float64Array(size));
    this.isShared = doubled(this.isShared, new Uint8Array(size));
    this.lastChild = doubled(this.lastChild, new Uint32Array(size));
    this.before = doubled(this.before, new Uint32Array(size));
  }

  /**
   * Marks a node as shared: it represents one more node of the old tree, whose children may have
   * the same frames as its own.
   */
  share(node: number): void {
    if (this.isShared[node]) return;
    this.isShared[node] = 1;
    for (let child = this.lastChild[node]; child !== 0; child = this.before[child])
      this.table.add(child);
  }

  /** The child of parent with that frame, created if there is none. */
  child(parent: number, frame: number): number {
    const isShared = this.isShared[parent] !== 0;
    if (isShared) {
      const found = this.table.find(parent, frame);
      if (found !== 0) {
        this.share(found);
        return found;
      }
    }
    if (this.count === this.frame.length) this.grow();
    const node = this.count++;
    this.parent[node] = parent;
    this.frame[node] = frame;
    this.before[node] = this.lastChild[parent];
    this.lastChild[parent] = node;
    if (isShared) this.table.add(node);
    return node;
  }

  add(node: number, self: number, base: number): void {
    this.self[node] += self;
    if (this.base) this.base[node] += base;
  }

  finish(): Columns {
    const { count } = this;
    const parentDelta = new Uint32Array(count);
    for (let i = 1; i < count; i++) parentDelta[i] = i - this.parent[i];
    const { frame, self, base } = this;
    return arrange({
      frame: frame.subarray(0, count),
      parentDelta,
      self: self.subarray(0, count),
      baseSelf: base && base.subarray(0, count),
    });
  }
}

/** The children of one node while they are sorted. */
export class Siblings {
  count = 0;
  node = new Uint32Array(64);
  width = new Float64Array(64);
  /** For callers that combine several nodes: the last of those that the child represents. */
  last = new Uint32Array(64);

  /**
   * widthOf: the width of each node. add and join read it from here, because a fraction as a
   * parameter would be allocated as an object, at each of a million calls.
   */
  constructor(private readonly widthOf: Float64Array) {}

  /** Returns the child's slot. */
  add(node: number): number {
    const slot = this.count++;
    if (slot === this.node.length) {
      this.node = doubled(this.node, new Uint32Array(2 * slot));
      this.width = doubled(this.width, new Float64Array(2 * slot));
      this.last = doubled(this.last, new Uint32Array(2 * slot));
    }
    this.node[slot] = this.last[slot] = node;
    this.width[slot] = this.widthOf[node];
    return slot;
  }
  /** Adds one more node that the child represents. */
  join(slot: number, node: number): void {
    this.last[slot] = node;
    this.width[slot] += this.widthOf[node];
  }

  /** By decreasing width; stable. `last` is invalid afterwards. */
  sort(): void {
    const { count, node, width } = this;
    let sorted = 1;
    while (sorted < count && width[sorted - 1] >= width[sorted]) sorted++;
    // For few children, the insertion sort below is faster and allocates nothing.
    if (count - sorted > 24) {
      const slots = Array.from({ length: count }, (_, slot) => slot).sort(
        (a, b) => width[b] - width[a],
      );
      node.set(slots.map((slot) => node[slot]));
      return;
    }
    for (let i = sorted; i < count; i++) {
      const child = node[i];
      const value = width[i];
      let at = i;
      for (; at > 0 && width[at - 1] < value; at--) {
        node[at] = node[at - 1];
        width[at] = width[at - 1];
      }
      node[at] = child;
      width[at] = value;
    }
  }
}

function doubled<T extends Uint32Array | Float64Array | Uint8Array>(old: T, made: T): T {
  made.set(old);
  return made;
}

/** A growing stack of numbers. */
export class Stack {
  private list = new Uint32Array(1024);
  size = 0;

  push(value: number): void {
    if (this.size === this.list.length)
      this.list = doubled(this.list, new Uint32Array(2 * this.size));
    this.list[this.size++] = value;
  }
  pop(): number {
    return this.list[--this.size];
  }
}

/**
 * Arranges a tree whose parents precede their children in preorder with the widest sibling first.
 */
export function arrange(tree: Columns): Columns {
  const count = tree.frame.length;
  const delta = tree.parentDelta;
  const width = sumUp(
    !tree.baseSelf && !hasNegative(tree.self) ? tree.self : ownWidth(tree),
    delta,
  );
  // 0: none; the others follow in `next`, in order of arrival
  const firstChild = new Uint32Array(count);
  const next = new Uint32Array(count);
  for (let i = count - 1; i > 0; i--) {
    const parent = i - delta[i];
    next[i] = firstChild[parent];
    firstChild[parent] = i;
  }
  const frame = new Uint32Array(count);
  const parentDelta = new Uint32Array(count);
  const self = new Float64Array(count);
  const baseSelf = tree.baseSelf && new Float64Array(count);
  const place = new Uint32Array(count); // the position of a node in the new order
  const stack = new Stack();
  const children = new Siblings(width);
  stack.push(0);
  for (let at = 0; stack.size > 0; at++) {
    const node = stack.pop();
    place[node] = at;
    frame[at] = tree.frame[node];
    self[at] = tree.self[node];
    if (baseSelf) baseSelf[at] = tree.baseSelf![node];
    parentDelta[at] = at === 0 ? 0 : at - place[node - delta[node]];
    children.count = 0;
    for (let child = firstChild[node]; child !== 0; child = next[child]) children.add(child);
    if (children.count > 1) children.sort();
    for (let slot = children.count - 1; slot >= 0; slot--) stack.push(children.node[slot]);
  }
  return { frame, parentDelta, self, baseSelf };
}
