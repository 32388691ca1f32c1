// A file that was chosen is shown before anything is sent, with the numbers that the server would show.
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { axeFindings, dropFiles, soon, viewReady, withPage } from "./harness.mjs";
import { cpuProfile, encodePprof, foldedText } from "./profiles.mjs";
import { root } from "./server.mjs";

/** Names with exact self and total values of the rows that are in the document. */
const exactRows = (page) =>
  page.$$eval(".rows .row", (rows) =>
    rows.map((row) => {
      const whole = (cell) => Number(/^-?[\d,]+(\.\d+)?/.exec(cell.title.replace("−", "-"))[0].replaceAll(",", ""));
      const [flat, cum] = [...row.querySelectorAll(".cell.value")].map(whole);
      const button = row.querySelector("button");
      return [button.ariaLabel ?? button.title, flat, cum];
    }),
  );

/** Data in several gzip members, as `cat a.gz b.gz` joins them; one of them empty. */
const members = (data, count) => {
  const step = Math.ceil(data.length / count);
  return Buffer.concat([gzipSync(Buffer.alloc(0)), ...Array.from({ length: count }, (_, i) => gzipSync(data.subarray(i * step, (i + 1) * step)))]);
};

function files() {
  const made = [
    ["cpu.pb.gz", cpuProfile(41)],
    ["raw.pb", gunzipSync(cpuProfile(42))],
    ["members.pb.gz", members(gunzipSync(cpuProfile(44)), 3)],
    ["stacks.folded", foldedText(200)],
    ["decimals.folded", Buffer.from("# a comment\nmain;run 1.5\nmain;run;köln 2.25\nmain 3e1\n")],
    ["kernel.folded", Buffer.from("main;read;vfs_read_[k] 4\nmain;jitted_[j] 2\n")],
  ];
  const folder = join(process.env.PERFOLIO_SHARED ?? join(root, "../shared"), "data/pprof");
  if (!existsSync(folder)) return made;
  const real = readdirSync(folder).filter((name) => name.endsWith(".pb.gz"));
  return [...made, ...real.map((name) => [name, readFileSync(join(folder, name))])];
}

export async function testPreview(runner, browser, server) {
  for (const [name, bytes] of files())
    await runner.test(`a preview has the server's numbers: ${name}`, async () => {
      const { id } = await server.share(bytes, { filename: name });
      const share = (await server.call("GET", `/api/v1/shares/${id}`, { token: server.token })).json;
      await withPage(browser, server, async (page) => {
        await page.setViewportSize({ width: 1200, height: 3000 });
        const sent = [];
        page.on("request", (request) => request.method() !== "GET" && sent.push(request.url()));
        let isShown = false; // dropped once; the other types are chosen from the menu
        for (const [index, { unit }] of share.sample_types.entries()) {
          const parts = Number(/^count\/(\d+)$/.exec(unit)?.[1] ?? 1); // decimals, kept as whole numbers
          const top = (await server.call("GET", `/api/v1/shares/${id}/top?sample_type=${index}&limit=0`, { token: server.token })).json;
          if (isShown) await page.selectOption(".preview [aria-label='Sample type']", String(index));
          else {
            await page.goto(`${server.url}/?v=table&s=-cum&st=${index}&sv=2`);
            await page.waitForSelector(".drop");
            await dropFiles(page, [{ name, bytes }]);
            await page.waitForSelector(".preview");
          }
          if (top.functions.length === 0) {
            await page.waitForSelector(".preview >> text=No samples of this type");
            isShown = false;
            continue;
          }
          await viewReady(page);
          isShown = true;
          await page.$eval(".preview .viewer", (viewer) => (viewer.style.minHeight = "2800px")); // many rows at once
          const least = Math.min(70, top.functions.length);
          const expected = new Map(top.functions.map((row) => [row.name, row]));
          await soon(async () => {
            const rows = await exactRows(page);
            assert.ok(rows.length >= least, `${rows.length} of ${least} rows`);
            for (const [fn, flat, cum] of rows) assert.deepEqual([flat, cum], [expected.get(fn)?.flat / parts, expected.get(fn)?.cum / parts], fn);
          });
        }
        assert.deepEqual(sent, [], "nothing was sent");
      });
    });

  await runner.test("a preview, its rules and its link after sharing", () =>
    withPage(browser, server, async (page) => {
      await page.goto(`${server.url}/`);
      await page.waitForSelector(".drop");
      await dropFiles(page, [{ name: "cpu.pb.gz", bytes: cpuProfile(43) }]);
      await page.waitForSelector(".preview-note >> text=nothing has been uploaded yet");
      await viewReady(page);
      assert.deepEqual(await axeFindings(page), []);
      const focus = async () => {
        await page.focus(".icicle");
        await page.keyboard.press("ArrowDown");
        await page.keyboard.press("f");
        await page.waitForSelector(".rules .rule");
      };
      await focus();
      await page.click("text=Cancel");
      assert.equal(page.url(), `${server.url}/`, "rules are of the file they were put on");
      await dropFiles(page, [{ name: "other.folded", bytes: Buffer.from("x;y 3\nx 1\n") }]);
      await viewReady(page);
      assert.equal(await page.textContent(".foot-total"), "4 in 2 functions");
      await focus();
      const { search } = new URL(page.url());
      assert.match(search, /x=focus/);
      await page.click("text=Create link");
      await page.click("text=Open the profile");
      await viewReady(page);
      assert.match(new URL(page.url()).pathname, /^\/p\/[0-9A-Za-z]{22}$/);
      assert.equal(new URL(page.url()).search, search, "the link shows what was seen");
      await page.waitForSelector(".rules .rule");
    }),
  );

  await runner.test("what the browser cannot read is said, and can be sent all the same", () =>
    withPage(browser, server, async (page) => {
      const whole = encodePprof({ types: [["cpu", "nanoseconds"]], samples: [{ stack: ["a"], values: [1] }] });
      const cases = [
        [whole.subarray(0, whole.length - 9), "cannot be unpacked"],
        [gzipSync(gunzipSync(whole).subarray(0, 20)), "no preview of this format"],
        [Buffer.from('{"nodes":[]}'), "no preview of this format"],
        [Buffer.alloc(0), "is empty"],
        [Buffer.from("<!doctype html>\n"), "This is HTML, perhaps an error page that was saved. What can be read is pprof"],
        [Buffer.concat([whole, whole.subarray(0, 40)]), "cannot be unpacked"],
      ];
      for (const [bytes, words] of cases) {
        await page.goto(`${server.url}/`);
        await page.waitForSelector(".drop");
        await dropFiles(page, [{ name: "broken.pb.gz", bytes }]);
        await page.waitForSelector(`.preview-note >> text=${words}`);
        assert.ok(await page.isEnabled("text=Create link"));
      }
      await page.click(".ready >> text=Cancel");
      await dropFiles(page, [{ name: "one.folded", bytes: Buffer.from("a;b 3\n") }]);
      await page.click("text=Create link");
      await page.waitForSelector(".done");
      await dropFiles(page, [{ name: "two.folded", bytes: Buffer.from("x;y 4\n") }]);
      await page.waitForSelector("text=Create link");
      assert.deepEqual(await page.$$eval(".ready .files li, .ready .file-name", (all) => [...new Set(all.map((one) => one.textContent))].filter((text) => text.includes("one.folded"))), [], "a link was made: another file begins anew");
      await viewReady(page);
      assert.equal(await page.textContent(".foot-total"), "4 in 2 functions");
    }),
  );
}
