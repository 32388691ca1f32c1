/* flame_form: a seen tree in the form that the viewer reads, for a page that holds it. */
import { writeFlame } from "../model/flame_bytes.ts";
import type { SeenTree } from "./seen_tree.ts";

export function toFlameBytes(tree: SeenTree): ArrayBuffer {
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
