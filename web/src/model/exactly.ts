/* exactly: a name as an expression, and without an address. Apart from search.ts, which comes in a later chunk. */

/** Without what grouping by address puts in front of it. */
export const plainName = (name: string): string => name.replace(/^0x[0-9a-f]+ /, "");

/** The expression as an escaped literal that matches exactly this name. */
export function exactly(name: string): string {
  return "^" + name.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&") + "$";
}
