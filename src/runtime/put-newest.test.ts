import assert from "node:assert/strict";
import { test } from "vitest";
import { putNewest } from "./put-newest.ts";

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
