/* graph_layout: where the boxes and lines of a call graph stand: callers above whom they call (dagre). */
import { Graph, layout } from "@dagrejs/dagre";

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
  size: Size;
}

export function layoutGraph(sizes: readonly Size[], wires: readonly Wire[]): Layout {
  const graph = new Graph();
  graph.setGraph({ rankdir: "TB", nodesep: 18, edgesep: 12, ranksep: 46, marginx: 12, marginy: 12 });
  sizes.forEach(([width, height], i) => graph.setNode(String(i), { width, height }));
  for (const { from, to, weight } of wires) graph.setEdge(String(from), String(to), { weight: 1 + Math.round(weight * 20) });
  layout(graph);
  const { width = 0, height = 0 } = graph.graph();
  return {
    places: sizes.map((_, i) => {
      const { x, y } = graph.node(String(i));
      return [x, y];
    }),
    lines: wires.map(({ from, to }) => (graph.edge(String(from), String(to)).points ?? []).map(({ x, y }: { x: number; y: number }): Point => [x, y])),
    size: [width, height],
  };
}
