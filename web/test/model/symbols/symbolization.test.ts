import assert from "node:assert/strict";
import { test } from "node:test";
import {
  requestAll,
  buildIdsPerRequest,
  byCause,
  join,
  type SymbolizationStatus,
} from "../../../src/model/symbols/symbolization.ts";

const binary = (id: string) => ({ build_id: id, file: `/bin/${id}` });
const missing = (id: string) => ({ ...binary(id), reason: "nobody sent it", next_retry: null });

test("a binary that is pending for one profile and missing for another counts once", () => {
  const joined = join([
    { complete: false, pending: [binary("a")], missing: [missing("b")] },
    {
      complete: false,
      pending: [binary("a")],
      missing: [missing("a"), missing("b"), missing("c")],
    },
  ]);
  assert.deepEqual(
    [joined.pending.map((one) => one.build_id), joined.missing.map((one) => one.build_id)],
    [["a"], ["b", "c"]],
  );
  assert.equal(joined.complete, false);
});

test("the largest number of unlisted binaries is reported, with an incomplete status", () => {
  const all = { complete: true, pending: [], missing: [] };
  const some = (unlisted: number) => ({ complete: false, pending: [], missing: [], unlisted });
  assert.deepEqual(join([all, some(44)]), { ...some(44) });
  assert.equal(join([some(3), some(44)]).unlisted, 44);
  assert.deepEqual(join([all, all]), { ...all, unlisted: 0 });
});

test("binaries are requested in batches; the status is complete only if all are", async () => {
  const ids = Array.from({ length: 2 * buildIdsPerRequest + 56 }, (_, i) => `id${i}`);
  const sizes: number[] = [];
  const loadStatus =
    (last: string) =>
    async (buildIds: string[]): Promise<SymbolizationStatus> => {
      sizes.push(buildIds.length);
      const lacks = buildIds.includes(last);
      return {
        complete: !lacks,
        pending: [],
        missing: lacks ? [missing(last)] : [],
        generation: 1,
      };
    };
  const status = await requestAll(ids, loadStatus(ids.at(-1)!));
  assert.deepEqual(sizes, [buildIdsPerRequest, buildIdsPerRequest, 56]);
  assert.deepEqual([status.complete, status.missing.length, status.generation], [false, 1, 3]);
  assert.equal((await requestAll(ids, loadStatus("none"))).complete, true);
});

test("binaries that lack names for the same cause are one entry with the earliest retry", () => {
  const id = (i: number) => i.toString(16).padStart(40, "0");
  const unreachable = (i: number) => ({
    ...binary(id(i)),
    reason: `no response from debuginfod.test for ${id(i)}`,
    next_retry: `2026-11-28T19:0${i % 3}:00Z`,
  });
  const causes = byCause([
    missing("x"),
    ...Array.from({ length: 192 }, (_, i) => unreachable(i + 1)),
  ]);
  assert.deepEqual(
    causes.map(({ binaries, nextRetry }) => [binaries.length, nextRetry]),
    [
      [192, "2026-11-28T19:00:00Z"],
      [1, null],
    ],
  );
  assert.equal(causes[1].reason, "nobody sent it");
  assert.deepEqual(byCause([]), []);
});
