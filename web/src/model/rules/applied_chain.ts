/*
 * applied_chain: a tree with the intermediate result of each rule of the last chain, so that adding
 * a rule costs one rule.
 */
import { sameRule, type Rule } from "./chain.ts";
import type { Columns, Flame } from "../tree/flame.ts";
import { applyRule } from "./transform.ts";

/** The maximum number of nodes in all kept trees, up to 96 MB: a node takes 14 to 24 bytes. */
const maxKeptNodes = 4e6;

export class RuleError extends Error {
  constructor(
    readonly rule: number,
    cause: unknown,
  ) {
    super(cause instanceof Error ? cause.message : String(cause));
  }
}

export class AppliedChain {
  /** tree: null if it was dropped to free memory. */
  private readonly steps: { rule: Rule; tree: Columns | null }[] = [];

  constructor(
    readonly flame: Flame,
    private readonly maxNodes = maxKeptNodes,
  ) {}

  /** Throws a RuleError. */
  apply(rules: readonly Rule[]): Columns {
    const { steps, flame } = this;
    let known = 0;
    while (
      known < steps.length &&
      known < rules.length &&
      sameRule(steps[known].rule, rules[known])
    )
      known++;
    steps.length = known;
    while (known > 0 && !steps[known - 1].tree) known--;
    let tree: Columns = known ? steps[known - 1].tree! : flame;
    for (let i = known; i < rules.length; i++) {
      try {
        tree = applyRule(tree, flame.frames, rules[i]);
      } catch (error) {
        throw new RuleError(i, error);
      }
      steps[i] = { rule: rules[i], tree };
      this.dropOldTrees();
    }
    return tree;
  }

  /** The number of nodes in all trees that are kept. */
  get nodeCount(): number {
    return this.steps.reduce((sum, { tree }) => sum + (tree?.frame.length ?? 0), 0);
  }

  /**
   * Drops the oldest trees if they exceed the limit. The last tree is shown, and the one before it
   * is the input of the rule that is being typed.
   */
  private dropOldTrees(): void {
    for (let i = 0; i < this.steps.length - 2 && this.nodeCount > this.maxNodes; i++)
      this.steps[i].tree = null;
  }
}
