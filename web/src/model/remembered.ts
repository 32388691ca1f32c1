/* remembered: what this browser shared, with the delete tokens that only it has. */

export interface Remembered {
  id: string;
  title: string;
  url: string;
  deleteToken: string;
  createdAt: number;
}

const storageKey = "perfolio:shares";
const maxCount = 200;

export function listRemembered(): Remembered[] {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(storageKey) ?? "[]");
    return Array.isArray(value) ? value.filter((entry): entry is Remembered => typeof entry?.id === "string") : [];
  } catch {
    return []; // storage may be forbidden or hold something else
  }
}

function store(list: Remembered[]): void {
  try {
    localStorage.setItem(storageKey, JSON.stringify(list.slice(0, maxCount)));
  } catch {
    // Without storage the token is still shown once on the page.
  }
}

export function remember(entry: Remembered): void {
  store([entry, ...listRemembered().filter((other) => other.id !== entry.id)]);
}

export function forget(id: string): void {
  store(listRemembered().filter((entry) => entry.id !== id));
}

export const deleteTokenOf = (id: string): string => listRemembered().find((entry) => entry.id === id)?.deleteToken ?? "";
