import assert from "node:assert/strict";
import { test } from "node:test";
import { toPprof } from "../../src/export/pprof_form.ts";
import { visibleTree } from "../../src/export/visible_tree.ts";
import { decodeFlame, FrameFlag } from "../../src/model/tree/flame.ts";
import { writeFlame } from "../../src/model/tree/flame_bytes.ts";

test("a kernel address, which exceeds the range of a number, is kept and exported", () => {
  const address = 0xffffffff81012345n;
  const frame = {
    name: "0xffffffff81012345 leaf",
    file: "",
    line: 0,
    mapping: "[kernel.kallsyms]",
    address,
    flags: FrameFlag.Kernel,
  };
  const bytes = writeFlame({
    tree: {
      frame: Uint32Array.of(0, 1),
      parentDelta: Uint32Array.of(0, 1),
      self: Float64Array.of(0, 1),
      baseSelf: null,
    },
    frames: [{ ...frame, name: "root", address: 0n, flags: 0 }, frame],
    total: 1,
    baseTotal: 0,
    isCut: false,
    metadata: { group_by: "address" },
  });
  const flame = decodeFlame(bytes);
  assert.deepEqual([flame.frames.address(0), flame.frames.address(1)], [0n, address]);
  const varint = [];
  for (let rest = address; rest; rest >>= 7n)
    varint.push(Number(rest & 127n) | (rest > 127n ? 128 : 0));
  assert.ok(
    Buffer.from(toPprof(visibleTree(flame, 0), "")).includes(Buffer.from([3 * 8, ...varint])),
    "field 3 of its location",
  );
});
