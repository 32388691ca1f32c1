/*
 * icicle: the call tree as boxes as wide as their value: callers above callees, or, flipped, below.
 *
 * The scroller is one focusable tree: arrows move a cursor over frames, and the frame under it is the
 * active descendant, so that a screen reader says what the eye sees. Two canvases lie in it: the
 * picture, repainted when something changes, and an overlay for hover and cursor (stage).
 */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { makePalette, type FrameColours } from "../model/colour.ts";
import type { Flame } from "../model/flame.ts";
import type { SearchResult } from "../model/search.ts";
import { wholeOf } from "../model/window.ts";
import { describeNode, spokenNode } from "./describe.ts";
import { neighbour, rowHeight } from "./rows.ts";
import { Stage } from "./stage.ts";

export interface IcicleProps {
  flame: Flame;
  colours: FrameColours;
  unit: string;
  isDark: boolean;
  /** The root stands at the bottom, what it calls above it. */
  isFlipped?: boolean;
  zoom: number;
  marks: SearchResult | null;
  /** The frame that the keyboard stands on. */
  cursor: number;
  onCursor: (node: number) => void;
  onZoom: (node: number) => void;
  onHover: (node: number) => void;
}

function placeTooltip(tip: HTMLElement, clientX: number, clientY: number): void {
  const { offsetWidth, offsetHeight } = tip;
  const x = Math.min(clientX + 14, innerWidth - offsetWidth - 8);
  const below = clientY + 18;
  const y = below + offsetHeight > innerHeight - 8 ? clientY - offsetHeight - 12 : below;
  tip.style.transform = `translate(${Math.max(8, Math.round(x))}px, ${Math.max(8, Math.round(y))}px)`;
}

export function Tooltip({ flame, node, unit }: { flame: Flame; node: number; unit: string }) {
  const { name, place, notes, facts } = describeNode(flame, node, unit);
  return (
    <>
      <strong class="tip-name">{name}</strong>
      <dl class="tip-facts">
        {facts.map(([label, value]) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {place && <span class="tip-place">{place}</span>}
      {notes.length > 0 && <span class="tip-notes">{notes.join(" · ")}</span>}
    </>
  );
}

export function Icicle(props: IcicleProps) {
  const { flame, colours, unit, isDark, isFlipped = false, zoom, marks, cursor } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const pictureCanvas = useRef<HTMLCanvasElement>(null);
  const overlayCanvas = useRef<HTMLCanvasElement>(null);
  const tip = useRef<HTMLDivElement>(null);
  const stage = useRef<Stage | null>(null);
  const [hover, setHover] = useState(-1);
  const pointer = useRef({ x: 0, y: 0 });
  const palette = useMemo(() => makePalette(isDark), [isDark]);

  const scene = { flame, colours, palette, marks, isFlipped, zoom, cursor };

  useLayoutEffect(() => {
    const made = new Stage(scroller.current!, pictureCanvas.current!, overlayCanvas.current!, scene);
    stage.current = made;
    const observer = new ResizeObserver(() => made.resize());
    observer.observe(scroller.current!);
    return () => {
      observer.disconnect();
      made.stop();
    };
  }, []);

  const shown = useRef({ flame, isFlipped });
  useLayoutEffect(() => {
    const made = stage.current!;
    const isSame = shown.current.flame === flame && shown.current.isFlipped === isFlipped;
    shown.current = { flame, isFlipped };
    made.show(scene);
    if (!isSame) {
      made.hover = -1;
      setHover(-1);
      made.scrollToRoot();
    }
    made.setWindow(wholeOf(flame, zoom), isSame);
    made.reveal(zoom);
  }, [flame, zoom, isFlipped]);

  useLayoutEffect(() => stage.current!.show(scene), [marks, palette, cursor, colours]);

  useEffect(() => {
    if (hover >= 0 && tip.current) placeTooltip(tip.current, pointer.current.x, pointer.current.y);
  }, [hover]);

  const point = (node: number) => {
    const made = stage.current!;
    if (made.hover === node) return;
    made.hover = node;
    made.paintOverlaySoon();
    setHover(node);
    props.onHover(node);
  };
  const move = (event: PointerEvent) => {
    pointer.current = { x: event.clientX, y: event.clientY };
    if (event.pointerType !== "touch") point(stage.current!.hit(event.clientX, event.clientY));
    if (tip.current) placeTooltip(tip.current, event.clientX, event.clientY);
  };
  const press = (event: MouseEvent) => {
    const node = stage.current!.hit(event.clientX, event.clientY);
    if (node < 0) return;
    props.onCursor(node);
    props.onZoom(node);
  };
  const key = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key.startsWith("Arrow")) {
      const next = neighbour(flame, cursor, event.key, isFlipped);
      props.onCursor(next);
      stage.current!.reveal(next);
    } else if (event.key === "Enter" || event.key === " ") props.onZoom(cursor);
    else if (event.key === "Home") props.onCursor(0);
    else return;
    event.preventDefault();
  };

  return (
    <div class="icicle-frame">
      <div
        class="icicle"
        ref={scroller}
        role="tree"
        tabIndex={0}
        aria-label="Call tree. Arrow keys move between frames, Enter zooms."
        aria-activedescendant="icicle-cursor"
        onScroll={() => stage.current?.paintSoon()}
        onPointerMove={move}
        onPointerLeave={() => point(-1)}
        onClick={press}
        onKeyDown={key}
        onFocus={() => stage.current?.paintOverlaySoon()}
        onBlur={() => stage.current?.paintOverlaySoon()}
      >
        <div class="icicle-space" style={{ height: `${flame.rowCount * rowHeight}px` }}>
          <div class="icicle-canvases" aria-hidden="true">
            <canvas ref={pictureCanvas} />
            <canvas ref={overlayCanvas} />
          </div>
        </div>
        <div id="icicle-cursor" class="unseen" role="treeitem" aria-level={flame.depth[cursor] + 1} aria-selected={cursor === zoom}>
          {spokenNode(flame, cursor, unit)}
        </div>
      </div>
      <div class="tip" ref={tip} hidden={hover < 0} aria-hidden="true">
        {hover >= 0 && hover < flame.nodeCount && <Tooltip flame={flame} node={hover} unit={unit} />}
      </div>
    </div>
  );
}
