/*
 * path: a name for a node that does not depend on table order: a hash of the function names from the
 * root (left out) down to it. It stays the same in another upload of the same program.
 *
 * A name's hash is two 32-bit FNV-1a values over its UTF-8 bytes, from bases 0x811c9dc5 and
 * 0x9747b28c. Of a name like "0x4f2a10 main.run", which has frames grouped by address, the address
 * alone counts: the function's name may become known later, and the link stays. A node's hash is, per
 * half, fmix32(parent ^ rotl(name, 5) + 0x9e3779b9); the root's is 0. Written as 16 hexadecimal
 * digits, high half first.
 */
import type { Flame, FrameTable } from "./flame.ts";

const bases = [0x811c9dc5, 0x9747b28c] as const;

const [zero, nine, a, f, x, blank] = [..."09afx "].map((letter) => letter.charCodeAt(0));

/** The bytes of a string that count. */
function countedBytes(frames: FrameTable, id: number): Uint8Array {
  const bytes = frames.stringSpan(id);
  if (bytes[0] !== zero || bytes[1] !== x) return bytes;
  let i = 2;
  while ((bytes[i] >= zero && bytes[i] <= nine) || (bytes[i] >= a && bytes[i] <= f)) i++;
  return i > 2 && bytes[i] === blank ? bytes.subarray(0, i) : bytes;
}

function hashBytes(bytes: Uint8Array, base: number): number {
  let hash = base;
  for (let i = 0; i < bytes.length; i++) hash = Math.imul(hash ^ bytes[i], 0x01000193);
  return hash;
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
    const bytes = countedBytes(flame.frames, flame.frames.nameId[flame.frame[at]]);
    high = mix(high, hashBytes(bytes, bases[0]));
    low = mix(low, hashBytes(bytes, bases[1]));
  }
  return hex(high) + hex(low);
}

/** The first node of that hash, or -1. One linear loop. */
export function findByPathHash(flame: Flame, hash: string): number {
  if (!/^[0-9a-f]{16}$/.test(hash)) return -1;
  const wantHigh = parseInt(hash.slice(0, 8), 16) | 0;
  const wantLow = parseInt(hash.slice(8), 16) | 0;
  const { frames, frame, parentDelta, nodeCount } = flame;
  const nameHigh = new Int32Array(frames.count);
  const nameLow = new Int32Array(frames.count);
  for (let i = 0; i < frames.count; i++) {
    const bytes = countedBytes(frames, frames.nameId[i]);
    nameHigh[i] = hashBytes(bytes, bases[0]);
    nameLow[i] = hashBytes(bytes, bases[1]);
  }
  const high = new Int32Array(nodeCount);
  const low = new Int32Array(nodeCount);
  for (let i = 1; i < nodeCount; i++) {
    high[i] = mix(high[i - parentDelta[i]], nameHigh[frame[i]]);
    low[i] = mix(low[i - parentDelta[i]], nameLow[frame[i]]);
    if (high[i] === wantHigh && low[i] === wantLow) return i;
  }
  return -1;
}
