// Every page in light, dark and phone width: screenshots, axe-core, no overflow.
import assert from "node:assert/strict";
import { join } from "node:path";
import {
  axeFindings,
  looks,
  rowFindings,
  screenshots,
  setInPlace,
  viewReady,
  withPage,
} from "./harness.mjs";
import { cpuProfile, labelledProfile } from "./profiles.mjs";
import { signedIn } from "./account.mjs";

const description =
  "Checkout under load, **30 s** at 400 requests/s.\n\n- `GOMAXPROCS=8`\n- the JSON encoder " +
  "looks heavy";

export async function testLooks(runner, browser, server) {
  const first = await server.share(cpuProfile(51, 1500), {
    title: "Checkout under load",
    description,
    filename: "checkout-cpu.pb.gz",
    label: "service=checkout",
    expires: "30d",
  });
  const second = await server.share(cpuProfile(52, 1500), {
    title: "Checkout with the new encoder",
    filename: "checkout-cpu-2.pb.gz",
  });
  const locked = await server.share(
    cpuProfile(53),
    { visibility: "password" },
    { headers: { "X-Perfolio-Password": "a password" } },
  );
  const labelled = await server.share(labelledProfile(4, 900), {
    title: "Checkout with labels",
  });
  const gone = await server.share(cpuProfile(54));
  await server.call("DELETE", `/api/v1/shares/${gone.id}`, {
    token: server.token,
  });

  const invited = await server.call("POST", "/api/v1/invitations", {
    body: { email: "somebody@example.org", role: "member" },
    token: server.token,
  });

  const share = `/p/${first.id}`;
  const writing = await signedIn(browser, server);
  await withPage(
    browser,
    server,
    async (page) => {
      await page.goto(`${server.url}${share}?b=comments&m=runtime.mallocgc&sv=2`);
      for (const [i, text] of [
        "Why does `mallocgc` take so much?\n\n- the encoder makes a buffer per call",
        "A pool would do: https://example.org/pool",
        "**Done.**",
      ].entries()) {
        await page.fill(".talk form textarea", text);
        await page.click(".talk button:has-text('Comment')");
        await page.waitForSelector(`.talk-list > li:nth-child(${i + 1})`);
      }
    },
    { context: writing },
  );
  await writing.close();
  const diff = `/d/${first.id}..${second.id}`;
  /** Presses a button of the page and waits for what it opens. */
  const opens = (name, there) => async (page) => {
    await page.click(`.profile-tools button:has-text('${name}')`);
    await page.waitForSelector(there);
  };
  const pages = [
    ["landing", "/", ".drop"],
    ["share", share, "view"],
    ["share-flame", `${share}?v=flame&w=0.2-0.55&c=value&sv=2`, "view"],
    ["share-runtime", `${share}?w=0.5-0.52&q=json&c=runtime&sv=2`, "view"],
    ["share-both", `${share}?v=table&b=icicle&sv=2`, "view"],
    ["share-table", `${share}?v=table&sv=2`, "view"],
    ["share-search", `${share}?q=json&sv=2`, "view"],
    ["share-wrong-search", `${share}?q=%28&sv=2`, "view"],
    ["share-marked", `${share}?v=table&b=icicle&m=runtime.mallocgc&sv=2`, "view"],
    [
      "share-graph",
      `${share}?v=graph&m=runtime.mallocgc&q=json&sv=2`,
      "view",
      (page) => page.click(".graph-list summary"),
    ],
    ["share-sandwich", `${share}?v=sandwich&m=runtime.mallocgc&sv=2`, "view"],
    ["share-peek", `${share}?v=peek&m=runtime.mallocgc&sv=2`, "view"],
    [
      "share-comments",
      `${share}?b=comments&m=runtime.mallocgc&sv=2`,
      "view",
      (page) => page.waitForSelector(".talk-list"),
      true,
    ],
    [
      "share-comments-read",
      `${share}?v=comments&sv=2`,
      "view",
      (page) => page.waitForSelector(".talk-list"),
    ],
    [
      "keys",
      share,
      "view",
      (page) => page.keyboard.press("?").then(() => page.waitForSelector("dialog[open] .keys")),
    ],
    ["download", share, "view", opens("Download", ".menu-panel a[download]")],
    ["compare", share, "view", opens("Compare", "dialog input")],
    ["diff", diff, "view"],
    ["diff-both", `${diff}?v=table&b=icicle&sv=2`, "view"],
    ["diff-graph", `${diff}?v=graph&sv=2`, "view", (page) => page.waitForSelector(".graph-node")],
    ["diff-sandwich", `${diff}?v=sandwich&m=runtime.mallocgc&sv=2`, "view"],
    ["diff-peek", `${diff}?v=peek&m=runtime.mallocgc&sv=2`, "view"],
    [
      "labels",
      `/p/${labelled.id}?v=labels&lb=thread%3Dio&lb=endpoint%21%3D%2Fhealth&sv=2`,
      ".labels[aria-busy=false]",
    ],
    ["labels-beside", `/p/${labelled.id}?v=icicle&b=labels&sv=2`, ".labels[aria-busy=false]"],
    ["labels-diff", `/d/${first.id}..${labelled.id}?v=labels&sv=2`, ".labels[aria-busy=false]"],
    ["password", `/p/${locked.id}`, "text=protected by a password"],
    ["gone", `/p/${gone.id}`, "text=is gone"],
    ["missing", `/p/${"0".repeat(22)}`, "h1:text-is('Not found')"],
    ["delete", `${share}/delete#x`, "text=cannot be undone"],
    ["login", "/login", "input[type=email]"],
    [
      "invite",
      new URL(invited.json.url).pathname + new URL(invited.json.url).hash,
      "input[type=password]",
    ],
    ["invite-used", "/invite#code", "text=already used"],
    ["problem", "/problems/too-large", "text=limit"],
    ["shares", "/shares", ".list tbody tr", null, true],
    ["settings", "/settings", "#audit td", null, true],
    ["edit", share, "view", opens("Settings", "dialog input"), true],
  ];

  /** Checks that neither the page nor a pane overflows. */
  const mustFit = async (page) => {
    const [overflow, below] = await page.evaluate(() => {
      const views = document.querySelector(".views");
      const parts = views
        ? [...views.querySelectorAll(".pane, .pane > *, .pane > .split > *")]
        : [];
      const bottom = Math.max(
        0,
        ...parts.map(
          (part) => part.getBoundingClientRect().bottom - views.getBoundingClientRect().bottom,
        ),
      );
      return [document.documentElement.scrollWidth - innerWidth, bottom];
    });
    assert.ok(overflow <= 0, `${overflow} pixels stick out`);
    assert.ok(below < 1, `a pane is drawn ${below} pixels below the views`);
  };
  for (const [width, height] of [
    [320, 640],
    [390, 844],
    [600, 900],
    [860, 600],
  ])
    await runner.test(`pages of each kind fit ${width} x ${height} pixels`, async () => {
      const kinds = [
        "landing",
        "share",
        "share-both",
        "share-marked",
        "share-sandwich",
        "share-graph",
        "share-peek",
        "share-comments-read",
        "diff",
        "diff-both",
        "diff-sandwich",
        "diff-peek",
        "labels",
        "password",
        "missing",
        "login",
        "problem",
      ];
      const context = await browser.newContext({
        viewport: { width, height },
        reducedMotion: "reduce",
        ignoreHTTPSErrors: true,
      });
      await withPage(
        browser,
        server,
        async (page, watch) => {
          for (const status of [401, 404]) watch.allowed.add(status);
          const wrong = [];
          for (const [name, path, ready] of pages.filter(([name]) => kinds.includes(name))) {
            await page.goto(server.url + path);
            await (ready === "view" ? viewReady(page) : ready && page.waitForSelector(ready));
            await mustFit(page).catch((error) => wrong.push(`${name}: ${error.message}`));
          }
          assert.deepEqual(wrong, []);
        },
        { context },
      );
      await context.close();
    });

  for (const look of Object.keys(looks)) {
    const checkedRows = new Set();
    const inside = await signedIn(browser, server, look, true);
    const outside = await browser.newContext({
      ...looks[look],
      reducedMotion: "reduce",
      ignoreHTTPSErrors: true,
      bypassCSP: true,
    });
    for (const context of [outside, inside])
      await withPage(
        browser,
        server,
        async (page, watch) => {
          for (const status of [400, 401, 404, 410]) watch.allowed.add(status);
          // an element opened by the test stays open, so the next page is loaded again
          let isAsLoaded = false;
          for (const [name, path, ready, act, isInside] of pages)
            if (Boolean(isInside) === (context === inside))
              await runner.test(`${look}: ${name} is accessible and fits`, async () => {
                const url = server.url + path;
                const isSamePage =
                  isAsLoaded && ready === "view" && page.url().split("?")[0] === url.split("?")[0];
                await (isSamePage ? setInPlace(page, url) : page.goto(url));
                if (ready === "view") await viewReady(page);
                else if (ready) await page.waitForSelector(ready);
                isAsLoaded = !act;
                if (act) await act(page);
                await page.screenshot({
                  path: join(screenshots, `${look}-${name}.png`),
                });
                await mustFit(page);
                assert.ok(await page.title());
                // The dark pages have the same layout as the light ones, so only colours are
                // checked again.
                assert.deepEqual(
                  await axeFindings(page, {}, look === "dark" ? ["color-contrast"] : null),
                  [],
                );
                if (look !== "phone") assert.deepEqual(await rowFindings(page, checkedRows), []);
                assert.deepEqual(watch.faults.splice(0), []);
              });
        },
        { context },
      );
    await inside.close();
    await outside.close();
  }
}
