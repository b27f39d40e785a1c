import assert from "node:assert/strict";
import { test } from "vitest";
import { createTurns } from "./turns.ts";

const always = () => true;

test("no more than the limit runs at a time, and in the order of arrival", async () => {
  const turns = createTurns(2);
  const started: number[] = [];
  let [running, most] = [0, 0];
  const work = (index: number) => async () => {
    started.push(index);
    most = Math.max(most, ++running);
    await new Promise((resolve) => setImmediate(resolve));
    running--;
    return index;
  };
  const results = await Promise.all([0, 1, 2, 3, 4].map((index) => turns.run(work(index), always)));
  assert.deepEqual(results, [0, 1, 2, 3, 4]);
  assert.deepEqual(started, [0, 1, 2, 3, 4]);
  assert.equal(most, 2);
});

test("work that fails, or is no longer wanted, passes its turn on", async () => {
  const turns = createTurns(1);
  const failing = turns.run(async () => assert.fail("broken"), always);
  const unwanted = turns.run(
    async () => "never",
    () => false,
  );
  const last = turns.run(async () => "last", always);
  await assert.rejects(failing, /broken/);
  assert.equal(await unwanted, undefined);
  assert.equal(await last, "last");
});
