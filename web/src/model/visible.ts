/*
 * visible: a text from elsewhere as it may stand on a page. The characters that turn the direction of what follows them
 * (embeddings, overrides, isolates) are written as escapes: with them a name could be made to look like another. Letters
 * that are written from right to left, and the marks beside them, turn nothing but themselves and stay.
 */
const turning = /[\u202a-\u202e\u2066-\u2069]/g;

export function visible(text: string): string {
  return text.replace(turning, (letter) => "\\u" + letter.charCodeAt(0).toString(16).toUpperCase());
}
