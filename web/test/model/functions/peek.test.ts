import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeFlame, pathOf, type Flame } from "../../../src/model/tree/flame.ts";
import { listFunctions } from "../../../src/model/functions/functions.ts";
import { peek, type PeekRow } from "../../../src/model/functions/peek.ts";
import { bigFlame } from "../../big_flame.mjs";
import { bigTree, decode, type Tree } from "../../trees.ts";

/** Every stack with its self value, for a reader without a tree. */
function stacksOf(flame: Flame): { names: string[]; self: number; base: number }[] {
  return Array.from(flame.self, (self, node) => ({
    names: pathOf(flame, node)
      .slice(1)
      .map((at) => flame.frames.name(flame.frame[at])),
    self,
    base: flame.baseSelf ? flame.baseSelf[node] : 0,
  }));
}

type Sums = Record<string, [number, number]>;

function bruteForce(flame: Flame, name: string) {
  const callers: Sums = {};
  const callees: Sums = {};
  const sums: Record<"flat" | "cum" | "start", [number, number]> = {
    flat: [0, 0],
    cum: [0, 0],
    start: [0, 0],
  };
  for (const { names, self, base } of stacksOf(flame)) {
    const add = (all: Sums, key: string): unknown =>
      (all[key] = [(all[key]?.[0] ?? 0) + self, (all[key]?.[1] ?? 0) + base]);
    const above = new Set<string>();
    const below = new Set<string>();
    names.forEach((one, i) => {
      if (one !== name) return;
      if (i > 0 && names[i - 1] !== name) above.add(names[i - 1]);
      if (i + 1 < names.length && names[i + 1] !== name) below.add(names[i + 1]);
    });
    for (const caller of above) add(callers, caller);
    for (const callee of below) add(callees, callee);
    if (names.includes(name)) add(sums, "cum");
    if (names.at(-1) === name) add(sums, "flat");
    if (names[0] === name) add(sums, "start");
  }
  return { callers, callees, ...sums };
}

const asSums = (rows: readonly PeekRow[]): Sums =>
  Object.fromEntries(rows.map((row) => [row.name, [row.value, row.baseValue]]));

function checkAll(flame: Flame): void {
  for (const row of listFunctions(flame)) {
    const found = peek(flame, row.name)!;
    const expected = bruteForce(flame, row.name);
    assert.deepEqual(asSums(found.callers), expected.callers, `callers of ${row.name}`);
    assert.deepEqual(asSums(found.callees), expected.callees, `callees of ${row.name}`);
    assert.deepEqual(
      [
        [found.flat, found.baseFlat],
        [found.cum, found.baseCum],
      ],
      [expected.flat, expected.cum],
    );
    assert.deepEqual([found.flat, found.cum], [row.flat, row.cum]);
    assert.deepEqual([found.start?.value ?? 0, found.start?.baseValue ?? 0], expected.start);
    for (const rows of [found.callers, found.callees])
      for (let i = 1; i < rows.length; i++)
        assert.ok(
          Math.abs(rows[i - 1].value - rows[i - 1].baseValue) >=
            Math.abs(rows[i].value - rows[i].baseValue),
          "sorted by value",
        );
  }
}

test("callers and callees equal a brute-force count, also with recursion", () => {
  checkAll(decode(bigTree(1500, 40)));
});

test("both sides of a diff are counted, including negative values", () => {
  const tree = bigTree(600, 25);
  const visit = (node: Tree, at: number) => {
    node.base = (at * 37) % 90;
    if (at % 3 === 0) node.self = -(node.self ?? 0);
    node.children?.forEach((child, i) => visit(child, at + i + 1));
  };
  visit(tree, 1);
  checkAll(decode(tree, { isDiff: true }));
});

test("one sample has no callers and callees, and unknown functions return null", () => {
  const flame = decode({ name: "root", children: [{ name: "main", self: 5 }] });
  assert.deepEqual(peek(flame, "main"), {
    frame: flame.frame[1],
    flat: 5,
    baseFlat: 0,
    cum: 5,
    baseCum: 0,
    start: { value: 5, baseValue: 0 },
    callers: [],
    callees: [],
  });
  assert.equal(peek(flame, "root"), null);
  assert.equal(peek(flame, "nobody"), null);
});

test("a function that calls itself 5,000 deep has one caller and no edge to itself", () => {
  const root: Tree = { name: "root", children: [{ name: "main", self: 0, children: [] }] };
  let at = root.children![0];
  for (let i = 0; i < 5000; i++) {
    const child: Tree = { name: "again", self: 1, children: [] };
    at.children!.push(child);
    at = child;
  }
  const found = peek(decode(root), "again")!;
  assert.deepEqual([found.flat, found.cum, found.callees.length], [5000, 5000, 0]);
  assert.deepEqual(asSums(found.callers), { main: [5000, 0] });
});

test("lines of one function are summed, and callers that are different lines stay separate", () => {
  const line = (name: string, at: number, self: number, children: Tree[] = []) =>
    ({ name, line: at, file: "a.c", self, children }) as Tree;
  const root: Tree = {
    name: "root",
    children: [
      line("f", 1, 0, [line("g", 10, 3), line("g", 11, 4)]),
      line("f", 2, 0, [line("g", 10, 5)]),
    ],
  };
  const found = peek(decode(root, { metadata: { group_by: "line" } }), "g")!;
  assert.deepEqual([found.flat, found.cum], [12, 12]);
  assert.deepEqual(
    found.callers.map((row) => [row.name, row.value]),
    [
      ["f", 7],
      ["f", 5],
    ],
  );
});

test("a million nodes are counted in linear time", () => {
  const bytes: Buffer = bigFlame(1_000_000);
  const flame = decodeFlame(
    bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer,
  );
  const { name } = listFunctions(flame).sort((a, b) => b.cum - a.cum)[0];
  const before = process.cpuUsage();
  assert.ok(peek(flame, name)!.callees.length > 0);
  const { user, system } = process.cpuUsage(before);
  console.log(`# peek at a million nodes: ${((user + system) / 1000).toFixed(0)} ms of CPU`);
});
