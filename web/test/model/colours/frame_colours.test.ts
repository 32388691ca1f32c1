import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { packageOf } from "../../../src/model/colours/frame_colours.ts";

test("packages of functions equal those of the server's pictures", () => {
  const table = readFileSync(
    new URL("../../../../tests/frame_packages.txt", import.meta.url),
    "utf8",
  );
  const rows = table
    .split("\n")
    .filter((line) => line && !line.startsWith("#"))
    .map((line) => line.split("\t"));
  assert.ok(rows.length > 50);
  for (const [name, mapping, file, wanted] of rows)
    assert.equal(packageOf(name, mapping, file), wanted, name);
});
