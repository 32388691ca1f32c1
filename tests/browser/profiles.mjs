// Profiles for the tests, and a second, brute-force reader that states their correct values.
import { gunzipSync, gzipSync } from "node:zlib";

/* ---- a small pprof writer ---- */

function varint(value) {
  const bytes = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  do {
    bytes.push(Number(rest & 127n) | (rest > 127n ? 128 : 0));
    rest >>= 7n;
  } while (rest > 0n);
  return Buffer.from(bytes);
}
const number = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const bytes = (field, value) =>
  Buffer.concat([varint((field << 3) | 2), varint(value.length), value]);
const packed = (field, values) => bytes(field, Buffer.concat(values.map(varint)));

/**
 * types: [[name, unit], …]; samples: [{stack: [root … leaf], values: [per type], labels: {key:
 * text} or, for several values or numbers, [[key, text], [key, number, unit] …]}]. A frame is a
 * name, or [name, line], or an address without a name. All frames are in the binary of that path,
 * at mapped.offset in the file and at mapped.start in memory. unknown: bytes of unknown fields.
 */
export function encodePprof({
  types,
  samples,
  durationNs = 0,
  defaultType = "",
  comments = [],
  binary = "",
  buildId = "",
  mapped = { start: 0, offset: 0 },
  folder = "/src",
  unknown = null,
}) {
  const strings = new Map([["", 0]]);
  const intern = (text) => strings.get(text) ?? strings.set(text, strings.size).get(text);
  const functions = new Map();
  const idOf = (name) => functions.get(name) ?? functions.set(name, functions.size + 1).get(name);
  const places = new Map();
  const placeOf = (frame) => {
    const isAddress = typeof frame === "number";
    const [name, line = isAddress ? 0 : 10 + idOf(name)] = [frame].flat();
    const key = `${name}:${line}`;
    if (!places.has(key))
      places.set(
        key,
        isAddress
          ? { id: places.size + 1, address: frame }
          : { id: places.size + 1, of: idOf(name), line },
      );
    return places.get(key).id;
  };
  const out = types.map(([type, unit]) =>
    bytes(1, Buffer.concat([number(1, intern(type)), number(2, intern(unit))])),
  );
  const labelOf = ([key, value, unit = ""]) =>
    bytes(
      3,
      Buffer.concat([
        number(1, intern(key)),
        ...(typeof value === "string"
          ? [number(2, intern(value))]
          : [number(3, value), number(4, intern(unit))]),
      ]),
    );
  for (const { stack, values, labels = [] } of samples) {
    const pairs = Array.isArray(labels) ? labels : Object.entries(labels);
    out.push(
      bytes(
        2,
        Buffer.concat([
          packed(1, stack.map(placeOf).reverse()),
          packed(2, values),
          ...pairs.map(labelOf),
        ]),
      ),
    );
  }
  const { start, offset } = mapped;
  if (binary)
    out.push(
      bytes(
        3,
        Buffer.concat([
          number(1, 1),
          number(2, start),
          number(3, start + 0x10000000),
          number(4, offset),
          number(5, intern(binary)),
          number(6, intern(buildId)),
        ]),
      ),
    );
  const within = binary ? number(2, 1) : Buffer.alloc(0);
  for (const { id, of, line, address } of places.values()) {
    const where =
      address === undefined
        ? bytes(4, Buffer.concat([number(1, of), number(2, line)]))
        : number(3, address);
    out.push(bytes(4, Buffer.concat([number(1, id), within, where])));
  }
  for (const [name, id] of functions) {
    out.push(
      bytes(
        5,
        Buffer.concat([
          number(1, id),
          number(2, intern(name)),
          number(4, intern(`${folder}/${name.split(".")[0]}.go`)),
        ]),
      ),
    );
  }
  const commentIds = comments.map(intern);
  const defaultId = intern(defaultType);
  for (const text of strings.keys()) out.push(bytes(6, Buffer.from(text)));
  out.push(number(10, durationNs), number(14, defaultId));
  if (unknown) out.push(bytes(77, unknown), number(78, 5));
  if (commentIds.length) out.push(packed(13, commentIds));
  return gzipSync(Buffer.concat(out));
}

/** One sample in each of these binaries ({file, buildId}), at an address without a name. */
export function encodeBinaries(binaries) {
  const strings = [
    "",
    "samples",
    "count",
    ...binaries.flatMap(({ file, buildId }) => [file, buildId]),
  ];
  const out = [bytes(1, Buffer.concat([number(1, 1), number(2, 2)]))];
  binaries.forEach((_, i) => {
    const start = 0x100000 * (i + 1);
    out.push(bytes(2, Buffer.concat([packed(1, [i + 1]), packed(2, [1])])));
    out.push(
      bytes(
        3,
        Buffer.concat([
          number(1, i + 1),
          number(2, start),
          number(3, start + 0x1000),
          number(5, 3 + 2 * i),
          number(6, 4 + 2 * i),
        ]),
      ),
    );
    out.push(
      bytes(4, Buffer.concat([number(1, i + 1), number(2, i + 1), number(3, start + 0x10)])),
    );
  });
  for (const text of strings) out.push(bytes(6, Buffer.from(text)));
  return gzipSync(Buffer.concat(out));
}

