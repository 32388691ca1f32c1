/*
 * profile: a local file as read by this browser: stacks of frames with a value for each sample
 * type. The decoders in this folder create it, and encode_flame.ts turns it into a tree.
 */
import type { FrameGrouper } from "./grouping.ts";

export interface LocalFrame {
  name: string;
  file: string;
  line: number;
  mapping: string;
  /** Set only when frames are grouped by address. */
  address?: bigint;
  /** FrameFlag of model/tree/flame.ts. */
  flags: number;
}

/**
 * Sample i has the labels from start[i] up to start[i + 1]; key, text and unit are indexes of
 * strings.
 */
export interface LocalLabels {
  start: Uint32Array;
  key: Uint32Array;
  /** 0 (the empty string): the label is a number. */
  text: Uint32Array;
  number: Float64Array;
  unit: Uint32Array;
  /** Each string once; 0 is "". */
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
  /** Sample i has the frames stack[start[i] .. start[i + 1]), from root to leaf. */
  start: Uint32Array;
  stack: Uint32Array;
}

/** A profile whose frames are functions; regroup() makes stacks of another grouping. */
export interface LocalProfile extends Stacks {
  sampleTypes: { type: string; unit: string }[];
  /** Index into sampleTypes. */
  defaultType: number;
  /**
   * Returns the stacks of the same samples in another grouping; the grouper collects their frames.
   * Each call reads the file again.
   */
  regroup: (grouper: FrameGrouper) => Omit<Stacks, "frames">;
  /** values[i * sampleTypes.length + type]. */
  values: Float64Array;
  labels: LocalLabels;
  /** Describes data that was skipped or could not be stored exactly, as text for the user. */
  notes: string[];
}

/** The file has another format than expected or is broken; the message can be shown. */
export class LocalError extends Error {
  /** The index of the file that the error is about; -1 if it is not about a single file. */
  file = -1;
}

/** The server would refuse the file too. */
export class RefusedError extends LocalError {}

/** The file contains two profiles, before and after; splitPair of folded.ts separates them. */
export class PairError extends RefusedError {}

/** Collects numbers whose count is not known in advance. */
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
  toArray(): T {
    return this.data.slice(0, this.length) as T;
  }
}
