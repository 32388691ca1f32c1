// The page "Sources": how to send the first profile; then rows equal to the API's, with search,
// highlighted errors, and accessible in every look.
import assert from "node:assert/strict";
import { join } from "node:path";
import { axeFindings, pasted, screenshots, messageShown, withPage } from "./harness.mjs";
import { cpuProfile } from "./profiles.mjs";
import { signedIn } from "./account.mjs";

const push = (server, service, bytes, agent, status = 200) =>
  server
    .call("POST", `/api/v1/profiles?label=service_name%3D${service}`, {
      body: bytes,
      token: server.token,
      headers: { "User-Agent": agent },
    })
    .then((response) => assert.equal(response.status, status, `${response.bytes}`));

export async function testSources(runner, browser, server) {
  if (!runner.wants("sources")) return;
  const context = await signedIn(browser, server);
  const inside = (use) => withPage(browser, server, use, { context });

  await runner.test(
    "sources: an empty list shows commands that send the first profile, to copy",
    () =>
      inside(async (page) => {
        await page.route("**/api/v1/sources", (route) => route.fulfill({ json: { sources: [] } }));
        await page.goto(`${server.url}/shares`);
        await page.click(".top-end .menu summary, .top-end button:has-text('default')");
        await page.click("a:has-text('Sources')");
        await page.waitForSelector("h2:has-text('No profiles received yet')");
        await page.click(".empty [aria-label='Copy command'] >> nth=-1");
        await messageShown(page, "copied");
        assert.match(
          await pasted(page),
          /--data-binary @cpu\.pb\.gz '.*\/api\/v1\/profiles\?label=service_name%3Dapi'$/,
        );
        assert.deepEqual(await axeFindings(page), []);
      }),
  );

  await push(server, "till", cpuProfile(801, 30), "till-agent/1.4.2 (linux)");
  await push(server, "till", cpuProfile(802, 30), "till-agent/1.4.2 (linux)");
  await push(server, "depot", cpuProfile(803, 30), "depot-agent");
  await push(server, "depot", Buffer.from("no profile at all"), "depot-agent", 415);
  await push(server, "depot", Buffer.from(`main;${"f".repeat(20_000)} 1\n`), "depot-agent");
  await push(server, "depot", Buffer.from("no profile at all"), "depot-agent", 415);

  await runner.test("sources: the table equals the API's list and can be searched", () =>
    inside(async (page) => {
      await page.goto(`${server.url}/senders`); // the former path
      await page.waitForSelector(".list tbody tr");
      assert.equal(new URL(page.url()).pathname, "/sources");
      const { sources } = (await server.call("GET", "/api/v1/sources", { token: server.token }))
        .json;
      const rows = await page.$$eval(".list tbody tr", (all) =>
        all.map((row) => [...row.cells].map((cell) => cell.textContent)),
      );
      assert.equal(rows.length, sources.length);
      for (const [i, source] of sources.entries()) {
        assert.ok(rows[i][0].startsWith(source.service) && rows[i][0].includes(source.agent));
        assert.deepEqual(rows[i].slice(3, 7), [
          source.address,
          ...[source.profiles, source.samples, source.errors].map((count) =>
            count.toLocaleString("en"),
          ),
        ]);
      }
      await page.fill("[aria-label='Search sources']", "till-agent");
      await page.waitForFunction(() => document.querySelectorAll(".list tbody tr").length === 1);
      assert.deepEqual(
        (
          await page.$$eval(".list tbody tr td", (all) => all.map((cell) => cell.textContent))
        ).slice(0, 1),
        ["1.4.2"],
      );
      assert.equal(await page.locator(".source-error").count(), 0);
      await page.fill("[aria-label='Search sources']", "depot");
      await page.waitForSelector(".source-error.failing:has-text('not a supported profile')");
      await page.waitForSelector(
        "th:has-text('1 name was truncated because it was longer than your team’s limit')",
      );
      await page.fill("[aria-label='Search sources']", "nobody has this");
      await page.waitForSelector("h2:has-text('Nothing found')");
      await page.fill("[aria-label='Search sources']", "depot");
      await push(server, "depot", cpuProfile(804, 30), "depot-agent");
      await page.click("button:has-text('Refresh')");
      await page.waitForSelector(".source-error.hint:has-text('Last error')");
    }),
  );

  await runner.test(
    "sources: control characters of names are visible, and names do not change text direction",
    async () => {
      const tricks = {
        override: "shop\u202Etxt.exe",
        escape: "\u001b[31mred",
        line: "two\nlines",
        hebrew: "\u05D0\u05D1\u05D2",
      };
      const seen = {
        override: "shop\\u202Etxt.exe",
        escape: "\\u001B[31mred",
        line: "two\\u000Alines",
        hebrew: "\u05D0\u05D1\u05D2",
      };
      for (const name of Object.values(tricks))
        await push(server, encodeURIComponent(name), cpuProfile(805, 30), "trick-agent");
      await inside(async (page) => {
        await page.goto(`${server.url}/sources`);
        await page.fill("[aria-label='Search sources']", "trick-agent");
        await page.waitForFunction(() => document.querySelectorAll(".list tbody tr").length === 4);
        const names = await page.$$eval(".source-name bdi", (all) =>
          all.map((one) => one.textContent),
        );
        // The server replaces control characters of service names.
        assert.deepEqual(
          names.sort(),
          Object.values({
            ...seen,
            escape: "?[31mred",
            line: "two?lines",
          }).sort(),
        );
        assert.ok(
          (
            await page.$$eval(".source-name bdi", (all) =>
              all.map((one) => getComputedStyle(one).unicodeBidi),
            )
          ).every((value) => value === "isolate"),
        );
        const raw = await page.evaluate(() => document.body.innerText);
        assert.doesNotMatch(raw, /[\u202a-\u202e\u2066-\u2069\u0000-\u0008\u001b]/);
      });
    },
  );

  await context.close();
  await push(server, "depot", Buffer.from("no profile at all"), "depot-agent", 415);
  for (const look of ["light", "dark", "phone"]) {
    const seen = await signedIn(browser, server, look, true);
    await runner.test(`sources, ${look}: the page is accessible and fits the screen`, () =>
      withPage(
        browser,
        server,
        async (page) => {
          await page.goto(`${server.url}/sources`);
          await page.waitForSelector(".source-error.failing");
          assert.deepEqual(await axeFindings(page), []);
          const wide = await page.evaluate(
            () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
          );
          assert.ok(wide <= 0, `${wide} px too wide`);
          await page.screenshot({
            path: join(screenshots, `sources-${look}.png`),
          });
        },
        { context: seen },
      ),
    );
    await seen.close();
  }
}
