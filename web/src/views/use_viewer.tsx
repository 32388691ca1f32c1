/*
 * use_viewer: the behaviour of the viewer: the tree and its search, the position in it, hover, open
 * menus and dialogs, and the context that all panes share.
 */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Flame } from "../model/tree/flame.ts";
import { FrameColours } from "../model/colours/frame_colours.ts";
import { findByPathHashes } from "../model/tree/path.ts";
import { views, type ViewState } from "../state.ts";
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

export function useViewer(props: ViewerProps, state: ViewState) {
  const { update, comments, isDiff, isFile } = props;
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
  const { loaded, link, texts, shown, isCurrent, problem } = tree;
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
  // Based on the whole profile, so that rules do not change the colours.
  const colours = useMemo(
    () =>
      source
        ? new FrameColours(source, isDiff ? "package" : state.colour, props.hues?.[state.colour])
        : null,
    [source, state.colour],
  );
  const hasSandwich = shownPanes.includes(panes.sandwich);
  const place = usePlace(flame, state, update, {
    opensOthers,
    hasOwnRules: texts.rest.length > 0,
    hasSandwich,
  });
  const { zoom, part, cursor } = place;
  const [commenting, setCommenting] = useState(0);
  const pinned = useMemo(
    () => new Set(flame && props.pins && findByPathHashes(flame, props.pins).values()),
    [flame, props.pins],
  );

  useEffect(listenForLongPresses, []);
  useEffect(() => {
    if (flame) props.onFlame?.(flame);
  }, [flame]);
  useEffect(() => {
    const { above, below } = state; // paths from that function
    if (texts.markedNow) update({ marked: texts.markedNow, above, below }, "replace");
  }, [texts.markedNow]);
  const zoomToFound = (node: number) => update(place.showing(node, state.window), "replace");
  useOldZoom({ ...link, flame, isCurrent: link.isCurrent && isCurrent }, zoomToFound);
  useOldHalves(link, shown, (halves) => update(halves, "replace"));
  const regroup = useRegrouped(flame, isCurrent, state, place, update);
  const isRootLost = useRoot(problem, state, update);

  const type = typeChoice(flame, props, state, update);
  const { group, groupChoices, nextGroup } = groupChoice(props, state);
  const hasGroups = groupChoices.length > 0;
  const seen = viewChoice(state, update);
  const offered = views.filter(
    (view) => (view !== "comments" || comments) && (view !== "labels" || props.loadLabels),
  );
  const seek: PaneContext["seek"] = useRef(null);
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
    setCommenting(commenting + 1);
  };
  useViewerKeys({
    flame: problem ? null : flame,
    state,
    update,
    place,
    filters,
    seen,
    type,
    offered,
    isDiff,
    cursorName,
    seekMatch,
    mark,
    openMenu,
    hasCursor: hasTree(shownPanes),
    onNextGroup: () => hasGroups && regroup({ group: nextGroup }),
    onSave: () => !isFile && overlays.setExporting(true),
    onSheet: () => overlays.setSheet(true),
    extraKeys: props.extraKeys,
  });

  const placed = (frame: number, text: string) => {
    if (!props.sources || !flame || frame < 0) return text;
    return <sourcePlace.Component at={props.sources} text={text} flame={flame} frame={frame} />;
  };
  const context: PaneContext | null = flame &&
    source &&
    colours && {
      state,
      update,
      flame,
      source,
      colours,
      palette,
      zoom,
      part,
      cursor,
      mark,
      openMenu,
      placed,
      comments,
      seek,
      pinned,
      commenting,
      unit: flame.metadata.unit ?? "",
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
        ? {
            groups: groupChoices.map(({ value }) => value),
            canServe: opensOthers,
            load: props.load,
          }
        : null,
    };
  const isShareless = isWithoutShares(flame, state);
  const isEmpty = flame !== null && (flame.nodeCount <= 1 || flame.width[0] === 0 || isShareless);
  const pointed = flame && hover.node >= 0 && hover.node < flame.nodeCount ? hover.node : cursor;
  return {
    tree,
    search,
    filters,
    place,
    type,
    seen,
    overlays,
    context,
    regroup,
    group,
    groupChoices,
    offered,
    seekMatch,
    mark,
    cursorName,
    comment,
    isEmpty,
    isShareless,
    isRootLost,
    canSave: context !== null && isCurrent && !problem && !isEmpty,
    /** The node that the foot describes; -1 if no pane shows a tree. */
    pointed: hasTree(shownPanes) ? pointed : -1,
  };
}
