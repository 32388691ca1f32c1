/* use_flame: loads the tree that a view shows and applies the page's rules to it in a worker. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Problem } from "../../api/api.ts";
import { formatChain, type Rule } from "../../model/rules/chain.ts";
import {
  boundsAfter,
  hasNoFunctions,
  servedRules,
  splitRules,
  type ServedRequest,
  type ServedRules,
} from "../../model/rules/served_rules.ts";
import type { Bounds, Flame } from "../../model/tree/flame.ts";
import {
  joinFunctions,
  listFunctions,
  type FunctionRow,
  type FunctionSums,
} from "../../model/functions/functions.ts";
import { mayNameAddress } from "../../model/search/escape_regex.ts";
import { transformer, TransformError, type Transformed } from "../../workers/transformer.ts";
import { asProblem } from "../../ui/kit.tsx";
import { useSearchCode } from "../controls/search_box.tsx";
import { isOfRoot } from "./use_root.ts";

/**
 * Loads the tree, optionally under rules, by another grouping or below a node. A page that cannot
 * do that ignores these parameters.
 */
export type Load = (
  signal: AbortSignal,
  rules?: ServedRequest,
  group?: string,
  root?: string,
) => Promise<Flame>;
export type LoadRows = (signal: AbortSignal, rules?: ServedRules) => Promise<FunctionSums[]>;

type Loaded = { flame: Flame; key: string };

/** The tree for a key, "" for none. The previous tree remains until the next one is loaded. */
function useFlame(key: string, load: (signal: AbortSignal) => Promise<Flame>) {
  const [loaded, setLoaded] = useState<Loaded | null>(null);
  const [failed, setFailed] = useState<{ problem: Problem; key: string } | null>(null);
  const [attempt, setAttempt] = useState(0);
  const cache = useRef(new Map<string, Flame>());
  useEffect(() => {
    setFailed(null);
    if (!key) return;
    const known = cache.current.get(key);
    if (known) return setLoaded({ flame: known, key });
    const abort = new AbortController();
    load(abort.signal).then(
      (flame) => {
        if (cache.current.size >= 4) cache.current.delete(cache.current.keys().next().value!);
        cache.current.set(key, flame);
        if (abort.signal.aborted) return; // a newer request replaced this one
        setLoaded({ flame, key });
      },
      (error) => {
        if (!abort.signal.aborted) setFailed({ problem: asProblem(error), key });
      },
    );
    return () => abort.abort();
  }, [key, attempt]);
  const problem = failed?.key === key ? failed.problem : null;
  return {
    flame: loaded?.flame ?? null,
    isCurrent: loaded?.key === key,
    problem,
    retry: () => setAttempt(attempt + 1),
  };
}

/**
 * For each rule, whether it matches nothing in a tree without functions
 * (model/rules/served_rules.ts); [] if the grouping has functions, null until known.
 */
function useOfFunctions(
  flame: Flame | null,
  rules: readonly Rule[],
  group: string,
): readonly boolean[] | null {
  const isNeeded = flame !== null && hasNoFunctions(group) && rules.length > 0;
  const [code, problem] = useSearchCode(isNeeded);
  return useMemo(
    () =>
      isNeeded && code
        ? rules.map(({ text }) => code.namesNothing(flame, text))
        : isNeeded && !problem
          ? null
          : [],
    [isNeeded && flame, formatChain(rules), code, problem],
  );
}

/** The tree that rules are applied to here, and those rules. */
interface Source {
  flame: Flame;
  /** Rules that the server applied. */
  served: readonly Rule[];
  rest: readonly Rule[];
}

/**
 * Whether the page would apply these rules wrongly, because it knows only one place of each frame;
 * null until known.
 */
function useFindsShared(tree: Flame | null, rules: readonly Rule[]): boolean | null {
  const isNeeded = tree !== null && tree.frames.sharedPlaces !== null && rules.length > 0;
  const [code, problem] = useSearchCode(isNeeded);
  return useMemo(
    () => isNeeded && (code ? code.findSharedPlace(tree, rules) : problem ? true : null),
    [tree, formatChain(rules), code, problem],
  );
}

