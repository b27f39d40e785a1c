import assert from "node:assert/strict";
import { test } from "vitest";
import type { NativeTable } from "./native/native.ts";
import { countMatching } from "./passing-rows.ts";

const MIB = 1024 ** 2;

/** Counts in a table of 1,000 rows; returns the number of rows that a query reads at a time, or that the engine's own count has counted. */
async function countOf(where: string, width: number): Promise<readonly [way: string, rows: number]> {
  let way: readonly [string, number] = ["none", 0];
  const query = {
    onlyIf() {},
    selectColumns() {},
    withRowId() {},
    useLsm() {},
    async execute(batchRows: number) {
      way = ["query", batchRows];
      return { next: async () => null };
    },
  };
  const countRows = async () => {
    way = ["count", 1000];
    return 1000;
  };
  const table = { countRows, query: () => query } as unknown as NativeTable;
  const options = { tableRows: 1000, width, timeoutMs: undefined, isWanted: () => true };
  await countMatching(table, where, options);
  return way;
}

test("the engine counts by itself if that is quick and reads no wide columns", async () => {
  assert.deepEqual(await countOf("id > 5", 0), ["count", 1000]);
  assert.deepEqual(await countOf("abs(id) > 5", 0), ["query", 32_768]);
});

test("the engine's own count is not asked for rows that it would look up", async () => {
  for (const where of ["_rowid = 1", "_rowaddr = 1 OR a = 2", "`_rowoffset` = 0"])
    assert.deepEqual(await countOf(where, 0), ["query", 32_768]);
});

test("a count of wide rows reads about 2 MiB at a time", async () => {
  assert.deepEqual(await countOf("text = 'a'", MIB / 8), ["query", 16]);
  assert.deepEqual(await countOf("length(text) > 5", 8 * MIB), ["query", 1]);
});
