/*
 * rows: the vertical positions of a tree's rows, in pixels from the top of the scrolled content:
 * the root at the top and callees below or, flipped, the root at the bottom and callees above. Rows
 * before the first one, such as the root's if it is hidden, have no position.
 */
import { parentOf, pathOf, startOf, type Flame } from "../../model/tree/flame.ts";
import { firstEndingAfter } from "../../model/tree/row_layout.ts";

export const rowHeight = 22;

export class Rows {
  /** The height of the content: the rows, or the view if they do not fill it. */
  readonly spacePx: number;

  constructor(
    readonly count: number,
    readonly viewPx: number,
    readonly isFlipped: boolean,
    readonly first = 0,
  ) {
    this.spacePx = Math.max(viewPx, (count - first) * rowHeight);
  }

  /** The upper edge of the row. */
  topOf(row: number): number {
    const place = row - this.first;
    return this.isFlipped ? this.spacePx - (place + 1) * rowHeight : place * rowHeight;
  }
  /** The row at a height; below the first or above the last one if there is no row. */
  rowAt(y: number): number {
    return (
      this.first +
      (this.isFlipped ? Math.ceil((this.spacePx - y) / rowHeight) - 1 : Math.floor(y / rowHeight))
    );
  }
  /** The depths of the first and last visible row. */
  seen(scrollTop: number): [number, number] {
    const ends = [this.rowAt(scrollTop), this.rowAt(scrollTop + this.viewPx)];
    return [Math.max(this.first, Math.min(...ends)), Math.min(this.count - 1, Math.max(...ends))];
  }
  /** The scroll position of the root. */
  get rootScroll(): number {
    return this.isFlipped ? this.spacePx - this.viewPx : 0;
  }
  /** The nearest scroll position at which a row is visible with some rows around it. */
  scrollFor(row: number, scrollTop: number): number {
    const top = this.topOf(row);
    const most = this.spacePx - this.viewPx;
    if (top < scrollTop) return Math.max(0, top - 2 * rowHeight);
    if (top + rowHeight > scrollTop + this.viewPx)
      return Math.min(most, top - this.viewPx + 3 * rowHeight);
    return scrollTop;
  }
}

/** The maximum height of an element; one browser fails from 17.9 million on. */
const maxSpacePx = 16_000_000;

/**
 * Maps a list of a height to a scroller of the maximum height: the height of the scrolled content,
 * the part of the list at the view's upper edge, and the offset at which rows are drawn.
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

/** The scroll position at which `top` of such a list is at the view's upper edge. */
export const listScroll = (wholePx: number, viewPx: number, top: number): number =>
  wholePx <= maxSpacePx ? top : (top / (wholePx - viewPx)) * (maxSpacePx - viewPx);

/** The frame beside, above or below the cursor as drawn; the cursor itself if there is none. */
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

/**
 * The node in another tree with the same names on its path, or its nearest caller that exists
 * there; otherwise 0.
 */
export function sameNode(from: Flame, node: number, to: Flame): number {
  const isSame =
    from.frames === to.frames
      ? (a: number, b: number) => a === b
      : (a: number, b: number) => from.frames.name(a) === to.frames.name(b);
  let at = 0;
  for (const step of pathOf(from, Math.min(node, from.nodeCount - 1)).slice(1)) {
    let child = at + 1;
    while (child < to.end[at] && !isSame(from.frame[step], to.frame[child])) child = to.end[child];
    // otherwise a rule removed it, and its caller has its callees
    if (child < to.end[at]) at = child;
  }
  return at;
}
