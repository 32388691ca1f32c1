/*
 * refusal: files that the server surely refuses, told as it tells them (lib/profile/format.c), so that nobody sends one
 * to learn that.
 */
import { hasStack } from "./folded.ts";
import { isPprof } from "./pprof.ts";

const readable = "What can be read is pprof (raw, gzip or zstd), folded stacks, perf script text, Chrome .cpuprofile and speedscope JSON.";
const strangers: [RegExp, string][] = [
  [/^PERFILE2/, "This is perf.data; the output of “perf script” is what to share."],
  [/^\x7fELF/, "This is a program or library, not a profile."],
  [/^PK\x03\x04/, "This is a zip archive; the profile in it is what to share."],
  [/^FLR\0/, "This is a JFR recording; convert it to pprof or folded stacks."],
  [/^# callgrind format/, "This is a callgrind profile."],
  [/^\x89PNG/, "This is a picture."],
  [/^<(!|html)/, "This is HTML, perhaps an error page that was saved."],
  [/^<\?xml/, "This is XML."],
  [/^<svg/, "This is an SVG picture; the folded stacks that it was made from are what to share."],
  [/^\s*\[\s*\{/, "This JSON is a list, perhaps a Chrome trace."],
];
/** Packed again, or text of two bytes a letter: what is in it is not known here. */
const unknown = /^(\x1f\x8b|\x28\xb5\x2f\xfd|\xff\xfe|\xfe\xff)/;
/** As an event of perf script may look, on the generous side: "java 12 1.5: 3 cycles:". */
const mayBeEvent = /^\S.*\s\d.*:/m;
const noText = /[\0-\x08\x0e-\x1a\x1c-\x1f]/;
const sniffed = 4096;

/** Why the server refuses it; "" for what it may read. */
export function refusalOf(bytes: Uint8Array): string {
  const start = String.fromCharCode(...bytes.subarray(0, sniffed));
  if (unknown.test(start)) return "";
  const stranger = strangers.find(([shape]) => shape.test(start));
  if (stranger) return `${stranger[1]} ${readable}`;
  if (noText.test(start) ? bytes[0] === 0x0a || isPprof(bytes) : /^\s*\{/.test(start)) return "";
  const text = new TextDecoder().decode(bytes);
  const isNothing = noText.test(start) && bytes.includes(0) ? true : !mayBeEvent.test(text) && !hasStack(text);
  return isNothing ? `This is no profile that is known here. ${readable}` : "";
}
