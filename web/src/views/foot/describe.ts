/* describe: describes one node: for the tooltip, the line below, and screen readers. */
import { FrameFlag, type Flame } from "../../model/tree/flame.ts";
import {
  changeOf,
  formatChange,
  formatPercent,
  formatSigned,
  formatValue,
} from "../../model/text/units.ts";
import { shownName } from "../../model/text/visible_text_model.ts";

export interface Description {
  name: string;
  place: string;
  notes: string[];
  facts: [string, string][];
}

export function placeOf(flame: Flame, frame: number): string {
  const file = flame.frames.file(frame);
  const line = flame.frames.line(frame);
  return file ? (line ? `${file}:${line}` : file) : "";
}

function notesOf(flame: Flame, frame: number): string[] {
  const flags = flame.frames.flags(frame);
  const notes: string[] = [];
  if (flags & FrameFlag.Inlined) notes.push("inlined");
  if (flags & FrameFlag.Kernel) notes.push("kernel");
  if (flags & FrameFlag.Interpreted) notes.push("interpreted");
  if (flags & FrameFlag.NotSymbolised) notes.push("no symbols");
  if (flags & FrameFlag.Other) notes.push("many small stacks, merged to keep the page fast");
  const address = flame.frames.address(frame);
  if (address) notes.push("0x" + address.toString(16));
  const mapping = flame.frames.mapping(frame);
  if (mapping) notes.push(mapping.slice(mapping.lastIndexOf("/") + 1));
  return notes;
}

function factsOf(flame: Flame, node: number, unit: string): [string, string][] {
  const cum = flame.cum[node];
  const self = flame.self[node];
  const bound = node === 0 ? flame.bounds.whole : flame.bounds.node;
  const withShare = (value: number, total: number) =>
    `${bound}${formatValue(value, unit)} (${formatPercent(value, total)})`;
  if (!flame.baseCum || !flame.baseSelf)
    return [
      ["Total", withShare(cum, flame.total)],
      ["Self", withShare(self, flame.total)],
    ];
  const before = flame.baseCum[node];
  return [
    ["Before", withShare(before, flame.baseTotal)],
    ["After", withShare(cum, flame.total)],
    [
      "Self",
      `${bound}${formatValue(flame.baseSelf[node], unit)} → ${bound}${formatValue(self, unit)}`,
    ],
    [
      "Change",
      `${bound && "≈ "}${formatSigned(changeOf(before, cum), unit)} (${formatChange(before, cum)})`,
    ],
  ];
}

export function describeNode(flame: Flame, node: number, unit: string): Description {
  const frame = flame.frame[node];
  if (node === 0)
    return { name: "all", place: "", notes: ["the whole profile"], facts: factsOf(flame, 0, unit) };
  return {
    name: shownName(flame.frames.name(frame)),
    place: placeOf(flame, frame),
    notes: notesOf(flame, frame),
    facts: factsOf(flame, node, unit),
  };
}

export function spokenNode(flame: Flame, node: number, unit: string): string {
  const { name, facts } = describeNode(flame, node, unit);
  return `${name}, ${facts.map(([label, value]) => `${label.toLowerCase()} ${value}`).join(", ")}`;
}
