import assert from "node:assert/strict";
import { describe, test } from "vitest";
import {
  CreateNamespaceMode,
  DropNamespaceBehavior,
  DropNamespaceMode,
} from "../../src/gen/lance/namespace/v1/namespace_pb.ts";
import { refused } from "../support/expect.ts";
import { checkForeignToken, checkPaging, type World } from "./world.ts";

const { EXIST_OK, OVERWRITE } = CreateNamespaceMode;

/** Creating, describing, listing and dropping namespaces. */
export function namespaceTests(world: World): void {
  describe("namespaces", () => {
    test("a namespace is described with the properties it was created with", async () => {
      const id = [await world.namespace(), "child"];
      const properties = { owner: "me", empty: "" };
      assert.deepEqual((await world.client.createNamespace({ id, properties })).properties, properties);
      assert.deepEqual((await world.client.describeNamespace({ id })).properties, properties);
      await world.client.namespaceExists({ id });
    });

    test("properties of more than 64 KiB are refused for every kind of object", async () => {
      const parent = await world.namespace();
      const properties = { a: "x".repeat(64 * 1024) };
      const id = [parent, "large"];
      await refused("InvalidInput", world.client.createNamespace({ id, properties }));
      await refused("InvalidInput", world.client.declareTable({ id, properties }));
      await refused("InvalidInput", world.client.registerTable({ id, location: "large", properties }));
      await refused("NamespaceNotFound", world.client.namespaceExists({ id }));
      await refused("TableNotFound", world.client.tableExists({ id }));
    });

    test("mode Create, which is the default, refuses an existing namespace and leaves it unchanged", async () => {
      const id = [await world.namespace(), "child"];
      await world.client.createNamespace({ id, properties: { a: "1" } });
      for (const mode of [undefined, CreateNamespaceMode.CREATE]) {
        const again = world.client.createNamespace({ id, ...(mode && { mode }), properties: { a: "2" } });
        await refused("NamespaceAlreadyExists", again);
      }
      assert.deepEqual((await world.client.describeNamespace({ id })).properties, { a: "1" });
    });

    test("mode ExistOk keeps an existing namespace with its properties and its children", async () => {
      const id = [await world.namespace(), "child"];
      await world.client.createNamespace({ id, properties: { a: "1" } });
      await world.client.createNamespace({ id: [...id, "grandchild"] });
      await world.client.createNamespace({ id, mode: EXIST_OK, properties: { a: "2" } });
      assert.deepEqual((await world.client.describeNamespace({ id })).properties, { a: "1" });
      await world.client.namespaceExists({ id: [...id, "grandchild"] });
    });

    test("mode Overwrite replaces an existing namespace by an empty one", async () => {
      const id = [await world.namespace(), "child"];
      await world.client.createNamespace({ id, properties: { a: "1" } });
      await world.client.createNamespace({ id: [...id, "grandchild"] });
      await world.client.declareTable({ id: [...id, "t"] });
      await world.client.createNamespace({ id, mode: OVERWRITE, properties: { b: "2" } });
      assert.deepEqual((await world.client.describeNamespace({ id })).properties, { b: "2" });
      assert.deepEqual((await world.client.listNamespaces({ id })).namespaces, []);
      assert.deepEqual((await world.client.listTables({ id })).tables, []);
    });

    test("modes ExistOk and Overwrite create a missing namespace", async () => {
      const parent = await world.namespace();
      for (const [name, mode] of [
        ["a", EXIST_OK],
        ["b", OVERWRITE],
      ] as const) {
        await world.client.createNamespace({ id: [parent, name], mode, properties: { name } });
        const { properties } = await world.client.describeNamespace({ id: [parent, name] });
        assert.deepEqual(properties, { name });
      }
    });

    test("the name of a table is not free for a namespace", async () => {
      const id = await world.table();
      await refused("NamespaceAlreadyExists", world.client.createNamespace({ id }));
      await refused("NamespaceNotFound", world.client.namespaceExists({ id }));
      await refused("NamespaceNotFound", world.client.describeNamespace({ id }));
      await refused("NamespaceNotFound", world.client.dropNamespace({ id }));
      assert.equal(await world.count(id), 5);
    });

    test("a parent must exist, at every depth, and be a namespace", async () => {
      const parent = await world.namespace();
      await refused("NamespaceNotFound", world.client.createNamespace({ id: ["missing", "child"] }));
      await refused("NamespaceNotFound", world.client.createNamespace({ id: [parent, "missing", "child"] }));
      await world.client.declareTable({ id: [parent, "table"] });
      await refused("NamespaceNotFound", world.client.createNamespace({ id: [parent, "table", "child"] }));
      await world.client.createNamespace({ id: [parent, "a"] });
      await world.client.createNamespace({ id: [parent, "a", "b"] });
      await world.client.createNamespace({ id: [parent, "a", "b", "c"] });
      assert.deepEqual((await world.client.listNamespaces({ id: [parent] })).namespaces, ["a"]);
      assert.deepEqual((await world.client.listNamespaces({ id: [parent, "a", "b"] })).namespaces, ["c"]);
    });

    test("the root exists without properties, and cannot be created or dropped", async () => {
      await world.client.namespaceExists();
      assert.deepEqual((await world.client.describeNamespace()).properties, {});
      await refused("NamespaceAlreadyExists", world.client.createNamespace());
      await refused("InvalidInput", world.client.dropNamespace());
      const name = await world.namespace();
      assert.ok((await world.client.listNamespaces()).namespaces.includes(name));
    });

    test("a missing namespace is NamespaceNotFound everywhere", async () => {
      for (const id of [["missing"], [await world.namespace(), "missing"]]) {
        await refused("NamespaceNotFound", world.client.describeNamespace({ id }));
        await refused("NamespaceNotFound", world.client.namespaceExists({ id }));
        await refused("NamespaceNotFound", world.client.listNamespaces({ id }));
        await refused("NamespaceNotFound", world.client.dropNamespace({ id }));
      }
    });

    test("pages of any size list every child once", async () => {
      const id = [await world.namespace()];
      const names = ["b", "a", "B", "a-b", "a.b", "a_b", "10", "9"];
      for (const name of names) await world.client.createNamespace({ id: [...id, name] });
      await world.client.createNamespace({ id: [...id, "a", "grandchild"] });
      await world.client.declareTable({ id: [...id, "table"] });
      const list = async (options: { limit: number; pageToken?: string }) => {
        const { namespaces, pageToken } = await world.client.listNamespaces({ id, ...options });
        return { names: namespaces, pageToken };
      };
      await checkPaging(names, list);
      await checkForeignToken(names.length, list);
      assert.deepEqual((await world.client.listNamespaces({ id })).namespaces.toSorted(), names.toSorted());
    });

    test("a listing continues at its place when its last name is dropped meanwhile", async () => {
      const id = [await world.namespace()];
      for (const name of ["a", "b", "c", "d", "e"]) await world.client.createNamespace({ id: [...id, name] });
      const first = await world.client.listNamespaces({ id, limit: 2 });
      await world.client.dropNamespace({ id: [...id, first.namespaces[1] as string] });
      const { pageToken = "" } = first;
      const second = await world.client.listNamespaces({ id, limit: 9, pageToken });
      const seen = [...first.namespaces, ...second.namespaces];
      assert.deepEqual(seen.toSorted(), ["a", "b", "c", "d", "e"]);
      assert.ok(!second.pageToken);
    });

    test("dropping returns the properties and requires an empty namespace", async () => {
      const id = [await world.namespace(), "child"];
      await world.client.createNamespace({ id, properties: { a: "1" } });
      await world.client.declareTable({ id: [...id, "t"] });
      for (const behavior of [undefined, DropNamespaceBehavior.RESTRICT]) {
        await refused("NamespaceNotEmpty", world.client.dropNamespace({ id, ...(behavior && { behavior }) }));
      }
      await world.client.dropTable({ id: [...id, "t"] });
      await world.client.createNamespace({ id: [...id, "n"] });
      await refused("NamespaceNotEmpty", world.client.dropNamespace({ id }));
      await world.client.dropNamespace({ id: [...id, "n"] });
      assert.deepEqual((await world.client.dropNamespace({ id })).properties, { a: "1" });
      await refused("NamespaceNotFound", world.client.namespaceExists({ id }));
    });

    test("mode Skip ignores a missing namespace, and mode Fail does not", async () => {
      const id = [await world.namespace(), "missing"];
      await refused("NamespaceNotFound", world.client.dropNamespace({ id, mode: DropNamespaceMode.FAIL }));
      const { properties } = await world.client.dropNamespace({ id, mode: DropNamespaceMode.SKIP });
      assert.deepEqual(properties, {});
    });

    test("behavior Cascade drops everything below the namespace, and nothing beside it", async () => {
      const parent = await world.namespace();
      for (const id of [["a"], ["a", "b"], ["a-b"], ["ab"]]) {
        await world.client.createNamespace({ id: [parent, ...id] });
        await world.client.declareTable({ id: [parent, ...id, "t"] });
      }
      await world.client.dropNamespace({ id: [parent, "a"], behavior: DropNamespaceBehavior.CASCADE });
      assert.deepEqual((await world.client.listNamespaces({ id: [parent] })).namespaces.toSorted(), [
        "a-b",
        "ab",
      ]);
      await world.client.tableExists({ id: [parent, "a-b", "t"] });
      await world.client.createNamespace({ id: [parent, "a"] });
      assert.deepEqual((await world.client.listTables({ id: [parent, "a"] })).tables, []);
      await refused("NamespaceNotFound", world.client.namespaceExists({ id: [parent, "a", "b"] }));
    });
  });
}
