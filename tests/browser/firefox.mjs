// The distribution's Firefox shows a profile like Chromium: the same numbers, a painted picture, no
// errors.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { timeoutMs, screenshots } from "./harness.mjs";
import { cpuProfile, cpuSamples, matchOf, topOf } from "./profiles.mjs";
import { root } from "./server.mjs";

const puppeteer = createRequire(join(root, "web/package.json"))("puppeteer-core");
const program = process.env.FIREFOX ?? "/usr/bin/firefox-esr";

async function openFirefox() {
  if (!existsSync(program))
    throw new Error(`${program} is missing: make deps-test installs it, or set FIREFOX`);
  return puppeteer.launch({
    browser: "firefox",
    executablePath: program,
    headless: true,
    acceptInsecureCerts: true,
    timeout: timeoutMs,
  });
}

const viewReady = (page) =>
  page.waitForFunction(
    () =>
      document.querySelector(".viewer:not(.waiting)[aria-busy=false] .viewer-foot") &&
      !document.querySelector(".pane .loading"),
    { timeout: timeoutMs },
  );

/** The number of colours on a canvas: a blank one has one. */
const colourCount = (page) =>
  page.$eval(".icicle canvas", (canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return new Set(new Uint32Array(data.buffer)).size;
  });

export async function testFirefox(runner, _browser, server) {
  if (!runner.wants("Firefox")) return;
  const samples = cpuSamples(61);
  const one = await server.share(cpuProfile(61), { title: "In Firefox" });
  const two = await server.share(cpuProfile(62), { title: "In Firefox too" });
  const firefox = await openFirefox();
  const newPage = async () => {
    const page = await firefox.newPage();
    page.setDefaultTimeout(timeoutMs);
    return page;
  };
  const open = async (path) => {
    const page = await newPage();
    const faults = [];
    page.on(
      "console",
      (message) => ["error", "warn"].includes(message.type()) && faults.push(message.text()),
    );
    page.on("pageerror", (error) => faults.push(String(error)));
    await page.setViewport({ width: 1280, height: 800 });
    await page.goto(server.url + path);
    await viewReady(page);
    return {
      page,
      close: async () => (assert.deepEqual(faults, []), page.close()),
    };
  };

  try {
    await runner.test(
      "Firefox: the icicle is painted, keys move the cursor, and the search counts",
      async () => {
        const { page, close } = await open(`/p/${one.id}?st=samples`);
        assert.ok((await colourCount(page)) > 5);
        await page.focus(".icicle");
        await page.keyboard.press("ArrowDown");
        const begin =
          "main.main, total " +
          `${topOf(samples, 0).get("main.main").cum.toLocaleString("en-US")} `;
        await page.waitForFunction(
          (words) => document.querySelector("#icicle-cursor").textContent.startsWith(words),
          {},
          begin,
        );
        await page.type("#search", "runtime");
        const { functions } = matchOf(samples, 0, /runtime/i);
        await page.waitForFunction(
          (count) =>
            document.querySelector("#search-result").textContent.startsWith(`${count} functions`),
          {},
          functions,
        );
        await page.waitForFunction(
          () => new URL(location.href).searchParams.get("q") === "runtime",
        );
        await page.screenshot({ path: join(screenshots, "firefox.png") });
        await close();
      },
    );
    await runner.test(
      "Firefox: the table has the server's numbers, and rules run in a worker",
      async () => {
        const { page, close } = await open(
          `/p/${one.id}?v=table&b=flame&st=samples&s=-cum&x=focus:json&sv=2`,
        );
        const { json } = await server.call(
          "GET",
          `/api/v1/shares/${one.id}/top?sample_type=samples&focus=json&limit=0`,
        );
        const expected = new Map(
          json.functions.map((row) => [row.name, row.cum.toLocaleString("en-US")]),
        );
        const rows = await page.$$eval(".rows .row", (all) =>
          all.map((row) => [
            row.querySelector(".name button").ariaLabel ?? row.querySelector(".name button").title,
            row.querySelectorAll(".amount")[1].textContent,
          ]),
        );
        assert.equal(rows.length, expected.size);
        for (const [name, cum] of rows) assert.equal(cum, expected.get(name), name);
        await close();
      },
    );
    await runner.test("Firefox: a comparison is shown", async () => {
      const { page, close } = await open(`/d/${one.id}..${two.id}?st=samples`);
      assert.ok((await colourCount(page)) > 5);
      assert.match(await page.$eval(".foot-total", (one) => one.textContent), /→/);
      await close();
    });
    await runner.test("Firefox: a chosen file is previewed before the upload", async () => {
      const page = await newPage();
      await page.goto(server.url);
      await page.waitForSelector("input[type=file]");
      await page.evaluate((base64) => {
        const transfer = new DataTransfer();
        transfer.items.add(
          new File([Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0))], "cpu.pb.gz"),
        );
        document.body.dispatchEvent(
          new DragEvent("drop", {
            dataTransfer: transfer,
            bubbles: true,
            cancelable: true,
          }),
        );
      }, cpuProfile(63).toString("base64"));
      await viewReady(page);
      assert.ok((await colourCount(page)) > 5);
      await page.close();
    });
  } finally {
    await firefox.close();
  }
}
