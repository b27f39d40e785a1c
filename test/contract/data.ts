import assert from "node:assert/strict";
import { describe, test } from "vitest";
import { CreateTableMode, InsertMode } from "../../src/gen/lance/namespace/v1/data_pb.ts";
import { cut, otherStream, people, personStream, rowsOf } from "../support/arrow.ts";
import { refused } from "../support/expect.ts";
import type { World } from "./world.ts";

const MODES = [undefined, CreateTableMode.CREATE, CreateTableMode.EXIST_OK, CreateTableMode.OVERWRITE];

/** Returns bodies that are not complete Arrow IPC streams. */
function brokenBodies(): [string, Uint8Array][] {
  const whole = personStream(people(100));
  return [
    ["nothing", new Uint8Array()],
    ["text", Buffer.from("id,name\n1,a\n")],
    ["a stream that ends in its schema", whole.subarray(0, 60)],
    ["a stream that ends in its batch", whole.subarray(0, whole.length - 200)],
    ["a length that is past the end", Buffer.from("ffffffffffffff7f00000000", "hex")],
  ];
}

/** Creating tables from Arrow streams, inserting and counting. */
export function dataTests(world: World): void {
  const ids = async (id: string[]) =>
    rowsOf((await world.client.queryTable({ id, columns: { columnNames: ["id"] } })).bytes).map(
      (row) => row["id"],
    );

  describe("creation of tables with data", () => {
    test("a created table has its rows, a location, version 1 and its properties", async () => {
      const id = [await world.namespace(), "t"];
      const properties = { a: "1" };
      const answer = await world.client.createTable({ id, properties }, personStream(people(5)));
      assert.ok(answer.location);
      assert.equal(answer.version, 1n);
      const isOwn = world.capabilities.addsProperties ? assert.partialDeepStrictEqual : assert.deepEqual;
      isOwn(answer.properties, properties);
      assert.deepEqual(await ids(id), [0, 1, 2, 3, 4]);
      const described = await world.client.describeTable({ id });
      assert.equal(described.location, answer.location);
      isOwn(described.properties, properties);
    });

    test("a body may be cut anywhere", async () => {
      const namespace = await world.namespace();
      for (const size of [1, 7, 64, 1000]) {
        const id = [namespace, `cut${size}`];
        await world.client.createTable({ id }, cut(personStream(people(20)), size));
        assert.equal(await world.count(id), 20);
      }
    });

    test("mode Create, which is the default, refuses a table that exists", async () => {
      const id = await world.table();
      for (const mode of [undefined, CreateTableMode.CREATE]) {
        const again = world.client.createTable({ id, ...(mode && { mode }) }, personStream(people(1)));
        await refused("TableAlreadyExists", again);
      }
      assert.equal(await world.count(id), 5);
    });

    test("mode ExistOk keeps a table that exists", async () => {
      const id = await world.table();
      const { location } = await world.client.describeTable({ id });
      const mode = CreateTableMode.EXIST_OK;
      const answer = await world.client.createTable({ id, mode }, personStream(people(1)));
      assert.equal(answer.location, location);
      assert.deepEqual(await ids(id), [0, 1, 2, 3, 4]);
    });

    test("mode ExistOk refuses another schema than that of the table", async () => {
      const id = await world.table();
      const mode = CreateTableMode.EXIST_OK;
      const { message } = await refused(
        "TableSchemaValidationError",
        world.client.createTable({ id, mode }, otherStream()),
      );
      assert.match(message, /the table has a different schema: column 1 is "unrelated", in the table "id"/);
      assert.deepEqual(await ids(id), [0, 1, 2, 3, 4]);
      const declared = await world.declared();
      await world.client.createTable({ id: declared, mode }, otherStream());
      assert.equal(await world.count(declared), 1);
    });

    test("mode Overwrite replaces rows, schema and properties of a table that exists", async (t) => {
      if (!world.capabilities.changesProperties) return t.skip("the upstream has the properties");
      const id = [await world.namespace(), "t"];
      await world.client.createTable({ id, properties: { a: "1" } }, personStream(people(5)));
      const mode = CreateTableMode.OVERWRITE;
      await world.client.createTable({ id, mode, properties: { b: "2" } }, otherStream());
      assert.equal(await world.count(id), 1);
      const { schema, properties } = await world.client.describeTable({ id, loadDetailedMetadata: true });
      assert.deepEqual(
        schema?.fields.map((field) => field.name),
        ["unrelated"],
      );
      assert.deepEqual(properties, { b: "2" });
    });

    test("every mode creates a missing table, and gives a declared one its data", async () => {
      const namespace = await world.namespace();
      for (const [index, mode] of MODES.entries()) {
        const init = mode === undefined ? {} : { mode };
        for (const name of [`new${index}`, `declared${index}`]) {
          const id = [namespace, name];
          if (name.startsWith("declared")) await world.client.declareTable({ id });
          await world.client.createTable({ id, ...init }, personStream(people(2)));
          assert.equal(await world.count(id), 2);
          const { isOnlyDeclared } = await world.client.describeTable({ id, checkDeclared: true });
          assert.equal(isOnlyDeclared, false);
        }
      }
    });

    test("a stream without rows makes an empty table with its schema", async () => {
      const id = await world.table([]);
      assert.equal(await world.count(id), 0);
      const { schema } = await world.client.describeTable({ id, loadDetailedMetadata: true });
      assert.equal(schema?.fields.length, 3);
      assert.deepEqual(rowsOf((await world.client.queryTable({ id })).bytes), []);
      await world.client.insertIntoTable({ id }, personStream(people(2)));
      assert.equal(await world.count(id), 2);
    });

    test("a broken body is InvalidInput and leaves no table behind", async () => {
      const id = [await world.namespace(), "t"];
      for (const [what, body] of brokenBodies()) {
        await refused("InvalidInput", world.client.createTable({ id }, body)).catch((error: Error) =>
          assert.fail(`${what}: ${error.message}`),
        );
        await refused("TableNotFound", world.client.tableExists({ id }));
      }
      await world.client.createTable({ id }, personStream(people(1)));
    });

    test("a body that breaks off leaves a table as it was", async () => {
      const id = await world.table();
      async function* breaking() {
        yield personStream(people(100)).subarray(0, 700);
        throw new Error("the sender broke off");
      }
      const mode = CreateTableMode.OVERWRITE;
      await assert.rejects(world.client.createTable({ id, mode }, breaking()));
      assert.deepEqual(await ids(id), [0, 1, 2, 3, 4]);
    });
  });

  describe("insertion", () => {
    test("rows are appended by default, with their number and the new version", async () => {
      const id = await world.table();
      for (const [index, mode] of [undefined, InsertMode.APPEND].entries()) {
        const rows = personStream(people(2, 5 + 2 * index));
        const answer = await world.client.insertIntoTable({ id, ...(mode && { mode }) }, rows);
        assert.equal(answer.numInsertedRows, 2n);
        assert.equal(answer.version, BigInt(index + 2));
      }
      assert.deepEqual(await ids(id), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
    });

    test("mode Overwrite replaces the rows", async () => {
      const id = await world.table();
      const mode = InsertMode.OVERWRITE;
      const answer = await world.client.insertIntoTable({ id, mode }, personStream(people(2, 50)));
      assert.equal(answer.numInsertedRows, 2n);
      assert.deepEqual(await ids(id), [50, 51]);
      assert.equal(Number((await world.client.countTableRows({ id, version: 1n })).count), 5);
    });

    test("an insert of either mode gives a declared table its first version", async () => {
      for (const mode of [InsertMode.APPEND, InsertMode.OVERWRITE]) {
        const id = await world.declared();
        await world.client.insertIntoTable({ id, mode }, personStream(people(3)));
        assert.deepEqual(await ids(id), [0, 1, 2]);
      }
    });

    test("rows of another schema are refused and leave the table unchanged", async () => {
      const id = await world.table();
      await refused("TableSchemaValidationError", world.client.insertIntoTable({ id }, otherStream()));
      assert.equal(await world.count(id), 5);
    });

    test("an insert without rows makes a version with the same rows", async () => {
      const id = await world.table();
      for (const version of [2n, 3n]) {
        const inserted = await world.client.insertIntoTable({ id }, personStream([]));
        assert.deepEqual([inserted.numInsertedRows, inserted.version], [0n, version]);
        assert.equal(await world.count(id), 5);
      }
      const { version } = await world.client.insertIntoTable({ id }, personStream(people(1, 9)));
      assert.equal(version, 4n);
      assert.equal(await world.count(id), 6);
      await world.client.createTableBranch({ id, name: "b" });
      const branched = await world.client.insertIntoTable({ id, branch: "b" }, personStream([]));
      assert.equal(branched.version, 5n);
      await refused("TableSchemaValidationError", world.client.insertIntoTable({ id }, otherStream()));
    });

    test("rows after the end of a body are refused by create, insert and merge, and none is stored", async () => {
      const id = await world.table(people(2));
      const other = [id[0] as string, "other"];
      for (const rest of [personStream(people(3)), new Uint8Array(8), Buffer.from("rubbish")]) {
        const body = Buffer.concat([personStream(people(3)), rest]);
        for (const call of [
          () => world.client.createTable({ id: other }, body),
          () => world.client.createTable({ id, mode: CreateTableMode.OVERWRITE }, body),
          () => world.client.insertIntoTable({ id }, body),
          () => world.client.insertIntoTable({ id, mode: InsertMode.OVERWRITE }, body),
          () => world.client.mergeInsertIntoTable({ id, on: ["id"], whenNotMatchedInsertAll: true }, body),
        ]) {
          const { message } = await refused("InvalidInput", call());
          assert.match(message, /goes on after the end of its Arrow data/);
        }
      }
      assert.equal(await world.count(id), 2);
      await refused("TableNotFound", world.client.tableExists({ id: other }));
    });

    test("a broken body is InvalidInput and inserts nothing", async () => {
      const id = await world.table();
      for (const [what, body] of brokenBodies()) {
        await refused("InvalidInput", world.client.insertIntoTable({ id }, body)).catch((error: Error) =>
          assert.fail(`${what}: ${error.message}`),
        );
      }
      assert.equal(await world.count(id), 5);
    });

    test("a branch that is not main never changes main", async () => {
      const id = await world.table();
      const insert = world.client.insertIntoTable({ id, branch: "missing" }, personStream(people(1)));
      await refused(["TableBranchNotFound", "Unsupported"], insert);
      assert.equal(await world.count(id), 5);
      await world.client.insertIntoTable({ id, branch: "main" }, personStream(people(1)));
      assert.equal(await world.count(id), 6);
    });
  });

  describe("counting", () => {
    test("rows are counted by condition and by version", async () => {
      const id = await world.table();
      await world.client.insertIntoTable({ id }, personStream(people(5, 5)));
      const count = async (options: object) =>
        Number((await world.client.countTableRows({ id, ...options })).count);
      assert.equal(await count({}), 10);
      assert.equal(await count({ predicate: "id > 3" }), 6);
      assert.equal(await count({ predicate: "name = 'p7'" }), 1);
      assert.equal(await count({ version: 1n }), 5);
      assert.equal(await count({ version: 1n, predicate: "id > 3" }), 1);
      assert.equal(await count({ branch: "main" }), 10);
    });

    test("rows are counted by their ids, addresses and offsets", async () => {
      const id = await world.table();
      const count = async (predicate: string) =>
        Number((await world.client.countTableRows({ id, predicate })).count);
      for (const column of ["_rowid", "_rowaddr", "_rowoffset"]) {
        assert.equal(await count(`${column} IN (0, 1, 2)`), 3, column);
        assert.equal(await count(`${column} = 1`), 1, column);
        assert.equal(await count(`${column} = 1 OR ${column} = 2`), 2, column);
        assert.equal(await count(`${column} = 1 AND id > 100`), 0, column);
      }
    });

    test("errors distinguish a missing version, a missing branch and a wrong condition", async () => {
      const id = await world.table();
      await refused("TableVersionNotFound", world.client.countTableRows({ id, version: 99n }));
      await refused(["TableBranchNotFound", "Unsupported"], world.client.countTableRows({ id, branch: "x" }));
      await refused("InvalidInput", world.client.countTableRows({ id, predicate: "id >" }));
      await refused(
        ["InvalidInput", "TableColumnNotFound"],
        world.client.countTableRows({ id, predicate: "nothing = 1" }),
      );
    });

    test("a declared table has no rows to count", async () => {
      await refused("TableNotFound", world.client.countTableRows({ id: await world.declared() }));
    });
  });
}