/**
 * One sample of main > leaf in each of these binaries ({file, source, leaf, value}): each contains
 * main, with different source files.
 */
export function encodeNamesakes(binaries) {
  const strings = [
    "",
    "samples",
    "count",
    "main",
    ...binaries.flatMap(({ file, source, leaf }) => [file, source, leaf]),
  ];
  const out = [bytes(1, Buffer.concat([number(1, 1), number(2, 2)]))];
  binaries.forEach(({ value }, i) => {
    const [main, leaf, start, text] = [2 * i + 1, 2 * i + 2, 0x100000 * (i + 1), 4 + 3 * i];
    out.push(bytes(2, Buffer.concat([packed(1, [leaf, main]), packed(2, [value])])));
    out.push(
      bytes(
        3,
        Buffer.concat([
          number(1, i + 1),
          number(2, start),
          number(3, start + 0x1000),
          number(5, text),
        ]),
      ),
    );
    for (const [id, name] of [
      [main, 3],
      [leaf, text + 2],
    ]) {
      out.push(
        bytes(
          4,
          Buffer.concat([
            number(1, id),
            number(2, i + 1),
            number(3, start + id),
            bytes(4, number(1, id)),
          ]),
        ),
      );
      out.push(bytes(5, Buffer.concat([number(1, id), number(2, name), number(4, text + 1)])));
    }
  });
  for (const text of strings) out.push(bytes(6, Buffer.from(text)));
  return gzipSync(Buffer.concat(out));
}

/* ---- a small pprof reader that shares no code with the pages ---- */

function readVarint(data, at) {
  let value = 0n;
  for (let shift = 0n; ; shift += 7n) {
    const byte = data[at++];
    value |= BigInt(byte & 127) << shift;
    if (byte < 128) return [value, at];
  }
}

/** The fields of a message as [number, value], with bytes for fields that have a length. */
function fieldsOf(data) {
  const found = [];
  for (let at = 0; at < data.length;) {
    let tag, value;
    [tag, at] = readVarint(data, at);
    [value, at] = readVarint(data, at);
    if (Number(tag & 7n) === 2) {
      found.push([Number(tag >> 3n), data.subarray(at, at + Number(value))]);
      at += Number(value);
    } else if (Number(tag & 7n) === 0) found.push([Number(tag >> 3n), value]);
    else throw new Error("an unknown wire type");
  }
  return found;
}
const one = (fields, number, otherwise = 0n) =>
  fields.find(([field]) => field === number)?.[1] ?? otherwise;
const unpack = (bytes) => {
  const values = [];
  for (let at = 0, value; at < bytes.length; values.push(value))
    [value, at] = readVarint(bytes, at);
  return values;
};

/**
 * {types: [[type, unit]], samples: [{stack: [root … leaf], values}], strings, comments} of a pprof
 * file, compressed or not.
 */
export function decodePprof(bytes) {
  const fields = fieldsOf(bytes[0] === 0x1f ? gunzipSync(bytes) : bytes);
  const all = (number) => fields.filter(([field]) => field === number).map(([, value]) => value);
  const strings = all(6).map((text) => text.toString());
  const text = (index) => strings[Number(index)];
  const functions = new Map(
    all(5)
      .map((bytes) => fieldsOf(bytes))
      .map((fn) => [one(fn, 1), text(one(fn, 2))]),
  );
  const locations = new Map(
    all(4)
      .map((bytes) => fieldsOf(bytes))
      .map((place) => [
        one(place, 1),
        place
          .filter(([field]) => field === 4)
          .map(([, line]) => functions.get(one(fieldsOf(line), 1))),
      ]),
  );
  const samples = all(2).map((bytes) => {
    const sample = fieldsOf(bytes);
    const numbers = (number) =>
      sample
        .filter(([field]) => field === number)
        .flatMap(([, value]) => (typeof value === "bigint" ? [value] : unpack(value)));
    return {
      stack: numbers(1)
        .flatMap((id) => locations.get(id))
        .reverse(),
      values: numbers(2).map((value) => Number(BigInt.asIntN(64, value))),
    };
  });
  const types = all(1)
    .map((bytes) => fieldsOf(bytes))
    .map((type) => [text(one(type, 1)), text(one(type, 2))]);
  return {
    types,
    samples,
    strings,
    comments: all(13)
      .flatMap((value) => (typeof value === "bigint" ? [value] : unpack(value)))
      .map(text),
  };
}

