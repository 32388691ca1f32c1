/*
 * graph: the call graph: a box for each function, and a line for each call whose width is its
 * value. It has as many functions as can be read; the bar above states what is left out, and a list
 * below contains the same as text.
 *
 *   arrows       follow the heaviest call, or go to the box at the side
 *   Space, click mark the function in every view
 *   Enter, double click   focus on the stacks with it
 */
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { diffFillOf, dimmedFill } from "../../model/colours/colour.ts";
import type { CallEdge } from "../../model/functions/call_graph.ts";
import { labelledShare, sizeOf } from "../../model/functions/call_pair.ts";
import type { Flame } from "../../model/tree/flame.ts";
import { countedAs } from "../../model/functions/functions.ts";
import type { Point } from "../../model/functions/graph_layout.ts";
import type { Pattern } from "../../model/search/regex.ts";
import { boundedTest } from "../../model/search/search.ts";
import { formatCount, formatPercent, formatValue } from "../../model/text/units.ts";
import { graphSizes } from "../../view_state.ts";
import { asProblem, IconButton, Loading, ProblemView, Select } from "../../ui/kit.tsx";
import { addStyle } from "../../ui/later.tsx";
import { placeOf } from "../foot/describe.ts";
import { LabelFitter } from "../icicle/label_fitter.ts";
import {
  boxesOf,
  elidedText,
  neighboursOf,
  pairText,
  smallFontPx,
  spokenBox,
  type Box,
} from "./graph_box.ts";
import style from "./graph.css?text";
import { GraphCamera } from "./graph_camera.ts";
import { placeTooltip } from "../icicle/icicle.tsx";
import type { PaneContext, PaneProps } from "../panes.tsx";
import { useGraph, type GraphPicture } from "./use_graph.ts";

addStyle(style);

type Picture = GraphPicture<Box>;
type Around = ReturnType<typeof neighboursOf>;

/** The page's font at the size for which boxes are measured. */
function measurer(): CanvasRenderingContext2D | null {
  const context = document.createElement("canvas").getContext("2d");
  if (context) context.font = `600 13px ${getComputedStyle(document.body).fontFamily}`;
  return context;
}

/* ---- lines ---- */

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

/* ---- hover ---- */

type Pointed = { node: number } | { edge: number } | null;

function pointedAt(target: EventTarget | null): Pointed {
  const group = (target as Element | null)?.closest<SVGGElement>("[data-node],[data-edge]");
  if (!group) return null;
  return group.dataset.node
    ? { node: Number(group.dataset.node) }
    : { edge: Number(group.dataset.edge) };
}

