/* escape_regex: a name as an expression, and a name without its address. Separate from search.ts, which is in a later chunk. */

/** Without what grouping by address puts in front of it. */
export const plainName = (name: string): string => name.replace(/^0x[0-9a-f]+ /, "");

const literal = (text: string) => text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");

/**
 * The expression as an escaped literal that matches exactly this name. One that may be too long for an expression is told by its
 * first 2,000 characters.
 */
export function exactly(name: string): string {
  const begin = /^.{2000}/su.exec(name)?.[0];
  return begin ? `^${literal(begin)}` : `^${literal(name)}$`;
}
