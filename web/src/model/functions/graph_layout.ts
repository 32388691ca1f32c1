/* graph_layout: positions of the boxes and lines of a call graph, callers above callees (dagre). */
import { Graph, layout } from "@dagrejs/dagre";
import { labelledShare } from "./call_pair.ts";

export type Size = readonly [width: number, height: number];
export type Point = readonly [x: number, y: number];

export interface Wire {
  from: number;
  to: number;
  /** 0 to 1: heavy lines are kept short and straight. */
  weight: number;
}

export interface Layout {
  /** The centres of the boxes. */
  places: Point[];
  /** For each edge, the points from the border of one box to the other. */
  lines: Point[][];
  /**
   * For each edge heavy enough to show its value: the left end of the space that is reserved next
   * to its line.
   */
  labels: (Point | undefined)[];
  size: Size;
}

/**
 * The distance from the boxes of a row at which a line may bend. Rows are 46 apart, and dagre adds
 * a point half-way.
 */
const bendPx = 8;
/**
 * The distance above and below its value at which a line may bend, so that it passes the value
 * vertically.
 */
const besideValuePx = 14;

/**
 * dagre's lines run straight from the centre of one row to the next and thus through the corners of
 * boxes in between. Here lines cross every row vertically, leave and enter boxes vertically, and
 * bend only between rows.
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
    Math.min(Math.max(x, middle - width / 2 + bendPx), middle + width / 2 - bendPx);
  const [start, end] = [within(points[0][0], from), within(points[points.length - 1][0], to)];
  const line: Point[] = [[start, from.y + (down * from.height) / 2]];
  const add = (x: number, y: number) => {
    const [lastX, lastY] = line[line.length - 1];
    if (x !== lastX || Math.abs(y - lastY) > 0.5) line.push([x, y]);
  };
  const leave = (x: number, y: number) =>
    [0, bendPx].forEach((far) => add(x, y + down * (halfOf(y) + far)));
  const enter = (x: number, y: number) =>
    [bendPx, 0].forEach((far) => add(x, y - down * (halfOf(y) + far)));
  leave(start, from.y);
  for (const [x, y] of points.slice(1, -1)) {
    if (!rows.has(Math.round(y)))
      [-besideValuePx, -besideValuePx / 2, besideValuePx / 2, besideValuePx].forEach((far) =>
        add(x, y + down * far),
      );
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
  // half the height of the highest box, by the centre of the row
  const rows = new Map<number, number>();
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
