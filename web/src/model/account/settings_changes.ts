/* settings_changes: describes how a list differs from the version that a reader saw before. */

/** An entry of a list: its name and its value as text. */
export interface ListEntry {
  key: number | string;
  name: string;
  text: string;
}

/** The maximum number of changes that are listed. */
const most = 8;

/** The keys of the first list that the other one contains, in order. */
const order = (list: readonly ListEntry[], other: ReadonlyMap<ListEntry["key"], ListEntry>) =>
  list.flatMap(({ key }) => (other.has(key) ? [key] : [])).join("\n");

export function changesOf(before: readonly ListEntry[], now: readonly ListEntry[]): string[] {
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
