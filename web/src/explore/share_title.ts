/*
 * share_title: the default title of a share of a query: type, service, labels and window, in the
 * reader's time zone. The server creates the same title for a request without one, in UTC
 * (api/query/query_title.h).
 */
import type { QueryRequest } from "../model/continuous/explore_state.ts";
import { readMatchers, splitQuery } from "../model/continuous/selector.ts";
import { formatDate } from "../model/text/units.ts";
import { typeWord } from "./type_names.ts";

/** The server accepts titles of 200 characters; the titles of both sides must fit. */
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

function windowOf({ from, to }: QueryRequest): string {
  const [first, last] = [from, to].map((ms) => {
    const [date, time] = formatDate(ms).split(", ");
    return { date, time: to - from < 120_000 ? new Date(ms).toTimeString().slice(0, 8) : time };
  });
  return (
    `${first.date}, ${first.time}–${first.date === last.date ? "" : `${last.date}, `}` + last.time
  );
}

export function titleOf(request: QueryRequest): string {
  const { type, matchers } = splitQuery(request.query);
  return [cut(typeWord(type), longest.type), labelsOf(matchers), windowOf(request)].join(", ");
}

/** The titles of a query, or of the sides of a comparison: before and after. */
export function titlesOf(request: readonly QueryRequest[]): string[] {
  if (request.length < 2) return request.map(titleOf);
  const [before, after] = request;
  const compared = (other: string) => `${titleOf(after)} compared with ${other}`;
  const whole = compared(before.query === after.query ? windowOf(before) : titleOf(before));
  return [
    `${titleOf(before)} (before)`,
    whole.length <= longest.title ? whole : compared(windowOf(before)),
  ];
}
