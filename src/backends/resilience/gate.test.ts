import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import { ann } from "../../../test/fixtures/auth/principal.ts";
import type { Call } from "../../namespace/call/call.ts";
import { isLanceError, LanceError } from "../../namespace/errors.ts";
import { Gate } from "./gate.ts";

const { signal } = new AbortController();

test("calls enter up to the bound, wait in their order, and are refused at once past the second bound", async () => {
  const gate = new Gate({ places: 1, maxWaiting: 2 });
  const order: number[] = [];
  assert.equal(gate.enter(signal), undefined);
  const waiting = [1, 2].map((each) => gate.enter(signal)?.then(() => order.push(each)));
  await assert.rejects(Promise.resolve(gate.enter(signal)), (error) => {
    assert.ok(isLanceError(error, "Throttling"));
    assert.deepEqual([error.headers["retry-after"], error.fault], ["1", "crowded"]);
    return true;
  });
  gate.leave();
  gate.leave();
  await Promise.all(waiting);
  assert.deepEqual(order, [1, 2]);
});

test("callers take turns, and the one with the most waiting calls makes room for others", async () => {
  const gate = new Gate({ places: 1, maxWaiting: 3 });
  const order: string[] = [];
  const enter = (name: string) => {
    const call = { principal: { ...ann, name: name.slice(0, 1) } } as Call;
    return Promise.resolve(gate.enter(signal, 0, call)).then(
      () => order.push(name),
      (error) => order.push(`${name} ${isLanceError(error, "Throttling")}`),
    );
  };
  const calls = ["a1", "a2", "a3", "a4", "a5", "b1", "b2"].map(enter);
  await Promise.all([calls[0], calls[3], calls[4], calls[6]]);
  for (let count = 0; count < 4; count++) gate.leave();
  await Promise.all(calls);
  assert.deepEqual(order, ["a1", "a5 true", "a4 true", "b2 true", "a2", "b1", "a3"]);
});

test("a slot that is held is not handed over when its call leaves", async () => {
  const gate = new Gate({ places: 1, maxWaiting: 1 });
  void gate.enter(signal);
  let isIn = false;
  const waiting = gate.enter(signal)?.then(() => {
    isIn = true;
  });
  gate.hold();
  gate.leave();
  await new Promise(setImmediate);
  assert.equal(isIn, false);
  gate.leave();
  await waiting;
});

test("a call that gives up, or waits past its limit, leaves the queue to the others", async () => {
  const gate = new Gate({ places: 1, maxWaiting: 2 });
  void gate.enter(signal);
  const controller = new AbortController();
  const given = gate.enter(controller.signal);
  const late = gate.enter(signal, 1);
  const gone = new LanceError("Cancelled", "gone");
  controller.abort(gone);
  await assert.rejects(Promise.resolve(given), gone);
  await assert.rejects(Promise.resolve(late), (error) => isLanceError(error, "DeadlineExceeded"));
  assert.equal(gate.waiting, 0);
  gate.leave();
  assert.equal(gate.enter(signal), undefined);
});

test("no place is lost or made, whatever the order of events", async () => {
  const steps = fc.array(fc.constantFrom("enter", "leave", "abort"), { maxLength: 60 });
  await fc.assert(
    fc.asyncProperty(steps, fc.integer({ min: 1, max: 3 }), async (events, places) => {
      const gate = new Gate({ places, maxWaiting: 3 });
      const waiting: AbortController[] = [];
      let inside = 0;
      for (const event of events) {
        if (event === "leave" && inside > 0) {
          inside -= 1;
          gate.leave();
        } else if (event === "abort") waiting.pop()?.abort(new Error("gone"));
        else {
          const controller = new AbortController();
          const entered = gate.enter(controller.signal);
          if (entered === undefined) inside += 1;
          else {
            waiting.push(controller);
            entered.then(
              () => {
                waiting.splice(waiting.indexOf(controller), 1);
                inside += 1;
              },
              () => {},
            );
          }
        }
        await new Promise(setImmediate);
        assert.ok(inside <= places && gate.waiting <= 3);
        assert.ok(gate.waiting === 0 || inside === places, "nobody waits beside a free place");
      }
    }),
    { numRuns: 30 },
  );
});
