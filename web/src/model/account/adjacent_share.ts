/* adjacent_share: finds the entry before or after another one in a paged list, newest first. */

export type Direction = "older" | "newer";

interface IdPage {
  ids: readonly string[];
  next: string | null;
}

/** A limit for the search; readers do not step further back one by one. */
const maxPages = 20;

/**
 * load: returns the page at a cursor, "" for the first one. Returns "" at the end of the list, and
 * null if maxPages pages do not contain id. Without an id, the newest entry.
 */
export async function adjacentIn(
  load: (cursor: string) => Promise<IdPage>,
  id: string,
  direction: Direction,
): Promise<string | null> {
  let before = "";
  let isFound = id === "";
  for (let cursor: string | null = "", page = 0; cursor !== null && page < maxPages; page++) {
    const { ids, next }: IdPage = await load(cursor);
    for (const one of ids) {
      if (isFound) return one;
      isFound = one === id;
      if (isFound && direction === "newer") return before;
      before = one;
    }
    cursor = next;
  }
  return isFound ? "" : null;
}
