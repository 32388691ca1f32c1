import assert from "node:assert/strict";
import { test } from "node:test";
import { fileNameOf } from "../../src/export/make.ts";

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
