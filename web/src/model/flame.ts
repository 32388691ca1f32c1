/*
 * flame: the call tree of one answer, as flat typed arrays in preorder.
 *
 * The wire form (application/vnd.perfolio.flame, little-endian, sections 8-byte aligned;
 * lib/profile/report/flame_binary.h lists them) is read in place where it is an array as the page wants it.
 * What it leaves out (parents, subtree ends, places, sums, and the zeros among own values) is derived
 * here in linear loops without recursion, so that depth does not matter. Values are f64, exact to
 * 2^53. Strings are decoded when somebody asks for them.
 *
 *   0 magic "PFFLAME2"   8 u32 flags   12 u32 nodes   16 u32 frames   20 u32 strings   24 f64 total
 *   32 f64 base total    40 u32 sections   64 table of {u32 id, u32 0, u64 offset, u64 length}
 */

import type { Binary } from "./source_link.ts";

export const enum FlameFlag {
  Diff = 1,
  Cut = 2,
  Scaled = 4,
}

export const enum FrameFlag {
  Inlined = 1,
  Kernel = 2,
  Interpreted = 4,
  NotSymbolised = 8,
  Other = 16,
  Label = 32,
}

const enum Section {
  NodeFrame = 1,
  NodeDepth,
  SelfGap,
  Self,
  FrameName,
  FrameFile,
  FrameLine,
  FrameMapping,
  FrameFlags,
  StringOffsets,
  StringBytes,
  Metadata,
  FrameAddress,
  BaseSelfGap = 15,
  BaseSelf,
  SharedPlace,
}

const magic = "PFFLAME2";
const headerBytes = 64;
const sectionBytes = 24;
const maxNodes = 1 << 26;

export interface SampleType {
  type: string;
  unit: string;
}

/** A binary of whose addresses some lack names. */
export interface Unnamed {
  /** Hexadecimal; "" where the profile has none. */
  build_id: string;
  file: string;
}

/** What names are missing still. */
export interface Symbolization {
  complete: boolean;
  pending: Unnamed[];
  missing: (Unnamed & { reason: string; next_retry: string | null })[];
  /** At least so many more came without names, of which the server does not tell what became of them. */
  unlisted?: number;
}

export interface FlameMetadata {
  sample_type?: string;
  unit?: string;
  sample_types?: SampleType[];
  group_by?: string;
  default_sample_type?: string;
  sample_type_index?: number;
  normalised?: boolean;
  cut?: { nodes?: number; value?: number };
  symbolization?: Symbolization;
  /** The path's hash now of the node that the tree was asked for below. */
  root?: string;
  /** Addresses are called otherwise than the profile came: links may be older. */
  named_later?: boolean;
  /** Some of them came with a name. */
  sent_names_replaced?: boolean;
  /** What is called now that a focus called `app+0x2a10`, or as the sender did. */
  renamed?: string[];
  /** And there are more. */
  renamed_is_cut?: boolean;
  /** Of continuous profiles: the binaries whose build ids are known, as far as there is room for them. */
  binaries?: Binary[];
  /** Paths of now of what was asked for above and below the function in focus. */
  above?: string;
  below?: string;
}

export class FlameError extends Error {}
/** It begins as no flame that this version knows: another version of the server wrote it. */
export class FlameVersionError extends FlameError {}

/** Names and places of frames; a frame is what a node of the tree stands for. */
export class FrameTable {
  readonly count: number;
  readonly nameId: Uint32Array;
  private readonly decoder = new TextDecoder("utf-8", { ignoreBOM: true }); // a mark in front of a name is a part of it
  private readonly decoded: (string | undefined)[] = [];
  /** All strings in one, when every byte of them is one character; undefined before it is known. */
  private all: string | null | undefined;

  constructor(
    nameId: Uint32Array,
    readonly fileId: Uint32Array | null,
    private readonly lines: Uint32Array | null,
    readonly mappingId: Uint32Array | null,
    private readonly flagBytes: Uint8Array | null,
    private readonly addresses: BigUint64Array | null,
    readonly stringOffsets: Uint32Array,
    private readonly stringBytes: Uint8Array,
    /** Files and binaries of frames that lie in several of them, of which a frame tells the first. */
    readonly sharedPlaces: Uint32Array | null = null,
  ) {
    this.count = nameId.length;
    this.nameId = nameId;
  }

