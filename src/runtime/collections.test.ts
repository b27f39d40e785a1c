import assert from "node:assert/strict";
import { test } from "vitest";
import { firstRepeated, putNewest } from "./collections.ts";

test("an entry that is put again is the newest, and the one that was put the longest ago makes room", () => {
  const map = new Map<string, number>();
  assert.equal(putNewest(map, "a", 1, 2), undefined);
  assert.equal(putNewest(map, "b", 2, 2), undefined);
  assert.equal(putNewest(map, "a", 3, 2), undefined);
  assert.equal(putNewest(map, "c", 4, 2), 2);
  assert.deepEqual(
    [...map],
    [
      ["a", 3],
      ["c", 4],
    ],
  );
});

test("the first text that an earlier one equals is found", () => {
  assert.equal(firstRepeated([]), undefined);
  assert.equal(firstRepeated(["a", "b", "A", ""]), undefined);
  assert.equal(firstRepeated(["a", "b", "c", "b", "a"]), "b");
  assert.equal(firstRepeated(["", ""]), "");
});
