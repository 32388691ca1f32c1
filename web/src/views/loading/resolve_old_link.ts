/*
 * resolve_old_link: requests the current names for a link from before symbolization
 * (use_old_link.ts). Few links need this, so it is in a later chunk.
 */
import type { Flame, FlameMetadata } from "../../model/tree/flame.ts";
import { findByPathHash } from "../../model/tree/path.ts";
import { exactPattern } from "../../model/search/escape_regex.ts";
import { servedRules, splitRules } from "../../model/rules/served_rules.ts";
import type { VisibleHalf, ViewState } from "../../view_state.ts";
import { sameNode } from "../icicle/rows.ts";
import type { Load } from "./use_flame.ts";

/** The frame that a link zooms to, in the shown tree; 0: not found. */
export async function findOldZoom(
  load: Load,
  { zoom, rules, group, labels }: ViewState,
  flame: Flame,
  signal: AbortSignal,
): Promise<number> {
  // The path refers to the tree under the server's rules; the page's rules that remove frames do
  // not affect the other frames of the path.
  const { served } = splitRules(
    rules.filter((rule) => !rule.isOff),
    group,
    labels.length,
  );
  const tree = await load(signal, servedRules(served), undefined, zoom);
  const found = tree.metadata.root ? findByPathHash(tree, tree.metadata.root) : -1;
  return found > 0 ? sameNode(tree, found, flame) : 0;
}

const focusedOn = (text: string) => ({ focus: [text], ignore: [], hide: [], show: [] });

/** Metadata with the current names for each expression; no entry if none is known. */
export async function findOldNames(
  load: Load,
  texts: readonly string[],
  signal: AbortSignal,
): Promise<Map<string, FlameMetadata>> {
  const namesOf = (text: string) =>
    load(signal, focusedOn(text), undefined, "").then(
      ({ metadata }) => metadata,
      (): FlameMetadata => ({}),
    );
  const names = await Promise.all(texts.map(namesOf));
  return new Map(texts.map((text, i) => [text, names[i]]));
}

/** The visible parts of a sandwich's halves with current paths; unknown paths stay. */
export async function findOldHalves(
  load: Load,
  { marked, above, below }: ViewState,
  signal: AbortSignal,
): Promise<Pick<ViewState, "above" | "below">> {
  const request = {
    ...focusedOn(exactPattern(marked)),
    above: above ? [above.zoom] : [],
    below: below ? [below.zoom] : [],
  };
  const { metadata } = await load(signal, request, undefined, "");
  const now = (half: VisibleHalf | null, path = half?.zoom) => half && { ...half, zoom: path! };
  return { above: now(above, metadata.above), below: now(below, metadata.below) };
}
