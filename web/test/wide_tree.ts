/*
 * wide_tree: one function with 100,000 callers, in a tree with full names and in one with mangled
 * names.
 */
import { renamed } from "../src/model/tree/regrouped.ts";
import { decode } from "./trees.ts";

const app = { mapping: "/usr/bin/app" };

const callers = (prefix: string, suffix: string) =>
  decode(
    {
      name: "root",
      children: Array.from({ length: 100_000 }, (_, i) => ({
        ...app,
        name: `${prefix}handler${i}${suffix}`,
        children: [{ ...app, name: `${prefix}work${suffix}`, self: 1 + (i % 7) }],
      })),
    },
    { metadata: { group_by: "function" } },
  );

let trees: ReturnType<typeof callers>[] = [];

/** The names that the function has in the tree with mangled names. */
export function renameWideTree(): string[] {
  if (trees.length === 0) trees = [callers("ns::", "(int)"), callers("_ZN2ns", "Ei")];
  return renamed(trees[0], "ns::work(int)", trees[1]);
}
