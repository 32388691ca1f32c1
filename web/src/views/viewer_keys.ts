/* viewer_keys: what keys do in the viewer; the sheet of them is key_sheet.tsx. */
import type { Action } from "../model/chain.ts";
import { pathOf, type Flame } from "../model/flame.ts";
import { colourModes, type Update, type View, type ViewState } from "../state.ts";
import { copyText } from "../ui/kit.tsx";
import type { typeChoice, viewChoice } from "./choices.ts";
import { panes } from "./panes.tsx";
import type { useFilters } from "./use_filters.ts";
import { useFindKey, useKeys } from "./use_keys.ts";
import type { usePlace } from "./use_place.ts";

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
  /** Of the frame that the keyboard stands on, or "". */
  cursorName: () => string;
  seekMatch: (step: 1 | -1) => void;
  mark: (name: string) => void;
  onNextGroup: () => void;
  openMenu: (name: string, x: number, y: number) => void;
  onSave: () => void;
  onSheet: () => void;
  extraKeys?: Record<string, () => void>;
}

/** The names from the root to a node, a line each. */
export const stackOf = (flame: Flame, node: number) => pathOf(flame, node).slice(1).map((one) => flame.frames.name(flame.frame[one])).join("\n");

const searchField = () => document.querySelector<HTMLInputElement>("#search");
const rulesByKey: [string, Action][] = [["f", "focus"], ["i", "ignore"], ["h", "hide"], ["m", "merge"], ["r", "recursion"]];

export function useViewerKeys({ flame, state, update, place, filters, seen, type, offered, isDiff, cursorName, seekMatch, mark, onNextGroup, openMenu, onSave, onSheet, extraKeys }: KeysProps): void {
  const { cursor } = place;
  /** What is looked from is where the keyboard stands. */
  const openView = (view: View) => seen.setView(view, panes[view].wantsAround && cursor > 0 && !state.marked ? cursorName() : state.marked);
  /** Where the menu of the frame that the keyboard stands on opens. */
  const openMenuAtCursor = () => {
    const at = document.activeElement?.getBoundingClientRect();
    if (cursor > 0) openMenu(cursorName(), (at?.left ?? 0) + 40, (at?.top ?? 0) + 40);
  };
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
    k: () => !isDiff && update({ colour: colourModes[(colourModes.indexOf(state.colour) + 1) % colourModes.length] }),
    l: () => cursor > 0 && mark(cursorName()),
    ...Object.fromEntries(rulesByKey.map(([key, action]) => [key, () => cursor > 0 && filters.addRule(action, cursorName())])),
    u: () => filters.step("undo"),
    U: () => filters.step("redo"),
    ".": openMenuAtCursor,
    ContextMenu: openMenuAtCursor,
    c: () => cursor > 0 && void copyText(cursorName(), "Name"),
    C: () => cursor > 0 && flame && void copyText(stackOf(flame, cursor), "Stack"),
    y: () => void copyText(location.href, "Link"),
    e: onSave,
    "?": onSheet,
    ...extraKeys,
  });
}
