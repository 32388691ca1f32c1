/*
 * redact: takes out of a file what its owner does not want to send: paths, labels, the command line,
 * comments. Names of functions and all numbers stay as they are.
 *
 * A pprof message is written anew field by field. Its table of strings keeps its order, since fields that are
 * not known here may point into it; a string that no remaining field names is emptied. Fields that are not
 * known and hold bytes are left out, for nobody can say what is in them; numbers are kept.
 */
import { stacksAlone } from "./folded.ts";
import { isPprof } from "./pprof.ts";
import { LocalError } from "./profile.ts";
import { Message } from "./protobuf.ts";
import { MessageWriter } from "./protobuf_writer.ts";
import { isFolded, unpack } from "./read.ts";
import type { Redaction } from "./wish.ts";

/** What could be taken out; null for a format that only the server reads. */
export interface Redactable {
  format: "pprof" | "folded";
  labelKeys: string[];
}

const baseName = (path: string) =>
  path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1);
/** "cmdline", "process.command_args", "jvmArgs", "process.command_args.0" and whatever else ends so. */
const isCommandKey = (key: string) =>
  /(^|[^a-z])(cmd|command|arg[sv]?|arguments)[^a-z]*$|(cmd|command)[^a-z]?(line|args?|arguments)[^a-z]*$/i.test(
    key.replace(/[a-z](?=[A-Z])/g, "$&_"),
  );
/** As in "command: …", "process.command_line=…" and "args …"; or what has options. */
const isCommand = (text: string) =>
  /(^|[^a-z])((cmd|command)[^a-z]?(line|args?|arguments)|arg[sv])(?![a-z])|(cmd|command)["']?\s*[:=]|[\s\0]--?\w/i.test(
    text,
  );
/** "app --listen …": what follows a blank and begins like an argument. */
const withoutOptions = (path: string) => path.replace(/[\s\0]-.*$/s, "");
/** What is no option, and of no name of a thread such as "app worker-3" either. */
const isArgument = /[=/:@\\]|[\s\0]-/;
/**
 * A program's path up to its first blank, of which nobody can tell whether it is in a folder's name or in front of an
 * argument; but for Windows, where the name ends in .exe.
 */
const programOf = (path: string) => /^"?[A-Za-z]:\\.*?\.exe(?![^\s\0"])|^[^\s\0]*/is.exec(path)![0];
/** Of a program without what Windows ends it with. */
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

/** Fields of a message: those that hold an index of a string, messages, and others that are known. */
interface Kind {
  texts: Record<number, (index: number) => number>;
  messages?: Record<number, Kind>;
  plain?: readonly number[];
  /** Leaves a whole message out. */
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
    private readonly wish: Redaction,
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
        [Field.DocUrl]: (index) => (wish.comments || wish.paths !== "keep" ? 0 : keep(index)),
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

  /** Libraries have none, unless what stands there is a program with one as its last. */
  private withoutArguments(path: string): string {
    if (isInBrackets.test(path)) return path;
    const bare = withoutOptions(path);
    return isLibrary.test(bare) && nameOf(path) !== this.mainBinary ? bare : programOf(bare);
  }

  private readonly numberOf = new Map<string, number>();
  private path(index: number, word: "file" | "binary"): number {
    const whole = this.text(index);
    const path = this.wish.commandLine && word === "binary" ? this.withoutArguments(whole) : whole;
    if (path === "" || this.wish.paths === "keep" || isInBrackets.test(path))
      return path === whole ? this.keep(index) : this.add(path);
    if (this.wish.paths === "base") return this.add(baseName(path));
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
    const { labels, commandLine } = this.wish;
    return (
      labels === "all" ||
      labels.includes(key) ||
      (commandLine && (isCommandKey(key) || this.isCommandLine(text)))
    );
  }

  /** A comment or a label's value that stays. */
  private withoutPaths(index: number): number {
    const text = this.text(index);
    const { paths } = this.wish;
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
    return this.wish.comments || (this.wish.commandLine && (isOfMain || isCommand(text)));
  }

  /** Writes what stays of a message; the fields' order stays too. */
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

/** What must be known before anything is rewritten: strings may stand behind what names them. */
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

/** The file's bytes unpacked; null for a format that is not read here. Throws LocalError for a file that cannot be unpacked here. */
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

/** The file without what is not wanted, packed with gzip. */
export async function redact(file: Blob, wish: Redaction): Promise<Blob> {
  const opened = await open(file);
  if (!opened)
    throw new LocalError(
      "Only pprof and folded stacks can be redacted: the browser does not read this format.",
    );
  const { bytes, format } = opened;
  let made: Uint8Array<ArrayBuffer>;
  if (format === "pprof") {
    const { strings, mainBinary } = survey(bytes);
    made = new Redactor(strings, mainBinary, wish).run(bytes);
  } else {
    const text = new TextDecoder().decode(bytes);
    made = new TextEncoder().encode(wish.comments || wish.commandLine ? stacksAlone(text) : text);
  }
  return new Response(new Blob([made]).stream().pipeThrough(new CompressionStream("gzip"))).blob();
}
