/*
 * regex: regular expressions with the syntax and meaning of the server's (lib/regex/regex.h).
 *
 * Reader refuses what the server refuses and parses an expression into a small tree, which sourceOf
 * translates for the browser's engine: "." excludes only a line feed, \s is ASCII, characters are
 * code points. Only whether a name matches is needed, so laziness and capturing groups are dropped.
 *
 * The expression may come from a link, and the browser's engine backtracks and cannot be stopped:
 * without nested repetition, it takes at most about length^(repetitions + 1) steps. If that is too
 * much, Program runs the expression as an NFA, which takes length times size steps.
 */

type Node =
  | { kind: "char"; source: string }
  | { kind: "edge"; source: string }
  | { kind: "all"; parts: Node[] }
  | { kind: "any"; parts: Node[] }
  | { kind: "repeat"; of: Node; least: number; most: number };

const maxBytes = 8192;
const maxDepth = 100;
const maxCount = 1000;
const maxProgram = 50_000;
const maxSteps = 1e7; // some hundredths of a second for one name, in the worst case

const spaces = " \\t-\\r";
const notSpaces = "\\0-\\x08\\x0e-\\x1f!-\\u{10ffff}";
const literal = (char: string) => char.replace(/[\\^$.*+?()[\]{}|/]/, "\\$&");
const isDigit = (char: string) => char >= "0" && char <= "9";
const isLetter = (char: string) => /^[A-Za-z]$/.test(char);

class Reader {
  private at = 0;
  private depth = 0;
  private readonly text: string[];
  constructor(text: string) {
    this.text = [...text];
  }
  private next(ahead = 0): string {
    return this.text[this.at + ahead] ?? "";
  }
  private starts(text: string): boolean {
    return this.text.slice(this.at, this.at + text.length).join("") === text;
  }
  private refuse(problem: string): never {
    throw new Error(`The expression ${problem} (at character ${this.at + 1}).`);
  }

  read(): Node {
    const node = this.alternatives();
    if (this.at < this.text.length) this.refuse("closes a group that was not opened");
    return node;
  }

  private alternatives(): Node {
    const options = [this.sequence()];
    while (this.next() === "|") {
      this.at++;
      options.push(this.sequence());
    }
    return options.length > 1 ? { kind: "any", parts: options } : options[0];
  }

  private sequence(): Node {
    const parts: Node[] = [];
    while (this.at < this.text.length && this.next() !== "|" && this.next() !== ")") {
      if (/[*+?]/.test(this.next()) || this.countAt())
        this.refuse("has a repeat with nothing before it to repeat");
      const part = this.one();
      parts.push(part.kind === "edge" ? part : this.repeated(part));
    }
    return { kind: "all", parts };
  }

  private repeated(of: Node): Node {
    const count = this.countAt();
    if (!count) return of;
    const [least, most, size] = count;
    if (Math.max(least, most === Infinity ? 0 : most) > maxCount)
      this.refuse("repeats more than 1000 times");
    if (most < least) this.refuse("has a repeat whose numbers are out of order");
    this.at += size;
    if (this.next() === "+")
      this.refuse("uses a possessive repeat such as a*+, which is not supported");
    if (this.next() === "?") this.at++;
    return { kind: "repeat", of, least, most };
  }

  /** The bounds of a repeat at this position; null if the braces are literal, as in {{closure}}. */
  private countAt(): [least: number, most: number, size: number] | null {
    const char = this.next();
    if (char === "*") return [0, Infinity, 1];
    if (char === "+") return [1, Infinity, 1];
    if (char === "?") return [0, 1, 1];
    if (char !== "{") return null;
    if (this.next(1) === ",")
      this.refuse("has {,n}, which is read differently elsewhere; write {0,n}");
    const found = /^\{(\d+)(,?)(\d*)\}/.exec(this.text.slice(this.at, this.at + 20).join(""));
    if (!found || (!found[2] && found[3])) return null;
    const least = Number(found[1]);
    return [least, found[3] ? Number(found[3]) : found[2] ? Infinity : least, found[0].length];
  }

  private one(): Node {
    const char = this.next();
    if (char === "\\") return this.escape();
    if (char === "[") return this.classOfChars();
    if (char === "(") return this.group();
    this.at++;
    if (char === "^" || char === "$") return { kind: "edge", source: char };
    return { kind: "char", source: char === "." ? "[^\\n]" : literal(char) };
  }

  private group(): Node {
    if (this.next(1) === "*") this.refuse("uses a verb such as (*ACCEPT), which is not supported");
    const isPlain = this.next(1) !== "?";
    if (this.starts("(?i)"))
      this.refuse("has (?i) in the middle; it is allowed only at the very beginning");
    if (!isPlain && this.next(2) !== ":")
      this.refuse("uses look-around or another (?…) group that is not supported; only (?:…) is");
    if (++this.depth > maxDepth) this.refuse("has groups nested too deep");
    this.at += isPlain ? 1 : 3;
    const node = this.alternatives();
    if (this.next() !== ")") this.refuse("has a group without its closing parenthesis");
    this.at++;
    this.depth--;
    return { kind: "all", parts: [node] };
  }

