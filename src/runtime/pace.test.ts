import assert from "node:assert/strict";
import { test } from "vitest";
import { atOnce, inSlices, type Steps, stepsOf } from "./pace.ts";

/** Steps without an end of their own: they end once other work has run. */
function* until(isOver: () => boolean): Steps<string> {
  while (!isOver()) yield;
  return "over";
}

test("lets other work run between the steps of long work", async () => {
  let turned = false;
  setImmediate(() => {
    turned = true;
  });
  assert.equal(await inSlices(until(() => turned)), "over");
});

test("ends long work when what it depends on has changed during a pause", async () => {
  let steps = 0;
  const work = inSlices(
    until(() => ++steps < 0),
    () => {
      throw new Error("changed");
    },
  );
  await assert.rejects(work, /changed/);
});

test("takes steps and plain results alike", () => {
  assert.equal(atOnce(stepsOf(7)), 7);
  assert.deepEqual(atOnce(stepsOf<readonly number[]>([7])), [7]);
  let left = 3;
  assert.equal(atOnce(stepsOf(until(() => left-- === 0))), "over");
});
