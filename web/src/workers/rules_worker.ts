/*
 * rules_worker: applies rules to a tree outside the page's thread, so that the page stays
 * responsive while a million nodes are filtered. It holds one tree with the intermediate results of
 * the last chain. transformer.ts sends the requests.
 */
import "./worker_prelude.ts";
import { AppliedChain, RuleError } from "../model/rules/applied_chain.ts";
import type { Rule } from "../model/rules/chain.ts";
import { decodeFlame, derive, type Columns, type Derived } from "../model/tree/flame.ts";
import { calleesOf, callersOf } from "../model/rules/transform.ts";

export interface TransformRequest {
  id: number;
  /** Identifies the tree; bytes are sent with the first request about it. */
  source: number;
  bytes?: ArrayBuffer;
  /** Only active rules. */
  rules: Rule[];
  /** A function whose callers and callees are also needed, or "". */
  around: string;
}

export interface TransformedTree {
  columns: Columns;
  derived: Derived;
}

export type TransformReply =
  /** tree: after the rules, null without rules; around: callers, callees. */
  | { id: number; tree: TransformedTree | null; around: TransformedTree[] }
  /** rule: the index of the rule that could not be applied, -1 for another cause. */
  | { id: number; error: string; rule: number };

/** No rules are active any more: the intermediate results can be dropped. */
export type Rest = "rest";

let held: { source: number; chain: AppliedChain } | null = null;

const finish = (columns: Columns): TransformedTree => ({ columns, derived: derive(columns) });

function respond(request: TransformRequest): {
  tree: TransformedTree | null;
  around: TransformedTree[];
} {
  if (request.bytes) {
    held = null; // frees its memory
    held = { source: request.source, chain: new AppliedChain(decodeFlame(request.bytes)) };
  }
  if (held?.source !== request.source)
    throw new Error("The tree is no longer in memory. Reload the page.");
  const { flame } = held.chain;
  const { frame, parentDelta, self, baseSelf } = held.chain.apply(request.rules);
  const tree = { frame, parentDelta, self, baseSelf };
  const makers = request.around ? [callersOf, calleesOf] : [];
  return {
    tree: request.rules.length ? finish(tree) : null,
    around: makers.map((make) => finish(make(tree, flame.frames, request.around))),
  };
}

/**
 * The derived arrays are transferred to the page; the columns are copied, because the chain keeps
 * them.
 */
function transferable(trees: readonly (TransformedTree | null)[]): ArrayBuffer[] {
  const buffers = new Set<ArrayBuffer>();
  for (const tree of trees)
    for (const value of Object.values(tree?.derived ?? {}))
      if (ArrayBuffer.isView(value)) buffers.add(value.buffer as ArrayBuffer);
  return [...buffers];
}

addEventListener("message", (event: MessageEvent<TransformRequest | Rest>) => {
  if (event.data === "rest") {
    held?.chain.apply([]);
    return;
  }
  const { id } = event.data;
  let reply: TransformReply;
  let moved: ArrayBuffer[] = [];
  try {
    const made = respond(event.data);
    moved = transferable([made.tree, ...made.around]);
    reply = { id, ...made };
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    reply = { id, error: text, rule: error instanceof RuleError ? error.rule : -1 };
  }
  postMessage(reply, { transfer: moved });
});
