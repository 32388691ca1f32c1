import assert from "node:assert/strict";
import { test } from "node:test";
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
} from "../../../src/model/continuous/selector.ts";

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
