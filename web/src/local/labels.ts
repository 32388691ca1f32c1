/*
 * labels: counts the labels of samples of a local profile like the server
 * (lib/profile/report/labels.h) and applies label rules (lib/profile/report/label_filter.h).
 */
import {
  formatLabelRule,
  parseLabelRule,
  type Label,
  type LabelBar,
  type LabelRule,
  type LabelsResponse,
  type LabelsRequest,
  type LabelValue,
} from "../model/rules/labels.ts";
import { boundedTest, compileRule } from "../model/search/search.ts";
import { LocalError, type LocalLabels, type LocalProfile } from "./profile.ts";

/* ---- rules ---- */

interface Range {
  low: number;
  high: number;
  /** null: any unit. */
  unit: string | null;
}

function rangeOf(value: string): Range | null {
  const found = /^(?:(-?\d+)|(-?\d+)?\.\.(-?\d+)?)(?: ([^]*))?$/.exec(value);
  if (!found) return null;
  const [, one, low, high, unit = null] = found;
  const end = (text: string | undefined, open: number) =>
    text === undefined ? open : Number(text);
  return one === undefined
    ? { low: end(low, -Infinity), high: end(high, Infinity), unit }
    : { low: Number(one), high: Number(one), unit };
}

/** A test whether a sample matches the rule. */
function testOf(labels: LocalLabels, rule: LabelRule): (sample: number) => boolean {
  const { start, key, text, number, unit, strings } = labels;
  const id = strings.indexOf(rule.key);
  const textId = strings.indexOf(rule.value);
  const range = rangeOf(rule.value);
  const unitId = range?.unit == null ? -1 : strings.indexOf(range.unit);
  const isMet = (at: number) => {
    if (text[at] !== 0) return text[at] === textId;
    return (
      range !== null &&
      number[at] >= range.low &&
      number[at] <= range.high &&
      (range.unit === null || unit[at] === unitId)
    );
  };
  return (sample) => {
    let has = false;
    for (let at = start[sample]; at < start[sample + 1]; at++) {
      if (key[at] !== id) continue;
      if (rule.value !== "" && isMet(at)) return true;
      has = true;
    }
    return rule.value === "" && !has;
  };
}

/**
 * A test whether the rules keep a sample. Throws LocalError for an unknown label: one that no
 * sample of either side has.
 */
export function labelTest(
  { labels }: LocalProfile,
  texts: readonly string[],
  known: readonly string[],
): (sample: number) => boolean {
  const wanted = new Map<string, ((sample: number) => boolean)[]>();
  const unwanted: ((sample: number) => boolean)[] = [];
  for (const text of texts) {
    const rule = parseLabelRule(text);
    if (!rule) continue;
    if (!known.includes(rule.key))
      throw new LocalError(`No sample of this profile has a label “${rule.key}”.`);
    if (rule.excludes) unwanted.push(testOf(labels, rule));
    else wanted.set(rule.key, [...(wanted.get(rule.key) ?? []), testOf(labels, rule)]);
  }
  const all = [...wanted.values()];
  return (sample) =>
    !unwanted.some((test) => test(sample)) &&
    all.every((tests) => tests.some((test) => test(sample)));
}

/** A test whether a sample has a frame whose name, file or binary matches the expression. */
function frameTest(profile: LocalProfile, expression: string): (sample: number) => boolean {
  const test = boundedTest(compileRule(expression));
  const matches = profile.frames.map(({ name, file, mapping }) =>
    [name, file, mapping].some((text) => text !== "" && test(text)),
  );
  return (sample) => {
    for (let at = profile.start[sample]; at < profile.start[sample + 1]; at++)
      if (matches[profile.stack[at]]) return true;
    return false;
  };
}

/* ---- labels as frames ---- */

const labelTextBytes = 4096;
/** The maximum length of a number and of the mark of a truncation. */
const numberBytes = 22;
const cutBytes = 4;

