/*
 * redact: removes data that the owner of a file does not want to send: paths, labels, the command
 * line, comments. Function names and all numbers stay unchanged.
 *
 * A pprof message is rewritten field by field. The string table keeps its order, because unknown
 * fields may refer to it; a string that no remaining field refers to is emptied. Unknown fields
 * with bytes are removed, because their content cannot be checked; unknown numbers stay.
 */
import { stacksAlone } from "./folded.ts";
import { isPprof } from "./pprof.ts";
import { LocalError } from "./profile.ts";
import { Message } from "./protobuf.ts";
import { MessageWriter } from "./protobuf_writer.ts";
import { isFolded, unpack } from "./read.ts";
import type { Redaction } from "./redaction.ts";

/** The parts that can be removed; null for a format that only the server can read. */
export interface Redactable {
  format: "pprof" | "folded";
  labelKeys: string[];
}

const baseName = (path: string) =>
  path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1);
/** "cmdline", "process.command_args", "jvmArgs", "process.command_args.0" and similar keys. */
const commandKey =
  /((^|[^a-z])(cmd|command|arg[sv]?|arguments)|(cmd|command)[^a-z]?(line|args?|arguments))[^a-z]*$/i;
const isCommandKey = (key: string) => commandKey.test(key.replace(/[a-z](?=[A-Z])/g, "$&_"));
/** "command: …", "process.command_line=…", "args …", or a text with options. */
const isCommand = (text: string) =>
  /(^|[^a-z])((cmd|command)[^a-z]?(line|args?|arguments)|arg[sv])(?![a-z])/i.test(text) ||
  /(cmd|command)["']?\s*[:=]|[\s\0]--?\w/i.test(text);
/** "app --listen …": removes everything from the first option on. */
const withoutOptions = (path: string) => path.replace(/[\s\0]-.*$/s, "");
/**
 * Matches an argument that is not an option. Thread names such as "app worker-3" must not match.
 */
const isArgument = /[=/:@\\]|[\s\0]-/;
/**
 * A program's path up to its first blank, because a blank may belong to a folder or precede an
 * argument. On Windows, up to ".exe".
 */
const programOf = (path: string) => /^"?[A-Za-z]:\\.*?\.exe(?![^\s\0"])|^[^\s\0]*/is.exec(path)![0];
/** The name of a program without ".exe". */
const nameOf = (path: string) => baseName(programOf(path)).replace(/\.exe$/i, "");
const isLibrary = /\.(so|dll|dylib|jar|ko)(\.[\w.]+)?$/;
const isInBrackets = /^\[.*\]$/;

const enum Field {
  SampleType = 1,
  Sample,
  Mapping,
  Location,
  Function,
  Strings,
  DropFrames,
  KeepFrames,
  PeriodType = 11,
  Comment = 13,
  DefaultSampleType,
  DocUrl,
}

/** The fields of a message: indexes of strings, submessages, and other known fields. */
interface Kind {
  texts: Record<number, (index: number) => number>;
  messages?: Record<number, Kind>;
  plain?: readonly number[];
  /** Whether to remove the whole message. */
  isLeftOut?: (message: Message) => boolean;
}

class Redactor {
  private readonly decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  private readonly used = new Set<number>([0]);
  private readonly added: string[] = [];
  private readonly placeOf = new Map<string, number>();
  private readonly profile: Kind;
  private readonly mainBinary: string;

  constructor(
    private readonly strings: readonly Uint8Array[],
    mainBinary: number,
    private readonly redaction: Redaction,
  ) {
    this.mainBinary = nameOf(this.text(mainBinary));
    const keep = (index: number) => this.keep(index);
    const valueType: Kind = { texts: { 1: keep, 2: keep } };
    const label: Kind = {
      texts: { 1: keep, 2: (index) => this.withoutPaths(index), 4: keep },
      isLeftOut: (message) => this.isLabelOut(message),
    };
    this.profile = {
      texts: {
        [Field.DropFrames]: keep,
        [Field.KeepFrames]: keep,
        [Field.DefaultSampleType]: keep,
        [Field.DocUrl]: (index) =>
          redaction.comments || redaction.paths !== "keep" ? 0 : keep(index),
      },
      messages: {
        [Field.SampleType]: valueType,
        [Field.PeriodType]: valueType,
        [Field.Sample]: { texts: {}, messages: { 3: label }, plain: [1, 2] },
        [Field.Mapping]: { texts: { 5: (index) => this.path(index, "binary"), 6: keep } },
        [Field.Location]: { texts: {}, messages: { 4: { texts: {} } } },
        [Field.Function]: { texts: { 2: keep, 3: keep, 4: (index) => this.path(index, "file") } },
      },
    };
  }

