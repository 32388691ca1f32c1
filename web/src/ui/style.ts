/*
 * style: a style sheet that comes with a chunk, so that pages which show other things do not carry it.
 * A sheet that a script constructs is no inline style, which the policy forbids. It stands behind
 * app.css and those that came before it, so what it says for small screens must be in it too.
 */
const known = new Set<string>();
let last: CSSStyleSheet | null = null;

/** isLast: it has the last word over all sheets that come later; one of them at most does. */
export function addStyle(text: string, isLast = false): void {
  if (known.has(text)) return;
  known.add(text);
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(text);
  const others = document.adoptedStyleSheets.filter((one) => one !== last);
  if (isLast) last = sheet;
  document.adoptedStyleSheets = isLast
    ? [...others, sheet]
    : [...others, sheet, ...(last ? [last] : [])];
}
