/*
 * worker: applies rules to a tree beside the page, so that the page stays quick while a million nodes
 * are filtered. Holds one tree at a time, with what each rule of the last chain made of it, so that
 * one more rule costs one rule. transformer.ts is the other side.
 */
import "./everywhere.ts";
import { sameRule, type Rule } from "./model/chain.ts";
import { decodeFlame, derive, type Columns, type Derived, type Flame } from "./model/flame.ts";
import { applyRule, calleesOf, callersOf } from "./model/transform.ts";

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

let held: { source: number; flame: Flame } | null = null;
let steps: { rule: Rule; tree: Columns }[] = [];

class RuleError extends Error {
  constructor(readonly rule: number, cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause));
  }
}

function applyChain(flame: Flame, rules: readonly Rule[]): Columns {
  let known = 0;
  while (known < steps.length && known < rules.length && sameRule(steps[known].rule, rules[known])) known++;
  steps.length = known;
  let tree: Columns = known ? steps[known - 1].tree : flame;
  for (let i = known; i < rules.length; i++) {
    try {
      tree = applyRule(tree, flame.frames, rules[i]);
    } catch (error) {
      throw new RuleError(i, error);
    }
    steps.push({ rule: rules[i], tree });
  }
  return tree;
}

const finish = (columns: Columns): TransformedTree => ({ columns, derived: derive(columns) });

function answer(request: TransformRequest): { tree: TransformedTree | null; around: TransformedTree[] } {
  if (request.bytes) {
    held = { source: request.source, flame: decodeFlame(request.bytes) };
    steps = [];
  }
  if (held?.source !== request.source) throw new Error("The tree is no longer at hand: reload the page.");
  const { flame } = held;
  const { frame, parentDelta, self, baseSelf } = applyChain(flame, request.rules);
  const tree = { frame, parentDelta, self, baseSelf };
  const makers = request.around ? [callersOf, calleesOf] : [];
  return {
    tree: request.rules.length ? finish(tree) : null,
    around: makers.map((make) => finish(make(tree, flame.frames, request.around))),
  };
}

/** The derived arrays are the page's from now on; the columns are copied, since steps holds them. */
function transferable(trees: readonly (TransformedTree | null)[]): ArrayBuffer[] {
  const buffers = new Set<ArrayBuffer>();
  for (const tree of trees)
    for (const value of Object.values(tree?.derived ?? {})) if (ArrayBuffer.isView(value)) buffers.add(value.buffer as ArrayBuffer);
  return [...buffers];
}

addEventListener("message", (event: MessageEvent<TransformRequest>) => {
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
