/* graph_list: the call graph as a table, which contains the same as the picture. */
import type { CallEdge } from "../../model/functions/call_graph.ts";
import type { Flame } from "../../model/tree/flame.ts";
import { type Around, pairText, type Picture } from "./graph_box.ts";

function Calls({
  flame,
  edges,
  nameOf,
  unit,
}: {
  flame: Flame;
  edges: readonly CallEdge[];
  nameOf: (edge: CallEdge) => string;
  unit: string;
}) {
  return (
    <ul>
      {edges.map((edge) => (
        <li key={nameOf(edge)}>
          <bdi>{nameOf(edge)}</bdi> <em>{pairText(flame, edge.sum, unit)}</em>
        </li>
      ))}
    </ul>
  );
}

export function GraphList({
  picture,
  around,
  unit,
  onChoose,
}: {
  picture: Picture;
  around: Around;
  unit: string;
  onChoose: (name: string) => void;
}) {
  const { flame, graph, boxes } = picture;
  return (
    <table>
      <thead>
        <tr>
          {["Function", "Total", "Self", "Callers", "Callees"].map((head) => (
            <th scope="col" key={head}>
              {head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {graph.nodes.map((node, i) => (
          <tr key={i}>
            <th scope="row">
              <button
                type="button"
                data-function={boxes[i].name}
                onClick={() => onChoose(boxes[i].name)}
              >
                <bdi>{boxes[i].name}</bdi>
              </button>
            </th>
            <td>{pairText(flame, node.cum, unit)}</td>
            <td>{pairText(flame, node.flat, unit)}</td>
            <td>
              <Calls
                {...{ flame, unit }}
                edges={around[i].callers}
                nameOf={(edge) => boxes[edge.from].name}
              />
            </td>
            <td>
              <Calls
                {...{ flame, unit }}
                edges={around[i].callees}
                nameOf={(edge) => boxes[edge.to].name}
              />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