/** The samples of folded lines; several values after a stack are several types. */
export const decodeFolded = (lines, types = 1) =>
  lines
    .trimEnd()
    .split("\n")
    .map((line) => {
      const words = line.split(" ");
      return {
        stack: words.slice(0, -types).join(" ").split(";"),
        values: words.slice(-types).map(Number),
      };
    });

/* ---- profiles ---- */

function generator(seed) {
  let state = seed;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

const names = [
  "main.main",
  "main.serve",
  "main.handle",
  "net/http.(*conn).serve",
  "net/http.HandlerFunc.ServeHTTP",
  "encoding/json.Marshal",
  "encoding/json.(*encodeState).marshal",
  "encoding/json.structEncoder.encode",
  "runtime.mallocgc",
  "runtime.gcBgMarkWorker",
  "runtime.scanobject",
  "runtime.memmove",
  "compress/flate.(*compressor).deflate",
  "github.com/acme/store.(*DB).Query",
  "github.com/acme/store.decodeRow",
  "crypto/tls.(*Conn).Write",
  "syscall.write",
  "main.parse",
  "sort.Sort",
  "strings.Builder.Grow",
];

export const twoTypes = [
  ["samples", "count"],
  ["cpu", "nanoseconds"],
];

/** A CPU profile with recursion and two sample types. */
export function cpuSamples(seed = 1, count = 400) {
  const random = generator(seed);
  const samples = [];
  for (let i = 0; i < count; i++) {
    const stack = ["main.main"];
    const depth = 2 + random(9);
    for (let level = 0; level < depth; level++)
      stack.push(names[(random(4) + level * 2 + random(5)) % names.length]);
    const hits = 1 + random(9);
    samples.push({ stack, values: [hits, hits * 10_000_000] });
  }
  return samples;
}

export const cpuProfile = (seed, count) =>
  encodePprof({
    types: twoTypes,
    samples: cpuSamples(seed, count),
    durationNs: 30e9,
    defaultType: "cpu",
    comments: ["made by a test"],
  });

/**
 * The same with labels: texts, numbers with a unit, several values of one key, and samples without
 * labels.
 */
export function labelledSamples(seed = 3, count = 240) {
  const random = generator(seed + 1000);
  const threads = ["io", "main", "gc"];
  const endpoints = [
    "/api/cart",
    "/api/checkout",
    "/api/items?sort=price&page=1",
    "/health",
    "/köln",
  ];
  return cpuSamples(seed, count).map((sample) => {
    const labels = [];
    if (random(8)) labels.push(["thread", threads[Math.min(random(4), 2)]]);
    if (random(9) === 0) labels.push(["thread", "io"]);
    if (random(2)) labels.push(["endpoint", endpoints[Math.min(random(5), random(5))]]);
    if (random(3)) labels.push(["bytes", 1 + random(2 ** (3 + random(12))), "bytes"]);
    return { ...sample, labels };
  });
}

export const labelledProfile = (seed, count) =>
  encodePprof({
    types: twoTypes,
    samples: labelledSamples(seed, count),
    durationNs: 30e9,
    defaultType: "cpu",
  });

/** Many different stacks as folded text, for large uploads and many nodes. */
export function foldedText(lines, { seed = 5, functions = 3000, depth = 22 } = {}) {
  const random = generator(seed);
  const out = [];
  for (let i = 0; i < lines; i++) {
    const stack = ["start"];
    for (let level = 0; level < depth; level++)
      stack.push(
        `mod${(level * 7) % 40}::fn_` +
          (random(3) ? (i >> (depth - level)) % functions : random(functions)),
      );
    out.push(`${stack.join(";")} ${1 + random(1000)}`);
  }
  return Buffer.from(out.join("\n") + "\n");
}

export const deepText = (depth) =>
  Buffer.from(Array.from({ length: depth }, (_, i) => `level_${i}`).join(";") + " 7\n");

/* ---- brute force ---- */

/** A map from name to {flat, cum}; a function counts once per sample. */
export function topOf(samples, type) {
  const rows = new Map();
  const row = (name) => rows.get(name) ?? rows.set(name, { flat: 0, cum: 0 }).get(name);
  for (const { stack, values } of samples) {
    row(stack[stack.length - 1]).flat += values[type];
    for (const name of new Set(stack)) row(name).cum += values[type];
  }
  return rows;
}

export const totalOf = (samples, type) =>
  samples.reduce((sum, sample) => sum + sample.values[type], 0);

/** The sum of samples with a matching frame, and the number of matching functions. */
export function matchOf(samples, type, pattern) {
  const functions = new Set();
  let value = 0;
  for (const { stack, values } of samples) {
    const found = stack.filter((name) => pattern.test(name));
    for (const name of found) functions.add(name);
    if (found.length) value += values[type];
  }
  return { value, functions: functions.size };
}
