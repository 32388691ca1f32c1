/*
 * pprof: decodes a profile.proto message like the server (lib/profile/report/view.h). A function
 * without a name has its system name, an address without symbols the name of its binary.
 * drop_frames truncates a stack like `go tool pprof` does.
 */
import { boundedTest, compileRule } from "../model/search/search.ts";
import { FrameGrouper } from "./grouping.ts";
import {
  LocalError,
  RefusedError,
  noLabels,
  NumberList,
  type LocalLabels,
  type LocalProfile,
  type Stacks,
} from "./profile.ts";
import { Message } from "./protobuf.ts";

interface Line {
  functionId: number;
  line: number;
}
interface Location {
  mappingId: number;
  address: bigint;
  lines: Line[];
}
interface Func {
  name: number;
  systemName: number;
  file: number;
  startLine: number;
}

interface Mapping {
  file: number;
  /** The difference between an address and its offset in the file. */
  shift: bigint;
}

interface Raw {
  valueTypes: { type: number; unit: number }[];
  mappings: Map<number, Mapping>;
  locations: Map<number, Location>;
  functions: Map<number, Func>;
  strings: Uint8Array[];
  sampleStart: NumberList<Uint32Array>;
  sampleLocations: NumberList<Float64Array>;
  values: NumberList<Float64Array>;
  labelStart: NumberList<Uint32Array>;
  /**
   * Four numbers per label: key, text, number and unit. All except the number are indexes of
   * strings.
   */
  labels: NumberList<Float64Array>;
  /** The distinct numbers of values per sample; a valid file has only one. */
  valueCounts: Set<number>;
  dropFrames: number;
  keepFrames: number;
  defaultType: number;
}

/** The numeric fields of a message; other fields are skipped. */
function fields(message: Message): Map<number, number> {
  const found = new Map<number, number>();
  while (message.next()) {
    if (message.wire === 0) found.set(message.field, message.signed());
    else message.skip();
  }
  return found;
}

function readMapping(message: Message): { id: number; mapping: Mapping } {
  const mapping: Mapping = { file: 0, shift: 0n };
  let id = 0;
  let start = 0n;
  let offset = 0n;
  while (message.next()) {
    if (message.field === 1) id = message.unsigned();
    else if (message.field === 2) start = message.exact();
    else if (message.field === 4) offset = message.exact();
    else if (message.field === 5) mapping.file = message.unsigned();
    else message.skip();
  }
  mapping.shift = offset - start;
  return { id, mapping };
}

function readLocation(message: Message): { id: number; location: Location } {
  const location: Location = { mappingId: 0, address: 0n, lines: [] };
  let id = 0;
  while (message.next()) {
    if (message.field === 1) id = message.unsigned();
    else if (message.field === 2) location.mappingId = message.unsigned();
    else if (message.field === 3) location.address = message.exact();
    else if (message.field === 4) {
      const line = fields(message.message());
      location.lines.push({ functionId: line.get(1) ?? 0, line: line.get(2) ?? 0 });
    } else message.skip();
  }
  return { id, location };
}

/** Returns the number of values of the sample. */
function readSample(message: Message, raw: Raw): number {
  let count = 0;
  while (message.next()) {
    if (message.field === 1) message.numbers(false, (id) => raw.sampleLocations.push(id));
    else if (message.field === 2)
      message.numbers(true, (value) => {
        count++;
        raw.values.push(value);
      });
    else if (message.field === 3) {
      const label = fields(message.message());
      for (const field of [1, 2, 3, 4]) raw.labels.push(label.get(field) ?? 0);
    } else message.skip();
  }
  raw.sampleStart.push(raw.sampleLocations.length);
  raw.labelStart.push(raw.labels.length / 4);
  return count;
}

