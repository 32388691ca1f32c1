/*
 * visible_text_model: makes external text safe to show. Characters that change the direction of the
 * following text (embeddings, overrides, isolates) are written as escapes, because with them one
 * name could imitate another. Control characters except tabs and line breaks are written as escapes
 * too, because they would be invisible. Letters of right-to-left scripts and their marks stay;
 * lists put names into <bdi>, so that they do not affect their surroundings.
 */
const turning = /[\u202a-\u202e\u2066-\u2069]/g;
const invisible = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/g;

const escaped = (letter: string) =>
  "\\u" + letter.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0");

export function visible(text: string): string {
  return text.replace(turning, escaped).replace(invisible, escaped);
}

const control = /[\0-\x1f\x7f-\x9f]/g;
/** White space of all kinds, and characters without width. */
const onlyBlank = /^[\s\u200b-\u200d\u2060]+$/;

/**
 * Makes every character of the name of a frame, label, service or file visible: control characters
 * are escaped, and a name that consists of white space is shown as symbols.
 */
export const shownName = (name: string): string =>
  onlyBlank.test(name)
    ? name.replace(/./gsu, (letter) => (letter === " " ? "␣" : escaped(letter)))
    : name.replace(control, escaped);
