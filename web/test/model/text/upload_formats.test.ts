import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { refusalOf } from "../../../src/local/refusal.ts";
import { timedFormats } from "../../../src/pages/share/external_viewers.ts";
import { formatList, formatTitle, uploadFormats } from "../../../src/model/text/upload_formats.ts";

test("the pages list the formats of the server", () => {
  const names = uploadFormats.map(({ name }) => name);
  for (const name of ["pprof", "folded", "perf-script"]) assert.ok(names.includes(name), name);
  assert.match(
    formatList,
    /^pprof, folded stacks, .*, each plain or compressed with gzip or zstd$/,
  );
  assert.equal(formatTitle("perf-script"), "perf script");
  assert.equal(formatTitle("newer"), "newer");
});

test("other sites are offered for formats that the server reads", () => {
  const names = uploadFormats.map(({ name }) => name);
  for (const name of Object.keys(timedFormats)) assert.ok(names.includes(name), name);
});

test("no file of a supported format is refused before it is uploaded", () => {
  const folder = new URL("../../../../tests/fuzz/corpus/fuzz_format/", import.meta.url);
  for (const { name } of uploadFormats) {
    const start = `seed-${name.replace("-", "_")}`;
    const seeds = readdirSync(folder).filter((file) => file.startsWith(start));
    assert.ok(seeds.length, `no ${start}* among the seeds`);
    for (const file of seeds)
      assert.equal(refusalOf(readFileSync(new URL(file, folder))), "", file);
  }
});
