/* copy_link: copies a link to the current view, a short link if the address is long. */
import { change } from "../api/api.ts";
import { copyText, showMessage } from "./kit.tsx";

/** Up to this length, the query of an address is copied unchanged. */
const maxQuery = 200;

export async function copyLink(): Promise<void> {
  const { href, pathname, search } = location;
  let what = "Link";
  if (search.length <= maxQuery) return copyText(href, what);
  const link = change<{ url: string }>("POST", "/api/v1/links", { path: pathname + search }).then(
    ({ url }) => ((what = "Short link"), url),
    (error: Error) => ((what = `No short link (${error.message}): long link`), href),
  );
  try {
    // Some browsers allow writing to the clipboard only during a key or button press, so a promise
    // is written at once.
    await navigator.clipboard.write([
      new ClipboardItem({
        "text/plain": link.then((text) => new Blob([text], { type: "text/plain" })),
      }),
    ]);
    showMessage(`${what} copied`);
  } catch {
    // other browsers do not accept a promise, but allow writing for a few seconds
    await copyText(await link, what);
  }
}
