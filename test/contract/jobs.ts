import assert from "node:assert/strict";
import { Field, Int32, Int64, Schema, Table, tableToIPC, Utf8 } from "apache-arrow";
import { describe, test } from "vitest";
import { MaterializedViewKind } from "../../src/gen/lance/namespace/v1/view_pb.ts";
import { columnsOf, people, personStream, rowsOf } from "../support/arrow.ts";
import { refused } from "../support/expect.ts";
import { until } from "../support/until.ts";
import type { World } from "./world.ts";

const schemaText = (fields: Field[]) =>
  Buffer.from(tableToIPC(new Table(new Schema(fields)), "stream")).toString("base64");

const PAIR = schemaText([new Field("id", new Int32(), false), new Field("twice", new Int64(), true)]);

/** Jobs that fill columns. */
export function backfillTests(world: World): void {
  const count = async (id: string[], predicate: string, options = {}) =>
    Number((await world.client.countTableRows({ id, predicate, ...options })).count);

  describe("backfill", () => {
    const backfill = (id: string[], column: string, options = {}) =>
      world.client.alterTableBackfillColumns({ id, column, ...options });
    const computed = async (id: string[], options = {}) => {
      const newColumns = [{ name: "twice", computed: "id * 2" }];
      await world.client.alterTableAddColumns({ id, newColumns, ...options });
    };

    test("fills a computed column, and later the rows that were added or changed", async () => {
      const id = await world.table();
      await computed(id);
      assert.ok((await backfill(id, "twice")).jobId);
      await until(async () => (await count(id, "twice = id * 2")) === 5);
      await world.client.insertIntoTable({ id }, personStream(people(2, 5)));
      assert.equal(await count(id, "twice is null"), 2);
      await backfill(id, "twice", { where: "twice IS NULL" });
      await until(async () => (await count(id, "twice = id * 2")) === 7);
    });

    test("fills a plain column from the expression in its metadata, where a condition holds", async () => {
      const id = await world.table();
      const newColumns = [{ name: "twice", expression: "cast(null as int)" }];
      await world.client.alterTableAddColumns({ id, newColumns });
      await refused("InvalidInput", backfill(id, "twice"));
      const expression = { value: "id * 2" };
      const updates = [{ path: "twice", metadata: { "lance_gateway.expression": expression } }];
      await world.client.updateFieldMetadata({ id, updates });
      await backfill(id, "twice", { where: "id > 2" });
      await until(async () => (await count(id, "twice = id * 2")) === 2);
      assert.equal(await count(id, "twice is null"), 3);
      await backfill(id, "twice");
      await until(async () => (await count(id, "twice = id * 2")) === 5);
      await refused("InvalidInput", backfill(id, "twice", { where: "id >" }));
      await refused("TableColumnNotFound", backfill(id, "twice", { where: "nothing > 1" }));
    });

    test("works on a branch", async () => {
      const id = await world.table();
      const branch = "b";
      await world.client.createTableBranch({ id, name: branch });
      await computed(id, { branch });
      await backfill(id, "twice", { branch });
      await until(async () => (await count(id, "twice = id * 2", { branch })) === 5);
      await refused("TableColumnNotFound", backfill(id, "twice"));
    });

    test("refuses work that it cannot do, with the reason", async () => {
      const id = await world.table();
      await computed(id);
      await refused("TableColumnNotFound", backfill(id, "nothing"));
      await refused("InvalidInput", backfill(id, "name"));
      await refused("Unsupported", backfill(id, "twice", { where: "id > 2" }));
      await refused("InvalidInput", backfill(id, "twice", { where: "id > 2; id" }));
      await refused("Unsupported", backfill(id, "twice", { numFrags: 1 }));
      await refused("Unsupported", backfill(id, "twice", { readVersion: 1n }));
      await refused("TableNotFound", backfill(await world.declared(), "twice"));
      await refused("TableBranchNotFound", backfill(id, "twice", { branch: "missing" }));
    });
  });
}

