// High contrast: systems that request it, and systems that force their own colours on all pages.
// The canvas is checked by its pixels.
import assert from "node:assert/strict";
import { join } from "node:path";
import { axeFindings, screenshots, setInPlace, viewReady, withPage } from "./harness.mjs";
import { cpuProfile, cpuSamples } from "./profiles.mjs";

const rowPx = 22;
const modes = {
  more: { colorScheme: "light", contrast: "more" },
  "more-dark": { colorScheme: "dark", contrast: "more" },
  forced: { colorScheme: "dark", forcedColors: "active" },
  "forced-light": { colorScheme: "light", forcedColors: "active" },
};

/** The contrast of two [r, g, b], as defined by WCAG 2. */
function contrast(a, b) {
  const luminance = (channels) => {
    const [r, g, b] = channels.map((value) =>
      value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4,
    );
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}
const channels = (text) =>
  text
    .match(/[\d.]+/g)
    .slice(0, 3)
    .map(Number);
const isSame = (a, b) => a.every((value, i) => Math.abs(value - b[i]) <= 2);

/** The uppermost rows of boxes of a canvas, as rows of [r, g, b]. */
async function pixelsOf(page, selector) {
  const { width, text } = await page.$eval(
    selector,
    (canvas, height) => {
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, height);
      return {
        width: canvas.width,
        text: Array.from(data, (byte) => String.fromCharCode(byte)).join(""),
      }; // arrays of numbers are slow to transfer
    },
    3 * rowPx,
  );
  const channel = (x, y, i) => text.charCodeAt(4 * (y * width + x) + i);
  return Array.from({ length: 3 * rowPx }, (_, y) =>
    Array.from({ length: width }, (_, x) => [0, 1, 2].map((i) => channel(x, y, i))),
  );
}

/** The height of the sampled line in a row: below the thickest upper edge, above all letters. */
const lineY = 3;

/** The insides of boxes along that line, between their edges: [first, last]. */
function boxesOf(pixels, row, ink, least) {
  const line = pixels[row * rowPx + lineY];
  const found = [];
  let from = -1;
  for (let x = 0; x < line.length; x++) {
    if (!isSame(line[x], ink)) continue;
    if (from >= 0 && x - from - 1 >= least) found.push([from + 1, x - 1]);
    from = x;
  }
  return found;
}

function mostOf(colours) {
  const counts = new Map();
  for (const colour of colours) counts.set(String(colour), (counts.get(String(colour)) ?? 0) + 1);
  return [...counts]
    .sort((a, b) => b[1] - a[1])[0][0]
    .split(",")
    .map(Number);
}

/** The page's colours of text and background. */
const groundOf = (page) =>
  page.evaluate(() => {
    const { color, backgroundColor } = getComputedStyle(document.documentElement);
    return { text: color, background: backgroundColor };
  });

/** The children of the only function below the root, by name. */
function childrenOf(samples) {
  const sums = new Map();
  for (const { stack, values } of samples)
    if (stack.length > 1) sums.set(stack[1], (sums.get(stack[1]) ?? 0) + values[1]);
  return sums;
}

async function checkPicture(page, samples) {
  const ground = await groundOf(page);
  const [ink, background] = [channels(ground.text), channels(ground.background)];
  const pixels = await pixelsOf(page, ".icicle canvas");
  const least = 60;
  const sums = childrenOf(samples);
  const total = samples.reduce((sum, { values }) => sum + values[1], 0);
  const width = pixels[0].length;
  const wide = [...sums.values()].filter((value) => (value / total) * width > least + 8).length;
  let count = 0;
  for (let row = 0; row < 3; row++)
    for (const [first, last] of boxesOf(pixels, row, ink, least)) {
      const top = row * rowPx;
      const middle = (first + last) >> 1;
      const fill = mostOf(pixels[top + lineY].slice(first + 3, last - 2));
      // All four edges, each distinguishable from the box and from the page.
      for (const [x, y] of [
        [middle, top],
        [middle, top + rowPx - 2],
        [first - 1, top + 10],
        [last + 1, top + 10],
      ])
        assert.ok(
          isSame(pixels[y][x], ink),
          `row ${row}: the edge at ${x},${y} is ${pixels[y][x]}, not ${ink}`,
        );
      assert.ok(
        contrast(ink, fill) >= 7 && contrast(ink, background) >= 7,
        `row ${row}: ${fill} on ${background}`,
      );
      let best = 1;
      for (let y = top + 4; y < top + 18; y++)
        for (let x = first + 3; x < last - 3; x++)
          best = Math.max(best, contrast(pixels[y][x], fill));
      assert.ok(best >= 7, `row ${row}: the name in the box at ${first} has ${best} to 1`);
      if (row === 2) count++;
    }
  assert.ok(wide >= 4 && count >= wide, `${count} boxes with names, of ${wide}`);
  return { ink, pixels };
}

