/* fit: a view of one profile as another can show it: what that has not falls back, and is told. */
import type { ViewState } from "../state.ts";
import { groups } from "../state.ts";
import { parseLabelRule } from "./labels.ts";
import type { SampleType } from "./flame.ts";

/** What a view may ask of a profile. */
export interface Holdings {
  sampleTypes: readonly SampleType[];
  /** Number of the type that is shown unless another is asked for. */
  defaultType: number;
  /** Labels of its samples; undefined where they are not known. */
  labels?: readonly string[];
}

const hasType = (types: readonly SampleType[], word: string) =>
  types.some(({ type }) => type === word) || (/^\d+$/.test(word) && Number(word) < types.length);

/** lacks: sentences, one for each thing that the other profile has not. */
export function fitView(
  state: ViewState,
  { sampleTypes, defaultType, labels }: Holdings,
): { state: ViewState; lacks: string[] } {
  const fitted = { ...state, root: "" };
  const lacks: string[] = [];
  if (state.sampleType && !hasType(sampleTypes, state.sampleType)) {
    const shown = sampleTypes[defaultType]?.type || `type ${defaultType}`;
    lacks.push(`This profile has no sample type “${state.sampleType}”, so “${shown}” is shown.`);
    Object.assign(fitted, { sampleType: "", zoom: "", window: null });
  }
  const lacksLabel = (key: string) => labels !== undefined && !labels.includes(key);
  const grouped = state.group.replace(/^label:/, "");
  if (!groups.some((group) => group === state.group) && lacksLabel(grouped)) {
    lacks.push(`No sample of this profile has a label “${grouped}” to group by.`);
    Object.assign(fitted, { group: "function", zoom: "", window: null });
  }
  const isOfOther = (rule: string) => lacksLabel(parseLabelRule(rule)?.key ?? "");
  const left = state.labels.filter((rule) => !isOfOther(rule));
  if (left.length < state.labels.length) {
    lacks.push(
      `Ignored because this profile has no such labels: ${state.labels.filter(isOfOther).join(", ")}.`,
    );
    fitted.labels = left;
  }
  return { state: fitted, lacks };
}
