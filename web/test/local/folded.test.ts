import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeFolded } from "../../src/local/folded.ts";

test("reads folded stacks of many lines with all notations of numbers", () => {
  assert.equal(decodeFolded("a;b 1\n".repeat(300_000)).start.length, 300_001);
  const profile = decodeFolded("a 1e3\nb +5\nc .5\nd 5.\ne 2.5e-1\nno value\n");
  assert.deepEqual([...profile.values], [100_000, 500, 50, 500, 25]);
  assert.equal(profile.sampleTypes[0].unit, "count/100");
  assert.deepEqual(profile.notes, ["1 line is not a stack with a value."]);
  assert.equal(decodeFolded("a 1e3\nb 1\n").sampleTypes[0].unit, "count");
  assert.equal(
    decodeFolded("a 99999999999999999999\nb -9223372036854775808\nc 1e19\nd 1\ne 1\n").notes[0],
    "2 lines are not stacks with a value.",
  );
});

test("counts frames without a name, and keeps white space outside ASCII in names", () => {
  const stacksOf = (text: string) => {
    const { frames, start, stack, values } = decodeFolded(text);
    return [...values].map((value, i) => [
      [...stack.slice(start[i], start[i + 1])].map((frame) => frames[frame].name).join("|"),
      value,
    ]);
  };
  assert.deepEqual(stacksOf("a;;b 5\n;a 3\na; 2\n; 1\n"), [
    ["a|<unknown>|b", 5],
    ["<unknown>|a", 3],
    ["a|<unknown>", 2],
    ["<unknown>|<unknown>", 1],
  ]);
  assert.deepEqual(
    stacksOf("a;b\u00a0 5\n\u2003c\t3\r\n\ufeffd 2\nf\u2028g 4\nh\u00a01\n\v i 1\f\n"),
    [
      ["a|b\u00a0", 5],
      ["\u2003c", 3],
      ["\ufeffd", 2],
      ["f\u2028g", 4],
      ["i", 1],
    ],
  );
  assert.deepEqual(stacksOf("a -2.5e-6\nb -2.5e-7\nc 9\n"), [
    ["a", -3],
    ["b", 0],
    ["c", 9e6],
  ]);
  assert.equal(
    decodeFolded(`a 1\na 2\nb 1.${"0".repeat(40)}\nc +9223372036854775807\nd ${"0".repeat(60)}7\n`)
      .notes[0],
    "2 lines are not stacks with a value.",
  );
});

test("frames may start like comments", () => {
  const profile = decodeFolded(
    "//pkg:lib;main 10\n# python;x 7\n//pkg:tool 3\nfoo;bar 5\n# samples: 9\n// of " +
      "9\n//\n#\n//nothing;more\n",
  );
  assert.deepEqual([...profile.values], [10, 7, 3, 5]);
  assert.deepEqual(profile.notes, []);
});

test("fewer decimals are kept if large values would not fit", () => {
  const profile = decodeFolded("a 9000000000000000\nb 1.123456\n");
  assert.equal(profile.sampleTypes[0].unit, "count/1000");
  assert.deepEqual([...profile.values], [9_000_000_000_000_000_000, 1123]);
});
