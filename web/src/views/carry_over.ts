/* carry_over: what was zoomed to and marked in one tree, in another whose frames are called or grouped otherwise, and what to say of it. */
import type { Flame } from "../model/flame.ts";
import { findRegrouped, renamed } from "../model/regrouped.ts";
import type { SeenPart } from "../state.ts";

/** Where one was. */
export interface Stood {
  flame: Flame;
  /** 0: nothing was zoomed to. */
  zoom: number;
  part: SeenPart | null;
  marked: string;
}

interface Carried {
  zoom: number;
  part: SeenPart | null;
  marked: string;
  /** Sentences; empty where all is there as it was. */
  told: string;
}

const nameOf = ({ frames, frame }: Flame, node: number) => frames.name(frame[node]);

export function carryOver({ flame, zoom, part, marked }: Stood, to: Flame): Carried {
  const told: string[] = [];
  let node = 0;
  let seen: SeenPart | null = null;
  if (zoom > 0) {
    const { nodes, isFound, isSame } = findRegrouped(flame, zoom, to);
    node = nodes[0];
    if (isSame && nodes.length === 1) seen = part;
    if (!isFound)
      told.push(
        `“${nameOf(flame, zoom)}” is not in this tree, so ${node > 0 ? `“${nameOf(to, node)}”, its nearest caller, is shown` : "all of it is shown"}.`,
      );
    else if (nodes.length > 1)
      told.push(`“${nameOf(flame, zoom)}” is ${nodes.length} frames here; the largest is shown.`);
  }
  const names = marked ? renamed(flame, marked, to) : [];
  if (names.length > 1)
    told.push(`“${marked}” has ${names.length} names here; “${names[0]}”, the largest, is marked.`);
  else if (marked && names.length === 0)
    told.push(`The marked function “${marked}” is not in this tree.`);
  return { zoom: node, part: seen, marked: names[0] ?? marked, told: told.join(" ") };
}
