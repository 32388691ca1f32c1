/*
 * grouping: which places of a local profile form one frame, and the frame's name, like the server
 * (lib/profile/report/view.h, frame_table.c).
 */
import { FrameFlag } from "../model/tree/flame.ts";
import type { LocalFrame } from "./profile.ts";

const frameGroups = ["function", "file", "line", "address", "binary"] as const;
export type FrameGroup = (typeof frameGroups)[number];

/**
 * Parses the grouping of a link: by a property of frames, or by a label, which divides functions.
 */
export function parseGroup(text: string): { frames: FrameGroup; label: string | null } {
  const frames = frameGroups.find((group) => group === (text || "function"));
  return frames
    ? { frames, label: null }
    : { frames: "function", label: text.replace(/^label:/, "") };
}

/** A line of a location, or a location without line information. */
export interface Place {
  func: { name: string; file: string; startLine: number } | null;
  line: number;
  isInlined: boolean;
  mapping: string;
  address: bigint;
  /** The address in the binary's file. */
  offset: bigint;
}

const interpreted = /\.(py|js|ts|mjs|cjs|rb|pl|php|lua)$/;
/** The binary name that agents use for functions of scripts. */
const interpreter = /^\[(cpython|ruby)\]$/;
const kernel = /^\[(guest\.)?kernel|(^|\/)vmlinux$|\.ko$/;
/** Flags that are set only if all places of the frame have them. */
const ofAll = FrameFlag.Inlined | FrameFlag.Kernel | FrameFlag.Interpreted;

/** "" for a path that consists of slashes. */
const baseName = (path: string) => /([^/]+)\/*$/.exec(path)?.[1] ?? "";
/** The name that pprof prints for a mapping without a name. */
function binaryName(mapping: string): string {
  const name = baseName(mapping);
  return name ? `[${name}]` : "<unknown>";
}
/** rawName looks for the binary's name in at most this many bytes at the end of its path. */
const rawPathBytes = 256;

const hexadecimal = (number: bigint) => "0x" + number.toString(16);

/** The name of an address without a function, as in lib/profile/raw_name.h. */
function rawName({ mapping, address, offset }: Place): string {
  if (!address) return binaryName(mapping);
  const bytes = encoder.encode(mapping);
  let from = Math.max(0, bytes.length - rawPathBytes);
  while (from > 0 && (bytes[from] & 0xc0) === 0x80) from++;
  const base = baseName(from ? decoder.decode(bytes.subarray(from)) : mapping);
  return base ? `${base}+${hexadecimal(offset)}` : hexadecimal(address);
}

/** A longer name is cut to this many bytes after an address. */
const addressNameBytes = 240;
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** The address followed by the name, or the address alone if that is the name. */
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

  /** The frame that contains the place. */
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

  /** The frame for a place, and the key that places of the same frame share. */
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
      case "binary": // its name is not a symbol and has no brackets
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
