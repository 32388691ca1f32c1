/*
 * rules_worker: applies rules to a tree beside the page, so that the page stays quick while a million nodes
 * are filtered. Holds one tree at a time, with what the rules of the last chain made of it. transformer.ts
 * is the other side.
 */
import "./worker_prelude.ts";
import { AppliedChain, RuleError } from "../model/applied_chain.ts";
import type { Rule } from "../model/chain.ts";
import { decodeFlame, derive, type Columns, type Derived } from "../model/flame.ts";
import { calleesOf, callersOf } from "../model/transform.ts";

export interface TransformRequest {
  id: number;
  /** Which tree; bytes come with the first request about it. */
  source: number;
  bytes?: ArrayBuffer;
  /** Only those that are switched on. */
  rules: Rule[];
  /** A function whose callers and callees are wanted too, or "". */
  around: string;
}

export interface TransformedTree {
  columns: Columns;
  derived: Derived;
}

export type TransformReply =
  /** tree: what the rules left, null without rules; around: callers, callees. */
  | { id: number; tree: TransformedTree | null; around: TransformedTree[] }
  /** rule: position of the one that could not be applied, -1 for another cause. */
  | { id: number; error: string; rule: number };

/** Nothing is under rules any more: what they made may go. */
export type Rest = "rest";

let held: { source: number; chain: AppliedChain } | null = null;

const finish = (columns: Columns): TransformedTree => ({ columns, derived: derive(columns) });

function answer(request: TransformRequest): {
  tree: TransformedTree | null;
  around: TransformedTree[];
} {
  if (request.bytes) {
    held = null; // its memory is needed
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

/** The derived arrays are the page's from now on; the columns are copied, since the chain holds them. */
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
    const made = answer(event.data);
    moved = transferable([made.tree, ...made.around]);
    reply = { id, ...made };
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    reply = { id, error: text, rule: error instanceof RuleError ? error.rule : -1 };
  }
  postMessage(reply, { transfer: moved });
});
