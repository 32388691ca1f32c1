// Tabs that were open during an update of the server: they report it and offer a reload.
import assert from "node:assert/strict";
import { setInPlace, viewReady, withPage } from "./harness.mjs";
import { cpuProfile } from "./profiles.mjs";

const gone = (page, chunk) =>
  page.route(`**/assets/${chunk}-*.js`, (route) => route.fulfill({ status: 404, body: "" }));

/** The message about an update and its only action; where: its container. */
async function updateIsReported(page, where) {
  await page.waitForSelector(`${where} .problem`);
  assert.equal(await page.textContent(`${where} .problem-status`), "updated");
  assert.equal(await page.textContent(`${where} .problem h1`), "Perfolio was probably updated");
  assert.deepEqual(
    await page.$$eval(`${where} .problem button`, (all) => all.map((one) => one.textContent)),
    ["Reload the page"],
  );
}

/** Presses the button; the server's files are available again. */
async function reload(page) {
  await page.unrouteAll();
  await Promise.all([page.waitForEvent("load"), page.click("text=Reload the page")]);
}

export async function testUpdated(runner, browser, server) {
  const { id } = await server.share(cpuProfile(91, 60), {
    title: "Older page",
  });
  const address = `${server.url}/p/${id}`;
  const open = async (page, query = "") => {
    await page.goto(address + query);
    await viewReady(page);
  };

  await runner.test(
    "after an update, a tree of another version shows a request to reload the page",
    () =>
      withPage(browser, server, async (page) => {
        await open(page, "?st=cpu&sv=2");
        await page.route("**/flame?*", async (route) => {
          const response = await route.fetch();
          const body = await response.body();
          body.write("PFLAME99");
          await route.fulfill({ response, body });
        });
        await setInPlace(page, `${address}?st=samples&sv=2`);
        await updateIsReported(page, ".viewer");
        await reload(page);
        await viewReady(page);
        assert.match(page.url(), /st=samples/);
      }),
  );

  for (const look of ["light", "phone"])
    await runner.test(
      `after an update, a missing chunk shows a request to reload the page: ${look}`,
      () =>
        withPage(
          browser,
          server,
          async (page, watch) => {
            watch.allowed.add(404);
            await gone(page, "sharing");
            await open(page);
            await page.click("button:has-text('Download')");
            await updateIsReported(page, ".menu-panel");
            const misfit = await page.$eval(".menu-panel:not([hidden])", (panel) => {
              const frame = panel.getBoundingClientRect();
              const outside = [...panel.querySelectorAll(".problem *")].filter((one) => {
                const box = one.getBoundingClientRect();
                return (
                  box.left < frame.left ||
                  box.right > frame.right ||
                  box.top < frame.top ||
                  box.bottom > frame.bottom
                );
              });
              return {
                outside: outside.map((one) => one.textContent),
                isHigh: panel.clientHeight > 300,
              };
            });
            assert.deepEqual(misfit, { outside: [], isHigh: false });
            await reload(page);
            await viewReady(page);
            await page.click("button:has-text('Download')");
            await page.waitForSelector(".menu-panel a[download]");

            await gone(page, "landing");
            await page.goto(`${server.url}/`);
            await updateIsReported(page, ".shell main");
            await reload(page);
            await page.waitForSelector(".drop");
          },
          { look },
        ),
    );

  await runner.test("a chunk that fails without a network is reported and loads on retry", () =>
    withPage(browser, server, async (page, watch) => {
      await open(page);
      await page.context().setOffline(true);
      await page.click("button:has-text('Download')");
      await page.waitForSelector(".menu-panel .problem");
      assert.equal(await page.textContent(".menu-panel .problem-status"), "offline");
      await page.context().setOffline(false);
      await page.click(".menu-panel button:has-text('Try again')");
      await page.waitForSelector(".menu-panel a[download]");
      watch.faults = watch.faults.filter((fault) => !fault.includes("ERR_INTERNET_DISCONNECTED"));
    }),
  );
}
