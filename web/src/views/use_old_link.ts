/*
 * use_old_link: what a link names that was made before addresses had names, when they were `app+0x2a10`, or were called as their
 * sender did. The server is asked only where the profile has addresses that got names since, and only for what this tree does
 * not have.
 */
import { useEffect, useState } from "preact/hooks";
import type { Rule } from "../model/chain.ts";
import type { Flame, FlameMetadata } from "../model/flame.ts";
import { isOfAddress, widened } from "../model/old_names.ts";
import { findByPathHash } from "../model/path.ts";
import { exactly } from "../model/search.ts";
import { servedRules, splitRules } from "../model/served_rules.ts";
import type { ViewState } from "../state.ts";
import { sameNode } from "./rows.ts";
import type { Load } from "./use_flame.ts";

interface OldLink {
  /** Of the state, as long as the server knows names that are not in it. */
  flame: Flame | null;
  isCurrent: boolean;
  state: ViewState;
  /** What names the tree that load gives. */
  flameKey: string;
  load: Load;
}

const mayBeOld = ({ flame, isCurrent }: Pick<OldLink, "flame" | "isCurrent">): boolean => isCurrent && flame?.metadata.named_later === true;

/** The frame that the link zooms to, where it is in the tree under another path than the link's. */
export function useOldZoom(link: OldLink, onFound: (node: number) => void): void {
  const { flame, state, load } = link;
  const isLost = mayBeOld(link) && state.zoom !== "" && findByPathHash(flame!, state.zoom) < 0;
  useEffect(() => {
    if (!isLost) return;
    const abort = new AbortController();
    const active = state.rules.filter((rule) => !rule.isOff);
    // The path is of the tree under rules; those of the page that take out frames take out none of the way's others.
    const { served } = splitRules(active, state.group, state.labels.length);
    load(abort.signal, servedRules(served), undefined, state.zoom).then(
      (tree) => {
        const found = tree.metadata.root ? findByPathHash(tree, tree.metadata.root) : -1;
        const node = found > 0 ? sameNode(tree, found, flame!) : 0;
        if (node > 0 && !abort.signal.aborted) onFound(node);
      },
      () => undefined, // the foot of the viewer says that the frame is not here
    );
    return () => abort.abort();
  }, [isLost, flame, state.zoom]);
}

const noRules = { ignore: [], hide: [], show: [] };

/**
 * Metadata with the names of now for each of the expressions that may be of then. Until they are there, and where there are
 * none, an expression has none.
 */
function useOldNames(link: OldLink, texts: readonly string[]): ReadonlyMap<string, FlameMetadata> {
  const { flameKey, load } = link;
  const [known, setKnown] = useState<{ key: string; names: ReadonlyMap<string, FlameMetadata> }>({ key: "", names: new Map() });
  const wanted = mayBeOld(link) ? [...new Set(texts.filter((text) => link.flame!.metadata.sent_names_replaced || isOfAddress(text)))] : [];
  const key = wanted.length ? [flameKey, ...wanted].join("\n") : "";
  useEffect(() => {
    if (!key || key === known.key) return;
    const abort = new AbortController();
    const namesOf = (text: string) =>
      load(abort.signal, { focus: [text], ...noRules }, undefined, "").then(({ metadata }) => metadata, (): FlameMetadata => ({}));
    void Promise.all(wanted.map(namesOf)).then((names) => {
      if (!abort.signal.aborted) setKnown({ key, names: new Map(wanted.map((text, i) => [text, names[i]])) });
    });
    return () => abort.abort();
  }, [key]);
  return known.names;
}

/** As the server asks it of what a reader typed, which finds either case. */
const searched = (text: string) => (text.startsWith("(?i)") ? text : `(?i)${text}`);

/** What the viewer looks for, by the names of now as well. */
export function useOldTexts(link: OldLink, rest: readonly Rule[]) {
  const { search, marked } = link.state;
  const names = useOldNames(link, [...(search ? [searched(search)] : []), ...(marked ? [exactly(marked)] : []), ...rest.map(({ text }) => text)]);
  return {
    search: search && widened(search, names.get(searched(search))?.renamed),
    /** The one function that the marked address is in. */
    markedNow: (marked && names.get(exactly(marked))?.renamed?.[0]) || "",
    rest: rest.map((rule) => ({ ...rule, text: widened(rule.text, names.get(rule.text)?.renamed) })),
  };
}
