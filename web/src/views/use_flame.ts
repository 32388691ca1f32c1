/* use_flame: the tree that a view shows: loaded, then filtered by the rules beside the page. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Problem } from "../api/api.ts";
import { formatChain, type Rule } from "../model/chain.ts";
import { boundsAfter, hasNoFunctions, servedRules, splitRules, type Asked, type ServedRules } from "../model/served_rules.ts";
import type { Bounds, Flame } from "../model/flame.ts";
import { joinFunctions, listFunctions, type FunctionRow, type FunctionSums } from "../model/functions.ts";
import { isOfAddress } from "../model/old_names.ts";
import { transformer, TransformError, type Transformed } from "../workers/transformer.ts";
import { asProblem } from "../ui/kit.tsx";
import { useSearchCode } from "./search_box.tsx";
import { isOfRoot } from "./use_root.ts";

/** What is loaded may be asked for under rules, all of it by another group, and below a node; a page that cannot do that gives a Load without those parameters. */
export type Load = (signal: AbortSignal, rules?: Asked, group?: string, root?: string) => Promise<Flame>;
export type LoadRows = (signal: AbortSignal, rules?: ServedRules) => Promise<FunctionSums[]>;

type Loaded = { flame: Flame; key: string };

/** The tree for a key, "" for none; the last one stays while the next is under way. */
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
        if (abort.signal.aborted) return; // another was asked for since
        setLoaded({ flame, key });
      },
      (error) => {
        if (!abort.signal.aborted) setFailed({ problem: asProblem(error), key });
      },
    );
    return () => abort.abort();
  }, [key, attempt]);
  const problem = failed?.key === key ? failed.problem : null;
  return { flame: loaded?.flame ?? null, isCurrent: loaded?.key === key, problem, retry: () => setAttempt(attempt + 1) };
}

/** Of each rule, whether it names nothing in a tree that has no functions (model/served_rules.ts); null until that is known. */
function useOfFunctions(flame: Flame | null, rules: readonly Rule[], group: string): readonly boolean[] | null {
  const isWanted = flame !== null && hasNoFunctions(group) && rules.length > 0;
  const [code, problem] = useSearchCode(isWanted);
  return useMemo(() => (isWanted && code ? rules.map(({ text }) => code.namesNothing(flame, text)) : isWanted && !problem ? null : []), [isWanted && flame, formatChain(rules), code, problem]);
}

/** The tree that rules are applied to here, and those rules. */
interface Source {
  flame: Flame;
  /** That the server applied. */
  served: readonly Rule[];
  rest: readonly Rule[];
}

/** Would the page, which knows one place of each frame, apply these rules wrongly? null until it is known. */
function useFindsShared(tree: Flame | null, rules: readonly Rule[]): boolean | null {
  const isWanted = tree !== null && tree.frames.sharedPlaces !== null && rules.length > 0;
  const [code, problem] = useSearchCode(isWanted);
  return useMemo(() => isWanted && (code ? code.findSharedPlace(tree, rules) : problem ? true : null), [tree, formatChain(rules), code, problem]);
}

/**
 * The whole tree; where it was cut, or a rule is of functions that it does not have, of before addresses had names, or of files
 * and binaries that its frames do not tell of, the server's tree under those rules that it knows, whose numbers are exact. Where
 * the server does not give that, the whole if its numbers say what they may lack. The last one stays while the next is under way.
 * A part that was opened under rules that take out frames may be below no node of the tree without them.
 */
export function useSource(flameKey: string, load: Load, rules: readonly Rule[], state: { group: string; labels: readonly string[] }, isServed: boolean) {
  const active = rules.filter((rule) => !rule.isOff);
  const part = useFlame(`whole\n${flameKey}`, load);
  const isUnderRules = part.problem !== null && isOfRoot(part.problem) && active.some(({ action }) => action === "hide" || action === "show");
  const all = useFlame(isUnderRules ? `all\n${flameKey}` : "", (signal) => load(signal, undefined, undefined, ""));
  const whole = isUnderRules ? all : part;
  const tree = isServed && whole.isCurrent ? whole.flame : null;
  const ofFunctions = useOfFunctions(tree, active, state.group);
  const split = tree && ofFunctions ? splitRules(active, state.group, state.labels.length, ofFunctions) : { served: [], rest: active };
  const findsShared = useFindsShared(tree, split.served);
  // What an address was called before it had a name, the server knows alone.
  const isAsked = tree !== null && ofFunctions !== null && (tree.isCut || findsShared || ofFunctions.includes(true) || (tree.metadata.named_later === true && active.some(({ text }) => isOfAddress(text))));
  const { served, rest } = isAsked ? split : { served: [], rest: active };
  const filtered = useFlame(served.length ? `${flameKey}\n${formatChain(served)}` : "", (signal) => load(signal, servedRules(served)));
  const problem = whole.problem ?? (findsShared || isUnderRules ? filtered.problem : null);
  const last = useRef<Source | null>(null);
  const isCurrent = whole.isCurrent && findsShared !== null && ofFunctions !== null && !problem && (served.length === 0 || filtered.problem !== null || filtered.isCurrent);
  if (isCurrent) {
    const isFiltered = served.length > 0 && filtered.isCurrent;
    last.current = isFiltered ? { flame: filtered.flame!, served, rest } : { flame: whole.flame!, served: [], rest: active };
  }
  return { source: last.current, isCurrent, problem, retry: (isUnderRules || whole.problem ? part : filtered).retry };
}

