/*
 * use_selection: loads the data of one selection: the types in its window, its values over time,
 * and those of the marked range, which are requested separately because the steps of the window are
 * too long to compute the averages of a range from them.
 */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Problem } from "../api/api.ts";
import { getRange, listTypes, type ProfileType, type Range } from "../api/explore_api.ts";
import { windowOf, type QueryRequest, type Selection } from "../model/continuous/explore_state.ts";
import type { StackRules } from "../model/rules/stack_rules.ts";
import { asProblem } from "../ui/kit.tsx";

export interface Loaded<Value> {
  /** The previous value stays while the next one loads. */
  value: Value | null;
  isCurrent: boolean;
  problem: Problem | null;
  retry: () => void;
}

/** Loads the value for a key; nothing is loaded for null and "". */
export function useLoaded<Value>(
  key: string | null,
  load: (signal: AbortSignal) => Promise<Value>,
): Loaded<Value> {
  const [loaded, setLoaded] = useState<{ value: Value; key: string } | null>(null);
  const [failed, setFailed] = useState<{ problem: Problem; key: string } | null>(null);
  const [attempt, setAttempt] = useState(0);
  const latest = useRef(load);
  latest.current = load;
  useEffect(() => {
    if (!key) return;
    setFailed(null);
    const abort = new AbortController();
    latest.current(abort.signal).then(
      (value) => abort.signal.aborted || setLoaded({ value, key }),
      (error) => abort.signal.aborted || setFailed({ problem: asProblem(error), key }),
    );
    return () => abort.abort();
  }, [key, attempt]);
  return {
    value: loaded?.value ?? null,
    isCurrent: Boolean(key) && loaded?.key === key,
    problem: failed && failed.key === key ? failed.problem : null,
    retry: () => setAttempt(attempt + 1),
  };
}

export interface Known {
  window: QueryRequest;
  types: Loaded<ProfileType[]>;
  range: Loaded<Range>;
  /** The values in the marked range; nothing is loaded if no range is marked. */
  part: Loaded<Range>;
  /** The server's error for the query, or a note that the window lacks the type; otherwise "". */
  queryError: string;
}

/** null: there is no such selection. */
export function useSelection(
  selection: Selection | null,
  by: readonly string[],
  rules: StackRules,
  nowMs: number,
): Known | null {
  const window = selection && windowOf(selection, nowMs);
  // A refresh also reloads windows with fixed times.
  const spanKey = window && `${nowMs}\n${window.from}\n${window.to}`;
  const types = useLoaded(spanKey, (signal) => listTypes(window!, signal));
  const range = useLoaded(
    window?.query ? [spanKey, window.query, JSON.stringify([by, rules])].join("\n") : null,
    (signal) => getRange(window!, by, rules, signal),
  );
  const marked = selection?.part ?? null;
  const part = useLoaded(
    window?.query && marked
      ? [spanKey, window.query, JSON.stringify([by, rules, marked])].join("\n")
      : null,
    (signal) => getRange({ ...window!, ...marked! }, by, rules, signal),
  );
  if (!window) return null;
  const isOfQuery =
    range.problem?.status === 404 ||
    (range.problem?.status === 400 && range.problem.detail.startsWith("query: "));
  return { window, types, range, part, queryError: isOfQuery ? range.problem!.detail : "" };
}
