/* choices: the choices for a tree: sample types with their names, groupings and views. */
import type { Flame, SampleType } from "../../model/tree/flame.ts";
import { groupOfLabel } from "../../model/rules/labels.ts";
import { groups as allGroups, type Update, type View, type ViewState } from "../../view_state.ts";

interface Known {
  /**
   * The sample types if they are known before the tree, so that another can be chosen if one cannot
   * be shown.
   */
  sampleTypes?: readonly SampleType[];
  defaultType?: number;
  /** The available groupings; default: all. */
  groups?: readonly string[];
  /** The labels that the tree can be grouped by, as far as they are known. */
  labelKeys?: readonly string[];
}

/**
 * The token of a type in the state: its name, or its index if names are empty, repeat or look like
 * an index.
 */
export function sampleTypeToken(types: readonly SampleType[], index: number): string {
  const name = types[index].type;
  const isUnique = types.filter((other) => other.type === name).length === 1;
  return name && isUnique && !/^\d+$/.test(name) ? name : String(index);
}

/**
 * The name, with the unit if names repeat. A type without a name is shown by its index, as in the
 * API and the command line.
 */
export function sampleTypeLabel(types: readonly SampleType[], index: number): string {
  const { type, unit } = types[index];
  const isUnique = types.filter((other) => other.type === type).length === 1;
  return type && isUnique ? type : `${type || `type ${index}`}${unit ? ` (${unit})` : ""}`;
}

/** The index of the type that the tree has. */
function shownType(flame: Flame, types: readonly SampleType[]): number {
  const byIndex = flame.metadata.sample_type_index;
  if (typeof byIndex === "number" && byIndex < types.length) return byIndex;
  return Math.max(
    0,
    types.findIndex((type) => type.type === flame.metadata.sample_type),
  );
}

/** The choice of the sample type, by index. */
export function typeChoice(
  flame: Flame | null,
  { sampleTypes = [], defaultType = 0 }: Known,
  state: ViewState,
  update: Update,
) {
  const types = flame?.metadata.sample_types ?? sampleTypes;
  const wanted = types.findIndex((_, index) => sampleTypeToken(types, index) === state.sampleType);
  // The requested type, even if it is not shown yet: its tree may never arrive, and then another
  // one can be chosen.
  const typeIndex = wanted >= 0 ? wanted : flame ? shownType(flame, types) : defaultType;
  const isKnown = state.sampleType === "" || wanted >= 0;
  return {
    types,
    typeIndex,
    isKnown,
    chooseType: (index: number) => update({ sampleType: sampleTypeToken(types, index), root: "" }),
  };
}

const choiceOf = (group: string) => ({ value: group, label: `by ${group.replace(/^label:/, "")}` });

/** groupChoices is empty if there is no choice. */
export function groupChoice({ groups = allGroups, labelKeys = [] }: Known, state: ViewState) {
  const choices = [...groups, ...labelKeys.map(groupOfLabel)].map(choiceOf);
  // A link may name a label without the "label:" prefix.
  const group =
    labelKeys.includes(state.group) && !groups.includes(state.group)
      ? groupOfLabel(state.group)
      : state.group;
  if (!choices.some(({ value }) => value === group)) choices.push(choiceOf(group));
  return {
    group,
    groupChoices: groups.length > 1 ? choices : [],
    nextGroup: groups[(groups.indexOf(state.group) + 1) % groups.length],
  };
}

/** The view and the second view. */
export function viewChoice(state: ViewState, update: Update) {
  /** The second view stays, unless it is chosen as the first one. */
  const besideOf = (view: View) => (state.beside === view ? "" : state.beside);
  const setBeside = (beside: View | "") => update({ beside });
  return {
    setView: (view: View, marked = state.marked) =>
      update({ view, beside: besideOf(view), ...(marked !== state.marked && { marked }) }),
    setBeside,
    /** Adds the table beside the view, or an icicle beside the table. */
    toggleBeside: () => {
      if (state.beside) setBeside("");
      else if (state.view === "table") setBeside("icicle");
      else update({ view: "table", beside: state.view });
    },
  };
}
