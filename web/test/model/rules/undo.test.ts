import assert from "node:assert/strict";
import { test } from "node:test";
import type { Rule } from "../../../src/model/rules/chain.ts";
import { Undo, type Filters } from "../../../src/model/rules/undo.ts";

const rule = (text: string): Rule => ({ action: "focus", text, isOff: false });
const filters = (...texts: string[]): Filters => ({ rules: texts.map(rule), labels: [] });

test("undo and redo step through the filters that were set", () => {
  const undo = new Undo(filters());
  undo.push(filters("a"));
  undo.push(filters("a", "b"));
  undo.push(filters());
  assert.deepEqual(undo.undo(), filters("a", "b"));
  assert.deepEqual(undo.undo(), filters("a"));
  assert.deepEqual(undo.redo(), filters("a", "b"));
  undo.push(filters("c"));
  assert.equal(undo.redo(), undefined);
  assert.deepEqual(undo.undo(), filters("a", "b"));
});

test("back and forward in the history count as undo and redo", () => {
  const undo = new Undo(filters());
  undo.push(filters("a"));
  undo.follow(filters("a"));
  undo.follow(filters());
  assert.equal(undo.undo(), undefined);
  assert.deepEqual(undo.redo(), filters("a"));
  undo.push(filters("a", "b"));
  undo.follow(filters("a"));
  assert.deepEqual(undo.undo(), filters());
  undo.follow(filters("a"));
  undo.follow(filters("z"));
  assert.deepEqual(undo.undo(), filters("a"));
});

test("if the history of the filters is unknown, undo removes the last filter", () => {
  const undo = new Undo({ rules: [rule("a"), rule("b")], labels: ["k=v"] });
  assert.deepEqual(undo.undo(), { rules: [rule("a")], labels: ["k=v"] });
  assert.deepEqual(undo.undo(), { rules: [], labels: ["k=v"] });
  assert.deepEqual(undo.undo(), { rules: [], labels: [] });
  assert.equal(undo.undo(), undefined);
  assert.deepEqual(undo.redo(), { rules: [], labels: ["k=v"] });
});
