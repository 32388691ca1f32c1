import assert from "node:assert/strict";
import { test } from "node:test";
import { FrameGrouper } from "../../src/local/grouping.ts";

test("a binary whose path consists of slashes has no name", () => {
  const grouper = new FrameGrouper("function");
  const place = { func: null, line: 0, isInlined: false, offset: 0x100n };
  const named = (mapping: string, address: bigint) =>
    grouper.frames[grouper.frame({ ...place, mapping, address })].name;
  assert.deepEqual(
    [named("/", 0x1000n), named("//", 0n), named("/a//", 0n), named("/a//", 1n), named("", 0n)],
    ["0x1000", "<unknown>", "[a]", "a+0x100", "<unknown>"],
  );
});
