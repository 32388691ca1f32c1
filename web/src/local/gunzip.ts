/*
 * gunzip: decompresses gzip data of one member or of several concatenated members ("cat a.gz
 * b.gz").
 *
 * The browser's decoder accepts exactly one member and does not report where it ends. If it refuses
 * the whole data, the data is cut at every position where a member's header can start. A cut is
 * right if the decoder accepts the part before it, because the decoder verifies length and
 * checksum.
 */
import { LocalError, RefusedError } from "./profile.ts";

/**
 * The maximum number of wrong cuts: data may contain the bytes of a header by chance, but hardly
 * more than once.
 */
const maxWrongCuts = 32;

export const tooLarge = "The file is too large to be read in the browser.";
const notWhole = "The file is incomplete: its gzip data cannot be unpacked.";

class TooLarge extends LocalError {}

/** null: these bytes are not a complete member. */
async function unpackMember(
  bytes: Uint8Array<ArrayBuffer>,
  maxBytes: number,
): Promise<Uint8Array[] | null> {
  const parts: Uint8Array[] = [];
  let size = 0;
  const reader = new Blob([bytes])
    .stream()
    .pipeThrough(new DecompressionStream("gzip"))
    .getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return parts;
      size += value.length;
      if (size > maxBytes) throw new TooLarge(tooLarge);
      parts.push(value);
    }
  } catch (error) {
    if (error instanceof TooLarge) {
      void reader.cancel().catch(() => undefined);
      throw error;
    }
    return null;
  }
}

/**
 * The next position from `at` on where a header can start: magic, deflate, no reserved flag, a
 * known compression level.
 */
function nextHeader(bytes: Uint8Array, at: number): number {
  for (;;) {
    const found = bytes.indexOf(0x1f, at);
    // the shortest header has 10 bytes, and length and checksum at the end 8
    if (found < 0 || found + 18 > bytes.length) return bytes.length;
    const isHeader = bytes[found + 1] === 0x8b && bytes[found + 2] === 8 && bytes[found + 3] < 0x20;
    if (isHeader && (bytes[found + 8] === 0 || bytes[found + 8] === 2 || bytes[found + 8] === 4))
      return found;
    at = found + 1;
  }
}

const sizeOf = (parts: readonly Uint8Array[]) => parts.reduce((sum, part) => sum + part.length, 0);

function join(parts: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(sizeOf(parts));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/**
 * Throws RefusedError if the data is broken, and LocalError if it is larger than maxBytes
 * uncompressed or has to be cut at too many positions.
 */
export async function gunzip(
  bytes: Uint8Array<ArrayBuffer>,
  maxBytes: number,
): Promise<Uint8Array> {
  const whole = await unpackMember(bytes, maxBytes);
  if (whole) return join(whole);
  const parts: Uint8Array[] = [];
  let left = maxBytes;
  let wrongCuts = 0;
  for (
    let from = 0, to = nextHeader(bytes, 1);
    from < bytes.length;
    to = nextHeader(bytes, to + 1)
  ) {
    const member = await unpackMember(bytes.subarray(from, to), left);
    if (member) {
      for (const part of member) parts.push(part);
      left -= sizeOf(member);
      from = to;
    } else if (to === bytes.length) throw new RefusedError(notWhole);
    else if (++wrongCuts > maxWrongCuts) throw new LocalError(notWhole);
  }
  return join(parts);
}
