/*
 * units: values as readable text.
 *
 * Written without Intl, because its first use on a page takes as long as drawing a picture.
 */

/** Name, size in base units, and the number of this unit from which it is used. */
type Unit = [name: string, size: number, from: number];

const timeUnits: Unit[] = [
  ["ns", 1, 1],
  ["µs", 1e3, 1],
  ["ms", 1e6, 1],
  ["s", 1e9, 1],
  ["min", 60e9, 10], // 540 s is easier to compare with 90 s than 9 min is
  ["h", 3600e9, 3],
  ["d", 86400e9, 3],
];
const byteUnits: Unit[] = [
  ["B", 1, 1],
  ["KiB", 1024, 1],
  ["MiB", 1024 ** 2, 1],
  ["GiB", 1024 ** 3, 1],
  ["TiB", 1024 ** 4, 1],
  ["PiB", 1024 ** 5, 1],
  ["EiB", 1024 ** 6, 1],
];

/** The number of base units (ns, B) in one `unit`; null for a unit that is only counted. */
function baseOf(unit: string): { scale: number; table: Unit[] } | null {
  const times: Record<string, number> = {
    ns: 1,
    nanosecond: 1,
    nanoseconds: 1,
    us: 1e3,
    µs: 1e3,
    microsecond: 1e3,
    microseconds: 1e3,
    ms: 1e6,
    millisecond: 1e6,
    milliseconds: 1e6,
    s: 1e9,
    sec: 1e9,
    second: 1e9,
    seconds: 1e9,
  };
  const bytes: Record<string, number> = {
    b: 1,
    byte: 1,
    bytes: 1,
    kb: 1024,
    kib: 1024,
    kilobytes: 1024,
    mb: 1024 ** 2,
    mib: 1024 ** 2,
    megabytes: 1024 ** 2,
  };
  const name = unit.toLowerCase();
  if (Object.hasOwn(times, name)) return { scale: times[name], table: timeUnits };
  if (Object.hasOwn(bytes, name)) return { scale: bytes[name], table: byteUnits };
  return null;
}

/** True when values of the unit are shown in larger and smaller units, such as KiB or ms. */
export const isScaled = (unit: string): boolean => baseOf(unit) !== null;

/** At most `most` digits after the point, at least `least`, with commas between thousands. */
function digitsOf(value: number, most: number, least: number): string {
  const text = value.toFixed(most);
  let [whole, part = ""] = text.replace("-", "").split(".");
  while (part.length > least && part.endsWith("0")) part = part.slice(0, -1);
  const sign = text.startsWith("-") && /[1-9]/.test(text) ? "−" : "";
  return sign + whole.replace(/\B(?=(\d{3})+$)/g, ",") + (part && `.${part}`);
}

/** "12,345" */
export const formatCount = (count: number): string => digitsOf(count, 0, 0);

/** Three significant digits without exponent, and no trailing zeros after an integer. */
function threeDigits(value: number): string {
  const size = Math.abs(value);
  const digits = size >= 100 || Number.isInteger(value) ? 0 : size >= 10 ? 1 : 2;
  return digitsOf(value, digits, digits);
}

/**
 * The number of decimals that values in "count/1000" stand for; folded stacks with decimals are
 * stored like this (local/folded.ts). 0 for other units.
 */
export const decimalsOf = (unit: string): number =>
  /^count\/10{1,6}$/.test(unit) ? unit.length - "count/1".length : 0;

/** The unit as shown: "count" for "count/1000". */
export const shownUnit = (unit: string): string => (decimalsOf(unit) ? "count" : unit);

/** "1.25 s", "340 MiB", "12,345"; `unit` is the profile's own unit. */
export function formatValue(value: number, unit: string): string {
  const base = baseOf(unit);
  const decimals = decimalsOf(unit);
  if (decimals)
    return digitsOf(value / 10 ** decimals, Math.abs(value) < 10 ** decimals ? decimals : 2, 0);
  if (!base) {
    const text = digitsOf(value, 2, 0);
    return !unit || unit === "count" ? text : `${text} ${unit}`;
  }
  const amount = value * base.scale;
  let chosen = base.table[0];
  for (const candidate of base.table)
    if (Math.abs(amount) >= candidate[1] * candidate[2] * 0.9995) chosen = candidate;
  return `${threeDigits(amount / chosen[1])} ${chosen[0]}`;
}

