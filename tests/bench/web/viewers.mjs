/*
 * The measured viewers, each with the same operations:
 *
 *   start(tree, limitMs)  prepares the page: {url, processes of a server or null, stop}
 *   ready(page)           waits for the first complete picture
 *   wake(page)            waits for everything else that input needs
 *   pan, zoomStep         one step of input; zoomClick if only a click on a frame zooms
 *   search(page)          focuses the search field; letters are typed one by one
 *   transforms            named changes of the tree, each done when it returns and the browser is
 *                         idle
 *
 * Operations that a viewer lacks are left out and shown as "-".
 */
import { execFileSync, spawn } from "node:child_process";
import { createServer } from "node:net";
import { Server } from "../../browser/server.mjs";
import { Processes } from "./measure.mjs";

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function withKey(page, key, act) {
  await page.keyboard.down(key);
  await act();
  await page.keyboard.up(key);
}

/** The middle third of the picture, away from its edges. */
async function place(page, selector, x = 0.4, y = 0.3) {
  const box = await page.locator(selector).first().boundingBox();
  return [box.x + box.width * x, box.y + Math.min(box.height, 500) * y];
}

/* ---- Perfolio ---- */

const isShown = () =>
  document.querySelector(".viewer:not(.waiting)[aria-busy=false] .viewer-foot") !== null;

/** Adds a rule for the frame some rows below the root. */
const addRule = (key) => async (page) => {
  await page.focus(".icicle");
  await page.keyboard.press("Home");
  for (let i = 0; i < 3; i++) await page.keyboard.press("ArrowDown");
  await page.keyboard.press(key);
  await page.waitForFunction(
    () =>
      document.querySelector(".viewer").getAttribute("aria-busy") === "false" &&
      new URL(location.href).searchParams.has("x"),
    null,
    { polling: 50 },
  );
};

export const perfolio = {
  name: "Perfolio",
  async start(tree) {
    const server = await Server.start();
    const processes = new Processes(server.process.pid);
    const cpuBefore = processes.cpuSeconds();
    const { id } = await server.share(tree.file("pprof"));
    return {
      url: `${server.url}/p/${id}`,
      processes,
      cpuBefore,
      server,
      stop: () => server.stop(),
    };
  },
  ready: (page) => page.waitForFunction(isShown, null, { polling: 50 }),
  at: (page) => place(page, ".icicle"),
  pan: (page, i) => withKey(page, "Shift", () => page.mouse.wheel(0, i % 40 < 20 ? 25 : -25)),
  zoomStep: (page, i) =>
    withKey(page, "Control", () => page.mouse.wheel(0, i % 40 < 20 ? -30 : 30)),
  search: (page) => page.focus("#search"),
  transforms: {
    hide: { run: addRule("h"), undo: (page) => page.keyboard.press("u") },
    focus: { run: addRule("f"), undo: (page) => page.keyboard.press("u") },
  },
};

/* ---- pages that read a file ---- */

const fromFile =
  (site, page, format, more = "") =>
  async (tree) => ({
    url: `${site.url}/${page}${encodeURIComponent(site.add(tree, format))}${more}`,
    processes: null,
    stop: async () => undefined,
  });

export const speedscope = (site) => ({
  name: "speedscope",
  start: fromFile(site, "speedscope/index.html#profileURL=", "pprof", "&view=left-heavy"),
  async ready(page) {
    await page.waitForFunction(
      () => document.title !== "speedscope" && document.querySelector("canvas") !== null,
      null,
      { polling: 50 },
    );
  },
  at: (page) => place(page, "body", 0.4, 0.5),
  pan: (page, i) => page.mouse.wheel(i % 40 < 20 ? 25 : -25, 0),
  zoomStep: (page, i) => withKey(page, "Control", () => page.mouse.wheel(0, i % 40 < 20 ? -7 : 8)),
  search: (page) => page.keyboard.press("Control+f"),
});

