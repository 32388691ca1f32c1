// The share page: numbers equal a brute-force reader's, and the state is in the address bar.
import assert from "node:assert/strict";
import { readdirSync, statSync } from "node:fs";
import { gzipSync } from "node:zlib";
import {
  atRest,
  edgePixels,
  pasted,
  searchFor,
  soon,
  spoken,
  tableRows,
  messageShown,
  viewReady,
  withPage,
} from "./harness.mjs";
import {
  cpuProfile,
  cpuSamples,
  deepText,
  encodePprof,
  foldedText,
  matchOf,
  topOf,
  totalOf,
  twoTypes,
} from "./profiles.mjs";

const seconds = (ns) => {
  const units = [
    ["s", 1e9],
    ["ms", 1e6],
  ]; // no sum here reaches ten minutes
  const [unit, size] = units.find(([, size]) => ns >= size * 0.9995) ?? ["ns", 1];
  const amount = ns / size;
  const digits = amount >= 100 || Number.isInteger(amount) ? 0 : amount >= 10 ? 1 : 2;
  return `${amount.toFixed(digits)} ${unit}`;
};
const percent = (part, whole) => {
  const value = (100 * part) / whole;
  return `${value.toFixed(value >= 99.95 ? 0 : value >= 10 ? 1 : 2)}%`;
};

