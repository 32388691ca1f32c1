// Writes application/vnd.perfolio.flame from a nested tree, for tests and for the page's mock
// server. It shares no code with the decoder.
//
// A tree is {name, self, base?, file?, line?, mapping?, address?, flags?, children?}; base makes it
// a diff.

const align8 = (size) => (size + 7) & ~7;

function flatten(root, isDiff) {
  const weigh = new Map();
  const order = [];
  const stack = [[root, 0]];
  const all = [root];
  for (let i = 0; i < all.length; i++) for (const child of all[i].children ?? []) all.push(child);
  for (let i = all.length - 1; i >= 0; i--) {
    const sums = [all[i].self ?? 0, all[i].base ?? 0];
    for (const child of all[i].children ?? []) {
      const [b, a] = weigh.get(child);
      sums[0] += b;
      sums[1] += a;
    }
    weigh.set(all[i], sums);
  }
  const size = (node) => Math.max(...weigh.get(node).slice(0, isDiff ? 2 : 1));
  while (stack.length) {
    const [node, parent] = stack.pop();
    const at = order.length;
    order.push({ node, parent });
    const children = [...(node.children ?? [])].sort((x, y) => size(x) - size(y));
    for (const child of children) stack.push([child, at]);
  }
  return { order, totals: weigh.get(root) };
}

export function encodeFlame(root, { isDiff = false, isCut = false, metadata = {} } = {}) {
  const { order, totals } = flatten(root, isDiff);
  const strings = [""];
  const stringIds = new Map([["", 0]]);
  const intern = (text) => {
    let id = stringIds.get(text);
    if (id === undefined) stringIds.set(text, (id = strings.push(text) - 1));
    return id;
  };
  const frames = [];
  const frameIds = new Map();
  const frameOf = (node) => {
    const key = JSON.stringify([
      node.name,
      node.file,
      node.line,
      node.mapping,
      node.flags,
      node.address,
    ]);
    let id = frameIds.get(key);
    if (id === undefined) frameIds.set(key, (id = frames.push(node) - 1));
    return id;
  };
  const u32 = (values) => Buffer.from(Uint32Array.from(values).buffer);
  const f64 = (values) => Buffer.from(Float64Array.from(values).buffer);
  const numbers = (values) =>
    values.some((value) => value > 0xffff)
      ? u32(values)
      : Buffer.from(Uint16Array.from(values).buffer);
  const nodeFrames = numbers(order.map(({ node }) => frameOf(node)));
  const depths = [];
  for (const { parent } of order) depths.push(depths.length === 0 ? 0 : depths[parent] + 1);
  // Section ids, here and below: enum Section in src/model/tree/flame.ts.
  const own = (gapId, id, values) => {
    const owners = [...values.keys()].filter((i) => values[i] !== 0);
    return [
      [gapId, u32(owners.map((i, at) => i - (owners[at - 1] ?? 0)))],
      [id, f64(owners.map((i) => values[i]))],
    ];
  };
  const sections = [
    [1, nodeFrames],
    [2, numbers(depths)],
    ...own(
      3,
      4,
      order.map(({ node }) => node.self ?? 0),
    ),
    ...(isDiff
      ? own(
          15,
          16,
          order.map(({ node }) => node.base ?? 0),
        )
      : []),
    [5, u32(frames.map((frame) => intern(frame.name)))],
    [6, u32(frames.map((frame) => intern(frame.file ?? "")))],
    [7, u32(frames.map((frame) => frame.line ?? 0))],
    [8, u32(frames.map((frame) => intern(frame.mapping ?? "")))],
    [9, Buffer.from(frames.map((frame) => frame.flags ?? 0))],
  ];
  const bytes = strings.map((text) => Buffer.from(text));
  let end = 0;
  sections.push([10, u32([0, ...bytes.map((one) => (end += one.length))])]);
  sections.push([11, Buffer.concat(bytes)]);
  sections.push([12, Buffer.from(JSON.stringify(metadata))]);

  if (frames.some((frame) => frame.address))
    sections.push([
      13,
      Buffer.from(BigUint64Array.from(frames, (frame) => BigInt(frame.address ?? 0)).buffer),
    ]);

  const header = Buffer.alloc(64 + sections.length * 24);
  header.write("PFFLAME2", 0, "latin1");
  header.writeUInt32LE((isDiff ? 1 : 0) | (isCut ? 2 : 0), 8);
  header.writeUInt32LE(order.length, 12);
  header.writeUInt32LE(frames.length, 16);
  header.writeUInt32LE(strings.length, 20);
  header.writeDoubleLE(totals[0], 24);
  header.writeDoubleLE(isDiff ? totals[1] : 0, 32);
  header.writeUInt32LE(sections.length, 40);
  const parts = [header];
  let offset = align8(header.length);
  if (offset > header.length) parts.push(Buffer.alloc(offset - header.length));
  for (const [i, [id, data]] of sections.entries()) {
    header.writeUInt32LE(id, 64 + i * 24);
    header.writeBigUInt64LE(BigInt(offset), 64 + i * 24 + 8);
    header.writeBigUInt64LE(BigInt(data.length), 64 + i * 24 + 16);
    parts.push(data, Buffer.alloc(align8(data.length) - data.length));
    offset += align8(data.length);
  }
  return Buffer.concat(parts);
}
