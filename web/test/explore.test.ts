// The text of a query as the page reads it, the page's address, and the data of a plot.
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
} from "../src/model/continuous/explore_state.ts";
import {
  formatLength,
  resolveTime,
  resolveWindow,
  toLocal,
  windowOfLocal,
} from "../src/model/continuous/time_window.ts";
import { contrast } from "../src/model/colours/colour.ts";
import {
  digestOf,
  formatMetric,
  lineLook,
  otherLook,
  plotData,
  sameSeries,
  seriesName,
  valueAt,
} from "../src/model/continuous/plot_data.ts";
import {
  afterName,
  complete,
  errorInField,
  isUnfinished,
  joinQuery,
  narrow,
  operators,
  othersOf,
  placeOfError,
  quote,
  readMatchers,
  splitQuery,
} from "../src/model/continuous/selector.ts";
import { formatState, parseState } from "../src/view_state.ts";

/** The word at the cursor, which | marks: the kind that is expected, the typed part, the label. */
function at(marked: string) {
  const cursor = marked.indexOf("|");
  const { place } = readMatchers(marked.replace("|", ""), cursor);
  return [place.expects, place.typed, place.label].filter(Boolean).join(" ");
}

test("the cursor's position determines what can be completed", () => {
  const cases: [string, string][] = [
    ["|", "name"],
    ["po|", "name po"],
    ["|pod", "name"],
    ["pod |", "operator pod"],
    ["pod!|", "operator ! pod"],
    ["pod=|", "value pod"],
    ['pod="|', "value pod"],
    ['pod="a|', "value a pod"],
    ['pod="a|bc"', "value a pod"],
    ['pod=~"a.*|"', "value a.* pod"],
    ['pod="a"|', "comma"],
    ['pod="a",|', "name"],
    ['pod="a", zo|', "name zo"],
    ['pod="a", zone!=|', "value zone"],
    ["pod='a', zone=`b|", "value b zone"],
    ['pod="a\\"|', 'value a\\" pod'],
    ['pod="a, b|"', "value a, b pod"],
    ["pod=a|", "value a pod"],
    ["= |", "value"],
    ['pod="a"| ,', "comma"],
  ];
  for (const [text, expected] of cases) assert.equal(at(text), expected, text);
});

test("names, operators and values that are completed one after the other form a query", () => {
  let [text, cursor] = ["", 0];
  for (const chosen of ["pod", "=~", 'a"\\.*', ", ", "zone", "!=", "eu"]) {
    const { place } = readMatchers(text, cursor);
    ({ text, cursor } = complete(
      text,
      (operators as readonly string[]).includes(chosen) ? afterName(text, place)! : place,
      chosen,
    ));
  }
  assert.equal(text, 'pod=~"a\\"\\\\.*", zone!="eu"');
  const { matchers } = readMatchers(text, text.length);
  assert.deepEqual(
    matchers.map(({ name, operator, quoted }) => [name, operator, quoted]),
    [
      ["pod", "=~", quote('a"\\.*')],
      ["zone", "!=", '"eu"'],
    ],
  );
});

test("quoting escapes control characters and characters that change the text direction", () => {
  assert.equal(quote("a\r\n\tb\0\u202ec"), '"a\\x0d\\n\\tb\\x00\\xe2\\x80\\xaec"');
  for (const type of ['we"ird:cpu', "(\r\n)", "[\u202e]\\"])
    assert.deepEqual(splitQuery(joinQuery(type, 'x="1"')), { type, matchers: 'x="1"' });
});

test("operators are offered only after a complete name", () => {
  const offered = (text: string, cursor: number) =>
    afterName(text, readMatchers(text, cursor).place)?.from;
  assert.deepEqual(
    [
      offered("pod", 3),
      offered("pod", 2),
      offered("pod =", 3),
      offered('pod="a"', 3),
      offered("pod, zone", 3),
      offered("", 0),
    ],
    [3, undefined, undefined, undefined, 3, undefined],
  );
});

test("the request for completions contains only the other matchers", () => {
  const text = 'pod="a", zone="", service_name=~`b.*`';
  const { matchers, place } = readMatchers(text, text.indexOf('""') + 1);
  assert.equal(
    othersOf("cpu:samples", matchers, place),
    'cpu:samples{pod="a",service_name=~`b.*`}',
  );
});

test("reading matchers terminates for every text and cursor, with a valid range", () => {
  const letters = `pod="a', {}=~!\`\\é\n`;
  let seed = 7;
  for (let round = 0; round < 3000; round++) {
    let text = "";
    for (let i = 0; i < round % 24; i++)
      text += letters[(seed = (seed * 48271) % 2147483647) % letters.length];
    for (let cursor = 0; cursor <= text.length; cursor++) {
      const { place } = readMatchers(text, cursor);
      assert.ok(
        place.from <= cursor && place.to <= text.length && place.from <= place.to,
        JSON.stringify([text, cursor, place]),
      );
    }
  }
});

