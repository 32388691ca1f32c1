// Without a mouse: a file is chosen, shown, shared, read, searched, compared, and its link copied.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { looks, pasted, spoken, told, viewReady, withPage } from "./harness.mjs";
import { cpuProfile, cpuSamples, topOf, totalOf } from "./profiles.mjs";

/** Presses Tab until what has the focus matches; a page must reach everything in so many steps. */
async function tabTo(page, selector, { steps = 60, back = false } = {}) {
  for (let i = 0; i < steps; i++) {
    if (await page.evaluate((wanted) => document.activeElement?.matches(wanted) ?? false, selector)) return;
    await page.keyboard.press(back ? "Shift+Tab" : "Tab");
  }
  const at = await page.evaluate(() => document.activeElement?.outerHTML.slice(0, 200));
  throw new Error(`no Tab leads to ${selector}; the focus is on ${at}`);
}

/** What has the focus must be seen to have it. */
async function assertFocusIsSeen(page) {
  const style = await page.evaluate(() => {
    const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(document.activeElement);
    return { outlineStyle, outlineWidth: parseFloat(outlineWidth), boxShadow };
  });
  assert.ok((style.outlineStyle !== "none" && style.outlineWidth >= 1) || style.boxShadow !== "none", JSON.stringify(style));
}

/** As a system's dialog does, which no test can type into. */
async function chooseByKey(page, selector, file) {
  page.on("filechooser", () => undefined); // from now on, so that none opens unseen
  await tabTo(page, selector);
  const [chooser] = await Promise.all([page.waitForEvent("filechooser"), page.keyboard.press("Space")]);
  await chooser.setFiles(file);
}

export async function testKeyboard(runner, browser, server) {
  await runner.test("all by keyboard: upload, read, compare, share", async () => {
    const folder = mkdtempSync(join(tmpdir(), "perfolio-keyboard-"));
    const context = await browser.newContext({ ...looks.light, ignoreHTTPSErrors: true, permissions: ["clipboard-read", "clipboard-write"] });
    try {
      const file = join(folder, "cpu.pb.gz");
      writeFileSync(file, cpuProfile(91));
      const other = await server.share(cpuProfile(92), { title: "The other one" });
      await withPage(browser, server, async (page) => {
        await page.goto(server.url);
        await page.waitForSelector("input[type=file]", { state: "attached" });
        await chooseByKey(page, "input[type=file]", file);
        await viewReady(page);
        await tabTo(page, "button.primary[type=submit]", { back: true, steps: 120 });
        await assertFocusIsSeen(page);
        await page.keyboard.press("Enter");
        await page.waitForSelector("a.button.primary[href*='/p/']");
        await tabTo(page, "a.button.primary[href*='/p/']");
        await page.keyboard.press("Enter");
        await page.waitForURL(/\/p\/[0-9A-Za-z]{22}/);
        await viewReady(page);

        const samples = cpuSamples(91);
        await tabTo(page, ".icicle");
        await assertFocusIsSeen(page);
        await page.keyboard.press("ArrowDown");
        assert.match(await spoken(page), /^main\.main, total /);
        await page.keyboard.press("/");
        await page.keyboard.type("json");
        assert.match(await page.textContent("#search-result"), /functions? · /);
        await page.keyboard.press("Tab");
        await page.keyboard.press("2");
        await page.waitForSelector(".rows .row");
        await tabTo(page, ".rows .row button");
        await page.keyboard.press("Enter");
        const marked = new URL(page.url()).searchParams.get("m");
        assert.ok(topOf(samples, 0).has(marked), marked);

        await tabTo(page, ".profile-tools > button:nth-of-type(2)", { back: true });
        await page.keyboard.press("Enter");
        await page.waitForSelector("dialog[open] input");
        await tabTo(page, "dialog[open] input");
        await page.keyboard.type(`${server.url}/p/${other.id}`);
        await page.keyboard.press("Enter");
        await page.waitForURL(/\/d\//);
        await viewReady(page);
        const total = (await page.textContent(".foot-total")).split(" in ")[0];
        assert.ok(total.includes("→"), total);
        assert.notEqual(totalOf(samples, 1), totalOf(cpuSamples(92), 1));
        await page.keyboard.press("y");
        await told(page, "Link copied");
        assert.equal(await pasted(page), page.url());
      }, { context });
    } finally {
      await context.close();
      rmSync(folder, { recursive: true });
    }
  });
}
