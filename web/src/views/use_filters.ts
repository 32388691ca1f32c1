/* use_filters: rules and label filters as a reader changes them, with the way back. */
import { useEffect, useRef } from "preact/hooks";
import type { Action, Rule } from "../model/chain.ts";
import { cleanLabelRules } from "../model/labels.ts";
import { exactly } from "../model/escape_regex.ts";
import { keyOf, Undo, type Filters } from "../model/undo.ts";
import type { Update } from "../state.ts";
import { say } from "../ui/kit.tsx";

export function useFilters({ rules, labels }: Filters, update: Update) {
  const filters: Filters = { rules, labels };
  const undone = useRef<Undo | null>(null);
  useEffect(() => {
    if (undone.current) undone.current.follow(filters);
    else undone.current = new Undo(filters);
  }, [keyOf(filters)]);
  const setFilters = (changed: Partial<Filters>) => {
    undone.current?.push({ ...filters, ...changed });
    update("labels" in changed ? { ...changed, root: "" } : changed); // a part may be without such samples
  };
  const setRules = (rules: readonly Rule[]) => setFilters({ rules });
  return {
    setRules,
    setLabels: (labels: readonly string[]) => setFilters({ labels: cleanLabelRules(labels) }),
    clear: () => setFilters({ rules: [], labels: [] }),
    addRule: (action: Action, name: string) =>
      name && setRules([...rules, { action, text: exactly(name), isOff: false }]),
    step: (way: "undo" | "redo") => {
      const other = undone.current?.[way]();
      if (!other) return say(`There is nothing to ${way}`);
      update(
        keyOf({ ...other, rules: [] }) === keyOf({ ...filters, rules: [] })
          ? other
          : { ...other, root: "" },
      );
    },
  };
}
