/*
 * rows: where the rows of a tree stand, in pixels from the top of what scrolls: the root at the top
 * and what it calls below it, or, flipped, the root at the bottom and what it calls above it. Rows
 * before the first one, as the root's, have no place.
 */
import { parentOf, pathOf, startOf, type Flame } from "../model/flame.ts";
import { firstEndingAfter } from "../model/layout.ts";

export const rowHeight = 22;

export class Rows {
  /** Of all that scrolls: the rows, or the view where they do not fill it. */
  readonly spacePx: number;

  constructor(
    readonly count: number,
    readonly viewPx: number,
    readonly isFlipped: boolean,
    readonly first = 0,
  ) {
    this.spacePx = Math.max(viewPx, (count - first) * rowHeight);
  }

  /** The row's upper edge. */
  topOf(row: number): number {
    const place = row - this.first;
    return this.isFlipped ? this.spacePx - (place + 1) * rowHeight : place * rowHeight;
  }
  /** The row at a height; less than the first or past the last one where no row is. */
  rowAt(y: number): number {
    return (
      this.first +
      (this.isFlipped ? Math.ceil((this.spacePx - y) / rowHeight) - 1 : Math.floor(y / rowHeight))
    );
  }
  /** First and last row, by depth, of those seen. */
  seen(scrollTop: number): [number, number] {
    const ends = [this.rowAt(scrollTop), this.rowAt(scrollTop + this.viewPx)];
    return [Math.max(this.first, Math.min(...ends)), Math.min(this.count - 1, Math.max(...ends))];
  }
  /** Where to scroll for the root. */
  get rootScroll(): number {
    return this.isFlipped ? this.spacePx - this.viewPx : 0;
  }
  /** The nearest place to scroll to from which a row is seen, with some rows around it. */
  scrollFor(row: number, scrollTop: number): number {
    const top = this.topOf(row);
    const most = this.spacePx - this.viewPx;
    if (top < scrollTop) return Math.max(0, top - 2 * rowHeight);
    if (top + rowHeight > scrollTop + this.viewPx)
      return Math.min(most, top - this.viewPx + 3 * rowHeight);
    return scrollTop;
  }
}

/** Browsers make no element that is higher, one of them from 17.9 million on. */
const maxSpacePx = 16_000_000;

/**
 * A list of so many pixels in a scroller that is as high as elements can be: how high the space is, what of the list is at
 * the view's upper edge, and by how much what stands there is moved to be seen.
 */
export function listSpace(
  wholePx: number,
  viewPx: number,
  scrollTop: number,
): { spacePx: number; top: number; shift: number } {
  if (wholePx <= maxSpacePx) return { spacePx: wholePx, top: scrollTop, shift: 0 };
  const top = Math.round((scrollTop / (maxSpacePx - viewPx)) * (wholePx - viewPx));
  return { spacePx: maxSpacePx, top, shift: scrollTop - top };
}

/** Where to scroll to, so that what stands at `top` of such a list is at the view's upper edge. */
export const listScroll = (wholePx: number, viewPx: number, top: number): number =>
  wholePx <= maxSpacePx ? top : (top / (wholePx - viewPx)) * (maxSpacePx - viewPx);

/** The frame beside, above or below the cursor as it is seen; the cursor itself where there is none. */
export function neighbour(flame: Flame, node: number, key: string, isFlipped = false): number {
  if (key === (isFlipped ? "ArrowDown" : "ArrowUp")) return Math.max(0, parentOf(flame, node));
  if (key === "ArrowUp" || key === "ArrowDown") return flame.end[node] > node + 1 ? node + 1 : node;
  const row = flame.depth[node];
  const low = flame.rowOffset[row];
  const high = flame.rowOffset[row + 1];
  let at = firstEndingAfter(flame, low, high, startOf(flame, node));
  while (at < high && flame.rowNodes[at] !== node) at++;
  const next = at + (key === "ArrowLeft" ? -1 : 1);
  return next >= low && next < high ? flame.rowNodes[next] : node;
}

/** Where a node of a tree stands in another, by names: itself, or the nearest of its callers that is there; else 0. */
export function sameNode(from: Flame, node: number, to: Flame): number {
  const isSame =
    from.frames === to.frames
      ? (a: number, b: number) => a === b
      : (a: number, b: number) => from.frames.name(a) === to.frames.name(b);
  let at = 0;
  for (const step of pathOf(from, Math.min(node, from.nodeCount - 1)).slice(1)) {
    let child = at + 1;
    while (child < to.end[at] && !isSame(from.frame[step], to.frame[child])) child = to.end[child];
    if (child < to.end[at]) at = child; // else a rule took it out, and its caller has what it called
  }
  return at;
}
