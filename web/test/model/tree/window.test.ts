import assert from "node:assert/strict";
import { test } from "node:test";
import {
  between,
  isSameWindow,
  minShare,
  panned,
  partOf,
  wholeOf,
  windowOf,
  zoomed,
  type Window,
} from "../../../src/model/tree/window.ts";
import { formatState, parseState, defaultState } from "../../../src/view_state.ts";
import { bigTree, decode, small } from "../../trees.ts";

let seed = 5;
const random = () => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) / 2 ** 32;
const outer: Window = { from: 0, to: 1000 };

test("zooming keeps the value under the pointer at its position", () => {
  for (let i = 0; i < 300; i++) {
    const from = 100 + random() * 300;
    const window = { from, to: from + 1 + random() * 400 };
    const share = random();
    const next = zoomed(window, outer, 0.001, share, 0.3 + random() * 0.8);
    const under = (one: Window) => one.from + share * (one.to - one.from);
    assert.ok(Math.abs(under(next) - under(window)) < 1e-6);
  }
});

test("a window stays within the root and is never narrower than the minimum", () => {
  let window = outer;
  for (let i = 0; i < 5000; i++) {
    const kind = random();
    if (kind < 0.4) window = zoomed(window, outer, 0.01, random(), 0.2 + random() * 0.9);
    else if (kind < 0.6) window = zoomed(window, outer, 0.01, random(), 1 + random() * 20);
    else if (kind < 0.9) window = panned(window, outer, (random() - 0.5) * 3);
    else window = between(random() * 1400 - 200, random() * 1400 - 200, outer, 0.01);
    const width = window.to - window.from;
    assert.ok(
      window.from >= 0 && window.to <= 1000 + 1e-9 && width >= 0.01 - 1e-9,
      JSON.stringify(window),
    );
  }
  assert.deepEqual(zoomed({ from: 3, to: 4 }, outer, 0.01, 0.5, 1e9), outer);
});

test("panning keeps the width and stops at the edge", () => {
  assert.deepEqual(panned({ from: 100, to: 200 }, outer, 0.5), { from: 150, to: 250 });
  assert.deepEqual(panned({ from: 900, to: 950 }, outer, 5), { from: 950, to: 1000 });
  assert.deepEqual(panned({ from: 10, to: 60 }, outer, -5), { from: 0, to: 50 });
  assert.deepEqual(panned(outer, outer, 0.3), outer);
});

test("a window is a part of the zoomed frame or of the nearest caller that contains it", () => {
  const flame = decode(small); // root 0-10: a 0-6 (c 0-3, d 3-4), b 6-10
  const [root, a, c, b] = [0, 1, 2, 4];
  assert.deepEqual(partOf(flame, c, { from: 1, to: 2 }), {
    node: c,
    part: { from: 0.33333, to: 0.66667 },
  });
  assert.deepEqual(partOf(flame, c, { from: 2, to: 5 }), {
    node: a,
    part: { from: 0.33333, to: 0.83333 },
  });
  assert.deepEqual(partOf(flame, c, { from: 0, to: 6 }), { node: a, part: null });
  assert.deepEqual(partOf(flame, b, { from: 5, to: 9 }), {
    node: root,
    part: { from: 0.5, to: 0.9 },
  });
  assert.deepEqual(partOf(flame, b, { from: 0, to: 10 }), { node: root, part: null });
  const chain = decode({
    name: "root",
    children: [{ name: "main", children: [{ name: "run", self: 5 }] }],
  });
  assert.deepEqual(
    partOf(chain, 2, { from: 0, to: 5 }),
    { node: root, part: null },
    "the whole width is identified by the root, not by a frame of equal width",
  );
  assert.deepEqual(windowOf(flame, a, { from: 0.5, to: 1 }), { from: 3, to: 6 });
});

test("a window is restored from its part of a frame to less than a pixel", () => {
  const flame = decode(bigTree(3000, 20));
  for (let i = 0; i < 2000; i++) {
    const zoom = Math.floor(random() * flame.nodeCount);
    const { from, to } = wholeOf(flame, zoom);
    if (flame.width[zoom] === 0) continue;
    const width = (to - from) * minShare ** random();
    const left = from + random() * (to - from - width);
    if (width > flame.width[0] * 0.999) continue;
    const { node, part } = partOf(flame, zoom, { from: left, to: left + width });
    const back = windowOf(flame, node, part);
    assert.equal(node, zoom);
    assert.ok(
      Math.abs(back.from - left) <= width / 5000 &&
        Math.abs(back.to - left - width) <= width / 5000,
    );
    const read = parseState(formatState({ ...defaultState, window: part })).window;
    assert.ok(
      isSameWindow(read, part),
      `${JSON.stringify(part)} came back as ${JSON.stringify(read)}`,
    );
  }
});