/**
 * The table's rows: from the tree, or from the server where the tree was cut and lacks some.
 * Counted only when they are wanted.
 */
export function useRows(flame: Flame | null, isWanted: boolean, source: Source | null, loadRows: LoadRows) {
  // With rules that the server does not know the tree counts, even where it was cut.
  const isOwn = flame !== null && (!flame.isCut || source === null || source.rest.length > 0);
  const own = useMemo(() => (isOwn && isWanted ? listFunctions(flame) : null), [flame, isOwn, isWanted]);
  const [loaded, setLoaded] = useState<{ flame: Flame; rows: FunctionRow[] } | null>(null);
  const [failed, setFailed] = useState<{ flame: Flame; problem: Problem } | null>(null);
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    if (!flame || !source || isOwn || !isWanted) return;
    const abort = new AbortController();
    setFailed(null);
    loadRows(abort.signal, servedRules(source.served)).then(
      (sums) => setLoaded({ flame, rows: joinFunctions(flame, sums) }),
      (error) => abort.signal.aborted || setFailed({ flame, problem: asProblem(error) }),
    );
    return () => abort.abort();
  }, [flame, isOwn, isWanted, attempt]);
  const rows: FunctionRow[] = own ?? (loaded?.flame === flame ? loaded.rows : []);
  const isAwaiting = isWanted && !own && loaded?.flame !== flame;
  const problem = isAwaiting && failed?.flame === flame ? failed.problem : null;
  return { rows, isAwaiting, bound: own && flame ? flame.bounds.part : ("" as const), failed: problem && { problem, onRetry: () => setAttempt(attempt + 1) } };
}

export interface Shown {
  /** What the rules left, and of which tree; null until the first time it is there. */
  flame: Flame | null;
  source: Flame | null;
  callers: Flame | null;
  callees: Flame | null;
  isCurrent: boolean;
  error: TransformError | null;
  retry: () => void;
}

/** Percentages of what is there, in place of the whole profile. */
function ofItself(flame: Flame): Flame {
  return { ...flame, total: flame.cum[0], baseTotal: flame.baseCum ? flame.baseCum[0] : 0 };
}

/** Around a function each node is of all its places. */
function bounded({ flame, callers, callees }: Transformed, bounds: Bounds): Transformed {
  const around = { ...bounds, node: bounds.part };
  return { flame: bounds === flame.bounds ? flame : { ...flame, bounds }, callers: callers && { ...callers, bounds: around }, callees: callees && { ...callees, bounds: around } };
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
  const [attempt, setAttempt] = useState(0);
  const isPlain = active.length === 0 && around === "";
  useEffect(() => {
    if (isPlain) return transformer.rest();
    if (!source) return;
    let isLeft = false;
    transformer.request({ flame: source, rules: active, around }).then(
      (result) => !isLeft && setMade({ source, key, result: bounded(result, boundsAfter(source, active)) }),
      (error) => {
        if (isLeft || (error instanceof DOMException && error.name === "AbortError")) return;
        setFailed({ source, key, error: error instanceof TransformError ? error : new TransformError(String(error), -1) });
      },
    );
    return () => void (isLeft = true);
  }, [source, key, attempt]);

  const error = failed && failed.source === source && failed.key === key ? failed.error : null;
  const last = made && made.source === source ? made : null;
  const tree = isPlain ? source : last ? last.result.flame : error || active.length === 0 ? source : null;
  // The first rule, or another tree under rules: what was seen last stays, with the tree that it was of.
  const seen = useRef<{ source: Flame; tree: Flame } | null>(null);
  if (source && tree) seen.current = { source, tree };
  const stays = source ? seen.current : null;
  const flame = useMemo(() => (stays && isOfFiltered ? ofItself(stays.tree) : (stays?.tree ?? null)), [stays?.tree, isOfFiltered]);
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
