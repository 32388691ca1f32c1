// Rules and the sandwich: numbers equal the server's filters and plain arithmetic on the samples.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  atRest,
  axeFindings,
  setInPlace,
  soon,
  tableRows,
  viewReady,
  withPage,
} from "./harness.mjs";
import { cpuProfile, cpuSamples, encodeNamesakes, topOf, totalOf } from "./profiles.mjs";
import { root } from "./server.mjs";

const count = (value) => value?.toLocaleString("en-US");
const percent = (part, whole) => {
  const value = (100 * part) / whole;
  return value === 0 ? "0%" : `${value.toFixed(value >= 99.95 ? 0 : value >= 10 ? 1 : 2)}%`;
};
const escape = (name) => name.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
const linkOf = (rules) => rules.map((rule) => rule.replaceAll("~", "~~")).join("~");

/** Applies the rules of a chain to the samples in order, in the simplest way. */
function applyRules(samples, rules) {
  let left = samples;
  for (const rule of rules) {
    const at = rule.indexOf(":");
    const action = rule.slice(0, at);
    const pattern = new RegExp(rule.slice(at + 1));
    const has = (stack) => stack.some((name) => pattern.test(name));
    if (action === "focus") left = left.filter(({ stack }) => has(stack));
    else if (action === "ignore") left = left.filter(({ stack }) => !has(stack));
    else {
      const change = {
        hide: (stack) => stack.filter((name) => !pattern.test(name)),
        show: (stack) => stack.filter((name) => pattern.test(name)),
        merge: (stack) =>
          has(stack) ? stack.slice(0, stack.findIndex((name) => pattern.test(name)) + 1) : stack,
        recursion: (stack) => {
          const kept = [];
          for (const name of stack) {
            const outer = pattern.test(name) ? kept.indexOf(name) : -1;
            if (outer >= 0) kept.length = outer + 1;
            else kept.push(name);
          }
          return kept;
        },
      }[action];
      left = left
        .map(({ stack, values }) => ({ stack: change(stack), values }))
        .filter(({ stack }) => stack.length);
    }
  }
  return left;
}

async function assertRows(page, expected) {
  const rows = await tableRows(page);
  const shown = new Map(rows.map(([flat, cum, name]) => [name, `${flat} ${cum}`]));
  const wanted = new Map(
    [...expected].map(([name, { flat, cum }]) => [name, `${count(flat)} ${count(cum)}`]),
  );
  assert.deepEqual(new Map([...shown].sort()), new Map([...wanted].sort()));
}

