import assert from "node:assert/strict";
import { setImmediate as turn } from "node:timers/promises";
import { test } from "vitest";
import { createWriteGate } from "./write-gate.ts";

test("a closed gate waits for running changes and holds later ones until it opens", async () => {
  const gate = createWriteGate();
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
  const gate = createWriteGate();
  const endless = new Promise<void>(() => {});
  void gate.passSlowly("t", () => endless);
  assert.ok(gate.isBusy("t"));
  assert.equal(gate.isBusy("other"), false);
  (await gate.close("t", 60_000))();
  void gate.pass("t", () => endless);
  (await gate.close("t", 1))();
  await gate.pass("t", async () => {});
});

test("a failed change leaves the gate usable", async () => {
  const gate = createWriteGate();
  await assert.rejects(gate.pass("t", () => Promise.reject(new Error("no"))));
  (await gate.close("t", 60_000))();
  assert.equal(await gate.pass("t", async () => 7), 7);
});
