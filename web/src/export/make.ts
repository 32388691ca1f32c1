/* make: the page's side of write.ts, and what turns its answer into a file that is saved. */
import type { LocalReply, LocalRequest } from "../workers/local_worker.ts";
import type { Flame } from "../model/flame.ts";
import { startWorker } from "../workers/start_worker.ts";
import type { ExportForm } from "./write.ts";

export interface Seen {
  /** As it was loaded, and what the rules left. */
  source: Flame;
  flame: Flame;
  /** The frame below which all is wanted; 0 is the root. */
  zoom: number;
  comment: string;
}

export function makeParts(
  { source, flame, zoom, comment }: Seen,
  form: ExportForm,
): Promise<BlobPart[]> {
  const { frame, parentDelta, self, baseSelf } = flame;
  const columns = frame === source.frame ? null : { frame, parentDelta, self, baseSelf };
  // A flame's columns are views of the answer it was read from.
  const request: LocalRequest = {
    id: 1,
    seen: { form, bytes: source.frame.buffer as ArrayBuffer, columns, zoom, comment },
  };
  return new Promise((resolve, reject) => {
    const worker = startWorker("perfolio-local-worker");
    const end = (done: () => void) => {
      worker.terminate();
      done();
    };
    worker.addEventListener("message", ({ data }: MessageEvent<LocalReply>) =>
      end(() =>
        "parts" in data
          ? resolve(data.parts)
          : reject(
              new Error("error" in data ? data.error : "The browser created no file. Try again."),
            ),
      ),
    );
    worker.addEventListener("error", () =>
      end(() =>
        reject(new Error("The browser could not write the file. There may not be enough memory.")),
      ),
    );
    worker.postMessage(request);
  });
}

/** A name that every system takes, from a title; of one that is a profile's own file name without its ending. */
export function fileNameOf(title: string): string {
  const plain = title
    .replace(/(\.(pb|pprof|folded|json|gz|zst))+$/i, "")
    .normalize("NFC")
    .replace(/[^\p{L}\p{N}._-]+/gu, "-")
    .replace(/^[-.]+|[-.]+$/g, "");
  return plain.slice(0, 80) || "profile";
}

export function save(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  // The browser has taken the file over by then; what is not given back holds its memory.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
