import assert from "node:assert/strict";
import { test } from "vitest";
import { heapGrowth } from "../../../test/support/heap-growth.ts";
import { beforeEnd } from "./before-end.ts";

test("waits for work until the end fails, and for none afterwards", async () => {
  const { promise: end, reject } = Promise.withResolvers<never>();
  const wait = beforeEnd(end);
  assert.equal(await wait(Promise.resolve(1)), 1);
  await assert.rejects(wait(Promise.reject(new Error("broken"))), /broken/);
  const pending = wait(new Promise(() => {}));
  reject(new Error("over"));
  await assert.rejects(pending, /over/);
  await assert.rejects(wait(new Promise(() => {})), /over/);
});

test("keeps nothing of the work that it has waited for", async () => {
  const wait = beforeEnd(new Promise<never>(() => {}));
  const count = 100_000;
  const grown = await heapGrowth(async (measure) => {
    for (let at = 0; at < count; at += 1) await wait(Promise.resolve(at));
    measure();
  });
  assert.ok(grown < count * 50, `${grown} bytes for ${count} results`);
});
