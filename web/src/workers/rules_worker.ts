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
  /**
   * tree: the tree after the rules; null without rules, because the page has that tree. around: the
   * trees of the callers and of the callees, or [] if none were requested.
   */
  | { id: number; tree: TransformedTree | null; around: TransformedTree[] }
  /** rule: the index of the rule that could not be applied, -1 for another cause. */
  | { id: number; error: string; rule: number };

/** No rules are active any more: the intermediate results can be dropped. */
export type Release = "release";

let held: { source: number; chain: AppliedChain } | null = null;

const finish = (columns: Columns): TransformedTree => ({ columns, derived: derive(columns) });

function compute(request: TransformRequest): {
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
 * The arrays that postMessage moves to the page: the derived ones. The columns are not among them
 * and are therefore copied, because the chain still needs them.
 */
function transferable(trees: readonly (TransformedTree | null)[]): ArrayBuffer[] {
  const buffers = new Set<ArrayBuffer>();
  for (const tree of trees)
    for (const value of Object.values(tree?.derived ?? {}))
      if (ArrayBuffer.isView(value)) buffers.add(value.buffer as ArrayBuffer);
  return [...buffers];
}

addEventListener("message", (event: MessageEvent<TransformRequest | Release>) => {
  if (event.data === "release") {
    held?.chain.apply([]);
    return;
  }
  const { id } = event.data;
  let reply: TransformReply;
  let moved: ArrayBuffer[] = [];
  try {
    const computed = compute(event.data);
    moved = transferable([computed.tree, ...computed.around]);
    reply = { id, ...computed };
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    reply = { id, error: text, rule: error instanceof RuleError ? error.rule : -1 };
  }
  postMessage(reply, { transfer: moved });
});
