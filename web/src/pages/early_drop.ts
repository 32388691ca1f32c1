/* early_drop: files that are dropped on the first page before its script has come, which a browser would open in its place. */

const early: File[] = [];

function take(event: DragEvent): void {
  event.preventDefault();
  early.push(...(event.dataTransfer?.files ?? []));
}

if (location.pathname === "/") for (const kind of ["dragover", "drop"] as const) addEventListener(kind, take);

/** What was dropped so far; from now on the caller listens. */
export function takeEarly(): File[] {
  for (const kind of ["dragover", "drop"] as const) removeEventListener(kind, take);
  return early.splice(0);
}
