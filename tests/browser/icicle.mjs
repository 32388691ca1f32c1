// The icicle: orientation, visible part, and movement by pointer, touch and keys.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";
import { atRest, pressAndLeave, searchFor, soon, spoken, viewReady, withPage } from "./harness.mjs";
import { cpuProfile, deepText, encodePprof } from "./profiles.mjs";
import { root } from "./server.mjs";

const { build } = createRequire(join(root, "web/package.json"))("esbuild");

const rowPx = 22;

/** Waits for two frames of the screen, so that changes are painted. */
export const painted = (page) =>
  page.evaluate(
    () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))),
  );

/** The name in the tooltip at a point of the picture; "" without a frame. */
export async function nameAt(page, x, y) {
  await page.mouse.move(x, y);
  await painted(page);
  return page.evaluate(() =>
    document.querySelector(".tip").hidden ? "" : document.querySelector(".tip-name").textContent,
  );
}

/** The names in some rows at positions all over the picture. */
async function namesSeen(page) {
  const box = await page.locator(".icicle").boundingBox();
  const names = [];
  for (const row of [0, 1, 2, 4])
    for (let x = 30; x < box.width; x += 173)
      names.push(await nameAt(page, box.x + x, box.y + row * rowPx + 8));
  return names;
}

const parameters = (page) => new URL(page.url()).searchParams;
const seenPart = (page) => parameters(page).get("w")?.split("-").map(Number) ?? [0, 1];

/** A little longer than a long press (web/src/ui/long_press.ts). */
const beyondLongPressMs = 700;

async function ctrlWheel(page, deltaY) {
  await page.keyboard.down("Control");
  await page.mouse.wheel(0, deltaY);
  await page.keyboard.up("Control");
}

/** Touches; each finger is a list of positions. */
async function touch(page, ...fingers) {
  const client = await page.context().newCDPSession(page);
  const points = (i) =>
    fingers.map((finger, id) => ({
      x: finger[Math.min(i, finger.length - 1)][0],
      y: finger[Math.min(i, finger.length - 1)][1],
      id,
    }));
  const send = (type, touchPoints) =>
    client.send("Input.dispatchTouchEvent", { type, touchPoints });
  await send("touchStart", points(0));
  for (let i = 1; i < Math.max(...fingers.map((finger) => finger.length)); i++)
    await send("touchMove", points(i));
  await send("touchEnd", []);
  await client.detach();
}

/** From one position to another in ten steps. */
const line = ([x, y], [endX, endY]) =>
  Array.from({ length: 11 }, (_, i) => [x + ((endX - x) * i) / 10, y + ((endY - y) * i) / 10]);

