/*
 * local_worker: reads a local file, or two to compare them, computes trees, and writes exports,
 * outside the page's thread; nothing leaves the browser. local_file.ts and export/make.ts send the
 * requests.
 */
import "./worker_prelude.ts";
import { writeExport, type ExportRequest } from "../export/write.ts";
import {
  encodeFlame,
  scaleOf,
  unitOf,
  type Side,
  type TreeOptions,
} from "../local/encode_flame.ts";
import { splitPair } from "../local/folded.ts";
import { joinLabels } from "../local/join_labels.ts";
import { countLabels, labelKeys } from "../local/labels.ts";
import { readProfile, unpack } from "../local/read.ts";
import { findRedactable, redact, type Redactable } from "../local/redact.ts";
import { findSides } from "../local/sides.ts";
import type { Redaction } from "../local/redaction.ts";
import { LocalError, PairError, RefusedError, type LocalProfile } from "../local/profile.ts";
import type { LabelsResponse, LabelsRequest } from "../model/rules/labels.ts";

/** sampleType: a type as named in a link. */
export type LocalRequest =
  | { id: number; files: readonly Blob[] }
  | { id: number; sampleType: string; tree: TreeOptions }
  | { id: number; sampleType: string; labelsRequest: LabelsRequest; isNormalised: boolean }
  /** Folded stacks with two values each. */
  | { id: number; paired: Blob }
  /**
   * redaction: the parts to remove from the file; null: only report the parts that can be removed.
   */
  | { id: number; source: Blob; redaction: Redaction | null }
  | { id: number; seen: ExportRequest };

/** The label keys and notes of one file, or of both files of a comparison. */
export interface LocalSummary {
  labelKeys: string[];
  notes: string[];
}

/** The index of a file with a format that only the server can read. */
export interface Unread {
  unread: number;
}

export type LocalReply =
  | { id: number; summary: LocalSummary | Unread }
  | { id: number; flame: ArrayBuffer }
  | { id: number; redactable: Redactable | null }
  | { id: number; redacted: Blob }
  | { id: number; counted: LabelsResponse }
  | { id: number; pair: [before: Blob, after: Blob] }
  | { id: number; parts: BlobPart[] }
  /**
   * refusal: the server would refuse the file too; file: its index, -1 if the error is not about a
   * single file.
   */
  | { id: number; error: string; refusal: Refusal; file: number };

/** "pair": it can be split into before and after. */
export type Refusal = "" | "refused" | "pair";

const refusalOf = (error: unknown): Refusal =>
  error instanceof PairError ? "pair" : error instanceof RefusedError ? "refused" : "";

let profiles: LocalProfile[] = [];

async function readAll(files: readonly Blob[]): Promise<LocalSummary | Unread> {
  for (const [i, file] of files.entries()) {
    const profile = await readProfile(file).catch((error) => {
      if (error instanceof LocalError) error.file = i;
      throw error;
    });
    if (!profile) return { unread: i };
    profiles.push(profile);
  }
  return {
    labelKeys: [...new Set(profiles.flatMap(labelKeys))],
    notes: [...new Set(profiles.flatMap(({ notes }) => notes))],
  };
}

function count(
  sides: readonly Side[],
  labelsRequest: LabelsRequest,
  isNormalised: boolean,
): LabelsResponse {
  if (sides.length === 1)
    return countLabels(sides[0].profile, sides[0].type, labelsRequest).response;
  const keys = profiles.flatMap(labelKeys);
  const [a, b] = sides.map(({ profile, type }) =>
    countLabels(profile, type, { ...labelsRequest, limit: 0 }, keys),
  );
  return joinLabels(
    [a, b],
    [sides[0].factor, sides[1].factor * scaleOf(sides, isNormalised)],
    unitOf(sides),
    labelsRequest.limit,
  );
}

async function respond(request: LocalRequest): Promise<LocalReply> {
  const { id } = request;
  if ("seen" in request) return { id, parts: await writeExport(request.seen) };
  if ("files" in request) return { id, summary: await readAll(request.files) };
  if ("source" in request) {
    const { source, redaction } = request;
    return redaction
      ? { id, redacted: await redact(source, redaction) }
      : { id, redactable: await findRedactable(source) };
  }
  if ("paired" in request)
    return {
      id,
      pair: splitPair(new TextDecoder().decode(await unpack(request.paired))).map(
        (text) => new Blob([text]),
      ) as [Blob, Blob],
    };
  if (profiles.length === 0) throw new LocalError("No file has been read.");
  const sides = findSides(profiles, request.sampleType);
  if ("labelsRequest" in request)
    return { id, counted: count(sides, request.labelsRequest, request.isNormalised) };
  return { id, flame: encodeFlame(sides, request.tree) };
}

addEventListener("message", (event: MessageEvent<LocalRequest>) => {
  respond(event.data).then(
    (reply) => postMessage(reply, { transfer: "flame" in reply ? [reply.flame] : [] }),
    (error) =>
      postMessage({
        id: event.data.id,
        error: error instanceof Error ? error.message : String(error),
        refusal: refusalOf(error),
        file: error instanceof LocalError ? error.file : -1,
      } satisfies LocalReply),
  );
});
