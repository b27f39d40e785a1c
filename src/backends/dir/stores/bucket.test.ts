import assert from "node:assert/strict";
import { test } from "vitest";
import { conditionally, type Outcome } from "./bucket.ts";

const lost = { unclear: new Error("the connection was reset") };

/** Returns attempts with the given outcomes, in order. */
function attempts(...outcomes: readonly Outcome[]) {
  let count = 0;
  return { attempt: async () => outcomes[count++] ?? assert.fail("an attempt too many"), count: () => count };
}

const ours = async () => "ours" as const;
const theirs = async () => "theirs" as const;
const nobodys = async () => "nobody's" as const;

test("a clear answer is the answer", async () => {
  assert.equal(await conditionally(attempts("done").attempt, theirs), true);
  // The object is not compared: only another writer's object can refuse the first attempt.
  assert.equal(await conditionally(attempts("refused").attempt, ours), false);
});

test.concurrent("a refusal after a lost answer depends on whose the object is", async () => {
  assert.equal(await conditionally(attempts(lost, "refused").attempt, ours), true);
  assert.equal(await conditionally(attempts(lost, "refused").attempt, theirs), false);
  assert.equal(await conditionally(attempts(lost, "done").attempt, theirs), true);
});

test.concurrent("an object that another writer is at is tried for again", async () => {
  assert.equal(await conditionally(attempts("busy", "busy", "done").attempt, theirs), true);
  assert.equal(await conditionally(attempts("busy", "refused").attempt, ours), false);
});

test.concurrent("the attempts have an end, and what is unclear is said", async () => {
  const { attempt, count } = attempts(lost, lost, lost, lost, lost);
  await assert.rejects(conditionally(attempt, nobodys), /reset/);
  assert.equal(count(), 5);
  assert.equal(await conditionally(attempts("busy", "busy", "busy", "busy", "busy").attempt, ours), false);
});

test.concurrent("a write whose answers were all lost is read back", async () => {
  const lostAll = () => attempts(lost, lost, lost, lost, lost).attempt;
  assert.equal(await conditionally(lostAll(), ours), true);
  assert.equal(await conditionally(lostAll(), theirs), false);
});

test("an attempt that no other may follow is not given up as early as a first one", async () => {
  const given: number[] = [];
  const attempt = async (earlier: number) => {
    given.push(earlier);
    return "done" as const;
  };
  await conditionally(attempt, theirs);
  await conditionally(attempt, theirs, "wait");
  assert.deepEqual(given, [0, 2]);
});
