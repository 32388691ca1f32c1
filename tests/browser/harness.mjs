// The base of all browser tests: a browser, pages that are checked for faults, and a runner that
// counts results.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { longTests } from "./long_tests.mjs";
import { root } from "./server.mjs";

// The tests' packages are in web/.
const require = createRequire(join(root, "web/package.json"));
const { chromium } = require("playwright-core");
const axeSource = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

export const screenshots = join(root, "build/screenshots");
mkdirSync(screenshots, { recursive: true });

/** The deadline for everything that must happen; a busy machine may be slow. */
export const timeoutMs = 180_000;

/** Repeats check until it passes. */
export async function soon(check) {
  const deadline = Date.now() + timeoutMs;
  for (;;)
    try {
      return await check();
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
}

/**
 * The distribution's headless browser, which needs a third less CPU than the full one; CHROMIUM
 * overrides it.
 */
export function chromiumPath() {
  const shell = "/usr/bin/chromium-headless-shell";
  return process.env.CHROMIUM ?? (existsSync(shell) ? shell : "/usr/bin/chromium");
}

export function launch() {
  const args = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    // No processes for the GPU and the network, which saves a tenth of the CPU time of a
    // page. The list of features replaces Playwright's, so it repeats CDPScreenshotNewSurface.
    "--in-process-gpu",
    "--enable-features=CDPScreenshotNewSurface,NetworkServiceInProcess2",
  ];
  return chromium.launch({
    executablePath: chromiumPath(),
    args,
    timeout: timeoutMs,
  });
}

/**
 * Waits until the page has handled the last input: effects run two tasks after the frame is
 * painted, and messages about the address precede this response. A page that is being left needs no
 * waiting.
 */
export const settled = (frame) =>
  frame
    .evaluate(
      () =>
        new Promise((resolve) => {
          const done = () => {
            clearTimeout(timer);
            cancelAnimationFrame(request);
            setTimeout(resolve);
          };
          const timer = setTimeout(done, 100);
          const request = requestAnimationFrame(done);
        }),
    )
    .catch(() => undefined);

const actions = [
  "check",
  "click",
  "dblclick",
  "fill",
  "focus",
  "hover",
  "press",
  "selectOption",
  "setInputFiles",
  "tap",
  "uncheck",
];

/**
 * Makes every input action wait until the page has settled, so that the next step sees its effects
 * on a machine of any speed.
 */
function settleAfterActions(page) {
  const frame = page.mainFrame(); // receives the actions of the page and of all locators
  const extend = (owner, names) => {
    for (const name of names) {
      const act = owner[name].bind(owner);
      owner[name] = async (...all) => {
        const result = await act(...all);
        await settled(frame);
        return result;
      };
    }
  };
  extend(frame, actions);
  extend(page, ["goBack", "goForward", "setViewportSize"]);
  extend(page.keyboard, ["press", "type"]);
  extend(page.mouse, ["click", "up", "wheel"]);
  extend(page.touchscreen, ["tap"]);
}

/** Faults that a page must not have: policy violations, errors, requests to other sites. */
export class Watch {
  faults = [];
  /** Response statuses whose console errors the test expects. */
  allowed = new Set();
  /** The start time of each pending request. */
  underWay = new Map();

  constructor(page, origin) {
    page.on("request", (request) => this.underWay.set(request, Date.now()));
    for (const end of ["requestfinished", "requestfailed"])
      page.on(end, (request) => this.underWay.delete(request));
    page.on("console", (message) => {
      if (message.type() !== "error" && message.type() !== "warning") return;
      const status = /responded with a status of (\d+)/.exec(message.text())?.[1];
      if (!status || !this.allowed.has(Number(status)))
        this.faults.push(`console: ${message.text()}`);
    });
    page.on("pageerror", (error) => this.faults.push(`error: ${error.stack}`));
    page.on("request", (request) => {
      const url = new URL(request.url());
      const isOwn = url.origin === origin || url.protocol === "data:" || url.protocol === "blob:";
      if (!isOwn) this.faults.push(`request to ${url.origin}`);
    });
  }

