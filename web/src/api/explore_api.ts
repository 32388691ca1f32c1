/* explore_api: what is asked of the store of continuous profiles; apart from api.ts, since who reads a share does not need it. */
import {
  change,
  diffMode,
  getDiffTopAt,
  getFlameAt,
  getJson,
  getTopAt,
  labelParameters,
  queryOf,
  request,
  viewParameters,
  type Created,
  type FlameQuery,
  type LabelsQuery,
  type ShareSettings,
} from "./api.ts";
import { inTurn } from "../workers/request_order.ts";
import type { Asked } from "../model/explore_state.ts";
import type { LabelsAnswer, LabelsQuestion } from "../model/labels.ts";
import type { Span } from "../model/moment.ts";
import type { StackRules } from "../model/stack_rules.ts";

export interface ProfileType {
  /** The whole name. */
  type: string;
  name: string;
  sample_type: string;
  sample_unit: string;
  rule: Rule;
}
export type Rule = "sum" | "mean" | "difference";

export interface Series {
  labels: Record<string, string>;
  /** Only of the sum of the series beyond the limit, the last one: how many they are. It has no labels. */
  other_count?: number;
  /** Begin of the step in ms, value. Steps without data have none. */
  points: [number, number][];
  /** Of the window, in the unit of the points; the same whatever the step is. Absent when there are no points. */
  average?: number;
  /** Begin of each step that has data for a part of its time only, and how many ms that is. */
  partial?: [number, number][];
}
export interface RangeAnswer {
  type: string;
  unit: string;
  rule: Rule;
  /** Steps begin at its multiples since 1970, the first at or before the window. */
  step_ms: number;
  series: Series[];
  /** What the reader of the values must know, such as how profiles without a duration count. */
  notes?: string[];
}
/** With what of it is missing; "" where all is there. */
export type Range = RangeAnswer & { warning: string };

export interface StoredProfile {
  id: string;
  time: string;
  duration_ns: number;
  total: number;
  unit: string;
  labels: Record<string, string>;
}
export interface StoredPage {
  data: StoredProfile[];
  next: string | null;
}

/** How the answer was made; "" where nothing is told. */
export interface Made {
  rule: string;
  /** "blocks=1, rows=12" as numbers by name. */
  statistics: Record<string, number>;
  warning: string;
}

/** In seconds: whole numbers mean other units by their length. */
const seconds = (ms: number) => (ms / 1000).toFixed(3);
const spanOf = ({ from, to }: Span) => ({ start: seconds(from), end: seconds(to) });
const askedBy = (asked: Asked) => ({ query: asked.query, ...spanOf(asked) });

function madeBy({ headers }: Response): Made {
  const pairs = [...(headers.get("Perfolio-Statistics") ?? "").matchAll(/(\w+)=(\d+)/g)];
  return {
    rule: headers.get("Perfolio-Rule") ?? "",
    statistics: Object.fromEntries(pairs.map(([, name, count]) => [name, Number(count)])),
    warning: headers.get("Perfolio-Warning") ?? "",
  };
}

type List<Item> = { data: Item[] };
const listed = async <Item>(
  path: string,
  parameters: Parameters<typeof queryOf>[0],
  signal?: AbortSignal,
) => (await getJson<List<Item>>(path + queryOf(parameters), signal)).data;

export const listTypes = (span: Span, signal?: AbortSignal) =>
  listed<ProfileType>("/api/v1/profile_types", spanOf(span), signal);

/** Is there any profile at all, however old? */
export const hasProfiles = async (nowMs: number, signal?: AbortSignal) =>
  (await listed("/api/v1/profile_types", { ...spanOf({ from: 0, to: nowMs }), limit: 1 }, signal))
    .length > 0;

/** Completions are for the eye: of many the first are enough. */
const maxCompletions = 500;

export const listLabelNames = (match: string, span: Span, signal?: AbortSignal) =>
  listed<string>(
    "/api/v1/labels",
    { "match[]": match, ...spanOf(span), limit: maxCompletions },
    signal,
  );
export const listLabelValues = (name: string, match: string, span: Span, signal?: AbortSignal) =>
  listed<string>(
    `/api/v1/label/${encodeURIComponent(name)}/values`,
    { "match[]": match, ...spanOf(span), limit: maxCompletions },
    signal,
  );

/** A rate of what has one; levels have none. */
export async function getRange(
  asked: Asked,
  by: readonly string[],
  { labels, focus, ignore }: StackRules,
  signal: AbortSignal,
): Promise<Range> {
  const path =
    "/api/v1/query_range" +
    queryOf({ ...askedBy(asked), group_by: by, label: labels, focus, ignore, rate: "auto" });
  const response = await request(path, { signal, headers: { Accept: "application/json" } });
  return { ...((await response.json()) as RangeAnswer), warning: madeBy(response).warning };
}

export const listStored = (asked: Asked, after: string, signal?: AbortSignal) =>
  getJson<StoredPage>(
    "/api/v1/profiles" + queryOf({ ...askedBy(asked), limit: 50, after }),
    signal,
  );

/* ---- trees ---- */

/** What the views show: all profiles that were asked for as one, one of them, or the difference of two selections. */
export type Source =
  | { kind: "merged"; asked: Asked }
  | { kind: "single"; id: string }
  | { kind: "diff"; before: Asked; after: Asked };

export type ViewQuery = FlameQuery & { isNormalised: boolean };

const sides = (before: Asked, after: Asked) => ({
  a_query: before.query,
  a_start: seconds(before.from),
  a_end: seconds(before.to),
  b_query: after.query,
  b_start: seconds(after.from),
  b_end: seconds(after.to),
});

const profilePath = (id: string) => `/api/v1/profiles/${encodeURIComponent(id)}`;

/** The path of a report, with what it takes. */
function pathOf(
  source: Source,
  report: "flame" | "top" | "labels",
  isNormalised: boolean,
  parameters: Parameters<typeof queryOf>[0],
): string {
  if (source.kind === "single") return profilePath(source.id) + queryOf({ report, ...parameters });
  if (source.kind === "merged")
    return "/api/v1/query" + queryOf({ ...askedBy(source.asked), report, ...parameters });
  const mode = diffMode({ isNormalised });
  return (
    `/api/v1/diff${report === "flame" ? "" : `/${report}`}` +
    queryOf({ ...sides(source.before, source.after), mode, ...parameters })
  );
}

export const getTree = (
  source: Source,
  query: ViewQuery,
  signal: AbortSignal,
  onMade: (made: Made) => void,
) =>
  getFlameAt(
    pathOf(source, "flame", query.isNormalised, { ...viewParameters(query), root: query.root }),
    signal,
    (response) => onMade(madeBy(response)),
  );

export const getRows = (source: Source, query: ViewQuery, signal: AbortSignal) =>
  (source.kind === "diff" ? getDiffTopAt : getTopAt)(
    pathOf(source, "top", query.isNormalised, { ...viewParameters(query), limit: 0 }),
    signal,
  );

export const getSampleLabels = (
  source: Source,
  query: LabelsQuery & { isNormalised: boolean },
  question: LabelsQuestion,
  signal: AbortSignal,
) =>
  getJson<LabelsAnswer>(
    pathOf(source, "labels", query.isNormalised, labelParameters(query, question)),
    signal,
  );

/* ---- sharing ---- */

/** Samples keep the labels that are named. */
export const shareAnswer = (asked: Asked, settings: ShareSettings, labels: readonly string[]) =>
  inTurn(() =>
    change<Created>(
      "POST",
      "/api/v1/shares" + queryOf({ ...askedBy(asked), ...settings, keep_label: labels }),
    ),
  );
