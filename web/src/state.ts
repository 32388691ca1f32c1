/*
 * state: what the address bar says about a view, and back.
 *
 * Everything is named by name or hash, never by index, so that a link survives another decoder, names that
 * come later and a newer page. `z`, `m`, `za` and `zb` are of one way to call functions and one group: whoever changes `names`
 * or `g` on the page takes them along (model/regrouped.ts). `sv` is the version of this grammar: when it changes, its number goes up
 * and an upgrader for the old number is added, and every old link keeps working. Parameters that this
 * version does not know are carried along untouched, and so is the number of a later version, of which the foot of
 * the viewer says that it may mean more.
 *
 *   sv=2   v=<view>   b=<second view>   st=<sample type>   q=<search>   m=<marked function>
 *   z=<path hash>   root=<path hash>   w=<from>-<to>   g=<group>   c=<colour>   norm=1   p=filtered   s=[-]<column>
 *   za=, zb=<path hash>[:<from>-<to>]: what is seen of a sandwich's callers (above) and callees (below)
 *   co=<columns of the table, with commas>   gn=<functions in the call graph>   x=<rules, see model/chain.ts>
 *   lb=<rule of a label, see model/labels.ts>, once for each
 *   names=full|none: how functions are called that symbol tables name; simple unless it says so
 *
 * Version 1 had v=both for a table beside an icicle.
 */
import { formatChain, parseChain, type Rule } from "./model/chain.ts";
import { colourModes, type ColourMode } from "./model/frame_colours.ts";
import { cleanLabelRules } from "./model/labels.ts";
import { sortColumns, type Sort, type SortColumn } from "./model/functions.ts";

export const stateVersion = 2;

export const views = [
  "icicle",
  "flame",
  "table",
  "sandwich",
  "graph",
  "peek",
  "labels",
  "comments",
] as const;
export type View = (typeof views)[number];
export { colourModes, type ColourMode };
export const groups = ["function", "file", "line", "address", "binary"] as const;

/** How functions are called that symbol tables name: the first is for who asks for nothing. */
export const nameModes = ["simple", "full", "none"] as const;
export type NameMode = (typeof nameModes)[number];

/** How many functions a call graph shows at most. */
export const graphSizes = [20, 40, 60, 100, 150] as const;
const defaultGraphSize = 60;

export interface SeenPart {
  from: number;
  to: number;
}

/** What is seen of one half of a sandwich: the frame by its path from the function that is looked from, and a part of it. */
export interface SeenHalf {
  zoom: string;
  window: SeenPart | null;
}

export interface ViewState {
  view: View;
  /** What stands beside it, or "". */
  beside: View | "";
  /** Name of the sample type, or its number where names are empty or repeat; "" is the profile's default. */
  sampleType: string;
  search: string;
  /** Name of the function that is marked in every view, or "". */
  marked: string;
  /** Path hash of the node zoomed to; "" is the root. */
  zoom: string;
  /** Path hash of the node whose "other" boxes were opened: the tree is made for what is below it. */
  root: string;
  /** null is the whole of each. */
  above: SeenHalf | null;
  below: SeenHalf | null;
  /** The part of the frame zoomed to that is seen, as shares of its width; null is the whole. */
  window: SeenPart | null;
  group: string;
  names: NameMode;
  colour: ColourMode;
  isNormalised: boolean;
  /** Percentages are of what the rules left, not of the whole profile. */
  isOfFiltered: boolean;
  rules: readonly Rule[];
  /** Which samples are looked at, by their labels; before all rules. */
  labels: readonly string[];
  /** null is the view's own order. */
  sort: Sort | null;
  /** Of the table, in order, besides the name; empty is the table's own choice. */
  columns: readonly SortColumn[];
  /** One of graphSizes. */
  graphNodes: number;
  /** Parameters of later versions or of others, in order. */
  extra: [string, string][];
  /** Of the grammar of the link: stateVersion, or a later one's number, which is kept. */
  version: number;
}

