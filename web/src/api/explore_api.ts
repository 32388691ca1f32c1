/*
 * explore_api: requests to the store of continuous profiles. Separate from api.ts because readers
 * of a share do not need it.
 */
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
import { retryWhileBusy } from "./retry_busy.ts";
import type { QueryRequest } from "../model/continuous/explore_state.ts";
import type { LabelsResponse, LabelsRequest } from "../model/rules/labels.ts";
import type { Span } from "../model/continuous/time_window.ts";
import type { StackRules } from "../model/rules/stack_rules.ts";

export interface ProfileType {
  /** The full name of the profile type. */
  type: string;
  name: string;
  sample_type: string;
  sample_unit: string;
  rule: Aggregation;
}
/** The aggregation rule of a profile type; "difference" adds counter deltas. */
export type Aggregation = "sum" | "mean" | "difference";

export interface Series {
  labels: Record<string, string>;
  /**
   * Only in the last series, the sum of the series beyond the limit: the number of these series. It
   * has no labels.
   */
  other_count?: number;
  /** [start of the step in ms, value]. Steps without data have no entry. */
  points: [number, number][];
  /**
   * The average over the window, in the unit of the points; independent of the step. Absent if
   * there are no points.
   */
  average?: number;
  /** [start of the step, ms with data] for each step that has data for only a part of its time. */
  partial?: [number, number][];
}
export interface RangeResponse {
  type: string;
  unit: string;
  rule: Aggregation;
  /**
   * The step width. Steps start at multiples of it since 1970, the first at or before the window.
   */
  step_ms: number;
  series: Series[];
  /** Notes on the meaning of the values, such as how profiles without a duration are counted. */
  notes?: string[];
}
/** `warning` describes the data that the result lacks; "" if it is complete. */
export type Range = RangeResponse & { warning: string };

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

/** How the result was computed; empty values if the server reported nothing. */
export interface QueryDetails {
  aggregation: string;
  /** "blocks=1, rows=12" as numbers by name. */
  statistics: Record<string, number>;
  warning: string;
}

/**
 * In seconds with a decimal point: the API would read a whole number as another unit, by its
 * length.
 */
const seconds = (ms: number) => (ms / 1000).toFixed(3);
const spanOf = ({ from, to }: Span) => ({ start: seconds(from), end: seconds(to) });
const requestParameters = (request: QueryRequest) => ({ query: request.query, ...spanOf(request) });

function detailsOf({ headers }: Response): QueryDetails {
  const pairs = [...(headers.get("Perfolio-Statistics") ?? "").matchAll(/(\w+)=(\d+)/g)];
  return {
    aggregation: headers.get("Perfolio-Rule") ?? "",
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

/** Whether the team has any profile, however old. */
export const hasProfiles = async (nowMs: number, signal?: AbortSignal) =>
  (await listed("/api/v1/profile_types", { ...spanOf({ from: 0, to: nowMs }), limit: 1 }, signal))
    .length > 0;

/** Completions are read by a person, so the first ones are enough. */
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

/** Requests a rate for types that have one; gauges have none. */
export async function getRange(
  query: QueryRequest,
  by: readonly string[],
  { labels, focus, ignore }: StackRules,
  signal: AbortSignal,
): Promise<Range> {
  const path =
    "/api/v1/query_range" +
    queryOf({
      ...requestParameters(query),
      group_by: by,
      label: labels,
      focus,
      ignore,
      rate: "auto",
    });
  const response = await request(path, { signal, headers: { Accept: "application/json" } });
  return { ...((await response.json()) as RangeResponse), warning: detailsOf(response).warning };
}

/** One page of the single profiles; after: the cursor of the page before, "" for the first page. */
export const listStored = (request: QueryRequest, after: string, signal?: AbortSignal) =>
  getJson<StoredPage>(
    "/api/v1/profiles" + queryOf({ ...requestParameters(request), limit: 50, after }),
    signal,
  );

/* ---- trees ---- */

/**
 * The profile that the panes show: all selected profiles merged, one of them, or the difference of
 * two selections.
 */
export type Source =
  | { kind: "merged"; request: QueryRequest }
  | { kind: "single"; id: string }
  | { kind: "diff"; before: QueryRequest; after: QueryRequest };

export type ViewQuery = FlameQuery & { isNormalised: boolean };

const sides = (before: QueryRequest, after: QueryRequest) => ({
  a_query: before.query,
  a_start: seconds(before.from),
  a_end: seconds(before.to),
  b_query: after.query,
  b_start: seconds(after.from),
  b_end: seconds(after.to),
});

const profilePath = (id: string) => `/api/v1/profiles/${encodeURIComponent(id)}`;

/** The path of a report with its parameters. */
function pathOf(
  source: Source,
  report: "flame" | "top" | "labels",
  isNormalised: boolean,
  parameters: Parameters<typeof queryOf>[0],
): string {
  if (source.kind === "single") return profilePath(source.id) + queryOf({ report, ...parameters });
  if (source.kind === "merged")
    return (
      "/api/v1/query" + queryOf({ ...requestParameters(source.request), report, ...parameters })
    );
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
  onDetails: (details: QueryDetails) => void,
) =>
  getFlameAt(
    pathOf(source, "flame", query.isNormalised, { ...viewParameters(query), root: query.root }),
    signal,
    (response) => onDetails(detailsOf(response)),
  );

export const getRows = (source: Source, query: ViewQuery, signal: AbortSignal) =>
  (source.kind === "diff" ? getDiffTopAt : getTopAt)(
    pathOf(source, "top", query.isNormalised, { ...viewParameters(query), limit: 0 }),
    signal,
  );

export const getSampleLabels = (
  source: Source,
  query: LabelsQuery & { isNormalised: boolean },
  labelsRequest: LabelsRequest,
  signal: AbortSignal,
) =>
  getJson<LabelsResponse>(
    pathOf(source, "labels", query.isNormalised, labelParameters(query, labelsRequest)),
    signal,
  );

/* ---- sharing ---- */

/** Creates a share. Its samples keep only the named labels. */
export const shareResult = (
  request: QueryRequest,
  settings: ShareSettings,
  labels: readonly string[],
) =>
  retryWhileBusy(() =>
    change<Created>(
      "POST",
      "/api/v1/shares" +
        queryOf({ ...requestParameters(request), ...settings, keep_label: labels }),
    ),
  );