export const d3 = (site) => ({
  name: "d3-flame-graph",
  start: fromFile(site, "d3.html?tree=", "d3"),
  ready: (page) =>
    page.waitForFunction(() => document.querySelector("#chart svg g rect") !== null, null, {
      polling: 50,
    }),
  at: (page) => place(page, "#chart svg"),
  async zoomClick(page, i) {
    await page.evaluate(
      (isIn) =>
        isIn
          ? document
              .querySelectorAll("#chart svg g.frame, #chart svg > g > g")[4]
              .dispatchEvent(new MouseEvent("click", { bubbles: true }))
          : globalThis.chart.resetZoom(),
      i % 2 === 0,
    );
  },
  /** Calls the search function for each letter, as a page would: the viewer has no search field. */
  type: (page, text) => page.evaluate((sought) => globalThis.chart.search(sought), text),
});

export const grafana = (site) => ({
  name: "@grafana/flamegraph",
  start: fromFile(site, "grafana.html?tree=", "nested"),
  ready: (page) =>
    page.waitForFunction(
      () => (document.querySelector("[data-testid=flameGraph]")?.height ?? 0) > 0,
      null,
      { polling: 50 },
    ),
  /** The widest block of the second row. */
  async at(page) {
    const box = await page.locator("[data-testid=flameGraph]").boundingBox();
    return [box.x + box.width * (await page.evaluate(() => globalThis.widestShare)), box.y + 33];
  },
  /**
   * While only the picture is shown, clicks, search and table are not ready: the first picture is
   * measured without them.
   */
  async wake(page) {
    await page.evaluate(() => globalThis.showAll());
    await page.locator("[id^=option-flameGraph]").click({ force: true });
  },
  /** A click opens a menu whose first entry zooms; a pill above the picture returns. */
  async zoomClick(page, i) {
    // The pill's icon is not served, so it has no size to click on.
    if (i % 2) return page.locator("[aria-label='Remove focus']").evaluate((pill) => pill.click());
    this.block ??= await this.at(page);
    await page.mouse.click(...this.block);
    await page.getByText("Focus block").click();
  },
  search: (page) => page.locator("input[placeholder='Search...']").focus(),
});

/* ---- pprof ---- */

function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer().on("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}

/** The program behind `go tool pprof`, built once; null without Go. */
export function findPprof() {
  try {
    return execFileSync("go", ["tool", "-n", "pprof"], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    }).trim();
  } catch {
    return null;
  }
}

export const pprof = (program) => ({
  name: "go tool pprof",
  async start(tree, limitMs) {
    const port = await freePort();
    const child = spawn(program, [`-http=localhost:${port}`, "-no_browser", tree.path("pprof")], {
      stdio: "ignore",
    });
    const ended = new Promise((resolve) => child.once("exit", resolve));
    const stop = async () => {
      child.kill("SIGTERM");
      await ended;
    };
    const url = `http://localhost:${port}/flamegraph`;
    for (const begun = Date.now(); ; await pause(100)) {
      if (
        await fetch(`http://localhost:${port}/download`, {
          method: "HEAD",
        }).catch(() => null)
      )
        break;
      if (Date.now() - begun < limitMs && child.exitCode === null) continue;
      await stop();
      throw new Error("pprof did not start in time");
    }
    return { url, processes: new Processes(child.pid), cpuBefore: 0, stop };
  },
  ready: (page) =>
    page.waitForFunction(
      () => document.readyState === "complete" && document.querySelector(".boxbg") !== null,
      null,
      { polling: 50 },
    ),
  at: (page) => place(page, ".boxbg", 0.5, 0.5),
  async zoomClick(page, i) {
    await page.evaluate(
      (isIn) => {
        const boxes = [...document.querySelectorAll(".boxbg")];
        const box = isIn ? boxes[4] : boxes[0];
        const { x, y } = box.getBoundingClientRect();
        for (const kind of ["mousedown", "mouseup", "click"])
          box.dispatchEvent(
            new MouseEvent(kind, {
              bubbles: true,
              clientX: x + 1,
              clientY: y + 1,
            }),
          );
      },
      i % 2 === 0,
    );
  },
  search: (page) => page.focus("#search"),
  transforms: {
    // Its server renders the page again.
    hide: {
      run: (page, tree) => page.goto(`${page.url()}?h=${tree.sought}7`),
      undo: (page) => page.goBack(),
    },
    focus: {
      run: (page, tree) => page.goto(`${page.url()}?f=${tree.sought}`),
      undo: (page) => page.goBack(),
    },
  },
});
