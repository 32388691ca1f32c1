/* saved_rules: chains that the reader gave a name, kept in this browser. */
import { formatChain, parseChain, type Rule } from "./chain.ts";
import { keepList, listKept } from "./kept_list.ts";

export interface SavedRules {
  name: string;
  rules: Rule[];
}

export const listSavedRules = (): SavedRules[] =>
  listKept<{ name: string; x: string }>(
    "filters",
    ({ name, x }) => typeof name === "string" && typeof x === "string",
  ).map(({ name, x }) => ({ name, rules: parseChain(x) }));

/** False where the browser keeps nothing. */
const store = (list: readonly SavedRules[]) =>
  keepList(
    "filters",
    list.map(({ name, rules }) => ({ name, x: formatChain(rules) })),
    50,
  );

export const saveRules = (name: string, rules: Rule[]): boolean =>
  store([{ name, rules }, ...listSavedRules().filter((entry) => entry.name !== name)]);

export const forgetRules = (name: string): boolean =>
  store(listSavedRules().filter((entry) => entry.name !== name));
