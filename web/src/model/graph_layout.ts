/* graph_layout: where the boxes and lines of a call graph stand: callers above whom they call (dagre). */
import { Graph, layout } from "@dagrejs/dagre";
import { labelledShare } from "./call_pair.ts";

export type Size = readonly [width: number, height: number];
export type Point = readonly [x: number, y: number];

export interface Wire {
  from: number;
  to: number;
  /** From 0 to 1: heavy ones are kept short and straight. */
  weight: number;
}

export interface Layout {
  /** Middles of the boxes. */
  places: Point[];
  /** For each wire, from edge to edge of its boxes. */
  lines: Point[][];
  /** Beside the line of each wire that is heavy enough to say its value, where room is left for it: its left end. */
  labels: (Point | undefined)[];
  size: Size;
}

/** How far from the boxes of a row a line begins to turn; rows are 46 apart, and half-way there is a point of dagre's own. */
const turn = 8;
/** So far above and below its value a line turns; upright it goes past it, and not through it. */
const beside = 14;

/**
 * A line as dagre has it goes straight from row to row, from the middle of each, and so through the corners of whoever stands
 * beside its place there. Here it goes upright through every row, and leaves and enters boxes so, and turns between rows only.
 */
function aroundBoxes(
  points: readonly Point[],
  from: Box,
  to: Box,
  rows: ReadonlyMap<number, number>,
): Point[] {
  const down = to.y > from.y ? 1 : -1;
  const halfOf = (y: number) => rows.get(Math.round(y)) ?? 0;
  const within = (x: number, { x: middle, width }: Box) =>
    Math.min(Math.max(x, middle - width / 2 + turn), middle + width / 2 - turn);
  const [start, end] = [within(points[0][0], from), within(points[points.length - 1][0], to)];
  const line: Point[] = [[start, from.y + (down * from.height) / 2]];
  const add = (x: number, y: number) => {
    const [lastX, lastY] = line[line.length - 1];
    if (x !== lastX || Math.abs(y - lastY) > 0.5) line.push([x, y]);
  };
  const leave = (x: number, y: number) =>
    [0, turn].forEach((far) => add(x, y + down * (halfOf(y) + far)));
  const enter = (x: number, y: number) =>
    [turn, 0].forEach((far) => add(x, y - down * (halfOf(y) + far)));
  leave(start, from.y);
  for (const [x, y] of points.slice(1, -1)) {
    if (!rows.has(Math.round(y)))
      [-beside, -beside / 2, beside / 2, beside].forEach((far) => add(x, y + down * far));
    else {
      enter(x, y);
      leave(x, y);
    }
  }
  enter(end, to.y);
  add(end, to.y - (down * to.height) / 2);
  return line;
}

interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

const labelSize = { width: 64, height: 16, labelpos: "r", labeloffset: 4 };

export function layoutGraph(sizes: readonly Size[], wires: readonly Wire[]): Layout {
  const graph = new Graph();
  graph.setGraph({
    rankdir: "TB",
    nodesep: 18,
    edgesep: 12,
    ranksep: 46,
    marginx: 12,
    marginy: 12,
  });
  sizes.forEach(([width, height], i) => graph.setNode(String(i), { width, height }));
  for (const { from, to, weight } of wires)
    graph.setEdge(String(from), String(to), {
      weight: 1 + Math.round(weight * 20),
      ...(weight >= labelledShare && labelSize),
    });
  layout(graph);
  const { width = 0, height = 0 } = graph.graph();
  const boxes = sizes.map((_, i): Box => graph.node(String(i)));
  const rows = new Map<number, number>(); // half of the highest box, by the row's middle
  for (const { y, height } of boxes)
    rows.set(Math.round(y), Math.max(height / 2, rows.get(Math.round(y)) ?? 0));
  return {
    places: boxes.map(({ x, y }): Point => [x, y]),
    lines: wires.map(({ from, to }) => {
      const points = (graph.edge(String(from), String(to)).points ?? []).map(
        ({ x, y }: { x: number; y: number }): Point => [x, y],
      );
      return from === to ? points : aroundBoxes(points, boxes[from], boxes[to], rows);
    }),
    labels: wires.map(({ from, to }): Point | undefined => {
      const { x, y } = graph.edge(String(from), String(to));
      return x === undefined ? undefined : [x - labelSize.width / 2, y];
    }),
    size: [width, height],
  };
}
