/* viewer_keys: the actions of the viewer's keys; key_sheet.tsx lists them. */
import type { Action } from "../../model/rules/chain.ts";
import { pathOf, type Flame } from "../../model/tree/flame.ts";
import { colourModes, type Update, type View, type ViewState } from "../../view_state.ts";
import { copyText } from "../../ui/kit.tsx";
import type { typeChoice, viewChoice } from "./choices.ts";
import { panes } from "../panes.tsx";
import type { useFilters } from "../use_filters.ts";
import { useFindKey, useKeys } from "./use_keys.ts";
import type { usePlace } from "../use_place.ts";

interface KeysProps {
  flame: Flame | null;
  state: ViewState;
  update: Update;
  place: ReturnType<typeof usePlace>;
  filters: ReturnType<typeof useFilters>;
  seen: ReturnType<typeof viewChoice>;
  type: ReturnType<typeof typeChoice>;
  offered: readonly View[];
  isDiff?: boolean;
  /** A pane shows a tree and the cursor in it. */
  hasCursor: boolean;
  /** The function of the frame under the cursor, or "". */
  cursorName: () => string;
  seekMatch: (step: 1 | -1) => void;
  mark: (name: string) => void;
  onNextGroup: () => void;
  openMenu: (name: string, x: number, y: number) => void;
  onSave: () => void;
  onSheet: () => void;
  extraKeys?: Record<string, () => void>;
}

/** The names from the root to a node, one per line. */
export const stackOf = (flame: Flame, node: number) =>
  pathOf(flame, node)
    .slice(1)
    .map((one) => flame.frames.name(flame.frame[one]))
    .join("\n");

const searchField = () => document.querySelector<HTMLInputElement>("#search");
const rulesByKey: [string, Action][] = [
  ["f", "focus"],
  ["i", "ignore"],
  ["h", "hide"],
  ["m", "merge"],
  ["r", "recursion"],
];

export function useViewerKeys({
  flame,
  state,
  update,
  place,
  filters,
  seen,
  type,
  offered,
  isDiff,
  hasCursor,
  cursorName,
  seekMatch,
  mark,
  onNextGroup,
  openMenu,
  onSave,
  onSheet,
  extraKeys,
}: KeysProps): void {
  /**
   * The node that keys refer to: the cursor's, unless a view of functions has the focus; 0 for
   * none.
   */
  const targetNode = () => {
    const pane = document.activeElement?.closest(".pane");
    return hasCursor && (!pane || pane.matches(".pane-icicle, .pane-flame")) ? place.cursor : 0;
  };
  /**
   * The function that keys refer to, or "": rows, boxes and halves of a sandwich state their
   * function.
   */
  const targetName = () => {
    const named = document.activeElement?.closest<HTMLElement>("[data-function]");
    return named?.dataset.function ?? (targetNode() > 0 ? cursorName() : "");
  };
  const withName = (act: (name: string) => void) => () => {
    const name = targetName();
    if (name) act(name);
  };
  const openView = (view: View) =>
    seen.setView(view, (panes[view].needsAround && !state.marked && targetName()) || state.marked);
  /** The position of the menu for that function. */
  const openMenuThere = withName((name) => {
    const at = document.activeElement?.getBoundingClientRect();
    openMenu(name, (at?.left ?? 0) + 40, (at?.top ?? 0) + 40);
  });
  useFindKey(searchField);
  useKeys({
    "/": () => searchField()?.focus(),
    n: () => seekMatch(1),
    N: () => seekMatch(-1),
    Escape: () => update(state.search ? { search: "" } : { marked: "" }),
    Backspace: place.zoomOut,
    "0": place.showAll,
    ...Object.fromEntries(offered.map((view) => [panes[view].key, () => openView(view)])),
    "4": seen.toggleBeside,
    t: () => type.types.length > 1 && type.chooseType((type.typeIndex + 1) % type.types.length),
    g: onNextGroup,
    k: () =>
      !isDiff &&
      update({ colour: colourModes[(colourModes.indexOf(state.colour) + 1) % colourModes.length] }),
    l: withName(mark),
    ...Object.fromEntries(
      rulesByKey.map(([key, action]) => [key, withName((name) => filters.addRule(action, name))]),
    ),
    u: () => filters.step("undo"),
    U: () => filters.step("redo"),
    ".": openMenuThere,
    ContextMenu: openMenuThere,
    c: withName((name) => void copyText(name, "Name")),
    C: () => flame && targetNode() > 0 && void copyText(stackOf(flame, targetNode()), "Stack"),
    y: () => void copyText(location.href, "Link"),
    e: onSave,
    "?": onSheet,
    ...extraKeys,
  });
}
