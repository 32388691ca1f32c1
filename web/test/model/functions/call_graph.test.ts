import assert from "node:assert/strict";
import { test } from "node:test";
import { callGraph, type CallGraph } from "../../../src/model/functions/call_graph.ts";
import { labelledShare } from "../../../src/model/functions/call_pair.ts";
import { decodeFlame, FrameFlag, pathOf, type Flame } from "../../../src/model/tree/flame.ts";
import {
  groupFrames,
  listFunctions,
  type FunctionRow,
} from "../../../src/model/functions/functions.ts";
import { layoutGraph, type Point } from "../../../src/model/functions/graph_layout.ts";
import { peek } from "../../../src/model/functions/peek.ts";
import { bigFlame } from "../../big_flame.mjs";
import { bigTree, decode, type Tree } from "../../trees.ts";

function graphOf(flame: Flame, most: number) {
  const { groupOf, first } = groupFrames(flame);
  const isOther = Uint8Array.from(first, (frame) =>
    flame.frames.flags(frame) & FrameFlag.Other ? 1 : 0,
  );
  const graph = callGraph(flame, { groupOf, isOther }, most);
  return { graph, name: (i: number) => flame.frames.name(first[graph.nodes[i].group]) };
}

/** Every edge between the chosen functions, counted from whole stacks, like pprof. */
function bruteEdges(flame: Flame, chosen: Set<string>) {
  const sums = new Map<string, { sum: [number, number]; direct: [number, number] }>();
  for (let node = 1; node < flame.nodeCount; node++) {
    const held: [number, number] = [flame.self[node], flame.baseSelf ? flame.baseSelf[node] : 0];
    const seen = { sum: new Set<string>(), direct: new Set<string>() };
    let from = "";
    let isDirect = true;
    for (const at of pathOf(flame, node).slice(1)) {
      const name = flame.frames.name(flame.frame[at]);
      if (!chosen.has(name)) {
        isDirect = false;
        continue;
      }
      if (from && from !== name) {
        seen.sum.add(`${from} ${name}`);
        if (isDirect) seen.direct.add(`${from} ${name}`);
      }
      from = name;
      isDirect = true;
    }
    for (const kind of ["sum", "direct"] as const)
      for (const edge of seen[kind]) {
        if (!sums.has(edge)) sums.set(edge, { sum: [0, 0], direct: [0, 0] });
        const both = sums.get(edge)![kind];
        both[0] += held[0];
        both[1] += held[1];
      }
  }
  return sums;
}

/** The names of functions with at least 0.3 / most of the largest one. */
function largeEnough(
  rows: readonly FunctionRow[],
  held: (row: FunctionRow) => number,
  most: number,
): Set<string> {
  const largest = Math.max(...rows.map(held));
  return new Set(rows.filter((row) => held(row) * most >= largest * 0.3).map((row) => row.name));
}

function check(flame: Flame, most: number): CallGraph {
  const { graph, name } = graphOf(flame, most);
  const rows = new Map(listFunctions(flame).map((row) => [row.name, row]));
  assert.equal(graph.functionCount, rows.size);
  const [byFlat, byCum] = [
    largeEnough([...rows.values()], (row) => Math.abs(row.flat - row.baseFlat), most),
    largeEnough(
      [...rows.values()],
      (row) => Math.max(Math.abs(row.cum), Math.abs(row.baseCum)),
      most,
    ),
  ];
  const drawn = new Set(graph.nodes.map((_, i) => name(i)));
  assert.ok([...drawn].every((one) => byFlat.has(one) || byCum.has(one)) && drawn.size <= most);
  assert.ok(drawn.size === most || [...byCum].every((one) => drawn.has(one)));
  assert.ok(byFlat.size > most >> 1 || [...byFlat].every((one) => drawn.has(one)));
  graph.nodes.forEach((node, i) => {
    const row = rows.get(name(i))!;
    assert.deepEqual(
      [node.flat, node.cum],
      [
        [row.flat, row.baseFlat],
        [row.cum, row.baseCum],
      ],
    );
    assert.equal(flame.frames.name(flame.frame[node.node]), name(i));
  });
  const expected = bruteEdges(flame, new Set(graph.nodes.map((_, i) => name(i))));
  assert.equal(graph.edgeCount, expected.size);
  for (const { from, to, sum, direct } of graph.edges)
    assert.deepEqual({ sum, direct }, expected.get(`${name(from)} ${name(to)}`));
  return graph;
}

