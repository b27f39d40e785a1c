import assert from "node:assert/strict";
import { basename } from "node:path";
import { describe, test } from "vitest";
import { RegisterTableMode } from "../../src/gen/lance/namespace/v1/table_pb.ts";
import { people, personStream } from "../support/arrow.ts";
import { refused } from "../support/expect.ts";
import type { World } from "./world.ts";

/** Locations that lead out of a catalog, or to the catalog itself. */
export const ESCAPES: readonly string[] = [
  "",
  ".",
  "..",
  "/",
  "./",
  "../x.lance",
  "a/../../x.lance",
  "x.lance/../..",
  "/etc",
  "/tmp/x.lance",
  "//tmp/x.lance",
  "file:///tmp/x.lance",
  "file:/tmp/x.lance",
  "s3://bucket/x.lance",
  "memory://x.lance",
  "..\\x.lance",
  "C:\\x.lance",
  "__manifest",
  "__manifest/",
  "__manifest/_versions",
  "./__manifest",
  "x\u0000.lance",
];

/** Registering and deregistering tables. */
export function registrationTests(world: World): void {
  /** Creates a table, deregisters it and returns the location of its data. */
  async function orphan(rows: number): Promise<string> {
    const id = await world.table(people(rows));
    const { location = "", id: removed } = await world.client.deregisterTable({ id });
    assert.deepEqual(removed, id);
    await refused("TableNotFound", world.client.describeTable({ id }));
    await refused("TableNotFound", world.client.deregisterTable({ id }));
    return basename(location);
  }

  describe("registration", () => {
    test("deregistered data can be registered again, under any name", async () => {
      const location = await orphan(3);
      const id = [await world.namespace(), "again"];
      const answer = await world.client.registerTable({ id, location, properties: { a: "1" } });
      assert.ok(answer.location?.includes(location));
      assert.deepEqual(answer.properties, { a: "1" });
      assert.equal(await world.count(id), 3);
      const described = await world.client.describeTable({ id, checkDeclared: true });
      assert.deepEqual(described.properties, { a: "1" });
      assert.equal(described.isOnlyDeclared, false);
    });

    test("mode Create, which is the default, refuses a name that is in use", async () => {
      const location = await orphan(3);
      const table = await world.table(people(2));
      for (const id of [table, await world.declared(), [await world.namespace()]]) {
        for (const mode of [undefined, RegisterTableMode.CREATE]) {
          const again = world.client.registerTable({ id, location, ...(mode && { mode }) });
          await refused("TableAlreadyExists", again);
        }
      }
      assert.equal(await world.count(table), 2);
    });

    test("mode Overwrite replaces the old location by the new one", async () => {
      const location = await orphan(3);
      const id = await world.table(people(2));
      const mode = RegisterTableMode.OVERWRITE;
      await world.client.registerTable({ id, location, mode, properties: { b: "2" } });
      assert.equal(await world.count(id), 3);
      assert.deepEqual((await world.client.describeTable({ id })).properties, { b: "2" });
    });

    test("mode Overwrite registers a free name, and leaves namespaces unchanged", async () => {
      const location = await orphan(3);
      const namespace = await world.namespace();
      const mode = RegisterTableMode.OVERWRITE;
      await world.client.registerTable({ id: [namespace, "t"], location, mode });
      assert.equal(await world.count([namespace, "t"]), 3);
      await refused("TableAlreadyExists", world.client.registerTable({ id: [namespace], location, mode }));
      await world.client.namespaceExists({ id: [namespace] });
    });

    test("registering over a table keeps the data of the old location", async () => {
      const id = await world.table(people(2));
      const old = basename((await world.client.describeTable({ id })).location ?? "");
      const mode = RegisterTableMode.OVERWRITE;
      await world.client.registerTable({ id, location: await orphan(3), mode });
      await world.client.registerTable({ id: [id[0] as string, "old"], location: old });
      assert.equal(await world.count([id[0] as string, "old"]), 2);
    });

    test("a location outside the catalog is refused, and so is the catalog's own", async (t) => {
      if (!world.capabilities.confinesLocations) return t.skip("the upstream decides");
      const namespace = await world.namespace();
      for (const location of ESCAPES) {
        for (const mode of [RegisterTableMode.CREATE, RegisterTableMode.OVERWRITE]) {
          const id = [namespace, "escape"];
          await refused("InvalidInput", world.client.registerTable({ id, location, mode })).catch(
            (error: Error) => assert.fail(`${JSON.stringify(location)}: ${error.message}`),
          );
        }
        // An empty location of a declaration counts as absent.
        if (location === "") continue;
        await refused("InvalidInput", world.client.declareTable({ id: [namespace, "escape"], location }));
      }
      await refused("TableNotFound", world.client.tableExists({ id: [namespace, "escape"] }));
    });

    test("a refused location says which rule it breaks", async (t) => {
      if (!world.capabilities.confinesLocations) return t.skip("the upstream decides");
      const namespace = await world.namespace();
      const rules: readonly (readonly [rule: string, ...locations: string[]])[] = [
        ["Absolute URIs are not allowed", "s3://bucket/x.lance", "file:///tmp/x.lance", "file:/tmp/x.lance"],
        ["Absolute paths are not allowed", "/tmp/x.lance", "//tmp/x", "C:\\x.lance", "%2Ftmp"],
        ["Path traversal is not allowed", "../x.lance", "a/../../x", "..", "%2e%2e/x", "a\\..\\b", "x%2F.."],
        ["The manifest of the catalog is not allowed", "__manifest", "__manifest/_versions", "./__manifest"],
        ["Names that begin with a dot are not allowed", ".hidden", "a/.hidden", "."],
        ["Empty names are not allowed", "", "a//b", "a/"],
        ["Names that a table must not have are not allowed", "x\u0000.lance"],
      ];
      for (const [rule, ...locations] of rules) {
        for (const location of locations) {
          const id = [namespace, "escape"];
          const { message } = await refused("InvalidInput", world.client.registerTable({ id, location }));
          assert.ok(message.startsWith(`${rule}`), `${JSON.stringify(location)}: ${message}`);
          assert.match(message, /Location must be a relative path within the root directory/);
        }
      }
    });

    test("a deregistered table of the root disappears from every listing, and its name can be used again", async () => {
      const id = ["a-deregistered-table"];
      await world.client.createTable({ id }, personStream(people(2)));
      await world.client.deregisterTable({ id });
      await refused("TableNotFound", world.client.describeTable({ id }));
      await refused("TableNotFound", world.client.tableExists({ id }));
      await refused("TableNotFound", world.client.countTableRows({ id }));
      assert.ok(!(await world.client.listTables()).tables.includes("a-deregistered-table"));
      assert.ok(!(await world.client.listAllTables()).tables.includes("a-deregistered-table"));
      await world.client.createTable({ id }, personStream(people(4)));
      assert.equal(await world.count(id), 4);
      await world.client.dropTable({ id });
    });

    test("a table can be written under the name from which its data was deregistered", async () => {
      const id = await world.table(people(2));
      const location = basename((await world.client.deregisterTable({ id })).location ?? "");
      await world.client.createTable({ id }, personStream(people(4)));
      assert.equal(await world.count(id), 4);
      await world.client.registerTable({ id: [id[0] as string, "old"], location });
      assert.equal(await world.count([id[0] as string, "old"]), 2);
    });
  });
}
