// Exports contain the visible numbers: checked by readers that share no code with the pages, by the
// server that receives the files again, and by a browser without a network.
import assert from "node:assert/strict";
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import {
  axeFindings,
  dropFiles,
  focusIs,
  launch,
  timeoutMs,
  screenshots,
  settled,
  soon,
  spoken,
  tableRows,
  viewReady,
  withPage,
} from "./harness.mjs";
import { cpuProfile, cpuSamples, decodeFolded, decodePprof, topOf, totalOf } from "./profiles.mjs";

/** The file that a choice of the dialog saves, and its name. */
async function saved(page, ending) {
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.click(`.export-choices button:has(em:text-is('${ending}'))`),
  ]);
  const name = download.suggestedFilename();
  assert.ok(name.endsWith(ending), name);
  return {
    name,
    path: await download.path(),
    bytes: readFileSync(await download.path()),
  };
}

const openDialog = async (page) => {
  await page.click("[aria-label='Save this view']");
  await page.waitForSelector(".export-choices");
};
const closeDialog = async (page) => {
  await page.keyboard.press("Escape");
  await page.waitForSelector("dialog", { state: "detached" });
};

const asRows = (samples, type) =>
  Object.fromEntries([...topOf(samples, type)].filter(([, row]) => row.cum !== 0));

/** The server's table of a file that is shared again. */
async function serverRows(server, bytes, filename) {
  const { id } = await server.share(bytes, { filename });
  const top = (
    await server.call("GET", `/api/v1/shares/${id}/top?limit=0`, {
      token: server.token,
    })
  ).json;
  return Object.fromEntries(top.functions.map(({ name, flat, cum }) => [name, { flat, cum }]));
}

/** Samples of a tree in the API's JSON, by brute force. */
function samplesOfTree(tree, isDiff = false) {
  const samples = [];
  const visit = (node, stack) => {
    const values = isDiff ? [node.base_self, node.self] : [node.self];
    if (stack.length && values.some((value) => value !== 0)) samples.push({ stack, values });
    for (const child of node.children ?? []) visit(child, [...stack, child.name]);
  };
  visit(tree.root, []);
  return samples;
}

