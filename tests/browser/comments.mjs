// Comments: everyone can read them, authors edit and delete them, they are pinned to frames; and
// short links to long views.
import assert from "node:assert/strict";
import {
  edgePixels,
  focusIs,
  pasted,
  soon,
  messageShown,
  viewReady,
  withPage,
} from "./harness.mjs";
import { cpuProfile } from "./profiles.mjs";
import { signedIn } from "./account.mjs";

/** The comments that the API returns to everyone. */
const listOf = async (server, id) =>
  (await server.call("GET", `/api/v1/shares/${id}/comments`)).json.comments;

const items = (page) =>
  page.$$eval(".talk-list > li", (list) =>
    list.map((item) => ({
      author: item.querySelector("strong").textContent,
      text: item.querySelector(".markdown").innerText.trim(),
      pin: item.querySelector(".talk-ways bdi")?.textContent ?? null,
    })),
  );

const query = (page) => new URL(page.url()).searchParams;

/** Waits until exactly the requested comments are shown. */
const countIs = (page, count) =>
  page.waitForFunction(
    (wanted) => document.querySelectorAll(".talk-list > li").length === wanted,
    count,
  );

async function testWriting(runner, browser, server, context, share) {
  const inside = (use) => withPage(browser, server, use, { context });
  const path = `${server.url}/p/${share.id}`;

  await runner.test(
    "comments: a comment stores a pin and the view, and both lead back to the frame",
    () =>
      inside(async (page) => {
        await page.goto(`${path}?b=comments&q=json&c=runtime&sv=2`);
        await viewReady(page);
        await page.waitForSelector(".talk h2:has-text('No comments yet')");
        assert.match(await page.textContent(".talk form"), /select a frame in another view/);
        await page.focus(".icicle");
        for (const key of ["ArrowDown", "ArrowDown", "Enter"]) await page.keyboard.press(key);
        const zoom = query(page).get("z");
        const name = await page.textContent(".talk .check bdi");
        assert.match(zoom, /^[0-9a-f]{16}$/);
        assert.equal(await page.textContent(".detail strong"), name);
        const view = page.url().split("?")[1];
        await page.fill(".talk textarea", "Why is **this** so wide?\n\n<b>&\"'");
        await page.click(".talk button:has-text('Comment')");
        await countIs(page, 1);
        assert.equal(await page.textContent(".toolbar [title=Comments] .count"), "1");
        const [kept] = await listOf(server, share.id);
        assert.deepEqual(kept.pin, { hash: zoom, function: name });
        assert.deepEqual([kept.view, kept.text], [view, "Why is **this** so wide?\n\n<b>&\"'"]);
        assert.deepEqual(await items(page), [
          {
            author: kept.author,
            text: "Why is this so wide?\n\n<b>&\"'",
            pin: name,
          },
        ]);
        assert.equal(await page.textContent(".talk-list .markdown strong"), "this");
        assert.equal(await page.inputValue(".talk form textarea"), "");

        // From the comments pane alone, the pin opens the tree beside it.
        await page.goto(`${path}?v=comments&sv=2`);
        await page.click(`.talk-list button:has-text(${JSON.stringify(name)})`);
        await viewReady(page);
        assert.deepEqual(
          ["v", "b", "m", "z"].map((field) => query(page).get(field)),
          [null, "comments", name, zoom],
        );
        await page.goto(`${path}?v=comments&utm=x&sv=2`);
        await page.click("text=Author’s view");
        assert.equal(page.url().split("?")[1], `${view}&utm=x`);
        await page.goBack();
        await page.waitForFunction(() => !document.querySelector(".icicle"));

        await page.goto(`${path}?v=comments&x=hide%3A%5Emain%5C.main%24&sv=2`);
        await page.click(`.talk-list button:has-text(${JSON.stringify(name)})`);
        await page.waitForSelector("text=not in the current view");
      }),
  );

  await runner.test(
    "comments: pinned frames have a sign, and a frame's menu opens the comment form",
    () =>
      inside(async (page) => {
        await page.goto(`${path}?b=comments&sv=2`);
        await countIs(page, 1);
        await viewReady(page);
        await soon(async () => assert.ok((await edgePixels(page)) > 20));
        await page.click("[title=Flame]");
        await soon(async () => assert.ok((await edgePixels(page)) > 20));
        await page.goto(path);
        await viewReady(page);
        assert.equal(await edgePixels(page), 0, "no comments before the pane is opened");
        await page.focus(".icicle");
        for (const key of ["ArrowDown", "ArrowDown"]) await page.keyboard.press(key);
        const name = (await page.textContent("#icicle-cursor")).split(", total")[0];
        await page.keyboard.press(".");
        await page.click("[role=menuitem]:has-text('Copy stack')");
        await messageShown(page, "Stack copied");
        assert.equal((await pasted(page)).split("\n").at(-1), name);
        await page.focus(".icicle");
        await page.keyboard.press(".");
        await page.click("[role=menuitem]:has-text('Comment on this function')");
        await page.waitForSelector(`.talk .check:has-text(${JSON.stringify(name)})`);
        await soon(async () =>
          assert.ok(await page.evaluate(() => document.activeElement.matches(".talk textarea"))),
        );
      }),
  );

  await runner.test(
    "comments: the author edits and deletes them after confirmation, and the order stays",
    () =>
      inside(async (page) => {
        await page.goto(`${path}?v=comments&sv=2`);
        await page.waitForSelector(".talk form textarea");
        await page.fill(".talk form textarea", "The second");
        await page.keyboard.press("Control+Enter");
        await countIs(page, 2);
        const second = ".talk-list > li:nth-child(2)";
        await page.click(`${second} button:has-text('Edit')`);
        await page.fill(`${second} textarea`, "A better second");
        await page.click(`${second} button:has-text('Save')`);
        await page.waitForSelector(`${second} .talk-head:has-text('edited')`);
        await page.click(`${second} button:has-text('Edit')`);
        await page.fill(`${second} textarea`, "never mind");
        await page.keyboard.press("Escape");
        const kept = await listOf(server, share.id);
        assert.equal(kept[1].text, "A better second");
        assert.deepEqual(
          (await items(page)).map(({ author, pin }) => [author, pin]),
          kept.map(({ author, pin }) => [author, pin?.function ?? null]),
        );
        assert.equal((await items(page))[1].text, "A better second");
        const first = ".talk-list > li:nth-child(1)";
        await page.click(`${first} button:has-text('Delete')`);
        assert.equal((await listOf(server, share.id)).length, 2);
        await page.click(`${first} button:has-text('Delete forever')`);
        await countIs(page, 1);
        assert.deepEqual(
          (await listOf(server, share.id)).map(({ n }) => n),
          [kept[1].n],
        );
        await focusIs(page, () => document.activeElement.textContent, "1 comment");
        await soon(async () => assert.equal(await page.textContent(".toolbar .count"), "1"));

        // The button shows the count before the comments are opened, without a request.
        const requests = [];
        page.on(
          "request",
          (request) => request.url().endsWith("/comments") && requests.push(request.url()),
        );
        await page.goto(path);
        await viewReady(page);
        await soon(async () => assert.equal(await page.textContent(".toolbar .count"), "1"));
        assert.deepEqual(requests, []);
      }),
  );

  await runner.test(
    "comments: limits and refusals are shown at the form, and typed text is not lost",
    () =>
      inside(async (page, watch) => {
        await page.goto(`${path}?v=comments&sv=2`);
        await page.waitForSelector(".talk form textarea");
        const send = ".talk button:has-text('Comment')";
        await page.fill(".talk form textarea", "é".repeat(4097));
        await page.waitForSelector(".talk .too-long:has-text('2 bytes too long')");
        assert.ok(await page.isDisabled(send));
        await page.fill(".talk form textarea", "é".repeat(4096));
        await page.waitForSelector(".talk .hint:has-text('0 bytes left')");
        assert.ok(await page.isEnabled(send));
        await page.keyboard.press("Escape"); // keeps the text
        await page.click("button[title=Icicle]");
        await page.click("button[title=Comments]");
        assert.equal((await page.inputValue(".talk form textarea")).length, 4096);
        watch.allowed.add(429);
        const problem = {
          type: "/problems/rate-limited",
          title: "Too many requests",
          status: 429,
          detail: "at most 20 comments a minute",
        };
        await page.route("**/comments", (route) =>
          route.request().method() === "POST"
            ? route.fulfill({
                status: 429,
                headers: {
                  "Retry-After": "7",
                  "Content-Type": "application/problem+json",
                },
                body: JSON.stringify(problem),
              })
            : route.continue(),
        );
        await page.click(send);
        await page.waitForSelector(
          ".talk .error-line:has-text('at most 20 comments a minute Try again in 7 s.')",
        );
        assert.equal((await page.inputValue(".talk form textarea")).length, 4096);
      }),
  );
}

