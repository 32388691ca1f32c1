/*
 * graph_worker: counts and lays out call graphs outside the page's thread. It holds one tree, so a
 * request with another number of functions contains only that number. views/graph/use_graph.ts
 * sends the requests.
 */
import "./worker_prelude.ts";
import { callGraph, type CallGraph, type FrameGroups } from "../model/functions/call_graph.ts";
import type { Columns } from "../model/tree/flame.ts";
import { layoutGraph, type Layout, type Size, type Wire } from "../model/functions/graph_layout.ts";

export type GraphRequest =
  /** tree: sent with the first request about it. */
  | { id: number; mostNodes: number; tree?: { columns: Columns; groups: FrameGroups } }
  | { id: number; sizes: Size[]; wires: Wire[] };

export type GraphReply =
  { id: number; graph: CallGraph } | { id: number; layout: Layout } | { id: number; error: string };

let held: { columns: Columns; groups: FrameGroups } | null = null;

function respond(request: GraphRequest): GraphReply {
  const { id } = request;
  if ("sizes" in request) return { id, layout: layoutGraph(request.sizes, request.wires) };
  held = request.tree ?? held;
  if (!held) return { id, error: "The tree is no longer in memory. Reload the page." };
  return { id, graph: callGraph(held.columns, held.groups, request.mostNodes) };
}

addEventListener("message", (event: MessageEvent<GraphRequest>) => {
  let reply: GraphReply;
  try {
    reply = respond(event.data);
  } catch (error) {
    reply = { id: event.data.id, error: error instanceof Error ? error.message : String(error) };
  }
  postMessage(reply);
});
