/*
 * stage: the part of an icicle that moves without Preact: sizes, visible window, scrolling, hover,
 * and painting at most once per frame of the screen.
 */
import { startOf, type Flame, type FrameTable } from "../../model/tree/flame.ts";
import type { FrameColours } from "../../model/colours/frame_colours.ts";
import { layoutRow, nodeAt } from "../../model/tree/row_layout.ts";
import type { SearchResult } from "../../model/search/search.ts";
import {
  between,
  isSameWindow,
  minShare,
  panned,
  wholeOf,
  zoomed,
  type Window,
} from "../../model/tree/window.ts";
import { IciclePainter, type Look, type PaintedBoxes, type Picture } from "./icicle_draw.ts";
import type { Minimap } from "./minimap.ts";
import { rowHeight, Rows } from "./rows.ts";

const zoomMs = 170;
/** The time after the last movement at which the window counts as chosen. */
const settleMs = 160;
/**
 * A box of the hovered function that is narrower than this gets a line at its lower edge, of height
 * narrowLinePx, instead of an outline.
 */
const leastEdgedPx = 8;
const narrowLinePx = 5;
const pinPx = 10;

/** The properties of a picture; the stage keeps the last scene. */
export interface Scene {
  flame: Flame;
  colours: FrameColours;
  palette: Look;
  marks: SearchResult | null;
  /** Nodes with a sign in their upper right corner: comments are pinned to them. */
  pinned?: ReadonlySet<number>;
  isFlipped: boolean;
  /** The first row that is shown: 1 leaves out the root's row. */
  firstRow: number;
  zoom: number;
  cursor: number;
}

interface Canvas {
  context: CanvasRenderingContext2D;
  painter: IciclePainter;
}

function sizeCanvas(canvas: HTMLCanvasElement, width: number, height: number, ratio: number): void {
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  canvas.style.width = width + "px";
  canvas.style.height = height + "px";
}

/** Tests whether frames belong to the hovered function; each name is compared once. */
class FunctionMatcher {
  private frames: FrameTable | null = null;
  /** By name id: 0 not compared yet, 1 different, 2 equal. */
  private known = new Uint8Array(0);

  constructor(readonly name: string) {}

  has(frames: FrameTable, frame: number): boolean {
    if (this.name === "") return false;
    if (this.frames !== frames) {
      this.frames = frames;
      this.known = new Uint8Array(frames.stringCount);
    }
    const id = frames.nameId[frame];
    return (this.known[id] ||= frames.string(id) === this.name ? 2 : 1) === 2;
  }
}

const stages = new WeakMap<Element, Stage>();

/** The current pictures of all icicles of the page, from top to bottom. */
export function picturesShown(): Picture[] {
  return [...document.querySelectorAll(".icicle")].flatMap(
    (element) => stages.get(element)?.picture() ?? [],
  );
}

export class Stage {
  private canvas: Canvas | null = null;
  /**
   * The overlay is blank and not in the document, because composing it costs as much as the
   * picture.
   */
  private isOverlayBlank = true;
  /**
   * The overlay has the picture's size. Its pixel size does not show this: it stays the same when
   * the page is zoomed.
   */
  private isOverlayFit = false;
  private width = 0;
  private ratio = 1;
  private rows: Rows;
  private frameRequest = 0;
  private isPictureOld = false;
  private lacksNames = false;
  private animation: { from: Window; to: Window; begun: number } | null = null;
  private settling: ReturnType<typeof setTimeout> | undefined;
  private resting: ReturnType<typeof setTimeout> | undefined;
  /** Nothing has moved for a short time. */
  private isResting = false;
  window: Window;
  hover = -1;
  /** The function under the pointer, here or in another view. */
  private hoveredFunction = new FunctionMatcher("");
  /** Called when the window rests after the user moved it. */
  onSettled: (window: Window) => void = () => undefined;
  /**
   * Called when nothing has moved for a short time, because another box may be under the pointer.
   */
  onRest: () => void = () => undefined;

  constructor(
    readonly scroller: HTMLElement,
    private readonly pictureElement: HTMLCanvasElement,
    private readonly overlayElement: HTMLCanvasElement,
    private readonly minimap: Minimap | null,
    private scene: Scene,
  ) {
    stages.set(scroller, this);
    this.window = wholeOf(scene.flame, scene.zoom);
    this.rows = this.rowsOf(0);
  }