export async function testFilter(runner, browser, server) {
  const samples = cpuSamples(23);
  const shared = await server.share(cpuProfile(23), { title: "Filtered" });
  const at = (parameters = {}) => {
    const query = new URLSearchParams(parameters);
    return `${server.url}/p/${shared.id}${query.size ? `?${query}` : ""}`;
  };
  const open = async (page, parameters) => {
    await page.goto(at(parameters));
    await viewReady(page);
  };
  const chainOf = (page) => new URL(page.url()).searchParams.get("x") ?? "";

  for (const action of ["focus", "ignore", "hide", "show"])
    await runner.test(`a rule's numbers equal the server's: ${action}`, () =>
      withPage(browser, server, async (page) => {
        for (const text of ["runtime", "^main\\.", "json|Query", "store\\.go", "nothing at all"]) {
          const response = await server.call(
            "GET",
            `/api/v1/shares/${shared.id}/top?` +
              new URLSearchParams({
                sample_type: "samples",
                [action]: text,
                limit: 0,
              }),
          );
          await page.goto(
            at({
              v: "table",
              st: "samples",
              s: "-cum",
              x: `${action}:${text}`,
              sv: 2,
            }),
          );
          if (response.json.functions.length === 0) {
            await page.waitForSelector("text=No stack matches the rules");
            continue;
          }
          await viewReady(page);
          await assertRows(
            page,
            response.json.functions.map((row) => [row.name, row]),
          );
        }
      }),
    );

  await runner.test("grouped by file or binary, the server applies rules about functions", () =>
    withPage(browser, server, async (page) => {
      for (const g of ["file", "binary"])
        for (const [action, text] of [
          ["focus", "^main\\.parse$"],
          ["ignore", "^main\\.parse$"],
          ["hide", "Query$"],
          ["show", "^main\\."],
        ]) {
          const query = {
            sample_type: "samples",
            group_by: g,
            [action]: text,
            limit: 0,
          };
          const { json } = await server.call(
            "GET",
            `/api/v1/shares/${shared.id}/top?${new URLSearchParams(query)}`,
          );
          assert.ok(json.functions.length > 0);
          await open(page, {
            v: "table",
            st: "samples",
            s: "-cum",
            g,
            x: `${action}:${text}`,
            sv: 2,
          });
          await soon(() =>
            assertRows(
              page,
              json.functions.map((row) => [row.name, row]),
            ),
          );
        }
      // The rule stays in another grouping, and beside a rule that names a file, which the page
      // applies.
      await open(page, {
        v: "table",
        st: "samples",
        s: "-cum",
        x: "focus:^main\\.parse$",
        sv: 2,
      });
      const left = await page.textContent(".rules output");
      await page.selectOption("[aria-label=Group]", "file");
      await viewReady(page);
      assert.equal(await page.textContent(".rules output"), left);
      await open(page, {
        v: "table",
        st: "samples",
        g: "file",
        x: "focus:/json\\.go$~focus:^main\\.parse$",
        sv: 2,
      });
      const both = samples.filter(
        ({ stack }) =>
          stack.includes("main.parse") && stack.some((one) => one.startsWith("encoding/json.")),
      );
      assert.ok(
        both.length > 0 &&
          both.length < samples.filter(({ stack }) => stack.includes("main.parse")).length,
      );
      assert.ok(
        (await page.textContent(".foot-total")).startsWith(`${count(totalOf(both, 0))} of `),
      );
    }),
  );

  const file = join(
    process.env.PERFOLIO_SHARED ?? join(root, "../shared"),
    "data/pprof/profile-with-labels.pb.gz",
  );
  await runner.test(
    "the numbers of rules on a real profile equal the server's",
    async () => {
      const { id } = await server.share(readFileSync(file));
      await withPage(browser, server, async (page) => {
        // then the document contains a hundred rows and more
        await page.setViewportSize({ width: 1200, height: 3600 });
        for (const [action, text] of [
          ["focus", "parquet-go"],
          ["ignore", "mallocgc|parquet-go"],
          ["hide", "frostdb|^sort\\."],
          ["show", "github\\.com"],
        ]) {
          const response = await server.call(
            "GET",
            `/api/v1/shares/${id}/top?` +
              new URLSearchParams({
                sample_type: "samples",
                [action]: text,
                limit: 0,
              }),
          );
          await page.goto(
            `${server.url}/p/${id}?` +
              new URLSearchParams({
                v: "table",
                st: "samples",
                s: "-cum",
                x: `${action}:${text}`,
                sv: 2,
              }),
          );
          await viewReady(page);
          const expected = new Map(response.json.functions.map((row) => [row.name, row]));
          const rows = await tableRows(page);
          assert.ok(rows.length >= Math.min(100, expected.size));
          for (const [flat, cum, name] of rows)
            assert.deepEqual(
              [flat, cum],
              [count(expected.get(name)?.flat), count(expected.get(name)?.cum)],
              name,
            );
        }
      });
    },
    existsSync(file) ? "" : `${file} is not there`,
  );

  await runner.test(
    "rules match all files and binaries of a name, with the server's numbers",
    async () => {
      const { id } = await server.share(
        encodeNamesakes([
          { file: "/opt/app1", source: "one.c", leaf: "work1", value: 5 },
          { file: "/opt/app2", source: "two.c", leaf: "work2", value: 1 },
        ]),
      );
      await withPage(browser, server, async (page, watch) => {
        const requests = [];
        page.on(
          "request",
          (request) =>
            /\/flame\?.*(focus|ignore|hide|show)=/.test(request.url()) &&
            requests.push(request.url()),
        );
        const chains = [
          ["focus", "app1"],
          ["focus", "app2"],
          ["focus", "two\\.c"],
          ["ignore", "app2"],
          ["hide", "one\\.c"],
          ["show", "app2"],
          ["show", "(?i)APP"],
        ];
        for (const group of ["function", "line", "address"])
          for (const [action, text] of chains) {
            const response = await server.call(
              "GET",
              `/api/v1/shares/${id}/top?` +
                new URLSearchParams({
                  group_by: group,
                  [action]: text,
                  limit: 0,
                }),
            );
            await page.goto(
              `${server.url}/p/${id}?` +
                new URLSearchParams({
                  v: "table",
                  g: group,
                  s: "-cum",
                  x: `${action}:${text}`,
                  sv: 2,
                }),
            );
            await viewReady(page);
            await assertRows(
              page,
              response.json.functions.map((row) => [row.name, row]),
            );
          }
        assert.equal(
          requests.filter((url) => !/group_by=(line|address)/.test(url)).length,
          chains.length,
        );

        // The page applies rules on names alone, without a request.
        requests.length = 0;
        await page.goto(
          `${server.url}/p/${id}?` +
            new URLSearchParams({
              v: "table",
              s: "-cum",
              x: "focus:^work2$~hide:^main$",
              sv: 2,
            }),
        );
        await viewReady(page);
        await assertRows(page, [["work2", { flat: 1, cum: 1 }]]);
        assert.deepEqual(requests, []);

        // Numbers that the server did not return are not guessed.
        watch.allowed.add(503);
        await page.route(/\/flame\?.*focus=/, (route) =>
          route.fulfill({
            status: 503,
            headers: { "Content-Type": "application/problem+json" },
            body: JSON.stringify({
              type: "about:blank",
              title: "Busy",
              status: 503,
              detail: "too busy",
            }),
          }),
        );
        await page.goto(
          `${server.url}/p/${id}?` +
            new URLSearchParams({
              v: "table",
              s: "-cum",
              x: "focus:app2",
              sv: 2,
            }),
        );
        await page.waitForSelector("text=too busy");
        await page.unroute(/\/flame\?.*focus=/);
        await page.click("button:has-text('Try again')");
        await viewReady(page);
        await assertRows(page, [
          ["main", { flat: 0, cum: 1 }],
          ["work2", { flat: 1, cum: 1 }],
        ]);
      });
    },
  );

  await runner.test(
    "a rule matches a function whose name exceeds the length of an expression",
    async () => {
      const name = "std::very::long<".padEnd(10_000, "int, ");
      const { id } = await server.share(Buffer.from(`main;${name};leaf 3\nmain;rest 1\n`));
      await withPage(browser, server, async (page) => {
        await page.goto(`${server.url}/p/${id}`);
        await viewReady(page);
        await page.focus(".icicle");
        for (const key of ["ArrowDown", "ArrowDown", "f"]) await page.keyboard.press(key);
        await page.waitForURL(/x=focus/);
        await viewReady(page);
        await soon(async () =>
          assert.match(await page.textContent(".foot-total"), /^3 of 4 in 3 functions/),
        );
        assert.equal(await page.locator(".rules-error").count(), 0);
        assert.ok(page.url().length < 5000, `${page.url().length}`);
      });
    },
  );

  await runner.test("chains of rules equal plain arithmetic on the samples, in their order", () =>
    withPage(browser, server, async (page) => {
      const chains = [
        ["merge:^encoding/json\\.Marshal$"],
        ["recursion:."],
        ["recursion:^main\\."],
        ["hide:^runtime\\.", "focus:runtime|json"],
        ["focus:runtime", "hide:^runtime\\."],
        ["show:main|json", "recursion:.", "ignore:parse"],
        ["merge:serve$", "hide:serve$", "focus:."],
      ];
      for (const rules of chains) {
        await page.goto(
          at({
            v: "table",
            st: "samples",
            s: "-cum",
            x: linkOf(rules),
            sv: 2,
          }),
        );
        await viewReady(page);
        const left = applyRules(samples, rules);
        await assertRows(page, topOf(left, 0));
        assert.equal(
          await page.textContent(".rules output"),
          `${percent(totalOf(left, 0), totalOf(samples, 0))} left`,
        );
      }
    }),
  );

  await runner.test(
    "a frame's menu adds a rule, chips switch, move and remove it, and undo works",
    () =>
      withPage(browser, server, async (page) => {
        await open(page, { st: "samples", sv: 2 });
        await page.focus(".icicle");
        for (const key of ["ArrowDown", "ArrowDown"]) await page.keyboard.press(key);

        // The picture and the cursor stay while the first rule is applied.
        await page.evaluate(() => (window.picture = document.querySelector(".icicle")));
        await page.keyboard.press("h");
        await page.waitForSelector(".rules .rule");
        await viewReady(page);
        assert.ok(await page.evaluate(() => document.activeElement === window.picture));
        assert.match(await page.textContent("#icicle-cursor"), /^main\.main, /);
        // The address bar's history and the keys follow the same steps.
        const hidden = chainOf(page);
        await page.goBack();
        await page.waitForSelector(".rules", { state: "detached" });
        await page.keyboard.press("u");
        assert.equal(chainOf(page), "");
        await page.keyboard.press("U");
        await page.waitForSelector(".rules .rule");
        assert.equal(chainOf(page), hidden);
        await page.reload();
        await viewReady(page);
        await page.keyboard.press("u");
        await page.waitForSelector(".rules", { state: "detached" });
        await page.focus(".icicle");
        await page.keyboard.press("5");
        await page.keyboard.press("1");
        assert.ok(await page.evaluate(() => document.activeElement.matches(".icicle")));
        for (const key of ["ArrowDown", "ArrowDown"]) await page.keyboard.press(key);

        await page.keyboard.press(".");
        await page.waitForSelector("[role=menu]");
        assert.deepEqual(await axeFindings(page), []);
        await page.keyboard.press("ArrowDown");
        await page.keyboard.press("Enter");
        const name = /^(.+?), total/.exec(await page.textContent("#icicle-cursor"))?.[1];
        await page.waitForSelector(".rules .rule");
        const ignored = chainOf(page);
        assert.match(ignored, /^ignore:\^.+\$$/);
        await page.keyboard.press("u");
        await page.waitForSelector(".rules", { state: "detached" });
        assert.equal(chainOf(page), "");
        await page.keyboard.press("U");
        await page.waitForSelector(".rules .rule");
        assert.equal(chainOf(page), ignored);
        assert.ok(name);

        await page.click("text=Filter · 1");
        await page.selectOption(".rule-form select", "hide");
        await page.fill("#rule-text", "(");
        await page.click(".rule-form >> text=Add");
        await page.waitForSelector(".rule-form .rules-error");
        await page.fill("#rule-text", "^runtime");
        assert.deepEqual(await axeFindings(page), []);
        await page.click(".rule-form >> text=Add");
        await page.keyboard.press("Escape");
        assert.equal(chainOf(page), `${ignored}~hide:^runtime`);
        await page.click("[aria-label='Apply earlier: ^runtime']");
        assert.equal(chainOf(page), `hide:^runtime~${ignored}`);
        await page.click(".rule:first-child .rule-text");
        assert.equal(chainOf(page), `!hide:^runtime~${ignored}`);
        await viewReady(page);
        assert.deepEqual(await axeFindings(page), []);
        await page.click(".rule:last-child [aria-label^='Remove']");
        assert.equal(chainOf(page), "!hide:^runtime");
        await page.goBack();
        assert.equal(chainOf(page), `!hide:^runtime~${ignored}`);
        await page.click(".rules >> text=Clear");
        assert.equal(page.url(), at({ st: "samples", sv: 2 }));
      }),
  );

  await runner.test("percentages can refer to the profile after the rules", () =>
    withPage(browser, server, async (page) => {
      await open(page, { v: "table", st: "samples", x: "focus:json", sv: 2 });
      const left = applyRules(samples, ["focus:json"]);
      const main = () =>
        page.$eval(
          ".rows .row:has(button[aria-label='main.main'])",
          (row) => row.querySelectorAll(".percent")[1].textContent,
        );
      assert.equal(await main(), percent(totalOf(left, 0), totalOf(samples, 0)));
      await page.check(".rules input[type=checkbox]");
      assert.equal(await main(), "100%");
      assert.equal(new URL(page.url()).searchParams.get("p"), "filtered");
    }),
  );

  await runner.test("rules are saved under a name in this browser", () =>
    withPage(browser, server, async (page) => {
      await open(page, { x: "hide:^runtime~only:go", sv: 2 });
      await page.click("text=Filter · 2");
      await page.fill("[aria-label='Name for these rules']", "Mine");
      await page.click(".rule-form >> text=Save");
      await page.keyboard.press("Escape");
      await open(page);
      await page.click(".toolbar >> text=Filter");
      await page.click(".saved-rules >> text=Mine");
      assert.equal(chainOf(page), "hide:^runtime~only:go");
    }),
  );

  await runner.test("menus stay within the window at every width and height", () =>
    withPage(browser, server, async (page) => {
      await page.goto(`${server.url}/p/${shared.id}?v=table&sv=2`);
      await viewReady(page);
      for (const [width, height] of [
        [641, 600],
        [768, 900],
        [900, 600],
        [960, 700],
        [1024, 600],
        [1440, 900],
      ])
        for (const menu of [".rule-menu", ".column-menu", ".profile-tools .menu"]) {
          await page.setViewportSize({ width, height });
          await page.click(`${menu} > button`);
          if (menu === ".rule-menu") await page.waitForSelector(".rule-form");
          const place = () =>
            page.$eval(`${menu} > .menu-panel`, (panel) => panel.getBoundingClientRect().toJSON());
          await soon(async () => {
            const { left, right, bottom } = await place();
            assert.ok(
              left >= 0 && right <= width && bottom <= height,
              `${menu} at ${width}x${height}: ${left} to ${right}, down to ${bottom}`,
            );
          });
          await page.keyboard.press("Escape");
        }
    }),
  );

  await runner.test("files and pictures of a link have the page's numbers for all rules", () =>
    withPage(browser, server, async (page) => {
      const texts = [
        "runtime",
        "^main\\.",
        "json|Query",
        "^(?:net/http|database)",
        "store\\.go",
        "[aeiou]S",
        "Marshal",
      ];
      const actions = ["focus", "ignore", "hide", "show", "merge", "recursion", "only"];
      let seed = 5;
      const pick = (values) =>
        values[(seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) % values.length];
      const rule = () => {
        const action = pick(actions);
        return `${action}:${action === "only" ? pick(["go", "native", "kernel"]) : pick(texts)}`;
      };
      await open(page, { v: "table", st: "samples", s: "-cum" });
      for (let i = 0; i < 40; i++) {
        const query = {
          v: "table",
          st: "samples",
          s: "-cum",
          g: pick(["function", "function", "file", "binary"]),
          x: Array.from({ length: 1 + (i % 4) }, rule).join("~"),
          sv: 2,
        };
        const file = await server.call("GET", `/p/${shared.id}.json?${new URLSearchParams(query)}`);
        assert.equal(file.status, 200, query.x);
        const sums = new Map();
        const visit = (node, above) => {
          for (const child of node.children ?? []) {
            const sum = sums.get(child.name) ?? { flat: 0, cum: 0 };
            sums.set(child.name, sum);
            sum.flat +=
              child.value - (child.children ?? []).reduce((all, { value }) => all + value, 0);
            if (!above.has(child.name)) sum.cum += child.value;
            visit(child, new Set([...above, child.name]));
          }
        };
        visit(file.json.root, new Set());
        await setInPlace(page, at(query));
        await soon(async () => {
          if (sums.size === 0)
            return assert.ok(await page.isVisible("text=No stack matches the rules"), query.x);
          await viewReady(page);
          await assertRows(page, sums);
        });
      }
    }),
  );

  await runner.test(
    "a rule that cannot be applied is reported, and the profile stays visible",
    () =>
      withPage(browser, server, async (page) => {
        await page.goto(at({ v: "table", x: "hide:^runtime~focus:(", sv: 2 }));
        await page.waitForSelector(".rule.wrong .rule-text >> text=(");
        assert.ok((await page.textContent(".rules-error")).length > 5);
        assert.ok((await tableRows(page)).length > 5);
        await page.click(".rule.wrong [aria-label^='Remove']");
        await page.waitForSelector(".rules output");
        await page.goto(at({ x: "focus:nowhere at all", sv: 2 }));
        await page.click("text=Clear the rules");
        await viewReady(page);
      }),
  );

  await runner.test("rules apply to both sides of a comparison", () =>
    withPage(browser, server, async (page) => {
      const [a, b] = await Promise.all([31, 32].map((seed) => server.share(cpuProfile(seed))));
      await page.goto(
        `${server.url}/d/${a.id}..${b.id}?` +
          new URLSearchParams({
            v: "table",
            st: "samples",
            x: "focus:json",
            sv: 2,
          }),
      );
      await viewReady(page);
      const [before, after] = [31, 32].map((seed) =>
        topOf(applyRules(cpuSamples(seed), ["focus:json"]), 0),
      );
      for (const [was, is, , name] of await tableRows(page))
        assert.deepEqual(
          [was, is],
          [count(before.get(name)?.cum ?? 0), count(after.get(name)?.cum ?? 0)],
          name,
        );
      const shares = [31, 32].map((seed) =>
        percent(
          totalOf(applyRules(cpuSamples(seed), ["focus:json"]), 0),
          totalOf(cpuSamples(seed), 0),
        ),
      );
      assert.equal(await page.textContent(".rules output"), `${shares[0]} → ${shares[1]} left`);
    }),
  );

  await runner.test("the sandwich reports why it cannot be shown and offers a retry", () =>
    withPage(browser, server, async (page, watch) => {
      watch.allowed.add(500);
      await page.route(/\/rules_worker-[^/]*\.js$/, (route) =>
        route.fulfill({ status: 500, body: "" }),
      );
      await page.goto(at({ v: "sandwich", m: "main.main", sv: 2 }));
      await page.waitForSelector(
        ".pane-sandwich .problem:has-text('The browser stopped the filter')",
      );
      await page.unroute(/\/rules_worker-[^/]*\.js$/);
      await page.click(".pane-sandwich button:has-text('Try again')");
      await page.waitForSelector(".sandwich-half");
      await page.goto(at({ v: "sandwich", m: "main.main", x: "focus:(", sv: 2 }));
      await page.waitForSelector(".pane-sandwich .problem");
      assert.equal(await page.locator(".pane-sandwich button:has-text('Try again')").count(), 0);
    }),
  );

  await runner.test("the sandwich shows callers and callees and counts recursion once", () =>
    withPage(browser, server, async (page) => {
      const name = "encoding/json.Marshal";
      await open(page, { v: "sandwich", st: "samples", m: name, sv: 2 });
      await page.waitForSelector(".sandwich-half");
      const sums = { callers: new Map(), callees: new Map() };
      const add = (map, key, value) => map.set(key, (map.get(key) ?? 0) + value);
      let total = 0;
      for (const { stack, values } of samples) {
        const place = stack.indexOf(name);
        if (place < 0) continue;
        total += values[0];
        if (place > 0) add(sums.callers, stack[place - 1], values[0]);
        if (place + 1 < stack.length) add(sums.callees, stack[place + 1], values[0]);
      }
      for (const [half, key, label] of [
        [0, "ArrowUp", "callers"],
        [1, "ArrowDown", "callees"],
      ]) {
        const textOf = () => page.textContent(`#${label}-cursor`);
        assert.ok((await textOf()).startsWith(`${name}, total ${count(total)} (`), await textOf());
        await page.locator(".sandwich-half .icicle").nth(half).focus();
        await page.keyboard.press(key);
        const [first, value] = [...sums[label]].sort((a, b) => b[1] - a[1])[0];
        assert.ok((await textOf()).startsWith(`${first}, total ${count(value)} (`), await textOf());
      }
      assert.deepEqual(await axeFindings(page), []);
      // The visible part of both halves is in the address, until another function is marked.
      const pictures = async () => (
        await viewReady(page),
        page.$$eval(".sandwich-half .icicle canvas:first-of-type", (all) =>
          all.map((canvas) => canvas.toDataURL()),
        )
      );
      const whole = await pictures();
      for (const [half, key, keys] of [
        [0, "za", "+dd"],
        [1, "zb", "+a"],
      ]) {
        await page.locator(".sandwich-half .icicle").nth(half).focus();
        for (const one of keys) await page.keyboard.press(one);
        await page.waitForFunction(
          (key) => /^[0-9a-f]{16}:0/.test(new URL(location.href).searchParams.get(key)),
          key,
        );
      }
      await atRest(page);
      const seen = new URL(page.url()).search;
      const moved = await pictures();
      assert.ok(moved.every((picture, half) => picture !== whole[half]));
      const ways = [
        () => page.click("[aria-label='Reset zoom']"),
        () => page.keyboard.press("0"),
        () => page.keyboard.press("Backspace"),
      ];
      for (const reset of ways) {
        await page.goto(`${server.url}/p/${shared.id}${seen}`);
        await page.waitForSelector(".sandwich-half");
        await soon(async () =>
          assert.deepEqual(
            (await pictures()).map((one, half) => one === moved[half]),
            [true, true],
            seen,
          ),
        );
        await page.locator(".sandwich-half .icicle").nth(0).focus();
        assert.equal(await page.isEnabled("[aria-label='Reset zoom']"), true);
        await reset();
        await page.waitForFunction(() => !/[?&]z[ab]=/.test(location.search));
        await page.locator("#search").focus(); // the focus ring of the pane is drawn too
        await soon(async () =>
          assert.deepEqual(
            (await pictures()).map((one, half) => one === whole[half]),
            [true, true],
            "the whole half is visible again",
          ),
        );
        assert.equal(await page.isEnabled("[aria-label='Reset zoom']"), false);
        await page.goBack();
        await soon(async () =>
          assert.deepEqual(
            (await pictures()).map((one, half) => one === moved[half]),
            [true, true],
            "back restores the visible part",
          ),
        );
      }
      await page.locator(".sandwich-half .icicle").nth(1).focus();
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("Enter");
      await page.waitForFunction(
        (old) => new URL(location.href).searchParams.get("m") !== old,
        name,
      );
      assert.doesNotMatch(
        page.url(),
        /[?&]z[ab]=/,
        "the parts of the previous function are removed",
      );
      await page.click(".rows .row:nth-child(3) button");
      assert.ok(escape(new URL(page.url()).searchParams.get("m")));
    }),
  );
}
