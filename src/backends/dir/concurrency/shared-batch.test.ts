import assert from "node:assert/strict";
import { test } from "vitest";
import { createSharedBatch } from "./shared-batch.ts";

test("items whose callers arrive while a batch runs are the next batch together", async () => {
  const batches: string[][] = [];
  const gate = Promise.withResolvers<void>();
  const share = createSharedBatch(async (items: ReadonlySet<string>) => {
    batches.push([...items]);
    await gate.promise;
    return items.size;
  });
  const results = Promise.all([share("a"), share("b"), share("c"), share("b")]);
  gate.resolve();
  assert.deepEqual(await results, [1, 2, 2, 2]);
  assert.deepEqual(batches, [["a"], ["b", "c"]]);
  assert.equal(await share("d"), 1);
});

test("a failure reaches all callers of its batch, and no other", async () => {
  const share = createSharedBatch(async (items: ReadonlySet<string>) => {
    if (items.has("bad")) throw new Error("no");
  });
  const first = share("good");
  const [bad, beside] = [share("bad"), share("beside")];
  await first;
  await assert.rejects(bad, /no/);
  await assert.rejects(beside, /no/);
  await share("later");
});
