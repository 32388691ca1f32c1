/*
 * visible_text_model: a text from elsewhere as it may stand on a page. The characters that turn the direction of what follows them
 * (embeddings, overrides, isolates) are written as escapes: with them a name could be made to look like another. So are
 * control characters other than tabs and line breaks, which would be invisible. Letters that are written from right to left,
 * and the marks beside them, turn nothing but themselves and stay; names stand in <bdi>, so that they turn nothing beside them.
 */
const turning = /[\u202a-\u202e\u2066-\u2069]/g;
const invisible = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/g;

const escaped = (letter: string) =>
  "\\u" + letter.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0");

export function visible(text: string): string {
  return text.replace(turning, escaped).replace(invisible, escaped);
}

const control = /[\0-\x1f\x7f-\x9f]/g;
/** Spaces of all kinds, and letters without width. */
const onlyBlank = /^[\s\u200b-\u200d\u2060]+$/;

/** A name from elsewhere, of a frame, label, service or file, so that something of it is seen, though it be of spaces alone, and so is each letter that only controls. */
export const shownName = (name: string): string =>
  onlyBlank.test(name)
    ? name.replace(/./gsu, (letter) => (letter === " " ? "␣" : escaped(letter)))
    : name.replace(control, escaped);
