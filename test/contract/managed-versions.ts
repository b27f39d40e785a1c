import assert from "node:assert/strict";
import { describe, test } from "vitest";
import { type Person, people, personStream } from "../support/arrow.ts";
import { refused } from "../support/expect.ts";
import type { World } from "./world.ts";

/** A staged manifest that is not a version yet. */
interface Staged {
  readonly version: bigint;
  readonly manifestPath: string;
  readonly manifestSize: bigint;
}

/** Commits through the catalog. The tests stage manifests in the storage, as clients do. */
export function managedVersionTests(world: World): void {
  /** Writes rows as a client with managed versions would: everything except the version itself. */
  async function stage(id: string[], rows: readonly Person[], branch?: string): Promise<Staged> {
    const { client } = world;
    const on = branch === undefined ? { id } : { id, branch };
    await client.insertIntoTable(on, personStream(rows));
    const { version } = await client.describeTableVersion(on);
    assert.ok(version);
    const bytes = await world.store.get(version.manifestPath);
    assert.ok(bytes);
    const ranges = [{ startVersion: version.version, endVersion: version.version + 1n }];
    await client.batchDeleteTableVersions({ ...on, ranges });
    const manifestPath = `${version.manifestPath}-${rows[0]?.id}`;
    await world.store.put(manifestPath, bytes);
    return { version: version.version, manifestPath, manifestSize: BigInt(bytes.byteLength) };
  }
  const exists = async (key: string) => (await world.store.head(key)) !== undefined;
  const newest = async (id: string[]) =>
    Number((await world.client.describeTableVersion({ id })).version?.version);

  describe("managed versions", () => {
    test("are created from a staged manifest, once", async () => {
      const id = await world.table(people(2));
      const first = await stage(id, people(3, 10));
      const second = await stage(id, people(5, 20));
      const eTag = (await world.store.head(first.manifestPath))?.eTag ?? "";
      const { version } = await world.client.createTableVersion({ id, ...first, eTag });
      assert.deepEqual([version?.version, version?.manifestSize], [2n, first.manifestSize]);
      assert.equal(await world.count(id), 5);
      assert.equal(await exists(first.manifestPath), false);
      await refused("ConcurrentModification", world.client.createTableVersion({ id, ...second }));
      assert.equal(await exists(second.manifestPath), true);
      assert.equal(await world.count(id), 5);
    });

    test("of one number have a single winner among several writers", async () => {
      const id = await world.table(people(1));
      const staged: Staged[] = [];
      for (const first of [10, 20, 30, 40]) staged.push(await stage(id, people(1, first)));
      const outcomes = await Promise.allSettled(
        staged.map((entry) => world.client.createTableVersion({ id, ...entry })),
      );
      assert.equal(outcomes.filter(({ status }) => status === "fulfilled").length, 1);
      assert.equal(await world.count(id), 2);
    });

    test("are refused with the code that says why", async () => {
      const id = await world.table(people(1));
      const { client } = world;
      const staged = await stage(id, people(1, 10));
      await refused("ConcurrentModification", client.createTableVersion({ id, ...staged, version: 4n }));
      const wrong: (Partial<Staged> & { readonly eTag?: string })[] = [
        { version: 0n },
        { manifestPath: "" },
        { manifestPath: `${staged.manifestPath}x` },
        { manifestPath: "etc/passwd" },
        { manifestPath: staged.manifestPath.replace("_versions/", "_versions/../_versions/") },
        { manifestSize: 1n },
        ...(world.store.hasEntityTags ? [{ eTag: "other" }] : []),
      ];
      for (const part of wrong) {
        await refused("InvalidInput", client.createTableVersion({ id, ...staged, ...part }));
      }
      await refused("TableNotFound", client.createTableVersion({ id: [id[0] as string, "no"], ...staged }));
      await refused(
        "TableBranchNotFound",
        client.batchDeleteTableVersions({ id, branch: "no", ranges: [{ startVersion: 0n, endVersion: 1n }] }),
      );
      assert.equal(await newest(id), 1);
    });

    test("are deleted by ranges", async () => {
      const id = await world.table(people(1));
      const { client } = world;
      for (let i = 1; i < 5; i += 1) await client.insertIntoTable({ id }, personStream(people(1, i)));
      const ranges = [
        { startVersion: 0n, endVersion: 2n },
        { startVersion: 3n, endVersion: 4n },
      ];
      assert.equal((await client.batchDeleteTableVersions({ id, ranges })).deletedCount, 2n);
      const { versions } = await client.listTableVersions({ id, descending: true });
      assert.deepEqual(
        versions.map(({ version }) => Number(version)),
        [5, 4, 2],
      );
      assert.equal(await world.count(id), 5);
      await refused("TableVersionNotFound", client.countTableRows({ id, version: 1n }));
      await refused("InvalidInput", client.batchDeleteTableVersions({ id, ranges: [] }));
      for (const [startVersion, endVersion] of [
        [-1n, 2n],
        [0n, -2n],
      ] as const) {
        await refused(
          "InvalidInput",
          client.batchDeleteTableVersions({ id, ranges: [{ startVersion, endVersion }] }),
        );
      }
    });

    test("of several tables are created together or not at all", async () => {
      const [a, b] = [await world.table(people(1)), await world.table(people(2))];
      const { client } = world;
      const [ofA, ofB] = [await stage(a, people(1, 10)), await stage(b, people(1, 10))];
      const wrong = client.batchCreateTableVersions({
        entries: [
          { id: a, ...ofA },
          { id: b, ...ofB, version: 9n },
        ],
      });
      await refused("ConcurrentModification", wrong);
      assert.deepEqual([await newest(a), await newest(b)], [1, 1]);
      const { versions } = await client.batchCreateTableVersions({
        entries: [
          { id: a, ...ofA },
          { id: b, ...ofB },
        ],
      });
      assert.deepEqual(
        versions.map(({ version }) => version),
        [2n, 2n],
      );
      assert.deepEqual([await world.count(a), await world.count(b)], [2, 3]);
      assert.equal(await exists(ofA.manifestPath), false);
      await refused("InvalidInput", client.batchCreateTableVersions({ entries: [] }));
    });

    test("of overlapping batches are committed completely or not at all", async () => {
      const [a, b] = [await world.table(people(1)), await world.table(people(1))];
      const batches = [];
      for (const first of [10, 20, 30]) {
        const entries = [
          { id: a, ...(await stage(a, people(first, first))) },
          { id: b, ...(await stage(b, people(first, first))) },
        ];
        batches.push(first === 20 ? entries.reverse() : entries);
      }
      const outcomes = await Promise.allSettled(
        batches.map((entries) => world.client.batchCreateTableVersions({ entries })),
      );
      assert.equal(outcomes.filter(({ status }) => status === "fulfilled").length, 1);
      assert.equal(await world.count(a), await world.count(b));
    });
  });

  describe("commits of several tables", () => {
    test("declare, commit, delete and deregister together, with an answer for each", async () => {
      const { client } = world;
      const namespace = await world.namespace();
      const [a, b] = [await world.table(people(1)), await world.table(people(1))];
      const staged = await stage(a, people(4, 10));
      const { results } = await client.batchCommitTables({
        operations: [
          { operation: { case: "declareTable", value: { id: [namespace, "new"], properties: { p: "1" } } } },
          { operation: { case: "createTableVersion", value: { id: a, ...staged } } },
          { operation: { case: "deregisterTable", value: { id: b } } },
          {
            operation: {
              case: "deleteTableVersions",
              value: { id: a, ranges: [{ startVersion: 0n, endVersion: 2n }] },
            },
          },
        ],
      });
      assert.deepEqual(
        results.map(({ result }) => result.case),
        ["declareTable", "createTableVersion", "deregisterTable", "deleteTableVersions"],
      );
      const [declared, created, deregistered, deleted] = results.map(({ result }) => result.value);
      assert.deepEqual((declared as { properties: object }).properties, { p: "1" });
      assert.equal((created as { version: { version: bigint } }).version.version, 2n);
      assert.deepEqual((deregistered as { id: string[] }).id, b);
      assert.equal((deleted as { deletedCount: bigint }).deletedCount, 1n);
      await client.insertIntoTable({ id: [namespace, "new"] }, personStream(people(1)));
      assert.equal(await world.count(a), 5);
      await refused("TableNotFound", client.tableExists({ id: b }));
      const { versions } = await client.listTableVersions({ id: a });
      assert.deepEqual(
        versions.map(({ version }) => version),
        [2n],
      );
    });

    test("leave nothing when one of them fails", async () => {
      const { client } = world;
      const namespace = await world.namespace();
      const [a, b] = [await world.table(people(1)), await world.table(people(1))];
      const staged = await stage(a, people(4, 10));
      const declare = { case: "declareTable", value: { id: [namespace, "new"] } } as const;
      const commit = { case: "createTableVersion", value: { id: a, ...staged } } as const;
      const deregister = { case: "deregisterTable", value: { id: b } } as const;
      const attempt = (...operations: object[]) =>
        client.batchCommitTables({ operations: operations.map((operation) => ({ operation })) as never });
      await refused("TableAlreadyExists", attempt(declare, commit, deregister, declare));
      await refused("TableNotFound", attempt(declare, deregister, deregister));
      await refused(
        "NamespaceNotFound",
        attempt(commit, { case: "declareTable", value: { id: ["no", "t"] } }),
      );
      await refused("InvalidInput", attempt(commit, { case: "declareTable", value: { id: [] } }));
      await refused("InvalidInput", attempt());
      await refused("InvalidInput", client.batchCommitTables({ operations: [{}] }));
      await refused("TableNotFound", client.tableExists({ id: [namespace, "new"] }));
      await client.tableExists({ id: b });
      assert.deepEqual([await newest(a), await exists(staged.manifestPath)], [1, true]);
      await attempt(declare, commit, deregister);
      assert.equal(await newest(a), 2);
    });
  });
}
