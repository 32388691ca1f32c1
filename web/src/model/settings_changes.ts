/* settings_changes: describes how a list differs from the version that a reader saw before. */

/** One thing of a list: what it is called, and what is said of it. */
export interface Told {
  key: number | string;
  name: string;
  text: string;
}

/** So many are told. */
const most = 8;

/** What both have, by keys, in the order of the first. */
const order = (list: readonly Told[], other: ReadonlyMap<Told["key"], Told>) =>
  list.flatMap(({ key }) => (other.has(key) ? [key] : [])).join("\n");

export function changesOf(before: readonly Told[], now: readonly Told[]): string[] {
  const was = new Map(before.map((one) => [one.key, one]));
  const is = new Map(now.map((one) => [one.key, one]));
  const changes = now.flatMap(({ key, name, text }) => {
    const old = was.get(key);
    if (!old) return [`${name}: ${text} (new)`];
    return old.text === text ? [] : [`${name}: ${text} (was: ${old.text})`];
  });
  for (const { key, name } of before) if (!is.has(key)) changes.push(`${name} (removed)`);
  if (order(before, is) !== order(now, was)) changes.push("The order has changed.");
  return changes.length > most
    ? [...changes.slice(0, most), `and ${changes.length - most} more`]
    : changes;
}
