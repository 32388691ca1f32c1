/*
 * transformer: the page's side of rules_worker.ts. One request runs at a time; of the waiting
 * requests only the newest is sent, so that typing a rule does not queue outdated work.
 */
import type { Rule } from "../model/rules/chain.ts";
import { withTree, type Flame } from "../model/tree/flame.ts";
import { startWorker } from "./start_worker.ts";
import type { Release, TransformReply, TransformRequest } from "./rules_worker.ts";

/** A rule that could not be applied; `rule` is its position among the rules sent, or -1. */
export class TransformError extends Error {
  constructor(
    message: string,
    readonly rule: number,
  ) {
    super(message);
  }
}

export interface Wanted {
  flame: Flame;
  rules: readonly Rule[];
  around: string;
}

export interface Transformed {
  /** The tree after the rules; the tree itself without rules. */
  flame: Flame;
  /** The callers of the requested function, or null. */
  callers: Flame | null;
  callees: Flame | null;
}

interface Job {
  wanted: Wanted;
  resolve: (made: Transformed) => void;
  reject: (error: unknown) => void;
}

class Transformer {
  private worker: Worker | null = null;
  private lastId = 0;
  private running: Job | null = null;
  private waiting: Job | null = null;
  private readonly sources = new WeakMap<Flame, number>();
  private sourceCount = 0;
  private heldSource = 0;

  request(wanted: Wanted): Promise<Transformed> {
    return new Promise((resolve, reject) => {
      this.waiting?.reject(new DOMException("a newer request came", "AbortError"));
      this.waiting = { wanted, resolve, reject };
      if (!this.running) this.send();
    });
  }

  /** Notifies the worker that no rules are active, so that it frees its memory. */
  release(): void {
    this.worker?.postMessage("release" satisfies Release);
  }

  private send(): void {
    const job = this.waiting;
    if (!job) return;
    this.waiting = null;
    this.running = job;
    const { flame, rules, around } = job.wanted;
    let source = this.sources.get(flame);
    if (source === undefined) this.sources.set(flame, (source = ++this.sourceCount));
    const request: TransformRequest = { id: ++this.lastId, source, rules: [...rules], around };
    // The columns of a flame are views of the response that it was decoded from.
    if (this.heldSource !== source) request.bytes = flame.frame.buffer as ArrayBuffer;
    this.heldSource = source;
    try {
      this.start().postMessage(request);
    } catch {
      this.fail();
    }
  }

  private start(): Worker {
    if (this.worker) return this.worker;
    this.worker = startWorker("perfolio-worker");
    this.worker.addEventListener("message", (event: MessageEvent<TransformReply>) =>
      this.finish(event.data),
    );
    this.worker.addEventListener("error", () => this.fail());
    return this.worker;
  }

  private finish(reply: TransformReply): void {
    const job = this.running;
    if (!job || reply.id !== this.lastId) return;
    this.running = null;
    if ("error" in reply) {
      // the worker may not have stored the tree, so the next request sends it again
      if (reply.rule < 0) this.heldSource = 0;
      job.reject(new TransformError(reply.error, reply.rule));
    } else {
      const { flame } = job.wanted;
      const [made, callers, callees] = [reply.tree, reply.around[0], reply.around[1]].map((tree) =>
        tree ? withTree(flame, tree.columns, tree.derived) : null,
      );
      job.resolve({ flame: made ?? flame, callers, callees });
    }
    this.send();
  }

  private fail(): void {
    this.worker?.terminate();
    this.worker = null;
    this.heldSource = 0;
    this.running?.reject(
      new TransformError("The browser stopped the filter. There may not be enough memory.", -1),
    );
    this.running = null;
    this.send();
  }
}

export const transformer = new Transformer();
