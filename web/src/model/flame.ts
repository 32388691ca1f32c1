/*
 * flame: the call tree of one answer, as flat typed arrays in preorder.
 *
 * The wire form (application/vnd.perfolio.flame, little-endian, sections 8-byte aligned) is read in
 * place: node and frame columns are views of the received bytes. Depth, subtree end, place and
 * cumulative value are derived here in linear loops without recursion, so that depth does not
 * matter. Values are f64, exact to 2^53. Strings are decoded when somebody asks for them.
 *
 *   0 magic "PFFLAME1"   8 u32 flags   12 u32 nodes   16 u32 frames   20 u32 strings   24 f64 total
 *   32 f64 base total    40 u32 sections   64 table of {u32 id, u32 0, u64 offset, u64 length}
 */

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
}

const enum Section {
  NodeFrame = 1,
  NodeParentDelta,
  NodeSelf,
  NodeBaseSelf,
  FrameName,
  FrameFile,
  FrameLine,
  FrameMapping,
  FrameFlags,
  StringOffsets,
  StringBytes,
  Metadata,
  FrameAddress,
}

const magic = "PFFLAME1";
const headerBytes = 64;
const sectionBytes = 24;
const maxNodes = 1 << 26;

export interface SampleType {
  type: string;
  unit: string;
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
}

export class FlameError extends Error {}