  private rowsOf(viewPx: number): Rows {
    const { flame, isFlipped, firstRow } = this.scene;
    return new Rows(flame.rowCount, viewPx, isFlipped, firstRow);
  }

  /** Shows another scene; the window and the scroll position stay. */
  show(scene: Scene): void {
    this.scene = scene;
    this.rows = this.rowsOf(this.rows.viewPx);
    this.paintSoon();
  }

  resize(): void {
    const { scroller } = this;
    const isFirst = this.canvas === null;
    const belowPx = this.rows.spacePx - this.rows.viewPx - scroller.scrollTop;
    this.width = scroller.clientWidth;
    this.ratio = devicePixelRatio || 1;
    this.rows = this.rowsOf(scroller.clientHeight);
    sizeCanvas(this.pictureElement, this.width, this.rows.viewPx, this.ratio);
    this.isOverlayFit = false;
    // A software canvas: with thousands of small boxes, it is several times faster than an emulated
    // GPU.
    const context = this.pictureElement.getContext("2d", {
      alpha: false,
      willReadFrequently: true,
    });
    if (!context) return;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    this.canvas = { context, painter: new IciclePainter(context) };
    if (isFirst) {
      this.scrollToRoot();
      this.reveal(this.scene.zoom);
      // keeps the rows on the root's side in place
    } else if (this.scene.isFlipped) scroller.scrollTop = this.rows.rootScroll - belowPx;
    this.paintNow();
  }

  highlightFunction(name: string): void {
    if (this.hoveredFunction.name === name) return;
    this.hoveredFunction = new FunctionMatcher(name);
    this.paintOverlaySoon();
  }

  /* ---- the window ---- */

  private get whole(): Window {
    return wholeOf(this.scene.flame, 0);
  }
  /** The position of the window, or the target of its animation. */
  private get target(): Window {
    return this.animation?.to ?? this.window;
  }
  private get minWidth(): number {
    const { from, to } = wholeOf(this.scene.flame, this.scene.zoom);
    return (to - from) * minShare;
  }
  get isWhole(): boolean {
    return this.target.to - this.target.from >= this.whole.to - this.whole.from;
  }
  /**
   * Pixels as a share of the window's width, and a position on the screen as the share to its left.
   */
  shareOf(px: number): number {
    return this.width ? px / this.width : 0;
  }
  shareAt(clientX: number): number {
    return this.shareOf(clientX - this.scroller.getBoundingClientRect().left);
  }

  /** Scales the window's width by `factor`; the value at `share` keeps its position. */
  zoomBy(factor: number, share: number, isAnimated = false): void {
    this.moveTo(zoomed(this.target, this.whole, this.minWidth, share, factor), isAnimated);
  }
  panBy(share: number, isAnimated = false): void {
    this.moveTo(panned(this.target, this.whole, share), isAnimated);
  }
  /** Shows the range between two shares of the whole width. */
  seeBetween(a: number, b: number): void {
    const { from, to } = this.whole;
    const valueAt = (share: number) => from + Math.min(1, Math.max(0, share)) * (to - from);
    this.moveTo(between(valueAt(a), valueAt(b), this.whole, this.minWidth));
  }
  /** Scrolls by a share of all rows. */
  scrollBy(share: number): void {
    this.scroller.scrollTop += share * this.rows.spacePx;
  }
  /** The user moves the window; onSettled is called when it rests. */
  moveTo(window: Window, isAnimated = false): void {
    this.setWindow(window, isAnimated);
    this.settling = globalThis.setTimeout(() => this.onSettled(this.target), settleMs);
  }

  /**
   * Moves the window to the position in the address bar and discards a pending movement of the
   * user.
   */
  setWindow(target: Window, isAnimated: boolean): void {
    clearTimeout(this.settling);
    const isStill =
      isSameWindow(this.window, target) || matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (isAnimated && !isStill)
      this.animation = { from: this.window, to: target, begun: performance.now() };
    else {
      this.animation = null;
      this.window = target;
    }
    this.paintSoon();
  }

  /* ---- painting ---- */

  paintSoon(): void {
    this.isPictureOld = true;
    this.paintOverlaySoon();
  }

  paintOverlaySoon(): void {
    this.frameRequest ||= requestAnimationFrame(() => {
      this.frameRequest = 0;
      this.step();
      if (this.isPictureOld) this.paintNow();
      else {
        if (this.lacksNames) this.addNames();
        this.paintOverlay();
      }
    });
  }

