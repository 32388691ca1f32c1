/* exactly: a name as an expression. Apart from search.ts, which comes in a later chunk. */

/** The expression as an escaped literal that matches exactly this name. */
export function exactly(name: string): string {
  return "^" + name.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&") + "$";
}
