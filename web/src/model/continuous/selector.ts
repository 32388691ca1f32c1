/*
 * selector: parses the text of a query as far as the page needs it: the profile type before the
 * braces, the matchers in them, the completable text at the cursor, and the position of an error
 * that the server reports. store/block/selector.h defines the grammar, and the server decides
 * whether a text is valid.
 */

export const operators = ["=", "!=", "=~", "!~"] as const;

/** The kind of text that can be completed at the cursor. */
export interface Place {
  expects: "name" | "operator" | "value" | "comma";
  /** The range that a completion replaces. */
  from: number;
  to: number;
  /** The typed text without quotes. */
  typed: string;
  /** For operators and values: their label. */
  label: string;
}

export interface Matcher {
  name: string;
  operator: string;
  /** The value as written, in quotes. */
  quoted: string;
  from: number;
  to: number;
}

/** A type with one of these characters is quoted and becomes the first matcher: see joinQuery. */
const signs = /[{}[\]()@"'`]/;
const quotedType = /^\s*__profile_type__="((?:[^"\\]|\\.)*)"[\s,]*/s;

/*
 * Control characters, some of which an input field drops, and characters that change the direction
 * of the following text.
 */
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

/** The type, the matchers, and the position of the matchers in the query. */
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

/** The query restricted to series that also have these labels. */
export function narrow(query: string, labels: readonly (readonly [string, string])[]): string {
  const { type, matchers } = splitQuery(query);
  const added = labels.map(([name, value]) => `${name}=${quote(value)}`);
  return joinQuery(type, [matchers.trim().replace(/,$/, ""), ...added].filter(Boolean).join(","));
}

/* The following expressions match at any position, perhaps an empty text. */
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

/** The text without its quotes, also if the closing quote is missing. */
const bare = (text: string) => (isQuoted(text) ? text.slice(1, -1) : text.replace(/^["'`]/, ""));

/** The complete matchers of a text, and the place at the cursor. */
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
    // Skips a character that does not start a matcher.
    next = Math.max(comma, next + 1);
  }
  at("name", cursor, cursor);
  return { matchers, place: place! };
}

/** The place of an operator after a complete name; null if an operator follows already. */
export function afterName(text: string, { expects, typed, from, to }: Place): Place | null {
  const isFree =
    expects === "name" &&
    typed !== "" &&
    from + typed.length === to &&
    !/^\s*[=!~]/.test(text.slice(to));
  return isFree ? { expects: "operator", from: to, to, typed: "", label: typed } : null;
}

/**
 * Whether the text at this place is not yet a matcher, so that the server would refuse the query.
 */
export function isUnfinished(text: string, { expects, from, to, typed }: Place): boolean {
  if (expects === "name") return typed !== "" && !/^\s*[=!~]/.test(text.slice(to));
  return expects === "operator" || (expects === "value" && !isQuoted(text.slice(from, to)));
}

/** The text after inserting a completion, and the new position of the cursor. */
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

/** The other matchers as a query, for which completions are requested. */
export const othersOf = (type: string, matchers: readonly Matcher[], place: Place): string =>
  joinQuery(
    type,
    matchers
      .filter(({ from, to }) => place.from < from || place.from > to)
      .map((one) => one.name + one.operator + one.quoted)
      .join(","),
  );

/**
 * The position of an error in the query, in UTF-16 units from 0, if the server's message contains
 * one. The server counts bytes from 1.
 */
export function placeOfError(query: string, sentence: string): number | null {
  const found = /\bcharacter (\d+)/.exec(sentence);
  if (!found) return null;
  const bytes = new TextEncoder().encode(query).subarray(0, Number(found[1]) - 1);
  return new TextDecoder().decode(bytes).length;
}

export interface FieldError {
  sentence: string;
  /** The text with the error: the matchers alone if possible, otherwise the whole query. */
  text: string;
  /** A position in that text, in UTF-16 units from 0. */
  at: number | null;
}

/** The server's error message for a field that contains only the matchers of the query. */
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
  // The field marks the position, so the server's quotation of the text there is left out.
  return {
    sentence: message.replace(
      / at (?:its end \(character \d+\)|character \d+(?:, here: .*)?)/s,
      where,
    ),
    text: matchers,
    at: inField,
  };
}