  stop(): void {
    clearTimeout(this.settling);
    clearTimeout(this.resting);
    cancelAnimationFrame(this.frameRequest);
  }

  private step(): void {
    if (!this.animation) return;
    const { from, to, begun } = this.animation;
    const time = Math.min(1, (performance.now() - begun) / zoomMs);
    const eased = 1 - (1 - time) ** 3;
    this.window = {
      from: from.from + (to.from - from.from) * eased,
      to: from.to + (to.to - from.to) * eased,
    };
    if (time === 1) {
      this.window = to;
      this.animation = null;
    } else this.paintSoon();
  }

  picture(): Picture {
    const { flame, colours, palette, marks, zoom } = this.scene;
    return {
      flame,
      colours,
      palette,
      marks,
      window: this.window,
      rows: this.rows,
      scrollTop: this.scroller.scrollTop,
      widthPx: this.width,
      ratio: this.ratio,
      zoomDepth: flame.depth[zoom],
    };
  }

  private paintNow(): void {
    if (!this.canvas || this.width === 0) return;
    this.isPictureOld = this.animation !== null;
    this.lacksNames = !this.canvas.painter.paint(this.picture());
    if (this.lacksNames) this.paintOverlaySoon();
    this.minimap?.paint(this.scene, this.window, this.rows, this.scroller.scrollTop);
    this.restSoon();
    this.paintOverlay();
  }

  private restSoon(): void {
    this.isResting = false;
    clearTimeout(this.resting);
    this.resting = globalThis.setTimeout(() => {
      this.isResting = true;
      this.onRest();
      if (this.hoveredFunction.name !== "") this.paintOverlaySoon();
    }, settleMs);
  }

  private addNames(): void {
    if (!this.canvas) return;
    this.lacksNames = !this.canvas.painter.paintMore(this.picture());
    if (this.lacksNames) this.paintOverlaySoon();
  }

  /** An empty overlay of the picture's size; its memory is allocated on first use. */
  private freshOverlay(): CanvasRenderingContext2D | null {
    const overlay = this.overlayElement.getContext("2d");
    if (this.isOverlayFit) overlay?.clearRect(0, 0, this.width, this.rows.viewPx);
    else {
      sizeCanvas(this.overlayElement, this.width, this.rows.viewPx, this.ratio);
      overlay?.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
      this.isOverlayFit = true;
    }
    return overlay;
  }

  private paintOverlay(): void {
    if (!this.canvas) return;
    const { painter } = this.canvas;
    const { cursor, palette, pinned } = this.scene;
    const isFocused = this.hasKeys;
    const isBlank =
      this.hover < 0 && this.hoveredFunction.name === "" && !isFocused && !pinned?.size;
    if (isBlank && this.isOverlayBlank) return;
    this.overlayElement.hidden = this.isOverlayBlank = isBlank;
    const overlay = this.freshOverlay();
    if (isBlank || !overlay) return;
    overlay.strokeStyle = palette.outline;
    this.paintHighlights(overlay, painter.boxes);
    for (let i = 0; i < painter.boxes.count; i++) {
      const node = painter.boxes.node[i];
      const isCursor = node === cursor && isFocused;
      if (node === this.hover || isCursor)
        this.paintOutline(
          overlay,
          painter.boxes.row[i],
          painter.boxes.x[i],
          painter.boxes.width[i],
          isCursor ? 3 : 2,
        );
      if (pinned?.has(node)) this.paintPin(overlay, painter.boxes, i);
    }
  }

  private paintPin(
    overlay: CanvasRenderingContext2D,
    { row, x, width }: PaintedBoxes,
    i: number,
  ): void {
    const top = this.rows.topOf(row[i]) - this.scroller.scrollTop;
    const right = x[i] + width[i];
    overlay.fillStyle = this.scene.palette.outline;
    overlay.beginPath();
    overlay.moveTo(Math.max(x[i], right - pinPx), top);
    overlay.lineTo(right, top);
    overlay.lineTo(right, top + pinPx);
    overlay.fill();
  }

