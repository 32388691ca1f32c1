/*
 * rules: the chain of rules as a row of chips, the menu that adds one, and the menu of a frame.
 * What a rule does to the tree is in model/transform.ts.
 */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { presets, sameRule, type Action, type Rule } from "../model/chain.ts";
import { forgetRules, listSavedRules, saveRules } from "../model/saved_rules.ts";
import { compileRule, exactly } from "../model/search.ts";
import type { TransformError } from "../transformer.ts";
import { Button, IconButton, Menu, say, Select } from "../ui/kit.tsx";
import { Icon } from "../ui/icons.tsx";

const actionLabels: Record<Exclude<Action, "only">, string> = {
  focus: "Focus",
  ignore: "Ignore",
  hide: "Hide",
  show: "Show only",
  merge: "Merge callees of",
  recursion: "Collapse recursion of",
};

const actionHints: Record<Exclude<Action, "only">, string> = {
  focus: "Keep stacks in which a function or file matches.",
  ignore: "Leave out stacks in which a function or file matches.",
  hide: "Take matching frames out; their callers get what they held.",
  show: "Take all other frames out.",
  merge: "What matching functions call counts as their own.",
  recursion: "A function inside of itself becomes one frame; all functions when the field is empty.",
};

/** "^main\.run$" is how a rule names one function; a reader wants to see main.run. */
function plainText(text: string): string {
  const inner = /^\^(.*)\$$/s.exec(text)?.[1];
  if (inner === undefined) return text;
  const plain = inner.replace(/\\([\\^$.*+?()[\]{}|/])/g, "$1");
  return exactly(plain) === text ? plain : text;
}

export function describeRule(rule: Rule): [what: string, text: string] {
  if (rule.action === "only") return ["", presets[rule.text].label];
  return [actionLabels[rule.action], rule.action === "recursion" && !rule.text ? "all functions" : plainText(rule.text)];
}

interface RuleBarProps {
  rules: readonly Rule[];
  error: TransformError | null;
  /** How much of the whole the rules left. */
  share: string;
  isOfFiltered: boolean;
  onChange: (rules: Rule[]) => void;
  onOfFiltered: (isOfFiltered: boolean) => void;
}

export function RuleBar({ rules, error, share, isOfFiltered, onChange, onOfFiltered }: RuleBarProps) {
  if (rules.length === 0) return null;
  const active = rules.filter((rule) => !rule.isOff);
  const failed = error && error.rule >= 0 ? active[error.rule] : null;
  const set = (index: number, rule: Rule | null) =>
    onChange(rules.flatMap((old, i) => (i !== index ? [old] : rule ? [rule] : [])));
  return (
    <div class="rules" role="group" aria-label="Rules, applied from left to right">
      <ol>
        {rules.map((rule, i) => {
          const [what, text] = describeRule(rule);
          return (
            <li key={i} class={`rule ${rule.isOff ? "off" : ""} ${rule === failed ? "wrong" : ""}`}>
              <button type="button" class="rule-text" aria-pressed={!rule.isOff} title={rule.isOff ? "Switch on" : "Switch off"} onClick={() => set(i, { ...rule, isOff: !rule.isOff })}>
                {what && <em>{what} </em>}
                <bdi>{text}</bdi>
              </button>
              {i > 0 && (
                <IconButton icon="left" label={`Apply earlier: ${text}`} onClick={() => onChange([...rules.slice(0, i - 1), rule, rules[i - 1], ...rules.slice(i + 1)])} />
              )}
              <IconButton icon="close" label={`Remove rule: ${what} ${text}`.replace("  ", " ")} onClick={() => set(i, null)} />
            </li>
          );
        })}
      </ol>
      <span class="rules-end">
        {error ? (
          <span class="rules-error" role="alert">{error.message}</span>
        ) : (
          <>
            <output aria-live="polite">{share} left</output>
            <label class="check">
              <input type="checkbox" checked={isOfFiltered} onChange={(event) => onOfFiltered(event.currentTarget.checked)} /> as 100%
            </label>
          </>
        )}
        <Button look="quiet" onClick={() => onChange([])}>Clear</Button>
      </span>
    </div>
  );
}

/* ---- adding a rule ---- */

function RuleForm({ onAdd }: { onAdd: (rule: Rule) => void }) {
  const [action, setAction] = useState<Exclude<Action, "only">>("focus");
  const [text, setText] = useState("");
  const [error, setError] = useState("");
  const add = (event: Event) => {
    event.preventDefault();
    try {
      if (text) compileRule(text);
      else if (action !== "recursion") throw new Error("Write a regular expression first.");
    } catch (caught) {
      return setError(caught instanceof Error ? caught.message : "Not a regular expression.");
    }
    onAdd({ action, text, isOff: false });
    setText("");
    setError("");
  };
  return (
    <form class="rule-form" onSubmit={add}>
      <Select label="What the rule does" value={action} onChange={(value) => setAction(value as Exclude<Action, "only">)} choices={Object.entries(actionLabels).map(([value, label]) => ({ value, label }))} />
      <input
        id="rule-text"
        value={text}
        aria-label="Regular expression"
        aria-invalid={error !== ""}
        placeholder="Function or file (regex)"
        autocomplete="off"
        spellcheck={false}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <Button look="primary" type="submit">Add</Button>
      <p class={error ? "rules-error" : "hint"} role={error ? "alert" : undefined}>{error || actionHints[action]}</p>
    </form>
  );
}

