// Links: the link of any view, opened elsewhere, shows the same picture and the same texts.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";
import { looks, setInPlace, viewReady, withPage } from "./harness.mjs";
import { cpuProfile, cpuSamples, labelledProfile } from "./profiles.mjs";
import { root } from "./server.mjs";

const { build } = createRequire(join(root, "web/package.json"))("esbuild");

/** The number of random links that are parsed and formatted again. */
const addresses = 500;
/**
 * The number of random links that are opened, which takes a second each. Before a release:
 * PERFOLIO_ROUND_TRIPS=500.
 */
const rounds = Number(process.env.PERFOLIO_ROUND_TRIPS ?? 16);

let seed = 7;
const random = (below) => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) % below;
const pick = (values) => values[random(values.length)];
const often = (share, value) => (random(100) < share ? value : "");

/** The hash of a path from the root, as in web/src/model/tree/path.ts. */
function pathHash(...names) {
  const half = (base) =>
    names.reduce((above, name) => {
      let hash = base;
      for (const byte of Buffer.from(name)) hash = Math.imul(hash ^ byte, 0x01000193);
      hash = above ^ (((hash << 5) | (hash >>> 27)) + 0x9e3779b9);
      hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
      hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
      return hash ^ (hash >>> 16);
    }, 0);
  return [0x811c9dc5, 0x9747b28c]
    .map((base) => (half(base) >>> 0).toString(16).padStart(8, "0"))
    .join("");
}

/** The query of a random link, with the parameters that web/src/view_state.ts reads. */
function randomQuery(names, stacks, isDiff) {
  const views = [
    "icicle",
    "flame",
    "table",
    "sandwich",
    "icicle",
    "flame",
    "table",
    "sandwich",
    "graph",
    "peek",
    "labels",
    "comments",
  ];
  const view = pick(views);
  const rule = () =>
    pick([
      `focus:^${pick(names)}$`,
      "hide:runtime",
      "ignore:json",
      "~hide:main",
      "only:go",
      `merge:${pick(names)}`,
      "recursion:.",
      "show:main|json|http",
    ]);
  const from = random(80);
  /** In hundredths, like the page: 0.17 + 0.14 has too many digits for a link. */
  const part = () => `${from / 100}-${(from + 1 + random(19)) / 100}`;
  const marked = often(view === "sandwich" ? 80 : 40, pick(names));
  const half = () => often(60, marked && `${pathHash(marked.replaceAll("\\", ""))}:${part()}`);
  const columns = isDiff
    ? ["before,cum", "flatbefore,flat,flatchange", "change,file"]
    : ["flat", "cum,file,binary", "flat,cum,file"];
  const stack = pick(stacks);
  const depth = 1 + random(stack.length);
  const settings = {
    v: view === "icicle" ? "" : view,
    b: often(50, pick(views.filter((other) => other !== view))),
    st: often(50, pick(["samples", "cpu"])),
    q: often(30, pick(["json", "^main", "runtime|sort", "nothing at all", "("])),
    m: marked.replaceAll("\\", ""),
    za: half(),
    zb: half(),
    w: often(30, part()),
    g: often(20, pick(["file", "line", "binary", "address", "label:thread"])),
    c: isDiff ? "" : often(40, pick(["binary", "runtime", "value"])),
    names: often(20, pick(["full", "none"])),
    norm: isDiff ? often(40, "1") : "",
    p: often(30, "filtered"),
    x: often(40, [rule(), ...(random(2) ? [rule()] : [])].join("~")),
    s: often(30, pick(["-cum", "flat", "name", "-name"])),
    co: often(20, pick(columns)),
    gn: often(20, pick(["20", "40", "150"])),
    lb: often(20, pick(["thread=io", "endpoint!=/health", "bytes!=", "thread=no such thread"])),
  };
  // A path is one of the tree by function without rules. In other trees such a zoom finds no frame,
  // and where the cursor then stays depends on the former zoom, which no link contains.
  if (!settings.g && !settings.x && !settings.lb)
    settings.z = often(60, pathHash(...stack.slice(0, depth)));
  settings.root = often(15, pathHash(...stack.slice(0, 1 + random(depth))));
  return new URLSearchParams(
    Object.entries(settings).filter(([, value]) => value !== ""),
  ).toString();
}

