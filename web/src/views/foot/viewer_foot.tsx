/*
 * viewer_foot: the lines below the panes: the frame under the pointer, the legend, and notes on the
 * tree.
 */
import { useMemo, useState } from "preact/hooks";
import { unknownRules } from "../../model/rules/chain.ts";
import type { Flame } from "../../model/tree/flame.ts";
import type { FrameColours } from "../../model/colours/frame_colours.ts";
import { countedAs, countFunctions } from "../../model/functions/functions.ts";
import type { SearchResult } from "../../model/search/search.ts";
import { shownName } from "../../model/text/visible_text_model.ts";
import { stateVersion, unknownSettings, type ViewState } from "../../view_state.ts";
import { Button } from "../../ui/kit.tsx";
import type { usePalette } from "../../ui/theme.ts";
import { describeNode } from "./describe.ts";
import { notesAbout, totalText } from "./flame_notes.ts";
import { Legend } from "./legend.tsx";
import type { PaneContext } from "../panes.tsx";
import { shareText } from "../controls/search_box.tsx";

function DetailLine({
  flame,
  node,
  unit,
  placed,
}: {
  flame: Flame;
  node: number;
  unit: string;
  placed: PaneContext["placed"];
}) {
  const { name, place, notes, facts } = describeNode(flame, node, unit);
  return (
    <div class="detail">
      <strong title={name} aria-hidden="true">
        {name}
      </strong>
      {facts.map(([label, value]) => (
        <span key={label} class="fact" aria-hidden="true">
          <em>{label}</em> {value}
        </span>
      ))}
      <span class="detail-place" title={place}>
        {place && placed(flame.frame[node], place)}
        {place && notes.length > 0 && " · "}
        {notes.join(" · ")}
      </span>
    </div>
  );
}

interface ViewerFootProps {
  flame: Flame;
  colours: FrameColours;
  palette: ReturnType<typeof usePalette>;
  unit: string;
  placed: PaneContext["placed"];
  state: ViewState;
  /** The marked function in the tree. */
  marked: SearchResult | null;
  /** The described node; -1: none. */
  pointed: number;
  /** The zoomed frame of the link was not found. */
  isLost: boolean;
  /** The part that the link opens was not found. */
  isRootLost: boolean;
  /** A former name in the link has more current names than are searched. */
  isRenamedCut: boolean;
  onUnmark: () => void;
}

export function ViewerFoot({
  flame,
  colours,
  palette,
  unit,
  placed,
  state,
  marked,
  pointed,
  isLost,
  isRootLost,
  isRenamedCut,
  onUnmark,
}: ViewerFootProps) {
  const functionCount = useMemo(() => countFunctions(flame), [flame]);
  const notes = useMemo(() => notesAbout(flame), [flame]);
  const [leftOut] = useState(() =>
    unknownRules(new URLSearchParams(location.search).get("x") ?? ""),
  );
  const [settings] = useState(() => unknownSettings(location.search));
  return (
    <footer class="viewer-foot">
      {pointed >= 0 && (
        <DetailLine
          flame={flame}
          node={Math.min(pointed, flame.nodeCount - 1)}
          {...{ unit, placed }}
        />
      )}
      <div class="foot-line">
        {[state.view, state.beside].some(
          (view) => view && !["labels", "comments"].includes(view),
        ) && <Legend flame={flame} colours={colours} palette={palette} />}
        <span class="foot-end">
          {state.marked && (
            <Button
              class="marked"
              icon="close"
              onClick={onUnmark}
              title={`Stop marking ${state.marked}`}
            >
              <bdi class="marked-name">{shownName(state.marked)}</bdi>
              {marked ? ` ${shareText(flame, marked)}` : ""}
            </Button>
          )}
          {leftOut > 0 && (
            <span class="note">
              {leftOut === 1 ? "A rule" : `${leftOut} rules`} of the link{" "}
              {leftOut === 1 ? "is" : "are"} not supported by this version.
            </span>
          )}
          {settings.length > 0 && (
            <span class="note">
              Not supported by this version and removed from the link: {settings.join(", ")}.
            </span>
          )}
          {state.version > stateVersion && (
            <span class="note">
              The link is from a later version: part of it may not be supported here.
            </span>
          )}
          {isLost && (
            <span class="note">The frame that the link zooms to is not in this tree.</span>
          )}
          {isRootLost && (
            <span class="note">
              The part that the link opens is not in this profile, so all of it is shown.
            </span>
          )}
          {isRenamedCut && (
            <span class="note">
              Only the first 100 functions that the link names by their former names are shown.
            </span>
          )}
          {notes.map((note) => (
            <span class="note" key={note}>
              {note}
            </span>
          ))}
          <span class="foot-total">
            {totalText(flame, unit)} in {countedAs(flame, functionCount)}
          </span>
        </span>
      </div>
    </footer>
  );
}
