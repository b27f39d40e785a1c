import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { describe, test } from "vitest";
import { inTurn } from "./in-turn.ts";
import { createKeyedLocks } from "./keyed-locks.ts";
import { createThreadLocks } from "./thread-locks.ts";

const HOUR_MS = 3_600_000;

for (const [extent, create] of [
  ["a thread", createKeyedLocks],
  ["all threads", () => createThreadLocks(randomUUID())],
] as const) {
  describe(`turns of ${extent}`, () => {
    test("work waits for earlier work under its name, also after a failure, and not for other names", async () => {
      const locks = create();
      const seen: string[] = [];
      const first = Promise.withResolvers<void>();
      const one = inTurn(locks, "a", HOUR_MS, () => first.promise);
      const two = inTurn(locks, "a", HOUR_MS, async () => seen.push("a"));
      await inTurn(locks, "b", HOUR_MS, async () => seen.push("b"));
      first.reject(new Error("no"));
      await assert.rejects(one, /no/);
      await two;
      assert.deepEqual(seen, ["b", "a"]);
    });

    test("work that ends its turn early lets others follow, and still returns its own result", async () => {
      const locks = create();
      const sync = Promise.withResolvers<string>();
      const one = inTurn(locks, "a", HOUR_MS, (endTurn) => {
        endTurn();
        return sync.promise;
      });
      assert.equal(await inTurn(locks, "a", HOUR_MS, async () => "second"), "second");
      sync.resolve("first");
      assert.equal(await one, "first");
    });

    test("late work does not wait longer, runs once, and work after it waits for its end", async () => {
      const locks = create();
      const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const seen: string[] = [];
      const one = inTurn(locks, "a", HOUR_MS, () => first.promise);
      const started = Promise.withResolvers<void>();
      const two = inTurn(locks, "a", 1, async () => {
        seen.push("late work begins");
        started.resolve();
        await second.promise;
        seen.push("late work ends");
      });
      await started.promise;
      const three = inTurn(locks, "a", HOUR_MS, async () => seen.push("third"));
      first.resolve();
      await one;
      second.resolve();
      await Promise.all([two, three]);
      assert.deepEqual(seen, ["late work begins", "late work ends", "third"]);
    });
  });
}
