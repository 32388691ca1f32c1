/*
 * use_viewer_tree: the tree that the viewer shows and the frames that a search marks in it.
 *
 * Steps: load the tree of the state, translate names of older links, apply the page's rules in a
 * worker, search the result.
 */
import { useMemo } from "preact/hooks";
import { exactPattern } from "../../model/search/escape_regex.ts";
import type { Flame } from "../../model/tree/flame.ts";
import type { ViewState } from "../../view_state.ts";
import type { PaneKind } from "../panes.tsx";
import { useSearch, useSearchCode } from "../controls/search_box.tsx";
import { useSource, useTransformed, type Load } from "./use_flame.ts";
import { useOldTexts } from "./use_old_link.ts";

interface TreeInput {
  state: ViewState;
  shownPanes: readonly PaneKind[];
  flameKey: string;
  load: Load;
  /** The page can load trees under rules and below one node. */
  opensOthers: boolean;
}

export function useViewerTree({ state, shownPanes, flameKey, load, opensOthers }: TreeInput) {
  const {
    source: loaded,
    isCurrent: isLoaded,
    problem,
    retry,
  } = useSource(flameKey, load, state.rules, state, opensOthers);
  for (const pane of shownPanes) pane.preload?.();
  const around = shownPanes.some((pane) => pane.needsAround) ? state.marked : "";
  const link = {
    flame: loaded?.flame ?? null,
    isCurrent: isLoaded && opensOthers,
    state,
    flameKey,
    load,
  };
  const texts = useOldTexts(link, loaded?.rest ?? []);
  const shown = useTransformed(link.flame, texts.rest, around, state.isOfFiltered);
  return { loaded, link, texts, shown, isCurrent: isLoaded && shown.isCurrent, problem, retry };
}

/** The results of the search and of the marked function; `marks` combines both for drawing. */
export function useViewerSearch(flame: Flame | null, search: string, marked: string) {
  const isNeeded = search !== "" || marked !== "";
  const [code, problem] = useSearchCode(isNeeded);
  const searching = useSearch(code, flame, search);
  const marking = useSearch(code, flame, marked ? exactPattern(marked) : "");
  const marks = useMemo(
    () => (flame && code ? code.bothMarks(flame, searching.result, marking.result) : null),
    [flame, searching.result, marking.result],
  );
  /**
   * The next match after `node`, of the search or else of the marked function; -1 if there is none.
   */
  const matchFrom = (node: number, step: 1 | -1): number => {
    const found = searching.result ?? marking.result;
    return flame && found ? code!.nextMatch(flame, found, node, step) : -1;
  };
  return {
    searching: problem ? { ...searching, error: problem } : searching,
    pattern: searching.pattern,
    marked: marking.result,
    marks,
    matchFrom,
    isLoading: isNeeded && !code && !problem,
  };
}