export async function testViewer(runner, browser, server) {
  const samples = cpuSamples(11);
  const shared = await server.share(cpuProfile(11), {
    title: "Viewer",
    filename: "cpu.pb.gz",
    label: "env=test",
  });
  const at = (query = "") => `${server.url}/p/${shared.id}${query}`;
  const open = async (page, query) => {
    await page.goto(at(query));
    await viewReady(page);
  };

  for (const [type, name] of [
    [0, "samples"],
    [1, "cpu"],
  ])
    await runner.test(`the table equals a brute-force reader: ${name}`, () =>
      withPage(browser, server, async (page) => {
        await open(page, `?v=table&st=${name}&s=-cum&sv=2`);
        const expected = [...topOf(samples, type)].sort(
          (a, b) => b[1].cum - a[1].cum || (a[0] < b[0] ? -1 : 1),
        );
        const show = (value) =>
          type === 0 ? value.toLocaleString("en-US") : value === 0 ? "0 ns" : seconds(value);
        const rows = await tableRows(page);
        assert.equal(rows.length, expected.length);
        for (const [i, [fn, { flat, cum }]] of expected.entries()) {
          const row = rows.find((one) => one[2] === fn);
          assert.deepEqual(row, [show(flat), show(cum), fn]);
          if (i > 0)
            assert.ok(
              topOf(samples, type).get(rows[i][2]).cum <=
                topOf(samples, type).get(rows[i - 1][2]).cum,
              "sorted",
            );
        }
      }),
    );

  await runner.test("the search counts functions, and each sample once", () =>
    withPage(browser, server, async (page) => {
      await open(page);
      for (const text of [
        "runtime",
        "^encoding/json\\.",
        "serve$",
        "(?i)MARSHAL",
        "nothing at all",
      ]) {
        await searchFor(page, text);
        const pattern = new RegExp(
          text.replace("(?i)", ""),
          /[A-Z]/.test(text.replace("(?i)", "")) && !text.startsWith("(?i)") ? "" : "i",
        );
        const found = matchOf(samples, 1, pattern);
        const words =
          `${found.functions} ${found.functions === 1 ? "function" : "functions"} ` +
          `· ${found.value ? percent(found.value, totalOf(samples, 1)) : "0%"}`;
        assert.equal(await page.textContent("#search-result"), words);
        assert.equal(new URL(page.url()).searchParams.get("q"), text);
      }
      // Under rules, both refer to the remaining samples, like the table.
      for (const [rule, text, keeps] of [
        ["hide:json", "json", () => false],
        ["focus:sort", "runtime", ({ stack }) => stack.some((name) => name.includes("sort"))],
      ]) {
        await open(page, `?v=table&x=${rule}&q=${text}&sv=2`);
        const found = matchOf(samples.filter(keeps), 1, new RegExp(text));
        const share = found.value ? percent(found.value, totalOf(samples, 1)) : "0%";
        await soon(async () =>
          assert.equal(
            await page.textContent("#search-result"),
            `${found.functions} ${found.functions === 1 ? "function" : "functions"} · ${share}`,
          ),
        );
        assert.equal((await tableRows(page)).length, found.functions);
      }
      await open(page);
      await searchFor(page, "(?=x)");
      assert.match(await page.textContent("#search-result"), /look-around/);
      await searchFor(page, "(");
      assert.ok(await page.$(".search.wrong"));
      await searchFor(page, "");
      assert.equal(page.url(), at());
    }),
  );

  await runner.test("the search filters the table, and a row marks its function", () =>
    withPage(browser, server, async (page) => {
      await open(page, "?v=table&b=icicle&q=json&sv=2");
      const rows = await tableRows(page);
      assert.ok(rows.length > 0 && rows.every((row) => row.at(-1).includes("json")));
      const topOfViews = () =>
        page.evaluate(() => document.querySelector(".views").getBoundingClientRect().top);
      const viewsTop = await topOfViews();
      await page.click(".rows .row button");
      assert.equal(new URL(page.url()).searchParams.get("m"), rows[0].at(-1));
      assert.ok(await page.$(".button.marked"));
      // The layout did not change.
      assert.equal(await topOfViews(), viewsTop);
      await page.evaluate(() => document.activeElement.blur());
      await page.keyboard.press("Control+f");
      assert.equal(await page.evaluate(() => document.activeElement.id), "search");
      await page.focus(".rows .row button");
      await page.keyboard.press("Escape");
      await page.keyboard.press("Escape");
      assert.equal(new URL(page.url()).search, "?v=table&b=icicle&sv=2");
      await open(page, "?b=sandwich&sv=2");
      await page.focus(".icicle");
      for (const key of ["ArrowDown", "."]) await page.keyboard.press(key);
      await page.click("[role=menuitem]:has-text('Callers and callees')");
      await page.waitForURL(/v=sandwich/);
      assert.ok(!page.url().includes("b=sandwich"), page.url());
    }),
  );

  await runner.test("clicks, keys and links zoom, and back and forward restore the zoom", () =>
    withPage(browser, server, async (page) => {
      await open(page);
      const box = await page.locator(".icicle").boundingBox();
      await page.mouse.click(box.x + 20, box.y + 2 * 22 + 8);
      await page.waitForURL(/[?&]z=[0-9a-f]{16}/);
      const zoomed = await spoken(page);
      assert.notEqual(zoomed.slice(0, 4), "all,");
      const link = page.url();
      await page.reload();
      await viewReady(page);
      assert.equal(await spoken(page), zoomed);
      await page.goBack();
      await page.waitForURL(at());
      await page.goForward();
      await page.waitForURL(link);
      await page.waitForFunction(
        (text) => document.querySelector("#icicle-cursor").textContent === text,
        zoomed,
      );
      await page.click("[aria-label='Reset zoom']");
      assert.equal(page.url(), at());

      await page.focus(".icicle");
      for (const key of ["ArrowDown", "ArrowDown", "Enter"]) await page.keyboard.press(key);
      await page.waitForURL(/[?&]z=/);
      const deep = page.url();
      await page.keyboard.press("Backspace");
      await page.waitForFunction((old) => location.href !== old, deep);
      await page.keyboard.press("0");
      assert.equal(page.url(), at());

      // One of two siblings of the same name is chosen, and the link refers to it.
      const lines = [
        [12, 30],
        [300, 20],
      ].map(([line, value]) => ({
        stack: ["main", ["run", line], "deep"],
        values: [value],
      }));
      const siblings = await server.share(
        encodePprof({ types: [["samples", "count"]], samples: lines }),
        { title: "Brothers" },
      );
      await page.goto(`${server.url}/p/${siblings.id}?g=line&sv=2`);
      await viewReady(page);
      await page.focus(".icicle");
      for (const key of ["ArrowDown", "ArrowDown", "ArrowRight", "Enter"])
        await page.keyboard.press(key);
      await page.waitForURL(/[?&]z=/);
      assert.match(await spoken(page), /^run, total 20 /);
      await page.reload();
      await viewReady(page);
      assert.match(await spoken(page), /^run, total 20 /);
    }),
  );

  await runner.test("menus and keys switch the sample type and the grouping", () =>
    withPage(browser, server, async (page) => {
      await open(page);
      assert.match(await spoken(page), new RegExp(`^all, total ${seconds(totalOf(samples, 1))}`));
      await page.selectOption("[aria-label='Sample type']", {
        label: "samples",
      });
      await page.waitForURL(/st=samples/);
      await page.waitForFunction(
        (total) => document.querySelector("#icicle-cursor").textContent.includes(`total ${total} `),
        totalOf(samples, 0).toLocaleString("en-US"),
      );
      await page.focus(".icicle");
      await page.keyboard.press("t");
      await page.waitForURL(/st=cpu/);
      await page.keyboard.press("g");
      await page.waitForURL(/g=file/);
      await viewReady(page);
      await page.keyboard.press("2");
      await soon(async () =>
        assert.ok((await tableRows(page)).some((row) => row.at(-1).includes("/src/"))),
      );
    }),
  );

  await runner.test(
    "a link with settings that the profile lacks explains this and shows the profile",
    () =>
      withPage(browser, server, async (page, watch) => {
        for (const status of [400, 404]) watch.allowed.add(status);
        for (const [query, heading] of [
          ["?st=nope&v=table&sv=2", "This profile has no sample type “nope”"],
          ["?g=nope&v=table&sv=2", "The link does not fit this profile"],
        ]) {
          await page.goto(at(query));
          await page.waitForSelector(`h1:has-text('${heading}')`);
          await page.waitForSelector('.viewer[aria-busy="false"]');
          await page.click("text=Show the whole profile");
          await page.waitForSelector(".rows .row");
          assert.equal(page.url(), at("?v=table&sv=2"), query);
        }
        for (const path of [
          at("").replace(/\?.*/, ""),
          at("").replace(/\?.*/, "").replace("/p/", "/embed/"),
        ]) {
          await page.goto(
            `${path}?v=table&b=icicle&root=0123456789abcdef&z=0123456789abcdef&v=table&sv=2`,
          );
          await page.waitForSelector(
            ".viewer-foot >> text=The part that the link opens is not in this profile, so all of " +
              "it is shown.",
          );
          await page.waitForSelector(
            ".viewer-foot >> text=The frame that the link zooms to is not in this tree",
          );
          await page.waitForSelector(".rows .row");
          assert.equal(new URL(page.url()).searchParams.get("root"), null);
        }
        await page.goto(at("?v=nope&c=pink&sv=2"));
        await page.waitForSelector(
          ".viewer-foot >> text=Not supported by this version and removed from the link: v=nope, " +
            "c=pink.",
        );
        await page.goto(at("?z=0123456789abcdef&x=zap:foo~only:cobol~hide:runtime&sv=2"));
        await page.waitForSelector(
          ".viewer-foot >> text=2 rules of the link are not supported by this version",
        );
        await page.waitForSelector(
          ".viewer-foot >> text=The frame that the link zooms to is not in this tree",
        );
      }),
  );

  await runner.test("every setting is restored from the address bar", () =>
    withPage(browser, server, async (page) => {
      const queries = [
        "",
        "?v=table&sv=2",
        "?v=table&b=icicle&st=samples&q=json&sv=2",
        "?st=cpu&q=%5Emain%5C.&m=main.main&sv=2",
        "?v=table&s=-cum&sv=2",
        "?v=table&s=name&sv=2",
        "?g=file&sv=2",
        "?g=line&sv=2",
        "?v=table&b=icicle&q=a%26b%3D%C3%B6&sv=2",
        "?st=0&sv=2",
        "?q=x&sv=2&later=kept",
        "?v=flame&sv=2",
        "?c=runtime&sv=2",
        "?v=flame&w=0.25-0.5&c=value&sv=2",
      ];
      for (const query of queries) {
        await open(page, query);
        assert.equal(page.url(), at(query));
        const parameters = new URL(page.url()).searchParams;
        assert.equal(await page.inputValue("#search"), parameters.get("q") ?? "");
        assert.equal(
          await page.inputValue("[aria-label=Group]"),
          parameters.get("g") ?? "function",
        );
        assert.equal(
          await page.inputValue("[aria-label=Colours]"),
          parameters.get("c") ?? "package",
        );
        const view = await page.textContent(".segments [aria-pressed=true]");
        assert.equal(view.toLowerCase(), parameters.get("v") ?? "icicle");
        assert.equal(
          await page.inputValue("[aria-label='Second view']"),
          parameters.get("b") ?? "",
        );
        if (parameters.has("st")) {
          const index = await page.inputValue("[aria-label='Sample type']");
          assert.equal(index, { samples: "0", cpu: "1", 0: "0" }[parameters.get("st")]);
        }
      }
      await open(page, "?q=x&sv=2&later=kept");
      await searchFor(page, "y");
      assert.equal(new URL(page.url()).searchParams.get("later"), "kept");
    }),
  );

  await runner.test(
    "an address change that the browser refuses is written later, as its own history entry",
    () =>
      withPage(browser, server, async (page) => {
        for (const [isThrown, colour, changed] of [
          [true, "runtime", "value"],
          [false, "binary", "runtime"],
        ]) {
          await open(page);
          await page.evaluate((isThrown) => {
            let count = 0;
            for (const name of ["pushState", "replaceState"]) {
              const write = history[name].bind(history);
              history[name] = (...all) => {
                if (++count > 2) return write(...all);
                if (isThrown) throw new DOMException("too many calls", "SecurityError");
              };
            }
          }, isThrown);
          await page.selectOption("[aria-label=Colours]", colour);
          assert.equal(page.url(), at());
          await page.waitForURL(at(`?c=${colour}&sv=2`));
          await page.selectOption("[aria-label=Colours]", changed);
          await page.goBack();
          assert.equal(page.url(), at(`?c=${colour}&sv=2`));
          await page.goBack();
          assert.equal(page.url(), at());
          assert.equal(await page.inputValue("[aria-label=Colours]"), "package");
        }
      }),
  );

  await runner.test("the list of keys, the theme and copying work", () =>
    withPage(browser, server, async (page) => {
      await open(page, "?q=json&sv=2");
      await page.keyboard.press("?");
      await page.waitForSelector("dialog[open] .keys");
      await page.keyboard.press("Escape");
      await page.waitForSelector("dialog", { state: "detached" });
      await page.keyboard.press("y");
      await messageShown(page, "Link copied");
      assert.equal(await pasted(page), page.url());
      await page.focus(".icicle");
      for (const key of ["c", "C"]) await page.keyboard.press(key);
      assert.equal(await pasted(page), page.url(), "without a frame, the address is copied");
      await page.keyboard.press("n");
      await page.waitForURL(/z=/);
      assert.match(await spoken(page), /json/);
      await page.keyboard.press("c");
      await messageShown(page, "Name copied");
      assert.match(await pasted(page), /^encoding\/json/);
      await page.keyboard.press("C");
      await messageShown(page, "Stack copied");
      assert.match(await pasted(page), /^main\.main\n/);
      await page.click("[aria-label='Dark colours']");
      assert.equal(await page.getAttribute("html", "data-theme"), "dark");
      await page.reload();
      assert.equal(await page.getAttribute("html", "data-theme"), "dark");
    }),
  );

  await runner.test("the tooltip shows name, total, self value and source location", () =>
    withPage(browser, server, async (page) => {
      await open(page);
      const box = await page.locator(".icicle").boundingBox();
      await page.mouse.move(box.x + 60, box.y + 22 + 8);
      await page.waitForSelector(".tip:not([hidden])");
      const text = await page.textContent(".tip");
      assert.match(text, /^main\.mainTotal.*Self.*\/src\/main\.go/);
      assert.match(await page.textContent(".detail"), /main\.main/);
    }),
  );

  await runner.test(
    "the menu downloads the original, pprof, folded stacks, JSON, SVG, PNG and DOT",
    () =>
      withPage(browser, server, async (page) => {
        await open(page);
        await page.click("button:has-text('Download')");
        await page.waitForSelector(".menu-panel a[download]");
        const links = await page.$$eval(".menu-panel a[download]", (all) =>
          all.map((one) => one.getAttribute("href")),
        );
        assert.equal(links.length, 7);
        for (const link of links) assert.equal((await server.call("GET", link)).status, 200, link);
        // In a low window, the menu's foot is dark while there is more below it.
        await page.setViewportSize({ width: 1000, height: 500 });
        const foot = await page.$eval(".menu-panel:not([hidden])", (panel) => {
          const { left, bottom } = panel.getBoundingClientRect();
          return { x: left + 3, y: bottom - 13, width: 3, height: 4 };
        });
        const before = await page.screenshot({ clip: foot });
        await page.$eval(".menu-panel:not([hidden])", (panel) =>
          panel.scrollTo(0, panel.scrollHeight),
        );
        assert.ok(!before.equals(await page.screenshot({ clip: foot })));
      }),
  );

  await runner.test(
    "odd profiles are shown: deep, one sample, UTF-8, long names, no values of a type",
    async () => {
      const long =
        "std::" +
        "very_long_namespace::".repeat(14) +
        "function<std::map<int, std::string>>(int) const";
      const odd = [
        [deepText(5000), /^all, total 7/, "level_0"],
        [
          encodePprof({
            types: twoTypes,
            samples: [{ stack: ["only"], values: [1, 10] }],
          }),
          /^all, total 10 ns/,
          "only",
        ],
        [
          encodePprof({
            types: twoTypes,
            samples: [
              { stack: ["größe", "東京.計算", "👩‍🚀"], values: [2, 5_000_000] },
              { stack: [long], values: [1, 1_000_000] },
            ],
          }),
          /^all, total 6 ms/,
          "größe",
        ],
        [
          Buffer.from("vast 9007199254740992\nvast;more 1\n"),
          /^all, total 9,007,199,254,740,992/,
          "vast",
        ],
      ];
      for (const [bytes, total, first] of odd) {
        const { id } = await server.share(bytes);
        await withPage(browser, server, async (page) => {
          await page.goto(`${server.url}/p/${id}`);
          await viewReady(page);
          assert.match(await spoken(page), total);
          await page.focus(".icicle");
          await page.keyboard.press("ArrowDown");
          assert.ok((await spoken(page)).startsWith(first + ","), await spoken(page));
          await page.evaluate(() => (document.querySelector(".icicle").scrollTop = 1e6));
          await soon(async () =>
            assert.equal(await page.isVisible("text=last digits are rounded"), first === "vast"),
          );
        });
      }
      const { id } = await server.share(
        encodePprof({
          types: twoTypes,
          samples: [{ stack: ["idle"], values: [3, 0] }],
          defaultType: "cpu",
        }),
      );
      await withPage(browser, server, async (page) => {
        await page.goto(`${server.url}/p/${id}`);
        await page.waitForSelector("text=No samples of this type");
      });
    },
  );

  await runner.test("a table that fails to load is reported in its place and can be retried", () =>
    withPage(browser, server, async (page, watch) => {
      await page.route("**/flame*", (route) => {
        const url = new URL(route.request().url());
        url.searchParams.set("limit", "100");
        return route.continue({ url: url.href });
      });
      watch.allowed.add(500);
      await page.route("**/top*", (route) =>
        route.fulfill({
          status: 500,
          headers: { "Content-Type": "application/problem+json" },
          body: JSON.stringify({
            type: "about:blank",
            title: "Broken",
            status: 500,
            detail: "no table today",
          }),
        }),
      );
      await page.goto(`${server.url}/p/${shared.id}?b=table&st=samples&sv=2`);
      await page.waitForSelector(".pane-table .problem");
      assert.equal(await page.locator(".pane-icicle .icicle").count(), 1);
      await page.keyboard.press("4");
      await viewReady(page);
      assert.equal(await page.locator(".problem").count(), 0);
      await page.keyboard.press("4");
      await page.waitForSelector(".pane-table .problem");
      await page.unroute("**/top*");
      await page.click(".pane-table button:has-text('Try again')");
      await page.waitForFunction(
        (count) => document.querySelectorAll(".rows .row").length === count,
        topOf(samples, 0).size,
      );
    }),
  );

  await runner.test("a truncated tree is noted, and its table is complete", () =>
    withPage(browser, server, async (page) => {
      await page.route("**/flame*", (route) => {
        const url = new URL(route.request().url());
        url.searchParams.set("limit", "100");
        return route.continue({ url: url.href });
      });
      await open(page, "?v=table&b=icicle&st=samples&s=-cum&sv=2");
      assert.match(await page.textContent(".viewer-foot"), /merged into “other”/);
      await page.waitForFunction(
        (count) => document.querySelectorAll(".rows .row").length === count,
        topOf(samples, 0).size,
      );
      for (const [flat, cum, name] of await tableRows(page)) {
        const expected = topOf(samples, 0).get(name);
        assert.deepEqual(
          [flat, cum],
          [expected.flat.toLocaleString("en-US"), expected.cum.toLocaleString("en-US")],
        );
      }
      await searchFor(page, "runtime");
      assert.match(await page.textContent("#search-result"), /^≥ \d+ functions? · ≥ [\d.]+%$/);
      assert.match(await page.textContent(".foot-total"), / in ≥ \d+ functions$/);
      // The graph does not contain merged functions either.
      await open(page, "?v=graph&st=samples&sv=2");
      assert.match(
        await page.locator(".graph-note").textContent(),
        /^\d+ of ≥ \d+ functions, ≥ [\d.]+% of the total shown; \d+ of ≥ \d+ calls$/,
      );
      // The server applies the rules that it supports: the numbers under them are exact. Others are
      // marked as bounds.
      const kept = samples.filter(({ stack }) => stack.some((name) => name.includes("sort")));
      await open(page, "?v=table&st=samples&s=-cum&x=focus:sort&sv=2");
      const focused = topOf(kept, 0);
      await page.waitForFunction(
        (count) => document.querySelectorAll(".rows .row").length === count,
        focused.size,
      );
      for (const [flat, cum, name] of await tableRows(page)) {
        const expected = focused.get(name);
        assert.deepEqual(
          [flat, cum],
          [expected.flat.toLocaleString("en-US"), expected.cum.toLocaleString("en-US")],
        );
      }
      const total = kept.reduce((sum, { values }) => sum + values[0], 0).toLocaleString("en-US");
      assert.ok((await page.textContent(".foot-total")).startsWith(`${total} of `));
      await open(
        page,
        "?v=table&st=samples&x=recursion:main~focus:json&m=encoding%2Fjson.Marshal&sv=2",
      );
      for (const place of [".rows .amount", ".foot-total", ".rules output", "button.marked"])
        assert.match(await page.textContent(place), /[≥≈] /, place);
    }),
  );

  await runner.test("an “other” box opens, also from a link", () =>
    withPage(browser, server, async (page) => {
      const text = Array.from(
        { length: 400 },
        (_, i) => `main;${i % 2 ? "heavy" : "light"};f${i} ${i % 2 ? i + 1000 : 90}`,
      ).join("\n");
      const { id } = await server.share(Buffer.from(text));
      await page.route("**/flame*", (route) => {
        const url = new URL(route.request().url());
        url.searchParams.set("limit", "300");
        return route.continue({ url: url.href });
      });
      await page.goto(`${server.url}/p/${id}`);
      await viewReady(page);
      await page.focus(".icicle");
      for (const key of ["ArrowDown", "ArrowDown", "ArrowRight", "ArrowDown"])
        await page.keyboard.press(key);
      assert.match(await spoken(page), /^other, total 18,000 /);
      await page.keyboard.press("Enter");
      await page.waitForURL(/root=[0-9a-f]{16}/);
      const link = page.url();
      for (const again of ["", link, link.replace("/p/", "/embed/")]) {
        if (again) await page.goto(again);
        await page.waitForFunction(() =>
          document.querySelector("#icicle-cursor")?.textContent.startsWith("light, total 18,000 "),
        );
        await viewReady(page);
        await page.focus(".icicle");
        await page.keyboard.press("ArrowDown");
        assert.match(await spoken(page), /^f\d+, total 90 /);
      }
      await page.keyboard.press("Backspace");
      await page.waitForFunction(() => !location.search.includes("root="));
    }),
  );

  await runner.test(
    "an “other” box opens under rules of the server, also if these hide frames above it",
    () =>
      withPage(browser, server, async (page, watch) => {
        watch.allowed.add(400); // that path does not exist in the tree without the rules
        const text = Array.from(
          { length: 400 },
          (_, i) => `main;${i % 2 ? "heavy" : "light"};f${i} ${i % 2 ? i + 1000 : 90}`,
        ).join("\n");
        const { id } = await server.share(Buffer.from(text));
        await page.route("**/flame*", (route) => {
          const url = new URL(route.request().url());
          url.searchParams.set("limit", "300");
          return route.continue({ url: url.href });
        });
        for (const [rule, keys] of [
          ["ignore:^f1$", ["ArrowDown", "ArrowDown", "ArrowRight", "ArrowDown"]],
          ["hide:^main$", ["ArrowDown", "ArrowRight", "ArrowDown"]],
        ]) {
          await page.goto(`${server.url}/p/${id}?x=${rule}&sv=2`);
          await viewReady(page);
          await page.focus(".icicle");
          for (const key of keys) await page.keyboard.press(key);
          assert.match(await spoken(page), /^other, total 18,000 /);
          await page.keyboard.press("Enter");
          await page.waitForURL(/root=[0-9a-f]{16}/);
          for (const again of [false, true]) {
            if (again) await page.reload();
            await page.waitForFunction(() =>
              document
                .querySelector("#icicle-cursor")
                ?.textContent.startsWith("light, total 18,000 "),
            );
            await viewReady(page);
            await page.focus(".icicle");
            await page.keyboard.press("ArrowDown");
            assert.match(await spoken(page), /^f\d+, total 90 /);
          }
        }
        await page.click(".rules [aria-label^='Remove rule']");
        await page.waitForFunction(() => !location.search.includes("root="));
        await viewReady(page);
        assert.equal(await page.locator(".problem").count(), 0);
      }),
  );

  await runner.test("typing a search does not sort the table again", () =>
    withPage(browser, server, async (page) => {
      await open(page, "?v=table&sv=2");
      await searchFor(page, "x"); // the code for expressions is loaded
      await viewReady(page);
      await page.evaluate(() => {
        const { sort } = Array.prototype;
        globalThis.sorted = 0;
        Array.prototype.sort = function (...all) {
          globalThis.sorted += Number(this.length > 1 && "baseFlat" in Object(this[0]));
          return sort.apply(this, all);
        };
      });
      const before = (await tableRows(page)).length;
      await searchFor(page, ".");
      await soon(async () => assert.ok((await tableRows(page)).length > before));
      assert.equal(await page.evaluate(() => globalThis.sorted), 0);
      await page.click("[role=columnheader] button:has-text('Function')");
      assert.equal(await page.evaluate(() => globalThis.sorted), 1, "a sort is counted");
    }),
  );

  await runner.test("the chosen columns are in the link", () =>
    withPage(browser, server, async (page) => {
      await open(page, "?v=table&st=samples&s=-cum&sv=2");
      await page.click("button:has-text('Columns')");
      await page.click(".menu-check:has-text('Self')");
      await page.click(".menu-check:has-text('File')");
      assert.equal(new URL(page.url()).searchParams.get("co"), "cum,file");
      const heads = () =>
        page.$$eval("[role=columnheader]", (all) => all.map((one) => one.textContent));
      assert.deepEqual(await heads(), ["Total", "Function", "File"]);
      await page.reload();
      await viewReady(page);
      assert.deepEqual(await heads(), ["Total", "Function", "File"]);
      const { json } = await server.call(
        "GET",
        `/api/v1/shares/${shared.id}/top?sample_type=samples&limit=0`,
      );
      const files = new Map(json.functions.map((row) => [row.name, row.file]));
      const shown = await page.$$eval(".rows .row", (rows) =>
        rows.map((row) => [
          row.querySelector(".name button").ariaLabel,
          row.querySelector(".place").textContent,
        ]),
      );
      assert.equal(shown.length, files.size);
      for (const [name, file] of shown) assert.equal(file, files.get(name), name);
      await page.click("[role=columnheader] button:has-text('File')");
      const sorted = await page.$$eval(".rows .row", (rows) =>
        rows.map((row) => [
          Number(row.ariaRowIndex ?? row.getAttribute("aria-rowindex")),
          row.querySelector(".place").textContent,
        ]),
      );
      const inOrder = sorted.sort((a, b) => a[0] - b[0]).map(([, file]) => file);
      assert.deepEqual(inOrder, [...inOrder].sort());
    }),
  );

  await runner.test(
    "two views are shown side by side, and a hovered function is highlighted in both",
    () =>
      withPage(browser, server, async (page) => {
        await open(page, "?v=flame&sv=2");
        await page.keyboard.press("4");
        assert.equal(new URL(page.url()).search, "?v=table&b=flame&sv=2");
        await viewReady(page);
        await page.selectOption("[aria-label='Second view']", "sandwich");
        await page.waitForSelector(".pane-table + .pane-sandwich");
        await page.selectOption("[aria-label='Second view']", "icicle");
        const box = await page.locator(".icicle").boundingBox();
        const overlay = () =>
          page.$eval(".icicle canvas:last-child", (canvas) => canvas.toDataURL());
        await page.mouse.move(box.x + 60, box.y + 22 + 8);
        await page.waitForSelector(".row.hovered");
        assert.match(await page.textContent(".row.hovered .name"), /main\.main/);
        await page.mouse.move(5, 5);
        await page.waitForSelector(".row.hovered", { state: "detached" });
        const before = await overlay();
        assert.equal(await edgePixels(page), 0);
        await page.hover(".rows .row >> nth=0");
        await soon(async () =>
          assert.ok((await edgePixels(page)) > 60, "boxes of the row's function have edges"),
        );
        await page.waitForFunction(
          (old) => document.querySelector(".icicle canvas:last-child").toDataURL() !== old,
          before,
        );
        await page.focus(".icicle");
        await page.keyboard.press("4");
        assert.equal(new URL(page.url()).search, "?v=table&sv=2");
      }),
  );

  await runner.test("a profile of many nodes opens and responds quickly", async () => {
    const { id } = await server.share(foldedText(6000), {
      title: "Many nodes",
    });
    await server.call("GET", `/api/v1/shares/${id}/flame`);
    await withPage(browser, server, async (page) => {
      const client = await page.context().newCDPSession(page);
      await client.send("Performance.enable", { timeDomain: "threadTicks" });
      /**
       * CPU time of the page's main thread in ms from now on; independent of other load on the
       * machine.
       */
      const costOf = async (run) => {
        const spent = async () =>
          (await client.send("Performance.getMetrics")).metrics.find(
            ({ name }) => name === "TaskDuration",
          ).value * 1000;
        const before = await spent();
        await run();
        return (await spent()) - before;
      };
      const loadMs = await costOf(async () => {
        await page.goto(`${server.url}/p/${id}`);
        await viewReady(page);
      });
      const searchMs = await costOf(() =>
        page.evaluate(async () => {
          const input = document.querySelector("#search");
          input.value = "fn_1";
          input.dispatchEvent(new Event("input", { bubbles: true }));
          await new Promise((resolve) =>
            requestAnimationFrame(() => requestAnimationFrame(resolve)),
          );
        }),
      );
      // Relative to a loop of a fifth of a second: another CPU is slower or faster at both.
      const loopMs = await costOf(() =>
        page.evaluate(() => {
          const table = Uint32Array.from({ length: 1 << 20 }, (_, i) => Math.imul(i, 2654435761));
          for (let round = 0, at = 1; round < 50; round++)
            for (let i = 0; i < 1 << 20; i++) at = (table[at & 0xfffff] + at) >>> 0;
        }),
      );
      console.log(
        `# many nodes: ready after ${Math.round(loadMs)} ms of the page's thread, search drawn ` +
          `after ${Math.round(searchMs)} ms, a loop ${Math.round(loopMs)} ms`,
      );
      assert.ok(loadMs > 0 && loadMs < 2 * loopMs && searchMs > 0 && searchMs < loopMs / 2);
    });
  });

  await runner.test(
    "a million nodes: table, search and rules equal the server and plain sums",
    async () => {
      // 98 roots that call 100 functions, which call 101: 999,698 nodes below the root, with sums
      // that need no reader.
      const value = (root, step, leaf) => 1 + ((root * 7 + step * 3 + leaf) % 11);
      const each = (use) => {
        for (let root = 0; root < 98; root++)
          for (let step = 0; step < 100; step++)
            for (let leaf = 0; leaf < 101; leaf++)
              use({ root, step, leaf }, value(root, step, leaf));
      };
      const sumOf = (keeps) => {
        let sum = 0;
        each((names, own) => (sum += keeps(names) ? own : 0));
        return sum;
      };
      const lines = [];
      each(({ root, step, leaf }, own) =>
        lines.push(`root_${root};step_${step};leaf_${leaf} ${own}`),
      );
      const { id } = await server.share(gzipSync(lines.join("\n") + "\n"), {
        title: "A million",
        filename: "million.folded.gz",
      });
      const top = (query) =>
        server
          .call("GET", `/api/v1/shares/${id}/top?limit=0${query}`, {
            token: server.token,
          })
          .then(({ json }) => json);
      const exact = (sum) => sum.toLocaleString("en");
      await withPage(browser, server, async (page) => {
        const total = sumOf(() => true);
        await page.goto(`${server.url}/p/${id}?v=icicle&b=table&s=name&sv=2`);
        await viewReady(page);
        await page.waitForSelector(`.foot-line:has-text("${exact(total)} in 299 functions")`);
        const served = new Map((await top("")).functions.map((row) => [row.name, row]));
        assert.equal(served.size, 299);
        const rows = await page.$$eval(".rows .row", (all) =>
          all.map((row) => [
            row.querySelector(".cell.name").title,
            ...[...row.querySelectorAll(".cell.value")].map((cell) =>
              Number(cell.title.replace(/\D/g, "")),
            ),
          ]),
        );
        assert.ok(rows.length > 10);
        for (const [name, flat, cum] of rows) {
          const [kind, number] = name.split("_");
          const sum = sumOf((names) => names[kind] === Number(number));
          assert.deepEqual([flat, cum], [kind === "leaf" ? sum : 0, sum], name);
          assert.deepEqual([served.get(name).flat, served.get(name).cum], [flat, cum], name);
        }

        await searchFor(page, "leaf_50$");
        const share = `${((100 * sumOf(({ leaf }) => leaf === 50)) / total).toFixed(2)}%`;
        await page.waitForSelector(`.search:has-text("1 function · ${share}")`);

        await page.goto(
          `${server.url}/p/${id}?x=${encodeURIComponent("ignore:^step_1$~hide:^root_7$")}&sv=2`,
        );
        await viewReady(page);
        const left = sumOf(({ step }) => step !== 1);
        await page.waitForSelector(
          `.foot-line:has-text("${exact(left)} of ${exact(total)} in 297 functions")`,
        );
        assert.equal((await top(`&ignore=${encodeURIComponent("^step_1$")}`)).kept, left);
      });
    },
  );

  await runner.test(
    "the layout is stable while the page loads, and pictures are painted once",
    () =>
      withPage(browser, server, async (page) => {
        await page.addInitScript(() => {
          globalThis.shifts = 0;
          new PerformanceObserver((list) => {
            for (const entry of list.getEntries()) globalThis.shifts += entry.value;
          }).observe({ type: "layout-shift", buffered: true });
          globalThis.paints = [];
          const { putImageData } = CanvasRenderingContext2D.prototype;
          CanvasRenderingContext2D.prototype.putImageData = function (...all) {
            globalThis.paints.push(`${this.canvas.width} x ${this.canvas.height}`);
            return putImageData.apply(this, all);
          };
        });
        await open(page);
        await atRest(page);
        const { shifts, paints } = await page.evaluate(() => ({
          shifts: globalThis.shifts,
          paints: globalThis.paints,
        }));
        assert.ok(shifts < 0.02, `layout shift ${shifts}`);
        // The icicle and the minimap; once more if their size changed.
        assert.ok(paints.length >= 2 && new Set(paints).size === paints.length, paints.join(", "));
      }),
  );

  await runner.test(
    "if the sum of a sample type overflows, another type can be chosen",
    async () => {
      const huge = 2n ** 62n;
      const samples = [
        ["a", "b"],
        ["a", "c"],
      ].map((stack) => ({ stack, values: [1, huge] }));
      const { id } = await server.share(
        encodePprof({ types: twoTypes, samples, defaultType: "cpu" }),
      );
      await withPage(browser, server, async (page, watch) => {
        watch.allowed.add(413);
        await page.goto(`${server.url}/p/${id}`);
        await page.waitForSelector("text=too much to be added exactly");
        assert.equal(
          await page.locator("select[aria-label='Sample type'] option:checked").textContent(),
          "cpu",
        );
        await page.selectOption("select[aria-label='Sample type']", {
          label: "samples",
        });
        await viewReady(page);
        assert.match(page.url(), /st=samples/);
        // From a type that is shown: the overflowing type is selected, no other type replaces it,
        // and the reader can return.
        await page.keyboard.press("t");
        await page.waitForSelector("text=too much to be added exactly");
        assert.equal(
          await page.locator("select[aria-label='Sample type'] option:checked").textContent(),
          "cpu",
        );
        await page.keyboard.press("e");
        await page.keyboard.press("h");
        assert.ok(!/[?&]x=/.test(page.url()) && (await page.locator("dialog[open]").count()) === 0);
        await page.keyboard.press("t");
        await viewReady(page);
        assert.equal(
          await page.locator("select[aria-label='Sample type'] option:checked").textContent(),
          "samples",
        );
      });
    },
  );

  await runner.test("a name of a million letters does not block the page", async () => {
    const { id } = await server.share(
      Buffer.from(`main;short 1\nmain;${"x".repeat(1_000_000)};last 5\n`),
    );
    for (const view of ["icicle", "flame", "table", "sandwich", "graph"])
      await withPage(browser, server, async (page) => {
        await page.goto(`${server.url}/p/${id}?v=${view}`);
        await viewReady(page);
        assert.match(
          await page
            .locator("#search")
            .evaluate((field) => (field.focus(), document.activeElement.id)),
          /search/,
        );
      });
  });

  await runner.test(
    "the toolbar is one line in every view, and an empty peek explains what to do",
    () =>
      withPage(browser, server, async (page) => {
        const boxes = (selectors) =>
          page.evaluate(
            (all) => all.map((one) => document.querySelector(one).getBoundingClientRect().toJSON()),
            selectors,
          );
        await open(
          page,
          "?q=" +
            encodeURIComponent("encoding/json|runtime|a name that is much longer than the field") +
            "&sv=2",
        );
        const [{ height }] = await boxes([".toolbar"]);
        assert.ok(height < 60, `${height} px`);
        const [field, result] = await boxes(["#search", "#search-result"]);
        assert.ok(
          field.right <= result.left && field.width > 80,
          `${field.right} ${result.left} ${field.width}`,
        );
        for (const view of ["Flame", "Table", "Sandwich", "Graph", "Labels", "Comments", "Peek"]) {
          await page.click(`.toolbar button[title=${view}]`);
          await viewReady(page);
          assert.equal((await boxes([".toolbar"]))[0].height, height, view);
        }
        assert.match(await page.textContent(".pane-peek"), /^Select a function/);
      }),
  );

  await runner.test(
    "a toolbar of one line shows the whole search result beside menus with long names",
    async () => {
      const long = "dictionary.entries_of_each_request";
      const of = (extra) =>
        encodePprof({
          types: [["allocated_objects_since_the_start", "count"]],
          samples: [
            {
              stack: ["main", "btree"],
              values: [1000 + extra],
              labels: { [long]: "1" },
            },
            {
              stack: ["main", "BTreeG"],
              values: [2000],
              labels: { [long]: "2" },
            },
            { stack: ["main"], values: [1000] },
          ],
        });
      const [a, b] = [await server.share(of(0)), await server.share(of(7))];
      await withPage(browser, server, async (page) => {
        for (const [path, found] of [
          [`/p/${a.id}`, "2 functions · 75.0%"],
          [`/d/${a.id}..${b.id}`, "2 functions · 75.0% → 75.0%"],
        ])
          for (const width of [1401, 1440]) {
            await page.setViewportSize({ width, height: 900 });
            await page.goto(`${server.url}${path}?q=btree&sv=2`);
            await viewReady(page);
            assert.equal(await page.textContent("#search-result"), found);
            const { cut, field, height } = await page.evaluate(() => {
              const result = document.querySelector("#search-result");
              const { right } = document.querySelector(".search").getBoundingClientRect();
              return {
                cut: Math.max(
                  result.scrollWidth - result.clientWidth,
                  result.getBoundingClientRect().right - right,
                ),
                field: document.querySelector("#search").clientWidth,
                height: document.querySelector(".toolbar").clientHeight,
              };
            });
            assert.ok(
              cut <= 0 && field > 80 && height < 60,
              `${path} at ${width} px: ${cut} px are cut off, the field has ${field}, the ` +
                `toolbar ${height}`,
            );
          }
      });
    },
  );

  await runner.test("on a phone, legend and facts are one line each and can be unfolded", () =>
    withPage(
      browser,
      server,
      async (page) => {
        await open(page);
        await page.waitForSelector(".legend li:nth-child(6)");
        for (const [list, label] of [
          [".legend", "All colours"],
          [".facts", "All details"],
        ]) {
          const height = () =>
            page.$eval(list, (element) => element.getBoundingClientRect().height);
          assert.ok((await height()) <= 24);
          await page.click(`[aria-label="${label}"]`);
          assert.ok((await height()) > 24);
        }
        const hidden = await page.evaluate(() => {
          const legend = document.querySelector(".legend").getBoundingClientRect();
          const isIn = (one) => one.bottom <= legend.bottom && one.right <= innerWidth;
          return [...document.querySelectorAll(".legend li")]
            .filter((item) => !isIn(item.getBoundingClientRect()))
            .map((item) => item.textContent);
        });
        assert.deepEqual(hidden, []);
        assert.ok(await page.isVisible(".foot-total"));
      },
      { look: "phone" },
    ),
  );

  await runner.test(
    "a phone shows frames at once in both orientations, on most of its height",
    () =>
      withPage(
        browser,
        server,
        async (page) => {
          for (const [width, height] of [
            [360, 740],
            [740, 360],
          ]) {
            await page.setViewportSize({ width, height });
            await open(page);
            const { height: own } = await page.locator(".icicle-frame").boundingBox();
            const { y } = await page.locator(".icicle").boundingBox();
            assert.ok(y + 3 * 22 <= height, `${width} x ${height}: frames begin at ${y}`);
            assert.ok(own >= 0.6 * height, `${width} x ${height}: ${own} pixels of picture`);
          }
          await open(page, "?v=labels&sv=2");
          assert.equal(await page.locator(".legend").count(), 0, "no colours, no legend");
        },
        { look: "phone" },
      ),
  );

  await runner.test(
    "single-character keys can be switched off, and the browser stores the choice",
    () =>
      withPage(browser, server, async (page) => {
        await open(page);
        await page.keyboard.press("?");
        await page.uncheck(".check input");
        await page.keyboard.press("Escape");
        await page.waitForSelector("dialog", { state: "detached" });
        await page.reload();
        await viewReady(page);
        for (const key of ["2", "4", "?", "+"]) await page.keyboard.press(key);
        assert.equal(page.url(), at());
        assert.equal(await page.locator("dialog").count(), 0);
        await page.click(".keys-button");
        await page.check(".check input");
        await page.keyboard.press("Escape");
        await page.keyboard.press("2");
        await page.waitForURL(/v=table/);
      }),
  );

  await runner.test("the share page's scripts and styles stay within 60 KB gzip", () =>
    withPage(browser, server, async (page) => {
      const loaded = new Set();
      page.on(
        "request",
        (request) =>
          /\/assets\/.*\.(js|css)$/.test(request.url()) &&
          loaded.add(new URL(request.url()).pathname),
      );
      await open(page);
      let total = 0;
      for (const path of loaded)
        total += (
          await server.call("GET", path, {
            headers: { "Accept-Encoding": "gzip" },
          })
        ).bytes.length;
      console.log(`# share page: ${loaded.size} files, ${total} bytes gzip`);
      assert.ok(loaded.size >= 3 && total <= 60 * 1024, `${total} bytes`);
    }),
  );

  await runner.test(
    "all scripts and styles except graph layout, plot and Explore stay within 160 KB gzip",
    () => {
      const folder = new URL("../../web/dist/assets/", import.meta.url);
      const names = readdirSync(folder).filter((name) => /\.(js|css)\.gz$/.test(name));
      const others = ["graph_worker", "plot", "explore"].map((part) =>
        names.filter((name) => name.startsWith(`${part}-`)),
      );
      assert.deepEqual(
        others.map((found) => found.length),
        [1, 1, 1],
      );
      const total = names
        .filter((name) => !others.flat().includes(name))
        .reduce((sum, name) => sum + statSync(new URL(name, folder)).size, 0);
      console.log(`# whole app: ${names.length} files, ${total} bytes gzip`);
      assert.ok(total > 90 * 1024 && total <= 160 * 1024, `${total} bytes`);
    },
  );

  await runner.test(
    "names of spaces and control characters are visible in table, tree and picture",
    async () => {
      const named = await server.share(
        encodePprof({
          types: [["work", "count"]],
          samples: [
            { stack: ["main", "   "], values: [70] },
            { stack: ["main", "a\x01b"], values: [30] },
          ],
        }),
      );
      await withPage(browser, server, async (page) => {
        await page.addInitScript(() => {
          globalThis.drawn = new Set();
          const { fillText } = CanvasRenderingContext2D.prototype;
          CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
            globalThis.drawn.add(text);
            return fillText.call(this, text, ...place);
          };
        });
        await page.goto(`${server.url}/p/${named.id}?v=table&b=icicle&sv=2`);
        await viewReady(page);
        assert.deepEqual((await tableRows(page)).map((row) => row.at(-1)).sort(), [
          "a\\u0001b",
          "main",
          "␣␣␣",
        ]);
        await page.focus(".icicle");
        for (const key of ["ArrowDown", "ArrowDown"]) await page.keyboard.press(key);
        await soon(async () => assert.match(await spoken(page), /^␣␣␣, /));
        const drawn = await page.evaluate(() => [...globalThis.drawn]);
        assert.ok(drawn.includes("␣␣␣") && drawn.includes("a\\u0001b"), drawn.join());
      });
    },
  );
}
