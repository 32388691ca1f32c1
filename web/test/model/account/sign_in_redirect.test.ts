import assert from "node:assert/strict";
import { test } from "node:test";
import { addressWithin } from "../../../src/model/account/sign_in_redirect.ts";

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
