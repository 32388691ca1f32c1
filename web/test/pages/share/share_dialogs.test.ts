import assert from "node:assert/strict";
import { test } from "node:test";
import { readPasted } from "../../../src/pages/share/share_dialogs.tsx";

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
