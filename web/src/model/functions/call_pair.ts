/*
 * call_pair: the values of boxes and edges of the call graph. Separate from call_graph.ts, which
 * only the worker loads.
 */

/** The values after and before; before is 0 without a comparison. */
export type Pair = readonly [value: number, base: number];

export const sizeOf = ([value, base]: Pair): number => Math.max(Math.abs(value), Math.abs(base));

/** Edges below this share show their value only on hover. */
export const labelledShare = 0.05;
