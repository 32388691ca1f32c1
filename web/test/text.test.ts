import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { h, Fragment, type VNode } from "preact";
import { packageOf } from "../src/model/colours/frame_colours.ts";
import { sortFunctions } from "../src/model/functions/functions.ts";
import { shorterNames } from "../src/model/text/names.ts";
import {
  changeOf,
  formatAgo,
  formatBytes,
  formatChange,
  formatCount,
  formatDate,
  formatExact,
  formatPercent,
  formatSigned,
  formatValue,
} from "../src/model/text/units.ts";
import { readPasted } from "../src/pages/share/share_dialogs.tsx";
import { FrameFlag } from "../src/model/tree/flame.ts";
import { LabelFitter } from "../src/views/icicle/label_fitter.ts";
import { sampleTypeLabel, sampleTypeToken } from "../src/views/controls/choices.ts";
import { Markdown } from "../src/ui/markdown.tsx";
import { shownName, visible } from "../src/model/text/visible_text_model.ts";
import "../src/ui/visible_text.ts";
import { addressWithin } from "../src/model/account/sign_in_redirect.ts";

test("values are formatted in a suitable unit", () => {
  assert.equal(formatValue(0, "nanoseconds"), "0 ns");
  assert.equal(formatValue(1_250_000_000, "nanoseconds"), "1.25 s");
  assert.equal(formatValue(999_999, "nanoseconds"), "1.00 ms");
  assert.equal(formatValue(1500, "ms"), "1.50 s");
  assert.equal(formatValue(90, "seconds"), "90 s");
  assert.equal(formatValue(1800, "seconds"), "30 min");
  assert.equal(formatValue(71 * 3600, "seconds"), "71 h");
  assert.equal(formatValue(400 * 86400, "seconds"), "400 d");
  assert.equal(formatBytes(1e18), "888 PiB");
  assert.equal(formatBytes(2 ** 62), "4 EiB");
  assert.equal(formatValue(3, "hours"), "3 hours");
  assert.equal(formatBytes(512), "512 B");
  assert.equal(formatBytes(1_572_864), "1.50 MiB");
  assert.equal(formatValue(12345678, "count"), "12,345,678");
  assert.equal(formatValue(3, "goroutines"), "3 goroutines");
  assert.equal(formatValue(35, "count/10"), "3.5");
  assert.equal(formatValue(1_001_000_000, "count/1000000"), "1,001");
  assert.equal(formatValue(-12_345, "count/100000"), "−0.12345");
  assert.equal(formatValue(-2048, "bytes"), "−2 KiB");
  assert.equal(formatValue(-0.001, "count"), "0");
  assert.equal(formatExact(123_456_785, "count/10"), "12,345,678.5");
  assert.equal(formatExact(35, "count/11"), "35 count/11");
  assert.equal(formatValue(5, "constructor"), "5 constructor");
  assert.equal(formatSigned(-2048, "bytes"), "−2 KiB");
});

test("percentages and changes distinguish zero, small and whole; times are relative", () => {
  assert.equal(formatPercent(0, 10), "0%");
  assert.equal(formatPercent(10, 10), "100%");
  assert.equal(formatPercent(1, 1e9), "<0.01%");
  assert.equal(formatPercent(5, 0), "–");
  assert.equal(formatChange(10, 10), "±0%");
  assert.equal(formatChange(0, 10), "new");
  assert.equal(formatChange(10, 0), "gone");
  assert.equal(formatChange(10, 12), "+20%");
  assert.equal(formatChange(200, 197), "−1.5%");
  assert.equal(formatAgo(1_000, 3_601_000 + 1_000), "1 hour ago");
  const hour = 3_600_000;
  const ago = {
    "last year": 400 * 24,
    "2 months ago": 61 * 24,
    yesterday: 35,
    "2 days ago": 47,
    "23 hours ago": 23.4,
    "2 hours ago": 1.6,
    "1 hour ago": 0.995,
    "just now": 0.001,
    "1 minute ago": 0.02,
    "last week": 24 * 8,
    "next month": -24 * 40,
    "in a moment": -0.001,
    "in 1 minute": -0.02,
    "in 1 hour": -0.9995,
    "in 30 minutes": -0.499,
    "in 31 minutes": -0.512,
    tomorrow: -23.99,
    "next week": -24 * 6.999,
    "in 3 weeks": -24 * 22,
  };
  for (const [text, hours] of Object.entries(ago)) assert.equal(formatAgo(0, hours * hour), text);
});

test("rounding errors of a scaled side do not count as a change; integers are exact", () => {
  const after = (0.1 + 0.2) * 1e9; // 300000000.00000006
  assert.notEqual(after, 3e8);
  for (const [a, b] of [
    [3e8, after],
    [after, 3e8],
    [-3e8, -after],
  ]) {
    assert.equal(formatChange(a, b), "±0%");
    assert.equal(formatSigned(changeOf(a, b), "nanoseconds"), "0");
  }
  assert.equal(changeOf(2 ** 53 - 1, 2 ** 53 - 2), -1);
  assert.equal(changeOf(3e8, 3e8 + 0.5), 0.5);
  const row = (name: string, baseCum: number, cum: number) => ({
    name,
    file: "",
    binary: "",
    frame: 0,
    flat: 0,
    baseFlat: 0,
    cum,
    baseCum,
  });
  const rows = [row("dust", 1e9, 1e9 + 0.0000002), row("even", 2e9, 2e9), row("grown", 10, 10.5)];
  assert.deepEqual(
    sortFunctions(rows, { column: "change", descending: true }).map(({ name }) => name),
    ["grown", "even", "dust"],
  );
});

