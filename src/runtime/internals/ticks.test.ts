import assert from "node:assert/strict";
import { createHook } from "node:async_hooks";
import { setImmediate as turn } from "node:timers/promises";
import { test } from "vitest";
import { collect } from "../../../test/support/collect.ts";
import { keepTicksFast } from "./ticks.ts";

test("a tick survives collections of garbage once it is kept, and another one does not", async () => {
  const keptTick = tickOf(keepTicksFast);
  const otherTick = tickOf(() => process.nextTick(() => {}));
  // A look at a reference keeps its object until the turn of the event loop ends.
  while (otherTick.deref() !== undefined) {
    await turn();
    collect();
    await turn();
  }
  assert.notEqual(keptTick.deref(), undefined);
});

/** Returns the object of the tick that a function schedules. */
function tickOf(schedule: () => void): WeakRef<object> {
  const ticks: WeakRef<object>[] = [];
  const hook = createHook({
    init: (_id, type, _trigger, resource) => {
      if (type === "TickObject") ticks.push(new WeakRef(resource));
    },
  }).enable();
  schedule();
  hook.disable();
  const [tick] = ticks;
  assert.ok(tick);
  return tick;
}
