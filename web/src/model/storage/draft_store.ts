/* draft_store: this browser's interrupted uploads in parts, with the tokens that continue them. */
import { writeStoredList, readStoredList } from "./browser_storage.ts";

export interface UploadDraft {
  id: string;
  /** Needed without an account; otherwise "". */
  token: string;
  /** fingerprintOf the file. */
  print: string;
  begunAt: number;
}

const edgeBytes = 1 << 20;

/**
 * Identifies a file without reading all of it: name, size, time and a hash of its first and last
 * MiB. "" if the browser has no hash function, as on pages without TLS.
 */
export async function fingerprintOf(file: File): Promise<string> {
  if (!globalThis.crypto?.subtle) return "";
  const edges = new Blob([
    file.slice(0, edgeBytes),
    file.slice(Math.max(edgeBytes, file.size - edgeBytes)),
  ]);
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", await edges.arrayBuffer()));
  const hex = Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return `${file.size} ${file.lastModified} ${hex} ${file.name}`;
}

const list = () =>
  readStoredList<UploadDraft>(
    "uploads",
    ({ id, print }) => typeof id === "string" && typeof print === "string",
  );

/** Without storage, an interrupted upload starts again. */
const store = (entries: readonly UploadDraft[]) => writeStoredList("uploads", entries, 20);

export const findDraft = (print: string): UploadDraft | null =>
  list().find((entry) => print !== "" && entry.print === print) ?? null;

export function storeDraft(entry: UploadDraft): void {
  store([entry, ...list().filter((other) => other.print !== entry.print)]);
}

export function removeDraft(id: string): void {
  store(list().filter((entry) => entry.id !== id));
}
