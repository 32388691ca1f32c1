/* graph_tip: the box or line under the pointer, and its tooltip. */
import { placeOf } from "../foot/describe.ts";
import { type Around, elidedText, pairText, type Picture } from "./graph_box.ts";

/** The index of a box or of a line. */
export type Pointed = { node: number } | { edge: number } | null;

export function pointedAt(target: EventTarget | null): Pointed {
  const group = (target as Element | null)?.closest<SVGGElement>("[data-node],[data-edge]");
  if (!group) return null;
  return group.dataset.node
    ? { node: Number(group.dataset.node) }
    : { edge: Number(group.dataset.edge) };
}

function Facts({ facts }: { facts: [string, string][] }) {
  return (
    <dl class="tip-facts">
      {facts.map(([label, value]) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

export function Tip({
  picture,
  around,
  pointed,
  unit,
}: {
  picture: Picture;
  around: Around;
  pointed: NonNullable<Pointed>;
  unit: string;
}) {
  const { flame, graph, boxes } = picture;
  if ("edge" in pointed) {
    const edge = graph.edges[pointed.edge];
    const elided = elidedText(flame, edge, unit);
    const facts: [string, string][] = [["Calls", pairText(flame, edge.sum, unit)]];
    if (elided) facts.push(["Through functions left out", elided]);
    return (
      <>
        <strong class="tip-name">
          {boxes[edge.from].name} → {boxes[edge.to].name}
        </strong>
        <Facts facts={facts} />
      </>
    );
  }
  const node = graph.nodes[pointed.node];
  const { name, frame } = boxes[pointed.node];
  const { callers, callees } = around[pointed.node];
  return (
    <>
      <strong class="tip-name">{name}</strong>
      <Facts
        facts={[
          ["Total", pairText(flame, node.cum, unit)],
          ["Self", pairText(flame, node.flat, unit)],
          ["Callers and callees shown", `${callers.length}, ${callees.length}`],
        ]}
      />
      {placeOf(flame, frame) && <span class="tip-place">{placeOf(flame, frame)}</span>}
    </>
  );
}
