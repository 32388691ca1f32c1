import assert from "node:assert/strict";
import { test } from "node:test";
import { AppliedChain, RuleError } from "../../../src/model/rules/applied_chain.ts";
import { parseChain } from "../../../src/model/rules/chain.ts";
import type { Columns } from "../../../src/model/tree/flame.ts";
import { applyRule } from "../../../src/model/rules/transform.ts";
import { bigTree, decode } from "../../trees.ts";

const flame = decode(bigTree(2000, 30));
/** Each rule keeps nearly all nodes. */
const rules = parseChain("hide:f11~hide:f12~hide:f13~hide:f14~hide:f15~hide:f16");
const anew = (chain: typeof rules) =>
  chain.reduce<Columns>((tree, rule) => applyRule(tree, flame.frames, rule), flame);

test("a changed chain is applied from the first rule that differs from the last chain", () => {
  const chain = new AppliedChain(flame);
  const tree = chain.apply(rules);
  assert.equal(chain.apply(rules), tree);
  const shorter = chain.apply(rules.slice(0, 3));
  assert.deepEqual(shorter, anew(rules.slice(0, 3)));
  assert.equal(chain.apply(rules.slice(0, 3)), shorter);
  assert.throws(
    () => chain.apply([...rules.slice(0, 2), ...parseChain("hide:(")]),
    (error) => error instanceof RuleError && error.rule === 2,
  );
  assert.deepEqual(chain.apply(rules), anew(rules));
});

test("intermediate trees are kept within the limit and dropped when there are no rules", () => {
  const space = 5000;
  const chain = new AppliedChain(flame, space);
  for (const count of [1, 2, 6, 5, 3, 6, 4]) {
    assert.deepEqual(
      chain.apply(rules.slice(0, count)),
      anew(rules.slice(0, count)),
      `${count} rules`,
    );
    assert.ok(chain.nodeCount <= space, `${chain.nodeCount} nodes`);
  }
  const tight = new AppliedChain(flame, 1);
  const last = tight.apply(rules);
  assert.equal(tight.apply(rules), last, "the tree that is shown");
  assert.ok(tight.nodeCount <= 2 * flame.nodeCount);
  tight.apply([]);
  assert.equal(tight.nodeCount, 0);
});

test("the worker is notified when no tree has rules", async () => {
  const sent: unknown[] = [];
  class FakeWorker {
    addEventListener() {}
    postMessage(message: unknown) {
      sent.push(message);
    }
  }
  Object.assign(globalThis, { document: { querySelector: () => null }, Worker: FakeWorker });
  const { transformer } = await import("../../../src/workers/transformer.ts");
  transformer.release();
  assert.deepEqual(sent, [], "a worker that was never started holds no trees");
  void transformer.request({ flame, rules, around: "" });
  transformer.release();
  assert.equal(sent.length, 2);
  assert.equal(sent[1], "release");
});
