/*
 * visible: a text from elsewhere as it may stand on a page. The characters that turn the direction of what follows them
 * (embeddings, overrides, isolates) are written as escapes: with them a name could be made to look like another. Letters
 * that are written from right to left, and the marks beside them, turn nothing but themselves and stay.
 */
const turning = /[\u202a-\u202e\u2066-\u2069]/g;

export function visible(text: string): string {
  return text.replace(turning, (letter) => "\\u" + letter.charCodeAt(0).toString(16).toUpperCase());
}

const control = /[\0-\x1f\x7f-\x9f]/g;
/** Spaces of all kinds, and letters without width. */
const onlyBlank = /^[\s\u200b-\u200d\u2060]+$/;
const escaped = (letter: string) => "\\u" + letter.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0");

/** The name of a frame so that something of it is seen, though it be of spaces alone, and so is each letter that only controls. */
export const shownName = (name: string): string =>
  onlyBlank.test(name) ? name.replace(/./gsu, (letter) => (letter === " " ? "␣" : escaped(letter))) : name.replace(control, escaped);
