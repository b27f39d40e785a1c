import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import {
  Dictionary,
  Field,
  Int8,
  type RecordBatch,
  Schema,
  Table,
  tableToIPC,
  Utf8,
  vectorFromArray,
} from "apache-arrow";
import { type TestContext, test } from "vitest";
import {
  openClient,
  silent,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { beginCall } from "../../../../../test/support/caller.ts";
import { LanceNamespaceService } from "../../../../gen/lance/namespace/v1/service_pb.ts";
import { openDirectory } from "../../open-directory.ts";
import { createInsertOperations, createMultipartWrites } from "./multipart.ts";

const ROWS = 100;
const TEXT = "x".repeat(1000);

/** Returns a stream of batches, each with rows of the same text, which a dictionary has once. */
function folded(batches: number): Uint8Array {
  const texts = vectorFromArray(Array(ROWS).fill(TEXT), new Dictionary(new Utf8(), new Int8(), 1));
  const table = new Table({ text: texts });
  return tableToIPC(
    new Table(table.schema, Array<RecordBatch>(batches).fill(table.batches[0] as RecordBatch)),
    "stream",
  );
}

/** Returns the bytes that an insert of folded texts holds beside its body. */
async function heldFor(t: TestContext, type: Utf8 | Dictionary, batches: number): Promise<number> {
  const root = await temporaryDirectory(t);
  const empty = tableToIPC(new Table(new Schema([new Field("text", type, true)])), "stream");
  await (await openClient(t, root)).upload("createTable", "t", {}, empty);
  const { context, close } = await openDirectory({ root, log: silent, uploadPartBytes: 512 });
  t.onTestFinished(close);
  const { insertIntoTable } = createInsertOperations(context, createMultipartWrites(context));
  const method = LanceNamespaceService.method.insertIntoTable;
  const call = beginCall(method, { id: ["t"] });
  let held = 0;
  call.holdBody = (bytes) => {
    held += bytes;
  };
  async function* body() {
    yield folded(batches);
  }
  await insertIntoTable(create(method.input), body(), call);
  return held;
}

test("an insert holds the memory of the texts that a dictionary becomes in a plain column, in one part or in many", async (t) => {
  for (const batches of [1, 20])
    assert.ok((await heldFor(t, new Utf8(), batches)) >= batches * ROWS * TEXT.length);
  const dictionary = new Dictionary(new Utf8(), new Int8(), 1);
  for (const batches of [1, 20]) assert.ok((await heldFor(t, dictionary, batches)) < ROWS * TEXT.length);
});
