/*
 * read: detects which format a file has, among those that the browser can read, and reads the
 * profile. Files are never sent from here.
 */
import { areStacks, decodeFolded } from "./folded.ts";
import { foreignText } from "./foreign_text.ts";
import { gunzip, tooLarge } from "./gunzip.ts";
import { decodePprof, isPprof } from "./pprof.ts";
import { LocalError, RefusedError, type LocalProfile } from "./profile.ts";
import { foreignProtobuf, looksLikeJson, refusalOf } from "./refusal.ts";

/** The largest uncompressed size that a tab should hold; larger files are read by the server. */
const maxBytes = 512 * 1024 * 1024;

const maxHeadBytes = 16 << 20;

/**
 * Folded stacks are text in which nearly every line ends with a number; recognized texts of other
 * tools are excluded.
 */
export function isFolded(bytes: Uint8Array): boolean {
  if (bytes.subarray(0, 4096).includes(0)) return false;
  // Tests whole lines, however long.
  const end = bytes.subarray(0, maxHeadBytes).indexOf(10, 64 * 1024);
  const head = new TextDecoder().decode(bytes.subarray(0, end < 0 ? maxHeadBytes : end));
  return !looksLikeJson(head) && !foreignText(head) && areStacks(head);
}

/**
 * Adds a note for each type whose values sum to 2^63 - 1 or more: the server stores the file but
 * reports no sums of that type (lib/profile/report/view.c).
 */
function addSumNotes({ sampleTypes, values, notes }: LocalProfile): void {
  sampleTypes.forEach(({ type }, column) => {
    let sum = 0;
    for (let i = column; i < values.length; i += sampleTypes.length) sum += Math.abs(values[i]);
    if (sum >= 2 ** 63)
      notes.push(
        `The values of ${type || `type ${column}`} sum to 2^63 − 1 or more, which the server ` +
          "cannot represent, so the page of the link will not show them.",
      );
  });
}

function decode(bytes: Uint8Array): LocalProfile | null {
  if (isFolded(bytes)) return decodeFolded(new TextDecoder().decode(bytes));
  return isPprof(bytes) && !foreignProtobuf(bytes) ? decodePprof(bytes) : null;
}

/** The uncompressed bytes of a file. Throws LocalError if they are too large, like gunzip. */
export async function unpack(file: Blob): Promise<Uint8Array> {
  if (file.size > maxBytes) throw new LocalError(tooLarge);
  const raw = new Uint8Array(await file.arrayBuffer());
  return raw[0] === 0x1f && raw[1] === 0x8b ? gunzip(raw, maxBytes) : raw;
}

/**
 * null: a format that only the server can read. Throws LocalError for a broken or too large file,
 * and RefusedError for a file that is not a profile.
 */
export async function readProfile(file: Blob): Promise<LocalProfile | null> {
  const bytes = await unpack(file);
  if (bytes.length === 0) throw new RefusedError("The file is empty.");
  const profile = decode(bytes);
  if (profile) addSumNotes(profile);
  const refusal = profile ? "" : refusalOf(bytes);
  if (refusal) throw new RefusedError(refusal);
  return profile;
}
