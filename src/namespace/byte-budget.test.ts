import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { createByteBudget } from "./byte-budget.ts";
import { isLanceError } from "./errors.ts";

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
