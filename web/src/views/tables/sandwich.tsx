/*
 * sandwich: one function with all its callers above and all its callees below, summed over all its
 * places in the tree. Recursion counts once: only outermost frames are considered.
 */
import { useMemo, useRef, useState } from "preact/hooks";
import type { Flame } from "../../model/tree/flame.ts";
import { findByPathHash, pathHash } from "../../model/tree/path.ts";
import type { VisibleHalf, VisiblePart } from "../../view_state.ts";
import type { FrameColours } from "../../model/colours/frame_colours.ts";
import type { Pattern } from "../../model/search/regex.ts";
import { search, type SearchResult } from "../../model/search/search.ts";
import { Loading, ProblemView } from "../../ui/kit.tsx";
import { Icicle } from "../icicle/icicle.tsx";
import type { Look } from "../icicle/icicle_draw.ts";
import type { Failed, PaneProps } from "../panes.tsx";
import { TablePane } from "./table.tsx";
import { addStyle } from "../../ui/later.tsx";
import aroundStyle from "./no_function.css?text";
import style from "./sandwich.css?text";

addStyle(aroundStyle);
addStyle(style);

interface SandwichProps {
  name: string;
  callers: Flame | null;
  callees: Flame | null;
  failed: Failed | null;
  colours: FrameColours;
  unit: string;
  palette: Look;
  pattern: Pattern | null;
  above: VisibleHalf | null;
  below: VisibleHalf | null;
  onSeen: (half: "above" | "below", seen: VisibleHalf | null) => void;
  hovered: string;
  onHover: (name: string) => void;
  onChoose: (name: string) => void;
  onMenu: (name: string, x: number, y: number) => void;
}

interface HalfProps extends Omit<
  SandwichProps,
  "name" | "callers" | "callees" | "failed" | "above" | "below" | "onSeen"
> {
  flame: Flame;
  /** null is all of it. */
  seen: VisibleHalf | null;
  onSeen: (seen: VisibleHalf | null) => void;
  label: string;
  isFlipped: boolean;
}

/** null if the search takes too long, as in the other views. */
function marksOf(flame: Flame, pattern: Pattern | null): SearchResult | null {
  try {
    return pattern && search(flame, pattern);
  } catch {
    return null;
  }
}

function Half({
  flame,
  label,
  colours,
  unit,
  palette,
  isFlipped,
  pattern,
  seen,
  onSeen,
  hovered,
  onHover,
  onChoose,
  onMenu,
}: HalfProps) {
  const [cursor, setCursor] = useState(1);
  const marks = useMemo(() => marksOf(flame, pattern), [flame, pattern]);
  const nameOf = (node: number) => flame.frames.name(flame.frame[node]);
  const stand = Math.min(cursor, flame.nodeCount - 1);
  /** The node that the user moved to, so that it need not be searched by its hash. */
  const moved = useRef<{ flame: Flame; hash: string; node: number } | null>(null);
  const findNode = (hash: string) =>
    moved.current?.flame === flame && moved.current.hash === hash
      ? moved.current.node
      : findByPathHash(flame, hash);
  // A path that does not exist here, of another function or grouping, means all of it.
  const found = useMemo(() => (seen ? findNode(seen.zoom) : -1), [flame, seen?.zoom]);
  const zoom = Math.max(1, found);
  const see = (at: number, window: VisiblePart | null) => {
    const node = Math.max(1, at);
    const hash = pathHash(flame, node);
    moved.current = { flame, hash, node };
    onSeen(node > 1 || window ? { zoom: hash, window } : null);
  };
  return (
    <section class="sandwich-half" aria-label={label} data-function={nameOf(stand)}>
      <h3>{label}</h3>
      <Icicle
        flame={flame}
        colours={colours}
        unit={unit}
        palette={palette}
        isFlipped={isFlipped}
        hasMinimap={false}
        hasRoot={false}
        zoom={Math.min(zoom, flame.nodeCount - 1)}
        part={found > 0 ? seen!.window : null}
        cursorId={`${label.toLowerCase()}-cursor`}
        marks={marks}
        cursor={stand}
        onCursor={setCursor}
        onZoom={(node) => node > 1 && onChoose(nameOf(node))}
        onPart={see}
        hovered={hovered}
        onHover={(node) => onHover(node > 0 ? nameOf(node) : "")}
        onMenu={(node, x, y) => node > 0 && onMenu(nameOf(node), x, y)}
      />
    </section>
  );
}

function Sandwich({
  name,
  callers,
  callees,
  failed,
  above,
  below,
  onSeen,
  ...rest
}: SandwichProps) {
  if (!name)
    return (
      <div class="sandwich-empty">
        <p>Select a function in any view to see its callers above and its callees below.</p>
      </div>
    );
  if (failed) return <ProblemView {...failed} />;
  if (!callers || !callees) return <Loading label="Looking for callers and callees" />;
  if (callees.nodeCount <= 1)
    return (
      <div class="sandwich-empty">
        <p>
          <bdi>{name}</bdi> is not in this view. It may be in another sample type or grouping, or a
          rule removes it.
        </p>
      </div>
    );
  return (
    <div class="sandwich">
      <Half
        {...rest}
        key={`callers of ${name}`}
        flame={callers}
        label="Callers"
        isFlipped
        seen={above}
        onSeen={(seen) => onSeen("above", seen)}
      />
      <Half
        {...rest}
        key={`callees of ${name}`}
        flame={callees}
        label="Callees"
        isFlipped={false}
        seen={below}
        onSeen={(seen) => onSeen("below", seen)}
      />
    </div>
  );
}

/** If it is the only pane, a table is shown beside it to choose a function. */
export function SandwichPane(props: PaneProps) {
  const {
    state,
    callers,
    callees,
    failed,
    colours,
    unit,
    palette,
    pattern,
    hovered,
    onHoverName,
    update,
    openMenu,
  } = props.context;
  const sandwich = (
    <Sandwich
      {...{ callers, callees, failed, colours, unit, palette, hovered }}
      onHover={onHoverName}
      name={state.marked}
      pattern={pattern}
      above={state.above}
      below={state.below}
      onSeen={(half, seen) => update({ [half]: seen }, "replace")}
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
