import assert from "node:assert/strict";
import { test } from "node:test";
import type { VNode } from "preact";
import { Markdown } from "../../src/ui/markdown.tsx";

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
