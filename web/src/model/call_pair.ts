/*
 * call_pair: what boxes and edges of the call graph hold. Apart from its counting (call_graph), which the page never does itself.
 */

/** After and before; before is 0 where there is no comparison. */
export type Pair = readonly [value: number, base: number];

export const sizeOf = ([value, base]: Pair): number => Math.max(Math.abs(value), Math.abs(base));

/** Lighter edges do not say what they hold until one looks at them. */
export const labelledShare = 0.05;
