/*
 * served_rules: the rules that the server applies because the page cannot. A truncated tree lacks
 * the stacks that were merged into "other" boxes, and a frame with several files or binaries
 * contains only the first of them.
 *
 * These are the rules at the start of the chain that have the same meaning in the page and in the
 * server. Link previews of the server cut the chain at the same rule
 * (api/report/viewer_url_state.h). By file and binary, a tree has no functions: a rule that matches
 * nothing in such a tree is applied by the server too.
 */
import type { Rule } from "./chain.ts";
import type { Bounds, Flame } from "../tree/flame.ts";
import { maxLabelRules } from "./labels.ts";

/** Lists of expressions; the result does not depend on the order of applying them. */
export type ServedRules = Record<"focus" | "ignore" | "hide" | "show", string[]>;
/**
 * Requested with a tree: the current paths of frames that an old link names above and below the
 * focused function.
 */
export type ServedRequest = ServedRules & Partial<Record<"above" | "below", string[]>>;

const groupsByFrame = ["function", "line", "address"];

/** Whether the grouping has no frames of functions. */
export const hasNoFunctions = (group: string): boolean => group === "file" || group === "binary";

/**
 * Splits the chain into the rules that the server applies and the rest. Focus and ignore test whole
 * stacks: after a hide or show the server cannot apply them, and their order among themselves does
 * not matter. All rules must be active. ofFunctions: if the grouping has no functions, whether each
 * rule refers to functions.
 */
export function splitRules(
  rules: readonly Rule[],
  group: string,
  labelCount: number,
  ofFunctions: readonly boolean[] = [],
): { served: readonly Rule[]; rest: readonly Rule[] } {
  const served: Rule[] = [];
  const rest: Rule[] = [];
  let [mayLookUp, mayDrop] = [true, true];
  rules.forEach((rule, i) => {
    const isLookup = rule.action === "focus" || rule.action === "ignore";
    const isDrop = rule.action === "hide" || rule.action === "show";
    const isKnown = groupsByFrame.includes(group) || ofFunctions[i];
    if (
      isKnown &&
      served.length + labelCount < maxLabelRules &&
      ((isLookup && mayLookUp) || (isDrop && mayDrop))
    )
      served.push(rule);
    else {
      rest.push(rule);
      mayDrop = false;
    }
    mayLookUp &&= isLookup;
  });
  return { served, rest };
}

export function servedRules(rules: readonly Rule[]): ServedRules {
  const textsOf = (wanted: Rule["action"]) =>
    rules.filter(({ action }) => action === wanted).map(({ text }) => text);
  return {
    focus: textsOf("focus"),
    ignore: textsOf("ignore"),
    hide: textsOf("hide"),
    show: textsOf("show"),
  };
}

/**
 * The bounds of numbers after the page applied rules to a truncated tree: "other" boxes lack stacks
 * that match a focus and still contain stacks that match an ignore.
 */
export function boundsAfter(flame: Flame, rules: readonly Rule[]): Bounds {
  if (!flame.isCut || rules.length === 0) return flame.bounds;
  const does = (...actions: Rule["action"][]) =>
    rules.some(({ action }) => actions.includes(action));
  const part = does("ignore") ? "≈ " : flame.bounds.part;
  const whole = does("ignore", "hide", "only")
    ? "≈ "
    : does("focus", "show")
      ? flame.bounds.part
      : "";
  return { node: part, part, whole };
}
