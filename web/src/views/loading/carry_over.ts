/*
 * carry_over: finds the zoomed frame and the marked function of one tree in another with other
 * names or another grouping, and describes the differences.
 */
import type { Flame } from "../../model/tree/flame.ts";
import { findRegrouped, renamed } from "../../model/tree/regrouped.ts";
import type { VisiblePart } from "../../view_state.ts";

/** The tree and the position in it. */
export interface TreePosition {
  flame: Flame;
  /** 0: nothing is zoomed. */
  zoom: number;
  part: VisiblePart | null;
  marked: string;
}

interface CarriedPosition {
  zoom: number;
  part: VisiblePart | null;
  marked: string;
  /** Sentences for the reader; empty if everything was found unchanged. */
  notes: string;
}

const nameOf = ({ frames, frame }: Flame, node: number) => frames.name(frame[node]);

export function carryPosition(
  { flame, zoom, part, marked }: TreePosition,
  to: Flame,
): CarriedPosition {
  const notes: string[] = [];
  let node = 0;
  let seen: VisiblePart | null = null;
  if (zoom > 0) {
    const { nodes, isFound, isSame } = findRegrouped(flame, zoom, to);
    node = nodes[0];
    if (isSame && nodes.length === 1) seen = part;
    if (!isFound)
      notes.push(
        `“${nameOf(flame, zoom)}” is not in this tree, so ` +
          (node > 0 ? `“${nameOf(to, node)}”, its nearest caller,` : "all of it") +
          " is shown.",
      );
    else if (nodes.length > 1)
      notes.push(`“${nameOf(flame, zoom)}” is ${nodes.length} frames here; the largest is shown.`);
  }
  const names = marked ? renamed(flame, marked, to) : [];
  if (names.length > 1)
    notes.push(
      `“${marked}” has ${names.length} names here; “${names[0]}”, the largest, is marked.`,
    );
  else if (marked && names.length === 0)
    notes.push(`The marked function “${marked}” is not in this tree.`);
  return { zoom: node, part: seen, marked: names[0] ?? marked, notes: notes.join(" ") };
}
