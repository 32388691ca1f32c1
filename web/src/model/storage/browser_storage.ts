/*
 * browser_storage: lists stored in this browser, and the list of shares created in it with their
 * delete tokens.
 */

/** The entries of a stored list that have the expected form; [] if storage is forbidden. */
export function readStoredList<One>(name: string, isOne: (entry: Partial<One>) => boolean): One[] {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(`perfolio:${name}`) ?? "[]");
    return Array.isArray(value) ? value.filter((entry) => entry && isOne(entry)) : [];
  } catch {
    return [];
  }
}

/** Stores the first entries of a list; false if storage is not available. */
export function writeStoredList(
  name: string,
  list: readonly unknown[],
  mostCount: number,
): boolean {
  try {
    localStorage.setItem(`perfolio:${name}`, JSON.stringify(list.slice(0, mostCount)));
    return true;
  } catch {
    return false;
  }
}

export interface StoredShare {
  id: string;
  title: string;
  url: string;
  deleteToken: string;
  createdAt: number;
}

export const listStoredShares = () =>
  readStoredList<StoredShare>("shares", ({ id }) => typeof id === "string");

/** Without storage, the page still shows the token once. */
const store = (list: readonly StoredShare[]) => writeStoredList("shares", list, 2000);

export function storeShare(entry: StoredShare): void {
  store([entry, ...listStoredShares().filter((other) => other.id !== entry.id)]);
}

export function removeStoredShare(id: string): void {
  store(listStoredShares().filter((entry) => entry.id !== id));
}

export const deleteTokenOf = (id: string): string =>
  listStoredShares().find((entry) => entry.id === id)?.deleteToken ?? "";
