// Sign-in, the team's list, settings: tokens, people, password, audit log.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { program } from "./server.mjs";
import { looks, timeoutMs, screenshots, messageShown, viewReady, withPage } from "./harness.mjs";
import { cpuProfile } from "./profiles.mjs";

/** A browser context whose user has signed in through a one-time link. */
export async function signedIn(browser, server, look = "light", bypassCSP = false) {
  const context = await browser.newContext({
    ...looks[look],
    reducedMotion: "reduce",
    ignoreHTTPSErrors: true,
    bypassCSP,
    permissions: ["clipboard-read", "clipboard-write"],
  });
  context.setDefaultTimeout(timeoutMs);
  // A request, because a page costs as much as a test; the first tests of testAccount use the page.
  const code = new URL(await server.signInLink()).hash.replace("#code=", "");
  const response = await context.request.post(`${server.url}/api/v1/session`, { data: { code } });
  assert.equal(response.status(), 200);
  return context;
}

export async function testAccount(runner, browser, server) {
  await runner.test("a one-time link signs in once and removes its code from the address bar", () =>
    withPage(browser, server, async (page, watch) => {
      const link = await server.signInLink();
      await page.goto(link);
      await page.waitForURL(`${server.url}/shares`);
      await page.click("button:has-text('default')");
      await page.click("text=Sign out");
      await page.waitForURL(`${server.url}/`);
      await page.waitForSelector("text=Sign in");
      watch.allowed.add(401);
      await page.goto(link);
      await page.waitForSelector("text=was already used or has expired");
      assert.ok(!page.url().includes("code="));
    }),
  );

  await runner.test("a reader who is not signed in is sent to the sign-in page and back", () =>
    withPage(browser, server, async (page, watch) => {
      watch.allowed.add(401);
      await page.goto(`${server.url}/settings`);
      await page.waitForURL(/\/login\?next=%2Fsettings/);
      await page.fill("input[type=email]", "nobody@example.org");
      await page.fill("input[type=password]", "not the password");
      await page.click("button:has-text('Sign in')");
      await page.waitForSelector(".error-line span");
    }),
  );

  const context = await signedIn(browser, server);
  const inside = (use) => withPage(browser, server, use, { context });

  await runner.test(
    "the list of shares can be searched, and its shares edited, compared and deleted",
    async () => {
      const needle = await server.share(cpuProfile(41), {
        title: "Needle in the list",
      });
      const other = await server.share(cpuProfile(42), {
        title: "Hay",
        label: "env=needlework",
        visibility: "team",
      });
      await inside(async (page, watch) => {
        await page.goto(`${server.url}/shares`);
        await page.waitForSelector(".list tbody tr");
        await page.fill("[aria-label='Search profiles']", "needle");
        await page.waitForFunction(() => document.querySelectorAll(".list tbody tr").length === 2);
        assert.deepEqual(
          (
            await page.$$eval(".list tbody td:last-child", (all) =>
              all.map((cell) => cell.firstChild.textContent),
            )
          ).sort(),
          ["anyone with the link", "the team only"],
        );
        for (const box of await page.$$(".list tbody input")) await box.check();
        await page.click("button:has-text('Compare')");
        await page.waitForURL(`${server.url}/d/${needle.id}..${other.id}`);
        await viewReady(page);

        // By keys: to a side of the comparison, then through the team's list, newest first.
        await page.keyboard.press("[");
        await page.waitForURL(`${server.url}/p/${needle.id}`);
        await viewReady(page);
        await page.keyboard.press("2");
        const ids = (
          await server.call("GET", "/api/v1/shares?limit=50", {
            token: server.token,
          })
        ).json.shares.map(({ id }) => id);
        const newer = ids[ids.indexOf(needle.id) - 1];
        await page.keyboard.press("]");
        await page.waitForURL(`${server.url}/p/${newer}?v=table&sv=2`);
        await viewReady(page);
        await page.keyboard.press("[");
        await page.waitForURL(`${server.url}/p/${needle.id}?v=table&sv=2`);

        await page.goto(`${server.url}/p/${needle.id}`);
        await viewReady(page);
        await page.click("button:has-text('Settings')");
        await page.fill("dialog label:has-text('Title') + input", "Found");
        assert.equal(
          await page.textContent(
            "dialog label:has-text('Who can see it') ~ .select option:checked",
          ),
          "Anyone with the link",
        );
        await page.fill("dialog textarea", "- with a *note*");
        await page.selectOption("dialog label:has-text('Expires') ~ .select select", "1d");
        await page.click("dialog button:has-text('Save')");
        await page.waitForSelector("h1:has-text('Found')");
        assert.equal(await page.textContent(".markdown em"), "note");
        assert.match(await page.textContent(".facts"), /expires tomorrow/);

        await page.click("button:has-text('Settings')");
        await page.click("dialog a:has-text('Delete')");
        await page.click("text=Delete forever");
        await page.waitForSelector("h1:has-text('Deleted')");
        watch.allowed.add(410);
        await page.goto(`${server.url}/p/${needle.id}`);
        await page.waitForSelector("text=This profile is gone");
      });
    },
  );

  await runner.test("the list of shares shows more entries on request", async () => {
    const bytes = cpuProfile(43, 20);
    for (let i = 0; i < 52; i++) await server.share(bytes, { title: `Paged ${i}` });
    await inside(async (page) => {
      await page.goto(`${server.url}/shares?q=paged`);
      await page.waitForFunction(() => document.querySelectorAll(".list tbody tr").length === 50);
      await page.click("text=Show more");
      await page.waitForFunction(() => document.querySelectorAll(".list tbody tr").length === 52);
      assert.equal(await page.locator("text=Show more").count(), 0);
    });
  });

  await runner.test(
    "the form for a token offers every scope that a route requires, and no other",
    () =>
      inside(async (page) => {
        const routes = execFileSync(program, ["routes", "--json"], {
          encoding: "utf8",
        })
          .trim()
          .split("\n")
          .map(JSON.parse);
        // Operator tokens are created on the command line.
        const used = new Set(
          routes.flatMap((route) => route.scopes).filter((scope) => scope !== "operator"),
        );
        await page.goto(`${server.url}/settings#tokens`);
        await page.check("#tokens [value=custom]");
        const boxes = await page
          .locator("#tokens fieldset")
          .locator("[type=checkbox]")
          .evaluateAll((all) => all.map((box) => box.value));
        assert.deepEqual(boxes.sort(), [...used].sort());
      }),
  );

  await runner.test("a token is shown once, works, and is refused after it was revoked", () =>
    inside(async (page) => {
      await page.goto(`${server.url}/settings`);
      await page.fill("#tokens label:has-text('Name') + input", "browser test");
      await page.click("text=Create token");
      const token = await page.textContent("#tokens .made code");
      assert.match(token, /^pf_[0-9A-Za-z]{43}$/);
      assert.equal((await server.call("GET", "/api/v1/shares", { token })).status, 200);
      await page.reload();
      await page.waitForSelector("#tokens .rows-list");
      assert.equal(await page.locator(".made").count(), 0);
      const revoke = page.locator("#tokens li:has-text('browser test') button");
      await revoke.click();
      await page.click("#tokens button:has-text('Revoke forever')");
      await messageShown(page, "Token revoked");
      assert.equal((await server.call("GET", "/api/v1/shares", { token })).status, 401);
    }),
  );

  await runner.test(
    "a token has exactly the scopes of the chosen preset, and the list shows the preset",
    () =>
      inside(async (page) => {
        const presets = {
          ci: ["CI", "read, share"],
          agent: ["Agent", "ingest, debuginfo"],
          reader: ["Read-only", "read"],
          admin: ["Admin", "ingest, read, share, debuginfo, admin"],
        };
        await page.goto(`${server.url}/settings#tokens`);
        for (const [key, [name, scopes]] of Object.entries(presets)) {
          await page.fill("#tokens label:has-text('Name') + input", `preset ${key}`);
          await page.check(`#tokens [value=${key}]`);
          assert.equal(await page.textContent(`#tokens label:has([value=${key}]) strong`), name);
          assert.equal(await page.textContent(`#tokens label:has([value=${key}]) code`), scopes);
          await page.click("text=Create token");
          await page.waitForSelector(`#tokens .made strong:text-is('preset ${key}')`);
          const token = await page.textContent("#tokens .made code");
          const granted = (await server.call("GET", "/api/v1/session", { token })).json.scopes;
          assert.deepEqual(granted.sort(), scopes.split(", ").sort());
          await page.waitForSelector(
            `#tokens li:has-text('preset ${key}'):has-text('${name} (') code`,
          );
          const listed = await page.textContent(`#tokens li:has-text('preset ${key}') code`);
          assert.deepEqual(listed.split(", ").sort(), scopes.split(", ").sort());
        }
        // The agent's token shows how to use it; a link chooses the preset.
        assert.equal(await page.locator("#tokens .made:has-text('perfolio-agent')").count(), 0);
        await page.goto(`${server.url}/settings?token=agent#tokens`);
        assert.ok(await page.isChecked("#tokens [value=agent]"));
        await page.fill("#tokens label:has-text('Name') + input", "host 1");
        await page.click("text=Create token");
        await page.waitForSelector("#tokens .made:has-text('sudo perfolio-agent --server=')");
        await page.check("#tokens [value=custom]");
        assert.ok(await page.isDisabled("#tokens [type=submit]"), "a token needs a name");
        await page.fill("#tokens label:has-text('Name') + input", "mixed");
        assert.ok(await page.isDisabled("#tokens [type=submit]"), "a token needs a scope");
        for (const scope of ["read", "ingest"])
          await page.check(`#tokens [type=checkbox][value=${scope}]`);
        await page.click("text=Create token");
        await page.waitForSelector(
          "#tokens li:has-text('mixed'):has-text('Custom (ingest, read)')",
        );
        const { tokens } = (await server.call("GET", "/api/v1/tokens", { token: server.token }))
          .json;
        for (const { id, name } of tokens)
          if (/^(preset |host 1$|mixed$)/.test(name))
            await server.call("DELETE", `/api/v1/tokens/${id}`, {
              token: server.token,
            });
      }),
  );

  const invite = async (email, role) =>
    (
      await server.call("POST", "/api/v1/invitations", {
        body: { email, role },
        token: server.token,
      })
    ).json;

  await runner.test(
    "an invitation that is no longer valid shows what to do instead of a form",
    async () => {
      const used = await invite("once@example.org", "member");
      const withdrawn = await invite("never@example.org", "viewer");
      await withPage(browser, server, async (page) => {
        await page.goto(used.url);
        await page.waitForSelector("b:has-text('once@example.org')");
        await page.fill("label:has-text('Name') + input", "Once");
        await page.fill("input[type=password]", "a long enough one");
        await page.click("button:has-text('Join')");
        await page.waitForURL(`${server.url}/shares`);
      });
      assert.equal(
        (
          await server.call("DELETE", `/api/v1/invitations/${withdrawn.id}`, {
            token: server.token,
          })
        ).status,
        204,
      );
      for (const link of [used.url, withdrawn.url])
        await withPage(browser, server, async (page, watch) => {
          watch.allowed.add(404);
          await page.goto(link);
          await page.waitForSelector("text=ask an owner of the team for a new one");
          assert.equal(await page.locator("form").count(), 0);
          await page.click("main a:has-text('Sign in')");
          await page.waitForURL(`${server.url}/login`);
        });
      // Two people with the same link: the page of the slower one reports this and shows no form.
      const raced = await invite("raced@example.org", "member");
      await withPage(browser, server, async (page, watch) => {
        watch.allowed.add(404);
        await page.goto(raced.url);
        await page.fill("label:has-text('Name') + input", "Slow");
        await page.fill("input[type=password]", "a long enough one");
        assert.equal(
          (
            await server.call("DELETE", `/api/v1/invitations/${raced.id}`, {
              token: server.token,
            })
          ).status,
          204,
        );
        await page.click("button:has-text('Join')");
        await page.waitForSelector("text=ask an owner of the team for a new one");
      });
    },
  );

  await runner.test(
    "a viewer sees that sharing requires another role instead of a form that fails",
    async () => {
      const invited = await invite("looker@example.org", "viewer");
      await withPage(browser, server, async (page) => {
        await page.goto(invited.url);
        await page.fill("label:has-text('Name') + input", "Looker");
        await page.fill("input[type=password]", "a long enough one");
        await page.click("button:has-text('Join')");
        await page.waitForURL(`${server.url}/shares`);
        await page.goto(`${server.url}/`);
        await page.waitForSelector("text=ask an owner of the team to make you a member");
        assert.equal(await page.locator("#file").count(), 0);
        await page.screenshot({
          path: join(screenshots, "light-landing-viewer.png"),
        });
        await page.click("main a:has-text('The team’s profiles')");
        await page.waitForURL(`${server.url}/shares`);
      });
    },
  );

  await runner.test("an invitation is accepted, then role and password are changed", async () => {
    let link = "";
    await inside(async (page) => {
      await page.goto(`${server.url}/settings#people`);
      await page.fill("#people input[type=email]", "new@example.org");
      await page.click("text=Create invitation link");
      link = await page.textContent("#people .made code");
    });
    await withPage(browser, server, async (page) => {
      await page.goto(link);
      await page.fill("label:has-text('Name') + input", "New Person");
      await page.fill("input[type=password]", "a long enough one");
      await page.click("button:has-text('Join')");
      await page.waitForURL(`${server.url}/shares`);
      await page.goto(`${server.url}/settings`);
      await page.waitForSelector("#password");
      assert.equal(await page.locator("#people, #audit").count(), 0, "only owners manage people");
      await page.fill("[autocomplete=current-password]", "a long enough one");
      await page.fill("[autocomplete=new-password]", "another long enough");
      await page.click("button:has-text('Change password')");
      await messageShown(page, "Password changed");
      await page.waitForSelector("#sign-ins >> text=None.");
    });
    for (let i = 0; i < 2; i++) {
      const { status } = await server.call("POST", "/api/v1/session", {
        body: { email: "new@example.org", password: "not the password" },
      });
      assert.equal(status, 401);
    }
    await withPage(browser, server, async (page) => {
      await page.goto(`${server.url}/login?next=/settings`);
      await page.fill("input[type=email]", "new@example.org");
      await page.fill("input[type=password]", "another long enough");
      await page.click("button:has-text('Sign in')");
      await page.waitForURL(`${server.url}/settings`);
      await page.waitForSelector("#sign-ins >> text=/^2 since .*:$/");
      await page.waitForSelector(
        "#sign-ins li:has-text('127.0.0.1'):has-text('2 times, last'), #sign-ins " +
          "li:has-text('::1'):has-text('2 times, last')",
      );
    });
    await inside(async (page) => {
      await page.goto(`${server.url}/settings`);
      await page.selectOption("[aria-label='Role of new@example.org']", "viewer");
      await messageShown(page, "Role changed");
      await page.click("[aria-label='Remove: new@example.org']");
      await page.click("[aria-label='Remove from the team: new@example.org']");
      await page.waitForFunction(
        () => !document.querySelector("#people").textContent.includes("New Person"),
      );
      await page.waitForSelector("#audit >> text=/user\\./ >> nth=0");
      await page.waitForSelector("#team >> text=/Stored/ >> nth=0");
    });
  });

  await context.close();
}
