/* symbolization: combines the symbolization status of several responses. */
import type { Symbolization, Unnamed } from "../tree/flame.ts";

/** The status with a generation: a new generation may have more names. */
export interface SymbolizationStatus extends Symbolization {
  generation: number;
}

export const idOf = ({ build_id, file }: Unnamed) => `${build_id} ${file}`;

/**
 * Combines several profiles: a binary that several of them lack is listed once. A binary that is
 * being symbolized for one of them is not missing.
 */
export function join(parts: readonly Symbolization[]): Symbolization {
  const once = <T extends Unnamed>(lists: T[][]) =>
    new Map(lists.flat().map((one) => [idOf(one), one]));
  const pending = once(parts.map((part) => part.pending));
  const missing = once(parts.map((part) => part.missing));
  return {
    complete: parts.every(({ complete }) => complete),
    pending: [...pending.values()],
    missing: [...missing.values()].filter((one) => !pending.has(idOf(one))),
    // two profiles may lack the same binaries
    unlisted: Math.max(0, ...parts.map(({ unlisted = 0 }) => unlisted)),
  };
}

export const joinStatus = (statuses: readonly SymbolizationStatus[]): SymbolizationStatus => ({
  ...join(statuses),
  generation: statuses.reduce((sum, { generation }) => sum + generation, 0),
});

/** Binaries that lack names for the same reason. */
export interface Cause {
  reason: string;
  /** The earliest time at which the server tries again; null if it does not. */
  nextRetry: string | null;
  binaries: Unnamed[];
}

/** A reason may contain the build id of its binary. */
const buildId = /\b[0-9a-f]{16,}\b/g;

/** One entry per reason, that of most binaries first. */
export function byCause(missing: Symbolization["missing"]): Cause[] {
  const causes = new Map<string, Cause>();
  for (const one of missing) {
    const key = one.reason.replace(buildId, "");
    const cause = causes.get(key) ?? { reason: one.reason, nextRetry: null, binaries: [] };
    cause.binaries.push(one);
    if (one.next_retry && (!cause.nextRetry || one.next_retry < cause.nextRetry))
      cause.nextRetry = one.next_retry;
    causes.set(key, cause);
  }
  return [...causes.values()].sort((a, b) => b.binaries.length - a.binaries.length);
}

/** The number of build ids per request: the server accepts 256, and URLs have a limited length. */
export const buildIdsPerRequest = 200;

/** Requests all build ids, in as many requests as needed, one after the other. */
export async function requestAll(
  ids: readonly string[],
  request: (ids: string[]) => Promise<SymbolizationStatus>,
): Promise<SymbolizationStatus> {
  const statuses: SymbolizationStatus[] = [];
  for (let from = 0; from < ids.length; from += buildIdsPerRequest)
    statuses.push(await request(ids.slice(from, from + buildIdsPerRequest)));
  return joinStatus(statuses);
}
