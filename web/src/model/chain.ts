/*
 * chain: the ordered rules that a reader puts on a tree, and how a link writes them.
 *
 *   focus      keep stacks in which some frame matches
 *   ignore     leave out stacks in which some frame matches
 *   hide       take matching frames out of the stacks; what they held is their caller's
 *   show       take all other frames out of the stacks
 *   merge      what a matching frame calls is merged into it
 *   recursion  a matching function that is called, however deep, by itself is one frame
 *   only       hide what is not the reader's own code: `text` names a preset below
 *
 * Focus, ignore, hide and show mean what they mean in pprof and in the server's API (name, file or
 * binary matches), with one difference: rules apply one after the other, so that a focus after a hide looks
 * at what the hide left. A stack that loses all its frames is left out.
 *
 * In a link: rules joined by "~", each "action:text", a "~" in the text doubled, "!" before a rule
 * that is switched off for now.
 */
export const actions = ["focus", "ignore", "hide", "show", "merge", "recursion", "only"] as const;
export type Action = (typeof actions)[number];

export interface Rule {
  action: Action;
  /** A regular expression as search.ts takes it; for "only" the name of a preset. */
  text: string;
  isOff: boolean;
}

export interface Preset {
  /** A word or two for a button. */
  name: string;
  label: string;
}

/** Links name a preset, so its name stays; what it hides is in presets.ts. */
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

/** Every action but recursion, which may mean all functions, needs a text. */
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

/** Rules that this version does not know, or that say nothing, are left out. */
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

/** How many rules of a link parseChain leaves out. */
export const unknownRules = (text: string): number =>
  splitAtTildes(text).filter((part) => part !== "").length - parseChain(text).length;

export const sameRule = (a: Rule, b: Rule): boolean => a.action === b.action && a.text === b.text;
