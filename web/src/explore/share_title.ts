/*
 * share_title: what a share of a query is called until its maker chooses a title: type, service, labels and window, in the
 * reader's time zone. The server makes the same of a request without a title, in UTC (api/query/query_title.h).
 */
import type { Asked } from "../model/explore_state.ts";
import { readMatchers, splitQuery } from "../model/selector.ts";
import { formatDate } from "../model/units.ts";
import { typeWord } from "./type_names.ts";

/** The server takes titles of 200 characters: so that those of two sides fit. */
const longest = { title: 200, type: 30, labels: 45 };
const cut = (text: string, most: number) =>
  text.length > most ? `${text.slice(0, most - 1)}…` : text;

function labelsOf(matchers: string): string {
  const all = readMatchers(matchers, matchers.length).matchers;
  const isService = ({ name, operator }: { name: string; operator: string }) =>
    name === "service_name" && operator === "=";
  const texts = [...all.filter(isService), ...all.filter((one) => !isService(one))].map((one) => {
    const value = one.quoted.slice(1, -1).replace(/\\(["\\])/g, "$1");
    return isService(one) ? value : one.name + one.operator + value;
  });
  return cut(texts.join(", ") || "all services", longest.labels);
}

function windowOf({ from, to }: Asked): string {
  const [first, last] = [from, to].map((ms) => {
    const [date, time] = formatDate(ms).split(", ");
    return { date, time: to - from < 120_000 ? new Date(ms).toTimeString().slice(0, 8) : time };
  });
  return `${first.date}, ${first.time}–${first.date === last.date ? "" : `${last.date}, `}${last.time}`;
}

export function titleOf(asked: Asked): string {
  const { type, matchers } = splitQuery(asked.query);
  return [cut(typeWord(type), longest.type), labelsOf(matchers), windowOf(asked)].join(", ");
}

/** Of one query, or of a comparison's sides: before and after. */
export function titlesOf(asked: readonly Asked[]): string[] {
  if (asked.length < 2) return asked.map(titleOf);
  const [before, after] = asked;
  const compared = (other: string) => `${titleOf(after)} compared with ${other}`;
  const whole = compared(before.query === after.query ? windowOf(before) : titleOf(before));
  return [
    `${titleOf(before)} (before)`,
    whole.length <= longest.title ? whole : compared(windowOf(before)),
  ];
}
