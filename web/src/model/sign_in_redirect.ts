/*
 * afterwards: where a sign-in leads. The wish comes from the address bar, so anyone may have written
 * it: only a path of this site counts.
 */

/** An address within origin: the one that `next` names, else the fallback. */
export function addressWithin(origin: string, next: string, fallback: string): string {
  try {
    const target = new URL(next, origin);
    // Whole, with its origin: "/x/..//host" has the path "//host", which alone is another site.
    if (next.startsWith("/") && target.origin === origin) return target.origin + target.pathname + target.search;
  } catch {
    // Not an address.
  }
  return origin + fallback;
}
