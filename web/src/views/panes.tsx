/*
 * panes: the ways to see a tree, one entry each: icicle, flame, table, sandwich and those that come with
 * a chunk of their own when they are first asked for. The viewer shows one of them, or two side by side.
 *
 * Every pane gets the same context and holds nothing that a link should remember: that is the state's.
 */
import type { ComponentChildren, ComponentType, VNode } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { Problem } from "../api/api.ts";
import type { Action, Rule } from "../model/chain.ts";
import type { Bound, Flame } from "../model/flame.ts";
import type { FrameColours } from "../model/frame_colours.ts";
import type { FunctionRow } from "../model/functions.ts";
import type { LoadLabels } from "../model/labels.ts";
import type { Pattern } from "../model/regex.ts";
import type { SearchResult } from "../model/search.ts";
import type { SeenPart, Update, View, ViewState } from "../state.ts";
import type { IconName } from "../ui/icons.tsx";
import { later } from "../ui/later.tsx";
import type { Load } from "./use_flame.ts";
import { Icicle } from "./icicle.tsx";
import type { Look } from "./icicle_draw.ts";

/** Comments are the page's, since they are of what it shows; pages without them offer no such view. */
export type CommentsOf = (props: PaneProps) => VNode | null;

/** A place in source code, and where the team's rules of links to it are asked for. */
export interface SourcePlaceProps {
  /** Of a comparison: of both sides, the one before first. */
  at: string[];
  text: string;
  flame: Flame;
  frame: number;
}

export interface Failed {
  problem: Problem;
  /** Absent where that would not help. */
  onRetry?: () => void;
}

export interface PaneContext {
  state: ViewState;
  update: Update;
  /** What the rules left, and the whole that was loaded. */
  flame: Flame;
  source: Flame;
  colours: FrameColours;
  unit: string;
  palette: Look;
  /** Empty unless the pane wants them. */
  rows: readonly FunctionRow[];
  /** They are still to come. */
  isAwaitingRows: boolean;
  /** Of their numbers. */
  rowBound: Bound;
  /** Why they did not come. */
  rowsFailed: Failed | null;
  /** Trees around the marked function; null unless the pane wants them, and until they are there. */
  callers: Flame | null;
  callees: Flame | null;
  /** Why the rules' tree and those around the function did not come. */
  failed: Failed | null;
  /** The search; null while there is none. */
  pattern: Pattern | null;
  /** Where the marked function stands in flame, and what was searched for. */
  marks: SearchResult | null;
  zoom: number;
  part: SeenPart | null;
  cursor: number;
  onCursor: (node: number) => void;
  onZoom: (node: number) => void;
  onPart: (node: number, part: SeenPart | null) => void;
  onHover: (node: number) => void;
  /** The function that the pointer is on, in whatever view; "" for none. */
  hovered: string;
  onHoverName: (name: string) => void;
  /** Marks a function in every view; the marked one again stops that. */
  mark: (name: string) => void;
  openMenu: (name: string, x: number, y: number) => void;
  /** A frame's place in source code, with a link where there is one. */
  placed: (frame: number, text: string) => ComponentChildren;
  addRule: (action: Action, name: string) => void;
  setRules: (rules: readonly Rule[]) => void;
  setLabels: (labels: readonly string[]) => void;
  /** Names what loadLabels counts, but for the question. */
  labelsKey: string;
  /** null: nothing is known but the tree. */
  loadLabels: LoadLabels | null;
  /** The tree can be had by other groups than functions. */
  canGroup: boolean;
  /** How it can be had by all of them; canServe: under rules, too. */
  regrouped: { groups: readonly string[]; canServe: boolean; load: Load } | null;
  comments?: CommentsOf;
  /** Nodes that comments are pinned to, as far as these are known. */
  pinned: ReadonlySet<number>;
  /** Counts how often somebody wanted to write one. */
  commenting: number;
  /** A view that is no tree puts here how it goes to the next match. */
  seek: { current: ((step: 1 | -1) => void) | null };
}

export interface PaneProps {
  context: PaneContext;
  /** It stands beside no other. */
  isAlone: boolean;
  /** Different for the two panes of a page: for ids of elements. */
  id: string;
}

export interface PaneKind {
  label: string;
  icon: IconName;
  key: string;
  wantsRows?: boolean;
  /** Of the marked function. */
  wantsAround?: boolean;
  /** It shows a tree, and what the pointer is on is told below. */
  hasCursor?: boolean;
  Component: ComponentType<PaneProps>;
  /** Of those in a chunk of their own. */
  preload?: () => void;
}

function IciclePane({ context, id }: PaneProps, isFlipped: boolean) {
  const { flame, colours, unit, palette, zoom, part, marks, cursor, pinned, onCursor, onZoom, onPart, onHover, hovered, openMenu } = context;
  return (
    <Icicle
      {...{ flame, colours, unit, palette, isFlipped, zoom, part, marks, pinned, hovered, onCursor, onZoom, onPart, onHover }}
      cursor={Math.min(cursor, flame.nodeCount - 1)}
      cursorId={`${id}-cursor`}
      onMenu={(node, x, y) => {
        onCursor(node);
        if (node > 0) openMenu(flame.frames.name(flame.frame[node]), x, y);
      }}
    />
  );
}

const table = later(async () => (await import("./table.tsx")).TablePane);
const labels = later(async () => (await import("./labels.tsx")).LabelsPane);
const sandwich = later(async () => (await import("./sandwich.tsx")).SandwichPane);
const graph = later(async () => (await import("./graph.tsx")).GraphPane);
const peek = later(async () => (await import("./peek.tsx")).PeekPane);

export const panes: Record<View, PaneKind> = {
  icicle: { label: "Icicle", icon: "icicle", key: "1", hasCursor: true, Component: (props) => IciclePane(props, false) },
  flame: { label: "Flame", icon: "flame", key: "5", hasCursor: true, Component: (props) => IciclePane(props, true) },
  table: { label: "Table", icon: "table", key: "2", wantsRows: true, ...table },
  sandwich: { label: "Sandwich", icon: "sandwich", key: "3", wantsRows: true, wantsAround: true, ...sandwich },
  graph: { label: "Graph", icon: "graph", key: "6", ...graph },
  peek: { label: "Peek", icon: "peek", key: "8", wantsRows: true, ...peek },
  labels: { label: "Labels", icon: "labels", key: "7", ...labels },
  comments: { label: "Comments", icon: "comments", key: "9", Component: (props) => props.context.comments!(props) },
};

interface PanesProps {
  context: PaneContext;
  isCurrent: boolean;
}

export function Panes({ context, isCurrent }: PanesProps) {
  const { view, beside } = context.state;
  const shown = beside ? [view, beside] : [view];
  const firstTree = Math.max(0, shown.findIndex((kind) => panes[kind].hasCursor));
  // Who stood in a view by keyboard stands in the one that takes its place.
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
            <Component context={context} isAlone={shown.length === 1} id={i === firstTree ? "icicle" : "beside"} />
          </div>
        );
      })}
    </div>
  );
}
