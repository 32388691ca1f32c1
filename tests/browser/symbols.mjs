// Names that come while a page is open: what lacks them, what to do, and the same page with functions.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { soon, viewReady, withPage } from "./harness.mjs";
import { program, root } from "./server.mjs";

const folder = join(process.env.PERFOLIO_SHARED ?? join(root, "../shared"), "data/symbolize");
const profile = join(folder, "normal-cpu.stripped.pprof");

/** The table of the profile's binary, as the command line makes it, and that binary's build id. */
function makeTable(buildIds) {
  const id = readdirSync(folder).find((name) => buildIds.includes(name));
  const made = mkdtempSync(join(tmpdir(), "perfolio-table-"));
  try {
    const table = join(made, "table");
    execFileSync(join(dirname(program), "perfolio-symbolize"), ["-q", "-o", table, join(folder, id, "debuginfo")]);
    return { id, bytes: readFileSync(table) };
  } finally {
    rmSync(made, { recursive: true });
  }
}

export async function testSymbols(runner, browser, server) {
  if (!existsSync(profile)) return;
  await runner.test("symbols: an open page tells which binaries lack names, and has them once their table is there", () =>
    withPage(browser, server, async (page) => {
      const { token } = server;
      const share = (await server.call("POST", "/api/v1/shares", { body: readFileSync(profile), token })).json;
      const { build_ids: ids } = (await server.call("GET", `/api/v1/shares/${share.id}`)).json;
      await page.goto(`${server.url}/p/${share.id}?v=table&sv=2`);
      await page.click(".missing-names summary:has-text('1 binary without names')");
      assert.match(await page.textContent(".missing-names li"), /^pprof-example-app-go \w.+ \w/);
      assert.match(await page.textContent(".missing-names .copy-field code"), /^perfolio debuginfo upload \/home\/\S+\/pprof-example-app-go$/);
      await page.waitForSelector("text=[pprof-example-app-go]");
      const { id, bytes } = makeTable(ids);
      const answer = await server.call("POST", `/api/v1/debuginfo/${id}/table`, { body: bytes, token });
      assert.ok(answer.status < 300, JSON.stringify(answer.json));
      await page.waitForSelector("text=math/big.addVV");
      await soon(async () => assert.equal(await page.$(".missing-names"), null));
      assert.equal(await page.$("text=[pprof-example-app-go]"), null);
    }),
  );
}
