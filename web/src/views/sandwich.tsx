/*
 * sandwich: one function with all its callers above and all it calls below, from wherever it stands in
 * the tree. Recursion counts once: only the outermost of its frames is looked from.
 */
import { useState } from "preact/hooks";
import type { Flame } from "../model/flame.ts";
import type { FrameColours } from "../model/frame_colours.ts";
import type { SearchResult } from "../model/search.ts";
import type { Part } from "../model/window.ts";
import { Loading } from "../ui/kit.tsx";
import { Icicle } from "./icicle.tsx";

interface SandwichProps {
  name: string;
  callers: Flame | null;
  callees: Flame | null;
  colours: FrameColours;
  unit: string;
  isDark: boolean;
  search: (flame: Flame) => SearchResult | null;
  onChoose: (name: string) => void;
  onMenu: (name: string, x: number, y: number) => void;
}

interface HalfProps extends Omit<SandwichProps, "name" | "callers" | "callees"> {
  flame: Flame;
  label: string;
  isFlipped: boolean;
}

function Half({ flame, label, colours, unit, isDark, isFlipped, search, onChoose, onMenu }: HalfProps) {
  const [cursor, setCursor] = useState(1);
  const nameOf = (node: number) => flame.frames.name(flame.frame[node]);
  const [seen, setSeen] = useState<{ node: number; part: Part | null }>({ node: 1, part: null });
  return (
    <section class="sandwich-half" aria-label={label}>
      <h3>{label}</h3>
      <Icicle
        flame={flame}
        colours={colours}
        unit={unit}
        isDark={isDark}
        isFlipped={isFlipped}
        hasMinimap={false}
        zoom={Math.min(seen.node, flame.nodeCount - 1)}
        part={seen.part}
        cursorId={`${label.toLowerCase()}-cursor`}
        marks={search(flame)}
        cursor={Math.min(cursor, flame.nodeCount - 1)}
        onCursor={setCursor}
        onZoom={(node) => node > 1 && onChoose(nameOf(node))}
        onPart={(node, part) => setSeen({ node, part })}
        onHover={() => {}}
        onMenu={(node, x, y) => node > 0 && onMenu(nameOf(node), x, y)}
      />
    </section>
  );
}

export function Sandwich({ name, callers, callees, ...rest }: SandwichProps) {
  if (!name)
    return (
      <div class="sandwich-empty">
        <p>Choose a function in the table: its callers stand above it here, what it calls below.</p>
      </div>
    );
  if (!callers || !callees) return <Loading label="Looking for callers and callees" />;
  return (
    <div class="sandwich">
      <Half {...rest} key={`callers of ${name}`} flame={callers} label="Callers" isFlipped />
      <Half {...rest} key={`callees of ${name}`} flame={callees} label="Callees" isFlipped={false} />
    </div>
  );
}
