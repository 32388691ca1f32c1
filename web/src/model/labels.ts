/*
 * labels: rules that keep samples by their labels, as the server takes them (lib/profile/report/label_filter.h),
 * and what the server, or the browser for a file that was not uploaded, counts of each label.
 *
 *   key=value    with this value; several of one key: with any of them
 *   key!=value   without it
 *   key=         without such a label, key!= with one
 */

export const maxLabelRules = 32;

export interface LabelRule {
  key: string;
  value: string;
  excludes: boolean;
}

/** null where it is no rule. */
export function parseLabelRule(text: string): LabelRule | null {
  const found = /^((?:\\[^]|[^\\=])+)=([^]*)$/.exec(text);
  if (!found) return null;
  const excludes = /(^|[^\\])(\\\\)*!$/.test(found[1]);
  const key = (excludes ? found[1].slice(0, -1) : found[1]).replace(/\\([^])/g, "$1");
  return key ? { key, value: found[2], excludes } : null;
}

export const formatLabelRule = ({ key, value, excludes }: LabelRule): string =>
  key.replace(/[\\=]|!$/g, "\\$&") + (excludes ? "!=" : "=") + value;

/** The same rule the other way round: is, is not. */
export function turnLabelRule(text: string): string {
  const rule = parseLabelRule(text);
  return rule ? formatLabelRule({ ...rule, excludes: !rule.excludes }) : text;
}

/** "thread is", "io"; for a chip. */
export function describeLabelRule(text: string): [what: string, value: string] {
  const rule = parseLabelRule(text);
  if (!rule) return ["", text];
  if (rule.value === "") return [rule.excludes ? "with" : "without", rule.key];
  return [`${rule.key} ${rule.excludes ? "is not" : "is"}`, rule.value];
}

/** Only those that are rules, each once. */
export const cleanLabelRules = (texts: readonly string[]): string[] =>
  [...new Set(texts)].filter((text) => parseLabelRule(text)).slice(0, maxLabelRules);

/** Names a list of rules; two lists are one when their names are. */
export const formatLabels = (texts: readonly string[]): string => JSON.stringify(texts);

/** How a grouping names a label. */
const groupPrefix = "label:";
export const groupOfLabel = (key: string): string => groupPrefix + key;

/** The labels that a view needs of its samples: those of its rules and what it is grouped by. */
export function labelsOfView(rules: readonly string[], group: string): string[] {
  const keys = rules.map((rule) => parseLabelRule(rule)?.key ?? "");
  if (group.startsWith(groupPrefix)) keys.push(group.slice(groupPrefix.length));
  return [...new Set(keys)].filter(Boolean);
}

/* ---- what is counted ---- */

/** Of one profile, or of both sides of a diff. */
export interface LabelCount {
  total?: number;
  samples?: number;
  total_a?: number;
  total_b?: number;
  samples_a?: number;
  samples_b?: number;
}

export interface LabelValue extends LabelCount {
  /** null: the samples without the label. */
  value: string | number | null;
  unit?: string;
  /** The rule that means it; absent where there is none that can be written. */
  filter?: string;
}

export interface LabelBar extends LabelCount {
  low: number;
  high: number;
}

export interface Label extends LabelCount {
  key: string;
  is_numeric: boolean;
  /** Of all values, when they have one. */
  unit?: string;
  samples_with?: number;
  samples_with_a?: number;
  samples_with_b?: number;
  without: LabelValue;
  value_count: number;
  values: LabelValue[];
  other: ({ value_count: number } & LabelCount) | null;
  uncounted?: { values_counted: number } & LabelCount;
  histogram?: LabelBar[];
}

export interface LabelsAnswer {
  unit: string;
  total?: number;
  total_a?: number;
  total_b?: number;
  kept?: number;
  kept_a?: number;
  kept_b?: number;
  labels: Label[];
  label_count: number;
  truncated: boolean;
}

export interface LabelsQuestion {
  rules: readonly string[];
  focus: readonly string[];
  ignore: readonly string[];
  /** "" for all. */
  key: string;
  /** Values of each label at most; 0 for all. */
  limit: number;
}

export type LoadLabels = (question: LabelsQuestion, signal: AbortSignal) => Promise<LabelsAnswer>;
