import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { describe, test } from "vitest";
import { rowsOf } from "../support/arrow.ts";
import { refused } from "../support/expect.ts";
import { value } from "./metadata.ts";
import { fieldsOf, type World } from "./world.ts";

const text = (value: string) => create(ValueSchema, { kind: { case: "stringValue", value } });
const type = (name: string) =>
  create(ValueSchema, { kind: { case: "structValue", value: { fields: { type: text(name) } } } });

/** Adding, altering and dropping columns. */
export function columnTests(world: World): void {
  const fields = (id: string[], branch?: string) => fieldsOf(world, id, branch);
  const names = async (id: string[], branch?: string) => (await fields(id, branch)).map(({ name }) => name);
  const rows = async (id: string[], filter = "true") =>
    rowsOf((await world.client.queryTable({ id, filter })).bytes);
  const add = (id: string[], ...newColumns: { name: string; expression?: string; computed?: string }[]) =>
    world.client.alterTableAddColumns({ id, newColumns });

  describe("columns that are added", () => {
    test("a single version gets several new columns, with values or with nulls of a type", async () => {
      const id = await world.table();
      const { version } = await add(
        id,
        { name: "twice", expression: "id * 2" },
        { name: "label", expression: "upper(name)" },
        { name: "weight", expression: "cast(null as double)" },
      );
      assert.equal(version, 2n);
      const [row] = await rows(id, "id = 3");
      assert.deepEqual([row?.["twice"], row?.["label"], row?.["weight"]], [6, "P3", null]);
      assert.equal((await fields(id)).at(-1)?.type, "float64");
      await refused(
        "TableColumnNotFound",
        world.client.countTableRows({ id, predicate: "twice > 1", version: 1n }),
      );
    });

    test("a computed column begins with nulls", async () => {
      const id = await world.table();
      await add(id, { name: "twice", computed: "id * 2" });
      assert.equal((await rows(id, "twice is null")).length, 5);
    });

    test("a name that is taken, or given twice, is refused, and nothing is added", async () => {
      const id = await world.table();
      await refused(
        ["TableSchemaValidationError"],
        add(id, { name: "new", expression: "1" }, { name: "name", expression: "1" }),
      );
      await refused("InvalidInput", add(id, { name: "x", expression: "1" }, { name: "x", expression: "2" }));
      assert.deepEqual(await names(id), ["id", "name", "vector"]);
    });

    test("a column without an expression, with a wrong one or without a name is refused", async () => {
      const id = await world.table();
      await refused("InvalidInput", add(id));
      await refused("InvalidInput", add(id, { name: "x" }));
      await refused("InvalidInput", add(id, { name: "x", expression: " " }));
      await refused("InvalidInput", add(id, { name: "x", expression: "1", computed: "1" }));
      await refused("InvalidInput", add(id, { name: "x", expression: "1" }, { name: "y", computed: "1" }));
      await refused("InvalidInput", add(id, { name: "", expression: "1" }));
      await refused("InvalidInput", add(id, { name: "a.b", expression: "1" }));
      for (const expression of [
        "id +",
        "nothing(id)",
        "sum(id)",
        "id, name",
        "id; name",
        "id from t",
        "$1",
        "id / 0",
      ]) {
        await refused("InvalidInput", add(id, { name: "x", expression }));
      }
      await refused("InvalidInput", add(id, { name: "x", computed: "random()" }));
      await refused("TableColumnNotFound", add(id, { name: "x", expression: "nothing + 1" }));
      await refused("TableColumnNotFound", add(id, { name: "x", computed: "nothing + 1" }));
      await refused("TableSchemaValidationError", add(id, { name: "x", expression: "cast(name as int)" }));
      assert.deepEqual(await names(id), ["id", "name", "vector"]);
    });

    test("a function that is not SQL is Unsupported", async () => {
      const id = await world.table();
      const virtualColumn = { image: "image", udf: "", udfName: "f", udfVersion: "1" };
      await refused(
        "Unsupported",
        world.client.alterTableAddColumns({ id, newColumns: [{ name: "x", virtualColumn }] }),
      );
    });

    test("a table has to be there, and to have data", async () => {
      await refused("TableNotFound", add([await world.namespace(), "t"], { name: "x", expression: "1" }));
      await refused("TableNotFound", add(await world.declared(), { name: "x", expression: "1" }));
    });
  });

  describe("columns that are changed", () => {
    const alter = (id: string[], ...alterations: object[]) =>
      world.client.alterTableAlterColumns({ id, alterations });

    test("name, type and nullability change in one version", async () => {
      const id = await world.table();
      const { version } = await alter(
        id,
        { path: "id", rename: "number", dataType: type("int64") },
        { path: "name", dataType: text("large_utf8") },
      );
      assert.equal(version, 2n);
      assert.deepEqual(
        (await fields(id)).map((field) => [field.name, field.type]),
        [
          ["number", "int64"],
          ["name", "large_utf8"],
          ["vector", "fixed_size_list"],
        ],
      );
      await alter(id, { path: "name", nullable: false });
      assert.equal((await fields(id))[1]?.nullable, false);
      assert.equal((await rows(id, "number = 4 and name = 'p4'")).length, 1);
    });

    test("types are accepted under the names of the specification and under Lance's own", async () => {
      const id = await world.table();
      await add(
        id,
        { name: "at", expression: "cast('2024-01-01 00:00:00' as timestamp)" },
        { name: "price", expression: "cast(1.5 as double)" },
        { name: "amount", expression: "cast(1.5 as decimal(10, 2))" },
      );
      const item = {
        kind: { case: "structValue", value: { fields: { name: text("item"), type: text("float16") } } },
      };
      const vector = {
        fields: {
          type: text("fixed_size_list"),
          length: create(ValueSchema, { kind: { case: "numberValue", value: 2 } }),
          fields: create(ValueSchema, {
            kind: { case: "listValue", value: { values: [item as never] } },
          }),
        },
      };
      const length = create(ValueSchema, { kind: { case: "numberValue", value: 12002 } });
      const decimal = { fields: { type: text("decimal128"), length } };
      await alter(
        id,
        { path: "at", dataType: text("timestamp:ms:Europe/Berlin") },
        { path: "price", dataType: text("Float32") },
        { path: "amount", dataType: create(ValueSchema, { kind: { case: "structValue", value: decimal } }) },
        { path: "vector", dataType: create(ValueSchema, { kind: { case: "structValue", value: vector } }) },
      );
      const { schema } = await world.client.describeTable({ id, loadDetailedMetadata: true });
      assert.deepEqual(
        schema?.fields.slice(2).map((field) => [field.name, field.type?.type, field.type?.length]),
        [
          ["vector", "fixed_size_list", 2n],
          ["at", "timestamp", undefined],
          ["price", "float32", undefined],
          ["amount", "decimal128", 12002n],
        ],
      );
      assert.equal(schema?.fields[2]?.type?.fields[0]?.type?.type, "float16");
      await alter(id, { path: "vector", dataType: text("fixed_size_list:float:2") });
    });

    test("fields inside of structs and names in backticks are reached", async () => {
      const id = await world.table();
      await add(
        id,
        { name: "odd name", expression: "id" },
        { name: "s", expression: "named_struct('a b', id)" },
      );
      await alter(id, { path: "`odd name`", rename: "plain" }, { path: "s.`a b`", rename: "c" });
      const { schema } = await world.client.describeTable({ id, loadDetailedMetadata: true });
      assert.deepEqual(
        schema?.fields.slice(3).map((field) => [field.name, field.type?.fields.map(({ name }) => name)]),
        [
          ["plain", []],
          ["s", ["c"]],
        ],
      );
      await world.client.alterTableDropColumns({ id, columns: ["plain"] });
    });

    test("an impossible change is refused with its reason", async () => {
      const id = await world.table();
      await refused("InvalidInput", alter(id));
      await refused("InvalidInput", alter(id, { path: "id" }));
      await refused("InvalidInput", alter(id, { path: "", rename: "x" }));
      await refused("InvalidInput", alter(id, { path: "id", rename: "a.b" }));
      await refused("InvalidInput", alter(id, { path: "id", rename: "a" }, { path: "id", rename: "b" }));
      await refused("InvalidInput", alter(id, { path: "id", dataType: text("nonsense") }));
      await refused("InvalidInput", alter(id, { path: "id", dataType: create(ValueSchema) }));
      await refused("TableColumnNotFound", alter(id, { path: "nothing", rename: "x" }));
      await refused("TableColumnNotFound", alter(id, { path: "id.x", rename: "x" }));
      await refused("TableSchemaValidationError", alter(id, { path: "id", rename: "name" }));
      await refused("TableSchemaValidationError", alter(id, { path: "id", dataType: type("utf8") }));
      await add(id, { name: "some", expression: "nullif(id, 1)" });
      await refused("TableSchemaValidationError", alter(id, { path: "some", nullable: false }));
      // The engine would make the two changes one after the other.
      await refused(
        "InvalidInput",
        alter(id, { path: "id", dataType: text("int64") }, { path: "name", nullable: false }),
      );
      await refused("Unsupported", alter(id, { path: "id", virtualColumn: {} }));
    });
  });

  describe("columns that are dropped", () => {
    const drop = (id: string[], ...columns: string[]) => world.client.alterTableDropColumns({ id, columns });

    test("they are gone from the newest version on", async () => {
      const id = await world.table();
      assert.equal((await drop(id, "vector", "name", "name")).version, 2n);
      assert.deepEqual(await names(id), ["id"]);
      assert.equal(
        (await world.client.countTableRows({ id, predicate: "name = 'p1'", version: 1n })).count,
        1n,
      );
    });

    test("an empty list, all columns, and a missing column are refused", async () => {
      const id = await world.table();
      await refused("InvalidInput", drop(id));
      await refused("InvalidInput", drop(id, "id", "name", "vector"));
      await refused("TableColumnNotFound", drop(id, "id", "nothing"));
      assert.deepEqual(await names(id), ["id", "name", "vector"]);
    });
  });

  test("a branch has columns and metadata of its own", async () => {
    const id = await world.table();
    await world.client.createTableBranch({ id, name: "b" });
    const branch = "b";
    await world.client.alterTableAddColumns({ id, branch, newColumns: [{ name: "x", expression: "1" }] });
    await world.client.alterTableAlterColumns({ id, branch, alterations: [{ path: "x", rename: "y" }] });
    await world.client.alterTableDropColumns({ id, branch, columns: ["vector"] });
    await world.client.updateTableSchemaMetadata({ id, branch, metadata: { k: "v" } });
    const updates = [{ path: "y", metadata: { k: value("v") } }];
    await world.client.updateFieldMetadata({ id, branch, updates });
    assert.deepEqual(await names(id, "b"), ["id", "name", "y"]);
    assert.deepEqual(await names(id), ["id", "name", "vector"]);
    const missing = { id, branch: "missing" };
    await refused("TableBranchNotFound", world.client.alterTableDropColumns({ ...missing, columns: ["id"] }));
    await refused("TableBranchNotFound", world.client.updateFieldMetadata({ ...missing, updates }));
    await refused("TableBranchNotFound", world.client.updateTableSchemaMetadata(missing));
  });
}
