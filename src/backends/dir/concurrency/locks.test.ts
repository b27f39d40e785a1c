import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { createKeyedLocks, createWriteGate, inTurn } from "./locks.ts";
import { createThreadGate, createThreadLocks } from "./thread-locks.ts";

for (const [extent, create] of [
  ["a thread", createKeyedLocks],
  ["all threads", () => createThreadLocks(randomUUID())],
] as const) {
  describe(`locks of ${extent}`, () => {
    test("work under one name follows other work under it, also after a failure", async () => {
      const { withLocks } = create();
      const seen: string[] = [];
      const work = (name: string, ...locks: string[]) =>
        withLocks(locks, async () => {
          seen.push(`${name} begins`);
          await turn();
          seen.push(`${name} ends`);
          if (name === "first") throw new Error("no");
          return name;
        });
      const results = await Promise.allSettled([
        work("first", "a", "b"),
        work("second", "b", "a", "b"),
        work("other", "c"),
      ]);
      assert.deepEqual(
        results.map(({ status }) => status),
        ["rejected", "fulfilled", "fulfilled"],
      );
      assert.ok(seen.indexOf("second begins") > seen.indexOf("first ends"));
      assert.ok(seen.indexOf("other begins") < seen.indexOf("first ends"));
    });

    test("callers with the same names in other orders do not block each other", async () => {
      const { withLocks } = create();
      const all = ["a", "b", "c"].flatMap((x) =>
        ["a", "b", "c"].map((y) => withLocks([x, y], () => turn([x, y]))),
      );
      assert.equal((await Promise.all(all)).length, 9);
    });
  });
}

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

for (const [extent, create] of [
  ["a thread", createWriteGate],
  ["all threads", () => createThreadGate(randomUUID())],
] as const) {
  describe(`gates of ${extent}`, () => {
    test("a closed gate waits for running changes and holds later ones until it opens", async () => {
      const gate = create();
      const events: string[] = [];
      const first = Promise.withResolvers<void>();
      const running = gate.pass("t", () => first.promise).then(() => events.push("first ends"));
      const closing = gate.close("t", 60_000).then((open) => {
        events.push("closed");
        return open;
      });
      const later = gate.pass("t", async () => events.push("second"));
      await gate.pass("other", async () => events.push("other"));
      first.resolve();
      const open = await closing;
      await turn();
      assert.deepEqual(events, ["other", "first ends", "closed"]);
      open();
      open();
      await Promise.all([running, later]);
      assert.deepEqual(events.at(-1), "second");
    });

    test("a gate closes after its patience, and does not wait for long changes at all", async () => {
      const gate = create();
      const endless = new Promise<void>(() => {});
      void gate.passSlowly("t", () => endless);
      await expect.poll(() => gate.isBusy("t")).toBe(true);
      assert.equal(await gate.isBusy("other"), false);
      (await gate.close("t", 60_000))();
      assert.equal(await gate.isRunning("t"), false);
      void gate.pass("t", () => endless);
      await expect.poll(() => gate.isRunning("t")).toBe(true);
      (await gate.close("t", 1))();
      assert.equal(await gate.isRunning("t"), true);
      await gate.pass("t", async () => {});
    });

    test("of several callers that close a gate, each has it alone", async () => {
      const gate = create();
      let inside = 0;
      const alone = async () => {
        const open = await gate.close("t", 60_000);
        assert.equal(++inside, 1);
        await turn();
        inside--;
        open();
      };
      await Promise.all([alone(), alone(), gate.pass("t", turn), alone()]);
    });

    test("a failed change leaves the gate usable", async () => {
      const gate = create();
      await assert.rejects(gate.pass("t", () => Promise.reject(new Error("no"))));
      (await gate.close("t", 60_000))();
      assert.equal(await gate.pass("t", async () => 7), 7);
    });
  });
}
