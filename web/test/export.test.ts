import assert from "node:assert/strict";
import { test } from "node:test";
import { filterWords, ownState } from "../src/export/page.ts";
import { fileNameOf } from "../src/export/make.ts";
import { formatState, parseState } from "../src/view_state.ts";

test("a saved page states its labels and rules, and its own state contains neither", () => {
  const state = parseState(
    "?v=table&lb=thread%3Dio&lb=region!%3Deu" +
      "&x=hide:%5Eruntime%5C.gc%24~!focus:main~only:go~recursion:&q=json&sv=2",
  );
  assert.deepEqual(filterWords(state), [
    "thread is io",
    "region is not eu",
    "Hide runtime.gc",
    "Go: without the runtime and the standard library",
    "Collapse recursion of all functions",
  ]);
  assert.equal(formatState(ownState(state)), "?v=table&q=json&sv=2");
});

test("an exported file has the profile's name without the upload's extension", () => {
  const names = {
    "alloc objects.pb.gz": "alloc-objects",
    "neg.folded": "neg",
    "trace.cpuprofile.json.zst": "trace.cpuprofile",
    "v1.2": "v1.2",
    ".pb.gz": "profile",
    "ci/…/cpu": "ci-cpu",
  };
  for (const [title, name] of Object.entries(names)) assert.equal(fileNameOf(title), name, title);
});