/** Everything visible: texts, pressed boxes, scroll positions, and every pixel of the canvases. */
async function lookOf(page) {
  await viewReady(page);
  return page.evaluate(async () => {
    /** Size and FNV-1a of all pixels: a PNG of every canvas would take most of this test's time. */
    const pixels = (canvas) => {
      if (!canvas.width || !canvas.height) return "empty";
      const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", {
        willReadFrequently: true,
      });
      copy.drawImage(canvas, 0, 0);
      const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
      let hash = 0x811c9dc5;
      for (const colour of new Uint32Array(data.buffer))
        hash = Math.imul(hash ^ colour, 0x01000193);
      return `${canvas.width}x${canvas.height} ${hash >>> 0}`;
    };
    const view = () => {
      const root = document.querySelector(".viewer");
      const pictures = [...root.querySelectorAll("canvas")].map(pixels);
      const pressed = [...root.querySelectorAll("[aria-pressed=true], option:checked")].map(
        (one) => one.textContent,
      );
      const scrolled = [...root.querySelectorAll(".icicle, .rows")].map((one) => one.scrollTop);
      return {
        words: root.innerText,
        pressed: pressed.join("|"),
        scrolled: scrolled.join(),
        pictures,
      };
    };
    // The legend and the minimap appear slightly later, labels and graphs when they are counted:
    // repeats until two looks are equal.
    let last = "";
    for (;;) {
      while (document.querySelector(".viewer [aria-busy=true]:not(form)"))
        await new Promise((resolve) => setTimeout(resolve, 20));
      await new Promise((resolve) => setTimeout(resolve, 80));
      await new Promise((resolve) => requestAnimationFrame(resolve));
      const now = view();
      if (JSON.stringify(now) === last) return now;
      last = JSON.stringify(now);
    }
  });
}

export async function testStates(runner, browser, server) {
  const one = await server.share(labelledProfile(71, 120), { title: "States" });
  const two = await server.share(cpuProfile(72, 120), {
    title: "Other states",
  });
  const stacks = cpuSamples(71, 120).map(({ stack }) => stack);
  const names = [...new Set(stacks.flat())].map((name) =>
    name.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"),
  );

  await runner.test("parsing and formatting a link keeps its settings", async () => {
    const made = await build({
      entryPoints: [join(root, "web/src/view_state.ts")],
      bundle: true,
      format: "esm",
      write: false,
    });
    const { formatState, parseState, unknownSettings } = await import(
      `data:text/javascript;base64,${Buffer.from(made.outputFiles[0].text).toString("base64")}`
    );
    for (let i = 0; i < addresses; i++) {
      const query = randomQuery(names, stacks, i % 4 === 0);
      const written = formatState(parseState(query));
      assert.deepEqual(parseState(written), parseState(query), query);
      assert.equal(formatState(parseState(written)), written, query);
      assert.deepEqual(unknownSettings(query), [], query);
      // An empty rule may disappear; everything else must stay unchanged.
      const settings = (text) =>
        [...new URLSearchParams(text)].filter(([name]) => name !== "x" && name !== "sv").sort();
      assert.deepEqual(settings(written), settings(query), query);
    }
  });

  for (const [name, path, share] of [
    ["a profile", `/p/${one.id}`, 0.25],
    ["a profile, more views", `/p/${one.id}`, 0.5],
    ["a comparison", `/d/${one.id}..${two.id}`, 0.25],
  ])
    await runner.test(`a link restores the view that it was copied from: ${name}`, async () => {
      const context = await browser.newContext({
        ...looks.light,
        viewport: { width: 1100, height: 900 },
        reducedMotion: "reduce",
        ignoreHTTPSErrors: true,
      });
      const open = (use) =>
        withPage(browser, server, (page, watch) => (watch.allowed.add(400), use(page)), {
          context,
        }); // a root that does not exist
      const both = (use) => open((a) => open((b) => use(a, b)));
      await both(async (wandering, fresh) => {
        await wandering.goto(server.url + path);
        await viewReady(wandering);
        for (let i = 0; i < Math.ceil(rounds * share); i++) {
          const url = `${server.url}${path}?${randomQuery(names, stacks, name === "a comparison")}`;
          await setInPlace(wandering, url);
          const there = await lookOf(wandering);
          await fresh.goto(url);
          const here = await lookOf(fresh);
          for (const part of ["words", "pressed", "scrolled"])
            assert.equal(here[part], there[part], url);
          assert.deepEqual(
            here.pictures.map((one, at) => one === there.pictures[at]),
            here.pictures.map(() => true),
            url,
          );
        }
      });
      await context.close();
    });
}
