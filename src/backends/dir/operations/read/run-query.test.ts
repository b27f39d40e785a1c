import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { tableFromArrays, tableFromIPC, tableToIPC } from "apache-arrow";
import { test } from "vitest";
import { beginCall } from "../../../../../test/support/caller.ts";
import { toIpcFile } from "../../../../arrow/ipc/file.ts";
import { ARROW_FILE, ARROW_STREAM } from "../../../../arrow/ipc/ipc-forms.ts";
import { LanceNamespaceService } from "../../../../gen/lance/namespace/v1/service_pb.ts";
import type { Call } from "../../../../namespace/call/call.ts";
import { createTurns } from "../../concurrency/turns.ts";
import { createRowWidths } from "../../engine/row-widths.ts";
import type { BuiltQuery } from "../query/build.ts";
import type { Guarded } from "../tables/call-data.ts";
import { smallResult } from "./run-query.ts";

const { queryTable } = LanceNamespaceService.method;

async function batchOf(...ids: number[]): Promise<Buffer> {
  const stream = tableToIPC(tableFromArrays({ id: Int32Array.from(ids) }), "stream");
  return Buffer.concat(await Readable.from(toIpcFile(Readable.from([stream]))).toArray());
}

/** Runs a query for two rows whose result has the given batches; without an end, the engine never says that it ended. */
async function resultOf(
  batches: readonly Buffer[],
  overrides: Partial<BuiltQuery & { call: Partial<Call>; ends: boolean }> = {},
) {
  const { ends = true, call = { protocol: "rest" }, ...built } = overrides;
  const left = [...batches];
  let asked = 0;
  const next = async () => {
    asked++;
    return left.shift() ?? (ends ? null : new Promise<never>(() => {}));
  };
  const query = async () => ({ execute: async () => ({ next }) });
  const runs = [{ query, firstVector: 0, vectors: 1 }];
  const plain = { hidesRowId: false, filterAfter: undefined, skipRows: 0, maxRows: 2, hybrid: false, runs };
  const data: Partial<Guarded> = {
    wait: (work: () => Promise<unknown>) => work() as never,
    widths: createRowWidths(),
    refuseMisread: async () => {},
  };
  const options = { data: data as Guarded, call: beginCall(queryTable, call), turns: createTurns(1) };
  const { contentType, bytes } = await smallResult({ ...plain, ...built } as unknown as BuiltQuery, options);
  const ids = [...(tableFromIPC(bytes).getChild("id")?.toArray() ?? [])];
  return { contentType, bytes, ids, asked };
}

test("passes the engine's only batch on as a file, without a copy and without waiting for the end", async () => {
  const batch = await batchOf(1, 2);
  const { contentType, bytes, asked } = await resultOf([batch], { ends: false });
  assert.equal(contentType, ARROW_FILE);
  assert.equal(bytes, batch);
  // The engine ends the query when it is asked again.
  assert.equal(asked, 2);
});

test("makes a stream for clients that take streams", async () => {
  const { contentType, ids } = await resultOf([await batchOf(1, 2)], { call: { protocol: "grpc" } });
  assert.deepEqual([contentType, ids], [ARROW_STREAM, [1, 2]]);
});

test("waits for more batches while rows may be missing, and joins them", async () => {
  const { contentType, ids } = await resultOf([await batchOf(1), await batchOf(2)]);
  assert.deepEqual([contentType, ids], [ARROW_STREAM, [1, 2]]);
  const few = await resultOf([await batchOf(1)]);
  assert.deepEqual([few.contentType, few.ids, few.asked], [ARROW_FILE, [1], 2]);
});

test("edits batches that have more than the request asks for", async () => {
  const { contentType, ids } = await resultOf([await batchOf(1, 2, 3)], { skipRows: 1 });
  assert.deepEqual([contentType, ids], [ARROW_STREAM, [2, 3]]);
});
