/*
 * rules: the chain of rules as a row of chips, the menu that adds one (rule_menu.tsx), and the menu of a frame.
 * What a rule does to the tree is in model/transform.ts.
 */
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { presets, type Action, type Rule } from "../model/chain.ts";
import { describeLabelRule, turnLabelRule } from "../model/labels.ts";
import { exactly } from "../model/search.ts";
import type { TransformError } from "../transformer.ts";
import { Button, IconButton, Menu } from "../ui/kit.tsx";
import { later } from "../ui/later.tsx";

export const actionLabels: Record<Exclude<Action, "only">, string> = {
  focus: "Focus",
  ignore: "Ignore",
  hide: "Hide",
  show: "Show only",
  merge: "Merge callees of",
  recursion: "Collapse recursion of",
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
  /** Of labels, which come before all others. */
  labels: readonly string[];
  error: TransformError | null;
  /** How much of the whole the rules left. */
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
      <button type="button" class="rule-text" title="Turn it round: is, is not" onClick={() => onChange(turnLabelRule(rule))}>
        <em>{what} </em>
        <bdi>{value}</bdi>
      </button>
      <IconButton icon="close" label={`Remove: ${what} ${value}`} onClick={() => onChange(null)} />
    </li>
  );
}

export function RuleBar({ rules, labels, error, share, isOfFiltered, onChange, onLabels, onClear, onOfFiltered }: RuleBarProps) {
  if (rules.length === 0 && labels.length === 0) return null;
  const active = rules.filter((rule) => !rule.isOff);
  const failed = error && error.rule >= 0 ? active[error.rule] : null;
  const set = (index: number, rule: Rule | null) =>
    onChange(rules.flatMap((old, i) => (i !== index ? [old] : rule ? [rule] : [])));
  return (
    <div class="rules" role="group" aria-label="Rules, applied from left to right">
      <ol>
        {labels.map((label, i) => (
          <LabelChip key={`label ${i}`} rule={label} onChange={(changed) => onLabels(labels.flatMap((old, at) => (at !== i ? [old] : changed ? [changed] : [])))} />
        ))}
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
            {share && <output aria-live="polite">{share} left</output>}
            <label class="check">
              <input type="checkbox" checked={isOfFiltered} onChange={(event) => onOfFiltered(event.currentTarget.checked)} /> as 100%
            </label>
          </>
        )}
        <Button look="quiet" onClick={onClear}>Clear</Button>
      </span>
    </div>
  );
}

/* ---- adding a rule ---- */

const content = later(async () => (await import("./rule_menu.tsx")).RuleMenuContent);

export function RuleMenu({ rules, onChange }: { rules: readonly Rule[]; onChange: (rules: Rule[]) => void }) {
  return (
    <Menu isLazy label={rules.length ? `Filter · ${rules.length}` : "Filter"} icon="filter" class="rule-menu">
      <content.Component rules={rules} onChange={onChange} />
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
