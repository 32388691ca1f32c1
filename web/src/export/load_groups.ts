/*
 * load_groups: loads the trees of all groups of a page, a few at a time. A failed request does not
 * stop the others: it is reported by group and can be repeated.
 */
import { retryWhileBusy } from "../api/retry_busy.ts";

const atOnce = 3;

export interface LoadedGroups<Tree> {
  trees: Map<string, Tree>;
  /** For each failed group, the reason why its tree could not be loaded. */
  failed: Map<string, string>;
}

/** Adds the trees that are missing in `into`. Rejects only when the signal aborts it. */
export async function loadGroups<Tree>(
  groups: readonly string[],
  make: (group: string, signal: AbortSignal) => Promise<Tree>,
  into: LoadedGroups<Tree>,
  signal: AbortSignal,
  onProgress: (done: number) => void,
): Promise<void> {
  const todo = groups.filter((group) => !into.trees.has(group));
  let done = groups.length - todo.length;
  into.failed.clear();
  onProgress(done);
  const work = async () => {
    for (let group = todo.shift(); group !== undefined; group = todo.shift()) {
      const wanted = group;
      try {
        into.trees.set(wanted, await retryWhileBusy(() => make(wanted, signal)));
      } catch (error) {
        signal.throwIfAborted();
        into.failed.set(wanted, error instanceof Error ? error.message : String(error));
      }
      signal.throwIfAborted();
      onProgress(++done);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
}
