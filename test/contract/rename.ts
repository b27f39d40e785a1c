import assert from "node:assert/strict";
import { describe, test } from "vitest";
import { people, personStream } from "../support/arrow.ts";
import { refused } from "../support/expect.ts";
import type { World } from "./world.ts";

/** Renaming tables. */
export function renameTests(world: World): void {
  describe("renaming", () => {
    test("keeps rows, properties and history, within a namespace and across", async () => {
      const namespace = await world.namespace();
      const other = await world.namespace();
      const id = [namespace, "old"];
      await world.client.createTable({ id, properties: { a: "1" } }, personStream(people(3)));
      await world.client.createTableTag({ id, tag: "t", version: 1n });
      await world.client.renameTable({ id, newTableName: "new" });
      await refused("TableNotFound", world.client.describeTable({ id }));
      assert.equal(await world.count([namespace, "new"]), 3);

      await world.client.renameTable({
        id: [namespace, "new"],
        newTableName: "moved",
        newNamespaceId: [other],
      });
      const moved = [other, "moved"];
      assert.equal(await world.count(moved), 3);
      assert.deepEqual((await world.client.describeTable({ id: moved })).properties, { a: "1" });
      assert.equal((await world.client.getTableTagVersion({ id: moved, tag: "t" })).version, 1n);
      assert.deepEqual((await world.client.listTables({ id: [namespace] })).tables, []);
      assert.deepEqual((await world.client.listTables({ id: [other] })).tables, ["moved"]);

      await world.client.insertIntoTable({ id: moved }, personStream(people(1, 9)));
      assert.equal(await world.count(moved), 4);
      await world.client.createTable({ id }, personStream(people(1)));
      assert.equal(await world.count(id), 1);
      assert.equal(await world.count(moved), 4);
    });

    test("works for a table that is only declared", async () => {
      const id = await world.declared();
      const target = [id[0] as string, "named"];
      await world.client.renameTable({ id, newTableName: "named" });
      assert.equal(
        (await world.client.describeTable({ id: target, checkDeclared: true })).isOnlyDeclared,
        true,
      );
      await world.client.insertIntoTable({ id: target }, personStream(people(2)));
      assert.equal(await world.count(target), 2);
    });

    test("works in the root, whose tables are known by their directories too", async () => {
      const { client } = world;
      await client.createTable({ id: ["rename_a"] }, personStream(people(2)));
      await client.createTableBranch({ id: ["rename_a"], name: "b" });
      await client.renameTable({ id: ["rename_a"], newTableName: "rename_b" });
      const { tables } = await client.listTables();
      assert.ok(tables.includes("rename_b") && !tables.includes("rename_a"));
      assert.equal((await client.countTableRows({ id: ["rename_b"], branch: "b" })).count, 2n);

      // Replacing an old table by a new one usually takes these steps.
      await client.createTable({ id: ["rename_a"] }, personStream(people(5)));
      await client.renameTable({ id: ["rename_b"], newTableName: "rename_c" });
      await client.renameTable({ id: ["rename_a"], newTableName: "rename_b" });
      assert.equal(await world.count(["rename_b"]), 5);
      assert.equal(await world.count(["rename_c"]), 2);
      await client.renameTable({ id: ["rename_c"], newTableName: "rename_a" });
      assert.equal(await world.count(["rename_a"]), 2);

      const namespace = await world.namespace();
      await client.renameTable({ id: ["rename_a"], newTableName: "t", newNamespaceId: [namespace] });
      assert.equal(await world.count([namespace, "t"]), 2);
      const names = (await client.listAllTables()).tables.filter((name) => name.startsWith("rename_"));
      assert.deepEqual(names, ["rename_b"]);
      await client.dropTable({ id: ["rename_b"] });
      await client.dropTable({ id: [namespace, "t"] });
    });

    test("is refused with the code that says why", async () => {
      const id = await world.table(people(1));
      const namespace = id[0] as string;
      const { client } = world;
      await client.declareTable({ id: [namespace, "taken"] });
      await client.createNamespace({ id: [namespace, "child"] });
      await refused("InvalidInput", client.renameTable({ id, newTableName: "" }));
      for (const newTableName of [" a", "a/b", "..", "a$b"]) {
        await refused("InvalidInput", client.renameTable({ id, newTableName }));
      }
      for (const newTableName of ["taken", "child", "t"]) {
        await refused("TableAlreadyExists", client.renameTable({ id, newTableName }));
      }
      const nowhere = client.renameTable({ id, newTableName: "x", newNamespaceId: [namespace, "no"] });
      await refused("NamespaceNotFound", nowhere);
      await refused("TableNotFound", client.renameTable({ id: [namespace, "no"], newTableName: "x" }));
      await refused("TableNotFound", client.renameTable({ id: [namespace], newTableName: "x" }));
      assert.equal(await world.count(id), 1);
    });

    test("of several tables to one name has a single winner, and loses none", async () => {
      const namespace = await world.namespace();
      const names = ["a", "b", "c", "d"];
      for (const [i, name] of names.entries()) {
        await world.client.createTable({ id: [namespace, name] }, personStream(people(i + 1)));
      }
      const outcomes = await Promise.allSettled(
        names.map((name) => world.client.renameTable({ id: [namespace, name], newTableName: "one" })),
      );
      assert.equal(outcomes.filter(({ status }) => status === "fulfilled").length, 1);
      const winner = outcomes.findIndex(({ status }) => status === "fulfilled");
      assert.equal(await world.count([namespace, "one"]), winner + 1);
      assert.equal((await world.client.listTables({ id: [namespace] })).tables.length, names.length);
    });

    test("loses no rows that are inserted meanwhile", async () => {
      const namespace = await world.namespace();
      await world.client.createTable({ id: [namespace, "a"] }, personStream(people(1)));
      const inserted: Promise<unknown>[] = [];
      for (let i = 0; i < 10; i += 1) {
        inserted.push(world.client.insertIntoTable({ id: [namespace, "a"] }, personStream(people(1, i))));
        if (i === 4) inserted.push(world.client.renameTable({ id: [namespace, "a"], newTableName: "b" }));
      }
      const [rename] = (await Promise.allSettled(inserted)).splice(5, 1);
      assert.equal(rename?.status, "fulfilled");
      const outcomes = await Promise.allSettled(inserted.toSpliced(5, 1));
      const kept = outcomes.filter(({ status }) => status === "fulfilled").length;
      assert.equal(await world.count([namespace, "b"]), 1 + kept);
    });
  });
}
