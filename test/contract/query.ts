import assert from "node:assert/strict";
import { inspect } from "node:util";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { MessageReader } from "apache-arrow";
import { describe, test } from "vitest";
import type { QueryTableRequestSchema } from "../../src/gen/lance/namespace/v1/query_pb.ts";
import { columnsOf, people, personStream, rowsOf } from "../support/arrow.ts";
import { refused } from "../support/expect.ts";
import type { World } from "./world.ts";

type Query = Omit<MessageInitShape<typeof QueryTableRequestSchema>, "$typeName">;

/** Returns the number of rows in a stream or a file; readers of Arrow in JavaScript find none without a column. */
function lengthOf(bytes: Uint8Array): number {
  const isFile = Buffer.from(bytes.subarray(0, 6)).toString() === "ARROW1";
  const batches = [...new MessageReader(isFile ? bytes.subarray(8) : bytes)].filter((message) =>
    message.isRecordBatch(),
  );
  return batches.reduce((sum, message) => sum + Number(message.header().length), 0);
}

/** Scans and vector searches. */
export function queryTests(world: World): void {
  const run = async (id: string[], query: Query) => (await world.client.queryTable({ ...query, id })).bytes;
  const ids = async (id: string[], query: Query) => rowsOf(await run(id, query)).map((row) => row["id"]);

  describe("queries", () => {
    test("a scan returns every row with every column, as an Arrow stream", async () => {
      const rows = [...people(4), { id: 4, name: null, vector: [0.5, -1] as const }];
      const id = await world.table(rows);
      const { bytes } = await world.client.queryTable({ id });
      assert.deepEqual(rowsOf(bytes), JSON.parse(JSON.stringify(rows)));
      assert.deepEqual(columnsOf(bytes), ["id", "name", "vector"]);
      assert.deepEqual(await ids(id, { vector: {} }), [0, 1, 2, 3, 4]);
    });

    test("k and offset cut a scan", async () => {
      const id = await world.table();
      assert.deepEqual(await ids(id, { k: 2n }), [0, 1]);
      assert.deepEqual(await ids(id, { k: 2n, offset: 1n }), [1, 2]);
      assert.deepEqual(await ids(id, { k: 9n, offset: 3n }), [3, 4]);
      assert.deepEqual(await ids(id, { k: 2n, offset: 9n }), []);
      assert.deepEqual(await ids(id, { k: 9223372036854775807n }), [0, 1, 2, 3, 4]);
    });

    test("a k of 0 selects no rows, with the columns of the result", async () => {
      const id = await world.table();
      const orderBy = [{ columnName: "id" }];
      for (const query of [{}, { offset: 2n }, { filter: "id > 1" }, { orderBy }, { withRowId: true }]) {
        const bytes = await run(id, { k: 0n, columns: { columnNames: ["name", "id"] }, ...query });
        assert.deepEqual([rowsOf(bytes), columnsOf(bytes).slice(0, 2)], [[], ["name", "id"]], inspect(query));
      }
    });

    test("a k of 0 is refused in a search for vectors, also in its plans", async () => {
      const id = await world.table();
      const vectors = { multiVector: [{ values: [1, 2] }, { values: [3, 4] }] };
      for (const vector of [{ singleVector: [1, 2] }, vectors]) {
        await refused("InvalidInput", world.client.queryTable({ id, vector, k: 0n }));
        await refused("InvalidInput", world.client.explainTableQueryPlan({ id, query: { vector, k: 0n } }));
        await refused("InvalidInput", world.client.analyzeTableQueryPlan({ id, vector, k: 0n }));
      }
    });

    test("a plan of a query that names another table is refused", async () => {
      const [id, other] = [await world.table(), await world.table()];
      const { explainTableQueryPlan } = world.client;
      const { plan } = await explainTableQueryPlan({ id, query: { id, k: 1n } });
      assert.equal(
        (await explainTableQueryPlan({ id, query: { identifier: id.join("$"), k: 1n } })).plan,
        plan,
      );
      await refused("InvalidInput", explainTableQueryPlan({ id, query: { id: other, k: 1n } }));
      const identifier = other.join("$");
      await refused("InvalidInput", explainTableQueryPlan({ id, query: { identifier, k: 1n } }));
    });

    test("a search without k has ten rows", async () => {
      const id = await world.table(people(20));
      const vector = { singleVector: [0, 0] };
      assert.deepEqual(await ids(id, { vector }), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    });

    test("a choice of no columns has none of them", async () => {
      const id = await world.table();
      for (const columns of [{}, { columnNames: [] }]) {
        const bytes = await run(id, { columns, filter: "id > 1" });
        assert.deepEqual([columnsOf(bytes), lengthOf(bytes)], [[], 3]);
        const found = await run(id, { columns, vector: { singleVector: [1, 2] }, k: 2n });
        assert.deepEqual([columnsOf(found), rowsOf(found).length], [["_distance"], 2]);
        assert.deepEqual(columnsOf(await run(id, { columns, withRowId: true })), ["_rowid"]);
      }
    });

    test("offset works without k", async () => {
      assert.deepEqual(await ids(await world.table(), { offset: 3n }), [3, 4]);
    });

    test("a filter selects rows, also together with k and offset", async () => {
      const id = await world.table();
      assert.deepEqual(await ids(id, { filter: "id > 2" }), [3, 4]);
      assert.deepEqual(await ids(id, { filter: "id > 0", k: 2n, offset: 1n }), [2, 3]);
      assert.deepEqual(await ids(id, { filter: "name = 'nobody'" }), []);
    });

    test("an empty result still has its columns", async () => {
      const bytes = await run(await world.table(), {
        filter: "id > 99",
        columns: { columnNames: ["name", "id"] },
      });
      assert.deepEqual(columnsOf(bytes), ["name", "id"]);
    });

    test("columns come in the requested order and under the requested names", async () => {
      const id = await world.table();
      const names = await run(id, { columns: { columnNames: ["name", "id"] }, k: 1n });
      assert.deepEqual(columnsOf(names), ["name", "id"]);
      const aliases = await run(id, { columns: { columnAliases: { label: "name" } }, k: 1n });
      assert.deepEqual(rowsOf(aliases), [{ label: "p0" }]);
    });

    test("a query may name more than a hundred columns", async () => {
      const id = await world.table();
      const names = Array.from({ length: 110 }, (_, i) => `c${i}`);
      await world.client.alterTableAddColumns({
        id,
        newColumns: names.map((name, i) => ({ name, expression: `id + ${i}` })),
      });
      const columnNames = [...names.toReversed(), "_rowid", "id"];
      const bytes = await run(id, { columns: { columnNames }, filter: "id > 2", k: 1n });
      assert.deepEqual(columnsOf(bytes), columnNames);
      assert.deepEqual([rowsOf(bytes)[0]?.["c7"], rowsOf(bytes)[0]?.["id"]], [10, 3]);
      const missing = { columns: { columnNames: [...names, "nothing"] } };
      await refused("TableColumnNotFound", run(id, missing));
    });

    test("a filter may use a column that the result leaves out", async () => {
      const bytes = await run(await world.table(), { filter: "id = 3", columns: { columnNames: ["name"] } });
      assert.deepEqual(rowsOf(bytes), [{ name: "p3" }]);
    });

    test("with_row_id adds a unique row id to each row", async () => {
      const id = await world.table();
      const rows = rowsOf(await run(id, { withRowId: true, columns: { columnNames: ["id"] } }));
      assert.equal(new Set(rows.map((row) => row["_rowid"])).size, 5);
      assert.deepEqual(columnsOf(await run(id, { withRowId: false })), ["id", "name", "vector"]);
    });

    test("an older version can be queried", async () => {
      const id = await world.table();
      await world.client.insertIntoTable({ id }, personStream(people(5, 5)));
      assert.deepEqual(await ids(id, { version: 1n }), [0, 1, 2, 3, 4]);
      assert.equal((await ids(id, {})).length, 10);
    });

    test("a vector finds its nearest neighbours with their distances", async () => {
      const id = await world.table(people(20));
      const near = { singleVector: [7.2, 0] };
      const rows = rowsOf(await run(id, { vector: near, k: 3n }));
      assert.deepEqual(
        rows.map((row) => row["id"]),
        [7, 8, 6],
      );
      const distances = rows.map((row) => Math.round((row["_distance"] as number) * 100) / 100);
      assert.deepEqual(distances, [0.04, 0.64, 1.44]);
      assert.deepEqual(await ids(id, { vector: near, k: 2n, offset: 1n }), [8, 6]);
      assert.deepEqual(await ids(id, { vector: near, k: 2n, vectorColumn: "vector" }), [7, 8]);
    });

    test("a vector search takes a filter, a metric and bounds", async () => {
      const id = await world.table(people(20));
      const vector = { singleVector: [7.2, 0] };
      assert.deepEqual(await ids(id, { vector, k: 2n, filter: "id < 5", prefilter: true }), [4, 3]);
      assert.deepEqual(await ids(id, { vector, k: 2n, distanceType: "dot" }), [19, 18]);
      assert.deepEqual(await ids(id, { vector, k: 9n, upperBound: 0.7 }), [7, 8]);
      assert.deepEqual(await ids(id, { vector, k: 1n, lowerBound: 0.5 }), [8]);
      assert.deepEqual(await ids(id, { vector, k: 1n, bypassVectorIndex: true }), [7]);
    });

    test("a missing column is TableColumnNotFound", async () => {
      const id = await world.table();
      const columns = { columnNames: ["id", "nothing"] };
      await refused("TableColumnNotFound", world.client.queryTable({ id, columns }));
      const search = { vector: { singleVector: [1, 2] }, k: 1n, vectorColumn: "nothing" };
      await refused("TableColumnNotFound", world.client.queryTable({ id, ...search }));
    });

    const vector = { singleVector: [1, 2] };
    const wrong: Record<string, Query> = {
      "a filter that is cut off": { filter: "id >" },
      "a vector of another dimension": { vector: { singleVector: [1, 2, 3] }, k: 1n },
      "a search in a column of text": { vector, k: 1n, vectorColumn: "name" },
      "an unknown metric": { vector, k: 1n, distanceType: "furlongs" },
      "one vector and several at once": { vector: { ...vector, multiVector: [{ values: [1, 2] }] }, k: 1n },
      "a negative offset": { offset: -1n },
      "a negative k": { k: -1n },
      "a filter of more than one expression": { filter: "id > 1; junk" },
    };
    for (const [what, query] of Object.entries(wrong)) {
      test(`${what} is InvalidInput`, async () => {
        const id = await world.table();
        await refused("InvalidInput", world.client.queryTable({ ...query, id }));
      });
    }

    test("an invalid version is InvalidInput or missing, and a filter must not name a missing column", async () => {
      const id = await world.table();
      await refused(["InvalidInput", "TableVersionNotFound"], world.client.queryTable({ id, version: -1n }));
      const filter = "nothing = 1";
      await refused(["InvalidInput", "TableColumnNotFound"], world.client.queryTable({ id, filter }));
    });

    test("errors distinguish a missing version, a missing branch and a table without data", async () => {
      const id = await world.table();
      await refused("TableVersionNotFound", world.client.queryTable({ id, version: 99n }));
      await refused(
        ["TableBranchNotFound", "Unsupported"],
        world.client.queryTable({ id, branch: "missing" }),
      );
      await refused("TableNotFound", world.client.queryTable({ id: await world.declared() }));
    });
  });
}