async function testReading(runner, browser, server, context) {
  const share = await server.share(cpuProfile(82, 200), {
    title: "Read about",
  });
  const path = `${server.url}/p/${share.id}`;

  await runner.test(
    "comments: readers see them and how to sign in; other pages have no comments pane",
    async () => {
      await withPage(
        browser,
        server,
        async (page) => {
          await page.goto(`${path}?v=comments&sv=2`);
          await page.fill(".talk form textarea", "look here");
          await page.click(".talk button:has-text('Comment')");
          await countIs(page, 1);
        },
        { context },
      );
      await withPage(browser, server, async (page) => {
        const requests = [];
        page.on(
          "request",
          (request) => /\/comments\b/.test(request.url()) && requests.push(request.url()),
        );
        await page.goto(path);
        await viewReady(page);
        assert.deepEqual(requests, [], "no comments before the pane is opened");
        await page.keyboard.press("9");
        await countIs(page, 1);
        assert.equal(query(page).get("v"), "comments");
        const kept = await listOf(server, share.id);
        assert.deepEqual(
          await items(page),
          kept.map(({ author, text, pin }) => ({
            author,
            text,
            pin: pin?.function ?? null,
          })),
        );
        assert.equal(
          await page
            .locator(".talk :is(textarea, button:has-text('Edit'), button:has-text('Delete'))")
            .count(),
          0,
        );
        const link = await page.getAttribute(".talk a:has-text('Sign in')", "href");
        assert.equal(link, `/login?next=${encodeURIComponent(`/p/${share.id}?v=comments&sv=2`)}`);

        await page.goto(`${server.url}/d/${share.id}..${share.id}?v=comments&b=table&sv=2`);
        await viewReady(page);
        assert.equal(await page.locator("button[title=Comments], .talk").count(), 0);
        assert.equal(await page.locator(".pane").count(), 1);
        await page.waitForSelector(".pane-table .row");
      });
    },
  );

  await runner.test("comments: further pages are shown on request", () =>
    withPage(browser, server, async (page) => {
      const comment = (n) => ({
        n,
        author: "a",
        text: `comment ${n}`,
        pin: null,
        view: null,
        created_at: "2026-01-01T00:00:00Z",
        edited_at: null,
        mine: false,
        can_delete: false,
      });
      const pages = { "": [1, 2], 2: [3, 4], 4: [5] };
      await page.route(/\/comments(\?|$)/, (route) => {
        const cursor = new URL(route.request().url()).searchParams.get("cursor") ?? "";
        const comments = pages[cursor].map(comment);
        route.fulfill({
          json: {
            comments,
            next_cursor: comments.length === 2 ? String(comments[1].n) : null,
          },
        });
      });
      await page.goto(`${path}?v=comments&sv=2`);
      await countIs(page, 2);
      for (const count of [4, 5]) {
        await page.click("text=Show more");
        await countIs(page, count);
      }
      assert.equal(await page.locator("text=Show more").count(), 0);
      assert.deepEqual(
        (await items(page)).map(({ text }) => text),
        [1, 2, 3, 4, 5].map((n) => `comment ${n}`),
      );
    }),
  );

  await runner.test("a link to a long view is copied as a short link, a short one unchanged", () =>
    withPage(browser, server, async (page, watch) => {
      const long =
        `${path}?q=json&x=` +
        encodeURIComponent(Array.from({ length: 12 }, (_, i) => `~hide:^nothing${i}$`).join("~")) +
        "&sv=2";
      await page.goto(`${path}?q=json&sv=2`);
      await viewReady(page);
      await page.keyboard.press("y");
      await messageShown(page, "Link copied");
      assert.equal(await pasted(page), `${path}?q=json&sv=2`);

      for (const copy of [
        () => page.keyboard.press("y"),
        () => page.click("button:has-text('Copy link')"),
      ]) {
        await page.goto(long);
        await viewReady(page);
        await copy();
        await messageShown(page, "Short link copied");
        const link = await pasted(page);
        assert.match(link, /\/s\/[0-9A-Za-z]{22}$/);
        const followed = await server.call("GET", new URL(link).pathname);
        assert.deepEqual(
          [followed.status, followed.headers.location],
          [302, long.slice(server.url.length)],
        );
      }

      await page.evaluate(() => delete globalThis.ClipboardItem); // older browsers have none
      await page.evaluate(() => navigator.clipboard.writeText(""));
      await page.keyboard.press("y");
      await page.waitForFunction(async () =>
        /\/s\/[0-9A-Za-z]{22}$/.test(await navigator.clipboard.readText()),
      );

      watch.allowed.add(429);
      const problem = {
        type: "/problems/rate-limited",
        title: "Too many requests",
        status: 429,
        detail: "too many new links",
      };
      await page.route("**/api/v1/links", (route) =>
        route.fulfill({
          status: 429,
          headers: { "Content-Type": "application/problem+json" },
          body: JSON.stringify(problem),
        }),
      );
      await page.goto(long);
      await viewReady(page);
      await page.keyboard.press("y");
      await messageShown(page, "No short link (too many new links): long link copied");
      assert.equal(await pasted(page), page.url());
    }),
  );
}

export async function testComments(runner, browser, server) {
  const share = await server.share(cpuProfile(81, 200), {
    title: "Talked about",
  });
  const context = await signedIn(browser, server);
  try {
    await testWriting(runner, browser, server, context, share);
    await testReading(runner, browser, server, context);
  } finally {
    await context.close();
  }
}
