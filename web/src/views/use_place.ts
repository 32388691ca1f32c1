/*
 * use_place: the position in a tree: the zoomed frame, its visible part, and the keyboard cursor.
 */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { FrameFlag, parentOf, type Flame } from "../model/tree/flame.ts";
import { findByPathHash, pathHash } from "../model/tree/path.ts";
import type { VisiblePart, Update, ViewState } from "../view_state.ts";
import { showMessage } from "../ui/kit.tsx";
import { sameNode } from "./icicle/rows.ts";

interface Ways {
  /** The page can load the tree below a node. */
  opensOthers: boolean;
  /** The page has applied rules to the loaded tree. */
  hasOwnRules: boolean;
  /** A sandwich is shown, whose halves have their own zoom. */
  hasSandwich: boolean;
}

/**
 * The keyboard cursor. In another tree, it stays at the same frame, or at its nearest caller that
 * exists there.
 */
function useCursor(
  flame: Flame | null,
  zoomHash: string,
  zoom: number,
  isMovedByHand: { current: boolean },
) {
  const [cursor, setCursor] = useState(0);
  const last = useRef<{ flame: Flame | null; zoom: string }>({ flame: null, zoom: "" });
  useEffect(() => {
    const before = last.current;
    last.current = { flame, zoom: zoomHash };
    const isFollowed = flame && before.flame && before.flame !== flame && before.zoom === zoomHash;
    if (!isMovedByHand.current)
      setCursor((isFollowed && sameNode(before.flame!, cursor, flame)) || zoom);
    isMovedByHand.current = false;
  }, [flame, zoom]);
  return [cursor, setCursor] as const;
}

export function usePlace(
  flame: Flame | null,
  state: ViewState,
  update: Update,
  { opensOthers, hasOwnRules, hasSandwich }: Ways,
) {
  /**
   * The nodes chosen here, by hash: siblings may share a hash, and a press refers to one of them.
   */
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
  // If the link's frame is not in this tree, its part of that frame has no meaning.
  const part = state.zoom && zoom === 0 ? null : state.window;
  const isMovedByHand = useRef(false);
  const [cursor, setCursor] = useCursor(flame, state.zoom, zoom, isMovedByHand);

  const hashOf = (node: number) => {
    if (!flame || node <= 0) return "";
    const hash = pathHash(flame, node);
    if (chosen.current.nodes.get(hash) !== node) {
      chosen.current.nodes.set(hash, node);
      setChoice((count) => count + 1);
    }
    return hash;
  };
  /**
   * The state that shows a node. `root` is reset if the node is outside the part that it opens.
   */
  const showing = (node: number, seen: VisiblePart | null = null): Partial<ViewState> => {
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
  /** Opens an "other" box: loads the tree below its caller. */
  const openOther = (other: number) => {
    const parent = parentOf(flame!, other);
    if (!opensOthers || parent === 0)
      return showMessage("These stacks are too small to be shown separately");
    if (hasOwnRules) return showMessage("Switch the rules off to open this box");
    const hash = hashOf(parent);
    if (hash !== state.root) update({ zoom: hash, root: hash, window: null });
  };
  return {
    zoom,
    part,
    cursor,
    setCursor,
    /** The frame that the link zooms to was not found. */
    isLost: state.zoom !== "" && zoom === 0,
    isMoved: zoom > 0 || part !== null || hasHalves,
    showing,
    showAll: () => update({ ...showing(0), above: null, below: null }),
    zoomOut,
    /** A second press on the zoomed frame zooms out to its caller. */
    zoomTo: (node: number) => {
      if (flame && flame.frames.flags(flame.frame[node]) & FrameFlag.Other) openOther(node);
      else if (node === zoom) zoomOut();
      else update(showing(node));
    },
    seePart: (node: number, seen: VisiblePart | null) => {
      isMovedByHand.current = node !== zoom;
      update(showing(node, seen), "replace");
    },
    /** node: -1 if there is no node to go to. */
    goTo: (node: number) => {
      if (node < 0) return;
      setCursor(node);
      update(showing(node), "replace");
    },
  };
}
