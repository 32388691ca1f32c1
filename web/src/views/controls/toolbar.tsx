/* toolbar: the settings of the view: panes, sample type, grouping, colours, rules, search. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Rule } from "../../model/rules/chain.ts";
import type { Flame, SampleType } from "../../model/tree/flame.ts";
import {
  colourModes,
  type ColourMode,
  type Update,
  type View,
  type ViewState,
} from "../../view_state.ts";
import { Button, Segments, Select } from "../../ui/kit.tsx";
import { colourNames } from "../foot/legend.tsx";
import { panes } from "../panes.tsx";
import { RuleMenu } from "./rules.tsx";
import { sampleTypeLabel } from "./choices.ts";
import { SearchBox, type Searching } from "./search_box.tsx";
import type { Regroup } from "../loading/use_regrouped.ts";

interface ToolbarProps {
  state: ViewState;
  update: Update;
  offered: readonly View[];
  sampleTypes: readonly SampleType[];
  typeIndex: number;
  /** Empty if there is no choice. */
  groupChoices: { value: string; label: string }[];
  group: string;
  isDiff?: boolean;
  isFile?: boolean;
  /** The server can return other forms of names. */
  canChooseNames: boolean;
  commentCount?: number;
  tools?: ComponentChildren;
  flame: Flame | null;
  searching: Searching;
  isMoved: boolean;
  canSave: boolean;
  onView: (view: View) => void;
  onRegroup: Regroup;
  onBeside: (view: View | "") => void;
  onType: (index: number) => void;
  onRules: (rules: readonly Rule[]) => void;
  onMatch: (step: 1 | -1) => void;
  onShowAll: () => void;
  onSave: () => void;
  onKeys: () => void;
}

/** The second view, sample type, grouping and colours. */
function ViewSelects(props: ToolbarProps) {
  const { state, update, offered, sampleTypes, typeIndex, groupChoices, group, isDiff } = props;
  const { onRegroup, onBeside, onType } = props;
  return (
    <>
      <Select
        label="Second view"
        value={state.beside}
        choices={[
          { value: "", label: "one view" },
          ...offered
            .filter((view) => view !== state.view)
            .map((view) => ({
              value: view as string,
              label: `+ ${panes[view].label.toLowerCase()}`,
            })),
        ]}
        onChange={(view) => onBeside(view as View | "")}
      />
      {sampleTypes.length > 0 && (
        <Select
          label="Sample type"
          value={String(typeIndex)}
          choices={sampleTypes.map((_, i) => ({
            value: String(i),
            label: sampleTypeLabel(sampleTypes, i),
          }))}
          onChange={(value) => onType(Number(value))}
        />
      )}
      {groupChoices.length > 0 && (
        <Select
          label="Group"
          value={group}
          choices={groupChoices}
          onChange={(group) => onRegroup({ group })}
        />
      )}
      {!isDiff && (
        <Select
          label="Colours"
          value={state.colour}
          choices={colourModes.map((mode) => ({
            value: mode,
            label: `colour: ${colourNames[mode]}`,
          }))}
          onChange={(mode) => update({ colour: mode as ColourMode })}
        />
      )}
    </>
  );
}

export function Toolbar(props: ToolbarProps) {
  const {
    state,
    update,
    offered,
    isFile,
    canChooseNames,
    commentCount,
    tools,
    flame,
    searching,
    isMoved,
    canSave,
  } = props;
  const { onView, onRegroup, onRules, onMatch, onShowAll, onSave, onKeys } = props;
  /** On a phone, most of the toolbar is folded to leave space for the picture. */
  const [isFolded, setFolded] = useState(true);
  return (
    <div class={`toolbar ${isFolded ? "folded" : ""}`}>
      <Segments
        isCompact
        label="View"
        value={state.view}
        onChange={onView}
        choices={offered.map((view) => ({
          value: view,
          label: panes[view].label,
          icon: panes[view].icon,
          count: view === "comments" ? commentCount : 0,
        }))}
      />
      <ViewSelects {...props} />
      <RuleMenu
        rules={state.rules}
        onChange={onRules}
        names={state.names}
        onNames={canChooseNames && ((names) => onRegroup({ names }))}
      />
      {tools}
      <SearchBox
        text={state.search}
        flame={flame}
        searching={searching}
        onText={(text) => update({ search: text }, "replace")}
        onNext={onMatch}
      />
      <Button
        icon="settings"
        class="fold-button"
        aria-expanded={!isFolded}
        onClick={() => setFolded(!isFolded)}
        title="More settings of the view"
        aria-label="More settings of the view"
      />
      <span class="toolbar-end">
        <Button
          icon="zoomout"
          class="reset-button"
          disabled={!isMoved}
          onClick={onShowAll}
          title="Show everything (0)"
          aria-label="Reset zoom"
        />
        {!isFile && (
          <Button
            icon="download"
            disabled={!canSave}
            onClick={onSave}
            title="Save this view (e)"
            aria-label="Save this view"
          />
        )}
        <Button
          icon="keyboard"
          class="keys-button"
          onClick={onKeys}
          title="Keys (?)"
          aria-label="Keys"
        />
      </span>
    </div>
  );
}

/** For comparisons. */
export function NormaliseButton(props: { isNormalised: boolean; onClick: () => void }) {
  return (
    <Button
      class="toggle"
      aria-pressed={props.isNormalised}
      onClick={props.onClick}
      title="Scale both sides to the same total (%)"
    >
      Normalise
    </Button>
  );
}
