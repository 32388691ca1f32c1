/* stack_rules: what of a view's rules chooses samples, as the server takes it: focus, ignore and labels. What other rules do is the tree's alone. */
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

/** "of stacks with a, without b"; "" where all are meant. */
export function describeStackRules({ labels, focus, ignore }: StackRules): string {
  const parts = [
    ...focus.map((text) => `with ${text}`),
    ...ignore.map((text) => `without ${text}`),
    ...labels,
  ];
  return parts.length ? `Only stacks ${parts.join(", ")}` : "";
}
