/*
 * served_rules: which rules the server applies where the page cannot: of a tree that was cut it would miss what was merged into
 * "other" boxes, of a frame that is in several files or binaries it knows the first.
 * Those at the chain's begin that mean the same to both; where the server draws a link it cuts the chain there, too (api/report/viewer_url_state.h).
 * By file and binary a tree has no functions. There a rule that names nothing in it is of these, and the server's.
 */
import type { Rule } from "./chain.ts";
import type { Bounds, Flame } from "./flame.ts";
import { maxLabelRules } from "./labels.ts";

/** Each a list of expressions; in whatever order they hold, the result is the same. */
export type ServedRules = Record<"focus" | "ignore" | "hide" | "show", string[]>;
/** Beside a tree: the paths of now of what was seen above and below the function in focus before addresses had names. */
export type Asked = ServedRules & Partial<Record<"above" | "below", string[]>>;

const groupsByFrame = ["function", "line", "address"];

/** May the group have no frames that a rule of functions names? */
export const hasNoFunctions = (group: string): boolean => group === "file" || group === "binary";

/**
 * Focus and ignore look at whole stacks: none that stands behind a hide or show is served, and among themselves their order is
 * nothing. All rules are switched on; ofFunctions says of which, where the group has none.
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
 * What rules that the page applied to a cut tree make of its numbers: stacks in "other" boxes that would pass a focus are
 * missing, those that would not pass an ignore are still there.
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
