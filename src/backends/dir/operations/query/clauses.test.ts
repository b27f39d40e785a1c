import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { test } from "vitest";
import type { ArrowSchema } from "../../../../arrow/schema.ts";
import { QueryTableRequestSchema } from "../../../../gen/lance/namespace/v1/query_pb.ts";
import type { NativeQueryBase } from "../../engine/native/query.ts";
import { columnsOf, selectColumns } from "./clauses.ts";

const MANY = Array.from({ length: 4000 }, (_, i) => `c${i}`);
const SCHEMA: ArrowSchema = {
  fields: [...MANY, "select", "my column"].map((name) => ({
    name,
    nullable: true,
    type: { name: "utf8" },
    children: [],
    dictionary: undefined,
    metadata: {},
  })),
  metadata: {},
};

/** Returns what the engine gets for names of columns. */
async function selected(columnNames: readonly string[]) {
  const calls: unknown[][] = [];
  const query = {
    select: (columns: unknown) => calls.push(["select", columns]),
    selectColumns: (columns: unknown) => calls.push(["selectColumns", columns]),
  } as unknown as NativeQueryBase;
  const request = create(QueryTableRequestSchema, { columns: { columnNames: [...columnNames] } });
  selectColumns(query, await columnsOf(request, SCHEMA));
  return calls;
}

test("thousands of columns are selected by expressions that the engine looks up without parsing them", async () => {
  const names = [...MANY, "select", "_distance"];
  assert.deepEqual(await selected(names), [["select", names.map((name) => [name, name])]]);
});

test("the engine gets names that it may read otherwise as expressions by name", async () => {
  for (const name of ["my column", "C0", "s.x"]) {
    const names = [...MANY, name === "my column" ? "`my column`" : name];
    assert.deepEqual(await selected(names), [["selectColumns", [...MANY, name]]]);
  }
  assert.deepEqual(await selected(["c1", "c0"]), [["selectColumns", ["c1", "c0"]]]);
});
