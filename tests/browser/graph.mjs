// Peek and the call graph: numbers equal the API's and a brute-force reader's, hands and keys move about.
import assert from "node:assert/strict";
import { viewReady, withPage } from "./harness.mjs";
import { cpuProfile, cpuSamples, deepText, topOf } from "./profiles.mjs";

/** The exact values of a list of peek: [[name, value], …], from the top. */
const listRows = (page, label) =>
  page.$$eval(`.peek-list [role=table][aria-label*="${label}"] .rows .row`, (rows) =>
    rows
      .sort((a, b) => a.getAttribute("aria-rowindex") - b.getAttribute("aria-rowindex"))
      .map((row) => [
        row.querySelector(".cell.name").title.split("\n")[0],
        ...[...row.querySelectorAll(".cell.value")].map((cell) => Number(cell.title.replace(/[^\d−-]/g, "").replace("−", "-"))),
      ]),
  );

/** Callers and callees by brute force: [caller or callee, value], once per sample, a function's call of itself left out. */
function edgesOf(samples, type, fn, step) {
  const sums = new Map();
  for (const { stack, values } of samples) {
    const others = new Set(stack.flatMap((name, i) => (name === fn && stack[i + step] && stack[i + step] !== fn ? [stack[i + step]] : [])));
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
  const callersOf = async (fn) => (await server.call("GET", `/api/v1/shares/${shared.id}/callers?fn=${encodeURIComponent(fn)}&limit=1000`, { token: server.token })).json;

  await runner.test("peek: callers and callees equal the API and a brute-force reader", () =>
    withPage(browser, server, async (page) => {
      const heaviest = [...topOf(samples, 1)].sort((a, b) => b[1].cum - a[1].cum).slice(0, 4);
      for (const [fn, { flat, cum }] of heaviest) {
        await open(page, `/p/${shared.id}?v=peek&m=${encodeURIComponent(fn)}&sv=2`, ".peek-sums");
        const answer = await callersOf(fn);
        for (const [label, edges, step] of [["caller", answer.callers, -1], ["callee", answer.callees, 1]]) {
          const expected = edgesOf(samples, 1, fn, step);
          assert.deepEqual(edges.map((edge) => [edge.name, edge.value]), expected);
          const rows = await listRows(page, label);
          const begins = samples.filter(({ stack }) => stack[0] === fn).reduce((sum, { values }) => sum + values[1], 0);
          const own = step > 0 ? [["itself", flat]] : [["stacks begin with it", begins]];
          assert.deepEqual(rows, [...(own[0][1] ? own : []), ...expected]);
        }
        assert.deepEqual([answer.flat, answer.cum], [flat, cum]);
      }
    }),
  );

  await runner.test("peek: the table to choose from, then from function to function by hand and key, and back", () =>
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
      await page.waitForFunction((name) => document.querySelector(".peek-self h3").textContent === name, callee);
      assert.equal(new URL(page.url()).searchParams.get("m"), callee);
      await page.goBack();
      await page.waitForFunction((name) => document.querySelector(".peek-self h3").textContent === name, heaviest);
      await open(page, `/p/${shared.id}?v=peek&m=nobody&sv=2`, ".sandwich-empty");
    }),
  );

  await runner.test("peek: a comparison shows both sides and the change", () =>
    withPage(browser, server, async (page) => {
      const fn = "runtime.mallocgc";
      await open(page, `/d/${shared.id}..${second.id}?v=peek&m=${fn}&sv=2`, ".peek-sums");
      const [before, after] = [samples, cpuSamples(62)].map((side) => new Map(edgesOf(side, 1, fn, 1)));
      const rows = await listRows(page, "callee");
      assert.equal(rows.length, new Set([...before.keys(), ...after.keys()]).size + 1);
      for (const [name, left, right, change] of rows.filter((row) => row[0] !== "itself")) {
        assert.deepEqual([left, right, change], [before.get(name) ?? 0, after.get(name) ?? 0, (after.get(name) ?? 0) - (before.get(name) ?? 0)]);
      }
    }),
  );

  await runner.test("peek: 5,000 deep, and nothing where rules leave nothing", () =>
    withPage(browser, server, async (page) => {
      const deep = await server.share(deepText(5000), { title: "deep" });
      await open(page, `/p/${deep.id}?v=peek&m=level_2500&sv=2`, ".peek-sums");
      assert.deepEqual([await listRows(page, "caller"), await listRows(page, "callee")], [[["level_2499", 7]], [["level_2501", 7]]]);
      await page.goto(`${server.url}/p/${deep.id}?v=peek&m=level_2500&x=focus:nothing&sv=2`);
      await page.waitForSelector("text=The rules leave nothing");
    }),
  );
}
