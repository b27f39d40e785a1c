import assert from "node:assert/strict";
import { test } from "vitest";
import { createCounter } from "../../../test/support/shared-counter.ts";
import { createSlots, shareClears } from "./slots.ts";

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

test("a clear by one worker empties the slots of the others, and only the named object of its own", () => {
  const clears = createCounter();
  const limits = { maxEntries: 10, maxBytes: 1_000 };
  const [own, other] = [0, 1].map(() => shareClears(createSlots<{ bytes: number }>(limits), clears));
  assert.ok(own && other);
  const value = { bytes: 1 };
  for (const slots of [own, other]) for (const name of ["a", "b"]) slots.put(name, [name], value);
  own.clear(["a"]);
  assert.deepEqual([own.get("a"), own.get("b")], [undefined, value]);
  assert.deepEqual([other.get("b"), other.has("a", value)], [undefined, false]);
  other.put("b", ["b"], value);
  assert.equal(other.get("b"), value);
  other.clear(["c"]);
  own.clear(["c"]);
  assert.equal(own.get("b"), undefined);
});
