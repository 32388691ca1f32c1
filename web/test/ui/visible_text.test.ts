import assert from "node:assert/strict";
import { test } from "node:test";
import { h, Fragment } from "preact";
import { visible } from "../../src/model/text/visible_text_model.ts";
import "../../src/ui/visible_text.ts";

test("no text on a page changes the direction of the following text", () => {
  assert.equal(visible("a\u202Eb\u2066c\u2069"), "a\\u202Eb\\u2066c\\u2069");
  for (const plain of [
    "main",
    "\u05DE\u05D4 \u05E9\u05DC\u05D5\u05DD\u200F",
    "\u{1F525} e\u0301",
    "",
  ])
    assert.equal(visible(plain), plain);
  const Own = ({ name }: { name: string }) => h("b", { title: name, "aria-label": name }, name);
  const name = "x\u202Ey";
  assert.equal(h(Own, { name }).props.name, name, "components receive unchanged properties");
  assert.deepEqual(Own({ name }).props, {
    title: "x\\u202Ey",
    "aria-label": "x\\u202Ey",
    children: "x\\u202Ey",
  });
  const several = [name, 5, [name, null]];
  for (const type of ["p", Fragment] as const)
    assert.deepEqual((h(type as "p", null, ...several).props as { children: unknown }).children, [
      "x\\u202Ey",
      5,
      ["x\\u202Ey", null],
    ]);
  assert.equal((several[2] as unknown[])[0], name, "the caller's array is unchanged");
});
