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

test("callers take turns, however much one of them has waiting", async () => {
  const turns = createTurns(1);
  const order: string[] = [];
  const run = (name: string) => turns.run(async () => order.push(name), always, name[0]);
  await Promise.all(["a1", "a2", "a3", "b1", "c1", "b2"].map(run));
  assert.deepEqual(order, ["a1", "a2", "b1", "c1", "a3", "b2"]);
});

test("a caller that takes all turns that it may leaves the others to other callers", async () => {
  const turns = createTurns(3, 2);
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  const began: string[] = [];
  const run = (name: string) =>
    turns.run(
      async () => {
        began.push(name);
        if (name.startsWith("a")) await ended;
      },
      always,
      name[0],
    );
  const held = ["a1", "a2", "a3", "a4"].map(run);
  await Promise.all(["b1", "b2", "c1"].map(run));
  assert.deepEqual(began, ["a1", "a2", "b1", "b2", "c1"]);
  end();
  await Promise.all(held);
  assert.deepEqual(began.slice(5), ["a3", "a4"]);
});

test("work that leaves its turn lets another one begin, and passes the turn on once", async () => {
  const turns = createTurns(1);
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  const leaving = turns.run((leave) => {
    leave();
    return ended;
  }, always);
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  const next = turns.run(() => held, always);
  end();
  await leaving;
  let began = false;
  const last = turns.run(async () => {
    began = true;
  }, always);
  await Promise.resolve();
  assert.equal(began, false);
  release();
  await Promise.all([next, last]);
});