/** The exact number in the profile's own unit. */
export function formatExact(value: number, unit: string): string {
  const decimals = decimalsOf(unit);
  if (decimals) return digitsOf(value / 10 ** decimals, decimals, 0);
  const text = digitsOf(value, 3, 0);
  return unit && unit !== "count" ? `${text} ${unit}` : text;
}

/** Shown instead of a percentage that would be meaningless. */
const nothing = "–";

/**
 * The percentage that the part is of the whole. Returns `nothing` if the part is not between 0 and
 * the whole: with values below zero, a part may be below zero or exceed the total.
 */
export function formatPercent(part: number, whole: number): string {
  const percent = (100 * part) / whole;
  if (!(percent >= 0 && percent < 100.5)) return nothing;
  if (percent > 0 && percent < 0.01) return "<0.01%";
  return percent.toFixed(percent >= 99.95 || percent === 0 ? 0 : percent >= 10 ? 1 : 2) + "%";
}

export function formatSigned(value: number, unit: string): string {
  if (value === 0) return "0";
  return (value > 0 ? "+" : "−") + formatValue(Math.abs(value), unit);
}

/**
 * The value of the second side of a comparison minus that of the first. Integers are exact. Values
 * of a scaled side are not, so a difference below a billionth is a rounding error and counts as 0.
 */
export function changeOf(before: number, after: number): number {
  const change = after - before;
  const isExact = Number.isInteger(before) && Number.isInteger(after);
  return isExact || Math.abs(change) > 1e-9 * Math.max(Math.abs(before), Math.abs(after))
    ? change
    : 0;
}

/** The change from a to b: "+12.3%", "new", "gone"; `nothing` if a value is below zero. */
export function formatChange(before: number, after: number): string {
  const change = changeOf(before, after);
  if (change === 0) return "±0%";
  if (before === 0) return "new";
  if (after === 0) return "gone";
  if (before < 0 || after < 0) return nothing;
  const percent = (100 * change) / before;
  if (percent >= 1000) return `×${threeDigits(after / before)}`;
  return (
    (percent > 0 ? "+" : "−") + Math.abs(percent).toFixed(Math.abs(percent) >= 10 ? 0 : 1) + "%"
  );
}

export function formatBytes(bytes: number): string {
  return formatValue(bytes, "bytes");
}

const agoUnits: [name: string, seconds: number][] = [
  ["year", 365 * 86400],
  ["month", 30 * 86400],
  ["week", 7 * 86400],
  ["day", 86400],
  ["hour", 3600],
  ["minute", 60],
  ["second", 1],
];

/**
 * "3 hours ago", "in 12 days", "yesterday", "next week": rounded to the nearest, so that an hour
 * chosen a moment ago is still one.
 */
export function formatAgo(time: string | number, now = Date.now()): string {
  const seconds = (new Date(time).getTime() - now) / 1000;
  if (!Number.isFinite(seconds)) return "";
  const isPast = seconds < 0;
  for (const [i, [name, size]] of agoUnits.slice(0, -1).entries()) {
    // A rounded value that equals one of this unit is shown in this unit.
    if (Math.abs(seconds) < size - agoUnits[i + 1][1] / 2) continue;
    const count = Math.max(1, Math.round(Math.abs(seconds) / size));
    if (count === 1 && name === "day") return isPast ? "yesterday" : "tomorrow";
    if (count === 1 && size > 86400) return `${isPast ? "last" : "next"} ${name}`;
    const text = `${count} ${name}${count === 1 ? "" : "s"}`;
    return isPast ? `${text} ago` : `in ${text}`;
  }
  return isPast ? "just now" : "in a moment";
}

/** "22 Nov 2026, 09:05", in the reader's time zone. */
export function formatDate(time: string | number): string {
  const date = new Date(time);
  // "Sun Nov 22 2026" in every language
  const [, month, day, year] = date.toDateString().split(" ");
  return `${Number(day)} ${month} ${year}, ${date.toTimeString().slice(0, 5)}`;
}