  string(id: number): string {
    let text = this.decoded[id];
    if (text === undefined) {
      if (this.all === undefined) this.decodeAll();
      text = this.all
        ? this.all.slice(this.stringOffsets[id], this.stringOffsets[id + 1])
        : this.decoder.decode(this.stringSpan(id));
      this.decoded[id] = text;
    }
    return text;
  }
  /** Most names are asked for sooner or later; one by one they cost ten times as much. */
  private decodeAll(): void {
    const text = this.decoder.decode(this.stringBytes);
    // No sequence becomes longer, so with an equal length each byte became one character.
    this.all = text.length === this.stringBytes.length ? text : null;
  }
  get stringCount(): number {
    return this.stringOffsets.length - 1;
  }
  /** The UTF-8 bytes of a string, a view of the answer. */
  stringSpan(id: number): Uint8Array {
    return this.stringBytes.subarray(this.stringOffsets[id], this.stringOffsets[id + 1]);
  }
  name(frame: number): string {
    return this.string(this.nameId[frame]);
  }
  file(frame: number): string {
    return this.fileId ? this.string(this.fileId[frame]) : "";
  }
  line(frame: number): number {
    return this.lines ? this.lines[frame] : 0;
  }
  mapping(frame: number): string {
    return this.mappingId ? this.string(this.mappingId[frame]) : "";
  }
  flags(frame: number): number {
    return this.flagBytes ? this.flagBytes[frame] : 0;
  }
  /** 0 where it is unknown; those of a kernel are more than a number holds. */
  address(frame: number): bigint {
    return this.addresses ? this.addresses[frame] : 0n;
  }
}

/** In 16 bits unless a number needs more. */
export type Numbers = Uint16Array | Uint32Array;

/** Stands before a number: it is exact, at least that, or about that. */
export type Bound = "" | "≥ " | "≈ ";

/** What numbers may lack because small stacks were merged into "other" boxes. */
export interface Bounds {
  /** Of one node. */
  readonly node: Bound;
  /** Of all nodes of a function, or of a search. */
  readonly part: Bound;
  /** Of what rules left. */
  readonly whole: Bound;
}

export interface Flame {
  readonly isDiff: boolean;
  readonly isCut: boolean;
  readonly bounds: Bounds;
  readonly nodeCount: number;
  /** Of the profile, or of side b of a diff; base is side a. */
  readonly total: number;
  readonly baseTotal: number;
  readonly frames: FrameTable;
  readonly metadata: FlameMetadata;

  readonly frame: Numbers;
  readonly parentDelta: Uint32Array;
  readonly self: Float64Array;
  readonly baseSelf: Float64Array | null;

  readonly depth: Numbers;
  /** One past the last node of the subtree. */
  readonly end: Uint32Array;
  readonly cum: Float64Array;
  readonly baseCum: Float64Array | null;
  /** What is drawn: the value, or for a diff the larger side of every node's own value, summed up. */
  readonly width: Float64Array;

  /** Nodes by depth: row d is rowNodes[rowOffset[d] .. rowOffset[d + 1]), in the order of the tree, which is from left to right. */
  readonly rowCount: number;
  readonly rowOffset: Uint32Array;
  readonly rowNodes: Uint32Array;
  /** Where the nodes of rowNodes end, in values from the tree's left edge: searching a row reads this one array. */
  readonly rowEnds: Float64Array;
  /** Their widths, of 24 bits: enough to lay a row out without a look at nodes that lie all over the tree (model/layout). */
  readonly rowWidths: Float32Array;
}

const signed = new WeakMap<Float64Array, boolean>();

/** It holds values below zero, on either side: boxes are as wide as the sum of sizes then, whatever their sign. */
export function hasSigns({ self, baseSelf, width, cum }: Flame): boolean {
  if (!baseSelf) return width !== cum;
  if (!signed.has(self)) signed.set(self, hasNegative(self) || hasNegative(baseSelf));
  return signed.get(self)!;
}

