// Call trees for measuring viewers, and the same tree in the format of each viewer.
//
// A tree consists of columns in preorder: depth, name (an index into names) and self. Generated
// trees use a fixed seed; siblings never share a name and every leaf has a value, so that a viewer
// that builds its tree from stacks gets exactly these nodes.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const functionsOf = (nodeCount) => Math.max(200, Math.round(nodeCount * 0.03));
const maxDepth = 120;

function generator(seed) {
  let state = seed;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

/** About 15 new nodes per stack, mean depth slightly above 20, values as uneven as real ones. */
export function makeTree(nodeCount, seed = 12345) {
  const random = generator(seed);
  const functionCount = functionsOf(nodeCount);
  const names = [
    "root",
    ...Array.from(
      { length: functionCount },
      (_, i) => `example.com/service/pkg${i % 97}.(*Type${i % 31}).Method${i}`,
    ),
  ];
  const depth = new Uint32Array(nodeCount);
  const name = new Uint32Array(nodeCount);
  const self = new Float64Array(nodeCount);
  const path = [{ node: 0, base: 0, children: 0 }];
  const value = () => Math.ceil(1 / (random() + 1e-4) ** 0.9);
  for (let node = 1; node < nodeCount;) {
    path.length = 1 + Math.floor(random() * Math.min(path.length, 24));
    const isShort = random() < 0.8;
    const length = Math.min(
      maxDepth - path.length,
      nodeCount - node,
      1 + Math.floor(random() * (isShort ? 12 : 46)),
    );
    for (let i = 0; i < length; i++, node++) {
      const parent = path[path.length - 1];
      depth[node] = path.length;
      // 7919 is prime, so siblings differ.
      name[node] = 1 + ((parent.base + parent.children++ * 7919) % functionCount);
      if (parent.children > functionCount) throw new Error("more siblings than functions");
      path.push({
        node,
        base: Math.floor(random() * random() * functionCount),
        children: 0,
      });
    }
    self[path[path.length - 1].node] += value();
    if (random() < 0.2) self[path[path.length >> 1].node] += value();
  }
  self[0] = 0;
  return { nodeCount, names, depth, name, self };
}

/** The total of each node. */
export function totals({ nodeCount, depth, self }) {
  const total = self.slice();
  const path = [];
  const parent = new Uint32Array(nodeCount);
  for (let node = 0; node < nodeCount; node++) {
    path[depth[node]] = node;
    parent[node] = depth[node] ? path[depth[node] - 1] : 0;
  }
  for (let node = nodeCount - 1; node > 0; node--) total[parent[node]] += total[node];
  return total;
}

/* ---- formats ---- */

/** A growing buffer; numbers are written as protobuf varints. */
class Writer {
  bytes = Buffer.allocUnsafe(1 << 16);
  size = 0;

  reserve(more) {
    if (this.size + more <= this.bytes.length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.bytes.length * 2, this.size + more));
    this.bytes.copy(larger, 0, 0, this.size);
    this.bytes = larger;
  }
  varint(value) {
    this.reserve(10);
    while (value > 127) {
      this.bytes[this.size++] = (value % 128) | 128;
      value = Math.floor(value / 128);
    }
    this.bytes[this.size++] = value;
  }
  number(field, value) {
    this.varint(field * 8);
    this.varint(value);
  }
  block(field, content) {
    this.varint(field * 8 + 2);
    this.varint(content.length);
    this.reserve(content.length);
    content.copy(this.bytes, this.size);
    this.size += content.length;
  }
  get content() {
    return this.bytes.subarray(0, this.size);
  }
}

function message(fill) {
  const writer = new Writer();
  fill(writer);
  return writer.content;
}

/** gzip pprof: one sample for each node with a self value. */
export function toPprof({ nodeCount, names, depth, name, self }) {
  const out = new Writer();
  const strings = ["", "cpu", "nanoseconds", ...names];
  const nameString = 3;
  out.block(
    1,
    message((type) => (type.number(1, 1), type.number(2, 2))),
  );
  const path = [];
  for (let node = 1; node < nodeCount; node++) {
    path[depth[node] - 1] = name[node];
    if (!self[node]) continue;
    const locations = message((list) => {
      for (let level = depth[node] - 1; level >= 0; level--) list.varint(path[level]);
    });
    const values = message((list) => list.varint(self[node]));
    out.block(
      2,
      message((sample) => (sample.block(1, locations), sample.block(2, values))),
    );
  }
  for (let id = 1; id < names.length; id++) {
    const line = message((one) => (one.number(1, id), one.number(2, 10)));
    out.block(
      4,
      message((location) => (location.number(1, id), location.block(4, line))),
    );
    out.block(
      5,
      message((one) => (one.number(1, id), one.number(2, nameString + id), one.number(4, 0))),
    );
  }
  for (const text of strings) out.block(6, Buffer.from(text));
  out.number(10, 30e9);
  return gzipSync(out.content, { level: 6 });
}

/**
 * The format of d3-flame-graph: nested objects. Written as text, because JSON.stringify fails for
 * deep trees.
 */
export function toD3Json(tree) {
  const { nodeCount, names, depth, name } = tree;
  const total = totals(tree);
  const quoted = names.map((text) => JSON.stringify(text));
  const parts = [];
  for (let node = 0; node < nodeCount; node++) {
    const up = node ? depth[node - 1] - depth[node] : 0;
    if (node) parts.push(up < 0 ? "" : "]}".repeat(up + 1) + ",");
    parts.push(`{"name":${quoted[name[node]]},"value":${total[node]},"children":[`);
  }
  parts.push("]}".repeat(depth[nodeCount - 1] + 1));
  return Buffer.from(parts.join(""));
}

/** The format of @grafana/flamegraph: nested sets in columns, names as an enumeration. */
export function toNestedSet(tree) {
  const { names, depth, name, self } = tree;
  const list = (column) => `[${column.join(",")}]`;
  return Buffer.from(
    `{"names":${JSON.stringify(names)},"level":${list(depth)},"label":${list(name)},"value":` +
      `${list(totals(tree))},"self":${list(self)}}`,
  );
}

/** The columns of a tree as decoded by Perfolio's page. */
export function fromFlame(flame) {
  const names = ["root"];
  const ids = new Map();
  const name = Uint32Array.from(flame.frame, (frame, node) => {
    if (node === 0) return 0;
    const text = flame.frames.name(frame);
    let id = ids.get(text);
    if (id === undefined) ids.set(text, (id = names.push(text) - 1));
    return id;
  });
  return {
    nodeCount: flame.nodeCount,
    names,
    depth: flame.depth,
    name,
    self: flame.self,
  };
}

/* ---- files ---- */

const writers = {
  pprof: toPprof,
  d3: (tree) => gzipSync(toD3Json(tree), { level: 6 }),
  nested: (tree) => gzipSync(toNestedSet(tree), { level: 6 }),
};

/**
 * The files of a tree, created once. JSON is stored as gzip. `make` returns the columns; `files`
 * lists the existing files.
 */
export class StoredTree {
  constructor(folder, name, nodeCount, { make, files = {}, sought = "Method1" }) {
    Object.assign(this, { folder, name, nodeCount, make, files, sought });
  }
  path(format) {
    if (this.files[format]) return this.files[format];
    const path = join(this.folder, `${this.name}.${format}.gz`);
    if (!existsSync(path)) {
      this.columns ??= this.make();
      writeFileSync(path, writers[format](this.columns));
    }
    return path;
  }
  file(format) {
    return readFileSync(this.path(format));
  }
}
