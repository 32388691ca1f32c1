/* use_place: where in a tree one is: the frame zoomed to, the part of it that is seen, and where the keyboard stands. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { FrameFlag, parentOf, type Flame } from "../model/flame.ts";
import { findByPathHash, pathHash } from "../model/path.ts";
import type { SeenPart, Update, ViewState } from "../state.ts";
import { say } from "../ui/kit.tsx";
import { sameNode } from "./rows.ts";

interface Ways {
  /** The tree below a node can be loaded. */
  opensOthers: boolean;
  /** Rules were applied by the page, to what is loaded. */
  hasOwnRules: boolean;
  /** A sandwich is shown, whose halves are zoomed by themselves. */
  hasSandwich: boolean;
}

export function usePlace(
  flame: Flame | null,
  state: ViewState,
  update: Update,
  { opensOthers, hasOwnRules, hasSandwich }: Ways,
) {
  const [cursor, setCursor] = useState(0);
  /** What was chosen here, by hash: brothers may share one, and a press means one of them. */
  const chosen = useRef<{ flame: Flame | null; nodes: Map<string, number> }>({
    flame: null,
    nodes: new Map(),
  });
  if (chosen.current.flame !== flame) chosen.current = { flame, nodes: new Map() };
  const [choice, setChoice] = useState(0);
  const findNode = (hash: string) => chosen.current.nodes.get(hash) ?? findByPathHash(flame!, hash);
  const zoom = useMemo(
    () => (flame && state.zoom ? Math.max(0, findNode(state.zoom)) : 0),
    [flame, state.zoom, choice],
  );
  // Where a link's frame is not in this tree, its part of that frame means nothing.
  const part = state.zoom && zoom === 0 ? null : state.window;
  const isMovedByHand = useRef(false);
  /** In another tree the keyboard stands where it stood, or on the nearest caller that is there. */
  const stood = useRef<{ flame: Flame | null; zoom: string }>({ flame: null, zoom: "" });
  useEffect(() => {
    const before = stood.current;
    stood.current = { flame, zoom: state.zoom };
    const isFollowed =
      flame && before.flame && before.flame !== flame && before.zoom === state.zoom;
    if (!isMovedByHand.current)
      setCursor((isFollowed && sameNode(before.flame!, cursor, flame)) || zoom);
    isMovedByHand.current = false;
  }, [flame, zoom]);

  const hashOf = (node: number) => {
    if (!flame || node <= 0) return "";
    const hash = pathHash(flame, node);
    if (chosen.current.nodes.get(hash) !== node) {
      chosen.current.nodes.set(hash, node);
      setChoice((count) => count + 1);
    }
    return hash;
  };
  /** What was opened below a node is closed where a frame outside of it is shown. */
  const showing = (node: number, seen: SeenPart | null = null): Partial<ViewState> => {
    const root =
      flame && state.root ? findByPathHash(flame, flame.metadata.root ?? state.root) : -1;
    const isInside = flame !== null && root > 0 && node >= root && node < flame.end[root];
    return { zoom: hashOf(node), window: seen, root: isInside ? state.root : "" };
  };
  const hasHalves = hasSandwich && (state.above ?? state.below) !== null;
  const zoomOut = () => {
    if (hasHalves && (document.activeElement?.closest(".sandwich-half") || (zoom === 0 && !part)))
      update({ above: null, below: null });
    else if (flame && (zoom > 0 || part)) update(showing(part ? zoom : parentOf(flame, zoom)));
  };
  /** An "other" box is opened: the server is asked for what is below its parent. */
  const openOther = (other: number) => {
    const parent = parentOf(flame!, other);
    if (!opensOthers || parent === 0)
      return say("These stacks are too small to be shown separately");
    if (hasOwnRules) return say("Switch the rules off to open this box");
    const hash = hashOf(parent);
    if (hash !== state.root) update({ zoom: hash, root: hash, window: null });
  };
  return {
    zoom,
    part,
    cursor,
    setCursor,
    /** The link zooms to a frame that is not there. */
    isLost: state.zoom !== "" && zoom === 0,
    isMoved: zoom > 0 || part !== null || hasHalves,
    showing,
    showAll: () => update({ ...showing(0), above: null, below: null }),
    zoomOut,
    /** A second press on the frame zoomed to goes back up to its caller. */
    zoomTo: (node: number) => {
      if (flame && flame.frames.flags(flame.frame[node]) & FrameFlag.Other) openOther(node);
      else if (node === zoom) zoomOut();
      else update(showing(node));
    },
    seePart: (node: number, seen: SeenPart | null) => {
      isMovedByHand.current = node !== zoom;
      update(showing(node, seen), "replace");
    },
    /** -1: there is nothing to go to. */
    goTo: (node: number) => {
      if (node < 0) return;
      setCursor(node);
      update(showing(node), "replace");
    },
  };
}
