import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { test } from "vitest";
import { openTexts, SCAN_BYTES } from "../../../../../test/fixtures/dir/wide-rows.ts";
import { beginCall } from "../../../../../test/support/caller.ts";
import { LanceDbService, PrewarmDataRequestSchema } from "../../../../gen/lance/gateway/v1/lancedb_pb.ts";
import { COLUMN_BYTES } from "./sampled-width.ts";

test("columns that are read before they are needed take memory, and come in batches of their width", async (t) => {
  const { backend, entered, held } = await openTexts(t);
  const prewarm = async (...columns: string[]) => {
    const call = beginCall(LanceDbService.method.prewarmData, { id: ["t"] });
    await backend.extensions?.prewarmData?.(create(PrewarmDataRequestSchema, { columns }), call);
    return entered();
  };
  assert.deepEqual(await prewarm("text"), [SCAN_BYTES]);
  assert.deepEqual(await prewarm(), [SCAN_BYTES + COLUMN_BYTES]);
  assert.deepEqual(await prewarm("id"), [COLUMN_BYTES]);
  assert.equal(held(), 0);
});
