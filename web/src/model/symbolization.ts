/* symbolization: what several answers tell of binaries without names, as one. */
import type { Symbolization, Unnamed } from "./flame.ts";

/** As it is told to who waits: another generation may have more names. */
export interface Told extends Symbolization {
  generation: number;
}

export const idOf = ({ build_id, file }: Unnamed) => `${build_id} ${file}`;

/** Of several profiles: what two of them lack stands once; what is on its way for one of them is not missing. */
export function join(parts: readonly Symbolization[]): Symbolization {
  const once = <T extends Unnamed>(lists: T[][]) =>
    new Map(lists.flat().map((one) => [idOf(one), one]));
  const pending = once(parts.map((part) => part.pending));
  const missing = once(parts.map((part) => part.missing));
  return {
    complete: parts.every(({ complete }) => complete),
    pending: [...pending.values()],
    missing: [...missing.values()].filter((one) => !pending.has(idOf(one))),
    unlisted: Math.max(0, ...parts.map(({ unlisted = 0 }) => unlisted)), // those of two profiles may be the same
  };
}

export const joinTold = (told: readonly Told[]): Told => ({
  ...join(told),
  generation: told.reduce((sum, { generation }) => sum + generation, 0),
});

/** Binaries that lack names for one cause. */
export interface Cause {
  reason: string;
  /** The earliest time at which the server tries again; null where it does not. */
  nextRetry: string | null;
  binaries: Unnamed[];
}

/** A reason may name the build id of its binary. */
const buildId = /\b[0-9a-f]{16,}\b/g;

/** One entry for each cause, that of most binaries first. */
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

/** So many build ids are asked for at once: the server takes 256, and addresses have a length. */
export const askedMost = 200;

/** Of all build ids, in as many questions as that needs, one after the other. */
export async function askAll(
  ids: readonly string[],
  ask: (ids: string[]) => Promise<Told>,
): Promise<Told> {
  const told: Told[] = [];
  for (let from = 0; from < ids.length; from += askedMost)
    told.push(await ask(ids.slice(from, from + askedMost)));
  return joinTold(told);
}
