import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import { openFixture } from "../../../../../test/fixtures/dir/format.ts";
import { createRangeCheck, deleteVersions } from "./delete-versions.ts";
import { latestVersion } from "./version-files.ts";

test("a version is in a range from its start to before its end, or without end if that is negative", () => {
  const range = fc.record({ start: fc.bigInt(0n, 30n), end: fc.bigInt(-1n, 30n) });
  fc.assert(
    fc.property(fc.array(range), fc.bigInt(0n, 40n), (ranges, version) => {
      const expected = ranges.some(({ start, end }) => version >= start && (end < 0n || version < end));
      assert.equal(createRangeCheck(ranges)(version), expected);
    }),
  );
});

test("a deletion that pauses leaves the version that has got the number meanwhile", async () => {
  const { store, ...rest } = openFixture("new");
  const dataset = { store, ...rest };
  const newest = await latestVersion(dataset);
  assert.ok(newest);
  const next = Uint8Array.from(store.objects.get(newest.key) ?? []);
  const replace = async () => {
    store.objects.set(newest.key, next);
    return true;
  };
  assert.equal(
    await deleteVersions(dataset, [{ start: newest.version, end: -1n }], { isStillAsked: replace }),
    0,
  );
  assert.equal(store.objects.get(newest.key), next);
});
