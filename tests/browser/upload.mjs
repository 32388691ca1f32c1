// From a file to a link: drop, choose, paste, many at once, large, refused; and deletion.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { program } from "./server.mjs";
import {
  dropFiles,
  focusIs,
  pasted,
  screenshots,
  soon,
  spoken,
  messageShown,
  viewReady,
  withPage,
} from "./harness.mjs";
import { signedIn } from "./account.mjs";
import { cpuProfile, cpuSamples, foldedText, totalOf } from "./profiles.mjs";

async function createLink(page) {
  await page.click("button:has-text('Create link')");
  await page.waitForSelector(".done");
  return page.getAttribute(".done a.primary", "href");
}

/** The page accepts files as soon as it is loaded. */
async function openLanding(page, server) {
  await page.goto(server.url + "/");
  await page.waitForSelector(".drop");
}

export async function testUpload(runner, browser, server) {
  const bytes = cpuProfile(1);

  await runner.test("a dropped profile becomes a link, is viewed and deleted", () =>
    withPage(browser, server, async (page, watch) => {
      await openLanding(page, server);
      await dropFiles(page, [{ name: "cpu.pb.gz", bytes }]);
      await page.fill("label:has-text('Title') + input", "Dropped by a test");
      await page.selectOption("label:has-text('Expires') ~ .select select", "7d");
      const link = await createLink(page);
      assert.match(link, /^https:\/\/localhost:\d+\/p\/[0-9A-Za-z]{22}$/);
      await page.click("summary:has-text('Delete link')");
      const deleteLink = await page.textContent(".copy-field.secret code");

      await page.click("text=Open the profile");
      await viewReady(page);
      assert.equal(await page.textContent("h1"), "Dropped by a test");
      assert.match(
        await page.textContent(".facts"),
        /expires in 6 days|expires in 7 days|expires next week|expires in 1 week/,
      );
      const total = totalOf(cpuSamples(1), 1);
      assert.ok(
        (await spoken(page)).startsWith(`all, total ${(total / 1e9).toFixed(1)} s (100%)`),
        await spoken(page),
      );
      const raw = await server.call("GET", new URL(link).pathname + "/raw");
      assert.ok(raw.bytes.equals(bytes), "the original bytes");

      await page.goto(deleteLink);
      await page.waitForSelector("text=cannot be undone");
      assert.equal(
        (await server.call("GET", new URL(link).pathname.replace("/p/", "/api/v1/shares/"))).status,
        200,
        "a GET deletes nothing",
      );
      await page.click("text=Delete forever");
      await page.waitForSelector("h1:has-text('Deleted')");
      watch.allowed.add(410);
      await page.goto(link);
      await page.waitForSelector("text=This profile is gone");
    }),
  );

  await runner.test("a chosen file becomes a link that can be copied", () =>
    withPage(browser, server, async (page) => {
      await openLanding(page, server);
      await page.setInputFiles("#file", {
        name: "chosen.pb.gz",
        mimeType: "application/gzip",
        buffer: bytes,
      });
      const link = await createLink(page);
      await page.click(".done > .copy-field button");
      await messageShown(page, "copied");
      assert.equal(await pasted(page), link);
      await openLanding(page, server);
      assert.equal(await page.textContent(".recent li a"), "chosen.pb.gz");
      await page.click(".recent li a");
      await viewReady(page);
      assert.equal(await page.textContent("h1"), "chosen.pb.gz");
      assert.equal(
        await page.locator("button:has-text('Settings')").count(),
        1,
        "the browser that created the share may edit it",
      );
    }),
  );

  await runner.test("pasted folded stacks become a link", () =>
    withPage(browser, server, async (page) => {
      await openLanding(page, server);
      await page.evaluate(() => {
        const data = new DataTransfer();
        data.setData("text/plain", "main;run;work 30\nmain;run;rest 12\n");
        document.body.dispatchEvent(
          new ClipboardEvent("paste", {
            clipboardData: data,
            bubbles: true,
            cancelable: true,
          }),
        );
      });
      await page.goto(await createLink(page));
      await viewReady(page);
      assert.match(await spoken(page), /^all, total 42/);
      assert.match(await page.textContent(".facts"), /folded stacks/);
    }),
  );

  await runner.test("two dropped files become a comparison", () =>
    withPage(browser, server, async (page) => {
      await openLanding(page, server);
      await dropFiles(page, [
        { name: "before.pb.gz", bytes: cpuProfile(2) },
        { name: "after.pb.gz", bytes: cpuProfile(3) },
      ]);
      await page.click("text=Compare profiles");
      await page.waitForSelector(".done");
      const links = await page.$$eval(".done code", (all) => all.map((code) => code.textContent));
      assert.match(links[0], /\/d\/\w{22}\.\.\w{22}$/);
      assert.equal(links[1], `[before.pb.gz → after.pb.gz](${links[0]})`);
      assert.deepEqual(
        links.slice(2).map((link) => /\/p\/(\w{22})\/delete#[\w-]{20,}$/.exec(link)?.[1]),
        links[0].match(/\w{22}/g),
        "the delete links of both shares",
      );
      assert.deepEqual(
        await page.$$eval(".done .file-name", (all) => all.map((one) => one.textContent)),
        ["before.pb.gz", "after.pb.gz"],
      );
      await page.click("text=Open the comparison");
      await page.waitForURL(/\/d\/\w{22}\.\.\w{22}$/);
      await viewReady(page);
      assert.deepEqual(
        await page.$$eval(".side a", (links) => links.map((link) => link.textContent)),
        ["before.pb.gz", "after.pb.gz"],
      );
    }),
  );

  await runner.test(
    "two dropped files, one not a profile: it is named, and actions that need it are disabled",
    () =>
      withPage(browser, server, async (page) => {
        await openLanding(page, server);
        const cat = {
          name: "cat.png",
          bytes: Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
        };
        await dropFiles(page, [{ name: "before.pb.gz", bytes: cpuProfile(2) }, cat]);
        await page.waitForSelector(".preview-note:has-text('cat.png: This is a picture')");
        await page.waitForSelector("button:disabled:has-text('Compare profiles')");
        await page.waitForSelector("button:disabled:has-text('Merge profiles')");
        await page.click("text=Continue without it");
        await viewReady(page);
        assert.deepEqual(
          await page.$$eval(".files .file-name", (all) => all.map((one) => one.textContent)),
          ["before.pb.gz"],
        );
        assert.ok(await page.isEnabled("text=Create link"));
        await focusIs(page, () => document.activeElement.textContent, "Create link");
      }),
  );

  /** The landing page with two files, of which `meet` handles the second; returns the requests. */
  const withSecondFailing = (meet, use) =>
    withPage(browser, server, async (page, watch) => {
      watch.allowed.add(503);
      const requests = [];
      page.on("request", (request) => {
        const { pathname, searchParams } = new URL(request.url());
        if (pathname.startsWith("/api/v1/shares") && request.method() !== "GET")
          requests.push([request.method(), searchParams.get("filename") ?? pathname.slice(15)]);
      });
      let isFirst = true;
      await page.route(/filename=after/, (route) =>
        isFirst ? ((isFirst = false), meet(route)) : route.continue(),
      );
      await openLanding(page, server);
      await dropFiles(page, [
        { name: "before.pb.gz", bytes: cpuProfile(2) },
        { name: "after.pb.gz", bytes: cpuProfile(3) },
      ]);
      await page.click("text=Compare profiles");
      await use(page, requests);
    });
  const refuse = (route) =>
    route.fulfill({
      status: 503,
      contentType: "application/problem+json",
      body: JSON.stringify({
        type: "/problems/busy",
        title: "Busy",
        detail: "The server is busy.",
        status: 503,
      }),
    });
  const remembered = (page) =>
    page.evaluate(() =>
      JSON.parse(localStorage.getItem("perfolio:shares") ?? "[]").map(({ id, title }) => ({
        id,
        title,
      })),
    );

  await runner.test("if the second of two files fails, a retry sends only that file", () =>
    withSecondFailing(refuse, async (page, requests) => {
      await page.waitForSelector(".error-line:has-text('after.pb.gz: The server is busy.')");
      await page.waitForSelector(".ready >> text=before.pb.gz is already on the server");
      await focusIs(page, () => document.activeElement.textContent, "Compare profiles");
      await page.click("text=Compare profiles");
      await page.waitForSelector(".done");
      assert.deepEqual(requests, [
        ["POST", "before.pb.gz"],
        ["POST", "after.pb.gz"],
        ["POST", "after.pb.gz"],
      ]);
      assert.deepEqual(
        (await remembered(page)).map(({ title }) => title),
        ["after.pb.gz", "before.pb.gz"],
      );
    }),
  );

  await runner.test(
    "if the second of two files fails, new settings send both, and cancelling deletes them",
    () =>
      withSecondFailing(refuse, async (page, requests) => {
        await page.waitForSelector(".ready >> text=before.pb.gz is already on the server");
        const [{ id }] = await remembered(page);
        await page.selectOption("label:has-text('Expires') ~ .select select", "1d");
        await page.route(/filename=after/, refuse, { times: 1 });
        await page.click("text=Compare profiles");
        await page.waitForFunction(
          (old) =>
            JSON.parse(localStorage.getItem("perfolio:shares") ?? "[]").some(
              (one) => one.id !== old,
            ),
          id,
        );
        await page.waitForSelector(".ready >> text=before.pb.gz is already on the server");
        const [second, ...more] = await remembered(page);
        assert.deepEqual(more, []);
        assert.notEqual(second.id, id);
        await page.click(".ready button:has-text('Cancel')");
        await page.waitForSelector(".drop");
        await page.waitForFunction(() => localStorage.getItem("perfolio:shares") === "[]");
        for (const gone of [id, second.id])
          await soon(async () =>
            assert.equal((await server.call("GET", `/api/v1/shares/${gone}`)).status, 410),
          );
        assert.deepEqual(
          requests.filter(([method]) => method === "DELETE").map(([, path]) => path),
          [id, second.id],
        );
      }),
  );

  await runner.test(
    "if the second of two files is cancelled, the first is deleted and both can be resent",
    () =>
      withSecondFailing(
        () => undefined,
        async (page, requests) => {
          await page.waitForSelector(".progress >> text=2 of 2: after.pb.gz");
          const [{ id }] = await remembered(page);
          await focusIs(page, () => document.activeElement.textContent, "Cancel");
          await page.keyboard.press("Enter");
          await messageShown(page, "The uploaded files were deleted");
          assert.equal((await server.call("GET", `/api/v1/shares/${id}`)).status, 410);
          assert.deepEqual(await remembered(page), []);
          assert.equal(await page.locator(".files li").count(), 2);
          await page.click("text=Compare profiles");
          await page.waitForSelector(".done");
          assert.equal(requests.filter(([method]) => method === "POST").length, 4);
        },
      ),
  );

  /**
   * Cancels while the response to `path` is held back until the server has created the share; the
   * result is reported.
   */
  const cancelAfterResponse = (path, choose) =>
    withPage(browser, server, async (page) => {
      let release;
      const released = new Promise((resolve) => (release = resolve));
      let made = null;
      await page.route(path, async (route) => {
        const response = await route.fetch();
        made = await response.json();
        await released;
        await route.fulfill({ response });
      });
      // A route that holds back a response reports no progress; a browser that sends does, on a
      // busy machine long after the button was pressed.
      await page.addInitScript(() => {
        const { send } = XMLHttpRequest.prototype;
        XMLHttpRequest.prototype.send = function (body) {
          send.call(this, body);
          const reportProgress = () => {
            this.upload.dispatchEvent(
              new ProgressEvent("progress", {
                lengthComputable: true,
                loaded: body.size,
                total: body.size,
              }),
            );
            globalThis.hasReported = true;
          };
          if (body)
            addEventListener("click", () => setTimeout(reportProgress, 1000), {
              once: true,
              capture: true,
            });
        };
      });
      await openLanding(page, server);
      await choose(page);
      await soon(async () => assert.ok(made));
      await page.click(".progress button:has-text('Cancel')");
      await page.waitForSelector(`.progress em:has-text('cancelling')`);
      await page.waitForFunction(() => globalThis.hasReported);
      release();
      await messageShown(page, "Cancelled. The uploaded files were deleted.");
      assert.equal((await server.call("GET", `/api/v1/shares/${made.id}`)).status, 410);
      assert.deepEqual(await remembered(page), []);
      assert.equal(await page.locator(".done").count(), 0);
      await focusIs(page, () => document.activeElement.type, "submit");
    });

  await runner.test("cancelling after the whole file was sent deletes its share", () =>
    cancelAfterResponse(/\/api\/v1\/shares\?/, async (page) => {
      await dropFiles(page, [{ name: "late.pb.gz", bytes }]);
      await page.click("text=Create link");
    }),
  );

  await runner.test("cancelling while parts are being completed deletes the share", () =>
    cancelAfterResponse(/\/complete\?/, async (page) => {
      await page.setInputFiles("#file", {
        name: "late.folded",
        mimeType: "text/plain",
        buffer: foldedText(40_000, { seed: 8 }),
      });
      await page.click("text=Create link");
    }),
  );

  await runner.test("cancelling while files are being merged deletes all shares", () =>
    cancelAfterResponse(/\/api\/v1\/merge/, async (page) => {
      await dropFiles(page, [
        { name: "before.pb.gz", bytes: cpuProfile(2) },
        { name: "after.pb.gz", bytes: cpuProfile(3) },
      ]);
      await page.click("text=Merge profiles");
    }),
  );

  await runner.test(
    "an upload cancelled right after the whole file was sent leaves nothing on the server",
    () =>
      withPage(browser, server, async (page) => {
        for (const wait of [0, 5, 20, 60]) {
          await openLanding(page, server);
          await dropFiles(page, [{ name: `soon${wait}.pb.gz`, bytes }]);
          await page.waitForSelector("text=Create link");
          const id = await page.evaluate(async (ms) => {
            const responses = [];
            const { open } = XMLHttpRequest.prototype;
            XMLHttpRequest.prototype.open = function (...all) {
              this.addEventListener("load", () => responses.push(JSON.parse(this.responseText).id));
              this.addEventListener("abort", () => responses.push(""));
              open.apply(this, all);
            };
            const sent = new Promise((resolve) => {
              const { send } = XMLHttpRequest.prototype;
              XMLHttpRequest.prototype.send = function (body) {
                send.call(this, body);
                resolve();
              };
            });
            document.querySelector(".ready button[type=submit]").click();
            await sent;
            await new Promise((resolve) => setTimeout(resolve, ms));
            document.querySelector(".progress button")?.click();
            while (!responses.length) await new Promise((resolve) => setTimeout(resolve, 10));
            XMLHttpRequest.prototype.open = open;
            return responses[0];
          }, wait);
          assert.notEqual(id, "", `${wait} ms: the response arrived, so the token is known`);
          if (await page.locator(".done").count()) continue; // the upload was complete
          await messageShown(page, "Cancelled. The uploaded files were deleted.");
          assert.equal(
            (await server.call("GET", `/api/v1/shares/${id}`)).status,
            410,
            `${wait} ms`,
          );
        }
      }),
  );

  await runner.test(
    "an unavailable server is reported, and cancelling does not wait for the next retry",
    () =>
      withPage(browser, server, async (page, watch) => {
        watch.allowed.add(503);
        await page.route(/\/parts\/1$/, (route) =>
          route.fulfill({
            status: 503,
            headers: { "Retry-After": "25" },
            contentType: "application/problem+json",
            body: "{}",
          }),
        );
        await openLanding(page, server);
        await page.setInputFiles("#file", {
          name: "busy.folded",
          mimeType: "text/plain",
          buffer: foldedText(40_000, { seed: 9 }),
        });
        await page.click("text=Create link");
        await page.waitForSelector(
          ".progress em:has-text('the server is busy, trying again in 25 s')",
        );
        await page.click(".progress button:has-text('Cancel')");
        // shorter than the pause before the next attempt
        await page.waitForSelector("text=Create link", { timeout: 20_000 });
        assert.equal(await page.locator(".error-line span").count(), 0);
      }),
  );

  await runner.test(
    "a file that is dropped before the page's script is loaded is accepted afterwards",
    () =>
      withPage(browser, server, async (page) => {
        let release;
        const released = new Promise((resolve) => (release = resolve));
        await page.route(
          /\/assets\/landing.*\.js$/,
          async (route) => (await released, route.continue()),
        );
        await page.goto(server.url + "/", { waitUntil: "commit" });
        await page.waitForSelector("header");
        await dropFiles(page, [{ name: "early.pb.gz", bytes }]);
        release();
        await page.waitForSelector(".files >> text=early.pb.gz");
        await viewReady(page);
        assert.equal(await page.locator(".files li").count(), 1);
      }),
  );

  await runner.test("two files of the same name are distinguished", () =>
    withPage(browser, server, async (page) => {
      await openLanding(page, server);
      await dropFiles(
        page,
        [2, 3].map((seed) => ({ name: "cpu.pb.gz", bytes: cpuProfile(seed) })),
      );
      await page.waitForSelector(".preview-sides");
      const names = await page.$$eval(".files .file-name", (all) =>
        all.map((one) => one.textContent),
      );
      assert.match(names[0], /^cpu\.pb\.gz \(.*KiB, /);
      assert.notEqual(names[0], names[1]);
      assert.equal(
        await page.textContent(".preview-sides > span"),
        `Before ${names[0]} · After ${names[1]}`,
      );
      await page.click(`.files button[aria-label="Remove ${names[0]}"]`);
      await page.waitForFunction(
        () => document.querySelector(".files .file-name").textContent === "cpu.pb.gz",
      );
    }),
  );

  for (const [width, height] of [
    [1366, 768],
    [1280, 720],
  ])
    await runner.test(
      `the preview of a file is visible without scrolling, ${width} x ${height}`,
      () =>
        withPage(browser, server, async (page) => {
          await page.setViewportSize({ width, height });
          for (const files of [["cpu.pb.gz"], ["before.pb.gz", "after.pb.gz"]]) {
            await openLanding(page, server);
            await dropFiles(
              page,
              files.map((name, i) => ({ name, bytes: cpuProfile(i + 2) })),
            );
            await viewReady(page);
            await page.screenshot({
              path: join(screenshots, `light-chosen-${files.length}-${width}.png`),
            });
            const canvas = await page.locator(".preview .icicle canvas").first().boundingBox();
            assert.equal(await page.evaluate(() => scrollY), 0);
            assert.ok(canvas.y + 100 < height, `the tree begins at ${canvas.y}`);
          }
        }),
    );

  await runner.test(
    "several dropped files, some not profiles: they are named, and only the others can be merged",
    () =>
      withPage(browser, server, async (page) => {
        await openLanding(page, server);
        const junk = [
          {
            name: "cat.png",
            bytes: Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
          },
          { name: "notes.txt", bytes: Buffer.from("call the dentist\n") },
        ];
        const runs = [4, 5, 6].map((seed) => ({
          name: `run${seed}.pb.gz`,
          bytes: cpuProfile(seed),
        }));
        await dropFiles(page, [runs[0], junk[0], runs[1], junk[1], runs[2]]);
        await page.waitForSelector(
          ".checks:has-text('cat.png: This is a picture')" +
            ":has-text('notes.txt: This is not a supported profile')",
        );
        await page.waitForSelector("button:disabled:has-text('Merge 5 profiles')");
        assert.ok(
          !(await page.textContent(".checks")).includes("run"),
          "the other files are not reported",
        );
        assert.equal(
          await page.getAttribute(".to-preview", "href"),
          `#${await page.getAttribute(".checks", "id")}`,
          "the part that a phone scrolls to",
        );
        await page.screenshot({ path: join(screenshots, "light-junk.png") });
        await page.click("text=Continue without these 2");
        await page.waitForSelector("button:enabled:has-text('Merge 3 profiles')");
        assert.deepEqual(
          await page.$$eval(".files .file-name", (all) => all.map((one) => one.textContent)),
          runs.map(({ name }) => name),
        );
        await soon(async () =>
          assert.equal(
            await page.evaluate(() => document.activeElement.textContent),
            "Merge 3 profiles",
          ),
        );
        await page.keyboard.press("Enter");
        await page.waitForSelector(".done");
      }),
  );

  await runner.test(
    "commands of the first page break between words, and its form shows all choices",
    () =>
      withPage(browser, server, async (page) => {
        await openLanding(page, server);
        await page.waitForSelector(".ways");
        const torn = await page.$$eval(".ways code > span", (words) =>
          words
            .filter(
              (word) =>
                word.getClientRects().length > 1 ||
                (word.offsetHeight > 30 && !word.querySelector("wbr")),
            )
            .map((word) => word.textContent),
        );
        assert.deepEqual(torn, []);
        const address = await page.$eval(".ways code > span:has(wbr)", (word) => word.textContent);
        assert.equal(address.trim(), `${server.url}/ca.crt`);
        await dropFiles(page, [
          {
            name: "cat.png",
            bytes: Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
          },
        ]);
        await page.waitForSelector(".preview-note:has-text('This is a picture')");
        for (const width of [390, 700, 861, 900, 1000, 1100, 1280, 1440]) {
          await page.setViewportSize({ width, height: 900 });
          const cut = await page.$$eval(".ready :is(select, textarea)", (fields) => {
            const pen = document.createElement("canvas").getContext("2d");
            return fields.flatMap((field) => {
              const style = getComputedStyle(field);
              pen.font = `${style.fontSize} ${style.fontFamily}`;
              const text = field.matches("select")
                ? field.selectedOptions[0].textContent
                : field.placeholder;
              const room =
                field.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
              return pen.measureText(text).width > room ? `${text}: ${room}` : [];
            });
          });
          assert.deepEqual(cut, [], `${width} px`);
        }
      }),
  );

  await runner.test("three dropped files become one merged profile", () =>
    withPage(browser, server, async (page) => {
      await openLanding(page, server);
      await dropFiles(
        page,
        [4, 5, 6].map((seed) => ({
          name: `run${seed}.pb.gz`,
          bytes: cpuProfile(seed),
        })),
      );
      await page.click("text=Merge 3 profiles");
      await page.waitForSelector(".done");
      await page.click("text=Open the profile");
      await viewReady(page);
      const total = [4, 5, 6].reduce((sum, seed) => sum + totalOf(cpuSamples(seed), 1), 0);
      assert.ok((await spoken(page)).includes(`${(total / 1e9).toFixed(1)} s`), await spoken(page));
    }),
  );

  await runner.test(
    "the shown commands work with a server that has its own certificate authority",
    () =>
      withPage(browser, server, async (page) => {
        const folder = mkdtempSync(join(tmpdir(), "perfolio-lines-"));
        const names = Object.entries(process.env).filter(([name]) => !name.startsWith("PERFOLIO_"));
        const environment = {
          ...Object.fromEntries(names),
          XDG_CONFIG_HOME: folder,
          PPROF_TMPDIR: folder,
          PATH: `${dirname(program)}:${process.env.PATH}`,
        };
        const run = (line) =>
          promisify(execFile)("bash", ["-c", `set -e; ${line} </dev/null`], {
            cwd: folder,
            env: environment,
          });
        const lines = (where) =>
          page.$$eval(`${where} .copy-field code`, (all) => all.map((one) => one.textContent));
        try {
          for (const name of ["cpu", "before", "after"])
            writeFileSync(join(folder, `${name}.pb.gz`), bytes);
          await openLanding(page, server);
          await page.waitForSelector(".ways");
          const [trust, push, curl, compare, ...more] = await lines(".ways");
          assert.equal(more.length, 0);
          const { stdout: fingerprint } = await run(trust);
          await assert.rejects(
            run(trust.replace("/ca.crt", "/no-such.crt")),
            ({ stderr }) => /404/.test(stderr),
            "a failed command reports the cause",
          );
          assert.ok(
            readFileSync(server.logPath, "utf8").includes(fingerprint.trim().split("=")[1]),
            "the fingerprint that the server printed at its start",
          );
          const link = (await run(push)).stdout.trim();
          assert.ok(link.startsWith(`${server.url}/p/`), link);
          assert.equal(JSON.parse((await run(curl)).stdout).url.indexOf(`${server.url}/p/`), 0);
          assert.match((await run(compare)).stdout, /\/d\/[0-9A-Za-z]{22}\.\.[0-9A-Za-z]{22}/);

          await page.goto(link);
          await viewReady(page);
          await page.click("button:has-text('Download')");
          await page.click(".menu-panel summary");
          await page.waitForFunction(() => {
            const line = [...document.querySelectorAll(".menu-panel .copy-field")].at(-1);
            const { x, y, width, height } = line.getBoundingClientRect();
            return [y + 2, y + height - 2].every((at) =>
              line.contains(document.elementFromPoint(x + width / 2, at)),
            );
          });
          const [again, pprof] = await lines(".menu-panel");
          assert.equal(again, trust);
          await run(trust);
          const hasGo = await run("command -v go").catch(() => null);
          if (hasGo) assert.match((await run(pprof)).stderr, /Type: cpu/);
        } finally {
          rmSync(folder, { recursive: true, force: true });
        }
      }),
  );

  await runner.test("with a trusted certificate, the shown commands are short", () =>
    withPage(browser, server, async (page) => {
      await page.route("**/api/v1/session", async (route) => {
        const response = await route.fetch();
        await route.fulfill({
          response,
          json: { ...(await response.json()), has_local_ca: false },
        });
      });
      await openLanding(page, server);
      await page.waitForSelector(".ways .copy-field code");
      const lines = await page.$$eval(".ways .copy-field code", (all) =>
        all.map((one) => one.textContent),
      );
      assert.deepEqual(lines, [
        "perfolio push cpu.pb.gz",
        `curl --data-binary @cpu.pb.gz ${server.url}/api/v1/shares`,
        "perfolio diff before.pb.gz after.pb.gz",
      ]);
    }),
  );

  await runner.test(
    "if sharing requires a token, the page states this, and its commands contain it",
    async () => {
      const sessionIs = (page, changes) =>
        page.route("**/api/v1/session", async (route) => {
          const response = await route.fetch();
          await route.fulfill({
            response,
            json: { ...(await response.json()), ...changes },
          });
        });
      const curlOf = async (page) => {
        await page.waitForSelector(".ways");
        assert.equal(
          await page.getAttribute(".ways a:has-text('token')", "href"),
          "/settings#tokens",
        );
        assert.match(
          await page.textContent(".ways div:has-text('From a terminal') code"),
          /^perfolio login (?!--anonymous)/,
        );
        return page.textContent(".ways code:has-text('--data-binary')");
      };
      const folder = mkdtempSync(join(tmpdir(), "perfolio-lines-"));
      const context = await signedIn(browser, server);
      try {
        // Anonymous sharing is on, and the reader is signed in: the share that the command creates
        // is in the list of the reader's team.
        await withPage(
          browser,
          server,
          async (page) => {
            await openLanding(page, server);
            const line = await curlOf(page);
            writeFileSync(join(folder, "cpu.pb.gz"), bytes);
            const run = (command) =>
              promisify(execFile)("bash", ["-c", command], {
                cwd: folder,
                env: { ...process.env, PERFOLIO_TOKEN: server.token },
              });
            await run(await page.textContent(".ways .whole .copy-field code"));
            const { id } = JSON.parse((await run(line)).stdout);
            // Other tests create shares meanwhile.
            const { shares } = (
              await server.call("GET", "/api/v1/shares?limit=50", {
                token: server.token,
              })
            ).json;
            assert.ok(shares.some((one) => one.id === id));
          },
          { context },
        );
      } finally {
        await context.close();
        rmSync(folder, { recursive: true, force: true });
      }
      // Anonymous sharing is off, and the reader is not signed in: the page offers only what works
      // without an account.
      await withPage(browser, server, async (page) => {
        await sessionIs(page, {
          anonymous_sharing: false,
          has_local_ca: false,
        });
        await page.goto(server.url);
        await page.waitForSelector("h2:has-text('Sign in to share')");
        assert.equal(
          await curlOf(page),
          `curl -H "Authorization: Bearer $PERFOLIO_TOKEN" --data-binary @cpu.pb.gz ` +
            `${server.url}/api/v1/shares`,
        );
        assert.doesNotMatch(await page.textContent(".hero-text"), /anyone/);
        assert.match(
          await page.textContent(".hero-text"),
          /opens in your browser and is not uploaded.*Sign in to share/,
        );
        await dropFiles(page, [{ name: "cpu.pb.gz", bytes }]);
        await page.waitForSelector(".preview-note:has-text('Shown from your browser')");
        await viewReady(page);
        assert.ok((await spoken(page)).startsWith("all, total "));
      });
    },
  );

  await runner.test("a large file is uploaded in parts", () =>
    withPage(browser, server, async (page) => {
      const large = foldedText(40_000);
      assert.ok(large.length > 8.5 * 2 ** 20);
      await openLanding(page, server);
      const parts = [];
      page.on(
        "request",
        (request) => request.method() === "PUT" && parts.push(new URL(request.url()).pathname),
      );
      await page.setInputFiles("#file", {
        name: "large.folded",
        mimeType: "text/plain",
        buffer: large,
      });
      const link = await createLink(page);
      assert.equal(parts.length, Math.ceil(large.length / (4 << 20)));
      const raw = await server.call("GET", new URL(link).pathname + "/raw");
      assert.ok(raw.bytes.equals(large), "the original bytes");
    }),
  );

  await runner.test("an interrupted large upload continues after a reload or starts over", () =>
    withPage(browser, server, async (page, watch) => {
      const large = foldedText(40_000, { seed: 6 });
      const partBytes = 4 << 20;
      const folder = mkdtempSync(join(tmpdir(), "perfolio-upload-"));
      const file = join(folder, "cut.folded");
      writeFileSync(file, large);
      const parts = [];
      page.on(
        "requestfinished",
        (request) =>
          request.method() === "PUT" &&
          parts.push(Number(new URL(request.url()).pathname.split("/").at(-1))),
      );
      /** The tab is closed while the second part is being sent. */
      const cutOff = async () => {
        let held;
        await page.route("**/parts/1", (route) => void (held = route));
        await openLanding(page, server);
        await page.setInputFiles("#file", file);
        const second = page.waitForRequest(/\/parts\/1$/);
        await page.click("button:has-text('Create link')");
        await second;
        assert.match(await page.textContent(".progress em"), / of /);
        await page.goto("about:blank");
        // otherwise the request would continue once the route is removed
        await held.abort().catch(() => undefined);
        await page.unroute("**/parts/1");
      };
      try {
        await cutOff();
        await soon(() => assert.deepEqual(parts, [0]));
        await openLanding(page, server);
        await page.setInputFiles("#file", file);
        await page.waitForSelector(".continued >> text=4 MiB of");
        const link = await createLink(page);
        assert.deepEqual(
          parts,
          [0, ...Array.from({ length: Math.ceil(large.length / partBytes) - 1 }, (_, i) => i + 1)],
          "only the missing parts are sent",
        );
        const raw = await server.call("GET", new URL(link).pathname + "/raw");
        assert.ok(raw.bytes.equals(large), "the original bytes");
        assert.equal(
          await page.evaluate(() => localStorage.getItem("perfolio:uploads")),
          "[]",
          "a finished upload is no longer stored",
        );

        parts.length = 0;
        await cutOff();
        const { id, token } = await page
          .goto(`${server.url}/`)
          .then(() => page.evaluate(() => JSON.parse(localStorage.getItem("perfolio:uploads"))[0]));
        await page.waitForSelector(".drop");
        await page.setInputFiles("#file", file);
        const given = page.waitForResponse((response) => response.request().method() === "DELETE");
        await page.click(".continued button:has-text('Start over')");
        assert.equal((await given).status(), 204);
        assert.equal(
          (
            await server.call("GET", `/api/v1/uploads/${id}`, {
              headers: { "X-Perfolio-Upload-Token": token },
            })
          ).status,
          404,
        );
        assert.equal(await page.locator(".continued").count(), 0);

        // An upload that the server has forgotten starts again without a message.
        watch.allowed.add(404);
        parts.length = 0;
        await cutOff();
        await page.goto(`${server.url}/`);
        const gone = await page.evaluate(
          () => JSON.parse(localStorage.getItem("perfolio:uploads"))[0],
        );
        await server.call("DELETE", `/api/v1/uploads/${gone.id}`, {
          headers: { "X-Perfolio-Upload-Token": gone.token },
        });
        await page.waitForSelector(".drop");
        await page.setInputFiles("#file", file);
        parts.length = 0;
        await createLink(page);
        assert.equal(parts[0], 0);
      } finally {
        rmSync(folder, { recursive: true });
      }
    }),
  );

  await runner.test(
    "a file that is not a profile is refused with a reason, and the form stays",
    () =>
      withPage(browser, server, async (page, watch) => {
        watch.allowed.add(400).add(415).add(422);
        await openLanding(page, server);
        await dropFiles(page, [
          {
            name: "cat.jpg",
            bytes: Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 1, 2, 3]),
          },
        ]);
        await page.waitForSelector(".ready .hint:has-text('This does not look like a profile')");
        await page.waitForSelector(".preview-note:has-text('This is not a supported profile')");
        assert.equal(
          await page.$("button.primary:has-text('Create link')"),
          null,
          "not proposed, but permitted",
        );
        await page.click("button:has-text('Create link')");
        await page.waitForSelector(".error-line span");
        assert.ok((await page.textContent(".error-line")).length > 10);
        assert.equal(await page.locator("button:has-text('Create link')").count(), 1);
      }),
  );
}
