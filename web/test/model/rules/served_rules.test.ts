import assert from "node:assert/strict";
import { test } from "node:test";
import { formatChain, parseChain } from "../../../src/model/rules/chain.ts";
import { boundsAfter, servedRules, splitRules } from "../../../src/model/rules/served_rules.ts";
import { describeNode } from "../../../src/views/foot/describe.ts";
import { pairText } from "../../../src/views/graph/graph_box.ts";
import { decode, small } from "../../trees.ts";

const split = (chain: string, group = "function", labels = 0, ofFunctions?: boolean[]) => {
  const { served, rest } = splitRules(parseChain(chain), group, labels, ofFunctions);
  return [formatChain(served), formatChain(rest)];
};

test("the server applies the leading rules that have the same meaning in server and page", () => {
  assert.deepEqual(split("focus:a~ignore:b~hide:c~show:d"), ["focus:a~ignore:b~hide:c~show:d", ""]);
  assert.deepEqual(split("focus:a~hide:c~ignore:b~hide:d"), ["focus:a~hide:c", "ignore:b~hide:d"]);
  assert.deepEqual(split("only:go~focus:a"), ["", "only:go~focus:a"]);
  assert.deepEqual(split("focus:a~merge:b~focus:c"), ["focus:a", "merge:b~focus:c"]);
  assert.deepEqual(
    split("focus:a", "file"),
    ["", "focus:a"],
    "with this grouping the server matches functions, the page files",
  );
  assert.deepEqual(
    split("focus:a~focus:b", "line", 31),
    ["focus:a", "focus:b"],
    "the server accepts 32 rules, including labels",
  );
  assert.deepEqual(servedRules(parseChain("focus:a~hide:b~show:c~hide:d~focus:e")), {
    focus: ["a", "e"],
    ignore: [],
    hide: ["b", "d"],
    show: ["c"],
  });
});

test("grouped by file or binary, the server applies rules about functions in any position", () => {
  const chain = "focus:a~ignore:f~hide:b~focus:c";
  assert.deepEqual(split(chain, "file", 0, [true, true, true, true]), [
    "focus:a~ignore:f~hide:b",
    "focus:c",
  ]);
  assert.deepEqual(split(chain, "file", 0, [false, true, true, true]), [
    "ignore:f",
    "focus:a~hide:b~focus:c",
  ]);
  assert.deepEqual(split(chain, "binary", 0, [true, false, true, true]), [
    "focus:a",
    "ignore:f~hide:b~focus:c",
  ]);
  assert.deepEqual(split("merge:m~focus:a~hide:b", "file", 0, [true, true, true]), [
    "",
    "merge:m~focus:a~hide:b",
  ]);
  assert.deepEqual(split(chain, "label:thread", 0), ["", chain]);
});

test("the numbers of a truncated tree have the bounds of what may be missing", () => {
  const bounds = (chain: string, isCut: boolean, tree = small) => {
    const { node, part, whole } = boundsAfter(decode(tree, { isCut }), parseChain(chain));
    return [node, part, whole].map((bound) => bound.trim());
  };
  assert.deepEqual(bounds("ignore:a", false), ["", "", ""]);
  assert.deepEqual(
    bounds("", true),
    ["", "≥", ""],
    "a node's value is exact, a function may have more",
  );
  assert.deepEqual(bounds("focus:a", true), ["≥", "≥", "≥"]);
  assert.deepEqual(bounds("merge:a", true), ["≥", "≥", ""]);
  assert.deepEqual(bounds("hide:a", true), ["≥", "≥", "≈"]);
  assert.deepEqual(bounds("focus:a~ignore:b", true), ["≈", "≈", "≈"]);
  const negative = {
    name: "root",
    children: [
      { name: "a", self: 5 },
      { name: "b", self: -2 },
    ],
  };
  assert.deepEqual(
    bounds("focus:a", true, negative),
    ["≈", "≈", "≈"],
    "the missing part may be negative",
  );
});

test("bounds are shown with every number of a truncated tree", () => {
  const flame = decode(small, { isCut: true });
  const focused = { ...flame, bounds: boundsAfter(flame, parseChain("focus:a")) };
  assert.equal(describeNode(flame, 1, "count").facts[0][1], "6 (60.0%)");
  assert.equal(describeNode(focused, 1, "count").facts[0][1], "≥ 6 (60.0%)");
  assert.equal(describeNode(focused, 0, "count").facts[0][1], "≥ 10 (100%)");
  assert.equal(pairText(flame, [6, 0], "count"), "≥ 6 (60.0%)");
});
