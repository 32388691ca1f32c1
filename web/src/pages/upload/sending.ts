/*
 * sending: shares the chosen files one after the other. If one fails, the files sent before it are
 * not sent again at the next attempt, and are deleted if the reader gives up, because nobody has
 * their links yet.
 */
import { deleteShare, Problem, type Created, type ShareSettings } from "../../api/api.ts";
import type { Redaction } from "../../local/redaction.ts";
import { removeStoredShare, storeShare } from "../../model/storage/browser_storage.ts";
import { mergeShares, uploadProfile } from "../../api/upload.ts";
import { asProblem } from "../../ui/kit.tsx";
import { redactedFile } from "./redaction_form.tsx";

/** A share that was created here, with its title on the pages. */
export interface Sent {
  created: Created;
  title: string;
}

export interface Progress {
  /** Bytes. */
  sent: number;
  total: number;
  label: string;
  /** Why nothing is being sent at the moment; otherwise "". */
  waiting?: string;
}

/** Stores the delete link so that it outlives the page. */
export function keep(created: Created, title: string): Sent {
  storeShare({
    id: created.id,
    title,
    url: created.url,
    deleteToken: created.delete_token,
    createdAt: Date.now(),
  });
  return { created, title };
}

/** The problem with the name of the file. */
const problemOfFile = (caught: unknown, { name }: File): Problem => {
  const { status, kind, title, message, requestId, retryAfter } = asProblem(caught);
  return new Problem(status, kind, title, `${name}: ${message}`, requestId, retryAfter);
};

export class Sending {
  /** `as` identifies the redaction and settings with which the file was sent. */
  private readonly sent = new Map<File, Sent & { as: string }>();
  private merged: Sent[] = [];

  /** The files that are already shared and whose links have not been shown. */
  get files(): File[] {
    return [...this.sent.keys()];
  }

  /**
   * In the order of the files. Throws the signal's reason when aborted, even at the last moment;
   * then deleteSent() deletes the shares that were created.
   */
  async sendAll(
    files: readonly File[],
    redaction: Redaction,
    settings: ShareSettings,
    onProgress: (progress: Progress) => void,
    signal: AbortSignal,
  ): Promise<Sent[]> {
    const as = JSON.stringify([redaction, settings, files.length > 1]);
    const all: Sent[] = [];
    for (const [i, chosen] of files.entries()) {
      const known = this.sent.get(chosen);
      if (known && known.as !== as) await this.deleteSent([chosen]);
      const label = files.length > 1 ? `${i + 1} of ${files.length}: ${chosen.name}` : chosen.name;
      const one = this.sent.get(chosen) ?? {
        ...(await this.send(
          chosen,
          redaction,
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
    redaction: Redaction,
    settings: ShareSettings,
    isOneOfSeveral: boolean,
    onProgress: (sent: number, total: number, waiting?: string) => void,
    signal: AbortSignal,
  ): Promise<Sent> {
    onProgress(0, chosen.size);
    try {
      const file = await redactedFile(chosen, redaction);
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

  /** A merged profile of the shares. Throws like sendAll. */
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

  /** Forgets the shares once their links are shown, so that deleteSent() no longer deletes them. */
  finish(): void {
    this.sent.clear();
    this.merged = [];
  }

  /**
   * Deletes the shares of these files, or of all files and the results made of them. Returns those
   * that cannot be deleted now, which stay in the list of shares from this browser.
   */
  async deleteSent(files?: readonly File[]): Promise<Sent[]> {
    const shares: Sent[] = (files ?? this.files).flatMap((file) => this.sent.get(file) ?? []);
    for (const file of files ?? this.files) this.sent.delete(file);
    if (!files) shares.push(...this.merged.splice(0));
    const left = shares.map((one) =>
      deleteShare(one.created.id, one.created.delete_token).then(
        () => (removeStoredShare(one.created.id), []),
        () => [one],
      ),
    );
    return (await Promise.all(left)).flat();
  }
}
