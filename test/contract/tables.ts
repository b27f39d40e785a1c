import assert from "node:assert/strict";
import { describe, test } from "vitest";
import { CreateTableMode } from "../../src/gen/lance/namespace/v1/data_pb.ts";
import { personStream } from "../support/arrow.ts";
import { refused } from "../support/expect.ts";
import { checkForeignToken, checkPaging, type World } from "./world.ts";

/** Declaring, listing and removing tables. */
export function tableTests(world: World): void {
  describe("tables", () => {
    test("a declared table has a location and its properties, and is reported to have no data", async () => {
      const id = [await world.namespace(), "t"];
      const answer = await world.client.declareTable({ id, properties: { a: "1" } });
      assert.ok(answer.location);
      assert.deepEqual(answer.properties, { a: "1" });
      assert.equal(answer.managedVersioning ?? false, world.capabilities.managesVersions);
      const described = await world.client.describeTable({ id, checkDeclared: true });
      assert.equal(described.isOnlyDeclared, true);
      assert.equal(described.location, answer.location);
      assert.deepEqual(described.properties, { a: "1" });
      await world.client.tableExists({ id });
    });

    test("a name is declared once, whatever object has it", async () => {
      const id = await world.declared();
      await refused("TableAlreadyExists", world.client.declareTable({ id }));
      await refused("TableAlreadyExists", world.client.declareTable({ id: await world.table() }));
      await refused("TableAlreadyExists", world.client.declareTable({ id: [await world.namespace()] }));
    });

    test("a namespace is not overwritten by a table", async () => {
      const id = [await world.namespace()];
      for (const mode of [CreateTableMode.CREATE, CreateTableMode.EXIST_OK, CreateTableMode.OVERWRITE]) {
        await refused("TableAlreadyExists", world.client.createTable({ id, mode }, personStream([])));
      }
      await world.client.namespaceExists({ id });
    });

    test("a table needs an existing parent that is a namespace", async () => {
      const declared = await world.declared();
      for (const parent of [["missing"], [await world.namespace(), "missing"], declared]) {
        const id = [...parent, "t"];
        await refused("NamespaceNotFound", world.client.declareTable({ id }));
        await refused("NamespaceNotFound", world.client.createTable({ id }, personStream([])));
        await refused("NamespaceNotFound", world.client.registerTable({ id, location: "somewhere.lance" }));
        await refused("NamespaceNotFound", world.client.listTables({ id: parent }));
      }
    });

    test("a missing table is TableNotFound everywhere", async () => {
      const namespace = await world.namespace();
      await world.client.createNamespace({ id: [namespace, "child"] });
      for (const id of [[namespace, "missing"], [namespace, "child"], ["missing-from-the-root"]]) {
        await refused("TableNotFound", world.client.describeTable({ id }));
        await refused("TableNotFound", world.client.tableExists({ id }));
        await refused("TableNotFound", world.client.dropTable({ id }));
        await refused("TableNotFound", world.client.deregisterTable({ id }));
        await refused("TableNotFound", world.client.countTableRows({ id }));
        await refused("TableNotFound", world.client.queryTable({ id }));
        await refused("TableNotFound", world.client.insertIntoTable({ id }, personStream([])));
      }
    });

    test("the root cannot be used as a table", async () => {
      await refused("InvalidInput", world.client.describeTable());
      await refused("InvalidInput", world.client.declareTable());
      await refused("InvalidInput", world.client.dropTable());
      await refused("InvalidInput", world.client.createTable({}, personStream([])));
    });

    test("a table may be in the root", async () => {
      const id = ["a-root-table"];
      await world.client.createTable({ id }, personStream([]));
      const { table, namespace } = await world.client.describeTable({ id });
      assert.deepEqual([table, namespace], ["a-root-table", []]);
      assert.ok((await world.client.listTables()).tables.includes("a-root-table"));
      await world.client.dropTable({ id });
      await refused("TableNotFound", world.client.tableExists({ id }));
    });

    test("the existence of a table can be checked for one version", async () => {
      const id = await world.table();
      const { version = 0n } = await world.client.describeTable({ id, loadDetailedMetadata: true });
      await world.client.tableExists({ id, version });
      await refused("TableVersionNotFound", world.client.tableExists({ id, version: version + 7n }));
    });

    test("pages of any size list every table once, with and without declared ones", async () => {
      const id = [await world.namespace()];
      const [real, declared] = [
        ["b", "a.x", "9"],
        ["a", "B", "10", "a-x"],
      ];
      for (const name of real) await world.client.createTable({ id: [...id, name] }, personStream([]));
      for (const name of declared) await world.client.declareTable({ id: [...id, name] });
      await world.client.createNamespace({ id: [...id, "child"] });
      await world.client.declareTable({ id: [...id, "child", "grandchild"] });
      const list = (includeDeclared?: boolean) => async (options: { limit: number; pageToken?: string }) => {
        const flag = includeDeclared === undefined ? {} : { includeDeclared };
        const { tables, pageToken } = await world.client.listTables({ id, ...flag, ...options });
        return { names: tables, pageToken };
      };
      await checkPaging([...real, ...declared], list());
      await checkPaging([...real, ...declared], list(true));
      await checkPaging(real, list(false));
      await checkForeignToken(real.length + declared.length, list());
    });

    test("a listing continues at its place when its last name is dropped meanwhile", async () => {
      const id = [await world.namespace()];
      for (const name of ["a", "b", "c", "d", "e"]) await world.client.declareTable({ id: [...id, name] });
      const first = await world.client.listTables({ id, limit: 2 });
      await world.client.dropTable({ id: [...id, first.tables[1] as string] });
      const second = await world.client.listTables({ id, limit: 9, pageToken: first.pageToken ?? "" });
      assert.deepEqual([...first.tables, ...second.tables].toSorted(), ["a", "b", "c", "d", "e"]);
      assert.ok(!second.pageToken);
    });

    test("all tables are listed by bare names in the root, page by page", async () => {
      const names = ["all-c", "all-a", "all-b"];
      await world.client.createTable({ id: ["all-c"] }, personStream([]));
      await world.client.declareTable({ id: ["all-a"] });
      await world.client.declareTable({ id: ["all-b"] });
      const everything = (await world.client.listAllTables()).tables;
      assert.deepEqual(everything.filter((name) => name.startsWith("all-")).toSorted(), names.toSorted());
      await checkPaging(everything, async (options) => {
        const { tables, pageToken } = await world.client.listAllTables(options);
        return { names: tables, pageToken };
      });
      const filled = (await world.client.listAllTables({ includeDeclared: false })).tables;
      assert.deepEqual(
        filled.filter((name) => name.startsWith("all-")),
        ["all-c"],
      );
      for (const name of names) await world.client.dropTable({ id: [name] });
    });

    test("dropping a table removes its data and frees its name", async () => {
      const id = await world.table();
      const { location } = await world.client.describeTable({ id });
      const dropped = await world.client.dropTable({ id });
      assert.deepEqual(dropped.id, id);
      assert.equal(dropped.location, location);
      await refused("TableNotFound", world.client.describeTable({ id }));
      assert.deepEqual((await world.client.listTables({ id: id.slice(0, 1) })).tables, []);
      await world.client.createTable({ id }, personStream([]));
      assert.equal(await world.count(id), 0);
    });

    test("a declared table can be dropped and deregistered", async () => {
      for (const remove of ["dropTable", "deregisterTable"] as const) {
        const id = await world.declared();
        assert.deepEqual((await world.client[remove]({ id })).id, id);
        await refused("TableNotFound", world.client.tableExists({ id }));
        await world.client.declareTable({ id });
      }
    });
  });
}