export async function testIcicle(runner, browser, server) {
  const shared = await server.share(cpuProfile(11), {
    title: "Picture",
    filename: "cpu.pb.gz",
  });
  const at = (query = "") => `${server.url}/p/${shared.id}${query}`;
  const open = async (page, query) => {
    await page.goto(at(query));
    await viewReady(page);
    return page.locator(".icicle").boundingBox();
  };

  await runner.test("the flame graph is the icicle upside down", () =>
    withPage(browser, server, async (page) => {
      const up = await open(page);
      const places = [
        [20, 0],
        [20, 1],
        [20, 2],
        [300, 2],
        [700, 3],
        [up.width - 20, 1],
      ];
      const expected = [];
      for (const [x, row] of places)
        expected.push(await nameAt(page, up.x + x, up.y + row * rowPx + 8));
      assert.equal(expected[0], "all");
      assert.equal(expected[1], "main.main");
      await page.click(".segments button:has-text('Flame')");
      assert.equal(new URL(page.url()).searchParams.get("v"), "flame");
      const down = await page.locator(".icicle").boundingBox();
      for (const [i, [x, row]] of places.entries())
        assert.equal(
          await nameAt(page, down.x + x, down.y + down.height - row * rowPx - 8),
          expected[i],
          `row ${row}`,
        );

      await page.focus(".icicle");
      await page.keyboard.press("ArrowUp");
      assert.match(await spoken(page), /^main\.main,/);
      await page.keyboard.press("ArrowDown");
      assert.match(await spoken(page), /^all,/);
      await page.keyboard.press("1");
      assert.equal(page.url(), at());
      await page.keyboard.press("5");
      assert.equal(page.url(), at("?v=flame&sv=2"));
    }),
  );

  await runner.test(
    "a deep flame graph opens at its root and keeps its position when the window is resized",
    async () => {
      const { id } = await server.share(deepText(300));
      await withPage(browser, server, async (page) => {
        await page.goto(`${server.url}/p/${id}?v=flame&sv=2`);
        await viewReady(page);
        const below = () =>
          page.evaluate(() => {
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
        assert.equal(
          await nameAt(page, smaller.x + 100, smaller.y + smaller.height - 8),
          "level_9",
        );
        // The view follows the keyboard cursor.
        await page.focus(".icicle");
        for (let i = 0; i < 40; i++) await page.keyboard.press("ArrowUp");
        assert.match(await spoken(page), /^level_39,/);
        const gap = await below();
        assert.ok(gap > 40 * rowPx - smaller.height && gap < 42 * rowPx, `${gap}`);
      });
    },
  );

  await runner.test(
    "the wheel with Ctrl zooms around the pointer, and the link contains the position",
    () =>
      withPage(browser, server, async (page) => {
        const box = await open(page);
        const [x, y] = [box.x + 700, box.y + 2 * rowPx + 8];
        const under = await nameAt(page, x, y);
        for (let i = 0; i < 4; i++) await ctrlWheel(page, -120);
        await atRest(page);
        const [from, to] = seenPart(page);
        assert.ok(Math.abs(to - from - Math.exp(-4 * 60 * 0.006)) < 0.001, `${from} to ${to}`);
        const share = 700 / box.width;
        assert.ok(
          Math.abs(from + share * (to - from) - share) < 0.001,
          "the value under the pointer keeps its position",
        );
        assert.equal(await nameAt(page, x, y), under);
        const link = page.url();
        const names = await namesSeen(page);
        await page.reload();
        await viewReady(page);
        assert.equal(page.url(), link);
        assert.deepEqual(await namesSeen(page), names);

        // Zooming to a frame resets the part; back and forward restore both.
        await page.mouse.click(x, y);
        await page.waitForURL((url) => !url.searchParams.has("w") && url.searchParams.has("z"));
        const zoomed = page.url();
        await page.goBack();
        await atRest(page);
        assert.equal(page.url(), link);
        assert.deepEqual(await namesSeen(page), names);
        await page.goForward();
        await page.waitForURL(zoomed);

        // Zoomed out is the default, which needs no parameter in the link.
        await page.mouse.move(x, y);
        for (let i = 0; i < 12; i++) await ctrlWheel(page, 300);
        await atRest(page);
        assert.equal(page.url(), at());
      }),
  );

  await runner.test("a drag moves the picture, and a click zooms", () =>
    withPage(browser, server, async (page) => {
      const box = await open(page, "?w=0.25-0.5&sv=2");
      await page.mouse.move(box.x + 900, box.y + 60);
      await page.mouse.down();
      for (const x of [880, 800, 600, 500]) await page.mouse.move(box.x + x, box.y + 62);
      await page.mouse.up();
      await atRest(page);
      const [from, to] = seenPart(page);
      const moved = (400 / box.width) * 0.25;
      assert.ok(
        Math.abs(from - 0.25 - moved) < 0.002 && Math.abs(to - 0.5 - moved) < 0.002,
        `${from} to ${to}`,
      );
      assert.equal(parameters(page).get("z"), null);
      await pressAndLeave(page, ".icicle");
      await atRest(page);
      assert.deepEqual(seenPart(page), [from, to], "a pointer without a button moves nothing");
      await page.mouse.move(box.x + 400, box.y + 60);
      await page.keyboard.down("Shift");
      await page.mouse.wheel(0, -5000);
      await page.keyboard.up("Shift");
      await atRest(page);
      assert.deepEqual(
        seenPart(page),
        [0, 0.25],
        "the wheel with Shift moves the picture up to the edge",
      );
      await page.mouse.click(box.x + 100, box.y + rowPx + 8);
      await page.waitForURL(/[?&]z=/);
      assert.equal(parameters(page).get("w"), null);
    }),
  );

  await runner.test(
    "no tooltip is shown while the wheel moves the picture, then that of the new frame",
    () =>
      withPage(browser, server, async (page) => {
        const box = await open(page, "?w=0.25-0.5&sv=2");
        const tip = () =>
          page.evaluate(() =>
            document.querySelector(".tip").hidden
              ? ""
              : document.querySelector(".tip-name").textContent,
          );
        const isOverlayOut = () =>
          page.$eval(".icicle canvas:last-child", (canvas) => canvas.hidden);
        assert.ok(await isOverlayOut(), "the overlay is blank at first");
        const before = await nameAt(page, box.x + 300, box.y + 2 * rowPx + 8);
        assert.notEqual(before, "");
        await soon(async () => assert.ok(!(await isOverlayOut())));
        await page.evaluate(() => {
          const [tip, overlay] = [
            document.querySelector(".tip"),
            document.querySelector(".icicle canvas:last-child"),
          ];
          const note = () =>
            tip.hidden && overlay.hidden ? (tip.dataset.wentOut = "") : undefined;
          for (const element of [tip, overlay])
            new MutationObserver(note).observe(element, {
              attributeFilter: ["hidden"],
            });
        });
        await page.keyboard.down("Shift");
        await page.mouse.wheel(0, 900);
        await page.keyboard.up("Shift");
        await page.waitForSelector(".tip[data-went-out]", {
          state: "attached",
        });
        await atRest(page);
        await soon(async () => assert.notEqual(await tip(), ""));
        const after = await tip();
        assert.notEqual(after, before);
        await page.mouse.move(5, 5);
        await soon(async () => assert.ok(await isOverlayOut()));
        assert.equal(await nameAt(page, box.x + 300, box.y + 2 * rowPx + 8), after);
      }),
  );

  await runner.test(
    "keys zoom and move; beyond the zoomed frame, the link refers to its caller",
    () =>
      withPage(browser, server, async (page) => {
        await open(page);
        const width = () => seenPart(page)[1] - seenPart(page)[0];
        await page.keyboard.press("w");
        await atRest(page);
        assert.ok(Math.abs(width() - 1 / 1.6) < 0.001);
        await page.keyboard.press("+");
        await page.keyboard.press("d");
        await atRest(page);
        const [from] = seenPart(page);
        assert.ok(Math.abs(width() - 1 / 1.6 ** 2) < 0.001);
        await page.keyboard.press("a");
        await atRest(page);
        assert.ok(seenPart(page)[0] < from);
        await page.keyboard.press("Backspace");
        await atRest(page);
        assert.equal(page.url(), at());

        await page.focus(".icicle");
        for (const key of ["ArrowDown", "ArrowDown", "ArrowRight", "Enter"])
          await page.keyboard.press(key);
        await atRest(page);
        const zoomed = parameters(page).get("z");
        const name = await spoken(page);
        await page.keyboard.press("w");
        await atRest(page);
        assert.equal(parameters(page).get("z"), zoomed);
        assert.ok(parameters(page).has("w"));
        for (const key of ["-", "s"]) await page.keyboard.press(key);
        await atRest(page);
        assert.ok(parameters(page).has("w"));
        assert.notEqual(parameters(page).get("z"), zoomed);
        assert.equal(await spoken(page), name, "the cursor stays on its frame");
        await page.keyboard.press("0");
        assert.equal(page.url(), at());
        // In a text field, letters are typed.
        await searchFor(page, "");
        await page.focus("#search");
        await page.keyboard.type("was");
        await atRest(page);
        assert.equal(page.url(), at("?q=was&sv=2"));
      }),
  );

  await runner.test("the view moves to the keyboard cursor", () =>
    withPage(browser, server, async (page) => {
      await open(page, "?w=0.9-0.95&sv=2");
      await page.focus(".icicle");
      for (const key of ["ArrowDown", "ArrowDown", "ArrowDown"]) await page.keyboard.press(key);
      await atRest(page);
      assert.ok(seenPart(page)[0] < 0.8, page.url());
    }),
  );

  await runner.test("one finger moves the picture, and two fingers zoom it", () =>
    withPage(
      browser,
      server,
      async (page) => {
        const box = await open(page, "?w=0.25-0.5&sv=2");
        const y = box.y + 80;
        await touch(page, line([box.x + 300, y], [box.x + 100, y]));
        await atRest(page);
        let [from, to] = seenPart(page);
        assert.ok(
          Math.abs(from - 0.25 - (200 / box.width) * 0.25) < 0.012 &&
            Math.abs(to - from - 0.25) < 0.001,
          `${from} to ${to}`,
        );
        await touch(
          page,
          line([box.x + 150, y], [box.x + 100, y]),
          line([box.x + 250, y], [box.x + 300, y]),
        );
        await atRest(page);
        const before = to - from;
        [from, to] = seenPart(page);
        assert.ok(Math.abs((to - from) / before - 0.5) < 0.08, `${before} became ${to - from}`);
        assert.equal(parameters(page).get("z"), null, "the gesture is not a click");
        await page.touchscreen.tap(box.x + 200, box.y + rowPx + 8);
        await page.waitForURL(/[?&]z=/);
      },
      { look: "phone" },
    ),
  );

  await runner.test(
    "a long press opens the menu, also in a browser without contextmenu; a moving finger does not",
    () =>
      withPage(
        browser,
        server,
        async (page) => {
          // Like Safari on phones: no "contextmenu" event of its own.
          await page.addInitScript(() =>
            addEventListener(
              "contextmenu",
              (event) => event.isTrusted && event.stopImmediatePropagation(),
              true,
            ),
          );
          const stay = async ([x, y]) => {
            const client = await page.context().newCDPSession(page);
            const send = (type, touchPoints) =>
              client.send("Input.dispatchTouchEvent", { type, touchPoints });
            await send("touchStart", [{ x, y }]);
            return {
              move: (right) => send("touchMove", [{ x: x + right, y }]),
              go: () => send("touchEnd", []),
            };
          };
          const box = await open(page);
          const place = [box.x + 120, box.y + rowPx + 8];
          const finger = await stay(place);
          await page.waitForSelector(".frame-menu");
          await finger.go();
          await atRest(page);
          assert.equal(await page.locator(".frame-menu").count(), 1);
          assert.equal(
            parameters(page).get("z"),
            null,
            "releasing over the menu activates nothing",
          );
          await page.tap(".frame-menu button >> nth=0");
          await page.waitForSelector(".frame-menu", { state: "detached" });
          await open(page);
          const moving = await stay(place);
          for (let i = 1; i < 8; i++) await moving.move(12 * i);
          // The page's timers fire in order: that of a long press would have fired by then.
          await page.evaluate(
            (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
            beyondLongPressMs,
          );
          assert.equal(await page.locator(".frame-menu").count(), 0);
          await moving.go();
          await page.goto(at("?v=table&sv=2"));
          await viewReady(page);
          const row = await page.locator(".row >> nth=2").boundingBox();
          const second = await stay([row.x + 60, row.y + 8]);
          await page.waitForSelector(".frame-menu");
          await second.go();
        },
        { look: "phone" },
      ),
  );

  await runner.test(
    "a long press opens the menu, which keeps the focus when the finger is lifted",
    () =>
      withPage(browser, server, async (page) => {
        const box = await open(page);
        const client = await page.context().newCDPSession(page);
        await client.send("Input.dispatchTouchEvent", {
          type: "touchStart",
          touchPoints: [{ x: box.x + 120, y: box.y + rowPx + 8 }],
        });
        await page.waitForSelector(".frame-menu");
        await client.send("Input.dispatchTouchEvent", {
          type: "touchEnd",
          touchPoints: [],
        });
        await atRest(page);
        assert.ok(
          await page.evaluate(() =>
            document.activeElement.matches(".frame-menu button:first-of-type"),
          ),
        );
        await page.keyboard.press("Escape");
        await page.waitForSelector(".frame-menu", { state: "detached" });
      }),
  );

  await runner.test(
    "several moves per frame are painted once, and reduced motion is respected",
    async () => {
      const context = await browser.newContext({
        viewport: { width: 1200, height: 800 },
        reducedMotion: "reduce",
        ignoreHTTPSErrors: true,
      });
      await withPage(
        browser,
        server,
        async (page) => {
          await open(page);
          const wasSeenAtOnce = await page.evaluate(() => {
            const viewer = document.querySelector(".viewer");
            const isSeen = () =>
              getComputedStyle(document.querySelector(".icicle")).visibility === "visible";
            viewer.classList.add("waiting");
            const wasHidden = !isSeen();
            viewer.classList.remove("waiting");
            return wasHidden && isSeen();
          });
          assert.ok(wasSeenAtOnce, "a visible element can be focused");
          const paints = await page.evaluate(async () => {
            const scroller = document.querySelector(".icicle");
            const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
            let count = 0;
            const { putImageData } = CanvasRenderingContext2D.prototype;
            CanvasRenderingContext2D.prototype.putImageData = function (image, x, y) {
              if (this.canvas.parentElement.parentElement.parentElement === scroller) count++;
              return putImageData.call(this, image, x, y);
            };
            await frame();
            for (let i = 0; i < 30; i++)
              scroller.dispatchEvent(
                new WheelEvent("wheel", {
                  deltaY: -20,
                  ctrlKey: true,
                  clientX: 500,
                  clientY: 300,
                  bubbles: true,
                  cancelable: true,
                }),
              );
            await frame();
            await frame();
            CanvasRenderingContext2D.prototype.putImageData = putImageData;
            return count;
          });
          assert.equal(paints, 1);
          await atRest(page);
          const picture = () =>
            page.evaluate(() => document.querySelector(".icicle canvas").toDataURL());
          const before = await picture();
          await page.keyboard.press("-");
          await painted(page);
          const after = await picture();
          assert.notEqual(after, before);
          await atRest(page);
          assert.equal(await picture(), after, "the picture is painted at once");
        },
        { context },
      );
      await context.close();
    },
  );

  await runner.test(
    "rows computed as pixels equal what a canvas draws for the same boxes",
    async () => {
      const made = await build({
        entryPoints: [join(root, "web/src/views/icicle/bands.ts")],
        bundle: true,
        format: "iife",
        globalName: "bands",
        write: false,
      });
      const page = await browser.newPage();
      await page.evaluate(`${made.outputFiles[0].text}; globalThis.bands = bands`);
      // With a ratio of 1.25, rows start between pixels: at their border, a canvas blends each with
      // the background, and bands only once.
      for (const [ratio, most] of [
        [1, 4],
        [2, 4],
        [1.25, 20],
      ]) {
        const worst = await page.evaluate((pixelRatio) => {
          const contexts = [1, 2].map(() => {
            const canvas = document.createElement("canvas");
            [canvas.width, canvas.height] = [
              Math.round(700 * pixelRatio),
              Math.round(300 * pixelRatio),
            ];
            return canvas.getContext("2d", {
              alpha: false,
              willReadFrequently: true,
            });
          });
          const [drawn, put] = contexts;
          let state = 99;
          const random = () => (state = (state * 48271) % 2147483647) / 2147483647;
          const colours = ["#faf8f4", "#1f1a14", "#ff9c57", "#4488cc", "#e4dfd6"];
          drawn.setTransform(pixelRatio, 0, 0, pixelRatio, 0, 0);
          const grounds = [new globalThis.bands.Shapes(drawn), new globalThis.bands.Bands(put)];
          for (const ground of grounds) ground.begin(700, 300, pixelRatio, colours[0]);
          for (let top = -7; top < 300; top += 22) {
            for (const ground of grounds) ground.beginRow(top, 21, colours);
            for (let x = 0; x < 700;) {
              const right = Math.min(700, x + (random() < 0.7 ? 4 : 60) * random());
              const fill = 1 + Math.floor(random() * 4);
              for (const ground of grounds) ground.box(x, right, fill);
              x = right + (random() < 0.5 ? 0 : random() * 3);
            }
            for (const ground of grounds) ground.endRow();
          }
          for (const ground of grounds) ground.put();
          const [a, b] = contexts.map(
            (context) =>
              context.getImageData(0, 0, context.canvas.width, context.canvas.height).data,
          );
          return a.reduce((most, value, i) => Math.max(most, Math.abs(value - b[i])), 0);
        }, ratio);
        assert.ok(worst <= most, `${worst} of 255 levels apart at a ratio of ${ratio}`);
      }
      await page.close();
    },
  );

  await runner.test(
    "the minimap shows the whole tree, the visible part, and the search matches",
    () =>
      withPage(browser, server, async (page) => {
        const box = await open(page);
        const strip = await page.locator(".minimap").boundingBox();
        assert.equal(await page.locator(".minimap-seen").isVisible(), false, "all is seen");
        const picture = () =>
          page.evaluate(() => document.querySelector(".minimap canvas").toDataURL());
        const whole = await picture();

        // A drag chooses a part, dragging the rectangle moves it, a click beside it moves there.
        const across = (share) => strip.x + strip.width * share;
        await page.mouse.move(across(0.5), strip.y + 10);
        await page.mouse.down();
        await page.mouse.move(across(0.6), strip.y + 12);
        await page.mouse.move(across(0.7), strip.y + 12);
        await page.mouse.up();
        await atRest(page);
        const near = ([from, to], wantFrom, wantTo) =>
          assert.ok(
            Math.abs(from - wantFrom) < 0.004 && Math.abs(to - wantTo) < 0.004,
            `${from} to ${to}`,
          );
        near(seenPart(page), 0.5, 0.7);
        const seen = await page.locator(".minimap-seen").boundingBox();
        assert.ok(
          Math.abs(seen.x - across(0.5)) < 2 && Math.abs(seen.width - strip.width * 0.2) < 3,
        );
        await page.mouse.move(across(0.6), strip.y + 12);
        await page.mouse.down();
        await page.mouse.move(across(0.5), strip.y + 12);
        await page.mouse.move(across(0.4), strip.y + 12);
        await page.mouse.up();
        await atRest(page);
        near(seenPart(page), 0.3, 0.5);
        await page.mouse.click(across(0.9), strip.y + 12);
        await atRest(page);
        near(seenPart(page), 0.8, 1);
        assert.equal(await picture(), whole, "the tree in the minimap does not move");
        assert.equal(parameters(page).get("z"), null);

        const at800 = await page.locator(".icicle").boundingBox();
        assert.deepEqual(at800, box, "the layout does not change for the rectangle");
        await searchFor(page, "json");
        await painted(page);
        const colours = await page.evaluate(() => {
          const canvas = document.querySelector(".minimap canvas");
          const { data } = canvas
            .getContext("2d")
            .getImageData(0, canvas.height - 2, canvas.width, 1);
          const counts = new Map();
          for (let i = 0; i < data.length; i += 4) {
            const colour = `${data[i]},${data[i + 1]},${data[i + 2]}`;
            counts.set(colour, (counts.get(colour) ?? 0) + 1);
          }
          return [...counts].sort((a, b) => b[1] - a[1]);
        });
        const share = Number(/([\d.]+)%/.exec(await page.textContent("#search-result"))[1]) / 100;
        const marked = colours.find(([colour]) => colour === "184,66,10")[1] / strip.width;
        assert.ok(
          marked >= share - 0.01 && marked < share + 0.2,
          `${marked} of the strip for ${share} of the profile`,
        );
      }),
  );

  await runner.test("the minimap scrolls a deep tree in both orientations", async () => {
    const { id } = await server.share(deepText(2000));
    for (const view of ["icicle", "flame"])
      await withPage(browser, server, async (page) => {
        await page.goto(`${server.url}/p/${id}?v=${view}&sv=2`);
        await viewReady(page);
        const strip = await page.locator(".minimap").boundingBox();
        const place = () =>
          page.evaluate(() => {
            const scroller = document.querySelector(".icicle");
            return (scroller.scrollTop + scroller.clientHeight / 2) / scroller.scrollHeight;
          });
        assert.ok(view === "icicle" ? (await place()) < 0.05 : (await place()) > 0.95);
        await page.mouse.click(strip.x + 300, strip.y + 15);
        await painted(page);
        assert.ok(Math.abs((await place()) - 0.5) < 0.06, `${await place()}`);
        assert.equal(parameters(page).get("w"), null);
      });
  });

  await runner.test(
    "colours by package, binary, runtime and value, by menu, key and link, each with its legend",
    () =>
      withPage(browser, server, async (page) => {
        await open(page);
        /** The legend reads every name, so it appears shortly after the picture. */
        const legendShows = (words) =>
          page.waitForFunction(
            ([source, flags]) =>
              new RegExp(source, flags).test(
                [...document.querySelectorAll(".legend li")]
                  .map((one) => one.textContent.trim())
                  .join("\n"),
              ),
            [words.source, words.flags],
          );
        const picture = () =>
          page.evaluate(() => document.querySelector(".icicle canvas").toDataURL());
        const pictures = new Set([await picture()]);
        await legendShows(/^runtime \d/m);
        const expected = {
          binary: /^\(no binary\) 100%$/m,
          runtime: /^Go \d/m,
          value: /^0\nbelow 0\.1%\n0\.1%\n0\.3%\n1%\n3%\n10% and more$/m,
        };
        for (const [mode, words] of Object.entries(expected)) {
          await page.selectOption("[aria-label=Colours]", mode);
          assert.equal(parameters(page).get("c"), mode);
          await legendShows(words);
          await painted(page);
          pictures.add(await picture());
        }
        assert.equal(pictures.size, 4);
        await page.reload();
        await viewReady(page);
        assert.equal(await page.inputValue("[aria-label=Colours]"), "value");
        await legendShows(expected.value);
        await page.keyboard.press("k");
        assert.equal(page.url(), at());
        for (const mode of Object.keys(expected)) {
          await page.keyboard.press("k");
          assert.equal(parameters(page).get("c"), mode);
        }
      }),
  );

  await runner.test(
    "the server's pictures have the page's colours, by package, binary and value",
    async () => {
      // More packages than hues: the heaviest have their own, the others what is left.
      const packages = [
        "main.",
        "net/http.",
        "github.com/acme/store.(*DB).",
        "std::",
        "größe::",
        "java.util.concurrent.A.",
        "",
        "日本::",
      ];
      const many = Array.from({ length: 22 }, (_, i) => `crate${i}::`);
      const samples = [...packages, ...many].map((name, i) => ({
        stack: ["main.main", `${name}first`, `${name}second${i}`],
        values: [i % 3 ? 900 - 17 * i : 40 + i],
      }));
      const { id } = await server.share(
        encodePprof({
          types: [["work", "count"]],
          samples,
          binary: "/opt/app/worker",
        }),
        { title: "Colours" },
      );
      const rgb = (colour) =>
        (colour.startsWith("#")
          ? [1, 3, 5].map((from) => parseInt(colour.slice(from, from + 2), 16))
          : colour.match(/\d+/g).map(Number)
        ).join();
      await withPage(browser, server, async (page) => {
        for (const [colour, leastColours] of [
          ["package", 16],
          ["binary", 3],
          ["value", 3],
        ]) {
          const query = colour === "package" ? "" : `&c=${colour}`;
          await page.goto(`${server.url}/p/${id}?v=table${query}&sv=2`);
          await page.waitForSelector(".rows .row .swatch");
          const painted = await page.$$eval(".rows .row", (rows) =>
            rows.map((row) => [
              row.dataset.function,
              row.querySelector(".swatch").style.background,
            ]),
          );
          const { bytes } = await server.call("GET", `/p/${id}.svg?sv=2${query}`);
          const drawn = new Map(
            [
              ...bytes
                .toString()
                .matchAll(/<title>([^<]*) \([^<]*<\/title><rect [^>]*fill="(#[0-9a-f]{6})"/g),
            ].map(([, name, fill]) => [name, fill]),
          );
          assert.ok(painted.length >= 20);
          assert.ok(new Set(painted.map(([, shown]) => shown)).size >= leastColours, colour);
          for (const [name, shown] of painted)
            assert.equal(rgb(drawn.get(name)), rgb(shown), `${name} by ${colour}`);
        }
      });
    },
  );
}
