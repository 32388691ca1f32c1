/*
 * use_old_link: what a link names that was made before addresses had names, when they were `app+0x2a10`, or were called as their
 * sender did. The server is asked (find_old.ts) only where the profile has addresses that got names since, and only for what this
 * tree does not have.
 */
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Rule } from "../model/chain.ts";
import type { Flame, FlameMetadata } from "../model/flame.ts";
import { isOfAddress, widened } from "../model/old_names.ts";
import { findByPathHash } from "../model/path.ts";
import { exactly } from "../model/escape_regex.ts";
import type { ViewState } from "../state.ts";
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

const mayBeOld = ({ flame, isCurrent }: Pick<OldLink, "flame" | "isCurrent">): boolean =>
  isCurrent && flame?.metadata.named_later === true;

/** Asks once for each key, "" for none. Where no answer comes the foot of the viewer says that the frame is not here. */
function useFound<Found>(
  key: unknown,
  ask: (code: typeof import("./find_old.ts"), signal: AbortSignal) => Promise<Found>,
  onFound: (found: Found) => void,
): void {
  useEffect(() => {
    if (!key) return;
    const abort = new AbortController();
    import("./find_old.ts")
      .then((code) => ask(code, abort.signal))
      .then(
        (found) => abort.signal.aborted || onFound(found),
        () => undefined,
      );
    return () => abort.abort();
  }, [key]);
}

/** Is there a tree, and no such path in it? Kept, since whatever is pointed at renders, and this looks at every node. */
const useLost = (tree: Flame | null, path = ""): boolean =>
  useMemo(() => tree !== null && path !== "" && findByPathHash(tree, path) < 0, [tree, path]);

/** The frame that the link zooms to, where it is in the tree under another path than the link's. */
export function useOldZoom(link: OldLink, onFound: (node: number) => void): void {
  const { flame, state, load } = link;
  const isLost = useLost(mayBeOld(link) ? flame : null, state.zoom);
  useFound(
    isLost && flame,
    ({ findOldZoom }, signal) => findOldZoom(load, state, flame!, signal),
    (node) => node > 0 && onFound(node),
  );
}

/** What is seen of the halves of a sandwich, likewise. */
export function useOldHalves(
  link: OldLink,
  halves: Record<"callers" | "callees", Flame | null>,
  onFound: (found: Pick<ViewState, "above" | "below">) => void,
): void {
  const { state, load } = link;
  const { above, below } = state;
  const mayBe = mayBeOld(link);
  const isAboveLost = useLost(mayBe ? halves.callers : null, above?.zoom);
  const isBelowLost = useLost(mayBe ? halves.callees : null, below?.zoom);
  const key = (isAboveLost || isBelowLost) && [state.marked, above?.zoom, below?.zoom].join("\n");
  useFound(key, ({ findOldHalves }, signal) => findOldHalves(load, state, signal), onFound);
}

/**
 * Metadata with the names of now for each of the expressions that may be of then. Until they are there, and where there are
 * none, an expression has none.
 */
function useOldNames(link: OldLink, texts: readonly string[]): ReadonlyMap<string, FlameMetadata> {
  const [known, setKnown] = useState<ReadonlyMap<string, FlameMetadata>>(new Map());
  const wanted = mayBeOld(link)
    ? [
        ...new Set(
          texts.filter((text) => link.flame!.metadata.sent_names_replaced || isOfAddress(text)),
        ),
      ]
    : [];
  const key = wanted.length ? [link.flameKey, ...wanted].join("\n") : "";
  useFound(key, ({ findOldNames }, signal) => findOldNames(link.load, wanted, signal), setKnown);
  return known;
}

/** As the server asks it of what a reader typed, which finds either case. */
const searched = (text: string) => (text.startsWith("(?i)") ? text : `(?i)${text}`);

/** What the viewer looks for, by the names of now as well. */
export function useOldTexts(link: OldLink, rest: readonly Rule[]) {
  const { search, marked } = link.state;
  const texts = [
    ...(search ? [searched(search)] : []),
    ...(marked ? [exactly(marked)] : []),
    ...rest.map(({ text }) => text),
  ];
  const names = useOldNames(link, texts);
  return {
    search: search && widened(search, names.get(searched(search))?.renamed),
    /** The one function that the marked address is in. */
    markedNow: (marked && names.get(exactly(marked))?.renamed?.[0]) || "",
    rest: rest.map((rule) => ({
      ...rule,
      text: widened(rule.text, names.get(rule.text)?.renamed),
    })),
    /** One of them means more functions than the server lists. */
    isCut: texts.some((text) => names.get(text)?.renamed_is_cut),
  };
}
