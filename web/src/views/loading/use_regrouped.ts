/*
 * use_regrouped: changes the form of names or the grouping and keeps the zoomed frame and the
 * marked function as far as they exist.
 */
import { useEffect, useRef } from "preact/hooks";
import { lostScript } from "../../api/api.ts";
import type { Flame } from "../../model/tree/flame.ts";
import type { VisiblePart, Update, ViewState } from "../../view_state.ts";
import { asProblem, showMessage } from "../../ui/kit.tsx";
import type { TreePosition } from "./carry_over.ts";

type Place = {
  zoom: number;
  part: VisiblePart | null;
  showing: (node: number, seen: VisiblePart | null) => Partial<ViewState>;
};
export type Regroup = (patch: Partial<Pick<ViewState, "group" | "names">>) => void;

export function useRegrouped(
  flame: Flame | null,
  isCurrent: boolean,
  state: ViewState,
  place: Place,
  update: Update,
): Regroup {
  /**
   * The position before the first of several changes. Every change is computed from there, so
   * returning to a tree restores the position in it.
   */
  const from = useRef<TreePosition | null>(null);
  /** The position after the last change: if the reader moved since, the new position counts. */
  const left = useRef<{ flame: Flame | null; zoom: string; marked: string }>({
    flame: null,
    zoom: "",
    marked: "",
  });
  const isAwaited = useRef(false);
  const latest = useRef({ flame, state, place });
  latest.current = { flame, state, place };
  useEffect(() => {
    const origin = from.current;
    if (!isAwaited.current || !origin || !flame || !isCurrent) return;
    isAwaited.current = false;
    import("./carry_over.ts").then(
      ({ carryPosition }) => {
        const { state, place } = latest.current;
        if (
          latest.current.flame !== flame ||
          state.zoom !== left.current.zoom ||
          state.marked !== left.current.marked
        )
          return;
        const { zoom, part, marked, notes } = carryPosition(origin, flame);
        const { above, below } = state;
        const patch = {
          ...place.showing(zoom, part),
          ...(marked !== state.marked && { marked, above, below }),
        };
        left.current = { flame, zoom: patch.zoom!, marked };
        update(patch, "replace");
        if (notes) showMessage(notes);
      },
      async () => showMessage(asProblem(await lostScript()).message),
    );
  }, [flame, isCurrent]);
  return (patch) => {
    const isMoved =
      flame !== left.current.flame ||
      state.zoom !== left.current.zoom ||
      state.marked !== left.current.marked;
    if (isMoved && !isAwaited.current)
      from.current =
        flame && (place.zoom > 0 || state.marked)
          ? { flame, zoom: place.zoom, part: place.part, marked: state.marked }
          : null;
    isAwaited.current = from.current !== null;
    left.current = { flame, zoom: "", marked: state.marked };
    update({ ...patch, zoom: "", root: "", window: null });
  };
}
