import assert from "node:assert/strict";
import { test } from "node:test";
import { defaultState, formatState, groups, parseState, views, type ViewState } from "../src/state.ts";

let seed = 99;
const random = (below: number) => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) % below;
const pick = <T>(values: readonly T[]): T => values[random(values.length)];

test("a default state leaves the address bar alone", () => {
  assert.equal(formatState(defaultState), "");
  assert.deepEqual(parseState(""), defaultState);
});

test("every combination comes back as it was", () => {
  const texts = ["", "main.", "a&b=c#d?e", "köln → 東京", "std::vector<int>", "100%", "a+b c", "^(foo|bar)$"];
  for (let i = 0; i < 500; i++) {
    const state: ViewState = {
      view: pick(views),
      sampleType: pick(["", "cpu", "0", "alloc space", "größe"]),
      search: pick(texts),
      marked: pick(texts),
      zoom: pick(["", "0123456789abcdef", "ffffffffffffffff"]),
      group: pick([...groups, "label:thread id"]),
      isNormalised: random(2) === 1,
      sort: pick([null, { column: "flat", descending: true }, { column: "name", descending: false }, { column: "change", descending: true }]),
      extra: pick([[], [["utm", "x"]], [["x", "focus:a~hide:b"], ["x", "2"]]]),
    };
    assert.deepEqual(parseState(formatState(state)), state);
  }
});

test("links of version 1 keep their meaning", () => {
  const link = "?v=both&st=alloc_space&q=json&m=main.run&z=0123456789abcdef&g=line&norm=1&s=-cum&sv=1";
  const state: ViewState = {
    view: "both", sampleType: "alloc_space", search: "json", marked: "main.run", zoom: "0123456789abcdef",
    group: "line", isNormalised: true, sort: { column: "cum", descending: true }, extra: [],
  };
  assert.deepEqual(parseState(link), state);
  assert.equal(formatState(state), link);
});

test("what is wrong in a link falls back, what is unknown is kept", () => {
  const state = parseState("?v=nonsense&z=UPPER&s=-colour&norm=yes&x=hide:foo&sv=1");
  assert.equal(state.view, "icicle");
  assert.equal(state.zoom, "");
  assert.equal(state.sort, null);
  assert.equal(state.isNormalised, false);
  assert.deepEqual(state.extra, [["x", "hide:foo"]]);
  assert.equal(parseState("?q=written+by+hand").search, "written by hand");
});
