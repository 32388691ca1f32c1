/*
 * sandwich: one function with all its callers above and all it calls below, from wherever it stands in
 * the tree. Recursion counts once: only the outermost of its frames is looked from.
 */
import { useMemo, useState } from "preact/hooks";
import type { Flame } from "../model/flame.ts";
import type { FrameColours } from "../model/frame_colours.ts";
import type { Pattern } from "../model/regex.ts";
import { search, type SearchResult } from "../model/search.ts";
import type { Part } from "../model/window.ts";
import { Loading } from "../ui/kit.tsx";
import { Icicle } from "./icicle.tsx";
import type { Look } from "./icicle_draw.ts";
import type { PaneProps } from "./panes.tsx";
import { TablePane } from "./table.tsx";

interface SandwichProps {
  name: string;
  callers: Flame | null;
  callees: Flame | null;
  colours: FrameColours;
  unit: string;
  palette: Look;
  pattern: Pattern | null;
  hovered: string;
  onHover: (name: string) => void;
  onChoose: (name: string) => void;
  onMenu: (name: string, x: number, y: number) => void;
}

interface HalfProps extends Omit<SandwichProps, "name" | "callers" | "callees"> {
  flame: Flame;
  label: string;
  isFlipped: boolean;
}

/** None where the search takes too long, as in the other views. */
function marksOf(flame: Flame, pattern: Pattern | null): SearchResult | null {
  try {
    return pattern && search(flame, pattern);
  } catch {
    return null;
  }
}

function Half({ flame, label, colours, unit, palette, isFlipped, pattern, hovered, onHover, onChoose, onMenu }: HalfProps) {
  const [cursor, setCursor] = useState(1);
  const marks = useMemo(() => marksOf(flame, pattern), [flame, pattern]);
  const nameOf = (node: number) => flame.frames.name(flame.frame[node]);
  const [seen, setSeen] = useState<{ node: number; part: Part | null }>({ node: 1, part: null });
  return (
    <section class="sandwich-half" aria-label={label}>
      <h3>{label}</h3>
      <Icicle
        flame={flame}
        colours={colours}
        unit={unit}
        palette={palette}
        isFlipped={isFlipped}
        hasMinimap={false}
        hasRoot={false}
        zoom={Math.min(seen.node, flame.nodeCount - 1)}
        part={seen.part}
        cursorId={`${label.toLowerCase()}-cursor`}
        marks={marks}
        cursor={Math.min(cursor, flame.nodeCount - 1)}
        onCursor={setCursor}
        onZoom={(node) => node > 1 && onChoose(nameOf(node))}
        onPart={(node, part) => setSeen({ node, part })}
        hovered={hovered}
        onHover={(node) => onHover(node > 0 ? nameOf(node) : "")}
        onMenu={(node, x, y) => node > 0 && onMenu(nameOf(node), x, y)}
      />
    </section>
  );
}

function Sandwich({ name, callers, callees, ...rest }: SandwichProps) {
  if (!name)
    return (
      <div class="sandwich-empty">
        <p>Choose a function in the table: its callers stand above it here, what it calls below.</p>
      </div>
    );
  if (!callers || !callees) return <Loading label="Looking for callers and callees" />;
  if (callees.nodeCount <= 1)
    return (
      <div class="sandwich-empty">
        <p>
          <bdi>{name}</bdi> is not in what is shown here. It may be in another sample type or grouping, or a rule has taken it out.
        </p>
      </div>
    );
  return (
    <div class="sandwich">
      <Half {...rest} key={`callers of ${name}`} flame={callers} label="Callers" isFlipped />
      <Half {...rest} key={`callees of ${name}`} flame={callees} label="Callees" isFlipped={false} />
    </div>
  );
}

/** Alone it has the table at its side, to choose a function from. */
export function SandwichPane(props: PaneProps) {
  const { state, callers, callees, colours, unit, palette, pattern, hovered, onHoverName, update, openMenu } = props.context;
  const sandwich = (
    <Sandwich
      {...{ callers, callees, colours, unit, palette, hovered }}
      onHover={onHoverName}
      name={state.marked}
      pattern={pattern}
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
