import assert from "node:assert/strict";
import { test } from "node:test";
import { shownName, visible } from "../../../src/model/text/visible_text_model.ts";

test("a frame's name always has visible characters", () => {
  assert.equal(shownName("main.run"), "main.run");
  assert.equal(shownName("   "), "␣␣␣");
  assert.equal(shownName(" \u00a0\u200b"), "␣\\u00A0\\u200B");
  assert.equal(shownName("a\tb\x01\x9f"), "a\\u0009b\\u0001\\u009F");
  assert.equal(shownName("operator new [] "), "operator new [] ");
  assert.equal(visible(" \r\n\t "), " \r\n\t ", "other texts keep line breaks and spaces");
  assert.equal(
    visible("\x1b[31mred\0\x7f\x85"),
    "\\u001B[31mred\\u0000\\u007F\\u0085",
    "invisible characters are shown as escapes",
  );
});
