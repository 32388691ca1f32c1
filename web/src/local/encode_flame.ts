/*
 * encode_flame: encodes a local profile, or two as a comparison, like a response of the server (see
 * model/tree/flame.ts), so that the viewer treats both alike.
 */
import { FrameFlag } from "../model/tree/flame.ts";
import { writeFlame, type PlainFrame } from "../model/tree/flame_bytes.ts";
import { Builder } from "../model/tree/tree_builder.ts";
import { FrameGrouper, parseGroup, type FrameGroup } from "./grouping.ts";
import { labelKeys, labelTest, labelText } from "./labels.ts";
import { LocalError, type LocalFrame, type LocalProfile, type Stacks } from "./profile.ts";

/** One profile, or one side of a comparison. */
export interface Side {
  profile: LocalProfile;
  /** Index into its sampleTypes. */
  type: number;
  /** Converts its values to those of the tree; 1 unless the units of a comparison differ. */
  factor: number;
}

export interface TreeOptions {
  /** As in a link; "" is by function. */
  group: string;
  /** Rules of model/rules/labels.ts. */
  labels: readonly string[];
  /** Comparisons only: side b is scaled to the total of side a. */
  isNormalised: boolean;
}

interface Grouped {
  profiles: readonly LocalProfile[];
  group: FrameGroup;
  frames: LocalFrame[];
  stacks: Omit<Stacks, "frames">[];
}

/** The last grouping, reused when the page requests other sample types and labels. */
let last: Grouped | null = null;

function groupSides(profiles: readonly LocalProfile[], group: FrameGroup): Grouped {
  if (profiles.length === 1 && group === "function")
    return { profiles, group, frames: profiles[0].frames, stacks: [...profiles] };
  if (
    last?.group === group &&
    last.profiles.every((profile, i) => profile === profiles[i]) &&
    last.profiles.length === profiles.length
  )
    return last;
  last = null; // frees its memory for the next one
  const grouper = new FrameGrouper(group);
  // Side b first, because the properties of a frame are those in b.
  const stacks = [...profiles]
    .reverse()
    .map((profile) => profile.regroup(grouper))
    .reverse();
  return (last = { profiles, group, frames: grouper.frames, stacks });
}

/** For grouping by a label: the frame below the root for each sample. */
class LabelFrames {
  private readonly known = new Map<string, number>();

  constructor(
    private readonly label: string,
    private readonly frames: PlainFrame[],
  ) {}

  of(profile: LocalProfile): (sample: number) => number {
    const textOf = labelText(profile, this.label);
    return (sample) => {
      const name = textOf(sample) || `(no ${this.label})`;
      let frame = this.known.get(name);
      if (frame === undefined)
        this.known.set(
          name,
          (frame =
            this.frames.push({ name, file: "", line: 0, mapping: "", flags: FrameFlag.Label }) - 1),
        );
      return frame;
    };
  }
}

function checkLabel(
  profiles: readonly LocalProfile[],
  keys: readonly string[],
  label: string,
): void {
  if (keys.includes(label) || profiles.every(({ start }) => start.length === 1)) return;
  const known = keys.length ? `: ${[...new Set(keys)].slice(0, 20).join(", ")}` : "";
  throw new LocalError(
    `“${label}” is neither function, file, line, address or binary nor a label of this profile` +
      `${known}.`,
  );
}

/** The common unit of both sides. */
export function unitOf(sides: readonly Side[]): string {
  const { profile, type } = sides.find(({ factor }) => factor === 1)!;
  return profile.sampleTypes[type].unit;
}

/**
 * The factor, apart from that of the unit, by which the values of side b are scaled to the total of
 * side a; 1 unless normalised. 0 if a total is not above zero, because there are no proportions
 * then.
 */
export function scaleOf(sides: readonly Side[], isNormalised: boolean): number {
  if (sides.length < 2 || !isNormalised) return 1;
  const [before, after] = sides.map(totalOf);
  return before > 0 && after > 0 ? before / after : 0;
}

function totalOf({ profile: { values, sampleTypes }, type, factor }: Side): number {
  let total = 0;
  for (let i = type; i < values.length; i += sampleTypes.length) total += values[i];
  return total * factor;
}

/** sides: one profile, or before and after. */
export function encodeFlame(sides: readonly Side[], options: TreeOptions): ArrayBuffer {
  const profiles = sides.map(({ profile }) => profile);
  const keys = profiles.flatMap(labelKeys);
  const { frames: group, label } = parseGroup(options.group);
  if (label !== null) checkLabel(profiles, keys, label);
  const grouped = groupSides(profiles, group);
  const isDiff = sides.length === 2;
  // Frame 0 is the root.
  const frames: PlainFrame[] = [
    { name: "root", file: "", line: 0, mapping: "", flags: 0 },
    ...grouped.frames,
  ];
  const labelFrames = label === null ? null : new LabelFrames(label, frames);
  const totals = sides.map(totalOf);
  const [baseTotal, ownTotal] = isDiff ? totals : [0, totals[0]];
  const scale = scaleOf(sides, options.isNormalised);
  const builder = new Builder(1024, 0, isDiff);
  sides.forEach(({ profile, type, factor }, side) => {
    const { start, stack } = grouped.stacks[side];
    const typeCount = profile.sampleTypes.length;
    const isKept = labelTest(profile, options.labels, keys);
    const labelFrame = labelFrames?.of(profile);
    const isBase = isDiff && side === 0;
    for (let i = 0; i + 1 < start.length; i++) {
      const value = profile.values[i * typeCount + type] * factor;
      if (value === 0 || !isKept(i)) continue;
      let node = labelFrame ? builder.child(0, labelFrame(i)) : 0;
      for (let at = start[i]; at < start[i + 1]; at++) node = builder.child(node, stack[at] + 1);
      builder.add(node, isBase ? 0 : value * scale, isBase ? value : 0);
    }
  });
  const { profile, type } = sides[sides.length - 1];
  return writeFlame({
    tree: builder.finish(),
    frames,
    total: scale === 1 ? ownTotal : scale ? baseTotal : 0,
    baseTotal,
    isCut: false,
    metadata: {
      sample_type: profile.sampleTypes[type].type,
      unit: unitOf(sides),
      sample_types: profile.sampleTypes,
      sample_type_index: type,
      group_by: options.group || "function",
      ...(isDiff ? { normalised: options.isNormalised } : {}),
    },
  });
}
