/*
 * icicle: the call tree as boxes whose width is their value: callers above callees or, flipped,
 * below.
 *
 * The scroller is one focusable tree. Arrows move a cursor over frames, and the frame under it is
 * the active descendant, so that a screen reader reads what is visible. The scroller contains two
 * canvases: the picture, repainted on changes, and an overlay for hover and cursor (stage.ts).
 */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Flame } from "../../model/tree/flame.ts";
import type { FrameColours } from "../../model/colours/frame_colours.ts";
import type { SearchResult } from "../../model/search/search.ts";
import { isSameWindow, partOf, windowOf, type Part } from "../../model/tree/window.ts";
import { describeNode, spokenNode } from "../foot/describe.ts";
import { Gestures } from "./gestures.ts";
import type { Look } from "./icicle_draw.ts";
import { Minimap } from "./minimap.ts";
import { neighbour, rowHeight } from "./rows.ts";
import { isPageKey } from "../controls/use_keys.ts";
import { Stage } from "./stage.ts";

export interface IcicleProps {
  flame: Flame;
  colours: FrameColours;
  unit: string;
  palette: Look;
  /** The root is at the bottom, its callees above. */
  isFlipped?: boolean;
  hasMinimap?: boolean;
  /** False leaves out the root's row, if every tree has only one function below the root. */
  hasRoot?: boolean;
  zoom: number;
  /** The visible part of the zoomed frame; null is all of it. */
  part: Part | null;
  marks: SearchResult | null;
  /** Nodes with a comment sign in their corner. */
  pinned?: ReadonlySet<number>;
  /** The frame of the keyboard cursor. */
  cursor: number;
  onCursor: (node: number) => void;
  onZoom: (node: number) => void;
  /** The user moved the window: to a part of the zoomed frame, or of one of its callers. */
  onPart: (node: number, part: Part | null) => void;
  onHover: (node: number) => void;
  /** The function under the pointer in any view. */
  hovered: string;
  /** The id of the element that describes the cursor; required if a page has several trees. */
  cursorId?: string;
  /** Requests the menu of a frame at a position on the page. */
  onMenu: (node: number, x: number, y: number) => void;
}

/**
 * The icicle that keys apply to if the page has several: the one with the focus, otherwise the one
 * under the pointer, otherwise the first.
 */
function keyIcicle(): Element | null {
  return (
    document.querySelector(".icicle:focus") ??
    document.querySelector(".icicle:hover") ??
    document.querySelector(".icicle")
  );
}
const zoomIn = (stage: Stage, share: number) => stage.zoomBy(1 / 1.6, share, true);
const zoomOut = (stage: Stage, share: number) => stage.zoomBy(1.6, share, true);
const windowKeys: Record<string, (stage: Stage, share: number) => void> = {
  "+": zoomIn,
  "=": zoomIn,
  w: zoomIn,
  "-": zoomOut,
  s: zoomOut,
  a: (stage) => stage.panBy(-0.25, true),
  d: (stage) => stage.panBy(0.25, true),
};