/** Names and places of frames; a frame is what a node of the tree stands for. */
export class FrameTable {
  readonly count: number;
  readonly nameId: Uint32Array;
  private readonly decoder = new TextDecoder();
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
  ) {
    this.count = nameId.length;
    this.nameId = nameId;
  }

  string(id: number): string {
    let text = this.decoded[id];
    if (text === undefined) {
      if (this.all === undefined) this.decodeAll();
      text = this.all ? this.all.slice(this.stringOffsets[id], this.stringOffsets[id + 1]) : this.decoder.decode(this.stringSpan(id));
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

export interface Flame {
  readonly isDiff: boolean;
  readonly isCut: boolean;
  readonly nodeCount: number;
  /** Of the profile, or of side b of a diff; base is side a. */
  readonly total: number;
  readonly baseTotal: number;
  readonly frames: FrameTable;
  readonly metadata: FlameMetadata;

  readonly frame: Uint32Array;
  readonly parentDelta: Uint32Array;
  readonly self: Float64Array;
  readonly baseSelf: Float64Array | null;

  readonly depth: Uint32Array;
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
}

/** Where a node begins, in values from the tree's left edge. */
export function startOf(flame: Flame, node: number): number {
  const { rowNodes, rowOffset } = flame;
  const row = flame.depth[node];
  let low = rowOffset[row];
  for (let high = rowOffset[row + 1]; high - low > 1; ) {
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

type Sections = Map<number, { offset: number; length: number }>;

function readSections(buffer: ArrayBuffer, view: DataView): Sections {
  const sections: Sections = new Map();
  const count = view.getUint32(40, true);
  if (headerBytes + count * sectionBytes > buffer.byteLength) throw new FlameError("section table is cut off");
  for (let i = 0; i < count; i++) {
    const at = headerBytes + i * sectionBytes;
    const offset = Number(view.getBigUint64(at + 8, true));
    const length = Number(view.getBigUint64(at + 16, true));
    if (offset % 8 !== 0 || offset + length > buffer.byteLength) throw new FlameError(`section ${i} lies outside`);
    sections.set(view.getUint32(at, true), { offset, length });
  }
  return sections;
}

type Column<T> = { new (buffer: ArrayBuffer, offset: number, length: number): T; BYTES_PER_ELEMENT: number };

function readColumn<T>(buffer: ArrayBuffer, sections: Sections, id: Section, kind: Column<T>, count: number): T | null {
  const section = sections.get(id);
  if (!section) return null;
  if (section.length < count * kind.BYTES_PER_ELEMENT) throw new FlameError(`section ${id} is too short`);
  return new kind(buffer, section.offset, count);
}

function needColumn<T>(buffer: ArrayBuffer, sections: Sections, id: Section, kind: Column<T>, count: number): T {
  const column = readColumn(buffer, sections, id, kind, count);
  if (column === null) throw new FlameError(`section ${id} is missing`);
  return column;
}

function readMetadata(buffer: ArrayBuffer, sections: Sections): FlameMetadata {
  const section = sections.get(Section.Metadata);
  if (!section || section.length === 0) return {};
  const text = new TextDecoder().decode(new Uint8Array(buffer, section.offset, section.length));
  const value: unknown = JSON.parse(text.replace(/\0+$/, ""));
  return typeof value === "object" && value !== null ? (value as FlameMetadata) : {};
}

function readFrames(buffer: ArrayBuffer, view: DataView, sections: Sections): FrameTable {
  const frameCount = view.getUint32(16, true);
  const stringCount = view.getUint32(20, true);
  const offsets = needColumn(buffer, sections, Section.StringOffsets, Uint32Array, stringCount + 1);
  const bytes = sections.get(Section.StringBytes) ?? { offset: 0, length: 0 };
  for (let i = 0; i < stringCount; i++)
    if (offsets[i + 1] < offsets[i]) throw new FlameError("string offsets run backwards");
  if (offsets[stringCount] > bytes.length) throw new FlameError("strings lie outside");
  const strings = (id: Section) => {
    const column = readColumn(buffer, sections, id, Uint32Array, frameCount);
    if (column) for (const id of column) if (id >= stringCount) throw new FlameError("a string is missing");
    return column;
  };
  const names = strings(Section.FrameName);
  if (!names) throw new FlameError("frame names are missing");
  return new FrameTable(
    names,
    strings(Section.FrameFile),
    readColumn(buffer, sections, Section.FrameLine, Uint32Array, frameCount),
    strings(Section.FrameMapping),
    readColumn(buffer, sections, Section.FrameFlags, Uint8Array, frameCount),
    readColumn(buffer, sections, Section.FrameAddress, BigUint64Array, frameCount),
    offsets,
    new Uint8Array(buffer, bytes.offset, bytes.length),
  );
}

/** A tree without what can be derived from it: nodes in preorder, siblings by falling width. */
export interface Columns {
  frame: Uint32Array;
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
  for (let i = 0; i < own.length; i++) own[i] = Math.max(Math.abs(self[i]), baseSelf ? Math.abs(baseSelf[i]) : 0);
  return own;
}

export function hasNegative(values: Float64Array): boolean {
  for (let i = 0; i < values.length; i++) if (values[i] < 0) return true;
  return false;
}

export type Derived = Pick<Flame, "depth" | "end" | "cum" | "baseCum" | "width" | "rowCount" | "rowOffset" | "rowNodes" | "rowEnds">;

/** Depth of each node, and how many nodes each depth has. Throws a FlameError for what is no tree. */
function deriveDepth({ frame, parentDelta }: Columns, frameCount: number): { depth: Uint32Array; rowOffset: Uint32Array } {
  const count = parentDelta.length;
  const depth = new Uint32Array(count);
  let deepest = 0;
  if (parentDelta[0] !== 0 || frame[0] >= frameCount) throw new FlameError("node 0 is no root");
  for (let i = 1; i < count; i++) {
    const delta = parentDelta[i];
    if (frame[i] >= frameCount || delta === 0 || delta > i) throw new FlameError(`node ${i} is no node`);
    const below = depth[i - delta] + 1;
    depth[i] = below;
    if (below > deepest) deepest = below;
  }
  const rowOffset = new Uint32Array(deepest + 2);
  for (let i = 0; i < count; i++) rowOffset[depth[i] + 1]++;
  for (let row = 0; row <= deepest; row++) rowOffset[row + 1] += rowOffset[row];
  return { depth, rowOffset };
}

/*
 * The loops below know a node's parent by its depth: from front to back it is the last node seen one
 * row above, from back to front the next one. What is said of a parent so lies in an array by rows,
 * which is small, where the parents themselves lie all over the tree.
 */

/** What own values of each subtree come to, and where it ends. */
function deriveSums(own: Float64Array, depth: Uint32Array, rowCount: number) {
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

function deriveRows(depth: Uint32Array, rowOffset: Uint32Array, width: Float64Array) {
  const count = depth.length;
  const rowNodes = new Uint32Array(count);
  const rowEnds = new Float64Array(count);
  const place = rowOffset.slice();
  const next = new Float64Array(rowOffset.length); // where the next node of a row begins
  for (let i = 0; i < count; i++) {
    const row = depth[i];
    const at = place[row]++;
    const from = next[row];
    next[row + 1] = from;
    rowNodes[at] = i;
    rowEnds[at] = next[row] = from + width[i];
  }
  return { rowNodes, rowEnds };
}

/** Throws a FlameError for columns that are no tree, or name a frame past frameCount. */
export function derive(columns: Columns, frameCount: number): Derived {
  const { self, baseSelf, parentDelta } = columns;
  const { depth, rowOffset } = deriveDepth(columns, frameCount);
  const rowCount = rowOffset.length - 1;
  const { sum: cum, end, isNegative } = deriveSums(self, depth, rowCount);
  const baseCum = baseSelf && sumUp(baseSelf, parentDelta);
  const width = baseSelf || isNegative ? sumUp(ownWidth(columns), parentDelta) : cum;
  return { depth, end, cum, baseCum, width, rowCount, rowOffset, ...deriveRows(depth, rowOffset, width) };
}

/** The same profile with another tree: totals, names and metadata stay. */
export function withTree(flame: Flame, columns: Columns, derived: Derived): Flame {
  return { ...flame, nodeCount: columns.frame.length, ...columns, ...derived };
}

/** Reads an answer; throws FlameError when it is not one. The buffer must not change afterwards. */
export function decodeFlame(buffer: ArrayBuffer): Flame {
  if (buffer.byteLength < headerBytes) throw new FlameError("too short");
  const view = new DataView(buffer);
  if (new TextDecoder("latin1").decode(new Uint8Array(buffer, 0, 8)) !== magic) throw new FlameError("wrong magic");
  const flags = view.getUint32(8, true);
  const nodeCount = view.getUint32(12, true);
  if (nodeCount === 0 || nodeCount > maxNodes) throw new FlameError("no nodes, or too many");
  const sections = readSections(buffer, view);
  const frames = readFrames(buffer, view, sections);
  const isDiff = (flags & FlameFlag.Diff) !== 0;
  const columns: Columns = {
    frame: needColumn(buffer, sections, Section.NodeFrame, Uint32Array, nodeCount),
    parentDelta: needColumn(buffer, sections, Section.NodeParentDelta, Uint32Array, nodeCount),
    self: needColumn(buffer, sections, Section.NodeSelf, Float64Array, nodeCount),
    baseSelf: isDiff ? needColumn(buffer, sections, Section.NodeBaseSelf, Float64Array, nodeCount) : null,
  };
  return {
    isDiff,
    isCut: (flags & FlameFlag.Cut) !== 0,
    nodeCount,
    total: view.getFloat64(24, true),
    baseTotal: view.getFloat64(32, true),
    frames,
    metadata: readMetadata(buffer, sections),
    ...columns,
    ...derive(columns, frames.count),
  };
}