/** Where a node begins, in values from the tree's left edge. */
export function startOf(flame: Flame, node: number): number {
  const { rowNodes, rowOffset } = flame;
  const row = flame.depth[node];
  let low = rowOffset[row];
  for (let high = rowOffset[row + 1]; high - low > 1;) {
    const middle = (low + high) >>> 1;
    if (rowNodes[middle] <= node) low = middle;
    else high = middle;
  }
  return flame.rowEnds[low] - flame.width[node];
}

export function parentOf(flame: Flame, node: number): number {
  return node === 0 ? -1 : node - flame.parentDelta[node];
}

/** From the root down to node, both included. */
export function pathOf(flame: Flame, node: number): number[] {
  const path: number[] = [];
  for (let at = node; at >= 0; at = parentOf(flame, at)) path.push(at);
  return path.reverse();
}

type Column<T> = {
  new (buffer: ArrayBuffer, offset: number, length: number): T;
  BYTES_PER_ELEMENT: number;
};

/** The sections of an answer, as columns. */
class Sections {
  private readonly places = new Map<number, { offset: number; length: number }>();

  constructor(
    private readonly buffer: ArrayBuffer,
    view: DataView,
  ) {
    for (let i = view.getUint32(40, true), at = headerBytes; i > 0; i--, at += sectionBytes) {
      if (at + sectionBytes > buffer.byteLength) throw new FlameError("section table is cut off");
      const offset = Number(view.getBigUint64(at + 8, true));
      const length = Number(view.getBigUint64(at + 16, true));
      if (offset % 8 || offset + length > buffer.byteLength)
        throw new FlameError("a section lies outside");
      this.places.set(view.getUint32(at, true), { offset, length });
    }
  }
  bytesOf(id: Section): number {
    return this.places.get(id)?.length ?? 0;
  }
  /** Empty when there is none. */
  all(id: Section): Uint8Array {
    return new Uint8Array(this.buffer, this.places.get(id)?.offset, this.bytesOf(id));
  }
  maybe<T>(id: Section, kind: Column<T>, count: number): T | null {
    return this.places.has(id) ? this.need(id, kind, count) : null;
  }
  need<T>(id: Section, kind: Column<T>, count: number): T {
    if (this.bytesOf(id) < count * kind.BYTES_PER_ELEMENT)
      throw new FlameError(`section ${id} is too short`);
    return new kind(this.buffer, this.places.get(id)?.offset ?? 0, count);
  }
  /** Numbers in as few bytes as they need. */
  numbers(id: Section, count: number): Numbers {
    return this.need<Numbers>(
      id,
      this.bytesOf(id) === count * 2 ? Uint16Array : Uint32Array,
      count,
    );
  }
  /** Own values with the zeros between them, which are most. */
  own(gapId: Section, id: Section, nodeCount: number): Float64Array {
    const count = this.bytesOf(id) / 8;
    const gaps = this.need(gapId, Uint32Array, count);
    const values = this.need(id, Float64Array, count);
    const own = new Float64Array(nodeCount);
    let node = 0;
    for (let i = 0; i < count; i++) own[(node += gaps[i])] = values[i];
    if (node >= nodeCount) throw new FlameError("a value has no node");
    return own;
  }
}

function readMetadata(sections: Sections): FlameMetadata {
  const text = new TextDecoder().decode(sections.all(Section.Metadata));
  const value: unknown = text && JSON.parse(text);
  return typeof value === "object" && value !== null ? (value as FlameMetadata) : {};
}

function readFrames(sections: Sections, frameCount: number, stringCount: number): FrameTable {
  const offsets = sections.need(Section.StringOffsets, Uint32Array, stringCount + 1);
  const bytes = sections.all(Section.StringBytes);
  for (let i = 0; i < stringCount; i++)
    if (offsets[i + 1] < offsets[i]) throw new FlameError("string offsets run backwards");
  if (offsets[stringCount] > bytes.length) throw new FlameError("strings lie outside");
  const strings = <T extends Uint32Array | null>(column: T): T => {
    if (column)
      for (const id of column) if (id >= stringCount) throw new FlameError("a string is missing");
    return column;
  };
  return new FrameTable(
    strings(sections.need(Section.FrameName, Uint32Array, frameCount)),
    strings(sections.maybe(Section.FrameFile, Uint32Array, frameCount)),
    sections.maybe(Section.FrameLine, Uint32Array, frameCount),
    strings(sections.maybe(Section.FrameMapping, Uint32Array, frameCount)),
    sections.maybe(Section.FrameFlags, Uint8Array, frameCount),
    sections.maybe(Section.FrameAddress, BigUint64Array, frameCount),
    offsets,
    bytes,
    strings(
      sections.maybe(Section.SharedPlace, Uint32Array, sections.bytesOf(Section.SharedPlace) / 4),
    ),
  );
}

