import assert from "node:assert/strict";
import { Field, Struct, Table, tableToIPC, Uint8, vectorFromArray } from "apache-arrow";
import { describe, it, test } from "vitest";
import { isLanceError, type LanceError } from "../../../../namespace/errors.ts";
import type { Guarded } from "../tables/call-data.ts";
import { byteRange, openBlobs } from "./blobs.ts";

describe("the range of a request", () => {
  const cases: readonly [header: string | undefined, size: number, range: [number, number] | undefined][] = [
    ["bytes=0-0", 10, [0, 1]],
    ["bytes=3-5", 10, [3, 6]],
    ["bytes=3-", 10, [3, 10]],
    ["bytes=3-500", 10, [3, 10]],
    ["bytes=-4", 10, [6, 10]],
    ["bytes=-40", 10, [0, 10]],
    [undefined, 10, undefined],
    ["bytes=-", 10, undefined],
    ["bytes=5-3", 10, undefined],
    ["bytes=0-1,3-4", 10, undefined],
    ["rows=0-1", 10, undefined],
    ["bytes=0x1-3", 10, undefined],
  ];
  for (const [header, size, range] of cases) {
    it(`is ${range ?? "everything"} for ${header} of ${size} bytes`, () => {
      const { start, end } = byteRange(header, size) ?? {};
      assert.deepEqual(start === undefined ? undefined : [start, end], range);
    });
  }

  for (const [header, size] of [
    ["bytes=10-", 10],
    ["bytes=0-0", 0],
    ["bytes=-0", 10],
    ["bytes=-5", 0],
  ] as const) {
    it(`cannot be ${header} of ${size} bytes, and the error says how many there are`, () => {
      assert.throws(
        () => byteRange(header, size),
        (error: LanceError) =>
          isLanceError(error, "RangeNotSatisfiable") && error.headers["content-range"] === `bytes */${size}`,
      );
    });
  }
});

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
