import assert from "node:assert/strict";
import { test } from "node:test";
import { FrameFlag } from "../../../src/model/tree/flame.ts";
import { describeNode } from "../../../src/views/foot/describe.ts";
import { decode } from "../../trees.ts";

test("a frame is described by values, shares, source file, binary and kind", () => {
  const flame = decode({
    name: "root",
    children: [
      {
        name: "run",
        file: "src/app.py",
        mapping: "/usr/bin/app",
        flags: FrameFlag.Interpreted | FrameFlag.Inlined,
        self: 25,
        children: [{ name: "x", self: 75 }],
      },
      { name: "y", self: 100 },
    ],
  });
  const at = [...flame.frame].findIndex((frame) => flame.frames.name(frame) === "run");
  const { name, place, notes, facts } = describeNode(flame, at, "ns");
  assert.equal(name, "run");
  assert.equal(place, "src/app.py");
  assert.deepEqual(facts, [
    ["Total", "100 ns (50.0%)"],
    ["Self", "25 ns (12.5%)"],
  ]);
  for (const note of ["inlined", "interpreted", "app"]) assert.ok(notes.includes(note), `${notes}`);
});

test("a frame of a diff is described by the values before and after and the change", () => {
  const flame = decode(
    {
      name: "root",
      children: [
        { name: "a", self: 30, base: 10 },
        { name: "b", self: 70, base: 90 },
      ],
    },
    { isDiff: true },
  );
  const at = [...flame.frame].findIndex((frame) => flame.frames.name(frame) === "a");
  const facts = new Map(describeNode(flame, at, "ns").facts);
  assert.equal(facts.get("Before"), "10 ns (10.0%)");
  assert.equal(facts.get("After"), "30 ns (30.0%)");
  assert.equal(facts.get("Self"), "10 ns → 30 ns");
  assert.match(facts.get("Change")!, /20 ns \(.*200/);
});
