/*
 * write: writes the visible part of a tree as a file; runs in local_worker.ts for export/make.ts.
 */
import { toPprof } from "./pprof_form.ts";
import { visibleTree, type VisibleTree } from "./visible_tree.ts";
import { toFolded, toJson } from "./text_forms.ts";
import { decodeFlame, derive, withTree, type Columns } from "../model/tree/flame.ts";
import { writeFlame } from "../model/tree/flame_bytes.ts";

/** page: the tree in the viewer's binary form, packed as text for a saved page. */
export type ExportForm = "pprof" | "folded" | "json" | "page";

export interface ExportRequest {
  form: ExportForm;
  /**
   * The response that contained the whole tree, and the tree after the rules; null without rules.
   */
  bytes: ArrayBuffer;
  columns: Columns | null;
  /** The root of the exported part; 0 is the whole tree. */
  zoom: number;
  comment: string;
}

async function gzip(parts: BlobPart[]): Promise<Uint8Array<ArrayBuffer>> {
  const packed = new Blob(parts).stream().pipeThrough(new CompressionStream("gzip"));
  return new Uint8Array(await new Response(packed).arrayBuffer());
}

/** Base64 in pieces that fit an argument list, each of complete groups of three bytes. */
function base64(bytes: Uint8Array): string[] {
  const step = 3 * 8192;
  const pieces: string[] = [];
  for (let at = 0; at < bytes.length; at += step)
    pieces.push(btoa(String.fromCharCode(...bytes.subarray(at, at + step))));
  return pieces;
}

/** The tree in the binary form that the viewer reads. */
function toFlameBytes(tree: VisibleTree): ArrayBuffer {
  const { sample_type = "", unit = "" } = tree.metadata;
  return writeFlame({
    tree: {
      frame: tree.frame,
      parentDelta: tree.parent.map((parent, i) => i - parent),
      self: tree.self,
      baseSelf: tree.baseSelf,
    },
    frames: tree.frames,
    total: tree.total,
    baseTotal: tree.baseTotal,
    isCut: tree.isCut,
    metadata: {
      ...tree.metadata,
      sample_types: [{ type: sample_type, unit }],
      sample_type_index: 0,
    },
  });
}

async function write(form: ExportForm, tree: VisibleTree, comment: string): Promise<BlobPart[]> {
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
  return write(request.form, visibleTree(flame, request.zoom), request.comment);
}
