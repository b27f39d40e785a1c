import assert from "node:assert/strict";
import { describe, test } from "vitest";
import { people, personStream } from "../support/arrow.ts";
import { refused } from "../support/expect.ts";
import { allPages, type World } from "./world.ts";

/** Versions of a table and their restoration. */
export function versionTests(world: World): void {
  /** Creates a table whose versions 1 to `versions` have 1, 2, … rows. */
  async function grown(versions: number): Promise<string[]> {
    const id = await world.table(people(1));
    for (let i = 1; i < versions; i += 1) {
      await world.client.insertIntoTable({ id }, personStream(people(1, i)));
    }
    return id;
  }
  const numbers = (versions: readonly { version: bigint }[]) =>
    versions.map(({ version }) => Number(version));

  describe("versions", () => {
    test("are listed in the requested order, with the storage's details of each", async () => {
      const id = await grown(3);
      const { versions, pageToken } = await world.client.listTableVersions({ id, descending: true });
      assert.deepEqual(numbers(versions), [3, 2, 1]);
      assert.ok(!pageToken);
      for (const version of versions) {
        assert.match(version.manifestPath, /^[^/].*\/_versions\/\d{20}\.manifest$/);
        assert.ok(Number(version.manifestSize) > 0);
        assert.ok(Math.abs(Date.now() - Number(version.timestampMillis)) < 600_000);
      }
      assert.deepEqual(
        numbers((await world.client.listTableVersions({ id })).versions).toSorted(),
        [1, 2, 3],
      );
      const { versions: newest } = await world.client.listTableVersions({ id, descending: true, limit: 1 });
      assert.deepEqual(numbers(newest), [3]);
    });

    test("come in pages of any size, each once, in both directions", async () => {
      const id = await grown(5);
      for (const descending of [false, true]) {
        for (let limit = 1; limit <= 6; limit += 1) {
          const list = async (pageToken: string | undefined) => {
            const page = await world.client.listTableVersions({
              id,
              descending,
              limit,
              ...(pageToken !== undefined && { pageToken }),
            });
            return { names: page.versions.map(({ version }) => String(version)), pageToken: page.pageToken };
          };
          const names = await allPages(list, limit, 5);
          const wanted = ["1", "2", "3", "4", "5"];
          assert.deepEqual(names, descending ? wanted.toReversed() : wanted);
        }
      }
      await refused("InvalidInput", world.client.listTableVersions({ id, pageToken: "no such token" }));
      const { pageToken = "" } = await world.client.listTableVersions({ id, limit: 2 });
      await refused("InvalidInput", world.client.listTableVersions({ id, pageToken, descending: true }));
    });

    test("of a table that is only declared are none", async () => {
      const id = await world.declared();
      assert.deepEqual((await world.client.listTableVersions({ id })).versions, []);
      await refused("TableVersionNotFound", world.client.describeTableVersion({ id }));
    });

    test("are described by number or as the newest, on a branch too", async () => {
      const id = await grown(2);
      await world.client.createTableBranch({ id, name: "b" });
      await world.client.insertIntoTable({ id, branch: "b" }, personStream(people(1, 10)));
      assert.equal((await world.client.describeTableVersion({ id })).version?.version, 2n);
      assert.equal((await world.client.describeTableVersion({ id, version: 1n })).version?.version, 1n);
      const onBranch = await world.client.describeTableVersion({ id, branch: "b" });
      assert.equal(onBranch.version?.version, 3n);
      const listed = await world.client.listTableVersions({ id, branch: "b", descending: true });
      assert.deepEqual(numbers(listed.versions), [3, 2]);
      await refused("TableVersionNotFound", world.client.describeTableVersion({ id, version: 3n }));
      await refused("TableBranchNotFound", world.client.describeTableVersion({ id, branch: "no" }));
      await refused("TableBranchNotFound", world.client.listTableVersions({ id, branch: "no" }));
      await refused("InvalidInput", world.client.listTableVersions({ id, branch: "../x" }));
    });

    test("are restored as a new version", async () => {
      const id = await grown(3);
      const { transactionId } = await world.client.restoreTable({ id, version: 1n });
      assert.equal(await world.count(id), 1);
      assert.equal((await world.client.describeTableVersion({ id })).version?.version, 4n);
      const transaction = await world.client.describeTransaction({ id: [...id, transactionId as string] });
      assert.equal(transaction.properties["operation"], "Restore");
      await refused("TableVersionNotFound", world.client.restoreTable({ id, version: 9n }));
      await refused("InvalidInput", world.client.restoreTable({ id, version: -1n }));
      await refused(
        "TableNotFound",
        world.client.restoreTable({ id: [...id.slice(0, 1), "no"], version: 1n }),
      );
      assert.equal(await world.count(id), 1);
    });

    test("are restored on a branch, which leaves the main branch alone", async () => {
      const id = await grown(2);
      await world.client.createTableBranch({ id, name: "b" });
      await world.client.insertIntoTable({ id, branch: "b" }, personStream(people(5, 10)));
      await world.client.restoreTable({ id, branch: "b", version: 2n });
      const { count } = await world.client.countTableRows({ id, branch: "b" });
      assert.equal(count, 2n);
      assert.equal((await world.client.describeTableVersion({ id })).version?.version, 2n);
      await refused("TableBranchNotFound", world.client.restoreTable({ id, branch: "no", version: 1n }));
    });
  });

  describe("transactions", () => {
    test("are described by version and by id", async () => {
      const id = await grown(2);
      const byVersion = await world.client.describeTransaction({ id: [...id, "2"] });
      const { uuid = "", ...rest } = byVersion.properties;
      assert.deepEqual([rest["version"], rest["read_version"], rest["operation"]], ["2", "1", "Append"]);
      const byId = await world.client.describeTransaction({ id: [...id, uuid] });
      assert.deepEqual(byId.properties, byVersion.properties);
      assert.equal(byId.status, byVersion.status);
      await refused("TransactionNotFound", world.client.describeTransaction({ id: [...id, "9"] }));
      await refused("TransactionNotFound", world.client.describeTransaction({ id: [...id, "no-such"] }));
      await refused("TableNotFound", world.client.describeTransaction({ id: [id[0] as string, "no", "1"] }));
    });
  });
}
