import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { tableFromArrays, tableFromIPC, tableToIPC } from "apache-arrow";
import { test } from "vitest";
import { beginCall } from "../../../../../test/support/caller.ts";
import { toIpcFile } from "../../../../arrow/file.ts";
import { LanceNamespaceService } from "../../../../gen/lance/namespace/v1/service_pb.ts";
import { createTurns } from "../../concurrency/turns.ts";
import type { BuiltQuery } from "../query/build.ts";
import type { Guarded } from "../tables/guarded.ts";
import type { ReadAhead } from "./read-ahead.ts";
import { resultMessages } from "./result-stream.ts";

const { queryTable } = LanceNamespaceService.method;

/** Runs a query for at most `maxRows` rows for each vector; returns its rows and the memory that it has entered with. */
async function resultOf(maxRows: number, vectors: number) {
  const stream = tableToIPC(tableFromArrays({ id: Int32Array.of(1, 2) }), "stream");
  const file = Buffer.concat(await Readable.from(toIpcFile(Readable.from([stream]))).toArray());
  const left = [file];
  const query = async () => ({ execute: async () => ({ next: async () => left.shift() ?? null }) });
  const runs = [{ query, firstVector: 0, vectors }];
  const shape = () => ({ outputSchema: async () => file });
  const built = { hidesRowId: false, filtersAfter: false, skipRows: 0, maxRows, hybrid: false, runs, shape };
  const data = { wait: (work: () => Promise<unknown>) => work() } as Partial<Guarded> as Guarded;
  const entered: number[] = [];
  const place = { given() {}, taken() {}, leave() {} };
  const enter: ReadAhead["enter"] = async (bytes) => {
    entered.push(bytes);
    return place;
  };
  const readAhead = { enter } as Partial<ReadAhead> as ReadAhead;
  const options = {
    data,
    call: beginCall(queryTable),
    turns: createTurns(1),
    readAhead,
  };
  const pieces: Uint8Array[] = [];
  for await (const { data } of resultMessages(built as unknown as BuiltQuery, options)) {
    pieces.push(data?.data ?? new Uint8Array());
  }
  return { rows: tableFromIPC(Buffer.concat(pieces)).numRows, entered };
}

test("a result takes memory for reading ahead if all its vectors together may have many rows", async () => {
  assert.deepEqual(await resultOf(64, 1), { rows: 2, entered: [] });
  assert.deepEqual(await resultOf(32, 2), { rows: 2, entered: [] });
  assert.deepEqual(await resultOf(64, 100), { rows: 2, entered: [2 * 64 * 100 * 4] });
  assert.deepEqual(await resultOf(65, 1), { rows: 2, entered: [2 * 65 * 4] });
});
