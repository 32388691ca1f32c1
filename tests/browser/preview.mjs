// A chosen file is shown before anything is sent, with the numbers that the server would show.
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import {
  axeFindings,
  dropFiles,
  pasted,
  soon,
  messageShown,
  viewReady,
  withPage,
} from "./harness.mjs";
import {
  cpuProfile,
  encodePprof,
  foldedText,
  labelledProfile,
  labelledSamples,
} from "./profiles.mjs";
import { root } from "./server.mjs";

/** Names with exact self and total values of the rows in the document. */
const exactRows = (page) =>
  page.$$eval(".rows .row", (rows) =>
    rows.map((row) => {
      const whole = (cell) =>
        Number(/^-?[\d,]+(\.\d+)?/.exec(cell.title.replace("−", "-"))[0].replaceAll(",", ""));
      const [flat, cum] = [...row.querySelectorAll(".cell.value")].map(whole);
      const button = row.querySelector("button");
      return [button.ariaLabel ?? button.title, flat, cum];
    }),
  );

/** Data in several gzip members, as concatenated by `cat a.gz b.gz`; one of them is empty. */
const members = (data, count) => {
  const step = Math.ceil(data.length / count);
  return Buffer.concat([
    gzipSync(Buffer.alloc(0)),
    ...Array.from({ length: count }, (_, i) => gzipSync(data.subarray(i * step, (i + 1) * step))),
  ]);
};

const sharedFolder = join(process.env.PERFOLIO_SHARED ?? join(root, "../shared"), "data/pprof");

function files() {
  const made = [
    ["cpu.pb.gz", cpuProfile(41)],
    ["raw.pb", gunzipSync(cpuProfile(42))],
    ["members.pb.gz", members(gunzipSync(cpuProfile(44)), 3)],
    ["stacks.folded", foldedText(200)],
    ["decimals.folded", Buffer.from("# a comment\nmain;run 1.5\nmain;run;köln 2.25\nmain 3e1\n")],
    ["kernel.folded", Buffer.from("main;read;vfs_read_[k] 4\nmain;jitted_[j] 2\n")],
    ["gaps.folded", Buffer.from("a;;b 5\n;a 3\na; 2\n; 1\n;x_[i] 4\n")],
    [
      "blanks.folded",
      Buffer.from(
        "a;b\u00a0 5\n\u2003a;c\u2003d\t3\r\n\ufeffa;e 2\na;f\u2028g 4\na;h\u00a01\n\v a;b " +
          "1\f\n# of \u00a0 7\na;k -0.5\n",
      ),
    ],
    [
      "slash.pb.gz",
      encodePprof({
        types: [["samples", "count"]],
        binary: "/",
        mapped: { start: 0x1000, offset: 0x200 },
        samples: [
          { stack: ["main", 0x1100], values: [3] },
          { stack: [0x1200], values: [4] },
        ],
      }),
    ],
  ];
  if (!existsSync(sharedFolder)) return [...made, ["profiles of other tools", null]];
  const real = readdirSync(sharedFolder).filter((name) => name.endsWith(".pb.gz"));
  return [...made, ...real.map((name) => [name, readFileSync(join(sharedFolder, name))])];
}

/** The reason to skip a test whose file is missing. */
const lackOf = (name, bytes) => (bytes ? "" : `${name} is not in ${sharedFolder}`);

/**
 * Files with inlined calls, kernel frames, binaries without symbols and all kinds of labels, and
 * the groupings by label.
 */