/** A tree without what can be derived from it: nodes in preorder, siblings by falling width. */
export interface Columns {
  frame: Numbers;
  parentDelta: Uint32Array;
  self: Float64Array;
  baseSelf: Float64Array | null;
}

/** Sums own values up a tree whose parents stand before children: one loop from the back does. */
export function sumUp(own: Float64Array, parentDelta: Uint32Array): Float64Array {
  const sum = own.slice();
  for (let i = sum.length - 1; i > 0; i--) sum[i - parentDelta[i]] += sum[i];
  return sum;
}

/** What is drawn of a node itself: for a diff the larger side, and never less than nothing. */
export function ownWidth({ self, baseSelf }: Pick<Columns, "self" | "baseSelf">): Float64Array {
  const own = new Float64Array(self.length);
  for (let i = 0; i < own.length; i++)
    own[i] = Math.max(Math.abs(self[i]), baseSelf ? Math.abs(baseSelf[i]) : 0);
  return own;
}

export function hasNegative(values: Float64Array): boolean {
  for (let i = 0; i < values.length; i++) if (values[i] < 0) return true;
  return false;
}

export type Derived = Pick<
  Flame,
  | "depth"
  | "end"
  | "cum"
  | "baseCum"
  | "width"
  | "rowCount"
  | "rowOffset"
  | "rowNodes"
  | "rowEnds"
  | "rowWidths"
>;

/** The distance of each node from the root. */
export function deriveDepth(
  parentDelta: Uint32Array,
  Kind: typeof Uint16Array | typeof Uint32Array = Uint16Array,
): Numbers {
  const depth = new Kind(parentDelta.length);
  for (let i = 1; i < depth.length; i++) {
    const below = depth[i - parentDelta[i]] + 1;
    depth[i] = below;
    if (depth[i] !== below) return deriveDepth(parentDelta, Uint32Array);
  }
  return depth;
}

/** Of nodes by depth. Throws a FlameError for what is no tree, or names a frame that is not there. */
function parentsOf(depth: Numbers, frame: Numbers, frameCount: number): Uint32Array {
  const parentDelta = new Uint32Array(depth.length);
  const last = new Uint32Array(depth.length + 1);
  if (depth[0] !== 0 || frame[0] >= frameCount) throw new FlameError("node 0 is no root");
  for (let i = 1, above = 0; i < depth.length; i++) {
    const row = depth[i];
    if (row === 0 || row > above + 1 || frame[i] >= frameCount)
      throw new FlameError(`node ${i} is no node`);
    parentDelta[i] = i - last[row - 1];
    last[row] = i;
    above = row;
  }
  return parentDelta;
}

/** How many nodes stand in the rows above each row. */
function countRows(depth: Numbers): Uint32Array {
  let deepest = 0;
  for (let i = 0; i < depth.length; i++) if (depth[i] > deepest) deepest = depth[i];
  const rowOffset = new Uint32Array(deepest + 2);
  for (let i = 0; i < depth.length; i++) rowOffset[depth[i] + 1]++;
  for (let row = 0; row <= deepest; row++) rowOffset[row + 1] += rowOffset[row];
  return rowOffset;
}

/*
 * The loops below know a node's parent by its depth: from front to back it is the last node seen one
 * row above, from back to front the next one. What is said of a parent so lies in an array by rows,
 * which is small, where the parents themselves lie all over the tree.
 */

