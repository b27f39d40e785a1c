import assert from "node:assert/strict";
import { describe, expect, it, vi } from "vitest";
import { createDeliveryQueue, type Delivery, type DeliveryQueueOptions } from "./delivery-queue.ts";
import type { Attempt } from "./send.ts";

const RETRY = { firstPauseMs: 1, maxPauseMs: 4, totalMs: 60_000 };

/** Creates a queue whose attempts end as a function says; they are noted by their ids. */
function queueOf(
  answer: (id: string, attempt: number) => Attempt | Promise<Attempt>,
  options: Partial<DeliveryQueueOptions> = {},
) {
  const attempts: string[] = [];
  const ended: string[] = [];
  let running = 0;
  const most = { running: 0 };
  const queue = createDeliveryQueue({
    async attempt({ id }) {
      attempts.push(id);
      running += 1;
      most.running = Math.max(most.running, running);
      const outcome = await answer(id, attempts.filter((each) => each === id).length);
      running -= 1;
      return outcome;
    },
    ...{ retry: RETRY, concurrency: 4, onAttempt() {} },
    async onEnd({ id }, count, reason) {
      ended.push(reason === undefined ? `${id} after ${count}` : `${id} after ${count}: ${reason}`);
    },
    ...options,
  });
  const add = (id: string, ...objects: string[]) => queue.add(deliveryOf(id, objects));
  return { queue, add, attempts, ended, most };
}

function deliveryOf(id: string, objects: readonly string[], since = Date.now()): Delivery {
  return { id, body: "{}", objects, since };
}

const FAILED: Attempt = { reason: "500" };

describe("the queue of deliveries", () => {
  it("delivers the events of an object one after another, also when one fails for a while", async () => {
    const { add, attempts, ended } = queueOf((id, attempt) =>
      id === "a1" && attempt < 3 ? FAILED : "delivered",
    );
    for (const id of ["a1", "a2", "a3"]) add(id, "a");
    await expect.poll(() => ended.length).toBe(3);
    assert.deepEqual(attempts, ["a1", "a1", "a1", "a2", "a3"]);
  });

  it("does not let an object that fails hold up others", async () => {
    const { queue, add, ended } = queueOf((id) => (id.startsWith("bad") ? FAILED : "delivered"));
    for (let i = 0; i < 20; i++) add(`bad${i}`, `bad${i}`);
    for (let i = 0; i < 20; i++) add(`good${i}`, "good");
    await expect.poll(() => ended.length).toBe(20);
    assert.deepEqual(
      ended,
      Array.from({ length: 20 }, (_, i) => `good${i} after 1`),
    );
    await queue.drain();
  });

  it("keeps the order for both names of a renamed object", async () => {
    const { add, attempts, ended } = queueOf((id, attempt) =>
      attempt < 2 && id !== "b2" ? FAILED : "delivered",
    );
    add("a1", "a");
    add("b1", "b");
    add("rename", "a", "b");
    add("b2", "b");
    await expect.poll(() => ended.length).toBe(4);
    assert.deepEqual(attempts.slice(-3), ["rename", "rename", "b2"]);
  });

  it("gives up after the whole time, or at once if the receiver is gone, and goes on with the next", async () => {
    const { queue, ended } = queueOf((id) =>
      id === "gone" ? { reason: "410", isFinal: true } : id === "late" ? FAILED : "delivered",
    );
    queue.add(deliveryOf("late", ["a"], Date.now() - RETRY.totalMs));
    queue.add(deliveryOf("gone", ["a"]));
    queue.add(deliveryOf("next", ["a"]));
    await expect.poll(() => ended.length).toBe(3);
    assert.deepEqual(ended, ["late after 1: 500", "gone after 1: 410", "next after 1"]);
  });

  it("makes a bounded number of attempts at the same time", async () => {
    const { add, ended, most } = queueOf(async () => {
      await new Promise(setImmediate);
      return "delivered" as const;
    });
    for (let i = 0; i < 50; i++) add(`${i}`, `${i}`);
    await expect.poll(() => ended.length).toBe(50);
    assert.equal(most.running, 4);
  });

  it("waits longer after each failure, with jitter, up to a bound, and as long as the receiver asks for", () => {
    const pauses: number[] = [];
    const timers = vi.spyOn(globalThis, "setTimeout").mockImplementation(((again: () => void, ms: number) => {
      pauses.push(ms);
      if (pauses.length < 8) queueMicrotask(again);
      return { unref() {} };
    }) as never);
    const { promise, resolve } = Promise.withResolvers<void>();
    const queue = createDeliveryQueue(
      {
        attempt: async () => (pauses.length === 6 ? { reason: "429", pauseMs: 77_000 } : FAILED),
        ...{ retry: { firstPauseMs: 1_000, maxPauseMs: 16_000, totalMs: 60_000 }, concurrency: 1 },
        onAttempt: () => pauses.length === 7 && resolve(),
        async onEnd() {},
      },
      () => 0.5,
    );
    queue.add(deliveryOf("a", ["a"]));
    return promise
      .finally(() => timers.mockRestore())
      .then(() => {
        assert.deepEqual(pauses.slice(0, 6), [750, 1_500, 3_000, 6_000, 12_000, 12_000]);
        assert.equal(pauses[6], 16_000);
      });
  });

  it("delivers what is ready at the end, and leaves what waits for another attempt", async () => {
    const { queue, add, ended } = queueOf((id) => (id === "bad" ? FAILED : "delivered"));
    add("bad", "bad");
    for (let i = 0; i < 10; i++) add(`good${i}`, "good");
    await queue.drain();
    assert.equal(ended.length, 10);
  });
});