  private text(index: number): string {
    return this.strings[index] ? this.decoder.decode(this.strings[index]) : "";
  }
  private keep(index: number): number {
    this.used.add(index);
    return index;
  }
  private add(text: string): number {
    let place = this.placeOf.get(text);
    if (place === undefined)
      this.placeOf.set(text, (place = this.strings.length + this.added.push(text) - 1));
    return place;
  }

  /**
   * Paths of libraries have no arguments, unless the path is a program whose last argument is a
   * library.
   */
  private withoutArguments(path: string): string {
    if (isInBrackets.test(path)) return path;
    const bare = withoutOptions(path);
    return isLibrary.test(bare) && nameOf(path) !== this.mainBinary ? bare : programOf(bare);
  }

  private readonly numberOf = new Map<string, number>();
  private path(index: number, word: "file" | "binary"): number {
    const whole = this.text(index);
    const path =
      this.redaction.commandLine && word === "binary" ? this.withoutArguments(whole) : whole;
    if (path === "" || this.redaction.paths === "keep" || isInBrackets.test(path))
      return path === whole ? this.keep(index) : this.add(path);
    if (this.redaction.paths === "base") return this.add(baseName(path));
    const key = word + path;
    if (!this.numberOf.has(key)) this.numberOf.set(key, this.numberOf.size + 1);
    const ending = /\.[A-Za-z]{1,5}$/.exec(path)?.[0] ?? "";
    return this.add(`${word}-${this.numberOf.get(key)}${ending}`);
  }

  private isCommandLine(text: string): boolean {
    return (
      /[\s\0]--\w/.test(text) ||
      (this.mainBinary !== "" &&
        nameOf(text) === this.mainBinary &&
        isArgument.test(text.slice(programOf(text).length)))
    );
  }

  private isLabelOut(message: Message): boolean {
    let [key, text] = ["", ""];
    while (message.next()) {
      if (message.field === 1 && message.wire === 0) key = this.text(message.unsigned());
      else if (message.field === 2 && message.wire === 0) text = this.text(message.unsigned());
      else message.skip();
    }
    const { labels, commandLine } = this.redaction;
    return (
      labels === "all" ||
      labels.includes(key) ||
      (commandLine && (isCommandKey(key) || this.isCommandLine(text)))
    );
  }

