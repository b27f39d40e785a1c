import assert from "node:assert/strict";
import { test } from "vitest";
import { joinQuantity } from "./sharing.ts";

test("each holder sees the largest part of the others, and other workers the largest of all", () => {
  const published: number[] = [];
  const partOf = joinQuantity({
    publish: (part) => void published.push(part),
    others: 1,
    largestOther: 1,
    workers: 2,
  });
  const [one, two] = [partOf(), partOf()];
  one.publish(5);
  two.publish(3);
  assert.deepEqual([one.largestOther, two.largestOther, one.others], [3, 5, 4]);
  one.end();
  assert.deepEqual([two.largestOther, two.others], [1, 1]);
  assert.deepEqual(published, [5, 5, 3]);
});
