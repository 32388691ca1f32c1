import assert from "node:assert/strict";
import { test } from "node:test";
import type { ProfileType } from "../../src/api/explore_api.ts";
import { firstType, typeLabels } from "../../src/explore/type_names.ts";

function typeOf(type: string): ProfileType {
  const [name, sample_type, sample_unit] = type.split(":");
  return { type, name, sample_type, sample_unit, rule: "sum" };
}

test("types in the menu have readable names", () => {
  const types = ["process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta", "block:spins:turns::"];
  assert.deepEqual(typeLabels(types.map(typeOf)), [
    "CPU time · process_cpu",
    "spins · block (turns)",
  ]);
});

test("types with equal names are distinguished by their unit, period and kind", () => {
  const types = [
    "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta",
    "process_cpu:cpu:nanoseconds::",
    "memory:alloc_space:bytes:space:bytes",
  ];
  assert.deepEqual(typeLabels(types.map(typeOf)), [
    "CPU time · process_cpu, nanoseconds, period cpu:nanoseconds, delta",
    "CPU time · process_cpu, nanoseconds, no period",
    "Allocated memory · memory",
  ]);
});

test("CPU time is shown first", () => {
  const types = ["memory:inuse_space:bytes::", "process_cpu:cpu:nanoseconds::"];
  assert.equal(firstType(types.map(typeOf))?.name, "process_cpu");
});
