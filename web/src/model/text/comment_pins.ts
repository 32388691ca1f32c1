/* comment_pins: the frame that a comment is pinned to, and the view that is stored with it. */
import { byteCount, maxNameBytes, maxViewBytes, type Pin } from "../../api/comments_api.ts";
import { formatState, parseState, type ViewState } from "../../view_state.ts";
import { FrameFlag, type Flame } from "../tree/flame.ts";
import { pathHash } from "../tree/path.ts";

/** The widest node of a function; 0 if there is none. */
export function widestOf(flame: Flame, name: string): number {
  const isOfName = Uint8Array.from({ length: flame.frames.count }, (_, frame) =>
    Number(flame.frames.name(frame) === name),
  );
  let widest = 0;
  for (let node = 1; node < flame.nodeCount; node++)
    if (isOfName[flame.frame[node]] && (widest === 0 || flame.width[node] > flame.width[widest]))
      widest = node;
  return widest;
}

/**
 * The pin of a node; null for the root, for merged stacks, and for names that the server refuses.
 */
export function pinOf(flame: Flame, node: number): Pin | null {
  if (
    node <= 0 ||
    node >= flame.nodeCount ||
    flame.frames.flags(flame.frame[node]) & FrameFlag.Other
  )
    return null;
  const name = flame.frames.name(flame.frame[node]);
  if (name === "" || byteCount(name) > maxNameBytes || /[\u0000-\u001f\u007f-\u009f]/.test(name))
    return null;
  return { hash: pathHash(flame, node), function: name };
}

/**
 * The view to store; null if the server would refuse it, because it is too long or contains a
 * control character.
 */
export function storableView(state: ViewState): string | null {
  const query = formatState({ ...state, extra: [] }).slice(1);
  return query.length > maxViewBytes || /%[01][0-9A-F]|%7F/.test(query) ? null : query;
}

/** The state of a stored view, with the comments beside it if there is space. */
export function stateOfStoredView(view: string, extra: ViewState["extra"]): ViewState {
  const seen = { ...parseState("?" + view), extra };
  if (seen.beside) return seen;
  return { ...seen, view: seen.view === "comments" ? "icicle" : seen.view, beside: "comments" };
}
