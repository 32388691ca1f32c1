/* type_names: the readable names of profile types. */
import type { ProfileType } from "../api/explore_api.ts";

const names: Record<string, string> = {
  cpu: "CPU time",
  samples: "CPU samples",
  wall: "Wall time",
  wall_time: "Wall time",
  alloc_space: "Allocated memory",
  alloc_objects: "Allocated objects",
  inuse_space: "Memory in use",
  inuse_objects: "Objects in use",
  goroutine: "Goroutines",
  goroutines: "Goroutines",
  contentions: "Contentions",
  delay: "Time blocked",
  off_cpu: "Time off CPU",
  lock_time: "Time in locks",
  exceptions: "Exceptions",
};

/** The readable name first, then the part that distinguishes it from other types. */
function typeLabel({ name, sample_type, sample_unit }: ProfileType): string {
  const word = names[sample_type] ?? sample_type;
  return (
    `${word} · ${name}` +
    (sample_unit && sample_unit !== "count" && !names[sample_type] ? ` (${sample_unit})` : "")
  );
}

/** The parts of the full name that the label leaves out: "bytes, period space:bytes, delta". */
function typeDetails({ type, sample_unit }: ProfileType): string {
  const [period = "", periodUnit = "", delta = ""] = type.split(":").slice(3);
  const periodText = period ? `period ${period}:${periodUnit}` : "no period";
  return [sample_unit, periodText, delta].filter(Boolean).join(", ");
}

/** The labels of the types in a menu. Equal ones are completed by the rest of the full name. */
export function typeLabels(types: readonly ProfileType[]): string[] {
  const labels = types.map(typeLabel);
  const isUnique = (label: string) => labels.indexOf(label) === labels.lastIndexOf(label);
  const complete = (label: string, i: number) => `${label}, ${typeDetails(types[i])}`;
  return labels.map((label, i) => (isUnique(label) ? label : complete(label, i)));
}

/** The readable name for the full name of a type. */
export function typeWord(type: string): string {
  const [name, sampleType = name] = type.split(":");
  return names[sampleType] ?? sampleType;
}

/** The type shown first: CPU time if there is any. */
export function firstType(types: readonly ProfileType[]): ProfileType | undefined {
  // >>> 0 turns the -1 of other types into 2 ** 32 - 1, so that they follow.
  const rank = ({ sample_type }: ProfileType) =>
    ["cpu", "samples", "wall"].indexOf(sample_type) >>> 0;
  return [...types].sort((a, b) => rank(a) - rank(b))[0];
}
