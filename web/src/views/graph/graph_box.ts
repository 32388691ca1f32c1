/*
 * graph_box: text and size of a function's box in the call graph, and descriptions of boxes and
 * edges.
 */
import type { CallEdge, CallGraph, CallNode } from "../../model/functions/call_graph.ts";
import { sizeOf, type Pair } from "../../model/functions/call_pair.ts";
import type { Flame } from "../../model/tree/flame.ts";
import type { Size } from "../../model/functions/graph_layout.ts";
import { formatChange, formatPercent, formatValue } from "../../model/text/units.ts";
import { shownName } from "../../model/text/visible_text_model.ts";
import type { LabelFitter } from "../icicle/label_fitter.ts";
import type { GraphPicture } from "./use_graph.ts";

export interface Box {
  name: string;
  frame: number;
  /** The shortened name, and the numbers below it. */
  lines: [string, string];
  fontPx: number;
  size: Size;
}

export type Picture = GraphPicture<Box>;
/** The calls into and out of each box. */
export type Around = ReturnType<typeof neighboursOf>;

const baseFontPx = 13;
const fontGrowthPx = 9;
/** The font size of numbers. */
export const smallFontPx = 12;
const widestName = 190;

export const frameOf = (flame: Flame, node: CallNode): number => flame.frame[node.node];

/** "1.2 s → 3 s +150%", or a value with its share of the total. */
export function pairText(flame: Flame, [value, base]: Pair, unit: string): string {
  const { part } = flame.bounds;
  if (!flame.isDiff)
    return `${part}${formatValue(value, unit)} (${formatPercent(value, flame.total)})`;
  return (
    `${part}${formatValue(base, unit)} → ${part}${formatValue(value, unit)} (` +
    `${part && "≈ "}${formatChange(base, value)})`
  );
}

function numbersOf(flame: Flame, node: CallNode, unit: string): string {
  const { flat, cum } = node;
  if (flame.isDiff || flat[0] === cum[0]) return pairText(flame, cum, unit);
  return `${formatValue(flat[0], unit)} of ${pairText(flame, cum, unit)}`;
}

/**
 * As in pprof, the font size of a name grows with the self value. fitter measures text at
 * baseFontPx.
 */
export function boxesOf(
  flame: Flame,
  graph: CallGraph,
  unit: string,
  fitter: LabelFitter | null,
  measure: (text: string) => number,
): Box[] {
  const most = Math.max(...graph.nodes.map((node) => sizeOf(node.flat)), 1);
  const seen = new Map<string, string>();
  return graph.nodes.map((node) => {
    const frame = frameOf(flame, node);
    const name = flame.frames.name(frame);
    const fontPx = Math.round(baseFontPx + fontGrowthPx * Math.sqrt(sizeOf(node.flat) / most));
    let text = fitter?.fit(name, widestName) || shownName(name);
    // Two names that start alike are distinguished by their ends.
    if ((seen.get(text) ?? name) !== name) text = `${name.slice(0, 8)}…${name.slice(-14)}`;
    seen.set(text, name);
    const lines: [string, string] = [text, numbersOf(flame, node, unit)];
    const width = Math.max(
      (measure(lines[0]) * fontPx) / baseFontPx,
      (measure(lines[1]) * smallFontPx) / baseFontPx,
    );
    return { name, frame, lines, fontPx, size: [Math.ceil(width) + 22, fontPx + smallFontPx + 20] };
  });
}

/** The callers and callees of each function among the drawn ones, largest first. */
export function neighboursOf(graph: CallGraph): { callers: CallEdge[]; callees: CallEdge[] }[] {
  const all = graph.nodes.map(() => ({ callers: [] as CallEdge[], callees: [] as CallEdge[] }));
  for (const edge of graph.edges) {
    all[edge.to].callers.push(edge);
    all[edge.from].callees.push(edge);
  }
  return all;
}

const counted = (count: number, what: string) => `${count} ${what}${count === 1 ? "" : "s"}`;

export function spokenBox(
  flame: Flame,
  node: CallNode,
  name: string,
  around: { callers: CallEdge[]; callees: CallEdge[] },
  unit: string,
): string {
  const calls =
    `${counted(around.callers.length, "caller")}, ` + counted(around.callees.length, "callee");
  return (
    `${shownName(name)}, total ${pairText(flame, node.cum, unit)}, self ` +
    `${pairText(flame, node.flat, unit)}, ${calls}`
  );
}

/** The part of an edge that passes functions which are left out; "" if there is none. */
export function elidedText(flame: Flame, { sum, direct }: CallEdge, unit: string): string {
  const rest: Pair = [sum[0] - direct[0], sum[1] - direct[1]];
  return rest[0] === 0 && rest[1] === 0 ? "" : pairText(flame, rest, unit);
}
