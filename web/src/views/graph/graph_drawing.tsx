/*
 * graph_drawing: the picture of the call graph: boxes and lines, the cursor, keys and the pointer.
 */
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { diffFillOf, dimmedFill } from "../../model/colours/colour.ts";
import type { CallEdge } from "../../model/functions/call_graph.ts";
import type { Pattern } from "../../model/search/regex.ts";
import { boundedTest } from "../../model/search/search.ts";
import type { Around, Picture, Box } from "./graph_box.ts";
import { GraphCamera } from "./graph_camera.ts";
import { placeTooltip } from "../icicle/icicle.tsx";
import type { PaneContext } from "../panes.tsx";
import { Edges } from "./graph_edges.tsx";
import { pointedAt, Tip, type Pointed } from "./graph_tip.tsx";
import { GraphNode } from "./graph_node.tsx";

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

/** Handles the keys of the graph; at: the box with the cursor. */
function keyHandler(
  { context, picture, around, camera }: PictureProps,
  at: number,
  step: (to: number) => void,
) {
  const { boxes } = picture;
  const keys: Record<string, () => void> = {
    Enter: () => context.addRule("focus", boxes[at].name),
    " ": () => context.mark(boxes[at].name),
    Home: () => step(0),
    ...cameraKeys(camera),
  };
  return (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key.startsWith("Arrow")) step(boxBeside(picture, around, at, event.key));
    else if (Object.hasOwn(keys, event.key)) keys[event.key]();
    else return;
    event.preventDefault();
  };
}

/** Which boxes and lines stand out, by the marked and the hovered function and by the search. */
function appearanceOf(
  { state, colours, hovered }: PaneContext,
  { flame, graph, boxes }: Picture,
  matches: readonly boolean[] | null,
) {
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
  return { tone, fillOf };
}

const graphLabel =
  "Call graph. Arrow keys follow calls, Space marks a function, Enter focuses on it.";

export function Drawing({ context, picture, around, camera }: PictureProps) {
  const { state, unit, pattern, onCursor } = context;
  const { graph, boxes, layout } = picture;
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
  const press = keyHandler({ context, picture, around, camera }, at, step);
  const { tone, fillOf } = appearanceOf(context, picture, matches);
  return (
    <div class="graph-view">
      <svg
        ref={view}
        role="group"
        aria-label={graphLabel}
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
