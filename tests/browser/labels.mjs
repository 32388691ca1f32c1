// Labels: the pane equals the API and plain arithmetic, and a press filters every view.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { dropFiles, viewReady, withPage } from "./harness.mjs";
import { labelledProfile, labelledSamples } from "./profiles.mjs";
import { root } from "./server.mjs";

const whole = (text) => Number(/^-?[\d,]+/.exec(text.replace("−", "-"))[0].replaceAll(",", ""));
const rulesOf = (page) => new URL(page.url()).searchParams.getAll("lb");
const chips = (page) =>
  page.$$eval(".label-rule .rule-text", (found) => found.map((chip) => chip.textContent));

/** Waits until the pane shows what the address requests. */
async function labelsReady(page) {
  await viewReady(page);
  await page.waitForSelector(".labels[aria-busy=false]");
}

/** For each label, all rows: value as shown, exact total and samples. */
async function sections(page) {
  for (let more; (more = await page.$(".label-more button")); await labelsReady(page))
    await more.click();
  return Object.fromEntries(
    await page
      .$$eval(".label-section", (found) =>
        found.map((section) => [
          section.querySelector("h3").textContent,
          [...section.querySelectorAll(".label-row:not(.none)")].map((row) => [
            row.querySelector(".label-value").title.split("\n")[0],
            row.querySelector(".label-amount").title,
            row.querySelector(".label-samples").textContent,
          ]),
        ]),
      )
      .then((all) =>
        all.map(([key, rows]) => [
          key,
          rows.map(([name, amount, samples]) => [
            name,
            Number(/^-?[\d,]+/.exec(amount)[0].replaceAll(",", "")),
            Number(/^[\d,]+/.exec(samples)[0].replaceAll(",", "")),
          ]),
        ]),
      ),
  );
}

const shownValue = ({ value, unit }) =>
  typeof value === "number"
    ? value.toLocaleString("en-US") + (unit && unit !== "count" ? ` ${unit}` : "")
    : value.split("\n")[0];
const rowsOf = (response) =>
  Object.fromEntries(
    response.labels.map(({ key, values }) => [
      key,
      values.map((value) => [shownValue(value), value.total, value.samples]),
    ]),
  );

/** The same by plain arithmetic on the remaining samples. */
function countOf(samples, type) {
  const keys = {};
  for (const { values, labels } of samples) {
    const seen = new Set(
      labels.map(([key, value, unit]) => JSON.stringify([key, shownValue({ value, unit })])),
    );
    for (const text of seen) {
      const [key, name] = JSON.parse(text);
      const row = ((keys[key] ??= {})[name] ??= [0, 0]);
      row[0] += values[type];
      row[1]++;
    }
  }
  return keys;
}
const sorted = (counted) =>
  Object.fromEntries(
    Object.entries(counted).map(([key, rows]) => [
      key,
      Object.fromEntries(rows.map(([name, ...row]) => [name, row])),
    ]),
  );

