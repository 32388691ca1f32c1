/*
 * local_file: the page's side of local_worker.ts: one local file, or two to compare them, without
 * uploading.
 */
import { Problem } from "../api/api.ts";
import type { TreeOptions } from "../local/encode_flame.ts";
import { LocalError, PairError, RefusedError } from "../local/profile.ts";
import type { Redactable } from "../local/redact.ts";
import type { Redaction } from "../local/redaction.ts";
import type { LocalReply, LocalRequest, LocalSummary, Unread } from "./local_worker.ts";
import { decodeFlame, type Flame } from "../model/tree/flame.ts";
import type { LabelsResponse, LabelsRequest } from "../model/rules/labels.ts";
import { startWorker } from "./start_worker.ts";

type Body<T> = T extends { id: number } ? Omit<T, "id"> : never;

const errors = { "": LocalError, refused: RefusedError, pair: PairError };

export class LocalFile {
  private readonly worker = startWorker("perfolio-local-worker");
  private readonly waiting = new Map<
    number,
    { resolve: (reply: LocalReply) => void; reject: (error: Error) => void }
  >();
  private lastId = 0;
  /** Why the worker no longer responds. */
  private end: Error | null = null;

  constructor(private readonly files: readonly Blob[]) {
    this.worker.addEventListener("message", (event: MessageEvent<LocalReply>) => {
      const job = this.waiting.get(event.data.id);
      this.waiting.delete(event.data.id);
      if (!("error" in event.data)) return job?.resolve(event.data);
      const error = new errors[event.data.refusal](event.data.error);
      error.file = event.data.file;
      job?.reject(error);
    });
    this.worker.addEventListener("error", () => {
      const end = (this.end = new Error(
        "The browser could not read this file. There may not be enough memory.",
      ));
      for (const { reject } of this.waiting.values()) reject(end);
      this.waiting.clear();
    });
  }

  private send(request: Body<LocalRequest>): Promise<LocalReply> {
    if (this.end) return Promise.reject(this.end);
    const id = ++this.lastId;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.worker.postMessage({ id, ...request });
    });
  }

  async read(): Promise<LocalSummary | Unread> {
    const reply = await this.send({ files: this.files });
    return "summary" in reply ? reply.summary : { unread: 0 };
  }

  /**
   * sampleType: a type as named in a link. A request that the file cannot serve fails with a
   * problem like the server's.
   */
  async flame(sampleType: string, tree: TreeOptions): Promise<Flame> {
    const reply = await this.send({ sampleType, tree }).catch((error) => {
      throw new Problem(
        400,
        "bad_request",
        "This profile cannot be shown",
        error instanceof Error ? error.message : "",
        "",
        null,
      );
    });
    if (!("flame" in reply)) throw new Error("The browser returned no tree.");
    return decodeFlame(reply.flame);
  }

  /** The parts that can be removed; null for a format that only the server can read. */
  async redactable(): Promise<Redactable | null> {
    const reply = await this.send({ source: this.files[0], redaction: null });
    return "redactable" in reply ? reply.redactable : null;
  }

  /** The redacted file, compressed. */
  async redact(redaction: Redaction): Promise<Blob> {
    const reply = await this.send({ source: this.files[0], redaction });
    if (!("redacted" in reply)) throw new Error("The browser returned no file.");
    return reply.redacted;
  }

  /** The two profiles, before and after, of a file that was refused with a PairError. */
  async split(): Promise<[before: Blob, after: Blob]> {
    const reply = await this.send({ paired: this.files[0] });
    if (!("pair" in reply)) throw new Error("The browser returned no files.");
    return reply.pair;
  }

  async labels(
    sampleType: string,
    labelsRequest: LabelsRequest,
    isNormalised: boolean,
  ): Promise<LabelsResponse> {
    const reply = await this.send({ sampleType, labelsRequest, isNormalised });
    if (!("counted" in reply)) throw new Error("The browser counted no labels.");
    return reply.counted;
  }

  close(): void {
    this.worker.terminate();
  }
}
