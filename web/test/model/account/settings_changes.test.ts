import assert from "node:assert/strict";
import { test } from "node:test";
import { changesOf, type ListEntry } from "../../../src/model/account/settings_changes.ts";

const list = (...texts: string[]): ListEntry[] =>
  texts.map((one) => {
    const [key, text = ""] = one.split("=");
    return { key, name: `Rule ${key}`, text };
  });

test("new, changed and removed entries are listed by name", () => {
  assert.deepEqual(changesOf(list("a=1", "b=2", "c=3"), list("a=1", "b=5", "d=4")), [
    "Rule b: 5 (was: 2)",
    "Rule d: 4 (new)",
    "Rule c (removed)",
  ]);
  assert.deepEqual(changesOf(list("a=1"), list("a=1")), []);
});

test("a changed order is reported unless it results from new or removed entries", () => {
  assert.deepEqual(changesOf(list("a", "b", "c"), list("b", "a", "c")), ["The order has changed."]);
  assert.deepEqual(changesOf(list("a", "b", "c"), list("n", "a", "c")), [
    "Rule n:  (new)",
    "Rule b (removed)",
  ]);
});

test("only the first of many changes are listed, with the number of the others", () => {
  const texts = changesOf([], list(..."abcdefghijkl"));
  assert.equal(texts.length, 9);
  assert.equal(texts[8], "and 4 more");
});
