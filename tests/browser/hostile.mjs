/*
 * Label names and values come from any client that sends profiles. Whatever they contain, the pages
 * of continuous profiles show them as text: no markup becomes an element, no script runs, no other
 * site is contacted, no character changes the direction of others, and each stays the same value in
 * menus, addresses and queries.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { axeFindings, screenshots, settled, soon, viewReady, withPage } from "./harness.mjs";
import { encodePprof } from "./profiles.mjs";
import { signedIn } from "./account.mjs";

const minute = 60_000;
const markup =
  '<img class="evil" src="https://evil.example/x" onerror="globalThis.evil=1">' +
  '<script class="evil">globalThis.evil=1</script>';
const values = {
  markup,
  breaksOut: `"><svg class="evil" onload="globalThis.evil=1">'</script></title></textarea>`,
  quotes: `a"b'c\`d\\e", pod="x"} or {1`,
  entities: "&lt;b class=evil&gt;&#60;b&#62;&amp;",
  link: "javascript:globalThis.evil=1//${globalThis.evil=1}{{evil}}",
  turned: "safe\u202egnp.exe\u2066\u2067left\u2069\u202c",
  marks: "\u200bzero\u200dwidth\u2060\u00a0\ufeff",
  lines: "first\nsecond\r\n\tthird\u2028fourth",
  parameters: "x&only=pod=y&part=1-2#fragment?query=%3Cb%3E+1%",
  formula: '=HYPERLINK("https://evil.example")',
  long: "w".repeat(2000),
  ofPrototypes: "__proto__",
};
/**
 * Label names consist of the letters that Prometheus allows; they can only be hostile by their
 * meaning to a program, and by their length.
 */
const names = ["constructor", "toString", "proto__", "length", "n".repeat(1000)];
const sampleLabels = [
  ["<b class=evil onclick=alert(1)>", markup],
  ["valueOf", values.turned],
  [`"'\`=!\\`, values.quotes],
];
const type = "hostile:cpu:nanoseconds";
const turning = /[\u202a-\u202e\u2066-\u2069]/;

async function send(server, begin) {
  const all = Object.entries(values);
  for (const [k, [kind, value]] of all.entries()) {
    const samples = [
      {
        stack: ["main", markup],
        values: [(k + 1) * 1e9],
        labels: sampleLabels,
      },
    ];
    const labels = [
      ["service_name", `${kind}: ${value}`.slice(0, 2000)],
      ["pod", value],
      ...names.map((name) => [name, value]),
    ];
    const query = new URLSearchParams([
      ["name", "hostile"],
      ["time", String(begin / 1000)],
      ...labels.map((pair) => ["label", pair.join("=")]),
    ]);
    const body = encodePprof({
      types: [["cpu", "nanoseconds"]],
      samples,
      durationNs: 60e9,
    });
    const response = await server.call("POST", `/api/v1/profiles?${query}`, {
      body,
      token: server.token,
    });
    assert.equal(response.status, 200, `${kind}: ${response.bytes}`);
  }
  return all.length;
}

/** Checks that the page contains nothing that no page may contain. */
async function assertHarmless(page, where) {
  const found = await page.evaluate((turns) => {
    const texts = [document.title];
    for (const element of document.querySelectorAll("*")) {
      for (const { value, name } of element.attributes)
        if (!["href", "value", "for", "id"].includes(name)) texts.push(value);
      if (element.shadowRoot) texts.push(element.shadowRoot.textContent);
    }
    texts.push(document.body.textContent);
    return {
      evil: globalThis.evil ?? null,
      elements: [
        ...document.querySelectorAll(
          ".evil, [onerror], [onload], [onclick], a[href^='javascript:' i], " +
            "[src*='evil.example'], [href*='evil.example']",
        ),
      ].map((one) => one.outerHTML),
      turned: texts
        .filter((text) => new RegExp(turns).test(text))
        .map((text) => text.slice(0, 200)),
      isTooWide: document.documentElement.scrollWidth > innerWidth + 1,
      polluted: {}.evil ?? Object.keys(Object.prototype).length,
    };
  }, turning.source);
  assert.deepEqual(
    found,
    { evil: null, elements: [], turned: [], isTooWide: false, polluted: 0 },
    where,
  );
}

