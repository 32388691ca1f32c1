/*
 * sign_in_redirect: the page to open after a sign-in. The target is in the address bar, so a link can set it: only a path of
 * this site is accepted.
 */

/** An address within origin: the one that `next` names, else the fallback. */
export function addressWithin(origin: string, next: string, fallback: string): string {
  try {
    const target = new URL(next, origin);
    // Whole, with its origin: "/x/..//host" has the path "//host", which alone is another site.
    if (next.startsWith("/") && target.origin === origin)
      return target.origin + target.pathname + target.search;
  } catch {
    // Not an address.
  }
  return origin + fallback;
}
