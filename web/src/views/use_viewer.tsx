/*
 * use_viewer: the behaviour of the viewer: the tree and its search, the position in it, hover, open
 * menus and dialogs, and the context that all panes share.
 */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Flame } from "../model/tree/flame.ts";
import { FrameColours } from "../model/colours/frame_colours.ts";
import { findByPathHashes } from "../model/tree/path.ts";
import { views, type ViewState } from "../view_state.ts";
import { asProblem } from "../ui/kit.tsx";
import { listenForLongPresses } from "../ui/long_press.ts";
import { later } from "../ui/later.tsx";
import { usePalette } from "../ui/theme.ts";
import { groupChoice, typeChoice, viewChoice } from "./controls/choices.ts";
import type { MenuPlace } from "./controls/frame_menu.tsx";
import { panes, type PaneContext, type PaneKind } from "./panes.tsx";
import { useFilters } from "./use_filters.ts";
import { useRows } from "./loading/use_flame.ts";
import { useOldHalves, useOldZoom } from "./loading/use_old_link.ts";
import { usePlace } from "./use_place.ts";
import { useRegrouped } from "./loading/use_regrouped.ts";
import { useRoot } from "./loading/use_root.ts";
import { useViewerSearch, useViewerTree } from "./loading/use_viewer_tree.ts";
import type { ViewerProps } from "./viewer.tsx";
import { useViewerKeys } from "./controls/viewer_keys.ts";

const sourcePlace = later(
  async () => (await import("./foot/source_place.tsx")).SourcePlace,
  (_, { text }) => <>{text}</>,
);

/** The node and the function under the pointer; -1 and "" for none. */
function useHover(flame: Flame | null) {
  const [node, setNode] = useState(-1);
  const [name, setName] = useState("");
  const onHover = (hovered: number) => {
    setNode(hovered);
    setName(hovered > 0 && flame ? flame.frames.name(flame.frame[hovered]) : "");
  };
  return { node, name, onHover, onHoverName: setName };
}

/** The dialogs and the menu that are open. */
function useOverlays() {
  const [hasSheet, setSheet] = useState(false);
  const [isExporting, setExporting] = useState(false);
  const [menu, setMenu] = useState<MenuPlace | null>(null);
  return { hasSheet, setSheet, isExporting, setExporting, menu, setMenu };
}

const hasTree = (shownPanes: readonly PaneKind[]) => shownPanes.some((pane) => pane.hasCursor);

/** A normalised comparison has no shares if its total is 0: then all values after are 0. */
const isWithoutShares = (flame: Flame | null, { isNormalised }: ViewState) =>
  flame !== null && isNormalised && flame.isDiff && flame.total === 0;

/** The colours of the whole profile, so that rules do not change them. */
const useFrameColours = (source: Flame | null, { isDiff, hues }: ViewerProps, state: ViewState) =>
  useMemo(
    () =>
      source
        ? new FrameColours(source, isDiff ? "package" : state.colour, hues?.[state.colour])
        : null,
    [source, state.colour],
  );

/** Replaces the names and paths in a link from before symbolization by the current ones. */
function useOldLink(
  { texts, link, shown, isCurrent }: ReturnType<typeof useViewerTree>,
  state: ViewState,
  update: ViewerProps["update"],
  place: ReturnType<typeof usePlace>,
) {
  const { flame } = shown;
  useEffect(() => {
    const { above, below } = state; // stay: their paths start at the same function
    if (texts.markedNow) update({ marked: texts.markedNow, above, below }, "replace");
  }, [texts.markedNow]);
  const zoomToFound = (node: number) => update(place.showing(node, state.window), "replace");
  useOldZoom({ ...link, flame, isCurrent: link.isCurrent && isCurrent }, zoomToFound);
  useOldHalves(link, shown, (halves) => update(halves, "replace"));
}

interface ActionParts {
  flame: Flame | null;
  place: ReturnType<typeof usePlace>;
  overlays: ReturnType<typeof useOverlays>;
  search: ReturnType<typeof useViewerSearch>;
  seek: PaneContext["seek"];
  shownPanes: readonly PaneKind[];
  onComment: () => void;
}

