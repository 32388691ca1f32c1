/*
 * selector: the text of a query, as far as a page must know it: the profile type before the braces, the matchers in them,
 * what stands at the cursor and could be completed, and where the server says it is wrong. The grammar is store/block/selector.h's;
 * whether a text is right is the server's to say.
 */

export const operators = ["=", "!=", "=~", "!~"] as const;

/** What could stand at the cursor. */
export interface Place {
  expects: "name" | "operator" | "value" | "comma";
  /** What a completion replaces. */
  from: number;
  to: number;
  /** As far as it is typed, without quotes. */
  typed: string;
  /** Of operators and values: the label that they belong to. */
  label: string;
}

export interface Matcher {
  name: string;
  operator: string;
  /** As it was written, in its quotes. */
  quoted: string;
  from: number;
  to: number;
}

/** A type with one of these stands in quotes, as the first matcher: see joinQuery. */
const signs = /[{}[\]()@"'`]/;
const quotedType = /^\s*__profile_type__="((?:[^"\\]|\\.)*)"[\s,]*/s;

/* Controls, of which a field would drop some, and letters that would turn the direction of the text after them. */
const hidden = /[\0-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]/g;
const bytesOf = (letter: string) =>
  [...new TextEncoder().encode(letter)]
    .map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`)
    .join("");
const textOf = (hex: string) =>
  new TextDecoder().decode(
    Uint8Array.from(hex.split("\\x").slice(1), (byte) => parseInt(byte, 16)),
  );

const unescape = (text: string): string =>
  text.replace(/((?:\\x[\da-f]{2})+)|\\(.)/gis, (_, hex: string | undefined, letter: string) =>
    hex ? textOf(hex) : ({ n: "\n", t: "\t" }[letter] ?? letter),
  );

/** The type, the matchers, and where in the query the matchers begin. */
function parts(query: string): { type: string; matchers: string; begin: number } {
  const open = query.indexOf("{");
  if (open < 0) return { type: query.trim(), matchers: "", begin: query.length };
  const close = query.lastIndexOf("}");
  const type = query.slice(0, open).trim();
  const matchers = query.slice(open + 1, close > open ? close : undefined);
  const quoted = type ? null : quotedType.exec(matchers);
  const unescaped = quoted && unescape(quoted[1]);
  if (!unescaped || !signs.test(unescaped)) return { type, matchers, begin: open + 1 };
  return {
    type: unescaped,
    matchers: matchers.slice(quoted![0].length),
    begin: open + 1 + quoted![0].length,
  };
}

export function splitQuery(query: string): { type: string; matchers: string } {
  const { type, matchers } = parts(query);
  return { type, matchers };
}

export function joinQuery(type: string, matchers: string): string {
  if (signs.test(type))
    return `{__profile_type__=${quote(type)}${matchers.trim() ? "," : ""}${matchers}}`;
  return matchers.trim() ? `${type}{${matchers}}` : type;
}

export function quote(value: string): string {
  const escapes: Record<string, string> = { "\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t" };
  return `"${value.replace(/[\\"\n\t]/g, (letter) => escapes[letter]).replace(hidden, bytesOf)}"`;
}

/** The same query, of series alone that have these labels, too. */
export function narrow(query: string, labels: readonly (readonly [string, string])[]): string {
  const { type, matchers } = splitQuery(query);
  const added = labels.map(([name, value]) => `${name}=${quote(value)}`);
  return joinQuery(type, [matchers.trim().replace(/,$/, ""), ...added].filter(Boolean).join(","));
}

/* Written so that each finds something everywhere, perhaps nothing of it. */
const blank = /[\s,]*/y;
const space = /\s*/y;
const name = /[\p{L}\w.]*/uy;
const operator = /[=!~]{0,2}/y;
const value = /"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?|`[^`]*`?|[^\s,]*/sy;

function take(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return at + (pattern.exec(text)?.[0].length ?? 0);
}

const isQuoted = (text: string) => /^(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`)$/s.test(text);

/** Without its quotes, as far as there are any. */
const bare = (text: string) => (isQuoted(text) ? text.slice(1, -1) : text.replace(/^["'`]/, ""));

