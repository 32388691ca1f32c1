/*
 * row_layout: the visible boxes of a row, for a window of values drawn over a width in pixels, and
 * the node under the pointer.
 *
 * The cost does not depend on the number of nodes: the first visible node of a row is found by
 * binary search, and where nodes are narrower than a pixel, the next box is found by another
 * search. So a row costs at most about (width in pixels) * log(nodes). Adjacent boxes narrower than
 * a pixel become one box (a run). A run is at most maxRunPx wide, so that many narrow nodes do not
 * look like one large function.
 */
import type { Flame } from "./flame.ts";
import type { Window } from "./window.ts";

const maxRunPx = 4;

/** first and last are positions in rowNodes; equal for a single node. */
export type EmitBox = (first: number, last: number, left: number, right: number) => void;

/** The first position in [low, high) with an end above value; high if there is none. */
function firstAbove(ends: Float64Array, low: number, high: number, value: number): number {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (ends[middle] > value) high = middle;
    else low = middle + 1;
  }
  return low;
}

/**
 * Like the function above, but faster if the result is near `low`: doubles the step until it is
 * passed.
 */
function firstAboveNear(ends: Float64Array, low: number, high: number, value: number): number {
  let next = low;
  for (let step = 1; next < high && ends[next] <= value; step *= 2) {
    low = next + 1;
    next = low + step;
  }
  return firstAbove(ends, low, Math.min(next, high), value);
}

/**
 * The first position in [low, high) of rowNodes whose node ends after value; high if there is none.
 */
export function firstEndingAfter(flame: Flame, low: number, high: number, value: number): number {
  return firstAbove(flame.rowEnds, low, high, value);
}

/** The same as firstEndingAfter, but faster if the result is near low. */
export const firstEndingNear = (flame: Flame, low: number, high: number, value: number): number =>
  firstAboveNear(flame.rowEnds, low, high, value);

/** The right end of the node at a position of rowNodes, in values from the tree's left edge. */
export const endOf = (flame: Flame, at: number): number => flame.rowEnds[at];

/** The left end of the node at a position of rowNodes, in values from the tree's left edge. */
export const beginOf = (flame: Flame, at: number): number =>
  flame.rowEnds[at] - flame.width[flame.rowNodes[at]];

/** The node at x pixels from the left edge of a row, or -1. */
export function nodeAt(
  flame: Flame,
  row: number,
  window: Window,
  widthPx: number,
  x: number,
): number {
  if (row < 0 || row >= flame.rowCount || x < 0 || x >= widthPx) return -1;
  const value = window.from + (x / widthPx) * (window.to - window.from);
  const high = flame.rowOffset[row + 1];
  const at = firstEndingAfter(flame, flame.rowOffset[row], high, value);
  if (at === high) return -1;
  const node = flame.rowNodes[at];
  return beginOf(flame, at) <= value ? node : -1;
}

/** Up to this width, 24 bits are exact to a hundredth of a pixel. */
const maxRoundedPx = 1e5;

/**
 * Like beginOf, for drawing: reads neighbours in the row instead of nodes in the tree, unless a box
 * is so wide that rounding would be visible.
 */
function drawnBegin(flame: Flame, at: number, scale: number): number {
  const rounded = flame.rowWidths[at];
  return rounded * scale < maxRoundedPx ? flame.rowEnds[at] - rounded : beginOf(flame, at);
}

/**
 * Emits the boxes of one row from left to right, in pixels from the window's left edge, clipped to
 * the window.
 */
export function layoutRow(
  flame: Flame,
  row: number,
  window: Window,
  widthPx: number,
  emit: EmitBox,
): void {
  const { rowOffset } = flame;
  const ends = flame.rowEnds;
  const high = rowOffset[row + 1];
  const scale = widthPx / (window.to - window.from);
  if (!(scale > 0) || !Number.isFinite(scale)) return;
  let at = firstAbove(ends, rowOffset[row], high, window.from);
  while (at < high) {
    const left = (drawnBegin(flame, at, scale) - window.from) * scale;
    if (left >= widthPx) return;
    const right = (ends[at] - window.from) * scale;
    if (right - left >= 1) {
      emit(at, at, Math.max(0, left), Math.min(widthPx, right));
      at++;
      continue;
    }
    at = emitRun(flame, ends, at, high, window, scale, widthPx, emit);
  }
}

/**
 * Emits one box for the narrow boxes from position `at` on that are less than a pixel apart;
 * returns the next position.
 */
function emitRun(
  flame: Flame,
  ends: Float64Array,
  at: number,
  high: number,
  window: Window,
  scale: number,
  widthPx: number,
  emit: EmitBox,
): number {
  const first = at;
  const left = (drawnBegin(flame, at, scale) - window.from) * scale;
  let right = left;
  let last = at;
  while (at < high) {
    const nodeLeft = (drawnBegin(flame, at, scale) - window.from) * scale;
    if (
      nodeLeft > right + 1 ||
      nodeLeft > left + maxRunPx ||
      nodeLeft >= widthPx ||
      (ends[at] - window.from) * scale - nodeLeft >= 1
    )
      break;
    // Everything that ends within this pixel belongs to the run, so it is skipped.
    const pixelEnd = Math.max(right, nodeLeft) + 0.5;
    const next = Math.max(at + 1, firstAboveNear(ends, at, high, window.from + pixelEnd / scale));
    last = next - 1;
    right = Math.max(right, (ends[last] - window.from) * scale);
    at = next;
  }
  emit(first, last, Math.max(0, left), Math.min(widthPx, Math.max(right, left + 0.5)));
  return at;
}

/**
 * For each pixel of a width that shows the whole tree: whether a frame of any depth matches there.
 * One pass in tree order. A matching node covers the columns of its callees, so these are skipped.
 */
export function matchedColumns(
  flame: Flame,
  frameMatches: Uint8Array,
  widthPx: number,
): Uint8Array {
  const { nodeCount, frame, depth, width, end, rowCount } = flame;
  const columns = new Uint8Array(Math.ceil(widthPx));
  const scale = widthPx / (width[0] || 1);
  const next = new Float64Array(rowCount + 1); // the left edge of the next node of a row
  for (let i = 1; i < nodeCount;) {
    const row = depth[i];
    const from = next[row];
    next[row] += width[i];
    if (!frameMatches[frame[i]]) {
      next[row + 1] = from; // its first callee; callees of matching nodes are never visited
      i++;
      continue;
    }
    const left = Math.floor(from * scale);
    if (width[i] > 0)
      columns.fill(1, left, Math.max(left + 1, Math.ceil((from + width[i]) * scale)));
    i = end[i];
  }
  return columns;
}
