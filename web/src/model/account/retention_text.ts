/*
 * retention_text: a retention period in seconds (0: forever) as readable text and as the API
 * accepts it.
 */

const day = 86_400;
const units: [number, string, string][] = [
  [365 * day, "y", "year"],
  [day, "d", "day"],
  [3600, "h", "hour"],
  [60, "m", "minute"],
  [1, "s", "second"],
];

/** The largest unit that divides the period. */
const unitOf = (seconds: number) => units.find(([size]) => seconds % size === 0)!;

/** "90d", "1y", "forever". */
export function formatPeriod(seconds: number): string {
  if (seconds === 0) return "forever";
  const [size, letter] = unitOf(seconds);
  return seconds / size + letter;
}

/** "90 days", "1 year", "forever". */
export function describePeriod(seconds: number): string {
  if (seconds === 0) return "forever";
  const [size, , name] = unitOf(seconds);
  const count = seconds / size;
  return `${count.toLocaleString("en")} ${name}${count === 1 ? "" : "s"}`;
}

/** The period of a rule as text. */
export const describeRetention = (keep_s: number, totals_s: number | null): string =>
  keep_s === 0
    ? "kept forever"
    : `kept ${describePeriod(keep_s)}` +
      (totals_s ? `, hourly totals ${describePeriod(totals_s)}` : "");
