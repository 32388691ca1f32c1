import assert from "node:assert/strict";
import { test } from "node:test";
import { joinLabels } from "../../src/local/join_labels.ts";
import type { SideCount } from "../../src/local/labels.ts";

/** A side whose samples have these numbers under one label, each with a value. */
function side(numbers: readonly [number: number, total: number][]): SideCount {
  const total = numbers.reduce((sum, [, value]) => sum + value, 0);
  const values = numbers.map(([number, own]) => ({
    value: number,
    unit: "bytes",
    total: own,
    samples: 1,
    filter: `size=${number}`,
  }));
  const without = { value: null, total: 0, samples: 0, filter: "size=" };
  const label = {
    key: "size",
    is_numeric: true,
    unit: "bytes",
    total,
    samples_with: numbers.length,
    without,
    value_count: numbers.length,
    values,
    other: null,
  };
  return {
    response: { unit: "ns", total, kept: total, labels: [label], label_count: 1, truncated: false },
    samples: numbers.length,
  };
}

test("numbers of both sides of a comparison are counted in the same bars", () => {
  const numbers = Array.from({ length: 20 }, (_, i) => 2 ** i);
  const [a, b] = [
    side(numbers.slice(0, 12).map((number) => [number, 3])),
    side(numbers.slice(8).map((number) => [number, 5])),
  ];
  const [label] = joinLabels([a, b], [1, 0.5], "ns", 4).labels;
  const bars = label.histogram!;
  assert.equal(label.values.length, 4, "the bars cover all values, not only the listed ones");
  assert.equal(bars.length, 20);
  assert.deepEqual([bars[0].low, bars[0].high, bars[19].low], [1, 1, 2 ** 19]);
  for (const [i, bar] of bars.entries()) {
    assert.equal(bar.total_a, i < 12 ? 3 : 0);
    assert.equal(bar.total_b, i >= 8 ? Math.round(2.5) : 0);
    assert.deepEqual([bar.samples_a, bar.samples_b], [i < 12 ? 1 : 0, i >= 8 ? 1 : 0]);
  }
  const few = joinLabels([side([[1, 1]]), side([[9, 1]])], [1, 1], "ns", 0).labels[0];
  assert.equal(few.histogram, undefined, "few numbers have no histogram");
});
