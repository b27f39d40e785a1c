import assert from "node:assert/strict";
import { test } from "vitest";
import { openFixture } from "../../../../../test/fixtures/dir/format.ts";
import { takeUnknownVersions } from "./version-ledger.ts";

test("of versions with a gap that no writer leaves, only the newest is looked at", () => {
  const dataset = openFixture("new");
  assert.deepEqual(takeUnknownVersions(dataset, 3n).versions, [3n]);
  assert.deepEqual(takeUnknownVersions(dataset, 5n).versions, [4n, 5n]);
  const highest = 2n ** 63n - 1n;
  assert.deepEqual(takeUnknownVersions(dataset, highest).versions, [highest]);
  assert.deepEqual(takeUnknownVersions(dataset, highest).versions, []);
});
