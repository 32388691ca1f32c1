// Peek and the call graph: numbers equal the API's and a brute-force reader's; pointer and keys
// navigate.
import assert from "node:assert/strict";
import { pressAndLeave, searchFor, soon, viewReady, withPage } from "./harness.mjs";
import { cpuProfile, cpuSamples, deepText, topOf } from "./profiles.mjs";

/** The exact values of a peek list: [[name, value], …], from the top. */
const listRows = (page, label) =>
  page.$$eval(`.peek-list [role=table][aria-label*="${label}"] .rows .row`, (rows) =>
    rows
      .sort((a, b) => a.getAttribute("aria-rowindex") - b.getAttribute("aria-rowindex"))
      .map((row) => [
        row.querySelector(".cell.name").title.split("\n")[0],
        ...[...row.querySelectorAll(".cell.value")].map((cell) =>
          Number(cell.title.replace(/[^\d−-]/g, "").replace("−", "-")),
        ),
      ]),
  );

/**
 * Callers and callees by brute force: [caller or callee, value], once per sample, without calls of
 * a function by itself.
 */
function edgesOf(samples, type, fn, step) {
  const sums = new Map();
  for (const { stack, values } of samples) {
    const others = new Set(
      stack.flatMap((name, i) =>
        name === fn && stack[i + step] && stack[i + step] !== fn ? [stack[i + step]] : [],
      ),
    );
    for (const name of others) sums.set(name, (sums.get(name) ?? 0) + values[type]);
  }
  return [...sums].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
}

