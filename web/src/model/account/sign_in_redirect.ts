/*
 * sign_in_redirect: the page to open after a sign-in. The target is in the address bar, so a link
 * can set it: only a path of this site is accepted.
 */

/** The URL of the path in `next` if it is within origin; otherwise that of the fallback. */
export function addressWithin(origin: string, next: string, fallback: string): string {
  try {
    const target = new URL(next, origin);
    // The whole URL with its origin: "/x/..//host" has the path "//host", which would lead to
    // another site.
    if (next.startsWith("/") && target.origin === origin)
      return target.origin + target.pathname + target.search;
  } catch {
    // Not a valid URL.
  }
  return origin + fallback;
}
