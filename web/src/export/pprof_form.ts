/*
 * pprof_form: a visible tree as a profile.proto message with one sample for each node that has a
 * self value. A comparison has two sample types, before and after.
 */
import { MessageWriter } from "../local/protobuf_writer.ts";
import { forEachStack, type VisibleFrame, type VisibleTree } from "./visible_tree.ts";

const enum Field {
  SampleType = 1,
  Sample,
  Mapping,
  Location,
  Function,
  StringTable,
  Comment = 13,
  DefaultSampleType,
}

class Strings {
  private readonly ids = new Map<string, number>([["", 0]]);
  id(text: string): number {
    let id = this.ids.get(text);
    if (id === undefined) this.ids.set(text, (id = this.ids.size));
    return id;
  }
  write(out: MessageWriter): void {
    const encoder = new TextEncoder();
    for (const text of this.ids.keys()) out.bytes(Field.StringTable, encoder.encode(text));
  }
}

/** Assigns ids from 1 to objects that are written once. */
function idsOf<T>(): (key: T, write: (id: number) => void) => number {
  const ids = new Map<T, number>();
  return (key, write) => {
    let id = ids.get(key);
    if (id === undefined) {
      ids.set(key, (id = ids.size + 1));
      write(id);
    }
    return id;
  };
}

class Tables {
  private readonly mappingIds = idsOf<string>();
  private readonly functionIds = idsOf<string>();

  constructor(
    private readonly out: MessageWriter,
    private readonly strings: Strings,
    private readonly isByFunction: boolean,
  ) {}

  private mapping(path: string): number {
    if (!path) return 0;
    return this.mappingIds(path, (id) =>
      this.out.message(Field.Mapping, (mapping) => {
        mapping.number(1, id);
        mapping.number(5, this.strings.id(path));
        // all names are present, so pprof does not symbolize
        for (let has = 7; has <= 10; has++) mapping.number(has, 1);
      }),
    );
  }

  private func({ name, file, line }: VisibleFrame): number {
    const startLine = this.isByFunction ? line : 0;
    return this.functionIds(`${startLine}\n${file}\n${name}`, (id) =>
      this.out.message(Field.Function, (func) => {
        func.number(1, id);
        func.number(2, this.strings.id(name));
        func.number(3, this.strings.id(name));
        func.number(4, this.strings.id(file));
        func.number(5, startLine);
      }),
    );
  }

  location(id: number, frame: VisibleFrame): void {
    const [mappingId, functionId] = [this.mapping(frame.mapping), this.func(frame)];
    this.out.message(Field.Location, (location) => {
      location.number(1, id);
      location.number(2, mappingId);
      location.number(3, frame.address);
      location.message(4, (line) => {
        line.number(1, functionId);
        line.number(2, this.isByFunction ? 0 : frame.line);
      });
    });
  }
}

function writeSamples(out: MessageWriter, tree: VisibleTree): void {
  const stack: number[] = [];
  forEachStack(tree, (node) => {
    stack.length = 0;
    // the id of a location is the number of its frame
    for (let at = node; at > 0; at = tree.parent[at]) stack.push(tree.frame[at]);
    const values = tree.baseSelf ? [tree.baseSelf[node], tree.self[node]] : [tree.self[node]];
    out.message(Field.Sample, (sample) => {
      sample.packed(1, stack);
      sample.packed(2, values.map(Math.round));
    });
  });
}

/** comment: identifies the profile and the exported part. */
export function toPprof(tree: VisibleTree, comment: string): Uint8Array<ArrayBuffer> {
  const out = new MessageWriter();
  const strings = new Strings();
  const { sample_type = "samples", unit = "count", group_by = "function" } = tree.metadata;
  const types = tree.baseSelf ? [`${sample_type}_before`, `${sample_type}_after`] : [sample_type];
  for (const type of types)
    out.message(Field.SampleType, (valueType) => {
      valueType.number(1, strings.id(type));
      valueType.number(2, strings.id(unit));
    });
  writeSamples(out, tree);
  const tables = new Tables(out, strings, group_by === "function");
  tree.frames.forEach((frame, i) => i > 0 && tables.location(i, frame));
  if (comment) out.packed(Field.Comment, [strings.id(comment)]);
  out.number(Field.DefaultSampleType, strings.id(types[types.length - 1]));
  strings.write(out);
  return out.take();
}
