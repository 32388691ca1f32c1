/* use_filters: changes of rules and label filters, with undo and redo. */
import { useEffect, useRef } from "preact/hooks";
import type { Action, Rule } from "../model/rules/chain.ts";
import { cleanLabelRules } from "../model/rules/labels.ts";
import { exactPattern } from "../model/search/escape_regex.ts";
import { keyOf, Undo, type Filters } from "../model/rules/undo.ts";
import type { Update } from "../view_state.ts";
import { showMessage } from "../ui/kit.tsx";

export function useFilters({ rules, labels }: Filters, update: Update) {
  const filters: Filters = { rules, labels };
  const undone = useRef<Undo | null>(null);
  useEffect(() => {
    if (undone.current) undone.current.follow(filters);
    else undone.current = new Undo(filters);
  }, [keyOf(filters)]);
  const setFilters = (changed: Partial<Filters>) => {
    undone.current?.push({ ...filters, ...changed });
    // the opened part of the tree may not contain samples with the new labels
    update("labels" in changed ? { ...changed, root: "" } : changed);
  };
  const setRules = (rules: readonly Rule[]) => setFilters({ rules });
  return {
    setRules,
    setLabels: (labels: readonly string[]) => setFilters({ labels: cleanLabelRules(labels) }),
    clear: () => setFilters({ rules: [], labels: [] }),
    addRule: (action: Action, name: string) =>
      name && setRules([...rules, { action, text: exactPattern(name), isOff: false }]),
    step: (way: "undo" | "redo") => {
      const other = undone.current?.[way]();
      if (!other) return showMessage(`There is nothing to ${way}`);
      update(
        keyOf({ ...other, rules: [] }) === keyOf({ ...filters, rules: [] })
          ? other
          : { ...other, root: "" },
      );
    },
  };
}
