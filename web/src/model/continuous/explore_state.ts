/*
 * explore_state: the parameters of the page of continuous profiles in the address bar. The view has
 * its own parameters (view_state.ts) and keeps unknown ones.
 *
 *   ev=1   query=<profile type and matchers>   part=<ms>-<ms>
 *   from=, until=<now, now-1h or ms since 1970>
 *   only=<label>=<value> of the chosen series, once for each label   by=<label>, once for each
 *   profile=<id of a single profile>   list=1
 *   aquery=, afrom=, auntil=, apart=, aonly= the same for the baseline of a comparison
 *
 * `ev` is the version of this grammar, as `sv` is that of the view. A link without it was written
 * by hand.
 */
import { narrow } from "./selector.ts";
import { resolveWindow, type Span } from "./time_window.ts";

const exploreVersion = 1;

/** A query in a window, or in a part of the window. */
export interface Selection {
  query: string;
  from: string;
  until: string;
  /** A part of the window, in ms; null is the whole window. */
  part: Span | null;
  /** The labels of one series of the graph. */
  only: readonly (readonly [string, string])[];
}

export interface ExploreState {
  selection: Selection;
  /** The baseline of a comparison; null for none. */
  baseline: Selection | null;
  by: readonly string[];
  profile: string;
  hasList: boolean;
}

export type Pairs = readonly (readonly [string, string])[];

export const defaultSelection: Selection = {
  query: "",
  from: "now-1h",
  until: "now",
  part: null,
  only: [],
};

const fields = ["query", "from", "until", "part", "only"];
const known = new Set([
  "ev",
  "by",
  "profile",
  "list",
  ...fields,
  ...fields.map((field) => "a" + field),
]);
const maxGroups = 8;

function parsePart(text: string | undefined): Span | null {
  const found = /^(\d{1,15})-(\d{1,15})$/.exec(text ?? "");
  if (!found) return null;
  const [from, to] = [Number(found[1]), Number(found[2])];
  return from < to ? { from, to } : null;
}

function parseSelection(get: (name: string) => string[]): Selection {
  const [query = "", from = defaultSelection.from, until = defaultSelection.until, part] = fields
    .slice(0, 4)
    .map((field) => get(field)[0]);
  const only = get("only").flatMap((text) => {
    const at = text.indexOf("=");
    return at > 0 ? [[text.slice(0, at), text.slice(at + 1)] as const] : [];
  });
  return { query, from, until, part: parsePart(part), only };
}

export function parseExplore(pairs: Pairs): ExploreState {
  const get = (name: string) => pairs.filter(([one]) => one === name).map(([, value]) => value);
  return {
    selection: parseSelection(get),
    baseline: get("aquery").length ? parseSelection((field) => get("a" + field)) : null,
    by: [...new Set(get("by").filter(Boolean))].slice(0, maxGroups),
    profile: get("profile")[0] ?? "",
    hasList: get("list")[0] === "1",
  };
}

function formatSelection(
  { query, from, until, part, only }: Selection,
  prefix: string,
): [string, string][] {
  const pairs: [string, string][] = [];
  const add = (field: string, value: string) => pairs.push([prefix + field, value]);
  if (query || prefix) add("query", query);
  if (from !== defaultSelection.from) add("from", from);
  if (until !== defaultSelection.until) add("until", until);
  if (part) add("part", `${part.from}-${part.to}`);
  for (const [name, value] of only) add("only", `${name}=${value}`);
  return pairs;
}

/** The state as pairs for an address; `others` are pairs of other grammars, which are kept. */
export function formatExplore(state: ExploreState, others: Pairs = []): [string, string][] {
  const own = [
    ...formatSelection(state.selection, ""),
    ...(state.baseline ? formatSelection(state.baseline, "a") : []),
    ...state.by.map((name): [string, string] => ["by", name]),
  ];
  if (state.profile) own.push(["profile", state.profile]);
  if (state.hasList) own.push(["list", "1"]);
  if (own.length) own.unshift(["ev", String(exploreVersion)]);
  return [
    ...own,
    ...others
      .filter(([name]) => !known.has(name))
      .map(([name, value]): [string, string] => [name, value]),
  ];
}

/** The request to the server: the chosen series in the chosen part, in ms. */
export interface QueryRequest extends Span {
  query: string;
}

export function windowOf(selection: Selection, nowMs: number): QueryRequest {
  return { query: selection.query, ...resolveWindow(selection.from, selection.until, nowMs) };
}

export function requestOf(selection: Selection, nowMs: number): QueryRequest {
  return {
    ...windowOf(selection, nowMs),
    ...selection.part,
    query: narrow(selection.query, selection.only),
  };
}

/** Replaces "now" by the current time, so that a link shows the same window later. */
export function pinned(state: ExploreState, nowMs: number): ExploreState {
  const pin = (selection: Selection): Selection => {
    const { from, to } = windowOf(selection, nowMs);
    return { ...selection, from: String(from), until: String(to) };
  };
  return {
    ...state,
    selection: pin(state.selection),
    baseline: state.baseline && pin(state.baseline),
  };
}

/**
 * The default comparison: the halves of the window, the earlier one before, the later one after.
 */
export function halves(
  selection: Selection,
  nowMs: number,
): { selection: Selection; baseline: Selection } {
  const whole = selection.part ?? windowOf(selection, nowMs);
  const middle = Math.round((whole.from + whole.to) / 2);
  return {
    baseline: { ...selection, part: { from: whole.from, to: middle } },
    selection: { ...selection, part: { from: middle, to: whole.to } },
  };
}