export type Update = (patch: Partial<ViewState>, how?: "push" | "replace") => void;

export const defaultState: ViewState = {
  view: "icicle",
  beside: "",
  sampleType: "",
  search: "",
  marked: "",
  zoom: "",
  root: "",
  above: null,
  below: null,
  window: null,
  group: "function",
  names: "simple",
  colour: "package",
  isNormalised: false,
  isOfFiltered: false,
  rules: [],
  labels: [],
  sort: null,
  columns: [],
  graphNodes: defaultGraphSize,
  extra: [],
  version: stateVersion,
};

const known = new Set([
  "sv",
  "v",
  "b",
  "st",
  "q",
  "m",
  "z",
  "root",
  "za",
  "zb",
  "w",
  "g",
  "c",
  "norm",
  "p",
  "s",
  "co",
  "gn",
  "x",
  "lb",
  "names",
]);

/** upgraders[n] turns parameters of version n into those of version n + 1, in place. */
const upgraders: Record<number, (parameters: URLSearchParams) => void> = {
  // Version 0 is a link written by hand, without sv: it has used version 1's names from the start.
  0: () => {},
  1: (parameters) => {
    if (parameters.get("v") !== "both") return;
    parameters.set("v", "table");
    parameters.set("b", "icicle");
  },
};

/** What a link may say and is so without it. */
const implied = [
  "v=icicle",
  "b=icicle",
  "g=function",
  "names=simple",
  "c=package",
  `gn=${defaultGraphSize}`,
  "norm=0",
];

/** Of columns and halves a part may be unknown; an "x" is told of rule by rule (unknownRules of model/chain.ts). */
function isKnown(name: string, value: string): boolean {
  if (!value || !known.has(name) || name === "x" || implied.includes(`${name}=${value}`))
    return true;
  if (name === "sv") return /^\d{1,15}$/.test(value);
  if (name === "co") return value.split(",").every(isColumn);
  if (/^z[ab]$/.test(name) && value.includes(":") && !parseHalf(value)?.window) return false;
  return new URLSearchParams(
    formatState(parseState(`?sv=2&${new URLSearchParams([[name, value]])}`)),
  ).has(name);
}

/** Of a value that nobody can read to its end. */
const shownLength = 40;

/** Settings of a link whose values are not known here, as "v=nope": they count as absent. */
export function unknownSettings(query: string): string[] {
  const parameters = new URLSearchParams(query);
  upgrade(parameters);
  return [...parameters].flatMap(([name, value]) =>
    isKnown(name, value)
      ? []
      : `${name}=${value.length > shownLength ? `${value.slice(0, shownLength)}…` : value}`,
  );
}

/** The version that the parameters are of then. */
function upgrade(parameters: URLSearchParams): number {
  const written = Number(parameters.get("sv") ?? 0);
  if (!Number.isSafeInteger(written) || written < 0) return stateVersion;
  for (let version = written; version < stateVersion; version++) upgraders[version]?.(parameters);
  return Math.max(written, stateVersion);
}

const isColumn = (text: string): text is SortColumn => sortColumns.includes(text as SortColumn);

function parseSort(text: string | null): Sort | null {
  if (!text) return null;
  const column = text.replace(/^-/, "");
  return isColumn(column) ? { column, descending: text.startsWith("-") } : null;
}

const parseColumns = (text: string | null) =>
  [...new Set((text ?? "").split(",").filter(isColumn))].filter((column) => column !== "name");

function parseWindow(text: string | null): SeenPart | null {
  const found = /^(0(?:\.\d{1,9})?)-([01](?:\.\d{1,9})?)$/.exec(text ?? "");
  if (!found) return null;
  const [from, to] = [Number(found[1]), Number(found[2])];
  return from < to && to <= 1 ? { from, to } : null;
}

function parseHalf(text: string | null): SeenHalf | null {
  const [hash, part] = (text ?? "").split(":");
  const zoom = asPathHash(hash);
  return zoom ? { zoom, window: parseWindow(part ?? null) } : null;
}