  /** Details that help to find the cause of a failure. */
  report(page) {
    const requests = [...this.underWay].map(
      ([request, begun]) =>
        `${request.method()} ${request.url()} for ${Math.round((Date.now() - begun) / 1000)} s`,
    );
    return [`at ${page.url()}`, ...requests.map((one) => `under way: ${one}`), ...this.faults]
      .map((line) => `    ${line}\n`)
      .join("");
  }
}

export const looks = {
  light: { viewport: { width: 1440, height: 900 }, colorScheme: "light" },
  dark: { viewport: { width: 1440, height: 900 }, colorScheme: "dark" },
  phone: {
    viewport: { width: 390, height: 844 },
    colorScheme: "light",
    deviceScaleFactor: 2,
    hasTouch: true,
    isMobile: true,
  },
};

/**
 * Pages that earlier tests have left, by the context or the browser that they belong to, then by
 * what they were opened with. A page that is used again needs half of the CPU time of a new
 * one, which starts a process and compiles all scripts.
 */
const pagesLeft = new WeakMap();

/** Changes to a page that outlive a navigation, so the page is not used again. */
const lasting = [
  "addInitScript",
  "addLocatorHandler",
  "context",
  "emulateMedia",
  "exposeBinding",
  "exposeFunction",
  "setDefaultNavigationTimeout",
  "setExtraHTTPHeaders",
];

/** A page, and what has to be undone before another test may use it. */
class OwnPage {
  isReusable = true;
  #listeners = [];

  constructor(page, ownContext) {
    this.page = page;
    /** The context to close with the page; null if it belongs to the test. */
    this.ownContext = ownContext;
    this.viewport = page.viewportSize();
    for (const name of lasting) {
      const change = page[name].bind(page);
      page[name] = (...all) => {
        this.isReusable = false;
        return change(...all);
      };
    }
    const listen = page.on.bind(page);
    page.on = (event, listener) => {
      this.#listeners.push([event, listener]);
      return listen(event, listener);
    };
  }

