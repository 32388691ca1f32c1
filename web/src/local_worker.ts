/*
 * local_worker: reads a file beside the page and makes trees of it; nothing leaves the browser.
 * local_file.ts is the other side.
 */
import { encodeFlame } from "./local/encode_flame.ts";
import { countLabels } from "./local/labels.ts";
import { readProfile } from "./local/read.ts";
import { findRedactable, redact, type Redactable } from "./local/redact.ts";
import type { Redaction } from "./local/wish.ts";
import { LocalError, RefusedError, type LocalProfile } from "./local/profile.ts";
import type { LabelsAnswer, LabelsQuestion } from "./model/labels.ts";

export type LocalRequest =
  | { id: number; file: Blob }
  | { id: number; type: number; labels: readonly string[] }
  | { id: number; type: number; question: LabelsQuestion }
  /** wish: what to leave out of it; null: what could be. */
  | { id: number; source: Blob; wish: Redaction | null };

export interface LocalSummary {
  sampleTypes: { type: string; unit: string }[];
  defaultType: number;
  sampleCount: number;
  notes: string[];
}

export type LocalReply =
  /** null: a format that only the server reads. */
  | { id: number; summary: LocalSummary | null }
  | { id: number; flame: ArrayBuffer }
  | { id: number; redactable: Redactable | null }
  | { id: number; redacted: Blob }
  | { id: number; counted: LabelsAnswer }
  /** isRefused: the server would refuse the file, too. */
  | { id: number; error: string; isRefused: boolean };

let profile: LocalProfile | null = null;

async function answer(request: LocalRequest): Promise<LocalReply> {
  const { id } = request;
  if ("file" in request) {
    profile = await readProfile(request.file);
    if (!profile) return { id, summary: null };
    const { sampleTypes, defaultType, notes, start } = profile;
    return { id, summary: { sampleTypes, defaultType, notes, sampleCount: start.length - 1 } };
  }
  if ("source" in request) {
    const { source, wish } = request;
    return wish ? { id, redacted: await redact(source, wish) } : { id, redactable: await findRedactable(source) };
  }
  if (!profile) throw new LocalError("No file has been read.");
  if ("question" in request) return { id, counted: countLabels(profile, request.type, request.question) };
  return { id, flame: encodeFlame(profile, request.type, request.labels) };
}

addEventListener("message", (event: MessageEvent<LocalRequest>) => {
  answer(event.data).then(
    (reply) => postMessage(reply, { transfer: "flame" in reply ? [reply.flame] : [] }),
    (error) => postMessage({ id: event.data.id, error: error instanceof Error ? error.message : String(error), isRefused: error instanceof RefusedError } satisfies LocalReply),
  );
});
