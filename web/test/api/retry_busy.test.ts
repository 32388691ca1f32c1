import assert from "node:assert/strict";
import { test } from "node:test";
import { retryWhileBusy } from "../../src/api/retry_busy.ts";

const refusal = (status: number, retryAfter: number | null) =>
  Object.assign(new Error("x"), { status, retryAfter });

/** Fails with each of the errors, then returns "done"; records the pauses. */
async function run(errors: unknown[]) {
  const waits: number[] = [];
  let count = 0;
  const send = () => {
    const error = errors[count++];
    return error ? Promise.reject(error as Error) : Promise.resolve("done");
  };
  const pause = (ms: number) => {
    waits.push(ms);
    return Promise.resolve();
  };
  const response = await retryWhileBusy(send, pause).catch((error: unknown) => error);
  return { response, waits, count };
}

test("a request refused as overloaded is repeated after the server's retry time", async () => {
  assert.deepEqual(await run([refusal(503, 5), refusal(503, 2)]), {
    response: "done",
    waits: [5000, 2000],
    count: 3,
  });
});

test("gives up after five attempts, and at once if there is no short retry time", async () => {
  const busy = refusal(503, 1);
  assert.deepEqual(await run([busy, busy, busy, busy, busy, busy]), {
    response: busy,
    waits: [1000, 1000, 1000, 1000],
    count: 5,
  });
  for (const error of [
    refusal(503, null),
    refusal(503, 31),
    refusal(429, 1),
    refusal(500, 1),
    new Error("x"),
    null,
  ]) {
    if (error) assert.deepEqual(await run([error]), { response: error, waits: [], count: 1 });
  }
});
