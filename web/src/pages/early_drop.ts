/*
 * early_drop: files that are dropped where no script listens yet, or none at all: a browser would open them in the page's place.
 * The first page takes what came before its script, a share's page compares with them, and other pages say where to drop them.
 */
import { say } from "../ui/kit.tsx";

const early: File[] = [];
let hear: (files: File[]) => void = tell;

function tell(): void {
  say("To share a file, drop it on the home page.");
}

function take(event: DragEvent): void {
  if (event.defaultPrevented || !event.dataTransfer?.types.includes("Files")) return;
  event.preventDefault();
  if (event.type === "drop" && event.dataTransfer.files.length > 0)
    hear([...event.dataTransfer.files]);
}

export function startHearing(): void {
  if (location.pathname === "/") hear = (files) => void early.push(...files);
  for (const kind of ["dragover", "drop"] as const) addEventListener(kind, take);
}

/** What was dropped so far; from now on the caller listens, and takes what it wants for itself. */
export function takeEarly(): File[] {
  hear = () => undefined;
  return early.splice(0);
}

/** Files that are dropped on this page, until what is returned is called. */
export function hearDrops(take: (files: File[]) => void): () => void {
  hear = take;
  return () => void (hear = tell);
}
