/* sample_types: the names of sample types on the page and in links. */
import type { Flame, SampleType } from "../../model/tree/flame.ts";

/**
 * The token of a type in the state: its name, or its index if names are empty, repeat or look like
 * an index.
 */
export function sampleTypeToken(types: readonly SampleType[], index: number): string {
  const name = types[index].type;
  const isUnique = types.filter((other) => other.type === name).length === 1;
  return name && isUnique && !/^\d+$/.test(name) ? name : String(index);
}

/**
 * The name, with the unit if names repeat. A type without a name is shown by its index, as in the
 * API and the command line.
 */
export function sampleTypeLabel(types: readonly SampleType[], index: number): string {
  const { type, unit } = types[index];
  const isUnique = types.filter((other) => other.type === type).length === 1;
  return type && isUnique ? type : `${type || `type ${index}`}${unit ? ` (${unit})` : ""}`;
}

export function shownType(flame: Flame, types: readonly SampleType[]): number {
  const byIndex = flame.metadata.sample_type_index;
  if (typeof byIndex === "number" && byIndex < types.length) return byIndex;
  return Math.max(
    0,
    types.findIndex((type) => type.type === flame.metadata.sample_type),
  );
}
