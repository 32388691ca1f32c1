// The picture of the tree: which way up, what part is seen, how hands and keys move it.
import assert from "node:assert/strict";
import { spoken, viewReady, withPage } from "./harness.mjs";
import { cpuProfile, deepText } from "./profiles.mjs";

const rowPx = 22;

/** Two frames of the screen: what was asked for is painted. */
export const painted = (page) => page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));

/** The name under a point of the picture, as the tooltip tells it; "" where no frame is. */
export async function nameAt(page, x, y) {
  await page.mouse.move(x, y);
  await painted(page);
  return page.evaluate(() => (document.querySelector(".tip").hidden ? "" : document.querySelector(".tip-name").textContent));
}

export async function testIcicle(runner, browser, server) {
  const shared = await server.share(cpuProfile(11), { title: "Picture", filename: "cpu.pb.gz" });
  const at = (query = "") => `${server.url}/p/${shared.id}${query}`;
  const open = async (page, query) => {
    await page.goto(at(query));
    await viewReady(page);
    return page.locator(".icicle").boundingBox();
  };

  await runner.test("the flame is the icicle upside down", () =>
    withPage(browser, server, async (page) => {
      const up = await open(page);
      const places = [[20, 0], [20, 1], [20, 2], [300, 2], [700, 3], [up.width - 20, 1]];
      const expected = [];
      for (const [x, row] of places) expected.push(await nameAt(page, up.x + x, up.y + row * rowPx + 8));
      assert.equal(expected[0], "all");
      assert.equal(expected[1], "main.main");
      await page.click(".segments button:has-text('Flame')");
      assert.equal(new URL(page.url()).searchParams.get("v"), "flame");
      const down = await page.locator(".icicle").boundingBox();
      for (const [i, [x, row]] of places.entries())
        assert.equal(await nameAt(page, down.x + x, down.y + down.height - row * rowPx - 8), expected[i], `row ${row}`);

      await page.focus(".icicle");
      await page.keyboard.press("ArrowUp");
      assert.match(await spoken(page), /^main\.main,/);
      await page.keyboard.press("ArrowDown");
      assert.match(await spoken(page), /^all,/);
      await page.keyboard.press("1");
      assert.equal(page.url(), at());
      await page.keyboard.press("4");
      assert.equal(page.url(), at("?v=flame&sv=1"));
    }),
  );

  await runner.test("a deep flame begins at its root and keeps its place when the window changes", async () => {
    const { id } = await server.share(deepText(300));
    await withPage(browser, server, async (page) => {
      await page.goto(`${server.url}/p/${id}?v=flame&sv=1`);
      await viewReady(page);
      const below = () => page.evaluate(() => {
        const scroller = document.querySelector(".icicle");
        return scroller.scrollHeight - scroller.clientHeight - scroller.scrollTop;
      });
      assert.equal(await below(), 0);
      const box = await page.locator(".icicle").boundingBox();
      assert.equal(await nameAt(page, box.x + 100, box.y + box.height - rowPx - 8), "level_0");
      await page.evaluate(() => (document.querySelector(".icicle").scrollTop -= 220));
      await page.setViewportSize({ width: 1200, height: 700 });
      await painted(page);
      assert.equal(await below(), 220);
      const smaller = await page.locator(".icicle").boundingBox();
      assert.equal(await nameAt(page, smaller.x + 100, smaller.y + smaller.height - 8), "level_9");
      // The keyboard brings the view along.
      await page.focus(".icicle");
      for (let i = 0; i < 40; i++) await page.keyboard.press("ArrowUp");
      assert.match(await spoken(page), /^level_39,/);
      const gap = await below();
      assert.ok(gap > 40 * rowPx - smaller.height && gap < 42 * rowPx, `${gap}`);
    });
  });
}
