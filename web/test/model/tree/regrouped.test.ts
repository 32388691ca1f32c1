import assert from "node:assert/strict";
import { test } from "node:test";
import { FrameFlag } from "../../../src/model/tree/flame.ts";
import { findRegrouped, renamed } from "../../../src/model/tree/regrouped.ts";
import { decode, type Tree } from "../../trees.ts";
import { renameWideTree } from "../../wide_tree.ts";

const of = (groupBy: string, ...children: Tree[]) =>
  decode({ name: "root", children }, { metadata: { group_by: groupBy } });
const app = { mapping: "/usr/bin/app" };
const libc = { mapping: "/lib/libc.so.6" };
const add = { file: "/src/shop.cc", line: 3, ...app };
const main = { name: "main", file: "/src/main.cc", line: 1, ...app };

const simple = of("function", {
  ...main,
  children: [
    { ...add, name: "shop::add", self: 10, children: [{ ...libc, name: "malloc", self: 2 }] },
    { ...libc, name: "read", self: 1 },
  ],
});
const full = of("function", {
  ...main,
  children: [
    { ...add, name: "int shop::add<int>(int)", self: 7 },
    {
      ...add,
      name: "double shop::add<double>(double)",
      self: 3,
      children: [{ ...libc, name: "malloc", self: 2 }],
    },
    { ...libc, name: "read", self: 1 },
  ],
});
const mangled = of("function", {
  ...main,
  children: [
    { ...add, name: "_ZN4shop3addIiEET_S1_", self: 7 },
    {
      ...add,
      name: "_ZN4shop3addIdEET_S1_",
      self: 3,
      children: [{ ...libc, name: "malloc", self: 2 }],
    },
    { ...libc, name: "read", self: 1 },
  ],
});

type Flame = ReturnType<typeof of>;
const nodeOf = (flame: Flame, name: string) =>
  Array.from({ length: flame.nodeCount }, (_, i) => i).find(
    (node) => flame.frames.name(flame.frame[node]) === name,
  )!;
const found = (from: Flame, name: string, to: Flame) => {
  const { nodes, isFound, isSame } = findRegrouped(from, nodeOf(from, name), to);
  return [nodes.map((node) => to.frames.name(to.frame[node])), isFound, isSame];
};

test("a frame is found under another name by source location, then by value", () => {
  assert.deepEqual(found(full, "int shop::add<int>(int)", mangled), [
    ["_ZN4shop3addIiEET_S1_"],
    true,
    true,
  ]);
  assert.deepEqual(found(mangled, "_ZN4shop3addIdEET_S1_", full), [
    ["double shop::add<double>(double)"],
    true,
    true,
  ]);
  assert.deepEqual(found(full, "int shop::add<int>(int)", simple), [["shop::add"], true, false]);
  assert.deepEqual(found(simple, "shop::add", full), [
    ["int shop::add<int>(int)", "double shop::add<double>(double)"],
    true,
    true,
  ]);
  assert.deepEqual(found(simple, "malloc", full), [["malloc"], true, true]);
  assert.deepEqual(found(full, "read", mangled), [["read"], true, true]);
});

test("without a source location, frames are matched by the words of their names", () => {
  const then = of(
    "function",
    { name: "shop::sum", self: 5, ...app },
    { name: "other", self: 4, ...app },
  );
  const now = of(
    "function",
    { name: "_ZN4shop3sumEv", self: 5, ...app },
    { name: "_Z5thingv", self: 4, ...app },
  );
  assert.deepEqual(found(then, "shop::sum", now), [["_ZN4shop3sumEv"], true, true]);
  assert.deepEqual(found(then, "other", now), [["root"], false, false]);
});

