/* use_graph: the layout of a call graph, counted and laid out in graph_worker.ts. */
import { useEffect, useState } from "preact/hooks";
import type { GraphReply, GraphRequest } from "../../workers/graph_worker.ts";
import type { CallGraph } from "../../model/functions/call_graph.ts";
import { sizeOf } from "../../model/functions/call_pair.ts";
import { FrameFlag, type Columns, type Flame } from "../../model/tree/flame.ts";
import { groupFrames } from "../../model/functions/functions.ts";
import type { Layout, Size } from "../../model/functions/graph_layout.ts";
import { startWorker } from "../../workers/start_worker.ts";

interface Job {
  resolve: (reply: GraphReply) => void;
  reject: (error: Error) => void;
}
type Body<T> = T extends { id: number } ? Omit<T, "id"> : never;

class GraphWorker {
  private worker: Worker | null = null;
  private readonly jobs = new Map<number, Job>();
  private lastId = 0;
  /** The tree that the worker holds. */
  private tree: Columns["frame"] | null = null;

  private send(request: Body<GraphRequest>): Promise<GraphReply> {
    this.worker ??= this.start();
    const id = ++this.lastId;
    return new Promise((resolve, reject) => {
      this.jobs.set(id, { resolve, reject });
      this.worker!.postMessage({ id, ...request });
    });
  }

  private start(): Worker {
    const worker = startWorker("perfolio-graph-worker");
    worker.addEventListener("message", ({ data }: MessageEvent<GraphReply>) => {
      const job = this.jobs.get(data.id);
      this.jobs.delete(data.id);
      if ("error" in data) job?.reject(new Error(data.error));
      else job?.resolve(data);
    });
    worker.addEventListener("error", () => {
      worker.terminate();
      this.worker = null;
      this.tree = null;
      for (const { reject } of this.jobs.values())
        reject(new Error("The browser stopped drawing the graph. There may not be enough memory."));
      this.jobs.clear();
    });
    return worker;
  }

  async count(flame: Flame, mostNodes: number): Promise<CallGraph> {
    const isHeld = this.tree === flame.frame;
    this.tree = flame.frame;
    let reply;
    try {
      reply = await this.send(isHeld ? { mostNodes } : { mostNodes, tree: treeOf(flame) });
    } catch (error) {
      this.tree = null; // the tree did not arrive
      throw error;
    }
    if (!("graph" in reply)) throw new Error("The browser could not compute the graph. Try again.");
    return reply.graph;
  }

  async layout(graph: CallGraph, sizes: Size[]): Promise<Layout> {
    const most = Math.max(...graph.nodes.map((node) => sizeOf(node.cum)), 1);
    const reply = await this.send({
      sizes,
      wires: graph.edges.map(({ from, to, sum }) => ({ from, to, weight: sizeOf(sum) / most })),
    });
    if (!("layout" in reply)) throw new Error("The browser could not draw the graph. Try again.");
    return reply.layout;
  }
}

function treeOf(flame: Flame) {
  const { frame, parentDelta, self, baseSelf } = flame;
  const { groupOf, first } = groupFrames(flame);
  const isOther = Uint8Array.from(first, (at) =>
    flame.frames.flags(at) & (FrameFlag.Other | FrameFlag.Label) ? 1 : 0,
  );
  return { columns: { frame, parentDelta, self, baseSelf }, groups: { groupOf, isOther } };
}

const worker = new GraphWorker();

export interface GraphPicture<Box extends { size: Size }> {
  flame: Flame;
  graph: CallGraph;
  boxes: Box[];
  layout: Layout;
}

/** The last picture stays while the next one is computed. */
export function useGraph<Box extends { size: Size }>(
  flame: Flame,
  mostNodes: number,
  makeBoxes: (graph: CallGraph) => Box[],
) {
  const [made, setMade] = useState<{ picture: GraphPicture<Box>; mostNodes: number } | null>(null);
  const [problem, setProblem] = useState<unknown>(null);
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    let isLeft = false;
    setProblem(null);
    const make = async () => {
      const graph = await worker.count(flame, mostNodes);
      if (isLeft) return;
      const boxes = makeBoxes(graph);
      const layout = await worker.layout(
        graph,
        boxes.map((box) => box.size),
      );
      if (!isLeft) setMade({ picture: { flame, graph, boxes, layout }, mostNodes });
    };
    make().catch((error) => isLeft || setProblem(error));
    return () => void (isLeft = true);
  }, [flame, mostNodes, attempt]);
  return {
    picture: made?.picture ?? null,
    isCurrent: made?.picture.flame === flame && made.mostNodes === mostNodes,
    problem,
    retry: () => setAttempt(attempt + 1),
  };
}
