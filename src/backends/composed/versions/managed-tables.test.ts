import assert from "node:assert/strict";
import { describe, test } from "vitest";
import { people, personStream } from "../../../../test/support/arrow.ts";
import { openManaged } from "../../../../test/support/catalogs/managed-catalog.ts";
import type { LanceClient } from "../../../../test/support/client.ts";
import { refused } from "../../../../test/support/expect.ts";
import { CreateTableMode, InsertMode } from "../../../gen/lance/namespace/v1/data_pb.ts";
import { LanceError } from "../../../namespace/errors.ts";

const ID = ["t"];
const count = async (client: LanceClient) => Number((await client.countTableRows({ id: ID })).count);
const newest = async (client: LanceClient) =>
  Number((await client.describeTableVersion({ id: ID })).version?.version);

describe("rows of a table whose versions the upstream commits", () => {
  test("are read and changed, and each version is the upstream's", async (t) => {
    const { client, uncommitted, committed, staged } = await openManaged(t);
    await client.createTable({ id: ID }, personStream(people(5)));
    await client.insertIntoTable({ id: ID }, personStream(people(2, 5)));
    await client.mergeInsertIntoTable(
      { id: ID, on: ["id"], whenMatchedUpdateAll: true, whenNotMatchedInsertAll: true },
      personStream(people(3, 6)),
    );
    await client.updateTable({ id: ID, updates: [{ column: "name", expression: "'x'" }] });
    await client.deleteFromTable({ id: ID, predicate: "id = 0" });
    assert.equal(await count(client), 8);
    await client.alterTableAddColumns({ id: ID, newColumns: [{ name: "twice", expression: "id * 2" }] });
    await client.alterTableAlterColumns({ id: ID, alterations: [{ path: "twice", rename: "double" }] });
    await client.alterTableDropColumns({ id: ID, columns: ["double"] });
    await client.updateTableSchemaMetadata({ id: ID, metadata: { a: "1" } });
    await client.createTableScalarIndex({ id: ID, column: "id", indexType: "BTREE" });
    await client.createTableTag({ id: ID, tag: "one", version: 1n });
    await client.createTableBranch({ id: ID, name: "dev" });
    await client.insertIntoTable({ id: ID, branch: "dev" }, personStream(people(1, 100)));
    await client.restoreTable({ id: ID, version: 2n });
    await client.insertIntoTable({ id: ID, mode: InsertMode.OVERWRITE }, personStream(people(4)));
    await client.createTable({ id: ID, mode: CreateTableMode.OVERWRITE }, personStream(people(3)));
    assert.equal(await count(client), 3);
    assert.equal((await client.countTableRows({ id: ID, branch: "dev" })).count, 9n);
    assert.deepEqual(await uncommitted(), []);
    assert.deepEqual(await staged(), []);
    assert.ok(committed.size >= (await newest(client)));
  });

  test("are as of the version that the upstream names, whatever else is in the directory", async (t) => {
    const { client, root, store, committed } = await openManaged(t);
    await client.createTable({ id: ID }, personStream(people(5)));
    await client.insertIntoTable({ id: ID }, personStream(people(2, 5)));
    const past = [...committed].at(-1) as string;
    committed.delete(past);
    assert.equal(await count(client), 5);
    assert.equal(await newest(client), 1);
    committed.add(past);
    assert.equal(await count(client), 7);
    assert.ok(await store.head(`/${past}`.slice(root.length + 1)));
  });

  test("are compacted by versions of the upstream, which keeps all of them", async (t) => {
    const { backend, client, upstream, uncommitted } = await openManaged(t);
    await client.createTable({ id: ID }, personStream(people(1)));
    for (let at = 1; at < 6; at++) await client.insertIntoTable({ id: ID }, personStream(people(1, at)));
    await backend.optimize(ID, { waitMs: 10_000 });
    const stats = await client.getTableStats({ id: ID });
    assert.deepEqual([stats.numRows, stats.fragmentStats?.numFragments], [6n, 1n]);
    assert.deepEqual(await uncommitted(), []);
    assert.equal((await client.countTableRows({ id: ID, version: 1n })).count, 1n);
    const { versions } = await client.listTableVersions({ id: ID });
    const { versions: committed } = await upstream.listTableVersions({ id: ID });
    assert.deepEqual(
      versions.map(({ version }) => version),
      committed.map(({ version }) => version),
    );
  });

  test("are changed by several gateways, of which none loses or doubles a row", async (t) => {
    const { client, another, uncommitted } = await openManaged(t);
    await client.createTable({ id: ID }, personStream(people(1)));
    const clients = [client, another(), another()];
    const rounds = 5;
    await Promise.all(
      clients.map(async (each, at) => {
        for (let round = 0; round < rounds; round++)
          await each.insertIntoTable({ id: ID }, personStream(people(1, 1 + at * rounds + round)));
      }),
    );
    for (const each of clients) assert.equal(await count(each), 1 + clients.length * rounds);
    const distinct = await client.countTableRows({ id: ID, predicate: "id >= 0 AND id <= 15" });
    assert.equal(distinct.count, 16n);
    assert.deepEqual(await uncommitted(), []);
  });

  test("are not changed by a caller whose rights at the upstream do not allow it", async (t) => {
    const { as, client, staged, upstream } = await openManaged(t, (operations) => ({
      async createTableVersion(request, call) {
        if (call.headers["authorization"] === "Bearer reader")
          throw new LanceError("PermissionDenied", "readers do not commit");
        return operations.createTableVersion(request, call);
      },
    }));
    const create = as("reader").createTable({ id: ID }, personStream(people(1)));
    assert.match((await refused("PermissionDenied", create)).message, /does not commit version 1 .*readers/);
    await refused("TableNotFound", upstream.describeTable({ id: ID }));
    await client.createTable({ id: ["u"] }, personStream(people(3)));
    const id = ["u"];
    const changes: readonly ((client: LanceClient) => Promise<unknown>)[] = [
      (reader) => reader.insertIntoTable({ id }, personStream(people(1, 5))),
      (reader) => reader.deleteFromTable({ id, predicate: "id = 0" }),
      (reader) => reader.alterTableDropColumns({ id, columns: ["name"] }),
      (reader) => reader.updateTableSchemaMetadata({ id, metadata: { a: "1" } }),
      (reader) => reader.createTableScalarIndex({ id, column: "id", indexType: "BTREE" }),
      (reader) => reader.createTableBranch({ id, name: "dev" }),
      (reader) => reader.createTable({ id, mode: CreateTableMode.OVERWRITE }, personStream(people(1))),
    ];
    for (const change of changes)
      assert.match(
        (await refused("PermissionDenied", change(as("reader")))).message,
        /readers do not commit/,
        String(change),
      );
    assert.equal((await as("reader").countTableRows({ id })).count, 3n);
    assert.equal((await client.describeTableVersion({ id })).version?.version, 1n);
    assert.deepEqual(await staged(), []);
    await as("writer").insertIntoTable({ id }, personStream(people(1, 5)));
    assert.equal((await as("reader").countTableRows({ id })).count, 4n);
  });

  test("stay where another caller has filled a table, and its declarer may not replace them", async (t) => {
    const { as } = await openManaged(t, (operations) => ({
      async declareTable(request, call) {
        const answer = await operations.declareTable(request, call);
        if (call.headers["authorization"] === "Bearer slow")
          await as("fast").createTable({ id: ID }, personStream(people(4)));
        return answer;
      },
      async createTableVersion(request, call) {
        if (call.headers["authorization"] === "Bearer slow")
          throw new LanceError("Throttling", "too many requests");
        return operations.createTableVersion(request, call);
      },
    }));
    const replace = as("slow").createTable({ id: ID, mode: CreateTableMode.OVERWRITE }, personStream([]));
    await refused("Throttling", replace);
    assert.equal(await count(as("fast")), 4);
  });

  test("stay on a branch whose versions the upstream does not let the caller delete", async (t) => {
    const deleted: string[] = [];
    const { as, client } = await openManaged(t, (operations) => ({
      async batchDeleteTableVersions(request, call) {
        if (call.headers["authorization"] === "Bearer reader")
          throw new LanceError("PermissionDenied", "readers do not delete");
        deleted.push(...request.ranges.map(({ startVersion }) => `${request.branch} ${startVersion}`));
        return operations.batchDeleteTableVersions(request, call);
      },
    }));
    const onBranch = async () => (await client.countTableRows({ id: ID, branch: "dev" })).count;
    await client.createTable({ id: ID }, personStream(people(3)));
    await client.createTableBranch({ id: ID, name: "dev" });
    await client.insertIntoTable({ id: ID, branch: "dev" }, personStream(people(2, 3)));
    await refused("PermissionDenied", as("reader").deleteTableBranch({ id: ID, name: "dev" }));
    assert.equal(await onBranch(), 5n);
    await client.deleteTableBranch({ id: ID, name: "dev" });
    assert.deepEqual(deleted, ["dev 2", "dev 1"]);
    await refused("TableBranchNotFound", onBranch());
    await client.createTableBranch({ id: ID, name: "dev" });
    assert.equal(await onBranch(), 3n);
  });

  test("are known not to be changed if the rights of the caller end before the commit", async (t) => {
    let isExpired = false;
    const { client } = await openManaged(t, (operations) => {
      const refuse = () => Promise.reject(new LanceError("Unauthenticated", "the token has expired"));
      return {
        createTableVersion: (request, call) =>
          isExpired ? refuse() : operations.createTableVersion(request, call),
        describeTableVersion: (request, call) =>
          isExpired ? refuse() : operations.describeTableVersion(request, call),
      };
    });
    await client.createTable({ id: ID }, personStream(people(5)));
    isExpired = true;
    await refused("Unauthenticated", client.updateTableSchemaMetadata({ id: ID, metadata: { a: "1" } }));
    await refused("Unauthenticated", client.insertIntoTable({ id: ID }, personStream(people(1))));
    isExpired = false;
    assert.equal(await newest(client), 1);
  });

  test("are Unsupported by name where the upstream has no operation for versions", async (t) => {
    const missing = (): Partial<Record<string, undefined>> => ({ createTableVersion: undefined });
    const { client, upstream, committed } = await openManaged(t, missing as never);
    await upstream.createTable({ id: ID }, personStream(people(2)));
    committed.add((await upstream.describeTableVersion({ id: ID })).version?.manifestPath ?? "");
    assert.equal(await count(client), 2);
    const insert = client.insertIntoTable({ id: ID }, personStream(people(1)));
    assert.match((await refused("Unsupported", insert)).message, /no operation createTableVersion/);
  });
});
