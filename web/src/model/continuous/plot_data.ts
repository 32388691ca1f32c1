/*
 * plot_data: series of points in the form that the plot needs: one list of times, and for each
 * series a value per time: undefined if the series has no value at that time and its line
 * continues, null if its line is interrupted there.
 */
import { contrast, oklch } from "../colours/colour.ts";
import { decimalsOf, formatValue, isScaled } from "../text/units.ts";

export type Points = readonly (readonly [ms: number, value: number])[];
export type Values = (number | null | undefined)[];
export interface PlotData {
  times: number[];
  values: Values[];
}

/**
 * Points of a series that usually skips steps are not connected if their distance exceeds the usual
 * one by this factor.
 */
const interruption = 2.5;

/** The usual distance between points of a series. */
function usualDistance(points: Points, stepMs: number): number {
  const distances = points
    .slice(1)
    .map(([ms], i) => ms - points[i][0])
    .sort((a, b) => a - b);
  return Math.max(stepMs, distances[distances.length >> 1] ?? 0);
}

/**
 * The distance above which two points are not connected. The server returns a point for every step
 * with data, so if a series usually has one per step, a single missing point interrupts its line.
 */
function longestDistance(points: Points, stepMs: number): number {
  const usual = usualDistance(points, stepMs);
  return usual <= stepMs ? 1.5 * stepMs : interruption * usual;
}

/** The points, with a point without a value in each interruption. */
function withGaps(points: Points, stepMs: number): Map<number, number | null> {
  const limit = longestDistance(points, stepMs);
  const all = new Map<number, number | null>();
  for (const [i, [ms, value]] of points.entries()) {
    if (i > 0 && ms - points[i - 1][0] > limit) all.set(points[i - 1][0] + stepMs, null);
    all.set(ms, value);
  }
  return all;
}

export function plotData(series: readonly Points[], stepMs: number): PlotData {
  const all = series.map((points) => withGaps(points, stepMs));
  const times = [...new Set(all.flatMap((one) => [...one.keys()]))].sort((a, b) => a - b);
  return { times, values: all.map((one) => times.map((ms) => one.get(ms))) };
}

/** The last point at or before a time, if its step has not ended. */
export function valueAt(points: Points, ms: number, stepMs: number): number | null {
  let [low, high] = [0, points.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (points[middle][0] <= ms) low = middle + 1;
    else high = middle;
  }
  const found = points[low - 1];
  return found && ms < found[0] + stepMs ? found[1] : null;
}

export interface Digest {
  last: number;
  mean: number;
  highest: number;
}

/** A series of /api/v1/query_range. */
export interface Summed {
  points: Points;
  average?: number;
}

/**
 * The last, mean and highest value of a series. The mean is the server's: it does not depend on the
 * steps. null: there is no value.
 */
export function digestOf({ points, average }: Summed): Digest | null {
  const last = points.at(-1);
  if (!last) return null;
  const highest = points.reduce((most, [, value]) => Math.max(most, value), -Infinity);
  return { last: last[1], mean: average ?? last[1], highest };
}

/** The series with the same labels among those of another window; null if there is none. */
export function sameSeries<Type extends { labels: Record<string, string>; other_count?: number }>(
  { labels, other_count: others }: Type,
  all: readonly Type[],
): Type | null {
  const key = JSON.stringify(Object.entries(labels).sort());
  const isSame = (one: Type) =>
    Boolean(one.other_count) === Boolean(others) &&
    JSON.stringify(Object.entries(one.labels).sort()) === key;
  return all.find(isSame) ?? null;
}

/** "1.25 cores", "3.2 MiB/s", "0.0039/s": the units of /api/v1/query_range. */
export function formatMetric(value: number, unit: string): string {
  if (unit === "cores" || unit === "seconds/s") return `${Number(value.toPrecision(3))} ${unit}`;
  if (unit.endsWith("/s")) {
    const counted = unit.slice(0, -2);
    if (Math.abs(value) < 1 && !isScaled(counted) && !decimalsOf(counted))
      return `${Number(value.toPrecision(3))}${counted === "count" ? "" : ` ${counted}`}/s`;
    return `${formatValue(value, counted)}/s`;
  }
  return formatValue(value, unit);
}

/** The style of a series; lines differ by more than colour. */
export interface LineLook {
  stroke: string;
  dash: number[];
}

const hues = [40, 250, 150, 320, 95, 195, 285, 10];
const dashes = [[], [7, 3], [2, 3], [9, 3, 2, 3]];
/** The minimum contrast to the background for graphics in WCAG. */
const enough = 3;

export function lineLook(index: number, ground: string): LineLook {
  const hue = hues[index % hues.length];
  const isDark = contrast(ground, "#ffffff") > contrast(ground, "#000000");
  let lightness = isDark ? 0.76 : 0.56;
  const stroke = () => oklch(lightness, 0.15, hue);
  while (contrast(stroke(), ground) < enough && lightness > 0 && lightness < 1)
    lightness += isDark ? 0.04 : -0.04;
  return { stroke: stroke(), dash: dashes[Math.floor(index / hues.length) % dashes.length] };
}

/** The style of the sum of many series: grey, and dotted unlike all others. */
export function otherLook(ground: string): LineLook {
  const isDark = contrast(ground, "#ffffff") > contrast(ground, "#000000");
  return { stroke: oklch(isDark ? 0.7 : 0.5, 0, 0), dash: [1, 4] };
}

/**
 * "pod=a, zone=b"; "all" if series have no labels; "other (37 series)" for the sum of the series
 * beyond the limit.
 */
export function seriesName({
  labels,
  other_count: others,
}: {
  labels: Record<string, string>;
  other_count?: number;
}): string {
  if (others) return `other (${others} series)`;
  const parts = Object.entries(labels).map(([name, value]) => `${name}=${value || "(none)"}`);
  return parts.join(", ") || "all";
}
