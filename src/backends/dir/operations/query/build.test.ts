import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { test } from "vitest";
import type { ArrowField, ArrowSchema } from "../../../../arrow/schema.ts";
import { QueryTableRequestSchema } from "../../../../gen/lance/namespace/v1/query_pb.ts";
import type { NativeTable } from "../../engine/native/native.ts";
import { buildQuery } from "./build.ts";

const field = (name: string, type: ArrowField["type"], children: readonly ArrowField[] = []): ArrowField => ({
  name,
  nullable: true,
  type,
  children,
  dictionary: undefined,
  metadata: {},
});
const item = field("item", { name: "float" } as ArrowField["type"]);
const SCHEMA: ArrowSchema = {
  fields: [field("vector", { name: "fixed_size_list", size: 2 } as ArrowField["type"], [item])],
  metadata: {},
};

const noTextFields = async () => new Map<string, number>();

/** A table of the engine that counts the vectors that its queries get. */
function countingTable() {
  let vectors = 0;
  const count = () => {
    vectors++;
    return query;
  };
  const counted = new Set<unknown>(["nearestTo", "addQueryVector"]);
  // Without `then`, `await` does not take the table for a promise.
  const other = (name: unknown) => (name === "then" ? undefined : () => query);
  const query: object = new Proxy({}, { get: (_, name) => (counted.has(name) ? count : other(name)) });
  return {
    table: { query: () => query } as unknown as NativeTable,
    /** Returns the number of vectors since the last count. */
    count() {
      const counted = vectors;
      vectors = 0;
      return counted;
    },
  };
}

test("a search with thousands of vectors is built a few at a time, when their turn comes", async () => {
  const { table, count } = countingTable();
  const multiVector = Array.from({ length: 4000 }, () => ({ values: [0, 1] }));
  const built = await buildQuery(
    table,
    create(QueryTableRequestSchema, { vector: { multiVector } }),
    SCHEMA,
    { textFields: noTextFields, maxExpansions: 0, safeFilter: async (filter) => filter },
  );
  assert.ok(count() <= 2);
  let searched = 0;
  for (const run of built.runs) {
    assert.equal(run.firstVector, searched);
    await run.query();
    const given = count();
    assert.equal(given, run.vectors);
    assert.ok(given < 128);
    searched += given;
  }
  assert.equal(searched, 4000);
  await built.whole();
  assert.equal(count(), 4000);
});

test("a scan for no rows becomes one of a limit, because the engine would read the table for its condition", async () => {
  const calls: string[] = [];
  const query: object = new Proxy(
    {},
    {
      get: (_, name) =>
        name === "then"
          ? undefined
          : (...args: unknown[]) => {
              calls.push(`${String(name)} ${args.join()}`);
              return query;
            },
    },
  );
  const request = create(QueryTableRequestSchema, { filter: " FALSE ", k: 1n });
  const { runs, maxRows } = await buildQuery(
    { query: () => query } as unknown as NativeTable,
    request,
    SCHEMA,
    {
      ...{ textFields: noTextFields, maxExpansions: 0, safeFilter: async (filter) => filter },
    },
  );
  for (const run of runs) await run.query();
  assert.equal(maxRows, 0);
  assert.ok(calls.includes("limit 0"));
  assert.ok(!calls.some((call) => call.startsWith("onlyIf")));
});