test("a query is split into type and matchers and joined again", () => {
  assert.deepEqual(splitQuery('a:b:c{x="{}"}'), { type: "a:b:c", matchers: 'x="{}"' });
  assert.deepEqual(splitQuery("a:b"), { type: "a:b", matchers: "" });
  assert.deepEqual(splitQuery('a:b{x="1"'), { type: "a:b", matchers: 'x="1"' });
  assert.equal(joinQuery("a:b", " "), "a:b");
  for (const type of ["a[b]:c", 'say "a"\\b:c', "a{b}:c", "it's:\n\t:n"])
    for (const matchers of ["", 'x="{}"', 'x="1",y=~"[a]"'])
      assert.deepEqual(splitQuery(joinQuery(type, matchers)), { type, matchers });
  assert.equal(joinQuery("a[b]:c", 'x="1"'), '{__profile_type__="a[b]:c",x="1"}');
  assert.equal(narrow(joinQuery("a[b]:c", ""), [["x", "1"]]), '{__profile_type__="a[b]:c",x="1"}');
  assert.deepEqual(splitQuery('{__profile_type__="a:b"}'), {
    type: "",
    matchers: '__profile_type__="a:b"',
  });
  assert.equal(narrow("a:b", [["x", '1"']]), 'a:b{x="1\\""}');
  assert.equal(narrow('a:b{y="2",}', [["x", ""]]), 'a:b{y="2",x=""}');
});

test("an error's position is converted from bytes to characters", () => {
  assert.equal(
    placeOfError('a{ü="1",!}', "query: expected the name of a label at character 10, here: !}"),
    8,
  );
  assert.equal(placeOfError("a{", "query: this { is not closed at character 2, here: {"), 1);
  assert.equal(placeOfError("a{", "query: longer than 8192 bytes"), null);
});

test("an error's position refers to the matchers as they were typed", () => {
  const shown = (query: string, sentence: string) => Object.values(errorInField(query, sentence));
  const operator = "query: expected =, !=, =~ or !~";
  assert.deepEqual(shown("cpu:ns{serv}", `${operator} at character 12, here: }`), [
    "expected =, !=, =~ or !~ at its end",
    "serv",
    4,
  ]);
  assert.deepEqual(shown("cpu:ns{serv", `${operator} at its end (character 12)`), [
    "expected =, !=, =~ or !~ at its end",
    "serv",
    4,
  ]);
  assert.deepEqual(
    shown('a{ü="1",!}', "query: expected the name of a label at character 10, here: !}"),
    ["expected the name of a label at character 7", 'ü="1",!', 6],
  );
  assert.deepEqual(shown('a{x=~"("}', "query: the expression at character 6: missing )"), [
    "the expression at character 4: missing )",
    'x=~"("',
    3,
  ]);
  assert.deepEqual(shown('{__profile_type__="a[b]:c",x}', `${operator} at character 29, here: }`), [
    "expected =, !=, =~ or !~ at its end",
    "x",
    1,
  ]);
  // Outside the matchers, or without a position, the error refers to the whole query.
  assert.deepEqual(shown("a b{x}", "query: expected { at character 3, here: b{x}"), [
    "expected { at character 3, here: b{x}",
    "a b{x}",
    2,
  ]);
  assert.deepEqual(shown("a{x}", "query: longer than 8192 bytes"), [
    "longer than 8192 bytes",
    "a{x}",
    null,
  ]);
});

test("a text that is not yet a matcher is unfinished at the cursor", () => {
  const at = (text: string) =>
    isUnfinished(
      text.replace("|", ""),
      readMatchers(text.replace("|", ""), text.indexOf("|")).place,
    );
  for (const text of [
    "serv|",
    "service_name|",
    "service_name=|",
    "service_name=~|",
    'a="1",b|',
    'a="x|',
    "a=x|",
    "a |",
  ])
    assert.ok(at(text), text);
  for (const text of ["|", 'a="1"|', 'a="1",|', 'a|="1"', 'a="1|"', 'a=|"1"'])
    assert.ok(!at(text), text);
});

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

