/*
 * sides: chooses the values of a local profile for a tree, and the types of two profiles to
 * compare, like the server (lib/profile/report/diff.h): types of the same name whose units are
 * equal or convertible (lib/profile/unit.h).
 */
import type { Side } from "./encode_flame.ts";
import { LocalError, type LocalProfile } from "./profile.ts";

/** Each size divides all larger ones of its kind. */
const sizes: Record<"time" | "memory" | "count", Record<string, number>> = {
  time: {
    ns: 1,
    nanosecond: 1,
    nanoseconds: 1,
    us: 1e3,
    "\u00b5s": 1e3,
    "\u03bcs": 1e3,
    microsecond: 1e3,
    microseconds: 1e3,
    ms: 1e6,
    millisecond: 1e6,
    milliseconds: 1e6,
    s: 1e9,
    second: 1e9,
    seconds: 1e9,
  },
  memory: { B: 1, byte: 1, bytes: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 },
  count: {
    count: 1e6,
    "count/10": 1e5,
    "count/100": 1e4,
    "count/1000": 1e3,
    "count/10000": 100,
    "count/100000": 10,
    "count/1000000": 1,
  },
};

function sizeOf(unit: string): { kind: string; size: number } | null {
  for (const [kind, units] of Object.entries(sizes))
    if (Object.hasOwn(units, unit)) return { kind, size: units[unit] };
  return null;
}

/**
 * The sample type that a link names: by name, by index if names are empty or repeated, or the
 * default; -1 if there is none.
 */
function typeOf({ sampleTypes, defaultType }: LocalProfile, word: string): number {
  if (word === "") return defaultType;
  const index = /^\d+$/.test(word)
    ? Number(word)
    : sampleTypes.findIndex(({ type }) => type === word);
  return index < sampleTypes.length ? index : -1;
}

/**
 * The type of the other profile that equals type `at` of `from`, or has a convertible unit; -1 if
 * there is none. If several types are equal, it is the one at the same position: the format does
 * not guarantee the order, but nothing else distinguishes them.
 */
function findLike(from: LocalProfile, at: number, { sampleTypes }: LocalProfile): number {
  const wanted = from.sampleTypes[at];
  const isSame = (other: { type: string; unit: string } | undefined) =>
    other?.type === wanted.type && other.unit === wanted.unit;
  if (isSame(sampleTypes[at])) return at;
  const same = sampleTypes.findIndex(isSame);
  const kind = sizeOf(wanted.unit)?.kind;
  return same >= 0 || !kind
    ? same
    : sampleTypes.findIndex(
        ({ type, unit }) => type === wanted.type && sizeOf(unit)?.kind === kind,
      );
}

const listTypes = ({ sampleTypes }: LocalProfile) =>
  sampleTypes.map(({ type, unit }, i) => (type ? `${type}/${unit}` : `type ${i}`)).join(", ");

/** The types of before and after. */
function comparedTypes(a: LocalProfile, b: LocalProfile, word: string): [number, number] {
  const wanted = typeOf(b, word);
  const like = wanted < 0 ? -1 : findLike(b, wanted, a);
  if (like >= 0) return [like, wanted];
  if (word === "") {
    const ofA = findLike(a, a.defaultType, b);
    if (ofA >= 0) return [a.defaultType, ofA];
    for (let at = b.sampleTypes.length - 1; at >= 0; at--) {
      const found = findLike(b, at, a);
      if (found >= 0) return [found, at];
    }
  }
  throw new LocalError(
    `These two profiles cannot be compared${word && ` by ${word}`}: they have no common sample ` +
      `type with a convertible unit. The first has ${listTypes(a)}, the second ${listTypes(b)}.`,
  );
}

/** The input of a tree: one profile, or before and after. */
export function findSides(profiles: readonly LocalProfile[], word: string): Side[] {
  const [a, b] = profiles;
  if (!b) {
    const type = typeOf(a, word);
    return [{ profile: a, type: type < 0 ? a.defaultType : type, factor: 1 }];
  }
  const types = comparedTypes(a, b, word);
  const units = profiles.map(
    ({ sampleTypes }, side) => sizeOf(sampleTypes[types[side]].unit)?.size ?? 1,
  );
  const finest = Math.min(...units);
  return profiles.map((profile, side) => ({
    profile,
    type: types[side],
    factor: units[side] / finest,
  }));
}
