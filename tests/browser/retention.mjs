// Retention rules and series labels in the team's settings: the API has what was set, in that
// order; rules are moved by keys and pointer; a wrong selector is marked at its position; limits of
// the operator are explained.
import assert from "node:assert/strict";
import { join } from "node:path";
import { axeFindings, focusIs, screenshots, soon, withPage } from "./harness.mjs";
import { signedIn } from "./account.mjs";

const add = async (page, query, keep, totals = "", place = "") => {
  await page.fill("#retention [aria-label='New rule'] label:has-text('Selector') + input", query);
  await page.fill("#retention [aria-label='New rule'] label:has-text('Keep') + input", keep);
  await page.fill("#retention [aria-label='New rule'] label:has-text('totals') + input", totals);
  if (place) await page.selectOption("#retention [aria-label='New rule'] select", place);
  await page.click("#retention button:has-text('Add rule')");
};

export async function testRetention(runner, browser, server) {
  if (!runner.wants("retention")) return;
  const context = await signedIn(browser, server);
  const rules = async () =>
    (await server.call("GET", "/api/v1/retention", { token: server.token })).json.rules;
  const seen = (page) =>
    page.$$eval("#retention .rules-list .rule-query", (all) => all.map((one) => one.textContent));
  const words = (page) =>
    page.$$eval("#retention .rules-list .hint", (all) => all.map((one) => one.textContent));
  /** Checks that the API and the page have the rules in this order. */
  const areInOrder = (page, ...queries) =>
    soon(async () => {
      assert.deepEqual(
        (await rules()).map((rule) => rule.query),
        queries,
      );
      assert.deepEqual(await seen(page), queries);
    });
  const focusIsOn = (page, label) =>
    focusIs(page, () => document.activeElement.getAttribute("aria-label"), label);
  const [prod, dev, cpu] = ['{env="prod"}', '{env="dev",team=~"a|b"}', "process_cpu"];

  await runner.test("retention: rules are added, changed, moved and removed", () =>
    withPage(
      browser,
      server,
      async (page, watch) => {
        await page.goto(`${server.url}/settings#retention`);
        await page.waitForSelector("#retention .rule-default:has-text('Everything')");
        const { default_keep_s } = (
          await server.call("GET", "/api/v1/retention", {
            token: server.token,
          })
        ).json;
        assert.equal(default_keep_s, 0);
        assert.deepEqual(await words(page), ["kept forever (server default)"]);
        await add(page, prod, "90d", "730d");
        await areInOrder(page, prod);
        await add(page, dev, "36h");
        await areInOrder(page, prod, dev);
        await add(page, cpu, "forever", "", "1");
        await areInOrder(page, cpu, prod, dev);
        assert.deepEqual(
          (await rules()).map(({ keep_s, totals_s }) => [keep_s, totals_s]),
          [
            [0, null],
            [90 * 86400, 730 * 86400],
            [36 * 3600, null],
          ],
        );
        assert.deepEqual(await words(page), [
          "kept forever",
          "kept 90 days, hourly totals 2 years",
          "kept 36 hours",
          "kept forever (server default)",
        ]);

        // By pointer, then by keys: the focus stays with the rule and moves to the other button at
        // the end of the list.
        await page.click(`[aria-label='Move ${prod} up']`);
        await areInOrder(page, prod, cpu, dev);
        await focusIsOn(page, `Move ${prod} down`);
        await page.focus(`[aria-label='Move ${dev} up']`);
        await page.keyboard.press("Enter");
        await areInOrder(page, prod, dev, cpu);
        await focusIsOn(page, `Move ${dev} up`);
        await page.keyboard.press("Enter");
        await areInOrder(page, dev, prod, cpu);
        await focusIsOn(page, `Move ${dev} down`);
        assert.ok(await page.isDisabled(`[aria-label='Move ${cpu} down']`));
        const before = await rules();
        assert.deepEqual(
          before.map(({ keep_s, totals_s }) => [keep_s, totals_s]),
          [
            [36 * 3600, null],
            [90 * 86400, 730 * 86400],
            [0, null],
          ],
        );

        await page.click(`[aria-label='Change the rule for ${prod}'][aria-expanded]`);
        const form = `form[aria-label='Change the rule for ${prod}']`;
        assert.equal(await page.inputValue(`${form} input >> nth=0`), "90d");
        assert.equal(await page.inputValue(`${form} input >> nth=1`), "2y");
        await page.fill(`${form} input >> nth=0`, "30d");
        await page.fill(`${form} input >> nth=1`, "");
        await page.click(`${form} button:has-text('Save')`);
        await soon(async () => assert.deepEqual((await words(page))[1], "kept 30 days"));
        assert.deepEqual((await rules())[1], {
          ...before[1],
          keep_s: 30 * 86400,
          totals_s: null,
        });

        // Wrong selectors are marked at the right character, also after characters of several
        // bytes.
        watch.allowed.add(400);
        await add(page, '{café="ö",env=}', "1d");
        await page.waitForSelector("#retention .wrong-selector mark");
        assert.deepEqual(
          await page.$eval("#retention .wrong-selector", (code) =>
            [...code.childNodes].map((one) => one.textContent),
          ),
          ['{café="ö",env=', "}", ""],
        );
        assert.equal(
          await page.evaluate(() => document.activeElement.getAttribute("aria-invalid")),
          "true",
        );
        assert.equal(await page.evaluate(() => document.activeElement.selectionStart), 14);
        await add(page, '{env="x"}', "soon");
        await page.waitForSelector("#retention .error-line:has-text('keep')");
        assert.equal(await page.locator("#retention .wrong-selector").count(), 0);
        assert.equal((await rules()).length, 3);

        await page.click("#retention li:has-text('process_cpu') button:has-text('Remove')");
        await page.click("#retention button:has-text('Remove rule')");
        await areInOrder(page, dev, prod);
      },
      { context },
    ),
  );

  await runner.test(
    "retention: limits of the operator are explained, and series labels are edited",
    () =>
      withPage(
        browser,
        server,
        async (page, watch) => {
          const { id } = (await server.call("GET", "/api/v1/tenant", { token: server.token })).json;
          const limit = (rule_keep_s) =>
            server.call("PATCH", `/api/v1/admin/tenants/${id}`, {
              token: server.token,
              body: { rule_keep_s },
            });
          assert.equal((await limit(7 * 86400)).status, 200);
          watch.allowed.add(400);
          await page.goto(`${server.url}/settings#retention`);
          await page.waitForSelector("#retention >> text=can keep profiles for at most 7 days");
          await add(page, '{env="x"}', "8d");
          await page.waitForSelector(
            "#retention .error-line:has-text('rule_keep_s is 604800, set for this team')",
          );
          await add(page, '{env="x"}', "7d");
          await areInOrder(page, dev, prod, '{env="x"}');
          await page.click(`[aria-label='Move ${prod} up']`); // although it keeps profiles longer
          await areInOrder(page, prod, dev, '{env="x"}');
          assert.equal((await limit(null)).status, 200);

          const labels = async () =>
            (
              await server.call("GET", "/api/v1/tenant", {
                token: server.token,
              })
            ).json.sample_labels;
          await page.fill("#series input", "end.point, region");
          await page.click("#series button:has-text('Save labels')");
          await page.waitForSelector("#series code:has-text('end_point, region')");
          assert.equal(await labels(), "end_point,region");
          await page.fill("#series input", "thread.name");
          await page.click("#series button:has-text('Save labels')");
          await page.waitForSelector("#series .error-line:has-text('cannot make series')");
          assert.equal(await labels(), "end_point,region");
          await page.click("#series button:has-text('default')");
          await page.waitForSelector("#series >> text=No sample label splits series");
          assert.equal(await labels(), "");
        },
        { context },
      ),
  );

  await context.close();
  for (const look of ["light", "dark", "phone"]) {
    const signed = await signedIn(browser, server, look, true);
    await runner.test(`retention, ${look}: the page is accessible and fits the screen`, () =>
      withPage(
        browser,
        server,
        async (page, watch) => {
          watch.allowed.add(400);
          await page.goto(`${server.url}/settings#retention`);
          await page.waitForSelector("#retention .rule-query");
          await page.click(`[aria-label='Change the rule for ${dev}'][aria-expanded]`);
          await add(page, '{env="x}', "1d");
          await page.waitForSelector("#retention .wrong-selector");
          assert.deepEqual(await axeFindings(page), []);
          const wide = await page.evaluate(
            () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
          );
          assert.ok(wide <= 0, `${wide} px too wide`);
          await page
            .locator("#retention")
            .screenshot({ path: join(screenshots, `retention-${look}.png`) });
          await page
            .locator("#series")
            .screenshot({ path: join(screenshots, `series-${look}.png`) });
        },
        { context: signed },
      ),
    );
    await signed.close();
  }
  for (const { id } of await rules())
    await server.call("DELETE", `/api/v1/retention/${id}`, {
      token: server.token,
    });
}
