/*
 * rule_menu: the content of the rule menu: a form for a new rule, presets, and rules saved in this
 * browser.
 */
import { useState } from "preact/hooks";
import { presets, sameRule, type Action, type Rule } from "../../model/rules/chain.ts";
import { forgetRules, listSavedRules, saveRules } from "../../model/storage/saved_rules.ts";
import { compileRule } from "../../model/search/search.ts";
import { nameModes, type NameMode } from "../../view_state.ts";
import { Button, IconButton, showMessage, Segments, Select } from "../../ui/kit.tsx";
import { Icon } from "../../ui/icons.tsx";
import { actionLabels, type RuleMenuProps } from "./rules.tsx";
import { addStyle } from "../../ui/later.tsx";
import style from "./rule_menu.css?text";

addStyle(style);

const actionHints: Record<Exclude<Action, "only">, string> = {
  focus: "Keep stacks in which a function, file or binary matches.",
  ignore: "Remove stacks in which a function, file or binary matches.",
  hide: "Remove matching frames; their values go to their callers.",
  show: "Remove all other frames.",
  merge: "Add the values of callees to matching functions.",
  recursion:
    "Merge recursive calls of matching functions into one frame; an empty field means all " +
    "functions.",
};

function RuleForm({ onAdd }: { onAdd: (rule: Rule) => void }) {
  const [action, setAction] = useState<Exclude<Action, "only">>("focus");
  const [text, setText] = useState("");
  const [error, setError] = useState("");
  const add = (event: Event) => {
    event.preventDefault();
    try {
      if (text) compileRule(text);
      else if (action !== "recursion") throw new Error("Enter a regular expression.");
    } catch (caught) {
      return setError(
        caught instanceof Error ? caught.message : "This is not a valid regular expression.",
      );
    }
    onAdd({ action, text, isOff: false });
    setText("");
    setError("");
  };
  return (
    <form class="rule-form" onSubmit={add}>
      <Select
        label="What the rule does"
        value={action}
        onChange={(value) => setAction(value as Exclude<Action, "only">)}
        choices={Object.entries(actionLabels).map(([value, label]) => ({ value, label }))}
      />
      <input
        id="rule-text"
        value={text}
        aria-label="Regular expression"
        aria-invalid={error !== ""}
        placeholder="Function, file or binary (regex)"
        autocomplete="off"
        spellcheck={false}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <Button look="primary" type="submit">
        Add
      </Button>
      <p class={error ? "rules-error" : "hint"} role={error ? "alert" : undefined}>
        {error || `${actionHints[action]} Case-sensitive; start with (?i) to ignore case.`}
      </p>
    </form>
  );
}

function SavedList({
  rules,
  onChoose,
}: {
  rules: readonly Rule[];
  onChoose: (rules: Rule[]) => void;
}) {
  const [saved, setSaved] = useState(listSavedRules);
  const [name, setName] = useState("");
  const save = (event: Event) => {
    event.preventDefault();
    if (!name.trim()) return;
    if (!saveRules(name.trim(), [...rules]))
      showMessage("This browser does not allow storage. Copy the link to keep the rules.");
    setName("");
    setSaved(listSavedRules());
  };
  if (saved.length === 0 && rules.length === 0) return null;
  return (
    <>
      <p class="menu-note">Saved in this browser</p>
      {saved.map((entry) => (
        <span class="saved-rules" key={entry.name}>
          <button type="button" onClick={() => onChoose(entry.rules)}>
            {entry.name}
          </button>
          <IconButton
            icon="close"
            label={`Forget ${entry.name}`}
            onClick={() => (forgetRules(entry.name), setSaved(listSavedRules()))}
          />
        </span>
      ))}
      {rules.length > 0 && (
        <form class="rule-form" onSubmit={save}>
          <input
            value={name}
            aria-label="Name for these rules"
            placeholder="Name for these rules"
            maxLength={60}
            onInput={(event) => setName(event.currentTarget.value)}
          />
          <Button type="submit" disabled={!name.trim()}>
            Save
          </Button>
        </form>
      )}
    </>
  );
}

const nameWords: Record<NameMode, string> = { simple: "Simple", full: "Full", none: "Mangled" };

export function RuleMenuContent({ rules, onChange, names, onNames }: RuleMenuProps) {
  const add = (rule: Rule) => onChange([...rules.filter((old) => !sameRule(old, rule)), rule]);
  return (
    <>
      <RuleForm onAdd={add} />
      <p class="menu-note">Only my code: hide the frames of</p>
      <div class="presets">
        {Object.entries(presets).map(([name, preset]) => {
          const has = rules.some((rule) => rule.action === "only" && rule.text === name);
          const without = rules.filter((rule) => !(rule.action === "only" && rule.text === name));
          return (
            <button
              type="button"
              key={name}
              aria-pressed={has}
              title={preset.label}
              onClick={() =>
                onChange(has ? without : [...rules, { action: "only", text: name, isOff: false }])
              }
            >
              {has && <Icon name="check" />}
              {preset.name}
            </button>
          );
        })}
      </div>
      <SavedList rules={rules} onChoose={onChange} />
      {onNames && (
        <>
          <p class="menu-note">C++ and Rust names, where they come from symbol tables</p>
          <Segments
            label="Names"
            value={names}
            choices={nameModes.map((mode) => ({ value: mode, label: nameWords[mode] }))}
            onChange={onNames}
          />
        </>
      )}
    </>
  );
}
