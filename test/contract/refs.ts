import assert from "node:assert/strict";
import { describe, test } from "vitest";
import { people, personStream } from "../support/arrow.ts";
import { refused } from "../support/expect.ts";
import { checkForeignToken, checkPaging, type World } from "./world.ts";

/** Tags and branches. */
export function refTests(world: World): void {
  async function branched(): Promise<string[]> {
    const id = await world.table(people(2));
    await world.client.createTableBranch({ id, name: "b" });
    await world.client.insertIntoTable({ id, branch: "b" }, personStream(people(3, 10)));
    return id;
  }

  describe("tags", () => {
    test("are created, read, moved and deleted, on branches too", async () => {
      const id = await branched();
      await world.client.createTableTag({ id, tag: "first", version: 1n });
      await world.client.createTableTag({ id, tag: "on-branch", version: 2n, branch: "b" });
      const { tags } = await world.client.listTableTags({ id });
      assert.deepEqual(Object.keys(tags).sort(), ["first", "on-branch"]);
      assert.deepEqual([tags["first"]?.version, tags["first"]?.branch], [1n, undefined]);
      assert.deepEqual([tags["on-branch"]?.version, tags["on-branch"]?.branch], [2n, "b"]);
      assert.ok(Number(tags["first"]?.manifestSize) > 0);

      const found = await world.client.getTableTagVersion({ id, tag: "on-branch" });
      assert.deepEqual([found.version, found.branch], [2n, "b"]);
      const described = await world.client.describeTable({ id, tag: "on-branch" });
      assert.equal(described.version, 2n);

      await world.client.updateTableTag({ id, tag: "on-branch", version: 1n });
      const moved = await world.client.getTableTagVersion({ id, tag: "on-branch" });
      assert.deepEqual([moved.version, moved.branch], [1n, undefined]);
      await world.client.deleteTableTag({ id, tag: "on-branch" });
      await refused("TableTagNotFound", world.client.getTableTagVersion({ id, tag: "on-branch" }));
    });

    test("are refused with the code that says why", async () => {
      const id = await branched();
      const { client } = world;
      await client.createTableTag({ id, tag: "a", version: 1n });
      await refused("TableTagAlreadyExists", client.createTableTag({ id, tag: "a", version: 1n }));
      await refused("TableVersionNotFound", client.createTableTag({ id, tag: "c", version: 9n }));
      await refused("TableVersionNotFound", client.updateTableTag({ id, tag: "a", version: 9n }));
      await refused(
        "TableBranchNotFound",
        client.createTableTag({ id, tag: "c", version: 1n, branch: "no" }),
      );
      await refused("TableTagNotFound", client.updateTableTag({ id, tag: "no", version: 1n }));
      await refused("TableTagNotFound", client.deleteTableTag({ id, tag: "no" }));
      await refused("TableTagNotFound", client.getTableTagVersion({ id, tag: "no" }));
      for (const tag of ["", "a b", "..", "a/b", "x.lock"]) {
        await refused("InvalidInput", client.createTableTag({ id, tag, version: 1n }));
      }
      await refused("InvalidInput", client.createTableTag({ id, tag: "c", version: 0n }));
      await refused("TableNotFound", client.listTableTags({ id: [id[0] as string, "no"] }));
    });

    test("come in pages", async () => {
      const id = await world.table(people(1));
      const names = ["t1", "t2", "t3", "t4"];
      for (const tag of names) await world.client.createTableTag({ id, tag, version: 1n });
      const list = async (options: { limit: number; pageToken?: string }) => {
        const { tags, pageToken } = await world.client.listTableTags({ id, ...options });
        return { names: Object.keys(tags), pageToken };
      };
      await checkPaging(names, list);
      await checkForeignToken(names.length, list);
    });

    test("of one name are created once, however many callers try", async () => {
      const id = await world.table(people(1));
      const tries = Array.from({ length: 8 }, () =>
        world.client.createTableTag({ id, tag: "one", version: 1n }),
      );
      const outcomes = await Promise.allSettled(tries);
      assert.equal(outcomes.filter(({ status }) => status === "fulfilled").length, 1);
    });
  });

  describe("branches", () => {
    test("begin at a version of main or of another branch", async () => {
      const id = await branched();
      const { client } = world;
      await client.insertIntoTable({ id }, personStream(people(1, 5)));
      await client.createTableBranch({ id, name: "old", fromVersion: 1n });
      await client.createTableBranch({ id, name: "deep/er", fromBranch: "b" });
      const { branches } = await client.listTableBranches({ id });
      assert.deepEqual(Object.keys(branches).sort(), ["b", "deep/er", "old"]);
      assert.deepEqual([branches["b"]?.parentBranch, branches["b"]?.parentVersion], [undefined, 1n]);
      assert.deepEqual([branches["deep/er"]?.parentBranch, branches["deep/er"]?.parentVersion], ["b", 2n]);
      assert.ok(Math.abs(Date.now() / 1000 - Number(branches["b"]?.createAt)) < 600);
      const counts = ["b", "old", "deep/er", "main"].map(async (branch) =>
        Number((await client.countTableRows({ id, branch })).count),
      );
      assert.deepEqual(await Promise.all(counts), [5, 2, 5, 3]);
    });

    test("are refused with the code that says why", async () => {
      const id = await branched();
      const { client } = world;
      await refused("TableBranchAlreadyExists", client.createTableBranch({ id, name: "b" }));
      await refused("TableBranchNotFound", client.createTableBranch({ id, name: "c", fromBranch: "no" }));
      await refused("TableVersionNotFound", client.createTableBranch({ id, name: "c", fromVersion: 9n }));
      for (const name of ["", "main", "a..b", "../x", "/x", "a b"]) {
        await refused("InvalidInput", client.createTableBranch({ id, name }));
      }
      await refused("InvalidInput", client.createTableBranch({ id, name: "c", fromVersion: 0n }));
      await refused("TableBranchNotFound", client.deleteTableBranch({ id, name: "no" }));
      await refused("InvalidInput", client.deleteTableBranch({ id, name: "main" }));
      await refused("TableNotFound", client.createTableBranch({ id: [id[0] as string, "no"], name: "c" }));
      // A refused creation leaves nothing that blocks a later one.
      await client.createTableBranch({ id, name: "c" });
    });

    test("are deleted, unless other branches begin on them", async () => {
      const id = await branched();
      await world.client.createTableBranch({ id, name: "child", fromBranch: "b" });
      await refused("InvalidInput", world.client.deleteTableBranch({ id, name: "b" }));
      await world.client.deleteTableBranch({ id, name: "child" });
      await world.client.deleteTableBranch({ id, name: "b" });
      assert.deepEqual(Object.keys((await world.client.listTableBranches({ id })).branches), []);
      await refused("TableBranchNotFound", world.client.countTableRows({ id, branch: "b" }));
    });

    test("come in pages", async () => {
      const id = await world.table(people(1));
      const names = ["b1", "b2", "b3"];
      for (const name of names) await world.client.createTableBranch({ id, name });
      const list = async (options: { limit: number; pageToken?: string }) => {
        const { branches, pageToken } = await world.client.listTableBranches({ id, ...options });
        return { names: Object.keys(branches), pageToken };
      };
      await checkPaging(names, list);
      await checkForeignToken(names.length, list);
    });
  });
}
