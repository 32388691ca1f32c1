// Continuous profiles: the numbers of graph and views equal those of a brute-force reader of the
// sent profiles, and the API's.
import assert from "node:assert/strict";
import { join } from "node:path";
import {
  axeFindings,
  screenshots,
  pasted,
  setInPlace,
  soon,
  tableRows,
  messageShown,
  viewReady,
  withPage,
} from "./harness.mjs";
import { cpuSamples, encodePprof, topOf, totalOf, twoTypes } from "./profiles.mjs";
import { signedIn } from "./account.mjs";

const minute = 60_000;
const pods = ["a", "b"];
const profileCount = 8;
const type = "process_cpu:cpu:nanoseconds:::delta";
const hits = "process_cpu:samples:count:::delta";

const number = (text) => Number(text.replaceAll(",", ""));
const same = (left, right) =>
  Math.abs(left - right) <= 1e-6 * Math.max(Math.abs(left), Math.abs(right));

/** Sends one CPU profile per minute for each pod, and one memory profile. */
async function send(server, begin) {
  const sent = [];
  const push = async (path, body) => {
    const response = await server.call("POST", path, {
      body,
      token: server.token,
    });
    assert.equal(response.status, 200, `${response.bytes}`);
  };
  for (let i = 0; i < profileCount; i++)
    for (const [k, pod] of pods.entries()) {
      const samples = cpuSamples(700 + 10 * i + k, 30);
      const ms = begin + i * minute;
      const labels = `label=service_name%3Dshop&label=pod%3D${pod}`;
      await push(
        `/api/v1/profiles?name=process_cpu&${labels}&time=${(ms / 1000).toFixed(3)}`,
        encodePprof({ types: twoTypes, samples, durationNs: 10e9 }),
      );
      sent.push({ ms, pod, samples });
    }
  await sendMemory(server, begin, "a");
  return sent;
}

async function sendMemory(server, ms, pod, sampleType = "inuse_space") {
  const body = encodePprof({
    types: [[sampleType, "bytes"]],
    samples: [{ stack: ["main.main"], values: [4096] }],
  });
  const path =
    `/api/v1/profiles?name=memory&label=service_name%3Dshop&label=pod%3D${pod}&time=` +
    (ms / 1000).toFixed(3);
  const response = await server.call("POST", path, { body, token: server.token });
  assert.equal(response.status, 200, `${response.bytes}`);
}

const samplesOf = (sent, keeps = () => true) =>
  sent.filter(keeps).flatMap(({ samples }) => samples);

/** Checks that the table has the self value, total and name of each function in the samples. */
async function assertTable(page, samples) {
  const rows = await tableRows(page);
  const wanted = [...topOf(samples, 0)].map(([name, { flat, cum }]) =>
    [flat, cum, name].map(String),
  );
  assert.ok(wanted.length > 5);
  const byName = (a, b) => (a[2] < b[2] ? -1 : 1);
  assert.deepEqual(
    rows.map((row) => row.map((text) => text.replaceAll(",", ""))).sort(byName),
    wanted.sort(byName),
  );
}

const formatted = (cores) => `${Number(cores.toPrecision(3))} cores`;

const plotReady = (page) => page.waitForSelector(".plot .u-over");

