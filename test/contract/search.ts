import assert from "node:assert/strict";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { describe, test } from "vitest";
import type { QueryTableRequestSchema } from "../../src/gen/lance/namespace/v1/query_pb.ts";
import type { ErrorName } from "../../src/namespace/errors.ts";
import { columnsOf, type Person, people, personStream, rowsOf } from "../support/arrow.ts";
import { refused } from "../support/expect.ts";
import { vectorsStream } from "../support/rows.ts";
import type { World } from "./world.ts";

type Query = Omit<MessageInitShape<typeof QueryTableRequestSchema>, "$typeName">;

/** Vector searches of every kind, orders, and the plans of queries. */
export function searchTests(world: World): void {
  const run = async (id: string[], query: Query) => (await world.client.queryTable({ ...query, id })).bytes;
  const ids = async (id: string[], query: Query) => rowsOf(await run(id, query)).map((row) => row["id"]);
  async function vectors(): Promise<string[]> {
    const id = [await world.namespace(), "v"];
    await world.client.createTable({ id }, vectorsStream());
    return id;
  }
  const near = (value: number, column: string): Query => ({
    vector: { singleVector: [value, 0] },
    vectorColumn: column,
    k: 2n,
  });

  describe("vector searches", () => {
    test("work in columns of every kind of vector", async () => {
      const id = await vectors();
      for (const column of ["f32", "f64", "f16", "inner.v", "many"]) {
        assert.deepEqual(await ids(id, near(7, column)), [7, 6], column);
      }
      assert.deepEqual(await ids(id, near(127, "u8")), [7, 6]);
    });

    test("find the only column whose vectors have the dimension of the query, also inside structs", async () => {
      const id = [await world.namespace(), "v"];
      const [row] = people(1);
      await world.client.createTable({ id }, personStream([row as Person]));
      await world.client.alterTableAddColumns({
        id,
        newColumns: [
          {
            name: "deep",
            expression:
              "named_struct('er', named_struct('v', arrow_cast([1.0, 2.0, 3.0], 'FixedSizeList(3, Float32)')))",
          },
        ],
      });
      const found = async (...singleVector: number[]) =>
        rowsOf(await run(id, { vector: { singleVector }, k: 1n })).map((found) => found["_distance"]);
      assert.deepEqual(await found(1, 2, 4), [1]);
      assert.deepEqual(await found(0, 0), [0]);
      const none = await refused("InvalidInput", found(1, 2, 3, 4));
      assert.match(none.message, /No vector column found to match with the query vector dimension: 4/);
    });

    test("take every metric under every name", async () => {
      const id = await vectors();
      for (const distanceType of ["l2", "L2", "euclidean"]) {
        const bytes = await run(id, { ...near(5, "f32"), distanceType });
        assert.deepEqual(
          rowsOf(bytes).map((row) => row["_distance"]),
          [0, 1],
        );
      }
      for (const distanceType of ["dot", "inner_product"]) {
        assert.deepEqual(await ids(id, { ...near(5, "f32"), distanceType }), [7, 6]);
      }
      const cosine = rowsOf(await run(id, { ...near(5, "f32"), distanceType: "cosine", filter: "id > 0" }));
      assert.equal(cosine[0]?.["_distance"], 0);
      const hamming = rowsOf(await run(id, { ...near(3, "u8"), distanceType: "hamming", k: 3n }));
      assert.deepEqual([hamming[0]?.["id"], hamming[0]?.["_distance"]], [2, 0]);
    });

    test("with several vectors return the neighbours of each, with its index", async () => {
      const id = await vectors();
      const vector = { multiVector: [{ values: [7, 0] }, { values: [0, 0] }] };
      const query = { vector, vectorColumn: "f32", k: 2n, columns: { columnNames: ["id"] } };
      const found = rowsOf(await run(id, query)).map((row) => [row["query_index"], row["id"]]);
      assert.deepEqual(found, [
        [0, 7],
        [0, 6],
        [1, 0],
        [1, 1],
      ]);
      const many = Array.from({ length: 200 }, (_, i) => ({ values: [i % 8, 0] }));
      const each = rowsOf(await run(id, { ...query, k: 1n, vector: { multiVector: many } }));
      assert.deepEqual(
        each.map((row) => [row["query_index"], row["id"]]),
        many.map(({ values }, i) => [i, values[0]]),
      );
      const tooMany = Array.from({ length: 4097 }, () => ({ values: [0, 0] }));
      await refused("InvalidInput", run(id, { ...query, vector: { multiVector: tooMany } }));
      const one = { ...query, vector: { multiVector: [{ values: [7, 0] }] } };
      assert.deepEqual(await ids(id, one), [7, 6]);
    });

    test("with many vectors in a column of lists of vectors are one search, whose distances are sums", async () => {
      const id = await vectors();
      const query = { vectorColumn: "many", k: 2n, columns: { columnNames: ["id"] } };
      const many = Array.from({ length: 130 }, (_, i) => ({ values: [i % 4, 0] }));
      const found = rowsOf(await run(id, { ...query, vector: { multiVector: many } }));
      // The row of id 1 has the vectors [1, 0] and [0, 1], and that of id 2 has [2, 0] and [0, 2].
      const sum = (at: number) =>
        many.reduce((all, { values: [x = 0] }) => all + Math.min((x - at) ** 2, x ** 2 + at ** 2), 0);
      assert.deepEqual(found, [
        { id: 1, _distance: sum(1) },
        { id: 2, _distance: sum(2) },
      ]);
    });

    test("with many vectors are ordered as a whole", async () => {
      const id = await vectors();
      const many = Array.from({ length: 130 }, (_, i) => ({ values: [i % 8, 0] }));
      const query = { vector: { multiVector: many }, vectorColumn: "f32", k: 1n };
      const found = rowsOf(await run(id, { ...query, orderBy: [{ columnName: "id", ascending: false }] }));
      const shown = found.map((row) => row["id"] as number);
      assert.deepEqual(
        shown,
        many.map(({ values: [x = 0] }) => x).sort((a, b) => b - a),
      );
      const indices = found.map((row) => row["query_index"] as number);
      assert.deepEqual(
        indices.sort((a, b) => a - b),
        many.map((_, i) => i),
      );
    });

    test("take probes, ef, refinement, prefilter and postfilter, with or without an index", async () => {
      const id = await world.table(people(20));
      const query = { vector: { singleVector: [7, 0] }, k: 1n };
      const options: Query[] = [
        { nprobes: 0 },
        { nprobes: 3 },
        { minimumNprobes: 30 },
        { maximumNprobes: 3 },
        { minimumNprobes: 2, maximumNprobes: 0 },
        { nprobes: 20, minimumNprobes: 20, maximumNprobes: 20 },
        { ef: 50, refineFactor: 2 },
        { bypassVectorIndex: true },
      ];
      for (const option of options) assert.deepEqual(await ids(id, { ...query, ...option }), [7]);
      const filter = { ...query, k: 2n, filter: "id < 5" };
      assert.deepEqual(await ids(id, { ...filter, prefilter: true }), [4, 3]);
      assert.deepEqual(await ids(id, { ...filter, prefilter: false }), []);
    });

    test("use an index of partitions, bypass it, or search it alone", async () => {
      const id = await world.table(people(64));
      await world.client.createTableIndex({ id, column: "vector", indexType: "IVF_FLAT", numPartitions: 4 });
      await world.client.insertIntoTable({ id }, personStream(people(1, 100)));
      const query = { vector: { singleVector: [99, 0] }, k: 1n };
      assert.deepEqual(await ids(id, { ...query, nprobes: 4 }), [100]);
      assert.deepEqual(await ids(id, { ...query, bypassVectorIndex: true }), [100]);
      assert.deepEqual(await ids(id, { ...query, fastSearch: true }), [63]);
      const probed = { ...query, fastSearch: true, filter: "id < 3", prefilter: true };
      assert.deepEqual(await ids(id, { ...probed, minimumNprobes: 1, maximumNprobes: 0 }), [2]);
      const both = { multiVector: [{ values: [99, 0] }, { values: [5, 0] }] };
      assert.deepEqual(await ids(id, { ...query, vector: both, nprobes: 4 }), [100, 5]);
    });

    test("find nothing in an empty table, and still have columns", async () => {
      const id = await world.table([]);
      const bytes = await run(id, { vector: { singleVector: [1, 2] }, k: 3n });
      assert.deepEqual(columnsOf(bytes), ["id", "name", "vector", "_distance"]);
    });

    test("read the requested version and branch", async () => {
      const id = await world.table();
      await world.client.createTableBranch({ id, name: "b" });
      await world.client.insertIntoTable({ id, branch: "b" }, personStream(people(1, 9)));
      const query = { vector: { singleVector: [9, 0] }, k: 1n };
      assert.deepEqual(await ids(id, query), [4]);
      assert.deepEqual(await ids(id, { ...query, branch: "b" }), [9]);
      assert.deepEqual(await ids(id, { ...query, branch: "b", version: 1n }), [4]);
      assert.deepEqual(await ids(id, { filter: "id > 3", branch: "b" }), [4, 9]);
    });

    const wrong: Record<string, [Query, ErrorName]> = {
      "several columns of vectors and none named": [{ vector: { singleVector: [1, 2] } }, "InvalidInput"],
      "a missing column": [near(1, "nothing"), "TableColumnNotFound"],
      "a missing field of a struct": [near(1, "inner.nothing"), "TableColumnNotFound"],
      "a column of texts": [near(1, "text"), "InvalidInput"],
      "a column that is no path": [near(1, "f32..x"), "InvalidInput"],
      "a vector that is too long": [
        { vector: { singleVector: [1, 2, 3] }, vectorColumn: "f32" },
        "InvalidInput",
      ],
      "vectors of different lengths": [
        { vector: { multiVector: [{ values: [1, 2] }, { values: [1] }] }, vectorColumn: "f32" },
        "InvalidInput",
      ],
      "an empty vector among several": [
        { vector: { multiVector: [{ values: [1, 2] }, {}] }, vectorColumn: "f32" },
        "InvalidInput",
      ],
      "a fraction among bytes": [near(1.5, "u8"), "InvalidInput"],
      "a number that is no byte": [near(256, "u8"), "InvalidInput"],
      "a metric that the vectors do not have": [
        { ...near(1, "f32"), distanceType: "hamming" },
        "InvalidInput",
      ],
      "another metric than hamming for bytes": [{ ...near(1, "u8"), distanceType: "l2" }, "InvalidInput"],
      "a minimum of probes above the maximum": [
        { ...near(1, "f32"), minimumNprobes: 3, maximumNprobes: 2 },
        "InvalidInput",
      ],
      "a way to compare that the engine lacks": [{ ...near(1, "f32"), approxMode: "fast" }, "Unsupported"],
      "an unknown way to compare": [{ ...near(1, "f32"), approxMode: "slow" }, "InvalidInput"],
      "a minimum of no probes": [{ ...near(1, "f32"), minimumNprobes: 0 }, "InvalidInput"],
      ...Object.fromEntries(
        (["nprobes", "minimumNprobes", "maximumNprobes", "ef", "refineFactor"] as const).map((name) => [
          `a negative ${name}`,
          [{ ...near(1, "f32"), [name]: -1 }, "InvalidInput"],
        ]),
      ),
    };
    for (const [what, [query, error]] of Object.entries(wrong)) {
      test(`${what} is ${error}`, async () => {
        await refused(error, world.client.queryTable({ ...query, id: await vectors() }));
      });
    }

    test("a table without vectors is InvalidInput", async () => {
      const id = await vectors();
      const columns = ["f32", "f64", "f16", "u8", "many", "inner"];
      await world.client.alterTableDropColumns({ id, columns });
      const query = { vector: { singleVector: [1, 2] } };
      const { message } = await refused("InvalidInput", world.client.queryTable({ ...query, id }));
      assert.match(message, /No vector column found to match with the query vector dimension: 2/);
    });
  });

  describe("columns and orders", () => {
    test("columns may be paths and expressions", async () => {
      const id = await vectors();
      const names = await run(id, { columns: { columnNames: ["`id`", "inner.v"] }, k: 1n });
      assert.deepEqual(columnsOf(names), ["id", "inner.v"]);
      const aliases = { double: "id * 2", größe: "concat('\u{1f600}', text)" };
      const rows = rowsOf(await run(id, { columns: { columnAliases: aliases }, filter: "id = 3" }));
      assert.deepEqual(rows, [{ double: 6, größe: "\u{1f600}3" }]);
    });

    test("rows are ordered by one or several columns, also by columns that are left out", async () => {
      const rows = people(6).map((person) => ({
        ...person,
        name: person.id === 5 ? null : `n${person.id % 2}`,
      }));
      const id = await world.table(rows);
      const byName = [{ columnName: "name" }, { columnName: "id", ascending: false }];
      assert.deepEqual(await ids(id, { orderBy: byName }), [4, 2, 0, 3, 1, 5]);
      const nullsFirst = [{ columnName: "name", ascending: false, nullsFirst: true }, { columnName: "id" }];
      assert.deepEqual(await ids(id, { orderBy: nullsFirst, k: 3n, offset: 1n }), [1, 3, 0]);
      const others = await run(id, { orderBy: byName, columns: { columnNames: ["vector"] }, k: 2n });
      assert.deepEqual(rowsOf(others), [{ vector: [4, 0] }, { vector: [2, 0] }]);
      const alias = { columnAliases: { twice: "id * 2" } };
      const aliased = await run(id, { orderBy: byName, columns: alias, filter: "id > 1" });
      assert.deepEqual(
        rowsOf(aliased).map((row) => row["twice"]),
        [8, 4, 6, 10],
      );
      const withIds = await run(id, { orderBy: byName, columns: { columnNames: ["id"] }, withRowId: true });
      assert.deepEqual(columnsOf(withIds), ["id", "_rowid"]);
      assert.deepEqual(columnsOf(await run(id, { orderBy: byName, columns: alias, filter: "false" })), [
        "twice",
      ]);
    });

    const wrong: Record<string, [Query, ErrorName]> = {
      "an order by a missing column": [{ orderBy: [{ columnName: "nothing" }] }, "TableColumnNotFound"],
      "an order by nothing": [{ orderBy: [{ columnName: "" }] }, "InvalidInput"],
      "names and aliases at once": [
        { columns: { columnNames: ["id"], columnAliases: { a: "id" } } },
        "InvalidInput",
      ],
      "an alias of nothing": [{ columns: { columnAliases: { a: " " } } }, "InvalidInput"],
      "an alias of two expressions": [{ columns: { columnAliases: { a: "id; name" } } }, "InvalidInput"],
      "an alias of a missing column": [
        { columns: { columnAliases: { a: "nothing" } } },
        "TableColumnNotFound",
      ],
      "a column twice": [{ columns: { columnNames: ["id", "id"] } }, "InvalidInput"],
      "a filter that divides by zero": [{ filter: "id / 0 > 1" }, "InvalidInput"],
      "a filter with a date without a value": [{ filter: "date null is null" }, "InvalidInput"],
      "a filter that casts a text to a number": [{ filter: "cast(name as int) > 1" }, "InvalidInput"],
      "a filter that is no condition": [{ filter: "id" }, "InvalidInput"],
      "a filter with an aggregate": [{ filter: "max(id) > 1" }, "InvalidInput"],
      "a filter with a function that is not there": [{ filter: "furlongs(id) > 1" }, "InvalidInput"],
    };
    for (const [what, [query, error]] of Object.entries(wrong)) {
      test(`${what} is ${error}`, async () => {
        await refused(error, world.client.queryTable({ ...query, id: await world.table() }));
      });
    }
  });

  describe("plans", () => {
    test("show how a query would run, and how it ran", async () => {
      const id = await world.table();
      const query = { vector: { singleVector: [1, 2] }, k: 2n, filter: "id > 1", distanceType: "cosine" };
      const { plan } = await world.client.explainTableQueryPlan({ id, query });
      assert.match(plan, /metric=cosine/);
      assert.match(plan, /id > /);
      const verbose = await world.client.explainTableQueryPlan({ id, query, verbose: true });
      assert.ok(verbose.plan.length >= plan.length);
      const { analysis } = await world.client.analyzeTableQueryPlan({ ...query, id });
      assert.match(analysis, /output_rows=2/);
    });

    test("are those of the branch and the version", async () => {
      const id = await world.table();
      await world.client.insertIntoTable({ id }, personStream(people(2, 5)));
      await world.client.createTableBranch({ id, name: "b", fromVersion: 1n });
      const rows = async (options: object) =>
        /output_rows=(\d+)/.exec(
          (await world.client.analyzeTableQueryPlan({ id, ...options })).analysis,
        )?.[1];
      assert.equal(await rows({}), "7");
      assert.equal(await rows({ version: 1n }), "5");
      assert.equal(await rows({ branch: "b" }), "5");
      const fragments = async (options: object) =>
        (await world.client.explainTableQueryPlan({ id, query: {}, ...options })).plan.match(
          /num_fragments=(\d)/,
        )?.[1];
      assert.equal(await fragments({}), "2");
      assert.equal(await fragments({ branch: "b" }), "1");
      assert.equal(await fragments({ query: { version: 1n } }), "1");
      const two = world.client.explainTableQueryPlan({ id, branch: "b", query: { branch: "c" } });
      await refused("InvalidInput", two);
    });

    test("are refused for every reason for which the query is refused", async () => {
      const id = await world.table();
      const { client } = world;
      await refused("InvalidInput", client.explainTableQueryPlan({ id }));
      await refused("InvalidInput", client.explainTableQueryPlan({ id, query: { filter: "id >" } }));
      await refused("InvalidInput", client.analyzeTableQueryPlan({ id, filter: "id >" }));
      await refused("TableColumnNotFound", client.analyzeTableQueryPlan({ id, filter: "nothing = 1" }));
      await refused("TableVersionNotFound", client.analyzeTableQueryPlan({ id, version: 9n }));
      await refused("TableBranchNotFound", client.explainTableQueryPlan({ id, branch: "c", query: {} }));
      const declared = await world.declared();
      await refused("TableNotFound", client.explainTableQueryPlan({ id: declared, query: {} }));
    });
  });
}
