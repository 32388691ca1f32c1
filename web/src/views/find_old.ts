/*
 * find_old: asks the server what a link means that was made before addresses had names (use_old_link.ts), which few links
 * need: a chunk of its own.
 */
import type { Flame, FlameMetadata } from "../model/flame.ts";
import { findByPathHash } from "../model/path.ts";
import { exactly } from "../model/escape_regex.ts";
import { servedRules, splitRules } from "../model/served_rules.ts";
import type { SeenHalf, ViewState } from "../state.ts";
import { sameNode } from "./rows.ts";
import type { Load } from "./use_flame.ts";

/** The frame that a link zooms to, in the tree that the view shows; 0: it is not there. */
export async function findOldZoom(
  load: Load,
  { zoom, rules, group, labels }: ViewState,
  flame: Flame,
  signal: AbortSignal,
): Promise<number> {
  // The path is of the tree under rules; those of the page that take out frames take out none of the way's others.
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

/** Metadata with the names of now for each of the expressions; empty where none is known. */
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

/** What is seen of a sandwich's halves, by paths of now; those that nothing is known of stay. */
export async function findOldHalves(
  load: Load,
  { marked, above, below }: ViewState,
  signal: AbortSignal,
): Promise<Pick<ViewState, "above" | "below">> {
  const asked = {
    ...focusedOn(exactly(marked)),
    above: above ? [above.zoom] : [],
    below: below ? [below.zoom] : [],
  };
  const { metadata } = await load(signal, asked, undefined, "");
  const now = (half: SeenHalf | null, path = half?.zoom) => half && { ...half, zoom: path! };
  return { above: now(above, metadata.above), below: now(below, metadata.below) };
}
