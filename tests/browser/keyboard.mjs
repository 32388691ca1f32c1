// Without a mouse: choose, view, share, read, search and compare a file, and copy its link.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  looks,
  pasted,
  soon,
  spoken,
  tableRows,
  messageShown,
  viewReady,
  withPage,
} from "./harness.mjs";
import { cpuProfile, cpuSamples, encodePprof, matchOf, totalOf } from "./profiles.mjs";

/**
 * Presses Tab until the focused element matches; its focus must be visible. The page must reach
 * everything within this number of steps.
 */
async function tabTo(page, selector, { steps = 60, back = false } = {}) {
  for (let i = 0; i < steps; i++) {
    if (await page.evaluate((wanted) => document.activeElement?.matches(wanted) ?? false, selector))
      return assertFocusIsSeen(page);
    await page.keyboard.press(back ? "Shift+Tab" : "Tab");
  }
  const at = await page.evaluate(() => document.activeElement?.outerHTML.slice(0, 200));
  throw new Error(`no Tab leads to ${selector}; the focus is on ${at}`);
}

/** The focused element must look focused. */
async function assertFocusIsSeen(page) {
  const style = await page.evaluate(() => {
    const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(document.activeElement);
    return { outlineStyle, outlineWidth: parseFloat(outlineWidth), boxShadow };
  });
  assert.ok(
    (style.outlineStyle !== "none" && style.outlineWidth >= 1) || style.boxShadow !== "none",
    JSON.stringify(style),
  );
}

/** Replaces the file dialog of the system, which tests cannot use. */
async function chooseByKey(page, selector, file) {
  page.on("filechooser", () => undefined); // keeps dialogs from opening
  await tabTo(page, selector);
  const [chooser] = await Promise.all([
    page.waitForEvent("filechooser"),
    page.keyboard.press("Space"),
  ]);
  await chooser.setFiles(file);
}

