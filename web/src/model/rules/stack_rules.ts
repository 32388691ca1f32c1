/*
 * stack_rules: the rules of a view that select samples on the server: focus, ignore and labels.
 * Other rules change only the tree.
 */
import type { Rule } from "./chain.ts";

export const textsOf = (rules: readonly Rule[], action: "focus" | "ignore"): string[] =>
  rules
    .filter((rule) => !rule.isOff && rule.action === action && rule.text !== "")
    .map((rule) => rule.text);

export interface StackRules {
  labels: readonly string[];
  focus: readonly string[];
  ignore: readonly string[];
}

export const stackRulesOf = ({
  rules,
  labels,
}: {
  rules: readonly Rule[];
  labels: readonly string[];
}): StackRules => ({
  labels,
  focus: textsOf(rules, "focus"),
  ignore: textsOf(rules, "ignore"),
});

/** "Only stacks with a, without b"; "" for all stacks. */
export function describeStackRules({ labels, focus, ignore }: StackRules): string {
  const parts = [
    ...focus.map((text) => `with ${text}`),
    ...ignore.map((text) => `without ${text}`),
    ...labels,
  ];
  return parts.length ? `Only stacks ${parts.join(", ")}` : "";
}
