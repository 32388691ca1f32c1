import assert from "node:assert/strict";
import { test } from "node:test";
import { sortFunctions } from "../../../src/model/functions/functions.ts";
import {
  changeOf,
  formatAgo,
  formatBytes,
  formatChange,
  formatCount,
  formatDate,
  formatExact,
  formatPercent,
  formatSigned,
  formatValue,
} from "../../../src/model/text/units.ts";

test("values are formatted in a suitable unit", () => {
  assert.equal(formatValue(0, "nanoseconds"), "0 ns");
  assert.equal(formatValue(1_250_000_000, "nanoseconds"), "1.25 s");
  assert.equal(formatValue(999_999, "nanoseconds"), "1.00 ms");
  assert.equal(formatValue(1500, "ms"), "1.50 s");
  assert.equal(formatValue(90, "seconds"), "90 s");
  assert.equal(formatValue(1800, "seconds"), "30 min");
  assert.equal(formatValue(71 * 3600, "seconds"), "71 h");
  assert.equal(formatValue(400 * 86400, "seconds"), "400 d");
  assert.equal(formatBytes(1e18), "888 PiB");
  assert.equal(formatBytes(2 ** 62), "4 EiB");
  assert.equal(formatValue(3, "hours"), "3 hours");
  assert.equal(formatBytes(512), "512 B");
  assert.equal(formatBytes(1_572_864), "1.50 MiB");
  assert.equal(formatValue(12345678, "count"), "12,345,678");
  assert.equal(formatValue(3, "goroutines"), "3 goroutines");
  assert.equal(formatValue(35, "count/10"), "3.5");
  assert.equal(formatValue(1_001_000_000, "count/1000000"), "1,001");
  assert.equal(formatValue(-12_345, "count/100000"), "−0.12345");
  assert.equal(formatValue(-2048, "bytes"), "−2 KiB");
  assert.equal(formatValue(-0.001, "count"), "0");
  assert.equal(formatExact(123_456_785, "count/10"), "12,345,678.5");
  assert.equal(formatExact(35, "count/11"), "35 count/11");
  assert.equal(formatValue(5, "constructor"), "5 constructor");
  assert.equal(formatSigned(-2048, "bytes"), "−2 KiB");
});

test("percentages and changes distinguish zero, small and whole; times are relative", () => {
  assert.equal(formatPercent(0, 10), "0%");
  assert.equal(formatPercent(10, 10), "100%");
  assert.equal(formatPercent(1, 1e9), "<0.01%");
  assert.equal(formatPercent(5, 0), "–");
  assert.equal(formatChange(10, 10), "±0%");
  assert.equal(formatChange(0, 10), "new");
  assert.equal(formatChange(10, 0), "gone");
  assert.equal(formatChange(10, 12), "+20%");
  assert.equal(formatChange(200, 197), "−1.5%");
  assert.equal(formatAgo(1_000, 3_601_000 + 1_000), "1 hour ago");
  const hour = 3_600_000;
  const ago = {
    "last year": 400 * 24,
    "2 months ago": 61 * 24,
    yesterday: 35,
    "2 days ago": 47,
    "23 hours ago": 23.4,
    "2 hours ago": 1.6,
    "1 hour ago": 0.995,
    "just now": 0.001,
    "1 minute ago": 0.02,
    "last week": 24 * 8,
    "next month": -24 * 40,
    "in a moment": -0.001,
    "in 1 minute": -0.02,
    "in 1 hour": -0.9995,
    "in 30 minutes": -0.499,
    "in 31 minutes": -0.512,
    tomorrow: -23.99,
    "next week": -24 * 6.999,
    "in 3 weeks": -24 * 22,
  };
  for (const [text, hours] of Object.entries(ago)) assert.equal(formatAgo(0, hours * hour), text);
});

test("rounding errors of a scaled side do not count as a change; integers are exact", () => {
  const after = (0.1 + 0.2) * 1e9; // 300000000.00000006
  assert.notEqual(after, 3e8);
  for (const [a, b] of [
    [3e8, after],
    [after, 3e8],
    [-3e8, -after],
  ]) {
    assert.equal(formatChange(a, b), "±0%");
    assert.equal(formatSigned(changeOf(a, b), "nanoseconds"), "0");
  }
  assert.equal(changeOf(2 ** 53 - 1, 2 ** 53 - 2), -1);
  assert.equal(changeOf(3e8, 3e8 + 0.5), 0.5);
  const row = (name: string, baseCum: number, cum: number) => ({
    name,
    file: "",
    binary: "",
    frame: 0,
    flat: 0,
    baseFlat: 0,
    cum,
    baseCum,
  });
  const rows = [row("dust", 1e9, 1e9 + 0.0000002), row("even", 2e9, 2e9), row("grown", 10, 10.5)];
  assert.deepEqual(
    sortFunctions(rows, { column: "change", descending: true }).map(({ name }) => name),
    ["grown", "even", "dust"],
  );
});

test("percentages that negative values make meaningless are not shown", () => {
  assert.equal(formatPercent(-5, 3), "–");
  assert.equal(formatPercent(5, 3), "–", "a part that exceeds the total");
  assert.equal(formatPercent(-1, 1e9), "–");
  assert.equal(formatPercent(-5, -10), "50.0%", "if all values are negative, they have shares");
  assert.equal(formatChange(-5, 50), "–");
  assert.equal(formatChange(5, -2), "–");
  assert.equal(formatChange(-5, -5), "±0%");
  assert.equal(formatChange(-5, 0), "gone");
});

test("numbers and dates equal the browser's own formats", () => {
  const languages = "en-US";
  for (const value of [
    0, 1, -1, 12, 999, 1000, -1000, 123456, 1234567.25, 0.5, 0.125, -0.75, 99.5, 9007199254740991,
  ]) {
    assert.equal(
      formatExact(value, ""),
      value.toLocaleString(languages, { maximumFractionDigits: 3 }).replace("-", "−"),
    );
    if (Number.isInteger(value))
      assert.equal(formatCount(value), value.toLocaleString(languages).replace("-", "−"));
  }
  for (const time of ["2026-11-22T09:05:00Z", "1999-01-31T23:59:00Z", "2024-02-29T12:00:00Z"])
    assert.equal(
      formatDate(time),
      new Date(time).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" }),
    );
});