test("percentages that negative values make meaningless are not shown", () => {
  assert.equal(formatPercent(-5, 3), "–");
  assert.equal(formatPercent(5, 3), "–", "a part that exceeds the total");
  assert.equal(formatPercent(-1, 1e9), "–");
  assert.equal(formatPercent(-5, -10), "50.0%", "if all values are negative, they have shares");
  assert.equal(formatChange(-5, 50), "–");
  assert.equal(formatChange(5, -2), "–");
  assert.equal(formatChange(-5, -5), "±0%");
  assert.equal(formatChange(-5, 0), "gone");
});

test("a frame's name always has visible characters", () => {
  assert.equal(shownName("main.run"), "main.run");
  assert.equal(shownName("   "), "␣␣␣");
  assert.equal(shownName(" \u00a0\u200b"), "␣\\u00A0\\u200B");
  assert.equal(shownName("a\tb\x01\x9f"), "a\\u0009b\\u0001\\u009F");
  assert.equal(shownName("operator new [] "), "operator new [] ");
  assert.equal(visible(" \r\n\t "), " \r\n\t ", "other texts keep line breaks and spaces");
  assert.equal(
    visible("\x1b[31mred\0\x7f\x85"),
    "\\u001B[31mred\\u0000\\u007F\\u0085",
    "invisible characters are shown as escapes",
  );
});

test("numbers and dates equal the browser's own formats", () => {
  const languages = "en-US";
  for (const value of [
    0, 1, -1, 12, 999, 1000, -1000, 123456, 1234567.25, 0.5, 0.125, -0.75, 99.5, 9007199254740991,
  ]) {
    assert.equal(
      formatExact(value, ""),
      value.toLocaleString(languages, { maximumFractionDigits: 3 }).replace("-", "−"),
    );
    if (Number.isInteger(value))
      assert.equal(formatCount(value), value.toLocaleString(languages).replace("-", "−"));
  }
  for (const time of ["2026-11-22T09:05:00Z", "1999-01-31T23:59:00Z", "2024-02-29T12:00:00Z"])
    assert.equal(
      formatDate(time),
      new Date(time).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" }),
    );
});

test("packages of functions equal those of the server's pictures", () => {
  const table = readFileSync(new URL("../../tests/frame_packages.txt", import.meta.url), "utf8");
  const rows = table
    .split("\n")
    .filter((line) => line && !line.startsWith("#"))
    .map((line) => line.split("\t"));
  assert.ok(rows.length > 50);
  for (const [name, mapping, file, wanted] of rows)
    assert.equal(packageOf(name, mapping, file), wanted, name);
});

test("the forms of a name equal the server's, and no form is empty", () => {
  const table = readFileSync(new URL("../../tests/short_names.txt", import.meta.url), "utf8");
  const rows = table
    .split("\n")
    .filter((line) => line && !line.startsWith("#"))
    .map((line) => line.split("\t"));
  assert.ok(rows.length > 80);
  for (const row of rows) assert.deepEqual(shorterNames(row[0]), row);
  for (const name of [
    "",
    "a",
    "::",
    "<",
    "operator<",
    "a::",
    "x/",
    "/",
    "(anonymous namespace)::f",
    ".",
    "..",
    "λ.μ",
  ])
    for (const [i, form] of shorterNames(name).entries())
      assert.ok(form !== "" || i === 0, `${name} → ${form}`);
});

test("a very long name has no shorter forms, because computing them takes quadratic time", () => {
  for (const part of ["x", "(", "a::", "f(", " [clone ", "<"]) {
    const name = part.repeat(400_000 / part.length);
    assert.deepEqual(shorterNames(name), [name]);
  }
  assert.ok(shorterNames(`acme::f<${"int, ".repeat(400)}int>::run()`).length > 2);
});

/** Tags, texts and link targets of what a component renders. */
function flatten(node: unknown): string {
  if (typeof node === "string" || typeof node === "number") return String(node);
  if (Array.isArray(node)) return node.map(flatten).join("");
  const element = node as VNode<{ children?: unknown; href?: string }> | null;
  if (!element || typeof element !== "object") return "";
  const link = element.props.href ? `(${element.props.href})` : "";
  return `<${String(element.type)}${link}>${flatten(element.props.children)}</>`;
}

test("Markdown becomes elements", () => {
  const text =
    "# Title\n\nSome **strong** and `code<b>`.\n- one\n- [two](https://x.test/a)\n\n> " +
    "quote\n\n```\n<script>\n```";
  assert.equal(
    flatten(Markdown({ text })),
    "<div><h2>Title</><p>Some <strong>strong</> and " +
      "<code>code<b></>.</><ul><li>one</><li><a(https://x.test/a)>two</></></>" +
      "<blockquote>quote</><pre><code><script></></></>",
  );
});

