import assert from "node:assert/strict";
import { test } from "node:test";
import { presetNameOf, tokenPresets } from "../src/model/token_presets.ts";

test("a token carries the name of the preset whose scopes it has, in any order, and of no other", () => {
  for (const { name, scopes } of Object.values(tokenPresets))
    assert.equal(presetNameOf([...scopes].reverse()), name);
  assert.equal(presetNameOf([...tokenPresets.admin.scopes, "operator"]), "Operator");
  assert.equal(presetNameOf(["ingest"]), "Custom");
  assert.equal(presetNameOf(["read", "ingest", "debuginfo"]), "Custom");
});
