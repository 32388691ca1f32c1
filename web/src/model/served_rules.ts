/*
 * served_rules: which rules the server applies where a tree was cut: the page would miss what was merged into "other" boxes.
 * Those at the chain's begin that mean the same to both; where the server draws a link it cuts the chain there, too (api/view_state.h).
 */
import type { Rule } from "./chain.ts";
import type { Bounds, Flame } from "./flame.ts";
import { maxLabelRules } from "./labels.ts";

/** Each a list of expressions; in whatever order they hold, the result is the same. */
export type ServedRules = Record<"focus" | "ignore" | "hide" | "show", string[]>;
/** Beside a tree: the paths of now of what was seen above and below the function in focus before addresses had names. */
export type Asked = ServedRules & Partial<Record<"above" | "below", string[]>>;

const groupsByFrame = ["function", "line", "address"];

/** Focus and ignore look at whole stacks, so none that stands behind a hide or show is served. All rules are switched on. */
export function splitRules(rules: readonly Rule[], group: string, labelCount: number): { served: readonly Rule[]; rest: readonly Rule[] } {
  let count = 0;
  let isHidden = false;
  if (groupsByFrame.includes(group))
    for (const { action } of rules) {
      const isLookup = action === "focus" || action === "ignore";
      if (count + labelCount >= maxLabelRules || (isLookup ? isHidden : action !== "hide" && action !== "show")) break;
      isHidden ||= !isLookup;
      count++;
    }
  return { served: rules.slice(0, count), rest: rules.slice(count) };
}

export function servedRules(rules: readonly Rule[]): ServedRules {
  const textsOf = (wanted: Rule["action"]) => rules.filter(({ action }) => action === wanted).map(({ text }) => text);
  return { focus: textsOf("focus"), ignore: textsOf("ignore"), hide: textsOf("hide"), show: textsOf("show") };
}

/**
 * What rules that the page applied to a cut tree make of its numbers: stacks in "other" boxes that would pass a focus are
 * missing, those that would not pass an ignore are still there.
 */
export function boundsAfter(flame: Flame, rules: readonly Rule[]): Bounds {
  if (!flame.isCut || rules.length === 0) return flame.bounds;
  const does = (...actions: Rule["action"][]) => rules.some(({ action }) => actions.includes(action));
  const part = does("ignore") ? "≈ " : flame.bounds.part;
  const whole = does("ignore", "hide", "only") ? "≈ " : does("focus", "show") ? flame.bounds.part : "";
  return { node: part, part, whole };
}
