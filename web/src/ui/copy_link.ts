/* copy_link: the link to what is seen, short where the address is long. */
import { change } from "../api/api.ts";
import { copyText, say } from "./kit.tsx";

/** Up to here the query of an address is copied as it is. */
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
    // Clipboards open only while a key or button is pressed, in some browsers: the text is promised at once.
    await navigator.clipboard.write([
      new ClipboardItem({
        "text/plain": link.then((text) => new Blob([text], { type: "text/plain" })),
      }),
    ]);
    say(`${what} copied`);
  } catch {
    await copyText(await link, what); // others know no promised text and wait a few seconds instead
  }
}
