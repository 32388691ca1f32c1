/* graph_node: the box of a function in the call graph. */
import { type Around, type Picture, smallFontPx, spokenBox } from "./graph_box.ts";
import type { PaneContext } from "../panes.tsx";

interface NodeProps {
  context: PaneContext;
  picture: Picture;
  around: Around;
  index: number;
  /** Index into the palette's fills. */
  fill: number;
  hasCursor: boolean;
  isMatch: boolean;
  onFocus: () => void;
}

/** The box of a function, and its name and numbers. */
export function GraphNode(props: NodeProps) {
  const { context, picture, around, index, fill, hasCursor, isMatch, onFocus } = props;
  const { state, unit, palette, hovered } = context;
  const { flame, graph, boxes, layout } = picture;
  const box = boxes[index];
  const [x, y] = layout.places[index];
  const [width, height] = box.size;
  return (
    <>
      <g
        class={
          `graph-node ${box.name === state.marked ? "marked" : ""} ` +
          `${box.name === hovered ? "lit" : ""} ${isMatch ? "match" : ""}`
        }
        data-node={index}
        data-function={box.name}
        role="button"
        tabIndex={hasCursor ? 0 : -1}
        aria-pressed={box.name === state.marked}
        aria-label={spokenBox(flame, graph.nodes[index], box.name, around[index], unit)}
        transform={`translate(${x - width / 2} ${y - height / 2})`}
        onFocus={onFocus}
      >
        <rect width={width} height={height} rx="6" fill={palette.fills[fill]} />
      </g>
      <g class="graph-label" aria-hidden="true" fill={palette.inks[fill]}>
        <text x={x} y={y - height / 2 + box.fontPx + 5} font-size={box.fontPx} font-weight="600">
          {box.lines[0]}
        </text>
        <text x={x} y={y + height / 2 - 9} font-size={smallFontPx}>
          {box.lines[1]}
        </text>
      </g>
    </>
  );
}
