// Names that arrive while a page is open: the list of binaries without names, the commands to run,
// and the same page with functions.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import {
  axeFindings,
  screenshots,
  settled,
  soon,
  spoken,
  tableRows,
  messageShown,
  viewReady,
  withPage,
} from "./harness.mjs";
import { signedIn } from "./account.mjs";
import { encodeBinaries, encodePprof } from "./profiles.mjs";
import { program, root } from "./server.mjs";

const folder = join(process.env.PERFOLIO_SHARED ?? join(root, "../shared"), "data/symbolize");
const profileOf = (kind) => readFileSync(join(folder, `${kind}-cpu.stripped.pprof`));

/** Layout shifts without user input, from the start of the page. */
const watchShifts = (page) =>
  page.addInitScript(() => {
    globalThis.shifts = [];
    new PerformanceObserver((list) => {
      for (const { value, hadRecentInput, sources } of list.getEntries())
        if (!hadRecentInput)
          globalThis.shifts.push(
            [value, ...sources.map(({ node }) => node?.className ?? node?.nodeName)].join(" "),
          );
    }).observe({ type: "layout-shift", buffered: true });
  });
const shiftsOf = (page) =>
  page.evaluate(
    () =>
      new Promise((resolve) =>
        requestAnimationFrame(() => setTimeout(() => resolve(globalThis.shifts), 100)),
      ),
  );

/**
 * The symbol table of the profile's binary, created by the command line, and the binary's build id.
 */
function makeTable(buildIds) {
  const id = readdirSync(folder).find((name) => buildIds.includes(name));
  const made = mkdtempSync(join(tmpdir(), "perfolio-table-"));
  try {
    const table = join(made, "table");
    execFileSync(join(dirname(program), "perfolio-symbolize"), [
      "-q",
      "-o",
      table,
      join(folder, id, "debuginfo"),
    ]);
    return { id, bytes: readFileSync(table) };
  } finally {
    rmSync(made, { recursive: true });
  }
}

const lacksCompiler = ["/usr/bin/g++", "/usr/bin/nm"].every((path) => existsSync(path))
  ? ""
  : "g++ and nm are not installed";

/**
 * A program with a template function, its build id, its symbol table and an address in the
 * function.
 */
function makeProgram(id = "5eed" + "ab".repeat(18)) {
  const made = mkdtempSync(join(tmpdir(), "perfolio-program-"));
  try {
    const [source, elf, table] = ["app.cc", "app", "table"].map((name) => join(made, name));
    writeFileSync(
      source,
      "namespace shop { template <typename T> __attribute__((noinline)) T add(T x) { return x " +
        "* 3; } }\nint main(int count, char **) { return shop::add<int>(count); }\n",
    );
    execFileSync("/usr/bin/g++", [
      "-g",
      "-O1",
      "-no-pie",
      `-Wl,--build-id=0x${id}`,
      "-o",
      elf,
      source,
    ]);
    execFileSync(join(dirname(program), "perfolio-symbolize"), ["-q", "-o", table, elf]);
    const start = /^([0-9a-f]+) \w _ZN4shop3addIiEET_S1_$/m.exec(
      execFileSync("/usr/bin/nm", [elf], { encoding: "utf8" }),
    )[1];
    // The program has a fixed address; the profile's mapping starts at offset 0 of the file.
    return {
      id,
      table: readFileSync(table),
      address: parseInt(start, 16) - 0x400000,
    };
  } finally {
    rmSync(made, { recursive: true });
  }
}

/** A program with many functions, its symbol table and an address in each. */
function makeManyFunctions(id, count) {
  const made = mkdtempSync(join(tmpdir(), "perfolio-program-"));
  try {
    const [source, elf, table] = ["app.c", "app", "table"].map((name) => join(made, name));
    const functions = Array.from({ length: count }, (_, i) => `f${i}_of_many`);
    const bodies = functions.map(
      (name, i) => `__attribute__((noinline)) int ${name}(int x) { return x * ${i + 3}; }`,
    );
    writeFileSync(
      source,
      `${bodies.join("\n")}\nint main(int count, char **) { return ` +
        `${functions.map((name) => `${name}(count)`).join(" + ")}; }\n`,
    );
    execFileSync("/usr/bin/g++", [
      "-x",
      "c++",
      "-g",
      "-O1",
      "-fno-ipa-icf",
      "-no-pie",
      `-Wl,--build-id=0x${id}`,
      "-o",
      elf,
      source,
    ]);
    execFileSync(join(dirname(program), "perfolio-symbolize"), ["-q", "-o", table, elf]);
    const starts = [
      ...execFileSync("/usr/bin/nm", [elf], { encoding: "utf8" }).matchAll(
        /^([0-9a-f]+) \w _Z\d+f\d+_of_manyi$/gm,
      ),
    ];
    return {
      id,
      table: readFileSync(table),
      addresses: starts.map(([, start]) => parseInt(start, 16) - 0x400000),
    };
  } finally {
    rmSync(made, { recursive: true });
  }
}

