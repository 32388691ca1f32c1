import assert from "node:assert/strict";
import { test } from "node:test";
import { actions, presets, type Rule } from "../src/model/rules/chain.ts";
import { formatLabelRule, parseLabelRule, invertLabelRule } from "../src/model/rules/labels.ts";
import {
  colourModes,
  defaultState,
  formatState,
  graphSizes,
  groups,
  nameModes,
  parseState,
  stateVersion,
  unknownSettings,
  views,
  type ViewState,
} from "../src/view_state.ts";

let seed = 99;
const random = (below: number) => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) % below;
const pick = <T>(values: readonly T[]): T => values[random(values.length)];

test("the default state has an empty query", () => {
  assert.equal(formatState(defaultState), "");
  assert.deepEqual(parseState(""), defaultState);
});

function randomRule(texts: readonly string[]): Rule {
  const action = pick(actions);
  const filled = texts.filter((text) => text !== "");
  return {
    action,
    text: action === "only" ? pick(Object.keys(presets)) : pick(filled),
    isOff: random(4) === 0,
  };
}

function randomWindow() {
  const from = random(1e9 - 1);
  return { from: from / 1e9, to: (from + 1 + random(1e9 - from - 1)) / 1e9 };
}

test("every combination of settings survives formatting and parsing", () => {
  const texts = [
    "",
    "main.",
    "a&b=c#d?e",
    "köln → 東京",
    "std::vector<int>",
    "100%",
    "a+b c",
    "^(foo|bar)$",
    "~Foo~",
    "~~hide:a",
    "a:b!",
  ];
  for (let i = 0; i < 500; i++) {
    const view = pick(views);
    const state: ViewState = {
      view,
      beside: pick(["", ...views.filter((other) => other !== view)]),
      sampleType: pick(["", "cpu", "0", "alloc space", "größe"]),
      search: pick(texts),
      marked: pick(texts),
      zoom: pick(["", "0123456789abcdef", "ffffffffffffffff"]),
      root: pick(["", "0123456789abcdef"]),
      above: pick([
        null,
        { zoom: "0123456789abcdef", window: null },
        { zoom: "fedcba9876543210", window: randomWindow() },
      ]),
      below: pick([
        null,
        { zoom: "0123456789abcdef", window: null },
        { zoom: "fedcba9876543210", window: randomWindow() },
      ]),
      window: pick([null, { from: 0, to: 0.5 }, randomWindow(), { from: 0.25, to: 1 }]),
      group: pick([...groups, "label:thread id"]),
      names: pick(nameModes),
      colour: pick(colourModes),
      isNormalised: random(2) === 1,
      isOfFiltered: random(2) === 1,
      rules: Array.from({ length: random(4) }, () => randomRule(texts)),
      labels: pick([[], ["thread=io"], ["thread=io", "thread!=a&b", "size=1..2 KiB", "a\\=b\\!="]]),
      sort: pick([
        null,
        { column: "flat", descending: true },
        { column: "name", descending: false },
        { column: "change", descending: true },
      ]),
      columns: pick([
        [],
        ["flat"],
        ["cum", "file", "binary"],
        ["flatbefore", "flat", "flatchange"],
      ]),
      graphNodes: pick(graphSizes),
      extra: pick([
        [],
        [["utm", "x"]],
        [
          ["later", "focus:a~hide:b"],
          ["later", "2"],
        ],
      ]),
      version: pick([stateVersion, 99]),
    };
    assert.deepEqual(parseState(formatState(state)), state);
  }
});

test("a label rule is parsed like on the server and can be inverted", () => {
  const rules: [string, ReturnType<typeof parseLabelRule>][] = [
    ["thread=io", { key: "thread", value: "io", excludes: false }],
    ["thread!=a=b", { key: "thread", value: "a=b", excludes: true }],
    ["thread=", { key: "thread", value: "", excludes: false }],
    ["a\\=b\\!=x", { key: "a=b!", value: "x", excludes: false }],
    ["a!!=x", { key: "a!", value: "x", excludes: true }],
    ["a\\\\!=x\ny", { key: "a\\", value: "x\ny", excludes: true }],
    ["thread", null],
    ["=io", null],
    ["!=io", null],
    ["a\\=io", null],
  ];
  for (const [text, rule] of rules) {
    assert.deepEqual(parseLabelRule(text), rule, text);
    if (!rule) continue;
    assert.deepEqual(parseLabelRule(formatLabelRule(rule)), rule, text);
    assert.deepEqual(
      parseLabelRule(invertLabelRule(text)),
      { ...rule, excludes: !rule.excludes },
      text,
    );
  }
});