export async function testKeyboard(runner, browser, server) {
  await runner.test("a profile is uploaded, read, compared and shared with keys only", async () => {
    const folder = mkdtempSync(join(tmpdir(), "perfolio-keyboard-"));
    const context = await browser.newContext({
      ...looks.light,
      ignoreHTTPSErrors: true,
      permissions: ["clipboard-read", "clipboard-write"],
    });
    try {
      const file = join(folder, "cpu.pb.gz");
      writeFileSync(file, cpuProfile(91));
      const other = await server.share(cpuProfile(92), {
        title: "The other one",
      });
      await withPage(
        browser,
        server,
        async (page) => {
          await page.goto(server.url);
          await page.waitForSelector("input[type=file]", {
            state: "attached",
          });
          await chooseByKey(page, "input[type=file]", file);
          await viewReady(page);
          await tabTo(page, "button.primary[type=submit]", {
            back: true,
            steps: 120,
          });
          await page.keyboard.press("Enter");
          await page.waitForSelector("a.button.primary[href*='/p/']");
          await tabTo(page, "a.button.primary[href*='/p/']");
          await page.keyboard.press("Enter");
          await page.waitForURL(/\/p\/[0-9A-Za-z]{22}/);
          await viewReady(page);

          const samples = cpuSamples(91);
          await tabTo(page, ".icicle");
          await page.keyboard.press("ArrowDown");
          assert.match(await spoken(page), /^main\.main, total /);
          await page.keyboard.press("/");
          await page.keyboard.type("json");
          const found = matchOf(samples, 1, /json/i);
          await soon(async () =>
            assert.ok(
              (await page.textContent("#search-result")).startsWith(
                `${found.functions} functions · `,
              ),
            ),
          );
          await page.keyboard.press("Tab");
          await page.keyboard.press("2");
          await page.waitForSelector(".rows .row");
          await tabTo(page, ".rows");
          await page.keyboard.press("ArrowDown");
          const [[, , first]] = await tableRows(page);
          assert.match(first, /json/i, "rows that match the search");
          await page.keyboard.press("Enter");
          await page.waitForURL((url) => url.searchParams.get("m") === first);

          await tabTo(page, ".profile-tools > button:nth-of-type(2)", {
            back: true,
          });
          await page.keyboard.press("Enter");
          await page.waitForSelector("dialog[open] input");
          await tabTo(page, "dialog[open] input");
          await page.keyboard.type(`${server.url}/p/${other.id}`);
          await page.keyboard.press("Enter");
          await page.waitForURL(/\/d\//);
          await viewReady(page);
          const [before, after] = [cpuSamples(92), samples].map(
            (one) => `${Number((totalOf(one, 1) / 1e9).toPrecision(3))} s`,
          );
          assert.equal(
            (await page.textContent(".foot-total")).split(" in ")[0],
            `${before} → ${after}`,
          );
          await page.keyboard.press("y");
          await messageShown(page, "Link copied");
          assert.equal(await pasted(page), page.url());
        },
        { context },
      );
    } finally {
      await context.close();
      rmSync(folder, { recursive: true });
    }
  });

  await runner.test(
    "the rows of a table are one tab stop, and arrow and page keys move between rows",
    async () => {
      const stacks = Array.from({ length: 2000 }, (_, i) => ({
        stack: ["main", `work ${String(i).padStart(4, "0")}`],
        values: [10_000 - i],
      }));
      const { id } = await server.share(
        encodePprof({ types: [["work", "count"]], samples: stacks }),
        { title: "Rows" },
      );
      await withPage(browser, server, async (page) => {
        await page.goto(`${server.url}/p/${id}?v=table&sv=2`);
        await page.waitForSelector(".rows .row");
        const focused = () =>
          page.evaluate(() => [
            document.activeElement.closest(".row")?.getAttribute("aria-rowindex") - 2,
            document.activeElement.getAttribute("aria-label"),
          ]);
        const press = async (key, row) => {
          await page.keyboard.press(key);
          await soon(async () => assert.equal((await focused())[0], row, key));
          const isSeen = await page.evaluate(() => {
            const [row, rows] = [document.activeElement, document.querySelector(".rows")].map(
              (one) => one.getBoundingClientRect(),
            );
            return row.top >= rows.top && row.bottom <= rows.bottom;
          });
          assert.ok(isSeen, `the row is in sight after ${key}`);
        };
        await tabTo(page, ".rows");
        await press("ArrowDown", 0);
        await press("ArrowUp", 0);
        await press("ArrowDown", 1);
        assert.deepEqual(await focused(), [1, "work 0001"]);
        await press("End", 2000); // main itself is the last: it has nothing of its own
        assert.deepEqual(await focused(), [2000, "main"]);
        await press("ArrowDown", 2000);
        const pageRows = await page.evaluate(
          () => Math.floor(document.querySelector(".rows").clientHeight / 30) - 1,
        );
        await press("PageUp", 2000 - pageRows);
        await press("PageDown", 2000);
        await press("Home", 0);
        for (let row = 1; row <= 40; row++) await press("ArrowDown", row);
        await page.keyboard.press("Enter");
        await page.waitForURL((url) => url.searchParams.get("m") === "work 0040");
        await page.keyboard.press("Tab");
        assert.equal(await page.evaluate(() => document.activeElement.closest(".rows")), null);

        await page.keyboard.press("?");
        assert.match(await page.textContent("dialog[open]"), /PageDown/);
      });
    },
  );

  await runner.test(
    "keys for a function apply to the focused row, box or half, and to nothing elsewhere",
    async () => {
      const { id } = await server.share(cpuProfile(93), { title: "Keys" });
      await withPage(browser, server, async (page) => {
        const open = async (query) => {
          await page.goto(`${server.url}/p/${id}?${query}&sv=2`);
          await viewReady(page);
        };
        const focusOn = (selector, at = 0) => page.locator(selector).nth(at).focus();
        const chain = () => new URL(page.url()).searchParams.get("x") ?? "";
        const ruleFor = (name) => `^${name.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")}$`;
        const menuOf = async () => {
          await page.keyboard.press(".");
          const name = await page.textContent(".frame-menu-title");
          await page.keyboard.press("Escape");
          return name;
        };

        await open("b=table");
        await page.focus(".icicle");
        for (const key of ["ArrowDown", "ArrowDown"]) await page.keyboard.press(key);
        const stands = (await spoken(page)).split(", total")[0];
        assert.equal(await menuOf(), stands);
        const name = await page.locator(".rows .row button").nth(3).getAttribute("aria-label");
        assert.notEqual(name, stands);
        await focusOn(".rows .row button", 3);
        assert.equal(await menuOf(), name);
        await page.keyboard.press("h");
        await viewReady(page);
        assert.equal(chain(), `hide:${ruleFor(name)}`);
        await page.focus(".rows");
        for (const key of ["f", "m", ".", "l"]) await page.keyboard.press(key);
        assert.equal(chain(), `hide:${ruleFor(name)}`);
        assert.equal(await page.locator(".frame-menu, .marked").count(), 0);

        await open("v=sandwich&m=main.main");
        await page.waitForSelector(".sandwich-half");
        await focusOn(".sandwich-half .icicle", 1);
        await page.keyboard.press("ArrowDown");
        const callee = (await page.textContent("#callees-cursor")).split(", total")[0];
        assert.notEqual(callee, "main.main");
        assert.equal(await menuOf(), callee);
        await page.keyboard.press("i");
        await viewReady(page);
        assert.equal(chain(), `ignore:${ruleFor(callee)}`);

        // Keys must not refer to a zoomed frame of a view that is not shown.
        await open("v=icicle");
        await page.focus(".icicle");
        for (const key of ["ArrowDown", "ArrowDown", "Enter", "2"]) await page.keyboard.press(key);
        await viewReady(page);
        await page.evaluate(() => document.activeElement.blur());
        await page.keyboard.press("f");
        assert.equal(chain(), "");
      });
    },
  );
}
