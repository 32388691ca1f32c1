/*
 * gestures: what hands do to an icicle.
 *
 *   wheel                    scrolls, as everywhere; sideways it moves the window
 *   Shift + wheel            moves the window
 *   Ctrl or Cmd + wheel      zooms around the pointer; a pinch on a touchpad arrives as this
 *   drag                     moves the window and scrolls
 *   one finger               moves the window; up and down the browser scrolls, page and all
 *   two fingers              zoom and move: what is under them stays under them
 *
 * A press that became a drag is no click: wasDrag tells, until the next press.
 */
import type { Stage } from "./stage.ts";

/** Pixels that a hand may shake before a press is a drag. */
const slackPx = 4;
/** A notch of a wheel is 100 to 120 pixels, a pinch's step a few: the notch must not count thirty times as much. */
const maxStepPx = 60;
const zoomPerPx = 0.006;
const linePx = 18;

interface Place {
  x: number;
  y: number;
}

export class Gestures {
  wasDrag = false;
  private readonly places = new Map<number, Place>();
  private pressed: Place = { x: 0, y: 0 };

  constructor(
    private readonly stage: Stage,
    /** The picture moves under the pointer, where nothing is told of until it rests. */
    private readonly onMoved: () => void,
  ) {}

  /** Listens until what is returned is called. */
  attach(): () => void {
    const { scroller } = this.stage;
    const ended = new AbortController();
    const on = <K extends keyof HTMLElementEventMap>(
      kind: K,
      hear: (event: HTMLElementEventMap[K]) => void,
    ) => scroller.addEventListener(kind, hear, { signal: ended.signal, passive: false });
    on("wheel", (event) => this.wheel(event));
    on("pointerdown", (event) => this.down(event));
    on("pointermove", (event) => this.move(event));
    on("pointerup", (event) => this.up(event));
    on("pointercancel", (event) => this.up(event));
    return () => ended.abort();
  }

  private wheel(event: WheelEvent): void {
    const { stage } = this;
    const unit =
      event.deltaMode === 0 ? 1 : event.deltaMode === 1 ? linePx : stage.scroller.clientHeight;
    const [x, y] = [event.deltaX * unit, event.deltaY * unit];
    if (event.ctrlKey || event.metaKey) {
      const step = Math.max(-maxStepPx, Math.min(maxStepPx, y));
      stage.zoomBy(Math.exp(step * zoomPerPx), stage.shareAt(event.clientX));
    } else if (event.shiftKey) stage.panBy(stage.shareOf(x || y));
    else if (Math.abs(x) > Math.abs(y) && !stage.isWhole) stage.panBy(stage.shareOf(x));
    else return;
    event.preventDefault();
    this.onMoved();
  }

  private down(event: PointerEvent): void {
    if (event.pointerType === "mouse" && event.button > 1) return;
    if (this.places.size === 0) {
      this.wasDrag = false;
      this.pressed = { x: event.clientX, y: event.clientY };
    }
    this.places.set(event.pointerId, { x: event.clientX, y: event.clientY });
    if (this.places.size === 2) this.begin();
  }

  private begin(): void {
    this.wasDrag = true;
    for (const id of this.places.keys()) this.stage.scroller.setPointerCapture(id);
    this.stage.scroller.classList.add("dragged");
  }

  private move(event: PointerEvent): void {
    const before = this.places.get(event.pointerId);
    if (!before) return;
    // Let go where nobody here heard of it: beside the picture, before the drag had begun, or in a menu of the browser.
    if (event.buttons === 0) return this.up(event);
    const place = { x: event.clientX, y: event.clientY };
    if (!this.wasDrag) {
      if (Math.hypot(place.x - this.pressed.x, place.y - this.pressed.y) < slackPx) return;
      this.begin();
    }
    const other = [...this.places].find(([id]) => id !== event.pointerId)?.[1];
    this.places.set(event.pointerId, place);
    if (other) this.pinch(before, place, other);
    else {
      this.stage.panBy(this.stage.shareOf(before.x - place.x));
      if (event.pointerType !== "touch") this.stage.scroller.scrollTop += before.y - place.y;
    }
    this.onMoved();
  }

  /** One of two fingers went from `before` to `after`; the other stayed. */
  private pinch(before: Place, after: Place, other: Place): void {
    const { stage } = this;
    const spread = (place: Place) => Math.max(20, Math.hypot(place.x - other.x, place.y - other.y));
    stage.panBy(stage.shareOf((before.x - after.x) / 2));
    stage.zoomBy(spread(before) / spread(after), stage.shareAt((after.x + other.x) / 2));
  }

  private up(event: PointerEvent): void {
    this.places.delete(event.pointerId);
    if (this.places.size === 0) this.stage.scroller.classList.remove("dragged");
  }
}
