/*
 * rules: the rule chain as a row of chips, and the menu that adds a rule (rule_menu.tsx).
 * model/rules/transform.ts applies the rules.
 */
import { presets, type Action, type Rule } from "../../model/rules/chain.ts";
import { describeLabelRule, invertLabelRule } from "../../model/rules/labels.ts";
import { exactPattern } from "../../model/search/escape_regex.ts";
import type { NameMode } from "../../view_state.ts";
import type { TransformError } from "../../workers/transformer.ts";
import { Button, IconButton, Menu } from "../../ui/kit.tsx";
import { later } from "../../ui/later.tsx";

export const actionLabels: Record<Exclude<Action, "only">, string> = {
  focus: "Focus",
  ignore: "Ignore",
  hide: "Hide",
  show: "Show only",
  merge: "Fold callees of",
  recursion: "Collapse recursion of",
};

/** A rule refers to one function as "^main\.run$"; the chip shows main.run. */
function plainText(text: string): string {
  const inner = /^\^(.*)\$$/s.exec(text)?.[1];
  if (inner === undefined) return text;
  const plain = inner.replace(/\\([\\^$.*+?()[\]{}|/])/g, "$1");
  return exactPattern(plain) === text ? plain : text;
}

export function describeRule(rule: Rule): [what: string, text: string] {
  if (rule.action === "only") return ["", presets[rule.text].label];
  return [
    actionLabels[rule.action],
    rule.action === "recursion" && !rule.text ? "all functions" : plainText(rule.text),
  ];
}

interface RuleBarProps {
  rules: readonly Rule[];
  /** The label rules, which precede all others. */
  labels: readonly string[];
  error: TransformError | null;
  /** The rule that the error is about. */
  failed?: Rule;
  /** The share of the profile that the rules left. */
  share: string;
  isOfFiltered: boolean;
  onChange: (rules: readonly Rule[]) => void;
  onLabels: (labels: string[]) => void;
  onClear: () => void;
  onOfFiltered: (isOfFiltered: boolean) => void;
}

function LabelChip({ rule, onChange }: { rule: string; onChange: (rule: string | null) => void }) {
  const [what, value] = describeLabelRule(rule);
  return (
    <li class="rule label-rule">
      <button
        type="button"
        class="rule-text"
        title="Invert: is, is not"
        onClick={() => onChange(invertLabelRule(rule))}
      >
        <em>{what} </em>
        <bdi>{value}</bdi>
      </button>
      <IconButton icon="close" label={`Remove: ${what} ${value}`} onClick={() => onChange(null)} />
    </li>
  );
}

export function RuleBar({
  rules,
  labels,
  error,
  failed,
  share,
  isOfFiltered,
  onChange,
  onLabels,
  onClear,
  onOfFiltered,
}: RuleBarProps) {
  if (rules.length === 0 && labels.length === 0) return null;
  const set = (index: number, rule: Rule | null) =>
    onChange(rules.flatMap((old, i) => (i !== index ? [old] : rule ? [rule] : [])));
  return (
    <div class="rules" role="group" aria-label="Rules, applied from left to right">
      <ol>
        {labels.map((label, i) => (
          <LabelChip
            key={`label ${i}`}
            rule={label}
            onChange={(changed) =>
              onLabels(labels.flatMap((old, at) => (at !== i ? [old] : changed ? [changed] : [])))
            }
          />
        ))}
        {rules.map((rule, i) => {
          const [what, text] = describeRule(rule);
          return (
            <li key={i} class={`rule ${rule.isOff ? "off" : ""} ${rule === failed ? "wrong" : ""}`}>
              <button
                type="button"
                class="rule-text"
                aria-pressed={!rule.isOff}
                title={rule.isOff ? "Switch on" : "Switch off"}
                onClick={() => set(i, { ...rule, isOff: !rule.isOff })}
              >
                {what && <em>{what} </em>}
                <bdi>{text}</bdi>
              </button>
              {i > 0 && (
                <IconButton
                  icon="left"
                  label={`Apply earlier: ${text}`}
                  onClick={() =>
                    onChange([...rules.slice(0, i - 1), rule, rules[i - 1], ...rules.slice(i + 1)])
                  }
                />
              )}
              <IconButton
                icon="close"
                label={`Remove rule: ${what} ${text}`.replace("  ", " ")}
                onClick={() => set(i, null)}
              />
            </li>
          );
        })}
      </ol>
      <span class="rules-end">
        {error ? (
          <span class="rules-error" role="alert">
            {error.message}
          </span>
        ) : (
          <>
            {share && <output aria-live="polite">{share} left</output>}
            <label class="check">
              <input
                type="checkbox"
                checked={isOfFiltered}
                onChange={(event) => onOfFiltered(event.currentTarget.checked)}
              />{" "}
              as 100%
            </label>
          </>
        )}
        <Button look="quiet" onClick={onClear}>
          Clear
        </Button>
      </span>
    </div>
  );
}

/* ---- adding a rule ---- */

const content = later(async () => (await import("./rule_menu.tsx")).RuleMenuContent);

export interface RuleMenuProps {
  rules: readonly Rule[];
  onChange: (rules: Rule[]) => void;
  names: NameMode;
  /** Absent if the names cannot be changed. */
  onNames?: false | ((names: NameMode) => void);
}

export function RuleMenu(props: RuleMenuProps) {
  const { rules } = props;
  return (
    <Menu
      isLazy
      label={rules.length ? `Filter · ${rules.length}` : "Filter"}
      icon="filter"
      class="rule-menu"
    >
      <content.Component {...props} />
    </Menu>
  );
}
