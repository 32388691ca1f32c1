/*
 * icicle: the call tree as boxes, callers above callees, as wide as their value.
 *
 * The scroller is one focusable tree: arrows move a cursor over frames, and the frame under it is the
 * active descendant, so that a screen reader says what the eye sees. Two canvases lie in it: the
 * picture, repainted when something changes, and an overlay for hover and cursor.
 */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { makePalette, type FrameColours } from "../model/colour.ts";
import { parentOf, type Flame } from "../model/flame.ts";
import { firstEndingAfter, nodeAt, type Window } from "../model/layout.ts";
import type { SearchResult } from "../model/search.ts";
import { describeNode, spokenNode } from "./describe.ts";
import { IciclePainter, rowHeight, type Picture } from "./icicle_draw.ts";

const zoomMs = 170;

export interface IcicleProps {
  flame: Flame;
  colours: FrameColours;
  unit: string;
  isDark: boolean;
  zoom: number;
  marks: SearchResult | null;
  /** The frame that the keyboard stands on. */
  cursor: number;
  onCursor: (node: number) => void;
  onZoom: (node: number) => void;
  onHover: (node: number) => void;
}

const windowOf = (flame: Flame, node: number): Window => {
  const from = flame.start[node];
  const width = flame.width[node] || 1;
  return { from, to: from + width };
};

interface Canvas {
  context: CanvasRenderingContext2D;
  painter: IciclePainter;
  overlay: CanvasRenderingContext2D;
}

function sizeCanvas(canvas: HTMLCanvasElement, width: number, height: number, ratio: number): void {
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  canvas.style.width = width + "px";
  canvas.style.height = height + "px";
}

/** The part of the view that moves without Preact: sizes, window, painting at most once per frame. */
class Stage {
  private canvas: Canvas | null = null;
  private width = 0;
  private height = 0;
  private ratio = 1;
  private frameRequest = 0;
  private animation: { from: Window; to: Window; begun: number } | null = null;
  window: Window = { from: 0, to: 1 };
  hover = -1;
  props!: IcicleProps;
  palette = makePalette(false);

  constructor(
    readonly scroller: HTMLElement,
    private readonly pictureElement: HTMLCanvasElement,
    private readonly overlayElement: HTMLCanvasElement,
  ) {}

  resize(): void {
    this.width = this.scroller.clientWidth;
    this.height = this.scroller.clientHeight;
    this.ratio = devicePixelRatio || 1;
    for (const canvas of [this.pictureElement, this.overlayElement]) sizeCanvas(canvas, this.width, this.height, this.ratio);
    // A software canvas: with thousands of small boxes it is several times faster than an emulated GPU.
    const context = this.pictureElement.getContext("2d", { alpha: false, willReadFrequently: true });
    const overlay = this.overlayElement.getContext("2d");
    if (!context || !overlay) return;
    for (const each of [context, overlay]) each.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    const isFirst = this.canvas === null;
    this.canvas = { context, overlay, painter: new IciclePainter(context) };
    if (isFirst) this.reveal(this.props.zoom);
    this.paintNow();
  }

  setWindow(target: Window, isAnimated: boolean): void {
    const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (isAnimated && !isStill) this.animation = { from: this.window, to: target, begun: performance.now() };
    else {
      this.animation = null;
      this.window = target;
    }
    this.paintSoon();
  }

  paintSoon(): void {
    this.frameRequest ||= requestAnimationFrame(() => {
      this.frameRequest = 0;
      this.step();
      this.paintNow();
    });
  }

  stop(): void {
    cancelAnimationFrame(this.frameRequest);
  }

  private step(): void {
    if (!this.animation) return;
    const { from, to, begun } = this.animation;
    const time = Math.min(1, (performance.now() - begun) / zoomMs);
    const eased = 1 - (1 - time) ** 3;
    this.window = { from: from.from + (to.from - from.from) * eased, to: from.to + (to.to - from.to) * eased };
    if (time === 1) {
      this.window = to;
      this.animation = null;
    } else queueMicrotask(() => this.paintSoon());
  }

  private picture(): Picture {
    const { flame, colours, marks, zoom } = this.props;
    return {
      flame, colours, marks,
      palette: this.palette,
      window: this.window,
      scrollTop: this.scroller.scrollTop,
      widthPx: this.width,
      heightPx: this.height,
      zoomDepth: flame.depth[zoom],
    };
  }

  private paintNow(): void {
    if (!this.canvas || !this.props || this.width === 0) return;
    this.canvas.painter.paint(this.picture());
    this.paintOverlay();
  }