  /** Makes the page like a new one of its context; false if it cannot be. */
  async clean(server) {
    const { page, ownContext, viewport } = this;
    for (const [event, listener] of this.#listeners.splice(0)) page.off(event, listener);
    if (!this.isReusable || page.isClosed()) return false;
    const { width, height } = page.viewportSize();
    if (width !== viewport.width || height !== viewport.height)
      await page.setViewportSize(viewport);
    // A page of this origin without a script: the next test needs no new process.
    await page.goto(`${server.url}/favicon.svg`);
    await page.evaluate((isOwn) => {
      sessionStorage.clear();
      if (isOwn) localStorage.clear();
    }, ownContext !== null);
    await page.mouse.move(0, 0);
    if (ownContext) await ownContext.clearCookies();
    return !ownContext || ownContext.pages().length === 1;
  }

  async close() {
    await (this.ownContext ?? this.page).close();
  }
}

async function openPage(browser, look, bypassCSP, context) {
  const own = context
    ? null
    : await browser.newContext({
        ...looks[look],
        ignoreHTTPSErrors: true,
        bypassCSP,
        permissions: ["clipboard-read", "clipboard-write"],
      });
  const page = await (context ?? own).newPage();
  page.setDefaultTimeout(timeoutMs);
  settleAfterActions(page);
  await page.addInitScript(() => {
    addEventListener("securitypolicyviolation", (event) =>
      console.error(`CSP: ${event.violatedDirective} ${event.blockedURI}`),
    );
    globalThis.messagesTold = [];
    let last = "";
    new MutationObserver(() => {
      const text = document.querySelector(".message.shown")?.textContent ?? "";
      if (text && text !== last) globalThis.messagesTold.push(text);
      last = text;
    }).observe(document, {
      subtree: true,
      childList: true,
      characterData: true,
    });
  });
  return new OwnPage(page, own);
}

/**
 * Passes a page with empty storage to `use`; fails if the page had a fault. The page is in its own
 * context, or in the given one. It may be one that an earlier test used, with that test's cached
 * files.
 */
export async function withPage(
  browser,
  server,
  use,
  { look = "light", bypassCSP = false, context = null } = {},
) {
  const owner = context ?? browser;
  if (!pagesLeft.has(owner)) pagesLeft.set(owner, new Map());
  const left = pagesLeft.get(owner);
  const kind = `${look} ${bypassCSP}`;
  let own = left.get(kind);
  if (own) left.delete(kind);
  if (!own || own.page.isClosed()) own = await openPage(browser, look, bypassCSP, context);
  const { page } = own;
  let isClean = false;
  try {
    const watch = new Watch(page, server.url);
    try {
      await use(page, watch);
    } catch (error) {
      if (error instanceof Error)
        error.stack = `${error.message}\n${watch.report(page)}${error.stack}`;
      await page.screenshot({ path: join(screenshots, "failed.png") }).catch(() => undefined);
      throw error;
    } finally {
      // a route of the test may outlive the page
      await page.unrouteAll({ behavior: "ignoreErrors" });
    }
    if (watch.faults.length) throw new Error(watch.faults.join("\n"));
    isClean = !left.has(kind) && (await own.clean(server));
    if (isClean) left.set(kind, own);
  } finally {
    if (!isClean) await own.close();
  }
}

/**
 * Waits until finite animations have ended. Even an animation of no duration needs a frame of the
 * screen, which may be late.
 */
const still = (page) =>
  page.evaluate(async () => {
    const endsOf = (animation) => animation.effect?.getComputedTiming().endTime ?? Infinity;
    for (;;) {
      const running = document
        .getAnimations()
        .filter((one) => one.playState === "running" && Number.isFinite(endsOf(one)));
      if (running.length === 0) return;
      await Promise.allSettled(running.map((one) => one.finished));
    }
  });

/**
 * Serious and critical findings of axe-core. rules: enables or disables rules; only: the only rules
 * to run.
 */
export async function axeFindings(page, rules = {}, only = null) {
  await still(page);
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(axeSource);
  const result = await page.evaluate(
    (options) => globalThis.axe.run(document, { resultTypes: ["violations"], ...options }),
    only ? { runOnly: only } : { rules },
  );
  return result.violations
    .filter((finding) => finding.impact === "serious" || finding.impact === "critical")
    .map(
      (finding) =>
        `${finding.id}: ` +
        finding.nodes
          .map((node) => {
            const reason = node.failureSummary?.split("\n")[1]?.trim();
            return `${node.target.join(" ")} (${reason})`;
          })
          .join("; "),
    );
}

/** Rows that react to hover or contain focusable elements. */
const rows = [
  ".rows .row",
  ".list tbody tr",
  ".rows-list > li",
  ".label-row",
  ".graph-list li",
  ".talk-list > li",
  ".choices li",
  ".menu-panel > :is(a, button)",
  ".files li",
  ".recent li",
];

/**
 * Everything that decides the colours of an element's text: elements, classes, inline colours and
 * states, from the page's root down to the element's descendants.
 */
function colourKey(element) {
  const ancestors = [];
  for (let one = element; one; one = one.parentElement) ancestors.push(one);
  const states = ["aria-pressed", "aria-selected", "aria-current", "aria-disabled", "disabled"];
  return [...ancestors, ...element.querySelectorAll("*")]
    .map((one) => {
      const style = (one.textContent && one.getAttribute("style")) || "";
      const colours = style.split(";").filter((rule) => /color|background/.test(rule));
      const attributes = ["class", ...states].map((name) => one.getAttribute(name));
      return [one.localName, ...colours, ...attributes].join(" ");
    })
    .join("\n");
}

/**
 * Contrast findings in the first two rows of each kind while they are hovered or focused. `checked`
 * keeps the rows that were checked on other pages: a row with the same elements, classes and states
 * has the same colours and is not checked again.
 */
export async function rowFindings(page, checked = new Set()) {
  const findings = [];
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(axeSource);
  for (const kind of rows)
    for (const row of (await page.locator(kind).all()).slice(0, 2)) {
      if (!(await row.isVisible())) continue;
      const key = await row.evaluate(colourKey);
      if (checked.has(key)) continue;
      checked.add(key);
      const look = async (how) => {
        await still(page);
        const { violations } = await row.evaluate((element) =>
          globalThis.axe.run({ include: [element] }, { runOnly: ["color-contrast"] }),
        );
        findings.push(
          ...violations.flatMap(({ nodes }) =>
            nodes.map((node) => `${kind}, ${how}: ${node.any[0]?.message}`),
          ),
        );
      };
      await row.hover({ force: true });
      await look("hovered");
      await row.evaluate((element) =>
        (element.matches("a, button")
          ? element
          : element.querySelector("a, button, input")
        )?.focus(),
      );
      await look("hovered and focused");
      await page.mouse.move(0, 0);
      await look("focused");
    }
  return findings;
}

/** Dispatches a drop event with the files on the page. */
export function dropFiles(page, files) {
  const plain = files.map(({ name, bytes }) => ({
    name,
    base64: bytes.toString("base64"),
  }));
  return page.evaluate((list) => {
    const transfer = new DataTransfer();
    for (const { name, base64 } of list) {
      const text = atob(base64);
      const content = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
      transfer.items.add(new File([content], name));
    }
    document.body.dispatchEvent(
      new DragEvent("drop", {
        dataTransfer: transfer,
        bubbles: true,
        cancelable: true,
      }),
    );
  }, plain);
}

/** Waits until the tree is loaded and painted and everything that follows from it is done. */
export async function viewReady(page) {
  const isReady = () =>
    document.querySelector(".viewer:not(.waiting)[aria-busy=false] :is(.viewer-foot, .empty)") !==
      null &&
    !document.querySelector(".pane .loading") &&
    !document.querySelector(".viewer .nothing")?.textContent.startsWith("Counting the table");
  for (let isStill = false; !isStill; isStill = await page.evaluate(isReady)) {
    await page.waitForFunction(isReady);
    for (let i = 0; i < 2; i++) await settled(page);
  }
}

/** Searches and waits for the result; the code for expressions is loaded with the first search. */
export async function searchFor(page, text) {
  await page.fill("#search", text);
  if (text === "") return;
  await page.waitForFunction(() => document.querySelector("#search-result").textContent !== "");
  await settled(page);
}

/** Waits until the page has shown this short message. */
export const messageShown = (page, text) =>
  page.waitForFunction((wanted) => {
    const at = globalThis.messagesTold.findIndex((message) => message.includes(wanted));
    return at >= 0 && globalThis.messagesTold.splice(0, at + 1).length > 0;
  }, text);

/**
 * The number of pixels of the overlay that hide the picture: edges and signs. Reads a copy, because
 * browsers warn about repeated reads of one canvas.
 */
export const edgePixels = (page) =>
  page.$eval(".icicle canvas:last-child", (canvas) => {
    const { width, height } = canvas;
    const copy = new OffscreenCanvas(width, height).getContext("2d", {
      willReadFrequently: true,
    });
    copy.drawImage(canvas, 0, 0);
    return copy
      .getImageData(0, 0, width, height)
      .data.filter((value, i) => i % 4 === 3 && value > 200).length;
  });

export const pasted = (page) => page.evaluate(() => navigator.clipboard.readText());

/**
 * Waits until the focus is as expected: the page looks for a place only after other code had the
 * chance to move the focus.
 */
export const focusIs = (page, read, wanted) =>
  soon(async () => assert.equal(await page.evaluate(read), wanted));

/**
 * Waits until a picture that was moved rests and the address is updated: it moves for 170 ms and
 * rests for 160.
 */
export const atRest = async (page) => {
  await page.evaluate(async () => {
    const begun = performance.now();
    while (performance.now() - begun < 200) await new Promise(requestAnimationFrame);
    // timers of a page fire in the order of their times
    await new Promise((resolve) => setTimeout(resolve, 200));
  });
  await settled(page);
};

/**
 * Presses at the left edge of an element and releases beside it before this is a drag; then moves
 * the pointer across without a button.
 */
export async function pressAndLeave(page, selector) {
  const { x, y } = await page.locator(selector).boundingBox();
  await page.mouse.move(x + 1, y + 60);
  await page.mouse.down();
  await page.mouse.move(x - 2, y + 60);
  await page.mouse.up();
  for (const right of [20, 100, 200]) await page.mouse.move(x + right, y + 70);
}

/** Sets another state of the same page, like a step in the history. */
export const setInPlace = (page, url) =>
  page.evaluate((address) => {
    history.pushState(null, "", address);
    dispatchEvent(new PopStateEvent("popstate"));
  }, url);

/** The tree's description of the frame under the cursor. */
export const spoken = (page) => page.textContent("#icicle-cursor");

/** The rows of the table as texts, from the top of the list, with full names. */
export const tableRows = (page) =>
  page.$$eval(".rows .row", (rows) =>
    rows
      .sort((a, b) => a.getAttribute("aria-rowindex") - b.getAttribute("aria-rowindex"))
      .map((row) =>
        [...row.querySelectorAll("[role=cell]")].map((cell) =>
          (
            cell.querySelector("button")?.ariaLabel ??
            cell.querySelector(".amount")?.textContent ??
            ""
          ).trim(),
        ),
      ),
  );

/* ---- runner ---- */

export class Runner {
  passed = 0;
  failed = 0;
  skipped = 0;
  left = 0; // tests that "--short" leaves to "--long"
  #seen = new Set(); // entries of longTests