/** The matchers of a text that are complete, and the place that the cursor stands at. */
export function readMatchers(text: string, cursor: number): { matchers: Matcher[]; place: Place } {
  const matchers: Matcher[] = [];
  let place: Place | null = null;
  const at = (expects: Place["expects"], from: number, to: number, label = "") => {
    place ??= { expects, from, to, typed: bare(text.slice(from, Math.max(from, cursor))), label };
  };
  let next = 0;
  while (next < text.length) {
    const nameFrom = take(blank, text, next);
    const nameTo = take(name, text, nameFrom);
    if (cursor < nameFrom) at("name", cursor, cursor);
    if (cursor <= nameTo) at("name", nameFrom, nameTo);
    const label = text.slice(nameFrom, nameTo);
    const operatorFrom = take(space, text, nameTo);
    const operatorTo = take(operator, text, operatorFrom);
    const sign = text.slice(operatorFrom, operatorTo);
    const isWhole = (operators as readonly string[]).includes(sign);
    if (cursor < operatorTo || (cursor <= operatorTo && !isWhole))
      at("operator", Math.min(operatorFrom, cursor), operatorTo, label);
    const valueFrom = take(space, text, operatorTo);
    const valueTo = take(value, text, valueFrom);
    const quoted = text.slice(valueFrom, valueTo);
    const isEnded = isQuoted(quoted);
    if (cursor < valueFrom) at("value", cursor, valueTo, label);
    if (cursor < valueTo || (cursor === valueTo && !isEnded))
      at("value", valueFrom, valueTo, label);
    if (label && isWhole && isEnded)
      matchers.push({ name: label, operator: sign, quoted, from: nameFrom, to: valueTo });
    const comma = take(space, text, valueTo);
    if (cursor <= comma && text[comma] !== "," && isEnded) at("comma", cursor, cursor);
    if (cursor <= comma && text[comma] === ",") at("comma", cursor, cursor);
    // What is no matcher is stepped over letter by letter.
    next = Math.max(comma, next + 1);
  }
  at("name", cursor, cursor);
  return { matchers, place: place! };
}

/** A name that is typed whole may be followed by an operator at once; null where one stands already. */
export function afterName(text: string, { expects, typed, from, to }: Place): Place | null {
  const isFree =
    expects === "name" &&
    typed !== "" &&
    from + typed.length === to &&
    !/^\s*[=!~]/.test(text.slice(to));
  return isFree ? { expects: "operator", from: to, to, typed: "", label: typed } : null;
}

/** Text in this place is no matcher yet: the server would refuse the query. */
export function isUnfinished(text: string, { expects, from, to, typed }: Place): boolean {
  if (expects === "name") return typed !== "" && !/^\s*[=!~]/.test(text.slice(to));
  return expects === "operator" || (expects === "value" && !isQuoted(text.slice(from, to)));
}

/** The text with a completion in its place, and where the cursor stands then. */
export function complete(
  text: string,
  place: Place,
  chosen: string,
): { text: string; cursor: number } {
  const written =
    place.expects === "value" ? quote(chosen) : place.expects === "comma" ? ", " : chosen;
  return {
    text: text.slice(0, place.from) + written + text.slice(place.to),
    cursor: place.from + written.length,
  };
}

/** The others, as a query: what a completion asks about. */
export const othersOf = (type: string, matchers: readonly Matcher[], place: Place): string =>
  joinQuery(
    type,
    matchers
      .filter(({ from, to }) => place.from < from || place.from > to)
      .map((one) => one.name + one.operator + one.quoted)
      .join(","),
  );

/** Where in the query an error is, counted in letters from 0, if the server's sentence says so: it counts bytes, from 1. */
export function placeOfError(query: string, sentence: string): number | null {
  const found = /\bcharacter (\d+)/.exec(sentence);
  if (!found) return null;
  const bytes = new TextEncoder().encode(query).subarray(0, Number(found[1]) - 1);
  return new TextDecoder().decode(bytes).length;
}

export interface FieldError {
  sentence: string;
  /** The text that the error is in: the matchers alone where that is possible, else the whole query. */
  text: string;
  /** A position in that text, in letters from 0. */
  at: number | null;
}

/** The server's sentence about a query, for a field that holds only the query's matchers. */
export function errorInField(query: string, sentence: string): FieldError {
  const message = sentence.replace(/^query: /, "");
  const { matchers, begin } = parts(query);
  const at = placeOfError(query, message);
  if (at === null || at < begin || at > begin + matchers.length)
    return { sentence: message, text: query, at };
  const inField = at - begin;
  const where =
    inField < matchers.length
      ? ` at character ${[...matchers.slice(0, inField)].length + 1}`
      : " at its end";
  // The field marks the place, so the server's quotation of what stands there is left out.
  return {
    sentence: message.replace(
      / at (?:its end \(character \d+\)|character \d+(?:, here: .*)?)/s,
      where,
    ),
    text: matchers,
    at: inField,
  };
}
