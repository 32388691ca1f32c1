/*
 * path: identifies a node independent of table order, by a hash of the frames from the root
 * (excluded) to the node. It is the same in another upload of the same program.
 *
 * A frame's hash is two 32-bit FNV-1a values over some bytes, from bases 0x811c9dc5 and 0x9747b28c.
 * The bytes are the properties that define a frame, so siblings differ:
 *   line      name, 0, file, 0, line (u32 little-endian)
 *   address   "0x4f2a10", 0, mapping: the name of an address may become known later, and the link
 *             stays valid; a frame without an address as by line
 *   others    name
 * A node's hash is, per half, fmix32(parent ^ rotl(frame, 5) + 0x9e3779b9); the root's is 0. It is
 * written as 16 hexadecimal digits, high half first. lib/profile/report/path_hash.h computes the
 * same.
 *
 * Links of earlier versions contain hashes of names alone; for a name like "0x4f2a10 main.run", of
 * the address alone. Such a link refers to the first node with that hash.
 *
 * Links may also be from before symbolization: then the frame of an address in a file was named
 * "[app]" or by the address, and had no inlined calls, which now are on the path of their caller.
 */
import { FrameFlag, type Flame } from "./flame.ts";

/**
 * The hashed properties of a frame: 0 all that define it, 1 the name alone, 2 the name before
 * symbolization, without inlined frames.
 */
type Form = 0 | 1 | 2;

const bases = [0x811c9dc5, 0x9747b28c] as const;
const prime = 0x01000193;

const [zero, nine, a, f, x, blank] = [..."09afx "].map((letter) => letter.charCodeAt(0));

/** The address at the start of a string, or the whole string. */
function addressOf(bytes: Uint8Array): Uint8Array {
  if (bytes[0] !== zero || bytes[1] !== x) return bytes;
  let i = 2;
  while ((bytes[i] >= zero && bytes[i] <= nine) || (bytes[i] >= a && bytes[i] <= f)) i++;
  return i > 2 && bytes[i] === blank ? bytes.subarray(0, i) : bytes;
}

/** The bytes of a frame that are hashed, in parts separated by 0. */
function countedParts(
  { frames, metadata }: Flame,
  frame: number,
  form: Form,
): (Uint8Array | number[])[] {
  const name = frames.stringSpan(frames.nameId[frame]);
  if (form === 1) return [addressOf(name)];
  const file = (ids: Uint32Array | null) =>
    (ids ? frames.stringSpan(ids[frame]) : []) as Uint8Array;
  const isByAddress = metadata.group_by === "address";
  if (isByAddress && frames.address(frame) !== 0n) return [addressOf(name), file(frames.mappingId)];
  const mapping = form === 2 ? frames.mapping(frame) : "";
  if (mapping && mapping[0] !== "[") {
    const raw = new TextEncoder().encode(`[${mapping.slice(mapping.lastIndexOf("/") + 1)}]`);
    return metadata.group_by === "line" ? [raw, [], [0, 0, 0, 0]] : [raw];
  }
  if (!isByAddress && metadata.group_by !== "line") return [name];
  const line = frames.line(frame);
  return [
    name,
    file(frames.fileId),
    [line & 255, (line >> 8) & 255, (line >> 16) & 255, line >>> 24],
  ];
}

/** Both halves of a frame's hash. */
function hashFrame(flame: Flame, frame: number, form: Form = 0): [high: number, low: number] {
  let [high, low]: [number, number] = [...bases];
  countedParts(flame, frame, form).forEach((part, at) => {
    if (at > 0) {
      high = Math.imul(high, prime);
      low = Math.imul(low, prime);
    }
    for (let i = 0; i < part.length; i++) {
      high = Math.imul(high ^ part[i], prime);
      low = Math.imul(low ^ part[i], prime);
    }
  });
  return [high, low];
}

function mix(parent: number, name: number): number {
  let hash = (parent ^ (((name << 5) | (name >>> 27)) + 0x9e3779b9)) | 0;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}

const hex = (value: number) => (value >>> 0).toString(16).padStart(8, "0");

export function pathHash(flame: Flame, node: number): string {
  const path: number[] = [];
  for (let at = node; at > 0; at -= flame.parentDelta[at]) path.push(at);
  let high = 0;
  let low = 0;
  for (const at of path.reverse()) {
    const hash = hashFrame(flame, flame.frame[at]);
    high = mix(high, hash[0]);
    low = mix(low, hash[1]);
  }
  return hex(high) + hex(low);
}

/** Adds the nodes with the wanted hashes to `found` and removes these hashes from `wanted`. */
function find(flame: Flame, wanted: Set<string>, form: Form, found: Map<string, number>): void {
  const { frames, frame, parentDelta, nodeCount } = flame;
  const frameHigh = new Int32Array(frames.count);
  const frameLow = new Int32Array(frames.count);
  for (let i = 0; i < frames.count; i++) [frameHigh[i], frameLow[i]] = hashFrame(flame, i, form);
  const high = new Int32Array(nodeCount);
  const low = new Int32Array(nodeCount);
  // A filter by 16 bits of the hash, so that most nodes are not formatted as text.
  const isLikely = new Uint8Array(0x10000);
  for (const hash of wanted) isLikely[parseInt(hash.slice(4, 8), 16)] = 1;
  for (let i = 1; i < nodeCount && wanted.size > 0; i++) {
    if (form === 2 && frames.flags(frame[i]) & FrameFlag.Inlined) {
      high[i] = high[i - parentDelta[i]];
      low[i] = low[i - parentDelta[i]];
      continue;
    }
    high[i] = mix(high[i - parentDelta[i]], frameHigh[frame[i]]);
    low[i] = mix(low[i - parentDelta[i]], frameLow[frame[i]]);
    if (isLikely[high[i] & 0xffff] === 0) continue;
    const hash = hex(high[i]) + hex(low[i]);
    if (wanted.delete(hash)) found.set(hash, i);
  }
}

/**
 * The first node with each hash, if any. One to three linear loops, independent of the number of
 * hashes.
 */
export function findByPathHashes(flame: Flame, hashes: readonly string[]): Map<string, number> {
  const found = new Map<string, number>();
  const wanted = new Set(hashes.filter((hash) => /^[0-9a-f]{16}$/.test(hash)));
  for (const form of [0, 1, 2] as const) if (wanted.size > 0) find(flame, wanted, form, found);
  return found;
}

/** The first node with that hash, or -1. */
export const findByPathHash = (flame: Flame, hash: string): number =>
  findByPathHashes(flame, [hash]).get(hash) ?? -1;
