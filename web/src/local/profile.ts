/*
 * profile: a file that was not uploaded, as this browser reads it: stacks of frames with a value for
 * each sample type. What decoders here make and encode_flame.ts turns into a tree.
 */
import type { FrameGrouper } from "./grouping.ts";

export interface LocalFrame {
  name: string;
  file: string;
  line: number;
  mapping: string;
  /** 0 or absent unless frames are addresses. */
  address?: bigint;
  /** FrameFlag of model/flame.ts. */
  flags: number;
}

/** Of sample i: those from start[i] on, before start[i + 1]; key, text and unit are indexes of strings. */
export interface LocalLabels {
  start: Uint32Array;
  key: Uint32Array;
  /** 0: it is a number. */
  text: Uint32Array;
  number: Float64Array;
  unit: Uint32Array;
  /** Each once; 0 is "". */
  strings: string[];
}

export const noLabels = (sampleCount: number): LocalLabels => ({
  start: new Uint32Array(sampleCount + 1),
  key: new Uint32Array(0),
  text: new Uint32Array(0),
  number: new Float64Array(0),
  unit: new Uint32Array(0),
  strings: [""],
});

export interface Stacks {
  frames: LocalFrame[];
  /** Of sample i: frames stack[start[i] .. start[i + 1]), from the root to the leaf. */
  start: Uint32Array;
  stack: Uint32Array;
}

/** Its stacks are of functions. */
export interface LocalProfile extends Stacks {
  sampleTypes: { type: string; unit: string }[];
  /** Index into sampleTypes. */
  defaultType: number;
  /** The same samples with stacks of something else, whose frames the grouper has: read once more at each call. */
  regroup: (grouper: FrameGrouper) => Omit<Stacks, "frames">;
  /** values[i * sampleTypes.length + type]. */
  values: Float64Array;
  labels: LocalLabels;
  /** What was passed over or could not be kept exactly, in words for the reader. */
  notes: string[];
}

/** The file is not what it seemed, or is broken; the message can be shown. */
export class LocalError extends Error {
  /** Of several files, the one that it is about; -1 for none of them alone. */
  file = -1;
}

/** The server would refuse the file, too. */
export class RefusedError extends LocalError {}

/** It is two profiles, before and after, in one file; splitPair of folded.ts makes them two. */
export class PairError extends RefusedError {}

/** Gathers numbers without knowing how many there will be. */
export class NumberList<T extends Uint32Array | Float64Array> {
  length = 0;
  constructor(private data: T) {}
  push(value: number): void {
    if (this.length === this.data.length) {
      const wider = new (this.data.constructor as new (length: number) => T)(
        Math.max(64, this.length * 2),
      );
      wider.set(this.data as never);
      this.data = wider;
    }
    this.data[this.length++] = value;
  }
  at(index: number): number {
    return this.data[index];
  }
  take(): T {
    return this.data.slice(0, this.length) as T;
  }
}
