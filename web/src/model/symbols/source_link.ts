/*
 * source_link: turns a frame's file and line into a link to a repository, by the rules of the team
 * (api/share/source_links.h).
 *
 * The profile controls only the path: it cannot leave the prefix of the rule's URL or add a query.
 */
import type { Flame } from "../tree/flame.ts";

export interface SourceLink {
  /** The paths of the binaries that it applies to; null: any. */
  binaries: string[] | null;
  path_prefix: string;
  /** An https URL with {path}, perhaps {line} and {revision}. */
  url: string;
}

/** A rule as the team's list contains it, before it is applied to a profile. */
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
  /** 0: unknown. */
  line: number;
  mapping: string;
}

const escapePart = (part: string) =>
  encodeURIComponent(part).replace(/[!'()*]/g, (char) => "%" + char.charCodeAt(0).toString(16));

/**
 * Escapes each component; "." and ".." are resolved as in a file system and never lead above the
 * start.
 */
export function escapePath(path: string): string {
  const parts: string[] = [];
  for (const part of path.split(/[/\\]/)) {
    if (part === "..") parts.pop();
    else if (part && part !== ".") parts.push(escapePart(part));
  }
  return parts.join("/");
}

/** A binary of a tree that does not belong to a share, as listed by the tree. */
export interface Binary {
  file: string;
  /** The build id of the profile and, if different, the key of its symbol table. */
  build_ids: string[];
}

/**
 * Whether the whole text matches a pattern, in which * stands for any text and ? for one character.
 * Equal to source_link_matcher_is_match on the server.
 */
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
      at = star + 1; // the last star matches one more character
      i = ++resume;
    } else return false;
  }
  return /^\**$/.test(pattern.slice(at));
}

/**
 * The team's rules as links for a tree with these binaries. Rules for a label are left out, because
 * only the samples of a share have labels.
 */
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

/** Compares whole components: /src is not a prefix of /srcother/x.c. */
const beginsWith = (file: string, prefix: string) =>
  file.startsWith(prefix) &&
  (/(?:^|[/\\])$/.test(prefix) || /^[/\\]/.test(file.slice(prefix.length)));

/** The URL of the first matching link; "" if none matches. */
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

/** For each frame, a bit set of the sides of a comparison that contain it. */
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