test("times are relative or of the calendar; other texts are refused", () => {
  const now = 1_767_323_045_000;
  assert.equal(resolveTime("now-90m", now), now - 5_400_000);
  assert.equal(resolveTime("1767323045000", now), now);
  assert.equal(resolveTime("yesterday", now), null);
  assert.deepEqual(resolveWindow("now", "now-1h", now), {
    from: now - 7_200_000,
    to: now - 3_600_000,
  });
  assert.equal(formatLength(5_400_000), "1 h 30 min");
  assert.equal(formatLength(7 * 86_400_000), "7 d");
  assert.equal(formatLength(3_605_000), "1 h");
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

test("lines continue across times of other series and are interrupted by missing data", () => {
  const one = [
    [0, 1],
    [10, 2],
    [20, 3],
    [90, 4],
  ] as const;
  const other = [
    [10, 5],
    [20, 6],
  ] as const;
  const { times, values } = plotData([one, other], 10);
  assert.deepEqual(times, [0, 10, 20, 30, 90]);
  assert.deepEqual(values, [
    [1, 2, 3, null, 4],
    [undefined, 5, 6, undefined, undefined],
  ]);
  assert.deepEqual(
    [valueAt(one, 19, 10), valueAt(one, 30, 10), valueAt(one, -1, 10), valueAt(one, 99, 10)],
    [2, null, null, 4],
  );
});

test("every line is visible on its background", () => {
  for (const ground of ["#faf8f4", "#15130f", "#ffffff", "#000000"]) {
    assert.ok(contrast(otherLook(ground).stroke, ground) >= 3, `other on ${ground}`);
    for (let i = 0; i < 8; i++)
      assert.ok(contrast(lineLook(i, ground).stroke, ground) >= 3, `${i} on ${ground}`);
  }
  assert.notDeepEqual(lineLook(0, "#ffffff"), lineLook(8, "#ffffff"));
});

test("a series has the last, mean and highest value; the mean is the server's", () => {
  const points = [
    [0, 4],
    [10, 2],
    [20, 6],
    [30, 8],
  ] as const;
  assert.deepEqual(digestOf({ points, average: 3.5 }), { last: 8, mean: 3.5, highest: 8 });
  assert.equal(digestOf({ points: [] }), null);
});

test("a series is found by its labels in the response for another window", () => {
  type One = { labels: Record<string, string>; other_count?: number };
  const a: One = { labels: { pod: "a", zone: "x" } };
  const other: One = { labels: {}, other_count: 3 };
  const all: One[] = [{ labels: { zone: "x", pod: "a" } }, { labels: {}, other_count: 5 }];
  assert.equal(sameSeries(a, all), all[0]);
  assert.equal(sameSeries({ labels: { pod: "b" } }, all), null);
  assert.equal(sameSeries({ labels: {} }, all), null);
  assert.equal(sameSeries(other, all), all[1]);
});

test("a window that is not changed stays the same, also when daylight saving ends", () => {
  const zone = process.env.TZ;
  process.env.TZ = "America/New_York";
  try {
    const at = (time: string) => new Date(`2026-11-01T${time}Z`).getTime();
    const second = { from: at("06:10:00.250"), to: at("06:50:00.750") };
    assert.equal(toLocal(second.from), "2026-11-01T01:10:00");
    assert.deepEqual(windowOfLocal(toLocal(second.from), toLocal(second.to), second), second);
    const both = { from: at("05:50:00"), to: at("06:10:00") };
    assert.deepEqual(windowOfLocal(toLocal(both.from), toLocal(both.to), both), both);
    const typed = { from: at("04:00:00"), to: at("05:50:00") };
    const across = windowOfLocal("2026-11-01T01:50:00", "2026-11-01T01:10:00", typed);
    assert.deepEqual(across, both);
    assert.equal(windowOfLocal("2026-11-01T03:00:00", "2026-11-01T02:00:00", typed), null);
  } finally {
    if (zone === undefined) delete process.env.TZ;
    else process.env.TZ = zone;
  }
});

test("lines are interrupted at steps without data, for dense and sparse series", () => {
  const dense = [
    [0, 1],
    [10, 1],
    [30, 1],
    [40, 1],
  ] as const;
  const sparse = [
    [0, 1],
    [60, 1],
    [120, 1],
    [300, 1],
  ] as const;
  const gapsOf = (points: readonly (readonly [number, number])[]) => {
    const { times, values } = plotData([points], 10);
    return times.filter((_, i) => values[0][i] === null);
  };
  assert.deepEqual(gapsOf(dense), [20]);
  assert.deepEqual(gapsOf(sparse), [130]);
});

test("a series is named by its labels, and the sum of the other series by their number", () => {
  assert.equal(seriesName({ labels: { pod: "a", zone: "" } }), "pod=a, zone=(none)");
  assert.equal(seriesName({ labels: {} }), "all");
  assert.equal(seriesName({ labels: {}, other_count: 37 }), "other (37 series)");
});

test("values over time are formatted in readable units", () => {
  assert.equal(formatMetric(0.012345, "cores"), "0.0123 cores");
  assert.equal(formatMetric(2 * 1024 ** 2, "bytes/s"), "2 MiB/s");
  assert.equal(formatMetric(1.5, "count/s"), "1.5/s");
  assert.equal(formatMetric(14 / 3600, "count/s"), "0.00389/s");
  assert.equal(formatMetric(0, "count/s"), "0/s");
  assert.equal(formatMetric(0.00125, "events/s"), "0.00125 events/s");
  assert.equal(formatMetric(1.5, "events/s"), "1.5 events/s");
  assert.equal(formatMetric(3e9, "nanoseconds"), "3 s");
});
