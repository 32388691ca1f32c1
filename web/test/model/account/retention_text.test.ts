import assert from "node:assert/strict";
import { test } from "node:test";
import {
  formatPeriod,
  describePeriod,
  describeRetention,
} from "../../../src/model/account/retention_text.ts";

test("periods are formatted in the largest unit that divides them", () => {
  const cases: [number, string, string][] = [
    [0, "forever", "forever"],
    [1, "1s", "1 second"],
    [90, "90s", "90 seconds"],
    [120, "2m", "2 minutes"],
    [3600, "1h", "1 hour"],
    [36 * 3600, "36h", "36 hours"],
    [90 * 86400, "90d", "90 days"],
    [365 * 86400, "1y", "1 year"],
    [400 * 86400, "400d", "400 days"],
    [730 * 86400 + 1, "63072001s", "63,072,001 seconds"],
  ];
  for (const [seconds, text, words] of cases)
    assert.deepEqual([formatPeriod(seconds), describePeriod(seconds)], [text, words]);
  assert.equal(describeRetention(0, null), "kept forever");
  assert.equal(describeRetention(3600, 86400), "kept 1 hour, hourly totals 1 day");
});
