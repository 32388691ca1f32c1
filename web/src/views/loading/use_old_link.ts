/*
 * use_old_link: resolves names in links from before symbolization, such as `app+0x2a10` or a name
 * from the uploaded file. The server is queried (resolve_old_link.ts) only if addresses of the
 * profile got names after the upload, and only for names that this tree does not contain.
 */
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Rule } from "../../model/rules/chain.ts";
import type { Flame, FlameMetadata } from "../../model/tree/flame.ts";
import { exactPattern, mayNameAddress, withCurrentNames } from "../../model/search/escape_regex.ts";
import { findByPathHash } from "../../model/tree/path.ts";
import type { ViewState } from "../../view_state.ts";
import type { Load } from "./use_flame.ts";

interface OldLink {
  /** The tree of the state, if the server knows names that the tree lacks. */
  flame: Flame | null;
  isCurrent: boolean;
  state: ViewState;
  /** Identifies the tree that load returns. */
  flameKey: string;
  load: Load;
}

const mayBeOld = ({ flame, isCurrent }: Pick<OldLink, "flame" | "isCurrent">): boolean =>
  isCurrent && flame?.metadata.named_later === true;

/**
 * Requests a value once per key; "" for none. If the request fails, the foot of the viewer reports
 * that the frame was not found.
 */
function useFound<Found>(
  key: unknown,
  resolve: (code: typeof import("./resolve_old_link.ts"), signal: AbortSignal) => Promise<Found>,
  onFound: (found: Found) => void,
): void {
  useEffect(() => {
    if (!key) return;
    const abort = new AbortController();
    import("./resolve_old_link.ts")
      .then((code) => resolve(code, abort.signal))
      .then(
        (found) => abort.signal.aborted || onFound(found),
        () => undefined,
      );
    return () => abort.abort();
  }, [key]);
}

/**
 * Whether there is a tree that lacks this path. Cached, because hovering renders and this reads
 * every node.
 */
const useLost = (tree: Flame | null, path = ""): boolean =>
  useMemo(() => tree !== null && path !== "" && findByPathHash(tree, path) < 0, [tree, path]);

/** Finds the frame that the link zooms to if it has another path in the tree. */
export function useOldZoom(link: OldLink, onFound: (node: number) => void): void {
  const { flame, state, load } = link;
  const isLost = useLost(mayBeOld(link) ? flame : null, state.zoom);
  useFound(
    isLost && flame,
    ({ findOldZoom }, signal) => findOldZoom(load, state, flame!, signal),
    (node) => node > 0 && onFound(node),
  );
}

/** Finds the visible parts of a sandwich's halves if they have other paths in the trees. */
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
 * Metadata with the current names for each expression that may be old. Until it is loaded, and if
 * there are no names, an expression has none.
 */
function useOldNames(link: OldLink, texts: readonly string[]): ReadonlyMap<string, FlameMetadata> {
  const [known, setKnown] = useState<ReadonlyMap<string, FlameMetadata>>(new Map());
  const wanted = mayBeOld(link)
    ? [
        ...new Set(
          texts.filter((text) => link.flame!.metadata.sent_names_replaced || mayNameAddress(text)),
        ),
      ]
    : [];
  const key = wanted.length ? [link.flameKey, ...wanted].join("\n") : "";
  useFound(key, ({ findOldNames }, signal) => findOldNames(link.load, wanted, signal), setKnown);
  return known;
}

/** The search as the server expects it: a typed text is case-insensitive. */
const searched = (text: string) => (text.startsWith("(?i)") ? text : `(?i)${text}`);

/** The expressions of the viewer, extended by current names. */
export function useOldTexts(link: OldLink, rest: readonly Rule[]) {
  const { search, marked } = link.state;
  const texts = [
    ...(search ? [searched(search)] : []),
    ...(marked ? [exactPattern(marked)] : []),
    ...rest.map(({ text }) => text),
  ];
  const names = useOldNames(link, texts);
  return {
    search: search && withCurrentNames(search, names.get(searched(search))?.renamed),
    /** The function that contains the marked address. */
    markedNow: (marked && names.get(exactPattern(marked))?.renamed?.[0]) || "",
    rest: rest.map((rule) => ({
      ...rule,
      text: withCurrentNames(rule.text, names.get(rule.text)?.renamed),
    })),
    /** One of them refers to more functions than the server lists. */
    isCut: texts.some((text) => names.get(text)?.renamed_is_cut),
  };
}
