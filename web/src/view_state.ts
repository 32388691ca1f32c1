/*
 * view_state: the state of a view in the address bar.
 *
 * Everything is identified by name or hash, never by index, so that a link survives another
 * decoder, names that arrive later, and newer pages. `z`, `m`, `za` and `zb` refer to one setting
 * of `names` and `g`; a change of these on the page converts them (model/tree/regrouped.ts). `sv`
 * is the version of this grammar. A change of the grammar increases it and adds an upgrader for the
 * old version, so every old link keeps working. Unknown parameters are kept unchanged, and so is
 * the number of a later version; then the foot of the viewer states that the link may mean more.
 *
 *   sv=2   v=<view>   b=<second view>   st=<sample type>   q=<search>   m=<marked function>
 *   z=<path hash>   root=<path hash>   w=<from>-<to>   g=<group>   c=<colour>   norm=1
 *   p=filtered   s=[-]<column>
 *   za=, zb=<path hash>[:<from>-<to>]: the visible part of a sandwich's callers (above) and callees
 *   co=<columns of the table, with commas>   gn=<functions in the call graph>
 *   x=<rules, see model/rules/chain.ts>
 *   lb=<rule of a label, see model/rules/labels.ts>, once for each
 *   names=full|none: the form of names from symbol tables; absent: simple
 *
 * Version 1 had v=both for a table beside an icicle.
 */
import { formatChain, parseChain, type Rule } from "./model/rules/chain.ts";
import { colourModes, type ColourMode } from "./model/colours/frame_colours.ts";
import { cleanLabelRules } from "./model/rules/labels.ts";
import { sortColumns, type Sort, type SortColumn } from "./model/functions/functions.ts";

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

/** The form of names from symbol tables; the first is the default. */
export const nameModes = ["simple", "full", "none"] as const;
export type NameMode = (typeof nameModes)[number];

/** The choices for the maximum number of functions in a call graph. */
export const graphSizes = [20, 40, 60, 100, 150] as const;
const defaultGraphSize = 60;

export interface VisiblePart {
  from: number;
  to: number;
}

/**
 * The visible part of one half of a sandwich: the frame by its path from the marked function, and a
 * part of its width.
 */
export interface VisibleHalf {
  zoom: string;
  window: VisiblePart | null;
}

export interface ViewState {
  view: View;
  /** The second view, or "". */
  beside: View | "";
  /**
   * The name of the sample type, or its index if names are empty or repeat; "" is the profile's
   * default.
   */
  sampleType: string;
  search: string;
  /** The function that is marked in every view, or "". */
  marked: string;
  /** The path hash of the zoomed node; "" is the root. */
  zoom: string;
  /**
   * The path hash of the node whose "other" boxes were opened: the tree contains only the nodes
   * below it.
   */
  root: string;
  /** The visible parts of a sandwich; null is all of a half. */
  above: VisibleHalf | null;
  below: VisibleHalf | null;
  /** The visible part of the zoomed frame, as shares of its width; null is all of it. */
  window: VisiblePart | null;
  group: string;
  names: NameMode;
  colour: ColourMode;
  isNormalised: boolean;
  /** Percentages refer to the tree after the rules instead of the whole profile. */
  isOfFiltered: boolean;
  rules: readonly Rule[];
  /** Selects samples by their labels, before all rules. */
  labels: readonly string[];
  /** null is the default order of the view. */
  sort: Sort | null;
  /** The columns of the table, in order, besides the name; empty is the default. */
  columns: readonly SortColumn[];
  /** One of graphSizes. */
  graphNodes: number;
  /** Parameters of later versions or of other grammars, in order. */
  extra: [string, string][];
  /** The version of the link's grammar: stateVersion, or that of a later version, which is kept. */
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

/** upgraders[n] converts parameters of version n to version n + 1, in place. */
const upgraders: Record<number, (parameters: URLSearchParams) => void> = {
  // Version 0 is a link written by hand, without sv; it uses the names of version 1.
  0: () => {},
  1: (parameters) => {
    if (parameters.get("v") !== "both") return;
    parameters.set("v", "table");
    parameters.set("b", "icicle");
  },
};

/**
 * Settings that formatState omits although they are understood: the defaults, and a second view
 * that equals the default first one.
 */
const implied = [
  "v=icicle",
  "b=icicle",
  "g=function",
  "names=simple",
  "c=package",
  `gn=${defaultGraphSize}`,
  "norm=0",
];

/**
 * Whether this version understands all of a parameter's value, or of a list of columns each column.
 * True for the rules in "x", which are reported one by one (unknownRules of model/rules/chain.ts).
 */
function isKnown(name: string, value: string): boolean {
  if (!value || !known.has(name) || name === "x" || implied.includes(`${name}=${value}`))
    return true;
  if (name === "sv") return /^\d{1,15}$/.test(value);
  if (name === "co") return value.split(",").every(isColumn);
  if (/^z[ab]$/.test(name) && value.includes(":") && !parseHalf(value)?.window) return false;
  return new URLSearchParams(
    formatState(parseState(`?sv=${stateVersion}&${new URLSearchParams([[name, value]])}`)),
  ).has(name);
}

/** The length at which a value is cut in a message. */
const shownLength = 40;

/** The settings of a link with unknown values, as "v=nope"; they count as absent. */
export function unknownSettings(query: string): string[] {
  const parameters = new URLSearchParams(query);
  upgrade(parameters);
  return [...parameters].flatMap(([name, value]) =>
    isKnown(name, value)
      ? []
      : `${name}=${value.length > shownLength ? `${value.slice(0, shownLength)}…` : value}`,
  );
}

/** Returns the version of the upgraded parameters. */
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

function parseWindow(text: string | null): VisiblePart | null {
  const found = /^(0(?:\.\d{1,9})?)-([01](?:\.\d{1,9})?)$/.exec(text ?? "");
  if (!found) return null;
  const [from, to] = [Number(found[1]), Number(found[2])];
  return from < to && to <= 1 ? { from, to } : null;
}

function parseHalf(text: string | null): VisibleHalf | null {
  const [hash, part] = (text ?? "").split(":");
  const zoom = asPathHash(hash);
  return zoom ? { zoom, window: parseWindow(part ?? null) } : null;
}

/** Nine digits, a billionth of the width: finer than a screen can show for a million boxes. */
const formatShare = (share: number) => share.toFixed(9).replace(/\.?0+$/, "");

const formatWindow = ({ from, to }: VisiblePart) => `${formatShare(from)}-${formatShare(to)}`;
const formatHalf = ({ zoom, window }: VisibleHalf) =>
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

/** The query with its "?", or "" for the default state. */
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
