/*
 * refusal: files that the server surely refuses, told as it tells them (lib/profile/format.c), so that nobody sends one
 * to learn that.
 */
import { areStacks } from "./folded.ts";
import { foreignText } from "./foreign_text.ts";
import { isPprof } from "./pprof.ts";

const readable = "What can be read is pprof (raw, gzip or zstd), folded stacks, perf script text, Chrome .cpuprofile and speedscope JSON.";
const strangers: [RegExp, string][] = [
  [/^PERFILE2/, "This is perf.data; the output of “perf script” is what to share."],
  [/^\x7fELF/, "This is a program or library, not a profile."],
  [/^PK\x03\x04/, "This is a zip archive; the profile in it is what to share."],
  [/^FLR\0/, "This is a JFR recording; convert it to pprof or folded stacks."],
  [/^\x89PNG/, "This is a picture."],
  [/^<(!|html)/, "This is HTML, perhaps an error page that was saved."],
  [/^<\?xml/, "This is XML."],
  [/^<svg/, "This is an SVG picture; the folded stacks that it was made from are what to share."],
  [/^\s*\[\s*\{/, "This JSON is a list, perhaps a Chrome trace."],
];
/** PHP's "{main};run 1" and "[unknown];run 1" are stacks. */
export const looksLikeJson = (start: string): boolean => /^\s*(\{\s*["}]|\[\s*\{)/.test(start);

const [quote, backslash, colon] = [..."\"\\:"].map((letter) => letter.charCodeAt(0));
const isOpening = (byte: number) => byte === 0x7b || byte === 0x5b;
const isClosing = (byte: number) => byte === 0x7d || byte === 0x5d;

/** Names of the members of the outermost object; the text, which may be long, is only looked through. */
function memberNames(bytes: Uint8Array): Set<string> {
  const names = new Set<string>();
  const decoder = new TextDecoder();
  for (let at = 0, depth = 0; at < bytes.length; at++) {
    if (isOpening(bytes[at])) depth++;
    else if (isClosing(bytes[at])) depth--;
    else if (bytes[at] === quote) {
      const from = ++at;
      for (; at < bytes.length && bytes[at] !== quote; at++) if (bytes[at] === backslash) at++;
      let behind = at + 1;
      while (bytes[behind] <= 0x20) behind++;
      if (depth === 1 && bytes[behind] === colon) names.add(decoder.decode(bytes.subarray(from, at)));
    }
  }
  return names;
}

/** Which kind of JSON it is that nobody here reads; "" for .cpuprofile and speedscope. */
function strangeJson(bytes: Uint8Array): string {
  const names = memberNames(bytes);
  const has = (...all: string[]) => all.every((name) => names.has(name));
  const isHeap = has("head") && !has("startTime") && !has("endTime");
  if (has("profiles", "shared") || (!isHeap && (has("nodes") || has("head")))) return "";
  if (isHeap) return "This is a Chrome heap profile.";
  if (has("traceEvents")) return "This is a Chrome trace; save the CPU profile alone.";
  if (has("frames", "interval")) return "This is a stackprof dump; convert it to folded stacks.";
  return "This JSON is no profile that is known here.";
}

/** Packed again, or text of two bytes a letter: what is in it is not known here. */
const unknown = /^(\x1f\x8b|\x28\xb5\x2f\xfd|\xff\xfe|\xfe\xff)/;
/** As an event of perf script may look, on the generous side: "java 12 1.5: 3 cycles:". */
const mayBeEvent = /^\S.*\s\d.*:/m;
const noText = /[\0-\x08\x0e-\x1a\x1c-\x1f]/;
const sniffed = 4096;

/** Why the server refuses it; "" for what it may read. */
export function refusalOf(bytes: Uint8Array): string {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return refusalOf(bytes.subarray(3));
  const start = String.fromCharCode(...bytes.subarray(0, sniffed));
  if (unknown.test(start)) return "";
  const stranger = strangers.find(([shape]) => shape.test(start));
  if (stranger) return `${stranger[1]} ${readable}`;
  if (looksLikeJson(start)) {
    const kind = strangeJson(bytes);
    return kind && `${kind} ${readable}`;
  }
  if (noText.test(start) && (bytes[0] === 0x0a || isPprof(bytes))) return "";
  const text = new TextDecoder().decode(bytes);
  const foreign = foreignText(text);
  if (foreign) return `${foreign} ${readable}`;
  const isNothing = noText.test(start) && bytes.includes(0) ? true : !mayBeEvent.test(text) && !areStacks(text);
  return isNothing ? `This is no profile that is known here. ${readable}` : "";
}
