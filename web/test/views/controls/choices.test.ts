import assert from "node:assert/strict";
import { test } from "node:test";
import { sampleTypeLabel, sampleTypeToken } from "../../../src/views/controls/choices.ts";

test("sample types are distinguished by unit, and by index if they have no name", () => {
  const types = [
    ["", "count"],
    ["cpu", "nanoseconds"],
    ["", ""],
    ["x", "count"],
    ["x", "bytes"],
  ].map(([type, unit]) => ({ type, unit }));
  const labels = types.map((_, index) => sampleTypeLabel(types, index));
  assert.deepEqual(labels, ["type 0 (count)", "cpu", "type 2", "x (count)", "x (bytes)"]);
  assert.deepEqual(
    types.map((_, index) => sampleTypeToken(types, index)),
    ["0", "cpu", "2", "3", "4"],
  );
});
