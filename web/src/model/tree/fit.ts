/*
 * fit: adapts a view of one profile to another profile: a part of the view that the other profile
 * lacks is replaced by a default and reported.
 */
import { groups, type ViewState } from "../../view_state.ts";
import { parseLabelRule } from "../rules/labels.ts";
import type { SampleType } from "./flame.ts";

/** The properties of a profile that a view may refer to. */
export interface ProfileProperties {
  sampleTypes: readonly SampleType[];
  /** The index of the type that is shown by default. */
  defaultType: number;
  /** The labels of its samples; undefined if they are unknown. */
  labels?: readonly string[];
}

const hasType = (types: readonly SampleType[], word: string) =>
  types.some(({ type }) => type === word) || (/^\d+$/.test(word) && Number(word) < types.length);

/** missing: a sentence for each part of the view that the other profile lacks. */
export function fitView(
  state: ViewState,
  { sampleTypes, defaultType, labels }: ProfileProperties,
): { state: ViewState; missing: string[] } {
  const fitted = { ...state, root: "" };
  const missing: string[] = [];
  if (state.sampleType && !hasType(sampleTypes, state.sampleType)) {
    const shown = sampleTypes[defaultType]?.type || `type ${defaultType}`;
    missing.push(`This profile has no sample type “${state.sampleType}”, so “${shown}” is shown.`);
    Object.assign(fitted, { sampleType: "", zoom: "", window: null });
  }
  const lacksLabel = (key: string) => labels !== undefined && !labels.includes(key);
  const grouped = state.group.replace(/^label:/, "");
  if (!groups.some((group) => group === state.group) && lacksLabel(grouped)) {
    missing.push(`No sample of this profile has a label “${grouped}” to group by.`);
    Object.assign(fitted, { group: "function", zoom: "", window: null });
  }
  const isOfOther = (rule: string) => lacksLabel(parseLabelRule(rule)?.key ?? "");
  const left = state.labels.filter((rule) => !isOfOther(rule));
  if (left.length < state.labels.length) {
    missing.push(
      "Ignored because this profile has no such labels: " +
        `${state.labels.filter(isOfOther).join(", ")}.`,
    );
    fitted.labels = left;
  }
  return { state: fitted, missing };
}
