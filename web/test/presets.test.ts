import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { presets } from "../src/model/chain.ts";
import { presetFrames, type PresetFrames } from "../src/model/presets.ts";
import { compileRule } from "../src/model/search.ts";

/** Tables of C as they stand in the source. */
function serverPresets(): Record<string, PresetFrames> {
  const source = readFileSync(new URL("../../lib/profile/rule_preset.c", import.meta.url), "utf8");
  const lists = new Map([...source.matchAll(/(\w+_hides)\[\] = \{(.*?)\n\s*NULL/gs)].map(([, name, body]) => [name, strings(body)]));
  const rows = source.matchAll(/\{\.name = "(\w+)", \.hides = (\w+)(, \.hides_kernel = true)?\}/g);
  return Object.fromEntries([...rows].map(([, name, list, kernel]) => [name, { hides: lists.get(list)!, ...(kernel ? { hidesKernel: true } : {}) }]));
}

/** Literals of C; several that stand side by side are one. */
function strings(body: string): string[] {
  const joined = body.replace(/\/\/.*$/gm, "").replace(/"\s*\n\s*"/g, "");
  return [...joined.matchAll(/"(?:[^"\\]|\\.)*"/g)].map(([literal]) => JSON.parse(literal) as string);
}

test("presets hide the same in pictures that the server draws", () => {
  assert.deepEqual(serverPresets(), presetFrames);
  assert.deepEqual(Object.keys(presetFrames).sort(), Object.keys(presets).sort());
});

test("expressions of presets are of the kind that the server takes", () => {
  for (const { hides } of Object.values(presetFrames)) for (const pattern of hides) assert.doesNotThrow(() => compileRule(pattern), pattern);
});
