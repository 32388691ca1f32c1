import assert from "node:assert/strict";
import { test } from "node:test";
import { presetNameOf, tokenPresets } from "../../../src/model/account/token_presets.ts";

test("a token has the name of the preset with the same scopes, in any order", () => {
  for (const { name, scopes } of Object.values(tokenPresets))
    assert.equal(presetNameOf([...scopes].reverse()), name);
  assert.equal(presetNameOf([...tokenPresets.admin.scopes, "operator"]), "Operator");
  assert.equal(presetNameOf(["ingest"]), "Custom");
  assert.equal(presetNameOf(["read", "ingest", "debuginfo"]), "Custom");
});