export async function testGraph(runner, browser, server) {
  const samples = cpuSamples(61);
  const shared = await server.share(cpuProfile(61), { title: "Calls" });
  const second = await server.share(cpuProfile(62), { title: "Calls, later" });
  const open = async (page, path, ready) => {
    await page.goto(server.url + path);
    await viewReady(page);
    await page.waitForSelector(ready);
  };
  const callersOf = async (fn, type = "cpu") =>
    (
      await server.call(
        "GET",
        `/api/v1/shares/${shared.id}/callers?fn=${encodeURIComponent(fn)}&sample_type=${type}` +
          "&limit=1000",
        { token: server.token },
      )
    ).json;

  await runner.test("peek: callers and callees equal the API and a brute-force reader", () =>
    withPage(browser, server, async (page) => {
      const heaviest = [...topOf(samples, 1)].sort((a, b) => b[1].cum - a[1].cum).slice(0, 4);
      for (const [fn, { flat, cum }] of heaviest) {
        await open(page, `/p/${shared.id}?v=peek&m=${encodeURIComponent(fn)}&sv=2`, ".peek-sums");
        const response = await callersOf(fn);
        for (const [label, edges, step] of [
          ["caller", response.callers, -1],
          ["callee", response.callees, 1],
        ]) {
          const expected = edgesOf(samples, 1, fn, step);
          assert.deepEqual(
            edges.map((edge) => [edge.name, edge.value]),
            expected,
          );
          const rows = await listRows(page, label);
          const begins = samples
            .filter(({ stack }) => stack[0] === fn)
            .reduce((sum, { values }) => sum + values[1], 0);
          const own = step > 0 ? [["itself", flat]] : [["stacks start here", begins]];
          assert.deepEqual(rows, [...(own[0][1] ? own : []), ...expected]);
        }
        assert.deepEqual([response.flat, response.cum], [flat, cum]);
      }
    }),
  );

  await runner.test(
    "peek: a function is chosen in the table, and pointer and keys lead to others and back",
    () =>
      withPage(browser, server, async (page) => {
        await open(page, `/p/${shared.id}`, ".icicle");
        await page.keyboard.press("8");
        await page.waitForSelector(".rows .row button");
        const heaviest = [...topOf(samples, 1)].sort((a, b) => b[1].flat - a[1].flat)[0][0];
        await page.click(".rows .row button");
        await page.waitForSelector(".peek-self");
        assert.equal(await page.textContent(".peek-self h3"), heaviest);
        const [[callee]] = edgesOf(samples, 1, heaviest, 1);
        await page.focus(`.peek-list:last-child button[aria-label="${callee}"]`);
        await page.keyboard.press("Enter");
        await page.waitForFunction(
          (name) => document.querySelector(".peek-self h3").textContent === name,
          callee,
        );
        assert.equal(new URL(page.url()).searchParams.get("m"), callee);
        await page.goBack();
        await page.waitForFunction(
          (name) => document.querySelector(".peek-self h3").textContent === name,
          heaviest,
        );
        await open(page, `/p/${shared.id}?v=peek&m=nobody&sv=2`, ".sandwich-empty");
      }),
  );

  await runner.test("peek: a comparison shows both sides and the change", () =>
    withPage(browser, server, async (page) => {
      const fn = "runtime.mallocgc";
      await open(page, `/d/${shared.id}..${second.id}?v=peek&m=${fn}&sv=2`, ".peek-sums");
      const [before, after] = [samples, cpuSamples(62)].map(
        (side) => new Map(edgesOf(side, 1, fn, 1)),
      );
      const rows = await listRows(page, "callee");
      assert.equal(rows.length, new Set([...before.keys(), ...after.keys()]).size + 1);
      for (const [name, left, right, change] of rows.filter((row) => row[0] !== "itself")) {
        assert.deepEqual(
          [left, right, change],
          [
            before.get(name) ?? 0,
            after.get(name) ?? 0,
            (after.get(name) ?? 0) - (before.get(name) ?? 0),
          ],
        );
      }
    }),
  );

  await runner.test("peek: works at depth 5,000 and is empty if no stack matches the rules", () =>
    withPage(browser, server, async (page) => {
      const deep = await server.share(deepText(5000), { title: "deep" });
      await open(page, `/p/${deep.id}?v=peek&m=level_2500&sv=2`, ".peek-sums");
      assert.deepEqual(
        [await listRows(page, "caller"), await listRows(page, "callee")],
        [[["level_2499", 7]], [["level_2501", 7]]],
      );
      await page.goto(`${server.url}/p/${deep.id}?v=peek&m=level_2500&x=focus:nothing&sv=2`);
      await page.waitForSelector("text=No stack matches the rules");
    }),
  );

  const drawn = (page) => page.waitForSelector(".graph[aria-busy=false] .graph-node");
  /**
   * The content of the list below the picture: {name, total, self, callers, callees}, in the order
   * of the boxes.
   */
  const listed = (page) =>
    page.$$eval(".graph-list tbody tr", (rows) => {
      const calls = (cell) =>
        [...cell.querySelectorAll("li")].map((item) => [
          item.querySelector("bdi").textContent,
          item.querySelector("em").textContent,
        ]);
      return rows.map(({ cells }) => ({
        name: cells[0].textContent,
        total: cells[1].textContent,
        self: cells[2].textContent,
        callers: calls(cells[3]),
        callees: calls(cells[4]),
      }));
    });
  const countOf = (text) => Number(text.replace(/ \(.*$/, "").replace(/,/g, ""));

  await runner.test("call graph: functions and calls equal the API and a brute-force reader", () =>
    withPage(browser, server, async (page) => {
      await open(page, `/p/${shared.id}?v=graph&st=samples&sv=2`, ".graph-node");
      await page.click(".graph-list summary");
      const rows = await listed(page);
      const expected = topOf(samples, 0);
      assert.equal(rows.length, expected.size);
      assert.match(
        await page.textContent(".graph-note"),
        new RegExp(
          `^${rows.length} of ${rows.length} functions, 100% of the total shown; \\d+ of \\d+ ` +
            "calls$",
        ),
      );
      assert.equal(await page.locator(".graph-node").count(), rows.length);
      for (const { name, total, self, callers, callees } of rows) {
        assert.deepEqual({ flat: countOf(self), cum: countOf(total) }, expected.get(name));
        for (const [edges, step] of [
          [callers, -1],
          [callees, 1],
        ]) {
          const all = new Map(edgesOf(samples, 0, name, step));
          for (const [other, value] of edges)
            assert.equal(countOf(value), all.get(other), `${name} ${other}`);
        }
        const spokenText = await page.getAttribute(
          `.graph-node[aria-label^="${name}, "]`,
          "aria-label",
        );
        assert.equal(
          spokenText.replace(/^.*, (\d+ callers?, \d+ callees?)$/, "$1").replace(/[^\d,]/g, ""),
          `${callers.length},${callees.length}`,
        );
      }
      const heaviest = await callersOf(rows[0].name, "samples");
      assert.deepEqual(
        [rows[0].callees[0][0], countOf(rows[0].callees[0][1])],
        [heaviest.callees[0].name, heaviest.callees[0].value],
      );
      assert.equal(
        await page.locator(".graph-edge").count(),
        rows.reduce((sum, row) => sum + row.callees.length, 0),
      );
    }),
  );

  await runner.test(
    "call graph: arrows follow calls, Space marks, Enter and double click focus, search highlights",
    () =>
      withPage(browser, server, async (page) => {
        await open(page, `/p/${shared.id}`, ".icicle");
        await page.keyboard.press("6");
        await drawn(page);
        assert.equal(new URL(page.url()).searchParams.get("v"), "graph");
        const focused = () =>
          page.evaluate(() => document.activeElement.getAttribute("aria-label").split(", ")[0]);
        const transform = () => page.getAttribute(".graph-view svg > g", "transform");
        await page.focus(".graph-node[tabindex='0']");
        assert.equal(await focused(), "main.main");
        await page.keyboard.press("ArrowDown");
        const callee = edgesOf(samples, 1, "main.main", 1)[0][0];
        assert.equal(await focused(), callee);
        await page.keyboard.press(" ");
        await page.waitForSelector(".graph-node.marked");
        assert.equal(new URL(page.url()).searchParams.get("m"), callee);
        const before = await transform();
        await page.keyboard.press("+");
        const larger = await transform();
        assert.notEqual(larger, before);
        await page.keyboard.press("0");
        await page.hover(".graph-view");
        const whole = await transform();
        await page.mouse.wheel(0, -200); // scrolls like the icicle if there is more to see
        assert.equal(await transform(), whole);
        await page.keyboard.down("Control");
        await page.mouse.wheel(0, -200);
        await page.keyboard.up("Control");
        await page.waitForFunction(
          (old) => document.querySelector(".graph-view svg > g").getAttribute("transform") !== old,
          whole,
        );
        const near = await transform();
        await page.mouse.wheel(0, 80);
        const scaleOf = (text) => /scale\((.*)\)/.exec(text)[1];
        assert.notEqual(await transform(), near);
        assert.equal(scaleOf(await transform()), scaleOf(near), "a plain wheel does not zoom");
        const rested = await transform();
        await pressAndLeave(page, ".graph-view svg");
        assert.equal(await transform(), rested, "a pointer without a button moves nothing");
        await page.click("[aria-label='Show everything (0)']");
        assert.equal(await transform(), whole);
        await searchFor(page, "json");
        await page.waitForSelector(".graph-node.match");
        assert.equal(
          await page.locator(".graph-node.match").count(),
          [...topOf(samples, 1).keys()].filter((name) => /json/.test(name)).length,
        );
        await searchFor(page, "");
        await page.focus(".graph-node[tabindex='0']");
        await page.keyboard.press("Enter");
        await page.waitForFunction(() => new URL(location.href).searchParams.has("x"));
        assert.match(new URL(page.url()).searchParams.get("x"), /^focus:/);
        await page.keyboard.press("u");
        await page.waitForFunction(() => !new URL(location.href).searchParams.has("x"));
        await drawn(page);
        await page.dblclick(".graph-node[aria-label^='main.main, ']");
        await page.waitForFunction(
          () => new URL(location.href).searchParams.get("x") === "focus:^main\\.main$",
        );
        assert.equal(new URL(page.url()).searchParams.get("m"), "main.main");
      }),
  );

  await runner.test(
    "call graph: n and N go to the next match, and a marked function is scrolled into view",
    () =>
      withPage(browser, server, async (page) => {
        const deep = await server.share(deepText(50), { title: "a long way" });
        await open(page, `/p/${deep.id}?v=graph&m=level_30&sv=2`, ".graph-node");
        const isSeen = (name) =>
          page.waitForFunction((wanted) => {
            const { top, bottom } = document
              .querySelector(`.graph-node[aria-label^="${wanted}, "]`)
              .getBoundingClientRect();
            const view = document.querySelector(".graph-view").getBoundingClientRect();
            return top >= view.top && bottom <= view.bottom;
          }, name);
        const focused = () =>
          page.evaluate(() => document.activeElement.getAttribute("aria-label")?.split(", ")[0]);
        await isSeen("level_30");
        await searchFor(page, "level_.7");
        await page.waitForSelector(".graph-node.match");
        await page.evaluate(() => document.activeElement.blur());
        for (const [key, name] of [
          ["n", "level_17"],
          ["n", "level_27"],
          ["N", "level_17"],
          ["N", "level_47"],
        ]) {
          await page.keyboard.press(key);
          await soon(async () => assert.equal(await focused(), name));
          await isSeen(name);
        }
        assert.equal(new URL(page.url()).searchParams.get("z"), null);
      }),
  );

  await runner.test(
    "call graph: a note counts the functions left out, and calls across them are dashed",
    () =>
      withPage(browser, server, async (page) => {
        const deep = await server.share(deepText(5000), {
          title: "deep calls",
        });
        await open(page, `/p/${deep.id}?v=graph&sv=2`, ".graph-node");
        assert.equal(
          await page.textContent(".graph-note"),
          "60 of 5,000 functions, 100% of the total shown; 59 of 59 calls",
        );
        assert.equal(await page.locator(".graph-edge path[stroke-dasharray]").count(), 1);
        await page.selectOption("[aria-label='Functions shown']", "20");
        await page.waitForFunction(() => document.querySelectorAll(".graph-node").length === 20);
        assert.equal(new URL(page.url()).searchParams.get("gn"), "20");
        await page.goto(`${server.url}/p/${deep.id}?v=graph&x=focus:nothing&sv=2`);
        await page.waitForSelector("text=No stack matches the rules");
      }),
  );

  for (const look of ["light", "phone"])
    await runner.test(
      `call graph: opens at the largest function; no line crosses its value: ${look}`,
      () =>
        withPage(
          browser,
          server,
          async (page) => {
            await open(page, `/p/${shared.id}?v=graph&sv=2`, ".graph-node");
            const { smallest, isSeen, values, heads, struck } = await page.evaluate(() => {
              const texts = [...document.querySelectorAll(".graph-view svg text")];
              const { a } = document
                .querySelector(".graph-view svg > g")
                .transform.baseVal.consolidate().matrix;
              const view = document.querySelector(".graph-view").getBoundingClientRect();
              const box = document.querySelector(".graph-node").getBoundingClientRect();
              const lines = [...document.querySelectorAll(".graph-edge path:nth-child(2)")].map(
                (path) => ({
                  half: parseFloat(path.getAttribute("stroke-width")) / 2,
                  points: Array.from({ length: Math.ceil(path.getTotalLength()) }, (_, at) =>
                    path.getPointAtLength(at),
                  ),
                }),
              );
              const values = [...document.querySelectorAll(".graph-value")];
              const goesThrough = ({ half, points }, { x, y, width, height }) =>
                points.some(
                  (point) =>
                    point.x + half > x &&
                    point.x - half < x + width &&
                    point.y > y + 2 &&
                    point.y < y + height - 2,
                );
              return {
                smallest:
                  Math.min(...texts.map((text) => parseFloat(text.getAttribute("font-size")))) * a,
                isSeen:
                  box.left >= view.left &&
                  box.right <= view.right &&
                  box.top >= view.top &&
                  box.bottom <= view.bottom,
                values: values.length,
                // The length of arrow heads, from the tip to the middle of the opposite side.
                heads: [...document.querySelectorAll(".graph-edge path:last-child")].map((path) => {
                  const [x, y, leftX, leftY, rightX, rightY] = path
                    .getAttribute("d")
                    .match(/-?[\d.]+/g)
                    .map(Number);
                  return Math.hypot(x - (leftX + rightX) / 2, y - (leftY + rightY) / 2);
                }),
                struck: values
                  .filter((value) => lines.some((line) => goesThrough(line, value.getBBox())))
                  .map((value) => value.textContent),
              };
            });
            assert.ok(smallest >= 11, `text of ${smallest} pixels`);
            assert.ok(isSeen, "the largest function is visible");
            assert.ok(values > 5);
            assert.ok(
              heads.length > 5 && heads.every((length) => length >= 5.5),
              `heads of arrows: ${heads.map((length) => length.toFixed(1))}`,
            );
            assert.deepEqual(struck, []);
          },
          { look },
        ),
    );

  await runner.test(
    "call graph: functions with very small values are not drawn, and a note states the limit",
    async () => {
      const lines = Array.from({ length: 200 }, (_, i) => `main;work;small_${i} 1`);
      const { id } = await server.share(Buffer.from(`main;work 100000\n${lines.join("\n")}\n`), {
        title: "few",
        filename: "few.folded",
      });
      await withPage(browser, server, async (page) => {
        await open(page, `/p/${id}?v=graph&sv=2`, ".graph-node");
        assert.match(
          await page.textContent(".graph-note"),
          /^2 of 202 functions, .* The others have less than 501 each$/,
        );
      });
    },
  );

  await runner.test("call graph: a comparison shows the values of both sides", () =>
    withPage(browser, server, async (page) => {
      await open(page, `/d/${shared.id}..${second.id}?v=graph&st=samples&sv=2`, ".graph-node");
      await page.click(".graph-list summary");
      const sides = [topOf(samples, 0), topOf(cpuSamples(62), 0)];
      const rows = await listed(page);
      assert.equal(rows.length, new Set(sides.flatMap((side) => [...side.keys()])).size);
      for (const { name, total } of rows)
        assert.deepEqual(
          total
            .replace(/ \(.*$/, "")
            .split(" → ")
            .map(countOf),
          sides.map((side) => side.get(name)?.cum ?? 0),
        );
    }),
  );
}
