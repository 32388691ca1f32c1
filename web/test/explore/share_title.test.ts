import assert from "node:assert/strict";
import { test } from "node:test";
import { titleOf, titlesOf } from "../../src/explore/share_title.ts";

const cpu = "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta";
const at = (day: number, hour: number, minute: number, second = 0) =>
  new Date(2026, 10, day, hour, minute, second).getTime();

test("the default title of a query's share consists of type, service, labels and window", () => {
  const from = at(26, 18, 34);
  assert.equal(
    titleOf({ query: `${cpu}{service_name="payments"}`, from, to: at(26, 19, 34) }),
    "CPU time, payments, 26 Nov 2026, 18:34–19:34",
  );
  assert.equal(
    titleOf({
      query: `${cpu}{pod=~"a|b",service_name="pay \\"ments\\""}`,
      from,
      to: at(27, 6, 34),
    }),
    'CPU time, pay "ments", pod=~a|b, 26 Nov 2026, 18:34–27 Nov 2026, 06:34',
  );
  assert.equal(
    titleOf({ query: "memory:inuse_space", from, to: from + 30_000 }),
    "Memory in use, all services, 26 Nov 2026, 18:34:00–18:34:30",
  );
  assert.equal(
    titleOf({ query: "odd", from, to: at(26, 19, 34) }),
    "odd, all services, 26 Nov 2026, 18:34–19:34",
  );
  assert.ok(
    titleOf({ query: `${cpu}{a="${"x".repeat(500)}"}`, from, to: at(26, 19, 34) }).length < 120,
  );
});

test("the titles of a comparison's sides differ, and the title after names both sides", () => {
  const side = (hour: number, query = `${cpu}{service_name="payments"}`) => ({
    query,
    from: at(26, hour, 0),
    to: at(26, hour + 1, 0),
  });
  assert.deepEqual(titlesOf([side(17), side(18)]), [
    "CPU time, payments, 26 Nov 2026, 17:00–18:00 (before)",
    "CPU time, payments, 26 Nov 2026, 18:00–19:00 compared with 26 Nov 2026, 17:00–18:00",
  ]);
  const [, other] = titlesOf([side(18, `${cpu}{service_name="orders"}`), side(18)]);
  assert.equal(
    other,
    "CPU time, payments, 26 Nov 2026, 18:00–19:00 compared with CPU time, orders, 26 Nov 2026, " +
      "18:00–19:00",
  );
  const longest = side(18, `${cpu}{service_name="${"s".repeat(300)}"}`);
  for (const title of titlesOf([longest, { ...longest, query: longest.query.replace("s", "t") }]))
    assert.ok([...title].length <= 200);
});