/** The hash of a path of names, as in web/src/model/tree/path.ts. */
function pathHash(...names) {
  const mix = (parent, name) => {
    let hash = (parent ^ (((name << 5) | (name >>> 27)) + 0x9e3779b9)) | 0;
    hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
    return hash ^ (hash >>> 16);
  };
  const half = (base) =>
    names.reduce(
      (path, name) =>
        mix(
          path,
          Buffer.from(name).reduce((hash, byte) => Math.imul(hash ^ byte, 0x01000193), base | 0),
        ),
      0,
    );
  return [0x811c9dc5, 0x9747b28c]
    .map((base) => (half(base) >>> 0).toString(16).padStart(8, "0"))
    .join("");
}

export async function testSymbols(runner, browser, server) {
  if (!existsSync(folder)) return runner.test("symbols", () => undefined, `${folder} is not there`);
  const { token } = server;
  const sendTable = async ({ id, bytes }) => {
    const response = await server.call("POST", `/api/v1/debuginfo/${id}/table`, {
      body: bytes,
      token,
    });
    assert.ok(response.status < 300, JSON.stringify(response.json));
  };
  const shareOf = async (kind) => {
    const share = await server.share(profileOf(kind), { title: kind });
    return {
      ...share,
      ...(await server.call("GET", `/api/v1/shares/${share.id}`)).json,
    };
  };
  await runner.test(
    "symbols: an open page lists binaries without names and shows names once they arrive",
    () =>
      withPage(browser, server, async (page) => {
        const share = await shareOf("normal");
        await watchShifts(page);
        await page.goto(`${server.url}/p/${share.id}?v=table&sv=2`);
        await page.click(".missing-names summary:has-text('1 binary without names')");
        assert.match(await page.textContent(".missing-names li"), /^pprof-example-app-go \w.+ \w/);
        assert.match(
          await page.textContent(".missing-names .copy-field code"),
          /^perfolio debuginfo upload \/home\/\S+\/pprof-example-app-go$/,
        );
        await page.waitForSelector("text=/^pprof-example-app-go\\+0x/");
        assert.deepEqual(await shiftsOf(page), []);
        const places = await page.evaluate(() =>
          [".viewer", ".viewer-foot"].map(
            (name) => document.querySelector(name).getBoundingClientRect().top,
          ),
        );
        await sendTable(makeTable(share.build_ids));
        await page.waitForSelector("text=math/big.addVV");
        await soon(async () => assert.equal(await page.$(".missing-names"), null));
        assert.equal(await page.$("text=/^pprof-example-app-go\\+0x/"), null);
        await page.waitForSelector(".names-line:has-text('All binaries have names.')");
        const [top, bottom] = await page.evaluate(() =>
          [".viewer", ".viewer-foot"].map(
            (name) => document.querySelector(name).getBoundingClientRect().top,
          ),
        );
        assert.deepEqual([top, bottom], places, "elements around the table keep their position");
      }),
  );

  await runner.test("symbols: the line about missing names causes no layout shift", async () => {
    const share = await shareOf("stripped");
    for (const look of ["light", "phone"])
      for (const path of [`/p/${share.id}`, `/d/${share.id}..${share.id}`])
        await withPage(
          browser,
          server,
          async (page) => {
            await watchShifts(page);
            await page.route(/missing_names|\/symbolization/, async (route) => {
              await new Promise((resolve) => setTimeout(resolve, 700));
              await route.continue();
            });
            // The metadata of the shares arrives after the page, the tree after that, and the
            // names' line after the tree.
            let showShares;
            const isDrawn = new Promise((resolve) => (showShares = resolve));
            await page.route(
              /\/api\/v1\/shares\/\w{22}$/,
              async (route) => (await isDrawn, route.continue()),
            );
            await page.route(/\/api\/v1\/(diff|shares\/[^/]+\/flame)\b/, async (route) => {
              await isDrawn;
              await new Promise((resolve) => setTimeout(resolve, 400));
              await route.continue();
            });
            const responded = page.waitForResponse(/\/symbolization/);
            await page.goto(server.url + path);
            await page.waitForSelector(".ghost");
            await settled(page);
            const topOfTools = () =>
              page.$eval(".profile-tools", (tools) => tools.getBoundingClientRect().top);
            // on the page of one share, the tools appear with it
            const drawnAt = path.startsWith("/d/") ? await topOfTools() : null;
            showShares();
            await viewReady(page);
            if (drawnAt !== null)
              assert.ok(
                Math.abs((await topOfTools()) - drawnAt) < 1,
                `${look}: from ${drawnAt} to ${await topOfTools()}`,
              );
            await page.waitForSelector(".missing-names summary");
            await responded;
            assert.deepEqual(await shiftsOf(page), [], `${look} ${path}`);
            const top = () => page.$eval(".viewer", (viewer) => viewer.getBoundingClientRect().top);
            const before = await top();
            await page.click(".missing-names summary");
            assert.equal(await top(), before, "it opens over the content below");
            const box = await page.locator(".missing-names > div").boundingBox();
            assert.ok(
              box.x >= 0 && box.x + box.width <= page.viewportSize().width,
              JSON.stringify(box),
            );
            assert.deepEqual(await axeFindings(page), []);
            await page.screenshot({
              path: join(screenshots, `missing-names-${look}-${path[1]}.png`),
            });
            await page.keyboard.press("Escape");
            assert.equal(await page.isVisible(".missing-names > div"), false);
          },
          { look, bypassCSP: true },
        );
  });

  await runner.test(
    "symbols: a comparison lists binaries without names once, and shows names once they arrive",
    () =>
      withPage(browser, server, async (page) => {
        const share = await shareOf("inlining-disabled");
        const other = await shareOf("inlining-disabled");
        await page.goto(`${server.url}/d/${share.id}..${other.id}?v=table&sv=2`);
        await viewReady(page);
        await page.click(".missing-names summary:has-text('1 binary without names')");
        assert.match(
          await page.textContent(".missing-names .copy-field code"),
          /^perfolio debuginfo upload \//,
        );
        // As shown, and as copied by hand.
        assert.match(
          await page.innerText(".missing-names .copy-field code"),
          /^perfolio debuginfo upload \//,
        );
        await page.waitForSelector(".rows >> text=/^pprof-example-app-go-inlining-disabled\\+0x/");
        await sendTable(makeTable(share.build_ids));
        await page.waitForSelector(".rows >> text=math/big.");
        await page.waitForSelector(".names-line:has-text('All binaries have names.')");
      }),
  );

  await runner.test(
    "symbols: the view chooses the form of names in every count, and the link contains it",
    async () => {
      const { id, table, address } = makeProgram();
      const body = encodePprof({
        types: [["samples", "count"]],
        samples: [
          { stack: ["main", address], values: [5], labels: { thread: "io" } },
          { stack: ["main", 0x9], values: [3] },
        ],
        binary: "/usr/bin/app",
        buildId: id,
      });
      const share = await server.share(body, { title: "Names" });
      await sendTable({ id, bytes: table });
      const words = {
        simple: "shop::add",
        full: "int shop::add<int>(int)",
        none: "_ZN4shop3addIiEET_S1_",
      };
      await withPage(browser, server, async (page) => {
        const shown = async (name) => {
          await viewReady(page);
          await soon(async () =>
            assert.ok(
              (await tableRows(page)).some((row) => row.at(-1) === name),
              `${name}: ${JSON.stringify(await tableRows(page))}`,
            ),
          );
        };
        for (const path of [`/p/${share.id}`, `/d/${share.id}..${share.id}`]) {
          await page.goto(`${server.url}${path}?v=table&sv=2`);
          await soon(
            async () => (
              await page.reload(),
              await viewReady(page),
              assert.ok((await tableRows(page)).some((row) => row.at(-1) === words.simple))
            ),
          );
          await page.click("button:has-text('Filter')");
          for (const [label, mode] of [
            ["Full", "full"],
            ["Mangled", "none"],
            ["Simple", "simple"],
          ]) {
            await page.click(`[aria-label=Names] button:has-text('${label}')`);
            await page.waitForFunction(
              (mode) => (new URL(location.href).searchParams.get("names") ?? "simple") === mode,
              mode,
            );
            await shown(words[mode]);
          }
          await page.goto(`${server.url}${path}?v=table&names=full&sv=2`);
          await shown(words.full);
        }
        await page.goto(
          `${server.url}/p/${share.id}?v=labels&names=full&x=focus%3A%5C%28int%5C%29&sv=2`,
        );
        await page.waitForSelector(".label-section >> text=io");
      });
      // A frame without a name is identified by its offset in the file, and by a sign.
      await withPage(browser, server, async (page) => {
        await page.goto(`${server.url}/p/${share.id}?sv=2`);
        await viewReady(page);
        await page.waitForSelector(".legend .sign.symbols");
        await page.focus(".icicle");
        for (const key of ["ArrowDown", "ArrowDown", "ArrowRight"]) await page.keyboard.press(key);
        assert.match(await spoken(page), /^app\+0x9, /);
        assert.match(await page.textContent(".detail-place"), /no symbols/);
      });
    },
    lacksCompiler,
  );

  await runner.test(
    "symbols: zoom and mark survive other names and groupings, and losses are reported",
    async () => {
      const { id, table, address } = makeProgram("7a3e" + "5c".repeat(18));
      const samples = [
        {
          stack: ["main", address, "inner"],
          values: [5],
          labels: { thread: "io" },
        },
        {
          stack: ["main", address + 1, "inner"],
          values: [2],
          labels: { thread: "io" },
        },
        { stack: ["main", "other"], values: [3], labels: { thread: "cpu" } },
      ];
      const share = await server.share(
        encodePprof({
          types: [["samples", "count"]],
          samples,
          binary: "/usr/bin/app",
          buildId: id,
        }),
        { title: "Carried" },
      );
      await sendTable({ id, bytes: table });
      const words = {
        simple: "shop::add",
        full: "int shop::add<int>(int)",
        none: "_ZN4shop3addIiEET_S1_",
      };
      for (const look of ["light", "dark", "phone"])
        for (const path of [`/p/${share.id}`, `/d/${share.id}..${share.id}`])
          await withPage(
            browser,
            server,
            async (page) => {
              const at = () => new URL(page.url()).searchParams;
              const opened = async () => {
                await page.goto(`${server.url}${path}?sv=2&q=%5Eshop::add%24`);
                await viewReady(page);
                await page.waitForSelector(".search-result:has-text('1 function')", {
                  timeout: 3000,
                });
              };
              await soon(opened);
              await page.focus(".icicle");
              for (const key of ["n", "l"]) await page.keyboard.press(key);
              await page.waitForFunction(
                () => new URL(location.href).searchParams.get("m") === "shop::add",
              );
              const zoom = at().get("z");
              assert.ok(zoom);
              /** Waits until the zoomed and marked function have this name. */
              const zoomAndMarkAre = async (name, marked = name) => {
                await page.waitForFunction(
                  (marked) => new URL(location.href).searchParams.get("m") === marked,
                  marked,
                );
                await viewReady(page);
                await page.focus(".icicle");
                await soon(async () =>
                  assert.ok(
                    (await spoken(page)).startsWith(`${name}, `),
                    `${name}: ${await spoken(page)}`,
                  ),
                );
                await soon(() => assert.ok(at().get("z"), "a zoom"));
              };
              const setNames = async (label) => {
                if (!(await page.isVisible("[aria-label=Names]")))
                  await page.click("button:has-text('Filter')");
                await page.click(`[aria-label=Names] button:has-text('${label}')`);
                await page.keyboard.press("Escape");
              };
              if (look === "phone") await page.click(".fold-button");
              else
                for (const [label, mode] of [
                  ["Full", "full"],
                  ["Mangled", "none"],
                  ["Simple", "simple"],
                ]) {
                  await setNames(label);
                  await zoomAndMarkAre(words[mode]);
                }
              assert.equal(at().get("z"), zoom, "the zoom is restored");
              // By key through all groupings: by line and address, the function is two frames, and
              // the larger one is shown.
              await page.focus(".icicle");
              await page.keyboard.press("g");
              await page.waitForFunction(
                () => new URL(location.href).searchParams.get("g") === "file",
              );
              await soon(() => assert.ok(at().get("z")));
              await page.selectOption("select[aria-label=Group]", "address");
              await messageShown(
                page,
                "“shop::add” is 2 frames here; the largest is shown. “shop::add” has 2 names " +
                  "here; “0x",
              );
              await page.screenshot({
                path: join(screenshots, `regrouped-${look}-${path[1]}.png`),
              });
              assert.match(at().get("m"), /^0x[0-9a-f]+ shop::add$/);
              await page.selectOption("select[aria-label=Group]", "binary");
              await page.waitForFunction(
                () => new URL(location.href).searchParams.get("m") === "app",
              );
              await page.selectOption("select[aria-label=Group]", "label:thread");
              await page.waitForFunction(
                () => new URL(location.href).searchParams.get("m") === "shop::add",
              );
              await page.selectOption("select[aria-label=Group]", "function");
              await zoomAndMarkAre(words.simple);
              assert.equal(at().get("z"), zoom);
              assert.equal(at().get("g"), null);
              // A frame that does not exist in another grouping: the value of a label.
              await page.goto(`${server.url}${path}?g=label:thread&sv=2&q=%5Ecpu%24`);
              await viewReady(page);
              await page.focus(".icicle");
              await page.keyboard.press("n");
              await page.waitForFunction(() => new URL(location.href).searchParams.has("z"));
              if (look === "phone") await page.click(".fold-button");
              await page.selectOption("select[aria-label=Group]", "function");
              await messageShown(page, "“cpu” is not in this tree, so all of it is shown.");
            },
            { look },
          );
    },
    lacksCompiler,
  );

  await runner.test(
    "symbols: binaries beyond the response's limit are not reported as complete",
    () =>
      withPage(browser, server, async (page) => {
        const body = encodeBinaries(
          Array.from({ length: 300 }, (_, i) => ({
            file: `/opt/many${i}`,
            buildId: (0xabc000 + i).toString(16).repeat(6),
          })),
        );
        const share = await server.share(body, { title: "Many" });
        await page.goto(`${server.url}/p/${share.id}?sv=2`);
        await viewReady(page);
        await page.click(".missing-names summary:has-text('256 binaries without names')");
        await page.waitForSelector(
          ".missing-names p:has-text('44 more binaries are not listed here')",
        );
        // One cause is one row, however many binaries it lists.
        assert.equal(await page.locator(".missing-names > div > ul > li").count(), 1);
        assert.match(
          await page.innerText(".missing-names > div > ul > li"),
          /^256 binaries \w.+\nmany0, many1, many2, many3, …$/,
        );
        await page.click(".missing-names li summary");
        assert.equal(await page.locator(".missing-names li li").count(), 256);
        // The page then gets a response in which all listed binaries have names.
        await page.route("**/symbolization", async (route) => {
          const { generation } = await (await route.fetch()).json();
          await route.fulfill({
            json: {
              generation: generation + 1,
              complete: false,
              pending: [],
              missing: [],
              unlisted: 44,
            },
          });
        });
        await page.waitForSelector(
          ".names-line:has-text('44 more binaries are not listed here and may lack names. All " +
            "other binaries have names.')",
        );
        assert.equal(await page.$(".names-line:has-text('All binaries have names')"), null);
      }),
  );

  await runner.test("symbols: a cause shows the time of the next retry", () =>
    withPage(browser, server, async (page) => {
      // A separate binary, because other tests upload the symbol tables of theirs.
      const share = await server.share(
        encodeBinaries([{ file: "/opt/nextTry", buildId: "0e97".repeat(10) }]),
        { title: "Next try" },
      );
      let next = new Date(Date.now() + 1000 * 86_400_000).toISOString();
      await page.route("**/symbolization", (route) => {
        const missing = [1, 2, 3].map((i) => ({
          build_id: `${i}`.repeat(40),
          file: `/lib/lib${i}.so`,
          reason: "debuginfod.test cannot be reached",
          next_retry: next,
        }));
        return route.fulfill({
          json: { generation: 7, complete: false, pending: [], missing },
        });
      });
      const row = async (pattern) => {
        await page.goto(`${server.url}/p/${share.id}?sv=2`);
        await page.click(".missing-names summary:has-text('3 binaries without names')");
        assert.match(await page.innerText(".missing-names > div > ul > li"), pattern);
      };
      await row(
        /^3 binaries debuginfod\.test cannot be reached; next try \d+ \w{3} \d{4}, \d\d:\d\d\nlib1\.so, lib2\.so, lib3\.so$/,
      );
      next = new Date(Date.now() - 1000).toISOString();
      await row(/; next try in a moment\n/);
    }),
  );

  await runner.test(
    "symbols: a link from before symbolization finds its frame, function and stacks",
    async () => {
      const { id, table, address } = makeProgram("01d1" + "cd".repeat(18));
      const samples = [
        { stack: ["main", 0x9, address], values: [5] },
        { stack: ["main", 0x9, address + 1], values: [3] },
        { stack: ["main", address, 0x9], values: [2] },
      ];
      const share = await server.share(
        encodePprof({
          types: [["samples", "count"]],
          samples,
          binary: "/usr/bin/app",
          buildId: id,
        }),
        { title: "Old" },
      );
      const raw = (at) => `app+0x${at.toString(16)}`;
      const literal = (at) => raw(at).replace("+", "\\+");
      const paths = [`/p/${share.id}`, `/d/${share.id}..${share.id}`];
      // Created on the page like a reader does: zoomed to the leaf with value 5.
      const zooms = [];
      for (const path of paths)
        await withPage(browser, server, async (page) => {
          await page.goto(
            `${server.url}${path}?sv=2&q=${encodeURIComponent(`^${literal(address)}$`)}`,
          );
          await viewReady(page);
          await page.keyboard.press("n");
          await page.waitForFunction(() => new URL(location.href).searchParams.has("z"));
          assert.match(await spoken(page), new RegExp(`^app\\+0x${address.toString(16)}, `));
          zooms.push(new URL(page.url()).searchParams.get("z"));
        });
      await sendTable({ id, bytes: table });
      for (const [i, path] of paths.entries())
        await withPage(browser, server, async (page) => {
          const named = async () => {
            await page.goto(`${server.url}${path}?v=table&sv=2`);
            await viewReady(page);
            assert.ok((await tableRows(page)).some((row) => row.at(-1) === "shop::add"));
          };
          await soon(named);
          const at = (parameters) =>
            page.goto(`${server.url}${path}?${new URLSearchParams({ ...parameters, sv: "2" })}`);
          const left = async () => (await page.textContent(".rules-end")).trim();
          // The zoom, also with a rule of the page.
          for (const x of ["", "merge:^nothing$"]) {
            await at({ z: zooms[i], w: "0.25-0.75", ...(x && { x }) });
            await page.waitForFunction(
              (old) => ![null, old].includes(new URL(location.href).searchParams.get("z")),
              zooms[i],
            );
            await viewReady(page);
            assert.equal(
              new URL(page.url()).searchParams.get("w"),
              "0.25-0.75",
              "the visible part",
            );
            await page.focus(".icicle");
            await soon(async () => assert.match(await spoken(page), /^shop::add, /));
            assert.equal(await page.$("text=is not in this tree"), null);
            // The path is searched once, not whenever the pointer moves.
            await page.evaluate(() => {
              window.looks = 0;
              const { subarray } = Uint8Array.prototype;
              Uint8Array.prototype.subarray = function (...range) {
                window.looks++;
                return subarray.apply(this, range);
              };
            });
            const { x: left, y: top } = await page.locator(".icicle").first().boundingBox();
            for (const row of [2, 1]) {
              await page.mouse.move(left + 300, top + 22 * row + 8);
              await page.waitForSelector(".tip:not([hidden])");
            }
            assert.equal(await page.evaluate(() => window.looks), 0);
          }
          // Rules: the server's own, and those that only the page applies, which know functions.
          await at({ x: `focus:^${literal(address + 1)}$` });
          await soon(async () => assert.match(await left(), i ? /30\.0% → 30\.0%/ : /30\.0%/));
          await at({ x: `ignore:^${literal(address + 1)}$` });
          await soon(async () => assert.match(await left(), i ? /70\.0% → 70\.0%/ : /70\.0%/));
          await at({ x: `merge:^${literal(address)}$`, v: "table" });
          await soon(async () => {
            await viewReady(page);
            const row = (await tableRows(page)).find((row) => row.at(-1) === "shop::add");
            assert.ok(
              row?.some((cell) => cell.startsWith("10")),
              JSON.stringify(row),
            ); // flat: the values of its callees are its own now
          });
          // The search and the marked function.
          await at({ q: `^${literal(address)}$` });
          await page.waitForSelector(".search-result:has-text('1 function')");
          await at({ m: raw(address), v: "sandwich" });
          await page.waitForFunction(
            () => new URL(location.href).searchParams.get("m") === "shop::add",
          );
          // The visible part of the halves, by the function's former and current name.
          for (const [m, function_] of [
            [raw(address), raw(address)],
            ["shop::add", raw(address)],
            ["main", "main"],
          ]) {
            const za = pathHash(function_, ...(m === "main" ? [] : ["app+0x9", "main"]));
            const zb =
              m === "main"
                ? pathHash("main", raw(address), "app+0x9")
                : pathHash(function_, "app+0x9");
            await at({
              m,
              v: "sandwich",
              za: `${za}:0.25-0.75`,
              zb: `${zb}:0-0.5`,
            });
            const called = m === "main" ? "main" : "shop::add";
            const now = [
              pathHash(called, ...(m === "main" ? [] : ["app+0x9", "main"])),
              m === "main" ? pathHash("main", "shop::add", "app+0x9") : pathHash(called, "app+0x9"),
            ];
            await page.waitForFunction(
              ([za, zb, m]) => {
                const at = new URL(location.href).searchParams;
                return (
                  at.get("za") === `${za}:0.25-0.75` &&
                  at.get("zb") === `${zb}:0-0.5` &&
                  at.get("m") === m
                );
              },
              [...now, called],
            );
          }
        });
    },
    lacksCompiler,
  );

  await runner.test(
    "symbols: the page reports that an old expression has more names than are searched",
    async () => {
      const count = 101;
      const { id, table, addresses } = makeManyFunctions("3a9e" + "ef".repeat(18), count);
      const share = await server.share(
        encodePprof({
          types: [["samples", "count"]],
          samples: addresses.map((address) => ({
            stack: ["main", address],
            values: [1],
          })),
          binary: "/usr/bin/app",
          buildId: id,
        }),
        { title: "Many functions" },
      );
      await sendTable({ id, bytes: table });
      await withPage(browser, server, async (page) => {
        const note =
          ".viewer-foot >> text=Only the first 100 functions that the link names by their " +
          "former names are shown.";
        await soon(async () => {
          await page.goto(`${server.url}/p/${share.id}?sv=2&q=app%5C%2B0x`);
          await viewReady(page);
          await page.waitForSelector(note, { timeout: 5000 });
        });
        await page.waitForSelector(".search-result:has-text('100 functions')");
        await page.screenshot({ path: join(screenshots, "renamed-cut.png") });
        await page.goto(
          `${server.url}/p/${share.id}?sv=2&q=app%5C%2B0x${addresses[0].toString(16)}%24`,
        );
        await viewReady(page);
        await page.waitForSelector(".search-result:has-text('1 function')");
        assert.equal(await page.$(note), null);
      });
    },
    lacksCompiler,
  );

  await runner.test(
    "symbols: Explore lists binaries without names, also in a comparison",
    async () => {
      const minute = 60_000;
      const begin = Math.floor(Date.now() / minute) * minute - 20 * minute;
      const kind = "without-dwarf";
      const path =
        "/api/v1/profiles?name=process_cpu&label=service_name%3Dunnamed&time=" + begin / 1000;
      const sent = await server.call("POST", path, {
        body: profileOf(kind),
        token,
      });
      assert.equal(sent.status, 200, `${sent.bytes}`);
      const { build_ids: ids } = await shareOf(kind);
      const context = await signedIn(browser, server);
      const window = {
        from: String(begin - minute),
        to: String(begin + minute),
      };
      const query = 'process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name="unnamed"}';
      await withPage(
        browser,
        server,
        async (page) => {
          await watchShifts(page);
          const one = {
            ev: "1",
            query,
            from: window.from,
            until: window.to,
            v: "table",
          };
          const openAt = async (parameters) => {
            await page.goto(`${server.url}/explore?${new URLSearchParams(parameters)}`);
            await page.waitForSelector(".missing-names summary:has-text('1 binary without names')");
          };
          await openAt({
            ...one,
            aquery: query,
            afrom: window.from,
            auntil: window.to,
          });
          const responded = page.waitForResponse(/\/api\/v1\/symbolization\?build_id=/);
          await openAt(one);
          await responded;
          const shifts = (await shiftsOf(page)).filter((one) =>
            /viewer|views|pane|made|names/.test(one),
          );
          assert.deepEqual(shifts, []);
          await page.click(".missing-names summary");
          assert.match(
            await page.textContent(".missing-names .copy-field code"),
            /^perfolio debuginfo upload \//,
          );
          await page.screenshot({
            path: join(screenshots, "missing-names-explore.png"),
          });
          await sendTable(makeTable(ids));
          await page.waitForSelector(".rows >> text=math/big.");
          await soon(async () => assert.equal(await page.$(".missing-names"), null));
        },
        { context },
      );
      await context.close();
    },
  );

  const wanted = "symbols: files link to the team's repository by its rules, for permitted readers";
  if (!runner.wants(wanted)) return;
  const context = await signedIn(browser, server);
  await runner.test(wanted, async () => {
    const share = await shareOf("normal");
    await sendTable(makeTable(share.build_ids));
    const view = `${server.url}/p/${share.id}?v=table&sv=2&co=flat,file`;
    await withPage(
      browser,
      server,
      async (page, watch) => {
        watch.allowed.add(400);
        await page.goto(`${server.url}/settings#source`);
        await page.fill("#source [placeholder^='https://']", "javascript:alert(1)//{path}");
        await page.click("#source button:has-text('Add link')");
        await page.waitForSelector("#source .error-line:has-text('https://')");
        await page.fill(
          "#source [placeholder^='https://']",
          "https://git.example.com/go/blob/{revision}/{path}#L{line}",
        );
        await page.fill("#source [placeholder='/build/shop/']", "/");
        await page.fill("#source [placeholder='main']", "go1.17");
        await page.click("#source button:has-text('Add link')");
        await page.waitForSelector("#source .rows-list code:has-text('git.example.com')");
        assert.deepEqual(await axeFindings(page), []);
        await page.screenshot({
          path: join(screenshots, "settings-source.png"),
        });
        await page.goto(view);
        const link = await page.waitForSelector(".table a.source-link");
        const [href, target, rel] = await Promise.all(
          ["href", "target", "rel"].map((name) => link.getAttribute(name)),
        );
        assert.match(href, /^https:\/\/git\.example\.com\/go\/blob\/go1\.17\/[\w./%@-]+(#L\d+)?$/);
        assert.deepEqual([target, rel], ["_blank", "noopener noreferrer"]);
        await page.screenshot({ path: join(screenshots, "source-links.png") });
        await page.goto(`${server.url}/p/${share.id}?v=peek&sv=2&m=math/big.addVV`);
        await page.waitForSelector(".peek-self a.source-link");
        await page.goto(`${server.url}/p/${share.id}?sv=2&q=addVV`);
        await page.waitForSelector(".icicle canvas");
        await page.keyboard.press("n");
        await page.waitForSelector(".detail a.source-link");
        assert.deepEqual(await axeFindings(page), []);
      },
      { context },
    );
    // In a comparison, each frame links to a side that contains it.
    const other = await server.share(Buffer.from("main;after 5\n"), {
      title: "after",
    });
    for (const [before, after, place] of [
      [share, other, "before"],
      [other, share, "after"],
    ])
      await withPage(
        browser,
        server,
        async (page) => {
          await page.route("**/source-links", (route) => {
            const side = route.request().url().includes(before.id) ? "before" : "after";
            return route.fulfill({
              json: {
                links: [
                  {
                    binaries: null,
                    path_prefix: "/",
                    url: `https://git.example.com/${side}/{path}`,
                  },
                ],
              },
            });
          });
          // Also in a frame of another site.
          for (const path of ["/d/", "/embed/"]) {
            await page.goto(
              `${server.url}${path}${before.id}..${after.id}?v=peek&sv=2&m=math/big.addVV`,
            );
            const link = await page.waitForSelector(".peek-self a.source-link");
            assert.ok(
              (await link.getAttribute("href")).startsWith(`https://git.example.com/${place}/`),
            );
          }
        },
        { context },
      );
    // Continuous profiles: rules for a build id apply to the binaries that have it.
    const minute = 60_000;
    const begin = Math.floor(Date.now() / minute) * minute - 40 * minute;
    const path =
      "/api/v1/profiles?name=process_cpu&label=service_name%3Dsourced&time=" + begin / 1000;
    assert.equal(
      (await server.call("POST", path, { body: profileOf("normal"), token })).status,
      200,
    );
    const rule = (fields) =>
      server.call("POST", "/api/v1/source-links", {
        token,
        body: {
          path_prefix: "/",
          revision: "",
          audience: "team",
          label: "",
          ...fields,
        },
      });
    const pattern = `${share.build_ids[0].slice(0, 6)}*`;
    const added = [
      await rule({
        url: "https://other.example.com/{path}",
        build_id: "0123456789*",
      }),
      await rule({
        url: "https://build.example.com/{path}",
        build_id: pattern,
      }),
    ];
    assert.deepEqual(
      added.map(({ status }) => status),
      [200, 200],
    );
    await withPage(
      browser,
      server,
      async (page) => {
        const query = 'process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name="sourced"}';
        const one = {
          ev: "1",
          query,
          from: String(begin - minute),
          until: String(begin + minute),
          v: "table",
          co: "flat,file",
        };
        for (const more of [{}, { aquery: query, afrom: one.from, auntil: one.until }]) {
          await page.goto(`${server.url}/explore?${new URLSearchParams({ ...one, ...more })}`);
          const link = await page.waitForSelector(".table a.source-link");
          assert.match(await link.getAttribute("href"), /^https:\/\/build\.example\.com\//);
        }
        await page.screenshot({
          path: join(screenshots, "source-links-explore.png"),
        });
      },
      { context },
    );
    for (const { json } of added)
      await server.call("DELETE", `/api/v1/source-links/${json.id}`, { token });
    await withPage(
      browser,
      server,
      async (page) => {
        await page.goto(view.replace("/p/", "/embed/"));
        await page.waitForSelector(".table a.source-link");
      },
      { context },
    );
    await withPage(browser, server, async (page) => {
      await page.goto(view);
      await page.waitForSelector(".table .cell.place:has-text('.go')");
      await page.waitForLoadState("networkidle");
      assert.equal(await page.$("a.source-link"), null);
    });
  });
}
