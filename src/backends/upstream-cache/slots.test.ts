import assert from "node:assert/strict";
import { test } from "vitest";
import { createSlots } from "./slots.ts";

test("clears a table with more cached answers than a call has arguments", () => {
  const count = 200_000;
  const slots = createSlots<{ readonly bytes: number }>({ maxEntries: count + 1, maxBytes: 1 });
  const value = { bytes: 0 };
  for (let caller = 0; caller < count; caller++) slots.put(String(caller), ["n", "t"], value);
  slots.put("other", ["n", "u"], value);
  slots.clear(["n", "t"]);
  assert.deepEqual([slots.get("0"), slots.get(String(count - 1))], [undefined, undefined]);
  assert.equal(slots.get("other"), value);
});
