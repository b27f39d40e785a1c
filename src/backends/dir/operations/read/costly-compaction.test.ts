import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { connect } from "@lancedb/lancedb";
import { Int32, tableFromIPC, Utf8 } from "apache-arrow";
import { type TestContext, test } from "vitest";
import { clientOf, silent, temporaryDirectory } from "../../../../../test/fixtures/dir/directory-backend.ts";
import { beginCall } from "../../../../../test/support/caller.ts";
import { streamOf } from "../../../../../test/support/rows.ts";
import { QueryTableRequestSchema } from "../../../../gen/lance/namespace/v1/query_pb.ts";
import { LanceNamespaceService } from "../../../../gen/lance/namespace/v1/service_pb.ts";
import { createDirectoryBackend } from "../../index.ts";

/** A condition with nearly all steps that a condition may have, which all texts meet. The engine reads a thousand rows at a time for it. */
const COSTLY = [230, 231].map((length) => `regexp_like(s, 'a|${"[ab]".repeat(length)}')`).join(" AND ");
const [FRAGMENTS, ROWS] = [6, 1_000];

async function openFragments(t: TestContext) {
  const root = await temporaryDirectory(t);
  const backend = await createDirectoryBackend({ root, log: silent, maintenance: false });
  const client = clientOf(backend);
  t.onTestFinished(client.close);
  for (let fragment = 0; fragment < FRAGMENTS; fragment++) {
    const ids = Array.from({ length: ROWS }, (_, row) => fragment * ROWS + row);
    const rows = streamOf({
      id: { type: new Int32(), values: ids },
      s: { type: new Utf8(), values: ids.map(() => "aa") },
    });
    await client.upload(fragment === 0 ? "createTable" : "insertIntoTable", "t", {}, rows);
  }
  return {
    backend,
    /** Compacts the table by another program, and has the gateway learn of it. */
    async compact() {
      const table = await (await connect(`${root}/data`)).openTable("t");
      const { compaction } = await table.optimize();
      assert.equal(compaction.fragmentsRemoved, FRAGMENTS);
      table.close();
      await client.call("countTableRows", "t");
    },
  };
}

test("a costly scan loses no rows while another program compacts the table", async (t) => {
  const { backend, compact } = await openFragments(t);
  const call = beginCall(LanceNamespaceService.method.queryTable, { id: ["t"] });
  const request = create(QueryTableRequestSchema, { filter: COSTLY });
  const pieces: Uint8Array[] = [];
  let isCompacted = false;
  for await (const { data } of backend.operations.queryTable?.(request, call) ?? []) {
    if (data !== undefined) pieces.push(Uint8Array.from(data.data));
    if (!isCompacted) await compact();
    isCompacted = true;
  }
  assert.equal(tableFromIPC(Buffer.concat(pieces)).numRows, FRAGMENTS * ROWS);
});
