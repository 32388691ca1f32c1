/* source_place: where a frame's code stands, as a link to its source where a rule of the team leads there. */
import { useEffect, useState } from "preact/hooks";
import { getJson } from "../api.ts";
import type { Flame } from "../model/flame.ts";
import { ofAnyProfile, SIDE_BEFORE, sidesOfFrames, sourceUrl, type SourceLink, type SourceRule } from "../model/source_link.ts";
import type { SourcePlaceProps } from "./panes.tsx";

const asked = new Map<string, Promise<SourceLink[]>>();

const isFilledIn = (link: SourceLink | SourceRule): link is SourceLink => "binaries" in link;

/** Once per page; a text without a link is no reason to trouble anybody. */
function linksAt(address: string): Promise<SourceLink[]> {
  let links = asked.get(address);
  if (!links) {
    links = getJson<{ links: (SourceLink | SourceRule)[] }>(address).then(
      ({ links }) => (links.every(isFilledIn) ? links : ofAnyProfile(links as SourceRule[])),
      () => (asked.delete(address), []),
    );
    asked.set(address, links);
  }
  return links;
}

const frameSides = new WeakMap<Flame, Uint8Array>();

/** Of a comparison: is the frame only in the side before? */
function isOnlyBefore(flame: Flame, frame: number): boolean {
  let sides = frameSides.get(flame);
  if (!sides) frameSides.set(flame, (sides = sidesOfFrames(flame)));
  return sides[frame] === SIDE_BEFORE;
}

export function SourcePlace({ at, text, flame, frame }: SourcePlaceProps) {
  const [links, setLinks] = useState<SourceLink[]>([]);
  const address = isOnlyBefore(flame, frame) ? at[0] : at[at.length - 1];
  useEffect(() => {
    let isSeen = true;
    void linksAt(address).then((found) => isSeen && setLinks(found));
    return () => void (isSeen = false);
  }, [address]);
  const { frames } = flame;
  const url = sourceUrl(links, { file: frames.file(frame), line: frames.line(frame), mapping: frames.mapping(frame) });
  if (!url) return <>{text}</>;
  return (
    <a class="source-link" href={url} target="_blank" rel="noopener noreferrer" title={`Open ${text}`} onClick={(event) => event.stopPropagation()}>
      {text}
    </a>
  );
}