  private escape(): Node {
    const letter = this.next(1);
    if (letter === "b" || letter === "B") {
      this.at += 2;
      return { kind: "edge", source: `\\${letter}` };
    }
    const { source } = this.escaped(false);
    return { kind: "char", source };
  }

  /** Parses an escape at a backslash; `one` is the single character, if it is one. */
  private escaped(isInClass: boolean): { source: string; one: string } {
    const letter = this.next(1);
    if (letter === "") this.refuse("ends in a single backslash");
    if (isDigit(letter))
      this.refuse("uses a backreference or an octal number, which are not supported");
    if (letter === "x") {
      const hex = this.text.slice(this.at + 2, this.at + 4).join("");
      if (!/^[0-9A-Fa-f]{2}$/.test(hex)) this.refuse("needs two hexadecimal digits behind \\x");
      this.at += 4;
      return { source: `\\x${hex}`, one: String.fromCharCode(parseInt(hex, 16)) };
    }
    if (letter > "\x7f" || (isLetter(letter) && !"dDwWsStnrf".includes(letter)))
      this.refuse("uses an escape that is not supported here");
    this.at += 2;
    if (letter === "s") return { source: isInClass ? spaces : `[${spaces}]`, one: "" };
    if (letter === "S") return { source: isInClass ? notSpaces : `[^${spaces}]`, one: "" };
    if ("dDwW".includes(letter)) return { source: `\\${letter}`, one: "" };
    if (isLetter(letter))
      return { source: `\\${letter}`, one: { t: "\t", n: "\n", r: "\r", f: "\f" }[letter]! };
    return { source: isInClass && letter === "-" ? "\\-" : literal(letter), one: letter };
  }

  private classOfChars(): Node {
    const start = this.next(1) === "^" ? "[^" : "[";
    this.at += start.length;
    if (this.next() === "]") this.refuse("has an empty class; write \\] for the bracket itself");
    let source = start;
    while (this.next() !== "]") {
      const from = this.inClass();
      const isRange = this.next() === "-" && this.next(1) !== "]" && this.next(1) !== "";
      if (!isRange) {
        source += from.source;
        continue;
      }
      this.at++;
      const to = this.inClass();
      if (!from.one || !to.one) this.refuse("has a range with a class such as \\d at its end");
      if (from.one.codePointAt(0)! > to.one.codePointAt(0)!)
        this.refuse("has a range that is out of order");
      source += `${from.source}-${to.source}`;
    }
    this.at++;
    return { kind: "char", source: source + "]" };
  }

  private inClass(): { source: string; one: string } {
    const [char, next] = [this.next(), this.next(1)];
    if (char === "") this.refuse("has a class without its closing bracket");
    if (char === "[" && next !== "" && ":.=".includes(next))
      this.refuse("uses a named class such as [:alpha:]; write [A-Za-z]");
    if (char === "\\" && (next === "b" || next === "B")) this.refuse("uses \\b inside a class");
    if (char === "\\") return this.escaped(true);
    this.at++;
    return { source: char === "-" ? "\\-" : literal(char), one: char };
  }
}

function sourceOf(node: Node): string {
  if (node.kind === "all") return node.parts.map(sourceOf).join("");
  if (node.kind === "any") return `(?:${node.parts.map(sourceOf).join("|")})`;
  if (node.kind !== "repeat") return node.source;
  const { least, most } = node;
  return `(?:${sourceOf(node.of)}){${least},${most === Infinity ? "" : most}}`;
}

interface Cost {
  /** The number of repetitions without a small bound: * + {2,} */
  repetitions: number;
  /** The number of paths through optional parts and the alternatives of groups, multiplied. */
  ways: number;
  /** A part with several paths is repeated. */
  isNested: boolean;
}

/** Whether the node can match a text in several ways. */
function isVaried(node: Node): boolean {
  return (
    node.kind === "repeat" ||
    node.kind === "any" ||
    (node.kind === "all" && node.parts.some(isVaried))
  );
}

function addCost(node: Node, cost: Cost): Cost {
  if (node.kind === "any") cost.ways *= node.parts.length;
  if (node.kind === "all" || node.kind === "any")
    for (const part of node.parts) addCost(part, cost);
  if (node.kind === "repeat") {
    if (node.most === 1) cost.ways *= 2;
    else if (node.most > 1) cost.repetitions++;
    if (node.most > 1 && isVaried(node.of)) cost.isNested = true;
    addCost(node.of, cost);
  }
  return cost;
}

/* ---- NFA ---- */

type Step =
  | { at: "char"; source: string }
  | { at: "edge"; source: string }
  | { at: "fork"; to: number }
  | { at: "jump"; to: number }
  | { at: "end" };