  paintOverlay(): void {
    if (!this.canvas) return;
    const { overlay, painter } = this.canvas;
    const { flame, cursor } = this.props;
    overlay.clearRect(0, 0, this.width, this.height);
    const hovered = this.hover > 0 ? flame.frames.nameId[flame.frame[this.hover]] : -1;
    const { boxes } = painter;
    overlay.strokeStyle = this.palette.outline;
    overlay.fillStyle = this.palette.isDark ? "rgba(255,255,255,0.13)" : "rgba(60,35,0,0.09)";
    const isFocused = document.activeElement === this.scroller && this.scroller.matches(":focus-visible");
    for (let i = 0; i < boxes.count; i++) {
      const node = boxes.node[i];
      const y = boxes.row[i] * rowHeight - this.scroller.scrollTop;
      if (hovered >= 0 && flame.frames.nameId[flame.frame[node]] === hovered)
        overlay.fillRect(boxes.x[i], y, boxes.width[i], rowHeight - 1);
      if (node === this.hover || (node === cursor && isFocused)) {
        overlay.lineWidth = node === cursor && isFocused ? 2 : 1;
        overlay.strokeRect(boxes.x[i] + 1, y + 1, Math.max(1, boxes.width[i] - 2), rowHeight - 3);
      }
    }
  }

  hit(clientX: number, clientY: number): number {
    const bounds = this.scroller.getBoundingClientRect();
    const row = Math.floor((clientY - bounds.top + this.scroller.scrollTop) / rowHeight);
    return nodeAt(this.props.flame, row, this.window, this.width, clientX - bounds.left);
  }

  /** Scrolls as little as needed to see a node; before the first size is known all are at the top. */
  reveal(node: number): void {
    if (this.height === 0) return;
    const top = this.props.flame.depth[node] * rowHeight;
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = Math.max(0, top - 2 * rowHeight);
    else if (top + rowHeight > this.scroller.scrollTop + this.height)
      this.scroller.scrollTop = top - this.height + 3 * rowHeight;
  }
}

/** The frame beside, above or below the cursor; the cursor itself where there is none. */
export function neighbour(flame: Flame, node: number, key: string): number {
  if (key === "ArrowUp") return Math.max(0, parentOf(flame, node));
  if (key === "ArrowDown") return flame.end[node] > node + 1 ? node + 1 : node;
  const row = flame.depth[node];
  const low = flame.rowOffset[row];
  const high = flame.rowOffset[row + 1];
  let at = firstEndingAfter(flame, low, high, flame.start[node]);
  while (at < high && flame.rowNodes[at] !== node) at++;
  const next = at + (key === "ArrowLeft" ? -1 : 1);
  return next >= low && next < high ? flame.rowNodes[next] : node;
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
  const { flame, unit, isDark, zoom, marks, cursor } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const pictureCanvas = useRef<HTMLCanvasElement>(null);
  const overlayCanvas = useRef<HTMLCanvasElement>(null);
  const tip = useRef<HTMLDivElement>(null);
  const stage = useRef<Stage | null>(null);
  const [hover, setHover] = useState(-1);
  const pointer = useRef({ x: 0, y: 0 });
  const palette = useMemo(() => makePalette(isDark), [isDark]);

  useLayoutEffect(() => {
    const made = new Stage(scroller.current!, pictureCanvas.current!, overlayCanvas.current!);
    made.props = props;
    stage.current = made;
    const observer = new ResizeObserver(() => made.resize());
    observer.observe(scroller.current!);
    return () => {
      observer.disconnect();
      made.stop();
    };
  }, []);

  const shown = useRef<Flame | null>(null);
  useLayoutEffect(() => {
    const made = stage.current!;
    const isSameTree = shown.current === flame;
    shown.current = flame;
    made.props = props;
    made.palette = palette;
    if (!isSameTree) {
      made.hover = -1;
      setHover(-1);
      scroller.current!.scrollTop = 0;
    }
    made.setWindow(windowOf(flame, zoom), isSameTree);
    made.reveal(zoom);
  }, [flame, zoom]);

  useLayoutEffect(() => {
    const made = stage.current!;
    made.props = props;
    made.palette = palette;
    made.paintSoon();
  }, [marks, palette, cursor, props.colours]);

  useEffect(() => {
    if (hover >= 0 && tip.current) placeTooltip(tip.current, pointer.current.x, pointer.current.y);
  }, [hover]);

  const point = (node: number) => {
    const made = stage.current!;
    if (made.hover === node) return;
    made.hover = node;
    made.paintOverlay();
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
      const next = neighbour(flame, cursor, event.key);
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
        onFocus={() => stage.current?.paintOverlay()}
        onBlur={() => stage.current?.paintOverlay()}
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
