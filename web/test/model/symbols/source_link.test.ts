import assert from "node:assert/strict";
import { test } from "node:test";
import type { Flame } from "../../../src/model/tree/flame.ts";
import {
  escapePath,
  linksOf,
  matchesPattern,
  SIDE_AFTER,
  SIDE_BEFORE,
  sidesOfFrames,
  sourceUrl,
  type SourceLink,
  type SourceRule,
} from "../../../src/model/symbols/source_link.ts";
import { cpuMs } from "../../relative_cost.ts";

const link = (fields: Partial<SourceLink> = {}): SourceLink => ({
  binaries: null,
  path_prefix: "/build/",
  url: "https://git.example.com/shop/{path}#L{line}",
  ...fields,
});
const at = (file: string, line = 7, mapping = "/usr/bin/app") => ({ file, line, mapping });

test("a file is linked to its page in the repository", () => {
  assert.equal(sourceUrl([link()], at("/build/a/b.c")), "https://git.example.com/shop/a/b.c#L7");
  assert.equal(
    sourceUrl([link({ path_prefix: "" })], at("/build/a.c")),
    "https://git.example.com/shop/build/a.c#L7",
  );
  assert.equal(
    sourceUrl([link({ path_prefix: "/build" })], at("/build/a.c")),
    "https://git.example.com/shop/a.c#L7",
  );
  assert.equal(sourceUrl([link()], at("/other/a.c")), "");
  assert.equal(sourceUrl([link()], at("")), "");
  assert.equal(sourceUrl([link()], at("/build/")), "");
  assert.equal(sourceUrl([], at("/build/a.c")), "");
});

test("a path prefix matches whole components", () => {
  assert.equal(
    sourceUrl([link({ path_prefix: "/src" })], at("/src/a.c")),
    "https://git.example.com/shop/a.c#L7",
  );
  assert.equal(sourceUrl([link({ path_prefix: "/src" })], at("/srcother/x.c")), "");
  assert.equal(
    sourceUrl([link({ path_prefix: "/src" }), link({ path_prefix: "" })], at("/srcother/x.c")),
    "https://git.example.com/shop/srcother/x.c#L7",
  );
  assert.equal(
    sourceUrl([link({ path_prefix: "C:\\src" })], at("C:\\src\\a.c")),
    "https://git.example.com/shop/a.c#L7",
  );
  assert.equal(sourceUrl([link({ path_prefix: "C:\\src" })], at("C:\\srcs\\a.c")), "");
});

test("the first rule that matches the binary is used", () => {
  const links = [
    link({ binaries: ["/usr/bin/app"], url: "https://a/{path}" }),
    link({ url: "https://b/{path}" }),
  ];
  assert.equal(sourceUrl(links, at("/build/x.c")), "https://a/x.c");
  assert.equal(sourceUrl(links, at("/build/x.c", 1, "/usr/lib/b.so")), "https://b/x.c");
});

test("without a line number, the link contains no line or line 1", () => {
  assert.equal(sourceUrl([link()], at("/build/a.c", 0)), "https://git.example.com/shop/a.c");
  assert.equal(
    sourceUrl([link({ url: "https://x/{path}?l={line}" })], at("/build/a.c", 0)),
    "https://x/a.c?l=1",
  );
  assert.equal(
    sourceUrl([link({ url: "https://x/{path}?l={line}#top" })], at("/build/a.c", 0)),
    "https://x/a.c?l=1#top",
  );
});

test("a hostile path cannot leave the path of the URL", () => {
  assert.equal(escapePath("a b/c?d#e%/f\"'<>()*"), "a%20b/c%3Fd%23e%25/f%22%27%3C%3E%28%29%2a");
  assert.equal(escapePath("../../etc/./x//y/../z"), "etc/x/z");
  assert.equal(escapePath("..\\..\\x"), "x");
  assert.equal(
    sourceUrl([link({ path_prefix: "" })], at("javascript:alert(1)")),
    "https://git.example.com/shop/javascript%3Aalert%281%29#L7",
  );
  assert.equal(
    sourceUrl([link({ path_prefix: "" })], at("//evil.example/{line}/$&{path}")),
    "https://git.example.com/shop/evil.example/%7Bline%7D/%24%26%7Bpath%7D#L7",
  );
  assert.equal(sourceUrl([link({ url: "javascript:{path}" })], at("/build/x")), "");
});

test("rules without a label become links, those with a build id for matching binaries", () => {
  const rule = (fields: Partial<SourceRule>): SourceRule => ({
    id: 1,
    path_prefix: "",
    build_id: "",
    label: "",
    url: "https://x/{revision}/{path}",
    revision: "v 1/$&",
    audience: "team",
    ...fields,
  });
  const made = { path_prefix: "", url: "https://x/v%201/%24%26/{path}" };
  const binaries = [
    { file: "/usr/bin/app", build_ids: ["ab01"] },
    { file: "/usr/bin/go", build_ids: ["a/b", "612f62"] },
  ];
  assert.deepEqual(
    linksOf(
      [rule({ build_id: "ab*" }), rule({ build_id: "612f6?" }), rule({ label: "a=b" }), rule({})],
      binaries,
    ),
    [
      { binaries: ["/usr/bin/app"], ...made },
      { binaries: ["/usr/bin/go"], ...made },
      { binaries: null, ...made },
    ],
  );
  assert.equal(sourceUrl(linksOf([rule({ build_id: "zz*" })], binaries), at("/build/x.c")), "");
});

test("a pattern of build ids has the same meaning as on the server", () => {
  for (const [pattern, text, expected] of [
    ["", "", true],
    ["*", "", true],
    ["a*c", "abc", true],
    ["a*c", "abd", false],
    ["a?c", "ac", false],
    ["*b*b", "abab", true],
    ["ab", "abc", false],
    ["a.c", "abc", false],
  ] as const)
    assert.equal(matchesPattern(pattern, text), expected, `${pattern} ${text}`);
  // Backtracking would take 2^127 steps.
  const cost = cpuMs(() =>
    assert.equal(matchesPattern("*a".repeat(128), "a".repeat(127) + "b"), false),
  );
  assert.ok(cost < 5000, `${cost} ms`);
});

test("the sides of a comparison that contain a frame are found", () => {
  const flame = {
    nodeCount: 4,
    frame: new Uint32Array([0, 1, 2, 1]),
    cum: new Float64Array([9, 0, 9, 0]),
    baseCum: new Float64Array([9, 9, 0, 3]),
    frames: { count: 4 } as Flame["frames"],
  };
  assert.deepEqual([...sidesOfFrames(flame)], [3, SIDE_BEFORE, SIDE_AFTER, 0]);
  assert.deepEqual([...sidesOfFrames({ ...flame, baseCum: null })], [2, 0, 2, 0]);
});
