/* use_regrouped: other names or another grouping, with what was zoomed to and marked taken along as far as it is there. */
import { useEffect, useRef } from "preact/hooks";
import { lostScript } from "../api/api.ts";
import type { Flame } from "../model/flame.ts";
import type { SeenPart, Update, ViewState } from "../state.ts";
import { asProblem, say } from "../ui/kit.tsx";
import type { Stood } from "./carry_over.ts";

type Place = {
  zoom: number;
  part: SeenPart | null;
  showing: (node: number, seen: SeenPart | null) => Partial<ViewState>;
};
export type Regroup = (patch: Partial<Pick<ViewState, "group" | "names">>) => void;

export function useRegrouped(
  flame: Flame | null,
  isCurrent: boolean,
  state: ViewState,
  place: Place,
  update: Update,
): Regroup {
  /** Where one was before the first of several changes, of which each is made from there: to the same tree one comes back as one left. */
  const from = useRef<Stood | null>(null);
  /** What there was after the last: what was done since counts more. */
  const left = useRef<{ flame: Flame | null; zoom: string; marked: string }>({
    flame: null,
    zoom: "",
    marked: "",
  });
  const isAwaited = useRef(false);
  const latest = useRef({ flame, state, place });
  latest.current = { flame, state, place };
  useEffect(() => {
    const stood = from.current;
    if (!isAwaited.current || !stood || !flame || !isCurrent) return;
    isAwaited.current = false;
    import("./carry_over.ts").then(
      ({ carryOver }) => {
        const { state, place } = latest.current;
        if (
          latest.current.flame !== flame ||
          state.zoom !== left.current.zoom ||
          state.marked !== left.current.marked
        )
          return;
        const { zoom, part, marked, told } = carryOver(stood, flame);
        const { above, below } = state;
        const patch = {
          ...place.showing(zoom, part),
          ...(marked !== state.marked && { marked, above, below }),
        };
        left.current = { flame, zoom: patch.zoom!, marked };
        update(patch, "replace");
        if (told) say(told);
      },
      async () => say(asProblem(await lostScript()).message),
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
