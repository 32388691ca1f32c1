import assert from "node:assert/strict";
import { test } from "node:test";
import { describeFilters, stateOfPage } from "../../src/export/page.ts";
import { formatState, parseState } from "../../src/view_state.ts";

test("a saved page describes its labels and active rules, and its view has neither", () => {
  const state = parseState(
    "?v=table&lb=thread%3Dio&lb=region!%3Deu" +
      "&x=hide:%5Eruntime%5C.gc%24~!focus:main~only:go~recursion:&q=json&sv=2",
  );
  assert.deepEqual(describeFilters(state), [
    "thread is io",
    "region is not eu",
    "Hide runtime.gc",
    "Go: without the runtime and the standard library",
    "Collapse recursion of all functions",
  ]);
  assert.equal(formatState(stateOfPage(state)), "?v=table&q=json&sv=2");
});
