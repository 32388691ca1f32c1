/* choices: what can be chosen of a tree: its sample types, what it is grouped by, and the views of it. */
import type { Flame, SampleType } from "../model/flame.ts";
import { groupOfLabel } from "../model/labels.ts";
import { groups as allGroups, type Update, type View, type ViewState } from "../state.ts";
import { sampleTypeToken, shownType } from "./sample_types.ts";

interface Known {
  /** As far as they are known before there is a tree: another can be chosen where one cannot be shown. */
  sampleTypes?: readonly SampleType[];
  defaultType?: number;
  /** What the tree can be grouped by, where that is not all. */
  groups?: readonly string[];
  /** Labels that the tree can be grouped by, as far as they are known. */
  labelKeys?: readonly string[];
}

/** A choice of the sample type, by its number. */
export function typeChoice(
  flame: Flame | null,
  { sampleTypes = [], defaultType = 0 }: Known,
  state: ViewState,
  update: Update,
) {
  const types = flame?.metadata.sample_types ?? sampleTypes;
  const wanted = types.findIndex((_, index) => sampleTypeToken(types, index) === state.sampleType);
  // What is wanted, be it shown yet or not: it may never come, and then another is chosen instead of it.
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

/** groupChoices is empty where there is no choice. */
export function groupChoice({ groups = allGroups, labelKeys = [] }: Known, state: ViewState) {
  const choices = [...groups, ...labelKeys.map(groupOfLabel)].map(choiceOf);
  // A link may name a label without saying that it is one.
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

/** What is seen, and what beside it. */
export function viewChoice(state: ViewState, update: Update) {
  /** What stood at the side stays there, unless it is chosen itself. */
  const besideOf = (view: View) => (state.beside === view ? "" : state.beside);
  const setBeside = (beside: View | "") => update({ beside });
  return {
    setView: (view: View, marked = state.marked) =>
      update({ view, beside: besideOf(view), ...(marked !== state.marked && { marked }) }),
    setBeside,
    /** The table beside what is seen, or an icicle beside the table. */
    toggleBeside: () => {
      if (state.beside) setBeside("");
      else if (state.view === "table") setBeside("icicle");
      else update({ view: "table", beside: state.view });
    },
  };
}