export function placeTooltip(tip: HTMLElement, clientX: number, clientY: number): void {
  const { offsetWidth, offsetHeight } = tip;
  const x = Math.min(clientX + 14, innerWidth - offsetWidth - 8);
  const below = clientY + 18;
  const y = below + offsetHeight > innerHeight - 8 ? clientY - offsetHeight - 12 : below;
  tip.style.transform =
    `translate(${Math.max(8, Math.round(x))}px, ` + `${Math.max(8, Math.round(y))}px)`;
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

/** Keys of the page that move the window of the icicle that they apply to. */
function useWindowKeys(
  scroller: { current: HTMLDivElement | null },
  stage: { current: Stage | null },
  pointer: { current: { x: number } },
): void {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const move = windowKeys[event.key];
      if (!move || !isPageKey(event) || keyIcicle() !== scroller.current) return;
      event.preventDefault();
      move(stage.current!, stage.current!.keyShare(pointer.current.x));
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}

/** Creates the stage and passes changes of the properties and the hovered frame to it. */
function useStage(props: IcicleProps, firstRow: number) {
  const { flame, colours, palette, isFlipped = false, zoom, part, marks, pinned, cursor } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const pictureCanvas = useRef<HTMLCanvasElement>(null);
  const overlayCanvas = useRef<HTMLCanvasElement>(null);
  const strip = useRef<HTMLDivElement>(null);
  const stripCanvas = useRef<HTMLCanvasElement>(null);
  const stripFrame = useRef<HTMLDivElement>(null);
  const tip = useRef<HTMLDivElement>(null);
  const stage = useRef<Stage | null>(null);
  const gestures = useRef<Gestures | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const [hover, setHover] = useState(-1);
  const pointer = useRef({ x: 0, y: 0, isOver: false });

  const scene = { flame, colours, palette, marks, pinned, isFlipped, firstRow, zoom, cursor };

  useLayoutEffect(() => {
    const minimap =
      strip.current && new Minimap(strip.current, stripCanvas.current!, stripFrame.current!);
    const made = new Stage(
      scroller.current!,
      pictureCanvas.current!,
      overlayCanvas.current!,
      minimap,
      scene,
    );
    made.onSettled = (window) => {
      const { flame, zoom, onPart } = latest.current;
      const { node, part } = partOf(flame, zoom, window);
      own.current = { node, part };
      onPart(node, part);
    };
    stage.current = made;
    made.onRest = () => {
      const { x, y, isOver } = pointer.current;
      if (isOver) point(made.hit(x, y));
    };
    gestures.current = new Gestures(made, () => point(-1));
    const detach = [gestures.current.attach(), minimap?.attach(made)];
    const observer = new ResizeObserver(() => made.resize());
    observer.observe(scroller.current!);
    return () => {
      observer.disconnect();
      for (const end of detach) end?.();
      made.stop();
    };
  }, []);

  const shown = useRef({ flame, isFlipped });
  /** The last position that this icicle wrote to the address bar; its picture is already shown. */
  const own = useRef<{ node: number; part: Part | null } | null>(null);
  useLayoutEffect(() => {
    const made = stage.current!;
    const isSame = shown.current.flame === flame && shown.current.isFlipped === isFlipped;
    const isOwn = isSame && own.current?.node === zoom && isSameWindow(own.current.part, part);
    shown.current = { flame, isFlipped };
    made.show(scene);
    if (isOwn) return;
    own.current = null;
    if (!isSame) {
      made.hover = -1;
      setHover(-1);
      made.scrollToRoot();
    }
    made.setWindow(windowOf(flame, zoom, part), isSame);
    made.reveal(zoom);
  }, [flame, zoom, part?.from, part?.to, isFlipped]);

  useLayoutEffect(() => stage.current!.show(scene), [marks, palette, cursor, colours, pinned]);
  useLayoutEffect(() => stage.current!.highlightFunction(props.hovered), [props.hovered]);

  useEffect(() => {
    if (hover >= 0 && tip.current) placeTooltip(tip.current, pointer.current.x, pointer.current.y);
  }, [hover]);

  function point(node: number): void {
    const made = stage.current!;
    if (made.hover === node) return;
    made.hover = node;
    made.paintOverlaySoon();
    setHover(node);
    latest.current.onHover(node);
  }
  useWindowKeys(scroller, stage, pointer);
  return {
    scroller,
    pictureCanvas,
    overlayCanvas,
    strip,
    stripCanvas,
    stripFrame,
    tip,
    stage,
    gestures,
    pointer,
    hover,
    point,
  };
}

/** Pointer and keys of the tree. */
function handlersOf(props: IcicleProps, view: ReturnType<typeof useStage>, firstRow: number) {
  const { flame, isFlipped = false, cursor } = props;
  const { stage, gestures, pointer, tip, point } = view;
  const move = (event: PointerEvent) => {
    const isOver = event.pointerType !== "touch" && event.buttons === 0;
    pointer.current = { x: event.clientX, y: event.clientY, isOver };
    if (isOver) point(stage.current!.hit(event.clientX, event.clientY));
    if (tip.current) placeTooltip(tip.current, event.clientX, event.clientY);
  };
  const press = (event: MouseEvent) => {
    if (gestures.current?.wasDrag) return;
    const node = stage.current!.hit(event.clientX, event.clientY);
    if (node < 0) return;
    props.onCursor(node);
    props.onZoom(node);
  };
  const openMenu = (event: MouseEvent) => {
    const node = stage.current!.hit(event.clientX, event.clientY);
    if (node < 0) return;
    event.preventDefault();
    point(-1);
    props.onMenu(node, event.clientX, event.clientY);
  };
  const key = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key.startsWith("Arrow")) {
      // in preorder, the only frame in the first row is 1
      const next = Math.max(firstRow, neighbour(flame, cursor, event.key, isFlipped));
      props.onCursor(next);
      stage.current!.reveal(next);
      stage.current!.revealAcross(next);
    } else if (event.key === "Enter" || event.key === " ") props.onZoom(cursor);
    else if (event.key === "Home") props.onCursor(firstRow);
    else return;
    event.preventDefault();
  };
  return { move, press, openMenu, key };
}

export function Icicle(props: IcicleProps) {
  const { flame, unit, hasMinimap = true, hasRoot = true, zoom, cursor } = props;
  const { cursorId = "icicle-cursor" } = props;
  const firstRow = hasRoot ? 0 : 1;
  const view = useStage(props, firstRow);
  const { scroller, pictureCanvas, overlayCanvas, strip, stripCanvas, stripFrame, tip } = view;
  const { stage, pointer, hover, point } = view;
  const { move, press, openMenu, key } = handlersOf(props, view, firstRow);

  return (
    <div class={`icicle-frame ${hasMinimap ? "" : "without-minimap"}`}>
      {hasMinimap && (
        <div class="minimap" ref={strip} aria-hidden="true">
          <canvas ref={stripCanvas} />
          <div class="minimap-tree">
            <div class="minimap-seen" ref={stripFrame} hidden />
          </div>
        </div>
      )}
      <div
        class="icicle"
        ref={scroller}
        role="tree"
        tabIndex={0}
        aria-label="Call tree. Arrow keys move between frames, Enter zooms."
        aria-activedescendant={cursorId}
        onScroll={() => stage.current?.paintSoon()}
        onPointerMove={move}
        onPointerLeave={() => {
          pointer.current.isOver = false;
          point(-1);
        }}
        onClick={press}
        onContextMenu={openMenu}
        onKeyDown={key}
        onFocus={() => stage.current?.paintOverlaySoon()}
        onBlur={() => stage.current?.paintOverlaySoon()}
      >
        <div
          class="icicle-space"
          style={{ height: `${(flame.rowCount - firstRow) * rowHeight}px` }}
        >
          <div class="icicle-canvases" aria-hidden="true">
            <canvas ref={pictureCanvas} />
            <canvas ref={overlayCanvas} hidden />
          </div>
        </div>
        <div
          id={cursorId}
          class="unseen"
          role="treeitem"
          aria-level={flame.depth[cursor] + 1 - firstRow}
          aria-selected={cursor === zoom}
        >
          {spokenNode(flame, cursor, unit)}
        </div>
      </div>
      <div class="tip" ref={tip} hidden={hover < 0} aria-hidden="true">
        {hover >= 0 && hover < flame.nodeCount && (
          <Tooltip flame={flame} node={hover} unit={unit} />
        )}
      </div>
    </div>
  );
}
