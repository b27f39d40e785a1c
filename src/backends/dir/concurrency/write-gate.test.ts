import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { createThreadGate } from "./thread-locks.ts";
import { createWriteGate } from "./write-gate.ts";

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
