/*
 * gather: a page's trees by all its groups, a few asked for at a time. What fails keeps nobody from the others: it is told
 * by group, and can be asked for again.
 */
import { inTurn } from "../workers/request_order.ts";

const atOnce = 3;

export interface Gathered<Tree> {
  trees: Map<string, Tree>;
  /** Why a group's tree is not there. */
  failed: Map<string, string>;
}

/** Adds what `into` lacks of these groups. Rejects only when the signal says that nobody waits. */
export async function gather<Tree>(
  groups: readonly string[],
  make: (group: string, signal: AbortSignal) => Promise<Tree>,
  into: Gathered<Tree>,
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
        into.trees.set(wanted, await inTurn(() => make(wanted, signal)));
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
