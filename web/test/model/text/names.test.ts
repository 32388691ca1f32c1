import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { shorterNames } from "../../../src/model/text/names.ts";

test("the forms of a name equal the server's, and no form is empty", () => {
  const table = readFileSync(new URL("../../../../tests/short_names.txt", import.meta.url), "utf8");
  const rows = table
    .split("\n")
    .filter((line) => line && !line.startsWith("#"))
    .map((line) => line.split("\t"));
  assert.ok(rows.length > 80);
  for (const row of rows) assert.deepEqual(shorterNames(row[0]), row);
  for (const name of [
    "",
    "a",
    "::",
    "<",
    "operator<",
    "a::",
    "x/",
    "/",
    "(anonymous namespace)::f",
    ".",
    "..",
    "λ.μ",
  ])
    for (const [i, form] of shorterNames(name).entries())
      assert.ok(form !== "" || i === 0, `${name} → ${form}`);
});

test("a very long name has no shorter forms, because computing them takes quadratic time", () => {
  for (const part of ["x", "(", "a::", "f(", " [clone ", "<"]) {
    const name = part.repeat(400_000 / part.length);
    assert.deepEqual(shorterNames(name), [name]);
  }
  assert.ok(shorterNames(`acme::f<${"int, ".repeat(400)}int>::run()`).length > 2);
});
