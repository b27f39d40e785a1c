import assert from "node:assert/strict";
import { test } from "vitest";
import { radixSort } from "./ordered-rows.ts";

test("sorts many items in steps that look at a bounded number of them", () => {
  const names = Array.from({ length: 50_000 }, (_, i) => String((i * 7919) % 50_000).padStart(8, "0"));
  const items = Int32Array.from(names.keys());
  let [looks, most, steps] = [0, 0, 0];
  const sorting = radixSort(items, {
    radix: 256,
    digit(item, depth) {
      looks++;
      return names[item]?.charCodeAt(depth) || -1;
    },
    compare(a, b) {
      looks++;
      return (names[a] as string) < (names[b] as string) ? -1 : 1;
    },
  });
  while (!sorting.next().done) {
    [most, looks] = [Math.max(most, looks), 0];
    steps++;
  }
  assert.deepEqual(
    Array.from(items, (item) => names[item]),
    names.toSorted(),
  );
  assert.ok(most <= 8_192, `a step looked ${most} times`);
  assert.ok(steps > 50, `there were ${steps} steps`);
});