function groupedFiles() {
  const many = labelledSamples(48, 60).map(({ labels, ...sample }, i) => ({
    ...sample,
    labels: i === 7 ? Array.from({ length: 900 }, (_, at) => ["thread", `wörker ${at}`]) : labels,
  }));
  const made = [
    [
      "inlined.folded",
      Buffer.from(
        "main;read_[k];copy_[i];deep_[i] 4\nmain;copy_[i] 3\ncopy_[i];x " +
          "1\nmain;jit_[j];read_[k] 2\nmain;jit_[j] 2\nread_[k];copy_[i] 5\n",
      ),
      [],
    ],
    ["gaps.folded", Buffer.from("a;;b_[k] 5\n;a 3\na; 2\n;x_[i];_[i] 4\n"), []],
    [
      "slash.pb.gz",
      encodePprof({
        types: [["samples", "count"]],
        binary: "//",
        samples: [
          { stack: ["main", 0x1100], values: [3] },
          { stack: [0x1200], values: [4] },
        ],
      }),
      [],
    ],
    [
      "labelled.pb.gz",
      encodePprof({
        types: [["cpu", "nanoseconds"]],
        binary: "/usr/bin/app/",
        samples: many.map(({ values, ...sample }) => ({
          ...sample,
          values: [values[1]],
        })),
      }),
      ["label:thread", "bytes"],
    ],
  ];
  const real = ["labels.pb.gz", "profile1.pb.gz", "fib.pb.gz", "no-python.pb.gz"].map((name) => [
    name,
    join(sharedFolder, name),
  ]);
  return [
    ...made,
    ...real.map(([name, path]) => [name, existsSync(path) ? readFileSync(path) : null, []]),
  ];
}

/** Rows as sortable texts. */
const sorted = (rows) => rows.map((row) => JSON.stringify(row)).sort();

/** Checks that the rows in the document are among those of the server's table. */
async function agreesWith(page, rows) {
  const known = new Set(sorted(rows));
  await soon(async () => {
    const shown = sorted(await exactRows(page));
    assert.ok(shown.length >= Math.min(70, rows.length), `${shown.length} of ${rows.length} rows`);
    for (const row of shown)
      assert.ok(known.has(row), `${row} is not among ${[...known].slice(0, 12)}`);
  });
}

