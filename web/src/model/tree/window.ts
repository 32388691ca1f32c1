/*
 * window: the visible part of the tree's width, and its movement.
 *
 * A window is a range of values between the root's edges. It is identified as a part of a frame's
 * width: the zoomed frame, or its nearest caller that contains the whole window, so that the reader
 * can move beyond the zoomed frame.
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

/**
 * A window is never narrower than this share of its frame, because nine digits must identify it.
 */
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

/** The window moved into `outer`, which must be at least as wide. */
function movedInto(outer: Window, window: Window): Window {
  const width = window.to - window.from;
  const from = Math.max(outer.from, Math.min(outer.to - width, window.from));
  return { from, to: from + width };
}

/**
 * Scales the width by `factor` within the limits; the value at `share` of the window's width keeps
 * its position.
 */
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

/** The window moved by a share of its own width; positive: to the right. */
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
  // tolerates rounding errors of sums and differences
  const slack = (window.to - window.from) * 1e-6;
  return window.from >= from - slack && window.to <= to + slack;
}

/**
 * Identifies a window by a frame and the part of it; null is all of the frame. The whole width is
 * the root.
 */
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
  // A ten-thousandth of the window is less than a pixel; more digits would only lengthen the link.
  const unit = 10 ** Math.min(9, 4 + Math.max(0, Math.ceil(-Math.log10(share))));
  const round = (value: number) =>
    Math.min(1, Math.max(0, Math.round(((value - whole.from) / width) * unit) / unit));
  const from = Math.min(round(window.from), 1 - 1 / unit);
  const part = { from, to: Math.max(round(window.to), from + 1 / unit) };
  return { node, part: part.from === 0 && part.to === 1 ? null : part };
}
