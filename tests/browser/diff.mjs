// The comparison of two shares: the table equals the difference of two brute-force readers.
import assert from "node:assert/strict";
import { spoken, tableRows, viewReady, withPage } from "./harness.mjs";
import { cpuProfile, cpuSamples, encodePprof, topOf, totalOf, twoTypes } from "./profiles.mjs";

export async function testDiff(runner, browser, server) {
  const [a, b] = [21, 22].map((seed) => cpuSamples(seed));
  const before = await server.share(cpuProfile(21), { title: "Left side" });
  const after = await server.share(cpuProfile(22), { title: "Right side" });
  const address = `${server.url}/d/${before.id}..${after.id}`;

  await runner.test("a diff's table equals the difference, the largest change first", () =>
    withPage(browser, server, async (page) => {
      await page.goto(`${address}?v=table&st=samples&sv=2`);
      await viewReady(page);
      const [left, right] = [topOf(a, 0), topOf(b, 0)];
      const zero = { flat: 0, cum: 0 };
      const rows = await tableRows(page);
      assert.equal(rows.length, new Set([...left.keys(), ...right.keys()]).size);
      let last = Infinity;
      for (const [was, is, change, name] of rows) {
        const [x, y] = [(left.get(name) ?? zero).cum, (right.get(name) ?? zero).cum];
        assert.equal(was, x.toLocaleString("en-US"));
        assert.equal(is, y.toLocaleString("en-US"));
        const sign = y > x ? "+" : "−";
        assert.equal(change, y === x ? "0" : sign + Math.abs(y - x).toLocaleString("en-US"));
        assert.ok(Math.abs(y - x) <= last, "order");
        last = Math.abs(y - x);
      }
      assert.deepEqual(await page.$$eval(".side-value", (all) => all.map((one) => one.textContent)), [totalOf(a, 0), totalOf(b, 0)].map((total) => total.toLocaleString("en-US")));
    }),
  );

  await runner.test("trying again is offered for what may pass, not for sides that cannot be compared", async () => {
    const other = await server.share(encodePprof({ types: [["alloc_space", "bytes"]], samples: [{ stack: ["main"], values: [5] }] }));
    await withPage(browser, server, async (page, watch) => {
      watch.allowed.add(400).add(422).add(503);
      await page.goto(`${server.url}/d/${before.id}..${other.id}`);
      await page.waitForSelector(".problem");
      assert.equal(await page.locator("button:has-text('Try again')").count(), 0);
      await page.route("**/api/v1/diff?*", (route) => route.fulfill({ status: 503, body: "" }));
      await page.goto(address);
      await page.waitForSelector(".problem");
      await page.unroute("**/api/v1/diff?*");
      await page.click("button:has-text('Try again')");
      await viewReady(page);
    });
  });

  await runner.test("microseconds are compared with nanoseconds; what cannot be normalised says why", async () => {
    const cpu = (unit, samples) => server.share(encodePprof({ types: [["cpu", unit]], samples: samples.map(([name, value]) => ({ stack: ["main", name], values: [value] })) }));
    const [micro, nano, none] = await Promise.all([cpu("microseconds", [["a", 3000]]), cpu("nanoseconds", [["a", 1e6], ["b", 1e6]]), cpu("nanoseconds", [["a", 0]])]);
    await withPage(browser, server, async (page) => {
      const sides = () => page.$$eval(".side-value", (all) => all.map((one) => one.textContent));
      await page.goto(`${server.url}/d/${micro.id}..${nano.id}?v=table&sv=2`);
      await viewReady(page);
      assert.deepEqual(await sides(), ["3 ms", "2 ms"]);
      assert.deepEqual((await tableRows(page)).find(([, , , name]) => name === "a").slice(0, 3), ["3 ms", "1 ms", "−2 ms"]);
      await page.goto(`${server.url}/d/${none.id}..${nano.id}?norm=1&sv=2`);
      await page.waitForSelector("text=The profile before has no values of this type");
      assert.deepEqual(await sides(), ["0 ns", "2 ms"]);
      await page.click("text=Compare the values as they are");
      await viewReady(page);
      assert.match(await spoken(page), /^all, before 0 ns .*after 2 ms/);
    });
  });

  await runner.test("swap, normalise, and the way to either side", () =>
    withPage(browser, server, async (page) => {
      await page.goto(`${address}?st=samples&sv=2`);
      await viewReady(page);
      await page.click("button:has-text('Normalise')");
      await page.waitForURL(/norm=1/);
      await viewReady(page);
      await page.waitForFunction((total) => document.querySelector("#icicle-cursor").textContent.startsWith(`all, before ${total} `), totalOf(a, 0).toLocaleString("en-US"));
      assert.equal(await page.textContent(".side.after .side-value"), totalOf(b, 0).toLocaleString("en-US"), "what it was, not what it counts as");
      await page.keyboard.press("%");
      await page.waitForFunction(() => !location.search.includes("norm"));
      await page.keyboard.press("x");
      await page.waitForURL(`${server.url}/d/${after.id}..${before.id}?st=samples&sv=2`);
      await viewReady(page);
      assert.ok((await spoken(page)).startsWith(`all, before ${totalOf(b, 0).toLocaleString("en-US")} `), await spoken(page));
      await page.click(".side.before a");
      await page.waitForURL(`${server.url}/p/${after.id}?st=samples&sv=2`);
    }),
  );

  await runner.test("stacks that are gone and new are shown", async () => {
    const make = (name) => encodePprof({ types: twoTypes, samples: [{ stack: ["main", name], values: [5, 50] }, { stack: ["main", "kept"], values: [7, 70] }] });
    const [one, two] = [await server.share(make("old")), await server.share(make("fresh"))];
    await withPage(browser, server, async (page) => {
      await page.goto(`${server.url}/d/${one.id}..${two.id}?v=table&b=icicle&st=samples&sv=2`);
      await viewReady(page);
      const rows = await page.$$eval(".rows .row", (all) => all.map((row) => row.textContent));
      assert.ok(rows.some((text) => text.includes("gone") && text.includes("old")), rows.join("|"));
      assert.ok(rows.some((text) => text.includes("new") && text.includes("fresh")));
      await page.focus(".icicle");
      for (const key of ["ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight"]) await page.keyboard.press(key);
      assert.match(await spoken(page), /^(old|fresh), /);
      assert.ok(await page.$(".diff-legend"));
    });
  });

  await runner.test("two profiles chosen on a share page are compared", () =>
    withPage(browser, server, async (page) => {
      await page.goto(`${server.url}/p/${after.id}?st=samples&sv=2`);
      await viewReady(page);
      await page.click("button:has-text('Compare')");
      await page.fill("dialog input", `https://elsewhere.example/p/${before.id}`);
      await page.waitForSelector("dialog >> text=That link is of elsewhere.example");
      const link = await server.call("POST", "/api/v1/links", { body: { path: `/p/${before.id}?q=x` } });
      await page.fill("dialog input", link.json.url);
      await page.click("dialog button:has-text('Compare')");
      await page.waitForURL(`${address}?st=samples&sv=2`);
      await viewReady(page);
    }),
  );
}
