/*
 * hit_test: finds the node under the pointer, for the window of values that the picture shows.
 */
import type { Flame } from "./flame.ts";
import { beginOf, firstEndingAfter } from "./row_layout.ts";
import type { Window } from "./window.ts";

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
