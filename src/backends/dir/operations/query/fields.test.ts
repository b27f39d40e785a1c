import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { test } from "vitest";
import { QueryTableRequestSchema } from "../../../../gen/lance/namespace/v1/query_pb.ts";
import { isLanceError } from "../../../../namespace/errors.ts";
import { checkCounts } from "./fields.ts";

const names = (length: number) => Array.from({ length }, (_, i) => `c${i}`);
const keys = (length: number) => names(length).map((columnName) => ({ columnName }));
const request = (init: Parameters<typeof create<typeof QueryTableRequestSchema>>[1]) =>
  create(QueryTableRequestSchema, init);

test("a query names as many columns as an upload may have, and has an order of 1,000 keys", () => {
  checkCounts(request({ columns: { columnNames: names(32_000) }, orderBy: keys(1000) }));
  for (const [refused, reason] of [
    [{ columns: { columnNames: names(32_001) } }, /^column_names has 32001 entries; the maximum is 32000$/],
    [{ orderBy: keys(1001) }, /^order_by has 1001 entries; the maximum is 1000$/],
    [
      { fullTextQuery: { stringQuery: { query: "a", columns: names(32_001) } } },
      /^columns of a full-text query has 32001 entries/,
    ],
  ] as const) {
    assert.throws(
      () => checkCounts(request(refused)),
      (error: unknown) => isLanceError(error, "InvalidInput") && reason.test(error.message),
    );
  }
});

test("no number of a query is negative", () => {
  assert.throws(() => checkCounts(request({ offset: -1n })), /offset must not be negative/);
});