function SavedList({ rules, onChoose }: { rules: readonly Rule[]; onChoose: (rules: Rule[]) => void }) {
  const [saved, setSaved] = useState(listSavedRules);
  const [name, setName] = useState("");
  const save = (event: Event) => {
    event.preventDefault();
    if (!name.trim()) return;
    if (!saveRules(name.trim(), [...rules])) say("This browser keeps nothing: the link keeps the rules.");
    setName("");
    setSaved(listSavedRules());
  };
  if (saved.length === 0 && rules.length === 0) return null;
  return (
    <>
      <p class="menu-note">Saved in this browser</p>
      {saved.map((entry) => (
        <span class="saved-rules" key={entry.name}>
          <button type="button" onClick={() => onChoose(entry.rules)}>{entry.name}</button>
          <IconButton icon="close" label={`Forget ${entry.name}`} onClick={() => (forgetRules(entry.name), setSaved(listSavedRules()))} />
        </span>
      ))}
      {rules.length > 0 && (
        <form class="rule-form" onSubmit={save}>
          <input value={name} aria-label="Name for these rules" placeholder="Name for these rules" maxLength={60} onInput={(event) => setName(event.currentTarget.value)} />
          <Button type="submit" disabled={!name.trim()}>Save</Button>
        </form>
      )}
    </>
  );
}

export function RuleMenu({ rules, onChange }: { rules: readonly Rule[]; onChange: (rules: Rule[]) => void }) {
  const add = (rule: Rule) => onChange([...rules.filter((old) => !sameRule(old, rule)), rule]);
  return (
    <Menu label={rules.length ? `Filter · ${rules.length}` : "Filter"} icon="filter" class="rule-menu">
      <RuleForm onAdd={add} />
      <p class="menu-note">Only my code: hide the frames of</p>
      <div class="presets">
        {Object.entries(presets).map(([name, preset]) => {
          const has = rules.some((rule) => rule.action === "only" && rule.text === name);
          const without = rules.filter((rule) => !(rule.action === "only" && rule.text === name));
          return (
            <button type="button" key={name} aria-pressed={has} title={preset.label} onClick={() => onChange(has ? without : [...rules, { action: "only", text: name, isOff: false }])}>
              {has && <Icon name="check" />}
              {preset.name}
            </button>
          );
        })}
      </div>
      <SavedList rules={rules} onChoose={onChange} />
    </Menu>
  );
}

/* ---- the menu of a frame ---- */

export interface MenuPlace {
  node: number;
  x: number;
  y: number;
}

export interface FrameAction {
  label: string;
  /** The key that does the same without the menu. */
  key: string;
  run: () => void;
}

/** Opens at a place on the page; arrows move, Escape closes, and the focus goes back. */
export function FrameMenu({ place, title, items, onClose }: { place: MenuPlace; title: string; items: FrameAction[]; onClose: () => void }) {
  const element = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const menu = element.current!;
    const before = document.activeElement as HTMLElement | null;
    const x = Math.max(8, Math.min(place.x, innerWidth - menu.offsetWidth - 8));
    const y = Math.max(8, Math.min(place.y, innerHeight - menu.offsetHeight - 8));
    menu.style.transform = `translate(${x}px, ${y}px)`;
    menu.querySelector("button")?.focus({ preventScroll: true });
    return () => before?.focus({ preventScroll: true });
  }, [place]);
  useEffect(() => {
    const outside = (event: Event) => element.current?.contains(event.target as Node) || onClose();
    document.addEventListener("pointerdown", outside);
    addEventListener("scroll", onClose, true);
    addEventListener("resize", onClose);
    return () => {
      document.removeEventListener("pointerdown", outside);
      removeEventListener("scroll", onClose, true);
      removeEventListener("resize", onClose);
    };
  }, []);
  const key = (event: KeyboardEvent) => {
    const buttons = [...element.current!.querySelectorAll("button")];
    const at = buttons.indexOf(document.activeElement as HTMLButtonElement);
    const move: Record<string, number> = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: buttons.length - 1 };
    event.stopPropagation();
    if (event.key === "Escape" || event.key === "Tab") onClose();
    else if (event.key in move) buttons[(move[event.key] + buttons.length) % buttons.length].focus();
    else {
      const item = items.find((one) => one.key === event.key);
      if (!item || event.ctrlKey || event.metaKey || event.altKey) return;
      onClose();
      item.run();
    }
    event.preventDefault();
  };
  return (
    <div class="frame-menu" role="menu" aria-label={title} ref={element} onKeyDown={key} onContextMenu={(event) => event.preventDefault()}>
      <p class="frame-menu-title" aria-hidden="true">{title}</p>
      {items.map((item) => (
        <button
          type="button"
          role="menuitem"
          tabIndex={-1}
          key={item.label}
          onClick={() => {
            onClose();
            item.run();
          }}
        >
          <span>{item.label}</span>
          <kbd aria-hidden="true">{item.key}</kbd>
        </button>
      ))}
    </div>
  );
}
