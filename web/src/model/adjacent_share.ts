/* adjacent_share: the entry before or after another one in a paged list, newest first. */

export type Way = "older" | "newer";

interface IdPage {
  ids: readonly string[];
  next: string | null;
}

/** Further back nobody steps one by one. */
const maxPages = 20;

/** "" at the list's end, null where id is not in it; without an id the newest. */
export async function neighbourIn(
  load: (cursor: string) => Promise<IdPage>,
  id: string,
  way: Way,
): Promise<string | null> {
  let before = "";
  let isFound = id === "";
  for (let cursor: string | null = "", page = 0; cursor !== null && page < maxPages; page++) {
    const { ids, next }: IdPage = await load(cursor);
    for (const one of ids) {
      if (isFound) return one;
      isFound = one === id;
      if (isFound && way === "newer") return before;
      before = one;
    }
    cursor = next;
  }
  return isFound ? "" : null;
}
