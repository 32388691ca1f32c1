/*
 * minimap: the whole tree in a strip above the picture, and a rectangle around the visible part.
 *
 * The tree is drawn once per tree, size and search; the rectangle is an element that moves. Marks
 * below the tree show where a frame of any depth matches the search, so that every match is
 * visible. Dragging the rectangle moves the view, dragging elsewhere chooses a new part, and a
 * click centres the view there. Keys can do all this too, so the minimap is hidden from assistive
 * technology.
 */
import { dimmedFill } from "../../model/colours/colour.ts";
import { layoutRow, matchedColumns } from "../../model/tree/row_layout.ts";
import { wholeOf, type Window } from "../../model/tree/window.ts";
import { Bands, type BoxTarget } from "./bands.ts";
import { fillOf } from "./icicle_draw.ts";
import type { Rows } from "./rows.ts";
import type { Scene, Stage } from "./stage.ts";

const marksPx = 4;
const gapPx = 2;
/** The minimum size of the rectangle. */
const minSeenPx = 5;
const slackPx = 4;

/** The visible part, as shares of the tree's width and height. */
interface Seen {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

type Drag = { x: number; y: number; begun: number; isMove: boolean; isFar: boolean };

export class Minimap {
  private width = 0;
  private height = 0;
  private drawn: unknown[] = [];
  private target: BoxTarget | null = null;
  private seen: Seen = { left: 0, right: 1, top: 0, bottom: 1 };
  private drag: Drag | null = null;
  stage!: Stage;

  constructor(
    private readonly element: HTMLElement,
    private readonly canvas: HTMLCanvasElement,
    private readonly frame: HTMLElement,
  ) {}

  /** The height of the tree in the strip. */
  private get treePx(): number {
    return Math.max(1, this.height - marksPx - gapPx);
  }

  paint(scene: Scene, window: Window, rows: Rows, scrollTop: number): void {
    const key = [
      scene.flame,
      scene.colours,
      scene.palette,
      scene.marks,
      scene.isFlipped,
      this.element.clientWidth,
      this.element.clientHeight,
      devicePixelRatio,
    ];
    if (key.some((value, i) => value !== this.drawn[i])) {
      this.drawn = key;
      this.draw(scene);
    }
    const { from, to } = wholeOf(scene.flame, 0);
    this.place({
      left: (window.from - from) / (to - from),
      right: (window.to - from) / (to - from),
      top: scrollTop / rows.spacePx,
      bottom: (scrollTop + rows.viewPx) / rows.spacePx,
    });
  }

  private draw(scene: Scene): void {
    const ratio = devicePixelRatio || 1;
    this.width = this.element.clientWidth;
    this.height = this.element.clientHeight;
    this.canvas.width = Math.max(1, Math.round(this.width * ratio));
    this.canvas.height = Math.max(1, Math.round(this.height * ratio));
    const context = this.canvas.getContext("2d", { alpha: false, willReadFrequently: true });
    if (!context || this.width === 0) return;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const target = (this.target ??= new Bands(context));
    target.begin(this.width, this.height, ratio, scene.palette.background);
    const { rowCount } = scene.flame;
    // If the tree is deeper than the strip has pixels, only every n-th row is drawn; the marks
    // consider all rows.
    const lines = Math.min(rowCount, Math.floor(this.treePx));
    for (let line = 0; line < lines; line++)
      this.drawRow(target, scene, Math.floor((line * rowCount) / lines), line, lines);
    target.put();
    this.drawMarks(context, scene);
  }

  private drawRow(target: BoxTarget, scene: Scene, row: number, line: number, lines: number): void {
    const { flame, palette, marks } = scene;
    const place = scene.isFlipped ? lines - 1 - line : line;
    const ratio = devicePixelRatio || 1;
    // whole pixels are sharp
    const edge = (line: number) => Math.round((line * this.treePx * ratio) / lines) / ratio;
    const [top, bottom] = [edge(place), edge(place + 1)];
    target.beginRow(
      top,
      bottom - top > 3 ? bottom - top - 1 : bottom - top,
      palette.overview ?? palette.fills,
    );
    layoutRow(flame, row, wholeOf(flame, 0), this.width, (first, last, left, right) => {
      const isMarked = !marks || marks.rows.any(first, last);
      target.box(left, right, isMarked ? fillOf(scene, flame.rowNodes[first]) : dimmedFill);
    });
    target.endRow();
  }

  private drawMarks(context: CanvasRenderingContext2D, { flame, marks, palette }: Scene): void {
    if (!marks) return;
    const columns = matchedColumns(flame, marks.frameMatches, this.width);
    context.fillStyle = palette.mark;
    for (let x = 0; x < columns.length; x++)
      if (columns[x]) context.fillRect(x, this.height - marksPx, 1, marksPx);
  }

  private place(seen: Seen): void {
    this.seen = seen;
    const isAll = seen.right - seen.left > 0.9999 && seen.bottom - seen.top > 0.9999;
    this.frame.hidden = isAll;
    if (isAll) return;
    const put = (low: number, high: number, px: number): [number, number] => {
      const size = Math.min(px, Math.max(minSeenPx, (high - low) * px));
      return [Math.max(0, Math.min(px - size, ((low + high) / 2) * px - size / 2)), size];
    };
    const [left, width] = put(seen.left, seen.right, this.width);
    const [top, height] = put(seen.top, seen.bottom, this.treePx);
    this.frame.style.transform = `translate(${left}px, ${top}px)`;
    this.frame.style.width = `${width}px`;
    this.frame.style.height = `${height}px`;
  }

  /* ---- input ---- */

  attach(stage: Stage): () => void {
    this.stage = stage;
    const ended = new AbortController();
    const on = (
      kind: "pointerdown" | "pointermove" | "pointerup" | "pointercancel",
      listener: (event: PointerEvent) => void,
    ) => this.element.addEventListener(kind, listener, { signal: ended.signal });
    on("pointerdown", (event) => this.down(event));
    on("pointermove", (event) => this.move(event));
    on("pointerup", (event) => this.up(event));
    on("pointercancel", () => (this.drag = null));
    return () => ended.abort();
  }

  private shareAt(event: PointerEvent): number {
    return (event.clientX - this.element.getBoundingClientRect().left) / this.width;
  }

  private down(event: PointerEvent): void {
    if (event.button !== 0 || this.width === 0) return;
    this.element.setPointerCapture(event.pointerId);
    const isMove = !this.frame.hidden && event.target === this.frame;
    this.drag = {
      x: event.clientX,
      y: event.clientY,
      begun: this.shareAt(event),
      isMove,
      isFar: false,
    };
  }

  private move(event: PointerEvent): void {
    const { drag, stage } = this;
    if (!drag) return;
    const [x, y] = [event.clientX - drag.x, event.clientY - drag.y];
    if (!drag.isFar && Math.hypot(x, y) < slackPx) return;
    drag.isFar = true;
    if (!drag.isMove) return stage.seeBetween(drag.begun, this.shareAt(event));
    stage.panBy(x / this.width / (this.seen.right - this.seen.left));
    stage.scrollBy(y / this.treePx);
    drag.x = event.clientX;
    drag.y = event.clientY;
  }

  private up(event: PointerEvent): void {
    const { drag, stage } = this;
    this.drag = null;
    if (!drag || drag.isFar || drag.isMove) return;
    const { left, right, top, bottom } = this.seen;
    stage.panBy((drag.begun - (left + right) / 2) / (right - left), true);
    const share = (event.clientY - this.element.getBoundingClientRect().top) / this.treePx;
    if (bottom - top < 0.9999) stage.scrollBy(share - (top + bottom) / 2);
  }
}
