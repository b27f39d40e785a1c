import assert from "node:assert/strict";
import { setImmediate as tick } from "node:timers/promises";
import { test } from "vitest";
import { createSharedCheck } from "./shared-check.ts";

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
