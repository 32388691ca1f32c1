import assert from "node:assert/strict";
import { test } from "node:test";
import { loadGroups, type LoadedGroups } from "../../src/export/load_groups.ts";

const pause = () => new Promise((resolve) => setTimeout(resolve, 5));

test("groups load a few at a time; only failed ones are retried", async () => {
  const groups = ["a", "b", "c", "d", "e", "f"];
  const into: LoadedGroups<string> = { trees: new Map(), failed: new Map() };
  const { signal } = new AbortController();
  let [running, most] = [0, 0];
  const loaded: string[] = [];
  const steps: number[] = [];
  let isBroken = true;
  const make = async (group: string) => {
    loaded.push(group);
    most = Math.max(most, ++running);
    await pause();
    running--;
    if (isBroken && (group === "b" || group === "e")) throw new Error(`no ${group}`);
    return group.toUpperCase();
  };
  await loadGroups(groups, make, into, signal, (done) => steps.push(done));
  assert.equal(most, 3);
  assert.deepEqual(steps, [0, 1, 2, 3, 4, 5, 6]);
  assert.deepEqual([...into.trees.keys()].sort(), ["a", "c", "d", "f"]);
  assert.deepEqual([...into.failed].sort(), [
    ["b", "no b"],
    ["e", "no e"],
  ]);
  isBroken = false;
  loaded.length = steps.length = 0;
  await loadGroups(groups, make, into, signal, (done) => steps.push(done));
  assert.deepEqual(loaded, ["b", "e"]);
  assert.deepEqual(steps, [4, 5, 6]);
  assert.equal(into.failed.size, 0);
  assert.equal(into.trees.get("e"), "E");
});

test("cancelling rejects and loads no further groups", async () => {
  const abort = new AbortController();
  const loaded: string[] = [];
  const make = async (group: string) => {
    loaded.push(group);
    if (loaded.length === 3) abort.abort();
    await pause();
    return group;
  };
  await assert.rejects(
    loadGroups(
      ["a", "b", "c", "d", "e"],
      make,
      { trees: new Map(), failed: new Map() },
      abort.signal,
      () => {},
    ),
    { name: "AbortError" },
  );
  await pause();
  assert.equal(loaded.length, 3);
});