/** Search matches have a thick edge, and only they. */
async function checkFound(page, samples, pattern) {
  const ground = await groundOf(page);
  const ink = channels(ground.text);
  const pixels = await pixelsOf(page, ".icicle canvas");
  const thick = boxesOf(pixels, 2, ink, 60).filter(([first, last]) =>
    isSame(pixels[2 * rowPx + 2][(first + last) >> 1], ink),
  ).length;
  const total = samples.reduce((sum, { values }) => sum + values[1], 0);
  const wanted = [...childrenOf(samples)].filter(
    ([name, value]) => pattern.test(name) && (value / total) * pixels[0].length > 68,
  ).length;
  assert.ok(wanted >= 1);
  assert.equal(thick, wanted);
}

/** Every button has an edge; a pressed one looks different. */
async function checkButtons(page) {
  const found = await page.evaluate(() => {
    const isSeen = (one) => one.checkVisibility() && one.getBoundingClientRect().width > 1;
    const edgeless = [...document.querySelectorAll(".button, .icon-button, select")]
      .filter(isSeen)
      .filter((one) => {
        const { borderTopWidth, borderTopColor, backgroundColor } = getComputedStyle(one);
        return (
          parseFloat(borderTopWidth) < 1 ||
          borderTopColor === "rgba(0, 0, 0, 0)" ||
          borderTopColor === backgroundColor
        );
      });
    const look = (one) => {
      const { backgroundColor, color, boxShadow } = getComputedStyle(one);
      return JSON.stringify([backgroundColor, color, boxShadow]);
    };
    const [pressed, other] = ["true", "false"].map((value) =>
      look(document.querySelector(`.segments button[aria-pressed=${value}]`)),
    );
    return {
      edgeless: edgeless.map((one) => one.outerHTML.slice(0, 120)),
      pressed,
      other,
    };
  });
  assert.deepEqual(found.edgeless, []);
  assert.notEqual(found.pressed, found.other);
}

/** Every tab stop has a focus ring of at least two pixels that is visible on the page. */
async function checkFocus(page) {
  const background = channels((await groundOf(page)).background);
  await page.evaluate(() => document.querySelector(".brand").focus());
  for (let i = 0; ; i++) {
    await page.keyboard.press("Tab");
    if (await page.evaluate(() => document.activeElement === document.body))
      return assert.ok(i > 15, `${i} stops`);
    const ring = await page.evaluate(() => {
      const { activeElement: at } = document;
      const owner = at.matches(".search input") ? at.closest(".search") : at;
      const { outlineStyle, outlineWidth, outlineColor, forcedColorAdjust } =
        getComputedStyle(owner);
      return {
        outlineStyle,
        outlineWidth: parseFloat(outlineWidth),
        outlineColor,
        forcedColorAdjust,
        what: at.outerHTML.slice(0, 120),
      };
    });
    assert.ok(ring.outlineStyle !== "none" && ring.outlineWidth >= 2, JSON.stringify(ring));
    // For elements that use system colours by their own choice, Chromium reports colours of another
    // theme than it paints.
    if (ring.forcedColorAdjust !== "none")
      assert.ok(contrast(channels(ring.outlineColor), background) >= 3, JSON.stringify(ring));
  }
}

