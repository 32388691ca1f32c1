/* source_place: the source location of a frame, as a link if a rule of the team matches it. */
import { useEffect, useState } from "preact/hooks";
import { getJson } from "../../api/api.ts";
import type { Flame } from "../../model/tree/flame.ts";
import {
  linksOf,
  SIDE_BEFORE,
  sidesOfFrames,
  sourceUrl,
  type SourceLink,
  type SourceRule,
} from "../../model/symbols/source_link.ts";
import type { SourcePlaceProps } from "../panes.tsx";

/** The links of a share, or the team's rules. */
type Known = SourceLink[] | SourceRule[];
const places = new Map<string, Promise<Known>>();

/**
 * Loaded once per page. A failure is not reported, because the text without a link is still
 * correct.
 */
function knownAt(address: string): Promise<Known> {
  let known = places.get(address);
  if (!known) {
    known = getJson<{ links: Known }>(address).then(
      ({ links }) => links,
      () => (places.delete(address), []),
    );
    places.set(address, known);
  }
  return known;
}

const areFilledIn = (known: Known): known is SourceLink[] =>
  known.every((one) => "binaries" in one);
const treeLinks = new WeakMap<Flame, { known: Known; links: SourceLink[] }>();

/** Rules by build id apply to the tree's binaries. */
function linksIn(flame: Flame, known: Known): SourceLink[] {
  if (areFilledIn(known)) return known;
  let made = treeLinks.get(flame);
  if (made?.known !== known)
    treeLinks.set(flame, (made = { known, links: linksOf(known, flame.metadata.binaries ?? []) }));
  return made.links;
}

const frameSides = new WeakMap<Flame, Uint8Array>();

/** In a comparison: whether only the side before contains the frame. */
function isOnlyBefore(flame: Flame, frame: number): boolean {
  let sides = frameSides.get(flame);
  if (!sides) frameSides.set(flame, (sides = sidesOfFrames(flame)));
  return sides[frame] === SIDE_BEFORE;
}

export function SourcePlace({ at, text, flame, frame }: SourcePlaceProps) {
  const [known, setKnown] = useState<Known>([]);
  const address = isOnlyBefore(flame, frame) ? at[0] : at[at.length - 1];
  useEffect(() => {
    let isSeen = true;
    void knownAt(address).then((found) => isSeen && setKnown(found));
    return () => void (isSeen = false);
  }, [address]);
  const { frames } = flame;
  const url = sourceUrl(linksIn(flame, known), {
    file: frames.file(frame),
    line: frames.line(frame),
    mapping: frames.mapping(frame),
  });
  if (!url) return <>{text}</>;
  return (
    <a
      class="source-link"
      href={url}
      target="_blank"
      rel="noopener noreferrer"
      title={`Open ${text}`}
      onClick={(event) => event.stopPropagation()}
    >
      {text}
    </a>
  );
}