export async function testExport(runner, browser, server) {
  const samples = cpuSamples(71);
  const shared = await server.share(cpuProfile(71), {
    title: 'Saved <b>& "more"',
    filename: "cpu.pb.gz",
  });
  const kept = samples.filter(({ stack }) => !stack.includes("runtime.mallocgc"));
  const rules = `x=${encodeURIComponent("ignore:^runtime\\.mallocgc$")}`;

  await runner.test("a saved view has the visible numbers, after rules and zoom", () =>
    withPage(browser, server, async (page) => {
      await page.goto(`${server.url}/p/${shared.id}?${rules}&sv=2`);
      await viewReady(page);
      await openDialog(page);
      assert.deepEqual(await axeFindings(page), []);
      const expected = asRows(kept, 1);

      const pprof = await saved(page, ".pb.gz");
      assert.equal(pprof.name, "Saved-b-more.pb.gz");
      const decoded = decodePprof(pprof.bytes);
      assert.deepEqual(decoded.types, [["cpu", "nanoseconds"]]);
      assert.deepEqual(asRows(decoded.samples, 0), expected);
      assert.ok(
        !decoded.strings.includes("runtime.mallocgc"),
        "filtered names are not in the file",
      );
      assert.deepEqual(await serverRows(server, pprof.bytes, "again.pb.gz"), expected);

      const folded = await saved(page, ".folded");
      assert.deepEqual(asRows(decodeFolded(folded.bytes.toString()), 0), expected);
      assert.deepEqual(await serverRows(server, folded.bytes, "again.folded"), expected);

      const json = JSON.parse((await saved(page, ".json")).bytes);
      const own = (
        await server.call(
          "GET",
          `/p/${shared.id}.json?ignore=${encodeURIComponent("^runtime\\.mallocgc$")}`,
          { token: server.token },
        )
      ).json;
      // The list of binaries without names changes, so saved files do not contain it.
      assert.deepEqual(
        Object.keys(json),
        Object.keys(own).filter((key) => key !== "symbolization"),
      );
      assert.deepEqual(
        [json.total, json.kept, json.unit, json.node_count],
        [own.total, own.kept, own.unit, own.node_count],
      );
      assert.deepEqual(asRows(samplesOfTree(json), 0), expected);
      await closeDialog(page);

      await page.check(".rules .check input");
      await openDialog(page);
      assert.deepEqual(
        JSON.parse((await saved(page, ".json")).bytes),
        json,
        "the base of percentages does not change files",
      );
      await closeDialog(page);

      await page.focus(".icicle");
      for (const key of ["ArrowDown", "ArrowDown", "Enter"]) await page.keyboard.press(key);
      await page.waitForURL(/[?&]z=/);
      const zoomed = /^(.*), total/.exec(await spoken(page))[1];
      await openDialog(page);
      const below = decodeFolded((await saved(page, ".folded")).bytes.toString());
      const through = kept.filter(({ stack }) => stack[1] === zoomed);
      assert.ok(through.length > 0 && through.length < kept.length);
      assert.deepEqual(asRows(below, 0), asRows(through, 1));
      const groupsBox = page.locator("dialog .check:has-text('other groupings') input");
      assert.ok(await groupsBox.isDisabled(), "a part can be saved only in its own grouping");
      await page.click("dialog .check input");
      assert.ok(await groupsBox.isChecked());
      assert.deepEqual(
        asRows(decodeFolded((await saved(page, ".folded")).bytes.toString()), 0),
        expected,
      );
    }),
  );

  await runner.test(
    "a graph is saved as a picture, including the part that is scrolled out of view",
    () =>
      withPage(browser, server, async (page) => {
        await page.goto(`${server.url}/p/${shared.id}?v=graph&sv=2`);
        await page.waitForSelector(".graph-node");
        await viewReady(page);
        const boxes = await page.$$eval(".graph-label text", (all) =>
          all.map((text) => text.textContent),
        );
        await openDialog(page);
        const svg = (await saved(page, ".svg")).bytes.toString();
        const png = (await saved(page, ".png")).bytes;
        // a page in which text could become elements
        const elsewhere = await page.context().newPage();
        const drawn = await elsewhere.evaluate((text) => {
          const svg = new DOMParser().parseFromString(text, "image/svg+xml");
          return {
            isBroken: svg.querySelector("parsererror") !== null,
            texts: [...svg.querySelectorAll("text")].map((one) => one.textContent),
            fills: new Set([...svg.querySelectorAll("rect")].map((one) => one.getAttribute("fill")))
              .size,
            size: ["width", "height"].map((name) => Number(svg.documentElement.getAttribute(name))),
          };
        }, svg);
        assert.ok(!drawn.isBroken && drawn.fills > 2);
        for (const text of boxes) assert.ok(drawn.texts.includes(text), text);
        assert.ok(!/<script|<foreignObject|\bon\w+=|href|currentcolor/i.test(svg));
        const ratio = png.readUInt32BE(16) / drawn.size[0];
        assert.ok(
          ratio >= 1 && Math.abs(png.readUInt32BE(20) / drawn.size[1] - ratio) < 0.01,
          "the picture contains the whole graph",
        );
      }),
  );

  await runner.test("a saved picture equals the one on the screen", () =>
    withPage(browser, server, async (page) => {
      await page.goto(`${server.url}/p/${shared.id}?q=json&sv=2`);
      await viewReady(page);
      const screen = await page.$eval(".icicle canvas", (canvas) => canvas.toDataURL("image/png"));
      await openDialog(page);
      const png = (await saved(page, ".png")).bytes;
      const svg = (await saved(page, ".svg")).bytes.toString();
      /** The browser draws both pictures, and they are compared pixel by pixel. */
      const difference = await page.evaluate(
        async ([left, right]) => {
          const pixels = async (address) => {
            const image = new Image();
            image.src = address;
            await image.decode();
            const canvas = new OffscreenCanvas(image.width, image.height);
            const context = canvas.getContext("2d");
            context.drawImage(image, 0, 0);
            return [
              image.width,
              image.height,
              context.getImageData(0, 0, image.width, image.height).data,
            ];
          };
          const [[width, height, a], [otherWidth, otherHeight, b]] = [
            await pixels(left),
            await pixels(right),
          ];
          if (width !== otherWidth || height !== otherHeight)
            return `${width}x${height} is not ${otherWidth}x${otherHeight}`;
          let count = 0;
          for (let i = 0; i < a.length; i += 4)
            if (
              Math.abs(a[i] - b[i]) +
                Math.abs(a[i + 1] - b[i + 1]) +
                Math.abs(a[i + 2] - b[i + 2]) >
              30
            )
              count++;
          return count / (a.length / 4);
        },
        [screen, `data:image/png;base64,${png.toString("base64")}`],
      );
      assert.equal(difference, 0);
      // A browser refuses an SVG image that is not well-formed.
      const size = await page.evaluate(
        async (address) => {
          const image = new Image();
          image.src = address;
          await image.decode();
          return [image.width, image.height];
        },
        `data:image/svg+xml;base64,${Buffer.from(svg).toString("base64")}`,
      );
      assert.deepEqual(
        size,
        await page.$eval(".icicle", (icicle) => [icicle.clientWidth, icicle.clientHeight]),
      );
      assert.ok(svg.includes("<title>Saved &lt;b&gt;&amp; &quot;more&quot;</title>"));
      assert.match(svg, /<title>main\.main, total [^<]+<\/title>/);
      assert.ok(!/<script|<foreignObject|\bon\w+=|href/.test(svg));
    }),
  );

  /** The legend's entry for each colour. */
  const legendColours = async (page) => {
    await page.waitForSelector(".legend .swatch");
    return page.$$eval(".legend li:has(.swatch)", (items) =>
      items.map((item) => [
        item.textContent,
        getComputedStyle(item.querySelector(".swatch")).backgroundColor,
      ]),
    );
  };

  await runner.test(
    "a saved page opens from the disk without a network, with the same numbers",
    () =>
      withPage(browser, server, async (page) => {
        await page.goto(`${server.url}/p/${shared.id}?v=table&b=icicle&${rules}&sv=2`);
        await viewReady(page);
        const rows = await tableRows(page);
        const words = await page.textContent(".foot-total");
        const colours = await legendColours(page);
        assert.ok(colours.length > 3);
        await openDialog(page);
        const { bytes, path } = await saved(page, ".html");
        assert.ok(
          !bytes.includes(shared.id) && !bytes.includes(server.url),
          "the file does not contain the link",
        );
        await closeDialog(page);
        const folder = mkdtempSync(join(tmpdir(), "perfolio-saved-"));
        const own = await launch();
        try {
          const context = await own.newContext({
            offline: true,
            viewport: { width: 1440, height: 900 },
          });
          context.setDefaultTimeout(timeoutMs);
          const offline = await context.newPage();
          const faults = [];
          offline.on(
            "console",
            (message) =>
              ["error", "warning"].includes(message.type()) && faults.push(message.text()),
          );
          offline.on("pageerror", (error) => faults.push(String(error)));
          offline.on(
            "request",
            (request) => !/^(file|blob|data):/.test(request.url()) && faults.push(request.url()),
          );
          // the browser detects the format by the extension
          const file = join(folder, "saved.html");
          copyFileSync(path, file);
          await offline.goto(pathToFileURL(file).href);
          await viewReady(offline);
          assert.equal(await offline.textContent("h1"), 'Saved <b>& "more"');
          assert.deepEqual(await tableRows(offline), rows);
          assert.equal(await offline.textContent(".foot-total"), words);
          assert.deepEqual(await legendColours(offline), colours);
          // Back leads to the saved view; forward and a reload lead to the last view.
          await offline.click("button[title=Icicle]");
          await offline.waitForSelector(".pane-table", { state: "detached" });
          await offline.goBack();
          await viewReady(offline);
          assert.deepEqual(await tableRows(offline), rows);
          await offline.goForward();
          await offline.waitForSelector(".pane-table", { state: "detached" });
          await offline.reload();
          await viewReady(offline);
          assert.equal(await offline.locator(".pane-table").count(), 0);
          await offline.goBack();
          await viewReady(offline);
          // All groupings of the same samples.
          for (const group of ["file", "line", "address", "binary", "function"]) {
            await offline.selectOption("[aria-label=Group]", group);
            await viewReady(offline);
            const own = (
              await server.call(
                "GET",
                `/api/v1/shares/${shared.id}/top?group_by=${group}&ignore=` +
                  `${encodeURIComponent("^runtime\\.mallocgc$")}&limit=0`,
                { token: server.token },
              )
            ).json;
            const known = new Set(
              own.functions.map(({ name, flat, cum }) => JSON.stringify([name, flat, cum])),
            );
            const shown = await offline.$$eval(".rows .row", (all) =>
              all.map((row) => {
                const button = row.querySelector("button");
                return JSON.stringify([
                  button.ariaLabel ?? button.title,
                  ...[...row.querySelectorAll(".cell.value")].map((cell) =>
                    Number(/^[\d,]+/.exec(cell.title)[0].replaceAll(",", "")),
                  ),
                ]);
              }),
            );
            assert.ok(shown.length > 0);
            for (const row of shown)
              assert.ok(known.has(row), `${group}: ${row} is not among ${[...known].slice(0, 9)}`);
          }
          assert.deepEqual(await tableRows(offline), rows);
          // Rules work too: the worker's text is in the page.
          await offline.focus(".icicle");
          await offline.keyboard.press("ArrowDown");
          await settled(offline);
          await offline.keyboard.press("h");
          await offline.waitForSelector(".rules .rule");
          await viewReady(offline);
          assert.ok(!(await tableRows(offline)).some((row) => row.at(-1) === "main.main"));
          await offline.keyboard.press("6");
          await offline.waitForSelector(".graph-node");
          assert.deepEqual(faults, []);
        } finally {
          await own.close();
          rmSync(folder, { recursive: true });
        }
      }),
  );

  await runner.test(
    "export: groups load a few at a time with progress; failed ones can be retried or left out",
    () =>
      withPage(
        browser,
        server,
        async (page, watch) => {
          watch.allowed.add(500);
          await page.goto(`${server.url}/p/${shared.id}`);
          await viewReady(page);
          let [running, most] = [0, 0];
          let broken = ["line", "binary"];
          let held, release;
          const hold = () => (held = new Promise((resolve) => (release = resolve)));
          hold();
          await page.route(/\/flame\?.*group_by=/, async (route) => {
            most = Math.max(most, ++running);
            await held;
            running--;
            if (broken.some((group) => route.request().url().includes(`group_by=${group}`)))
              await route.fulfill({ status: 500, body: "" });
            else await route.continue().catch(() => undefined); // it may have been cancelled
          });
          await openDialog(page);
          await page.click(".export-choices button:has(em:text-is('.html'))");
          await page.waitForSelector(".export-progress progress");
          await soon(() => assert.ok(running > 1));
          release();
          await page.waitForSelector(".export-missing");
          await page.waitForSelector(".export-missing button:has-text('Try again'):focus");
          assert.deepEqual(
            (
              await page.$$eval(".export-missing li strong", (all) =>
                all.map((one) => one.textContent),
              )
            ).sort(),
            ["binary", "line"],
          );
          assert.ok(most > 1 && most <= 3, `${most} at once`);
          assert.deepEqual(await axeFindings(page), []);
          await page.screenshot({
            path: join(screenshots, "export-missing.png"),
          });
          broken = ["line"];
          await page.click("button:has-text('Try again')");
          await page.waitForFunction(
            () => document.querySelectorAll(".export-missing li").length === 1,
          );
          const [download] = await Promise.all([
            page.waitForEvent("download"),
            page.click("button:has-text('Save without them')"),
          ]);
          assert.ok(download.suggestedFilename().endsWith(".html"));
          await page.waitForSelector("#export-page:focus");
          hold();
          await page.click(".export-choices button:has(em:text-is('.html'))");
          await page.click(".export-progress button:has-text('Cancel')");
          await page.waitForSelector(".export-progress", { state: "detached" });
          release();
          const focusIsOn = (id) => focusIs(page, () => document.activeElement?.id, id);
          await focusIsOn("export-page");
          for (const kind of ["pprof", "folded"]) {
            await page.focus(`#export-${kind}`);
            await Promise.all([page.waitForEvent("download"), page.keyboard.press("Enter")]);
            await page.waitForSelector(`#export-${kind}[aria-disabled=false]`);
            await focusIsOn(`export-${kind}`);
          }
          assert.equal(await page.$(".export-missing, dialog .error-line span"), null);
          assert.equal(
            await page.isEnabled(".export-choices button:has(em:text-is('.html'))"),
            true,
          );
        },
        { bypassCSP: true },
      ),
  );

  await runner.test("a comparison and a preview can be saved", () =>
    withPage(browser, server, async (page) => {
      const other = await server.share(cpuProfile(72), {
        filename: "after.pb.gz",
      });
      await page.goto(`${server.url}/d/${shared.id}..${other.id}`);
      await viewReady(page);
      await openDialog(page);
      const both = decodeFolded((await saved(page, ".folded")).bytes.toString(), 2);
      assert.deepEqual(
        [0, 1].map((type) => totalOf(both, type)),
        [totalOf(samples, 1), totalOf(cpuSamples(72), 1)],
      );
      const decoded = decodePprof((await saved(page, ".pb.gz")).bytes);
      assert.deepEqual(decoded.types, [
        ["cpu_before", "nanoseconds"],
        ["cpu_after", "nanoseconds"],
      ]);
      assert.deepEqual(
        [0, 1].map((type) => totalOf(decoded.samples, type)),
        [totalOf(samples, 1), totalOf(cpuSamples(72), 1)],
      );

      await page.goto(`${server.url}/`);
      await page.waitForSelector(".drop");
      await dropFiles(page, [{ name: "cpu.pb.gz", bytes: cpuProfile(71) }]);
      await viewReady(page);
      await openDialog(page);
      assert.deepEqual(
        asRows(decodePprof((await saved(page, ".pb.gz")).bytes).samples, 0),
        asRows(samples, 1),
      );
    }),
  );

  await runner.test("other sites are offered only for files that they can read", () =>
    withPage(
      browser,
      server,
      async (page, watch) => {
        const locked = await server.share(
          cpuProfile(73),
          { visibility: "password" },
          { headers: { "X-Perfolio-Password": "sesame-sesame" } },
        );
        const script = Buffer.from("prog 1 1.000000: 1 cycles:\n\t1000 main+0x1 (/bin/prog)\n\n");
        const perf = await server.share(script, { filename: "perf.txt" });
        const links = async (id) => {
          await page.goto(`${server.url}/p/${id}`);
          await viewReady(page);
          await page.click("button:has-text('Download')");
          await page.waitForSelector(".menu-panel .copy-field >> visible=true");
          assert.deepEqual(await axeFindings(page), []);
          return page.$$eval(".menu-panel a[target=_blank]", (all) =>
            all.map(({ href, rel, textContent }) => ({
              href,
              rel,
              name: textContent.split(" ")[0],
            })),
          );
        };
        const file = (id, tail) => encodeURIComponent(`${server.url}/p/${id}${tail}`);
        const offered = await links(shared.id);
        assert.deepEqual(
          offered.map(({ rel, name }) => [rel, name]),
          [["noopener noreferrer", "speedscope"]],
        );
        assert.ok(
          offered[0].href.startsWith(
            `https://www.speedscope.app/#profileURL=${file(shared.id, ".pb.gz")}&title=`,
          ),
        );
        assert.ok(await page.isVisible("text=receives this profile’s link"));
        assert.ok(await page.isVisible("text=has a private address"));
        assert.deepEqual(
          (await links(perf.id)).map(({ href }) => href),
          [
            `https://www.speedscope.app/#profileURL=${file(perf.id, "/raw")}&title=perf.txt`,
            `https://profiler.firefox.com/from-url/${file(perf.id, "/raw")}`,
          ],
        );
        // From a page of another origin, like these sites; also on this machine, because a browser
        // asks before other origins reach it.
        const origin = `https://127.0.0.1:${server.port}`;
        await page.goto(`${origin}/robots.txt`);
        const read = (path) =>
          page.evaluate(
            (url) =>
              fetch(url).then(
                async (response) => (await response.arrayBuffer()).byteLength,
                () => "refused",
              ),
            server.url + path,
          );
        assert.equal(await read(`/p/${shared.id}/raw`), cpuProfile(71).length);
        assert.ok((await read(`/p/${shared.id}.pb.gz`)) > 1000);
        assert.equal(await read(`/p/${locked.id}.pb.gz`), "refused");
        watch.faults = watch.faults.filter(
          (fault) => !/CORS policy|Failed to load resource/.test(fault) && !fault.endsWith(origin),
        );
      },
      { bypassCSP: true },
    ),
  );
}
