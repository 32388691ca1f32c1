/* sample_types: what the types of a profile's values are called, on the page and in links. */
import type { Flame, SampleType } from "../model/flame.ts";

/** How the state names a type: by name, or by number where names are empty, repeat or look like one. */
export function sampleTypeToken(types: readonly SampleType[], index: number): string {
  const name = types[index].type;
  const isUnique = types.filter((other) => other.type === name).length === 1;
  return name && isUnique && !/^\d+$/.test(name) ? name : String(index);
}

/**
 * The name; with the unit where names alone do not tell types apart. A type without a name is called by its index, as
 * the API and the command line do.
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
