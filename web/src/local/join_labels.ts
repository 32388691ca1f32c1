/*
 * join_labels: joins the label counts of both sides of a local comparison into one result
 * (lib/profile/report/labels.h).
 */
import type {
  Label,
  LabelBar,
  LabelCount,
  LabelsResponse,
  LabelValue,
} from "../model/rules/labels.ts";
import { barsFor, type SideCount } from "./labels.ts";

/** The factors that convert the values of each side to those of the comparison. */
export type Factors = readonly [a: number, b: number];

function joinCount(
  a: LabelCount | undefined,
  b: LabelCount | undefined,
  factors: Factors,
): LabelCount {
  const [total_a, total_b] = [a, b].map((count, side) =>
    Math.round((count?.total ?? 0) * factors[side]),
  );
  return { total_a, total_b, samples_a: a?.samples ?? 0, samples_b: b?.samples ?? 0 };
}

const sizeOf = ({ total_a = 0, total_b = 0 }: LabelCount) =>
  Math.max(Math.abs(total_a), Math.abs(total_b));
const bySize = (x: LabelCount, y: LabelCount) => sizeOf(y) - sizeOf(x);

/** Pairs the entries of both lists that have the same name. */
function pairUp<T>(
  a: readonly T[],
  b: readonly T[],
  nameOf: (item: T) => string,
): [a: T | undefined, b: T | undefined][] {
  const ofB = new Map(b.map((item) => [nameOf(item), item]));
  const pairs = a.map((item): [T, T | undefined] => [item, ofB.get(nameOf(item))]);
  const namesOfA = new Set(a.map(nameOf));
  return [
    ...pairs,
    ...b
      .filter((item) => !namesOfA.has(nameOf(item)))
      .map((item): [undefined, T] => [undefined, item]),
  ];
}

function sumOf(values: readonly LabelValue[]): LabelCount {
  const sum = { total_a: 0, total_b: 0, samples_a: 0, samples_b: 0 };
  for (const value of values)
    for (const name of Object.keys(sum) as (keyof typeof sum)[]) sum[name] += value[name] ?? 0;
  return sum;
}

/**
 * Counts both sides in the same bars. Like on the server, the values of a bar are summed first, and
 * the sum is converted to the unit of the comparison.
 */
function joinBars(
  pair: readonly (Label | undefined)[],
  values: readonly LabelValue[],
  factors: Factors,
): Pick<Label, "histogram"> {
  const bars = barsFor(values.map(({ value }) => value as number));
  if (!bars) return {};
  const sides = pair.map((label) => {
    const counts = bars.ends.map(() => ({ total: 0, samples: 0 }));
    for (const { value, total, samples } of label?.values ?? []) {
      const count = counts[bars.barOf(value as number)];
      count.total += total ?? 0;
      count.samples += samples ?? 0;
    }
    return counts;
  });
  return {
    histogram: bars.ends.map((ends, i): LabelBar => ({
      ...ends,
      ...joinCount(sides[0][i], sides[1][i], factors),
    })),
  };
}

/** On a side without the label, all kept samples count as "without". */
const countWithout = (label: Label | undefined, { response, samples }: SideCount): LabelCount =>
  label?.without ?? { total: response.kept, samples };

function joinLabel(
  pair: readonly [Label | undefined, Label | undefined],
  sides: readonly [SideCount, SideCount],
  factors: Factors,
  limit: number,
): Label {
  const [a, b] = pair;
  const known = (b ?? a)!;
  const isNumeric = pair.every((label) => !label || label.is_numeric);
  const unit =
    isNumeric && pair.every((label) => !label || label.unit === known.unit)
      ? known.unit
      : undefined;
  const values = pairUp(a?.values ?? [], b?.values ?? [], ({ value, unit }) =>
    JSON.stringify([value, unit]),
  )
    .map(([x, y]): LabelValue => ({
      ...(y ?? x)!,
      total: undefined,
      samples: undefined,
      ...joinCount(x, y, factors),
    }))
    .sort(bySize);
  const shown = limit ? values.slice(0, limit) : values;
  const rest = values.slice(shown.length);
  const [withA, withB] = pair.map((label) => label?.samples_with ?? 0);
  const { total_a, total_b } = joinCount(a, b, factors);
  return {
    key: known.key,
    is_numeric: isNumeric,
    unit,
    total_a,
    total_b,
    samples_with_a: withA,
    samples_with_b: withB,
    without: {
      value: null,
      filter: known.without.filter,
      ...joinCount(countWithout(a, sides[0]), countWithout(b, sides[1]), factors),
    },
    value_count: values.length,
    values: shown,
    other: rest.length ? { value_count: rest.length, ...sumOf(rest) } : null,
    ...(unit === undefined ? {} : joinBars(pair, values, factors)),
  };
}

/** Both sides contain all values of each label. */
export function joinLabels(
  sides: readonly [SideCount, SideCount],
  factors: Factors,
  unit: string,
  limit: number,
): LabelsResponse {
  const [a, b] = sides.map(({ response }) => response);
  const labels = pairUp(a.labels, b.labels, ({ key }) => key)
    .map((pair) => joinLabel(pair, sides, factors, limit))
    .sort(bySize);
  const [total, kept] = (["total", "kept"] as const).map((name) =>
    [a, b].map((response, side) => Math.round((response[name] ?? 0) * factors[side])),
  );
  return {
    unit,
    total_a: total[0],
    total_b: total[1],
    kept_a: kept[0],
    kept_b: kept[1],
    labels,
    label_count: labels.length,
    truncated: false,
  };
}
