import assert from "node:assert/strict";
import { describe, test } from "vitest";
import { people, personStream } from "../support/arrow.ts";
import { refused } from "../support/expect.ts";
import type { World } from "./world.ts";

/** The answer of DescribeTable for each of its flags. */
export function describeTableTests(world: World): void {
  describe("description of a table", () => {
    test("without flags it has names and location, and no URI", async () => {
      const id = await world.table();
      const answer = await world.client.describeTable({ id });
      assert.equal(answer.table, "t");
      assert.deepEqual(answer.namespace, id.slice(0, -1));
      assert.ok(answer.location);
      assert.equal(answer.tableUri, undefined);
      assert.equal(answer.managedVersioning ?? false, world.capabilities.managesVersions);
    });

    test("load_detailed_metadata fills version, schema, stats and metadata", async () => {
      const id = await world.table();
      const answer = await world.client.describeTable({ id, loadDetailedMetadata: true });
      assert.equal(answer.version, 1n);
      assert.deepEqual(
        answer.schema?.fields.map(({ name, nullable, type }) => [name, nullable, type?.type]),
        [
          ["id", false, "int32"],
          ["name", true, "utf8"],
          ["vector", true, "fixed_size_list"],
        ],
      );
      const vector = answer.schema?.fields[2]?.type;
      assert.equal(vector?.length, 2n);
      assert.deepEqual(
        vector?.fields.map(({ name, type }) => [name, type?.type]),
        [["item", "float32"]],
      );
      assert.equal(answer.stats?.numFragments, 1n);
      assert.equal(answer.stats?.numDeletedRows, 0n);
    });

    test("load_detailed_metadata=false still has the location", async () => {
      const id = await world.table();
      const { location } = await world.client.describeTable({ id, loadDetailedMetadata: false });
      assert.equal(location, (await world.client.describeTable({ id })).location);
    });

    test("with_table_uri adds a complete URI", async () => {
      const id = await world.table();
      const { tableUri = "" } = await world.client.describeTable({ id, withTableUri: true });
      assert.match(new URL(tableUri).protocol, /^[a-z][a-z0-9+.-]*:$/);
      assert.equal((await world.client.describeTable({ id, withTableUri: false })).tableUri, undefined);
    });

    test("check_declared distinguishes a declaration from a table with data", async () => {
      const declared = await world.client.describeTable({ id: await world.declared(), checkDeclared: true });
      assert.equal(declared.isOnlyDeclared, true);
      const table = await world.client.describeTable({ id: await world.table(), checkDeclared: true });
      assert.equal(table.isOnlyDeclared, false);
    });

    test("a declared table is described without flags and with details, without a version or a schema", async () => {
      const id = await world.declared();
      for (const flags of [{}, { loadDetailedMetadata: true }, { loadDetailedMetadata: false }]) {
        const answer = await world.client.describeTable({ id, ...flags });
        assert.ok(answer.location);
        assert.equal(answer.version, undefined);
        assert.equal(answer.schema, undefined);
      }
    });

    test("an older version can be described, and a missing version is TableVersionNotFound", async () => {
      const id = await world.table();
      const { version: newest } = await world.client.insertIntoTable({ id }, personStream(people(1, 5)));
      const details = { loadDetailedMetadata: true };
      assert.equal((await world.client.describeTable({ id, ...details })).version, newest);
      assert.equal((await world.client.describeTable({ id, version: 1n })).version, 1n);
      await refused("TableVersionNotFound", world.client.describeTable({ id, version: 99n }));
      await refused("TableVersionNotFound", world.client.describeTable({ id, version: 99n, ...details }));
    });

    test("a tag excludes version and branch, and must exist", async () => {
      const id = await world.table();
      await refused("InvalidInput", world.client.describeTable({ id, tag: "x", version: 1n }));
      await refused("InvalidInput", world.client.describeTable({ id, tag: "x", branch: "main" }));
      await refused("TableTagNotFound", world.client.describeTable({ id, tag: "missing" }));
    });

    test("the branch main is the default, and any other branch must exist", async () => {
      const id = await world.table();
      const main = await world.client.describeTable({ id, branch: "main", loadDetailedMetadata: true });
      assert.equal(main.version, 1n);
      const missing = world.client.describeTable({ id, branch: "missing" });
      await refused(["TableBranchNotFound", "Unsupported"], missing);
    });
  });
}
