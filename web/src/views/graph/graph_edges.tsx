/* graph_edges: the lines of the call graph, their arrow heads and values. */
import { useMemo } from "preact/hooks";
import type { CallEdge } from "../../model/functions/call_graph.ts";
import { labelledShare, sizeOf } from "../../model/functions/call_pair.ts";
import type { Point } from "../../model/functions/graph_layout.ts";
import { elidedText, pairText, type Picture, smallFontPx } from "./graph_box.ts";

/** A smooth line through the points that ends at its arrow head, and the arrow head. */
function pathsOf(points: readonly Point[], width: number): { line: string; arrow: string } {
  const [endX, endY] = points[points.length - 1];
  const far = ([x, y]: Point) => Math.hypot(endX - x, endY - y) || 1;
  const [lastX, lastY] = points[points.length - 2];
  const [dx, dy] = [(endX - lastX) / far([lastX, lastY]), (endY - lastY) / far([lastX, lastY])];
  // The arrow head may cover several segments if they are vertical and in line.
  let straight = points.length - 2;
  while (straight > 0 && lastX === endX && points[straight - 1][0] === endX) straight--;
  const available = far(points[straight]);
  const reach = Math.min(
    6 + width,
    straight > 0 ? Math.max(available - 2, available / 2) : available,
  );
  const [baseX, baseY] = [endX - dx * reach, endY - dy * reach];
  const half = 3 + width * 0.7;
  const text = (x: number, y: number) => `${x.toFixed(1)} ${y.toFixed(1)}`;
  const bent = [
    ...points.slice(0, -1).filter((point, i) => i === 0 || i < straight || far(point) > reach),
    [baseX, baseY] as Point,
  ];
  let line = `M${text(...bent[0])}`;
  for (let i = 1; i < bent.length - 1; i++) {
    const [next, isLast] = [bent[i + 1], i === bent.length - 2];
    line +=
      `Q${text(...bent[i])} ` +
      (isLast ? text(...next) : text((bent[i][0] + next[0]) / 2, (bent[i][1] + next[1]) / 2));
  }
  if (bent.length === 2) line += `L${text(baseX, baseY)}`;
  const arrow =
    `M${text(endX, endY)}L${text(baseX - dy * half, baseY + dx * half)}L` +
    `${text(baseX + dy * half, baseY - dx * half)}Z`;
  return { line, arrow };
}

interface EdgeProps {
  picture: Picture;
  index: number;
  /** One of its ends is hovered or marked. */
  isLit: boolean;
  isDim: boolean;
}

const shareOf = ({ graph }: Picture, edge: CallEdge) =>
  Math.min(1, sizeOf(edge.sum) / Math.max(sizeOf(graph.nodes[0].cum), 1));
const widthOf = (share: number) => 1 + 7 * share;

/** Labels are drawn above all lines, so that no line crosses a number. */
function EdgeLabel({ picture, index, unit, isLit, isDim }: EdgeProps & { unit: string }) {
  const { flame, graph, layout } = picture;
  const edge = graph.edges[index];
  const share = shareOf(picture, edge);
  if (share < labelledShare && !isLit) return null;
  const [x, y] = layout.labels[index] ?? layout.lines[index][layout.lines[index].length >> 1];
  const text = pairText(flame, edge.sum, unit);
  return (
    <text
      class={`graph-value ${isDim ? "dim" : ""}`}
      x={x + widthOf(share) / 2 + 4}
      y={y}
      font-size={smallFontPx}
    >
      {flame.isDiff ? text.replace(/^.*\((.*)\)$/, "$1") : text.replace(/ \(.*$/, "")}
    </text>
  );
}

function Edge({ picture, index, isLit, isDim }: EdgeProps) {
  const { flame, layout } = picture;
  const edge = picture.graph.edges[index];
  const share = shareOf(picture, edge);
  const width = widthOf(share);
  const { line, arrow } = useMemo(() => pathsOf(layout.lines[index], width), [picture, index]);
  const change = edge.sum[0] - edge.sum[1];
  const heat =
    `color-mix(in oklab, var(--accent) ${Math.round(100 * Math.sqrt(share))}%, ` + "var(--muted))";
  const colour = !flame.isDiff
    ? edge.sum[0] < 0
      ? "var(--less)"
      : heat
    : change > 0
      ? "var(--more)"
      : change < 0
        ? "var(--less)"
        : "var(--muted)";
  const isDashed = elidedText(flame, edge, "") !== "" || !edge.isDirect;
  return (
    <g
      class={`graph-edge ${isLit ? "lit" : ""} ${isDim ? "dim" : ""}`}
      style={{ color: colour }}
      data-edge={index}
    >
      <path d={line} fill="none" stroke="transparent" stroke-width={width + 10} />
      <path
        d={line}
        fill="none"
        stroke="currentColor"
        stroke-width={width}
        stroke-dasharray={isDashed ? `${4 + width} ${3 + width}` : undefined}
      />
      <path d={arrow} fill="currentColor" />
    </g>
  );
}

interface EdgesProps {
  picture: Picture;
  unit: string;
  tone: (edge: CallEdge) => { isLit: boolean; isDim: boolean };
}

export function Edges({ picture, unit, tone }: EdgesProps) {
  const { edges } = picture.graph;
  return (
    <g aria-hidden="true">
      {edges.map((edge, i) => (
        <Edge key={i} picture={picture} index={i} {...tone(edge)} />
      ))}
      {edges.map((edge, i) => (
        <EdgeLabel key={i} {...{ picture, unit }} index={i} {...tone(edge)} />
      ))}
    </g>
  );
}
