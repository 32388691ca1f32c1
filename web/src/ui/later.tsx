/*
 * later: a component in a later chunk, which is loaded when it is first shown or shortly before,
 * and its style sheet.
 */
import type { ComponentType, VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { lostScript, type Problem } from "../api/api.ts";
import { Loading, ProblemView } from "./kit.tsx";

export interface Later<Props> {
  Component: ComponentType<Props>;
  /** Loads the chunk now, because it will be shown soon. */
  preload: () => void;
}

/** around: wraps the component's place until it is loaded. */
export function later<Props extends object>(
  load: () => Promise<ComponentType<Props>>,
  around: (content: VNode, props: Props) => VNode = (content) => content,
): Later<Props> {
  let loaded: ComponentType<Props> | null = null;
  let loading: Promise<ComponentType<Props>> | null = null;
  const get = () => {
    loading ??= load().then(
      (made) => (loaded = made),
      async () => {
        loading = null; // the network may be back at the next attempt
        throw await lostScript();
      },
    );
    return loading;
  };
  function Component(props: Props) {
    const [Made, setMade] = useState(() => loaded);
    const [problem, setProblem] = useState<Problem | null>(null);
    useEffect(() => {
      if (Made || problem) return;
      get().then((made) => setMade(() => made), setProblem);
    }, [problem]);
    if (Made) return <Made {...props} />;
    return around(
      problem ? <ProblemView problem={problem} onRetry={() => setProblem(null)} /> : <Loading />,
      props,
    );
  }
  return { Component, preload: () => void get().catch(() => undefined) };
}

/* ---- style sheets of later chunks ---- */

const known = new Set<string>();
let last: CSSStyleSheet | null = null;

/**
 * Adds the style sheet of a chunk. It is constructed by script because the policy forbids inline
 * styles. It follows app.css and the sheets added before, so it must contain its own rules for
 * small screens. isLast: keeps precedence over all sheets added later; at most one sheet has it.
 */
export function addStyle(text: string, isLast = false): void {
  if (known.has(text)) return;
  known.add(text);
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(text);
  const others = document.adoptedStyleSheets.filter((one) => one !== last);
  if (isLast) last = sheet;
  document.adoptedStyleSheets = isLast
    ? [...others, sheet]
    : [...others, sheet, ...(last ? [last] : [])];
}
