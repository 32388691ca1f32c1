/*
 * gestures: pointer, wheel and touch input of an icicle.
 *
 *   wheel                    scrolls the page as usual; sideways it moves the window
 *   Shift + wheel            moves the window
 *   Ctrl or Cmd + wheel      zooms around the pointer; a pinch on a touchpad arrives as this
 *   drag                     moves the window and scrolls
 *   one finger               moves the window; vertically the browser scrolls, including the page
 *   two fingers              zoom and move: the points under the fingers stay under them
 *
 * A press that became a drag is not a click: wasDrag is true until the next press.
 */
import type { Stage } from "./stage.ts";

/** The movement in pixels from which a press is a drag. */
const slackPx = 4;
/**
 * A notch of a wheel is 100 to 120 pixels, a step of a pinch a few; the limit keeps a notch from
 * zooming thirty times as much.
 */
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
    /** The picture moves under the pointer; nothing is reported as hovered until it rests. */
    private readonly onMoved: () => void,
  ) {}

  /** Listens until the returned function is called. */
  attach(): () => void {
    const { scroller } = this.stage;
    const ended = new AbortController();
    const on = <K extends keyof HTMLElementEventMap>(
      kind: K,
      listener: (event: HTMLElementEventMap[K]) => void,
    ) => scroller.addEventListener(kind, listener, { signal: ended.signal, passive: false });
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
    // The button was released unnoticed: outside the picture before the drag started, or in a
    // browser menu.
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

  /** One of two fingers moved from `before` to `after`; the other one stayed. */
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
