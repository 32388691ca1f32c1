/*
 * read: which of the formats that the browser can read a file has, and the profile in it. Files are
 * never sent anywhere from here.
 */
import { decodeFolded } from "./folded.ts";
import { gunzip } from "./gunzip.ts";
import { decodePprof, isPprof } from "./pprof.ts";
import { LocalError, type LocalProfile } from "./profile.ts";

/** What a tab can be asked to hold; larger files are for the server. */
export const maxBytes = 512 * 1024 * 1024;

/** Folded stacks are text whose first lines end in a number. */
export function isFolded(bytes: Uint8Array): boolean {
  if (bytes.subarray(0, 4096).includes(0)) return false;
  const head = new TextDecoder().decode(bytes.subarray(0, 64 * 1024));
  const lines = head.split("\n").map((line) => line.trim()).filter((line) => line && !line.startsWith("#") && !line.startsWith("//"));
  return lines.length > 0 && !/^[{[]/.test(lines[0]) && /\S[ \t]+[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$/.test(lines[0]);
}

/** null: a format that only the server reads. Throws LocalError for a broken file. */
export async function readProfile(file: Blob): Promise<LocalProfile | null> {
  if (file.size > maxBytes) return null;
  const raw = new Uint8Array(await file.arrayBuffer());
  const bytes = raw[0] === 0x1f && raw[1] === 0x8b ? await gunzip(raw, maxBytes) : raw;
  if (bytes.length === 0) throw new LocalError("The file is empty.");
  if (isFolded(bytes)) return decodeFolded(new TextDecoder().decode(bytes));
  return isPprof(bytes) ? decodePprof(bytes) : null;
}
