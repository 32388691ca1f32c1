/*
 * escape_regex: converts names to regular expressions. Separate from search.ts, which is in a later
 * chunk.
 *
 * The last two functions serve links from before symbolization, in which the name of a frame was
 * `app+0x2a10`. The server finds the current names of the functions at such addresses
 * (lib/profile/report/raw_path.h).
 */

/** Removes the address that grouping by address puts in front of a name. */
export const plainName = (name: string): string => name.replace(/^0x[0-9a-f]+ /, "");

const literal = (text: string) => text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");

/**
 * An escaped literal that matches exactly this name. A name that may be too long for an expression
 * is matched by its first 2,000 characters.
 */
export function exactPattern(name: string): string {
  const begin = /^.{2000}/su.exec(name)?.[0];
  return begin ? `^${literal(begin)}` : `^${literal(name)}$`;
}

/** Whether the expression may refer to an address, by the same test as on the server. */
export const mayNameAddress = (text: string): boolean => text.includes("0x");

/** The expression extended to match these names too. */
export const withCurrentNames = (text: string, names: readonly string[] = []): string =>
  [text, ...names.map(exactPattern)].join("|");
