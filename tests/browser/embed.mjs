// A share in a frame of another site's page: only the viewer, and a link to the full page.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { join } from "node:path";
import { axeFindings, timeoutMs, screenshots, spoken, viewReady, withPage } from "./harness.mjs";
import { foldedText } from "./profiles.mjs";

/** Another site with one page; a frame in it shows the address. */
async function otherSite(address, use) {
  const site = createServer((_, response) =>
    response
      .setHeader("content-type", "text/html")
      .end(
        `<!doctype html><title>Other</title><iframe src="${address}" width="900" ` +
          `height="560"></iframe>`,
      ),
  );
  await new Promise((resolve) => site.listen(0, "127.0.0.1", resolve));
  try {
    await use(`http://127.0.0.1:${site.address().port}/`);
  } finally {
    site.close();
  }
}

export async function testEmbed(runner, browser, server) {
  await runner.test(
    "another site's page shows a share in a frame, without navigation",
    async () => {
      const { id } = await server.share(foldedText(200), { title: "framed" });
      const context = await browser.newContext({ ignoreHTTPSErrors: true });
      context.setDefaultTimeout(timeoutMs);
      try {
        await otherSite(`${server.url}/embed/${id}?v=table&sv=2`, async (address) => {
          const page = await context.newPage();
          await page.goto(address);
          const frame = await (await page.waitForSelector("iframe")).contentFrame();
          await viewReady(frame);
          assert.equal(await frame.textContent("h1"), "framed");
          assert.equal(await frame.$(".top, .profile-head, .profile-tools"), null);
          assert.ok(await frame.$(".rows .row"), "the frame shows the view of the address");
          const steps = await page.evaluate(() => history.length);
          await frame.fill("input[type=search]", "work");
          await frame.waitForFunction(() =>
            document.querySelector(".embed-bar a").href.includes("q=work"),
          );
          assert.equal(
            await page.evaluate(() => history.length),
            steps,
            "the frame adds no history entries to the outer page",
          );
          assert.equal(
            await frame.getAttribute(".embed-bar a", "href"),
            `/p/${id}?v=table&q=work&sv=2`,
          );
          assert.equal(await frame.getAttribute(".embed-bar a", "target"), "_blank");
        });
      } finally {
        await context.close();
      }
    },
  );

  for (const look of ["light", "dark", "phone"])
    await runner.test(`the embedded page is accessible on its own: ${look}`, async () => {
      const { id } = await server.share(foldedText(200), { title: "framed" });
      await withPage(
        browser,
        server,
        async (page) => {
          await page.goto(`${server.url}/embed/${id}`);
          await viewReady(page);
          assert.ok((await spoken(page)) !== null);
          assert.deepEqual(await axeFindings(page), []);
          if (look === "light") {
            await page.goto(`${server.url}/embed/${id}..${id}?v=table&norm=1&sv=2`);
            await viewReady(page);
            assert.equal(await page.textContent("h1"), "framed → framed");
            assert.ok(await page.$(".rows .row .change"), "the comparison of the address");
            assert.equal(
              await page.getAttribute(".embed-bar a", "href"),
              `/d/${id}..${id}?v=table&norm=1&sv=2`,
            );
            await page.goto(`${server.url}/embed/${id}`);
            await viewReady(page);
          }
          await page.screenshot({
            path: join(screenshots, `embed-${look}.png`),
          });
        },
        { look, bypassCSP: true },
      );
    });
}
