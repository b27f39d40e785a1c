import assert from "node:assert/strict";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, it } from "vitest";
import { QueryTableRequestSchema } from "../gen/lance/namespace/v1/query_pb.ts";
import { LanceNamespaceService } from "../gen/lance/namespace/v1/service_pb.ts";
import { isLanceError } from "../namespace/errors.ts";
import { createClientBindings } from "../transcode/client-binding.ts";
import { UPSTREAM_FORMS } from "./upstream.ts";

const { queryTable } = LanceNamespaceService.method;

/** Returns the JSON of a query for a kind of upstream. */
function written(kind: keyof typeof UPSTREAM_FORMS, query: MessageInitShape<typeof QueryTableRequestSchema>) {
  const binding = createClientBindings([queryTable], UPSTREAM_FORMS[kind]).get(queryTable);
  assert.ok(binding);
  return JSON.parse(binding.body(create(QueryTableRequestSchema, query)));
}

const VECTOR = { vector: { singleVector: [1, 2] } };
const WORDS = { fullTextQuery: { stringQuery: { query: "x" } } };

describe("the rows of a query for an upstream of the specification", () => {
  it("are all rows of a scan, and ten of a search, where the request does not say", () => {
    assert.equal(written("specification", {}).k, 2 ** 31 - 1);
    assert.equal(written("specification", { vector: {} }).k, 2 ** 31 - 1);
    for (const search of [VECTOR, WORDS, { ...VECTOR, ...WORDS }])
      assert.equal(written("specification", search).k, 10);
  });

  it("are at most those that 32 bits can count", () => {
    assert.equal(written("specification", { k: 7n }).k, 7);
    assert.equal(written("specification", { k: 2n ** 63n - 1n }).k, 2 ** 31 - 1);
  });

  it("are none for a k of 0, which is all rows to some upstreams", () => {
    for (const query of [{}, WORDS]) {
      const { k, filter } = written("specification", { ...query, k: 0n, filter: "id > 1" });
      assert.deepEqual([k, filter], [1, "false"]);
    }
    assert.throws(
      () => written("specification", { ...VECTOR, k: 0n }),
      (error) => isLanceError(error, "InvalidInput"),
    );
  });

  it("have no column for an empty choice", () => {
    assert.deepEqual(written("specification", { columns: {} }).columns, { column_names: [] });
    const columnAliases = { a: "b" };
    assert.deepEqual(written("specification", { columns: { columnAliases } }).columns, {
      column_aliases: { a: "b" },
    });
  });
});

describe("the rows of a query for LanceDB's service", () => {
  it("are all rows of a scan, and ten of a search, where the request does not say", () => {
    assert.match(JSON.stringify(written("lancedb", {})), /"k":9223372036854775807|"k":9223372036854776000/);
    assert.equal(written("lancedb", VECTOR).k, 10);
    assert.equal(written("lancedb", { k: 0n }).k, 0);
  });
});
