import assert from "node:assert/strict";
import { test } from "vitest";
import { ended } from "../../../../../test/fixtures/dir/views.ts";
import { openTexts, ROWS, SCAN_BYTES } from "../../../../../test/fixtures/dir/wide-rows.ts";
import { MaterializedViewKind } from "../../../../gen/lance/namespace/v1/view_pb.ts";
import { COLUMN_BYTES } from "../read/sampled-width.ts";

test("the refresh of a view of wide rows takes memory for its columns until it ends", async (t) => {
  const { root, client, entered, held } = await openTexts(t);
  const view = { kind: MaterializedViewKind.QUERY, sourceQuery: "SELECT * FROM t", outputSchema: "" };
  const { jobId = "" } = await client.call("createMaterializedView", "v", { ...view, withNoData: false });
  const { state } = await ended(root, jobId);
  assert.equal(state, "succeeded");
  assert.deepEqual(entered(), [SCAN_BYTES + COLUMN_BYTES]);
  assert.equal(held(), 0);
  assert.equal((await client.call("countTableRows", "v")).count, BigInt(ROWS));
});
