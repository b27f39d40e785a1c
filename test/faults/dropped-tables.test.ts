import assert from "node:assert/strict";
import { once } from "node:events";
import { cp, readdir } from "node:fs/promises";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { expect, type TestContext, test } from "vitest";
import type { NativeTable } from "../../src/backends/dir/engine/native/native.ts";
import { createLocalStore } from "../../src/backends/dir/format/local/local-store.ts";
import type { ObjectStore } from "../../src/backends/dir/format/storage.ts";
import { openDirectory } from "../../src/backends/dir/open-directory.ts";
import { createBackfillOperations } from "../../src/backends/dir/operations/columns/backfill.ts";
import type { DirContext } from "../../src/backends/dir/operations/context.ts";
import { createIndexOperations } from "../../src/backends/dir/operations/indices/indices.ts";
import { createDropOperations } from "../../src/backends/dir/operations/tables/drop.ts";
import { createUpkeepLeases } from "../../src/backends/dir/upkeep/lease.ts";
import { optimizeTables } from "../../src/backends/dir/upkeep/optimize-now.ts";
import { DropNamespaceBehavior } from "../../src/gen/lance/namespace/v1/namespace_pb.ts";
import { LanceNamespaceService } from "../../src/gen/lance/namespace/v1/service_pb.ts";
import { MaterializedViewKind } from "../../src/gen/lance/namespace/v1/view_pb.ts";
import {
  openClient,
  silent,
  type TestClient,
  temporaryDirectory,
} from "../fixtures/dir/directory-backend.ts";
import { idsOf, rows } from "../fixtures/dir/rows.ts";
import { beginCall } from "../support/caller.ts";

/**
 * A table `t`, and another gateway of the same directory that drops it and creates it again with other rows. `replace`
 * runs in the middle of work on the first table, and does so once.
 */
async function createWorld(t: TestContext) {
  const root = await temporaryDirectory(t);
  const other = await openClient(t, root);
  await other.upload("createTable", "t", {}, rows([1, 2, 3]));
  await other.upload("insertIntoTable", "t", {}, rows([4, 5, 6]));
  let replaced: Promise<unknown> | undefined;
  const replace = (name = "t", drop: () => Promise<unknown> = () => other.call("dropTable", name)) =>
    (replaced ??= drop().then(() => other.upload("createTable", name, {}, rows([70, 80]))));
  return { root, other, replace, isReplaced: () => replaced !== undefined };
}

/** Checks that the table is as it was created, and that the directory of the former one goes. */
async function isIntact(root: string, client: TestClient, name = "t"): Promise<void> {
  assert.deepEqual(
    (await client.call("listTableVersions", name)).versions.map(({ version }) => version),
    [1n],
  );
  assert.deepEqual((await client.call("listTableIndices", name)).indexes, []);
  assert.deepEqual(idsOf(await client.query(name, { k: 10n, filter: "id > 0" })), [70, 80]);
  const { location = "" } = await client.call("describeTable", name);
  const isOfTable = (entry: string) => entry === `${name}.lance` || entry.endsWith(`_${name}`);
  await expect
    .poll(async () =>
      (await readdir(join(root, "data"))).filter(isOfTable).map((entry) => join(root, "data", entry)),
    )
    .toEqual([location]);
  await client.call("dropTable", name);
  assert.ok(!(await client.call("listTables", "")).tables.includes(name));
}

/** Opens a gateway whose storage calls `before` before a version of a table is published by the gateway itself. */
async function openHooked(
  t: TestContext,
  root: string,
  directory: string,
  before: (nth: number) => Promise<unknown>,
) {
  const disk = createLocalStore();
  let count = 0;
  const store: ObjectStore = {
    ...disk,
    async putIfAbsent(key, ...rest) {
      if (key.includes(`/${directory}/_versions/`)) await before(++count);
      return disk.putIfAbsent(key, ...rest);
    },
  };
  const storage = { store, root, engineOptions: {} };
  return openClient(t, root, { storage });
}

/** Opens a directory whose engine calls `before` before a call of a table. */
async function openEngine(
  t: TestContext,
  root: string,
  method: keyof NativeTable,
  before: () => Promise<unknown>,
) {
  const { context, close } = await openDirectory({ root, log: silent });
  t.onTestFinished(close);
  const hooked = (native: NativeTable) =>
    new Proxy(native, {
      get(target, key) {
        const value: unknown = Reflect.get(target, key);
        if (typeof value !== "function") return value;
        if (key !== method) return value.bind(target);
        return async (...args: unknown[]) => {
          await before();
          return value.apply(target, args);
        };
      },
    });
  const engine: DirContext["engine"] = {
    ...context.engine,
    async acquire(...args) {
      const lease = await context.engine.acquire(...args);
      return { ...lease, table: hooked(lease.table) };
    },
  };
  return { ...context, engine };
}

const ZONES = { column: "id", indexType: "ZONEMAP", name: "i" };

test("an index that is complete after its table was replaced does not reach the new table", async (t) => {
  const { root, other, replace, isReplaced } = await createWorld(t);
  // The index gets its name in the second version that the gateway publishes.
  const client = await openHooked(t, root, "t.lance", async (nth) => nth === 2 && replace());
  await client.call("createTableIndex", "t", ZONES).catch(() => {});
  assert.ok(isReplaced());
  await isIntact(root, other);
});

