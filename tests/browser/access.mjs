// Access control: passwords, teams, deleted and unknown shares; editing; reports.
import assert from "node:assert/strict";
import { readFileSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { messageShown, viewReady, withPage } from "./harness.mjs";
import { cpuProfile } from "./profiles.mjs";

export async function testAccess(runner, browser, server) {
  await runner.test("a share with a password requests it once", async () => {
    const shared = await server.share(
      cpuProfile(31),
      { title: "Locked", visibility: "password" },
      { headers: { "X-Perfolio-Password": "open sesame" } },
    );
    await withPage(browser, server, async (page, watch) => {
      watch.allowed.add(401);
      await page.goto(`${server.url}/p/${shared.id}`);
      await page.waitForSelector("text=This profile is protected by a password");
      await page.fill("input[type=password]", "wrong one");
      await page.click("button:has-text('Open')");
      await page.waitForSelector("text=The password is wrong. Try again.");
      await page.fill("input[type=password]", "open sesame");
      await page.click("button:has-text('Open')");
      await viewReady(page);
      assert.equal(await page.textContent("h1"), "Locked");
      await page.reload();
      await viewReady(page);
      assert.ok(!page.url().includes("sesame"));
    });
  });

  await runner.test("an unknown id, a team's share and a wrong path show what to do", async () => {
    const team = await server.share(cpuProfile(32), { visibility: "team" });
    await withPage(browser, server, async (page, watch) => {
      watch.allowed.add(404).add(401).add(400);
      for (const path of ["/p/%ff", "/settings/%", "/p/%", "/%zz"]) {
        assert.equal((await page.goto(server.url + path)).status(), 400, path);
        await page.waitForSelector("h1:text-is('This address cannot be read')");
        assert.equal(await page.isVisible("text=invalid percent escape"), true);
        assert.match(await page.title(), /^This address cannot be read/);
      }
      const mentions = {
        [`/p/${"0".repeat(22)}`]: 0,
        "/p/short": 1,
        "/s/0123456789": 0,
      };
      for (const [path, times] of Object.entries(mentions)) {
        await page.goto(server.url + path);
        await page.waitForSelector("h1:text-is('Not found')");
        assert.equal(
          (await page.textContent(".problem")).split("22 letters").length - 1,
          times,
          path,
        );
      }
      await page.goto(`${server.url}/p/${team.id}`);
      await page.waitForSelector("text=This profile belongs to a team");
      assert.equal(
        await page.getAttribute(".card a.primary", "href"),
        `/login?next=${encodeURIComponent(`/p/${team.id}`)}`,
      );
      await page.goto(`${server.url}/problems/rate-limited`);
      await page.waitForSelector("text=Retry-After");
    });
  });

  await runner.test(
    "missing and deleted shares show one sentence, and details of the response on request",
    async () => {
      const gone = await server.share(cpuProfile(33), {});
      assert.equal(
        (
          await server.call("DELETE", `/api/v1/shares/${gone.id}`, {
            token: server.token,
          })
        ).status,
        204,
      );
      const cases = [
        [
          "0".repeat(22),
          "404",
          "Not found",
          "Check that the link is complete, and sign in if the profile belongs to your team.",
        ],
        [
          gone.id,
          "410",
          "This profile is gone",
          "It was deleted or has expired and cannot be restored. Ask its owner for the file.",
        ],
      ];
      await withPage(browser, server, async (page, watch) => {
        watch.allowed.add(404).add(410);
        for (const [id, status, title, sentence] of cases) {
          const { detail } = (await server.call("GET", `/api/v1/shares/${id}`)).json;
          await page.goto(`${server.url}/p/${id}`);
          await page.waitForSelector(".problem");
          const seen = async () => (await page.innerText(".problem")).split("\n").filter(Boolean);
          assert.deepEqual(await seen(), [status, title, sentence, "Share a profile", "Details"]);
          await page.click(".problem summary");
          const all = await seen();
          assert.equal(all[5], detail);
          assert.match(all[6], /^Request \S+$/);
        }
      });
    },
  );

  await runner.test("the page distinguishes damaged, lost and deleted profiles", async () => {
    const [damaged, lost, deleted] = await Promise.all(
      [34, 35, 36].map((seed) => server.share(cpuProfile(seed), { title: "Kept" })),
    );
    const objectOf = ({ id }) => join(server.dataDir, "objects/share", id);
    const file = objectOf(damaged);
    const bytes = readFileSync(file);
    bytes[bytes.length >> 1] ^= 1;
    writeFileSync(file, bytes);
    unlinkSync(objectOf(lost));
    assert.equal(
      (
        await server.call("DELETE", `/api/v1/shares/${deleted.id}`, {
          token: server.token,
        })
      ).status,
      204,
    );
    const cases = [
      [damaged, "This profile is damaged", /^Its stored data failed a check/],
      [
        lost,
        "The data of this profile is lost",
        /^It is missing from storage although it was not deleted/,
      ],
      [deleted, "This profile is gone", /^It was deleted or has expired/],
    ];
    await withPage(browser, server, async (page, watch) => {
      watch.allowed.add(500).add(410);
      for (const [{ id }, title, sentence] of cases) {
        // The running server has the tree in memory as uploaded; a restarted one reads the
        // object, like /raw.
        const { status, bytes: problem } = await server.call("GET", `/api/v1/shares/${id}/raw`);
        await page.route(`**/api/v1/shares/${id}/flame*`, (route) =>
          route.fulfill({
            status,
            contentType: "application/problem+json",
            body: problem,
          }),
        );
        await page.goto(`${server.url}/p/${id}`);
        await page.waitForSelector(`.problem h1:text-is("${title}")`);
        assert.match(await page.textContent(".problem h1 + p"), sentence);
        assert.equal(await page.locator(".problem button:has-text('Try again')").count(), 0);
      }
      for (const kind of ["damaged", "lost"]) {
        await page.goto(`${server.url}/problems/${kind}`);
        await page.waitForSelector("text=The operator can restore it from a backup.");
      }
    });
  });

  await runner.test("only users who may delete a share see the confirmation", async () => {
    const open = await server.share(cpuProfile(35), { title: "Kept" });
    const team = await server.share(cpuProfile(36), { visibility: "team" });
    await withPage(browser, server, async (page, watch) => {
      watch.allowed.add(401);
      for (const { id } of [open, team]) {
        await page.goto(`${server.url}/p/${id}/delete`);
        await page.waitForSelector("h1:has-text('You need the delete link')");
        assert.equal(await page.locator("main button").count(), 0);
        assert.equal(
          await page.getAttribute(".card a.primary", "href"),
          `/login?next=${encodeURIComponent(`/p/${id}/delete`)}`,
        );
      }
      // The link is sufficient, even without permission to read.
      await page.goto(team.delete_url);
      await page.click("text=Delete forever");
      await page.waitForSelector("h1:has-text('Deleted')");
    });
    assert.equal((await server.call("GET", `/api/v1/shares/${open.id}`)).status, 200);
  });

  await runner.test("a description is rendered as Markdown without scripts", async () => {
    const description =
      "**Bold** <img src=x onerror=alert(1)> [bad](javascript:alert(1)) " +
      "[good](https://example.org/)\n\n- item";
    const shared = await server.share(cpuProfile(33), {
      title: "<script>alert(1)</script>",
      description,
    });
    await withPage(browser, server, async (page) => {
      await page.goto(`${server.url}/p/${shared.id}`);
      await viewReady(page);
      assert.equal(await page.textContent("h1"), "<script>alert(1)</script>");
      assert.equal(await page.locator(".markdown img, .markdown script").count(), 0);
      assert.deepEqual(await page.$$eval(".markdown a", (all) => all.map((one) => one.href)), [
        "https://example.org/",
      ]);
      assert.equal(await page.textContent(".markdown strong"), "Bold");
    });
  });

  await runner.test("an anonymous reader can report but not edit a share", async () => {
    const shared = await server.share(cpuProfile(34), { title: "Strange" });
    await withPage(browser, server, async (page) => {
      await page.goto(`${server.url}/p/${shared.id}`);
      await viewReady(page);
      assert.equal(await page.locator("button:has-text('Settings')").count(), 0);
      await page.click("[aria-label=Report]");
      await page.fill("dialog textarea", "It is not a profile");
      await page.click("dialog button:has-text('Report')");
      await messageShown(page, "Report sent. Thank you.");
    });
    const reports = await server.call("GET", "/api/v1/admin/reports", {
      token: server.token,
    });
    assert.ok(reports.json.reports.some((report) => report.share_id === shared.id));
  });
}
