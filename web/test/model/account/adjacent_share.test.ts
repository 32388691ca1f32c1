import assert from "node:assert/strict";
import { test } from "node:test";
import { adjacentIn } from "../../../src/model/account/adjacent_share.ts";

test("finds the adjacent entry across pages without requesting a page twice", async () => {
  const pages = [["e", "d"], [], ["c"], ["b", "a"]];
  const loaded: number[] = [];
  const load = async (cursor: string) => {
    const at = Number(cursor);
    loaded.push(at);
    return { ids: pages[at], next: at + 1 < pages.length ? String(at + 1) : null };
  };
  const beside = async (id: string) => [
    await adjacentIn(load, id, "older"),
    await adjacentIn(load, id, "newer"),
  ];
  assert.deepEqual(await beside("e"), ["d", ""]);
  assert.deepEqual(await beside("d"), ["c", "e"]);
  assert.deepEqual(await beside("b"), ["a", "c"]);
  assert.deepEqual(await beside("a"), ["", "b"]);
  assert.deepEqual(await beside("z"), [null, null]);
  assert.deepEqual(await beside(""), ["e", "e"]);
  loaded.length = 0;
  await adjacentIn(load, "e", "older");
  assert.deepEqual(loaded, [0]);
});
