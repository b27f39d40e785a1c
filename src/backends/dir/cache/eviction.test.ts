import assert from "node:assert/strict";
import { test } from "vitest";
import { createRandom } from "../../../../test/support/random.ts";
import { seedOf } from "../../../../test/support/seed.ts";
import { createEviction } from "./eviction.ts";

function createTested(capacity: number) {
  let at = 0;
  const evicted: string[] = [];
  const eviction = createEviction<string>({
    ...{ capacity, keyOf: (item) => item, now: () => at },
    onEvict: (item) => evicted.push(item),
  });
  return { eviction, evicted, pass: (ms: number) => (at += ms) };
}

test("a scan evicts neither what was used again nor what counts as proven", () => {
  const { eviction, evicted, pass } = createTested(100);
  for (let block = 0; block < 40; block += 1) eviction.add(`index ${block}`, 1, true);
  for (let block = 0; block < 40; block += 1) eviction.add(`hot ${block}`, 1);
  pass(2_000);
  for (let block = 0; block < 40; block += 1) eviction.touch(`hot ${block}`);
  for (let block = 0; block < 10_000; block += 1) {
    eviction.add(`scan ${block}`, 1);
    // A scan reads a block in several pieces.
    eviction.touch(`scan ${block}`);
    assert.ok(eviction.weight <= 100);
  }
  assert.deepEqual([...new Set(evicted.map((item) => item.split(" ")[0]))], ["scan"]);
});

test("an item that comes back soon after it left stays", () => {
  const { eviction, evicted } = createTested(20);
  for (let block = 0; block < 25; block += 1) eviction.add(`first ${block}`, 1);
  const [back = ""] = evicted;
  eviction.add(back, 1);
  for (let block = 0; block < 1_000; block += 1) eviction.add(`scan ${block}`, 1);
  assert.ok(eviction.has(back));
});

test("the weight never exceeds the room, whatever is added, used and removed", () => {
  const { eviction, evicted, pass } = createTested(1_000);
  const { below } = createRandom(seedOf("CACHE_SEED"));
  const held = new Map<string, number>();
  for (let step = 0; step < 20_000; step += 1) {
    const item = `item ${below(300)}`;
    pass(below(1_500));
    if (below(10) === 0) {
      eviction.remove(item);
      held.delete(item);
    } else if (below(2) === 0) eviction.touch(item);
    else if (!held.has(item)) {
      const weight = 1 + below(200);
      held.set(item, weight);
      eviction.add(item, weight, below(5) === 0);
    }
    for (const gone of evicted.splice(0)) held.delete(gone);
    assert.equal(
      eviction.weight,
      [...held.values()].reduce((sum, weight) => sum + weight, 0),
    );
    assert.ok(eviction.weight <= 1_000);
  }
});