/**
 * The tree to which the page applies the remaining rules.
 *
 * Usually this is the whole tree. The server's tree under its rules, whose numbers are exact,
 * replaces it if the tree is truncated or if a rule refers to functions that the tree lacks, to
 * names from before symbolization, or to files and binaries that frames do not show. If that tree
 * cannot be loaded, the whole tree remains, provided that its numbers state their bounds. The
 * previous tree stays until the next one is loaded. A part opened under rules that remove frames
 * may not exist in the tree without them.
 */
export function useSource(
  flameKey: string,
  load: Load,
  rules: readonly Rule[],
  state: { group: string; labels: readonly string[] },
  isServed: boolean,
) {
  const active = rules.filter((rule) => !rule.isOff);
  const part = useFlame(`whole\n${flameKey}`, load);
  const isUnderRules =
    part.problem !== null &&
    isOfRoot(part.problem) &&
    active.some(({ action }) => action === "hide" || action === "show");
  const all = useFlame(isUnderRules ? `all\n${flameKey}` : "", (signal) =>
    load(signal, undefined, undefined, ""),
  );
  const whole = isUnderRules ? all : part;
  const tree = isServed && whole.isCurrent ? whole.flame : null;
  const ofFunctions = useOfFunctions(tree, active, state.group);
  const split =
    tree && ofFunctions
      ? splitRules(active, state.group, state.labels.length, ofFunctions)
      : { served: [], rest: active };
  const findsShared = useFindsShared(tree, split.served);
  // Only the server knows the former name of an address.
  const serverApplies =
    tree !== null &&
    ofFunctions !== null &&
    (tree.isCut ||
      findsShared ||
      ofFunctions.includes(true) ||
      (tree.metadata.named_later === true && active.some(({ text }) => mayNameAddress(text))));
  const { served, rest } = serverApplies ? split : { served: [], rest: active };
  const filtered = useFlame(served.length ? `${flameKey}\n${formatChain(served)}` : "", (signal) =>
    load(signal, servedRules(served)),
  );
  const problem = whole.problem ?? (findsShared || isUnderRules ? filtered.problem : null);
  const last = useRef<Source | null>(null);
  const isCurrent =
    whole.isCurrent &&
    findsShared !== null &&
    ofFunctions !== null &&
    !problem &&
    (served.length === 0 || filtered.problem !== null || filtered.isCurrent);
  if (isCurrent) {
    const isFiltered = served.length > 0 && filtered.isCurrent;
    last.current = isFiltered
      ? { flame: filtered.flame!, served, rest }
      : { flame: whole.flame!, served: [], rest: active };
  }
  return {
    source: last.current,
    isCurrent,
    problem,
    retry: (isUnderRules || whole.problem ? part : filtered).retry,
  };
}

/**
 * The table's rows: from the tree, or from the server if the tree is truncated. Counted only if a
 * pane needs them.
 */
export function useRows(
  flame: Flame | null,
  isNeeded: boolean,
  source: Source | null,
  loadRows: LoadRows,
) {
  // Under rules that the server does not know, the rows are counted from the tree even if it is
  // truncated.
  const isOwn = flame !== null && (!flame.isCut || source === null || source.rest.length > 0);
  const own = useMemo(
    () => (isOwn && isNeeded ? listFunctions(flame) : null),
    [flame, isOwn, isNeeded],
  );
  const [loaded, setLoaded] = useState<{ flame: Flame; rows: FunctionRow[] } | null>(null);
  const [failed, setFailed] = useState<{ flame: Flame; problem: Problem } | null>(null);
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    if (!flame || !source || isOwn || !isNeeded) return;
    const abort = new AbortController();
    setFailed(null);
    loadRows(abort.signal, servedRules(source.served)).then(
      (sums) => setLoaded({ flame, rows: joinFunctions(flame, sums) }),
      (error) => abort.signal.aborted || setFailed({ flame, problem: asProblem(error) }),
    );
    return () => abort.abort();
  }, [flame, isOwn, isNeeded, attempt]);
  const rows: FunctionRow[] = own ?? (loaded?.flame === flame ? loaded.rows : []);
  const isAwaiting = isNeeded && !own && loaded?.flame !== flame;
  const problem = isAwaiting && failed?.flame === flame ? failed.problem : null;
  return {
    rows,
    isAwaiting,
    bound: own && flame ? flame.bounds.part : ("" as const),
    failed: problem && { problem, onRetry: () => setAttempt(attempt + 1) },
  };
}

