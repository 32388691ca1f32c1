/*
 * chain: the ordered rules that are applied to a tree, and their form in a link.
 *
 *   focus      keep stacks in which some frame matches
 *   ignore     drop stacks in which some frame matches
 *   hide       remove matching frames from the stacks; their values go to their callers
 *   show       remove all other frames from the stacks
 *   merge      merge all callees into the matching frame
 *   recursion  a matching function and its recursive calls, at any depth, become one frame
 *   only       hide code that is not the reader's own: `text` names a preset below
 *
 * Focus, ignore, hide and show mean the same as in pprof and in the server's API (name, file or
 * binary matches), with one difference: rules apply in order, so a focus after a hide sees the
 * result of the hide. A stack that loses all its frames is dropped.
 *
 * In a link: rules joined by "~", each "action:text", a "~" in the text doubled, "!" before a rule
 * that is switched off.
 */
export const actions = ["focus", "ignore", "hide", "show", "merge", "recursion", "only"] as const;
export type Action = (typeof actions)[number];

export interface Rule {
  action: Action;
  /** A regular expression as in search.ts; for "only" the name of a preset. */
  text: string;
  isOff: boolean;
}

export interface Preset {
  /** One or two words for a button. */
  name: string;
  label: string;
}

/**
 * Links contain the name of a preset, so a name must not change; presets.ts defines what it hides.
 */
export const presets: Readonly<Record<string, Preset>> = {
  native: { name: "libc", label: "Without libc and the loader" },
  go: { name: "Go", label: "Go: without the runtime and the standard library" },
  rust: { name: "Rust", label: "Rust: without std, core, alloc and async plumbing" },
  cpp: { name: "C++", label: "C++: without the standard library" },
  python: { name: "Python", label: "Python: without the interpreter and the standard library" },
  node: { name: "Node", label: "Node: without V8, Node's own code and dependencies" },
  java: { name: "Java", label: "Java: without the JDK and the virtual machine" },
  dotnet: { name: ".NET", label: ".NET: without the runtime and System" },
  php: { name: "PHP", label: "PHP: without the engine and vendor packages" },
  ruby: { name: "Ruby", label: "Ruby: without the interpreter" },
  kernel: { name: "Kernel", label: "Without the kernel" },
};

const isAction = (text: string): text is Action => (actions as readonly string[]).includes(text);

/** Every action except recursion, which may apply to all functions, needs a text. */
const isComplete = (rule: Rule): boolean =>
  rule.action === "only"
    ? Object.hasOwn(presets, rule.text)
    : rule.action === "recursion" || rule.text !== "";

export function formatChain(rules: readonly Rule[]): string {
  return rules
    .map((rule) => (rule.isOff ? "!" : "") + rule.action + ":" + rule.text.replaceAll("~", "~~"))
    .join("~");
}

function splitAtTildes(text: string): string[] {
  const parts = [""];
  for (let at = 0; at < text.length; at++) {
    if (text[at] !== "~") parts[parts.length - 1] += text[at];
    else if (text[at + 1] === "~") {
      parts[parts.length - 1] += "~";
      at++;
    } else parts.push("");
  }
  return parts;
}

/** Unknown and incomplete rules are left out. */
export function parseChain(text: string): Rule[] {
  const rules: Rule[] = [];
  for (const part of splitAtTildes(text)) {
    const found = /^(!?)([a-z]+):(.*)$/s.exec(part);
    if (!found || !isAction(found[2])) continue;
    const rule: Rule = { action: found[2], text: found[3], isOff: found[1] === "!" };
    if (isComplete(rule)) rules.push(rule);
  }
  return rules;
}

/** The number of rules of a link that parseChain leaves out. */
export const unknownRules = (text: string): number =>
  splitAtTildes(text).filter((part) => part !== "").length - parseChain(text).length;

export const sameRule = (a: Rule, b: Rule): boolean => a.action === b.action && a.text === b.text;
