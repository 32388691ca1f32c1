/* make: the page's side of write.ts, which runs in a worker; names and saves files. */
import type { LocalReply, LocalRequest } from "../workers/local_worker.ts";
import type { Flame } from "../model/tree/flame.ts";
import { startWorker } from "../workers/start_worker.ts";
import type { ExportForm } from "./write.ts";

export interface Seen {
  /** The loaded tree, and the tree after the rules. */
  source: Flame;
  flame: Flame;
  /** The root of the exported part; 0 is the whole tree. */
  zoom: number;
  comment: string;
}

export function makeParts(
  { source, flame, zoom, comment }: Seen,
  form: ExportForm,
): Promise<BlobPart[]> {
  const { frame, parentDelta, self, baseSelf } = flame;
  const columns = frame === source.frame ? null : { frame, parentDelta, self, baseSelf };
  // The columns of a flame are views of the response that it was decoded from.
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

/**
 * A file name without extension that every system accepts, made from a title: at most 80
 * characters; "profile" if nothing is left. Extensions of profiles are removed from the title.
 */
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
  // The browser has taken over the file by then; a URL that is not revoked keeps its memory.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