function read(data: Uint8Array): Raw {
  const raw: Raw = {
    valueTypes: [],
    mappings: new Map(),
    locations: new Map(),
    functions: new Map(),
    strings: [],
    sampleStart: new NumberList(new Uint32Array(1024)),
    sampleLocations: new NumberList(new Float64Array(1024)),
    values: new NumberList(new Float64Array(1024)),
    labelStart: new NumberList(new Uint32Array(1024)),
    labels: new NumberList(new Float64Array(64)),
    valueCounts: new Set(),
    dropFrames: 0,
    keepFrames: 0,
    defaultType: 0,
  };
  raw.sampleStart.push(0);
  raw.labelStart.push(0);
  const message = new Message(data);
  while (message.next()) {
    switch (message.field) {
      case 1: {
        const type = fields(message.message());
        raw.valueTypes.push({ type: type.get(1) ?? 0, unit: type.get(2) ?? 0 });
        break;
      }
      case 2:
        raw.valueCounts.add(readSample(message.message(), raw));
        break;
      case 3: {
        const { id, mapping } = readMapping(message.message());
        if (id === 0)
          throw new LocalError(`Mapping ${raw.mappings.size + 1} has the id 0, which means none.`);
        raw.mappings.set(id, mapping);
        break;
      }
      case 4: {
        const { id, location } = readLocation(message.message());
        raw.locations.set(id, location);
        break;
      }
      case 5: {
        const one = fields(message.message());
        raw.functions.set(one.get(1) ?? 0, {
          name: one.get(2) ?? 0,
          systemName: one.get(3) ?? 0,
          file: one.get(4) ?? 0,
          startLine: one.get(5) ?? 0,
        });
        break;
      }
      case 6:
        raw.strings.push(message.bytes());
        break;
      case 7:
        raw.dropFrames = message.unsigned();
        break;
      case 8:
        raw.keepFrames = message.unsigned();
        break;
      case 14:
        raw.defaultType = message.unsigned();
        break;
      default:
        message.skip();
    }
  }
  return raw;
}

/** A location: its frames, outermost first, and the effect of drop_frames on it. */
interface Located {
  frames: number[];
  /** "whole": removed with all its callees; "beneath": its callees are removed. */
  dropped: "" | "whole" | "beneath";
}

