/*
 * early_drop: keeps files that are dropped before a script listens, or on pages without a drop
 * zone, because the browser would open them in place of the page. The first page takes files from
 * before its script, a share's page compares with them, and other pages report where to drop files.
 */
import { showMessage } from "../../ui/kit.tsx";

const early: File[] = [];
let handleFiles: (files: File[]) => void = showHint;

function showHint(): void {
  showMessage("To share a file, drop it on the home page.");
}

function take(event: DragEvent): void {
  if (event.defaultPrevented || !event.dataTransfer?.types.includes("Files")) return;
  event.preventDefault();
  if (event.type === "drop" && event.dataTransfer.files.length > 0)
    handleFiles([...event.dataTransfer.files]);
}

export function listenForEarlyDrops(): void {
  if (location.pathname === "/") handleFiles = (files) => void early.push(...files);
  for (const kind of ["dragover", "drop"] as const) addEventListener(kind, take);
}

/** Returns the files dropped so far. From now on the caller listens and takes files itself. */
export function takeEarlyDrops(): File[] {
  handleFiles = () => undefined;
  return early.splice(0);
}

/** Listens for files that are dropped on this page until the returned function is called. */
export function listenForDrops(take: (files: File[]) => void): () => void {
  handleFiles = take;
  return () => void (handleFiles = showHint);
}
