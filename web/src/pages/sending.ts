/*
 * sending: shares chosen files one after the other. What was sent before one failed is not sent again when the reader
 * tries again, and is deleted when they give up: nobody has its link yet.
 */
import { deleteShare, Problem, type Created, type ShareSettings } from "../api/api.ts";
import type { Redaction } from "../local/wish.ts";
import { forget, remember } from "../model/local_preferences.ts";
import { mergeShares, uploadProfile } from "../api/upload.ts";
import { asProblem } from "../ui/kit.tsx";
import { redactedFile } from "./redaction_form.tsx";

/** A share that was made here, with what the pages call it. */
export interface Sent {
  created: Created;
  title: string;
}

export interface Progress {
  sent: number;
  total: number;
  label: string;
  /** Why nothing is being sent now; else "". */
  waiting?: string;
}

/** So that the delete link outlives the page. */
export function keep(created: Created, title: string): Sent {
  remember({
    id: created.id,
    title,
    url: created.url,
    deleteToken: created.delete_token,
    createdAt: Date.now(),
  });
  return { created, title };
}

/** Says of which file it is. */
const problemOfFile = (caught: unknown, { name }: File): Problem => {
  const { status, kind, title, message, requestId, retryAfter } = asProblem(caught);
  return new Problem(status, kind, title, `${name}: ${message}`, requestId, retryAfter);
};

export class Sending {
  private readonly sent = new Map<File, Sent & { as: string }>();
  private merged: Sent[] = [];

  /** Those of which the server has a share that nobody has the link of. */
  get files(): File[] {
    return [...this.sent.keys()];
  }

  /** In the order of the files. Throws the signal's reason when it was aborted, be it ever so late: takeBack() then deletes what was sent. */
  async sendAll(
    files: readonly File[],
    wish: Redaction,
    settings: ShareSettings,
    onProgress: (progress: Progress) => void,
    signal: AbortSignal,
  ): Promise<Sent[]> {
    const as = JSON.stringify([wish, settings, files.length > 1]);
    const all: Sent[] = [];
    for (const [i, chosen] of files.entries()) {
      const known = this.sent.get(chosen);
      if (known && known.as !== as) await this.takeBack([chosen]);
      const label = files.length > 1 ? `${i + 1} of ${files.length}: ${chosen.name}` : chosen.name;
      const one = this.sent.get(chosen) ?? {
        ...(await this.send(
          chosen,
          wish,
          settings,
          files.length > 1,
          (sent, total, waiting) => onProgress({ sent, total, label, waiting }),
          signal,
        )),
        as,
      };
      this.sent.set(chosen, one);
      signal.throwIfAborted();
      all.push(one);
    }
    return all;
  }

  private async send(
    chosen: File,
    wish: Redaction,
    settings: ShareSettings,
    isOneOfSeveral: boolean,
    onProgress: (sent: number, total: number, waiting?: string) => void,
    signal: AbortSignal,
  ): Promise<Sent> {
    onProgress(0, chosen.size);
    try {
      const file = await redactedFile(chosen, wish);
      const own: ShareSettings = { ...settings, filename: file.name };
      if (isOneOfSeveral) delete own.title;
      signal.throwIfAborted();
      return keep(
        await uploadProfile(file, { settings: own, signal, onProgress }),
        own.title || file.name,
      );
    } catch (caught) {
      signal.throwIfAborted();
      throw problemOfFile(caught, chosen);
    }
  }

  /** One profile of those that were sent. Throws as sendAll does. */
  async merge(
    shares: readonly Sent[],
    settings: ShareSettings,
    signal: AbortSignal,
  ): Promise<Sent> {
    const created = await mergeShares(
      shares.map((one) => one.created.id),
      settings,
    );
    const merged = keep(created, settings.title || `Merge of ${shares.length} profiles`);
    this.merged.push(merged);
    signal.throwIfAborted();
    return merged;
  }

  /** Their links have been shown. */
  finish(): void {
    this.sent.clear();
    this.merged = [];
  }

  /** Deletes what was sent of these, or of all and what was made of them. Those that cannot be deleted now stay in the list of what this browser shared. */
  async takeBack(files?: readonly File[]): Promise<Sent[]> {
    const shares: Sent[] = (files ?? this.files).flatMap((file) => this.sent.get(file) ?? []);
    for (const file of files ?? this.files) this.sent.delete(file);
    if (!files) shares.push(...this.merged.splice(0));
    const left = shares.map((one) =>
      deleteShare(one.created.id, one.created.delete_token).then(
        () => (forget(one.created.id), []),
        () => [one],
      ),
    );
    return (await Promise.all(left)).flat();
  }
}
