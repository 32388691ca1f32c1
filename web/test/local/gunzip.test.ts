/* gunzip: one member or several, cut at their ends, and never more output than allowed. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { gunzipSync, gzipSync, inflateRawSync } from "node:zlib";
import { gunzip } from "../../src/local/gunzip.ts";

/**
 * Accepts exactly one member, like browsers; node's own decoder accepts several. zlib's headers
 * have ten bytes.
 */
class OneMember extends TransformStream<Uint8Array, Uint8Array> {
  constructor() {
    const parts: Uint8Array[] = [];
    super({
      transform: (part) => void parts.push(part),
      flush(controller) {
        const all = Buffer.concat(parts);
        const { engine } = inflateRawSync(all.subarray(10), { info: true } as never) as unknown as {
          engine: { bytesWritten: number };
        };
        if (10 + engine.bytesWritten + 8 !== all.length)
          throw new TypeError("junk behind the data");
        controller.enqueue(gunzipSync(all));
      },
    });
  }
}
globalThis.DecompressionStream = OneMember as never;

const unpack = async (data: Buffer, maxBytes = 1 << 20) =>
  Buffer.from(await gunzip(new Uint8Array(data), maxBytes));
const noise = (size: number) => {
  let state = 7;
  return Buffer.from(
    Array.from(
      { length: size },
      () => ((state = Math.imul(state, 1664525) + 1013904223) >>> 24) & 255,
    ),
  );
};

test("concatenated members are decompressed as one file", async () => {
  const parts = [
    Buffer.from("main;a 1\n"),
    Buffer.alloc(0),
    noise(9000),
    Buffer.alloc(70_000, "x"),
  ];
  assert.deepEqual(
    await unpack(Buffer.concat(parts.map((part) => gzipSync(part)))),
    Buffer.concat(parts),
  );
});

test("bytes that look like a header within the data do not split a member", async () => {
  const inner = gzipSync(noise(500));
  const data = Buffer.concat([inner, noise(300), inner]);
  const stored = gzipSync(data, { level: 0 });
  assert.ok(stored.indexOf(inner) > 0, "the compressed bytes contain the header");
  assert.deepEqual(await unpack(Buffer.concat([stored, stored])), Buffer.concat([data, data]));
});

test("the size limit applies to the sum of all members", async () => {
  const member = gzipSync(Buffer.alloc(600));
  assert.equal((await unpack(Buffer.concat([member, member]), 1200)).length, 1200);
  await assert.rejects(unpack(Buffer.concat([member, member]), 1199), /too large/);
});

test("a truncated member, trailing data, and a file of false headers are refused", async () => {
  const member = gzipSync(noise(2000));
  const header = gzipSync(Buffer.alloc(0)).subarray(0, 10);
  for (const tail of [
    member.subarray(0, -1),
    Buffer.from("junk"),
    Buffer.concat(Array.from({ length: 5000 }, () => header)),
  ])
    await assert.rejects(unpack(Buffer.concat([member, tail])), /incomplete/);
});