/** The keys that occur in samples. */
export const labelKeys = ({ labels }: LocalProfile): string[] =>
  [...new Set(labels.key)].map((key) => labels.strings[key]);

/**
 * The values of a label of a sample as the name of a frame: "a" or "4096 bytes", several separated
 * by commas; "" for none.
 */
export function labelText({ labels }: LocalProfile, label: string): (sample: number) => string {
  const { start, key, text, number, unit, strings } = labels;
  const id = strings.indexOf(label);
  const encoder = new TextEncoder();
  return (sample) => {
    const found: number[] = [];
    for (let at = start[sample]; at < start[sample + 1]; at++) if (key[at] === id) found.push(at);
    if (found.length === 1 && text[found[0]] !== 0) return strings[text[found[0]]];
    let joined = "";
    for (const at of found) {
      const isNumber = text[at] === 0;
      const word = strings[isNumber ? unit[at] : text[at]];
      if (joined) joined += ",";
      if (
        encoder.encode(joined).length + encoder.encode(word).length + numberBytes + cutBytes >
        labelTextBytes
      )
        return joined + "…";
      joined += isNumber ? `${number[at]}${word && " "}${word}` : word;
    }
    return joined;
  };
}

/* ---- counting ---- */

interface Counted {
  total: number;
  samples: number;
  last: number;
}
type Value = Counted & { text: number; number: number; unit: number };

/** Counts a sample once, even if several of its labels count here. */
function add(count: Counted, sample: number, value: number): void {
  if (count.last === sample) return;
  count.last = sample;
  count.total += value;
  count.samples++;
}

const bySize = (a: { total: number }, b: { total: number }) =>
  Math.abs(b.total) - Math.abs(a.total);

const equalBars = 16;

/**
 * The bars of numeric values and a function that finds the bar of a number, as on the server:
 * powers of two if the numbers differ much, otherwise bars of equal width.
 */
export interface Bars {
  ends: { low: number; high: number }[];
  barOf: (number: number) => number;
}

/** null if there are too few different numbers for a picture. */
export function barsFor(numbers: readonly number[]): Bars | null {
  if (numbers.length <= equalBars) return null;
  const low = numbers.reduce((least, number) => Math.min(least, number), Infinity);
  const high = numbers.reduce((most, number) => Math.max(most, number), -Infinity);
  const width =
    low < 0 || Math.floor(high / Math.max(low, 1)) < 64
      ? Math.floor((high - low) / equalBars) + 1
      : 0;
  const power = (number: number) => (number === 0 ? 0 : Math.floor(Math.log2(number)) + 1);
  const barOf = (number: number) =>
    width ? Math.floor((number - low) / width) : power(number) - power(low);
  const ends = Array.from({ length: barOf(high) + 1 }, (_, i) => {
    const from = power(low) + i;
    if (width) return { low: low + i * width, high: Math.min(high, low + (i + 1) * width - 1) };
    return { low: from === 0 ? 0 : 2 ** (from - 1), high: from === 0 ? 0 : 2 ** from - 1 };
  });
  return { ends, barOf };
}

function histogram(values: readonly Value[]): LabelBar[] | undefined {
  const bars = barsFor(values.map(({ number }) => number));
  const counted = bars?.ends.map((ends) => ({ ...ends, total: 0, samples: 0 }));
  for (const { number, total, samples } of counted ? values : []) {
    const bar = counted![bars!.barOf(number)];
    bar.total += total;
    bar.samples += samples;
  }
  return counted;
}

interface Key extends Counted {
  values: Map<string, Value>;
}

function histogramOf(values: readonly Value[]): Pick<Label, "histogram"> {
  const bars = histogram(values);
  return bars ? { histogram: bars } : {};
}

