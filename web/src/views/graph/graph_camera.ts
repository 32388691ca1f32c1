/*
 * graph_camera: the visible part of a picture and its scale; moved by pointer and touch without
 * Preact.
 *
 *   wheel                  moves up to the picture's edges; from there on the page scrolls
 *   Shift + wheel          moves sideways
 *   Ctrl or Cmd + wheel    zooms around the pointer, as does a pinch on a touchpad
 *   drag, one finger       moves
 *   two fingers            zoom and move
 */
import type { Point, Size } from "../../model/functions/graph_layout.ts";

/** Numbers are 11 pixels high at this scale. The initial scale is never smaller. */
const readableScale = 0.92;
const largestScale = 4;
/** As in the icicle (gestures.ts). */
const maxStepPx = 60;
const zoomPerPx = 0.006;
const slackPx = 4;

export class GraphCamera {
  /** The last press became a drag and is not a click. */
  wasDrag = false;
  private scale = 1;
  private x = 0;
  private y = 0;
  private size: Size = [1, 1];
  private readonly places = new Map<number, Point>();
  private pressed: Point = [0, 0];

  constructor(
    private readonly view: SVGSVGElement,
    private readonly picture: SVGGElement,
  ) {}

  /**
   * Shows a picture: all of it if it is readable at that scale, otherwise the part around a point,
   * without empty space that the picture could fill.
   */
  show(size: Size, [x, y]: Point): void {
    this.size = size;
    this.fit();
    if (this.scale >= readableScale) return;
    this.scale = readableScale;
    const around = (at: number, length: number, seen: number) =>
      Math.min(
        Math.max(0, (seen - length * this.scale) / 2),
        Math.max(seen - length * this.scale, seen / 2 - at * this.scale),
      );
    this.x = around(x, size[0], this.view.clientWidth);
    this.y = around(y, size[1], this.view.clientHeight);
    this.apply();
  }

  fit(): void {
    const { clientWidth, clientHeight } = this.view;
    this.scale = Math.min(1.2, clientWidth / this.size[0], clientHeight / this.size[1]) || 1;
    this.x = (clientWidth - this.size[0] * this.scale) / 2;
    this.y = Math.max(0, (clientHeight - this.size[1] * this.scale) / 2);
    this.apply();
  }

  /** Zooms around a point of the view; default: its centre. */
  zoomBy(
    factor: number,
    at: Point = [this.view.clientWidth / 2, this.view.clientHeight / 2],
  ): void {
    const smallest =
      0.5 *
      Math.min(1, this.view.clientWidth / this.size[0], this.view.clientHeight / this.size[1]);
    const scale = Math.min(largestScale, Math.max(smallest, this.scale * factor));
    this.x = at[0] - ((at[0] - this.x) * scale) / this.scale;
    this.y = at[1] - ((at[1] - this.y) * scale) / this.scale;
    this.scale = scale;
    this.apply();
  }

  panBy(x: number, y: number): void {
    this.x += x;
    this.y += y;
    this.apply();
  }

  /** Moves as little as needed to show a box. */
  reveal([x, y]: Point, [width, height]: Size): void {
    const needed = (middle: number, length: number, seen: number, offset: number) => {
      const from = (middle - length / 2) * this.scale + offset - 12;
      const to = (middle + length / 2) * this.scale + offset + 12;
      return from < 0 ? -from : to > seen ? seen - to : 0;
    };
    this.panBy(
      needed(x, width, this.view.clientWidth, this.x),
      needed(y, height, this.view.clientHeight, this.y),
    );
  }

  private apply(): void {
    // A part of the picture always stays visible.
    const { clientWidth, clientHeight } = this.view;
    const within = (value: number, length: number, seen: number) =>
      Math.max(60 - length * this.scale, Math.min(seen - 60, value));
    this.x = within(this.x, this.size[0], clientWidth);
    this.y = within(this.y, this.size[1], clientHeight);
    this.picture.setAttribute(
      "transform",
      `translate(${this.x.toFixed(2)} ${this.y.toFixed(2)}) scale(${this.scale.toFixed(4)})`,
    );
  }

  /** Listens until the returned function is called. */
  attach(): () => void {
    const ended = new AbortController();
    const on = <K extends keyof SVGElementEventMap>(
      kind: K,
      listener: (event: SVGElementEventMap[K]) => void,
    ) => this.view.addEventListener(kind, listener, { signal: ended.signal, passive: false });
    on("wheel", (event) => this.wheel(event));
    on("pointerdown", (event) => this.down(event));
    on("pointermove", (event) => this.move(event));
    on("pointerup", (event) => this.up(event));
    on("pointercancel", (event) => this.up(event));
    return () => ended.abort();
  }

  private placeOf(event: MouseEvent): Point {
    const { left, top } = this.view.getBoundingClientRect();
    return [event.clientX - left, event.clientY - top];
  }

  /** Moves as far as the picture reaches; false if it cannot move. */
  private scrollBy(x: number, y: number): boolean {
    const { view, scale, size } = this;
    const moved = (from: number, by: number, length: number, seen: number) =>
      Math.max(Math.min(from, seen - length * scale), Math.min(Math.max(from, 0), from - by));
    const [toX, toY] = [
      moved(this.x, x, size[0], view.clientWidth),
      moved(this.y, y, size[1], view.clientHeight),
    ];
    if (toX === this.x && toY === this.y) return false;
    this.panBy(toX - this.x, toY - this.y);
    return true;
  }

  private wheel(event: WheelEvent): void {
    const unit = event.deltaMode === 0 ? 1 : 18;
    const [x, y] = [event.deltaX * unit, event.deltaY * unit];
    if (event.ctrlKey || event.metaKey)
      this.zoomBy(
        Math.exp(-Math.max(-maxStepPx, Math.min(maxStepPx, y)) * zoomPerPx),
        this.placeOf(event),
      );
    else if (!(event.shiftKey ? this.scrollBy(x || y, 0) : this.scrollBy(x, y))) return;
    event.preventDefault();
  }

  private down(event: PointerEvent): void {
    if (event.pointerType === "mouse" && event.button > 1) return;
    const place = this.placeOf(event);
    if (this.places.size === 0) {
      this.wasDrag = false;
      this.pressed = place;
    }
    this.places.set(event.pointerId, place);
  }

  private move(event: PointerEvent): void {
    const before = this.places.get(event.pointerId);
    if (!before) return;
    if (event.buttons === 0) return this.up(event); // the button was released outside the page
    const place = this.placeOf(event);
    const isFar = Math.hypot(place[0] - this.pressed[0], place[1] - this.pressed[1]) >= slackPx;
    if (!this.wasDrag && !isFar && this.places.size === 1) return;
    if (!this.wasDrag) for (const id of this.places.keys()) this.view.setPointerCapture(id);
    this.wasDrag = true;
    const other = [...this.places].find(([id]) => id !== event.pointerId)?.[1];
    this.places.set(event.pointerId, place);
    if (!other) return this.panBy(place[0] - before[0], place[1] - before[1]);
    const spread = (at: Point) => Math.max(20, Math.hypot(at[0] - other[0], at[1] - other[1]));
    this.panBy((place[0] - before[0]) / 2, (place[1] - before[1]) / 2);
    this.zoomBy(spread(place) / spread(before), [
      (place[0] + other[0]) / 2,
      (place[1] + other[1]) / 2,
    ]);
  }

  private up(event: PointerEvent): void {
    this.places.delete(event.pointerId);
  }
}
