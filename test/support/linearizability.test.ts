import assert from "node:assert/strict";
import { describe, test } from "vitest";
import { type HistoryCall, linearize, type SequentialModel } from "./linearizability.ts";
import { createRandom } from "./random.ts";

type Call = "read" | { readonly write: number };
type Result = number | "ok";

const register: SequentialModel<number, Call, Result> = {
  initial: 0,
  step(state, call, result) {
    if (call === "read") return result === state || result === undefined ? [state] : [];
    return [call.write];
  },
  key: String,
};

/** Returns a call of a history: the call, its result, its start and its end. */
function at(call: Call, result: Result | undefined, invokedAt: number, returnedAt: number) {
  return { call, result, invokedAt, returnedAt } satisfies HistoryCall<Call, Result>;
}

const isLinear = (...history: HistoryCall<Call, Result>[]) => linearize(history, register) !== undefined;

describe("the check for linearizability", () => {
  test("accepts histories that have an order", () => {
    assert.ok(isLinear());
    assert.ok(isLinear(at({ write: 1 }, "ok", 0, 1), at("read", 1, 2, 3)));
    assert.ok(
      isLinear(at({ write: 1 }, "ok", 0, 9), at("read", 0, 1, 2), at("read", 1, 3, 4)),
      "it falls between",
    );
    assert.ok(
      isLinear(
        at({ write: 1 }, "ok", 0, 9),
        at({ write: 2 }, "ok", 0, 9),
        at("read", 2, 2, 3),
        at("read", 1, 4, 5),
      ),
    );
  });

  test("refuses a read of an earlier value", () => {
    assert.ok(!isLinear(at({ write: 1 }, "ok", 0, 1), at("read", 0, 2, 3)));
  });

  test("refuses a value that comes, goes and comes again", () => {
    const writes = [at({ write: 1 }, "ok", 0, 9), at({ write: 2 }, "ok", 0, 9)];
    const reads = [at("read", 1, 1, 2), at("read", 2, 3, 4), at("read", 1, 5, 6)];
    assert.ok(!isLinear(...writes, ...reads));
  });

  test("lets a call without an answer take effect late or never, but not before its start", () => {
    const lost = at({ write: 1 }, undefined, 5, 0);
    assert.ok(isLinear(lost, at("read", 0, 6, 7), at("read", 1, 8, 9)));
    assert.ok(isLinear(lost, at("read", 0, 6, 7)));
    assert.ok(!isLinear(lost, at("read", 1, 1, 2)));
    assert.ok(!isLinear(lost, at("read", 1, 6, 7), at("read", 0, 8, 9)));
  });

  test("orders a long history of many clients that really took place", () => {
    const random = createRandom(7);
    let state = 0;
    const history = Array.from({ length: 150 }, (_, i) => {
      const span = [i * 10 - random.below(40), i * 10 + random.below(40)] as const;
      if (random.below(2) === 0) return at("read", state, ...span);
      state = random.below(5);
      return at({ write: state }, "ok", ...span);
    });
    const order = linearize(history, register);
    assert.equal(order?.length, history.length);
    const stale = at("read", 99, 700, 701);
    assert.equal(linearize([...history, stale], register), undefined);
  });
});
