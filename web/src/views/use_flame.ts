/* use_flame: the tree that a view shows: loaded, then filtered by the rules beside the page. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Problem } from "../api.ts";
import { formatChain, type Rule } from "../model/chain.ts";
import type { Flame } from "../model/flame.ts";
import { joinFunctions, listFunctions, type FunctionRow, type FunctionSums } from "../model/functions.ts";
import { transformer, TransformError, type Transformed } from "../transformer.ts";
import { asProblem } from "../ui/kit.tsx";

export type LoadRows = (signal: AbortSignal) => Promise<FunctionSums[]>;

type Loaded = { flame: Flame; key: string };

/** The tree for a key; the last one stays while the next is under way. */
export function useFlame(key: string, load: (signal: AbortSignal) => Promise<Flame>) {
  const [loaded, setLoaded] = useState<Loaded | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [attempt, setAttempt] = useState(0);
  const cache = useRef(new Map<string, Flame>());
  useEffect(() => {
    setProblem(null);
    const known = cache.current.get(key);
    if (known) return setLoaded({ flame: known, key });
    const abort = new AbortController();
    load(abort.signal).then(
      (flame) => {
        if (cache.current.size >= 4) cache.current.delete(cache.current.keys().next().value!);
        cache.current.set(key, flame);
        if (abort.signal.aborted) return; // another was asked for since
        setLoaded({ flame, key });
      },
      (error) => {
        if (!abort.signal.aborted) setProblem(asProblem(error));
      },
    );
    return () => abort.abort();
  }, [key, attempt]);
  return { flame: loaded?.flame ?? null, isCurrent: loaded?.key === key, problem, retry: () => setAttempt(attempt + 1) };
}

/**
 * The table's rows: from the tree, or from the server where the tree was cut and lacks some.
 * Counted only when they are wanted.
 */
export function useRows(flame: Flame | null, isWanted: boolean, hasRules: boolean, loadRows: LoadRows): { rows: FunctionRow[]; problem: Problem | null } {
  // With rules the tree counts, even where it was cut: the server does not know all of the rules.
  const isOwn = flame !== null && (!flame.isCut || hasRules);
  const own = useMemo(() => (isOwn && isWanted ? listFunctions(flame) : null), [flame, isOwn, isWanted]);
  const [loaded, setLoaded] = useState<{ flame: Flame; rows: FunctionRow[] } | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  useEffect(() => {
    if (!flame || isOwn || !isWanted) return;
    const abort = new AbortController();
    setProblem(null);
    loadRows(abort.signal).then(
      (sums) => setLoaded({ flame, rows: joinFunctions(flame, sums) }),
      (error) => abort.signal.aborted || setProblem(asProblem(error)),
    );
    return () => abort.abort();
  }, [flame, isOwn, isWanted]);
  return { rows: own ?? (loaded?.flame === flame ? loaded.rows : []), problem };
}

export interface Shown {
  /** What the rules left; null until the first time it is there. */
  flame: Flame | null;
  callers: Flame | null;
  callees: Flame | null;
  isCurrent: boolean;
  error: TransformError | null;
}

/** Percentages of what is there, in place of the whole profile. */
function ofItself(flame: Flame): Flame {
  return { ...flame, total: flame.cum[0], baseTotal: flame.baseCum ? flame.baseCum[0] : 0 };
}

/**
 * The tree after the rules, and around one function when its name is given. The last one stays while
 * the next is made, and when it cannot be made.
 */
export function useTransformed(source: Flame | null, rules: readonly Rule[], around: string, isOfFiltered: boolean): Shown {
  const active = rules.filter((rule) => !rule.isOff);
  const key = `${around}\n${formatChain(active)}`;
  const [made, setMade] = useState<{ source: Flame; key: string; result: Transformed } | null>(null);
  const [failed, setFailed] = useState<{ source: Flame; key: string; error: TransformError } | null>(null);
  const isPlain = active.length === 0 && around === "";
  useEffect(() => {
    if (!source || isPlain) return;
    let isLeft = false;
    transformer.request({ flame: source, rules: active, around }).then(
      (result) => !isLeft && setMade({ source, key, result }),
      (error) => {
        if (isLeft || (error instanceof DOMException && error.name === "AbortError")) return;
        setFailed({ source, key, error: error instanceof TransformError ? error : new TransformError(String(error), -1) });
      },
    );
    return () => void (isLeft = true);
  }, [source, key]);

  const error = failed && failed.source === source && failed.key === key ? failed.error : null;
  const last = made && made.source === source ? made : null;
  const tree = isPlain ? source : last ? last.result.flame : error || active.length === 0 ? source : null;
  const flame = useMemo(() => (tree && isOfFiltered ? ofItself(tree) : tree), [tree, isOfFiltered]);
  const isAround = last?.key === key && around !== "";
  return {
    flame,
    callers: isAround ? last.result.callers : null,
    callees: isAround ? last.result.callees : null,
    isCurrent: isPlain || last?.key === key || error !== null,
    error,
  };
}