/** The boxes of the call graph are SVG shapes. */
async function checkGraph(page) {
  const boxes = await page.evaluate(() =>
    [...document.querySelectorAll(".graph-node")].map((node) => {
      const { fill, stroke } = getComputedStyle(node.querySelector("rect"));
      return {
        fill,
        stroke,
        ink: getComputedStyle(node.nextElementSibling.querySelector("text")).fill,
      };
    }),
  );
  assert.ok(boxes.length > 5);
  for (const { fill, stroke, ink } of boxes) {
    assert.ok(contrast(channels(fill), channels(ink)) >= 7, `${ink} on ${fill}`);
    assert.ok(contrast(channels(fill), channels(stroke)) >= 3, `${stroke} around ${fill}`);
  }
}

export async function testContrast(runner, browser, server) {
  if (!runner.wants("high contrast")) return;
  const samples = cpuSamples(61, 300);
  const first = await server.share(cpuProfile(61, 300), {
    title: "For strong eyes",
    description: "Some `code` and a [link](https://example.org/).",
  });
  const second = await server.share(cpuProfile(62, 300));
  for (const [name, mode] of Object.entries(modes)) {
    const context = await browser.newContext({
      ...mode,
      viewport: { width: 1280, height: 800 },
      reducedMotion: "reduce",
      ignoreHTTPSErrors: true,
      bypassCSP: true,
    });
    const isForced = Boolean(mode.forcedColors);
    // In forced colours the system sets the text colours; axe checks the elements that keep their
    // own.
    const rules = isForced ? {} : { "color-contrast-enhanced": { enabled: true } };
    // The modes have one layout, so all rules run in the first mode and only colours in the others.
    const only =
      name === "more" ? null : ["color-contrast", ...(isForced ? [] : ["color-contrast-enhanced"])];
    const path = `${server.url}/p/${first.id}`;
    try {
      await withPage(
        browser,
        server,
        async (page) => {
          const check = async (what, url, act) => {
            await (page.url().startsWith(path) && url.startsWith(path)
              ? setInPlace(page, url)
              : page.goto(url));
            await (what === "landing" ? page.waitForSelector(".drop") : viewReady(page));
            await act?.();
            await page.screenshot({
              path: join(screenshots, `${name}-contrast-${what}.png`),
            });
            assert.deepEqual(await axeFindings(page, rules, only), [], what);
          };
          await runner.test(
            `high contrast (${name}): boxes have edges, names 7 to 1, search matches a thick edge`,
            async () => {
              await check("icicle", `${path}?sv=2`, async () => {
                await page.waitForFunction(() => document.adoptedStyleSheets.length > 0);
                await checkPicture(page, samples);
                await checkButtons(page);
                await checkFocus(page);
              });
              await check("found", `${path}?q=json&sv=2`, () => checkFound(page, samples, /json/));
            },
          );
          await runner.test(`high contrast (${name}): the other views and pages`, async () => {
            await check("table", `${path}?v=table&b=flame&m=runtime.mallocgc&sv=2`, async () => {
              const chosen = await page.$eval(".rows .row.chosen", (row) =>
                parseFloat(getComputedStyle(row).outlineWidth),
              );
              assert.ok(chosen >= 2);
            });
            await check("sandwich", `${path}?v=sandwich&m=runtime.mallocgc&sv=2`);
            await check("graph", `${path}?v=graph&m=runtime.mallocgc&q=json&sv=2`, () =>
              checkGraph(page),
            );
            await check("peek", `${path}?v=peek&m=runtime.mallocgc&sv=2`);
            await check("diff", `${server.url}/d/${first.id}..${second.id}?v=table&b=icicle&sv=2`);
            await check("comments", `${path}?b=comments&sv=2`, async () => {
              await page.waitForSelector(".talk");
              const sheets = await page.evaluate(() =>
                document.adoptedStyleSheets.map((sheet) =>
                  [...sheet.cssRules].map(({ cssText }) => cssText).join(""),
                ),
              );
              assert.ok(
                sheets.some((sheet) => sheet.includes(".talk")) && !sheets.at(-1).includes(".talk"),
                "the style for more contrast takes precedence",
              );
            });
            await check("landing", server.url);
          });
        },
        { context },
      );
    } finally {
      await context.close();
    }
  }
}