export async function testExplore(runner, browser, server) {
  if (!runner.wants("explore")) return;
  const context = await signedIn(browser, server);
  const inside = (use) => withPage(browser, server, use, { context });

  await runner.test("explore: an empty page shows how to send the first profile", () =>
    inside(async (page) => {
      await page.goto(`${server.url}/shares`);
      await page.click("nav >> text=Explore");
      await page.waitForSelector("h2:has-text('No profiles received yet')");
      const commands = await page.$$eval(".empty .copy-field code", (all) =>
        all.map((one) => one.textContent),
      );
      assert.ok(commands.some((line) => line.includes("push --series service_name=api")));
      assert.ok(
        commands.some((line) =>
          line.startsWith(`sudo perfolio-agent --server=${server.url} --token-file=`),
        ),
      );
      assert.match(
        await page.textContent(".empty p:has(a[href='/settings?token=agent#tokens'])"),
        /preset Agent \(scopes ingest, debuginfo\)/,
      );
      assert.deepEqual(await axeFindings(page), []);
    }),
  );

  const begin = Math.floor(Date.now() / minute) * minute - 40 * minute;
  const sent = await send(server, begin);
  const window = { from: begin - minute, to: begin + 12 * minute };
  const address = (parameters = {}) =>
    `${server.url}/explore?` +
    new URLSearchParams({
      ev: "1",
      query: type,
      from: window.from,
      until: window.to,
      ...parameters,
    });
  const open = async (page, url = address()) => {
    await page.goto(url);
    await plotReady(page);
    await viewReady(page);
  };
  const cpu = (samples) => totalOf(samples, 1);
  /** A profile has the same rate during its ten seconds. */
  const rateAt = (all, ms) =>
    cpu(all.find((one) => one.ms <= ms && ms < one.ms + 10_000).samples) / 10e9;

  await runner.test("explore: values over time equal those of the samples and of the API", () =>
    inside(async (page) => {
      await open(page, `${address()}&by=pod`);
      await page.click("text=Show all values as a table");
      await page.waitForSelector(".value-table");
      const heads = await page.$$eval(".value-table thead th", (all) =>
        all.map((one) => one.textContent),
      );
      assert.deepEqual(heads.slice(1), ["pod=a", "pod=b"]);
      const rows = await page.$$eval(".value-table tbody tr", (all) =>
        all.map((row) => [
          new Date(row.querySelector("time").dateTime).getTime(),
          ...[...row.querySelectorAll("td")].map((cell) =>
            cell.dataset.value ? Number(cell.dataset.value) : null,
          ),
        ]),
      );
      const query = new URLSearchParams({
        query: type,
        start: window.from / 1000,
        end: window.to / 1000,
        group_by: "pod",
        rate: "true",
      });
      const { json } = await server.call("GET", `/api/v1/query_range?${query}`, {
        token: server.token,
      });
      assert.equal(json.series.length, 2);
      for (const [k, { labels, points }] of json.series.entries()) {
        assert.equal(labels.pod, pods[k]);
        assert.deepEqual(
          rows.filter((row) => row[k + 1] !== null).map((row) => [row[0], row[k + 1]]),
          points,
        );
        const mine = sent.filter(({ pod }) => pod === pods[k]);
        // steps of 5 s, each with half of a profile of 10 s
        assert.equal(points.length, mine.length * 2);
        for (const [ms, rate] of points) assert.ok(same(rate, rateAt(mine, ms)), `${ms}: ${rate}`);
      }
    }),
  );

  await runner.test(
    "explore: the largest series have lines, and the sum of the others has one",
    () =>
      inside(async (page) => {
        const ms = begin - 180 * minute;
        const count = 137;
        const value = (n) => 1e7 * (n + 1);
        const push = (n, at = ms) => {
          const path =
            "/api/v1/profiles?name=many&label=service_name%3Dmany&label=pod%3D" +
            `${String(n).padStart(3, "0")}&time=${at / 1000}`;
          return server.call("POST", path, {
            body: encodePprof({
              types: [["cpu", "nanoseconds"]],
              samples: [{ stack: ["main"], values: [value(n)] }],
              durationNs: 1e9,
            }),
            token: server.token,
          });
        };
        const pushed = [];
        for (let n = 0; n < count; n += 20) {
          const some = Array.from({ length: Math.min(20, count - n) }, (_, i) => push(n + i));
          pushed.push(...(await Promise.all(some)));
        }
        for (const response of pushed) assert.equal(response.status, 200, `${response.bytes}`);
        await open(
          page,
          address({
            query: "many:cpu:nanoseconds",
            by: "pod",
            from: ms - minute,
            until: ms + minute,
          }),
        );
        const names = await page.$$eval(".series-table tbody th", (all) =>
          all.map((one) => one.textContent.trim()),
        );
        assert.equal(names.length, 101);
        assert.deepEqual(
          [names[0], names[99], names[100]],
          ["pod=037", "pod=136", "other (37 series)"],
        );
        assert.equal(await page.locator(".series-table tr:has-text('other') button").count(), 0);
        await page.waitForSelector(
          ".metrics .hint:has-text('The 100 largest series are shown; the other 37 are summed " +
            "in one line')",
        );
        await page.click("text=Show all values as a table");
        const seen = await page.$$eval(".value-table tbody td", (all) =>
          all.reduce((sum, one) => sum + Number(one.dataset.value ?? 0), 0),
        );
        const query = new URLSearchParams({
          query: "many:cpu:nanoseconds",
          start: (ms - minute) / 1000,
          end: (ms + minute) / 1000,
          rate: "auto",
        });
        const { json } = await server.call("GET", `/api/v1/query_range?${query}`, {
          token: server.token,
        });
        assert.ok(
          same(
            seen,
            json.series[0].points.reduce((sum, [, rate]) => sum + rate, 0),
          ),
          `${seen}`,
        );
        assert.deepEqual(await axeFindings(page), []);

        // In a marked range other series may be the largest.
        const later = ms + 30 * minute;
        for (const n of [3, 7]) assert.equal((await push(n, later)).status, 200);
        await open(
          page,
          address({
            query: "many:cpu:nanoseconds",
            by: "pod",
            from: ms - minute,
            until: later + minute,
            part: `${later - minute}-${later + minute}`,
          }),
        );
        await page.waitForSelector(".series-table tbody tr:nth-child(2):last-child");
        const rows = await page.$$eval(".series-table tbody tr", (all) =>
          all.map((row) => [row.children[0].textContent.trim(), row.children[2].textContent]),
        );
        assert.deepEqual(rows, [
          ["pod=003", "0.04 cores"],
          ["pod=007", "0.08 cores"],
        ]);
      }),
  );

  await runner.test(
    "explore: a part of a type's name selects the type, and missing data is reported",
    () =>
      inside(async (page) => {
        const seen = async (query) => {
          await open(page, address({ query }));
          return page.evaluate(() => [
            document.querySelector(".series-table tbody").textContent,
            document.querySelector("[aria-label='Profile type']").value,
          ]);
        };
        const whole = await seen(type);
        assert.match(whole[0], /cores/);
        for (const part of [type.replace(/:delta$/, ""), "cpu:nanoseconds"])
          assert.deepEqual(await seen(part), whole);
        assert.equal(await page.locator(".selection .warning").count(), 0);
        await page.route("**/api/v1/query_range?*", async (route) => {
          const response = await route.fetch();
          await route.fulfill({
            response,
            headers: {
              ...response.headers(),
              "perfolio-warning": "2 hours are left out",
            },
          });
        });
        await page.reload();
        await page.waitForSelector(
          ".selection .warning:has-text('Incomplete result: 2 hours are left out')",
        );
      }),
  );

  await runner.test("explore: the values of a range are its own, not those of long steps", () =>
    inside(async (page) => {
      const part = { from: begin + 2 * minute, to: begin + 5 * minute };
      const query = new URLSearchParams({
        query: type,
        start: (part.from / 1000).toFixed(3),
        end: (part.to / 1000).toFixed(3),
        group_by: "pod",
        rate: "auto",
      });
      const { json } = await server.call("GET", `/api/v1/query_range?${query}`, {
        token: server.token,
      });
      const wanted = json.series.map(({ labels, average, points }) => [
        `pod=${labels.pod}`,
        formatted(average),
        formatted(Math.max(...points.map(([, value]) => value))),
      ]);
      // The steps of thirty days are hours long.
      const whole = { from: window.from - 30 * 24 * 60 * minute };
      await open(page, `${address({ ...whole, part: `${part.from}-${part.to}` })}&by=pod`);
      await soon(async () =>
        assert.deepEqual(
          await page.$$eval(".series-table tbody tr", (all) =>
            all.map((row) => [0, 2, 3].map((i) => row.children[i].textContent)),
          ),
          wanted,
        ),
      );
    }),
  );

  await runner.test("explore: a window between two snapshots shows their value", () =>
    inside(async (page) => {
      const at = begin - 300 * minute;
      for (const ms of [at, at + minute]) await sendMemory(server, ms, "between");
      const window = { from: at + 10_000, until: at + 50_000 };
      await open(page, address({ ...window, query: 'inuse_space{pod="between"}' }));
      assert.match(await page.textContent(".foot-total"), /^4 KiB /);
      assert.equal(await page.locator("text=No profiles in this time range").count(), 0);
      assert.equal(await page.locator(".selection .warning").count(), 0);
    }),
  );

  await runner.test(
    "explore: the tree shows the merged profile, a dragged range, and one series",
    () =>
      inside(async (page) => {
        const shows = (samples) =>
          soon(async () => {
            await viewReady(page);
            await assertTable(page, samples);
            assert.ok(
              (await page.textContent(".foot-total")).startsWith(
                `${totalOf(samples, 0).toLocaleString("en-US")} in`,
              ),
            );
          });
        await open(page, `${address({ query: hits, v: "table" })}&by=pod`);
        await shows(samplesOf(sent));
        assert.match(
          await page.textContent(".made-facts"),
          /^Sum of 16 profiles of 2 series; read [\d,]+ rows in \d+ blocks?, /,
        );

        const box = await page.locator(".plot .u-over").boundingBox();
        const place = (ms) => box.x + ((ms - window.from) / (window.to - window.from)) * box.width;
        await page.mouse.move(place(begin + 1.5 * minute), box.y + 30);
        await page.mouse.down();
        await page.mouse.move(place(begin + 3 * minute), box.y + 40, {
          steps: 3,
        });
        await page.mouse.move(place(begin + 4.5 * minute), box.y + 40);
        await page.mouse.up();
        await page.waitForURL(/part=\d+-\d+/);
        const [from, to] = new URL(page.url()).searchParams.get("part").split("-").map(Number);
        const inPart = (one) => one.ms >= from && one.ms < to;
        assert.deepEqual(
          [...new Set(sent.filter(inPart).map(({ ms }) => (ms - begin) / minute))],
          [2, 3, 4],
        );
        await shows(samplesOf(sent, inPart));
        await page.click(".series-table button:has-text('pod=b')");
        await page.waitForURL(/only=pod%3Db/);
        await shows(samplesOf(sent, (one) => inPart(one) && one.pod === "b"));

        await page.goBack();
        await page.goBack();
        await shows(samplesOf(sent));
        assert.equal(new URL(page.url()).searchParams.get("part"), null);
        assert.match(await page.textContent(".made-facts"), /^Sum of 16 profiles/);
        await page.goForward();
        await shows(samplesOf(sent, inPart));
        await page.click("text=Zoom to this range");
        await page.waitForURL(
          (url) => url.searchParams.get("from") === String(from) && !url.searchParams.has("part"),
        );
        await shows(samplesOf(sent, inPart));
      }),
  );

  await runner.test(
    "explore: completions write a query with keys only, and an error is marked",
    () =>
      inside(async (page, watch) => {
        watch.allowed.add(400);
        await open(page);
        await page.focus("[aria-label='Profile type']");
        await page.keyboard.press("Tab");
        const active = () =>
          page.$eval(
            "[role=combobox]",
            (field) =>
              document
                .getElementById(field.getAttribute("aria-activedescendant"))
                ?.querySelector("bdi").textContent,
          );
        const choose = async (wanted) => {
          await page.waitForSelector(`[role=option] bdi:text-is("${wanted}")`);
          for (let i = 0; i < 20 && (await active()) !== wanted; i++)
            await page.keyboard.press("ArrowDown");
          assert.equal(await active(), wanted);
          await page.keyboard.press("Enter");
        };
        await page.keyboard.type("po");
        await choose("pod");
        await choose("=~");
        await choose("a");
        const text = () => page.inputValue("[role=combobox]");
        await soon(async () => assert.equal(await text(), 'pod=~"a"'));
        await page.waitForSelector("[role=combobox][aria-expanded=false]");
        await page.keyboard.press("Enter");
        await page.waitForURL((url) => url.searchParams.get("query") === `${type}{pod=~"a"}`);
        await viewReady(page);
        await soon(async () =>
          assert.match(await page.textContent(".made-facts"), /^Sum of 8 profiles of 1 series/),
        );

        await page.fill("[role=combobox]", 'pod=~"a", zone');
        await page.keyboard.press("Escape");
        await page.keyboard.press("Enter");
        await page.waitForSelector(".query-bar .error-line mark");
        assert.equal(await page.getAttribute("[role=combobox]", "aria-invalid"), "true");
        assert.match(
          await page.textContent(".query-bar .error-line"),
          /expected =, !=, =~ or !~ at its end/,
        );
        const marked = () =>
          page.$eval(".wrong-place", (code) => [
            code.textContent,
            code.querySelector("mark").previousSibling.textContent,
            code.querySelector("mark").textContent,
          ]);
        assert.deepEqual(await marked(), ['pod=~"a", zone ', 'pod=~"a", zone', " "]);
        assert.deepEqual(await axeFindings(page), []);
        await page.fill("[role=combobox]", 'pod="a" zone="b"');
        await page.keyboard.press("Enter");
        await soon(async () =>
          assert.deepEqual(await marked(), ['pod="a" zone="b"', 'pod="a" ', "z"]),
        );
        assert.match(
          await page.textContent(".query-bar .error-line"),
          /at character 9pod=/,
          "the position refers to the typed text",
        );
        await page.fill("[role=combobox]", 'pod="nobody"');
        await page.keyboard.press("Enter");
        await page.waitForSelector("h2:has-text('No profile matches')");
        watch.allowed.add(404);
        await page.fill("[role=combobox]", 'nothing:cpu{pod="a"}');
        await page.keyboard.press("Enter");
        await page.waitForSelector(`.query-bar .error-line:has-text("${type}")`);
        await page.fill("[role=combobox]", `${type}{pod="b"}`);
        await page.keyboard.press("Enter");
        await page.waitForURL((url) => url.searchParams.get("query") === `${type}{pod="b"}`);
        await viewReady(page);
        assert.equal(await text(), 'pod="b"');
      }),
  );

  await runner.test("explore: Enter and Tab accept the completion of an unfinished query", () =>
    inside(async (page, watch) => {
      const text = () => page.inputValue("[role=combobox]");
      for (const key of ["Enter", "Tab"]) {
        await open(page);
        await page.focus("[role=combobox]");
        // Enter is pressed before the completions have arrived; Tab waits for one to accept.
        await page.keyboard.type("serv");
        if (key === "Tab") await page.waitForSelector("[role=option][aria-selected=true]");
        await page.keyboard.press(key);
        await soon(async () => assert.equal(await text(), "service_name"));
        await page.waitForSelector("[role=option][aria-selected=true] bdi:text-is('=')");
        await page.keyboard.press(key);
        await page.waitForSelector("[role=option][aria-selected=true] bdi:text-is('shop')");
        await page.keyboard.press(key);
        await soon(async () => assert.equal(await text(), 'service_name="shop"'));
        assert.equal(await page.evaluate(() => document.activeElement.role), "combobox");
        await page.waitForSelector("[role=combobox][aria-expanded=false]");
        assert.equal(new URL(page.url()).searchParams.get("query"), type, "no query ran");
        await page.keyboard.press(key);
        if (key === "Enter")
          await page.waitForURL(
            (url) => url.searchParams.get("query") === `${type}{service_name="shop"}`,
          );
        else
          assert.notEqual(
            await page.evaluate(() => document.activeElement.role),
            "combobox",
            "Tab leaves a finished query",
          );
      }
      // Shift+Tab always leaves the field.
      await page.fill("[role=combobox]", "po");
      await page.waitForSelector("[role=option][aria-selected=true]");
      await page.keyboard.press("Shift+Tab");
      assert.notEqual(await page.evaluate(() => document.activeElement.role), "combobox");
      assert.equal(await text(), "po");
    }),
  );

  await runner.test("explore: underscores in the query are visible without pixel scaling", () =>
    inside(async (page) => {
      await open(page);
      const field = page.locator("[role=combobox]");
      const pictureOf = async (text, placeholder) => {
        await field.fill(text);
        await field.evaluate(
          (input, placeholder) => (input.blur(), (input.placeholder = placeholder)),
          placeholder,
        );
        return (await field.screenshot()).toString("base64");
      };
      assert.notEqual(await pictureOf("a__b", ""), await pictureOf("a  b", ""));
      assert.notEqual(
        await pictureOf("", "a__b"),
        await pictureOf("", "a  b"),
        "also in the placeholder",
      );
    }),
  );

  await runner.test(
    "explore: a focus restricts the graph to its stacks, and a label divides the tree",
    () =>
      inside(async (page) => {
        const chosen = "runtime.mallocgc";
        await open(
          page,
          address({
            query: hits,
            x: `focus:^${chosen.replace(".", "\\.")}$`,
            g: "label:pod",
            v: "table",
          }),
        );
        const kept = (keeps) =>
          samplesOf(sent, keeps).filter(({ stack }) => stack.includes(chosen));
        await page.waitForSelector(".of-stacks:has-text('Only stacks with')");
        await page.click("text=Show all values as a table");
        await page.waitForSelector(".value-table");
        const values = await page.$$eval(".value-table tbody tr", (all) =>
          all.map((row) => [
            new Date(row.querySelector("time").dateTime).getTime(),
            Number(row.querySelector("td").dataset.value),
          ]),
        );
        assert.equal(values.length, 2 * profileCount); // two steps of 5 s for each profile of 10 s
        for (const [ms, rate] of values)
          assert.ok(
            same(
              rate * 10,
              totalOf(
                kept((one) => one.ms <= ms && ms < one.ms + 10_000),
                0,
              ),
            ),
            `${ms}: ${rate}`,
          );
        const rows = await tableRows(page);
        for (const pod of pods)
          assert.ok(
            rows.some(
              (row) =>
                row.at(-1).includes(pod) &&
                number(row[1]) ===
                  totalOf(
                    kept((one) => one.pod === pod),
                    0,
                  ),
            ),
            `${pod}: ${rows}`,
          );
      }),
  );

  await runner.test(
    "explore: keys select a range, and screen readers get the values at the cursor",
    () =>
      inside(async (page) => {
        await open(page);
        await page.focus(".plot");
        await page.keyboard.press("Home");
        await page.keyboard.press("Home");
        const { json } = await server.call(
          "GET",
          "/api/v1/query_range?" +
            new URLSearchParams({
              query: type,
              start: window.from / 1000,
              end: window.to / 1000,
              rate: "true",
            }),
          { token: server.token },
        );
        const step = json.step_ms;
        const steps = Math.round((begin - window.from) / step);
        for (let i = 0; i < steps; i++) await page.keyboard.press("ArrowRight");
        const valueText = await page.getAttribute(".plot", "aria-valuetext");
        assert.match(
          valueText,
          new RegExp(`: all ${Number(json.series[0].points[0][1].toPrecision(3))} cores$`),
        );
        for (let i = 0; i < minute / step; i++) await page.keyboard.press("Shift+ArrowRight");
        assert.match(await page.getAttribute(".plot", "aria-valuetext"), /; selected /);
        await page.keyboard.press("Enter");
        await page.waitForURL(
          (url) => url.searchParams.get("part") === `${begin}-${begin + minute + step}`,
        );
        await viewReady(page);
        await soon(async () =>
          assert.match(await page.textContent(".made-facts"), /^Sum of 4 profiles of 2 series/),
        );
        await page.focus(".plot");
        await page.keyboard.press("Escape");
        await page.waitForURL((url) => !url.searchParams.has("part"));
      }),
  );

  await runner.test(
    "explore: two ranges are compared, swapped, and shared with the same numbers",
    () =>
      inside(async (page) => {
        await open(
          page,
          address({
            part: `${begin}-${begin + 4 * minute}`,
            v: "table",
            st: "cpu",
          }),
        );
        await page.click("button:has-text('Compare')");
        await page.waitForSelector(".selection.before .plot .u-over");
        await viewReady(page);
        const half = (late) =>
          samplesOf(
            sent,
            ({ ms }) =>
              ms >= begin + (late ? 2 : 0) * minute && ms < begin + (late ? 4 : 2) * minute,
          );
        const [left, right] = [topOf(half(false), 1), topOf(half(true), 1)];
        const rows = await tableRows(page);
        assert.equal(rows.length, new Set([...left.keys(), ...right.keys()]).size);
        // The values beside each graph are those of its half, as the API returns them for that
        // half.
        for (const [side, late] of [
          ["before", false],
          ["after", true],
        ]) {
          const [from, to] = [begin + (late ? 2 : 0) * minute, begin + (late ? 4 : 2) * minute];
          const { json } = await server.call(
            "GET",
            "/api/v1/query_range?" +
              new URLSearchParams({
                query: type,
                start: from / 1000,
                end: to / 1000,
                step: 5,
                rate: "true",
              }),
            { token: server.token },
          );
          const values = json.series[0].points.map(([, value]) => value);
          const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
          const wanted = [mean, Math.max(...values)].map(
            (value) => `${Number(value.toPrecision(3))} cores`,
          );
          assert.deepEqual(
            (
              await page.locator(`.selection.${side} .series-table tbody td`).allTextContents()
            ).slice(1),
            wanted,
          );
        }
        const change = 100 * (cpu(half(true)) / cpu(half(false)) - 1);
        const verdict = await page.textContent(".verdict strong");
        assert.ok(
          Math.abs(number(verdict.replace("−", "-").replace("%", "")) - change) < 0.6,
          `${verdict} for ${change}`,
        );

        // Ranges of different lengths have different totals, which the page states.
        assert.equal(await page.locator(".lengths").count(), 0);
        const halves = page.url();
        const shorter = new URL(halves);
        const [from, to] = shorter.searchParams.get("part").split("-").map(Number);
        shorter.searchParams.set("part", `${from}-${to - minute}`);
        await page.goto(String(shorter));
        await viewReady(page);
        assert.match(
          await page.textContent(".lengths"),
          /not equally long, 2 min before and 1 min after/,
        );
        assert.deepEqual(await axeFindings(page), []);
        await page.click(".lengths button");
        await page.waitForSelector(".lengths", { state: "detached" });
        await page.goto(halves);
        await viewReady(page);

        // The second selection is another pod over the whole time.
        await page.fill("[aria-label='Labels after']", 'pod="b"');
        await page.keyboard.press("Enter");
        await page.waitForURL(
          (url) =>
            url.searchParams.get("query").endsWith('{pod="b"}') &&
            url.searchParams.get("aquery") === type,
        );
        await viewReady(page);
        const kept = page.url();
        await page.click("button:has-text('Swap')");
        await page.waitForURL(
          (url) =>
            url.searchParams.get("aquery").endsWith('{pod="b"}') &&
            url.searchParams.get("query") === type,
        );
        await page.goBack();
        await page.waitForURL(kept);
        await viewReady(page);
        const shown = await page.textContent(".foot-total");

        // Without a title of the creator, each side has a descriptive one.
        await page.click("button:has-text('Share')");
        const title = await page.inputValue("dialog label:has-text('Title') + input");
        assert.match(
          title,
          /^CPU time, pod=b, \d+ \w{3} \d{4}, \d\d:\d\d–.*\d\d:\d\d compared with CPU time, all services, \d+ \w{3} \d{4}, /,
        );
        await page.click("dialog button:has-text('Create link')");
        const ids = /\/d\/(\w{22})\.\.(\w{22})/
          .exec(await page.textContent("dialog .copy-field code"))
          .slice(1);
        const titles = await Promise.all(
          ids.map(
            async (id) =>
              (
                await server.call("GET", `/api/v1/shares/${id}`, {
                  token: server.token,
                })
              ).json.title,
          ),
        );
        assert.match(titles[0], /^CPU time, all services, .* \(before\)$/);
        assert.equal(titles[1], title);
        await page.keyboard.press("Escape");

        await page.click("button:has-text('Share')");
        await page.fill("dialog label:has-text('Title') + input", "Kept");
        await page.click("dialog button:has-text('Create link')");
        const link = await page.textContent("dialog .copy-field code");
        assert.match(link, /\/d\/\w{22}\.\.\w{22}\?v=table&st=cpu&sv=2$/);
        await page.goto(link);
        await viewReady(page);
        assert.equal(await page.textContent(".foot-total"), shown);
        assert.deepEqual(await page.$$eval(".side a", (all) => all.map((one) => one.textContent)), [
          "Kept (before)",
          "Kept (after)",
        ]);
      }),
  );

  await runner.test("explore: labels are counted, and a view filtered by labels is shared", () =>
    inside(async (page) => {
      await open(page, address({ query: hits, v: "labels" }));
      const values = page.locator("[aria-label='Label pod'] .label-value");
      await values.first().waitFor();
      for (const pod of pods) {
        const amount = await values
          .filter({ has: page.locator(`.label-name:text-is("${pod}")`) })
          .locator(".label-amount")
          .getAttribute("title");
        assert.equal(
          parseInt(amount.replaceAll(",", ""), 10),
          totalOf(
            samplesOf(sent, (one) => one.pod === pod),
            0,
          ),
          `${pod}: ${amount}`,
        );
      }
      await values.filter({ has: page.locator(`.label-name:text-is("${pods[0]}")`) }).click();
      await page.waitForURL(/lb=/);
      await viewReady(page);
      const shown = await page.textContent(".foot-total");
      await page.click("button:has-text('Share')");
      await page.click("dialog button:has-text('Create link')");
      await page.goto(await page.textContent("dialog .copy-field code"));
      await viewReady(page);
      assert.match(page.url(), new RegExp(`lb=pod%3D${pods[0]}`));
      assert.equal(await page.textContent(".foot-total"), shown);
    }),
  );

  await runner.test(
    "explore: a merged profile is shared, and single profiles are listed and opened",
    () =>
      inside(async (page) => {
        await open(page, address({ st: "cpu" }));
        const shown = await page.textContent(".foot-total");
        await page.click("text=Single profiles");
        await page.waitForURL(/list=1/);
        await page.waitForFunction(
          (count) => document.querySelectorAll(".stored tbody tr").length === count,
          2 * profileCount,
        );
        const first = page.locator(".stored tbody tr").first();
        const newest = sent.filter(({ ms }) => ms === begin + (profileCount - 1) * minute);
        const [total, labels] = await first
          .locator("td")
          .evaluateAll((cells) => cells.slice(1).map((cell) => cell.textContent));
        const pod = /pod=(\w)/.exec(labels)[1];
        const value = cpu(newest.find((one) => one.pod === pod).samples);
        assert.match(total, new RegExp(`^${(value / 1e9).toPrecision(3)} s$`));
        await first.locator("button").click();
        await page.waitForURL(/profile=/);
        await viewReady(page);
        await soon(async () =>
          assert.ok(
            (await page.textContent(".foot-total")).startsWith(
              `${(value / 1e9).toPrecision(3)} s in`,
            ),
          ),
        );
        // Steps to older and newer profiles by keys, to the end of the list.
        const opened = () => new URL(page.url()).searchParams.get("profile");
        const rows = (
          await server.call(
            "GET",
            `/api/v1/profiles?query=${encodeURIComponent(type)}&start=${window.from / 1000}&end=` +
              `${window.to / 1000}&limit=50`,
            { token: server.token },
          )
        ).json.data.map(({ id }) => id);
        assert.equal(opened(), rows[0]);
        for (const [key, id] of [
          ["[", rows[1]],
          ["[", rows[2]],
          ["]", rows[1]],
          ["]", rows[0]],
        ]) {
          await page.keyboard.press(key);
          await page.waitForFunction(
            (id) => new URL(location.href).searchParams.get("profile") === id,
            id,
          );
        }
        await page.keyboard.press("]");
        await messageShown(page, "There is no newer profile in the time range");
        await page.click("text=Show all profiles");
        await viewReady(page);
        await soon(async () => assert.equal(await page.textContent(".foot-total"), shown));

        await page.click("button:has-text('Share')");
        await page.click("dialog button:has-text('Create link')");
        await page.waitForSelector("dialog a:has-text('Open link')");
        await page.click("dialog a:has-text('Open link')");
        await page.waitForURL(/\/p\/\w{22}\?st=cpu&sv=2$/);
        await viewReady(page);
        assert.equal(await page.textContent(".foot-total"), shown);
        assert.match(
          await page.textContent("h1"),
          /^CPU time, all services, \d+ \w{3} \d{4}, \d\d:\d\d–(\d+ \w{3} \d{4}, )?\d\d:\d\d$/,
        );
      }),
  );

  await runner.test(
    "explore: the layout is stable, a refresh shows new profiles, failed requests are retried",
    () =>
      inside(async (page, watch) => {
        await page.addInitScript(() => {
          globalThis.shift = 0;
          new PerformanceObserver((list) =>
            list.getEntries().forEach(({ value }) => (globalThis.shift += value)),
          ).observe({ type: "layout-shift", buffered: true });
        });
        await open(page, address({ query: "memory:inuse_space:bytes::", by: "pod" }));
        assert.match(await page.textContent(".made-facts"), / of 1 profile of 1 series/);
        const shift = await page.evaluate(() => globalThis.shift);
        assert.ok(shift < 0.01, `${shift}`);
        await sendMemory(server, begin + minute, "b");
        await page.click("[aria-label='Refresh']");
        await soon(async () =>
          assert.match(await page.textContent(".made-facts"), / of 2 profiles of 2 series/),
        );
        await page.waitForSelector(".series-table button:has-text('pod=b')");

        watch.allowed.add(503);
        await page.route("**/api/v1/query_range?*", (route) =>
          route.fulfill({ status: 503, body: "" }),
        );
        await page.click("[aria-label='Refresh']");
        await page.waitForSelector(".metrics-problem");
        await page.unroute("**/api/v1/query_range?*");
        await page.click("button:has-text('Try again')");
        await plotReady(page);

        await page.route("**/api/v1/query?*", async (route) => {
          const response = await route.fetch();
          await route.fulfill({
            response,
            headers: {
              ...response.headers(),
              "perfolio-warning": "1 of the parts to be read is broken",
            },
          });
        });
        await page.click("[aria-label='Refresh']");
        await page.waitForSelector(
          ".warning:has-text('Incomplete result: 1 of the parts to be read is broken')",
        );
        // waits for a plot that is being redrawn
        await page.locator(".plot .u-over").hover({ position: { x: 3, y: 20 } });
        await page.waitForFunction(
          (time) => document.querySelector(".series-table thead .number").textContent === time,
          new Date(begin).toTimeString().slice(0, 8),
        );
        assert.deepEqual(
          await page.$$eval(".series-table tbody td:nth-child(2)", (all) =>
            all.map((one) => one.textContent),
          ),
          ["4 KiB", "–"],
        );
      }),
  );

  await runner.test(
    "explore: an address restores the view, and a copied link keeps its times",
    () =>
      inside(async (page) => {
        const query = `${type}{pod="a"}`;
        const url =
          address({ from: "now-2h", until: "now", query, v: "table", s: "-flat", list: "1" }) +
          "&by=pod&by=service_name";
        await open(page, url);
        assert.match(await page.textContent(".made-facts"), /^Sum of 8 profiles of 1 series/);
        assert.equal(
          await page.inputValue("[aria-label=Time] select, select[aria-label=Time]"),
          "",
        );
        await page.click("button:has-text('Copy link')");
        await messageShown(page, "Link copied");
        const copied = new URL(await pasted(page));
        assert.equal(
          Number(copied.searchParams.get("until")) - Number(copied.searchParams.get("from")),
          120 * minute,
        );
        for (const name of ["query", "v", "s", "list"])
          assert.equal(copied.searchParams.get(name), new URL(url).searchParams.get(name), name);
        assert.deepEqual(copied.searchParams.getAll("by"), ["pod", "service_name"]);
        await page.selectOption("select[aria-label=Time]", "now-6h");
        await page.waitForURL((at) => at.searchParams.get("from") === "now-6h");
        await viewReady(page);
        await page.selectOption("select[aria-label='Profile type']", {
          label: "Memory in use · memory",
        });
        await page.waitForURL((at) =>
          at.searchParams.get("query").startsWith("memory:inuse_space"),
        );
        await viewReady(page);
        await soon(async () =>
          assert.match(
            await page.textContent(".made-facts"),
            /^Average over time of 1 profile of 1 series/,
          ),
        );
        await setInPlace(page, copied.pathname + copied.search);
        await viewReady(page);
        await soon(async () =>
          assert.match(await page.textContent(".made-facts"), /^Sum of 8 profiles of 1 series/),
        );
      }),
  );

  await runner.test("explore: a type with brackets and quotes in its name can be queried", () =>
    inside(async (page) => {
      const odd = 'heap[old]"';
      await sendMemory(server, begin, "a", odd);
      await open(page, address({ query: `${type}{pod="a"}`, v: "table" }));
      await page.selectOption("select[aria-label='Profile type']", {
        label: `${odd} · memory (bytes)`,
      });
      await page.waitForURL((at) =>
        at.searchParams.get("query").startsWith('{__profile_type__="memory:heap[old]\\"'),
      );
      await viewReady(page);
      await soon(async () =>
        assert.deepEqual(await tableRows(page), [["4 KiB", "4 KiB", "main.main"]]),
      );
      assert.equal(await page.inputValue("[aria-label='Labels']"), 'pod="a"');
      await page.click("[aria-label='Labels']");
      await page.fill("[aria-label='Labels']", 'pod="a",');
      await page.waitForSelector(".offers li:has-text('service_name')");
      await page.fill("[aria-label='Labels']", 'pod="b"');
      await page.keyboard.press("Enter");
      await page.waitForURL((at) => at.searchParams.get("query").endsWith(',pod="b"}'));
      await page.selectOption("select[aria-label='Profile type']", {
        label: "CPU time · process_cpu",
      });
      await page.waitForURL((at) => at.searchParams.get("query") === `${type}{pod="b"}`);
    }),
  );

  await context.close();
  for (const look of ["light", "dark", "phone"]) {
    const seen = await signedIn(browser, server, look, true);
    await runner.test(`explore, ${look}: the page is accessible and fits the screen`, () =>
      withPage(
        browser,
        server,
        async (page) => {
          for (const [name, url] of [
            ["explore", `${address({ part: `${begin}-${begin + 3 * minute}`, list: "1" })}&by=pod`],
            [
              "explore-compare",
              `${address({ aquery: type, afrom: window.from, auntil: window.to })}&by=pod`,
            ],
          ]) {
            await open(page, url);
            assert.deepEqual(await axeFindings(page), [], name);
            const wide = await page.evaluate(
              () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
            );
            assert.ok(wide <= 0, `${name} is ${wide} px too wide`);
            await page.screenshot({
              path: join(screenshots, `${name}-${look}.png`),
              fullPage: look === "phone",
            });
          }
        },
        { context: seen },
      ),
    );
    await seen.close();
  }
}
