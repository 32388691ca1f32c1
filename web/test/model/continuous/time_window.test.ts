import assert from "node:assert/strict";
import { test } from "node:test";
import {
  formatLength,
  resolveTime,
  resolveWindow,
  toLocal,
  windowOfLocal,
} from "../../../src/model/continuous/time_window.ts";

test("times are relative or of the calendar; other texts are refused", () => {
  const now = 1_767_323_045_000;
  assert.equal(resolveTime("now-90m", now), now - 5_400_000);
  assert.equal(resolveTime("1767323045000", now), now);
  assert.equal(resolveTime("yesterday", now), null);
  assert.deepEqual(resolveWindow("now", "now-1h", now), {
    from: now - 7_200_000,
    to: now - 3_600_000,
  });
  assert.equal(formatLength(5_400_000), "1 h 30 min");
  assert.equal(formatLength(7 * 86_400_000), "7 d");
  assert.equal(formatLength(3_605_000), "1 h");
});

test("a window that is not changed stays the same, also when daylight saving ends", () => {
  const zone = process.env.TZ;
  process.env.TZ = "America/New_York";
  try {
    const at = (time: string) => new Date(`2026-11-01T${time}Z`).getTime();
    const second = { from: at("06:10:00.250"), to: at("06:50:00.750") };
    assert.equal(toLocal(second.from), "2026-11-01T01:10:00");
    assert.deepEqual(windowOfLocal(toLocal(second.from), toLocal(second.to), second), second);
    const both = { from: at("05:50:00"), to: at("06:10:00") };
    assert.deepEqual(windowOfLocal(toLocal(both.from), toLocal(both.to), both), both);
    const typed = { from: at("04:00:00"), to: at("05:50:00") };
    const across = windowOfLocal("2026-11-01T01:50:00", "2026-11-01T01:10:00", typed);
    assert.deepEqual(across, both);
    assert.equal(windowOfLocal("2026-11-01T03:00:00", "2026-11-01T02:00:00", typed), null);
  } finally {
    if (zone === undefined) delete process.env.TZ;
    else process.env.TZ = zone;
  }
});
