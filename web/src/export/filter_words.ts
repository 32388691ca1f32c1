/* filter_words: which labels and rules a saved view was made under, in words: the file itself holds only what they left. */
import type { ViewState } from "../state.ts";
import { describeLabelRule } from "../model/labels.ts";
import { describeRule } from "../views/rules.tsx";

export function filterWords({ labels, rules }: Pick<ViewState, "labels" | "rules">): string[] {
  const active = rules.filter((rule) => !rule.isOff);
  return [...labels.map(describeLabelRule), ...active.map(describeRule)].map((words) =>
    words.filter(Boolean).join(" "),
  );
}