export async function testLabels(runner, browser, server) {
  const samples = labelledSamples();
  const bytes = labelledProfile();
  const shared = await server.share(bytes, { title: "Labelled" });
  const path = `/api/v1/shares/${shared.id}`;
  const at = (parameters = {}) =>
    `${server.url}/p/${shared.id}?${new URLSearchParams({ v: "labels", sv: 2, ...parameters })}`;
  const call = async (query = "") =>
    (await server.call("GET", `${path}/labels?limit=0${query}`)).json;
  const has =
    (key, value) =>
    ({ labels }) =>
      labels.some(([k, v]) => k === key && v === value);
  const press = (page, name, options) =>
    page.click(`.label-row:has(.label-name:text-is("${name}")) .label-value`, options);
  const footTotal = async (page) => (await page.textContent(".foot-total")).split(" of ")[0];

  await runner.test("label counts equal the server's and plain arithmetic on the samples", () =>
    withPage(browser, server, async (page) => {
      for (const [type, name] of ["samples", "cpu"].entries()) {
        await page.goto(at({ st: name }));
        await labelsReady(page);
        const shown = await sections(page);
        assert.deepEqual(shown, rowsOf(await call(`&sample_type=${name}`)));
        assert.deepEqual(sorted(shown), countOf(samples, type));
      }
      const bars = (await call()).labels.find(({ key }) => key === "bytes").histogram;
      assert.equal(await page.locator(".label-columns button").count(), bars.length);
    }),
  );

  await runner.test(
    "a pressed value filters every view, and the rule can be inverted, undone and removed",
    () =>
      withPage(browser, server, async (page) => {
        const top = async (...rules) =>
          (
            await server.call(
              "GET",
              `${path}/top?` +
                new URLSearchParams([
                  ["sample_type", "samples"],
                  ...rules.map((rule) => ["label", rule]),
                ]),
            )
          ).json;
        await page.goto(at({ st: "samples", b: "table" }));
        await labelsReady(page);
        await press(page, "io");
        await labelsReady(page);
        assert.deepEqual(rulesOf(page), ["thread=io"]);
        assert.deepEqual(await chips(page), ["thread is io"]);
        assert.equal(await footTotal(page), (await top("thread=io")).kept.toLocaleString("en-US"));
        const shown = sorted(await sections(page));
        const io = countOf(samples.filter(has("thread", "io")), 0);
        assert.deepEqual(shown.endpoint, io.endpoint);
        assert.deepEqual(
          shown.thread,
          countOf(samples, 0).thread,
          "other values can still be selected",
        );
        const leaf = (await top("thread=io")).functions[0];
        assert.match(
          await page.textContent(".rows"),
          new RegExp(leaf.name.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")),
        );

        await press(page, "gc");
        await labelsReady(page);
        assert.deepEqual(rulesOf(page), ["thread=io", "thread=gc"]);
        assert.equal(
          await footTotal(page),
          (await top("thread=io", "thread=gc")).kept.toLocaleString("en-US"),
        );
        await press(page, "gc", { modifiers: ["Alt"] });
        await labelsReady(page);
        assert.deepEqual(rulesOf(page), ["thread=io", "thread!=gc"]);
        await page.keyboard.press("u");
        await labelsReady(page);
        assert.deepEqual(rulesOf(page), ["thread=io", "thread=gc"]);
        await page.click(".label-rule >> nth=1 >> .rule-text");
        await labelsReady(page);
        assert.deepEqual(await chips(page), ["thread is io", "thread is not gc"]);
        await page.click("[aria-label='Remove: thread is not gc']");
        await page.goBack();
        await labelsReady(page);
        assert.deepEqual(rulesOf(page), ["thread=io", "thread!=gc"]);
        await page.click(".rules-end button:has-text('Clear')");
        await labelsReady(page);
        assert.deepEqual(rulesOf(page), []);

        await page.click("[aria-label='Exclude io']");
        await press(page, "without it");
        await labelsReady(page);
        const rules = rulesOf(page);
        assert.equal(rules[0], "thread!=io");
        assert.equal(await footTotal(page), (await top(...rules)).kept.toLocaleString("en-US"));
      }),
  );

  await runner.test(
    "labels are opened, searched and selected by keys, also ranges of numbers",
    () =>
      withPage(browser, server, async (page) => {
        await page.goto(at({ v: "icicle", st: "samples" }));
        await viewReady(page);
        await page.keyboard.press("7");
        await labelsReady(page);
        await page.focus(".labels-head input");
        await page.keyboard.type("/API/Car");
        await page.waitForFunction(() => document.querySelectorAll(".label-row").length === 1);
        assert.equal(await page.textContent(".label-name"), "/api/cart");
        await labelsReady(page);
        await page.keyboard.press("Tab");
        if (!(await page.evaluate(() => document.activeElement.classList.contains("label-value"))))
          await page.keyboard.press("Tab");
        await page.keyboard.press("Enter");
        await labelsReady(page);
        assert.deepEqual(rulesOf(page), ["endpoint=/api/cart"]);
        await page.fill(".labels-head input", "");
        await page.click(".rules-end button:has-text('Clear')");
        await labelsReady(page);
        await page.focus(".label-columns button");
        await page.keyboard.press("End");
        await page.keyboard.press("ArrowLeft");
        await page.keyboard.press("Enter");
        await labelsReady(page);
        const [rule] = rulesOf(page);
        const [, low, high] = /^bytes=(\d+)\.\.(\d+)$/.exec(rule).map(Number);
        const inside = samples.filter(({ labels }) =>
          labels.some(([key, value]) => key === "bytes" && value >= low && value <= high),
        );
        assert.equal(
          whole(await footTotal(page)),
          inside.reduce((sum, { values }) => sum + values[0], 0),
        );
      }),
  );

  await runner.test(
    "the tree is grouped by a label, and focus and ignore apply to label counts",
    () =>
      withPage(browser, server, async (page) => {
        await page.goto(at({ st: "samples" }));
        await labelsReady(page);
        assert.deepEqual(
          (
            await page.$$eval("select[aria-label=Group] option", (options) =>
              options.map(({ value }) => value),
            )
          )
            .filter((value) => value.startsWith("label:"))
            .sort(),
          ["label:bytes", "label:endpoint", "label:thread"],
        );
        await page.click(
          ".label-section[aria-label='Label thread'] button:has-text('Group by it')",
        );
        await labelsReady(page);
        assert.equal(new URL(page.url()).searchParams.get("g"), "label:thread");
        await page.keyboard.press("2");
        await viewReady(page);
        await page.waitForFunction(() =>
          /\(no thread\)/.test(document.querySelector(".rows")?.textContent ?? ""),
        );

        await page.goto(at({ st: "samples", x: "focus:^runtime\\.~ignore:json" }));
        await labelsReady(page);
        const left = samples.filter(
          ({ stack }) =>
            stack.some((name) => /^runtime\./.test(name)) &&
            !stack.some((name) => /json/.test(name)),
        );
        assert.deepEqual(sorted(await sections(page)), countOf(left, 0));
        assert.equal(await page.locator(".labels-note").count(), 0);
        await page.goto(at({ st: "samples", x: "hide:runtime~focus:runtime" }));
        await page.waitForSelector("text=No stack matches the rules");
      }),
  );

  await runner.test("a comparison shows both sides of each label", async () => {
    const other = await server.share(labelledProfile(9), {
      title: "Labelled later",
    });
    await withPage(browser, server, async (page) => {
      const { json } = await server.call(
        "GET",
        `/api/v1/diff/labels?limit=0&a=${shared.id}&b=${other.id}&sample_type=samples`,
      );
      await page.goto(`${server.url}/d/${shared.id}..${other.id}?v=labels&st=samples&sv=2`);
      await labelsReady(page);
      const rows = await page.$$eval(
        ".label-section[aria-label='Label thread'] .label-row:not(.none)",
        (found) =>
          found.map((row) => [
            row.querySelector(".label-name").textContent,
            row.querySelector(".label-amount").textContent,
          ]),
      );
      const thread = json.labels.find(({ key }) => key === "thread");
      assert.deepEqual(
        rows,
        thread.values.map(({ value, total_a, total_b }) => [
          value,
          `${total_a.toLocaleString("en-US")} → ${total_b.toLocaleString("en-US")}`,
        ]),
      );
      await press(page, "io");
      await labelsReady(page);
      assert.deepEqual(rulesOf(page), ["thread=io"]);
      const io = thread.values.find(({ value }) => value === "io");
      assert.ok(
        (await footTotal(page)).length > 0 &&
          (await page.textContent(".rules-end output")).includes("→"),
        String(io.total_b),
      );
    });
  });

  const folder = join(process.env.PERFOLIO_SHARED ?? join(root, "../shared"), "data/pprof");
  const real = ["profile-with-labels.pb.gz", "labels.pb.gz"].map((name) => [
    name,
    join(folder, name),
  ]);
  const files = [
    ["made.pb.gz", bytes],
    ...real.map(([name, path]) => [name, existsSync(path) ? readFileSync(path) : null]),
  ];
  for (const [name, content] of files)
    await runner.test(
      `labels of a preview are counted in the browser: ${name}`,
      async () => {
        const { id } = await server.share(content, { filename: name });
        const response = (await server.call("GET", `/api/v1/shares/${id}/labels?limit=0`)).json;
        await withPage(browser, server, async (page) => {
          await page.goto(`${server.url}/?v=labels&sv=2`);
          await page.waitForSelector(".drop");
          await dropFiles(page, [{ name, bytes: content }]);
          await labelsReady(page);
          assert.deepEqual(await sections(page), rowsOf(response));
          const value = response.labels[0].values[0];
          await page.click(".label-section .label-value");
          await labelsReady(page);
          assert.deepEqual(rulesOf(page), [value.filter]);
          const kept = (
            await server.call(
              "GET",
              `/api/v1/shares/${id}/labels?` +
                new URLSearchParams({ limit: 0, label: value.filter }),
            )
          ).json;
          const shown = await sections(page);
          for (const label of kept.labels.slice(1))
            if (label.key !== response.labels[0].key)
              assert.deepEqual(shown[label.key], rowsOf(kept)[label.key]);
        });
      },
      content ? "" : `${name} is not in ${folder}`,
    );
}
