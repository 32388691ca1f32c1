// Settings that several people change: a change is refused if the page shows an outdated
// version, the changes of others are listed, and typed text stays.
import assert from "node:assert/strict";
import { join } from "node:path";
import { axeFindings, focusIs, screenshots, soon, withPage } from "./harness.mjs";
import { signedIn } from "./account.mjs";

export async function testSettings(runner, browser, server) {
  if (!runner.wants("settings")) return;
  const context = await signedIn(browser, server);
  const call = async (method, path, body) =>
    (
      await server.call(method, `/api/v1/${path}`, {
        body,
        token: server.token,
      })
    ).json;
  const rules = async () =>
    (await call("GET", "retention")).rules.map(({ query, keep_s }) => [query, keep_s]);
  const newRule = "#retention form[aria-label='New rule']";
  const add = async (page, query, keep) => {
    await page.fill(`${newRule} label:has-text('Selector') + input`, query);
    await page.fill(`${newRule} label:has-text('Keep') + input`, keep);
    await page.click(`${newRule} button:has-text('Add rule')`);
  };
  const open = async (page, watch) => {
    for (const status of [404, 409, 412]) watch.allowed.add(status);
    await page.goto(`${server.url}/settings`);
    for (const id of ["#tokens", "#team", "#people", "#retention", "#series"])
      await page.waitForSelector(`${id} :is(li, meter, form button)`);
    await page.waitForSelector("#retention .rule-default");
    await page.waitForSelector("#people .rows-list li");
  };
  const clean = async () => {
    for (const { id } of (await call("GET", "retention")).rules)
      await call("DELETE", `retention/${id}`);
  };
  const inSettings = (use) =>
    withPage(browser, server, async (page, watch) => (await open(page, watch), use(page, watch)), {
      context,
    });

  await runner.test(
    "settings: adding a rule never replaces one, however its selector is written",
    () =>
      inSettings(async (page) => {
        await add(page, '{env="prod",team="a"}', "90d");
        await page.waitForSelector("#retention .rule-query");
        for (const same of ['{env="prod",team="a"}', "{ team = 'a', env=\"prod\" }"]) {
          await add(page, same, "1d");
          await page.waitForSelector(
            `${newRule} .error-line:has-text('Rule 1, {env="prod",team="a"}, already ` +
              "selects the same')",
          );
          assert.deepEqual(await rules(), [['{env="prod",team="a"}', 90 * 86400]]);
          assert.equal(
            await page.inputValue(`${newRule} label:has-text('Selector') + input`),
            same,
            "the typed text stays",
          );
        }
        await clean();
      }),
  );

  /*
   * Changes in a tab that shows an outdated version:
   *   what     names the change in the title of the test
   *   place    the section of the page that contains the form
   *   before   creates what is changed, before the page is loaded
   *   prepare  opens or fills in the form
   *   other    what someone else changes then
   *   press    submits the form, which the server refuses
   *   changes  matches the page's list of what someone else changed
   *   holds    checks that this change is still stored and the typed text still in the form, and
   *            restores the settings
   */
  const stale = [
    {
      what: "the team's name",
      place: "#team",
      prepare: (page) => page.fill("#team input", "Typed here"),
      other: async () => void (await call("PATCH", "tenant", { name: "Their name" })),
      press: (page) => page.click("#team button:has-text('Rename')"),
      changes: /The team’s name: Their name \(was: default\)/,
      holds: async (page) => {
        assert.equal((await call("GET", "tenant")).name, "Their name");
        assert.equal(await page.inputValue("#team input"), "Typed here");
        await page.click("#team button:has-text('Rename')");
        await soon(async () => assert.equal((await call("GET", "tenant")).name, "Typed here"));
        await call("PATCH", "tenant", { name: "default" });
      },
    },
    {
      what: "series labels",
      place: "#series",
      prepare: (page) => page.fill("#series input", "mine"),
      other: async () => void (await call("PATCH", "tenant", { sample_labels: "theirs,too" })),
      press: (page) => page.click("#series button:has-text('Save labels')"),
      changes: /Series labels: theirs, too \(was: none\)/,
      holds: async (page) => {
        assert.equal((await call("GET", "tenant")).sample_labels, "theirs,too");
        await page.waitForSelector("#series code:has-text('theirs, too')");
        assert.equal(await page.inputValue("#series input"), "mine");
        await call("PATCH", "tenant", { sample_labels: null });
      },
    },
    {
      what: "the period of a rule",
      place: "#retention",
      before: async () =>
        void (await call("POST", "retention", {
          query: '{env="x"}',
          keep: "30d",
        })),
      prepare: async (page) => {
        await page.click(`#retention [aria-label='Change the rule for {env="x"}'][aria-expanded]`);
        await page.fill(`form[aria-label='Change the rule for {env="x"}'] input`, "3d");
      },
      other: async () =>
        void (await call("POST", "retention", {
          query: '{env="x"}',
          keep: "60d",
        })),
      press: (page) => page.click("#retention button:has-text('Save')"),
      changes: /Rule \{env="x"\}: kept 60 days \(was: kept 30 days\)/,
      holds: async (page) => {
        assert.deepEqual(await rules(), [['{env="x"}', 60 * 86400]]);
        assert.equal(
          await page.inputValue(`form[aria-label='Change the rule for {env="x"}'] input`),
          "3d",
        );
        await page.click("#retention button:has-text('Save')");
        await soon(async () => assert.deepEqual(await rules(), [['{env="x"}', 3 * 86400]]));
        await clean();
      },
    },
    {
      what: "the period of a rule that someone else removed",
      place: "#retention",
      before: async () =>
        void (await call("POST", "retention", {
          query: '{env="x"}',
          keep: "30d",
        })),
      prepare: async (page) => {
        await page.click(`#retention [aria-label='Change the rule for {env="x"}'][aria-expanded]`);
        await page.fill(`form[aria-label='Change the rule for {env="x"}'] input`, "3d");
      },
      other: clean,
      press: (page) =>
        page.focus("#retention button:has-text('Save')").then(() => page.keyboard.press("Enter")),
      changes: /Rule \{env="x"\} \(removed\)/,
      holds: async (page) => {
        assert.deepEqual(await rules(), []);
        assert.equal(
          await page.inputValue(`form[aria-label='Change the rule for {env="x"}'] input`),
          "3d",
        );
        await focusIs(page, () => document.activeElement.textContent, "Save");
        await page.waitForSelector("#retention li:has-text('Someone removed this rule')");
        await page.keyboard.press("Enter");
        await soon(async () => assert.deepEqual(await rules(), [['{env="x"}', 3 * 86400]]));
        await page.waitForSelector("#retention li.edited", {
          state: "detached",
        });
        await page.waitForSelector("#retention li:has-text('kept 3 days')");
        await clean();
      },
    },
    {
      what: "the removal of a rule that someone else changed",
      place: "#retention",
      before: async () =>
        void (await call("POST", "retention", {
          query: '{env="x"}',
          keep: "30d",
        })),
      prepare: (page) => page.click(`#retention [aria-label='Remove: {env="x"}']`),
      other: async () => {
        await call("POST", "retention", {
          query: '{env="y"}',
          keep: "60d",
          position: 1,
        });
        await call("POST", "retention", { query: '{env="x"}', keep: "forever" });
      },
      press: (page) => page.click("#retention button:has-text('Remove rule')"),
      changes:
        /Rule \{env="y"\}: kept 60 days \(new\).*Rule \{env="x"\}: kept forever \(was: kept 30 days\)/,
      holds: async () => {
        assert.deepEqual(await rules(), [
          ['{env="y"}', 60 * 86400],
          ['{env="x"}', 0],
        ]);
        await clean();
      },
    },
    {
      what: "the order of rules",
      place: "#retention",
      before: async () => {
        for (const query of ["a", "b", "c"])
          await call("POST", "retention", { query, keep: "30d" });
      },
      prepare: () => undefined,
      other: async () =>
        void (await call("POST", "retention", {
          query: "c",
          keep: "30d",
          position: 1,
        })),
      press: (page) => page.click("[aria-label='Move b up']"),
      changes: /The order has changed/,
      holds: async (page) => {
        assert.deepEqual(
          (await rules()).map(([query]) => query),
          ["c", "a", "b"],
        );
        await page.click("[aria-label='Move b up']");
        await soon(async () =>
          assert.deepEqual(
            (await rules()).map(([query]) => query),
            ["c", "b", "a"],
          ),
        );
        await clean();
      },
    },
    {
      what: "a new rule",
      place: "#retention",
      prepare: () => undefined,
      other: async () => void (await call("POST", "retention", { query: "theirs", keep: "30d" })),
      press: (page) => add(page, "mine", "3d"),
      changes: /Rule theirs: kept 30 days \(new\)/,
      holds: async () => {
        assert.deepEqual(
          (await rules()).map(([query]) => query),
          ["theirs"],
        );
        await clean();
      },
    },
    {
      what: "an invitation",
      place: "#people",
      prepare: (page) => page.fill("#people input[type=email]", "both@example.org"),
      other: async () =>
        void (await call("POST", "invitations", {
          email: "both@example.org",
          role: "viewer",
        })),
      press: (page) => page.click("text=Create invitation link"),
      changes: /Invitation of both@example.org: viewer \(new\)/,
      holds: async () => {
        const [{ id, role }] = (await call("GET", "invitations")).invitations.filter(
          ({ email }) => email === "both@example.org",
        );
        assert.equal(role, "viewer");
        await call("DELETE", `invitations/${id}`);
      },
    },
  ];
  for (const { what, place, before, prepare, other, press, changes, holds } of stale)
    await runner.test(
      `settings: ${what}: an outdated tab undoes nothing and shows what changed`,
      async () => {
        await before?.();
        await inSettings(async (page) => {
          await prepare(page);
          await other();
          await press(page);
          await page.waitForSelector(`${place} .error-line:has-text('since you loaded')`);
          assert.match(await page.textContent(`${place} .error-line .changes`), changes);
          await holds(page);
        });
      },
    );

  await runner.test(
    "settings: changes requested during another change are sent after it",
    async () => {
      for (const query of ["a", "b", "c", "d"])
        await call("POST", "retention", { query, keep: "30d" });
      await inSettings(async (page) => {
        // Holds back the requests until all presses are done.
        let held, release;
        const hold = () => (held = new Promise((resolve) => (release = resolve)));
        await page.route("**/api/v1/retention", async (route) => (await held, route.continue()));
        hold();
        await page.focus("[aria-label='Move d up']");
        // once more than it can move
        for (let i = 0; i < 4; i++) await page.keyboard.press("Enter");
        release();
        await soon(async () =>
          assert.deepEqual(
            (await rules()).map(([query]) => query),
            ["d", "a", "b", "c"],
          ),
        );
        await page.waitForSelector("#retention .rules-list li:first-child :text-is('d')");
        await focusIs(page, () => document.activeElement.getAttribute("aria-label"), "Move d down");

        // After a refusal, changes requested before it was seen are discarded.
        await call("POST", "retention", {
          query: "d",
          keep: "30d",
          position: 4,
        });
        hold();
        for (let i = 0; i < 2; i++) await page.keyboard.press("Enter");
        release();
        await page.waitForSelector("#retention .changes:has-text('The order has changed')");
        assert.deepEqual(
          (await rules()).map(([query]) => query),
          ["a", "b", "c", "d"],
        );

        // A form that is submitted twice is sent once.
        await page.fill(`${newRule} label:has-text('Selector') + input`, "e");
        await page.fill(`${newRule} label:has-text('Keep') + input`, "1d");
        hold();
        for (let i = 0; i < 2; i++) await page.keyboard.press("Enter");
        await page.waitForSelector(`${newRule}[aria-busy=true]`);
        release();
        await page.waitForSelector(`${newRule}[aria-busy=false]`);
        assert.equal((await rules()).length, 5);
        assert.equal(await page.textContent(`${newRule} .error-line`), "");
      });
      await clean();
    },
  );

  await runner.test("settings: the audit log contains the changes made on the page", () =>
    inSettings(async (page) => {
      await page.waitForSelector("#audit td");
      await add(page, '{audit="log"}', "3d");
      // Only this rule, because other tests change other settings of the team meanwhile.
      const ofRule = page.locator(`#audit tbody tr:has-text('{audit="log"}')`);
      await ofRule.first().waitFor();
      assert.equal(await ofRule.count(), 1);
      await page.click(`#retention [aria-label='Remove: {audit="log"}']`);
      await page.click(`#retention [aria-label='Remove rule: {audit="log"}']`);
      await soon(async () => assert.equal(await ofRule.count(), 2));
      // Newest first.
      assert.deepEqual(
        (await ofRule.allTextContents()).map((text) => /retention\.(\w+)/.exec(text)[1]),
        ["remove", "set"],
      );
    }),
  );

  await runner.test(
    "settings: people: an outdated tab undoes nothing and shows what changed",
    async () => {
      const tenant = (await call("GET", "tenant")).id;
      const person = await call("POST", `admin/tenants/${tenant}/users`, {
        email: "changing@example.org",
        role: "member",
        password: "a long enough one",
      });
      await inSettings(async (page) => {
        const set = (role) => call("PATCH", `users/${person.id}`, { role });
        await set("viewer");
        await page.selectOption("[aria-label='Role of changing@example.org']", "owner");
        await page.waitForSelector(
          "#people .changes:has-text('changing@example.org: viewer (was: member)')",
        );
        assert.equal(
          await page.inputValue("[aria-label='Role of changing@example.org']"),
          "viewer",
        );
        await set("owner");
        await page.click("[aria-label='Remove: changing@example.org']");
        await page.click("[aria-label='Remove from the team: changing@example.org']");
        await page.waitForSelector(
          "#people .changes:has-text('changing@example.org: owner (was: viewer)')",
        );
        assert.ok(
          (await call("GET", "users")).users.some(({ email }) => email === "changing@example.org"),
        );
        await call("DELETE", `users/${person.id}`);
        await page.click("[aria-label='Remove: changing@example.org']");
        await page.click("[aria-label='Remove from the team: changing@example.org']");
        await page.waitForSelector("#people .changes:has-text('changing@example.org (removed)')");
      });
    },
  );

  await runner.test(
    "settings: a token that was already revoked disappears from the list",
    async () => {
      const made = await call("POST", "tokens", {
        name: "short-lived",
        scopes: ["read"],
      });
      await inSettings(async (page) => {
        await page.click("[aria-label='Revoke: short-lived']");
        await call("DELETE", `tokens/${made.id}`);
        await page.click("[aria-label='Revoke forever: short-lived']");
        await page.waitForSelector("#tokens .changes:has-text('Token “short-lived” (removed)')");
        assert.equal(
          await page.locator("#tokens .rows-list li:has-text('short-lived')").count(),
          0,
        );
      });
    },
  );
  await context.close();

  for (const look of ["light", "dark", "phone"]) {
    const signed = await signedIn(browser, server, look, true);
    await runner.test(`settings, ${look}: the list of other changes is accessible`, () =>
      withPage(
        browser,
        server,
        async (page, watch) => {
          await open(page, watch);
          await call("POST", "retention", {
            query: '{env="theirs",service_name="a-service-with-a-long-name"}',
            keep: "30d",
          });
          await add(page, "mine", "3d");
          await page.waitForSelector("#retention .changes");
          assert.deepEqual(await axeFindings(page), []);
          const wide = await page.evaluate(
            () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
          );
          assert.ok(wide <= 0, `${wide} px too wide`);
          await page.locator("#retention").screenshot({
            path: join(screenshots, `${look}-settings-changed.png`),
          });
          await clean();
        },
        { context: signed },
      ),
    );
    await signed.close();
  }
}