test("functions equal the table, edges a brute-force count, also across hidden functions", () => {
  for (const most of [3, 10, 25, 80]) check(decode(bigTree(1500, 40)), most);
});

test("leaves out small functions, fewer of them if more functions are wanted", () => {
  const children = [
    { name: "hot", self: 10_000 },
    ...Array.from({ length: 30 }, (_, i) => ({ name: `cold ${i}`, self: i < 10 ? 60 : 40 })),
  ];
  const flame = decode({ name: "root", children: [{ name: "main", children }] });
  assert.deepEqual(
    [20, 60, 100].map((most) => check(flame, most).nodes.length),
    [2, 12, 32],
  );
});

test("edges equal those of peek if every function is drawn", () => {
  const flame = decode(bigTree(800, 30));
  const { graph, name } = graphOf(flame, 100);
  for (const { from, to, sum, direct } of graph.edges) {
    assert.equal(
      peek(flame, name(from))!.callees.find((row) => row.name === name(to))!.value,
      sum[0],
    );
    assert.deepEqual(direct, sum);
  }
});

test("both sides of a diff are counted, including negative values", () => {
  const tree = bigTree(600, 25);
  const visit = (node: Tree, at: number) => {
    node.base = (at * 37) % 90;
    if (at % 3 === 0) node.self = -(node.self ?? 0);
    node.children?.forEach((child, i) => visit(child, at + i + 1));
  };
  visit(tree, 1);
  check(decode(tree, { isDiff: true }), 20);
});

test("every called function has a caller, and no dashed edge duplicates a path", () => {
  const flame = decode(bigTree(3000, 60));
  const { graph } = graphOf(flame, 15);
  const called = new Set(graph.edges.map((edge) => edge.to));
  assert.ok(called.size >= 14);
  for (const edge of graph.edges.filter((one) => !one.isDirect)) {
    const seen = new Set([edge.from]);
    for (const at of seen)
      for (const other of graph.edges) if (other.from === at && other !== edge) seen.add(other.to);
    assert.ok(!seen.has(edge.to));
  }
});

test("counts one sample, a chain 5,000 deep, and functions that the server merged", () => {
  const one = check(decode({ name: "root", children: [{ name: "main", self: 5 }] }), 60);
  assert.deepEqual([one.nodes.length, one.edges.length, one.share], [1, 0, 1]);
  const root: Tree = { name: "root", children: [] };
  let at = root;
  for (let i = 0; i < 5000; i++)
    at.children!.push((at = { name: `level ${i}`, self: i === 4999 ? 7 : 0, children: [] }));
  const deep = check(decode(root), 60);
  assert.deepEqual([deep.nodes.length, deep.edges.length, deep.share], [60, 59, 1]);
  assert.equal(deep.edges.filter((edge) => !edge.isDirect).length, 1);
  const cut = decode({
    name: "root",
    children: [
      { name: "a", self: 3, children: [{ name: "(other)", flags: FrameFlag.Other, self: 1 }] },
    ],
  });
  assert.deepEqual([graphOf(cut, 60).graph.nodes.length, graphOf(cut, 60).graph.share], [1, 0.75]);
});