test("links of version 1 keep their meaning", () => {
  const link =
    "?v=both&st=alloc_space&q=json&m=main.run&z=0123456789abcdef&g=line&norm=1&s=-cum&sv=1";
  const state: ViewState = {
    view: "table",
    beside: "icicle",
    sampleType: "alloc_space",
    search: "json",
    marked: "main.run",
    zoom: "0123456789abcdef",
    root: "",
    above: null,
    below: null,
    window: null,
    group: "line",
    names: "simple",
    colour: "package",
    isNormalised: true,
    isOfFiltered: false,
    rules: [],
    labels: [],
    sort: { column: "cum", descending: true },
    columns: [],
    graphNodes: 60,
    extra: [],
    version: stateVersion,
  };
  assert.deepEqual(parseState(link), state);
  assert.equal(
    formatState(state),
    link.replace("?v=both", "?v=table&b=icicle").replace("sv=1", "sv=2"),
  );
});

test("settings with unknown values are reported", () => {
  assert.deepEqual(
    unknownSettings("?v=nonsense&b=table&c=pink&names=odd&gn=7000&g=anything&later=1&sv=2"),
    ["v=nonsense", "c=pink", "names=odd", "gn=7000"],
  );
  assert.deepEqual(unknownSettings("?v=both&sv=1"), []);
  const hash = "0123456789abcdef";
  const broken = [
    "z=zzz",
    "root=1",
    "za=zzz",
    `zb=${hash}:1-0`,
    "w=0.9-0.1",
    "s=-zzz",
    "co=x,y",
    "co=flat,y",
    "lb==",
    "sv=abc",
    "sv=-1",
    "norm=yes",
    "p=half",
    "b=nope",
  ];
  for (const one of broken) assert.deepEqual(unknownSettings(`?v=table&${one}&later=1`), [one]);
  assert.deepEqual(unknownSettings(`?z=${"é".repeat(41)}&sv=2`), [`z=${"é".repeat(40)}…`]);
  const right = [
    `z=${hash}`,
    `root=${hash}`,
    `za=${hash}`,
    `zb=${hash}:0.10-1`,
    "w=0-0.50",
    "s=-cum",
    "s=name",
    "co=flat,cum,flat,name",
    "lb=a%3Db&lb=c!%3D&lb=a%3Db",
    "sv=3",
    "norm=0",
    "norm=1",
    "p=filtered",
    "b=icicle",
    "v=table&b=table",
    "x=paint:b",
    "st=odd",
    "m=f&q=%5B",
    "g=label:x",
    "c=package",
  ];
  for (const one of right) assert.deepEqual(unknownSettings(`?${one}&later=1`), [], one);
  assert.deepEqual(unknownSettings("?v=icicle&b=&gn=60&names=simple&sv=2"), []);
});

test("invalid settings of a link become defaults, and unknown parameters are kept", () => {
  const state = parseState(
    "?v=nonsense&z=UPPER&s=-colour&norm=yes&w=0.5-0.2&c=pink&names=odd&gn=7000" +
      "&x=hide:~paint:b~only:cobol&later=hide:foo&lb=no+rule&lb=%3Dx&lb=a%3Db&lb=a%3Db&sv=1",
  );
  assert.equal(state.view, "icicle");
  assert.equal(state.graphNodes, 60);
  assert.equal(state.zoom, "");
  assert.equal(state.sort, null);
  assert.equal(state.isNormalised, false);
  assert.equal(state.window, null);
  assert.equal(state.colour, "package");
  assert.equal(state.names, "simple");
  assert.deepEqual(state.rules, []);
  assert.deepEqual(state.labels, ["a=b"]);
  assert.deepEqual(state.extra, [["later", "hide:foo"]]);
  assert.equal(parseState("?q=written+by+hand").search, "written by hand");
});
