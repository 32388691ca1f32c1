/*
 * style: a style sheet that comes with a chunk, so that pages which show other things do not carry it.
 * A sheet that a script constructs is no inline style, which the policy forbids. It stands behind
 * app.css, so what it says for small screens must be in it too.
 */
const known = new Set<string>();

export function addStyle(text: string): void {
  if (known.has(text)) return;
  known.add(text);
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(text);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
}
