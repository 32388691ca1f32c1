/*
 * text_forms: a visible tree as folded stacks and as the API's JSON (formats:
 * lib/profile/report/export_folded.h and export_json.h). The output is a list of pieces, because
 * the length of a string is limited.
 */
import { FrameFlag } from "../model/tree/flame.ts";
import { decimalsOf } from "../model/text/units.ts";
import { forEachStack, type VisibleTree } from "./visible_tree.ts";

const piece = 1 << 20;

/** Collects text as UTF-8 bytes. */
class Pieces {
  readonly done: Uint8Array<ArrayBuffer>[] = [];
  private text = "";
  private readonly encoder = new TextEncoder();
  add(text: string): void {
    this.text += text;
    if (this.text.length >= piece) this.flush();
  }
  flush(): Uint8Array<ArrayBuffer>[] {
    this.done.push(this.encoder.encode(this.text));
    this.text = "";
    return this.done;
  }
}

/** The format has no escapes, so characters that end a frame or a line are replaced. */
const foldedName = (name: string) => name.replace(/;/g, ":").replace(/[\x00-\x1f\x7f-\x9f]/g, " ");

/** An integer in these units; "count/100" stands for two decimals (local/folded.ts). */
function foldedValue(value: number, unit: string): string {
  return String(Math.round(value) / 10 ** decimalsOf(unit));
}

export function toFolded(tree: VisibleTree): Uint8Array<ArrayBuffer>[] {
  const pieces = new Pieces();
  const names = tree.frames.map(({ name }) => foldedName(name));
  const stack: string[] = [];
  const written = (value: number) => foldedValue(value, tree.metadata.unit ?? "");
  forEachStack(tree, (node) => {
    stack.length = 0;
    for (let at = node; at > 0; at = tree.parent[at]) stack.push(names[tree.frame[at]]);
    const sides = tree.baseSelf ? [tree.baseSelf[node], tree.self[node]] : [tree.self[node]];
    pieces.add(`${stack.reverse().join(";")} ${sides.map(written).join(" ")}\n`);
  });
  return pieces.flush();
}

const flagNames: [number, string][] = [
  [FrameFlag.Inlined, "inlined"],
  [FrameFlag.Kernel, "kernel"],
  [FrameFlag.Interpreted, "interpreted"],
  [FrameFlag.NotSymbolised, "not_symbolised"],
  [FrameFlag.Other, "other"],
];

/** The members that describe a frame, equal for all its nodes. */
function frameMembers(tree: VisibleTree): string[] {
  return tree.frames.map(({ name, file, line, mapping, address, flags }) => {
    const members: [string, unknown][] = [["name", name]];
    if (file) members.push(["file", file]);
    if (line) members.push(["line", line]);
    if (mapping) members.push(["mapping", mapping]);
    if (address) members.push(["address", "0x" + address.toString(16)]);
    if (flags)
      members.push(["flags", flagNames.filter(([bit]) => flags & bit).map(([, word]) => word)]);
    return members.map(([key, value]) => `"${key}":${JSON.stringify(value)}`).join(",");
  });
}

function jsonHead(tree: VisibleTree): string {
  const {
    sample_type = "",
    unit = "",
    sample_type_index = 0,
    group_by = "function",
  } = tree.metadata;
  const head: Record<string, unknown> = {
    sample_type,
    unit,
    sample_type_index,
    group_by,
    total: tree.total,
    kept: tree.cum[0],
  };
  if (tree.baseCum)
    Object.assign(head, {
      base_total: tree.baseTotal,
      base_kept: tree.baseCum[0],
      normalised: tree.isNormalised,
    });
  const cut = tree.isCut
    ? { nodes: tree.metadata.cut?.nodes ?? 0, value: tree.metadata.cut?.value ?? 0 }
    : null;
  return JSON.stringify({ ...head, node_count: tree.frame.length, cut, omitted_nodes: 0 }).slice(
    0,
    -1,
  );
}

/**
 * Between two nodes, everything up to the parent of the second one is closed, without recursion.
 */
export function toJson(tree: VisibleTree): Uint8Array<ArrayBuffer>[] {
  const pieces = new Pieces();
  const members = frameMembers(tree);
  const node = (i: number) => {
    const base =
      tree.baseSelf && tree.baseCum
        ? `,"base_value":${tree.baseCum[i]},"base_self":${tree.baseSelf[i]}`
        : "";
    return `{${members[tree.frame[i]]},"value":${tree.cum[i]},"self":${tree.self[i]}${base}`;
  };
  pieces.add(`${jsonHead(tree)},"root":${node(0)}`);
  let last = 0;
  for (let i = 1; i < tree.frame.length; i++) {
    const parent = tree.parent[i];
    if (last === parent) pieces.add(',"children":[');
    else {
      pieces.add("}");
      for (last = tree.parent[last]; last !== parent; last = tree.parent[last]) pieces.add("]}");
      pieces.add(",");
    }
    pieces.add(node(i));
    last = i;
  }
  pieces.add("}");
  for (; last !== 0; last = tree.parent[last]) pieces.add("]}");
  pieces.add("}\n");
  return pieces.flush();
}
