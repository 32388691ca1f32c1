/*
 * panes: the ways to see a tree, one entry each: icicle, flame, table, sandwich and those that come with
 * a chunk of their own when they are first asked for. The viewer shows one of them, or two side by side.
 *
 * Every pane gets the same context and holds nothing that a link should remember: that is the state's.
 */
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Action, Rule } from "../model/chain.ts";
import type { Flame } from "../model/flame.ts";
import type { FrameColours } from "../model/frame_colours.ts";
import type { FunctionRow } from "../model/functions.ts";
import { search, type SearchResult } from "../model/search.ts";
import type { SeenPart, Update, View, ViewState } from "../state.ts";
import type { IconName } from "../ui/icons.tsx";
import { Loading, ProblemView, asProblem } from "../ui/kit.tsx";
import { Icicle } from "./icicle.tsx";
import { Sandwich } from "./sandwich.tsx";
import { Table } from "./table.tsx";

export interface PaneContext {
  state: ViewState;
  update: Update;
  /** What the rules left, and the whole that was loaded. */
  flame: Flame;
  source: Flame;
  colours: FrameColours;
  unit: string;
  isDark: boolean;
  /** Empty unless the pane wants them. */
  rows: readonly FunctionRow[];
  /** Trees around the marked function; null unless the pane wants them, and until they are there. */
  callers: Flame | null;
  callees: Flame | null;
  /** The search; null while there is none. */
  pattern: RegExp | null;
  /** Where the marked function stands in flame, or else what was searched for. */
  marks: SearchResult | null;
  zoom: number;
  part: SeenPart | null;
  cursor: number;
  onCursor: (node: number) => void;
  onZoom: (node: number) => void;
  onPart: (node: number, part: SeenPart | null) => void;
  onHover: (node: number) => void;
  /** Marks a function in every view; the marked one again stops that. */
  mark: (name: string) => void;
  openMenu: (name: string, x: number, y: number) => void;
  addRule: (action: Action, name: string) => void;
  setRules: (rules: readonly Rule[]) => void;
}

export interface PaneProps {
  context: PaneContext;
  /** It stands beside no other. */
  isAlone: boolean;
  /** Different for the two panes of a page: for ids of elements. */
  id: string;
}

interface PaneKind {
  label: string;
  icon: IconName;
  key: string;
  wantsRows?: boolean;
  /** Of the marked function. */
  wantsAround?: boolean;
  /** It shows a tree, and what the pointer is on is told below. */
  hasCursor?: boolean;
  Pane: ComponentType<PaneProps>;
}

function IciclePane({ context, id }: PaneProps, isFlipped: boolean) {
  const { flame, colours, unit, isDark, zoom, part, marks, cursor, onCursor, onZoom, onPart, onHover, openMenu } = context;
  return (
    <Icicle
      {...{ flame, colours, unit, isDark, isFlipped, zoom, part, marks, onCursor, onZoom, onPart, onHover }}
      cursor={Math.min(cursor, flame.nodeCount - 1)}
      cursorId={`${id}-cursor`}
      onMenu={(node, x, y) => {
        onCursor(node);
        if (node > 0) openMenu(flame.frames.name(flame.frame[node]), x, y);
      }}
    />
  );
}

function TablePane({ context }: PaneProps) {
  const { state, flame, rows, colours, unit, isDark, pattern, update, mark, openMenu } = context;
  return (
    <Table
      {...{ flame, rows, colours, unit, isDark, pattern }}
      sort={state.sort}
      chosen={state.marked}
      onSort={(sort) => update({ sort })}
      onChoose={mark}
      onMenu={openMenu}
    />
  );
}

/** Alone it has the table at its side, to choose a function from. */
function SandwichPane(props: PaneProps) {
  const { state, callers, callees, colours, unit, isDark, pattern, update, openMenu } = props.context;
  const sandwich = (
    <Sandwich
      {...{ callers, callees, colours, unit, isDark }}
      name={state.marked}
      search={(tree) => (pattern ? search(tree, pattern) : null)}
      onChoose={(name) => update({ marked: name })}
      onMenu={openMenu}
    />
  );
  if (!props.isAlone) return sandwich;
  return (
    <div class="split">
      <TablePane {...props} />
      {sandwich}
    </div>
  );
}

export const panes: Record<View, PaneKind> = {
  icicle: { label: "Icicle", icon: "icicle", key: "1", hasCursor: true, Pane: (props) => IciclePane(props, false) },
  flame: { label: "Flame", icon: "flame", key: "5", hasCursor: true, Pane: (props) => IciclePane(props, true) },
  table: { label: "Table", icon: "table", key: "2", wantsRows: true, Pane: TablePane },
  sandwich: { label: "Sandwich", icon: "sandwich", key: "3", wantsRows: true, wantsAround: true, Pane: SandwichPane },
};

/** A pane of a chunk of its own. */
export function paneOf(load: () => Promise<ComponentType<PaneProps>>): ComponentType<PaneProps> {
  let loaded: ComponentType<PaneProps> | null = null;
  return function LaterPane(props: PaneProps) {
    const [Pane, setPane] = useState(() => loaded);
    const [problem, setProblem] = useState<unknown>(null);
    useEffect(() => {
      if (Pane) return;
      load().then(
        (made) => setPane(() => (loaded = made)),
        (error) => setProblem(error),
      );
    }, [problem === null]);
    if (problem) return <ProblemView problem={asProblem(problem)} onRetry={() => setProblem(null)} />;
    return Pane ? <Pane {...props} /> : <Loading />;
  };
}

interface PanesProps {
  context: PaneContext;
  isCurrent: boolean;
}

export function Panes({ context, isCurrent }: PanesProps) {
  const { view, beside } = context.state;
  const shown = beside ? [view, beside] : [view];
  const layout = beside ? `split view-${view} beside-${beside}` : "";
  return (
    <div class={`views ${layout} ${isCurrent ? "" : "stale"}`}>
      {shown.map((kind, i) => {
        const { Pane, label } = panes[kind];
        return (
          <div class={`pane pane-${kind}`} role="group" aria-label={label} key={kind}>
            <Pane context={context} isAlone={shown.length === 1} id={i === 0 ? "icicle" : "beside"} />
          </div>
        );
      })}
    </div>
  );
}