test("a refresh that ends after its view was replaced does not touch the new table", async (t) => {
  const { root, other, replace, isReplaced } = await createWorld(t);
  const client = await openHooked(t, root, "v.lance", async (nth) => nth === 2 && replace("v"));
  const view = { kind: MaterializedViewKind.QUERY, sourceQuery: "SELECT id FROM t", outputSchema: "" };
  await client.call("createMaterializedView", "v", { ...view, withNoData: true });
  await client.call("refreshMaterializedView", "v");
  await expect.poll(isReplaced).toBe(true);
  await replace("v");
  await isIntact(root, other, "v");
});

/** Calls of the engine that take long and commit, and the work that makes them. */
const WORK: Readonly<Record<string, [keyof NativeTable, (context: DirContext) => Promise<unknown>]>> = {
  "an index of the engine": [
    "createIndexAsync",
    (context) => {
      const method = LanceNamespaceService.method.createTableIndex;
      const request = create(method.input, { column: "id", indexType: "BTREE", name: "i" });
      return createIndexOperations(context).createTableIndex(request, beginCall(method, { id: ["t"] }));
    },
  ],
  "a column": [
    "update",
    async (context) => {
      const { alterTableBackfillColumns } = createBackfillOperations(context);
      const method = LanceNamespaceService.method.alterTableBackfillColumns;
      const call = beginCall(method, { id: ["t"] });
      const { jobId } = await alterTableBackfillColumns(create(method.input, { column: "name" }), call);
      await context.jobs.ended(jobId, 10_000);
    },
  ],
  "a compaction": [
    "optimize",
    async (context) => {
      const leases = createUpkeepLeases(context.layout.baseKey, context.store, context.clock);
      for await (const _ of optimizeTables(context, { tables: [["t"]], waitMs: 0, leases }));
    },
  ],
};

for (const [what, [method, work]] of Object.entries(WORK)) {
  test(`${what} that the engine makes for a table that was replaced does not reach the new table`, async (t) => {
    const { root, other, replace, isReplaced } = await createWorld(t);
    const updates = [{ path: "name", metadata: { "lance_gateway.expression": { value: "upper(name)" } } }];
    await other.call("updateFieldMetadata", "t", { updates });
    const context = await openEngine(t, root, method, () => replace());
    await work(context).catch(() => {});
    assert.ok(isReplaced());
    await isIntact(root, other);
  });
}

/** Ways in which a table of the root loses its directory, besides a drop by its name. */
const WAYS: Readonly<Record<string, (client: TestClient) => Promise<unknown>>> = {
  "with its namespace": async (client) => {
    await client.call("createNamespace", "n");
    await client.call("renameTable", "t", { newTableName: "t", newNamespaceId: ["n"] });
    await client.call("dropNamespace", "n", { behavior: DropNamespaceBehavior.CASCADE });
  },
  "after a rename": async (client) => {
    await client.call("renameTable", "t", { newTableName: "x" });
    await client.call("dropTable", "x");
  },
};

for (const [how, drop] of Object.entries(WAYS)) {
  test(`an index does not reach the new table if the former one is dropped ${how}`, async (t) => {
    const { root, other, replace, isReplaced } = await createWorld(t);
    const client = await openHooked(
      t,
      root,
      "t.lance",
      async (nth) => nth === 2 && replace("t", () => drop(other)),
    );
    await client.call("createTableIndex", "t", ZONES).catch(() => {});
    assert.ok(isReplaced());
    await isIntact(root, other);
  });
}

test("an index does not reach the new table if the former one had no row in the catalog", async (t) => {
  const { root, other, replace, isReplaced } = await createWorld(t);
  const [elsewhere, directory] = [await temporaryDirectory(t), join(root, "data", "u.lance")];
  await (await openClient(t, elsewhere)).upload("createTable", "u", {}, rows([1, 2, 3]));
  await cp(join(elsewhere, "data", "u.lance"), directory, { recursive: true });
  const client = await openHooked(t, root, "u.lance", async (nth) => nth === 2 && replace("u"));
  await client.call("createTableIndex", "u", ZONES).catch(() => {});
  assert.ok(isReplaced());
  await isIntact(root, other, "u");
});

test("a drop cancels the jobs of its table", async (t) => {
  const { root, other } = await createWorld(t);
  const { context, close } = await openDirectory({ root, log: silent });
  t.onTestFinished(close);
  let begun: AbortSignal | undefined;
  context.jobs.define("wait", async (_, signal) => {
    begun = signal;
    await once(signal, "abort");
    throw signal.reason;
  });
  const { id } = await context.jobs.submit({ kind: "wait", table: ["t"], spec: { location: "t.lance" } });
  await expect.poll(() => begun !== undefined).toBe(true);
  const dropping = createDropOperations(context);
  const method = LanceNamespaceService.method.dropTable;
  await dropping.dropTable(create(method.input), beginCall(method, { id: ["t"] }));
  assert.equal((await context.jobs.ended(id, 10_000))?.state, "cancelled");
  assert.deepEqual((await other.call("listTables", "")).tables, []);
});