test("a frame is found in every finer and coarser grouping", () => {
  const byLine = of(
    "line",
    {
      ...main,
      line: 7,
      children: [
        { ...add, name: "shop::add", line: 30, self: 8 },
        { ...libc, name: "read", self: 1 },
      ],
    },
    {
      ...main,
      line: 8,
      children: [
        {
          ...add,
          name: "shop::add",
          line: 31,
          self: 2,
          children: [{ ...libc, name: "malloc", self: 2 }],
        },
      ],
    },
  );
  const byAddress = of(
    "address",
    {
      ...main,
      name: "0x10 main",
      address: 0x10,
      children: [
        { ...add, name: "0x20 shop::add", address: 0x20, self: 8 },
        { ...libc, name: "0x90 read", address: 0x90, self: 1 },
      ],
    },
    {
      ...main,
      name: "0x14 main",
      address: 0x14,
      children: [
        {
          ...add,
          name: "0x24 shop::add",
          address: 0x24,
          self: 2,
          children: [{ ...libc, name: "0x80 malloc", address: 0x80, self: 2 }],
        },
      ],
    },
  );
  const byFile = of("file", {
    ...app,
    name: "/src/main.cc",
    file: "/src/main.cc",
    children: [
      {
        ...app,
        name: "/src/shop.cc",
        file: "/src/shop.cc",
        self: 10,
        children: [{ ...libc, name: "[libc.so.6]", self: 2 }],
      },
      { ...libc, name: "[libc.so.6]", self: 1 },
    ],
  });
  const byBinary = of("binary", {
    ...app,
    name: "app",
    self: 10,
    children: [{ ...libc, name: "libc.so.6", self: 3 }],
  });
  const byLabel = of("label:thread", {
    name: "io",
    flags: FrameFlag.Label,
    children: [
      {
        ...main,
        children: [
          { ...add, name: "shop::add", self: 10, children: [{ ...libc, name: "malloc", self: 2 }] },
          { ...libc, name: "read", self: 1 },
        ],
      },
    ],
  });
  assert.deepEqual(found(simple, "shop::add", byLine), [["shop::add", "shop::add"], true, true]);
  assert.deepEqual(found(byLine, "shop::add", simple), [["shop::add"], true, false]);
  assert.deepEqual(found(simple, "malloc", byAddress), [["0x80 malloc"], true, true]);
  assert.deepEqual(found(byAddress, "0x80 malloc", simple), [["malloc"], true, true]);
  assert.deepEqual(found(byLine, "malloc", byAddress), [["0x80 malloc"], true, true]);
  assert.deepEqual(found(simple, "shop::add", byFile), [["/src/shop.cc"], true, true]);
  assert.deepEqual(found(byFile, "/src/shop.cc", simple), [["shop::add"], true, true]);
  assert.deepEqual(found(simple, "malloc", byFile), [["[libc.so.6]"], true, true]);
  assert.deepEqual(found(simple, "shop::add", byBinary), [["app"], true, false]);
  assert.deepEqual(found(simple, "malloc", byBinary), [["libc.so.6"], true, false]);
  assert.deepEqual(found(byBinary, "libc.so.6", simple), [["malloc", "read"], true, true]);
  assert.deepEqual(found(simple, "malloc", byLabel), [["malloc"], true, true]);
  assert.deepEqual(found(byLabel, "malloc", simple), [["malloc"], true, true]);
  assert.deepEqual(found(byLabel, "io", simple), [["root"], false, false]);
});

test("the caller of a frame that a rule removed is found, and so are its callees", () => {
  const hidden = of("function", { ...main, children: [{ ...libc, name: "malloc", self: 2 }] });
  assert.deepEqual(found(simple, "shop::add", hidden), [["main"], false, false]);
  assert.deepEqual(found(simple, "malloc", hidden), [["malloc"], true, true]);
});

test("the names of a function in the other tree are sorted by value", () => {
  assert.deepEqual(renamed(simple, "shop::add", full), [
    "int shop::add<int>(int)",
    "double shop::add<double>(double)",
  ]);
  assert.deepEqual(renamed(full, "double shop::add<double>(double)", simple), ["shop::add"]);
  assert.deepEqual(renamed(simple, "nothing", full), []);
});

test("a function with 100,000 callers is found under its other name", () => {
  assert.deepEqual(renameWideTree(), ["_ZN2nsworkEi"]);
});