export interface Shown {
  /** The tree after the rules, and the tree before them; null until first computed. */
  flame: Flame | null;
  source: Flame | null;
  callers: Flame | null;
  callees: Flame | null;
  isCurrent: boolean;
  error: TransformError | null;
  retry: () => void;
}

/** The tree with percentages of itself instead of the whole profile. */
function ofItself(flame: Flame): Flame {
  return { ...flame, total: flame.cum[0], baseTotal: flame.baseCum ? flame.baseCum[0] : 0 };
}

/**
 * A node of the trees around a function sums all its places, so its numbers have the bounds of a
 * sum.
 */
function bounded({ flame, callers, callees }: Transformed, bounds: Bounds): Transformed {
  const around = { ...bounds, node: bounds.part };
  return {
    flame: bounds === flame.bounds ? flame : { ...flame, bounds },
    callers: callers && { ...callers, bounds: around },
    callees: callees && { ...callees, bounds: around },
  };
}

/**
 * The tree after the rules, and the trees around one function if its name is given. The previous
 * result stays until the next one is computed, and if that fails.
 */
export function useTransformed(
  source: Flame | null,
  rules: readonly Rule[],
  around: string,
  isOfFiltered: boolean,
): Shown {
  const active = rules.filter((rule) => !rule.isOff);
  const key = `${around}\n${formatChain(active)}`;
  const [made, setMade] = useState<{ source: Flame; key: string; result: Transformed } | null>(
    null,
  );
  const [failed, setFailed] = useState<{
    source: Flame;
    key: string;
    error: TransformError;
  } | null>(null);
  const [attempt, setAttempt] = useState(0);
  const isPlain = active.length === 0 && around === "";
  useEffect(() => {
    if (isPlain) return transformer.release();
    if (!source) return;
    let isLeft = false;
    transformer.request({ flame: source, rules: active, around }).then(
      (result) =>
        !isLeft && setMade({ source, key, result: bounded(result, boundsAfter(source, active)) }),
      (error) => {
        if (isLeft || (error instanceof DOMException && error.name === "AbortError")) return;
        setFailed({
          source,
          key,
          error: error instanceof TransformError ? error : new TransformError(String(error), -1),
        });
      },
    );
    return () => void (isLeft = true);
  }, [source, key, attempt]);

  const error = failed && failed.source === source && failed.key === key ? failed.error : null;
  const last = made && made.source === source ? made : null;
  const tree = isPlain
    ? source
    : last
      ? last.result.flame
      : error || active.length === 0
        ? source
        : null;
  // While the first result is computed, the last shown tree stays, together with its source.
  const seen = useRef<{ source: Flame; tree: Flame } | null>(null);
  if (source && tree) seen.current = { source, tree };
  const stays = source ? seen.current : null;
  const flame = useMemo(
    () => (stays && isOfFiltered ? ofItself(stays.tree) : (stays?.tree ?? null)),
    [stays?.tree, isOfFiltered],
  );
  const isAround = last?.key === key && around !== "";
  return {
    flame,
    source: stays?.source ?? null,
    callers: isAround ? last.result.callers : null,
    callees: isAround ? last.result.callees : null,
    isCurrent: isPlain || last?.key === key || error !== null,
    error,
    retry: () => {
      setFailed(null);
      setAttempt(attempt + 1);
    },
  };
}
