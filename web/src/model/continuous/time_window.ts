/* time_window: the times of a window as people choose them: relative to now, or calendar times. */

const units: Record<string, number> = {
  s: 1000,
  m: 60_000,
  h: 3600_000,
  d: 86_400_000,
  w: 7 * 86_400_000,
};

/** "now", "now-90m" or ms since 1970; null for anything else. */
export function resolveTime(text: string, nowMs: number): number | null {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  const found = /^now(?:-(\d{1,6})([smhdw]))?$/.exec(text);
  if (!found) return null;
  return nowMs - (found[1] ? Number(found[1]) * units[found[2]] : 0);
}

export interface Span {
  from: number;
  to: number;
}

/** The window in ms; the last hour if the texts are not a window. */
export function resolveWindow(from: string, until: string, nowMs: number): Span {
  const to = resolveTime(until, nowMs) ?? nowMs;
  const begin = resolveTime(from, nowMs);
  return { from: begin !== null && begin < to ? begin : to - units.h, to };
}

const two = (number: number) => String(number).padStart(2, "0");

/** The format of <input type="datetime-local" step="1">, in the reader's time zone. */
export function toLocal(ms: number): string {
  const date = new Date(ms);
  const day =
    `${String(date.getFullYear()).padStart(4, "0")}-${two(date.getMonth() + 1)}-` +
    two(date.getDate());
  return `${day}T${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

const hourMs = 3_600_000;

/**
 * The window between two texts of toLocal. A text that was not changed keeps its exact time. When
 * daylight saving ends, an hour occurs twice: the end is the second one if the first is not after
 * the start. null: the end is not after the start.
 */
export function windowOfLocal(from: string, to: string, before: Span): Span | null {
  const start = from === toLocal(before.from) ? before.from : new Date(from).getTime();
  const end = to === toLocal(before.to) ? before.to : new Date(to).getTime();
  const later = toLocal(end + hourMs) === to ? end + hourMs : end;
  const last = start < end ? end : later;
  return start < last ? { from: start, to: last } : null;
}

const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** "09:05:10", with the date if it differs from that of `besideMs`. */
export function formatTime(ms: number, besideMs = NaN): string {
  const date = new Date(ms);
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  if (date.toDateString() === new Date(besideMs).toDateString()) return time;
  return `${date.getDate()} ${months[date.getMonth()]}, ${time}`;
}

export const formatSpan = ({ from, to }: Span): string =>
  `${formatTime(from, Date.now())} – ${formatTime(to, from)}`;

/** "45 s", "1 h 30 min" */
export function formatLength(ms: number): string {
  const seconds = Math.max(1, Math.round(ms / 1000));
  const parts: [number, string][] = [
    [Math.floor(seconds / 86400), "d"],
    [Math.floor(seconds / 3600) % 24, "h"],
    [Math.floor(seconds / 60) % 60, "min"],
    [seconds % 60, "s"],
  ];
  const first = parts.findIndex(([count]) => count > 0);
  return parts
    .slice(first, first + 2)
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${count} ${unit}`)
    .join(" ");
}
