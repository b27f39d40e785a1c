import assert from "node:assert/strict";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { describe, test } from "vitest";
import type { UpdateTableRequestSchema } from "../../src/gen/lance/namespace/v1/data_pb.ts";
import type { ErrorName } from "../../src/namespace/errors.ts";
import { people, personStream, rowsOf } from "../support/arrow.ts";
import { refused } from "../support/expect.ts";
import type { World } from "./world.ts";

type Update = Omit<MessageInitShape<typeof UpdateTableRequestSchema>, "$typeName">;

const RACERS = 16;

/** Updates and deletions of rows, and the statistics of a table. */
export function changeTests(world: World): void {
  const rowsIn = async (id: string[], options: { branch?: string } = {}) =>
    rowsOf((await world.client.queryTable({ id, ...options })).bytes);
  const valuesOf = async (id: string[], column: string) =>
    (await rowsIn(id)).map((row) => row[column]).sort();

  describe("an expression that goes on behind its end", () => {
    /** The engine reads the beginning of each, and would leave the rest. */
    const conditions = ["id > 1 name = 'p3'", "id > 1 'x' AND name = 'p3'", "id > 1 ISNULL", "id > 1 |/ 2"];

    test.each(conditions)("changes no row: %s", async (predicate) => {
      const id = await world.table();
      const { client } = world;
      const before = await rowsIn(id);
      const updates = [{ column: "name", expression: "'x'" }];
      const merge = { id, on: ["id"], whenMatchedUpdateAll: true, whenNotMatchedBySourceDelete: true };
      const rows = () => personStream(people(2));
      const matched = { ...merge, whenMatchedUpdateAllFilt: predicate.replace("id", "target.id") };
      const unmatched = { ...merge, whenNotMatchedBySourceDeleteFilt: predicate };
      const query = { filter: predicate };
      for (const call of [
        () => client.deleteFromTable({ id, predicate }),
        () => client.updateTable({ id, predicate, updates }),
        () => client.mergeInsertIntoTable(matched, rows()),
        () => client.mergeInsertIntoTable(unmatched, rows()),
        () => client.countTableRows({ id, predicate }),
        () => client.queryTable({ id, ...query }),
        () => client.explainTableQueryPlan({ id, query }),
      ]) {
        const { message } = await refused("InvalidInput", call());
        assert.match(message, /goes on with .+ where its expression|expected: an expression/i);
      }
      assert.deepEqual(await rowsIn(id), before);
    });

    test("gives no column its value", async () => {
      const id = await world.table();
      const { client } = world;
      const expression = "id 5";
      for (const call of [
        () => client.updateTable({ id, updates: [{ column: "id", expression }] }),
        () => client.alterTableAddColumns({ id, newColumns: [{ name: "more", expression }] }),
        () => client.queryTable({ id, columns: { columnAliases: { more: expression } } }),
      ])
        assert.match((await refused("InvalidInput", call())).message, /goes on with 5/);
    });

    test("does not include typed literals, elements and casts", async () => {
      const id = await world.table();
      const predicate =
        "DATE '2024-01-31' < DATE '2024-02-01' AND vector[1] = id::float AND length(name) = 2";
      assert.equal((await world.client.countTableRows({ id, predicate })).count, 5n);
    });
  });

  describe("updating", () => {
    test("changes the rows of the predicate, with their number and the version", async () => {
      const id = await world.table();
      const updates = [
        { column: "name", expression: "concat(name, ' é \u{1f600}')" },
        { column: "id", expression: "id * 10" },
      ];
      const answer = await world.client.updateTable({ id, predicate: "id >= 3", updates });
      assert.deepEqual([answer.updatedRows, answer.version], [2n, 2n]);
      assert.deepEqual(await valuesOf(id, "name"), ["p0", "p1", "p2", "p3 é \u{1f600}", "p4 é \u{1f600}"]);
      assert.deepEqual(
        (await valuesOf(id, "id")).map(Number).sort((a, b) => a - b),
        [0, 1, 2, 30, 40],
      );
    });

    test("changes all rows without a predicate", async () => {
      const id = await world.table();
      const updates = [{ column: "name", expression: "NULL" }];
      assert.equal((await world.client.updateTable({ id, updates })).updatedRows, 5n);
      assert.deepEqual(await valuesOf(id, "name"), [null, null, null, null, null]);
    });

    test("changes several columns whose expressions read themselves and columns that stay", async () => {
      const id = await world.table();
      const updates = [
        { column: "id", expression: "id + CAST(vector[1] AS BIGINT) + length('name')" },
        { column: "name", expression: "lower(concat(`name`, 'ID'))" },
      ];
      await world.client.updateTable({ id, updates });
      assert.deepEqual(await valuesOf(id, "name"), ["p0id", "p1id", "p2id", "p3id", "p4id"]);
    });

    test("changes no rows where none match, and none of an empty table", async () => {
      const updates = [{ column: "name", expression: "'x'" }];
      const id = await world.table();
      assert.equal((await world.client.updateTable({ id, updates, predicate: "id > 99" })).updatedRows, 0n);
      assert.equal((await world.client.updateTable({ id: await world.table([]), updates })).updatedRows, 0n);
      assert.deepEqual(await valuesOf(id, "name"), ["p0", "p1", "p2", "p3", "p4"]);
    });

    test("a column may be a path with quotes", async () => {
      const id = await world.table();
      await world.client.updateTable({ id, updates: [{ column: "`name`", expression: "`name`" }] });
      assert.deepEqual(await valuesOf(id, "name"), ["p0", "p1", "p2", "p3", "p4"]);
    });

    test("adds properties to those of the table", async (t) => {
      if (!world.capabilities.changesProperties) return t.skip("the upstream has the properties");
      const id = [await world.namespace(), "t"];
      await world.client.createTable({ id, properties: { a: "1", b: "2" } }, personStream(people(1)));
      const updates = [{ column: "name", expression: "'x'" }];
      const properties = { b: "3", ü: "4" };
      const answer = await world.client.updateTable({ id, updates, properties });
      assert.deepEqual(answer.properties, { a: "1", b: "3", ü: "4" });
      assert.deepEqual((await world.client.describeTable({ id })).properties, answer.properties);
      assert.deepEqual((await world.client.updateTable({ id, updates })).properties, answer.properties);
    });

    test("works on a branch and leaves main alone", async () => {
      const id = await world.table(people(1));
      await world.client.createTableBranch({ id, name: "b" });
      const updates = [{ column: "name", expression: "'x'" }];
      assert.equal((await world.client.updateTable({ id, updates, branch: "b" })).updatedRows, 1n);
      assert.equal((await rowsIn(id, { branch: "b" }))[0]?.["name"], "x");
      assert.equal((await rowsIn(id))[0]?.["name"], "p0");
      await refused("TableBranchNotFound", world.client.updateTable({ id, updates, branch: "missing" }));
    });

    test("concurrent updates lose nothing", async () => {
      const id = await world.table(people(1));
      const updates = [{ column: "id", expression: "id + 1" }];
      const outcomes = await Promise.allSettled(
        Array.from({ length: RACERS }, () => world.client.updateTable({ id, updates })),
      );
      const done = outcomes.filter(({ status }) => status === "fulfilled").length;
      assert.ok(done > 0);
      assert.deepEqual(await valuesOf(id, "id"), [done]);
    });

    const one = (column: string, expression: string): Update => ({ updates: [{ column, expression }] });
    const two = (...columns: readonly [string, string][]): Update => ({
      updates: columns.map(([column, expression]) => ({ column, expression })),
    });
    const wrong: Record<string, [Update, ErrorName | readonly ErrorName[]]> = {
      "no column": [{ updates: [] }, "InvalidInput"],
      "a column without a name": [one("", "1"), "InvalidInput"],
      "a column twice": [
        { updates: [...(one("id", "1").updates ?? []), ...(one("`id`", "2").updates ?? [])] },
        "InvalidInput",
      ],
      "an expression that reads another updated column": [
        two(["id", "id * 2"], ["name", "concat(name, CAST(id AS STRING))"]),
        "Unsupported",
      ],
      "an exchange of two columns": [
        two(["name", "CAST(`id` AS STRING)"], ["id", "length(NAME)"]),
        "Unsupported",
      ],
      "a missing column": [one("nothing", "1"), "TableColumnNotFound"],
      "a blank expression": [one("id", " "), "InvalidInput"],
      "an empty predicate": [{ ...one("id", "1"), predicate: "" }, "InvalidInput"],
      "a blank predicate": [{ ...one("id", "1"), predicate: " \t\n" }, "InvalidInput"],
      "an expression that is cut off": [one("id", "1 +"), "InvalidInput"],
      "two expressions": [one("id", "1; 2"), "InvalidInput"],
      "an expression of a missing column": [one("id", "nothing + 1"), "TableColumnNotFound"],
      "an expression with an aggregate": [one("id", "max(id)"), "InvalidInput"],
      "a division by zero": [one("id", "1 / 0"), "InvalidInput"],
      "a value that does not fit": [one("id", "'abc'"), "TableSchemaValidationError"],
      "a vector of another length": [one("vector", "[1.0, 2.0, 3.0]"), "TableSchemaValidationError"],
      "a null where none may be": [one("id", "NULL"), "TableSchemaValidationError"],
      "a predicate that is cut off": [{ ...one("id", "1"), predicate: "id >" }, "InvalidInput"],
      "a predicate that is no condition": [{ ...one("id", "1"), predicate: "id" }, "InvalidInput"],
      "a predicate of a missing column": [
        { ...one("id", "1"), predicate: "nothing = 1" },
        "TableColumnNotFound",
      ],
    };
    for (const [what, [request, error]] of Object.entries(wrong)) {
      test(`${what} is ${error} and changes nothing`, async () => {
        const id = await world.table();
        await refused(error, world.client.updateTable({ ...request, id }));
        assert.deepEqual(await valuesOf(id, "id"), [0, 1, 2, 3, 4]);
      });
    }

    test("a table without data is TableNotFound", async () => {
      const update = world.client.updateTable({ id: await world.declared(), ...one("id", "1") });
      await refused("TableNotFound", update);
    });
  });

  describe("deleting", () => {
    test("removes the rows of the predicate, with their number and the version", async () => {
      const id = await world.table([...people(4), { id: 4, name: "é \u{1f600}", vector: [4, 0] }]);
      const answer = await world.client.deleteFromTable({ id, predicate: "id < 2 OR name = 'é \u{1f600}'" });
      assert.deepEqual([answer.numDeletedRows, answer.version], [3n, 2n]);
      assert.deepEqual(await valuesOf(id, "id"), [2, 3]);
      assert.equal((await world.client.deleteFromTable({ id, predicate: "id > 99" })).numDeletedRows, 0n);
      assert.equal((await world.client.deleteFromTable({ id, predicate: "true" })).numDeletedRows, 2n);
      assert.equal(await world.count(id), 0);
    });

    test("works on a branch and leaves main alone", async () => {
      const id = await world.table();
      await world.client.createTableBranch({ id, name: "b" });
      await world.client.deleteFromTable({ id, predicate: "id = 0", branch: "b" });
      assert.equal((await rowsIn(id, { branch: "b" })).length, 4);
      assert.equal(await world.count(id), 5);
    });

    const wrong: Record<string, [string, ErrorName]> = {
      "a blank predicate": ["  ", "InvalidInput"],
      "a predicate that is cut off": ["id =", "InvalidInput"],
      "a predicate that is no condition": ["name", "InvalidInput"],
      "two predicates": ["id = 1; true", "InvalidInput"],
      "a predicate of a missing column": ["nothing = 1", "TableColumnNotFound"],
    };
    for (const [what, [predicate, error]] of Object.entries(wrong)) {
      test(`${what} is ${error} and removes nothing`, async () => {
        const id = await world.table();
        await refused(error, world.client.deleteFromTable({ id, predicate }));
        assert.equal(await world.count(id), 5);
      });
    }
  });

  describe("the figures of a table", () => {
    test("count rows without the deleted ones, fragments as they are written, and bytes, on a branch too", async () => {
      const id = await world.table();
      await world.client.insertIntoTable({ id }, personStream(people(3, 5)));
      await world.client.deleteFromTable({ id, predicate: "id = 0" });
      const { totalBytes, numRows, numIndices, fragmentStats } = await world.client.getTableStats({ id });
      assert.deepEqual([numRows, numIndices], [7n, 0n]);
      assert.ok(totalBytes > 0n);
      assert.deepEqual([fragmentStats?.numFragments, fragmentStats?.numSmallFragments], [2n, 2n]);
      assert.deepEqual([fragmentStats?.lengths?.min, fragmentStats?.lengths?.max], [3n, 5n]);
      await world.client.createTableBranch({ id, name: "b" });
      await world.client.deleteFromTable({ id, predicate: "true", branch: "b" });
      assert.equal((await world.client.getTableStats({ id, branch: "b" })).numRows, 0n);
      assert.equal((await world.client.getTableStats({ id })).numRows, 7n);
    });

    test("of an empty table are zero, and of a declared one are missing", async () => {
      const stats = await world.client.getTableStats({ id: await world.table([]) });
      assert.equal(stats.numRows, 0n);
      assert.equal(stats.fragmentStats?.lengths?.p99, 0n);
      await refused("TableNotFound", world.client.getTableStats({ id: await world.declared() }));
      const missing = world.client.getTableStats({ id: await world.table(), branch: "missing" });
      await refused("TableBranchNotFound", missing);
    });
  });
}
