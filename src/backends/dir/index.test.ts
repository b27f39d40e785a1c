import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { describe, it, type TestContext } from "vitest";
import {
  clientOf,
  failsWith,
  openClient,
  silent,
  temporaryDirectory,
} from "../../../test/fixtures/dir/directory-backend.ts";
import { beginCall } from "../../../test/support/caller.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { createDirectoryBackend } from "./index.ts";

const { namespaceExists, listTables } = LanceNamespaceService.method;

/** Opens a gateway whose reads may be ten minutes old, and another one on the same directory. */
async function openPair(t: TestContext) {
  const root = await temporaryDirectory(t);
  const writer = await openClient(t, root);
  const backend = await createDirectoryBackend({ root, log: silent, maxStalenessMs: 600_000 });
  const reader = clientOf(backend);
  t.onTestFinished(reader.close);
  return {
    writer,
    async exists(headers: object = {}) {
      const call = beginCall(namespaceExists, { id: ["n"], headers: { ...headers } });
      return (await backend.operations.namespaceExists?.(create(namespaceExists.input), call)) !== undefined;
    },
    async tables(headers: object = {}) {
      const call = beginCall(listTables, { id: [], headers: { ...headers } });
      return (await backend.operations.listTables?.(create(listTables.input), call))?.tables;
    },
  };
}

const soon = () => new Date(Date.now() + 60_000).toISOString();

describe("reads that may be stale", () => {
  for (const [what, headers] of [
    ["a version that was written", () => ({ "x-lancedb-min-version": "1" })],
    ["a version that was read", () => ({ "x-lancedb-min-read-version": "1" })],
    ["a time", () => ({ "x-lancedb-min-timestamp": soon() })],
  ] as const) {
    it(`see what another gateway has made when the client demands ${what}`, async (t) => {
      const { writer, exists } = await openPair(t);
      await assert.rejects(exists(), failsWith("NamespaceNotFound"));
      await writer.call("createNamespace", "n");
      await assert.rejects(exists(), failsWith("NamespaceNotFound"), "the read is stale");
      assert.equal(await exists(headers()), true);
      await writer.call("dropNamespace", "n");
      assert.equal(await exists(), true, "the read is stale again");
      await assert.rejects(exists(headers()), failsWith("NamespaceNotFound"));
    });
  }

  it("stay stale for a client that demands an older time", async (t) => {
    const { writer, exists } = await openPair(t);
    const before = new Date(Date.now() - 60_000).toISOString();
    await assert.rejects(exists(), failsWith("NamespaceNotFound"));
    await writer.call("createNamespace", "n");
    await assert.rejects(exists({ "x-lancedb-min-timestamp": before }), failsWith("NamespaceNotFound"));
  });

  it("list what is there at a demanded time", async (t) => {
    const { writer, tables } = await openPair(t);
    assert.deepEqual(await tables(), []);
    await writer.call("declareTable", "t");
    assert.deepEqual(await tables(), []);
    assert.deepEqual(await tables({ "x-lancedb-min-timestamp": soon() }), ["t"]);
  });

  it("refuse a demand that cannot be read", async (t) => {
    const { exists } = await openPair(t);
    await assert.rejects(
      exists({ "x-lancedb-min-timestamp": "now" }),
      (error: Error) => failsWith("InvalidInput")(error) && error.message.includes("x-lancedb-min-timestamp"),
    );
  });
});
