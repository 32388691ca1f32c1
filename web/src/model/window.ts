/*
 * window: which part of the tree's width is seen, and how it moves.
 *
 * A window is a range of values between the root's edges. It is named as a part of a frame's width:
 * the frame zoomed to, or the nearest caller of it that holds the whole window, so that a reader may
 * move on beyond the frame that was zoomed to.
 */
import { parentOf, startOf, type Flame } from "./flame.ts";

export interface Window {
  from: number;
  to: number;
}

/** Shares of a frame's width, from 0 to 1. */
export interface Part {
  from: number;
  to: number;
}

/** No window is narrower than this share of the frame it is named by: nine digits must name it. */
export const minShare = 1e-5;

export function wholeOf(flame: Flame, node: number): Window {
  const from = startOf(flame, node);
  return { from, to: from + (flame.width[node] || 1) };
}

export function windowOf(flame: Flame, node: number, part: Part | null): Window {
  const whole = wholeOf(flame, node);
  if (!part) return whole;
  const width = whole.to - whole.from;
  return { from: whole.from + part.from * width, to: whole.from + part.to * width };
}

export const isSameWindow = (a: Window | null, b: Window | null): boolean =>
  a?.from === b?.from && a?.to === b?.to;

/** Moved so that it lies within `outer`, which it must not be wider than. */
function movedInto(outer: Window, window: Window): Window {
  const width = window.to - window.from;
  const from = Math.max(outer.from, Math.min(outer.to - width, window.from));
  return { from, to: from + width };
}

/** `factor` times as wide, as far as allowed; what stands at `share` of the window's width stays there. */
export function zoomed(
  window: Window,
  outer: Window,
  minWidth: number,
  share: number,
  factor: number,
): Window {
  const width = window.to - window.from;
  const next = Math.min(outer.to - outer.from, Math.max(Math.min(width, minWidth), width * factor));
  const from = window.from + share * (width - next);
  return movedInto(outer, { from, to: from + next });
}

/** Moved by a share of its own width: to the right when it is positive. */
export function panned(window: Window, outer: Window, share: number): Window {
  const by = share * (window.to - window.from);
  return movedInto(outer, { from: window.from + by, to: window.to + by });
}

/** The window between two values, in any order, within `outer`. */
export function between(a: number, b: number, outer: Window, minWidth: number): Window {
  const width = Math.min(outer.to - outer.from, Math.max(minWidth, Math.abs(b - a)));
  const from = (a + b) / 2 - width / 2;
  return movedInto(outer, { from, to: from + width });
}

function holds(flame: Flame, node: number, window: Window): boolean {
  const { from, to } = wholeOf(flame, node);
  const slack = (window.to - window.from) * 1e-6; // what adding and subtracting may have lost
  return window.from >= from - slack && window.to <= to + slack;
}

/** A name for a window: the frame and the part of it; null is all of it. All that there is, is the root. */
export function partOf(
  flame: Flame,
  zoom: number,
  window: Window,
): { node: number; part: Part | null } {
  let node = window.to - window.from < wholeOf(flame, 0).to * (1 - 1e-9) ? zoom : 0;
  while (node > 0 && !holds(flame, node, window)) node = parentOf(flame, node);
  const whole = wholeOf(flame, node);
  const width = whole.to - whole.from;
  const share = (window.to - window.from) / width;
  // A ten-thousandth of the window is less than a pixel; more digits would only make the link longer.
  const unit = 10 ** Math.min(9, 4 + Math.max(0, Math.ceil(-Math.log10(share))));
  const round = (value: number) =>
    Math.min(1, Math.max(0, Math.round(((value - whole.from) / width) * unit) / unit));
  const from = Math.min(round(window.from), 1 - 1 / unit);
  const part = { from, to: Math.max(round(window.to), from + 1 / unit) };
  return { node, part: part.from === 0 && part.to === 1 ? null : part };
}