/** What own values of each subtree come to, and where it ends. */
function deriveSums(own: Float64Array, depth: Numbers, rowCount: number) {
  const sum = new Float64Array(own.length);
  const end = new Uint32Array(own.length);
  const below = new Float64Array(rowCount + 1); // of the nodes seen in a row, until their parent is met
  const lastEnd = new Uint32Array(rowCount + 1); // of the same; 0 before there is one
  let isNegative = false;
  for (let i = own.length - 1; i >= 0; i--) {
    const row = depth[i];
    const value = own[i];
    if (value < 0) isNegative = true;
    sum[i] = value + below[row + 1];
    below[row + 1] = 0;
    below[row] += sum[i];
    end[i] = lastEnd[row + 1] || i + 1;
    lastEnd[row + 1] = 0;
    if (lastEnd[row] === 0) lastEnd[row] = end[i];
  }
  return { sum, end, isNegative };
}

function deriveRows(depth: Numbers, rowOffset: Uint32Array, width: Float64Array) {
  const count = depth.length;
  const rowNodes = new Uint32Array(count);
  const rowEnds = new Float64Array(count);
  const rowWidths = new Float32Array(count);
  const place = rowOffset.slice();
  const next = new Float64Array(rowOffset.length); // where the next node of a row begins
  for (let i = 0; i < count; i++) {
    const row = depth[i];
    const at = place[row]++;
    const from = next[row];
    next[row + 1] = from;
    rowNodes[at] = i;
    rowEnds[at] = next[row] = from + width[i];
    rowWidths[at] = width[i];
  }
  return { rowNodes, rowEnds, rowWidths };
}

export function derive(columns: Columns, depth = deriveDepth(columns.parentDelta)): Derived {
  const { self, baseSelf, parentDelta } = columns;
  const rowOffset = countRows(depth);
  const rowCount = rowOffset.length - 1;
  const { sum: cum, end, isNegative } = deriveSums(self, depth, rowCount);
  const baseCum = baseSelf && sumUp(baseSelf, parentDelta);
  const width = baseSelf || isNegative ? sumUp(ownWidth(columns), parentDelta) : cum;
  return {
    depth,
    end,
    cum,
    baseCum,
    width,
    rowCount,
    rowOffset,
    ...deriveRows(depth, rowOffset, width),
  };
}

/** The same profile with another tree: totals, names and metadata stay. */
export function withTree(flame: Flame, columns: Columns, derived: Derived): Flame {
  return { ...flame, nodeCount: columns.frame.length, ...columns, ...derived };
}

/** Reads an answer; throws FlameError when it is not one. The buffer must not change afterwards. */
export function decodeFlame(buffer: ArrayBuffer): Flame {
  if (buffer.byteLength < headerBytes) throw new FlameError("too short");
  const view = new DataView(buffer);
  if (new TextDecoder("latin1").decode(new Uint8Array(buffer, 0, 8)) !== magic)
    throw new FlameVersionError("wrong magic");
  const flags = view.getUint32(8, true);
  const nodeCount = view.getUint32(12, true);
  if (nodeCount === 0 || nodeCount > maxNodes) throw new FlameError("no nodes, or too many");
  const sections = new Sections(buffer, view);
  const frames = readFrames(sections, view.getUint32(16, true), view.getUint32(20, true));
  const isDiff = (flags & FlameFlag.Diff) !== 0;
  const depth = sections.numbers(Section.NodeDepth, nodeCount);
  const frame = sections.numbers(Section.NodeFrame, nodeCount);
  const columns: Columns = {
    frame,
    parentDelta: parentsOf(depth, frame, frames.count),
    self: sections.own(Section.SelfGap, Section.Self, nodeCount),
    baseSelf: isDiff ? sections.own(Section.BaseSelfGap, Section.BaseSelf, nodeCount) : null,
  };
  const isCut = (flags & FlameFlag.Cut) !== 0;
  return {
    isDiff,
    isCut,
    bounds: { node: "", part: !isCut ? "" : hasNegative(columns.self) ? "≈ " : "≥ ", whole: "" },
    nodeCount,
    total: view.getFloat64(24, true),
    baseTotal: view.getFloat64(32, true),
    frames,
    metadata: readMetadata(sections),
    ...columns,
    ...derive(columns, depth),
  };
}
