/* draft_store: unfinished uploads in parts of this browser, with the tokens that continue them. */
import { keepList, listKept } from "./kept_list.ts";

export interface Unfinished {
  id: string;
  /** Needed without an account; else "". */
  token: string;
  /** fingerprintOf the file. */
  print: string;
  begunAt: number;
}

const edgeBytes = 1 << 20;

/**
 * What tells a file from others without reading all of it: name, size, time and the hash of its first and last
 * MiB. "" where the browser has no hash, as on pages without TLS.
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
  listKept<Unfinished>(
    "uploads",
    ({ id, print }) => typeof id === "string" && typeof print === "string",
  );

/** Without storage an upload that is cut off begins anew. */
const store = (entries: readonly Unfinished[]) => keepList("uploads", entries, 20);

export const findUnfinished = (print: string): Unfinished | null =>
  list().find((entry) => print !== "" && entry.print === print) ?? null;

export function rememberUnfinished(entry: Unfinished): void {
  store([entry, ...list().filter((other) => other.print !== entry.print)]);
}

export function forgetUnfinished(id: string): void {
  store(list().filter((entry) => entry.id !== id));
}