  /**
   * Outlines a box of the hovered function. If the box or run is too narrow for edges, draws a
   * thick line, because edges would fill a row of such boxes.
   */
  private paintHighlight(
    overlay: CanvasRenderingContext2D,
    row: number,
    left: number,
    width: number,
  ): void {
    const top = this.rows.topOf(row) - this.scroller.scrollTop;
    const { palette } = this.scene;
    overlay.fillStyle = width < leastEdgedPx ? palette.outline : palette.veil;
    if (width < leastEdgedPx)
      return overlay.fillRect(
        left,
        top + rowHeight - 1 - narrowLinePx,
        Math.max(1, width),
        narrowLinePx,
      );
    overlay.fillRect(left, top, width, rowHeight - 1);
    this.paintOutline(overlay, row, left, width, 2);
  }

  /** Runs may contain a million nodes, so their names are compared only when the picture rests. */
  private paintHighlights(overlay: CanvasRenderingContext2D, boxes: PaintedBoxes): void {
    const {
      hoveredFunction,
      rows,
      scene: { flame },
    } = this;
    if (hoveredFunction.name === "") return;
    const isHighlighted = (node: number) => hoveredFunction.has(flame.frames, flame.frame[node]);
    if (!this.isResting) {
      for (let i = 0; i < boxes.count; i++)
        if (isHighlighted(boxes.node[i]))
          this.paintHighlight(overlay, boxes.row[i], boxes.x[i], boxes.width[i]);
      return;
    }
    const [first, last] = rows.seen(this.scroller.scrollTop);
    for (let row = first; row <= last; row++)
      layoutRow(flame, row, this.window, this.width, (from, to, left, right) => {
        for (let at = from; at <= to; at++)
          if (isHighlighted(flame.rowNodes[at]))
            return this.paintHighlight(
              overlay,
              row,
              left,
              right - left - (from === to && right - left > 3 ? 1 : 0),
            );
      });
  }

  /**
   * In whole pixels within the box: a line that covers parts of two pixels has half the contrast.
   */
  private paintOutline(
    overlay: CanvasRenderingContext2D,
    row: number,
    x: number,
    width: number,
    linePx: number,
  ): void {
    const line = linePx + (this.scene.palette.paintEdges ? 1 : 0);
    const left = Math.round(x);
    overlay.lineWidth = line;
    overlay.strokeRect(
      left + line / 2,
      this.rows.topOf(row) - this.scroller.scrollTop + line / 2,
      Math.max(0, Math.round(x + width) - left - line),
      rowHeight - 1 - line,
    );
  }

  /* ---- positions ---- */

  private get hasKeys(): boolean {
    return document.activeElement === this.scroller && this.scroller.matches(":focus-visible");
  }

  hit(clientX: number, clientY: number): number {
    const bounds = this.scroller.getBoundingClientRect();
    const row = this.rows.rowAt(clientY - bounds.top + this.scroller.scrollTop);
    if (row < this.rows.first) return -1;
    return nodeAt(this.scene.flame, row, this.window, this.width, clientX - bounds.left);
  }

  scrollToRoot(): void {
    this.scroller.scrollTop = this.rows.rootScroll;
  }

  /**
   * The position around which keys zoom, as a share of the width: the cursor's frame if the icicle
   * has the keyboard focus and shows the frame, otherwise the pointer or the middle.
   */
  keyShare(pointerX: number): number {
    const { flame, cursor } = this.scene;
    const { from, to } = this.target;
    const left = startOf(flame, cursor);
    const right = left + flame.width[cursor];
    if (this.hasKeys && left < to && right > from)
      return ((Math.max(left, from) + Math.min(right, to)) / 2 - from) / (to - from);
    return this.hover >= 0 ? this.shareAt(pointerX) : 0.5;
  }

  /** Scrolls as little as needed to show a node; before the first size is known, resize does it. */
  reveal(node: number): void {
    if (this.rows.viewPx === 0) return;
    this.scroller.scrollTop = this.rows.scrollFor(
      this.scene.flame.depth[node],
      this.scroller.scrollTop,
    );
  }

  /** Moves the window as little as needed to show a part of a node. */
  revealAcross(node: number): void {
    const width = this.scene.flame.width[node];
    const { from, to } = this.target;
    const left = startOf(this.scene.flame, node);
    const right = left + width;
    if (left < to && right > from) return;
    const by =
      width >= to - from
        ? left >= to
          ? left - from
          : right - to
        : (left + right) / 2 - (from + to) / 2;
    this.panBy(by / (to - from), true);
  }
}
