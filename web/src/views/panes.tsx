/*
 * panes: the ways to show a tree, one entry each: icicle, flame, table, sandwich, and those that
 * load with a later chunk. The viewer shows one pane or two side by side.
 *
 * Every pane gets the same context. Settings that a link should restore belong to the state, not to
 * a pane.
 */
import type { ComponentChildren, ComponentType, VNode } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { Problem } from "../api/api.ts";
import type { Action, Rule } from "../model/rules/chain.ts";
import type { Bound, Flame } from "../model/tree/flame.ts";
import type { FrameColours } from "../model/colours/frame_colours.ts";
import type { FunctionRow } from "../model/functions/functions.ts";
import type { LoadLabels } from "../model/rules/labels.ts";
import type { Pattern } from "../model/search/regex.ts";
import type { SearchResult } from "../model/search/search.ts";
import type { VisiblePart, Update, View, ViewState } from "../view_state.ts";
import type { IconName } from "../ui/icons.tsx";
import { later } from "../ui/later.tsx";
import type { Load } from "./loading/use_flame.ts";
import { Icicle } from "./icicle/icicle.tsx";
import type { Look } from "./icicle/icicle_draw.ts";

/** The pane of comments, which only some pages provide. */
export type CommentsOf = (props: PaneProps) => VNode | null;

/** A place in source code, and the addresses of the source links of the profile. */
export interface SourcePlaceProps {
  /** One address; two for a comparison, before and after. */
  at: string[];
  text: string;
  flame: Flame;
  frame: number;
}

export interface Failed {
  problem: Problem;
  /** Absent if a retry cannot succeed. */
  onRetry?: () => void;
}

export interface PaneContext {
  state: ViewState;
  update: Update;
  /** The tree after the rules, and the loaded tree. */
  flame: Flame;
  source: Flame;
  colours: FrameColours;
  unit: string;
  palette: Look;
  /** The rows of the table; empty unless a shown pane needs them (needsRows). */
  rows: readonly FunctionRow[];
  /** The rows are still loading. */
  isAwaitingRows: boolean;
  /** The sign before the numbers of rows. */
  rowBound: Bound;
  /** Why the rows could not be loaded. */
  rowsFailed: Failed | null;
  /**
   * Trees of the callers and callees of the marked function; null until computed, and if no shown
   * pane needs them.
   */
  callers: Flame | null;
  callees: Flame | null;
  /** Why the tree after the rules, or the trees of callers and callees, could not be computed. */
  failed: Failed | null;
  /** The search; null while there is none. */
  pattern: Pattern | null;
  /** Matches of the search and of the marked function in `flame`. */
  marks: SearchResult | null;
  zoom: number;
  part: VisiblePart | null;
  cursor: number;
  onCursor: (node: number) => void;
  onZoom: (node: number) => void;
  onPart: (node: number, part: VisiblePart | null) => void;
  onHover: (node: number) => void;
  /** The function under the pointer in any view; "" for none. */
  hovered: string;
  onHoverName: (name: string) => void;
  /** Marks a function in every view; unmarks it if it is marked. */
  mark: (name: string) => void;
  openMenu: (name: string, x: number, y: number) => void;
  /** Renders a frame's source location, as a link if a rule of the team matches it. */
  placed: (frame: number, text: string) => ComponentChildren;
  addRule: (action: Action, name: string) => void;
  setRules: (rules: readonly Rule[]) => void;
  setLabels: (labels: readonly string[]) => void;
  /** Identifies the tree whose labels loadLabels counts. */
  labelsKey: string;
  /** null in pages that have only the tree. */
  loadLabels: LoadLabels | null;
  /** The page offers other groupings. */
  canGroup: boolean;
  /** The groupings on offer and how to load them; canServe: the server can apply rules. */
  regrouped: { groups: readonly string[]; canServe: boolean; load: Load } | null;
  comments?: CommentsOf;
  /** Nodes that the known comments are pinned to. */
  pinned: ReadonlySet<number>;
  /** Increases with each request to open the comment form. */
  commenting: number;
  /** A pane that shows no tree stores here its function that goes to the next match. */
  seek: { current: ((step: 1 | -1) => void) | null };
}