/** Jobs that fill views. */
export function viewTests(world: World): void {
  describe("materialized views", () => {
    const query = "SELECT id, id * cast(2 as bigint) AS twice FROM";
    const create = (id: string[], sourceQuery: string, options = {}) =>
      world.client.createMaterializedView({
        id,
        kind: MaterializedViewKind.QUERY,
        sourceQuery,
        outputSchema: PAIR,
        ...options,
      });
    const refresh = (id: string[], options = {}) => world.client.refreshMaterializedView({ id, ...options });
    const pairs = async (id: string[]) => {
      const { bytes } = await world.client.queryTable({ id });
      return rowsOf(bytes)
        .map(({ id, twice }) => [id, twice] as [number, number])
        .sort(([a], [b]) => a - b);
    };
    const doubled = (...ids: number[]) => ids.map((id) => [id, id * 2]);
    const rows = (id: string[], wanted: number) => until(async () => (await world.count(id)) === wanted);

    test("begin empty, with the requested columns, and are filled by a refresh", async () => {
      const source = await world.table();
      const id = [source[0] as string, "view"];
      const { version, jobId } = await create(id, `${query} ${source.join(".")} WHERE id > 1`);
      assert.deepEqual([version, jobId], [1n, undefined]);
      assert.deepEqual(columnsOf((await world.client.queryTable({ id })).bytes), ["id", "twice"]);
      assert.equal(await world.count(id), 0);
      assert.ok((await refresh(id)).jobId);
      await rows(id, 3);
      assert.deepEqual(await pairs(id), doubled(2, 3, 4));
      const { schema } = await world.client.describeTable({ id, loadDetailedMetadata: true });
      assert.equal(schema?.fields[0]?.nullable, false);
    });

    test("are filled at once on request", async () => {
      const source = await world.table();
      const id = [source[0] as string, "view"];
      const { jobId } = await create(id, `${query} ${source.join("$")}`, { withNoData: false });
      assert.ok(jobId);
      await rows(id, 5);
    });

    test("follow added and changed rows of their source", async () => {
      const source = await world.table();
      const id = [source[0] as string, "view"];
      await create(id, `${query} ${source.join(".")} WHERE id <> 6`, { withNoData: false });
      await rows(id, 5);
      await world.client.insertIntoTable({ id: source }, personStream(people(3, 5)));
      await refresh(id);
      await rows(id, 7);
      assert.deepEqual(await pairs(id), doubled(0, 1, 2, 3, 4, 5, 7));
      await world.client.deleteFromTable({ id: source, predicate: "id < 3" });
      await refresh(id);
      await rows(id, 4);
      assert.deepEqual(await pairs(id), doubled(3, 4, 5, 7));
    });

    test("can be made from an older version, and keep their limit", async () => {
      const source = await world.table();
      const id = [source[0] as string, "view"];
      await create(id, `${query} ${source.join(".")} LIMIT 6`);
      await world.client.insertIntoTable({ id: source }, personStream(people(3, 5)));
      await refresh(id, { srcVersion: 1n });
      await rows(id, 5);
      await refresh(id);
      await rows(id, 6);
      await refused("TableVersionNotFound", refresh(id, { srcVersion: 99n }));
    });

    test("must fit their schema, their source and the grammar", async () => {
      const source = await world.table();
      const [ns] = source as [string];
      const id = [ns, "view"];
      const from = source.join(".");
      const other = schemaText([new Field("id", new Int32(), false), new Field("twice", new Utf8(), true)]);
      await refused("TableSchemaValidationError", create(id, `${query} ${from}`, { outputSchema: other }));
      await refused("TableSchemaValidationError", create(id, `SELECT id FROM ${from}`));
      await refused("InvalidInput", create(id, `${query} ${from}`, { outputSchema: "?" }));
      await refused("InvalidInput", create(id, `${query} ${from}`, { outputSchema: "AAAA" }));
      await refused("InvalidInput", create(id, `${query} ${from} GROUP BY id`));
      await refused("InvalidInput", create(id, `${query} ${from} WHERE id >`));
      await refused("TableColumnNotFound", create(id, `SELECT id, nothing AS twice FROM ${from}`));
      await refused("TableNotFound", create(id, `${query} ${ns}.missing`));
      await refused("InvalidInput", create(id, `${query} ${ns}.view`));
      await create([ns, "taken"], `${query} ${from}`);
      await refused("TableAlreadyExists", create([ns, "taken"], `${query} ${from}`));
      await refused("NamespaceNotFound", create(["missing", "view"], `${query} ${from}`));
      await refused("InvalidInput", refresh(source));
      await refused("InvalidInput", refresh([ns, "taken"], { outputLimit: 5n }));
      await refused("TableNotFound", refresh([ns, "missing"]));
    });

    test("of functions are Unsupported", async () => {
      const source = await world.table();
      const id = [source[0] as string, "view"];
      for (const kind of [MaterializedViewKind.UDTF, MaterializedViewKind.CHUNKER]) {
        await refused("Unsupported", create(id, "anything", { kind }));
      }
      await refused(
        "InvalidInput",
        create(id, `${query} ${source.join(".")}`, { kind: MaterializedViewKind.UNSPECIFIED }),
      );
      await refused("InvalidInput", create(id, `${query} ${source.join(".")}`, { udtfSpec: {} }));
    });
  });
}