/** Nine digits, a billionth of the width: finer than any screen shows of a million boxes. */
const formatShare = (share: number) => share.toFixed(9).replace(/\.?0+$/, "");

const formatWindow = ({ from, to }: SeenPart) => `${formatShare(from)}-${formatShare(to)}`;
const formatHalf = ({ zoom, window }: SeenHalf) =>
  window ? `${zoom}:${formatWindow(window)}` : zoom;

const asPathHash = (text: string | null) => (text && /^[0-9a-f]{16}$/.test(text) ? text : "");
const asView = (text: string | null): View | "" =>
  views.includes(text as View) ? (text as View) : "";

export function parseState(query: string): ViewState {
  const parameters = new URLSearchParams(query);
  const version = upgrade(parameters);
  const view = asView(parameters.get("v")) || defaultState.view;
  const beside = asView(parameters.get("b"));
  const colour = parameters.get("c") as ColourMode | null;
  return {
    view,
    beside: beside === view ? "" : beside,
    sampleType: parameters.get("st") ?? "",
    search: parameters.get("q") ?? "",
    marked: parameters.get("m") ?? "",
    zoom: asPathHash(parameters.get("z")),
    root: asPathHash(parameters.get("root")),
    above: parseHalf(parameters.get("za")),
    below: parseHalf(parameters.get("zb")),
    window: parseWindow(parameters.get("w")),
    group: parameters.get("g") || defaultState.group,
    names: nameModes.find((mode) => mode === parameters.get("names")) ?? defaultState.names,
    colour: colour && colourModes.includes(colour) ? colour : defaultState.colour,
    isNormalised: parameters.get("norm") === "1",
    isOfFiltered: parameters.get("p") === "filtered",
    rules: parseChain(parameters.get("x") ?? ""),
    labels: cleanLabelRules(parameters.getAll("lb")),
    sort: parseSort(parameters.get("s")),
    columns: parseColumns(parameters.get("co")),
    graphNodes:
      graphSizes.find((count) => String(count) === parameters.get("gn")) ?? defaultGraphSize,
    extra: [...parameters].filter(([name]) => !known.has(name)),
    version,
  };
}

/** The query with its "?", or "" when the state is the default. */
export function formatState(state: ViewState): string {
  const parameters = new URLSearchParams();
  if (state.view !== defaultState.view) parameters.set("v", state.view);
  if (state.beside) parameters.set("b", state.beside);
  if (state.sampleType) parameters.set("st", state.sampleType);
  if (state.search) parameters.set("q", state.search);
  if (state.marked) parameters.set("m", state.marked);
  if (state.zoom) parameters.set("z", state.zoom);
  if (state.root) parameters.set("root", state.root);
  if (state.above) parameters.set("za", formatHalf(state.above));
  if (state.below) parameters.set("zb", formatHalf(state.below));
  if (state.window) parameters.set("w", formatWindow(state.window));
  if (state.group !== defaultState.group) parameters.set("g", state.group);
  if (state.names !== defaultState.names) parameters.set("names", state.names);
  if (state.colour !== defaultState.colour) parameters.set("c", state.colour);
  if (state.isNormalised) parameters.set("norm", "1");
  if (state.isOfFiltered) parameters.set("p", "filtered");
  for (const rule of state.labels) parameters.append("lb", rule);
  if (state.rules.length) parameters.set("x", formatChain(state.rules));
  if (state.sort) parameters.set("s", (state.sort.descending ? "-" : "") + state.sort.column);
  if (state.columns.length) parameters.set("co", state.columns.join(","));
  if (state.graphNodes !== defaultGraphSize) parameters.set("gn", String(state.graphNodes));
  const own = parameters.toString();
  if (own || state.version > stateVersion) parameters.set("sv", String(state.version));
  for (const [name, value] of state.extra) parameters.append(name, value);
  const text = parameters.toString();
  return text ? "?" + text : "";
}
