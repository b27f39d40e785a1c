import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { setImmediate as turn } from "node:timers/promises";
import { describe, test } from "vitest";
import { createKeyedLocks } from "./keyed-locks.ts";
import { createThreadLocks } from "./thread-locks.ts";

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
