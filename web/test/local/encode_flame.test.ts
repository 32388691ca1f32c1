import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeFolded } from "../../src/local/folded.ts";
import { encodeFlame, unitOf } from "../../src/local/encode_flame.ts";
import { findSides } from "../../src/local/sides.ts";
import { decodeFlame } from "../../src/model/tree/flame.ts";
import { formatValue } from "../../src/model/text/units.ts";

test("stacks with a common beginning share nodes, as on the server", () => {
  const profile = decodeFolded("main;run;a 10\nmain;run;b 20\nmain;rest 5\nmain;run;a 1\n");
  const flame = decodeFlame(
    encodeFlame([{ profile, type: 0, factor: 1 }], { group: "", labels: [], isNormalised: false }),
  );
  assert.deepEqual(
    [...flame.frame].map((frame) => flame.frames.name(frame)),
    ["root", "main", "run", "b", "a", "rest"],
  );
  assert.deepEqual([...flame.cum], [36, 36, 31, 20, 11, 5]);
});

test("files with different numbers of decimals are compared in the finer unit", () => {
  const compare = (before: string, after: string) => {
    const sides = findSides([decodeFolded(before), decodeFolded(after)], "");
    const flame = decodeFlame(encodeFlame(sides, { group: "", labels: [], isNormalised: false }));
    return [
      flame.baseTotal,
      flame.total,
      unitOf(sides),
      formatValue(flame.baseTotal, unitOf(sides)),
    ];
  };
  assert.deepEqual(compare("a;b 2.5\n", "a;b 1.125\na 12\n"), [2500, 13_125, "count/1000", "2.5"]);
  assert.deepEqual(compare("a;b 1.125\n", "a;b 12\n"), [1125, 12_000, "count/1000", "1.13"]);
  assert.deepEqual(compare("a;b 12\n", "a;b 0.000001\n"), [12_000_000, 1, "count/1000000", "12"]);
});
