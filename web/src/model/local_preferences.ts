/* local_preferences: the shares created in this browser, with their delete tokens. */
import { keepList, listKept } from "./kept_list.ts";

export interface Remembered {
  id: string;
  title: string;
  url: string;
  deleteToken: string;
  createdAt: number;
}

export const listRemembered = () =>
  listKept<Remembered>("shares", ({ id }) => typeof id === "string");

/** Without storage the token is still shown once on the page. */
const store = (list: readonly Remembered[]) => keepList("shares", list, 2000);

export function remember(entry: Remembered): void {
  store([entry, ...listRemembered().filter((other) => other.id !== entry.id)]);
}

export function forget(id: string): void {
  store(listRemembered().filter((entry) => entry.id !== id));
}

export const deleteTokenOf = (id: string): string =>
  listRemembered().find((entry) => entry.id === id)?.deleteToken ?? "";
