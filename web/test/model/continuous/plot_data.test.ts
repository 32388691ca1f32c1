import assert from "node:assert/strict";
import { test } from "node:test";
import { contrast } from "../../../src/model/colours/colour.ts";
import {
  digestOf,
  formatMetric,
  lineLook,
  otherLook,
  plotData,
  sameSeries,
  seriesName,
  valueAt,
} from "../../../src/model/continuous/plot_data.ts";

test("lines continue across times of other series and are interrupted by missing data", () => {
  const one = [
    [0, 1],
    [10, 2],
    [20, 3],
    [90, 4],
  ] as const;
  const other = [
    [10, 5],
    [20, 6],
  ] as const;
  const { times, values } = plotData([one, other], 10);
  assert.deepEqual(times, [0, 10, 20, 30, 90]);
  assert.deepEqual(values, [
    [1, 2, 3, null, 4],
    [undefined, 5, 6, undefined, undefined],
  ]);
  assert.deepEqual(
    [valueAt(one, 19, 10), valueAt(one, 30, 10), valueAt(one, -1, 10), valueAt(one, 99, 10)],
    [2, null, null, 4],
  );
});

test("every line is visible on its background", () => {
  for (const ground of ["#faf8f4", "#15130f", "#ffffff", "#000000"]) {
    assert.ok(contrast(otherLook(ground).stroke, ground) >= 3, `other on ${ground}`);
    for (let i = 0; i < 8; i++)
      assert.ok(contrast(lineLook(i, ground).stroke, ground) >= 3, `${i} on ${ground}`);
  }
  assert.notDeepEqual(lineLook(0, "#ffffff"), lineLook(8, "#ffffff"));
});

test("a series has the last, mean and highest value; the mean is the server's", () => {
  const points = [
    [0, 4],
    [10, 2],
    [20, 6],
    [30, 8],
  ] as const;
  assert.deepEqual(digestOf({ points, average: 3.5 }), { last: 8, mean: 3.5, highest: 8 });
  assert.equal(digestOf({ points: [] }), null);
});

test("a series is found by its labels in the response for another window", () => {
  type One = { labels: Record<string, string>; other_count?: number };
  const a: One = { labels: { pod: "a", zone: "x" } };
  const other: One = { labels: {}, other_count: 3 };
  const all: One[] = [{ labels: { zone: "x", pod: "a" } }, { labels: {}, other_count: 5 }];
  assert.equal(sameSeries(a, all), all[0]);
  assert.equal(sameSeries({ labels: { pod: "b" } }, all), null);
  assert.equal(sameSeries({ labels: {} }, all), null);
  assert.equal(sameSeries(other, all), all[1]);
});

test("lines are interrupted at steps without data, for dense and sparse series", () => {
  const dense = [
    [0, 1],
    [10, 1],
    [30, 1],
    [40, 1],
  ] as const;
  const sparse = [
    [0, 1],
    [60, 1],
    [120, 1],
    [300, 1],
  ] as const;
  const gapsOf = (points: readonly (readonly [number, number])[]) => {
    const { times, values } = plotData([points], 10);
    return times.filter((_, i) => values[0][i] === null);
  };
  assert.deepEqual(gapsOf(dense), [20]);
  assert.deepEqual(gapsOf(sparse), [130]);
});

test("a series is named by its labels, and the sum of the other series by their number", () => {
  assert.equal(seriesName({ labels: { pod: "a", zone: "" } }), "pod=a, zone=(none)");
  assert.equal(seriesName({ labels: {} }), "all");
  assert.equal(seriesName({ labels: {}, other_count: 37 }), "other (37 series)");
});

test("values over time are formatted in readable units", () => {
  assert.equal(formatMetric(0.012345, "cores"), "0.0123 cores");
  assert.equal(formatMetric(2 * 1024 ** 2, "bytes/s"), "2 MiB/s");
  assert.equal(formatMetric(1.5, "count/s"), "1.5/s");
  assert.equal(formatMetric(14 / 3600, "count/s"), "0.00389/s");
  assert.equal(formatMetric(0, "count/s"), "0/s");
  assert.equal(formatMetric(0.00125, "events/s"), "0.00125 events/s");
  assert.equal(formatMetric(1.5, "events/s"), "1.5 events/s");
  assert.equal(formatMetric(3e9, "nanoseconds"), "3 s");
});
