import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { Int32, Table, tableToIPC, vectorFromArray } from "apache-arrow";
import { test } from "vitest";
import {
  clientOf,
  failsWith,
  silent,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { beginCall } from "../../../../../test/support/caller.ts";
import { LanceNamespaceService } from "../../../../gen/lance/namespace/v1/service_pb.ts";
import type { Backend } from "../../../../namespace/lance-namespace.ts";
import { createDirectoryBackend } from "../../index.ts";

const ON = { on: ["id"], whenNotMatchedInsertAll: true };
const COUNT = 400_000;

function rowsFrom(first: number, count = 1): Uint8Array {
  const ids = Array.from({ length: count }, (_, i) => first + i);
  return tableToIPC(new Table({ id: vectorFromArray(ids, new Int32()) }), "stream");
}

test("the repetition of a cancelled merge inserts no key again, although the engine goes on", async (t) => {
  const root = await temporaryDirectory(t);
  const open = () => createDirectoryBackend({ root, log: silent });
  const backends = [await open(), await open()] as const;
  t.onTestFinished(async () => void (await Promise.all(backends.map((each) => each.close()))));
  const client = clientOf(backends[0]);
  await client.upload("createTable", "t", {}, rowsFrom(-1));
  const method = LanceNamespaceService.method.mergeInsertIntoTable;
  function merge(by: Backend, ipc: Uint8Array, signal = new AbortController().signal, onRead = () => {}) {
    async function* body() {
      yield ipc;
      onRead();
    }
    const call = beginCall(method, { id: ["t"], signal });
    return by.operations.mergeInsertIntoTable?.(create(method.input, ON), body(), call);
  }
  let cancelled = 0;
  for (const [round, delayMs] of [50, 100, 200, 300, 400].entries()) {
    const ipc = rowsFrom(round * COUNT, COUNT);
    const aborter = new AbortController();
    const abortSoon = () => void setTimeout(() => aborter.abort(), delayMs);
    await merge(backends[0], ipc, aborter.signal, abortSoon)?.catch((error: unknown) => {
      assert.ok(failsWith("Cancelled")(error), String(error));
      cancelled++;
    });
    await Promise.all(backends.map((backend) => merge(backend, ipc)));
    assert.equal((await client.call("countTableRows", "t")).count, BigInt((round + 1) * COUNT + 1));
  }
  assert.ok(cancelled > 0);
});
