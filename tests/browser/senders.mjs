// The list of senders: the first profile arrives, then the rows equal the API's, with search;
// errors stand out; readable in every look.
import assert from "node:assert/strict";
import { join } from "node:path";
import { axeFindings, pasted, screenshots, told, withPage } from "./harness.mjs";
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

export async function testSenders(runner, browser, server) {
  if (!runner.wants("senders")) return;
  const context = await signedIn(browser, server);
  const inside = (use) => withPage(browser, server, use, { context });

  await runner.test("senders, empty: says how the first profile comes in, in lines to copy", () =>
    inside(async (page) => {
      await page.route("**/api/v1/senders", (route) => route.fulfill({ json: { senders: [] } }));
      await page.goto(`${server.url}/shares`);
      await page.click(".top-end .menu summary, .top-end button:has-text('default')");
      await page.click("a:has-text('Senders')");
      await page.waitForSelector("h2:has-text('No profiles received yet')");
      await page.click(".empty [aria-label='Copy command'] >> nth=-1");
      await told(page, "copied");
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

  await runner.test("senders: the table has what the API says, and is searched", () =>
    inside(async (page) => {
      await page.goto(`${server.url}/senders`);
      await page.waitForSelector(".list tbody tr");
      const { senders } = (await server.call("GET", "/api/v1/senders", { token: server.token }))
        .json;
      const rows = await page.$$eval(".list tbody tr", (all) =>
        all.map((row) => [...row.cells].map((cell) => cell.textContent)),
      );
      assert.equal(rows.length, senders.length);
      for (const [i, sender] of senders.entries()) {
        assert.ok(rows[i][0].startsWith(sender.service) && rows[i][0].includes(sender.agent));
        assert.deepEqual(rows[i].slice(3, 7), [
          sender.address,
          ...[sender.profiles, sender.samples, sender.errors].map((count) =>
            count.toLocaleString("en"),
          ),
        ]);
      }
      await page.fill("[aria-label='Search senders']", "till-agent");
      await page.waitForFunction(() => document.querySelectorAll(".list tbody tr").length === 1);
      assert.deepEqual(
        (
          await page.$$eval(".list tbody tr td", (all) => all.map((cell) => cell.textContent))
        ).slice(0, 1),
        ["1.4.2"],
      );
      assert.equal(await page.locator(".sender-error").count(), 0);
      await page.fill("[aria-label='Search senders']", "depot");
      await page.waitForSelector(".sender-error.failing:has-text('not a supported profile')");
      await page.waitForSelector("th:has-text('1 name was longer than your team’s limit and cut')");
      await page.fill("[aria-label='Search senders']", "nobody has this");
      await page.waitForSelector("h2:has-text('Nothing found')");
      await page.fill("[aria-label='Search senders']", "depot");
      await push(server, "depot", cpuProfile(804, 30), "depot-agent");
      await page.click("button:has-text('Refresh')");
      await page.waitForSelector(".sender-error.hint:has-text('Last error')");
    }),
  );

  await runner.test(
    "senders: names that agents gave show each character, and turn no text beside them",
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
        await page.goto(`${server.url}/senders`);
        await page.fill("[aria-label='Search senders']", "trick-agent");
        await page.waitForFunction(() => document.querySelectorAll(".list tbody tr").length === 4);
        const names = await page.$$eval(".sender-name bdi", (all) =>
          all.map((one) => one.textContent),
        );
        // The server removes control characters from names of senders.
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
            await page.$$eval(".sender-name bdi", (all) =>
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
    await runner.test(`senders, ${look}: readable, nothing sticks out`, () =>
      withPage(
        browser,
        server,
        async (page) => {
          await page.goto(`${server.url}/senders`);
          await page.waitForSelector(".sender-error.failing");
          assert.deepEqual(await axeFindings(page), []);
          const wide = await page.evaluate(
            () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
          );
          assert.ok(wide <= 0, `${wide} px too wide`);
          await page.screenshot({
            path: join(screenshots, `senders-${look}.png`),
          });
        },
        { context: seen },
      ),
    );
    await seen.close();
  }
}
