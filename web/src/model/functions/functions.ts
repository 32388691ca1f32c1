/*
 * functions: flat and cumulative value of every function, from the whole tree.
 *
 * Flat is the self value of a function; cumulative counts a sample once, however often its stack
 * contains the function.
 */
import { FrameFlag, type Flame } from "../tree/flame.ts";
import { changeOf, formatCount } from "../text/units.ts";

export interface FunctionSums {
  name: string;
  file: string;
  flat: number;
  cum: number;
  baseFlat: number;
  baseCum: number;
}

export interface FunctionRow extends FunctionSums {
  /** One of its frames, for the colour; -1 if the tree contains none. */
  frame: number;
  /** The binary of that frame; "" if unknown. */
  binary: string;
}

const words: Record<string, readonly [one: string, many: string]> = {
  file: ["file", "files"],
  line: ["line", "lines"],
  address: ["address", "addresses"],
  binary: ["binary", "binaries"],
};

/**
 * The number of frames with the word for them: "184 files"; "≥ 60 functions" for a truncated tree.
 */
export function countedAs({ metadata, bounds }: Flame, count: number): string {
  const [one, many] = words[metadata.group_by ?? ""] ?? ["function", "functions"];
  return `${bounds.part}${formatCount(count)} ${count === 1 ? one : many}`;
}

/** The heading of the column of names. */
export function frameTitle({ metadata }: Flame): string {
  const [one] = words[metadata.group_by ?? ""] ?? ["function"];
  return one[0].toUpperCase() + one.slice(1);
}

/**
 * Groups frames by name, or makes each frame a group if the grouping gives several frames the same
 * name.
 */
export function groupFrames(flame: Flame): { groupOf: Uint32Array; first: number[] } {
  const { frames } = flame;
  const single = flame.metadata.group_by === "line" || flame.metadata.group_by === "address";
  const groupOf = new Uint32Array(frames.count);
  const first: number[] = [];
  const byName = new Map<number, number>();
  for (let i = 0; i < frames.count; i++) {
    const known = single ? undefined : byName.get(frames.nameId[i]);
    const group = known ?? first.length;
    if (known === undefined) {
      first.push(i);
      byName.set(frames.nameId[i], group);
    }
    groupOf[i] = group;
  }
  return { groupOf, first };
}

/** The file, with the line if it distinguishes frames of the same name. */
function placeOf({ frames, metadata }: Flame, frame: number): string {
  const [file, line] = [frames.file(frame), frames.line(frame)];
  return metadata.group_by === "line" && line > 0 ? `${file}:${line}` : file;
}

/**
 * The number of rows that listFunctions would return, without creating them; ignores the values of
 * a label.
 */
export function countFunctions(flame: Flame): number {
  const { groupOf, first } = groupFrames(flame);
  const { frame, nodeCount } = flame;
  const seen = new Uint8Array(first.length);
  for (let i = 1; i < nodeCount; i++) seen[groupOf[frame[i]]] = 1;
  return first.filter(
    (of, group) => seen[group] && !(flame.frames.flags(of) & (FrameFlag.Other | FrameFlag.Label)),
  ).length;
}

/** One row for each group of frames that the tree contains, except merged stacks ("other"). */
export function listFunctions(flame: Flame): FunctionRow[] {
  const { groupOf, first } = groupFrames(flame);
  const count = first.length;
  const flat = new Float64Array(count);
  const cum = new Float64Array(count);
  const baseFlat = new Float64Array(count);
  const baseCum = new Float64Array(count);
  const seen = new Uint8Array(count);
  const open = new Uint32Array(flame.rowCount); // the nodes of the current path
  const isOpen = new Uint32Array(count); // how often the current path contains a group
  let top = 0;
  for (let i = 1; i < flame.nodeCount; i++) {
    while (top > 0 && i >= flame.end[open[top - 1]]) isOpen[groupOf[flame.frame[open[--top]]]]--;
    const group = groupOf[flame.frame[i]];
    seen[group] = 1;
    flat[group] += flame.self[i];
    if (flame.baseSelf) baseFlat[group] += flame.baseSelf[i];
    if (isOpen[group] === 0) {
      cum[group] += flame.cum[i];
      if (flame.baseCum) baseCum[group] += flame.baseCum[i];
    }
    isOpen[group]++;
    open[top++] = i;
  }
  const rows: FunctionRow[] = [];
  for (let group = 0; group < count; group++) {
    const frame = first[group];
    if (!seen[group] || flame.frames.flags(frame) & FrameFlag.Other) continue;
    rows.push({
      name: flame.frames.name(frame),
      file: placeOf(flame, frame),
      frame,
      binary: flame.frames.mapping(frame),
      flat: flat[group],
      cum: cum[group],
      baseFlat: baseFlat[group],
      baseCum: baseCum[group],
    });
  }
  return rows;
}

/** Rows that the server counted, each with a frame of the tree that has its name. */
export function joinFunctions(flame: Flame, sums: readonly FunctionSums[]): FunctionRow[] {
  const frameOf = new Map<string, number>();
  for (let i = flame.frames.count - 1; i > 0; i--) frameOf.set(flame.frames.name(i), i);
  return sums.map((row) => {
    const frame = frameOf.get(row.name) ?? -1;
    return { ...row, frame, binary: frame < 0 ? "" : flame.frames.mapping(frame) };
  });
}

/**
 * The columns that a table can be sorted by. "after" and "change" refer to the total, like
 * "before"; the flat ones refer to self values.
 */
export const sortColumns = [
  "name",
  "flat",
  "cum",
  "change",
  "before",
  "after",
  "flatbefore",
  "flatchange",
  "file",
  "binary",
] as const;
export type SortColumn = (typeof sortColumns)[number];

export interface Sort {
  column: SortColumn;
  descending: boolean;
}

const compareTexts = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

function sortKey(row: FunctionRow, column: SortColumn): number {
  switch (column) {
    case "flat":
      return row.flat;
    case "before":
      return row.baseCum;
    case "change":
      return Math.abs(changeOf(row.baseCum, row.cum));
    case "flatbefore":
      return row.baseFlat;
    case "flatchange":
      return Math.abs(changeOf(row.baseFlat, row.flat));
    default:
      return row.cum;
  }
}

/** A sorted copy. Equal rows are ordered by value, then by name, so the order is stable. */
export function sortFunctions(rows: readonly FunctionRow[], sort: Sort): FunctionRow[] {
  const sign = sort.descending ? -1 : 1;
  const { column } = sort;
  const byColumn =
    column === "name" || column === "file" || column === "binary"
      ? (a: FunctionRow, b: FunctionRow) => compareTexts(a[column], b[column])
      : (a: FunctionRow, b: FunctionRow) => sortKey(a, column) - sortKey(b, column);
  return rows
    .slice()
    .sort((a, b) => sign * byColumn(a, b) || b.cum - a.cum || compareTexts(a.name, b.name));
}
