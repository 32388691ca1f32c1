import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeFolded } from "../../src/local/folded.ts";
import { countLabels } from "../../src/local/labels.ts";

test("counts the labels of stacks selected by function, file or binary", () => {
  const profile = decodeFolded("main;read 5\nmain;write 3\n");
  Object.assign(
    profile.frames.find(({ name }) => name === "read")!,
    { file: "io.c", mapping: "/usr/lib/libc.so.6" },
  );
  const kept = (rules: { focus?: string[]; ignore?: string[] }) =>
    countLabels(profile, 0, { rules: [], focus: [], ignore: [], key: "", limit: 0, ...rules })
      .response.kept;
  assert.deepEqual(
    ["^write$", "io", "libc", "nowhere"].map((text) => kept({ focus: [text] })),
    [3, 5, 5, 0],
  );
  assert.equal(kept({ ignore: ["libc"] }), 3);
});
