/*
 * flame: the call tree of a response as flat typed arrays in preorder.
 *
 * The binary form (application/vnd.perfolio.flame, little-endian, sections 8-byte aligned;
 * sections: lib/profile/report/flame_binary.h) is used in place where it is an array in the form
 * that the page needs. The columns that it leaves out (parents, subtree ends, positions, sums, and
 * zero self values) are derived here in linear loops without recursion, so the depth does not
 * matter. Values are f64, exact to 2^53. Strings are decoded on first use.
 *
 *   0 magic "PFFLAME2"   8 u32 flags   12 u32 nodes   16 u32 frames   20 u32 strings   24 f64 total
 *   32 f64 base total    40 u32 sections   64 table of {u32 id, u32 0, u64 offset, u64 length}
 */

import type { Binary } from "../symbols/source_link.ts";

export const enum FlameFlag {
  Diff = 1,
  Cut = 2,
  Inexact = 4,
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

/** A binary with addresses that lack names. */
export interface Unnamed {
  /** Hexadecimal; "" if the profile has none. */
  build_id: string;
  file: string;
}

/** The missing names. */
export interface Symbolization {
  complete: boolean;
  pending: Unnamed[];
  missing: (Unnamed & { reason: string; next_retry: string | null })[];
  /** At least this many more binaries arrived without names and are not listed. */
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
  /** The current path hash of the node that was requested as the root. */
  root?: string;
  /** Some addresses got names after the upload, so links may contain older ones. */
  named_later?: boolean;
  /** Some addresses that got names after the upload had other names in the uploaded file. */
  sent_names_replaced?: boolean;
  /**
   * The current names of the functions that a focus names as `app+0x2a10`, or by their name in the
   * uploaded file.
   */
  renamed?: string[];
  /** `renamed` is truncated. */
  renamed_is_cut?: boolean;
  /** Continuous profiles only: the binaries with known build ids, as far as they fit. */
  binaries?: Binary[];
  /** The current paths of the frames requested above and below the focused function. */
  above?: string;
  below?: string;
}

export class FlameError extends Error {}
/** The format is unknown: another version of the server wrote it. */
export class FlameVersionError extends FlameError {}

/** Names and places of frames. Each node of the tree refers to a frame. */
export class FrameTable {
  readonly count: number;
  readonly nameId: Uint32Array;
  // a byte order mark in front of a name is a part of it
  private readonly decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  private readonly decoded: (string | undefined)[] = [];
  /** All strings in one, if every byte is one character; undefined before the first use. */
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
    /**
     * The files and binaries of frames that have several of them; the frame itself refers to the
     * first.
     */
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
  /**
   * Most names are needed sooner or later, and decoding them one by one costs ten times as much.
   */
  private decodeAll(): void {
    const text = this.decoder.decode(this.stringBytes);
    // Decoding never makes a sequence longer, so equal length means that each byte is one
    // character.
    this.all = text.length === this.stringBytes.length ? text : null;
  }
  get stringCount(): number {
    return this.stringOffsets.length - 1;
  }
  /** The UTF-8 bytes of a string, a view of the response. */
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
  /** 0 if unknown. A bigint, because kernel addresses exceed the range of a number. */
  address(frame: number): bigint {
    return this.addresses ? this.addresses[frame] : 0n;
  }
}

/** 16 bits unless a value needs more. */
export type Numbers = Uint16Array | Uint32Array;

/** Precedes a number: exact, a lower bound, or approximate. */
export type Bound = "" | "≥ " | "≈ ";

/** The bounds of numbers after small stacks were merged into "other" boxes. */
export interface Bounds {
  /** For one node. */
  readonly node: Bound;
  /** For all nodes of a function, or of a search. */
  readonly part: Bound;
  /** For the total after the rules. */
  readonly whole: Bound;
}

export interface Flame {
  readonly isDiff: boolean;
  readonly isCut: boolean;
  readonly bounds: Bounds;
  readonly nodeCount: number;
  /** The total of the profile, or of side b of a diff; base is side a. */
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
  /** The drawn width: the value, or for a diff the sum of the larger side of each self value. */
  readonly width: Float64Array;

  /** Nodes by depth: row d is rowNodes[rowOffset[d] .. rowOffset[d + 1]), from left to right. */
  readonly rowCount: number;
  readonly rowOffset: Uint32Array;
  readonly rowNodes: Uint32Array;
  /**
   * The right ends of the nodes in rowNodes, in values from the tree's left edge: a search in a row
   * reads only this array.
   */
  readonly rowEnds: Float64Array;
  /**
   * The widths of the nodes in rowNodes, with 24 bits: enough to lay out a row without reading
   * nodes that are scattered in the tree (row_layout.ts).
   */
  readonly rowWidths: Float32Array;
}

const signed = new WeakMap<Float64Array, boolean>();

/**
 * Whether a side contains values below zero. Then boxes are as wide as the sum of absolute values.
 */
export function hasSigns({ self, baseSelf, width, cum }: Flame): boolean {
  if (!baseSelf) return width !== cum;
  if (!signed.has(self)) signed.set(self, hasNegative(self) || hasNegative(baseSelf));
  return signed.get(self)!;
}

/** The left edge of a node, in values from the tree's left edge. */
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

/** The nodes from the root to node, both included. */
export function pathOf(flame: Flame, node: number): number[] {
  const path: number[] = [];
  for (let at = node; at >= 0; at = parentOf(flame, at)) path.push(at);
  return path.reverse();
}

type Column<T> = {
  new (buffer: ArrayBuffer, offset: number, length: number): T;
  BYTES_PER_ELEMENT: number;
};

/** The sections of a response as columns. */
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
  /** Empty if there is none. */
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
  /** Numbers with as few bytes as they need. */
  numbers(id: Section, count: number): Numbers {
    return this.need<Numbers>(
      id,
      this.bytesOf(id) === count * 2 ? Uint16Array : Uint32Array,
      count,
    );
  }
  /** Self values, with the zeros that the binary form leaves out. */
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

/** A tree without derived columns: nodes in preorder, siblings by decreasing width. */
export interface Columns {
  frame: Numbers;
  parentDelta: Uint32Array;
  self: Float64Array;
  baseSelf: Float64Array | null;
}

/** Sums self values up the tree. Parents precede children, so one backward loop is sufficient. */
export function sumUp(own: Float64Array, parentDelta: Uint32Array): Float64Array {
  const sum = own.slice();
  for (let i = sum.length - 1; i > 0; i--) sum[i - parentDelta[i]] += sum[i];
  return sum;
}

/** The drawn width of a node's self value: for a diff the larger side, and never below zero. */
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

/**
 * The parents by depth. Throws a FlameError if the columns are not a tree or refer to a missing
 * frame.
 */
function parentsOf(depth: Numbers, frame: Numbers, frameCount: number): Uint32Array {
  const parentDelta = new Uint32Array(depth.length);
  const last = new Uint32Array(depth.length + 1);
  if (depth[0] !== 0 || frame[0] >= frameCount) throw new FlameError("node 0 is not a root");
  for (let i = 1, above = 0; i < depth.length; i++) {
    const row = depth[i];
    if (row === 0 || row > above + 1 || frame[i] >= frameCount)
      throw new FlameError(`node ${i} is not a node`);
    parentDelta[i] = i - last[row - 1];
    last[row] = i;
    above = row;
  }
  return parentDelta;
}

/** The number of nodes in the rows above each row. */
function countRows(depth: Numbers): Uint32Array {
  let deepest = 0;
  for (let i = 0; i < depth.length; i++) if (depth[i] > deepest) deepest = depth[i];
  const rowOffset = new Uint32Array(deepest + 2);
  for (let i = 0; i < depth.length; i++) rowOffset[depth[i] + 1]++;
  for (let row = 0; row <= deepest; row++) rowOffset[row + 1] += rowOffset[row];
  return rowOffset;
}

/*
 * The loops below find a node's parent by its depth: going forward, it is the last node seen one
 * row above; going backward, the next one. So the state of a parent is stored in a small array by
 * row, while the parents themselves are scattered in the tree.
 */

/** The sum of self values and the end of each subtree. */
function deriveSums(own: Float64Array, depth: Numbers, rowCount: number) {
  const sum = new Float64Array(own.length);
  const end = new Uint32Array(own.length);
  // per row: the sum of the nodes seen in it, until their parent is reached
  const below = new Float64Array(rowCount + 1);
  // per row: the end of the last of these nodes; 0: none
  const lastEnd = new Uint32Array(rowCount + 1);
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
  const next = new Float64Array(rowOffset.length); // the left edge of the next node of a row
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

/**
 * Decodes a response; throws FlameError if it is not one. The buffer must not change afterwards.
 */
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
