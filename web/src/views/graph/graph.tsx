/*
 * graph: the call graph: a box for each function, and a line for each call whose width is its
 * value. It has as many functions as can be read; the bar above states what is left out, and a list
 * below contains the same as text.
 *
 *   arrows       follow the heaviest call, or go to the box at the side
 *   Space, click mark the function in every view
 *   Enter, double click   focus on the stacks with it
 */
import { useMemo, useRef, useState } from "preact/hooks";
import { countedAs } from "../../model/functions/functions.ts";
import { formatCount, formatPercent, formatValue } from "../../model/text/units.ts";
import { graphSizes } from "../../view_state.ts";
import { asProblem, IconButton, Loading, ProblemView, Select } from "../../ui/kit.tsx";
import { addStyle } from "../../ui/later.tsx";
import { LabelFitter } from "../icicle/label_fitter.ts";
import { boxesOf, neighboursOf, type Picture } from "./graph_box.ts";
import { GraphCamera } from "./graph_camera.ts";
import type { PaneProps } from "../panes.tsx";
import { useGraph } from "./use_graph.ts";
import { Drawing } from "./graph_drawing.tsx";
import { GraphList } from "./graph_list.tsx";
import style from "./graph.css?text";

addStyle(style);

/** The page's font at the size for which boxes are measured. */
function measurer(): CanvasRenderingContext2D | null {
  const context = document.createElement("canvas").getContext("2d");
  if (context) context.font = `600 13px ${getComputedStyle(document.body).fontFamily}`;
  return context;
}

function whatIsShown(
  { flame, graph: { nodes, edges, functionCount, edgeCount, share, least } }: Picture,
  unit: string,
): string {
  const { part } = flame.bounds;
  const why =
    least > 0 && nodes.length < functionCount
      ? `. The others have less than ${formatValue(least, unit)} each`
      : "";
  return (
    `${nodes.length} of ${countedAs(flame, functionCount)}, ${part}` +
    `${formatPercent(share, 1)} of the total shown; ${edges.length} of ${part}` +
    `${formatCount(edgeCount)} calls${why}`
  );
}

export function GraphPane({ context }: PaneProps) {
  const { state, flame, unit, update } = context;
  const camera = useRef<GraphCamera | null>(null);
  const { picture, isCurrent, problem, retry } = useGraph(flame, state.graphNodes, (graph) => {
    const canvas = measurer();
    return boxesOf(
      flame,
      graph,
      unit,
      canvas && new LabelFitter(canvas),
      (text) => canvas?.measureText(text).width ?? 7 * text.length,
    );
  });
  const around = useMemo(() => (picture ? neighboursOf(picture.graph) : []), [picture]);
  const [isListed, setListed] = useState(false);
  if (problem) return <ProblemView problem={asProblem(problem)} onRetry={retry} />;
  if (!picture) return <Loading label="Drawing the call graph" />;
  return (
    <div class={`graph ${isCurrent ? "" : "stale"}`} aria-busy={!isCurrent}>
      <div class="graph-bar">
        <Select
          label="Functions shown"
          value={String(state.graphNodes)}
          choices={graphSizes.map((count) => ({
            value: String(count),
            label: `up to ${count} functions`,
          }))}
          onChange={(value) => update({ graphNodes: Number(value) })}
        />
        <span class="graph-zoom">
          <IconButton
            icon="minus"
            label="Zoom out (-)"
            onClick={() => camera.current?.zoomBy(0.8)}
          />
          <IconButton
            icon="plus"
            label="Zoom in (+)"
            onClick={() => camera.current?.zoomBy(1.25)}
          />
          <IconButton
            icon="fit"
            label="Show everything (0)"
            onClick={() => camera.current?.fit()}
          />
        </span>
        <span class="graph-note" role="status">
          {whatIsShown(picture, unit)}
        </span>
      </div>
      <Drawing {...{ context, picture, around, camera }} />
      <details class="graph-list" onToggle={(event) => setListed(event.currentTarget.open)}>
        <summary>Show as a list</summary>
        {isListed && (
          <GraphList {...{ picture, around, unit }} onChoose={(name) => update({ marked: name })} />
        )}
      </details>
    </div>
  );
}
