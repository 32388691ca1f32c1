import assert from "node:assert/strict";
import { test } from "node:test";
import { nodeAt } from "../../../src/model/tree/row_layout.ts";
import { wholeOf } from "../../../src/model/tree/window.ts";
import { listSpace, neighbour, rowHeight, Rows, sameNode } from "../../../src/views/icicle/rows.ts";
import { decode, small } from "../../trees.ts";

test("every pixel belongs to the row whose box covers it, in both orientations", () => {
  for (const isFlipped of [false, true])
    for (const [count, view] of [
      [3, 500],
      [40, 500],
      [5001, 333],
    ]) {
      const rows = new Rows(count, view, isFlipped);
      assert.equal(rows.spacePx, Math.max(view, count * rowHeight));
      for (const row of [0, 1, count >> 1, count - 1])
        for (const inside of [0.5, rowHeight / 2, rowHeight - 0.5])
          assert.equal(rows.rowAt(rows.topOf(row) + inside), row);
      assert.equal(rows.topOf(0), isFlipped ? rows.spacePx - rowHeight : 0);
      assert.ok(rows.rowAt(rows.topOf(count - 1) + (isFlipped ? -1 : rowHeight + 1)) >= count);
    }
});

test("a hidden root has no row and takes no space", () => {
  for (const isFlipped of [false, true]) {
    const rows = new Rows(41, 500, isFlipped, 1);
    assert.equal(rows.spacePx, 40 * rowHeight);
    assert.equal(rows.topOf(1), isFlipped ? rows.spacePx - rowHeight : 0);
    for (const row of [1, 2, 40]) assert.equal(rows.rowAt(rows.topOf(row) + 1), row);
    assert.equal(rows.seen(rows.rootScroll)[0], 1);
    assert.equal(rows.seen(isFlipped ? 0 : rows.spacePx - 500)[1], 40);
  }
});

test("the visible rows are those that cover the view, initially starting at the root", () => {
  for (const isFlipped of [false, true]) {
    const rows = new Rows(100, 220, isFlipped);
    assert.deepEqual(rows.seen(rows.rootScroll), isFlipped ? [0, 9] : [0, 10]);
    const [first, last] = rows.seen(1001);
    for (let row = 0; row < 100; row++) {
      const isSeen = rows.topOf(row) < 1001 + 220 && rows.topOf(row) + rowHeight > 1001;
      if (isSeen) assert.ok(row >= first && row <= last, `row ${row}`);
    }
    assert.ok(last - first <= 11);
  }
});

test("scrolls to a row only as far as needed to show it", () => {
  for (const isFlipped of [false, true]) {
    const rows = new Rows(100, 220, isFlipped);
    for (const row of [0, 7, 50, 99])
      for (const from of [0, 400, rows.spacePx - 220]) {
        const scroll = rows.scrollFor(row, from);
        assert.ok(scroll >= 0 && scroll <= rows.spacePx - 220);
        assert.ok(
          rows.topOf(row) >= scroll && rows.topOf(row) + rowHeight <= scroll + 220,
          `row ${row} from ${from}`,
        );
        assert.equal(rows.scrollFor(row, scroll), scroll);
      }
  }
});

test("arrow keys move in the drawn direction", () => {
  const flame = decode(small);
  const [root, a, c, d, b] = [0, 1, 2, 3, 4];
  assert.equal(neighbour(flame, a, "ArrowDown"), c);
  assert.equal(neighbour(flame, c, "ArrowUp"), a);
  assert.equal(neighbour(flame, a, "ArrowUp", true), c);
  assert.equal(neighbour(flame, c, "ArrowDown", true), a);
  for (const isFlipped of [false, true]) {
    assert.equal(neighbour(flame, a, "ArrowRight", isFlipped), b);
    assert.equal(neighbour(flame, d, "ArrowLeft", isFlipped), c);
    assert.equal(neighbour(flame, b, "ArrowRight", isFlipped), b);
  }
  assert.equal(neighbour(flame, root, "ArrowUp"), root);
  assert.equal(neighbour(flame, root, "ArrowDown", true), root);
  assert.equal(neighbour(flame, b, "ArrowDown"), b);
});

test("a frame's self value is the free part at its right end", () => {
  const flame = decode(small);
  const whole = wholeOf(flame, 0);
  // Ten values on 100 pixels: a from 0 to 60, with c to 30 and d to 40; its self value from 40 to
  // 60.
  const row = (x: number) => nodeAt(flame, 2, whole, 100, x);
  assert.deepEqual(
    [row(0), row(29), row(31), row(39), row(41), row(59), row(99)],
    [2, 2, 3, 3, -1, -1, -1],
  );
  assert.equal(nodeAt(flame, 1, whole, 100, 59), 1);
});

test("a node is found in another tree by the names of its path, or its nearest caller is", () => {
  const tree = (names: string[], self = 1) => ({
    name: names[0],
    self,
    children:
      names.length > 1
        ? [{ name: names[1], self, children: names.slice(2).map((name) => ({ name, self })) }]
        : [],
  });
  const from = decode({
    name: "root",
    children: [{ name: "other", self: 50 }, tree(["main", "run", "leaf"])],
  });
  const nameOf = (flame: typeof from, node: number) => flame.frames.name(flame.frame[node]);
  const leaf = from.nodeCount - 1;
  assert.equal(nameOf(from, leaf), "leaf");
  const to = (children: object[]) => decode({ name: "root", children } as never);
  const found = (children: object[]) => nameOf(to(children), sameNode(from, leaf, to(children)));
  assert.equal(found([tree(["main", "run", "leaf"], 90), { name: "other", self: 1 }]), "leaf");
  assert.equal(found([tree(["main", "run"])]), "run");
  assert.equal(found([tree(["main", "leaf"])]), "leaf", "hidden frames are skipped");
  assert.equal(found([{ name: "gone", self: 1 }]), "root");
  assert.equal(sameNode(from, leaf, from), leaf);
});

test("a list higher than an element can be scrolls from its first to its last row", () => {
  assert.deepEqual(listSpace(3000, 500, 120), { spacePx: 3000, top: 120, shift: 0 });
  const whole = 758_137 * 30;
  const at = (scrollTop: number) => listSpace(whole, 500, scrollTop);
  const { spacePx } = at(0);
  assert.ok(spacePx < 17_000_000);
  assert.equal(at(0).top, 0);
  assert.equal(at(spacePx - 500).top, whole - 500);
  for (const scrollTop of [1, 777_777, 15_000_000]) {
    const { top, shift } = at(scrollTop);
    assert.equal(top + shift, scrollTop, "the part at the view's upper edge is drawn there");
  }
});
