import assert from "node:assert/strict";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { create, type DescMethod } from "@bufbuild/protobuf";
import { test } from "vitest";
import {
  failsWith,
  openClient,
  silent,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { idsOf, rows } from "../../../../../test/fixtures/dir/rows.ts";
import { beginCall } from "../../../../../test/support/caller.ts";
import { LanceNamespaceService } from "../../../../gen/lance/namespace/v1/service_pb.ts";
import type { NativeBranches, NativeTable } from "../../engine/native/native.ts";
import { describeVersion } from "../../format/versions/version-files.ts";
import { MAX_RUNNING_JOBS } from "../../jobs/room.ts";
import { openDirectory } from "../../open-directory.ts";
import { createBackfillOperations, EXPRESSION_KEY } from "../columns/backfill.ts";
import { createIndexOperations } from "../indices/indices.ts";
import { requireTable } from "../tables/find-table.ts";
import { datasetOf } from "../tables/open-data.ts";
import { createBranchOperations } from "./branches.ts";

/** Returns an object of the engine, one of whose methods is replaced. */
function withMethod<T extends object, K extends keyof T>(object: T, name: K, method: T[K]): T {
  return new Proxy(object, {
    get(target, key) {
      const value = key === name ? method : target[key as keyof T];
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

type Context = Awaited<ReturnType<typeof openDirectory>>["context"];

/** Returns a context in which a method of the engine's branches is replaced. */
function withBranches<K extends keyof NativeBranches>(
  context: Context,
  name: K,
  methodOf: (inner: NativeBranches) => NativeBranches[K],
): Context {
  const engine = {
    ...context.engine,
    async acquire(...args: Parameters<typeof context.engine.acquire>) {
      const lease = await context.engine.acquire(...args);
      const branches = async () => {
        const inner = await lease.table.branches();
        return withMethod<NativeBranches, K>(inner, name, methodOf(inner));
      };
      return { ...lease, table: withMethod<NativeTable, "branches">(lease.table, "branches", branches) };
    },
  };
  return { ...context, engine };
}

/** Returns a function that creates a branch while a part of the engine's creation is replaced. */
function createWith(
  context: Context,
  work: (branches: NativeBranches, args: Parameters<NativeBranches["create"]>) => Promise<NativeTable>,
) {
  const { createTableBranch } = createBranchOperations(
    withBranches(
      context,
      "create",
      (inner) =>
        (...given) =>
          work(inner, given),
    ),
  );
  const method = LanceNamespaceService.method.createTableBranch;
  return (name: string, fromVersion: bigint) =>
    createTableBranch(create(method.input, { name, fromVersion }), beginCall(method, { id: ["t"] }));
}

test("a branch does not begin on a version that is pruned at that moment", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  await client.upload("createTable", "t", {}, rows([0]));
  await client.upload("insertIntoTable", "t", {}, rows([1]));
  const { context, close } = await openDirectory({ root, log: silent });
  t.onTestFinished(close);
  const dataset = datasetOf(context, await requireTable(context, { id: ["t"] }));
  const createBranch = createWith(context, async (branches, args) => {
    const made = await branches.create(...args);
    await context.store.delete((await describeVersion(dataset, 1n)).key);
    return made;
  });
  await assert.rejects(createBranch("b", 1n), failsWith("TableVersionNotFound"));
  assert.deepEqual((await client.call("listTableBranches", "t")).branches, {});
});

test("a branch that two gateways create at a time has only the version of the one that succeeds", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  await client.upload("createTable", "t", {}, rows([0]));
  for (const id of [1, 2]) await client.upload("insertIntoTable", "t", {}, rows([id]));
  const { context, close } = await openDirectory({ root, log: silent });
  t.onTestFinished(close);
  const createBranch = createWith(context, async (branches, args) => {
    await client.call("createTableBranch", "t", { name: "b", fromVersion: 2n });
    return branches.create(...args);
  });
  await assert.rejects(createBranch("b", 3n), failsWith("TableBranchAlreadyExists"));
  assert.deepEqual(idsOf(await client.query("t", { branch: "b" })), [0, 1]);
  const { versions } = await client.call("listTableVersions", "t", { branch: "b" });
  assert.deepEqual(
    versions.map(({ version }) => version),
    [2n],
  );
});

test("a branch that another gateway deletes while it is created leaves no name without a version", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  await client.upload("createTable", "t", {}, rows([0]));
  const { context, close } = await openDirectory({ root, log: silent });
  t.onTestFinished(close);
  const directory = join(root, "data", "t.lance");
  const createBranch = createWith(context, async (branches, args) => {
    const made = await branches.create(...args);
    // The deletion came before the engine wrote the name of the branch, and after it had written its version.
    await rm(join(directory, "tree", "b"), { recursive: true });
    return made;
  });
  await assert.rejects(createBranch("b", 1n), failsWith("ConcurrentModification"));
  assert.deepEqual((await client.call("listTableBranches", "t")).branches, {});
  await client.call("createTableBranch", "t", { name: "b" });

  const name = join(directory, "_refs", "branches", "b.json");
  const written = await readFile(name);
  const { deleteTableBranch } = createBranchOperations(
    withBranches(context, "delete", (inner) => async (branch) => {
      await inner.delete(branch);
      // The gateway that creates it writes the name when it is deleted, and looked at the version before that was.
      if (isFirst) await writeFile(name, written);
      isFirst = false;
    }),
  );
  let isFirst = true;
  const method = LanceNamespaceService.method.deleteTableBranch;
  await deleteTableBranch(create(method.input, { name: "b" }), beginCall(method, { id: ["t"] }));
  assert.deepEqual((await client.call("listTableBranches", "t")).branches, {});
  assert.deepEqual(idsOf(await client.query("t", {})), [0]);
});

test("a branch with another one inside of it is created again after its deletion", async (t) => {
  const client = await openClient(t, await temporaryDirectory(t));
  await client.upload("createTable", "t", {}, rows([0]));
  await client.upload("insertIntoTable", "t", {}, rows([1]));
  for (const name of ["b", "b/inner"]) await client.call("createTableBranch", "t", { name });
  await client.upload("insertIntoTable", "t", { branch: "b" }, rows([9]));
  await client.call("deleteTableBranch", "t", { name: "b" });
  await client.call("createTableBranch", "t", { name: "b", fromVersion: 1n });
  assert.deepEqual(idsOf(await client.query("t", { branch: "b" })), [0]);
  assert.deepEqual(idsOf(await client.query("t", { branch: "b/inner" })), [0, 1]);
});

test("a second deletion of a branch removes the rest of one that was cut off, and the branch does not come back before", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  await client.upload("createTable", "t", {}, rows([0]));
  for (const id of [1, 2]) await client.upload("insertIntoTable", "t", {}, rows([id]));
  await client.call("createTableBranch", "t", { name: "b", fromVersion: 2n });
  await client.call("createTableBranch", "t", { name: "b/inner" });
  await client.upload("insertIntoTable", "t", { branch: "b" }, rows([9]));
  await rm(join(root, "data", "t.lance", "_refs", "branches", "b.json"));
  for (const fromVersion of [1n, 2n, undefined]) {
    const creating = client.call("createTableBranch", "t", { name: "b", fromVersion });
    await assert.rejects(creating, failsWith("TableBranchAlreadyExists"));
  }
  assert.deepEqual(Object.keys((await client.call("listTableBranches", "t")).branches), ["b/inner"]);
  await client.call("deleteTableBranch", "t", { name: "b" });
  const deletion = client.call("deleteTableBranch", "t", { name: "b" });
  await assert.rejects(deletion, failsWith("TableBranchNotFound"));
  await client.call("createTableBranch", "t", { name: "b", fromVersion: 1n });
  assert.deepEqual(idsOf(await client.query("t", { branch: "b" })), [0]);
  assert.deepEqual(idsOf(await client.query("t", { branch: "b/inner" })), [0, 1, 2]);
});

test("jobs of a branch end with it, and those of a branch that gets its name do not", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  await client.upload("createTable", "t", {}, rows([0]));
  await client.call("updateFieldMetadata", "t", {
    updates: [{ path: "name", metadata: { [EXPRESSION_KEY]: { value: "upper(name)" } } }],
  });
  const { context, close } = await openDirectory({ root, log: silent });
  t.onTestFinished(close);
  const { jobs } = context;
  const operations = {
    ...createBackfillOperations(context),
    ...createBranchOperations(context),
    ...createIndexOperations(context),
  };
  function run(operation: keyof typeof operations, request: Record<string, unknown>) {
    const method: DescMethod = LanceNamespaceService.method[operation];
    const call = beginCall(method, { id: ["t"], headers: { prefer: "respond-async" } });
    return operations[operation](create(method.input, request) as never, call);
  }
  async function submitAll(branch: string): Promise<void> {
    await run("createTableScalarIndex", { branch, column: "id", indexType: "BTREE" });
    await run("alterTableBackfillColumns", { branch, column: "name" });
  }
  const others = Promise.withResolvers<void>();
  for (let i = 0; i < MAX_RUNNING_JOBS; i++)
    void jobs.runUnrecorded(new AbortController().signal, "", () => others.promise);
  await run("createTableBranch", { name: "b" });
  await run("createTableBranch", { name: "other" });
  for (const branch of ["b", "other"]) await submitAll(branch);
  await run("deleteTableBranch", { name: "b" });
  await run("createTableBranch", { name: "b" });
  await run("alterTableBackfillColumns", { branch: "b", column: "name" });
  others.resolve();
  const submitted = await jobs.list();
  const ended = await Promise.all(submitted.map(({ id }) => jobs.ended(id, 60_000)));
  assert.deepEqual(ended.map((job) => `${job?.kind} ${job?.state}`).sort(), [
    "backfill_column cancelled",
    "backfill_column succeeded",
    "backfill_column succeeded",
    "create_index cancelled",
    "create_index succeeded",
  ]);
  assert.deepEqual((await client.call("listTableIndices", "t", { branch: "b" })).indexes, []);
});

test("a branch of a branch uses the indices that both have inherited", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  await client.upload("createTable", "t", {}, rows([1, 2, 3]));
  await client.call("createTableScalarIndex", "t", { column: "id", indexType: "BITMAP", name: "by_id" });
  await client.call("createTableBranch", "t", { name: "outer" });
  await client.call("createTableBranch", "t", { name: "inner", fromBranch: "outer" });
  // The engine of the first backend may remember the index.
  await client.close();
  const next = await openClient(t, root);
  const branch = "inner";
  assert.equal((await next.call("countTableRows", "t", { branch, predicate: "id = 2" })).count, 1n);
  assert.equal((await next.call("deleteFromTable", "t", { branch, predicate: "id = 2" })).numDeletedRows, 1n);
  assert.deepEqual(idsOf(await next.query("t", { branch, filter: "id > 0" })), [1, 3]);
  const { indexes } = await next.call("listTableIndices", "t", { branch });
  assert.deepEqual(
    indexes.map(({ indexName }) => indexName),
    ["by_id"],
  );
});
