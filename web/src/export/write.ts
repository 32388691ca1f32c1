/* write: what is seen of a tree as a file; in local_worker.ts, for export/make.ts. */
import { toFlameBytes } from "./flame_form.ts";
import { toPprof } from "./pprof_form.ts";
import { seenTree, type SeenTree } from "./seen_tree.ts";
import { toFolded, toJson } from "./text_forms.ts";
import { decodeFlame, derive, withTree, type Columns } from "../model/flame.ts";

/** page: the tree in the viewer's own form, packed as text for a page that holds it. */
export type ExportForm = "pprof" | "folded" | "json" | "page";

export interface ExportRequest {
  form: ExportForm;
  /** The answer that the whole tree came in, and what the rules left of it; null without rules. */
  bytes: ArrayBuffer;
  columns: Columns | null;
  /** The frame below which all is seen; 0 is the root. */
  zoom: number;
  comment: string;
}

async function gzip(parts: BlobPart[]): Promise<Uint8Array<ArrayBuffer>> {
  const packed = new Blob(parts).stream().pipeThrough(new CompressionStream("gzip"));
  return new Uint8Array(await new Response(packed).arrayBuffer());
}

/** Base64 in pieces that a call can take, each of whole groups of three bytes. */
function base64(bytes: Uint8Array): string[] {
  const step = 3 * 8192;
  const pieces: string[] = [];
  for (let at = 0; at < bytes.length; at += step)
    pieces.push(btoa(String.fromCharCode(...bytes.subarray(at, at + step))));
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

export async function writeExport(request: ExportRequest): Promise<BlobPart[]> {
  const source = decodeFlame(request.bytes);
  const flame = request.columns
    ? withTree(source, request.columns, derive(request.columns))
    : source;
  return write(request.form, seenTree(flame, request.zoom), request.comment);
}
