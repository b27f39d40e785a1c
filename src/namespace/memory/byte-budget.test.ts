import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { isLanceError } from "../errors.ts";
import { type ByteBudget, createByteBudget } from "./byte-budget.ts";

describe("createByteBudget", () => {
  it("throttles a hold when all holds together take too much, and recovers when one gives back", () => {
    const budget = createByteBudget(12);
    const [first, second] = [budget.open(), budget.open()];
    first.take(8);
    assert.throws(
      () => second.take(5),
      (error) => isLanceError(error, "Throttling"),
    );
    assert.equal(budget.held, 8);
    second.take(4);
    first.release(6);
    second.take(6);
    assert.equal(budget.held, 12);
  });

  it("gives back no more than a hold has, however often it is told", () => {
    const budget = createByteBudget(10);
    const [kept, hold] = [budget.open(), budget.open()];
    kept.take(1);
    hold.take(5);
    hold.release(7);
    hold.release();
    assert.equal(budget.held, 1);
  });

  it("does not count the free bytes of a hold, in whatever steps they come and go", () => {
    const budget = createByteBudget(10);
    budget.open().take(10);
    const hold = budget.open(4);
    hold.take(3);
    hold.take(1);
    assert.throws(
      () => hold.take(1),
      (error) => isLanceError(error, "Throttling"),
    );
    hold.release(2);
    hold.take(2);
    hold.release();
    assert.equal(budget.held, 10);
  });

  it("leaves each worker a part of its own, whatever the others hold, and never more than the bound together", () => {
    const [first, second] = budgetsOfWorkers(2, 800);
    const [filling, small] = [first.open(), second.open()];
    filling.take(700);
    assert.throws(
      () => filling.take(1),
      (error) => isLanceError(error, "PayloadTooLarge"),
    );
    small.take(100);
    assert.throws(
      () => second.open().take(1),
      (error) => isLanceError(error, "Throttling"),
    );
    assert.equal(first.held + second.held, 800);
    filling.release(300);
    second.open().take(300);
    assert.throws(
      () => first.open().take(1),
      (error) => isLanceError(error, "Throttling"),
    );
  });

  it("ends requests of its own worker for a request that exceeds the worker's part", () => {
    const [first, second] = budgetsOfWorkers(2, 800);
    first.open().take(650);
    const errors: unknown[] = [];
    const unfinished = second.open(0, "greedy");
    unfinished.arrive(undefined, (error) => errors.push(error));
    unfinished.take(150);
    second.open(0, "modest").take(60);
    assert.equal(unfinished.bytes, 0);
    assert.ok(first.held + second.held <= 800);
  });

  it("tells a refused client when to come again", () => {
    const budget = createByteBudget(1);
    budget.open().take(1);
    assert.throws(
      () => budget.open().take(1),
      (error) => isLanceError(error, "Throttling") && error.headers["retry-after"] === "1",
    );
  });

  it("tells a client not to come again with what does not fit even alone", () => {
    const budget = createByteBudget(10);
    const hold = budget.open(2);
    hold.take(12);
    assert.throws(
      () => hold.take(1),
      (error) => isLanceError(error, "PayloadTooLarge") && error.headers["retry-after"] === undefined,
    );
    assert.throws(
      () => budget.open(2).take(12),
      (error) => isLanceError(error, "Throttling"),
    );
  });
});

describe("an unfinished request", () => {
  const endings = (budget: ByteBudget, sender: string, sizes: readonly number[]) => {
    const ended: number[] = [];
    const holds = sizes.map((size, index) => {
      const hold = budget.open(2);
      hold.arrive(
        () => sender,
        (error) => {
          assert.ok(isLanceError(error, "Throttling"));
          ended.push(index);
        },
      );
      hold.take(2 + size);
      return hold;
    });
    return { ended, holds };
  };
  const soon = () => new Promise(setImmediate);

  it("ends when a sender that holds less needs its room, the oldest of the largest sender first", async () => {
    const budget = createByteBudget(100);
    const large = endings(budget, "large", [30, 30, 20]);
    const small = endings(budget, "small", [20]);
    small.holds[0]?.take(15);
    assert.equal(budget.held, 20 + 15 + 50);
    await soon();
    assert.deepEqual([large.ended, small.ended], [[0], []]);
    assert.throws(
      () => large.holds[0]?.take(1),
      (error) => isLanceError(error, "Throttling"),
    );
    large.holds[0]?.release();
    assert.equal(budget.held, 85);
  });

  it("does not end for a sender that would hold as much, nor for one that is the same", async () => {
    const budget = createByteBudget(100);
    const [one, other] = [endings(budget, "one", [25, 25]), endings(budget, "other", [25, 25])];
    for (const { holds } of [one, other])
      assert.throws(
        () => holds[0]?.take(1),
        (error) => isLanceError(error, "Throttling"),
      );
    await soon();
    assert.deepEqual([one.ended, other.ended], [[], []]);
  });

  it("does not end once it has arrived, and counts for its sender until its call ends", async () => {
    const budget = createByteBudget(100);
    const large = endings(budget, "large", [60, 30]);
    large.holds[0]?.arrived();
    const other = budget.open(0, "other");
    other.take(40);
    await soon();
    assert.deepEqual(large.ended, [1]);
    assert.throws(
      () => other.take(1),
      (error) => isLanceError(error, "Throttling"),
    );
    large.holds[0]?.release();
    other.take(60);
    assert.equal(budget.held, 100);
  });

  it("keeps its room from a request that does not fit even alone", async () => {
    const budget = createByteBudget(100);
    const { ended } = endings(budget, "large", [90]);
    assert.throws(
      () => budget.open(0, "other").take(101),
      (error) => isLanceError(error, "PayloadTooLarge"),
    );
    await soon();
    assert.deepEqual(ended, []);
  });
});

/** Creates the budgets of the workers of a process. */
function budgetsOfWorkers(workers: 2, maxBytes: number): [ByteBudget, ByteBudget] {
  const parts = Array.from({ length: workers }, () => 0);
  const others = (own: number) => parts.filter((_, worker) => worker !== own);
  const budgetOf = (own: number) =>
    createByteBudget(maxBytes, {
      workers,
      publish(part) {
        parts[own] = part;
      },
      get others() {
        return others(own).reduce((sum, part) => sum + part, 0);
      },
      get largestOther() {
        return Math.max(0, ...others(own));
      },
    });
  return [budgetOf(0), budgetOf(1)];
}
