/*
 * labels: rules that select samples by their labels, as in the server's API
 * (lib/profile/report/label_filter.h), and the counts of labels by the server, or by the browser
 * for a local file.
 *
 *   key=value    has this value; several rules of one key: has any of the values
 *   key!=value   does not have it
 *   key=         has no such label; key!= has one
 */

export const maxLabelRules = 32;

export interface LabelRule {
  key: string;
  value: string;
  excludes: boolean;
}

/** null if the text is not a rule. */
export function parseLabelRule(text: string): LabelRule | null {
  const found = /^((?:\\[^]|[^\\=])+)=([^]*)$/.exec(text);
  if (!found) return null;
  const excludes = /(^|[^\\])(\\\\)*!$/.test(found[1]);
  const key = (excludes ? found[1].slice(0, -1) : found[1]).replace(/\\([^])/g, "$1");
  return key ? { key, value: found[2], excludes } : null;
}

export const formatLabelRule = ({ key, value, excludes }: LabelRule): string =>
  key.replace(/[\\=]|!$/g, "\\$&") + (excludes ? "!=" : "=") + value;

/** Inverts the rule: is, is not. */
export function invertLabelRule(text: string): string {
  const rule = parseLabelRule(text);
  return rule ? formatLabelRule({ ...rule, excludes: !rule.excludes }) : text;
}

/** ["thread is", "io"]; for a chip. */
export function describeLabelRule(text: string): [what: string, value: string] {
  const rule = parseLabelRule(text);
  if (!rule) return ["", text];
  if (rule.value === "") return [rule.excludes ? "with" : "without", rule.key];
  return [`${rule.key} ${rule.excludes ? "is not" : "is"}`, rule.value];
}

/** Only valid rules, without duplicates. */
export const cleanLabelRules = (texts: readonly string[]): string[] =>
  [...new Set(texts)].filter((text) => parseLabelRule(text)).slice(0, maxLabelRules);

/** Identifies a list of rules; equal lists have equal keys. */
export const formatLabels = (texts: readonly string[]): string => JSON.stringify(texts);

/** Marks a label as a grouping. */
const groupPrefix = "label:";
export const groupOfLabel = (key: string): string => groupPrefix + key;

/** The labels that a view needs in its samples: those of its rules and of its grouping. */
export function labelsOfView(rules: readonly string[], group: string): string[] {
  const keys = rules.map((rule) => parseLabelRule(rule)?.key ?? "");
  if (group.startsWith(groupPrefix)) keys.push(group.slice(groupPrefix.length));
  return [...new Set(keys)].filter(Boolean);
}

/* ---- counts ---- */

/** Counts of one profile, or of both sides of a diff. */
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
  /** The rule that selects it; absent if it cannot be written as a rule. */
  filter?: string;
}

export interface LabelBar extends LabelCount {
  low: number;
  high: number;
}

export interface Label extends LabelCount {
  key: string;
  is_numeric: boolean;
  /** The common unit of all values, if any. */
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

export interface LabelsResponse {
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

export interface LabelsRequest {
  rules: readonly string[];
  focus: readonly string[];
  ignore: readonly string[];
  /** "" for all. */
  key: string;
  /** The maximum number of values per label; 0 for all. */
  limit: number;
}

export type LoadLabels = (
  labelsRequest: LabelsRequest,
  signal: AbortSignal,
) => Promise<LabelsResponse>;