export async function testHostile(runner, browser, server) {
  if (!runner.wants("hostile labels")) return;
  const context = await signedIn(browser, server);
  const phone = await signedIn(browser, server, "phone");
  const inside = (use, of = context) =>
    withPage(
      browser,
      server,
      async (page, watch) => {
        page.on(
          "dialog",
          (dialog) => watch.faults.push(`dialog: ${dialog.message()}`) && dialog.dismiss(),
        );
        await use(page, watch);
      },
      { context: of },
    );
  const begin = Math.floor(Date.now() / minute) * minute - 300 * minute;
  const count = await send(server, begin);
  const window = { from: begin - 2 * minute, until: begin + 3 * minute };
  const address = (parameters = {}) => {
    const all = { ev: "1", query: type, ...window, v: "table", ...parameters };
    const pairs = Object.entries(all).flatMap(([name, value]) =>
      [value].flat().map((one) => [name, one]),
    );
    return `${server.url}/explore?${new URLSearchParams(pairs)}`;
  };
  const open = async (page, url) => {
    await page.goto(url);
    await page.waitForSelector(".plot .u-over");
    await viewReady(page);
  };
  const look = async (page, name) => {
    await settled(page.mainFrame());
    await page.screenshot({
      path: join(screenshots, `hostile-${name}.png`),
      fullPage: true,
    });
    await assertHarmless(page, name);
  };
  const totalOf = async (page) => Number(/^[\d.,]+/.exec(await page.textContent(".foot-total"))[0]);

  await runner.test(
    "hostile labels: the graph, all tables and the list of profiles show them as text",
    () =>
      inside(async (page) => {
        await open(page, address({ by: ["pod"], list: "1" }));
        await page.click("text=Show all values as a table");
        await page.waitForSelector(".value-table");
        await page.waitForSelector(".stored tbody tr");
        assert.equal(await page.locator(".series-table tbody tr").count(), count);
        assert.equal(await page.locator(".stored tbody tr").count(), count);
        const legend = await page.$$eval(".series-table tbody th", (all) =>
          all.map((one) => one.textContent),
        );
        for (const text of [
          `pod=${values.markup}`,
          `pod=${values.breaksOut}`,
          `pod=${values.entities}`,
          `pod=${values.quotes}`,
        ])
          assert.ok(legend.includes(text), text);
        assert.ok(
          legend.some((text) => text.includes("safe\\u202Egnp.exe")),
          `${legend}`,
        );
        const box = await page.locator(".plot .u-over").boundingBox();
        await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
        for (const row of await page.locator(".series-table tbody button").all())
          await row.hover({ force: true });
        await page.focus(".plot");
        await page.keyboard.press("Home");
        await look(page, "lines");
        assert.deepEqual(await axeFindings(page), []);
      }),
  );

  await runner.test(
    "hostile labels: each series is chosen, written to the address, and restored from it",
    () =>
      inside(async (page) => {
        await open(page, address({ by: ["pod"] }));
        for (const [k, [kind, value]] of Object.entries(values).entries()) {
          await open(page, address({ by: ["pod"], only: `pod=${value}` }));
          await soon(async () => assert.equal(await totalOf(page), k + 1, kind));
          assert.equal(await page.locator(".series-table tr.chosen").count(), 1, kind);
          await assertHarmless(page, kind);
        }
        await open(page, address({ by: ["pod"] }));
        for (const kind of ["markup", "quotes", "parameters", "lines"]) {
          const at = await page.$$eval(
            ".series-table tbody button",
            (all, text) => all.findIndex((one) => one.textContent.includes(text)),
            {
              markup: "<img",
              quotes: "a\"b'c",
              parameters: "x&only",
              lines: "first",
            }[kind],
          );
          await page.locator(".series-table tbody button").nth(at).click();
          await page.waitForURL((url) => url.searchParams.get("only") === `pod=${values[kind]}`);
          await page.reload();
          await viewReady(page);
          await soon(async () =>
            assert.equal(await totalOf(page), Object.keys(values).indexOf(kind) + 1, kind),
          );
          await page.locator(".series-table tbody button").nth(at).click();
          await page.waitForURL((url) => !url.searchParams.has("only"));
        }
      }),
  );

  await runner.test(
    "hostile labels: completions are text, and an accepted one selects its value",
    () =>
      inside(async (page) => {
        for (const [kind, typed] of [
          ["markup", "<img"],
          ["quotes", "a"],
          ["lines", "first"],
          ["turned", "safe"],
          ["long", "www"],
          ["formula", "=HYP"],
        ]) {
          await open(page, address());
          await page.fill("[role=combobox]", `pod="${typed}`);
          await page.keyboard.press("End");
          await page.waitForSelector("[role=option]");
          await page.keyboard.press("ArrowDown");
          if (kind === "markup") await look(page, "completions");
          await assertHarmless(page, kind);
          await page.locator("[role=option]").filter({ hasText: typed }).first().click();
          await page.keyboard.press("Escape");
          await page.keyboard.press("Enter");
          await page.waitForURL((url) => url.searchParams.get("query").startsWith(`${type}{pod=`));
          await viewReady(page);
          await soon(async () =>
            assert.equal(await totalOf(page), Object.keys(values).indexOf(kind) + 1, kind),
          );
        }
      }),
  );

  await runner.test(
    "hostile labels: names of program properties are plain names in menus and groupings",
    () =>
      inside(async (page) => {
        await open(page, address());
        await page.click(".group-menu button");
        await page.waitForSelector(".group-names label");
        const shown = await page.$$eval(".group-names label", (all) =>
          all.map((one) => one.textContent.trim()),
        );
        for (const name of names.filter((one) => one !== "proto__"))
          assert.ok(shown.includes(name), `${name} in ${shown}`);
        await look(page, "menu");
        for (const name of ["constructor", "toString", "length", names.at(-1)]) {
          await open(page, address({ by: [name] }));
          assert.equal(await page.locator(".series-table tbody tr").count(), count, name);
          await page.locator(".series-table tbody button").first().click();
          await page.waitForURL((url) =>
            (url.searchParams.get("only") ?? "").startsWith(`${name}=`),
          );
          await viewReady(page);
          await assertHarmless(page, name);
        }
        await look(page, "long-name");
      }),
  );

  await runner.test("hostile labels: sample labels are shown as text, filter and group", () =>
    inside(async (page) => {
      await open(page, address({ v: "labels" }));
      await page.waitForSelector(".label-row");
      await look(page, "samples");
      const rows = await page.$$eval(".label-row .label-name", (all) =>
        all.map((one) => one.textContent),
      );
      assert.ok(rows.includes(markup), `${rows}`);
      await page.locator(".label-row .label-value").filter({ hasText: "<img" }).first().click();
      await page.waitForURL(/[?&]lb=/);
      await viewReady(page);
      await look(page, "filtered");
      await open(page, address({ g: `label:${sampleLabels[0][0]}` }));
      assert.ok((await page.textContent(".rows")).includes("<img"));
      await look(page, "divided");
    }),
  );

  await runner.test("hostile labels: the title and the page of a share show them as text", () =>
    inside(async (page) => {
      await open(page, address({ by: ["pod"], only: `pod=${values.breaksOut}` }));
      await page.click("button:has-text('Share')");
      await page.waitForSelector("dialog label:has-text('Title') + input");
      await look(page, "share");
      await page.fill(
        "dialog label:has-text('Title') + input",
        `${values.breaksOut}${values.turned}`,
      );
      await page.click("dialog button:has-text('Create link')");
      const link = await page.textContent("dialog .copy-field code");
      await page.goto(link);
      await viewReady(page);
      await look(page, "shared");
      const { bytes } = await server.call("GET", new URL(link).pathname, {
        token: server.token,
      });
      assert.ok(!`${bytes}`.includes("<svg class") && !turning.test(`${bytes}`), `${bytes}`);
    }),
  );

  await runner.test(
    "hostile labels: a phone shows sources as text, without horizontal overflow",
    () =>
      inside(async (page) => {
        await open(page, address({ by: ["pod", "service_name"], list: "1" }));
        await page.waitForSelector(".stored tbody tr");
        await look(page, "phone");
        await page.goto(`${server.url}/sources`);
        await page.waitForSelector("text=markup: <img");
        await look(page, "sources-phone");
      }, phone),
  );

  await context.close();
  await phone.close();
}