  /** The string of a comment or a label value that stays. */
  private withoutPaths(index: number): number {
    const text = this.text(index);
    const { paths } = this.redaction;
    const plain =
      paths === "keep"
        ? text
        : text.replace(/(?:[A-Za-z]:\\|\.{0,2}\/)[^\s"']+/g, (path) =>
            paths === "base" ? baseName(path) : "…",
          );
    return plain === text ? this.keep(index) : this.add(plain);
  }

  private isCommentOut(index: number): boolean {
    const text = this.text(index);
    const isOfMain = this.mainBinary !== "" && text.includes(this.mainBinary);
    return this.redaction.comments || (this.redaction.commandLine && (isOfMain || isCommand(text)));
  }

  /** Writes the remaining fields of a message in their order. */
  private rewrite(message: Message, kind: Kind, out: MessageWriter): void {
    for (let from = message.offset; message.next(); from = message.offset) {
      const { field, wire } = message;
      const text = kind.texts[field];
      const inner = kind.messages?.[field];
      if (text && wire === 0) out.number(field, text(message.unsigned()));
      else if (inner && wire === 2) {
        const bytes = message.bytes();
        if (inner.isLeftOut?.(new Message(bytes))) continue;
        out.message(field, (part) => this.rewrite(new Message(bytes), inner, part));
      } else {
        message.skip();
        if (wire !== 2 || kind.plain?.includes(field)) out.raw(message.since(from));
      }
    }
  }

  run(data: Uint8Array): Uint8Array<ArrayBuffer> {
    const out = new MessageWriter();
    const message = new Message(data);
    const rest = new MessageWriter();
    const comments: number[] = [];
    for (let from = message.offset; message.next(); from = message.offset) {
      if (message.field === Field.Comment) message.numbers(false, (index) => comments.push(index));
      else {
        message.skip();
        if (message.field !== Field.Strings) rest.raw(message.since(from));
      }
    }
    this.rewrite(new Message(rest.take()), this.profile, out);
    out.packed(
      Field.Comment,
      comments
        .filter((index) => !this.isCommentOut(index))
        .map((index) => this.withoutPaths(index)),
    );
    const encoder = new TextEncoder();
    this.strings.forEach((text, i) =>
      out.bytes(Field.Strings, this.used.has(i) ? text : new Uint8Array(0)),
    );
    for (const text of this.added) out.bytes(Field.Strings, encoder.encode(text));
    return out.take();
  }
}

/**
 * Collects the strings, the keys of labels and the binary of the program before the file is
 * rewritten: strings may follow the fields that refer to them.
 */
function survey(data: Uint8Array) {
  const strings: Uint8Array[] = [];
  const labelKeys = new Set<number>();
  let mainBinary = -1;
  const look = (message: Message, use: (field: number, message: Message) => boolean) => {
    while (message.next()) if (!use(message.field, message)) message.skip();
  };
  look(new Message(data), (field, message) => {
    if (field === Field.Strings) strings.push(message.bytes());
    else if (field === Field.Sample)
      look(message.message(), (inSample, sample) => {
        if (inSample !== 3) return false;
        look(
          sample.message(),
          (inLabel, label) =>
            inLabel === 1 && label.wire === 0 && (labelKeys.add(label.unsigned()), true),
        );
        return true;
      });
    else if (field === Field.Mapping && mainBinary < 0) {
      mainBinary = 0;
      look(
        message.message(),
        (inMapping, mapping) =>
          inMapping === 5 && mapping.wire === 0 && ((mainBinary = mapping.unsigned()), true),
      );
    } else return false;
    return true;
  });
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const keys = [...labelKeys]
    .map((index) => (strings[index] ? decoder.decode(strings[index]) : ""))
    .filter(Boolean);
  return { strings, labelKeys: [...new Set(keys)].sort(), mainBinary: Math.max(0, mainBinary) };
}

/**
 * The uncompressed bytes of a file; null for a format that cannot be read here. Throws LocalError
 * if the file cannot be decompressed here.
 */
async function open(file: Blob): Promise<{ bytes: Uint8Array; format: "pprof" | "folded" } | null> {
  const bytes = await unpack(file);
  if (bytes.length === 0) return null;
  if (isFolded(bytes)) return { bytes, format: "folded" };
  return isPprof(bytes) ? { bytes, format: "pprof" } : null;
}

export async function findRedactable(file: Blob): Promise<Redactable | null> {
  const opened = await open(file);
  if (!opened) return null;
  const { bytes, format } = opened;
  return { format, labelKeys: format === "folded" ? [] : survey(bytes).labelKeys };
}

/** The redacted file, compressed with gzip. */
export async function redact(file: Blob, redaction: Redaction): Promise<Blob> {
  const opened = await open(file);
  if (!opened)
    throw new LocalError(
      "Only pprof and folded stacks can be redacted: the browser does not read this format.",
    );
  const { bytes, format } = opened;
  let made: Uint8Array<ArrayBuffer>;
  if (format === "pprof") {
    const { strings, mainBinary } = survey(bytes);
    made = new Redactor(strings, mainBinary, redaction).run(bytes);
  } else {
    const text = new TextDecoder().decode(bytes);
    made = new TextEncoder().encode(
      redaction.comments || redaction.commandLine ? stacksAlone(text) : text,
    );
  }
  return new Response(new Blob([made]).stream().pipeThrough(new CompressionStream("gzip"))).blob();
}