test("boxes do not overlap, and lines lead from box to box", () => {
  const { graph } = graphOf(decode(bigTree(1500, 40)), 30);
  const sizes = graph.nodes.map((_, i): [number, number] => [90 + ((i * 31) % 140), 40]);
  const wires = graph.edges.map(({ from, to, sum }) => ({
    from,
    to,
    weight: sum[0] / graph.nodes[0].cum[0],
  }));
  const { places, lines, labels, size } = layoutGraph(sizes, wires);
  // The value of an edge, 60 by 12 pixels, overlaps no box and no other value.
  const values = labels.flatMap((label) => (label ? [label] : []));
  assert.ok(
    values.length >= 5 &&
      values.length === wires.filter(({ weight }) => weight >= labelledShare).length,
  );
  values.forEach(([x, y], i) => {
    const isOn = (at: readonly [number, number], [width, height]: readonly [number, number]) =>
      Math.abs(at[0] - x - 30) < width / 2 + 30 && Math.abs(at[1] - y) < height / 2 + 6;
    assert.ok(!places.some((place, box) => isOn(place, sizes[box])), `value ${i} is on a box`);
    assert.ok(
      !values.some(
        ([otherX, otherY], other) => other !== i && isOn([otherX + 30, otherY], [60, 12]),
      ),
      `value ${i} is on another`,
    );
  });
  const overlaps = (a: number, b: number) =>
    [0, 1].every(
      (axis) =>
        Math.abs(places[a][axis] - places[b][axis]) < (sizes[a][axis] + sizes[b][axis]) / 2 - 0.01,
    );
  for (let a = 0; a < places.length; a++) {
    assert.ok([0, 1].every((axis) => places[a][axis] >= 0 && places[a][axis] <= size[axis]));
    for (let b = 0; b < a; b++) assert.ok(!overlaps(a, b), `${a} ${b}`);
  }
  wires.forEach(({ from, to }, i) => {
    const isAt = ([x, y]: readonly [number, number], box: number) =>
      Math.abs(x - places[box][0]) <= sizes[box][0] / 2 + 1 &&
      Math.abs(y - places[box][1]) <= sizes[box][1] / 2 + 1;
    assert.ok(isAt(lines[i][0], from) && isAt(lines[i].at(-1)!, to));
  });
});

/**
 * Points of the smooth line that the view draws through a line's points
 * (views/graph/graph_edges.tsx).
 */
function smooth(points: readonly Point[]): Point[] {
  const drawn: Point[] = [points[0]];
  let from = points[0];
  for (let i = 1; i < points.length - 1; i++) {
    const [at, next] = [points[i], points[i + 1]];
    const to: Point =
      i === points.length - 2 ? next : [(at[0] + next[0]) / 2, (at[1] + next[1]) / 2];
    for (let t = 0.05; t <= 1; t += 0.05)
      drawn.push(
        [0, 1].map(
          (axis) => (1 - t) ** 2 * from[axis] + 2 * t * (1 - t) * at[axis] + t * t * to[axis],
        ) as unknown as Point,
      );
    from = to;
  }
  return drawn;
}

test("no line crosses the box of another function", () => {
  let seed = 3;
  const random = (below: number) => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) % below;
  let count = 0;
  for (let graph = 0; graph < 12; graph++) {
    const sizes = Array.from({ length: 60 }, (): [number, number] => [
      60 + random(220),
      30 + random(40),
    ]);
    const pairs = new Set(Array.from({ length: 59 }, (_, i) => `${random(i + 1)} ${i + 1}`));
    for (let i = 0; i < 40; i++) pairs.add(`${random(60)} ${random(60)}`);
    const wires = [...pairs]
      .map((pair) => pair.split(" ").map(Number))
      .map(([from, to]) => ({ from, to, weight: random(100) / 100 }));
    const { places, lines } = layoutGraph(sizes, wires);
    wires.forEach(({ from, to }, wire) => {
      if (from === to) return;
      count++;
      const isIn = ([x, y]: Point, box: number) =>
        Math.abs(x - places[box][0]) < sizes[box][0] / 2 &&
        Math.abs(y - places[box][1]) < sizes[box][1] / 2;
      for (const point of smooth(lines[wire]))
        for (let box = 0; box < 60; box++)
          assert.ok(
            box === from || box === to || !isIn(point, box),
            `${graph}: ${from} to ${to} through ${box}`,
          );
    });
  }
  assert.ok(count > 1000);
});

test("a million nodes are counted in linear time", () => {
  const bytes: Buffer = bigFlame(1_000_000);
  const flame = decodeFlame(
    bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer,
  );
  const spent = (run: () => void) => {
    const before = process.cpuUsage();
    run();
    const { user, system } = process.cpuUsage(before);
    return ((user + system) / 1000).toFixed(0);
  };
  let found!: CallGraph;
  const counting = spent(() => (found = graphOf(flame, 60).graph));
  const sizes = found.nodes.map((): [number, number] => [160, 44]);
  const drawing = spent(
    () =>
      void layoutGraph(
        sizes,
        found.edges.map(({ from, to }) => ({ from, to, weight: 0.1 })),
      ),
  );
  console.log(
    `# call graph of a million nodes: ${counting} ms of CPU; layout of ${found.nodes.length} ` +
      `functions and ${found.edges.length} edges: ${drawing} ms`,
  );
  assert.equal(found.nodes.length, 60);
});