/** Removes the argument list, which drop_frames ignores, and a leading dot. */
function simplifyName(name: string): string {
  const bare = name.startsWith(".") ? name.slice(1) : name;
  return /^(?:\(anonymous namespace\)|operator\(\)|[^(])*/.exec(bare)![0];
}

class Locations {
  private readonly decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  private readonly texts: (string | undefined)[] = [];
  private readonly known = new Map<number, Located>();
  /** Ids of functions that match drop_frames and not keep_frames. */
  private readonly dropped: ReadonlySet<number>;
  readonly notes: string[] = [];

  constructor(
    private readonly raw: Raw,
    readonly grouper: FrameGrouper,
  ) {
    this.dropped = this.findDropped();
  }

  text(index: number): string {
    if (index >= this.raw.strings.length && index !== 0)
      throw new LocalError("The pprof file refers to a missing string.");
    return (this.texts[index] ??= this.raw.strings[index]
      ? this.decoder.decode(this.raw.strings[index])
      : "");
  }

  /**
   * Tests all names at once before anything else, because the search has a deadline: in the
   * server's language and with bounds, so that no file can block the browser.
   */
  private findDropped(): ReadonlySet<number> {
    const dropped = new Set<number>();
    const [drop, keep] = [this.text(this.raw.dropFrames), this.text(this.raw.keepFrames)];
    if (!drop) return dropped;
    try {
      const isDropped = boundedTest(compileRule(`^(?:${drop})$`));
      const isKept = keep ? boundedTest(compileRule(`^(?:${keep})$`)) : () => false;
      for (const [id, { name }] of this.raw.functions) {
        if (name === 0) continue;
        const simple = simplifyName(this.text(name));
        if (isDropped(simple) && !isKept(simple)) dropped.add(id);
      }
      return dropped;
    } catch {
      this.notes.push("The file's drop_frames could not be read, so no frame is dropped.");
      return new Set();
    }
  }

  private func(id: number) {
    const found = this.raw.functions.get(id);
    if (!found) throw new LocalError("The pprof file refers to a missing function.");
    return {
      name: this.text(found.name) || this.text(found.systemName),
      file: this.text(found.file),
      startLine: found.startLine,
    };
  }

  location(id: number): Located {
    const known = this.known.get(id);
    if (known) return known;
    const location = this.raw.locations.get(id);
    if (!location) throw new LocalError("The pprof file refers to a missing location.");
    const binary = this.raw.mappings.get(location.mappingId);
    const mapping = this.text(binary?.file ?? 0);
    // Lines are ordered from the innermost inlined call to the function itself.
    const { lines } = location;
    let outermost = lines.length - 1;
    while (outermost >= 0 && !this.isDropped(lines[outermost])) outermost--;
    const dropped = outermost < 0 ? "" : outermost === lines.length - 1 ? "whole" : "beneath";
    const first = dropped === "beneath" ? outermost + 1 : 0;
    const { address } = location;
    const offset = BigInt.asUintN(64, address + (binary?.shift ?? 0n));
    const frames: number[] = [];
    if (lines.length === 0 || this.grouper.group === "binary")
      frames.push(
        this.grouper.frame({ func: null, line: 0, isInlined: false, mapping, address, offset }),
      );
    else
      for (let i = lines.length - 1; i >= first; i--) {
        const { functionId, line } = lines[i];
        frames.push(
          this.grouper.frame({
            func: this.func(functionId),
            line,
            isInlined: i < lines.length - 1,
            mapping,
            address,
            offset,
          }),
        );
      }
    const made: Located = { frames, dropped };
    this.known.set(id, made);
    return made;
  }

  private isDropped(line: Line): boolean {
    return this.dropped.has(line.functionId);
  }
}

/**
 * The number of locations to remove at the leaf's end. Seen from the root: everything from the
 * first dropped location after a kept one.
 */
function dropCount(places: readonly Located[]): number {
  let hasKept = false;
  for (let at = places.length - 1; at >= 0; at--) {
    if (!places[at].dropped) hasKept = true;
    else if (hasKept) return places[at].dropped === "whole" ? at + 1 : at;
  }
  return 0;
}

/** Stacks from root to leaf. Adjacent places in one binary are one frame. */
function readStacks(raw: Raw, locations: Locations): Stacks {
  const { grouper } = locations;
  const isByBinary = grouper.group === "binary";
  const count = raw.sampleStart.length - 1;
  const start = new Uint32Array(count + 1);
  const stack = new NumberList(new Uint32Array(1024));
  const places: Located[] = [];
  for (let i = 0; i < count; i++) {
    places.length = 0;
    for (let at = raw.sampleStart.at(i); at < raw.sampleStart.at(i + 1); at++)
      places.push(locations.location(raw.sampleLocations.at(at)));
    let last = -1;
    for (let at = places.length - 1, cut = dropCount(places); at >= cut; at--)
      for (const frame of places[at].frames) {
        if (!isByBinary || frame !== last) stack.push(frame);
        last = frame;
      }
    start[i + 1] = stack.length;
  }
  return { frames: grouper.frames, start, stack: stack.toArray() };
}

function readLabels(raw: Raw, locations: Locations): LocalLabels {
  const count = raw.labels.length / 4;
  const labels = {
    ...noLabels(0),
    key: new Uint32Array(count),
    text: new Uint32Array(count),
    number: new Float64Array(count),
    unit: new Uint32Array(count),
  };
  const ids = new Map([["", 0]]);
  const idOf = (string: number) => {
    const text = locations.text(string);
    let id = ids.get(text);
    if (id === undefined) ids.set(text, (id = labels.strings.push(text) - 1));
    return id;
  };
  for (let i = 0; i < count; i++) {
    labels.key[i] = idOf(raw.labels.at(4 * i));
    labels.text[i] = idOf(raw.labels.at(4 * i + 1));
    if (labels.text[i]) continue;
    labels.number[i] = raw.labels.at(4 * i + 2);
    labels.unit[i] = idOf(raw.labels.at(4 * i + 3));
  }
  return { ...labels, start: raw.labelStart.toArray() };
}

/**
 * Like the server: checks that the data consists of top-level fields of known numbers and types up
 * to the end.
 */
export function isPprof(data: Uint8Array): boolean {
  let hasKnown = false;
  try {
    for (const message = new Message(data); message.next(); message.skip()) {
      const { field, wire } = message;
      if (field > 14) continue;
      const isMessage = field <= 6 || field === 11;
      if (field !== 13 && (wire === 2) !== isMessage) return false;
      hasKnown = true;
    }
  } catch {
    return false;
  }
  return hasKnown;
}

export function decodePprof(data: Uint8Array): LocalProfile {
  const raw = read(data);
  const count = raw.sampleStart.length - 1;
  if (raw.valueTypes.length === 0 && count === 0)
    throw new LocalError("The file contains no profile.");
  if (raw.valueTypes.length === 0)
    throw new RefusedError(
      "The pprof file contains no sample types, so its samples have no values to show.",
    );
  const values = raw.values.toArray();
  if (count > 0 && (raw.valueCounts.size !== 1 || !raw.valueCounts.has(raw.valueTypes.length)))
    throw new LocalError("The pprof file has samples with too few or too many values.");
  const locations = new Locations(raw, new FrameGrouper("function"));
  const sampleTypes = raw.valueTypes.map(({ type, unit }) => ({
    type: locations.text(type),
    unit: locations.text(unit),
  }));
  const wanted = locations.text(raw.defaultType);
  const named = sampleTypes.findIndex(({ type }) => type === wanted);
  return {
    ...readStacks(raw, locations),
    regroup: (grouper) => {
      const again = read(data);
      return readStacks(again, new Locations(again, grouper));
    },
    sampleTypes,
    defaultType: wanted && named >= 0 ? named : sampleTypes.length - 1,
    values,
    labels: readLabels(raw, locations),
    notes: locations.notes,
  };
}
