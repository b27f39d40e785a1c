import assert from "node:assert/strict";
import { test } from "vitest";
import type { SharedCounter } from "../../runtime/threads/sharing.ts";
import { shareClears } from "./clearing.ts";
import { createSlots } from "./slots.ts";

function createCounter(): SharedCounter {
  let value = 0;
  return {
    get value() {
      return value;
    },
    raise(to) {
      value = Math.max(value, to);
    },
    increment: () => value++,
  };
}

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
