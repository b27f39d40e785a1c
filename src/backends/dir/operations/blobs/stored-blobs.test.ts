import assert from "node:assert/strict";
import { Field, Struct, Table, tableToIPC, Uint8, vectorFromArray } from "apache-arrow";
import { test } from "vitest";
import { isLanceError } from "../../../../namespace/errors.ts";
import type { Guarded } from "../tables/call-data.ts";
import { openBlobs } from "./stored-blobs.ts";

/** Returns the data of a table whose engine describes blobs of the given kinds. */
function dataWith(kinds: readonly (number | null)[]): Guarded {
  const type = new Struct([new Field("kind", new Uint8(), true)]);
  const values = kinds.map((kind) => (kind === null ? null : { kind }));
  const batches = [Buffer.from(tableToIPC(new Table({ blob: vectorFromArray(values, type) }), "file")), null];
  const file = { size: () => 1n, readRange: async () => Buffer.of(1) };
  const table = {
    fetchBlobFiles: async () => kinds.map((kind) => (kind === null ? null : file)),
    takeRowIds: () => ({
      selectColumns() {},
      execute: async () => ({ next: async () => batches.shift() ?? null }),
    }),
  };
  return { table, wait: (work: () => Promise<unknown>) => work() } as unknown as Guarded;
}

test("blobs in the files of a table are opened, and rows without a blob have none", async () => {
  const blobs = await openBlobs(dataWith([0, null, 1, 2]), "blob", [0n, 1n, 2n, 3n]);
  assert.deepEqual(
    blobs.map((blob) => blob?.size),
    [1, undefined, 1, 1],
  );
});

test("a blob elsewhere is refused before the engine looks for it", async () => {
  const data = dataWith([0, null, 3]);
  data.table.fetchBlobFiles = () => assert.fail("the engine looks for the blobs");
  await assert.rejects(openBlobs(data, "blob", [0n, 1n, 2n]), (error) => isLanceError(error, "Unsupported"));
});