export async function testPreview(runner, browser, server) {
  for (const [name, bytes] of files())
    await runner.test(
      `a preview's numbers equal the server's: ${name}`,
      async () => {
        const { id } = await server.share(bytes, { filename: name });
        const share = (
          await server.call("GET", `/api/v1/shares/${id}`, {
            token: server.token,
          })
        ).json;
        await withPage(browser, server, async (page) => {
          await page.setViewportSize({ width: 1200, height: 3000 });
          const sent = [];
          page.on("request", (request) => request.method() !== "GET" && sent.push(request.url()));
          let isShown = false; // dropped once; the other types are chosen from the menu
          for (const [index, { unit }] of share.sample_types.entries()) {
            // decimals, stored as whole numbers
            const parts = Number(/^count\/(\d+)$/.exec(unit)?.[1] ?? 1);
            const top = (
              await server.call("GET", `/api/v1/shares/${id}/top?sample_type=${index}&limit=0`, {
                token: server.token,
              })
            ).json;
            if (isShown)
              await page.selectOption(".preview [aria-label='Sample type']", String(index));
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
            // A high viewer shows many rows at once.
            await page.$eval(".preview .viewer", (viewer) => (viewer.style.minHeight = "2800px"));
            const least = Math.min(70, top.functions.length);
            const expected = new Map(top.functions.map((row) => [row.name, row]));
            await soon(async () => {
              const rows = await exactRows(page);
              assert.ok(rows.length >= least, `${rows.length} of ${least} rows`);
              for (const [fn, flat, cum] of rows)
                assert.deepEqual(
                  [flat, cum],
                  [expected.get(fn)?.flat / parts, expected.get(fn)?.cum / parts],
                  fn,
                );
            });
          }
          assert.deepEqual(sent, [], "nothing was sent");
        });
      },
      lackOf(name, bytes),
    );

  for (const [name, bytes, labels] of groupedFiles())
    await runner.test(
      `a preview's groupings equal the server's: ${name}`,
      async () => {
        const { id } = await server.share(bytes, { filename: name });
        await withPage(browser, server, async (page) => {
          await page.setViewportSize({ width: 1200, height: 3000 });
          await page.goto(`${server.url}/?v=table&s=-cum&g=file&sv=2`);
          await page.waitForSelector(".drop");
          await dropFiles(page, [{ name, bytes }]);
          for (const group of ["file", "line", "address", "binary", ...labels]) {
            if (group !== "file")
              await page.selectOption(
                ".preview [aria-label=Group]",
                group.replace(/^(label:)?(?=bytes|thread)/, "label:"),
              );
            await viewReady(page);
            await page.$eval(".preview .viewer", (viewer) => (viewer.style.minHeight = "2800px"));
            const own = (
              await server.call("GET", `/api/v1/shares/${id}/top?group_by=${group}&limit=0`, {
                token: server.token,
              })
            ).json;
            await agreesWith(
              page,
              own.functions.map((row) => [row.name, row.flat, row.cum]),
            );
          }
        });
      },
      lackOf(name, bytes),
    );

  await runner.test(
    "two files are compared before the upload, with the server's numbers and view",
    () =>
      withPage(browser, server, async (page) => {
        const types = [
          ["cpu", "microseconds"],
          ["samples", "count"],
        ];
        const cpu = labelledSamples(46, 90);
        const files = [
          {
            name: "before.pb.gz",
            bytes: encodePprof({
              types,
              samples: cpu.map(({ values, ...sample }) => ({
                ...sample,
                values: [values[1] / 1000, values[0]],
              })),
              defaultType: "samples",
            }),
          },
          { name: "after.pb.gz", bytes: labelledProfile(47, 120) },
        ];
        const [a, b] = await Promise.all(
          files.map(({ name, bytes }) => server.share(bytes, { filename: name })),
        );
        const rowsOf = async (query) =>
          (
            await server.call("GET", `/api/v1/diff/top?a=${a.id}&b=${b.id}&limit=0&${query}`, {
              token: server.token,
            })
          ).json.functions.map((row) => [row.name, row.cum_a, row.cum_b]);
        const seen = () =>
          page.$$eval(".rows .row", (rows) =>
            rows.map((row) => {
              const whole = (cell) =>
                Math.round(
                  Number(
                    /^-?[\d,]+(\.\d+)?/.exec(cell.title.replace("−", "-"))[0].replaceAll(",", ""),
                  ),
                ); // the API rounds normalised values
              const name = row.querySelector("button");
              return [
                name.ariaLabel ?? name.title,
                ...[...row.querySelectorAll(".cell.value")].map(whole),
              ];
            }),
          );
        await page.setViewportSize({ width: 1200, height: 3000 });
        const sent = [];
        page.on("request", (request) => request.method() !== "GET" && sent.push(request.url()));
        await page.goto(`${server.url}/?v=table&s=-cum&co=before,cum&sv=2`);
        await page.waitForSelector(".drop");
        await dropFiles(page, files);
        await viewReady(page);
        assert.deepEqual(await axeFindings(page), []);
        const shownAtFirst = 8; // values of a label
        const agrees = async (query) => {
          const known = sorted(await rowsOf(query));
          assert.ok(known.length > 5);
          await soon(async () => {
            await viewReady(page);
            // A high viewer shows all rows at once.
            await page.$eval(".viewer", (viewer) => (viewer.style.minHeight = "2800px"));
            assert.deepEqual(sorted(await seen()), known, query);
          });
        };
        await agrees("");
        await page.selectOption(".preview [aria-label='Sample type']", {
          label: "samples",
        });
        await agrees("sample_type=samples");
        // Labels that one side lacks: the value before and after for each; for the first, the same
        // as the server's.
        for (const mode of ["absolute", "normalised"]) {
          const { labels } = (
            await server.call(
              "GET",
              `/api/v1/diff/labels?limit=0&a=${a.id}&b=${b.id}&sample_type=samples&mode=${mode}`,
              { token: server.token },
            )
          ).json;
          const known = labels.map((label) => [
            label.key,
            [...label.values, label.without].map((value) => `${value.total_a} → ${value.total_b}`),
          ]);
          await page.keyboard.press("7");
          await page.waitForSelector(".label-section");
          await soon(async () => {
            await viewReady(page);
            const shown = new Map(
              await page.$$eval(".label-section", (all) =>
                all.map((section) => [
                  section.ariaLabel.replace("Label ", ""),
                  [...section.querySelectorAll(".label-value .label-amount")].map(({ title }) =>
                    title
                      .split(" → ")
                      .map((text) => /^[\d,]+/.exec(text)[0].replaceAll(",", ""))
                      .join(" → "),
                  ),
                ]),
              ),
            );
            assert.equal(shown.size, known.length);
            for (const [key, values] of known) {
              const lacking = [...values];
              for (const value of shown.get(key))
                assert.ok(
                  lacking.includes(value) && lacking.splice(lacking.indexOf(value), 1),
                  `${mode}: ${key} ${value} is not among ${values.slice(0, 12)}`,
                );
              assert.ok(
                lacking.length === 0 || shown.get(key).length >= shownAtFirst,
                `${mode}: ${key} lacks ${lacking}`,
              );
            }
          });
          await page.keyboard.press("%");
        }
        await page.keyboard.press("2");
        await viewReady(page);
        await page.selectOption(".preview [aria-label=Group]", "label:thread");
        await agrees("sample_type=samples&group_by=label:thread");
        await page.keyboard.press("x");
        await page.waitForSelector(
          ".preview-sides >> text=Before after.pb.gz · After before.pb.gz",
        );
        await page.keyboard.press("x");
        await page.waitForSelector(".preview-sides >> text=Before before.pb.gz");
        await page.keyboard.press("%");
        await page.waitForSelector(".preview-sides >> text=Normalised");
        await agrees("sample_type=samples&group_by=label:thread&mode=normalised");
        assert.deepEqual(sent, [], "nothing was sent");
        const { search } = new URL(page.url());
        assert.match(search, /st=samples&g=label%3Athread&norm=1/);
        await page.click("text=Compare profiles");
        await page.click("text=Open the comparison");
        await page.waitForURL(/\/d\/\w{22}\.\.\w{22}\?/);
        assert.equal(new URL(page.url()).search, search, "the link contains the view");
        await agrees("sample_type=samples&group_by=label:thread&mode=normalised");
      }),
  );

  await runner.test("files that cannot be compared are reported, and can be merged anyway", () =>
    withPage(browser, server, async (page) => {
      await page.goto(`${server.url}/`);
      await page.waitForSelector(".drop");
      await dropFiles(page, [
        { name: "a.folded", bytes: Buffer.from("a;b 3\n") },
        {
          name: "cpu.pb.gz",
          bytes: encodePprof({
            types: [["cpu", "ns"]],
            samples: [{ stack: ["a"], values: [1] }],
          }),
        },
      ]);
      await page.waitForSelector(".preview >> text=These two profiles cannot be compared");
      assert.ok(await page.isEnabled("text=Merge profiles"));
      await page.waitForSelector("button:disabled:has-text('Compare profiles')");
    }),
  );

  await runner.test("the link after sharing shows the rules and the view of the preview", () =>
    withPage(browser, server, async (page) => {
      await page.goto(`${server.url}/`);
      await page.waitForSelector(".drop");
      await dropFiles(page, [{ name: "cpu.pb.gz", bytes: cpuProfile(43) }]);
      await page.waitForSelector(".preview-note >> text=Shown from your browser before any upload");
      await viewReady(page);
      assert.deepEqual(await axeFindings(page), []);
      const focus = async () => {
        await page.focus(".icicle");
        await page.keyboard.press("ArrowDown");
        await page.keyboard.press("f");
        await page.waitForSelector(".rules .rule");
      };
      await focus();
      await page.evaluate(() => navigator.clipboard.writeText("before"));
      await page.keyboard.press("y");
      await messageShown(page, "share the profile first");
      assert.equal(await pasted(page), "before");
      await page.click("text=Cancel");
      assert.equal(page.url(), `${server.url}/`, "rules belong to their file");
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
      assert.equal(new URL(page.url()).search, search, "the link contains the view");
      await page.waitForSelector(".rules .rule");
    }),
  );

  await runner.test("a file that the browser cannot read is reported and can be sent anyway", () =>
    withPage(browser, server, async (page) => {
      const whole = encodePprof({
        types: [["cpu", "nanoseconds"]],
        samples: [{ stack: ["a"], values: [1] }],
      });
      const cases = [
        [whole.subarray(0, whole.length - 9), "cannot be unpacked"],
        [gzipSync(gunzipSync(whole).subarray(0, 20)), "no preview of this file"],
        [Buffer.from('{"nodes":[]}'), "no preview of this file"],
        [Buffer.alloc(0), "is empty"],
        [
          Buffer.from('{"traceEvents":[]}'),
          "This is a Chrome trace; save the CPU profile alone, in Node with “node --cpu-prof”. " +
            "Supported formats: pprof",
        ],
        [
          Buffer.from("<!doctype html>\n"),
          "This is HTML, perhaps an error page that was saved. Supported formats: pprof",
        ],
        [Buffer.concat([whole, whole.subarray(0, 40)]), "cannot be unpacked"],
      ];
      for (const [bytes, words] of cases) {
        await page.goto(`${server.url}/`);
        await page.waitForSelector(".drop");
        await dropFiles(page, [{ name: "broken.pb.gz", bytes }]);
        await page.waitForSelector(`.preview-note >> text=${words}`);
        assert.ok(await page.isEnabled("text=Create link"));
        const isRefused = !words.startsWith("no preview");
        assert.equal(
          /may still be able to read/.test(await page.textContent(".preview-note")),
          false,
          words,
        );
        if (isRefused) {
          await dropFiles(page, [{ name: "whole.pb.gz", bytes: whole }]);
          await page.waitForSelector("button:disabled:has-text('Compare profiles')");
          await page.waitForSelector("button:disabled:has-text('Merge profiles')");
        }
      }
      await page.click(".ready >> text=Cancel");
      await dropFiles(page, [
        {
          name: "diff.folded.gz",
          bytes: gzipSync(Buffer.from("main;run 2 5")),
        },
      ]);
      await page.click(".preview-note >> text=Split it into before and after");
      await page.waitForSelector(
        ".preview-sides >> text=Before before-diff.folded · After after-diff.folded",
      );
      await viewReady(page);
      assert.equal(await page.textContent(".foot-total"), "2 → 5 in 2 functions");
      await page.click(".ready >> text=Cancel");
      await page.evaluate(() => {
        const data = new DataTransfer();
        data.setData("text/plain", "main;run 30");
        document.body.dispatchEvent(
          new ClipboardEvent("paste", {
            clipboardData: data,
            bubbles: true,
            cancelable: true,
          }),
        );
      });
      await viewReady(page);
      assert.equal(await page.textContent(".foot-total"), "30 in 2 functions");
      await page.click(".ready >> text=Cancel");
      await dropFiles(page, [{ name: "one.folded", bytes: Buffer.from("a;b 3") }]);
      await page.click("text=Create link");
      await page.waitForSelector(".done");
      await dropFiles(page, [{ name: "two.folded", bytes: Buffer.from("x;y 4\n") }]);
      await page.waitForSelector("text=Create link");
      assert.deepEqual(
        await page.$$eval(".ready .files li, .ready .file-name", (all) =>
          [...new Set(all.map((one) => one.textContent))].filter((text) =>
            text.includes("one.folded"),
          ),
        ),
        [],
        "after a link was created, another file starts with the default view",
      );
      await viewReady(page);
      assert.equal(await page.textContent(".foot-total"), "4 in 2 functions");
    }),
  );
}
