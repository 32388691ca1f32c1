import assert from "node:assert/strict";
import { test } from "node:test";
import {
  requestOf,
  defaultSelection,
  formatExplore,
  halves,
  parseExplore,
  pinned,
  type ExploreState,
} from "../../../src/model/continuous/explore_state.ts";
import { formatState, parseState } from "../../../src/view_state.ts";

const sample: ExploreState = {
  selection: {
    query: 'cpu:samples{pod="a&b"}',
    from: "now-6h",
    until: "now",
    part: { from: 1000, to: 2000 },
    only: [
      ["pod", "a=b"],
      ["zone", ""],
    ],
  },
  baseline: {
    query: "cpu:samples",
    from: "1767323045000",
    until: "1767323145000",
    part: null,
    only: [],
  },
  by: ["pod", "zone"],
  profile: "x.1",
  hasList: true,
};

test("the parameters of Explore and of the view share an address without loss", () => {
  const address = "?v=table&q=main&query=x&unknown=1";
  const view = parseState(address);
  const written = formatState({ ...view, extra: formatExplore(sample, view.extra) });
  const again = parseState(written);
  assert.deepEqual(parseExplore(again.extra), sample);
  assert.equal(again.search, "main");
  assert.equal(new URLSearchParams(written).get("unknown"), "1");
  assert.equal(new URLSearchParams(written).get("ev"), "1");
  assert.deepEqual(parseExplore([]), {
    selection: defaultSelection,
    baseline: null,
    by: [],
    profile: "",
    hasList: false,
  });
  assert.deepEqual(formatExplore(parseExplore([])), []);
});

test("invalid parameters of an address are ignored", () => {
  const state = parseExplore([
    ["part", "5-5"],
    ["only", "nothing"],
    ["by", ""],
    ["by", "a"],
    ["by", "a"],
    ["list", "yes"],
  ]);
  assert.deepEqual(state, { ...parseExplore([]), by: ["a"] });
});

test("the request has the chosen series in the chosen part; a pinned link has fixed times", () => {
  const now = 1_767_323_045_000;
  assert.deepEqual(requestOf(sample.selection, now), {
    query: 'cpu:samples{pod="a&b",pod="a=b",zone=""}',
    from: 1000,
    to: 2000,
  });
  assert.equal(pinned(sample, now).selection.from, String(now - 6 * 3_600_000));
  const { selection, baseline } = halves(defaultSelection, now);
  assert.deepEqual(
    [baseline.part, selection.part],
    [
      { from: now - 3_600_000, to: now - 1_800_000 },
      { from: now - 1_800_000, to: now },
    ],
  );
});
