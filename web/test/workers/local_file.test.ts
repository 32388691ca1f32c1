import assert from "node:assert/strict";
import { test } from "node:test";
import { LocalFile } from "../../src/workers/local_file.ts";

test("after the worker has ended, pending and later requests fail", async () => {
  const workers: EventTarget[] = [];
  class Silent extends EventTarget {
    constructor() {
      super();
      workers.push(this);
    }
    postMessage() {}
  }
  Object.assign(globalThis, { document: { querySelector: () => null }, Worker: Silent });
  const local = new LocalFile([new Blob(["main;run 1\n"])]);
  const early = assert.rejects(local.read(), /not be enough memory/);
  workers[0].dispatchEvent(new Event("error"));
  await early;
  await assert.rejects(local.redactable(), /not be enough memory/);
});
