/*
 * export_worker: writes what is seen of a tree as a file, beside the page; one request, then it is done
 * with. export/make.ts is the other side.
 */
import "./everywhere.ts";
import { toFlameBytes } from "./export/flame_form.ts";
import { toPprof } from "./export/pprof_form.ts";
import { seenTree, type SeenTree } from "./export/seen_tree.ts";
import { toFolded, toJson } from "./export/text_forms.ts";
import { decodeFlame, derive, withTree, type Columns } from "./model/flame.ts";

/** page: the tree in the viewer's own form, packed as text for a page that holds it. */
export type ExportForm = "pprof" | "folded" | "json" | "page";

export interface ExportRequest {
  form: ExportForm;
  /** The answer that the whole tree came in, and what the rules left of it; null without rules. */
  bytes: ArrayBuffer;
  columns: Columns | null;
  /** What percentages are of. */
  total: number;
  baseTotal: number;
  /** The frame below which all is seen; 0 is the root. */
  zoom: number;
  comment: string;
}

export type ExportReply = { parts: BlobPart[] } | { error: string };

async function gzip(parts: BlobPart[]): Promise<Uint8Array<ArrayBuffer>> {
  const packed = new Blob(parts).stream().pipeThrough(new CompressionStream("gzip"));
  return new Uint8Array(await new Response(packed).arrayBuffer());
}

/** Base64 in pieces that a call can take, each of whole groups of three bytes. */
function base64(bytes: Uint8Array): string[] {
  const step = 3 * 8192;
  const pieces: string[] = [];
  for (let at = 0; at < bytes.length; at += step) pieces.push(btoa(String.fromCharCode(...bytes.subarray(at, at + step))));
  return pieces;
}

async function write(form: ExportForm, tree: SeenTree, comment: string): Promise<BlobPart[]> {
  switch (form) {
    case "pprof":
      return [await gzip([toPprof(tree, comment)])];
    case "folded":
      return toFolded(tree);
    case "json":
      return toJson(tree);
    case "page":
      return base64(await gzip([toFlameBytes(tree)]));
  }
}

async function answer(request: ExportRequest): Promise<BlobPart[]> {
  const source = decodeFlame(request.bytes);
  const flame = request.columns ? withTree(source, request.columns, derive(request.columns)) : source;
  const { total, baseTotal } = request;
  return write(request.form, seenTree({ ...flame, total, baseTotal }, request.zoom), request.comment);
}

addEventListener("message", (event: MessageEvent<ExportRequest>) => {
  answer(event.data).then(
    (parts) => postMessage({ parts } satisfies ExportReply),
    (error) => postMessage({ error: error instanceof Error ? error.message : String(error) } satisfies ExportReply),
  );
});