function describe(
  name: string,
  key: Key,
  kept: Counted,
  labels: LocalLabels,
  limit: number,
): Label {
  const { strings } = labels;
  const values = [...key.values.values()].sort(
    (a, b) => bySize(a, b) || a.number - b.number || (strings[a.text] < strings[b.text] ? -1 : 1),
  );
  const isNumeric = values.every(({ text }) => text === 0);
  const unit =
    isNumeric && values.every((value) => value.unit === values[0].unit)
      ? strings[values[0].unit]
      : undefined;
  const filterOf = (value: string) =>
    name ? formatLabelRule({ key: name, value, excludes: false }) : undefined;
  const shown = limit ? values.slice(0, limit) : values;
  const rest = values.slice(shown.length);
  return {
    key: name,
    is_numeric: isNumeric,
    unit,
    total: key.total,
    samples_with: key.samples,
    without: {
      value: null,
      total: kept.total - key.total,
      samples: kept.samples - key.samples,
      filter: filterOf(""),
    },
    value_count: values.length,
    values: shown.map(({ text, number, unit: own, total, samples }): LabelValue => {
      if (text !== 0)
        return { value: strings[text], total, samples, filter: filterOf(strings[text]) };
      return {
        value: number,
        unit: strings[own],
        total,
        samples,
        filter: filterOf(unit === undefined ? `${number} ${strings[own]}` : String(number)),
      };
    }),
    other: rest.length
      ? {
          value_count: rest.length,
          total: rest.reduce((sum, { total }) => sum + total, 0),
          samples: rest.reduce((sum, { samples }) => sum + samples, 0),
        }
      : null,
    ...(unit === undefined ? {} : histogramOf(values)),
  };
}

/** A result and the number of samples that it counts. */
export interface SideCount {
  response: LabelsResponse;
  samples: number;
}

/** known: the keys that rules may contain. */
export function countLabels(
  profile: LocalProfile,
  type: number,
  labelsRequest: LabelsRequest,
  known = labelKeys(profile),
): SideCount {
  const { labels, values, start, sampleTypes } = profile;
  const isKept = labelTest(profile, labelsRequest.rules, known);
  const focus = labelsRequest.focus.map((text) => frameTest(profile, text));
  const ignore = labelsRequest.ignore.map((text) => frameTest(profile, text));
  const keys = new Map<number, Key>();
  const kept: Counted = { total: 0, samples: 0, last: -1 };
  let total = 0;
  for (let sample = 0; sample + 1 < start.length; sample++) {
    const value = values[sample * sampleTypes.length + type];
    total += value;
    if (
      value === 0 ||
      !isKept(sample) ||
      !focus.every((test) => test(sample)) ||
      ignore.some((test) => test(sample))
    )
      continue;
    add(kept, sample, value);
    for (let at = labels.start[sample]; at < labels.start[sample + 1]; at++) {
      const id = labels.key[at];
      if (labelsRequest.key && labels.strings[id] !== labelsRequest.key) continue;
      let key = keys.get(id);
      if (!key) keys.set(id, (key = { total: 0, samples: 0, last: -1, values: new Map() }));
      add(key, sample, value);
      const [text, number, unit] = [labels.text[at], labels.number[at], labels.unit[at]];
      const name = text === 0 ? `${number} ${unit}` : `t${text}`;
      let counted = key.values.get(name);
      if (!counted)
        key.values.set(name, (counted = { text, number, unit, total: 0, samples: 0, last: -1 }));
      add(counted, sample, value);
    }
  }
  const described = [...keys].map(([id, key]) =>
    describe(labels.strings[id], key, kept, labels, labelsRequest.limit),
  );
  described.sort(
    (a, b) => bySize({ total: a.total! }, { total: b.total! }) || (a.key < b.key ? -1 : 1),
  );
  const response = {
    unit: sampleTypes[type].unit,
    total,
    kept: kept.total,
    labels: described,
    label_count: described.length,
    truncated: false,
  };
  return { response, samples: kept.samples };
}
