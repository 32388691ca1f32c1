/*
 * source_link: from a frame's file and line to a page of a repository, by the rules of the team (api/share/source_links.h).
 *
 * A profile chooses the path alone: it cannot leave the page that the rule leads to, nor add a query to it.
 */
import type { Flame } from "./flame.ts";

export interface SourceLink {
  /** Paths of the binaries that it is for; null: of any. */
  binaries: string[] | null;
  path_prefix: string;
  /** Of https; with {path}, perhaps {line} and {revision}. */
  url: string;
}

/** A team's rule as it is listed, before it is known which profile it is for. */
export interface SourceRule {
  id: number;
  path_prefix: string;
  build_id: string;
  label: string;
  url: string;
  revision: string;
  audience: "team" | "everyone";
}

export interface SourcePlace {
  file: string;
  /** 0: not known. */
  line: number;
  mapping: string;
}

const escapePart = (part: string) =>
  encodeURIComponent(part).replace(/[!'()*]/g, (char) => "%" + char.charCodeAt(0).toString(16));

/** Each part escaped; "." and ".." mean what they do in a file system and never lead above the beginning. */
export function escapePath(path: string): string {
  const parts: string[] = [];
  for (const part of path.split(/[/\\]/)) {
    if (part === "..") parts.pop();
    else if (part && part !== ".") parts.push(escapePart(part));
  }
  return parts.join("/");
}

/** A binary of a tree that is of no share, as the tree tells it. */
export interface Binary {
  file: string;
  /** As the profile has it and, where that is another, as tables are found by it. */
  build_ids: string[];
}

/** Does all of a text match a pattern in which * stands for any text and ? for one character? As source_links_match of the server. */
export function matchesPattern(pattern: string, text: string): boolean {
  let at = 0;
  let star = -1;
  let resume = 0;
  for (let i = 0; i < text.length;) {
    if (pattern[at] === "*") {
      star = at++;
      resume = i;
    } else if (at < pattern.length && (pattern[at] === "?" || pattern[at] === text[i])) {
      at++;
      i++;
    } else if (star >= 0) {
      at = star + 1; // the last star takes one more
      i = ++resume;
    } else return false;
  }
  return /^\**$/.test(pattern.slice(at));
}

/** The team's rules as links of a tree that has these binaries; those of a label ask for what only a share's samples tell. */
export const linksOf = (rules: readonly SourceRule[], binaries: readonly Binary[]): SourceLink[] =>
  rules
    .filter(({ label }) => !label)
    .map(({ path_prefix, url, revision, build_id }) => ({
      binaries: build_id
        ? binaries
            .filter(({ build_ids }) => build_ids.some((id) => matchesPattern(build_id, id)))
            .map(({ file }) => file)
        : null,
      path_prefix,
      url: url.replaceAll("{revision}", () => escapePath(revision)),
    }));

/** Whole parts of a path: /src is not the beginning of /srcother/x.c. */
const beginsWith = (file: string, prefix: string) =>
  file.startsWith(prefix) &&
  (/(?:^|[/\\])$/.test(prefix) || /^[/\\]/.test(file.slice(prefix.length)));

/** Where the first link that fits leads to; "" where none does. */
export function sourceUrl(
  links: readonly SourceLink[],
  { file, line, mapping }: SourcePlace,
): string {
  const link =
    file &&
    links.find(
      ({ binaries, path_prefix }) =>
        beginsWith(file, path_prefix) && (!binaries || binaries.includes(mapping)),
    );
  if (!link) return "";
  const path = escapePath(file.slice(link.path_prefix.length));
  const url = line > 0 ? link.url : link.url.replace(/#[^#]*\{line\}[^#]*$/, "");
  const filled = url.replace(/\{(path|line)\}/g, (_, what) =>
    what === "path" ? path : String(Math.max(1, line)),
  );
  return path && filled.startsWith("https://") ? filled : "";
}

export const [SIDE_BEFORE, SIDE_AFTER] = [1, 2];

/** Of each frame: the sides of a comparison that it is in, added up. */
export function sidesOfFrames({
  nodeCount,
  frame,
  cum,
  baseCum,
  frames,
}: Pick<Flame, "nodeCount" | "frame" | "cum" | "baseCum" | "frames">): Uint8Array {
  const sides = new Uint8Array(frames.count);
  for (let node = 0; node < nodeCount; node++)
    sides[frame[node]] |= (baseCum?.[node] ? SIDE_BEFORE : 0) | (cum[node] ? SIDE_AFTER : 0);
  return sides;
}
