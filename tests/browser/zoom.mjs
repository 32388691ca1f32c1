// A steady load in windows of 15 minutes to 24 hours: the same flat line and the same average in
// each, in the API and on the page. Screenshots: build/screenshots/explore-zoom-*.png.
import assert from "node:assert/strict";
import { join } from "node:path";
import { screenshots, viewReady, withPage } from "./harness.mjs";
import { signedIn } from "./account.mjs";

const second = 1000;
const hour = 3600 * second;
const cores = 1.95;
const type = "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta";
const windows = {
  "15min": hour / 4,
  "1h": hour,
  "6h": 6 * hour,
  "24h": 24 * hour,
};

/** Profiles of one series, ten seconds each, as an OTLP request. */
function requestOf(begins) {
  const ns = (ms) => `${ms}000000`;
  const profiles = begins.map((ms) => ({
    sampleType: { typeStrindex: 1, unitStrindex: 2 },
    samples: [{ stackIndex: 1, values: [String(cores * 10e9)] }],
    timeUnixNano: ns(ms),
    durationNano: ns(10 * second),
    periodType: { typeStrindex: 1, unitStrindex: 2 },
    period: "10000000",
  }));
  return {
    resourceProfiles: [
      {
        resource: {
          attributes: [{ key: "service.name", value: { stringValue: "steady" } }],
        },
        scopeProfiles: [{ profiles }],
      },
    ],
    dictionary: {
      stringTable: ["", "cpu", "nanoseconds", "main"],
      mappingTable: [{}],
      linkTable: [{}],
      attributeTable: [{}],
      functionTable: [{}, { nameStrindex: 3 }],
      locationTable: [{}, { lines: [{ functionIndex: 1 }] }],
      stackTable: [{}, { locationIndices: [1] }],
    },
  };
}

async function sendSteady(server, from, to) {
  const begins = [];
  for (let ms = from; ms < to; ms += 10 * second) begins.push(ms);
  for (let i = 0; i < begins.length; i += 1440) {
    const body = requestOf(begins.slice(i, i + 1440));
    const { status, bytes } = await server.call("POST", "/v1development/profiles", {
      body,
      token: server.token,
    });
    assert.equal(status, 200, `${bytes}`);
  }
}

const near = (value) => Math.abs(value / cores - 1) <= 0.01;

export async function testZoom(runner, browser, server) {
  if (!runner.wants("zoom")) return;
  const context = await signedIn(browser, server);
  await runner.test(
    "explore, zoom: a steady load has the same line and average in every window",
    () =>
      withPage(
        browser,
        server,
        async (page) => {
          // The last window has started but not ended, and the first started before the day.
          const end = Math.floor(Date.now() / 1000) * second - 3 * second;
          await sendSteady(server, end - 24 * hour - 7 * second, end);
          for (const [name, length] of Object.entries(windows)) {
            const [start, query] = [end - length, `${type}{service_name="steady"}`];
            const { json } = await server.call(
              "GET",
              "/api/v1/query_range?" +
                new URLSearchParams({ query, start: start / 1000, end: end / 1000, rate: "auto" }),
              { token: server.token },
            );
            const [{ points, average }] = json.series;
            assert.ok(points.length >= length / json.step_ms, name);
            for (const [ms, value] of points) assert.ok(near(value), `${name}: ${value} at ${ms}`);
            assert.ok(near(average), `${name}: ${average}`);

            await page.goto(
              `${server.url}/explore?` +
                new URLSearchParams({ ev: "1", query, from: start, until: end }),
            );
            await page.waitForSelector(".plot .u-over");
            await viewReady(page);
            const cells = await page.$$eval(".series-table tbody td", (all) =>
              all.map((one) => one.textContent),
            );
            assert.deepEqual(cells, Array(3).fill(`${cores} cores`), name);
            await page.screenshot({
              path: join(screenshots, `explore-zoom-${name}.png`),
            });
            await page.click("text=Show all values as a table");
            const values = await page.$$eval(".value-table tbody td", (all) =>
              all.map((one) => Number(one.dataset.value)),
            );
            assert.equal(values.length, points.length);
            for (const value of values) assert.ok(near(value), `${name}: ${value}`);
          }
        },
        { context },
      ),
  );
}
