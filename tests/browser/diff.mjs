// The comparison of two shares: the table equals the difference of two brute-force readers.
import assert from "node:assert/strict";
import { join } from "node:path";
import {
  axeFindings,
  dropFiles,
  screenshots,
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
  encodePprof,
  labelledProfile,
  topOf,
  totalOf,
  twoTypes,
} from "./profiles.mjs";

export async function testDiff(runner, browser, server) {
  const [a, b] = [21, 22].map((seed) => cpuSamples(seed));
  const before = await server.share(cpuProfile(21), { title: "Left side" });
  const after = await server.share(cpuProfile(22), { title: "Right side" });
  const address = `${server.url}/d/${before.id}..${after.id}`;

  await runner.test("a diff's table equals the difference of both profiles, sorted by change", () =>
    withPage(browser, server, async (page) => {
      await page.goto(`${address}?v=table&st=samples&sv=2`);
      await viewReady(page);
      const [left, right] = [topOf(a, 0), topOf(b, 0)];
      const zero = { flat: 0, cum: 0 };
      const rows = await tableRows(page);
      assert.equal(rows.length, new Set([...left.keys(), ...right.keys()]).size);
      let last = Infinity;
      for (const [was, is, change, name] of rows) {
        const [x, y] = [(left.get(name) ?? zero).cum, (right.get(name) ?? zero).cum];
        assert.equal(was, x.toLocaleString("en-US"));
        assert.equal(is, y.toLocaleString("en-US"));
        const sign = y > x ? "+" : "−";
        assert.equal(change, y === x ? "0" : sign + Math.abs(y - x).toLocaleString("en-US"));
        assert.ok(Math.abs(y - x) <= last, "order");
        last = Math.abs(y - x);
      }
      assert.deepEqual(
        await page.$$eval(".side-value", (all) => all.map((one) => one.textContent)),
        [totalOf(a, 0), totalOf(b, 0)].map((total) => total.toLocaleString("en-US")),
      );
    }),
  );

  for (const way of ["dropped on the page", "chosen in the dialog"])
    await runner.test(`a local file is compared with a share after confirmation: ${way}`, () =>
      withPage(
        browser,
        server,
        async (page) => {
          await page.goto(`${server.url}/p/${after.id}?v=table&sv=2`);
          await viewReady(page);
          const posted = [];
          page.on(
            "request",
            (request) => request.method() === "POST" && posted.push(request.url()),
          );
          const file = { name: "mine.pb.gz", bytes: cpuProfile(21) };
          if (way.startsWith("dropped")) await dropFiles(page, [file]);
          else {
            await page.click("button:has-text('Compare')");
            await page.waitForSelector("dialog input[type=file]");
            assert.deepEqual(await axeFindings(page), []);
            await page.setInputFiles("dialog input[type=file]", {
              name: file.name,
              mimeType: "",
              buffer: file.bytes,
            });
          }
          await page.waitForSelector(".ready p:has-text('compared with Right side')");
          await viewReady(page);
          assert.deepEqual(posted, [], "nothing is sent before the confirmation");
          await page.click("button:has-text('Cancel')");
          await page.waitForSelector(".profile-head h1:has-text('Right side')");
          await dropFiles(page, [file]);
          await page.click("button:has-text('Share and compare')");
          await page.waitForURL(/\/d\//);
          await viewReady(page);
          assert.match(
            page.url(),
            new RegExp(`/d/[0-9A-Za-z]{22}\\.\\.${after.id}\\?v=table&sv=2$`),
          );
          assert.deepEqual(
            await page.$$eval(".side a", (all) => all.map((one) => one.textContent)),
            ["mine.pb.gz", "Right side"],
          );
        },
        { bypassCSP: true },
      ),
    );

  await runner.test(
    "a file that is dropped on a page without a drop zone does not replace the page",
    () =>
      withPage(browser, server, async (page) => {
        await page.goto(address);
        await viewReady(page);
        const isTaken = await page.evaluate(() => {
          const transfer = new DataTransfer();
          transfer.items.add(new File(["a 1"], "a.folded"));
          return ["dragover", "drop"].map(
            (kind) =>
              !document.body.dispatchEvent(
                new DragEvent(kind, {
                  dataTransfer: transfer,
                  bubbles: true,
                  cancelable: true,
                }),
              ),
          );
        });
        assert.deepEqual(isTaken, [true, true]);
        await messageShown(page, "drop it on the home page");
      }),
  );

  await runner.test(
    "a retry is offered for temporary failures, not for sides that cannot be compared",
    async () => {
      const other = await server.share(
        encodePprof({
          types: [["alloc_space", "bytes"]],
          samples: [{ stack: ["main"], values: [5] }],
        }),
      );
      await withPage(browser, server, async (page, watch) => {
        watch.allowed.add(400).add(422).add(503);
        await page.goto(`${server.url}/d/${before.id}..${other.id}`);
        await page.waitForSelector(".problem");
        assert.equal(await page.locator("button:has-text('Try again')").count(), 0);
        await page.route("**/api/v1/diff?*", (route) => route.fulfill({ status: 503, body: "" }));
        await page.goto(address);
        await page.waitForSelector(".problem");
        await page.unroute("**/api/v1/diff?*");
        await page.click("button:has-text('Try again')");
        await viewReady(page);
      });
    },
  );

  await runner.test("stacks with different numbers of decimals are compared", async () => {
    const [one, three] = await Promise.all(
      ["main;a 2.5\n", "main;a 1.125\n"].map((text) => server.share(Buffer.from(text))),
    );
    await withPage(browser, server, async (page) => {
      await page.goto(`${server.url}/d/${one.id}..${three.id}?v=table&sv=2`);
      await viewReady(page);
      assert.deepEqual(
        await page.$$eval(".side-value", (all) => all.map((side) => side.textContent)),
        ["2.5", "1.13"],
      );
      assert.deepEqual((await tableRows(page)).find(([, , , name]) => name === "a").slice(0, 3), [
        "2.5",
        "1.13",
        "−1.38",
      ]);
    });
  });

  await runner.test(
    "microseconds are compared with nanoseconds; the page explains why it cannot normalise",
    async () => {
      const cpu = (unit, samples) =>
        server.share(
          encodePprof({
            types: [["cpu", unit]],
            samples: samples.map(([name, value]) => ({
              stack: ["main", name],
              values: [value],
            })),
          }),
        );
      const [micro, nano, none] = await Promise.all([
        cpu("microseconds", [["a", 3000]]),
        cpu("nanoseconds", [
          ["a", 1e6],
          ["b", 1e6],
        ]),
        cpu("nanoseconds", [["a", 0]]),
      ]);
      await withPage(browser, server, async (page) => {
        const sides = () => page.$$eval(".side-value", (all) => all.map((one) => one.textContent));
        await page.goto(`${server.url}/d/${micro.id}..${nano.id}?v=table&sv=2`);
        await viewReady(page);
        assert.deepEqual(await sides(), ["3 ms", "2 ms"]);
        assert.deepEqual((await tableRows(page)).find(([, , , name]) => name === "a").slice(0, 3), [
          "3 ms",
          "1 ms",
          "−2 ms",
        ]);
        await page.goto(`${server.url}/d/${none.id}..${nano.id}?norm=1&sv=2`);
        await page.waitForSelector("text=The profile before has no values of this type.");
        assert.deepEqual(await sides(), ["0 ns", "2 ms"]);
        await page.click("text=Turn normalising off");
        await viewReady(page);
        assert.match(await spoken(page), /^all, before 0 ns .*after 2 ms/);
        // Totals below zero cannot be normalised either: if the totals have different signs, their
        // quotient would reverse the sign of all values.
        const [mixed, below] = await Promise.all([
          cpu("nanoseconds", [
            ["a", -5e6],
            ["b", 5e6],
            ["c", 3e6],
          ]),
          cpu("nanoseconds", [
            ["a", -5e6],
            ["b", -2e6],
          ]),
        ]);
        const ofBefore = "The total of the profile before is −7 ms, which is not above zero.";
        const ofAfter = "The total of this type in the profile after is not above zero.";
        for (const [before, after, message] of [
          [mixed, below, ofAfter],
          [micro, none, ofAfter],
          [below, mixed, ofBefore],
          [below, below, ofBefore],
        ]) {
          await page.goto(`${server.url}/d/${before.id}..${after.id}?norm=1&v=table&sv=2`);
          await page.waitForSelector(`text=${message}`);
        }
        await page.goto(`${server.url}/d/${none.id}..${none.id}?sv=2`);
        await page.waitForSelector(
          "text=Neither profile, before nor after, has a value in nanoseconds here.",
        );
        await page.goto(`${server.url}/d/${below.id}..${below.id}?norm=1&v=table&sv=2`);
        await page.click("text=Turn normalising off");
        await viewReady(page);
        assert.deepEqual((await tableRows(page)).find((row) => row.at(-1) === "a").slice(0, 2), [
          "−5 ms",
          "−5 ms",
        ]);
      });
    },
  );

  await runner.test(
    "negative values in a diff are hatched, as wide as their absolute value, and noted",
    async () => {
      const make = (samples) =>
        server.share(
          encodePprof({
            types: [["share", "count"]],
            samples: Object.entries(samples).map(([name, value]) => ({
              stack: [name],
              values: [value],
            })),
          }),
        );
      const [one, two, plain] = [
        await make({ a: -5, b: 5, c: 3 }),
        await make({ a: -5, b: -2 }),
        await make({ a: 5, b: 2 }),
      ];
      await withPage(browser, server, async (page) => {
        await page.goto(`${server.url}/d/${one.id}..${two.id}?v=table&b=icicle&sv=2`);
        await viewReady(page);
        const changes = (await tableRows(page))
          .map(([was, is, change, name]) => [name, was, is, change])
          .sort();
        assert.deepEqual(changes, [
          ["a", "−5", "−5", "0"],
          ["b", "5", "−2", "−7"],
          ["c", "3", "0", "−3"],
        ]);
        await page.waitForSelector(
          ".note:has-text('Values below zero are hatched'):has-text('3 → −7')",
        );
        await page.waitForSelector(".diff-legend:has-text('below zero')");
        await page.focus(".icicle");
        for (const key of ["ArrowDown", "ArrowRight", "ArrowRight"]) await page.keyboard.press(key);
        assert.match(await spoken(page), /^[abc], before /);
        // Without such values there is no note about them.
        await page.goto(`${server.url}/d/${plain.id}..${plain.id}?sv=2`);
        await viewReady(page);
        assert.equal(await page.$("text=below zero"), null);
      });
    },
  );

  await runner.test(
    "a link of a later version is reported and kept; a sandwich requests a function",
    () =>
      withPage(browser, server, async (page) => {
        await page.goto(`${address}?v=sandwich&b=icicle&later=1&sv=99`);
        await page.waitForSelector(".sandwich-empty:has-text('any view')");
        await page.waitForSelector(".note:has-text('from a later version')");
        await page.keyboard.press("1");
        await page.waitForURL(`${address}?sv=99&later=1`);
      }),
  );

  await runner.test(
    "a comparison names the side that is gone and links to the other in the same view",
    async () => {
      const gone = await server.share(cpuProfile(29), { title: "Gone" });
      assert.equal(
        (
          await server.call("DELETE", `/api/v1/shares/${gone.id}`, {
            token: server.token,
          })
        ).status,
        204,
      );
      for (const look of ["light", "dark", "phone"])
        await withPage(
          browser,
          server,
          async (page, watch) => {
            watch.allowed.add(404).add(410);
            await page.goto(
              `${server.url}/d/${before.id}..${gone.id}?v=table&st=samples&norm=1&sv=2`,
            );
            await page.waitForSelector("h1:has-text('The profile after is gone')");
            assert.deepEqual(await axeFindings(page), []);
            await page.screenshot({
              path: join(screenshots, `diff-gone-${look}.png`),
            });
            assert.equal(
              await page.evaluate(() =>
                [...document.querySelectorAll(".problem-ways > *")].some(
                  (way) => way.getBoundingClientRect().right > innerWidth,
                ),
              ),
              false,
              "everything is within the page",
            );
            await page.click("button:has-text('View the profile before: Left side')");
            await page.waitForURL(`${server.url}/p/${before.id}?v=table&st=samples&sv=2`);
            await viewReady(page);
            await page.goto(`${server.url}/d/${gone.id}..${after.id}`);
            await page.waitForSelector("h1:has-text('The profile before is gone')");
            await page.waitForSelector("button:has-text('View the profile after: Right side')");
            await page.goto(`${server.url}/d/${before.id}..${"0".repeat(22)}`);
            await page.waitForSelector("h1:has-text('The profile after is not found')");
            await page.goto(`${server.url}/d/${gone.id}..${gone.id}`);
            await page.waitForSelector("h1:has-text('Both profiles are gone')");
            assert.equal(await page.locator("text=View the profile").count(), 0);
            // Also in a frame of another site.
            await page.goto(`${server.url}/embed/${before.id}..${gone.id}`);
            await page.waitForSelector("h1:has-text('The profile after is gone')");
            await page.click("a:has-text('View the profile before: Left side')");
            await page.waitForURL(`${server.url}/embed/${before.id}`);
            await viewReady(page);
          },
          { look, bypassCSP: true },
        );
      // The password of a side is requested and opens the comparison.
      const locked = await server.share(
        cpuProfile(30),
        { title: "Locked", visibility: "password" },
        { headers: { "X-Perfolio-Password": "open sesame" } },
      );
      await withPage(browser, server, async (page, watch) => {
        watch.allowed.add(401);
        await page.goto(`${server.url}/d/${before.id}..${locked.id}`);
        await page.fill("input[type=password]", "open sesame");
        await page.click("button:has-text('Open')");
        await viewReady(page);
      });
    },
  );

  await runner.test("a comparison can be swapped and normalised, and links to both sides", () =>
    withPage(browser, server, async (page) => {
      await page.goto(`${address}?st=samples&sv=2`);
      await viewReady(page);
      await page.click("button:has-text('Normalise')");
      await page.waitForURL(/norm=1/);
      await viewReady(page);
      await page.waitForFunction(
        (total) =>
          document.querySelector("#icicle-cursor").textContent.startsWith(`all, before ${total} `),
        totalOf(a, 0).toLocaleString("en-US"),
      );
      assert.equal(
        await page.textContent(".side.after .side-value"),
        totalOf(b, 0).toLocaleString("en-US"),
        "the original value, not the scaled one",
      );
      await page.keyboard.press("%");
      await page.waitForFunction(() => !location.search.includes("norm"));
      await page.keyboard.press("x");
      await page.waitForURL(`${server.url}/d/${after.id}..${before.id}?st=samples&sv=2`);
      await viewReady(page);
      assert.ok(
        (await spoken(page)).startsWith(`all, before ${totalOf(b, 0).toLocaleString("en-US")} `),
        await spoken(page),
      );
      await page.click(".side.before a");
      await page.waitForURL(`${server.url}/p/${after.id}?st=samples&sv=2`);
    }),
  );

  await runner.test("stacks that are gone and stacks that are new are shown", async () => {
    const make = (name) =>
      encodePprof({
        types: twoTypes,
        samples: [
          { stack: ["main", name], values: [5, 50] },
          { stack: ["main", "kept"], values: [7, 70] },
        ],
      });
    const [one, two] = [await server.share(make("old")), await server.share(make("fresh"))];
    await withPage(browser, server, async (page) => {
      await page.goto(`${server.url}/d/${one.id}..${two.id}?v=table&b=icicle&st=samples&sv=2`);
      await viewReady(page);
      const rows = await page.$$eval(".rows .row", (all) => all.map((row) => row.textContent));
      assert.ok(
        rows.some((text) => text.includes("gone") && text.includes("old")),
        rows.join("|"),
      );
      assert.ok(rows.some((text) => text.includes("new") && text.includes("fresh")));
      await page.focus(".icicle");
      for (const key of ["ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight"])
        await page.keyboard.press(key);
      assert.match(await spoken(page), /^(old|fresh), /);
      // A box around both is wider than either side.
      assert.match(
        await page.textContent(".diff-legend"),
        /Width is the larger of before and after/,
      );
      // Both sides of the marked function are shown too.
      for (const [name, share] of [
        ["old", "41.7% → 0%"],
        ["kept", "58.3% → 58.3%"],
        ["fresh", "0% → 41.7%"],
      ]) {
        await page.goto(`${server.url}/d/${one.id}..${two.id}?st=samples&m=${name}&sv=2`);
        await viewReady(page);
        await soon(async () =>
          assert.equal(await page.textContent("button.marked"), `${name} ${share}`),
        );
      }
    });
  });

  await runner.test(
    "stepping to another profile keeps the view as far as possible and reports what is missing",
    async () => {
      const heap = await server.share(
        encodePprof({
          types: [["alloc_space", "bytes"]],
          samples: [{ stack: ["main"], values: [5], labels: { thread: "io" } }],
        }),
        { title: "Heap" },
      );
      const plain = await server.share(cpuProfile(23), {
        title: "Without labels",
      });
      const labelled = await server.share(labelledProfile(24), {
        title: "With labels",
      });
      await withPage(browser, server, async (page) => {
        await page.addInitScript(
          (ids) =>
            localStorage.setItem("perfolio:shares", JSON.stringify(ids.map((id) => ({ id })))),
          [heap.id, after.id, before.id],
        );
        await page.goto(`${server.url}/p/${after.id}?v=table&st=cpu&q=main&sv=2`);
        await viewReady(page);
        await page.keyboard.press("[");
        await page.waitForURL(`${server.url}/p/${before.id}?v=table&st=cpu&q=main&sv=2`);
        await viewReady(page);
        assert.equal(await page.$(".message.shown"), null, "nothing of the view is missing");
        await page.keyboard.press("]");
        await page.waitForURL(`${server.url}/p/${after.id}?v=table&st=cpu&q=main&sv=2`);
        await viewReady(page);
        await page.keyboard.press("]");
        await page.waitForURL(`${server.url}/p/${heap.id}?v=table&q=main&sv=2`);
        await messageShown(
          page,
          "This profile has no sample type “cpu”, so “alloc_space” is shown.",
        );
        await viewReady(page);
        // From the comparison to the side without such labels: by key, and by the link above.
        for (const leave of [() => page.keyboard.press("["), () => page.click(".side.before a")]) {
          await page.goto(
            `${server.url}/d/${plain.id}..${labelled.id}?g=label%3Athread&lb=thread%3Dio&sv=2`,
          );
          await viewReady(page);
          await leave();
          await page.waitForURL(`${server.url}/p/${plain.id}`);
          await messageShown(
            page,
            "No sample of this profile has a label “thread” to group by. Ignored because this " +
              "profile has no such labels: thread=io.",
          );
          await viewReady(page);
        }
      });
    },
  );

  await runner.test(
    "a message for the next page is not shown by the page that is being left",
    async () => {
      const plain = await server.share(cpuProfile(25), {
        title: "Without labels",
      });
      const labelled = await server.share(labelledProfile(26), {
        title: "With labels",
      });
      await withPage(browser, server, async (page) => {
        // Delays the look-up of the stored message until the next page is loading.
        await page.addInitScript(() => {
          const wait = globalThis.setTimeout;
          globalThis.setTimeout = (act, ms, ...rest) => wait(act, ms === 300 ? 4000 : ms, ...rest);
        });
        await page.goto(`${server.url}/d/${plain.id}..${labelled.id}?g=label%3Athread&sv=2`);
        await viewReady(page);
        await page.route(`${server.url}/p/${plain.id}`, async (route) => {
          await new Promise((resolve) => setTimeout(resolve, 6000));
          await route.continue();
        });
        await page.click(".side.before a");
        await page.waitForURL(`${server.url}/p/${plain.id}`);
        await messageShown(page, "No sample of this profile has a label “thread” to group by.");
      });
    },
  );

  await runner.test("a share is compared with another profile from its page", () =>
    withPage(browser, server, async (page) => {
      await page.goto(`${server.url}/p/${after.id}?st=samples&sv=2`);
      await viewReady(page);
      await page.click("button:has-text('Compare')");
      await page.fill("dialog input", `https://elsewhere.example/p/${before.id}`);
      await page.waitForSelector("dialog >> text=This link leads to elsewhere.example");
      const link = await server.call("POST", "/api/v1/links", {
        body: { path: `/p/${before.id}?q=x` },
      });
      await page.fill("dialog input", link.json.url);
      await page.click("dialog button:has-text('Compare')");
      await page.waitForURL(`${address}?st=samples&sv=2`);
      await viewReady(page);
    }),
  );
}
