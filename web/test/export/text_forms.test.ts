import assert from "node:assert/strict";
import { test } from "node:test";
import { toFolded } from "../../src/export/text_forms.ts";

test("decimals are written in the notation in which they were read", () => {
  const tree = {
    metadata: { unit: "count/100" },
    frames: [{ name: "all" }, { name: "a" }, { name: "b" }],
    frame: Uint32Array.of(0, 1, 2),
    parent: Uint32Array.of(0, 0, 1),
    self: Float64Array.of(0, 500, 25),
    baseSelf: null,
  } as unknown as Parameters<typeof toFolded>[0];
  const text = (seen: typeof tree) =>
    toFolded(seen)
      .map((bytes) => new TextDecoder().decode(bytes))
      .join("");
  assert.equal(text(tree), "a 5\na;b 0.25\n");
  assert.equal(text({ ...tree, baseSelf: Float64Array.of(0, 0, 10) }), "a 0 5\na;b 0.1 0.25\n");
});

test("control characters of names become spaces in folded stacks", () => {
  const tree = {
    metadata: {},
    frames: [{ name: "all" }, { name: "a\u009b2J;b\x7f\n\x80\x9f\xa0" }],
    frame: Uint32Array.of(0, 1),
    parent: Uint32Array.of(0, 0),
    self: Float64Array.of(0, 5),
    baseSelf: null,
  } as unknown as Parameters<typeof toFolded>[0];
  assert.equal(new TextDecoder().decode(toFolded(tree)[0]), "a 2J:b    \xa0 5\n");
});
