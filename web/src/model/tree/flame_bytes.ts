/*
 * flame_bytes: writes a tree in the server's binary form (see flame.ts), so that the viewer treats
 * local and server trees alike.
 */
import { deriveDepth, FlameFlag, type Columns, type FlameMetadata, type Numbers } from "./flame.ts";

export interface PlainFrame {
  name: string;
  file: string;
  line: number;
  mapping: string;
  address?: bigint;
  flags: number;
}

export interface FlameParts {
  tree: Columns;
  /** The frames that tree.frame refers to, including the root's. */
  frames: readonly PlainFrame[];
  total: number;
  baseTotal: number;
  isCut: boolean;
  metadata: FlameMetadata;
}

const align = (size: number) => (size + 7) & ~7;

class Strings {
  private readonly ids = new Map<string, number>([["", 0]]);
  private readonly parts: Uint8Array[] = [new Uint8Array(0)];
  private readonly encoder = new TextEncoder();
  id(text: string): number {
    let id = this.ids.get(text);
    if (id === undefined) {
      id = this.parts.push(this.encoder.encode(text)) - 1;
      this.ids.set(text, id);
    }
    return id;
  }
  get count(): number {
    return this.parts.length;
  }
  sections(): { offsets: Uint32Array; bytes: Uint8Array } {
    const offsets = new Uint32Array(this.parts.length + 1);
    this.parts.forEach((part, i) => (offsets[i + 1] = offsets[i] + part.length));
    const bytes = new Uint8Array(offsets[this.parts.length]);
    this.parts.forEach((part, i) => bytes.set(part, offsets[i]));
    return { offsets, bytes };
  }
}

type Sections = [id: number, data: ArrayBufferView][];

const narrow = (numbers: Numbers, largest: number): Numbers =>
  largest < 0x10000 ? new Uint16Array(numbers) : numbers;

/**
 * The nodes with a nonzero self value, each as the distance from the previous one, and the values.
 */
function sparse(own: Float64Array): [gaps: Uint32Array, values: Float64Array] {
  const nodes: number[] = [];
  for (let i = 0; i < own.length; i++) if (own[i] !== 0) nodes.push(i);
  return [
    Uint32Array.from(nodes, (node, i) => node - (i ? nodes[i - 1] : 0)),
    Float64Array.from(nodes, (node) => own[node]),
  ];
}

function sectionsOf({ tree, frames, metadata }: FlameParts, strings: Strings): Sections {
  const column = (of: (frame: PlainFrame) => number) => Uint32Array.from(frames, of);
  const names = column((frame) => strings.id(frame.name));
  const files = column((frame) => strings.id(frame.file));
  const mappings = column((frame) => strings.id(frame.mapping));
  const { offsets, bytes } = strings.sections();
  const [gaps, values] = sparse(tree.self);
  const base = tree.baseSelf
    ? sparse(tree.baseSelf).map((data, i): Sections[number] => [15 + i, data])
    : [];
  // the ids of enum Section in flame.ts
  return [
    [1, narrow(tree.frame, frames.length - 1)],
    [2, deriveDepth(tree.parentDelta)],
    [3, gaps],
    [4, values],
    ...base,
    [5, names],
    [6, files],
    [7, column((frame) => Math.max(0, frame.line))],
    [8, mappings],
    [9, Uint8Array.from(frames, (frame) => frame.flags)],
    [10, offsets],
    [11, bytes],
    [12, new TextEncoder().encode(JSON.stringify(metadata))],
    [13, BigUint64Array.from(frames, (frame) => frame.address ?? 0n)],
  ];
}

/** Header of 64 bytes, section table of 24 bytes per entry, sections; see flame.ts. */
export function writeFlame(parts: FlameParts): ArrayBuffer {
  const strings = new Strings();
  const sections = sectionsOf(parts, strings);
  let size = align(64 + sections.length * 24);
  const places = sections.map(([, data]) => {
    const at = size;
    size += align(data.byteLength);
    return at;
  });
  const buffer = new ArrayBuffer(size);
  const view = new DataView(buffer);
  new Uint8Array(buffer).set(new TextEncoder().encode("PFFLAME2"));
  view.setUint32(
    8,
    (parts.tree.baseSelf ? FlameFlag.Diff : 0) | (parts.isCut ? FlameFlag.Cut : 0),
    true,
  );
  view.setUint32(12, parts.tree.frame.length, true);
  view.setUint32(16, parts.frames.length, true);
  view.setUint32(20, strings.count, true);
  view.setFloat64(24, parts.total, true);
  view.setFloat64(32, parts.baseTotal, true);
  view.setUint32(40, sections.length, true);
  sections.forEach(([id, data], i) => {
    const entry = 64 + i * 24;
    view.setUint32(entry, id, true);
    view.setBigUint64(entry + 8, BigInt(places[i]), true);
    view.setBigUint64(entry + 16, BigInt(data.byteLength), true);
    new Uint8Array(buffer, places[i], data.byteLength).set(
      new Uint8Array(data.buffer, data.byteOffset, data.byteLength),
    );
  });
  return buffer;
}
