import assert from "node:assert/strict";
import { setImmediate as tick } from "node:timers/promises";
import { test } from "vitest";
import { heapGrowth } from "../../test/support/heap-growth.ts";
import { beforeEnd, createSharedCheck } from "./promises.ts";

test("callers share the next check, never one that began before them", async () => {
  const running: ((value: number) => void)[] = [];
  const check = createSharedCheck(() => new Promise<number>((resolve) => running.push(resolve)));
  const first = check();
  const [second, third] = [check(), check()];
  assert.equal(running.length, 1);
  running[0]?.(1);
  assert.equal(await first, 1);
  await tick();
  assert.equal(running.length, 2);
  const fourth = check();
  running[1]?.(2);
  assert.deepEqual(await Promise.all([second, third]), [2, 2]);
  await tick();
  running[2]?.(3);
  assert.equal(await fourth, 3);
});

test("a failed check does not stop the next one", async () => {
  let fail = true;
  const check = createSharedCheck(async () => {
    if (fail) throw new Error("no");
    return "yes";
  });
  const [first, second] = [check(), check()];
  fail = false;
  await assert.rejects(first);
  assert.equal(await second, "yes");
});

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
