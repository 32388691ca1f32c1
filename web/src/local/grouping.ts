/*
 * grouping: which places of a local profile are one frame, and what it is called, as the server has it
 * (lib/profile/report/view.h, frame_table.c).
 */
import { FrameFlag } from "../model/flame.ts";
import type { LocalFrame } from "./profile.ts";

const frameGroups = ["function", "file", "line", "address", "binary"] as const;
export type FrameGroup = (typeof frameGroups)[number];

/** What a grouping means that is written in a link: one of frames, or a label, by which functions are divided. */
export function parseGroup(text: string): { frames: FrameGroup; label: string | null } {
  const frames = frameGroups.find((group) => group === (text || "function"));
  return frames
    ? { frames, label: null }
    : { frames: "function", label: text.replace(/^label:/, "") };
}

/** A line of a location, or a location of which no line is known. */
export interface Place {
  func: { name: string; file: string; startLine: number } | null;
  line: number;
  isInlined: boolean;
  mapping: string;
  address: bigint;
  /** Of the address in its binary's file. */
  offset: bigint;
}

const interpreted = /\.(py|js|ts|mjs|cjs|rb|pl|php|lua)$/;
/** The binary that agents give to functions of scripts. */
const interpreter = /^\[(cpython|ruby)\]$/;
const kernel = /^\[(guest\.)?kernel|(^|\/)vmlinux$|\.ko$/;
/** Flags that hold only when they hold everywhere. */
const ofAll = FrameFlag.Inlined | FrameFlag.Kernel | FrameFlag.Interpreted;

/** "" of a path that is nothing but slashes. */
const baseName = (path: string) => /([^/]+)\/*$/.exec(path)?.[1] ?? "";
/** As pprof prints what has no name. */
function binaryName(mapping: string): string {
  const name = baseName(mapping);
  return name ? `[${name}]` : "<unknown>";
}
/** Of a binary's path, what counts before an offset. */
const rawPathBytes = 256;

const hexadecimal = (number: bigint) => "0x" + number.toString(16);

/** Of an address without a function: lib/profile/raw_name.h. */
function rawName({ mapping, address, offset }: Place): string {
  if (!address) return binaryName(mapping);
  const bytes = encoder.encode(mapping);
  let from = Math.max(0, bytes.length - rawPathBytes);
  while (from > 0 && (bytes[from] & 0xc0) === 0x80) from++;
  const base = baseName(from ? decoder.decode(bytes.subarray(from)) : mapping);
  return base ? `${base}+${hexadecimal(offset)}` : hexadecimal(address);
}

/** Bytes of a name that stands behind an address. */
const addressNameBytes = 240;
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** Once where the address is all that is known. */
function addressName(number: bigint, name: string): string {
  const address = hexadecimal(number);
  if (name === address) return name;
  const bytes = name.length * 3 > addressNameBytes ? encoder.encode(name) : null;
  if (!bytes || bytes.length <= addressNameBytes) return `${address} ${name}`;
  let end = addressNameBytes;
  while (end > 0 && (bytes[end] & 0xc0) === 0x80) end--;
  return `${address} ${decoder.decode(bytes.subarray(0, end))}…`;
}

export class FrameGrouper {
  readonly frames: LocalFrame[] = [];
  private readonly known = new Map<string, number>();

  constructor(readonly group: FrameGroup) {}

  /** The frame that the place is a part of. */
  frame(place: Place): number {
    const { frame, key } = this.shape(place);
    const known = this.known.get(key);
    if (known !== undefined) {
      this.frames[known].flags &= frame.flags | ~ofAll;
      return known;
    }
    if (frame.address) frame.name = addressName(frame.address, frame.name);
    this.known.set(key, this.frames.length);
    return this.frames.push(frame) - 1;
  }

  /** The place as a frame, and what makes it one with others. */
  private shape(place: Place): { frame: LocalFrame; key: string } {
    const { func, line, isInlined, mapping, address } = place;
    const file = func?.file ?? "";
    const flags =
      (isInlined ? FrameFlag.Inlined : 0) |
      (kernel.test(mapping) ? FrameFlag.Kernel : 0) |
      (interpreted.test(file) || interpreter.test(mapping) ? FrameFlag.Interpreted : 0) |
      (func ? 0 : FrameFlag.NotSymbolised);
    const name = func?.name || rawName(place);
    switch (this.group) {
      case "file": {
        const shown = file || binaryName(mapping);
        return { frame: { name: shown, file, line: 0, mapping, flags }, key: shown };
      }
      case "binary": // its name is no symbol, and stands without brackets
        return {
          frame: {
            name: binaryName(mapping).replace(/^\[([^]*)\]$/, "$1"),
            file: "",
            line: 0,
            mapping,
            flags: flags & ~FrameFlag.NotSymbolised,
          },
          key: mapping,
        };
      case "line":
      case "address": {
        const own = this.group === "address" ? address : 0n;
        return {
          frame: { name, file, line, mapping, address: own, flags },
          key: [own, own ? mapping : "", line, file, name].join("\0"),
        };
      }
      case "function":
        return { frame: { name, file, line: func?.startLine ?? 0, mapping, flags }, key: name };
    }
  }
}
