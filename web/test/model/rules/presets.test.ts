import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { presets } from "../../../src/model/rules/chain.ts";
import { presetFrames, type PresetFrames } from "../../../src/model/rules/presets.ts";
import { compileRule } from "../../../src/model/search/search.ts";

/** The tables in the C source. */
function serverPresets(): Record<string, PresetFrames> {
  const source = readFileSync(
    new URL("../../../../lib/profile/report/rule_preset.c", import.meta.url),
    "utf8",
  );
  const lists = new Map(
    [...source.matchAll(/(\w+_hides)\[\] = \{(.*?)\n\s*NULL/gs)].map(([, name, body]) => [
      name,
      strings(body),
    ]),
  );
  const rows = source.matchAll(/\{\.name = "(\w+)", \.hides = (\w+)(, \.hides_kernel = true)?\}/g);
  return Object.fromEntries(
    [...rows].map(([, name, list, kernel]) => [
      name,
      { hides: lists.get(list)!, ...(kernel ? { hidesKernel: true } : {}) },
    ]),
  );
}

/** C string literals; adjacent ones are joined. */
function strings(body: string): string[] {
  const joined = body.replace(/\/\/.*$/gm, "").replace(/"\s*\n\s*"/g, "");
  return [...joined.matchAll(/"(?:[^"\\]|\\.)*"/g)].map(
    ([literal]) => JSON.parse(literal) as string,
  );
}

test("presets hide the same frames in the server's pictures", () => {
  assert.deepEqual(serverPresets(), presetFrames);
  assert.deepEqual(Object.keys(presetFrames).sort(), Object.keys(presets).sort());
});

test("the server accepts the expressions of presets", () => {
  for (const { hides } of Object.values(presetFrames))
    for (const pattern of hides) assert.doesNotThrow(() => compileRule(pattern), pattern);
});

const isHidden = (preset: string, name: string) =>
  presetFrames[preset].hides.some((pattern) => compileRule(pattern).test(name));

/** Names, files and binaries: rules match all three. */
const others: Record<string, string[]> = {
  go: [
    "testing.tRunner",
    "database/sql.(*DB).Query",
    "image/png.Decode",
    "archive/zip.OpenReader",
    "mime/multipart.NewReader",
    "go/parser.ParseFile",
    "flag.Parse",
    "net/http.(*conn).serve",
    "runtime.mallocgc",
  ],
  python: [
    "/usr/lib64/python3.9/json/decoder.py",
    "/usr/lib/python3.11/json/decoder.py",
    "_PyEval_EvalFrameDefault",
  ],
  java: [
    "SpinPause",
    "StealTask::do_it",
    "vtable chunks_[j]",
    "PSScavenge::invoke",
    "VMThread::loop",
    "java/util/HashMap.get",
    "call_stub_[j]",
    "/opt/jdk/lib/server/libjvm.so",
    "jint_disjoint_arraycopy_[j]",
  ],
};
const own: Record<string, string[]> = {
  go: [
    "main.main",
    "github.com/acme/flag.Parse",
    "acme/image/png.Decode",
    "database.Open",
    "imageproxy.Serve",
    "go/vt/vtgate/plan.go",
    "image/resize.go",
    "flag.go",
    "testkit.Run",
  ],
  python: ["/srv/app/json/decoder.py", "/usr/lib64/python3.9/site-packages/flask/app.py"],
  java: [
    "io/vertx/core/Vertx.run",
    "com/acme/StealTask.run",
    "org.acme.PSQL.query",
    "Parser::next",
  ],
};

test("presets hide code of others and keep the reader's own code", () => {
  for (const [preset, names] of Object.entries(others))
    for (const name of names) assert.ok(isHidden(preset, name), `${preset}: ${name}`);
  for (const [preset, names] of Object.entries(own))
    for (const name of names) assert.ok(!isHidden(preset, name), `${preset}: ${name}`);
});
