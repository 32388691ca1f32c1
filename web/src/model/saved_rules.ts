/* saved_rules: chains that the reader gave a name, kept in this browser. */
import { formatChain, parseChain, type Rule } from "./chain.ts";

const storageKey = "perfolio:filters";
const maxCount = 50;

export interface SavedRules {
  name: string;
  rules: Rule[];
}

export function listSavedRules(): SavedRules[] {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(storageKey) ?? "[]");
    if (!Array.isArray(value)) return [];
    return value
      .filter((entry) => typeof entry?.name === "string" && typeof entry?.x === "string")
      .map((entry) => ({ name: entry.name as string, rules: parseChain(entry.x as string) }));
  } catch {
    return []; // storage may be forbidden or hold something else
  }
}

/** False where the browser keeps nothing. */
function store(list: readonly SavedRules[]): boolean {
  try {
    localStorage.setItem(storageKey, JSON.stringify(list.slice(0, maxCount).map(({ name, rules }) => ({ name, x: formatChain(rules) }))));
    return true;
  } catch {
    return false;
  }
}

export const saveRules = (name: string, rules: Rule[]): boolean =>
  store([{ name, rules }, ...listSavedRules().filter((entry) => entry.name !== name)]);

export const forgetRules = (name: string): boolean => store(listSavedRules().filter((entry) => entry.name !== name));
