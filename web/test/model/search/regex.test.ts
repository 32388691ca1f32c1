import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Pattern } from "../../../src/model/search/regex.ts";

/** tests/integration/share/test_regex.py runs the same cases against the server. */
const cases: { names: string[]; accepted: [string, string[]][]; refused: string[] } = JSON.parse(
  readFileSync(
    new URL("../../../../tests/integration/share/regex_cases.json", import.meta.url),
    "utf8",
  ),
);

test("expressions match the same names as on the server", () => {
  for (const [text, names] of cases.accepted) {
    const pattern = new Pattern(text, false);
    assert.deepEqual(
      cases.names.filter((name) => pattern.test(name)),
      names,
      text,
    );
  }
});

test("backtracking and the NFA give the same matches", () => {
  for (const [text, names] of cases.accepted) {
    // A nested part after it selects the other matcher without changing the meaning.
    const isMarked = text.startsWith("(?i)");
    const pattern = new Pattern(
      `${isMarked ? "(?i)" : ""}(?:${isMarked ? text.slice(4) : text})((a|)*)*`,
      false,
    );
    assert.equal(pattern.stepsFor(1) > 1, true);
    assert.deepEqual(
      cases.names.filter((name) => pattern.test(name)),
      names,
      text,
    );
  }
});

test("expressions that the server refuses are refused with a reason", () => {
  for (const text of cases.refused)
    assert.throws(() => new Pattern(text, false), /^Error: The expression .{10,}\.$/, text);
});

test("random expressions match the same names as the browser's engine", () => {
  let seed = 3;
  const random = (below: number) => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) % below;
  const pick = (from: string[]) => from[random(from.length)];
  const make = (depth: number): string => {
    if (depth === 0) return pick(["a", "b", "[ab]", "[^a]", ".", "\\w"]);
    const inner = () => make(depth - 1);
    return pick([
      `${inner()}${inner()}`,
      `(${inner()}|${inner()})`,
      `(?:${inner()})${pick(["*", "+", "?", "{2}", "{1,2}", "{0,}"])}`,
      `(^|a)${inner()}`,
      `${inner()}\\b`,
      `${inner()}$`,
    ]);
  };
  const names = Array.from({ length: 40 }, (_, i) =>
    Array.from({ length: i % 8 }, () => pick(["a", "b", "."])).join(""),
  );
  for (let i = 0; i < 300; i++) {
    const text = make(3);
    const [pattern, own] = [new Pattern(text, false), new RegExp(text, "u")];
    for (const name of names)
      assert.equal(pattern.test(name), own.test(name), `${text} on ${name}`);
  }
});
