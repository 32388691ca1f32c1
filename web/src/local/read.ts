/*
 * read: which of the formats that the browser can read a file has, and the profile in it. Files are
 * never sent anywhere from here.
 */
import { areStacks, decodeFolded } from "./folded.ts";
import { foreignText } from "./foreign_text.ts";
import { gunzip, tooLarge } from "./gunzip.ts";
import { decodePprof, isPprof } from "./pprof.ts";
import { LocalError, RefusedError, type LocalProfile } from "./profile.ts";
import { foreignProtobuf, looksLikeJson, refusalOf } from "./refusal.ts";

/** What a tab can be asked to hold; larger files are for the server. */
const maxBytes = 512 * 1024 * 1024;

const maxHeadBytes = 16 << 20;

/** Folded stacks are text of which nearly every line ends in a number; known text of other tools is none. */
export function isFolded(bytes: Uint8Array): boolean {
  if (bytes.subarray(0, 4096).includes(0)) return false;
  // Lines are whole there, however long.
  const end = bytes.subarray(0, maxHeadBytes).indexOf(10, 64 * 1024);
  const head = new TextDecoder().decode(bytes.subarray(0, end < 0 ? maxHeadBytes : end));
  return !looksLikeJson(head) && !foreignText(head) && areStacks(head);
}

/** The server keeps such a file, but adds up nothing of a type whose values come to 2^63 - 1 or more (lib/profile/report/view.c). */
function noteSums({ sampleTypes, values, notes }: LocalProfile): void {
  sampleTypes.forEach(({ type }, column) => {
    let sum = 0;
    for (let i = column; i < values.length; i += sampleTypes.length) sum += Math.abs(values[i]);
    if (sum >= 2 ** 63)
      notes.push(
        `The values of ${type || `type ${column}`} come to 2^63 − 1 or more: the link’s page will not show them, since the server cannot add them up.`,
      );
  });
}

function decode(bytes: Uint8Array): LocalProfile | null {
  if (isFolded(bytes)) return decodeFolded(new TextDecoder().decode(bytes));
  return isPprof(bytes) && !foreignProtobuf(bytes) ? decodePprof(bytes) : null;
}

/** A file's bytes, unpacked. Throws LocalError for more than can be held, as gunzip does. */
export async function unpack(file: Blob): Promise<Uint8Array> {
  if (file.size > maxBytes) throw new LocalError(tooLarge);
  const raw = new Uint8Array(await file.arrayBuffer());
  return raw[0] === 0x1f && raw[1] === 0x8b ? gunzip(raw, maxBytes) : raw;
}

/** null: a format that only the server reads. Throws LocalError for a broken or too large file, RefusedError for what is no profile. */
export async function readProfile(file: Blob): Promise<LocalProfile | null> {
  const bytes = await unpack(file);
  if (bytes.length === 0) throw new RefusedError("The file is empty.");
  const profile = decode(bytes);
  if (profile) noteSums(profile);
  const refusal = profile ? "" : refusalOf(bytes);
  if (refusal) throw new RefusedError(refusal);
  return profile;
}