function Facts({ facts }: { facts: [string, string][] }) {
  return (
    <dl class="tip-facts">
      {facts.map(([label, value]) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function Tip({
  picture,
  around,
  pointed,
  unit,
}: {
  picture: Picture;
  around: Around;
  pointed: NonNullable<Pointed>;
  unit: string;
}) {
  const { flame, graph, boxes } = picture;
  if ("edge" in pointed) {
    const edge = graph.edges[pointed.edge];
    const elided = elidedText(flame, edge, unit);
    const facts: [string, string][] = [["Calls", pairText(flame, edge.sum, unit)]];
    if (elided) facts.push(["Through functions left out", elided]);
    return (
      <>
        <strong class="tip-name">
          {boxes[edge.from].name} → {boxes[edge.to].name}
        </strong>
        <Facts facts={facts} />
      </>
    );
  }
  const node = graph.nodes[pointed.node];
  const { name, frame } = boxes[pointed.node];
  const { callers, callees } = around[pointed.node];
  return (
    <>
      <strong class="tip-name">{name}</strong>
      <Facts
        facts={[
          ["Total", pairText(flame, node.cum, unit)],
          ["Self", pairText(flame, node.flat, unit)],
          ["Callers and callees shown", `${callers.length}, ${callees.length}`],
        ]}
      />
      {placeOf(flame, frame) && <span class="tip-place">{placeOf(flame, frame)}</span>}
    </>
  );
}

/* ---- the picture ---- */

function matchesOf(boxes: readonly Box[], pattern: Pattern | null): boolean[] | null {
  if (!pattern) return null;
  try {
    const test = boundedTest(pattern);
    return boxes.map((box) => test(box.name));
  } catch {
    return null;
  }
}

/** The box that an arrow key leads to: along the heaviest call, or the nearest at the side. */
function boxBeside({ layout }: Picture, around: Around, from: number, key: string): number {
  if (key === "ArrowDown") return around[from].callees[0]?.to ?? from;
  if (key === "ArrowUp") return around[from].callers[0]?.from ?? from;
  const sign = key === "ArrowLeft" ? -1 : 1;
  const [x, y] = layout.places[from];
  const distance = (i: number) => sign * (layout.places[i][0] - x);
  const beside = layout.places.flatMap((place, i) =>
    Math.abs(place[1] - y) < 1 && distance(i) > 0 ? [i] : [],
  );
  return beside.reduce(
    (best, i) => (best === from || distance(i) < distance(best) ? i : best),
    from,
  );
}

interface PictureProps {
  context: PaneContext;
  picture: Picture;
  around: Around;
  camera: { current: GraphCamera | null };
}

const cameraKeys = (camera: PictureProps["camera"]): Record<string, () => void> => ({
  "+": () => camera.current!.zoomBy(1.25),
  "=": () => camera.current!.zoomBy(1.25),
  "-": () => camera.current!.zoomBy(0.8),
  "0": () => camera.current!.fit(),
  w: () => camera.current!.panBy(0, 60),
  s: () => camera.current!.panBy(0, -60),
  a: () => camera.current!.panBy(60, 0),
  d: () => camera.current!.panBy(-60, 0),
});

interface NodeProps extends Omit<PictureProps, "camera"> {
  index: number;
  /** Index into the palette's fills. */
  fill: number;
  hasCursor: boolean;
  isMatch: boolean;
  onFocus: () => void;
}

/** The box of a function, and its name and numbers. */
function GraphNode(props: NodeProps) {
  const { context, picture, around, index, fill, hasCursor, isMatch, onFocus } = props;
  const { state, unit, palette, hovered } = context;
  const { flame, graph, boxes, layout } = picture;
  const box = boxes[index];
  const [x, y] = layout.places[index];
  const [width, height] = box.size;
  return (
    <>
      <g
        class={
          `graph-node ${box.name === state.marked ? "marked" : ""} ` +
          `${box.name === hovered ? "lit" : ""} ${isMatch ? "match" : ""}`
        }
        data-node={index}
        data-function={box.name}
        role="button"
        tabIndex={hasCursor ? 0 : -1}
        aria-pressed={box.name === state.marked}
        aria-label={spokenBox(flame, graph.nodes[index], box.name, around[index], unit)}
        transform={`translate(${x - width / 2} ${y - height / 2})`}
        onFocus={onFocus}
      >
        <rect width={width} height={height} rx="6" fill={palette.fills[fill]} />
      </g>
      <g class="graph-label" aria-hidden="true" fill={palette.inks[fill]}>
        <text x={x} y={y - height / 2 + box.fontPx + 5} font-size={box.fontPx} font-weight="600">
          {box.lines[0]}
        </text>
        <text x={x} y={y + height / 2 - 9} font-size={smallFontPx}>
          {box.lines[1]}
        </text>
      </g>
    </>
  );
}

/** The box or line under the pointer, clicks and the menu. */
function usePointer(
  { update, addRule, onHoverName, openMenu }: PaneContext,
  { boxes }: Picture,
  camera: PictureProps["camera"],
  setCursor: (node: number) => void,
) {
  const [pointed, setPointed] = useState<Pointed>(null);
  const tip = useRef<HTMLDivElement>(null);
  const point = (found: Pointed) => {
    setPointed(found);
    onHoverName(found && "node" in found ? boxes[found.node].name : "");
  };
  const move = (event: PointerEvent) => {
    const found = event.pointerType === "touch" || event.buttons ? null : pointedAt(event.target);
    if (JSON.stringify(found) !== JSON.stringify(pointed)) point(found);
    if (tip.current) placeTooltip(tip.current, event.clientX, event.clientY);
  };
  const click = (event: MouseEvent) => {
    const found = pointedAt(event.target);
    if (camera.current!.wasDrag || !found || !("node" in found)) return;
    setCursor(found.node);
    if (event.detail === 2) addRule("focus", boxes[found.node].name);
    else if (event.detail < 2) update({ marked: boxes[found.node].name });
  };
  const menu = (event: MouseEvent) => {
    const found = pointedAt(event.target);
    if (!found || !("node" in found)) return;
    event.preventDefault();
    openMenu(boxes[found.node].name, event.clientX, event.clientY);
  };
  return { pointed, setPointed, tip, point, move, click, menu };
}

/** Goes to the next match, or to the next box of the marked function. */
function useSeek(
  seek: PaneContext["seek"],
  count: number,
  at: number,
  step: (to: number) => void,
  isMatch: (index: number) => boolean,
): void {
  useLayoutEffect(() => {
    seek.current = (by) => {
      for (let i = 1; i <= count; i++) {
        const to = (at + count + by * i) % count;
        if (isMatch(to)) return step(to);
      }
    };
    return () => void (seek.current = null);
  });
}

interface EdgesProps {
  picture: Picture;
  unit: string;
  tone: (edge: CallEdge) => { isLit: boolean; isDim: boolean };
}

function Edges({ picture, unit, tone }: EdgesProps) {
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

function Drawing({ context, picture, around, camera }: PictureProps) {
  const { state, unit, colours, pattern, hovered, addRule, onCursor } = context;
  const { flame, graph, boxes, layout } = picture;
  const matches = useMemo(() => matchesOf(boxes, pattern), [boxes, pattern]);
  const [cursor, setCursor] = useState(0);
  const view = useRef<SVGSVGElement>(null);
  const whole = useRef<SVGGElement>(null);
  const { pointed, setPointed, tip, point, move, click, menu } = usePointer(
    context,
    picture,
    camera,
    setCursor,
  );
  const at = Math.min(cursor, boxes.length - 1);

  useLayoutEffect(() => {
    camera.current = new GraphCamera(view.current!, whole.current!);
    return camera.current.attach();
  }, []);
  useLayoutEffect(() => {
    setCursor(0);
    setPointed(null);
    camera.current!.show(layout.size, layout.places[0]);
  }, [picture]);

  const step = (to: number) => {
    setCursor(to);
    view.current!.querySelector<SVGGElement>(`[data-node="${to}"]`)?.focus({ preventScroll: true });
    camera.current!.reveal(layout.places[to], boxes[to].size);
  };
  useLayoutEffect(() => {
    const marked = boxes.findIndex(({ name }) => name === state.marked);
    if (marked >= 0 && marked !== at)
      camera.current!.reveal(layout.places[marked], boxes[marked].size);
  }, [picture, state.marked]);
  useSeek(context.seek, boxes.length, at, step, (i) =>
    matches ? matches[i] : boxes[i].name === state.marked,
  );
  const keys: Record<string, () => void> = {
    Enter: () => addRule("focus", boxes[at].name),
    " ": () => context.mark(boxes[at].name),
    Home: () => step(0),
    ...cameraKeys(camera),
  };
  const press = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key.startsWith("Arrow")) step(boxBeside(picture, around, at, event.key));
    else if (Object.hasOwn(keys, event.key)) keys[event.key]();
    else return;
    event.preventDefault();
  };
  const isLitNode = (i: number) => boxes[i].name === state.marked || boxes[i].name === hovered;
  const isDim = (i: number) => matches !== null && !matches[i];
  const tone = ({ from, to }: CallEdge) => ({
    isLit: isLitNode(from) || isLitNode(to),
    isDim: isDim(from) && isDim(to),
  });
  const fillOf = (i: number) =>
    isDim(i)
      ? dimmedFill
      : flame.isDiff
        ? diffFillOf(graph.nodes[i].cum[1], graph.nodes[i].cum[0])
        : colours.fill(boxes[i].frame);
  return (
    <div class="graph-view">
      <svg
        ref={view}
        role="group"
        aria-label={
          "Call graph. Arrow keys follow calls, Space marks a function, Enter focuses " + "on it."
        }
        onKeyDown={press}
        onClick={click}
        onContextMenu={menu}
        onPointerMove={move}
        onPointerLeave={() => point(null)}
      >
        <g ref={whole}>
          <Edges {...{ picture, unit, tone }} />
          {boxes.map((_, i) => (
            <GraphNode
              key={i}
              {...{ context, picture, around }}
              index={i}
              fill={fillOf(i)}
              hasCursor={i === at}
              isMatch={matches?.[i] ?? false}
              onFocus={() => {
                setCursor(i);
                onCursor(graph.nodes[i].node);
              }}
            />
          ))}
        </g>
      </svg>
      <div class="tip" ref={tip} hidden={!pointed} aria-hidden="true">
        {pointed && <Tip {...{ picture, around, pointed, unit }} />}
      </div>
    </div>
  );
}

/* ---- the graph as a list ---- */

function Calls({
  flame,
  edges,
  nameOf,
  unit,
}: {
  flame: Flame;
  edges: readonly CallEdge[];
  nameOf: (edge: CallEdge) => string;
  unit: string;
}) {
  return (
    <ul>
      {edges.map((edge) => (
        <li key={nameOf(edge)}>
          <bdi>{nameOf(edge)}</bdi> <em>{pairText(flame, edge.sum, unit)}</em>
        </li>
      ))}
    </ul>
  );
}

function List({
  picture,
  around,
  unit,
  onChoose,
}: {
  picture: Picture;
  around: Around;
  unit: string;
  onChoose: (name: string) => void;
}) {
  const { flame, graph, boxes } = picture;
  return (
    <table>
      <thead>
        <tr>
          {["Function", "Total", "Self", "Callers", "Callees"].map((head) => (
            <th scope="col" key={head}>
              {head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {graph.nodes.map((node, i) => (
          <tr key={i}>
            <th scope="row">
              <button
                type="button"
                data-function={boxes[i].name}
                onClick={() => onChoose(boxes[i].name)}
              >
                <bdi>{boxes[i].name}</bdi>
              </button>
            </th>
            <td>{pairText(flame, node.cum, unit)}</td>
            <td>{pairText(flame, node.flat, unit)}</td>
            <td>
              <Calls
                {...{ flame, unit }}
                edges={around[i].callers}
                nameOf={(edge) => boxes[edge.from].name}
              />
            </td>
            <td>
              <Calls
                {...{ flame, unit }}
                edges={around[i].callees}
                nameOf={(edge) => boxes[edge.to].name}
              />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function whatIsShown(
  { flame, graph: { nodes, edges, functionCount, edgeCount, share, least } }: Picture,
  unit: string,
): string {
  const { part } = flame.bounds;
  const why =
    least > 0 && nodes.length < functionCount
      ? `. The others have less than ${formatValue(least, unit)} each`
      : "";
  return (
    `${nodes.length} of ${countedAs(flame, functionCount)}, ${part}` +
    `${formatPercent(share, 1)} of the total shown; ${edges.length} of ${part}` +
    `${formatCount(edgeCount)} calls${why}`
  );
}

export function GraphPane({ context }: PaneProps) {
  const { state, flame, unit, update } = context;
  const camera = useRef<GraphCamera | null>(null);
  const { picture, isCurrent, problem, retry } = useGraph(flame, state.graphNodes, (graph) => {
    const canvas = measurer();
    return boxesOf(
      flame,
      graph,
      unit,
      canvas && new LabelFitter(canvas),
      (text) => canvas?.measureText(text).width ?? 7 * text.length,
    );
  });
  const around = useMemo(() => (picture ? neighboursOf(picture.graph) : []), [picture]);
  const [isListed, setListed] = useState(false);
  if (problem) return <ProblemView problem={asProblem(problem)} onRetry={retry} />;
  if (!picture) return <Loading label="Drawing the call graph" />;
  return (
    <div class={`graph ${isCurrent ? "" : "stale"}`} aria-busy={!isCurrent}>
      <div class="graph-bar">
        <Select
          label="Functions shown"
          value={String(state.graphNodes)}
          choices={graphSizes.map((count) => ({
            value: String(count),
            label: `up to ${count} functions`,
          }))}
          onChange={(value) => update({ graphNodes: Number(value) })}
        />
        <span class="graph-zoom">
          <IconButton
            icon="minus"
            label="Zoom out (-)"
            onClick={() => camera.current?.zoomBy(0.8)}
          />
          <IconButton
            icon="plus"
            label="Zoom in (+)"
            onClick={() => camera.current?.zoomBy(1.25)}
          />
          <IconButton
            icon="fit"
            label="Show everything (0)"
            onClick={() => camera.current?.fit()}
          />
        </span>
        <span class="graph-note" role="status">
          {whatIsShown(picture, unit)}
        </span>
      </div>
      <Drawing {...{ context, picture, around, camera }} />
      <details class="graph-list" onToggle={(event) => setListed(event.currentTarget.open)}>
        <summary>Show as a list</summary>
        {isListed && (
          <List {...{ picture, around, unit }} onChoose={(name) => update({ marked: name })} />
        )}
      </details>
    </div>
  );
}