/** The actions that keys, menus and panes share. */
function viewerActions(state: ViewState, update: ViewerProps["update"], parts: ActionParts) {
  const { flame, place, overlays, search, seek, shownPanes, onComment } = parts;
  const { cursor } = place;
  const seekMatch = (step: 1 | -1) => {
    seek.current?.(step);
    if (hasTree(shownPanes)) place.goTo(search.matchFrom(cursor, step));
  };
  const mark = (name: string) => update({ marked: state.marked === name ? "" : name });
  const cursorName = () =>
    flame && cursor < flame.nodeCount ? flame.frames.name(flame.frame[cursor]) : "";
  const openMenu = (name: string, x: number, y: number) => name && overlays.setMenu({ name, x, y });
  /**
   * Opens the comment form, pinned to the cursor's frame if it has that name, otherwise to the
   * function's widest frame.
   */
  const comment = (name: string) => {
    if (cursorName() !== name) place.setCursor(0);
    update({ marked: name, ...(!shownPanes.includes(panes.comments) && { beside: "comments" }) });
    onComment();
  };
  return { seekMatch, mark, cursorName, openMenu, comment };
}

interface ContextParts extends Pick<
  PaneContext,
  | "flame"
  | "source"
  | "colours"
  | "palette"
  | "mark"
  | "openMenu"
  | "placed"
  | "seek"
  | "pinned"
  | "commenting"
> {
  place: ReturnType<typeof usePlace>;
  filters: ReturnType<typeof useFilters>;
  search: ReturnType<typeof useViewerSearch>;
  rows: ReturnType<typeof useRows>;
  hover: ReturnType<typeof useHover>;
  shown: ReturnType<typeof useViewerTree>["shown"];
  /** The groupings on offer; empty if there is no choice. */
  groups: readonly string[];
}

/** The context that all panes share. */
function contextOf(props: ViewerProps, state: ViewState, parts: ContextParts): PaneContext {
  const { place, filters, search, rows, hover, shown, groups, ...rest } = parts;
  const hasGroups = groups.length > 0;
  return {
    ...rest,
    state,
    update: props.update,
    zoom: place.zoom,
    part: place.part,
    cursor: place.cursor,
    comments: props.comments,
    unit: parts.flame.metadata.unit ?? "",
    marks: search.marks,
    pattern: search.pattern,
    rows: rows.rows,
    isAwaitingRows: rows.isAwaiting,
    rowBound: rows.bound,
    rowsFailed: rows.failed,
    callers: shown.callers,
    callees: shown.callees,
    failed: shown.error && {
      problem: asProblem(shown.error),
      onRetry: shown.error.rule < 0 ? shown.retry : undefined,
    },
    hovered: hover.name,
    onHover: hover.onHover,
    onHoverName: hover.onHoverName,
    onCursor: place.setCursor,
    onZoom: place.zoomTo,
    onPart: place.seePart,
    addRule: filters.addRule,
    setRules: filters.setRules,
    setLabels: filters.setLabels,
    labelsKey: props.flameKey,
    loadLabels: props.loadLabels ?? null,
    canGroup: hasGroups,
    regrouped: hasGroups
      ? { groups, canServe: props.opensOthers === true, load: props.load }
      : null,
  };
}

/** The tree of the state, and everything that depends on it alone. */
function useParts(props: ViewerProps, state: ViewState) {
  const { update } = props;
  const opensOthers = props.opensOthers === true;
  const palette = usePalette();
  const shownPanes = [state.view, state.beside].flatMap((view) => (view ? [panes[view]] : []));
  const tree = useViewerTree({
    state,
    shownPanes,
    flameKey: props.flameKey,
    load: props.load,
    opensOthers,
  });
  const { loaded, texts, shown } = tree;
  const { flame, source } = shown;
  const hover = useHover(flame);
  const overlays = useOverlays();
  const filters = useFilters(state, update);
  const search = useViewerSearch(flame, texts.search, state.marked);
  const rows = useRows(
    flame,
    shownPanes.some((pane) => pane.needsRows),
    loaded,
    props.loadRows,
  );
  const colours = useFrameColours(source, props, state);
  const hasSandwich = shownPanes.includes(panes.sandwich);
  const place = usePlace(flame, state, update, {
    opensOthers,
    hasOwnRules: texts.rest.length > 0,
    hasSandwich,
  });
  return { palette, shownPanes, tree, hover, overlays, filters, search, rows, colours, place };
}

