/*
 * encode_flame: a local profile as the bytes that the server would answer (see model/flame.ts), so
 * that the viewer cannot tell where a tree came from.
 */
import { writeFlame } from "../model/flame_bytes.ts";
import { Builder } from "../model/tree_builder.ts";
import { labelTest } from "./labels.ts";
import type { LocalProfile } from "./profile.ts";

export function encodeFlame(profile: LocalProfile, type: number, labelRules: readonly string[] = []): ArrayBuffer {
  const typeCount = profile.sampleTypes.length;
  // Frame 0 stands for the root.
  const builder = new Builder(1024, 0, false);
  const isKept = labelRules.length ? labelTest(profile, labelRules) : () => true;
  let total = 0;
  for (let i = 0; i + 1 < profile.start.length; i++) {
    const value = profile.values[i * typeCount + type];
    if (value === 0) continue;
    total += value;
    if (!isKept(i)) continue;
    let node = 0;
    for (let at = profile.start[i]; at < profile.start[i + 1]; at++) node = builder.child(node, profile.stack[at] + 1);
    builder.add(node, value, 0);
  }
  const tree = builder.finish();

  return writeFlame({
    tree,
    frames: [{ name: "root", file: "", line: 0, mapping: "", flags: 0 }, ...profile.frames],
    total,
    baseTotal: 0,
    isCut: false,
    metadata: {
      sample_type: profile.sampleTypes[type].type,
      unit: profile.sampleTypes[type].unit,
      sample_types: profile.sampleTypes,
      sample_type_index: type,
      group_by: "function",
    },
  });
}
