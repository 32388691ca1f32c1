import assert from "node:assert/strict";
import { test } from "node:test";
import { FrameFlag } from "../../../src/model/tree/flame.ts";
import { LabelFitter } from "../../../src/views/icicle/label_fitter.ts";

test("label values are truncated, not shortened like names of functions", () => {
  const fitter = new LabelFitter({
    measureText: (text: string) => ({ width: text.length }),
  } as CanvasRenderingContext2D);
  assert.equal(fitter.fit("/api/v1/thing", 8), "thing");
  assert.equal(fitter.fit("/api/v1/thing", 8, FrameFlag.Label), "/api/v1…");
});