/** What the toolbar offers for the tree: types, groupings and views. */
function choicesOf(
  props: ViewerProps,
  state: ViewState,
  flame: Flame | null,
  regroup: (patch: { group: string }) => void,
) {
  const { update, comments, loadLabels } = props;
  const { group, groupChoices, nextGroup } = groupChoice(props, state);
  return {
    type: typeChoice(flame, props, state, update),
    seen: viewChoice(state, update),
    group,
    groupChoices,
    onNextGroup: () => groupChoices.length > 0 && regroup({ group: nextGroup }),
    offered: views.filter(
      (view) => (view !== "comments" || comments) && (view !== "labels" || loadLabels),
    ),
  };
}

/** The text of a place in the source, as a link if the team has rules for it. */
const placedIn =
  ({ sources }: ViewerProps, flame: Flame | null): PaneContext["placed"] =>
  (frame, text) => {
    if (!sources || !flame || frame < 0) return text;
    return <sourcePlace.Component at={sources} text={text} flame={flame} frame={frame} />;
  };

/** Whether the tree has nothing to draw, and the node that the foot describes. */
function factsOf(
  flame: Flame | null,
  state: ViewState,
  hovered: number,
  cursor: number,
  shownPanes: readonly PaneKind[],
) {
  const isShareless = isWithoutShares(flame, state);
  const isEmpty = flame !== null && (flame.nodeCount <= 1 || flame.width[0] === 0 || isShareless);
  const pointed = flame && hovered >= 0 && hovered < flame.nodeCount ? hovered : cursor;
  return {
    isShareless,
    isEmpty,
    /** -1 if no pane shows a tree. */
    pointed: hasTree(shownPanes) ? pointed : -1,
  };
}

/** The frames to which comments are pinned. */
const usePinned = (flame: Flame | null, pins: ViewerProps["pins"]) =>
  useMemo(() => new Set(flame && pins && findByPathHashes(flame, pins).values()), [flame, pins]);

export function useViewer(props: ViewerProps, state: ViewState) {
  const { update, isDiff, isFile } = props;
  const parts = useParts(props, state);
  const { palette, rows, shownPanes, tree, hover, overlays, filters, search, colours, place } =
    parts;
  const { shown, isCurrent, problem } = tree;
  const { flame, source } = shown;
  const [commenting, setCommenting] = useState(0);
  const pinned = usePinned(flame, props.pins);

  useEffect(listenForLongPresses, []);
  useEffect(() => {
    if (flame) props.onFlame?.(flame);
  }, [flame]);
  useOldLink(tree, state, update, place);
  const regroup = useRegrouped(flame, isCurrent, state, place, update);
  const isRootLost = useRoot(problem, state, update);

  const choices = choicesOf(props, state, flame, regroup);
  const { onNextGroup, ...offers } = choices;
  const seek: PaneContext["seek"] = useRef(null);
  const onComment = () => setCommenting(commenting + 1);
  const actionParts = { flame, place, overlays, search, seek, shownPanes, onComment };
  const actions = viewerActions(state, update, actionParts);
  const { mark, openMenu } = actions;
  useViewerKeys({
    flame: problem ? null : flame,
    ...{ state, update, place, filters, isDiff },
    seen: offers.seen,
    type: offers.type,
    offered: offers.offered,
    ...actions,
    hasCursor: hasTree(shownPanes),
    onNextGroup,
    onSave: () => !isFile && overlays.setExporting(true),
    onSheet: () => overlays.setSheet(true),
    extraKeys: props.extraKeys,
  });

  const context =
    flame && source && colours
      ? contextOf(props, state, {
          ...{ flame, source, shown, colours, palette, rows, place, filters, search, hover },
          ...{ mark, openMenu, seek, pinned, commenting },
          placed: placedIn(props, flame),
          groups: offers.groupChoices.map(({ value }) => value),
        })
      : null;
  const facts = factsOf(flame, state, hover.node, place.cursor, shownPanes);
  return {
    ...{ tree, search, filters, place, overlays, context, regroup, isRootLost },
    ...offers,
    ...actions,
    ...facts,
    canSave: context !== null && isCurrent && !problem && !facts.isEmpty,
  };
}