test("Markdown creates no link that could run a script, and no element from HTML", () => {
  const text =
    "[a](javascript:alert(1)) [b](data:text/html,x) [c](//evil.test) <img src=x " +
    "onerror=alert(1)> [d](/p/x)";
  const flat = flatten(Markdown({ text }));
  assert.ok(
    !flat.includes("<a(javascript") && !flat.includes("<a(data") && !flat.includes("<a(//"),
  );
  assert.ok(flat.includes("<img src=x onerror=alert(1)>")); // as text
  assert.ok(flat.includes("<a(/p/x)>d</>"));
  for (const odd of [
    "",
    "\n\n",
    "```",
    "#",
    "- ",
    ">",
    "**",
    "[](",
    "1.",
    "####### x",
    "-",
    " \n- x\n1. y",
  ])
    flatten(Markdown({ text: odd }));
});

test("an id is found in pasted ids and addresses", () => {
  const id = "ABCDEFGHIJKLMNOPQRSTU0";
  const of = (text: string) => readPasted(text, "https://host");
  for (const text of [
    id,
    ` ${id}\n`,
    `https://host/p/${id}`,
    `https://host/p/${id}?v=table#x`,
    `https://host/p/${id}.pb.gz`,
    `/p/${id}/raw`,
    `https://host/embed/${id}?x=1`,
  ])
    assert.deepEqual(of(text), { id }, text);
  assert.deepEqual(of(`https://host/s/${id}`), { short: `/s/${id}` });
  for (const text of [
    "profile",
    "https://host/p/short",
    id + "X",
    `https://host/d/${id}..${id}`,
    `https://host/embed/${id}..${id}`,
    "/s/short",
    "/s/0123456789",
    `javascript:${id}`,
  ])
    assert.match((of(text) as { reason: string }).reason, /^This /, text);
  assert.match((of(`http://elsewhere:81/p/${id}`) as { reason: string }).reason, /elsewhere:81/);
  assert.deepEqual(of(" "), { reason: "" });
});

test("sample types are distinguished by unit, and by index if they have no name", () => {
  const types = [
    ["", "count"],
    ["cpu", "nanoseconds"],
    ["", ""],
    ["x", "count"],
    ["x", "bytes"],
  ].map(([type, unit]) => ({ type, unit }));
  const labels = types.map((_, index) => sampleTypeLabel(types, index));
  assert.deepEqual(labels, ["type 0 (count)", "cpu", "type 2", "x (count)", "x (bytes)"]);
  assert.deepEqual(
    types.map((_, index) => sampleTypeToken(types, index)),
    ["0", "cpu", "2", "3", "4"],
  );
});

test("a sign-in leads only to pages of this site", () => {
  const site = "https://host:7443";
  const within = (next: string) => addressWithin(site, next, "/shares");
  assert.equal(within("/p/abc?focus=x"), site + "/p/abc?focus=x");
  for (const elsewhere of [
    "",
    "p/abc",
    "//evil.example",
    "/\\evil.example",
    "https://evil.example",
    "javascript:alert(1)",
  ])
    assert.equal(within(elsewhere), site + "/shares", elsewhere);
  for (const trick of ["/x/..//evil.example", "/.//evil.example", "/x/../\\evil.example"])
    assert.equal(new URL(within(trick), site).origin, site, trick);
});

test("no text on a page changes the direction of the following text", () => {
  assert.equal(visible("a\u202Eb\u2066c\u2069"), "a\\u202Eb\\u2066c\\u2069");
  for (const plain of [
    "main",
    "\u05DE\u05D4 \u05E9\u05DC\u05D5\u05DD\u200F",
    "\u{1F525} e\u0301",
    "",
  ])
    assert.equal(visible(plain), plain);
  const Own = ({ name }: { name: string }) => h("b", { title: name, "aria-label": name }, name);
  const name = "x\u202Ey";
  assert.equal(h(Own, { name }).props.name, name, "components receive unchanged properties");
  assert.deepEqual(Own({ name }).props, {
    title: "x\\u202Ey",
    "aria-label": "x\\u202Ey",
    children: "x\\u202Ey",
  });
  const several = [name, 5, [name, null]];
  for (const type of ["p", Fragment] as const)
    assert.deepEqual((h(type as "p", null, ...several).props as { children: unknown }).children, [
      "x\\u202Ey",
      5,
      ["x\\u202Ey", null],
    ]);
  assert.equal((several[2] as unknown[])[0], name, "the caller's array is unchanged");
});

test("label values are truncated, not shortened like names of functions", () => {
  const fitter = new LabelFitter({
    measureText: (text: string) => ({ width: text.length }),
  } as CanvasRenderingContext2D);
  assert.equal(fitter.fit("/api/v1/thing", 8), "thing");
  assert.equal(fitter.fit("/api/v1/thing", 8, FrameFlag.Label), "/api/v1…");
});
