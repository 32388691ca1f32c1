/* saved_rules: rule chains that the reader saved under a name in this browser. */
import { formatChain, parseChain, type Rule } from "../rules/chain.ts";
import { writeStoredList, readStoredList } from "./browser_storage.ts";

export interface SavedRules {
  name: string;
  rules: Rule[];
}

export const listSavedRules = (): SavedRules[] =>
  readStoredList<{ name: string; x: string }>(
    "filters",
    ({ name, x }) => typeof name === "string" && typeof x === "string",
  ).map(({ name, x }) => ({ name, rules: parseChain(x) }));

/** False if storage is not available. */
const store = (list: readonly SavedRules[]) =>
  writeStoredList(
    "filters",
    list.map(({ name, rules }) => ({ name, x: formatChain(rules) })),
    50,
  );

export const saveRules = (name: string, rules: Rule[]): boolean =>
  store([{ name, rules }, ...listSavedRules().filter((entry) => entry.name !== name)]);

export const forgetRules = (name: string): boolean =>
  store(listSavedRules().filter((entry) => entry.name !== name));
