// The focus after each button that removes itself or its container: never on the page's body,
// because users of keys would start at the top again. Uses only keys.
import assert from "node:assert/strict";
import { dropFiles, settled, soon, viewReady, withPage } from "./harness.mjs";
import { signedIn } from "./account.mjs";
import { cpuProfile } from "./profiles.mjs";

export async function testFocus(runner, browser, server) {
  if (!runner.wants("focus")) return;
  const context = await signedIn(browser, server);
  const call = async (method, path, body) =>
    (
      await server.call(method, `/api/v1/${path}`, {
        body,
        token: server.token,
      })
    ).json;
  const share = await server.share(cpuProfile(81, 300), { title: "Focus" });
  const settings = async (page) => {
    await page.goto(`${server.url}/settings`);
    await page.waitForSelector("#retention .rule-default");
    await page.waitForSelector("#people .rows-list li");
    await page.waitForSelector("#tokens .rows-list");
  };
  const press = async (page, selector) => {
    await page.locator(selector).first().focus();
    await page.waitForLoadState("networkidle"); // loads what the first focus requires
    await page.keyboard.press("Enter");
  };
  const landing =
    (...names) =>
    async (page) => {
      await page.goto(`${server.url}/`);
      await page.waitForSelector(".drop");
      await dropFiles(
        page,
        names.map((name, i) => ({ name, bytes: cpuProfile(82 + i) })),
      );
      await viewReady(page);
    };
  const onShare =
    (query = "") =>
    async (page) => {
      await page.goto(`${server.url}/p/${share.id}${query}`);
      await viewReady(page);
    };
  /** An action, and a selector of the element that is focused afterwards. */
  const steps = [
    [
      "revoking a token",
      settings,
      async (page) => {
        await press(page, "[aria-label='Revoke: first']");
        await press(page, "[aria-label='Revoke forever: first']");
        await page.waitForSelector("#tokens li:has-text('first')", {
          state: "detached",
        });
      },
      "[aria-label='Revoke: second']",
    ],
    [
      "revoking the token that is the last in the list",
      settings,
      async (page) => {
        await press(page, "[aria-label='Revoke: second']");
        await press(page, "[aria-label='Revoke forever: second']");
        await page.waitForSelector("#tokens li:has-text('second')", {
          state: "detached",
        });
      },
      "#tokens :is(button, input)",
    ],
    [
      "withdrawing an invitation",
      settings,
      async (page) => {
        await press(page, "[aria-label='Withdraw the invitation of focus@example.org']");
        await page.waitForSelector("#people li:has-text('focus@example.org')", {
          state: "detached",
        });
      },
      "#people :is(button, input, select)",
    ],
    [
      "removing a person",
      settings,
      async (page) => {
        await press(page, "[aria-label='Remove: leaving@example.org']");
        await press(page, "[aria-label='Remove from the team: leaving@example.org']");
        await page.waitForSelector("#people li:has-text('leaving@example.org')", {
          state: "detached",
        });
      },
      "#people :is(button, input, select)",
    ],
    [
      "removing a retention rule",
      settings,
      async (page) => {
        await press(page, "[aria-label='Remove: one']");
        await press(page, "[aria-label='Remove rule: one']");
        await page.waitForSelector("#retention .rule-query:has-text('one')", {
          state: "detached",
        });
      },
      "#retention [aria-label$=' two'], #retention [aria-label*=' two ']",
    ],
    [
      "cancelling the change of a rule",
      settings,
      async (page) => {
        await press(page, "#retention [aria-label='Change the rule for two'][aria-expanded]");
        await press(
          page,
          "#retention form[aria-label='Change the rule for two'] button:has-text('Cancel')",
        );
      },
      "[aria-label='Change the rule for two']",
    ],
    [
      "removing one of two files",
      landing("one.pb.gz", "two.pb.gz"),
      (page) => press(page, "[aria-label='Remove one.pb.gz']"),
      ".ready button",
    ],
    [
      "removing the only file",
      landing("one.pb.gz"),
      (page) => press(page, "[aria-label='Remove one.pb.gz']"),
      "#file",
    ],
    [
      "closing the comparison of two files",
      landing("one.pb.gz", "two.pb.gz"),
      (page) => press(page, ".ready .actions button:has-text('Cancel')"),
      "#file",
    ],
    [
      "sending a file",
      landing("one.pb.gz"),
      async (page) => {
        await press(page, ".ready button:has-text('Create link')");
        await page.waitForSelector(".done");
      },
      ".done a",
    ],
    [
      "sharing another",
      null,
      async (page) => {
        await landing("one.pb.gz")(page);
        await press(page, ".ready button:has-text('Create link')");
        await page.waitForSelector(".done");
        await press(page, ".done button:has-text('Share another profile')");
        await page.waitForSelector(".drop");
      },
      "#file",
    ],
    [
      "saving the settings of a share",
      onShare(),
      async (page) => {
        await press(page, ".profile-tools button:has-text('Settings')");
        await page.fill("dialog label:has-text('Title') + input", "Focused");
        await press(page, "dialog button:has-text('Save')");
        await page.waitForSelector("h1:has-text('Focused')");
      },
      ".profile-tools button",
    ],
    [
      "closing a dialog",
      onShare(),
      async (page) => {
        await press(page, ".profile-tools button:has-text('Compare')");
        await page.waitForSelector("dialog input");
        await page.keyboard.press("Escape");
        await page.waitForSelector("dialog", { state: "detached" });
      },
      ".profile-tools button",
    ],
    [
      "removing a rule of the view",
      onShare("?x=hide:runtime&sv=2"),
      async (page) => {
        await press(page, ".rules button[aria-label^='Remove'], .rules button[title^='Remove']");
        await page.waitForFunction(() => !location.search.includes("x="));
      },
      "*",
    ],
    [
      "deleting a comment",
      onShare("?v=comments&sv=2"),
      async (page) => {
        await page.fill(".talk form textarea", "To go");
        await press(page, ".talk form button:has-text('Comment')");
        await page.waitForSelector(".talk-list > li");
        await press(page, ".talk-list button:has-text('Delete')");
        await press(page, ".talk-list button:has-text('Delete forever')");
        await page.waitForSelector(".talk-list > li", { state: "detached" });
      },
      ".talk *",
    ],
  ];
  for (const name of ["first", "second"]) await call("POST", "tokens", { name, scopes: ["read"] });
  for (const query of ["one", "two"]) await call("POST", "retention", { query, keep: "30d" });
  await call("POST", "invitations", {
    email: "focus@example.org",
    role: "viewer",
  });
  await call("POST", `admin/tenants/${(await call("GET", "tenant")).id}/users`, {
    email: "leaving@example.org",
    role: "member",
    password: "a long enough one",
  });
  for (const [what, open, act, wanted] of steps)
    await runner.test(`focus: an element nearby is focused after ${what}`, () =>
      withPage(
        browser,
        server,
        async (page) => {
          await open?.(page);
          await act(page);
          for (let i = 0; i < 3; i++) await settled(page); // it may move once more
          await soon(async () => {
            const { isThere, has } = await page.evaluate((selector) => {
              const has = document.activeElement;
              return {
                isThere: has !== document.body && has.matches(selector),
                has: has.outerHTML.slice(0, 200),
              };
            }, wanted);
            assert.ok(isThere, `${wanted} has not the focus, but ${has}`);
          });
        },
        { context },
      ),
    );
  for (const { id } of (await call("GET", "retention")).rules)
    await call("DELETE", `retention/${id}`);
  await context.close();
}
