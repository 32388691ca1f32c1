// The bytes that the server receives contain nothing that was redacted, and no number changes.
import assert from "node:assert/strict";
import { gunzipSync, gzipSync } from "node:zlib";
import { axeFindings, dropFiles, viewReady, withPage } from "./harness.mjs";
import { cpuSamples, decodePprof, encodePprof, topOf, twoTypes } from "./profiles.mjs";

const secret = {
  folder: "/home/vera/secret-project/src",
  binary: "/opt/vault-7/bin/ledgerd --token=hunter2",
  comment: "started as: ledgerd --listen 10.9.8.7",
  note: "seen on Friday with /home/vera/notes.txt",
  unknown: "bytes that nobody can read",
};
const samples = cpuSamples(81, 60).map((sample, i) => ({
  ...sample,
  labels: {
    customer: `cust-${i % 7}-acme`,
    region: "eu-west",
    cmdline: "ledgerd -x",
    "process.command_args": "open sesame",
  },
}));
const file = encodePprof({
  types: twoTypes,
  samples,
  durationNs: 1e9,
  defaultType: "cpu",
  comments: [secret.comment, secret.note],
  binary: secret.binary,
  folder: secret.folder,
  unknown: Buffer.from(secret.unknown),
});

export async function testRedact(runner, browser, server) {
  const open = async (page, name, bytes) => {
    await page.goto(`${server.url}/`);
    await page.waitForSelector(".drop");
    await dropFiles(page, [{ name, bytes }]);
    await page.click("summary:has-text('Redact before upload')");
  };
  /**
   * The bytes that the server stored for the share that the page creates now: compressed and
   * uncompressed.
   */
  const send = async (page) => {
    await page.click("button:has-text('Create link')");
    await page.waitForSelector(".done");
    const link = new URL(await page.getAttribute(".done a.primary", "href")).pathname;
    const { bytes } = await server.call("GET", `${link}/raw`);
    const top = (await server.call("GET", `/api/v1/shares/${link.slice(3)}/top?limit=0`)).json;
    return {
      bytes,
      text: gunzipSync(bytes).toString("latin1"),
      top: new Map(top.functions.map(({ name, flat, cum }) => [name, { flat, cum }])),
    };
  };
  const has = (text, words) => words.filter((word) => text.includes(word));

  await runner.test(
    "redacted parts of pprof are nowhere in the bytes that the server receives",
    () =>
      withPage(browser, server, async (page) => {
        await open(page, "ledger.pb.gz", file);
        await page.selectOption("label:has-text('Paths, including') ~ .select select", "number");
        await page.check(".redact-labels .check:has-text('customer') input");
        await page.check(".check:has-text('command line') input");
        await page.waitForSelector(".preview-note >> text=This is what will be uploaded");
        await viewReady(page);
        assert.deepEqual(await axeFindings(page), []);
        const { text, top } = await send(page);
        assert.deepEqual(
          has(text, [
            "vera",
            "secret-project",
            "vault-7",
            "ledgerd",
            "hunter2",
            "10.9.8.7",
            "customer",
            "cust-",
            "cmdline",
            "command_args",
            "sesame",
            secret.unknown,
          ]),
          [],
        );
        assert.deepEqual(has(text, ["region", "eu-west", "seen on Friday with", "main.serve"]), [
          "region",
          "eu-west",
          "seen on Friday with",
          "main.serve",
        ]);
        assert.deepEqual(top, topOf(samples, 1));
        assert.deepEqual(
          decodePprof(gzipSync(Buffer.from(text, "latin1"))).samples.map(({ values }) => values),
          samples.map(({ values }) => values),
        );
      }),
  );

  await runner.test(
    "base names stay, all labels and comments go; folded stacks lose only comment lines",
    () =>
      withPage(browser, server, async (page) => {
        await open(page, "ledger.pb", gunzipSync(file));
        await page.selectOption("label:has-text('Paths, including') ~ .select select", "base");
        await page.check(".redact-labels .check:has-text('All') input");
        await page.check(".check:has-text('all comments') input");
        const { text, top } = await send(page);
        assert.deepEqual(
          has(text, [
            "vera",
            "secret-project",
            "vault-7",
            "cust-",
            "region",
            "eu-west",
            "Friday",
            "10.9.8.7",
          ]),
          [],
        );
        assert.ok(text.includes("ledgerd") && text.includes("main.go"));
        assert.deepEqual(top, topOf(samples, 1));

        await open(
          page,
          "stacks.folded",
          Buffer.from("# host db-7.internal\nmain;run 3\n// by vera\n//main;rest 4\n"),
        );
        await page.waitForSelector(".redaction >> text=contain only names");
        await page.check(".check:has-text('all comments') input");
        assert.equal((await send(page)).text, "main;run 3\n//main;rest 4\n");

        await open(page, "other.cpuprofile", Buffer.from('{"nodes":[]}'));
        await page.waitForSelector(".redact >> text=another format");
      }),
  );

  await runner.test("a file that cannot be read is not reported as an unsupported format", () =>
    withPage(browser, server, async (page, watch) => {
      watch.allowed.add(404);
      await page.route("**/local_worker*", (route) => route.fulfill({ status: 404 }));
      await open(page, "stacks.folded", Buffer.from("main;run 3\n"));
      await page.waitForSelector(
        ".redaction >> text=Nothing can be redacted. The browser could not read this file.",
      );
    }),
  );

  await runner.test("all of many labels can be found and removed", () =>
    withPage(browser, server, async (page) => {
      const keys = Array.from({ length: 50 }, (_, i) => `key_${String(i).padStart(2, "0")}`);
      const labels = Object.fromEntries(keys.map((key) => [key, `held by ${key}`]));
      await open(
        page,
        "labels.pb.gz",
        encodePprof({
          types: twoTypes,
          samples: samples.slice(0, 3).map((sample) => ({ ...sample, labels })),
          durationNs: 1e9,
          defaultType: "cpu",
        }),
      );
      const listed = () =>
        page.$$eval(".redact-labels .check", (all) => all.slice(1).map((one) => one.textContent));
      await page.waitForSelector(".redact-labels");
      assert.deepEqual(await listed(), keys.slice(0, 40));
      await page.click(".redact-labels button:has-text('10 more')");
      assert.deepEqual(await listed(), keys);
      await page.check(".redact-labels .check:has-text('key_49') input");
      const { text } = await send(page);
      assert.deepEqual(has(text, ["held by key_48", "held by key_49"]), ["held by key_48"]);
    }),
  );
}