  /** selection: "" for all tests, "--short", "--long" (long_tests.mjs), or a part of the names. */
  constructor(selection = "") {
    this.mode = /^--(short|long)$/.exec(selection)?.[1] ?? "all";
    this.filter = this.mode === "all" ? selection : "";
  }

  #isChosen(name) {
    const entry = longTests.find((one) => name.startsWith(one));
    if (entry) this.#seen.add(entry);
    if (this.mode === "all") return name.includes(this.filter);
    return (this.mode === "long") === (entry !== undefined);
  }

  /** Whether this run may have a test whose name begins with this text. */
  wants(beginning) {
    if (this.filter) return this.filter.startsWith(beginning) || beginning.includes(this.filter);
    if (this.mode === "short") return !longTests.some((one) => beginning.startsWith(one));
    return (
      this.mode === "all" ||
      longTests.some((one) => one.startsWith(beginning) || beginning.startsWith(one))
    );
  }

  /** Entries of longTests that no test of this run has. */
  unknownEntries() {
    return this.mode === "long" ? longTests.filter((one) => !this.#seen.has(one)) : [];
  }

  /** lacks: what this machine lacks for the test. */
  async test(name, run, lacks = "") {
    if (!this.#isChosen(name)) {
      if (this.mode === "short") this.left++;
      return;
    }
    if (lacks) {
      this.skipped++;
      console.log(`skipped - ${name}: ${lacks}`);
      return;
    }
    const begun = Date.now();
    try {
      await run();
      this.passed++;
      console.log(`ok - ${name} (${Date.now() - begun} ms)`);
    } catch (error) {
      this.failed++;
      console.log(`not ok - ${name}\n${String(error?.stack ?? error).replace(/^/gm, "    ")}`);
    }
  }
}
