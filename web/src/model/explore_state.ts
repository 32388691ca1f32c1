/*
 * explore_state: what the address bar says of the page of continuous profiles, beside the view's own (state.ts), which
 * carries these parameters along as it does all that it does not know.
 *
 *   ev=1   query=<profile type and matchers>   from=, until=<now, now-1h or ms since 1970>   part=<ms>-<ms>
 *   only=<label>=<value>, of the series that is chosen, once for each label   by=<label>, once for each
 *   profile=<id of a single one>   list=1
 *   aquery=, afrom=, auntil=, apart=, aonly= the same of what it is compared with
 *
 * `ev` is the version of this grammar, as `sv` is of the view's; without it, it is a link written by hand.
 */
import { narrow } from "./selector.ts";
import { resolveWindow, type Span } from "./moment.ts";

const exploreVersion = 1;

/** What is asked: a query in a window, or in a part of it. */
export interface Selection {
  query: string;
  from: string;
  until: string;
  /** Of the window, in ms; null is the whole. */
  part: Span | null;
  /** Labels of one series of the graph. */
  only: readonly (readonly [string, string])[];
}

export interface ExploreState {
  selection: Selection;
  /** What it is compared with; null for no comparison. */
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

/** As pairs for an address; others are those that are not of this grammar, which stay. */
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

/** What the server is asked: the chosen series in the chosen part, in ms. */
export interface Asked extends Span {
  query: string;
}

export function windowOf(selection: Selection, nowMs: number): Asked {
  return { query: selection.query, ...resolveWindow(selection.from, selection.until, nowMs) };
}

export function askedOf(selection: Selection, nowMs: number): Asked {
  return {
    ...windowOf(selection, nowMs),
    ...selection.part,
    query: narrow(selection.query, selection.only),
  };
}

/** With the times that "now" stands for, so that a link shows the same tomorrow. */
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

/** What a comparison begins with: the window's halves, the earlier before the later. */
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