export interface PaneProps {
  context: PaneContext;
  /** No other pane is shown. */
  isAlone: boolean;
  /** Differs between the two panes of a page; a prefix for ids of elements. */
  id: string;
}

export interface PaneKind {
  label: string;
  icon: IconName;
  key: string;
  /** Needs the rows of the table. */
  needsRows?: boolean;
  /** Needs the trees of callers and callees of the marked function. */
  needsAround?: boolean;
  /** Shows a tree; the foot describes the frame under the pointer. */
  hasCursor?: boolean;
  Component: ComponentType<PaneProps>;
  /** Loads the pane's chunk. */
  preload?: () => void;
}

function IciclePane({ context, id }: PaneProps, isFlipped: boolean) {
  const {
    flame,
    colours,
    unit,
    palette,
    zoom,
    part,
    marks,
    cursor,
    pinned,
    onCursor,
    onZoom,
    onPart,
    onHover,
    hovered,
    openMenu,
  } = context;
  return (
    <Icicle
      {...{
        flame,
        colours,
        unit,
        palette,
        isFlipped,
        zoom,
        part,
        marks,
        pinned,
        hovered,
        onCursor,
        onZoom,
        onPart,
        onHover,
      }}
      cursor={Math.min(cursor, flame.nodeCount - 1)}
      cursorId={`${id}-cursor`}
      onMenu={(node, x, y) => {
        onCursor(node);
        if (node > 0) openMenu(flame.frames.name(flame.frame[node]), x, y);
      }}
    />
  );
}

const table = later(async () => (await import("./tables/table.tsx")).TablePane);
const labels = later(async () => (await import("./tables/labels.tsx")).LabelsPane);
const sandwich = later(async () => (await import("./tables/sandwich.tsx")).SandwichPane);
const graph = later(async () => (await import("./graph/graph.tsx")).GraphPane);
const peek = later(async () => (await import("./tables/peek.tsx")).PeekPane);

export const panes: Record<View, PaneKind> = {
  icicle: {
    label: "Icicle",
    icon: "icicle",
    key: "1",
    hasCursor: true,
    Component: (props) => IciclePane(props, false),
  },
  flame: {
    label: "Flame",
    icon: "flame",
    key: "5",
    hasCursor: true,
    Component: (props) => IciclePane(props, true),
  },
  table: { label: "Table", icon: "table", key: "2", needsRows: true, ...table },
  sandwich: {
    label: "Sandwich",
    icon: "sandwich",
    key: "3",
    needsRows: true,
    needsAround: true,
    ...sandwich,
  },
  graph: { label: "Graph", icon: "graph", key: "6", ...graph },
  peek: { label: "Peek", icon: "peek", key: "8", needsRows: true, ...peek },
  labels: { label: "Labels", icon: "labels", key: "7", ...labels },
  comments: {
    label: "Comments",
    icon: "comments",
    key: "9",
    Component: (props) => props.context.comments!(props),
  },
};

interface PanesProps {
  context: PaneContext;
  isCurrent: boolean;
}

export function Panes({ context, isCurrent }: PanesProps) {
  const { view, beside } = context.state;
  const shown = beside ? [view, beside] : [view];
  const firstTree = Math.max(
    0,
    shown.findIndex((kind) => panes[kind].hasCursor),
  );
  // Moves the keyboard focus from a pane to the pane that replaces it.
  const box = useRef<HTMLDivElement>(null);
  const hadFocus = box.current?.contains(document.activeElement);
  useLayoutEffect(() => {
    if (!hadFocus || document.activeElement !== document.body) return;
    const pane = box.current!.querySelector<HTMLElement>(".pane")!;
    (pane.querySelector<HTMLElement>(".icicle, .rows, [tabindex='0']") ?? pane).focus();
  }, [view, beside]);
  const layout = beside ? `split view-${view} beside-${beside}` : `view-${view}`;
  return (
    <div class={`views ${layout} ${isCurrent ? "" : "stale"}`} ref={box}>
      {shown.map((kind, i) => {
        const { Component, label } = panes[kind];
        return (
          <div class={`pane pane-${kind}`} role="group" aria-label={label} tabIndex={-1} key={kind}>
            <Component
              context={context}
              isAlone={shown.length === 1}
              id={i === firstTree ? "icicle" : "beside"}
            />
          </div>
        );
      })}
    </div>
  );
}
