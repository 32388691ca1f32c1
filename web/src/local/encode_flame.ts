/*
 * encode_flame: a local profile as the bytes that the server would answer (see model/flame.ts), so
 * that the viewer cannot tell where a tree came from.
 */
import { Builder } from "../model/transform.ts";
import type { LocalProfile } from "./profile.ts";

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

export function encodeFlame(profile: LocalProfile, type: number): ArrayBuffer {
  const typeCount = profile.sampleTypes.length;
  // Frame 0 stands for the root.
  const builder = new Builder(1024, 0, false);
  let total = 0;
  for (let i = 0; i + 1 < profile.start.length; i++) {
    const value = profile.values[i * typeCount + type];
    if (value === 0) continue;
    total += value;
    let node = 0;
    for (let at = profile.start[i]; at < profile.start[i + 1]; at++) node = builder.child(node, profile.stack[at] + 1);
    builder.add(node, value, 0);
  }
  const tree = builder.finish();

  const strings = new Strings();
  const frames = [{ name: "root", file: "", line: 0, mapping: "", flags: 0 }, ...profile.frames];
  const column = (of: (frame: (typeof frames)[number]) => number) => Uint32Array.from(frames, of);
  const metadata = {
    sample_type: profile.sampleTypes[type].type,
    unit: profile.sampleTypes[type].unit,
    sample_types: profile.sampleTypes,
    sample_type_index: type,
    group_by: "function",
  };
  const names = column((frame) => strings.id(frame.name));
  const files = column((frame) => strings.id(frame.file));
  const mappings = column((frame) => strings.id(frame.mapping));
  const { offsets, bytes } = strings.sections();
  const sections: [number, ArrayBufferView][] = [
    [1, tree.frame],
    [2, tree.parentDelta],
    [3, tree.self],
    [5, names],
    [6, files],
    [7, column((frame) => Math.max(0, frame.line))],
    [8, mappings],
    [9, Uint8Array.from(frames, (frame) => frame.flags)],
    [10, offsets],
    [11, bytes],
    [12, new TextEncoder().encode(JSON.stringify(metadata))],
  ];

  let size = align(64 + sections.length * 24);
  const places = sections.map(([, data]) => {
    const at = size;
    size += align(data.byteLength);
    return at;
  });
  const buffer = new ArrayBuffer(size);
  const view = new DataView(buffer);
  new Uint8Array(buffer).set(new TextEncoder().encode("PFFLAME1"));
  view.setUint32(12, tree.frame.length, true);
  view.setUint32(16, frames.length, true);
  view.setUint32(20, strings.count, true);
  view.setFloat64(24, total, true);
  view.setUint32(40, sections.length, true);
  sections.forEach(([id, data], i) => {
    const entry = 64 + i * 24;
    view.setUint32(entry, id, true);
    view.setBigUint64(entry + 8, BigInt(places[i]), true);
    view.setBigUint64(entry + 16, BigInt(data.byteLength), true);
    new Uint8Array(buffer, places[i], data.byteLength).set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
  });
  return buffer;
}