/** The expression as the steps of an NFA; test() follows all paths at the same time. */
class Program {
  readonly steps: Step[] = [];
  private added = 0; // parts of the tree; a part may add no step
  /** The results of holds() by source and subject. */
  private readonly known = new Map<string, Map<string, boolean>>();
  constructor(
    node: Node,
    private readonly flags: string,
  ) {
    this.add(node);
    this.steps.push({ at: "end" });
  }
  private put<Kind extends Step>(step: Kind): Kind {
    this.steps.push(step);
    return step;
  }
  private add(node: Node): void {
    if (++this.added > maxProgram)
      throw new Error("The expression repeats too much to be searched for here.");
    if (node.kind === "all") node.parts.forEach((part) => this.add(part));
    else if (node.kind === "any") this.addAny(node.parts);
    else if (node.kind === "repeat") this.addRepeat(node.of, node.least, node.most);
    else this.put({ at: node.kind, source: node.source });
  }
  private addAny(parts: Node[]): void {
    const jumps = parts.map((part, i): { to: number } => {
      const fork: { to: number } | null =
        i + 1 < parts.length ? this.put({ at: "fork", to: 0 }) : null;
      this.add(part);
      const jump = this.put({ at: "jump", to: 0 });
      if (fork) fork.to = this.steps.length;
      return jump;
    });
    for (const jump of jumps) jump.to = this.steps.length;
  }
  private addRepeat(of: Node, least: number, most: number): void {
    for (let i = 0; i < least; i++) this.add(of);
    const forks: { to: number }[] = [];
    const start = this.steps.length;
    for (let i = least; i < (most === Infinity ? least + 1 : most); i++) {
      forks.push(this.put({ at: "fork", to: 0 }));
      this.add(of);
    }
    if (most === Infinity) this.put({ at: "jump", to: start });
    for (const fork of forks) fork.to = this.steps.length;
  }

  /** Whether the character, or the position between two characters, matches source. */
  private holds(source: string, subject: string, isEdge: boolean): boolean {
    let matches = this.known.get(source);
    if (!matches) this.known.set(source, (matches = new Map()));
    let isMatch = matches.get(subject);
    if (isMatch === undefined)
      matches.set(
        subject,
        (isMatch = new RegExp(isEdge ? source : `^${source}$`, this.flags).test(subject)),
      );
    return isMatch;
  }
  private isAtEdge(source: string, before: string, after: string): boolean {
    if (source === "^") return before === "";
    if (source === "$") return after === "";
    const isBetween = this.holds("\\w", before, true) !== this.holds("\\w", after, true);
    return isBetween === (source === "\\b");
  }

  test(text: string): boolean {
    const chars = [...text];
    const { steps } = this;
    // the last position at which a step was reached
    const seen = new Int32Array(steps.length).fill(-1);
    let reached: number[] = []; // steps that wait for a character
    for (let at = 0; at <= chars.length; at++) {
      const waiting: number[] = [];
      const open = [0];
      for (const step of reached)
        if (this.holds((steps[step] as { source: string }).source, chars[at - 1], false))
          open.push(step + 1);
      while (open.length > 0) {
        const here = open.pop()!;
        if (seen[here] === at) continue;
        seen[here] = at;
        const step = steps[here];
        if (step.at === "end") return true;
        if (step.at === "char") waiting.push(here);
        else if (step.at === "jump") open.push(step.to);
        else if (step.at === "fork") open.push(here + 1, step.to);
        else if (this.isAtEdge(step.source, chars[at - 1] ?? "", chars[at] ?? ""))
          open.push(here + 1);
      }
      reached = waiting;
    }
    return false;
  }
}

/** A compiled expression. Throws an Error whose message can be shown. */
export class Pattern {
  private readonly node: Node;
  private readonly cost: Cost;
  private readonly regexp: RegExp;
  private program: Program | null = null;

  constructor(text: string, isEitherCase: boolean) {
    const isMarked = text.startsWith("(?i)");
    if (new TextEncoder().encode(text).length > maxBytes)
      throw new Error("The expression is longer than 8192 bytes.");
    this.node = new Reader(isMarked ? text.slice(4) : text).read();
    this.cost = addCost(this.node, { repetitions: 0, ways: 1, isNested: false });
    this.regexp = new RegExp(sourceOf(this.node), isEitherCase || isMarked ? "iu" : "u");
    if (this.cost.isNested) this.nfa();
  }
  private nfa(): Program {
    return (this.program ??= new Program(this.node, this.regexp.flags));
  }
  /** The maximum number of backtracking steps, if each repetition consumes every part of a name. */
  private backtrackingSteps(length: number): number {
    let steps = this.cost.isNested ? Infinity : this.cost.ways * Math.max(length, 1);
    for (let i = 1; i <= this.cost.repetitions; i++) steps *= length / (i + 1) + 1;
    return steps;
  }
  /** The approximate number of steps to test a name of that length. */
  stepsFor(length: number): number {
    const steps = this.backtrackingSteps(length);
    return steps <= maxSteps ? steps : this.nfa().steps.length * (length + 1);
  }
  test(text: string): boolean {
    return this.backtrackingSteps(text.length) <= maxSteps
      ? this.regexp.test(text)
      : this.nfa().test(text);
  }
}
