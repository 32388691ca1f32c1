// A flame of any number of nodes, written directly into its columns: a million takes a second. The
// same numbers always give the same tree: mean depth about 20, values as uneven as real ones.

const align8 = (size) => (size + 7) & ~7;

export function bigFlame(nodeCount, { functionCount = 30_000, maxDepth = 120, seed = 12345 } = {}) {
  let state = seed;
  const random = () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
  const frame = new Uint32Array(nodeCount);
  const depth = new Uint16Array(nodeCount);
  const self = new Float64Array(nodeCount);
  const path = [0];
  let total = 0;
  for (let i = 1; i < nodeCount; i++) {
    // Up some frames, then down one: most leaves are deep and near the previous ones.
    const up =
      path.length >= maxDepth
        ? maxDepth
        : random() < 0.93
          ? Math.floor(random() * random() * 4)
          : Math.floor(random() * path.length);
    path.length = Math.max(1, path.length - up);
    frame[i] = 1 + Math.floor(random() * random() * functionCount);
    depth[i] = path.length;
    self[i] = random() < 0.6 ? 0 : Math.ceil(1 / (random() + 1e-4) ** 0.9);
    total += self[i];
    path.push(i);
  }
  const strings = [
    "",
    "root",
    ...Array.from(
      { length: functionCount },
      (_, i) => `example.com/service/pkg${i % 97}.(*Type${i % 31}).Method${i}`,
    ),
  ];
  const bytes = strings.map((text) => Buffer.from(text));
  const offsets = new Uint32Array(strings.length + 1);
  for (let i = 0; i < bytes.length; i++) offsets[i + 1] = offsets[i] + bytes[i].length;
  const frameCount = functionCount + 1;
  const column = (array) => Buffer.from(array.buffer);
  const owners = Uint32Array.from([...self.keys()].filter((node) => self[node] !== 0));
  // Section ids: enum Section in src/model/tree/flame.ts.
  const sections = [
    [1, column(frameCount < 0x10000 ? Uint16Array.from(frame) : frame)],
    [2, column(depth)],
    [3, column(owners.map((node, i) => node - (owners[i - 1] ?? 0)))],
    [4, column(Float64Array.from(owners, (node) => self[node]))],
    [5, column(Uint32Array.from({ length: frameCount }, (_, i) => i + 1))],
    [
      9,
      Buffer.from(
        Uint8Array.from({ length: frameCount }, (_, i) => (i % 7 === 0 ? 1 : i % 11 === 0 ? 2 : 0)),
      ),
    ],
    [10, column(offsets)],
    [11, Buffer.concat(bytes)],
    [
      12,
      Buffer.from(
        JSON.stringify({
          sample_type: "cpu",
          unit: "nanoseconds",
          sample_types: [{ type: "cpu", unit: "nanoseconds" }],
        }),
      ),
    ],
  ];
  const header = Buffer.alloc(align8(64 + sections.length * 24));
  header.write("PFFLAME2", 0, "latin1");
  header.writeUInt32LE(nodeCount, 12);
  header.writeUInt32LE(frameCount, 16);
  header.writeUInt32LE(strings.length, 20);
  header.writeDoubleLE(total, 24);
  header.writeUInt32LE(sections.length, 40);
  const parts = [header];
  let offset = header.length;
  for (const [i, [id, data]] of sections.entries()) {
    header.writeUInt32LE(id, 64 + i * 24);
    header.writeBigUInt64LE(BigInt(offset), 64 + i * 24 + 8);
    header.writeBigUInt64LE(BigInt(data.length), 64 + i * 24 + 16);
    parts.push(data, Buffer.alloc(align8(data.length) - data.length));
    offset += align8(data.length);
  }
  return Buffer.concat(parts);
}
