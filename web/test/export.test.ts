import assert from "node:assert/strict";
import { test } from "node:test";
import { describeFilters, stateOfPage } from "../src/export/page.ts";
import { fileNameOf } from "../src/export/make.ts";
import { formatState, parseState } from "../src/view_state.ts";

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

test("the name of an exported file is the title without the extensions of a profile", () => {
  assert.equal(fileNameOf("neg.folded"), "neg");
  assert.equal(fileNameOf("trace.cpuprofile.json.zst"), "trace.cpuprofile");
  assert.equal(fileNameOf("v1.2"), "v1.2");
});

test("characters that a file name may not contain become '-'", () => {
  assert.equal(fileNameOf("alloc objects.pb.gz"), "alloc-objects");
  assert.equal(fileNameOf("ci/…/cpu"), "ci-cpu");
});

test("a title of which nothing is left gives the file name 'profile'", () => {
  assert.equal(fileNameOf(".pb.gz"), "profile");
});
